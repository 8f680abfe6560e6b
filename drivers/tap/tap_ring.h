/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A bounded queue of frames from one thread to another: one of them puts, the other takes.
 */
#ifndef URNIC_TAP_RING_H
#define URNIC_TAP_RING_H

#include <stdint.h>

#define TAP_RING_FRAMES 256u /* a power of two */

struct tap_ring;

/* NULL: no memory. */
struct tap_ring *tap_ring_new(void);
void tap_ring_free(struct tap_ring *r);

/* The putting thread: room for a frame of IO_FRAME_MAX octets, or NULL when the queue is full; and
 * put the `len` octets written there. */
uint8_t *tap_ring_room(struct tap_ring *r);
void tap_ring_put(struct tap_ring *r, uint32_t len);

/* The taking thread: waiting frame number `at`, 0 being the oldest, or NULL when there are no more;
 * and take the `n` oldest, which must exist. */
const uint8_t *tap_ring_look(const struct tap_ring *r, uint32_t at, uint32_t *len);
void tap_ring_take(struct tap_ring *r, uint32_t n);

#endif
