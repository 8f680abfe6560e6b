/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The responses on one flow, which answer the requests of its peer flow: the PSNs that they
 * acknowledge, and their READs.
 *
 * A responder sends in the order in which it executes, but the network may reorder. Two responses
 * contradict each other only when the later one answers a request that was first captured after the
 * earlier one: no reordering explains that.
 */
#include <stdlib.h>

#include "lint_priv.h"

#define BACK_NS 1000000000u /* the time in which no counter of IP identifications wraps */

bool lint_answers(uint8_t asked, uint8_t given)
{
    unsigned from = wire_opcodes[asked].flags, to = wire_opcodes[given].flags;
    uint8_t op = asked & 0x1F;
    if (op == WIRE_FLUSH || op == WIRE_ATOMIC_WRITE)
        return to & WIRE_F_READ; /* an empty READ response */
    return to & WIRE_F_ATOMIC ? from & WIRE_F_ATOMIC : from & WIRE_F_READ;
}

/* Find the PSN's position among the captured requests. */
static void locate(struct lint_ctx *c)
{
    const struct lint_flow *q = c->req;
    int32_t d = wire_psn_diff(c->p.psn, q->hi);
    c->where = LINT_W_NONE;
    if (!q->started) {
        if (q->start_known && wire_psn_diff(c->p.psn, q->announced) < 0)
            c->where = LINT_W_BEFORE;
        return;
    }
    if (d >= 0) {
        c->where = q->hi_uncertain ? LINT_W_NONE : LINT_W_AFTER;
        return;
    }
    c->where = (uint32_t)-d > q->span ? LINT_W_BEFORE : LINT_W_KNOWN;
    if (c->where == LINT_W_KNOWN) {
        c->read = lint_read_at(q, c->p.psn);
        c->rec = lint_rec_at(q, c->p.psn);
        if (c->rec && !(c->rec->flags & LINT_R_SEEN))
            c->rec = NULL;
    }
}

static void rtt(struct lint_ctx *c, uint64_t since)
{
    struct lint_flow_info *i = &c->f->info;
    if (c->in->ns < since)
        return;
    uint64_t ns = c->in->ns - since;
    i->rtt_samples++;
    i->rtt_sum += ns;
    i->rtt_min = ns < i->rtt_min ? ns : i->rtt_min;
    i->rtt_max = ns > i->rtt_max ? ns : i->rtt_max;
}

/* All PSNs up to `psn` are acknowledged. Returns the number of newly acknowledged request packets.
 */
static uint32_t acknowledge(struct lint_ctx *c, uint32_t psn)
{
    struct lint_flow *q = c->req;
    uint32_t n = 0;
    if (!q->ack_on) {
        q->ack_on = true;
        n = 1;
    } else if (wire_psn_diff(psn, q->acked) > 0) {
        n = (uint32_t)wire_psn_diff(psn, q->acked);
    } else {
        return 0;
    }
    q->acked = psn;
    q->progress_number = c->in->number;
    return n;
}

static void read_progress(struct lint_ctx *c)
{
    struct lint_read *r = c->read;
    struct lint_flow *q = c->req;
    r->ns = c->in->ns;
    if (!r->n && (c->op->flags & WIRE_F_ONLY) && (r->blind || c->p.payload_len == r->len)) {
        r->len = c->p.payload_len;
        r->n = 1; /* shorter than any MTU */
        if (q->hi == lint_add(r->psn, 1))
            q->hi_uncertain = false;
    }
    uint32_t off = (c->p.psn - r->psn) & WIRE_PSN_MASK;
    uint32_t next = (r->next - r->psn) & WIRE_PSN_MASK;
    if (off == next) {
        r->next = lint_add(r->next, 1);
        c->f->info.read_octets += c->p.payload_len;
    } else if (off < next) {
        c->f->info.read_again++;
        c->view->flags |= LINT_V_RETRANSMIT;
    } else {
        r->next = lint_add(c->p.psn, 1);
        r->missed = true;
        c->f->info.read_octets += c->p.payload_len;
        c->view->flags |= LINT_V_GAP;
    }
    bool last = r->n && off == r->n - 1;
    if (last && !r->done) {
        if (q->over.wait.on && q->over.psn == r->psn) {
            if (!r->again && off == next) {
                c->wait = &q->over.wait;
                lint_run(c, LINT_S_OVER);
                c->wait = NULL;
            }
            q->over.wait.on = false;
        }
        /* In-order execution: earlier READs are complete, or lost and requested again. */
        uint32_t n = q->reads < LINT_READS ? q->reads : LINT_READS;
        for (uint32_t i = 1; i <= n; i++) {
            struct lint_read *e = &q->read[(q->reads - i) % LINT_READS];
            if (e->valid && !e->done && wire_psn_diff(e->psn, r->psn) <= 0) {
                e->done = true;
                if (q->outstanding && !e->late)
                    q->outstanding--;
            }
        }
    }
}

/* A packet a round trip after the one before is no copy of it, and may have a copy itself. */
static void mark(struct lint_ctx *c, struct lint_mark *m)
{
    const struct lint_rec *r = c->rec;
    uint64_t trip = c->f->info.rtt_samples ? c->f->info.rtt_min : COPY_NS;
    bool again =
        m->on && m->psn == c->p.psn && m->syndrome == c->p.syndrome && c->in->ns - m->ns < trip;
    bool same = m->number && m->psn == c->p.psn && r;
    uint32_t answers = !same ? 1 : m->answers + (r->sends > m->sends);
    *m = (struct lint_mark){.on = true,
                            .again = (uint8_t)(again ? m->again + (m->again < 255) : 0),
                            .psn = c->p.psn,
                            .ip_id = c->p.ip_id,
                            .syndrome = c->p.syndrome,
                            .sends = r ? r->sends : 0,
                            .answers = answers,
                            .number = c->in->number,
                            .ns = c->in->ns};
}

static void remember_ack(struct lint_ctx *c)
{
    struct lint_flow *q = c->req;
    struct lint_flow_info *i = &c->f->info;
    uint32_t n;
    switch (wire_aeth_kind(c->p.syndrome)) {
    case WIRE_AETH_ACK:
        q->no_icrc.accepted = true;
        n = acknowledge(c, c->p.psn);
        i->acks_placed++;
        i->acked_psns += n;
        i->ack_max = n > i->ack_max ? n : i->ack_max;
        if (c->rec && c->rec->sends == 1 && (c->rec->flags & LINT_R_ACKREQ) && n)
            rtt(c, c->rec->ns);
        break;
    case WIRE_AETH_RNR:
        acknowledge(c, (c->p.psn - 1) & WIRE_PSN_MASK);
        mark(c, &q->rnr);
        break;
    case WIRE_AETH_NAK:
        acknowledge(c, (c->p.psn - 1) & WIRE_PSN_MASK);
        if (c->p.syndrome == WIRE_SYN_NAK_SEQ) {
            mark(c, &q->nak);
        } else {
            if (!q->fatal.on)
                mark(c, &q->fatal);
            else
                q->fatal.again += q->fatal.again < 255;
        }
        break;
    case WIRE_AETH_INVALID:
        break;
    }
}

static void remember(struct lint_ctx *c)
{
    struct lint_flow *q = c->req;
    q->answer_number = c->in->number;
    if (c->op->flags & WIRE_F_ACK) {
        remember_ack(c);
        return;
    }
    bool first = c->read && !c->read->again && c->p.psn == c->read->psn;
    if (first && q->ack_on && wire_psn_diff(c->p.psn, q->acked) <= 0)
        first = false;
    if (first && c->rec && c->rec->sends == 1)
        rtt(c, c->rec->ns);
    acknowledge(c, c->p.psn);
    q->no_icrc.accepted = true;
    if (c->op->flags & WIRE_F_ATOMIC) {
        if (c->headers && c->read && c->read->atomic && !c->read->have_orig) {
            c->read->have_orig = true;
            c->read->orig = c->p.orig;
        }
    }
    if (c->read)
        read_progress(c);
}

/* The shortest time from a request to its answer; 0 = not known. */
static uint64_t rtt_least(const struct lint_ctx *c)
{
    return c->f->info.rtt_samples ? c->f->info.rtt_min : 0;
}

/* Was it sent before an answer that was captured before it? */
static bool overtaken(const struct lint_ctx *c)
{
    return lint_id_counts(c->f, &c->p) && (int16_t)(c->p.ip_id - c->f->id.most) < 0;
}

/* A re-read that starts in the middle: is it answered as a request of its own (RD-10)? */
static void watch_reread(struct lint_ctx *c)
{
    struct lint_flow *q = c->req;
    struct lint_read *r = c->read;
    const struct lint_rec *whole = r ? lint_rec_at(q, r->psn) : NULL;
    if (r && c->p.psn == r->psn && c->op->flags & WIRE_F_START)
        r->starts++;
    if (!r || r->atomic || c->p.psn == r->psn)
        return;
    if (c->op->flags & WIRE_F_START) { /* the answer to the latest re-read, or to an earlier one */
        q->reread.restarted++;
        q->reread.continued.on = q->reread.continued.on && c->p.psn != q->reread.continued.psn;
    } else if (c->p.psn == r->reread && !r->continued && rtt_least(c) && !overtaken(c) &&
               c->in->ns - r->reread_ns >= rtt_least(c) / 8 &&
               ((whole && r->starts >= whole->sends) ||
                (q->reread.n > 1 && !q->reread.restarted))) {
        lint_remember(c, &q->reread.continued); /* else it was in flight already */
    }
}

static void report_continued(struct lint *l, struct lint_flow *req, enum lint_outcome outcome)
{
    struct lint_ctx c = {.l = l, .f = req->peer, .req = req, .outcome = outcome};
    for (uint32_t i = 0; i < req->reread.n && i < LINT_CONTINUED; i++) {
        c.wait = &req->reread.held[i];
        lint_run(&c, LINT_S_CONTINUED);
    }
}

/* Called when the re-read is repeated, or at the capture's end. Once may be chance: a late answer
 * to the first request, and a lost answer to the re-read. Twice and never otherwise is a habit. The
 * re-read's own answer may come after the next re-read, so the habit is proven only at the end, or
 * after many re-reads. */
void lint_continued(struct lint *l, struct lint_flow *req, bool end)
{
    struct lint_wait *w = &req->reread.continued;
    bool habit = !req->reread.restarted;
    if (w->on && !req->reread.held)
        req->reread.held = calloc(LINT_CONTINUED, sizeof(*w));
    if (w->on && req->reread.held) {
        struct lint_read *r = lint_read_at(req, w->psn);
        if (r)
            r->continued = true; /* each re-read is counted once */
        if (req->reread.n < LINT_CONTINUED)
            req->reread.held[req->reread.n] = *w;
        struct lint_ctx c = {.l = l, .f = req->peer, .req = req, .wait = w};
        c.outcome = LINT_CONFIRMED;
        if (++req->reread.n == LINT_CONTINUED && habit)
            report_continued(l, req, LINT_CONFIRMED);
        else if (req->reread.n > LINT_CONTINUED && habit)
            lint_run(&c, LINT_S_CONTINUED);
    }
    w->on = false;
    if (end && habit && req->reread.n < LINT_CONTINUED)
        report_continued(l, req, req->reread.n == 1 ? LINT_OPEN : LINT_CONFIRMED);
}

/* Does this response show that an earlier one answered a request that had never arrived? If the
 * request had arrived, this response would be to a retransmission and carry the PSN executed last:
 * always the same PSN, and not a READ's or ATOMIC's. */
static void judge_unseen(struct lint_ctx *c)
{
    struct lint_flow *q = c->req;
    struct lint_wait *w = &q->unseen;
    if (!w->on || !(c->op->flags & WIRE_F_ACK) || c->where != LINT_W_KNOWN || !c->rec ||
        wire_aeth_kind(c->p.syndrome) != WIRE_AETH_ACK || wire_psn_diff(c->p.psn, w->psn) >= 0 ||
        c->rec->number <= w->number)
        return;
    bool ack = wire_opcodes[w->opcode].flags & WIRE_F_ACK, on = q->unseen_next_on;
    uint32_t next = q->unseen_next;
    q->unseen_next_on = true;
    q->unseen_next = c->p.psn;
    if (!ack && (!on || wire_psn_diff(c->p.psn, next) <= 0))
        return;
    c->wait = w;
    c->outcome = LINT_NEVER_SENT;
    lint_run(c, LINT_S_UNSEEN);
    c->wait = NULL;
    w->on = false;
}

/* Has the network changed the order of answers? */
static void watch_order(struct lint_ctx *c)
{
    struct lint_flow *q = c->req;
    bool nak = c->op->flags & WIRE_F_ACK && wire_aeth_kind(c->p.syndrome) != WIRE_AETH_ACK;
    if (!(c->op->headers & WIRE_H_AETH) || !c->headers)
        return;
    bool less = q->msn_on && wire_psn_diff(c->p.msn, q->msn_most) < 0;
    bool again = q->ack_on && wire_psn_diff(c->p.psn, q->acked) <= 0;
    q->back += again && (less || nak);
    q->msn_most = less ? q->msn_most : c->p.msn;
    q->msn_on = true;
}

/* The waiting ACK acknowledges less than one sent before it, so it was wrong. */
static void judge_back(struct lint_ctx *c)
{
    c->wait = &c->req->most.less;
    lint_run(c, LINT_S_BACK);
    c->wait = NULL;
    c->req->most.less.on = false;
}

/* Execution is never undone: an ACK never has an earlier PSN than one sent before it, by the IP
 * identification. If it counts no fewer messages, its PSN is wrong; otherwise the next ACK shows
 * which of the two is wrong. */
static void watch_back(struct lint_ctx *c)
{
    struct lint_most *m = &c->req->most;
    if (!(c->op->flags & WIRE_F_ACK) || !c->headers ||
        wire_aeth_kind(c->p.syndrome) != WIRE_AETH_ACK || !lint_id_counts(c->f, &c->p) ||
        (m->on && (int16_t)(c->p.ip_id - m->ip_id) <= 0))
        return;
    bool less = m->on && wire_psn_diff(c->p.psn, m->psn) < 0 && c->in->ns - m->ns < BACK_NS;
    bool second = less && m->less.on && wire_psn_diff(c->p.psn, m->less.psn) > 0;
    if (less && !second) {
        if (!m->less.on)
            lint_remember(c, &m->less);
        if (wire_psn_diff(c->p.msn, m->msn) >= 0)
            judge_back(c);
        return;
    }
    if (m->less.on && !second && m->on)
        judge_back(c);
    m->less.on = false;
    m->on = true;
    m->psn = c->p.psn;
    m->msn = c->p.msn;
    m->ip_id = c->p.ip_id;
    m->number = c->in->number;
    m->ns = c->in->ns;
}

/* Part of the request stream was not captured: trust the answers. */
static void note_unseen(struct lint_ctx *c)
{
    struct lint_flow *q = c->req;
    q->skew.on = true;
    q->skew.counts = false;
    q->skew.psn = c->p.psn;
    q->skew.ns = c->in->ns;
    if (!q->unseen.on) {
        lint_remember(c, &q->unseen);
        q->unseen_unread = lint_flow_any_unread(c->l, q, q->answer_number);
        q->unseen_requests = q->info.requests;
        q->unseen_next_on = false;
    }
}

/* A READ that ends sooner or later than it should. */
static bool ends_elsewhere(const struct lint_ctx *c)
{
    const struct lint_read *r = c->read;
    uint32_t last = r ? (c->p.psn - r->psn + 1) & WIRE_PSN_MASK : 0;
    return r && !r->atomic && r->n && (c->op->flags & WIRE_F_READ) &&
           (last == r->n) != ((c->op->flags & WIRE_F_END) != 0);
}

static void count_answer(struct lint_ctx *c)
{
    struct lint_flow_info *i = &c->f->info;
    if (c->op->flags & WIRE_F_ATOMIC) {
        i->atomic_acks++;
    } else if (!(c->op->flags & WIRE_F_ACK)) {
        i->read_packets++;
    } else if (c->headers) {
        enum wire_aeth_kind kind = wire_aeth_kind(c->p.syndrome);
        bool seq = c->p.syndrome == WIRE_SYN_NAK_SEQ;
        i->acks += kind == WIRE_AETH_ACK;
        i->rnrs += kind == WIRE_AETH_RNR;
        i->naks_seq += kind == WIRE_AETH_NAK && seq;
        i->naks_fatal += kind == WIRE_AETH_NAK && !seq;
    }
}

void lint_response(struct lint_ctx *c)
{
    c->view->flags |= LINT_V_RESPONSE;
    count_answer(c);
    if (c->f->peer)
        lint_mtu_watch(c);
    c->req = c->f->peer;
    if (c->req) {
        locate(c);
        lint_flow_misfit(c);
        lint_msn_range(c);
    }
    unsigned broken = lint_run(c, LINT_S_RESPONSE);
    if (!c->req)
        return;
    if (broken && ends_elsewhere(c))
        c->read->disputed = true; /* one finding is enough */
    if (broken && (c->op->flags & WIRE_F_ACK) && c->p.syndrome > WIRE_SYN_NAK_SEQ)
        return; /* a response that shouldn't have been sent has no consequences */
    if (c->where == LINT_W_BEFORE && c->headers && (c->op->flags & WIRE_F_ACK) &&
        wire_aeth_kind(c->p.syndrome) != WIRE_AETH_ACK) {
        c->req->asked_back.on = true;
        c->req->asked_back.psn = c->p.psn;
    }
    bool before = c->where == LINT_W_BEFORE && !c->req->start_known;
    if (!broken && (c->where == LINT_W_KNOWN || before))
        watch_back(c);
    if (!broken && c->where == LINT_W_KNOWN)
        lint_msn_place(c);
    if (c->where == LINT_W_AFTER) {
        note_unseen(c);
    } else if (c->where == LINT_W_KNOWN && (c->headers || !(c->op->flags & WIRE_F_ACK))) {
        judge_unseen(c);
        watch_order(c);
        watch_reread(c);
        remember(c);
    }
}

void lint_flow_end(struct lint *l, struct lint_flow *f)
{
    if (f->unseen.on && f->peer) {
        struct lint_ctx c = {.l = l, .f = f->peer, .req = f, .wait = &f->unseen};
        c.outcome = LINT_OPEN;
        lint_run(&c, LINT_S_UNSEEN);
        f->unseen.on = false;
    }
    if (f->ahead.on && f->peer && f->base.on && f->ahead_hi == f->hi) {
        struct lint_ctx c = {.l = l, .f = f->peer, .req = f, .wait = &f->ahead};
        c.outcome = LINT_OPEN;
        c.msn_hi = lint_add(f->base.hi, f->msgs);
        if (wire_psn_diff(f->ahead.msn, c.msn_hi) > 0)
            lint_run(&c, LINT_S_AHEAD);
        f->ahead.on = false;
    }
    if (f->no_icrc.first.on) {
        struct lint_ctx c = {.l = l, .f = f, .wait = &f->no_icrc.first};
        lint_run(&c, LINT_S_NO_ICRC);
        f->no_icrc.first.on = false;
    }
    if (f->pkey.first[1].on) { /* no third packet came to confirm it */
        struct lint_ctx c = {.l = l, .f = f, .wait = &f->pkey.first[1], .cut = f->info.cut != 0};
        lint_run(&c, LINT_S_PKEY);
        f->pkey.first[1].on = false;
    }
    if (f->port.stray.on) {
        struct lint_ctx c = {.l = l, .f = f, .wait = &f->port.stray, .outcome = LINT_OPEN};
        lint_run(&c, LINT_S_STRAY);
        f->port.stray.on = false;
    }
    if (f->sport.changed.on) {
        struct lint_ctx c = {.l = l, .f = f, .wait = &f->sport.changed};
        lint_run(&c, LINT_S_PORT);
        f->sport.changed.on = false;
    }
    if (f->early.wait.on && f->peer) {
        struct lint_ctx c = {.l = l, .f = f, .wait = &f->early.wait};
        lint_run(&c, LINT_S_EARLY);
        f->early.wait.on = false;
    }
    if (f->peer)
        lint_continued(l, f, true);
}
