/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The neighbour table, seen from outside: a neighbour is asked for, kept, watched and forgotten.
 */
#include <errno.h>
#include <string.h>

#include "neigh_rig.h"

static const char *const peers[] = {"10.0.0.2", "2001:db8::2", "fe80::ff:fe00:b"};

/* WIRE-07 resolve over ARP and ND: in progress, then the MAC, and one change is reported. */
START_TEST(wire_07_resolve)
{
    for (size_t i = 0; i < 3; i++) {
        struct net_port *a = port_new(mac_a, "10.0.0.1", "2001:db8::1", 16);
        struct net_port *b = port_new(mac_b, "10.0.0.2", "2001:db8::2", 16);
        struct wire_addr dst = addr(peers[i]);
        struct net_change c;
        uint8_t mac[6];
        ck_assert_int_eq(net_resolve(a, &dst, 0, mac), -EINPROGRESS);
        ck_assert_int_eq(net_resolve(a, &dst, 0, mac), -EINPROGRESS);
        ck_assert_int_eq(net_neigh_state(a, &dst), NET_INCOMPLETE);
        ck_assert(!net_next_change(a, &c));
        ck_assert_uint_eq(carry(a, b, 1), 1); /* asked once */
        ck_assert_int_eq(net_neigh_state(a, &dst), NET_REACHABLE);
        ck_assert_int_eq(net_resolve(a, &dst, 1, mac), 0);
        ck_assert_mem_eq(mac, mac_b, 6);
        ck_assert(net_next_change(a, &c));
        ck_assert(c.reachable);
        ck_assert_mem_eq(c.mac, mac_b, 6);
        ck_assert_mem_eq(&c.addr, &dst, sizeof(dst));
        ck_assert(!net_next_change(a, &c));
        /* The other side has learned us from the request. */
        struct wire_addr us = addr(i == 0   ? "10.0.0.1"
                                   : i == 1 ? "2001:db8::1"
                                            : "fe80::ff:fe00:a");
        ck_assert_int_eq(net_neigh_state(b, &us), NET_STALE);
        ck_assert_int_eq(net_resolve(b, &us, 1, mac), 0);
        ck_assert_mem_eq(mac, mac_a, 6);
        net_port_free(a);
        net_port_free(b);
    }
}
END_TEST

/* WIRE-07 requests are sent to all: broadcast for ARP, the solicited-node group for ND. */
START_TEST(wire_07_request_frames)
{
    struct net_port *a = port_new(mac_a, "10.0.0.1", "2001:db8::1", 16);
    struct wire_addr dst = addr("10.0.0.2");
    uint8_t b[NET_TX_MAX];
    uint8_t mac[6];
    net_resolve(a, &dst, 0, mac);
    ck_assert_uint_eq(net_tx(a, b, sizeof(b), 0), 60);
    ck_assert_mem_eq(b, all_mac, 6);
    ck_assert_mem_eq(b + 12, ((const uint8_t[]){8, 6, 0, 1, 8, 0, 6, 4, 0, 1}), 10);
    ck_assert_mem_eq(b + 28, addr("10.0.0.1").b + 12, 4);
    ck_assert_mem_eq(b + 38, dst.b + 12, 4);
    dst = addr("2001:db8::12:3456");
    net_resolve(a, &dst, 0, mac);
    ck_assert_uint_eq(net_tx(a, b, sizeof(b), 0), 14 + 40 + 32);
    ck_assert_mem_eq(b, ((const uint8_t[]){0x33, 0x33, 0xFF, 0x12, 0x34, 0x56}), 6);
    ck_assert_mem_eq(b + 14 + 8, addr("2001:db8::1").b, 16);
    ck_assert_mem_eq(b + 14 + 24, addr("ff02::1:ff12:3456").b, 16);
    ck_assert_uint_eq(b[14 + 7], 255);
    ck_assert_uint_eq(b[14 + 40], 135);
    ck_assert_mem_eq(b + 14 + 48, dst.b, 16);
    ck_assert_mem_eq(b + 14 + 64, ((const uint8_t[]){1, 1}), 2);
    ck_assert_mem_eq(b + 14 + 66, mac_a, 6);
    ck_assert_uint_eq(net_tx(a, b, NET_TX_MAX - 1, 0), 0); /* too little room: nothing is lost */
    net_port_free(a);
}
END_TEST

/* WIRE-07 without an answer: four requests with growing pauses, then EHOSTUNREACH for a while. */
START_TEST(wire_07_unreachable)
{
    struct net_port *a = port_new(mac_a, "10.0.0.1", "2001:db8::1", 16);
    struct wire_addr dst = addr("10.0.0.9");
    struct net_change c;
    uint8_t mac[6];
    uint64_t now = 1000 * MS;
    ck_assert_int_eq(net_resolve(a, &dst, now, mac), -EINPROGRESS);
    uint64_t wait = NET_RETRY_NS;
    for (unsigned i = 0; i < NET_TRIES; i++) {
        ck_assert_uint_eq(carry(a, NULL, now), 1);
        ck_assert_uint_eq(net_deadline(a), now + wait);
        net_expire(a, now + wait - 1);
        ck_assert_uint_eq(carry(a, NULL, now), 0);
        now += wait;
        wait *= 2;
        net_expire(a, now);
    }
    ck_assert_uint_eq(carry(a, NULL, now), 0);
    ck_assert_int_eq(net_neigh_state(a, &dst), NET_FAILED);
    ck_assert_uint_eq(net_counter(a, NET_NEIGH_FAILED), 1);
    ck_assert_int_eq(net_resolve(a, &dst, now + NET_FAILED_NS - 1, mac), -EHOSTUNREACH);
    ck_assert(net_next_change(a, &c));
    ck_assert(!c.reachable);
    ck_assert_int_eq(net_resolve(a, &dst, now + NET_FAILED_NS, mac), -EINPROGRESS);
    gratuitous(a, "10.0.0.9", mac_c, now); /* any news end the wait */
    ck_assert_int_eq(net_resolve(a, &dst, now, mac), 0);
    ck_assert(net_next_change(a, &c));
    ck_assert(c.reachable);
    net_port_free(a);
}
END_TEST

/* WIRE-07 a failed neighbour that is not asked for again is forgotten. */
START_TEST(wire_07_failed_forgotten)
{
    struct net_port *a = port_new(mac_a, "10.0.0.1", "2001:db8::1", 16);
    struct wire_addr dst = addr("10.0.0.9");
    uint8_t mac[6];
    net_resolve(a, &dst, 0, mac);
    drain(a);
    ck_assert_int_eq(net_neigh_state(a, &dst), NET_NONE);
    struct net_change c;
    ck_assert(!net_next_change(a, &c)); /* no report about a forgotten neighbour */
    net_port_free(a);
}
END_TEST

/* WIRE-07 a confirmation lasts 30 s; then the MAC stays in use and is confirmed at the next
 * packet. */
START_TEST(wire_07_refresh_on_use)
{
    for (size_t i = 0; i < 3; i++) {
        struct net_port *a = port_new(mac_a, "10.0.0.1", "2001:db8::1", 16);
        struct net_port *b = port_new(mac_b, "10.0.0.2", "2001:db8::2", 16);
        struct wire_addr dst = addr(peers[i]);
        uint8_t mac[6];
        uint8_t f[NET_TX_MAX];
        uint8_t r[NET_TX_MAX];
        net_resolve(a, &dst, 0, mac);
        carry(a, b, 0);
        net_expire(a, net_deadline(a)); /* the deadline of the request was too early */
        ck_assert_uint_eq(net_deadline(a), NET_REACHABLE_NS);
        net_expire(a, NET_REACHABLE_NS - 1);
        ck_assert_int_eq(net_neigh_state(a, &dst), NET_REACHABLE);
        net_expire(a, NET_REACHABLE_NS);
        ck_assert_int_eq(net_neigh_state(a, &dst), NET_STALE);
        ck_assert_uint_eq(net_deadline(a), UINT64_MAX);
        ck_assert_uint_eq(net_tx(a, f, sizeof(f), NET_REACHABLE_NS), 0);
        ck_assert_int_eq(net_resolve(a, &dst, NET_REACHABLE_NS, mac), 0);
        ck_assert_mem_eq(mac, mac_b, 6);
        ck_assert_int_eq(net_neigh_state(a, &dst), NET_PROBE);
        size_t n = net_tx(a, f, sizeof(f), NET_REACHABLE_NS);
        ck_assert_mem_eq(f, mac_b, 6); /* by unicast */
        n = net_rx(b, f, n, NET_REACHABLE_NS, r, sizeof(r));
        ck_assert_uint_ne(n, 0);
        net_rx(a, r, n, NET_REACHABLE_NS, f, sizeof(f));
        ck_assert_int_eq(net_neigh_state(a, &dst), NET_REACHABLE);
        net_port_free(a);
        net_port_free(b);
    }
}
END_TEST

/* WIRE-07 a watched neighbour is confirmed without being used; its loss is reported, and requests
 * for it are repeated. */
START_TEST(wire_07_watched)
{
    struct net_port *a = port_new(mac_a, "10.0.0.1", "2001:db8::1", 16);
    struct net_port *b = port_new(mac_b, "10.0.0.2", "2001:db8::2", 16);
    struct wire_addr dst = addr("10.0.0.2");
    struct net_change c;
    uint64_t now = 0;
    ck_assert_int_eq(net_watch(a, &dst, now), -EINPROGRESS);
    ck_assert_int_eq(net_watch(a, &dst, now), -EINPROGRESS);
    carry(a, b, now);
    ck_assert(net_next_change(a, &c));
    for (unsigned i = 0; i < 3; i++) {
        now = expire_next(a, &dst);
        ck_assert_int_eq(net_neigh_state(a, &dst), NET_PROBE);
        ck_assert_uint_eq(carry(a, b, now), 1);
        ck_assert_int_eq(net_neigh_state(a, &dst), NET_REACHABLE);
    }
    ck_assert(!net_next_change(a, &c)); /* the same MAC is no news */
    /* The peer vanishes. */
    unsigned frames = 0;
    uint64_t gone = expire_next(a, &dst);
    frames += carry(a, NULL, gone);
    while (net_neigh_state(a, &dst) != NET_FAILED) {
        now = net_deadline(a);
        net_expire(a, now);
        frames += carry(a, NULL, now);
    }
    ck_assert_uint_eq(frames, NET_PROBES + NET_TRIES);
    ck_assert_uint_eq(now - gone, NET_RETRY_NS * (NET_PROBES + 1 + 2 + 4 + 8));
    ck_assert(net_next_change(a, &c));
    ck_assert(!c.reachable);
    ck_assert_mem_eq(c.mac, mac_b, 6);
    ck_assert(!net_next_change(a, &c));
    uint64_t failed = now;
    now = expire_next(a, &dst);
    ck_assert_uint_eq(now - failed, NET_FAILED_NS);
    ck_assert_uint_eq(carry(a, b, now), 1); /* and comes back */
    ck_assert(net_next_change(a, &c));
    ck_assert(c.reachable);
    net_unwatch(a, &dst);
    now = expire_next(a, &dst);
    ck_assert_int_eq(net_neigh_state(a, &dst), NET_PROBE); /* one watcher is left */
    carry(a, b, now);
    net_unwatch(a, &dst);
    net_unwatch(a, &dst); /* one too many does no harm */
    expire_next(a, &dst);
    ck_assert_int_eq(net_neigh_state(a, &dst), NET_STALE);
    net_port_free(a);
    net_port_free(b);
}
END_TEST

/* WIRE-31 WIRE-07 groups and our own address need no neighbour. */
START_TEST(wire_31_no_neighbour)
{
    struct net_port *a = port_new(mac_a, "10.0.0.1", "2001:db8::1", 16);
    uint8_t mac[6];
    struct wire_addr dst = addr("239.129.1.2");
    ck_assert_int_eq(net_resolve(a, &dst, 0, mac), 0);
    ck_assert_mem_eq(mac, ((const uint8_t[]){1, 0, 0x5E, 1, 1, 2}), 6);
    dst = addr("10.0.0.1");
    ck_assert_int_eq(net_resolve(a, &dst, 0, mac), 0);
    ck_assert_mem_eq(mac, mac_a, 6);
    ck_assert_int_eq(net_watch(a, &dst, 0), 0);
    net_unwatch(a, &dst);
    dst = addr("192.0.2.1");
    ck_assert_int_eq(net_watch(a, &dst, 0), -ENETUNREACH);
    ck_assert_uint_eq(carry(a, NULL, 0), 0);
    net_port_free(a);
}
END_TEST

/* WIRE-07 for an address reached by the gateway, the gateway is resolved, and its MAC is used. */
START_TEST(wire_07_gateway)
{
    struct net_port *a = port_new(mac_a, "10.0.0.1", "2001:db8::1", 16);
    struct net_port *b = port_new(mac_b, "10.0.0.2", "2001:db8::2", 16);
    struct wire_addr gw = addr("10.0.0.2");
    struct wire_addr far = addr("192.0.2.77");
    uint8_t mac[6];
    net_gateway_set(a, &gw);
    ck_assert_int_eq(net_resolve(a, &far, 0, mac), -EINPROGRESS);
    carry(a, b, 0);
    ck_assert_int_eq(net_resolve(a, &far, 0, mac), 0);
    ck_assert_mem_eq(mac, mac_b, 6);
    ck_assert_int_eq(net_neigh_state(a, &gw), NET_REACHABLE);
    ck_assert_int_eq(net_neigh_state(a, &far), NET_NONE);
    net_port_free(a);
    net_port_free(b);
}
END_TEST

/* WIRE-07 a probe has its own number of tries, independent of the first answer's. */
START_TEST(wire_07_probe_tries)
{
    struct net_port *a = port_new(mac_a, "10.0.0.1", "2001:db8::1", 16);
    struct net_port *b = port_new(mac_b, "10.0.0.2", "2001:db8::2", 16);
    struct wire_addr dst = addr("10.0.0.2");
    uint64_t now = 0;
    net_watch(a, &dst, now);
    for (unsigned i = 1; i < NET_PROBES; i++) { /* the first requests are lost */
        carry(a, NULL, now);
        now = net_deadline(a);
        net_expire(a, now);
    }
    ck_assert_uint_eq(carry(a, b, now), 1);
    ck_assert_int_eq(net_neigh_state(a, &dst), NET_REACHABLE);
    now = expire_next(a, &dst);
    unsigned probes = 0;
    while (net_neigh_state(a, &dst) == NET_PROBE) {
        probes += carry(a, NULL, now);
        now = net_deadline(a);
        net_expire(a, now);
    }
    ck_assert_uint_eq(probes, NET_PROBES);
    net_port_free(a);
    net_port_free(b);
}
END_TEST

/* GID-04 the address has gone: neighbours of its prefix go too, watched ones fail and come back. */
START_TEST(gid_04_address_removed)
{
    struct net_port *a = port_new(mac_a, "10.0.0.1", "2001:db8::1", 16);
    struct net_port *b = port_new(mac_b, "10.0.0.2", "2001:db8::2", 16);
    struct wire_addr ours = addr("10.0.0.1");
    struct wire_addr watched = addr("10.0.0.2");
    struct wire_addr other = addr("10.0.0.3");
    struct wire_addr v6 = addr("2001:db8::2");
    struct net_change c;
    uint8_t mac[6];
    net_watch(a, &watched, 0);
    net_resolve(a, &other, 0, mac);
    net_resolve(a, &v6, 0, mac);
    carry(a, b, 0);
    while (net_next_change(a, &c))
        ;
    ck_assert_int_eq(net_addr_del(a, &ours), 0);
    ck_assert_int_eq(net_neigh_state(a, &other), NET_NONE);
    ck_assert_int_eq(net_neigh_state(a, &watched), NET_FAILED);
    ck_assert_int_eq(net_neigh_state(a, &v6), NET_REACHABLE);
    ck_assert(net_next_change(a, &c));
    ck_assert(!c.reachable);
    ck_assert_int_eq(net_resolve(a, &watched, 0, mac), -ENETUNREACH);
    uint64_t now = NET_FAILED_NS;
    net_expire(a, now);
    ck_assert_uint_eq(carry(a, b, now), 0);
    ck_assert_uint_eq(net_deadline(a), 2 * NET_FAILED_NS);
    ck_assert_int_eq(net_addr_add(a, &ours, 24, now), 0);
    now = 2 * NET_FAILED_NS + 1;
    net_expire(a, now);
    carry(a, b, now);
    ck_assert_int_eq(net_neigh_state(a, &watched), NET_REACHABLE);
    net_port_free(a);
    net_port_free(b);
}
END_TEST

UNIT_MAIN("net neigh", wire_07_resolve, wire_07_request_frames, wire_07_unreachable,
          wire_07_failed_forgotten, wire_07_refresh_on_use, wire_07_watched, wire_31_no_neighbour,
          wire_07_gateway, wire_07_probe_tries, gid_04_address_removed)
