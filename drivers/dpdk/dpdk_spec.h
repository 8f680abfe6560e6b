/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The words of a "dpdk:" port specification, without DPDK: the device, the options for the DPDK
 * driver, our own options.
 *
 *     net_af_packet0,iface=v0,urnic_mtu=4096      a DPDK virtual device: NAME,KEY=VALUE,...
 *     0000:01:00.0,urnic_rxd=2048                 a PCI device (01:00.0 is taken as 0000:01:00.0)
 *
 * Every key that begins with "urnic_" is our own and is removed. All others go to the DPDK driver
 * unchanged, so that each of its options can be used. A comma within brackets ends no option. An
 * option that is nearly one of af_packet, af_xdp or tap, but isn't, is refused.
 */
#ifndef URNIC_DPDK_SPEC_H
#define URNIC_DPDK_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The kind of a DPDK driver, which the code must know before it starts the driver. */
enum dpdk_kind {
    DPDK_PCI,
    DPDK_AF_PACKET,
    DPDK_AF_XDP,
    DPDK_TAP,
    DPDK_VDEV, /* any other virtual device: passed through */
};

enum dpdk_huge {
    DPDK_HUGE_AUTO, /* hugepages for PCI devices or when plenty are free */
    DPDK_HUGE_OFF,
    DPDK_HUGE_ON,
};

struct dpdk_spec {
    enum dpdk_kind kind;
    char name[64];     /* "net_af_packet0" or "0000:01:00.0" */
    char devargs[256]; /* text for DPDK: name and the driver's own options */
    char iface[16];    /* the kernel interface that the driver uses; "" = none */

    unsigned queues; /* qpairs= or queue_count=; 0 = not given, the driver has 1 then */

    uint32_t ring_frame; /* octets of a frame in af_packet's rings; by dpdk_spec_defaults */

    /* urnic_* options; 0 = not given */
    uint32_t mtu; /* urnic_mtu: IP MTU wanted, octets */
    uint32_t rxd; /* urnic_rxd, urnic_txd: descriptors per queue */
    uint32_t txd;
    uint32_t mem_mib;    /* urnic_mem: of all DPDK ports without hugepages; first port decides */
    enum dpdk_huge huge; /* urnic_huge=auto|off|on; first port decides */
    bool promisc;        /* urnic_promisc=0|1 */
    bool debug;          /* urnic_debug=0|1: let DPDK's own log through down to debug */
};

/* Parse the text after "dpdk:". Returns 0, or -EINVAL with a sentence in `err` that names the key
 * and the value at fault. Defaults that depend on the frame size are added by
 * dpdk_spec_defaults. */
int dpdk_spec_parse(const char *args, struct dpdk_spec *out, char *err, size_t err_size);

/* The smallest number of a device's workers that serve this many queues: a power of two. */
unsigned dpdk_spec_workers(unsigned queues);

/* Add the driver options that must be there for frames of `frame_max` octets and that the user did
 * not give: af_packet's ring geometry, af_xdp's busy polling. af_packet's two rings are locked
 * memory; they are made to fit into `lockable` octets. Returns 0, or -EINVAL when the devargs
 * outgrow their room. */
int dpdk_spec_defaults(struct dpdk_spec *spec, uint32_t frame_max, uint64_t lockable, char *err,
                       size_t err_size);

/* Parse the words after "dpdk:" again, for frames of `frame_max` octets, on an interface that may
 * have another name by now. Returns 0, or -EINVAL with a sentence in err, and *spec stays as it
 * is. */
int dpdk_spec_renew(struct dpdk_spec *spec, const char *args, const char *iface, uint32_t frame_max,
                    uint64_t lockable, char *err, size_t err_size);

/* Octets that one af_packet ring frame (its framesz option) must have so that frames of `frame_max`
 * octets and one more fit; a multiple of 256. */
uint32_t dpdk_spec_framesz(uint32_t frame_max);

/* Limits of a port's buffers held by its owner and queues, besides the descriptors. */
#define PORT_LENT_MAX   512u /* received frames the owner may hold; a power of two */
#define PORT_QUEUE_MAX  256u /* frames to send that the device hasn't taken yet */
#define PORT_POOL_CACHE 256u /* buffers in the cache of each thread that uses the pool */

/* The number of buffers of a port with this many descriptors in each queue. */
uint32_t dpdk_spec_buffers(uint32_t rxd, uint32_t txd);
/* Octets of hugepages that a PCI port for frames of `frame_max` octets takes, DPDK's own included;
 * on the safe side. */
uint64_t dpdk_spec_memory(const struct dpdk_spec *spec, uint32_t frame_max);

/* "pci", "af_packet", ... for messages. */
const char *dpdk_kind_name(enum dpdk_kind kind);

#endif
