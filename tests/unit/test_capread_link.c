/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Link types in the capture reader, and RoCE inside other protocols.
 */
#include "capture_file.h"

START_TEST(link_types)
{
    static const struct {
        const char *name;
        uint16_t type, ethertype;
        uint8_t head[20];
        uint8_t head_len, first; /* `first` octet of IP */
        bool made;
        enum capture_dir dir;
        uint32_t interface;
    } cases[] = {
        {"null", 0, 0x0800, {2}, 4, 0x45, true, 0},
        {"loop", 108, 0x86DD, {0, 0, 0, 24}, 4, 0x60, true, 0},
        {"raw 101", 101, 0x86DD, {0}, 0, 0x60, true, 0},
        {"raw 12", 12, 0x0800, {0}, 0, 0x45, true, 0},
        {"ipv4", 228, 0x0800, {0}, 0, 0x45, true, 0},
        {"ipv6", 229, 0x86DD, {0}, 0, 0x60, true, 0},
        {"cooked, sent",
         113,
         0x0800,
         {0, 4, 0, 1, 0, 6, 2, 2, 2, 2, 2, 2, 0, 0, 8, 0},
         16,
         0x45,
         true,
         CAPTURE_OUT},
        {"cooked, of a VLAN device's parent: an interface of its own",
         113,
         0x8100,
         {0, 0, 0, 1, 0, 6, 2, 2, 2, 2, 2, 2, 0, 0, 0x81, 0},
         16,
         0x45,
         true,
         CAPTURE_IN,
         (0x500 + 1) << 16},
        {"cooked 2, received, RoCE v1",
         276,
         0x8915,
         {0x89, 0x15, 0, 0, 0, 0, 0, 3, 0, 1, 0, 6, 2, 2, 2, 2, 2, 2},
         20,
         0x60,
         true,
         CAPTURE_IN,
         3 << 16}, /* each index is an interface of its own */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        uint8_t data[64] = {0};
        struct file f = {0};
        memcpy(data, cases[i].head, cases[i].head_len);
        data[cases[i].head_len] = cases[i].first;
        pcap_header(&f, 0xA1B2C3D4, cases[i].type);
        pcap_packet(&f, 0, 0, data, cases[i].head_len + 40u, cases[i].head_len + 1000u);
        struct capread *c = open_file(&f);
        struct capread_packet p;
        ck_assert_msg(capread_next(c, &p) == 1, "%s", cases[i].name);
        ck_assert_int_eq(p.no_ether, cases[i].made);
        ck_assert_uint_eq(p.len, 54);
        ck_assert_uint_eq(p.wire_len, 1014);
        ck_assert_uint_eq(p.frame[12] << 8 | p.frame[13], cases[i].ethertype);
        ck_assert_uint_eq(p.frame[14], cases[i].first);
        ck_assert_int_eq(p.dir, cases[i].dir);
        ck_assert_uint_eq(p.interface, cases[i].interface);
        capread_close(c);
    }
}
END_TEST

#define IPV4(proto) 0x45, 0, 0, 99, 0, 7, 0x40, 0, 64, proto, 0, 0, 192, 168, 0, 1, 192, 168, 0, 2
#define IPV6(proto)                                                                                \
    0x60, 0, 0, 0, 0, 99, proto, 64, 0xFD, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xFD, 0,   \
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2
#define UDP(port) 0xC3, 0x50, (port) >> 8, (port)&0xFF, 0, 99, 0, 0
#define GENEVE    2, 0, 0x65, 0x58, 0, 0, 77, 0, 1, 2, 3, 1, 4, 5, 6, 7 /* with an option */
#define VXLAN     8, 0, 0, 0, 0, 0, 77, 0

/* RoCE inside other protocols: the octets that replace the Ethernet header's type, and the part of
 * the frame that follows them. */
static const struct wrapping {
    const char *name;
    enum capread_carrier carrier;
    bool bare; /* IP follows, else the whole frame */
    bool tags; /* the frame's own addresses are followed by its tags */
    uint8_t n, head[80];
} wrappings[] = {
    {"VXLAN", CAPREAD_VXLAN, .n = 38, .head = {8, 0, IPV4(17), UDP(4789), VXLAN}},
    {"VXLAN over IPv6", CAPREAD_VXLAN, .n = 58, .head = {0x86, 0xDD, IPV6(17), UDP(4789), VXLAN}},
    {"VXLAN after a tag", CAPREAD_VXLAN, .n = 42,
     .head = {0x81, 0, 0, 9, 8, 0, IPV4(17), UDP(4789), VXLAN}},
    {"Geneve", CAPREAD_GENEVE, .n = 46, .head = {8, 0, IPV4(17), UDP(6081), GENEVE}},
    {"ERSPAN I", CAPREAD_ERSPAN, .n = 26, .head = {8, 0, IPV4(47), 0, 0, 0x88, 0xBE}},
    {"ERSPAN II", CAPREAD_ERSPAN, .n = 38,
     .head = {8, 0, IPV4(47), 0x10, 0, 0x88, 0xBE, 0, 0, 0, 5, 0x10, 9, 0, 3, 0, 0, 0, 0}},
    {"ERSPAN III, with a header of the platform's", CAPREAD_ERSPAN, .n = 50,
     .head = {8, 0, IPV4(47), 0x10, 0, 0x22, 0xEB, 0, 0, 0, 5, 0x20,
              9, 0, 3,        1,    2, 3,    4,    0, 0, 0, 1}},
    {"a Spectrum switch's mirror", CAPREAD_ERSPAN, .n = 48,
     .head = {8, 0, IPV4(47), 0, 0, 0x89, 0x49, 1, 2, 3, 4, 5, 6, 7}},
    {"VXLAN-GPE, Ethernet", CAPREAD_VXLAN, .n = 38,
     .head = {8, 0, IPV4(17), UDP(4790), 0x0C, 0, 0, 3, 0, 0, 77, 0}},
    {"VXLAN-GPE, IPv4", CAPREAD_VXLAN, .bare = true, .n = 38,
     .head = {8, 0, IPV4(17), UDP(4790), 0x0C, 0, 0, 1, 0, 0, 77, 0}},
    {"SRv6: IPv4 after a routing header", CAPREAD_IPIP, .bare = true, .n = 66,
     .head = {0x86, 0xDD, IPV6(43), 4, 2, 4, 0, 0, 0, 0, 0, 0xFD}},
    {"IPv4 after two extension headers", CAPREAD_IPIP, .bare = true, .n = 58,
     .head = {0x86, 0xDD, IPV6(0), 60, 0, 1, 4, 0, 0, 0, 0, 4, 0, 1, 4, 0, 0, 0, 0}},
    {"GRE, Ethernet and a key", CAPREAD_GRE, .n = 30,
     .head = {8, 0, IPV4(47), 0x20, 0, 0x65, 0x58, 0, 0, 0, 5}},
    {"GRE", CAPREAD_GRE, .bare = true, .n = 26, .head = {8, 0, IPV4(47), 0, 0, 8, 0}},
    {"IP in IP", CAPREAD_IPIP, .bare = true, .n = 22, .head = {8, 0, IPV4(4)}},
    {"IP in IPv6", CAPREAD_IPIP, .bare = true, .n = 42, .head = {0x86, 0xDD, IPV6(4)}},
    {"MPLS, two labels", CAPREAD_MPLS, .bare = true, .n = 10,
     .head = {0x88, 0x47, 0, 6, 0x40, 64, 0, 12, 0x81, 64}},
    {"MPLS, Ethernet after a control word", CAPREAD_MPLS, .n = 10,
     .head = {0x88, 0x47, 0, 12, 0x81, 64}},
    {"MPLS, Ethernet", CAPREAD_MPLS, .n = 6, .head = {0x88, 0x47, 0, 12, 0x81, 64}},
    {"PPPoE", CAPREAD_PPPOE, .bare = true, .n = 10,
     .head = {0x88, 0x64, 0x11, 0, 0, 5, 0, 99, 0, 0x21}},
    {"a second 802.1Q tag", CAPREAD_TAGS, .tags = true, .n = 10,
     .head = {0x81, 0, 0, 5, 0x81, 0, 0x60, 6, 8, 0}},
    {"three tags", CAPREAD_TAGS, .tags = true, .n = 14,
     .head = {0x91, 0, 0, 5, 0x88, 0xA8, 0, 7, 0x81, 0, 0x60, 6, 8, 0}},
    {"a service tag and one: a frame as it should be", CAPREAD_PLAIN, .tags = true, .n = 10,
     .head = {0x88, 0xA8, 0, 5, 0x81, 0, 0x60, 6, 8, 0}},
};

#define INNER_LEN 80u

/* A frame with a datagram for `port`; the payload counts. */
static void inner_frame(uint8_t *f, uint16_t port)
{
    static const uint8_t head[] = {2, 1, 1, 1, 1, 1, 2, 1, 1, 1, 1, 2, 8, 0, IPV4(17)};
    memcpy(f, head, sizeof(head));
    f[34] = 0xC1;
    f[35] = 0x23;
    f[36] = (uint8_t)(port >> 8);
    f[37] = (uint8_t)port;
    for (uint8_t i = 38; i < INNER_LEN; i++)
        f[i] = i;
}

/* One packet of a capture that keeps `have` octets of it. */
static void unwrap(const struct wrapping *w, uint16_t port, uint32_t have, struct capread_packet *p,
                   struct capread **c)
{
    static struct file f;
    uint8_t inner[INNER_LEN], data[INNER_LEN + 12 + sizeof(w->head)] = {0};
    uint32_t from = w->bare || w->tags ? 14 : 0, len = 12u + w->n + INNER_LEN - from;
    inner_frame(inner, port);
    memcpy(data, inner, 12);
    if (!w->tags)
        data[5] = data[11] = 9; /* other addresses than those inside */
    memcpy(data + 12, w->head, w->n);
    memcpy(data + 12 + w->n, inner + from, INNER_LEN - from);
    f.len = 0;
    pcap_header(&f, 0xA1B2C3D4, 1);
    pcap_packet(&f, 1, 2, data, have < len ? have : len, len + 100);
    *c = open_file(&f);
    ck_assert_msg(capread_next(*c, p) == 1, "%s", w->name);
}

/* WIRE-05, and the headers of mirrors and overlay networks around RoCE. */
START_TEST(what_is_wrapped)
{
    const struct wrapping *w = &wrappings[_i];
    uint8_t inner[INNER_LEN];
    struct capread *c;
    struct capread_packet p;
    struct capread_info info;
    unwrap(w, 4791, UINT32_MAX, &p, &c);
    capread_info(c, &info);
    ck_assert_uint_eq(info.wrapped[CAPREAD_PLAIN], 0);
    inner_frame(inner, 4791);
    uint32_t tag = 0;
    if (w->carrier == CAPREAD_TAGS) { /* the innermost one is left */
        ck_assert_mem_eq(p.frame + 12, "\x81\x00\x60\x06\x08\x00", 6);
        tag = 4;
    }
    if (w->carrier) {
        ck_assert_uint_eq(info.wrapped[w->carrier], 1);
        ck_assert_uint_ne(p.interface, 0);
        ck_assert_uint_eq(p.len, INNER_LEN + tag);
        ck_assert_mem_eq(p.frame + 14 + tag, inner + 14, INNER_LEN - 14);
        if (!w->bare)
            ck_assert_mem_eq(p.frame, inner, 12);
        ck_assert_uint_eq(p.frame[12 + tag], 8);
    } else {
        ck_assert_uint_eq(p.len, 12 + w->n + INNER_LEN - 14);
    }
    ck_assert_uint_eq(p.wire_len, p.len + 100);
    ck_assert_int_eq(p.no_ether, w->bare);
    capread_close(c);

    unwrap(w, 4790, UINT32_MAX, &p, &c); /* everything else stays unchanged */
    ck_assert_mem_eq(p.frame + 12, w->head, w->n);
    ck_assert_uint_eq(p.interface, 0);
    capread_close(c);
    for (uint32_t have = 0; have < 12u + w->n + INNER_LEN; have++) { /* cut anywhere */
        unwrap(w, 4791, have, &p, &c);
        ck_assert_uint_le(p.len, have);
        ck_assert_uint_ge(p.wire_len, p.len);
        capread_close(c);
    }
}
END_TEST

/* A packet that a mirror has cut before the capture isn't damaged: its own lengths show its size.
 */
START_TEST(what_a_mirror_has_cut)
{
    static const struct {
        const char *name;
        bool v6, tag;
        uint8_t more; /* octets by which the IP length exceeds UDP's */
        uint8_t bad;  /* added to the IPv4 checksum */
        uint32_t wire_len;
    } cases[] = {
        {"IPv4", .wire_len = 1014},
        {"IPv4 after a tag", .tag = true, .wire_len = 1018},
        {"IPv6", .v6 = true, .wire_len = 1034},
        {"lengths that don't agree", .more = 4, .wire_len = 96},
        {"IPv6, lengths that don't agree", .v6 = true, .more = 4, .wire_len = 96},
        {"a damaged header", .bad = 1, .wire_len = 96},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        uint8_t v4[] = {0x45, 0,   1000 >> 8, (uint8_t)(1000 + cases[i].more),
                        0,    7,   0x40,      0,
                        64,   17,  0,         0,
                        192,  168, 0,         1,
                        192,  168, 0,         2};
        uint8_t v6[] = {IPV6(17)};
        uint8_t data[96] = {2, 1, 1, 1, 1, 1, 2, 1, 1, 1, 1, 2};
        size_t at = 12;
        uint32_t sum = 0;
        if (cases[i].tag) {
            memcpy(data + at, "\x81\x00\x00\x05", 4);
            at += 4;
        }
        memcpy(data + at, cases[i].v6 ? "\x86\xDD" : "\x08\x00", 2);
        at += 2;
        for (size_t k = 0; k < sizeof(v4); k += 2)
            sum += (uint32_t)(v4[k] << 8 | v4[k + 1]);
        sum = 0xFFFF - sum % 0xFFFF + cases[i].bad;
        v4[10] = (uint8_t)(sum >> 8);
        v4[11] = (uint8_t)sum;
        v6[4] = 980 >> 8;
        v6[5] = (uint8_t)(980 + cases[i].more);
        memcpy(data + at, cases[i].v6 ? v6 : v4, cases[i].v6 ? sizeof(v6) : sizeof(v4));
        at += cases[i].v6 ? sizeof(v6) : sizeof(v4);
        memcpy(data + at, (uint8_t[]){0xC1, 0x23, 4791 >> 8, 4791 & 0xFF, 980 >> 8, 980 & 0xFF}, 6);
        struct file f = {0};
        struct capread_packet p;
        struct capread_info info;
        pcap_header(&f, 0xA1B2C3D4, 1);
        pcap_packet(&f, 1, 2, data, sizeof(data), sizeof(data));
        struct capread *c = open_file(&f);
        ck_assert_int_eq(capread_next(c, &p), 1);
        capread_info(c, &info);
        ck_assert_uint_eq(p.len, sizeof(data));
        ck_assert_msg(p.wire_len == cases[i].wire_len, "%s: %u", cases[i].name, p.wire_len);
        ck_assert_uint_eq(info.cut, cases[i].wire_len > sizeof(data));
        capread_close(c);
    }
}
END_TEST

/* ERF: extension headers, padding of the record, and records that aren't Ethernet. */
START_TEST(endace_records)
{
    uint8_t erf[16 + 8 + 2 + sizeof(eth) + 6] = {0};
    struct file f = {0};
    erf[8] = 0x80 | 2; /* Ethernet, one extension header */
    erf[15] = sizeof(eth);
    memcpy(erf + 26, eth, sizeof(eth));
    pcap_header(&f, 0xA1B2C3D4, 197);
    pcap_packet(&f, 0, 0, erf, sizeof(erf), sizeof(erf));
    erf[8] = 21; /* InfiniBand */
    pcap_packet(&f, 0, 0, erf, sizeof(erf), sizeof(erf));
    struct capread *c = open_file(&f);
    struct capread_packet p;
    struct capread_info info;
    ck_assert_int_eq(capread_next(c, &p), 1);
    ck_assert_uint_eq(p.len, sizeof(eth));
    ck_assert_uint_eq(p.wire_len, sizeof(eth));
    ck_assert_mem_eq(p.frame, eth, sizeof(eth));
    ck_assert_int_eq(capread_next(c, &p), 0);
    capread_info(c, &info);
    ck_assert_uint_eq(info.packets, 2);
    ck_assert_uint_eq(info.skipped, 1);
    ck_assert_uint_eq(info.infiniband, 1);
    capread_close(c);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("capture reader, links");
    TCase *c = tcase_create("capture reader, links");
    tcase_add_test(c, link_types);
    tcase_add_loop_test(c, what_is_wrapped, 0, sizeof(wrappings) / sizeof(*wrappings));
    tcase_add_test(c, what_a_mirror_has_cut);
    tcase_add_test(c, endace_records);
    suite_add_tcase(s, c);
    return unit_run(s);
}
