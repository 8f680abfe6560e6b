/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Between a frame, as the engine has it, and what a UDP socket takes and gives: a payload, two
 * addresses, and a few fields of the headers. Pure functions; any thread.
 */
#ifndef URNIC_UDP_FRAME_H
#define URNIC_UDP_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include "io.h"

#define UDP_HDR_V4  42u /* Ethernet, IPv4, UDP */
#define UDP_HDR_V6  62u
#define UDP_HDR_MAX 64u /* room kept in front of a payload */

/* The headers of what one peer sends to one address: all but lengths, traffic class and so on. */
struct udp_head {
    uint8_t octets[UDP_HDR_V6];
    uint8_t len;
};
/* `mac` is the port's; `to` may be a group, whose MAC is its destination then. */
void udp_head_init(struct udp_head *h, const uint8_t mac[6], const struct io_addr *from,
                   const struct io_addr *to, uint16_t sport);

/* Write the headers of a datagram of `len` octets in front of it. IPv4 gets identification 0 and
 * DF, which udp_frame_check makes right; checksums: IPv4's is right, UDP's is 0. Returns the frame.
 */
uint8_t *udp_frame_put(uint8_t *datagram, uint32_t len, const struct udp_head *h, uint8_t tclass,
                       uint8_t ttl);

/* Result of the check of a received frame's iCRC (ICRC-08). */
struct udp_verdict {
    bool good; /* the iCRC is right, for IPv4 with id and df */
    uint16_t id;
    bool df; /* id and df are in the frame now */
};
/* Look for an IPv4 identification, with DF or without, that makes the iCRC right; try `guess` with
 * DF first. IPv6: it is right or not. `frame` as udp_frame_put made it, `len` the whole. */
struct udp_verdict udp_frame_check(uint8_t *frame, uint32_t len, uint16_t guess);

/* Make the frame's identification 0 with DF again: the one found counts as damage. */
void udp_frame_forget(uint8_t *frame);
/* The IPv4 source address that would make the iCRC right, the identification being that of the
 * frame. There always is one: only that many packets agree on it says something (NAT). */
bool udp_frame_other_source(const uint8_t *frame, uint32_t len, struct io_addr *source);

/* A frame to send, taken apart. */
struct udp_out {
    struct io_addr from, to;
    bool v4;
    uint8_t tclass, ttl;
    uint8_t off; /* of the datagram in the frame */
    uint16_t sport, id;
    uint32_t len; /* of the datagram */
};
/* False: it is no RoCEv2 frame of right lengths. A VLAN tag is no part of one here. */
bool udp_frame_parse(const uint8_t *frame, uint32_t len, struct udp_out *out);

/* Make the iCRC of a datagram right for the source port 4791 and an identification, where the frame
 * that it was sealed in had others. */
void udp_frame_reseal(uint8_t *datagram, const struct udp_out *o, uint16_t id);

#endif
