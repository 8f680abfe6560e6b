/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Neighbour discovery: the requests that a port answers, and the MACs that it learns.
 */
#include "net_rig.h"

/* WIRE-07 GID-03 neighbour solicitations for our global and our link-local address. */
START_TEST(wire_07_nd_reply)
{
    static const uint8_t snm[6] = {0x33, 0x33, 0xFF, 0, 0, 1};
    static const char *const ours[] = {"2001:db8::1", "fe80::ff:fe00:1"};
    for (size_t i = 0; i < 2; i++) {
        struct net_port *p = rig_port(0);
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

/* WIRE-07 duplicate address detection by another host is answered to all nodes. */
START_TEST(wire_07_dad_answered)
{
    static const uint8_t snm[6] = {0x33, 0x33, 0xFF, 0, 0, 1};
    struct net_port *p = rig_port(0);
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

/* WIRE-07 options of a solicitation, and their effects. */
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
        {"WIRE-07 after another option",
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
        struct net_port *p = rig_port(0);
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

/* SEC-02 bad neighbour discovery packets. */
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
        struct net_port *p = rig_port(0);
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
    struct net_port *p = rig_port(0);
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

/* SEC-02 impossible advertisements: without a source, or a solicited one to all nodes. */
START_TEST(sec_02_bad_advertisement)
{
    struct net_port *p = rig_port(0);
    struct wire_addr peer = addr("2001:db8::2");
    uint8_t f[128];
    uint8_t r[256];
    uint8_t mac[6];
    net_resolve(p, &peer, 0, mac);
    size_t n = make_nd(f, our_mac, "::", "2001:db8::1", 136, 0, "2001:db8::2", peer_mac);
    ck_assert_uint_eq(rx(p, f, n, r, sizeof(r)), 0);
    n = make_nd(f, our_mac, "fe80::2", "ff02::1", 136, 0x40, "2001:db8::2", peer_mac);
    ck_assert_uint_eq(rx(p, f, n, r, sizeof(r)), 0);
    ck_assert_uint_eq(net_counter(p, NET_RX_BAD), 2);
    ck_assert_int_eq(net_neigh_state(p, &peer), NET_INCOMPLETE);
    n = make_nd(f, our_mac, "fe80::2", "ff02::1", 136, 0, "2001:db8::2", peer_mac);
    ck_assert_uint_eq(rx(p, f, n, r, sizeof(r)), 0);
    ck_assert_uint_eq(net_counter(p, NET_RX_BAD), 2);
    ck_assert_int_eq(net_neigh_state(p, &peer), NET_STALE);
    net_port_free(p);
}
END_TEST

UNIT_MAIN("net nd", wire_07_nd_reply, wire_07_dad_answered, wire_07_nd_options, sec_02_bad_nd,
          sec_02_bad_advertisement)
