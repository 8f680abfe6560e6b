/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames of a device to itself: to one of its own addresses, or to a group of which it is a member
 * (UD-10). No switch sends them back, so they go round here: taken out of a burst before the port
 * has it, received in the next round like any other frame.
 *
 * Runs on the device's worker.
 */
#ifndef NIC_LOOP_H
#define NIC_LOOP_H

#include <stdbool.h>

#include "io.h"

struct device;
struct loop;

/* From now on the device may send to itself. 0, also when it could before, or -ENOMEM. */
int loop_start(struct device *d);
void loop_free(struct loop *l);

/* Do frames wait? */
bool loop_waits(const struct loop *l);
/* For how many more frames there is room. */
unsigned loop_room(const struct loop *l);
/* Look through the `n` slots of a burst: a frame to ourselves is taken and its slot's len becomes
 * 0, one to a group of ours is copied. One for another worker of the device goes there. */
void loop_take(struct device *d, struct io_slot *slots, unsigned n);
/* The oldest frames that wait, at most `max`; they stay in place until they are released. */
unsigned loop_peek(const struct loop *l, struct io_frame *out, unsigned max);
void loop_release(struct loop *l, unsigned n);

#endif
