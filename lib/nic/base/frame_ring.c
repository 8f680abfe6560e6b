/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Two counters on cache lines of their own. Each side caches the other's counter, and reads it
 * again only when the cached value isn't enough.
 */
#include "frame_ring.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct ring_frame {
    uint32_t len, flags;
};

struct frame_ring {
    uint32_t mask, cap, stride;
    struct ring_frame *info;
    uint8_t *data;
    /* the writer's */
    _Alignas(64) _Atomic uint32_t head;
    uint32_t tail_seen;
    /* the reader's */
    _Alignas(64) _Atomic uint32_t tail;
    uint32_t head_seen, lent;
};

struct frame_ring *frame_ring_new(uint32_t frames, uint32_t cap)
{
    struct frame_ring *r = aligned_alloc(64, sizeof(*r));
    if (!r)
        return NULL;
    memset(r, 0, sizeof(*r));
    r->mask = frames - 1;
    r->cap = cap;
    r->stride = (cap + 63u) & ~63u;
    r->info = calloc(frames, sizeof(*r->info));
    r->data = calloc(frames, r->stride);
    if (r->info && r->data)
        return r;
    frame_ring_free(r);
    return NULL;
}

void frame_ring_free(struct frame_ring *r)
{
    if (!r)
        return;
    free(r->info);
    free(r->data);
    free(r);
}

static uint8_t *ring_at(const struct frame_ring *r, uint32_t place)
{
    return r->data + (size_t)(place & r->mask) * r->stride;
}

/* The number of further frames that fit, `max` at most. */
static uint32_t ring_room(struct frame_ring *r, uint32_t max)
{
    uint32_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
    uint32_t room = r->mask + 1 - (head - r->tail_seen);
    if (room < max) {
        r->tail_seen = atomic_load_explicit(&r->tail, memory_order_acquire);
        room = r->mask + 1 - (head - r->tail_seen);
    }
    return room < max ? room : max;
}

unsigned frame_ring_reserve(struct frame_ring *r, struct io_slot *slots, unsigned max)
{
    uint32_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
    uint32_t n = ring_room(r, max);
    for (uint32_t i = 0; i < n; i++)
        slots[i] = (struct io_slot){.data = ring_at(r, head + i), .cap = r->cap};
    return n;
}

unsigned frame_ring_commit(struct frame_ring *r, const struct io_slot *slots, unsigned n,
                           uint32_t flags)
{
    uint32_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
    unsigned frames = 0;
    for (unsigned i = 0; i < n; i++) {
        bool good = slots[i].len > 0 && slots[i].len <= r->cap;
        r->info[(head + i) & r->mask] = (struct ring_frame){good ? slots[i].len : 0, flags};
        frames += good;
    }
    if (frames > 0) /* without a frame, the reserved places are free again */
        atomic_store_explicit(&r->head, head + n, memory_order_release);
    return frames;
}

bool frame_ring_put(struct frame_ring *r, const uint8_t *frame, uint32_t len, uint32_t flags)
{
    struct io_slot slot;
    if (len > r->cap || frame_ring_reserve(r, &slot, 1) == 0)
        return false;
    memcpy(slot.data, frame, len);
    slot.len = len;
    return frame_ring_commit(r, &slot, 1, flags) == 1;
}

bool frame_ring_waits(const struct frame_ring *r)
{
    return atomic_load_explicit(&r->head, memory_order_acquire) !=
           atomic_load_explicit(&r->tail, memory_order_relaxed);
}

unsigned frame_ring_peek(struct frame_ring *r, struct io_frame *out, unsigned max)
{
    uint32_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
    unsigned n = 0;
    if (r->head_seen == tail)
        r->head_seen = atomic_load_explicit(&r->head, memory_order_acquire);
    uint32_t place = tail;
    for (; place != r->head_seen && n < max; place++) {
        const struct ring_frame *f = &r->info[place & r->mask];
        if (f->len > 0)
            out[n++] =
                (struct io_frame){.data = ring_at(r, place), .len = f->len, .flags = f->flags};
    }
    r->lent = place - tail;
    if (n == 0)
        frame_ring_release(r); /* places without a frame */
    return n;
}

void frame_ring_release(struct frame_ring *r)
{
    uint32_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
    atomic_store_explicit(&r->tail, tail + r->lent, memory_order_release);
    r->lent = 0;
}
