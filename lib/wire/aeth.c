/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The AETH syndrome octet: its classes, RNR timer codes and credit codes.
 *
 *     bit 7     0
 *     bits 6:5  00 ACK (bits 4:0 credit code), 01 RNR NAK (timer code), 10 reserved, 11 NAK (code)
 */
#include "wire.h"

#define CREDITS_UNLIMITED_CODE 31u

enum wire_aeth_kind wire_aeth_kind(uint8_t syndrome)
{
    switch (syndrome >> 5) {
    case 0:
        return WIRE_AETH_ACK;
    case 1:
        return WIRE_AETH_RNR;
    case 3:
        return syndrome <= WIRE_SYN_NAK_RD ? WIRE_AETH_NAK : WIRE_AETH_INVALID;
    default:
        return WIRE_AETH_INVALID;
    }
}

uint64_t wire_rnr_ns(unsigned code)
{
    /* In units of 10 us. Code 0 is the longest. */
    static const uint16_t units[32] = {
        0,    1,    2,    3,    4,    6,     8,     12,    16,    24,    32,
        48,   64,   96,   128,  192,  256,   384,   512,   768,   1024,  1536,
        2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
    };
    code &= 31u;
    return (code ? units[code] : 65536u) * UINT64_C(10000);
}

uint32_t wire_credits(unsigned code)
{
    code &= 31u;
    if (code == CREDITS_UNLIMITED_CODE)
        return UINT32_MAX;
    if (code < 2u)
        return code;
    /* Codes come in pairs: 2^k and 1.5 * 2^k; 2 and 3 are the first pair. */
    uint32_t base = 1u << (code / 2u);
    return code % 2u ? base + base / 2u : base;
}

unsigned wire_credit_code(uint32_t credits)
{
    unsigned code = CREDITS_UNLIMITED_CODE - 1u;
    while (wire_credits(code) > credits)
        code--;
    return code;
}
