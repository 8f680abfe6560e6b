/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The drivers that the conformance test runs on: one line each.
 */
#include "conform.h"
#include "setup_netns.h"

const struct conf_setup conf_setups[] = {
    {"mem", {"mem:conform", "mem:conform"}, CONF_PEER_LINK | CONF_RX_LIMIT, 0, NULL, NULL},
    {"memif",
     {"memif:%s/m.sock,role=server", "memif:%s/m.sock,role=client"},
     CONF_PEER_LINK | CONF_PROCESS | CONF_RX_LIMIT,
     0,
     NULL,
     NULL},
    {"memif-chain", /* buffers smaller than frames: chains, copies around the end of the ring */
     {"memif:@urnic-conform-chain,role=client,buffer=2048,log2_ring_size=8",
      "memif:@urnic-conform-chain,role=server"},
     CONF_PEER_LINK | CONF_PROCESS | CONF_RX_LIMIT,
     IO_FRAME_MAX,
     NULL,
     NULL},
    {"pcap",
     {"pcap:,%s/wire.pcapng", "pcap:%s/wire.pcapng,"},
     CONF_FILE | CONF_NEVER_FULL | CONF_RX_LIMIT,
     0,
     NULL,
     NULL},
    {"udp",
     {"udp:lo,addr=127.0.0.1", "udp:lo,addr=127.0.0.2"},
     CONF_LOSSY_FULL | CONF_RX_LIMIT,
     0,
     setup_udp_v4,
     NULL},
    {"udp-v6",
     {"udp:v0,addr=fd00::1", "udp:v0,addr=fd00::2"},
     CONF_LOSSY_FULL | CONF_RX_LIMIT,
     0,
     setup_udp_v6,
     NULL},
    {"udp-single", /* one datagram a call */
     {"udp:lo,addr=127.0.0.1,trains=off", "udp:lo,addr=127.0.0.2,trains=off"},
     CONF_LOSSY_FULL | CONF_RX_LIMIT,
     4200,
     setup_udp_v4,
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
