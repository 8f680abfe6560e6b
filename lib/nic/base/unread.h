/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Descriptors that are under way to clients: sent, and not received yet. The kernel counts them by
 * the sender's user: beyond RLIMIT_NOFILE of them it lets a daemon that is not root send no more,
 * to nobody. So they are in users' shares (SEC-22), and stay there while somebody holds the socket
 * in which they wait, even when the client's connection has ended. On the control thread.
 */
#ifndef URNICD_UNREAD_H
#define URNICD_UNREAD_H

#include <stdbool.h>

struct client;
struct urnicd;

/* May the client be sent an answer with descriptors? 0, or -EDQUOT: it, or its user, has too many
 * that it hasn't received. */
int unread_room(struct urnicd *d, struct client *c);
/* So many have been sent to it. */
void unread_sent(struct client *c, unsigned n);
/* The client goes; its socket is closed, now or when nothing waits in it. True: later, and then its
 * descriptor counts until then. */
bool unread_close(struct urnicd *d, struct client *c);
/* Look at one of the sockets that wait to be closed. For every round. */
void unread_service(struct urnicd *d);
/* Close them all. */
void unread_fini(struct urnicd *d);

#endif
