/* SPDX-License-Identifier: BSD-3-Clause
 *
 * An end of a channel as a port: opening, growing, link, statistics, closing.
 */
#include "channel_port.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

void channel_ring_at(struct channel_ring *r, const struct channel_memory *m, enum channel_side side,
                     enum channel_side to)
{
    struct channel_head *head = (struct channel_head *)(void *)m->base;
    r->stride = channel_stride(m->frame_max);
    r->size = m->slots;
    r->slots = m->base + CHANNEL_PAGE + (size_t)to * m->slots * r->stride;
    r->base = r->cur = r->done = 0;
    r->back = r->back_at = CHANNEL_BACK;
    r->unread = false;
    r->limit = to == side ? 0 : r->size; /* no frame has come; all slots are free */
    atomic_store_explicit(&r->at, &head->to[to], memory_order_release);
}

static void port_link(struct io_port *io, struct io_link *out)
{
    const struct channel_port *p = (const struct channel_port *)io;
    *out = (struct io_link){.up = p->up && !p->fault, .changes = p->link_changes, .why = p->why};
    if (p->fault)
        *out = (struct io_link){
            .changes = p->link_changes + 1,
            .why = "the other end of the channel wrote an impossible index",
        };
}

static void port_stats(struct io_port *io, struct io_stats *out)
{
    *out = ((const struct channel_port *)io)->stats;
}

static void port_close(struct io_port *io)
{
    struct channel_port *p = (struct channel_port *)io;
    struct stat st;
    channel_memory_free(&p->memory);
    channel_memory_free(&p->next);
    for (unsigned i = 0; i < p->nworn; i++)
        munmap(p->worn[i], CHANNEL_PAGE);
    if (p->bell >= 0)
        close(p->bell);
    if (fstat(p->event, &st) == 0 && st.st_dev == p->event_dev && st.st_ino == p->event_ino)
        close(p->event);
    free(p->lent);
    free(p->next_lent);
    free(p);
}

#define CHANNEL_OPS                                                                                \
    .name = "channel", .rx_arm = channel_rx_arm, .rx_peek = channel_rx_peek,                       \
    .rx_release = channel_rx_release, .tx_reserve = channel_tx_reserve,                            \
    .tx_commit = channel_tx_commit, .link = port_link, .stats = port_stats, .close = port_close

static const struct io_ops switch_ops = {CHANNEL_OPS};
static const struct io_ops program_ops = {CHANNEL_OPS, .wait = channel_wait,
                                          .nudge = channel_nudge};

int channel_open(enum channel_side side, struct channel_memory *m, int event, uint32_t frame_max,
                 struct io_port **out)
{
    struct stat st;
    if (frame_max == 0)
        frame_max = m->frame_max;
    if (frame_max < 64 || frame_max > m->frame_max)
        return -EINVAL;
    if (fstat(event, &st) < 0)
        return -errno;
    struct channel_port *p = calloc(1, sizeof(*p));
    struct channel_lent *lent = calloc(m->slots, sizeof(*lent));
    if (!p || !lent) {
        free(p);
        free(lent);
        return -ENOMEM;
    }
    p->io.ops = side == CHANNEL_SWITCH ? &switch_ops : &program_ops;
    p->io.caps.frame_max = frame_max;
    p->io.caps.rx_fd = side == CHANNEL_SWITCH ? event : -1;
    snprintf(p->io.spec, sizeof(p->io.spec), "channel:%s",
             side == CHANNEL_SWITCH ? "switch" : "program");
    p->side = side;
    p->flags_mask = side == CHANNEL_PROGRAM ? IO_RX_IP_CSUM_OK | IO_RX_ICRC_OK : 0;
    p->up = true;
    p->lent = lent;
    p->memory = *m;
    p->next.fd = p->bell = -1;
    p->event = event;
    p->event_dev = st.st_dev;
    p->event_ino = st.st_ino;
    *m = (struct channel_memory){.fd = -1};
    channel_ring_at(&p->rx, &p->memory, side, side);
    channel_ring_at(&p->tx, &p->memory, side, !side);
    /* All 0, unless this end takes the place of another one. */
    p->rx.cur = atomic_load_explicit(&channel_index(&p->rx)->cons, memory_order_acquire);
    p->rx.limit = p->rx.done = p->rx.cur;
    p->rx.base = atomic_load_explicit(&channel_index(&p->rx)->cons_base, memory_order_relaxed);
    p->tx.cur = atomic_load_explicit(&channel_index(&p->tx)->prod, memory_order_acquire);
    p->tx.base = atomic_load_explicit(&channel_index(&p->tx)->prod_base, memory_order_relaxed);
    p->tx.back_at = p->tx.cur;
    p->tx.limit =
        atomic_load_explicit(&channel_index(&p->tx)->cons, memory_order_acquire) + p->tx.size;
    if (p->tx.limit - p->tx.cur > p->tx.size)
        p->fault = CHANNEL_INDEX;
    *out = &p->io;
    return 0;
}

void channel_set_bell(struct io_port *io, int fd)
{
    ((struct channel_port *)io)->bell = fd;
}

int channel_grow(struct io_port *io, struct channel_memory *m)
{
    struct channel_port *p = (struct channel_port *)io;
    if (!channel_grown(io))
        return -EBUSY;
    if (m->slots <= p->memory.slots || m->frame_max != p->memory.frame_max)
        return -EINVAL;
    p->next_lent = calloc(m->slots, sizeof(*p->next_lent));
    if (!p->next_lent)
        return -ENOMEM;
    p->next = *m;
    p->rx_moved = p->tx_moved = false;
    *m = (struct channel_memory){.fd = -1};
    if (!p->fault)
        channel_tx_move(p); /* otherwise an idle end would keep the old memory */
    return 0;
}

bool channel_grown(struct io_port *io)
{
    struct channel_port *p = (struct channel_port *)io;
    if (!p->next.base)
        return true;
    if (!p->rx_moved || !p->tx_moved || p->reserved > 0)
        return false;
    if (p->side == CHANNEL_PROGRAM && p->nworn < CHANNEL_GROWTHS) {
        void *head = NULL;
        channel_memory_wear(&p->memory, &head);
        if (head)
            p->worn[p->nworn++] = head;
    }
    channel_memory_free(&p->memory);
    p->memory = p->next;
    p->next = (struct channel_memory){.fd = -1};
    free(p->next_lent);
    p->next_lent = NULL;
    return true;
}

void channel_set_link(struct io_port *io, bool up, const char *why)
{
    struct channel_port *p = (struct channel_port *)io;
    p->link_changes += p->up != up;
    p->up = up;
    p->why = up ? NULL : why;
}

uint32_t channel_slots(const struct io_port *io)
{
    return ((const struct channel_port *)io)->memory.slots;
}

enum channel_fault channel_fault(const struct io_port *io)
{
    return ((const struct channel_port *)io)->fault;
}

void channel_counters(const struct io_port *io, struct channel_counters *out)
{
    *out = ((const struct channel_port *)io)->counters;
}
