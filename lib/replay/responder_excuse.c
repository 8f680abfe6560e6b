/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Other explanations of an answer that our engine doesn't give, or not yet: a gap in the capture,
 * delay and reordering after the capture point, copies, a missing receive.
 */
#include "as_responder.h"

#define LATE     64u      /* packets in which a delayed one arrives */
#define MISSED   256u     /* packets reordered for one answer */
#define STEPS    4u       /* previous requests that prove a counter of IP identifications */
#define STEP_MAX 64u      /* largest step of that counter */
#define TIME_OUT 1000000u /* ns: shortest time before a retransmission without an answer */

/* Between `from` and the NAK: has the responder refused the NAK's PSN for want of a receive, and
 * given no other answer to it since? */
bool excuse_refused_since(const struct responder *r, const struct packet *from,
                          const struct packet *nak)
{
    const struct packet *q = nak;
    for (unsigned n = 0; q > from && n < BACK; n++) {
        if (!packet_answers(r->d, --q) || wire_psn_diff(q->psn, nak->psn) < 0)
            continue;
        if (q->psn != nak->psn || q->opcode != WIRE_ACKNOWLEDGE || packet_positive(q))
            return false;
        if (wire_aeth_kind(q->syndrome) == WIRE_AETH_RNR)
            return true;
    }
    return false;
}

/* The latest request before `end` with this PSN, or NULL; with `fed`, only one that found its
 * receive. */
static const struct packet *asked_before(const struct responder *r, const struct packet *end,
                                         uint32_t psn, bool fed)
{
    for (unsigned n = 0; end > r->d->packet && n < BACK; n++)
        if (packet_asks(r->d, --end) && end->psn == psn && !(fed && end->starve))
            return end;
    return NULL;
}

/* The first uncaptured PSN that this answer covers, from our engine's expected PSN on; the answer's
 * own end if there is none. */
static uint32_t never_shown(const struct responder *r, const struct packet *p, uint32_t end)
{
    uint32_t psn = stage_epsn(&r->stage);
    for (unsigned n = 0; wire_psn_diff(end, psn) > 0 && n < MISSED; n++) {
        const struct packet *q = asked_before(r, p, psn, false);
        if (!q)
            return psn;
        psn = (psn + packet_psns(r->d, q)) & WIRE_PSN_MASK;
    }
    return end;
}

/* Was this packet, captured after its answer `p`, a retransmission after a time-out? Not if it
 * comes sooner, or if its IP identification follows that of `last`, the packet before the answer.
 */
static bool sent_late(const struct packet *p, const struct packet *last, const struct packet *q)
{
    return q->kept->ns >= p->kept->ns + TIME_OUT &&
           !(last && q->ipv4 && (uint16_t)(q->ip_id - last->ip_id) == 1);
}

/* Had the requester sent, before this answer, a packet that was not captured before it? A packet
 * captured later may not have been sent before. If a later PSN was captured before, it was; it may
 * have been if the requester went back before that, or waited. No responder can guess the answer to
 * a READ. */
static bool missed(const struct responder *r, const struct packet *p, uint32_t wanted)
{
    bool ack = packet_flags(p) & WIRE_F_ACK, before = false, back = false;
    const struct packet *last = NULL;
    const struct packet *end = ack ? r->d->packet + r->d->packets : p;
    for (const struct packet *q = r->d->packet; q < end; q++) {
        if (!packet_asks(r->d, q))
            continue;
        if (q->psn == wanted)
            return q > p && (before || back || sent_late(p, last, q));
        last = q < p ? q : last;
        before = before || wire_psn_diff(q->psn, wanted) > 0;
        back = back || (q > p && wire_psn_diff(q->psn, wanted) < 0);
    }
    return true;
}

/* An answer that covers our engine's expected PSN or a later one, but the capture lacks that
 * request. From here on nothing can be judged. */
bool excuse_hole(const struct responder *r, const struct packet *p)
{
    uint32_t end = (p->psn + packet_positive(p)) & WIRE_PSN_MASK; /* a NAK's own is not covered */
    if (wire_psn_diff(end, stage_epsn(&r->stage)) <= 0 || stage_state(&r->stage) == QPS_ERR)
        return false;
    uint32_t wanted = never_shown(r, p, end);
    return wanted != end && missed(r, p, wanted);
}

/* Does the answer refuse a packet that the capture has missed? */
bool excuse_missed(const struct responder *r, const struct packet *p)
{
    return packet_flags(p) & WIRE_F_ACK && !packet_positive(p) && p->syndrome != WIRE_SYN_NAK_SEQ &&
           !asked_before(r, p, p->psn, false) && missed(r, p, p->psn);
}

/* Does the answer refuse a request for want of a receive, or a READ or ATOMIC for want of room
 * (RNR-08)? Any responder may, and the time of a transmission's arrival is not always known. But a
 * request that an answer covered long ago can't be refused. */
bool excuse_starved(const struct responder *r, const struct packet *p)
{
    const struct packet *asked = asked_before(r, p, p->psn, false), *q = p;
    if (wire_aeth_kind(p->syndrome) != WIRE_AETH_RNR || !asked)
        return false;
    unsigned f = packet_flags(asked);
    if (!(f & (WIRE_F_READ | WIRE_F_ATOMIC)) &&
        (f & WIRE_F_SEND ? !(f & WIRE_F_START) : !(f & WIRE_F_IMM && f & WIRE_F_END)))
        return false;
    for (unsigned n = 0; q > r->d->packet && n < BACK; n++)
        if (packet_answers(r->d, --q) && packet_positive(q) && wire_psn_diff(q->psn, p->psn) >= 0)
            return n < LATE;
    return true;
}

/* An answer that shows that the responder is ahead of our engine: the capture has all the packets
 * for it, but in another order, or marked as lost. Feed them in order. */
void excuse_order(struct responder *r, const struct packet *p)
{
    uint32_t goal = (p->psn + packet_positive(p)) & WIRE_PSN_MASK, psn = stage_epsn(&r->stage);
    const struct packet *missed[MISSED];
    unsigned n = 0;
    if (r->d->exact || p->selective || stage_state(&r->stage) == QPS_ERR)
        return;
    for (; wire_psn_diff(goal, psn) > 0; n++) {
        if (n == MISSED || !(missed[n] = asked_before(r, p, psn, true)))
            return;
        psn = (psn + packet_psns(r->d, missed[n])) & WIRE_PSN_MASK;
    }
    for (unsigned i = 0; i < n; i++)
        responder_give(r, (size_t)(missed[i] - r->d->packet));
}

/* Do the requester's IP identifications show other packets between these two? They are a counter,
 * if the packets before prove it. */
static bool numbers_lack(const struct responder *r, const struct packet *last,
                         const struct packet *next)
{
    const struct packet *q = last, *after = last;
    unsigned steps = 0;
    uint16_t step = (uint16_t)(next->ip_id - last->ip_id);
    if (!last->ipv4 || step < 2 || step >= STEP_MAX)
        return false;
    for (unsigned n = 0; q > r->d->packet && n < BACK && steps < STEPS; n++) {
        if (!packet_asks(r->d, --q))
            continue;
        step = (uint16_t)(after->ip_id - q->ip_id);
        if (!step || step >= STEP_MAX)
            return false;
        after = q;
        steps++;
    }
    return steps == STEPS;
}

/* Has the capture missed a packet after `last`, whose PSN this NAK names? It has if later packets
 * were captured before the missing one; if the requester goes back to `last` and continues from
 * there at once; or if an answer is to an uncaptured PSN, or to one that is first captured later.
 * The last case counts only if the requester's IP identifications have a gap. None of the cases
 * counts if they are a counter without a gap. */
static bool gap_missed(const struct responder *r, const struct packet *nak,
                       const struct packet *last)
{
    const struct packet *q = nak, *end = r->d->packet + r->d->packets, *again = NULL, *first = NULL;
    int32_t next = (int32_t)packet_psns(r->d, last);
    bool answered = false;
    for (unsigned n = 0; ++q < end && n < BACK; n++) {
        int32_t off = wire_psn_diff(q->psn, nak->psn);
        if (packet_answers(r->d, q) && packet_positive(q) && off >= 0) {
            if (off >= next)
                return again || (first && numbers_lack(r, last, first));
            /* (before that it was the late answer to `last`) */
            answered = answered || (again && q->kept->ns >= again->kept->ns);
        }
        if (!packet_asks(r->d, q) || off < 0)
            continue;
        first = first ? first : q;
        if (off == 0)
            again = again ? again : q;
        else if (!again && off > next)
            return true;
        else if (again)
            return !answered && (!q->ipv4 || (uint16_t)(again->ip_id - last->ip_id) != 1);
    }
    return false;
}

/* Could this NAK's packet have arrived late, after packets that were sent after it? Not if an
 * answer has covered it before, or a NAK has named it. If it was not captured, later packets may
 * also be missing, but not at the responder's own port. */
static bool first_missing(const struct responder *r, const struct packet *p)
{
    bool after = false;
    const struct packet *q = p, *last = NULL;
    for (unsigned n = 0; q > r->d->packet && n < BACK; n++) {
        q--;
        int32_t off = wire_psn_diff(q->psn, p->psn);
        /* (an answer from before its transmission has not covered it) */
        if (packet_answers(r->d, q) && off >= 0 && (!last || asked_before(r, q, p->psn, false)))
            return false;
        after = after || (packet_asks(r->d, q) && off > 0);
        if (!last && packet_asks(r->d, q) && off == 0)
            last = q;
    }
    return after || (!r->d->own_port && (!last || gap_missed(r, p, last)));
}

/* Is it a second NAK for one gap, from a responder that repeats its NAK in case the first was lost?
 * Then it comes two round trips after the first, and its packet has been retransmitted since. */
static bool said_again(const struct responder *r, const struct packet *p)
{
    uint64_t rtt = r->d->answers.rtt_samples ? r->d->answers.rtt_min : 0;
    const struct packet *q = p;
    bool sent = false;
    for (unsigned n = 0; rtt && q > r->d->packet && n < BACK; n++) {
        q--;
        sent = sent || (packet_asks(r->d, q) && q->psn == p->psn);
        if (packet_answers(r->d, q) && wire_psn_diff(q->psn, p->psn) >= 0)
            return sent && q->psn == p->psn && q->syndrome == p->syndrome &&
                   q->opcode == p->opcode && p->kept->ns > q->kept->ns &&
                   p->kept->ns - q->kept->ns >= 2 * rtt;
    }
    return false;
}

/* A NAK that the network explains: its packet was delayed after the capture point; or answers to
 * that packet have overtaken the NAK. Long after them it would be a NAK of a retransmission. */
bool excuse_delayed(const struct responder *r, const struct packet *p)
{
    bool covered = false;
    if (p->syndrome != WIRE_SYN_NAK_SEQ)
        return false;
    if (p->overtaken || said_again(r, p))
        return true;
    const struct packet *early =
        r->d->exact && p->psn == stage_epsn(&r->stage) ? asked_before(r, p, p->psn, true) : NULL;
    if (early && !excuse_refused_since(r, early, p))
        return true; /* it came early; the packets that it overtook came just before the NAK */
    if (!r->d->exact && (evidence_late(r->d, p) || first_missing(r, p)))
        return true;
    size_t i = (size_t)(p - r->d->packet);
    for (unsigned n = 0; i-- > 0 && n < 2 * LATE; n++) {
        const struct packet *q = &r->d->packet[i];
        bool covers =
            packet_answers(r->d, q) && packet_positive(q) && wire_psn_diff(q->psn, p->psn) >= 0;
        if (covers && n >= LATE)
            return false;
        covered = covered || covers;
    }
    return covered;
}

/* A second fatal NAK: by its IP identification, is it a copy made by a mirror or the network? */
bool excuse_copied(const struct responder *r, const struct packet *p)
{
    const struct packet *q = p;
    if (p->syndrome <= WIRE_SYN_NAK_SEQ)
        return false;
    for (unsigned n = 0; q > r->d->packet && n < BACK; n++)
        if (packet_answers(r->d, --q) && q->psn == p->psn && q->opcode == p->opcode &&
            q->syndrome == p->syndrome)
            return q->ip_id == p->ip_id;
    return false;
}
