/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ARP: the requests that a port answers, and the MACs that it learns.
 */
#include <errno.h>

#include "net_rig.h"

/* WIRE-07 a host that asks for our address gets our MAC. */
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
        struct net_port *p = rig_port(0);
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

/* WIRE-07 the sender in the ARP packet counts, not the station that forwarded it. */
START_TEST(wire_07_arp_sender)
{
    static const uint8_t relay[6] = {0x02, 0, 0, 0, 0, 0x77};
    struct net_port *p = rig_port(0);
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
    /* A neighbour's own request for another host tells its MAC, but is not answered. */
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
    struct net_port *p = rig_port(0);
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

UNIT_MAIN("net arp", wire_07_arp_reply, wire_07_arp_sender, sec_02_bad_arp)
