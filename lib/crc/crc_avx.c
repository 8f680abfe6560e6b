/* SPDX-License-Identifier: BSD-3-Clause
 *
 * AVX with PCLMULQDQ: eight vectors of 16 octets are under way, because one multiplication takes
 * longer than the next one waits.
 */
#include "crc_fold.h"
#include "crc_impl.h"
#include "guard.h"

#define V ((size_t)16)

/* dst NULL: nothing is copied. */
CRC_INLINE(CRC_AVX) uint32_t run(uint32_t crc, uint8_t *dst, const uint8_t *src, size_t n)
{
    if (n < V)
        return crc_short(crc, dst, src, n);
    __m128i x = _mm_xor_si128(crc_take(dst, src, 0), _mm_cvtsi32_si128((int)~crc));
    size_t i = V;
    if (n >= 16 * V) {
        const __m128i k = CRC_PAIR(1024);
        __m128i a[8] = {x};
#pragma GCC unroll 8
        for (size_t j = 1; j < 8; j++)
            a[j] = crc_take(dst, src, j * V);
        for (i = 8 * V; i + 8 * V <= n; i += 8 * V) {
#pragma GCC unroll 8
            for (size_t j = 0; j < 8; j++)
                a[j] = crc_fold(a[j], k, crc_take(dst, src, i + j * V));
        }
#pragma GCC unroll 8
        for (size_t j = 0; j < 8; j += 2)
            a[j] = crc_fold(a[j], CRC_PAIR(128), a[j + 1]);
#pragma GCC unroll 8
        for (size_t j = 0; j < 8; j += 4)
            a[j] = crc_fold(a[j], CRC_PAIR(256), a[j + 2]);
        x = crc_fold(a[0], CRC_PAIR(512), a[4]);
    }
    return crc_rest(x, dst ? dst + i : NULL, src + i, n - i);
}

__attribute__((target(CRC_AVX))) uint32_t crc_avx_update(uint32_t crc, const void *p, size_t n)
{
    return run(crc, NULL, p, n);
}

__attribute__((target(CRC_AVX))) GUARD_CODE uint32_t crc_avx_copy(uint32_t crc, void *dst,
                                                                  const void *src, size_t n)
{
    return run(crc, dst, src, n);
}
