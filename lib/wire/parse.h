/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions shared by the two ways to parse a frame.
 */
#ifndef URNIC_WIRE_PARSE_H
#define URNIC_WIRE_PARSE_H

#include "wire.h"

/* Least octets of a RoCE datagram: UDP, BTH, iCRC. */
#define PARSE_UDP_MIN (WIRE_UDP_LEN + WIRE_BTH_LEN + WIRE_ICRC_LEN)

/* The second half of wire_parse_cut, with its arguments: from BTH to iCRC, then the checks. `len` =
 * octets from the BTH to the end of the iCRC; p holds all fields before the BTH. */
enum wire_verdict parse_transport(const uint8_t *frame, size_t have, size_t len, unsigned flags,
                                  struct wire_pkt *p);

/* WIRE_OK when the iCRC is right, or isn't to be checked. p has all offsets; the frame is whole. */
enum wire_verdict parse_icrc(const uint8_t *frame, unsigned flags, const struct wire_pkt *p);

#endif
