/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The contents of a connection's messages, number by number, and their effects on the other side.
 */
#include <errno.h>
#include <string.h>

#include "cm_pair.h"
#include "unit.h"

/* No value in it is a default, or equal to another one in it. */
static struct cm_connect_params unusual_params(void)
{
    struct cm_connect_params p = params();
    p.path.mtu = 4;
    p.path.tclass = 0x68;
    p.path.hop_limit = 7;
    p.path.sl = 5;
    p.path.flow_label = 0x12345;
    p.path.pkey = 0x8001;
    p.transport = CM_TRANSPORT_UC;
    p.responder_resources = 9;
    p.initiator_depth = 11;
    p.retry_count = 3;
    p.rnr_retry_count = 2;
    p.srq = true;
    p.flow_control = true;
    p.cm_timeout = 20;
    p.max_retries = 12;
    return p;
}

/* Two sides that differ in everything. */
static void unusual_setup(void)
{
    teardown();
    setup_with((struct cm_params){.ack_delay = 12, .packet_lifetime = 16, .max_rd_atomic = 10},
               (struct cm_params){.ack_delay = 20, .packet_lifetime = 9, .max_rd_atomic = 7});
    listen_on_b();
}

START_TEST(cm_05_a_request_says_what_it_was_told)
{
    struct cm_connect_params p = unusual_params();
    struct cm_conn *c;
    struct cm_out out;
    unusual_setup();
    ck_assert_int_eq(cm_connect(a.cm, &p, &a, now, &c), 0);
    struct cm_msg m = next_msg(&a, CM_REQ, &out);
    ck_assert_uint_eq(out.tclass, 0x68);
    ck_assert_uint_eq(out.hop_limit, 7);
    ck_assert_uint_eq(out.sl, 5);
    ck_assert_uint_eq(out.pkey, 0x8001);
    ck_assert_uint_eq(m.service_id, 0x01060000u + ANY_PORT); /* CM-01 */
    ck_assert_uint_eq(m.ca_guid, 0xA);
    ck_assert_uint_eq(m.qpn, 0x123);
    ck_assert_uint_eq(m.psn, 0xABCDEF);
    ck_assert_uint_eq(m.resp_res, 9);
    ck_assert_uint_eq(m.init_depth, 10); /* CM-07: the available maximum */
    ck_assert_uint_eq(m.remote_timeout, 20);
    ck_assert_uint_eq(m.local_timeout, 20);
    ck_assert_uint_eq(m.max_retries, 12);
    ck_assert_uint_eq(m.retry_count, 3);
    ck_assert_uint_eq(m.rnr_retry, 2);
    ck_assert_uint_eq(m.transport, CM_TRANSPORT_UC);
    ck_assert_uint_eq(m.flow_control, 1); /* CM-13 */
    ck_assert_uint_eq(m.srq, 1);
    ck_assert_uint_eq(m.pkey, 0x8001);
    ck_assert_uint_eq(m.mtu, 4);
    ck_assert_uint_eq(m.local_lid, 0xFFFF);
    ck_assert_uint_eq(m.remote_lid, 0xFFFF);
    ck_assert_mem_eq(&m.local_gid, &a.addr, 16);
    ck_assert_mem_eq(&m.remote_gid, &b.addr, 16);
    ck_assert_uint_eq(m.flow_label, 0x12345);
    ck_assert_uint_eq(m.tclass, 0x68);
    ck_assert_uint_eq(m.hop_limit, 7);
    ck_assert_uint_eq(m.sl, 5);
    ck_assert_uint_eq(m.ack_timeout, 17); /* CM-09 of 16 and 12 */
}
END_TEST

START_TEST(cm_05_what_nobody_chose)
{
    struct cm_connect_params p = params();
    struct cm_conn *c;
    struct cm_out out;
    struct cm_msg m;
    p.sport = 0;
    p.path.mtu = 5;
    for (unsigned i = 0; i < 100; i++) { /* CM-05: a port as Linux gives one */
        ck_assert_int_eq(cm_connect(a.cm, &p, &a, now, &c), 0);
        m = next_msg(&a, CM_REQ, &out);
        unsigned port = (unsigned)m.priv[2] << 8 | m.priv[3];
        ck_assert_uint_ge(port, 32768);
        ck_assert_uint_le(port, 60999);
        ck_assert_uint_eq(m.flow_label, (port * 31 + ANY_PORT) & 0xFFFFF);
    }
    ck_assert_uint_eq(m.mtu, 5);
    ck_assert_uint_eq(m.hop_limit, 64);
    ck_assert_uint_eq(m.pkey, 0xFFFF);
    ck_assert_uint_eq(m.remote_timeout, 18); /* CM-18 */
    ck_assert_uint_eq(m.local_timeout, 18);
    ck_assert_uint_eq(m.max_retries, 7);
    ck_assert_uint_eq(m.ack_timeout, 14);
    ck_assert_uint_eq(m.resp_res, 16);
    ck_assert_uint_eq(m.init_depth, 8);
}
END_TEST

/* CM-07, CM-12, CM-18: no request asks for more than its own side has, or a message can say. */
START_TEST(cm_07_a_request_asks_for_what_there_is)
{
    struct cm_connect_params p = unusual_params();
    struct cm_conn *c;
    struct cm_out out;
    teardown();
    setup_with((struct cm_params){.max_mtu = 3, .max_rd_atomic = 5}, (struct cm_params){0});
    p.max_retries = 200;
    ck_assert_int_eq(cm_connect(a.cm, &p, &a, now, &c), 0);
    struct cm_msg m = next_msg(&a, CM_REQ, &out);
    ck_assert_uint_eq(m.mtu, 3);
    ck_assert_uint_eq(m.resp_res, 5);
    ck_assert_uint_eq(m.init_depth, 5);
    ck_assert_uint_eq(m.max_retries, 15);
}
END_TEST

/* Either side's queue pair is set to the values of the two messages: CM-06..CM-13. */
START_TEST(cm_08_both_ends_of_a_connection)
{
    struct cm_connect_params p = unusual_params();
    struct cm_accept_params q = accept_params;
    struct cm_qp_attr qa, qb;
    struct cm_conn *ca;
    struct cm_out out;
    int told;
    unusual_setup();
    q.responder_resources = 50;
    q.initiator_depth = 6;
    q.srq = true;
    q.flow_control = true;
    ck_assert_int_eq(cm_connect(a.cm, &p, &a, now, &ca), 0);
    ck_assert_int_eq(cm_qp_attr(ca, &qa), -EINVAL); /* before the REP */
    ck_assert_int_eq(cm_rtu(a.cm, ca, NULL, 0, now), -EINVAL);
    pump();
    ck_assert_uint_eq(last(&b)->responder_resources, 10); /* CM-36 */
    ck_assert_uint_eq(last(&b)->initiator_depth, 9);
    ck_assert_uint_eq(last(&b)->retry_count, 3);
    ck_assert_uint_eq(last(&b)->rnr_retry_count, 2);
    ck_assert_uint_eq(last(&b)->qpn, 0x123);
    ck_assert_uint_eq(last(&b)->local_port, ANY_PORT);
    ck_assert(last(&b)->srq);
    ck_assert(last(&b)->flow_control);
    struct cm_conn *cb = last(&b)->conn;
    ck_assert_int_eq(cm_accept(b.cm, cb, &q, &told, now), 0);
    struct cm_msg m = next_msg(&b, CM_REP, &out);
    ck_assert_uint_eq(out.tclass, 0x68);
    ck_assert_uint_eq(out.hop_limit, 7);
    ck_assert_uint_eq(out.sl, 5);
    ck_assert_uint_eq(m.resp_res, 7); /* CM-07 */
    ck_assert_uint_eq(m.init_depth, 6);
    ck_assert_uint_eq(m.target_ack_delay, 20);
    ck_assert_uint_eq(m.failover, 0); /* CM-32: not asked for */
    ck_assert_uint_eq(m.flow_control, 1);
    ck_assert_uint_eq(m.rnr_retry, 3);
    ck_assert_uint_eq(m.srq, 1);
    ck_assert_uint_eq(m.ca_guid, 0xB);
    cm_rx(a.cm, out.mad, sizeof(out.mad), &b.addr, &a.addr, 1, 0xFFFF, now);
    listen_to(&a);
    ck_assert_int_eq(last(&a)->type, CM_EV_REP);
    ck_assert_uint_eq(last(&a)->responder_resources, 6); /* CM-36 */
    ck_assert_uint_eq(last(&a)->initiator_depth, 7);
    ck_assert_uint_eq(last(&a)->rnr_retry_count, 3);
    ck_assert_uint_eq(last(&a)->qpn, 0xABC);
    ck_assert(last(&a)->srq);
    ck_assert(last(&a)->flow_control);
    ck_assert_int_eq(cm_rtu(a.cm, ca, "so", 2, now), 0);
    ck_assert_int_eq(cm_rtu(a.cm, ca, NULL, 0, now), -EINVAL); /* once */
    pump();
    ck_assert_ptr_eq(last(&a)->arg, &a);
    ck_assert_ptr_eq(last(&b)->arg, &told); /* the connection's own from cm_accept on */
    ck_assert_uint_eq(last(&b)->priv_len, 224);
    ck_assert_mem_eq(last(&b)->priv, "so", 3);
    ck_assert_uint_eq(cm_counters(a.cm)[CM_C_cm_established], 1);
    ck_assert_uint_eq(cm_counters(b.cm)[CM_C_cm_established], 1);

    ck_assert_int_eq(cm_qp_attr(ca, &qa), 0);
    ck_assert_int_eq(cm_qp_attr(cb, &qb), 0);
    ck_assert_uint_eq(qa.flow_label, 0x12345);
    ck_assert_uint_eq(qb.flow_label, 0x12345);
    ck_assert_uint_eq(qa.tclass, 0x68);
    ck_assert_uint_eq(qb.tclass, 0x68);
    ck_assert_uint_eq(qa.hop_limit, 7);
    ck_assert_uint_eq(qb.hop_limit, 7);
    ck_assert_uint_eq(qa.sl, 5);
    ck_assert_uint_eq(qb.sl, 5);
    ck_assert_uint_eq(qa.pkey, 0x8001);
    ck_assert_uint_eq(qb.pkey, 0x8001);
    ck_assert_uint_eq(qa.path_mtu, 4);
    ck_assert_uint_eq(qb.path_mtu, 4);
    ck_assert_uint_eq(qa.max_rd_atomic, 7);
    ck_assert_uint_eq(qb.max_dest_rd_atomic, 7);
    ck_assert_uint_eq(qa.max_dest_rd_atomic, 9);
    ck_assert_uint_eq(qb.max_rd_atomic, 6);
    ck_assert_uint_eq(qa.timeout, 20); /* CM-09 of a's 16 and b's 20 */
    ck_assert_uint_eq(qb.timeout, 17);
    ck_assert_uint_eq(qa.transport, CM_TRANSPORT_UC);
    ck_assert_uint_eq(qb.transport, CM_TRANSPORT_UC);
    ck_assert_mem_eq(&qa.sgid, &a.addr, 16);
    ck_assert_mem_eq(&qb.sgid, &b.addr, 16);
}
END_TEST

/* CM-38: the contents of XRC's messages, and each side's use of them. */
START_TEST(cm_38_xrc)
{
    static const struct wire_addr any;
    struct cm_connect_params p = unusual_params();
    struct cm_accept_params accept = accept_params;
    struct cm_qp_attr qa, qb;
    struct cm_listener *l;
    struct cm_conn *c;
    struct cm_out out;
    ck_assert_int_eq(cm_listen(b.cm, CM_PS_IB, &any, ANY_PORT, 0, &b, &l), 0);
    p.transport = CM_TRANSPORT_XRC;
    p.ps = CM_PS_IB;
    ck_assert_int_eq(cm_connect(a.cm, &p, &a, now, &c), 0);
    struct cm_msg m = next_msg(&a, CM_REQ, &out);
    ck_assert_uint_eq(m.service_id, 0x013F0000u + ANY_PORT); /* CM-01 */
    ck_assert_uint_eq(m.transport, 3);
    ck_assert_uint_eq(m.ext_transport, 1);
    ck_assert_uint_eq(m.qpn, 0x123);
    ck_assert_uint_eq(m.resp_res, 0);
    ck_assert_uint_eq(m.retry_count, 0);
    ck_assert_uint_eq(m.rnr_retry, 0);
    ck_assert_uint_eq(m.srq, 0);
    ck_assert_uint_gt(m.init_depth, 0);
    cm_rx(b.cm, out.mad, sizeof(out.mad), &a.addr, &b.addr, 1, 0xFFFF, now);
    pump();
    ck_assert_int_eq(last(&b)->type, CM_EV_REQ);
    ck_assert_int_eq(cm_qp_attr(last(&b)->conn, &qb), 0);
    ck_assert_uint_eq(qb.transport, CM_TRANSPORT_XRC);
    ck_assert_uint_eq(qb.dest_qpn, 0x123);
    ck_assert_int_eq(cm_accept(b.cm, last(&b)->conn, &accept, &b, now), 0);
    m = next_msg(&b, CM_REP, &out);
    ck_assert_uint_eq(m.qpn, 0);
    ck_assert_uint_eq(m.eecn, 0xABC);
    ck_assert_uint_eq(m.srq, 1);
    ck_assert_uint_eq(m.init_depth, 0);
    ck_assert_uint_gt(m.resp_res, 0);
    cm_rx(a.cm, out.mad, sizeof(out.mad), &b.addr, &a.addr, 1, 0xFFFF, now);
    pump();
    ck_assert_int_eq(last(&a)->type, CM_EV_REP);
    ck_assert_uint_eq(last(&a)->qpn, 0xABC);
    ck_assert(last(&a)->srq);
    ck_assert_int_eq(cm_qp_attr(c, &qa), 0);
    ck_assert_uint_eq(qa.dest_qpn, 0xABC);
    ck_assert_uint_eq(qa.retry_cnt, 3);
    ck_assert_uint_eq(qa.rnr_retry, accept.rnr_retry_count);

    /* Another extended service than XRC (CM-29). */
    p.qpn++;
    ck_assert_int_eq(cm_connect(a.cm, &p, &a, now, &c), 0);
    m = next_msg(&a, CM_REQ, &out);
    m.ext_transport = 2;
    cm_msg_pack(out.mad, &m);
    cm_rx(b.cm, out.mad, sizeof(out.mad), &a.addr, &b.addr, 1, 0xFFFF, now);
    m = next_msg(&b, CM_REJ, &out);
    ck_assert_uint_eq(m.reason, CM_REJ_INVALID_TRANSPORT);
}
END_TEST

/* CM-13: credits are used if both sides set the bit. */
START_TEST(cm_13_flow_control_takes_two)
{
    struct cm_connect_params p = params();
    struct cm_accept_params q = accept_params;
    struct cm_qp_attr attr;
    struct cm_conn *c;
    listen_on_b();
    p.flow_control = (_i & 1) != 0;
    q.flow_control = (_i & 2) != 0;
    ck_assert_int_eq(cm_connect(a.cm, &p, &a, now, &c), 0);
    pump();
    ck_assert_int_eq(last(&b)->flow_control, p.flow_control);
    ck_assert_int_eq(cm_accept(b.cm, last(&b)->conn, &q, &b, now), 0);
    pump();
    ck_assert_int_eq(last(&a)->flow_control, q.flow_control);
    ck_assert_int_eq(cm_qp_attr(c, &attr), 0);
    ck_assert_int_eq(attr.e2e_credits, _i == 3);
    ck_assert_int_eq(cm_qp_attr(b.ev[0].conn, &attr), 0);
    ck_assert_int_eq(attr.e2e_credits, _i == 3);
}
END_TEST

/* CM-07: no more is granted than was asked for, even if one side has more. */
START_TEST(cm_07_a_grant_above_the_request)
{
    struct cm_connect_params p = params();
    struct cm_conn *c;
    struct cm_out out;
    listen_on_b();
    p.initiator_depth = 2;
    p.responder_resources = 3;
    ck_assert_int_eq(cm_connect(a.cm, &p, &a, now, &c), 0);
    pump();
    ck_assert_int_eq(cm_accept(b.cm, last(&b)->conn, &accept_params, &b, now), 0);
    struct cm_msg m = next_msg(&b, CM_REP, &out);
    ck_assert_uint_eq(m.resp_res, 2);
    ck_assert_uint_eq(m.target_ack_delay, 8); /* ACK-04: the default */
    ck_assert_uint_eq(m.init_depth, 3);
}
END_TEST

/* CM-33: the most that each message carries, and one octet more. */
START_TEST(cm_33_private_data_of_each_message)
{
    static uint8_t full[CM_PRIVATE_MAX + 1];
    struct cm_connect_params p = params();
    struct cm_accept_params q = accept_params;
    struct cm_conn *ca, *cb;
    memset(full, 0x5A, sizeof(full));
    listen_on_b();
    p.priv = q.priv = full;
    p.priv_len = CM_REQ_USER_MAX;
    q.priv_len = CM_REP_USER_MAX;
    ck_assert_int_eq(cm_connect(a.cm, &p, &a, now, &ca), 0);
    pump();
    ck_assert_mem_eq(last(&b)->priv, full, CM_REQ_USER_MAX);
    cb = last(&b)->conn;
    ck_assert_int_eq(cm_accept(b.cm, cb, &q, &b, now), 0);
    pump();
    ck_assert_uint_eq(last(&a)->priv_len, 196);
    ck_assert_mem_eq(last(&a)->priv, full, 196);
    ck_assert_int_eq(cm_rtu(a.cm, ca, full, 225, now), -EINVAL);
    ck_assert_str_eq(cm_conn_state_name(ca), "REP_RCVD");
    ck_assert_int_eq(cm_rtu(a.cm, ca, full, 224, now), 0);
    pump();
    ck_assert_mem_eq(last(&b)->priv, full, 224);
    ck_assert_int_eq(cm_disconnect(a.cm, ca, full, 221, now), -EINVAL);
    ck_assert_str_eq(cm_conn_state_name(ca), "ESTABLISHED");
    ck_assert_int_eq(cm_disconnect(a.cm, ca, full, 220, now), 0);
    pump();
    ck_assert_int_eq(last(&b)->type, CM_EV_DISCONNECTED);
    ck_assert_uint_eq(last(&b)->priv_len, 220);
    ck_assert_mem_eq(last(&b)->priv, full, 220);
    ck_assert_uint_eq(last(&a)->priv_len, 224); /* the DREP's */
}
END_TEST

/* CM-28, CM-30: refusals of each side, and their reasons. */
START_TEST(cm_28_a_refusal_says_what_of)
{
    struct cm_conn *ca;
    struct cm_out out;
    struct cm_msg m;
    listen_on_b();
    ca = start();
    ck_assert_int_eq(cm_reject(b.cm, last(&b)->conn, CM_REJ_NO_RESOURCES, "full up", 7, now), 0);
    m = next_msg(&b, CM_REJ, &out);
    ck_assert_uint_eq(m.tid, ca->tid); /* CM-14 */
    ck_assert_uint_eq(m.remote_id, ca->local_id);
    ck_assert_uint_eq(m.local_id, last(&b)->conn->local_id);
    ck_assert_uint_eq(m.msg_id, CM_ABOUT_REQ);
    ck_assert_uint_eq(m.reason, CM_REJ_NO_RESOURCES);
    ck_assert_uint_eq(m.ari_len, 0);
    ck_assert_mem_eq(m.priv, "full up", 8);
    cm_rx(a.cm, out.mad, sizeof(out.mad), &b.addr, &a.addr, 1, 0xFFFF, now);
    listen_to(&a);
    ck_assert_uint_eq(last(&a)->reason, CM_REJ_NO_RESOURCES);
    ck_assert_uint_eq(cm_counters(a.cm)[CM_C_cm_rejected], 1);
    ck_assert_int_eq(cm_reject(b.cm, last(&b)->conn, 0, NULL, 0, now), -EINVAL); /* once */

    ca = start();
    struct cm_conn *cb = last(&b)->conn;
    ck_assert_int_eq(cm_accept(b.cm, cb, &accept_params, &b, now), 0);
    ck_assert_int_eq(cm_reject(b.cm, cb, 0, NULL, 0, now), -EINVAL); /* it was answered already */
    pump();
    ck_assert_int_eq(cm_reject(a.cm, ca, 0, NULL, 0, now), 0);
    m = next_msg(&a, CM_REJ, &out);
    ck_assert_uint_eq(m.msg_id, CM_ABOUT_REP);
    ck_assert_uint_eq(m.reason, CM_REJ_CONSUMER);
    ck_assert_uint_eq(m.local_id, ca->local_id);
    ck_assert_uint_eq(m.remote_id, cb->local_id);
}
END_TEST

/* ---- without a connection ---- */

/* The answer of b to `m`, which comes to its address `dst` with another partition's key: at most
 * one message, returned to the sender of `m`. attr 0 = none. */
static struct cm_msg answer_at(const struct wire_addr *dst, const struct cm_msg *m, unsigned attr,
                               struct cm_out *out)
{
    struct cm_msg back = {0};
    struct cm_out more;
    uint8_t mad[CM_MAD_LEN];
    ck_assert_int_eq(cm_msg_pack(mad, m), 0);
    cm_rx(b.cm, mad, sizeof(mad), &a.addr, dst, 1, 0x8002, now);
    listen_to(&b);
    if (attr) {
        back = next_msg(&b, attr, out);
        ck_assert_mem_eq(&out->dst, &a.addr, 16); /* CM-06 */
        ck_assert_mem_eq(&out->src, dst, 16);
        ck_assert_uint_eq(out->pkey, 0x8002);
        ck_assert_uint_eq(back.tid, m->tid); /* CM-14 */
    }
    ck_assert(!cm_tx(b.cm, &more));
    return back;
}

static struct cm_msg answer(const struct cm_msg *m, unsigned attr)
{
    struct cm_out out;
    return answer_at(&b.addr, m, attr, &out);
}

/* A REQ of a's, not delivered. */
static struct cm_msg request(void)
{
    struct cm_connect_params p = unusual_params();
    struct cm_conn *c;
    struct cm_out out;
    ck_assert_int_eq(cm_connect(a.cm, &p, &a, now, &c), 0);
    return next_msg(&a, CM_REQ, &out);
}

START_TEST(cm_30_nobody_listens)
{
    const struct wire_addr other = wire_addr_v4(0x0A000003);
    struct cm_msg req = request(), rej;
    struct cm_listener *l;
    struct cm_out out;
    for (unsigned i = 0; i < 4; i++) {
        if (i == 1) /* arbitrary octets in the place of an IP header */
            memset(req.priv, 0xFF, CM_IP_HDR_LEN);
        if (i == 2) { /* a listener at another address */
            req = request();
            cm_listen(b.cm, CM_PS_TCP, &other, ANY_PORT, 0, NULL, &l);
        }
        if (i == 3) /* or at another kind of port */
            req.service_id = cm_service_id(CM_PS_UDP, ANY_PORT);
        rej = answer_at(&b.addr, &req, CM_REJ, &out);
        ck_assert_uint_eq(out.tclass, 0x68);
        ck_assert_uint_eq(out.hop_limit, 7);
        ck_assert_uint_eq(rej.local_id, 0);
        ck_assert_uint_eq(rej.remote_id, req.local_id);
        ck_assert_uint_eq(rej.msg_id, CM_ABOUT_REQ);
        ck_assert_uint_eq(rej.reason, CM_REJ_INVALID_SERVICE_ID);
        ck_assert_uint_eq(rej.ari_len, 0);
    }
    ck_assert_uint_eq(cm_live(b.cm), 0);
}
END_TEST

/* CM-06: the connection uses the address that the REQ came to, not one inside the REQ. */
START_TEST(cm_06_answered_from_where_it_came_to)
{
    const struct wire_addr other = wire_addr_v4(0x0A000003);
    struct cm_msg req = request();
    struct cm_qp_attr attr;
    struct cm_out out;
    listen_on_b();
    answer_at(&other, &req, 0, &out);
    ck_assert_int_eq(last(&b)->type, CM_EV_REQ);
    ck_assert_mem_eq(&last(&b)->local, &other, 16);
    ck_assert_int_eq(cm_qp_attr(last(&b)->conn, &attr), 0);
    ck_assert_mem_eq(&attr.sgid, &other, 16);
    ck_assert_uint_eq(attr.pkey, 0x8001); /* as the REQ says */
    ck_assert_int_eq(cm_accept(b.cm, last(&b)->conn, &accept_params, &b, now), 0);
    next_msg(&b, CM_REP, &out);
    ck_assert_mem_eq(&out.src, &other, 16);
    ck_assert_uint_eq(out.pkey, 0x8002); /* as it came */
}
END_TEST

/* CM-18: the REQ has its sender's time-out for our answer, and ours for its RTU; CM-32: and an
 * optional second path. */
START_TEST(cm_18_two_timeouts)
{
    struct cm_msg req = request(), rep;
    struct cm_out out;
    listen_on_b();
    req.remote_timeout = 19;
    req.local_timeout = 16;
    req.max_retries = 3;
    req.ack_timeout = 31;
    req.alt_remote_gid = b.addr;
    answer(&req, 0);
    struct cm_conn *c = last(&b)->conn;
    ck_assert_uint_eq(cm_deadline(b.cm), now + 4 * cm_wait_ns(19));
    ck_assert_int_eq(cm_accept(b.cm, c, &accept_params, &b, now), 0);
    ck_assert_uint_eq(cm_deadline(b.cm), now + cm_wait_ns(16));
    rep = next_msg(&b, CM_REP, &out);
    ck_assert_uint_eq(rep.failover, 1);
    struct cm_qp_attr attr;
    ck_assert_int_eq(cm_qp_attr(c, &attr), 0);
    ck_assert_uint_eq(attr.timeout, 24);                       /* SEC-24 */
    ck_assert_int_eq(cm_disconnect(b.cm, c, NULL, 0, now), 0); /* as it does itself */
    ck_assert_uint_eq(cm_deadline(b.cm), now + cm_wait_ns(18));
    ck_assert_uint_eq(c->retries_left, 7);
}
END_TEST

/* SEC-24: the ACK timeout that follows from a peer's value, even an absurd one. */
START_TEST(sec_24_ack_timeouts)
{
    static const struct {
        uint8_t lifetime, theirs, timeout;
    } rows[] = {{1, 1, 8}, {13, 31, 24}, {13, 20, 20}};
    struct cm_qp_attr attr;
    struct cm_conn *c;
    teardown();
    setup_with((struct cm_params){.packet_lifetime = rows[_i].lifetime},
               (struct cm_params){.ack_delay = rows[_i].theirs});
    listen_on_b();
    c = start();
    ck_assert_int_eq(cm_accept(b.cm, last(&b)->conn, &accept_params, &b, now), 0);
    pump();
    ck_assert_int_eq(cm_qp_attr(c, &attr), 0);
    ck_assert_uint_eq(attr.timeout, rows[_i].timeout);
}
END_TEST

START_TEST(cm_24_hanging_up_on_nothing)
{
    const struct cm_msg dreq = {
        .attr = CM_DREQ, .tid = 0x1122334455667788, .local_id = 5, .remote_id = 6, .remote_qpn = 7};
    struct cm_msg drep = answer(&dreq, CM_DREP);
    ck_assert_uint_eq(drep.local_id, 6);
    ck_assert_uint_eq(drep.remote_id, 5);
    ck_assert_uint_eq(cm_counters(b.cm)[CM_C_cm_rx_bad_id], 1);
    /* nothing else is answered */
    for (unsigned attr = CM_MRA; attr <= CM_LAP; attr++) {
        const struct cm_msg m = {.attr = (uint16_t)attr, .local_id = 5, .remote_id = 6};
        if (attr != CM_DREQ && attr != CM_SIDR_REQ)
            answer(&m, 0);
    }
    ck_assert_uint_eq(cm_counters(b.cm)[CM_C_cm_rx_bad_id], 8);
}
END_TEST

START_TEST(gsi_05_what_is_not_for_us)
{
    struct cm_msg req = request(), rej;
    struct cm_out out;
    uint8_t mad[CM_MAD_LEN];
    const uint64_t *n = cm_counters(b.cm);
    listen_on_b();
    cm_msg_pack(mad, &req);
    cm_rx(b.cm, mad, sizeof(mad), &a.addr, &b.addr, 2, 0xFFFF, now); /* GSI-02: not from a QP1 */
    cm_rx(b.cm, mad, sizeof(mad) - 1, &a.addr, &b.addr, 1, 0xFFFF, now);
    ck_assert_uint_eq(n[CM_C_cm_rx_bad_mad], 2);
    ck_assert_uint_eq(n[CM_C_cm_rx_unsupported], 0);
    answer(&(struct cm_msg){.attr = CM_APR, .local_id = 1, .remote_id = 2}, 0);
    ck_assert_uint_eq(n[CM_C_cm_rx_unsupported], 1);
    mad[17] = 0x77;
    cm_rx(b.cm, mad, sizeof(mad), &a.addr, &b.addr, 1, 0xFFFF, now);
    ck_assert_uint_eq(n[CM_C_cm_rx_unsupported], 2);
    mad[17] = CM_REQ;
    mad[1] = 0x03; /* GSI-05: another class */
    cm_rx(b.cm, mad, sizeof(mad), &a.addr, &b.addr, 1, 0xFFFF, now);
    ck_assert_uint_eq(n[CM_C_cm_rx_unsupported], 3);
    ck_assert(!cm_tx(b.cm, &out));
    mad[1] = CM_CLASS;
    mad[2] = 1; /* GSI-04 CM-29: another version */
    cm_rx(b.cm, mad, sizeof(mad), &a.addr, &b.addr, 1, 0x8002, now);
    rej = next_msg(&b, CM_REJ, &out);
    ck_assert_uint_eq(out.pkey, 0x8002);
    ck_assert_uint_eq(rej.tid, req.tid);
    ck_assert_uint_eq(rej.remote_id, req.local_id);
    ck_assert_uint_eq(rej.msg_id, CM_ABOUT_REQ);
    ck_assert_uint_eq(rej.reason, CM_REJ_CLASS_VERSION);
    ck_assert_uint_eq(n[CM_C_cm_rx_bad_mad], 3);
    ck_assert_uint_eq(n[CM_C_cm_rx], 6);
    ck_assert_uint_eq(n[CM_C_cm_tx], 1);
    ck_assert_uint_eq(cm_live(b.cm), 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cm says");
    TCase *t = tcase_create("cm says");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, cm_05_a_request_says_what_it_was_told);
    tcase_add_test(t, cm_05_what_nobody_chose);
    tcase_add_test(t, cm_07_a_request_asks_for_what_there_is);
    tcase_add_test(t, cm_08_both_ends_of_a_connection);
    tcase_add_test(t, cm_38_xrc);
    tcase_add_loop_test(t, cm_13_flow_control_takes_two, 0, 4);
    tcase_add_test(t, cm_07_a_grant_above_the_request);
    tcase_add_test(t, cm_33_private_data_of_each_message);
    tcase_add_test(t, cm_28_a_refusal_says_what_of);
    tcase_add_test(t, cm_30_nobody_listens);
    tcase_add_test(t, cm_06_answered_from_where_it_came_to);
    tcase_add_test(t, cm_18_two_timeouts);
    tcase_add_loop_test(t, sec_24_ack_timeouts, 0, 3);
    tcase_add_test(t, cm_24_hanging_up_on_nothing);
    tcase_add_test(t, gsi_05_what_is_not_for_us);
    suite_add_tcase(s, t);
    return unit_run(s);
}
