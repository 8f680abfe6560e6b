/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Descriptors that are under way to clients: sent, and not received yet. The kernel counts them by
 * the sender's user: a daemon that is not root can send no client any more once RLIMIT_NOFILE of
 * them wait. So they count in users' shares (SEC-22), and stay there as long as any process holds
 * the socket in which they wait, even when the client's connection has ended. On the control
 * thread.
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
    struct share *share; /* the client's, of the daemon */
    int fd;
    uint32_t fds; /* under way to it, at most */
};

/* All of them; all zero at first. */
struct unread_list {
    struct unread *open;
    struct unread *closing; /* of clients that are gone, with descriptors that wait */
};

/* A client's socket. */
void unread_add(struct unread_list *l, struct unread *u, int fd, struct share *share);
/* It is no longer looked at, and stays open: nothing has been sent to it. */
void unread_forget(struct unread_list *l, struct unread *u);
/* May it be sent an answer with descriptors? 0, or -EDQUOT: the client, or its user, has too many
 * that it hasn't received. */
int unread_room(struct unread_list *l, struct unread *u);
/* So many have been sent to it. */
void unread_sent(struct unread *u, unsigned n);
/* The client, of this user, goes; its socket is closed, now or when nothing waits in it. True:
 * later, and then its descriptor counts until then. */
bool unread_close(struct unread_list *l, struct unread *u, uid_t uid);
/* Look at one of the sockets that wait to be closed. For every round. */
void unread_service(struct unread_list *l);
/* Close those that wait. */
void unread_fini(struct unread_list *l);

#endif
