/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Conversion between a frame of the engine and the data of a UDP socket: a payload, two addresses,
 * and a few fields of the headers. Pure functions; any thread.
 */
#ifndef URNIC_UDP_FRAME_H
#define URNIC_UDP_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include "io.h"

#define UDP_HDR_V4  42u /* Ethernet, IPv4, UDP */
#define UDP_HDR_V6  62u
#define UDP_HDR_MAX 64u /* room kept in front of a payload */

/* Headers for packets of one peer to one address: all but lengths, traffic class and so on. */
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
/* Find an IPv4 identification, with or without DF, that makes the iCRC right; `guess` with DF is
 * tried first. IPv6: check the iCRC. `frame` is from udp_frame_put; `len` is its whole length. */
struct udp_verdict udp_frame_check(uint8_t *frame, uint32_t len, uint16_t guess);

/* Undo what udp_frame_check wrote: identification 0, with DF. For a frame that counts as damaged
 * because its peer would not use the identification that was found. */
void udp_frame_forget(uint8_t *frame);
/* The IPv4 source address that would make the iCRC right with the frame's identification. There
 * always is such an address, so it is evidence of NAT only if many packets agree on it. */
bool udp_frame_other_source(const uint8_t *frame, uint32_t len, struct io_addr *source);

/* The parts of a frame to send. */
struct udp_out {
    struct io_addr from, to;
    bool v4;
    uint8_t tclass, ttl;
    uint8_t off; /* offset of the datagram in the frame */
    uint16_t sport, id;
    uint32_t len; /* length of the datagram */
};
/* Take a frame apart. False: not a RoCEv2 frame of right lengths, or with a VLAN tag. */
bool udp_frame_parse(const uint8_t *frame, uint32_t len, struct udp_out *out);

/* Correct the iCRC of a datagram for source port 4791 and an identification; it was sealed for
 * others. */
void udp_frame_reseal(uint8_t *datagram, const struct udp_out *o, uint16_t id);

#endif
