/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The capture reader: byte stream, classic pcap, and the steps common to all formats.
 *
 * The source is read in large pieces. A packet is handed out where it lies in the buffer.
 */
#include "capread.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capread_link.h"
#include "capread_priv.h"
#include "capread_tunnel.h"
#include "wire.h"

#define PCAP_MAGIC_US       0xA1B2C3D4u
#define PCAP_MAGIC_NS       0xA1B23C4Du
#define PCAP_MAGIC_MODIFIED 0xA1B2CD34u /* Kuznetsov's: 8 more octets in each record's header */
#define PCAPNG_MAGIC        0x0A0D0D0Au
#define PCAP_HEADER         24u
#define PCAP_RECORD         16u
#define NS_PER_S            1000000000ull

/* Read until `n` octets are buffered or the file ends. */
static void fill(struct capread *c, size_t n)
{
    if (!c->source.read) {
        c->eof = true;
        return;
    }
    memmove(c->own, c->own + c->at, c->end - c->at);
    c->end -= c->at;
    c->at = 0;
    while (c->end < n && !c->eof) {
        ssize_t got = c->source.read(c->source.arg, c->own + c->end, CAPREAD_BUFFER - c->end);
        if (got < 0)
            c->error = (int)got;
        if (got <= 0)
            c->eof = true;
        else
            c->end += (size_t)got;
    }
}

const uint8_t *capread_peek(struct capread *c, size_t n)
{
    if (c->end - c->at < n && !c->eof)
        fill(c, n);
    return c->end - c->at < n ? NULL : c->buf + c->at;
}

bool capread_skip(struct capread *c, uint64_t n)
{
    while (n) {
        if (c->at == c->end && !capread_peek(c, 1))
            return false;
        uint64_t have = c->end - c->at;
        uint64_t step = n < have ? n : have;
        capread_take(c, step);
        n -= step;
    }
    return true;
}

int capread_damaged(struct capread *c, const char *format, ...)
{
    if (!c->damage[0]) {
        va_list ap;
        va_start(ap, format);
        vsnprintf(c->damage, sizeof(c->damage), format, ap);
        va_end(ap);
        c->info.damage = c->damage;
    }
    c->at = c->end;
    c->eof = true;
    return 0;
}

bool capread_add_interface(struct capread *c, const struct capread_interface *i)
{
    if (c->interfaces == c->room) {
        uint32_t room = c->room ? 2 * c->room : 4;
        if (c->room >= CAPREAD_INTERFACES)
            return false;
        void *more = realloc(c->interface, room * sizeof(*c->interface));
        if (!more)
            return false;
        c->interface = more;
        c->room = room;
    }
    c->interface[c->interfaces++] = *i;
    c->info.interfaces = c->interfaces;
    return true;
}

/* The magic number of classic pcap, in either byte order; 0 = another number. */
static uint32_t pcap_magic(const uint8_t *h, bool *swapped)
{
    uint32_t magic;
    memcpy(&magic, h, 4);
    for (int turn = 0; turn < 2; turn++, magic = __builtin_bswap32(magic)) {
        *swapped = turn;
        if (magic == PCAP_MAGIC_US || magic == PCAP_MAGIC_NS || magic == PCAP_MAGIC_MODIFIED)
            return magic;
    }
    return 0;
}

/* The file header of classic pcap, after its magic number. */
static int pcap_begin(struct capread *c, uint32_t magic)
{
    const uint8_t *h = capread_peek(c, PCAP_HEADER);
    if (!h)
        return -EINVAL;
    c->ns = magic == PCAP_MAGIC_NS;
    c->record_size = magic == PCAP_MAGIC_MODIFIED ? PCAP_RECORD + 8 : PCAP_RECORD;
    struct capread_interface i = {
        .link_type = (uint16_t)capread_32(c, h + 20), /* above it: FCS length */
        .snaplen = capread_32(c, h + 16),
    };
    capread_take(c, PCAP_HEADER);
    c->info.format = "pcap";
    for (c->section = 0; c->section < c->interfaces; c->section++)
        if (c->interface[c->section].link_type == i.link_type)
            return 0;
    return capread_add_interface(c, &i) ? 0 : -ENOMEM;
}

/* Does another file's header stand in place of a record? Then files were joined (cat), and it is in
 * force from here on. As a record it would have no octets, and a time in the year 2055. */
static bool pcap_joined(struct capread *c, const uint8_t *h)
{
    bool swapped;
    uint32_t magic = pcap_magic(h, &swapped);
    if (!magic || memcmp(h + 4, h[0] == 0xA1 ? "\0\2\0\4" : "\2\0\4\0", 4) != 0)
        return false;
    c->swapped = swapped;
    if (pcap_begin(c, magic) < 0)
        capread_damaged(c, "cut short after packet %llu", (unsigned long long)c->info.packets);
    return true;
}

/* One record of classic pcap, unchanged. */
static int pcap_next(struct capread *c, struct capread_packet *p)
{
    const uint8_t *h;
    while ((h = capread_peek(c, c->record_size)) && pcap_joined(c, h))
        ;
    if (!h) {
        if (c->end > c->at)
            capread_damaged(c, "cut short in the header of packet %llu",
                            (unsigned long long)c->info.packets + 1);
        return 0;
    }
    uint64_t s = capread_32(c, h), fraction = capread_32(c, h + 4);
    uint32_t len = capread_32(c, h + 8), wire_len = capread_32(c, h + 12);
    if (len > CAPREAD_FRAME_MAX)
        return capread_damaged(c, "damaged: packet %llu claims %u octets",
                               (unsigned long long)c->info.packets + 1, len);
    if (!capread_peek(c, c->record_size + len))
        return capread_damaged(c, "cut short in packet %llu",
                               (unsigned long long)c->info.packets + 1);
    capread_take(c, c->record_size);
    p->ns = s * NS_PER_S + fraction * (c->ns ? 1 : 1000);
    p->frame = c->buf + c->at;
    p->len = len;
    p->wire_len = wire_len;
    p->interface = c->section;
    p->dir = CAPTURE_NO_DIR;
    p->comment = NULL;
    capread_take(c, len);
    return 1;
}

/* Why a file with these first octets can't be read. */
static const char *not_a_capture(struct capread *c)
{
    static const struct {
        const char *magic, *why;
        size_t len;
    } packed[] = {
        {"\x1F\x8B", "compressed: pipe it through 'gzip -dc'", 2},
        {"\x28\xB5\x2F\xFD", "compressed: pipe it through 'zstd -dc'", 4},
        {"\xFD\x37zXZ", "compressed: pipe it through 'xz -dc'", 5},
        {"\x04\x22\x4D\x18", "compressed: pipe it through 'lz4 -dc'", 4},
    };
    for (size_t i = 0; i < sizeof(packed) / sizeof(*packed); i++) {
        const uint8_t *m = capread_peek(c, packed[i].len);
        if (m && !memcmp(m, packed[i].magic, packed[i].len))
            return packed[i].why;
    }
    const uint8_t *m = capread_peek(c, 10); /* "BZh", the level, the first block's magic number */
    if (m && !memcmp(m, "BZh", 3) && !memcmp(m + 4, "1AY&SY", 6))
        return "compressed: pipe it through 'bzip2 -dc'";
    return "neither pcap nor pcapng";
}

/* Look at the magic number. */
static int begin(struct capread *c, char *why, size_t why_size)
{
    const uint8_t *m = capread_peek(c, 4);
    if (c->error) {
        snprintf(why, why_size, "%s", strerror(-c->error));
        return c->error;
    }
    if (!m) {
        snprintf(why, why_size, "too short to be a capture");
        return -EINVAL;
    }
    uint32_t magic;
    memcpy(&magic, m, 4);
    if (magic == PCAPNG_MAGIC) { /* the same in both byte orders */
        c->pcapng = true;
        c->info.format = "pcapng";
        return 0;
    }
    int rc = -EINVAL;
    magic = pcap_magic(m, &c->swapped);
    if (!magic)
        snprintf(why, why_size, "%s", not_a_capture(c));
    else if ((rc = pcap_begin(c, magic)) == -EINVAL)
        snprintf(why, why_size, "cut short in the file header");
    else if (rc)
        snprintf(why, why_size, "%s", strerror(-rc));
    return rc;
}

static int start(struct capread *c, struct capread **out, char *why, size_t why_size)
{
    c->scratch = malloc(CAPREAD_FRAME_MAX + WIRE_ETH_LEN);
    int rc = c->scratch ? begin(c, why, why_size) : -ENOMEM;
    if (!c->scratch)
        snprintf(why, why_size, "%s", strerror(ENOMEM));
    if (rc < 0) {
        capread_close(c);
        return rc;
    }
    *out = c;
    return 0;
}

int capread_open(const struct capread_source *source, struct capread **out, char *why,
                 size_t why_size)
{
    struct capread *c = calloc(1, sizeof(*c));
    uint8_t *own = malloc(CAPREAD_BUFFER);
    if (!c || !own) {
        snprintf(why, why_size, "%s", strerror(ENOMEM));
        if (source->close)
            source->close(source->arg);
        free(c);
        free(own);
        return -ENOMEM;
    }
    c->source = *source;
    c->buf = c->own = own;
    c->info.size = source->size;
    return start(c, out, why, why_size);
}

int capread_open_mem(const void *data, size_t len, struct capread **out, char *why, size_t why_size)
{
    struct capread *c = calloc(1, sizeof(*c));
    if (!c) {
        snprintf(why, why_size, "%s", strerror(ENOMEM));
        return -ENOMEM;
    }
    c->eof = true;
    c->buf = data;
    c->end = len;
    c->info.size = len;
    return start(c, out, why, why_size);
}

int capread_next(struct capread *c, struct capread_packet *p)
{
    for (;;) {
        int rc = c->pcapng ? capread_ng_next(c, p) : pcap_next(c, p);
        if (rc <= 0)
            return c->error ? c->error : rc;
        p->number = ++c->info.packets;
        if (capread_link(c->interface[p->interface].link_type, p->frame, p->len, p->wire_len,
                         c->scratch, p)) {
            enum capread_carrier carrier = capread_tunnel(c->scratch, p);
            c->info.wrapped[carrier] += carrier != CAPREAD_PLAIN;
            capread_sliced(p);
            c->info.cut += p->len < p->wire_len;
            return 1;
        }
        c->info.skipped++;
        c->info.infiniband +=
            capread_link_infiniband(c->interface[p->interface].link_type, p->frame, p->len);
    }
}

void capread_info(const struct capread *c, struct capread_info *out)
{
    *out = c->info;
}

void capread_close(struct capread *c)
{
    if (!c)
        return;
    if (c->source.close)
        c->source.close(c->source.arg);
    free(c->own);
    free(c->interface);
    free(c->scratch);
    free(c);
}
