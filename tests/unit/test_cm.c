/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Making connections: the three messages, their contents, and their loss.
 */
#include <errno.h>
#include <string.h>

#include "cm_pair.h"
#include "unit.h"

START_TEST(cm_16_three_messages_connect)
{
    struct cm_conn *ca, *cb;
    struct cm_qp_attr qa, qb;
    establish(&ca, &cb);
    /* CM-16, CM-36: the passive side sees the active side's numbers swapped */
    ck_assert_ptr_eq(b.ev[0].arg, &b); /* the listener's */
    ck_assert_mem_eq(b.ev[0].priv, "hello\0", 6);
    ck_assert_uint_eq(b.ev[0].priv_len, CM_REQ_USER_MAX);
    ck_assert_uint_eq(b.ev[0].responder_resources, 8);
    ck_assert_uint_eq(b.ev[0].initiator_depth, 16);
    ck_assert_uint_eq(b.ev[0].remote_port, 40000);
    ck_assert_mem_eq(a.ev[0].priv, "welcome\0", 8);

    ck_assert_int_eq(cm_qp_attr(ca, &qa), 0);
    ck_assert_int_eq(cm_qp_attr(cb, &qb), 0);
    ck_assert_uint_eq(qa.dest_qpn, 0xABC);
    ck_assert_uint_eq(qb.dest_qpn, 0x123);
    /* CM-08: each side names the PSN that it expects, and the other one sends from there */
    ck_assert_uint_eq(qa.rq_psn, 0xABCDEF);
    ck_assert_uint_eq(qa.sq_psn, 0x123456);
    ck_assert_uint_eq(qb.rq_psn, 0x123456);
    ck_assert_uint_eq(qb.sq_psn, 0xABCDEF);
    ck_assert_uint_eq(qa.max_rd_atomic, 4); /* CM-07 */
    ck_assert_uint_eq(qb.max_dest_rd_atomic, 4);
    ck_assert_uint_eq(qb.max_rd_atomic, 16);
    ck_assert_uint_eq(qa.retry_cnt, 6); /* CM-10 */
    ck_assert_uint_eq(qb.retry_cnt, 6);
    ck_assert_uint_eq(qa.rnr_retry, 3);
    ck_assert_uint_eq(qb.rnr_retry, 5);
    ck_assert_uint_eq(qa.timeout, 14); /* CM-09 of 13 and 8 */
    ck_assert_uint_eq(qb.timeout, 14);
    ck_assert_uint_eq(qa.flow_label, (40000u * 31 + ANY_PORT) & 0xFFFFF); /* CM-05 */
    ck_assert_uint_eq(qb.flow_label, qa.flow_label);
    ck_assert_uint_eq(sent[CM_REQ] + sent[CM_REP] + sent[CM_RTU], 3);

    /* CM-24, CM-25, CM-26 */
    ck_assert_int_eq(cm_disconnect(a.cm, ca, NULL, 0, now), 0);
    pump();
    ck_assert_int_eq(last(&a)->type, CM_EV_DISCONNECTED);
    ck_assert_int_eq(last(&b)->type, CM_EV_DISCONNECTED);
    ck_assert_uint_eq(sent[CM_DREQ], 1);
    ck_assert_uint_eq(sent[CM_DREP], 1);
    wait_ns(SEC - 1);
    ck_assert_uint_eq(cm_live(a.cm), 1);
    wait_ns(1);
    ck_assert_int_eq(last(&a)->type, CM_EV_TIMEWAIT_EXIT);
    cm_release(a.cm, ca, now);
    cm_release(b.cm, cb, now);
    ck_assert_uint_eq(cm_live(a.cm), 0);
    ck_assert_uint_eq(cm_live(b.cm), 0);
}
END_TEST

START_TEST(cm_07_an_offer_above_our_resources)
{
    /* CM-07: rdma_cm offers its device's maximum, 128. Before the REP the queue pair is set to this
     * device's own limit, which the REP will carry. */
    struct cm_conn *ca, *cb;
    struct cm_qp_attr q;
    teardown();
    setup_with((struct cm_params){.max_rd_atomic = 128}, (struct cm_params){0});
    listen_on_b();
    struct cm_connect_params p = params();
    p.responder_resources = p.initiator_depth = 128;
    ck_assert_int_eq(cm_connect(a.cm, &p, &a, now, &ca), 0);
    pump();
    cb = last(&b)->conn;
    ck_assert_uint_eq(last(&b)->responder_resources, 128); /* CM-36: as it was offered */
    ck_assert_int_eq(cm_qp_attr(cb, &q), 0);
    ck_assert_uint_eq(q.max_rd_atomic, 16);
    ck_assert_uint_eq(q.max_dest_rd_atomic, 16);
    cm_grant(b.cm, cb, 3, 200);
    ck_assert_int_eq(cm_qp_attr(cb, &q), 0);
    ck_assert_uint_eq(q.max_rd_atomic, 16);
    ck_assert_uint_eq(q.max_dest_rd_atomic, 3);
    cm_grant(b.cm, cb, 200, 2); /* not bound by the earlier grant */
    ck_assert_int_eq(cm_qp_attr(cb, &q), 0);
    ck_assert_uint_eq(q.max_rd_atomic, 2);
    ck_assert_uint_eq(q.max_dest_rd_atomic, 16);
}
END_TEST

/* One lost message of each kind delays the connection, and nothing else. */
static const struct {
    const char *rule;
    enum cm_attr lost;
} losses[] = {
    {"CM-18 REQ is repeated", CM_REQ},
    {"CM-20 CM-18 REP is repeated", CM_REP},
    {"CM-22 a repeated REP brings the RTU again", CM_RTU},
};

START_TEST(cm_18_losses_are_repaired)
{
    struct cm_conn *ca, *cb;
    listen_on_b();
    lose[losses[_i].lost] = 2;
    ca = start();
    wait_ns(3 * SEC);
    cb = last(&b)->conn;
    ck_assert_int_eq(cm_accept(b.cm, cb, &accept_params, &b, now), 0);
    pump();
    wait_ns(3 * SEC);
    ck_assert_int_eq(last(&a)->type, CM_EV_REP);
    ck_assert_int_eq(cm_rtu(a.cm, ca, NULL, 0, now), 0);
    pump();
    wait_ns(3 * SEC);
    ck_assert_msg(last(&b)->type == CM_EV_ESTABLISHED, "%s", losses[_i].rule);
    ck_assert_uint_eq(a.nev, 2); /* REP, ESTABLISHED: one event each (CM-35) */
    ck_assert_uint_eq(b.nev, 2);
    ck_assert_uint_ge(sent[losses[_i].lost], 3);
}
END_TEST

START_TEST(cm_39_the_network_refuses)
{
    /* CM-39: a request without an answer ends at once, only to that address; a connection stays. */
    struct wire_addr other = b.addr;
    other.b[15] ^= 1;
    lose[CM_REQ] = 100;
    start();
    ck_assert_uint_eq(cm_refused(a.cm, &other), 0);
    ck_assert_uint_eq(a.nev, 0);
    ck_assert_uint_eq(cm_refused(a.cm, &b.addr), 1);
    pump();
    ck_assert_int_eq(last(&a)->type, CM_EV_UNREACHABLE);
    cm_release(a.cm, last(&a)->conn, now);
    ck_assert_uint_eq(cm_live(a.cm), 0);
    ck_assert_uint_eq(cm_refused(a.cm, &b.addr), 0);
}
END_TEST

START_TEST(cm_39_an_established_connection_is_left_alone)
{
    struct cm_conn *ca, *cb;
    establish(&ca, &cb);
    unsigned before = a.nev;
    ck_assert_uint_eq(cm_refused(a.cm, &b.addr), 0);
    ck_assert_uint_eq(cm_refused(b.cm, &a.addr), 0);
    pump();
    ck_assert_uint_eq(a.nev, before);
}
END_TEST

START_TEST(cm_18_nobody_answers)
{
    /* CM-18: 1 + 7 transmissions, 4.096 us * 2^18 apart, then UNREACHABLE and a REJ 4. */
    lose[CM_REQ] = 100;
    start();
    wait_ns(8 * (4096ull << 18) - 1);
    ck_assert_uint_eq(a.nev, 0);
    wait_ns(1);
    ck_assert_int_eq(last(&a)->type, CM_EV_UNREACHABLE);
    ck_assert(!last(&a)->hung_up);
    ck_assert_uint_eq(sent[CM_REQ], 8);
    ck_assert_uint_eq(sent[CM_REJ], 1);
    cm_release(a.cm, last(&a)->conn, now);
    ck_assert_uint_eq(cm_live(a.cm), 0);
}
END_TEST

START_TEST(cm_18_nobody_says_rtu)
{
    /* CM-18, CM-28: the REJ 4 of a side that gave up ends the other one, found by its ids. */
    struct cm_conn *cb;
    listen_on_b();
    struct cm_conn *ca = start();
    cb = last(&b)->conn;
    cm_accept(b.cm, cb, &accept_params, &b, now);
    pump();
    wait_ns(20 * SEC); /* the active consumer sleeps */
    ck_assert_uint_eq(sent[CM_REP], 8);
    ck_assert_uint_eq(sent[CM_REQ], 1);
    ck_assert_int_eq(last(&b)->type == CM_EV_UNREACHABLE || last(&b)->type == CM_EV_TIMEWAIT_EXIT,
                     1);
    ck_assert_int_eq(last(&a)->type, CM_EV_REJECTED); /* REJ 4, by ids */
    ck_assert_uint_eq(last(&a)->reason, CM_REJ_TIMEOUT);
    cm_release(a.cm, ca, now);
    cm_release(b.cm, cb, now);
    ck_assert_uint_eq(cm_live(b.cm), 0);
}
END_TEST

START_TEST(cm_19_mra_buys_time)
{
    /* CM-19: an MRA adds its service timeout to the wait. */
    struct cm_conn *cb;
    listen_on_b();
    start();
    cb = last(&b)->conn;
    ck_assert_int_eq(cm_mra(b.cm, cb, 20, now), 0); /* 4.3 s */
    pump();
    wait_ns(5 * SEC);
    ck_assert_uint_eq(sent[CM_REQ], 1);
    wait_ns(1 * SEC);
    ck_assert_uint_eq(sent[CM_REQ], 2);
    ck_assert_uint_eq(sent[CM_MRA], 2); /* CM-20: a repeated REQ brings the MRA again */
    ck_assert_uint_eq(b.nev, 1);
    ck_assert_int_eq(cm_accept(b.cm, cb, &accept_params, &b, now), 0);
    pump();
    ck_assert_int_eq(last(&a)->type, CM_EV_REP);
}
END_TEST

START_TEST(cm_20_repeated_req_makes_no_second_connection)
{
    /* CM-20 */
    listen_on_b();
    lose[CM_REP] = 3;
    start();
    cm_accept(b.cm, last(&b)->conn, &accept_params, &b, now);
    pump();
    wait_ns(4 * SEC);
    ck_assert_uint_eq(cm_live(b.cm), 1);
    ck_assert_uint_ge(cm_counters(b.cm)[CM_C_cm_dup_req], 1);
    ck_assert_int_eq(last(&a)->type, CM_EV_REP);
}
END_TEST

START_TEST(cm_23_first_request_counts_as_rtu)
{
    /* CM-23 */
    struct cm_conn *ca, *cb;
    listen_on_b();
    ca = start();
    cb = last(&b)->conn;
    cm_accept(b.cm, cb, &accept_params, &b, now);
    pump();
    lose[CM_RTU] = 1;
    cm_rtu(a.cm, ca, NULL, 0, now);
    pump();
    cm_comm_est(b.cm, cb, now);
    pump();
    ck_assert_int_eq(last(&b)->type, CM_EV_ESTABLISHED);
    unsigned reps = sent[CM_REP];
    wait_ns(10 * SEC);
    ck_assert_uint_eq(sent[CM_REP], reps);
    ck_assert_uint_eq(b.nev, 2);
}
END_TEST

START_TEST(cm_22_only_the_active_side_takes_a_rep)
{
    /* CM-22: a REP that comes again is answered by another RTU, but not by the side that sends
     * them. */
    struct cm_conn *ca, *cb;
    establish(&ca, &cb);
    struct cm_msg rep = {.attr = CM_REP, .local_id = ca->local_id, .remote_id = cb->local_id};
    uint8_t mad[CM_MAD_LEN];
    struct cm_out out;
    cm_msg_pack(mad, &rep);
    cm_rx(b.cm, mad, sizeof(mad), &a.addr, &b.addr, 1, 0xFFFF, now);
    ck_assert(!cm_tx(b.cm, &out));
    ck_assert_uint_eq(cm_counters(b.cm)[CM_C_cm_dup_rep], 0);
    ck_assert_uint_eq(cm_counters(b.cm)[CM_C_cm_rx_bad_id], 1);
    rep.local_id = cb->local_id;
    rep.remote_id = ca->local_id;
    cm_msg_pack(mad, &rep);
    cm_rx(a.cm, mad, sizeof(mad), &b.addr, &a.addr, 1, 0xFFFF, now);
    ck_assert(cm_tx(a.cm, &out));
    ck_assert_uint_eq(out.mad[17], CM_RTU);
    ck_assert_uint_eq(cm_counters(a.cm)[CM_C_cm_dup_rep], 1);
}
END_TEST

START_TEST(cm_14_messages_carry_what_the_exchange_fixed)
{
    struct cm_connect_params p = params();
    struct cm_conn *c;
    struct cm_out out;
    struct cm_msg req, rep, rtu, dreq, drep, lap, apr;
    listen_on_b();
    ck_assert_int_eq(cm_connect(a.cm, &p, &a, now, &c), 0);
    ck_assert(cm_tx(a.cm, &out));
    cm_msg_unpack(&req, out.mad, sizeof(out.mad));
    ck_assert_uint_eq(req.flow_control, 0); /* CM-13: not used unless asked for */
    ck_assert_uint_eq(req.srq, 0);
    cm_rx(b.cm, out.mad, sizeof(out.mad), &a.addr, &b.addr, 1, 0x8001, now);
    listen_to(&b);
    struct cm_accept_params ap = accept_params;
    ap.srq = true;
    cm_accept(b.cm, last(&b)->conn, &ap, &b, now);
    ck_assert(cm_tx(b.cm, &out));
    /* CM-06: the answer goes to the question's source, from the question's destination */
    ck_assert_mem_eq(&out.dst, &a.addr, 16);
    ck_assert_mem_eq(&out.src, &b.addr, 16);
    ck_assert_uint_eq(out.pkey, 0x8001);
    struct cm_qp_attr qp;
    ck_assert_int_eq(cm_qp_attr(b.ev[0].conn, &qp), 0);
    ck_assert_uint_eq(qp.pkey, 0xFFFF); /* the REQ's P_Key */
    cm_msg_unpack(&rep, out.mad, sizeof(out.mad));
    ck_assert_uint_eq(rep.tid, req.tid); /* CM-14 */
    ck_assert_uint_eq(rep.srq, 1);       /* CM-13 */
    cm_rx(a.cm, out.mad, sizeof(out.mad), &b.addr, &a.addr, 1, 0xFFFF, now);
    listen_to(&a);
    ck_assert(last(&a)->srq);
    cm_rtu(a.cm, c, NULL, 0, now);
    ck_assert(cm_tx(a.cm, &out));
    cm_msg_unpack(&rtu, out.mad, sizeof(out.mad));
    ck_assert_uint_eq(rtu.tid, req.tid); /* CM-14 */
    cm_rx(b.cm, out.mad, sizeof(out.mad), &a.addr, &b.addr, 1, 0xFFFF, now);

    /* CM-32: an alternate path is not supported, and one message says so */
    lap = (struct cm_msg){
        .attr = CM_LAP, .tid = 5, .local_id = rtu.local_id, .remote_id = rtu.remote_id};
    cm_msg_pack(out.mad, &lap);
    cm_rx(b.cm, out.mad, sizeof(out.mad), &a.addr, &b.addr, 1, 0xFFFF, now);
    ck_assert(cm_tx(b.cm, &out));
    cm_msg_unpack(&apr, out.mad, sizeof(out.mad));
    ck_assert_uint_eq(apr.attr, CM_APR);
    ck_assert_uint_eq(apr.reason, 2);
    ck_assert_uint_eq(apr.tid, 5);
    ck_assert(!cm_tx(b.cm, &out));
    cm_msg_pack(out.mad, &lap);
    cm_rx(b.cm, out.mad, sizeof(out.mad), &a.addr, &b.addr, 1, 0xFFFF, now);
    ck_assert(!cm_tx(b.cm, &out));

    cm_disconnect(a.cm, c, NULL, 0, now);
    ck_assert(cm_tx(a.cm, &out));
    cm_msg_unpack(&dreq, out.mad, sizeof(out.mad));
    cm_rx(b.cm, out.mad, sizeof(out.mad), &a.addr, &b.addr, 1, 0xFFFF, now);
    ck_assert(cm_tx(b.cm, &out));
    cm_msg_unpack(&drep, out.mad, sizeof(out.mad));
    ck_assert_uint_eq(drep.attr, CM_DREP);
    ck_assert_uint_eq(drep.tid, dreq.tid); /* CM-14 */
    ck_assert_uint_eq(drep.local_id, dreq.remote_id);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cm");
    TCase *t = tcase_create("cm");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, cm_16_three_messages_connect);
    tcase_add_test(t, cm_07_an_offer_above_our_resources);
    tcase_add_loop_test(t, cm_18_losses_are_repaired, 0, sizeof(losses) / sizeof(losses[0]));
    tcase_add_test(t, cm_39_the_network_refuses);
    tcase_add_test(t, cm_39_an_established_connection_is_left_alone);
    tcase_add_test(t, cm_18_nobody_answers);
    tcase_add_test(t, cm_18_nobody_says_rtu);
    tcase_add_test(t, cm_19_mra_buys_time);
    tcase_add_test(t, cm_20_repeated_req_makes_no_second_connection);
    tcase_add_test(t, cm_23_first_request_counts_as_rtu);
    tcase_add_test(t, cm_22_only_the_active_side_takes_a_rep);
    tcase_add_test(t, cm_14_messages_carry_what_the_exchange_fixed);
    suite_add_tcase(s, t);
    return unit_run(s);
}
