/* SPDX-License-Identifier: BSD-3-Clause
 *
 * CRC-32 by folding. The message is a polynomial, the CRC its remainder, times x^32, by P. 128 bits
 * of it that stand D bits before the end weigh x^D; multiplied by x^D mod P they are 96 bits that
 * have the same remainder and stand at the end, so they can be added to what is there. Carry-less
 * multiplication does that for 64 bits at a time. What is left is divided by P (Barrett).
 *
 * Octets in front that are 0 change nothing, so what is shorter than a vector goes into the
 * vector's end.
 */
#ifndef URNIC_CRC_FOLD_H
#define URNIC_CRC_FOLD_H

#include <immintrin.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "crc_const.h"

#define CRC_INLINE(isa) __attribute__((always_inline, target(isa))) static inline

/* AVX, for vectors of 16 octets, too: AMD's Zen 4 does twice as many multiplications with its
 * instruction as with that of SSE. */
#define CRC_AVX "avx,pclmul"

/* The compiler may read memory twice rather than keep a value, and an application may write in
 * between. The copied octets and those of the CRC must be the same. */
#define CRC_READ_ONCE(v)    __asm__ volatile("" : "+v"(v))
#define CRC_READ_ONCE_64(v) __asm__ volatile("" : "+r"(v))

/* The constants of a distance, for the earlier and the later 64 bits. */
#define CRC_PAIR(distance)                                                                         \
    _mm_set_epi64x((long long)CRC_LATER_##distance, (long long)CRC_EARLIER_##distance)

/* Moved on by the distance of k, plus `next`. */
CRC_INLINE(CRC_AVX) __m128i crc_fold(__m128i x, __m128i k, __m128i next)
{
    return _mm_xor_si128(
        _mm_xor_si128(_mm_clmulepi64_si128(x, k, 0x00), _mm_clmulepi64_si128(x, k, 0x11)), next);
}

/* 96 bits, which end where 128 do -> the CRC's register. */
CRC_INLINE(CRC_AVX) uint32_t crc_divide(__m128i y)
{
    const __m128i k = _mm_set_epi64x((long long)CRC_POLYNOMIAL, (long long)CRC_QUOTIENT);
    __m128i q = _mm_clmulepi64_si128(_mm_srli_si128(y, 4), k, 0x00);
    __m128i product = _mm_clmulepi64_si128(q, k, 0x10);
    return (uint32_t)_mm_extract_epi32(product, 2) ^ (uint32_t)_mm_extract_epi32(y, 3);
}

/* 128 bits -> the CRC's register. */
CRC_INLINE(CRC_AVX) uint32_t crc_reduce(__m128i x)
{
    return crc_divide(crc_fold(x, CRC_PAIR(END_0), _mm_setzero_si128()));
}

/* ---- less than 16 octets ---- */

/* Masks that shift a vector by whole octets. 0x80 makes an octet 0. */
static const uint8_t crc_slide[48] = {
    0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
    0,    1,    2,    3,    4,    5,    6,    7,    8,    9,    10,   11,   12,   13,   14,   15,
    0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
};

/* The first n octets of v moved to the end, the last 16 - n moved to the beginning. n <= 16. */
CRC_INLINE(CRC_AVX) __m128i crc_to_end(__m128i v, size_t n)
{
    return _mm_shuffle_epi8(v, _mm_loadu_si128((const __m128i *)(const void *)(crc_slide + n)));
}

CRC_INLINE(CRC_AVX) __m128i crc_to_begin(__m128i v, size_t n)
{
    return _mm_shuffle_epi8(v,
                            _mm_loadu_si128((const __m128i *)(const void *)(crc_slide + 16 + n)));
}

/* 8, 4, 2 or 1 octets, each by one instruction: also where nothing is optimized, memory that may be
 * gone is never touched by a function of libc. */
#define CRC_OCTETS(bits)                                                                           \
    struct crc_##bits {                                                                            \
        uint##bits##_t v;                                                                          \
    } __attribute__((packed, may_alias))

CRC_OCTETS(8);
CRC_OCTETS(16);
CRC_OCTETS(32);
CRC_OCTETS(64);

#define CRC_AT(bits, p)       (((struct crc_##bits *)(void *)(p))->v)
#define CRC_AT_CONST(bits, p) (((const struct crc_##bits *)(const void *)(p))->v)

__attribute__((always_inline)) static inline uint64_t crc_load(const uint8_t *p, size_t size)
{
    return size == 8   ? CRC_AT_CONST(64, p)
           : size == 4 ? CRC_AT_CONST(32, p)
           : size == 2 ? CRC_AT_CONST(16, p)
                       : CRC_AT_CONST(8, p);
}

__attribute__((always_inline)) static inline void crc_store(uint8_t *p, uint64_t v, size_t size)
{
    if (size == 8)
        CRC_AT(64, p) = v;
    else if (size == 4)
        CRC_AT(32, p) = (uint32_t)v;
    else if (size == 2)
        CRC_AT(16, p) = (uint16_t)v;
    else
        CRC_AT(8, p) = (uint8_t)v;
}

/* n <= 8 octets; dst NULL: nothing is copied. */
__attribute__((always_inline)) static inline uint64_t crc_take_bits(uint8_t *dst,
                                                                    const uint8_t *src, size_t n)
{
    uint64_t all = 0;
#pragma GCC unroll 4
    for (size_t size = 8, at = 0; size > 0; size /= 2) {
        if (!(n & size))
            continue;
        uint64_t v = crc_load(src + at, size);
        CRC_READ_ONCE_64(v);
        if (dst)
            crc_store(dst + at, v, size);
        all |= v << 8 * at;
        at += size;
    }
    return all;
}

/* n < 16 octets. */
CRC_INLINE(CRC_AVX) __m128i crc_take_some(uint8_t *dst, const uint8_t *src, size_t n)
{
    if (n < 8)
        return _mm_cvtsi64_si128((long long)crc_take_bits(dst, src, n));
    uint64_t low = crc_take_bits(dst, src, 8);
    uint64_t high = crc_take_bits(dst ? dst + 8 : NULL, src + 8, n - 8);
    return _mm_set_epi64x((long long)high, (long long)low);
}

/* 16 octets. */
CRC_INLINE(CRC_AVX) __m128i crc_take(uint8_t *dst, const uint8_t *src, size_t off)
{
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)(src + off));
    CRC_READ_ONCE(v);
    if (dst)
        _mm_storeu_si128((__m128i *)(void *)(dst + off), v);
    return v;
}

/* The CRC of less than 16 octets. */
CRC_INLINE(CRC_AVX) uint32_t crc_short(uint32_t crc, uint8_t *dst, const uint8_t *src, size_t n)
{
    if (n == 0)
        return crc;
    __m128i v = _mm_xor_si128(crc_take_some(dst, src, n), _mm_cvtsi32_si128((int)~crc));
    return ~(crc_reduce(crc_to_end(v, n)) ^ (n < 4 ? ~crc >> 8 * n : 0));
}

/* The CRC of x and n octets after it. */
CRC_INLINE(CRC_AVX) uint32_t crc_rest(__m128i x, uint8_t *dst, const uint8_t *src, size_t n)
{
    const __m128i k = CRC_PAIR(128);
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        x = crc_fold(x, k, crc_take(dst, src, i));
    if (n > i) {
        size_t rest = n - i;
        __m128i some = crc_take_some(dst ? dst + i : NULL, src + i, rest);
        x = crc_fold(crc_to_end(x, rest), k,
                     _mm_or_si128(crc_to_begin(x, rest), crc_to_end(some, rest)));
    }
    return ~crc_reduce(x);
}

#endif
