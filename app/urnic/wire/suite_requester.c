/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The device as requester: it sends to side A, and must retransmit packets that do not arrive.
 */
#include <stdlib.h>

#include "suite_check.h"

/* From `i` on: the first request with a PSN that the device has sent before, lost or not. */
static uint32_t find_resent(const struct suite_run *r, uint32_t i)
{
    int32_t highest = -1;
    for (uint32_t k = 0; k < r->trace->n; k++) {
        const struct suite_pkt *p = suite_at(r, k);
        if (!suite_request(&r->flow, p))
            continue;
        int32_t rel = suite_rel(&r->flow, p->psn);
        if (k >= i && rel <= highest)
            return k;
        highest = rel > highest ? rel : highest;
    }
    return SUITE_NONE;
}

/* After `i`: the first request that does not continue the one before it. */
static uint32_t find_going_back(const struct suite_run *r, uint32_t i)
{
    int32_t last = suite_rel(&r->flow, suite_at(r, i)->psn);
    while (++i < r->trace->n) {
        const struct suite_pkt *p = suite_at(r, i);
        if (!suite_request(&r->flow, p))
            continue;
        int32_t rel = suite_rel(&r->flow, p->psn);
        if (rel <= last)
            return i;
        last = rel;
    }
    return SUITE_NONE;
}

/* A retransmission must equal the first transmission; a READ may ask for less. */
static void check_same(struct suite_run *r)
{
    const struct suite_flow *f = &r->flow;
    uint32_t *first = calloc((size_t)f->highest + 1, sizeof(*first)); /* index + 1 */
    unsigned again = 0, differ = 0;
    for (uint32_t i = 0; first && i < r->trace->n; i++) {
        const struct suite_pkt *p = suite_at(r, i);
        int32_t rel = suite_rel(f, p->psn);
        if (!suite_request(f, p) || p->fate & FAULT_CHANGED || rel < 0)
            continue;
        if (!first[rel]) {
            first[rel] = i + 1;
            continue;
        }
        const struct suite_pkt *q = suite_at(r, first[rel] - 1);
        again++;
        differ += p->opcode != q->opcode || p->len != q->len || p->hash != q->hash ||
                  p->va != q->va || p->rkey != q->rkey || p->dma_len != q->dma_len;
    }
    free(first);
    suite_say(r->card, "RTX-05",
              !again   ? SUITE_UNTESTED
              : differ ? SUITE_FAIL
                       : SUITE_PASS,
              "%u packets sent again, %u of them differ", again, differ);
}

/* From the first packet of a retransmission on: PSN after PSN, without gap or repetition, up to new
 * packets; or until a NAK or time-out starts another retransmission. */
static void check_order(struct suite_run *r, uint32_t start)
{
    const struct suite_flow *f = &r->flow;
    int32_t expected = suite_rel(f, suite_at(r, start)->psn), highest = -1;
    unsigned n = 0;
    for (uint32_t i = 0; i < start; i++) {
        const struct suite_pkt *p = suite_at(r, i);
        if (suite_request(f, p) && suite_rel(f, p->psn) > highest)
            highest = suite_rel(f, p->psn);
    }
    for (uint32_t i = start; i < r->trace->n && expected <= highest; i++) {
        const struct suite_pkt *p = suite_at(r, i);
        if (suite_nak(f, p, WIRE_SYN_NAK_SEQ) && suite_rel(f, p->psn) > expected - 1)
            break;
        if (!suite_request(f, p))
            continue;
        int32_t rel = suite_rel(f, p->psn);
        if (rel != expected) {
            suite_say(r->card, "RTX-01", SUITE_FAIL, "after PSN +%d came +%d instead of +%d",
                      expected - 1, rel, expected);
            return;
        }
        expected++;
        n++;
    }
    suite_say(r->card, "RTX-01", SUITE_PASS, "%u packets sent again, in order and without a hole",
              n);
}

/* The NAK tells the device the missing packet. Returns the first packet of its answer. */
static uint32_t check_answer_to_nak(struct suite_run *r, uint32_t nak)
{
    const struct suite_flow *f = &r->flow;
    uint32_t resent = find_resent(r, nak);
    if (resent == SUITE_NONE) {
        suite_say(r->card, "ACK-06", SUITE_FAIL, "nothing was sent again after a NAK");
        return SUITE_NONE;
    }
    struct suite_span s = suite_span(r, nak, resent);
    uint64_t t = suite_timeout(r);
    suite_say(r->card, "ACK-06", t && s.least > t ? SUITE_FAIL : SUITE_PASS,
              "sent again %.1f us after the NAK", (double)s.seen / 1e3);
    suite_measured(r->card, (double)s.seen, "ns");
    int32_t asked = suite_rel(f, suite_at(r, nak)->psn),
            got = suite_rel(f, suite_at(r, resent)->psn);
    suite_say(r->card, "RTX-01", got == asked ? SUITE_PASS : SUITE_FAIL,
              "the NAK names PSN +%d, it went back to +%d", asked, got);
    return resent;
}

/* A packet of the device was dropped, and the tester sent a NAK for it. */
static uint32_t nak_for_loss(struct suite_run *r, const char *rule)
{
    uint32_t lost = suite_find_fate(r, FAULT_DROP);
    uint32_t nak = lost == SUITE_NONE ? SUITE_NONE : suite_find_nak(r, lost, WIRE_SYN_NAK_SEQ);
    if (lost == SUITE_NONE)
        suite_say(r->card, rule, SUITE_UNTESTED, "the traffic had no packet for the fault");
    else if (nak == SUITE_NONE)
        suite_say(r->card, rule, SUITE_UNTESTED, "the tester sent no NAK");
    return nak;
}

void suite_check_go_back(struct suite_run *r)
{
    uint32_t nak = nak_for_loss(r, "RTX-01");
    uint32_t resent = nak == SUITE_NONE ? SUITE_NONE : check_answer_to_nak(r, nak);
    if (resent == SUITE_NONE)
        return;
    check_order(r, resent);
    check_same(r);
    suite_say(r->card, "REQ-35", r->client_ok ? SUITE_PASS : SUITE_FAIL,
              r->client_ok ? "the transfer completed" : "the transfer failed");
}

/* ---- time-outs ---- */

/* The time from `since` to `resent` must be at least T, that from `owed` on at most 4 T. The timer
 * must run once an answer is due; devices may start it earlier, with the first unacknowledged
 * packet. */
static void check_timeout(struct suite_run *r, uint32_t since, uint32_t owed, uint32_t resent)
{
    uint64_t t = suite_timeout(r);
    struct suite_span s = suite_span(r, since, resent), o = suite_span(r, owed, resent);
    if (!t) {
        suite_say(r->card, "TMR-03", SUITE_UNTESTED,
                  "the device's timeout isn't known (--timeout)");
        return;
    }
    suite_say(r->card, "TMR-03", suite_early(s, t) || o.least > 4 * t ? SUITE_FAIL : SUITE_PASS,
              "timeout after %.2f ms = %.2f T, T = %.2f ms", (double)s.seen / 1e6,
              (double)s.seen / (double)t, (double)t / 1e6);
    suite_measured(r->card, (double)s.seen, "ns");
}

static void check_oldest(struct suite_run *r, uint32_t resent, int32_t oldest)
{
    int32_t got = suite_rel(&r->flow, suite_at(r, resent)->psn);
    suite_say(r->card, "TMR-04", got == oldest ? SUITE_PASS : SUITE_FAIL,
              "after the timeout it went back to PSN +%d, oldest unacknowledged is +%d", got,
              oldest);
}

/* The retransmission was lost as well; there is no second NAK, so the timer has to notice. */
void suite_check_go_back_twice(struct suite_run *r)
{
    uint32_t nak = nak_for_loss(r, "TMR-03");
    if (nak == SUITE_NONE)
        return;
    int32_t rel = suite_rel(&r->flow, suite_at(r, nak)->psn);
    uint32_t resent = find_resent(r, nak);
    uint32_t again = resent == SUITE_NONE ? SUITE_NONE : find_going_back(r, resent);
    if (again == SUITE_NONE || !(suite_at(r, resent)->fate & FAULT_DROP) ||
        suite_rel(&r->flow, suite_at(r, resent)->psn) != rel) {
        suite_say(r->card, "TMR-03", resent == SUITE_NONE ? SUITE_FAIL : SUITE_UNTESTED,
                  "the lost packet was not lost a second time");
        return;
    }
    if (suite_find_nak(r, resent, WIRE_SYN_NAK_SEQ) < again) {
        suite_say(r->card, "TMR-03", SUITE_UNTESTED, "the tester repeated its NAK");
        return;
    }
    check_timeout(r, nak, nak, again);
    check_oldest(r, again, rel);
    check_order(r, again);
    check_same(r);
}

/* The device received no answer. */
void suite_check_acks_lost(struct suite_run *r)
{
    const struct suite_flow *f = &r->flow;
    uint32_t since = SUITE_NONE, owed = SUITE_NONE;
    int32_t acked = -1;
    uint32_t resent = find_resent(r, 0);
    if (resent == SUITE_NONE) {
        suite_say(r->card, "TMR-03", r->client_ok ? SUITE_UNTESTED : SUITE_FAIL,
                  r->client_ok ? "no acknowledgement was lost" : "nothing was sent again");
        return;
    }
    for (uint32_t i = 0; i < resent; i++) {
        const struct suite_pkt *p = suite_at(r, i);
        if (suite_response(f, p) && suite_passed(p)) {
            acked = suite_rel(f, p->psn);
            since = owed = i;
        } else if (suite_request(f, p)) {
            since = since == SUITE_NONE ? i : since;
            owed = owed == SUITE_NONE && p->ackreq ? i : owed;
        }
    }
    if (owed == SUITE_NONE) {
        suite_say(r->card, "REQ-10", SUITE_FAIL, "no packet asked for an acknowledgement");
        return;
    }
    check_timeout(r, since, owed, resent);
    check_oldest(r, resent, acked + 1);
    check_same(r);
    suite_say(r->card, "REQ-35", r->client_ok ? SUITE_PASS : SUITE_FAIL,
              r->client_ok ? "the transfer completed" : "the transfer failed");
}

/* From one packet on all packets of the device are lost: it must retry retry_cnt times, then
 * stop. */
void suite_check_exhausted(struct suite_run *r)
{
    const struct suite_flow *f = &r->flow;
    uint32_t lost = suite_find_fate(r, FAULT_DROP);
    int retries = suite_retries(r);
    if (lost == SUITE_NONE) {
        suite_say(r->card, "TMR-05", SUITE_UNTESTED, "the traffic had no packet for the fault");
        return;
    }
    int32_t rel = suite_rel(f, suite_at(r, lost)->psn);
    uint32_t last = lost;
    uint64_t t = suite_timeout(r);
    unsigned sent = 0, wrong = 0;
    double shortest = 0, longest = 0;
    for (uint32_t i = lost; i < r->trace->n; i++) {
        const struct suite_pkt *p = suite_at(r, i);
        if (!suite_request(f, p) || suite_rel(f, p->psn) != rel)
            continue;
        if (sent++) {
            struct suite_span s = suite_span(r, last, i);
            double ms = (double)s.seen / 1e6;
            shortest = sent == 2 || ms < shortest ? ms : shortest;
            longest = ms > longest ? ms : longest;
            wrong += t && (suite_early(s, t) || s.least > 4 * t);
        }
        last = i;
    }
    if (retries < 0)
        suite_say(r->card, "TMR-05", SUITE_UNTESTED,
                  "sent %u times; its retry count isn't known (--retry)", sent);
    else
        suite_say(r->card, "TMR-05", sent == (unsigned)retries + 1 ? SUITE_PASS : SUITE_FAIL,
                  "sent %u time%s with retry count %d%s", sent, sent == 1 ? "" : "s", retries,
                  r->timed_out ? ", and didn't give up in time" : "");
    suite_measured(r->card, sent, "transmissions");
    suite_say(r->card, "TMR-03",
              !t || sent < 2 ? SUITE_UNTESTED
              : wrong        ? SUITE_FAIL
                             : SUITE_PASS,
              "%.2f to %.2f ms between them, T = %.2f ms", shortest, longest, (double)t / 1e6);
    if (!r->timed_out)
        suite_say(r->card, "REQ-36", r->client_ok ? SUITE_FAIL : SUITE_PASS,
                  r->client_ok ? "the client reports success" : "the client reports the failure");
}

/* ---- RNR ---- */

/* An RNR NAK in the tester's name came back for a packet that was dropped. */
void suite_check_rnr(struct suite_run *r)
{
    enum { CODE = 18 }; /* as in the rules of the case */
    const uint64_t wanted = wire_rnr_ns(CODE);
    uint32_t lost = suite_find_fate(r, FAULT_INJECT);
    if (lost == SUITE_NONE) {
        suite_say(r->card, "RNR-05", SUITE_UNTESTED, "the traffic had no packet for the fault");
        return;
    }
    int32_t rel = suite_rel(&r->flow, suite_at(r, lost)->psn);
    uint32_t again = suite_find_sent(r, lost + 1, rel);
    if (again == SUITE_NONE) {
        suite_say(r->card, "RNR-05", SUITE_FAIL, "the packet was never sent again");
        return;
    }
    struct suite_span s = suite_span(r, lost, again);
    suite_say(r->card, "RNR-05", suite_early(s, wanted) ? SUITE_FAIL : SUITE_PASS,
              "waited %.2f ms, RNR timer %.2f ms", (double)s.seen / 1e6, (double)wanted / 1e6);
    suite_measured(r->card, (double)s.seen, "ns");
    check_same(r);
    suite_say(r->card, "RNR-02", r->client_ok ? SUITE_PASS : SUITE_FAIL,
              r->client_ok ? "an RNR NAK followed by a sequence NAK is survived"
                           : "the transfer failed");
}

/* ---- CNPs ---- */

/* ns from the packet +first to +last, as seen. 0 = some are missing. */
static uint64_t time_of(const struct suite_run *r, int32_t first, int32_t last)
{
    uint64_t since = 0;
    for (uint32_t i = 0; i < r->trace->n; i++) {
        const struct suite_pkt *p = suite_at(r, i);
        int32_t rel = suite_rel(&r->flow, p->psn);
        if (suite_request(&r->flow, p) && rel == first)
            since = p->at;
        else if (suite_request(&r->flow, p) && rel == last && since)
            return p->at > since ? p->at - since : 1;
    }
    return 0;
}

/* From one packet on, the tester answers each with a CNP. */
void suite_check_slowed(struct suite_run *r)
{
    uint32_t start = suite_find_fate(r, FAULT_INJECT);
    if (start == SUITE_NONE) {
        suite_say(r->card, "CC-08", SUITE_UNTESTED, "the traffic had no packet for the fault");
        return;
    }
    int32_t rel = suite_rel(&r->flow, suite_at(r, start)->psn), end = r->flow.highest;
    uint64_t before = time_of(r, 0, rel), after = time_of(r, rel, end);
    if (before && after) {
        double slower = ((double)after / (end - rel)) / ((double)before / rel);
        suite_say(r->card, "CC-08", slower < 2 ? SUITE_UNTESTED : SUITE_PASS,
                  slower < 2 ? "CNPs made it %.1f times slower: no reaction point, or switched off"
                             : "CNPs made it %.1f times slower",
                  slower);
        suite_measured(r->card, slower, "times");
    }
    suite_say(r->card, "CC-07", r->client_ok ? SUITE_PASS : SUITE_FAIL,
              r->client_ok ? "CNPs did not disturb the transfer" : "the transfer failed");
}

/* ---- READs: the device's requests ---- */

/* A READ of the device with a lost response, and the packets that followed; SUITE_NONE = none. */
struct lost_response {
    uint32_t lost;  /* the response */
    uint32_t later; /* the first response after it that arrived: it shows the gap */
    uint32_t again; /* the READ that asks for it again */
};

static struct lost_response find_lost_response(const struct suite_run *r)
{
    const struct suite_flow *f = &r->flow;
    struct lost_response l = {SUITE_NONE, SUITE_NONE, SUITE_NONE};
    int32_t gap = 0;
    for (uint32_t i = 0; i < r->trace->n && l.again == SUITE_NONE; i++) {
        const struct suite_pkt *p = suite_at(r, i);
        int32_t rel = suite_rel(f, p->psn);
        if (l.lost == SUITE_NONE) {
            if (suite_response(f, p) && p->fate & FAULT_DROP) {
                l.lost = i;
                gap = rel;
            }
        } else if (l.later == SUITE_NONE && suite_response(f, p) && rel > gap) {
            l.later = i;
        } else if (suite_request(f, p) && suite_flags(p) & WIRE_F_READ && rel <= gap) {
            l.again = i;
        }
    }
    return l;
}

/* The last READ before `end` that begins at or before `gap`: the lost response answers it. */
static uint32_t find_read(const struct suite_run *r, uint32_t end, int32_t gap)
{
    uint32_t found = SUITE_NONE;
    for (uint32_t i = 0; i < end; i++) {
        const struct suite_pkt *p = suite_at(r, i);
        if (suite_request(&r->flow, p) && suite_flags(p) & WIRE_F_READ &&
            suite_rel(&r->flow, p->psn) <= gap)
            found = i;
    }
    return found;
}
/* The new READ must ask for the rest from the gap on, or for the whole. */
static void check_asked_again(struct suite_run *r, const struct lost_response *l)
{
    const struct suite_flow *f = &r->flow;
    const struct suite_pkt *q = suite_at(r, l->again);
    int32_t gap = suite_rel(f, suite_at(r, l->lost)->psn), start = suite_rel(f, q->psn);
    uint32_t first = find_read(r, l->lost, gap);
    if (first == SUITE_NONE) {
        suite_say(r->card, "RD-12", SUITE_UNTESTED, "the READ itself wasn't seen");
        return;
    }
    const struct suite_pkt *p = suite_at(r, first);
    uint64_t skipped = q->va - p->va;
    int32_t begin = suite_rel(f, p->psn);
    bool good = q->rkey == p->rkey && skipped + q->dma_len == p->dma_len &&
                (start == gap || start == begin) && (start == begin) == (skipped == 0);
    suite_say(r->card, "RD-12", good ? SUITE_PASS : SUITE_FAIL,
              "missing is PSN +%d, asked again from +%d, %u of %u octets", gap, start, q->dma_len,
              p->dma_len);
}

void suite_check_read_again(struct suite_run *r)
{
    struct lost_response l = find_lost_response(r);
    if (l.lost == SUITE_NONE || l.later == SUITE_NONE) {
        suite_say(r->card, "RD-14", SUITE_UNTESTED,
                  l.lost == SUITE_NONE ? "no READ response was lost"
                                       : "no response followed the lost one");
        return;
    }
    if (l.again == SUITE_NONE) {
        suite_say(r->card, "RD-14", SUITE_FAIL, "the missing response was never asked for again");
        return;
    }
    uint64_t t = suite_timeout(r);
    struct suite_span s = suite_span(r, l.later, l.again);
    suite_say(r->card, "RD-14", t && s.least >= t ? SUITE_FAIL : SUITE_PASS,
              "asked again %.1f us after the response that shows the gap", (double)s.seen / 1e3);
    suite_measured(r->card, (double)s.seen, "ns");
    check_asked_again(r, &l);
    suite_say(r->card, "REQ-35", r->client_ok ? SUITE_PASS : SUITE_FAIL,
              r->client_ok ? "the transfer completed" : "the transfer failed");
}
