/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sets a DPDK port up and takes it down: probes the device, gives it one receive and one send
 * queue and a buffer pool made for its driver, and finds out what DPDK's drivers don't say (a
 * descriptor to sleep on, the true frame size, the link of a kernel interface).
 */
#include "dpdk_open.h"

#include "dpdk_eal.h"
#include "dpdk_hint.h"
#include "dpdk_port.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* DPDK's af_xdp lays the kernel's frames over its mbufs, and the kernel wants them no larger than a
 * page. DPDK makes a buffer an odd number of cache lines, so 63 of 64; before the frame come the
 * pool's header (64), the mbuf (128), its head room (128) and XDP's own (256). */
#define AF_XDP_ROOM      (63u * 64u - 64u - 128u) /* data room, head room included */
#define AF_XDP_FRAME_MAX (AF_XDP_ROOM - RTE_PKTMBUF_HEADROOM - 256u)

#define AF_XDP_TRIES    20
#define AF_XDP_PAUSE_US 20000u

#define POOL_CACHE 256u

/* EAL's plugging in and out, and our numbering of pools. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((format(printf, 4, 5))) static int fail(char *err, size_t size, int code,
                                                      const char *fmt, ...)
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

/* The largest frame for a device that isn't a kernel interface, and the MTU to tell it. */
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

/* Bring the kernel interface to the wanted frame size. Returns the size it really takes. */
static uint32_t iface_frame_max(struct dpdk_port *port, uint32_t wanted)
{
    uint32_t limit = port->spec.kind == DPDK_AF_XDP ? AF_XDP_FRAME_MAX : IO_FRAME_MAX;
    int rc;

    if (wanted > limit)
        wanted = limit;
    rc = netdev_raise_mtu(&port->nd, wanted - ETH_HDR);
    if (rc)
        dpdk_log("warning", "%s: the MTU of %s stays %u, %u was wanted: %s", port->spec.name,
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
    port->pool = rte_pktmbuf_pool_create(name, n, POOL_CACHE, 0, (uint16_t)room, SOCKET_ID_ANY);
    if (!port->pool)
        return fail(err, size, -rte_errno,
                    "%s: no memory for %u buffers of %u octets: %s (urnic_mem= gives DPDK more)",
                    port->spec.name, n, room, rte_strerror(rte_errno));
    return 0;
}

/* What DPDK couldn't do, in words that help. */
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
        return fail(err, size, -EADDRINUSE,
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
    } else if (spec->kind == DPDK_VDEV) {
        more =
            "is it the name of a DPDK driver (net_..., with a number) and are its options right?";
    }
    return fail(err, size, rc, "dpdk:%s: %s: %s; %s", spec->devargs, step, strerror(-rc), more);
}

static int start_device(struct dpdk_port *port, const struct rte_eth_dev_info *info, uint32_t mtu,
                        bool interrupt, char *err, size_t size)
{
    const struct dpdk_spec *spec = &port->spec;
    struct rte_eth_conf conf = {.rxmode = {.mtu = mtu}};
    struct rte_eth_rxconf rxconf = info->default_rxconf;
    struct rte_eth_txconf txconf = info->default_txconf;
    /* af_xdp fills rings of its own besides; the tap driver fills every descriptor of a chain that
     * one frame rarely needs. */
    uint16_t rxd = spec->kind == DPDK_AF_XDP ? 2048
                   : spec->kind == DPDK_TAP  ? 16
                                             : 1024,
             txd = 1024;
    uint32_t n;
    int rc;

    if (spec->rxd)
        rxd = (uint16_t)spec->rxd;
    if (spec->txd)
        txd = (uint16_t)spec->txd;
    conf.rxmode.offloads = info->rx_offload_capa & RTE_ETH_RX_OFFLOAD_IPV4_CKSUM;
    conf.txmode.offloads = info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;
    conf.intr_conf.rxq = interrupt;
    rc = rte_eth_dev_configure(port->id, 1, 1, &conf);
    if (rc)
        return explain(port, "configure", rc, err, size);
    rc = rte_eth_dev_adjust_nb_rx_tx_desc(port->id, &rxd, &txd);
    if (rc)
        return explain(port, "descriptors", rc, err, size);

    n = rxd + txd + PORT_LENT_MAX + PORT_QUEUE_MAX + 2 * IO_BURST_MAX + 4 * POOL_CACHE;
    if (spec->kind == DPDK_AF_XDP)
        n += 2 * 4096; /* fill and completion rings, both of double length */
    rc = make_pool(port, port->frame_max, n, err, size);
    if (rc)
        return rc;
    rxconf.offloads = conf.rxmode.offloads;
    txconf.offloads = conf.txmode.offloads;
    rc = rte_eth_rx_queue_setup(port->id, 0, rxd, SOCKET_ID_ANY, &rxconf, port->pool);
    if (rc)
        return explain(port, "receive queue", rc, err, size);
    rc = rte_eth_tx_queue_setup(port->id, 0, txd, SOCKET_ID_ANY, &txconf);
    if (rc)
        return explain(port, "send queue", rc, err, size);
    rc = rte_eth_dev_start(port->id);
    return rc ? explain(port, "start", rc, err, size) : 0;
}

static void find_rx_fd(struct dpdk_port *port, const struct netdev_fdset *before, bool interrupt)
{
    int *fd = &port->io.caps.rx_fd;

    *fd = port->packet_fd = -1;
    port->rx_interrupt = false;
    port->rx_signal = 0;
    port->drop_own = false;
    switch (port->spec.kind) {
    case DPDK_AF_PACKET:
        port->packet_fd = netdev_find_socket(before, AF_PACKET, port->nd.ifindex);
        if (port->packet_fd >= 0)
            *fd = epoll_create1(EPOLL_CLOEXEC); /* see rx_arm */
        /* Else we tell what this machine sends by its source address. */
        port->drop_own = port->packet_fd < 0 || netdev_ignore_outgoing(port->packet_fd) < 0;
        break;
    case DPDK_AF_XDP:
        *fd = netdev_find_socket(before, AF_XDP, 0);
        break;
    case DPDK_TAP:
        *fd = netdev_find_tap(before, port->spec.iface);
        if (*fd >= 0)
            port->rx_signal = fcntl(*fd, F_GETSIG);
        break;
    case DPDK_PCI:
    case DPDK_VDEV:
        /* DPDK calls it an error that a driver has no interrupts. */
        rte_log_set_level_pattern("lib.ethdev", RTE_LOG_CRIT);
        if (interrupt)
            *fd = rte_eth_dev_rx_intr_ctl_q_get_fd(port->id, 0);
        rte_log_set_level_pattern("lib.ethdev", RTE_LOG_INFO);
        if (*fd >= 0 && rte_eth_dev_rx_intr_enable(port->id, 0)) {
            *fd = -1;
            break;
        }
        if (*fd >= 0) {
            rte_eth_dev_rx_intr_disable(port->id, 0);
            fcntl(*fd, F_SETFL, fcntl(*fd, F_GETFL) | O_NONBLOCK);
            port->rx_interrupt = true;
        }
        break;
    }
}

static void set_mac(struct dpdk_port *port, const uint8_t wanted[6])
{
    static const uint8_t none[6];
    struct rte_ether_addr mac;

    if (rte_eth_macaddr_get(port->id, &mac) == 0)
        memcpy(port->io.caps.mac, mac.addr_bytes, 6);
    if (port->spec.kind == DPDK_TAP) {
        /* The kernel's end of the tap has the port's address; ours must be another. */
        port->io.caps.mac[0] |= 2;
        port->io.caps.mac[5] ^= 1;
        if (memcmp(wanted, none, 6))
            memcpy(port->io.caps.mac, wanted, 6);
        return;
    }
    if (!memcmp(wanted, none, 6) || !memcmp(wanted, port->io.caps.mac, 6))
        return;
    memcpy(mac.addr_bytes, wanted, 6);
    if (rte_eth_dev_default_mac_addr_set(port->id, &mac) && rte_eth_promiscuous_enable(port->id)) {
        dpdk_log("warning", "%s: can't change its MAC address", port->spec.name);
        return;
    }
    memcpy(port->io.caps.mac, wanted, 6);
}

/* Everything between the probe and the first frame. */
static int set_up(struct dpdk_port *port, uint32_t frame_max, const struct netdev_fdset *before,
                  char *err, size_t size)
{
    struct rte_eth_dev_info info;
    uint32_t mtu = RTE_ETHER_MTU;
    bool interrupt = port->spec.kind == DPDK_PCI || port->spec.kind == DPDK_VDEV;
    int rc = rte_eth_dev_get_port_by_name(port->spec.name, &port->id);

    if (rc)
        return explain(port, "find", rc, err, size);
    rc = rte_eth_dev_info_get(port->id, &info);
    if (rc)
        return explain(port, "ask", rc, err, size);
    port->device = info.device;
    if (port->spec.kind == DPDK_TAP && !port->watched) {
        rc = netdev_open(&port->nd, port->spec.iface);
        if (rc)
            return explain(port, "interface", rc, err, size);
        port->watched = true;
        /* Debian 12's tap driver sends nothing longer than its MTU and takes none above 1504. */
        frame_max = device_frame_max(&port->spec, &info, frame_max, &mtu);
        frame_max = iface_frame_max(port, frame_max);
    }
    port->frame_max = kernel_iface(port->spec.kind)
                          ? frame_max
                          : device_frame_max(&port->spec, &info, frame_max, &mtu);

    rc = start_device(port, &info, mtu, interrupt, err, size);
    if (rc && interrupt) { /* not every driver has interrupts, and some say so late */
        interrupt = false;
        rc = start_device(port, &info, mtu, false, err, size);
    }
    if (rc)
        return rc;
    port->io.caps.frame_max = port->frame_max;
    find_rx_fd(port, before, interrupt);
    set_mac(port, port->wanted_mac);
    /* Where there is one, it is dropped in here, by its source: no use to who sends any source. */
    port->io.caps.own_echo = port->drop_own && port->spec.promisc;

    rc = rte_eth_allmulticast_enable(port->id);
    if (rc && port->watched && port->spec.kind != DPDK_TAP && netdev_allmulti(&port->nd))
        dpdk_log("warning", "%s: no all-multicast mode; IPv6 neighbours may not find us",
                 port->spec.name);
    if (port->spec.promisc && rte_eth_promiscuous_enable(port->id))
        dpdk_log("warning", "%s: no promiscuous mode", port->spec.name);
    if (port->watched)
        netdev_set_up(&port->nd);
    return 0;
}

/* Go to the network namespace the port was opened in. Returns a descriptor to go back by, or -1
 * when this thread is there already. */
static int enter_ns(const struct dpdk_port *port)
{
    struct stat there, here;
    int fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);

    if (fd >= 0 && (port->ns_fd < 0 || fstat(port->ns_fd, &there) < 0 || fstat(fd, &here) < 0 ||
                    there.st_ino == here.st_ino || setns(port->ns_fd, CLONE_NEWNET) < 0)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static void leave_ns(int fd)
{
    if (fd >= 0) {
        setns(fd, CLONE_NEWNET);
        close(fd);
    }
}

static void remove_device(struct dpdk_port *port)
{
    if (port->device) {
        rte_eth_dev_stop(port->id);
        rte_eth_dev_close(port->id);
        rte_dev_remove(port->device);
    }
    if (port->spec.kind == DPDK_AF_XDP)
        netdev_close_xdp(&port->xdp_fds);
    port->device = NULL;
    if (port->packet_fd >= 0 && port->io.caps.rx_fd >= 0)
        close(port->io.caps.rx_fd);
    port->io.caps.rx_fd = port->packet_fd = -1;
}

/* Claim the owner's addresses on the interface that is there now. The new claim stands before the
 * old one falls. */
static void renew_claim(struct dpdk_port *port)
{
    int old = port->claim_fd;

    port->claim_fd = -1;
    if (port->spec.kind == DPDK_AF_PACKET && port->attached && port->n_claimed) {
        int fd = claim_make(port->nd.ifindex, port->claimed, port->n_claimed);
        if (fd >= 0)
            port->claim_fd = fd;
        else if (!port->claim_refused)
            dpdk_log("info", "%s: the kernel's IP stack works on our packets, too: %s",
                     port->spec.name,
                     fd == -EPERM    ? "to end that, CAP_BPF is needed"
                     : fd == -EINVAL ? "to end that, Linux 6.6 is needed"
                                     : strerror(-fd));
        port->claim_refused = fd < 0;
    }
    if (old >= 0)
        close(old);
}

void dpdk_port_claim(struct io_port *io, const struct io_addr *addrs, unsigned n)
{
    struct dpdk_port *port = (struct dpdk_port *)io;
    int ns = enter_ns(port);

    port->n_claimed = n < CLAIM_ADDRS_MAX ? n : CLAIM_ADDRS_MAX;
    memcpy(port->claimed, addrs, port->n_claimed * sizeof(addrs[0]));
    renew_claim(port);
    leave_ns(ns);
}

static int attach_once(struct dpdk_port *port, uint32_t frame_max, char *err, size_t err_size)
{
    struct netdev_fdset before;
    int rc, ns;

    pthread_mutex_lock(&lock);
    ns = enter_ns(port);
    netdev_fds(&before);
    rc = rte_dev_probe(port->spec.devargs);
    if (rc)
        rc = explain(port, "probe", rc, err, err_size);
    else
        rc = set_up(port, frame_max, &before, err, err_size);
    if (port->spec.kind == DPDK_AF_XDP)
        netdev_find_xdp(&before, &port->xdp_fds);
    if (rc == 0) {
        port->attached = true;
        renew_claim(port);
    } else {
        remove_device(port);
    }
    leave_ns(ns);
    pthread_mutex_unlock(&lock);
    return rc;
}

int dpdk_port_attach(struct dpdk_port *port, uint32_t frame_max, char *err, size_t err_size)
{
    int rc = attach_once(port, frame_max, err, err_size);

    /* The kernel lets go of an XDP socket's queue a moment after the socket was closed, and DPDK
     * doesn't tell "busy" from other failures: whoever reopens a port must not fail for that. */
    for (int i = 0; rc && port->spec.kind == DPDK_AF_XDP && i < AF_XDP_TRIES; i++) {
        usleep(AF_XDP_PAUSE_US);
        rte_mempool_free(port->pool); /* the failed try kept some of its buffers */
        port->pool = NULL;
        rc = attach_once(port, frame_max, err, err_size);
    }
    return rc;
}

void dpdk_port_detach(struct dpdk_port *port)
{
    int ns;

    pthread_mutex_lock(&lock);
    ns = enter_ns(port);
    dpdk_port_keep_losses(port);
    dpdk_port_drop_queued(port);
    port->attached = false;
    renew_claim(port);
    remove_device(port);
    leave_ns(ns);
    pthread_mutex_unlock(&lock);
}

void dpdk_port_close(struct io_port *io)
{
    struct dpdk_port *port = (struct dpdk_port *)io;

    if (port->attached)
        dpdk_port_detach(port);
    if (port->watched)
        netdev_close(&port->nd);
    if (port->ns_fd >= 0)
        close(port->ns_fd);
    rte_mempool_free(port->pool); /* with all its mbufs, lent or not */
    free(port);
}

/* What only concerns ports over a kernel interface, before DPDK is asked. */
static int prepare_iface(struct dpdk_port *port, uint32_t *frame_max, char *err, size_t size)
{
    const struct dpdk_spec *spec = &port->spec;
    struct statfs fs;
    int rc = netdev_open(&port->nd, spec->iface);

    if (rc)
        return fail(
            err, size, rc,
            "dpdk:%s: no interface \"%s\" in this network namespace; `ip -br link` lists them",
            spec->name, spec->iface);
    port->watched = true;
    if (!*frame_max)
        *frame_max = port->nd.mtu + ETH_HDR;
    *frame_max = iface_frame_max(port, *frame_max < IO_FRAME_MAX ? *frame_max : IO_FRAME_MAX);
    rc = netdev_set_up(&port->nd);
    if (rc && !port->nd.up)
        dpdk_log("warning", "%s: interface %s is down: `ip link set %s up`", spec->name,
                 spec->iface, spec->iface);
    if (spec->kind == DPDK_AF_XDP &&
        (statfs("/sys/fs/bpf", &fs) < 0 || (unsigned long)fs.f_type != BPF_FS_MAGIC))
        dpdk_log("info",
                 "af_xdp: no bpffs at /sys/fs/bpf, so this port shares %s with no other "
                 "XDP program (`mount -t bpf bpf /sys/fs/bpf`); complaints by libxdp "
                 "about it are harmless",
                 spec->iface);
    return 0;
}

int io_dpdk_open(const char *args, const struct io_open_params *params, struct io_port **out,
                 char *err, size_t err_size)
{
    char nowhere[8];
    struct dpdk_port *port = calloc(1, sizeof(*port));
    uint32_t frame_max = params ? params->frame_max : 0;
    int rc;

    if (!err || !err_size) {
        err = nowhere;
        err_size = sizeof(nowhere);
    }
    if (!port)
        return fail(err, err_size, -ENOMEM, "dpdk: no memory for a port");
    port->io.ops = &dpdk_port_ops;
    port->io.caps.rx_fd = -1;
    port->claim_fd = port->packet_fd = -1;
    port->ns_fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    if (params)
        memcpy(port->wanted_mac, params->mac, 6);

    rc = dpdk_spec_parse(args, &port->spec, err, err_size);
    port->spec.promisc |= params && params->promiscuous;
    if (!rc)
        rc = dpdk_hint_check(&port->spec, "/sys", dpdk_hint_effective(), dpdk_eal_free_hugepages(),
                             err, err_size);
    if (!rc && port->spec.mtu)
        frame_max = port->spec.mtu + ETH_HDR;
    if (!rc && (port->spec.kind == DPDK_AF_PACKET || port->spec.kind == DPDK_AF_XDP))
        rc = prepare_iface(port, &frame_max, err, err_size);
    if (!frame_max)
        frame_max = RTE_ETHER_MTU + ETH_HDR;
    if (!rc)
        rc = dpdk_spec_defaults(&port->spec, frame_max, dpdk_hint_lockable(dpdk_hint_effective()),
                                err, err_size);
    if (!rc) {
        pthread_mutex_lock(&lock);
        rc = dpdk_eal_start(&port->spec, err, err_size);
        pthread_mutex_unlock(&lock);
    }
    if (!rc && port->spec.kind == DPDK_PCI && !dpdk_eal_has_hugepages() &&
        port->spec.huge != DPDK_HUGE_OFF)
        rc = fail(err, err_size, -ENOMEM,
                  "dpdk:%s: DPDK was started without hugepages for an earlier port; name the PCI "
                  "port first, or give the first one urnic_huge=on",
                  port->spec.name);
    if (!rc)
        rc = dpdk_port_attach(port, frame_max, err, err_size);
    if (rc) {
        dpdk_port_close(&port->io);
        return rc;
    }
    dpdk_port_refresh_link(port);
    port->link.changes = 0;
    *out = &port->io;
    return 0;
}
