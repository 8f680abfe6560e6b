/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A DPDK port while it runs. dpdk_open.c opens and closes it, dpdk_device.c sets its device up and
 * takes it down, dpdk_queue.c moves frames, dpdk_port.c follows changes.
 */
#ifndef URNIC_DPDK_PORT_H
#define URNIC_DPDK_PORT_H

#include "dpdk_claim.h"
#include "dpdk_netdev.h"
#include "dpdk_queue.h"
#include "dpdk_spec.h"
#include "io.h"

#include <rte_ethdev.h>
#include <stdatomic.h>

/* Ethernet header without VLAN tag: an untagged frame of frame_max octets must get through, so the
 * MTU has to be at least frame_max less this. */
#define ETH_HDR 14u

#define DPDK_QUEUES 8u /* most queues of a port: as many as a device has workers */

/* One worker has the port and queue 0. Only its functions change the members, unless a comment says
 * otherwise. The workers of other queues read them, under the locks of their queues. */
struct dpdk_port {
    union {
        struct io_port io;       /* first: the vtable's functions cast */
        struct dpdk_queue first; /* queue 0 */
    };
    struct dpdk_queue *queue[DPDK_QUEUES]; /* [0] is `first` */
    unsigned queues;                       /* number of queues */
    bool sized;                            /* `queues` is final: the same each time that the device
                                            * is attached */
    unsigned workers;                      /* workers of the owner's device: the most queues that
                                            * can be used */

    uint16_t id;         /* DPDK's port number */
    bool attached;       /* the device exists and is started */
    bool drop_own;       /* frames with our source MAC are our own echo */
    atomic_bool link_up; /* link.up, for all workers */
    struct rte_mempool *pool;

    /* slow path */
    struct dpdk_spec spec;
    struct rte_device *device;
    struct io_caps next; /* properties of the device: io.caps of the port, once it has the device */
    struct io_link link;
    uint16_t vlan;         /* VLAN of the owner's frames; 0 = none */
    uint8_t wanted_mac[6]; /* requested MAC address; zero = the device keeps its own */
    atomic_bool leaving;   /* DPDK requests the device's release */
    atomic_bool busy;      /* a thread removes a missing device from DPDK, or attaches it again;
                            * until it ends, the slow path's state of the device belongs to that
                            * thread */
    bool returning;        /* that thread attaches the device again */
    int returned;          /* its result: 0, or -errno and a sentence in `why` */
    char why[512];
    uint64_t late;      /* time to log that it takes long; 0 = logged */
    bool gone;          /* the NIC was taken away; the port waits for its return */
    uint64_t next_look; /* next look for the NIC */
    bool watched;       /* `nd` is open */
    struct netdev nd;
    uint64_t nd_changes;  /* the part of nd.changes that link.changes includes */
    uint32_t frame_max;   /* longest frame that the buffers hold; caps.frame_max follows the MTU
                           * below it */
    uint32_t wanted;      /* largest frame that the opener wants; 0 = the interface's */
    char args[256];       /* the specification it was opened with */
    char told_name[16];   /* the interface's name as last logged */
    uint8_t seen_mac[6];  /* the interface's */
    uint64_t next_attach; /* earliest time of the next attempt; 0 = at once */
    uint64_t tell_gone;   /* time to log that the interface is gone; 0 = no such message is due */
    bool growing;         /* detached, to be attached again with larger buffers */
    int lock_fd; /* lock of a device that uio would give to any number of processes; -1 = none */
    int ns_fd;   /* network namespace of the opener, to attach again in */
    struct io_addr claimed[CLAIM_ADDRS_MAX];
    unsigned n_claimed;
    int claim_fd;       /* -1 = none */
    bool claim_refused; /* the refusal is logged */
    int rx_signal;      /* a signal the driver needs in the thread that receives; 0 = none */
    struct netdev_fdset xdp_fds; /* descriptors that af_xdp's driver opened, and may forget to
                                  * close */
    uint64_t lost_rx;            /* drops of earlier incarnations of the device, and the kernel's */
    uint64_t lost_tx;
};

extern const struct io_ops dpdk_port_ops;

/* The largest frame for which the interface under an af_packet or af_xdp port has room now, up to
 * the wanted size. In dpdk_open.c. */
uint32_t dpdk_port_iface_frame(const struct dpdk_port *port);
/* Do the workers hold no buffer of the device? Then it and its buffers may be freed (af_xdp keeps
 * some for good). */
bool dpdk_port_may_let_go(struct dpdk_port *port);
/* Let the workers use the device, or end that. On return no worker is in a call of the driver. */
void dpdk_port_set_attached(struct dpdk_port *port, bool attached);

/* Make the specification anew: for frames of this size, with the interface's present name. 0, or
 * -errno with a sentence in err. In dpdk_open.c. */
int dpdk_port_respec(struct dpdk_port *port, uint32_t frame_max, char *err, size_t err_size);

/* Attach the device to the port, also again after its kernel interface was replaced; or detach it
 * when the interface is gone. 0, or -errno with a sentence in err. In dpdk_open.c. */
int dpdk_port_attach(struct dpdk_port *port, uint32_t frame_max, char *err, size_t err_size);
void dpdk_port_detach(struct dpdk_port *port); /* port->device stays if DPDK is busy for long */

/* Check the NIC under a port on a PCI device: present, leaving, or back? Every few ms. In
 * dpdk_open.c. */
void dpdk_port_follow_nic(struct dpdk_port *port, uint64_t now);

/* io_ops.claim. In dpdk_open.c. */
void dpdk_port_claim(struct io_port *io, const struct io_addr *addrs, unsigned n);

/* Free the port and everything in it. */
void dpdk_port_close(struct io_port *io);

/* Take the link's state from the device or the interface. */
void dpdk_port_refresh_link(struct dpdk_port *port);

/* Drop every frame that waits to be sent. */
void dpdk_port_drop_queued(struct dpdk_port *port);

/* Move the device's own drop counters into the port's, before the device goes away. */
void dpdk_port_keep_losses(struct dpdk_port *port);

#endif
