/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Link types of captures that carry Ethernet or IP. Numbers are those of the tcpdump.org list; a
 * pcap file of DLT_RAW has the number of the system that wrote it.
 */
#include "capread_link.h"

#include <string.h>

#include "capread_priv.h"
#include "wire.h"
#include "wire_bytes.h"

enum link_type {
    LINK_NULL = 0,
    LINK_RAW_BSD = 12,
    LINK_RAW_OPENBSD = 14,
    LINK_RAW = 101,
    LINK_LOOP = 108,
    LINK_SLL = 113,
    LINK_ERF = 197,
    LINK_IPV4 = 228,
    LINK_IPV6 = 229,
    LINK_INFINIBAND = 247,
    LINK_SLL2 = 276,
};

#define PACKET_LEN_MAX (1u << 30)
#define VLAN_IDS       4096u

/* Cut `n` octets off the front. False when the packet isn't that long. */
static bool skip(struct capread_packet *p, uint32_t n)
{
    if (p->len < n)
        return false;
    p->frame += n;
    p->len -= n;
    p->wire_len = p->wire_len > n ? p->wire_len - n : 0;
    return true;
}

/* Put an Ethernet header before the rest. `mac` = source address, or NULL. */
static bool make_ether(struct capread_packet *p, uint8_t *scratch, uint16_t type,
                       const uint8_t *mac)
{
    uint8_t from[6] = {0};
    if (mac)
        memcpy(from, mac, 6);
    memmove(scratch + WIRE_ETH_LEN, p->frame, p->len);
    memset(scratch, 0, 6);
    memcpy(scratch + 6, from, 6);
    scratch[12] = (uint8_t)(type >> 8);
    scratch[13] = (uint8_t)type;
    p->frame = scratch;
    p->len += WIRE_ETH_LEN;
    p->wire_len += WIRE_ETH_LEN;
    p->no_ether = true;
    return true;
}

/* Bare IP: its version tells the EtherType. */
static bool raw_ip(struct capread_packet *p, uint8_t *scratch)
{
    unsigned version = p->len ? p->frame[0] >> 4 : 0;
    if (version != 4 && version != 6)
        return false;
    return make_ether(p, scratch, version == 4 ? WIRE_ETHERTYPE_IPV4 : WIRE_ETHERTYPE_IPV6, NULL);
}

static bool is_vlan(uint16_t type)
{
    return type == WIRE_ETHERTYPE_VLAN || type == WIRE_ETHERTYPE_SVLAN;
}

/* The place of an interface among those that a packet passes in turn: 0 for the last one, where it
 * has no VLAN tag any more; another number for each outer tag. */
static uint32_t vlan_level(uint16_t type, const uint8_t *at, uint32_t len)
{
    if (!is_vlan(type) || len < 4)
        return 0;
    return 1 + wire_get16(at) % VLAN_IDS + (is_vlan(wire_get16(at + 2)) ? VLAN_IDS : 0);
}

/* Linux "cooked" headers: both have a packet type, a link address and an EtherType. */
static bool cooked(struct capread_packet *p, uint8_t *scratch, bool second)
{
    uint32_t header = second ? 20 : 16;
    if (p->len < header)
        return false;
    const uint8_t *h = p->frame;
    unsigned kind = second ? h[10] : wire_get16(h);
    unsigned addr_len = second ? h[11] : wire_get16(h + 4);
    const uint8_t *mac = second ? h + 12 : h + 6;
    uint16_t type = second ? wire_get16(h) : wire_get16(h + 14);
    p->dir = kind == 4 ? CAPTURE_OUT : CAPTURE_IN;
    uint32_t index = second ? (uint32_t)wire_get16(h + 4) << 16 | wire_get16(h + 6)
                            : vlan_level(type, h + header, p->len - header);
    p->interface += CAPREAD_INTERFACES * index;
    return skip(p, header) && make_ether(p, scratch, type, addr_len == 6 ? mac : NULL);
}

/* Endace's record header, its extension headers, and two octets before the Ethernet header. */
static bool endace(struct capread_packet *p)
{
    enum { ERF_HEADER = 16, ERF_ETH = 2, ERF_COLOR_ETH = 11, ERF_DSM_ETH = 16, ERF_HASH_ETH = 20 };
    if (p->len < ERF_HEADER)
        return false;
    unsigned type = p->frame[8] & 0x7F;
    uint32_t wire_len = wire_get16(p->frame + 14);
    bool more = p->frame[8] & 0x80;
    if (type != ERF_ETH && type != ERF_COLOR_ETH && type != ERF_DSM_ETH && type != ERF_HASH_ETH)
        return false;
    skip(p, ERF_HEADER);
    while (more && p->len >= 8) {
        more = p->frame[0] & 0x80;
        skip(p, 8);
    }
    if (more || !skip(p, 2))
        return false;
    if (p->len > wire_len) /* records are padded to 8 octets */
        p->len = wire_len;
    p->wire_len = wire_len;
    return true;
}

bool capread_link_infiniband(uint16_t link_type, const uint8_t *data, uint32_t len)
{
    enum { ERF_TYPE_AT = 8, ERF_INFINIBAND = 21 };
    return link_type == LINK_INFINIBAND || (link_type == LINK_ERF && len > ERF_TYPE_AT &&
                                            (data[ERF_TYPE_AT] & 0x7F) == ERF_INFINIBAND);
}

bool capread_link(uint16_t link_type, const uint8_t *data, uint32_t len, uint32_t wire_len,
                  uint8_t *scratch, struct capread_packet *p)
{
    p->frame = data;
    p->len = len;
    /* Longer than any packet: a damaged length must leave room for the added headers. */
    wire_len = wire_len < PACKET_LEN_MAX ? wire_len : PACKET_LEN_MAX;
    p->wire_len = wire_len > len ? wire_len : len;
    p->no_ether = false;
    switch (link_type) {
    case CAPTURE_ETHERNET:
        return true;
    case LINK_NULL:
    case LINK_LOOP: /* an address family; the byte order and its number depend on the writer */
        return skip(p, 4) && raw_ip(p, scratch);
    case LINK_RAW:
    case LINK_RAW_BSD:
    case LINK_RAW_OPENBSD:
    case LINK_IPV4:
    case LINK_IPV6:
        return raw_ip(p, scratch);
    case LINK_SLL:
        return cooked(p, scratch, false);
    case LINK_SLL2:
        return cooked(p, scratch, true);
    case LINK_ERF:
        return endace(p);
    default:
        return false;
    }
}

/* The IPv4 header's checksum is right. */
static bool ipv4_right(const uint8_t *ip)
{
    uint32_t sum = 0;
    for (unsigned i = 0; i < WIRE_IPV4_LEN; i += 2)
        sum += wire_get16(ip + i);
    return sum % 0xFFFF == 0;
}

void capread_sliced(struct capread_packet *p)
{
    uint32_t off = WIRE_ETH_LEN;
    if (p->len < p->wire_len || p->len < off)
        return;
    uint16_t type = wire_get16(p->frame + 12);
    for (; is_vlan(type) && p->len >= off + 4; off += 4)
        type = wire_get16(p->frame + off + 2);
    bool v4 = type == WIRE_ETHERTYPE_IPV4;
    uint32_t header = v4 ? WIRE_IPV4_LEN : WIRE_IPV6_LEN;
    if ((!v4 && type != WIRE_ETHERTYPE_IPV6) || p->len < off + header + WIRE_UDP_LEN)
        return;
    const uint8_t *ip = p->frame + off, *udp = ip + header;
    uint32_t inside = v4 ? wire_get16(ip + 2) - header : wire_get16(ip + 4);
    bool v4_good = v4 && ip[0] == 0x45 && ip[9] == WIRE_PROTO_UDP && ipv4_right(ip);
    bool v6_good = !v4 && ip[0] >> 4 == 6 && ip[6] == WIRE_PROTO_UDP;
    if ((v4_good || v6_good) && wire_get16(udp + 2) == WIRE_UDP_PORT &&
        wire_get16(udp + 4) == inside && off + header + inside > p->len)
        p->wire_len = off + header + inside;
}
