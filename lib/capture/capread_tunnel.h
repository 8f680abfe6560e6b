/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Private to the capture reader: RoCE inside carriers.
 */
#ifndef URNIC_CAPREAD_TUNNEL_H
#define URNIC_CAPREAD_TUNNEL_H

#include "capread.h"

/* If the Ethernet frame *p carries RoCE inside a carrier, make *p the original innermost frame,
 * with at most one VLAN tag, or a service tag and one. Its interface then distinguishes carriers
 * (sessions of mirroring devices, networks). `scratch` as in capread_link; the frame may lie in it.
 * Returns the outermost carrier; CAPREAD_PLAIN: *p is unchanged. */
enum capread_carrier capread_tunnel(uint8_t *scratch, struct capread_packet *p);

#endif
