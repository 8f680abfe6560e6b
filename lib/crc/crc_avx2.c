/* SPDX-License-Identifier: BSD-3-Clause
 *
 * AVX2 with VPCLMULQDQ: eight vectors of 32 octets are under way, because one multiplication takes
 * longer than the next one waits.
 */
#include "crc_fold.h"
#include "crc_impl.h"
#include "guard.h"

#define TARGET "avx2,vpclmulqdq,pclmul"
#define V      ((size_t)32)
#define SHORT  144u /* a packet's headers, which may just have been stored in parts of 16 octets */

#define PAIR(distance) _mm256_broadcastsi128_si256(CRC_PAIR(distance))

/* Both 128 bits moved on by the distance of k, plus `next`. */
CRC_INLINE(TARGET) __m256i fold(__m256i x, __m256i k, __m256i next)
{
    return _mm256_xor_si256(_mm256_xor_si256(_mm256_clmulepi64_epi128(x, k, 0x00),
                                             _mm256_clmulepi64_epi128(x, k, 0x11)),
                            next);
}

CRC_INLINE(TARGET) __m256i take(uint8_t *dst, const uint8_t *src, size_t off)
{
    __m256i v = _mm256_loadu_si256((const __m256i *)(const void *)(src + off));
    CRC_READ_ONCE(v);
    if (dst)
        _mm256_storeu_si256((__m256i *)(void *)(dst + off), v);
    return v;
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
    __m256i x =
        _mm256_xor_si256(take(dst, src, 0), _mm256_zextsi128_si256(_mm_cvtsi32_si128((int)~crc)));
    size_t i = V;
    if (n >= 16 * V) {
        const __m256i k = PAIR(2048);
        __m256i a[8] = {x};
#pragma GCC unroll 8
        for (size_t j = 1; j < 8; j++)
            a[j] = take(dst, src, j * V);
        for (i = 8 * V; i + 8 * V <= n; i += 8 * V) {
#pragma GCC unroll 8
            for (size_t j = 0; j < 8; j++)
                a[j] = fold(a[j], k, take(dst, src, i + j * V));
        }
#pragma GCC unroll 8
        for (size_t j = 0; j < 8; j += 2)
            a[j] = fold(a[j], PAIR(256), a[j + 1]);
#pragma GCC unroll 8
        for (size_t j = 0; j < 8; j += 4)
            a[j] = fold(a[j], PAIR(512), a[j + 2]);
        x = fold(a[0], PAIR(1024), a[4]);
    }
    for (; i + V <= n; i += V)
        x = fold(x, PAIR(256), take(dst, src, i));
    __m128i one =
        crc_fold(_mm256_castsi256_si128(x), CRC_PAIR(128), _mm256_extracti128_si256(x, 1));
    return crc_rest(one, dst ? dst + i : NULL, src + i, n - i);
}

__attribute__((target(TARGET))) uint32_t crc_avx2_update(uint32_t crc, const void *p, size_t n)
{
    return run(crc, NULL, p, n);
}

__attribute__((target(TARGET))) GUARD_CODE uint32_t crc_avx2_copy(uint32_t crc, void *dst,
                                                                  const void *src, size_t n)
{
    return run(crc, dst, src, n);
}
