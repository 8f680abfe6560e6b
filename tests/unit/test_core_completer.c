/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "core_rig.h"

#define P(n) rig_psn(RIG_PSN, (n))

/* REQ-22, REQ-23, REQ-18: an ACK covers all before it, whole messages complete, in order. */
START_TEST(req_22_cumulative)
{
    struct rig *r = rig_new(NULL);
    rig_post(r, WR_SEND, 1, 2000, WR_F_SIGNALED);
    rig_post(r, WR_RDMA_WRITE, 2, 8, WR_F_SIGNALED);
    rig_post(r, WR_SEND, 3, 3000, WR_F_SIGNALED);
    rig_tx(r, 0);
    rig_ack(r, P(0));
    ck_assert_uint_eq(r->nwc, 0); /* REQ-23 */
    rig_ack(r, P(4));             /* the middle of message 3 */
    ck_assert_uint_eq(r->nwc, 2);
    rig_ack(r, P(5));
    ck_assert_uint_eq(r->nwc, 3);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_uint_eq(r->wc[i].wr_id, i + 1);
        ck_assert_uint_eq(r->wc[i].status, WC_SUCCESS);
        ck_assert_uint_eq(r->wc[i].qpn, engine_qp_num(r->qp));
        ck_assert_ptr_eq((void *)(uintptr_t)r->wc[i].qp_arg, r);
        ck_assert(!r->wc[i].solicited); /* CQ-07 */
    }
    ck_assert_uint_eq(r->wc[1].opcode, WC_RDMA_WRITE);
    ck_assert_uint_eq(r->wc[2].byte_len, 3000); /* CQ-03 */
    rig_free(r);
}
END_TEST

/* REQ-34: with any MSN in an ACK, only its PSN counts. */
START_TEST(req_34_any_msn)
{
    static const uint32_t msns[] = {0, 1, 0xFFFFFF, 0x800000, 12345};
    struct rig *r = rig_new(NULL);
    for (unsigned i = 0; i < 5; i++) {
        rig_post(r, WR_SEND, i, 8, WR_F_SIGNALED);
        rig_tx(r, 0);
        rig_aeth(r, P(i), WIRE_SYN_ACK, msns[i]);
        ck_assert_uint_eq(r->nwc, i + 1);
        ck_assert_uint_eq(r->last.drop, ENGINE_C_none);
    }
    ck_assert_uint_eq(rig_state(r), QPS_RTS);
    rig_free(r);
}
END_TEST

/* REQ-21, SEC-06, TMR-06: answers outside the window do nothing. One line each. */
static const struct outside {
    const char *rule;
    int at; /* PSN relative to the first; 3 packets are sent, 1 is acknowledged */
    unsigned syndrome;
    enum engine_counter counter;
} outsides[] = {
    {"REQ-21 ACK just before the window", 0, 0x1F, ENGINE_C_rx_ghost_ack},
    {"REQ-21 ACK long before", -1000, 0x1F, ENGINE_C_rx_ghost_ack},
    {"REQ-21 ACK just after the last packet sent", 3, 0x1F, ENGINE_C_rx_resp_out_of_window},
    {"REQ-21 ACK far after", 5000, 0x1F, ENGINE_C_rx_resp_out_of_window},
    {"SEC-06 fatal NAK before", 0, 0x62, ENGINE_C_rx_ghost_ack},
    {"SEC-06 fatal NAK after", 3, 0x61, ENGINE_C_rx_resp_out_of_window},
    {"RTX-08 sequence NAK before", 0, 0x60, ENGINE_C_rx_ghost_ack},
    {"REQ-21 RNR NAK after", 77, 0x21, ENGINE_C_rx_resp_out_of_window},
    {"ACK-02 reserved syndrome", 1, 0x45, ENGINE_C_rx_bad_aeth},
    {"ACK-02 reserved NAK code", 1, 0x65, ENGINE_C_rx_bad_aeth},
};

START_TEST(req_21_outside_the_window)
{
    for (unsigned i = 0; i < sizeof(outsides) / sizeof(outsides[0]); i++) {
        const struct outside *t = &outsides[i];
        struct rig *r = rig_new(NULL);
        for (unsigned k = 0; k < 3; k++)
            rig_post(r, WR_SEND, k, 8, WR_F_SIGNALED);
        rig_tx(r, 0);
        rig_ack(r, P(0));
        uint64_t before = rig_count(r, t->counter), due = engine_deadline(r->e);
        rig_aeth(r, P((uint32_t)t->at), t->syndrome, 9);
        ck_assert_msg(r->last.drop == t->counter, "%s: counted %s", t->rule,
                      engine_counter_names[r->last.drop]);
        ck_assert_msg(rig_count(r, t->counter) == before + 1, "%s", t->rule); /* VAL-06 */
        ck_assert_msg(r->nwc == 1 && rig_state(r) == QPS_RTS, "%s: state", t->rule);
        ck_assert_msg(engine_deadline(r->e) == due, "%s: timer moved", t->rule);
        ck_assert_msg(rig_tx(r, 0) == 0, "%s: sent something", t->rule);
        rig_free(r);
    }
}
END_TEST

/* REQ-35: success completes a signalled request, or any if the queue pair signals all. */
START_TEST(req_35_selective_signalling)
{
    for (unsigned all = 0; all < 2; all++) {
        struct rig *r = rig_new(&(struct rig_opts){.sig_all = all});
        rig_post(r, WR_SEND, 1, 8, 0);
        rig_post(r, WR_RDMA_WRITE, 2, 8, WR_F_SIGNALED);
        rig_post(r, WR_SEND, 3, 8, 0);
        rig_tx(r, 0);
        rig_ack(r, P(2));
        ck_assert_uint_eq(r->nwc, all ? 3 : 1);
        ck_assert_uint_eq(r->wc[0].wr_id, all ? 1 : 2);
        ck_assert_uint_eq(r->wc[r->nwc - 1].status, WC_SUCCESS);
        rig_free(r);
    }
}
END_TEST

/* REQ-38, ACK-06, REQ-26, REQ-36, REQ-37, appendix B: fatal NAKs. */
static const struct fatal {
    const char *rule;
    unsigned syndrome;
    enum wc_status status;
} fatals[] = {
    {"ACK-06 invalid request", WIRE_SYN_NAK_INV, WC_REM_INV_REQ_ERR},
    {"ACK-06 remote access", WIRE_SYN_NAK_ACCESS, WC_REM_ACCESS_ERR},
    {"ACK-06 remote operation", WIRE_SYN_NAK_OP, WC_REM_OP_ERR},
    {"ACK-06 invalid RD request", WIRE_SYN_NAK_RD, WC_REM_INV_RD_REQ_ERR},
};

START_TEST(ack_06_fatal)
{
    for (unsigned i = 0; i < sizeof(fatals) / sizeof(fatals[0]); i++) {
        struct rig *r = rig_new(NULL);
        rig_post(r, WR_SEND, 1, 8, WR_F_SIGNALED);
        rig_post(r, WR_SEND, 2, 3000, 0);
        rig_post(r, WR_SEND, 3, 8, 0);
        rig_tx(r, 0);
        rig_aeth(r, P(2), fatals[i].syndrome, 1); /* in the middle of message 2: REQ-37 */
        ck_assert_msg(r->nwc == 3, "%s: %u completions", fatals[i].rule, r->nwc);
        ck_assert_uint_eq(r->wc[0].status, WC_SUCCESS); /* REQ-26: all before it is acknowledged */
        ck_assert_uint_eq(r->wc[1].wr_id, 2);
        ck_assert_uint_eq(r->wc[1].status, fatals[i].status);
        ck_assert_uint_eq(r->wc[2].status, WC_WR_FLUSH_ERR);
        ck_assert(r->wc[1].solicited); /* CQ-07 */
        ck_assert_uint_eq(rig_state(r), QPS_ERR);
        ck_assert_uint_eq(rig_tx(r, 0), 0); /* QP-11, REQ-39: no packet to the peer */
        ck_assert(engine_deadline(r->e) == UINT64_MAX);
        struct engine_qp_info info;
        engine_qp_info(r->e, r->qp, &info);
        ck_assert_ptr_nonnull(strstr(info.error, "ACK-06"));
        rig_free(r);
    }
}
END_TEST

/* A READ of 2500 octets: data arrives, one completion, nothing after its end is written (REQ-29,
 * REQ-32). */
START_TEST(req_29_read)
{
    struct rig *r = rig_new(NULL);
    memset(r->mem, 0xEE, 8192);
    struct engine_sge s[2] = {{RIG_VA + 100, 1500, r->lkey}, {RIG_VA + 4000, 1000, r->lkey}};
    struct engine_send_wr wr = rig_wr(r, WR_RDMA_READ, 1, 0, 0);
    wr.sge = s;
    wr.nsge = 2;
    ck_assert_int_eq(engine_post_send(r->e, r->qp, &wr, r->now), 0);
    rig_tx(r, 0);
    rig_read_resp(r, WIRE_READ_RESP_FIRST, P(0), 1024, 1);
    rig_read_resp(r, WIRE_READ_RESP_MIDDLE, P(1), 1024, 2);
    ck_assert_uint_eq(r->nwc, 0);
    rig_read_resp(r, WIRE_READ_RESP_LAST, P(2), 452, 3);
    ck_assert_uint_eq(r->nwc, 1);
    ck_assert_uint_eq(r->wc[0].opcode, WC_RDMA_READ);
    ck_assert_uint_eq(r->wc[0].byte_len, 2500); /* CQ-03 */
    ck_assert_uint_eq(r->mem[99], 0xEE);
    ck_assert_uint_eq(r->mem[100], 1);
    ck_assert_uint_eq(r->mem[1123], 1);
    ck_assert_uint_eq(r->mem[1124], 2);
    ck_assert_uint_eq(r->mem[1599], 2);
    ck_assert_uint_eq(r->mem[1600], 0xEE);
    ck_assert_uint_eq(r->mem[3999], 0xEE);
    ck_assert_uint_eq(r->mem[4000], 2);
    ck_assert_uint_eq(r->mem[4548], 3);
    ck_assert_uint_eq(r->mem[4999], 3);
    ck_assert_uint_eq(r->mem[5000], 0xEE);
    memset(r->mem, 0xEE, 8192);
    rig_read_resp(r, WIRE_READ_RESP_LAST, P(2), 452, 9); /* REQ-32: it has completed */
    ck_assert_uint_eq(r->last.drop, ENGINE_C_rx_ghost_ack);
    ck_assert_uint_eq(r->mem[4548], 0xEE);
    rig_free(r);
}
END_TEST

/* Responses that don't fit: dropped, nothing written, the operation can still succeed. */
static const struct misfit {
    const char *rule;
    enum wr_opcode op;
    uint32_t len; /* octets of the request */
    unsigned resp;
    uint32_t at, resp_len;
    enum engine_counter counter;
} misfits[] = {
    {"REQ-28 READ response for a SEND", WR_SEND, 8, WIRE_READ_RESP_ONLY, 0, 8,
     ENGINE_C_rx_resp_unexpected},
    {"REQ-28 READ response for an ATOMIC", WR_ATOMIC_FETCH_AND_ADD, 8, WIRE_READ_RESP_ONLY, 0, 8,
     ENGINE_C_rx_resp_unexpected},
    {"REQ-28 ATOMIC ack for a READ", WR_RDMA_READ, 8, WIRE_ATOMIC_ACK, 0, 0,
     ENGINE_C_rx_resp_unexpected},
    {"REQ-29 ONLY too short", WR_RDMA_READ, 8, WIRE_READ_RESP_ONLY, 0, 4,
     ENGINE_C_rx_resp_unexpected},
    {"REQ-29 ONLY too long", WR_RDMA_READ, 8, WIRE_READ_RESP_ONLY, 0, 12,
     ENGINE_C_rx_resp_unexpected},
    {"REQ-29 FIRST shorter than the MTU", WR_RDMA_READ, 2500, WIRE_READ_RESP_FIRST, 0, 1000,
     ENGINE_C_rx_resp_unexpected},
    {"REQ-30 MIDDLE at the start", WR_RDMA_READ, 2500, WIRE_READ_RESP_MIDDLE, 0, 1024,
     ENGINE_C_rx_resp_unexpected},
    {"REQ-30 LAST where ONLY is due", WR_RDMA_READ, 8, WIRE_READ_RESP_LAST, 0, 8,
     ENGINE_C_rx_resp_unexpected},
    {"REQ-30 ONLY for more than one packet", WR_RDMA_READ, 2500, WIRE_READ_RESP_ONLY, 0, 1024,
     ENGINE_C_rx_resp_unexpected},
};

START_TEST(req_28_misfits)
{
    for (unsigned i = 0; i < sizeof(misfits) / sizeof(misfits[0]); i++) {
        const struct misfit *t = &misfits[i];
        struct rig *r = rig_new(NULL);
        memset(r->mem, 0xEE, 4096);
        rig_post(r, t->op, 1, t->len, WR_F_SIGNALED);
        rig_tx(r, 0);
        rig_read_resp(r, t->resp, P(t->at), t->resp_len, 5);
        ck_assert_msg(r->last.drop == t->counter, "%s: %s", t->rule,
                      engine_counter_names[r->last.drop]);
        ck_assert_msg(r->mem[0] == 0xEE && r->mem[8] == 0xEE, "%s: wrote", t->rule);
        ck_assert_msg(r->nwc == 0 && rig_state(r) == QPS_RTS, "%s: effect", t->rule);
        rig_free(r);
    }
}
END_TEST

/* REQ-28 with strict_resp: a response of the wrong kind is fatal; a late one, or one of the wrong
 * length, is not. */
START_TEST(req_28_strict)
{
    for (unsigned i = 0; i < sizeof(misfits) / sizeof(misfits[0]); i++) {
        const struct misfit *t = &misfits[i];
        const struct rig_opts o = {.strict_resp = true};
        struct rig *r = rig_new(&o);
        rig_post(r, WR_SEND, 1, 8, WR_F_SIGNALED);
        rig_tx(r, 0);
        rig_ack(r, P(0));
        rig_post(r, t->op, 2, t->len, WR_F_SIGNALED);
        rig_tx(r, 0);
        rig_read_resp(r, WIRE_READ_RESP_ONLY, P(0), 8, 5); /* answered long ago */
        ck_assert_uint_eq(r->last.drop, ENGINE_C_rx_ghost_ack);
        ck_assert_uint_eq(rig_state(r), QPS_RTS);
        rig_read_resp(r, t->resp, P(1 + t->at), t->resp_len, 5);
        ck_assert_msg(r->last.drop == t->counter, "%s: %s", t->rule,
                      engine_counter_names[r->last.drop]);
        ck_assert_msg(rig_state(r) == QPS_ERR, "%s", t->rule);
        ck_assert_uint_eq(r->nwc, 2);
        ck_assert_uint_eq(r->wc[1].wr_id, 2);
        ck_assert_uint_eq(r->wc[1].status, WC_BAD_RESP_ERR);
        rig_free(r);
    }
}
END_TEST

/* REQ-30: a partial re-READ may be answered in the restarted and in the continued form. */
START_TEST(req_30_both_forms)
{
    static const unsigned forms[][2] = {{WIRE_READ_RESP_FIRST, WIRE_READ_RESP_LAST},
                                        {WIRE_READ_RESP_MIDDLE, WIRE_READ_RESP_LAST}};
    for (unsigned i = 0; i < 2; i++) {
        struct rig *r = rig_new(NULL);
        rig_post(r, WR_RDMA_READ, 1, 2500, WR_F_SIGNALED);
        rig_tx(r, 0);
        rig_read_resp(r, WIRE_READ_RESP_FIRST, P(0), 1024, 1);
        /* No re-READ has been sent yet, so a second FIRST is wrong. */
        rig_read_resp(r, WIRE_READ_RESP_FIRST, P(1), 1024, 9);
        ck_assert_uint_eq(r->last.drop, ENGINE_C_rx_resp_unexpected);
        rig_read_resp(r, WIRE_READ_RESP_LAST, P(2), 452, 3); /* gap: RD-14 */
        ck_assert_uint_eq(rig_count(r, ENGINE_C_implied_nak_seq_err), 1);
        rig_clear(r);
        ck_assert_uint_eq(rig_tx(r, 0), 1);      /* at once, not by time-out */
        ck_assert_uint_eq(r->sent[0].psn, P(1)); /* RD-12 */
        ck_assert_uint_eq(r->sent[0].va, 0x7000000 + 1024);
        ck_assert_uint_eq(r->sent[0].dma_len, 1476);
        rig_read_resp(r, forms[i][0], P(1), 1024, 2);
        rig_read_resp(r, forms[i][1], P(2), 452, 3);
        ck_assert_uint_eq(r->nwc, 1);
        ck_assert_uint_eq(r->mem[1024], 2);
        ck_assert_uint_eq(r->mem[2499], 3);
        rig_free(r);
    }
}
END_TEST

/* REQ-24, REQ-25, REQ-26, REQ-27: answers after a READ or ATOMIC that lacks its own. The requests:
 * SEND (0), READ of 3 (1..3), SEND (4), FETCH_ADD (5), SEND (6). */
static const struct implied {
    const char *rule;
    unsigned opcode, at, syndrome;
    unsigned done;    /* completions after it */
    unsigned implied; /* implied NAK? */
    uint32_t again;   /* first PSN sent again */
} implieds[] = {
    {"REQ-24 ACK after the READ", WIRE_ACKNOWLEDGE, 4, 0x1F, 1, 1, 1},
    {"REQ-24 ATOMIC ack after the READ", WIRE_ATOMIC_ACK, 5, 0x1F, 1, 1, 1},
    {"REQ-24 READ response after its first", WIRE_READ_RESP_MIDDLE, 2, 0, 1, 1, 1},
    {"REQ-26 sequence NAK after the READ", WIRE_ACKNOWLEDGE, 4, 0x60, 1, 1, 1},
    {"REQ-26 fatal NAK after the READ is ignored", WIRE_ACKNOWLEDGE, 4, 0x62, 1, 1, 1},
    {"REQ-26 RNR NAK after the READ", WIRE_ACKNOWLEDGE, 6, 0x21, 1, 1, 1},
    {"REQ-27 plain ACK inside the READ, after its first", WIRE_ACKNOWLEDGE, 2, 0x1F, 1, 1, 1},
    {"REQ-27 plain ACK with the READ's first PSN", WIRE_ACKNOWLEDGE, 1, 0x1F, 1, 0, 0},
    {"REQ-22 ACK of the SEND before it", WIRE_ACKNOWLEDGE, 0, 0x1F, 1, 0, 0},
    {"ACK-06 sequence NAK at the READ itself", WIRE_ACKNOWLEDGE, 1, 0x60, 1, 0, 1},
    {"REQ-25 the READ's first response acknowledges the SEND", WIRE_READ_RESP_FIRST, 1, 0x1F, 1, 0,
     0},
};

START_TEST(req_24_implied)
{
    for (unsigned i = 0; i < sizeof(implieds) / sizeof(implieds[0]); i++) {
        const struct implied *t = &implieds[i];
        struct rig *r = rig_new(NULL);
        rig_post(r, WR_SEND, 1, 8, WR_F_SIGNALED);
        rig_post(r, WR_RDMA_READ, 2, 2500, WR_F_SIGNALED);
        rig_post(r, WR_SEND, 3, 8, WR_F_SIGNALED);
        rig_post(r, WR_ATOMIC_FETCH_AND_ADD, 4, 8, WR_F_SIGNALED);
        rig_post(r, WR_SEND, 5, 8, WR_F_SIGNALED);
        ck_assert_uint_eq(rig_tx(r, 0), 5);
        struct wire_pkt p = rig_pkt(r, t->opcode, P(t->at));
        p.syndrome = (uint8_t)t->syndrome;
        if (t->opcode == WIRE_READ_RESP_FIRST || t->opcode == WIRE_READ_RESP_MIDDLE)
            p.payload_len = 1024;
        rig_clear(r);
        rig_rx(r, &p, NULL);
        ck_assert_msg(r->nwc == t->done, "%s: %u completions", t->rule, r->nwc);
        ck_assert_msg(rig_count(r, ENGINE_C_implied_nak_seq_err) == t->implied, "%s", t->rule);
        ck_assert_msg(rig_state(r) == QPS_RTS, "%s: state", t->rule);
        rig_rx(r, &p, NULL); /* TMR-07: a repetition charges nothing and sends nothing more */
        unsigned n = rig_tx(r, 0);
        ck_assert_msg(n == (t->again ? 4u : 0u), "%s: sent %u", t->rule, n);
        if (n)
            ck_assert_msg(r->sent[0].psn == P(t->again), "%s: from %x", t->rule, r->sent[0].psn);
        rig_free(r);
    }
}
END_TEST

/* ATOMIC: the value arrives in host order, once; the next ack with the same PSN is a ghost. */
START_TEST(atm_10_atomic_result)
{
    struct rig *r = rig_new(NULL);
    rig_post(r, WR_ATOMIC_CMP_AND_SWP, 1, 8, WR_F_SIGNALED);
    rig_tx(r, 0);
    struct wire_pkt p = rig_pkt(r, WIRE_ATOMIC_ACK, P(0));
    p.orig = 0x1122334455667788;
    rig_rx(r, &p, NULL);
    ck_assert_uint_eq(r->nwc, 1);
    ck_assert_uint_eq(r->wc[0].opcode, WC_COMP_SWAP);
    ck_assert_uint_eq(r->wc[0].byte_len, 8);
    uint64_t got;
    memcpy(&got, r->mem, 8);
    ck_assert_uint_eq(got, 0x1122334455667788);
    rig_rx(r, &p, NULL);
    ck_assert_uint_eq(r->last.drop, ENGINE_C_rx_ghost_ack);
    rig_free(r);
}
END_TEST

/* REQ-31: a READ response or ATOMIC ack whose AETH isn't an ACK. */
START_TEST(req_31_aeth_of_data)
{
    static const unsigned syndromes[] = {0x21, 0x60, 0x62};
    for (unsigned i = 0; i < 3; i++) {
        struct rig *r = rig_new(NULL);
        rig_post(r, WR_RDMA_READ, 1, 8, WR_F_SIGNALED);
        rig_tx(r, 0);
        struct wire_pkt p = rig_pkt(r, WIRE_READ_RESP_ONLY, P(0));
        p.payload_len = 8;
        p.syndrome = (uint8_t)syndromes[i];
        rig_rx(r, &p, NULL);
        ck_assert_uint_eq(r->last.drop, ENGINE_C_rx_bad_aeth);
        ck_assert_uint_eq(r->nwc, 0);
        rig_free(r);
    }
}
END_TEST

/* REQ-18 with a late copy: acknowledged requests after the READ wait for its data. */
START_TEST(req_18_late_copy)
{
    struct rig *r = rig_new(NULL);
    rig_post(r, WR_SEND, 1, 8, WR_F_SIGNALED);
    rig_post(r, WR_RDMA_READ, 2, 2000, WR_F_SIGNALED);
    rig_post(r, WR_SEND, 3, 8, WR_F_SIGNALED);
    rig_tx(r, 0);
    r->late = true;
    rig_read_resp(r, WIRE_READ_RESP_FIRST, P(1), 1024, 1);
    ck_assert_uint_eq(r->nwc, 1); /* REQ-25: the SEND before needs no copy */
    rig_read_resp(r, WIRE_READ_RESP_LAST, P(2), 976, 2);
    rig_ack(r, P(3));
    ck_assert_uint_eq(r->nwc, 1);
    ck_assert_uint_eq(r->ncopies, 2);
    ck_assert_uint_eq(rig_tx(r, 0), 0);
    rig_pass(r, 10 * RIG_T); /* all is answered: no time-out while the copy lasts */
    ck_assert_uint_eq(rig_count(r, ENGINE_C_local_ack_timeout_err), 0);
    rig_copy(r, 1, 0);
    ck_assert_uint_eq(r->nwc, 1);
    rig_copy(r, 1, 0);
    ck_assert_uint_eq(r->nwc, 3);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_uint_eq(r->wc[i].wr_id, i + 1);
    struct engine_usage u;
    engine_usage(r->e, &u);
    ck_assert_uint_eq(u.records, 0);
    rig_free(r);
}
END_TEST

/* REQ-09 a copy fails: LOC_PROT_ERR for the READ, all requests before it succeed, all after it are
 * flushed though they were acknowledged; later stale results have no effect. */
START_TEST(req_09_failed_copy)
{
    struct rig *r = rig_new(NULL);
    rig_post(r, WR_SEND, 1, 8, WR_F_SIGNALED);
    rig_post(r, WR_RDMA_READ, 2, 3000, WR_F_SIGNALED);
    rig_post(r, WR_SEND, 3, 8, WR_F_SIGNALED);
    rig_tx(r, 0);
    r->late = true;
    rig_read_resp(r, WIRE_READ_RESP_FIRST, P(1), 1024, 1);
    rig_read_resp(r, WIRE_READ_RESP_MIDDLE, P(2), 1024, 1);
    rig_read_resp(r, WIRE_READ_RESP_LAST, P(3), 952, 1);
    rig_ack(r, P(4));
    rig_copy(r, 1, 0);
    struct engine_result again = {r->copies[0].token, 0, 0};
    rig_copy(r, 1, -14);
    ck_assert_uint_eq(rig_state(r), QPS_ERR);
    ck_assert_uint_eq(r->nwc, 2); /* the rest is flushed when no copy is under way any more */
    ck_assert_uint_eq(r->wc[1].wr_id, 2);
    ck_assert_uint_eq(r->wc[1].status, WC_LOC_PROT_ERR);
    engine_copied(r->e, &again, 1, r->now); /* the same token twice */
    rig_copy(r, 1, 0);
    ck_assert_uint_eq(r->nwc, 3);
    ck_assert_uint_eq(r->wc[2].status, WC_WR_FLUSH_ERR);
    struct engine_usage u;
    engine_usage(r->e, &u);
    ck_assert_uint_eq(u.records, 0);
    rig_free(r);
}
END_TEST

/* REQ-37, REQ-18: a fatal NAK that arrives while a copy is pending waits for it. */
START_TEST(req_37_nak_after_a_late_copy)
{
    struct rig *r = rig_new(NULL);
    rig_post(r, WR_RDMA_READ, 1, 8, WR_F_SIGNALED);
    rig_post(r, WR_SEND, 2, 8, WR_F_SIGNALED);
    rig_tx(r, 0);
    r->late = true;
    rig_read_resp(r, WIRE_READ_RESP_ONLY, P(0), 8, 1);
    rig_aeth(r, P(1), WIRE_SYN_NAK_INV, 1);
    ck_assert_uint_eq(r->nwc, 0);
    ck_assert_uint_eq(rig_tx(r, 0), 0);
    rig_copy(r, 1, 0);
    ck_assert_uint_eq(r->nwc, 2);
    ck_assert_uint_eq(r->wc[0].status, WC_SUCCESS);
    ck_assert_uint_eq(r->wc[1].status, WC_REM_INV_REQ_ERR);
    ck_assert_uint_eq(rig_state(r), QPS_ERR);
    rig_free(r);
}
END_TEST

/* QP-14: destroy with copies pending: no completion afterwards, memory is held until the last. */
START_TEST(qp_14_destroy_with_copies)
{
    struct rig *r = rig_new(NULL);
    rig_post(r, WR_RDMA_READ, 1, 2000, WR_F_SIGNALED);
    rig_tx(r, 0);
    r->late = true;
    rig_read_resp(r, WIRE_READ_RESP_FIRST, P(0), 1024, 1);
    rig_read_resp(r, WIRE_READ_RESP_LAST, P(1), 976, 1);
    uint32_t qpn = engine_qp_num(r->qp);
    struct wire_pkt p = rig_pkt(r, WIRE_ACKNOWLEDGE, P(1));
    engine_qp_destroy(r->e, r->qp);
    ck_assert_ptr_null(engine_qp_find(r->e, qpn));
    ck_assert_int_eq(engine_cq_destroy(r->e, r->cq), 0);
    ck_assert_int_eq(mem_mr_dereg(engine_mem(r->e), r->lkey), -115); /* EINPROGRESS */
    struct engine_usage u;
    engine_usage(r->e, &u);
    ck_assert_uint_eq(u.qps, 1);
    rig_rx(r, &p, NULL);
    ck_assert_uint_eq(r->last.drop, ENGINE_C_rx_bad_qpn);
    rig_copy(r, 1, 0);
    ck_assert_uint_eq(r->mr_freed, 0);
    rig_copy(r, 1, -14);
    ck_assert_uint_eq(r->mr_freed, 1);
    engine_usage(r->e, &u);
    ck_assert_uint_eq(u.qps + u.records, 0);
    ck_assert_uint_eq(r->nwc, 0);
    rig_free(r);
}
END_TEST

/* RSP-29, SEC-29: without records left the packet is dropped before anything changes, and works
 * when it comes again. */
START_TEST(sec_29_no_records)
{
    struct rig *r = rig_new(&(struct rig_opts){.mtu = 1});
    rig_post(r, WR_RDMA_READ, 1, 1 << 20, WR_F_SIGNALED);
    rig_tx(r, 0);
    r->late = true;
    unsigned k = 0;
    for (; !rig_count(r, ENGINE_C_rx_copy_pending); k++) {
        ck_assert_uint_lt(k, 2048); /* half the pool: others keep theirs */
        /* Straight to the engine: the rig's array of late copies is as long as the pool. */
        rig_read_resp(r, k ? WIRE_READ_RESP_MIDDLE : WIRE_READ_RESP_FIRST, P(k), 256, 1);
    }
    k--;
    rig_read_resp(r, WIRE_READ_RESP_MIDDLE, P(k), 256, 1);
    ck_assert_uint_eq(r->last.drop, ENGINE_C_rx_copy_pending);
    rig_copy(r, r->ncopies, 0);
    rig_read_resp(r, WIRE_READ_RESP_MIDDLE, P(k), 256, 1);
    ck_assert_uint_eq(r->last.drop, 0);
    rig_copy(r, r->ncopies, 0);
    ck_assert_uint_eq(rig_state(r), QPS_RTS);
    rig_free(r);
}
END_TEST

/* CQ-05: a completion without room: CQ_ERR, QP_FATAL, ERR; stored completions stay. */
START_TEST(cq_05_overflow)
{
    struct rig *r = rig_new(NULL);
    r->cq_room = 1;
    for (unsigned i = 0; i < 3; i++)
        rig_post(r, WR_SEND, i, 8, WR_F_SIGNALED);
    rig_tx(r, 0);
    rig_ack(r, P(2));
    ck_assert_uint_eq(r->nwc, 1);
    ck_assert_uint_eq(rig_state(r), QPS_ERR);
    ck_assert_uint_eq(r->nev, 2);
    ck_assert_uint_eq(r->ev[0], EVT_CQ_ERR);
    ck_assert_uint_eq(r->ev[1], EVT_QP_FATAL);
    ck_assert_uint_eq(rig_count(r, ENGINE_C_cq_overflow), 1);
    r->cq_room = 10; /* no more is stored in a CQ that is in error */
    rig_post(r, WR_SEND, 9, 8, WR_F_SIGNALED);
    ck_assert_uint_eq(r->nwc, 1);
    rig_free(r);
}
END_TEST

/* SEC-06, nak_confirm: after a fatal NAK for a PSN that was sent once, it is sent again, and the
 * next answer decides. No retry is charged for it. */
static const struct confirm {
    const char *rule;
    char second; /* N the NAK again, E earlier than the packet, A an ACK, S a sequence NAK, R RNR,
                    - nothing */
    unsigned status;
    unsigned forged;
} confirms[] = {
    {"SEC-06 the same NAK again: meant", 'N', WC_REM_ACCESS_ERR, 0},
    {"SEC-06 twice before the packet went out: says no more than once", 'E', WC_SUCCESS, 1},
    {"SEC-06 no answer: a responder in ERR says it once", '-', WC_REM_ACCESS_ERR, 0},
    {"SEC-06 an ACK: forged", 'A', WC_SUCCESS, 1},
    {"SEC-06 a sequence NAK: the peer lives", 'S', WC_SUCCESS, 1},
    {"SEC-06 an RNR NAK: the peer lives", 'R', WC_SUCCESS, 1},
};

START_TEST(sec_06_nak_confirm)
{
    for (unsigned i = 0; i < sizeof(confirms) / sizeof(confirms[0]); i++) {
        const struct confirm *c = &confirms[i];
        struct rig *r = rig_new(&(struct rig_opts){.nak_confirm = true, .retry_cnt = 1});
        rig_post(r, WR_SEND, 1, 8, WR_F_SIGNALED);
        rig_post(r, WR_SEND, 2, 8, WR_F_SIGNALED);
        ck_assert_uint_eq(rig_tx(r, 0), 2);
        rig_aeth(r, P(1), WIRE_SYN_NAK_ACCESS, 1);
        ck_assert_uint_eq(r->nwc, 1);
        ck_assert_uint_eq(r->wc[0].status, WC_SUCCESS); /* the request before it */
        if (c->second == 'E')
            rig_aeth(r, P(1), WIRE_SYN_NAK_ACCESS, 1);
        ck_assert_uint_eq(rig_state(r), QPS_RTS);
        ck_assert_uint_eq(rig_tx(r, 0), 1);
        ck_assert_uint_eq(r->sent[2].psn, P(1));
        ck_assert(r->sent[2].ackreq);
        switch (c->second) {
        case 'N':
            rig_aeth(r, P(1), WIRE_SYN_NAK_ACCESS, 1);
            break;
        case 'S':
            rig_aeth(r, P(1), WIRE_SYN_NAK_SEQ, 1);
            break;
        case 'R':
            rig_aeth(r, P(1), WIRE_SYN_RNR | 1, 1);
            break;
        case '-':
            rig_pass(r, RIG_T + RIG_T / 8);
            break;
        }
        if (strchr("SR", c->second)) { /* continues as before, retries included */
            rig_pass(r, 1000000);
            rig_tx(r, 0);
            rig_pass(r, RIG_T + RIG_T / 8);
            rig_tx(r, 0);
        }
        if (strchr("EASR", c->second))
            rig_ack(r, P(1));
        ck_assert_msg(r->nwc == 2, "%s: %u completions", c->rule, r->nwc);
        ck_assert_msg(r->wc[1].status == c->status, "%s: status %u", c->rule, r->wc[1].status);
        ck_assert_uint_eq(rig_state(r), c->status == WC_SUCCESS ? QPS_RTS : QPS_ERR);
        ck_assert_uint_eq(rig_count(r, ENGINE_C_rx_nak_forged), c->forged);
        rig_free(r);
    }
}
END_TEST

/* SEC-06: of a PSN that was sent twice already, and without a timer that could end it, a fatal NAK
 * counts at once. */
START_TEST(sec_06_nak_at_once)
{
    for (unsigned timer = 0; timer < 2; timer++) {
        struct rig *r = rig_new(&(struct rig_opts){.nak_confirm = true, .no_timer = !timer});
        rig_post(r, WR_SEND, 1, 8, 0);
        rig_tx(r, 0);
        if (timer) {
            rig_pass(r, RIG_T + RIG_T / 8);
            ck_assert_uint_eq(rig_tx(r, 0), 1);
        }
        rig_aeth(r, P(0), WIRE_SYN_NAK_OP, 0);
        ck_assert_uint_eq(r->nwc, 1);
        ck_assert_uint_eq(r->wc[0].status, WC_REM_OP_ERR);
        rig_free(r);
    }
}
END_TEST

/* ATM-10: the result of an atomic goes to two places, whose copies end one by one. */
START_TEST(atm_10_result_in_two_places)
{
    struct rig *r = rig_new(NULL);
    struct mem_seg segs[2] = {{r->mem, 0, 4096 + 4}, {r->mem, 16384, 8192}};
    uint32_t lkey, rkey;
    ck_assert_int_eq(mem_mr_reg(engine_mem(r->e), r->pd, RIG_VA, 4096 + 4 + 8192, MEM_LOCAL_WRITE,
                                segs, 2, NULL, &lkey, &rkey),
                     0);
    struct engine_send_wr wr = rig_wr(r, WR_ATOMIC_FETCH_AND_ADD, 1, 0, 8);
    struct engine_sge sge = {RIG_VA + 4096, 8, lkey};
    wr.sge = &sge;
    ck_assert_int_eq(engine_post_send(r->e, r->qp, &wr, r->now), 0);
    rig_tx(r, 0);
    struct wire_pkt p = rig_pkt(r, WIRE_ATOMIC_ACK, P(0));
    p.orig = 0x1122334455667788;
    r->late = true;
    rig_rx(r, &p, NULL);
    ck_assert_uint_eq(r->ncopies, 2);
    const struct engine_copy second = r->copies[1];
    rig_copy(r, 1, 0);
    memcpy((uint8_t *)second.dst.obj + second.dst.off, second.src, second.len);
    rig_copy(r, 1, 0);
    ck_assert_uint_eq(r->nwc, 1);
    uint64_t orig;
    memcpy(&orig, r->mem + 4096, 4);
    memcpy((uint8_t *)&orig + 4, r->mem + 16384, 4);
    ck_assert_uint_eq(orig, 0x1122334455667788);
    rig_free(r);
}
END_TEST

UNIT_MAIN("completer", atm_10_result_in_two_places, sec_06_nak_confirm, sec_06_nak_at_once,
          req_22_cumulative, req_34_any_msn, req_21_outside_the_window, req_35_selective_signalling,
          ack_06_fatal, req_29_read, req_28_misfits, req_28_strict, req_30_both_forms,
          req_24_implied, atm_10_atomic_result, req_31_aeth_of_data, req_18_late_copy,
          req_09_failed_copy, req_37_nak_after_a_late_copy, qp_14_destroy_with_copies,
          sec_29_no_records, cq_05_overflow)
