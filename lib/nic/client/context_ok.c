/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See context_ok.h.
 */
#include "context_ok.h"

#include <stdio.h>
#include <stdlib.h>

#include "device.h"
#include "quota.h"

#define LOOK 64u /* entries of a list, queues of a context: in one look */

#define HOLDS(cond, name, ...)                                                                     \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            int at_ = snprintf(text, size, "invariant %s: ", name);                                \
            snprintf(text + at_, size - (size_t)at_, __VA_ARGS__);                                 \
            return false;                                                                          \
        }                                                                                          \
    } while (0)

/* The engine's room for this queue; 0 if the queue is dead. */
static uint32_t room(const struct queue *q)
{
    struct engine_qp_attr attr;
    if (q->kind == QUEUE_SHARED)
        return engine_srq_room(q->srq->srq);
    engine_qp_query(q->qp->qp, &attr, NULL);
    if (attr.state == QPS_ERR || attr.state == QPS_RESET)
        return 0;
    return q->kind == QUEUE_SEND ? engine_sq_room(q->qp->qp) : engine_rq_room(q->qp->qp);
}

static bool queue_ok(const struct context *c, uint32_t number, char *text, size_t size)
{
    const struct queue *q = c->queue[number];
    if (!q)
        return true;
    HOLDS(q->number == number && q->ctx == c, "queue-number", "place %u has queue %u", number,
          q->number);
    HOLDS(ipc_ring_ok(&q->ring), "ring-view", "queue %u: %u entries of %u octets", number,
          q->ring.entries, q->ring.stride);
    /* Queues that wait for room are resumed when there is some. */
    HOLDS(!q->starved || q->active || q->dead || room(q) == 0, "queue-forgotten",
          "queue %u of kind %d waits, and %u entries fit", number, (int)q->kind, room(q));
    return true;
}

static bool lists_ok(const struct context *c, char *text, size_t size)
{
    const struct queue *q;
    const struct client_cq *cq;
    unsigned n = 0;
    TAILQ_FOREACH(q, &c->active, next)
    {
        if (n++ == LOOK)
            break;
        HOLDS(q->active && q->ctx == c && q->number < c->nqueue && c->queue[q->number] == q,
              "active-queues", "place %u: queue %u, active %d", n - 1, q->number, q->active);
    }
    n = 0;
    LIST_FOREACH(cq, &c->dirty, next_dirty)
    {
        if (n++ == LOOK)
            break;
        HOLDS(cq->dirty && cq->ctx == c, "news-of-cqs", "place %u: %d", n - 1, cq->dirty);
        HOLDS(ipc_cq_view_ok(&cq->view), "ring-view", "completions: %u entries", cq->view.entries);
    }
    n = 0;
    TAILQ_FOREACH(cq, &c->owed, next_owed)
    {
        if (n++ == LOOK)
            break;
        HOLDS(cq->owed && cq->channel && cq->ctx == c, "events-owed", "place %u: %d, channel %d",
              n - 1, cq->owed, cq->channel != NULL);
    }
    return true;
}

bool context_ok(const struct context *c, uint32_t from, uint32_t n, char *text, size_t size)
{
    HOLDS(c->nqueue <= QUOTA_QUEUES && c->nfreed <= c->nqueue, "queue-numbers",
          "%u used, %u of them free", c->nqueue, c->nfreed);
    for (uint32_t i = 0; i < n && i < c->nqueue; i++)
        if (!queue_ok(c, (from + i) % c->nqueue, text, size))
            return false;
    for (uint32_t i = 0; i < n && i < c->nfreed; i++) {
        uint32_t number = c->freed[(c->first_freed + i) % QUOTA_QUEUES].number;
        HOLDS(number < c->nqueue && !c->queue[number], "queue-freed", "number %u is in use",
              number);
    }
    return lists_ok(c, text, size);
}

#ifdef URNIC_INVARIANTS
void context_check(struct context *c)
{
    char text[256];
    if (!context_ok(c, c->looked, LOOK, text, sizeof(text))) {
        fprintf(stderr, "urnic: after a round: %s\n", text);
        abort();
    }
    c->looked = c->nqueue ? (c->looked + LOOK) % c->nqueue : 0;
}
#endif
