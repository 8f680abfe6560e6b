/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The engine's sending phases: the round of queue pairs that have something to send, the frames
 * that they fill, and the outcome of each frame.
 */
#include <errno.h>
#include <string.h>

#include "address.h"
#include "cnp.h"
#include "engine_priv.h"
#include "recorder.h"
#include "recovery.h"
#include "requester.h"
#include "resp_tx.h"
#include "schedule.h"
#include "send_queue.h"
#include "slot.h"

#define GSI_MAD_LEN 256u

static void active_pop(struct engine *e)
{
    struct qp *qp = e->active;
    e->active = qp->active_next;
    if (e->active)
        e->active->active_at = &e->active;
    else
        e->active_tail = &e->active;
    qp->active_next = NULL;
    qp->is_active = 0;
}

/* Prefetch the state of the next queue pair: paced queue pairs send one packet a turn.
 * always_inline, because GCC drops calls of a function that only prefetches. */
__attribute__((always_inline)) static inline void warm_up(const struct qp *qp)
{
    if (!qp || !qp->lim)
        return;
    __builtin_prefetch(qp->lim);
    __builtin_prefetch(&qp->req);
    __builtin_prefetch(&qp->resp.ack_owed);
    __builtin_prefetch(&qp->tmpl);
    __builtin_prefetch(&qp->timer);
    __builtin_prefetch(&qp->stats);
    __builtin_prefetch(&qp->rec.ev[qp->rec.n % RECORDER_EVENTS]);
}

unsigned engine_tx(struct engine *e, struct engine_slot *slots, unsigned n, uint64_t now)
{
    unsigned m = 0;
    struct qp *qp;
    now = engine_clock(e, now);
    if (n > ENGINE_BURST)
        n = ENGINE_BURST;
    invariant_begin(e);
    if (e->cnps)
        m = cnp_tx(e, slots, n);
    while (m < n && (qp = e->active)) {
        invariant_touch(e, qp);
        if (!e->quantum_left)
            e->quantum_left = ENGINE_QUANTUM;
        unsigned want = n - m < e->quantum_left ? n - m : e->quantum_left;
        warm_up(qp->active_next);
        /* Answers first: an ACK that waits for requests makes the peer time out. */
        unsigned k = resp_tx(e, qp, slots + m, want, now);
        k += req_tx(e, qp, slots + m + k, want - k, now);
        for (unsigned i = 0; i < k; i++)
            e->tx_qp[m + i] = qp;
        m += k;
        e->quantum_left -= k;
        if (k < want) {
            active_pop(e);
            e->quantum_left = 0;
            if (recovery_hello_due(qp)) /* due since its requests were sent */
                qp_activate(e, qp);
        } else if (!e->quantum_left && e->active->active_next) {
            active_pop(e);
            qp_activate(e, qp);
        }
    }
    invariant_end(e, "tx");
    return m;
}

unsigned engine_tx_first(struct engine *e, struct engine_slot *slot, uint64_t now)
{
    struct qp *qp = e->active;
    if (!qp || qp->active_next || e->cnps || !resp_tx_only_ack(qp) || !req_next_is_write(qp))
        return 0;
    invariant_begin(e);
    invariant_touch(e, qp);
    unsigned k = req_tx(e, qp, slot, 1, engine_clock(e, now));
    if (k > 0)
        e->tx_qp[0] = qp;
    invariant_end(e, "the first tx");
    return k;
}

/* One packet of the queue pair could not be filled: those behind it are void, if they are requests
 * like it, or answers like it. */
static void void_slots(struct engine *e, struct engine_slot *slots, unsigned from, unsigned n,
                       const struct qp *qp, bool requests)
{
    for (unsigned i = from; i < n; i++) {
        if (e->tx_qp[i] == qp && (slots[i].kind < SLOT_RESP) == requests) {
            slots[i].len = 0;
            e->tx_qp[i] = NULL;
        }
    }
}

void engine_sent(struct engine *e, struct engine_slot *slots, unsigned n, uint64_t now)
{
    now = engine_clock(e, now);
    invariant_begin(e);
    for (unsigned i = 0; i < n && i < ENGINE_BURST; i++) {
        struct engine_slot *s = &slots[i];
        struct qp *qp = e->tx_qp[i];
        e->tx_qp[i] = NULL;
        if (!qp) { /* voided, or its queue pair is gone */
            if (s->kind != SLOT_CNP)
                s->len = 0;
            continue;
        }
        invariant_touch(e, qp);
        bool request = s->kind < SLOT_RESP;
        bool ok = request ? req_sent(e, qp, s, now) : resp_sent(e, qp, s);
        if (!ok || s->status < 0) {
            s->len = 0;
            void_slots(e, slots, i + 1, n, qp, request);
            continue;
        }
        qp->stats.tx_packets++;
        qp->stats.tx_bytes += s->len;
        e->counters[ENGINE_C_tx_packets]++;
        e->counters[ENGINE_C_tx_bytes] += s->len;
    }
    invariant_end(e, "sent");
}

static const uint16_t hot_engine[] = {
    offsetof(struct engine, now),   offsetof(struct engine, mem),
    offsetof(struct engine, wheel), offsetof(struct engine, counters),
    offsetof(struct engine, tx_qp), offsetof(struct engine, p),
    offsetof(struct engine, p.mac),
};

static const uint16_t hot_qp[] = {
    offsetof(struct qp, qpn),           offsetof(struct qp, req),
    offsetof(struct qp, req.ack_at),    offsetof(struct qp, resp),
    offsetof(struct qp, resp.done_msn), offsetof(struct qp, resp.rd),
    offsetof(struct qp, tclass),        offsetof(struct qp, t_ack),
    offsetof(struct qp, stats),
};

__attribute__((always_inline)) static inline void prefetch_lines(const void *base,
                                                                 const uint16_t *at, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        __builtin_prefetch((const char *)base + at[i]);
}

void engine_prefetch(const struct engine *e, const struct qp *qp, unsigned step)
{
    __asm__ volatile(""); /* GCC drops calls of a function that does nothing but prefetch */
    switch (step) {
    case 0:
        prefetch_lines(e, hot_engine, sizeof(hot_engine) / sizeof(hot_engine[0]));
        if (qp)
            prefetch_lines(qp, hot_qp, sizeof(hot_qp) / sizeof(hot_qp[0]));
        break;
    case 1:
        __builtin_prefetch(e->mem);
        __builtin_prefetch(record_next(&e->records));
        __builtin_prefetch((const char *)record_next(&e->records) + 64);
        if (qp) {
            __builtin_prefetch(&qp->rec.ev[qp->rec.n % RECORDER_EVENTS]);
            if (qp->req.ring)
                __builtin_prefetch(req_wqe(qp, qp->req.cur));
        }
        break;
    default:
        if (qp)
            mem_prefetch(e->mem, qp->resp.wref.mr);
    }
}

bool engine_tx_ready(const struct engine *e)
{
    return e->active || e->cnps;
}

bool engine_tx_only_ack(const struct engine *e)
{
    const struct qp *qp = e->active;
    if (!engine_tx_ready(e))
        return true;
    return qp && !qp->active_next && !e->cnps && resp_tx_only_ack(qp) &&
           qp->req.cur == qp->req.tail;
}

int engine_gsi_emit(struct engine *e, struct engine_slot *slot, const struct engine_av *av,
                    uint16_t pkey, const uint8_t *mad, uint32_t len)
{
    unsigned index = 0;
    if (!len || len > GSI_MAD_LEN)
        return -EINVAL;
    struct wire_pkt p = engine_path(e, av, WIRE_QPN_GSI, WIRE_QPN_GSI);
    p.opcode = WIRE_OPCODE(WIRE_UD, WIRE_SEND_ONLY);
    engine_pkey_find(e, pkey, &index);
    p.pkey = e->p.pkeys[index];
    p.psn = e->gsi_psn++ & PSN_MASK;
    p.qkey = WIRE_QKEY_GSI;
    p.sqpn = WIRE_QPN_GSI;
    p.payload_len = len;
    size_t off = wire_build(slot->buf, slot->cap, &p);
    if (!off)
        return -EMSGSIZE;
    memcpy(slot->buf + off, mad, len);
    slot->len = (uint32_t)wire_frame_len(&p);
    slot->ip_off = p.ip_off;
    slot->bth_off = p.bth_off;
    slot->payload_off = (uint16_t)off;
    slot->npieces = 0;
    slot->payload_len = len;
    slot->qpn = WIRE_QPN_GSI;
    slot->psn = p.psn;
    slot->kind = SLOT_GSI;
    slot->status = 0;
    e->counters[ENGINE_C_tx_packets]++;
    e->counters[ENGINE_C_tx_bytes] += slot->len;
    return 0;
}
