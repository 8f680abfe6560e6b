/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sending. A reserved slot has room for the largest frame: one buffer, or as many contiguous
 * buffers as needed, or else a side buffer. The caller may then send a shorter frame, or none; the
 * frames move up so that the peer sees no hole.
 *
 * Moving up is safe in place: slots before a frame's own only ever get frames that came before it,
 * because each frame fits in the slots that were reserved for it. So a frame is copied towards the
 * front, in order, and never over one that has not been sent.
 */
#include "memif_port.h"

#include <string.h>

/* The empty buffer at slot index `i`: ours if we own the memory, otherwise the one in the peer's
 * descriptor. */
static uint8_t *tx_buffer(const struct memif_port *p, uint16_t i, struct memif_desc *d)
{
    const struct memif_queue *q = &p->conn.tx;
    if (q->bias) {
        *d = memif_conn_empty(&p->conn, p->conn.buffers_c2s, i & q->mask);
        return p->conn.region[0].base + d->offset;
    }
    *d = memif_desc_load(&q->ring->desc[i & q->mask]);
    return memif_port_buffer(p, d);
}

/* Read the peer's progress. Returns the free slots, or 0 if the progress is impossible: more slots
 * than there are, or fewer than before. */
static uint16_t tx_refresh(struct memif_port *p)
{
    struct memif_queue *q = &p->conn.tx;
    uint16_t limit = (uint16_t)(atomic_load_explicit(q->peer, memory_order_acquire) + q->bias);
    uint16_t space = (uint16_t)(limit - q->cur);
    if (MEMIF_UNLIKELY(space > q->size || space < (uint16_t)(q->limit - q->cur))) {
        memif_port_fault(p, MEMIF_INDEX);
        return 0;
    }
    q->limit = limit;
    return space;
}

unsigned memif_tx_room(struct memif_port *p, unsigned want)
{
    const struct memif_queue *q = &p->conn.tx;
    const uint32_t frame_max = p->io.caps.frame_max;
    struct memif_desc d;
    (void)tx_buffer(p, q->cur, &d);
    unsigned slots = d.length >= frame_max ? 1
                     : d.length            ? (frame_max - 1) / d.length + 1
                                           : q->size;
    if ((unsigned)(uint16_t)(q->limit - q->cur) < want * slots)
        (void)tx_refresh(p);
    unsigned room = (uint16_t)(q->limit - q->cur) / slots;
    return room < want ? room : want;
}

/* A frame has no room before the limit. If all slots of the ring are free, it never will. */
static void tx_stuck(struct memif_port *p)
{
    const struct memif_queue *q = &p->conn.tx;
    if ((uint16_t)(q->limit - q->cur) == q->size)
        memif_port_fault(p, MEMIF_SMALL);
}

/* Reserve room for one frame from slot index `at` on, if one buffer isn't enough. Returns the slots
 * needed, 0 if there are too few. */
static uint16_t tx_reserve_chain(struct memif_port *p, struct io_slot *slot, uint16_t at,
                                 unsigned number)
{
    const struct memif_queue *q = &p->conn.tx;
    uint8_t *start = NULL, *follow = NULL;
    uint64_t room = 0;
    bool together = true;
    uint16_t i = at;
    while (room < p->io.caps.frame_max) {
        struct memif_desc d;
        if (i == q->limit && (!tx_refresh(p) || i == q->limit)) {
            if (at == q->cur)
                tx_stuck(p);
            return 0;
        }
        uint8_t *data = tx_buffer(p, i++, &d);
        if (!data) {
            memif_port_fault(p, MEMIF_DESC);
            return 0;
        }
        if (!start)
            start = data;
        else
            together &= data == follow;
        follow = data + d.length;
        room += d.length;
    }
    slot->data = together ? start : memif_port_side(p, &p->tx_side, number);
    return slot->data ? (uint16_t)(i - at) : 0;
}

unsigned memif_tx_reserve(struct io_port *io, struct io_slot *slots, unsigned max, uint64_t now)
{
    struct memif_port *p = (struct memif_port *)io;
    struct memif_queue *q = &p->conn.tx;
    const uint32_t frame_max = io->caps.frame_max;
    unsigned n = 0;
    (void)now;
    if (MEMIF_UNLIKELY(p->graves))
        (void)memif_grave_unreserve(p);
    p->reserved_n = 0;
    if (MEMIF_UNLIKELY(!p->up))
        return 0;
    if ((uint16_t)(q->limit - q->cur) < max)
        (void)tx_refresh(p);
    uint16_t at = q->cur;
    while (n < max && at != q->limit) {
        struct memif_desc d;
        uint8_t *data = tx_buffer(p, at, &d);
        uint16_t used = 1;
        bool single = data && d.length >= frame_max;

        slots[n] = (struct io_slot){.data = data, .cap = frame_max};
        if (MEMIF_UNLIKELY(!single)) {
            used = tx_reserve_chain(p, &slots[n], at, n);
            if (used == 0)
                break;
        }
        __builtin_prefetch(slots[n].data, 1); /* both lines of a small frame */
        __builtin_prefetch((const void *)((uintptr_t)slots[n].data + 64), 1);
        p->reserved[n++] = (struct memif_reserved){.slots = used, .single = single};
        at = (uint16_t)(at + used);
    }
    p->reserved_n = n;
    p->stats.tx_full += n < max;
    return n;
}

/* Put a frame into the slots from index `at` on. Returns the slots used; 0 when it doesn't fit. */
static uint16_t tx_put(struct memif_port *p, uint16_t at, const uint8_t *data, uint32_t len)
{
    struct memif_queue *q = &p->conn.tx;
    bool copied = false;
    uint16_t i = at;
    while (len) {
        struct memif_desc d;
        if (i == q->limit)
            return 0;
        uint8_t *to = tx_buffer(p, i, &d);
        if (!to)
            return 0;
        if (d.length > len)
            d.length = len;
        if (to != data) {
            memmove(to, data, d.length);
            copied = true;
        }
        data += d.length;
        len -= d.length;
        d.flags = len ? MEMIF_DESC_NEXT : 0;
        memif_desc_store(&q->ring->desc[i++ & q->mask], d);
    }
    p->counters.copied_tx += copied;
    p->counters.chained_tx += (uint16_t)(i - at) > 1;
    return (uint16_t)(i - at);
}

/* Wake the peer's reader if it sleeps. */
static void tx_kick(struct memif_port *p)
{
    const struct memif_queue *q = &p->conn.tx;
    atomic_thread_fence(memory_order_seq_cst);
    if (MEMIF_LIKELY(atomic_load_explicit(&q->ring->flags, memory_order_relaxed) &
                     MEMIF_RING_MASK_INT) ||
        q->event < 0)
        return;
    p->counters.kicks += memif_kick(&p->kick, q->event);
}

void memif_tx_commit(struct io_port *io, const struct io_slot *slots, unsigned n, uint64_t now)
{
    struct memif_port *p = (struct memif_port *)io;
    struct memif_queue *q = &p->conn.tx;
    const uint32_t frame_max = io->caps.frame_max;
    uint16_t at = q->cur, own = q->cur; /* next slot to fill; first slot reserved for frame i */
    uint64_t octets = 0;
    unsigned sent = 0;
    (void)now;
    bool up = p->up && !(MEMIF_UNLIKELY(p->graves) && memif_grave_unreserve(p));
    if (n > p->reserved_n)
        n = p->reserved_n;
    for (unsigned i = 0; i < n; own = (uint16_t)(own + p->reserved[i].slots), i++) {
        const uint32_t len = slots[i].len;
        uint16_t used = 1;

        if (len == 0)
            continue;
        if (MEMIF_UNLIKELY(!up || len > frame_max)) {
            p->stats.tx_drop++;
            continue;
        }
        if (MEMIF_LIKELY(at == own && p->reserved[i].single)) {
            struct memif_desc *d = &q->ring->desc[at & q->mask];
            if (q->bias) {
                struct memif_desc full =
                    memif_conn_empty(&p->conn, p->conn.buffers_c2s, at & q->mask);
                full.length = len;
                memif_desc_store(d, full);
            } else {
                d->flags = 0;
                d->length = len;
            }
        } else {
            used = tx_put(p, at, slots[i].data, len);
            if (MEMIF_UNLIKELY(used == 0)) {
                p->stats.tx_drop++;
                continue;
            }
        }
        at = (uint16_t)(at + used);
        octets += len;
        sent++;
    }
    p->reserved_n = 0;
    if (sent == 0)
        return;
    q->cur = at;
    atomic_store_explicit(q->own, at, memory_order_release);
    p->stats.tx_frames += sent;
    p->stats.tx_bytes += octets;
    tx_kick(p);
}
