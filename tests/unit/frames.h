/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames for the tests of lib/wire: a correct packet to start from, and functions that make its
 * checksums right again after a test has changed octets.
 */
#ifndef URNIC_TESTS_FRAMES_H
#define URNIC_TESTS_FRAMES_H

#include <string.h>

#include "wire.h"
#include "wire_bytes.h"

#define FRAME_V4     0u
#define FRAME_V6     1u
#define FRAME_TAGGED 2u

/* A packet with a value in every field that shows a loss of the field. */
static inline struct wire_pkt frame_pkt(unsigned kind, uint8_t opcode, uint32_t payload_len)
{
    struct wire_pkt p = {
        .dmac = {0x02, 0x00, 0x5E, 0x00, 0x53, 0x02},
        .smac = {0x02, 0x00, 0x5E, 0x00, 0x53, 0x01},
        .vlan = kind & FRAME_TAGGED,
        .tci = 0x6064,
        .ip_version = kind & FRAME_V6 ? 6 : 4,
        .tclass = 0x6A,
        .ttl = 64,
        .ip_id = 0x1234,
        .ip_flags = 2,
        .flow_label = 0x54321,
        .sip = wire_addr_v4(0xC0000201u),
        .dip = wire_addr_v4(0xC0000202u),
        .sport = 0xC123,
        .opcode = opcode,
        .migreq = true,
        .pkey = WIRE_PKEY_DEFAULT,
        .dqpn = 0xABC,
        .psn = 0xFFFFFE,
        .va = 0x00007F1122334455u,
        .rkey = 0x0001A2B3,
        .dma_len = payload_len,
        .swap_add = 0x1122334455667788u,
        .compare = 0x0102030405060708u,
        .orig = 0xF1F2F3F4F5F6F7F8u,
        .syndrome = WIRE_SYN_ACK,
        .msn = 0x876543,
        .imm = 0xEFBEADDE,
        .qkey = 0x11223344,
        .sqpn = 0x000123,
        .xrc_srqn = 0xA1B2C3,
        .feth = 0x12,
        .payload_len = payload_len,
    };
    if (kind & FRAME_V6) {
        wire_addr_parse("2001:db8::1", &p.sip);
        wire_addr_parse("2001:db8::2", &p.dip);
    }
    return p;
}

/* Build `p` with payload octets 1, 2, 3 ... and a good iCRC. Returns the frame's length. */
static inline size_t frame_make(uint8_t *buf, size_t cap, struct wire_pkt *p)
{
    size_t len = wire_frame_len(p);
    size_t at = wire_build(buf, cap, p);
    if (!at)
        return 0;
    for (uint32_t i = 0; i < p->payload_len; i++)
        buf[at + i] = (uint8_t)(i + 1);
    wire_icrc_seal(buf, len, p->ip_off, p->bth_off);
    return len;
}

/* Make the IPv4 header checksum right again. */
static inline void frame_fix_csum(uint8_t *ip)
{
    uint32_t sum = 0;
    wire_put16(ip + 10, 0);
    for (size_t i = 0; i < 20; i += 2)
        sum += wire_get16(ip + i);
    while (sum >> 16)
        sum = (sum & 0xFFFFu) + (sum >> 16);
    wire_put16(ip + 10, (uint16_t)~sum);
}

/* Make the iCRC right again for the lengths that the frame has; doesn't touch the pad. */
static inline void frame_fix_icrc(uint8_t *frame, size_t len, const struct wire_pkt *p)
{
    wire_put32le(frame + len - 4, wire_icrc(frame, len, p->ip_off, p->bth_off));
}

#endif
