/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames from programs: checked, and on to where they are for.
 */
#ifndef NIC_SWITCH_TX_H
#define NIC_SWITCH_TX_H

#include "switch_channel.h"

#define SWITCH_QUANTUM 32u /* frames of one channel, then it is the next one's turn */

/* Take frames from channels, in turn, and fill slots with those for the port; each frame has found
 * a slot before it is taken. Then the slots are as those that the daemon's engine has filled: a
 * frame to the device's own MAC and one to a group that has members here (switch_group_has) come
 * back to switch_rx and to that engine, which the caller sees to.
 *
 * slots  lent by the port, len 0
 * n      how many, at most IO_BURST_MAX
 * now    ns
 *
 * Returns how many are filled: the first ones. Less than n: nothing waits any more. */
unsigned switch_tx(struct nic_switch *s, struct io_slot *slots, unsigned n, uint64_t now);

#endif
