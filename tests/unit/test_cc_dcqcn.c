/* SPDX-License-Identifier: BSD-3-Clause
 *
 * DCQCN's reaction point, in numbers.
 */
#include <stdio.h>
#include <string.h>

#include "cc_rig.h"

static void cnp(uint64_t now)
{
    conf.type->on_cnp(&cc, now);
}

/* CC-17: the rate after one CNP, and after each of five events of the timer. */
START_TEST(cc_17_one_cnp)
{
    static const uint64_t want[] = {20000, 30000, 35000, 37500, 38750, 39375};
    start("dcqcn,timer=300us,reduce=0,bytes=0");
    cnp(1000);
    for (unsigned i = 0; i < 6; i++)
        ck_assert_uint_eq(rate_at(1000 + i * 300 * US), want[i] * MBIT);
}
END_TEST

/* CC-12, CC-17: the counts before an event decide, so that five events are fast recovery and the
 * sixth adds. */
START_TEST(cc_17_two_cnps)
{
    static const uint64_t want[] = {10000000, 15000000, 17500000, 18750000,
                                    19375000, 19687500, 19863750};
    start("dcqcn,timer=300us,reduce=0,bytes=0,ai=40M,scale=0");
    cnp(1000);
    cnp(2000);
    for (unsigned i = 0; i < 7; i++)
        ck_assert_uint_eq(rate_at(2000 + i * 300 * US), want[i] * 1000);
    ck_assert_uint_eq(cc_target(&cc), 20040 * MBIT);
}
END_TEST

/* CC-18: the outcome doesn't depend on when the state is read. */
START_TEST(cc_18_lazy_is_exact)
{
    start("dcqcn:paper");
    struct cc often = cc, once = cc;
    for (uint64_t now = 10 * US; now < 500 * US; now += 50 * US) {
        conf.type->on_cnp(&often, now);
        conf.type->on_cnp(&once, now);
    }
    for (uint64_t now = 500 * US; now < 20 * MS; now += 999)
        cc_run(&often, now);
    cc_run(&often, 20 * MS);
    cc_run(&once, 20 * MS);
    ck_assert(often.rate < 40 * GBIT);
    ck_assert_uint_eq(often.rate, once.rate);
    ck_assert_uint_eq(often.dcqcn.alpha, once.dcqcn.alpha);
    ck_assert_uint_eq(often.dcqcn.rt, once.dcqcn.rt);
}
END_TEST

/* CC-18: so does the effect of many events at once, with any parameters. */
START_TEST(cc_18_many_at_once)
{
    static const char *const specs[] = {
        "dcqcn,timer=2us,ai=%u,hai=%u,f=%u,bytes=20000,hai_steps=0,reduce=7us,scale=0,min=1M",
        "dcqcn,timer=2us,ai=%u,hai=%u,f=%u,bytes=20000,hai_steps=1,reduce=7us,scale=0,min=1M",
        "dcqcn,timer=2us,ai=%u,hai=%u,f=%u,bytes=0,alpha_timer=3us,max=30G,clamp=1",
        "dcqcn-mlx,timer=2us,ai=%u,hai=%u,f=%u,hai_steps=0,reduce=9us,scale=0",
        "dcqcn-mlx,timer=2us,ai=%u,hai=%u,f=%u,hai_steps=1,reduce=9us,max=20G",
    };
    static const unsigned steps[] = {0, 1, 2, 3, 1000, 999999, 50000000};
    uint32_t rnd = 1;
    for (unsigned i = 0; i < 2000; i++) {
        char spec[256];
        rnd = rnd * 1664525 + 1013904223;
        snprintf(spec, sizeof(spec), specs[i % 5], steps[(rnd >> 8) % 7], steps[(rnd >> 12) % 7],
                 (rnd >> 16) % 7);
        start(spec);
        struct cc often = cc, once = cc;
        uint64_t now = 0;
        for (unsigned k = 0; k < 6; k++) {
            rnd = rnd * 1664525 + 1013904223;
            uint64_t end = now + (rnd >> 8) % (2 * MS);
            if (rnd & 64) {
                conf.type->on_cnp(&often, now);
                conf.type->on_cnp(&once, now);
            } else if (rnd & 128 && conf.type->on_send) {
                conf.type->on_send(&often, 9000, now);
                conf.type->on_send(&once, 9000, now);
            }
            for (; now < end; now += 1 * US)
                cc_run(&often, now);
            now = end;
            cc_run(&often, now);
            cc_run(&once, now);
            ck_assert_msg(often.rate == once.rate && often.due == once.due, "%s", spec);
            ck_assert_msg(!memcmp(&often.dcqcn, &once.dcqcn, sizeof(often.dcqcn)), "%s", spec);
        }
    }
}
END_TEST

/* A month without a look takes no time, though the rate never rises. */
START_TEST(cc_18_long_idle)
{
    const uint64_t month = 30ull * 86400 * 1000000000;
    static const char *const specs[] = {
        "dcqcn,timer=1us,ai=0,hai=0,reduce=0,clamp=1",
        "dcqcn-mlx,timer=1us,ai=0,hai=0,first=1G",
        "dcqcn,timer=1ms,ai=1,hai=1,scale=0,reduce=0,clamp=1",
    };
    for (unsigned i = 0; i < 3; i++) {
        start(specs[i]);
        cnp(1000);
        cnp(2000);
        cc_run(&cc, month);
        ck_assert_uint_gt(cc.due, month);
        ck_assert_uint_lt(cc_target(&cc), 40 * GBIT);
    }
}
END_TEST

/* CC-18: from the smallest rate back to line rate exactly, and then no limit at all. */
START_TEST(cc_18_no_drift)
{
    start("dcqcn");
    uint64_t now = 0;
    for (unsigned i = 0; i < 200; i++)
        cnp(now += 60 * US);
    ck_assert_uint_eq(cc.rate, 10 * MBIT);
    cc_run(&cc, now + 3000 * MS);
    ck_assert_uint_eq(cc.dcqcn.rc, 40 * GBIT);
    ck_assert_uint_eq(cc.rate, CC_UNLIMITED);
    ck_assert_uint_eq(cc_alpha(&cc), 0);
    ck_assert_uint_eq(cc.due, CC_NEVER); /* nothing left to do, ever */
}
END_TEST

/* CC-10: within the rate reduce period a CNP is remembered, and cuts when it ends. */
START_TEST(cc_10_remembered)
{
    start("dcqcn,reduce=50us,timer=10ms");
    cnp(1000 * US);
    ck_assert_uint_eq(cc.rate, 20 * GBIT);
    cnp(1010 * US);
    cnp(1049 * US);
    ck_assert_uint_eq(rate_at(1050 * US - 1), 20 * GBIT);
    ck_assert_uint_eq(rate_at(1050 * US), 10 * GBIT);
    ck_assert_uint_eq(rate_at(1200 * US), 10 * GBIT); /* two came, one cut */
    cnp(1200 * US);                                   /* outside: at once; alpha has decayed */
    ck_assert_uint_lt(cc.rate, 5100 * MBIT);
    ck_assert_uint_gt(cc.rate, 5 * GBIT);
}
END_TEST

/* CC-10: a cut forgets the stages: the next increase is a whole timer away, and fast recovery. */
START_TEST(cc_10_resets_stages)
{
    start("dcqcn,reduce=0,bytes=0,timer=300us");
    cnp(0);
    cc_run(&cc, 2000 * US);
    ck_assert_uint_eq(cc.dcqcn.t, 6);
    cnp(2050 * US);
    uint64_t cut = cc.rate;
    ck_assert_uint_eq(cc.dcqcn.t, 0);
    ck_assert_uint_eq(rate_at(2349 * US), cut);
    ck_assert_uint_gt(rate_at(2350 * US), cut);
}
END_TEST

/* CC-11: alpha decays every K without CNPs: 10 decays of 1/256 leave 0.96162. */
START_TEST(cc_11_alpha)
{
    start("dcqcn,g=1/256,alpha_timer=55us");
    cnp(0);
    ck_assert_uint_eq(cc_alpha(&cc), CC_ONE);
    cc_run(&cc, 55 * US - 1);
    ck_assert_uint_eq(cc_alpha(&cc), CC_ONE);
    cc_run(&cc, 550 * US);
    double alpha = (double)cc_alpha(&cc) / CC_ONE;
    ck_assert_double_eq_tol(alpha, 0.96162, 0.00002);
    cnp(560 * US); /* and rises by g of the rest */
    ck_assert_double_eq_tol((double)cc_alpha(&cc) / CC_ONE, alpha + (1 - alpha) / 256, 0.00002);
    cc_run(&cc, 615 * US - 1); /* K restarts with the CNP */
    ck_assert_double_eq_tol((double)cc_alpha(&cc) / CC_ONE, alpha + (1 - alpha) / 256, 0.00002);
}
END_TEST

/* CC-12: the byte counter makes events of its own; both above F is hyper increase, by steps. */
START_TEST(cc_12_bytes_and_hyper)
{
    start("dcqcn,f=1,bytes=1000K,timer=1s,reduce=0,ai=40M,hai=100M,scale=0");
    cnp(0);
    cnp(1);
    ck_assert_uint_eq(cc.rate, 10 * GBIT);
    for (unsigned i = 0; i < 999; i++)
        conf.type->on_send(&cc, 1024, 2);
    ck_assert_uint_eq(cc.rate, 10 * GBIT);
    conf.type->on_send(&cc, 1024, 2);
    ck_assert_uint_eq(cc.rate, 15 * GBIT); /* fast recovery */
    for (unsigned i = 0; i < 1000; i++)
        conf.type->on_send(&cc, 1024, 2);
    ck_assert_uint_eq(cc_target(&cc), 20040 * MBIT); /* additive: BC 1, T 0 */
    cc_run(&cc, 2000 * MS + 1);                      /* T 0 and 1: additive both times */
    ck_assert_uint_eq(cc_target(&cc), 20120 * MBIT);
    for (unsigned i = 0; i < 1000; i++)
        conf.type->on_send(&cc, 1024, 2001 * MS);
    ck_assert_uint_eq(cc_target(&cc), 20220 * MBIT); /* min(2, 2) > 1: hyper, first step */
    cc_run(&cc, 3000 * MS + 1);                      /* min(2, 3) - 1: first step again */
    ck_assert_uint_eq(cc_target(&cc), 20320 * MBIT);
    for (unsigned i = 0; i < 1000; i++)
        conf.type->on_send(&cc, 1024, 3001 * MS);
    ck_assert_uint_eq(cc_target(&cc), 20520 * MBIT); /* min(3, 3) - 1: second step, twice as much */
}
END_TEST

/* CC-13, CC-31: the additive steps grow with the line rate; never below the minimum, nor down by
 * more than max_cut. */
START_TEST(cc_13_bounds)
{
    conf = cc_of("dcqcn,line=100G,f=0,bytes=0,timer=100us,reduce=0");
    cc_conf_fit(&conf, 40 * GBIT);
    cc_start(&cc, &conf, 40 * GBIT, 1024, 0);
    cnp(0);
    cnp(1);
    cc_run(&cc, 100 * US + 1);
    ck_assert_uint_eq(cc_target(&cc), 50100 * MBIT);
    start("dcqcn,min=15G,reduce=0");
    cnp(0);
    ck_assert_uint_eq(cc.rate, 20 * GBIT);
    cnp(1);
    ck_assert_uint_eq(cc.rate, 15 * GBIT);
    start("dcqcn,max_cut=1/8,reduce=0");
    cnp(0);
    ck_assert_uint_eq(cc.rate, 35 * GBIT);
    start("dcqcn,max=30G,reduce=0");
    ck_assert_uint_eq(cc.rate, 30 * GBIT); /* below the line rate: limited from the start */
    cnp(0);
    cc_run(&cc, 5000 * MS);
    ck_assert_uint_eq(cc.rate, 30 * GBIT);
    start("dcqcn,first=8G,reduce=0"); /* jumps there, and cuts */
    cnp(0);
    ck_assert_uint_eq(cc.rate, 4 * GBIT);
}
END_TEST

/* CC-14: with the clamp off a second cut leaves the target, unless the timer has raised it since.
 */
START_TEST(cc_14_clamp)
{
    start("dcqcn,clamp=0,clamp_inc=1,reduce=0,bytes=0,timer=300us");
    cnp(0);
    ck_assert_uint_eq(cc_target(&cc), 40 * GBIT);
    cnp(1);
    ck_assert_uint_eq(cc.rate, 10 * GBIT);
    ck_assert_uint_eq(cc_target(&cc), 40 * GBIT);
    cc_run(&cc, 300 * US + 1); /* one increase */
    ck_assert_uint_eq(cc.rate, 25 * GBIT);
    cnp(301 * US);
    ck_assert_uint_eq(cc_target(&cc), 25 * GBIT);
}
END_TEST

/* CC-20: a loss changes nothing, but with slow_restart halves the rate. */
START_TEST(cc_20_slow_restart)
{
    start("dcqcn");
    ck_assert(!conf.type->on_loss(&cc, true, 1));
    ck_assert_uint_eq(cc.rate, CC_UNLIMITED);
    start("dcqcn,slow_restart=1");
    ck_assert(conf.type->on_loss(&cc, false, 1));
    ck_assert_uint_eq(cc.rate, 20 * GBIT);
}
END_TEST

/* CC-22: long after the last CNP, at line rate, alpha has its initial value again. */
START_TEST(cc_22_expiry)
{
    start("dcqcn,expire=10s,reduce=0");
    cnp(0);
    cnp(9000 * MS); /* alpha has decayed: hardly a cut */
    ck_assert_uint_gt(cc.rate, 39 * GBIT);
    cnp(18999 * MS);
    ck_assert_uint_gt(cc.rate, 39 * GBIT);
    cnp(28999 * MS);
    ck_assert_uint_eq(cc.rate, 20 * GBIT);
}
END_TEST

UNIT_MAIN("cc dcqcn", cc_17_one_cnp, cc_17_two_cnps, cc_18_lazy_is_exact, cc_18_many_at_once,
          cc_18_long_idle, cc_18_no_drift, cc_10_remembered, cc_10_resets_stages, cc_11_alpha,
          cc_12_bytes_and_hyper, cc_13_bounds, cc_14_clamp, cc_20_slow_restart, cc_22_expiry)
