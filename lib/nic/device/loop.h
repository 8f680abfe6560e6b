/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames from a device to itself: to one of its own addresses, or to a group that it is a member of
 * (UD-10). No switch sends such frames back. So they are taken out of a burst before the port gets
 * it, and received in the next round like any other frame.
 *
 * Runs on the device's worker.
 */
#ifndef NIC_LOOP_H
#define NIC_LOOP_H

#include <stdbool.h>

#include "io.h"

struct device;
struct loop;

/* Let the device send to itself. 0, also if it could before, or -ENOMEM. */
int loop_start(struct device *d);
void loop_free(struct loop *l);

/* Do frames wait? */
bool loop_waits(const struct loop *l);
/* The number of further frames that fit. */
unsigned loop_room(const struct loop *l);
/* Check the `n` slots of a burst. A frame to the device itself is taken, and its slot's len becomes
 * 0; a frame to one of its groups is copied. A frame for another worker of the device goes to that
 * worker. */
void loop_take(struct device *d, struct io_slot *slots, unsigned n);
/* The oldest waiting frames, at most `max`; they stay in place until they are released. */
unsigned loop_peek(const struct loop *l, struct io_frame *out, unsigned max);
void loop_release(struct loop *l, unsigned n);

#endif
