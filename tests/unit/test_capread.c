/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The capture reader over files made here octet by octet: formats, byte orders, link types, and
 * what is left of a file that was cut short.
 */
#include "capread.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

/* A file under construction. `swap` = the byte order that isn't ours. */
struct file {
    uint8_t b[8192];
    size_t len;
    bool swap;
};

static void put(struct file *f, const void *p, size_t n)
{
    ck_assert_uint_le(f->len + n, sizeof f->b);
    memcpy(f->b + f->len, p, n);
    f->len += n;
}

static void put16(struct file *f, uint16_t v)
{
    v = f->swap ? __builtin_bswap16(v) : v;
    put(f, &v, 2);
}

static void put32(struct file *f, uint32_t v)
{
    v = f->swap ? __builtin_bswap32(v) : v;
    put(f, &v, 4);
}

static void put64(struct file *f, uint64_t v)
{
    v = f->swap ? __builtin_bswap64(v) : v;
    put(f, &v, 8);
}

static void pcap_header(struct file *f, uint32_t magic, uint32_t link_type)
{
    put32(f, magic);
    put16(f, 2);
    put16(f, 4);
    put64(f, 0);
    put32(f, 65535);
    put32(f, link_type);
}

static void pcap_packet(struct file *f, uint32_t s, uint32_t fraction, const void *p, uint32_t len,
                        uint32_t wire_len)
{
    put32(f, s);
    put32(f, fraction);
    put32(f, len);
    put32(f, wire_len);
    put(f, p, len);
}

/* Close a pcapng block that began at `at` with its type: pad, and both lengths. */
static void block_end(struct file *f, size_t at)
{
    while (f->len % 4)
        f->b[f->len++] = 0;
    uint32_t len = (uint32_t)(f->len - at + 4);
    put32(f, len);
    size_t end = f->len;
    f->len = at + 4;
    put32(f, len);
    f->len = end;
}

static size_t block(struct file *f, uint32_t type)
{
    size_t at = f->len;
    put32(f, type);
    put32(f, 0);
    return at;
}

static void ng_section(struct file *f)
{
    size_t at = block(f, 0x0A0D0D0A);
    put32(f, 0x1A2B3C4D);
    put16(f, 1);
    put16(f, 0);
    put64(f, UINT64_MAX);
    block_end(f, at);
}

static const char *ng_name = "va0"; /* of the interfaces that follow */

static void ng_interface(struct file *f, uint16_t link_type, int tsresol, int64_t offset)
{
    size_t at = block(f, 1);
    put16(f, link_type);
    put16(f, 0);
    put32(f, 0);
    if (tsresol >= 0) {
        put16(f, 9);
        put16(f, 1);
        put(f, (uint8_t[]){(uint8_t)tsresol, 0, 0, 0}, 4);
    }
    if (offset) {
        put16(f, 14);
        put16(f, 8);
        put64(f, (uint64_t)offset);
    }
    put16(f, 2);
    put16(f, 3);
    put(f, ng_name, 4);
    put32(f, 0);
    block_end(f, at);
}

static void ng_packet(struct file *f, uint32_t interface, uint64_t t, const void *p, uint32_t len,
                      uint32_t wire_len, const char *comment)
{
    size_t at = block(f, 6);
    put32(f, interface);
    put32(f, (uint32_t)(t >> 32));
    put32(f, (uint32_t)t);
    put32(f, len);
    put32(f, wire_len);
    put(f, p, len);
    while (f->len % 4)
        f->b[f->len++] = 0;
    if (comment) {
        put16(f, 1);
        put16(f, (uint16_t)strlen(comment));
        put(f, comment, strlen(comment));
        while (f->len % 4)
            f->b[f->len++] = 0;
        put16(f, 2);
        put16(f, 4);
        put32(f, 2); /* outbound */
        put32(f, 0);
    }
    block_end(f, at);
}

static struct capread *open_file(const struct file *f)
{
    struct capread *c;
    char why[128];
    ck_assert_int_eq(capread_open_mem(f->b, f->len, &c, why, sizeof why), 0);
    return c;
}

static const uint8_t eth[18] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xB5, 1, 2, 3, 4};

START_TEST(classic_pcap_of_every_kind)
{
    static const struct {
        const char *name;
        uint32_t magic, fraction;
        bool swap;
        uint32_t extra;
    } kinds[] = {
        {"us", 0xA1B2C3D4, 123456, false, 0},       {"us swapped", 0xA1B2C3D4, 123456, true, 0},
        {"ns", 0xA1B23C4D, 123456000, false, 0},    {"ns swapped", 0xA1B23C4D, 123456000, true, 0},
        {"modified", 0xA1B2CD34, 123456, false, 8},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct file f = {.swap = kinds[i].swap};
        pcap_header(&f, kinds[i].magic, 1);
        for (uint32_t n = 0; n < 2; n++) {
            put32(&f, 1700000000 + n);
            put32(&f, kinds[i].fraction);
            put32(&f, sizeof eth);
            put32(&f, n ? 100 : sizeof eth);
            f.len += kinds[i].extra;
            put(&f, eth, sizeof eth);
        }
        struct capread *c = open_file(&f);
        struct capread_packet p;
        struct capread_info info;
        ck_assert_msg(capread_next(c, &p) == 1, "%s", kinds[i].name);
        ck_assert_uint_eq(p.number, 1);
        ck_assert_uint_eq(p.ns, 1700000000123456000ull);
        ck_assert_uint_eq(p.len, sizeof eth);
        ck_assert_mem_eq(p.frame, eth, sizeof eth);
        ck_assert_int_eq(capread_next(c, &p), 1);
        ck_assert_uint_eq(p.wire_len, 100);
        ck_assert_int_eq(capread_next(c, &p), 0);
        capread_info(c, &info);
        ck_assert_ptr_null(info.damage);
        ck_assert_uint_eq(info.packets, 2);
        ck_assert_uint_eq(info.cut, 1);
        ck_assert_uint_eq(info.offset, f.len);
        capread_close(c);
    }
}
END_TEST

/* Every cut of a file gives the whole packets before it, and says so. */
START_TEST(a_file_cut_short_gives_what_it_has)
{
    struct file f = {0};
    size_t ends[4];
    for (int ng = 0; ng < 2; ng++) {
        f.len = 0;
        if (ng) {
            ng_section(&f);
            ng_interface(&f, 1, 9, 0);
        } else {
            pcap_header(&f, 0xA1B2C3D4, 1);
        }
        for (unsigned n = 0; n < 4; n++) {
            if (ng)
                ng_packet(&f, 0, n, eth, sizeof eth, sizeof eth, n & 1 ? "odd" : NULL);
            else
                pcap_packet(&f, 0, n, eth, sizeof eth, sizeof eth);
            ends[n] = f.len;
        }
        for (size_t len = ends[0]; len <= f.len; len++) {
            struct file cut = f;
            cut.len = len;
            struct capread *c = open_file(&cut);
            struct capread_packet p;
            struct capread_info info;
            unsigned want = 0, got = 0;
            bool clean = false;
            for (unsigned n = 0; n < 4; n++) {
                want += len >= ends[n];
                clean |= len == ends[n];
            }
            while (capread_next(c, &p) == 1)
                got++;
            ck_assert_uint_eq(got, want);
            ck_assert_int_eq(capread_next(c, &p), 0);
            capread_info(c, &info);
            ck_assert_msg(!info.damage == clean, "at %zu: %s", len,
                          info.damage ? info.damage : "no damage");
            capread_close(c);
        }
    }
}
END_TEST

/* Two interfaces of different link types and clocks, then a section in the other byte order. */
START_TEST(pcapng_interfaces_and_sections)
{
    static const uint8_t ip[20] = {0x45, 0, 0, 20};
    struct file f = {0};
    struct capread_packet p;
    struct capread_info info;
    ng_section(&f);
    ng_interface(&f, 1, 9, 0);
    ng_interface(&f, 101, 0x80 | 10, 100); /* 1/1024 s, 100 s later */
    ng_packet(&f, 0, 1700000000000000007ull, eth, sizeof eth, 60, "rx_icrc_err");
    ng_packet(&f, 1, 512, ip, sizeof ip, sizeof ip, NULL);
    size_t at = block(&f, 0x0BAD); /* a block that nobody knows */
    put64(&f, 1);
    block_end(&f, at);
    at = block(&f, 5); /* statistics: 3 packets dropped */
    put32(&f, 0);
    put64(&f, 0);
    put16(&f, 5);
    put16(&f, 8);
    put64(&f, 3);
    put32(&f, 0);
    block_end(&f, at);
    f.swap = true;
    ng_section(&f);
    ng_interface(&f, 1, -1, 0);
    at = block(&f, 3); /* simple packet */
    put32(&f, sizeof eth);
    put(&f, eth, sizeof eth);
    block_end(&f, at);
    ng_interface(&f, 1, -1, 0); /* was another one there */
    ng_packet(&f, 0, 5, eth, sizeof eth, sizeof eth, NULL);
    ng_packet(&f, 1, 6, eth, sizeof eth, sizeof eth, NULL);
    ng_section(&f);
    ng_name = "vb0"; /* where va0 was */
    ng_interface(&f, 1, -1, 0);
    ng_name = "va0";
    ng_packet(&f, 0, 7, eth, sizeof eth, sizeof eth, NULL);

    struct capread *c = open_file(&f);
    ck_assert_int_eq(capread_next(c, &p), 1);
    ck_assert_uint_eq(p.ns, 1700000000000000007ull);
    ck_assert_str_eq(p.comment, "rx_icrc_err");
    ck_assert_int_eq(p.dir, CAPREAD_OUT);
    ck_assert_uint_eq(p.wire_len, 60);
    ck_assert_int_eq(capread_next(c, &p), 1);
    ck_assert_uint_eq(p.interface, 1);
    ck_assert_uint_eq(p.ns, 100500000000ull);
    ck_assert(p.no_ether);
    ck_assert_ptr_null(p.comment);
    ck_assert_uint_eq(p.len, 34);
    ck_assert_uint_eq(p.frame[12] << 8 | p.frame[13], 0x0800);
    ck_assert_mem_eq(p.frame + 14, ip, sizeof ip);
    ck_assert_int_eq(capread_next(c, &p), 1);
    ck_assert_uint_eq(p.interface, 0); /* as in the first section */
    ck_assert_mem_eq(p.frame, eth, sizeof eth);
    ck_assert_int_eq(capread_next(c, &p), 1);
    ck_assert_uint_eq(p.ns, 5000); /* microseconds when the file doesn't say */
    ck_assert_uint_eq(p.interface, 0);
    ck_assert_int_eq(capread_next(c, &p), 1);
    ck_assert_uint_eq(p.interface, 3);
    ck_assert_int_eq(capread_next(c, &p), 1);
    ck_assert_uint_eq(p.interface, 4);
    ck_assert_int_eq(capread_next(c, &p), 0);
    capread_info(c, &info);
    ck_assert_ptr_null(info.damage);
    ck_assert_uint_eq(info.drops, 3);
    ck_assert_uint_eq(info.interfaces, 5);
    capread_close(c);
}
END_TEST

START_TEST(link_types)
{
    static const struct {
        const char *name;
        uint16_t type, ethertype;
        uint8_t head[20];
        uint8_t head_len, first; /* `first` octet of IP */
        bool made;
        enum capread_dir dir;
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
         CAPREAD_OUT},
        {"cooked, of a VLAN device's parent: an interface of its own",
         113,
         0x8100,
         {0, 0, 0, 1, 0, 6, 2, 2, 2, 2, 2, 2, 0, 0, 0x81, 0},
         16,
         0x45,
         true,
         CAPREAD_IN,
         (0x500 + 1) << 16},
        {"cooked 2, received, RoCE v1",
         276,
         0x8915,
         {0x89, 0x15, 0, 0, 0, 0, 0, 3, 0, 1, 0, 6, 2, 2, 2, 2, 2, 2},
         20,
         0x60,
         true,
         CAPREAD_IN,
         3 << 16}, /* each index is an interface of its own */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
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

/* RoCE inside something else: what is put in place of the Ethernet header's type, and how much of
 * the frame follows it. */
static const struct wrapping {
    const char *name;
    enum capread_carrier carrier;
    bool bare; /* IP follows, else the whole frame */
    bool tags; /* what the frame's own addresses are followed by */
    uint8_t n, head[80];
} wrappings[] = {
    {"VXLAN", CAPREAD_VXLAN, .n = 38, .head = {8, 0, IPV4(17), UDP(4789), VXLAN}},
    {"VXLAN over IPv6", CAPREAD_VXLAN, .n = 58, .head = {0x86, 0xDD, IPV6(17), UDP(4789), VXLAN}},
    {"VXLAN behind a tag", CAPREAD_VXLAN, .n = 42,
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
    {"SRv6: IPv4 behind a routing header", CAPREAD_IPIP, .bare = true, .n = 66,
     .head = {0x86, 0xDD, IPV6(43), 4, 2, 4, 0, 0, 0, 0, 0, 0xFD}},
    {"IPv4 behind two extension headers", CAPREAD_IPIP, .bare = true, .n = 58,
     .head = {0x86, 0xDD, IPV6(0), 60, 0, 1, 4, 0, 0, 0, 0, 4, 0, 1, 4, 0, 0, 0, 0}},
    {"GRE, Ethernet and a key", CAPREAD_GRE, .n = 30,
     .head = {8, 0, IPV4(47), 0x20, 0, 0x65, 0x58, 0, 0, 0, 5}},
    {"GRE", CAPREAD_GRE, .bare = true, .n = 26, .head = {8, 0, IPV4(47), 0, 0, 8, 0}},
    {"IP in IP", CAPREAD_IPIP, .bare = true, .n = 22, .head = {8, 0, IPV4(4)}},
    {"IP in IPv6", CAPREAD_IPIP, .bare = true, .n = 42, .head = {0x86, 0xDD, IPV6(4)}},
    {"MPLS, two labels", CAPREAD_MPLS, .bare = true, .n = 10,
     .head = {0x88, 0x47, 0, 6, 0x40, 64, 0, 12, 0x81, 64}},
    {"MPLS, Ethernet behind a control word", CAPREAD_MPLS, .n = 10,
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
    memcpy(f, head, sizeof head);
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
    uint8_t inner[INNER_LEN], data[INNER_LEN + 12 + sizeof w->head] = {0};
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

/* WIRE-05, and what mirrors and overlay networks put around RoCE. */
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

    unwrap(w, 4790, UINT32_MAX, &p, &c); /* anything else stays as it is */
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

/* What a mirror has cut off before it was captured isn't damaged: its own lengths say what it was.
 */
START_TEST(what_a_mirror_has_cut)
{
    static const struct {
        const char *name;
        bool v6, tag;
        uint8_t more; /* what the IP header says more than UDP's */
        uint8_t bad;  /* added to the IPv4 checksum */
        uint32_t wire_len;
    } cases[] = {
        {"IPv4", .wire_len = 1014},
        {"IPv4 behind a tag", .tag = true, .wire_len = 1018},
        {"IPv6", .v6 = true, .wire_len = 1034},
        {"lengths that don't agree", .more = 4, .wire_len = 96},
        {"IPv6, lengths that don't agree", .v6 = true, .more = 4, .wire_len = 96},
        {"a damaged header", .bad = 1, .wire_len = 96},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
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
        for (size_t k = 0; k < sizeof v4; k += 2)
            sum += (uint32_t)(v4[k] << 8 | v4[k + 1]);
        sum = 0xFFFF - sum % 0xFFFF + cases[i].bad;
        v4[10] = (uint8_t)(sum >> 8);
        v4[11] = (uint8_t)sum;
        v6[4] = 980 >> 8;
        v6[5] = (uint8_t)(980 + cases[i].more);
        memcpy(data + at, cases[i].v6 ? v6 : v4, cases[i].v6 ? sizeof v6 : sizeof v4);
        at += cases[i].v6 ? sizeof v6 : sizeof v4;
        memcpy(data + at, (uint8_t[]){0xC1, 0x23, 4791 >> 8, 4791 & 0xFF, 980 >> 8, 980 & 0xFF}, 6);
        struct file f = {0};
        struct capread_packet p;
        struct capread_info info;
        pcap_header(&f, 0xA1B2C3D4, 1);
        pcap_packet(&f, 1, 2, data, sizeof data, sizeof data);
        struct capread *c = open_file(&f);
        ck_assert_int_eq(capread_next(c, &p), 1);
        capread_info(c, &info);
        ck_assert_uint_eq(p.len, sizeof data);
        ck_assert_msg(p.wire_len == cases[i].wire_len, "%s: %u", cases[i].name, p.wire_len);
        ck_assert_uint_eq(info.cut, cases[i].wire_len > sizeof data);
        capread_close(c);
    }
}
END_TEST

/* ERF: extension headers, padding of the record, and what isn't Ethernet. */
START_TEST(endace_records)
{
    uint8_t erf[16 + 8 + 2 + sizeof eth + 6] = {0};
    struct file f = {0};
    erf[8] = 0x80 | 2; /* Ethernet, one extension header */
    erf[15] = sizeof eth;
    memcpy(erf + 26, eth, sizeof eth);
    pcap_header(&f, 0xA1B2C3D4, 197);
    pcap_packet(&f, 0, 0, erf, sizeof erf, sizeof erf);
    erf[8] = 21; /* InfiniBand */
    pcap_packet(&f, 0, 0, erf, sizeof erf, sizeof erf);
    struct capread *c = open_file(&f);
    struct capread_packet p;
    struct capread_info info;
    ck_assert_int_eq(capread_next(c, &p), 1);
    ck_assert_uint_eq(p.len, sizeof eth);
    ck_assert_uint_eq(p.wire_len, sizeof eth);
    ck_assert_mem_eq(p.frame, eth, sizeof eth);
    ck_assert_int_eq(capread_next(c, &p), 0);
    capread_info(c, &info);
    ck_assert_uint_eq(info.packets, 2);
    ck_assert_uint_eq(info.skipped, 1);
    ck_assert_uint_eq(info.infiniband, 1);
    capread_close(c);
}
END_TEST

START_TEST(what_is_no_capture)
{
    static const struct {
        const char *data, *why;
        size_t len;
    } cases[] = {
        {"", "too short to be a capture", 0},
        {"hello world", "neither pcap nor pcapng", 11},
        {"\x1F\x8B\x08\x00", "compressed: pipe it through 'gzip -dc'", 4},
        {"\x28\xB5\x2F\xFD", "compressed: pipe it through 'zstd -dc'", 4},
        {"\xFD\x37\x7A\x58\x5A\x00", "compressed: pipe it through 'xz -dc'", 6},
        {"BZh91AY&SY", "compressed: pipe it through 'bzip2 -dc'", 10},
        {"\x04\x22\x4D\x18", "compressed: pipe it through 'lz4 -dc'", 4},
        {"BZhou to you", "neither pcap nor pcapng", 12},
        {"\xD4\xC3\xB2\xA1\x02\x00", "cut short in the file header", 6},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct capread *c;
        char why[128];
        ck_assert_int_eq(capread_open_mem(cases[i].data, cases[i].len, &c, why, sizeof why),
                         -EINVAL);
        ck_assert_str_eq(why, cases[i].why);
    }
    struct capread *c;
    char why[128];
    ck_assert_int_eq(capread_open("/nonexistent", &c, why, sizeof why), -ENOENT);
    ck_assert_str_eq(why, strerror(ENOENT));
}
END_TEST

/* Lengths that can't be end the reading, with a reason, not with a crash. */
START_TEST(damage)
{
    struct capread_packet p;
    struct capread_info info;
    struct file f = {0};
    pcap_header(&f, 0xA1B2C3D4, 1);
    pcap_packet(&f, 0, 0, eth, sizeof eth, sizeof eth);
    put64(&f, 0);
    put32(&f, 0xFFFFFFF0);
    put32(&f, 0);
    struct capread *c = open_file(&f);
    ck_assert_int_eq(capread_next(c, &p), 1);
    ck_assert_int_eq(capread_next(c, &p), 0);
    capread_info(c, &info);
    ck_assert_str_eq(info.damage, "damaged: packet 2 claims 4294967280 octets");
    capread_close(c);

    f = (struct file){0};
    ng_section(&f);
    ng_interface(&f, 1, -1, 0);
    ng_packet(&f, 1, 0, eth, sizeof eth, sizeof eth, NULL);
    c = open_file(&f);
    ck_assert_int_eq(capread_next(c, &p), 0);
    capread_info(c, &info);
    ck_assert_str_eq(info.damage, "damaged: packet 1 is of an interface that isn't there");
    capread_close(c);

    for (int swap = 0; swap < 2; swap++) {
        f = (struct file){.swap = swap};
        ng_section(&f);
        ng_interface(&f, 1, -1, 0);
        ng_packet(&f, 0, 0, eth, sizeof eth, sizeof eth, NULL);
        size_t second = f.len;
        ng_section(&f);
        f.b[second + 12 + (size_t)swap] = 2;
        c = open_file(&f);
        ck_assert_int_eq(capread_next(c, &p), 1);
        ck_assert_int_eq(capread_next(c, &p), 0);
        capread_info(c, &info);
        ck_assert_ptr_nonnull(info.damage);
        ck_assert_str_eq(info.damage, "of an unknown version, pcapng 2.0, behind packet 1");
        capread_close(c);
    }

    f = (struct file){0};
    size_t at = block(&f, 0x0A0D0D0A); /* a section header that lacks half of what it must have */
    put32(&f, 0x1A2B3C4D);
    block_end(&f, at);
    ng_interface(&f, 1, -1, 0);
    c = open_file(&f);
    ck_assert_int_eq(capread_next(c, &p), 0);
    capread_info(c, &info);
    ck_assert_ptr_nonnull(info.damage);
    ck_assert_str_eq(info.damage, "damaged section header");
    capread_close(c);

    f = (struct file){0};
    ng_section(&f);
    ng_interface(&f, 1, 0x7F, 0); /* 10^127 units a second */
    c = open_file(&f);
    ck_assert_int_eq(capread_next(c, &p), 0);
    capread_info(c, &info);
    ck_assert_str_eq(info.damage, "damaged: interface 0 has no usable clock");
    capread_close(c);
}
END_TEST

/* Files that were joined with cat: each has its header, and with it its byte order and clock. */
START_TEST(classic_pcaps_joined)
{
    static const struct {
        uint32_t magic, fraction, link_type;
        bool swap;
    } parts[] = {{0xA1B2C3D4, 123456, 1, false},
                 {0xA1B23C4D, 123456000, 1, false},
                 {0xA1B2C3D4, 123456, 1, true},
                 {0xA1B23C4D, 123456000, 101, true}};
    static const uint8_t ip[20] = {0x45, 0, 0, 20};
    const size_t n = sizeof parts / sizeof *parts;
    struct file f = {0};
    struct capread_packet p;
    struct capread_info info;
    for (size_t i = 0; i < n; i++) {
        bool raw = parts[i].link_type == 101;
        f.swap = parts[i].swap;
        pcap_header(&f, parts[i].magic, parts[i].link_type);
        pcap_packet(&f, 1700000000, parts[i].fraction, raw ? ip : eth, raw ? sizeof ip : sizeof eth,
                    100);
    }
    struct capread *c = open_file(&f);
    for (size_t i = 0; i < n; i++) {
        ck_assert_int_eq(capread_next(c, &p), 1);
        ck_assert_uint_eq(p.number, i + 1);
        ck_assert_uint_eq(p.ns, 1700000000123456000ull);
        ck_assert_uint_eq(p.interface, i == 3); /* of another link type */
        ck_assert_int_eq(p.no_ether, i == 3);
    }
    ck_assert_int_eq(capread_next(c, &p), 0);
    capread_info(c, &info);
    ck_assert_ptr_null(info.damage);
    ck_assert_uint_eq(info.packets, n);
    ck_assert_uint_eq(info.offset, f.len);
    capread_close(c);
}
END_TEST

static void ng_statistics(struct file *f, uint32_t interface, uint64_t drops)
{
    size_t at = block(f, 5);
    put32(f, interface);
    put64(f, 0);
    put16(f, 5);
    put16(f, 8);
    put64(f, drops);
    put32(f, 0);
    block_end(f, at);
}

/* Each statistics block counts from the beginning of the capture: the last one of an interface has
 * them all. */
START_TEST(drops_are_counted_once)
{
    struct file f = {0};
    struct capread_packet p;
    struct capread_info info;
    for (int section = 0; section < 2; section++) {
        ng_section(&f);
        ng_interface(&f, 1, 9, 0);
        ng_interface(&f, 1, 9, 0);
        ng_statistics(&f, 0, 3);
        ng_statistics(&f, 1, 10);
        ng_statistics(&f, 0, 5);
        ng_statistics(&f, 2, 1000); /* of an interface that isn't there */
    }
    struct capread *c = open_file(&f);
    ck_assert_int_eq(capread_next(c, &p), 0);
    capread_info(c, &info);
    ck_assert_ptr_null(info.damage);
    ck_assert_uint_eq(info.drops, 30);
    capread_close(c);
}
END_TEST

/* A block that says its length differently at its end has lost octets: what it holds isn't what was
 * captured, and where the next one begins nobody knows. */
START_TEST(blocks_whose_lengths_differ)
{
    static const struct {
        size_t block; /* 0 section, 1 interface, 2 unknown, 3 packet */
        const char *damage;
    } cases[] = {
        {0, "damaged behind packet 0: a block of 28 octets that ends as one of 29"},
        {1, "damaged behind packet 0: a block of 40 octets that ends as one of 41"},
        {2, "damaged behind packet 0: a block of 20 octets that ends as one of 21"},
        {3, "damaged behind packet 0: a block of 52 octets that ends as one of 53"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct file f = {.swap = i & 1};
        struct capread_packet p;
        struct capread_info info;
        size_t ends[4];
        ng_section(&f);
        ends[0] = f.len;
        ng_interface(&f, 1, 9, 0);
        ends[1] = f.len;
        size_t at = block(&f, 0x0BAD);
        put64(&f, 1);
        block_end(&f, at);
        ends[2] = f.len;
        ng_packet(&f, 0, 0, eth, sizeof eth, sizeof eth, NULL);
        ends[3] = f.len;
        ng_packet(&f, 0, 0, eth, sizeof eth, sizeof eth, NULL);
        f.b[ends[cases[i].block] - (f.swap ? 1 : 4)]++;
        struct capread *c = open_file(&f);
        ck_assert_int_eq(capread_next(c, &p), 0);
        capread_info(c, &info);
        ck_assert_ptr_nonnull(info.damage);
        ck_assert_str_eq(info.damage, cases[i].damage);
        capread_close(c);
    }
}
END_TEST

/* From a pipe, more than the buffer holds: every packet arrives whole. */
START_TEST(a_pipe_and_many_packets)
{
    char path[] = "/tmp/urnic-capread-XXXXXX";
    struct file f = {0};
    uint8_t big[1500];
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    pcap_header(&f, 0xA1B23C4D, 1);
    ck_assert_int_eq(write(fd, f.b, f.len), (ssize_t)f.len);
    for (unsigned n = 0; n < 3000; n++) {
        memset(big, (int)n, sizeof big);
        f.len = 0;
        pcap_packet(&f, n, 0, big, 60 + n % 1400, sizeof big);
        ck_assert_int_eq(write(fd, f.b, f.len), (ssize_t)f.len);
    }
    close(fd);
    struct capread *c;
    char why[128];
    struct capread_packet p;
    struct capread_info info;
    ck_assert_int_eq(capread_open(path, &c, why, sizeof why), 0);
    for (unsigned n = 0; n < 3000; n++) {
        ck_assert_int_eq(capread_next(c, &p), 1);
        ck_assert_uint_eq(p.len, 60 + n % 1400);
        ck_assert_uint_eq(p.frame[0], n & 0xFF);
        ck_assert_uint_eq(p.frame[p.len - 1], n & 0xFF);
    }
    ck_assert_int_eq(capread_next(c, &p), 0);
    capread_info(c, &info);
    ck_assert_uint_eq(info.offset, info.size);
    capread_close(c);
    unlink(path);
}
END_TEST

/* Standard input that another process has made not to block: the reader waits all the same. */
START_TEST(a_pipe_that_does_not_block)
{
    int fd[2], status;
    struct file f = {0};
    struct capread *c;
    struct capread_packet p;
    char why[128];
    pcap_header(&f, 0xA1B2C3D4, 1);
    pcap_packet(&f, 1, 2, eth, sizeof eth, sizeof eth);
    ck_assert_int_eq(pipe(fd), 0);
    pid_t writer = fork();
    if (writer == 0) {
        bool good = true;
        for (size_t i = 0; i < f.len; i += 10) {
            usleep(10000);
            size_t n = f.len - i < 10 ? f.len - i : 10;
            good = good && write(fd[1], f.b + i, n) == (ssize_t)n;
        }
        _exit(!good);
    }
    close(fd[1]);
    ck_assert_int_eq(dup2(fd[0], STDIN_FILENO), STDIN_FILENO);
    ck_assert_int_eq(fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK), 0);
    ck_assert_msg(capread_open("-", &c, why, sizeof why) == 0, "%s", why);
    ck_assert_int_eq(capread_next(c, &p), 1);
    ck_assert_mem_eq(p.frame, eth, sizeof eth);
    ck_assert_int_eq(capread_next(c, &p), 0);
    capread_close(c);
    ck_assert_int_eq(waitpid(writer, &status, 0), writer);
    ck_assert_int_eq(status, 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("capture reader");
    TCase *c = tcase_create("capture reader");
    tcase_add_test(c, classic_pcap_of_every_kind);
    tcase_add_test(c, a_file_cut_short_gives_what_it_has);
    tcase_add_test(c, pcapng_interfaces_and_sections);
    tcase_add_test(c, link_types);
    tcase_add_loop_test(c, what_is_wrapped, 0, sizeof wrappings / sizeof *wrappings);
    tcase_add_test(c, what_a_mirror_has_cut);
    tcase_add_test(c, endace_records);
    tcase_add_test(c, what_is_no_capture);
    tcase_add_test(c, classic_pcaps_joined);
    tcase_add_test(c, drops_are_counted_once);
    tcase_add_test(c, blocks_whose_lengths_differ);
    tcase_add_test(c, damage);
    tcase_add_test(c, a_pipe_and_many_packets);
    tcase_add_test(c, a_pipe_that_does_not_block);
    suite_add_tcase(s, c);
    return unit_run(s);
}
