/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Work requests that have been answered, have failed or are flushed become completions, in posting
 * order. Rules: REQ-08, REQ-09, REQ-35..37, QP-12.
 */
#include "comp_retire.h"

#include "cq.h"
#include "engine_priv.h"
#include "qp_state.h"
#include "recorder.h"
#include "schedule.h"
#include "send_queue.h"

/* The oldest work request fails, the rest is flushed (REQ-36). No copy is pending. */
static void fail_now(struct engine *e, struct qp *qp, enum wc_status status, const char *why)
{
    struct req *r = &qp->req;
    if (r->head != r->tail) {
        struct swqe *w = req_wqe(qp, r->head);
        struct engine_wc wc = {.wr_id = w->wr_id,
                               .status = status,
                               .opcode = swqe_wc_opcode(w),
                               .vendor_err = recorder_rule(why)};
        engine_count(e, ENGINE_C_req_cqe_error);
        r->head++;
        if (!cq_push(e, qp, qp->send_cq, &wc))
            return;
    }
    if (qp->type == QP_RC)
        qp_to_error(e, qp, false, -1);
    else
        qp_to_sqe(e, qp);
}

void comp_fail(struct engine *e, struct qp *qp, enum wc_status status, const char *why)
{
    struct req *r = &qp->req;
    if (qp->state == QPS_ERR || qp->state == QPS_SQE || r->fail)
        return;
    recorder_error(e, qp, "%s: %s, psn 0x%06x, oldest unanswered 0x%06x", why,
                   engine_status_name(status), r->nxt.v, r->una.v);
    if (r->recs.head)
        r->fail = (uint8_t)status; /* messages answered before complete first */
    else
        fail_now(e, qp, status, why);
}

void comp_retire(struct engine *e, struct qp *qp)
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
            .opcode = swqe_wc_opcode(w),
            .byte_len = w->len,
        };
        if (!cq_push(e, qp, qp->send_cq, &wc))
            return;
    }
    if (r->head != head) {
        req_tell_room(e, qp);
        req_check_drained(e, qp);
        /* A fence, a local operation or the READ limit may have waited for this. */
        if (r->cur != r->tail)
            qp_activate(e, qp);
    }
    if (r->head == r->tail || r->recs.head || r->fail)
        return;
    struct swqe *w = req_wqe(qp, r->head);
    if (w->error && (r->head != r->started || qp->state == QPS_RTS))
        comp_fail(e, qp, w->error, "REQ-08 local error");
}

static void commit(struct engine *e, struct qp *qp, const struct record *rec)
{
    struct req *r = &qp->req;
    if (rec->status) {
        /* All requests before this packet are answered. */
        if (psn_diff(rec->at, r->done) > 0)
            r->done = rec->at;
        comp_retire(e, qp);
        recorder_note(e, qp, NOTE_COPY_FAIL, rec->at, (uint32_t)-rec->status);
        if (qp->state != QPS_ERR) {
            r->fail = 0;
            recorder_error(e, qp, "REQ-09 memory to receive into can't be written, psn 0x%06x",
                           rec->at.v);
            fail_now(e, qp, WC_LOC_PROT_ERR, "REQ-09");
        }
        return;
    }
    if (psn_diff(rec->psn, r->done) > 0)
        r->done = rec->psn;
    comp_retire(e, qp);
}

/* Do the work that waited for the end of all records of this side. */
static void idle(struct engine *e, struct qp *qp)
{
    struct req *r = &qp->req;
    if (r->fail && qp->state != QPS_ERR && qp->state != QPS_RESET) {
        enum wc_status status = r->fail;
        r->fail = 0;
        fail_now(e, qp, status, qp->error); /* comp_fail has recorded the reason */
    }
    if (qp->state == QPS_ERR)
        req_flush(e, qp);
}

void comp_run(struct engine *e, struct qp *qp)
{
    struct record *r;
    while ((r = record_done(&qp->req.recs))) {
        if (record_live(e, r))
            commit(e, qp, r);
        record_release(e, r);
    }
    if (record_idle(e, qp, REC_COMP))
        idle(e, qp);
}
