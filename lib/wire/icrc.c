/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The invariant CRC: CRC-32 as zlib computes it, over a copy of the headers in which everything a
 * router may change is masked with ones (ICRC-01..06).
 *
 * ISA-L's crc32_gzip_refl takes and returns the register with the final XOR applied, so a running
 * value is at every point also the finished CRC of what it has covered.
 */
#include "wire.h"

#include <isa-l/crc.h>
#include <string.h>

#include "wire_bytes.h"

/* CRC of the 8 octets of ones that stand for the LRH: 0xDEBB20E3 before the final XOR (ICRC-05). */
#define ICRC_SEED (~0xDEBB20E3u)

/* What is not invariant, by what carries the BTH: ones in these places. Whole words up to the last
 * one, and no more than the shortest packet has: they are laid over a copy in a few vector moves.
 */
#define BTH_OF_IPV4 (WIRE_IPV4_LEN + WIRE_UDP_LEN)
#define BTH_OF_IPV6 (WIRE_IPV6_LEN + WIRE_UDP_LEN)
#define MASKED_IPV4 (BTH_OF_IPV4 + 12u)
#define MASKED_IPV6 (BTH_OF_IPV6 + 8u)
#define MASKED_GRH  (WIRE_IPV6_LEN + 8u)
_Static_assert(MASKED_IPV4 % 8 == 0 && MASKED_IPV6 % 8 == 0 && MASKED_GRH % 8 == 0, "words");

static const uint8_t ipv4_mask[MASKED_IPV4] = {
    [1] = 0xFF,  /* TOS */
    [8] = 0xFF,  /* TTL */
    [10] = 0xFF, /* header checksum */
    [11] = 0xFF,
    [BTH_OF_IPV4 - 2] = 0xFF, /* UDP checksum */
    [BTH_OF_IPV4 - 1] = 0xFF,
    [BTH_OF_IPV4 + 4] = 0xFF, /* FECN, BECN, reserved */
};

static const uint8_t ipv6_mask[MASKED_IPV6] = {
    [0] = 0x0F, /* traffic class and flow label */
    [1] = 0xFF,
    [2] = 0xFF,
    [3] = 0xFF,
    [7] = 0xFF, /* hop limit */
    [BTH_OF_IPV6 - 2] = 0xFF,
    [BTH_OF_IPV6 - 1] = 0xFF,
    [BTH_OF_IPV6 + 4] = 0xFF,
};

static const uint8_t grh_mask[MASKED_GRH] = {
    /* no UDP header behind it */
    [0] = 0x0F, [1] = 0xFF, [2] = 0xFF, [3] = 0xFF, [7] = 0xFF, [WIRE_IPV6_LEN + 4] = 0xFF,
};

/* A short packet is copied whole: one call of ISA-L instead of two. */
#define COPY_MAX 128u

typedef uint8_t v16 __attribute__((vector_size(16)));

/* ip[0..n) -> m, masked. Inlined, so that `n` is a constant. Moves as wide as ISA-L's, which would
 * wait for narrower ones to reach the cache. */
__attribute__((always_inline)) static inline size_t put_masked(uint8_t *m, const uint8_t *ip,
                                                               const uint8_t *mask, size_t n)
{
    size_t i = 0;
#pragma GCC unroll 4
    for (; i + sizeof(v16) <= n; i += sizeof(v16)) {
        v16 octets, ones;
        memcpy(&octets, ip + i, sizeof(v16));
        memcpy(&ones, mask + i, sizeof(v16));
        octets |= ones;
        memcpy(m + i, &octets, sizeof(v16));
    }
    if (i < n) {
        uint64_t octets, ones;
        memcpy(&octets, ip + i, sizeof(octets));
        memcpy(&ones, mask + i, sizeof(ones));
        octets |= ones;
        memcpy(m + i, &octets, sizeof(octets));
    }
    return n;
}

/* CRC of `len` octets that begin with the IP header, up to the BTH's end at least. `bth` = offset
 * of the BTH, which tells what carries it. */
static inline uint32_t crc_from_ip(const uint8_t *ip, size_t len, size_t bth)
{
    uint8_t m[COPY_MAX];
    size_t n;
    if (bth == BTH_OF_IPV4)
        n = put_masked(m, ip, ipv4_mask, sizeof(ipv4_mask));
    else if (bth == BTH_OF_IPV6)
        n = put_masked(m, ip, ipv6_mask, sizeof(ipv6_mask));
    else
        n = put_masked(m, ip, grh_mask, sizeof(grh_mask));
    if (len > sizeof(m))
        return crc32_gzip_refl(crc32_gzip_refl(ICRC_SEED, m, n), ip + n, len - n);
    memcpy(m + n, ip + n, len - n);
    return crc32_gzip_refl(ICRC_SEED, m, len);
}

uint32_t wire_icrc_headers(const uint8_t *ip, size_t hdr_len, size_t bth)
{
    return crc_from_ip(ip, hdr_len, bth);
}

uint32_t wire_icrc_update(uint32_t crc, const void *data, size_t len)
{
    return crc32_gzip_refl(crc, data, len);
}

uint32_t wire_icrc(const uint8_t *frame, size_t len, uint16_t ip_off, uint16_t bth_off)
{
    return crc_from_ip(frame + ip_off, len - WIRE_ICRC_LEN - ip_off, (size_t)bth_off - ip_off);
}

void wire_icrc_seal(uint8_t *frame, size_t len, uint16_t ip_off, uint16_t bth_off)
{
    uint8_t *end = frame + len - WIRE_ICRC_LEN;
    unsigned pad = frame[bth_off + 1] >> 4 & 3u;
    memset(end - pad, 0, pad);
    wire_put32le(end, wire_icrc(frame, len, ip_off, bth_off));
}
