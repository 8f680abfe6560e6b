/* SPDX-License-Identifier: BSD-3-Clause
 *
 * For the tests of lib/net: a port, and the frames that a neighbour sends it.
 */
#ifndef URNIC_TESTS_NET_RIG_H
#define URNIC_TESTS_NET_RIG_H

#include <string.h>

#include "net_port.h"
#include "unit.h"
#include "wire_bytes.h"
#include "wire_csum.h"

static const uint8_t our_mac[6] = {0x02, 0, 0, 0, 0, 0x01};
static const uint8_t peer_mac[6] = {0x02, 0, 0, 0, 0, 0x02};
static const uint8_t all_mac[6] = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF};

static inline struct wire_addr addr(const char *s)
{
    struct wire_addr a;
    ck_assert_msg(wire_addr_parse(s, &a) == 0, "%s", s);
    return a;
}

/* A port at 10.0.0.1/24 and 2001:db8::1/64 that has sent its announcements. */
static inline struct net_port *rig_port(uint16_t vlan)
{
    struct net_config c = {.vlan = vlan, .neighbours = 16};
    uint8_t buf[NET_TX_MAX];
    memcpy(c.mac, our_mac, 6);
    struct net_port *p = net_port_new(&c, 0);
    ck_assert_ptr_nonnull(p);
    struct wire_addr a = addr("10.0.0.1");
    ck_assert_int_eq(net_addr_add(p, &a, 24, 0), 0);
    a = addr("2001:db8::1");
    ck_assert_int_eq(net_addr_add(p, &a, 64, 0), 0);
    for (uint64_t now = 0; now != UINT64_MAX; now = net_deadline(p)) {
        net_expire(p, now);
        while (net_tx(p, buf, sizeof(buf), now))
            ;
    }
    memset(p->counters, 0, sizeof(p->counters));
    return p;
}

static inline size_t put_ether(uint8_t *f, const uint8_t *dmac, const uint8_t *smac, int vid,
                               unsigned type)
{
    size_t n = 12;
    memcpy(f, dmac, 6);
    memcpy(f + 6, smac, 6);
    if (vid >= 0) {
        wire_put16(f + n, 0x8100);
        wire_put16(f + n + 2, (uint16_t)vid);
        n += 4;
    }
    wire_put16(f + n, (uint16_t)type);
    return n + 2;
}

static inline size_t make_arp(uint8_t *f, const uint8_t *dmac, int vid, unsigned op,
                              const char *from, const uint8_t *from_mac, const char *to)
{
    size_t n = put_ether(f, dmac, from_mac, vid, 0x0806);
    uint8_t *a = f + n;
    memcpy(a, (const uint8_t[]){0, 1, 8, 0, 6, 4, 0, (uint8_t)op}, 8);
    memcpy(a + 8, from_mac, 6);
    memcpy(a + 14, addr(from).b + 12, 4);
    memset(a + 18, 0, 6);
    memcpy(a + 24, addr(to).b + 12, 4);
    return n + 28;
}

static inline size_t make_echo(uint8_t *f, const uint8_t *dmac, const char *from, const char *to,
                               unsigned payload)
{
    size_t n = put_ether(f, dmac, peer_mac, -1, 0x0800);
    uint8_t *ip = f + n;
    memset(ip, 0, 20);
    ip[0] = 0x45;
    wire_put16(ip + 2, (uint16_t)(28 + payload));
    ip[8] = 3;
    ip[9] = 1;
    memcpy(ip + 12, addr(from).b + 12, 4);
    memcpy(ip + 16, addr(to).b + 12, 4);
    wire_csum_put(ip + 10, wire_csum_add(0, ip, 20));
    uint8_t *e = ip + 20;
    memcpy(e, (const uint8_t[]){8, 0, 0, 0, 0x12, 0x34, 0, 7}, 8);
    for (unsigned i = 0; i < payload; i++)
        e[8 + i] = (uint8_t)(i * 7);
    wire_csum_put(e + 2, wire_csum_add(0, e, 8 + payload));
    return n + 28 + payload;
}

/* Make both checksums of an echo right for the total length that it has. */
static inline void mend_v4(uint8_t *ip)
{
    size_t total = wire_get16(ip + 2);
    wire_put16(ip + 10, 0);
    wire_csum_put(ip + 10, wire_csum_add(0, ip, 20));
    wire_put16(ip + 22, 0);
    if (total >= 24)
        wire_csum_put(ip + 22, wire_csum_add(0, ip + 20, total - 20));
}

/* An ICMPv6 packet around `body` (type first; the checksum is filled in). */
static inline size_t make_icmp6(uint8_t *f, const uint8_t *dmac, const char *from, const char *to,
                                uint8_t hops, const uint8_t *body, size_t len)
{
    size_t n = put_ether(f, dmac, peer_mac, -1, 0x86DD);
    uint8_t *ip = f + n;
    memset(ip, 0, 40);
    ip[0] = 0x60;
    wire_put16(ip + 4, (uint16_t)len);
    ip[6] = 58;
    ip[7] = hops;
    memcpy(ip + 8, addr(from).b, 16);
    memcpy(ip + 24, addr(to).b, 16);
    memcpy(ip + 40, body, len);
    memset(ip + 42, 0, 2);
    uint8_t tail[4] = {(uint8_t)(len >> 8), (uint8_t)len, 0, 58};
    uint16_t sum = wire_csum_add(wire_csum_add(0, ip + 8, 32), tail, 4);
    wire_csum_put(ip + 42, wire_csum_add(sum, ip + 40, len));
    return n + 40 + len;
}

static inline size_t make_nd(uint8_t *f, const uint8_t *dmac, const char *from, const char *to,
                             uint8_t type, uint8_t flags, const char *target, const uint8_t *mac)
{
    uint8_t body[32] = {type, 0, 0, 0, flags};
    memcpy(body + 8, addr(target).b, 16);
    body[24] = type == 135 ? 1 : 2;
    body[25] = 1;
    if (mac)
        memcpy(body + 26, mac, 6);
    return make_icmp6(f, dmac, from, to, 255, body, mac ? 32 : 24);
}

static inline size_t rx(struct net_port *p, const uint8_t *f, size_t len, uint8_t *reply,
                        size_t cap)
{
    return net_rx(p, f, len, 0, reply, cap);
}

static inline bool icmp6_csum_good(const uint8_t *ip, size_t len)
{
    uint8_t tail[4] = {(uint8_t)(len >> 8), (uint8_t)len, 0, 58};
    return wire_csum_add(wire_csum_add(wire_csum_add(0, ip + 8, 32), tail, 4), ip + 40, len) ==
           0xFFFF;
}

#endif
