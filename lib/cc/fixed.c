/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A constant rate: for experiments, and to slow down one queue pair.
 */
#include "cc.h"

static void fixed_start(struct cc *cc, uint64_t now)
{
    (void)now;
    cc->rate = cc->conf->v[CC_P_rate];
}

const struct cc_type cc_fixed = {
    .name = "fixed",
    .text = "a constant rate, without reactions",
    .uses = CC_BIT(rate) | CC_BIT(burst) | CC_BIT(burst_pkts) | CC_BITS_ALL | CC_BIT(prios),
    .start = fixed_start,
};
