/* SPDX-License-Identifier: BSD-3-Clause */
#include "dpdk_limits.h"

#include "dpdk_log.h"

#define ETH_HDR 14u

bool dpdk_filters_suffice(const struct dpdk_filters *f)
{
    return f->unicast && f->vlan && f->groups;
}

void dpdk_filters_tell(const struct dpdk_filters *f, const char *name)
{
    if (f->all) {
        if (!f->wanted && !dpdk_filters_suffice(f) && (f->hardware || !f->unicast || !f->vlan))
            dpdk_log(IO_LOG_INFO,
                     "%s: the NIC's filter for %s can't be set: it receives all frames "
                     "(promiscuous mode)",
                     name,
                     !f->unicast ? "the MAC address"
                     : !f->vlan  ? "the VLAN"
                                 : "groups");
        return;
    }
    if (f->wanted)
        dpdk_log(IO_LOG_WARN, "%s: no promiscuous mode: frames for other addresses don't arrive",
                 name);
    if (!f->unicast)
        dpdk_log(IO_LOG_WARN,
                 "%s: the NIC neither takes another MAC address nor has a promiscuous mode: frames "
                 "for the device don't arrive; leave its mac= out",
                 name);
    if (!f->vlan)
        dpdk_log(IO_LOG_WARN,
                 "%s: the NIC's filter doesn't accept VLAN %u: its frames don't arrive", name,
                 f->vid);
    if (!f->groups && (f->hardware || f->interface))
        dpdk_log(IO_LOG_WARN,
                 "%s: no all-multicast and no promiscuous mode: IPv6 neighbours may not find this "
                 "host, and multicast groups receive nothing; IPv4 works",
                 name);
}

void dpdk_frame_tell(const char *name, uint32_t wanted, uint32_t frame_max)
{
    if (wanted > frame_max)
        dpdk_log(IO_LOG_WARN,
                 "%s: an MTU of %u is wanted, and the NIC has %u: the path MTU follows it", name,
                 wanted - ETH_HDR, frame_max - ETH_HDR);
}
