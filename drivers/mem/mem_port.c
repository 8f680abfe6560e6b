/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The driver's side of an emulated link: io.h's functions on one port. Frames are written and read
 * in place in the link's buffers. The lock is taken at most once a burst. A look that finds no
 * frames takes no lock, and reserving mostly none.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io_arg.h"
#include "mem_internal.h"

static struct mem_port *port_of(struct io_port *io)
{
    return (struct mem_port *)(void *)io;
}

static void port_rx_arm(struct io_port *io, bool on)
{
    struct mem_port *p = port_of(io);
    uint64_t count;
    pthread_mutex_lock(&p->link->lock);
    ssize_t n = read(p->sock->fd, &count, sizeof(count));
    (void)n; /* EAGAIN: there was no signal */
    p->sock->armed = on;
    pthread_mutex_unlock(&p->link->lock);
}

static unsigned port_rx_peek(struct io_port *io, struct io_frame *frames, unsigned max,
                             uint64_t now)
{
    struct mem_port *p = port_of(io);
    struct mem_socket *s = p->sock;
    unsigned n = 0;
    if (atomic_load_explicit(&s->waiting, memory_order_acquire) == 0)
        return 0;
    pthread_mutex_lock(&p->link->lock);
    while (n < max && s->head + s->lent != s->tail) {
        const struct mem_entry *e = mem_queue_at(s, s->head + s->lent);
        if (e->at > now)
            break;
        if (e->buf->gap) /* due before enough frames had overtaken it */
            mem_queue_unhold(s, e->buf);
        frames[n++] = (struct io_frame){.data = e->buf->data, .len = e->buf->len};
        p->stats.rx_bytes += e->buf->len;
        s->lent++;
        if (s->arrived < s->lent) {
            s->arrived = s->lent;
            s->arrived_bytes += e->buf->len;
        }
    }
    mem_queue_tell(s);
    pthread_mutex_unlock(&p->link->lock);
    p->stats.rx_frames += n;
    return n;
}

static void port_rx_release(struct io_port *io, unsigned n)
{
    struct mem_port *p = port_of(io);
    struct mem_socket *s = p->sock;
    if (n == 0)
        return;
    pthread_mutex_lock(&p->link->lock);
    for (; n && s->lent; n--) {
        struct mem_buf *buf = mem_queue_at(s, s->head)->buf;
        s->head++;
        s->lent--;
        s->arrived--;
        s->arrived_bytes -= buf->len;
        mem_buf_free(p->link, buf);
    }
    pthread_mutex_unlock(&p->link->lock);
}

/* Take free buffers from the pool, some more than needed, and ask the link whether it will have
 * more frames. Returns false if it won't now. */
static bool port_refill(struct mem_port *p, unsigned max, uint64_t now)
{
    struct mem_socket *s = p->sock;
    pthread_mutex_lock(&p->link->lock);
    while (p->cache_n < MEM_TX_CACHE && s->pool_n)
        p->cache[p->cache_n++] = s->pool[--s->pool_n];
    bool ok = mem_socket_may_send(p->link, p->index, now);
    s->wants_room = !ok || p->cache_n < max;
    pthread_mutex_unlock(&p->link->lock);
    return ok;
}

static unsigned port_tx_reserve(struct io_port *io, struct io_slot *slots, unsigned max,
                                uint64_t now)
{
    struct mem_port *p = port_of(io);
    struct mem_socket *s = p->sock;
    unsigned n = 0;
    bool ok = atomic_load_explicit(&s->up, memory_order_relaxed);
    while (p->reserved_n) /* left from an earlier reserve without a commit */
        p->cache[p->cache_n++] = p->reserved[--p->reserved_n];
    if (ok && (p->cache_n < max || p->may_be_full))
        ok = port_refill(p, max, now);
    while (ok && n < max && p->cache_n) {
        struct mem_buf *buf = p->cache[--p->cache_n];
        p->reserved[n] = buf;
        slots[n++] = (struct io_slot){.data = buf->data, .cap = io->caps.frame_max, .priv = buf};
    }
    p->reserved_n = n;
    p->stats.tx_full += n < max;
    return n;
}

static void port_tx_commit(struct io_port *io, const struct io_slot *slots, unsigned n,
                           uint64_t now)
{
    struct mem_port *p = port_of(io);
    bool up = atomic_load_explicit(&p->sock->up, memory_order_relaxed);
    pthread_mutex_lock(&p->link->lock);
    for (unsigned i = 0; i < p->reserved_n; i++) {
        struct mem_buf *buf = p->reserved[i];
        uint32_t len = i < n ? slots[i].len : 0;
        if (len == 0 || len > io->caps.frame_max) {
            p->stats.tx_drop += len != 0;
            p->cache[p->cache_n++] = buf;
            continue;
        }
        buf->len = len;
        p->stats.tx_drop += !up;
        p->stats.tx_frames += up;
        p->stats.tx_bytes += up ? len : 0;
        mem_socket_send(p->link, p->index, buf, now);
    }
    p->reserved_n = 0;
    const struct mem_link_faults *f = &p->sock->faults;
    p->may_be_full = f->rate || f->pfc || mem_link_is_switch(p->link);
    pthread_mutex_unlock(&p->link->lock);
}

static uint64_t port_deadline(struct io_port *io)
{
    struct mem_port *p = port_of(io);
    struct mem_socket *s = p->sock;
    uint64_t at = UINT64_MAX;
    pthread_mutex_lock(&p->link->lock);
    if (s->head + s->lent != s->tail)
        at = mem_queue_at(s, s->head + s->lent)->at;
    if (s->wants_room && s->room_at < at)
        at = s->room_at;
    pthread_mutex_unlock(&p->link->lock);
    return at;
}

static void port_link(struct io_port *io, struct io_link *out)
{
    struct mem_socket *s = port_of(io)->sock;
    *out = (struct io_link){.changes = atomic_load(&s->changes)};
    out->up = atomic_load(&s->up);
}

static void port_stats(struct io_port *io, struct io_stats *out)
{
    struct mem_port *p = port_of(io);
    *out = p->stats;
    pthread_mutex_lock(&p->link->lock);
    out->rx_oversize = p->sock->rx_oversize;
    pthread_mutex_unlock(&p->link->lock);
}

static void port_close(struct io_port *io)
{
    struct mem_port *p = port_of(io);
    struct mem_link *link = p->link;
    struct mem_socket *s = p->sock;
    port_rx_release(io, (unsigned)s->lent);
    pthread_mutex_lock(&link->lock);
    s->armed = false;
    mem_socket_flush(link, p->index, true, UINT64_MAX);
    for (unsigned i = 0; i < p->reserved_n; i++)
        mem_buf_free(link, p->reserved[i]);
    for (unsigned i = 0; i < p->cache_n; i++)
        mem_buf_free(link, p->cache[i]);
    s->open = false;
    link->opened--;
    link->deserted = link->opened == 1;
    mem_links_update(link);
    pthread_mutex_unlock(&link->lock);
    mem_link_put(link);
    free(p);
}

static const struct io_ops mem_ops = {
    .name = "mem",
    .rx_arm = port_rx_arm,
    .rx_peek = port_rx_peek,
    .rx_release = port_rx_release,
    .tx_reserve = port_tx_reserve,
    .tx_commit = port_tx_commit,
    .deadline = port_deadline,
    .link = port_link,
    .stats = port_stats,
    .close = port_close,
};

int io_mem_open(const char *args, const struct io_open_params *params, struct io_port **out,
                char *err, size_t err_size)
{
    struct mem_port *p = calloc(1, sizeof(*p));
    if (!p)
        return io_fail(err, err_size, -ENOMEM, "mem: no memory for a port");
    int rc = mem_registry_attach(args, params, &p->link, &p->index, err, err_size);
    if (rc) {
        free(p);
        return rc;
    }
    p->sock = p->link->sockets[p->index];
    p->may_be_full = true;
    p->io.ops = &mem_ops;
    p->io.caps = (struct io_caps){.frame_max = p->sock->frame_max,
                                  .rate_bps = p->link->cfg.faults.rate,
                                  .rx_fd = p->sock->fd};
    memcpy(p->io.caps.mac, p->sock->mac, 6);
    *out = &p->io;
    return 0;
}
