/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Where numbers end: READs that take half of all PSNs, counters that go round.
 */
#include <stdlib.h>
#include <string.h>

#include "core_rig.h"

#define LONGEST (1u << 31)
#define PSNS    (1u << 23) /* PSNs of the longest message at the smallest MTU */
#define P(n)    rig_psn(RIG_PSN, n)

/* A rig of MTU 256 whose keys cover 2^31 octets; only the first ones exist. */
static struct rig *longest(const struct rig_opts *o)
{
    struct rig *r = rig_new(o);
    struct mem_seg seg = {r->mem, 0, LONGEST};
    ck_assert_int_eq(mem_mr_reg(engine_mem(r->e), r->pd, RIG_VA, LONGEST,
                                MEM_LOCAL_WRITE | MEM_REMOTE_ANY, &seg, 1, NULL, &r->lkey,
                                &r->rkey),
                     0);
    return r;
}

/* The longest READ with `n` answers received, followed by `n` WRITEs. */
static struct rig *half_of_all(unsigned n, bool strict)
{
    struct rig *r = longest(&(struct rig_opts){.mtu = 1, .strict_resp = strict});
    ck_assert_int_eq(rig_post(r, WR_RDMA_READ, 1, LONGEST, WR_F_SIGNALED), 0);
    for (unsigned i = 0; i < n; i++)
        ck_assert_int_eq(rig_post(r, WR_RDMA_WRITE, 2 + i, 8, WR_F_SIGNALED), 0);
    ck_assert_uint_eq(rig_tx(r, 0), 1); /* PSN-03 */
    for (unsigned i = 0; i < n; i++)
        rig_read_resp(r, i ? WIRE_READ_RESP_MIDDLE : WIRE_READ_RESP_FIRST, P(i), 256, 1);
    ck_assert_uint_eq(rig_tx(r, 0), n);
    ck_assert_uint_eq(r->sent[1].psn, P(PSNS));
    return r;
}

/* REQ-27: while data of the longest READ are missing, an ACK of a later request doesn't complete
 * the READ. */
START_TEST(req_27_ack_after_the_longest_read)
{
    struct rig *r = half_of_all(4, false);
    rig_ack(r, P(PSNS + 1));
    ck_assert_uint_eq(r->nwc, 0);
    ck_assert_uint_eq(rig_count(r, ENGINE_C_implied_nak_seq_err), 1);
    rig_clear(r);
    ck_assert_uint_gt(rig_tx(r, 0), 0);
    ck_assert_uint_eq(r->sent[0].opcode, WIRE_READ_REQUEST); /* RD-12 */
    ck_assert_uint_eq(r->sent[0].psn, P(4));
    ck_assert_uint_eq(r->sent[0].dma_len, LONGEST - 4 * 256);
    rig_free(r);
}
END_TEST

/* REQ-26: nor does a NAK. */
START_TEST(req_26_nak_after_the_longest_read)
{
    static const uint8_t syndromes[] = {WIRE_SYN_NAK_SEQ, WIRE_SYN_RNR | 1, WIRE_SYN_NAK_INV};
    for (unsigned i = 0; i < sizeof(syndromes); i++) {
        struct rig *r = half_of_all(4, false);
        rig_aeth(r, P(PSNS + 2), syndromes[i], 1);
        ck_assert_uint_eq(r->nwc, 0);
        ck_assert_uint_eq(rig_count(r, ENGINE_C_implied_nak_seq_err), 1);
        rig_free(r);
    }
}
END_TEST

/* RD-14, REQ-28: data of the READ after it is an answer to that one, and fits. */
START_TEST(rd_14_answer_after_the_longest_read)
{
    struct rig *r = longest(&(struct rig_opts){.mtu = 1, .strict_resp = true});
    rig_post(r, WR_RDMA_READ, 1, LONGEST, WR_F_SIGNALED);
    rig_post(r, WR_RDMA_READ, 2, 256, WR_F_SIGNALED);
    rig_tx(r, 0);
    rig_read_resp(r, WIRE_READ_RESP_FIRST, P(0), 256, 1);
    ck_assert_uint_eq(rig_tx(r, 0), 1);
    rig_read_resp(r, WIRE_READ_RESP_ONLY, P(PSNS), 256, 1);
    ck_assert_uint_eq(rig_state(r), QPS_RTS);
    ck_assert_uint_eq(rig_count(r, ENGINE_C_implied_nak_seq_err), 1);
    rig_free(r);
}
END_TEST

/* Fill slots and drop them: millions of answers are not checked. */
static void answer_all(struct rig *r)
{
    static struct engine_slot slots[ENGINE_BURST];
    static uint8_t frame[WIRE_FRAME_MAX];
    unsigned n;
    for (unsigned i = 0; i < ENGINE_BURST; i++) {
        slots[i].buf = frame;
        slots[i].cap = sizeof(frame);
    }
    while ((n = engine_tx(r->e, slots, ENGINE_BURST, r->now)) > 0)
        engine_sent(r->e, slots, n, r->now);
}

static void write_only(struct rig *r, uint32_t psn, bool ackreq)
{
    struct wire_pkt p = rig_pkt(r, WIRE_WRITE_ONLY, psn);
    p.va = RIG_VA;
    p.rkey = r->rkey;
    p.dma_len = p.payload_len = 8;
    p.ackreq = ackreq;
    rig_rx(r, &p, NULL);
}

/* ACK-07: a packet comes too early; then the missing one and itself, before the NAK has got a slot.
 * Then the NAK has nothing to request any more, however long ago the last gap was. */
START_TEST(ack_07_long_after_the_last_gap)
{
    for (unsigned round = 0; round < 3; round++) {
        struct rig *r = longest(&(struct rig_opts){.mtu = 1});
        uint32_t psn = RIG_RQPSN;
        for (unsigned i = 0; i < round; i++) {
            struct wire_pkt p = rig_pkt(r, WIRE_READ_REQUEST, psn);
            p.va = RIG_VA;
            p.rkey = r->rkey;
            p.dma_len = LONGEST;
            rig_rx(r, &p, NULL);
            answer_all(r);
            psn = rig_psn(psn, PSNS);
        }
        write_only(r, psn, true);
        answer_all(r);
        write_only(r, rig_psn(psn, 2), true);
        write_only(r, rig_psn(psn, 1), true);
        write_only(r, rig_psn(psn, 2), true);
        ck_assert_uint_eq(rig_tx(r, 0), 1);
        ck_assert_msg(r->sent[0].syndrome == WIRE_SYN_ACK, "%u READs: syndrome %x", round,
                      r->sent[0].syndrome);
        ck_assert_uint_eq(r->sent[0].psn, rig_psn(psn, 2));

        /* and if it is still missing, the NAK requests it */
        rig_clear(r);
        write_only(r, rig_psn(psn, 5), true);
        write_only(r, rig_psn(psn, 3), true);
        ck_assert_uint_eq(rig_tx(r, 0), 1);
        ck_assert_uint_eq(r->sent[0].syndrome, WIRE_SYN_NAK_SEQ);
        ck_assert_uint_eq(r->sent[0].psn, rig_psn(psn, 4));
        rig_free(r);
    }
}
END_TEST

/* QP-10: a copy of long ago, when the queue pair was in another life, commits nothing. */
START_TEST(qp_10_a_copy_256_lives_ago)
{
    for (unsigned lives = 255; lives <= 257; lives++) {
        struct rig *r = rig_new(NULL);
        struct engine_qp_attr a = {.state = QPS_RESET};
        struct wire_pkt p = rig_pkt(r, WIRE_SEND_ONLY, RIG_RQPSN);
        p.payload_len = 8;
        p.ackreq = true;
        rig_post_recv(r, 1, 0, 64);
        r->late = true;
        rig_rx(r, &p, NULL);
        ck_assert_uint_eq(r->ncopies, 1);
        for (unsigned i = 0; i < lives; i++)
            ck_assert_int_eq(engine_qp_modify(r->e, r->qp, &a, QPA_STATE, r->now), 0);
        rig_connect(r, r->qp, &(struct rig_opts){0}, QPS_RTS);
        rig_post_recv(r, 2, 0, 64);
        rig_copy(r, 1, 0);
        ck_assert_uint_eq(r->nwc, 0);
        ck_assert_uint_eq(rig_tx(r, 0), 0);
        rig_free(r);
    }
}
END_TEST

/* QP-10: a copy is pending from before the queue pair was reset. Meanwhile answered requests from
 * after the reset complete, and so does a faulty work request in the end. */
START_TEST(qp_10_life_goes_on)
{
    for (unsigned good = 0; good <= 1; good++) {
        struct rig *r = rig_new(NULL);
        struct engine_qp_attr a = {.state = QPS_RESET};
        rig_post(r, WR_RDMA_READ, 1, 8, WR_F_SIGNALED);
        rig_tx(r, 0);
        r->late = true;
        rig_read_resp(r, WIRE_READ_RESP_ONLY, P(0), 8, 1);
        ck_assert_int_eq(engine_qp_modify(r->e, r->qp, &a, QPA_STATE, r->now), 0);
        rig_connect(r, r->qp, &(struct rig_opts){0}, QPS_RTS);
        struct engine_send_wr wr = rig_wr(r, WR_SEND, 2, good ? 0 : RIG_MEM, 8);
        ck_assert_int_eq(engine_post_send(r->e, r->qp, &wr, r->now), 0);
        ck_assert_uint_eq(rig_tx(r, 0), good);
        if (good)
            rig_ack(r, P(0));
        rig_copy(r, 1, 0);
        rig_tx(r, 0);
        ck_assert_uint_eq(r->nwc, 1);
        ck_assert_uint_eq(r->wc[0].wr_id, 2);
        ck_assert_uint_eq(r->wc[0].status, good ? WC_SUCCESS : WC_LOC_PROT_ERR);
        rig_free(r);
    }
}
END_TEST

/* SEC-29: as many records as a queue pair can count, all of its own, are there to the last. */
START_TEST(sec_29_records_that_can_be_counted)
{
    const struct engine_params many = {.records = 1u << 16};
    const unsigned n = UINT16_MAX;
    struct engine_usage u;
    ck_assert_ptr_null(engine_create(&many, 0));
    struct rig *r = rig_new(&(struct rig_opts){.records = n});
    uint64_t *tokens = calloc(n, sizeof(*tokens));
    r->late = true;
    for (unsigned i = 0; i < n; i++) {
        write_only(r, rig_psn(RIG_RQPSN, i), false);
        tokens[i] = r->ncopies ? r->copies[0].token : 0;
        r->ncopies = 0;
    }
    engine_qp_destroy(r->e, r->qp);
    engine_usage(r->e, &u);
    ck_assert_uint_eq(u.qps, 1);
    ck_assert_uint_gt(u.records, n - 64);
    for (unsigned i = 0; i < n; i++)
        engine_copied(r->e, &(struct engine_result){.token = tokens[i]}, 1, r->now);
    engine_usage(r->e, &u);
    ck_assert_uint_eq(u.qps + u.records, 0);
    free(tokens);
    rig_free(r);
}
END_TEST

#define FRAMES   ((1u << 16) + 100)
#define FRAME_AT 352u /* octets that each has */

/* RSP-24: more packets of one WRITE in one burst than 16 bits count: none is acknowledged before
 * its copy is done. */
START_TEST(rsp_24_a_very_long_burst)
{
    struct rig *r = longest(&(struct rig_opts){.mtu = 1});
    struct engine_frame *frames = calloc(FRAMES, sizeof(*frames));
    struct engine_copy *copies = calloc(2 * FRAMES, sizeof(*copies));
    uint8_t *octets = calloc(FRAMES, FRAME_AT);
    for (unsigned i = 0; i < FRAMES; i++) {
        struct wire_pkt p =
            rig_pkt(r, i ? WIRE_WRITE_MIDDLE : WIRE_WRITE_FIRST, rig_psn(RIG_RQPSN, i));
        uint8_t *at = octets + (size_t)i * FRAME_AT;
        p.va = RIG_VA;
        p.rkey = r->rkey;
        p.dma_len = LONGEST;
        p.payload_len = 256;
        p.ackreq = true;
        ck_assert_uint_gt(wire_build(at, FRAME_AT, &p), 0);
        wire_icrc_seal(at, wire_frame_len(&p), p.ip_off, p.bth_off);
        frames[i] = (struct engine_frame){.data = at, .len = (uint32_t)wire_frame_len(&p)};
    }
    unsigned n;
    unsigned used = engine_rx(r->e, frames, FRAMES, r->now, copies, 2 * FRAMES, &n);
    ck_assert_uint_gt(used, 0);
    ck_assert_uint_eq(n, used);
    for (unsigned i = 0; i < n; i++) {
        ck_assert_uint_eq(rig_tx(r, 0), 0);
        engine_copied(r->e, &(struct engine_result){.token = copies[i].token}, 1, r->now);
    }
    ck_assert_uint_eq(rig_tx(r, 0), 1);
    ck_assert_uint_eq(r->sent[0].psn, rig_psn(RIG_RQPSN, used - 1));
    free(octets);
    free(copies);
    free(frames);
    rig_free(r);
}
END_TEST

UNIT_MAIN("far", req_27_ack_after_the_longest_read, req_26_nak_after_the_longest_read,
          rd_14_answer_after_the_longest_read, ack_07_long_after_the_last_gap,
          qp_10_a_copy_256_lives_ago, qp_10_life_goes_on, sec_29_records_that_can_be_counted,
          rsp_24_a_very_long_burst)
