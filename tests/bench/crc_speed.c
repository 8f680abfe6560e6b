/* SPDX-License-Identifier: BSD-3-Clause
 *
 * crc_speed: the cost of 4 KiB: a CRC, and a copy with its CRC, by each implementation of lib/crc
 * that this CPU runs, beside memcpy and then ISA-L's CRC of the copy. Copies go to the slots of a
 * ring as large as a port's, to where a payload begins.
 *
 * usage: crc_speed [CPU [KIB]]
 *
 * KIB (1024): size of the source of copies.
 *
 * Prints a JSON object each, in bit/s: crc and copy_crc of NAME, "used": true for the one chosen
 * here, and memcpy_isal. Medians of samples that are taken in turn.
 */
#include <isa-l/crc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bench.h"
#include "crc.h"

#define PAYLOAD 4096u
#define SLOT    4352u
#define SLOTS   256u
#define OFFSET  54u /* Ethernet, IPv4, UDP, BTH */
#define SAMPLES 15u
#define ROUNDS  20000u
#define HUGE    ((size_t)2 << 20)
#define KIB_MAX (1 << 20)
#define IMPLS   8u

static uint8_t *ring, *source;
static size_t working_set;
static volatile uint32_t sink; /* so that nothing is optimized away */

static uint32_t memcpy_isal(uint32_t crc, void *dst, const void *src, size_t n)
{
    memcpy(dst, src, n);
    return crc32_gzip_refl(crc, dst, n);
}

/* A sample of copies, bit/s. */
static double copies(uint32_t (*copy)(uint32_t, void *, const void *, size_t))
{
    uint64_t t = clock_ns();
    for (size_t i = 0; i < ROUNDS; i++)
        sink ^=
            copy(0, ring + i % SLOTS * SLOT + OFFSET, source + i * PAYLOAD % working_set, PAYLOAD);
    return (double)ROUNDS * PAYLOAD * 8 * 1e9 / (double)(clock_ns() - t);
}

static double crcs(uint32_t (*update)(uint32_t, const void *, size_t))
{
    uint64_t t = clock_ns();
    for (size_t i = 0; i < ROUNDS; i++)
        sink ^= update(0, source + i * PAYLOAD % working_set, PAYLOAD);
    return (double)ROUNDS * PAYLOAD * 8 * 1e9 / (double)(clock_ns() - t);
}

static double median(double *sample)
{
    qsort(sample, SAMPLES, sizeof(sample[0]), by_size);
    return sample[SAMPLES / 2];
}

static uint8_t *filled(size_t len)
{
    uint8_t *p = aligned_alloc(HUGE, (len + HUGE - 1) / HUGE * HUGE);
    if (!p) {
        perror("crc_speed: aligned_alloc");
        exit(1);
    }
    (void)madvise(p, len, MADV_HUGEPAGE);
    memset(p, 0x5A, len);
    return p;
}

int main(int argc, char **argv)
{
    static double crc[IMPLS][SAMPLES], copy[IMPLS][SAMPLES], beside[SAMPLES];
    int kib = argc > 2 ? atoi(argv[2]) : 1024;
    if (kib < 4 || kib > KIB_MAX || kib % 4) {
        fprintf(stderr, "crc_speed: KIB %s: 4 to %d, a multiple of 4\n", argv[2], KIB_MAX);
        return 2;
    }
    if (argc > 1)
        pin(atoi(argv[1]));
    working_set = (size_t)kib << 10;
    ring = filled((size_t)SLOTS * SLOT);
    source = filled(working_set);
    const char *used = crc_in_use()->name;
    for (unsigned i = 0; i < SAMPLES; i++) {
        beside[i] = copies(memcpy_isal);
        for (unsigned k = 0; k < IMPLS && crc_impl(k); k++) {
            if (!crc_runs_here(crc_impl(k)))
                continue;
            crc[k][i] = crcs(crc_impl(k)->update);
            copy[k][i] = copies(crc_impl(k)->copy);
        }
    }
    printf("{\"name\":\"memcpy_isal\",\"value\":%.0f}\n", median(beside));
    for (unsigned k = 0; k < IMPLS && crc_impl(k); k++) {
        const struct crc_impl *impl = crc_impl(k);
        if (crc_runs_here(impl))
            printf("{\"name\":\"%s\",\"used\":%s,\"crc\":%.0f,\"copy_crc\":%.0f}\n", impl->name,
                   strcmp(impl->name, used) == 0 ? "true" : "false", median(crc[k]),
                   median(copy[k]));
    }
    free(source);
    free(ring);
    return 0;
}
