/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The RC responder: judge a request against the requests accepted so far, and put its effects into
 * records, which commit in order (resp_commit.c). Rules: RSP, RNR-01..03, ACK-08, RD-01, RD-03,
 * ATM-03, ATM-04, ATM-12, ATM-13, XRC-02.
 */
#include "responder.h"

#include <string.h>

#include "cnp.h"
#include "engine_priv.h"
#include "limiter.h"
#include "place.h"
#include "rd_ring.h"
#include "recorder.h"
#include "recovery.h"
#include "refusal.h"
#include "resp_commit.h"
#include "resp_recovery.h"
#include "resp_tx.h"
#include "resp_uc.h"
#include "rx.h"
#include "schedule.h"
#include "srq.h"

/* Append a record without copies: it commits when its turn comes, in the next resp_run. */
static struct record *act(struct rx *rx, struct qp *qp, enum resp_action action, psn_t p)
{
    struct record *rec = record_new(rx->e, qp, REC_RESP);
    rec->action = (uint8_t)action;
    rec->psn = rec->at = p;
    return rec;
}

/* ---- refusals ---- */

static enum engine_counter refusal_counter(enum refusal why)
{
    switch (refusals[why].syndrome) {
    case WIRE_SYN_NAK_ACCESS:
        return ENGINE_C_tx_nak_rem_access;
    case WIRE_SYN_NAK_OP:
        return ENGINE_C_tx_nak_rem_op;
    default:
        return ENGINE_C_tx_nak_inv_req;
    }
}

/* RSP-22: nothing more is accepted; the NAK is sent when all requests before it have been executed.
 */
void resp_refuse(struct rx *rx, struct qp *qp, enum refusal why)
{
    struct resp *r = &qp->resp;
    if (qp->type == QP_RC)
        rx->f->drop = (uint16_t)refusal_counter(why); /* counted when sent */
    else
        rx_drop(rx, ENGINE_C_uc_drop_msg);
    r->fatal = FATAL_DECIDED;
    struct record *rec = act(rx, qp, ACT_REFUSE, psn(rx->pkt.psn));
    rec->arg = why | (r->wqe ? ACT_F_REFUSE_WQE : 0);
    resp_run(rx->e, qp, rx->now);
}

/* RNR-01, RNR-02: not executed, and silence until it comes again. */
static void refuse_rnr(struct rx *rx, struct qp *qp)
{
    engine_count(rx->e, ENGINE_C_out_of_buffer);
    rx->f->drop = ENGINE_C_out_of_buffer;
    qp->resp.quiet = 1;
    act(rx, qp, ACT_RNR, psn(rx->pkt.psn));
    resp_run(rx->e, qp, rx->now);
}

void resp_nak_gap(struct engine *e, struct qp *qp)
{
    qp->resp.quiet = 1;
    resp_owe_nak(e, qp, WIRE_SYN_NAK_SEQ, qp->resp.done_epsn);
}

/* RSP-02, ACK-08: once per gap. */
static void out_of_sequence(struct rx *rx, struct qp *qp)
{
    struct resp *r = &qp->resp;
    if (recovery_rx_early(rx, qp))
        return;
    rx_drop(rx, ENGINE_C_out_of_sequence);
    recorder_note(rx->e, qp, NOTE_RX_OOS, psn(rx->pkt.psn), r->epsn.v);
    rd_dropped(qp, psn(rx->pkt.psn));
    if (r->quiet)
        return;
    r->quiet = 1;
    if (qp->cc_conf->conf.v[CC_P_cnp_nak] && cnp_make(rx, qp)) /* CC-29 */
        engine_count(rx->e, ENGINE_C_roce_slow_restart_cnps);
    act(rx, qp, ACT_NAK, r->epsn);
    resp_run(rx->e, qp, rx->now);
}

/* RSP-20: acknowledge, never execute. */
static void duplicate(struct rx *rx, struct qp *qp)
{
    struct engine *e = rx->e;
    struct resp *r = &qp->resp;
    engine_count(e, ENGINE_C_duplicate_request);
    recorder_note(e, qp, NOTE_RX_DUP, psn(rx->pkt.psn), r->epsn.v);
    if (rx->op->flags & (WIRE_F_READ | WIRE_F_ATOMIC) || wire_is_placement(rx->pkt.opcode)) {
        enum refusal why = qp->xrc && !qp->xsrq ? REFUSE_XRC_SRQ : rd_duplicate(rx, qp);
        if (why != REFUSE_NONE)
            resp_refuse(rx, qp, why);
        else if (resp_tx_ready(qp))
            qp_activate(e, qp);
        return;
    }
    if (!rx->pkt.ackreq && !(rx->op->flags & WIRE_F_END))
        return;
    if (r->ack_owed && !r->recs.head)
        return; /* one for the whole burst */
    if (!rd_dup_token(qp, rx->now)) {
        rx_drop(rx, ENGINE_C_rx_dup_throttled);
    } else if (r->recs.head) { /* the original's copy may not be done yet */
        act(rx, qp, ACT_REACK, psn(rx->pkt.psn));
    } else {
        resp_owe_ack(e, qp);
    }
}

/* ---- requests in the expected position, checks in the order of RSP-01 ---- */

/* RSP-06. */
static enum refusal check_sequence(const struct resp *r, unsigned flags)
{
    if (r->in_msg == MSG_NONE)
        return flags & WIRE_F_START ? REFUSE_NONE : REFUSE_SEQUENCE;
    unsigned want = r->in_msg == MSG_SEND ? WIRE_F_SEND : WIRE_F_WRITE;
    return flags & want && !(flags & WIRE_F_START) ? REFUSE_NONE : REFUSE_SEQUENCE;
}

/* XRC-02: each packet of a message names one queue, which is there and in the domain. */
static enum refusal check_srq(struct rx *rx, struct qp *qp)
{
    if (!qp->xrc)
        return REFUSE_NONE;
    if (rx->op->flags & WIRE_F_START)
        qp->xsrqn = rx->pkt.xrc_srqn;
    return qp->xsrq && qp->xsrqn == rx->pkt.xrc_srqn ? REFUSE_NONE : REFUSE_XRC_SRQ;
}

/* The rights that a FLUSH needs, of queue pair and region. */
static unsigned flush_rights(const struct wire_pkt *p)
{
    return (p->feth & WIRE_FETH_GLOBAL ? MEM_FLUSH_GLOBAL : 0) |
           (p->feth & WIRE_FETH_PERSISTENT ? MEM_FLUSH_PERSISTENT : 0);
}

/* RSP-08, OPC-07. */
static enum refusal check_enabled(const struct rx *rx, const struct qp *qp)
{
    unsigned flags = rx->op->flags;
    if (flags & WIRE_F_SEND)
        return REFUSE_NONE;
    if (wire_is_placement(rx->pkt.opcode)) {
        unsigned need =
            rx->op->headers & WIRE_H_FETH ? flush_rights(&rx->pkt) : (unsigned)MEM_REMOTE_WRITE;
        return need & ~qp->attr.access_flags ? REFUSE_DISABLED : REFUSE_NONE;
    }
    unsigned need = flags & WIRE_F_WRITE    ? MEM_REMOTE_WRITE
                    : flags & WIRE_F_READ   ? MEM_REMOTE_READ
                    : flags & WIRE_F_ATOMIC ? MEM_REMOTE_ATOMIC
                                            : 0;
    return need & qp->access ? REFUSE_NONE : REFUSE_DISABLED;
}

/* RSP-10. The pad count (RSP-11) can't contradict the length once that is right: a packet is a
 * multiple of 4 octets long (HDR-05), and so is the MTU; a WRITE's is held against its RETH. */
enum refusal resp_check_length(const struct rx *rx, const struct qp *qp)
{
    uint32_t len = rx->pkt.payload_len, mtu = qp_mtu(qp);
    if (rx->op->flags & (WIRE_F_FIRST | WIRE_F_MIDDLE))
        return len == mtu ? REFUSE_NONE : REFUSE_PACKET_LEN;
    if (len > mtu || (rx->op->flags & WIRE_F_LAST && len == 0))
        return REFUSE_PACKET_LEN;
    return REFUSE_NONE;
}

enum refusal resp_send(struct rx *rx, struct qp *qp, struct record **last)
{
    struct resp *r = &qp->resp;
    if (r->wqe->malformed)
        return REFUSE_RECV_FORM;
    enum refusal why = resp_check_length(rx, qp);
    if (why != REFUSE_NONE)
        return why;
    uint32_t len = rx->pkt.payload_len;
    if (r->msg_off + (uint64_t)len > r->wqe->room)
        return REFUSE_TOO_LONG;
    if (r->msg_off + (uint64_t)len > WIRE_MSG_MAX)
        return REFUSE_MSG_LEN;
    const struct place_span span = {rx->payload, len};
    if (place_recv(rx, qp, r->wqe, r->msg_off, &span, 1, last))
        return REFUSE_RECV_KEY;
    r->msg_off += len;
    return REFUSE_NONE;
}

enum refusal resp_write(struct rx *rx, struct qp *qp, struct record **last)
{
    struct resp *r = &qp->resp;
    if (r->wqe && r->wqe->malformed)
        return REFUSE_RECV_FORM;
    enum refusal why = resp_check_length(rx, qp);
    if (why != REFUSE_NONE)
        return why;
    uint32_t len = rx->pkt.payload_len;
    if (rx->op->flags & WIRE_F_START) {
        if (rx->pkt.dma_len > WIRE_MSG_MAX)
            return REFUSE_MSG_LEN;
        r->msg_len = rx->pkt.dma_len;
    }
    uint64_t end = r->msg_off + (uint64_t)len;
    if (rx->op->flags & WIRE_F_END ? end != r->msg_len : end > r->msg_len)
        return REFUSE_WRITE_SUM;
    if (rx->op->flags & WIRE_F_START && r->msg_len > 0 && /* RSP-18: nothing to check for nothing */
        mem_check(rx->e->mem, resp_pd(qp), qp->qpn, rx->pkt.rkey, rx->pkt.va, r->msg_len,
                  MEM_REMOTE_WRITE, false, &r->wref))
        return REFUSE_RKEY;
    if (place_write(rx, qp, &r->wref, r->msg_off, last))
        return REFUSE_REVOKED;
    r->msg_off = (uint32_t)end;
    return REFUSE_NONE;
}

void resp_packet_done(struct rx *rx, struct qp *qp, struct record *rec)
{
    unsigned flags = rx->op->flags;
    struct resp *r = &qp->resp;
    if (!rec) {
        rec = record_new(rx->e, qp, REC_RESP);
        rec->at = psn(rx->pkt.psn);
    }
    rec->action = flags & WIRE_F_END ? ACT_END : ACT_PACKET;
    rec->psn = psn(rx->pkt.psn);
    rec->arg |= (rx->pkt.ackreq ? ACT_F_ACKREQ : 0) | (r->wqe ? ACT_F_WQE : 0) |
                (flags & WIRE_F_WRITE ? ACT_F_WRITE : 0);
    rx->share[REC_RESP] =
        flags & (WIRE_F_FIRST | WIRE_F_MIDDLE) && !recovery_keeps_early(qp) ? rec : NULL;
    r->in_msg = flags & WIRE_F_SEND ? MSG_SEND : MSG_WRITE;
    if (flags & WIRE_F_END) {
        r->in_msg = MSG_NONE;
        r->wqe = NULL;
        rec->se = rx->pkt.se;
        rec->len = flags & WIRE_F_SEND ? r->msg_off : r->msg_len;
        if (flags & WIRE_F_IMM) {
            rec->arg |= ACT_F_IMM;
            rec->imm = rx->pkt.imm;
        }
        if (flags & WIRE_F_INV) { /* at once: later packets may not use the key any more */
            rec->arg |= ACT_F_INV;
            rec->imm = rx->pkt.rkey;
            if (mem_invalidate(rx->e->mem, resp_pd(qp), qp->qpn, rx->pkt.rkey, true)) {
                rec->arg |= ACT_F_INV_BAD;
                r->fatal = FATAL_DECIDED;
            } else if (r->rd) {
                rd_invalidated(qp, rx->pkt.rkey);
            }
        }
    }
    if (flags & WIRE_F_WRITE && flags & WIRE_F_START)
        engine_count(rx->e, ENGINE_C_rx_write_requests);
}

bool resp_have_wqe(struct rx *rx, struct qp *qp)
{
    struct resp *r = &qp->resp;
    unsigned flags = rx->op->flags;
    bool needed = flags & WIRE_F_SEND ? (flags & WIRE_F_START) != 0 : (flags & WIRE_F_IMM) != 0;
    if (needed && !r->wqe)
        r->wqe = recovery_take(rx->e, qp);
    return !needed || r->wqe;
}

static enum refusal send_or_write(struct rx *rx, struct qp *qp, uint32_t *npsn)
{
    unsigned flags = rx->op->flags;
    struct record *last = NULL;
    if (!resp_have_wqe(rx, qp))
        return REFUSE_RNR;
    if (flags & WIRE_F_START)
        qp->resp.msg_off = 0;
    enum refusal why = flags & WIRE_F_SEND ? resp_send(rx, qp, &last) : resp_write(rx, qp, &last);
    if (why != REFUSE_NONE)
        return why;
    resp_packet_done(rx, qp, last);
    *npsn = 1;
    return REFUSE_NONE;
}

/* RD-03: READs above the limit wait in the ring or, if so configured, at the requester. */
static enum refusal check_room(const struct engine *e, const struct qp *qp)
{
    bool rnr = e->p.rnr_on_rd_res && qp->attr.max_dest_rd_atomic > 0; /* RNR-11 */
    if (rd_room(qp, rnr ? 1 : 2))
        return REFUSE_NONE;
    return rnr ? REFUSE_RNR : REFUSE_RESOURCES;
}

static enum refusal read_request(struct rx *rx, struct qp *qp, uint32_t *npsn)
{
    const struct wire_pkt *p = &rx->pkt;
    struct mem_ref ref = {0};
    enum refusal why = check_room(rx->e, qp);
    if (why != REFUSE_NONE)
        return why;
    if (p->dma_len > WIRE_MSG_MAX)
        return REFUSE_MSG_LEN;
    if (p->dma_len > 0 && mem_check(rx->e->mem, resp_pd(qp), qp->qpn, p->rkey, p->va, p->dma_len,
                                    MEM_REMOTE_READ, false, &ref))
        return REFUSE_RKEY;
    *npsn = psn_count(p->dma_len, qp->mtu_shift);
    rd_accept(rx, qp, &ref, *npsn);
    act(rx, qp, ACT_READ, psn(p->psn))->len = *npsn;
    engine_count(rx->e, ENGINE_C_rx_read_requests);
    return REFUSE_NONE;
}

/* ATM-03, ATM-04, ATM-12: the 8 octets of an atomic. They can't change at once if they lie in two
 * pieces of memory or are not aligned. */
static enum refusal atomic_word(const struct rx *rx, const struct qp *qp, unsigned right,
                                struct mem_ref *ref, struct mem_piece *word)
{
    const struct wire_pkt *p = &rx->pkt;
    if (p->va & 7)
        return REFUSE_ALIGN;
    if (mem_check(rx->e->mem, resp_pd(qp), qp->qpn, p->rkey, p->va, 8, right, false, ref))
        return REFUSE_RKEY;
    if (mem_pieces(rx->e->mem, ref, 0, 8, word, 1) != 1 || word->off & 7)
        return REFUSE_RKEY;
    return REFUSE_NONE;
}

static enum refusal atomic_request(struct rx *rx, struct qp *qp, uint32_t *npsn)
{
    const struct wire_pkt *p = &rx->pkt;
    struct mem_ref ref;
    struct mem_piece piece;
    enum refusal why = check_room(rx->e, qp);
    if (why == REFUSE_NONE)
        why = atomic_word(rx, qp, MEM_REMOTE_ATOMIC, &ref, &piece);
    if (why != REFUSE_NONE)
        return why;
    rd_accept(rx, qp, &ref, 1);
    struct record *rec = act(rx, qp, ACT_ATOMIC, psn(p->psn));
    rec->len = 1;
    record_hold(rx->e, rec, &ref);
    bool cas = (p->opcode & 0x1F) == WIRE_CMP_SWAP;
    struct engine_copy *c = record_copy(rx, rec, cas ? ENGINE_CAS : ENGINE_FADD, NULL, &piece);
    c->a = p->swap_add;
    c->b = p->compare;
    engine_count(rx->e, ENGINE_C_rx_atomic_requests);
    *npsn = 1;
    return REFUSE_NONE;
}

/* ATM-12: 8 octets, all at once. */
static enum refusal atomic_write_request(struct rx *rx, struct qp *qp)
{
    const struct wire_pkt *p = &rx->pkt;
    struct mem_ref ref;
    struct mem_piece piece;
    enum refusal why = check_room(rx->e, qp);
    if (why != REFUSE_NONE)
        return why;
    if (p->payload_len != 8)
        return REFUSE_PACKET_LEN;
    if (p->dma_len != 8)
        return REFUSE_WRITE_SUM;
    why = atomic_word(rx, qp, MEM_REMOTE_WRITE, &ref, &piece);
    if (why != REFUSE_NONE)
        return why;
    rd_accept(rx, qp, &ref, 1);
    struct record *rec = act(rx, qp, ACT_ATOMIC, psn(p->psn));
    rec->len = 1;
    record_hold(rx->e, rec, &ref);
    memcpy(&record_copy(rx, rec, ENGINE_STORE, NULL, &piece)->a, rx->payload, 8);
    engine_count(rx->e, ENGINE_C_rx_atomic_requests);
    return REFUSE_NONE;
}

/* ATM-13: a FLUSH is answered once the requests before it have been copied. The copies are then
 * visible to all, so the responder has nothing else to do. */
static enum refusal flush_request(struct rx *rx, struct qp *qp)
{
    const struct wire_pkt *p = &rx->pkt;
    struct mem_ref ref;
    bool region = p->feth & WIRE_FETH_REGION;
    enum refusal why = check_room(rx->e, qp);
    if (why != REFUSE_NONE)
        return why;
    if (!flush_rights(p) || p->feth & (WIRE_FETH_PLACEMENT | WIRE_FETH_SELECT) &
                                ~(WIRE_FETH_GLOBAL | WIRE_FETH_PERSISTENT | WIRE_FETH_REGION))
        return REFUSE_FLUSH;
    if (!region && p->dma_len > WIRE_MSG_MAX)
        return REFUSE_MSG_LEN;
    if (region ? mem_check_key(rx->e->mem, resp_pd(qp), qp->qpn, p->rkey, flush_rights(p))
               : mem_check(rx->e->mem, resp_pd(qp), qp->qpn, p->rkey, p->va, p->dma_len,
                           flush_rights(p), false, &ref))
        return REFUSE_RKEY;
    ref = (struct mem_ref){0};
    rd_accept(rx, qp, &ref, 1);
    act(rx, qp, ACT_READ, psn(p->psn))->len = 1;
    engine_count(rx->e, ENGINE_C_rx_flush_requests);
    return REFUSE_NONE;
}

void resp_expected(struct rx *rx, struct qp *qp)
{
    struct resp *r = &qp->resp;
    unsigned flags = rx->op->flags;
    uint32_t npsn = 1;
    r->quiet = 0;
    enum refusal why = check_sequence(r, flags);
    if (why == REFUSE_NONE)
        why = check_srq(rx, qp);
    if (why == REFUSE_NONE)
        why = check_enabled(rx, qp);
    if (why == REFUSE_NONE)
        why = flags & WIRE_F_READ                    ? read_request(rx, qp, &npsn)
              : flags & WIRE_F_ATOMIC                ? atomic_request(rx, qp, &npsn)
              : flags & (WIRE_F_SEND | WIRE_F_WRITE) ? send_or_write(rx, qp, &npsn)
              : rx->op->headers & WIRE_H_FETH        ? flush_request(rx, qp)
                                                     : atomic_write_request(rx, qp);
    if (why == REFUSE_RNR) {
        refuse_rnr(rx, qp);
        return;
    }
    if (why != REFUSE_NONE) {
        resp_refuse(rx, qp, why);
        return;
    }
    r->epsn = psn_add(r->epsn, npsn); /* RSP-03 */
    resp_comm_est(rx, qp);
    if (!(flags & WIRE_F_MIDDLE))
        recorder_note(rx->e, qp, NOTE_RX_REQ, psn(rx->pkt.psn), rx->pkt.opcode);
    resp_run(rx->e, qp, rx->now);
    if (!rx->early)
        recovery_placed(rx, qp);
}

/* Add one more packet in the middle of a message to the record of those before it. They have passed
 * the other checks of RSP-01, and the checked range is no longer than the WRITE, or the receive.
 * False: it is no such packet, or it has a fault. */
static bool middle(struct rx *rx, struct qp *qp)
{
    struct resp *r = &qp->resp;
    struct record *rec = rx_shared(rx, qp, REC_RESP);
    if (!rec || rx->pkt.psn != r->epsn.v || rx->pkt.payload_len != qp_mtu(qp) ||
        r->msg_off + qp_mtu(qp) > WIRE_MSG_MAX)
        return false;
    unsigned op = rec->arg & ACT_F_WRITE ? WIRE_WRITE_MIDDLE : WIRE_SEND_MIDDLE;
    if (rx->pkt.opcode != WIRE_OPCODE(WIRE_RC, op) || place_more(rx, rec, r->msg_off - rec->va))
        return false;
    rec->psn = r->epsn;
    rec->arg |= rx->pkt.ackreq ? ACT_F_ACKREQ : 0;
    r->msg_off += rx->pkt.payload_len;
    r->epsn = psn_add(r->epsn, 1); /* RSP-03 */
    return true;
}

void resp_comm_est(struct rx *rx, struct qp *qp)
{
    struct engine *e = rx->e;
    if (qp->resp.comm_est)
        return;
    qp->resp.comm_est = 1;
    if (qp->state == QPS_RTR) /* RSP-26; in RTS the consumer has been told */
        engine_event(e, EVT_COMM_EST, qp->arg);
    if (e->p.hooks.comm_est)
        e->p.hooks.comm_est(e->p.hook_arg, qp->arg, qp->qpn);
}

void resp_rx(struct rx *rx, struct qp *qp)
{
    struct resp *r = &qp->resp;
    if (middle(rx, qp))
        return;
    if (r->fatal) { /* RSP-05 */
        rx_drop(rx, ENGINE_C_rx_bad_qp_state);
        return;
    }
    if (rx->e->records.nfree < PLACE_RECORDS + 1) { /* SEC-29: as if lost on the way */
        rx_drop(rx, ENGINE_C_rx_copy_pending);
        return;
    }
    if (qp->type == QP_UC) {
        uc_rx(rx, qp);
        return;
    }
    if (__builtin_expect(qp->xrc, 0))
        qp->xsrq = srq_named(rx->e, qp, rx->pkt.xrc_srqn);
    recovery_drain(rx->e, qp, rx->now);
    int32_t d = psn_diff(psn(rx->pkt.psn), r->epsn); /* PSN-04 */
    if (d > 0)
        out_of_sequence(rx, qp);
    else if (d < 0)
        duplicate(rx, qp);
    else
        resp_expected(rx, qp);
}
