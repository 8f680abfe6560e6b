/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames for programs: into their channels.
 */
#ifndef NIC_SWITCH_RX_H
#define NIC_SWITCH_RX_H

#include "switch_channel.h"

/* Frames have come, from the port or from the device itself, at most IO_BURST_MAX. Those for queue
 * pairs of programs are given to their channels, and copies of datagrams to groups. Returns which
 * of them no engine of the daemon must see: bit i for frames[i]. */
uint64_t switch_rx(struct nic_switch *s, const struct io_frame *frames, unsigned n);

/* Give a frame to a channel; its first octets, up to head_len, are taken from `head`.  Returns
 * whether it had room; else the frame is lost and counted. */
bool switch_put(struct nic_switch *s, struct switch_channel *c, const uint8_t *head,
                uint32_t head_len, const struct io_frame *frame);

#endif
