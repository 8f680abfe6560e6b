/* SPDX-License-Identifier: BSD-3-Clause
 *
 * DCQCN as network adapters do it: a CNP only leaves a mark. Two clocks check the mark: each rate
 * reduce period cuts if there was a CNP, each alpha period moves alpha towards 1 or 0. The stages
 * of the increase follow the timer alone. Rules: CC-14, CC-15, CC-16, CC-22.
 */
#include "dcqcn_rate.h"

static void schedule(struct cc *cc)
{
    const struct cc_dcqcn *d = &cc->dcqcn;
    cc->due = CC_NEVER;
    if (d->active && (d->alpha || d->alpha_cnp) && d->alpha_at < cc->due)
        cc->due = d->alpha_at;
    if (d->cut_owed && d->cut_at < cc->due)
        cc->due = d->cut_at;
    if (!dcqcn_at_top(cc) && d->inc_at < cc->due)
        cc->due = d->inc_at;
}

static void mlx_start(struct cc *cc, uint64_t now)
{
    dcqcn_rest(cc);
    cc->dcqcn.inc_at = now + cc->conf->v[CC_P_timer];
    schedule(cc);
}

static void cut(struct cc *cc, uint64_t now)
{
    const uint64_t *v = cc->conf->v;
    struct cc_dcqcn *d = &cc->dcqcn;
    dcqcn_cut(cc, v[CC_P_clamp] || (v[CC_P_clamp_inc] && d->t > 0));
    d->cut_owed = 0;
    d->t = 0;
    d->inc_at = now + v[CC_P_timer];
}

static void mlx_run(struct cc *cc, uint64_t now)
{
    const uint64_t *v = cc->conf->v;
    struct cc_dcqcn *d = &cc->dcqcn;
    while (cc->due <= now) {
        uint64_t at = cc->due;
        /* Alpha first: a cut at the same time takes the new one. */
        if (d->active && (d->alpha || d->alpha_cnp) && d->alpha_at == at) {
            if (d->alpha_cnp)
                dcqcn_alpha_up(cc);
            else
                dcqcn_alpha_down(cc);
            d->alpha_cnp = 0;
            d->alpha_at += v[CC_P_alpha_timer];
        } else if (d->cut_owed && d->cut_at == at) {
            cut(cc, at);
        } else {
            dcqcn_increase_due(cc, true, now);
        }
        schedule(cc);
    }
    dcqcn_publish(cc);
}

/* The first CNP acts at once and starts the clocks. */
static void wake(struct cc *cc, uint64_t now)
{
    const uint64_t *v = cc->conf->v;
    struct cc_dcqcn *d = &cc->dcqcn;
    d->active = 1;
    d->alpha = (uint32_t)v[CC_P_alpha];
    d->alpha_cnp = 0;
    d->alpha_at = now + v[CC_P_alpha_timer];
    d->rt = d->rc;
    if (v[CC_P_first] && v[CC_P_first] < d->rc)
        d->rc = v[CC_P_first];
    cut(cc, now);
    d->cut_at = now + v[CC_P_reduce];
}

/* The first tick of a clock of this period that isn't before now. */
static uint64_t next_tick(uint64_t last, uint64_t period, uint64_t now)
{
    if (last >= now || period == 0)
        return last >= now ? last : now;
    return last + (now - last + period - 1) / period * period;
}

static void mlx_on_cnp(struct cc *cc, uint64_t now)
{
    const uint64_t *v = cc->conf->v;
    struct cc_dcqcn *d = &cc->dcqcn;
    cc_run(cc, now);
    bool forgotten = dcqcn_at_top(cc) && now - d->cnp_at >= v[CC_P_expire];
    if (!d->active || forgotten) {
        wake(cc, now);
    } else {
        d->alpha_at = next_tick(d->alpha_at, v[CC_P_alpha_timer], now);
        d->cut_at = next_tick(d->cut_at, v[CC_P_reduce], now);
        d->cut_owed = d->alpha_cnp = 1;
    }
    d->cnp_at = now;
    schedule(cc);
    cc_run(cc, now);
    dcqcn_publish(cc);
}

static bool mlx_on_loss(struct cc *cc, bool timeout, uint64_t now)
{
    (void)timeout;
    if (!cc->conf->v[CC_P_slow_restart])
        return false;
    cc_run(cc, now);
    dcqcn_halve(cc);
    cc->dcqcn.t = 0;
    cc->dcqcn.inc_at = now + cc->conf->v[CC_P_timer];
    schedule(cc);
    dcqcn_publish(cc);
    return true;
}

const struct cc_type cc_dcqcn_mlx = {
    .name = "dcqcn-mlx",
    .text = "DCQCN as network adapters do it",
    .uses = CC_BITS_LIMITER | CC_BITS_ALL | CC_BIT(g) | CC_BIT(alpha) | CC_BIT(alpha_timer) |
            CC_BIT(reduce) | CC_BIT(cut_shift) | CC_BIT(max_cut) | CC_BIT(timer) | CC_BIT(f) |
            CC_BIT(ai) | CC_BIT(hai) | CC_BIT(hai_steps) | CC_BIT(scale) | CC_BIT(first) |
            CC_BIT(clamp) | CC_BIT(clamp_inc) | CC_BIT(slow_restart) | CC_BIT(expire),
    .reacts = true,
    .start = mlx_start,
    .run = mlx_run,
    .on_cnp = mlx_on_cnp,
    .on_loss = mlx_on_loss,
    .alpha = dcqcn_alpha,
    .target = dcqcn_target,
};
