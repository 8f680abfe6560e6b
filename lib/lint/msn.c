/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Checks of the message number of a response (ACK-11). A capture seldom has the connection's start,
 * so the start of the count is unknown: every response narrows it down.
 */
#include <stdlib.h>
#include <string.h>

#include "lint_priv.h"

/* Answers with an unchanged count, after the first. */
#define STANDS_SURE    4u
#define STANDS_PERHAPS 16u
/* READs and ATOMICs in flight: the CM's messages have 8 bits for their number. */
#define READS_MOST 255u

/* Messages since the epoch's start that are complete when a request is answered. */
struct count {
    uint32_t low; /* the minimum */
    bool exact;   /* the minimum is exact */
    bool all; /* no further messages were captured; the responder may still have accepted uncaptured
                 READs */
};

/* May an answer to this packet count READs or ATOMICs directly after it? */
static bool reads_after(const struct lint_flow *q, const struct lint_rec *r)
{
    const struct lint_rec *next = lint_rec_at(q, lint_add(r->psn, 1));
    return !(next && (next->flags & LINT_R_SEEN) &&
             (wire_opcodes[next->opcode].flags & (WIRE_F_SEND | WIRE_F_WRITE)));
}

/* Count the messages. False: unknown because of gaps. */
static bool messages(const struct lint_ctx *c, struct count *n)
{
    const struct lint_flow *q = c->req;
    const struct lint_rec *r = c->rec;
    bool ack = c->op->flags & WIRE_F_ACK;
    bool first = !q->ack_on || wire_psn_diff(c->p.psn, q->acked) > 0;
    if (c->read && !ack) {
        *n = (struct count){.low = c->read->msgs, .all = first && c->read->msgs == q->msgs};
        return c->read->epoch == q->epoch;
    }
    if (!r || r->epoch != q->epoch)
        return false;
    /* An answer to the network's copy of an old request carries the current count. */
    *n = (struct count){.low = r->msgs,
                        .exact = first && r->sends == 1 && !reads_after(q, r),
                        .all = first && r->msgs == q->msgs};
    if (ack && wire_aeth_kind(c->p.syndrome) != WIRE_AETH_ACK) {
        n->low -= lint_ends_message(&wire_opcodes[r->opcode]); /* refused: not executed */
        n->exact = r->sends == 1;
        n->all = false;
    }
    return true;
}

/* Does this answer show the start of the count? Two answers must agree, with an executed message
 * between them: then neither is a repetition from before the capture, and the capture has missed
 * nothing. */
static void settle_base(struct lint_flow *q, const struct count *n, uint32_t base)
{
    if (q->base.lo_on || !(n->exact || n->all))
        return;
    q->base.lo_on = q->base.maybe_on && q->base.maybe == base && q->base.maybe_low != n->low;
    q->base.lo = q->base.maybe = base;
    q->base.maybe_low = n->low;
    q->base.maybe_on = true;
}

/* Keep this answer's identity. */
static void keep_head(struct lint_ctx *c, struct lint_head **kept)
{
    if (!*kept)
        *kept = malloc(sizeof(**kept));
    struct lint_head *h = *kept;
    if (!h)
        return;
    h->number = c->in->number;
    h->ns = c->in->ns;
    h->wire_len = (uint32_t)c->in->wire_len;
    h->len = (uint32_t)(c->in->len < sizeof(h->octet) ? c->in->len : sizeof(h->octet));
    h->psn = c->p.psn;
    h->msn = c->p.msn;
    h->opcode = c->p.opcode;
    memcpy(h->octet, c->in->data, h->len);
}

/* Report that answer as wrong. */
static void accuse_head(struct lint_ctx *c, const struct lint_head *h)
{
    struct lint_wait w = {.on = true,
                          .opcode = h->opcode,
                          .psn = h->psn,
                          .msn = h->msn,
                          .number = h->number,
                          .ns = h->ns};
    wire_dump_cut(w.dump, sizeof(w.dump), h->octet, h->len, h->wire_len, 0);
    c->wait = &w;
    lint_run(c, LINT_S_AHEAD);
    c->wait = NULL;
}

/* An earlier answer counts more than this one, which is to a later request. If the start of the
 * count is known, and this answer fits, the earlier one was wrong. */
static bool earlier_was_wrong(struct lint_ctx *c, uint32_t low)
{
    const struct lint_flow *q = c->req;
    const struct lint_head *h = q->counted.head;
    if (!h || h->number != q->counted.number || !q->base.on || !q->base.lo_on ||
        q->base.lo != q->base.hi || c->p.msn != lint_add(q->base.lo, low))
        return false;
    accuse_head(c, h);
    return true;
}

/* Successive new requests are answered with the same count. They may be repetitions from before the
 * capture, but not more than were executed, and not without end. */
static bool count_stands(struct lint_ctx *c)
{
    struct lint_flow *q = c->req;
    if (c->rec->number <= q->counted.stands_number)
        return false;
    q->counted.stands_number = c->rec->number;
    q->counted.stands++;
    bool sure = (q->counted.stands >= STANDS_SURE && q->counted.stands >= c->p.msn) ||
                q->counted.stands >= LINT_SETTLED;
    enum lint_stands now = sure                                  ? LINT_STANDS
                           : q->counted.stands >= STANDS_PERHAPS ? LINT_STANDS_PERHAPS
                                                                 : LINT_MOVES;
    if (now <= q->counted.stands_said)
        return false;
    q->counted.stands_said = now;
    c->msn_lo = c->msn_hi = lint_add(q->counted.msn, 1);
    c->msn_after = q->counted.number;
    c->msn_before = q->counted.msn;
    c->msn_perhaps = !sure;
    return c->msn_known = true;
}

/* Does this answer confirm that its request's message is complete? */
static bool executes(const struct lint_ctx *c)
{
    bool nak = (c->op->flags & WIRE_F_ACK) && wire_aeth_kind(c->p.syndrome) != WIRE_AETH_ACK;
    return !nak && lint_ends_message(&wire_opcodes[c->rec->opcode]);
}

/* A request was sent after an answer. The request's own answer then counts at least as many
 * messages as that earlier answer, and more once the count has been seen to rise. (Until then
 * requests may be repetitions from before the capture.) */
static bool count_went_back(struct lint_ctx *c, const struct count *n)
{
    struct lint_flow *q = c->req;
    const struct lint_rec *r = c->rec;
    if (!r || r->epoch != q->epoch || r->sends != 1)
        return false;
    bool on = q->counted.on && q->counted.epoch == q->epoch, later = r->number > q->counted.number;
    bool ends = executes(c);
    uint32_t least = lint_add(q->counted.msn, ends && q->counted.goes_on);
    if (on && later && wire_psn_diff(c->p.msn, least) < 0) {
        q->counted.on = q->highest.on = false; /* one of the two was wrong: report it once */
        if (earlier_was_wrong(c, n->low))
            return false;
        c->msn_lo = c->msn_hi = least;
        c->msn_after = q->counted.number;
        c->msn_before = q->counted.msn;
        return c->msn_known = true;
    }
    if (on && later && ends && c->p.msn == q->counted.msn)
        return count_stands(c);
    return false;
}

/* Keep the highest count so far, except a wrong one, which was reported. */
static void count_on(struct lint_ctx *c)
{
    struct lint_flow *q = c->req;
    const struct lint_rec *r = c->rec;
    if (!r || r->epoch != q->epoch || r->sends != 1)
        return;
    bool on = q->counted.on && q->counted.epoch == q->epoch;
    if (on && wire_psn_diff(c->p.msn, q->counted.msn) <= 0)
        return;
    q->counted.stands = 0;
    q->counted.goes_on = on && (q->counted.goes_on || r->number > q->counted.number);
    q->counted.on = true;
    q->counted.epoch = q->epoch;
    q->counted.msn = c->p.msn;
    q->counted.number = c->in->number;
    keep_head(c, &q->counted.head);
}

/* Does an answer put the start of the count at 0? It starts at 0 in RTR: then nothing was sent
 * before. */
static bool begins_at_0(const struct lint_flow *q, uint32_t base)
{
    return base == 0 && q->first_epoch == q->epoch;
}

/* This response puts the start of the count later than exactly one earlier response. Was the
 * earlier one wrong? Not if it puts the start at 0, as in RTR. Yes, if this response puts it at 0,
 * or if others agree with this one. Otherwise it is unknown which of the two is wrong, and one
 * finding is enough. */
static void began_later(struct lint_ctx *c, uint32_t base)
{
    struct lint_flow *q = c->req;
    q->counted.on = q->base.on = q->base.maybe_on = false;
    if (!q->base.lo_on && !begins_at_0(q, base)) {
        c->msn_known = !q->base.again; /* the answer to a new request is more credible */
        return;
    }
    q->highest.on = false;
    c->msn_lo = c->msn_hi = lint_add(q->base.first.msn, base - q->base.hi);
    c->wait = &q->base.first;
    lint_run(c, LINT_S_AHEAD);
    c->wait = NULL;
    q->base.on = true;
    q->base.hi = base;
    q->base.n = 1;
    lint_remember(c, &q->base.first);
    c->msn_known = false;
}

/* An earlier answer had the same count as this one, and this answer's request came after it. Did
 * the earlier answer count that request, too? It may have: the request may be a retransmission of
 * an uncaptured packet, if the requester has gone back since, or had time for a time-out. */
static bool perhaps_repeated(const struct lint_ctx *c)
{
    const struct lint_flow *q = c->req;
    return c->p.msn == q->ahead.msn && (q->info.retransmits != q->ahead_retransmits ||
                                        c->rec->ns - q->ahead.ns >= LINT_ANEW_NS);
}

/* The first request has a later PSN than announced, and this answer counts only the messages from
 * it on: nothing was sent before it. */
static void judge_begin(struct lint_ctx *c, const struct count *n)
{
    struct lint_flow *q = c->req, *f = c->f;
    if (!q->start.wait.on)
        return;
    if (q->start.epoch == q->epoch && c->p.msn == n->low) {
        c->f = q;
        c->wait = &q->start.wait;
        lint_run(c, LINT_S_START);
        c->wait = NULL;
        c->f = f;
    }
    q->start.wait.on = false;
}

/* Does this answer have the minimal count, with a known start of the count? */
static bool counts_least(const struct lint_ctx *c, const struct count *n)
{
    const struct lint_flow *q = c->req;
    uint32_t base = (c->p.msn - n->low) & WIRE_PSN_MASK;
    return q->base.on && (q->base.lo_on ? base == q->base.lo : q->base.n > 1 && base == q->base.hi);
}

/* Do both answers take their count from the same place? The answer to a READ or ATOMIC may carry
 * the current count or that of its execution; an ACK carries the current one. */
static bool comparable(const struct lint_ctx *c, const struct lint_head *earlier)
{
    unsigned kinds = WIRE_F_READ | WIRE_F_ATOMIC, was = wire_opcodes[earlier->opcode].flags;
    return c->op->flags & WIRE_F_ACK || (was & kinds) == (c->op->flags & kinds);
}

/* A first answer to a request counts fewer messages than an answer sent before it, but a
 * responder's count never goes back. The IP identification tells which was sent first. Without it,
 * reordering would explain the two only if the other one had answered a packet's copy. */
static void watch_highest(struct lint_ctx *c, const struct count *n)
{
    struct lint_flow *q = c->req;
    bool on = q->highest.on, first = !q->ack_on || wire_psn_diff(c->p.psn, q->acked) > 0;
    bool less = on && wire_psn_diff(c->p.msn, q->highest.head->msn) < 0;
    bool ordered = lint_id_counts(c->f, &c->p);
    if (!less || !first || !counts_least(c, n) || !comparable(c, q->highest.head))
        return;
    /* Perhaps another queue pair's: its count starts at 0 after a gap, unless the CM announces it.
     */
    bool paused = !q->info.by_cm && c->in->ns - q->highest.head->ns >= LINT_ANEW_NS;
    if (q->highest.epoch != q->epoch && (paused || c->p.msn == n->low)) {
        q->highest.on = false;
        return;
    }
    bool waits = q->ahead.on && q->ahead.number == q->highest.head->number;
    if (ordered ? (int16_t)(c->p.ip_id - q->highest.ip_id) <= 0 : waits || lint_disorder(q))
        return;
    c->msn_hi = c->p.msn;
    c->msn_crossed = !ordered;
    accuse_head(c, q->highest.head);
    c->msn_crossed = false;
    q->ahead.on = q->ahead.on && !waits;
    q->counted.on = q->counted.on && q->counted.number != q->highest.head->number;
    q->highest.on = false;
}

/* Keep the highest count so far, of an answer to any request. */
static void highest_on(struct lint_ctx *c)
{
    struct lint_flow *q = c->req;
    if (q->highest.on && wire_psn_diff(c->p.msn, q->highest.head->msn) <= 0)
        return;
    keep_head(c, &q->highest.head);
    q->highest.on = q->highest.head != NULL;
    q->highest.epoch = q->epoch;
    q->highest.ip_id = c->p.ip_id;
}

/* A wrong answer puts the start of the count at `base`. */
static void shift_to(struct lint_flow *q, uint32_t base, uint32_t psn, bool ack)
{
    q->base.shift_ack = ack || (q->base.shift_on && q->base.shift == base && q->base.shift_ack);
    q->base.shift_on = true;
    q->base.shift = base;
    q->base.shift_psn = psn;
}

/* One answer had a wrong count. If a second answer agrees with it, and one of the two is an ACK,
 * then the count was wrong once and continues from there: one finding is enough. This does not hold
 * if the second answer may count more than its own request. */
static void count_shifted(struct lint_ctx *c, const struct count *n, uint32_t base)
{
    struct lint_flow *q = c->req;
    bool ack = c->op->flags & WIRE_F_ACK;
    if (!q->base.shift_on || !q->base.on || q->base.shift != base ||
        wire_psn_diff(c->p.psn, q->base.shift_psn) <= 0 || !(q->base.shift_ack || ack))
        return;
    if (wire_psn_diff(base, q->base.hi) > 0 && !n->all && (!ack || reads_after(q, c->rec)))
        return;
    q->base.lo = q->base.hi = base;
    q->base.n = 2;
    q->base.shift_on = q->base.maybe_on = false;
    q->counted.on = q->highest.on = q->ahead.on = false;
}

/* An answer counted more messages than were captured. It may have counted an uncaptured READ or
 * ATOMIC after them, but now a SEND or WRITE has that PSN. An answer to a READ or ATOMIC may be
 * sent later than its request's turn, so this SEND or WRITE may be a retransmission. If only a
 * single answer gave the start of the count, that answer may be wrong: the next answer decides. */
void lint_msn_sent(struct lint_ctx *c)
{
    struct lint_flow *q = c->f;
    if (!q->ahead.on || q->ahead.nak || q->ahead_hi != c->p.psn || c->gap || c->old || !q->peer)
        return;
    if (!(c->op->flags & (WIRE_F_SEND | WIRE_F_WRITE))) {
        q->ahead_hi = q->hi;
        return;
    }
    if (!q->base.lo_on && q->base.n < 2 && !begins_at_0(q, q->base.hi)) {
        q->ahead_all = wire_opcodes[q->ahead.opcode].flags & WIRE_F_ACK;
        q->ahead_msgs = q->msgs;
        return;
    }
    q->ahead.on = false;
    c->msn_hi = lint_add(q->base.hi, q->msgs);
    if (wire_psn_diff(q->ahead.msn, c->msn_hi) <= 0)
        return;
    bool ack = wire_opcodes[q->ahead.opcode].flags & WIRE_F_ACK;
    c->msn_perhaps = !ack && (q->info.retransmits != q->ahead_retransmits ||
                              c->in->ns - q->ahead.ns >= LINT_ANEW_NS);
    c->wait = &q->ahead;
    c->f = q->peer;
    c->req = q;
    lint_run(c, LINT_S_AHEAD);
    c->wait = NULL;
    c->f = q;
    c->req = NULL;
    c->msn_perhaps = false;
    q->counted.on = q->highest.on = false;
    shift_to(q, q->ahead_base, q->ahead.psn, ack);
}

/* An earlier answer counted more messages than were captured. This answer is to a later request.
 * Does it count fewer messages? Or does it agree with the answers before that earlier one about the
 * start of the count? */
static void judge_ahead(struct lint_ctx *c, uint32_t base)
{
    struct lint_flow *q = c->req;
    if (!q->ahead.on || !c->rec || c->rec->number <= q->ahead.number || c->rec->sends != 1)
        return;
    bool more = q->counted.goes_on && executes(c); /* it counts a later request */
    bool fewer = wire_psn_diff(c->p.msn, lint_add(q->ahead.msn, more)) < 0;
    uint32_t most = lint_add(base, q->ahead_msgs);
    bool as_before = q->ahead_all && executes(c) && q->base.on && base == q->base.hi &&
                     wire_psn_diff(q->ahead.msn, most) > 0;
    if (fewer || as_before) {
        c->msn_hi = fewer ? (c->p.msn - more) & WIRE_PSN_MASK : most;
        c->msn_perhaps = fewer && perhaps_repeated(c);
        c->wait = &q->ahead;
        lint_run(c, LINT_S_AHEAD);
        c->wait = NULL;
        c->msn_perhaps = false;
        q->counted.on = q->highest.on = false;
    }
    q->ahead.on = false;
}

/* Does the answer count more messages than were captured? Then the capture has missed some, or the
 * answer is wrong. */
static void watch_ahead(struct lint_ctx *c, uint32_t base)
{
    struct lint_flow *q = c->req;
    if (!q->base.on || q->ahead.on || wire_psn_diff(c->p.msn, lint_add(q->base.hi, q->msgs)) <= 0)
        return;
    lint_remember(c, &q->ahead);
    q->ahead_retransmits = q->info.retransmits;
    q->ahead_hi = q->hi;
    q->ahead_base = base;
    q->ahead_all = false;
}

/* Does it count exactly one message more than captured? The next request may be recorded late. */
static void watch_skew(struct lint_ctx *c)
{
    struct lint_flow *q = c->req;
    if (!q->base.on || q->skew.on)
        return;
    q->skew.counts = c->p.msn == lint_add(q->base.hi, q->msgs + 1);
    q->skew.ack = c->op->flags & WIRE_F_ACK;
    q->skew.ns = c->in->ns;
}

/* By this answer, the count started at `base` at the latest. */
static void lower_base(struct lint_ctx *c, uint32_t base)
{
    struct lint_flow *q = c->req;
    if (!q->base.on || wire_psn_diff(base, q->base.hi) < 0) {
        q->base.hi = base;
        q->base.n = 0;
        q->base.again = c->rec && c->rec->sends > 1;
        lint_remember(c, &q->base.first);
    }
    q->base.n += base == q->base.hi && q->base.n < 2;
    q->base.on = true;
}

/* The responder's expected PSN by this ACK or NAK. An ACK may also count READs and ATOMICs after it
 * that were executed when it was sent. */
static bool place_of(const struct lint_ctx *c, uint32_t *psn)
{
    bool ack = wire_aeth_kind(c->p.syndrome) == WIRE_AETH_ACK;
    *psn = lint_add(c->p.psn, ack);
    return (c->op->flags & WIRE_F_ACK) && c->headers;
}

/* Is this a SEND or WRITE? */
static bool known_plain(const struct lint_rec *r)
{
    return r && (r->flags & LINT_R_SEEN) && !(r->flags & LINT_R_BAD) &&
           wire_opcodes[r->opcode].flags & (WIRE_F_SEND | WIRE_F_WRITE);
}

/* Two answers with the same expected PSN have the same count. If the request at that PSN is
 * unknown, an ACK may also count READs there, but a NAK counts none. */
static void other_count(struct lint_ctx *c)
{
    const struct lint_flow *q = c->req;
    uint32_t psn;
    if (!q->place.on || !place_of(c, &psn) || psn != q->place.psn || c->p.msn == q->place.msn)
        return;
    const struct lint_rec *next = lint_rec_at(q, psn);
    bool ack = wire_aeth_kind(c->p.syndrome) == WIRE_AETH_ACK;
    bool more = wire_psn_diff(c->p.msn, q->place.msn) > 0;
    if (!known_plain(next) && (ack || !more))
        return;
    c->msn_lo = c->msn_hi = q->place.msn;
    c->msn_after = q->place.number;
    c->msn_known = c->msn_differs = true;
    c->psn_stands = ack && more && next->number > q->place.number;
}

void lint_msn_place(struct lint_ctx *c)
{
    struct lint_flow *q = c->req;
    uint32_t psn;
    if (!place_of(c, &psn))
        return;
    q->place =
        (struct lint_place){.on = true, .psn = psn, .msn = c->p.msn, .number = c->in->number};
}

/* Two answers agree on a count that is too high, after one whose count started at 0: the two are
 * wrong. */
static void counts_on(struct lint_ctx *c, const struct count *n, uint32_t base)
{
    struct lint_flow *q = c->req;
    c->msn_lo = c->msn_hi = lint_add(q->base.hi, n->low);
    q->base.lo_on = q->base.maybe_on = q->counted.on = q->highest.on = q->ahead.on = false;
    shift_to(q, base, c->p.psn, c->op->flags & WIRE_F_ACK);
}

void lint_msn_range(struct lint_ctx *c)
{
    struct lint_flow *q = c->req;
    struct count n;
    if (!(c->op->headers & WIRE_H_AETH) || !c->headers || c->where != LINT_W_KNOWN)
        return;
    if (q->fatal.on && c->rec && c->rec->number > q->fatal.number)
        return; /* RSP-22 reports it; the refused request may have counted */
    other_count(c);
    if (c->msn_known || !messages(c, &n))
        return;
    uint32_t base = (c->p.msn - n.low) & WIRE_PSN_MASK;
    judge_begin(c, &n);
    watch_skew(c);
    count_shifted(c, &n, base);
    watch_highest(c, &n);
    judge_ahead(c, base);
    bool ack = c->op->flags & WIRE_F_ACK;
    if (count_went_back(c, &n)) {
        shift_to(q, base, c->p.psn, ack);
        return;
    }
    q->from_start = q->from_start || begins_at_0(q, base);
    c->msn_lo = q->base.lo_on ? lint_add(q->base.lo, n.low) : c->p.msn;
    /* An ACK of the latest request may also count the READs in flight after it. */
    bool latest = ack && n.all && c->rec->sends == 1;
    uint32_t reads = n.exact || !q->read_limit ? 0 : READS_MOST;
    c->msn_hi = q->base.on && (n.exact || latest) ? lint_add(q->base.hi, n.low + reads) : c->p.msn;
    c->msn_known = wire_psn_diff(c->p.msn, c->msn_lo) < 0 || wire_psn_diff(c->p.msn, c->msn_hi) > 0;
    bool from_0 = q->base.on && begins_at_0(q, q->base.hi);
    if (c->msn_known && wire_psn_diff(base, q->base.hi) > 0 && q->base.n == 1 && !from_0 &&
        (!q->base.lo_on || base == q->base.lo))
        began_later(c, base);
    if (c->msn_known) {
        shift_to(q, base, c->p.psn, ack);
        return;
    }
    if (q->base.on && base == q->base.hi)
        q->base.shift_on = false;
    count_on(c);
    highest_on(c);
    watch_ahead(c, base);
    lower_base(c, base);
    settle_base(q, &n, base);
    if (q->base.lo_on && q->base.n == 1 && wire_psn_diff(q->base.lo, q->base.hi) > 0) {
        c->msn_known = true; /* two answers agree on a later start than a single one */
        if (from_0)
            counts_on(c, &n, base);
        else
            began_later(c, q->base.lo);
    }
}
