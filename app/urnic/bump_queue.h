/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames that a bump in the wire keeps for a while: until a time, or until others have passed.
 *
 * Bounded: what doesn't fit is refused, never grown for. One thread.
 */
#ifndef URNIC_BUMP_QUEUE_H
#define URNIC_BUMP_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bump_kept {
    uint64_t due;   /* ns; a held frame: when it goes at the latest */
    uint64_t order; /* of those due at the same time the first one in goes first */
    uint32_t hold;  /* so many others must pass first; 0 = only time counts */
    uint32_t len;
    uint8_t *data;
};

struct bump_queue {
    struct bump_kept *heap; /* by due, then order */
    struct bump_kept *held; /* hold > 0, in no order */
    uint32_t n, nheld, max; /* n + nheld <= max */
    uint32_t room;          /* octets that each buffer has */
    uint64_t order;
    uint8_t **spare; /* buffers not in use */
    uint32_t nspare;
};

/* Room for `max` frames of up to `room` octets; the buffers are made when needed.
 * Returns 0 or -ENOMEM. */
int bump_queue_init(struct bump_queue *q, uint32_t max, uint32_t room);
void bump_queue_free(struct bump_queue *q);

/* Keep a copy of a frame until `due`, or (hold > 0) until `hold` others have passed, at the latest
 * until `due`. Returns false when there is no room for it. */
bool bump_queue_put(struct bump_queue *q, const uint8_t *data, uint32_t len, uint32_t hold,
                    uint64_t due);

/* The next frame that is due at `now`, or NULL. It stays until bump_queue_pop. */
const struct bump_kept *bump_queue_due(struct bump_queue *q, uint64_t now);
/* Remove the frame that bump_queue_due gave. */
void bump_queue_pop(struct bump_queue *q);

/* A frame has passed: those that waited for it may become due at `now`. */
void bump_queue_passed(struct bump_queue *q, uint64_t now);

/* When the next one is due; UINT64_MAX = there is none. */
uint64_t bump_queue_deadline(const struct bump_queue *q);

static inline uint32_t bump_queue_len(const struct bump_queue *q)
{
    return q->n + q->nheld;
}

#endif
