/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Private to lib/wire: functions that write headers, for the builder and the templates.
 */
#ifndef URNIC_WIRE_HEADERS_H
#define URNIC_WIRE_HEADERS_H

#include "wire.h"
#include "wire_bytes.h"

/* Fold a sum of 16-bit words (ones' complement) and complement it. */
static inline uint16_t headers_csum(uint32_t sum)
{
    sum = (sum & 0xFFFFu) + (sum >> 16);
    sum += sum >> 16;
    return (uint16_t)~sum;
}

/* Sum of the ten 16-bit words of an IPv4 header, not folded. */
static inline uint32_t headers_ipv4_sum(const uint8_t *ip)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < WIRE_IPV4_LEN; i += 2)
        sum += wire_get16(ip + i);
    return sum;
}

/* The entry for an RC opcode to send, in the group of selective repeat if `selective`. */
static inline const struct wire_opcode_info *headers_info(uint8_t opcode, bool selective)
{
    return selective ? &wire_selective[opcode & 31] : &wire_opcodes[opcode];
}

/* Octets after the payload that make it a multiple of 4 (HDR-05). */
static inline uint32_t headers_pad(uint32_t payload_len)
{
    return -payload_len & 3u;
}

/* Write the extension headers of an opcode. Reserved fields are 0 (SEC-11). */
static inline void headers_put_ext(uint8_t *bth, const struct wire_opcode_info *info,
                                   const struct wire_var *v)
{
    unsigned h = info->headers;
    if (h & WIRE_H_RETH) {
        uint8_t *x = bth + info->reth;
        wire_put64(x, v->va);
        wire_put32(x + 8, v->rkey);
        wire_put32(x + 12, v->dma_len);
    }
    if (h & WIRE_H_AETH)
        wire_put32(bth + info->aeth, (uint32_t)v->syndrome << 24 | (v->msn & 0xFFFFFFu));
    if (h & WIRE_H_IMMDT)
        memcpy(bth + info->immdt, &v->imm, 4); /* opaque: HDR-10 */
    if (h & WIRE_H_IETH)
        wire_put32(bth + info->ieth, v->rkey);
    if (h & WIRE_H_ATOMICETH) {
        uint8_t *x = bth + info->atomiceth;
        wire_put64(x, v->va);
        wire_put32(x + 8, v->rkey);
        wire_put64(x + 12, v->swap_add);
        wire_put64(x + 20, v->compare);
    }
    if (h & WIRE_H_ATOMICACK)
        wire_put64(bth + info->atomicack, v->orig);
    if (h & WIRE_H_DETH) {
        uint8_t *x = bth + info->deth;
        wire_put32(x, v->qkey);
        wire_put32(x + 4, v->sqpn & WIRE_QPN_MASK);
    }
    if (h & WIRE_H_XRCETH)
        wire_put32(bth + info->xrceth, v->xrc_srqn & 0xFFFFFFu);
    if (h & WIRE_H_FETH)
        wire_put32(bth + info->feth, v->feth);
    if (v->selective && info->flags & WIRE_F_ACK)
        wire_put32(bth + WIRE_BTH_LEN + info->ext_len - 4, v->sel_psn & WIRE_PSN_MASK);
    if (v->selective && info->flags & WIRE_F_SEND) {
        wire_put32(bth + WIRE_BTH_LEN + info->ext_len - 8, v->sel_recv & 0xFFFFFFu);
        wire_put32(bth + WIRE_BTH_LEN + info->ext_len - 4, v->sel_index);
    }
}

#endif
