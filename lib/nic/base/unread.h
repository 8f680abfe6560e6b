/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Descriptors sent to clients and not received yet. The kernel counts them for the sender's user:
 * once RLIMIT_NOFILE of them wait, a daemon that is not root can send to no client any more. So
 * they count in users' shares (SEC-22), as long as any process holds the socket in which they wait,
 * even after the client's connection has ended. On the control thread.
 */
#ifndef NIC_UNREAD_H
#define NIC_UNREAD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "share.h"

/* The socket of a client, embedded in it. */
struct unread {
    struct unread *next;
    struct share *share; /* the client's share of the daemon */
    int fd;
    uint32_t fds; /* upper bound of descriptors sent and not received */
};

/* All clients' sockets; all zero at first. */
struct unread_list {
    struct unread *open;
    struct unread *closing; /* sockets of disconnected clients with waiting descriptors */
};

/* Start watching a client's socket. */
void unread_add(struct unread_list *l, struct unread *u, int fd, struct share *share);
/* Stop watching it, and leave it open: nothing has been sent to it. */
void unread_forget(struct unread_list *l, struct unread *u);
/* May the client be sent an answer with descriptors? 0, or -EDQUOT: the client, or its user, has
 * not received too many. */
int unread_room(struct unread_list *l, struct unread *u);
/* Count descriptors sent to it. */
void unread_sent(struct unread *u, unsigned n);
/* The client disconnects; its socket is closed, at once or when nothing waits in it. True: later,
 * and its descriptor counts until then. */
bool unread_close(struct unread_list *l, struct unread *u, uid_t uid);
/* Check one of the sockets that wait to be closed. For every round. */
void unread_service(struct unread_list *l);
/* Close the waiting sockets. */
void unread_fini(struct unread_list *l);

#endif
