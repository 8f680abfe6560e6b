/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A port: the frames that it takes, and the frames that it sends by itself.
 */
#include "net_rig.h"

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
        struct net_port *p = rig_port(rows[i].port);
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
    struct net_port *p = rig_port(0);
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

/* SEC-02 another host with our address: counted, not believed, not answered. */
START_TEST(sec_02_address_conflict)
{
    struct net_port *p = rig_port(0);
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

/* WIRE-07 a caller without room for a reply still gets the answer that it waits for. */
START_TEST(wire_07_no_room_for_replies)
{
    struct net_port *p = rig_port(0);
    struct wire_addr peer = addr("10.0.0.2"), other = addr("10.0.0.3");
    uint8_t f[128], r[256], mac[6];
    memset(r, 0xEE, sizeof(r));
    net_resolve(p, &peer, 0, mac);
    size_t n = make_arp(f, our_mac, -1, 2, "10.0.0.2", peer_mac, "10.0.0.1");
    ck_assert_uint_eq(rx(p, f, n, r, 0), 0);
    ck_assert_int_eq(net_neigh_state(p, &peer), NET_REACHABLE);
    ck_assert_uint_eq(net_counter(p, NET_RX_BAD), 0);
    n = make_arp(f, our_mac, -1, 1, "10.0.0.3", peer_mac, "10.0.0.1");
    ck_assert_uint_eq(rx(p, f, n, r, NET_TX_MAX - 1), 0);
    ck_assert_int_eq(net_neigh_state(p, &other), NET_STALE);
    for (size_t i = 0; i < sizeof(r); i++)
        ck_assert_uint_eq(r[i], 0xEE);
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

/* WIRE-34 another host has our address: it is reported once, and answered by one announcement,
 * however often its frames come; again after ten seconds without one. The address is kept. */
START_TEST(wire_34_one_defence)
{
    struct net_port *p = rig_port(0);
    struct net_conflict c;
    uint8_t f[128], r[NET_TX_MAX];
    uint64_t now = 0;
    for (unsigned round = 0; round < 4; round++) {
        bool v6 = round & 1;
        const char *ours = v6 ? "2001:db8::1" : "10.0.0.1";
        size_t n = v6 ? make_nd(f, all_mac, ours, "ff02::1", 136, 0x20, ours, peer_mac)
                      : make_arp(f, all_mac, -1, 1, ours, peer_mac, "10.0.0.9");
        if (v6)
            memcpy(f, (const uint8_t[]){0x33, 0x33, 0, 0, 0, 1}, 6);
        unsigned announced = 0;
        for (unsigned i = 0; i < 30; i++, now += NET_DEFEND_NS - 1) {
            net_rx(p, f, n, now, r, sizeof(r));
            if (i == 0) {
                ck_assert(net_next_conflict(p, &c));
                ck_assert(c.defended);
                ck_assert_mem_eq(c.mac, peer_mac, 6);
                ck_assert_mem_eq(c.addr.b, addr(ours).b, 16);
            }
            ck_assert(!net_next_conflict(p, &c));
            while (net_tx(p, r, sizeof(r), now)) {
                announced++;
                ck_assert_uint_eq(r[0] & 1, 1); /* to all */
                ck_assert_mem_eq(r + 6, our_mac, 6);
                if (!v6) {
                    ck_assert_mem_eq(r + 28, addr(ours).b + 12, 4);
                    ck_assert_mem_eq(r + 38, addr(ours).b + 12, 4);
                }
            }
        }
        ck_assert_uint_eq(announced, 1);
        ck_assert_uint_eq(net_counter(p, NET_ADDR_CONFLICT), 30 * (round + 1));
        ck_assert_uint_eq(net_counter(p, NET_ADDR_DEFENDED), round + 1);
        now += 2 * NET_DEFEND_NS;
    }
    size_t n = make_arp(f, our_mac, -1, 1, "10.0.0.2", peer_mac, "10.0.0.1");
    ck_assert_uint_ne(net_rx(p, f, n, now, r, sizeof(r)), 0); /* we still answer for it */

    /* The kernel has it, too: then it is the kernel's to defend. */
    struct wire_addr ours = addr("10.0.0.1");
    net_addr_foreign(p, &ours, true);
    n = make_arp(f, all_mac, -1, 1, "10.0.0.1", peer_mac, "10.0.0.9");
    net_rx(p, f, n, now, r, sizeof(r));
    ck_assert(net_next_conflict(p, &c));
    ck_assert(!c.defended);
    ck_assert_uint_eq(net_tx(p, r, sizeof(r), now), 0);
    net_port_free(p);
}
END_TEST

/* WIRE-34 a frame with our own MAC is an echo, not another host's. */
START_TEST(wire_34_an_echo_is_none)
{
    struct net_port *p = rig_port(0);
    struct net_conflict c;
    uint8_t f[128], r[NET_TX_MAX];
    size_t n = make_arp(f, all_mac, -1, 1, "10.0.0.1", our_mac, "10.0.0.1");
    memcpy(f + 6, peer_mac, 6);
    net_rx(p, f, n, 0, r, sizeof(r));
    ck_assert(!net_next_conflict(p, &c));
    ck_assert_uint_eq(net_counter(p, NET_ADDR_CONFLICT), 0);
    net_port_free(p);
}
END_TEST

UNIT_MAIN("net port", wire_04_vlan, wire_06_not_for_us, sec_02_address_conflict,
          wire_34_one_defence, wire_34_an_echo_is_none, wire_07_no_room_for_replies,
          gid_03_announcements, sec_03_bad_config)
