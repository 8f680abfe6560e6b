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

/* Headers up to the last masked octet: IPv6 + UDP + 5 octets of BTH. */
#define MASKED_MAX (WIRE_IPV6_LEN + WIRE_UDP_LEN + 5u)
/* The copy takes a fixed number of octets when the packet has them: a few vector moves. */
#define COPY_LEN 64u
_Static_assert(COPY_LEN >= MASKED_MAX, "the copy must hold all masked octets");

/* Put ones over what is not invariant. `bth` = offset of the BTH in `m`. */
static inline void mask(uint8_t *m, unsigned ip_version, size_t bth)
{
    if (ip_version == 4) {
        m[1] = 0xFF;  /* TOS */
        m[8] = 0xFF;  /* TTL */
        m[10] = 0xFF; /* header checksum */
        m[11] = 0xFF;
    } else {
        m[0] |= 0x0F; /* traffic class and flow label */
        m[1] = 0xFF;
        m[2] = 0xFF;
        m[3] = 0xFF;
        m[7] = 0xFF; /* hop limit */
    }
    if (bth != WIRE_IPV6_LEN) { /* a GRH has no UDP header behind it */
        m[bth - 2] = 0xFF;      /* UDP checksum */
        m[bth - 1] = 0xFF;
    }
    m[bth + 4] = 0xFF; /* FECN, BECN, reserved */
}

/* CRC of `len` octets that begin with the IP header; `bth` = offset of the BTH. */
static inline uint32_t crc_from_ip(const uint8_t *ip, size_t len, unsigned ip_version, size_t bth)
{
    uint8_t m[2 * COPY_LEN];
    size_t n = COPY_LEN;
    if (len >= sizeof(m)) {
        memcpy(m, ip, COPY_LEN);
    } else {
        /* A short packet is copied whole: one call instead of two. */
        n = len;
        memcpy(m, ip, n);
    }
    mask(m, ip_version, bth);
    uint32_t crc = crc32_gzip_refl(ICRC_SEED, m, n);
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
