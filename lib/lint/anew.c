/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A reused queue pair number: does a request belong to the known queue pair, or to a new one that
 * has taken its number and perhaps its first PSN? Without a CM message, requests that continue the
 * old sequence belong to the old one.
 */
#include "lint_priv.h"

#define EARLY_MAX 4096 /* PSNs before the first captured one */

/* A READ has a PSN of an earlier READ. Is it a new one, not a request for the rest of that? */
static bool another_read(const struct lint_ctx *c, const struct lint_read *r)
{
    return c->headers && !r->blind && r->rkey != c->p.rkey && c->p.va - r->va > (uint64_t)r->len;
}

/* Has the requester sent nothing for a while? */
static bool was_quiet(const struct lint_ctx *c)
{
    const struct lint_rec *last = lint_rec_at(c->f, c->f->last);
    return last && c->in->ns >= last->last_ns + LINT_ANEW_NS;
}

/* Is a READ at this PSN or before it open, or are responses to it missing? Then it may be requested
 * again, and so may the requests after it. */
static bool read_unfinished(const struct lint_flow *f, uint32_t psn)
{
    uint32_t n = f->reads < LINT_READS ? f->reads : LINT_READS;
    for (uint32_t i = 1; i <= n; i++) {
        const struct lint_read *r = &f->read[(f->reads - i) % LINT_READS];
        if (r->valid && !r->atomic && (!r->done || r->missed) && wire_psn_diff(r->psn, psn) <= 0)
            return true;
    }
    return false;
}

/* A PSN of an unreliable connection is never sent twice; the network may double it. */
static bool uc_begins_anew(const struct lint_ctx *c, const struct lint_rec *r)
{
    if (!r || !(r->flags & LINT_R_SEEN) || !(c->op->flags & WIRE_F_START) ||
        c->in->ns - r->ns <= LINT_ANEW_NS)
        return false;
    return lint_id_tells(c->f, &c->p) ? r->ip_id != c->p.ip_id : lint_differs(c, r) != 0;
}

/* Does a NAK of this PSN, later than the packet's record, send the requester back to the packet, as
 * the start of its message? */
static bool sends_back(const struct lint_flow *f, const struct lint_mark *nak,
                       const struct lint_rec *r)
{
    if (nak->number <= r->last_number || wire_psn_diff(nak->psn, r->psn) < 0)
        return false;
    for (uint32_t psn = r->psn, n = 0; psn != nak->psn && n < f->recs;
         psn = lint_add(psn, 1), n++) {
        const struct lint_rec *in = lint_rec_at(f, psn);
        if (in && lint_ends_message(&wire_opcodes[in->opcode]))
            return false;
    }
    return true;
}

bool lint_begins_anew(const struct lint_ctx *c)
{
    const struct lint_flow *f = c->f;
    int32_t d = wire_psn_diff(c->p.psn, f->hi);
    bool jump = d > LINT_JUMP_MAX || (d < 0 && (uint32_t)-d > f->span + EARLY_MAX);
    const struct lint_rec *r = lint_rec_at(f, c->p.psn);
    if (jump || f->info.service == WIRE_UC)
        return jump || (d < 0 && uc_begins_anew(c, r));
    if (f->info.by_cm || !lint_begins_message(c->op))
        return false;
    bool acked =
        f->ack_on && wire_psn_diff(c->p.psn, f->acked) <= 0 && !read_unfinished(f, c->p.psn);
    bool all = f->ack_on && lint_add(f->acked, 1) == f->hi, first = c->p.psn == f->first;
    bool seen = d < 0 && r && (r->flags & LINT_R_SEEN);
    unsigned other = seen ? lint_differs(c, r) : 0;
    if (other && first && all)
        return true;
    if (!was_quiet(c))
        return false;
    if (f->fatal.on && (d >= 0 || acked || first || other))
        return true; /* a queue pair that was refused for good sends nothing more */
    bool back = seen && (sends_back(f, &f->nak, r) || sends_back(f, &f->rnr, r));
    if (seen)
        return other > 1 || (acked && other) ||
               (acked && first && !back && wire_psn_diff(f->hi, f->first) > 1);
    const struct lint_read *within = d < 0 ? lint_read_at(f, c->p.psn) : NULL;
    if (within)
        return !(c->op->flags & WIRE_F_READ) || another_read(c, within);
    bool before = d < 0 && (uint32_t)-d > f->span;
    const struct lint_rec *start = lint_rec_at(f, f->first);
    if (before && !f->ack_on && start && !lint_begins_message(&wire_opcodes[start->opcode]))
        return false; /* the rest of the message has overtaken its start */
    return before ? !f->asked_back.on || f->asked_back.psn != c->p.psn : d < 0 && all;
}
