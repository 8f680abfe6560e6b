/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The pieces that faults are made of: a seeded random source, ECN's marking curve, and what may be
 * done to a frame's octets. Pure functions on their arguments.
 */
#ifndef URNIC_MEM_FAULT_H
#define URNIC_MEM_FAULT_H

#include <stdbool.h>
#include <stdint.h>

__extension__ typedef unsigned __int128 mem_u128; /* products of two 64-bit numbers */

/* splitmix64: eight octets of state, good enough for dice, the same on every machine. */
struct mem_rng {
    uint64_t state;
};

uint64_t mem_rng_next(struct mem_rng *rng);
/* A number in [0, n), n > 0. */
uint64_t mem_rng_below(struct mem_rng *rng, uint64_t n);
/* True with probability p. Draws nothing for p <= 0 or p >= 1, so that a fault that is switched off
 * doesn't change the sequence of the others. */
bool mem_rng_hit(struct mem_rng *rng, double p);

/* Probability of a mark at queue length q octets (CC-02): 0 up to kmin, linear to pmax at kmax, 1
 * above. kmin == kmax is a step. kmax == 0 switches marking off. */
double mem_ecn_probability(uint64_t q, uint64_t kmin, uint64_t kmax, double pmax);

/* Set the ECN field of an IPv4 or IPv6 frame (tagged or not) to CE and mend the IPv4 header
 * checksum. Returns true if the frame now says CE; false, and unchanged, if it isn't IP or its
 * sender didn't offer ECN (CC-01). */
bool mem_frame_mark_ce(uint8_t *frame, uint32_t len);

/* Flip `bits` (>= 1) distinct bits anywhere in the frame. */
void mem_frame_flip(uint8_t *frame, uint32_t len, unsigned bits, struct mem_rng *rng);

#endif
