/* SPDX-License-Identifier: BSD-3-Clause
 *
 * RoCE inside carriers: the copies that a mirroring switch sends to a collector (ERSPAN), overlay
 * networks (VXLAN, Geneve, GRE), carriers' labels (MPLS, PPPoE), several VLAN tags. Packets without
 * RoCE are not changed.
 */
#include "capread_tunnel.h"

#include <string.h>

#include "capread_priv.h"
#include "wire.h"
#include "wire_bytes.h"

enum {
    TYPE_QINQ_OLD = 0x9100,
    TYPE_QINQ_OLDER = 0x9200,
    TYPE_MPLS = 0x8847,
    TYPE_MPLS_MULTI = 0x8848,
    TYPE_PPPOE = 0x8864,
    TYPE_BRIDGED = 0x6558,
    TYPE_ERSPAN = 0x88BE, /* types I and II */
    TYPE_ERSPAN_3 = 0x22EB,
    TYPE_SPECTRUM = 0x8949, /* of Spectrum switches' mirrors */
};
enum { PROTO_IPV4 = 4, PROTO_IPV6 = 41, PROTO_GRE = 47 };
enum { EXT_HOP = 0, EXT_ROUTING = 43, EXT_DESTINATION = 60 }; /* of IPv6, as SRv6 uses them */
enum { PORT_VXLAN = 4789, PORT_VXLAN_GPE = 4790, PORT_VXLAN_OLD = 8472, PORT_GENEVE = 6081 };
enum { GPE_FLAGS = 0x0C, GPE_IPV4 = 1, GPE_IPV6 = 2, GPE_ETHER = 3 };
enum { PPP_IPV4 = 0x0021, PPP_IPV6 = 0x0057 };

#define SPECTRUM_LEN 22u
#define LEVELS       6u /* nested carriers */

/* The current place in the carriers. */
struct cursor {
    const uint8_t *at; /* of the EtherType `type` */
    uint32_t left;
    uint16_t type;
    const uint8_t *mac; /* 12 octets: of the innermost Ethernet header */
    const uint8_t *tag; /* the innermost VLAN tag there, or NULL */
    bool plain;         /* an untunneled frame starts at `mac` */
    bool bare;          /* IP without an Ethernet header of its own */
    uint32_t key;       /* distinguishes carriers of the same kind */
    enum capread_carrier carrier;
};

const char *capread_carrier_name(enum capread_carrier c)
{
    static const char *const names[CAPREAD_CARRIERS] = {"plain",  "ERSPAN", "VXLAN",
                                                        "Geneve", "GRE",    "IP in IP",
                                                        "MPLS",   "PPPoE",  "several VLAN tags"};
    return c < CAPREAD_CARRIERS ? names[c] : "?";
}

static uint32_t get24(const uint8_t *p)
{
    return (uint32_t)p[0] << 16 | wire_get16(p + 1);
}

/* Step over `n` octets. */
static bool skip(struct cursor *c, uint32_t n)
{
    if (c->left < n)
        return false;
    c->at += n;
    c->left -= n;
    return true;
}

static void carried_by(struct cursor *c, enum capread_carrier carrier, uint32_t key)
{
    if (!c->carrier)
        c->carrier = carrier;
    c->key = c->key * 0x9E3779B1u + key;
}

static bool is_tag(uint16_t type)
{
    return type == WIRE_ETHERTYPE_VLAN || type == WIRE_ETHERTYPE_SVLAN || type == TYPE_QINQ_OLD ||
           type == TYPE_QINQ_OLDER;
}

/* An Ethernet header and the tags after it. */
static bool enter_ether(struct cursor *c)
{
    const uint8_t *mac = c->at;
    unsigned tags = 0;
    uint16_t outer = 0, before = 0;
    uint32_t vid = 0;
    if (!skip(c, WIRE_ETH_LEN))
        return false;
    c->mac = mac;
    c->bare = false;
    c->tag = NULL;
    c->type = wire_get16(mac + 12);
    for (; is_tag(c->type) && c->left >= WIRE_VLAN_LEN; tags++) {
        vid = tags ? vid : wire_get16(c->at) & 0xFFFu;
        outer = tags ? outer : c->type;
        before = c->type;
        c->tag = c->at;
        c->type = wire_get16(c->at + 2);
        skip(c, WIRE_VLAN_LEN);
    }
    c->plain = !tags || (before == WIRE_ETHERTYPE_VLAN &&
                         (tags == 1 || (tags == 2 && outer == WIRE_ETHERTYPE_SVLAN)));
    if (!c->plain)
        carried_by(c, CAPREAD_TAGS, vid);
    return true;
}

/* Bare IP. */
static bool enter_ip(struct cursor *c, uint16_t type)
{
    c->type = type;
    c->plain = false;
    c->bare = true;
    c->tag = NULL; /* not its own */
    return type == WIRE_ETHERTYPE_IPV4 || type == WIRE_ETHERTYPE_IPV6;
}

static bool known_type(const uint8_t *ether)
{
    uint16_t type = wire_get16(ether + 12);
    return is_tag(type) || type == WIRE_ETHERTYPE_IPV4 || type == WIRE_ETHERTYPE_IPV6 ||
           type == WIRE_ETHERTYPE_V1;
}

/* IP follows the last label, or an Ethernet frame with or without a control word of 0. */
static bool enter_mpls(struct cursor *c)
{
    bool last = false;
    carried_by(c, CAPREAD_MPLS, 0);
    while (!last) {
        if (c->left < 4)
            return false;
        last = c->at[2] & 1;
        skip(c, 4);
    }
    unsigned version = c->left ? c->at[0] >> 4 : 0;
    if (version == 4 || version == 6)
        return enter_ip(c, version == 4 ? WIRE_ETHERTYPE_IPV4 : WIRE_ETHERTYPE_IPV6);
    if (c->left >= WIRE_ETH_LEN + 4 && known_type(c->at + 4))
        skip(c, 4);
    return enter_ether(c);
}

static bool enter_pppoe(struct cursor *c)
{
    if (c->left < 8)
        return false;
    uint16_t ppp = wire_get16(c->at + 6);
    carried_by(c, CAPREAD_PPPOE, wire_get16(c->at + 2));
    skip(c, 8);
    return enter_ip(c, ppp == PPP_IPV4   ? WIRE_ETHERTYPE_IPV4
                       : ppp == PPP_IPV6 ? WIRE_ETHERTYPE_IPV6
                                         : 0);
}

/* `from` names the mirroring device. Type I has no header of its own, and no sequence number. */
static bool enter_erspan(struct cursor *c, bool third, bool sequence, uint32_t from)
{
    uint32_t header = third ? 12 : sequence ? 8 : 0;
    if (c->left < header)
        return false;
    uint32_t session = header ? wire_get16(c->at + 2) & 0x3FFu : 0;
    if (third && c->at[11] & 1)
        header += 8; /* a header of the platform's own */
    carried_by(c, CAPREAD_ERSPAN, from * 0x9E3779B1u + session);
    return skip(c, header) && enter_ether(c);
}

/* The header's fields are the manufacturer's secret; its length isn't. */
static bool enter_spectrum(struct cursor *c, uint32_t from)
{
    carried_by(c, CAPREAD_ERSPAN, from);
    return c->left >= SPECTRUM_LEN + WIRE_ETH_LEN && known_type(c->at + SPECTRUM_LEN) &&
           skip(c, SPECTRUM_LEN) && enter_ether(c);
}

static bool enter_gre(struct cursor *c, uint32_t from)
{
    if (c->left < 4 || c->at[1] & 7u)
        return false;
    unsigned flags = c->at[0];
    uint16_t type = wire_get16(c->at + 2);
    bool sum = flags & 0x80, key = flags & 0x20, sequence = flags & 0x10;
    if (flags & 0x40 || !skip(c, 4 + 4u * (sum + key + sequence)))
        return false;
    if (type == TYPE_ERSPAN || type == TYPE_ERSPAN_3)
        return enter_erspan(c, type == TYPE_ERSPAN_3, sequence, from);
    if (type == TYPE_SPECTRUM)
        return enter_spectrum(c, from);
    carried_by(c, CAPREAD_GRE, 0);
    return type == TYPE_BRIDGED ? enter_ether(c) : enter_ip(c, type);
}

static bool enter_geneve(struct cursor *c)
{
    if (c->left < 8)
        return false;
    uint16_t type = wire_get16(c->at + 2);
    carried_by(c, CAPREAD_GENEVE, get24(c->at + 4));
    if (!skip(c, 8 + 4u * (c->at[0] & 0x3Fu)))
        return false;
    return type == TYPE_BRIDGED ? enter_ether(c) : enter_ip(c, type);
}

static bool enter_vxlan(struct cursor *c)
{
    if (c->left < 8 || !(c->at[0] & 8))
        return false;
    carried_by(c, CAPREAD_VXLAN, get24(c->at + 4));
    return skip(c, 8) && enter_ether(c);
}

static bool enter_gpe(struct cursor *c)
{
    if (c->left < 8 || (c->at[0] & GPE_FLAGS) != GPE_FLAGS)
        return false;
    uint8_t next = c->at[3];
    carried_by(c, CAPREAD_VXLAN, get24(c->at + 4));
    skip(c, 8);
    if (next == GPE_ETHER)
        return enter_ether(c);
    return enter_ip(c, next == GPE_IPV4   ? WIRE_ETHERTYPE_IPV4
                       : next == GPE_IPV6 ? WIRE_ETHERTYPE_IPV6
                                          : 0);
}

/* True: another packet is inside. *roce: this is RoCE; the cursor then stays. */
static bool enter_udp(struct cursor *c, uint32_t header, bool *roce)
{
    if (c->left < header + 4)
        return false;
    uint16_t port = wire_get16(c->at + header + 2);
    *roce = port == WIRE_UDP_PORT;
    if (*roce || (port != PORT_VXLAN && port != PORT_VXLAN_OLD && port != PORT_VXLAN_GPE &&
                  port != PORT_GENEVE))
        return false;
    if (!skip(c, header + WIRE_UDP_LEN))
        return false;
    return port == PORT_GENEVE      ? enter_geneve(c)
           : port == PORT_VXLAN_GPE ? enter_gpe(c)
                                    : enter_vxlan(c);
}

/* The extension headers after an IPv6 header: their length, and the protocol after them. */
static uint32_t extensions(const struct cursor *c, uint8_t *proto)
{
    uint32_t n = 0;
    while (*proto == EXT_HOP || *proto == EXT_ROUTING || *proto == EXT_DESTINATION) {
        if (c->left < WIRE_IPV6_LEN + n + 2)
            break;
        const uint8_t *ext = c->at + WIRE_IPV6_LEN + n;
        *proto = ext[0];
        n += 8u * (ext[1] + 1u);
    }
    return n;
}

static bool inside_ip(struct cursor *c, bool *roce)
{
    bool v6 = c->type == WIRE_ETHERTYPE_IPV6;
    if (c->left < (v6 ? WIRE_IPV6_LEN : WIRE_IPV4_LEN))
        return false;
    uint32_t header = v6 ? WIRE_IPV6_LEN : (c->at[0] & 15u) * 4u;
    uint8_t proto = v6 ? c->at[6] : c->at[9];
    header += v6 ? extensions(c, &proto) : 0;
    uint32_t from = v6 ? get24(c->at + 21) : get24(c->at + 13);
    if (!v6 && (header < WIRE_IPV4_LEN || wire_get16(c->at + 6) & 0x1FFFu))
        return false;
    if (proto == WIRE_PROTO_UDP)
        return enter_udp(c, header, roce);
    if (proto != PROTO_GRE && proto != PROTO_IPV4 && proto != PROTO_IPV6)
        return false;
    if (!skip(c, header))
        return false;
    if (proto == PROTO_GRE)
        return enter_gre(c, from);
    carried_by(c, CAPREAD_IPIP, 0);
    return enter_ip(c, proto == PROTO_IPV4 ? WIRE_ETHERTYPE_IPV4 : WIRE_ETHERTYPE_IPV6);
}

static bool enter(struct cursor *c, bool *roce)
{
    switch (c->type) {
    case WIRE_ETHERTYPE_IPV4:
    case WIRE_ETHERTYPE_IPV6:
        return inside_ip(c, roce);
    case WIRE_ETHERTYPE_V1:
        *roce = true;
        return false;
    case TYPE_MPLS:
    case TYPE_MPLS_MULTI:
        return enter_mpls(c);
    case TYPE_PPPOE:
        return enter_pppoe(c);
    default:
        return false;
    }
}

/* Rebuild the frame: addresses, the innermost tag, and the rest from the cursor on. */
static void rebuild(const struct cursor *c, uint8_t *scratch, struct capread_packet *p)
{
    uint8_t head[WIRE_ETH_LEN + WIRE_VLAN_LEN];
    uint32_t n = 12;
    memcpy(head, c->mac, 12);
    if (c->tag) {
        head[n] = WIRE_ETHERTYPE_VLAN >> 8;
        head[n + 1] = WIRE_ETHERTYPE_VLAN & 0xFF;
        memcpy(head + n + 2, c->tag, 2);
        n += WIRE_VLAN_LEN;
    }
    head[n] = (uint8_t)(c->type >> 8);
    head[n + 1] = (uint8_t)c->type;
    n += 2;
    memmove(scratch + n, c->at, c->left);
    memcpy(scratch, head, n);
    p->wire_len = p->wire_len - p->len + c->left + n;
    p->frame = scratch;
    p->len = c->left + n;
}

enum capread_carrier capread_tunnel(uint8_t *scratch, struct capread_packet *p)
{
    struct cursor c = {.at = p->frame, .left = p->len};
    bool roce = false;
    if (!enter_ether(&c))
        return CAPREAD_PLAIN;
    for (unsigned n = 0; n < LEVELS && enter(&c, &roce); n++)
        ;
    if (!roce || !c.carrier)
        return CAPREAD_PLAIN;
    if (c.plain) {
        uint32_t off = (uint32_t)(c.mac - p->frame);
        p->frame += off;
        p->len -= off;
        p->wire_len -= off;
        p->no_ether = false;
    } else {
        rebuild(&c, scratch, p);
        p->no_ether = p->no_ether || c.bare;
    }
    p->interface += CAPREAD_INTERFACES * (1 + c.key % (CAPREAD_INTERFACES - 1));
    return c.carrier;
}
