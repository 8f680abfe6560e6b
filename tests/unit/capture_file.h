/* SPDX-License-Identifier: BSD-3-Clause
 *
 * For the tests of the capture reader: pcap files made octet by octet.
 */
#ifndef URNIC_TESTS_CAPTURE_FILE_H
#define URNIC_TESTS_CAPTURE_FILE_H

#include <string.h>

#include "capread.h"
#include "unit.h"

/* A file under construction. `swap` = the byte order that isn't ours. */
struct file {
    uint8_t b[8192];
    size_t len;
    bool swap;
};

static inline void put(struct file *f, const void *p, size_t n)
{
    ck_assert_uint_le(f->len + n, sizeof(f->b));
    memcpy(f->b + f->len, p, n);
    f->len += n;
}

static inline void put16(struct file *f, uint16_t v)
{
    v = f->swap ? __builtin_bswap16(v) : v;
    put(f, &v, 2);
}

static inline void put32(struct file *f, uint32_t v)
{
    v = f->swap ? __builtin_bswap32(v) : v;
    put(f, &v, 4);
}

static inline void put64(struct file *f, uint64_t v)
{
    v = f->swap ? __builtin_bswap64(v) : v;
    put(f, &v, 8);
}

static inline void pcap_header(struct file *f, uint32_t magic, uint32_t link_type)
{
    put32(f, magic);
    put16(f, 2);
    put16(f, 4);
    put64(f, 0);
    put32(f, 65535);
    put32(f, link_type);
}

static inline void pcap_packet(struct file *f, uint32_t s, uint32_t fraction, const void *p,
                               uint32_t len, uint32_t wire_len)
{
    put32(f, s);
    put32(f, fraction);
    put32(f, len);
    put32(f, wire_len);
    put(f, p, len);
}

static inline struct capread *open_file(const struct file *f)
{
    struct capread *c;
    char why[128];
    ck_assert_int_eq(capread_open_mem(f->b, f->len, &c, why, sizeof(why)), 0);
    return c;
}

static const uint8_t eth[18] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xB5, 1, 2, 3, 4};

#endif
