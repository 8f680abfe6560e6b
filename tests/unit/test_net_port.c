/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A port's frames: what it answers, what it ignores, what it sends by itself.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "net_port.h"
#include "unit.h"
#include "wire_bytes.h"
#include "wire_csum.h"

#define MS NET_NS_PER_MS

static const uint8_t our_mac[6] = {0x02, 0, 0, 0, 0, 0x01};
static const uint8_t peer_mac[6] = {0x02, 0, 0, 0, 0, 0x02};
static const uint8_t all_mac[6] = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF};

static struct wire_addr addr(const char *s)
{
    struct wire_addr a;
    ck_assert_msg(wire_addr_parse(s, &a) == 0, "%s", s);
    return a;
}

/* A port at 10.0.0.1/24 and 2001:db8::1/64 that has sent its announcements. */
static struct net_port *port_new(uint16_t vlan)
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
    for (uint64_t now = 0; net_deadline(p) != UINT64_MAX; now = net_deadline(p)) {
        net_expire(p, now);
        while (net_tx(p, buf, sizeof(buf), now))
            ;
    }
    return p;
}

static size_t put_ether(uint8_t *f, const uint8_t *dmac, const uint8_t *smac, int vid,
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

static size_t make_arp(uint8_t *f, const uint8_t *dmac, int vid, unsigned op, const char *from,
                       const uint8_t *from_mac, const char *to)
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

static size_t make_echo(uint8_t *f, const uint8_t *dmac, const char *from, const char *to,
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
static void mend_v4(uint8_t *ip)
{
    size_t total = wire_get16(ip + 2);
    wire_put16(ip + 10, 0);
    wire_csum_put(ip + 10, wire_csum_add(0, ip, 20));
    wire_put16(ip + 22, 0);
    if (total >= 24)
        wire_csum_put(ip + 22, wire_csum_add(0, ip + 20, total - 20));
}

/* An ICMPv6 packet around `body` (type first; the checksum is filled in). */
static size_t make_icmp6(uint8_t *f, const uint8_t *dmac, const char *from, const char *to,
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

static size_t make_nd(uint8_t *f, const uint8_t *dmac, const char *from, const char *to,
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

static size_t rx(struct net_port *p, const uint8_t *f, size_t len, uint8_t *reply, size_t cap)
{
    return net_rx(p, f, len, 0, reply, cap);
}

/* WIRE-07 who has our address gets our MAC. */
START_TEST(wire_07_arp_reply)
{
    static const struct {
        const char *name, *from, *to;
        uint8_t op;
        bool answered, learned;
    } rows[] = {
        {"WIRE-07 request", "10.0.0.2", "10.0.0.1", 1, true, true},
        {"WIRE-07 request for another", "10.0.0.2", "10.0.0.3", 1, false, false},
        {"WIRE-07 reply nobody asked for", "10.0.0.2", "10.0.0.1", 2, false, false},
        {"WIRE-07 probe", "0.0.0.0", "10.0.0.1", 1, true, false},
        {"WIRE-07 from another prefix", "10.9.0.2", "10.0.0.1", 1, true, false},
        {"WIRE-07 from a group", "224.0.0.1", "10.0.0.1", 1, true, false},
        {"WIRE-07 unknown operation", "10.0.0.2", "10.0.0.1", 3, false, false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct net_port *p = port_new(0);
        uint8_t f[128];
        uint8_t r[256];
        struct wire_addr from = addr(rows[i].from);
        size_t n = make_arp(f, all_mac, -1, rows[i].op, rows[i].from, peer_mac, rows[i].to);
        memset(r, 0xEE, sizeof(r));
        size_t got = rx(p, f, n, r, sizeof(r));
        ck_assert_msg((got != 0) == rows[i].answered, "%s", rows[i].name);
        ck_assert_msg((net_neigh_state(p, &from) == NET_STALE) == rows[i].learned, "%s",
                      rows[i].name);
        ck_assert_uint_eq(net_counter(p, NET_RX_ARP), 1);
        if (got) {
            ck_assert_uint_eq(got, 60); /* padded with zeros: SEC-11 */
            ck_assert_mem_eq(r, peer_mac, 6);
            ck_assert_mem_eq(r + 6, our_mac, 6);
            ck_assert_mem_eq(r + 12, ((const uint8_t[]){8, 6, 0, 1, 8, 0, 6, 4, 0, 2}), 10);
            ck_assert_mem_eq(r + 22, our_mac, 6);
            ck_assert_mem_eq(r + 28, addr("10.0.0.1").b + 12, 4);
            ck_assert_mem_eq(r + 32, peer_mac, 6);
            ck_assert_mem_eq(r + 38, from.b + 12, 4);
            for (size_t k = 42; k < 60; k++)
                ck_assert_uint_eq(r[k], 0);
        }
        net_port_free(p);
    }
}
END_TEST

/* WIRE-07 what counts is the sender in the ARP packet, not the station that forwarded it. */
START_TEST(wire_07_arp_sender)
{
    static const uint8_t relay[6] = {0x02, 0, 0, 0, 0, 0x77};
    struct net_port *p = port_new(0);
    uint8_t f[128];
    uint8_t r[256];
    uint8_t mac[6];
    struct wire_addr from = addr("10.0.0.2");
    struct wire_addr probed = addr("10.0.0.3");
    size_t n = make_arp(f, all_mac, -1, 1, "10.0.0.2", peer_mac, "10.0.0.1");
    memcpy(f + 6, relay, 6);
    uint64_t sent = net_counter(p, NET_TX_ARP);
    ck_assert_uint_eq(rx(p, f, n, r, sizeof(r)), 60);
    ck_assert_uint_eq(net_counter(p, NET_TX_ARP), sent + 1);
    ck_assert_mem_eq(r, peer_mac, 6);
    ck_assert_mem_eq(r + 32, peer_mac, 6);
    ck_assert_int_eq(net_resolve(p, &from, 0, mac), 0);
    ck_assert_mem_eq(mac, peer_mac, 6);
    /* A neighbour's own request for somebody else tells its MAC, but answers nothing. */
    ck_assert_int_eq(net_resolve(p, &probed, 0, mac), -EINPROGRESS);
    n = make_arp(f, all_mac, -1, 1, "10.0.0.3", peer_mac, "10.0.0.9");
    memcpy(f + 6, relay, 6);
    ck_assert_uint_eq(rx(p, f, n, r, sizeof(r)), 0);
    ck_assert_int_eq(net_neigh_state(p, &probed), NET_STALE);
    ck_assert_int_eq(net_resolve(p, &probed, 0, mac), 0);
    ck_assert_mem_eq(mac, peer_mac, 6);
    n = make_arp(f, our_mac, -1, 1, "10.0.0.3", peer_mac, "10.0.0.1"); /* nor does a unicast one */
    ck_assert_uint_ne(rx(p, f, n, r, sizeof(r)), 0);
    ck_assert_int_eq(net_neigh_state(p, &probed), NET_PROBE);
    n = make_arp(f, all_mac, -1, 2, "10.0.0.3", peer_mac, "10.0.0.1"); /* nor a broadcast reply */
    ck_assert_uint_eq(rx(p, f, n, r, sizeof(r)), 0);
    ck_assert_int_eq(net_neigh_state(p, &probed), NET_PROBE);
    n = make_arp(f, our_mac, -1, 2, "10.0.0.3", peer_mac, "10.0.0.1"); /* a reply to us does */
    ck_assert_uint_eq(rx(p, f, n, r, sizeof(r)), 0);
    ck_assert_int_eq(net_neigh_state(p, &probed), NET_REACHABLE);
    n = make_arp(f, all_mac, -1, 1, "10.0.0.2", peer_mac, "10.0.0.1");
    memset(f + 22, 0, 6); /* no MAC is no answer */
    ck_assert_uint_eq(rx(p, f, n, r, sizeof(r)), 0);
    ck_assert_uint_eq(net_counter(p, NET_RX_BAD), 1);
    net_port_free(p);
}
END_TEST

/* SEC-02 each broken octet of an ARP packet: counted as bad, not answered. */
START_TEST(sec_02_bad_arp)
{
    static const struct {
        unsigned off;
        uint8_t value;
    } rows[] = {{0, 1}, {1, 6}, {2, 0x86}, {3, 1}, {4, 8}, {5, 16}, {6, 1}, {7, 0}, {8, 0x03}};
    struct net_port *p = port_new(0);
    uint8_t f[128];
    uint8_t r[256];
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        size_t n = make_arp(f, all_mac, -1, 1, "10.0.0.2", peer_mac, "10.0.0.1");
        f[14 + rows[i].off] = rows[i].value;
        ck_assert_uint_eq(rx(p, f, n, r, sizeof(r)), 0);
        ck_assert_uint_eq(net_counter(p, NET_RX_BAD), i + 1);
    }
    size_t n = make_arp(f, all_mac, -1, 1, "10.0.0.2", peer_mac, "10.0.0.1");
    ck_assert_uint_eq(rx(p, f, n - 1, r, sizeof(r)), 0);
    ck_assert_uint_ne(rx(p, f, n, r, sizeof(r)), 0);
    net_port_free(p);
}
END_TEST

/* WIRE-03 WIRE-04 only frames of the port's own VLAN; a priority tag counts as none. */
START_TEST(wire_04_vlan)
{
    static const struct {
        uint16_t port;
        int frame;
        bool answered;
    } rows[] = {
        {0, -1, true},     {0, 0, true},   {0, 0x6000, true}, {0, 7, false}, {7, 7, true},
        {7, 0x6007, true}, {7, -1, false}, {7, 0, false},     {7, 8, false}, {7, 0x1007, true},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct net_port *p = port_new(rows[i].port);
        uint8_t f[128];
        uint8_t r[256];
        size_t n = make_arp(f, all_mac, rows[i].frame, 1, "10.0.0.2", peer_mac, "10.0.0.1");
        size_t got = rx(p, f, n, r, sizeof(r));
        ck_assert_msg((got != 0) == rows[i].answered, "WIRE-04 port %u frame %d", rows[i].port,
                      rows[i].frame);
        ck_assert_uint_eq(net_counter(p, NET_RX_WRONG_VLAN), !rows[i].answered);
        if (got && rows[i].port) {
            ck_assert_uint_eq(wire_get16(r + 12), 0x8100);
            ck_assert_uint_eq(wire_get16(r + 14), rows[i].port);
            ck_assert_uint_eq(wire_get16(r + 16), 0x0806);
        } else if (got) {
            ck_assert_uint_eq(wire_get16(r + 12), 0x0806);
        }
        net_port_free(p);
    }
}
END_TEST

/* WIRE-06 frames for another station, our own that came back, group senders. */
START_TEST(wire_06_not_for_us)
{
    static const uint8_t other[6] = {0x02, 0, 0, 0, 0, 0x99};
    static const uint8_t group[6] = {0x03, 0, 0, 0, 0, 0x02};
    struct net_port *p = port_new(0);
    uint8_t f[128];
    uint8_t r[256];
    size_t n = make_arp(f, other, -1, 1, "10.0.0.2", peer_mac, "10.0.0.1");
    ck_assert_uint_eq(rx(p, f, n, r, sizeof(r)), 0);
    n = make_arp(f, all_mac, -1, 1, "10.0.0.2", peer_mac, "10.0.0.1");
    memcpy(f + 6, our_mac, 6);
    ck_assert_uint_eq(rx(p, f, n, r, sizeof(r)), 0);
    memcpy(f + 6, group, 6);
    ck_assert_uint_eq(rx(p, f, n, r, sizeof(r)), 0);
    ck_assert_uint_eq(net_counter(p, NET_RX_OTHER), 3);
    n = put_ether(f, all_mac, peer_mac, -1, 0x88CC);
    ck_assert_uint_eq(rx(p, f, n + 46, r, sizeof(r)), 0);
    ck_assert_uint_eq(net_counter(p, NET_RX_OTHER), 4);
    n = make_arp(f, our_mac, -1, 1, "10.0.0.2", peer_mac, "10.0.0.1");
    ck_assert_uint_ne(rx(p, f, n, r, sizeof(r)), 0);
    net_port_free(p);
}
END_TEST

/* SEC-02 somebody else with our address: counted, not believed, not answered. */
START_TEST(sec_02_address_conflict)
{
    struct net_port *p = port_new(0);
    uint8_t f[128];
    uint8_t r[256];
    struct wire_addr ours = addr("10.0.0.1");
    size_t n = make_arp(f, all_mac, -1, 1, "10.0.0.1", peer_mac, "10.0.0.1");
    ck_assert_uint_eq(rx(p, f, n, r, sizeof(r)), 0);
    ck_assert_uint_eq(net_counter(p, NET_ADDR_CONFLICT), 1);
    ck_assert_int_eq(net_neigh_state(p, &ours), NET_NONE);
    n = make_nd(f, our_mac, "fe80::2", "2001:db8::1", 136, 0x60, "2001:db8::1", peer_mac);
    ck_assert_uint_eq(rx(p, f, n, r, sizeof(r)), 0);
    n = make_nd(f, our_mac, "2001:db8::1", "2001:db8::1", 135, 0, "2001:db8::1", peer_mac);
    ck_assert_uint_eq(rx(p, f, n, r, sizeof(r)), 0);
    ck_assert_uint_eq(net_counter(p, NET_ADDR_CONFLICT), 3);
    net_port_free(p);
}
END_TEST

static bool icmp6_csum_good(const uint8_t *ip, size_t len)
{
    uint8_t tail[4] = {(uint8_t)(len >> 8), (uint8_t)len, 0, 58};
    return wire_csum_add(wire_csum_add(wire_csum_add(0, ip + 8, 32), tail, 4), ip + 40, len) ==
           0xFFFF;
}

/* WIRE-07 GID-03 neighbour solicitations for our global and our link-local address. */
START_TEST(wire_07_nd_reply)
{
    static const uint8_t snm[6] = {0x33, 0x33, 0xFF, 0, 0, 1};
    static const char *const ours[] = {"2001:db8::1", "fe80::ff:fe00:1"};
    for (size_t i = 0; i < 2; i++) {
        struct net_port *p = port_new(0);
        uint8_t f[128];
        uint8_t r[256];
        struct wire_addr from = addr("fe80::2");
        struct wire_addr target = addr(ours[i]);
        size_t n = make_nd(f, snm, "fe80::2", "ff02::1:ff00:1", 135, 0, ours[i], peer_mac);
        size_t got = rx(p, f, n, r, sizeof(r));
        ck_assert_uint_eq(got, 14 + 40 + 32);
        ck_assert_mem_eq(r, peer_mac, 6);
        ck_assert_mem_eq(r + 6, our_mac, 6);
        const uint8_t *ip = r + 14;
        ck_assert_uint_eq(ip[7], 255);
        ck_assert_mem_eq(ip + 8, target.b, 16);
        ck_assert_mem_eq(ip + 24, from.b, 16);
        ck_assert_uint_eq(ip[40], 136);
        ck_assert_uint_eq(ip[44], 0x60); /* solicited, override */
        ck_assert_mem_eq(ip + 48, target.b, 16);
        ck_assert_uint_eq(ip[64], 2);
        ck_assert_uint_eq(ip[65], 1);
        ck_assert_mem_eq(ip + 66, our_mac, 6);
        ck_assert(icmp6_csum_good(ip, 32));
        ck_assert_int_eq(net_neigh_state(p, &from), NET_STALE);
        net_port_free(p);
    }
}
END_TEST

/* WIRE-07 duplicate address detection by another host is answered to everybody. */
START_TEST(wire_07_dad_answered)
{
    static const uint8_t snm[6] = {0x33, 0x33, 0xFF, 0, 0, 1};
    struct net_port *p = port_new(0);
    uint8_t f[128];
    uint8_t r[256];
    size_t n = make_nd(f, snm, "::", "ff02::1:ff00:1", 135, 0, "2001:db8::1", NULL);
    ck_assert_uint_eq(rx(p, f, n, r, sizeof(r)), 14 + 40 + 32);
    ck_assert_mem_eq(r, ((const uint8_t[]){0x33, 0x33, 0, 0, 0, 1}), 6);
    ck_assert_mem_eq(r + 14 + 24, addr("ff02::1").b, 16);
    ck_assert_uint_eq(r[14 + 44], 0x20);
    /* Not to the group of the target, or with a MAC: malformed. */
    n = make_nd(f, our_mac, "::", "2001:db8::1", 135, 0, "2001:db8::1", NULL);
    ck_assert_uint_eq(rx(p, f, n, r, sizeof(r)), 0);
    n = make_nd(f, snm, "::", "ff02::1:ff00:1", 135, 0, "2001:db8::1", peer_mac);
    ck_assert_uint_eq(rx(p, f, n, r, sizeof(r)), 0);
    ck_assert_uint_eq(net_counter(p, NET_RX_BAD), 2);
    net_port_free(p);
}
END_TEST

/* SEC-02 what makes a neighbour discovery packet bad. */
START_TEST(sec_02_bad_nd)
{
    static const struct {
        const char *name;
        unsigned off; /* from the IPv6 header */
        uint8_t value;
    } rows[] = {
        {"SEC-02 hop limit not 255", 7, 254},
        {"SEC-02 code", 41, 1},
        {"SEC-02 multicast target", 48, 0xFF},
        {"SEC-02 option of length 0", 65, 0},
        {"SEC-02 option longer than the packet", 65, 2},
        {"SEC-02 multicast source", 8, 0xFF},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct net_port *p = port_new(0);
        uint8_t f[128];
        uint8_t r[256];
        size_t n = make_nd(f, our_mac, "fe80::2", "2001:db8::1", 135, 0, "2001:db8::1", peer_mac);
        uint8_t *ip = f + 14;
        ip[rows[i].off] = rows[i].value;
        memset(ip + 42, 0, 2);
        uint8_t tail[4] = {0, 32, 0, 58};
        wire_csum_put(ip + 42, wire_csum_add(wire_csum_add(wire_csum_add(0, ip + 8, 32), tail, 4),
                                             ip + 40, 32));
        ck_assert_msg(rx(p, f, n, r, sizeof(r)) == 0, "%s", rows[i].name);
        ck_assert_msg(net_counter(p, NET_RX_BAD) == 1, "%s", rows[i].name);
        net_port_free(p);
    }
    struct net_port *p = port_new(0);
    uint8_t f[128];
    uint8_t r[256];
    size_t n = make_nd(f, our_mac, "fe80::2", "2001:db8::1", 135, 0, "2001:db8::1", peer_mac);
    f[14 + 42] ^= 1; /* checksum */
    ck_assert_uint_eq(rx(p, f, n, r, sizeof(r)), 0);
    ck_assert_uint_eq(net_counter(p, NET_RX_BAD), 1);
    f[14 + 42] ^= 1;
    for (size_t cut = 1; cut <= n; cut++) /* SEC-03 every truncation */
        ck_assert_uint_eq(rx(p, f, n - cut, r, sizeof(r)), 0);
    ck_assert_uint_ne(rx(p, f, n, r, sizeof(r)), 0);
    net_port_free(p);
}
END_TEST

/* WIRE-12 an echo comes back with the same payload and right checksums. */
START_TEST(wire_12_echo_v4)
{
    static const unsigned payloads[] = {0, 1, 2, 3, 17, 18, 56, 57, 255, 1000, 1471, 1472};
    for (size_t k = 0; k < sizeof(payloads) / sizeof(payloads[0]); k++) {
        unsigned payload = payloads[k];
        struct net_port *p = port_new(0);
        static uint8_t f[1600];
        static uint8_t r[1600];
        size_t n = make_echo(f, our_mac, "10.0.0.2", "10.0.0.1", payload);
        memset(r, 0xEE, sizeof(r));
        size_t got = rx(p, f, n, r, sizeof(r));
        ck_assert_uint_eq(got, n < 60 ? 60 : n);
        ck_assert_uint_eq(net_counter(p, NET_RX_ECHO), 1);
        ck_assert_uint_eq(net_counter(p, NET_TX_ECHO), 1);
        const uint8_t *ip = r + 14;
        ck_assert_uint_eq(ip[0], 0x45);
        ck_assert_uint_eq(wire_get16(ip + 4), 0);
        ck_assert_uint_eq(wire_get16(ip + 6), 0x4000);
        ck_assert_uint_eq(ip[9], 1);
        ck_assert_mem_eq(r, peer_mac, 6);
        ck_assert_uint_eq(wire_csum_add(0, ip, 20), 0xFFFF);
        ck_assert_uint_eq(wire_get16(ip + 2), 28 + payload);
        ck_assert_uint_eq(ip[8], 64);
        ck_assert_mem_eq(ip + 12, addr("10.0.0.1").b + 12, 4);
        ck_assert_mem_eq(ip + 16, addr("10.0.0.2").b + 12, 4);
        ck_assert_uint_eq(ip[20], 0);
        ck_assert_uint_eq(wire_csum_add(0, ip + 20, 8 + payload), 0xFFFF);
        ck_assert_mem_eq(ip + 24, f + 14 + 24, 4 + payload);
        net_port_free(p);
    }
}
END_TEST

/* SEC-15 which echo requests are not answered. */
START_TEST(sec_15_echo_ignored)
{
    static const struct {
        const char *name, *from, *to;
        unsigned off; /* from the IP header; mended: the checksums are made right again */
        uint8_t value;
        bool broadcast;
        unsigned payload;
        bool mended;
    } rows[] = {
        {"SEC-15 for another address", "10.0.0.2", "10.0.0.3", 0, 0x45, false, 8},
        {"SEC-15 for a broadcast MAC", "10.0.0.2", "10.0.0.1", 0, 0x45, true, 8},
        {"SEC-15 from a group", "224.0.0.1", "10.0.0.1", 0, 0x45, false, 8},
        {"SEC-15 from ourselves", "10.0.0.1", "10.0.0.1", 0, 0x45, false, 8},
        {"SEC-15 bad IP checksum", "10.0.0.2", "10.0.0.1", 11, 1, false, 8},
        {"SEC-15 bad ICMP checksum", "10.0.0.2", "10.0.0.1", 30, 1, false, 8},
        {"SEC-15 with options", "10.0.0.2", "10.0.0.1", 0, 0x46, false, 8, true},
        {"SEC-15 a first fragment", "10.0.0.2", "10.0.0.1", 6, 0x20, false, 8, true},
        {"SEC-15 a later fragment", "10.0.0.2", "10.0.0.1", 6, 0x10, false, 8, true},
        {"SEC-15 a later fragment, low octet", "10.0.0.2", "10.0.0.1", 7, 1, false, 8, true},
        {"SEC-15 a reply", "10.0.0.2", "10.0.0.1", 20, 0, false, 8, true},
        {"SEC-15 a code", "10.0.0.2", "10.0.0.1", 21, 1, false, 8, true},
        {"SEC-15 total length 20", "10.0.0.2", "10.0.0.1", 3, 20, false, 8, true},
        {"SEC-15 total length 19", "10.0.0.2", "10.0.0.1", 3, 19, false, 8, true},
        {"SEC-15 total length 27", "10.0.0.2", "10.0.0.1", 3, 27, false, 8, true},
        {"SEC-15 longer than the MTU", "10.0.0.2", "10.0.0.1", 0, 0x45, false, 1473},
        {"SEC-15 UDP", "10.0.0.2", "10.0.0.1", 9, 17, false, 8, true},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct net_port *p = port_new(0);
        static uint8_t f[1600];
        static uint8_t r[1600];
        size_t n = make_echo(f, rows[i].broadcast ? all_mac : our_mac, rows[i].from, rows[i].to,
                             rows[i].payload);
        f[14 + rows[i].off] = rows[i].value;
        if (rows[i].mended)
            mend_v4(f + 14);
        ck_assert_msg(rx(p, f, n, r, sizeof(r)) == 0, "%s", rows[i].name);
        ck_assert_msg(net_counter(p, NET_RX_OTHER) + net_counter(p, NET_RX_BAD) == 1, "%s",
                      rows[i].name);
        net_port_free(p);
    }
    /* A reply longer than the caller's room isn't written. */
    struct net_port *p = port_new(0);
    uint8_t f[600];
    uint8_t r[600];
    size_t n = make_echo(f, our_mac, "10.0.0.2", "10.0.0.1", 500);
    ck_assert_uint_eq(rx(p, f, n, r, n + 3), 0); /* a VLAN tag might be added */
    ck_assert_uint_eq(rx(p, f, n, r, n + 4), n);
    for (size_t cut = 1; cut <= n; cut++)
        ck_assert_uint_eq(rx(p, f, n - cut, r, sizeof(r)), 0);
    net_port_free(p);
}
END_TEST

/* WIRE-32 ICMP's "fragmentation needed" and "packet too big" are counted, and that is all. */
START_TEST(wire_32_too_big)
{
    static const struct {
        const char *to;
        uint8_t type, code;
        enum net_counter counter;
    } rows[] = {
        {"10.0.0.1", 3, 4, NET_RX_TOO_BIG},  {"10.0.0.1", 3, 3, NET_RX_OTHER},
        {"10.0.0.9", 3, 4, NET_RX_OTHER},    {"2001:db8::1", 2, 0, NET_RX_TOO_BIG},
        {"2001:db8::1", 2, 1, NET_RX_OTHER}, {"2001:db8::1", 1, 4, NET_RX_OTHER},
        {"2001:db8::9", 2, 0, NET_RX_OTHER},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct net_port *p = port_new(0);
        uint8_t f[128], r[256], body[56] = {rows[i].type, rows[i].code};
        size_t n;
        if (strchr(rows[i].to, ':')) {
            n = make_icmp6(f, our_mac, "2001:db8::2", rows[i].to, 64, body, sizeof(body));
        } else {
            n = make_echo(f, our_mac, "10.0.0.2", rows[i].to, 40);
            memcpy(f + 14 + 20, body, 2);
            mend_v4(f + 14);
        }
        ck_assert_uint_eq(rx(p, f, n, r, sizeof(r)), 0);
        ck_assert_msg(net_counter(p, rows[i].counter) == 1, "%zu", i);
        ck_assert_uint_eq(net_counter(p, NET_RX_BAD), 0);
        net_port_free(p);
    }
}
END_TEST

/* WIRE-07 who has no room for a reply still hears the answer that he waits for. */
START_TEST(wire_07_no_room_for_replies)
{
    struct net_port *p = port_new(0);
    struct wire_addr who = addr("10.0.0.2"), other = addr("10.0.0.3");
    uint8_t f[128], r[256], mac[6];
    memset(r, 0xEE, sizeof(r));
    net_resolve(p, &who, 0, mac);
    size_t n = make_arp(f, our_mac, -1, 2, "10.0.0.2", peer_mac, "10.0.0.1");
    ck_assert_uint_eq(rx(p, f, n, r, 0), 0);
    ck_assert_int_eq(net_neigh_state(p, &who), NET_REACHABLE);
    ck_assert_uint_eq(net_counter(p, NET_RX_BAD), 0);
    n = make_arp(f, our_mac, -1, 1, "10.0.0.3", peer_mac, "10.0.0.1");
    ck_assert_uint_eq(rx(p, f, n, r, NET_TX_MAX - 1), 0);
    ck_assert_int_eq(net_neigh_state(p, &other), NET_STALE);
    for (size_t i = 0; i < sizeof(r); i++)
        ck_assert_uint_eq(r[i], 0xEE);
    net_port_free(p);
}
END_TEST

/* SEC-15 echo replies have a limit, which time renews. */
START_TEST(sec_15_echo_rate)
{
    struct net_port *p = port_new(0);
    uint8_t f[128];
    uint8_t r[256];
    uint64_t t = 5000 * MS;
    size_t n = make_echo(f, our_mac, "10.0.0.2", "10.0.0.1", 8);
    unsigned answered = 0;
    for (unsigned i = 0; i < 3 * NET_ECHO_RATE; i++)
        answered += net_rx(p, f, n, t, r, sizeof(r)) != 0;
    ck_assert_uint_eq(answered, NET_ECHO_RATE);
    ck_assert_uint_eq(net_counter(p, NET_ECHO_LIMITED), 2 * NET_ECHO_RATE);
    ck_assert_uint_eq(net_rx(p, f, n, t + MS - 1, r, sizeof(r)), 0);
    ck_assert_uint_ne(net_rx(p, f, n, t + MS, r, sizeof(r)), 0);
    ck_assert_uint_eq(net_rx(p, f, n, t + MS, r, sizeof(r)), 0);
    ck_assert_uint_eq(net_counter(p, NET_TX_ECHO), NET_ECHO_RATE + 1);
    net_port_free(p);
}
END_TEST

/* WIRE-07 options of a solicitation, and what they do. */
START_TEST(wire_07_nd_options)
{
    static const struct {
        const char *name, *from;
        uint8_t options[24];
        unsigned len;
        bool by_option; /* the answer goes to the option's MAC, not to the frame's sender */
        bool learned;
    } rows[] = {
        {"WIRE-07 none", "fe80::2", {0}, 0, false, false},
        {"WIRE-07 source MAC", "fe80::2", {1, 1, 2, 0, 0, 0, 0, 9}, 8, true, true},
        {"WIRE-07 behind another option",
         "fe80::2",
         {5, 1, 0, 0, 0, 0, 5, 0xDC, 1, 1, 2, 0, 0, 0, 0, 9},
         16,
         true,
         true},
        {"WIRE-07 before another option",
         "fe80::2",
         {1, 1, 2, 0, 0, 0, 0, 9, 5, 1, 0, 0, 0, 0, 5, 0xDC},
         16,
         true,
         true},
        {"WIRE-07 another option only", "fe80::2", {5, 1, 2, 0, 0, 0, 5, 0xDC}, 8, false, false},
        {"WIRE-07 a target MAC is not a source MAC",
         "fe80::2",
         {2, 1, 2, 0, 0, 0, 0, 9},
         8,
         false,
         false},
        {"WIRE-07 a group MAC", "fe80::2", {1, 1, 3, 0, 0, 0, 0, 9}, 8, false, false},
        {"WIRE-07 longer than a MAC", "fe80::2", {1, 2, 2, 0, 0, 0, 0, 9}, 16, false, false},
        {"WIRE-07 from another prefix", "2001:db9::2", {1, 1, 2, 0, 0, 0, 0, 9}, 8, true, false},
    };
    static const uint8_t told[6] = {2, 0, 0, 0, 0, 9};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct net_port *p = port_new(0);
        uint8_t f[128];
        uint8_t r[256];
        uint8_t mac[6];
        uint8_t body[48] = {135};
        struct wire_addr from = addr(rows[i].from);
        memcpy(body + 8, addr("2001:db8::1").b, 16);
        memcpy(body + 24, rows[i].options, rows[i].len);
        uint64_t sent = net_counter(p, NET_TX_ND);
        memset(r, 0xEE, sizeof(r));
        size_t n = make_icmp6(f, our_mac, rows[i].from, "2001:db8::1", 255, body, 24 + rows[i].len);
        ck_assert_msg(rx(p, f, n, r, sizeof(r)) == 86, "%s", rows[i].name);
        ck_assert_uint_eq(net_counter(p, NET_RX_ND), 1);
        ck_assert_uint_eq(net_counter(p, NET_TX_ND), sent + 1);
        ck_assert_msg(memcmp(r, rows[i].by_option ? told : peer_mac, 6) == 0, "%s", rows[i].name);
        ck_assert_mem_eq(r + 14 + 41, ((const uint8_t[]){0}), 1);
        ck_assert_mem_eq(r + 14 + 45, ((const uint8_t[]){0, 0, 0}), 3);
        ck_assert_msg((net_neigh_state(p, &from) == NET_STALE) == rows[i].learned, "%s",
                      rows[i].name);
        if (rows[i].learned) { /* and a later one may bring another MAC */
            n = make_nd(f, our_mac, rows[i].from, "2001:db8::1", 135, 0, "2001:db8::1", peer_mac);
            ck_assert_uint_ne(rx(p, f, n, r, sizeof(r)), 0);
            ck_assert_int_eq(net_resolve(p, &from, 0, mac), 0);
            ck_assert_mem_eq(mac, peer_mac, 6);
        }
        net_port_free(p);
    }
}
END_TEST

/* SEC-02 advertisements that can't be: from nobody, or an answer to everybody. */
START_TEST(sec_02_bad_advertisement)
{
    struct net_port *p = port_new(0);
    struct wire_addr who = addr("2001:db8::2");
    uint8_t f[128];
    uint8_t r[256];
    uint8_t mac[6];
    net_resolve(p, &who, 0, mac);
    size_t n = make_nd(f, our_mac, "::", "2001:db8::1", 136, 0, "2001:db8::2", peer_mac);
    ck_assert_uint_eq(rx(p, f, n, r, sizeof(r)), 0);
    n = make_nd(f, our_mac, "fe80::2", "ff02::1", 136, 0x40, "2001:db8::2", peer_mac);
    ck_assert_uint_eq(rx(p, f, n, r, sizeof(r)), 0);
    ck_assert_uint_eq(net_counter(p, NET_RX_BAD), 2);
    ck_assert_int_eq(net_neigh_state(p, &who), NET_INCOMPLETE);
    n = make_nd(f, our_mac, "fe80::2", "ff02::1", 136, 0, "2001:db8::2", peer_mac);
    ck_assert_uint_eq(rx(p, f, n, r, sizeof(r)), 0);
    ck_assert_uint_eq(net_counter(p, NET_RX_BAD), 2);
    ck_assert_int_eq(net_neigh_state(p, &who), NET_STALE);
    net_port_free(p);
}
END_TEST

/* WIRE-16 echo over IPv6, and what of it is ignored. */
START_TEST(wire_16_echo_v6)
{
    struct net_port *p = port_new(0);
    uint8_t f[256];
    uint8_t r[256];
    uint8_t body[21] = {128, 0, 0, 0, 1, 2, 0, 9, 'p', 'i', 'n', 'g'};
    size_t n = make_icmp6(f, our_mac, "2001:db8::2", "2001:db8::1", 3, body, sizeof(body));
    ck_assert_uint_eq(rx(p, f, n, r, sizeof(r)), n);
    ck_assert_uint_eq(r[14 + 40], 129);
    ck_assert_uint_eq(r[14 + 7], 64);
    ck_assert_mem_eq(r + 14 + 44, f + 14 + 44, sizeof(body) - 4);
    ck_assert_mem_eq(r + 14 + 8, addr("2001:db8::1").b, 16);
    ck_assert_mem_eq(r + 14 + 24, addr("2001:db8::2").b, 16);
    ck_assert(icmp6_csum_good(r + 14, sizeof(body)));
    n = make_icmp6(f, our_mac, "2001:db8::2", "2001:db8::9", 3, body, sizeof(body));
    ck_assert_uint_eq(rx(p, f, n, r, sizeof(r)), 0);
    n = make_icmp6(f, our_mac, "ff02::1", "2001:db8::1", 3, body, sizeof(body));
    ck_assert_uint_eq(rx(p, f, n, r, sizeof(r)), 0);
    n = make_icmp6(f, our_mac, "2001:db8::2", "2001:db8::1", 3, body, 7);
    ck_assert_uint_eq(rx(p, f, n, r, sizeof(r)), 0);
    n = make_icmp6(f, our_mac, "2001:db8::1", "2001:db8::1", 3, body, 8); /* from ourselves */
    ck_assert_uint_eq(rx(p, f, n, r, sizeof(r)), 0);
    n = make_icmp6(f, our_mac, "192.0.2.1", "2001:db8::1", 3, body, 8); /* IPv4-mapped */
    ck_assert_uint_eq(rx(p, f, n, r, sizeof(r)), 0);
    ck_assert_uint_eq(net_counter(p, NET_RX_ECHO), 5);
    ck_assert_uint_eq(net_counter(p, NET_TX_ECHO), 1);
    n = make_icmp6(f, our_mac, "2001:db8::2", "2001:db8::1", 3, body, 8);
    ck_assert_uint_ne(rx(p, f, n, r, sizeof(r)), 0);
    body[1] = 1; /* code */
    n = make_icmp6(f, our_mac, "2001:db8::2", "2001:db8::1", 3, body, 8);
    ck_assert_uint_eq(rx(p, f, n, r, sizeof(r)), 0);
    body[0] = 129; /* a reply, and an unknown type */
    body[1] = 0;
    n = make_icmp6(f, our_mac, "2001:db8::2", "2001:db8::1", 3, body, 8);
    ck_assert_uint_eq(rx(p, f, n, r, sizeof(r)), 0);
    body[0] = 128;
    n = make_icmp6(f, our_mac, "2001:db8::2", "2001:db8::1", 3, body, 8);
    f[14] = 0x50; /* version 5 */
    ck_assert_uint_eq(rx(p, f, n, r, sizeof(r)), 0);
    /* The MTU is the limit, and a reply needs room for itself and a tag. */
    static uint8_t big[1600];
    static uint8_t out[1600];
    uint8_t long_body[1461] = {128};
    n = make_icmp6(big, our_mac, "2001:db8::2", "2001:db8::1", 3, long_body, 1461);
    ck_assert_uint_eq(rx(p, big, n, out, sizeof(out)), 0);
    n = make_icmp6(big, our_mac, "2001:db8::2", "2001:db8::1", 3, long_body, 1460);
    ck_assert_uint_eq(rx(p, big, n, out, n + 3), 0);
    ck_assert_uint_eq(rx(p, big, n, out, n + 4), n);
    net_port_free(p);
}
END_TEST

/* GID-03 GID-04 a new address is announced twice, two seconds apart; the port begins with its
 * EUI-64. */
START_TEST(gid_03_announcements)
{
    struct net_config c = {.mtu = 1500};
    uint8_t b[NET_TX_MAX];
    memcpy(c.mac, our_mac, 6);
    struct net_port *p = net_port_new(&c, 7);
    ck_assert_uint_eq(p->own_count, 1);
    ck_assert_mem_eq(&p->own[0].addr, addr("fe80::ff:fe00:1").b, 16);
    ck_assert_uint_eq(p->own[0].prefix, 64);
    struct wire_addr a = addr("10.0.0.1");
    ck_assert_int_eq(net_addr_add(p, &a, 24, 7), 0);
    for (unsigned i = 0; i < NET_ANNOUNCEMENTS; i++) {
        uint64_t now = 7 + i * NET_ANNOUNCE_NS;
        if (i) {
            ck_assert_uint_eq(net_deadline(p), now);
            net_expire(p, now - 1);
            ck_assert_uint_eq(net_tx(p, b, sizeof(b), now - 1), 0);
        }
        net_expire(p, now);
        ck_assert_uint_eq(net_tx(p, b, sizeof(b), now), 14 + 40 + 32);
        ck_assert_mem_eq(b, ((const uint8_t[]){0x33, 0x33, 0, 0, 0, 1}), 6);
        ck_assert_uint_eq(b[14 + 40], 136);
        ck_assert_uint_eq(b[14 + 44], 0x20);
        ck_assert_mem_eq(b + 14 + 48, addr("fe80::ff:fe00:1").b, 16);
        ck_assert(icmp6_csum_good(b + 14, 32));
        ck_assert_uint_eq(net_tx(p, b, sizeof(b), now), 60);
        ck_assert_mem_eq(b, all_mac, 6);
        ck_assert_mem_eq(b + 20, ((const uint8_t[]){0, 1}), 2);
        ck_assert_mem_eq(b + 28, a.b + 12, 4);
        ck_assert_mem_eq(b + 38, a.b + 12, 4);
        ck_assert_uint_eq(net_tx(p, b, sizeof(b), now), 0);
    }
    ck_assert_uint_eq(net_deadline(p), UINT64_MAX);
    net_announce(p, 99); /* the link came back */
    ck_assert_uint_ne(net_tx(p, b, sizeof(b), 99), 0);
    ck_assert_uint_ne(net_tx(p, b, sizeof(b), 99), 0);
    ck_assert_uint_eq(net_tx(p, b, sizeof(b), 99), 0);
    ck_assert_uint_eq(net_deadline(p), 99 + NET_ANNOUNCE_NS);
    net_port_free(p);
}
END_TEST

/* SEC-03 configurations that make no sense. */
START_TEST(sec_03_bad_config)
{
    struct net_config c = {.mac = {0}};
    ck_assert_ptr_null(net_port_new(&c, 0));
    memcpy(c.mac, all_mac, 6);
    ck_assert_ptr_null(net_port_new(&c, 0));
    memcpy(c.mac, our_mac, 6);
    c.vlan = 4095;
    ck_assert_ptr_null(net_port_new(&c, 0));
    c.vlan = 4094;
    c.mtu = 575;
    ck_assert_ptr_null(net_port_new(&c, 0));
    c.mtu = 576;
    struct net_port *p = net_port_new(&c, 0);
    ck_assert_ptr_nonnull(p);
    net_port_free(p);
    net_port_free(NULL);
    for (int i = 0; i < NET_COUNTERS; i++)
        ck_assert_int_eq(strncmp(net_counter_name((enum net_counter)i), "net_", 4), 0);
    ck_assert_str_eq(net_counter_name(NET_COUNTERS), "unknown");
}
END_TEST

UNIT_MAIN("net port", wire_07_arp_reply, wire_07_arp_sender, wire_07_nd_options,
          sec_02_bad_advertisement, sec_02_bad_arp, wire_04_vlan, wire_06_not_for_us,
          sec_02_address_conflict, wire_07_nd_reply, wire_07_dad_answered, sec_02_bad_nd,
          wire_12_echo_v4, sec_15_echo_ignored, sec_15_echo_rate, wire_16_echo_v6,
          gid_03_announcements, sec_03_bad_config, wire_32_too_big, wire_07_no_room_for_replies)
