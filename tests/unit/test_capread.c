/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The capture reader over files made here octet by octet: formats, byte orders, and the packets of
 * a file that was cut short.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture_file.h"
#include "lint_read.h"

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

static const char *ng_name = "va0"; /* name of the interfaces that follow */

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
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        struct file f = {.swap = kinds[i].swap};
        pcap_header(&f, kinds[i].magic, 1);
        for (uint32_t n = 0; n < 2; n++) {
            put32(&f, 1700000000 + n);
            put32(&f, kinds[i].fraction);
            put32(&f, sizeof(eth));
            put32(&f, n ? 100 : sizeof(eth));
            f.len += kinds[i].extra;
            put(&f, eth, sizeof(eth));
        }
        struct capread *c = open_file(&f);
        struct capread_packet p;
        struct capread_info info;
        ck_assert_msg(capread_next(c, &p) == 1, "%s", kinds[i].name);
        ck_assert_uint_eq(p.number, 1);
        ck_assert_uint_eq(p.ns, 1700000000123456000ull);
        ck_assert_uint_eq(p.len, sizeof(eth));
        ck_assert_mem_eq(p.frame, eth, sizeof(eth));
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

/* Every cut of a file gives the whole packets before it, and a report of the cut. */
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
                ng_packet(&f, 0, n, eth, sizeof(eth), sizeof(eth), n & 1 ? "odd" : NULL);
            else
                pcap_packet(&f, 0, n, eth, sizeof(eth), sizeof(eth));
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
    ng_packet(&f, 0, 1700000000000000007ull, eth, sizeof(eth), 60, "rx_icrc_err");
    ng_packet(&f, 1, 512, ip, sizeof(ip), sizeof(ip), NULL);
    size_t at = block(&f, 0x0BAD); /* a block of unknown type */
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
    put32(&f, sizeof(eth));
    put(&f, eth, sizeof(eth));
    block_end(&f, at);
    ng_interface(&f, 1, -1, 0); /* another one in the first section */
    ng_packet(&f, 0, 5, eth, sizeof(eth), sizeof(eth), NULL);
    ng_packet(&f, 1, 6, eth, sizeof(eth), sizeof(eth), NULL);
    ng_section(&f);
    ng_name = "vb0"; /* where va0 was */
    ng_interface(&f, 1, -1, 0);
    ng_name = "va0";
    ng_packet(&f, 0, 7, eth, sizeof(eth), sizeof(eth), NULL);

    struct capread *c = open_file(&f);
    ck_assert_int_eq(capread_next(c, &p), 1);
    ck_assert_uint_eq(p.ns, 1700000000000000007ull);
    ck_assert_str_eq(p.comment, "rx_icrc_err");
    ck_assert_int_eq(p.dir, CAPTURE_OUT);
    ck_assert_uint_eq(p.wire_len, 60);
    ck_assert_int_eq(capread_next(c, &p), 1);
    ck_assert_uint_eq(p.interface, 1);
    ck_assert_uint_eq(p.ns, 100500000000ull);
    ck_assert(p.no_ether);
    ck_assert_ptr_null(p.comment);
    ck_assert_uint_eq(p.len, 34);
    ck_assert_uint_eq(p.frame[12] << 8 | p.frame[13], 0x0800);
    ck_assert_mem_eq(p.frame + 14, ip, sizeof(ip));
    ck_assert_int_eq(capread_next(c, &p), 1);
    ck_assert_uint_eq(p.interface, 0); /* as in the first section */
    ck_assert_mem_eq(p.frame, eth, sizeof(eth));
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
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct capread *c;
        char why[128];
        ck_assert_int_eq(capread_open_mem(cases[i].data, cases[i].len, &c, why, sizeof(why)),
                         -EINVAL);
        ck_assert_str_eq(why, cases[i].why);
    }
    struct capread *c;
    char why[128];
    ck_assert_int_eq(lint_read_open("/nonexistent", &c, why, sizeof(why)), -ENOENT);
    ck_assert_str_eq(why, strerror(ENOENT));
}
END_TEST

/* Impossible lengths end the reading with a reason, not with a crash. */
START_TEST(damage)
{
    struct capread_packet p;
    struct capread_info info;
    struct file f = {0};
    pcap_header(&f, 0xA1B2C3D4, 1);
    pcap_packet(&f, 0, 0, eth, sizeof(eth), sizeof(eth));
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
    ng_packet(&f, 1, 0, eth, sizeof(eth), sizeof(eth), NULL);
    c = open_file(&f);
    ck_assert_int_eq(capread_next(c, &p), 0);
    capread_info(c, &info);
    ck_assert_str_eq(info.damage, "damaged: packet 1 is of an interface that isn't there");
    capread_close(c);

    for (int swap = 0; swap < 2; swap++) {
        f = (struct file){.swap = swap};
        ng_section(&f);
        ng_interface(&f, 1, -1, 0);
        ng_packet(&f, 0, 0, eth, sizeof(eth), sizeof(eth), NULL);
        size_t second = f.len;
        ng_section(&f);
        f.b[second + 12 + (size_t)swap] = 2;
        c = open_file(&f);
        ck_assert_int_eq(capread_next(c, &p), 1);
        ck_assert_int_eq(capread_next(c, &p), 0);
        capread_info(c, &info);
        ck_assert_ptr_nonnull(info.damage);
        ck_assert_str_eq(info.damage, "of an unknown version, pcapng 2.0, after packet 1");
        capread_close(c);
    }

    f = (struct file){0};
    size_t at = block(&f, 0x0A0D0D0A); /* a section header without half of its fields */
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
    const size_t n = sizeof(parts) / sizeof(*parts);
    struct file f = {0};
    struct capread_packet p;
    struct capread_info info;
    for (size_t i = 0; i < n; i++) {
        bool raw = parts[i].link_type == 101;
        f.swap = parts[i].swap;
        pcap_header(&f, parts[i].magic, parts[i].link_type);
        pcap_packet(&f, 1700000000, parts[i].fraction, raw ? ip : eth,
                    raw ? sizeof(ip) : sizeof(eth), 100);
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
        ng_statistics(&f, 2, 1000); /* of a missing interface */
    }
    struct capread *c = open_file(&f);
    ck_assert_int_eq(capread_next(c, &p), 0);
    capread_info(c, &info);
    ck_assert_ptr_null(info.damage);
    ck_assert_uint_eq(info.drops, 30);
    capread_close(c);
}
END_TEST

/* A block with different lengths at its two ends has lost octets: its contents aren't the captured
 * ones, and the start of the next block is unknown. */
START_TEST(blocks_whose_lengths_differ)
{
    static const struct {
        size_t block; /* 0 section, 1 interface, 2 unknown, 3 packet */
        const char *damage;
    } cases[] = {
        {0, "damaged after packet 0: a block of 28 octets that ends as one of 29"},
        {1, "damaged after packet 0: a block of 40 octets that ends as one of 41"},
        {2, "damaged after packet 0: a block of 20 octets that ends as one of 21"},
        {3, "damaged after packet 0: a block of 52 octets that ends as one of 53"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
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
        ng_packet(&f, 0, 0, eth, sizeof(eth), sizeof(eth), NULL);
        ends[3] = f.len;
        ng_packet(&f, 0, 0, eth, sizeof(eth), sizeof(eth), NULL);
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
        memset(big, (int)n, sizeof(big));
        f.len = 0;
        pcap_packet(&f, n, 0, big, 60 + n % 1400, sizeof(big));
        ck_assert_int_eq(write(fd, f.b, f.len), (ssize_t)f.len);
    }
    close(fd);
    struct capread *c;
    char why[128];
    struct capread_packet p;
    struct capread_info info;
    ck_assert_int_eq(lint_read_open(path, &c, why, sizeof(why)), 0);
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

/* A source: some octets, then an error or the end. */
struct broken_source {
    const struct file *f;
    size_t at;
    int then, closed;
};

static ssize_t broken_read(void *arg, void *buf, size_t len)
{
    struct broken_source *s = arg;
    size_t n = s->f->len - s->at < 7 ? s->f->len - s->at : 7;
    n = n < len ? n : len;
    memcpy(buf, s->f->b + s->at, n);
    s->at += n;
    return n ? (ssize_t)n : s->then;
}

static void broken_close(void *arg)
{
    ((struct broken_source *)arg)->closed++;
}

/* The reader returns the source's error after the packets before it, and closes the source once,
 * also if it fails to start. */
START_TEST(a_source_that_fails)
{
    struct file f = {0}, none = {0};
    struct capread *c;
    struct capread_packet p;
    char why[128];
    pcap_header(&f, 0xA1B2C3D4, 1);
    pcap_packet(&f, 1, 2, eth, sizeof(eth), sizeof(eth));
    struct broken_source s = {.f = &f, .then = -EIO};
    const struct capread_source source = {broken_read, broken_close, &s, 0};
    ck_assert_int_eq(capread_open(&source, &c, why, sizeof(why)), 0);
    ck_assert_int_eq(capread_next(c, &p), 1);
    ck_assert_mem_eq(p.frame, eth, sizeof(eth));
    ck_assert_int_eq(capread_next(c, &p), -EIO);
    ck_assert_int_eq(s.closed, 0);
    capread_close(c);
    ck_assert_int_eq(s.closed, 1);

    s = (struct broken_source){.f = &none, .then = -EIO};
    ck_assert_int_eq(capread_open(&source, &c, why, sizeof(why)), -EIO);
    ck_assert_str_eq(why, strerror(EIO));
    ck_assert_int_eq(s.closed, 1);
}
END_TEST

/* Another process has made standard input non-blocking: the reader still waits. */
START_TEST(a_pipe_that_does_not_block)
{
    int fd[2], status;
    struct file f = {0};
    struct capread *c;
    struct capread_packet p;
    char why[128];
    pcap_header(&f, 0xA1B2C3D4, 1);
    pcap_packet(&f, 1, 2, eth, sizeof(eth), sizeof(eth));
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
    ck_assert_msg(lint_read_open("-", &c, why, sizeof(why)) == 0, "%s", why);
    ck_assert_int_eq(capread_next(c, &p), 1);
    ck_assert_mem_eq(p.frame, eth, sizeof(eth));
    ck_assert_int_eq(capread_next(c, &p), 0);
    capread_close(c);
    ck_assert_int_eq(waitpid(writer, &status, 0), writer);
    ck_assert_int_eq(status, 0);
}
END_TEST

UNIT_MAIN("capture reader", classic_pcap_of_every_kind, a_file_cut_short_gives_what_it_has,
          pcapng_interfaces_and_sections, what_is_no_capture, classic_pcaps_joined,
          drops_are_counted_once, blocks_whose_lengths_differ, damage, a_pipe_and_many_packets,
          a_source_that_fails, a_pipe_that_does_not_block)
