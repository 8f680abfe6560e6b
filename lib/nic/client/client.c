/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Life and death of a client. It ends by end of file, by the end of its process (a forked child may
 * still hold the socket), or by our own decision. Then all its objects are freed on its worker, a
 * bounded part at a time, so that other clients don't feel it.
 */
#include "client.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "async.h"
#include "client_capture.h"
#include "client_mapping.h"
#include "client_qp.h"
#include "clients.h"
#include "cqring.h"
#include "deferred.h"
#include "device.h"
#include "engine_channel.h"
#include "log.h"
#include "neigh.h"
#include "team.h"
#include "worker.h"

#define CLIENT_FDS         2u  /* its socket and its process */
#define CLIENT_CONTEXT_FDS 3u  /* kicks, asynchronous events; doorbells, until they are sealed */
#define CLIENT_TEARDOWN    16u /* objects in one job: each may have megabytes of memory */

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

static int client_pidfd(int fd, pid_t pid)
{
    int pidfd;
    socklen_t len = sizeof(pidfd);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &len) == 0)
        return pidfd;
    return (int)syscall(SYS_pidfd_open, pid, 0); /* older kernels */
}

bool client_is_admin(const struct client *c)
{
    return c->uid == 0 || c->uid == geteuid();
}

/* A client with a known process, and its part of the descriptors. */
static struct client *client_make(struct clients *all, pid_t pid, uid_t uid)
{
    struct client *c = calloc(1, sizeof(*c));
    if (!c)
        return NULL;
    c->pid = pid;
    c->uid = uid;
    c->fd = c->pidfd = -1;
    c->account = subuids_owner(&all->subuids, c->uid);
    c->share = share_join(&all->share, c->account, client_is_admin(c));
    if (!c->share || share_take(c->share, SHARE_FDS, CLIENT_FDS) < 0) {
        share_leave(c->share);
        free(c);
        return NULL;
    }
    c->all = all;
    handle_init(&c->handles);

    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
    int comm = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = comm >= 0 ? read(comm, c->comm, sizeof(c->comm) - 1) : 0;
    if (comm >= 0)
        close(comm);
    for (ssize_t i = 0; i < n; i++) {
        if (c->comm[i] < ' ' || c->comm[i] > '~')
            c->comm[i] = '\0'; /* also the newline */
    }
    return c;
}

struct client *client_new(struct clients *all, int fd)
{
    struct ucred cred;
    socklen_t len = sizeof(cred);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
        return NULL;
    struct client *c = client_make(all, cred.pid, cred.uid);
    if (!c)
        return NULL;
    c->fd = fd;
    unread_add(&all->unread, &c->unread, fd, c->share);
    c->pidfd = cred.pid > 0 ? client_pidfd(fd, cred.pid) : -1;
    return c;
}

struct client *client_new_own(struct clients *all)
{
    struct client *c = client_make(all, getpid(), geteuid());
    if (!c)
        return NULL;
    c->own = true;
    unread_add(&all->unread, &c->unread, -1, c->share);
    return c;
}

/* ---- opening ---- */

static void client_attach(void *arg, uint64_t now)
{
    struct client *c = arg;
    struct worker *w = c->ctx.worker;
    (void)now;
    int rc = watch_add(&w->watch, c->ctx.kick_fd, true);
    if (rc < 0) /* the client has its answer already: its doorbells are read late */
        log_warn("client", "%s[%d] can't wake worker %u: %s", c->comm, (int)c->pid, w->index,
                 strerror(-rc));
    c->ctx.next = w->contexts;
    w->contexts = &c->ctx;
}

/* A context's sockets and doorbells. */
static const struct share_part client_context_parts[] = {
    {SHARE_FDS, CLIENT_CONTEXT_FDS},
    {SHARE_MAPPINGS, 1},
};
#define CLIENT_CONTEXT_PARTS (sizeof(client_context_parts) / sizeof(client_context_parts[0]))

struct client_join {
    struct client *c;
    struct device *device;
};

/* Connections that outlive their ids return their share, too: on the worker. */
static void client_join_device(void *arg, uint64_t now)
{
    const struct client_join *j = arg;
    (void)now;
    j->c->of_device = share_join(&j->device->team->share, j->c->account, client_is_admin(j->c));
}

static void client_leave_device(void *arg, uint64_t now)
{
    struct client *c = arg;
    (void)now;
    share_leave(c->of_device);
    c->of_device = NULL;
}

struct device *client_place(const struct client *c, const struct device *dev)
{
    for (const struct client *o = c->all->first; o; o = o->next) {
        if (o->open && o->pid > 0 && o->pid == c->pid && o->uid == c->uid &&
            o->ctx.device->team == dev->team)
            return o->ctx.device;
    }
    return team_choose(dev->team);
}

int client_open(struct client *c, struct device *dev)
{
    worker_call(dev->worker, client_join_device, &(struct client_join){c, dev});
    if (!c->of_device)
        return -ENOMEM;
    int rc = share_take_all(c->share, client_context_parts, CLIENT_CONTEXT_PARTS);
    if (rc == 0) {
        rc = context_init(&c->ctx, dev, c);
        if (rc < 0)
            share_give_all(c->share, client_context_parts, CLIENT_CONTEXT_PARTS);
    }
    if (rc < 0) {
        worker_call(dev->worker, client_leave_device, c);
        return rc;
    }
    c->ctx.worker = dev->worker;
    dev->team->contexts[dev->member]++;
    c->handles.of_device = c->of_device;
    c->handles.of_daemon = c->qslabs.share = c->share;
    c->open = true;
    return 0;
}

void client_unopen(struct client *c)
{
    context_fini(&c->ctx);
    share_give_all(c->share, client_context_parts, CLIENT_CONTEXT_PARTS);
    worker_call(c->ctx.worker, client_leave_device, c);
    c->ctx.device->team->contexts[c->ctx.device->member]--;
    c->open = false;
}

void client_start(struct client *c)
{
    worker_call(c->ctx.worker, client_attach, c);
    c->attached = true;
}

/* ---- destroying ---- */

int client_cq_destroy(struct client *c, struct client_cq *cq)
{
    int rc = engine_cq_destroy(c->ctx.device->engine, cq->cq);
    if (rc < 0)
        return rc;
    cqring_forget(cq);
    async_forget(&c->ctx, cq->ref);
    if (cq->channel)
        cq->channel->users--;
    qslab_free(&cq->place);
    qslab_free(&cq->next_place);
    free(cq);
    return 0;
}

int client_srq_destroy(struct client *c, struct client_srq *srq)
{
    if (srq->users > 0)
        return -EBUSY;
    int rc = engine_srq_destroy(c->ctx.device->engine, srq->srq);
    if (rc < 0)
        return rc;
    async_forget(&c->ctx, srq->ref);
    context_queue_del(&c->ctx, &srq->rq);
    qslab_free(&srq->rq.place);
    qslab_free(&srq->other);
    free(srq);
    return 0;
}

int client_mr_dereg(struct client *c, struct region *mr, struct memory **unmap)
{
    /* Copies run only within a burst, and this is called between bursts. */
    int rc = mem_mr_dereg(engine_mem(c->ctx.device->engine), mr->lkey);

    *unmap = NULL;
    if (rc < 0 && rc != -EINPROGRESS)
        return rc;
    if (rc == -EINPROGRESS) {
        log_error("memory", "a region is still held; its mapping stays");
        mr->own = NULL;
    }
    *unmap = mr->own;
    if (mr->slab)
        mr->slab->users--;
    free(mr);
    return 0;
}

int client_channel_destroy(struct channel *ch)
{
    if (ch->users > 0)
        return -EBUSY;
    close(ch->fd);
    free(ch);
    return 0;
}

/* ---- death ---- */

struct client_death {
    struct client *c;
    struct memory *unmap[CLIENT_TEARDOWN]; /* for the control thread */
    uint64_t *octets[CLIENT_TEARDOWN]; /* the count of the client that each `unmap` is part of */
    unsigned nunmap;
    uint32_t at[HANDLE_KINDS]; /* the last handle freed */
    bool more;
};

/* Objects of one kind, at most `room`; *looks: handles that may be looked at. Returns how many. */
static unsigned client_kill_kind(struct client_death *d, enum handle_kind kind, unsigned room,
                                 unsigned *looks, uint64_t now)
{
    struct client *c = d->c;
    struct mem *mem = engine_mem(c->ctx.device->engine);
    unsigned n = 0;
    void *o;
    while (n < room && (o = handle_each(&c->handles, kind, &d->at[kind], looks)) != NULL) {
        switch (kind) {
        case HANDLE_CM_ID:
        case HANDLE_CM_CHANNEL: {
            struct client_object *object = o; /* an id ends its connection: DREQ */
            object->free(object, now);
            break;
        }
        case HANDLE_QP:
            client_qp_destroy(c, o, now);
            break;
        case HANDLE_SRQ:
            client_srq_destroy(c, o);
            break;
        case HANDLE_CQ:
            client_cq_destroy(c, o);
            break;
        case HANDLE_MW:
            mem_mw_dealloc(mem, (uint32_t)(uintptr_t)o);
            break;
        case HANDLE_MR:
            client_mr_dereg(c, o, &d->unmap[d->nunmap]);
            if (d->unmap[d->nunmap])
                d->octets[d->nunmap++] = &c->foreign_octets;
            break;
        case HANDLE_PD:
            mem_pd_free(mem, (uint32_t)(uintptr_t)o);
            break;
        case HANDLE_CHANNEL:
            client_channel_destroy(o);
            break;
        case HANDLE_SLAB: {
            struct app_slab *slab = o;
            d->unmap[d->nunmap] = slab->mem;
            d->octets[d->nunmap++] = &c->slab_octets;
            free(slab);
            break;
        }
        default:
            break;
        }
        handle_del(&c->handles, d->at[kind]);
        n++;
    }
    return n;
}

static void client_kill_some(void *arg, uint64_t now)
{
    static const enum handle_kind order[] = {
        HANDLE_CM_ID, HANDLE_QP, HANDLE_SRQ,     HANDLE_CQ,         HANDLE_MW,
        HANDLE_MR,    HANDLE_PD, HANDLE_CHANNEL, HANDLE_CM_CHANNEL, HANDLE_SLAB,
    };
    struct client_death *d = arg;
    struct budget_stats *job = d->c->ctx.device->stats.job;
    unsigned n = 0, looks = budget_of[BUDGET_teardown];
    d->nunmap = 0;
    for (unsigned i = 0; i < sizeof(order) / sizeof(order[0]) && n < CLIENT_TEARDOWN && looks; i++)
        n += client_kill_kind(d, order[i], CLIENT_TEARDOWN - n, &looks, now);
    d->more = n == CLIENT_TEARDOWN || looks == 0;
    budget_spend(job, BUDGET_teardown, budget_of[BUDGET_teardown] - looks);
    if (d->more)
        budget_over(job, BUDGET_teardown);
}

static void client_detach(void *arg, uint64_t now)
{
    struct client *c = arg;
    struct worker *w = c->ctx.worker;
    struct context **p = &w->contexts;
    (void)now;
    while (*p && *p != &c->ctx)
        p = &(*p)->next;
    if (*p)
        *p = c->ctx.next;
    context_unserve(&c->ctx);
    c->ctx.detached = true;
    watch_del(&w->watch, c->ctx.kick_fd);
    deferred_forget(c);
}

void client_forget(struct client *c)
{
    if (c->pidfd >= 0)
        close(c->pidfd);
    handle_fini(&c->handles);
    unread_forget(&c->all->unread, &c->unread);
    share_give(c->share, SHARE_FDS, CLIENT_FDS);
    share_leave(c->share);
    free(c);
}

void client_free(struct client *c)
{
    struct client_death d = {.c = c, .more = c->open};
    client_capture_leave(c);
    engine_channel_end(c);
    if (c->attached)
        worker_call(c->ctx.worker, client_detach, c);
    while (d.more) {
        worker_call(c->ctx.worker, client_kill_some, &d);
        for (unsigned i = 0; i < d.nunmap; i++)
            client_unmap(c, d.octets[i], d.unmap[i]);
    }
    engine_channel_free(c);
    qslab_fini(&c->qslabs);
    handle_fini(&c->handles);
    if (c->open)
        client_unopen(c);
    if (c->pidfd >= 0)
        close(c->pidfd);
    bool later = false;
    if (c->own)
        unread_forget(&c->all->unread, &c->unread);
    else
        later = unread_close(&c->all->unread, &c->unread, c->uid);
    share_give(c->share, SHARE_MAPPINGS, c->mappings);
    share_give(c->share, SHARE_OCTETS, c->slab_octets + (c->share->all ? 0 : c->foreign_octets));
    share_give(c->share, SHARE_FDS, CLIENT_FDS - later);
    share_leave(c->share);
    free(c);
}
