/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Private to the capture reader: RoCE inside something else.
 */
#ifndef URNIC_CAPREAD_TUNNEL_H
#define URNIC_CAPREAD_TUNNEL_H

#include "capread.h"

/* If what carries *p, an Ethernet frame, carries RoCE inside: make *p the innermost frame, as it
 * was before it was wrapped, with at most one VLAN tag or a service tag and one; its interface then
 * tells carriers apart (sessions of mirroring devices, networks). `scratch` as in capread_link; the
 * frame may lie in it. Returns what the outermost carrier is, CAPREAD_PLAIN if *p is as it was. */
enum capread_carrier capread_tunnel(uint8_t *scratch, struct capread_packet *p);

#endif
