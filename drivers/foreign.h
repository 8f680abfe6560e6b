/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Descriptors that strangers pass over a unix socket, or leave in one. Whoever closes such a
 * descriptor may wait for ever: for the server of a FUSE file, for the peer of a TCP connection
 * with SO_LINGER; also when it only throws the message away that the descriptor came with, or
 * closes the socket in which that message waits. So what doesn't close at once for certain is
 * closed on a thread of the user who passed it. One user's threads don't wait for another's.
 *
 * Threads: any.
 */
#ifndef URNIC_FOREIGN_H
#define URNIC_FOREIGN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Descriptors in one message, at most: what the receiver has no room for the kernel closes, on the
 * receiver's thread. */
#define FOREIGN_FDS 253u

/* So many of a user's may wait to be closed. Then his messages with descriptors shouldn't be taken
 * any more (foreign_comes), nor his connections. */
#define FOREIGN_WAITING 32u

/* Close a descriptor that this user has passed. */
void foreign_close(uid_t user, int fd);

/* Close a unix socket whose other end this user has; it hears of it at once. */
void foreign_hang_up(uid_t user, int sock);

/* Have descriptors come with the next message in this socket? It stays there. */
bool foreign_comes(int sock);

/* Run fn(arg) on this user's thread, after what waits there already: for calls that take as long as
 * he likes. Bounding how many wait is the caller's matter. False: there is no memory for it. */
bool foreign_run(uid_t user, void (*fn)(void *arg), void *arg);

/* How many of his descriptors are waiting to be closed. */
unsigned foreign_waiting(uid_t user);

/* Who is at the other end of a socket; (uid_t)-1 = unknown. */
uid_t foreign_user(int sock);

/* Wait until all are closed, at most so long: for tests. False: they aren't. */
bool foreign_settle(unsigned ms);

#endif
