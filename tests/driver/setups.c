/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The drivers that the conformance test runs on: one line each.
 */
#include "conform.h"
#include "setup_netns.h"

const struct conf_setup conf_setups[] = {
    {"mem", {"mem:conform", "mem:conform"}, CONF_PEER_LINK | CONF_RX_LIMIT, 0, NULL, NULL},
    {"pcap",
     {"pcap:,%s/wire.pcapng", "pcap:%s/wire.pcapng,"},
     CONF_FILE | CONF_NEVER_FULL | CONF_RX_LIMIT,
     0,
     NULL,
     NULL},
    {"dpdk-af-packet",
     {"dpdk:net_af_packet0,iface=v0", "dpdk:net_af_packet1,iface=v1"},
     CONF_LOSSY_FULL | CONF_RX_LIMIT,
     4200,
     setup_veth,
     NULL},
    {"dpdk-af-xdp",
     {"dpdk:net_af_xdp0,iface=v0", "dpdk:net_af_xdp1,iface=v1"},
     CONF_LOSSY_FULL | CONF_RX_LIMIT,
     2200,
     setup_veth,
     NULL},
    {"dpdk-tap", /* the other end is the kernel's side of the tap */
     {"dpdk:net_tap0,iface=t0", "dpdk:net_af_packet1,iface=t0"},
     CONF_LOSSY_FULL,
     0,
     setup_empty,
     NULL},
};
const size_t conf_setups_n = sizeof(conf_setups) / sizeof(conf_setups[0]);
