/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Receive work requests and shared receive queues. Rules: SRQ-01..SRQ-08, RSP-09, QP-05, QP-12,
 * QP-13, ACK-16.
 */
#include "srq.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine_priv.h"

struct rq_chunk {
    struct rq_chunk *next;
    uint64_t mem[];
};

/* ---- the queue itself ---- */

/* Room for `depth` work requests. 0, -ENOMEM. */
static int rq_grow(struct rq *q, uint32_t depth)
{
    if (depth <= q->depth)
        return 0;
    size_t stride = sizeof(struct rwqe) + q->max_sge * sizeof(struct engine_sge);
    uint32_t n = depth - q->depth;
    struct rq_chunk *c = calloc(1, sizeof(*c) + n * stride);
    if (!c)
        return -ENOMEM;
    c->next = q->chunks;
    q->chunks = c;
    for (uint32_t i = n; i-- > 0;) {
        struct rwqe *w = (struct rwqe *)((char *)c->mem + i * stride);
        w->next = q->free;
        q->free = w;
    }
    q->depth = depth;
    q->nfree += n;
    return 0;
}

int rq_init(struct rq *q, uint32_t depth, uint32_t max_sge)
{
    *q = (struct rq){.max_sge = (uint8_t)max_sge};
    q->tail = &q->head;
    return rq_grow(q, depth);
}

void rq_destroy(struct rq *q)
{
    while (q->chunks) {
        struct rq_chunk *c = q->chunks;
        q->chunks = c->next;
        free(c);
    }
}

/* 0, -EAGAIN no room. */
static int rq_post(struct rq *q, const struct engine_recv_wr *wr)
{
    struct rwqe *w = q->free;
    if (!w)
        return -EAGAIN;
    q->free = w->next;
    q->nfree--;
    w->next = NULL;
    w->wr_id = wr->wr_id;
    w->room = 0;
    w->malformed = wr->nsge > q->max_sge;
    w->nsge = w->malformed ? 0 : wr->nsge;
    for (unsigned i = 0; i < w->nsge; i++) {
        w->sge[i] = wr->sge[i];
        w->room += wr->sge[i].len;
    }
    *q->tail = w;
    q->tail = &w->next;
    q->posted++;
    return 0;
}

struct rwqe *rq_take(struct rq *q)
{
    struct rwqe *w = q->head;
    if (!w)
        return NULL;
    q->head = w->next;
    if (!q->head)
        q->tail = &q->head;
    q->posted--;
    w->next = NULL;
    return w;
}

void rq_give(struct rq *q, struct rwqe *w)
{
    w->next = q->free;
    q->free = w;
    q->nfree++;
}

/* ---- a queue pair's receive work ---- */

static struct rq *rq_of(const struct qp *qp)
{
    return qp->srq ? &qp->srq->rq : qp->resp.rq;
}

uint32_t resp_recv_pd(const struct qp *qp)
{
    return qp->srq ? qp->srq->pd : qp->pd;
}

/* SRQ-03: once, when the posted work falls below the limit. */
static void check_limit(struct engine *e, struct srq *srq)
{
    if (srq->limit == 0 || srq->rq.posted >= srq->limit)
        return;
    srq->limit = 0;
    engine_event(e, EVT_SRQ_LIMIT_REACHED, srq->arg);
}

/* What its owner has queued counts as posted (UC-05, UD-06). */
static bool fetch(const struct engine *e, const struct qp *qp)
{
    return e->p.hooks.recv_wanted &&
           e->p.hooks.recv_wanted(e->p.hook_arg, qp->arg, qp->srq ? qp->srq->arg : NULL);
}

struct rwqe *resp_take(struct engine *e, struct qp *qp)
{
    struct resp *r = &qp->resp;
    if (qp->srq && qp->srq->error)
        return NULL; /* SRQ-07: as an empty one */
    struct rwqe *w = rq_take(rq_of(qp));
    if (!w && fetch(e, qp))
        w = rq_take(rq_of(qp));
    if (!w)
        return NULL;
    *r->taken_tail = w;
    r->taken_tail = &w->next;
    if (qp->srq)
        check_limit(e, qp->srq);
    if (qp->srq && w->malformed) {
        qp->srq->error = true;
        engine_event(e, EVT_SRQ_ERR, qp->srq->arg);
    }
    return w;
}

/* Unlink the oldest taken work request, give it back, and return its wr_id. */
static uint64_t retire(struct qp *qp)
{
    struct resp *r = &qp->resp;
    struct rwqe *w = r->taken;
    uint64_t wr_id = w->wr_id;
    r->taken = w->next;
    if (!r->taken)
        r->taken_tail = &r->taken;
    if (r->wqe == w)
        r->wqe = NULL;
    rq_give(rq_of(qp), w);
    r->rq_head++;
    return wr_id;
}

bool resp_complete(struct engine *e, struct qp *qp, struct engine_wc *wc, uint64_t now)
{
    wc->wr_id = retire(qp);
    if (wc->status != WC_SUCCESS)
        engine_count(e, ENGINE_C_resp_cqe_error);
    if (wc->status == WC_LOC_LEN_ERR)
        engine_count(e, ENGINE_C_resp_local_length_error);
    return cq_push(e, qp, qp->recv_cq, wc, now);
}

void resp_return(struct engine *e, struct qp *qp)
{
    while (qp->srq && qp->resp.taken)
        cq_flush(e, qp, qp->recv_cq, retire(qp), WC_RECV);
}

void resp_flush(struct engine *e, struct qp *qp)
{
    struct resp *r = &qp->resp;
    if (r->flushed)
        return;
    r->flushed = 1;
    while (r->taken)
        cq_flush(e, qp, qp->recv_cq, retire(qp), WC_RECV);
    if (qp->srq) {
        engine_event(e, EVT_QP_LAST_WQE_REACHED, qp->arg); /* SRQ-06 */
        return;
    }
    for (struct rwqe *w; (w = rq_take(r->rq));) {
        uint64_t wr_id = w->wr_id;
        rq_give(r->rq, w);
        r->rq_head++;
        cq_flush(e, qp, qp->recv_cq, wr_id, WC_RECV);
    }
}

uint32_t resp_receives(const struct qp *qp)
{
    const struct resp *r = &qp->resp;
    return r->rq_tail - r->rq_head;
}

/* ACK-16: new receives may end a sender's wait for credits: say so when it matters. */
static void offer_credits(struct engine *e, struct qp *qp)
{
    struct resp *r = &qp->resp;
    if (!qp->credits || qp->state == QPS_ERR || r->fatal)
        return;
    uint32_t told = wire_credits(r->credits);
    if (resp_receives(qp) >= told * 2 + 1) {
        r->ack_owed = 1;
        qp_activate(e, qp);
    }
}

int resp_post(struct engine *e, struct qp *qp, const struct engine_recv_wr *wr)
{
    struct resp *r = &qp->resp;
    if (qp->srq || qp->state == QPS_RESET)
        return -EINVAL;
    if (qp->state == QPS_ERR && r->flushed) { /* QP-13 */
        cq_flush(e, qp, qp->recv_cq, wr->wr_id, WC_RECV);
        return 0;
    }
    int err = rq_post(r->rq, wr);
    if (err)
        return err;
    r->rq_tail++;
    offer_credits(e, qp);
    return 0;
}

uint32_t engine_rq_room(const struct qp *qp)
{
    return qp->srq ? 0 : qp->resp.rq->nfree;
}

/* ---- shared receive queues ---- */

int engine_srq_create(struct engine *e, const struct engine_srq_params *p, struct srq **out)
{
    if (p->max_wr == 0 || p->max_sge > ENGINE_SGE_MAX || p->limit > p->max_wr)
        return -EINVAL;
    if (e->p.max_srq && e->nsrqs >= e->p.max_srq)
        return -ENOSPC;
    struct srq *srq = calloc(1, sizeof(*srq));
    if (!srq)
        return -ENOMEM;
    int err = mem_pd_hold(e->mem, p->pd);
    if (err) {
        free(srq);
        return err;
    }
    srq->arg = p->arg;
    srq->pd = p->pd;
    srq->limit = p->limit;
    err = rq_init(&srq->rq, p->max_wr, p->max_sge ? p->max_sge : 1);
    if (err) {
        mem_pd_drop(e->mem, p->pd);
        free(srq);
        return err;
    }
    srq->next = e->srqs;
    srq->pprev = &e->srqs;
    if (srq->next)
        srq->next->pprev = &srq->next;
    e->srqs = srq;
    e->nsrqs++;
    *out = srq;
    return 0;
}

int engine_srq_modify(struct engine *e, struct srq *srq, uint32_t max_wr, uint32_t limit,
                      unsigned mask)
{
    if (mask & ~(SRQA_MAX_WR | SRQA_LIMIT))
        return -EINVAL;
    uint32_t depth = mask & SRQA_MAX_WR ? max_wr : srq->rq.depth;
    if ((mask & SRQA_MAX_WR && depth < srq->rq.depth - srq->rq.nfree) ||
        (mask & SRQA_LIMIT && limit > depth))
        return -EINVAL;
    int err = rq_grow(&srq->rq, depth);
    if (err)
        return err;
    if (mask & SRQA_LIMIT) {
        srq->limit = limit;
        check_limit(e, srq);
    }
    return 0;
}

int engine_srq_query(const struct srq *srq, struct engine_srq_params *out)
{
    *out = (struct engine_srq_params){
        .arg = srq->arg,
        .pd = srq->pd,
        .max_wr = srq->rq.depth,
        .max_sge = srq->rq.max_sge,
        .limit = srq->limit,
    };
    return 0;
}

int engine_srq_destroy(struct engine *e, struct srq *srq)
{
    if (srq->users)
        return -EBUSY;
    rq_destroy(&srq->rq);
    mem_pd_drop(e->mem, srq->pd);
    *srq->pprev = srq->next;
    if (srq->next)
        srq->next->pprev = srq->pprev;
    free(srq);
    e->nsrqs--;
    return 0;
}

int engine_post_srq_recv(struct engine *e, struct srq *srq, const struct engine_recv_wr *wr)
{
    (void)e;
    return srq->error ? -EINVAL : rq_post(&srq->rq, wr);
}

uint32_t engine_srq_room(const struct srq *srq)
{
    return srq->rq.nfree;
}
