/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A packet's way to its queue pair: the checks, their order, and the counters.
 */
#include <string.h>

#include "core_rig.h"

/* VAL-01..06: each check that stands between the wire and the queue pair. A SEND of 8 octets is
 * outstanding; the packet would acknowledge it. */
enum twist {
    FINE,
    BAD_ICRC,
    OTHER_MAC,
    OTHER_VLAN,
    OTHER_IP,
    NO_QP,
    QPN_0,
    UD_OPCODE,
    WRONG_SIP,
    BAD_PKEY,
    LIMITED_PKEY,
    ZERO_PKEY,
    BAD_TVER,
    MULTICAST_QPN,
    BAD_UDP_CSUM,
    TWISTS
};
static const struct {
    const char *rule;
    enum engine_counter counter;
} twists[TWISTS] = {
    [FINE] = {"VAL-01 nothing wrong", ENGINE_C_none},
    [BAD_ICRC] = {"ICRC-08 VAL-02 iCRC", ENGINE_C_rx_icrc_err},
    [OTHER_MAC] = {"WIRE-06 another MAC", ENGINE_C_rx_not_for_us},
    [OTHER_VLAN] = {"WIRE-04 a VLAN that isn't ours", ENGINE_C_rx_not_for_us},
    [OTHER_IP] = {"WIRE-30 an IP address that isn't ours", ENGINE_C_rx_not_for_us},
    [NO_QP] = {"VAL-01 no such queue pair", ENGINE_C_rx_bad_qpn},
    [QPN_0] = {"HDR-07 queue pair 0", ENGINE_C_rx_bad_qpn},
    [UD_OPCODE] = {"OPC-02 datagram for an RC queue pair", ENGINE_C_rx_qp_type_mismatch},
    [WRONG_SIP] = {"VAL-03 not from the peer", ENGINE_C_rx_addr_mismatch},
    [BAD_PKEY] = {"KEY-03 another partition", ENGINE_C_rx_bad_pkey},
    [LIMITED_PKEY] = {"KEY-03 limited member matches full", ENGINE_C_none},
    [ZERO_PKEY] = {"KEY-02 P_Key 0", ENGINE_C_rx_bad_pkey},
    [BAD_TVER] = {"HDR-02 version", ENGINE_C_rx_bad_tver},
    [MULTICAST_QPN] = {"HDR-07 0xFFFFFF to a unicast address", ENGINE_C_rx_bad_qpn},
    [BAD_UDP_CSUM] = {"WIRE-24 UDP checksum, where it is looked at", ENGINE_C_rx_bad_udp_csum},
};

static void twist_packet(struct wire_pkt *p, enum twist how)
{
    switch (how) {
    case OTHER_MAC:
        p->dmac[5]++;
        break;
    case OTHER_VLAN:
        p->vlan = true;
        p->tci = 7;
        break;
    case OTHER_IP:
        wire_addr_parse("10.0.0.77", &p->dip);
        break;
    case NO_QP:
        p->dqpn ^= 5;
        break;
    case QPN_0:
        p->dqpn = 0;
        break;
    case UD_OPCODE:
        p->opcode = WIRE_OPCODE(WIRE_UD, WIRE_SEND_ONLY);
        p->sqpn = 5;
        break;
    case WRONG_SIP:
        wire_addr_parse("10.0.0.9", &p->sip);
        break;
    case BAD_PKEY:
        p->pkey = 0x8001;
        break;
    case LIMITED_PKEY:
        p->pkey = 0x7FFF;
        break;
    case ZERO_PKEY:
        p->pkey = 0x8000;
        break;
    case BAD_TVER:
        p->tver = 1;
        break;
    case MULTICAST_QPN:
        p->dqpn = 0xFFFFFF;
        p->opcode = WIRE_OPCODE(WIRE_UD, WIRE_SEND_ONLY);
        p->sqpn = 5;
        break;
    default:
        break;
    }
}

START_TEST(val_01_order_and_counters)
{
    for (unsigned i = 0; i < TWISTS; i++) {
        struct rig *r = rig_new(NULL);
        rig_post(r, WR_SEND, 1, 8, WR_F_SIGNALED);
        rig_tx(r, 0);
        struct wire_pkt p = rig_pkt(r, WIRE_ACKNOWLEDGE, RIG_PSN);
        twist_packet(&p, i);
        uint8_t frame[WIRE_FRAME_MAX];
        ck_assert_uint_gt(wire_build(frame, sizeof(frame), &p), 0);
        size_t len = wire_frame_len(&p);
        wire_icrc_seal(frame, len, p.ip_off, p.bth_off);
        if (i == BAD_ICRC)
            frame[len - 1] ^= 1;
        if (i == BAD_UDP_CSUM)
            memset(frame + p.ip_off + WIRE_IPV4_LEN + 6, 0x12, 2);
        uint64_t before[ENGINE_COUNTER_MAX];
        memcpy(before, engine_counters(r->e), sizeof(before));
        struct engine_frame f = {.data = frame, .len = (uint32_t)len};
        f.flags = i == BAD_UDP_CSUM ? WIRE_P_UDP_CSUM : 0;
        unsigned nc;
        ck_assert_uint_eq(engine_rx(r->e, &f, 1, r->now, r->copies, 64, &nc), 1);
        ck_assert_msg(f.drop == twists[i].counter, "%s: counted %s", twists[i].rule,
                      engine_counter_names[f.drop]);
        ck_assert_uint_eq(f.disposition, ENGINE_TAKEN);
        bool good = twists[i].counter == ENGINE_C_none;
        ck_assert_msg(r->nwc == good, "%s: effect", twists[i].rule);
        unsigned changed = 0; /* VAL-06: one counter, not counting those of traffic */
        for (unsigned c = ENGINE_C_rx_not_roce; c < ENGINE_COUNTER_MAX; c++)
            changed += engine_counters(r->e)[c] != before[c];
        ck_assert_msg(changed == !good, "%s: %u counters", twists[i].rule, changed);
        ck_assert_msg(rig_tx(r, 0) == 0, "%s: replied", twists[i].rule); /* SEC-02 */
        rig_free(r);
    }
}
END_TEST

/* VAL-01, WIRE-06: a burst with frames for others before, between and after ours. */
START_TEST(val_01_mixed_burst)
{
    static const bool ours[] = {false, true, false, false, true, true, false, true};
    enum { N = sizeof(ours) / sizeof(ours[0]) };
    for (unsigned twist = OTHER_MAC; twist <= OTHER_IP; twist++) {
        struct rig *r = rig_new(NULL);
        static uint8_t frame[N][WIRE_FRAME_MAX];
        struct engine_frame f[N];
        unsigned nc;
        for (unsigned i = 0; i < N; i++) {
            struct wire_pkt p = rig_pkt(r, WIRE_ACKNOWLEDGE, RIG_PSN);
            p.dmac[5] += !ours[i] && twist == OTHER_MAC;
            p.vlan = !ours[i] && twist == OTHER_VLAN;
            p.tci = 7;
            p.dip.b[15] += !ours[i] && twist == OTHER_IP ? 9 : 0;
            ck_assert_uint_gt(wire_build(frame[i], sizeof(frame[i]), &p), 0);
            size_t len = wire_frame_len(&p);
            wire_icrc_seal(frame[i], len, p.ip_off, p.bth_off);
            f[i] = (struct engine_frame){.data = frame[i], .len = (uint32_t)len};
        }
        ck_assert_uint_eq(engine_rx(r->e, f, N, r->now, r->copies, 64, &nc), N);
        for (unsigned i = 0; i < N; i++)
            ck_assert_msg((f[i].drop == ENGINE_C_rx_not_for_us) == !ours[i], "%s: frame %u: %s",
                          twists[twist].rule, i, engine_counter_names[f[i].drop]);
        rig_free(r);
    }
}
END_TEST

/* VAL-04, VAL-05: responses need RTS or SQD; requests RTR, RTS or SQD. */
START_TEST(val_04_states)
{
    for (unsigned s = QPS_RESET; s <= QPS_SQD; s++) {
        struct rig_opts o = {.stay = true};
        struct rig *r = rig_new(&o);
        struct engine_qp_attr a = {.state = QPS_SQD};
        if (s != QPS_RESET)
            rig_connect(r, r->qp, &o, s == QPS_SQD ? QPS_RTS : (enum qp_state)s);
        if (s == QPS_SQD)
            ck_assert_int_eq(engine_qp_modify(r->e, r->qp, &a, QPA_STATE, r->now), 0);
        struct wire_pkt p = rig_pkt(r, WIRE_ACKNOWLEDGE, 9);
        rig_rx(r, &p, NULL);
        ck_assert_int_eq(r->last.drop == ENGINE_C_rx_bad_qp_state, s < QPS_RTS);
        p = rig_pkt(r, WIRE_WRITE_ONLY, RIG_RQPSN);
        rig_rx(r, &p, NULL);
        ck_assert_int_eq(r->last.drop == ENGINE_C_rx_bad_qp_state, s < QPS_RTR);
        rig_free(r);
    }
}
END_TEST

/* VAL-07, SEC-03: frames that are not RoCE go to the slow path, rubbish is dropped; no octet past
 * the frame is read. */
START_TEST(val_07_rubbish)
{
    struct rig *r = rig_new(NULL);
    static uint8_t buf[9216];
    struct engine_frame f = {.data = buf};
    unsigned nc;
    buf[12] = 0x08, buf[13] = 0x06; /* ARP */
    f.len = 60;
    engine_rx(r->e, &f, 1, r->now, r->copies, 64, &nc);
    ck_assert_uint_eq(f.disposition, ENGINE_SLOW_PATH);
    uint32_t x = 1;
    for (unsigned i = 0; i < 20000; i++) {
        f.len = (x = x * 1664525 + 1013904223) >> 8 & 127;
        for (unsigned k = 0; k < f.len; k++)
            buf[k] = (uint8_t)((x = x * 1664525 + 1013904223) >> 24);
        if (i & 1)
            buf[12] = 0x08, buf[13] = 0, buf[14] = 0x45;
        engine_rx(r->e, &f, 1, r->now, r->copies, 64, &nc);
        ck_assert_uint_eq(nc, 0);
    }
    ck_assert_uint_eq(rig_state(r), QPS_RTS);
    rig_free(r);
}
END_TEST

/* engine_rx stops before the caller's array of copies can overflow. */
START_TEST(sec_03_copies_fit)
{
    struct rig *r = rig_new(NULL);
    rig_post(r, WR_SEND, 1, 8, WR_F_SIGNALED);
    rig_tx(r, 0);
    struct wire_pkt p = rig_pkt(r, WIRE_ACKNOWLEDGE, RIG_PSN);
    uint8_t frame[WIRE_FRAME_MAX];
    wire_build(frame, sizeof(frame), &p);
    size_t len = wire_frame_len(&p);
    wire_icrc_seal(frame, len, p.ip_off, p.bth_off);
    struct engine_frame f = {.data = frame, .len = (uint32_t)len};
    unsigned nc;
    ck_assert_uint_eq(engine_rx(r->e, &f, 1, r->now, r->copies, ENGINE_FRAME_COPIES - 1, &nc), 0);
    ck_assert_uint_eq(nc, 0);
    ck_assert_uint_eq(engine_rx(r->e, &f, 1, r->now, r->copies, ENGINE_FRAME_COPIES, &nc), 1);
    ck_assert_uint_eq(r->nwc, 1);
    rig_free(r);
}
END_TEST

/* VAL-01 step 6: each frame of a burst finds its own queue pair, independent of the frame
 * before. */
START_TEST(val_01_burst_for_several)
{
    struct rig *r = rig_new(NULL);
    struct qp *qp[2] = {r->qp};
    struct engine_qp_params params = {
        .arg = r, .type = QP_RC, .pd = r->pd, .send_cq = r->cq, .recv_cq = r->cq};
    ck_assert_int_eq(engine_qp_create(r->e, &params, &qp[1]), 0);
    rig_connect(r, qp[1], &(struct rig_opts){0}, QPS_RTS);
    static const int to[] = {0, 0, 1, -1, 1, 0, -1, -1}; /* -1 = none */
    static uint8_t frame[8][WIRE_FRAME_MAX];
    struct engine_frame f[8] = {0};
    uint32_t count[2] = {0};
    for (unsigned i = 0; i < 8; i++) {
        struct wire_pkt p = rig_pkt(r, WIRE_WRITE_ONLY, RIG_RQPSN);
        if (to[i] >= 0) {
            p.psn = rig_psn(RIG_RQPSN, count[to[i]]++);
            p.dqpn = engine_qp_num(qp[to[i]]);
        } else {
            p.dqpn = engine_qp_num(qp[0]) ^ 0x800001u;
        }
        p.va = RIG_VA;
        p.rkey = r->rkey;
        p.dma_len = p.payload_len = 8;
        ck_assert_uint_gt(wire_build(frame[i], WIRE_FRAME_MAX, &p), 0);
        memset(frame[i] + p.payload_off, (int)i, 8);
        f[i] = (struct engine_frame){.data = frame[i], .len = (uint32_t)wire_frame_len(&p)};
        wire_icrc_seal(frame[i], f[i].len, p.ip_off, p.bth_off);
    }
    unsigned nc, at = 0;
    ck_assert_uint_eq(engine_rx(r->e, f, 8, r->now, r->copies, 512, &nc), 8);
    for (unsigned i = 0; i < 8; i++) {
        ck_assert_uint_eq(f[i].drop, to[i] < 0 ? ENGINE_C_rx_bad_qpn : ENGINE_C_none);
        if (to[i] >= 0) {
            ck_assert_uint_eq(r->copies[at].qpn, engine_qp_num(qp[to[i]]));
            ck_assert_uint_eq(r->copies[at++].frame, i);
        }
    }
    ck_assert_uint_eq(nc, at);
    /* A caller that copies at once is given each copy in its final form. */
    ck_assert_uint_eq(r->nlisted, nc);
    ck_assert_mem_eq(r->listed, r->copies, nc * sizeof(*r->listed));
    rig_free(r);
}
END_TEST

/* VAL-04: two packets of a burst differ only in their PSN. The second is still judged by the state
 * in which the first has left the queue pair. */
START_TEST(val_04_state_within_a_burst)
{
    struct rig *r = rig_new(NULL);
    static uint8_t frame[3][WIRE_FRAME_MAX];
    struct engine_frame f[3] = {0};
    unsigned nc;
    for (unsigned i = 0; i < 3; i++) {
        struct wire_pkt p = rig_pkt(r, WIRE_SEND_ONLY, rig_psn(RIG_RQPSN, i));
        rig_post_recv(r, i, 0, 8);
        ck_assert_uint_gt(wire_build(frame[i], WIRE_FRAME_MAX, &p), 0);
        f[i] = (struct engine_frame){.data = frame[i], .len = (uint32_t)wire_frame_len(&p)};
        wire_icrc_seal(frame[i], f[i].len, p.ip_off, p.bth_off);
    }
    r->cq_room = 1; /* CQ-05: the second one ends it */
    ck_assert_uint_eq(engine_rx(r->e, f, 3, r->now, r->copies, 512, &nc), 3);
    ck_assert_uint_eq(rig_state(r), QPS_ERR);
    ck_assert_uint_eq(f[1].drop, ENGINE_C_none);
    ck_assert_uint_eq(f[2].drop, ENGINE_C_rx_bad_qp_state);
    struct engine_qp_info info;
    engine_qp_info(r->e, r->qp, &info);
    ck_assert_uint_eq(info.rx_packets, 2);
    rig_free(r);
}
END_TEST

/* UC-10: an unreliable connection has its peer's address and its P_Key as a reliable one does. */
START_TEST(uc_10_address_and_key)
{
    static const enum engine_counter drops[] = {ENGINE_C_none, ENGINE_C_rx_addr_mismatch,
                                                ENGINE_C_rx_bad_pkey};
    for (unsigned i = 0; i < 3; i++) {
        struct rig *r = rig_new(&(struct rig_opts){.type = QP_UC});
        ck_assert_int_eq(rig_post_recv(r, 1, 0, 64), 0);
        struct wire_pkt p = rig_pkt(r, WIRE_OPCODE(WIRE_UC, WIRE_SEND_ONLY), RIG_RQPSN);
        p.payload_len = 8;
        if (i == 1)
            wire_addr_parse("10.0.0.9", &p.sip);
        if (i == 2)
            p.pkey = 0x8001;
        rig_rx(r, &p, NULL);
        ck_assert_uint_eq(r->last.drop, drops[i]);
        ck_assert_uint_eq(r->nwc, i == 0);
        ck_assert_uint_eq(rig_tx(r, 0), 0);
        rig_free(r);
    }
}
END_TEST

/* RNR-10: UC and UD without receives: silence. */
START_TEST(rnr_10_not_here)
{
    static const enum qp_type types[] = {QP_UC, QP_UD};
    for (unsigned i = 0; i < 2; i++) {
        struct rig *r = rig_new(&(struct rig_opts){.type = types[i]});
        struct wire_pkt p =
            rig_pkt(r, WIRE_OPCODE(i ? WIRE_UD : WIRE_UC, WIRE_SEND_ONLY), RIG_RQPSN);
        p.payload_len = 8;
        p.ackreq = true;
        p.qkey = 0x11111111;
        p.sqpn = RIG_PEER;
        rig_rx(r, &p, NULL);
        ck_assert_uint_eq(rig_tx(r, 0), 0);
        ck_assert_uint_eq(rig_count(r, ENGINE_C_tx_rnr_nak), 0);
        ck_assert_uint_eq(rig_count(r, i ? ENGINE_C_ud_drop_no_wqe : ENGINE_C_out_of_buffer), 1);
        ck_assert_uint_eq(rig_state(r), QPS_RTS);
        rig_free(r);
    }
}
END_TEST

/* RSP-07, OPC-01, OPC-07, ATM-13: reserved opcodes, and an optional one that is not enabled,
 * neither execute nor answer with data. */
START_TEST(rsp_07_other_opcodes)
{
    static const uint8_t ops[] = {0x15, 0x18, 0x1B, 0x1E, 0x1F, WIRE_FLUSH};
    for (unsigned i = 0; i < sizeof(ops); i++) {
        struct rig *r = rig_new(NULL);
        struct wire_pkt p = rig_pkt(r, WIRE_WRITE_ONLY, RIG_RQPSN);
        bool reserved = !wire_opcodes[ops[i]].name;
        if (!reserved)
            p = rig_pkt(r, ops[i], RIG_RQPSN);
        p.va = RIG_VA;
        p.rkey = r->rkey;
        p.dma_len = 8;
        p.payload_len = ops[i] == WIRE_FLUSH ? 0 : 8;
        uint8_t frame[WIRE_FRAME_MAX];
        ck_assert_uint_gt(wire_build(frame, sizeof(frame), &p), 0);
        size_t len = wire_frame_len(&p);
        memset(frame + p.payload_off, 0x77, p.payload_len);
        if (reserved)
            frame[p.bth_off] = ops[i];
        wire_icrc_seal(frame, len, p.ip_off, p.bth_off);
        struct engine_frame f = {.data = frame, .len = (uint32_t)len};
        unsigned nc;
        ck_assert_uint_eq(engine_rx(r->e, &f, 1, r->now, r->copies, 64, &nc), 1);
        ck_assert_uint_eq(nc, 0);
        unsigned n = rig_tx(r, 0);
        if (reserved) {
            ck_assert_uint_eq(f.drop, ENGINE_C_rx_bad_opcode);
            ck_assert_uint_eq(n, 0);
            ck_assert_uint_eq(rig_state(r), QPS_RTS);
        } else { /* RSP-08 */
            ck_assert_uint_eq(n, 1);
            ck_assert_uint_eq(r->sent[0].syndrome, WIRE_SYN_NAK_INV);
            ck_assert_uint_eq(rig_state(r), QPS_ERR);
        }
        rig_free(r);
    }
}
END_TEST

UNIT_MAIN("engine rx", val_01_order_and_counters, val_01_mixed_burst, val_04_states, val_07_rubbish,
          sec_03_copies_fit, val_01_burst_for_several, val_04_state_within_a_burst,
          uc_10_address_and_key, rnr_10_not_here, rsp_07_other_opcodes)
