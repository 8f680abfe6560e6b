/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See udp_frame.h. Offsets are those of the headers without options and tags.
 */
#include "udp_frame.h"

#include <string.h>

#include "udp_icrc.h"
#include "wire.h"
#include "wire_bytes.h"
#include "wire_csum.h"

#define IP     WIRE_ETH_LEN
#define DF     0x40u /* bit in the first octet of flags and offset */
#define LEAST  (WIRE_BTH_LEN + WIRE_ICRC_LEN)
#define UDP_V4 (IP + WIRE_IPV4_LEN)
#define UDP_V6 (IP + WIRE_IPV6_LEN)
/* from an IPv4 field of two octets to the end of the UDP header */
#define AFTER_ID     (14u + WIRE_UDP_LEN)
#define AFTER_FLAGS  (12u + WIRE_UDP_LEN)
#define AFTER_SPORT  6u
#define AFTER_SOURCE (4u + WIRE_UDP_LEN) /* the source address, of four octets */

static const uint8_t peer_mac[6] = IO_PEER_MAC;

static bool is_v4(const struct io_addr *a)
{
    static const uint8_t mapped[12] = {[10] = 0xFF, [11] = 0xFF};
    return memcmp(a->b, mapped, sizeof(mapped)) == 0;
}

void udp_head_init(struct udp_head *h, const uint8_t mac[6], const struct io_addr *from,
                   const struct io_addr *to, uint16_t sport)
{
    struct wire_addr dip;
    uint8_t *f = h->octets, *ip = f + IP, *udp;
    bool v4 = is_v4(to);
    memset(h, 0, sizeof(*h));
    memcpy(dip.b, to->b, sizeof(dip.b));
    if (wire_addr_is_multicast(&dip))
        wire_mcast_mac(&dip, f);
    else
        memcpy(f, mac, 6);
    memcpy(f + 6, peer_mac, 6);
    wire_put16(f + 12, v4 ? WIRE_ETHERTYPE_IPV4 : WIRE_ETHERTYPE_IPV6);
    if (v4) {
        ip[0] = 0x45;
        ip[6] = DF;
        ip[9] = WIRE_PROTO_UDP;
        memcpy(ip + 12, from->b + 12, 4);
        memcpy(ip + 16, to->b + 12, 4);
    } else {
        ip[0] = 0x60;
        ip[6] = WIRE_PROTO_UDP;
        memcpy(ip + 8, from->b, 16);
        memcpy(ip + 24, to->b, 16);
    }
    udp = f + (v4 ? UDP_V4 : UDP_V6);
    wire_put16(udp, sport);
    wire_put16(udp + 2, WIRE_UDP_PORT);
    h->len = v4 ? UDP_HDR_V4 : UDP_HDR_V6;
}

static void put_csum(uint8_t *ip)
{
    wire_put16(ip + 10, 0);
    wire_csum_put(ip + 10, wire_csum_add(0, ip, WIRE_IPV4_LEN));
}

uint8_t *udp_frame_put(uint8_t *datagram, uint32_t len, const struct udp_head *h, uint8_t tclass,
                       uint8_t ttl)
{
    uint8_t *f = datagram - h->len, *ip = f + IP;
    memcpy(f, h->octets, h->len);
    wire_put16(datagram - 4, (uint16_t)(len + WIRE_UDP_LEN));
    if (h->len == UDP_HDR_V4) {
        ip[1] = tclass;
        wire_put16(ip + 2, (uint16_t)(len + WIRE_UDP_LEN + WIRE_IPV4_LEN));
        ip[8] = ttl;
        put_csum(ip);
    } else {
        ip[0] = (uint8_t)(0x60 | tclass >> 4);
        ip[1] = (uint8_t)(tclass << 4);
        wire_put16(ip + 4, (uint16_t)(len + WIRE_UDP_LEN));
        ip[7] = ttl;
    }
    return f;
}

static void set_id(uint8_t *ip, uint16_t id, bool df)
{
    wire_put16(ip + 4, id);
    ip[6] = df ? DF : 0;
    put_csum(ip);
}

struct udp_verdict udp_frame_check(uint8_t *frame, uint32_t len, uint16_t guess)
{
    bool v4 = frame[12] == WIRE_ETHERTYPE_IPV4 >> 8;
    uint8_t hdr = v4 ? UDP_HDR_V4 : UDP_HDR_V6;
    struct udp_verdict v = {.df = true};
    uint8_t *ip = frame + IP, d0, d1;
    if (len < hdr + LEAST)
        return v;
    if (v4 && guess)
        wire_put16(ip + 4, guess);
    uint32_t rest = len - hdr - WIRE_ICRC_LEN;
    uint32_t diff = wire_icrc(frame, len, IP, hdr) ^ wire_get32le(frame + len - WIRE_ICRC_LEN);
    if (diff == 0) {
        v.good = true;
        v.id = guess;
        if (v4 && guess)
            put_csum(ip);
        return v;
    }
    if (!v4)
        return v;
    for (unsigned clear = 0; clear < 2; clear++) {
        uint32_t flag = clear ? udp_icrc_delta(DF, 0, rest + AFTER_FLAGS) : 0;
        if (!udp_icrc_solve(diff ^ flag, rest + AFTER_ID, &d0, &d1))
            continue;
        v = (struct udp_verdict){
            .good = true, .id = (uint16_t)(guess ^ (d0 << 8 | d1)), .df = !clear};
        set_id(ip, v.id, v.df);
        return v;
    }
    if (guess)
        set_id(ip, 0, true);
    return v;
}

void udp_frame_forget(uint8_t *frame)
{
    set_id(frame + IP, 0, true);
}

bool udp_frame_other_source(const uint8_t *frame, uint32_t len, struct io_addr *source)
{
    if (frame[12] != WIRE_ETHERTYPE_IPV4 >> 8 || len < UDP_HDR_V4 + LEAST)
        return false;
    uint32_t rest = len - UDP_HDR_V4 - WIRE_ICRC_LEN + AFTER_SOURCE;
    uint32_t diff =
        wire_icrc(frame, len, IP, UDP_HDR_V4) ^ wire_get32le(frame + len - WIRE_ICRC_LEN);
    uint32_t d = udp_icrc_solve_four(diff, rest);
    memset(source->b, 0, 10);
    memset(source->b + 10, 0xFF, 2);
    for (unsigned i = 0; i < 4; i++)
        source->b[12 + i] = frame[IP + 12 + i] ^ (uint8_t)(d >> (8 * i));
    return true;
}

static bool parse_v4(const uint8_t *ip, uint32_t have, struct udp_out *o, uint32_t *udp_len)
{
    uint32_t total = wire_get16(ip + 2);
    if (ip[0] != 0x45 || ip[9] != WIRE_PROTO_UDP || total > have || (wire_get16(ip + 6) & 0x3FFF))
        return false;
    o->v4 = true;
    o->tclass = ip[1];
    o->ttl = ip[8];
    o->id = wire_get16(ip + 4);
    memset(o->from.b, 0, 10);
    memset(o->from.b + 10, 0xFF, 2);
    o->to = o->from;
    memcpy(o->from.b + 12, ip + 12, 4);
    memcpy(o->to.b + 12, ip + 16, 4);
    *udp_len = total - WIRE_IPV4_LEN;
    return true;
}

static bool parse_v6(const uint8_t *ip, uint32_t have, struct udp_out *o, uint32_t *udp_len)
{
    uint32_t payload = wire_get16(ip + 4);
    if (ip[0] >> 4 != 6 || ip[6] != WIRE_PROTO_UDP || payload > have - WIRE_IPV6_LEN)
        return false;
    o->v4 = false;
    o->tclass = (uint8_t)(wire_get16(ip) >> 4);
    o->ttl = ip[7];
    o->id = 0;
    memcpy(o->from.b, ip + 8, 16);
    memcpy(o->to.b, ip + 24, 16);
    *udp_len = payload;
    return true;
}

bool udp_frame_parse(const uint8_t *frame, uint32_t len, struct udp_out *o)
{
    uint32_t udp_len;
    if (len < UDP_HDR_V4 + LEAST)
        return false;
    uint16_t type = wire_get16(frame + 12);
    if (type == WIRE_ETHERTYPE_IPV6 ? len < UDP_HDR_V6 + LEAST : type != WIRE_ETHERTYPE_IPV4)
        return false;
    bool ok = type == WIRE_ETHERTYPE_IPV4 ? parse_v4(frame + IP, len - IP, o, &udp_len)
                                          : parse_v6(frame + IP, len - IP, o, &udp_len);
    if (!ok || udp_len < WIRE_UDP_LEN + LEAST)
        return false;
    o->off = o->v4 ? UDP_HDR_V4 : UDP_HDR_V6;
    const uint8_t *udp = frame + o->off - WIRE_UDP_LEN;
    o->sport = wire_get16(udp);
    o->len = udp_len - WIRE_UDP_LEN;
    return wire_get16(udp + 2) == WIRE_UDP_PORT && wire_get16(udp + 4) == udp_len;
}

void udp_frame_reseal(uint8_t *datagram, const struct udp_out *o, uint16_t id)
{
    uint8_t *icrc = datagram + o->len - WIRE_ICRC_LEN;
    uint32_t rest = o->len - WIRE_ICRC_LEN, diff = 0;
    uint16_t sport = o->sport ^ WIRE_UDP_PORT, number = o->id ^ id;
    if (sport)
        diff ^= udp_icrc_delta((uint8_t)(sport >> 8), (uint8_t)sport, rest + AFTER_SPORT);
    if (o->v4 && number)
        diff ^= udp_icrc_delta((uint8_t)(number >> 8), (uint8_t)number, rest + AFTER_ID);
    if (diff)
        wire_put32le(icrc, wire_get32le(icrc) ^ diff);
}
