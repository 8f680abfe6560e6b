/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Keeps the frames that a rule delays or reorders (FAULT_HOLD) until their time has come, or enough
 * other frames have passed. Frames are only pointers here. One thread at a time.
 *
 *     bits = fault_apply(f, dir, frame, len, now, &out);
 *     if (bits & FAULT_HOLD && fault_hold_add(h, frame, dir, &out, now))
 *         continue;                                  (it comes out of fault_hold_take)
 *     send(frame);
 *     fault_hold_passed(h, dir, out.flow, now);      (frames that it has overtaken may go now)
 *     ...
 *     while ((frame = fault_hold_take(h, now, &dir)))
 *         send(frame);
 */
#ifndef URNIC_FAULT_HOLD_H
#define URNIC_FAULT_HOLD_H

#include <stdbool.h>

#include "fault.h"

#define FAULT_GAPS 64u /* frames that wait to be overtaken, at a time */

struct fault_hold;

/* Room for `slots` frames. NULL = no memory. */
struct fault_hold *fault_hold_new(unsigned slots);
/* Take the remaining frames first, with now = UINT64_MAX: they are the caller's. */
void fault_hold_free(struct fault_hold *h);

/* Keep `frame` for the delay or gap in *out. False: no room, send it at once. */
bool fault_hold_add(struct fault_hold *h, void *frame, enum fault_dir dir,
                    const struct fault_out *out, uint64_t now);
/* Report that a frame of this direction and flow was sent. */
void fault_hold_passed(struct fault_hold *h, enum fault_dir dir, uint64_t flow, uint64_t now);
/* The next frame that is due, and its direction (dir may be NULL); NULL = none yet. */
void *fault_hold_take(struct fault_hold *h, uint64_t now, enum fault_dir *dir);
/* The time of the next frame for fault_hold_take; UINT64_MAX = empty. */
uint64_t fault_hold_deadline(const struct fault_hold *h);
/* Frames in it. */
unsigned fault_hold_count(const struct fault_hold *h);

#endif
