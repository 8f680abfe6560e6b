/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Missing features of a NIC, and the log's lines about them. No DPDK in here.
 */
#ifndef URNIC_DPDK_LIMITS_H
#define URNIC_DPDK_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

/* Which of the device's frames a NIC receives. */
struct dpdk_filters {
    bool unicast;   /* frames to the device's MAC address */
    bool vlan;      /* frames with its VLAN tag; true without a VLAN */
    bool groups;    /* frames to groups: IPv6's neighbour discovery, multicast */
    bool all;       /* all frames (promiscuous mode) */
    bool wanted;    /* the user has asked for all frames */
    bool hardware;  /* a PCI device */
    bool interface; /* a kernel interface lies beneath */
    uint16_t vid;   /* id of the device's VLAN */
};

/* Does the NIC receive all of the device's frames without promiscuous mode? */
bool dpdk_filters_suffice(const struct dpdk_filters *f);

/* Log which frames don't arrive, or that all do because a filter is missing. Quiet where nothing
 * is missing. name: the port's. */
void dpdk_filters_tell(const struct dpdk_filters *f, const char *name);

/* Log it if the NIC's longest frame is shorter than the requested one. Both in octets with the
 * Ethernet header. */
void dpdk_frame_tell(const char *name, uint32_t wanted, uint32_t frame_max);

#endif
