/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See engine_channel.h.
 */
#include "engine_channel.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "channel.h"
#include "client.h"
#include "clients.h"
#include "clock.h"
#include "device.h"
#include "device_switch.h"
#include "engine_group.h"
#include "engine_peer.h"
#include "facts.h"
#include "ipc_channel.h"
#include "switch_channel.h"
#include "worker.h"

#define ENGINE_SLOTS     CHANNEL_SLOTS_MIN /* at first, unless the client asks for more */
#define ENGINE_FRAME_MAX (4096u + 128u)    /* the largest packet of RoCE, and its headers */
#define ENGINE_FDS       2u                /* the rings, until they are sealed; the eventfd */

struct engine_channel {
    struct channel_memory memory; /* until it is attached, or the channel moves there */
    int event;                    /* until it is attached */
    struct switch_channel *channel;
    struct share_part part[3];
    uint64_t slots;    /* of the newest rings that it has moved to */
    uint64_t before;   /* octets of the rings before those, part of part[2] */
    unsigned block;    /* the first */
    unsigned nblocks;  /* all */
    uint64_t nsockets; /* of its own */
    bool bell;
};

struct engine_job {
    struct client *c;
    uint64_t key[2];
    int status;
    /* a socket of its own */
    unsigned index;
    struct io_lent *lent;
    int bell; /* the daemon's end; -1 = none */
};

#define ENGINE_PARTS 3u

/* ---- beginning ---- */

static void engine_switch(void *arg, uint64_t now)
{
    struct engine_job *job = arg;
    (void)now;
    job->status = device_switch_start(job->c->ctx.device);
}

static int engine_make(struct engine_channel *e, uint32_t slots)
{
    int rc = channel_memory_make(&e->memory, slots ? slots : ENGINE_SLOTS, ENGINE_FRAME_MAX);
    if (rc < 0)
        return rc;
    e->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (e->event >= 0)
        return 0;
    rc = -errno;
    channel_memory_free(&e->memory);
    return rc;
}

static int engine_take(struct client *c, struct engine_channel *e, uint32_t slots)
{
    size_t size = channel_memory_size(slots ? slots : ENGINE_SLOTS, ENGINE_FRAME_MAX);
    e->part[0] = (struct share_part){SHARE_FDS, ENGINE_FDS};
    e->part[1] = (struct share_part){SHARE_MAPPINGS, 2}; /* of these rings, and of larger ones */
    e->part[2] = (struct share_part){SHARE_OCTETS, size};
    if (size == 0)
        return -EINVAL;
    return share_take_all(c->share, e->part, ENGINE_PARTS);
}

int engine_channel_open(struct client *c, uint32_t slots, struct engine_channel_offer *out)
{
    struct engine_job job = {.c = c};
    if (c->engine)
        return -EALREADY;
    worker_call(c->ctx.worker, engine_switch, &job);
    if (job.status < 0)
        return job.status;
    struct engine_channel *e = calloc(1, sizeof(*e));
    if (!e)
        return -ENOMEM;
    int rc = engine_take(c, e, slots);
    if (rc == 0) {
        rc = engine_make(e, slots);
        if (rc < 0)
            share_give_all(c->share, e->part, ENGINE_PARTS);
    }
    if (rc < 0) {
        free(e);
        return rc;
    }
    c->engine = e;
    *out = (struct engine_channel_offer){
        .slots = e->memory.slots,
        .frame_max = e->memory.frame_max,
        .memory_fd = e->memory.fd,
        .event_fd = e->event,
        .facts_fd = facts_fd(c->ctx.device->facts),
    };
    return 0;
}

static void engine_attach(void *arg, uint64_t now)
{
    struct engine_job *job = arg;
    struct client *c = job->c;
    struct engine_channel *e = c->engine;
    struct nic_switch *s = c->ctx.device->sw;
    struct io_port *io;
    job->status = channel_open(CHANNEL_SWITCH, &e->memory, e->event, 0, &io);
    if (job->status < 0)
        return;
    e->event = -1; /* the port's now */
    e->slots = channel_slots(io);
    e->channel = switch_attach(s, io, c, now);
    if (!e->channel) {
        io->ops->close(io);
        job->status = -ENOMEM;
        return;
    }
    e->channel->share = c->of_device;
    e->channel->weight = settings_weight(c->ctx.device->conf, c->account);
    job->status = switch_draw(s, e->channel, now, job->key);
    if (job->status < 0) { /* a channel without a block is none */
        switch_detach(s, e->channel, now);
        e->channel = NULL;
    }
}

/* ---- growing ---- */

static void engine_look_grown(void *arg, uint64_t now)
{
    struct engine_job *job = arg;
    (void)now;
    job->status = channel_grown(job->c->engine->channel->io) ? 0 : -EBUSY;
}

static void engine_move(void *arg, uint64_t now)
{
    struct engine_job *job = arg;
    struct engine_channel *e = job->c->engine;
    const uint32_t slots = e->memory.slots;
    (void)now;
    job->status = channel_grow(e->channel->io, &e->memory);
    if (job->status == 0)
        e->slots = slots;
}

/* One part holds the octets of both rings. */
static int engine_take_more(struct client *c, uint32_t slots)
{
    struct engine_channel *e = c->engine;
    const size_t size = channel_memory_size(slots, ENGINE_FRAME_MAX);
    if (size == 0 || slots <= e->slots)
        return -EINVAL;
    share_give(c->share, SHARE_OCTETS, e->before);
    e->part[2].n -= e->before;
    e->before = 0;
    int rc = share_take(c->share, SHARE_OCTETS, size);
    if (rc < 0)
        return rc;
    e->before = e->part[2].n;
    e->part[2].n += size;
    return 0;
}

int engine_channel_grow(struct client *c, uint32_t slots, struct engine_channel_offer *out)
{
    struct engine_channel *e = c->engine;
    struct engine_job job = {.c = c};
    if (!e || !e->channel)
        return -EINVAL;
    if (e->memory.base)
        return -EBUSY;
    worker_call(c->ctx.worker, engine_look_grown, &job);
    if (job.status < 0)
        return job.status;
    int rc = engine_take_more(c, slots);
    if (rc < 0)
        return rc;
    rc = channel_memory_make(&e->memory, slots, ENGINE_FRAME_MAX);
    if (rc < 0) {
        share_give(c->share, SHARE_OCTETS, e->part[2].n - e->before);
        e->part[2].n = e->before;
        e->before = 0;
        return rc;
    }
    *out = (struct engine_channel_offer){
        .slots = slots, .frame_max = e->memory.frame_max, .memory_fd = e->memory.fd};
    return 0;
}

int engine_channel_unsealed(const struct client *c)
{
    return c->engine && c->engine->memory.base ? channel_memory_unsealed(&c->engine->memory) : -1;
}

int engine_channel_attach(struct client *c, uint32_t *block, uint64_t key[2])
{
    struct engine_job job = {.c = c};
    if (!c->engine || !c->engine->memory.base)
        return -EINVAL;
    int rc = channel_memory_seal(&c->engine->memory);
    if (rc < 0)
        return rc;
    if (c->engine->channel) {
        worker_call(c->ctx.worker, engine_move, &job);
        channel_memory_free(&c->engine->memory);
        return job.status;
    }
    worker_call(c->ctx.worker, engine_attach, &job);
    if (job.status < 0)
        return job.status;
    *block = c->engine->block = (uint32_t)job.status;
    c->engine->nblocks = 1;
    key[0] = job.key[0];
    key[1] = job.key[1];
    return 0;
}

static void engine_draw(void *arg, uint64_t now)
{
    struct engine_job *job = arg;
    job->status = switch_draw(job->c->ctx.device->sw, job->c->engine->channel, now, job->key);
}

int engine_channel_block(struct client *c, uint32_t *block, uint64_t key[2])
{
    struct engine_job job = {.c = c};
    if (!engine_channel_sends(c))
        return -EINVAL;
    if (c->engine->nblocks == IPC_ENGINE_BLOCKS)
        return -EDQUOT;
    worker_call(c->ctx.worker, engine_draw, &job);
    if (job.status < 0)
        return job.status;
    c->engine->nblocks++;
    *block = (uint32_t)job.status;
    key[0] = job.key[0];
    key[1] = job.key[1];
    return 0;
}

/* ---- sockets ---- */

static void engine_lend(void *arg, uint64_t now)
{
    struct engine_job *job = arg;
    struct engine_channel *e = job->c->engine;
    struct io_port *io = job->c->ctx.device->io;
    (void)now;
    job->status = io->ops->lend ? io->ops->lend(io, e->block, job->index, job->lent) : -ENOTSUP;
    if (job->status < 0)
        return;
    e->channel->direct = true;
    if (job->bell >= 0)
        channel_set_bell(e->channel->io, job->bell);
}

static void engine_unlend(void *arg, uint64_t now)
{
    struct client *c = arg;
    struct io_port *io = c->ctx.device->io;
    (void)now;
    if (c->engine->nsockets > 0)
        io->ops->unlend(io, c->engine->block);
    c->engine->channel->direct = false;
}

static int engine_bell(struct engine_job *job, int *bell)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
        return -errno;
    job->bell = pair[0];
    *bell = pair[1];
    return 0;
}

/* With its descriptors paid for. */
static int engine_socket(struct client *c, unsigned index, struct io_lent *out, int *bell)
{
    struct engine_job job = {.c = c, .index = index, .lent = out, .bell = -1};
    int rc = index == 0 && !c->engine->bell ? engine_bell(&job, bell) : 0;
    if (rc < 0)
        return rc;
    worker_call(c->ctx.worker, engine_lend, &job);
    if (job.status < 0 && job.bell >= 0) {
        close(job.bell);
        close(*bell);
        *bell = -1;
    }
    return job.status;
}

int engine_channel_socket(struct client *c, unsigned index, struct io_lent *out, int *bell)
{
    struct engine_channel *e = c->engine;
    const uint64_t fds = index == 0 ? 2 : 1;
    *bell = -1;
    if (!e || !e->channel || (index == 0 && e->bell))
        return -EINVAL;
    if (index == IPC_ENGINE_NO_SOCKET) {
        worker_call(c->ctx.worker, engine_unlend, c);
        out->fd = -1;
        return 0;
    }
    if (!client_is_admin(c))
        return -EPERM;
    if (c->uid != 0 && c->uid != geteuid())
        return -EPERM;
    const struct share_part part = {SHARE_FDS, fds};
    int rc = share_take_all(c->share, &part, 1);
    if (rc < 0)
        return rc;
    rc = engine_socket(c, index, out, bell);
    if (rc < 0) {
        share_give_all(c->share, &part, 1);
        return rc;
    }
    e->nsockets += fds;
    e->bell |= index == 0;
    return 0;
}

/* ---- order ---- */

bool engine_channel_sends(const struct client *c)
{
    return c->engine && c->engine->channel;
}

struct engine_looks {
    struct engine_place *at;
    unsigned n;
    bool here;
};

/* At the places of the first one's worker. */
static void engine_look(void *arg, uint64_t now)
{
    const struct engine_looks *l = arg;
    (void)now;
    for (unsigned i = 0; i < l->n; i++) {
        struct engine_place *p = &l->at[i];
        if (p->client->ctx.worker != l->at->client->ctx.worker)
            continue;
        if (l->here)
            p->mark = switch_mark(p->client->ctx.device->sw, p->client->engine->channel);
        p->passed = switch_passed(p->client->engine->channel, &p->mark);
        p->looked = true;
    }
}

void engine_channel_look(struct engine_place *at, unsigned n, bool here)
{
    for (unsigned i = 0; i < n; i++)
        at[i].looked = false;
    for (unsigned i = 0; i < n; i++) {
        struct engine_looks l = {.at = &at[i], .n = n - i, .here = here};
        if (!at[i].looked)
            worker_call(at[i].client->ctx.worker, engine_look, &l);
    }
}

bool engine_channel_same_process(const struct client *a, const struct client *b)
{
    return a == b || (a->pid > 0 && a->pid == b->pid && a->uid == b->uid);
}

/* ---- end ---- */

static void engine_end(void *arg, uint64_t now)
{
    struct client *c = arg;
    engine_group_leave_all(c, now);
    switch_end(c->ctx.device->sw, c->engine->channel);
}

void engine_channel_end(struct client *c)
{
    if (engine_channel_sends(c))
        worker_call(c->ctx.worker, engine_end, c);
}

struct engine_death {
    struct client *c;
    bool more;
};

static void engine_drop_some(void *arg, uint64_t now)
{
    struct engine_death *d = arg;
    (void)now;
    d->more = engine_peer_drop_some(d->c);
}

static void engine_detach(void *arg, uint64_t now)
{
    struct client *c = arg;
    engine_group_leave_all(c, now);
    engine_unlend(c, now);
    switch_detach(c->ctx.device->sw, c->engine->channel, now);
}

void engine_channel_free(struct client *c)
{
    struct engine_channel *e = c->engine;
    if (!e)
        return;
    struct engine_death d = {.c = c, .more = e->channel};
    while (d.more)
        worker_call(c->ctx.worker, engine_drop_some, &d);
    if (e->channel)
        worker_call(c->ctx.worker, engine_detach, c);
    channel_memory_free(&e->memory);
    if (e->event >= 0)
        close(e->event);
    share_give_all(c->share, e->part, ENGINE_PARTS);
    share_give(c->share, SHARE_FDS, e->nsockets);
    free(e);
    c->engine = NULL;
}

bool engine_channel_has(const struct client *c, uint32_t qpn)
{
    const struct nic_switch *s = c->ctx.device->sw;
    const struct switch_channel *ch = s ? switch_owner(s, qpn) : NULL;
    const struct client *owner = ch ? ch->owner : NULL;
    return owner && engine_channel_same_process(owner, c);
}

struct switch_channel *engine_channel_at(const struct client *c)
{
    return c->engine ? c->engine->channel : NULL;
}
