/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The parts of faults: ECN's marking curve, and changes of a frame's octets. Pure functions on
 * their arguments.
 */
#ifndef URNIC_MEM_FAULT_H
#define URNIC_MEM_FAULT_H

#include <stdbool.h>
#include <stdint.h>

/* Probability of a mark at queue length q octets (CC-02): 0 up to kmin, linear to pmax at kmax, 1
 * above. kmin == kmax is a step. kmax == 0 switches marking off. */
double mem_ecn_probability(uint64_t q, uint64_t kmin, uint64_t kmax, double pmax);

/* Set the ECN field of an IPv4 or IPv6 frame (tagged or not) to CE and mend the IPv4 header
 * checksum. Returns true if the frame now says CE; false, and unchanged, if it isn't IP or its
 * sender didn't offer ECN (CC-01). */
bool mem_frame_mark_ce(uint8_t *frame, uint32_t len);

/* Flip `bits` (1 .. 8) distinct bits anywhere in the frame, where the dice say (fault_dice.h). */
void mem_frame_flip(uint8_t *frame, uint32_t len, unsigned bits, uint64_t *dice);

#endif
