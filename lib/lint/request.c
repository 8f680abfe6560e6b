/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The requests of one flow: the captured PSNs and their contents, the starts and ends of messages,
 * the open READs.
 *
 * Everything is kept by PSN and judged against the neighbours by PSN, never by order of arrival:
 * then neither loss nor reordering nor retransmission can look like a broken rule.
 */
#include <stdlib.h>

#include "lint_priv.h"

#define MTU_MIN 256u

/* Is the payload equal to that of `r`? The iCRC covers headers that may differ (IP id, AckReq), so
 * compare the payload's own contribution: the CRC is linear. */
static bool same_payload(const struct lint_ctx *c, const struct lint_rec *r)
{
    static const uint8_t zeros[WIRE_MTU_MAX];
    uint32_t n = c->p.icrc_off - c->p.payload_off;
    if (c->cut || (r->flags & LINT_R_CUT))
        return true;
    if (r->len != c->p.payload_len || n > sizeof(zeros))
        return r->len == c->p.payload_len;
    /* wire_icrc_update keeps the final XOR applied: take it off both registers. */
    uint32_t diff = wire_icrc_update(~(r->crc_head ^ c->crc_head), zeros, n);
    return (r->crc ^ c->icrc) == ~diff;
}

/* Immediate data, and the operands of an ATOMIC. */
static uint32_t operands(const struct lint_ctx *c)
{
    unsigned h = c->op->headers;
    uint64_t n = h & WIRE_H_IMMDT ? c->p.imm : 0;
    if (h & WIRE_H_ATOMICETH)
        n = c->p.swap_add * 0x9E3779B97F4A7C15ull;
    if ((c->p.opcode & 0x1F) == WIRE_CMP_SWAP)
        n ^= c->p.compare * 0xC2B2AE3D27D4EB4Full;
    return (uint32_t)(n ^ n >> 32);
}

unsigned lint_differs(const struct lint_ctx *c, const struct lint_rec *r)
{
    const struct wire_pkt *p = &c->p;
    unsigned h = c->op->headers, n = (r->opcode != p->opcode) + (r->len != p->payload_len);
    if (c->headers && !(r->flags & LINT_R_CUT)) {
        bool memory = h & (WIRE_H_RETH | WIRE_H_ATOMICETH);
        n += memory && r->va != p->va;
        n += (memory || (h & WIRE_H_IETH)) && r->rkey != p->rkey;
        n += r->opcode == p->opcode && r->operands != operands(c);
        n += (h & WIRE_H_RETH) && r->len == p->payload_len && r->dma_len != p->dma_len;
    }
    return n + (r->len == p->payload_len && !same_payload(c, r));
}

static void begin(struct lint_ctx *c)
{
    struct lint_flow *f = c->f;
    f->started = true;
    f->first_epoch = ++f->epoch;
    f->msgs = 0;
    if (f->start_known) {
        int32_t d = wire_psn_diff(c->p.psn, f->first);
        if (d >= 0 && d < LINT_JUMP_MAX) {
            f->hi = f->first;
            f->base.on = f->base.lo_on = true; /* ACK-11: the MSN begins at 0 */
            f->base.lo = f->base.hi = 0;
            return;
        }
        f->start_known = false;
    }
    f->first = f->hi = c->p.psn;
}

/* The number of this packet's PSNs (PSN-06); 0 = not known. */
static uint32_t psns_of(const struct lint_ctx *c, uint32_t mtu)
{
    if (!(c->op->flags & WIRE_F_READ))
        return 1;
    if (!c->headers || c->p.dma_len > WIRE_MSG_MAX)
        return 0;
    if (c->p.dma_len <= MTU_MIN)
        return 1;
    return mtu ? (c->p.dma_len - 1) / mtu + 1 : 0;
}

static const struct lint_rec *neighbour(const struct lint_flow *f, uint32_t psn, int step)
{
    const struct lint_rec *r = lint_rec_at(f, (psn + (uint32_t)step) & WIRE_PSN_MASK);
    if (!r && step < 0) { /* the PSN before may belong to a READ's responses */
        const struct lint_read *read = lint_read_at(f, (psn - 1) & WIRE_PSN_MASK);
        if (read && read->n && lint_add(read->psn, read->n) == psn)
            r = lint_rec_at(f, read->psn);
    }
    return r && (r->flags & LINT_R_SEEN) && !(r->flags & LINT_R_BAD) ? r : NULL;
}

/* The packet's place in its message, inherited from its predecessor. */
static void place(struct lint_ctx *c)
{
    c->index = LINT_UNKNOWN;
    c->dma_len = c->p.dma_len;
    if (c->op->flags & WIRE_F_START) {
        c->index = 0;
        if (!c->headers)
            c->dma_len = LINT_UNKNOWN;
    } else if (c->op->flags & (WIRE_F_MIDDLE | WIRE_F_LAST)) {
        const struct lint_rec *prev = c->prev;
        c->dma_len = LINT_UNKNOWN;
        unsigned kinds = WIRE_F_SEND | WIRE_F_WRITE;
        if (prev && prev->index != LINT_UNKNOWN &&
            (wire_opcodes[prev->opcode].flags & kinds) == (c->op->flags & kinds) &&
            (wire_opcodes[prev->opcode].flags & (WIRE_F_FIRST | WIRE_F_MIDDLE))) {
            c->index = prev->index + 1;
            c->dma_len = prev->dma_len;
        }
    } else {
        c->index = 0; /* READ, ATOMIC */
    }
}

static void remember_read(struct lint_ctx *c, uint32_t n)
{
    struct lint_flow *f = c->f;
    if (!f->read)
        f->read = calloc(LINT_READS, sizeof(*f->read));
    if (!f->read)
        return;
    bool late = wire_psn_diff(c->p.psn, f->hi) < 0;
    struct lint_read *r = &f->read[f->reads++ % LINT_READS];
    if (r->valid && !r->done && !r->late && f->outstanding)
        f->outstanding--;
    *r = (struct lint_read){
        .valid = true,
        .atomic = c->op->flags & WIRE_F_ATOMIC,
        .psn = c->p.psn,
        .reread = c->p.psn,
        .next = c->p.psn,
        .n = n,
        .len = c->p.dma_len,
        .va = c->p.va,
        .rkey = c->p.rkey,
        .number = c->in->number,
        .blind = !c->headers || c->p.dma_len > WIRE_MSG_MAX,
        .late = late,
        .again = late, /* perhaps: the first transmission may not have been captured */
        .perhaps_part =
            late || c->gap || f->hi_uncertain || (f->info.requests == 1 && !f->start_known),
        .msgs = f->msgs,
        .epoch = late ? 0 : f->epoch, /* as for every packet that fills a gap */
    };
    f->outstanding += !late;
}

/* Count an operation, when its first packet is new. */
static void count_new(struct lint_ctx *c)
{
    struct lint_flow_info *i = &c->f->info;
    unsigned fl = c->op->flags;
    if (fl & WIRE_F_READ)
        i->reads++;
    else if (fl & WIRE_F_ATOMIC)
        i->atomics++;
    else if ((fl & WIRE_F_SEND) && (fl & WIRE_F_END))
        i->sends++;
    else if ((fl & WIRE_F_WRITE) && (fl & WIRE_F_END))
        i->writes++;
    i->flushes += c->p.opcode % 32 == WIRE_FLUSH;
    i->atomic_writes += c->p.opcode % 32 == WIRE_ATOMIC_WRITE;
    i->goodput += c->p.payload_len;
}

/* Restart the count of messages. */
static void forget_messages(struct lint_flow *f)
{
    f->epoch++;
    f->msgs = 0;
    f->base.on = f->base.lo_on = f->base.maybe_on = f->base.shift_on = f->ahead.on = false;
}

/* A PSN at or after the next new one. */
static void advance(struct lint_ctx *c, uint32_t n)
{
    struct lint_flow *f = c->f;
    if (wire_psn_diff(c->p.psn, f->hi) > 0) {
        f->info.gaps += c->gap != 0;
        f->info.gap_psns += c->gap;
        forget_messages(f); /* the number of messages in the gap is unknown */
        c->view->flags |= c->gap ? LINT_V_GAP : 0;
    }
    f->msgs += lint_ends_message(c->op);
    if (c->op->flags & (WIRE_F_READ | WIRE_F_ATOMIC))
        remember_read(c, n);
    uint32_t before = f->hi;
    f->hi = lint_add(c->p.psn, n ? n : 1);
    f->hi_uncertain = !n;
    uint64_t span = (uint64_t)f->span + (uint32_t)wire_psn_diff(f->hi, before);
    f->span = span < LINT_SPAN_MAX ? (uint32_t)span : LINT_SPAN_MAX;
    count_new(c);
}

/* Have answers requested this PSN since it was last sent? */
static bool was_asked_for(const struct lint_ctx *c)
{
    const struct lint_flow *f = c->f;
    uint64_t since = c->old->last_number;
    return f->nak.number > since ||
           (f->rnr.number > since && wire_psn_diff(c->p.psn, f->rnr.psn) >= 0) ||
           (c->read && !c->read->atomic && c->p.psn != c->read->psn);
}

/* Is it the network's copy of an earlier packet? The IP identification decides, or without one the
 * time: no requester retransmits unasked before an answer is possible. */
static bool is_copy(const struct lint_ctx *c)
{
    const struct lint_rec *r = c->old;
    const struct lint_flow *peer = c->f->peer;
    if (!c->same)
        return false;
    if (lint_id_tells(c->f, &c->p))
        return r->ip_id == c->p.ip_id;
    uint64_t trip = peer && peer->info.rtt_samples ? peer->info.rtt_min : COPY_NS;
    return c->in->ns - r->last_ns < trip && !was_asked_for(c);
}

/* Why is this PSN sent again? Sets the view's flags, and counts. */
static void classify_again(struct lint_ctx *c)
{
    struct lint_flow *f = c->f;
    if (is_copy(c)) {
        f->info.duplicates++;
        c->view->flags |= LINT_V_DUPLICATE;
        return;
    }
    f->info.retransmits++;
    c->view->flags |= LINT_V_RETRANSMIT;
    if (wire_psn_diff(c->p.psn, f->last) <= 0 && !was_asked_for(c)) { /* else a round continues */
        f->info.timeouts++;
        c->view->flags |= LINT_V_TIMEOUT;
    }
}

/* An uncaptured PSN below the highest one. */
static void classify_late(struct lint_ctx *c)
{
    struct lint_flow *f = c->f;
    bool asked_for = (f->nak.on && wire_psn_diff(c->p.psn, f->nak.psn) >= 0) ||
                     (c->read && c->p.psn != c->read->psn); /* a READ from the middle */
    if (asked_for || (f->peer && f->peer->info.rtt_samples && c->next &&
                      c->in->ns - c->next->ns > f->peer->info.rtt_min)) {
        f->info.retransmits++;
        c->view->flags |= LINT_V_RETRANSMIT;
    } else {
        f->info.reordered++;
        c->view->flags |= LINT_V_REORDERED;
    }
    if (!c->read || c->p.psn == c->read->psn)
        count_new(c);
    if (!c->read && (c->op->flags & (WIRE_F_READ | WIRE_F_ATOMIC)))
        remember_read(c, psns_of(c, f->info.mtu));
}

static void remember(struct lint_ctx *c, bool bad)
{
    struct lint_rec *r = lint_rec_make(c->f, c->p.psn);
    if (!r)
        return;
    const struct wire_pkt *p = &c->p;
    bool again = r->flags & LINT_R_SEEN;
    bad = bad || (p->pad && c->op->flags & (WIRE_F_FIRST | WIRE_F_MIDDLE)); /* HDR-06 */
    r->last_number = c->in->number;
    r->last_ns = c->in->ns;
    if (!(c->view->flags & LINT_V_DUPLICATE))
        r->sends++;
    if (p->ackreq)
        r->flags |= LINT_R_ACKREQ;
    r->ip_id = p->ip_id;
    if (again && c->same)
        return;
    if (!again) {
        r->number = c->in->number;
        r->ns = c->in->ns;
        r->index = c->index;
        r->msgs = c->f->msgs;
        /* A packet that fills a gap belongs to no count of messages. */
        r->epoch = c->view->flags & (LINT_V_RETRANSMIT | LINT_V_REORDERED) ? 0 : c->f->epoch;
    }
    r->va = p->va;
    r->rkey = p->rkey;
    r->operands = c->headers ? operands(c) : 0;
    r->dma_len = c->dma_len;
    r->len = p->payload_len;
    r->opcode = p->opcode;
    r->crc_head = c->crc_head;
    r->crc = c->icrc;
    r->flags = (uint8_t)(LINT_R_SEEN | (r->flags & LINT_R_ACKREQ) | (bad ? LINT_R_BAD : 0) |
                         (c->cut ? LINT_R_CUT : 0));
}

void lint_request_unread(struct lint_ctx *c, unsigned flag)
{
    struct lint_flow *f = c->f;
    if (!f || !f->started || !(c->op->flags & WIRE_F_REQUEST) ||
        wire_psn_diff(c->p.psn, f->hi) > 0 || lint_rec_at(f, c->p.psn))
        return;
    struct lint_rec *r = lint_rec_make(f, c->p.psn);
    if (!r)
        return;
    r->flags |= (uint8_t)flag;
    r->number = c->in->number;
    if (c->p.psn == f->hi && !(c->op->flags & WIRE_F_READ) && !f->hi_uncertain) {
        f->hi = lint_add(f->hi, 1);
        f->span += f->span < LINT_SPAN_MAX;
        forget_messages(f); /* it may have ended one */
    }
}

/* A READ response or ATOMIC acknowledge waits for its request, and the request with its PSN is of
 * another kind. */
static void judge_early(struct lint_ctx *c)
{
    struct lint_flow *f = c->f;
    struct lint_wait *w = &f->unseen;
    bool ack = wire_opcodes[w->opcode].flags & WIRE_F_ACK;
    if (ack || c->p.psn != w->psn || c->p.psn != f->hi || lint_answers(c->p.opcode, w->opcode))
        return;
    c->wait = w;
    c->outcome = LINT_CONFIRMED;
    c->f = f->peer;
    lint_run(c, LINT_S_UNSEEN);
    c->f = f;
    c->wait = NULL;
    w->on = false;
}

/* An answer to an uncaptured PSN waits: does this request decide about it? */
static void judge_unseen(struct lint_ctx *c)
{
    struct lint_flow *f = c->f;
    struct lint_wait *w = &f->unseen;
    if (!w->on || wire_psn_diff(c->p.psn, f->hi) < 0)
        return;
    if (wire_psn_diff(c->p.psn, w->psn) > 0 && wire_psn_diff(w->psn, f->hi) >= 0) {
        c->wait = w;
        c->outcome = LINT_NOT_CAPTURED;
        lint_run(c, LINT_S_UNSEEN);
        c->wait = NULL;
        w->on = false;
    } else if (wire_psn_diff(c->p.psn, w->psn) <= 0) {
        judge_early(c);
        forget_messages(f); /* it may be a retransmission, counted already */
    }
}

/* A new request: was it answered, or counted, before it was recorded? An ACK that counted a SEND or
 * WRITE would have its PSN. */
static void watch_skew(struct lint_ctx *c)
{
    struct lint_skew *s = &c->f->skew;
    if (!(s->on || s->counts) || wire_psn_diff(c->p.psn, c->f->hi) < 0)
        return;
    bool plain = c->op->flags & (WIRE_F_SEND | WIRE_F_WRITE);
    bool soon = c->in->ns >= s->ns && c->in->ns - s->ns <= LINT_SKEW_NS;
    if (s->on)
        s->n += soon && wire_psn_diff(c->p.psn, s->psn) <= 0;
    else if (!soon)
        s->more = 0; /* the count was wrong */
    else
        s->more += !c->gap && !(plain && s->ack) && lint_ends_message(c->op);
    s->on = s->counts = false;
}

/* One READ or ATOMIC too many? Only if the oldest is still open: wait for its last response, which
 * the capture may have missed (REQ-12). */
static void watch_limit(struct lint_ctx *c)
{
    struct lint_flow *f = c->f;
    if (f->over.wait.on || f->outstanding < f->read_limit || !f->read ||
        !(c->op->flags & (WIRE_F_READ | WIRE_F_ATOMIC)))
        return;
    uint32_t n = f->reads < LINT_READS ? f->reads : LINT_READS;
    const struct lint_read *oldest = NULL;
    uint32_t open = 0, since = 0; /* READs before the oldest may have been answered */
    for (uint32_t i = 1; i <= n; i++) {
        const struct lint_read *r = &f->read[(f->reads - i) % LINT_READS];
        open += r->valid && !r->done && !r->late;
        if (r->valid && !r->done && !r->again) {
            oldest = r;
            since = open;
        }
    }
    if (!oldest || since < f->read_limit)
        return;
    lint_remember(c, &f->over.wait);
    f->over.psn = oldest->psn;
    f->over.n = since + 1;
}

/* A request has a PSN of a READ's responses (REQ-06). Either the READ's length is wrong, or all
 * later PSNs are: from here on trust the requester's PSNs. */
static void cut_read(struct lint_ctx *c)
{
    struct lint_flow *f = c->f;
    struct lint_read *r = c->read;
    uint32_t too_many = (f->hi - c->p.psn) & WIRE_PSN_MASK;
    bool newest = f->hi == lint_add(r->psn, r->n);
    r->asked = r->n;
    r->n = (c->p.psn - r->psn) & WIRE_PSN_MASK;
    r->disputed = true;
    c->read = NULL;
    if (!newest)
        return;
    f->hi = c->p.psn;
    f->span -= f->span < too_many ? f->span : too_many;
    if (f->ack_on && wire_psn_diff(f->acked, f->hi) >= 0)
        f->acked = lint_add(f->hi, WIRE_PSN_MASK);
}

/* Is the first request's PSN later than the CM announced (PSN-01)? If the capture has missed
 * requests before it, the message numbers show it: they were at least one message if this packet
 * starts one. But a READ may be the rest of a READ. */
static void watch_begin(struct lint_ctx *c, unsigned broken)
{
    struct lint_flow *f = c->f;
    if (f->info.requests == 1 && f->info.by_cm && !broken && lint_begins_message(c->op) &&
        !(c->op->flags & WIRE_F_READ) && wire_psn_diff(c->p.psn, f->announced) > 0) {
        lint_remember(c, &f->start.wait);
        f->start.epoch = f->epoch;
    }
}

/* The records of this PSN and of its neighbours. */
static void look_around(struct lint_ctx *c)
{
    struct lint_flow *f = c->f;
    int32_t d = wire_psn_diff(c->p.psn, f->hi);
    const struct lint_rec *r = lint_rec_at(f, c->p.psn);
    c->gap = d > 0 && !f->hi_uncertain ? (uint32_t)d : 0;
    c->read = d < 0 ? lint_read_at(f, c->p.psn) : NULL;
    c->prev = neighbour(f, c->p.psn, -1);
    if (r && (r->flags & LINT_R_SEEN)) {
        c->old = r;
        c->same = lint_differs(c, r) == 0;
        c->same_payload = same_payload(c, r);
    } else {
        c->next = d < 0 ? neighbour(f, c->p.psn, 1) : NULL;
    }
    place(c);
}

/* Is the PSN new, a retransmission, or late? */
static void classify(struct lint_ctx *c, unsigned broken)
{
    struct lint_flow *f = c->f;
    uint32_t n = psns_of(c, f->info.mtu);
    c->view->psns = n ? n : 1;
    if (wire_psn_diff(c->p.psn, f->hi) >= 0) {
        watch_limit(c);
        advance(c, n);
        if (broken)
            forget_messages(f); /* the responder's count of this one is unknown */
    } else if (c->old) {
        classify_again(c);
    } else {
        classify_late(c);
    }
}

/* A READ is requested again, from its start or from the middle: from now on answers may start here,
 * too (REQ-30). */
static void watch_reread(struct lint_ctx *c)
{
    if (!c->read || c->read->atomic || !(c->op->flags & WIRE_F_READ))
        return;
    lint_continued(c->l, c->f, false);
    c->read->again = true;
    c->read->parts = c->read->parts || c->p.psn != c->read->psn;
    c->read->reread = c->p.psn;
    c->read->reread_ns = c->in->ns;
    c->read->continued = false;
}

void lint_request(struct lint_ctx *c)
{
    if (c->f->started && lint_begins_anew(c) && !lint_renew(c))
        return;
    lint_mtu_watch(c);
    struct lint_flow *f = c->f;
    f->info.requests++;
    if (!f->started)
        begin(c);
    look_around(c);
    watch_skew(c);
    judge_unseen(c);
    lint_msn_sent(c);
    if (c->p.psn == f->first && c->old && f->ack_on && lint_add(f->acked, 1) == f->hi)
        lint_responder_reset(f); /* perhaps a new life that starts like the old one */
    unsigned broken = lint_run(c, LINT_S_REQUEST);
    if (c->read && !c->old && c->p.psn != c->read->psn && !(c->op->flags & WIRE_F_READ))
        cut_read(c);
    classify(c, broken);
    watch_begin(c, broken);
    watch_reread(c);
    if (!(c->read && c->p.psn != c->read->psn)) /* a partial re-read has no record of its own */
        remember(c, broken);
    f->last = c->p.psn;
}
