/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Random numbers of the simulation: the dice of lib/fault. Their state is one word, so that every
 * object may have a stream of its own.
 */
#ifndef URNIC_SIM_RNG_H
#define URNIC_SIM_RNG_H

#include <stdint.h>

#include "fault_dice.h"

struct sim_rng {
    uint64_t s;
};

static inline uint64_t sim_mix(uint64_t z)
{
    return fault_mix(z);
}

static inline uint64_t sim_rand(struct sim_rng *r)
{
    return fault_draw(&r->s);
}

/* 0 <= x < 1 */
static inline double sim_rand_unit(struct sim_rng *r)
{
    return fault_draw_unit(&r->s);
}

/* 0 <= x < n, n > 0 */
static inline uint32_t sim_rand_below(struct sim_rng *r, uint32_t n)
{
    return (uint32_t)((sim_rand(r) >> 32) * n >> 32);
}

#endif
