/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The engine as a whole: its counters, its objects, and packets on other paths.
 */
#include <errno.h>
#include <string.h>

#include "core_rig.h"

/* GSI: the CM emits well-formed datagrams, and datagrams to QP1 reach it (KEY-07). */
START_TEST(gsi_both_ways)
{
    struct rig *r = rig_new(NULL);
    uint8_t mad[256], frame[WIRE_FRAME_MAX];
    memset(mad, 0x42, sizeof(mad));
    struct engine_slot s = {.buf = frame, .cap = sizeof(frame)};
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

/* CTR-03: reading changes nothing, and events of one queue pair are counted there, too. */
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
    _Static_assert(sizeof(*engine_counters(NULL)) == 8, "64 bit");
    rig_free(r);
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

/* As many completion queues as the engine was made for. */
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

/* Leak checkers notice memory that engine_destroy forgets. */
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

UNIT_MAIN("engine", gsi_both_ways, cc_08_cnp, ctr_01_names, ctr_03_read_again, wire_ipv6,
          as_many_completion_queues, destroy_frees_shared_receive_queues)
