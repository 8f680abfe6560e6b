/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A DPDK port while it runs: its counters, its link, and the changes of its interface.
 */
#include "dpdk_port.h"

#include "dpdk_device.h"
#include "dpdk_log.h"

#include <errno.h>
#include <linux/if_packet.h>
#include <string.h>
#include <sys/socket.h>

#define REATTACH_NS 100000000ull /* time between two attempts to open a returned device */
#define GONE_NS     100000000ull /* wait for the kernel to report where an interface has gone */

static struct dpdk_port *port_of(struct io_port *io)
{
    return (struct dpdk_port *)io;
}

void dpdk_port_drop_queued(struct dpdk_port *port)
{
    for (unsigned k = 0; k < port->queues; k++) {
        dpdk_queue_lock(port->queue[k]);
        dpdk_queue_drop(port->queue[k]);
        dpdk_queue_unlock(port->queue[k]);
    }
}

bool dpdk_port_may_let_go(struct dpdk_port *port)
{
    bool idle = true;
    for (unsigned k = 0; k < port->queues; k++) {
        dpdk_queue_lock(port->queue[k]);
        idle &= dpdk_queue_is_idle(port->queue[k]);
        dpdk_queue_unlock(port->queue[k]);
    }
    return idle;
}

/* Pass news to the workers of other queues, for their next look; takes the lock of each. */
static void share_facts(struct dpdk_port *port)
{
    for (unsigned k = 1; k < port->queues; k++) {
        dpdk_queue_lock(port->queue[k]);
        port->queue[k]->caps = port->io.caps;
        dpdk_queue_unlock(port->queue[k]);
    }
}

void dpdk_port_set_attached(struct dpdk_port *port, bool attached)
{
    for (unsigned k = 0; k < port->queues; k++)
        dpdk_queue_lock(port->queue[k]);
    port->attached = attached;
    for (unsigned k = 0; k < port->queues; k++) {
        if (!attached) /* sent since the device was let go */
            dpdk_queue_drop(port->queue[k]);
        dpdk_queue_unlock(port->queue[k]);
    }
    port->io.caps.rx_fd = attached ? port->first.rx_fd : -1; /* the removal closes it */
    share_facts(port);
}

/* Frames the kernel had no ring space for; reading clears its counters. */
static uint64_t kernel_drops(const struct dpdk_port *port)
{
    uint64_t drops = 0;
    for (unsigned k = 0; k < port->queues; k++) {
        struct tpacket_stats ts = {0};
        socklen_t len = sizeof(ts);
        int fd = port->queue[k]->packet_fd;
        if (fd >= 0 && getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &ts, &len) == 0)
            drops += ts.tp_drops;
    }
    return drops;
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
    *out = port->first.st;
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
    atomic_store_explicit(&port->link_up, up, memory_order_relaxed);
    if (!up)
        dpdk_port_drop_queued(port);
}

void dpdk_port_refresh_link(struct dpdk_port *port)
{
    struct rte_eth_link el = {0};
    if (port->watched) {
        uint64_t fresh = port->nd.changes - port->nd_changes;
        bool up = port->attached && port->nd.up;

        for (unsigned k = 0; fresh && k < port->queues; k++)
            dpdk_queue_clear_error(port->queue[k]);
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
    for (unsigned k = 0; k < port->queues; k++)
        port->queue[k]->n_spare = 0; /* no worker touches them while nothing is attached */
    int rc = dpdk_port_respec(port, frame_max, err, size);
    return rc ? rc : dpdk_port_attach(port, frame_max, err, size);
}

/* Attach the port to its interface again, in three cases: the interface was gone and is back;
 * another interface has its name now; its frames have outgrown the buffers. Buffers never become
 * smaller, because queue pairs may fill them. */
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
    port->first.last_now = now;
    if (port->watched)
        follow_interface(port, now);
    else if (port->spec.kind == DPDK_PCI)
        dpdk_port_follow_nic(port, now);
    dpdk_port_refresh_link(port);
    share_facts(port);
    if (port->attached && port->first.n_queued)
        dpdk_queue_flush(&port->first);
}

static void port_link(struct io_port *io, struct io_link *out)
{
    *out = port_of(io)->link;
}

const struct io_ops dpdk_port_ops = {
    .name = "dpdk",
    .rx_arm = dpdk_queue_rx_arm,
    .rx_peek = dpdk_queue_rx_peek,
    .rx_release = dpdk_queue_rx_release,
    .tx_reserve = dpdk_queue_tx_reserve,
    .tx_commit = dpdk_queue_tx_commit,
    .deadline = dpdk_queue_deadline,
    .service = port_service,
    .claim = dpdk_port_claim,
    .queue = dpdk_queue_give,
    .link = port_link,
    .stats = port_stats,
    .close = dpdk_port_close,
};
