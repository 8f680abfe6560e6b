/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The UC responder: no answers; an incomplete message is dropped silently, and its receive work
 * request serves the next one. Rules: UC-03..UC-08.
 */
#include "resp_uc.h"

#include "engine_priv.h"
#include "qp_state.h"
#include "recorder.h"
#include "refusal.h"
#include "resp_commit.h"
#include "responder.h"
#include "rx.h"
#include "srq.h"

/* Drop the message that is being received. Its receive work request stays the last of `taken`; the
 * next message uses it. */
static void drop_msg(struct rx *rx, struct qp *qp, enum engine_counter c)
{
    rx_drop(rx, c);
    qp->resp.in_msg = MSG_NONE;
}

/* Does the packet continue the message under way (RSP-06)? After a gap there is none (UC-04). */
static bool continues(const struct resp *r, unsigned flags)
{
    return r->in_msg != MSG_NONE && flags & (r->in_msg == MSG_SEND ? WIRE_F_SEND : WIRE_F_WRITE);
}

static void local_error(enum refusal why, struct rx *rx, struct qp *qp)
{
    if (refusals[why].syndrome == WIRE_SYN_NAK_OP)
        resp_refuse(rx, qp, why);
    else
        drop_msg(rx, qp, ENGINE_C_uc_drop_msg);
}

void uc_rx(struct rx *rx, struct qp *qp)
{
    struct resp *r = &qp->resp;
    unsigned flags = rx->op->flags;
    psn_t p = psn(rx->pkt.psn);
    bool expected = psn_eq(p, r->epsn);
    if (flags & WIRE_F_START) {
        if (r->in_msg != MSG_NONE)
            engine_count(rx->e, ENGINE_C_uc_drop_msg); /* the one before never ended */
        r->in_msg = MSG_NONE;
        r->msg_off = 0;
    } else if (!expected || !continues(r, flags)) {
        bool counted = r->in_msg == MSG_NONE; /* the message, once */
        drop_msg(rx, qp, counted ? ENGINE_C_out_of_sequence : ENGINE_C_uc_drop_msg);
        return;
    }
    r->epsn = psn_add(p, 1);
    if (flags & WIRE_F_WRITE && !(qp->access & MEM_REMOTE_WRITE)) {
        drop_msg(rx, qp, ENGINE_C_uc_drop_msg);
        return;
    }
    if (!resp_have_wqe(rx, qp)) { /* UC-05; it may be one left by an incomplete message */
        drop_msg(rx, qp, ENGINE_C_out_of_buffer);
        return;
    }
    struct record *last = NULL;
    /* A WRITE without immediate must not use the work request that a dropped SEND has left. */
    struct rwqe *kept = NULL;
    if (flags & WIRE_F_WRITE && !(flags & WIRE_F_IMM)) {
        kept = r->wqe;
        r->wqe = NULL;
    }
    enum refusal why = flags & WIRE_F_SEND ? resp_send(rx, qp, &last) : resp_write(rx, qp, &last);
    if (why == REFUSE_NONE)
        resp_packet_done(rx, qp, last);
    else
        local_error(why, rx, qp);
    if (kept)
        r->wqe = kept;
    if (why == REFUSE_NONE)
        resp_comm_est(rx, qp);
    resp_run(rx->e, qp, rx->now);
}

void uc_failed(struct engine *e, struct qp *qp, enum refusal why, bool wqe)
{
    const struct refusal_info *info = &refusals[why];
    recorder_error(e, qp, "%s", info->text);
    if (wqe) {
        struct engine_wc wc = {
            .status = info->status, .opcode = WC_RECV, .vendor_err = recorder_rule(info->text)};
        if (!resp_complete(e, qp, &wc))
            return;
    }
    qp_to_error(e, qp, false, wqe ? EVT_NONE : info->event);
}
