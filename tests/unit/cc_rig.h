/* SPDX-License-Identifier: BSD-3-Clause
 *
 * For the tests of congestion control's algorithms: one queue pair's state, on a line of 40 Gb/s.
 */
#ifndef URNIC_CC_RIG_H
#define URNIC_CC_RIG_H

#include "cc_of.h"

#define US   1000ull
#define MS   1000000ull
#define MBIT 1000000ull
#define GBIT 1000000000ull

static struct cc_conf conf;
static struct cc cc;

static inline void start_at(const char *spec, uint64_t now)
{
    conf = cc_of(spec);
    cc_start(&cc, &conf, 40 * GBIT, 1024, now);
}

static inline void start(const char *spec)
{
    start_at(spec, 0);
}

static inline uint64_t rate_at(uint64_t now)
{
    cc_run(&cc, now);
    return cc.rate;
}

#endif
