/* SPDX-License-Identifier: BSD-3-Clause
 *
 * DCQCN, the reaction point of SIGCOMM 2015: each CNP cuts the rate by alpha / 2; without CNPs
 * alpha decays, and the rate recovers in steps that a timer and a byte counter make.
 * Rules: CC-09..CC-14, CC-18, CC-20, CC-22.
 *
 * Events and their times: alpha_at (decay), inc_at (increase by the timer), cut_at (a remembered
 * CNP is acted on when the rate reduce period ends). Until the first CNP there are none, and again
 * when the rate has come back to the line's and alpha has decayed to nothing.
 */
#include "dcqcn_rate.h"

static void schedule(struct cc *cc)
{
    const struct cc_dcqcn *d = &cc->dcqcn;
    cc->due = CC_NEVER;
    if (d->active && d->alpha && d->alpha_at < cc->due)
        cc->due = d->alpha_at;
    if (!dcqcn_at_top(cc) && d->inc_at < cc->due)
        cc->due = d->inc_at;
    if (d->cut_owed && d->cut_at < cc->due)
        cc->due = d->cut_at;
}

static void new_stages(struct cc *cc, uint64_t now)
{
    struct cc_dcqcn *d = &cc->dcqcn;
    d->t = d->bc = 0;
    d->inc_at = now + cc->conf->v[CC_P_timer];
    d->octets = cc->conf->v[CC_P_bytes];
}

static void dcqcn_start(struct cc *cc, uint64_t now)
{
    dcqcn_rest(cc);
    new_stages(cc, now);
    schedule(cc);
}

/* CC-10. */
static void cut(struct cc *cc, uint64_t now)
{
    const uint64_t *v = cc->conf->v;
    struct cc_dcqcn *d = &cc->dcqcn;
    bool clamp = v[CC_P_clamp] || (v[CC_P_clamp_inc] && d->t > 0);
    dcqcn_cut(cc, clamp);
    dcqcn_alpha_up(cc);
    d->alpha_at = now + v[CC_P_alpha_timer];
    d->cut_at = now + v[CC_P_reduce];
    d->cut_owed = 0;
    new_stages(cc, now);
}

static void dcqcn_run(struct cc *cc, uint64_t now)
{
    struct cc_dcqcn *d = &cc->dcqcn;
    while (cc->due <= now) {
        uint64_t at = cc->due;
        if (d->cut_owed && d->cut_at == at) {
            cut(cc, at);
        } else if (d->active && d->alpha && d->alpha_at == at) {
            dcqcn_alpha_down(cc);
            d->alpha_at += cc->conf->v[CC_P_alpha_timer];
        } else {
            dcqcn_increase_due(cc, false, now);
        }
        schedule(cc);
    }
    dcqcn_publish(cc);
}

/* The first CNP, or the first one after the state has decayed (CC-22). */
static void wake(struct cc *cc)
{
    const uint64_t *v = cc->conf->v;
    struct cc_dcqcn *d = &cc->dcqcn;
    d->active = 1;
    d->alpha = (uint32_t)v[CC_P_alpha];
    d->cut_at = 0;
    if (v[CC_P_first] && v[CC_P_first] < d->rc)
        d->rc = v[CC_P_first];
}

static void dcqcn_on_cnp(struct cc *cc, uint64_t now)
{
    struct cc_dcqcn *d = &cc->dcqcn;
    cc_run(cc, now);
    bool forgotten = dcqcn_at_top(cc) && now - d->cnp_at >= cc->conf->v[CC_P_expire];
    if (!d->active || forgotten)
        wake(cc);
    d->cnp_at = now;
    if (now < d->cut_at)
        d->cut_owed = 1;
    else
        cut(cc, now);
    schedule(cc);
    dcqcn_publish(cc);
}

static bool dcqcn_on_loss(struct cc *cc, bool timeout, uint64_t now)
{
    (void)timeout;
    if (!cc->conf->v[CC_P_slow_restart])
        return false;
    cc_run(cc, now);
    dcqcn_halve(cc);
    new_stages(cc, now);
    schedule(cc);
    dcqcn_publish(cc);
    return true;
}

static void dcqcn_on_send(struct cc *cc, uint32_t octets, uint64_t now)
{
    struct cc_dcqcn *d = &cc->dcqcn;
    uint64_t every = cc->conf->v[CC_P_bytes];
    (void)now;
    if (!every)
        return;
    if (octets < d->octets) {
        d->octets -= octets;
        return;
    }
    d->octets += every - octets;
    if (d->octets > every) /* a packet of more than one period */
        d->octets = every;
    dcqcn_increase(cc, false);
    d->bc++;
    schedule(cc);
    dcqcn_publish(cc);
}

const struct cc_type cc_dcqcn = {
    .name = "dcqcn",
    .text = "DCQCN as in SIGCOMM 2015",
    .uses = CC_BITS_LIMITER | CC_BITS_ALL | CC_BIT(g) | CC_BIT(alpha) | CC_BIT(alpha_timer) |
            CC_BIT(reduce) | CC_BIT(cut_shift) | CC_BIT(max_cut) | CC_BIT(timer) | CC_BIT(bytes) |
            CC_BIT(f) | CC_BIT(ai) | CC_BIT(hai) | CC_BIT(hai_steps) | CC_BIT(scale) |
            CC_BIT(first) | CC_BIT(clamp) | CC_BIT(clamp_inc) | CC_BIT(slow_restart) |
            CC_BIT(expire),
    .reacts = true,
    .start = dcqcn_start,
    .run = dcqcn_run,
    .on_cnp = dcqcn_on_cnp,
    .on_loss = dcqcn_on_loss,
    .on_send = dcqcn_on_send,
    .alpha = dcqcn_alpha,
    .target = dcqcn_target,
};
