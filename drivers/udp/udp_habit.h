/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A peer's habit of choosing the IPv4 identification of its packets. A socket does not show the
 * identification, but the iCRC covers it (ICRC-08). Any identification that makes the iCRC right is
 * accepted, so a damaged packet passes once in 2^15. Once a peer has kept to a habit for long, only
 * identifications that fit it are accepted.
 *
 * Pure functions; any thread.
 */
#ifndef URNIC_UDP_HABIT_H
#define URNIC_UDP_HABIT_H

#include <stdbool.h>
#include <stdint.h>

#define UDP_HABIT_PACKETS 1000u /* packets in a row that make a habit */
#define UDP_HABIT_BROKEN  16u   /* packets in a row outside it that end it */
#define UDP_HABIT_STEP                                                                             \
    1024u /* identifications after the last one that fit a count: packets lost, or sent to others  \
           */

/* All zero: nothing is known. */
struct udp_habit {
    uint16_t last; /* identification of the last good packet */
    bool last_df;
    uint16_t small, counts; /* packets in a row that fitted: DF and place in a train; counting up */
    uint8_t strange;        /* packets in a row that did not fit */
};

/* The likely identification of the next packet, which is at `place` of its train. DF is set. */
uint16_t udp_habit_guess(const struct udp_habit *h, uint16_t place);
/* Record a packet with an iCRC that is right for this identification and DF. False: by the peer's
 * habit it is damaged. */
bool udp_habit_take(struct udp_habit *h, uint16_t id, bool df);

#endif
