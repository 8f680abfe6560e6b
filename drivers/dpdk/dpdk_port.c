/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Moves frames between DPDK's buffers (mbufs) and the owner of the port. mbufs stay in here: what
 * is lent out is the address of their data.
 *
 * To send, slots are mbufs that were allocated beforehand. Frames that the device doesn't take at
 * once wait, in order, in a queue of fixed length. tx_reserve grants no more slots than fit in
 * there, so that a committed frame always has a place. Every later call tries the queue again.
 */
#include "dpdk_port.h"

#include "dpdk_device.h"
#include "dpdk_eal.h"
#include "dpdk_log.h"

#include <errno.h>
#include <linux/if_packet.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define REATTACH_NS 100000000ull /* time between two attempts to open a returned device */
#define GONE_NS     100000000ull /* wait for the kernel to report where an interface has gone */
#define RETRY_NS    20000u       /* time between two attempts to send waiting frames */

static struct dpdk_port *port_of(struct io_port *io)
{
    return (struct dpdk_port *)io;
}

/* The first call of a thread on this port. */
static void adopt_thread(struct dpdk_port *port)
{
    dpdk_eal_register_thread();
    if (port->rx_signal) {
        /* The tap driver learns of new frames by a signal; it must not stay blocked. */
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, port->rx_signal);
        pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    }
    port->thread = pthread_self();
    port->thread_known = true;
}

static inline void know_thread(struct dpdk_port *port)
{
    if (!port->thread_known || port->thread != pthread_self())
        adopt_thread(port);
}

/* Give the device as many frames of the queue as it takes now. */
static void flush(struct dpdk_port *port)
{
    uint32_t lens[PORT_QUEUE_MAX], done = 0;
    for (uint32_t i = 0; i < port->n_queued; i++) /* once taken, an mbuf is the device's */
        lens[i] = port->queued[i]->pkt_len;
    while (done < port->n_queued) {
        uint16_t got =
            rte_eth_tx_burst(port->id, 0, port->queued + done, (uint16_t)(port->n_queued - done));
        if (got == 0)
            break;
        port->st.tx_frames += got;
        while (got--)
            port->st.tx_bytes += lens[done++];
    }
    port->n_queued -= done;
    if (done && port->n_queued)
        memmove(port->queued, port->queued + done, port->n_queued * sizeof(port->queued[0]));
}

void dpdk_port_drop_queued(struct dpdk_port *port)
{
    if (port->n_queued)
        rte_pktmbuf_free_bulk(port->queued, port->n_queued);
    port->st.tx_drop += port->n_queued;
    port->n_queued = 0;
}

/* Join a frame in several mbufs into one; NULL = no room for it. */
static struct rte_mbuf *linearise(struct dpdk_port *port, struct rte_mbuf *chain)
{
    struct rte_mbuf *flat = rte_pktmbuf_alloc(port->pool);
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

/* Judge one received frame; returns the mbuf to lend, or NULL when it was dropped and counted. */
static struct rte_mbuf *rx_accept(struct dpdk_port *port, struct rte_mbuf *m)
{
    if (unlikely(m->pkt_len > port->io.caps.frame_max)) {
        port->st.rx_oversize++;
        rte_pktmbuf_free(m);
        return NULL;
    }
    if (unlikely(m->nb_segs > 1)) {
        m = linearise(port, m);
        if (!m) {
            port->st.rx_drop++;
            return NULL;
        }
    }
    if (port->drop_own && m->data_len >= 12 &&
        !memcmp(rte_pktmbuf_mtod_offset(m, const char *, 6), port->io.caps.mac, 6)) {
        rte_pktmbuf_free(m); /* an echo of what we sent, not a loss */
        return NULL;
    }
    return m;
}

static unsigned dpdk_rx_peek(struct io_port *io, struct io_frame *frames, unsigned max,
                             uint64_t now)
{
    struct dpdk_port *port = port_of(io);
    struct rte_mbuf *burst[IO_BURST_MAX];
    uint32_t room = PORT_LENT_MAX - (port->lent_last - port->lent_first);
    unsigned n, lent = 0;
    port->last_now = now;
    if (unlikely(!port->attached))
        return 0;
    know_thread(port);
    if (unlikely(port->n_queued))
        flush(port);
    if (max > IO_BURST_MAX)
        max = IO_BURST_MAX;
    if (max > room)
        max = room;

    n = rte_eth_rx_burst(port->id, 0, burst, (uint16_t)max);
    for (unsigned i = 0; i < n; i++) {
        struct rte_mbuf *m = rx_accept(port, burst[i]);
        if (!m)
            continue;
        frames[lent].data = rte_pktmbuf_mtod(m, const uint8_t *);
        frames[lent].len = m->data_len;
        frames[lent].flags = rx_flags(m);
        port->lent[port->lent_last++ % PORT_LENT_MAX] = m;
        port->st.rx_frames++;
        port->st.rx_bytes += m->data_len;
        lent++;
    }
    return lent;
}

static void dpdk_rx_release(struct io_port *io, unsigned n)
{
    struct dpdk_port *port = port_of(io);
    while (n && port->lent_first != port->lent_last) {
        uint32_t at = port->lent_first % PORT_LENT_MAX;
        uint32_t run = PORT_LENT_MAX - at; /* up to the end of the array */

        if (run > n)
            run = n;
        if (run > port->lent_last - port->lent_first)
            run = port->lent_last - port->lent_first;
        rte_pktmbuf_free_bulk(port->lent + at, run);
        port->lent_first += run;
        n -= run;
    }
}

/* Empty the interrupt's descriptor, in pieces of the size that it wants: an eventfd's (vfio) is 8
 * octets, uio's is 4, and any other is an error that leaves it readable. */
static void drain(struct dpdk_port *port)
{
    uint64_t count;
    if (!port->rx_piece)
        port->rx_piece = sizeof(count);
    while (read(port->io.caps.rx_fd, &count, port->rx_piece) > 0)
        ;
    if (errno == EINVAL && port->rx_piece == sizeof(count)) {
        port->rx_piece = sizeof(uint32_t);
        drain(port);
    }
}

static void rx_arm(struct io_port *io, bool on)
{
    struct dpdk_port *port = port_of(io);
    if (!port->attached)
        return;
    if (port->n_queued)
        flush(port);
    if (port->packet_fd >= 0) {
        /* A watched socket costs the sender of each frame a wake-up or, if the waiter is awake, the
         * search for a waiter. */
        struct epoll_event ev = {.events = EPOLLIN};
        epoll_ctl(io->caps.rx_fd, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, port->packet_fd, &ev);
        return;
    }
    if (!port->rx_interrupt)
        return; /* a socket is readable as long as something is in it */
    if (on) {
        rte_eth_dev_rx_intr_enable(port->id, 0);
    } else {
        rte_eth_dev_rx_intr_disable(port->id, 0);
        drain(port);
    }
}

/* Make at least `want` spare mbufs, as far as the pool has any. */
static void refill_spare(struct dpdk_port *port, uint32_t want)
{
    uint32_t need = want > port->n_spare ? want - port->n_spare : 0;
    if (!need)
        return;
    if (rte_pktmbuf_alloc_bulk(port->pool, port->spare + port->n_spare, need) == 0) {
        port->n_spare += need;
        return;
    }
    while (need--) {
        struct rte_mbuf *m = rte_pktmbuf_alloc(port->pool);
        if (!m)
            return;
        port->spare[port->n_spare++] = m;
    }
}

/* Slots that were not committed become spare again. */
static void unreserve(struct dpdk_port *port, uint32_t from)
{
    while (port->n_reserved > from)
        port->spare[port->n_spare++] = port->reserved[--port->n_reserved];
    port->n_reserved = 0;
}

static unsigned dpdk_tx_reserve(struct io_port *io, struct io_slot *slots, unsigned max,
                                uint64_t now)
{
    struct dpdk_port *port = port_of(io);
    uint32_t n = max < IO_BURST_MAX ? max : IO_BURST_MAX;
    port->last_now = now;
    unreserve(port, 0);
    if (unlikely(!port->attached || !port->link.up)) {
        port->st.tx_full++;
        return 0;
    }
    know_thread(port);
    if (unlikely(port->n_queued))
        flush(port);
    if (n > PORT_QUEUE_MAX - port->n_queued)
        n = PORT_QUEUE_MAX - port->n_queued;
    refill_spare(port, n);
    if (n > port->n_spare)
        n = port->n_spare;
    if (n < max)
        port->st.tx_full++;

    for (uint32_t i = 0; i < n; i++) {
        struct rte_mbuf *m = port->spare[--port->n_spare];
        port->reserved[i] = m;
        slots[i].data = rte_pktmbuf_mtod(m, uint8_t *);
        slots[i].cap = io->caps.frame_max;
        slots[i].len = 0;
        slots[i].priv = m;
    }
    port->n_reserved = n;
    return n;
}

static void dpdk_tx_commit(struct io_port *io, const struct io_slot *slots, unsigned n,
                           uint64_t now)
{
    struct dpdk_port *port = port_of(io);
    port->last_now = now;
    if (n > port->n_reserved)
        n = port->n_reserved;
    for (unsigned i = 0; i < n; i++) {
        struct rte_mbuf *m = port->reserved[i];
        uint32_t len = slots[i].len;

        if (len == 0 || unlikely(len > io->caps.frame_max)) {
            port->st.tx_drop += len != 0;
            port->spare[port->n_spare++] = m;
            continue;
        }
        m->data_len = (uint16_t)len;
        m->pkt_len = len;
        port->queued[port->n_queued++] = m;
    }
    unreserve(port, n);
    if (likely(port->attached))
        flush(port);
    else
        dpdk_port_drop_queued(port);
}

/* With frames in the queue the owner should come back soon, though nothing will wake it. */
static uint64_t port_deadline(struct io_port *io)
{
    const struct dpdk_port *port = port_of(io);
    return port->n_queued ? port->last_now + RETRY_NS : UINT64_MAX;
}

/* Frames the kernel had no ring space for; reading clears its counter. */
static uint64_t kernel_drops(const struct dpdk_port *port)
{
    struct tpacket_stats ts = {0};
    socklen_t len = sizeof(ts);
    if (port->packet_fd < 0 ||
        getsockopt(port->packet_fd, SOL_PACKET, PACKET_STATISTICS, &ts, &len) < 0)
        return 0;
    return ts.tp_drops;
}

static void device_losses(struct dpdk_port *port, uint64_t *rx, uint64_t *tx)
{
    struct rte_eth_stats es;
    *rx = *tx = 0;
    if (port->attached && rte_eth_stats_get(port->id, &es) == 0) {
        port->lost_rx += kernel_drops(port);
        *rx = es.imissed + es.ierrors + es.rx_nombuf;
        *tx = es.oerrors;
    }
}

void dpdk_port_keep_losses(struct dpdk_port *port)
{
    uint64_t rx, tx;
    device_losses(port, &rx, &tx);
    port->lost_rx += rx;
    port->lost_tx += tx;
}

static void port_stats(struct io_port *io, struct io_stats *out)
{
    struct dpdk_port *port = port_of(io);
    uint64_t rx, tx;
    device_losses(port, &rx, &tx);
    *out = port->st;
    out->rx_drop += port->lost_rx + rx;
    tx += port->lost_tx;
    out->tx_drop += tx;
    out->tx_frames -= tx < out->tx_frames ? tx : out->tx_frames;
}

static void set_link(struct dpdk_port *port, bool up)
{
    if (port->link.up != up)
        port->link.changes++;
    port->link.up = up;
    if (!up)
        dpdk_port_drop_queued(port);
}

/* An interface that goes down leaves an error on its sockets, which would fail the first send after
 * it is up again, and makes poll() return at once until then. */
static void clear_socket_error(const struct dpdk_port *port)
{
    int error;
    socklen_t len = sizeof(error);
    if (port->packet_fd >= 0)
        getsockopt(port->packet_fd, SOL_SOCKET, SO_ERROR, &error, &len);
}

void dpdk_port_refresh_link(struct dpdk_port *port)
{
    struct rte_eth_link el = {0};
    if (port->watched) {
        uint64_t fresh = port->nd.changes - port->nd_changes;
        bool up = port->attached && port->nd.up;

        if (fresh)
            clear_socket_error(port);
        port->nd_changes = port->nd.changes;
        if (fresh > 1 && up == port->link.up)
            port->link.changes += fresh & ~1ull; /* down and up since the last look */
        set_link(port, up);
        return;
    }
    port->link.why = port->gone ? "the NIC is gone" : NULL;
    set_link(port, port->attached && rte_eth_link_get_nowait(port->id, &el) == 0 &&
                       el.link_status == RTE_ETH_LINK_UP);
    if (el.link_speed != RTE_ETH_SPEED_NUM_NONE && el.link_speed != RTE_ETH_SPEED_NUM_UNKNOWN)
        port->io.caps.rate_bps = el.link_speed * 1000000ull;
}

/* Attach with buffers for frames of this size. */
static int attach_sized(struct dpdk_port *port, uint32_t frame_max, char *err, size_t size)
{
    rte_mempool_free(port->pool);
    port->pool = NULL;
    port->n_spare = 0;
    int rc = dpdk_port_respec(port, frame_max, err, size);
    return rc ? rc : dpdk_port_attach(port, frame_max, err, size);
}

/* Attach the port to its interface: the one that was gone, or one of its name, or the same one,
 * whose frames have outgrown the buffers. Buffers never become smaller, because queue pairs may
 * fill them. */
static void attach_again(struct dpdk_port *port, uint64_t now)
{
    char err[512] = "";
    uint32_t had = port->frame_max;
    if (now < port->next_attach || !dpdk_port_may_let_go(port))
        return;
    if (port->device)
        dpdk_port_detach(port); /* it could not be removed before */
    if (port->device)
        return;
    if (port->wanted)
        dpdk_iface_frame_max(port, port->wanted);
    uint32_t frame = RTE_MAX(dpdk_port_iface_frame(port), had);
    int rc = attach_sized(port, frame, err, sizeof(err));
    if (rc && frame > had) {
        dpdk_log(IO_LOG_WARN, "%s: the port keeps its frames of %u octets, %u can't be had: %s",
                 port->spec.name, had, frame, err);
        port->wanted = had;
        rc = attach_sized(port, had, err, sizeof(err));
    }
    port->frame_max = rc ? had : port->frame_max;
    if (rc == 0) {
        if (!port->growing)
            dpdk_log(IO_LOG_INFO, "%s: interface %s is back", port->spec.name, port->nd.name);
        port->next_attach = 0;
    } else {
        if (!port->next_attach)
            dpdk_log(IO_LOG_ERROR, "%s", err);
        port->next_attach = now + REATTACH_NS;
    }
    port->growing = false;
}

/* Log that the interface is gone, once the kernel has reported where it is, or has had enough time.
 */
static void tell_gone(struct dpdk_port *port, uint64_t now)
{
    const struct netdev *nd = &port->nd;
    if (!port->tell_gone || (!nd->moved && nd->ifindex == 0 && now < port->tell_gone))
        return;
    port->tell_gone = 0;
    if (nd->moved)
        dpdk_log(IO_LOG_WARN,
                 "%s: interface %s is in another network namespace now, where we can't follow it: "
                 "we wait for one of this name here",
                 port->spec.name, nd->name);
    else
        dpdk_log(IO_LOG_WARN, "%s: interface %s is gone", port->spec.name, port->told_name);
}

static void follow_mac(struct dpdk_port *port)
{
    static const uint8_t none[6];
    const uint8_t *m = port->nd.mac, *w = port->wanted_mac;
    if (memcmp(m, port->seen_mac, 6) == 0)
        return;
    memcpy(port->seen_mac, m, 6);
    if (memcmp(w, none, 6) == 0)
        memcpy(port->io.caps.mac, m, 6);
    else if (memcmp(m, w, 6) != 0)
        dpdk_log(
            IO_LOG_WARN,
            "%s: interface %s has MAC address %02x:%02x:%02x:%02x:%02x:%02x now, the port keeps "
            "%02x:%02x:%02x:%02x:%02x:%02x, with which it was opened: frames for it may not "
            "come any more",
            port->spec.name, port->nd.name, m[0], m[1], m[2], m[3], m[4], m[5], w[0], w[1], w[2],
            w[3], w[4], w[5]);
}

/* The MTU has changed. Frames that fit the buffers are allowed at once. Longer frames need new
 * buffers, for which the device has to be attached again. */
static void follow_mtu(struct dpdk_port *port)
{
    uint32_t frame = dpdk_port_iface_frame(port);
    bool fits = port->spec.kind == DPDK_AF_XDP || dpdk_spec_framesz(frame) <= port->spec.ring_frame;
    if (frame > port->frame_max && fits) {
        port->frame_max = frame;
    } else if (frame > port->frame_max && dpdk_port_may_let_go(port)) {
        port->growing = true;
        dpdk_port_detach(port);
        return;
    }
    port->io.caps.frame_max = RTE_MIN(frame, port->frame_max);
}

/* Follow changes of the interface under the port. */
static void follow_interface(struct dpdk_port *port, uint64_t now)
{
    struct netdev *nd = &port->nd;
    bool tap = port->spec.kind == DPDK_TAP;
    netdev_poll(nd);
    if (port->attached && (nd->ifindex == 0 || nd->replaced)) {
        port->tell_gone = now + GONE_NS;
        dpdk_port_detach(port);
    }
    tell_gone(port, now);
    nd->replaced = false;
    if (port->attached && strcmp(nd->name, port->told_name) != 0) {
        dpdk_log(IO_LOG_INFO, "%s: interface %s is called %s now", port->spec.name, port->told_name,
                 nd->name);
        memcpy(port->told_name, nd->name, sizeof(port->told_name));
    }
    if (port->attached && tap)
        port->io.caps.frame_max = RTE_MIN(nd->mtu + ETH_HDR, port->frame_max);
    else if (port->attached)
        follow_mtu(port);
    if (!port->attached && nd->ifindex > 0 && !tap) {
        attach_again(port, now);
        if (port->attached)
            follow_mtu(port);
    }
    if (port->attached && !tap)
        follow_mac(port);
}

static void port_service(struct io_port *io, uint64_t now)
{
    struct dpdk_port *port = port_of(io);
    port->last_now = now;
    if (port->watched)
        follow_interface(port, now);
    else if (port->spec.kind == DPDK_PCI)
        dpdk_port_follow_nic(port, now);
    dpdk_port_refresh_link(port);
    if (port->attached && port->n_queued)
        flush(port);
}

static void port_link(struct io_port *io, struct io_link *out)
{
    *out = port_of(io)->link;
}

const struct io_ops dpdk_port_ops = {
    .name = "dpdk",
    .rx_arm = rx_arm,
    .rx_peek = dpdk_rx_peek,
    .rx_release = dpdk_rx_release,
    .tx_reserve = dpdk_tx_reserve,
    .tx_commit = dpdk_tx_commit,
    .deadline = port_deadline,
    .service = port_service,
    .claim = dpdk_port_claim,
    .link = port_link,
    .stats = port_stats,
    .close = dpdk_port_close,
};
