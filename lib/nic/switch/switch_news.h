/* SPDX-License-Identifier: BSD-3-Clause
 *
 * News between the daemon and an engine in a program, in order with the frames. News is a frame
 * that no network carries. Only RoCEv2 packets get from a port into a channel, so news in a program
 * can only come from the daemon; the switch passes none on.
 */
#ifndef NIC_SWITCH_NEWS_H
#define NIC_SWITCH_NEWS_H

#include <stdbool.h>
#include <stdint.h>

struct io_frame;
struct io_icmp;
struct nic_switch;
struct switch_channel;

/* Report that the connection of this queue pair of a program is over, so that it goes to ERR.
 * False: the ring was full, and the program learns it from the connection's event. On the device's
 * worker. */
bool switch_news_over(struct nic_switch *s, uint32_t qpn);

/* Report a change of the page of facts: sleeping programs wake up and read it. On the device's
 * worker. */
void switch_news_facts(struct nic_switch *s);

/* Report an ICMP error to all programs, for the flight recorders of their queue pairs (CM-39). On
 * the device's worker. */
void switch_news_icmp(struct nic_switch *s, const struct io_icmp *icmp);

/* A frame has come to a program. Returns the queue pair whose connection is over; 0: it has no such
 * news. */
uint32_t switch_news_read(const uint8_t *frame, uint32_t len);
/* The same for an ICMP error: writes it to *out. False: it has no such news. */
bool switch_news_read_icmp(const uint8_t *frame, uint32_t len, struct io_icmp *out);

/* A program reports that this queue pair has got its first request (CM-23). Writes the frame to a
 * slot of `cap` octets. Returns its length; 0: the slot is too small. */
uint32_t switch_news_comm_est(uint8_t *frame, uint32_t cap, uint32_t qpn);
/* A program reports an ICMP error that the kernel has given to one of its sockets. As
 * switch_news_comm_est. */
uint32_t switch_news_heard(uint8_t *frame, uint32_t cap, const struct io_icmp *icmp);
/* If a program's frame reports one of these, about a queue pair or to a socket of its own, call
 * nic_switch.comm_est or nic_switch.icmp. Returns whether it does. On the device's worker. */
bool switch_news_hear(struct nic_switch *s, struct switch_channel *from,
                      const struct io_frame *frame);

#endif
