/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connections end: one side hangs up, is gone, or comes again and knows nothing of the old one.
 */
#include <string.h>

#include "cm_pair.h"
#include "unit.h"

START_TEST(cm_24_disconnects)
{
    struct cm_conn *ca, *cb;
    struct cm_out out;
    establish(&ca, &cb);
    /* both close at once */
    cm_disconnect(a.cm, ca, NULL, 0, now);
    cm_disconnect(b.cm, cb, NULL, 0, now);
    pump();
    ck_assert_int_eq(last(&a)->type, CM_EV_DISCONNECTED);
    ck_assert_int_eq(last(&b)->type, CM_EV_DISCONNECTED);
    unsigned dreqs = sent[CM_DREQ];
    /* a DREQ in TIMEWAIT, and one for an unknown connection, are answered */
    struct cm_msg dreq = {.attr = CM_DREQ, .tid = 9, .local_id = 77, .remote_id = 0x999};
    uint8_t mad[CM_MAD_LEN];
    cm_msg_pack(mad, &dreq);
    cm_rx(b.cm, mad, sizeof(mad), &a.addr, &b.addr, 1, 0xFFFF, now);
    ck_assert(cm_tx(b.cm, &out));
    ck_assert_uint_eq(out.mad[17], CM_DREP);
    ck_assert_uint_eq(sent[CM_DREQ], dreqs);
}
END_TEST

START_TEST(cm_24_lost_drep)
{
    struct cm_conn *ca, *cb;
    establish(&ca, &cb);
    lose[CM_DREP] = 2;
    cm_disconnect(a.cm, ca, NULL, 0, now);
    pump();
    ck_assert_int_eq(last(&b)->type, CM_EV_DISCONNECTED);
    wait_ns(5 * SEC); /* b's TIMEWAIT is over: the last answer is stateless */
    ck_assert_int_eq(a.ev[2].type, CM_EV_DISCONNECTED);
    ck_assert_uint_ge(sent[CM_DREP], 3);
}
END_TEST

START_TEST(cm_24_dreq_instead_of_a_rep)
{
    /* CM-24: the passive side accepted, every REP was lost, and it has hung up since. */
    listen_on_b();
    struct cm_conn *ca = start();
    struct cm_conn *cb = last(&b)->conn;
    lose[CM_REP] = 1;
    cm_accept(b.cm, cb, &accept_params, &b, now);
    pump();
    cm_disconnect(b.cm, cb, NULL, 0, now);
    pump();
    ck_assert_int_eq(last(&a)->type, CM_EV_UNREACHABLE);
    ck_assert(last(&a)->hung_up);
    ck_assert_int_eq(last(&b)->type, CM_EV_DISCONNECTED);
    ck_assert_uint_eq(sent[CM_DREQ], 1);
    cm_release(a.cm, ca, now);
    ck_assert_uint_eq(cm_live(a.cm), 0);
}
END_TEST

START_TEST(cm_25_peer_is_gone)
{
    struct cm_conn *ca, *cb;
    establish(&ca, &cb);
    lose[CM_DREQ] = 100;
    cm_disconnect(a.cm, ca, NULL, 0, now);
    pump();
    wait_ns(9 * (4096ull << 18) + SEC);
    ck_assert_int_eq(a.ev[2].type, CM_EV_DISCONNECTED);
    ck_assert_uint_eq(sent[CM_DREQ], 8);
}
END_TEST

START_TEST(cm_21_stale_connection)
{
    /* CM-21 */
    /* The peer restarts and uses its QPN again while we still hold the old connection. */
    struct cm_conn *ca, *cb;
    establish(&ca, &cb);
    cm_destroy(a.cm);
    a.nev = 0;
    a.cm = cm_create(&(struct cm_params){.key = {3}, .ca_guid = 0xA});
    struct cm_conn *c = start();
    ck_assert_int_eq(last(&a)->type, CM_EV_REJECTED);
    ck_assert_uint_eq(last(&a)->reason, CM_REJ_STALE_CONN);
    ck_assert_uint_eq(sent[CM_DREQ], 1);
    ck_assert_int_eq(last(&b)->type, CM_EV_DISCONNECTED); /* by the stateless DREP */
    cm_release(a.cm, c, now);
    start(); /* and now it may connect */
    ck_assert_int_eq(last(&b)->type, CM_EV_REQ);
}
END_TEST

/* Send a forged REQ in the name of the peer's host, with the number of its queue pair. The forger
 * knows no communication id, and gets no answer. */
static void forge_req(uint32_t local_id)
{
    struct cm_params pc = {.key = {9}, .ca_guid = 0xA};
    struct cm_connect_params p = params();
    struct cm *forger = cm_create(&pc);
    struct cm_conn *c;
    struct cm_out out;
    struct cm_msg req;
    ck_assert_int_eq(cm_connect(forger, &p, NULL, now, &c), 0);
    ck_assert(cm_tx(forger, &out));
    cm_msg_unpack(&req, out.mad, sizeof(out.mad));
    req.local_id = local_id;
    cm_msg_pack(out.mad, &req);
    cm_rx(b.cm, out.mad, sizeof(out.mad), &a.addr, &b.addr, 1, 0xFFFF, now);
    cm_destroy(forger);
}

START_TEST(cm_21_a_forged_req_ends_nothing)
{
    /* CM-21: both ends live; another host that names the queue pair ends no connection, however
     * often it tries. */
    struct cm_conn *ca, *cb;
    establish(&ca, &cb);
    a.nev = b.nev = 0;
    for (unsigned i = 0; i < 1000; i++) {
        forge_req(0xDEAD0000 + i);
        pump();
        wait_ns(SEC / 100);
    }
    wait_ns(100 * SEC);
    ck_assert_uint_eq(a.nev, 0);
    ck_assert_uint_eq(b.nev, 0);
    ck_assert_str_eq(cm_conn_state_name(ca), "ESTABLISHED");
    ck_assert_str_eq(cm_conn_state_name(cb), "ESTABLISHED");
    ck_assert_uint_eq(cm_counters(b.cm)[CM_C_cm_stale], 1000);
    ck_assert_uint_eq(cm_counters(b.cm)[CM_C_cm_challenges], 3); /* in ten seconds */
    ck_assert_uint_eq(cm_counters(b.cm)[CM_C_cm_stale_confirmed], 0);
    ck_assert_uint_eq(sent[CM_DREQ], 3);
    ck_assert_uint_eq(cm_live(b.cm), 1);
    /* and it ends normally */
    cm_disconnect(a.cm, ca, NULL, 0, now);
    pump();
    ck_assert_int_eq(last(&b)->type, CM_EV_DISCONNECTED);
}
END_TEST

START_TEST(cm_21_limits_come_first)
{
    /* CM-21 CM-34: a REQ for which there is no room isn't answered, and starts no challenge. */
    struct cm_conn *ca, *cb;
    establish(&ca, &cb);
    for (unsigned i = 0; i < CM_SRC_BUCKETS; i++)
        b.cm->src_pending[i] = 512; /* half of the listener's backlog */
    forge_req(0xDEAD);
    pump();
    ck_assert_uint_eq(cm_counters(b.cm)[CM_C_cm_req_backlog_drop], 1);
    ck_assert_uint_eq(cm_counters(b.cm)[CM_C_cm_stale], 0);
    ck_assert_uint_eq(cm_counters(b.cm)[CM_C_cm_challenges], 0);
    ck_assert_uint_eq(sent[CM_REJ], 0);
    ck_assert_uint_eq(sent[CM_DREQ], 0);
    for (unsigned i = 0; i < CM_SRC_BUCKETS; i++)
        b.cm->src_pending[i] = 0;
}
END_TEST

START_TEST(cm_21_a_reply_waits_as_long_as_ever)
{
    /* CM-21: a challenge while a REP waits for its RTU leaves the REP's timer alone. */
    listen_on_b();
    start();
    struct cm_conn *cb = last(&b)->conn;
    lose[CM_REP] = 1;
    ck_assert_int_eq(cm_accept(b.cm, cb, &accept_params, &b, now), 0);
    pump();
    ck_assert_str_eq(cm_conn_state_name(cb), "REP_SENT");
    const uint64_t repeats = cb->deadline;
    now += SEC / 1000;
    forge_req(0xDEAD);
    pump();
    ck_assert_uint_eq(cm_counters(b.cm)[CM_C_cm_challenges], 1);
    ck_assert_uint_eq(cb->deadline, repeats);
}
END_TEST

START_TEST(cm_21_only_the_answer_to_the_challenge_counts)
{
    /* CM-21 SEC-21: a DREP with the ids but not the TID of the challenge, or long after it. */
    struct cm_conn *ca, *cb;
    struct cm_out out;
    uint8_t mad[CM_MAD_LEN];
    establish(&ca, &cb);
    b.nev = 0;
    forge_req(0xDEAD);
    next_msg(&b, CM_REJ, &out);
    struct cm_msg dreq = next_msg(&b, CM_DREQ, &out);
    ck_assert_uint_eq(dreq.local_id, cb->local_id);
    ck_assert_uint_eq(dreq.remote_id, ca->local_id);
    ck_assert_uint_eq(dreq.remote_qpn, 0);
    struct cm_msg drep = {.attr = CM_DREP, .local_id = ca->local_id, .remote_id = cb->local_id};
    for (unsigned i = 0; i < 3; i++) {
        drep.tid = i == 0 ? 0 : i == 1 ? dreq.tid + 1 : dreq.tid;
        if (i == 2)
            wait_ns(10 * SEC);
        cm_msg_pack(mad, &drep);
        cm_rx(b.cm, mad, sizeof(mad), &a.addr, &b.addr, 1, 0xFFFF, now);
        listen_to(&b);
        ck_assert_uint_eq(b.nev, 0);
        ck_assert_str_eq(cm_conn_state_name(cb), "ESTABLISHED");
    }
}
END_TEST

START_TEST(cm_21_a_challenge_is_repeated)
{
    /* CM-21: the peer has restarted, and the first challenges get lost. */
    struct cm_conn *ca, *cb;
    establish(&ca, &cb);
    cm_destroy(a.cm);
    a.cm = cm_create(&(struct cm_params){.key = {3}, .ca_guid = 0xA});
    lose[CM_DREQ] = 2;
    start();
    wait_ns(2 * SEC - 1);
    ck_assert_str_eq(cm_conn_state_name(cb), "ESTABLISHED");
    wait_ns(1);
    ck_assert_int_eq(last(&b)->type, CM_EV_DISCONNECTED);
    ck_assert_str_eq(cm_conn_state_name(cb), "TIMEWAIT");
    ck_assert_uint_eq(cm_counters(b.cm)[CM_C_cm_stale_confirmed], 1);
    ck_assert_uint_eq(sent[CM_DREQ], 3);
}
END_TEST

START_TEST(cm_21_another_challenge_later)
{
    /* CM-21: the peer restarts while a forger has used up the challenge: the next one ends it. */
    struct cm_conn *ca, *cb;
    establish(&ca, &cb);
    forge_req(0xDEAD);
    pump();
    wait_ns(5 * SEC); /* the series is over, the pause isn't */
    cm_destroy(a.cm);
    a.cm = cm_create(&(struct cm_params){.key = {3}, .ca_guid = 0xA});
    start();
    ck_assert_str_eq(cm_conn_state_name(cb), "ESTABLISHED");
    ck_assert_uint_eq(cm_counters(b.cm)[CM_C_cm_rx_rate_limited], 1);
    wait_ns(5 * SEC);
    start();
    ck_assert_str_eq(cm_conn_state_name(cb), "TIMEWAIT");
}
END_TEST

START_TEST(sec_21_a_rej_needs_both_ids)
{
    /* SEC-21 CM-28: reason 4 with our peer's GUID and id, but without ours. */
    struct cm_conn *ca, *cb;
    uint8_t mad[CM_MAD_LEN];
    establish(&ca, &cb);
    const struct cm_msg rej = {.attr = CM_REJ,
                               .local_id = ca->local_id,
                               .msg_id = CM_ABOUT_REP,
                               .reason = CM_REJ_TIMEOUT,
                               .ari_len = 8,
                               .ari = {0, 0, 0, 0, 0, 0, 0, 0xA}};
    cm_msg_pack(mad, &rej);
    cm_rx(b.cm, mad, sizeof(mad), &a.addr, &b.addr, 1, 0xFFFF, now);
    ck_assert_str_eq(cm_conn_state_name(cb), "ESTABLISHED");
    ck_assert_uint_eq(cm_counters(b.cm)[CM_C_cm_rx_bad_id], 1);
}
END_TEST

START_TEST(cm_21_stale_before_it_was_established)
{
    /* CM-21: the peer restarts before it has sent its RTU: our connection with it ends, too. */
    struct cm_conn *ca, *cb;
    listen_on_b();
    ca = start();
    cb = last(&b)->conn;
    ck_assert_int_eq(cm_accept(b.cm, cb, &accept_params, &b, now), 0);
    pump();
    if (_i) {
        const struct cm_msg mra = {.attr = CM_MRA,
                                   .local_id = ca->local_id,
                                   .remote_id = cb->local_id,
                                   .msg_id = CM_ABOUT_REP,
                                   .service_timeout = 20};
        uint8_t mad[CM_MAD_LEN];
        cm_msg_pack(mad, &mra);
        cm_rx(b.cm, mad, sizeof(mad), &a.addr, &b.addr, 1, 0xFFFF, now);
    }
    ck_assert_str_eq(cm_conn_state_name(cb), _i ? "MRA_REP_RCVD" : "REP_SENT");
    cm_destroy(a.cm);
    a.nev = 0;
    a.cm = cm_create(&(struct cm_params){.key = {3}, .ca_guid = 0xA});
    start();
    ck_assert_uint_eq(last(&a)->reason, CM_REJ_STALE_CONN);
    ck_assert_int_eq(last(&b)->type, CM_EV_DISCONNECTED);
    ck_assert_ptr_eq(last(&b)->conn, cb);
    ck_assert_str_eq(cm_conn_state_name(cb), "TIMEWAIT");
}
END_TEST

START_TEST(cm_21_stale_reply)
{
    /* CM-21: the passive side restarts, and answers with a QPN of a connection that we still hold.
     * It gets a REJ and a challenge of the old connection; after the end of that it may use the
     * QPN. */
    struct cm_conn *ca, *cb;
    establish(&ca, &cb);
    cm_destroy(b.cm);
    b.nev = 0;
    b.cm = cm_create(&(struct cm_params){.key = {3}, .ca_guid = 0xB});
    listen_on_b();
    for (unsigned i = 0; i < 2; i++) {
        struct cm_connect_params p = params();
        struct cm_conn *c;
        p.qpn += 1 + i;
        ck_assert_int_eq(cm_connect(a.cm, &p, &a, now, &c), 0);
        pump();
        ck_assert_int_eq(cm_accept(b.cm, last(&b)->conn, &accept_params, &b, now), 0);
        a.nev = 0;
        pump();
        if (i == 0) {
            ck_assert_int_eq(last(&b)->type, CM_EV_REJECTED);
            ck_assert_uint_eq(last(&b)->reason, CM_REJ_STALE_CONN);
            ck_assert_uint_eq(a.nev, 2);
            ck_assert_int_eq(a.ev[0].type, CM_EV_REJECTED);
            ck_assert_uint_eq(a.ev[0].reason, CM_REJ_STALE_CONN);
            ck_assert_ptr_eq(a.ev[0].conn, c);
            ck_assert_str_eq(cm_conn_state_name(c), "CLOSED");
            ck_assert_int_eq(a.ev[1].type, CM_EV_DISCONNECTED);
            ck_assert_ptr_eq(a.ev[1].conn, ca);
            ck_assert_str_eq(cm_conn_state_name(ca), "TIMEWAIT");
            ck_assert_uint_eq(cm_counters(a.cm)[CM_C_cm_stale], 1);
            cm_release(b.cm, last(&b)->conn, now);
        } else {
            ck_assert_int_eq(last(&a)->type, CM_EV_REP);
        }
    }
}
END_TEST

START_TEST(cm_21_connected_with_itself)
{
    /* CM-21: a queue pair may be its own peer: the other end of the connection that is being made
     * isn't an old one. */
    static const struct wire_addr any;
    struct cm_connect_params p = params();
    struct cm_accept_params accept = accept_params;
    struct cm_listener *l;
    struct cm_conn *c;
    struct cm_out out;
    ck_assert_int_eq(cm_listen(a.cm, CM_PS_TCP, &any, ANY_PORT, 0, &a, &l), 0);
    p.path.remote = a.addr;
    accept.qpn = p.qpn;
    ck_assert_int_eq(cm_connect(a.cm, &p, &a, now, &c), 0);
    for (unsigned i = 0; i < 2; i++) {
        while (cm_tx(a.cm, &out))
            cm_rx(a.cm, out.mad, sizeof(out.mad), &a.addr, &a.addr, 1, 0xFFFF, now);
        listen_to(&a);
        ck_assert_int_eq(last(&a)->type, i ? CM_EV_REP : CM_EV_REQ);
        if (i == 0)
            ck_assert_int_eq(cm_accept(a.cm, last(&a)->conn, &accept, &a, now), 0);
    }
}
END_TEST

/* CM-14: a DREQ is an exchange of its sender's: the passive side doesn't go on with the id that the
 * active side chose for the REQ. */
START_TEST(cm_14_a_dreq_of_the_passive_side)
{
    struct cm_conn *ca, *cb;
    struct cm_out out, again;
    struct cm_msg req, dreq, drep;
    struct cm_connect_params p = params();
    listen_on_b();
    ck_assert_int_eq(cm_connect(a.cm, &p, &a, now, &ca), 0);
    ck_assert(cm_tx(a.cm, &out));
    cm_msg_unpack(&req, out.mad, sizeof(out.mad));
    cm_rx(b.cm, out.mad, sizeof(out.mad), &a.addr, &b.addr, 1, 0xFFFF, now);
    listen_to(&b);
    cb = last(&b)->conn;
    ck_assert_int_eq(cm_accept(b.cm, cb, &accept_params, &b, now), 0);
    pump();
    ck_assert_int_eq(cm_rtu(a.cm, ca, NULL, 0, now), 0);
    pump();
    ck_assert_int_eq(cm_disconnect(b.cm, cb, NULL, 0, now), 0);
    ck_assert(cm_tx(b.cm, &out));
    cm_msg_unpack(&dreq, out.mad, sizeof(out.mad));
    ck_assert_uint_eq(dreq.attr, CM_DREQ);
    ck_assert_uint_ne(dreq.tid, req.tid);
    ck_assert_uint_ne(dreq.tid, 0);
    now += 2 * SEC;
    cm_expire(b.cm, now);
    ck_assert(cm_tx(b.cm, &again)); /* CM-18: repeated as it was */
    ck_assert_mem_eq(again.mad, out.mad, CM_MAD_LEN);
    cm_rx(a.cm, out.mad, sizeof(out.mad), &b.addr, &a.addr, 1, 0xFFFF, now);
    ck_assert(cm_tx(a.cm, &out));
    cm_msg_unpack(&drep, out.mad, sizeof(out.mad));
    ck_assert_uint_eq(drep.attr, CM_DREP);
    ck_assert_uint_eq(drep.tid, dreq.tid);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cm end");
    TCase *t = tcase_create("cm end");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, cm_24_disconnects);
    tcase_add_test(t, cm_24_lost_drep);
    tcase_add_test(t, cm_24_dreq_instead_of_a_rep);
    tcase_add_test(t, cm_25_peer_is_gone);
    tcase_add_test(t, cm_21_stale_connection);
    tcase_add_test(t, cm_21_a_forged_req_ends_nothing);
    tcase_add_test(t, cm_21_limits_come_first);
    tcase_add_test(t, cm_21_a_reply_waits_as_long_as_ever);
    tcase_add_test(t, cm_21_only_the_answer_to_the_challenge_counts);
    tcase_add_test(t, cm_21_a_challenge_is_repeated);
    tcase_add_test(t, cm_21_another_challenge_later);
    tcase_add_test(t, sec_21_a_rej_needs_both_ids);
    tcase_add_loop_test(t, cm_21_stale_before_it_was_established, 0, 2);
    tcase_add_test(t, cm_21_stale_reply);
    tcase_add_test(t, cm_21_connected_with_itself);
    tcase_add_test(t, cm_14_a_dreq_of_the_passive_side);
    suite_add_tcase(s, t);
    return unit_run(s);
}
