/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "net_port.h"
#include "unit.h"

static struct wire_addr addr(const char *s)
{
    struct wire_addr a;
    ck_assert_msg(wire_addr_parse(s, &a) == 0, "%s", s);
    return a;
}

static struct net_port *port_new(void)
{
    struct net_config c = {.mac = {2, 0, 0, 0, 0, 1}};
    struct net_port *p = net_port_new(&c, 0);
    ck_assert_ptr_nonnull(p);
    return p;
}

static int add(struct net_port *p, const char *s, unsigned prefix)
{
    struct wire_addr a = addr(s);
    return net_addr_add(p, &a, prefix, 0);
}

/* GID-01 GID-04 addresses come and go at run time; adding one twice changes nothing. */
START_TEST(gid_04_add_and_delete)
{
    static const struct {
        const char *name, *text;
        unsigned prefix;
        int rc;
    } rows[] = {
        {"GID-01 IPv4", "10.0.0.1", 24, 0},
        {"GID-01 twice", "10.0.0.1", 16, -EEXIST},
        {"GID-01 IPv6", "2001:db8::1", 64, 0},
        {"GID-01 a host", "10.9.9.9", 32, 0},
        {"GID-01 point to point", "10.9.8.0", 31, 0},
        {"GID-01 prefix too long", "10.0.0.2", 33, -EINVAL},
        {"GID-01 prefix too long, IPv6", "2001:db8::2", 129, -EINVAL},
        {"WIRE-29 unspecified", "0.0.0.0", 24, -EINVAL},
        {"WIRE-29 unspecified, IPv6", "::", 64, -EINVAL},
        {"WIRE-29 group", "224.0.0.1", 24, -EINVAL},
        {"WIRE-29 group, IPv6", "ff02::1", 64, -EINVAL},
        {"WIRE-29 broadcast", "255.255.255.255", 24, -EINVAL},
        {"WIRE-29 broadcast of its prefix", "10.1.0.255", 24, -EINVAL},
        {"WIRE-29 network of its prefix", "10.1.0.0", 24, -EINVAL},
    };
    struct net_port *p = port_new();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        ck_assert_msg(add(p, rows[i].text, rows[i].prefix) == rows[i].rc, "%s", rows[i].name);
    struct wire_addr a;
    ck_assert_uint_eq(p->own[1].prefix, 96 + 24); /* the second add changed nothing */
    ck_assert_uint_eq(p->own[2].prefix, 64);
    a = addr("10.0.0.1");
    ck_assert(net_addr_has(p, &a));
    ck_assert_int_eq(net_addr_del(p, &a), 0);
    ck_assert(!net_addr_has(p, &a));
    ck_assert_int_eq(net_addr_del(p, &a), -ENOENT);
    a = addr("2001:db8::1"); /* the others are still there, in order */
    ck_assert(net_addr_has(p, &a));
    ck_assert_mem_eq(&p->own[1].addr, &a, sizeof(a));
    net_port_free(p);
}
END_TEST

/* SEC-03 the table of addresses is bounded. */
START_TEST(sec_03_address_table_full)
{
    struct net_port *p = port_new();
    for (uint32_t i = 1; i < NET_ADDRS_MAX; i++) {
        struct wire_addr a = wire_addr_v4(0x0A000000u + i);
        ck_assert_int_eq(net_addr_add(p, &a, 24, 0), 0);
    }
    ck_assert_int_eq(add(p, "10.0.0.200", 24), -ENOSPC);
    ck_assert_int_eq(add(p, "10.0.0.1", 24), -EEXIST);
    net_port_free(p);
}
END_TEST

/* WIRE-07 WIRE-28 GID-02 next hop and source for a destination. "" = unreachable. */
START_TEST(wire_28_routes)
{
    static const struct {
        const char *name, *dst, *hop, *src;
    } rows[] = {
        {"WIRE-07 on-link", "10.0.0.7", "10.0.0.7", "10.0.0.1"},
        {"WIRE-07 the longer prefix", "10.0.0.130", "10.0.0.130", "10.0.0.129"},
        {"WIRE-07 by the gateway", "192.0.2.1", "10.0.0.254", "10.0.0.129"},
        {"WIRE-07 ourselves", "10.0.0.1", "10.0.0.1", "10.0.0.1"},
        {"WIRE-29 broadcast of a prefix", "10.0.0.255", "", ""},
        {"WIRE-29 network of a prefix", "10.0.0.0", "", ""},
        {"WIRE-29 broadcast", "255.255.255.255", "", ""},
        {"WIRE-29 unspecified", "0.0.0.0", "", ""},
        {"WIRE-07 IPv6 on-link", "2001:db8::7", "2001:db8::7", "2001:db8::1"},
        {"WIRE-07 IPv6 by the link-local gateway", "2001:db9::7", "fe80::fe", "2001:db8::1"},
        {"GID-03 link-local", "fe80::7", "fe80::7", "fe80::ff:fe00:1"},
        {"WIRE-31 group", "239.1.1.1", "239.1.1.1", "10.0.0.1"},
        {"WIRE-31 group, IPv6", "ff0e::1", "ff0e::1", "2001:db8::1"},
        {"WIRE-31 link-local group", "ff02::7", "ff02::7", "fe80::ff:fe00:1"},
    };
    struct net_port *p = port_new();
    ck_assert_int_eq(add(p, "10.0.0.1", 24), 0);
    ck_assert_int_eq(add(p, "10.0.0.129", 25), 0);
    ck_assert_int_eq(add(p, "2001:db8::1", 64), 0);
    struct wire_addr gw = addr("10.0.0.254");
    ck_assert_int_eq(net_gateway_set(p, &gw), 0);
    gw = addr("fe80::fe");
    ck_assert_int_eq(net_gateway_set(p, &gw), 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct wire_addr dst = addr(rows[i].dst);
        struct wire_addr out;
        char text[64];
        int rc = net_next_hop(p, &dst, &out);
        ck_assert_msg(rc == (rows[i].hop[0] ? 0 : -ENETUNREACH), "%s: %d", rows[i].name, rc);
        if (rc == 0)
            ck_assert_msg(strcmp(wire_addr_str(&out, text, sizeof(text)), rows[i].hop) == 0,
                          "%s: hop %s", rows[i].name, text);
        rc = net_source(p, &dst, &out);
        ck_assert_msg(rc == (rows[i].src[0] ? 0 : -ENETUNREACH), "%s: %d", rows[i].name, rc);
        if (rc == 0)
            ck_assert_msg(strcmp(wire_addr_str(&out, text, sizeof(text)), rows[i].src) == 0,
                          "%s: source %s", rows[i].name, text);
    }
    net_port_free(p);
}
END_TEST

/* WIRE-07 a gateway that no prefix covers is on the link: hosts in clouds have a prefix of one
 * address. One at the edge of an own prefix is nowhere. */
START_TEST(wire_07_gateway_outside)
{
    static const struct {
        const char *own, *gateway, *far;
        unsigned prefix;
    } rows[] = {
        {"10.128.0.2", "10.128.0.1", "10.128.0.9", 32},
        {"10.128.0.2", "169.254.1.1", "192.0.2.1", 24},
        {"2001:db8::2", "2001:db8::1", "2001:db9::1", 128},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct net_port *p = port_new();
        struct wire_addr own = addr(rows[i].own), gw = addr(rows[i].gateway);
        struct wire_addr far = addr(rows[i].far), out;
        uint8_t mac[6], buf[NET_TX_MAX];
        ck_assert_int_eq(net_gateway_set(p, &gw), 0);
        if (wire_addr_is_v4(&own)) /* without an address of the family there is no way */
            ck_assert_int_eq(net_next_hop(p, &far, &out), -ENETUNREACH);
        ck_assert_int_eq(add(p, rows[i].own, rows[i].prefix), 0);
        ck_assert_int_eq(net_next_hop(p, &far, &out), 0);
        ck_assert_mem_eq(&out, &gw, sizeof(gw));
        ck_assert_int_eq(net_source(p, &far, &out), 0);
        ck_assert_mem_eq(&out, &own, sizeof(own));
        ck_assert_int_eq(net_watch(p, &gw, 0), -EINPROGRESS);
        uint64_t asked = p->counters[NET_TX_ARP] + p->counters[NET_TX_ND];
        net_resolve(p, &far, 0, mac);
        for (unsigned n = 0; n < 16 && net_tx(p, buf, sizeof(buf), 0); n++)
            ;
        ck_assert_uint_gt(p->counters[NET_TX_ARP] + p->counters[NET_TX_ND], asked);
        net_port_free(p);
    }
    struct net_port *p = port_new();
    struct wire_addr edge = addr("10.0.0.255"), far = addr("192.0.2.1"), out;
    ck_assert_int_eq(add(p, "10.0.0.1", 24), 0);
    ck_assert_int_eq(net_gateway_set(p, &edge), 0);
    ck_assert_int_eq(net_next_hop(p, &far, &out), -ENETUNREACH);
    net_port_free(p);
}
END_TEST

/* WIRE-07 without a gateway, or without an address of its family, other prefixes are unreachable.
 */
START_TEST(wire_07_no_route)
{
    struct net_port *p = port_new();
    struct wire_addr far = addr("192.0.2.1");
    struct wire_addr far6 = addr("2001:db9::1");
    struct wire_addr gw = addr("10.0.0.254");
    struct wire_addr hop;
    uint8_t mac[6];
    ck_assert_int_eq(net_next_hop(p, &far, &hop), -ENETUNREACH);
    ck_assert_int_eq(net_gateway_set(p, &gw), 0);
    ck_assert_int_eq(net_next_hop(p, &far, &hop), -ENETUNREACH);
    ck_assert_int_eq(add(p, "10.0.0.1", 24), 0);
    ck_assert_int_eq(net_next_hop(p, &far, &hop), 0);
    ck_assert_int_eq(net_next_hop(p, &far6, &hop), -ENETUNREACH);
    ck_assert_int_eq(net_resolve(p, &far6, 0, mac), -ENETUNREACH);
    gw = addr("239.1.1.1");
    ck_assert_int_eq(net_gateway_set(p, &gw), -EINVAL);
    ck_assert_int_eq(net_next_hop(p, &far, &hop), 0); /* the one there was */
    net_port_free(p);
}
END_TEST

/* WIRE-07 a short IPv6 prefix doesn't cover the IPv4-mapped addresses. */
START_TEST(wire_07_mapped_addresses)
{
    struct net_port *p = port_new();
    struct wire_addr far = addr("192.0.2.1");
    struct wire_addr far6 = addr("2001:db9::1");
    struct wire_addr hop;
    ck_assert_int_eq(add(p, "10.0.0.1", 24), 0);
    ck_assert_int_eq(add(p, "2001:db8::1", 0), 0);
    ck_assert_int_eq(net_next_hop(p, &far, &hop), -ENETUNREACH);
    ck_assert_int_eq(net_next_hop(p, &far6, &hop), 0);
    net_port_free(p);
}
END_TEST

UNIT_MAIN("net addr", gid_04_add_and_delete, sec_03_address_table_full, wire_28_routes,
          wire_07_gateway_outside, wire_07_no_route, wire_07_mapped_addresses)
