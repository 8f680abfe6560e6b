/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A bounded ring of frames from one thread to another: what came to one worker of a device and is
 * for another one, and what a worker without a port of its own has to send. Frames stay in order.
 *
 * Threads: one writes (reserve, commit, put), one reads (peek, release). To wake a reader that
 * sleeps is the writer's business: it commits first, and looks then whether the reader sleeps; the
 * reader says that it sleeps first, and looks into the ring then (frame_ring_waits), with a seq_cst
 * fence in between on both sides.
 */
#ifndef NIC_FRAME_RING_H
#define NIC_FRAME_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "io.h"

struct frame_ring;

/* A ring for `frames` frames, a power of two, of at most `cap` octets each. Memory that no frame
 * has used yet costs nothing. NULL = out of memory. */
struct frame_ring *frame_ring_new(uint32_t frames, uint32_t cap);
/* Neither thread uses it any more. NULL is fine. */
void frame_ring_free(struct frame_ring *r);

/* ---- the writer ---- */

/* Room for up to `max` frames, in place. Returns for how many there is. A slot's priv is the
 * ring's. */
unsigned frame_ring_reserve(struct frame_ring *r, struct io_slot *slots, unsigned max);
/* Hand over the first n of those last reserved. A slot with len 0 is none; one with len over its
 * cap is left out. `flags` comes out with each frame (io_frame.flags). Returns how many frames. */
unsigned frame_ring_commit(struct frame_ring *r, const struct io_slot *slots, unsigned n,
                           uint32_t flags);
/* Copy a frame in. False: the ring is full, or the frame too long. */
bool frame_ring_put(struct frame_ring *r, const uint8_t *frame, uint32_t len, uint32_t flags);

/* ---- the reader ---- */

/* Does a frame wait? */
bool frame_ring_waits(const struct frame_ring *r);
/* The oldest frames, `max` at most; they stay in place until they are released. What was lent
 * before has to be released first. */
unsigned frame_ring_peek(struct frame_ring *r, struct io_frame *out, unsigned max);
/* Give back all that the last frame_ring_peek has lent. */
void frame_ring_release(struct frame_ring *r);

#endif
