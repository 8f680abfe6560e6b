/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The Internet checksum (RFC 1071), in memory order: a sum of 16-bit words that can be stored or
 * compared without a byte swap.
 */
#ifndef URNIC_WIRE_CSUM_H
#define URNIC_WIRE_CSUM_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Add `len` octets to `sum` and fold to 16 bits. Only the last piece of a sum may have an odd
 * length. Over data that includes its right checksum the result is 0xFFFF. */
static inline uint16_t wire_csum_add(uint64_t sum, const uint8_t *p, size_t len)
{
    uint32_t w;
    for (; len >= 4; p += 4, len -= 4) {
        memcpy(&w, p, 4);
        sum += w;
    }
    if (len) {
        w = 0;
        memcpy(&w, p, len);
        sum += w;
    }
    sum = (sum >> 32) + (sum & 0xFFFFFFFFu);
    sum = (sum >> 16) + (sum & 0xFFFFu);
    sum = (sum >> 16) + (sum & 0xFFFFu);
    sum = (sum >> 16) + (sum & 0xFFFFu);
    return (uint16_t)sum;
}

/* Store the complement of `sum`: the checksum field. */
static inline void wire_csum_put(uint8_t *field, uint16_t sum)
{
    sum = (uint16_t)~sum;
    memcpy(field, &sum, sizeof(sum));
}

#endif
