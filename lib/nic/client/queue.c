/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Turning entries of a client's queue into work requests. Each is copied once into private memory,
 * checked there and posted (SHM-01, SHM-03). An entry for which the engine has no room stays in the
 * ring: its index is put back, and the queue waits for room.
 */
#include "queue.h"

#include <errno.h>
#include <string.h>

#include "async.h"
#include "client.h"
#include "client_qp.h"
#include "clock.h"
#include "context.h"
#include "device.h"
#include "log.h"
#include "neigh.h"
#include "quota.h"

#define QUEUE_WAIT_NS (10 * CLOCK_SEC) /* longer than a neighbour is asked for */

/* The client's index or an entry's size is wrong: that queue pair ends (SHM-02). */
static void queue_kill(struct queue *q, uint64_t now)
{
    struct context *c = q->ctx;
    q->dead = true;
    c->device->stats.client_bad_index++;
    if (q->kind == QUEUE_SHARED) {
        async_event(c, EVT_SRQ_ERR, q->srq->ref);
        return;
    }
    struct engine_qp_attr attr = {.state = QPS_ERR};
    engine_qp_modify(c->device->engine, q->qp->qp, &attr, QPA_STATE, now);
    async_event(c, EVT_QP_FATAL, q->qp->ref);
    log_debug("client", "qp %06x: the index of its %s queue is not possible: to ERR", q->qp->qpn,
              q->kind == QUEUE_SEND ? "send" : "receive");
}

/* ---- datagrams to neighbours that aren't known yet ---- */

static void queue_resolved(struct neigh_waiter *w, int status, const uint8_t mac[6], uint64_t now)
{
    struct queue *q = (struct queue *)(void *)((char *)w - offsetof(struct queue, waiter));
    (void)mac; /* the next look-up tells it */
    (void)now;
    q->waits = false;
    q->unreachable = status < 0;
    context_activate(q->ctx, q);
}

static void queue_wait(struct queue *q, const struct engine_av *av, uint64_t now)
{
    if (q->waits)
        return;
    q->waits = true;
    q->waiter = (struct neigh_waiter){
        .dst = av->dgid, .share = q->ctx->client->of_device, .done = queue_resolved};
    if (neigh_wait(q->ctx->device->neigh, &q->waiter, QUEUE_WAIT_NS, now) < 0)
        queue_resolved(&q->waiter, -EDQUOT, NULL, now); /* lost, as one to a silent neighbour */
}

void queue_unwait(struct queue *q)
{
    if (q->waits)
        neigh_cancel(q->ctx->device->neigh, &q->waiter);
    q->waits = q->unreachable = false;
}

/* ---- send ---- */

/* A client's address vector. It names a local address by index, so only valid ones can be named
 * (SEC-26). -EINVAL: no such address; -EAGAIN: the neighbour is being resolved. A neighbour that
 * doesn't answer, or can't be reached at all, has no MAC: the datagram is lost, as any other may
 * be. */
static int queue_av(const struct context *c, const struct ipc_av *in, struct engine_av *out,
                    uint64_t now)
{
    static const uint8_t none[6];
    struct device *d = c->device;
    if (av_from_ipc(d, in, out) < 0)
        return -EINVAL;
    if (memcmp(in->dmac, none, 6) != 0)
        return 0;
    int rc = neigh_lookup(d->neigh, c->client->of_device, &out->dgid, out->dmac, now);
    if (rc < 0)
        memset(out->dmac, 0, sizeof(out->dmac));
    return rc == -EAGAIN ? rc : 0;
}

/* The segments of REG_MR are places in the memory of its region. lib/mem finds the object and
 * checks that they lie in it. */
static void queue_segs(const struct ipc_send *s, struct engine_send_wr *wr,
                       struct mem_seg segs[IPC_SGE_MAX])
{
    for (unsigned i = 0; i < s->wr.nsge; i++)
        segs[i] = (struct mem_seg){.off = s->sge[i].va, .len = s->sge[i].len};
    wr->segs = segs;
    wr->nsegs = s->wr.nsge;
    wr->nsge = 0;
    wr->mw_new_rkey = s->reg.key;
    wr->mw_access = s->reg.access;
    wr->mw_va = s->reg.va;
    wr->mw_len = s->reg.len;
}

/* Opcodes have the same numbers on both sides; anything else completes with an error. segs:
 * room that the request may need until it is posted. 0, or -EAGAIN: its destination isn't known
 * yet. */
static int queue_send_wr(const struct client_qp *qp, const struct ipc_send *s,
                         struct engine_send_wr *wr, struct mem_seg segs[IPC_SGE_MAX], uint64_t now)
{
    int rc = 0;
    memset(wr, 0, offsetof(struct engine_send_wr, av));
    wr->wr_id = s->wr.cookie;
    wr->opcode = s->wr.opcode;
    wr->flags = s->wr.flags;
    wr->nsge = s->wr.nsge;
    wr->inline_len = s->wr.inline_len;
    wr->imm = s->wr.imm;
    wr->rkey = s->wr.rkey;
    wr->remote_va = s->wr.remote_va;
    wr->sge = (const struct engine_sge *)s->sge;
    wr->inline_data = s->inline_data;
    wr->pkey_index = s->wr.pkey_index;
    if (qp->type == QP_XRC_INI && s->wr.opcode != IPC_WR_MALFORMED) {
        wr->xrc_srqn = s->xrc.srqn;
        if (wr->xrc_srqn > WIRE_QPN_MASK)
            wr->opcode = WR_OPCODE_MAX;
    }
    if (qp->type == QP_UD && s->wr.opcode != IPC_WR_MALFORMED) {
        wr->rqpn = s->ud.qpn;
        wr->rqkey = s->ud.qkey;
        rc = queue_av(qp->ctx, &s->ud.av, &wr->av, now);
        if (rc == -EINVAL || wr->rqpn > WIRE_QPN_MASK)
            wr->opcode = WR_OPCODE_MAX;
    } else if (s->wr.opcode == WR_ATOMIC_CMP_AND_SWP || s->wr.opcode == WR_ATOMIC_FETCH_AND_ADD ||
               s->wr.opcode == WR_FLUSH) {
        wr->compare_add = s->atomic.compare_add;
        wr->swap = s->atomic.swap;
    } else if (s->wr.opcode == WR_BIND_MW) {
        wr->mw_rkey = s->bind.mw_rkey;
        wr->mw_new_rkey = s->bind.new_rkey;
        wr->mw_lkey = s->bind.mr_lkey;
        wr->mw_va = s->bind.va;
        wr->mw_len = s->bind.len;
        wr->mw_access = s->bind.access;
    } else if (s->wr.opcode == WR_REG_MR) {
        queue_segs(s, wr, segs);
    }
    return rc == -EAGAIN ? rc : 0;
}

_Static_assert(sizeof(struct ipc_sge) == sizeof(struct engine_sge), "SGEs are passed on in place");
_Static_assert(offsetof(struct ipc_sge, lkey) == offsetof(struct engine_sge, lkey), "same layout");

/* 1: posted; 0: empty; -EAGAIN: no room (entry put back); -EPROTO: a wrong index or size. */
static int queue_send_one(struct queue *q, uint64_t now)
{
    struct ipc_send s;
    struct engine_send_wr wr;
    struct mem_seg segs[IPC_SGE_MAX];
    uint32_t index = q->ring.index;
    int rc = ipc_sq_fetch(&q->ring, &s);
    if (rc <= 0)
        return rc;
    if (queue_send_wr(q->qp, &s, &wr, segs, now) == -EAGAIN && !q->unreachable) {
        q->ring.index = index;
        queue_wait(q, &wr.av, now);
        return 0;
    }
    q->unreachable = false;
    rc = engine_post_send(q->ctx->device->engine, q->qp->qp, &wr, now);
    if (rc == -EAGAIN) {
        q->ring.index = index;
        return rc;
    }
    return 1; /* -EINVAL: the state takes no work (QP-05); the client's library refuses that too */
}

static int queue_recv_one(struct queue *q)
{
    struct engine *e = q->ctx->device->engine;
    struct ipc_recv_entry entry;
    uint32_t index = q->ring.index;
    int rc = ipc_rq_fetch(&q->ring, &entry);
    if (rc <= 0)
        return rc;
    struct engine_recv_wr wr = {
        .wr_id = entry.cookie,
        /* more than any limit: completes with an error when its turn comes (RSP-13) */
        .nsge = entry.nsge > ENGINE_SGE_MAX ? UINT8_MAX : (uint8_t)entry.nsge,
        .sge = (const struct engine_sge *)entry.sge,
    };
    rc = q->kind == QUEUE_SHARED ? engine_post_srq_recv(e, q->srq->srq, &wr)
                                 : engine_post_recv(e, q->qp->qp, &wr);
    if (rc == -EAGAIN) {
        q->ring.index = index;
        return rc;
    }
    return 1;
}

unsigned queue_pull(struct queue *q, uint64_t now, bool *more)
{
    unsigned n = 0;
    int rc = 1;
    *more = false;
    if (q->dead)
        return 0;
    q->starved = false;
    while (n < ROUND_ENTRIES && rc > 0) {
        rc = q->kind == QUEUE_SEND ? queue_send_one(q, now) : queue_recv_one(q);
        if (rc > 0)
            n++;
    }
    if (n > 0)
        ipc_ring_release(&q->ring);
    if (rc == -EPROTO)
        queue_kill(q, now);
    q->starved = rc == -EAGAIN;
    *more = rc > 0;
    return n;
}

bool queue_recv_wanted(struct queue *q)
{
    unsigned n = 0;
    int rc = 1;
    if (q->dead || q->ring.entries == 0)
        return false;
    while (n < ROUND_ENTRIES && (rc = queue_recv_one(q)) > 0)
        n++;
    if (n > 0)
        ipc_ring_release(&q->ring);
    if (rc == -EPROTO)
        context_activate(q->ctx,
                         q); /* the queue's next turn ends it: not in the middle of a packet */
    return n > 0;
}

void queue_reset(struct queue *q)
{
    if (q->ring.entries == 0)
        return;
    atomic_store_explicit(&q->ring.q->prod, 0, memory_order_relaxed);
    atomic_store_explicit(&q->ring.q->cons, 0, memory_order_release);
    q->ring.index = 0;
    q->starved = false;
    q->dead = false;
    queue_unwait(q);
}
