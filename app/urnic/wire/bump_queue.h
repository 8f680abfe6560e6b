/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames that a bump in the wire keeps for a while: copies of them, in the waiting room of
 * lib/fault.
 *
 * Bounded: a frame without room is refused, and the queue never grows. One thread.
 */
#ifndef URNIC_BUMP_QUEUE_H
#define URNIC_BUMP_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "fault_hold.h"

struct bump_kept {
    uint32_t len;
    uint8_t data[];
};

struct bump_queue {
    struct fault_hold *hold;
    uint32_t max, room; /* most frames; octets of each */
    struct bump_kept **spare;
    uint32_t nspare;
};

/* Room for `max` frames of up to `room` octets; the buffers are made when needed.
 * Returns 0 or -ENOMEM. */
int bump_queue_init(struct bump_queue *q, uint32_t max, uint32_t room);
void bump_queue_free(struct bump_queue *q);

/* Keep a copy of a frame of direction `dir` as `out` (delay, gap, within, flow) says. Returns false
 * when there is no room for it. */
bool bump_queue_put(struct bump_queue *q, enum fault_dir dir, const uint8_t *data, uint32_t len,
                    const struct fault_out *out, uint64_t now);

/* The next frame that is due at `now`, in the order of their times; NULL = none. Give it back when
 * it has been sent. */
struct bump_kept *bump_queue_take(struct bump_queue *q, uint64_t now);
void bump_queue_give(struct bump_queue *q, struct bump_kept *k);

static inline unsigned bump_queue_len(const struct bump_queue *q)
{
    return fault_hold_count(q->hold);
}

#endif
