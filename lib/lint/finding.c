/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Findings: run the checks of a stage, doubt a result that a fault of the capture or another
 * protocol explains, and report it; or keep it until the flow's end, when more is known.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lint_priv.h"

#define CUT_HABIT      3u  /* broken rules of packets without iCRC that may be damage */
#define HELD_MAX       16u /* findings of a flow that wait for its end */
#define SKEWED         2u  /* answers recorded before a request that they answer or count \ */
#define OTHER_ORDER    "the network changes the order of packets here"
#define OTHER_PLACES   "answers are recorded before their requests: captured in two places"
#define OTHER_PROTOCOL "the ends use opcodes of their own: another protocol"
#define OTHER_PAIR                                                                                 \
    "another connection has the same PSNs: perhaps its answers are taken for this one's"

const char *lint_verdict_name(enum lint_verdict v)
{
    static const char *const names[LINT_VERDICTS] = {"violation", "undecidable", "artefact"};
    return (unsigned)v < LINT_VERDICTS ? names[v] : "unknown";
}

bool lint_expected(struct lint_ctx *c, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    vsnprintf(c->expected, sizeof(c->expected), format, ap);
    va_end(ap);
    return true;
}

bool lint_seen(struct lint_ctx *c, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    vsnprintf(c->seen, sizeof(c->seen), format, ap);
    va_end(ap);
    return true;
}

bool lint_doubt(struct lint_ctx *c, enum lint_verdict v, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    vsnprintf(c->why, sizeof(c->why), format, ap);
    va_end(ap);
    c->judged = v;
    return true;
}

static void dump(const struct lint_frame *in, char *buf, size_t size)
{
    wire_dump_cut(buf, size, in->data, in->len, in->wire_len, 0);
}

/* Do the ends use private opcodes, perhaps for a private protocol? If the capture has the
 * connection's start, both must have done so. */
static bool other_protocol(const struct lint_flow *f)
{
    const struct lint_flow *peer = f->peer;
    if (!peer)
        return f->private;
    return f->info.by_cm ? f->private && peer->private : f->private || peer->private;
}

/* Is the rule judged by one packet or one direction alone? */
static bool alone(const struct lint_rule *rule)
{
    const unsigned when = LINT_ALONE | LINT_S_MALFORMED | LINT_S_FRAME | LINT_S_ICRC | LINT_S_CNP;
    return rule->when & when;
}

/* The two directions may belong to different connections: does this rule need both? */
static bool other_pair(const struct lint_flow *f, const struct lint_rule *rule)
{
    return f->info.unsure && !alone(rule);
}

bool lint_disorder(const struct lint_flow *f)
{
    return f->info.reordered || f->back || (f->peer && (f->peer->info.reordered || f->peer->back));
}

bool lint_skewed(const struct lint_flow *q)
{
    return q->skew.n >= SKEWED || q->skew.more >= SKEWED;
}

/* The reason to doubt a broken rule, by the knowledge so far; NULL = no doubt. `order`: the finding
 * relies on the order of answers; `skew`: on the requests sent before an answer. */
static const char *reason_to_doubt(const struct lint_flow *f, const struct lint_rule *rule,
                                   bool order, bool skew)
{
    if (other_protocol(f))
        return OTHER_PROTOCOL;
    if (other_pair(f, rule))
        return OTHER_PAIR;
    if (skew && f->peer && lint_skewed(f->peer))
        return OTHER_PLACES;
    return order && lint_disorder(f) ? OTHER_ORDER : NULL;
}

static void deliver(struct lint *l, const struct lint_finding *f)
{
    l->totals.findings[f->verdict]++;
    if (l->report)
        l->report(l->report_ctx, f);
}

/* A capture that starts in the middle may show private opcodes only later: keep a connection's
 * findings until its end. True if there was room. */
static bool hold(struct lint_flow *f, const struct lint_finding *finding, bool order, bool skew)
{
    if (!f || (f->info.by_cm && !skew) || f->info.service != WIRE_RC || f->held.n == HELD_MAX)
        return false;
    if (!f->held.finding)
        f->held.finding = calloc(HELD_MAX, sizeof(*f->held.finding));
    if (!f->held.finding)
        return false;
    f->held.order |= (uint32_t)order << f->held.n;
    f->held.skew |= (uint32_t)skew << f->held.n;
    f->held.finding[f->held.n++] = *finding;
    return true;
}

static void report(struct lint_ctx *c, const struct lint_rule *rule)
{
    struct lint_finding f = {
        .rule = rule, .verdict = c->judged, .flow = c->f ? c->f->info.id : LINT_NO_FLOW};
    if (c->wait) {
        f.number = c->wait->number;
        f.ns = c->wait->ns;
        memcpy(f.dump, c->wait->dump, sizeof(f.dump));
    } else {
        f.number = c->in->number;
        f.ns = c->in->ns;
        dump(c->in, f.dump, sizeof(f.dump));
    }
    memcpy(f.expected, c->expected, sizeof(f.expected));
    memcpy(f.seen, c->seen, sizeof(f.seen));
    memcpy(f.why, c->why, sizeof(f.why));
    if (c->judged != LINT_VIOLATION || !hold(c->f, &f, c->order_matters, c->skew_matters))
        deliver(c->l, &f);
}

void lint_held_forget(struct lint_flow *f)
{
    uint32_t n = 0, order = 0, skew = 0;
    for (uint32_t i = 0; i < f->held.n; i++) {
        if (!alone(f->held.finding[i].rule))
            continue;
        order |= (f->held.order >> i & 1) << n;
        skew |= (f->held.skew >> i & 1) << n;
        f->held.finding[n++] = f->held.finding[i];
    }
    f->held.n = n;
    f->held.order = order;
    f->held.skew = skew;
}

void lint_held(struct lint *l, struct lint_flow *f)
{
    for (uint32_t i = 0; i < f->held.n; i++) {
        struct lint_finding *held = &f->held.finding[i];
        const char *why =
            reason_to_doubt(f, held->rule, f->held.order >> i & 1, f->held.skew >> i & 1);
        if (why) {
            held->verdict = LINT_UNDECIDABLE;
            snprintf(held->why, sizeof(held->why), "%s", why);
        }
        deliver(l, held);
    }
    free(f->held.finding);
    f->held.finding = NULL;
    f->held.n = f->held.order = f->held.skew = 0;
}

/* Is there a reason to doubt this violation that has nothing to do with the rule? */
static void consider_doubts(struct lint_ctx *c, const struct lint_rule *rule)
{
    struct lint_flow *f = c->f;
    if (!f || c->judged != LINT_VIOLATION)
        return;
    const char *why = reason_to_doubt(f, rule, false, c->skew_matters);
    if (why)
        lint_doubt(c, LINT_UNDECIDABLE, "%s", why);
    else if (f->info.unsplit || (f->peer && f->peer->info.unsplit))
        lint_doubt(c, LINT_UNDECIDABLE, "packets that the host had merged (GRO) were cut off");
    else if (c->order_matters && lint_disorder(f))
        lint_doubt(c, LINT_UNDECIDABLE, OTHER_ORDER);
    else if (c->cut && f->cut_broken++ < CUT_HABIT)
        lint_doubt(c, LINT_UNDECIDABLE, "perhaps damaged: the iCRC was cut off");
}

unsigned lint_run(struct lint_ctx *c, enum lint_stage stage)
{
    const struct lint_rule *const *r = c->l->stage[__builtin_ctz(stage)];
    unsigned broken = 0;
    for (; *r; r++) {
        c->judged = LINT_VIOLATION;
        c->order_matters = c->skew_matters = false;
        c->expected[0] = c->seen[0] = c->why[0] = '\0';
        if (!(*r)->check(c))
            continue;
        consider_doubts(c, *r);
        report(c, *r);
        broken += c->judged == LINT_VIOLATION;
    }
    return broken;
}

void lint_remember(struct lint_ctx *c, struct lint_wait *w)
{
    *w = (struct lint_wait){.on = true,
                            .opcode = c->p.opcode,
                            .psn = c->p.psn,
                            .msn = c->p.msn,
                            .nak = (c->op->headers & WIRE_H_AETH) && c->headers &&
                                   wire_aeth_kind(c->p.syndrome) != WIRE_AETH_ACK,
                            .number = c->in->number,
                            .ns = c->in->ns};
    dump(c->in, w->dump, sizeof(w->dump));
}
