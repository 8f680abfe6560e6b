/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A DPDK port while it runs. dpdk_open.c opens and closes it, dpdk_device.c sets its device up and
 * takes it down, dpdk_queue.c moves frames, dpdk_port.c follows what changes.
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

#define DPDK_QUEUES 8u /* of a port at most: as many as a device has workers */

/* One worker has the port, and queue 0 with it; its functions change what is in here, but where it
 * says otherwise. The workers of other queues read it, under the locks of their queues. */
struct dpdk_port {
    union {
        struct io_port io;       /* first: the vtable's functions cast */
        struct dpdk_queue first; /* queue 0, whose port it is */
    };
    struct dpdk_queue *queue[DPDK_QUEUES]; /* [0] is `first` */
    unsigned queues;                       /* how many there are */
    bool sized;                            /* that is so, each time that the device is attached */
    unsigned workers;                      /* of the owner's device: that many can be used */

    uint16_t id;         /* DPDK's port number */
    bool attached;       /* the device exists and is started */
    bool drop_own;       /* frames with our source MAC are our own echo */
    atomic_bool link_up; /* link.up, for all workers */
    struct rte_mempool *pool;

    /* slow path */
    struct dpdk_spec spec;
    struct rte_device *device;
    struct io_caps next; /* what the device is like: io.caps of the port, once it has the device */
    struct io_link link;
    uint16_t vlan;         /* of the owner's frames; 0 = none */
    uint8_t wanted_mac[6]; /* zero = the device keeps its own */
    atomic_bool leaving;   /* DPDK says that the device is to be let go of */
    atomic_bool busy;      /* a thread takes the device that is gone from DPDK, or has it back; till
                            * it ends, what the slow path has of the device is that thread's */
    bool returning;        /* it has been told to have it back */
    int returned;          /* ... and how that went: 0, or -errno and a sentence in `why` */
    char why[512];
    uint64_t late;      /* when to say that it takes long; 0 = said */
    bool gone;          /* the NIC was taken away; its return is waited for */
    uint64_t next_look; /* whether it is there */
    bool watched;       /* `nd` is open */
    struct netdev nd;
    uint64_t nd_changes;  /* of nd.changes, those already in link.changes */
    uint32_t frame_max;   /* what there are buffers for; caps.frame_max follows the MTU below it */
    uint32_t wanted;      /* largest frame, as the opener wants it; 0 = what the interface has */
    char args[256];       /* what it was opened with */
    char told_name[16];   /* the interface's, as it was last told */
    uint8_t seen_mac[6];  /* the interface's */
    uint64_t next_attach; /* not before; 0 = at once */
    uint64_t tell_gone;   /* when to say that the interface is gone; 0 = nothing is to be said */
    bool growing;         /* detached only to be attached with larger buffers */
    int lock_fd; /* of a device that uio would give to any number of processes; -1 = none */
    int ns_fd;   /* network namespace of the opener, to attach again in */
    struct io_addr claimed[CLAIM_ADDRS_MAX];
    unsigned n_claimed;
    int claim_fd;       /* -1 = none */
    bool claim_refused; /* and told so */
    int rx_signal;      /* a signal the driver needs in the thread that receives; 0 = none */
    struct netdev_fdset xdp_fds; /* what af_xdp's driver opened, and may forget to close */
    uint64_t lost_rx;            /* drops of earlier incarnations of the device, and the kernel's */
    uint64_t lost_tx;
};

extern const struct io_ops dpdk_port_ops;

/* The frames that the interface under an af_packet or af_xdp port has room for now, as far as the
 * port is wanted to have them. In dpdk_open.c. */
uint32_t dpdk_port_iface_frame(const struct dpdk_port *port);
/* Do the workers hold no buffer of the device's? Then it may go, with its buffers (af_xdp keeps
 * some for good). */
bool dpdk_port_may_let_go(struct dpdk_port *port);
/* Let the workers use the device, or end that: when it returns, none is in a call of the driver. */
void dpdk_port_set_attached(struct dpdk_port *port, bool attached);

/* Make the specification anew: for frames of this size, on the interface as it is called now. 0, or
 * -errno with a sentence in err. In dpdk_open.c. */
int dpdk_port_respec(struct dpdk_port *port, uint32_t frame_max, char *err, size_t err_size);

/* Attach the device to the port, again after its kernel interface was replaced, or let go of it
 * when the interface is gone. 0, or -errno with a sentence in err. In dpdk_open.c. */
int dpdk_port_attach(struct dpdk_port *port, uint32_t frame_max, char *err, size_t err_size);
void dpdk_port_detach(struct dpdk_port *port); /* port->device stays if DPDK is busy for long */

/* The NIC under a port on a PCI device: is it there, is it leaving, has it come back? Every few ms.
 * In dpdk_open.c. */
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
