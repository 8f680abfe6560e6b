/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "cc_of.h"
#include "cc_param.h"
#include "core_rig.h"

static const uint32_t starts[] = {0xFFFFF0, 0x7FFFF8, 1, 0xFFFFFF}; /* PSN-05 */
#define STARTS (sizeof(starts) / sizeof(starts[0]))

/* RTX-01, RTX-02, RTX-05: from each packet of two messages, opcode, PSN and data are as first sent.
 */
START_TEST(rtx_02_same_again_from_anywhere)
{
    for (unsigned s = 0; s < STARTS; s++) {
        for (unsigned from = 0; from < 9; from++) {
            struct rig *r = rig_new(&(struct rig_opts){.sq_psn = starts[s]});
            for (unsigned k = 0; k < 9000; k++)
                r->mem[k] = (uint8_t)(k / 100);
            rig_post(r, WR_RDMA_WRITE_WITH_IMM, 1, 4000, 0);
            rig_post(r, WR_SEND, 2, 5000, WR_F_SIGNALED);
            ck_assert_uint_eq(rig_tx(r, 0), 9);
            rig_aeth(r, rig_psn(starts[s], from), WIRE_SYN_NAK_SEQ, 0);
            ck_assert_uint_eq(rig_count(r, ENGINE_C_packet_seq_err), 1);
            ck_assert_uint_eq(rig_tx(r, 0), 9 - from);
            for (unsigned k = from; k < 9; k++) {
                const struct wire_pkt *a = &r->sent[k], *b = &r->sent[9 + k - from];
                ck_assert_uint_eq(a->psn, b->psn);
                ck_assert_uint_eq(a->opcode, b->opcode);
                ck_assert_uint_eq(a->payload_len, b->payload_len);
                ck_assert_uint_eq(a->va, b->va);
                ck_assert_uint_eq(a->dma_len, b->dma_len);
                ck_assert(!memcmp(r->payload[k], r->payload[9 + k - from], a->payload_len));
            }
            ck_assert(r->sent[r->nsent - 1].ackreq); /* REQ-11 */
            ck_assert_uint_eq(rig_count(r, ENGINE_C_tx_retransmit), 9 - from);
            rig_ack(r, rig_psn(starts[s], 8));
            ck_assert_uint_eq(r->nwc, 1);
            rig_free(r);
        }
    }
}
END_TEST

/* TMR-01..05, TMR-10: r + 1 transmissions, then RETRY_EXC_ERR, each time-out within its bounds. */
START_TEST(tmr_05_dead_peer)
{
    for (int retries = -1; retries <= 7; retries++) {
        if (retries == 0)
            continue; /* -1 stands for none */
        unsigned want = retries < 0 ? 0 : (unsigned)retries;
        struct rig *r = rig_new(&(struct rig_opts){.retry_cnt = retries});
        rig_post(r, WR_SEND, 1, 8, 0);
        rig_post(r, WR_SEND, 2, 8, 0);
        rig_tx(r, 0);
        for (unsigned i = 0; i <= want; i++) {
            ck_assert_uint_eq(r->nwc, 0);
            ck_assert_uint_eq(r->nsent, 2 * (i + 1));
            rig_pass(r, RIG_T - 1); /* TMR-03: not before T */
            ck_assert_uint_eq(rig_count(r, ENGINE_C_local_ack_timeout_err), i);
            ck_assert_uint_eq(rig_tx(r, 0), 0);
            rig_pass(r, 1 + RIG_T / 8);
            ck_assert_uint_eq(rig_count(r, ENGINE_C_local_ack_timeout_err), i + 1);
            rig_tx(r, 0);
        }
        ck_assert_uint_eq(r->nsent, 2 * (want + 1));
        ck_assert_uint_eq(r->nwc, 2);
        ck_assert_uint_eq(r->wc[0].wr_id, 1);
        ck_assert_uint_eq(r->wc[0].status, WC_RETRY_EXC_ERR);
        ck_assert_uint_eq(r->wc[1].status, WC_WR_FLUSH_ERR);
        ck_assert_uint_eq(rig_count(r, ENGINE_C_retry_exceeded_err), 1);
        ck_assert(engine_deadline(r->e) == UINT64_MAX);
        rig_free(r);
    }
}
END_TEST

/* TMR-06, REQ-33: progress reloads the counter, a ghost doesn't. */
START_TEST(tmr_06_progress_reloads)
{
    struct rig *r = rig_new(&(struct rig_opts){.retry_cnt = 1});
    for (unsigned i = 0; i < 10; i++)
        rig_post(r, WR_SEND, i, 8, 0);
    rig_tx(r, 0);
    for (unsigned i = 0; i < 5; i++) {
        rig_pass(r, RIG_T + RIG_T / 8);
        rig_tx(r, 0);
        rig_ack(r, rig_psn(RIG_PSN, i));
        ck_assert_uint_eq(rig_state(r), QPS_RTS);
    }
    ck_assert_uint_eq(rig_count(r, ENGINE_C_local_ack_timeout_err), 5);
    rig_pass(r, RIG_T + RIG_T / 8);
    rig_tx(r, 0);
    rig_ack(r, rig_psn(RIG_PSN, 4)); /* a ghost */
    rig_pass(r, RIG_T + RIG_T / 8);
    ck_assert_uint_eq(rig_state(r), QPS_ERR);
    rig_free(r);
}
END_TEST

/* TMR-02, TMR-09: the timer runs from when the packet is handed over, only while an answer is owed,
 * and moves with progress, not with sending. */
START_TEST(tmr_02_when_it_runs)
{
    struct rig *r = rig_new(NULL);
    ck_assert(engine_deadline(r->e) == UINT64_MAX);
    rig_post(r, WR_RDMA_WRITE, 1, 20 * 1024, WR_F_SIGNALED);
    rig_tx(r, 10); /* none of these asks */
    rig_pass(r, 20 * RIG_T);
    ck_assert_uint_eq(rig_count(r, ENGINE_C_local_ack_timeout_err), 0);
    rig_tx(r, 0);
    rig_pass(r, RIG_T / 2);
    rig_post(r, WR_RDMA_WRITE, 2, 8, WR_F_SIGNALED); /* sent later: doesn't restart it */
    rig_tx(r, 0);
    rig_pass(r, RIG_T / 4);
    rig_ack(r, rig_psn(RIG_PSN, 5)); /* progress does */
    uint64_t t0 = r->now;
    rig_pass(r, RIG_T - 2);
    ck_assert_uint_eq(rig_count(r, ENGINE_C_local_ack_timeout_err), 0);
    rig_pass(r, RIG_T / 8);
    ck_assert_uint_eq(rig_count(r, ENGINE_C_local_ack_timeout_err), 1);
    ck_assert_uint_ge(r->now, t0 + RIG_T);
    rig_tx(r, 0);
    rig_ack(r, rig_psn(RIG_PSN, 20));
    rig_pass(r, 20 * RIG_T); /* all answered: stopped */
    ck_assert_uint_eq(rig_count(r, ENGINE_C_local_ack_timeout_err), 1);
    rig_free(r);
}
END_TEST

/* TMR-01: timeout 0 disables the timer. */
START_TEST(tmr_01_disabled)
{
    struct rig *r = rig_new(&(struct rig_opts){.no_timer = true});
    rig_post(r, WR_SEND, 1, 8, 0);
    rig_tx(r, 0);
    ck_assert(engine_deadline(r->e) == UINT64_MAX);
    rig_free(r);
}
END_TEST

/* RTX-08, TMR-07: NAKs for the PSN of the round under way charge nothing, one for a later PSN is a
 * new gap and starts at once. */
START_TEST(rtx_08_naks)
{
    struct rig *r = rig_new(&(struct rig_opts){.retry_cnt = 2});
    for (unsigned i = 0; i < 10; i++)
        rig_post(r, WR_SEND, i, 8, 0);
    rig_tx(r, 0);
    for (unsigned i = 0; i < 5; i++)
        rig_aeth(r, rig_psn(RIG_PSN, 2), WIRE_SYN_NAK_SEQ, 0);
    ck_assert_uint_eq(rig_state(r), QPS_RTS);
    ck_assert_uint_eq(rig_tx(r, 0), 8);
    rig_aeth(r, rig_psn(RIG_PSN, 2), WIRE_SYN_NAK_SEQ, 0);
    ck_assert_uint_eq(rig_tx(r, 0), 0);
    rig_aeth(r, rig_psn(RIG_PSN, 6), WIRE_SYN_NAK_SEQ, 0);
    ck_assert_uint_eq(rig_tx(r, 0), 4);
    rig_ack(r, rig_psn(RIG_PSN, 9));
    ck_assert_uint_eq(engine_sq_room(r->qp), 1024);
    rig_free(r);
}
END_TEST

/* REQ-21: answers to the first transmission count after a go-back, also before it is sent again. */
START_TEST(req_21_answers_overtake)
{
    struct rig *r = rig_new(NULL);
    for (unsigned i = 0; i < 10; i++)
        rig_post(r, WR_SEND, i, 8, WR_F_SIGNALED);
    rig_tx(r, 0);
    rig_pass(r, RIG_T + RIG_T / 8);
    rig_tx(r, 3);                    /* 0, 1, 2 again */
    rig_ack(r, rig_psn(RIG_PSN, 7)); /* to the first round */
    ck_assert_uint_eq(r->nwc, 8);
    rig_clear(r);
    ck_assert_uint_eq(rig_tx(r, 0), 2);
    ck_assert_uint_eq(r->sent[0].psn, rig_psn(RIG_PSN, 8));
    rig_ack(r, rig_psn(RIG_PSN, 9));
    ck_assert_uint_eq(r->nwc, 2);
    rig_free(r);
}
END_TEST

/* RNR-04, RNR-05, RNR-09, RNR-02: waits at least the time of the code, sends nothing meanwhile, and
 * a repeated NAK counts once. */
START_TEST(rnr_05_waits)
{
    static const unsigned codes[] = {1, 12, 0};
    for (unsigned i = 0; i < 3; i++) {
        struct rig *r = rig_new(&(struct rig_opts){.rnr_retry = 1, .retry_cnt = -1});
        uint64_t wait = wire_rnr_ns(codes[i]);
        rig_post(r, WR_SEND, 1, 8, WR_F_SIGNALED);
        rig_post(r, WR_SEND, 2, 8, WR_F_SIGNALED);
        rig_post(r, WR_SEND, 3, 8, WR_F_SIGNALED);
        rig_tx(r, 0);
        rig_clear(r);
        rig_aeth(r, rig_psn(RIG_PSN, 1), WIRE_SYN_RNR | codes[i], 0);
        ck_assert_uint_eq(r->nwc, 1); /* PSNs before it are acknowledged */
        rig_pass(r, wait / 2);
        rig_aeth(r, rig_psn(RIG_PSN, 1), WIRE_SYN_RNR | codes[i], 0); /* RNR-09 */
        rig_aeth(r, rig_psn(RIG_PSN, 1), WIRE_SYN_NAK_SEQ, 0);        /* RNR-02, as rxe does */
        rig_post(r, WR_SEND, 4, 8, WR_F_SIGNALED);
        ck_assert_uint_eq(rig_tx(r, 0), 0);
        rig_pass(r, wait - wait / 2 - 1);
        ck_assert_uint_eq(rig_tx(r, 0), 0); /* not early, and no ACK time-out */
        rig_pass(r, 1 + wait / 4 + 50000);
        ck_assert_uint_eq(rig_tx(r, 0), 3);
        ck_assert_uint_eq(r->sent[0].psn, rig_psn(RIG_PSN, 1));
        ck_assert_uint_eq(rig_count(r, ENGINE_C_local_ack_timeout_err), 0);
        rig_ack(r, rig_psn(RIG_PSN, 3));
        ck_assert_uint_eq(r->nwc, 4);
        rig_free(r);
    }
}
END_TEST

/* RNR-06, RNR-07: n retries, then RNR_RETRY_EXC_ERR; 7 = for ever; transport retries untouched. */
START_TEST(rnr_06_retries)
{
    for (int n = -1; n <= 7; n++) {
        if (n == 0)
            continue;
        unsigned want = n < 0 ? 0 : n == 7 ? 50 : (unsigned)n;
        struct rig *r = rig_new(&(struct rig_opts){.rnr_retry = n, .retry_cnt = -1});
        rig_post(r, WR_SEND, 1, 8, 0);
        for (unsigned i = 0; i < want; i++) {
            rig_tx(r, 0);
            rig_aeth(r, RIG_PSN, WIRE_SYN_RNR | 1, 0);
            ck_assert_uint_eq(rig_state(r), QPS_RTS);
            rig_pass(r, 100000);
        }
        ck_assert_uint_eq(rig_tx(r, 0), 1);
        rig_aeth(r, RIG_PSN, WIRE_SYN_RNR | 1, 0);
        if (n == 7) {
            ck_assert_uint_eq(rig_state(r), QPS_RTS);
        } else {
            ck_assert_uint_eq(rig_state(r), QPS_ERR);
            ck_assert_uint_eq(r->wc[0].status, WC_RNR_RETRY_EXC_ERR);
            ck_assert_uint_eq(rig_count(r, ENGINE_C_retry_rnr_exceeded_err), 1);
        }
        ck_assert_uint_eq(rig_count(r, ENGINE_C_rnr_nak_retry_err), want + 1);
        rig_free(r);
    }
}
END_TEST

/* RNR-08, A7: any request may be answered so. REQ-33: progress of the stalled PSN reloads. */
START_TEST(rnr_08_read_too)
{
    struct rig *r = rig_new(&(struct rig_opts){.rnr_retry = 1});
    rig_post(r, WR_RDMA_READ, 1, 8, WR_F_SIGNALED);
    rig_post(r, WR_ATOMIC_FETCH_AND_ADD, 2, 8, WR_F_SIGNALED);
    rig_tx(r, 0);
    rig_aeth(r, RIG_PSN, WIRE_SYN_RNR | 1, 0);
    rig_pass(r, 100000);
    ck_assert_uint_eq(rig_tx(r, 0), 2);
    rig_read_resp(r, WIRE_READ_RESP_ONLY, RIG_PSN, 8, 1);
    rig_aeth(r, rig_psn(RIG_PSN, 1), WIRE_SYN_RNR | 1, 0);
    ck_assert_uint_eq(rig_state(r), QPS_RTS);
    rig_pass(r, 100000);
    ck_assert_uint_eq(rig_tx(r, 0), 1);
    ck_assert_uint_eq(r->nwc, 1);
    ck_assert_uint_eq(r->wc[0].status, WC_SUCCESS);
    ck_assert_msg(rig_count(r, ENGINE_C_local_ack_timeout_err) == 0 &&
                      rig_count(r, ENGINE_C_packet_seq_err) == 0,
                  "A7 no retry of another kind is charged");
    rig_free(r);
}
END_TEST

/* RD-12, RD-13, RTX-03: a partly received READ is asked for again from the first missing octet, by
 * time-out too; an atomic goes out unchanged. */
START_TEST(rd_12_partial)
{
    for (unsigned s = 0; s < STARTS; s++) {
        struct rig *r = rig_new(&(struct rig_opts){.sq_psn = starts[s], .max_rd_atomic = 1});
        rig_post(r, WR_RDMA_READ, 1, 5000, WR_F_SIGNALED);
        rig_post(r, WR_ATOMIC_CMP_AND_SWP, 2, 8, WR_F_SIGNALED);
        ck_assert_uint_eq(rig_tx(r, 0), 1);
        rig_read_resp(r, WIRE_READ_RESP_FIRST, starts[s], 1024, 1);
        rig_read_resp(r, WIRE_READ_RESP_MIDDLE, rig_psn(starts[s], 1), 1024, 2);
        rig_pass(r, RIG_T + RIG_T / 8);
        rig_clear(r);
        ck_assert_uint_eq(rig_tx(r, 0), 1); /* RD-13: still one outstanding */
        ck_assert_uint_eq(r->sent[0].psn, rig_psn(starts[s], 2));
        ck_assert_uint_eq(r->sent[0].va, 0x7000000 + 2048);
        ck_assert_uint_eq(r->sent[0].dma_len, 5000 - 2048);
        rig_read_resp(r, WIRE_READ_RESP_FIRST, rig_psn(starts[s], 2), 1024, 3);
        rig_read_resp(r, WIRE_READ_RESP_MIDDLE, rig_psn(starts[s], 3), 1024, 4);
        rig_read_resp(r, WIRE_READ_RESP_LAST, rig_psn(starts[s], 4), 904, 5);
        ck_assert_uint_eq(r->nwc, 1);
        for (unsigned i = 0; i < 5; i++)
            ck_assert_uint_eq(r->mem[i * 1024], i + 1);
        rig_clear(r);
        ck_assert_uint_eq(rig_tx(r, 0), 1);
        struct wire_pkt first = r->sent[0];
        rig_pass(r, RIG_T + RIG_T / 8);
        ck_assert_uint_eq(rig_tx(r, 0), 1);
        ck_assert_uint_eq(r->sent[1].psn, first.psn);
        ck_assert_uint_eq(r->sent[1].swap_add, first.swap_add);
        ck_assert_uint_eq(r->sent[1].compare, first.compare);
        ck_assert_uint_eq(r->sent[1].opcode, WIRE_CMP_SWAP);
        rig_free(r);
    }
}
END_TEST

/* REQ-24 uses one retry each round: a READ without answers ends. */
START_TEST(req_24_exhausted)
{
    struct rig *r = rig_new(&(struct rig_opts){.retry_cnt = 2});
    rig_post(r, WR_RDMA_READ, 1, 8, 0);
    rig_post(r, WR_SEND, 2, 8, 0);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_uint_eq(rig_tx(r, 0), 2);
        ck_assert_uint_eq(rig_state(r), QPS_RTS);
        rig_pass(r, RIG_T / 2);
        rig_ack(r, rig_psn(RIG_PSN, 1));
    }
    ck_assert_uint_eq(rig_state(r), QPS_ERR);
    ck_assert_uint_eq(r->wc[0].status, WC_RETRY_EXC_ERR);
    ck_assert_uint_eq(rig_count(r, ENGINE_C_implied_nak_seq_err), 3);
    rig_free(r);
}
END_TEST

/* RTX-07, QP-07, QP-08: SQD finishes and retransmits started requests, and starts no new one. */
START_TEST(qp_07_drains)
{
    struct rig *r = rig_new(NULL);
    rig_post(r, WR_SEND, 1, 8, 0);
    rig_post(r, WR_SEND, 2, 3000, WR_F_SIGNALED);
    rig_post(r, WR_SEND, 3, 8, WR_F_SIGNALED);
    rig_tx(r, 2); /* the second is in flight, and asks for no ACK */
    struct engine_qp_attr a = {.state = QPS_SQD, .en_sqd_async_notify = true};
    ck_assert_int_eq(engine_qp_modify(r->e, r->qp, &a, QPA_STATE | QPA_EN_SQD_ASYNC_NOTIFY, r->now),
                     0);
    struct engine_qp_attr back = {.state = QPS_RTS};
    ck_assert_int_lt(engine_qp_modify(r->e, r->qp, &back, QPA_STATE, r->now), 0); /* QP-08 */
    rig_clear(r);
    ck_assert_uint_eq(rig_tx(r, 0), 2);
    ck_assert(r->sent[1].ackreq);
    engine_qp_query(r->qp, &a, NULL);
    ck_assert(a.sq_draining);
    rig_pass(r, RIG_T + RIG_T / 8);
    ck_assert_uint_eq(rig_tx(r, 0), 4); /* RTX-07 */
    ck_assert_uint_eq(r->nev, 0);
    rig_ack(r, rig_psn(RIG_PSN, 3));
    ck_assert_uint_eq(r->nwc, 1);
    ck_assert_uint_eq(r->nev, 1);
    ck_assert_uint_eq(r->ev[0], EVT_SQ_DRAINED);
    engine_qp_query(r->qp, &a, NULL);
    ck_assert(!a.sq_draining);
    ck_assert_uint_eq(rig_tx(r, 0), 0);
    ck_assert_int_eq(engine_qp_modify(r->e, r->qp, &back, QPA_STATE, r->now), 0);
    ck_assert_uint_eq(rig_tx(r, 0), 1);
    rig_free(r);
}
END_TEST

static void change(struct rig *r, enum qp_state to, struct engine_qp_attr a, unsigned mask)
{
    a.state = to;
    ck_assert_int_eq(engine_qp_modify(r->e, r->qp, &a, QPA_STATE | mask, r->now), 0);
}

/* QP-07: SQ_DRAINED is raised once; the next time only if the program asks for it again. */
START_TEST(qp_07_told_when_asked)
{
    struct rig *r = rig_new(NULL);
    struct engine_qp_attr a = {.en_sqd_async_notify = true};
    change(r, QPS_SQD, a, QPA_EN_SQD_ASYNC_NOTIFY);
    ck_assert_uint_eq(r->nev, 1);
    change(r, QPS_RTS, a, 0);
    change(r, QPS_SQD, a, 0);
    ck_assert_uint_eq(r->nev, 1);
    change(r, QPS_RTS, a, 0);
    change(r, QPS_SQD, a, QPA_EN_SQD_ASYNC_NOTIFY);
    ck_assert_uint_eq(r->nev, 2);
    rig_free(r);
}
END_TEST

/* QP-07: with or without AckReq in the last packet before SQD, the last packet of the started
 * requests has it. */
START_TEST(qp_07_asks)
{
    struct rig *r = rig_new(NULL);
    rig_post(r, WR_SEND, 1, 8, 0);
    rig_post(r, WR_SEND, 2, 8, 0);
    rig_tx(r, 1);
    ck_assert(!r->sent[0].ackreq);
    struct engine_qp_attr a = {.state = QPS_SQD};
    ck_assert_int_eq(engine_qp_modify(r->e, r->qp, &a, QPA_STATE, r->now), 0);
    ck_assert_uint_le(rig_tx(r, 0), 1); /* the second, if it had started with the first */
    ck_assert(r->sent[r->nsent - 1].ackreq);
    rig_free(r);
}
END_TEST

/* RTX-04: a retransmission reads the buffer again; inline data is the copy made when it was posted.
 */
START_TEST(rtx_04_reads_again)
{
    struct rig *r = rig_new(NULL);
    uint8_t data[16];
    memset(data, 1, sizeof(data));
    memset(r->mem, 1, 16);
    struct engine_send_wr wr = rig_wr(r, WR_SEND, 1, 0, 0);
    wr.flags = WR_F_INLINE;
    wr.inline_data = data;
    wr.inline_len = sizeof(data);
    ck_assert_int_eq(engine_post_send(r->e, r->qp, &wr, r->now), 0);
    rig_post(r, WR_SEND, 2, 16, 0);
    ck_assert_uint_eq(rig_tx(r, 0), 2);
    memset(data, 2, sizeof(data));
    memset(r->mem, 2, 16);
    rig_aeth(r, RIG_PSN, WIRE_SYN_NAK_SEQ, 0);
    ck_assert_uint_eq(rig_tx(r, 0), 2);
    ck_assert_uint_eq(r->payload[1][0], 1);
    ck_assert_uint_eq(r->payload[2][15], 1);
    ck_assert_uint_eq(r->payload[3][15], 2);
    rig_free(r);
}
END_TEST

/* RTX-09: nothing adaptive by default: however short the round trips are, no time-out before T and
 * no probe. */
START_TEST(rtx_09_not_adaptive)
{
    struct rig *r = rig_new(NULL);
    for (unsigned i = 0; i < 50; i++) {
        rig_post(r, WR_SEND, i, 8, 0);
        rig_tx(r, 0);
        rig_pass(r, 1000);
        rig_ack(r, rig_psn(RIG_PSN, i));
    }
    rig_post(r, WR_SEND, 50, 8, 0);
    ck_assert_uint_eq(rig_tx(r, 0), 1);
    rig_pass(r, RIG_T - 1);
    ck_assert_uint_eq(rig_tx(r, 0), 0);
    ck_assert_uint_eq(rig_count(r, ENGINE_C_local_ack_timeout_err), 0);
    rig_free(r);
}
END_TEST

/* REQ-13, LR-05, LR-16: each loss halves the window, down to 16, where `shrink` is on; answers open
 * it again. */
static void check_window(const char *spec, const unsigned *window)
{
    struct rig_opts o = {.window = 64, .retry_cnt = 7, .stay = true};
    struct rig *r = rig_new(&o);
    const struct cc_conf conf = cc_of(spec);
    ck_assert_int_eq(engine_set_cc(r->e, &conf, r->now), 0);
    rig_connect(r, r->qp, &o, QPS_RTS);
    rig_post(r, WR_RDMA_WRITE, 1, 1 << 20, WR_F_SIGNALED); /* 1024 packets */
    ck_assert_uint_eq(rig_tx(r, 0), 64);
    uint32_t at = 0;
    for (unsigned i = 0; i < 3; i++) {
        at += 3; /* a new gap each time */
        rig_aeth(r, rig_psn(RIG_PSN, at), WIRE_SYN_NAK_SEQ, 0);
        ck_assert_uint_eq(rig_tx(r, 0), window[i]);
        ck_assert(r->sent[r->nsent - 1].ackreq); /* REQ-10: it stops here */
        rig_pass(r, 1000);
    }
    for (unsigned i = 0; i < 600; i++) {
        rig_ack(r, rig_psn(RIG_PSN, ++at));
        rig_tx(r, 0);
    }
    ck_assert_uint_eq(rig_state(r), QPS_RTS);
    struct engine_qp_info info;
    engine_qp_info(r->e, r->qp, &info);
    ck_assert_uint_eq(info.inflight_packets, 64);
    rig_free(r);
}

START_TEST(req_13_window_shrinks)
{
    check_window("none,shrink=0", (const unsigned[]){64, 64, 64});
    check_window("none,shrink=1", (const unsigned[]){32, 16, 16});
}
END_TEST

/* REQ-24, TMR-07: READ responses still in flight when the READ is requested again show the same
 * gap, for longer than a round trip, and charge nothing; responses of the new round do. */
START_TEST(req_24_old_stream)
{
    struct rig *r = rig_new(&(struct rig_opts){.retry_cnt = 2});
    rig_post(r, WR_RDMA_READ, 1, 200 * 1024, WR_F_SIGNALED);
    rig_tx(r, 0);
    for (unsigned i = 1; i < 100; i++) { /* 0 is lost */
        rig_read_resp(r, WIRE_READ_RESP_MIDDLE, rig_psn(RIG_PSN, i), 1024, 1);
        rig_pass(r, 2000);
    }
    ck_assert_uint_eq(rig_count(r, ENGINE_C_implied_nak_seq_err), 1);
    ck_assert_uint_eq(rig_tx(r, 0), 1);
    for (unsigned i = 1; i < 4; i++) { /* 0 is lost again: 1 alone could be an old one */
        ck_assert_uint_eq(rig_count(r, ENGINE_C_implied_nak_seq_err), 1);
        rig_read_resp(r, WIRE_READ_RESP_MIDDLE, rig_psn(RIG_PSN, i), 1024, 1);
    }
    ck_assert_uint_eq(rig_count(r, ENGINE_C_implied_nak_seq_err), 2);
    ck_assert_uint_eq(rig_tx(r, 0), 1);
    for (unsigned i = 4; i < 200; i++)
        rig_read_resp(r, i < 199 ? WIRE_READ_RESP_MIDDLE : WIRE_READ_RESP_LAST, rig_psn(RIG_PSN, i),
                      1024, 1);
    ck_assert_uint_eq(rig_count(r, ENGINE_C_implied_nak_seq_err), 2);
    ck_assert_uint_eq(rig_state(r), QPS_RTS);
    rig_free(r);
}
END_TEST

/* TMR-07: responses of the old stream that come late show the gap near its beginning, too. Within
 * half of the measured round trip none of them can be of the new round. */
START_TEST(tmr_07_late_old_stream)
{
    struct rig *r = rig_new(&(struct rig_opts){.retry_cnt = 2});
    rig_post(r, WR_SEND, 1, 8, WR_F_SIGNALED);
    rig_tx(r, 0);
    rig_pass(r, 100000);
    rig_ack(r, RIG_PSN);
    uint32_t first = rig_psn(RIG_PSN, 1);
    rig_post(r, WR_RDMA_READ, 2, 200 * 1024, WR_F_SIGNALED);
    rig_tx(r, 0);
    rig_read_resp(r, WIRE_READ_RESP_MIDDLE, rig_psn(first, 99), 1024, 1); /* 0 is lost */
    ck_assert_uint_eq(rig_count(r, ENGINE_C_implied_nak_seq_err), 1);
    ck_assert_uint_eq(rig_tx(r, 0), 1);
    for (unsigned i = 1; i < 5; i++) { /* the responses before 99 had been overtaken */
        rig_pass(r, 10000);
        rig_read_resp(r, WIRE_READ_RESP_MIDDLE, rig_psn(first, i), 1024, 1);
        rig_read_resp(r, WIRE_READ_RESP_MIDDLE, rig_psn(first, 100 + i), 1024, 1);
        ck_assert_uint_eq(rig_tx(r, 0), 0);
    }
    ck_assert_uint_eq(rig_count(r, ENGINE_C_implied_nak_seq_err), 1);
    rig_pass(r, 60000); /* from now on packets may be an answer: 0 is lost again */
    for (unsigned i = 1; i < 4; i++)
        rig_read_resp(r, WIRE_READ_RESP_MIDDLE, rig_psn(first, i), 1024, 1);
    ck_assert_uint_eq(rig_count(r, ENGINE_C_implied_nak_seq_err), 2);
    ck_assert_uint_eq(rig_tx(r, 0), 1);
    ck_assert_uint_eq(rig_state(r), QPS_RTS);
    rig_free(r);
}
END_TEST

/* TMR-07: between the READs are WRITEs, so the answers to the READs have distant PSNs. The first
 * READ's answer is lost twice. The second READ's answer, when it comes again, shows at once that
 * the first one is lost again. */
START_TEST(tmr_07_short_reads)
{
    struct rig *r = rig_new(&(struct rig_opts){.retry_cnt = 7, .max_rd_atomic = 8});
    for (unsigned i = 0; i < 4; i++) {
        rig_post(r, WR_RDMA_READ, 2 * i, 8, WR_F_SIGNALED);
        rig_post(r, WR_RDMA_WRITE, 2 * i + 1, 10 * 1024, WR_F_SIGNALED);
    }
    ck_assert_uint_eq(rig_tx(r, 0), 44);
    for (unsigned i = 1; i < 4; i++) /* the first READ's is lost */
        rig_read_resp(r, WIRE_READ_RESP_ONLY, rig_psn(RIG_PSN, 11 * i), 8, 1);
    ck_assert_uint_eq(rig_count(r, ENGINE_C_implied_nak_seq_err), 1);
    ck_assert_uint_eq(rig_tx(r, 0), 44);
    rig_read_resp(r, WIRE_READ_RESP_ONLY, rig_psn(RIG_PSN, 11), 8, 1);
    ck_assert_uint_eq(rig_count(r, ENGINE_C_implied_nak_seq_err), 2);
    ck_assert_uint_eq(rig_tx(r, 0), 44);
    rig_free(r);
}
END_TEST

/* TMR-02, TMR-05, RNR-05 with any clock: since boot, since 1970, and one near the end of 64 bits,
 * where it stops: no timer expires there, and no other error occurs. */
START_TEST(tmr_02_any_clock)
{
    static const uint64_t clocks[] = {1,
                                      (1ull << 58) - RIG_T,
                                      1ull << 58,
                                      1767225600000000000u,
                                      (1ull << 63) - RIG_T / 2,
                                      1ull << 63,
                                      UINT64_MAX - RIG_T,
                                      UINT64_MAX};
    struct cc_conf cc;
    char err[128];
    ck_assert_int_eq(cc_conf_parse(&cc, "dcqcn,line=1G", err, sizeof(err)), 0);
    for (unsigned i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++) {
        bool runs = clocks[i] < (1ull << 63) - RIG_T;
        struct rig *r = rig_new(&(struct rig_opts){.start = clocks[i], .retry_cnt = 1});
        ck_assert_int_eq(engine_qp_set_cc(r->e, r->qp, &cc, r->now), 0);
        rig_post(r, WR_SEND, 1, 8, WR_F_SIGNALED);
        ck_assert_uint_eq(rig_tx(r, 0), 1);
        struct wire_pkt cnp = rig_pkt(r, WIRE_OPCODE_CNP, 0);
        rig_rx(r, &cnp, NULL);
        rig_aeth(r, RIG_PSN, WIRE_SYN_RNR | 1, 0);
        for (unsigned k = 0; k < 3; k++) {
            engine_expire(r->e, r->now);
            if (r->now < UINT64_MAX - RIG_T) {
                r->now += RIG_T + RIG_T / 8;
                engine_expire(r->e, r->now);
            }
            rig_tx(r, 0);
        }
        engine_expire(r->e, UINT64_MAX);
        ck_assert_uint_eq(r->nwc, (runs ? 1 : 0));
        if (runs)
            ck_assert_uint_eq(r->wc[0].status, WC_RETRY_EXC_ERR);
        rig_free(r);
    }
}
END_TEST

/* QP-01, RNR-06, TMR-05: retries that are changed in SQD count from then on. */
START_TEST(qp_01_retries_changed)
{
    static const uint8_t left[] = {0, 1, 2};
    for (unsigned from = 0; from < sizeof(left); from++) {
        for (unsigned to = 0; to < sizeof(left); to++) {
            int n = left[from] ? left[from] : -1;
            struct rig *r = rig_new(&(struct rig_opts){.retry_cnt = n, .rnr_retry = n});
            change(r, QPS_SQD, (struct engine_qp_attr){0}, 0);
            change(r, QPS_SQD,
                   (struct engine_qp_attr){.retry_cnt = left[to], .rnr_retry = left[to]},
                   QPA_RETRY_CNT | QPA_RNR_RETRY);
            change(r, QPS_RTS, (struct engine_qp_attr){0}, 0);
            rig_post(r, WR_SEND, 1, 8, WR_F_SIGNALED);
            rig_tx(r, 0);
            for (unsigned i = 0; i < left[to]; i++) {
                rig_aeth(r, RIG_PSN, WIRE_SYN_RNR | 1, 0);
                rig_pass(r, 2 * wire_rnr_ns(1));
                ck_assert_msg(rig_tx(r, 0) == 1, "%u to %u RNR retries: %u", left[from], left[to],
                              i);
            }
            for (unsigned i = 0; i < left[to]; i++) {
                rig_pass(r, 2 * RIG_T);
                ck_assert_msg(rig_tx(r, 0) == 1, "%u to %u retries: %u", left[from], left[to], i);
            }
            rig_aeth(r, RIG_PSN, WIRE_SYN_RNR | 1, 0);
            ck_assert_uint_eq(r->nwc, 1);
            ck_assert_uint_eq(r->wc[0].status, WC_RNR_RETRY_EXC_ERR);
            rig_free(r);
        }
    }
}
END_TEST

UNIT_MAIN("retransmit", qp_07_told_when_asked, qp_01_retries_changed, tmr_07_short_reads,
          tmr_02_any_clock, rtx_04_reads_again, rtx_09_not_adaptive, req_13_window_shrinks,
          req_24_old_stream, tmr_07_late_old_stream, rtx_02_same_again_from_anywhere,
          tmr_05_dead_peer, tmr_06_progress_reloads, tmr_02_when_it_runs, tmr_01_disabled,
          rtx_08_naks, req_21_answers_overtake, rnr_05_waits, rnr_06_retries, rnr_08_read_too,
          rd_12_partial, req_24_exhausted, qp_07_drains, qp_07_asks)
