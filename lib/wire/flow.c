/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Parsing a frame of the same flow as the one before.
 *
 * Most frames differ from the one before in few fields before the BTH: lengths, source port, IPv4's
 * identification and checksum. When all else is the same, octet by octet, a parse would give the
 * same result. The checksum is right if the differing words have the same sum (RFC 1624). For
 * packets in the middle of a message, the lengths and the BTH are the same as well, except for
 * acknowledge request and PSN, and no headers follow. Then there is nothing left to parse.
 */
#include <string.h>

#include "headers.h"
#include "parse.h"
#include "wire_csum.h"

#define IPV4_AT   WIRE_ETH_LEN
#define UDP_AT_V4 (WIRE_ETH_LEN + WIRE_IPV4_LEN)
#define UDP_AT_V6 (WIRE_ETH_LEN + WIRE_IPV6_LEN)
/* The octets compared: for the same flow, whole blocks up to within the BTH; for the same kind of
 * packet, all octets before the acknowledge request. */
#define HEAD_V4 48u
#define HEAD_V6 64u
#define ALL_V4  50u
#define ALL_V6  70u
_Static_assert(HEAD_V4 == UDP_AT_V4 + WIRE_UDP_LEN + 6 && HEAD_V6 == UDP_AT_V6 + WIRE_UDP_LEN + 2,
               "as below");
_Static_assert(ALL_V4 == UDP_AT_V4 + WIRE_UDP_LEN + 8 && ALL_V6 == UDP_AT_V6 + WIRE_UDP_LEN + 8 &&
                   ALL_V6 <= sizeof(((struct wire_flow *)0)->head),
               "room");

typedef uint64_t block __attribute__((vector_size(16)));
#define BLOCK sizeof(block)

/* Bits that may differ: ones in these places. */
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

/* The same without lengths and BTH. */
static const uint8_t varies_all_v4[ALL_V4] = {
    [IPV4_AT + 4] = 0xFF,                          /* identification */
    [IPV4_AT + 5] = 0xFF,   [IPV4_AT + 10] = 0xFF, /* checksum */
    [IPV4_AT + 11] = 0xFF,  [UDP_AT_V4] = 0xFF,    /* source port */
    [UDP_AT_V4 + 1] = 0xFF,
};

static const uint8_t varies_all_v6[ALL_V6] = {[UDP_AT_V6] = 0xFF, [UDP_AT_V6 + 1] = 0xFF};

/* The forbidden differences of the blocks at `at`, as bits. */
static inline block differ(const uint8_t *a, const uint8_t *b, const uint8_t *varies, size_t at)
{
    block x, y, v;
    memcpy(&x, a + at, BLOCK);
    memcpy(&y, b + at, BLOCK);
    memcpy(&v, varies + at, BLOCK);
    return (x ^ y) & ~v;
}

/* Inlined, so that `n`, three blocks at least, is a constant. */
__attribute__((always_inline)) static inline bool same_head(const uint8_t *a, const uint8_t *b,
                                                            const uint8_t *varies, size_t n)
{
    block d = differ(a, b, varies, 0) | differ(a, b, varies, BLOCK) |
              differ(a, b, varies, 2 * BLOCK) | differ(a, b, varies, n - BLOCK);
    if (n > 4 * BLOCK)
        d |= differ(a, b, varies, 3 * BLOCK);
    return (d[0] | d[1]) == 0;
}

/* The sum of the IPv4 header words that may differ, the checksum included. */
static uint32_t csum_of_varying(const uint8_t *ip)
{
    uint32_t sum = (uint32_t)wire_get16(ip + 2) + wire_get16(ip + 4) + wire_get16(ip + 10);
    sum = (sum >> 16) + (sum & 0xFFFF);
    return (sum >> 16) + (sum & 0xFFFF);
}

/* Octets from the BTH to the end of the iCRC. 0: another flow, or wrong lengths or a wrong
 * checksum; a full parse finds out. */
static size_t goes_on_v4(const struct wire_flow *flow, const uint8_t *f, size_t len, unsigned flags)
{
    const uint8_t *ip = f + IPV4_AT;
    if (len < HEAD_V4 || !same_head(f, flow->head, varies_v4, HEAD_V4) ||
        (!(flags & WIRE_P_IP_CSUM_OK) && csum_of_varying(ip) != flow->sum))
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

/* Does the frame differ from the flow's last one, described by `p`, only in acknowledge request and
 * PSN? */
static bool is_next(const struct wire_flow *flow, const uint8_t *f, size_t len, unsigned flags,
                    const struct wire_pkt *p)
{
    if (!flow->ip_version || !flow->bare || flow->flags != flags ||
        len < p->icrc_off + WIRE_ICRC_LEN)
        return false;
    if (flow->ip_version == 6)
        return same_head(f, flow->head, varies_all_v6, ALL_V6);
    return same_head(f, flow->head, varies_all_v4, ALL_V4) &&
           ((flags & WIRE_P_IP_CSUM_OK) || csum_of_varying(f + IPV4_AT) == flow->sum);
}

/* A packet like the last one, without headers after its BTH. */
static enum wire_verdict parse_next(const uint8_t *f, unsigned flags, struct wire_pkt *p)
{
    const uint8_t *bth = f + p->bth_off;
    if (p->ip_version == 4)
        p->ip_id = wire_get16(f + IPV4_AT + 4);
    p->sport = wire_get16(f + p->udp_off);
    p->ackreq = bth[8] >> 7;
    p->psn = wire_get32(bth + 8) & WIRE_PSN_MASK;
    return parse_icrc(f, flags, p);
}

static enum wire_verdict parse_same(const uint8_t *f, size_t len, size_t rest, unsigned flags,
                                    struct wire_pkt *p)
{
    memset(&p->opcode, 0, offsetof(struct wire_pkt, ip_off) - offsetof(struct wire_pkt, opcode));
    if (p->ip_version == 4)
        p->ip_id = wire_get16(f + IPV4_AT + 4);
    p->sport = wire_get16(f + p->udp_off);
    p->payload_off = 0;
    p->payload_len = 0;
    return parse_transport(f, len, rest, flags, p);
}

static void remember_flow(struct wire_flow *flow, const uint8_t *f, unsigned flags,
                          const struct wire_pkt *p)
{
    bool plain = p->ip_off == WIRE_ETH_LEN && p->ethertype != WIRE_ETHERTYPE_V1 && !p->udp_csum;
    if (!plain)
        return;
    flow->bare = p->payload_off == p->bth_off + WIRE_BTH_LEN;
    flow->ip_version = p->ip_version;
    flow->flags = flags;
    if (p->ip_version == 4) { /* two calls of known lengths: a few moves each */
        memcpy(flow->head, f, ALL_V4);
        flow->sum = csum_of_varying(f + IPV4_AT);
    } else {
        memcpy(flow->head, f, ALL_V6);
    }
}

enum wire_verdict wire_parse_flow(const uint8_t *frame, size_t len, unsigned flags,
                                  struct wire_flow *flow, struct wire_pkt *out)
{
    enum wire_verdict v;
    size_t rest = 0;
    flow->next = is_next(flow, frame, len, flags, out);
    if (flow->next) {
        flow->same = true;
        return parse_next(frame, flags, out);
    }
    if (flow->ip_version && flow->flags == flags)
        rest = flow->ip_version == 4 ? goes_on_v4(flow, frame, len, flags)
                                     : goes_on_v6(flow, frame, len);
    flow->same = rest > 0;
    flow->bare = false;
    if (flow->same) {
        v = parse_same(frame, len, rest, flags, out);
    } else {
        flow->ip_version = 0; /* *out, which has its fields, is overwritten now */
        v = wire_parse(frame, len, flags, out);
    }
    if (v == WIRE_OK)
        remember_flow(flow, frame, flags, out);
    return v;
}
