/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Packets in, packets out, and time.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drill_priv.h"

#define ANY_MAX 256u

static const char *time_text(uint64_t ns, char *buf, size_t size)
{
    if (ns < 10000)
        snprintf(buf, size, "%" PRIu64 " ns", ns);
    else if (ns < 10000000)
        snprintf(buf, size, "%.1f us", (double)ns / 1e3);
    else
        snprintf(buf, size, "%.2f ms", (double)ns / 1e6);
    return buf;
}

/* ---- time ---- */

/* Go on until something may have happened (true), or `until` has come (false). */
static bool more(struct drill_run *run, uint64_t until)
{
    if (!run->wire)
        return drill_bench_step(run, until);
    uint8_t frame[DRILL_FRAME_MAX];
    uint64_t ns = 0;
    uint32_t len = run->wire->recv(run->wire->arg, frame, sizeof(frame), until, &ns);
    run->now = run->wire->now(run->wire->arg);
    return len && drill_keep_frame(run, frame, len, ns);
}

bool drill_later(struct drill_run *run, const struct drill_stmt *st, uint64_t from, uint64_t ns,
                 uint64_t *out)
{
    const uint64_t end = UINT64_MAX - DRILL_TICK_NS;
    *out = from + ns;
    return (from <= end && ns <= end - from) ||
           drill_end(run, DRILL_WRONG, st, "time ends before that: it has 64 bits of nanoseconds");
}

/* Let time pass, whatever happens. */
bool drill_pass(struct drill_run *run, uint64_t until)
{
    while (!run->over && (run->now < until || !run->wire)) {
        if (!more(run, until) && run->now >= until)
            break;
    }
    return !run->over;
}

/* Wait until the time of a statement with a time of its own. */
bool drill_wait_for(struct drill_run *run, const struct drill_stmt *st)
{
    uint64_t at;
    if (st->time.kind == TIME_NONE)
        return true;
    if (!drill_later(run, st, st->time.kind == TIME_AT ? run->begin : run->last, st->time.lo, &at))
        return false;
    if (at < run->now && !run->wire)
        return drill_end(run, DRILL_WRONG, st, "that time has passed");
    return drill_pass(run, at);
}

/* The end of a statement's wait. */
static bool limit_of(struct drill_run *run, const struct drill_stmt *st, uint64_t *until)
{
    bool given = st->time.kind != TIME_NONE;
    uint64_t from = !given ? run->now : st->time.kind == TIME_AT ? run->begin : run->last;
    if (!drill_later(run, st, from, given ? st->time.hi : run->patience, until))
        return false;
    *until += given ? DRILL_TICK_NS : 0;
    *until = *until > run->now ? *until : run->now;
    return true;
}

/* Does `ns` fit the statement's time? */
bool drill_timely(struct drill_run *run, const struct drill_stmt *st, uint64_t ns)
{
    uint64_t from = st->time.kind == TIME_AT ? run->begin : run->last;
    char a[32], b[32], c[32];
    if (st->time.kind == TIME_NONE)
        return true;
    if (ns < from)
        return drill_end(run, DRILL_FAIL, st, "it came too early, by %s",
                         time_text(from - ns, a, sizeof(a)));
    uint64_t after = ns - from;
    if (after >= st->time.lo && after <= st->time.hi + DRILL_TICK_NS)
        return true;
    return drill_end(run, DRILL_FAIL, st, "it came after %s, expected %s%s%s",
                     time_text(after, a, sizeof(a)), time_text(st->time.lo, b, sizeof(b)),
                     st->time.range ? " to " : "",
                     st->time.range ? time_text(st->time.hi, c, sizeof(c)) : "");
}

/* ---- frames ---- */

static void tell(struct drill_run *run, uint64_t ns, uint32_t order, enum drill_direction dir,
                 const uint8_t *frame, uint32_t len, const char *comment)
{
    run->r->packets++;
    if (run->o->frame)
        run->o->frame(run->o->arg, ns - run->begin, order, dir, frame, len, comment);
}

void drill_drop_frame(struct drill_run *run, const char *comment)
{
    struct drill_frame *f = run->frames;
    tell(run, f->ns, f->order, DRILL_FROM_DEVICE, f->octets, f->len, comment);
    run->frames = f->next;
    if (!run->frames)
        run->frames_tail = &run->frames;
    free(f);
}

/* Drop the oldest frame if the script ignores such frames; false when the run is over. */
bool drill_ignored(struct drill_run *run, bool *out)
{
    char why[DRILL_LINE_MAX];
    *out = false;
    for (unsigned i = 0; i < run->nignores && !*out; i++) {
        if (!drill_match(run, run->ignores[i], run->frames->octets, run->frames->len, out, why,
                         sizeof(why)))
            return false;
        if (*out)
            drill_drop_frame(run, run->ignores[i]->text);
    }
    return true;
}

void drill_show(struct drill_run *run)
{
    wire_dump(run->r->got, sizeof(run->r->got), run->frames->octets, run->frames->len,
              WIRE_D_KEYS | WIRE_D_SELECTIVE);
}

bool drill_inject(struct drill_run *run, const struct drill_stmt *st)
{
    uint8_t frame[DRILL_FRAME_MAX];
    uint32_t len;
    if (!drill_wait_for(run, st) || !drill_build(run, st, frame, sizeof(frame), &len))
        return false;
    tell(run, run->now, run->frame_order++, DRILL_TO_DEVICE, frame, len, st->text);
    run->last = run->now;
    if (run->wire)
        run->wire->send(run->wire->arg, frame, len);
    else
        drill_bench_rx(run, frame, len);
    return !run->over;
}

/* The oldest frame fits `st`: take it. */
static bool take_frame(struct drill_run *run, const struct drill_stmt *st)
{
    uint64_t ns = run->frames->ns;
    drill_show(run);
    if (!drill_timely(run, st, ns))
        return false;
    *run->r->got = 0;
    run->last = ns;
    run->r->checks++;
    drill_drop_frame(run, st->text);
    return true;
}

bool drill_expect(struct drill_run *run, const struct drill_stmt *st)
{
    uint64_t until;
    char text[32];
    if (!limit_of(run, st, &until))
        return false;
    for (;;) {
        bool fits, skip;
        if (!run->frames) {
            if (more(run, until))
                continue;
            return drill_end(run, DRILL_FAIL, st, "no packet came within %s",
                             time_text(until - run->last, text, sizeof(text)));
        }
        if (!drill_match(run, st, run->frames->octets, run->frames->len, &fits, run->r->fields,
                         sizeof(run->r->fields)))
            return false;
        if (fits)
            return take_frame(run, st);
        if (!drill_ignored(run, &skip))
            return false;
        if (skip)
            continue;
        drill_show(run);
        return drill_end(run, DRILL_FAIL, st, "another packet came");
    }
}

bool drill_await(struct drill_run *run, const struct drill_stmt *st)
{
    uint64_t until;
    bool done = false;
    char text[32];
    if (!limit_of(run, st, &until))
        return false;
    for (;;) {
        if (!drill_happened(run, st, &done) || done)
            return !run->over;
        if (!more(run, until))
            return drill_end(run, DRILL_FAIL, st, "none of these happened within %s",
                             time_text(until - run->last, text, sizeof(text)));
    }
}

/* ---- any { } ---- */

/* Expectations to be met in any order. */
struct any {
    const struct drill_stmt *st[ANY_MAX];
    bool met[ANY_MAX];
    unsigned n, left; /* all, unmet */
    uint64_t until;   /* the time by which all must be met */
};

static bool list_block(struct drill_run *run, const struct drill_stmt *block, struct any *any)
{
    uint64_t limit;
    *any = (struct any){.until = run->now};
    for (const struct drill_stmt *st = block->body; st; st = st->next) {
        if (any->n == ANY_MAX)
            return drill_end(run, DRILL_WRONG, st, "at most %u within any { }", ANY_MAX);
        if (run->wire && st->verb->kind != DO_EXPECT) {
            run->r->unseen++;
            continue;
        }
        if (!limit_of(run, st, &limit))
            return false;
        any->st[any->n++] = st;
        any->until = limit > any->until ? limit : any->until;
    }
    any->left = any->n;
    return true;
}

/* Meet the block's expectations of events that have come. */
static bool any_event(struct drill_run *run, struct any *any)
{
    for (unsigned i = 0; i < any->n; i++) {
        bool done = false;
        if (any->met[i] || any->st[i]->verb->kind == DO_EXPECT)
            continue;
        if (!drill_happened(run, any->st[i], &done))
            return false;
        any->met[i] = done;
        any->left -= done;
    }
    return true;
}

/* One of the block's `>` takes the oldest frame. */
static bool any_frame(struct drill_run *run, struct any *any)
{
    char why[DRILL_LINE_MAX];
    bool fits = false;
    for (unsigned i = 0; i < any->n; i++) {
        if (any->met[i] || any->st[i]->verb->kind != DO_EXPECT)
            continue;
        if (!drill_match(run, any->st[i], run->frames->octets, run->frames->len, &fits, why,
                         sizeof(why)))
            return false;
        if (!fits)
            continue;
        any->met[i] = true;
        any->left--;
        return take_frame(run, any->st[i]);
    }
    if (!drill_ignored(run, &fits))
        return false;
    if (fits)
        return true;
    drill_show(run);
    return drill_end(run, DRILL_FAIL, any->st[0], "a packet came that the block doesn't have");
}

/* Report an unmet expectation, when time is over. */
static bool any_missing(struct drill_run *run, const struct any *any)
{
    char text[32];
    unsigned i = 0;
    while (i < any->n && any->met[i])
        i++;
    return drill_end(run, DRILL_FAIL, any->st[i], "it didn't happen within %s",
                     time_text(any->until - run->last, text, sizeof(text)));
}

bool drill_any_order(struct drill_run *run, const struct drill_stmt *block)
{
    struct any any;
    if (!list_block(run, block, &any))
        return false;
    while (any.left) {
        unsigned before = any.left;
        if (!any_event(run, &any))
            return false;
        if (run->frames) {
            if (!any_frame(run, &any))
                return false;
        } else if (any.left == before && !more(run, any.until)) {
            return any_missing(run, &any);
        }
    }
    return !run->over;
}

bool drill_nothing(struct drill_run *run, const struct drill_stmt *st)
{
    uint64_t until;
    if (!drill_later(run, st, run->now, st->number, &until))
        return false;
    for (;;) {
        bool skip = true;
        while (run->frames && skip && !run->over)
            if (!drill_ignored(run, &skip))
                return false;
        if (run->frames) {
            drill_show(run);
            return drill_end(run, DRILL_FAIL, st, "a packet came");
        }
        if (!more(run, until) && run->now >= until)
            break;
    }
    run->last = run->now;
    run->r->checks++;
    return !run->over;
}
