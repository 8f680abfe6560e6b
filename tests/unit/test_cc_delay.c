/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The algorithms that look at the round-trip time, TIMELY and Swift, in numbers.
 */
#include "cc_rig.h"

static uint64_t now;

static void begin(const char *spec)
{
    now = 10 * MS;
    start_at(spec, now);
}

/* Acknowledge one packet, after a round trip of this length. */
static void ack(uint64_t rtt)
{
    conf.type->on_ack(&cc, rtt, 1, now);
}

static void rate_is(double gbps)
{
    ck_assert_double_eq_tol((double)cc.rate / 1e9, gbps, gbps * 1e-4);
}

/* CC-24, TIMELY: above T_high the rate falls by beta of the part that is too much, below T_low it
 * rises, with any gradient. */
START_TEST(cc_24_timely_thresholds)
{
    begin("timely:paper");
    ck_assert_uint_eq(cc.rate, CC_UNLIMITED);
    ack(1000 * US); /* half of it above 500 us: minus 0.4 of the rate */
    rate_is(24);
    ack(1000 * US);
    rate_is(14.4);
    ack(49 * US);
    rate_is(14.41);
    ack(49 * US + 900); /* rising, but short */
    rate_is(14.42);
    ack(0); /* no sample */
    rate_is(14.42);
}
END_TEST

/* CC-24, TIMELY: between them the smoothed gradient decides, in units of the least round trip. */
START_TEST(cc_24_timely_gradient)
{
    begin("timely:paper");
    ack(100 * US); /* the first sample has no gradient */
    ck_assert_uint_eq(cc.rate, CC_UNLIMITED);
    ack(110 * US); /* 10 us up, 7/8 of it counts: 8.75 of 20 us, and 0.8 of that */
    rate_is(40 * .65);
    ack(110 * US); /* 1.09375 us are left of the gradient */
    rate_is(40 * .65 * (1 - .8 * 1.09375 / 20));
}
END_TEST

/* CC-24, TIMELY: after five round trips without growth the steps are five times as long. */
START_TEST(cc_24_timely_hyperactive)
{
    begin("timely:paper,start=1G");
    for (unsigned i = 1; i <= 4; i++) {
        ack((200 - i) * US);
        ck_assert_uint_eq(cc.rate, GBIT + i * 10 * MBIT);
    }
    ack(195 * US);
    ck_assert_uint_eq(cc.rate, GBIT + 90 * MBIT);
    ack(194 * US);
    ck_assert_uint_eq(cc.rate, GBIT + 140 * MBIT);
    ack(195 * US); /* it grows: cut, and the count restarts */
    ck_assert_uint_lt(cc.rate, GBIT + 140 * MBIT);
    uint64_t cut = cc.rate;
    ack(150 * US);
    ck_assert_uint_eq(cc.rate, cut + 10 * MBIT);
}
END_TEST

/* CC-24, TIMELY: no lower than the minimum, no higher than the line, where there is no limit. */
START_TEST(cc_24_timely_bounds)
{
    begin("timely:paper,min=100M");
    for (unsigned i = 0; i < 100; i++)
        ack(5000 * US);
    ck_assert_uint_eq(cc.rate, 100 * MBIT);
    for (unsigned i = 0; i < 4000; i++)
        ack(10 * US);
    ck_assert_uint_eq(cc.rate, CC_UNLIMITED);
}
END_TEST

/* CC-24, Swift: a round trip above the target takes beta of the excess, once in a round trip and
 * never more than half. */
START_TEST(cc_24_swift_cut)
{
    begin("swift:paper");
    ck_assert_uint_eq(cc.window, 1024);
    ck_assert_uint_eq(cc.rate, CC_UNLIMITED);
    ack(100 * US); /* the target is 50: 0.8 * 0.5 go */
    ck_assert_uint_eq(cc.window, 614);
    now += 99 * US;
    ack(100 * US);
    ck_assert_uint_eq(cc.window, 614);
    now += 1 * US;
    ack(100 * US);
    ck_assert_uint_eq(cc.window, 368);
    now += 10 * MS;
    ack(10 * MS);
    ck_assert_uint_eq(cc.window, 184);
}
END_TEST

/* CC-24, Swift: one packet per round trip more while it is shorter than the target. */
START_TEST(cc_24_swift_rise)
{
    begin("swift:paper");
    now += MS;
    for (unsigned i = 0; i < 5; i++, now += 10 * MS)
        ack(10 * MS);
    ck_assert_uint_eq(cc.window, 32);
    for (unsigned i = 0; i < 33; i++)
        ack(40 * US);
    ck_assert_uint_eq(cc.window, 33);
    ack(0); /* without a sample the last one holds */
    ck_assert_uint_eq(cc.window, 33);
}
END_TEST

/* CC-24, Swift: a flow with a small window may have a longer queue: 1 / sqrt(16) lies 0.15 of 3.06
 * up the range of 100 us. */
START_TEST(cc_24_swift_scaled_target)
{
    begin("swift:paper,max_cwnd=16");
    ack(54 * US);
    ck_assert_uint_eq(cc.window, 16);
    ack(56 * US);
    ck_assert_uint_eq(cc.window, 15);
    begin("swift:paper,max_cwnd=16,fs_range=0");
    ack(54 * US);
    ck_assert_uint_eq(cc.window, 15);
}
END_TEST

/* CC-24, Swift: losses take half, once in a round trip; after five time-outs in a row a thousandth
 * of a packet is left, which is a gap between packets. An ACK ends that. */
START_TEST(cc_24_swift_losses)
{
    begin("swift:paper");
    ack(40 * US);
    conf.type->on_loss(&cc, false, now);
    ck_assert_uint_eq(cc.window, 512);
    conf.type->on_loss(&cc, false, now + 39 * US);
    ck_assert_uint_eq(cc.window, 512);
    for (unsigned i = 0; i < 5; i++) {
        ck_assert_uint_gt(cc.window, 1);
        conf.type->on_loss(&cc, true, now += MS);
    }
    ck_assert_uint_eq(cc.window, 1);
    ck_assert_double_eq_tol((double)cc.rate, 1024 * 8 / .04, 200); /* a packet in 40 us / 0.001 */
    ack(40 * US);
    ck_assert_uint_eq(cc.rate, CC_UNLIMITED);
    ck_assert_uint_eq(cc.window, 1);
}
END_TEST

/* CC-24, Swift: a NAK ends a run of time-outs, because it shows that packets reach the peer. */
START_TEST(cc_24_swift_nak_between_timeouts)
{
    begin("swift:paper");
    ack(40 * US);
    for (unsigned i = 0; i < 4; i++)
        conf.type->on_loss(&cc, true, now += MS);
    ck_assert_uint_eq(cc.window, 64);
    conf.type->on_loss(&cc, false, now += MS);
    ck_assert_uint_eq(cc.window, 32);
    for (unsigned i = 0; i < 4; i++)
        conf.type->on_loss(&cc, true, now += MS);
    ck_assert_uint_eq(cc.window, 2);
    conf.type->on_loss(&cc, true, now += MS);
    ck_assert_uint_eq(cc.window, 1);
    ck_assert_double_eq_tol((double)cc.rate, 1024 * 8 / .04, 200);
}
END_TEST

/* CC-24: a peer may keep an acknowledgement for hours; no sum overflows then. */
START_TEST(cc_24_hours)
{
    begin("timely:paper");
    ack(UINT64_MAX / 2);
    rate_is(8); /* all of it is above T_high: minus beta of the rate */
    ack(1);
    rate_is(8.01);
    ack(UINT64_MAX);
    rate_is(1.602);
    begin("swift:paper");
    for (unsigned i = 1; i < 40; i++) { /* max_cut: half each time */
        now += CC_RTT_MOST;
        ack(UINT64_MAX / 2);
        ck_assert_uint_eq(cc.window, i < 10 ? 1024u >> i : 1u);
    }
    ck_assert_uint_eq(cc.rate, 1024 * 8 * 10); /* a packet in 100 ms: none waits for longer */
}
END_TEST

/* CC-24, Swift: an idle host has no information about the path. Its next packet waits 100 ms at
 * most, and the answer to it gives the real delay. */
START_TEST(cc_24_swift_host_stood_still)
{
    begin("swift:paper");
    ack(40 * US);
    for (unsigned i = 0; i < 5; i++)
        conf.type->on_loss(&cc, true, now += MS);
    ck_assert_double_eq_tol((double)cc.rate, 1024 * 8 / .04, 200);
    ack(33 * MS);
    ck_assert_uint_eq(cc.rate, 1024 * 8 * 10);
    for (unsigned i = 0; i < 5; i++)
        conf.type->on_loss(&cc, true, now += 100 * MS);
    ck_assert_uint_eq(cc.rate, 1024 * 8 * 10);
    ack(40 * US);
    ck_assert_uint_eq(cc.rate, CC_UNLIMITED);
}
END_TEST

UNIT_MAIN("cc delay", cc_24_timely_thresholds, cc_24_timely_gradient, cc_24_timely_hyperactive,
          cc_24_timely_bounds, cc_24_swift_cut, cc_24_swift_rise, cc_24_swift_scaled_target,
          cc_24_swift_losses, cc_24_swift_nak_between_timeouts, cc_24_hours,
          cc_24_swift_host_stood_still)
