/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Requester: cuts the work requests that have been started into packets. A packet is a pure
 * function of (work request, packet number), so sending again after a go-back takes the same path.
 * Rules: REQ-08..16, HDR-03, HDR-09, PSN-03, PSN-06, ACK-15, UC-02, UD-03, KEY-08.
 */
#include "requester.h"

#include <string.h>

#include "comp_retire.h"
#include "engine_priv.h"
#include "limiter.h"
#include "recorder.h"
#include "recovery.h"
#include "req_recovery.h"
#include "retransmit.h"
#include "schedule.h"
#include "send_queue.h"
#include "slot.h"

#define ACKREQ_EVERY 64u /* REQ-10: K = min(64, window / 4) */

/* ---- may a packet be sent? ---- */

/* ACK-15: may packet `pkt` of this message go with the current credits? Once its first packet is
 * acknowledged the rest needs none: an update of credits comes only once and may be lost, and no
 * timer runs. */
static bool credit(const struct qp *qp, const struct swqe *w, uint32_t pkt)
{
    if (!qp->credits || !wr_infos[w->opcode].takes_recv)
        return true;
    int32_t ahead = psn_diff(psn(w->ssn), psn(qp->req.lsn));
    return ahead <= 0 || (ahead == 1 && (pkt == 0 || psn_diff(qp->req.una, w->first) > 0));
}

/* Is there a packet that may be sent now? Starts the next work request when its turn has come: the
 * packet before it must know whether to ask for an answer (REQ-10). */
static bool more(struct engine *e, struct qp *qp)
{
    struct req *r = &qp->req;
    if (r->rnr_wait || r->fail || (qp->state != QPS_RTS && qp->state != QPS_SQD))
        return false;
    struct swqe *w;
    for (;;) {
        if (r->cur == r->started) {
            if (r->cur == r->tail || sq_begin(e, qp) != SQ_OK)
                return false;
        }
        w = req_wqe(qp, r->cur);
        if (w->npsn)
            break;
        r->cur++; /* a local operation: done */
        r->pkt = 0;
    }
    if (w->error)
        return false;
    if (!psn_eq(r->nxt, r->max))
        return psn_ahead(r->nxt, r->una) < r->window || r->asking; /* sent before */
    uint32_t out = psn_ahead(r->max, r->una);
    uint32_t takes = wr_infos[w->opcode].kind == WR_MESSAGE ? 1 : w->npsn;
    return out - r->rd_psns < r->window && out + takes <= PSN_HALF && /* PSN-03 */
           credit(qp, w, r->pkt);
}

/* ---- packets ---- */

/* The pieces of octets [off, off + len) of the message. False: a region has gone. */
static bool gather(struct engine *e, struct qp *qp, struct swqe *w, uint32_t off, uint32_t len,
                   struct engine_slot *slot)
{
    union swqe_sge *s = req_sges(qp, w);
    unsigned n = 0;
    for (unsigned i = 0; len && i < w->nsge; i++) {
        uint64_t have = s[i].ref.len;
        if (off >= have) {
            off -= (uint32_t)have;
            continue;
        }
        uint32_t take = have - off < len ? (uint32_t)(have - off) : len;
        int k = mem_pieces(e->mem, &s[i].ref, off, take, slot->pieces + n, ENGINE_TX_PIECES - n);
        if (k < 0)
            return false;
        n += (unsigned)k;
        len -= take;
        off = 0;
    }
    slot->npieces = (uint16_t)n;
    return len == 0;
}

static uint8_t message_op(const struct wr_info *info, uint32_t pkt, uint32_t npsn)
{
    if (npsn == 1)
        return info->only;
    return pkt == 0 ? info->first : pkt == npsn - 1 ? info->last : info->middle;
}

static bool same_path(const struct engine_av *a, const struct engine_av *b)
{
    return !memcmp(&a->dgid, &b->dgid, sizeof(a->dgid)) &&
           !memcmp(&a->sgid, &b->sgid, sizeof(a->sgid)) && !memcmp(a->dmac, b->dmac, 6) &&
           a->tclass == b->tclass && a->hop_limit == b->hop_limit && a->sl == b->sl &&
           a->flow_label == b->flow_label;
}

/* The template holds the last datagram's path; most go to the same peer as the one before. */
static void datagram_template(struct engine *e, struct qp *qp, const struct swqe_dest *d)
{
    const struct engine_av *av = &d->av;
    /* Queue pair 1 names its P_Key in each (KEY-04). */
    if (qp->tmpl.len && qp->type != QP_GSI && qp->dest_qpn == d->rqpn &&
        same_path(&qp->attr.av, av))
        return;
    struct wire_pkt p = engine_path(e, av, qp->qpn, d->rqpn);
    p.opcode = WIRE_OPCODE(WIRE_UD, WIRE_SEND_ONLY);
    p.pkey = qp->type == QP_GSI ? engine_pkey(e, d->pkey_index) : qp->pkey;
    p.migreq = qp->type != QP_GSI; /* HDR-04 */
    wire_tmpl_init(&qp->tmpl, &p);
    qp->tclass = av->tclass;
    qp->attr.av = *av;
    qp->dest_qpn = d->rqpn;
}

/* The contents of packet r->pkt of w, without AckReq. */
static bool describe(struct engine *e, struct qp *qp, struct swqe *w, struct wire_var *v,
                     struct engine_slot *slot)
{
    struct req *r = &qp->req;
    const struct wr_info *info = &wr_infos[w->opcode];
    uint32_t off = r->pkt << qp->mtu_shift;
    uint8_t op = info->only;
    *v = (struct wire_var){.psn = r->nxt.v, .va = w->va, .rkey = w->rkey, .imm = w->imm};
    slot->npieces = 0;
    switch (info->kind) {
    case WR_READ: /* RD-12: from the first missing octet */
        v->va += off;
        v->dma_len = w->len - off;
        if (recovery_read_part(qp))
            v->dma_len = recovery_read_part(qp) << qp->mtu_shift;
        break;
    case WR_ATOMIC:
        v->swap_add = w->opcode == WR_ATOMIC_CMP_AND_SWP ? w->swap : w->compare_add;
        v->compare = w->opcode == WR_ATOMIC_CMP_AND_SWP ? w->compare_add : 0;
        break;
    case WR_PLACEMENT:
        v->dma_len = w->opcode == WR_FLUSH ? (uint32_t)w->compare_add : w->len;
        v->feth = w->imm;
        v->payload_len = w->len;
        if (w->nsge && !gather(e, qp, w, 0, w->len, slot))
            return false;
        break;
    default:
        op = message_op(info, r->pkt, w->npsn);
        v->dma_len = w->len;
        v->payload_len = w->len - off < qp_mtu(qp) ? w->len - off : qp_mtu(qp);
        if (wire_opcodes[op].headers & WIRE_H_IETH)
            v->rkey = w->imm; /* the key to invalidate */
        v->se = info->se && w->wr_flags & WR_F_SOLICITED && r->pkt == w->npsn - 1;
        if (w->nsge && !gather(e, qp, w, off, v->payload_len, slot))
            return false;
    }
    v->opcode = qp->type == QP_RC ? qp_opcode(qp, op)
                                  : WIRE_OPCODE(qp->type == QP_UC ? WIRE_UC : WIRE_UD, op);
    if (qp->xrc)
        v->xrc_srqn = swqe_xrc(w)->srqn;
    recovery_describe(qp, v, w->compare_add, r->pkt);
    return true;
}

/* Move on past the packet just described. */
static void advance(struct qp *qp, const struct swqe *w, uint64_t now)
{
    struct req *r = &qp->req;
    bool read = wr_infos[w->opcode].kind == WR_READ;
    bool again = !psn_eq(r->nxt, r->max);
    uint32_t n = read ? w->npsn - r->pkt : 1;
    psn_t p = r->nxt;
    if (read && recovery_read_part(qp))
        n = recovery_read_part(qp);
    if (read && r->pkt) {
        r->restart_pkt = r->pkt;
        r->restart_set = 1;
    }
    if (again)
        qp->stats.retransmits++;
    r->nxt = psn_add(r->nxt, n);
    r->asking = 0;
    r->pkt += n;
    if (r->pkt == w->npsn) {
        r->cur++;
        r->pkt = 0;
    }
    if (again && psn_diff(r->nxt, r->again) > 0)
        r->again = r->nxt;
    recovery_sent(qp, p, again, now);
    if (psn_ahead(r->nxt, r->una) > psn_ahead(r->max, r->una)) {
        if (wr_infos[w->opcode].kind != WR_MESSAGE)
            r->rd_psns += n;
        r->max = r->nxt;
    }
}

/* REQ-10: the interval of packets that ask for an acknowledgement. */
static uint32_t ackreq_every(const struct req *r)
{
    return r->window / 4 < ACKREQ_EVERY ? r->window / 4 : ACKREQ_EVERY;
}

/* REQ-10, REQ-11: does this packet ask for an acknowledgement? */
static bool wants_ack(const struct qp *qp, const struct swqe *w, bool last, bool goes_on,
                      bool round_end)
{
    return !goes_on || round_end || qp->req.since_ackreq + 1 >= ackreq_every(&qp->req) ||
           (last && (qp->sq_sig_all || w->wr_flags & WR_F_SIGNALED)) ||
           (qp->lim && limiter_pauses(qp));
}

/* One packet into the slot; *goes_on = another may follow. False: its memory has gone. */
static bool emit(struct engine *e, struct qp *qp, struct engine_slot *slot, bool *goes_on)
{
    struct req *r = &qp->req;
    struct swqe *w = req_wqe(qp, r->cur);
    struct wire_var v;
    if (!qp_connected(qp)) {
        const struct swqe_dest *d = swqe_dest(w);
        datagram_template(e, qp, d);
    }
    uint32_t off = r->pkt << qp->mtu_shift;
    if (!describe(e, qp, w, &v, slot)) {
        w->error = WC_LOC_PROT_ERR; /* RTX-06 */
        *goes_on = false;
        return false;
    }
    unsigned npieces = slot->npieces;
    bool again = !psn_eq(r->nxt, r->max);
    bool last = r->pkt == w->npsn - 1;
    enum slot_kind kind = SLOT_REQ;
    advance(qp, w, e->now);
    if (again)
        engine_count(e, ENGINE_C_tx_retransmit);
    *goes_on = more(e, qp);
    if (qp->type == QP_RC) {
        bool message = wr_infos[w->opcode].kind == WR_MESSAGE;
        v.ackreq = message && wants_ack(qp, w, last, *goes_on, again && psn_eq(r->nxt, r->max));
        r->since_ackreq = v.ackreq ? 0 : r->since_ackreq + 1;
        if (v.ackreq || !message) {
            kind = again ? SLOT_REQ_OBLIGE_AGAIN : SLOT_REQ_OBLIGE;
            if (!r->obliged || psn_diff(r->nxt, r->ob_end) > 0)
                r->ob_end = r->nxt;
            r->obliged = 1;
        }
    } else {
        if (last)
            kind = SLOT_REQ_END;
        if (qp->type != QP_UC) {
            const struct swqe_dest *d = swqe_dest(w);
            v.qkey = d->rqkey & 0x80000000u ? qp->qkey : d->rqkey; /* KEY-08 */
            v.sqpn = qp->qpn;
        }
    }
    engine_slot_emit(qp, slot, &v, kind);
    slot->npieces = (uint16_t)npieces;
    if (w->inline_len)
        memcpy(slot->buf + slot->payload_off, swqe_body(qp, w) + off, v.payload_len);
    /* The flight recorder has a dozen events: none for the middle of a message. */
    if (again || !(wire_opcodes[v.opcode].flags & WIRE_F_MIDDLE))
        recorder_note(e, qp, NOTE_TX, psn(v.psn), v.opcode);
    return true;
}

/* The number of middle packets of the current message that emit_middles may send now: first
 * transmissions that need no checks of their own. The window still has room for one more packet. A
 * message of several packets isn't inline, and credit for its second packet is credit for all. */
static unsigned middles(const struct qp *qp, const struct swqe *w)
{
    const struct req *r = &qp->req;
    _Static_assert(ENGINE_INLINE_MAX <= 256, "the smallest MTU");
    if (qp->type != QP_RC || qp->xrc || recovery_keeps_early(qp) || !psn_eq(r->nxt, r->max) ||
        wr_infos[w->opcode].kind != WR_MESSAGE)
        return 0;
    uint32_t out = psn_ahead(r->max, r->una);
    uint32_t room = r->window - (out - r->rd_psns) - 1;
    uint32_t left = w->npsn - r->pkt - 1;
    if (room > PSN_HALF - out - 1)
        room = PSN_HALF - out - 1;
    return left < room ? left : room;
}

/* Fill up to n slots with packets of the middle of a message. They differ from the packet just
 * emitted only in place, PSN and acknowledge request. Call it while more() is true; it is still
 * true afterwards. Returns the number of slots filled. */
static unsigned emit_middles(struct engine *e, struct qp *qp, struct engine_slot *slots, unsigned n)
{
    struct req *r = &qp->req;
    struct swqe *w = req_wqe(qp, r->cur);
    const uint32_t mtu = qp_mtu(qp);
    struct wire_var v = {.opcode = WIRE_OPCODE(WIRE_RC, wr_infos[w->opcode].middle),
                         .payload_len = mtu};
    struct slot_run run;
    struct mem_piece all;
    unsigned m = middles(qp, w);
    if (m > n)
        m = n;
    if (!m ||
        mem_pieces(e->mem, &req_sges(qp, w)->ref, r->pkt << qp->mtu_shift, m * mtu, &all, 1) != 1)
        return 0; /* emit finds the reason */
    engine_run_begin(qp, &run, &v);
    all.len = mtu;
    const uint32_t every = ackreq_every(r);
    unsigned i;
    for (i = 0; i < m; i++, all.off += mtu) {
        if (qp->lim && !limiter_check(e, qp, e->now))
            break;
        bool ackreq = r->since_ackreq + 1 >= every || (qp->lim && limiter_pauses(qp));
        engine_run_next(qp, &run, &slots[i], r->nxt, ackreq, ackreq ? SLOT_REQ_OBLIGE : SLOT_REQ,
                        all);
        r->nxt = r->max = psn_add(r->nxt, 1);
        r->since_ackreq = ackreq ? 0 : r->since_ackreq + 1;
        if (ackreq) {
            r->ob_end = r->nxt;
            r->obliged = 1;
        }
        if (qp->lim)
            limiter_charge(qp, run.len, e->now);
    }
    r->pkt += i;
    return i;
}

/* Sending has stopped. If no packet in flight obliges the peer to answer, and no packet still to be
 * sent can, ask for an acknowledgement now. Otherwise these requests would never complete. */
static void settle(struct engine *e, struct qp *qp)
{
    struct req *r = &qp->req;
    psn_t limit = r->nxt;
    if (r->rnr_wait || r->fail || qp->type != QP_RC)
        return;
    if (r->cur != r->started && req_wqe(qp, r->cur)->error)
        limit = req_wqe(qp, r->cur)->first;
    if (psn_diff(limit, r->una) > 0 && !(r->obliged && psn_diff(r->ob_end, limit) >= 0)) {
        rtx_go_back(e, qp, psn_prev(limit));
        r->asking = 1;
    }
}

unsigned req_tx(struct engine *e, struct qp *qp, struct engine_slot *slots, unsigned n,
                uint64_t now)
{
    struct req *r = &qp->req;
    unsigned k = 0;
    if (qp->state != QPS_RTS && qp->state != QPS_SQD)
        return 0;
    bool goes_on = n && more(e, qp);
    if (goes_on)
        recovery_hello(e, qp, now);
    while (k < n) {
        if (goes_on) {
            if (qp->lim && !limiter_check(e, qp, now))
                break;
            if (emit(e, qp, &slots[k], &goes_on)) {
                if (qp->lim)
                    limiter_charge(qp, slots[k].len, now);
                k++;
                if (goes_on && r->pkt) /* within a message */
                    k += emit_middles(e, qp, slots + k, n - k);
            }
            continue;
        }
        uint32_t head = r->head;
        comp_retire(e, qp); /* local operations, and local errors whose turn has come */
        if (qp->state != QPS_RTS && qp->state != QPS_SQD)
            break;
        psn_t nxt = r->nxt;
        settle(e, qp);
        if (head == r->head && psn_eq(nxt, r->nxt))
            break;
        goes_on = more(e, qp);
    }
    return k;
}

bool req_sent(struct engine *e, struct qp *qp, const struct engine_slot *slot, uint64_t now)
{
    struct req *r = &qp->req;
    if (qp->state != QPS_RTS && qp->state != QPS_SQD)
        return false;
    if (slot->status < 0) { /* REQ-08 */
        rtx_go_back(e, qp, psn(slot->psn));
        if (r->cur != r->started) {
            req_wqe(qp, r->cur)->error = WC_LOC_PROT_ERR;
            recorder_error(e, qp, "REQ-08 memory to send from can't be read, psn 0x%06x",
                           slot->psn);
        }
        return false;
    }
    if (qp->type != QP_RC) { /* UC-02, UD-13: sent is complete */
        r->una = r->done = psn_add(psn(slot->psn), 1);
        if (slot->kind == SLOT_REQ_END)
            comp_retire(e, qp);
        return true;
    }
    if (slot->kind != SLOT_REQ) {
        if (qp->t_ack && r->ack_at == TIMER_NEVER) { /* TMR-02, TMR-09 */
            r->ack_at = now + recovery_timeout(qp);
            qp_rearm(e, qp);
        }
        if (r->probe)
            rtx_probe_arm(e, qp, false, now);
        if (!r->rtt_at && slot->kind == SLOT_REQ_OBLIGE) {
            r->rtt_psn = psn(slot->psn);
            r->rtt_at = now;
        }
    }
    return true;
}
