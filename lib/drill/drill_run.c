/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The interpreter: statements in their order, what must come out in the time it may take.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drill_priv.h"

#define PATIENCE_NS 1000000u /* how long a `>` or `cqe` without a time waits */
#define REPEAT_MAX  1000000u
#define STEPS_MAX   4000000u
#define ANY_MAX     256u

const char *const drill_verdict_names[] = {"pass", "fail", "wrong", "skip"};

static bool run_list(struct drill_run *run, const struct drill_stmt *st);

/* ---- the verdict ------------------------------------------------------------------------------
 */

bool drill_end(struct drill_run *run, enum drill_verdict v, const struct drill_stmt *st,
               const char *format, ...)
{
    struct drill_report *r = run->r;
    if (run->over)
        return false;
    run->over = true;
    r->verdict = v;
    if (st)
        r->line = st->line;
    if (st && !*r->expected)
        snprintf(r->expected, sizeof r->expected, "%s", st->text);
    va_list ap;
    va_start(ap, format);
    vsnprintf(r->what, sizeof r->what, format, ap);
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

/* ---- time -------------------------------------------------------------------------------------
 */

/* Something may have happened (true), or nothing has until `until` (false). */
static bool more(struct drill_run *run, uint64_t until)
{
    if (!run->wire)
        return drill_bench_step(run, until);
    uint8_t frame[DRILL_FRAME_MAX];
    uint64_t ns = 0;
    uint32_t len = run->wire->recv(run->wire->arg, frame, sizeof frame, until, &ns);
    run->now = run->wire->now(run->wire->arg);
    return len && drill_keep_frame(run, frame, len, ns);
}

/* Time goes on, whatever happens. */
static bool pass(struct drill_run *run, uint64_t until)
{
    while (!run->over && (run->now < until || !run->wire)) {
        if (!more(run, until) && run->now >= until)
            break;
    }
    return !run->over;
}

/* When a statement with a time of its own acts. */
static bool wait_for(struct drill_run *run, const struct drill_stmt *st)
{
    uint64_t at = st->time.kind == TIME_AT ? run->begin + st->time.lo : run->last + st->time.lo;
    if (st->time.kind == TIME_NONE)
        return true;
    if (at < run->now && !run->wire)
        return drill_end(run, DRILL_WRONG, st, "that time is past");
    return pass(run, at);
}

/* Until when something is waited for. */
static uint64_t limit_of(const struct drill_run *run, const struct drill_stmt *st)
{
    uint64_t from = st->time.kind == TIME_AT ? run->begin : run->last;
    uint64_t until =
        st->time.kind == TIME_NONE ? run->now + run->patience : from + st->time.hi + DRILL_TICK_NS;
    return until > run->now ? until : run->now;
}

/* Is it the right time for something that was at `ns`? */
static bool timely(struct drill_run *run, const struct drill_stmt *st, uint64_t ns)
{
    uint64_t from = st->time.kind == TIME_AT ? run->begin : run->last;
    char a[32], b[32], c[32];
    if (st->time.kind == TIME_NONE)
        return true;
    uint64_t after = ns > from ? ns - from : 0;
    if (after >= st->time.lo && after <= st->time.hi + DRILL_TICK_NS)
        return true;
    return drill_end(run, DRILL_FAIL, st, "it came after %s, expected %s%s%s",
                     time_text(after, a, sizeof a), time_text(st->time.lo, b, sizeof b),
                     st->time.range ? " to " : "",
                     st->time.range ? time_text(st->time.hi, c, sizeof c) : "");
}

/* ---- frames -----------------------------------------------------------------------------------
 */

static void tell(struct drill_run *run, uint64_t ns, enum drill_direction dir, const uint8_t *frame,
                 uint32_t len, const char *comment)
{
    run->r->packets++;
    if (run->o->frame)
        run->o->frame(run->o->arg, ns - run->begin, dir, frame, len, comment);
}

static void drop_frame(struct drill_run *run, const char *comment)
{
    struct drill_frame *f = run->frames;
    tell(run, f->ns, DRILL_FROM_DEVICE, f->octets, f->len, comment);
    run->frames = f->next;
    if (!run->frames)
        run->frames_tail = &run->frames;
    free(f);
}

/* Drops what the script wants ignored; false when the run is over. */
static bool ignored(struct drill_run *run, bool *out)
{
    char why[DRILL_LINE_MAX];
    *out = false;
    for (unsigned i = 0; i < run->nignores && !*out; i++)
        if (!drill_match(run, run->ignores[i], run->frames->octets, run->frames->len, out, why,
                         sizeof why))
            return false;
    if (*out)
        drop_frame(run, run->ignores[0]->text);
    return true;
}

static void show(struct drill_run *run)
{
    wire_dump(run->r->got, sizeof run->r->got, run->frames->octets, run->frames->len, WIRE_D_KEYS);
}

static bool inject(struct drill_run *run, const struct drill_stmt *st)
{
    uint8_t frame[DRILL_FRAME_MAX];
    if (!wait_for(run, st))
        return false;
    uint32_t len = drill_build(run, st, frame, sizeof frame);
    if (!len)
        return false;
    tell(run, run->now, DRILL_TO_DEVICE, frame, len, st->text);
    run->last = run->now;
    if (run->wire)
        run->wire->send(run->wire->arg, frame, len);
    else
        drill_bench_rx(run, frame, len);
    return !run->over;
}

/* The oldest frame fits `st`: it is taken. */
static bool take_frame(struct drill_run *run, const struct drill_stmt *st)
{
    uint64_t ns = run->frames->ns;
    show(run);
    if (!timely(run, st, ns))
        return false;
    *run->r->got = 0;
    run->last = ns;
    run->r->checks++;
    drop_frame(run, st->text);
    return true;
}

static bool expect(struct drill_run *run, const struct drill_stmt *st)
{
    uint64_t until = limit_of(run, st);
    char text[32];
    for (;;) {
        bool fits, skip;
        if (!run->frames) {
            if (more(run, until))
                continue;
            return drill_end(run, DRILL_FAIL, st, "no packet came within %s",
                             time_text(until - run->last, text, sizeof text));
        }
        if (!drill_match(run, st, run->frames->octets, run->frames->len, &fits, run->r->fields,
                         sizeof run->r->fields))
            return false;
        if (fits)
            return take_frame(run, st);
        if (!ignored(run, &skip))
            return false;
        if (skip)
            continue;
        show(run);
        return drill_end(run, DRILL_FAIL, st, "another packet came");
    }
}

/* ---- completions and events -------------------------------------------------------------------
 */

static struct drill_completion *next_completion(struct drill_run *run,
                                                const struct drill_object *about)
{
    struct drill_completion *c = run->completions;
    while (c && (c->taken || (about->kind == OBJ_CQ_ ? c->cq != about : c->wc.qpn != about->qpn)))
        c = c->next;
    return c;
}

static uint32_t imm_value(uint32_t imm)
{
    uint8_t b[4];
    memcpy(b, &imm, 4);
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static uint64_t completion_value(const struct engine_wc *wc, int id)
{
    switch (id) {
    case CQE_ID:
        return wc->wr_id;
    case CQE_OPCODE:
        return wc->opcode;
    case CQE_LEN:
        return wc->byte_len;
    case CQE_IMM:
        return wc->wc_flags & WC_F_IMM ? imm_value(wc->imm) : UINT64_MAX;
    case CQE_INV:
        return wc->wc_flags & WC_F_INV ? wc->imm : UINT64_MAX;
    case CQE_SRC_QP:
        return wc->src_qpn;
    case CQE_GRH:
        return !!(wc->wc_flags & WC_F_GRH);
    case CQE_SOLICITED:
        return wc->solicited;
    default:
        return wc->pkey_index;
    }
}

static bool cqe(struct drill_run *run, const struct drill_stmt *st, bool *done)
{
    const struct drill_object *about = drill_find(run, st->name);
    if (!about || (about->kind != OBJ_QP_ && about->kind != OBJ_CQ_))
        return drill_end(run, DRILL_WRONG, st, "'%s' is no queue", st->name);
    struct drill_completion *c = next_completion(run, about);
    *done = c;
    if (!c)
        return true;
    *run->r->fields = 0;
    if (c->wc.status != st->word)
        drill_differs(run->r->fields, sizeof run->r->fields, "status",
                      drill_word_name(drill_statuses, st->word),
                      drill_word_name(drill_statuses, c->wc.status));
    for (const struct drill_arg *a = st->args; a; a = a->next)
        if (!drill_compare(run, st, a, completion_value(&c->wc, a->field->id), UINT64_MAX))
            return false;
    if (*run->r->fields)
        return drill_end(run, DRILL_FAIL, st, "another completion came (id %" PRIu64 ")",
                         c->wc.wr_id);
    c->taken = true;
    c->cq->held--;
    run->r->checks++;
    return timely(run, st, c->ns);
}

static bool event(struct drill_run *run, const struct drill_stmt *st, bool *done)
{
    const struct drill_object *about = drill_find(run, st->name);
    if (!about)
        return drill_end(run, DRILL_WRONG, st, "there is no '%s'", st->name);
    struct drill_happening *h = run->events;
    while (h && (h->taken || h->about != about))
        h = h->next;
    *done = h;
    if (!h)
        return true;
    if (h->event != st->word)
        return drill_end(run, DRILL_FAIL, st, "the event was %s",
                         drill_word_name(drill_events, h->event));
    h->taken = true;
    run->r->checks++;
    return timely(run, st, h->ns);
}

static uint64_t cm_value(const struct cm_event *ev, int id)
{
    switch (id) {
    case CMF_PORT:
        return ev->local_port;
    case CMF_SPORT:
        return ev->remote_port;
    case CMF_RESP_RES:
        return ev->responder_resources;
    case CMF_INIT_DEPTH:
        return ev->initiator_depth;
    case CMF_QPN:
        return ev->qpn;
    case CMF_QKEY:
        return ev->qkey;
    default:
        return ev->reason; /* and status */
    }
}

static bool cm_fields(struct drill_run *run, const struct drill_stmt *st, const struct cm_event *ev)
{
    uint8_t want[CM_PRIVATE_MAX];
    *run->r->fields = 0;
    for (const struct drill_arg *a = st->args; a; a = a->next) {
        if (a->field->id != CMF_PRIVATE) {
            if (!drill_compare(run, st, a, cm_value(ev, a->field->id), UINT64_MAX))
                return false;
            continue;
        }
        uint32_t n = drill_octets_len(&a->v.data);
        if (n > sizeof want || !drill_octets(run, st, &a->v.data, 0, want, n))
            return drill_end(run, DRILL_WRONG, st, "private: at most %zu octets", sizeof want);
        if (n > ev->priv_len || memcmp(want, ev->priv, n) != 0)
            drill_differs(run->r->fields, sizeof run->r->fields, "private", "other octets",
                          "these");
    }
    return !*run->r->fields || drill_end(run, DRILL_FAIL, st, "the event says something else");
}

static bool cm_event_(struct drill_run *run, const struct drill_stmt *st, bool *done)
{
    struct drill_object *c = drill_find(run, st->name);
    struct drill_cm_happening *h = run->cm_events;
    bool fresh = st->word == CM_EV_REQ || st->word == CM_EV_SIDR_REQ;
    if (!fresh && (!c || c->kind != OBJ_CONN_))
        return drill_end(run, DRILL_WRONG, st, "'%s' is no connection", st->name);
    while (h && (h->taken || (fresh ? h->ev.type != st->word : h->ev.conn != c->conn)))
        h = h->next;
    *done = h;
    if (!h)
        return true;
    if (h->ev.type != st->word)
        return drill_end(run, DRILL_FAIL, st, "the event was %s",
                         drill_word_name(drill_cm_events, h->ev.type));
    if (!cm_fields(run, st, &h->ev))
        return false;
    if (fresh) {
        bool again = c && c->kind == OBJ_CONN_; /* the name is the new connection's from now on */
        if (!again && !(c = drill_add(run, st, st->name, OBJ_CONN_)))
            return false;
        c->dead = false;
        c->conn = h->ev.conn;
    }
    h->taken = true;
    run->r->checks++;
    return timely(run, st, h->ns);
}

/* cqe, event, cm_event: *done = it has happened. */
static bool happened(struct drill_run *run, const struct drill_stmt *st, bool *done)
{
    switch (st->verb->kind) {
    case DO_CQE:
        return cqe(run, st, done);
    case DO_EVENT:
        return event(run, st, done);
    default:
        return cm_event_(run, st, done);
    }
}

static bool await(struct drill_run *run, const struct drill_stmt *st)
{
    uint64_t until = limit_of(run, st);
    bool done = false;
    char text[32];
    for (;;) {
        if (!happened(run, st, &done) || done)
            return !run->over;
        if (!more(run, until))
            return drill_end(run, DRILL_FAIL, st, "nothing of that within %s",
                             time_text(until - run->last, text, sizeof text));
    }
}

/* ---- any { } ----------------------------------------------------------------------------------
 */

/* One of the block's `>` takes the oldest frame. */
static bool any_frame(struct drill_run *run, const struct drill_stmt *list[], bool met[],
                      unsigned n, unsigned *left)
{
    char why[DRILL_LINE_MAX];
    bool fits = false;
    for (unsigned i = 0; i < n; i++) {
        if (met[i] || list[i]->verb->kind != DO_EXPECT)
            continue;
        if (!drill_match(run, list[i], run->frames->octets, run->frames->len, &fits, why,
                         sizeof why))
            return false;
        if (!fits)
            continue;
        met[i] = true;
        --*left;
        return take_frame(run, list[i]);
    }
    if (!ignored(run, &fits))
        return false;
    if (fits)
        return true;
    show(run);
    return drill_end(run, DRILL_FAIL, list[0], "a packet came that the block doesn't have");
}

static bool any_order(struct drill_run *run, const struct drill_stmt *block)
{
    const struct drill_stmt *list[ANY_MAX];
    bool met[ANY_MAX] = {false};
    unsigned n = 0, left;
    uint64_t until = run->now + run->patience;
    for (const struct drill_stmt *st = block->body; st; st = st->next) {
        enum drill_kind k = st->verb->kind;
        if (n == ANY_MAX || (k != DO_EXPECT && k != DO_CQE && k != DO_EVENT && k != DO_CM_EVENT))
            return drill_end(run, DRILL_WRONG, st, "not within any { }, or too much of it");
        if (run->wire && k != DO_EXPECT) {
            run->r->unseen++;
            continue;
        }
        list[n++] = st;
        uint64_t l = limit_of(run, st);
        until = l > until ? l : until;
    }
    for (left = n; left;) {
        unsigned before = left;
        for (unsigned i = 0; i < n; i++) {
            bool done = false;
            if (met[i] || list[i]->verb->kind == DO_EXPECT)
                continue;
            if (!happened(run, list[i], &done))
                return false;
            met[i] = done;
            left -= done;
        }
        if (run->frames) {
            if (!any_frame(run, list, met, n, &left))
                return false;
            continue;
        }
        if (left == before && !more(run, until)) {
            unsigned i = 0;
            while (i < n && met[i])
                i++;
            return drill_end(run, DRILL_FAIL, list[i], "it didn't happen in time");
        }
    }
    return !run->over;
}

/* ---- other statements -------------------------------------------------------------------------
 */

static bool nothing(struct drill_run *run, const struct drill_stmt *st)
{
    uint64_t until = run->now + st->number;
    for (;;) {
        bool skip = true;
        while (run->frames && skip && !run->over)
            if (!ignored(run, &skip))
                return false;
        if (run->frames) {
            show(run);
            return drill_end(run, DRILL_FAIL, st, "a packet came");
        }
        if (!more(run, until) && run->now >= until)
            break;
    }
    run->last = run->now;
    run->r->checks++;
    return !run->over;
}

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
           k == DO_IS || k == DO_MEM || k == DO_STATE;
}

static bool run_statement(struct drill_run *run, const struct drill_stmt *st)
{
    enum drill_kind k = st->verb->kind;
    if (run->wire && !st->verb->wire) {
        if (!is_expectation(k))
            return drill_end(run, DRILL_SKIP, st, "'%s' can't be done on the wire", st->verb->word);
        run->r->unseen++;
        return true;
    }
    if (k == DO_EXPECT)
        return expect(run, st);
    if (k == DO_CQE || k == DO_EVENT || k == DO_CM_EVENT)
        return await(run, st);
    if (k == DO_INJECT)
        return inject(run, st);
    if (!wait_for(run, st))
        return false;
    switch (k) {
    case DO_ANY:
        return any_order(run, st);
    case DO_DEVICE:
        return st == run->s->first ||
               drill_end(run, DRILL_WRONG, st, "'device' must be the first statement");
    case DO_IGNORE:
        if (run->nignores == sizeof run->ignores / sizeof run->ignores[0])
            return drill_end(run, DRILL_WRONG, st, "too many of these");
        run->ignores[run->nignores++] = st;
        return true;
    case DO_IPV4:
        return wire_addr_is_v4(&run->local) ||
               drill_end(run, DRILL_SKIP, st, "it speaks of IPv4 addresses");
    case DO_NOTHING:
        return nothing(run, st);
    case DO_PATIENCE:
        run->patience = st->number;
        return true;
    case DO_REPEAT:
        return repeat(run, st);
    case DO_SET:
        return set(run, st);
    case DO_WAIT:
        if (!pass(run, run->now + st->number))
            return false;
        run->last = run->now;
        return true;
    case DO_WIRE:
        return true;
    case DO_COUNTER:
    case DO_INFO:
    case DO_QUERY:
    case DO_IS:
    case DO_STATE:
        return drill_do_check(run, st);
    case DO_COPIES:
    case DO_FILL:
    case DO_GATHER:
    case DO_MEM:
    case DO_PORT:
    case DO_POST:
    case DO_RECV:
        return drill_do_work(run, st);
    case DO_ACCEPT:
    case DO_CONNECT:
    case DO_DISCONNECT:
    case DO_LISTEN:
    case DO_MRA:
    case DO_REJECT:
    case DO_RELEASE:
    case DO_RTU:
    case DO_SIDR:
    case DO_SIDR_REPLY:
    case DO_UNLISTEN:
        return drill_do_cm(run, st);
    default:
        if (!drill_do_object(run, st))
            return false;
        if (!run->wire)
            drill_bench_flush(run);
        return !run->over;
    }
}

static bool run_list(struct drill_run *run, const struct drill_stmt *st)
{
    for (; st; st = st->next)
        if (!drill_step(run, st) || !run_statement(run, st) || run->over)
            return false;
    return true;
}

/* ---- the end ----------------------------------------------------------------------------------
 */

/* Whatever went out, completed or was raised and isn't named is an error. Requests to connect may
 * stay without an answer. */
static void nothing_left(struct drill_run *run)
{
    bool skip = true;
    while (run->frames && skip && !run->over)
        if (!ignored(run, &skip))
            return;
    if (run->frames) {
        show(run);
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
                      "the connection manager told what the script doesn't expect: %s",
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
        drop_frame(run, NULL);
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
    memset(run, 0, sizeof *run);
    memset(r, 0, sizeof *r);
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
    run->listen_port = 7000;
    wire_addr_parse(o->ipv6 ? "fd00::1" : "10.0.0.1", &run->local);
    wire_addr_parse(o->ipv6 ? "fd00::2" : "10.0.0.2", &run->peer);
}

void drill_run(const struct drill_script *s, const struct drill_options *o,
               struct drill_report *out)
{
    struct drill_run *run = malloc(sizeof *run);
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

/* ---- on the wire ------------------------------------------------------------------------------
 */

static void count_wishes(const struct drill_stmt *st, struct drill_wish *w)
{
    for (; st; st = st->next) {
        const struct drill_arg *mtu = drill_arg(st, QPF_ATTR + 8);
        if (st->verb->kind == DO_QP && mtu)
            w->mtu = wire_mtu_octets((unsigned)mtu->v.word);
        w->recvs += st->verb->kind == DO_RECV;
        count_wishes(st->body, w);
    }
}

void drill_run_on(const struct drill_script *s, const struct drill_options *o,
                  const struct drill_wire *wire, struct drill_report *out)
{
    struct drill_run *run = malloc(sizeof *run);
    char err[256] = "";
    if (!run) {
        *out = (struct drill_report){.verdict = DRILL_WRONG, .what = "out of memory"};
        return;
    }
    start(run, s, o, out);
    struct drill_wish wish = {.mtu = 1024, .psn = o->psn};
    count_wishes(s->first, &wish);
    run->wire = wire;
    run->patience = 200u * PATIENCE_NS; /* other machines take their time */
    if (!s->wire || strcmp(s->wire, wire->server) != 0) {
        drill_end(run, DRILL_SKIP, NULL, "it isn't marked for the wire and '%s'", wire->server);
    } else if (wire->connect(wire->arg, &wish, &run->device, err, sizeof err) < 0) {
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
