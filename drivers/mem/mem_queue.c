/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The queue of frames under way to a port of an emulated link, sorted by arrival, and the frames in
 * it that wait until others have overtaken them.
 */
#include <stdlib.h>

#include "mem_internal.h"

#define RING_MIN 256u

static bool ring_grow(struct mem_socket *s)
{
    uint64_t size = s->ring ? (s->mask + 1) * 2 : RING_MIN;
    struct mem_entry *ring = malloc(size * sizeof(*ring));
    if (!ring)
        return false;
    for (uint64_t i = s->head; i != s->tail; i++)
        ring[i & (size - 1)] = *mem_queue_at(s, i);
    free(s->ring);
    s->ring = ring;
    s->mask = size - 1;
    return true;
}

void mem_queue_tell(struct mem_socket *s)
{
    atomic_store_explicit(&s->waiting, s->tail - s->head - s->lent, memory_order_release);
}

bool mem_queue_put(struct mem_socket *s, struct mem_buf *buf, uint64_t at, uint64_t now)
{
    if ((!s->ring || s->tail - s->head > s->mask) && !ring_grow(s))
        return false;
    uint64_t low = s->head + (s->lent > s->arrived ? s->lent : s->arrived);
    uint64_t pos = s->tail++;
    // NOLINTNEXTLINE(clang-analyzer-*): entries before the tail have been written
    while (pos > low && mem_queue_at(s, pos - 1)->at > at && mem_queue_at(s, pos - 1)->at > now) {
        *mem_queue_at(s, pos) = *mem_queue_at(s, pos - 1);
        pos--;
    }
    *mem_queue_at(s, pos) = (struct mem_entry){at, buf};
    return true;
}

void mem_queue_remove(struct mem_socket *s, uint64_t pos)
{
    for (; pos + 1 != s->tail; pos++)
        *mem_queue_at(s, pos) = *mem_queue_at(s, pos + 1);
    s->tail--;
}

void mem_queue_unhold(struct mem_socket *s, struct mem_buf *buf)
{
    buf->gap = 0;
    for (unsigned i = 0; i < s->held_n; i++) {
        if (s->held[i] == buf) {
            s->held[i] = s->held[--s->held_n];
            return;
        }
    }
}

void mem_queue_passed(struct mem_socket *s, uint64_t flow, uint64_t at, uint64_t now)
{
    for (unsigned i = 0; i < s->held_n;) {
        struct mem_buf *buf = s->held[i];
        if ((buf->flow && buf->flow != flow) || --buf->gap > 0) {
            i++;
            continue;
        }
        s->held[i] = s->held[--s->held_n];
        uint64_t pos = s->tail - 1;
        while (mem_queue_at(s, pos)->buf != buf)
            pos--;
        /* The frame's arrival time may have passed unnoticed; it then keeps its place. */
        if (mem_queue_at(s, pos)->at <= now || pos < s->head + s->arrived)
            continue;
        mem_queue_remove(s, pos);
        mem_queue_put(s, buf, at, now);
    }
}

void mem_queue_arrive(struct mem_socket *s, uint64_t now)
{
    while (s->head + s->arrived != s->tail && mem_queue_at(s, s->head + s->arrived)->at <= now) {
        s->arrived_bytes += mem_queue_at(s, s->head + s->arrived)->buf->len;
        s->arrived++;
    }
}
