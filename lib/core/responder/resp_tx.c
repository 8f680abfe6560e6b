/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The order of a responder's packets: first replays of answers, then READ responses and atomic
 * results in PSN order, then a NAK or an ACK. If a response already acknowledges the requests, no
 * ACK is sent for them. Rules: RD-05..RD-08, ACK-05..ACK-14, RSP-22, CC-21.
 */
#include "resp_tx.h"

#include <errno.h>

#include "engine_priv.h"
#include "limiter.h"
#include "qp_state.h"
#include "rd_ring.h"
#include "recorder.h"
#include "recovery.h"
#include "refusal.h"
#include "resp_commit.h"
#include "resp_recovery.h"
#include "slot.h"
#include "sr_receiver.h"
#include "srq.h"

/* ACK-12..ACK-14. */
static uint8_t ack_syndrome(struct qp *qp)
{
    if (!qp->credits || qp->srq || qp->xrc)
        return WIRE_SYN_ACK;
    return (uint8_t)wire_credit_code(resp_receives(qp));
}

static void emit_ack(struct engine *e, struct qp *qp, struct engine_slot *slot)
{
    struct resp *r = &qp->resp;
    struct wire_var v = {
        .opcode = qp_opcode(qp, WIRE_ACKNOWLEDGE),
        .psn = r->ack_psn.v,
        .msn = r->done_msn,
        .syndrome = ack_syndrome(qp),
    };
    r->credits = v.syndrome;
    r->ack_owed = 0;
    engine_slot_emit(qp, slot, &v, SLOT_RESP);
    engine_count(e, ENGINE_C_tx_ack);
    recorder_note(e, qp, NOTE_TX_ACK, r->ack_psn, v.syndrome);
}

static enum engine_counter nak_counter(uint8_t syndrome)
{
    switch (syndrome) {
    case WIRE_SYN_NAK_SEQ:
        return ENGINE_C_tx_nak_seq;
    case WIRE_SYN_NAK_INV:
        return ENGINE_C_tx_nak_inv_req;
    case WIRE_SYN_NAK_ACCESS:
        return ENGINE_C_tx_nak_rem_access;
    case WIRE_SYN_NAK_OP:
        return ENGINE_C_tx_nak_rem_op;
    default:
        return ENGINE_C_tx_rnr_nak;
    }
}

static void emit_nak(struct engine *e, struct qp *qp, struct engine_slot *slot)
{
    struct resp *r = &qp->resp;
    if (r->fatal < FATAL_OWED && !psn_eq(r->nak_psn, r->done_epsn)) {
        /* The missing packet came before this NAK got a slot. If packets after it were dropped, a
         * NAK is still due: for the PSN that is missing now. */
        if (!rd_misses_dropped(qp) && !recovery_has_early(qp)) {
            r->nak_owed = 0;
            emit_ack(e, qp, slot);
            return;
        }
        r->nak_owed = WIRE_SYN_NAK_SEQ;
        r->nak_psn = r->done_epsn;
        if (psn_eq(r->nak_psn, r->epsn))
            r->quiet = 1; /* ACK-08: this is the gap's NAK */
    }
    struct wire_var v = {
        .opcode = qp_opcode(qp, WIRE_ACKNOWLEDGE),
        .psn = r->nak_psn.v,
        .msn = r->done_msn,
        .syndrome = r->nak_owed,
    };
    engine_slot_emit(qp, slot, &v, SLOT_RESP);
    engine_count(e, nak_counter(r->nak_owed));
    if (r->nak_owed == WIRE_SYN_NAK_ACCESS)
        engine_count(e, ENGINE_C_resp_remote_access_errors);
    recorder_note(e, qp, NOTE_TX_NAK, r->nak_psn, r->nak_owed);
    r->nak_owed = 0;
    r->ack_owed = 0; /* ACK-09: it acknowledges all before it */
    if (r->fatal == FATAL_OWED)
        r->fatal = FATAL_SENT;
}

static void emit_atomic(struct engine *e, struct qp *qp, struct rd_res *res,
                        struct engine_slot *slot)
{
    struct wire_var v = {
        .opcode = qp_opcode(qp, WIRE_ATOMIC_ACK),
        .psn = res->psn.v,
        .msn = qp->resp.done_msn,
        .syndrome = ack_syndrome(qp),
        .orig = res->orig,
    };
    engine_slot_emit(qp, slot, &v, SLOT_RESP);
    recorder_note(e, qp, NOTE_TX_ATOMIC, res->psn, 0);
    res->tx.next = 1;
}

/* RD-05, RD-10: opcode by the place within this (re)execution. */
static enum wire_op read_opcode(const struct rd_res *res)
{
    bool first = res->tx.next == res->tx.first, last = res->tx.next + 1 == res->tx.end;
    if (first)
        return last ? WIRE_READ_RESP_ONLY : WIRE_READ_RESP_FIRST;
    return last ? WIRE_READ_RESP_LAST : WIRE_READ_RESP_MIDDLE;
}

/* False: the memory isn't there any more (RD-07). */
static bool emit_read(struct engine *e, struct qp *qp, struct rd_res *res, struct engine_slot *slot)
{
    uint64_t off = (uint64_t)res->tx.next << qp->mtu_shift;
    uint32_t len = res->tx.octets - (uint32_t)off;
    if (len > qp_mtu(qp))
        len = qp_mtu(qp);
    int n = 0;
    if (len > 0) {
        n = mem_pieces(e->mem, &res->ref, off - res->ref_off, len, slot->pieces, ENGINE_TX_PIECES);
        if (n < 0)
            return false;
    }
    struct wire_var v = {
        .opcode = qp_opcode(qp, read_opcode(res)),
        .psn = psn_add(res->psn, res->tx.next).v,
        .msn = qp->resp.done_msn,
        .syndrome = ack_syndrome(qp),
        .payload_len = len,
    };
    engine_slot_emit(qp, slot, &v, SLOT_READ);
    slot->npieces = (uint16_t)n;
    if (res->tx.next == res->tx.first)
        recorder_note(e, qp, NOTE_TX_READ, psn(v.psn), res->tx.end - res->tx.next);
    res->tx.next++;
    return true;
}

/* Emit up to n packets from the middle of the READ that is being answered, one into each slot. They
 * differ only in place and PSN. Call this only right after emit_read has emitted a packet of the
 * same READ: emit_read checks whether an ACK is owed, and this function does not. Returns the
 * number of packets. */
static unsigned emit_read_middles(struct engine *e, struct qp *qp, struct rd_res *res,
                                  struct engine_slot *slots, unsigned n, uint64_t now)
{
    struct rd_part *t = &res->tx;
    const uint32_t mtu = qp_mtu(qp);
    struct wire_var v = {.opcode = qp_opcode(qp, WIRE_READ_RESP_MIDDLE), .payload_len = mtu};
    struct slot_run run;
    struct mem_piece all;
    unsigned m = t->next != t->first && t->next != t->end ? t->end - t->next - 1 : 0;
    if (m > n)
        m = n;
    if (!m || mem_pieces(e->mem, &res->ref, ((uint64_t)t->next << qp->mtu_shift) - res->ref_off,
                         m * mtu, &all, 1) != 1)
        return 0; /* emit_read finds the reason */
    engine_run_begin(qp, &run, &v);
    all.len = mtu;
    unsigned i;
    for (i = 0; i < m; i++, all.off += mtu) {
        if (qp->lim && !limiter_check(e, qp, now)) /* CC-21 */
            break;
        engine_run_next(qp, &run, &slots[i], psn_add(res->psn, t->next++), false, SLOT_READ, all);
        if (qp->lim)
            limiter_charge(qp, run.len, now);
    }
    return i;
}

/* The next entry to answer: replays first (RD-11). NULL = none. */
static struct rd_res *next_reply(struct resp *r)
{
    struct rd_ring *ring = r->rd;
    if (!r->reads || !ring)
        return NULL;
    for (uint32_t i = ring->live; ring->replays > 0 && i > 0; i--) {
        struct rd_res *res = rd_entry(ring, ring->tail - i);
        if (res->replay)
            return res;
    }
    if (ring->tx != ring->ready)
        return rd_entry(ring, ring->tx);
    r->reads = ring->ready != ring->tail || ring->replays > 0;
    return NULL;
}

static bool is_atomic(const struct rd_res *res)
{
    return wire_opcodes[res->opcode].flags & WIRE_F_ATOMIC;
}

/* One packet of an answer. False: the queue pair has failed, and owes a NAK. */
static bool emit_reply(struct engine *e, struct qp *qp, struct rd_res *res,
                       struct engine_slot *slot)
{
    struct rd_ring *ring = qp->resp.rd;
    struct resp *r = &qp->resp;
    if (is_atomic(res)) {
        emit_atomic(e, qp, res, slot);
    } else if (!emit_read(e, qp, res, slot)) {
        psn_t p = psn_add(res->psn, res->tx.next);
        rd_abandon(qp);
        resp_fail(e, qp, REFUSE_READ_REVOKED, p, false);
        return false;
    }
    if (psn_diff(psn(slot->psn), r->ack_psn) > 0)
        r->ack_owed = 0; /* REQ-25: the response implies the ACK */
    if (res->tx.next == res->tx.end) {
        if (res->nmore)
            res->tx = res->more[--res->nmore];
        else if (res->replay)
            rd_stop_replay(ring, res);
        else
            ring->tx++;
    }
    return true;
}

bool resp_tx_ready(const struct qp *qp)
{
    const struct resp *r = &qp->resp;
    return r->ack_owed || r->nak_owed || recovery_tx_ready(qp) ||
           (r->rd && (r->rd->tx != r->rd->ready || r->rd->replays));
}

bool resp_tx_only_ack(const struct qp *qp)
{
    const struct resp *r = &qp->resp;
    return r->ack_owed && !r->nak_owed && !recovery_tx_ready(qp) &&
           !(r->rd && (r->rd->tx != r->rd->ready || r->rd->replays));
}

unsigned resp_tx(struct engine *e, struct qp *qp, struct engine_slot *slots, unsigned n,
                 uint64_t now)
{
    struct resp *r = &qp->resp;
    unsigned used = 0;
    while (used < n) {
        struct rd_res *res = next_reply(r);
        if (recovery_hello_due(qp)) /* before a long answer, so that its losses can be repaired */
            sr_emit(e, qp, &slots[used++]); // NOLINT(bugprone-branch-clone): their order counts
        else if (res && qp->lim && !is_atomic(res) && !limiter_check(e, qp, now)) { /* CC-21 */
            if (!r->ack_owed || r->rd->replays || rd_blocks(qp, r->ack_psn))
                break;
            emit_ack(e, qp, &slots[used++]);
        } else if (res) {
            if (!emit_reply(e, qp, res, &slots[used]))
                continue;
            if (qp->lim && slots[used].kind == SLOT_READ)
                limiter_charge(qp, slots[used].len, now);
            used++;
            used += emit_read_middles(e, qp, res, slots + used, n - used, now);
        } else if (recovery_tx_ready(qp))
            sr_emit(e, qp, &slots[used++]);
        else if (r->nak_owed)
            emit_nak(e, qp, &slots[used++]);
        else if (r->ack_owed)
            emit_ack(e, qp, &slots[used++]);
        else
            break;
    }
    return used;
}

bool resp_sent(struct engine *e, struct qp *qp, const struct engine_slot *slot)
{
    struct resp *r = &qp->resp;
    if (slot->status < 0) {
        if (qp->state == QPS_ERR)
            return false;
        if (r->rd)
            rd_abandon(qp);
        resp_fail(e, qp, REFUSE_READ_GONE, psn(slot->psn), false);
        return false;
    }
    if (r->fatal == FATAL_SENT && slot->kind == SLOT_RESP && slot->psn == r->nak_psn.v)
        qp_to_error(e, qp, false, r->fatal_ev); /* RSP-22 */
    return true;
}

bool resp_owes(const struct qp *qp)
{
    return qp->resp.ack_owed;
}
