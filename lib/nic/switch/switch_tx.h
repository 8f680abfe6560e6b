/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames from programs: checked, and on to where they are for.
 */
#ifndef NIC_SWITCH_TX_H
#define NIC_SWITCH_TX_H

#include "switch_channel.h"

#define SWITCH_QUANTUM 32u /* frames of one channel, then it is the next one's turn */

/* Take frames from channels, in turn, and fill slots with those for the port; each frame has found
 * a slot before it is taken. A frame to the device's own MAC that is in a slot is for the engine of
 * the daemon; one to a group is for its members there, too.
 *
 * slots  lent by the port, len 0
 * n      how many, at most IO_BURST_MAX
 * now    ns
 *
 * Returns how many are filled: the first ones. Less than n: nothing waits any more. */
unsigned switch_tx(struct nic_switch *s, struct io_slot *slots, unsigned n, uint64_t now);

#endif
