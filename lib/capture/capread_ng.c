/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pcapng: sections of either byte order, any number of interfaces, the three kinds of packet
 * blocks. Unknown blocks of any size are skipped.
 */
#include <stdio.h>

#include "capread_priv.h"

#define BLOCK_MIN    12u
#define SECTION_MIN  28u
#define BLOCK_MAX    (CAPREAD_BUFFER / 2)
#define NS_PER_S     1000000000ull
#define TSRESOL_USEC 6

/* One option after another: sets code, value, len; *at moves on. False at the end. */
static bool option(const struct capread *c, const uint8_t **at, const uint8_t *end, unsigned *code,
                   const uint8_t **value, size_t *len)
{
    const uint8_t *o = *at;
    if (end - o < 4)
        return false;
    *code = capread_16(c, o);
    *len = capread_16(c, o + 2);
    size_t padded = (*len + 3) & ~(size_t)3;
    if (*code == OPT_END || padded > (size_t)(end - o - 4))
        return false;
    *value = o + 4;
    *at = o + 4 + padded;
    return true;
}

/* Units per second of an if_tsresol octet; 0 = invalid. */
static uint64_t resolution(uint8_t tsresol)
{
    unsigned power = tsresol & 0x7F;
    if (tsresol & 0x80)
        return power < 64 ? 1ull << power : 0;
    uint64_t v = 1;
    for (unsigned i = 0; i < power; i++)
        if (__builtin_mul_overflow(v, 10, &v))
            return 0;
    return v;
}

/* Files that are joined (cat) have a section each: the same place in the list, name and link type
 * are the same interface. */
static uint32_t number_of(const struct capread *c, const struct capread_interface *i)
{
    uint32_t at = c->interfaces - c->section + c->before;
    if (at >= c->section)
        return c->interfaces;
    const struct capread_interface *o = &c->interface[at];
    return o->link_type == i->link_type && !strcmp(o->name, i->name) ? o->number : c->interfaces;
}

static int interface_block(struct capread *c, const uint8_t *body, const uint8_t *end)
{
    if (end - body < 8)
        return capread_damaged(c, "damaged interface block");
    struct capread_interface i = {
        .link_type = capread_16(c, body),
        .snaplen = capread_32(c, body + 4),
        .units = resolution(TSRESOL_USEC),
    };
    unsigned code;
    const uint8_t *value;
    size_t len;
    for (body += 8; option(c, &body, end, &code, &value, &len);) {
        if (code == OPT_INTERFACE_NAME)
            snprintf(i.name, sizeof(i.name), "%.*s", (int)len, (const char *)value);
        else if (code == OPT_INTERFACE_TSRESOL && len >= 1)
            i.units = resolution(value[0]);
        else if (code == OPT_INTERFACE_TSOFFSET && len >= 8) {
            uint64_t v;
            memcpy(&v, value, 8);
            i.offset = (int64_t)(c->swapped ? __builtin_bswap64(v) : v);
        }
    }
    if (!i.units)
        return capread_damaged(c, "damaged: interface %u has no usable clock", c->interfaces);
    i.number = number_of(c, &i);
    if (!capread_add_interface(c, &i))
        return capread_damaged(c, "damaged: more than %u interfaces", CAPREAD_INTERFACES);
    return 1;
}

/* Interface statistics: the packets that the capture reports as lost since its start. */
static void statistics_block(struct capread *c, const uint8_t *body, const uint8_t *end)
{
    unsigned code;
    const uint8_t *value;
    size_t len;
    if (end - body < 12 || capread_32(c, body) >= c->interfaces - c->section)
        return;
    struct capread_interface *i = &c->interface[c->section + capread_32(c, body)];
    for (body += 12; option(c, &body, end, &code, &value, &len);) {
        if (code == OPT_STATISTICS_DROPS && len >= 8) {
            uint64_t v;
            memcpy(&v, value, 8);
            v = c->swapped ? __builtin_bswap64(v) : v;
            c->info.drops += v - i->drops;
            i->drops = v;
        }
    }
}

/* Direction and first comment of a packet block. */
static void packet_options(struct capread *c, const uint8_t *at, const uint8_t *end,
                           struct capread_packet *p)
{
    unsigned code;
    const uint8_t *value;
    size_t len;
    while (option(c, &at, end, &code, &value, &len)) {
        if (code == OPT_COMMENT && !p->comment) {
            snprintf(c->comment, sizeof(c->comment), "%.*s", (int)len, (const char *)value);
            p->comment = c->comment;
        } else if (code == OPT_PACKET_FLAGS && len >= 4) {
            unsigned dir = capread_32(c, value) & 3u;
            p->dir = dir == 1 ? CAPTURE_IN : dir == 2 ? CAPTURE_OUT : CAPTURE_NO_DIR;
        }
    }
}

__extension__ typedef unsigned __int128 wide;

static uint64_t to_ns(const struct capread_interface *i, uint64_t units)
{
    uint64_t s = units / i->units, rest = units % i->units;
    uint64_t ns = (uint64_t)((wide)rest * NS_PER_S / i->units);
    return (s + (uint64_t)i->offset) * NS_PER_S + ns;
}

/* A packet block of any of the three kinds. */
static int packet_block(struct capread *c, unsigned type, const uint8_t *body, const uint8_t *end,
                        struct capread_packet *p)
{
    unsigned long long number = c->info.packets + 1;
    size_t head = type == BLOCK_PACKET_SIMPLE ? 4 : 20, have = (size_t)(end - body);
    if (have < head)
        return capread_damaged(c, "damaged: the block of packet %llu is too short", number);
    uint32_t local = type == BLOCK_PACKET_SIMPLE ? 0
                     : type == BLOCK_PACKET      ? capread_32(c, body)
                                                 : capread_16(c, body);
    if (local >= c->interfaces - c->section)
        return capread_damaged(c, "damaged: packet %llu is of an interface that isn't there",
                               number);
    const struct capread_interface *i = &c->interface[c->section + local];
    uint32_t len;
    *p = (struct capread_packet){.frame = body + head, .interface = i->number};
    if (type == BLOCK_PACKET_SIMPLE) { /* neither a time nor a captured length */
        p->wire_len = capread_32(c, body);
        len = i->snaplen && p->wire_len > i->snaplen ? i->snaplen : p->wire_len;
        if (len > have - head)
            len = (uint32_t)(have - head);
    } else {
        uint64_t t = (uint64_t)capread_32(c, body + 4) << 32 | capread_32(c, body + 8);
        len = capread_32(c, body + 12);
        p->wire_len = capread_32(c, body + 16);
        p->ns = to_ns(i, t);
    }
    if (len > have - head || len > CAPREAD_FRAME_MAX)
        return capread_damaged(c, "damaged: packet %llu claims %u octets", number, len);
    p->len = len;
    size_t padded = (len + 3u) & ~(size_t)3;
    if (type != BLOCK_PACKET_SIMPLE && padded < have - head)
        packet_options(c, body + head + padded, end, p);
    return 1;
}

/* Both lengths of a block are the same, or octets of it are missing. */
static bool ends_so(struct capread *c, uint32_t len, const uint8_t *last)
{
    uint32_t again = capread_32(c, last);
    if (again != len)
        capread_damaged(c, "damaged after packet %llu: a block of %u octets that ends as one of %u",
                        (unsigned long long)c->info.packets, len, again);
    return again == len;
}

/* Pass over a block. False when that isn't possible. */
static bool pass(struct capread *c, uint32_t len)
{
    const uint8_t *last = capread_skip(c, len - 4) ? capread_peek(c, 4) : NULL;
    if (!last) {
        capread_damaged(c, "cut short after packet %llu", (unsigned long long)c->info.packets);
        return false;
    }
    if (!ends_so(c, len, last))
        return false;
    capread_take(c, 4);
    return true;
}

/* A section header, which sets the byte order from here on. False: no section header, or one of an
 * unknown version. */
static bool section(struct capread *c)
{
    const uint8_t *h = capread_peek(c, SECTION_MIN);
    uint32_t order;
    if (!h) {
        capread_damaged(c, "cut short after packet %llu", (unsigned long long)c->info.packets);
        return false;
    }
    memcpy(&order, h + 8, 4);
    c->swapped = order == __builtin_bswap32(PCAPNG_ORDER_MAGIC);
    c->before = c->section;
    c->section = c->interfaces;
    if ((!c->swapped && order != PCAPNG_ORDER_MAGIC) || capread_32(c, h + 4) < SECTION_MIN)
        capread_damaged(c, "damaged section header");
    else if (capread_16(c, h + 12) != 1)
        capread_damaged(c, "of an unknown version, pcapng %u.%u, after packet %llu",
                        capread_16(c, h + 12), capread_16(c, h + 14),
                        (unsigned long long)c->info.packets);
    return !c->info.damage;
}

int capread_ng_next(struct capread *c, struct capread_packet *p)
{
    for (;;) {
        const uint8_t *h = capread_peek(c, BLOCK_MIN);
        if (!h) {
            if (c->end > c->at)
                capread_damaged(c, "cut short after packet %llu",
                                (unsigned long long)c->info.packets);
            return 0;
        }
        unsigned type = capread_32(c, h);
        if (type == BLOCK_SECTION) {
            if (!section(c))
                return 0;
            h = capread_peek(c, BLOCK_MIN);
        }
        uint32_t len = capread_32(c, h + 4);
        bool known = type == BLOCK_INTERFACE || type == BLOCK_STATISTICS || type == BLOCK_PACKET ||
                     type == BLOCK_PACKET_SIMPLE || type == BLOCK_PACKET_OLD;
        if (len < BLOCK_MIN || len % 4 || (known && len > BLOCK_MAX))
            return capread_damaged(c, "damaged after packet %llu: a block of %u octets",
                                   (unsigned long long)c->info.packets, len);
        if (!known) {
            if (!pass(c, len))
                return 0;
            continue;
        }
        h = capread_peek(c, len);
        if (!h)
            return capread_damaged(c, "cut short in packet %llu",
                                   (unsigned long long)c->info.packets + 1);
        const uint8_t *body = h + 8, *end = h + len - 4;
        int rc = 1;
        if (!ends_so(c, len, end))
            return 0;
        capread_take(c, len);
        if (type == BLOCK_INTERFACE)
            rc = interface_block(c, body, end);
        else if (type == BLOCK_STATISTICS)
            statistics_block(c, body, end);
        else
            return packet_block(c, type, body, end, p);
        if (rc <= 0)
            return rc;
    }
}
