/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Doorbells in, active queues served in turn, each for a bounded number of entries (SHM-08).
 */
#include "context.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "device.h"
#include "limits.h"
#include "worker.h"

int context_init(struct context *c, struct device *d, struct client *client)
{
    *c = (struct context){.device = d, .client = client, .kick_fd = -1, .async_fd = -1};
    c->active_tail = &c->active;
    c->queue = calloc(QUOTA_QUEUES, sizeof(struct queue *));
    c->free_number = malloc(QUOTA_QUEUES * sizeof(uint32_t));
    if (!c->queue || !c->free_number) {
        context_fini(c);
        return -ENOMEM;
    }
    return 0;
}

void context_fini(struct context *c)
{
    if (c->kick_fd >= 0)
        close(c->kick_fd);
    if (c->async_fd >= 0)
        close(c->async_fd);
    memory_free(c->doorbell_mem);
    free(c->queue);
    free(c->free_number);
    c->queue = NULL;
    c->free_number = NULL;
}

int context_queue_add(struct context *c, struct queue *q)
{
    uint32_t number;

    if (c->nfree > 0)
        number = c->free_number[--c->nfree];
    else if (c->nqueue < QUOTA_QUEUES)
        number = c->nqueue++;
    else
        return -EDQUOT;
    q->number = number;
    q->ctx = c;
    c->queue[number] = q;
    return 0;
}

void context_activate(struct context *c, struct queue *q)
{
    if (q->active)
        return;
    q->active = true;
    q->next = NULL;
    *c->active_tail = q;
    c->active_tail = &q->next;
}

static void context_deactivate(struct context *c, struct queue *q)
{
    struct queue **p = &c->active;

    if (!q->active)
        return;
    while (*p != q)
        p = &(*p)->next;
    *p = q->next;
    if (c->active_tail == &q->next)
        c->active_tail = p;
    q->active = false;
}

/* Take numbers out of the doorbell ring, whatever the client wrote there. */
static unsigned context_doorbells(struct context *c, unsigned max)
{
    unsigned n = 0;

    for (; n < max; n++) {
        int64_t number = ipc_doorbell_pop(c->doorbell, QUOTA_QUEUES, &c->doorbell_head);
        if (number < 0)
            break;
        if (number >= c->nqueue || !c->queue[number]) { /* not a queue: harms nobody */
            c->device->stats.client_bad_doorbell++;
            continue;
        }
        struct queue *q = c->queue[number];
        ipc_ring_attend(&q->ring);
        if (!q->starved)
            context_activate(c, q);
    }
    return n;
}

void context_queue_del(struct context *c, struct queue *q)
{
    if (q->ctx != c || c->queue[q->number] != q)
        return;
    /* The number must not be in the ring when its next owner gets it. Bounded: a client that goes
     * on pushing can only ring its own queues. */
    if (!c->detached)
        context_doorbells(c, QUOTA_QUEUES);
    context_deactivate(c, q);
    c->queue[q->number] = NULL;
    c->free_number[c->nfree++] = q->number;
}

unsigned context_round(struct context *c, uint64_t now)
{
    unsigned work = context_doorbells(c, ROUND_DOORBELLS);

    for (unsigned i = 0; i < ROUND_QUEUES && c->active; i++) {
        struct queue *q = c->active;
        bool more;
        c->active = q->next;
        if (!c->active)
            c->active_tail = &c->active;
        q->active = false;
        work += queue_pull(q, now, &more);
        if (more)
            context_activate(c, q);
    }
    return work;
}

bool context_ready(const struct context *c)
{
    return c->active || ipc_doorbell_ready(c->doorbell, QUOTA_QUEUES, c->doorbell_head);
}

void context_event(struct context *c, unsigned event, uint32_t ref)
{
    struct ipc_async ev = {.event = event, .ref = ref, .flags = c->async_lost ? 1 : 0};

    if (send(c->async_fd, &ev, sizeof(ev), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) {
        c->async_lost = false;
        return;
    }
    c->async_lost = true;
    c->async_dropped++;
}
