/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Swift (SIGCOMM 2020): a window that aims at a target delay; flows with a small window may have a
 * little more. A window below one packet becomes a gap between packets. Losses cut too: half, and
 * after several time-outs in a row down to the smallest window. No gap is longer than 100 ms.
 * Rule: CC-24.
 */
#include "cc.h"

#define FIX CC_RATIO_BITS

#define BITS_PER_OCTET_NS 8000000000ull /* octets in ns to bit/s */
/* ns: twice the gap of a window of a thousandth of a packet at the paper's target. A host that was
 * busy for 30 ms tells nothing about the path, but without this limit it would delay the next
 * packet for half a minute. */
#define GAP_MOST 100000000ull

static uint64_t isqrt(uint64_t v)
{
    uint64_t r = 0;
    for (uint64_t bit = 1ull << 62; bit; bit >>= 2) {
        if (v >= r + bit) {
            v -= r + bit;
            r = (r >> 1) + bit;
        } else {
            r >>= 1;
        }
    }
    return r;
}

/* 1 / sqrt(x), both with 20 fraction bits. */
static uint64_t inverse_root(uint64_t x)
{
    uint64_t root = isqrt(x << FIX);
    return root ? (1ull << 2 * FIX) / root : UINT32_MAX;
}

/* Base target, plus the window's share of fs_range: all of it at fs_min, none at fs_max. */
static uint64_t target_delay(const struct cc *cc)
{
    const uint64_t *v = cc->conf->v;
    uint64_t most = inverse_root(v[CC_P_fs_min]), least = inverse_root(v[CC_P_fs_max]);
    uint64_t own = inverse_root(cc->swift.cwnd);
    if (most <= least || own <= least)
        return v[CC_P_target];
    if (own > most)
        own = most;
    return v[CC_P_target] + v[CC_P_fs_range] * (own - least) / (most - least);
}

static void publish(struct cc *cc)
{
    const uint64_t *v = cc->conf->v;
    struct cc_swift *s = &cc->swift;
    if (s->cwnd < v[CC_P_min_cwnd])
        s->cwnd = v[CC_P_min_cwnd];
    if (s->cwnd > v[CC_P_max_cwnd])
        s->cwnd = v[CC_P_max_cwnd];
    if (s->cwnd >= CC_ONE) {
        cc->window = (uint32_t)(s->cwnd >> FIX);
        cc->rate = CC_UNLIMITED;
        return;
    }
    /* One packet, then rtt / cwnd until the next. */
    uint64_t rtt = s->rtt ? s->rtt : v[CC_P_target];
    uint64_t gap = (rtt << FIX) / s->cwnd;
    if (gap > GAP_MOST)
        gap = GAP_MOST;
    cc->window = 1;
    cc->rate = cc->mtu * BITS_PER_OCTET_NS / gap;
}

static void swift_start(struct cc *cc, uint64_t now)
{
    (void)now;
    cc->swift.cwnd = cc->conf->v[CC_P_max_cwnd];
    publish(cc);
}

static bool may_cut(const struct cc *cc, uint64_t now)
{
    return now - cc->swift.cut_at >= cc->swift.rtt;
}

static void cut(struct cc *cc, uint64_t share, uint64_t now)
{
    struct cc_swift *s = &cc->swift;
    if (share > cc->conf->v[CC_P_max_cut])
        share = cc->conf->v[CC_P_max_cut];
    s->cwnd -= s->cwnd * share >> FIX;
    s->cut_at = now;
}

static void swift_on_ack(struct cc *cc, uint64_t rtt, uint32_t packets, uint64_t now)
{
    const uint64_t *v = cc->conf->v;
    struct cc_swift *s = &cc->swift;
    s->timeouts = 0;
    if (rtt > CC_RTT_MOST)
        rtt = CC_RTT_MOST;
    if (rtt)
        s->rtt = rtt;
    if (!s->rtt)
        return;
    uint64_t target = target_delay(cc);
    if (s->rtt < target) {
        uint64_t step = v[CC_P_inc] * packets;
        s->cwnd += s->cwnd >= CC_ONE ? (step << FIX) / s->cwnd : step;
    } else if (rtt && may_cut(cc, now)) {
        uint64_t over = ((rtt - target) << FIX) / rtt;
        cut(cc, over * v[CC_P_beta] >> FIX, now);
    }
    publish(cc);
}

static bool swift_on_loss(struct cc *cc, bool timeout, uint64_t now)
{
    const uint64_t *v = cc->conf->v;
    struct cc_swift *s = &cc->swift;
    s->timeouts = timeout ? s->timeouts + 1 : 0; /* a NAK shows that packets reach the peer */
    if (timeout && s->timeouts >= v[CC_P_f])
        s->cwnd = v[CC_P_min_cwnd];
    else if (may_cut(cc, now))
        cut(cc, v[CC_P_max_cut], now);
    publish(cc);
    return false;
}

const struct cc_type cc_swift = {
    .name = "swift",
    .text = "Swift, a window for a target delay",
    .uses = CC_BIT(burst) | CC_BIT(burst_pkts) | CC_BIT(prios) | CC_BITS_ALL | CC_BIT(target) |
            CC_BIT(fs_range) | CC_BIT(fs_min) | CC_BIT(fs_max) | CC_BIT(inc) | CC_BIT(beta) |
            CC_BIT(max_cut) | CC_BIT(min_cwnd) | CC_BIT(max_cwnd) | CC_BIT(f),
    .start = swift_start,
    .on_ack = swift_on_ack,
    .on_loss = swift_on_loss,
};
