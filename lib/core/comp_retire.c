/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Work requests that have been answered, have failed or are flushed become completions, in posting
 * order. Rules: REQ-08, REQ-09, REQ-35..37, QP-12.
 */
#include "comp_retire.h"

#include "cq.h"
#include "engine_priv.h"
#include "engine_tx.h"
#include "recorder.h"
#include "send_queue.h"

static const uint8_t wc_opcode[WR_OPCODE_MAX] = {
    [WR_RDMA_WRITE] = WC_RDMA_WRITE,
    [WR_RDMA_WRITE_WITH_IMM] = WC_RDMA_WRITE,
    [WR_SEND] = WC_SEND,
    [WR_SEND_WITH_IMM] = WC_SEND,
    [WR_RDMA_READ] = WC_RDMA_READ,
    [WR_ATOMIC_CMP_AND_SWP] = WC_COMP_SWAP,
    [WR_ATOMIC_FETCH_AND_ADD] = WC_FETCH_ADD,
    [WR_LOCAL_INV] = WC_LOCAL_INV,
    [WR_BIND_MW] = WC_BIND_MW,
    [WR_SEND_WITH_INV] = WC_SEND,
    [WR_REG_MR] = WC_REG_MR,
    [WR_FLUSH] = WC_FLUSH,
    [WR_ATOMIC_WRITE] = WC_ATOMIC_WRITE,
};

static unsigned opcode_of(const struct swqe *w)
{
    return w->opcode < WR_OPCODE_MAX ? wc_opcode[w->opcode] : 0;
}

/* Tell the poster that found the send queue full that there is room again. */
static void tell_room(struct engine *e, struct qp *qp)
{
    if (qp->req.full) {
        qp->req.full = 0;
        if (e->p.hooks.sq_room)
            e->p.hooks.sq_room(e->p.hook_arg, qp->arg);
    }
}

/* The oldest work request fails, the rest is flushed (REQ-36). No copy is pending. */
static void fail_now(struct engine *e, struct qp *qp, enum wc_status status, const char *why,
                     uint64_t now)
{
    struct req *r = &qp->req;
    if (r->head != r->tail) {
        struct swqe *w = req_wqe(qp, r->head);
        struct engine_wc wc = {.wr_id = w->wr_id,
                               .status = status,
                               .opcode = opcode_of(w),
                               .vendor_err = recorder_rule(why)};
        engine_count(e, ENGINE_C_req_cqe_error);
        r->head++;
        if (!cq_push(e, qp, qp->send_cq, &wc, now))
            return;
    }
    if (qp->type == QP_RC)
        qp_to_error(e, qp, false, -1, now);
    else
        qp_to_sqe(e, qp);
}

void comp_fail(struct engine *e, struct qp *qp, enum wc_status status, const char *why,
               uint64_t now)
{
    struct req *r = &qp->req;
    if (qp->state == QPS_ERR || qp->state == QPS_SQE || r->fail)
        return;
    recorder_error(e, qp, "%s: %s, psn 0x%06x, oldest unanswered 0x%06x", why,
                   engine_status_name(status), r->nxt.v, r->una.v);
    if (r->recs.head)
        r->fail = (uint8_t)status; /* messages answered before complete first */
    else
        fail_now(e, qp, status, why, now);
}

void comp_retire(struct engine *e, struct qp *qp, uint64_t now)
{
    struct req *r = &qp->req;
    uint32_t head = r->head;
    while (r->head != r->started) {
        struct swqe *w = req_wqe(qp, r->head);
        /* `done` is at or after the oldest one's first PSN; a READ may be 2^23 PSNs long. */
        if (w->error || psn_ahead(r->done, w->first) < w->npsn)
            break;
        r->head++;
        if (swqe_is_rd(w))
            r->rd_out--;
        if (!qp->sq_sig_all && !(w->wr_flags & WR_F_SIGNALED))
            continue;
        struct engine_wc wc = {
            .wr_id = w->wr_id,
            .opcode = opcode_of(w),
            .byte_len = w->len,
        };
        if (!cq_push(e, qp, qp->send_cq, &wc, now))
            return;
    }
    if (r->head != head) {
        tell_room(e, qp);
        req_check_drained(e, qp);
        /* A fence, a local operation or the READ limit may have waited for this. */
        if (r->cur != r->tail)
            qp_activate(e, qp);
    }
    if (r->head == r->tail || r->recs.head || r->fail)
        return;
    struct swqe *w = req_wqe(qp, r->head);
    if (w->error && (r->head != r->started || qp->state == QPS_RTS))
        comp_fail(e, qp, w->error, "REQ-08 local error", now);
}

void comp_flush(struct engine *e, struct qp *qp)
{
    struct req *r = &qp->req;
    while (r->head != r->tail) {
        const struct swqe *w = req_wqe(qp, r->head++);
        cq_flush(e, qp, qp->send_cq, w->wr_id, opcode_of(w));
    }
    r->cur = r->started = r->rd_first = r->head;
    r->pkt = 0;
    r->rd_out = 0;
    r->rd_psns = 0;
    r->una = r->done = r->nxt = r->max;
    tell_room(e, qp);
}

void comp_commit(struct engine *e, struct qp *qp, struct record *rec, uint64_t now)
{
    struct req *r = &qp->req;
    if (rec->status) {
        /* All requests before this packet are answered. */
        if (psn_diff(rec->at, r->done) > 0)
            r->done = rec->at;
        comp_retire(e, qp, now);
        recorder_note(e, qp, NOTE_COPY_FAIL, rec->at, (uint32_t)-rec->status);
        if (qp->state != QPS_ERR) {
            r->fail = 0;
            recorder_error(e, qp, "REQ-09 memory to receive into can't be written, psn 0x%06x",
                           rec->at.v);
            fail_now(e, qp, WC_LOC_PROT_ERR, "REQ-09", now);
        }
        return;
    }
    if (psn_diff(rec->psn, r->done) > 0)
        r->done = rec->psn;
    comp_retire(e, qp, now);
}

void comp_idle(struct engine *e, struct qp *qp, uint64_t now)
{
    struct req *r = &qp->req;
    if (!r->fail || qp->state == QPS_ERR || qp->state == QPS_RESET)
        return;
    enum wc_status status = r->fail;
    r->fail = 0;
    fail_now(e, qp, status, qp->error, now); /* comp_fail has recorded the reason */
}
