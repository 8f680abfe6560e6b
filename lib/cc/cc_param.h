/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Parameters of congestion control: one table of names, units and bounds for all algorithms; named
 * presets; and their text form
 *
 *     ALGORITHM[:PRESET][,NAME=VALUE...]        "dcqcn:paper,g=1/256,timer=55us"
 *
 * which the configuration, the tools and the logs share: cc_conf_parse reads the output of
 * cc_conf_format. Rules: CC-13, CC-25, CC-31.
 */
#ifndef URNIC_CC_PARAM_H
#define URNIC_CC_PARAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CC_RATIO_BITS 20
#define CC_ONE        (1u << CC_RATIO_BITS) /* 1.0 */
#define CC_TEXT       1024u                 /* octets that the longest text form needs */

enum cc_unit {
    CC_RATE,   /* bit/s, decimal: "2.5G", "40M" */
    CC_TIME,   /* ns: "50us", "1.5ms", "10s" */
    CC_RATIO,  /* "1/256", "0.5", "50%" */
    CC_OCTETS, /* "10M", "64K": powers of 1024 */
    CC_COUNT,
    CC_FLAG,     /* 0, 1 */
    CC_SCOPE,    /* qp, ip, port */
    CC_RECOVERY, /* gbn, sr, gbn-ooo: 1, 2, 3 as enum engine_recovery */
};

enum cc_scope { CC_SCOPE_QP, CC_SCOPE_IP, CC_SCOPE_PORT };

/* name, unit, smallest, largest, meaning. In bit/s, ns, 1/2^20, octets. */
#define CC_PARAMS(X)                                                                               \
    /* every algorithm */                                                                          \
    X(line, CC_RATE, 0, 1000000000000, "line rate; 0: that of the port")                           \
    X(min, CC_RATE, 1000, 1000000000000, "the rate never falls below this")                        \
    X(max, CC_RATE, 0, 1000000000000, "... and never rises above this; 0: line rate")              \
    X(start, CC_RATE, 0, 1000000000000, "initial rate; 0: line rate, not limited")                 \
    X(burst, CC_OCTETS, 64, 1 << 20, "octets that the pacer may send at once")                     \
    X(burst_pkts, CC_COUNT, 1, 64, "... and packets")                                              \
    X(ect, CC_COUNT, 0, 2, "ECN field sent: 0 not capable, 1 ECT(1), 2 ECT(0)")                    \
    X(prios, CC_COUNT, 0, 255, "bit mask of the service levels that it applies to")                \
    /* fixed */                                                                                    \
    X(rate, CC_RATE, 1000, 1000000000000, "the constant rate")                                     \
    /* dcqcn, dcqcn-mlx */                                                                         \
    X(g, CC_RATIO, 1, CC_ONE, "gain of alpha")                                                     \
    X(alpha, CC_RATIO, 0, CC_ONE, "alpha at the first CNP")                                        \
    X(alpha_timer, CC_TIME, 100, 1000000000, "K: alpha decays this often without CNPs")            \
    X(reduce, CC_TIME, 0, 1000000000, "rate reduce period: at most one cut in it")                 \
    X(cut_shift, CC_COUNT, 0, 8, "a cut takes alpha / 2^this of the rate")                         \
    X(max_cut, CC_RATIO, 1, CC_ONE, "... but at most this part of it")                             \
    X(timer, CC_TIME, 1000, 10000000000, "increase timer")                                         \
    X(bytes, CC_OCTETS, 0, 1ull << 40, "byte counter; 0: none")                                    \
    X(f, CC_COUNT, 0, 255, "steps of fast recovery")                                               \
    X(ai, CC_RATE, 0, 1000000000000, "additive increase")                                          \
    X(hai, CC_RATE, 0, 1000000000000, "hyper increase")                                            \
    X(hai_steps, CC_FLAG, 0, 1, "hyper increase grows with its step, as the paper's does")         \
    X(scale, CC_FLAG, 0, 1, "rates and times of the preset scale with the line rate")              \
    X(first, CC_RATE, 0, 1000000000000, "rate to jump to at the first CNP; 0: just cut")           \
    X(clamp, CC_FLAG, 0, 1, "each cut lowers the target rate")                                     \
    X(clamp_inc, CC_FLAG, 0, 1, "a cut after an increase by the timer lowers it")                  \
    X(slow_restart, CC_FLAG, 0, 1, "halve the rate at a NAK or time-out")                          \
    X(expire, CC_TIME, 1000, 1000000000000, "start anew this long after the last CNP")             \
    /* timely, swift */                                                                            \
    X(beta, CC_RATIO, 0, CC_ONE, "multiplicative decrease")                                        \
    X(ewma, CC_RATIO, 1, CC_ONE, "weight of a new difference of round-trip times")                 \
    X(t_low, CC_TIME, 0, 1000000000, "below this the rate always rises")                           \
    X(t_high, CC_TIME, 0, 1000000000, "above this it always falls")                                \
    X(min_rtt, CC_TIME, 100, 1000000000, "round-trip time by which the gradient is divided")       \
    X(target, CC_TIME, 100, 1000000000, "target delay of a flow with a large window")              \
    X(fs_range, CC_TIME, 0, 1000000000, "... and the most added to it for a small window")         \
    X(fs_min, CC_RATIO, 1, 1ull << 40, "window of the largest target, packets")                    \
    X(fs_max, CC_RATIO, 1, 1ull << 40, "window of the smallest")                                   \
    X(inc, CC_RATIO, 0, 1ull << 30, "additive increase per round trip, packets")                   \
    X(min_cwnd, CC_RATIO, 1, CC_ONE, "smallest window, packets")                                   \
    X(max_cwnd, CC_RATIO, CC_ONE, 1ull << 40, "largest window, packets")                           \
    /* the notification point, for all algorithms */                                               \
    X(np, CC_FLAG, 0, 1, "answer packets marked CE with CNPs")                                     \
    X(cnp_interval, CC_TIME, 0, 10000000, "N: at most one CNP in this time")                       \
    X(cnp_scope, CC_SCOPE, 0, 2, "... per qp, per destination ip, or per port")                    \
    X(cnp_dscp, CC_COUNT, 0, 63, "DSCP of CNPs")                                                   \
    X(cnp_prio, CC_COUNT, 0, 7, "VLAN priority of CNPs")                                           \
    X(cnp_ecn, CC_COUNT, 0, 2, "ECN field of CNPs")                                                \
    X(cnp_max, CC_COUNT, 1, 1000000000, "CNPs per second, at most, for the whole port")            \
    X(cnp_nak, CC_FLAG, 0, 1, "send a CNP along with a sequence NAK as well")                      \
    /* loss recovery, for all algorithms (section LR) */                                           \
    X(recovery, CC_RECOVERY, 1, 3, "loss recovery of new connections")                             \
    X(rto_low, CC_TIME, 1000, 10000000000, "sr: time-out with few packets in flight, at least")    \
    X(rto_high, CC_TIME, 1000, 10000000000, "sr: time-out otherwise, at least")                    \
    X(rto_few, CC_COUNT, 0, 1024, "sr: the most packets that are few")                             \
    X(overtake, CC_COUNT, 0, 512, "sr: learn reordering by at most this many packets")             \
    X(reorder, CC_TIME, 0, 100000,                                                                 \
      "sr, gbn-ooo: hold a NAK this long, the packet may only be late")                            \
    X(shrink, CC_FLAG, 0, 1, "gbn: a loss halves the window, acknowledgements reopen it")          \
    X(adaptive, CC_FLAG, 0, 1, "gbn: after a time-out, the next uses the measured round trip")     \
    X(probe, CC_FLAG, 0, 1, "after two round trips of silence repeat the last packet")

enum cc_param {
#define X(name, unit, min, max, text) CC_P_##name,
    CC_PARAMS(X)
#undef X
        CC_PARAM_MAX
};
#define CC_BIT(name) (1ull << CC_P_##name)
_Static_assert(CC_PARAM_MAX <= 64, "a set of parameters is one word");
/* Parameters with a meaning for every algorithm. */
#define CC_BITS_ALL                                                                                \
    (CC_BIT(np) | CC_BIT(cnp_interval) | CC_BIT(cnp_scope) | CC_BIT(cnp_dscp) | CC_BIT(cnp_prio) | \
     CC_BIT(cnp_ecn) | CC_BIT(cnp_max) | CC_BIT(cnp_nak) | CC_BIT(recovery) | CC_BIT(rto_low) |    \
     CC_BIT(rto_high) | CC_BIT(rto_few) | CC_BIT(overtake) | CC_BIT(reorder) | CC_BIT(adaptive) |  \
     CC_BIT(shrink) | CC_BIT(probe))
#define CC_BITS_LIMITER                                                                            \
    (CC_BIT(line) | CC_BIT(min) | CC_BIT(max) | CC_BIT(start) | CC_BIT(burst) |                    \
     CC_BIT(burst_pkts) | CC_BIT(ect) | CC_BIT(prios))

struct cc_param_info {
    const char *name;
    enum cc_unit unit;
    uint64_t min, max;
    const char *text;
};
extern const struct cc_param_info cc_params[CC_PARAM_MAX];

struct cc_type;

/* An algorithm and all its parameters. */
struct cc_conf {
    const struct cc_type *type;
    const char *preset; /* its name, in the table */
    uint64_t line;      /* bit/s that the preset is for; 0 = for any line */
    uint64_t given;     /* parameters that the text names: CC_BIT(g) | ... */
    uint64_t bounded;   /* parameters limited by their bounds when they were fitted */
    bool fitted;        /* the values fit the line already */
    uint64_t v[CC_PARAM_MAX];
};

struct cc_setting {
    uint8_t param; /* enum cc_param */
    uint64_t value;
};

/* Parameters by name. A preset lists differences from the algorithm's first preset, which lists
 * differences from the common defaults. */
struct cc_preset {
    const char *type, *name;
    const char *text;                 /* source of the values */
    uint64_t line;                    /* bit/s of the links of that source; 0 = of any */
    const struct cc_setting *setting; /* ends with param = CC_PARAM_MAX */
};
extern const struct cc_preset cc_presets[]; /* ends with type = NULL */

/* The parameters of the algorithm's first preset. */
void cc_conf_init(struct cc_conf *c, const struct cc_type *type);
/* Read the text form. 0, or -EINVAL with a sentence in err[0..size) that names the fault and the
 * right form; *c is then invalid. */
int cc_conf_parse(struct cc_conf *c, const char *text, char *err, size_t size);
/* Make a preset fit a line of line_rate bit/s (0 = unknown: CC_LINE_RATE; the parameter `line`
 * wins), CC-31: its rates (ai, hai, min) follow the line in proportion, and on a line slower than
 * the source's its times (timer, alpha_timer, reduce, cnp_interval) get longer in the same
 * proportion. Values that the text names don't change; with scale=0 no value changes. A second call
 * changes nothing. */
void cc_conf_fit(struct cc_conf *c, uint64_t line_rate);
/* Does the congestion control, fitted or not yet, fit a line of line_rate bit/s (0 = unknown)? If
 * not, a sentence in why[0..size) names the wrong value, and a right one. */
bool cc_conf_fits(const struct cc_conf *c, uint64_t line_rate, char *why, size_t size);
/* The text form with every parameter of the algorithm; CC_TEXT octets are enough. Returns as
 * snprintf. */
int cc_conf_format(const struct cc_conf *c, char *buf, size_t size);
/* One value, as text. Returns as snprintf. */
int cc_value_format(enum cc_unit unit, uint64_t v, char *buf, size_t size);

#endif
