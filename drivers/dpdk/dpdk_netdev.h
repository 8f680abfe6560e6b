/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The kernel interface of a port (af_packet, af_xdp, tap): facts that DPDK's drivers don't tell,
 * and settings that they don't make. No DPDK in here.
 *
 * A watch belongs to the network namespace of the thread that opened it, even if another thread
 * uses it.
 */
#ifndef URNIC_DPDK_NETDEV_H
#define URNIC_DPDK_NETDEV_H

#include <stdbool.h>
#include <stdint.h>

struct netdev {
    char name[16];       /* its present name */
    char first_name[16]; /* its name at the start of the watch */
    int ifindex;         /* 0 = the interface is gone */
    int gone_index;      /* its ifindex before it went */
    int ctl_fd;          /* socket for ioctl */
    int event_fd;        /* routing netlink, link events; -1 = none, ask every time */
    int ask_fd;          /* routing netlink, requests and their answers */
    uint32_t asked;      /* number of the last request */
    int member_fd;       /* holds the all-multicast membership; -1 = none */
    bool up;             /* administratively up and with carrier */
    uint64_t changes;    /* changes of `up`, also those between two looks */
    uint32_t downs;      /* losses of the carrier, as of the last event */
    bool downs_known;
    uint32_t mtu;   /* octets of IP */
    uint8_t mac[6]; /* its present MAC address */
    bool replaced;  /* another interface of this name took its place since the last look */
    bool moved;     /* with ifindex 0: the interface moved to another network namespace. The kernel
                     * reports this a few ms after the removal */
};

/* Begin to watch `name`. Returns 0, -ENODEV when there is no such interface, or -errno. */
int netdev_open(struct netdev *nd, const char *name);
/* End the watch, and with it the effect of netdev_allmulti. */
void netdev_close(struct netdev *nd);

/* Does the interface carry Ethernet frames? Those of VPNs, PPP and tun carry IP alone. 0, or
 * -EPROTONOSUPPORT, or -errno of asking. */
int netdev_is_ethernet(const char *name);

/* Process events since the last call. Never blocks. */
void netdev_poll(struct netdev *nd);

/* Raise the MTU to at least `mtu`, and bring the interface up. Returns 0 or -errno (-EPERM without
 * CAP_NET_ADMIN); nd->mtu and nd->up have the resulting state. */
int netdev_raise_mtu(struct netdev *nd, uint32_t mtu);
int netdev_set_up(struct netdev *nd);

/* Make the interface receive all multicast frames until the watch ends (IPv6 neighbour discovery
 * needs it). Needs CAP_NET_RAW. Returns 0 or -errno. */
int netdev_allmulti(struct netdev *nd);

/* Make the AF_PACKET socket `fd` skip frames sent by this machine. Returns 0 or -errno. */
int netdev_ignore_outgoing(int fd);

/* File descriptors of this process that a DPDK driver opened for itself. A set is at most
 * NETDEV_FDS long; `netdev_fds` returns those in use now. */
#define NETDEV_FDS 1024
struct netdev_fdset {
    uint8_t open[NETDEV_FDS / 8];
};
void netdev_fds(struct netdev_fdset *set);

/* The k-th descriptor that was opened since `before` and is an AF_PACKET socket bound to `ifindex`,
 * or (domain AF_XDP) an XDP socket, counted from 0; -1 = none. */
int netdev_find_socket(const struct netdev_fdset *before, int domain, int ifindex, unsigned k);

/* Which descriptors opened since `before` are XDP sockets, BPF maps or programs; and close those
 * that still are. (DPDK's af_xdp driver forgets some when its device is closed, and then the
 * interface's queue stays taken.) */
void netdev_find_xdp(const struct netdev_fdset *before, struct netdev_fdset *mine);
void netdev_close_xdp(const struct netdev_fdset *mine);

/* A descriptor opened since `before` that is an attached queue of the tap interface `name`. */
int netdev_find_tap(const struct netdev_fdset *before, const char *name);

#endif
