/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See unread.h. The kernel tells how much of what was sent waits in a socket, in octets of its own
 * memory: that says how many messages at most.
 */
#include "unread.h"

#include <errno.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control.h"
#include "foreign.h"
#include "quota.h"

#define UNREAD_MSG 512u /* octets of the kernel's memory that a message takes, at least */

/* A socket whose client is gone. */
struct unread {
    struct unread *next;
    struct share *share;
    int fd;
    uint32_t fds;
};

static void unread_look(int fd, struct share *share, uint32_t *fds)
{
    int octets;

    if (*fds == 0 || ioctl(fd, SIOCOUTQ, &octets) < 0)
        return;
    uint64_t most = (uint64_t)octets / UNREAD_MSG * IPC_FD_MAX;
    if (most < *fds) {
        share_give(share, SHARE_UNREAD, *fds - most);
        *fds = (uint32_t)most;
    }
}

static bool unread_has_room(const struct client *c)
{
    return c->unread_fds + IPC_FD_MAX <= QUOTA_UNREAD &&
           share_has_room(c->share, SHARE_UNREAD, IPC_FD_MAX);
}

/* Nobody receives any more, or all has been received: the next one. */
static struct unread **unread_visit(struct unread **p)
{
    struct unread *u = *p;

    unread_look(u->fd, u->share, &u->fds);
    if (u->fds > 0)
        return &u->next;
    *p = u->next;
    foreign_hang_up(u->share->uid, u->fd);
    share_give(u->share, SHARE_FDS, 1);
    share_leave(u->share);
    free(u);
    return p;
}

int unread_room(struct urnicd *d, struct client *c)
{
    unread_look(c->fd, c->share, &c->unread_fds);
    if (unread_has_room(c))
        return 0;
    /* They may have received them by now. */
    for (struct client *o = d->clients; o; o = o->next)
        unread_look(o->fd, o->share, &o->unread_fds);
    for (struct unread **p = &d->unread; *p;)
        p = unread_visit(p);
    return unread_has_room(c) ? 0 : -EDQUOT;
}

void unread_sent(struct client *c, unsigned n)
{
    if (n > 0 && share_take(c->share, SHARE_UNREAD, n) == 0)
        c->unread_fds += n;
}

bool unread_close(struct urnicd *d, struct client *c)
{
    unread_look(c->fd, c->share, &c->unread_fds);
    struct unread *u = c->unread_fds > 0 ? malloc(sizeof(*u)) : NULL;
    epoll_ctl(d->epfd, EPOLL_CTL_DEL, c->fd, NULL);
    if (!u) {
        share_give(c->share, SHARE_UNREAD, c->unread_fds);
        foreign_hang_up(c->uid, c->fd);
        return false;
    }
    shutdown(c->fd, SHUT_RDWR); /* for the client it is as good as closed */
    *u = (struct unread){
        .next = d->unread, .share = share_hold(c->share), .fd = c->fd, .fds = c->unread_fds};
    d->unread = u;
    return true;
}

void unread_service(struct urnicd *d)
{
    struct unread *u = d->unread, **last;

    if (!u || unread_visit(&d->unread) == &d->unread || !u->next)
        return;
    d->unread = u->next; /* to the end: the next one has its turn */
    for (last = &d->unread; *last; last = &(*last)->next)
        ;
    u->next = NULL;
    *last = u;
}

void unread_fini(struct urnicd *d)
{
    while (d->unread) {
        struct unread *u = d->unread;
        share_give(u->share, SHARE_UNREAD, u->fds);
        u->fds = 0;
        unread_visit(&d->unread);
    }
}
