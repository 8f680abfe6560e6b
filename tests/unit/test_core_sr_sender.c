/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A sender of selective repeat: its packets, its retransmissions, and its detection of loss on a
 * path that reorders. The test plays the peer.
 */
#include "sr_rig.h"

/* ---- packets and recovery ---- */

/* LR-06: the contents of the packets. */
START_TEST(lr_06_sent_packets)
{
    struct rig *r = agreed(NULL);
    rig_post(r, WR_SEND, 1, RIG_MTU, WR_F_SIGNALED);
    rig_post(r, WR_RDMA_WRITE, 2, 3 * RIG_MTU, WR_F_SIGNALED);
    rig_post(r, WR_RDMA_WRITE_WITH_IMM, 3, 2 * RIG_MTU, WR_F_SIGNALED);
    rig_post(r, WR_SEND, 4, 2 * RIG_MTU, WR_F_SIGNALED);
    rig_post(r, WR_RDMA_READ, 5, RIG_MTU, WR_F_SIGNALED);
    ck_assert_uint_eq(rig_tx(r, 0), 9);
    static const struct {
        unsigned opcode;
        bool selective;
        uint32_t va, dma_len, recv, index;
    } want[] = {
        {WIRE_SEND_ONLY, true, 0, 0, 0, 0},
        {WIRE_WRITE_FIRST, false, 0, 3 * RIG_MTU, 0, 0},
        {WIRE_WRITE_MIDDLE, true, RIG_MTU, 2 * RIG_MTU, 0, 0},
        {WIRE_WRITE_LAST, true, 2 * RIG_MTU, RIG_MTU, 0, 0},
        {WIRE_WRITE_FIRST, false, 0, 2 * RIG_MTU, 0, 0},
        {WIRE_WRITE_LAST_IMM, true, RIG_MTU, RIG_MTU, 0, 0},
        {WIRE_SEND_FIRST, true, 0, 0, 2, 0}, /* the WRITE with immediate was number 1 */
        {WIRE_SEND_LAST, true, 0, 0, 2, 1},
        {WIRE_READ_REQUEST, false, 0, RIG_MTU, 0, 0},
    };
    for (unsigned i = 0; i < 9; i++) {
        const struct wire_pkt *p = &r->sent[i];
        ck_assert_uint_eq(p->opcode, want[i].opcode);
        ck_assert_uint_eq(p->selective, want[i].selective);
        ck_assert_uint_eq(p->sel_recv, want[i].recv);
        ck_assert_uint_eq(p->sel_index, want[i].index);
        ck_assert_uint_eq(p->dma_len, want[i].dma_len);
        if (p->dma_len)
            ck_assert_uint_eq(p->va, 0x7000000 + want[i].va);
    }
    rig_free(r);
}
END_TEST

/* LR-03: the expected packet first, then each one below the highest that has come, once; new ones
 * after that; nothing twice until the round is over. */
START_TEST(lr_03_recovery)
{
    struct rig *r = agreed(&(struct rig_opts){.window = 16});
    rig_post(r, WR_RDMA_WRITE, 1, 30 * RIG_MTU, WR_F_SIGNALED);
    ck_assert_uint_eq(rig_tx(r, 0), 16);
    rig_clear(r);
    sack(r, WIRE_SYN_NAK_SEQ, tx_psn(2), tx_psn(4)); /* 0, 1, 4 have come: 2 and 3 are lost */
    rig_tx(r, 0);
    ck_assert_str_eq(sent(r), "2 3 16 17");
    rig_clear(r);
    sack(r, WIRE_SYN_NAK_SEQ, tx_psn(2), tx_psn(5)); /* nothing new below 5 */
    rig_tx(r, 0);
    ck_assert_str_eq(sent(r), "");
    sack(r, WIRE_SYN_NAK_SEQ, tx_psn(2), tx_psn(8)); /* 6 and 7 are lost as well */
    sack(r, WIRE_SYN_NAK_SEQ, tx_psn(2), tx_psn(9));
    rig_tx(r, 0);
    ck_assert_str_eq(sent(r), "6 7");
    rig_clear(r);
    rig_ack(r, tx_psn(5)); /* 2 and 3 have come */
    rig_tx(r, 0);
    ck_assert_str_eq(sent(r), "18 19 20 21");
    rig_clear(r);
    rig_ack(r, tx_psn(15)); /* all that was sent when it began */
    sack(r, WIRE_SYN_NAK_SEQ, tx_psn(17), tx_psn(20));
    rig_tx(r, 0);
    ck_assert_str_eq(sent(r), "17 18 19 22 23 24 25 26 27 28 29");
    rig_clear(r);
    rig_ack(r, tx_psn(29));
    ck_assert_uint_eq(r->nwc, 1);
    ck_assert_int_eq(r->wc[0].status, WC_SUCCESS);
    ck_assert_uint_eq(rig_count(r, ENGINE_C_tx_retransmit), 7);
    rig_free(r);
}
END_TEST

/* LR-03: a time-out retransmits the missing packets, with AckReq. */
START_TEST(lr_03_timeout)
{
    struct rig *r = agreed(NULL);
    rig_post(r, WR_RDMA_WRITE, 1, 8 * RIG_MTU, WR_F_SIGNALED);
    rig_tx(r, 0);
    rig_clear(r);
    sack(r, WIRE_SYN_NAK_SEQ, tx_psn(0), tx_psn(2));
    sack(r, WIRE_SYN_NAK_SEQ, tx_psn(0), tx_psn(3));
    rig_tx(r, 0);
    ck_assert_str_eq(sent(r), "0 1");
    ck_assert(r->sent[1].ackreq);
    rig_clear(r);
    rig_pass(r, 2 * RIG_T); /* lost again */
    rig_tx(r, 0);
    ck_assert_str_eq(sent(r), "0 1 4 5 6 7");
    ck_assert(r->sent[5].ackreq);
    ck_assert_uint_eq(rig_count(r, ENGINE_C_local_ack_timeout_err), 1);
    rig_free(r);
}
END_TEST

/* LR-04: with a measured round trip the time-outs are rto_low and rto_high; they cost a retry only
 * once in T, so a peer that is gone fails the queue pair not before T * (retries + 1). */
START_TEST(lr_04_timeouts)
{
    static const struct {
        unsigned packets;
        uint64_t rto;
    } cases[] = {{1, 100 * US}, {2, 100 * US}, {3, 320 * US}, {8, 320 * US}};
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rig *r = agreed(NULL);
        rig_post(r, WR_RDMA_WRITE, 1, RIG_MTU, WR_F_SIGNALED);
        rig_tx(r, 0);
        rig_pass(r, 10 * US);
        rig_ack(r, tx_psn(0));
        rig_clear(r);
        rig_post(r, WR_RDMA_WRITE, 1, cases[i].packets * RIG_MTU, WR_F_SIGNALED);
        rig_tx(r, 0);
        rig_pass(r, cases[i].rto - 1);
        ck_assert_uint_eq(rig_count(r, ENGINE_C_local_ack_timeout_err), 0);
        rig_pass(r, 2 * US);
        ck_assert_uint_eq(rig_count(r, ENGINE_C_local_ack_timeout_err), 1);
        uint64_t begin = r->now, gone = 0;
        while (rig_state(r) != QPS_ERR && r->now < begin + 40 * RIG_T) {
            rig_clear(r);
            rig_tx(r, 0);
            rig_pass(r, 20 * US);
            if (rig_state(r) == QPS_ERR)
                gone = r->now - begin;
        }
        ck_assert_uint_gt(gone, 3 * RIG_T); /* retry_cnt 3 */
        ck_assert_uint_lt(gone, 8 * RIG_T);
        rig_free(r);
    }
}
END_TEST

/* LR-04 with REQ-24: while the answer to a READ is missing, retransmissions are acknowledged once
 * in each round trip. That also costs a retry once in T, so a peer that never answers the READ
 * still fails the queue pair. */
START_TEST(lr_04_implied_naks)
{
    struct rig *r = agreed(NULL);
    rig_post(r, WR_SEND, 1, RIG_MTU, WR_F_SIGNALED);
    rig_tx(r, 0);
    rig_pass(r, 10 * US);
    rig_ack(r, tx_psn(0));
    rig_post(r, WR_RDMA_READ, 2, RIG_MTU, WR_F_SIGNALED);
    rig_post(r, WR_SEND, 3, RIG_MTU, WR_F_SIGNALED);
    rig_tx(r, 0);
    uint64_t begin = r->now;
    while (rig_state(r) == QPS_RTS && r->now < begin + 40 * RIG_T) {
        rig_pass(r, 20 * US);
        rig_ack(r, tx_psn(2));
        rig_clear(r);
        rig_tx(r, 0);
    }
    ck_assert_uint_gt(rig_count(r, ENGINE_C_implied_nak_seq_err), 100);
    ck_assert_uint_gt(r->now - begin, 3 * RIG_T); /* retry_cnt 3 */
    ck_assert_uint_lt(r->now - begin, 8 * RIG_T);
    rig_free(r);
}
END_TEST

/* LR-04: a time-out that has become shorter counts at once, however far away the timer was that was
 * set for the longer one: here before anything was measured. */
START_TEST(lr_04_sooner)
{
    struct rig *r = agreed(NULL);
    rig_post(r, WR_RDMA_WRITE, 1, RIG_MTU, WR_F_SIGNALED);
    rig_tx(r, 0);
    rig_post(r, WR_RDMA_WRITE, 1, 8 * RIG_MTU, WR_F_SIGNALED);
    rig_tx(r, 0);
    rig_pass(r, 10 * US);
    rig_ack(r, tx_psn(0)); /* eight packets are left */
    rig_pass(r, 320 * US - 1);
    ck_assert_uint_eq(rig_count(r, ENGINE_C_local_ack_timeout_err), 0);
    rig_pass(r, 2 * US);
    ck_assert_uint_eq(rig_count(r, ENGINE_C_local_ack_timeout_err), 1);
    rig_free(r);
}
END_TEST

/* LR-04: a selective NAK measures a round trip as well as an ACK: when the first packets are lost,
 * and lost again, the sender doesn't wait for T. */
START_TEST(lr_04_measured_by_naks)
{
    struct rig *r = agreed(NULL);
    rig_post(r, WR_RDMA_WRITE, 1, 8 * RIG_MTU, WR_F_SIGNALED);
    rig_tx(r, 0);
    rig_pass(r, 10 * US);
    sack(r, WIRE_SYN_NAK_SEQ, tx_psn(0), tx_psn(1));
    rig_clear(r);
    rig_tx(r, 0);
    ck_assert_str_eq(sent(r), "0");
    rig_pass(r, 310 * US - 1); /* the timer has run since they were sent */
    ck_assert_uint_eq(rig_count(r, ENGINE_C_local_ack_timeout_err), 0);
    rig_pass(r, 2 * US);
    ck_assert_uint_eq(rig_count(r, ENGINE_C_local_ack_timeout_err), 1);
    rig_free(r);
}
END_TEST

/* LR-04: on a fresh queue pair nothing has been measured or agreed. Its time-outs are still rto_low
 * and rto_high, with a hello each until the peer counts as plain; and retries are for T. */
START_TEST(lr_04_fresh)
{
    for (unsigned n = 1; n <= 4; n += 3) {
        struct rig *r = rig_with("none,recovery=sr", NULL);
        uint64_t least = (n == 1 ? 100 : 320) * US;
        rig_post(r, WR_RDMA_WRITE, 1, n * RIG_MTU, WR_F_SIGNALED);
        rig_tx(r, 0);
        rig_pass(r, least - 1);
        ck_assert_uint_eq(rig_count(r, ENGINE_C_local_ack_timeout_err), 0);
        rig_clear(r);
        rig_pass(r, 2 * US);
        ck_assert_uint_eq(rig_count(r, ENGINE_C_local_ack_timeout_err), 1);
        ck_assert_uint_eq(rig_tx(r, 0), n + 1); /* and a hello */
        uint64_t begin = r->now, gone = 0;
        while (!gone && r->now < begin + 40 * RIG_T) {
            rig_clear(r);
            rig_tx(r, 0);
            rig_pass(r, 20 * US);
            if (rig_state(r) == QPS_ERR)
                gone = r->now - begin;
        }
        ck_assert_uint_gt(gone, 3 * RIG_T); /* retry_cnt 3 */
        ck_assert_uint_lt(gone, 8 * RIG_T);
        rig_free(r);
    }
}
END_TEST

static void lone_loss_takes_t(struct rig *r)
{
    rig_post(r, WR_RDMA_WRITE, 3, RIG_MTU, WR_F_SIGNALED);
    rig_tx(r, 0);
    rig_pass(r, RIG_T - 1);
    ck_assert_uint_eq(rig_count(r, ENGINE_C_local_ack_timeout_err), 0);
    rig_pass(r, RIG_T / 8 + 1);
    ck_assert_uint_eq(rig_count(r, ENGINE_C_local_ack_timeout_err), 1);
    rig_free(r);
}

/* LR-04: a peer that has left three hellos unanswered is a plain one: T, as without `sr`. */
START_TEST(lr_04_plain_peer)
{
    struct rig *r = rig_with("none,recovery=sr", NULL);
    for (unsigned i = 0; i < 3; i++) {
        rig_post(r, WR_RDMA_WRITE, i, RIG_MTU, WR_F_SIGNALED);
        rig_tx(r, 0);
        rig_pass(r, 10 * US);
        rig_ack(r, tx_psn(i));
        rig_pass(r, 1000 * US);
    }
    lone_loss_takes_t(r);
    lone_loss_takes_t(rig_with("none,recovery=gbn-ooo", NULL)); /* it sends no hello */
}
END_TEST

/* LR-03: packets sent before the agreement carry no address. If the receiver has kept none of them,
 * all are retransmitted, once. */
START_TEST(lr_03_sent_before_agreement)
{
    struct rig *r = rig_with("none,recovery=sr", NULL);
    rig_post(r, WR_RDMA_WRITE, 1, 4 * RIG_MTU, WR_F_SIGNALED);
    rig_post(r, WR_SEND, 1, 2 * RIG_MTU, WR_F_SIGNALED);
    rig_tx(r, 0);
    sack(r, WIRE_SYN_ACK, RIG_RQPSN, 1); /* the answer to its hello */
    rig_post(r, WR_RDMA_WRITE, 1, 2 * RIG_MTU, WR_F_SIGNALED);
    rig_tx(r, 0); /* 6 and 7 say it */
    rig_clear(r);
    sack(r, WIRE_SYN_NAK_SEQ, tx_psn(0), tx_psn(0));
    rig_tx(r, 0);
    ck_assert_str_eq(sent(r), "0 1 2 3 4 5");
    for (unsigned i = 0; i < r->nsent; i++)
        ck_assert(r->sent[i].selective || r->sent[i].opcode == WIRE_WRITE_FIRST);
    rig_clear(r);
    sack(r, WIRE_SYN_NAK_SEQ, tx_psn(1), tx_psn(1));
    ck_assert_uint_eq(rig_tx(r, 0), 0);
    ck_assert_uint_eq(rig_count(r, ENGINE_C_local_ack_timeout_err), 0);
    rig_free(r);
}
END_TEST

/* LR-10 is off by default. When on, the first time-out comes after T. Later ones follow the
 * measured round trip: at least 200 us, and twice as long each time. */
START_TEST(lr_10_adaptive)
{
    for (unsigned on = 0; on < 2; on++) {
        struct rig *r = rig_with(on ? "none,adaptive=1" : "none", NULL);
        rig_post(r, WR_RDMA_WRITE, 1, RIG_MTU, WR_F_SIGNALED);
        rig_tx(r, 0);
        rig_pass(r, 10 * US);
        rig_ack(r, tx_psn(0));
        rig_post(r, WR_RDMA_WRITE, 2, RIG_MTU, WR_F_SIGNALED);
        rig_tx(r, 0);
        uint64_t last = r->now;
        const uint64_t want[2][3] = {{RIG_T, RIG_T, RIG_T}, {RIG_T, 200 * US, 400 * US}};
        for (unsigned i = 0; i < 3; i++) {
            while (rig_count(r, ENGINE_C_local_ack_timeout_err) == i)
                rig_pass(r, 2 * US);
            ck_assert_uint_ge(r->now - last, want[on][i]);
            ck_assert_uint_le(r->now - last, want[on][i] + want[on][i] / 8 + 5 * US);
            last = r->now;
            rig_tx(r, 0);
        }
        ck_assert_uint_eq(rig_count(r, ENGINE_C_roce_adp_retrans), on ? 3 : 0);
        ck_assert_uint_eq(rig_count(r, ENGINE_C_roce_adp_retrans_to), on ? 2 : 0);
        rig_free(r);
    }
}
END_TEST

/* LR-12: two round trips of silence, and the last packet is repeated, once, and asks for an answer;
 * it costs no retry, and the ACK timer fires when it would have. Nothing of the kind for a READ,
 * nor unless asked for. */
START_TEST(lr_12_probe)
{
    static const struct {
        const char *spec;
        enum wr_opcode opcode;
        unsigned probes;
    } cases[] = {
        {"none", WR_RDMA_WRITE, 0},
        {"none,probe=1", WR_RDMA_WRITE, 1},
        {"none,probe=1", WR_SEND, 1},
        {"none,probe=1", WR_RDMA_READ, 0},
    };
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rig *r = rig_with(cases[i].spec, NULL);
        rig_post(r, WR_RDMA_WRITE, 1, RIG_MTU, WR_F_SIGNALED);
        rig_tx(r, 0);
        rig_pass(r, 10 * US);
        rig_ack(r, tx_psn(0));
        rig_post(r, cases[i].opcode, 2, 4 * RIG_MTU, WR_F_SIGNALED);
        rig_tx(r, 0);
        rig_clear(r);
        uint64_t begin = r->now;
        rig_pass(r, 20 * US - 1);
        ck_assert_uint_eq(rig_tx(r, 0), 0);
        rig_pass(r, 3 * US);
        ck_assert_uint_eq(rig_tx(r, 0), cases[i].probes);
        if (cases[i].probes) {
            ck_assert_str_eq(sent(r), "4");
            ck_assert(r->sent[0].ackreq);
        }
        rig_pass(r, RIG_T / 2);
        ck_assert_uint_eq(rig_tx(r, 0), 0);
        ck_assert_uint_eq(rig_count(r, ENGINE_C_tx_probe), cases[i].probes);
        ck_assert_uint_eq(rig_count(r, ENGINE_C_local_ack_timeout_err), 0);
        rig_pass(r, begin + RIG_T + RIG_T / 8 - r->now);
        ck_assert_uint_eq(rig_count(r, ENGINE_C_local_ack_timeout_err), 1);
        rig_free(r);
    }
}
END_TEST

/* LR-03 with RNR-05: while the peer has no receive nothing is sent; then the missing packets
 * are. */
START_TEST(lr_03_rnr)
{
    struct rig *r = agreed(NULL);
    for (unsigned i = 0; i < 4; i++)
        rig_post(r, WR_SEND, i, RIG_MTU, WR_F_SIGNALED);
    rig_tx(r, 0);
    rig_clear(r);
    rig_aeth(r, tx_psn(1), WIRE_SYN_RNR | 1, 1);
    sack(r, WIRE_SYN_NAK_SEQ, tx_psn(1), tx_psn(2));
    ck_assert_uint_eq(rig_tx(r, 0), 0);
    rig_pass(r, 20 * US);
    rig_tx(r, 0);
    ck_assert_str_eq(sent(r), "1 3");
    rig_free(r);
}
END_TEST

/* LR-03: a selective NAK that names the expected packet itself says that nothing new has come: that
 * packet goes again, and counts as missing until it is acknowledged. */
START_TEST(lr_03_nothing_new)
{
    struct rig *r = agreed(NULL);
    rig_post(r, WR_RDMA_WRITE, 1, 4 * RIG_MTU, WR_F_SIGNALED);
    rig_tx(r, 0);
    rig_clear(r);
    sack(r, WIRE_SYN_NAK_SEQ, tx_psn(1), tx_psn(1));
    rig_tx(r, 0);
    ck_assert_str_eq(sent(r), "1");
    rig_clear(r);
    rig_pass(r, 2 * RIG_T);
    rig_tx(r, 0);
    ck_assert_str_eq(sent(r), "1 2 3");
    rig_free(r);
}
END_TEST

/* LR-03: rubbish in a selective NAK does nothing: PSNs never sent, or long acknowledged. */
START_TEST(lr_03_rubbish)
{
    struct rig *r = agreed(NULL);
    rig_post(r, WR_RDMA_WRITE, 1, 8 * RIG_MTU, WR_F_SIGNALED);
    rig_tx(r, 0);
    rig_clear(r);
    sack(r, WIRE_SYN_NAK_SEQ, tx_psn(20), tx_psn(21));
    sack(r, WIRE_SYN_NAK_SEQ, tx_psn(0x7FFFFF), tx_psn(3));
    rig_ack(r, tx_psn(3));
    sack(r, WIRE_SYN_NAK_SEQ, tx_psn(1), tx_psn(2));
    ck_assert_uint_eq(rig_tx(r, 0), 0);
    ck_assert_int_eq(rig_state(r), QPS_RTS);
    rig_ack(r, tx_psn(7));
    ck_assert_uint_eq(r->nwc, 1);
    rig_free(r);
}
END_TEST

/* LR-15: reordering alone: with selective repeat each early packet costs a NAK and at most one
 * packet sent again, with go-back-N all that is in flight. */
START_TEST(lr_15_reordering)
{
    struct rig *r = agreed(NULL);
    rig_post(r, WR_RDMA_WRITE, 1, 8 * RIG_MTU, WR_F_SIGNALED);
    rig_tx(r, 0);
    rig_clear(r);
    sack(r, WIRE_SYN_NAK_SEQ, tx_psn(2), tx_psn(3)); /* 3 overtook 2 */
    rig_ack(r, tx_psn(7));                           /* before anything was sent again */
    ck_assert_uint_eq(rig_tx(r, 0), 0);
    ck_assert_uint_eq(r->nwc, 1);
    rig_free(r);
}
END_TEST

/* ---- paths that reorder ---- */

#define RTT (10 * US)

#define FIRST 16u /* packets of the first WRITE */

/* A rig that has sent the packets 0..15 of a WRITE, a round trip ago. */
static struct rig *after_write(const char *spec, unsigned window)
{
    struct rig_opts o = {.window = window};
    struct rig *r = rig_with(spec, &o);
    sack(r, WIRE_SYN_ACK, RIG_RQPSN, 0);
    rig_post(r, WR_RDMA_WRITE, 1, FIRST * RIG_MTU, WR_F_SIGNALED);
    rig_tx(r, 0);
    rig_clear(r);
    r->now += RTT;
    return r;
}

/* The number of packets that must overtake the first packet of a new WRITE before it is sent again.
 */
static unsigned patience(struct rig *r)
{
    const uint32_t n = FIRST;
    rig_post(r, WR_RDMA_WRITE, 2, 30 * RIG_MTU, WR_F_SIGNALED);
    rig_tx(r, 0);
    rig_clear(r);
    for (unsigned k = 1; k < 30; k++) {
        sack(r, WIRE_SYN_NAK_SEQ, tx_psn(n), tx_psn(n + k));
        if (rig_tx(r, 0)) {
            ck_assert_uint_eq(r->sent[0].psn, tx_psn(n));
            return k;
        }
    }
    return 0;
}

/* LR-03: on an unknown path a single selective NAK starts recovery. */
START_TEST(lr_03_at_once)
{
    struct rig *r = after_write("none,recovery=sr", 64);
    rig_ack(r, tx_psn(15));
    ck_assert_uint_eq(patience(r), 1);
    rig_free(r);
}
END_TEST

/* LR-03: a packet that had arrived, but is missing again because its copy failed, is retransmitted
 * at once. */
START_TEST(lr_03_given_up)
{
    struct rig *r = after_write("none,recovery=sr", 64);
    sack(r, WIRE_SYN_NAK_SEQ, tx_psn(0), tx_psn(2));
    rig_tx(r, 0);
    ck_assert_str_eq(sent(r), "0 1");
    rig_clear(r);
    r->now += RTT;
    sack(r, WIRE_SYN_NAK_SEQ, tx_psn(2), tx_psn(5));
    rig_tx(r, 0);
    ck_assert_str_eq(sent(r), "2 3 4");
    rig_clear(r);
    r->now += RTT;
    sack(r, WIRE_SYN_NAK_SEQ, tx_psn(5), tx_psn(5)); /* the received packet could not be kept */
    rig_tx(r, 0);
    ck_assert_str_eq(sent(r), "5");
    rig_free(r);
}
END_TEST

/* LR-15: a packet was missing while later ones arrived, and is then acknowledged without
 * retransmission: it was only late. So it is normal that as many packets overtake one as overtook
 * this one. From now on a packet counts as lost only when one more than that have overtaken it.
 * This holds for packets in the middle of a gap, too. */
START_TEST(lr_15_late)
{
    struct rig *r = after_write("none,recovery=sr", 64);
    sack(r, WIRE_SYN_NAK_SEQ, tx_psn(0), tx_psn(1));
    sack(r, WIRE_SYN_NAK_SEQ, tx_psn(0), tx_psn(3));
    rig_ack(r, tx_psn(15));
    ck_assert_uint_eq(patience(r), 4);
    ck_assert_str_eq(sent(r), "16"); /* 17, 18 and 19 have come */
    rig_clear(r);
    sack(r, WIRE_SYN_NAK_SEQ, tx_psn(16), tx_psn(24)); /* 21 to 23 haven't */
    rig_tx(r, 0);
    ck_assert_str_eq(sent(r), ""); /* at most three have overtaken each */
    sack(r, WIRE_SYN_NAK_SEQ, tx_psn(16), tx_psn(26));
    rig_tx(r, 0);
    ck_assert_str_eq(sent(r), "21 22");
    rig_free(r);
}
END_TEST

/* LR-15: a packet received after one sent later also counts, if it was sent only once. */
START_TEST(lr_15_late_and_early)
{
    for (int again = 0; again < 2; again++) {
        struct rig *r = after_write("none,recovery=sr", 64);
        sack(r, WIRE_SYN_NAK_SEQ, tx_psn(0), tx_psn(5));
        if (again)
            ck_assert_uint_eq(rig_tx(r, 0), 5);          /* 0 to 4 */
        sack(r, WIRE_SYN_NAK_SEQ, tx_psn(0), tx_psn(2)); /* up to three were faster */
        r->now += 2 * RTT;
        if (!again) { /* 0 itself is lost, and teaches nothing */
            rig_tx(r, 0);
            r->now += RTT;
        }
        rig_ack(r, tx_psn(15));
        ck_assert_uint_eq(patience(r), again ? 1 : 4);
        rig_free(r);
    }
}
END_TEST

/* LR-15: one sent again was only late if it is acknowledged sooner than any round trip takes. */
START_TEST(lr_15_late_or_lost)
{
    static const struct {
        uint64_t after;
        unsigned want;
    } cases[] = {{RTT / 10, 5}, {RTT * 4 / 10, 5}, {RTT * 8 / 10, 1}, {RTT, 1}, {RTT * 3, 1}};
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rig *r = after_write("none,recovery=sr", 64);
        sack(r, WIRE_SYN_NAK_SEQ, tx_psn(0), tx_psn(4));
        rig_tx(r, 0);
        ck_assert_str_eq(sent(r), "0 1 2 3");
        r->now += cases[i].after;
        rig_ack(r, tx_psn(15));
        ck_assert_uint_eq(patience(r), cases[i].want);
        rig_free(r);
    }
}
END_TEST

/* LR-15: an answer after nearly a round trip may be to either transmission; four of them in a row,
 * without a loss between them, count. */
START_TEST(lr_15_doubts)
{
    for (int lost = -1; lost < 4; lost++) {
        struct rig *r = after_write("none,recovery=sr", 64);
        for (int i = 0; i < 4; i++) {
            sack(r, WIRE_SYN_NAK_SEQ, tx_psn(2 * (uint32_t)i), tx_psn(2 * (uint32_t)i + 1));
            rig_clear(r);
            ck_assert_uint_eq(rig_tx(r, 0), 1);
            r->now += i == lost ? RTT : RTT * 7 / 10;
            rig_ack(r, tx_psn(2 * (uint32_t)i + 1));
        }
        rig_ack(r, tx_psn(15));
        ck_assert_uint_eq(patience(r), lost < 0 ? 2 : 1);
        rig_free(r);
    }
}
END_TEST

/* LR-15: ... and if it was retransmitted twice, the measurement is ambiguous. */
START_TEST(lr_15_sent_again_twice)
{
    struct rig *r = after_write("none,recovery=sr", 64);
    sack(r, WIRE_SYN_NAK_SEQ, tx_psn(0), tx_psn(4));
    rig_tx(r, 0);
    rig_pass(r, 2 * RIG_T);
    rig_clear(r);
    rig_tx(r, 0);
    ck_assert_uint_eq(r->sent[0].psn, tx_psn(0));
    r->now += RTT / 10;
    rig_ack(r, tx_psn(15));
    ck_assert_uint_eq(patience(r), 1);
    rig_free(r);
}
END_TEST

/* LR-15: the learned distance is at most `overtake` and half the window; 0 turns it off. A time-out
 * halves it: waiting may have been the cause. */
START_TEST(lr_15_bounds)
{
    static const struct {
        const char *spec;
        unsigned window, want;
    } cases[] = {{"none,recovery=sr", 64, 15},
                 {"none,recovery=sr,overtake=3", 64, 4},
                 {"none,recovery=sr,overtake=0", 64, 1},
                 {"none,recovery=sr", 16, 9}};
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rig *r = after_write(cases[i].spec, cases[i].window);
        sack(r, WIRE_SYN_NAK_SEQ, tx_psn(0), tx_psn(14));
        rig_ack(r, tx_psn(15));
        ck_assert_uint_eq(patience(r), cases[i].want);
        rig_free(r);
    }
    struct rig *r = after_write("none,recovery=sr", 64);
    sack(r, WIRE_SYN_NAK_SEQ, tx_psn(0), tx_psn(6));
    rig_ack(r, tx_psn(6)); /* learnt: 6 */
    rig_pass(r, 2 * RIG_T);
    ck_assert_uint_eq(rig_count(r, ENGINE_C_local_ack_timeout_err), 1);
    rig_tx(r, 0);
    rig_ack(r, tx_psn(15));
    ck_assert_uint_eq(patience(r), 6 / 2 + 1);
    rig_free(r);
}
END_TEST

UNIT_MAIN("core sr sender", lr_06_sent_packets, lr_03_recovery, lr_03_timeout, lr_04_timeouts,
          lr_04_implied_naks, lr_04_sooner, lr_04_measured_by_naks, lr_04_fresh, lr_04_plain_peer,
          lr_03_sent_before_agreement, lr_10_adaptive, lr_12_probe, lr_03_rnr, lr_03_nothing_new,
          lr_03_rubbish, lr_15_reordering, lr_03_at_once, lr_03_given_up, lr_15_late,
          lr_15_late_and_early, lr_15_late_or_lost, lr_15_doubts, lr_15_sent_again_twice,
          lr_15_bounds)
