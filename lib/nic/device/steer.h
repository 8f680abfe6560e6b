/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames between the members of a team (team.h). A queue pair's number names its member in clear,
 * or a block of a program, which belongs to a member (qpn.h, blocks.h). A datagram for QP1 goes to
 * the member with its connection or its listener (gsi_ops.member). Multicast and frames that are
 * not RoCE go to several members: all learn of neighbours, member 0 alone answers.
 *
 * On the device's worker. A device of one worker calls nothing here.
 */
#ifndef NIC_STEER_H
#define NIC_STEER_H

#include <stdbool.h>
#include <stdint.h>

#include "io.h"

struct device;

/* io_frame.flags of frames from other members, beside IO_RX_* */
#define STEER_LOOP 0x100u /* the device's own frame: it may have no iCRC */
#define STEER_COPY 0x200u /* another member has it as well, and counts and captures it */

/* This member's port has received a frame. Is it for another member? That member then gets it, or
 * it is lost and counted. A multicast frame also goes to all other members with queue pairs in
 * groups. */
bool steer_away(struct device *d, const struct io_frame *frame);
/* Pass a frame that isn't RoCE to the other members, which learn from it as well. */
void steer_copy(struct device *d, const uint8_t *frame, uint32_t len);
/* This member sends a frame to the device's own address. Is it for another member? That member then
 * gets it. */
bool steer_loop(struct device *d, const struct io_slot *slot);
/* Pass a frame to a group to the other members with queue pairs in groups. */
void steer_loop_group(struct device *d, const struct io_slot *slot);
/* Are other members in groups? */
bool steer_groups(const struct device *d);
/* Wake the members that got frames since the last call. */
void steer_wake(struct device *d);

/* Borrow frames from the other members, `max` at most; return the borrowed ones. */
unsigned steer_peek(struct device *d, struct io_frame *out, unsigned max);
void steer_release(struct device *d);

#endif
