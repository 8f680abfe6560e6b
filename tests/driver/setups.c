/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The drivers that the conformance test runs on: one line each.
 */
#include "conform.h"

const struct conf_setup conf_setups[] = {
    {"mem", {"mem:conform", "mem:conform"}, CONF_PEER_LINK | CONF_RX_LIMIT, 0, NULL, NULL},
    {"pcap",
     {"pcap:,%s/wire.pcapng", "pcap:%s/wire.pcapng,"},
     CONF_FILE | CONF_NEVER_FULL | CONF_RX_LIMIT,
     0,
     NULL,
     NULL},
};
const size_t conf_setups_n = sizeof(conf_setups) / sizeof(conf_setups[0]);
