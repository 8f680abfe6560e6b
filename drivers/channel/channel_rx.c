/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Receiving. Frames are lent where they lie. Slots go back in order: a lent frame remembers where
 * its slots end, and slots that carried nothing to lend are added to the frame before them.
 */
#include "channel_port.h"

#define AHEAD 4u /* slots: the distance of prefetches of their first lines */

/* Give back all slots before `end`. */
static void rx_give_back(struct channel_port *p, uint32_t end)
{
    p->rx.all += end - p->rx.done;
    p->rx.done = end;
    atomic_store_explicit(&channel_index(&p->rx)->cons, end, memory_order_release);
}

static void rx_skip(struct channel_port *p)
{
    uint32_t end = ++p->rx.cur;
    if (p->lent_head != p->lent_tail)
        p->lent[(p->lent_head - 1) & (p->rx.size - 1)].end = end;
    else
        rx_give_back(p, end);
}

/* Read the other end's index. False: an impossible index. */
static bool rx_refresh(struct channel_port *p)
{
    struct channel_ring *r = &p->rx;
    uint32_t limit = atomic_load_explicit(&channel_index(r)->prod, memory_order_acquire);
    uint32_t filled = limit - r->done;
    if (CHANNEL_UNLIKELY(filled > r->size || filled < r->limit - r->done)) {
        p->fault = CHANNEL_INDEX;
        return false;
    }
    r->limit = limit;
    return true;
}

/* The producer continues in the next memory. Follow it if that memory is here and no frame of the
 * current one is lent. Returns whether we moved. */
static bool rx_move(struct channel_port *p)
{
    if (!p->next.base || p->rx_moved || p->lent_head != p->lent_tail)
        return false;
    struct channel_lent *lent = p->lent;
    struct channel_index *before = channel_index(&p->rx);
    channel_ring_at(&p->rx, &p->next, p->side, p->side);
    p->lent = p->next_lent;
    p->next_lent = lent; /* freed by channel_grown */
    p->lent_head = p->lent_tail = 0;
    p->rx.all++; /* the slot of the mark */
    p->rx_moved = true;
    p->counters.moved_rx++;
    if (p->armed) { /* the producer will look there; the caller looks at the ring again */
        atomic_store_explicit(&channel_index(&p->rx)->sleeping, 1, memory_order_relaxed);
        channel_fence();
    }
    if (p->side == CHANNEL_PROGRAM)
        channel_wake_all(before);
    (void)channel_grown(&p->io);
    return true;
}

unsigned channel_rx_peek(struct io_port *io, struct io_frame *frames, unsigned max, uint64_t now)
{
    struct channel_port *p = (struct channel_port *)io;
    struct channel_ring *r = &p->rx;
    unsigned n = 0;
    uint64_t octets = 0;
    (void)now;
    if (CHANNEL_UNLIKELY(p->fault))
        return 0;
    if (r->limit - r->cur < max && !rx_refresh(p))
        return 0;
    for (uint32_t i = r->cur; i != r->limit && i - r->cur < AHEAD; i++)
        __builtin_prefetch(channel_slot(r, i));
    while (n < max) {
        if (r->cur == r->limit)
            break;
        if (r->limit - r->cur > AHEAD)
            __builtin_prefetch(channel_slot(r, r->cur + AHEAD));
        struct channel_slot *s = channel_slot(r, r->cur);
        struct channel_desc d = channel_desc_load(s);
        if (CHANNEL_UNLIKELY(d.flags & CHANNEL_MOVED)) {
            if (!rx_move(p) || !rx_refresh(p))
                break;
            continue;
        }
        if (CHANNEL_UNLIKELY(d.flags & CHANNEL_AGAIN)) {
            rx_skip(p);
            r->base = r->cur;
            atomic_store_explicit(&channel_index(r)->cons_base, r->base, memory_order_relaxed);
            continue;
        }
        if (CHANNEL_UNLIKELY(d.len == 0 || d.len > io->caps.frame_max)) {
            if (d.len)
                p->stats.rx_oversize++;
            else
                p->stats.rx_drop++;
            rx_skip(p);
            continue;
        }
        frames[n++] = (struct io_frame){
            .data = channel_data(s), .len = d.len, .flags = d.meta & p->flags_mask};
        r->cur++;
        p->lent[p->lent_head++ & (r->size - 1)] = (struct channel_lent){r->cur, d.meta};
        octets += d.len;
    }
    p->stats.rx_frames += n;
    p->stats.rx_bytes += octets;
    return n;
}

void channel_rx_release(struct io_port *io, unsigned n)
{
    struct channel_port *p = (struct channel_port *)io;
    uint32_t lent = p->lent_head - p->lent_tail;
    n = n < lent ? n : lent;
    if (n == 0)
        return;
    p->lent_tail += n;
    rx_give_back(p, p->lent[(p->lent_tail - 1) & (p->rx.size - 1)].end);
}

uint32_t channel_rx_meta(const struct io_port *io, unsigned i)
{
    const struct channel_port *p = (const struct channel_port *)io;
    return p->lent[(p->lent_tail + i) & (p->rx.size - 1)].meta;
}

/* The number of slots that the producer claims to have filled after `done`, if it is possible. */
static uint32_t rx_filled(const struct channel_index *at, uint32_t done, uint32_t size)
{
    uint32_t n = atomic_load_explicit(&at->prod, memory_order_acquire) - done;
    return n <= size ? n : 0;
}

uint64_t channel_rx_mark(const struct io_port *io)
{
    const struct channel_port *p = (const struct channel_port *)io;
    uint64_t mark = p->rx.all + rx_filled(channel_index(&p->rx), p->rx.done, p->rx.size);
    if (p->next.base && !p->rx_moved) {
        const struct channel_head *head = (const struct channel_head *)(const void *)p->next.base;
        mark += rx_filled(&head->to[p->side], 0, p->next.slots);
    }
    return mark;
}

bool channel_rx_passed(const struct io_port *io, uint64_t mark)
{
    const struct channel_port *p = (const struct channel_port *)io;
    return p->fault || p->rx.all >= mark;
}
