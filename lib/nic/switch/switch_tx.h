/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Checking frames from programs, and passing them on.
 */
#ifndef NIC_SWITCH_TX_H
#define NIC_SWITCH_TX_H

#include "switch_channel.h"

/* The turn of a channel of weight 1: frames, and octets. The last frames may exceed the octets; the
 * next turns are shorter then. */
#define SWITCH_QUANTUM 32u
#define SWITCH_OCTETS  16384u

/* Take frames from channels, in turn, and fill slots with frames for the port; a frame is taken
 * only when it has a slot. Afterwards the slots are like those that the daemon's engine has filled.
 * A frame to the device's own MAC, and one to a group with members here (switch_group_has), must
 * return to switch_rx and that engine, which is the caller's task.
 *
 * `slots` are the port's, with len 0. `n` is their number, at most IO_BURST_MAX. `now` is in ns.
 *
 * Returns the number filled, the first ones. Less than n: no frame waits any more. */
unsigned switch_tx(struct nic_switch *s, struct io_slot *slots, unsigned n, uint64_t now);

#endif
