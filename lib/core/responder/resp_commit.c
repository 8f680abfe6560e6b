/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The effects of requests when their turn has come: records commit in order, and only executed
 * requests are acknowledged or complete. Rules: RSP-19, RSP-22..24, RSP-28, ACK-11.
 */
#include "resp_commit.h"

#include <errno.h>

#include "engine_priv.h"
#include "qp_state.h"
#include "rd_ring.h"
#include "recorder.h"
#include "refusal.h"
#include "resp_recovery.h"
#include "resp_uc.h"
#include "schedule.h"
#include "srq.h"
#include "ud.h"

/* ---- answers ---- */

void resp_owe_ack(struct engine *e, struct qp *qp)
{
    qp->resp.ack_owed = 1;
    qp_activate(e, qp);
}

void resp_owe_nak(struct engine *e, struct qp *qp, uint8_t syndrome, psn_t p)
{
    qp->resp.nak_owed = syndrome;
    qp->resp.nak_psn = p;
    qp_activate(e, qp);
}

void resp_fail(struct engine *e, struct qp *qp, enum refusal why, psn_t p, bool wqe)
{
    const struct refusal_info *info = &refusals[why];
    struct resp *r = &qp->resp;
    recorder_error(e, qp, "%s: PSN 0x%06x, expected 0x%06x", info->text, p.v, r->done_epsn.v);
    r->fatal = FATAL_OWED;
    r->fatal_ev = info->event;
    wqe = wqe && info->status != WC_SUCCESS;
    if (wqe && why != REFUSE_SEQUENCE)
        r->fatal_ev = EVT_NONE; /* its completion reports it, unless flushed */
    resp_owe_nak(e, qp, info->syndrome, p);
    if (wqe) {
        struct engine_wc wc = {
            .status = info->status, .opcode = WC_RECV, .vendor_err = recorder_rule(info->text)};
        resp_complete(e, qp, &wc);
    }
}

/* ---- commit ---- */

/* RSP-23, RSP-24, RSP-28. False: the completion queue overflowed, or RSP-19 failed. */
static bool complete_recv(struct engine *e, struct qp *qp, const struct record *rec)
{
    struct engine_wc wc = {
        .status = WC_SUCCESS,
        .opcode = rec->arg & ACT_F_WRITE ? WC_RECV_RDMA_WITH_IMM : WC_RECV,
        .byte_len = rec->len,
        .imm = rec->imm,
        .wc_flags = (rec->arg & ACT_F_IMM ? WC_F_IMM : 0) | (rec->arg & ACT_F_INV ? WC_F_INV : 0),
        .solicited = rec->se,
    };
    if (!(rec->arg & ACT_F_INV_BAD))
        return resp_complete(e, qp, &wc);
    wc.status = WC_REM_INV_REQ_ERR;
    wc.vendor_err = RULE(RSP, 19);
    recorder_error(e, qp, "RSP-19 R_Key of SEND with invalidate: PSN 0x%06x", rec->psn.v);
    if (resp_complete(e, qp, &wc))
        qp_to_error(e, qp, false, EVT_NONE);
    return false;
}

static void copy_failed(struct engine *e, struct qp *qp, const struct record *rec)
{
    struct resp *r = &qp->resp;
    recorder_note(e, qp, NOTE_COPY_FAIL, rec->at, (uint32_t)-rec->status);
    if (!psn_eq(r->done_epsn, rec->at)) { /* packets before it in this record have been executed */
        r->done_epsn = rec->at;
        r->ack_psn = psn_prev(rec->at);
    }
    /* Only a packet for several receive buffers has records without action. */
    bool recv = rec->action == ACT_NONE || (rec->arg & ACT_F_WQE && !(rec->arg & ACT_F_WRITE));
    if (qp->type == QP_RC) {
        resp_fail(e, qp, recv ? REFUSE_RECV_GONE : REFUSE_TARGET_GONE, rec->at, recv);
        return;
    }
    uc_failed(e, qp, recv ? REFUSE_RECV_GONE : REFUSE_TARGET_GONE, recv);
}

static void commit_packet(struct engine *e, struct qp *qp, const struct record *rec)
{
    struct resp *r = &qp->resp;
    r->done_epsn = psn_add(rec->psn, 1);
    r->ack_psn = rec->psn;
    if (rec->action == ACT_END) {
        r->done_msn = (r->done_msn + 1) & PSN_MASK; /* ACK-11 */
        if (rec->arg & ACT_F_WQE && !complete_recv(e, qp, rec))
            return;
    }
    if (rec->arg & ACT_F_ACKREQ && qp->type == QP_RC)
        resp_owe_ack(e, qp);
}

static void commit_refusal(struct engine *e, struct qp *qp, const struct record *rec)
{
    enum refusal why = (enum refusal)(rec->arg & 0xFF);
    if (qp->type == QP_RC)
        resp_fail(e, qp, why, rec->psn, rec->arg & ACT_F_REFUSE_WQE);
    else
        uc_failed(e, qp, why, rec->arg & ACT_F_REFUSE_WQE);
}

static void commit(struct engine *e, struct qp *qp, struct record *rec)
{
    struct resp *r = &qp->resp;
    if (!qp_connected(qp)) {
        ud_commit(e, qp, rec);
        return;
    }
    if (r->fatal >= FATAL_OWED)
        return; /* after a failure: as if it had never come */
    if (rec->status < 0 && recovery_copy_failed(qp, rec->psn))
        return;
    if (rec->status < 0 || recovery_broken(qp, rec->psn)) {
        copy_failed(e, qp, rec);
        return;
    }
    switch ((enum resp_action)rec->action) {
    case ACT_NONE:
        break;
    case ACT_PACKET:
    case ACT_END:
        commit_packet(e, qp, rec);
        break;
    case ACT_READ:
    case ACT_ATOMIC:
        r->done_epsn = psn_add(rec->psn, rec->len);
        r->done_msn = (r->done_msn + 1) & PSN_MASK;
        rd_execute(qp, rec->orig);
        qp_activate(e, qp);
        break;
    case ACT_REFUSE:
        commit_refusal(e, qp, rec);
        break;
    case ACT_NAK:
        resp_owe_nak(e, qp, WIRE_SYN_NAK_SEQ, rec->psn);
        break;
    case ACT_RNR:
        resp_owe_nak(e, qp, WIRE_SYN_RNR | qp->attr.min_rnr_timer, rec->psn);
        break;
    case ACT_REACK:
        resp_owe_ack(e, qp);
        break;
    }
}

void resp_run(struct engine *e, struct qp *qp, uint64_t now)
{
    struct record *r;
    while ((r = record_done(&qp->resp.recs))) {
        if (record_live(e, r))
            commit(e, qp, r);
        record_release(e, r);
    }
    if (!record_idle(e, qp, REC_RESP))
        return;
    if (qp->state == QPS_ERR)
        resp_flush(e, qp);
    else
        recovery_drain(e, qp, now);
}
