/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The queue has room for the largest frames; pages that no frame needs cost nothing.
 */
#include "tap_ring.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "io.h"

#define LINE 64 /* octets of a cache line: each thread writes its own */

struct tap_ring {
    _Alignas(LINE) _Atomic uint32_t put;
    _Alignas(LINE) _Atomic uint32_t taken;
    _Alignas(LINE) uint32_t len[TAP_RING_FRAMES];
    uint8_t frame[TAP_RING_FRAMES][IO_FRAME_MAX];
};

struct tap_ring *tap_ring_new(void)
{
    size_t size = (sizeof(struct tap_ring) + LINE - 1) / LINE * LINE;
    struct tap_ring *r = aligned_alloc(LINE, size);
    if (r) {
        atomic_init(&r->put, 0);
        atomic_init(&r->taken, 0);
    }
    return r;
}

void tap_ring_free(struct tap_ring *r)
{
    free(r);
}

uint8_t *tap_ring_room(struct tap_ring *r)
{
    uint32_t put = atomic_load_explicit(&r->put, memory_order_relaxed);
    uint32_t taken = atomic_load_explicit(&r->taken, memory_order_acquire);
    return put - taken == TAP_RING_FRAMES ? NULL : r->frame[put % TAP_RING_FRAMES];
}

void tap_ring_put(struct tap_ring *r, uint32_t len)
{
    uint32_t put = atomic_load_explicit(&r->put, memory_order_relaxed);
    r->len[put % TAP_RING_FRAMES] = len;
    atomic_store_explicit(&r->put, put + 1, memory_order_release);
}

const uint8_t *tap_ring_look(const struct tap_ring *r, uint32_t at, uint32_t *len)
{
    uint32_t taken = atomic_load_explicit(&r->taken, memory_order_relaxed);
    uint32_t put = atomic_load_explicit(&r->put, memory_order_acquire);
    if (at >= put - taken)
        return NULL;
    *len = r->len[(taken + at) % TAP_RING_FRAMES];
    return r->frame[(taken + at) % TAP_RING_FRAMES];
}

void tap_ring_take(struct tap_ring *r, uint32_t n)
{
    uint32_t taken = atomic_load_explicit(&r->taken, memory_order_relaxed);
    atomic_store_explicit(&r->taken, taken + n, memory_order_release);
}
