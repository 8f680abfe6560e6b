/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Multicast membership: the reports sent, their times and destinations.
 */
#include <errno.h>
#include <string.h>

#include "net_rig.h"

static uint8_t f[NET_TX_MAX];

/* A port at 10.0.0.1/24 that has sent its announcements. */
static struct net_port *port_new(void)
{
    struct net_config c = {.neighbours = 16};
    struct wire_addr a = addr("10.0.0.1");
    memcpy(c.mac, our_mac, 6);
    struct net_port *p = net_port_new(&c, 0);
    ck_assert_ptr_nonnull(p);
    ck_assert_int_eq(net_addr_add(p, &a, 24, 0), 0);
    for (uint64_t now = 0; now != UINT64_MAX; now = net_deadline(p)) {
        net_expire(p, now);
        while (net_tx(p, f, sizeof(f), now))
            ;
    }
    return p;
}

static size_t next(struct net_port *p, uint64_t now)
{
    net_expire(p, now);
    memset(f, 0xEE, sizeof(f));
    return net_tx(p, f, sizeof(f), now);
}

/* The frame in f: IGMP of this type, to this address, about this group; everything else right. */
static void is_igmp(const char *to, uint8_t type, uint8_t record, const char *group)
{
    struct wire_addr dst = addr(to), g = addr(group);
    uint8_t mac[6];
    const uint8_t *ip = f + 14, *igmp = ip + 24;
    size_t len = record ? 16 : 8;
    wire_mcast_mac(&dst, mac);
    ck_assert_mem_eq(f, mac, 6);
    ck_assert_mem_eq(f + 6, our_mac, 6);
    ck_assert_uint_eq(wire_get16(f + 12), 0x0800);
    ck_assert_uint_eq(ip[0], 0x46);
    ck_assert_uint_eq(wire_get16(ip + 2), 24 + len);
    ck_assert_uint_eq(ip[8], 1); /* TTL */
    ck_assert_uint_eq(ip[9], 2);
    ck_assert_uint_eq(wire_get32(ip + 12), 0x0A000001u);
    ck_assert_mem_eq(ip + 16, dst.b + 12, 4);
    ck_assert_uint_eq(wire_get32(ip + 20), 0x94040000u); /* router alert */
    ck_assert_uint_eq(wire_csum_add(0, ip, 24), 0xFFFF);
    ck_assert_uint_eq(wire_csum_add(0, igmp, len), 0xFFFF);
    ck_assert_uint_eq(igmp[0], type);
    if (record) {
        ck_assert_uint_eq(wire_get32(igmp + 4), 1); /* records */
        ck_assert_uint_eq(wire_get32(igmp + 8), (uint32_t)record << 24);
    }
    ck_assert_mem_eq(igmp + (record ? 12 : 4), g.b + 12, 4);
}

static void is_mld(const char *to, uint8_t type, uint8_t record, const char *group)
{
    static const uint8_t alert[8] = {58, 0, 5, 2, 0, 0, 1, 0};
    struct wire_addr dst = addr(to), g = addr(group), src = addr("fe80::ff:fe00:1");
    const uint8_t *ip = f + 14, *mld = ip + 48;
    size_t len = record ? 28 : 24;
    uint8_t tail[4] = {0, (uint8_t)len, 0, 58};
    ck_assert_uint_eq(wire_get16(f + 12), 0x86DD);
    ck_assert_uint_eq(wire_get16(ip + 4), 8 + len);
    ck_assert_uint_eq(ip[6], 0);
    ck_assert_uint_eq(ip[7], 1);
    ck_assert_mem_eq(ip + 8, src.b, 16);
    ck_assert_mem_eq(ip + 24, dst.b, 16);
    ck_assert_mem_eq(ip + 40, alert, 8);
    uint16_t sum = wire_csum_add(wire_csum_add(0, ip + 8, 32), tail, 4);
    ck_assert_uint_eq(wire_csum_add(sum, mld, len), 0xFFFF);
    ck_assert_uint_eq(mld[0], type);
    ck_assert_uint_eq(record ? mld[8] : 0, record);
    ck_assert_mem_eq(mld + (record ? 12 : 8), g.b, 16);
}

/* A query comes in; group "" = general, `longer` = of the newer version. */
static void igmp_query(struct net_port *p, const char *group, uint8_t code, bool longer,
                       uint64_t now)
{
    uint8_t q[60] = {0x01, 0, 0x5E, 0, 0, 1, 2, 0, 0, 0, 0, 9, 0x08, 0x00}, reply[256];
    uint8_t *ip = q + 14, *igmp = ip + 24;
    size_t len = longer ? 12 : 8;
    struct wire_addr g = addr(*group ? group : "0.0.0.0");
    ip[0] = 0x46;
    wire_put16(ip + 2, (uint16_t)(24 + len));
    ip[8] = 1;
    ip[9] = 2;
    wire_put32(ip + 12, 0x0A000009u);
    wire_put32(ip + 16, 0xE0000001u);
    wire_put32(ip + 20, 0x94040000u);
    wire_csum_put(ip + 10, wire_csum_add(0, ip, 24));
    igmp[0] = 0x11;
    igmp[1] = code;
    memcpy(igmp + 4, g.b + 12, 4);
    wire_csum_put(igmp + 2, wire_csum_add(0, igmp, len));
    ck_assert_uint_eq(net_rx(p, q, sizeof(q), now, reply, sizeof(reply)), 0);
}

/* The same of MLD, from `src` with this hop limit; `grant` in ms. */
static void mld_query(struct net_port *p, const char *src, const char *group, uint8_t hop_limit,
                      uint16_t grant, bool longer, uint64_t now)
{
    uint8_t q[14 + 48 + 28] = {0x33, 0x33, 0, 0, 0, 1, 2, 0, 0, 0, 0, 9, 0x86, 0xDD}, reply[256];
    static const uint8_t alert[8] = {58, 0, 5, 2, 0, 0, 1, 0};
    struct wire_addr from = addr(src), to = addr("ff02::1"), g = addr(*group ? group : "::");
    uint8_t *ip = q + 14, *mld = ip + 48;
    size_t len = longer ? 28 : 24;
    uint8_t tail[4] = {0, (uint8_t)len, 0, 58};
    ip[0] = 0x60;
    wire_put16(ip + 4, (uint16_t)(8 + len));
    ip[7] = hop_limit;
    memcpy(ip + 8, from.b, 16);
    memcpy(ip + 24, to.b, 16);
    memcpy(ip + 40, alert, 8);
    mld[0] = 130;
    wire_put16(mld + 4, grant);
    memcpy(mld + 8, g.b, 16);
    wire_csum_put(mld + 2,
                  wire_csum_add(wire_csum_add(wire_csum_add(0, ip + 8, 32), tail, 4), mld, len));
    ck_assert_uint_eq(net_rx(p, q, 14 + 48 + len, now, reply, sizeof(reply)), 0);
}

/* UD-11: a join is reported twice, a second apart, and so is a leave; then there are no reports. */
START_TEST(ud_11_join_and_leave)
{
    struct net_port *p = port_new();
    struct wire_addr g = addr("239.1.2.3"), uni = addr("10.0.0.7"), out;
    uint64_t s = 1000 * NET_NS_PER_MS, now = 100 * s;
    bool member;
    ck_assert_int_eq(net_group_join(p, &uni, now), -EINVAL);
    ck_assert_int_eq(net_group_leave(p, &g, now), -ENOENT);
    ck_assert_int_eq(net_group_join(p, &g, now), 0);
    ck_assert_int_eq(net_group_join(p, &g, now), -EEXIST);
    ck_assert_uint_gt(next(p, now), 0);
    is_igmp("224.0.0.22", 0x22, 4, "239.1.2.3");
    ck_assert_uint_eq(next(p, now), 0);
    ck_assert_uint_eq(net_deadline(p), now + s);
    ck_assert_uint_gt(next(p, now + s), 0);
    is_igmp("224.0.0.22", 0x22, 4, "239.1.2.3");
    ck_assert_uint_eq(next(p, now + 5 * s), 0);
    ck_assert_uint_eq(net_deadline(p), UINT64_MAX);
    ck_assert(net_group_get(p, 0, &out, &member) && member);
    ck_assert_int_eq(net_group_leave(p, &g, now), 0);
    ck_assert_uint_gt(next(p, now), 0);
    is_igmp("224.0.0.22", 0x22, 3, "239.1.2.3");
    ck_assert_uint_gt(next(p, now + s), 0);
    ck_assert(!net_group_get(p, 0, &out, &member));
    ck_assert_uint_eq(net_deadline(p), UINT64_MAX);
    net_port_free(p);
}
END_TEST

START_TEST(ud_11_ipv6)
{
    struct net_port *p = port_new();
    struct wire_addr g = addr("ff15::77"), here = addr("ff02::1");
    uint64_t now = 1;
    ck_assert_int_eq(net_group_join(p, &here, now), 0);
    ck_assert_uint_eq(next(p, now), 0); /* none to report */
    ck_assert_int_eq(net_group_join(p, &g, now), 0);
    ck_assert_uint_gt(next(p, now), 0);
    is_mld("ff02::16", 143, 4, "ff15::77");
    ck_assert_int_eq(net_group_leave(p, &g, now), 0);
    ck_assert_uint_gt(next(p, now), 0);
    is_mld("ff02::16", 143, 3, "ff15::77");
    net_port_free(p);
}
END_TEST

/* UD-11: a query for all, or for our group, is answered once, within the time that it grants. */
START_TEST(ud_11_queries)
{
    struct net_port *p = port_new();
    struct wire_addr g = addr("239.1.2.3");
    uint64_t s = 1000 * NET_NS_PER_MS, now = 100 * s;
    net_group_join(p, &g, now);
    next(p, now);
    next(p, now + s);
    now += 10 * s;
    igmp_query(p, "239.9.9.9", 10, true, now);
    ck_assert_uint_eq(net_deadline(p), UINT64_MAX);
    igmp_query(p, "", 10, true, now); /* one second */
    ck_assert_uint_lt(net_deadline(p), now + s);
    ck_assert_uint_gt(next(p, now + s), 0);
    is_igmp("224.0.0.22", 0x22, 2, "239.1.2.3");
    ck_assert_uint_eq(next(p, now + s), 0);
    /* An older querier: its version for a while. */
    igmp_query(p, "239.1.2.3", 10, false, now);
    ck_assert_uint_gt(next(p, now + s), 0);
    is_igmp("239.1.2.3", 0x16, 0, "239.1.2.3");
    net_group_leave(p, &g, now + s);
    ck_assert_uint_gt(next(p, now + s), 0);
    is_igmp("224.0.0.2", 0x17, 0, "239.1.2.3");
    ck_assert_uint_eq(next(p, now + 9 * s), 0);
    net_group_join(p, &g, now + 259 * s);
    ck_assert_uint_gt(next(p, now + 259 * s), 0);
    is_igmp("239.1.2.3", 0x16, 0, "239.1.2.3");
    ck_assert_uint_gt(next(p, now + 260 * s), 0);
    is_igmp("224.0.0.22", 0x22, 4, "239.1.2.3");
    net_port_free(p);
}
END_TEST

/* UD-11: the same over IPv6. */
START_TEST(ud_11_queries_v6)
{
    struct net_port *p = port_new();
    struct wire_addr g = addr("ff15::77");
    uint64_t s = 1000 * NET_NS_PER_MS, now = 100 * s;
    net_group_join(p, &g, now);
    next(p, now);
    next(p, now + s);
    now += 10 * s;
    mld_query(p, "fe80::9", "ff15::78", 1, 1000, true, now);
    ck_assert_uint_eq(net_deadline(p), UINT64_MAX);
    mld_query(p, "fe80::9", "", 1, 1000, true, now);
    ck_assert_uint_lt(net_deadline(p), now + s);
    ck_assert_uint_gt(next(p, now + s), 0);
    is_mld("ff02::16", 143, 2, "ff15::77");
    mld_query(p, "fe80::9", "ff15::77", 1, 1000, false, now);
    ck_assert_uint_gt(next(p, now + s), 0);
    is_mld("ff15::77", 131, 0, "ff15::77");
    net_group_leave(p, &g, now + s);
    ck_assert_uint_gt(next(p, now + s), 0);
    is_mld("ff02::2", 132, 0, "ff15::77");
    net_port_free(p);
}
END_TEST

/* SEC-02: a query from off the link is no querier's (RFC 3810 section 5.1.14). */
START_TEST(sec_02_queries_from_afar)
{
    struct net_port *p = port_new();
    struct wire_addr g = addr("ff15::77");
    net_group_join(p, &g, 0);
    next(p, 0);
    next(p, NET_GROUP_NS);
    mld_query(p, "2001:db8::9", "", 1, 0, true, 5 * NET_GROUP_NS);
    mld_query(p, "::", "", 1, 0, true, 5 * NET_GROUP_NS);
    mld_query(p, "fe80::9", "", 64, 0, true, 5 * NET_GROUP_NS);
    ck_assert_uint_eq(net_counter(p, NET_RX_BAD), 3);
    ck_assert_uint_eq(net_deadline(p), UINT64_MAX);
    net_port_free(p);
}
END_TEST

/* SEC-02: damaged queries have no effect, with any lengths in them. */
START_TEST(sec_02_bad_queries)
{
    struct net_port *p = port_new();
    struct wire_addr g = addr("239.1.2.3");
    uint8_t q[60] = {0x01, 0, 0x5E, 0, 0, 1, 2, 0, 0, 0, 0, 9, 0x08, 0x00}, reply[256];
    net_group_join(p, &g, 0);
    next(p, 0);
    next(p, NET_GROUP_NS);
    for (unsigned ihl = 0; ihl < 16; ihl++) {
        for (unsigned total = 0; total < 100; total += 3) {
            q[14] = (uint8_t)(0x40 | ihl);
            wire_put16(q + 16, (uint16_t)total);
            q[14 + 8] = 1;
            q[14 + 9] = 2;
            q[38] = 0x11;
            net_rx(p, q, sizeof(q), 5 * NET_GROUP_NS, reply, sizeof(reply));
        }
    }
    ck_assert_uint_gt(net_counter(p, NET_RX_BAD), 0);
    ck_assert_uint_eq(net_deadline(p), UINT64_MAX);
    net_port_free(p);
}
END_TEST

/* Everything is reported again when the link comes back, and the table has an end. */
START_TEST(groups_again_and_too_many)
{
    struct net_port *p = port_new();
    struct wire_addr g = addr("239.0.0.0");
    for (unsigned i = 0; i < NET_GROUPS_MAX; i++) {
        g.b[15] = (uint8_t)i;
        ck_assert_int_eq(net_group_join(p, &g, 0), 0);
    }
    g.b[15] = NET_GROUPS_MAX;
    ck_assert_int_eq(net_group_join(p, &g, 0), -ENOSPC);
    unsigned n = 0;
    for (uint64_t now = 0; now <= 2 * NET_GROUP_NS; now += NET_GROUP_NS)
        while (next(p, now))
            n++;
    ck_assert_uint_eq(n, NET_GROUPS_MAX * NET_GROUP_REPORTS);
    net_announce(p, 3 * NET_GROUP_NS);
    ck_assert_uint_gt(next(p, 3 * NET_GROUP_NS), 0);
    net_port_free(p);
}
END_TEST

UNIT_MAIN("net group", ud_11_join_and_leave, ud_11_ipv6, ud_11_queries, ud_11_queries_v6,
          sec_02_queries_from_afar, sec_02_bad_queries, groups_again_and_too_many)
