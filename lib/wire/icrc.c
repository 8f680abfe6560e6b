/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The invariant CRC: CRC-32 as zlib computes it, with ones in the place of everything that a router
 * may change (ICRC-01..06).
 *
 * ISA-L's crc32_gzip_refl takes and returns the register with the final XOR applied, so a running
 * value is at every point also the finished CRC of what it has covered.
 */
#include "wire.h"

#include <isa-l/crc.h>
#include <string.h>

#include "crc_fold.h"
#include "wire_bytes.h"

/* CRC of the 8 octets of ones that stand for the LRH: 0xDEBB20E3 before the final XOR (ICRC-05). */
#define ICRC_SEED (~0xDEBB20E3u)

/* Up to here the carry-less multiplication of crc_fold.h is faster than ISA-L's functions. */
#define FOLD_MAX 1536u

/* What is not invariant, by what carries the BTH. */
enum carrier { OVER_IPV4, OVER_IPV6, OVER_GRH };

#define BTH_OF_IPV4 (WIRE_IPV4_LEN + WIRE_UDP_LEN)
#define BTH_OF_IPV6 (WIRE_IPV6_LEN + WIRE_UDP_LEN)
_Static_assert(BTH_OF_IPV6 + 5 <= CRC_FOLD_MASK, "masks hold all masked octets");

static const uint8_t masks[][CRC_FOLD_MASK_ROOM] = {
    [OVER_IPV4] =
        {
            [1] = 0xFF,  /* TOS */
            [8] = 0xFF,  /* TTL */
            [10] = 0xFF, /* header checksum */
            [11] = 0xFF,
            [BTH_OF_IPV4 - 2] = 0xFF, /* UDP checksum */
            [BTH_OF_IPV4 - 1] = 0xFF,
            [BTH_OF_IPV4 + 4] = 0xFF, /* FECN, BECN, reserved */
        },
    [OVER_IPV6] =
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
    [OVER_GRH] =
        {
            [0] = 0x0F,
            [1] = 0xFF,
            [2] = 0xFF,
            [3] = 0xFF,
            [7] = 0xFF,
            [WIRE_IPV6_LEN + 4] = 0xFF,
        },
};

/* The first octets of a packet by ISA-L, which knows no masks: of a masked copy. */
static uint32_t crc_of_copy(const uint8_t *ip, size_t len, const uint8_t *mask)
{
    uint8_t m[CRC_FOLD_MASK];
    memcpy(m, ip, len);
    for (size_t i = 0; i < len; i++)
        m[i] |= mask[i];
    return crc32_gzip_refl(ICRC_SEED, m, len);
}

/* CRC of `len` octets that begin with the IP header; `bth` = offset of the BTH. */
static inline uint32_t crc_from_ip(const uint8_t *ip, size_t len, unsigned ip_version, size_t bth)
{
    enum carrier by = ip_version == 4 ? OVER_IPV4 : bth == WIRE_IPV6_LEN ? OVER_GRH : OVER_IPV6;
    bool folding = crc_fold_usable();
    if (folding && len <= FOLD_MAX && len % 4 == 0 && len >= CRC_FOLD_MIN)
        return crc_fold(ICRC_SEED, ip, len, masks[by]);
    size_t n = len < CRC_FOLD_MASK ? len : CRC_FOLD_MASK;
    uint32_t crc = folding && n == CRC_FOLD_MASK ? crc_fold(ICRC_SEED, ip, n, masks[by])
                                                 : crc_of_copy(ip, n, masks[by]);
    return n < len ? crc32_gzip_refl(crc, ip + n, len - n) : crc;
}

uint32_t wire_icrc_headers(const uint8_t *ip, size_t hdr_len, size_t bth)
{
    return crc_from_ip(ip, hdr_len, ip[0] >> 4, bth);
}

uint32_t wire_icrc_start(const uint8_t *ip, size_t hdr_len, unsigned ip_version)
{
    size_t bth = (ip_version == 4 ? WIRE_IPV4_LEN : WIRE_IPV6_LEN) + WIRE_UDP_LEN;
    return crc_from_ip(ip, hdr_len, ip_version, bth);
}

uint32_t wire_icrc_update(uint32_t crc, const void *data, size_t len)
{
    return crc32_gzip_refl(crc, data, len);
}

uint32_t wire_icrc(const uint8_t *frame, size_t len, uint16_t ip_off, uint16_t bth_off)
{
    const uint8_t *ip = frame + ip_off;
    return crc_from_ip(ip, len - WIRE_ICRC_LEN - ip_off, ip[0] >> 4, (size_t)bth_off - ip_off);
}

void wire_icrc_seal(uint8_t *frame, size_t len, uint16_t ip_off, uint16_t bth_off)
{
    uint8_t *end = frame + len - WIRE_ICRC_LEN;
    unsigned pad = frame[bth_off + 1] >> 4 & 3u;
    memset(end - pad, 0, pad);
    wire_put32le(end, wire_icrc(frame, len, ip_off, bth_off));
}
