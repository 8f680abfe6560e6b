/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Selective repeat: the receiver of requests. See sr.h.
 */
#include "sr_receiver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine_priv.h"
#include "limiter.h"
#include "place.h"
#include "rd_ring.h"
#include "recorder.h"
#include "refusal.h"
#include "resp_commit.h"
#include "responder.h"
#include "rx.h"
#include "schedule.h"
#include "slot.h"
#include "srq.h"

#define AHEAD_MAX 64u /* receive work requests taken for messages that came early */

/* ---- selective NAKs ---- */

static struct sr_early *early_at(struct sr *s, psn_t p)
{
    return &s->early[p.v % SR_WINDOW];
}

/* Has a packet come, within the window? */
static bool has_come(const struct qp *qp, psn_t p)
{
    return psn_diff(p, qp->resp.epsn) < 0 || early_at(qp->sr, p)->valid;
}

void sr_emit(struct engine *e, struct qp *qp, struct engine_slot *slot)
{
    struct sr *s = qp->sr;
    struct wire_var v = {
        .opcode = WIRE_OPCODE(WIRE_RC, WIRE_ACKNOWLEDGE),
        .selective = true,
        .psn = qp->resp.done_epsn.v,
        .msn = qp->resp.done_msn,
        .syndrome = WIRE_SYN_NAK_SEQ,
    };
    if (s->hello_owed) {
        s->hello_owed = 0;
        v.syndrome = WIRE_SYN_ACK;
        v.sel_psn = s->agreed; /* 1: an answer to a hello, which needs no answer */
    } else {
        psn_t p = s->sack[s->sack_head++ % SR_SACKS];
        v.sel_psn = has_come(qp, p) ? p.v : v.psn; /* epsn itself: nothing new has come */
        engine_count(e, ENGINE_C_tx_sack);
        recorder_note(e, qp, NOTE_TX_SACK, psn(v.psn), v.sel_psn);
    }
    engine_slot_emit(qp, slot, &v, SLOT_RESP);
}

static void owe_sack(struct engine *e, struct qp *qp, psn_t trigger)
{
    struct sr *s = qp->sr;
    if (s->sack_tail - s->sack_head == SR_SACKS)
        s->sack_head++; /* the oldest one is lost: its packet may be sent twice */
    s->sack[s->sack_tail++ % SR_SACKS] = trigger;
    qp_activate(e, qp);
}

/* ---- early packets ---- */

/* LR-06: a WRITE by its own RETH, or as part of the one under way. LR-09 keeps only the latter: a
 * later WRITE may go to the same octets as the missing packet, which would then overwrite it. */
static bool place_early_write(struct rx *rx, struct qp *qp, struct record **last)
{
    const struct wire_pkt *p = &rx->pkt;
    struct resp *r = &qp->resp;
    bool later = rx->op->flags & WIRE_F_START;
    if (!(qp->access & MEM_REMOTE_WRITE) || (later && qp->sr->mode == RECOVER_GBN_OOO))
        return false;
    if (p->payload_len == 0)
        return true;
    if (p->selective || later) {
        struct mem_ref ref;
        return p->dma_len >= p->payload_len &&
               !mem_check(rx->e->mem, qp->pd, qp->qpn, p->rkey, p->va, p->payload_len,
                          MEM_REMOTE_WRITE, false, &ref) &&
               !place_write(rx, qp, &ref, 0, last);
    }
    uint64_t off = r->msg_off + ((uint64_t)psn(p->psn - r->epsn.v).v << qp->mtu_shift);
    uint64_t end = off + p->payload_len;
    bool ends = rx->op->flags & WIRE_F_END;
    if (r->in_msg != MSG_WRITE || end > r->msg_len || ends != (end == r->msg_len))
        return false;
    return !place_write(rx, qp, &r->wref, off, last);
}

/* The n-th receive work request of the connection, taken early if needed. */
static struct rwqe *receive_at(struct rx *rx, struct qp *qp, uint32_t n)
{
    struct sr *s = qp->sr;
    int32_t k = psn_diff(psn(n), psn(s->receives));
    if (k == -1)
        return qp->resp.wqe; /* of the message under way */
    if (k < 0 || k >= (int32_t)AHEAD_MAX)
        return NULL;
    while (s->ahead <= (uint32_t)k) {
        struct rwqe *w = resp_take(rx->e, qp);
        if (!w)
            return NULL;
        if (s->ahead++ == 0)
            s->next = w;
    }
    struct rwqe *w = s->next;
    while (k-- > 0)
        w = w->next;
    return w;
}

static bool place_early_send(struct rx *rx, struct qp *qp, struct record **last)
{
    const struct wire_pkt *p = &rx->pkt;
    if (!p->selective)
        return false; /* the packet doesn't name its place */
    const struct rwqe *w = receive_at(rx, qp, p->sel_recv);
    uint64_t off = (uint64_t)p->sel_index << qp->mtu_shift;
    if (!w || w->malformed || off + p->payload_len > w->room)
        return false; /* in its turn it will be refused for that */
    const struct place_span span = {rx->payload, p->payload_len};
    return !place_recv(rx, qp, w, off, &span, 1, last);
}

/* ---- octets of later messages that are in memory already ---- */

/* Remember the places of the copies from `first` on. A SEND to more places needs no entry: receive
 * buffers share no octets with other packets. */
static void note_places(struct sr_early *ev, const struct rx *rx, unsigned first)
{
    for (unsigned i = 0; i < rx->ncopies - first && i < SR_PIECES; i++)
        ev->at[i] = rx->copies[first + i].dst;
}

/* Copy `c` shall be of `len` octets from `off` on. */
static void slice(struct engine_copy *c, uint64_t off, uint64_t len)
{
    c->src += off;
    c->dst.off += off;
    c->dst.len = c->len = (uint32_t)len;
}

/* Leave `hole` out of copy i of this packet. False: that makes it two, and there is no room. */
static bool leave_out(struct rx *rx, unsigned first, unsigned i, const struct mem_piece *hole)
{
    struct engine_copy *c = &rx->copies[i];
    struct record *rec = record_of(&rx->e->records, c->token);
    uint64_t begin = c->dst.off, end = begin + c->len, hole_end = hole->off + hole->len;
    if (c->kind != ENGINE_PUT || c->dst.obj != hole->obj || hole_end <= begin || hole->off >= end)
        return true;
    bool before = hole->off > begin, after = hole_end < end;
    if (before && after) {
        if (rx->ncopies - first == ENGINE_FRAME_COPIES)
            return false;
        struct engine_copy *rest = &rx->copies[rx->ncopies++];
        *rest = *c;
        slice(rest, hole_end - begin, end - hole_end);
        rec->pending++;
    }
    if (before) {
        slice(c, 0, hole->off - begin);
    } else if (after) {
        slice(c, hole_end - begin, end - hole_end);
    } else {
        rec->pending--;
        *c = rx->copies[--rx->ncopies];
    }
    return true;
}

static bool leave_out_all(struct rx *rx, unsigned first, const struct sr_early *later)
{
    for (unsigned k = 0; k < SR_PIECES && later->at[k].len; k++)
        for (unsigned i = rx->ncopies; i-- > first;)
            if (!leave_out(rx, first, i, &later->at[k]))
                return false;
    return true;
}

/* Cut octets that later packets have written out of a packet's copies, from `first` on. The later
 * packets arrived first, but memory must be as if they had arrived last. */
static void keep_later(struct rx *rx, struct qp *qp, unsigned first)
{
    struct sr *s = qp->sr;
    psn_t p = psn(rx->pkt.psn);
    while (rx->ncopies > first && psn_diff(s->top, p = psn_add(p, 1)) > 0) {
        struct sr_early *later = early_at(s, p);
        if (later->valid && !leave_out_all(rx, first, later)) {
            later->valid = false; /* it must be sent again */
            s->nearly--;
        }
    }
}

void sr_placed(struct rx *rx, struct qp *qp)
{
    if (qp->sr->nearly) {
        unsigned first = rx->ncopies;
        while (first > 0 && rx->copies[first - 1].frame == rx->frame)
            first--;
        keep_later(rx, qp, first);
        resp_run(rx->e, qp, rx->now); /* no copy may be left */
    }
    sr_drain(rx->e, qp, rx->now);
}

static bool place_early(struct rx *rx, struct qp *qp, struct sr_early *ev)
{
    struct record *last = NULL;
    bool placed = false;
    unsigned first = rx->ncopies;
    if (resp_check_length(rx, qp) != REFUSE_NONE)
        return false;
    if (rx->op->flags & WIRE_F_WRITE)
        placed = place_early_write(rx, qp, &last);
    else if (rx->op->flags & WIRE_F_SEND)
        placed = place_early_send(rx, qp, &last);
    if (last)
        last->psn = psn(rx->pkt.psn);
    note_places(ev, rx, first);
    if (qp->sr->nearly)
        keep_later(rx, qp, first);
    resp_run(rx->e, qp, rx->now); /* after a failure one may have no copies */
    return placed;
}

/* LR-15: the NAK for this early packet waits. */
static bool hold(struct rx *rx, struct qp *qp)
{
    struct sr *s = qp->sr;
    uint64_t delay = qp->cc_conf->conf.v[CC_P_reorder];
    if (!delay || qp->resp.quiet)
        return false;
    if (s->hold_at == TIMER_NEVER) {
        s->hold_at = rx->now + delay;
        qp_rearm(rx->e, qp);
    }
    return true;
}

void sr_expire(struct engine *e, struct qp *qp)
{
    struct sr *s = qp->sr;
    s->hold_at = TIMER_NEVER;
    if (s->sack_head == s->sack_tail && s->nearly && !qp->resp.quiet)
        resp_nak_gap(e, qp);
    qp_activate(e, qp);
}

/* Place an early packet that has not come before, and remember it. */
static bool keep_early(struct rx *rx, struct qp *qp, struct sr_early *ev)
{
    struct sr *s = qp->sr;
    psn_t p = psn(rx->pkt.psn);
    struct sr_early came = {
        .va = rx->pkt.va,
        .rkey = rx->pkt.rkey,
        .dma_len = rx->pkt.dma_len,
        .imm = rx->pkt.imm,
        .payload_len = (uint16_t)rx->pkt.payload_len,
        .opcode = rx->pkt.opcode,
        .valid = true,
        .se = rx->pkt.se,
        .ackreq = rx->pkt.ackreq,
    };
    if (!place_early(rx, qp, &came))
        return false;
    *ev = came;
    if (!s->nearly++ || psn_diff(s->top, p) <= 0)
        s->top = psn_add(p, 1);
    engine_count(rx->e, ENGINE_C_rx_placed_early);
    return true;
}

bool sr_rx_early(struct rx *rx, struct qp *qp)
{
    struct sr *s = qp->sr;
    struct resp *r = &qp->resp;
    psn_t p = psn(rx->pkt.psn);
    bool selective = s->agreed;
    if (s->mode == RECOVER_SR && !selective)
        return false;
    struct sr_early *ev = early_at(s, p);
    bool placed = false;
    if (psn_diff(p, r->epsn) < (int32_t)SR_WINDOW)
        placed = ev->valid || keep_early(rx, qp, ev);
    bool held = placed && hold(rx, qp);
    if (!selective) { /* LR-09: the wire shows only go-back-N */
        if (held)
            engine_count(rx->e, ENGINE_C_out_of_sequence);
        return held;
    }
    recorder_note(rx->e, qp, NOTE_RX_OOS, p, r->epsn.v);
    if (placed) {
        engine_count(rx->e, ENGINE_C_out_of_sequence);
        owe_sack(rx->e, qp, p);
        return true;
    }
    rx_drop(rx, ENGINE_C_out_of_sequence);
    rd_dropped(qp, p);
    if (!r->quiet)
        owe_sack(rx->e, qp, r->epsn); /* nothing new has come */
    r->quiet = 1;
    return true;
}

void sr_drain(struct engine *e, struct qp *qp, uint64_t now)
{
    struct sr *s = qp->sr;
    struct resp *r = &qp->resp;
    struct engine_frame none = {0};
    struct sr_early *ev;
    if (s->draining)
        return;
    s->draining = 1;
    while (s->nearly && (ev = early_at(s, r->epsn))->valid && !r->fatal && qp->state != QPS_ERR &&
           e->records.nfree > PLACE_RECORDS) {
        struct rx early = {.e = e, .f = &none, .now = now, .early = true};
        early.op = &wire_opcodes[ev->opcode];
        early.pkt = (struct wire_pkt){
            .opcode = ev->opcode,
            .psn = r->epsn.v,
            .va = ev->va,
            .rkey = ev->rkey,
            .dma_len = ev->dma_len,
            .imm = ev->imm,
            .payload_len = ev->payload_len,
            .se = ev->se,
            .ackreq = ev->ackreq,
        };
        ev->valid = false;
        s->nearly--;
        psn_t before = r->epsn;
        resp_expected(&early, qp);
        if (psn_eq(before, r->epsn))
            break; /* refused */
    }
    s->draining = 0;
    if (!s->nearly && s->hold_at != TIMER_NEVER) { /* no gap is left: it was only late */
        s->hold_at = TIMER_NEVER;
        s->sack_head = s->sack_tail;
    }
}

void sr_copy_failed(struct qp *qp, psn_t p)
{
    struct sr *s = qp->sr;
    struct sr_early *ev = early_at(s, p);
    if (psn_diff(p, qp->resp.epsn) >= 0) {
        s->nearly -= ev->valid;
        ev->valid = false; /* as if it had never come */
    } else if (!s->broken || psn_diff(p, s->broken_psn) < 0) {
        s->broken = 1;
        s->broken_psn = p;
    }
}

struct rwqe *sr_take(struct engine *e, struct qp *qp)
{
    struct sr *s = qp->sr;
    struct rwqe *w = s->ahead ? s->next : resp_take(e, qp);
    if (!w)
        return NULL;
    if (s->ahead) {
        s->next = w->next;
        s->ahead--;
    }
    s->receives = (s->receives + 1) & PSN_MASK;
    return w;
}
