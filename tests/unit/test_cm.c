/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connections come and go: the three messages, what is lost of them, what is refused, and datagram
 * services.
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
    /* CM-08: each side named the PSN that it expects, the other one sends from there */
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

START_TEST(cm_07_an_offer_beyond_what_we_have)
{
    /* CM-07: rdma_cm offers all that its device has, 128: what the queue pair is set to before the
     * REP is what this device can, and what the REP will say. */
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
    cm_grant(b.cm, cb, 200, 2); /* not bound by what was granted before */
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
    ck_assert_uint_eq(a.nev, 2); /* REP, ESTABLISHED: each told once (CM-35) */
    ck_assert_uint_eq(b.nev, 2);
    ck_assert_uint_ge(sent[losses[_i].lost], 3);
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

START_TEST(cm_28_given_up_before_the_answer)
{
    /* CM-28: a REJ for a request that waits for its consumer ends it at once, and frees its place
     * among the half-open ones; the consumer is told if it has heard of the request. */
    listen_on_b();
    for (unsigned i = 0; i < 100; i++) { /* more than one peer may have half open */
        a.nev = b.nev = 0;
        struct cm_conn *ca = start();
        struct cm_conn *cb = last(&b)->conn;
        ck_assert_int_eq(last(&b)->type, CM_EV_REQ);
        cm_release(a.cm, ca, now);
        pump();
        ck_assert_int_eq(last(&b)->type, CM_EV_REJECTED);
        ck_assert_ptr_eq(last(&b)->conn, cb);
        ck_assert_uint_eq(last(&b)->reason, CM_REJ_TIMEOUT);
        cm_release(b.cm, cb, now);
        ck_assert_uint_eq(cm_live(b.cm), 0);
    }
}
END_TEST

/* CM-28: who never learned our id is known by its GUID, in a REJ that says "timeout", and in
 * no other one. */
static const struct {
    const char *what;
    unsigned reason, ari_len;
    uint32_t id_plus;
    uint64_t guid;
    bool taken;
} given_up[] = {
    {"as it should be", CM_REJ_TIMEOUT, 8, 0, 0xA00, true},
    {"another reason", CM_REJ_CONSUMER, 8, 0, 0xA00, false},
    {"half a GUID", CM_REJ_TIMEOUT, 7, 0, 0xA00, false},
    {"another GUID", CM_REJ_TIMEOUT, 8, 0, 0xA01, false},
    {"another id", CM_REJ_TIMEOUT, 8, 1, 0xA00, false},
};

START_TEST(cm_28_known_by_its_guid)
{
    teardown();
    setup_with((struct cm_params){0}, (struct cm_params){0});
    cm_destroy(a.cm);
    a.cm = cm_create(&(struct cm_params){.key = {1}, .ca_guid = 0xA00});
    listen_on_b();
    struct cm_conn *ca = start(), *cb = last(&b)->conn;
    struct cm_msg rej = {
        .attr = CM_REJ,
        .local_id = cb->remote_id + given_up[_i].id_plus,
        .msg_id = CM_ABOUT_REQ,
        .reason = given_up[_i].reason,
        .ari_len = given_up[_i].ari_len,
        .ari = {[6] = (uint8_t)(given_up[_i].guid >> 8), [7] = (uint8_t)given_up[_i].guid}};
    uint8_t mad[CM_MAD_LEN];
    cm_msg_pack(mad, &rej);
    cm_rx(b.cm, mad, sizeof mad, &a.addr, &b.addr, 1, 0xFFFF, now);
    listen_to(&b);
    ck_assert_msg((last(&b)->type == CM_EV_REJECTED) == given_up[_i].taken, "%s",
                  given_up[_i].what);
    ck_assert_uint_eq(cm_counters(b.cm)[CM_C_cm_rx_bad_id], !given_up[_i].taken);
    ck_assert_str_eq(cm_conn_state_name(ca), "REQ_SENT");
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

/* What a REQ is refused with. */
static void twist_port(struct cm_connect_params *p)
{
    p->dport = 1;
}
static void twist_transport(struct cm_msg *m)
{
    m->transport = 2;
}
static void twist_mtu(struct cm_msg *m)
{
    m->mtu = 6;
}
static void twist_header(struct cm_msg *m)
{
    m->priv[1] = 0x70;
}
static void twist_source(struct cm_msg *m)
{
    m->priv[4 + 15]++;
}
static void twist_gid(struct cm_msg *m)
{
    m->local_gid.b[15]++;
}
static void twist_nothing(struct cm_msg *m)
{
    (void)m;
}

static const struct {
    const char *rule;
    void (*twist)(struct cm_msg *);
    unsigned reason;
} refusals[] = {
    {"CM-16 a good one is not refused", twist_nothing, 0},
    {"XRC-03 CM-29 transport not known", twist_transport, CM_REJ_INVALID_TRANSPORT},
    {"CM-12 WIRE-27 path MTU too large", twist_mtu, CM_REJ_INVALID_MTU},
    {"CM-03 IP header of unknown version", twist_header, CM_REJ_UNSUPPORTED},
    {"CM-04 IP header's source is not the packet's", twist_source, CM_REJ_INVALID_GID},
    {"CM-04 GID is not the packet's source", twist_gid, CM_REJ_INVALID_GID},
};

START_TEST(cm_03_refusals)
{
    struct cm_connect_params p = params();
    struct cm_conn *c;
    struct cm_out out;
    struct cm_msg msg;
    listen_on_b();
    ck_assert_int_eq(cm_connect(a.cm, &p, &a, now, &c), 0);
    ck_assert(cm_tx(a.cm, &out));
    cm_msg_unpack(&msg, out.mad, sizeof out.mad);
    refusals[_i].twist(&msg);
    cm_msg_pack(out.mad, &msg);
    cm_rx(b.cm, out.mad, sizeof out.mad, &a.addr, &b.addr, 1, 0xFFFF, now);
    pump();
    if (refusals[_i].reason) {
        ck_assert_msg(last(&a)->type == CM_EV_REJECTED && last(&a)->reason == refusals[_i].reason,
                      "%s", refusals[_i].rule);
        ck_assert_uint_eq(b.nev, 0);
        ck_assert_uint_eq(cm_live(b.cm), 0);
        cm_release(a.cm, c, now);
        ck_assert_uint_eq(cm_live(a.cm), 0);
    } else {
        ck_assert_int_eq(last(&b)->type, CM_EV_REQ);
    }
}
END_TEST

/* CM-08, CM-10, CM-12, CM-29, CM-33, GID-02: what doesn't fit its field is refused, and nothing is
 * sent; the connection can still be answered rightly. */
START_TEST(cm_14_what_no_message_can_say)
{
    static const uint8_t octets[CM_MAD_LEN];
    struct cm_connect_params p[9];
    struct cm_accept_params q[4];
    struct cm_conn *c;
    for (unsigned i = 0; i < 9; i++)
        p[i] = params();
    p[0].priv = octets;
    p[0].priv_len = CM_REQ_USER_MAX + 1;
    p[1].transport = CM_TRANSPORTS;
    p[2].path.mtu = 0;
    p[3].path.mtu = 6;
    p[4].retry_count = 8;
    p[5].rnr_retry_count = 8;
    p[6].qpn = 0x1000000;
    p[7].psn = 0x1000000;
    wire_addr_parse("2001:db8::2", &p[8].path.remote);
    for (unsigned i = 0; i < 9; i++)
        ck_assert_msg(cm_connect(a.cm, &p[i], &a, now, &c) == -EINVAL, "connect %u", i);
    ck_assert_int_eq(cm_sidr_request(a.cm, &p[8].path, 1, 7000, NULL, 0, NULL, now, &c), -EINVAL);
    ck_assert_int_eq(
        cm_sidr_request(a.cm, &p[7].path, 1, 7000, octets, CM_SIDR_REQ_USER_MAX + 1, NULL, now, &c),
        -EINVAL);
    ck_assert_uint_eq(cm_live(a.cm), 0);

    listen_on_b();
    p[0] = params();
    ck_assert_int_eq(cm_connect(a.cm, &p[0], &a, now, &c), 0);
    pump();
    struct cm_conn *cb = last(&b)->conn;
    for (unsigned i = 0; i < 4; i++)
        q[i] = accept_params;
    q[0].rnr_retry_count = 8;
    q[1].qpn = 0x1000000;
    q[2].psn = 0x1000000;
    q[3].priv = octets;
    q[3].priv_len = CM_REP_USER_MAX + 1;
    for (unsigned i = 0; i < 4; i++)
        ck_assert_msg(cm_accept(b.cm, cb, &q[i], &b, now) == -EINVAL, "accept %u", i);
    ck_assert_int_eq(cm_reject(b.cm, cb, 0, octets, CM_REJ_USER_MAX + 1, now), -EINVAL);
    ck_assert_int_eq(cm_reject(b.cm, cb, 0x10000, NULL, 0, now), -EINVAL);
    ck_assert_int_eq(cm_mra(b.cm, cb, 32, now), -EINVAL);
    pump();
    ck_assert_uint_eq(sent[CM_REP] + sent[CM_REJ] + sent[CM_MRA], 0);
    ck_assert_int_eq(cm_accept(b.cm, cb, &accept_params, &b, now), 0);
    pump();
    ck_assert_int_eq(last(&a)->type, CM_EV_REP);
    cm_release(a.cm, c, now);
    cm_release(b.cm, cb, now);
}
END_TEST

/* CM-12: ports of different MTUs: the active side asks again for what the passive one can carry,
 * with all else as before; what the first question is answered with once more does no harm. */
START_TEST(cm_03_one_listener_for_each_address)
{
    /* CM-03: who takes a request never depends on who came first: "any address" is all of them */
    const struct wire_addr any = {{0}}, other = wire_addr_v4(0x0A000003);
    struct cm_listener *l, *m;
    ck_assert_int_eq(cm_listen(b.cm, CM_PS_TCP, &b.addr, ANY_PORT, 0, NULL, &l), 0);
    ck_assert_int_eq(cm_listen(b.cm, CM_PS_TCP, &b.addr, ANY_PORT, 0, NULL, &m), -EADDRINUSE);
    ck_assert_int_eq(cm_listen(b.cm, CM_PS_TCP, &any, ANY_PORT, 0, NULL, &m), -EADDRINUSE);
    ck_assert_int_eq(cm_listen(b.cm, CM_PS_TCP, &other, ANY_PORT, 0, NULL, &m), 0);
    cm_unlisten(b.cm, l, now);
    cm_unlisten(b.cm, m, now);
    ck_assert_int_eq(cm_listen(b.cm, CM_PS_TCP, &any, ANY_PORT, 0, NULL, &l), 0);
    ck_assert_int_eq(cm_listen(b.cm, CM_PS_TCP, &b.addr, ANY_PORT, 0, NULL, &m), -EADDRINUSE);
    ck_assert_int_eq(cm_listen(b.cm, CM_PS_UDP, &b.addr, ANY_PORT, 0, NULL, &m), 0);
    ck_assert_int_eq(cm_listen(b.cm, CM_PS_TCP, &b.addr, ANY_PORT + 1, 0, NULL, &m), 0);
}
END_TEST

START_TEST(cm_12_smaller_mtu)
{
    struct cm_conn *ca, *cb;
    struct cm_qp_attr qa, qb;
    struct cm_connect_params p;
    struct cm_out first, out;

    teardown();
    setup_with((struct cm_params){0}, (struct cm_params){.max_mtu = 3});
    p = params();
    listen_on_b();
    ck_assert_int_eq(cm_connect(a.cm, &p, &a, now, &ca), 0);
    ck_assert(cm_tx(a.cm, &first));
    for (unsigned i = 0; i < 2; i++) /* the network has doubled it */
        cm_rx(b.cm, first.mad, sizeof first.mad, &a.addr, &b.addr, 1, 0xFFFF, now);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert(cm_tx(b.cm, &out));
        cm_rx(a.cm, out.mad, sizeof out.mad, &b.addr, &a.addr, 1, 0xFFFF, now);
    }
    pump();
    ck_assert_uint_eq(a.nev, 0);
    ck_assert_uint_eq(sent[CM_REQ], 1); /* beside the first one */
    ck_assert_int_eq(last(&b)->type, CM_EV_REQ);
    ck_assert_mem_eq(b.ev[0].priv, "hello", 6);
    cb = last(&b)->conn;
    ck_assert_int_eq(cm_accept(b.cm, cb, &accept_params, &b, now), 0);
    pump();
    ck_assert_int_eq(last(&a)->type, CM_EV_REP);
    ck_assert_int_eq(cm_qp_attr(ca, &qa), 0);
    ck_assert_int_eq(cm_qp_attr(cb, &qb), 0);
    ck_assert_uint_eq(qa.path_mtu, 3);
    ck_assert_uint_eq(qb.path_mtu, 3);
    ck_assert_uint_eq(qb.dest_qpn, 0x123);
}
END_TEST

START_TEST(cm_30_nobody_listens_and_consumer_refuses)
{
    struct cm_connect_params p = params();
    struct cm_conn *c;
    listen_on_b();
    twist_port(&p);
    ck_assert_int_eq(cm_connect(a.cm, &p, &a, now, &c), 0);
    pump();
    ck_assert_int_eq(last(&a)->type, CM_EV_REJECTED);
    ck_assert_uint_eq(last(&a)->reason, CM_REJ_INVALID_SERVICE_ID); /* CM-30 */
    c = start();
    ck_assert_int_eq(cm_reject(b.cm, last(&b)->conn, 0, "no", 2, now), 0);
    pump();
    ck_assert_uint_eq(last(&a)->reason, CM_REJ_CONSUMER);
    ck_assert_mem_eq(last(&a)->priv, "no\0", 3); /* CM-27 */
    ck_assert_uint_eq(last(&a)->priv_len, 148);
}
END_TEST

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
    /* a DREQ in TIMEWAIT, and one for a connection that nobody knows, are answered */
    struct cm_msg dreq = {.attr = CM_DREQ, .tid = 9, .local_id = 77, .remote_id = 0x999};
    uint8_t mad[CM_MAD_LEN];
    cm_msg_pack(mad, &dreq);
    cm_rx(b.cm, mad, sizeof mad, &a.addr, &b.addr, 1, 0xFFFF, now);
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

START_TEST(cm_21_stale_reply)
{
    /* CM-21: the passive side restarts, and answers with a QPN that we still hold. It is told so,
     * both as an answer and by an end of the old connection; then it may have the QPN. */
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
            cm_rx(a.cm, out.mad, sizeof out.mad, &a.addr, &a.addr, 1, 0xFFFF, now);
        listen_to(&a);
        ck_assert_int_eq(last(&a)->type, i ? CM_EV_REP : CM_EV_REQ);
        if (i == 0)
            ck_assert_int_eq(cm_accept(a.cm, last(&a)->conn, &accept, &a, now), 0);
    }
}
END_TEST

START_TEST(cm_31_datagram_service)
{
    /* CM-31: one question, one answer, the same one when it is asked again. */
    static const struct wire_addr any;
    struct cm_listener *l;
    struct cm_conn *c;
    struct cm_path path = {.local = a.addr, .remote = b.addr};
    cm_listen(b.cm, CM_PS_UDP, &any, 7000, 0, &l, &l);
    lose[CM_SIDR_REP] = 1;
    ck_assert_int_eq(cm_sidr_request(a.cm, &path, 1234, 7000, "who", 3, NULL, now, &c), 0);
    pump();
    ck_assert_int_eq(last(&b)->type, CM_EV_SIDR_REQ);
    ck_assert_ptr_eq(last(&b)->arg, &l);
    ck_assert_ptr_eq(last(&b)->listener, l);
    ck_assert_mem_eq(last(&b)->priv, "who\0", 4);
    ck_assert_int_eq(cm_sidr_reply(b.cm, last(&b)->conn, 0, 0x77, 0x01234567, "me", 2, now), 0);
    pump();
    wait_ns(2 * SEC);
    ck_assert_int_eq(last(&a)->type, CM_EV_SIDR_REP);
    ck_assert_uint_eq(last(&a)->qpn, 0x77);
    ck_assert_uint_eq(last(&a)->qkey, 0x01234567); /* KEY-09 */
    ck_assert_mem_eq(last(&a)->priv, "me\0", 4);
    ck_assert_uint_eq(b.nev, 1);
    ck_assert_uint_eq(last(&a)->local_port, 1234);
    cm_release(a.cm, c, now);
    /* nobody listens */
    ck_assert_int_eq(cm_sidr_request(a.cm, &path, 1234, 7001, NULL, 0, NULL, now, &c), 0);
    pump();
    ck_assert_uint_eq(last(&a)->reason, 1);
    cm_release(a.cm, c, now);
    cm_release(b.cm, b.ev[0].conn, now);
    wait_ns(20 * SEC);
    ck_assert_uint_eq(cm_live(a.cm), 0);
    ck_assert_uint_eq(cm_live(b.cm), 0);
}
END_TEST

START_TEST(cm_31_what_no_message_can_say)
{
    /* CM-31: private data and QPN that don't fit are refused, and the most that fits is not. */
    static const struct wire_addr any;
    static const uint8_t priv[CM_SIDR_REQ_USER_MAX + CM_SIDR_REP_USER_MAX + 1];
    struct cm_path path = {.local = a.addr, .remote = b.addr};
    struct cm_listener *l;
    struct cm_conn *c, *cb;
    cm_listen(b.cm, CM_PS_UDP, &any, 7000, 0, NULL, &l);
    ck_assert_int_eq(
        cm_sidr_request(a.cm, &path, 1, 7000, priv, CM_SIDR_REQ_USER_MAX + 1, NULL, now, &c),
        -EINVAL);
    ck_assert_int_eq(
        cm_sidr_request(a.cm, &path, 1, 7000, priv, CM_SIDR_REQ_USER_MAX, NULL, now, &c), 0);
    pump();
    cb = last(&b)->conn;
    ck_assert_int_eq(
        cm_sidr_reply(b.cm, cb, 0, WIRE_QPN_MASK, 1, priv, CM_SIDR_REP_USER_MAX + 1, now), -EINVAL);
    ck_assert_int_eq(cm_sidr_reply(b.cm, cb, 0, WIRE_QPN_MASK + 1, 1, NULL, 0, now), -EINVAL);
    ck_assert_int_eq(cm_sidr_reply(b.cm, cb, 256, 1, 1, NULL, 0, now), -EINVAL);
    ck_assert_int_eq(
        cm_sidr_reply(b.cm, cb, 255, WIRE_QPN_MASK, 1, priv, CM_SIDR_REP_USER_MAX, now), 0);
    pump();
    ck_assert_int_eq(last(&a)->type, CM_EV_SIDR_REP);
    ck_assert_uint_eq(last(&a)->qpn, WIRE_QPN_MASK);
    ck_assert_uint_eq(last(&a)->reason, 255);
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
    cm_rx(b.cm, mad, sizeof mad, &a.addr, &b.addr, 1, 0xFFFF, now);
    ck_assert(!cm_tx(b.cm, &out));
    ck_assert_uint_eq(cm_counters(b.cm)[CM_C_cm_dup_rep], 0);
    ck_assert_uint_eq(cm_counters(b.cm)[CM_C_cm_rx_bad_id], 1);
    rep.local_id = cb->local_id;
    rep.remote_id = ca->local_id;
    cm_msg_pack(mad, &rep);
    cm_rx(a.cm, mad, sizeof mad, &b.addr, &a.addr, 1, 0xFFFF, now);
    ck_assert(cm_tx(a.cm, &out));
    ck_assert_uint_eq(out.mad[17], CM_RTU);
    ck_assert_uint_eq(cm_counters(a.cm)[CM_C_cm_dup_rep], 1);
}
END_TEST

START_TEST(cm_12_a_refusal_that_names_no_mtu)
{
    /* CM-12: REJ 26 without additional information: there is nothing to ask for again. */
    struct cm_connect_params p = params();
    struct cm_conn *c;
    struct cm_out out;
    ck_assert_int_eq(cm_connect(a.cm, &p, &a, now, &c), 0);
    ck_assert(cm_tx(a.cm, &out));
    struct cm_msg rej = {.attr = CM_REJ,
                         .tid = c->tid,
                         .remote_id = c->local_id,
                         .msg_id = CM_ABOUT_REQ,
                         .reason = CM_REJ_INVALID_MTU,
                         .ari = {0x10}};
    uint8_t mad[CM_MAD_LEN];
    cm_msg_pack(mad, &rej);
    cm_rx(a.cm, mad, sizeof mad, &b.addr, &a.addr, 1, 0xFFFF, now);
    listen_to(&a);
    ck_assert_int_eq(last(&a)->type, CM_EV_REJECTED);
    ck_assert_uint_eq(last(&a)->reason, CM_REJ_INVALID_MTU);
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
    cm_msg_unpack(&req, out.mad, sizeof out.mad);
    ck_assert_uint_eq(req.flow_control, 0); /* CM-13: not used unless asked for */
    ck_assert_uint_eq(req.srq, 0);
    cm_rx(b.cm, out.mad, sizeof out.mad, &a.addr, &b.addr, 1, 0x8001, now);
    listen_to(&b);
    struct cm_accept_params ap = accept_params;
    ap.srq = true;
    cm_accept(b.cm, last(&b)->conn, &ap, &b, now);
    ck_assert(cm_tx(b.cm, &out));
    /* CM-06: the answer goes to where the question came from, from where it was sent to */
    ck_assert_mem_eq(&out.dst, &a.addr, 16);
    ck_assert_mem_eq(&out.src, &b.addr, 16);
    ck_assert_uint_eq(out.pkey, 0x8001);
    struct cm_qp_attr qp;
    ck_assert_int_eq(cm_qp_attr(b.ev[0].conn, &qp), 0);
    ck_assert_uint_eq(qp.pkey, 0xFFFF); /* what the REQ named */
    cm_msg_unpack(&rep, out.mad, sizeof out.mad);
    ck_assert_uint_eq(rep.tid, req.tid); /* CM-14 */
    ck_assert_uint_eq(rep.srq, 1);       /* CM-13 */
    cm_rx(a.cm, out.mad, sizeof out.mad, &b.addr, &a.addr, 1, 0xFFFF, now);
    listen_to(&a);
    ck_assert(last(&a)->srq);
    cm_rtu(a.cm, c, NULL, 0, now);
    ck_assert(cm_tx(a.cm, &out));
    cm_msg_unpack(&rtu, out.mad, sizeof out.mad);
    ck_assert_uint_eq(rtu.tid, req.tid); /* CM-14 */
    cm_rx(b.cm, out.mad, sizeof out.mad, &a.addr, &b.addr, 1, 0xFFFF, now);

    /* CM-32: an alternate path is not supported, and said so once */
    lap = (struct cm_msg){
        .attr = CM_LAP, .tid = 5, .local_id = rtu.local_id, .remote_id = rtu.remote_id};
    cm_msg_pack(out.mad, &lap);
    cm_rx(b.cm, out.mad, sizeof out.mad, &a.addr, &b.addr, 1, 0xFFFF, now);
    ck_assert(cm_tx(b.cm, &out));
    cm_msg_unpack(&apr, out.mad, sizeof out.mad);
    ck_assert_uint_eq(apr.attr, CM_APR);
    ck_assert_uint_eq(apr.reason, 2);
    ck_assert_uint_eq(apr.tid, 5);
    ck_assert(!cm_tx(b.cm, &out));
    cm_msg_pack(out.mad, &lap);
    cm_rx(b.cm, out.mad, sizeof out.mad, &a.addr, &b.addr, 1, 0xFFFF, now);
    ck_assert(!cm_tx(b.cm, &out));

    cm_disconnect(a.cm, c, NULL, 0, now);
    ck_assert(cm_tx(a.cm, &out));
    cm_msg_unpack(&dreq, out.mad, sizeof out.mad);
    cm_rx(b.cm, out.mad, sizeof out.mad, &a.addr, &b.addr, 1, 0xFFFF, now);
    ck_assert(cm_tx(b.cm, &out));
    cm_msg_unpack(&drep, out.mad, sizeof out.mad);
    ck_assert_uint_eq(drep.attr, CM_DREP);
    ck_assert_uint_eq(drep.tid, dreq.tid); /* CM-14 */
    ck_assert_uint_eq(drep.local_id, dreq.remote_id);
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
    cm_msg_unpack(&req, out.mad, sizeof out.mad);
    cm_rx(b.cm, out.mad, sizeof out.mad, &a.addr, &b.addr, 1, 0xFFFF, now);
    listen_to(&b);
    cb = last(&b)->conn;
    ck_assert_int_eq(cm_accept(b.cm, cb, &accept_params, &b, now), 0);
    pump();
    ck_assert_int_eq(cm_rtu(a.cm, ca, NULL, 0, now), 0);
    pump();
    ck_assert_int_eq(cm_disconnect(b.cm, cb, NULL, 0, now), 0);
    ck_assert(cm_tx(b.cm, &out));
    cm_msg_unpack(&dreq, out.mad, sizeof out.mad);
    ck_assert_uint_eq(dreq.attr, CM_DREQ);
    ck_assert_uint_ne(dreq.tid, req.tid);
    ck_assert_uint_ne(dreq.tid, 0);
    now += 2 * SEC;
    cm_expire(b.cm, now);
    ck_assert(cm_tx(b.cm, &again)); /* CM-18: repeated as it was */
    ck_assert_mem_eq(again.mad, out.mad, CM_MAD_LEN);
    cm_rx(a.cm, out.mad, sizeof out.mad, &b.addr, &a.addr, 1, 0xFFFF, now);
    ck_assert(cm_tx(a.cm, &out));
    cm_msg_unpack(&drep, out.mad, sizeof out.mad);
    ck_assert_uint_eq(drep.attr, CM_DREP);
    ck_assert_uint_eq(drep.tid, dreq.tid);
}
END_TEST

START_TEST(cm_37_crossing_requests_are_both_refused)
{
    /* CM-37: both sides are active for the same service; nobody listens. */
    struct cm_connect_params pa = params(), pb = params();
    struct cm_conn *ca, *cb;
    pb.path.local = b.addr;
    pb.path.remote = a.addr;
    cm_connect(a.cm, &pa, &a, now, &ca);
    cm_connect(b.cm, &pb, &b, now, &cb);
    pump();
    ck_assert_int_eq(last(&a)->type, CM_EV_REJECTED);
    ck_assert_int_eq(last(&b)->type, CM_EV_REJECTED);
    ck_assert_uint_eq(last(&a)->reason, CM_REJ_INVALID_SERVICE_ID);
    ck_assert_uint_eq(last(&b)->reason, CM_REJ_INVALID_SERVICE_ID);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cm");
    TCase *t = tcase_create("cm");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, cm_16_three_messages_connect);
    tcase_add_test(t, cm_07_an_offer_beyond_what_we_have);
    tcase_add_loop_test(t, cm_18_losses_are_repaired, 0, sizeof losses / sizeof losses[0]);
    tcase_add_test(t, cm_18_nobody_answers);
    tcase_add_test(t, cm_18_nobody_says_rtu);
    tcase_add_test(t, cm_28_given_up_before_the_answer);
    tcase_add_loop_test(t, cm_28_known_by_its_guid, 0, sizeof given_up / sizeof given_up[0]);
    tcase_add_test(t, cm_19_mra_buys_time);
    tcase_add_test(t, cm_20_repeated_req_makes_no_second_connection);
    tcase_add_test(t, cm_23_first_request_counts_as_rtu);
    tcase_add_loop_test(t, cm_03_refusals, 0, sizeof refusals / sizeof refusals[0]);
    tcase_add_test(t, cm_03_one_listener_for_each_address);
    tcase_add_test(t, cm_14_what_no_message_can_say);
    tcase_add_test(t, cm_12_smaller_mtu);
    tcase_add_test(t, cm_30_nobody_listens_and_consumer_refuses);
    tcase_add_test(t, cm_24_disconnects);
    tcase_add_test(t, cm_24_lost_drep);
    tcase_add_test(t, cm_24_dreq_instead_of_a_rep);
    tcase_add_test(t, cm_25_peer_is_gone);
    tcase_add_test(t, cm_21_stale_connection);
    tcase_add_test(t, cm_21_stale_reply);
    tcase_add_test(t, cm_21_connected_with_itself);
    tcase_add_test(t, cm_31_datagram_service);
    tcase_add_test(t, cm_31_what_no_message_can_say);
    tcase_add_test(t, cm_22_only_the_active_side_takes_a_rep);
    tcase_add_test(t, cm_12_a_refusal_that_names_no_mtu);
    tcase_add_test(t, cm_14_messages_carry_what_the_exchange_fixed);
    tcase_add_test(t, cm_14_a_dreq_of_the_passive_side);
    tcase_add_test(t, cm_37_crossing_requests_are_both_refused);
    suite_add_tcase(s, t);
    return unit_run(s);
}
