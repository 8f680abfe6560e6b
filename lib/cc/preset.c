/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Parameters by name. The table of CC-13 and the figures of CC-16, column by column; where a source
 * has no value, the default stays. Rules: CC-13, CC-16.
 */
#include "cc.h"

#define MBIT 1000000ull
#define GBIT 1000000000ull
#define US   1000ull
#define MS   1000000ull
#define S    1000000000ull

#define RATIO(a, b) (((uint64_t)CC_ONE * (a) + (b) / 2) / (b))
#define SET(name, val)                                                                             \
    {                                                                                              \
        CC_P_##name, val                                                                           \
    }
#define END                                                                                        \
    {                                                                                              \
        CC_PARAM_MAX, 0                                                                            \
    }

/* The common defaults of all algorithms, and our own of DCQCN. */
static const struct cc_setting common[] = {
    SET(min, 10 * MBIT),
    SET(burst, 64 << 10),
    SET(burst_pkts, 16),
    SET(ect, 2),
    SET(prios, 255),
    SET(rate, 10 * GBIT),
    SET(g, RATIO(1, 256)),
    SET(alpha, CC_ONE),
    SET(alpha_timer, 55 * US),
    SET(reduce, 50 * US),
    SET(cut_shift, 1),
    SET(max_cut, RATIO(1, 2)),
    SET(timer, 300 * US),
    SET(bytes, 10 << 20),
    SET(f, 5),
    SET(ai, 40 * MBIT),
    SET(hai, 200 * MBIT),
    SET(hai_steps, 1),
    SET(scale, 1),
    SET(clamp, 1),
    SET(expire, 10 * S),
    SET(np, 1),
    SET(cnp_interval, 50 * US),
    SET(cnp_dscp, 48),
    SET(cnp_prio, 6),
    SET(cnp_max, 1000000),
    SET(recovery, 1),       /* go-back-N, the standard */
    SET(rto_low, 100 * US), /* LR-04 */
    SET(rto_high, 320 * US),
    SET(rto_few, 3),
    SET(overtake, 128),
    SET(shrink, 1), /* LR-16; the simulator has it off */
    END,
};

static const struct cc_setting nothing[] = {END};

static const struct cc_setting dcqcn_paper[] = {
    SET(reduce, 0),      /* every CNP cuts */
    SET(timer, 55 * US), /* the deployed setting of section 5.2 */
    SET(hai, 50 * MBIT),
    END,
};

/* QCN's own timers, against which the paper compares. */
static const struct cc_setting dcqcn_strawman[] = {
    SET(reduce, 0),        SET(g, RATIO(1, 16)), SET(timer, 1500 * US),
    SET(bytes, 150 << 10), SET(hai, 50 * MBIT),  END,
};

static const struct cc_setting mlx_connectx[] = {
    SET(g, RATIO(5, 1024)),
    SET(alpha, RATIO(1023, 1024)),
    SET(alpha_timer, 1 * US),
    SET(reduce, 4 * US),
    SET(timer, 300 * US),
    SET(bytes, 0), /* the stages follow the timer alone (CC-15) */
    SET(f, 1),
    SET(ai, 5 * MBIT),
    SET(hai, 50 * MBIT),
    SET(hai_steps, 0),
    SET(min, 1 * MBIT),
    SET(clamp, 0),
    SET(clamp_inc, 1),
    SET(cnp_interval, 4 * US),
    END,
};

static const struct cc_setting mlx_ns3[] = {
    SET(g, RATIO(1, 16)),      SET(alpha, CC_ONE),
    SET(alpha_timer, 55 * US), SET(reduce, 4 * US),
    SET(timer, 1500 * US),     SET(f, 5),
    SET(ai, 5 * MBIT),         SET(hai, 50 * MBIT),
    SET(min, 100 * MBIT),      END,
};

static const struct cc_setting mlx_hpcc[] = {
    SET(g, RATIO(1, 256)),    SET(alpha, CC_ONE),
    SET(alpha_timer, 1 * US), SET(reduce, 4 * US),
    SET(timer, 900 * US),     SET(f, 1),
    SET(ai, 50 * MBIT),       SET(hai, 100 * MBIT),
    SET(min, 100 * MBIT),     END,
};

static const struct cc_setting timely_paper[] = {
    SET(ewma, RATIO(7, 8)), SET(beta, RATIO(4, 5)), SET(ai, 10 * MBIT),    SET(f, 5),
    SET(t_low, 50 * US),    SET(t_high, 500 * US),  SET(min_rtt, 20 * US), END,
};

static const struct cc_setting swift_paper[] = {
    SET(target, 50 * US),
    SET(fs_range, 100 * US), /* four times the base in the paper's fabric, rounded */
    SET(fs_min, RATIO(1, 10)),
    SET(fs_max, RATIO(100, 1)),
    SET(inc, CC_ONE),
    SET(beta, RATIO(4, 5)),
    SET(max_cut, RATIO(1, 2)),
    SET(min_cwnd, RATIO(1, 1000)),
    SET(max_cwnd, RATIO(1024, 1)),
    SET(f, 5),
    END,
};

/* The links of a source: the paper's are of 40 Gb/s; the script of the ns-3 model takes ai and hai
 * of 5 and 50 Mb/s for 25 Gb/s, and others in proportion. */
#define PAPER (40 * GBIT)
#define NS3   (25 * GBIT)

const struct cc_preset cc_presets[] = {
    {"", "", "common defaults", 0, common},
    {"none", "default", "no limit", 0, nothing},
    {"fixed", "default", "one rate", 0, nothing},
    {"dcqcn", "default", "column \"ours\" of CC-13", PAPER, nothing},
    {"dcqcn", "paper", "SIGCOMM 2015", PAPER, dcqcn_paper},
    {"dcqcn", "strawman", "SIGCOMM 2015: QCN's parameters", PAPER, dcqcn_strawman},
    {"dcqcn-mlx", "connectx", "column \"ConnectX\" of CC-13", NS3, mlx_connectx},
    {"dcqcn-mlx", "ns3", "the defaults of HPCC's ns-3 model (CC-16)", NS3, mlx_ns3},
    {"dcqcn-mlx", "hpcc", "its shipped configuration (CC-16)", NS3, mlx_hpcc},
    {"timely", "paper", "SIGCOMM 2015", 0, timely_paper},
    {"swift", "paper", "SIGCOMM 2020", 0, swift_paper},
    {NULL, NULL, NULL, 0, NULL},
};
