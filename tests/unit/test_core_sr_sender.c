/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a sender of selective repeat takes for lost on a path that reorders: the test plays the
 * peer.
 */
#include "sr_rig.h"

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

/* How many must overtake the first packet of a new WRITE before it is sent again. */
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

/* LR-03: without anything known of the path, one is enough. */
START_TEST(lr_03_at_once)
{
    struct rig *r = after_write("none,recovery=sr", 64);
    rig_ack(r, tx_psn(15));
    ck_assert_uint_eq(patience(r), 1);
    rig_free(r);
}
END_TEST

/* LR-03: what had come, and the peer lacks nevertheless, as its copy failed, is sent again at once.
 */
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
    sack(r, WIRE_SYN_NAK_SEQ, tx_psn(5), tx_psn(5)); /* what came could not be kept */
    rig_tx(r, 0);
    ck_assert_str_eq(sent(r), "5");
    rig_free(r);
}
END_TEST

/* LR-15: a packet that was missing while others came, and is acknowledged without having been sent
 * again, was late: so many may overtake another one, and one more is needed. Those between count
 * only when as many have overtaken them. */
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

/* LR-15: one that comes itself behind one sent later teaches as well, if it was sent only once. */
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
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
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

/* LR-15: an answer in hardly less than a round trip may be to either; four of them in a row, with
 * no loss between them, are believed. */
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

/* LR-15: ... and if it was sent again twice, nobody knows. */
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

/* LR-15: it never learns to wait for more than `overtake`, nor than half the window; and 0 turns it
 * off. A time-out halves what it has learnt: waiting may have been the reason. */
START_TEST(lr_15_bounds)
{
    static const struct {
        const char *spec;
        unsigned window, want;
    } cases[] = {{"none,recovery=sr", 64, 15},
                 {"none,recovery=sr,overtake=3", 64, 4},
                 {"none,recovery=sr,overtake=0", 64, 1},
                 {"none,recovery=sr", 16, 9}};
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
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

UNIT_MAIN("core sr sender", lr_03_at_once, lr_03_given_up, lr_15_late, lr_15_late_and_early,
          lr_15_late_or_lost, lr_15_doubts, lr_15_sent_again_twice, lr_15_bounds)
