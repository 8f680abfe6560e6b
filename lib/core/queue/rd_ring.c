/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The ring of READs and ATOMICs: accepted ones, executed ones, and answers that are repeated for
 * duplicates, with limits on number and rate. Rules: RD-03, RD-09..RD-11, ATM-06..ATM-09, ATM-12,
 * ATM-13, LR-08, SEC-15, SEC-16.
 */
#include "rd_ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine_priv.h"
#include "guess.h"
#include "refusal.h"
#include "rx.h"
#include "srq.h"

#define DUP_BURST      256u    /* SEC-15: answers to duplicates at once, and */
#define DUP_REFILL     100000u /* ns for one more token */
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
    ring->dropped_at = qp->stats.rx_packets - DROPPED_LATELY; /* nothing has been dropped */
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

bool rd_room(const struct qp *qp, unsigned times)
{
    const struct rd_ring *ring = qp->resp.rd;
    uint32_t limit = times * qp->attr.max_dest_rd_atomic;
    if (limit > ring->mask + 1)
        limit = ring->mask + 1;
    return ring->tail - ring->tx < limit;
}

void rd_accept(struct rx *rx, struct qp *qp, const struct mem_ref *ref, uint32_t npsn)
{
    struct rd_ring *ring = qp->resp.rd;
    struct rd_res *res = rd_entry(ring, ring->tail);
    bool atomic = rx->op->flags & WIRE_F_ATOMIC;
    uint32_t answer = rx->op->flags & WIRE_F_READ ? rx->pkt.dma_len : 0;
    rd_stop_replay(ring, res);
    *res = (struct rd_res){
        .va = rx->pkt.va,
        .len = atomic ? 8 : answer,
        .rkey = rx->pkt.rkey,
        .psn = psn(rx->pkt.psn),
        .npsn = npsn,
        .ref = *ref,
        .tx = {.end = npsn, .octets = answer},
        .opcode = rx->pkt.opcode,
    };
    if (ring->live <= ring->mask)
        ring->live++;
    qp->resp.reads = 1;
    ring->tail++;
}

void rd_execute(struct qp *qp, uint64_t orig)
{
    struct rd_ring *ring = qp->resp.rd;
    struct rd_res *res = rd_entry(ring, ring->ready++);
    res->orig = orig;
    ring->dropped_at -= res->npsn;
}

void rd_invalidated(struct qp *qp, uint32_t rkey)
{
    struct rd_ring *ring = qp->resp.rd;
    uint32_t waiting = ring->tail - ring->tx;
    for (uint32_t i = waiting + 1; i <= ring->live; i++) {
        struct rd_res *res = rd_entry(ring, ring->tail - i);
        if (res->rkey != rkey || !(wire_opcodes[res->opcode].flags & WIRE_F_READ))
            continue;
        rd_stop_replay(ring, res);
        res->npsn = 0; /* no PSN finds it */
    }
}

void rd_abandon(struct qp *qp)
{
    struct rd_ring *ring = qp->resp.rd;
    ring->tx = ring->ready = ring->tail;
    for (uint32_t i = 0; i <= ring->mask; i++)
        rd_stop_replay(ring, &ring->res[i]);
}

/* Is the last dropped packet so near that its PSN can be compared (PSN-02)? */
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

bool rd_misses_dropped(const struct qp *qp)
{
    const struct resp *r = &qp->resp;
    return dropped_lately(qp) && psn_diff(r->rd->dropped, r->done_epsn) >= 0;
}

bool rd_blocks(const struct qp *qp, psn_t p)
{
    struct rd_ring *ring = qp->resp.rd;
    return ring && ring->tx != ring->ready && psn_diff(rd_entry(ring, ring->tx)->psn, p) < 0;
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

/* The entry that covers PSN p; *index is its index. NULL = too old, or never here. */
static struct rd_res *find(struct rd_ring *ring, psn_t p, uint32_t *index)
{
    for (uint32_t i = 1; i <= ring->live; i++) {
        struct rd_res *res = rd_entry(ring, ring->tail - i);
        if (psn_in(p, res->psn, res->npsn)) {
            *index = ring->tail - i;
            return res;
        }
    }
    return NULL;
}

/* A requester goes back to its first missing packet and continues from there: a round. If a round
 * starts later than any before, or in a later READ than ever, the requester has made progress, and
 * replays count anew, as its own retries do (TMR-06). Going back and forth is no progress.
 * Otherwise a READ after others would use up its replays with theirs. Parts that were never
 * requested before cost no token, so that a lossy path isn't throttled for its losses. */
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

/* LR-08: a part that doesn't reach the READ's end is requested again while the answer is still
 * being sent. The part goes first, then the answer continues. False: not this case. */
static bool insert_part(struct rx *rx, struct qp *qp, struct rd_res *res,
                        const struct rd_part *part)
{
    if (part->octets == res->len || res->nmore == RD_MORE ||
        mem_check(rx->e->mem, resp_pd(qp), qp->qpn, res->rkey, res->va, res->len, MEM_REMOTE_READ,
                  false, &res->ref))
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
    /* A first answer has to reach its end; a replay goes as far as requested. */
    uint32_t octets = answered ? (uint32_t)off + p->dma_len : res->len;
    uint32_t len = octets - (uint32_t)off;
    if (len > 0 && mem_check(e->mem, resp_pd(qp), qp->qpn, p->rkey, p->va, len, MEM_REMOTE_READ,
                             false, &res->ref))
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

/* ATM-08, ATM-12, ATM-13: repeat the answer, if the operands show that it is the same request.
 * Nothing is executed again. */
static void replay_stored(struct rx *rx, struct qp *qp, struct rd_res *res)
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
    res->tx.next = 0;
    res->replay = true;
    qp->resp.rd->replays++;
    qp->resp.reads = 1;
}

enum refusal rd_duplicate(struct rx *rx, struct qp *qp)
{
    struct rd_ring *ring = qp->resp.rd;
    uint32_t index;
    struct rd_res *res = find(ring, psn(rx->pkt.psn), &index);
    bool read = rx->op->flags & WIRE_F_READ;
    if (!res || read != ((wire_opcodes[res->opcode].flags & WIRE_F_READ) != 0)) {
        guess_drop(rx, qp, GUESS_DUP, ENGINE_C_dup_rd_atomic_miss);
        return REFUSE_NONE;
    }
    bool answered = index - ring->tx >= 1u << 31; /* index < tx, free running */
    uint32_t first = psn(rx->pkt.psn - res->psn.v).v;
    follow_progress(ring, res, index, first);
    if (read)
        return replay_read(rx, qp, res, first, answered);
    if (answered)
        replay_stored(rx, qp, res);
    return REFUSE_NONE;
}
