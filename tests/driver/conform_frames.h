/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames that carry a number and octets that follow from it. A wrong frame ends the Check test.
 */
#ifndef URNIC_TESTS_CONFORM_FRAMES_H
#define URNIC_TESTS_CONFORM_FRAMES_H

#include "io.h"

#define FRAME_MIN 78u /* of RoCEv2 over IPv6 */

/* The length of a frame follows from its number, too. */
typedef uint32_t (*length_fn)(uint32_t number);

/* The monotonic clock's time. */
uint64_t now_ns(void);

/* From now on frames are RoCEv2 packets from one IP address to another, and back: the port sees to
 * their MAC addresses, source port and IPv4 identification. */
void frame_roce(const struct io_addr *a, const struct io_addr *b);

/* Make frame `number`, `len` octets at f. */
void frame_fill(uint8_t *f, uint32_t len, uint32_t number);
/* Is it one of ours? Other frames (a kernel's on a veth) are to be ignored. */
bool frame_ours(const struct io_frame *f);
/* Check that the frame is as frame_fill has made it. */
void frame_check(const struct io_frame *f, uint32_t number, uint32_t len);

/* Send up to `max` frames from `number` on; returns the number that the port took. */
unsigned send_some(struct io_port *io, uint32_t number, unsigned max, length_fn len);
/* Receive the waiting frames and check that they are number, number + 1, ...; returns the number of
 * our frames. */
unsigned receive_some(struct io_port *io, uint32_t number, length_fn len);

#endif
