/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The invariant CRC: CRC-32 as zlib computes it, over a copy of the headers in which everything a
 * router may change is masked with ones (ICRC-01..06).
 *
 * lib/crc takes and returns the register with the final XOR applied, so a running value is at every
 * point also the finished CRC of the octets so far.
 */
#include "wire.h"

#include <errno.h>
#include <string.h>

#include "crc_gone.h"
#include "guard.h"
#include "icrc_gone.h"
#include "wire_bytes.h"

/* ICRC-05: 8 octets of ones stand for the LRH. Their CRC. */
#define LRH_LEN 8u
#define LRH_CRC (~0xDEBB20E3u)

#define BTH_OF_IPV4 (WIRE_IPV4_LEN + WIRE_UDP_LEN)
#define BTH_OF_IPV6 (WIRE_IPV6_LEN + WIRE_UDP_LEN)

/* Headers are masked in a copy. It is written in blocks as wide as the reads of a CRC of so few
 * octets. With stores of another width, the CRC would have to wait until they are in the cache,
 * after all payload stores under way. */
typedef uint64_t block __attribute__((vector_size(16)));
#define BLOCK sizeof(block)
#define WORD  sizeof(uint32_t)
/* A short packet is copied whole: one CRC instead of two. */
#define COPY_MAX 128u

/* The variant bits, for each protocol under the BTH: ones in these places. There are none from
 * `len` on, which is at most the length of the shortest packet. */
struct mask {
    size_t len;
    uint8_t ones[COPY_MAX];
};

#define LEN_V4 (BTH_OF_IPV4 + 12u)

static const struct mask ipv4_mask = {
    .len = LEN_V4,
    .ones =
        {
            [1] = 0xFF,  /* TOS */
            [8] = 0xFF,  /* TTL */
            [10] = 0xFF, /* header checksum */
            [11] = 0xFF,
            [BTH_OF_IPV4 - 2] = 0xFF, /* UDP checksum */
            [BTH_OF_IPV4 - 1] = 0xFF,
            [BTH_OF_IPV4 + 4] = 0xFF, /* FECN, BECN, reserved */
        },
};

static const struct mask ipv6_mask = {
    .len = BTH_OF_IPV6 + 8,
    .ones =
        {
            [0] = 0x0F, /* traffic class and flow label */
            [1] = 0xFF,
            [2] = 0xFF,
            [3] = 0xFF,
            [7] = 0xFF, /* hop limit */
            [BTH_OF_IPV6 - 2] = 0xFF,
            [BTH_OF_IPV6 - 1] = 0xFF,
            [BTH_OF_IPV6 + 4] = 0xFF,
        },
};

static const struct mask grh_mask = {
    .len = WIRE_IPV6_LEN + 8, /* no UDP header follows */
    .ones =
        {[0] = 0x0F, [1] = 0xFF, [2] = 0xFF, [3] = 0xFF, [7] = 0xFF, [WIRE_IPV6_LEN + 4] = 0xFF},
};

/* 16 octets of headers. */
static inline void put_block(uint8_t *m, const uint8_t *ip, const uint8_t *ones)
{
    block octets, mask;
    memcpy(&octets, ip, BLOCK);
    memcpy(&mask, ones, BLOCK);
    octets |= mask;
    memcpy(m, &octets, BLOCK);
}

/* The LRH and the first 8 octets of headers. */
static inline void put_first(uint8_t *m, const uint8_t *ip, const uint8_t *ones)
{
    uint64_t octets, mask;
    memcpy(&octets, ip, sizeof(octets));
    memcpy(&mask, ones, sizeof(mask));
    block first = {UINT64_MAX, octets | mask};
    memcpy(m, &first, BLOCK);
}

/* 4 octets of headers, after the last whole block. */
static inline void put_word(uint8_t *m, const uint8_t *ip, const uint8_t *ones)
{
    uint32_t octets, mask;
    memcpy(&octets, ip, sizeof(octets));
    memcpy(&mask, ones, sizeof(mask));
    octets |= mask;
    memcpy(m, &octets, sizeof(octets));
}

/* CRC of the first `span` octets, masked. Inlined, so that a caller with constant `span` handles
 * only whole blocks. */
__attribute__((always_inline)) static inline uint32_t
crc_masked(const uint8_t *ip, const struct mask *mask, size_t span)
{
    uint8_t m[LRH_LEN + COPY_MAX];
    size_t i = 0, lrh = span & LRH_LEN; /* in front where that makes whole blocks */
    if (lrh) {
        put_first(m, ip, mask->ones);
        i = BLOCK - LRH_LEN;
    }
    for (; i + BLOCK <= span; i += BLOCK)
        put_block(m + lrh + i, ip + i, mask->ones + i);
    for (; i + WORD <= span; i += WORD)
        put_word(m + lrh + i, ip + i, mask->ones + i);
    for (; i < span; i++)
        m[lrh + i] = ip[i] | mask->ones[i];
    return crc_update(lrh ? 0 : LRH_CRC, m, lrh + span);
}

/* CRC of `len` octets that begin with the IP header, up to the BTH's end at least. `bth` = offset
 * of the BTH, which tells the protocol under it. */
static uint32_t crc_from_ip(const uint8_t *ip, size_t len, size_t bth)
{
    const struct mask *mask = bth == BTH_OF_IPV4   ? &ipv4_mask
                              : bth == BTH_OF_IPV6 ? &ipv6_mask
                                                   : &grh_mask;
    if (len <= COPY_MAX)
        return crc_masked(ip, mask, len);
    if (mask == &ipv4_mask)
        return crc_update(crc_masked(ip, &ipv4_mask, LEN_V4), ip + LEN_V4, len - LEN_V4);
    return crc_update(crc_masked(ip, mask, mask->len), ip + mask->len, len - mask->len);
}

uint32_t wire_icrc_headers(const uint8_t *ip, size_t hdr_len, size_t bth)
{
    return crc_from_ip(ip, hdr_len, bth);
}

uint32_t wire_icrc_update(uint32_t crc, const void *data, size_t len)
{
    return crc_update(crc, data, len);
}

uint32_t wire_icrc(const uint8_t *frame, size_t len, uint16_t ip_off, uint16_t bth_off)
{
    return crc_from_ip(frame + ip_off, len - WIRE_ICRC_LEN - ip_off, (size_t)bth_off - ip_off);
}

/* HDR-05 */
static unsigned pad_len(const uint8_t *frame, uint16_t bth_off)
{
    return frame[bth_off + 1] >> 4 & 3u;
}

void wire_icrc_seal(uint8_t *frame, size_t len, uint16_t ip_off, uint16_t bth_off)
{
    uint8_t *end = frame + len - WIRE_ICRC_LEN;
    unsigned pad = pad_len(frame, bth_off);
    memset(end - pad, 0, pad);
    wire_put32le(end, wire_icrc(frame, len, ip_off, bth_off));
}

int wire_icrc_gather_gone(uint8_t *frame, size_t len, uint16_t ip_off, uint16_t bth_off,
                          uint16_t payload_off, const struct crc_piece *pieces, unsigned npieces,
                          struct guard_frame *guard)
{
    static const uint8_t zeros[3];
    uint8_t *at = frame + payload_off, *end = frame + len - WIRE_ICRC_LEN;
    unsigned pad = pad_len(frame, bth_off);
    if (len - ip_off <= COPY_MAX) {
        for (unsigned i = 0; i < npieces; at += pieces[i++].len) {
            if (guard_copy(at, pieces[i].p, pieces[i].len) < 0)
                return -EFAULT;
        }
        wire_icrc_seal(frame, len, ip_off, bth_off);
        return 0;
    }
    uint32_t crc =
        crc_from_ip(frame + ip_off, (size_t)payload_off - ip_off, (size_t)bth_off - ip_off);
    if (crc_gather_gone(guard, &crc, at, pieces, npieces) < 0)
        return -EFAULT;
    if (pad > 0)
        crc = crc_copy(crc, end - pad, zeros, pad);
    wire_put32le(end, crc);
    return 0;
}

void wire_icrc_gather(uint8_t *frame, size_t len, uint16_t ip_off, uint16_t bth_off,
                      uint16_t payload_off, const struct crc_piece *pieces, unsigned npieces)
{
    (void)wire_icrc_gather_gone(frame, len, ip_off, bth_off, payload_off, pieces, npieces, NULL);
}
