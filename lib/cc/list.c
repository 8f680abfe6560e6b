/* SPDX-License-Identifier: BSD-3-Clause
 *
 * All congestion control algorithms, and their common functions. A new one is one file, one line
 * here, and its presets.
 */
#include <string.h>

#include "cc.h"

const struct cc_type *const cc_types[] = {
    &cc_none, &cc_fixed, &cc_dcqcn, &cc_dcqcn_mlx, &cc_timely, &cc_swift, NULL,
};

const struct cc_type *cc_type_find(const char *name)
{
    for (const struct cc_type *const *t = cc_types; *t; t++)
        if (!strcmp((*t)->name, name))
            return *t;
    return NULL;
}

void cc_start(struct cc *cc, const struct cc_conf *conf, uint64_t line_rate, uint32_t mtu,
              uint64_t now)
{
    uint64_t line = conf->v[CC_P_line] ? conf->v[CC_P_line] : line_rate;
    *cc = (struct cc){
        .rate = CC_UNLIMITED,
        .window = CC_NO_WINDOW,
        .mtu = mtu,
        .due = CC_NEVER,
        .conf = conf,
        .line = line ? line : CC_LINE_RATE,
    };
    conf->type->start(cc, now);
}

uint32_t cc_alpha(const struct cc *cc)
{
    return cc->conf->type->alpha ? cc->conf->type->alpha(cc) : 0;
}

uint64_t cc_target(const struct cc *cc)
{
    return cc->conf->type->target && cc->rate != CC_UNLIMITED ? cc->conf->type->target(cc)
                                                              : cc->rate;
}
