/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connections that are refused, by the manager or by either side; and requests that can't be made.
 */
#include <errno.h>
#include <string.h>

#include "cm_pair.h"
#include "cm_priv.h"
#include "unit.h"

START_TEST(cm_28_given_up_before_the_answer)
{
    /* CM-28: a REJ for a request that waits for its consumer ends it at once, and frees its place
     * among the half-open ones. The consumer gets an event if it knows the request. */
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

/* CM-28: a peer that never learned our id is known by its GUID, in a REJ that says "timeout", and
 * in no other one. */
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
    cm_rx(b.cm, mad, sizeof(mad), &a.addr, &b.addr, 1, 0xFFFF, now);
    listen_to(&b);
    ck_assert_msg((last(&b)->type == CM_EV_REJECTED) == given_up[_i].taken, "%s",
                  given_up[_i].what);
    ck_assert_uint_eq(cm_counters(b.cm)[CM_C_cm_rx_bad_id], !given_up[_i].taken);
    ck_assert_str_eq(cm_conn_state_name(ca), "REQ_SENT");
}
END_TEST

/* The reason for refusing a REQ. */
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
    cm_msg_unpack(&msg, out.mad, sizeof(out.mad));
    refusals[_i].twist(&msg);
    cm_msg_pack(out.mad, &msg);
    cm_rx(b.cm, out.mad, sizeof(out.mad), &a.addr, &b.addr, 1, 0xFFFF, now);
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

/* CM-08, CM-10, CM-12, CM-29, CM-33, GID-02: a value that doesn't fit its field is refused, and no
 * message is sent; a right answer is still possible. */
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
    p[1].transport = 2 /* reliable datagrams */;
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

START_TEST(cm_03_one_listener_for_each_address)
{
    /* CM-03: the listener that takes a request never depends on the order of listening: "any
     * address" is all of them */
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

START_TEST(cm_03_listeners_of_one_family)
{
    /* CM-03: any address of one family: one listener for each, and none beside one of both */
    const struct wire_addr any = {{0}}, v4 = wire_addr_v4(0x0A000003), v6 = {{0xFD, [15] = 3}};
    const uint64_t service = cm_service_id(CM_PS_TCP, ANY_PORT);
    struct cm_listener *l, *m, *n;
    ck_assert_int_eq(cm_listen_family(b.cm, CM_PS_TCP, 4, ANY_PORT, 0, NULL, &l), 0);
    ck_assert_int_eq(cm_listen_family(b.cm, CM_PS_TCP, 4, ANY_PORT, 0, NULL, &n), -EADDRINUSE);
    ck_assert_int_eq(cm_listen(b.cm, CM_PS_TCP, &any, ANY_PORT, 0, NULL, &n), -EADDRINUSE);
    ck_assert_int_eq(cm_listen(b.cm, CM_PS_TCP, &v4, ANY_PORT, 0, NULL, &n), -EADDRINUSE);
    ck_assert_int_eq(cm_listen_family(b.cm, CM_PS_TCP, 6, ANY_PORT, 0, NULL, &m), 0);
    ck_assert_ptr_eq(cm_find_listener(b.cm, service, &v4), l);
    ck_assert_ptr_eq(cm_find_listener(b.cm, service, &v6), m);
    cm_unlisten(b.cm, l, now);
    ck_assert_ptr_null(cm_find_listener(b.cm, service, &v4));
    ck_assert_int_eq(cm_listen(b.cm, CM_PS_TCP, &v4, ANY_PORT, 0, NULL, &l), 0);
    ck_assert_int_eq(cm_listen_family(b.cm, CM_PS_TCP, 4, ANY_PORT, 0, NULL, &n), -EADDRINUSE);
    cm_unlisten(b.cm, l, now);
    cm_unlisten(b.cm, m, now);
    ck_assert_int_eq(cm_listen(b.cm, CM_PS_TCP, &v6, ANY_PORT, 0, NULL, &l), 0);
    ck_assert_int_eq(cm_listen_family(b.cm, CM_PS_TCP, 6, ANY_PORT, 0, NULL, &n), -EADDRINUSE);
    ck_assert_int_eq(cm_listen_family(b.cm, CM_PS_TCP, 4, ANY_PORT, 0, NULL, &m), 0);
}
END_TEST

/* CM-12: ports of different MTUs: the active side sends a new REQ with the passive side's MTU and
 * otherwise the same values. A repeated answer to the first REQ does no harm. */
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
        cm_rx(b.cm, first.mad, sizeof(first.mad), &a.addr, &b.addr, 1, 0xFFFF, now);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert(cm_tx(b.cm, &out));
        cm_rx(a.cm, out.mad, sizeof(out.mad), &b.addr, &a.addr, 1, 0xFFFF, now);
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
    cm_rx(a.cm, mad, sizeof(mad), &b.addr, &a.addr, 1, 0xFFFF, now);
    listen_to(&a);
    ck_assert_int_eq(last(&a)->type, CM_EV_REJECTED);
    ck_assert_uint_eq(last(&a)->reason, CM_REJ_INVALID_MTU);
}
END_TEST

START_TEST(cm_37_crossing_requests_are_both_refused)
{
    /* CM-37: both sides are active for the same service; neither listens. */
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
    Suite *s = suite_create("cm refuse");
    TCase *t = tcase_create("cm refuse");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, cm_28_given_up_before_the_answer);
    tcase_add_loop_test(t, cm_28_known_by_its_guid, 0, sizeof(given_up) / sizeof(given_up[0]));
    tcase_add_loop_test(t, cm_03_refusals, 0, sizeof(refusals) / sizeof(refusals[0]));
    tcase_add_test(t, cm_03_one_listener_for_each_address);
    tcase_add_test(t, cm_03_listeners_of_one_family);
    tcase_add_test(t, cm_14_what_no_message_can_say);
    tcase_add_test(t, cm_12_smaller_mtu);
    tcase_add_test(t, cm_30_nobody_listens_and_consumer_refuses);
    tcase_add_test(t, cm_12_a_refusal_that_names_no_mtu);
    tcase_add_test(t, cm_37_crossing_requests_are_both_refused);
    suite_add_tcase(s, t);
    return unit_run(s);
}
