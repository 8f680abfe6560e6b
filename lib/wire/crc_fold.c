/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A message is a polynomial, its CRC the remainder modulo P. 128 bits that stand n bits before
 * the next ones contribute the same as their two halves multiplied by x^n and x^(n+64) modulo P:
 * two multiplications, and those octets are folded into the next ones. What is left in the end, 128
 * bits, is folded to 64 and reduced by Barrett's method.
 *
 * CRC-32 is reflected: the first bit is the highest power of x and the lowest bit of a register,
 * and a product of two reflected 64-bit numbers is short of one bit. The constants make up for
 * that.
 *
 * A message that isn't a multiple of 16 octets begins with the odd ones: nothing is in front of
 * them, and leading zeros don't count.
 */
#include "crc_fold.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define FOLDING __attribute__((target("pclmul,sse4.1")))

/* x^n mod P, reflected, times x (the missing bit). */
#define X_64      0x163CD6124 /* n = 64 */
#define X_96      0x0CCAA009E /* n = 96 */
#define X_160     0x1751997D0
#define X_480     0x1C6E41596
#define X_544     0x154442BD4
#define POLY      0x1DB710641 /* P itself */
#define POLY_QUOT 0x1F7011641 /* x^64 div P */

FOLDING static inline __m128i load(const uint8_t *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

/* x, moved by the distance that the constants stand for. */
FOLDING static inline __m128i moved(__m128i x, __m128i by)
{
    return _mm_xor_si128(_mm_clmulepi64_si128(x, by, 0x00), _mm_clmulepi64_si128(x, by, 0x11));
}

FOLDING static inline __m128i fold(__m128i x, __m128i by, __m128i next)
{
    return _mm_xor_si128(moved(x, by), next);
}

/* 128 bits to 32. */
FOLDING static inline uint32_t reduce(__m128i x)
{
    const __m128i low = _mm_set_epi32(0, 0, 0, -1);
    __m128i t = _mm_clmulepi64_si128(x, _mm_set_epi64x(0, X_96), 0x00);
    x = _mm_xor_si128(_mm_srli_si128(x, 8), t);
    t = _mm_clmulepi64_si128(_mm_and_si128(x, low), _mm_set_epi64x(0, X_64), 0x00);
    x = _mm_xor_si128(_mm_srli_si128(x, 4), t);
    t = _mm_clmulepi64_si128(_mm_and_si128(x, low), _mm_set_epi64x(0, POLY_QUOT), 0x00);
    t = _mm_clmulepi64_si128(_mm_and_si128(t, low), _mm_set_epi64x(0, POLY), 0x00);
    return (uint32_t)_mm_extract_epi32(_mm_xor_si128(x, t), 1);
}

/* From here a shuffle moves octets up by 16 - n, n octets into the array. */
static const uint8_t shift[32] = {
    0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
    0,    1,    2,    3,    4,    5,    6,    7,    8,    9,    10,   11,   12,   13,   14,   15,
};

FOLDING uint32_t crc_fold(uint32_t crc, const uint8_t *data, size_t len,
                          const uint8_t mask[CRC_FOLD_MASK_ROOM])
{
    const __m128i by_128 = _mm_set_epi64x(X_96, X_160);
    size_t off = (len - 1) % 16 + 1; /* the odd ones: 4 to 16 */
    __m128i x = _mm_or_si128(load(data), load(mask));
    x = _mm_xor_si128(x, _mm_cvtsi32_si128((int)~crc));
    x = _mm_shuffle_epi8(x, load(shift + off)); /* those behind them have their own turn */
    for (; off < len && off < CRC_FOLD_MASK; off += 16)
        x = fold(x, by_128, _mm_or_si128(load(data + off), load(mask + off)));
    if (len - off >= 112) {
        /* Four at a time, whose multiplications need not wait for each other. */
        const __m128i by_512 = _mm_set_epi64x(X_480, X_544);
        __m128i y = load(data + off), z = load(data + off + 16), w = load(data + off + 32);
        for (off += 48; len - off >= 64; off += 64) {
            x = fold(x, by_512, load(data + off));
            y = fold(y, by_512, load(data + off + 16));
            z = fold(z, by_512, load(data + off + 32));
            w = fold(w, by_512, load(data + off + 48));
        }
        x = fold(fold(fold(x, by_128, y), by_128, z), by_128, w);
    }
    for (; off < len; off += 16)
        x = fold(x, by_128, load(data + off));
    return ~reduce(x);
}

#else

uint32_t crc_fold(uint32_t crc, const uint8_t *data, size_t len,
                  const uint8_t mask[CRC_FOLD_MASK_ROOM])
{
    (void)data;
    (void)len;
    (void)mask;
    return crc;
}

#endif
