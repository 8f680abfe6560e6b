/* SPDX-License-Identifier: BSD-3-Clause
 *
 * TIMELY (SIGCOMM 2015): the rate follows the gradient of the round-trip time. One step for each
 * sample: below t_low up, above t_high down, between them up while the round trip doesn't grow and
 * down by how fast it grows. Rule: CC-24.
 */
#include "cc.h"

#define HYPERACTIVE 5 /* steps in one, after `f` rises in a row: the paper's N */

static uint64_t top(const struct cc *cc)
{
    uint64_t max = cc->conf->v[CC_P_max];
    return max && max < cc->line ? max : cc->line;
}

static void set_rate(struct cc *cc, uint64_t rate)
{
    if (rate < cc->conf->v[CC_P_min])
        rate = cc->conf->v[CC_P_min];
    if (rate > top(cc)) /* also where that is below the minimum */
        rate = top(cc);
    cc->timely.rate = rate;
    cc->rate = rate >= cc->line ? CC_UNLIMITED : rate;
}

static void timely_start(struct cc *cc, uint64_t now)
{
    uint64_t start = cc->conf->v[CC_P_start];
    (void)now;
    set_rate(cc, start ? start : top(cc));
}

/* `rate` minus the fraction `share` of it (20 fraction bits). */
static uint64_t less(uint64_t rate, uint64_t share)
{
    if (share > CC_ONE)
        share = CC_ONE;
    return rate - (rate * share >> CC_RATIO_BITS);
}

static void timely_on_ack(struct cc *cc, uint64_t rtt, uint32_t packets, uint64_t now)
{
    const uint64_t *v = cc->conf->v;
    struct cc_timely *t = &cc->timely;
    (void)packets;
    (void)now;
    if (!rtt)
        return;
    if (rtt > CC_RTT_MOST)
        rtt = CC_RTT_MOST;
    int64_t ewma = (int64_t)v[CC_P_ewma];
    if (t->rtt) {
        int64_t diff = (int64_t)rtt - (int64_t)t->rtt;
        t->diff += (diff - t->diff) * ewma / (int64_t)CC_ONE;
    }
    t->rtt = rtt;
    t->rises = t->diff <= 0 ? t->rises + 1 : 0;
    if (rtt < v[CC_P_t_low]) {
        set_rate(cc, t->rate + v[CC_P_ai]);
    } else if (rtt > v[CC_P_t_high]) {
        uint64_t over = (rtt - v[CC_P_t_high]) * CC_ONE / rtt;
        set_rate(cc, less(t->rate, over * v[CC_P_beta] >> CC_RATIO_BITS));
    } else if (t->diff <= 0) {
        set_rate(cc, t->rate + v[CC_P_ai] * (t->rises >= v[CC_P_f] ? HYPERACTIVE : 1));
    } else {
        uint64_t gradient = (uint64_t)t->diff * CC_ONE / v[CC_P_min_rtt];
        set_rate(cc, less(t->rate, gradient * v[CC_P_beta] >> CC_RATIO_BITS));
    }
}

const struct cc_type cc_timely = {
    .name = "timely",
    .text = "TIMELY, by the gradient of the round-trip time",
    .uses = CC_BITS_LIMITER | CC_BITS_ALL | CC_BIT(beta) | CC_BIT(ewma) | CC_BIT(t_low) |
            CC_BIT(t_high) | CC_BIT(min_rtt) | CC_BIT(ai) | CC_BIT(f),
    .start = timely_start,
    .on_ack = timely_on_ack,
};
