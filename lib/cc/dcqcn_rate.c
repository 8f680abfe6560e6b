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

uint64_t dcqcn_top(const struct cc *cc)
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
    uint64_t top = dcqcn_top(cc);
    cc->dcqcn = (struct cc_dcqcn){.rc = top, .rt = top};
    if (start && start < top)
        cc->dcqcn.rc = start;
    dcqcn_publish(cc);
}

bool dcqcn_at_top(const struct cc *cc)
{
    return cc->dcqcn.rc >= dcqcn_top(cc);
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
        cc->dcqcn.rc = least(min, dcqcn_top(cc));
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

/* CC-13: R_AI and R_HAI are for 40 Gb/s. */
static uint64_t scaled(const struct cc *cc, uint64_t step)
{
    if (!cc->conf->v[CC_P_scale])
        return step;
    uint64_t mbit = cc->line / 1000000;
    return step / 1000 * mbit / 40 + step % 1000 * mbit / 40000;
}

void dcqcn_increase(struct cc *cc, uint32_t max_stage, uint32_t min_stage)
{
    const uint64_t *v = cc->conf->v;
    struct cc_dcqcn *d = &cc->dcqcn;
    uint64_t f = v[CC_P_f], top = dcqcn_top(cc);
    if (max_stage >= f) {
        uint64_t step = scaled(cc, v[CC_P_ai]);
        if (min_stage > f) {
            step = scaled(cc, v[CC_P_hai]);
            if (v[CC_P_hai_steps])
                step *= min_stage - f;
        }
        d->rt = least(d->rt + step, top);
    }
    d->rc = least((d->rt + d->rc + 1) / 2, top);
}
