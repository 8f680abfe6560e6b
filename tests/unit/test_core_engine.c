/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
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

START_TEST(val_01_order_and_counters)
{
    for (unsigned i = 0; i < TWISTS; i++) {
        struct rig *r = rig_new(NULL);
        rig_post(r, WR_SEND, 1, 8, WR_F_SIGNALED);
        rig_tx(r, 0);
        struct wire_pkt p = rig_pkt(r, WIRE_ACKNOWLEDGE, RIG_PSN);
        switch (i) {
        case OTHER_MAC:
            p.dmac[5]++;
            break;
        case OTHER_VLAN:
            p.vlan = true;
            p.tci = 7;
            break;
        case OTHER_IP:
            wire_addr_parse("10.0.0.77", &p.dip);
            break;
        case NO_QP:
            p.dqpn ^= 5;
            break;
        case QPN_0:
            p.dqpn = 0;
            break;
        case UD_OPCODE:
            p.opcode = WIRE_OPCODE(WIRE_UD, WIRE_SEND_ONLY);
            p.sqpn = 5;
            break;
        case WRONG_SIP:
            wire_addr_parse("10.0.0.9", &p.sip);
            break;
        case BAD_PKEY:
            p.pkey = 0x8001;
            break;
        case LIMITED_PKEY:
            p.pkey = 0x7FFF;
            break;
        case ZERO_PKEY:
            p.pkey = 0x8000;
            break;
        case BAD_TVER:
            p.tver = 1;
            break;
        case MULTICAST_QPN:
            p.dqpn = 0xFFFFFF;
            p.opcode = WIRE_OPCODE(WIRE_UD, WIRE_SEND_ONLY);
            p.sqpn = 5;
            break;
        default:
            break;
        }
        uint8_t frame[WIRE_FRAME_MAX];
        ck_assert_uint_gt(wire_build(frame, sizeof frame, &p), 0);
        size_t len = wire_frame_len(&p);
        wire_icrc_seal(frame, len, p.ip_off, p.bth_off);
        if (i == BAD_ICRC)
            frame[len - 1] ^= 1;
        if (i == BAD_UDP_CSUM)
            memset(frame + p.ip_off + WIRE_IPV4_LEN + 6, 0x12, 2);
        uint64_t before[ENGINE_COUNTER_MAX];
        memcpy(before, engine_counters(r->e), sizeof before);
        struct engine_frame f = {.data = frame, .len = (uint32_t)len};
        f.flags = i == BAD_UDP_CSUM ? WIRE_P_UDP_CSUM : 0;
        unsigned nc;
        ck_assert_uint_eq(engine_rx(r->e, &f, 1, r->now, r->copies, 64, &nc), 1);
        ck_assert_msg(f.drop == twists[i].counter, "%s: counted %s", twists[i].rule,
                      engine_counter_names[f.drop]);
        ck_assert_uint_eq(f.disposition, ENGINE_TAKEN);
        bool good = twists[i].counter == ENGINE_C_none;
        ck_assert_msg(r->nwc == good, "%s: effect", twists[i].rule);
        unsigned changed = 0; /* VAL-06: one counter, apart from those of traffic */
        for (unsigned c = ENGINE_C_rx_not_roce; c < ENGINE_COUNTER_MAX; c++)
            changed += engine_counters(r->e)[c] != before[c];
        ck_assert_msg(changed == !good, "%s: %u counters", twists[i].rule, changed);
        ck_assert_msg(rig_tx(r, 0) == 0, "%s: replied", twists[i].rule); /* SEC-02 */
        rig_free(r);
    }
}
END_TEST

/* VAL-01, WIRE-06: a burst in which frames for others stand before, between and behind ours. */
START_TEST(val_01_mixed_burst)
{
    static const bool ours[] = {false, true, false, false, true, true, false, true};
    enum { N = sizeof ours / sizeof ours[0] };
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
            ck_assert_uint_gt(wire_build(frame[i], sizeof frame[i], &p), 0);
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

/* VAL-07, SEC-03: what isn't RoCE goes to the slow path, rubbish is dropped; nothing is read
 * beyond. */
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
    wire_build(frame, sizeof frame, &p);
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

/* VAL-01 step 6: each frame of a burst finds its own queue pair, whichever the one before was for.
 */
START_TEST(val_01_burst_for_several)
{
    struct rig *r = rig_new(NULL);
    struct qp *qp[2] = {r->qp};
    struct engine_qp_params params = {
        .arg = r, .type = QP_RC, .pd = r->pd, .send_cq = r->cq, .recv_cq = r->cq};
    ck_assert_int_eq(engine_qp_create(r->e, &params, &qp[1]), 0);
    rig_connect(r, qp[1], &(struct rig_opts){0}, QPS_RTS);
    static const int to[] = {0, 0, 1, -1, 1, 0, -1, -1}; /* -1 = nobody */
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
    /* Whoever wants to copy at once has been told of each, as it is in the end. */
    ck_assert_uint_eq(r->nlisted, nc);
    ck_assert_mem_eq(r->listed, r->copies, nc * sizeof(*r->listed));
    rig_free(r);
}
END_TEST

/* VAL-04: a packet that differs from the one before in its PSN alone is judged by the state that
 * that one left. */
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

/* GSI: what the CM emits is a well-formed datagram, and what comes for QP1 reaches it (KEY-07). */
START_TEST(gsi_both_ways)
{
    struct rig *r = rig_new(NULL);
    uint8_t mad[256], frame[WIRE_FRAME_MAX];
    memset(mad, 0x42, sizeof mad);
    struct engine_slot s = {.buf = frame, .cap = sizeof frame};
    struct engine_av av = {.sgid = r->lip, .dgid = r->rip, .dmac = {2, 0, 0, 0, 0, 2}};
    ck_assert_int_eq(engine_gsi_emit(r->e, &s, &av, WIRE_PKEY_DEFAULT, mad, 256), 0);
    wire_icrc_seal(s.buf, s.len, s.ip_off, s.bth_off);
    struct wire_pkt p;
    ck_assert_int_eq(wire_parse(s.buf, s.len, 0, &p), WIRE_OK);
    ck_assert_uint_eq(p.dqpn, 1);
    ck_assert_uint_eq(p.sqpn, 1);
    ck_assert_uint_eq(p.qkey, WIRE_QKEY_GSI);
    ck_assert_uint_eq(p.payload_len, 256);
    ck_assert_uint_eq(p.pkey, WIRE_PKEY_DEFAULT); /* KEY-01 */
    ck_assert(!p.migreq);                         /* HDR-04 */
    ck_assert_int_ne(engine_gsi_emit(r->e, &s, &av, WIRE_PKEY_DEFAULT, mad, 300), 0);

    p = rig_pkt(r, WIRE_OPCODE(WIRE_UD, WIRE_SEND_ONLY), 1);
    p.dqpn = 1;
    p.sqpn = 1;
    p.payload_len = 256;
    p.qkey = WIRE_QKEY_GSI;
    rig_rx(r, &p, mad);
    ck_assert_uint_eq(r->gsi, 1);
    p.qkey = 5;
    rig_rx(r, &p, mad);
    ck_assert_uint_eq(r->last.drop, ENGINE_C_rx_bad_qkey);
    p.qkey = WIRE_QKEY_GSI;
    p.pkey = 0x8123;
    rig_rx(r, &p, mad);
    ck_assert_uint_eq(r->last.drop, ENGINE_C_rx_bad_pkey); /* KEY-04 */
    ck_assert_uint_eq(r->gsi, 1);
    rig_free(r);
}
END_TEST

/* CNPs are counted, handled or ignored, never a drop (OPC-05, CC-08), on connected and datagram
 * queue pairs (UD-14). */
START_TEST(cc_08_cnp)
{
    static const enum qp_type types[] = {QP_RC, QP_UC, QP_UD};
    for (unsigned i = 0; i < 3; i++) {
        struct rig *r = rig_new(&(struct rig_opts){.type = types[i]});
        struct wire_pkt p = rig_pkt(r, WIRE_OPCODE_CNP, 0);
        p.becn = true;
        p.payload_len = 0;
        rig_rx(r, &p, NULL);
        ck_assert_uint_eq(r->last.drop, 0);
        ck_assert_uint_eq(
            rig_count(r, ENGINE_C_rp_cnp_ignored) + rig_count(r, ENGINE_C_rp_cnp_handled), 1);
        rig_free(r);
    }
}
END_TEST

/* Several busy queue pairs share the port by turns of a quantum, none starves, PSNs stay in order.
 */
START_TEST(fair_turns)
{
    struct rig *r = rig_new(NULL);
    struct qp *qp[4] = {r->qp};
    struct engine_qp_params params = {.arg = r,
                                      .type = QP_RC,
                                      .pd = r->pd,
                                      .send_cq = r->cq,
                                      .recv_cq = r->cq,
                                      .max_send_wr = 64,
                                      .max_send_sge = 1};
    for (unsigned i = 1; i < 4; i++) {
        ck_assert_int_eq(engine_qp_create(r->e, &params, &qp[i]), 0);
        rig_connect(r, qp[i], &(struct rig_opts){0}, QPS_RTS);
    }
    struct engine_send_wr wr = rig_wr(r, WR_RDMA_WRITE, 1, 0, 100 * 1024);
    for (unsigned i = 0; i < 4; i++)
        ck_assert_int_eq(engine_post_send(r->e, qp[i], &wr, r->now), 0);
    static struct engine_slot slots[ENGINE_BURST];
    static uint8_t frames[ENGINE_BURST][WIRE_FRAME_MAX];
    unsigned count[4] = {0};
    for (unsigned round = 0; round < 4; round++) {
        unsigned n = round % 2 ? 7 : 57; /* odd sizes: a turn may be split over two calls */
        for (unsigned i = 0; i < n; i++)
            slots[i] = (struct engine_slot){.buf = frames[i], .cap = WIRE_FRAME_MAX};
        ck_assert_uint_eq(engine_tx(r->e, slots, n, r->now), n);
        engine_sent(r->e, slots, n, r->now);
        for (unsigned i = 0; i < n; i++)
            for (unsigned k = 0; k < 4; k++)
                if (slots[i].qpn == engine_qp_num(qp[k]))
                    ck_assert_uint_eq(slots[i].psn, rig_psn(RIG_PSN, count[k]++));
    }
    for (unsigned k = 0; k < 4; k++)
        ck_assert_uint_eq(count[k], 32); /* 128 packets, quantum 16 */
    rig_free(r);
}
END_TEST

/* Destroying a queue pair between engine_tx and engine_sent voids its slots. */
START_TEST(qp_14_destroy_before_sent)
{
    struct rig *r = rig_new(NULL);
    rig_post(r, WR_SEND, 1, 3000, 0);
    static struct engine_slot slots[4];
    static uint8_t frames[4][WIRE_FRAME_MAX];
    for (unsigned i = 0; i < 4; i++)
        slots[i] = (struct engine_slot){.buf = frames[i], .cap = WIRE_FRAME_MAX};
    ck_assert_uint_eq(engine_tx(r->e, slots, 4, r->now), 3);
    engine_qp_destroy(r->e, r->qp);
    engine_sent(r->e, slots, 3, r->now);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_uint_eq(slots[i].len, 0);
    rig_free(r);
}
END_TEST

/* Every counter has a name, and every drop a rule (appendix C, CTR-01). */
START_TEST(ctr_01_names)
{
    for (unsigned i = 0; i < ENGINE_COUNTER_MAX; i++) {
        ck_assert_ptr_nonnull(engine_counter_names[i]);
        ck_assert_ptr_nonnull(engine_counter_rules[i]);
        if (i >= ENGINE_C_rx_not_roce)
            ck_assert_msg(strchr(engine_counter_rules[i], '-'), "%s", engine_counter_names[i]);
    }
    ck_assert_str_eq(engine_status_name(WC_RETRY_EXC_ERR), "RETRY_EXC_ERR"); /* CQ-02 */
    ck_assert_uint_eq(WC_RETRY_EXC_ERR, 12);
    ck_assert_uint_eq(WC_GENERAL_ERR, 21);
}
END_TEST

/* CTR-03: reading changes nothing, and what concerns one queue pair is counted there, too. */
START_TEST(ctr_03_read_again)
{
    struct rig *r = rig_new(NULL);
    rig_post(r, WR_SEND, 1, 3000, 0);
    rig_tx(r, 0);
    rig_aeth(r, RIG_PSN, WIRE_SYN_NAK_SEQ, 0);
    rig_tx(r, 0);
    rig_pass(r, RIG_T + RIG_T / 8);
    rig_tx(r, 0);
    for (unsigned i = 0; i < 2; i++) {
        struct engine_qp_info info;
        engine_qp_info(r->e, r->qp, &info);
        ck_assert_uint_eq(info.retransmits, 6);
        ck_assert_uint_eq(info.timeouts, 1);
        ck_assert_uint_eq(info.naks, 1);
        ck_assert_uint_eq(rig_count(r, ENGINE_C_tx_retransmit), 6);
        ck_assert_uint_eq(rig_count(r, ENGINE_C_packet_seq_err), 1);
        ck_assert_uint_eq(rig_count(r, ENGINE_C_local_ack_timeout_err), 1);
        ck_assert_uint_eq(rig_count(r, ENGINE_C_rx_packets), 1);
    }
    _Static_assert(sizeof *engine_counters(NULL) == 8, "64 bit");
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

/* IPv6 all the way. */
START_TEST(wire_ipv6)
{
    struct rig *r = rig_new(&(struct rig_opts){.ipv6 = true});
    rig_post(r, WR_SEND, 1, 3000, WR_F_SIGNALED);
    ck_assert_uint_eq(rig_tx(r, 0), 3);
    ck_assert_uint_eq(r->sent[0].ip_version, 6);
    rig_ack(r, rig_psn(RIG_PSN, 2));
    ck_assert_uint_eq(r->nwc, 1);
    rig_free(r);
}
END_TEST

/* ACK-10: an ACK goes the way that requests go. */
START_TEST(ack_10_fields)
{
    struct rig *r = rig_new(NULL);
    rig_post(r, WR_SEND, 1, 8, 0);
    ck_assert_uint_eq(rig_tx(r, 0), 1);
    struct wire_pkt p = rig_pkt(r, WIRE_WRITE_ONLY, RIG_RQPSN);
    p.va = RIG_VA;
    p.rkey = r->rkey;
    p.dma_len = p.payload_len = 8;
    p.ackreq = true;
    rig_rx(r, &p, NULL);
    ck_assert_uint_eq(rig_tx(r, 0), 1);
    const struct wire_pkt *req = &r->sent[0], *ack = &r->sent[1];
    ck_assert_uint_eq(ack->opcode, WIRE_ACKNOWLEDGE);
    ck_assert_uint_eq(ack->psn, RIG_RQPSN);
    ck_assert_uint_eq(ack->pkey, 0xFFFF);
    ck_assert_uint_eq(ack->dqpn, RIG_PEER);
    ck_assert(!ack->se && !ack->ackreq);
    ck_assert_uint_eq(ack->sport, req->sport);
    ck_assert_uint_eq(ack->tclass, req->tclass);
    rig_free(r);
}
END_TEST

/* REQ-19: the completion of a SEND comes when its data, and that of the WRITE before it, is in
 * memory. REQ-20: data goes to memory in the order of addresses. */
START_TEST(req_19_data_first)
{
    struct rig *r = rig_new(NULL);
    ck_assert_int_eq(rig_post_recv(r, 7, 8192, 100), 0);
    r->late = true;
    struct wire_pkt p = rig_pkt(r, WIRE_WRITE_FIRST, RIG_RQPSN);
    p.va = RIG_VA;
    p.rkey = r->rkey;
    p.dma_len = 2000;
    p.payload_len = 1024;
    rig_rx(r, &p, NULL);
    p = rig_pkt(r, WIRE_WRITE_LAST, rig_psn(RIG_RQPSN, 1));
    p.payload_len = 976;
    rig_rx(r, &p, NULL);
    p = rig_pkt(r, WIRE_SEND_ONLY, rig_psn(RIG_RQPSN, 2));
    p.payload_len = 50;
    p.ackreq = true;
    rig_rx(r, &p, NULL);
    ck_assert_uint_eq(r->ncopies, 3);
    ck_assert_uint_eq(r->copies[0].dst.off, 0);
    ck_assert_uint_eq(r->copies[1].dst.off, 1024);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_uint_eq(r->nwc, 0);
        ck_assert_uint_eq(rig_tx(r, 0), 0); /* RSP-25: no ACK before it either */
        rig_copy(r, 1, 0);
    }
    ck_assert_uint_eq(r->nwc, 1);
    ck_assert_uint_eq(r->wc[0].wr_id, 7);
    ck_assert_uint_eq(r->wc[0].byte_len, 50);
    ck_assert_uint_eq(rig_tx(r, 0), 1);
    rig_free(r);
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

/* ACK-04: what may wait for its receiver's owner: an ACK of one queue pair, never a NAK, READ
 * responses, requests, or several queue pairs' answers; and all of it goes in the end. */
START_TEST(ack_04_what_can_wait)
{
    struct rig *r = rig_new(&(struct rig_opts){.max_rd_atomic = 4});
    ck_assert_uint_eq(rig_tx(r, 0), 0);
    ck_assert(engine_tx_only_ack(r->e)); /* nothing at all */
    struct wire_pkt p = rig_pkt(r, WIRE_WRITE_ONLY, RIG_RQPSN);
    p.va = RIG_VA;
    p.rkey = r->rkey;
    p.dma_len = p.payload_len = 8;
    p.ackreq = true;
    rig_rx(r, &p, NULL);
    ck_assert(engine_tx_ready(r->e));
    ck_assert(engine_tx_only_ack(r->e));

    rig_post(r, WR_RDMA_WRITE, 1, 8, 0); /* the answer: both leave now */
    ck_assert(!engine_tx_only_ack(r->e));
    ck_assert_uint_eq(rig_tx(r, 0), 2);
    ck_assert_uint_eq(r->sent[0].opcode, WIRE_ACKNOWLEDGE);
    ck_assert_uint_eq(r->sent[1].opcode, WIRE_WRITE_ONLY);
    rig_ack(r, RIG_PSN);

    p = rig_pkt(r, WIRE_READ_REQUEST, rig_psn(RIG_RQPSN, 1));
    p.va = RIG_VA;
    p.rkey = r->rkey;
    p.dma_len = 8;
    rig_rx(r, &p, NULL);
    ck_assert(!engine_tx_only_ack(r->e));
    ck_assert_uint_eq(rig_tx(r, 0), 1);

    struct wire_pkt w = rig_pkt(r, WIRE_WRITE_ONLY, rig_psn(RIG_RQPSN, 2));
    w.va = RIG_VA;
    w.rkey = r->rkey;
    w.dma_len = w.payload_len = 8;
    w.ackreq = true;
    rig_rx(r, &w, NULL);
    ck_assert(engine_tx_only_ack(r->e));
    p.psn = rig_psn(RIG_RQPSN, 4); /* a gap: the NAK acknowledges as well */
    rig_rx(r, &p, NULL);
    ck_assert(!engine_tx_only_ack(r->e));
    ck_assert_uint_eq(rig_tx(r, 0), 1);
    ck_assert(engine_tx_only_ack(r->e));

    w.psn = rig_psn(RIG_RQPSN, 3); /* an ACK, and a READ's response */
    rig_rx(r, &w, NULL);
    ck_assert(engine_tx_only_ack(r->e));
    rig_rx(r, &p, NULL);
    ck_assert(!engine_tx_only_ack(r->e));
    ck_assert_uint_eq(rig_tx(r, 0), 1); /* REQ-25: it says as much */

    w.psn = rig_psn(RIG_RQPSN, 5); /* an ACK, and that response again */
    rig_rx(r, &w, NULL);
    ck_assert(engine_tx_only_ack(r->e));
    rig_rx(r, &p, NULL);
    ck_assert(!engine_tx_only_ack(r->e));
    ck_assert_uint_eq(rig_tx(r, 0), 2);
    rig_free(r);
}
END_TEST

static unsigned first(struct rig *r, struct wire_pkt *sent)
{
    static uint8_t frame[WIRE_FRAME_MAX];
    struct engine_slot slot = {.buf = frame, .cap = sizeof(frame)};
    unsigned n = engine_tx_first(r->e, &slot, r->now);

    engine_sent(r->e, &slot, n, r->now);
    if (n == 0)
        return 0;
    wire_icrc_seal(slot.buf, slot.len, slot.ip_off, slot.bth_off);
    ck_assert_int_eq(wire_parse(slot.buf, slot.len, 0, sent), WIRE_OK);
    return n;
}

/* ACK-04: one WRITE goes ahead of an ACK, not of a NAK or a READ's response; the ACK is next,
 * whatever else there is to send. What completes a receive comes behind it. */
START_TEST(ack_04_one_write_ahead)
{
    struct rig *r = rig_new(&(struct rig_opts){.max_rd_atomic = 4});
    struct wire_pkt sent;
    struct wire_pkt p = rig_pkt(r, WIRE_WRITE_ONLY, RIG_RQPSN);
    p.va = RIG_VA;
    p.rkey = r->rkey;
    p.dma_len = p.payload_len = 8;
    p.ackreq = true;
    rig_rx(r, &p, NULL);
    ck_assert_uint_eq(first(r, &sent), 0); /* there is nothing but the ACK */

    rig_post(r, WR_RDMA_WRITE, 1, 8, 0);
    rig_post(r, WR_RDMA_WRITE, 2, 8, 0);
    ck_assert_uint_eq(first(r, &sent), 1);
    ck_assert_uint_eq(sent.opcode, WIRE_WRITE_ONLY);
    ck_assert_uint_eq(sent.psn, RIG_PSN);
    ck_assert_uint_eq(rig_tx(r, 0), 2);
    ck_assert_uint_eq(r->sent[0].opcode, WIRE_ACKNOWLEDGE);
    ck_assert_uint_eq(r->sent[1].opcode, WIRE_WRITE_ONLY);
    rig_post(r, WR_RDMA_WRITE, 3, 8, 0);
    ck_assert_uint_eq(first(r, &sent), 0); /* nothing that it would overtake */
    ck_assert_uint_eq(rig_tx(r, 0), 1);

    static const enum engine_wr_opcode completes[] = {WR_SEND, WR_RDMA_WRITE_WITH_IMM};
    for (unsigned i = 0; i < 2; i++) {
        p.psn = rig_psn(RIG_RQPSN, 1 + (int)i);
        rig_rx(r, &p, NULL);
        rig_post(r, completes[i], 6 + i, 8, 0);
        ck_assert_uint_eq(first(r, &sent), 0);
        ck_assert_uint_eq(rig_tx(r, 0), 2);
        ck_assert_uint_eq(r->sent[0].opcode, WIRE_ACKNOWLEDGE);
    }

    struct wire_pkt q = rig_pkt(r, WIRE_READ_REQUEST, rig_psn(RIG_RQPSN, 3));
    q.va = RIG_VA;
    q.rkey = r->rkey;
    q.dma_len = 8;
    rig_rx(r, &q, NULL);
    rig_post(r, WR_RDMA_WRITE, 4, 8, 0);
    ck_assert_uint_eq(first(r, &sent), 0);
    ck_assert_uint_eq(rig_tx(r, 0), 2);

    p.psn = rig_psn(RIG_RQPSN, 4); /* an ACK, and that response again */
    rig_rx(r, &p, NULL);
    rig_rx(r, &q, NULL);
    rig_post(r, WR_RDMA_WRITE, 8, 8, 0);
    ck_assert_uint_eq(first(r, &sent), 0);
    ck_assert_uint_eq(rig_tx(r, 0), 3);

    p.psn = rig_psn(RIG_RQPSN, 6); /* a gap */
    rig_rx(r, &p, NULL);
    rig_post(r, WR_RDMA_WRITE, 5, 8, 0);
    ck_assert_uint_eq(first(r, &sent), 0);
    ck_assert_uint_eq(rig_tx(r, 0), 2);
    rig_free(r);
}
END_TEST

/* RNR-11: READs are never put off with an RNR NAK, however little can be sent. RD-08: nor do they
 * take a receive work request, whatever the SE bit says. */
START_TEST(rnr_11_reads_wait)
{
    struct rig *r = rig_new(&(struct rig_opts){.max_rd_atomic = 4});
    ck_assert_int_eq(rig_post_recv(r, 7, 0, 100), 0);
    uint32_t room = engine_rq_room(r->qp);
    for (unsigned i = 0; i < 4; i++) {
        struct wire_pkt p = rig_pkt(r, WIRE_READ_REQUEST, rig_psn(RIG_RQPSN, i));
        p.va = RIG_VA;
        p.rkey = r->rkey;
        p.dma_len = 100;
        p.se = true;
        rig_rx(r, &p, NULL);
        ck_assert_uint_eq(r->last.drop, ENGINE_C_none);
    }
    ck_assert_uint_eq(rig_tx(r, 1), 1);
    ck_assert_uint_eq(rig_tx(r, 0), 3);
    for (unsigned i = 0; i < 4; i++) {
        ck_assert_uint_eq(r->sent[i].opcode, WIRE_READ_RESP_ONLY);
        ck_assert(!r->sent[i].se);
    }
    ck_assert_uint_eq(rig_count(r, ENGINE_C_tx_rnr_nak), 0);
    ck_assert_uint_eq(engine_rq_room(r->qp), room);
    ck_assert_uint_eq(r->nwc, 0);
    rig_free(r);
}
END_TEST

/* RD-06: a large READ answers by turns with what else there is to send. */
START_TEST(rd_06_interleaved)
{
    struct rig *r = rig_new(NULL);
    struct qp *other;
    struct engine_qp_params params = {.arg = r,
                                      .type = QP_RC,
                                      .pd = r->pd,
                                      .send_cq = r->cq,
                                      .recv_cq = r->cq,
                                      .max_send_wr = 4,
                                      .max_send_sge = 1};
    ck_assert_int_eq(engine_qp_create(r->e, &params, &other), 0);
    rig_connect(r, other, &(struct rig_opts){0}, QPS_RTS);
    struct wire_pkt p = rig_pkt(r, WIRE_READ_REQUEST, RIG_RQPSN);
    p.va = RIG_VA;
    p.rkey = r->rkey;
    p.dma_len = 1 << 20;
    rig_rx(r, &p, NULL);
    struct engine_send_wr wr = rig_wr(r, WR_SEND, 1, 0, 8);
    ck_assert_int_eq(engine_post_send(r->e, other, &wr, r->now), 0);
    ck_assert_uint_eq(rig_tx(r, 32), 32);
    unsigned at = 32;
    for (unsigned i = 0; i < 32; i++)
        if (r->sent[i].opcode == WIRE_SEND_ONLY)
            at = i;
    ck_assert_uint_eq(at, 16); /* after one quantum */
    rig_free(r);
}
END_TEST

/* RSP-07, OPC-01, OPC-07, ATM-12, ATM-13: reserved opcodes, and the optional ones that are not
 * enabled, neither execute nor answer with data. */
START_TEST(rsp_07_other_opcodes)
{
    static const uint8_t ops[] = {0x15, 0x18, 0x1B, 0x1E, 0x1F, WIRE_FLUSH, WIRE_ATOMIC_WRITE};
    for (unsigned i = 0; i < sizeof ops; i++) {
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
        ck_assert_uint_gt(wire_build(frame, sizeof frame, &p), 0);
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

/* As many completion queues as the engine was made for, of those that are there. */
START_TEST(as_many_completion_queues)
{
    const struct engine_params p = {.mem = {.max_pd = 1, .max_mr = 1}, .max_cq = 2, .mtu = 3};
    struct engine *e = engine_create(&p, 0);
    struct cq *cq[3];
    ck_assert_int_eq(engine_cq_create(e, NULL, &cq[0]), 0);
    ck_assert_int_eq(engine_cq_create(e, NULL, &cq[1]), 0);
    ck_assert_int_eq(engine_cq_create(e, NULL, &cq[2]), -ENOSPC);
    ck_assert_int_eq(engine_cq_destroy(e, cq[0]), 0);
    ck_assert_int_eq(engine_cq_create(e, NULL, &cq[2]), 0);
    ck_assert_int_eq(engine_cq_create(e, NULL, &cq[0]), -ENOSPC);
    engine_destroy(e);
}
END_TEST

/* Leak checkers see what engine_destroy forgets. */
START_TEST(destroy_frees_shared_receive_queues)
{
    struct rig *r = rig_new(NULL);
    const struct engine_srq_params p = {.pd = r->pd, .max_wr = 4, .max_sge = 1};
    struct srq *srq[3];
    for (unsigned i = 0; i < 3; i++)
        ck_assert_int_eq(engine_srq_create(r->e, &p, &srq[i]), 0);
    ck_assert_int_eq(engine_srq_destroy(r->e, srq[1]), 0); /* from the middle of the list */
    struct engine_usage u;
    engine_usage(r->e, &u);
    ck_assert_uint_eq(u.srqs, 2);
    rig_free(r);
}
END_TEST

UNIT_MAIN("engine", ctr_03_read_again, uc_10_address_and_key, ack_04_what_can_wait,
          ack_04_one_write_ahead, ack_10_fields, req_19_data_first, rnr_10_not_here,
          rnr_11_reads_wait, rd_06_interleaved, rsp_07_other_opcodes, val_01_order_and_counters,
          val_01_mixed_burst, val_01_burst_for_several, val_04_states, val_04_state_within_a_burst,
          val_07_rubbish, sec_03_copies_fit, gsi_both_ways, cc_08_cnp, fair_turns,
          qp_14_destroy_before_sent, ctr_01_names, wire_ipv6, destroy_frees_shared_receive_queues,
          as_many_completion_queues)
