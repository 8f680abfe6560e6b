/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Strict parse of a received frame.
 *
 * One function per layer, called in the order of VAL-01; each returns WIRE_OK or the first reason
 * to refuse. No function reads an octet that an earlier length check hasn't covered (VAL-07).
 */
#include <string.h>

#include "headers.h"
#include "parse.h"
#include "wire_csum.h"

#define GRH_NEXT_HEADER 0x1Bu /* a BTH follows */

/* The rest of a frame after some header. */
struct rest {
    size_t have; /* octets that may be read */
    size_t len;  /* octets before a capture cut the frame */
};

/* Ethernet and VLAN tags: sets ip_off and ethertype. */
static enum wire_verdict parse_ether(const uint8_t *f, size_t len, unsigned flags,
                                     struct wire_pkt *p)
{
    if (len < WIRE_ETH_LEN)
        return WIRE_TRUNCATED;
    memcpy(p->dmac, f, 6);
    memcpy(p->smac, f + 6, 6);
    size_t off = WIRE_ETH_LEN;
    uint16_t type = wire_get16(f + 12);
    if (type == WIRE_ETHERTYPE_SVLAN && (flags & WIRE_P_QINQ)) {
        if (len < off + WIRE_VLAN_LEN)
            return WIRE_TRUNCATED;
        type = wire_get16(f + off + 2);
        off += WIRE_VLAN_LEN;
        if (type != WIRE_ETHERTYPE_VLAN)
            return WIRE_NOT_ROCE;
    }
    if (type == WIRE_ETHERTYPE_VLAN) {
        if (len < off + WIRE_VLAN_LEN)
            return WIRE_TRUNCATED;
        p->vlan = true;
        p->tci = wire_get16(f + off);
        type = wire_get16(f + off + 2);
        off += WIRE_VLAN_LEN;
    }
    p->ethertype = type;
    p->ip_off = (uint16_t)off;
    if (type == WIRE_ETHERTYPE_V1 && (flags & WIRE_P_V1))
        return WIRE_OK;
    return type == WIRE_ETHERTYPE_IPV4 || type == WIRE_ETHERTYPE_IPV6 ? WIRE_OK : WIRE_NOT_ROCE;
}

/* Is the UDP header at `udp` there and for another port than ours? */
static bool other_port(const uint8_t *udp, size_t avail)
{
    return avail >= WIRE_UDP_LEN && wire_get16(udp + 2) != WIRE_UDP_PORT;
}

/* WIRE-29 for an IPv4 source (host order). */
static bool bad_v4_source(uint32_t a, unsigned flags)
{
    return a == 0 || a == 0xFFFFFFFFu || a >> 28 == 0xE ||
           (a >> 24 == 127 && !(flags & WIRE_P_LOOPBACK));
}

/* WIRE-29 for an IPv6 source; IPv4-mapped addresses have no business in an IPv6 header. */
static bool bad_v6_source(const struct wire_addr *a, unsigned flags)
{
    if (a->b[0] == 0xFF || wire_addr_is_v4(a))
        return true;
    uint64_t hi = wire_get64(a->b);
    uint64_t lo = wire_get64(a->b + 8);
    return hi == 0 && (lo == 0 || (lo == 1 && !(flags & WIRE_P_LOOPBACK)));
}

/* IPv4 header: sets udp_off; *ip_len = octets of IP payload. */
static enum wire_verdict parse_ipv4(const uint8_t *ip, struct rest r, unsigned flags,
                                    struct wire_pkt *p, size_t *ip_len)
{
    if (r.have < WIRE_IPV4_LEN)
        return WIRE_TRUNCATED;
    if (ip[0] >> 4 != 4 || ip[9] != WIRE_PROTO_UDP)
        return WIRE_NOT_ROCE;
    p->ip_version = 4;
    p->tclass = ip[1];
    p->ip_id = wire_get16(ip + 4);
    p->ip_flags = ip[6] >> 5 & 3u;
    p->ttl = ip[8];
    p->sip = wire_addr_v4(wire_get32(ip + 12));
    p->dip = wire_addr_v4(wire_get32(ip + 16));
    p->udp_off = (uint16_t)(p->ip_off + WIRE_IPV4_LEN);

    size_t ihl = (size_t)(ip[0] & 15u) * 4;
    size_t total = wire_get16(ip + 2);
    unsigned offset = wire_get16(ip + 6) & 0x1FFFu;
    if (ihl >= WIRE_IPV4_LEN && offset == 0 && ihl <= r.have && other_port(ip + ihl, r.have - ihl))
        return WIRE_NOT_ROCE;
    if (ihl < WIRE_IPV4_LEN || total < WIRE_IPV4_LEN + PARSE_UDP_MIN || total > r.len)
        return WIRE_TRUNCATED;
    if (ihl != WIRE_IPV4_LEN)
        return WIRE_IP_OPTIONS;
    if ((p->ip_flags & WIRE_IP_MF) || offset)
        return WIRE_IP_FRAGMENT;
    if (!(flags & WIRE_P_IP_CSUM_OK) && wire_csum_add(0, ip, WIRE_IPV4_LEN) != 0xFFFF)
        return WIRE_BAD_IP_CSUM;
    if (bad_v4_source(wire_get32(ip + 12), flags))
        return WIRE_BAD_ADDR;
    *ip_len = total - WIRE_IPV4_LEN;
    return WIRE_OK;
}

/* The fields that an IPv6 header and a GRH share. */
static void read_ipv6(const uint8_t *ip, struct wire_pkt *p)
{
    uint32_t first = wire_get32(ip);
    p->ip_version = 6;
    p->tclass = (uint8_t)(first >> 20);
    p->flow_label = first & 0xFFFFFu;
    p->ttl = ip[7];
    memcpy(p->sip.b, ip + 8, 16);
    memcpy(p->dip.b, ip + 24, 16);
}

/* IPv6 header: as parse_ipv4. */
static enum wire_verdict parse_ipv6(const uint8_t *ip, struct rest r, unsigned flags,
                                    struct wire_pkt *p, size_t *ip_len)
{
    if (r.have < WIRE_IPV6_LEN)
        return WIRE_TRUNCATED;
    if (ip[0] >> 4 != 6 || ip[6] != WIRE_PROTO_UDP)
        return WIRE_NOT_ROCE;
    read_ipv6(ip, p);
    p->udp_off = (uint16_t)(p->ip_off + WIRE_IPV6_LEN);

    size_t payload = wire_get16(ip + 4);
    if (other_port(ip + WIRE_IPV6_LEN, r.have - WIRE_IPV6_LEN))
        return WIRE_NOT_ROCE;
    if (payload < PARSE_UDP_MIN || payload > r.len - WIRE_IPV6_LEN)
        return WIRE_TRUNCATED;
    if (bad_v6_source(&p->sip, flags) || wire_addr_is_v4(&p->dip))
        return WIRE_BAD_ADDR;
    *ip_len = payload;
    return WIRE_OK;
}

/* The GRH of RoCE v1: sets bth_off; *len = octets from the BTH to the end of the iCRC. */
static enum wire_verdict parse_grh(const uint8_t *grh, struct rest r, struct wire_pkt *p,
                                   size_t *len)
{
    if (r.have < WIRE_IPV6_LEN)
        return WIRE_TRUNCATED;
    if (grh[0] >> 4 != 6 || grh[6] != GRH_NEXT_HEADER)
        return WIRE_NOT_ROCE;
    read_ipv6(grh, p);
    p->bth_off = (uint16_t)(p->ip_off + WIRE_IPV6_LEN);
    *len = wire_get16(grh + 4);
    if (*len < WIRE_BTH_LEN + WIRE_ICRC_LEN || *len > r.len - WIRE_IPV6_LEN)
        return WIRE_TRUNCATED;
    return WIRE_OK;
}

/* WIRE-24: is a non-zero UDP checksum right? Covers pseudo header, UDP header and payload. */
static bool udp_csum_good(const uint8_t *udp, size_t udp_len, const struct wire_pkt *p)
{
    uint8_t pseudo[4] = {0, WIRE_PROTO_UDP, (uint8_t)(udp_len >> 8), (uint8_t)udp_len};
    uint64_t sum = wire_csum_add(0, pseudo, sizeof(pseudo));
    if (p->ip_version == 4) {
        sum += wire_csum_add(0, p->sip.b + 12, 4);
        sum += wire_csum_add(0, p->dip.b + 12, 4);
    } else {
        sum += wire_csum_add(0, p->sip.b, 16);
        sum += wire_csum_add(0, p->dip.b, 16);
    }
    return wire_csum_add(sum, udp, udp_len) == 0xFFFF;
}

/* The port was checked with the IP header. */
static enum wire_verdict parse_udp(const uint8_t *udp, size_t have, size_t ip_len, unsigned flags,
                                   struct wire_pkt *p)
{
    if (have < WIRE_UDP_LEN)
        return WIRE_TRUNCATED;
    p->sport = wire_get16(udp);
    p->dport = wire_get16(udp + 2);
    p->udp_csum = wire_get16(udp + 6);
    p->bth_off = (uint16_t)(p->udp_off + WIRE_UDP_LEN);
    if (wire_get16(udp + 4) != ip_len)
        return WIRE_BAD_UDP;
    if ((flags & WIRE_P_UDP_CSUM) && p->udp_csum && have >= ip_len &&
        !udp_csum_good(udp, ip_len, p))
        return WIRE_BAD_UDP_CSUM;
    return WIRE_OK;
}

/* Read the extension headers that the opcode has; all of them are within the frame. */
static void parse_ext(const uint8_t *bth, const struct wire_opcode_info *info, struct wire_pkt *p)
{
    unsigned h = info->headers;
    if (h & WIRE_H_RETH) {
        const uint8_t *x = bth + info->reth;
        p->va = wire_get64(x);
        p->rkey = wire_get32(x + 8);
        p->dma_len = wire_get32(x + 12);
    }
    if (h & WIRE_H_AETH) {
        const uint8_t *x = bth + info->aeth;
        p->syndrome = x[0];
        p->msn = wire_get32(x) & 0xFFFFFFu;
    }
    if (h & WIRE_H_IMMDT)
        memcpy(&p->imm, bth + info->immdt, 4); /* opaque: HDR-10 */
    if (h & WIRE_H_IETH)
        p->rkey = wire_get32(bth + info->ieth);
    if (h & WIRE_H_ATOMICETH) {
        const uint8_t *x = bth + info->atomiceth;
        p->va = wire_get64(x);
        p->rkey = wire_get32(x + 8);
        p->swap_add = wire_get64(x + 12);
        p->compare = wire_get64(x + 20);
    }
    if (h & WIRE_H_ATOMICACK)
        p->orig = wire_get64(bth + info->atomicack);
    if (h & WIRE_H_DETH) {
        const uint8_t *x = bth + info->deth;
        p->qkey = wire_get32(x);
        p->sqpn = wire_get32(x + 4) & WIRE_QPN_MASK;
    }
    if (h & WIRE_H_XRCETH)
        p->xrc_srqn = wire_get32(bth + info->xrceth) & 0xFFFFFFu;
    if (h & WIRE_H_FETH)
        p->feth = wire_get32(bth + info->feth);
}

/* Read the fields of selective repeat; `end` is the end of the headers. */
static void parse_selective(const uint8_t *end, const struct wire_opcode_info *info,
                            struct wire_pkt *p)
{
    if (info->flags & WIRE_F_ACK)
        p->sel_psn = wire_get32(end - 4) & WIRE_PSN_MASK;
    if (info->flags & WIRE_F_SEND) {
        p->sel_recv = wire_get32(end - 8) & 0xFFFFFFu;
        p->sel_index = wire_get32(end - 4);
    }
}

/* BTH, extension headers and the lengths that follow from them. `len` = octets from the BTH to the
 * end of the iCRC, enough for both. */
static enum wire_verdict parse_bth(const uint8_t *bth, size_t have, size_t len, unsigned flags,
                                   struct wire_pkt *p)
{
    if (have < WIRE_BTH_LEN)
        return WIRE_TRUNCATED;
    const struct wire_opcode_info *info = &wire_opcodes[bth[0]];
    size_t rest = len - WIRE_BTH_LEN - WIRE_ICRC_LEN; /* extension headers, payload, pad */
    p->opcode = bth[0];
    if (flags & WIRE_P_SELECTIVE && (bth[0] & 0xE0) == WIRE_SELECTIVE) {
        info = &wire_selective[bth[0] & 31];
        p->selective = info->name;
        if (p->selective)
            p->opcode = bth[0] & 31;
    }
    p->se = bth[1] >> 7;
    p->migreq = bth[1] >> 6 & 1;
    p->pad = bth[1] >> 4 & 3;
    p->tver = bth[1] & 15;
    p->pkey = wire_get16(bth + 2);
    p->fecn = bth[4] >> 7;
    p->becn = bth[4] >> 6 & 1;
    p->dqpn = wire_get32(bth + 4) & WIRE_QPN_MASK;
    p->ackreq = bth[8] >> 7;
    p->psn = wire_get32(bth + 8) & WIRE_PSN_MASK;
    p->icrc_off = p->bth_off + WIRE_BTH_LEN + (uint32_t)rest;
    if (p->tver != 0)
        return WIRE_BAD_TVER;
    if (!info->name)
        return WIRE_BAD_OPCODE;
    if (rest % 4u || rest < info->ext_len)
        return WIRE_BAD_LENGTH;
    rest -= info->ext_len;
    if (p->pad > rest || (!(info->flags & WIRE_F_PAYLOAD) && rest))
        return WIRE_BAD_LENGTH;
    p->payload_len = (uint32_t)rest - p->pad;
    if (have < WIRE_BTH_LEN + (size_t)info->ext_len)
        return WIRE_TRUNCATED;
    p->payload_off = (uint16_t)(p->bth_off + WIRE_BTH_LEN + info->ext_len);
    parse_ext(bth, info, p);
    if (p->selective)
        parse_selective(bth + WIRE_BTH_LEN + info->ext_len, info, p);
    return WIRE_OK;
}

/* The checks after the iCRC that need neither a queue pair nor our addresses. */
static enum wire_verdict check_fields(const struct wire_pkt *p)
{
    const struct wire_opcode_info *info = &wire_opcodes[p->opcode];
    bool mcast_qpn = p->dqpn == WIRE_QPN_MULTICAST;
    if (p->dqpn == 0 || mcast_qpn != wire_addr_is_multicast(&p->dip) ||
        (mcast_qpn && info->service != WIRE_UD))
        return WIRE_BAD_QPN;
    if ((info->headers & WIRE_H_AETH) && wire_aeth_kind(p->syndrome) == WIRE_AETH_INVALID)
        return WIRE_BAD_AETH;
    if ((info->headers & WIRE_H_DETH) && (p->sqpn == 0 || p->sqpn == WIRE_QPN_MULTICAST))
        return WIRE_BAD_SRCQP;
    return WIRE_OK;
}

enum wire_verdict parse_icrc(const uint8_t *frame, unsigned flags, const struct wire_pkt *p)
{
    size_t end = p->icrc_off + WIRE_ICRC_LEN;
    if (!(flags & WIRE_P_NO_ICRC) &&
        wire_icrc(frame, end, p->ip_off, p->bth_off) != wire_get32le(frame + p->icrc_off))
        return WIRE_BAD_ICRC;
    return WIRE_OK;
}

enum wire_verdict parse_transport(const uint8_t *frame, size_t have, size_t len, unsigned flags,
                                  struct wire_pkt *p)
{
    enum wire_verdict v = parse_bth(frame + p->bth_off, have - p->bth_off, len, flags, p);
    if (v != WIRE_OK)
        return v;
    if (p->icrc_off + WIRE_ICRC_LEN <= have)
        v = parse_icrc(frame, flags, p);
    return v == WIRE_OK ? check_fields(p) : v;
}

enum wire_verdict wire_parse_cut(const uint8_t *frame, size_t have, size_t len, unsigned flags,
                                 struct wire_pkt *out)
{
    memset(out, 0, sizeof(*out));
    enum wire_verdict v = parse_ether(frame, have, flags, out);
    if (v != WIRE_OK)
        return v;
    size_t ip_len = 0;
    const uint8_t *ip = frame + out->ip_off;
    struct rest r = {have - out->ip_off, len - out->ip_off};
    if (out->ethertype == WIRE_ETHERTYPE_V1) {
        v = parse_grh(ip, r, out, &ip_len);
    } else {
        v = out->ethertype == WIRE_ETHERTYPE_IPV4 ? parse_ipv4(ip, r, flags, out, &ip_len)
                                                  : parse_ipv6(ip, r, flags, out, &ip_len);
        if (v != WIRE_OK)
            return v;
        v = parse_udp(frame + out->udp_off, have - out->udp_off, ip_len, flags, out);
        ip_len -= WIRE_UDP_LEN;
    }
    if (v != WIRE_OK)
        return v;
    return parse_transport(frame, have, ip_len, flags, out);
}

enum wire_verdict wire_parse(const uint8_t *frame, size_t len, unsigned flags, struct wire_pkt *out)
{
    return wire_parse_cut(frame, len, len, flags, out);
}

const char *wire_verdict_name(enum wire_verdict v)
{
    static const char *const names[WIRE_VERDICTS] = {
        [WIRE_OK] = "ok",
        [WIRE_NOT_ROCE] = "rx_not_roce",
        [WIRE_TRUNCATED] = "rx_truncated",
        [WIRE_IP_OPTIONS] = "rx_ip_options",
        [WIRE_IP_FRAGMENT] = "rx_ip_fragment",
        [WIRE_BAD_IP_CSUM] = "rx_bad_ip_csum",
        [WIRE_BAD_ADDR] = "rx_bad_addr",
        [WIRE_BAD_UDP] = "rx_bad_udp",
        [WIRE_BAD_UDP_CSUM] = "rx_bad_udp_csum",
        [WIRE_BAD_TVER] = "rx_bad_tver",
        [WIRE_BAD_OPCODE] = "rx_bad_opcode",
        [WIRE_BAD_LENGTH] = "rx_bad_length",
        [WIRE_BAD_ICRC] = "rx_icrc_err",
        [WIRE_BAD_QPN] = "rx_bad_qpn",
        [WIRE_BAD_AETH] = "rx_bad_aeth",
        [WIRE_BAD_SRCQP] = "rx_bad_srcqp",
    };
    return (unsigned)v < WIRE_VERDICTS ? names[v] : "unknown";
}
