/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the daemon tells an engine in a program, in its place among the frames: a frame that no
 * network carries. Only RoCEv2 packets get from a port into a channel, so it can only be the
 * daemon's.
 */
#ifndef NIC_SWITCH_NEWS_H
#define NIC_SWITCH_NEWS_H

#include <stdbool.h>
#include <stdint.h>

struct nic_switch;

/* The connection of this queue pair of a program is over: it is to go to ERR. Returns whether that
 * could be said; if not, the ring was full, and the program learns it with the connection's event.
 * On the device's worker. */
bool switch_news_over(struct nic_switch *s, uint32_t qpn);

/* A frame has come to a program. Returns the queue pair whose connection is over; 0: it says
 * nothing of that. */
uint32_t switch_news_read(const uint8_t *frame, uint32_t len);

#endif
