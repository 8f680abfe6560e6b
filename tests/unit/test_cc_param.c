/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Parameters and their text form, and common properties of all algorithms.
 */
#include <stdio.h>
#include <string.h>

#include "cc.h"
#include "cc_of.h"
#include "unit.h"

/* CC-24: every algorithm is found by its name, starts, and accepts all events. */
START_TEST(cc_24_all)
{
    ck_assert_ptr_null(cc_type_find("nonsense"));
    for (const struct cc_type *const *t = cc_types; *t; t++) {
        struct cc_conf conf;
        struct cc cc;
        ck_assert_ptr_eq(cc_type_find((*t)->name), *t);
        unsigned presets = 0;
        for (const struct cc_preset *p = cc_presets; p->type; p++)
            presets += !strcmp(p->type, (*t)->name);
        ck_assert_msg(presets > 0, "%s has no row in cc_presets", (*t)->name);
        cc_conf_init(&conf, *t);
        cc_start(&cc, &conf, 10000000000, 1024, 1);
        for (uint64_t now = 1000; now < 100000000; now += 7777) {
            cc_run(&cc, now);
            ck_assert(cc.rate > 0 && cc.window > 0);
            ck_assert(cc.due > now);
            if ((*t)->on_cnp && now % 11 == 0)
                (*t)->on_cnp(&cc, now);
            if ((*t)->on_ack)
                (*t)->on_ack(&cc, now % 300000, 3, now);
            if ((*t)->on_loss && now % 13 == 0)
                (*t)->on_loss(&cc, now % 2, now);
            if ((*t)->on_send && cc.rate != CC_UNLIMITED)
                (*t)->on_send(&cc, 1100, now);
        }
    }
}
END_TEST

/* CC-24: "max" counts even below "min", since a queue pair's rate limit may be that low. */
START_TEST(cc_24_max_below_min)
{
    for (const struct cc_type *const *t = cc_types; *t; t++) {
        struct cc_conf conf;
        struct cc cc;
        if (!((*t)->uses & CC_BIT(max)))
            continue;
        cc_conf_init(&conf, *t);
        conf.v[CC_P_max] = conf.v[CC_P_min] / 2;
        cc_start(&cc, &conf, 10000000000, 1024, 1);
        for (uint64_t now = 1000; now < 10000000; now += 7777) {
            cc_run(&cc, now);
            ck_assert_uint_eq(cc.rate, conf.v[CC_P_max]);
            if ((*t)->on_cnp && now % 11 == 0)
                (*t)->on_cnp(&cc, now);
            if ((*t)->on_ack)
                (*t)->on_ack(&cc, now % 1000000, 3, now);
        }
    }
}
END_TEST

/* CC-09: "none" never limits, "fixed" always does, all others begin without a limit. */
START_TEST(cc_09_start)
{
    struct cc_conf conf;
    struct cc cc;
    for (const struct cc_type *const *t = cc_types; *t; t++) {
        cc_conf_init(&conf, *t);
        cc_start(&cc, &conf, 0, 1024, 1);
        if (*t == &cc_fixed)
            ck_assert_uint_eq(cc.rate, 10000000000);
        else
            ck_assert_uint_eq(cc.rate, CC_UNLIMITED);
    }
    ck_assert_int_eq(cc_conf_parse(&conf, "dcqcn,start=2.5G", NULL, 0), 0);
    cc_start(&cc, &conf, 40000000000, 1024, 1);
    ck_assert_uint_eq(cc.rate, 2500000000);
}
END_TEST

/* CC-13: the text in the log has the same meaning when it is read again. */
START_TEST(cc_13_text_round_trip)
{
    for (const struct cc_preset *p = cc_presets + 1; p->type; p++) {
        struct cc_conf a, b;
        char spec[64], text[CC_TEXT], again[CC_TEXT], err[256] = "";
        snprintf(spec, sizeof(spec), "%s:%s", p->type, p->name);
        ck_assert_msg(!cc_conf_parse(&a, spec, err, sizeof(err)), "%s", err);
        ck_assert_str_eq(a.preset, p->name);
        int n = cc_conf_format(&a, text, sizeof(text));
        ck_assert(n > 0 && n < (int)sizeof(text));
        ck_assert_msg(!cc_conf_parse(&b, text, err, sizeof(err)), "%s: %s", text, err);
        ck_assert_msg(!memcmp(a.v, b.v, sizeof(a.v)), "%s", text);
        cc_conf_format(&b, again, sizeof(again));
        ck_assert_str_eq(text, again);
    }
}
END_TEST

/* CC-13: the presets hold the table's values. */
START_TEST(cc_13_presets)
{
    static const struct {
        const char *spec;
        enum cc_param param;
        uint64_t value;
    } want[] = {
        {"dcqcn", CC_P_g, CC_ONE / 256},
        {"dcqcn", CC_P_alpha_timer, 55000},
        {"dcqcn", CC_P_reduce, 50000},
        {"dcqcn", CC_P_timer, 300000},
        {"dcqcn", CC_P_bytes, 10 << 20},
        {"dcqcn", CC_P_f, 5},
        {"dcqcn", CC_P_ai, 40000000},
        {"dcqcn", CC_P_hai, 200000000},
        {"dcqcn", CC_P_cnp_interval, 50000},
        {"dcqcn:paper", CC_P_reduce, 0},
        {"dcqcn:paper", CC_P_timer, 55000},
        {"dcqcn-mlx", CC_P_g, CC_ONE * 5 / 1024},
        {"dcqcn-mlx", CC_P_alpha, CC_ONE / 1024 * 1023},
        {"dcqcn-mlx", CC_P_alpha_timer, 1000},
        {"dcqcn-mlx", CC_P_f, 1},
        {"dcqcn-mlx:ns3", CC_P_g, CC_ONE / 16}, /* CC-16 */
        {"dcqcn-mlx:ns3", CC_P_timer, 1500000},
        {"dcqcn-mlx:hpcc", CC_P_timer, 900000}, /* CC-16 */
        {"dcqcn-mlx:hpcc", CC_P_hai, 100000000},
        {"dcqcn:paper,g=1/16,timer=1.5ms", CC_P_g, CC_ONE / 16},
        {"dcqcn:paper,g=1/16,timer=1.5ms", CC_P_timer, 1500000},
        {"dcqcn:paper,max_cut=50%", CC_P_max_cut, CC_ONE / 2},
        {"dcqcn,cnp_scope=ip", CC_P_cnp_scope, CC_SCOPE_IP},
    };
    for (unsigned i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        struct cc_conf c;
        char err[256];
        ck_assert_msg(!cc_conf_parse(&c, want[i].spec, err, sizeof(err)), "%s", err);
        ck_assert_msg(c.v[want[i].param] == want[i].value, "%s: %s is %llu", want[i].spec,
                      cc_params[want[i].param].name, (unsigned long long)c.v[want[i].param]);
    }
}
END_TEST

/* CC-31: a preset's values are for the line of its source, and are scaled to others; named values
 * stay. */
START_TEST(cc_31_fits_the_line)
{
    static const struct {
        const char *spec;
        uint64_t line;
        uint64_t ai, hai, min, timer, alpha_timer, reduce,
            cnp_interval; /* Mb/s but min: kb/s; us */
    } want[] = {
        {"dcqcn:paper", 40000, 40, 50, 10000, 55, 55, 0, 50},
        {"dcqcn:paper", 20000, 20, 25, 5000, 110, 110, 0, 100},
        {"dcqcn:paper", 1000, 1, 1, 250, 2200, 2200, 0, 2000},
        {"dcqcn:paper", 100000, 100, 125, 25000, 55, 55, 0, 50},
        {"dcqcn", 10000, 10, 50, 2500, 1200, 220, 200, 200},
        {"dcqcn", 0, 100, 500, 25000, 300, 55, 50, 50}, /* unknown: 100 Gb/s are taken */
        {"dcqcn,line=10G", 400000, 10, 50, 2500, 1200, 220, 200, 200},
        {"dcqcn:paper,ai=40M,timer=55us", 10000, 40, 12, 2500, 55, 220, 0, 200},
        {"dcqcn:paper,scale=0", 1000, 40, 50, 10000, 55, 55, 0, 50},
        {"dcqcn-mlx:ns3", 25000, 5, 50, 100000, 1500, 55, 4, 4},
        {"dcqcn-mlx:ns3", 100000, 20, 200, 400000, 1500, 55, 4, 4},
        {"dcqcn-mlx", 5000, 1, 10, 200, 1500, 5, 20, 20},
    };
    for (unsigned i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        struct cc_conf c = cc_of(want[i].spec);
        char first[CC_TEXT], again[CC_TEXT];
        cc_conf_fit(&c, want[i].line * 1000000);
        ck_assert_uint_eq(c.v[CC_P_ai] / 1000000, want[i].ai);
        ck_assert_uint_eq(c.v[CC_P_hai] / 1000000, want[i].hai);
        ck_assert_uint_eq(c.v[CC_P_min] / 1000, want[i].min);
        ck_assert_uint_eq(c.v[CC_P_timer] / 1000, want[i].timer);
        ck_assert_uint_eq(c.v[CC_P_alpha_timer] / 1000, want[i].alpha_timer);
        ck_assert_uint_eq(c.v[CC_P_reduce] / 1000, want[i].reduce);
        ck_assert_uint_eq(c.v[CC_P_cnp_interval] / 1000, want[i].cnp_interval);
        ck_assert_uint_eq(c.bounded, 0);
        /* Once is enough, and the printed text can be read again. */
        cc_conf_format(&c, first, sizeof(first));
        cc_conf_fit(&c, 7000000);
        cc_conf_format(&c, again, sizeof(again));
        ck_assert_str_eq(first, again);
        c = cc_of(first);
        cc_conf_fit(&c, want[i].line * 1000000);
        cc_conf_format(&c, again, sizeof(again));
        ck_assert_str_eq(first, again);
    }
}
END_TEST

/* CC-31: a remaining contradiction is reported. */
START_TEST(cc_31_says_what_does_not_fit)
{
    static const struct {
        const char *spec;
        uint64_t mbit;
        const char *says; /* NULL: nothing */
    } want[] = {
        {"dcqcn:paper", 1000, NULL},
        {"dcqcn:paper", 400000, NULL},
        {"dcqcn:paper,ai=40M", 1000, "ai=40000000 is 4.0 % of the line's 1 Gb/s"},
        {"dcqcn:paper,ai=40M", 1000, "ai=1000000,hai=31250 fit"},
        {"dcqcn:paper,scale=0", 1000, "ai=1000000,hai=1250000 fit"},
        {"dcqcn:paper,scale=0,line=1G", 40000, "4.0 %"},
        {"dcqcn:paper", 0, "line=RATE"},
        {"dcqcn:paper,line=10G", 0, NULL},
        {"dcqcn:paper", 200, NULL},
        {"dcqcn:paper", 100, "cnp_interval=10ms is the bound"}, /* 20 ms would fit */
        {"timely", 0, NULL},
        {"none", 0, NULL},
    };
    for (unsigned i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        struct cc_conf c = cc_of(want[i].spec);
        for (unsigned fitted = 0; fitted < 2; fitted++) {
            char why[256] = "";
            bool fits = cc_conf_fits(&c, want[i].mbit * 1000000, why, sizeof(why));
            ck_assert_msg(fits == !want[i].says, "%s at %u: %s", want[i].spec,
                          (unsigned)want[i].mbit, why);
            ck_assert_msg(fits || strstr(why, want[i].says), "%s: %s", want[i].spec, why);
            cc_conf_fit(&c, want[i].mbit * 1000000);
        }
    }
}
END_TEST

/* CC-13: a mistake is refused, and the message shows the right form. */
START_TEST(cc_13_refused)
{
    static const struct {
        const char *spec, *says;
    } bad[] = {
        {"", "known: none fixed dcqcn"},
        {"cubic", "known: none fixed dcqcn"},
        {"dcqcn:moon", "known: default paper"},
        {"dcqcn,g", "NAME=VALUE"},
        {"dcqcn,nonsense=1", "nonsense: no such parameter; dcqcn has: line min"},
        {"fixed:rate=5G", "(parameters follow a comma); known: default"},
        {"none,g=1/2", "no such parameter"},
        {"dcqcn,g=2", "want 1/1048576 to 1"},
        {"dcqcn,g=1/0", "a ratio like"},
        {"dcqcn,g=", "a ratio like"},
        {"dcqcn,timer=5", "a time like"},
        {"dcqcn,timer=5 us", "a time like"},
        {"dcqcn,ai=40Q", "a rate like"},
        {"dcqcn,ai=-1", "a rate like"},
        {"dcqcn,ai=99999999999999999999999999G", "a rate like"},
        {"dcqcn,f=1.5", "a whole number"},
        {"dcqcn,clamp=2", "want 0 to 1"},
        {"dcqcn,cnp_scope=host", "qp, ip or port"},
        {"dcqcn,cnp_interval=11ms", "want 0 to 10ms"}, /* CC-04 */
    };
    for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct cc_conf c;
        char err[512] = "";
        ck_assert_msg(cc_conf_parse(&c, bad[i].spec, err, sizeof(err)) < 0, "%s", bad[i].spec);
        ck_assert_msg(strstr(err, bad[i].says), "%s: %s", bad[i].spec, err);
    }
    struct cc_conf c; /* a list that doesn't fit ends with dots, not within a word */
    char err[64] = "";
    ck_assert_int_lt(cc_conf_parse(&c, "dcqcn,nonsense=1", err, sizeof(err)), 0);
    ck_assert_str_eq(err, "nonsense: no such parameter; dcqcn has: line min max start ...");
}
END_TEST

/* CC-13: so does every ratio, not only those of the presets. */
START_TEST(cc_13_ratio_round_trip)
{
    for (uint64_t v = 1; v <= 3 * CC_ONE; v += v < 200 ? 1 : 97) {
        struct cc_conf c;
        char text[64] = "swift,fs_min=", err[512] = "";
        size_t n = strlen(text);
        cc_value_format(CC_RATIO, v, text + n, sizeof(text) - n);
        ck_assert_msg(cc_conf_parse(&c, text, err, sizeof(err)) == 0, "%s", err);
        ck_assert_msg(c.v[CC_P_fs_min] == v, "%llu as %s", (unsigned long long)v, text);
    }
}
END_TEST

UNIT_MAIN("cc parameters", cc_24_all, cc_24_max_below_min, cc_09_start, cc_13_text_round_trip,
          cc_13_ratio_round_trip, cc_13_presets, cc_31_fits_the_line, cc_31_says_what_does_not_fit,
          cc_13_refused)
