/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The neighbour table is bounded: which hosts get a place, and which lose theirs.
 */
#include <errno.h>
#include <string.h>

#include "neigh_rig.h"

/* One ARP request from 10.0.x.y for 10.0.0.1. */
static void ask_us(struct net_port *p, uint32_t ip)
{
    uint8_t f[60] = {0};
    uint8_t r[NET_TX_MAX];
    memcpy(f, all_mac, 6);
    memcpy(f + 6, mac_c, 6);
    memcpy(f + 12, (const uint8_t[]){8, 6, 0, 1, 8, 0, 6, 4, 0, 1}, 10);
    memcpy(f + 22, mac_c, 6);
    wire_put32(f + 28, ip);
    wire_put32(f + 38, 0x0A000001u);
    ck_assert_uint_ne(net_rx(p, f, sizeof(f), 0, r, sizeof(r)), 0);
}

static unsigned count(const struct net_port *p, enum net_state s)
{
    unsigned n = 0;
    for (uint32_t i = 0; i < p->config.neighbours; i++)
        n += p->table[i].state == s;
    return n;
}

/* SEC-03 SEC-18 a flood of askers takes a quarter of the table and no more; all get an answer. */
START_TEST(sec_03_flood_of_askers)
{
    struct net_port *a = port_new(mac_a, "10.0.0.1", "2001:db8::1", 64);
    struct wire_addr mine[48];
    uint8_t mac[6];
    for (uint32_t i = 0; i < 48; i++) {
        mine[i] = wire_addr_v4(0x0A000100u + i + 1);
        ck_assert_int_eq(net_resolve(a, &mine[i], 0, mac), -EINPROGRESS);
    }
    for (uint32_t i = 0; i < 5000; i++)
        ask_us(a, 0x0A001000u + i);
    for (uint32_t i = 0; i < 48; i++)
        ck_assert_int_eq(net_neigh_state(a, &mine[i]), NET_INCOMPLETE);
    ck_assert_uint_eq(count(a, NET_STALE), 16);
    /* The latest askers are the ones that are known. */
    struct wire_addr last = wire_addr_v4(0x0A001000u + 4999);
    ck_assert_int_eq(net_neigh_state(a, &last), NET_STALE);
    net_port_free(a);
}
END_TEST

/* SEC-03 once we send to an asker it no longer counts as one: a flood doesn't push it out, and its
 * place in the askers' quarter is free. */
START_TEST(sec_03_asker_becomes_asked)
{
    struct net_port *a = port_new(mac_a, "10.0.0.1", "2001:db8::1", 64);
    struct wire_addr friend = wire_addr_v4(0x0A000900u + 1);
    uint8_t mac[6];
    ask_us(a, 0x0A000901u);
    ck_assert_int_eq(net_neigh_state(a, &friend), NET_STALE);
    ck_assert_int_eq(net_resolve(a, &friend, 0, mac), 0);
    ck_assert_mem_eq(mac, mac_c, 6);
    for (uint32_t i = 0; i < 100; i++)
        ask_us(a, 0x0A001000u + i);
    ck_assert_int_eq(net_neigh_state(a, &friend), NET_PROBE);
    ck_assert_uint_eq(count(a, NET_STALE), 16);
    ck_assert_uint_eq(net_counter(a, NET_NEIGH_EVICTED), 100 - 16);
    /* Failed neighbours are removed from the right list: again and again, nothing leaks. */
    for (uint32_t round = 0; round < 20; round++) {
        for (uint32_t i = 0; i < 48; i++) {
            struct wire_addr n = wire_addr_v4(0x0A002000u + round * 64 + i + 1);
            int rc = net_resolve(a, &n, round * 20000 * MS, mac);
            ck_assert_int_eq(rc, -EINPROGRESS);
        }
        for (unsigned k = 0; k < 400 && count(a, NET_INCOMPLETE) + count(a, NET_FAILED); k++)
            net_expire(a, net_deadline(a));
        ck_assert_uint_eq(count(a, NET_INCOMPLETE) + count(a, NET_FAILED), 0);
        for (uint32_t i = 0; i < 100; i++)
            ask_us(a, 0x0A001000u + i);
        ck_assert_uint_eq(count(a, NET_STALE), 16);
    }
    net_port_free(a);
}
END_TEST

/* WIRE-07 an answer or a failure takes back a request that wasn't sent yet. */
START_TEST(wire_07_request_taken_back)
{
    struct net_port *a = port_new(mac_a, "10.0.0.1", "2001:db8::1", 16);
    struct wire_addr dst = addr("10.0.0.2");
    uint8_t mac[6];
    uint8_t b[NET_TX_MAX];
    net_resolve(a, &dst, 0, mac);
    gratuitous(a, "10.0.0.2", mac_b, 0); /* unasked news */
    ck_assert_uint_eq(net_tx(a, b, sizeof(b), 0), 0);
    net_resolve(a, &dst, 0, mac); /* STALE: a probe */
    ck_assert_uint_ne(net_tx(a, b, sizeof(b), 0), 0);
    ck_assert_uint_eq(net_tx(a, b, sizeof(b), 0), 0);
    net_expire(a, NET_RETRY_NS); /* a second one, unsent; its answer was late */
    gratuitous(a, "10.0.0.2", mac_c, 0);
    ck_assert_int_eq(net_neigh_state(a, &dst), NET_STALE);
    ck_assert_uint_eq(net_tx(a, b, sizeof(b), 0), 0);

    dst = addr("10.0.0.3"); /* the port was full all the time */
    net_resolve(a, &dst, 0, mac);
    while (net_neigh_state(a, &dst) != NET_FAILED)
        net_expire(a, net_deadline(a));
    ck_assert_uint_eq(net_tx(a, b, sizeof(b), 0), 0);

    dst = addr("2001:db8::2"); /* the answer to a request of before */
    net_resolve(a, &dst, 0, mac);
    advertise(a, 0x40, mac_b, 0);
    ck_assert_int_eq(net_neigh_state(a, &dst), NET_REACHABLE);
    ck_assert_uint_eq(net_tx(a, b, sizeof(b), 0), 0);
    net_port_free(a);
}
END_TEST

/* SEC-03 a full table: askers go first, then the least recently used; watched ones never. */
START_TEST(sec_03_full_table)
{
    struct net_port *a = port_new(mac_a, "10.0.0.1", "2001:db8::1", 8);
    uint8_t mac[6];
    struct wire_addr n[10];
    ask_us(a, 0x0A000303u);
    for (uint32_t i = 0; i < 10; i++)
        n[i] = wire_addr_v4(0x0A000201u + i);
    for (uint32_t i = 0; i < 8; i++) /* the eighth takes the asker's place */
        ck_assert_int_eq(net_resolve(a, &n[i], 0, mac), -EINPROGRESS);
    ck_assert_uint_eq(count(a, NET_STALE), 0);
    ck_assert_uint_eq(net_counter(a, NET_NEIGH_EVICTED), 1);
    net_resolve(a, &n[0], 0, mac); /* used again: not the oldest any more */
    ck_assert_int_eq(net_resolve(a, &n[8], 0, mac), -EINPROGRESS);
    ck_assert_int_eq(net_neigh_state(a, &n[0]), NET_INCOMPLETE);
    ck_assert_int_eq(net_neigh_state(a, &n[1]), NET_NONE);
    /* Watch all: no room for others. */
    static const unsigned kept[8] = {0, 2, 3, 4, 5, 6, 7, 8};
    for (unsigned i = 0; i < 8; i++)
        ck_assert_int_eq(net_watch(a, &n[kept[i]], 0), -EINPROGRESS);
    ck_assert_int_eq(net_resolve(a, &n[9], 0, mac), -ENOBUFS);
    ck_assert_int_eq(net_watch(a, &n[9], 0), -ENOBUFS);
    ask_us(a, 0x0A000304u); /* is answered, can't be kept */
    net_unwatch(a, &n[4]);
    ck_assert_int_eq(net_resolve(a, &n[9], 0, mac), -EINPROGRESS);
    ck_assert_int_eq(net_neigh_state(a, &n[4]), NET_NONE);
    ck_assert_uint_eq(carry(a, NULL, 0), 8); /* each one in the table is asked for once */
    net_port_free(a);
}
END_TEST

UNIT_MAIN("net neigh, a full table", sec_03_flood_of_askers, sec_03_asker_becomes_asked,
          wire_07_request_taken_back, sec_03_full_table)
