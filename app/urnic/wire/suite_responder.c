/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The device as responder: requests come to it from side A, and a fault hits one of them.
 */
#include "suite_check.h"

/* The packet that the case's rules have hit; or add a result with the reason why there is none. */
static uint32_t victim(struct suite_run *r, unsigned fate, const char *rule)
{
    uint32_t i = suite_find_fate(r, fate);
    if (i == SUITE_NONE)
        suite_say(r->card, rule, SUITE_UNTESTED, "the traffic had no packet for the fault");
    return i;
}

/* The first request, from index `i` on, that shows the device the gap at `rel`. */
static uint32_t find_later(const struct suite_run *r, uint32_t i, int32_t rel)
{
    for (; i < r->trace->n; i++) {
        const struct suite_pkt *p = suite_at(r, i);
        if (suite_request(&r->flow, p) && suite_passed(p) && !(p->fate & FAULT_DAMAGED) &&
            suite_rel(&r->flow, p->psn) > rel)
            return i;
    }
    return SUITE_NONE;
}

static void say_latency(struct suite_run *r, uint32_t trigger, uint32_t nak)
{
    struct suite_span s = suite_span(r, trigger, nak);
    uint64_t t = suite_timeout(r);
    bool late = t && s.least > t; /* no result: the requester's timer is faster */
    suite_say(r->card, "LR-14", late ? SUITE_FAIL : SUITE_PASS,
              "NAK %.1f us after the packet that shows the gap", (double)s.seen / 1e3);
    suite_measured(r->card, (double)s.seen, "ns");
}

/* Exactly one NAK for the gap, with its PSN, and no acknowledgement past the gap before it is
 * filled. */
static void check_gap(struct suite_run *r, uint32_t lost)
{
    const struct suite_flow *f = &r->flow;
    int32_t rel = suite_rel(f, suite_at(r, lost)->psn);
    uint32_t trigger = find_later(r, lost, rel);
    uint32_t filled = suite_find_sent(r, lost + 1, rel);
    uint32_t end = filled == SUITE_NONE ? r->trace->n : filled;
    uint32_t nak = suite_find_nak(r, lost, WIRE_SYN_NAK_SEQ);
    unsigned naks = 0, early = 0;
    if (trigger == SUITE_NONE) {
        suite_say(r->card, "RSP-02", SUITE_UNTESTED, "no packet followed the missing one");
        return;
    }
    if (nak == SUITE_NONE || nak > end) {
        suite_say(r->card, "RSP-02", SUITE_FAIL, "no NAK for the missing packet");
        return;
    }
    suite_say(r->card, "RSP-02", nak < trigger ? SUITE_FAIL : SUITE_PASS,
              nak < trigger ? "a NAK before any packet showed the gap"
                            : "a packet after the gap is answered by a NAK");
    int32_t said = suite_rel(f, suite_at(r, nak)->psn);
    suite_say(r->card, "ACK-07", said == rel ? SUITE_PASS : SUITE_FAIL,
              "the NAK names PSN +%d, missing is +%d", said, rel);
    for (uint32_t i = lost; i < end; i++) {
        const struct suite_pkt *p = suite_at(r, i);
        naks += suite_nak(f, p, WIRE_SYN_NAK_SEQ);
        early += suite_response(f, p) && suite_flags(p) & WIRE_F_ACK &&
                 p->syndrome < WIRE_SYN_RNR && suite_rel(f, p->psn) >= rel;
    }
    suite_say(r->card, "ACK-08", naks == 1 ? SUITE_PASS : SUITE_FAIL,
              "%u NAK%s before the gap was filled", naks, naks == 1 ? "" : "s");
    suite_say(r->card, "ACK-05", early ? SUITE_FAIL : SUITE_PASS,
              "%u acknowledgements of packets after the gap", early);
    if (nak > trigger)
        say_latency(r, trigger, nak);
}

/* In the end all requests are acknowledged. */
static void check_recovered(struct suite_run *r)
{
    const struct suite_flow *f = &r->flow;
    int32_t acked = -1;
    for (uint32_t i = 0; i < r->trace->n; i++) {
        const struct suite_pkt *p = suite_at(r, i);
        if (!suite_response(f, p) || (suite_flags(p) & WIRE_F_ACK && p->syndrome >= WIRE_SYN_RNR))
            continue;
        int32_t rel = suite_rel(f, p->psn);
        acked = rel > acked ? rel : acked;
    }
    suite_say(r->card, "ACK-03", acked >= f->highest ? SUITE_PASS : SUITE_FAIL,
              "acknowledged up to PSN +%d of +%d", acked, f->highest);
}

void suite_check_lost(struct suite_run *r)
{
    uint32_t lost = victim(r, FAULT_DROP, "RSP-02");
    if (lost == SUITE_NONE)
        return;
    check_gap(r, lost);
    check_recovered(r);
}

/* The NAK's answer is lost, too: the device must stay silent until the packet comes. */
void suite_check_lost_twice(struct suite_run *r)
{
    uint32_t lost = victim(r, FAULT_DROP, "ACK-08");
    if (lost == SUITE_NONE)
        return;
    int32_t rel = suite_rel(&r->flow, suite_at(r, lost)->psn);
    uint32_t filled = suite_find_sent(r, lost + 1, rel);
    unsigned naks = 0;
    for (uint32_t i = lost; i < r->trace->n && i < filled; i++)
        naks += suite_nak(&r->flow, suite_at(r, i), WIRE_SYN_NAK_SEQ);
    if (filled == SUITE_NONE) {
        suite_say(r->card, "ACK-08", SUITE_UNTESTED, "the tester never filled the gap");
        return;
    }
    suite_say(r->card, "ACK-08", naks == 1 ? SUITE_PASS : SUITE_FAIL,
              "%u NAK%s though the packet was lost twice", naks, naks == 1 ? "" : "s");
    check_recovered(r);
}

/* A late packet looks lost until it comes; then the packets that overtook it are missing. So there
 * may be a NAK for it and one for its successor, but each only once. */
void suite_check_reordered(struct suite_run *r)
{
    uint32_t late = victim(r, FAULT_HOLD, "ACK-08");
    if (late == SUITE_NONE)
        return;
    int32_t rel = suite_rel(&r->flow, suite_at(r, late)->psn);
    unsigned naks[2] = {0}, wrong = 0;
    for (uint32_t i = late; i < r->trace->n; i++) {
        if (!suite_nak(&r->flow, suite_at(r, i), WIRE_SYN_NAK_SEQ))
            continue;
        int32_t which = suite_rel(&r->flow, suite_at(r, i)->psn) - rel;
        if (which == 0 || which == 1)
            naks[which]++;
        else
            wrong++;
    }
    suite_say(r->card, "ACK-08", naks[0] <= 1 && naks[1] <= 1 ? SUITE_PASS : SUITE_FAIL,
              "%u NAK%s for the late packet, %u for the one after it", naks[0],
              naks[0] == 1 ? "" : "s", naks[1]);
    suite_say(r->card, "ACK-07", wrong ? SUITE_FAIL : SUITE_PASS, "%u NAKs with another PSN",
              wrong);
    check_recovered(r);
}

void suite_check_duplicated(struct suite_run *r)
{
    uint32_t twice = victim(r, FAULT_COPY, "RSP-20");
    unsigned naks = 0;
    if (twice == SUITE_NONE)
        return;
    for (uint32_t i = twice; i < r->trace->n; i++) {
        const struct suite_pkt *p = suite_at(r, i);
        naks += suite_response(&r->flow, p) && suite_flags(p) & WIRE_F_ACK &&
                p->syndrome >= WIRE_SYN_NAK_SEQ;
    }
    suite_say(r->card, "RSP-20", naks ? SUITE_FAIL : SUITE_PASS, "%u NAKs for a repeated packet",
              naks);
    check_recovered(r);
}

/* The tester repeats all executed requests. The device must acknowledge them with its newest PSN,
 * not with those of the duplicates. */
void suite_check_answers_lost(struct suite_run *r)
{
    const struct suite_flow *f = &r->flow;
    uint32_t again = SUITE_NONE, answer = SUITE_NONE;
    int32_t highest = -1;
    for (uint32_t i = 0; i < r->trace->n && answer == SUITE_NONE; i++) {
        const struct suite_pkt *p = suite_at(r, i);
        int32_t rel = suite_rel(f, p->psn);
        if (suite_request(f, p) && again == SUITE_NONE && rel <= highest)
            again = i;
        else if (suite_request(f, p) && again == SUITE_NONE)
            highest = rel;
        else if (again != SUITE_NONE && suite_response(f, p) && suite_flags(p) & WIRE_F_ACK)
            answer = i;
    }
    if (again == SUITE_NONE) {
        suite_say(r->card, "RSP-20", SUITE_UNTESTED, "the tester sent nothing again");
        return;
    }
    bool acked = answer != SUITE_NONE && suite_at(r, answer)->syndrome < WIRE_SYN_RNR;
    suite_say(r->card, "RSP-20", acked ? SUITE_PASS : SUITE_FAIL,
              acked                  ? "duplicates are acknowledged"
              : answer == SUITE_NONE ? "duplicates are not answered"
                                     : "duplicates are answered by a NAK");
    if (!acked)
        return;
    int32_t said = suite_rel(f, suite_at(r, answer)->psn);
    suite_say(r->card, "ACK-05", said >= highest ? SUITE_PASS : SUITE_FAIL,
              "after PSN +%d had been executed it acknowledged +%d", highest, said);
    check_recovered(r);
}

/* The packet is to be discarded: no reaction to it, then the reaction to a gap. */
void suite_check_bad_icrc(struct suite_run *r)
{
    uint32_t bad = victim(r, FAULT_DAMAGED, "ICRC-08");
    if (bad == SUITE_NONE)
        return;
    int32_t rel = suite_rel(&r->flow, suite_at(r, bad)->psn);
    uint32_t later = find_later(r, bad, rel), filled = suite_find_sent(r, bad + 1, rel);
    unsigned early = 0, taken = 0;
    for (uint32_t i = bad; i < r->trace->n; i++) {
        const struct suite_pkt *p = suite_at(r, i);
        if (!suite_response(&r->flow, p) || !(suite_flags(p) & WIRE_F_ACK))
            continue;
        early += i < later && p->syndrome >= WIRE_SYN_RNR;
        taken += i < filled && p->syndrome < WIRE_SYN_RNR && suite_rel(&r->flow, p->psn) >= rel;
    }
    suite_say(r->card, "ICRC-08", early || taken ? SUITE_FAIL : SUITE_PASS,
              taken   ? "a damaged packet was acknowledged"
              : early ? "a damaged packet was answered by a NAK"
                      : "a damaged packet is dropped without an answer");
    check_gap(r, bad);
    check_recovered(r);
}

/* ---- READs: the device's answers ---- */

/* Index of the response with this PSN that was sent first, before `end`. */
static uint32_t find_response(const struct suite_run *r, uint32_t i, uint32_t end, uint32_t psn)
{
    for (; i < end; i++) {
        const struct suite_pkt *p = suite_at(r, i);
        if (suite_response(&r->flow, p) && suite_flags(p) & WIRE_F_READ && p->psn == psn)
            return i;
    }
    return SUITE_NONE;
}

/* A response was lost on the way back; the tester requests it again, from the gap on. */
void suite_check_read_answer(struct suite_run *r)
{
    const struct suite_flow *f = &r->flow;
    uint32_t lost = SUITE_NONE, again = SUITE_NONE;
    for (uint32_t i = 0; i < r->trace->n && again == SUITE_NONE; i++) {
        const struct suite_pkt *p = suite_at(r, i);
        if (lost == SUITE_NONE && suite_response(f, p) && p->fate & FAULT_DROP)
            lost = i;
        else if (lost != SUITE_NONE && suite_request(f, p) && suite_flags(p) & WIRE_F_READ &&
                 suite_rel(f, p->psn) <= suite_rel(f, suite_at(r, lost)->psn))
            again = i;
    }
    if (lost == SUITE_NONE || again == SUITE_NONE) {
        suite_say(r->card, "RD-10", SUITE_UNTESTED,
                  lost == SUITE_NONE ? "no READ response was lost" : "nothing was asked for again");
        return;
    }
    const struct suite_pkt *ask = suite_at(r, again);
    uint32_t answer = find_response(r, again, r->trace->n, ask->psn);
    if (answer == SUITE_NONE) {
        suite_say(r->card, "RD-09", SUITE_FAIL, "a repeated READ request was not answered");
        return;
    }
    suite_say(r->card, "RD-09", SUITE_PASS, "a repeated READ request is answered again");
    const struct suite_pkt *p = suite_at(r, answer);
    suite_say(r->card, "RD-10", suite_flags(p) & WIRE_F_START ? SUITE_PASS : SUITE_FAIL,
              "the new answer begins with %s", wire_opcodes[p->opcode].name);
    unsigned wrong = 0, seen = 0;
    int32_t expected = suite_rel(f, ask->psn), missing = suite_rel(f, suite_at(r, lost)->psn);
    bool ordered = true;
    for (uint32_t i = answer; i < r->trace->n && seen < 64; i++) {
        p = suite_at(r, i);
        if (!suite_response(f, p) || !(suite_flags(p) & WIRE_F_READ))
            continue;
        int32_t rel = suite_rel(f, p->psn);
        ordered &= rel == expected++;
        seen++;
        uint32_t first = find_response(r, 0, answer, p->psn);
        wrong += rel == missing && first != SUITE_NONE && suite_at(r, first)->hash != p->hash;
    }
    suite_say(r->card, "RD-01", ordered ? SUITE_PASS : SUITE_FAIL, "%u responses after it, %s",
              seen, ordered ? "in order" : "not in order");
    suite_say(r->card, "RD-02", wrong ? SUITE_FAIL : SUITE_PASS,
              wrong ? "other octets than the first time" : "the same octets as the first time");
    struct suite_span s = suite_span(r, again, answer);
    suite_say(r->card, "LR-14", SUITE_PASS, "answered %.1f us after the second request",
              (double)s.seen / 1e3);
    suite_measured(r->card, (double)s.seen, "ns");
}
