/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Receive work requests and shared receive queues. Rules: SRQ-01..SRQ-08, XRC-02, RSP-09, QP-05,
 * QP-12, QP-13, ACK-16.
 */
#include "srq.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cq.h"
#include "engine_priv.h"
#include "schedule.h"

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

/* 0; -EAGAIN: no room. */
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
    w->srq = NULL;
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

/* The shared queue from which a message takes its receive, NULL = the queue pair's own. */
static struct srq *srq_of(const struct qp *qp)
{
    return qp->xrc ? qp->xsrq : qp->srq;
}

/* The queue that a taken work request goes back to. */
static struct rq *home(const struct qp *qp, const struct rwqe *w)
{
    return w->srq ? &w->srq->rq : qp->srq ? &qp->srq->rq : qp->resp.rq;
}

uint32_t resp_recv_pd(const struct qp *qp)
{
    const struct srq *srq = srq_of(qp);
    return srq ? srq->pd : qp->pd;
}

uint32_t resp_pd(const struct qp *qp)
{
    return qp->xrc ? qp->xsrq->pd : qp->pd;
}

/* SRQ-03: once, when the posted work falls below the limit. */
static void check_limit(struct engine *e, struct srq *srq)
{
    if (srq->limit == 0 || srq->rq.posted >= srq->limit)
        return;
    srq->limit = 0;
    engine_event(e, EVT_SRQ_LIMIT_REACHED, srq->arg);
}

/* Receives that the owner has queued count as posted (UC-05, UD-06). */
static bool fetch(const struct engine *e, const struct qp *qp, const struct srq *srq)
{
    return e->p.hooks.recv_wanted &&
           e->p.hooks.recv_wanted(e->p.hook_arg, qp->arg, srq ? srq->arg : NULL);
}

struct rwqe *resp_take(struct engine *e, struct qp *qp)
{
    struct resp *r = &qp->resp;
    struct srq *srq = srq_of(qp);
    struct rq *q = srq ? &srq->rq : r->rq;
    if (srq && srq->error)
        return NULL; /* SRQ-07: as an empty one */
    struct rwqe *w = rq_take(q);
    if (!w && fetch(e, qp, srq))
        w = rq_take(q);
    if (!w)
        return NULL;
    *r->taken_tail = w;
    r->taken_tail = &w->next;
    if (qp->xrc && srq) { /* the next message may name another queue */
        w->srq = srq;
        srq->users++;
    }
    if (srq)
        check_limit(e, srq);
    if (srq && w->malformed) {
        srq->error = true;
        engine_event(e, EVT_SRQ_ERR, srq->arg);
    }
    return w;
}

static void give_back(const struct qp *qp, struct rwqe *w)
{
    if (w->srq)
        w->srq->users--;
    rq_give(home(qp, w), w);
}

void resp_drop_taken(struct qp *qp)
{
    struct resp *r = &qp->resp;
    while (r->taken) {
        struct rwqe *w = r->taken;
        r->taken = w->next;
        give_back(qp, w);
    }
    r->taken_tail = &r->taken;
    r->wqe = NULL;
}

/* Give the oldest taken work request back, and return its wr_id. */
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
    give_back(qp, w);
    r->rq_head++;
    return wr_id;
}

/* The oldest taken one completes in the CQ of its queue. */
static bool push_taken(struct engine *e, struct qp *qp, struct engine_wc *wc)
{
    const struct srq *srq = qp->resp.taken->srq;
    struct cq *cq = srq ? srq->cq : qp->recv_cq;
    wc->srq_arg = srq ? (uint64_t)(uintptr_t)srq->arg : 0;
    wc->wr_id = retire(qp);
    return cq_push(e, qp, cq, wc);
}

static void flush_taken(struct engine *e, struct qp *qp)
{
    while (qp->resp.taken) {
        struct engine_wc wc = {.status = WC_WR_FLUSH_ERR, .opcode = WC_RECV};
        engine_count(e, ENGINE_C_resp_cqe_flush_error);
        push_taken(e, qp, &wc);
    }
}

bool resp_complete(struct engine *e, struct qp *qp, struct engine_wc *wc)
{
    if (wc->status != WC_SUCCESS)
        engine_count(e, ENGINE_C_resp_cqe_error);
    if (wc->status == WC_LOC_LEN_ERR)
        engine_count(e, ENGINE_C_resp_local_length_error);
    return push_taken(e, qp, wc);
}

void resp_return(struct engine *e, struct qp *qp)
{
    if (qp->srq || qp->xrc)
        flush_taken(e, qp);
}

void resp_flush(struct engine *e, struct qp *qp)
{
    struct resp *r = &qp->resp;
    if (r->flushed)
        return;
    r->flushed = 1;
    flush_taken(e, qp);
    if (qp->xrc) /* SRQ-06 doesn't apply: other queue pairs may use its queues */
        return;
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

/* ACK-16: new receives may end a sender's wait for credits: report them when it matters. */
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
    if (qp->srq || qp->xrc || qp->state == QPS_RESET)
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

/* XRC-02: shared queues of XRC by number: the low bits are the place. */
static struct srq **place_of(const struct engine *e, uint32_t number)
{
    return &e->xrc_srqs[number & (e->xrc_size - 1)];
}

struct srq *srq_named(struct engine *e, const struct qp *qp, uint32_t number)
{
    struct srq *srq = e->xrc_size ? *place_of(e, number) : NULL;
    return srq && srq->number == number && srq->xrcd == qp->pd ? srq : NULL;
}

/* Twice as many places; all numbers keep theirs apart. 0, -ENOMEM. */
static int more_places(struct engine *e)
{
    uint32_t size = e->xrc_size ? e->xrc_size * 2 : 16;
    struct srq **old = e->xrc_srqs;
    struct srq **places = size <= WIRE_QPN_MASK ? calloc(size, sizeof(struct srq *)) : NULL;
    if (!places)
        return -ENOMEM;
    e->xrc_srqs = places;
    uint32_t n = e->xrc_size;
    e->xrc_size = size;
    for (uint32_t i = 0; i < n; i++)
        if (old[i])
            *place_of(e, old[i]->number) = old[i];
    free(old);
    return 0;
}

/* Take the next free number in the circle of all: a number comes back as late as possible. 0,
 * -ENOMEM. */
static int take_srq_number(struct engine *e, struct srq *srq)
{
    if (e->nxrc_srqs == e->xrc_size / 2) {
        int err = more_places(e);
        if (err)
            return err;
    }
    do {
        e->xrc_last = (e->xrc_last + 1) & WIRE_QPN_MASK;
    } while (!e->xrc_last || *place_of(e, e->xrc_last));
    srq->number = e->xrc_last;
    *place_of(e, srq->number) = srq;
    e->nxrc_srqs++;
    return 0;
}

/* Make it an XRC queue: join the domain. 0, -EINVAL, -ENOMEM. */
static int join_domain(struct engine *e, struct srq *srq, const struct engine_srq_params *p)
{
    int err = mem_pd_hold(e->mem, p->xrcd);
    if (err)
        return err;
    err = take_srq_number(e, srq);
    if (err) {
        mem_pd_drop(e->mem, p->xrcd);
        return err;
    }
    srq->xrcd = p->xrcd;
    srq->cq = p->cq;
    srq->cq->users++;
    return 0;
}

static void leave_domain(struct engine *e, struct srq *srq)
{
    if (!srq->number)
        return;
    *place_of(e, srq->number) = NULL;
    e->nxrc_srqs--;
    srq->cq->users--;
    mem_pd_drop(e->mem, srq->xrcd);
}

uint32_t engine_srq_num(const struct srq *srq)
{
    return srq->number;
}

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
    if (!err && p->cq)
        err = join_domain(e, srq, p);
    if (err) {
        rq_destroy(&srq->rq);
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
        .cq = srq->cq,
        .xrcd = srq->xrcd,
    };
    return 0;
}

int engine_srq_destroy(struct engine *e, struct srq *srq)
{
    if (srq->users)
        return -EBUSY;
    leave_domain(e, srq);
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
    invariant_begin(e);
    int err = srq->error ? -EINVAL : rq_post(&srq->rq, wr);
    invariant_end(e, "post shared receive");
    return err;
}

uint32_t engine_srq_room(const struct srq *srq)
{
    return srq->rq.nfree;
}
