/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames between the members of a team (team.h). A queue pair's number names its member in clear
 * (qpn.h); a datagram for QP1 goes where its connection or its listener is (gsi_ops.member). What
 * isn't RoCE, and what is for a group, goes to several: all learn of neighbours, member 0 alone
 * answers.
 *
 * On the device's worker. Nothing here is called on a device of one worker.
 */
#ifndef NIC_STEER_H
#define NIC_STEER_H

#include <stdbool.h>
#include <stdint.h>

#include "io.h"

struct device;

/* io_frame.flags of frames from other members, beside IO_RX_* */
#define STEER_LOOP 0x100u /* the device has sent it to itself: it may have no iCRC */
#define STEER_COPY 0x200u /* another member has it as well, which counts and captures it */

/* A frame came to this member's port. Is it for another one? Then that one has it, or it was lost,
 * which is counted. A frame for a group goes to all other members that are in one, too. */
bool steer_away(struct device *d, const struct io_frame *frame);
/* It isn't RoCE: the other members are to learn from it as well. */
void steer_copy(struct device *d, const uint8_t *frame, uint32_t len);
/* This member sends a frame to the device's own address. Is it for another member? Then that one
 * has it. */
bool steer_loop(struct device *d, const struct io_slot *slot);
/* ... to a group: the other members that are in one have it. */
void steer_loop_group(struct device *d, const struct io_slot *slot);
/* Are other members in groups? */
bool steer_groups(const struct device *d);
/* Wake the members that have been given something since the last call. */
void steer_wake(struct device *d);

/* Frames from the other members, `max` at most, and giving back what was lent. */
unsigned steer_peek(struct device *d, struct io_frame *out, unsigned max);
void steer_release(struct device *d);

#endif
