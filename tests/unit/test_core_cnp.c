/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The notification point: packets that cause a CNP, its form, its rate.
 */
#include <string.h>

#include "cc_of.h"
#include "core_rig.h"

#define US 1000ull

static void set_cc(struct rig *r, const char *spec)
{
    const struct cc_conf conf = cc_of(spec);
    ck_assert_int_eq(engine_set_cc(r->e, &conf, r->now), 0);
}

static struct wire_pkt marked_write(struct rig *r, uint32_t at)
{
    struct wire_pkt p = rig_pkt(r, WIRE_WRITE_ONLY, rig_psn(RIG_RQPSN, at));
    p.va = RIG_VA;
    p.rkey = r->rkey;
    p.dma_len = p.payload_len = 64;
    p.tclass = 26 << 2 | 3;
    return p;
}

static unsigned cnps(struct rig *r)
{
    unsigned n = 0;
    rig_tx(r, 0);
    for (unsigned i = 0; i < r->nsent; i++)
        n += r->sent[i].opcode == WIRE_OPCODE_CNP;
    rig_clear(r);
    return n;
}

/* CC-06, OPC-05: every field of a CNP, over IPv4 and IPv6; it goes out before anything else. */
START_TEST(cc_06_fields)
{
    for (unsigned v6 = 0; v6 < 2; v6++) {
        struct rig *r = rig_new(&(struct rig_opts){.ipv6 = v6});
        struct wire_pkt in = marked_write(r, 0);
        rig_post(r, WR_RDMA_WRITE, 1, 4096, 0);
        rig_rx(r, &in, NULL);
        ck_assert(engine_tx_ready(r->e));
        rig_tx(r, 0);
        const struct wire_pkt *p = &r->sent[0];
        ck_assert_uint_eq(p->opcode, WIRE_OPCODE_CNP);
        ck_assert_uint_eq(p->icrc_off + 4, 14u + (v6 ? 40 : 20) + 8 + 12 + 16 + 4);
        ck_assert_uint_eq(p->dqpn, RIG_PEER);
        ck_assert_uint_eq(p->pkey, 0xFFFF);
        ck_assert(p->becn && !p->fecn && !p->se && !p->migreq && !p->ackreq);
        ck_assert_uint_eq(p->psn, 0);
        ck_assert_uint_eq(p->pad, 0);
        ck_assert_uint_eq(p->tclass, 48 << 2); /* DSCP 48, not ECN-capable */
        ck_assert(!memcmp(&p->sip, &r->lip, 16) && !memcmp(&p->dip, &r->rip, 16));
        ck_assert(!memcmp(p->dmac, in.smac, 6) && !memcmp(p->smac, in.dmac, 6));
        ck_assert_uint_eq(p->sport, wire_udp_sport(0, engine_qp_num(r->qp), RIG_PEER));
        ck_assert_uint_eq(rig_count(r, ENGINE_C_np_ecn_marked_roce_packets), 1);
        ck_assert_uint_eq(rig_count(r, ENGINE_C_np_cnp_sent), 1);
        rig_free(r);
    }
}
END_TEST

/* CC-06: DSCP, ECN field as configured. */
START_TEST(cc_06_configured)
{
    struct rig *r = rig_new(NULL);
    set_cc(r, "none,cnp_dscp=12,cnp_ecn=2");
    struct wire_pkt in = marked_write(r, 0);
    rig_rx(r, &in, NULL);
    rig_tx(r, 1);
    ck_assert_uint_eq(r->sent[0].opcode, WIRE_OPCODE_CNP);
    ck_assert_uint_eq(r->sent[0].tclass, 12 << 2 | 2);
    rig_free(r);
}
END_TEST

/* CC-03, CC-27: every marked packet of a live queue pair counts: data, ACK, READ response,
 * duplicates and packets out of order too. A packet without a mark does not count, nor one that an
 * earlier check (CC-01) refuses. */
START_TEST(cc_03_which_packets)
{
    struct rig *r = rig_new(NULL);
    set_cc(r, "none,cnp_interval=0");
    struct wire_pkt p = marked_write(r, 0);
    rig_rx(r, &p, NULL);
    ck_assert_uint_eq(cnps(r), 1);
    r->now += US;
    rig_rx(r, &p, NULL); /* duplicate */
    ck_assert_uint_eq(cnps(r), 1);
    r->now += US;
    p.psn = rig_psn(RIG_RQPSN, 9); /* out of order */
    rig_rx(r, &p, NULL);
    ck_assert_uint_eq(cnps(r), 1);
    rig_post(r, WR_RDMA_WRITE, 1, 100, 0);
    rig_post(r, WR_RDMA_READ, 2, 100, 0);
    rig_tx(r, 0);
    r->now += US;
    p = rig_pkt(r, WIRE_ACKNOWLEDGE, RIG_PSN);
    p.tclass = 3;
    rig_rx(r, &p, NULL);
    ck_assert_uint_eq(cnps(r), 1);
    r->now += US;
    p = rig_pkt(r, WIRE_READ_RESP_ONLY, rig_psn(RIG_PSN, 1));
    p.payload_len = 100;
    p.tclass = 3;
    rig_rx(r, &p, NULL);
    ck_assert_uint_eq(cnps(r), 1);
    ck_assert_uint_eq(rig_count(r, ENGINE_C_np_ecn_marked_roce_packets), 5);
    for (unsigned ecn = 0; ecn < 3; ecn++) { /* CC-01: only CE is a mark */
        r->now += US;
        p = marked_write(r, 1 + ecn);
        p.tclass = (uint8_t)(26 << 2 | ecn);
        rig_rx(r, &p, NULL);
        ck_assert_uint_eq(cnps(r), 0);
    }
    r->now += US;
    p = marked_write(r, 4);
    p.sip.b[15] ^= 1; /* VAL-03 */
    rig_rx(r, &p, NULL);
    ck_assert_uint_eq(cnps(r), 0);
    ck_assert_uint_eq(rig_count(r, ENGINE_C_np_ecn_marked_roce_packets), 5);
    set_cc(r, "none,np=0");
    p = marked_write(r, 4);
    rig_rx(r, &p, NULL);
    ck_assert_uint_eq(cnps(r), 0);
    ck_assert_uint_eq(rig_count(r, ENGINE_C_np_ecn_marked_roce_packets), 6);
    rig_free(r);
}
END_TEST

/* CC-07: a marked CNP is counted as marked, and answered by nothing; nothing repeats a CNP, and it
 * moves no PSN. */
START_TEST(cc_07_no_cnp_for_a_cnp)
{
    struct rig *r = rig_new(NULL);
    struct wire_pkt p = rig_pkt(r, WIRE_OPCODE_CNP, 0);
    p.becn = true;
    p.tclass = 3;
    rig_rx(r, &p, NULL);
    ck_assert_uint_eq(rig_count(r, ENGINE_C_np_ecn_marked_roce_packets), 1);
    ck_assert_uint_eq(rig_tx(r, 0), 0);
    p = marked_write(r, 0);
    rig_rx(r, &p, NULL);
    ck_assert_uint_eq(cnps(r), 1);
    rig_pass(r, 100 * RIG_T);
    ck_assert_uint_eq(rig_tx(r, 0), 0);
    rig_post(r, WR_RDMA_WRITE, 1, 100, 0);
    rig_tx(r, 0);
    ck_assert_uint_eq(r->sent[0].psn, RIG_PSN);
    rig_free(r);
}
END_TEST

/* CC-04: the first at once, then one per interval, not a nanosecond earlier. */
START_TEST(cc_04_interval)
{
    struct rig *r = rig_new(NULL);
    set_cc(r, "none,cnp_interval=50us");
    uint64_t t = r->now = 12345678;
    static const struct {
        uint64_t at;
        unsigned want;
    } look[] = {{0, 1},     {1, 0},      {49999, 0},  {50000, 1},
                {99999, 0}, {100001, 1}, {150000, 0}, {150001, 1}};
    for (unsigned i = 0; i < sizeof(look) / sizeof(look[0]); i++) {
        r->now = t + look[i].at;
        struct wire_pkt p = marked_write(r, i);
        rig_rx(r, &p, NULL);
        ck_assert_msg(cnps(r) == look[i].want, "at %d ns", (int)look[i].at);
    }
    rig_free(r);
}
END_TEST

/* CC-26: even without an interval one CNP per received burst and queue pair, and no more than the
 * cap per second. */
START_TEST(cc_26_cost)
{
    struct rig *r = rig_new(NULL);
    set_cc(r, "none,cnp_interval=0");
    for (unsigned i = 0; i < 32; i++) {
        struct wire_pkt p = marked_write(r, i);
        rig_rx(r, &p, NULL);
    }
    ck_assert_uint_eq(cnps(r), 1);
    set_cc(r, "none,cnp_interval=0,cnp_max=10000");
    unsigned n = 0;
    for (unsigned i = 0; i < 5000; i++) {
        r->now += 20 * US; /* 50,000 per second are marked */
        struct wire_pkt p = marked_write(r, 32 + i);
        rig_rx(r, &p, NULL);
        n += cnps(r);
    }
    ck_assert_uint_ge(n, 990);
    ck_assert_uint_le(n, 1020);
    rig_free(r);
}
END_TEST

/* CC-05: two queue pairs have an interval each, or share that of the peer's address or the port. */
START_TEST(cc_05_scope)
{
    static const struct {
        const char *spec;
        unsigned same_peer, other_peer; /* CNPs for one mark of each queue pair */
    } cases[] = {
        {"none,cnp_scope=qp", 2, 2},
        {"none,cnp_scope=ip", 1, 2},
        {"none,cnp_scope=port", 1, 1},
    };
    for (unsigned i = 0; i < 6; i++) {
        bool other = i % 2;
        struct rig_opts o = {0};
        struct rig *r = rig_new(&o);
        struct qp *one = r->qp, *two;
        struct engine_qp_params qp = {
            .arg = r, .type = QP_RC, .pd = r->pd, .send_cq = r->cq, .recv_cq = r->cq};
        ck_assert_int_eq(engine_qp_create(r->e, &qp, &two), 0);
        set_cc(r, cases[i / 2].spec);
        r->qp = two;
        if (other)
            wire_addr_parse("10.0.0.77", &r->rip);
        rig_connect(r, two, &o, QPS_RTS);
        struct wire_pkt p = marked_write(r, 0);
        rig_rx(r, &p, NULL);
        r->qp = one;
        wire_addr_parse("10.0.0.2", &r->rip);
        p = marked_write(r, 0);
        rig_rx(r, &p, NULL);
        unsigned want = other ? cases[i / 2].other_peer : cases[i / 2].same_peer;
        ck_assert_msg(cnps(r) == want, "%s", cases[i / 2].spec);
        rig_free(r);
    }
}
END_TEST

/* UD-14, CC-03: a marked datagram is answered to the queue pair that sent it. */
START_TEST(ud_14_datagram)
{
    struct rig *r = rig_new(&(struct rig_opts){.type = QP_UD});
    rig_post_recv(r, 1, 0, 4096);
    struct wire_pkt p = rig_pkt(r, WIRE_OPCODE(WIRE_UD, WIRE_SEND_ONLY), 5);
    p.qkey = 0x11111111;
    p.sqpn = 0x4321;
    p.payload_len = 100;
    p.tclass = 3;
    rig_rx(r, &p, NULL);
    rig_tx(r, 0);
    ck_assert_uint_eq(r->nsent, 1);
    ck_assert_uint_eq(r->sent[0].opcode, WIRE_OPCODE_CNP);
    ck_assert_uint_eq(r->sent[0].dqpn, 0x4321);
    ck_assert(!memcmp(&r->sent[0].dip, &r->rip, 16));
    rig_free(r);
}
END_TEST

/* CC-29: off by default; cnp_nak sends one along with a sequence NAK. */
START_TEST(cc_29_with_a_nak)
{
    for (unsigned on = 0; on < 2; on++) {
        struct rig *r = rig_new(NULL);
        set_cc(r, on ? "none,cnp_nak=1" : "none");
        struct wire_pkt p = marked_write(r, 5);
        p.tclass = 0;
        rig_rx(r, &p, NULL);
        ck_assert_uint_eq(cnps(r), on);
        ck_assert_uint_eq(rig_count(r, ENGINE_C_tx_nak_seq), 1);
        ck_assert_uint_eq(rig_count(r, ENGINE_C_roce_slow_restart_cnps), on);
        rig_free(r);
    }
}
END_TEST

/* CC-30: FECN and BECN in anything but a CNP mean nothing. */
START_TEST(cc_30_fecn_becn)
{
    struct rig *r = rig_new(NULL);
    set_cc(r, "dcqcn");
    struct wire_pkt p = marked_write(r, 0);
    p.tclass = 0;
    p.fecn = p.becn = true;
    rig_rx(r, &p, NULL);
    ck_assert_uint_eq(cnps(r), 0);
    ck_assert_uint_eq(rig_count(r, ENGINE_C_rp_cnp_handled), 0);
    ck_assert_uint_eq(rig_count(r, ENGINE_C_np_ecn_marked_roce_packets), 0);
    rig_free(r);
}
END_TEST

/* CC-03, CC-26: if the cap refuses a flow's CNP, the flow's interval doesn't start. */
START_TEST(cc_26_cap_takes_no_interval)
{
    struct rig_opts o = {0};
    struct rig *r = rig_new(&o);
    struct qp *qp[3] = {r->qp};
    for (unsigned i = 1; i < 3; i++) {
        struct engine_qp_params p = {
            .arg = r, .type = QP_RC, .pd = r->pd, .send_cq = r->cq, .recv_cq = r->cq};
        ck_assert_int_eq(engine_qp_create(r->e, &p, &qp[i]), 0);
        rig_connect(r, qp[i], &o, QPS_RTS);
    }
    set_cc(r, "none,cnp_interval=10ms,cnp_max=1000");
    r->now += 1000 * US;
    for (unsigned i = 0; i < 3; i++) {
        r->qp = qp[i];
        struct wire_pkt p = marked_write(r, 0);
        rig_rx(r, &p, NULL);
    }
    ck_assert_uint_eq(cnps(r), 2);
    r->now += 1100 * US;
    for (unsigned i = 0; i < 3; i++) {
        r->qp = qp[i];
        struct wire_pkt p = marked_write(r, 1);
        rig_rx(r, &p, NULL);
        ck_assert_uint_eq(cnps(r), i == 2);
    }
    r->qp = qp[0];
    rig_free(r);
}
END_TEST

/* CC-26: more queue pairs marked at once than CNPs can wait: the rest is for the next mark. */
START_TEST(cc_26_queue_is_bounded)
{
    struct rig_opts o = {0};
    struct rig *r = rig_new(&o);
    struct qp *one = r->qp, *more[63];
    for (unsigned i = 0; i < 63; i++) {
        struct engine_qp_params qp = {
            .arg = r, .type = QP_RC, .pd = r->pd, .send_cq = r->cq, .recv_cq = r->cq};
        ck_assert_int_eq(engine_qp_create(r->e, &qp, &more[i]), 0);
        rig_connect(r, more[i], &o, QPS_RTS);
    }
    for (unsigned i = 0; i < 63; i++) {
        r->qp = more[i];
        struct wire_pkt p = marked_write(r, 0);
        rig_rx(r, &p, NULL);
    }
    for (unsigned i = 0; i < 3; i++) { /* several of one queue pair, at different times */
        r->qp = one;
        r->now += 100 * US;
        struct wire_pkt p = marked_write(r, i);
        rig_rx(r, &p, NULL);
    }
    engine_qp_destroy(r->e, more[0]); /* its CNPs are still sent */
    ck_assert_uint_eq(cnps(r), 64);
    rig_free(r);
}
END_TEST

UNIT_MAIN("core cnp", cc_06_fields, cc_06_configured, cc_03_which_packets, cc_07_no_cnp_for_a_cnp,
          cc_04_interval, cc_26_cost, cc_05_scope, ud_14_datagram, cc_29_with_a_nak,
          cc_30_fecn_becn, cc_26_cap_takes_no_interval, cc_26_queue_is_bounded)
