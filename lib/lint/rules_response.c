/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Checks of responses: REQ-28..31, ACK, RNR, RSP, RD, ATM.
 */
#include "lint_checks.h"

#define RNR_02_HABIT 4u /* doubtful breaks of RNR-02 */

static bool is_ack(const struct lint_ctx *c)
{
    return c->op->flags & WIRE_F_ACK;
}

static enum wire_aeth_kind kind(const struct lint_ctx *c)
{
    return wire_aeth_kind(c->p.syndrome);
}

static bool is_nak(const struct lint_ctx *c, uint8_t syndrome)
{
    return is_ack(c) && c->headers && c->p.syndrome == syndrome;
}

/* Do most requests appear several times, unasked? Then a mirror shows all packets repeatedly. */
static bool all_doubled(const struct lint_flow_info *requests)
{
    return requests->duplicates && requests->duplicates * 3 >= requests->requests;
}

/* The same packet again: has the network doubled it? Without other evidence it may have once. */
static bool twin(struct lint_ctx *c, const struct lint_mark *m)
{
    if (lint_id_tells(c->f, &c->p))
        return m->ip_id == c->p.ip_id;
    if (all_doubled(&c->req->info) && c->in->ns - m->ns < LINT_ANEW_NS)
        return true;
    if (!m->again)
        lint_doubt(c, LINT_UNDECIDABLE, "perhaps doubled by the network: the capture can't tell");
    return false;
}

/* A request answered long ago gets no different answer now: perhaps it is the answer to an
 * uncaptured request in a new life of the queue pair. */
static bool perhaps_anew(struct lint_ctx *c)
{
    uint64_t asked = c->rec ? c->rec->last_ns : c->read ? c->read->ns : UINT64_MAX - LINT_ANEW_NS;
    if (c->req->ack_on && wire_psn_diff(c->p.psn, c->req->acked) <= 0 &&
        c->in->ns >= asked + LINT_ANEW_NS)
        lint_doubt(c, LINT_UNDECIDABLE, "the request that it answers may not have been captured");
    return true;
}

bool lint_req_10(struct lint_ctx *c)
{
    if (!c->p.ackreq)
        return false;
    lint_expected(c, "AckReq 0 on %s", c->op->name);
    return lint_seen(c, "AckReq 1");
}

/* Did it come just before a request with its PSN, which it can't answer? Perhaps it was for an
 * uncaptured life of the queue pair, unless that was a moment ago. */
static bool came_too_early(struct lint_ctx *c)
{
    if (c->outcome != LINT_CONFIRMED || wire_opcodes[c->wait->opcode].flags & WIRE_F_ACK)
        return false;
    lint_expected(c, "an answer to %s", c->op->name);
    lint_seen(c, "%s, before it", wire_opcodes[c->wait->opcode].name);
    if (c->in->ns - c->wait->ns >= LINT_ANEW_NS)
        lint_doubt(c, LINT_UNDECIDABLE, "the request that it answers may not have been captured");
    return true;
}

bool lint_req_28(struct lint_ctx *c)
{
    if (c->wait)
        return came_too_early(c);
    if (is_ack(c) || c->where != LINT_W_KNOWN || (!c->rec && !c->read))
        return false;
    const uint8_t service = c->p.opcode & 0xE0u; /* without a record: within a READ */
    uint8_t asked = c->rec ? c->rec->opcode : service | WIRE_READ_REQUEST;
    if (!c->rec && (c->read->atomic || c->read->disputed))
        return false;
    if (!(c->op->flags & WIRE_F_ATOMIC) && lint_read_shared(c->req, c->p.psn))
        return false; /* REQ-06 has reported it */
    if (lint_answers(asked, c->p.opcode))
        return false;
    lint_expected(c, "an answer to %s", wire_opcodes[asked].name);
    lint_seen(c, "%s", c->op->name);
    return perhaps_anew(c);
}

/* The opcode that a READ response with this PSN must have. */
bool lint_req_30(struct lint_ctx *c)
{
    const struct lint_read *r = c->read;
    unsigned f = c->op->flags;
    if (!r || r->atomic || !r->n || r->disputed || !(f & WIRE_F_READ))
        return false;
    uint32_t off = (c->p.psn - r->psn) & WIRE_PSN_MASK;
    bool last = off == r->n - 1, starts = f & WIRE_F_START;
    bool kind = last ? f & (WIRE_F_LAST | WIRE_F_ONLY) : f & (WIRE_F_FIRST | WIRE_F_MIDDLE);
    if (kind && (off == 0 ? starts : !starts || r->parts))
        return false;
    static const char *const names[] = {"FIRST", "MIDDLE", "LAST", "ONLY"};
    unsigned want = off == 0 ? (last ? 3 : 0) : last ? 2 : 1;
    lint_expected(c, "%s: response %u of %u", names[want], off + 1, r->n);
    lint_seen(c, "%s", c->op->name);
    if (r->perhaps_part && !off)
        return lint_doubt(c, LINT_UNDECIDABLE, "the READ itself may begin in the middle");
    /* It may answer an uncaptured re-read; but that takes a round trip. */
    const struct lint_flow_info *i = &c->f->info;
    if (kind && off && !(c->p.psn == r->next && i->rtt_samples && c->in->ns - r->ns < i->rtt_min))
        return lint_doubt(c, LINT_UNDECIDABLE, "a READ from here may not have been captured");
    return perhaps_anew(c);
}

bool lint_req_31(struct lint_ctx *c)
{
    if (is_ack(c) || !(c->op->headers & WIRE_H_AETH) || !c->headers || kind(c) == WIRE_AETH_ACK)
        return false;
    lint_expected(c, "a syndrome of type ACK");
    return lint_seen(c, "0x%02x", c->p.syndrome);
}

bool lint_ack_02(struct lint_ctx *c)
{
    if (c->verdict != WIRE_BAD_AETH)
        return false;
    lint_expected(c, "ACK, RNR NAK, or NAK code 0 to 4");
    return lint_seen(c, "syndrome 0x%02x", c->p.syndrome);
}

/* Was a request with this answer's PSN captured since? With reordering it may have been sent before
 * the answer. */
static bool came_since(const struct lint_flow *q, const struct lint_wait *w)
{
    const struct lint_rec *r = lint_rec_at(q, w->psn);
    return r && (r->flags & LINT_R_SEEN) && r->number > w->number;
}

/* An answer to an uncaptured PSN: later packets decide. */
static bool judge_unseen(struct lint_ctx *c)
{
    const struct lint_flow *q = c->req ? c->req : c->f;
    lint_expected(c, "a PSN that has been sent");
    lint_seen(c, "PSN 0x%x", c->wait->psn);
    if (c->outcome == LINT_CONFIRMED)
        return false; /* REQ-28 reports it */
    if (c->outcome != LINT_NEVER_SENT && q->unseen_unread)
        return false; /* its mistake was reported */
    if (c->outcome == LINT_NOT_CAPTURED)
        return lint_doubt(c, LINT_ARTEFACT,
                          "the requester continues after it: the capture is incomplete");
    if (c->outcome == LINT_OPEN && came_since(q, c->wait) && lint_skewed(q))
        return lint_doubt(c, LINT_UNDECIDABLE,
                          "the request is recorded after it, like other requests");
    if (c->outcome == LINT_OPEN)
        return lint_doubt(c, LINT_UNDECIDABLE, "the request may not have been captured");
    lint_seen(c, "PSN 0x%x; later packets are answered with earlier PSNs", c->wait->psn);
    c->order_matters =
        !(wire_opcodes[c->wait->opcode].flags & WIRE_F_ACK) || came_since(q, c->wait);
    if (!q->start_known && !q->from_start && q->unseen_requests < LINT_SETTLED)
        return lint_doubt(c, LINT_UNDECIDABLE, "it may have been sent before the capture began");
    return true;
}

/* Does it answer a PSN before the first one, which the CM has announced? An ACK may name the PSN
 * directly before the first one, when nothing has been executed. */
static bool before_begin(struct lint_ctx *c)
{
    const struct lint_flow *q = c->req;
    bool plain = is_ack(c) && kind(c) == WIRE_AETH_ACK;
    if (!q || c->where != LINT_W_BEFORE || !q->start_known || (is_ack(c) && !c->headers) ||
        wire_psn_diff(c->p.psn, q->announced) + plain >= 0)
        return false;
    lint_expected(c, "PSN 0x%x or later: the connection begins there", q->announced);
    lint_seen(c, "PSN 0x%x", c->p.psn);
    if (q->used_again)
        lint_doubt(c, LINT_UNDECIDABLE,
                   "perhaps late, from an earlier connection of these queue pairs");
    return true;
}

static bool waiting_nak(const struct lint_ctx *c)
{
    return c->wait && (wire_opcodes[c->wait->opcode].flags & WIRE_F_ACK) && c->wait->nak;
}

/* LINT_S_BACK: an earlier ACK acknowledges more. */
static bool less_than_before(struct lint_ctx *c)
{
    const struct lint_most *m = &c->req->most;
    lint_expected(c, "PSN 0x%x or later: packet %llu, sent before, acknowledges it", m->psn,
                  (unsigned long long)m->number);
    return lint_seen(c, "PSN 0x%x", c->wait->psn);
}

bool lint_ack_05(struct lint_ctx *c)
{
    if (c->req && c->wait == &c->req->most.less)
        return less_than_before(c);
    if (c->wait)
        return !waiting_nak(c) && judge_unseen(c);
    if (c->psn_stands) {
        lint_expected(c, "PSN 0x%x or later, since it has been counted", lint_add(c->p.psn, 1));
        return lint_seen(c, "PSN 0x%x", c->p.psn);
    }
    if (before_begin(c))
        return !is_ack(c) || kind(c) == WIRE_AETH_ACK;
    if (!is_ack(c) || !c->headers || kind(c) != WIRE_AETH_ACK || c->where != LINT_W_KNOWN)
        return false;
    const struct lint_read *r = c->read;
    if (!r)
        return false;
    lint_expected(c, "no ACK for PSN 0x%x: it belongs to %s", c->p.psn,
                  r->atomic ? "an ATOMIC" : "a READ");
    return lint_seen(c, "ACK");
}

bool lint_ack_07(struct lint_ctx *c)
{
    if (!c->wait)
        return is_ack(c) && kind(c) != WIRE_AETH_ACK && before_begin(c);
    return waiting_nak(c) && judge_unseen(c);
}

bool lint_ack_06(struct lint_ctx *c)
{
    if (is_nak(c, WIRE_SYN_NAK_RD)) {
        lint_expected(c, "a NAK code of a connected service");
        return lint_seen(c, "invalid RD request");
    }
    if (!is_nak(c, WIRE_SYN_NAK_ACCESS) || !c->rec || c->read)
        return false;
    const struct wire_opcode_info *op = &wire_opcodes[c->rec->opcode];
    if (!(op->flags & WIRE_F_SEND))
        return false;
    lint_expected(c, "another NAK: %s has no R_Key to be refused", op->name);
    return lint_seen(c, "remote access error");
}

bool lint_ack_08(struct lint_ctx *c)
{
    const struct lint_mark *m = c->req ? &c->req->nak : NULL;
    if (!m || !is_nak(c, WIRE_SYN_NAK_SEQ) || !m->on || m->psn != c->p.psn || twin(c, m))
        return false;
    if (c->rec && c->rec->last_number > m->number)
        return false; /* sent again: perhaps lost again */
    if (c->req->rnr.psn == m->psn && c->req->rnr.number > m->number)
        return false; /* it has arrived, since an RNR NAK refuses it: RNR-02 reports the rest */
    uint64_t rtt = c->f->info.rtt_samples ? c->f->info.rtt_min : 0;
    lint_expected(c, "no second NAK before PSN 0x%x has arrived", c->p.psn);
    lint_seen(c, "one %.3f ms after the first", (double)(c->in->ns - m->ns) / 1e6);
    if (c->in->ns - m->ns >= rtt)
        return lint_doubt(c, LINT_UNDECIDABLE, "PSN 0x%x may not have been captured", c->p.psn);
    return true;
}

bool lint_ack_10(struct lint_ctx *c)
{
    const struct lint_port *port = &c->f->port;
    lint_expected(c, "qp 0x%x, which expects it and uses its source port", port->qpn);
    lint_seen(c, "qp 0x%x", c->f->info.dqpn);
    if (c->outcome == LINT_OPEN)
        lint_doubt(c, LINT_UNDECIDABLE, "right if the queue pair uses that port from now on");
    if (c->outcome == LINT_NOT_CAPTURED)
        lint_doubt(c, LINT_UNDECIDABLE, "right if its requests weren't captured; reported once");
    return true;
}

bool lint_ack_11(struct lint_ctx *c)
{
    /* Requests recorded late explain a count that is too high, or that does not rise. But all
     * answers are recorded in one place: none counts less than one before it, or differs from one
     * with the same expected PSN. */
    bool less = c->msn_after && wire_psn_diff(c->p.msn, c->msn_before) < 0;
    c->skew_matters = c->wait || !(c->msn_differs || less);
    if (c->wait && c->outcome == LINT_OPEN) {
        lint_expected(c, "MSN %u at most: no more messages were captured", c->msn_hi);
        lint_seen(c, "MSN %u", c->wait->msn);
        return lint_doubt(c, LINT_UNDECIDABLE, "later READs or ATOMICs may not have been captured");
    }
    if (c->wait) {
        if (c->msn_known)
            lint_expected(c, "MSN %u, as later answers count", c->msn_lo);
        else if (c->op->flags & WIRE_F_REQUEST)
            lint_expected(c, "MSN %u at most: no more messages had been sent", c->msn_hi);
        else
            lint_expected(c, "MSN %u at most: a later packet is answered with %u", c->msn_hi,
                          c->p.msn);
        lint_seen(c, "MSN %u", c->wait->msn);
        if (c->msn_perhaps)
            return lint_doubt(
                c, LINT_UNDECIDABLE,
                "that packet may be a repetition, its first transmission not captured");
        if (c->msn_crossed)
            return lint_doubt(
                c, LINT_UNDECIDABLE,
                "it may answer a copy of a packet, and have overtaken another answer");
        if (!c->msn_known && (c->req->info.reordered || c->req->peer->info.reordered))
            return lint_doubt(c, LINT_UNDECIDABLE, "the network changes the order of packets here");
        return true;
    }
    if (!c->msn_known || c->psn_stands)
        return false;
    if (c->msn_differs)
        lint_expected(c, "MSN %u, as in packet %llu, before the same request", c->msn_lo,
                      (unsigned long long)c->msn_after);
    else if (c->msn_after)
        lint_expected(c, "MSN %u or more, since packet %llu has %u", c->msn_lo,
                      (unsigned long long)c->msn_after, c->msn_before);
    else if (wire_psn_diff(c->p.msn, c->msn_lo) < 0)
        lint_expected(c, "MSN %u%s", c->msn_lo, c->msn_lo == c->msn_hi ? "" : " or more");
    else
        lint_expected(c, "MSN %u%s", c->msn_hi, c->msn_lo == c->msn_hi ? "" : " or less");
    lint_seen(c, "MSN %u", c->p.msn);
    if (c->msn_perhaps)
        return lint_doubt(c, LINT_UNDECIDABLE,
                          "%u requests may be repetitions from before the capture",
                          c->req->counted.stands + 1);
    return perhaps_anew(c);
}

bool lint_rnr_01(struct lint_ctx *c)
{
    if (!is_ack(c) || !c->headers || kind(c) != WIRE_AETH_RNR || !c->rec)
        return false;
    const struct wire_opcode_info *op = &wire_opcodes[c->rec->opcode];
    /* RNR-08: a READ or ATOMIC may be refused for lack of room. */
    if ((op->flags & WIRE_F_RECV_WQE) || !(op->flags & (WIRE_F_SEND | WIRE_F_WRITE)))
        return false;
    lint_expected(c, "no RNR NAK: %s takes no receive", op->name);
    return lint_seen(c, "RNR NAK");
}

/* The PSN of this NAK was retransmitted after its refusal. Was it only once, and so recently that
 * the NAK can't be for the packet after it? */
static bool too_soon(const struct lint_ctx *c, const struct lint_mark *m)
{
    if (c->rec->sends != m->sends + 1 ||
        (c->req->ack_on && wire_psn_diff(c->p.psn, c->req->acked) <= 0))
        return false;
    uint64_t sent = c->rec->last_ns, trip = c->f->info.rtt_samples ? c->f->info.rtt_min : 0;
    return c->in->ns >= sent && c->in->ns - sent < trip / 2;
}

bool lint_rnr_02(struct lint_ctx *c)
{
    struct lint_mark *m = c->req ? &c->req->rnr : NULL;
    if (!m || !is_nak(c, WIRE_SYN_NAK_SEQ) || !m->number || m->psn != c->p.psn)
        return false;
    bool repeated = c->rec && c->rec->last_number > m->number;
    if (repeated ? !too_soon(c, m) : !m->on)
        return false;
    bool ordered = lint_id_counts(c->f, &c->p);
    if (ordered && (int16_t)(c->p.ip_id - m->ip_id) < 0)
        return false; /* sent before it, and overtaken */
    lint_expected(c, "silence until PSN 0x%x comes again", c->p.psn);
    lint_seen(c, "a sequence NAK after the RNR NAK");
    if (repeated && !c->req->rnr_02)
        return lint_doubt(
            c, LINT_UNDECIDABLE,
            "right if the packet came again and was answered in half the shortest time");
    /* If a packet was sent twice, the first transmission may have been lost, and this may be a late
     * NAK for it; but not if each was answered with an RNR NAK. If the IP identification shows each
     * time that the NAK was sent after the RNR NAK, it is a habit. */
    bool habit = ordered && ++c->req->rnr_02_doubts > RNR_02_HABIT;
    if (!repeated && m->sends > m->answers && !c->req->rnr_02 && !habit)
        return lint_doubt(c, LINT_UNDECIDABLE, "it may answer the first transmission, late");
    c->order_matters = !ordered;
    c->req->rnr_02 = true;
    return true;
}

bool lint_rsp_12(struct lint_ctx *c)
{
    if (!is_nak(c, WIRE_SYN_NAK_OP) || !c->rec ||
        !(wire_opcodes[c->rec->opcode].flags & WIRE_F_SEND))
        return false;
    lint_expected(c, "invalid request, if the SEND was too long");
    lint_seen(c, "remote operational error");
    return lint_doubt(c, LINT_UNDECIDABLE, "right if the receive itself was faulty");
}

bool lint_rsp_22(struct lint_ctx *c)
{
    const struct lint_mark *m = c->req ? &c->req->fatal : NULL;
    if (!m || !m->on || !c->rec || c->where != LINT_W_KNOWN)
        return false;
    bool again = is_ack(c) && c->headers && c->p.syndrome == m->syndrome && c->p.psn == m->psn;
    if (again ? twin(c, m) : c->rec->number <= m->number)
        return false;
    lint_expected(c, "silence after the NAK in packet %llu", (unsigned long long)m->number);
    return lint_seen(c, again ? "the NAK again" : "an answer to packet %llu",
                     (unsigned long long)c->rec->number);
}

bool lint_rd_05(struct lint_ctx *c)
{
    if (c->wait) { /* it showed the MTU wrongly */
        lint_expected(c, "%u octets, the MTU", c->p.payload_len);
        lint_seen(c, "%u octets", c->f->info.mtu);
        return !(wire_opcodes[c->wait->opcode].flags & WIRE_F_REQUEST);
    }
    const struct lint_read *r = c->read;
    uint32_t mtu = c->f->info.mtu;
    if (!r || r->atomic || r->blind || r->disputed || !(c->op->flags & WIRE_F_READ))
        return false;
    bool whole = !r->n || (!mtu && r->n == 1); /* no longer than any MTU */
    if (whole && (c->op->flags & WIRE_F_ONLY) && c->p.psn == r->psn && c->p.payload_len != r->len) {
        lint_expected(c, "%u octets", r->len);
        lint_seen(c, "%u octets", c->p.payload_len);
        return (c->cut && c->p.payload_len > r->len && lint_perhaps_merged(c)) || perhaps_anew(c);
    }
    if (!mtu && (c->op->flags & (WIRE_F_FIRST | WIRE_F_MIDDLE))) { /* else it would be known now */
        lint_expected(c, "256, 512, 1024, 2048 or 4096 octets");
        return lint_seen(c, "%u octets", c->p.payload_len);
    }
    if (!r->n || !mtu)
        return false;
    uint32_t off = (c->p.psn - r->psn) & WIRE_PSN_MASK;
    if ((off == r->n - 1) != ((c->op->flags & (WIRE_F_LAST | WIRE_F_ONLY)) != 0))
        return false; /* REQ-30 reports it */
    uint64_t rest = r->len - (uint64_t)off * mtu;
    uint32_t want = rest > mtu ? mtu : (uint32_t)rest;
    if (c->p.payload_len == want)
        return false;
    if (c->op->flags & (WIRE_F_FIRST | WIRE_F_MIDDLE) && c->p.payload_len + c->p.pad == want)
        return false; /* HDR-06 reports it */
    lint_expected(c, "%u octets: response %u of %u", want, off + 1, r->n);
    lint_seen(c, "%u octets", c->p.payload_len);
    return (c->cut && c->p.payload_len > want && lint_perhaps_merged(c)) || perhaps_anew(c);
}

bool lint_rd_10(struct lint_ctx *c)
{
    lint_expected(c, "FIRST or ONLY for the READ from PSN 0x%x", c->wait->psn);
    lint_seen(c, "%s", wire_opcodes[c->wait->opcode].name);
    if (c->outcome == LINT_OPEN)
        return lint_doubt(c, LINT_UNDECIDABLE, "perhaps the answer to the first READ, late");
    return true;
}

bool lint_atm_08(struct lint_ctx *c)
{
    const struct lint_read *r = c->read;
    if (!r || !r->atomic || !r->have_orig || !(c->op->headers & WIRE_H_ATOMICACK) || !c->headers ||
        r->orig == c->p.orig)
        return false;
    lint_expected(c, "0x%llx, as before", (unsigned long long)r->orig);
    lint_seen(c, "0x%llx", (unsigned long long)c->p.orig);
    if (c->rec && c->rec->sends == 1 && lint_perhaps_stray(c))
        return lint_doubt(c, LINT_UNDECIDABLE,
                          "one of the two answers may be for another queue pair that expects one");
    return perhaps_anew(c);
}
