/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A preset on a line of another rate than its source's. An algorithm that is slower in everything,
 * as packets and queues are on a slower line, behaves the same: so rates follow the line, times its
 * reciprocal, and octets stay. Times do not get shorter on a faster line: they wait for CNPs and
 * round trips, which a faster line hardly shortens. Rules: CC-31.
 */
#include <inttypes.h>
#include <stdio.h>

#include "cc.h"

#define RATES    (CC_BIT(ai) | CC_BIT(hai) | CC_BIT(min))
#define TIMES    (CC_BIT(timer) | CC_BIT(alpha_timer) | CC_BIT(reduce) | CC_BIT(cnp_interval))
#define STEP     1000u /* an ai of a 1,000th of the line: the paper's */
#define STEP_BIG 100u  /* an ai of more than a 100th: queues and marks grow */

__extension__ typedef unsigned __int128 wide; /* products of two 64-bit numbers */

static uint64_t line_of(const struct cc_conf *c, uint64_t line_rate)
{
    if (c->v[CC_P_line])
        line_rate = c->v[CC_P_line];
    return line_rate ? line_rate : CC_LINE_RATE;
}

/* Parameters of the preset that depend on the line and that the text does not name. */
static uint64_t scaled(const struct cc_conf *c)
{
    return c->line && c->v[CC_P_scale] ? (RATES | TIMES) & ~c->given & c->type->uses : 0;
}

void cc_conf_fit(struct cc_conf *c, uint64_t line_rate)
{
    uint64_t line = line_of(c, line_rate), which = scaled(c);
    if (c->fitted)
        return;
    c->fitted = true;
    if (line >= c->line)
        which &= RATES;
    for (unsigned i = 0; i < CC_PARAM_MAX; i++) {
        const struct cc_param_info *p = &cc_params[i];
        if (!(which & 1ull << i))
            continue;
        wide v =
            p->unit == CC_RATE ? (wide)c->v[i] * line / c->line : (wide)c->v[i] * c->line / line;
        uint64_t in = v > p->max ? p->max : v < p->min ? p->min : (uint64_t)v;
        if (in != v)
            c->bounded |= 1ull << i;
        c->v[i] = in;
    }
}

static void name_bounded(const struct cc_conf *c, char *why, size_t size)
{
    size_t n = (size_t)snprintf(why, size, "the preset is for faster links;");
    for (unsigned i = 0; i < CC_PARAM_MAX && n < size; i++) {
        char value[32];
        if (!(c->bounded & 1ull << i))
            continue;
        cc_value_format(cc_params[i].unit, c->v[i], value, sizeof(value));
        n += (size_t)snprintf(why + n, size - n, " %s=%s is the bound, another value would fit;",
                              cc_params[i].name, value);
    }
    if (n < size)
        snprintf(why + n, size - n, " queues and marks may grow");
}

bool cc_conf_fits(const struct cc_conf *c, uint64_t line_rate, char *why, size_t size)
{
    struct cc_conf fit = *c;
    uint64_t line = line_of(c, line_rate), ai;
    if (!c->type->reacts)
        return true;
    cc_conf_fit(&fit, line_rate);
    ai = fit.v[CC_P_ai];
    if (!line_rate && !c->v[CC_P_line] && scaled(c)) {
        snprintf(why, size,
                 "the port does not tell its line rate, so %s:%s is made for %.3g Gb/s; line=RATE "
                 "makes it fit",
                 c->type->name, c->preset, (double)line / 1e9);
    } else if (fit.bounded) {
        name_bounded(&fit, why, size);
    } else if (ai > line / STEP_BIG) {
        uint64_t right = line / STEP;
        snprintf(why, size,
                 "a step of ai=%" PRIu64 " is %.1f %% of the line's %.3g Gb/s, queues and marks "
                 "grow; ai=%" PRIu64 ",hai=%" PRIu64 " fit",
                 ai, 100.0 * (double)ai / (double)line, (double)line / 1e9, right,
                 (uint64_t)((double)fit.v[CC_P_hai] * (double)right / (double)ai));
    } else {
        return true;
    }
    return false;
}
