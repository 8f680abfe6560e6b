/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The order of sending: queue pairs by turns, and answers among the requests.
 */
#include <errno.h>

#include "core_rig.h"

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
        unsigned n = round % 2 ? 7 : 57; /* uneven sizes: a turn may be split over two calls */
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

/* REQ-19: a WRITE comes before a SEND. The SEND completes only when the data of both are in memory.
 * REQ-20: data goes to memory in the order of addresses. */
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

/* ACK-04: only an ACK of one queue pair may wait for the receiving program; a NAK, READ responses,
 * requests, or answers of several queue pairs may not. All are sent in the end. */
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

/* RSP-13, TMR-02: memory that a READ's response came from has gone. The request behind it, of the
 * same burst and queue pair, is sent, and its ACK timer runs. */
START_TEST(tmr_02_behind_a_failed_response)
{
    struct rig *r = rig_new(&(struct rig_opts){.max_rd_atomic = 4});
    struct wire_pkt p = rig_pkt(r, WIRE_READ_REQUEST, RIG_RQPSN);
    p.va = RIG_VA;
    p.rkey = r->rkey;
    p.dma_len = 3000;
    rig_rx(r, &p, NULL);
    rig_post(r, WR_RDMA_WRITE, 1, 8, WR_F_SIGNALED);
    r->fail_gather = 2;
    ck_assert_uint_eq(rig_tx(r, 0), 3);
    ck_assert_uint_eq(r->sent[0].opcode, WIRE_READ_RESP_FIRST);
    ck_assert_uint_eq(r->sent[1].opcode, WIRE_WRITE_ONLY);
    ck_assert_uint_eq(r->sent[2].opcode, WIRE_ACKNOWLEDGE);
    ck_assert_uint_eq(r->sent[2].syndrome, WIRE_SYN_NAK_ACCESS);
    rig_free(r);
}
END_TEST

/* The packets that may precede an ACK: their number, 0 or 1, and the headers. */
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

/* ACK-04: one WRITE goes ahead of an ACK, not of a NAK or a READ's response. The ACK is next,
 * before everything else. A message that completes a receive follows the ACK. */
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

    static const enum wr_opcode completes[] = {WR_SEND, WR_RDMA_WRITE_WITH_IMM};
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
 * take a receive work request, with or without the SE bit. */
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

/* RD-06: the answer to a large READ alternates with other packets. */
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

UNIT_MAIN("engine tx", fair_turns, qp_14_destroy_before_sent, ack_10_fields, req_19_data_first,
          ack_04_what_can_wait, tmr_02_behind_a_failed_response, ack_04_one_write_ahead,
          rnr_11_reads_wait, rd_06_interleaved)
