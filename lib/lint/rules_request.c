/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Checks of requests of connected queue pairs: PSN, REQ, RNR, TMR, RTX, RSP, RD, ATM, UC; and of
 * datagrams: UD, GSI.
 */
#include "lint_checks.h"

#define CROSSING_NS 50000u /* RNR-05: a packet this early may have been in flight */
#define SHORTEST_NS 1000u  /* TMR-05: a packet sooner than this is the network's copy */
/* WIRE-19: more changes of the source port than one change of the path and back */
#define SEVERAL_PATHS 4u

static bool reliable(const struct lint_ctx *c)
{
    return c->op->service == WIRE_RC || c->op->service == WIRE_XRC;
}

/* By the IP identification, is it the network's copy of an earlier packet? */
static bool twin(const struct lint_ctx *c)
{
    return c->old && lint_id_tells(c->f, &c->p) && c->old->ip_id == c->p.ip_id;
}

/* ---- flow ---- */

/* Reported once, at the end: a requester that changes its port again and again sends over several
 * paths, and may have agreed with the other end on reordering (WIRE-22). */
bool lint_wire_19(struct lint_ctx *c)
{
    struct lint_flow *f = c->f;
    if (c->wait) {
        lint_expected(c, "source port %u", f->sport.was);
        lint_seen(c, "%u%s", f->sport.is, f->sport.changes > 1 ? ", and more of them" : "");
        if (f->sport.changes > SEVERAL_PATHS)
            return lint_doubt(
                c, LINT_UNDECIDABLE,
                "right if both ends accept packets out of order; reported once per flow");
        if (f->sport.unsure)
            return lint_doubt(c, LINT_UNDECIDABLE,
                              "perhaps nothing was in flight: no ACKs captured");
        return true;
    }
    if (c->old && (twin(c) || !lint_id_tells(f, &c->p)))
        return false; /* perhaps a late copy, from before a change */
    uint16_t before = f->sport.now;
    bool changed = f->sport.seen && before != c->p.sport;
    f->sport.now = c->p.sport;
    f->sport.seen = true;
    bool back = f->sport.idle.on && c->p.sport == f->sport.idle_was;
    f->sport.idle.on = f->sport.idle.on && !changed && f->last == c->p.psn; /* a copy */
    if (!changed || c->p.ethertype == WIRE_ETHERTYPE_V1)
        return false;
    if (f->ack_on && lint_add(f->acked, 1) == f->hi) { /* WIRE-22: nothing was in flight */
        lint_remember(c, &f->sport.idle);
        f->sport.idle_was = before;
        return false;
    }
    if (f->sport.changes++)
        return false;
    if (back)
        f->sport.changed = f->sport.idle; /* only that flow had another port */
    else
        lint_remember(c, &f->sport.changed);
    f->sport.changed.on = true;
    f->sport.was = back ? f->sport.idle_was : before;
    f->sport.is = back ? before : c->p.sport;
    f->sport.unsure = !f->ack_on;
    return false;
}

bool lint_psn_01(struct lint_ctx *c)
{
    struct lint_flow *f = c->f;
    if (c->wait) {
        lint_expected(c, "PSN 0x%x", f->announced);
        return lint_seen(c, "PSN 0x%x; no message before it is counted", c->wait->psn);
    }
    if (!f->info.by_cm || f->info.requests != 1 || wire_psn_diff(c->p.psn, f->announced) >= 0)
        return false;
    lint_expected(c, "PSN 0x%x or later", f->announced);
    return lint_seen(c, "PSN 0x%x", c->p.psn);
}

/* ---- building messages ---- */

bool lint_req_02(struct lint_ctx *c)
{
    uint32_t mtu = c->f->info.mtu;
    if ((c->op->flags & WIRE_F_LAST) && !c->p.payload_len) {
        lint_expected(c, "a LAST packet with payload");
        return lint_seen(c, "none");
    }
    if ((c->op->headers & WIRE_H_RETH) && (c->op->flags & WIRE_F_FIRST) && c->headers && mtu &&
        c->p.dma_len <= mtu) {
        lint_expected(c, "ONLY for %u octets", c->p.dma_len);
        return lint_seen(c, "%s", c->op->name);
    }
    return false;
}

bool lint_req_06(struct lint_ctx *c)
{
    const struct lint_read *r = c->read;
    if (!r || r->disputed || c->p.psn == r->psn || (c->op->flags & WIRE_F_READ))
        return false;
    lint_expected(c, "a PSN from 0x%x on: a READ of %u octets uses those from 0x%x",
                  lint_add(r->psn, r->n), r->len, r->psn);
    return lint_seen(c, "PSN 0x%x", c->p.psn);
}

/* If the two directions are captured in two places, or queues, a READ may appear before the
 * response that made room for it, by less than a round trip. */
bool lint_req_12(struct lint_ctx *c)
{
    uint64_t trip = c->f->info.rtt_samples ? c->f->info.rtt_min : 0;
    if (c->in->ns <= c->wait->ns)
        return false; /* the times prove it */
    lint_expected(c, "at most %u outstanding, as agreed by the CM", c->req->read_limit);
    lint_seen(c, "%u: the oldest, PSN 0x%x, was answered later", c->req->over.n, c->req->over.psn);
    if (c->in->ns - c->wait->ns < trip / 2)
        return lint_doubt(c, LINT_UNDECIDABLE,
                          "perhaps answered before, if the capture changed the order by %.3f us",
                          (double)(c->in->ns - c->wait->ns) / 1e3);
    return true;
}

/* May `b` follow `a` directly? Both are opcodes of requests. */
static bool follows(uint8_t a, uint8_t b)
{
    unsigned fa = wire_opcodes[a].flags, fb = wire_opcodes[b].flags;
    const unsigned kinds = WIRE_F_SEND | WIRE_F_WRITE;
    if (fa & (WIRE_F_FIRST | WIRE_F_MIDDLE))
        return (fb & (WIRE_F_MIDDLE | WIRE_F_LAST)) && (fa & kinds) == (fb & kinds);
    return !(fb & (WIRE_F_MIDDLE | WIRE_F_LAST));
}

static bool sequence(struct lint_ctx *c)
{
    if (c->old || (c->read && c->p.psn != c->read->psn))
        return false;
    if (c->prev && !follows(c->prev->opcode, c->p.opcode)) {
        lint_expected(c, "a packet that may follow %s", wire_opcodes[c->prev->opcode].name);
        return lint_seen(c, "%s", c->op->name);
    }
    if (c->next && !follows(c->p.opcode, c->next->opcode)) {
        lint_expected(c, "a packet that may precede %s", wire_opcodes[c->next->opcode].name);
        return lint_seen(c, "%s", c->op->name);
    }
    return false;
}

static bool length(struct lint_ctx *c)
{
    if (c->wait) {
        lint_expected(c, "%u octets, the MTU", c->p.payload_len);
        return lint_seen(c, "%u octets", c->f->info.mtu);
    }
    uint32_t mtu = c->f->info.mtu, n = c->p.payload_len;
    unsigned f = c->op->flags;
    if (!(f & WIRE_F_PAYLOAD))
        return false;
    if (f & (WIRE_F_FIRST | WIRE_F_MIDDLE)) {
        if (mtu ? n + c->p.pad == mtu : wire_mtu_enum(n + c->p.pad))
            return false; /* (a pad is HDR-06's) */
        if (mtu)
            lint_expected(c, "%u octets, the MTU", mtu);
        else
            lint_expected(c, "256, 512, 1024, 2048 or 4096 octets");
    } else {
        if (n <= (mtu ? mtu : WIRE_MTU_MAX))
            return false;
        lint_expected(c, "at most %u octets, the MTU", mtu ? mtu : WIRE_MTU_MAX);
    }
    lint_seen(c, "%u octets", n);
    return !c->cut || lint_doubt(c, LINT_UNDECIDABLE, "the iCRC that would prove it was cut off");
}

bool lint_rsp_06(struct lint_ctx *c)
{
    return reliable(c) && sequence(c);
}

/* LINT_S_MTU: was it a request that showed the MTU? */
static bool waits_for_a_response(const struct lint_ctx *c)
{
    return c->wait && !(wire_opcodes[c->wait->opcode].flags & WIRE_F_REQUEST);
}

bool lint_rsp_10(struct lint_ctx *c)
{
    return reliable(c) && !waits_for_a_response(c) && length(c);
}

bool lint_uc_07(struct lint_ctx *c)
{
    return c->op->service == WIRE_UC && ((!c->wait && sequence(c)) || length(c));
}

bool lint_rsp_15(struct lint_ctx *c)
{
    if (!(c->op->headers & WIRE_H_RETH) || !c->headers || c->p.dma_len <= WIRE_MSG_MAX)
        return false;
    lint_expected(c, "at most 2147483648 octets");
    return lint_seen(c, "%u octets", c->p.dma_len);
}

bool lint_rsp_16(struct lint_ctx *c)
{
    uint32_t mtu = c->f->info.mtu;
    if (!(c->op->flags & WIRE_F_WRITE) || c->index == LINT_UNKNOWN || c->dma_len == LINT_UNKNOWN ||
        (c->index && !mtu) || c->old)
        return false;
    uint64_t before = (uint64_t)c->index * mtu, after = before + c->p.payload_len;
    bool good = c->op->flags & WIRE_F_END ? after == c->dma_len : after < c->dma_len;
    if (good)
        return false;
    if (((c->op->flags & WIRE_F_FIRST) && mtu && c->dma_len <= mtu) ||
        ((c->op->flags & WIRE_F_LAST) && !c->p.payload_len))
        return false; /* REQ-02 reports it */
    if (c->dma_len > WIRE_MSG_MAX)
        return false; /* RSP-15 reports it */
    uint32_t rest;
    if (lint_wrong_pad(c, &rest))
        return false; /* HDR-05 reports it */
    lint_expected(c, "%s%u octets in all", c->op->flags & WIRE_F_END ? "" : "fewer than ",
                  c->dma_len);
    lint_seen(c, "%llu", (unsigned long long)after);
    return after < c->dma_len || lint_perhaps_merged(c);
}

bool lint_atm_03(struct lint_ctx *c)
{
    if (!(c->op->headers & WIRE_H_ATOMICETH) || !c->headers || !(c->p.va & 7))
        return false;
    lint_expected(c, "an address that is a multiple of 8");
    return lint_seen(c, "0x%llx", (unsigned long long)c->p.va);
}

bool lint_atm_12(struct lint_ctx *c)
{
    if ((c->p.opcode & 0x1F) != WIRE_ATOMIC_WRITE || !c->headers)
        return false;
    lint_expected(c, "8 octets, to an address that is a multiple of 8");
    lint_seen(c, "%u octets, %u in the RETH, to 0x%llx", c->p.payload_len, c->p.dma_len,
              (unsigned long long)c->p.va);
    return c->p.payload_len != 8 || c->p.dma_len != 8 || c->p.va & 7;
}

bool lint_atm_13(struct lint_ctx *c)
{
    if (!(c->op->headers & WIRE_H_FETH) || !c->headers)
        return false;
    uint32_t placement = c->p.feth & WIRE_FETH_PLACEMENT, select = c->p.feth & WIRE_FETH_SELECT;
    lint_expected(c, "global visibility, persistence or both, of a range or a region");
    lint_seen(c, "FETH 0x%x", c->p.feth);
    return !placement || placement > (WIRE_FETH_GLOBAL | WIRE_FETH_PERSISTENT) ||
           select > WIRE_FETH_REGION;
}

/* ---- retransmissions ---- */

bool lint_rtx_05(struct lint_ctx *c)
{
    const struct lint_rec *r = c->old;
    if (!r || c->same || (r->flags & LINT_R_BAD) || !reliable(c) ||
        (c->read && c->p.psn != c->read->psn))
        return false;
    if (r->opcode != c->p.opcode) {
        lint_expected(c, "%s, as in packet %llu", wire_opcodes[r->opcode].name,
                      (unsigned long long)r->number);
        return lint_seen(c, "%s", c->op->name);
    }
    uint32_t rest;
    if ((c->op->flags & (WIRE_F_FIRST | WIRE_F_MIDDLE) && c->p.pad) || lint_wrong_pad(c, &rest))
        return false; /* HDR-05 or HDR-06 reports it */
    if (r->len != c->p.payload_len) {
        lint_expected(c, "%u octets, as in packet %llu", r->len, (unsigned long long)r->number);
        lint_seen(c, "%u octets", c->p.payload_len);
        return !c->cut && !(r->flags & LINT_R_CUT)
                   ? true
                   : lint_doubt(c, LINT_UNDECIDABLE,
                                "perhaps several packets, merged by the host (GRO)");
    }
    if (!c->same_payload) {
        lint_expected(c, "the payload of packet %llu", (unsigned long long)r->number);
        lint_seen(c, "another one");
        return lint_doubt(c, LINT_UNDECIDABLE, "the application may have written to its buffer");
    }
    if (r->va == c->p.va && r->rkey == c->p.rkey && r->dma_len == c->dma_len) {
        lint_expected(c, "the %s of packet %llu",
                      c->op->headers & WIRE_H_IMMDT ? "immediate" : "operands",
                      (unsigned long long)r->number);
        return lint_seen(c, "others");
    }
    lint_expected(c, "va 0x%llx, length %u and the same key, as in packet %llu",
                  (unsigned long long)r->va, r->dma_len, (unsigned long long)r->number);
    return lint_seen(c, "va 0x%llx, length %u", (unsigned long long)c->p.va, c->p.dma_len);
}

bool lint_rd_12(struct lint_ctx *c)
{
    const struct lint_read *r = c->read;
    if (!r || r->atomic || !(c->op->flags & WIRE_F_READ) || !c->headers || c->p.psn == r->psn)
        return false;
    uint64_t off = (uint64_t)((c->p.psn - r->psn) & WIRE_PSN_MASK) * c->f->info.mtu;
    uint64_t va = r->va + off, len = r->len - off;
    if (c->p.va == va && c->p.dma_len == len && c->p.rkey == r->rkey)
        return false;
    lint_expected(c, "va 0x%llx, %llu octets, the same R_Key", (unsigned long long)va,
                  (unsigned long long)len);
    return lint_seen(c, "va 0x%llx, %u octets%s", (unsigned long long)c->p.va, c->p.dma_len,
                     c->p.rkey == r->rkey ? "" : ", another R_Key");
}

/* A packet is too early before the coded time is over, if it can't have been in flight already. Or
 * the RNR NAK was lost after the capture point, and this is a time-out: the end of the capture
 * shows whether this network loses packets, and whether the requester waits at other times. */
bool lint_rnr_05(struct lint_ctx *c)
{
    struct lint_flow *f = c->f;
    if (c->wait) {
        lint_expected(c, "at least %.2f ms after the RNR NAK", (double)f->early.must / 1e6);
        lint_seen(c, "%.2f ms", (double)f->early.after / 1e6);
        if (f->info.timeouts || f->info.gaps || f->peer->info.naks_seq ||
            (f->early.kept && f->early.kept >= f->early.broken))
            lint_doubt(c, LINT_UNDECIDABLE, "a time-out, if the RNR NAK was lost on its way");
        return true;
    }
    if (!f->rnr.on || c->p.psn != f->rnr.psn || !reliable(c) || c->in->ns < f->rnr.ns || twin(c))
        return false;
    uint64_t waited = c->in->ns - f->rnr.ns, must = wire_rnr_ns(f->rnr.syndrome & 31u);
    uint64_t crossing = f->peer && f->peer->info.rtt_samples ? f->peer->info.rtt_max : 0;
    f->rnr.on = false;
    if (c->prev && c->prev->last_number > f->rnr.number)
        return false; /* in a continued round of retransmissions: the RNR NAK crosses with it */
    bool kept = waited >= must - must / 20;
    f->early.kept += kept;
    if (kept || waited <= crossing + CROSSING_NS || f->early.broken++)
        return false;
    lint_remember(c, &f->early.wait);
    f->early.after = waited;
    f->early.must = must;
    return false;
}

bool lint_tmr_05(struct lint_ctx *c)
{
    const struct lint_flow *f = c->f;
    const struct lint_rec *r = c->old;
    if (!r || f->retry > 7 || !f->peer || !f->peer->info.packets || !reliable(c) ||
        r->sends <= f->retry || f->rnr.number > r->number || f->progress_number > r->number ||
        (f->ack_on && lint_add(f->acked, 1) != c->p.psn) || (!f->ack_on && c->p.psn != f->first))
        return false;
    if (twin(c) || c->in->ns - r->last_ns < SHORTEST_NS)
        return false;
    lint_expected(c, "at most %u transmissions", f->retry + 1);
    lint_seen(c, "%u without progress", r->sends + 1);
    if (f->answer_number > r->number) /* the first one may have been lost after the capture point */
        return lint_doubt(c, LINT_UNDECIDABLE, "an answer in between may have been new to it");
    return true;
}

/* ---- unreliable ---- */

bool lint_uc_02(struct lint_ctx *c)
{
    if (!c->p.ackreq || reliable(c))
        return false;
    lint_expected(c, "AckReq 0 on %s", c->op->name);
    return lint_seen(c, "AckReq 1");
}

bool lint_ud_01(struct lint_ctx *c)
{
    if (c->p.payload_len <= WIRE_MTU_MAX)
        return false;
    lint_expected(c, "at most 4096 octets");
    return lint_seen(c, "%u octets", c->p.payload_len);
}

bool lint_ud_09(struct lint_ctx *c)
{
    if (c->verdict != WIRE_BAD_SRCQP)
        return false;
    lint_expected(c, "a queue pair's number");
    return lint_seen(c, "source QP 0x%x", c->p.sqpn);
}

bool lint_ud_10(struct lint_ctx *c)
{
    if (c->verdict != WIRE_BAD_QPN || !c->p.dqpn || c->op->service != WIRE_UD)
        return false;
    lint_expected(c, "QP 0xffffff with a multicast address and with no other");
    return lint_seen(c, "QP 0x%x and a %s address", c->p.dqpn,
                     wire_addr_is_multicast(&c->p.dip) ? "multicast" : "unicast");
}

bool lint_gsi_01(struct lint_ctx *c)
{
    if (c->p.dqpn != WIRE_QPN_GSI || c->p.sqpn == WIRE_QPN_GSI)
        return false;
    lint_expected(c, "source QP 1");
    return lint_seen(c, "source QP 0x%x", c->p.sqpn);
}
