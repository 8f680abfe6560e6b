/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See lane.h.
 */
#include "lane.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "team.h"

#define LANE_RING 256u /* frames to send */

struct lane {
    struct io_port io;
    struct device *device;
    struct frame_ring *out;
    struct io_port *queue; /* NULL = it has none */
    bool direct;           /* the reserved slots are the queue's */
    struct io_link link;
    char why[96];
    uint64_t tx_full;
};

static struct lane *lane_of(struct io_port *io)
{
    return (struct lane *)io;
}

static unsigned lane_rx_peek(struct io_port *io, struct io_frame *frames, unsigned max,
                             uint64_t now)
{
    struct io_port *q = lane_of(io)->queue;
    return q ? q->ops->rx_peek(q, frames, max, now) : 0;
}

static void lane_rx_release(struct io_port *io, unsigned n)
{
    struct io_port *q = lane_of(io)->queue;
    if (q)
        q->ops->rx_release(q, n);
}

static void lane_rx_arm(struct io_port *io, bool on)
{
    struct io_port *q = lane_of(io)->queue;
    if (q && q->ops->rx_arm)
        q->ops->rx_arm(q, on);
}

static bool lane_has_queue(const struct lane *l)
{
    struct io_link link = {.up = false};
    if (l->queue)
        l->queue->ops->link(l->queue, &link);
    return link.up;
}

static unsigned lane_tx_reserve(struct io_port *io, struct io_slot *slots, unsigned max,
                                uint64_t now)
{
    struct lane *l = lane_of(io);
    l->direct = lane_has_queue(l);
    if (l->direct)
        return l->queue->ops->tx_reserve(l->queue, slots, max, now);
    unsigned n = l->link.up ? frame_ring_reserve(l->out, slots, max) : 0;
    for (unsigned i = 0; i < n; i++)
        slots[i].cap = io->caps.frame_max;
    l->tx_full += n < max;
    return n;
}

static void lane_tx_commit(struct io_port *io, const struct io_slot *slots, unsigned n,
                           uint64_t now)
{
    struct lane *l = lane_of(io);
    if (l->direct)
        l->queue->ops->tx_commit(l->queue, slots, n, now);
    else if (frame_ring_commit(l->out, slots, n, 0) > 0)
        team_wake(l->device->team, 0);
}

/* Woken by the other members. */
static uint64_t lane_deadline(struct io_port *io)
{
    struct io_port *q = lane_of(io)->queue;
    return q && q->ops->deadline ? q->ops->deadline(q) : UINT64_MAX;
}

static void lane_look(struct lane *l)
{
    struct team_port port;
    team_port(l->device->team, &port);
    l->io.caps = port.caps;
    l->io.caps.rx_fd = l->queue ? l->queue->caps.rx_fd : -1;
    l->io.caps.own_echo = l->queue && l->queue->caps.own_echo; /* else member 0 drops them */
    l->link = port.link;
    memcpy(l->why, port.why, sizeof(l->why));
    l->link.why = l->why[0] ? l->why : NULL;
}

static void lane_service(struct io_port *io, uint64_t now)
{
    struct io_port *q = lane_of(io)->queue;
    if (q && q->ops->service)
        q->ops->service(q, now);
    lane_look(lane_of(io));
}

static void lane_link(struct io_port *io, struct io_link *out)
{
    *out = lane_of(io)->link;
}

/* Frames that member 0 has sent for this one are counted at its port. */
static void lane_stats(struct io_port *io, struct io_stats *out)
{
    const struct lane *l = lane_of(io);
    *out = (struct io_stats){.tx_full = 0};
    if (l->queue)
        l->queue->ops->stats(l->queue, out);
    out->tx_full += l->tx_full;
}

static void lane_close(struct io_port *io)
{
    struct io_port *q = lane_of(io)->queue;
    if (q)
        q->ops->close(q);
    free(io);
}

static const struct io_ops lane_ops = {
    .name = "lane",
    .rx_arm = lane_rx_arm,
    .rx_peek = lane_rx_peek,
    .rx_release = lane_rx_release,
    .tx_reserve = lane_tx_reserve,
    .tx_commit = lane_tx_commit,
    .deadline = lane_deadline,
    .service = lane_service,
    .link = lane_link,
    .stats = lane_stats,
    .close = lane_close,
};

int lane_open(struct device *d, struct io_port *queue, struct io_port **out)
{
    struct team *t = d->team;
    struct lane *l = calloc(1, sizeof(*l));
    if (l)
        l->out = frame_ring_new(LANE_RING, IO_FRAME_MAX);
    if (!l || !l->out) {
        if (queue)
            queue->ops->close(queue);
        free(l);
        return -ENOMEM;
    }
    l->queue = queue;
    t->out[d->member] = l->out; /* freed with the team */
    l->io.ops = &lane_ops;
    l->device = d;
    snprintf(l->io.spec, sizeof(l->io.spec), "%s", d->conf->port);
    lane_look(l);
    *out = &l->io;
    return 0;
}

/* Without a link frames are lost, as on any port (EVT-05). */
static unsigned lane_lose(struct device *d, struct frame_ring *ring)
{
    struct io_frame frames[IO_BURST_MAX];
    unsigned n = frame_ring_peek(ring, frames, IO_BURST_MAX);
    if (n > 0)
        frame_ring_release(ring);
    d->stats.no_link += n;
    return n;
}

static unsigned lane_send(struct device *d, struct frame_ring *ring, uint64_t now)
{
    struct io_slot slots[IO_BURST_MAX];
    struct io_frame frames[IO_BURST_MAX];
    if (!frame_ring_waits(ring))
        return 0;
    unsigned room = d->io->ops->tx_reserve(d->io, slots, IO_BURST_MAX, now);
    d->tx_blocked = room == 0;
    if (room == 0) {
        return d->link.up ? 0 : lane_lose(d, ring);
    }
    unsigned n = frame_ring_peek(ring, frames, room);
    for (unsigned i = 0; i < n; i++) {
        if (frames[i].len > slots[i].cap)
            continue; /* too long: the port's frames have become smaller meanwhile */
        memcpy(slots[i].data, frames[i].data, frames[i].len);
        slots[i].len = frames[i].len;
    }
    d->io->ops->tx_commit(d->io, slots, room, now);
    if (n > 0)
        frame_ring_release(ring);
    return n;
}

unsigned lane_forward(struct device *d, uint64_t now)
{
    unsigned n = 0;
    for (unsigned k = 1; k < d->team->n; k++) {
        if (d->team->out[k])
            n += lane_send(d, d->team->out[k], now);
    }
    return n;
}
