/* SPDX-License-Identifier: BSD-3-Clause
 *
 * AVX-512 with VPCLMULQDQ: four vectors of 64 octets are under way, because a multiplication takes
 * longer than the time until the next can start. Masks limit reads and writes to the data.
 */
#include "crc_fold.h"
#include "crc_impl.h"
#include "guard.h"

#define TARGET "avx512f,avx512bw,avx512vl,avx512vbmi,vpclmulqdq,pclmul"
#define V      ((size_t)64)
#define SHORT  144u /* a packet's headers, which may just have been stored in parts of 16 octets */

#define PAIR(distance) _mm512_broadcast_i32x4(CRC_PAIR(distance))

/* Fold: move each of the four 128-bit lanes of x on by the distance of k, and add `next` (XOR). */
CRC_INLINE(TARGET) __m512i fold(__m512i x, __m512i k, __m512i next)
{
    return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(x, k, 0x00),
                                     _mm512_clmulepi64_epi128(x, k, 0x11), next, 0x96);
}

CRC_INLINE(TARGET) __m512i take(uint8_t *dst, const uint8_t *src, size_t off)
{
    __m512i v = _mm512_loadu_si512(src + off);
    CRC_READ_ONCE(v);
    if (dst)
        _mm512_storeu_si512(dst + off, v);
    return v;
}

/* n < V octets, in a vector's beginning. */
CRC_INLINE(TARGET) __m512i take_some(uint8_t *dst, const uint8_t *src, size_t n)
{
    __mmask64 some = ((__mmask64)1 << n) - 1;
    __m512i v = _mm512_maskz_loadu_epi8(some, src);
    CRC_READ_ONCE(v);
    if (dst)
        _mm512_mask_storeu_epi8(dst, some, v);
    return v;
}

static const _Alignas(64) uint8_t places[V] = {
    0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
    22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
    44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63,
};

/* The first n octets of v moved to a vector's end, 0 in front. 0 < n < V. */
CRC_INLINE(TARGET) __m512i to_end(__m512i v, size_t n)
{
    __m512i from = _mm512_sub_epi8(_mm512_load_si512(places), _mm512_set1_epi8((char)(V - n)));
    return _mm512_maskz_permutexvar_epi8(~(__mmask64)0 << (V - n), from, v);
}

/* The last V - n octets of v moved to a vector's start, followed by 0. */
CRC_INLINE(TARGET) __m512i to_begin(__m512i v, size_t n)
{
    __m512i from = _mm512_add_epi8(_mm512_load_si512(places), _mm512_set1_epi8((char)n));
    return _mm512_maskz_permutexvar_epi8(~(__mmask64)0 >> n, from, v);
}

CRC_INLINE(TARGET) uint32_t finish(__m512i x)
{
    const __m512i k =
        _mm512_set_epi64((long long)CRC_LATER_END_0, (long long)CRC_EARLIER_END_0,
                         (long long)CRC_LATER_END_128, (long long)CRC_EARLIER_END_128,
                         (long long)CRC_LATER_END_256, (long long)CRC_EARLIER_END_256,
                         (long long)CRC_LATER_END_384, (long long)CRC_EARLIER_END_384);
    __m512i y = fold(x, k, _mm512_setzero_si512());
    __m256i half = _mm256_xor_si256(_mm512_castsi512_si256(y), _mm512_extracti64x4_epi64(y, 1));
    return crc_divide(
        _mm_xor_si128(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1)));
}

/* dst NULL: nothing is copied. */
CRC_INLINE(TARGET) uint32_t run(uint32_t crc, uint8_t *dst, const uint8_t *src, size_t n)
{
    if (n < 16)
        return crc_short(crc, dst, src, n);
    if (n < SHORT) {
        __m128i x = _mm_xor_si128(crc_take(dst, src, 0), _mm_cvtsi32_si128((int)~crc));
        return crc_rest(x, dst ? dst + 16 : NULL, src + 16, n - 16);
    }
    const __m512i k512 = PAIR(512), reg = _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)~crc));
    __m512i x = _mm512_xor_si512(take(dst, src, 0), reg);
    size_t i = V;
    if (n >= 8 * V) {
        const __m512i k2048 = PAIR(2048);
        const __m512i k1024 = PAIR(1024);
        __m512i b = take(dst, src, V), c = take(dst, src, 2 * V), d = take(dst, src, 3 * V);
        for (i = 4 * V; i + 4 * V <= n; i += 4 * V) {
            x = fold(x, k2048, take(dst, src, i));
            b = fold(b, k2048, take(dst, src, i + V));
            c = fold(c, k2048, take(dst, src, i + 2 * V));
            d = fold(d, k2048, take(dst, src, i + 3 * V));
        }
        x = fold(fold(x, k512, b), k1024, fold(c, k512, d));
    }
    for (; i + V <= n; i += V)
        x = fold(x, k512, take(dst, src, i));
    if (i < n) {
        size_t rest = n - i;
        __m512i some = take_some(dst ? dst + i : NULL, src + i, rest);
        __m512i last = _mm512_or_si512(to_begin(x, rest), to_end(some, rest));
        x = fold(to_end(x, rest), k512, last);
    }
    return ~finish(x);
}

__attribute__((target(TARGET))) uint32_t crc_avx512_update(uint32_t crc, const void *p, size_t n)
{
    return run(crc, NULL, p, n);
}

__attribute__((target(TARGET))) GUARD_CODE uint32_t crc_avx512_copy(uint32_t crc, void *dst,
                                                                    const void *src, size_t n)
{
    return run(crc, dst, src, n);
}
