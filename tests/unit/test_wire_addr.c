/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "unit.h"
#include "wire.h"

static struct wire_addr addr(const char *s)
{
    struct wire_addr a;
    ck_assert_msg(wire_addr_parse(s, &a) == 0, "%s", s);
    return a;
}

/* GID-01 the GID of an IPv4 address is ::ffff:a.b.c.d, that of an IPv6 address is the address. */
START_TEST(gid_01_address_is_gid)
{
    static const uint8_t mapped[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 192, 0, 2, 1};
    static const uint8_t v6[16] = {0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
    struct wire_addr a = addr("192.0.2.1");
    ck_assert_mem_eq(a.b, mapped, 16);
    a = wire_addr_v4(0xC0000201u);
    ck_assert_mem_eq(a.b, mapped, 16);
    a = addr("::ffff:192.0.2.1");
    ck_assert_mem_eq(a.b, mapped, 16);
    a = addr("2001:db8::1");
    ck_assert_mem_eq(a.b, v6, 16);
}
END_TEST

/* GID-02 the network type follows the GID. */
START_TEST(gid_02_network_type)
{
    static const struct {
        const char *text;
        bool v4, multicast;
    } rows[] = {
        {"192.0.2.1", true, false},
        {"::ffff:192.0.2.1", true, false},
        {"::fffe:c000:201", false, false},
        {"::192.0.2.1", false, false},
        {"fe80::1", false, false},
        {"223.255.255.255", true, false},
        {"224.0.0.1", true, true},
        {"239.255.255.255", true, true},
        {"240.0.0.1", true, false},
        {"ff02::1", false, true},
        {"fe00::1", false, false},
        {"0:0:0:0:1:ffff:192.0.2.1", false, false},
        {"::", false, false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct wire_addr a = addr(rows[i].text);
        ck_assert_msg(wire_addr_is_v4(&a) == rows[i].v4, "%s", rows[i].text);
        ck_assert_msg(wire_addr_is_multicast(&a) == rows[i].multicast, "%s", rows[i].text);
    }
}
END_TEST

/* GID-01 text form and back. */
START_TEST(gid_01_text)
{
    static const char *const texts[] = {
        "10.0.0.1", "255.255.255.255", "fe80::1", "2001:db8::ffff:1", "::", "::1"};
    char buf[64];
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct wire_addr a = addr(texts[i]);
        ck_assert_ptr_eq(wire_addr_str(&a, buf, sizeof(buf)), buf);
        ck_assert_str_eq(buf, texts[i]);
    }
    struct wire_addr a = addr("10.0.0.1");
    wire_addr_str(&a, buf, 5); /* a small buffer gets as much as fits */
    ck_assert_str_eq(buf, "10.0");

    static const char *const bad[] = {"",         "10.0.0", "10.0.0.256", "10.0.0.1 ",
                                      "fe80:::1", "x",      "1::g"};
    struct wire_addr before = addr("192.0.2.9");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct wire_addr out = before;
        ck_assert_msg(wire_addr_parse(bad[i], &out) == -EINVAL, "'%s'", bad[i]);
        ck_assert_mem_eq(&out, &before, sizeof(out));
    }
}
END_TEST

/* WIRE-31 multicast MACs. */
START_TEST(wire_31_multicast_mac)
{
    static const struct {
        const char *group;
        uint8_t mac[6];
    } rows[] = {
        {"224.0.0.1", {0x01, 0x00, 0x5E, 0x00, 0x00, 0x01}},
        {"239.129.2.3", {0x01, 0x00, 0x5E, 0x01, 0x02, 0x03}}, /* only the low 23 bits */
        {"ff02::1:ff12:3456", {0x33, 0x33, 0xFF, 0x12, 0x34, 0x56}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct wire_addr a = addr(rows[i].group);
        uint8_t mac[6];
        wire_mcast_mac(&a, mac);
        ck_assert_mem_eq(mac, rows[i].mac, 6);
    }
}
END_TEST

/* WIRE-19 WIRE-20 the source port of a flow. */
START_TEST(wire_20_source_port)
{
    static const struct {
        uint32_t fl, a, b;
        uint16_t port;
    } rows[] = {
        {0x54321, 1, 2, 0xC334},  {0xFFFFF, 1, 2, 0xFFC0},   {0x00001, 1, 2, 0xC001},
        {0, 0x11, 0x12, 0xC132},  {0, 0x123, 0xABC, 0xF384}, {0, 0xFFFFFE, 0xFFFFFE, 0xFF04},
        {0x154321, 1, 2, 0xC334}, /* only 20 bits of a flow label count */
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        ck_assert_uint_eq(wire_udp_sport(rows[i].fl, rows[i].a, rows[i].b), rows[i].port);
        ck_assert_uint_eq(wire_udp_sport(rows[i].fl, rows[i].b, rows[i].a), rows[i].port);
    }
}
END_TEST

START_TEST(key_03_pkey_match)
{
    static const struct {
        const char *name;
        uint16_t packet, table;
        bool match;
    } rows[] = {
        {"KEY-03 full and full", 0xFFFF, 0xFFFF, true},
        {"KEY-03 limited and full", 0x7FFF, 0xFFFF, true},
        {"KEY-03 full and limited", 0xFFFF, 0x7FFF, true},
        {"KEY-03 limited and limited", 0x7FFF, 0x7FFF, false},
        {"KEY-02 0 never matches", 0x0000, 0xFFFF, false},
        {"KEY-02 0 never matches 0", 0x0000, 0x0000, false},
        {"KEY-02 nor with the membership bit", 0x8000, 0x8000, false},
        {"KEY-03 another partition", 0x8001, 0x0001, true},
        {"KEY-03 different partitions", 0x8001, 0x8002, false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        ck_assert_msg(wire_pkey_match(rows[i].packet, rows[i].table) == rows[i].match, "%s",
                      rows[i].name);
}
END_TEST

/* WIRE-26 path MTU enum and the port MTU of an IP MTU. */
START_TEST(wire_26_mtu)
{
    static const uint32_t octets[5] = {256, 512, 1024, 2048, 4096};
    for (unsigned e = 1; e <= 5; e++) {
        ck_assert_uint_eq(wire_mtu_octets(e), octets[e - 1]);
        ck_assert_uint_eq(wire_mtu_enum(octets[e - 1]), e);
    }
    static const uint32_t none[] = {0, 6, 7, UINT32_MAX};
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        ck_assert_uint_eq(wire_mtu_octets(none[i]), 0);
    static const uint32_t not_mtu[] = {0, 128, 255, 257, 1500, 8192};
    for (size_t i = 0; i < sizeof(not_mtu) / sizeof(not_mtu[0]); i++)
        ck_assert_uint_eq(wire_mtu_enum(not_mtu[i]), 0);
    static const struct {
        uint32_t ip_mtu;
        unsigned e;
    } rows[] = {{0, 0},    {351, 0},  {352, 1},  {1119, 2}, {1120, 3},
                {1500, 3}, {4191, 4}, {4192, 5}, {9000, 5}, {UINT32_MAX, 5}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        ck_assert_msg(wire_mtu_for_ip(rows[i].ip_mtu) == rows[i].e, "WIRE-26 %u", rows[i].ip_mtu);
}
END_TEST

UNIT_MAIN("wire addr", gid_01_address_is_gid, gid_02_network_type, gid_01_text,
          wire_31_multicast_mac, wire_20_source_port, key_03_pkey_match, wire_26_mtu)
