/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See dpdk_queue.h. mbufs stay in here: callers are lent the address of their data.
 *
 * To send, slots are mbufs that were allocated beforehand. Frames that the device doesn't take at
 * once wait, in order, in a queue of fixed length. tx_reserve grants no more slots than fit in
 * there, so that a committed frame always has a place. Every later call tries the queue again.
 */
#include "dpdk_queue.h"

#include "dpdk_eal.h"
#include "dpdk_port.h"

#include <errno.h>
#include <rte_ethdev.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define RETRY_NS 20000u /* time between two attempts to send waiting frames */

static struct dpdk_queue *queue_of(struct io_port *io)
{
    return (struct dpdk_queue *)io;
}

void dpdk_queue_init(struct dpdk_queue *q, struct dpdk_port *port, uint16_t index)
{
    q->port = port;
    q->index = index;
    q->rx_fd = q->packet_fd = q->io.caps.rx_fd = -1;
    pthread_mutex_init(&q->lock, NULL);
}

void dpdk_queue_lock(struct dpdk_queue *q)
{
    if (q->index > 0)
        pthread_mutex_lock(&q->lock);
}

void dpdk_queue_unlock(struct dpdk_queue *q)
{
    if (q->index > 0)
        pthread_mutex_unlock(&q->lock);
}

/* The first call of a thread on this queue. */
static void adopt_thread(struct dpdk_queue *q)
{
    dpdk_eal_register_thread();
    if (q->port->rx_signal) {
        /* The tap driver learns of new frames by a signal; it must not stay blocked. */
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, q->port->rx_signal);
        pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    }
    q->thread = pthread_self();
    q->thread_known = true;
}

static inline void know_thread(struct dpdk_queue *q)
{
    if (!q->thread_known || q->thread != pthread_self())
        adopt_thread(q);
}

void dpdk_queue_flush(struct dpdk_queue *q)
{
    uint32_t lens[PORT_QUEUE_MAX], done = 0;
    for (uint32_t i = 0; i < q->n_queued; i++) /* once taken, an mbuf is the device's */
        lens[i] = q->queued[i]->pkt_len;
    while (done < q->n_queued) {
        uint16_t got = rte_eth_tx_burst(q->port->id, q->index, q->queued + done,
                                        (uint16_t)(q->n_queued - done));
        if (got == 0)
            break;
        q->st.tx_frames += got;
        while (got--)
            q->st.tx_bytes += lens[done++];
    }
    q->n_queued -= done;
    if (done && q->n_queued)
        memmove(q->queued, q->queued + done, q->n_queued * sizeof(q->queued[0]));
}

void dpdk_queue_clear_error(const struct dpdk_queue *q)
{
    int error;
    socklen_t len = sizeof(error);
    if (q->packet_fd >= 0)
        getsockopt(q->packet_fd, SOL_SOCKET, SO_ERROR, &error, &len);
}

void dpdk_queue_drop(struct dpdk_queue *q)
{
    if (q->n_queued)
        rte_pktmbuf_free_bulk(q->queued, q->n_queued);
    q->st.tx_drop += q->n_queued;
    q->n_queued = 0;
}

/* Join a frame in several mbufs into one; NULL = no room for it. */
static struct rte_mbuf *linearise(struct dpdk_queue *q, struct rte_mbuf *chain)
{
    struct rte_mbuf *flat = rte_pktmbuf_alloc(q->port->pool);
    uint32_t len = chain->pkt_len;
    const void *data;
    char *room;
    if (flat) {
        room = len <= UINT16_MAX ? rte_pktmbuf_append(flat, (uint16_t)len) : NULL;
        data = room ? rte_pktmbuf_read(chain, 0, len, room) : NULL;
        if (!data) {
            rte_pktmbuf_free(flat);
            flat = NULL;
        } else if (data != room) {
            memcpy(room, data, len);
        }
        if (flat)
            flat->ol_flags = chain->ol_flags;
    }
    rte_pktmbuf_free(chain);
    return flat;
}

static uint32_t rx_flags(const struct rte_mbuf *m)
{
    bool good = (m->ol_flags & RTE_MBUF_F_RX_IP_CKSUM_MASK) == RTE_MBUF_F_RX_IP_CKSUM_GOOD;
    return good ? IO_RX_IP_CSUM_OK : 0;
}

/* Check one received frame. Returns the mbuf to lend, or NULL when the frame was dropped and
 * counted. */
static struct rte_mbuf *rx_accept(struct dpdk_queue *q, struct rte_mbuf *m)
{
    if (unlikely(m->pkt_len > q->io.caps.frame_max)) {
        q->st.rx_oversize++;
        rte_pktmbuf_free(m);
        return NULL;
    }
    if (unlikely(m->nb_segs > 1)) {
        m = linearise(q, m);
        if (!m) {
            q->st.rx_drop++;
            return NULL;
        }
    }
    if (q->port->drop_own && m->data_len >= 12 &&
        !memcmp(rte_pktmbuf_mtod_offset(m, const char *, 6), q->io.caps.mac, 6)) {
        rte_pktmbuf_free(m); /* our own echo, not a loss */
        return NULL;
    }
    return m;
}

static unsigned peek(struct dpdk_queue *q, struct io_frame *frames, unsigned max, uint64_t now)
{
    struct rte_mbuf *burst[IO_BURST_MAX];
    uint32_t room = PORT_LENT_MAX - (q->lent_last - q->lent_first);
    unsigned n, lent = 0;
    q->last_now = now;
    if (unlikely(!q->port->attached))
        return 0;
    know_thread(q);
    if (unlikely(q->n_queued))
        dpdk_queue_flush(q);
    if (max > IO_BURST_MAX)
        max = IO_BURST_MAX;
    if (max > room)
        max = room;

    n = rte_eth_rx_burst(q->port->id, q->index, burst, (uint16_t)max);
    for (unsigned i = 0; i < n; i++) {
        struct rte_mbuf *m = rx_accept(q, burst[i]);
        if (!m)
            continue;
        frames[lent].data = rte_pktmbuf_mtod(m, const uint8_t *);
        frames[lent].len = m->data_len;
        frames[lent].flags = rx_flags(m);
        q->lent[q->lent_last++ % PORT_LENT_MAX] = m;
        q->st.rx_frames++;
        q->st.rx_bytes += m->data_len;
        lent++;
    }
    return lent;
}

unsigned dpdk_queue_rx_peek(struct io_port *io, struct io_frame *frames, unsigned max, uint64_t now)
{
    struct dpdk_queue *q = queue_of(io);
    dpdk_queue_lock(q);
    unsigned n = peek(q, frames, max, now);
    dpdk_queue_unlock(q);
    return n;
}

static void release(struct dpdk_queue *q, unsigned n)
{
    while (n && q->lent_first != q->lent_last) {
        uint32_t at = q->lent_first % PORT_LENT_MAX;
        uint32_t run = PORT_LENT_MAX - at; /* up to the end of the array */

        if (run > n)
            run = n;
        if (run > q->lent_last - q->lent_first)
            run = q->lent_last - q->lent_first;
        rte_pktmbuf_free_bulk(q->lent + at, run);
        q->lent_first += run;
        n -= run;
    }
}

void dpdk_queue_rx_release(struct io_port *io, unsigned n)
{
    struct dpdk_queue *q = queue_of(io);
    dpdk_queue_lock(q);
    release(q, n);
    dpdk_queue_unlock(q);
}

/* Empty the interrupt's descriptor, in pieces of the size that it wants: an eventfd's (vfio) is 8
 * octets, uio's is 4, and any other is an error that leaves it readable. */
static void drain(struct dpdk_queue *q)
{
    uint64_t count;
    if (!q->rx_piece)
        q->rx_piece = sizeof(count);
    while (read(q->io.caps.rx_fd, &count, q->rx_piece) > 0)
        ;
    if (errno == EINVAL && q->rx_piece == sizeof(count)) {
        q->rx_piece = sizeof(uint32_t);
        drain(q);
    }
}

static void arm(struct dpdk_queue *q, bool on)
{
    /* The descriptor may be gone, and the worker has not looked since. */
    if (!q->port->attached || q->io.caps.rx_fd != q->rx_fd)
        return;
    if (q->n_queued)
        dpdk_queue_flush(q);
    if (q->packet_fd >= 0) {
        if (on && q->index > 0)
            dpdk_queue_clear_error(q); /* before the port's worker sees that the link is down */
        /* A watched socket costs the sender of each frame a wake-up or, if the waiter is awake, the
         * search for a waiter. */
        struct epoll_event ev = {.events = EPOLLIN};
        epoll_ctl(q->rx_fd, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, q->packet_fd, &ev);
        return;
    }
    if (!q->rx_interrupt)
        return; /* a socket stays readable until it is empty */
    if (on) {
        rte_eth_dev_rx_intr_enable(q->port->id, q->index);
    } else {
        rte_eth_dev_rx_intr_disable(q->port->id, q->index);
        drain(q);
    }
}

void dpdk_queue_rx_arm(struct io_port *io, bool on)
{
    struct dpdk_queue *q = queue_of(io);
    dpdk_queue_lock(q);
    arm(q, on);
    dpdk_queue_unlock(q);
}

/* Make at least `want` spare mbufs, as far as the pool has any. */
static void refill_spare(struct dpdk_queue *q, uint32_t want)
{
    uint32_t need = want > q->n_spare ? want - q->n_spare : 0;
    if (!need)
        return;
    if (rte_pktmbuf_alloc_bulk(q->port->pool, q->spare + q->n_spare, need) == 0) {
        q->n_spare += need;
        return;
    }
    while (need--) {
        struct rte_mbuf *m = rte_pktmbuf_alloc(q->port->pool);
        if (!m)
            return;
        q->spare[q->n_spare++] = m;
    }
}

/* Slots that were not committed become spare again. */
static void unreserve(struct dpdk_queue *q, uint32_t from)
{
    while (q->n_reserved > from)
        q->spare[q->n_spare++] = q->reserved[--q->n_reserved];
    q->n_reserved = 0;
}

static unsigned reserve(struct dpdk_queue *q, struct io_slot *slots, unsigned max, uint64_t now)
{
    uint32_t n = max < IO_BURST_MAX ? max : IO_BURST_MAX;
    q->last_now = now;
    unreserve(q, 0);
    if (unlikely(!q->port->attached ||
                 !atomic_load_explicit(&q->port->link_up, memory_order_relaxed))) {
        q->st.tx_full++;
        return 0;
    }
    know_thread(q);
    if (unlikely(q->n_queued))
        dpdk_queue_flush(q);
    if (n > PORT_QUEUE_MAX - q->n_queued)
        n = PORT_QUEUE_MAX - q->n_queued;
    refill_spare(q, n);
    if (n > q->n_spare)
        n = q->n_spare;
    if (n < max)
        q->st.tx_full++;

    for (uint32_t i = 0; i < n; i++) {
        struct rte_mbuf *m = q->spare[--q->n_spare];
        q->reserved[i] = m;
        slots[i].data = rte_pktmbuf_mtod(m, uint8_t *);
        slots[i].cap = q->io.caps.frame_max;
        slots[i].len = 0;
        slots[i].priv = m;
    }
    q->n_reserved = n;
    return n;
}

unsigned dpdk_queue_tx_reserve(struct io_port *io, struct io_slot *slots, unsigned max,
                               uint64_t now)
{
    struct dpdk_queue *q = queue_of(io);
    dpdk_queue_lock(q);
    unsigned n = reserve(q, slots, max, now);
    dpdk_queue_unlock(q);
    return n;
}

static void commit(struct dpdk_queue *q, const struct io_slot *slots, unsigned n, uint64_t now)
{
    q->last_now = now;
    if (n > q->n_reserved)
        n = q->n_reserved;
    for (unsigned i = 0; i < n; i++) {
        struct rte_mbuf *m = q->reserved[i];
        uint32_t len = slots[i].len;

        if (len == 0 || unlikely(len > q->io.caps.frame_max)) {
            q->st.tx_drop += len != 0;
            q->spare[q->n_spare++] = m;
            continue;
        }
        m->data_len = (uint16_t)len;
        m->pkt_len = len;
        q->queued[q->n_queued++] = m;
    }
    unreserve(q, n);
    if (likely(q->port->attached))
        dpdk_queue_flush(q);
    else
        dpdk_queue_drop(q);
}

void dpdk_queue_tx_commit(struct io_port *io, const struct io_slot *slots, unsigned n, uint64_t now)
{
    struct dpdk_queue *q = queue_of(io);
    dpdk_queue_lock(q);
    commit(q, slots, n, now);
    dpdk_queue_unlock(q);
}

/* With frames in the queue the owner should come back soon, though nothing will wake it. */
uint64_t dpdk_queue_deadline(struct io_port *io)
{
    struct dpdk_queue *q = queue_of(io);
    dpdk_queue_lock(q);
    uint64_t at = q->n_queued ? q->last_now + RETRY_NS : UINT64_MAX;
    dpdk_queue_unlock(q);
    return at;
}

/* ---- the queue of another worker than the port's ---- */

static void queue_service(struct io_port *io, uint64_t now)
{
    struct dpdk_queue *q = queue_of(io);
    dpdk_queue_lock(q);
    q->last_now = now;
    io->caps = q->caps;
    io->caps.rx_fd = q->rx_fd;
    if (q->port->attached && q->n_queued)
        dpdk_queue_flush(q);
    dpdk_queue_unlock(q);
}

static void queue_link(struct io_port *io, struct io_link *out)
{
    *out = (struct io_link){
        .up = atomic_load_explicit(&queue_of(io)->port->link_up, memory_order_relaxed)};
}

/* The queue's own counts. The device's counters are in the port's statistics. */
static void queue_stats(struct io_port *io, struct io_stats *out)
{
    struct dpdk_queue *q = queue_of(io);
    dpdk_queue_lock(q);
    *out = q->st;
    dpdk_queue_unlock(q);
}

/* The port frees it, with its mbufs. */
static void queue_close(struct io_port *io)
{
    struct dpdk_queue *q = queue_of(io);
    dpdk_queue_lock(q);
    dpdk_queue_drop(q);
    release(q, PORT_LENT_MAX);
    unreserve(q, 0);
    dpdk_queue_unlock(q);
}

static const struct io_ops queue_ops = {
    .name = "dpdk",
    .rx_arm = dpdk_queue_rx_arm,
    .rx_peek = dpdk_queue_rx_peek,
    .rx_release = dpdk_queue_rx_release,
    .tx_reserve = dpdk_queue_tx_reserve,
    .tx_commit = dpdk_queue_tx_commit,
    .deadline = dpdk_queue_deadline,
    .service = queue_service,
    .link = queue_link,
    .stats = queue_stats,
    .close = queue_close,
};

int dpdk_queue_give(struct io_port *io, unsigned k, unsigned n, struct io_port **out)
{
    struct dpdk_port *port = (struct dpdk_port *)io;
    *out = NULL;
    if (k == 0 || k >= n)
        return -EINVAL;
    if (k >= port->queues)
        return 0;
    struct dpdk_queue *q = port->queue[k];
    q->io.ops = &queue_ops;
    memcpy(q->io.spec, io->spec, sizeof(q->io.spec));
    queue_service(&q->io, port->first.last_now);
    *out = &q->io;
    return 0;
}
