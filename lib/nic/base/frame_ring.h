/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A bounded ring of frames from one thread to another. It carries frames that one worker of a
 * device received for another one, and frames to send from a worker without a port of its own.
 * Frames stay in order.
 *
 * Threads: one writes (reserve, commit, put), one reads (peek, release). The writer wakes a
 * sleeping reader: it commits first, then checks whether the reader sleeps. The reader first marks
 * itself as asleep, then checks the ring (frame_ring_waits). Both have a seq_cst fence in between.
 */
#ifndef NIC_FRAME_RING_H
#define NIC_FRAME_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "io.h"

struct frame_ring;

/* A ring for `frames` frames, a power of two, of at most `cap` octets each. Unused slots take no
 * memory. NULL = out of memory. */
struct frame_ring *frame_ring_new(uint32_t frames, uint32_t cap);
/* Free a ring that neither thread uses. NULL is fine. */
void frame_ring_free(struct frame_ring *r);

/* ---- the writer ---- */

/* Reserve room for up to `max` frames, in place. Returns the number of slots. A slot's priv is the
 * ring's. */
unsigned frame_ring_reserve(struct frame_ring *r, struct io_slot *slots, unsigned max);
/* Commit the first n reserved slots. A slot with len 0 has no frame; one with len over its cap is
 * left out. `flags` comes with each frame (io_frame.flags). Returns the number of frames. */
unsigned frame_ring_commit(struct frame_ring *r, const struct io_slot *slots, unsigned n,
                           uint32_t flags);
/* Copy a frame in. False: the ring is full, or the frame too long. */
bool frame_ring_put(struct frame_ring *r, const uint8_t *frame, uint32_t len, uint32_t flags);

/* ---- the reader ---- */

/* Does a frame wait? */
bool frame_ring_waits(const struct frame_ring *r);
/* Borrow the oldest frames, `max` at most; they stay in place until they are released. Release
 * earlier ones first. */
unsigned frame_ring_peek(struct frame_ring *r, struct io_frame *out, unsigned max);
/* Release all frames of the last frame_ring_peek. */
void frame_ring_release(struct frame_ring *r);

#endif
