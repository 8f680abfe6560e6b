/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A port's device in DPDK: probes it, gives it receive and send queues and a buffer pool made
 * for its driver, and finds out facts that DPDK's drivers don't give (a descriptor to sleep on, the
 * true frame size, the link of a kernel interface).
 */
/* For events and the unplugging of devices, which are experimental since DPDK 18.05. */
#define ALLOW_EXPERIMENTAL_API

#include "dpdk_device.h"

#include "dpdk_eal.h"
#include "dpdk_hint.h"
#include "dpdk_limits.h"
#include "dpdk_log.h"

#include <errno.h>
#include <fcntl.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* DPDK's af_xdp puts the kernel's frames into its mbufs, and the kernel limits them to a page. DPDK
 * makes a buffer of 63 cache lines, not of 64. Before the frame come the pool's header (64), the
 * mbuf (128), its head room (128) and XDP's own (256). */
#define AF_XDP_ROOM      (63u * 64u - 64u - 128u) /* data room, head room included */
#define AF_XDP_FRAME_MAX (AF_XDP_ROOM - RTE_PKTMBUF_HEADROOM - 256u)

int dpdk_fail(char *err, size_t size, int code, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(err, size, fmt, ap);
    va_end(ap);
    return code;
}

static bool kernel_iface(enum dpdk_kind kind)
{
    return kind == DPDK_AF_PACKET || kind == DPDK_AF_XDP || kind == DPDK_TAP;
}

/* Virtual devices that report the standard MTU but never look at a frame's length. */
static bool ignores_mtu(const char *name)
{
    static const char *const names[] = {"net_memif", "net_ring", "net_null", "net_pcap"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (!strncmp(name, names[i], strlen(names[i])))
            return true;
    return false;
}

/* The largest frame for a device that isn't a kernel interface, and the MTU to set on it. */
static uint32_t device_frame_max(const struct dpdk_spec *spec, const struct rte_eth_dev_info *info,
                                 uint32_t wanted, uint32_t *mtu)
{
    uint32_t overhead = 18, max = info->max_mtu ? info->max_mtu : RTE_ETHER_MTU;
    *mtu = RTE_ETHER_MTU;
    if (ignores_mtu(spec->name))
        return wanted;
    if (info->max_mtu != UINT16_MAX && info->max_rx_pktlen > info->max_mtu)
        overhead = info->max_rx_pktlen - info->max_mtu;
    if (info->max_rx_pktlen > overhead && max > info->max_rx_pktlen - overhead)
        max = info->max_rx_pktlen - overhead;
    *mtu = wanted - ETH_HDR < max ? wanted - ETH_HDR : max;
    return *mtu + ETH_HDR;
}

uint32_t dpdk_iface_frame_limit(const struct dpdk_port *port)
{
    return port->spec.kind == DPDK_AF_XDP ? AF_XDP_FRAME_MAX : IO_FRAME_MAX;
}

uint32_t dpdk_iface_frame_max(struct dpdk_port *port, uint32_t wanted)
{
    uint32_t limit = dpdk_iface_frame_limit(port);
    int rc;
    if (wanted > limit)
        wanted = limit;
    rc = netdev_raise_mtu(&port->nd, wanted - ETH_HDR);
    if (rc)
        dpdk_log(IO_LOG_WARN, "%s: the MTU of %s stays %u, %u was wanted: %s", port->spec.name,
                 port->nd.name, port->nd.mtu, wanted - ETH_HDR, strerror(-rc));
    return port->nd.mtu + ETH_HDR < wanted ? port->nd.mtu + ETH_HDR : wanted;
}

static int make_pool(struct dpdk_port *port, uint32_t frame_max, uint32_t n, char *err, size_t size)
{
    static unsigned serial;
    uint32_t room;
    char name[32];
    if (port->pool)
        return 0;
    if (port->spec.kind == DPDK_AF_XDP)
        room = AF_XDP_ROOM;
    else if (port->spec.kind == DPDK_AF_PACKET)
        room = RTE_MIN(RTE_PKTMBUF_HEADROOM + port->spec.ring_frame, (uint32_t)UINT16_MAX);
    else /* NICs take receive buffers in steps of 1 KiB */
        room = RTE_PKTMBUF_HEADROOM + RTE_ALIGN(frame_max + 8, 1024u);

    snprintf(name, sizeof(name), "urnic%u", serial++);
    port->pool =
        rte_pktmbuf_pool_create(name, n, PORT_POOL_CACHE, 0, (uint16_t)room, SOCKET_ID_ANY);
    if (!port->pool)
        return dpdk_fail(err, size, -rte_errno,
                         "%s: no memory for %u buffers of %u octets: %s (%s)", port->spec.name, n,
                         room, rte_strerror(rte_errno),
                         dpdk_eal_has_hugepages() ? "more hugepages: `sysctl vm.nr_hugepages=1024`"
                                                  : "urnic_mem= gives DPDK more");
    return 0;
}

/* Write what DPDK could not do, with advice. */
static int explain(const struct dpdk_port *port, const char *step, int rc, char *err, size_t size)
{
    const struct dpdk_spec *spec = &port->spec;
    const char *more = "urnic_debug=1 shows DPDK's log";
    char room[200];
    if (rc == 0)
        rc = -EIO;
    if (rc == -EEXIST) {
        more = "another port has this name: give it another number";
    } else if (spec->kind == DPDK_AF_XDP) {
        snprintf(room, sizeof(room),
                 "the MTU of %s, and of its peer when it is a veth, must be at most %u; no other "
                 "XDP program may be on it; a NIC needs `ethtool -L %s combined 1`",
                 spec->iface, AF_XDP_FRAME_MAX - ETH_HDR, spec->iface);
        more = room;
    } else if (spec->kind == DPDK_AF_PACKET &&
               dpdk_hint_fanout_taken(port->nd.ifindex, (int)getpid())) {
        return dpdk_fail(
            err, size, -EADDRINUSE,
            "fanout group %u, which DPDK makes of process id and interface, is another "
            "process's: start again (another id), or give each daemon a network namespace "
            "(doc/traps.md)",
            (unsigned)(getpid() ^ port->nd.ifindex) & 0xffff);
    } else if (spec->kind == DPDK_AF_PACKET) {
        more = "its rings are locked memory: LimitMEMLOCK= in the systemd unit, `ulimit -l` or "
               "CAP_IPC_LOCK give more, framecnt=64 takes less";
    } else if (spec->kind == DPDK_PCI && rc == -ENODEV) {
        more = "this build of DPDK has no driver for it, or its IOMMU group isn't free: see "
               "doc/nic.md";
    } else if (!strncmp(spec->name, "net_memif", strlen("net_memif"))) {
        more = "a client needs its server to be there first (our own memif: does not)";
    } else if (spec->kind == DPDK_VDEV && strstr(dpdk_log_cause(), "failed to parse device")) {
        more =
            "DPDK has no driver of that name here; dpdk:net_af_packet0,iface=INTERFACE is a kernel "
            "interface";
    } else if (spec->kind == DPDK_VDEV) {
        more =
            "is it the name of a DPDK driver (net_..., with a number) and are its options right?";
    }
    const char *cause = dpdk_log_cause();
    return dpdk_fail(err, size, rc, "dpdk:%s: %s: %s%s%s%s; %s", spec->devargs, step, strerror(-rc),
                     *cause ? ": \"" : "", cause, *cause ? "\"" : "", more);
}

/* Does the NIC need to know our VLAN? Not if it receives everything. */
static bool filters_vlan(const struct dpdk_port *port, const struct rte_eth_dev_info *info)
{
    return port->vlan && !port->spec.promisc &&
           (info->rx_offload_capa & RTE_ETH_RX_OFFLOAD_VLAN_FILTER);
}

/* The header fields from which RSS can choose the queue of a RoCEv2 frame. */
#define RSS_UDP (RTE_ETH_RSS_NONFRAG_IPV4_UDP | RTE_ETH_RSS_NONFRAG_IPV6_UDP)
#define RSS_IP  (RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_NONFRAG_IPV4_OTHER | RTE_ETH_RSS_IPV6)

/* How RSS distributes received frames; 0 = the device doesn't. */
static uint64_t rss_types(const struct rte_eth_dev_info *info)
{
    uint64_t can = info->flow_type_rss_offloads;
    return can & RSS_UDP ? can & RSS_UDP : can & RSS_IP;
}

/* The number of queues to use. Kernel interfaces distribute frames over their queues themselves: as
 * many as the user says, or as many as wanted. Other devices need RSS for more than one. */
static unsigned usable_queues(const struct dpdk_port *port, const struct rte_eth_dev_info *info)
{
    unsigned have = RTE_MIN(info->max_rx_queues, info->max_tx_queues);
    if (!kernel_iface(port->spec.kind) && rss_types(info) == 0)
        have = 1;
    return RTE_MAX(RTE_MIN(have, port->workers), 1u);
}

/* Queues for the device, as many as it had before. 0, or -errno with a sentence in err. */
static int make_queues(struct dpdk_port *port, const struct rte_eth_dev_info *info, char *err,
                       size_t size)
{
    unsigned n = usable_queues(port, info);
    if (port->sized && n < port->queues)
        return dpdk_fail(err, size, -ENODEV, "%s: it has %u queues now, and had %u",
                         port->spec.name, n, port->queues);
    for (unsigned k = port->queues; !port->sized && k < n; k++) {
        port->queue[k] = calloc(1, sizeof(*port->queue[k]));
        if (!port->queue[k])
            return dpdk_fail(err, size, -ENOMEM, "%s: no memory for a queue", port->spec.name);
        dpdk_queue_init(port->queue[k], port, (uint16_t)k);
        port->queues = k + 1;
    }
    if (port->workers > 1 && !port->sized)
        dpdk_log(IO_LOG_INFO, "%s: %u of %u workers have a queue%s", port->spec.name, port->queues,
                 port->workers,
                 port->queues == port->workers ? "" : ", the others get their frames from them");
    port->sized = true;
    return 0;
}

static int set_up_queues(struct dpdk_port *port, const struct rte_eth_dev_info *info,
                         const struct rte_eth_conf *conf, uint16_t rxd, uint16_t txd, char *err,
                         size_t size)
{
    struct rte_eth_rxconf rxconf = info->default_rxconf;
    struct rte_eth_txconf txconf = info->default_txconf;
    int rc = 0;
    /* Remove features that only a whole port may request, not a queue. */
    rxconf.offloads = conf->rxmode.offloads & info->rx_queue_offload_capa;
    txconf.offloads = conf->txmode.offloads & info->tx_queue_offload_capa;
    for (uint16_t k = 0; rc == 0 && k < port->queues; k++)
        rc = rte_eth_rx_queue_setup(port->id, k, rxd, SOCKET_ID_ANY, &rxconf, port->pool);
    if (rc)
        return explain(port, "receive queue", rc, err, size);
    for (uint16_t k = 0; rc == 0 && k < port->queues; k++)
        rc = rte_eth_tx_queue_setup(port->id, k, txd, SOCKET_ID_ANY, &txconf);
    return rc ? explain(port, "send queue", rc, err, size) : 0;
}

static int start_device(struct dpdk_port *port, const struct rte_eth_dev_info *info, uint32_t mtu,
                        bool interrupt, char *err, size_t size)
{
    const struct dpdk_spec *spec = &port->spec;
    struct rte_eth_conf conf = {.rxmode = {.mtu = mtu}};
    /* af_xdp also fills rings of its own. tap fills every descriptor of a chain, although a frame
     * rarely needs more than one. */
    uint16_t rxd = spec->kind == DPDK_AF_XDP ? 2048
                   : spec->kind == DPDK_TAP  ? 16
                                             : 1024,
             txd = 1024;
    uint32_t n;
    int rc = make_queues(port, info, err, size);
    if (rc)
        return rc;
    if (spec->rxd)
        rxd = (uint16_t)spec->rxd;
    if (spec->txd)
        txd = (uint16_t)spec->txd;
    conf.rxmode.offloads = info->rx_offload_capa & RTE_ETH_RX_OFFLOAD_IPV4_CKSUM;
    if (filters_vlan(port, info))
        conf.rxmode.offloads |= RTE_ETH_RX_OFFLOAD_VLAN_FILTER;
    if (port->queues > 1 && rss_types(info)) {
        conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
        conf.rx_adv_conf.rss_conf.rss_hf = rss_types(info);
    }
    conf.txmode.offloads = info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;
    conf.intr_conf.rxq = interrupt;
    conf.intr_conf.rmv = interrupt && (*info->dev_flags & RTE_ETH_DEV_INTR_RMV);
    rc = rte_eth_dev_configure(port->id, (uint16_t)port->queues, (uint16_t)port->queues, &conf);
    if (rc)
        return explain(port, "configure", rc, err, size);
    rc = rte_eth_dev_adjust_nb_rx_tx_desc(port->id, &rxd, &txd);
    if (rc)
        return explain(port, "descriptors", rc, err, size);

    n = dpdk_spec_buffers(rxd, txd);
    if (spec->kind == DPDK_AF_XDP)
        n += 2 * 4096; /* fill and completion rings, both of double length */
    rc = make_pool(port, port->frame_max, n * port->queues, err, size);
    if (rc == 0)
        rc = set_up_queues(port, info, &conf, rxd, txd, err, size);
    if (rc)
        return rc;
    rc = rte_eth_dev_start(port->id);
    return rc ? explain(port, "start", rc, err, size) : 0;
}

/* The descriptor of a NIC's interrupt for this queue, if its driver has one. */
static int interrupt_fd(struct dpdk_queue *q)
{
    uint16_t id = q->port->id;
    /* DPDK logs an error if a driver has no interrupts. */
    rte_log_set_level_pattern("lib.ethdev", RTE_LOG_CRIT);
    int fd = rte_eth_dev_rx_intr_ctl_q_get_fd(id, q->index);
    rte_log_set_level_pattern("lib.ethdev", RTE_LOG_INFO);
    if (fd < 0 || rte_eth_dev_rx_intr_enable(id, q->index))
        return -1;
    rte_eth_dev_rx_intr_disable(id, q->index);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    q->rx_interrupt = true;
    return fd;
}

/* The descriptor on which a worker of this queue can sleep. A driver opens the descriptors in the
 * order of its queues, so the index finds the right one among those opened since `before`. */
static void find_rx_fd(struct dpdk_queue *q, const struct netdev_fdset *before, bool interrupt)
{
    struct dpdk_port *port = q->port;
    q->rx_fd = q->packet_fd = -1;
    q->rx_piece = 0;
    q->rx_interrupt = false;
    switch (port->spec.kind) {
    case DPDK_AF_PACKET:
        q->packet_fd = netdev_find_socket(before, AF_PACKET, port->nd.ifindex, q->index);
        if (q->packet_fd >= 0)
            q->rx_fd = epoll_create1(EPOLL_CLOEXEC); /* see dpdk_queue_rx_arm */
        /* Otherwise frames from this machine are recognized by their source address. */
        port->drop_own |= q->packet_fd < 0 || netdev_ignore_outgoing(q->packet_fd) < 0;
        break;
    case DPDK_AF_XDP:
        q->rx_fd = netdev_find_socket(before, AF_XDP, 0, q->index);
        break;
    case DPDK_TAP:
        q->rx_fd = netdev_find_tap(before, port->spec.iface);
        if (q->rx_fd >= 0)
            port->rx_signal = fcntl(q->rx_fd, F_GETSIG);
        /* The driver reads the descriptor only after that signal. With several queues the signal
         * may reach another worker. Until that worker runs, this worker's descriptor is readable,
         * and reading finds nothing. */
        if (port->queues > 1)
            q->rx_fd = -1;
        break;
    case DPDK_PCI:
    case DPDK_VDEV:
        if (interrupt)
            q->rx_fd = interrupt_fd(q);
        break;
    }
}

static void find_rx_fds(struct dpdk_port *port, const struct netdev_fdset *before, bool interrupt)
{
    port->rx_signal = 0;
    port->drop_own = false;
    for (unsigned k = 0; k < port->queues; k++)
        find_rx_fd(port->queue[k], before, interrupt);
}

/* Set the port's MAC address. False: the NIC refuses the requested one. */
static bool set_mac(struct dpdk_port *port, const uint8_t wanted[6])
{
    static const uint8_t none[6];
    struct rte_ether_addr mac;
    if (rte_eth_macaddr_get(port->id, &mac) == 0)
        memcpy(port->next.mac, mac.addr_bytes, 6);
    if (port->spec.kind == DPDK_TAP) {
        /* The kernel's end of the tap has the port's address; ours must be another. */
        port->next.mac[0] |= 2;
        port->next.mac[5] ^= 1;
        if (memcmp(wanted, none, 6))
            memcpy(port->next.mac, wanted, 6);
        return true;
    }
    if (!memcmp(wanted, none, 6) || !memcmp(wanted, port->next.mac, 6))
        return true;
    memcpy(mac.addr_bytes, wanted, 6);
    memcpy(port->next.mac, wanted, 6);
    return rte_eth_dev_default_mac_addr_set(port->id, &mac) == 0;
}

/* Set the NIC's filters so that all our frames arrive: our address, our VLAN, the groups of IPv6's
 * neighbour discovery. If a filter can't be set, the NIC is asked to receive everything. If it
 * can't do that either, a message names the consequence. */
static void set_filters(struct dpdk_port *port, bool filters_vlan)
{
    struct dpdk_filters f = {
        .wanted = port->spec.promisc,
        .hardware = port->spec.kind == DPDK_PCI,
        .interface = port->watched,
        .vid = port->vlan,
    };
    f.unicast = set_mac(port, port->wanted_mac);
    f.vlan = !filters_vlan || rte_eth_dev_vlan_filter(port->id, port->vlan, 1) == 0;
    f.groups = rte_eth_allmulticast_enable(port->id) == 0 ||
               (port->watched && port->spec.kind != DPDK_TAP && netdev_allmulti(&port->nd) == 0);
    if (dpdk_filters_suffice(&f) && !f.wanted)
        return;
    f.all = rte_eth_promiscuous_enable(port->id) == 0;
    dpdk_filters_tell(&f, port->spec.name);
}

/* DPDK's number of the port. Drivers whose device has several ports (mlx4, mana) give them other
 * names than the device. */
static int find_port(struct dpdk_port *port, struct rte_eth_dev_info *info)
{
    unsigned found = 0;
    int rc = rte_eth_dev_get_port_by_name(port->spec.name, &port->id);
    if (rc == 0)
        return rte_eth_dev_info_get(port->id, info);
    for (uint64_t id = rte_eth_find_next(0); id < RTE_MAX_ETHPORTS;
         id = rte_eth_find_next((uint16_t)(id + 1))) {
        struct rte_eth_dev_info one;
        if (rte_eth_dev_info_get((uint16_t)id, &one) != 0 || !one.device ||
            strcmp(rte_dev_name(one.device), port->spec.name) != 0)
            continue;
        if (found++ == 0) {
            port->id = (uint16_t)id;
            *info = one;
        }
    }
    if (found > 1)
        dpdk_log(IO_LOG_INFO, "%s: the NIC has %u ports, this is the first", port->spec.name,
                 found);
    return found ? 0 : rc;
}

/* vfio (for the hypervisor or the kernel) or the device's driver requests its release. Called in
 * DPDK's interrupt thread. */
static void on_leaving(const char *name, enum rte_dev_event_type event, void *arg)
{
    struct dpdk_port *port = arg;
    (void)name;
    if (event == RTE_DEV_EVENT_REMOVE)
        atomic_store_explicit(&port->leaving, true, memory_order_release);
}

static int on_port_leaving(uint16_t id, enum rte_eth_event_type event, void *arg, void *ret)
{
    (void)id;
    (void)event;
    (void)ret;
    on_leaving(NULL, RTE_DEV_EVENT_REMOVE, arg);
    return 0;
}

static void hear_leaving(struct dpdk_port *port)
{
    atomic_store_explicit(&port->leaving, false, memory_order_relaxed);
    if (port->spec.kind != DPDK_PCI)
        return;
    /* When uio releases a NIC, its registers vanish; reads of them then give zeros. */
    rte_dev_hotplug_handle_enable();
    rte_dev_event_callback_register(rte_dev_name(port->device), on_leaving, port);
    rte_eth_dev_callback_register(port->id, RTE_ETH_EVENT_INTR_RMV, on_port_leaving, port);
}

/* No callback runs after it. */
static void hear_no_more(struct dpdk_port *port)
{
    if (port->spec.kind != DPDK_PCI)
        return;
    rte_eth_dev_callback_unregister(port->id, RTE_ETH_EVENT_INTR_RMV, on_port_leaving, port);
    while (rte_dev_event_callback_unregister(rte_dev_name(port->device), on_leaving, port) ==
           -EAGAIN)
        usleep(1000);
}

/* All steps between the probe and the first frame. *late: the start of the device failed, perhaps
 * because of its interrupts. */
static int set_up(struct dpdk_port *port, uint32_t frame_max, const struct netdev_fdset *before,
                  bool interrupt, bool *late, char *err, size_t size)
{
    struct rte_eth_dev_info info;
    uint32_t mtu = RTE_ETHER_MTU;
    int rc = find_port(port, &info);
    if (rc)
        return explain(port, "find", rc, err, size);
    port->device = info.device;
    hear_leaving(port);
    if (port->spec.kind == DPDK_TAP && !port->watched) {
        rc = netdev_open(&port->nd, port->spec.iface);
        if (rc)
            return explain(port, "interface", rc, err, size);
        port->watched = true;
        /* Debian 12's tap driver sends nothing longer than its MTU and takes none above 1504. */
        frame_max = device_frame_max(&port->spec, &info, frame_max, &mtu);
        frame_max = dpdk_iface_frame_max(port, frame_max);
    }
    port->frame_max = kernel_iface(port->spec.kind)
                          ? frame_max
                          : device_frame_max(&port->spec, &info, frame_max, &mtu);

    *late = true;
    rc = start_device(port, &info, mtu, interrupt, err, size);
    if (rc)
        return rc;
    if (!kernel_iface(port->spec.kind))
        dpdk_frame_tell(port->spec.name, port->wanted, port->frame_max);
    port->next.frame_max = port->frame_max;
    find_rx_fds(port, before, interrupt);
    set_filters(port, filters_vlan(port, &info));
    /* Echoes are dropped here by their source address. That does not help an owner that sends with
     * any source address. */
    port->next.own_echo = port->drop_own && port->spec.promisc;

    if (port->watched)
        netdev_set_up(&port->nd);
    return 0;
}

void dpdk_device_remove(struct dpdk_port *port)
{
    if (port->device) {
        hear_no_more(port);
        rte_eth_dev_stop(port->id);
        rte_eth_dev_close(port->id);
        rte_dev_remove(port->device);
    }
    if (port->spec.kind == DPDK_AF_XDP)
        netdev_close_xdp(&port->xdp_fds);
    port->device = NULL;
    for (unsigned k = 0; k < port->queues; k++) {
        struct dpdk_queue *q = port->queue[k];
        if (q->packet_fd >= 0 && q->rx_fd >= 0)
            close(q->rx_fd);
        q->rx_fd = q->packet_fd = -1;
    }
}

static int plug_in(struct dpdk_port *port, uint32_t frame_max, bool interrupt, bool *late,
                   char *err, size_t size)
{
    struct netdev_fdset before;
    int rc;
    *late = false;
    netdev_fds(&before);
    rc = rte_dev_probe(port->spec.devargs);
    if (rc)
        rc = explain(port, "probe", rc, err, size);
    else
        rc = set_up(port, frame_max, &before, interrupt, late, err, size);
    if (port->spec.kind == DPDK_AF_XDP)
        netdev_find_xdp(&before, &port->xdp_fds);
    if (rc)
        dpdk_device_remove(port);
    return rc;
}

/* If the kernel refuses to let the NIC reach a piece of memory, DPDK continues, and the first frame
 * in that memory is an error of the IOMMU. */
static int dma_refused(const struct dpdk_port *port, char *err, size_t size)
{
    if (port->spec.kind != DPDK_PCI || !dpdk_log_said("Cannot set up DMA remapping"))
        return 0;
    return dpdk_fail(err, size, -ENOMEM,
                     "%s: the NIC can't reach its buffers, too little memory may be locked: "
                     "LimitMEMLOCK=infinity in the systemd unit, or `ulimit -l unlimited`",
                     port->spec.name);
}

int dpdk_device_add(struct dpdk_port *port, uint32_t frame_max, char *err, size_t size)
{
    bool interrupt = port->spec.kind == DPDK_PCI || port->spec.kind == DPDK_VDEV, late;
    int rc = plug_in(port, frame_max, interrupt, &late, err, size);

    /* Some drivers have no interrupts, and some of these fail late, half started. The start is then
     * repeated without interrupts. */
    if (rc && interrupt && late)
        rc = plug_in(port, frame_max, false, &late, err, size);
    int refused = dma_refused(port, err, size);
    if (rc == 0 && refused)
        dpdk_device_remove(port);
    return refused ? refused : rc;
}
