/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Any file at all through the capture reader: SEC-03. Every octet of every packet handed out is
 * touched, and lengths, numbers and the end of the file must be consistent. A stream of the same
 * octets, which come in pieces, reads the same.
 */
#include <string.h>

#include "capread.h"
#include "fuzz.h"

/* A number that depends on all that was read. */
static uint64_t fold(uint64_t sum, const void *data, size_t len)
{
    for (size_t i = 0; i < len; i++)
        sum = (sum ^ ((const uint8_t *)data)[i]) * 0x100000001B3u;
    return sum;
}

static uint64_t fold_packet(uint64_t sum, const struct capread_packet *p)
{
    sum = fold(sum, p->frame, p->len);
    sum = fold(sum, &p->ns, sizeof(p->ns));
    sum = fold(sum, &p->wire_len, sizeof(p->wire_len));
    sum = fold(sum, &p->interface, sizeof(p->interface));
    return p->comment ? fold(sum, p->comment, strlen(p->comment)) : sum;
}

static uint64_t read_all(struct capread *c, size_t size)
{
    struct capread_packet p;
    struct capread_info info;
    uint64_t number = 0, octets = 0, sum = 0;
    while (capread_next(c, &p) == 1) {
        FUZZ_CHECK(p.number > number && p.len <= p.wire_len);
        FUZZ_CHECK(p.len <= CAPREAD_FRAME_MAX + 14);
        number = p.number;
        octets += p.len;
        sum = fold_packet(sum, &p);
    }
    FUZZ_CHECK(capread_next(c, &p) == 0);
    capread_info(c, &info);
    FUZZ_CHECK(info.packets >= number && info.offset <= size);
    FUZZ_CHECK(octets <= 15 * (uint64_t)size); /* a record has 16 octets at least; +14 made up */
    sum = fold(sum, &info.packets, sizeof(info.packets));
    sum = info.damage ? fold(sum, info.damage, strlen(info.damage)) : sum;
    capread_close(c);
    return sum;
}

/* A source of which each read gets the next piece. */
struct pieces {
    const uint8_t *data;
    size_t left, piece;
};

static ssize_t read_piece(void *arg, void *buf, size_t len)
{
    struct pieces *p = arg;
    size_t n = p->left < p->piece ? p->left : p->piece;
    n = n < len ? n : len;
    if (n)
        memcpy(buf, p->data, n);
    p->data += n;
    p->left -= n;
    return (ssize_t)n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct capread *c, *stream;
    char why[128] = "", again[128] = "";
    struct pieces pieces = {data, size, 1 + size % 61};
    const struct capread_source source = {.read = read_piece, .arg = &pieces};
    int rc = capread_open_mem(data, size, &c, why, sizeof(why));
    FUZZ_CHECK(capread_open(&source, &stream, again, sizeof(again)) == rc && !strcmp(why, again));
    FUZZ_CHECK(rc == 0 || why[0]);
    if (rc == 0)
        FUZZ_CHECK(read_all(c, size) == read_all(stream, size));
    return 0;
}
