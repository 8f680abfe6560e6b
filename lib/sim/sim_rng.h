/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Random numbers of the simulation: a counter that is mixed (SplitMix64), so that a stream is one
 * word and every object may have its own.
 */
#ifndef URNIC_SIM_RNG_H
#define URNIC_SIM_RNG_H

#include <stdint.h>

struct sim_rng {
    uint64_t s;
};

static inline uint64_t sim_mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

static inline uint64_t sim_rand(struct sim_rng *r)
{
    return sim_mix(r->s += 0x9E3779B97F4A7C15ull);
}

/* 0 <= x < 1 */
static inline double sim_rand_unit(struct sim_rng *r)
{
    return (double)(sim_rand(r) >> 11) * 0x1p-53;
}

/* 0 <= x < n, n > 0 */
static inline uint32_t sim_rand_below(struct sim_rng *r, uint32_t n)
{
    return (uint32_t)((sim_rand(r) >> 32) * n >> 32);
}

#endif
