/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Receiving. Frames are lent where the peer wrote them. A frame in several slots is still lent in
 * place if its buffers are contiguous, as they are in a ring whose layout never changes. Otherwise
 * it is copied into a side buffer.
 *
 * Slots go back in order: a lent frame remembers where its slots end, and slots that carried
 * nothing to lend (oversize, empty) are added to the frame before them.
 */
#include "memif_port.h"

#include <poll.h>
#include <string.h>
#include <sys/uio.h>

/* Give back all slots before `end`. */
static void rx_give_back(struct memif_port *p, uint16_t end)
{
    struct memif_queue *q = &p->conn.rx;
    if (q->bias) {
        /* Write the slots' descriptors again: the peer has written lengths, and could have written
         * anything. */
        for (uint16_t i = q->done; i != end; i++)
            memif_desc_store(&q->ring->desc[i & q->mask],
                             memif_conn_empty(&p->conn, p->conn.buffers_s2c, i & q->mask));
    }
    q->done = end;
    atomic_store_explicit(q->own, (uint16_t)(end + q->bias), memory_order_release);
}

static void rx_skip(struct memif_port *p, uint16_t end)
{
    struct memif_queue *q = &p->conn.rx;
    q->cur = end;
    if (p->lent_head != p->lent_tail)
        p->lent[(uint16_t)(p->lent_head - 1) & q->mask].end = end;
    else
        rx_give_back(p, end);
}

static void rx_lend(struct memif_port *p, uint16_t end, bool copied)
{
    struct memif_queue *q = &p->conn.rx;
    p->lent[p->lent_head++ & q->mask] = (struct memif_lent){.end = end, .copied = copied};
    q->cur = end;
}

/* Copy slots [from, to) to `side`; the descriptors are read a second time, so they are checked a
 * second time. Returns the octets copied, 0 if a descriptor has become invalid. */
static uint32_t rx_copy(struct memif_port *p, uint8_t *side, uint16_t from, uint16_t to)
{
    const struct memif_queue *q = &p->conn.rx;
    uint32_t len = 0;
    for (uint16_t i = from; i != to; i++) {
        struct memif_desc d = memif_desc_load(&q->ring->desc[i & q->mask]);
        const uint8_t *data = memif_port_buffer(p, &d);
        if (!data || d.length > p->io.caps.frame_max - len)
            return 0;
        memcpy(side + len, data, d.length);
        len += d.length;
    }
    return len;
}

/* Read the peer's progress. Returns false if it is impossible: more slots than there are, or fewer
 * than before, which would put the limit before slots that are being looked at. */
static bool rx_refresh(struct memif_port *p)
{
    struct memif_queue *q = &p->conn.rx;
    uint16_t limit = atomic_load_explicit(q->peer, memory_order_acquire);
    uint16_t filled = (uint16_t)(limit - q->done);
    if (MEMIF_UNLIKELY(filled > q->size || filled < (uint16_t)(q->limit - q->done))) {
        memif_port_fault(p, MEMIF_INDEX);
        return false;
    }
    q->limit = limit;
    return true;
}

enum rx_step {
    RX_LENT, /* a frame was lent */
    RX_NEXT, /* skipped */
    RX_STOP, /* no more frames for now */
};

/* A frame in several slots, from q->cur on. */
struct rx_chain {
    const uint8_t *start; /* start of the first slot's buffer */
    uint64_t len;         /* octets of all slots */
    uint16_t end;         /* the slot after the last one */
    bool together;        /* the buffers are contiguous */
};

/* Follow the chain to its end. False: the end hasn't come yet, or the chain is invalid. */
static bool rx_follow(struct memif_port *p, struct rx_chain *c)
{
    struct memif_queue *q = &p->conn.rx;
    const uint8_t *follow = NULL;
    struct memif_desc d;
    *c = (struct rx_chain){.end = q->cur, .together = true};
    do {
        if (c->end == q->limit && (!rx_refresh(p) || c->end == q->limit)) {
            /* The rest is still to come, unless the peer has no slots left for it. */
            if ((uint16_t)(q->limit - q->cur) == q->size)
                memif_port_fault(p, MEMIF_CHAIN);
            return false;
        }
        d = memif_desc_load(&q->ring->desc[c->end & q->mask]);
        const uint8_t *data = memif_port_buffer(p, &d);
        if (!data) {
            memif_port_fault(p, MEMIF_DESC);
            return false;
        }
        if (!c->start)
            c->start = data;
        else
            c->together &= data == follow;
        follow = data + d.length;
        c->len += d.length;
        c->end++;
    } while (d.flags & MEMIF_DESC_NEXT);
    return true;
}

/* Copy a frame that isn't contiguous to a side buffer. */
static enum rx_step rx_gather(struct memif_port *p, struct rx_chain *c)
{
    struct memif_queue *q = &p->conn.rx;
    if ((uint16_t)(p->side_head - p->side_tail) == IO_BURST_MAX)
        return RX_STOP;
    uint8_t *side = memif_port_side(p, &p->rx_side, p->side_head % IO_BURST_MAX);
    if (!side) {
        p->stats.rx_drop++;
        rx_skip(p, c->end);
        return RX_NEXT;
    }
    c->start = side;
    c->len = rx_copy(p, side, q->cur, c->end);
    if (c->len == 0) {
        memif_port_fault(p, MEMIF_DESC);
        return RX_STOP;
    }
    p->side_head++;
    p->counters.copied_rx++;
    return RX_LENT;
}

/* Receive a frame at q->cur that is not a single good slot. */
static enum rx_step rx_uncommon(struct memif_port *p, struct io_frame *frame)
{
    struct memif_queue *q = &p->conn.rx;
    struct rx_chain c;
    if (!rx_follow(p, &c))
        return RX_STOP;
    if (c.len == 0 || c.len > p->io.caps.frame_max) {
        if (c.len)
            p->stats.rx_oversize++;
        else
            p->stats.rx_drop++;
        rx_skip(p, c.end);
        return RX_NEXT;
    }
    p->counters.chained_rx++;
    if (!c.together) {
        enum rx_step step = rx_gather(p, &c);
        if (step != RX_LENT)
            return step;
    }
    /* DPDK (22.11) sets this flag in a client's slots and never clears it in a frame's first one.
     */
    for (uint16_t k = q->cur; k != c.end; k++)
        __atomic_store_n(&q->ring->desc[k & q->mask].flags, 0, __ATOMIC_RELAXED);
    *frame = (struct io_frame){.data = c.start, .len = (uint32_t)c.len};
    rx_lend(p, c.end, !c.together);
    return RX_LENT;
}

void memif_rx_drain(int event)
{
    uint64_t count;
    struct iovec iov = {.iov_base = &count, .iov_len = sizeof(count)};

    /* Not read(): the peer shares the file and could clear O_NONBLOCK on it. */
    if (event >= 0)
        (void)!preadv2(event, &iov, 1, -1, RWF_NOWAIT);
}

/* Prefetch the first two cache lines of a frame. `at` needn't be a valid address.
 */
static void rx_fetch(uintptr_t at)
{
    __builtin_prefetch((const void *)at);
    __builtin_prefetch((const void *)(at + 64));
}

unsigned memif_rx_ring(struct memif_port *p, struct io_frame *frames, unsigned max)
{
    struct memif_queue *q = &p->conn.rx;
    const uint32_t frame_max = p->io.caps.frame_max;
    const uint16_t first = q->cur;
    uint64_t octets = 0;
    unsigned n = 0;
    if ((uint16_t)(q->limit - q->cur) < max && !rx_refresh(p))
        return 0;
    if (q->cur == q->limit)
        return 0;
    /* Fetch its lines from the peer's core together with its descriptor, not after it. */
    rx_fetch(p->rx_last + p->rx_stride);
    while (n < max && q->cur != q->limit) {
        struct memif_desc d = memif_desc_load(&q->ring->desc[q->cur & q->mask]);
        const uint8_t *data = memif_port_buffer(p, &d);

        if (MEMIF_LIKELY(data && !(d.flags & MEMIF_DESC_NEXT) && d.length - 1 < frame_max)) {
            rx_fetch((uintptr_t)data);
            p->rx_stride = (uintptr_t)data - p->rx_last;
            p->rx_last = (uintptr_t)data;
            frames[n] = (struct io_frame){.data = data, .len = d.length};
            rx_lend(p, (uint16_t)(q->cur + 1), false);
        } else {
            enum rx_step step = rx_uncommon(p, &frames[n]);
            if (step == RX_STOP)
                break;
            if (step == RX_NEXT) {
                /* Empty slots go back at once, and the peer may refill them as fast. So one call
                 * takes at most a ring of them: other work waits for its turn (SHM-08). */
                if ((uint16_t)(q->cur - first) >= q->size)
                    break;
                continue;
            }
        }
        octets += frames[n++].len;
    }
    p->stats.rx_frames += n;
    p->stats.rx_bytes += octets;
    return n;
}

/* Is rx_fd readable? One system call, instead of the three of a full look. */
static bool rx_stirs(const struct memif_port *p)
{
    return poll(&(struct pollfd){.fd = p->epoll, .events = POLLIN}, 1, 0) != 0;
}

unsigned memif_rx_peek(struct io_port *io, struct io_frame *frames, unsigned max, uint64_t now)
{
    struct memif_port *p = (struct memif_port *)io;
    unsigned n = p->up ? memif_rx_ring(p, frames, max) : 0;
    if (n == 0 && MEMIF_UNLIKELY(p->armed) && (!p->up || rx_stirs(p))) {
        /* rx_fd may be readable without a frame; this clears it. */
        memif_rx_drain(p->conn.rx.event);
        memif_port_control(p, now);
        if (p->up)
            n = memif_rx_ring(p, frames, max);
    }
    return n;
}

void memif_rx_release(struct io_port *io, unsigned n)
{
    struct memif_port *p = (struct memif_port *)io;
    const struct memif_queue *q = &p->conn.rx;
    if (MEMIF_UNLIKELY(p->graves))
        n = memif_grave_release(p, n);
    if (n == 0 || n > (uint16_t)(p->lent_head - p->lent_tail))
        return;
    uint16_t last = (uint16_t)(p->lent_tail + n - 1);
    if (p->side_head != p->side_tail) {
        for (uint16_t i = p->lent_tail; i != (uint16_t)(last + 1); i++)
            p->side_tail += p->lent[i & q->mask].copied;
    }
    p->lent_tail = (uint16_t)(last + 1);
    rx_give_back(p, p->lent[last & q->mask].end);
    memif_tx_warm(p);
}

void memif_rx_arm(struct io_port *io, bool on)
{
    struct memif_port *p = (struct memif_port *)io;
    p->armed = on;
    if (!p->up)
        return;
    atomic_store_explicit(&p->conn.rx.ring->flags, on ? 0 : MEMIF_RING_MASK_INT,
                          memory_order_relaxed);
    /* The peer advances its index, then looks at the flag. We clear the flag, then look at the
     * index. So one end sees the other's change. */
    atomic_thread_fence(memory_order_seq_cst);
}

void memif_rx_abandon(struct memif_port *p)
{
    struct memif_queue *q = &p->conn.rx;
    if (!rx_refresh(p))
        return;
    for (; q->cur != q->limit; q->cur++) {
        struct memif_desc d = memif_desc_load(&q->ring->desc[q->cur & q->mask]);
        p->stats.rx_drop += !(d.flags & MEMIF_DESC_NEXT);
    }
}
