/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The effect of a change of a few octets on an iCRC, without the rest of the packet: the CRC is
 * linear. A socket neither shows nor takes the IPv4 identification and the source port that the
 * iCRC covers (WIRE-11), so the sender corrects its iCRC for those that the kernel will use, and
 * the receiver finds the identification that makes a packet's iCRC right.
 *
 * Pure functions, except udp_icrc_init; any thread.
 */
#ifndef URNIC_UDP_ICRC_H
#define URNIC_UDP_ICRC_H

#include <stdbool.h>
#include <stdint.h>

/* Make the tables. Call it once before the others, from any thread; repeated calls have no effect.
 */
void udp_icrc_init(void);

/* The change (XOR) of an iCRC when two adjacent octets change by XOR with d0 and d1. `rest`: octets
 * between the second one and the iCRC, less than IO_FRAME_MAX. */
uint32_t udp_icrc_delta(uint8_t d0, uint8_t d1, uint32_t rest);

/* The inverse: the change of two octets there that makes this change of the iCRC. False: there is
 * none, as for all but one of 65,536 differences. */
bool udp_icrc_solve(uint32_t diff, uint32_t rest, uint8_t *d0, uint8_t *d1);

/* The change of four octets there that makes this change of the iCRC, the first one in the lowest
 * bits. `rest` counts from the fourth one. There always is one; 0 for a `rest` that is too
 * large. */
uint32_t udp_icrc_solve_four(uint32_t diff, uint32_t rest);

#endif
