/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lib/crc: octets in pieces of any length, from memory of exactly that length, by every
 * implementation that this CPU runs. All agree, and the copy is exact.
 *
 * Input: 4 octets of a running value, one of the number of pieces, two for each piece's end; the
 * rest is the data.
 */
#include <string.h>

#include "crc.h"
#include "fuzz.h"

#define PIECES 16u

static uint32_t bitwise(uint32_t crc, const uint8_t *p, size_t n)
{
    crc = ~crc;
    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        for (int b = 0; b < 8; b++)
            crc = crc & 1u ? crc >> 1 ^ 0xEDB88320u : crc >> 1;
    }
    return ~crc;
}

static void run(const struct crc_impl *impl, uint32_t crc, uint32_t want,
                const struct crc_piece *pieces, unsigned n, size_t all)
{
    uint8_t *dst = malloc(all + 1);
    FUZZ_CHECK(dst && crc_choose(impl->name, NULL, 0) == 0);
    FUZZ_CHECK(crc_gather(crc, dst, pieces, n) == want);
    FUZZ_CHECK(impl->update(crc, dst, all) == want);
    size_t at = 0;
    for (unsigned i = 0; i < n; at += pieces[i++].len)
        FUZZ_CHECK(memcmp(dst + at, pieces[i].p, pieces[i].len) == 0);
    free(dst);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
    struct crc_piece pieces[PIECES];
    uint32_t crc, want;
    if (size < 5)
        return 0;
    memcpy(&crc, input, 4);
    unsigned n = input[4] % PIECES + 1;
    if (size < 5 + 2 * n)
        return 0;
    const uint8_t *data = input + 5 + 2 * n;
    size_t all = size - 5 - 2 * n, at = 0;
    want = bitwise(crc, data, all);
    for (unsigned i = 0; i < n; i++) {
        size_t len = (size_t)(input[5 + 2 * i] | input[6 + 2 * i] << 8);
        if (len > all - at || i == n - 1)
            len = all - at;
        uint8_t *p = malloc(len + !len);
        FUZZ_CHECK(p);
        memcpy(p, data + at, len);
        pieces[i] = (struct crc_piece){p, len};
        at += len;
    }
    for (unsigned i = 0; crc_impl(i); i++) {
        if (crc_runs_here(crc_impl(i)))
            run(crc_impl(i), crc, want, pieces, n, all);
    }
    for (unsigned i = 0; i < n; i++)
        free((void *)(uintptr_t)pieces[i].p);
    return 0;
}
