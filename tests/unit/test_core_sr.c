/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Selective repeat: the agreement, and the receiver, also the receiver of go-back-N that keeps
 * early packets. The test plays the peer.
 */
#include <string.h>

#include "sr_rig.h"

/* Packet k of a WRITE of n packets to packet `to` of the memory, first PSN number `at`. */
static void rx_write_to(struct rig *r, uint32_t to, uint32_t at, uint32_t k, uint32_t n,
                        bool selective)
{
    uint8_t data[RIG_MTU];
    unsigned op = n == 1       ? WIRE_WRITE_ONLY
                  : k == 0     ? WIRE_WRITE_FIRST
                  : k == n - 1 ? WIRE_WRITE_LAST
                               : WIRE_WRITE_MIDDLE;
    struct wire_pkt p = rig_pkt(r, op, rig_psn(RIG_RQPSN, at + k));
    p.selective = selective && op != WIRE_WRITE_ONLY && op != WIRE_WRITE_FIRST;
    p.va = RIG_VA + (to + k) * RIG_MTU;
    p.rkey = r->rkey;
    p.dma_len = (n - k) * RIG_MTU;
    p.payload_len = RIG_MTU;
    p.ackreq = k == n - 1;
    memset(data, (int)(at + k + 1), sizeof(data));
    rig_rx(r, &p, data);
}

static void rx_write(struct rig *r, uint32_t at, uint32_t k, uint32_t n, bool selective)
{
    rx_write_to(r, 0, at, k, n, selective);
}

/* Packet k of SEND number `recv` of n packets, first PSN number `at`. */
static void rx_send(struct rig *r, uint32_t at, uint32_t k, uint32_t n, uint32_t recv)
{
    uint8_t data[RIG_MTU];
    unsigned op = n == 1       ? WIRE_SEND_ONLY
                  : k == 0     ? WIRE_SEND_FIRST
                  : k == n - 1 ? WIRE_SEND_LAST
                               : WIRE_SEND_MIDDLE;
    struct wire_pkt p = rig_pkt(r, op, rig_psn(RIG_RQPSN, at + k));
    p.selective = true;
    p.sel_recv = recv;
    p.sel_index = k;
    p.payload_len = RIG_MTU;
    p.ackreq = k == n - 1;
    memset(data, (int)(at + k + 1), sizeof(data));
    rig_rx(r, &p, data);
}

static bool holds(const struct rig *r, uint32_t packet, int value)
{
    for (uint32_t i = 0; i < RIG_MTU; i++)
        if (r->mem[packet * RIG_MTU + i] != (uint8_t)value)
            return false;
    return true;
}

/* ---- agreement ---- */

/* LR-02: the parser takes such packets as soon as one queue pair may do selective repeat; packets
 * for others are dropped, and change nothing. */
START_TEST(lr_02_for_another_queue_pair)
{
    const struct cc_conf conf = cc_of("none,recovery=sr");
    struct rig *r = rig_new(NULL);
    struct engine_qp_params p;
    struct engine_qp_attr a;
    struct qp *other;
    engine_qp_query(r->qp, &a, &p);
    ck_assert_int_eq(engine_qp_create(r->e, &p, &other), 0);
    ck_assert_int_eq(engine_qp_set_cc(r->e, other, &conf, r->now), 0);
    rig_connect(r, other, &(struct rig_opts){0}, QPS_RTS);
    rx_write(r, 0, 0, 3, true); /* its FIRST is an ordinary packet */
    rx_write(r, 0, 1, 3, true);
    ck_assert_uint_eq(rig_count(r, ENGINE_C_rx_bad_opcode), 1);
    ck_assert(holds(r, 0, 1) && !holds(r, 1, 2));
    sack(r, WIRE_SYN_ACK, RIG_PSN, 0);
    ck_assert_uint_eq(rig_count(r, ENGINE_C_rx_bad_opcode), 2);
    ck_assert_uint_eq(rig_tx(r, 0), 0);
    rx_write(r, 0, 1, 3, false);
    rx_write(r, 0, 2, 3, false);
    ck_assert(holds(r, 1, 2) && holds(r, 2, 3));
    rig_free(r);
}
END_TEST

/* LR-01: a peer without a hello gets go-back-N only, and a few hellos, which it drops. */
START_TEST(lr_01_plain_peer)
{
    struct rig *r = rig_with("none,recovery=sr", NULL);
    unsigned hellos = 0;
    for (unsigned i = 0; i < 40; i++) {
        rig_post(r, WR_RDMA_WRITE, i, 4 * RIG_MTU, WR_F_SIGNALED);
        rig_post(r, WR_SEND, i, 2 * RIG_MTU, WR_F_SIGNALED);
        rig_tx(r, 0);
        for (unsigned k = 0; k < r->nsent; k++) {
            hellos += r->sent[k].selective;
            if (r->sent[k].selective)
                ck_assert_uint_eq(r->sent[k].syndrome, WIRE_SYN_ACK);
        }
        rig_ack(r, r->sent[r->nsent - 1].selective ? tx_psn(6 * i + 5) : r->sent[r->nsent - 1].psn);
        rig_clear(r);
        r->now += 10000 * US;
    }
    ck_assert_uint_ge(hellos, 1);
    ck_assert_uint_le(hellos, 8);
    rig_post(r, WR_RDMA_WRITE, 1, 8 * RIG_MTU, WR_F_SIGNALED);
    rig_tx(r, 0);
    uint32_t lost = r->sent[3].psn;
    rig_clear(r);
    rig_aeth(r, lost, WIRE_SYN_NAK_SEQ, 0);
    ck_assert_uint_eq(rig_tx(r, 0), 5); /* back, and on from there */
    rx_write(r, 1, 0, 1, false);        /* as a receiver it is plain, too */
    rx_write(r, 2, 0, 1, false);
    rig_clear(r);
    rig_tx(r, 0);
    ck_assert_uint_eq(r->nsent, 1);
    ck_assert(!r->sent[0].selective);
    ck_assert_uint_eq(r->sent[0].syndrome, WIRE_SYN_NAK_SEQ);
    ck_assert(holds(r, 0, 0));
    rig_free(r);
}
END_TEST

/* LR-01, LR-02: a queue pair without the option drops packets of selective repeat as reserved
 * opcodes. */
START_TEST(lr_01_not_asked)
{
    struct rig *r = rig_new(NULL);
    sack(r, WIRE_SYN_ACK, RIG_RQPSN, 0);
    ck_assert_uint_eq(rig_count(r, ENGINE_C_rx_bad_opcode), 1);
    rx_write(r, 0, 1, 4, true);
    ck_assert_uint_eq(rig_count(r, ENGINE_C_rx_bad_opcode), 2);
    ck_assert_uint_eq(rig_tx(r, 0), 0);
    rig_free(r);

    r = rig_with("none,recovery=gbn-ooo", NULL); /* nor does this one */
    sack(r, WIRE_SYN_ACK, RIG_RQPSN, 0);
    ck_assert_uint_eq(rig_count(r, ENGINE_C_rx_bad_opcode), 1);
    ck_assert_uint_eq(rig_tx(r, 0), 0);
    rig_free(r);
}
END_TEST

/* LR-02: a hello leaves right after the packets for which it is due, even if all of them left at
 * once: there may never be another packet to send. */
START_TEST(lr_02_hello_after_requests)
{
    struct rig *r = rig_with("none,recovery=sr", NULL);
    rig_post(r, WR_RDMA_WRITE, 1, 2 * RIG_MTU, WR_F_SIGNALED);
    ck_assert_uint_eq(rig_tx(r, 0), 3);
    ck_assert(!r->sent[0].selective && !r->sent[1].selective);
    ck_assert(r->sent[2].selective);
    ck_assert_uint_eq(r->sent[2].sel_psn, 0);
    rig_free(r);
}
END_TEST

/* LR-01: the answer to a hello doesn't wait for the end of a long answer to a READ. Losses in that
 * answer are repaired as between two ends that have agreed. */
START_TEST(lr_01_hello_before_read_answers)
{
    struct rig *r = rig_with("none,recovery=sr", NULL);
    struct wire_pkt read = rig_pkt(r, WIRE_READ_REQUEST, RIG_RQPSN);
    read.va = RIG_VA;
    read.rkey = r->rkey;
    read.dma_len = 8 * RIG_MTU;
    rig_rx(r, &read, NULL);
    sack(r, WIRE_SYN_ACK, RIG_RQPSN, 0);
    rig_tx(r, 0);
    ck_assert_uint_eq(r->nsent, 9);
    ck_assert(r->sent[0].selective && r->sent[0].syndrome == WIRE_SYN_ACK);
    rig_free(r);
}
END_TEST

/* ---- receiver ---- */

/* LR-02, LR-06: each early packet is in memory at once and causes a NAK with the expected PSN and
 * the received ones; when the gap closes one ACK covers all. */
START_TEST(lr_02_early_packets)
{
    struct rig *r = agreed(NULL);
    rx_write(r, 0, 0, 6, true);
    for (uint32_t k = 2; k < 6; k++)
        rx_write(r, 0, k, 6, true);
    for (uint32_t k = 2; k < 6; k++)
        ck_assert(holds(r, k, (int)k + 1));
    ck_assert_uint_eq(rig_tx(r, 0), 4);
    for (uint32_t k = 0; k < 4; k++) {
        const struct wire_pkt *p = &r->sent[k];
        ck_assert(p->selective);
        ck_assert_uint_eq(p->opcode, WIRE_ACKNOWLEDGE);
        ck_assert_uint_eq(p->syndrome, WIRE_SYN_NAK_SEQ);
        ck_assert_uint_eq(p->psn, rig_psn(RIG_RQPSN, 1));
        ck_assert_uint_eq(p->sel_psn, rig_psn(RIG_RQPSN, k + 2));
        ck_assert_uint_eq(p->icrc_off + 4 - p->bth_off, 12 + 4 + 4 + 4);
    }
    ck_assert_uint_eq(rig_count(r, ENGINE_C_tx_sack), 4);
    ck_assert_uint_eq(rig_count(r, ENGINE_C_rx_placed_early), 4);
    ck_assert_uint_eq(rig_count(r, ENGINE_C_out_of_sequence), 4);
    rig_clear(r);
    rx_write(r, 0, 1, 6, true);
    ck_assert_uint_eq(rig_tx(r, 0), 1);
    ck_assert(!r->sent[0].selective);
    ck_assert_uint_eq(r->sent[0].syndrome, WIRE_SYN_ACK);
    ck_assert_uint_eq(r->sent[0].psn, rig_psn(RIG_RQPSN, 5));
    ck_assert_uint_eq(r->sent[0].msn, 1);
    for (uint32_t k = 0; k < 6; k++)
        ck_assert(holds(r, k, (int)k + 1));
    rig_free(r);
}
END_TEST

/* LR-02: more early packets than there are records for packets with copies under way. Packets that
 * find no record when the gap closes follow as soon as the copies are done, and all are
 * acknowledged without another packet from the peer. */
START_TEST(lr_02_few_records)
{
    enum { N = 80 };
    struct rig *r = agreed(&(struct rig_opts){.records = 40});
    rx_write(r, 0, 0, N, true);
    for (uint32_t k = 2; k < N; k++)
        rx_write(r, 0, k, N, true);
    while (rig_tx(r, 0))
        ;
    rig_clear(r);
    r->late = true;
    rx_write(r, 0, 1, N, true);
    r->late = false;
    ck_assert_uint_eq(rig_tx(r, 0), 0);
    rig_copy(r, 1, 0);
    ck_assert_uint_eq(rig_tx(r, 0), 1);
    ck_assert(!r->sent[0].selective);
    ck_assert_uint_eq(r->sent[0].syndrome, WIRE_SYN_ACK);
    ck_assert_uint_eq(r->sent[0].psn, rig_psn(RIG_RQPSN, N - 1));
    for (uint32_t k = 0; k < N; k++)
        ck_assert(holds(r, k, (int)k + 1));
    rig_free(r);
}
END_TEST

/* LR-02: a packet that is too far ahead is dropped, and a repeated early packet counts once. */
START_TEST(lr_02_window)
{
    struct rig *r = agreed(NULL);
    rx_write(r, 1024, 0, 1, true);
    ck_assert_uint_eq(rig_count(r, ENGINE_C_rx_placed_early), 0);
    ck_assert(holds(r, 0, 0));
    rx_write(r, 1023, 0, 1, true);
    rx_write(r, 1023, 0, 1, true);
    ck_assert_uint_eq(rig_count(r, ENGINE_C_rx_placed_early), 1);
    rig_free(r);
}
END_TEST

/* LR-06: a SEND finds its receive by number, even if packets of the messages before it are missing.
 * LR-07: completions keep the order of the messages. */
START_TEST(lr_06_sends)
{
    struct rig *r = agreed(NULL);
    for (unsigned i = 0; i < 3; i++)
        rig_post_recv(r, 100 + i, i * 4 * RIG_MTU, 4 * RIG_MTU);
    rx_send(r, 6, 0, 1, 2); /* the third message, whole */
    rx_send(r, 0, 2, 3, 0); /* the end of the first */
    rx_send(r, 3, 1, 3, 1); /* the middle of the second */
    ck_assert(holds(r, 8, 7) && holds(r, 2, 3) && holds(r, 5, 5));
    ck_assert_uint_eq(r->nwc, 0);
    rx_send(r, 0, 0, 3, 0);
    ck_assert_uint_eq(r->nwc, 0);
    rx_send(r, 0, 1, 3, 0);
    ck_assert_uint_eq(r->nwc, 1);
    ck_assert_uint_eq(r->wc[0].wr_id, 100);
    ck_assert_uint_eq(r->wc[0].byte_len, 3 * RIG_MTU);
    rx_send(r, 3, 0, 3, 1);
    rx_send(r, 3, 2, 3, 1);
    ck_assert_uint_eq(r->nwc, 3);
    ck_assert_uint_eq(r->wc[1].wr_id, 101);
    ck_assert_uint_eq(r->wc[2].wr_id, 102);
    ck_assert_uint_eq(r->wc[2].byte_len, RIG_MTU);
    for (uint32_t k = 0; k < 3; k++)
        ck_assert(holds(r, k, (int)k + 1) && holds(r, 4 + k, (int)k + 4));
    rig_free(r);
}
END_TEST

/* CQ-05: a completion that finds no room ends the queue pair; early packets after it are not
 * executed any more. */
START_TEST(lr_06_cq_overflow)
{
    struct rig *r = agreed(NULL);
    for (unsigned i = 0; i < 3; i++)
        rig_post_recv(r, 100 + i, i * RIG_MTU, RIG_MTU);
    rx_send(r, 1, 0, 1, 1);
    struct wire_pkt p = rig_pkt(r, WIRE_SEND_ONLY, rig_psn(RIG_RQPSN, 0));
    p.selective = true;
    r->cq_room = 0;
    rig_rx(r, &p, NULL);
    ck_assert_int_eq(rig_state(r), QPS_ERR);
    struct engine_qp_info info;
    engine_qp_info(r->e, r->qp, &info);
    ck_assert_uint_eq(info.epsn, rig_psn(RIG_RQPSN, 1));
    rig_free(r);
}
END_TEST

/* LR-02: an ACK that is owed beside a selective one may not wait for its receiver's owner. */
START_TEST(lr_02_not_only_an_ack)
{
    struct rig *r = agreed(NULL);
    rx_write(r, 0, 0, 1, true);
    ck_assert(engine_tx_only_ack(r->e));
    rx_write(r, 2, 0, 1, true);
    ck_assert(!engine_tx_only_ack(r->e));
    rig_free(r);
}
END_TEST

/* LR-06: an early SEND without a receive, or too long for it, or a WRITE with a bad key, has no
 * effect and no NAK of its own: it comes again, and is judged when its turn comes. */
START_TEST(lr_06_not_placed)
{
    struct rig *r = agreed(NULL);
    rx_send(r, 1, 0, 1, 0); /* nothing posted */
    rx_write(r, 2, 0, 1, true);
    struct wire_pkt p = rig_pkt(r, WIRE_WRITE_ONLY, rig_psn(RIG_RQPSN, 3));
    p.va = RIG_VA;
    p.rkey = r->rkey ^ 1;
    p.dma_len = p.payload_len = 100;
    rig_rx(r, &p, NULL);
    ck_assert_uint_eq(rig_count(r, ENGINE_C_rx_placed_early), 1);
    rig_tx(r, 0);
    unsigned told = 0;
    for (unsigned i = 0; i < r->nsent; i++) {
        ck_assert(r->sent[i].selective);
        ck_assert_uint_eq(r->sent[i].psn, rig_psn(RIG_RQPSN, 0));
        ck_assert_uint_ne(r->sent[i].sel_psn, rig_psn(RIG_RQPSN, 1));
        ck_assert_uint_ne(r->sent[i].sel_psn, rig_psn(RIG_RQPSN, 3));
        told += r->sent[i].sel_psn == rig_psn(RIG_RQPSN, 2);
    }
    ck_assert_uint_eq(told, 1);
    ck_assert_int_eq(rig_state(r), QPS_RTS);
    rig_free(r);
}
END_TEST

/* LR-07: an early READ or ATOMIC isn't carried out; in its turn it is, once. */
START_TEST(lr_07_reads_and_atomics)
{
    struct rig *r = agreed(NULL);
    struct wire_pkt add = rig_pkt(r, WIRE_FETCH_ADD, rig_psn(RIG_RQPSN, 1));
    add.va = RIG_VA + 8 * RIG_MTU;
    add.rkey = r->rkey;
    add.swap_add = 5;
    struct wire_pkt read = rig_pkt(r, WIRE_READ_REQUEST, rig_psn(RIG_RQPSN, 2));
    read.va = RIG_VA;
    read.rkey = r->rkey;
    read.dma_len = 2 * RIG_MTU;
    rig_rx(r, &add, NULL);
    rig_rx(r, &read, NULL);
    ck_assert_uint_eq(r->mem[8 * RIG_MTU], 0);
    rig_tx(r, 0);
    for (unsigned i = 0; i < r->nsent; i++)
        ck_assert(r->sent[i].selective && r->sent[i].sel_psn == r->sent[i].psn);
    rig_clear(r);
    rx_write(r, 0, 0, 1, true);
    rig_rx(r, &add, NULL);
    rig_rx(r, &read, NULL);
    ck_assert_uint_eq(r->mem[8 * RIG_MTU], 5);
    rig_tx(r, 0);
    ck_assert_uint_eq(r->sent[r->nsent - 1].opcode, WIRE_READ_RESP_LAST);
    rig_free(r);
}
END_TEST

/* LR-07: an early packet whose copy is late holds back its dependents. If the copy fails before the
 * packet's turn, the packet counts as not received; after its turn, the packet fails. */
START_TEST(lr_07_late_and_failed_copies)
{
    struct rig *r = agreed(NULL);
    r->late = true;
    rx_write_to(r, 1, 1, 0, 1, true);
    rx_write_to(r, 0, 0, 0, 1, true);
    ck_assert_uint_eq(r->ncopies, 2);
    struct engine_qp_info info;
    engine_qp_info(r->e, r->qp, &info);
    ck_assert_uint_eq(info.epsn, rig_psn(RIG_RQPSN, 2));
    rig_tx(r, 0);
    ck_assert_uint_eq(r->nsent, 1); /* the selective NAK; no ACK before the copies are done */
    ck_assert(r->sent[0].selective);
    rig_copy(r, 2, 0);
    rig_clear(r);
    rig_tx(r, 0);
    ck_assert_uint_eq(r->sent[r->nsent - 1].psn, rig_psn(RIG_RQPSN, 1));

    rx_write_to(r, 3, 3, 0, 1, true); /* fails early: */
    rig_copy(r, 1, -14);
    rx_write_to(r, 2, 2, 0, 1, true);
    rig_copy(r, 1, 0);
    engine_qp_info(r->e, r->qp, &info);
    ck_assert_uint_eq(info.epsn, rig_psn(RIG_RQPSN, 3)); /* still missing */
    ck_assert_int_eq(rig_state(r), QPS_RTS);

    rx_write_to(r, 4, 4, 0, 1, true); /* fails after its turn: */
    rx_write_to(r, 3, 3, 0, 1, true);
    rig_clear(r);
    rig_copy(r, 1, -14);
    rig_copy(r, 1, 0);
    rig_tx(r, 0);
    const struct wire_pkt *last = &r->sent[r->nsent - 1];
    ck_assert_uint_eq(last->syndrome, WIRE_SYN_NAK_ACCESS);
    ck_assert_uint_eq(last->psn, rig_psn(RIG_RQPSN, 4));
    rig_free(r);
}
END_TEST

/* LR-02: "nothing new has come" names the missing packet, not the one before it with a late copy,
 * and doesn't cause a retransmission of the missing one. */
START_TEST(lr_02_nothing_new_beside_a_late_copy)
{
    struct rig *r = agreed(NULL);
    struct wire_pkt read = rig_pkt(r, WIRE_READ_REQUEST, rig_psn(RIG_RQPSN, 2));
    read.va = RIG_VA;
    read.rkey = r->rkey;
    read.dma_len = RIG_MTU;
    r->late = true;
    rx_write(r, 0, 0, 1, true);
    rig_rx(r, &read, NULL); /* dropped; PSN 1 hasn't come */
    ck_assert_uint_eq(rig_tx(r, 0), 1);
    ck_assert(r->sent[0].selective);
    ck_assert_uint_eq(r->sent[0].psn, rig_psn(RIG_RQPSN, 0));
    ck_assert_uint_eq(r->sent[0].sel_psn, r->sent[0].psn);
    rig_copy(r, 1, 0);
    rig_free(r);
}
END_TEST

/* LR-09: gbn-ooo keeps early packets of the WRITE under way. The wire shows no difference: one NAK
 * per gap. Retransmitted packets are then duplicates, and aren't copied again. */
START_TEST(lr_09_gbn_ooo)
{
    struct rig *r = rig_with("none,recovery=gbn-ooo", NULL);
    rx_write(r, 0, 0, 6, false);
    rx_write(r, 0, 2, 6, false);
    rx_write(r, 0, 3, 6, false);
    rx_write(r, 0, 5, 6, false);
    ck_assert(holds(r, 2, 3) && holds(r, 3, 4) && holds(r, 5, 6));
    ck_assert_uint_eq(rig_tx(r, 0), 1);
    ck_assert_uint_eq(r->sent[0].syndrome, WIRE_SYN_NAK_SEQ);
    ck_assert(!r->sent[0].selective);
    ck_assert_uint_eq(r->sent[0].psn, rig_psn(RIG_RQPSN, 1));
    rig_clear(r);
    rx_write(r, 0, 1, 6, false); /* it goes back: */
    memset(r->mem + 2 * RIG_MTU, 0x77, RIG_MTU);
    rx_write(r, 0, 2, 6, false);
    ck_assert(holds(r, 2, 0x77));
    rx_write(r, 0, 3, 6, false);
    rx_write(r, 0, 4, 6, false);
    rig_tx(r, 0);
    ck_assert_uint_eq(r->sent[r->nsent - 1].syndrome, WIRE_SYN_ACK);
    ck_assert_uint_eq(r->sent[r->nsent - 1].psn, rig_psn(RIG_RQPSN, 5));
    ck_assert_uint_eq(r->sent[r->nsent - 1].msn, 1);
    /* no guess for packets outside of that WRITE */
    rx_write(r, 6, 0, 4, false);
    struct wire_pkt p = rig_pkt(r, WIRE_WRITE_LAST, rig_psn(RIG_RQPSN, 8));
    p.payload_len = RIG_MTU;
    uint64_t before = rig_count(r, ENGINE_C_rx_placed_early);
    rig_rx(r, &p, NULL);
    ck_assert_uint_eq(rig_count(r, ENGINE_C_rx_placed_early), before);
    rig_free(r);
}
END_TEST

/* LR-15: with a reorder delay a late packet costs nothing; a lost one its NAK, after the delay. */
START_TEST(lr_15_delay)
{
    for (unsigned sr = 0; sr < 2; sr++) {
        struct rig *r = rig_with(
            sr ? "none,recovery=sr,reorder=20us" : "none,recovery=gbn-ooo,reorder=20us", NULL);
        if (sr) {
            sack(r, WIRE_SYN_ACK, RIG_RQPSN, 1);
            rig_clear(r);
        }
        rx_write(r, 0, 0, 6, sr);
        rx_write(r, 0, 2, 6, sr);
        rig_pass(r, 15 * US);
        ck_assert_uint_eq(rig_tx(r, 0), 0);
        rx_write(r, 0, 1, 6, sr);
        rig_pass(r, 100 * US);
        ck_assert_uint_eq(rig_tx(r, 0), 0);
        rx_write(r, 0, 4, 6, sr); /* 3 is lost */
        rig_pass(r, 19 * US);
        ck_assert_uint_eq(rig_tx(r, 0), 0);
        rig_pass(r, 3 * US);
        ck_assert_uint_eq(rig_tx(r, 0), 1);
        ck_assert_uint_eq(r->sent[0].selective, sr);
        ck_assert_uint_eq(r->sent[0].syndrome, WIRE_SYN_NAK_SEQ);
        ck_assert_uint_eq(r->sent[0].psn, rig_psn(RIG_RQPSN, 3));
        rig_free(r);
    }
}
END_TEST

/* LR-11: a peer that retransmits early, and more often than it announces, is still served. */
START_TEST(lr_11_early_retransmissions)
{
    struct rig *r = rig_new(NULL);
    for (unsigned i = 0; i < 12; i++) {
        for (uint32_t k = 0; k < 3; k++)
            rx_write(r, 0, k, 3, false);
        r->now += 50 * US;
    }
    rig_tx(r, 0);
    ck_assert_int_eq(rig_state(r), QPS_RTS);
    ck_assert_uint_eq(r->sent[r->nsent - 1].syndrome, WIRE_SYN_ACK);
    ck_assert_uint_eq(r->sent[r->nsent - 1].psn, rig_psn(RIG_RQPSN, 2));
    ck_assert_uint_eq(r->sent[r->nsent - 1].msn, 1);
    ck_assert_uint_eq(rig_count(r, ENGINE_C_duplicate_request), 33);
    rig_free(r);
}
END_TEST

UNIT_MAIN("core sr", lr_01_plain_peer, lr_02_hello_after_requests, lr_01_hello_before_read_answers,
          lr_02_for_another_queue_pair, lr_01_not_asked, lr_02_early_packets, lr_02_few_records,
          lr_02_window, lr_06_sends, lr_06_cq_overflow, lr_02_not_only_an_ack, lr_06_not_placed,
          lr_07_reads_and_atomics, lr_07_late_and_failed_copies,
          lr_02_nothing_new_beside_a_late_copy, lr_09_gbn_ooo, lr_15_delay,
          lr_11_early_retransmissions)
