/* SPDX-License-Identifier: BSD-3-Clause
 *
 * DCQCN as network adapters do it, in numbers.
 */
#include "cc_rig.h"

/* CC-15: the first CNP cuts at once; later ones only leave a mark. The next end of a rate reduce
 * period acts on it once, for any number of CNPs. */
START_TEST(cc_15_periods)
{
    start("dcqcn-mlx:ns3");
    conf.type->on_cnp(&cc, 100 * US);
    ck_assert_uint_eq(cc.rate, 20 * GBIT);
    conf.type->on_cnp(&cc, 101 * US);
    conf.type->on_cnp(&cc, 103 * US);
    ck_assert_uint_eq(rate_at(104 * US - 1), 20 * GBIT);
    ck_assert_uint_eq(rate_at(104 * US), 10 * GBIT);
    ck_assert_uint_eq(rate_at(140 * US), 10 * GBIT);
    conf.type->on_cnp(&cc, 141 * US); /* the periods go on from the first CNP: 144 */
    ck_assert_uint_eq(rate_at(144 * US - 1), 10 * GBIT);
    ck_assert_uint_eq(rate_at(144 * US), 5 * GBIT);
}
END_TEST

/* CC-15: alpha moves once per alpha period: up if a CNP came in it, down if none did. */
START_TEST(cc_15_alpha)
{
    start("dcqcn-mlx:ns3");
    conf.type->on_cnp(&cc, 0);
    ck_assert_uint_eq(cc_alpha(&cc), CC_ONE);
    cc_run(&cc, 55 * US);
    ck_assert_uint_eq(cc_alpha(&cc), CC_ONE / 16 * 15); /* the first has started it only */
    conf.type->on_cnp(&cc, 60 * US);
    conf.type->on_cnp(&cc, 70 * US);
    cc_run(&cc, 110 * US);
    ck_assert_uint_eq(cc_alpha(&cc), CC_ONE / 256 * (15 * 15 + 16));
    cc_run(&cc, 165 * US);
    ck_assert_uint_eq(cc_alpha(&cc), CC_ONE / 4096 * 15 * (15 * 15 + 16));
}
END_TEST

/* CC-15, CC-16: where both periods end at once, alpha moves before it is used, as in the ns-3
 * model. */
START_TEST(cc_15_alpha_before_cut)
{
    start("dcqcn-mlx:ns3,alpha_timer=4us");
    conf.type->on_cnp(&cc, 0);
    ck_assert_uint_eq(rate_at(4 * US), 20 * GBIT); /* alpha is 15/16 now */
    conf.type->on_cnp(&cc, 5 * US);
    ck_assert_uint_eq(rate_at(8 * US), 20 * GBIT / 512 * (512 - (15 * 15 + 16)));
}
END_TEST

/* CC-15: below stage F fast recovery, at F additive, above it hyper increase, the same each time.
 */
START_TEST(cc_15_stages)
{
    static const uint64_t target[] = {20000, 20000, 20000, 20000, 20000, 20005, 20055, 20105};
    uint64_t rate = 10000000000;
    start("dcqcn-mlx:ns3,clamp=1");
    conf.type->on_cnp(&cc, 0);
    conf.type->on_cnp(&cc, 1 * US);
    ck_assert_uint_eq(rate_at(4 * US), rate);
    for (unsigned i = 0; i < 8; i++) {
        rate = (rate + target[i] * MBIT + 1) / 2;
        ck_assert_uint_eq(rate_at(4 * US + (i + 1) * 1500 * US), rate);
        ck_assert_uint_eq(cc_target(&cc), target[i] * MBIT);
    }
}
END_TEST

/* CC-14: an adapter's target falls only after the timer has raised the rate. */
START_TEST(cc_14_target)
{
    start("dcqcn-mlx:ns3");
    conf.type->on_cnp(&cc, 0);
    conf.type->on_cnp(&cc, 1 * US);
    cc_run(&cc, 4 * US);
    ck_assert_uint_eq(cc_target(&cc), 40 * GBIT);
    cc_run(&cc, 1600 * US); /* one increase: 25 Gb/s */
    conf.type->on_cnp(&cc, 1601 * US);
    cc_run(&cc, 1604 * US);
    ck_assert_uint_eq(cc_target(&cc), 25 * GBIT);
}
END_TEST

/* CC-20: with slow_restart a loss halves the rate, and the increase restarts. */
START_TEST(cc_20_slow_restart)
{
    start("dcqcn-mlx:connectx");
    ck_assert(!conf.type->on_loss(&cc, true, 100 * US));
    ck_assert_uint_eq(cc.rate, CC_UNLIMITED);
    start("dcqcn-mlx:connectx,slow_restart=1");
    ck_assert(conf.type->on_loss(&cc, false, 100 * US));
    ck_assert_uint_eq(cc.rate, 20 * GBIT);
    ck_assert_uint_eq(rate_at(400 * US - 1), 20 * GBIT);
    ck_assert_uint_eq(rate_at(400 * US), 30 * GBIT);
}
END_TEST

/* CC-18, CC-22: back at line rate no work is left; a CNP long after starts again. */
START_TEST(cc_22_rest)
{
    start("dcqcn-mlx:connectx");
    for (uint64_t t = 0; t < 100; t++)
        conf.type->on_cnp(&cc, t * 4 * US);
    ck_assert_uint_eq(cc.rate, 1 * MBIT);
    ck_assert_uint_eq(rate_at(20000 * MS), CC_UNLIMITED);
    ck_assert_uint_eq(cc_alpha(&cc), 0);
    ck_assert_uint_eq(cc.due, CC_NEVER);
    conf.type->on_cnp(&cc, 30000 * MS);
    ck_assert_uint_lt(cc.rate, 20100 * MBIT);
    ck_assert_uint_ge(cc.rate, 20 * GBIT);
}
END_TEST

UNIT_MAIN("cc dcqcn-mlx", cc_15_periods, cc_15_alpha, cc_15_alpha_before_cut, cc_15_stages,
          cc_14_target, cc_20_slow_restart, cc_22_rest)
