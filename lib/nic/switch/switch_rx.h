/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Passing received frames to programs' channels.
 */
#ifndef NIC_SWITCH_RX_H
#define NIC_SWITCH_RX_H

#include "switch_channel.h"

/* Pass at most IO_BURST_MAX received frames, from the port or from the device itself: frames for
 * queue pairs of programs to their channels, copies of datagrams to groups to the members. Returns
 * a bit i for each frames[i] that the daemon's engine must not see. */
uint64_t switch_rx(struct nic_switch *s, const struct io_frame *frames, unsigned n);

/* Wake the sleeping programs that have got more than SWITCH_FEW frames of one burst: switch_rx has
 * woken only the others. Each wake-up takes as long as dozens of frames, and the program may take
 * the core at once. So during a stream (`stream`: more frames are likely in the next burst) these
 * programs are woken only every SWITCH_HELD_BURSTS. The caller calls it after each burst and, with
 * false, when it has found no frame and before it yields. */
#define SWITCH_FEW         4u
#define SWITCH_HELD_BURSTS 8u
void switch_wake(struct nic_switch *s, bool stream);
/* The channel is being closed. */
void switch_wake_forget(struct nic_switch *s, const struct switch_channel *c);

/* Give a frame to a channel; its first octets, up to head_len, are taken from `head`.  Returns
 * whether it had room; else the frame is lost and counted. */
bool switch_put(struct nic_switch *s, struct switch_channel *c, const uint8_t *head,
                uint32_t head_len, const struct io_frame *frame);

#endif
