/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The control channel: a unix socket of type SOCK_SEQPACKET that carries 128-octet messages, each
 * with at most one file descriptor. Nothing here blocks.
 */
#ifndef URNIC_MEMIF_SOCK_H
#define URNIC_MEMIF_SOCK_H

#include <stdbool.h>

#include "memif_proto.h"

/* Listen on `path` ('@' first = abstract name). A stale socket file without a listener is replaced.
 * Returns the descriptor, or -errno; -EADDRINUSE: it has a listener. */
int memif_sock_listen(const char *path);

/* Connect to `path`. Returns the descriptor, or -errno (-ECONNREFUSED, -ENOENT, -EAGAIN: later). */
int memif_sock_connect(const char *path);

/* Accept one connection. Returns the descriptor, or -errno; -EAGAIN: none waits. */
int memif_sock_accept(int listener);

/* Send one message, with descriptor `fd` unless it is negative (it stays the caller's).
 * Returns 0 or -errno. */
int memif_sock_send(int sock, const struct memif_msg *msg, int fd);

/* Receive one message. *fd becomes the descriptor that came with it (the caller's to close), or -1.
 * Returns 0; -EAGAIN: nothing there; -ECONNRESET: the peer is gone; -EBADMSG: not 128 octets;
 * -EPERM: several descriptors came, and one of them holds others. */
int memif_sock_recv(int sock, struct memif_msg *msg, int *fd);

/* Can this descriptor hold others: is it a unix socket, an io_uring, or of another kind that no
 * memif peer needs? While a descriptor that we have yet to close holds the peer's own socket, the
 * kernel doesn't report the peer's death. */
bool memif_sock_holds(int fd);

/* Close a descriptor that came from the peer; end the connection. Neither waits (foreign.h). */
void memif_sock_drop(int sock, int fd);
void memif_sock_hang_up(int sock);

#endif
