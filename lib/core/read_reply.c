/* SPDX-License-Identifier: BSD-3-Clause
 *
 * READ and ATOMIC answers, and the order in which everything that a responder sends goes out: first
 * what was asked for again, then READ responses and atomic results in PSN order, then a NAK or an
 * ACK. An ACK that a response implies is not sent at all.
 * Rules: RD, ATM-06..ATM-09, ACK-05..ACK-13, RSP-22, SEC-15, SEC-16.
 */
#include "read_reply.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine_priv.h"

#define DUP_BURST      256u    /* SEC-15: answers to duplicates at once, and */
#define DUP_REFILL     100000u /* one more in so many ns */
#define REPLAYS_MAX    8u      /* SEC-16: replays of one READ without progress in */
#define REPLAYS_NS     (4096ull << 14)
#define DROPPED_LATELY (PSN_HALF / 2)

/* ---- the ring ---- */

int rd_start(struct qp *qp, uint64_t now)
{
    uint32_t n = 1;
    while (n < 2u * qp->attr.max_dest_rd_atomic)
        n *= 2;
    struct rd_ring *ring = calloc(1, sizeof(*ring) + n * sizeof(ring->res[0]));
    if (!ring)
        return -ENOMEM;
    ring->mask = n - 1;
    ring->dup_tokens = DUP_BURST;
    ring->dup_at = now;
    ring->dropped_at = qp->stats.rx_packets - DROPPED_LATELY; /* nothing was */
    free(qp->resp.rd);
    qp->resp.rd = ring;
    return 0;
}

int rd_grow(struct qp *qp, uint32_t max_dest_rd_atomic)
{
    struct rd_ring *old = qp->resp.rd;
    uint32_t n = old->mask + 1;
    while (n < 2u * max_dest_rd_atomic)
        n *= 2;
    if (n == old->mask + 1)
        return 0;
    struct rd_ring *ring = calloc(1, sizeof(*ring) + n * sizeof(ring->res[0]));
    if (!ring)
        return -ENOMEM;
    memcpy(ring, old, sizeof(*ring));
    ring->mask = n - 1;
    for (uint32_t i = old->tail - old->live; i != old->tail; i++)
        ring->res[i & ring->mask] = old->res[i & old->mask];
    qp->resp.rd = ring;
    free(old);
    return 0;
}

void rd_free(struct qp *qp)
{
    free(qp->resp.rd);
    qp->resp.rd = NULL;
}

static struct rd_res *entry(struct rd_ring *ring, uint32_t index)
{
    return &ring->res[index & ring->mask];
}

bool rd_room(const struct qp *qp, unsigned times)
{
    const struct rd_ring *ring = qp->resp.rd;
    uint32_t limit = times * qp->attr.max_dest_rd_atomic;
    if (limit > ring->mask + 1)
        limit = ring->mask + 1;
    return ring->tail - ring->tx < limit;
}

static void stop_replay(struct rd_ring *ring, struct rd_res *res)
{
    ring->replays -= res->replay;
    res->replay = false;
    res->nmore = 0;
}

uint32_t rd_accept(struct rx *rx, struct qp *qp, const struct mem_ref *ref, uint32_t npsn)
{
    struct rd_ring *ring = qp->resp.rd;
    struct rd_res *res = entry(ring, ring->tail);
    bool atomic = rx->op->flags & WIRE_F_ATOMIC;
    stop_replay(ring, res);
    *res = (struct rd_res){
        .va = rx->pkt.va,
        .len = atomic ? 8 : rx->pkt.dma_len,
        .rkey = rx->pkt.rkey,
        .psn = psn(rx->pkt.psn),
        .npsn = npsn,
        .ref = *ref,
        .tx = {.end = npsn, .octets = rx->pkt.dma_len},
        .opcode = rx->pkt.opcode,
    };
    if (ring->live <= ring->mask)
        ring->live++;
    qp->resp.reads = 1;
    return ring->tail++;
}

void rd_execute(struct qp *qp, uint64_t orig)
{
    struct rd_ring *ring = qp->resp.rd;
    struct rd_res *res = entry(ring, ring->ready++);
    res->orig = orig;
    ring->dropped_at -= res->npsn;
}

void rd_invalidated(struct qp *qp, uint32_t rkey)
{
    struct rd_ring *ring = qp->resp.rd;
    uint32_t waiting = ring->tail - ring->tx;
    for (uint32_t i = waiting + 1; i <= ring->live; i++) {
        struct rd_res *res = entry(ring, ring->tail - i);
        if (res->rkey != rkey || wire_opcodes[res->opcode].flags & WIRE_F_ATOMIC)
            continue;
        stop_replay(ring, res);
        res->npsn = 0; /* no PSN finds it */
    }
}

void rd_abandon(struct qp *qp)
{
    struct rd_ring *ring = qp->resp.rd;
    ring->tx = ring->ready = ring->tail;
    for (uint32_t i = 0; i <= ring->mask; i++)
        stop_replay(ring, &ring->res[i]);
}

/* Is what was dropped last so near that its PSN can be compared (PSN-02)? */
static bool dropped_lately(const struct qp *qp)
{
    return qp->stats.rx_packets - qp->resp.rd->dropped_at < DROPPED_LATELY;
}

void rd_dropped(struct qp *qp, psn_t p)
{
    struct rd_ring *ring = qp->resp.rd;
    if (!dropped_lately(qp) || psn_diff(p, ring->dropped) > 0)
        ring->dropped = p;
    ring->dropped_at = qp->stats.rx_packets;
}

/* Is something that was dropped still missing? */
static bool misses_dropped(const struct qp *qp)
{
    const struct resp *r = &qp->resp;
    return dropped_lately(qp) && psn_diff(r->rd->dropped, r->done_epsn) >= 0;
}

bool rd_blocks(const struct qp *qp, psn_t p)
{
    struct rd_ring *ring = qp->resp.rd;
    return ring && ring->tx != ring->ready && psn_diff(entry(ring, ring->tx)->psn, p) < 0;
}

/* ---- duplicates ---- */

bool rd_dup_token(struct qp *qp, uint64_t now)
{
    struct rd_ring *ring = qp->resp.rd;
    uint64_t n = (now - ring->dup_at) / DUP_REFILL;
    if (n > 0) {
        ring->dup_at += n * DUP_REFILL;
        ring->dup_tokens =
            n < DUP_BURST - ring->dup_tokens ? ring->dup_tokens + (uint32_t)n : DUP_BURST;
    }
    if (ring->dup_tokens == 0)
        return false;
    ring->dup_tokens--;
    return true;
}

/* The entry whose PSNs include p; *index is its index. NULL = too old, or never here. */
static struct rd_res *find(struct rd_ring *ring, psn_t p, uint32_t *index)
{
    for (uint32_t i = 1; i <= ring->live; i++) {
        struct rd_res *res = entry(ring, ring->tail - i);
        if (psn_in(p, res->psn, res->npsn)) {
            *index = ring->tail - i;
            return res;
        }
    }
    return NULL;
}

/* A requester goes back to what it misses first, and on from there: a round. When a round begins
 * later than any before, or in a READ later than ever, the requester has made progress, and
 * replays count anew, as its own retries do (TMR-06); going back and forth is none. Without that a
 * READ that stands behind others would use up its replays with theirs. What it never asked for
 * before costs no token, so that a lossy path isn't cut off for being lossy. */
static void follow_progress(struct rd_ring *ring, struct rd_res *res, uint32_t index,
                            uint32_t first)
{
    uint64_t at = (uint64_t)index << 32 | first;
    if ((int64_t)(at - ring->dup_last) <= 0 && (int64_t)(at - ring->dup_first) > 0) {
        ring->dup_epoch++;
        ring->dup_first = at;
    }
    ring->dup_last = at;
    if (first > res->asked) {
        res->asked = first;
        ring->dup_epoch++;
        ring->dup_tokens += ring->dup_tokens < DUP_BURST;
    }
}

/* SEC-16. */
static bool replay_allowed(const struct rd_ring *ring, struct rd_res *res, uint64_t now)
{
    if (now - res->window_at >= REPLAYS_NS || res->window_epoch != ring->dup_epoch) {
        res->window_at = now;
        res->window_epoch = ring->dup_epoch;
        res->window_replays = 0;
    }
    return res->window_replays++ < REPLAYS_MAX;
}

/* LR-08: a part that doesn't reach to the READ's end is asked for again while the answer is still
 * being sent: it goes first, then what was under way goes on. False: not that. */
static bool insert_part(struct rx *rx, struct qp *qp, struct rd_res *res,
                        const struct rd_part *part)
{
    if (part->octets == res->len || res->nmore == RD_MORE ||
        mem_check(rx->e->mem, qp->pd, qp->qpn, res->rkey, res->va, res->len, MEM_REMOTE_READ, false,
                  &res->ref))
        return false;
    res->ref_off = 0;
    res->more[res->nmore++] = res->tx;
    res->tx = *part;
    return true;
}

/* RD-09..RD-11: the part of `res` that the packet asks for, from packet `first` on. */
static enum refusal replay_read(struct rx *rx, struct qp *qp, struct rd_res *res, uint32_t first,
                                bool answered)
{
    struct engine *e = rx->e;
    const struct wire_pkt *p = &rx->pkt;
    uint64_t off = (uint64_t)first << qp->mtu_shift;
    if (p->rkey != res->rkey || off > res->len || p->va != res->va + off ||
        p->dma_len > res->len - off || (p->dma_len == 0) != (res->len == 0)) {
        guess_drop(rx, qp, GUESS_DUP, ENGINE_C_dup_rd_atomic_miss);
        return REFUSE_NONE;
    }
    bool sending = !answered || res->replay;
    if (sending && first >= res->tx.next && first < res->tx.end &&
        off + p->dma_len <= res->tx.octets)
        return REFUSE_NONE; /* RD-11: on its way */
    if (!replay_allowed(qp->resp.rd, res, rx->now) || !rd_dup_token(qp, rx->now)) {
        if (res->window_replays > REPLAYS_MAX)
            res->window_replays = REPLAYS_MAX;
        rx_drop(rx, ENGINE_C_rx_dup_throttled);
        return REFUSE_NONE;
    }
    const struct rd_part part = {first, first, first + psn_count(p->dma_len, qp->mtu_shift),
                                 (uint32_t)off + p->dma_len};
    if (sending && insert_part(rx, qp, res, &part))
        return REFUSE_NONE;
    /* What is under way for the first time has to get to its end; a replay as far as asked. */
    uint32_t octets = answered ? (uint32_t)off + p->dma_len : res->len;
    uint32_t len = octets - (uint32_t)off;
    if (len > 0 &&
        mem_check(e->mem, qp->pd, qp->qpn, p->rkey, p->va, len, MEM_REMOTE_READ, false, &res->ref))
        return REFUSE_REPLAY;
    res->ref_off = off;
    res->tx = (struct rd_part){first, first, first + psn_count(len, qp->mtu_shift), octets};
    res->nmore = 0;
    if (answered && !res->replay) {
        res->replay = true;
        qp->resp.rd->replays++;
        qp->resp.reads = 1;
    }
    return REFUSE_NONE;
}

/* ATM-08: the stored result once more, if the operands tell that it is the same request. */
static void replay_atomic(struct rx *rx, struct qp *qp, struct rd_res *res)
{
    if (rx->pkt.opcode != res->opcode || rx->pkt.va != res->va || rx->pkt.rkey != res->rkey) {
        guess_drop(rx, qp, GUESS_DUP, ENGINE_C_dup_rd_atomic_miss);
        return;
    }
    if (res->replay)
        return;
    if (!rd_dup_token(qp, rx->now)) {
        rx_drop(rx, ENGINE_C_rx_dup_throttled);
        return;
    }
    res->replay = true;
    qp->resp.rd->replays++;
    qp->resp.reads = 1;
}

enum refusal rd_duplicate(struct rx *rx, struct qp *qp)
{
    struct rd_ring *ring = qp->resp.rd;
    uint32_t index;
    struct rd_res *res = find(ring, psn(rx->pkt.psn), &index);
    bool atomic = rx->op->flags & WIRE_F_ATOMIC;
    bool was_atomic = res && wire_opcodes[res->opcode].flags & WIRE_F_ATOMIC;
    if (!res || atomic != was_atomic) {
        guess_drop(rx, qp, GUESS_DUP, ENGINE_C_dup_rd_atomic_miss);
        return REFUSE_NONE;
    }
    bool answered = index - ring->tx >= 1u << 31; /* index < tx, free running */
    uint32_t first = psn(rx->pkt.psn - res->psn.v).v;
    follow_progress(ring, res, index, first);
    if (!atomic)
        return replay_read(rx, qp, res, first, answered);
    if (answered)
        replay_atomic(rx, qp, res);
    return REFUSE_NONE;
}

/* ---- sending ---- */

/* ACK-12..ACK-14. */
static uint8_t ack_syndrome(struct qp *qp)
{
    if (!qp->credits || qp->srq)
        return WIRE_SYN_ACK;
    return (uint8_t)wire_credit_code(qp->resp.rq->posted);
}

static void emit_ack(struct engine *e, struct qp *qp, struct engine_slot *slot)
{
    struct resp *r = &qp->resp;
    struct wire_var v = {
        .opcode = WIRE_OPCODE(WIRE_RC, WIRE_ACKNOWLEDGE),
        .psn = r->ack_psn.v,
        .msn = r->done_msn,
        .syndrome = ack_syndrome(qp),
        .tclass = qp->tclass,
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
        /* The packet came after all before this NAK got a slot. If what came behind it was dropped
         * a NAK is due nevertheless: for the PSN that is missing now. */
        if (!misses_dropped(qp) && !(qp->sr && qp->sr->nearly)) {
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
        .opcode = WIRE_OPCODE(WIRE_RC, WIRE_ACKNOWLEDGE),
        .psn = r->nak_psn.v,
        .msn = r->done_msn,
        .syndrome = r->nak_owed,
        .tclass = qp->tclass,
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
        .opcode = WIRE_OPCODE(WIRE_RC, WIRE_ATOMIC_ACK),
        .psn = res->psn.v,
        .msn = qp->resp.done_msn,
        .syndrome = ack_syndrome(qp),
        .tclass = qp->tclass,
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
        .opcode = WIRE_OPCODE(WIRE_RC, read_opcode(res)),
        .psn = psn_add(res->psn, res->tx.next).v,
        .msn = qp->resp.done_msn,
        .syndrome = ack_syndrome(qp),
        .tclass = qp->tclass,
        .payload_len = len,
    };
    engine_slot_emit(qp, slot, &v, SLOT_READ);
    slot->npieces = (uint16_t)n;
    if (res->tx.next == res->tx.first)
        recorder_note(e, qp, NOTE_TX_READ, psn(v.psn), res->tx.end - res->tx.next);
    res->tx.next++;
    return true;
}

/* Up to n packets in the middle of the part of a READ that is being sent, into as many slots: they
 * differ in place and PSN alone. Call when one of that READ has just been emitted, as that sees
 * whether an ACK is owed. Returns how many. */
static unsigned emit_read_middles(struct engine *e, struct qp *qp, struct rd_res *res,
                                  struct engine_slot *slots, unsigned n, uint64_t now)
{
    struct rd_part *t = &res->tx;
    const uint32_t mtu = qp_mtu(qp);
    struct wire_var v = {.opcode = WIRE_OPCODE(WIRE_RC, WIRE_READ_RESP_MIDDLE), .payload_len = mtu};
    struct slot_run run;
    struct mem_piece all;
    unsigned m = t->next != t->first && t->next != t->end ? t->end - t->next - 1 : 0;
    if (m > n)
        m = n;
    if (!m || mem_pieces(e->mem, &res->ref, ((uint64_t)t->next << qp->mtu_shift) - res->ref_off,
                         m * mtu, &all, 1) != 1)
        return 0; /* emit_read sees what it is */
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

/* The entry that is to be answered next: replays first (RD-11). NULL = none. */
static struct rd_res *next_reply(struct resp *r)
{
    struct rd_ring *ring = r->rd;
    if (!r->reads || !ring)
        return NULL;
    for (uint32_t i = ring->live; ring->replays > 0 && i > 0; i--) {
        struct rd_res *res = entry(ring, ring->tail - i);
        if (res->replay)
            return res;
    }
    if (ring->tx != ring->ready)
        return entry(ring, ring->tx);
    r->reads = ring->ready != ring->tail || ring->replays > 0;
    return NULL;
}

static bool is_atomic(const struct rd_res *res)
{
    return wire_opcodes[res->opcode].flags & WIRE_F_ATOMIC;
}

/* One packet of an answer. False: the queue pair is done for, and owes a NAK. */
static bool emit_reply(struct engine *e, struct qp *qp, struct rd_res *res,
                       struct engine_slot *slot, uint64_t now)
{
    struct rd_ring *ring = qp->resp.rd;
    struct resp *r = &qp->resp;
    if (is_atomic(res)) {
        emit_atomic(e, qp, res, slot);
    } else if (!emit_read(e, qp, res, slot)) {
        psn_t p = psn_add(res->psn, res->tx.next);
        rd_abandon(qp);
        resp_fatal(e, qp, REFUSE_READ_REVOKED, p, false, now);
        return false;
    }
    if (psn_diff(psn(slot->psn), r->ack_psn) > 0)
        r->ack_owed = 0; /* REQ-25: the response says as much */
    if (res->tx.next == res->tx.end) {
        if (res->nmore)
            res->tx = res->more[--res->nmore];
        else if (res->replay)
            stop_replay(ring, res);
        else
            ring->tx++;
    }
    return true;
}

bool resp_tx_ready(const struct qp *qp)
{
    const struct resp *r = &qp->resp;
    return r->ack_owed || r->nak_owed || (qp->sr && sr_tx_ready(qp)) ||
           (r->rd && (r->rd->tx != r->rd->ready || r->rd->replays));
}

bool resp_tx_only_ack(const struct qp *qp)
{
    const struct resp *r = &qp->resp;
    return r->ack_owed && !r->nak_owed && !(qp->sr && sr_tx_ready(qp)) &&
           !(r->rd && (r->rd->tx != r->rd->ready || r->rd->replays));
}

unsigned resp_tx(struct engine *e, struct qp *qp, struct engine_slot *slots, unsigned n,
                 uint64_t now)
{
    struct resp *r = &qp->resp;
    unsigned used = 0;
    while (used < n) {
        struct rd_res *res = next_reply(r);
        if (res && qp->lim && !is_atomic(res) && !limiter_check(e, qp, now)) { /* CC-21 */
            if (!r->ack_owed || r->rd->replays || rd_blocks(qp, r->ack_psn))
                break;
            emit_ack(e, qp, &slots[used++]);
        } else if (res) {
            if (!emit_reply(e, qp, res, &slots[used], now))
                continue;
            if (qp->lim && slots[used].kind == SLOT_READ)
                limiter_charge(qp, slots[used].len, now);
            used++;
            used += emit_read_middles(e, qp, res, slots + used, n - used, now);
        } else if (qp->sr && sr_tx_ready(qp))
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

bool resp_sent(struct engine *e, struct qp *qp, const struct engine_slot *slot, uint64_t now)
{
    struct resp *r = &qp->resp;
    if (slot->status < 0) {
        if (qp->state == QPS_ERR)
            return false;
        if (r->rd)
            rd_abandon(qp);
        resp_fatal(e, qp, REFUSE_READ_GONE, psn(slot->psn), false, now);
        return false;
    }
    if (r->fatal == FATAL_SENT && slot->kind == SLOT_RESP && slot->psn == r->nak_psn.v)
        qp_to_error(e, qp, false, r->fatal_ev, now); /* RSP-22 */
    return true;
}

bool resp_owes(const struct qp *qp)
{
    return qp->resp.ack_owed;
}
