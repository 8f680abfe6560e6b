/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sending. A reserved slot that is given back unsent leaves no hole: the frames after it move up.
 * This is the only reason to read from the slots, and only this end's own new frames are read.
 */
#include "channel_port.h"

#include <string.h>

/* Read the other end's index. False: an impossible index. */
static bool tx_refresh(struct channel_port *p)
{
    struct channel_ring *r = &p->tx;
    uint32_t cons = atomic_load_explicit(&channel_index(r)->cons, memory_order_acquire);
    uint32_t limit = cons + r->size, space = limit - r->cur;
    if (CHANNEL_UNLIKELY(space > r->size || space < r->limit - r->cur)) {
        p->fault = CHANNEL_INDEX;
        return false;
    }
    r->unread = r->unread && cons == r->again;
    r->limit = r->unread ? r->hold : limit;
    return true;
}

/* If the other end has given back all slots, go on at place 0: the slots from there on have been
 * used, so they have pages, and some are in the cache. */
static void tx_go_back(struct channel_port *p)
{
    struct channel_ring *r = &p->tx;
    const uint32_t place = (r->cur - r->base) & (r->size - 1);
    if (place < r->back || !tx_refresh(p) || r->limit - r->cur != r->size) {
        r->back_at = r->cur + (place < r->back ? r->back - place : CHANNEL_BACK / 4);
        return;
    }
    channel_desc_store(channel_slot(r, r->cur), (struct channel_desc){.flags = CHANNEL_AGAIN});
    r->again = r->cur++;
    r->base = r->cur;
    atomic_store_explicit(&channel_index(r)->prod_base, r->base, memory_order_relaxed);
    r->limit = r->hold = r->cur + place;
    r->unread = true;
    r->held = false;
    r->back_at = r->cur + r->back;
}

/* A sender needs more slots than are free before an unread CHANNEL_AGAIN: such bursts need more
 * places, so go back later from now on. */
static void tx_held(struct channel_ring *r)
{
    if (r->held)
        return;
    r->held = true;
    r->back = 2 * r->back < r->size ? 2 * r->back : r->size;
    r->back_at = r->cur + r->back;
}

static void tx_publish(struct channel_port *p)
{
    atomic_store_explicit(&channel_index(&p->tx)->prod, p->tx.cur, memory_order_release);
    channel_wake(p);
}

void channel_tx_move(struct channel_port *p)
{
    struct channel_ring *r = &p->tx;
    if (r->cur == r->limit && (!tx_refresh(p) || r->cur == r->limit))
        return;
    channel_desc_store(channel_slot(r, r->cur++), (struct channel_desc){.flags = CHANNEL_MOVED});
    const bool holds = p->holds;
    p->holds = false; /* a later wake-up would look at the new memory */
    tx_publish(p);
    p->holds = holds;
    channel_ring_at(r, &p->next, p->side, !p->side);
    p->tx_moved = true;
    p->counters.moved_tx++;
    (void)channel_grown(&p->io);
}

unsigned channel_tx_reserve(struct io_port *io, struct io_slot *slots, unsigned max, uint64_t now)
{
    struct channel_port *p = (struct channel_port *)io;
    struct channel_ring *r = &p->tx;
    (void)now;
    p->reserved = 0;
    if (CHANNEL_UNLIKELY(p->fault || !p->up))
        return 0;
    if (CHANNEL_UNLIKELY(p->next.base && !p->tx_moved))
        channel_tx_move(p);
    if (CHANNEL_UNLIKELY((int32_t)(r->cur - r->back_at) >= 0))
        tx_go_back(p);
    if (r->limit - r->cur < max && !tx_refresh(p))
        return 0;
    uint32_t room = r->limit - r->cur;
    unsigned n = room < max ? room : max;
    for (unsigned i = 0; i < n; i++) {
        struct channel_slot *s = channel_slot(r, r->cur + i);
        __builtin_prefetch(s, 1);
        __builtin_prefetch((const uint8_t *)s + CHANNEL_LINE, 1);
        slots[i] = (struct io_slot){.data = channel_data(s), .cap = io->caps.frame_max};
        p->tx_meta[i] = 0;
    }
    p->reserved = n;
    p->stats.tx_full += n < max;
    if (CHANNEL_UNLIKELY(n < max && r->unread))
        tx_held(r);
    return n;
}

void channel_tx_commit(struct io_port *io, const struct io_slot *slots, unsigned n, uint64_t now)
{
    struct channel_port *p = (struct channel_port *)io;
    struct channel_ring *r = &p->tx;
    unsigned sent = 0;
    uint64_t octets = 0;
    (void)now;
    n = n < p->reserved ? n : p->reserved;
    p->reserved = 0;
    for (unsigned i = 0; i < n; i++) {
        uint32_t len = slots[i].len;
        if (len == 0)
            continue;
        if (CHANNEL_UNLIKELY(len > io->caps.frame_max || !p->up)) {
            p->stats.tx_drop++;
            continue;
        }
        struct channel_slot *s = channel_slot(r, r->cur + sent);
        if (CHANNEL_UNLIKELY(slots[i].data != channel_data(s)))
            memcpy(channel_data(s), slots[i].data, len); /* slots don't overlap */
        channel_desc_store(s, (struct channel_desc){.len = len, .meta = p->tx_meta[i]});
        octets += len;
        sent++;
    }
    if (sent > 0) {
        r->cur += sent;
        p->stats.tx_frames += sent;
        p->stats.tx_bytes += octets;
        tx_publish(p);
    }
    (void)channel_grown(&p->io); /* the slots may have been in the old memory */
}

bool channel_put(struct io_port *io, const uint8_t *frame, uint32_t len)
{
    struct channel_port *p = (struct channel_port *)io;
    bool up = p->up, sent = false;
    struct io_slot slot;
    p->up = true;
    if (channel_tx_reserve(io, &slot, 1, 0) == 1 && len <= slot.cap) {
        memcpy(slot.data, frame, len);
        slot.len = len;
        channel_tx_commit(io, &slot, 1, 0);
        sent = true;
    }
    p->up = up;
    return sent;
}

void channel_tx_meta(struct io_port *io, unsigned i, uint32_t meta)
{
    struct channel_port *p = (struct channel_port *)io;
    if (i < p->reserved)
        p->tx_meta[i] = meta;
}

uint32_t channel_tx_waiting(const struct io_port *io)
{
    const struct channel_port *p = (const struct channel_port *)io;
    uint32_t n =
        p->tx.cur - atomic_load_explicit(&channel_index(&p->tx)->cons, memory_order_acquire);
    return n < p->tx.size ? n : p->tx.size;
}
