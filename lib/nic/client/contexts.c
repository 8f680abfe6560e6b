/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See contexts.h. On the worker.
 */
#include "contexts.h"

#include "async.h"
#include "context.h"
#include "cqring.h"
#include "device.h"
#include "queue.h"
#include "round.h"
#include "worker.h"

/* ---- of a worker: the contexts that may have work for it ---- */

static unsigned contexts_round(struct worker *w, uint64_t now)
{
    unsigned posted = 0;
    for (struct context *c = w->served; c; c = c->next_served)
        posted += context_round(c, now);
    return posted;
}

static void contexts_doorbells(struct worker *w, uint64_t now)
{
    for (struct context *c = w->served; c; c = c->next_served) {
        if (context_ready(c))
            context_round(c, now);
    }
}

static bool contexts_ready(const struct worker *w)
{
    for (const struct context *c = w->served; c; c = c->next_served) {
        if (context_ready(c))
            return true;
    }
    return false;
}

static bool contexts_news(struct worker *w)
{
    bool news = false;
    for (struct context *c = w->served; c; c = c->next_served) {
        news |= c->news;
        c->news = false;
    }
    return news;
}

static void contexts_notify(struct worker *w, uint64_t now)
{
    for (struct context *c = w->served; c; c = c->next_served) {
        if (LIST_EMPTY(&c->dirty))
            continue;
        /* A program that polls and exits takes its engine with it: completions that it sees are
         * acknowledged already. */
        if (c->late && !w->settled)
            continue;
        if (c->late)
            cqring_show(c);
        cqring_notify(c, now);
    }
}

static uint64_t contexts_deadline(const struct worker *w)
{
    uint64_t at = UINT64_MAX;
    for (const struct context *c = w->served; c; c = c->next_served) {
        uint64_t event = LIST_EMPTY(&c->dirty) ? UINT64_MAX : cqring_deadline(c);
        if (event < at)
            at = event;
    }
    return at;
}

static void contexts_service(struct worker *w)
{
    for (struct context *c = w->served; c; c = c->next_served) {
        if (!TAILQ_EMPTY(&c->owed))
            cqring_owed(c);
        if (c->nkept > 0)
            async_service(c);
    }
}

static bool contexts_owe(const struct worker *w)
{
    for (const struct context *c = w->served; c; c = c->next_served) {
        if (!TAILQ_EMPTY(&c->owed) || c->nkept > 0)
            return true;
    }
    return false;
}

/* ---- of a device ---- */

static void contexts_event(struct device *d, unsigned event)
{
    for (struct context *c = d->worker->contexts; c; c = c->next) {
        if (c->device == d)
            async_event(c, event, 1);
    }
}

static unsigned contexts_count(const struct device *d)
{
    unsigned n = 0;
    for (const struct context *c = d->worker->contexts; c; c = c->next)
        n += c->device == d;
    return n;
}

/* ---- hooks of the engine ---- */

static void contexts_object_event(void *device, enum ib_event ev, void *obj)
{
    (void)device;
    switch (ev) {
    case EVT_CQ_ERR: {
        struct client_cq *cq = obj;
        async_event(cq->ctx, ev, cq->ref);
        break;
    }
    case EVT_SRQ_ERR:
    case EVT_SRQ_LIMIT_REACHED: {
        struct client_srq *srq = obj;
        async_event(srq->rq.ctx, ev, srq->ref);
        break;
    }
    default: {
        struct client_qp *qp = obj;
        if (qp)
            async_event(qp->ctx, ev, qp->ref);
        break;
    }
    }
}

static void contexts_sq_room(void *device, void *qp_arg)
{
    struct client_qp *qp = qp_arg;
    (void)device;
    if (qp && qp->sq.starved)
        context_activate(qp->ctx, &qp->sq);
}

static bool contexts_helped(void *queue)
{
    return queue_recv_wanted(queue);
}

/* An application that has used up its receives, and shares the worker's core, may just not have had
 * a turn since: an RNR NAK would cost both sides far more than that turn. */
static bool contexts_recv_wanted(void *device, void *qp_arg, void *srq_arg)
{
    const struct device *d = device;
    struct client_qp *qp = qp_arg;
    struct client_srq *srq = srq_arg;
    struct queue *q = srq ? &srq->rq : qp ? &qp->rq : NULL;
    return q && (queue_recv_wanted(q) || worker_let_in(d->worker, contexts_helped, q));
}

const struct context_ops context_ops = {
    .round = contexts_round,
    .doorbells = contexts_doorbells,
    .ready = contexts_ready,
    .news = contexts_news,
    .notify = contexts_notify,
    .deadline = contexts_deadline,
    .service = contexts_service,
    .owes = contexts_owe,
    .event = contexts_event,
    .count = contexts_count,
    .cq_push = cqring_push,
    .object_event = contexts_object_event,
    .sq_room = contexts_sq_room,
    .recv_wanted = contexts_recv_wanted,
};
