/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Private to the capture reader: turning packets of any link type into Ethernet frames.
 */
#ifndef URNIC_CAPREAD_LINK_H
#define URNIC_CAPREAD_LINK_H

#include "capread.h"

/* Turn the packet of `len` octets at `data` (`wire_len` before the capture cut it) into an Ethernet
 * frame: sets p's frame, len, wire_len, no_ether and, when the link type tells it, dir. `scratch`
 * holds CAPREAD_FRAME_MAX + WIRE_ETH_LEN octets and is used only when a header has to be made.
 * False if this packet can't carry RoCE. */
bool capread_link(uint16_t link_type, const uint8_t *data, uint32_t len, uint32_t wire_len,
                  uint8_t *scratch, struct capread_packet *p);

/* Is it a packet of InfiniBand itself, as `ibdump` and Endace's cards write them? */
bool capread_link_infiniband(uint16_t link_type, const uint8_t *data, uint32_t len);

/* A mirror or a packet broker may have cut a RoCEv2 packet before it was captured: then the file
 * has all captured octets, but the IP and UDP headers agree on a larger length. Sets wire_len to
 * that. */
void capread_sliced(struct capread_packet *p);

#endif
