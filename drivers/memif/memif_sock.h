/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The control channel: a unix socket of type SOCK_SEQPACKET that carries 128-octet messages, each
 * with at most one file descriptor. Nothing here blocks.
 */
#ifndef URNIC_MEMIF_SOCK_H
#define URNIC_MEMIF_SOCK_H

#include <stdbool.h>

#include "memif_proto.h"

/* Listen on `path` ('@' first = abstract name). A stale socket file that nobody listens on is
 * replaced. Returns the descriptor, or -errno; -EADDRINUSE when somebody listens. */
int memif_sock_listen(const char *path);

/* Connect to `path`. Returns the descriptor, or -errno (-ECONNREFUSED, -ENOENT, -EAGAIN: later). */
int memif_sock_connect(const char *path);

/* Accept one connection. Returns the descriptor, or -errno; -EAGAIN when nobody waits. */
int memif_sock_accept(int listener);

/* Send one message, with descriptor `fd` unless it is negative (it stays the caller's).
 * Returns 0 or -errno. */
int memif_sock_send(int sock, const struct memif_msg *msg, int fd);

/* Receive one message. *fd becomes the descriptor that came with it (the caller's to close), or -1.
 * Returns 0, -EAGAIN nothing there, -ECONNRESET the peer is gone, -EBADMSG not 128 octets, -EPERM
 * more than one came, and one of them holds others. */
int memif_sock_recv(int sock, struct memif_msg *msg, int *fd);

/* Can other descriptors live in this one: is it a unix socket, an io_uring, or of another kind that
 * no memif peer needs? As long as the peer's own socket lives in what we haven't closed yet, the
 * kernel doesn't tell us when the peer dies. */
bool memif_sock_holds(int fd);

/* Close a descriptor that came from there; end the connection. Neither waits (foreign.h). */
void memif_sock_drop(int sock, int fd);
void memif_sock_hang_up(int sock);

#endif
