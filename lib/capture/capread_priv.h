/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Private to the capture reader: the byte stream, and the common parts of pcap and pcapng.
 */
#ifndef URNIC_CAPREAD_PRIV_H
#define URNIC_CAPREAD_PRIV_H

#include <string.h>

#include "capread.h"

#define CAPREAD_BUFFER     (1u << 20)
#define CAPREAD_INTERFACES 65536u /* a file with more is damaged, or an attack */
#define CAPREAD_NAME_MAX   64u

struct capread_interface {
    char name[CAPREAD_NAME_MAX];
    uint16_t link_type;
    uint64_t units; /* of the time stamps, per second */
    int64_t offset; /* seconds to add */
    uint32_t snaplen;
    uint32_t number; /* number in packets: its own, or that of the same interface in an earlier
                        section */
    uint64_t drops;  /* from its last statistics block */
};

struct capread {
    struct capread_source source; /* read NULL: from memory */
    bool pcapng, swapped, eof;
    bool ns;              /* pcap: nanoseconds */
    uint32_t record_size; /* pcap: octets of a record's header */
    int error;            /* -errno of a read that failed */
    /* buffered octets: buf[at .. end) */
    uint8_t *own;
    const uint8_t *buf;
    size_t at, end;
    /* pcapng: interfaces of the current section begin at `section`, those of the one before at
     * `before`; pcap: `section` is the one that packets are of */
    struct capread_interface *interface;
    uint32_t interfaces, room, section, before;
    uint8_t *scratch;
    struct capread_info info;
    char damage[128];
    char comment[CAPREAD_COMMENT_MAX];
};

static inline uint16_t capread_16(const struct capread *c, const void *p)
{
    uint16_t v;
    memcpy(&v, p, 2);
    return c->swapped ? __builtin_bswap16(v) : v;
}

static inline uint32_t capread_32(const struct capread *c, const void *p)
{
    uint32_t v;
    memcpy(&v, p, 4);
    return c->swapped ? __builtin_bswap32(v) : v;
}

/* The next `n` octets without taking them, or NULL when fewer are left. `n` <= CAPREAD_BUFFER / 2.
 */
const uint8_t *capread_peek(struct capread *c, size_t n);

/* Take `n` octets that were peeked at. */
static inline void capread_take(struct capread *c, size_t n)
{
    c->at += n;
    c->info.offset += n;
}

/* Pass over `n` octets, buffered or not. False when the file ends before. */
bool capread_skip(struct capread *c, uint64_t n);

/* Note why reading ends here; keeps the first reason. Returns 0, as capread_next does then. */
int capread_damaged(struct capread *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Append an interface. False when there are too many or memory is out. */
bool capread_add_interface(struct capread *c, const struct capread_interface *i);

/* pcapng: one packet, as capread_next; *p has the octets as they are in the file. */
int capread_ng_next(struct capread *c, struct capread_packet *p);

#endif
