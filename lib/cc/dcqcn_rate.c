/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The arithmetic of a DCQCN reaction point. A rate of 2^40 bit/s times a ratio of 20 fraction bits
 * fits 64 bits.
 */
#include "dcqcn_rate.h"

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Line rate, or the maximum below it. */
static uint64_t top_rate(const struct cc *cc)
{
    uint64_t max = cc->conf->v[CC_P_max];
    return max ? least(max, cc->line) : cc->line;
}

void dcqcn_publish(struct cc *cc)
{
    cc->rate = cc->dcqcn.rc >= cc->line ? CC_UNLIMITED : cc->dcqcn.rc;
}

void dcqcn_rest(struct cc *cc)
{
    uint64_t start = cc->conf->v[CC_P_start];
    uint64_t top = top_rate(cc);
    cc->dcqcn = (struct cc_dcqcn){.rc = top, .rt = top};
    if (start && start < top)
        cc->dcqcn.rc = start;
    dcqcn_publish(cc);
}

bool dcqcn_at_top(const struct cc *cc)
{
    return cc->dcqcn.rc >= top_rate(cc);
}

void dcqcn_alpha_down(struct cc *cc)
{
    uint64_t g = cc->conf->v[CC_P_g];
    uint64_t d = (cc->dcqcn.alpha * g + CC_ONE - 1) >> CC_RATIO_BITS;
    cc->dcqcn.alpha -= (uint32_t)least(d, cc->dcqcn.alpha);
}

void dcqcn_alpha_up(struct cc *cc)
{
    uint64_t g = cc->conf->v[CC_P_g];
    uint64_t d = (cc->dcqcn.alpha * g + CC_ONE / 2) >> CC_RATIO_BITS;
    cc->dcqcn.alpha = (uint32_t)least(cc->dcqcn.alpha - d + g, CC_ONE);
}

static void floor_rate(struct cc *cc)
{
    uint64_t min = cc->conf->v[CC_P_min];
    if (cc->dcqcn.rc < min)
        cc->dcqcn.rc = least(min, top_rate(cc));
}

void dcqcn_cut(struct cc *cc, bool clamp)
{
    const uint64_t *v = cc->conf->v;
    struct cc_dcqcn *d = &cc->dcqcn;
    uint64_t share = least(d->alpha >> v[CC_P_cut_shift], v[CC_P_max_cut]);
    if (clamp)
        d->rt = d->rc;
    d->rc -= d->rc * share >> CC_RATIO_BITS;
    floor_rate(cc);
}

void dcqcn_halve(struct cc *cc)
{
    cc->dcqcn.rt = cc->dcqcn.rc;
    cc->dcqcn.rc /= 2;
    floor_rate(cc);
}

/* The next rise of the target (CC-12). */
static uint64_t step_now(const struct cc *cc, bool timer_only)
{
    const uint64_t *v = cc->conf->v;
    const struct cc_dcqcn *d = &cc->dcqcn;
    uint32_t bc = timer_only ? d->t : d->bc;
    uint32_t max = d->t > bc ? d->t : bc, min = d->t < bc ? d->t : bc;
    uint64_t f = v[CC_P_f];
    if (max < f)
        return 0;
    if (min <= f)
        return v[CC_P_ai];
    return v[CC_P_hai] * (v[CC_P_hai_steps] ? min - f : 1);
}

/* Does the step stay the same while only the timer counts? */
static bool is_steady(const struct cc *cc, bool timer_only)
{
    const uint64_t *v = cc->conf->v;
    const struct cc_dcqcn *d = &cc->dcqcn;
    if (d->t < v[CC_P_f])
        return false;
    if (!timer_only && d->t >= d->bc)
        return true; /* bc is the smaller one, and stays */
    return d->t > v[CC_P_f] && (timer_only || d->bc > v[CC_P_f]) &&
           (!v[CC_P_hai_steps] || !v[CC_P_hai]);
}

void dcqcn_increase(struct cc *cc, bool timer_only)
{
    struct cc_dcqcn *d = &cc->dcqcn;
    uint64_t top = top_rate(cc);
    d->rt = least(d->rt + step_now(cc, timer_only), top);
    d->rc = least((d->rt + d->rc + 1) / 2, top);
}

/* At some point the rate follows its target at a constant distance. From then on each increase
 * raises both by the same step, until the target is at the top. Do up to `most` such increases at
 * once. Returns their number. */
static uint64_t glide(struct cc *cc, bool timer_only, uint64_t most)
{
    struct cc_dcqcn *d = &cc->dcqcn;
    uint64_t step = step_now(cc, timer_only), distance = d->rt - d->rc;
    if (dcqcn_at_top(cc) || d->rt < d->rc || (distance + step) / 2 != distance ||
        !is_steady(cc, timer_only))
        return 0;
    if (step > 0)
        most = least(most, (top_rate(cc) - d->rt) / step);
    d->rt += most * step;
    d->rc += most * step;
    return most;
}

static void count_timer(struct cc_dcqcn *d, uint64_t n)
{
    d->t = n < UINT32_MAX - d->t ? d->t + (uint32_t)n : UINT32_MAX;
}

void dcqcn_increase_due(struct cc *cc, bool timer_only, uint64_t now)
{
    struct cc_dcqcn *d = &cc->dcqcn;
    uint64_t timer = cc->conf->v[CC_P_timer], n = 1;
    if (d->cut_owed && d->cut_at <= now)
        now = d->cut_at - 1;
    dcqcn_increase(cc, timer_only);
    count_timer(d, 1);
    if (now > d->inc_at)
        n += glide(cc, timer_only, (now - d->inc_at) / timer);
    count_timer(d, n - 1);
    d->inc_at += n * timer;
}

uint32_t dcqcn_alpha(const struct cc *cc)
{
    return cc->dcqcn.alpha;
}

uint64_t dcqcn_target(const struct cc *cc)
{
    return cc->dcqcn.rt;
}
