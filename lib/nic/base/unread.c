/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See unread.h. The kernel tells how many octets of its own memory are waiting in a socket, which
 * bounds the number of messages.
 */
#include "unread.h"

#include <errno.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "foreign.h"
#include "ipc.h"
#include "quota.h"

#define UNREAD_MSG 512u /* octets of the kernel's memory that a message takes, at least */

void unread_add(struct unread_list *l, struct unread *u, int fd, struct share *share)
{
    *u = (struct unread){.next = l->open, .share = share, .fd = fd};
    l->open = u;
}

void unread_forget(struct unread_list *l, struct unread *u)
{
    for (struct unread **p = &l->open; *p; p = &(*p)->next) {
        if (*p == u) {
            *p = u->next;
            return;
        }
    }
}

static void unread_look(struct unread *u)
{
    int octets;
    if (u->fds == 0 || ioctl(u->fd, SIOCOUTQ, &octets) < 0)
        return;
    uint64_t most = (uint64_t)octets / UNREAD_MSG * IPC_FD_MAX;
    if (most < u->fds) {
        share_give(u->share, SHARE_UNREAD, u->fds - most);
        u->fds = (uint32_t)most;
    }
}

static bool unread_has_room(const struct unread *u)
{
    return u->fds + IPC_FD_MAX <= QUOTA_UNREAD &&
           share_has_room(u->share, SHARE_UNREAD, IPC_FD_MAX);
}

/* The peer receives no more, or has received all: the next one. */
static struct unread **unread_visit(struct unread **p)
{
    struct unread *u = *p;
    unread_look(u);
    if (u->fds > 0)
        return &u->next;
    *p = u->next;
    foreign_hang_up(u->share->uid, u->fd);
    share_give(u->share, SHARE_FDS, 1);
    share_leave(u->share);
    free(u);
    return p;
}

int unread_room(struct unread_list *l, struct unread *u)
{
    unread_look(u);
    if (unread_has_room(u))
        return 0;
    /* They may have received them by now. */
    for (struct unread *o = l->open; o; o = o->next)
        unread_look(o);
    for (struct unread **p = &l->closing; *p;)
        p = unread_visit(p);
    return unread_has_room(u) ? 0 : -EDQUOT;
}

void unread_sent(struct unread *u, unsigned n)
{
    if (n > 0 && share_take(u->share, SHARE_UNREAD, n) == 0)
        u->fds += n;
}

bool unread_close(struct unread_list *l, struct unread *u, uid_t uid)
{
    unread_look(u);
    unread_forget(l, u);
    struct unread *later = u->fds > 0 ? malloc(sizeof(*later)) : NULL;
    if (!later) {
        share_give(u->share, SHARE_UNREAD, u->fds);
        foreign_hang_up(uid, u->fd);
        return false;
    }
    shutdown(u->fd, SHUT_RDWR); /* to the client it is closed */
    *later = (struct unread){
        .next = l->closing, .share = share_hold(u->share), .fd = u->fd, .fds = u->fds};
    l->closing = later;
    return true;
}

void unread_service(struct unread_list *l)
{
    struct unread *u = l->closing, **last;
    if (!u || unread_visit(&l->closing) == &l->closing || !u->next)
        return;
    l->closing = u->next; /* move it to the end: the next call looks at the next one */
    for (last = &l->closing; *last; last = &(*last)->next)
        ;
    u->next = NULL;
    *last = u;
}

void unread_fini(struct unread_list *l)
{
    while (l->closing) {
        struct unread *u = l->closing;
        share_give(u->share, SHARE_UNREAD, u->fds);
        u->fds = 0;
        unread_visit(&l->closing);
    }
}
