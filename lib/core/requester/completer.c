/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Completer: checks each response against the outstanding requests. comp_retire.c completes those
 * that are answered. Rules: REQ-18, REQ-21..34, ACK-06, ACK-12..17, RD-12, RD-14, SEC-06.
 */
#include "completer.h"

#include <string.h>

#include "comp_retire.h"
#include "engine_priv.h"
#include "guess.h"
#include "place.h"
#include "recorder.h"
#include "recovery.h"
#include "req_recovery.h"
#include "retransmit.h"
#include "rx.h"
#include "schedule.h"
#include "send_queue.h"
#include "sr_sender.h"

#define CREDITS_NONE 31u            /* the credit code of a peer that doesn't count them (ACK-13) */
#define CREDITS_ALL  (PSN_HALF / 2) /* more messages than can be outstanding */

/* ---- frontier ---- */

/* The oldest READ or ATOMIC that lacks answers, if its request has been sent. */
static struct swqe *open_rd(const struct qp *qp)
{
    const struct req *r = &qp->req;
    if (r->rd_first == r->started)
        return NULL;
    struct swqe *w = req_wqe(qp, r->rd_first);
    return psn_eq(r->max, w->first) ? NULL : w;
}

/* Does p, which lies in the window, come before the READ or ATOMIC rd? The first PSN of rd may lie
 * half of all PSNs back. */
static bool before_rd(const struct qp *qp, const struct swqe *rd, psn_t p)
{
    psn_t una = qp->req.una;
    return psn_diff(rd->first, una) > 0 && psn_diff(p, rd->first) < 0;
}

static void rd_answered(struct qp *qp)
{
    struct req *r = &qp->req;
    do {
        r->rd_first++;
    } while (r->rd_first != r->started && !swqe_is_rd(req_wqe(qp, r->rd_first)));
    r->restart_set = 0;
}

/* Everything before p is answered. */
static void ack_before(struct engine *e, struct qp *qp, psn_t p, uint64_t now)
{
    struct req *r = &qp->req;
    if (psn_diff(p, r->una) <= 0)
        return;
    uint32_t n = psn_ahead(p, r->una);
    r->una = p;
    rtx_progress(e, qp, n, now);
    if (r->recs.head && !r->recs.tail->stale) { /* completes when the copies before it are done */
        r->recs.tail->psn = p;
    } else {
        r->done = p;
        comp_retire(e, qp);
    }
}

/* ---- acknowledgements ---- */

static void take_credits(struct engine *e, struct qp *qp, const struct wire_pkt *p)
{
    if (!qp->credits)
        return;
    struct req *r = &qp->req;
    unsigned code = p->syndrome & 0x1F;
    psn_t lsn = psn_add(psn(p->msn), code == CREDITS_NONE ? CREDITS_ALL : wire_credits(code));
    if (psn_diff(lsn, psn(r->lsn)) > 0) { /* ACK-17 */
        r->lsn = lsn.v;
        qp_activate(e, qp);
    }
}

/* An answer to p, while that READ or ATOMIC lacks one (REQ-24). */
static void implied_nak(struct engine *e, struct qp *qp, const struct swqe *rd, psn_t p,
                        enum rtx_answer kind, uint64_t now)
{
    ack_before(e, qp, rd->first, now);
    if (qp->state != QPS_ERR)
        rtx_implied(e, qp, p, kind, now);
}

static bool is_fatal_nak(uint8_t syndrome)
{
    return wire_aeth_kind(syndrome) == WIRE_AETH_NAK && syndrome != WIRE_SYN_NAK_SEQ;
}

void comp_refused(struct engine *e, struct qp *qp, uint8_t syndrome)
{
    switch (syndrome) {
    case WIRE_SYN_NAK_INV:
        engine_count(e, ENGINE_C_req_remote_invalid_request);
        comp_fail(e, qp, WC_REM_INV_REQ_ERR, "ACK-06 the peer refused the request");
        break;
    case WIRE_SYN_NAK_ACCESS:
        engine_count(e, ENGINE_C_req_remote_access_errors);
        comp_fail(e, qp, WC_REM_ACCESS_ERR, "ACK-06 the peer refused access");
        break;
    case WIRE_SYN_NAK_OP:
        comp_fail(e, qp, WC_REM_OP_ERR, "ACK-06 the peer could not do it");
        break;
    default:
        comp_fail(e, qp, WC_REM_INV_RD_REQ_ERR, "ACK-06 invalid RD request");
        break;
    }
}

/* A fatal NAK for una. */
static void fatal_nak(struct engine *e, struct qp *qp, uint8_t syndrome, uint64_t now)
{
    const struct req *r = &qp->req;
    bool sent_again = psn_diff(r->again, r->una) > 0;
    if (!e->p.nak_confirm || !qp->t_ack || sent_again)
        comp_refused(e, qp, syndrome);
    else if (!r->confirm)
        rtx_confirm(e, qp, syndrome, now);
}

/* An ACK of p, which lies in the window; rd is the READ or ATOMIC that lacks answers, or NULL. */
static void rx_ack(struct rx *rx, struct qp *qp, const struct swqe *rd, psn_t p)
{
    struct engine *e = rx->e;
    take_credits(e, qp, &rx->pkt);
    if (!rd || before_rd(qp, rd, p)) {
        ack_before(e, qp, psn_add(p, 1), rx->now);
        return;
    }
    /* Where the data of a READ is due: REQ-27. */
    ack_before(e, qp, rd->first, rx->now);
    if (psn_diff(p, qp->req.una) > 0)
        implied_nak(e, qp, rd, p, RTX_ACK, rx->now);
}

/* Handle a NAK or RNR NAK of a packet after a READ or ATOMIC that lacks answers. False: it is
 * handled like any other. */
static bool rx_nak_after(struct rx *rx, struct qp *qp, const struct swqe *rd, psn_t p)
{
    struct engine *e = rx->e;
    if (recovery_selective(qp)) {
        /* The NAK is about requests; the answers to the READ may still be on their way. */
        ack_before(e, qp, rd->first, rx->now);
        if (qp->state != QPS_ERR)
            sr_lost(e, qp, p);
        return true;
    }
    if (psn_diff(p, qp->req.una) <= 0) /* REQ-26 */
        return false;
    if (wire_aeth_kind(rx->pkt.syndrome) == WIRE_AETH_RNR)
        engine_count(e, ENGINE_C_rnr_nak_retry_err);
    implied_nak(e, qp, rd, p, RTX_ACK, rx->now);
    return true;
}

/* ACK, NAK or RNR NAK with a PSN in the window. */
static void rx_aeth(struct rx *rx, struct qp *qp)
{
    struct engine *e = rx->e;
    uint8_t syndrome = rx->pkt.syndrome;
    psn_t p = psn(rx->pkt.psn);
    enum wire_aeth_kind kind = wire_aeth_kind(syndrome);
    const struct swqe *rd = open_rd(qp);
    if (kind == WIRE_AETH_ACK) {
        rx_ack(rx, qp, rd, p);
        return;
    }
    recorder_note(e, qp, kind == WIRE_AETH_RNR ? NOTE_RX_RNR : NOTE_RX_NAK, p, syndrome);
    bool after_rd = rd && !psn_eq(p, rd->first) && !before_rd(qp, rd, p);
    if (after_rd && rx_nak_after(rx, qp, rd, p))
        return;
    if (is_fatal_nak(syndrome) && guess_peer_closed(rx, qp, GUESS_RESP)) {
        rx_drop(rx, ENGINE_C_rx_rate_limited);
        return;
    }
    ack_before(e, qp, p, rx->now);
    if (qp->state == QPS_ERR)
        return;
    if (!is_fatal_nak(syndrome))
        rtx_refute(e, qp);
    if (kind == WIRE_AETH_RNR) {
        qp->stats.rnr_naks++;
        rtx_rnr(e, qp, p, syndrome & 0x1F, rx->now);
        return;
    }
    qp->stats.naks++;
    if (syndrome != WIRE_SYN_NAK_SEQ) {
        fatal_nak(e, qp, syndrome, rx->now);
        return;
    }
    engine_count(e, ENGINE_C_packet_seq_err);
    rtx_nak(e, qp, p, rx->now);
}

/* ---- data ---- */

bool comp_fits_read(const struct qp *qp, const struct swqe *w, uint32_t k, const struct rx *rx)
{
    const struct req *r = &qp->req;
    uint16_t pos = rx->op->flags & (WIRE_F_START | WIRE_F_MIDDLE | WIRE_F_LAST);
    bool last = k == w->npsn - 1;
    bool starts = k == 0 || (r->restart_set && r->restart_pkt == k);
    uint32_t len = last ? swqe_answer_len(w) - (k << qp->mtu_shift) : qp_mtu(qp);
    if (rx->pkt.payload_len != len)
        return false;
    if (recovery_agreed(qp)) /* parts begin and end anywhere (LR-08) */
        return true;
    switch (pos) {
    case WIRE_F_FIRST:
        return starts && !last;
    case WIRE_F_MIDDLE:
        return k != 0 && !last;
    case WIRE_F_LAST:
        return k != 0 && last;
    default:
        return starts && last;
    }
}

bool comp_read_early(struct rx *rx, struct qp *qp, struct swqe *w, uint32_t k)
{
    struct engine *e = rx->e;
    if (!record_room(e, qp, ENGINE_SGE_MAX))
        return false;
    ack_before(e, qp, w->first, rx->now); /* REQ-25, LR-08 */
    if (qp->state == QPS_ERR)
        return false;
    if (place_read(rx, qp, w, k << qp->mtu_shift))
        comp_run(e, qp);
    return qp->state != QPS_ERR;
}

/* The response that is due: packet k of w. */
static void rx_data(struct rx *rx, struct qp *qp, struct swqe *w, uint32_t k)
{
    struct engine *e = rx->e;
    struct req *r = &qp->req;
    psn_t p = psn(rx->pkt.psn);
    bool atomic = swqe_is_atomic(w);
    if (!record_room(e, qp, ENGINE_SGE_MAX)) {
        rx_drop(rx, ENGINE_C_rx_copy_pending);
        return;
    }
    if (rx->op->headers & WIRE_H_AETH)
        take_credits(e, qp, &rx->pkt);
    ack_before(e, qp, w->first, rx->now); /* REQ-25 */
    if (qp->state == QPS_ERR)
        return;
    struct record *rec =
        atomic ? place_atomic(rx, qp, w) : place_read(rx, qp, w, k << qp->mtu_shift);
    r->una = psn_add(p, 1); /* recovery_read_due counts early responses from here */
    uint32_t n = 1 + recovery_read_due(qp);
    bool over = k + n == w->npsn;
    r->una = psn_add(p, n);
    r->rd_psns -= n;
    if (over)
        rd_answered(qp);
    rtx_progress(e, qp, n, rx->now);
    rx->share[REC_COMP] = rec && rec->pending && !over && !recovery_keeps_early(qp) ? rec : NULL;
    recovery_read_go_on(e, qp, rx->now);
    if (rec) {
        rec->psn = r->una;
        comp_run(e, qp); /* only when its memory is gone already */
    } else if (r->recs.head && !r->recs.tail->stale) {
        r->recs.tail->psn = r->una;
    } else {
        r->done = r->una;
        comp_retire(e, qp);
    }
}

/* Add one more packet in the middle of a READ to the record of those before it, which have passed
 * all other checks. False: it is no such packet, or it has a fault. */
static bool read_middle(struct rx *rx, struct qp *qp)
{
    struct req *r = &qp->req;
    struct record *rec = rx_shared(rx, qp, REC_COMP);
    if (!rec || rx->pkt.opcode != qp_opcode(qp, WIRE_READ_RESP_MIDDLE) || rx->pkt.psn != r->una.v ||
        rx->pkt.payload_len != qp_mtu(qp))
        return false;
    const struct swqe *w = req_wqe(qp, r->rd_first);
    uint32_t k = psn_ahead(r->una, w->first);
    if (k + 1 == w->npsn || place_more(rx, rec, (k << qp->mtu_shift) - rec->arg))
        return false;
    rec->psn = r->una = psn_add(r->una, 1);
    r->rd_psns--;
    rtx_progress(rx->e, qp, 1, rx->now);
    return true;
}

/* A response of the wrong kind or length for the request outstanding at its PSN. It is dropped, so
 * that one injected packet can't end the queue pair. With strict_resp it is fatal. */
static void misfit(struct rx *rx, struct qp *qp)
{
    rx_drop(rx, ENGINE_C_rx_resp_unexpected);
    if (rx->e->p.strict_resp)
        comp_fail(rx->e, qp, WC_BAD_RESP_ERR, "REQ-28 a response that does not fit");
}

static void rx_rd(struct rx *rx, struct qp *qp)
{
    struct engine *e = rx->e;
    psn_t p = psn(rx->pkt.psn);
    bool atomic_ack = rx->op->flags & WIRE_F_ATOMIC;
    if (rx->op->headers & WIRE_H_AETH && wire_aeth_kind(rx->pkt.syndrome) != WIRE_AETH_ACK) {
        rx_drop(rx, ENGINE_C_rx_bad_aeth); /* REQ-31 */
        return;
    }
    struct swqe *w = open_rd(qp);
    if (!w || before_rd(qp, w, p)) { /* a SEND or WRITE has this PSN */
        misfit(rx, qp);
        return;
    }
    psn_t due = psn_diff(w->first, qp->req.una) > 0 ? w->first : qp->req.una;
    if (!psn_eq(p, due) && recovery_read_early(rx, qp, w, due))
        return;
    if (qp->state == QPS_ERR)
        return;
    if (!psn_eq(p, due)) { /* RD-14 */
        rx_drop(rx, ENGINE_C_rx_resp_unexpected);
        bool start = rx->op->flags & WIRE_F_START;
        implied_nak(e, qp, w, p,
                    atomic_ack ? RTX_ACK
                    : start    ? RTX_READ_START
                               : RTX_READ_ON,
                    rx->now);
        return;
    }
    uint32_t k = psn_ahead(p, w->first);
    bool atomic = swqe_is_atomic(w);
    if (atomic != atomic_ack || (!atomic && !comp_fits_read(qp, w, k, rx))) { /* REQ-28, REQ-29 */
        misfit(rx, qp);
        return;
    }
    if (!(rx->op->flags & WIRE_F_MIDDLE))
        recorder_note(e, qp, atomic ? NOTE_RX_ATOMIC : NOTE_RX_READ, p, rx->pkt.payload_len);
    rx_data(rx, qp, w, k);
}

void comp_rx(struct rx *rx, struct qp *qp)
{
    struct engine *e = rx->e;
    const struct req *r = &qp->req;
    psn_t p = psn(rx->pkt.psn);
    if (r->fail) {
        rx_drop(rx, ENGINE_C_rx_bad_qp_state);
        return;
    }
    if (read_middle(rx, qp))
        return;
    if (!psn_in(p, r->una, psn_ahead(r->max, r->una))) { /* REQ-21 */
        if (psn_diff(p, r->una) >= 0) {
            guess_drop(rx, qp, GUESS_RESP, ENGINE_C_rx_resp_out_of_window);
            return;
        }
        if (rx->op->flags & WIRE_F_ACK && psn_eq(psn_add(p, 1), r->una) &&
            wire_aeth_kind(rx->pkt.syndrome) == WIRE_AETH_ACK)
            take_credits(e, qp, &rx->pkt); /* ACK-16 */
        else if (rx->op->flags & WIRE_F_READ)
            rtx_old_answer(qp, rx->now);
        rx_drop(rx, ENGINE_C_rx_ghost_ack);
        return;
    }
    if (rx->op->flags & WIRE_F_ACK)
        rx_aeth(rx, qp);
    else
        rx_rd(rx, qp);
}
