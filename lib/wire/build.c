/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Build a frame field by field from a struct wire_pkt: for tests, tools, the CM and everything else
 * that isn't the hot path (see tmpl.c for that).
 */
#include <string.h>

#include "headers.h"

static size_t l2_len(const struct wire_pkt *p)
{
    return WIRE_ETH_LEN + (p->vlan ? WIRE_VLAN_LEN : 0u);
}

static size_t ip_hdr_len(const struct wire_pkt *p)
{
    return p->ip_version == 4 ? WIRE_IPV4_LEN : WIRE_IPV6_LEN;
}

/* UDP header to iCRC. */
static size_t udp_len(const struct wire_pkt *p)
{
    return (size_t)WIRE_UDP_LEN + WIRE_BTH_LEN + headers_info(p->opcode, p->selective)->ext_len +
           p->payload_len + headers_pad(p->payload_len) + WIRE_ICRC_LEN;
}

static void put_ether(uint8_t *f, const struct wire_pkt *p)
{
    uint8_t *type = f + 12;
    memcpy(f, p->dmac, 6);
    memcpy(f + 6, p->smac, 6);
    if (p->vlan) {
        wire_put16(type, WIRE_ETHERTYPE_VLAN);
        wire_put16(type + 2, p->tci);
        type += WIRE_VLAN_LEN;
    }
    wire_put16(type, p->ip_version == 4 ? WIRE_ETHERTYPE_IPV4 : WIRE_ETHERTYPE_IPV6);
}

static void put_ipv4(uint8_t *ip, const struct wire_pkt *p, size_t payload)
{
    ip[0] = 0x45;
    ip[1] = p->tclass;
    wire_put16(ip + 2, (uint16_t)(WIRE_IPV4_LEN + payload));
    wire_put16(ip + 4, p->ip_id);
    wire_put16(ip + 6, (uint16_t)((p->ip_flags & 3u) << 13));
    ip[8] = p->ttl;
    ip[9] = WIRE_PROTO_UDP;
    wire_put16(ip + 10, 0);
    memcpy(ip + 12, p->sip.b + 12, 4);
    memcpy(ip + 16, p->dip.b + 12, 4);
    wire_put16(ip + 10, headers_csum(headers_ipv4_sum(ip)));
}

static void put_ipv6(uint8_t *ip, const struct wire_pkt *p, size_t payload)
{
    wire_put32(ip, 6u << 28 | (uint32_t)p->tclass << 20 | (p->flow_label & 0xFFFFFu));
    wire_put16(ip + 4, (uint16_t)payload);
    ip[6] = WIRE_PROTO_UDP;
    ip[7] = p->ttl;
    memcpy(ip + 8, p->sip.b, 16);
    memcpy(ip + 24, p->dip.b, 16);
}

static void put_bth(uint8_t *bth, const struct wire_pkt *p)
{
    bth[0] = (uint8_t)(p->opcode | (p->selective ? WIRE_SELECTIVE : 0));
    bth[1] = (uint8_t)((unsigned)p->se << 7 | (unsigned)p->migreq << 6 |
                       headers_pad(p->payload_len) << 4 | (p->tver & 15u));
    wire_put16(bth + 2, p->pkey);
    wire_put32(bth + 4,
               (uint32_t)p->fecn << 31 | (uint32_t)p->becn << 30 | (p->dqpn & WIRE_QPN_MASK));
    wire_put32(bth + 8, (uint32_t)p->ackreq << 31 | (p->psn & WIRE_PSN_MASK));
}

size_t wire_frame_len(const struct wire_pkt *p)
{
    return l2_len(p) + ip_hdr_len(p) + udp_len(p);
}

size_t wire_build(uint8_t *buf, size_t cap, struct wire_pkt *p)
{
    const struct wire_opcode_info *info = headers_info(p->opcode, p->selective);
    size_t udp = udp_len(p);
    if (!info->name || wire_frame_len(p) > cap || ip_hdr_len(p) + udp > UINT16_MAX)
        return 0;
    p->ip_off = (uint16_t)l2_len(p);
    p->udp_off = (uint16_t)(p->ip_off + ip_hdr_len(p));
    p->bth_off = (uint16_t)(p->udp_off + WIRE_UDP_LEN);
    p->payload_off = (uint16_t)(p->bth_off + WIRE_BTH_LEN + info->ext_len);
    p->pad = (uint8_t)headers_pad(p->payload_len);
    p->icrc_off = p->payload_off + p->payload_len + p->pad;

    put_ether(buf, p);
    if (p->ip_version == 4)
        put_ipv4(buf + p->ip_off, p, udp);
    else
        put_ipv6(buf + p->ip_off, p, udp);
    wire_put16(buf + p->udp_off, p->sport);
    wire_put16(buf + p->udp_off + 2, WIRE_UDP_PORT);
    wire_put16(buf + p->udp_off + 4, (uint16_t)udp);
    wire_put16(buf + p->udp_off + 6, p->udp_csum);
    put_bth(buf + p->bth_off, p);
    struct wire_var v = {
        .syndrome = p->syndrome,
        .msn = p->msn,
        .va = p->va,
        .rkey = p->rkey,
        .dma_len = p->dma_len,
        .imm = p->imm,
        .swap_add = p->swap_add,
        .compare = p->compare,
        .orig = p->orig,
        .qkey = p->qkey,
        .sqpn = p->sqpn,
        .xrc_srqn = p->xrc_srqn,
        .feth = p->feth,
        .selective = p->selective,
        .sel_recv = p->sel_recv,
        .sel_index = p->sel_index,
        .sel_psn = p->sel_psn,
    };
    headers_put_ext(buf + p->bth_off, info, &v);
    if (info->flags & WIRE_F_CNP) /* OPC-05 */
        memset(buf + p->bth_off + WIRE_BTH_LEN, 0, info->ext_len);
    return p->payload_off;
}
