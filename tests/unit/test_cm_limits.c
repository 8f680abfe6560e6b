/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Limits of a connection manager: forgeries, too many requests, peers that fall silent; and the
 * state that it keeps of them.
 */
#include <errno.h>
#include <string.h>

#include "cm_pair.h"
#include "unit.h"

/* A peer that lacks one of the numbers changes nothing. */
static const struct {
    const char *rule;
    enum cm_attr attr;
    bool bad_local, bad_remote, bad_source, bad_qpn;
} forgeries[] = {
    {"SEC-21 DREQ with a wrong id of the sender", CM_DREQ, true, false, false, false},
    {"SEC-21 DREQ with a wrong id of ours", CM_DREQ, false, true, false, false},
    {"SEC-21 DREQ from another address", CM_DREQ, false, false, true, false},
    {"CM-24 DREQ with a wrong QPN", CM_DREQ, false, false, false, true},
    {"SEC-21 REJ with a wrong id", CM_REJ, true, false, false, false},
    {"SEC-21 REJ from another address", CM_REJ, false, false, true, false},
    {"SEC-21 DREP nobody asked for", CM_DREP, false, false, false, false},
};

START_TEST(sec_21_forgeries_do_nothing)
{
    struct cm_conn *ca, *cb;
    establish(&ca, &cb);
    struct cm_msg m = {
        .attr = forgeries[_i].attr,
        .local_id = 0,
        .reason = 28,
        .msg_id = 2,
        .remote_qpn = forgeries[_i].bad_qpn ? 0x111 : 0xABC,
    };
    struct wire_addr src = forgeries[_i].bad_source ? wire_addr_v4(0x0A000009) : a.addr;
    uint8_t mad[CM_MAD_LEN];
    /* the true ids, read off the wire: send a DREQ into the void */
    struct cm_out out;
    struct cm_msg own;
    cm_disconnect(a.cm, ca, NULL, 0, now);
    ck_assert(cm_tx(a.cm, &out));
    cm_msg_unpack(&own, out.mad, sizeof(out.mad));
    m.local_id = own.local_id + forgeries[_i].bad_local;
    m.remote_id = own.remote_id + forgeries[_i].bad_remote;
    cm_msg_pack(mad, &m);
    cm_rx(b.cm, mad, sizeof(mad), &src, &b.addr, 1, 0xFFFF, now);
    listen_to(&b);
    ck_assert_msg(last(&b)->type == CM_EV_ESTABLISHED, "%s", forgeries[_i].rule);
    ck_assert_str_eq(cm_conn_state_name(cb), "ESTABLISHED");
    /* and the true one works */
    cm_rx(b.cm, out.mad, sizeof(out.mad), &a.addr, &b.addr, 1, 0xFFFF, now);
    listen_to(&b);
    ck_assert_int_eq(last(&b)->type, CM_EV_DISCONNECTED);
}
END_TEST

START_TEST(cm_34_backlog)
{
    /* CM-34: above the backlog a REQ is dropped silently, and counted; above half of it SEC-20
     * demands a repetition. */
    static const struct wire_addr any;
    struct cm_listener *l;
    cm_listen(b.cm, CM_PS_TCP, &any, ANY_PORT, 3, NULL, &l);
    for (unsigned i = 0; i < 5; i++) {
        struct cm_connect_params p = params();
        struct cm_conn *c;
        p.qpn += i;
        cm_connect(a.cm, &p, NULL, now, &c);
    }
    pump();
    ck_assert_uint_eq(b.nev, 2);
    ck_assert_uint_eq(cm_counters(b.cm)[CM_C_cm_rx_rate_limited], 3);
    wait_ns(SEC + SEC / 2);
    ck_assert_uint_eq(b.nev, 3);
    ck_assert_uint_eq(cm_counters(b.cm)[CM_C_cm_req_backlog_drop], 2);
    /* answered ones make room for the repeated REQs of the others */
    for (unsigned i = 0; i < 3; i++)
        cm_reject(b.cm, b.ev[i].conn, 0, NULL, 0, now);
    pump();
    wait_ns(2 * SEC);
    ck_assert_uint_eq(b.nev, 5);
}
END_TEST

/* Hosts from 10.0.1.0 on don't exist: none answers there. */
static unsigned looks;
static bool made_up(void *arg, const struct wire_addr *addr)
{
    ck_assert_ptr_eq(arg, &looks);
    looks++;
    return addr->b[14] != 0;
}

/* REQs of made-up hosts, `n` of them, each one different; their peers "wait" for five minutes. */
static void flood(unsigned n)
{
    struct cm_connect_params p = params();
    struct cm_conn *c;
    struct cm_out out;
    struct cm_msg req;
    p.cm_timeout = 28;
    p.max_retries = 15;
    ck_assert_int_eq(cm_connect(a.cm, &p, NULL, now, &c), 0);
    ck_assert(cm_tx(a.cm, &out));
    cm_msg_unpack(&req, out.mad, sizeof(out.mad));
    cm_release(a.cm, c, now);
    while (cm_tx(a.cm, &out))
        continue;
    for (unsigned i = 0; i < n; i++) {
        const struct wire_addr src = wire_addr_v4(0x0A000100 + i % 120);
        req.local_id = 0x10000 + i;
        req.qpn = 0x1000 + i;
        req.tid = i;
        cm_msg_pack(out.mad, &req);
        cm_rx(b.cm, out.mad, sizeof(out.mad), &src, &b.addr, 1, 0xFFFF, now);
    }
}

static void silence_setup(void)
{
    looks = 0;
    teardown();
    setup_with((struct cm_params){0},
               (struct cm_params){.silent = made_up, .silent_arg = &looks, .lenient_addr = true});
}

START_TEST(sec_20_a_flood_of_made_up_hosts_is_over_in_seconds)
{
    /* SEC-20 CM-34: sources that ask only once get at most half of a backlog, and lose it after
     * seconds. */
    struct cm_event ev;
    silence_setup();
    listen_on_b();
    flood(2400);
    ck_assert_uint_eq(cm_live(b.cm), 513);
    ck_assert_uint_eq(cm_counters(b.cm)[CM_C_cm_rx_rate_limited], 2400 - 513);
    while (cm_event(b.cm, &ev))
        ck_assert_int_eq(ev.type, CM_EV_REQ);
    /* An honest host asks again, and gets in. */
    struct cm_connect_params p = params();
    struct cm_conn *c;
    ck_assert_int_eq(cm_connect(a.cm, &p, &a, now, &c), 0);
    pump();
    ck_assert_uint_eq(b.nev, 0);
    wait_ns(SEC + SEC / 2);
    ck_assert_uint_eq(b.nev, 1);
    ck_assert_int_eq(last(&b)->type, CM_EV_REQ);
    ck_assert_uint_eq(looks, 0);
    while (cm_deadline(b.cm) <= now + 2 * SEC) { /* and then the others are gone */
        now = cm_deadline(b.cm);
        cm_expire(b.cm, now);
    }
    ck_assert_uint_eq(cm_live(b.cm), 1);
    ck_assert_uint_eq(cm_counters(b.cm)[CM_C_cm_silent_peer], 513);
    unsigned told = 0;
    for (; cm_event(b.cm, &ev); told++) {
        ck_assert_int_eq(ev.type, CM_EV_UNREACHABLE);
        ck_assert_int_eq(cm_accept(b.cm, ev.conn, &accept_params, &b, now), -ECONNABORTED);
        cm_release(b.cm, ev.conn, now);
    }
    ck_assert_uint_eq(told, 513);
    ck_assert_uint_eq(b.cm->half_open, 1);
}
END_TEST

START_TEST(sec_20_an_answer_to_a_made_up_host_ends_in_seconds)
{
    /* SEC-20: the consumer has accepted; a REP was sent, and the next is due in 18 s. */
    struct cm_event ev;
    silence_setup();
    listen_on_b();
    flood(1);
    ck_assert(cm_event(b.cm, &ev));
    ck_assert_int_eq(cm_accept(b.cm, ev.conn, &accept_params, &b, now), 0);
    ck_assert_uint_eq(cm_deadline(b.cm), now + CM_LOOK_NS);
    now += CM_LOOK_NS;
    cm_expire(b.cm, now);
    ck_assert(cm_event(b.cm, &ev));
    ck_assert_int_eq(ev.type, CM_EV_UNREACHABLE);
    ck_assert_uint_eq(b.cm->half_open, 0);
}
END_TEST

START_TEST(sec_20_a_host_that_is_there_is_waited_for)
{
    /* SEC-20: one check, and the timer continues; an answered request is checked as well. */
    struct cm_connect_params p = params();
    struct cm_conn *c;
    silence_setup();
    listen_on_b();
    p.cm_timeout = 22;
    lose[CM_RTU] = 1;
    ck_assert_int_eq(cm_connect(a.cm, &p, &a, now, &c), 0);
    pump();
    wait_ns(10 * SEC);
    ck_assert_uint_eq(looks, 1);
    ck_assert_uint_eq(b.nev, 1);
    ck_assert_int_eq(cm_accept(b.cm, last(&b)->conn, &accept_params, &b, now), 0);
    pump();
    ck_assert_int_eq(cm_rtu(a.cm, c, NULL, 0, now), 0);
    pump();
    wait_ns(20 * SEC); /* the REP comes again, and the RTU */
    ck_assert_int_eq(last(&b)->type, CM_EV_ESTABLISHED);
    ck_assert_uint_eq(looks, 1);
}
END_TEST

START_TEST(sec_20_who_has_many_pending_is_not_waited_for_long)
{
    /* SEC-20: forged REQs in the name of a live host, which doesn't expect our answers, shut it out
     * for seconds, not for minutes. */
    struct cm_connect_params p = params();
    struct cm_conn *c;
    struct cm_out out;
    struct cm_msg req;
    struct cm_event ev;
    listen_on_b();
    p.cm_timeout = 28;
    p.max_retries = 15;
    ck_assert_int_eq(cm_connect(a.cm, &p, NULL, now, &c), 0);
    ck_assert(cm_tx(a.cm, &out));
    cm_msg_unpack(&req, out.mad, sizeof(out.mad));
    for (unsigned i = 0; i < 512; i++) {
        req.local_id += 1;
        req.qpn = 0x1000 + i;
        cm_msg_pack(out.mad, &req);
        cm_rx(b.cm, out.mad, sizeof(out.mad), &a.addr, &b.addr, 1, 0xFFFF, now);
        ck_assert(cm_event(b.cm, &ev));
        ck_assert_int_eq(cm_accept(b.cm, ev.conn, &accept_params, &b, now), 0);
        while (cm_tx(b.cm, &out))
            continue;
    }
    ck_assert_uint_eq(b.cm->half_open, 512);
    for (uint64_t end = now + 9 * SEC; cm_deadline(b.cm) < end;) {
        now = cm_deadline(b.cm);
        cm_expire(b.cm, now);
        while (cm_tx(b.cm, &out))
            continue;
    }
    ck_assert_uint_le(b.cm->half_open, CM_SRC_PENDING / 2 + 1);
}
END_TEST

/* SEC-20: six peers request connections from a side of eight, half of which may be half-open. The
 * sixth must repeat its request, even if its timeout says that this takes long. */
static const struct {
    uint8_t cm_timeout;
    uint64_t again; /* ns */
} half_open[] = {{18, 2 * SEC}, {24, 70 * SEC}};

START_TEST(sec_20_half_open_limit)
{
    teardown();
    setup_with((struct cm_params){0}, (struct cm_params){.max_conns = 8});
    listen_on_b();
    for (unsigned i = 0; i < 6; i++) {
        struct cm_connect_params p = params();
        struct cm_conn *c;
        p.qpn += i;
        p.cm_timeout = half_open[_i].cm_timeout;
        cm_connect(a.cm, &p, NULL, now, &c);
    }
    pump();
    ck_assert_uint_eq(b.nev, 5);
    ck_assert_uint_eq(cm_counters(b.cm)[CM_C_cm_rx_rate_limited], 1);
    wait_ns(half_open[_i].again);
    ck_assert_uint_eq(b.nev, 6);
}
END_TEST

/* SEC-20: above half of the limit a source must repeat its very request. A request that differs in
 * a single number is another request. */
START_TEST(sec_20_again_is_the_same_request)
{
    struct cm_connect_params p = params();
    struct cm_conn *c;
    struct cm_out out;
    struct cm_msg req, other;
    teardown();
    setup_with((struct cm_params){0}, (struct cm_params){.max_conns = 8, .lenient_addr = true});
    listen_on_b();
    for (unsigned i = 0; i < 6; i++) { /* the sixth is the first one that must be repeated */
        p.qpn += i;
        cm_connect(a.cm, &p, NULL, now, &c);
        ck_assert(cm_tx(a.cm, &out));
        cm_rx(b.cm, out.mad, sizeof(out.mad), &a.addr, &b.addr, 1, 0xFFFF, now);
    }
    cm_msg_unpack(&req, out.mad, sizeof(out.mad));
    ck_assert_uint_eq(cm_live(b.cm), 5);
    now += SEC;
    for (unsigned i = 0; i < 6; i++) {
        struct wire_addr src = a.addr;
        other = req;
        src.b[15] ^= i == 0;
        other.ca_guid += i == 1;
        other.tid += i == 2;
        other.local_id += i == 3;
        other.qpn += i == 4;
        other.psn += i == 5;
        cm_msg_pack(out.mad, &other);
        cm_rx(b.cm, out.mad, sizeof(out.mad), &src, &b.addr, 1, 0xFFFF, now);
        ck_assert_msg(cm_live(b.cm) == 5, "number %u", i);
    }
    ck_assert_uint_eq(cm_counters(b.cm)[CM_C_cm_rx_rate_limited], 7);
    cm_msg_pack(out.mad, &req);
    cm_rx(b.cm, out.mad, sizeof(out.mad), &a.addr, &b.addr, 1, 0xFFFF, now);
    ck_assert_uint_eq(cm_live(b.cm), 6);
}
END_TEST

/* SEC-20: the table is full of connections that no caller waits for: one more request is dropped
 * and counted, and a connect here fails, too. */
START_TEST(sec_20_all_places_taken)
{
    struct cm_path path;
    struct cm_listener *l;
    struct cm_conn *ca, *cb, *c;
    teardown();
    setup_with((struct cm_params){0}, (struct cm_params){.max_conns = 1});
    establish(&ca, &cb);
    b.nev = 0;
    struct cm_connect_params p = params();
    p.qpn++;
    ck_assert_int_eq(cm_connect(a.cm, &p, &a, now, &c), 0);
    cm_release(b.cm, cb, now); /* TIMEWAIT counts (CM-26) */
    pump();
    ck_assert_uint_eq(b.nev, 0);
    ck_assert_uint_eq(cm_live(b.cm), 1);
    ck_assert_uint_eq(cm_counters(b.cm)[CM_C_cm_req_backlog_drop], 1);
    p.path.local = b.addr;
    p.path.remote = a.addr;
    path = p.path;
    ck_assert_int_eq(cm_connect(b.cm, &p, &b, now, &c), -ENOSPC);
    ck_assert_int_eq(cm_sidr_request(b.cm, &path, 1, 7000, NULL, 0, NULL, now, &c), -ENOSPC);
    cm_listen(b.cm, CM_PS_UDP, &b.addr, 7000, 0, NULL, &l);
    path = params().path;
    ck_assert_int_eq(cm_sidr_request(a.cm, &path, 1, 7000, NULL, 0, NULL, now, &c), 0);
    pump();
    ck_assert_uint_eq(cm_counters(b.cm)[CM_C_cm_req_backlog_drop], 2);
    wait_ns(10 * SEC);
    ck_assert_uint_eq(b.nev, 1); /* the first to come again */
}
END_TEST

START_TEST(sec_20_unanswered_requests_expire)
{
    /* SEC-20 CM-18: a request whose peer has stopped waiting (1 + 7 times 4.096 us * 2^18) makes
     * room, although the peer went silently; the consumer gets an event. */
    struct cm_listener *l;
    lose[CM_REJ] = 1000;
    ck_assert_int_eq(cm_listen(b.cm, CM_PS_TCP, &(struct wire_addr){{0}}, ANY_PORT, 1, NULL, &l),
                     0);
    for (unsigned i = 0; i < 3; i++) { /* the backlog is one request */
        a.nev = b.nev = 0;
        struct cm_conn *ca = start(), *cb = last(&b)->conn;
        ck_assert_int_eq(last(&b)->type, CM_EV_REQ);
        cm_release(a.cm, ca, now);
        wait_ns(8 * cm_wait_ns(18) - 1);
        ck_assert_uint_eq(b.nev, 1);
        wait_ns(1);
        ck_assert_int_eq(last(&b)->type, CM_EV_UNREACHABLE);
        ck_assert_ptr_eq(last(&b)->conn, cb);
        ck_assert_int_eq(cm_accept(b.cm, cb, &accept_params, &b, now), -ECONNABORTED);
        cm_release(b.cm, cb, now);
        ck_assert_uint_eq(cm_live(b.cm), 0);
    }
}
END_TEST

START_TEST(sec_20_unanswered_requests_that_nobody_heard_of_expire)
{
    /* SEC-20: the consumer has not taken the event, and never needs to */
    struct cm_connect_params p = params();
    struct cm_conn *c;
    struct cm_event ev;
    listen_on_b();
    lose[CM_REJ] = 1000;
    cm_connect(a.cm, &p, NULL, now, &c);
    move(&a, &b);
    cm_release(a.cm, c, now);
    ck_assert_uint_eq(cm_live(b.cm), 1);
    if (_i) { /* CM-28: or its peer takes it back */
        lose[CM_REJ] = 0;
        move(&a, &b);
        ck_assert_uint_eq(cm_live(b.cm), 0);
    }
    now += 8 * cm_wait_ns(18);
    cm_expire(b.cm, now);
    ck_assert_uint_eq(cm_live(b.cm), 0);
    ck_assert(!cm_event(b.cm, &ev));
    ck_assert_ptr_null(b.cm->all);
}
END_TEST

START_TEST(sec_20_an_impatient_peer_leaves_a_second)
{
    /* SEC-20 SEC-24: a REQ with a waiting time of 131 us must not take the request away from a
     * consumer that is about to answer. */
    struct cm_connect_params p = params();
    struct cm_conn *c;
    p.cm_timeout = 4;
    p.max_retries = 1;
    lose[CM_REJ] = 1;
    listen_on_b();
    ck_assert_int_eq(cm_connect(a.cm, &p, &a, now, &c), 0);
    pump();
    wait_ns(SEC - 1);
    ck_assert_int_eq(cm_accept(b.cm, last(&b)->conn, &accept_params, &b, now), 0);
}
END_TEST

START_TEST(sec_20_an_mra_keeps_the_request)
{
    /* SEC-20 CM-19: a peer that got an MRA, and repeats its request, gets the whole time again. */
    lose[CM_REJ] = 1000;
    listen_on_b();
    start();
    struct cm_conn *cb = last(&b)->conn;
    ck_assert_int_eq(cm_mra(b.cm, cb, 24, now), 0);
    pump();
    wait_ns(8 * cm_wait_ns(18) + cm_wait_ns(24) - 1); /* the peer has asked again meanwhile */
    ck_assert_uint_ge(sent[CM_MRA], 2);
    ck_assert_uint_eq(b.nev, 1);
    wait_ns(6 * cm_wait_ns(24)); /* every time */
    ck_assert_int_eq(cm_accept(b.cm, cb, &accept_params, &b, now), 0);
}
END_TEST

/* Requests that differ from the first one in a single number of a connection's identity: CM-15,
 * CM-20, CM-21. */
static const struct {
    uint32_t id, qpn;
    uint64_t guid;
    uint32_t addr;
} neighbours[] = {
    {7, 0x123, 0xA, 0x0A000001}, {8, 0x124, 0xA, 0x0A000001}, {7, 0x123, 0xC, 0x0A000001},
    {7, 0x123, 0xA, 0x0A000003}, {7, 0x123, 0xA, 0x0A000001}, /* the first once more */
};

START_TEST(sec_19_neighbours_in_a_bucket)
{
    struct cm_connect_params p = params();
    struct cm_conn *c;
    struct cm_out out;
    struct cm_msg req;
    uint8_t mad[CM_MAD_LEN];
    teardown();
    setup_with((struct cm_params){0}, (struct cm_params){.lenient_addr = true});
    b.cm->bucket_mask = 0; /* all in one */
    listen_on_b();
    cm_connect(a.cm, &p, NULL, now, &c);
    ck_assert(cm_tx(a.cm, &out));
    cm_msg_unpack(&req, out.mad, sizeof(out.mad));
    for (unsigned i = 0; i < 5; i++) {
        const struct wire_addr src = wire_addr_v4(neighbours[i].addr);
        req.local_id = neighbours[i].id;
        req.qpn = neighbours[i].qpn;
        req.ca_guid = neighbours[i].guid;
        cm_msg_pack(mad, &req);
        cm_rx(b.cm, mad, sizeof(mad), &src, &b.addr, 1, 0xFFFF, now);
    }
    listen_to(&b);
    ck_assert_uint_eq(b.nev, 4);
    ck_assert_uint_eq(cm_counters(b.cm)[CM_C_cm_dup_req], 1);
    ck_assert_uint_eq(cm_counters(b.cm)[CM_C_cm_stale], 0);
    /* Each is found by its own id, and leaves the others where they are. */
    static const unsigned order[] = {2, 0, 3, 1};
    for (unsigned i = 0; i < 4; i++) {
        struct cm_conn *cb = b.ev[order[i]].conn;
        const struct wire_addr src = wire_addr_v4(neighbours[order[i]].addr);
        const struct cm_msg rej = {.attr = CM_REJ,
                                   .local_id = neighbours[order[i]].id,
                                   .remote_id = cb->local_id,
                                   .msg_id = CM_ABOUT_REQ,
                                   .reason = CM_REJ_CONSUMER};
        cm_msg_pack(mad, &rej);
        cm_rx(b.cm, mad, sizeof(mad), &src, &b.addr, 1, 0xFFFF, now);
        listen_to(&b);
        ck_assert_int_eq(last(&b)->type, CM_EV_REJECTED);
        ck_assert_ptr_eq(last(&b)->conn, cb);
        ck_assert_uint_eq(cm_live(b.cm), 3 - i);
        cm_release(b.cm, cb, now);
        for (unsigned k = 0; k < 4; k++) {
            const struct wire_addr at = wire_addr_v4(neighbours[order[k]].addr);
            const struct cm_conn *still = k > i ? b.ev[order[k]].conn : NULL;
            ck_assert_ptr_eq(
                cm_find_remote(b.cm, &at, neighbours[order[k]].guid, neighbours[order[k]].id),
                still);
            ck_assert_ptr_eq(
                cm_find_qpn(b.cm, &at, neighbours[order[k]].guid, neighbours[order[k]].qpn), still);
        }
    }
}
END_TEST

/* SEC-20 SEC-24: a peer that never answers names a waiting time of 4.9 hours, 16 times 18 minutes.
 * Its request is kept for five minutes, and our answer to it for five more. */
START_TEST(sec_20_half_open_for_minutes_at_most)
{
    struct cm_connect_params p = params();
    struct cm_conn *c;
    p.cm_timeout = 31;
    p.max_retries = 15;
    listen_on_b();
    lose[CM_REJ] = lose[CM_REP] = 1000;
    ck_assert_int_eq(cm_connect(a.cm, &p, &a, now, &c), 0);
    pump();
    struct cm_conn *cb = last(&b)->conn;
    cm_release(a.cm, c, now);
    wait_ns(300 * SEC - 1);
    ck_assert_uint_eq(b.nev, 1);
    if (_i == 1) {
        ck_assert_int_eq(cm_accept(b.cm, cb, &accept_params, &b, now), 0);
        pump();
        wait_ns(300 * SEC - 16); /* divided by 16 */
        ck_assert_uint_eq(b.nev, 1);
        ck_assert_uint_eq(sent[CM_REP], 16);
        wait_ns(16);
    } else {
        wait_ns(1);
    }
    ck_assert_int_eq(last(&b)->type, CM_EV_UNREACHABLE);
    cm_release(b.cm, cb, now);
}
END_TEST

/* CM-34: the backlog is of requests that wait for an answer: accepted ones, whether their peers are
 * there or not, make room. */
START_TEST(cm_34_accepted_ones_make_room)
{
    static const struct wire_addr any;
    struct cm_listener *l;
    cm_listen(b.cm, CM_PS_TCP, &any, ANY_PORT, 2, NULL, &l);
    lose[CM_REP] = 1000;
    for (unsigned i = 0; i < 6; i++) {
        struct cm_connect_params p = params();
        struct cm_accept_params answer = accept_params;
        struct cm_conn *c;
        p.qpn += i;
        answer.qpn += i;
        cm_connect(a.cm, &p, NULL, now, &c);
        pump();
        ck_assert_uint_eq(b.nev, i + 1);
        ck_assert_int_eq(cm_accept(b.cm, last(&b)->conn, &answer, &b, now), 0);
    }
    ck_assert_uint_eq(cm_counters(b.cm)[CM_C_cm_req_backlog_drop], 0);
    cm_unlisten(b.cm, l, now);
}
END_TEST

/* CM-34: a host that starts a thousand connections at once, and does nothing but wait, has them:
 * half of the backlog takes the first, and the others come again once. */
START_TEST(cm_34_a_thousand_connections_at_once)
{
    static const struct wire_addr any;
    struct cm_listener *l;
    struct cm_event ev;
    unsigned accepted = 0;
    cm_listen(b.cm, CM_PS_TCP, &any, ANY_PORT, 0, NULL, &l);
    for (unsigned i = 0; i < 1000; i++) {
        struct cm_connect_params p = params();
        struct cm_conn *c;
        p.qpn += i;
        ck_assert_int_eq(cm_connect(a.cm, &p, NULL, now, &c), 0);
    }
    for (unsigned round = 0; round < 2; round++) {
        while (move(&a, &b)) /* all requests, before any answer */
            ;
        while (cm_event(b.cm, &ev)) {
            struct cm_accept_params answer = accept_params;
            if (ev.type != CM_EV_REQ)
                continue;
            answer.qpn += accepted++;
            ck_assert_int_eq(cm_accept(b.cm, ev.conn, &answer, &b, now), 0);
        }
        while (move(&b, &a))
            ;
        while (cm_event(a.cm, &ev)) {
            if (ev.type == CM_EV_REP)
                ck_assert_int_eq(cm_rtu(a.cm, ev.conn, NULL, 0, now), 0);
        }
        while (move(&a, &b))
            ;
        now += 2 * SEC;
        cm_expire(a.cm, now);
    }
    ck_assert_uint_eq(accepted, 1000);
}
END_TEST

static void count_left(void *account)
{
    ++*(unsigned *)account;
}

/* A place in the table is its account's until TIMEWAIT is over, though no id has the connection. */
START_TEST(cm_26_timewait_is_charged)
{
    unsigned left[2] = {0};
    struct cm_conn *ca, *cb;
    teardown();
    setup_with((struct cm_params){.left = count_left}, (struct cm_params){.left = count_left});
    establish(&ca, &cb);
    cm_conn_set_account(ca, &left[0]);
    cm_conn_set_account(cb, &left[1]);
    cm_release(a.cm, ca, now);
    cm_release(b.cm, cb, now);
    pump();
    wait_ns(SEC - 1);
    ck_assert_uint_eq(left[0] + left[1], 0);
    ck_assert_uint_eq(cm_live(a.cm) + cm_live(b.cm), 2);
    wait_ns(SEC);
    ck_assert_uint_eq(left[0], 1);
    ck_assert_uint_eq(left[1], 1);
    ck_assert_uint_eq(cm_live(a.cm) + cm_live(b.cm), 0);
    ca = start(); /* without an owner: no consumer gets an event */
    cm_release(a.cm, ca, now);
    ca = start();
    a.cm->params.left = NULL; /* no accounts */
    cm_conn_set_account(ca, &left[0]);
    cm_release(a.cm, ca, now);
    ck_assert_uint_eq(left[0], 1);
}
END_TEST

/* Listeners whose ports have much in common, each with three requests, of which the second has its
 * answer: the end of one is that of its own two others. */
START_TEST(cm_34_listeners_apart)
{
    static const struct wire_addr any;
    struct cm_listener *l[3], *again;
    for (unsigned i = 0; i < 3; i++)
        cm_listen(b.cm, CM_PS_TCP, &any, (uint16_t)(ANY_PORT + 1024 * i), 0, NULL, &l[i]);
    for (unsigned i = 0; i < 9; i++) {
        struct cm_connect_params p = params();
        struct cm_conn *c;
        p.dport = (uint16_t)(ANY_PORT + i / 3 * 1024);
        p.qpn += i;
        ck_assert_int_eq(cm_connect(a.cm, &p, NULL, now, &c), 0);
    }
    pump();
    ck_assert_uint_eq(b.nev, 9);
    for (unsigned i = 0; i < 9; i++)
        ck_assert_ptr_eq(b.ev[i].listener, l[i / 3]);
    for (unsigned i = 1; i < 9; i += 3)
        ck_assert_int_eq(cm_accept(b.cm, b.ev[i].conn, &accept_params, NULL, now), 0);
    cm_unlisten(b.cm, l[1], now);
    for (unsigned i = 0; i < 9; i++)
        ck_assert_int_eq(cm_may_accept(b.ev[i].conn), i % 3 == 1   ? -EINVAL
                                                      : i / 3 == 1 ? -ECONNABORTED
                                                                   : 0);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_int_eq(cm_listens(b.cm, CM_PS_TCP, (uint16_t)(ANY_PORT + 1024 * i)), i != 1);
    ck_assert_int_eq(cm_listen(b.cm, CM_PS_TCP, &b.addr, ANY_PORT, 0, NULL, &again), -EADDRINUSE);
    ck_assert_int_eq(cm_listen(b.cm, CM_PS_TCP, &any, ANY_PORT + 1024, 0, NULL, &again), 0);
    cm_unlisten(b.cm, again, now);
    cm_unlisten(b.cm, l[2], now);
    cm_unlisten(b.cm, l[0], now);
    ck_assert_uint_eq(cm_live(b.cm), 3); /* the accepted ones */
}
END_TEST

/* Send n DREQs for connections unknown to b; returns the number of answers. */
static unsigned hang_up_nothing(unsigned n)
{
    const struct cm_msg dreq = {.attr = CM_DREQ, .local_id = 1, .remote_id = 2, .remote_qpn = 3};
    uint8_t mad[CM_MAD_LEN];
    struct cm_out out;
    unsigned answers = 0;
    cm_msg_pack(mad, &dreq);
    for (unsigned i = 0; i < n; i++)
        cm_rx(b.cm, mad, sizeof(mad), &a.addr, &b.addr, 1, 0xFFFF, now);
    while (cm_tx(b.cm, &out)) {
        ck_assert_uint_eq(out.mad[17], CM_DREP);
        answers++;
    }
    return answers;
}

/* CM-24: sources that ask about unknown connections get 10000 answers a second, 1000 at once, and
 * no more than the send queue holds. */
START_TEST(cm_24_answers_are_rationed)
{
    now = 0; /* when nothing has been saved up */
    ck_assert_uint_eq(hang_up_nothing(600), 512);
    ck_assert_uint_eq(cm_counters(b.cm)[CM_C_cm_rx_rate_limited], 88);
    ck_assert_uint_eq(hang_up_nothing(500), 488);
    ck_assert_uint_eq(hang_up_nothing(10), 0);
    now += SEC / 100;
    ck_assert_uint_eq(hang_up_nothing(200), 100);
    now += 100 * SEC;
    ck_assert_uint_eq(hang_up_nothing(512), 512);
    ck_assert_uint_eq(hang_up_nothing(512), 488);
}
END_TEST

/* CM-18: a message given up before it was sent does not affect others that wait before or after it.
 */
START_TEST(cm_18_others_are_sent)
{
    for (unsigned gone = 0; gone < 3; gone++) {
        struct cm_conn *c[3];
        struct cm_out out;
        struct cm_msg m;
        unsigned reqs = 0;
        for (unsigned i = 0; i < 3; i++) {
            struct cm_connect_params p = params();
            ck_assert_int_eq(cm_connect(a.cm, &p, NULL, now, &c[i]), 0);
        }
        uint32_t id = c[gone]->local_id;
        cm_release(a.cm, c[gone], now);
        struct cm_connect_params p = params();
        ck_assert_int_eq(cm_connect(a.cm, &p, NULL, now, &c[gone]), 0);
        while (cm_tx(a.cm, &out)) {
            ck_assert_int_eq(cm_msg_unpack(&m, out.mad, sizeof(out.mad)), 0);
            ck_assert(m.attr == CM_REJ || (m.attr == CM_REQ && m.local_id != id));
            reqs += m.attr == CM_REQ;
        }
        ck_assert_uint_eq(reqs, 3);
    }
}
END_TEST

START_TEST(cm_15_ids_are_random_and_unique)
{
    uint32_t seen[200];
    for (unsigned i = 0; i < 200; i++) {
        struct cm_connect_params p = params();
        struct cm_conn *c;
        struct cm_out out;
        struct cm_msg m;
        cm_connect(a.cm, &p, NULL, now, &c);
        cm_tx(a.cm, &out);
        cm_msg_unpack(&m, out.mad, sizeof(out.mad));
        seen[i] = m.local_id;
        ck_assert_uint_ne(m.local_id, 0); /* CM-15 */
        for (unsigned k = 0; k < i; k++)
            ck_assert(seen[k] != m.local_id);
        if (i > 0)
            ck_assert(seen[i] - seen[i - 1] > 1 && seen[i - 1] - seen[i] > 1);
    }
}
END_TEST

START_TEST(cm_release_in_every_state_leaks_nothing)
{
    struct cm_conn *c;
    listen_on_b();
    for (unsigned stage = 0; stage < 6; stage++) {
        c = start();
        struct cm_conn *cb = last(&b)->conn;
        if (stage >= 1)
            cm_accept(b.cm, cb, &accept_params, &b, now);
        if (stage >= 2)
            pump();
        if (stage >= 3)
            cm_rtu(a.cm, c, NULL, 0, now);
        if (stage >= 4)
            pump();
        if (stage >= 5)
            cm_disconnect(b.cm, cb, NULL, 0, now);
        cm_release(a.cm, c, now);
        pump();
        cm_release(b.cm, cb, now);
        wait_ns(30 * SEC);
        ck_assert_msg(cm_live(a.cm) == 0 && cm_live(b.cm) == 0, "stage %u: %u %u left", stage,
                      cm_live(a.cm), cm_live(b.cm));
        a.nev = b.nev = 0;
    }
}
END_TEST

/* A consumer that releases an id before any event gets none. */
START_TEST(cm_release_with_events_in_the_queue)
{
    struct cm_conn *ca, *cb;
    struct cm_event ev;
    establish(&ca, &cb);
    cm_disconnect(a.cm, ca, NULL, 0, now);
    while (move(&a, &b) || move(&b, &a))
        ;
    now += SEC;
    cm_expire(a.cm, now);
    cm_expire(b.cm, now); /* DISCONNECTED and TIMEWAIT_EXIT wait */
    ck_assert_uint_eq(ca->ev_refs, 2);
    cm_release(a.cm, ca, now);
    cm_release(b.cm, cb, now);
    ck_assert(!cm_event(a.cm, &ev));
    ck_assert(!cm_event(b.cm, &ev));
    ck_assert_ptr_null(a.cm->all);
    ck_assert_ptr_null(b.cm->all);
}
END_TEST

START_TEST(cm_unlisten_refuses_what_waits)
{
    struct cm_listener *l = listen_on_b();
    struct cm_listener *again;
    ck_assert_int_eq(cm_listen(b.cm, CM_PS_TCP, &(struct wire_addr){0}, ANY_PORT, 0, NULL, &again),
                     -EADDRINUSE);
    struct cm_conn *c = start();
    struct cm_conn *cb = last(&b)->conn;
    cm_unlisten(b.cm, l, now);
    pump();
    ck_assert_int_eq(last(&a)->type, CM_EV_REJECTED);
    ck_assert_uint_eq(last(&a)->reason, CM_REJ_INVALID_SERVICE_ID);
    ck_assert_int_eq(cm_accept(b.cm, cb, &accept_params, &b, now), -ECONNABORTED);
    cm_release(b.cm, cb, now);
    cm_release(a.cm, c, now);
    ck_assert_uint_eq(cm_live(b.cm), 0);
}
END_TEST

/* SEC-24: a peer's times are limited. */
START_TEST(sec_24_waits)
{
    static const struct {
        unsigned exponent;
        uint64_t ns;
    } waits[] = {{0, 4096ull << 4},   {3, 4096ull << 4},   {4, 4096ull << 4},
                 {18, 4096ull << 18}, {28, 4096ull << 28}, {31, 4096ull << 28}};
    for (unsigned i = 0; i < sizeof(waits) / sizeof(waits[0]); i++)
        ck_assert_uint_eq(cm_wait_ns(waits[i].exponent), waits[i].ns);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cm limits");
    TCase *t = tcase_create("cm limits");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, sec_21_forgeries_do_nothing, 0,
                        sizeof(forgeries) / sizeof(forgeries[0]));
    tcase_add_test(t, cm_34_backlog);
    tcase_add_test(t, sec_24_waits);
    tcase_add_loop_test(t, sec_20_half_open_limit, 0, sizeof(half_open) / sizeof(half_open[0]));
    tcase_add_test(t, sec_20_again_is_the_same_request);
    tcase_add_test(t, sec_20_all_places_taken);
    tcase_add_test(t, sec_20_a_flood_of_made_up_hosts_is_over_in_seconds);
    tcase_add_test(t, sec_20_an_answer_to_a_made_up_host_ends_in_seconds);
    tcase_add_test(t, sec_20_a_host_that_is_there_is_waited_for);
    tcase_add_test(t, sec_20_who_has_many_pending_is_not_waited_for_long);
    tcase_add_test(t, sec_20_unanswered_requests_expire);
    tcase_add_loop_test(t, sec_20_unanswered_requests_that_nobody_heard_of_expire, 0, 2);
    tcase_add_test(t, sec_20_an_impatient_peer_leaves_a_second);
    tcase_add_test(t, sec_20_an_mra_keeps_the_request);
    tcase_add_test(t, sec_19_neighbours_in_a_bucket);
    tcase_add_loop_test(t, sec_20_half_open_for_minutes_at_most, 0, 2);
    tcase_add_test(t, cm_34_accepted_ones_make_room);
    tcase_add_test(t, cm_34_a_thousand_connections_at_once);
    tcase_add_test(t, cm_26_timewait_is_charged);
    tcase_add_test(t, cm_34_listeners_apart);
    tcase_add_test(t, cm_24_answers_are_rationed);
    tcase_add_test(t, cm_18_others_are_sent);
    tcase_add_test(t, cm_15_ids_are_random_and_unique);
    tcase_add_test(t, cm_release_in_every_state_leaks_nothing);
    tcase_add_test(t, cm_release_with_events_in_the_queue);
    tcase_add_test(t, cm_unlisten_refuses_what_waits);
    suite_add_tcase(s, t);
    return unit_run(s);
}
