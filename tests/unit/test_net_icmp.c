/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Echo requests, and routers' messages about packets that were too big.
 */
#include "net_rig.h"

#define MS NET_NS_PER_MS

/* WIRE-12 an echo comes back with the same payload and right checksums. */
START_TEST(wire_12_echo_v4)
{
    static const unsigned payloads[] = {0, 1, 2, 3, 17, 18, 56, 57, 255, 1000, 1471, 1472};
    for (size_t k = 0; k < sizeof(payloads) / sizeof(payloads[0]); k++) {
        unsigned payload = payloads[k];
        struct net_port *p = rig_port(0);
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

/* WIRE-16 echo over IPv6, and ignored requests. */
START_TEST(wire_16_echo_v6)
{
    struct net_port *p = rig_port(0);
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
        struct net_port *p = rig_port(0);
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
    struct net_port *p = rig_port(0);
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

/* SEC-15 echo replies have a limit, which time renews. */
START_TEST(sec_15_echo_rate)
{
    struct net_port *p = rig_port(0);
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
        struct net_port *p = rig_port(0);
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

UNIT_MAIN("net icmp", wire_12_echo_v4, wire_16_echo_v6, sec_15_echo_ignored, sec_15_echo_rate,
          wire_32_too_big)
