/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The states of a connection: the effect of each message in each of them, and a consumer's allowed
 * calls. CM-16.
 */
#include <errno.h>
#include <string.h>

#include "cm_pair.h"
#include "unit.h"

/* ---- effects of messages ---- */

/* Where a connection stands, at which side. */
static const struct {
    const char *state;
    bool active;
} places[] = {
    {"REQ_SENT", true},  {"MRA_REQ_RCVD", true},  {"REP_RCVD", true},     {"ESTABLISHED", true},
    {"DREQ_SENT", true}, {"TIMEWAIT", true},      {"REQ_RCVD", false},    {"MRA_REQ_SENT", false},
    {"REP_SENT", false}, {"MRA_REP_RCVD", false}, {"ESTABLISHED", false}, {"DREQ_SENT", false},
    {"TIMEWAIT", false},
};
#define PLACES (sizeof(places) / sizeof(places[0]))

enum arrival {
    MRA_OF_REQ,
    MRA_OF_REP,
    REJ,
    REP,
    RTU,
    DREQ,
    DREP,
    REQ_AGAIN,
    FIRST_REQUEST,
    ARRIVALS
};

static const char *const arrival_names[ARRIVALS] = {
    "MRA of a REQ", "MRA of a REP", "REJ", "REP", "RTU", "DREQ", "DREP", "REQ", "first request",
};

#define NOTHING (-1)

/* All other messages change nothing, are reported to no consumer and get no answer. */
static const struct {
    const char *state;
    bool active;
    enum arrival arrival;
    const char *then;
    int event;
    unsigned answer;
} changes[] = {
    {"REQ_SENT", true, MRA_OF_REQ, "MRA_REQ_RCVD", NOTHING, 0},
    {"REQ_SENT", true, REJ, "CLOSED", CM_EV_REJECTED, 0},
    {"REQ_SENT", true, REP, "REP_RCVD", CM_EV_REP, 0},
    {"REQ_SENT", true, DREQ, "CLOSED", CM_EV_UNREACHABLE, CM_DREP},
    {"MRA_REQ_RCVD", true, MRA_OF_REQ, "MRA_REQ_RCVD", NOTHING, 0},
    {"MRA_REQ_RCVD", true, REJ, "CLOSED", CM_EV_REJECTED, 0},
    {"MRA_REQ_RCVD", true, REP, "REP_RCVD", CM_EV_REP, 0},
    {"MRA_REQ_RCVD", true, DREQ, "CLOSED", CM_EV_UNREACHABLE, CM_DREP},
    {"REP_RCVD", true, REJ, "CLOSED", CM_EV_REJECTED, 0},
    {"REP_RCVD", true, DREQ, "TIMEWAIT", CM_EV_DISCONNECTED, CM_DREP},
    {"ESTABLISHED", true, REJ, "TIMEWAIT", CM_EV_DISCONNECTED, 0}, /* CM-28 */
    {"ESTABLISHED", true, REP, "ESTABLISHED", NOTHING, CM_RTU},    /* CM-22 */
    {"ESTABLISHED", true, DREQ, "TIMEWAIT", CM_EV_DISCONNECTED, CM_DREP},
    {"DREQ_SENT", true, DREQ, "TIMEWAIT", CM_EV_DISCONNECTED, CM_DREP},
    {"DREQ_SENT", true, DREP, "TIMEWAIT", CM_EV_DISCONNECTED, 0},
    {"TIMEWAIT", true, DREQ, "TIMEWAIT", NOTHING, CM_DREP},
    {"REQ_RCVD", false, REJ, "CLOSED", CM_EV_REJECTED, 0},
    {"MRA_REQ_SENT", false, REJ, "CLOSED", CM_EV_REJECTED, 0},
    {"MRA_REQ_SENT", false, REQ_AGAIN, "MRA_REQ_SENT", NOTHING, CM_MRA}, /* CM-20 */
    {"REP_SENT", false, MRA_OF_REP, "MRA_REP_RCVD", NOTHING, 0},
    {"REP_SENT", false, REJ, "TIMEWAIT", CM_EV_REJECTED, 0},
    {"REP_SENT", false, RTU, "ESTABLISHED", CM_EV_ESTABLISHED, 0},
    {"REP_SENT", false, DREQ, "TIMEWAIT", CM_EV_DISCONNECTED, CM_DREP},
    {"REP_SENT", false, REQ_AGAIN, "REP_SENT", NOTHING, CM_REP},
    {"REP_SENT", false, FIRST_REQUEST, "ESTABLISHED", CM_EV_ESTABLISHED, 0}, /* CM-23 */
    {"MRA_REP_RCVD", false, MRA_OF_REP, "MRA_REP_RCVD", NOTHING, 0},
    {"MRA_REP_RCVD", false, REJ, "TIMEWAIT", CM_EV_REJECTED, 0},
    {"MRA_REP_RCVD", false, RTU, "ESTABLISHED", CM_EV_ESTABLISHED, 0},
    {"MRA_REP_RCVD", false, DREQ, "TIMEWAIT", CM_EV_DISCONNECTED, CM_DREP},
    {"MRA_REP_RCVD", false, FIRST_REQUEST, "ESTABLISHED", CM_EV_ESTABLISHED, 0},
    {"ESTABLISHED", false, REJ, "TIMEWAIT", CM_EV_DISCONNECTED, 0},
    {"ESTABLISHED", false, DREQ, "TIMEWAIT", CM_EV_DISCONNECTED, CM_DREP},
    {"DREQ_SENT", false, DREQ, "TIMEWAIT", CM_EV_DISCONNECTED, CM_DREP},
    {"DREQ_SENT", false, DREP, "TIMEWAIT", CM_EV_DISCONNECTED, 0},
    {"TIMEWAIT", false, DREQ, "TIMEWAIT", NOTHING, CM_DREP},
    {"TIMEWAIT", false, REQ_AGAIN, "TIMEWAIT", NOTHING, CM_REJ}, /* CM-21 */
};

/* The REQ that made the connection, and each side's identity for the other. */
static struct cm_out first_req;
static uint32_t active_id, passive_id;

static void deliver(struct side *to, const struct cm_out *out)
{
    const struct side *from = to == &a ? &b : &a;
    cm_rx(to->cm, out->mad, sizeof(out->mad), &from->addr, &to->addr, 1, 0xFFFF, now);
    listen_to(to);
}

static void arrive(struct side *to, struct cm_msg m)
{
    struct cm_out out;
    ck_assert_int_eq(cm_msg_pack(out.mad, &m), 0);
    deliver(to, &out);
}

static struct cm_conn *reach(const char *state, bool active)
{
    struct cm_conn *ca, *cb;
    struct cm_out out;
    struct cm_connect_params p = params();
    bool deferred = strcmp(state, "MRA_REQ_RCVD") == 0 || strcmp(state, "MRA_REQ_SENT") == 0;
    bool before = deferred || strcmp(state, "REQ_SENT") == 0 || strcmp(state, "REQ_RCVD") == 0;
    bool lonely = strcmp(state, "REP_SENT") == 0 || strcmp(state, "MRA_REP_RCVD") == 0;
    listen_on_b();
    ck_assert_int_eq(cm_connect(a.cm, &p, &a, now, &ca), 0);
    next_msg(&a, CM_REQ, &first_req);
    deliver(&b, &first_req);
    cb = last(&b)->conn;
    active_id = ca->local_id;
    passive_id = cb->local_id;
    if (deferred)
        ck_assert_int_eq(cm_mra(b.cm, cb, 20, now), 0);
    if (!before)
        ck_assert_int_eq(cm_accept(b.cm, cb, &accept_params, &b, now), 0);
    pump();
    if (!before && !lonely && strcmp(state, "REP_RCVD") != 0)
        ck_assert_int_eq(cm_rtu(a.cm, ca, NULL, 0, now), 0);
    pump();
    if (strcmp(state, "MRA_REP_RCVD") == 0)
        arrive(&b, (struct cm_msg){.attr = CM_MRA,
                                   .local_id = active_id,
                                   .remote_id = passive_id,
                                   .msg_id = CM_ABOUT_REP,
                                   .service_timeout = 20});
    if (strcmp(state, "DREQ_SENT") == 0 || strcmp(state, "TIMEWAIT") == 0)
        cm_disconnect(active ? a.cm : b.cm, active ? ca : cb, NULL, 0, now);
    if (strcmp(state, "TIMEWAIT") == 0)
        pump();
    else
        while (cm_tx(a.cm, &out) || cm_tx(b.cm, &out)) /* lost */
            ;
    struct cm_conn *c = active ? ca : cb;
    ck_assert_str_eq(cm_conn_state_name(c), state);
    return c;
}

static void let_arrive(struct side *s, struct cm_conn *c, enum arrival what)
{
    struct cm_msg m = {.local_id = c->active ? passive_id : active_id,
                       .remote_id = c->active ? active_id : passive_id};
    switch (what) {
    case MRA_OF_REQ:
    case MRA_OF_REP:
        m.attr = CM_MRA;
        m.msg_id = what == MRA_OF_REQ ? CM_ABOUT_REQ : CM_ABOUT_REP;
        m.service_timeout = 31;
        break;
    case REJ:
        m.attr = CM_REJ;
        m.reason = CM_REJ_CONSUMER;
        break;
    case REP:
        m.attr = CM_REP;
        m.qpn = 0x456;
        break;
    case RTU:
        m.attr = CM_RTU;
        break;
    case DREQ:
        m.attr = CM_DREQ;
        m.remote_qpn = c->qpn;
        break;
    case DREP:
        m.attr = CM_DREP;
        break;
    case REQ_AGAIN:
        if (!c->active)
            deliver(s, &first_req);
        return;
    default:
        cm_comm_est(s->cm, c, now);
        listen_to(s);
        return;
    }
    m.priv_len = 2;
    memcpy(m.priv, "P!", 2);
    arrive(s, m);
}

START_TEST(cm_16_every_message_in_every_state)
{
    const size_t place = (size_t)_i / ARRIVALS;
    const enum arrival what = (enum arrival)((size_t)_i % ARRIVALS);
    const char *state = places[place].state, *then = state;
    bool active = places[place].active;
    struct side *s = active ? &a : &b;
    int event = NOTHING;
    unsigned answer = 0;
    bool listed = false;
    struct cm_out out;
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        if (strcmp(changes[i].state, state) != 0 || changes[i].active != active ||
            changes[i].arrival != what)
            continue;
        listed = true;
        then = changes[i].then;
        event = changes[i].event;
        answer = changes[i].answer;
    }
    struct cm_conn *c = reach(state, active);
    now += 1000;
    uint64_t deadline = cm_deadline(s->cm);
    uint64_t refused = cm_counters(s->cm)[CM_C_cm_rejected];
    s->nev = 0;
    let_arrive(s, c, what);
    ck_assert_msg(strcmp(cm_conn_state_name(c), then) == 0, "%s in %s: %s", arrival_names[what],
                  state, cm_conn_state_name(c));
    ck_assert_msg(s->nev == (event != NOTHING), "%s in %s: %u events", arrival_names[what], state,
                  s->nev);
    if (event != NOTHING) {
        ck_assert_int_eq(s->ev[0].type, event);
        ck_assert_ptr_eq(s->ev[0].conn, c);
        /* CM-33: no event for a REJ of an established connection, nor for a DREQ before the REP */
        if (event != CM_EV_UNREACHABLE && what != FIRST_REQUEST &&
            !(what == REJ && event == CM_EV_DISCONNECTED))
            ck_assert_mem_eq(s->ev[0].priv, "P!\0", 3);
        ck_assert_int_eq(s->ev[0].hung_up, event == CM_EV_UNREACHABLE); /* CM-24 */
    }
    ck_assert_uint_eq(cm_counters(s->cm)[CM_C_cm_rejected] - refused, event == CM_EV_REJECTED);
    if (answer) {
        struct cm_msg m = next_msg(s, answer, &out);
        ck_assert_uint_eq(m.local_id, answer == CM_REJ ? 0 : active ? active_id : passive_id);
        ck_assert_uint_eq(m.remote_id, active ? passive_id : active_id);
    }
    ck_assert_msg(!cm_tx(s->cm, &out), "%s in %s: an answer", arrival_names[what], state);
    if (strcmp(then, "TIMEWAIT") == 0 || strcmp(then, "ESTABLISHED") == 0 ||
        strcmp(then, "CLOSED") == 0)
        ck_assert_uint_eq(s->cm->half_open, 0);
    if (what <= MRA_OF_REP && listed) /* CM-19: 24 at most */
        ck_assert_uint_eq(cm_deadline(s->cm), now + cm_wait_ns(18) + cm_wait_ns(24));
    else if (strcmp(state, "MRA_REQ_SENT") == 0 && what == REQ_AGAIN) /* waits as long again */
        ck_assert_uint_eq(cm_deadline(s->cm), now + 8 * cm_wait_ns(18) + cm_wait_ns(20));
    else if (then == state)
        ck_assert_uint_eq(cm_deadline(s->cm), deadline);
    else
        ck_assert_uint_eq(cm_deadline(s->cm), strcmp(then, "TIMEWAIT") ? UINT64_MAX : now + SEC);
    lose[CM_REQ] = 1000;
    cm_release(s->cm, c, now);
    wait_ns(700 * SEC);
    ck_assert_ptr_null(s->cm->all);
}
END_TEST

/* ---- effects of time ---- */

/* The effects of a state's timer, at first and at the eighth time (CM-18); then = NULL: no timer
 * runs. */
static const struct {
    const char *state;
    bool active;
    const char *then;
    int event;
    unsigned sends;
    const char *finally;
    int last_event;
    unsigned last_sends;
} timers[PLACES] = {
    {"REQ_SENT", true, "REQ_SENT", NOTHING, CM_REQ, "CLOSED", CM_EV_UNREACHABLE, CM_REJ},
    {"MRA_REQ_RCVD", true, "REQ_SENT", NOTHING, CM_REQ, "CLOSED", CM_EV_UNREACHABLE, CM_REJ},
    {"REP_RCVD", true, NULL, NOTHING, 0, NULL, NOTHING, 0},
    {"ESTABLISHED", true, NULL, NOTHING, 0, NULL, NOTHING, 0},
    {"DREQ_SENT", true, "DREQ_SENT", NOTHING, CM_DREQ, "TIMEWAIT", CM_EV_DISCONNECTED, 0},
    {"TIMEWAIT", true, "CLOSED", CM_EV_TIMEWAIT_EXIT, 0, NULL, NOTHING, 0},
    {"REQ_RCVD", false, "CLOSED", CM_EV_UNREACHABLE, 0, NULL, NOTHING, 0}, /* SEC-20 */
    {"MRA_REQ_SENT", false, "CLOSED", CM_EV_UNREACHABLE, 0, NULL, NOTHING, 0},
    {"REP_SENT", false, "REP_SENT", NOTHING, CM_REP, "TIMEWAIT", CM_EV_UNREACHABLE, CM_REJ},
    {"MRA_REP_RCVD", false, "REP_SENT", NOTHING, CM_REP, "TIMEWAIT", CM_EV_UNREACHABLE, CM_REJ},
    {"ESTABLISHED", false, NULL, NOTHING, 0, NULL, NOTHING, 0},
    {"DREQ_SENT", false, "DREQ_SENT", NOTHING, CM_DREQ, "TIMEWAIT", CM_EV_DISCONNECTED, 0},
    {"TIMEWAIT", false, "CLOSED", CM_EV_TIMEWAIT_EXIT, 0, NULL, NOTHING, 0},
};

static void fire(struct side *s)
{
    struct cm_out out;
    s->nev = 0;
    while (cm_tx(s->cm, &out))
        ;
    now = cm_deadline(s->cm);
    cm_expire(s->cm, now - 1);
    ck_assert(!cm_tx(s->cm, &out));
    cm_expire(s->cm, now);
    listen_to(s);
}

static void told(const struct side *s, int event)
{
    ck_assert_uint_eq(s->nev, event != NOTHING);
    if (event != NOTHING)
        ck_assert_int_eq(s->ev[0].type, event);
}

START_TEST(cm_18_time_in_every_state)
{
    bool deferred = _i >= (int)PLACES; /* an MRA comes when all has been repeated */
    const size_t i = (size_t)_i % PLACES;
    struct side *s = timers[i].active ? &a : &b;
    struct cm_conn *c = reach(timers[i].state, timers[i].active);
    struct cm_out out;
    if (!timers[i].then) {
        ck_assert_uint_eq(cm_deadline(s->cm), UINT64_MAX);
        return;
    }
    fire(s);
    ck_assert_str_eq(cm_conn_state_name(c), timers[i].then);
    told(s, timers[i].event);
    if (timers[i].sends)
        next_msg(s, timers[i].sends, &out);
    ck_assert(!cm_tx(s->cm, &out));
    if (!timers[i].finally)
        return;
    for (unsigned k = 0; k < 6; k++) {
        ck_assert_uint_eq(cm_deadline(s->cm), now + cm_wait_ns(18));
        fire(s);
        told(s, NOTHING);
        next_msg(s, timers[i].sends, &out);
    }
    ck_assert_uint_eq(cm_counters(s->cm)[CM_C_cm_retries], 7);
    if (deferred)
        let_arrive(s, c, timers[i].active ? MRA_OF_REQ : MRA_OF_REP);
    fire(s);
    ck_assert_str_eq(cm_conn_state_name(c), timers[i].finally);
    told(s, timers[i].last_event);
    if (timers[i].last_sends) {
        struct cm_msg m = next_msg(s, timers[i].last_sends, &out);
        ck_assert_uint_eq(m.msg_id, timers[i].active ? CM_ABOUT_REQ : CM_ABOUT_REP);
        ck_assert_uint_eq(m.reason, CM_REJ_TIMEOUT); /* CM-28 */
        ck_assert_uint_eq(m.ari_len, 8);
        ck_assert_uint_eq(m.ari[7], timers[i].active ? 0xA : 0xB);
        ck_assert_uint_eq(m.ari[0], 0);
    }
    ck_assert(!cm_tx(s->cm, &out));
    ck_assert_uint_eq(s->cm->half_open, 0);
}
END_TEST

/* SEC-20 CM-19: a request that got an MRA, and isn't repeated, is kept for its peer's time-out. */
START_TEST(cm_19_a_deferred_request_is_kept)
{
    struct cm_conn *c = reach("MRA_REQ_SENT", false);
    ck_assert_uint_eq(cm_deadline(b.cm), now + 8 * cm_wait_ns(18) + cm_wait_ns(20));
    ck_assert_int_eq(cm_may_accept(c), 0);
}
END_TEST

/* ---- a consumer's calls by state ---- */

/* A connection's sides on their way, with an answer deferred or not: where they stand then. */
enum stage { ASKED, DEFERRED, ACCEPTED, ANSWERED, READY, ENDING, ENDED, STAGES };

static const char *const active_at[STAGES] = {
    "REQ_SENT", "MRA_REQ_RCVD", "REQ_SENT", "REP_RCVD", "ESTABLISHED", "DREQ_SENT", "TIMEWAIT",
};
static const char *const passive_at[STAGES] = {
    "REQ_RCVD", "MRA_REQ_SENT", "REP_SENT", "REP_SENT", "ESTABLISHED", "ESTABLISHED", "TIMEWAIT",
};

static void bring_to(enum stage stage, struct cm_conn **ca, struct cm_conn **cb)
{
    listen_on_b();
    *ca = start();
    *cb = last(&b)->conn;
    if (stage == DEFERRED) {
        ck_assert_int_eq(cm_mra(b.cm, *cb, 20, now), 0);
        pump();
    }
    if (stage >= ACCEPTED)
        ck_assert_int_eq(cm_accept(b.cm, *cb, &accept_params, &b, now), 0);
    if (stage >= ANSWERED)
        pump();
    if (stage >= READY) {
        ck_assert_int_eq(cm_rtu(a.cm, *ca, NULL, 0, now), 0);
        pump();
    }
    if (stage >= ENDING)
        ck_assert_int_eq(cm_disconnect(a.cm, *ca, NULL, 0, now), 0);
    if (stage >= ENDED)
        pump();
    ck_assert_str_eq(cm_conn_state_name(*ca), active_at[stage]);
    ck_assert_str_eq(cm_conn_state_name(*cb), passive_at[stage]);
}

/* The result of each call in each stage, 0 or -errno, and the message that it sends. */
static const struct {
    int accept, reject_active, reject_passive, mra, hang_up_active, hang_up_passive;
    unsigned active_sends, passive_sends; /* when they hang up */
} may[STAGES] = {
    [ASKED] = {0, -EINVAL, 0, 0, -EINVAL, -EINVAL, 0, 0},
    [DEFERRED] = {0, -EINVAL, 0, -EINVAL, -EINVAL, -EINVAL, 0, 0},
    [ACCEPTED] = {-EINVAL, -EINVAL, -EINVAL, -EINVAL, -EINVAL, 0, 0, CM_DREQ},
    [ANSWERED] = {-EINVAL, 0, -EINVAL, -EINVAL, 0, 0, CM_REJ, CM_DREQ},
    [READY] = {-EINVAL, -EINVAL, -EINVAL, -EINVAL, 0, 0, CM_DREQ, CM_DREQ},
    [ENDING] = {-EINVAL, -EINVAL, -EINVAL, -EINVAL, 0, 0, 0, CM_DREQ},
    [ENDED] = {-EINVAL, -EINVAL, -EINVAL, -EINVAL, 0, 0, 0, 0},
};

/* The queue must hold one message of this kind, 0 = none. */
static void sends(struct side *s, unsigned attr)
{
    struct cm_out out;
    if (attr)
        next_msg(s, attr, &out);
    ck_assert(!cm_tx(s->cm, &out));
}

START_TEST(cm_16_what_may_be_done_when)
{
    enum stage stage = (enum stage)(_i / 6);
    struct cm_conn *ca, *cb;
    struct cm_out out;
    bring_to(stage, &ca, &cb);
    while (cm_tx(a.cm, &out) || cm_tx(b.cm, &out))
        ;
    ck_assert_int_eq(cm_may_accept(ca), -EINVAL);
    ck_assert_int_eq(cm_may_accept(cb), may[stage].accept);
    switch (_i % 6) {
    case 0:
        ck_assert_int_eq(cm_accept(a.cm, ca, &accept_params, &a, now), -EINVAL);
        ck_assert_int_eq(cm_accept(b.cm, cb, &accept_params, &b, now), may[stage].accept);
        sends(&b, may[stage].accept ? 0 : CM_REP);
        break;
    case 1:
        ck_assert_int_eq(cm_reject(a.cm, ca, 0, NULL, 0, now), may[stage].reject_active);
        sends(&a, may[stage].reject_active ? 0 : CM_REJ);
        break;
    case 2:
        ck_assert_int_eq(cm_reject(b.cm, cb, 0, NULL, 0, now), may[stage].reject_passive);
        sends(&b, may[stage].reject_passive ? 0 : CM_REJ);
        break;
    case 3:
        ck_assert_int_eq(cm_mra(a.cm, ca, 20, now), -EINVAL);
        ck_assert_int_eq(cm_mra(b.cm, cb, 20, now), may[stage].mra);
        sends(&b, may[stage].mra ? 0 : CM_MRA);
        break;
    case 4:
        ck_assert_int_eq(cm_disconnect(a.cm, ca, NULL, 0, now), may[stage].hang_up_active);
        sends(&a, may[stage].active_sends);
        break;
    default:
        ck_assert_int_eq(cm_disconnect(b.cm, cb, NULL, 0, now), may[stage].hang_up_passive);
        sends(&b, may[stage].passive_sends);
        if (may[stage].passive_sends) /* SEC-20: it is half open no longer */
            ck_assert_uint_eq(b.cm->half_open, 0);
        break;
    }
    /* after each of these, nothing remains */
    cm_release(a.cm, ca, now);
    cm_release(b.cm, cb, now);
    pump();
    wait_ns(700 * SEC);
    ck_assert_uint_eq(cm_live(a.cm), 0);
    ck_assert_uint_eq(cm_live(b.cm), 0);
    ck_assert_uint_eq(b.cm->half_open, 0);
    ck_assert_ptr_null(a.cm->all);
    ck_assert_ptr_null(b.cm->all);
}
END_TEST

/* A consumer that releases its connection gets no further event, and the peer gets a message: a REJ
 * before there is a connection, a DREQ afterwards. */
static const struct {
    unsigned active, passive;
} let_go[STAGES] = {
    [ASKED] = {CM_REJ, CM_REJ},
    [DEFERRED] = {CM_REJ, CM_REJ},
    [ACCEPTED] = {CM_REJ, CM_DREQ},
    [ANSWERED] = {CM_REJ, CM_DREQ},
    [READY] = {CM_DREQ, CM_DREQ},
    [ENDING] = {0, CM_DREQ},
    [ENDED] = {0, 0},
};

START_TEST(cm_28_letting_go)
{
    enum stage stage = (enum stage)(_i / 2);
    bool active = _i % 2 == 0;
    struct side *s = active ? &a : &b;
    struct cm_conn *ca, *cb;
    struct cm_out out;
    bring_to(stage, &ca, &cb);
    while (cm_tx(a.cm, &out) || cm_tx(b.cm, &out))
        ;
    s->nev = 0;
    cm_release(s->cm, active ? ca : cb, now);
    sends(s, active ? let_go[stage].active : let_go[stage].passive);
    lose[CM_REQ] = lose[CM_REP] = lose[CM_DREQ] = 1000;
    wait_ns(100 * SEC);
    ck_assert_uint_eq(s->nev, 0);
    ck_assert_ptr_null(s->cm->all);
}
END_TEST

START_TEST(cm_28_letting_go_of_one_that_asked_for_time)
{
    struct cm_conn *c = reach("MRA_REP_RCVD", false);
    cm_release(b.cm, c, now);
    sends(&b, CM_DREQ);
    ck_assert_str_eq(cm_conn_state_name(c), "DREQ_SENT");
}
END_TEST

/* A refused connection stays its consumer's, and is over: hanging up is no mistake, answering is.
 */
START_TEST(cm_28_after_a_refusal)
{
    struct cm_conn *ca, *cb;
    struct cm_out out;
    listen_on_b();
    ca = start();
    cb = last(&b)->conn;
    ck_assert_int_eq(cm_reject(b.cm, cb, 0, NULL, 0, now), 0);
    pump();
    ck_assert_int_eq(last(&a)->type, CM_EV_REJECTED);
    ck_assert_str_eq(cm_conn_state_name(ca), "CLOSED");
    ck_assert_int_eq(cm_disconnect(a.cm, ca, NULL, 0, now), 0);
    ck_assert_int_eq(cm_disconnect(b.cm, cb, NULL, 0, now), 0);
    ck_assert_int_eq(cm_may_accept(ca), -EINVAL); /* the active side has no request to accept */
    ck_assert_int_eq(cm_may_accept(cb), -ECONNABORTED);
    ck_assert(!cm_tx(a.cm, &out));
    ck_assert(!cm_tx(b.cm, &out));
    cm_release(a.cm, ca, now);
    cm_release(b.cm, cb, now);
    ck_assert_ptr_null(a.cm->all);
    ck_assert_ptr_null(b.cm->all);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cm states");
    TCase *t = tcase_create("cm states");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, cm_16_every_message_in_every_state, 0, (int)(PLACES * ARRIVALS));
    tcase_add_loop_test(t, cm_18_time_in_every_state, 0, (int)PLACES * 2);
    tcase_add_test(t, cm_19_a_deferred_request_is_kept);
    tcase_add_loop_test(t, cm_16_what_may_be_done_when, 0, STAGES * 6);
    tcase_add_loop_test(t, cm_28_letting_go, 0, STAGES * 2);
    tcase_add_test(t, cm_28_letting_go_of_one_that_asked_for_time);
    tcase_add_test(t, cm_28_after_a_refusal);
    suite_add_tcase(s, t);
    return unit_run(s);
}
