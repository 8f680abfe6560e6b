/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Parsing a frame of the same flow as the one before.
 *
 * Most frames differ from the one before in little of what comes before the BTH: lengths, source
 * port, IPv4's identification and checksum. When all else is the same, octet by octet, so is what
 * a parse would say of it. The checksum is right if what differs sums up to the same (RFC 1624).
 */
#include <string.h>

#include "headers.h"
#include "parse.h"
#include "wire_csum.h"

#define IPV4_AT   WIRE_ETH_LEN
#define UDP_AT_V4 (WIRE_ETH_LEN + WIRE_IPV4_LEN)
#define UDP_AT_V6 (WIRE_ETH_LEN + WIRE_IPV6_LEN)
/* What is compared: whole words, up to within the BTH. */
#define HEAD_V4 48u
#define HEAD_V6 64u
_Static_assert(HEAD_V4 == UDP_AT_V4 + WIRE_UDP_LEN + 6 && HEAD_V6 == UDP_AT_V6 + WIRE_UDP_LEN + 2,
               "as below");
_Static_assert(HEAD_V6 <= sizeof(((struct wire_flow *)0)->head), "room");

/* What may differ: ones in these places. */
static const uint8_t varies_v4[HEAD_V4] = {
    [IPV4_AT + 2] = 0xFF, /* total length, identification */
    [IPV4_AT + 3] = 0xFF,   [IPV4_AT + 4] = 0xFF,   [IPV4_AT + 5] = 0xFF,
    [IPV4_AT + 10] = 0xFF,                          /* checksum */
    [IPV4_AT + 11] = 0xFF,  [UDP_AT_V4] = 0xFF,     /* source port */
    [UDP_AT_V4 + 1] = 0xFF, [UDP_AT_V4 + 4] = 0xFF, /* length */
    [UDP_AT_V4 + 5] = 0xFF, [HEAD_V4 - 6] = 0xFF,   /* BTH */
    [HEAD_V4 - 5] = 0xFF,   [HEAD_V4 - 4] = 0xFF,   [HEAD_V4 - 3] = 0xFF,
    [HEAD_V4 - 2] = 0xFF,   [HEAD_V4 - 1] = 0xFF,
};

static const uint8_t varies_v6[HEAD_V6] = {
    [IPV4_AT + 4] = 0xFF,                           /* payload length */
    [IPV4_AT + 5] = 0xFF,   [UDP_AT_V6] = 0xFF,     /* source port */
    [UDP_AT_V6 + 1] = 0xFF, [UDP_AT_V6 + 4] = 0xFF, /* length */
    [UDP_AT_V6 + 5] = 0xFF, [HEAD_V6 - 2] = 0xFF,   /* BTH */
    [HEAD_V6 - 1] = 0xFF,
};

/* Inlined, so that `n` is a constant. */
__attribute__((always_inline)) static inline bool same_head(const uint8_t *a, const uint8_t *b,
                                                            const uint8_t *varies, size_t n)
{
    uint64_t differ = 0;
    for (size_t i = 0; i < n; i += 8) {
        uint64_t x, y, v;
        memcpy(&x, a + i, 8);
        memcpy(&y, b + i, 8);
        memcpy(&v, varies + i, 8);
        differ |= (x ^ y) & ~v;
    }
    return differ == 0;
}

/* The sum of what an IPv4 checksum covers and may differ, and of the checksum itself. */
static uint16_t csum_of_varying(const uint8_t *ip)
{
    uint16_t sum = wire_csum_add(0, ip + 2, 4);
    return wire_csum_add(sum, ip + 10, 2);
}

/* Octets from the BTH to the end of the iCRC; 0 when it is another flow, or something is wrong with
 * the lengths or the checksum: a whole parse tells what. */
static size_t goes_on_v4(const struct wire_flow *flow, const uint8_t *f, size_t len, unsigned flags)
{
    const uint8_t *ip = f + IPV4_AT;
    if (len < HEAD_V4 || !same_head(f, flow->head, varies_v4, HEAD_V4) ||
        (!(flags & WIRE_P_IP_CSUM_OK) &&
         csum_of_varying(ip) != csum_of_varying(flow->head + IPV4_AT)))
        return 0;
    size_t total = wire_get16(ip + 2);
    if (total < WIRE_IPV4_LEN + PARSE_UDP_MIN || total > len - IPV4_AT ||
        wire_get16(f + UDP_AT_V4 + 4) != total - WIRE_IPV4_LEN)
        return 0;
    return total - WIRE_IPV4_LEN - WIRE_UDP_LEN;
}

static size_t goes_on_v6(const struct wire_flow *flow, const uint8_t *f, size_t len)
{
    if (len < HEAD_V6 || !same_head(f, flow->head, varies_v6, HEAD_V6))
        return 0;
    size_t payload = wire_get16(f + IPV4_AT + 4);
    if (payload < PARSE_UDP_MIN || payload > len - UDP_AT_V6 ||
        wire_get16(f + UDP_AT_V6 + 4) != payload)
        return 0;
    return payload - WIRE_UDP_LEN;
}

static void remember(struct wire_flow *flow, const uint8_t *f, unsigned flags,
                     const struct wire_pkt *p)
{
    bool plain = p->ip_off == WIRE_ETH_LEN && p->ethertype != WIRE_ETHERTYPE_V1 && !p->udp_csum;
    flow->ip_version = plain ? p->ip_version : 0;
    if (!plain)
        return;
    memcpy(flow->head, f, p->ip_version == 4 ? HEAD_V4 : HEAD_V6);
    flow->flags = flags;
    flow->pkt = *p;
}

enum wire_verdict wire_parse_flow(const uint8_t *frame, size_t len, unsigned flags,
                                  struct wire_flow *flow, struct wire_pkt *out)
{
    size_t rest = 0;
    if (flow->ip_version && flow->flags == flags)
        rest = flow->ip_version == 4 ? goes_on_v4(flow, frame, len, flags)
                                     : goes_on_v6(flow, frame, len);
    flow->same = rest > 0;
    if (!flow->same) {
        enum wire_verdict v = wire_parse(frame, len, flags, out);
        if (v == WIRE_OK)
            remember(flow, frame, flags, out);
        return v;
    }
    const struct wire_pkt *p = &flow->pkt;
    memcpy(out, p, offsetof(struct wire_pkt, opcode));
    memset(&out->opcode, 0, sizeof(*out) - offsetof(struct wire_pkt, opcode));
    if (p->ip_version == 4)
        out->ip_id = wire_get16(frame + IPV4_AT + 4);
    out->ip_off = p->ip_off;
    out->udp_off = p->udp_off;
    out->bth_off = p->bth_off;
    out->sport = wire_get16(frame + p->udp_off);
    return parse_transport(frame, len, rest, flags, out);
}
