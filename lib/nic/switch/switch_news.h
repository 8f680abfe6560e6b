/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the daemon and an engine in a program tell each other, in its place among the frames: a
 * frame that no network carries. Only RoCEv2 packets get from a port into a channel, so one that
 * comes to a program can only be the daemon's; the switch passes none on.
 */
#ifndef NIC_SWITCH_NEWS_H
#define NIC_SWITCH_NEWS_H

#include <stdbool.h>
#include <stdint.h>

struct io_frame;
struct nic_switch;
struct switch_channel;

/* The connection of this queue pair of a program is over: it is to go to ERR. Returns whether that
 * could be said; if not, the ring was full, and the program learns it with the connection's event.
 * On the device's worker. */
bool switch_news_over(struct nic_switch *s, uint32_t qpn);

/* The page of facts is new: programs that sleep wake up, and read it. On the device's worker. */
void switch_news_facts(struct nic_switch *s);

/* A frame has come to a program. Returns the queue pair whose connection is over; 0: it says
 * nothing of that. */
uint32_t switch_news_read(const uint8_t *frame, uint32_t len);

/* A program says: this queue pair has got its first request (CM-23). Writes the frame to a slot of
 * `cap` octets. Returns its length; 0: the slot is too small. */
uint32_t switch_news_comm_est(uint8_t *frame, uint32_t cap, uint32_t qpn);
/* A frame of a program: if it says that of a queue pair of its own, tell nic_switch.comm_est.
 * Returns whether it did. On the device's worker. */
bool switch_news_hear(struct nic_switch *s, struct switch_channel *from,
                      const struct io_frame *frame);

#endif
