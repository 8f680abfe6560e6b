/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The interpreter: runs statements in their order, and expects packets in their time.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drill_priv.h"

#define PATIENCE_NS      1000000ull          /* wait of a `>` or `cqe` without a time */
#define WIRE_PATIENCE_NS (200 * PATIENCE_NS) /* other machines take their time */
#define REPEAT_MAX       1000000u
#define STEPS_MAX        4000000u
#define RECVS_MAX        4096u /* most receives for a script on the wire */

const char *const drill_verdict_names[] = {"pass", "fail", "wrong", "skip"};

static bool run_list(struct drill_run *run, const struct drill_stmt *st);

/* ---- the verdict ---- */

bool drill_end(struct drill_run *run, enum drill_verdict v, const struct drill_stmt *st,
               const char *format, ...)
{
    struct drill_report *r = run->r;
    if (run->over)
        return false;
    run->over = true;
    r->verdict = v;
    if (!st && v == DRILL_WRONG) /* the bench doesn't know the current statement */
        st = run->current;
    if (st)
        r->line = st->line;
    if (st && !*r->expected)
        snprintf(r->expected, sizeof(r->expected), "%s", st->text);
    va_list ap;
    va_start(ap, format);
    vsnprintf(r->what, sizeof(r->what), format, ap);
    va_end(ap);
    r->ns = run->now - run->begin;
    return false;
}

bool drill_step(struct drill_run *run, const struct drill_stmt *st)
{
    uint64_t max = run->o->max_steps ? run->o->max_steps : STEPS_MAX;
    return ++run->steps <= max ||
           drill_end(run, DRILL_WRONG, st, "more than %" PRIu64 " statements and time-outs", max);
}

bool drill_returned(struct drill_run *run, const struct drill_stmt *st, int rc, bool *go)
{
    *go = rc == 0;
    if (run->over)
        return false;
    if (rc == -st->error) {
        run->r->checks += rc != 0;
        return true;
    }
    const char *got = rc ? drill_word_name(drill_errnos, (uint64_t)-rc) : "success";
    if (*got == '?')
        got = strerror(-rc);
    return drill_end(run, DRILL_FAIL, st, "the call returned %s, expected %s", got,
                     st->error ? drill_word_name(drill_errnos, (uint64_t)st->error) : "success");
}

/* ---- statements ---- */

static bool repeat(struct drill_run *run, const struct drill_stmt *st)
{
    uint64_t n, before = 0;
    struct drill_object *i = drill_find(run, "i");
    if (!drill_eval(run, st, &st->expr, ROLE_VALUE, &n))
        return false;
    if (n > REPEAT_MAX)
        return drill_end(run, DRILL_WRONG, st, "at most %u times", REPEAT_MAX);
    if (i)
        before = i->value;
    for (uint64_t k = 0; k < n; k++) {
        if (!drill_step(run, st) || !drill_set(run, st, "i", k) || !run_list(run, st->body))
            return false;
    }
    return !i || drill_set(run, st, "i", before);
}

static bool set(struct drill_run *run, const struct drill_stmt *st)
{
    uint64_t v;
    return drill_eval(run, st, &st->expr, ROLE_VALUE, &v) && drill_set(run, st, st->name, v);
}

static bool is_expectation(enum drill_kind k)
{
    return k == DO_CQE || k == DO_EVENT || k == DO_CM_EVENT || k == DO_COUNTER || k == DO_INFO ||
           k == DO_IS || k == DO_MEM || k == DO_QUERY || k == DO_STATE;
}

static bool device(struct drill_run *run, const struct drill_stmt *st)
{
    return st == run->s->first ||
           drill_end(run, DRILL_WRONG, st, "'device' must be the first statement");
}

static bool ignore(struct drill_run *run, const struct drill_stmt *st)
{
    const unsigned max = sizeof(run->ignores) / sizeof(run->ignores[0]);
    if (run->nignores == max)
        return drill_end(run, DRILL_WRONG, st, "at most %u of these", max);
    run->ignores[run->nignores++] = st;
    return true;
}

static bool ipv4(struct drill_run *run, const struct drill_stmt *st)
{
    return wire_addr_is_v4(&run->local) ||
           drill_end(run, DRILL_SKIP, st, "it speaks of IPv4 addresses");
}

static bool patience(struct drill_run *run, const struct drill_stmt *st)
{
    run->patience = st->number;
    return true;
}

static bool pass_time(struct drill_run *run, const struct drill_stmt *st)
{
    uint64_t until;
    if (!drill_later(run, st, run->now, st->number, &until) || !drill_pass(run, until))
        return false;
    run->last = run->now;
    return true;
}

/* `wire`: looked at before the run. */
static bool nothing_to_do(struct drill_run *run, const struct drill_stmt *st)
{
    (void)run;
    (void)st;
    return true;
}

static bool object(struct drill_run *run, const struct drill_stmt *st)
{
    if (!drill_do_object(run, st))
        return false;
    if (!run->wire)
        drill_bench_flush(run);
    return !run->over;
}

/* Unlisted verbs make or change an object. */
static bool (*const runs[])(struct drill_run *run, const struct drill_stmt *st) = {
    [DO_ACCEPT] = drill_do_cm,
    [DO_ANY] = drill_any_order,
    [DO_CM_EVENT] = drill_await,
    [DO_CONNECT] = drill_do_cm,
    [DO_COPIES] = drill_do_work,
    [DO_COUNTER] = drill_do_check,
    [DO_CQE] = drill_await,
    [DO_DEVICE] = device,
    [DO_DISCONNECT] = drill_do_cm,
    [DO_EVENT] = drill_await,
    [DO_EXPECT] = drill_expect,
    [DO_FILL] = drill_do_work,
    [DO_GATHER] = drill_do_work,
    [DO_IGNORE] = ignore,
    [DO_INFO] = drill_do_check,
    [DO_INJECT] = drill_inject,
    [DO_IPV4] = ipv4,
    [DO_IS] = drill_do_check,
    [DO_LISTEN] = drill_do_cm,
    [DO_MEM] = drill_do_work,
    [DO_MRA] = drill_do_cm,
    [DO_NOTHING] = drill_nothing,
    [DO_PATIENCE] = patience,
    [DO_PORT] = drill_do_work,
    [DO_POST] = drill_do_work,
    [DO_QUERY] = drill_do_check,
    [DO_RECV] = drill_do_work,
    [DO_REJECT] = drill_do_cm,
    [DO_RELEASE] = drill_do_cm,
    [DO_REPEAT] = repeat,
    [DO_RTU] = drill_do_cm,
    [DO_SET] = set,
    [DO_SIDR] = drill_do_cm,
    [DO_SIDR_REPLY] = drill_do_cm,
    [DO_STATE] = drill_do_check,
    [DO_UNLISTEN] = drill_do_cm,
    [DO_WAIT] = pass_time,
    [DO_WIRE] = nothing_to_do,
};

static bool run_statement(struct drill_run *run, const struct drill_stmt *st)
{
    enum drill_kind k = st->verb->kind;
    if (run->wire && !(st->verb->flags & VERB_WIRE)) {
        if (!is_expectation(k))
            return drill_end(run, DRILL_SKIP, st, "'%s' can't be done on the wire", st->verb->word);
        run->r->unseen++;
        return true;
    }
    /* These handle their time themselves. */
    bool timed = st->verb->flags & VERB_AWAIT || k == DO_INJECT;
    if (!timed && !drill_wait_for(run, st))
        return false;
    return runs[k] ? runs[k](run, st) : object(run, st);
}

static bool run_list(struct drill_run *run, const struct drill_stmt *st)
{
    for (; st; st = st->next) {
        run->current = st;
        if (!drill_step(run, st))
            return false;
        /* The cause of a stop has made the report. If not, the rest must not count as passed. */
        if (!run_statement(run, st))
            return drill_end(run, DRILL_WRONG, st, "the statement failed without a reason");
        if (run->over)
            return false;
    }
    return true;
}

/* ---- the end ---- */

/* Each packet, completion or event that the script doesn't name is an error. Requests to connect
 * may stay unanswered. */
static void nothing_left(struct drill_run *run)
{
    bool skip = true;
    while (run->frames && skip && !run->over)
        if (!drill_ignored(run, &skip))
            return;
    if (run->frames) {
        drill_show(run);
        drill_end(run, DRILL_FAIL, NULL, "a packet came that the script doesn't expect");
        return;
    }
    for (const struct drill_completion *c = run->completions; c; c = c->next)
        if (!c->taken) {
            drill_end(run, DRILL_FAIL, NULL,
                      "a completion came that the script doesn't expect: id %" PRIu64 ", %s",
                      c->wc.wr_id, drill_word_name(drill_statuses, c->wc.status));
            return;
        }
    for (const struct drill_happening *h = run->events; h; h = h->next)
        if (!h->taken) {
            drill_end(run, DRILL_FAIL, NULL, "an event came that the script doesn't expect: %s",
                      drill_word_name(drill_events, h->event));
            return;
        }
    for (const struct drill_cm_happening *h = run->cm_events; h; h = h->next)
        if (!h->taken && h->ev.type != CM_EV_REQ && h->ev.type != CM_EV_SIDR_REQ) {
            drill_end(run, DRILL_FAIL, NULL,
                      "the connection manager raised an event that the script doesn't expect: %s",
                      drill_word_name(drill_cm_events, h->ev.type));
            return;
        }
}

#define FREE_LIST(list)                                                                            \
    while (list) {                                                                                 \
        void *next = (list)->next;                                                                 \
        free(list);                                                                                \
        (list) = next;                                                                             \
    }

static void finish(struct drill_run *run)
{
    if (!run->over)
        nothing_left(run);
    run->r->ns = run->now - run->begin;
    while (run->frames)
        drill_drop_frame(run, NULL);
    if (!run->wire)
        drill_bench_close(run);
    FREE_LIST(run->completions);
    FREE_LIST(run->events);
    FREE_LIST(run->cm_events);
    for (struct drill_object *o = run->objects, *next; o; o = next) {
        next = o->next;
        free(o->octets);
        free(o->same);
        free(o);
    }
}

static void start(struct drill_run *run, const struct drill_script *s,
                  const struct drill_options *o, struct drill_report *r)
{
    memset(run, 0, sizeof(*run));
    memset(r, 0, sizeof(*r));
    run->s = s;
    run->o = o;
    run->r = r;
    run->patience = PATIENCE_NS;
    run->frames_tail = &run->frames;
    run->completions_tail = &run->completions;
    run->events_tail = &run->events;
    run->cm_events_tail = &run->cm_events;
    run->next_va = 0x7F0000001000;
    run->peer_id = 0x1001;
    run->next_tid = 0x20000001;
    run->tid = run->next_tid;
    run->listen_port = DRILL_CM_PORT;
    wire_addr_parse(o->ipv6 ? "fd00::1" : "10.0.0.1", &run->local);
    wire_addr_parse(o->ipv6 ? "fd00::2" : "10.0.0.2", &run->peer);
}

void drill_run(const struct drill_script *s, const struct drill_options *o,
               struct drill_report *out)
{
    struct drill_run *run = malloc(sizeof(*run));
    if (!run) {
        *out = (struct drill_report){.verdict = DRILL_WRONG, .what = "out of memory"};
        return;
    }
    start(run, s, o, out);
    const struct drill_stmt *first = s->first;
    if (s->wire && strcmp(s->wire, DRILL_TARGET) != 0)
        drill_end(run, DRILL_SKIP, NULL, "it needs '%s' at the other end of a wire", s->wire);
    else if (drill_bench_open(run, first && first->verb->kind == DO_DEVICE ? first : NULL))
        run_list(run, first);
    finish(run);
    free(run);
}

/* ---- on the wire ---- */

/* The needs of the statements together, `times` over. */
static void count_wishes(const struct drill_stmt *st, uint64_t times, struct drill_wish *w)
{
    for (; st; st = st->next) {
        const struct drill_arg *mtu = drill_arg(st, QPF_PATH_MTU);
        bool plain = st->expr.n == 1 && !st->expr.t[0].name;
        uint64_t inner = st->verb->kind == DO_REPEAT && plain ? st->expr.t[0].num : 1;
        if (st->verb->kind == DO_QP && mtu)
            w->mtu = wire_mtu_octets((unsigned)mtu->v.word);
        if (st->verb->kind == DO_RECV)
            w->recvs += (uint32_t)times;
        inner = inner < RECVS_MAX ? inner : RECVS_MAX;
        count_wishes(st->body, inner * times < RECVS_MAX ? inner * times : RECVS_MAX, w);
    }
}

void drill_run_on(const struct drill_script *s, const struct drill_options *o,
                  const struct drill_wire *wire, struct drill_report *out)
{
    struct drill_run *run = malloc(sizeof(*run));
    char err[256] = "";
    if (!run) {
        *out = (struct drill_report){.verdict = DRILL_WRONG, .what = "out of memory"};
        return;
    }
    start(run, s, o, out);
    struct drill_wish wish = {.mtu = 1024, .psn = o->psn};
    count_wishes(s->first, 1, &wish);
    run->wire = wire;
    run->patience = WIRE_PATIENCE_NS;
    if (!s->wire || strcmp(s->wire, wire->server) != 0) {
        drill_end(run, DRILL_SKIP, NULL, "it has no mark 'wire' for '%s'", wire->server);
    } else if (wire->connect(wire->arg, &wish, &run->device, err, sizeof(err)) < 0) {
        drill_end(run, DRILL_WRONG, NULL, "no connection: %s", err);
    } else {
        run->local = run->device.device;
        run->peer = run->device.us;
        run->begin = run->now = run->last = wire->now(wire->arg);
        run_list(run, s->first);
        wire->disconnect(wire->arg);
    }
    finish(run);
    free(run);
}
