/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Dice: splitmix64. Its state is one word, any value will do, and the same one gives the same
 * numbers on every machine. Pure functions on their arguments.
 */
#ifndef URNIC_FAULT_DICE_H
#define URNIC_FAULT_DICE_H

#include <stdbool.h>
#include <stdint.h>

__extension__ typedef unsigned __int128 fault_u128; /* products of two 64-bit numbers */

/* Each bit of the result depends on each of `z`. */
static inline uint64_t fault_mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/* The next number. */
static inline uint64_t fault_draw(uint64_t *dice)
{
    return fault_mix(*dice += 0x9E3779B97F4A7C15u);
}

/* 0 <= x < n, n > 0 */
static inline uint64_t fault_draw_below(uint64_t *dice, uint64_t n)
{
    return (uint64_t)((fault_u128)fault_draw(dice) * n >> 64);
}

/* 0 <= x < 1 */
static inline double fault_draw_unit(uint64_t *dice)
{
    return (double)(fault_draw(dice) >> 11) * 0x1p-53;
}

/* True with probability p. Draws nothing for p <= 0 or p >= 1, so that a fault that is switched off
 * doesn't change the sequence of the others. */
static inline bool fault_draw_hit(uint64_t *dice, double p)
{
    return p >= 1 || (p > 0 && fault_draw_unit(dice) < p);
}

#endif
