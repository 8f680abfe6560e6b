/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Closing descriptors that other users' programs pass over a unix socket, or leave in one. Such a
 * close may block for ever: on the server of a FUSE file, or on the peer of a TCP connection with
 * SO_LINGER. It also blocks if it only discards the message with the descriptor, or closes the
 * socket in which that message waits. So a descriptor that may not close at once is closed on a
 * thread for the user that passed it. One user's threads don't wait for another's.
 *
 * Threads: any.
 */
#ifndef URNIC_FOREIGN_H
#define URNIC_FOREIGN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Descriptors in one message, at most. The kernel closes those that the receiver has no room for,
 * on the receiver's thread. */
#define FOREIGN_FDS 253u

/* Limit of a user's descriptors that wait to be closed. Above it, the caller takes neither the
 * user's messages with descriptors (foreign_comes) nor the user's connections. */
#define FOREIGN_WAITING 32u

/* Close a descriptor that this user has passed. */
void foreign_close(uid_t user, int fd);

/* Close a unix socket to this user, whose end notices at once. */
void foreign_hang_up(uid_t user, int sock);

/* Does the next message in this socket carry descriptors? It stays there. */
bool foreign_comes(int sock);

/* Run fn(arg) on this user's thread, after earlier work there: for calls that the user can delay
 * for ever. The caller bounds how many wait. False: out of memory. */
bool foreign_run(uid_t user, void (*fn)(void *arg), void *arg);

/* The number of this user's descriptors that wait to be closed. */
unsigned foreign_waiting(uid_t user);

/* The user at the other end of a socket; (uid_t)-1 = unknown. */
uid_t foreign_user(int sock);

/* For tests: wait until all are closed, at most this long. False: some are left. */
bool foreign_settle(unsigned ms);

#endif
