/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Doorbells in, active queues served in turn, each for a bounded number of entries (SHM-08).
 */
#include "context.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "async.h"
#include "client.h"
#include "context_ok.h"
#include "device.h"
#include "foreign.h"
#include "queue.h"
#include "quota.h"
#include "worker.h"

int context_init(struct context *c, struct device *d, struct client *client)
{
    *c = (struct context){.device = d,
                          .client = client,
                          .kick_fd = -1,
                          .async_fd = -1,
                          .late = client && client->own};
    TAILQ_INIT(&c->active);
    LIST_INIT(&c->dirty);
    TAILQ_INIT(&c->owed);
    c->queue = calloc(QUOTA_QUEUES, sizeof(struct queue *));
    c->freed = malloc(QUOTA_QUEUES * sizeof(*c->freed));
    if (!c->queue || !c->freed) {
        context_fini(c);
        return -ENOMEM;
    }
    return 0;
}

void context_fini(struct context *c)
{
    if (c->kick_fd >= 0 && c->client->own)
        close(c->kick_fd);
    else if (c->kick_fd >= 0)
        foreign_hang_up(c->client->uid, c->kick_fd);
    if (c->async_fd >= 0)
        close(c->async_fd);
    memory_free(c->doorbell_mem);
    async_free(c);
    free(c->queue);
    free(c->freed);
    c->queue = NULL;
    c->freed = NULL;
}

void context_serve(struct context *c)
{
    if (c->served || c->detached)
        return;
    c->served = true;
    c->next_served = c->worker->served;
    c->worker->served = c;
}

void context_unserve(struct context *c)
{
    struct context **p = &c->worker->served;
    while (*p && *p != c)
        p = &(*p)->next_served;
    if (*p)
        *p = c->next_served;
    c->served = false;
}

void context_activate(struct context *c, struct queue *q)
{
    if (q->active)
        return;
    q->active = true;
    TAILQ_INSERT_TAIL(&c->active, q, next);
}

static void context_deactivate(struct context *c, struct queue *q)
{
    if (!q->active)
        return;
    TAILQ_REMOVE(&c->active, q, next);
    q->active = false;
}

/* Take numbers out of the doorbell ring, which may be any numbers that the client wrote there. */
static unsigned context_doorbells(struct context *c, unsigned max)
{
    unsigned n = 0;
    for (; n < max; n++) {
        int64_t number = ipc_doorbell_pop(c->doorbell, QUOTA_QUEUES, &c->doorbell_head);
        if (number < 0)
            break;
        if (number >= c->nqueue) { /* not a queue: harmless */
            c->device->stats.client_bad_doorbell++;
            continue;
        }
        struct queue *q = c->queue[number];
        if (!q) /* destroyed meanwhile */
            continue;
        ipc_ring_attend(&q->ring);
        if (!q->starved)
            context_activate(c, q);
    }
    return n;
}

/* The oldest freed number, if the doorbell ring has been emptied since. */
static bool context_reuse(struct context *c, uint32_t *number)
{
    const struct freed_number *f = &c->freed[c->first_freed % QUOTA_QUEUES];
    if (c->nfreed == 0 || (int32_t)(c->doorbell_head - f->place) < 0)
        return false;
    *number = f->number;
    c->first_freed++;
    c->nfreed--;
    return true;
}

int context_queue_add(struct context *c, struct queue *q)
{
    uint32_t number;
    if (!context_reuse(c, &number)) {
        if (c->nqueue == QUOTA_QUEUES)
            return -EDQUOT;
        number = c->nqueue++;
    }
    q->number = number;
    q->ctx = c;
    c->queue[number] = q;
    context_serve(c);
    return 0;
}

void context_queue_del(struct context *c, struct queue *q)
{
    uint32_t rung = 0; /* numbers in the ring, never more than it holds */
    if (q->ctx != c || c->queue[q->number] != q)
        return;
    if (!c->detached)
        rung = atomic_load_explicit(&c->doorbell->tail, memory_order_relaxed) - c->doorbell_head;
    context_deactivate(c, q);
    c->queue[q->number] = NULL;
    c->freed[(c->first_freed + c->nfreed++) % QUOTA_QUEUES] = (struct freed_number){
        q->number, c->doorbell_head + (rung < QUOTA_QUEUES ? rung : QUOTA_QUEUES)};
}

unsigned context_round(struct context *c, uint64_t now)
{
    unsigned work = context_doorbells(c, ROUND_DOORBELLS);
    for (unsigned i = 0; i < ROUND_QUEUES && !TAILQ_EMPTY(&c->active); i++) {
        struct queue *q = TAILQ_FIRST(&c->active);
        bool more;
        context_deactivate(c, q);
        work += queue_pull(q, now, &more);
        if (more)
            context_activate(c, q);
    }
    context_check(c);
    return work;
}

bool context_ready(const struct context *c)
{
    return !TAILQ_EMPTY(&c->active) ||
           ipc_doorbell_ready(c->doorbell, QUOTA_QUEUES, c->doorbell_head);
}
