/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Congestion control: the interface. One const object per algorithm, one file each, and a list of
 * all of them (cc_types). State lives in the queue pair (struct cc), parameters in a struct cc_conf
 * that many queue pairs share, time and packets come in as arguments.
 *
 * Nothing here has a timer. An algorithm keeps the time of its next event in cc->due. A caller that
 * reads cc->rate calls cc_run first, which runs the events in order, each at the time at which it
 * was due. So the outcome doesn't depend on when it is read, and an idle queue pair costs nothing.
 *
 * Rules: CC-09, CC-13, CC-18, CC-24.
 */
#ifndef URNIC_CC_H
#define URNIC_CC_H

#include <stdbool.h>
#include <stdint.h>

#include "cc_param.h"

#define CC_UNLIMITED UINT64_MAX
#define CC_NEVER     UINT64_MAX
#define CC_NO_WINDOW UINT32_MAX
#define CC_RTT_MOST  (1ull << 40)    /* ns, 18 minutes: a longer round trip counts as this one */
#define CC_LINE_RATE 100000000000ull /* default if neither the port nor the user gives one */

struct cc;

struct cc_type {
    const char *name;
    const char *text; /* one line for people */
    uint64_t uses;    /* parameters with a meaning for it: CC_BIT(g) | ... */
    bool reacts;      /* to CNPs: data is sent ECN-capable, CNPs count as handled (CC-08) */
    /* Begin: conf, line and limits of *cc are set, the rest is zero. */
    void (*start)(struct cc *cc, uint64_t now);
    /* Each of these may be NULL: nothing to do. */
    void (*run)(struct cc *cc, uint64_t now); /* run due events; moves cc->due past now */
    void (*on_cnp)(struct cc *cc, uint64_t now);
    /* `packets` are newly acknowledged; rtt_ns 0 = no sample. */
    void (*on_ack)(struct cc *cc, uint64_t rtt_ns, uint32_t packets, uint64_t now);
    /* NAK or time-out. True: the rate was cut for it (slow_restart). */
    bool (*on_loss)(struct cc *cc, bool timeout, uint64_t now);
    /* A limited queue pair sends this many octets; not called while cc->rate is CC_UNLIMITED. */
    void (*on_send)(struct cc *cc, uint32_t octets, uint64_t now);
    /* Values for display, see cc_alpha and cc_target. NULL: it has none. */
    uint32_t (*alpha)(const struct cc *cc);
    uint64_t (*target)(const struct cc *cc);
};

/* A reaction point, as DCQCN and its relatives have it. Ratios have CC_RATIO_BITS fraction bits. */
struct cc_dcqcn {
    uint64_t rc, rt;   /* current and target rate, bit/s */
    uint64_t alpha_at; /* next update of alpha */
    uint64_t inc_at;   /* next increase by the timer */
    uint64_t cut_at;   /* when the running rate reduce period ends */
    uint64_t cnp_at;   /* last CNP */
    uint64_t octets;   /* until the byte counter's next event */
    uint32_t alpha;
    uint32_t t, bc;    /* increase events of either kind since the last cut */
    uint8_t active;    /* a CNP has come; false: at line rate, without state */
    uint8_t cut_owed;  /* a CNP came within the rate reduce period */
    uint8_t alpha_cnp; /* a CNP came since the last update of alpha (dcqcn-mlx) */
};

struct cc_timely {
    uint64_t rate, rtt; /* bit/s, previous sample */
    int64_t diff;       /* smoothed difference of samples, ns */
    uint32_t rises;     /* samples in a row that didn't grow */
};

struct cc_swift {
    uint64_t cwnd;   /* packets, CC_RATIO_BITS fraction bits */
    uint64_t rtt;    /* last sample */
    uint64_t cut_at; /* last decrease */
    uint32_t timeouts;
};

struct cc {
    /* limits that the sender obeys */
    uint64_t rate;   /* bit/s; CC_UNLIMITED = no pacing */
    uint32_t window; /* packets in flight; CC_NO_WINDOW = the engine's limit alone */
    uint32_t mtu;    /* octets of payload of a full packet */
    uint64_t due;    /* time at which cc_run has work; CC_NEVER */
    const struct cc_conf *conf;
    uint64_t line; /* bit/s */
    union {
        struct cc_dcqcn dcqcn;
        struct cc_timely timely;
        struct cc_swift swift;
    };
};

extern const struct cc_type cc_none;      /* never limits */
extern const struct cc_type cc_fixed;     /* a constant rate */
extern const struct cc_type cc_dcqcn;     /* SIGCOMM 2015 */
extern const struct cc_type cc_dcqcn_mlx; /* as network adapters do it (CC-15) */
extern const struct cc_type cc_timely;    /* SIGCOMM 2015: gradient of the round-trip time */
extern const struct cc_type cc_swift;     /* SIGCOMM 2020: target delay, window */
/* All algorithms, NULL-terminated. */
extern const struct cc_type *const cc_types[];
/* The algorithm of this name; NULL = unknown. */
const struct cc_type *cc_type_find(const char *name);

/* Begin with the parameters in *conf as they are (cc_conf_fit), which must outlive *cc. line_rate
 * in bit/s, 0 = unknown; the parameter `line` wins over it. mtu: octets of payload of a full
 * packet. */
void cc_start(struct cc *cc, const struct cc_conf *conf, uint64_t line_rate, uint32_t mtu,
              uint64_t now);

/* Run due events. Call it before each look at cc->rate and cc->window. */
static inline void cc_run(struct cc *cc, uint64_t now)
{
    if (cc->due <= now)
        cc->conf->type->run(cc, now);
}

/* Its estimate of the path's congestion, CC_RATIO_BITS fraction bits; 0 for algorithms without
 * alpha. */
uint32_t cc_alpha(const struct cc *cc);
/* Its target rate, bit/s: the current rate if it has no target; CC_UNLIMITED = no limit. */
uint64_t cc_target(const struct cc *cc);

#endif
