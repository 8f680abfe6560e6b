/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The engine's receiving phases: a packet's way to its queue pair (VAL-01), and the results of
 * copies. Rules: VAL, WIRE-04, WIRE-06, WIRE-30, KEY.
 */
#include "engine_rx.h"

#include <string.h>

#include "address.h"
#include "cnp.h"
#include "comp_retire.h"
#include "completer.h"
#include "engine_priv.h"
#include "guess.h"
#include "limiter.h"
#include "mcast.h"
#include "numbers.h"
#include "resp_commit.h"
#include "responder.h"
#include "rx.h"
#include "schedule.h"
#include "sr.h"
#include "sr_sender.h"
#include "ud.h"

static const uint16_t verdict_counter[WIRE_VERDICTS] = {
    [WIRE_NOT_ROCE] = ENGINE_C_rx_not_roce,       [WIRE_TRUNCATED] = ENGINE_C_rx_truncated,
    [WIRE_IP_OPTIONS] = ENGINE_C_rx_ip_options,   [WIRE_IP_FRAGMENT] = ENGINE_C_rx_ip_fragment,
    [WIRE_BAD_IP_CSUM] = ENGINE_C_rx_bad_ip_csum, [WIRE_BAD_ADDR] = ENGINE_C_rx_bad_addr,
    [WIRE_BAD_UDP] = ENGINE_C_rx_bad_udp,         [WIRE_BAD_UDP_CSUM] = ENGINE_C_rx_bad_udp_csum,
    [WIRE_BAD_TVER] = ENGINE_C_rx_bad_tver,       [WIRE_BAD_OPCODE] = ENGINE_C_rx_bad_opcode,
    [WIRE_BAD_LENGTH] = ENGINE_C_rx_bad_length,   [WIRE_BAD_ICRC] = ENGINE_C_rx_icrc_err,
    [WIRE_BAD_QPN] = ENGINE_C_rx_bad_qpn,         [WIRE_BAD_AETH] = ENGINE_C_rx_bad_aeth,
    [WIRE_BAD_SRCQP] = ENGINE_C_rx_bad_srcqp,
};

/* WIRE-04, WIRE-06: VLAN and MAC of this port? */
static bool my_link(const struct engine *e, const struct wire_pkt *p)
{
    if (p->vlan ? (p->tci & 0xFFF) != e->p.vlan : e->p.vlan != 0)
        return false;
    return p->dmac[0] & 1 || !memcmp(p->dmac, e->p.mac, 6);
}

/* WIRE-06, WIRE-30: an address of ours, or a group's that came to the group's MAC or to ours? */
static bool my_addr(struct engine *e, const struct wire_pkt *p)
{
    bool group = p->dmac[0] & 1;
    uint8_t mac[6];
    if (!group && engine_addr_local(e, &p->dip))
        return true;
    wire_mcast_mac(&p->dip, mac);
    return wire_addr_is_multicast(&p->dip) && (!group || !memcmp(p->dmac, mac, sizeof(mac)));
}

/* VAL-01: is the frame for another host, and is that known before any other fault of it? */
static bool not_for_us(struct engine *e, const struct wire_pkt *p, enum wire_verdict v)
{
    if (!p->ip_off) /* not even a link header */
        return false;
    return !my_link(e, p) || ((v == WIRE_OK || v >= WIRE_BAD_UDP) && !my_addr(e, p));
}

/* Fields that step 9 judges: queue pair, path and keys come before them. */
static bool is_late(enum wire_verdict v)
{
    return v == WIRE_BAD_AETH || v == WIRE_BAD_SRCQP;
}

bool rx_late_drop(struct rx *rx)
{
    if (__builtin_expect(rx->f->verdict == WIRE_OK, 1))
        return false;
    rx_drop(rx, verdict_counter[rx->f->verdict]);
    return true;
}

static void rx_gsi(struct rx *rx)
{
    struct engine *e = rx->e;
    unsigned index;
    if (rx->op->service != WIRE_UD)
        rx_drop(rx, ENGINE_C_rx_qp_type_mismatch);
    else if (!engine_pkey_find(e, rx->pkt.pkey, &index)) /* KEY-04 */
        rx_drop(rx, ENGINE_C_rx_bad_pkey);
    else if (rx->pkt.qkey != WIRE_QKEY_GSI) /* KEY-07 */
        rx_drop(rx, ENGINE_C_rx_bad_qkey);
    else if (rx_late_drop(rx))
        return;
    else if (e->gsi && e->gsi->state >= QPS_RTR && e->gsi->state != QPS_ERR)
        ud_rx(rx, e->gsi);
    else if (e->p.hooks.gsi_rx)
        e->p.hooks.gsi_rx(e->p.hook_arg, &rx->pkt, rx->payload, rx->pkt.payload_len);
    else
        rx_drop(rx, ENGINE_C_rx_bad_qpn);
}

static const uint8_t qp_service[] = {
    [QP_GSI] = WIRE_UD, [QP_RC] = WIRE_RC, [QP_UC] = WIRE_UC, [QP_UD] = WIRE_UD};

/* OPC-02, XRC-01: does a queue pair of this type get such packets at all? */
static bool type_takes(const struct qp *qp, const struct wire_opcode_info *op)
{
    if (op->flags & WIRE_F_CNP)
        return true;
    if (!qp->xrc)
        return op->service == qp_service[qp->type];
    return op->service == WIRE_XRC &&
           op->flags & (qp->xrc == XRC_INI ? WIRE_F_RESPONSE : WIRE_F_REQUEST);
}

/* VAL-04: the states in which a queue pair of this type takes requests, or responses. */
static unsigned states_that_take(const struct qp *qp, uint16_t op_flags)
{
    unsigned ok = 1u << QPS_RTS | 1u << QPS_SQD;
    if (!(op_flags & WIRE_F_RESPONSE))
        ok |= 1u << QPS_RTR;
    if (qp->type != QP_RC)
        ok |= 1u << QPS_SQE;
    return ok;
}

static bool state_takes(const struct rx *rx, const struct qp *qp)
{
    return rx->states >> qp->state & 1;
}

/* VAL-03. */
static bool from_peer(const struct wire_pkt *p, const struct qp *qp)
{
    return qp_connected(qp) && !memcmp(&p->sip, &qp->rip, sizeof(p->sip)) &&
           !memcmp(&p->dip, &qp->lip, sizeof(p->dip));
}

/* The Q_Key of a datagram. False: dropped. */
static bool key_fits(struct rx *rx, const struct qp *qp)
{
    if (guess_sender_closed(rx)) {
        rx_drop(rx, ENGINE_C_rx_rate_limited);
        return false;
    }
    if (rx->pkt.qkey != qp->qkey) {
        guess_drop_datagram(rx, ENGINE_C_rx_bad_qkey);
        return false;
    }
    guess_right(rx);
    return true;
}

/* Steps 6 to 9 of VAL-01 for a packet whose iCRC is good. False: dropped. */
static bool qp_takes(struct rx *rx, struct qp *qp)
{
    const struct wire_pkt *p = &rx->pkt;
    if (!type_takes(qp, rx->op)) {
        rx_drop(rx, ENGINE_C_rx_qp_type_mismatch);
        return false;
    }
    rx->states = states_that_take(qp, rx->op->flags);
    if (!state_takes(rx, qp)) {
        rx_drop(rx, ENGINE_C_rx_bad_qp_state);
        return false;
    }
    bool peer = from_peer(p, qp);
    if (!peer && qp_connected(qp)) {
        guess_drop(rx, NULL, GUESS_ADDR, ENGINE_C_rx_addr_mismatch);
        return false;
    }
    if (p->pkey != qp->pkey && !wire_pkey_match(p->pkey, qp->pkey)) {
        if (rx->op->service == WIRE_UD)
            guess_drop_datagram(rx, ENGINE_C_rx_bad_pkey);
        else
            guess_drop(rx, peer ? qp : NULL, GUESS_KEY, ENGINE_C_rx_bad_pkey);
        return false;
    }
    if (rx->op->service == WIRE_UD && !key_fits(rx, qp))
        return false;
    return !rx_late_drop(rx);
}

/* A packet of the private group for qp. True: process it like an RC packet. */
static bool selective(struct rx *rx, struct qp *qp)
{
    struct sr *s = qp->sr;
    if (!s || s->mode != RECOVER_SR) {
        rx_drop(rx, ENGINE_C_rx_bad_opcode);
        return false;
    }
    if (!s->agreed) {
        s->agreed = 1;
        s->plain = qp->req.max;
        recorder_note(rx->e, qp, NOTE_AGREED, psn(rx->pkt.psn), 0);
    }
    if (!(rx->op->flags & WIRE_F_ACK))
        return true;
    if (wire_aeth_kind(rx->pkt.syndrome) != WIRE_AETH_ACK) {
        sr_sack(rx, qp);
    } else if (!rx->pkt.sel_psn) {
        s->hello_owed = 1;
        qp_activate(rx->e, qp);
    }
    return false;
}

static void rx_to_qp(struct rx *rx, struct qp *qp)
{
    struct engine *e = rx->e;
    const struct wire_pkt *p = &rx->pkt;
    invariant_touch(e, qp);
    qp->stats.rx_packets++;
    qp->stats.rx_bytes += rx->f->len;
    if (__builtin_expect((p->tclass & 3) == 3, 0)) /* CC-01 */
        cnp_on_mark(rx, qp);
    if (rx->op->flags & WIRE_F_CNP)
        limiter_on_cnp(e, qp, rx->now);
    else if (__builtin_expect(p->selective, 0) && !selective(rx, qp))
        return;
    else if (rx->op->service == WIRE_UD)
        ud_rx(rx, qp);
    else if (rx->op->flags & WIRE_F_RESPONSE)
        comp_rx(rx, qp);
    else
        resp_rx(rx, qp);
}

/* Was this the number of a destroyed queue pair? Its peer may not know yet, so the number isn't a
 * guess (SEC-09). */
static bool was_here(const struct engine *e, uint32_t slot, uint32_t qpn)
{
    return slot < e->table_size && (number_make(e, slot, e->life[slot] - 1) == qpn ||
                                    number_make(e, slot, e->life[slot] - 2) == qpn);
}

/* The queue pair that a good packet is for. NULL = dropped, or for another worker. */
static struct qp *rx_find_qp(struct rx *rx)
{
    struct engine *e = rx->e;
    uint32_t qpn = rx->pkt.dqpn;
    if (qpn != rx->qpn) {
        rx->qpn = qpn;
        rx->slot = number_slot(e, qpn, &rx->worker);
    }
    uint32_t slot = rx->slot;
    if (rx->worker >> e->p.worker_bits && rx->worker != e->p.worker) {
        guess_drop(rx, NULL, GUESS_QPN, ENGINE_C_rx_bad_qpn); /* in a block of no program */
        return NULL;
    }
    if (rx->worker != e->p.worker) {
        rx->f->disposition = ENGINE_OTHER_WORKER;
        rx->f->worker = (uint8_t)rx->worker;
        return NULL;
    }
    struct qp *qp = slot < e->table_size ? e->table[slot] : NULL;
    if (qp && qp->qpn == qpn && !wire_addr_is_multicast(&rx->pkt.dip))
        return qp_takes(rx, qp) ? qp : NULL;
    if (was_here(e, slot, qpn))
        rx_drop(rx, ENGINE_C_rx_bad_qpn);
    else
        guess_drop(rx, NULL, GUESS_QPN, ENGINE_C_rx_bad_qpn);
    return NULL;
}

/* Does the packet continue a run? The packet before was good and for us, this one differs from it
 * only in acknowledge request and PSN, and the queue pair still takes such packets. */
static bool rx_goes_on(const struct rx *rx)
{
    return rx->for_us && rx->last && rx->flow->next && state_takes(rx, rx->last);
}

/* The queue pair of a packet that doesn't continue a run. NULL = for another host or worker, or
 * dropped. */
static struct qp *rx_begins(struct rx *rx, enum wire_verdict v)
{
    rx->for_us = rx->for_us && rx->flow->same;
    if (!rx->for_us && not_for_us(rx->e, &rx->pkt, v)) {
        rx_drop(rx, ENGINE_C_rx_not_for_us);
        return NULL;
    }
    if (v != WIRE_OK && !is_late(v)) {
        rx_drop(rx, verdict_counter[v]);
        return NULL;
    }
    rx->for_us = rx->flow && v == WIRE_OK;
    rx->last = NULL;
    rx->op = &wire_opcodes[rx->pkt.opcode];
    if (rx->pkt.dqpn == WIRE_QPN_GSI)
        rx_gsi(rx);
    else if (rx->pkt.dqpn == WIRE_QPN_MULTICAST)
        mcast_rx(rx);
    else
        rx->last = rx_find_qp(rx);
    return rx->last;
}

static void rx_frame(struct rx *rx)
{
    struct engine *e = rx->e;
    struct engine_frame *f = rx->f;
    f->disposition = ENGINE_TAKEN;
    f->drop = ENGINE_C_none;
    unsigned flags = f->flags | rx->flags;
    enum wire_verdict v = rx->flow ? wire_parse_flow(f->data, f->len, flags, rx->flow, &rx->pkt)
                                   : wire_parse(f->data, f->len, flags, &rx->pkt);
    f->verdict = (uint16_t)v;
    if (v == WIRE_NOT_ROCE) {
        f->disposition = ENGINE_SLOW_PATH;
        engine_count(e, ENGINE_C_rx_not_roce);
        return;
    }
    e->counters[ENGINE_C_rx_packets]++;
    e->counters[ENGINE_C_rx_bytes] += f->len;
    rx->payload = f->data + rx->pkt.payload_off;
    struct qp *qp = v == WIRE_OK && rx_goes_on(rx) ? rx->last : rx_begins(rx, v);
    if (qp)
        rx_to_qp(rx, qp);
}

unsigned engine_rx(struct engine *e, struct engine_frame *frames, unsigned n, uint64_t now,
                   struct engine_copy *copies, unsigned cap, unsigned *ncopies)
{
    struct wire_flow flow;
    struct rx rx = {.e = e, .now = engine_clock(e, now), .copies = copies, .cap = cap};
    if (rx.cap > UINT16_MAX) /* record.pending, of 16 bits, may count all of them */
        rx.cap = UINT16_MAX;
    rx.flags = (e->p.loopback ? WIRE_P_LOOPBACK : 0) | (e->nsr ? WIRE_P_SELECTIVE : 0);
    unsigned i;
    if (n > 1) {
        flow.ip_version = 0;
        rx.flow = &flow;
    }
    invariant_begin(e);
    for (i = 0; i < n && rx.cap - rx.ncopies >= ENGINE_FRAME_COPIES; i++) {
        if (i + 1 < n)
            __builtin_prefetch(frames[i + 1].data);
        rx.f = &frames[i];
        rx.frame = i;
        unsigned listed = rx.ncopies;
        rx_frame(&rx);
        if (rx.ncopies > listed && e->p.hooks.copies)
            e->p.hooks.copies(e->p.hook_arg, copies, rx.ncopies);
    }
    invariant_end(e, "rx");
    *ncopies = rx.ncopies;
    return i;
}

static void copied(struct engine *e, const struct engine_result *res, uint64_t now)
{
    struct record *r = record_result(e, res);
    if (r && r->side == REC_RESP)
        resp_run(e, r->qp, now);
    else if (r)
        comp_run(e, r->qp);
}

void engine_copied(struct engine *e, const struct engine_result *results, unsigned n, uint64_t now)
{
    now = engine_clock(e, now);
    invariant_begin(e);
    for (unsigned i = 0; i < n; i++)
        copied(e, &results[i], now);
    invariant_end(e, "copied");
}
