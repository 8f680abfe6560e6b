/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The engine's phases as one call per direction, for callers that can copy at once: the simulator,
 * packet scripts, replays, tests. The daemon calls the phases itself: it works on batches, and its
 * copies may finish later. Thread: the engine's.
 */
#ifndef URNIC_STEP_H
#define URNIC_STEP_H

#include <stdint.h>

#include "engine.h"

/* Does a copy: 0, or -errno when the memory can't be reached. *orig, which is 0, becomes the value
 * before an atomic. */
typedef int step_copy_fn(void *arg, const struct engine_copy *c, uint64_t *orig);
/* Copies a slot's payload from its pieces into the frame, and makes the iCRC: 0, or -errno. */
typedef int step_gather_fn(void *arg, const struct engine_slot *slot);
/* The address of a piece of memory in this process. */
typedef uint8_t *step_at_fn(void *arg, const struct mem_piece *piece);

/* A frame comes in: engine_rx, its copies by `copy`, engine_copied. *f as engine_rx leaves it. */
void step_rx(struct engine *e, struct engine_frame *f, uint64_t now, step_copy_fn *copy, void *arg);
/* Frames go out into up to n <= ENGINE_BURST slots; the caller sets buf and cap. Runs engine_tx,
 * `gather` for each slot, engine_sent. With gather NULL, frames have neither payload nor iCRC.
 * Returns how many slots the engine has filled; a slot of len 0 is void. */
unsigned step_tx(struct engine *e, struct engine_slot *slots, unsigned n, uint64_t now,
                 step_gather_fn *gather, void *arg);

/* For `copy` of a caller with plain memory: do it, at dst. Returns the value before of an atomic,
 * else 0. dst of an atomic need not be aligned; no other thread may use its memory. */
uint64_t step_copy(const struct engine_copy *c, uint8_t *dst);
/* The same for `gather`: copy the payload, unless it is in place, and make the iCRC. */
void step_gather(const struct engine_slot *slot, step_at_fn *at, void *arg);
void step_seal(const struct engine_slot *slot);

#endif
