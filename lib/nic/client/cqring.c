/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Completions go from the engine straight into the client's ring. The client's wish for an event is
 * read once per burst and CQ, after one fence. Events go through a socket that never blocks; an
 * event that doesn't fit is owed and sent later, so a client that doesn't read hurts only itself.
 */
#include "cqring.h"

#include <errno.h>
#include <sys/socket.h>

#include "clock.h"
#include "context.h"
#include "device.h"
#include "quota.h"
#include "worker.h"

/* How long an event waits for a count of completions when no period was given (verbs' longest). */
#define CQRING_PERIOD_MAX (65535 * CLOCK_US)

/* Wake an armed client. */
static void cqring_mark(struct client_cq *cq, bool solicited)
{
    if (solicited)
        cq->solicited = true;
    if (!cq->dirty) {
        cq->dirty = true;
        LIST_INSERT_HEAD(&cq->ctx->dirty, cq, next_dirty);
    }
}

/* Show the completions of this round to the application. */
static void show(struct client_cq *cq)
{
    ipc_cq_show(&cq->view, cq->shown);
    cq->shown = cq->view.index;
    atomic_store_explicit(&cq->view.ring->prod, cq->view.index, memory_order_relaxed);
}

bool cqring_push(void *arg, void *cq_arg, const struct engine_wc *wc)
{
    struct client_cq *cq = cq_arg;
    struct client_qp *qp = (struct client_qp *)(uintptr_t)wc->qp_arg;
    struct client_srq *srq = (struct client_srq *)(uintptr_t)wc->srq_arg; /* of XRC */
    if (__builtin_expect(wc->status == WC_WR_FLUSH_ERR, 0) && qp && qp->going &&
        !((qp->srq || srq) && wc->opcode >= WC_RECV))
        return true; /* except completions that return a place to the shared queue */
    struct ipc_cqe cqe = {
        .cookie = wc->wr_id,
        .qp_ref = qp ? qp->ref : 0,
        .qpn = wc->qpn,
        .src_qpn = wc->src_qpn,
        .byte_len = wc->byte_len,
        .imm = wc->imm,
        .wc_flags = wc->wc_flags,
        .status = (uint8_t)wc->status,
        .opcode = (uint8_t)wc->opcode,
        .kind = wc->opcode >= WC_RECV ? IPC_CQE_RECV : IPC_CQE_SEND,
        .sl = wc->sl,
        .pkey_index = wc->pkey_index,
        .vendor_err = wc->vendor_err,
        .srq_ref = srq ? srq->ref : 0,
        .timestamp = cq->ctx->worker->now,
    };

    (void)arg;
    if (!(cq->ctx->late ? ipc_cq_stage(&cq->view, &cqe) : ipc_cq_push(&cq->view, &cqe))) {
        if (cq->ctx->late)
            show(cq); /* a poller that sees the error takes the shown ones for the last */
        atomic_store_explicit(&cq->view.ring->error, 1, memory_order_release);
        cqring_mark(cq, true); /* or a waiting client waits for ever */
        return false;
    }
    if (!cq->ctx->late)
        atomic_store_explicit(&cq->view.ring->prod, cq->view.index, memory_order_relaxed);
    cqring_mark(cq, wc->solicited || wc->status != WC_SUCCESS);
    cq->ctx->news = true;
    /* A receive has left the engine: entries that waited for room can follow. */
    if (qp && cqe.kind == IPC_CQE_RECV) {
        struct queue *q = srq ? &srq->rq : qp->srq ? &qp->srq->rq : &qp->rq;
        if (q->starved)
            context_activate(cq->ctx, q);
    }
    return true;
}

/* One event into the channel. False: no room now. */
static bool cqring_event(const struct client_cq *cq)
{
    const struct ipc_comp_event ev = {.ref = cq->ref};
    return send(cq->channel->fd, &ev, sizeof(ev), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0 ||
           (errno != EAGAIN && errno != EWOULDBLOCK && errno != ENOBUFS);
}

/* CQ-10: completions are in the ring already, only the event may wait. */
static bool cqring_delayed(struct client_cq *cq, uint64_t now)
{
    if (cq->mod_period == 0)
        return false;
    if (cq->due == 0)
        cq->due = now + cq->mod_period;
    bool enough = cq->mod_count > 0 && cq->view.index - cq->told >= cq->mod_count;
    return !enough && now < cq->due;
}

/* Send the event if one is armed and due. False: moderation delays it. */
static bool notify(struct client_cq *cq, uint64_t now)
{
    bool solicited = cq->solicited;
    if (cq->channel && cqring_delayed(cq, now))
        return false;
    cq->told = cq->view.index;
    cq->due = 0;
    cq->dirty = false;
    cq->solicited = false;
    if (!cq->channel || !ipc_cq_notify(&cq->view, solicited) || cq->owed)
        return true;
    if (!cqring_event(cq)) {
        cq->owed = true;
        cq->ctx->device->stats.client_event_owed++;
        TAILQ_INSERT_TAIL(&cq->ctx->owed, cq, next_owed);
    }
    return true;
}

void cqring_show(struct context *c)
{
    struct client_cq *cq;
    LIST_FOREACH(cq, &c->dirty, next_dirty)
    {
        show(cq);
    }
}

void cqring_moderate(struct client_cq *cq, uint32_t count, uint32_t period_us)
{
    bool off = count <= 1 && period_us == 0;
    cq->mod_count = count;
    cq->mod_period = off ? 0 : period_us ? period_us * CLOCK_US : CQRING_PERIOD_MAX;
    cq->due = 0;
}

void cqring_forget(struct client_cq *cq)
{
    if (cq->dirty)
        LIST_REMOVE(cq, next_dirty);
    if (cq->owed)
        TAILQ_REMOVE(&cq->ctx->owed, cq, next_owed);
    cq->dirty = cq->owed = false;
}

void cqring_notify(struct context *c, uint64_t now)
{
    for (struct client_cq *cq = LIST_FIRST(&c->dirty), *next; cq; cq = next) {
        next = LIST_NEXT(cq, next_dirty);
        if (notify(cq, now))
            LIST_REMOVE(cq, next_dirty);
    }
}

uint64_t cqring_deadline(const struct context *c)
{
    uint64_t at = UINT64_MAX;
    for (const struct client_cq *cq = LIST_FIRST(&c->dirty); cq; cq = LIST_NEXT(cq, next_dirty)) {
        if (cq->due != 0 && cq->due < at)
            at = cq->due;
    }
    return at;
}

void cqring_owed(struct context *c)
{
    const struct client_cq *failed = NULL; /* the first failed one, which is last in the list now */
    struct client_cq *cq;
    for (unsigned i = 0; i < ROUND_OWED && (cq = TAILQ_FIRST(&c->owed)) && cq != failed; i++) {
        TAILQ_REMOVE(&c->owed, cq, next_owed);
        if (cqring_event(cq)) {
            cq->owed = false;
            continue;
        }
        TAILQ_INSERT_TAIL(&c->owed, cq, next_owed);
        failed = failed ? failed : cq;
    }
}
