/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ring_floor: a lower bound for the time of a full frame from one daemon to another over shared
 * memory. Two threads and a ring of frames, as many as memif's: the sender copies a payload in with
 * its CRC (lib/crc, as daemons do), the receiver computes the CRC and copies the payload out. No
 * protocol at all.
 *
 * usage: ring_floor [CPU-A CPU-B [MIB]]
 *
 * MIB (1): size of the sender's source and of the receiver's destination.
 *
 * Prints two JSON objects, in bit/s of payload: ring_copy_crc, and ring_copy without the CRCs.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bench.h"
#include "crc.h"

#define SLOTS     1024u
#define SLOT      4352u
#define HEADER    64u
#define PAYLOAD   4096u
#define BURST     32u
#define MIB       (1u << 20)
#define MIB_MAX   1024
#define SAMPLES   5u
#define SAMPLE_NS 100000000u

struct side {
    pthread_t thread;
    int cpu;
    uint8_t *memory;
    uint32_t crc; /* so that nothing is optimized away */
};

static uint8_t *ring;
static size_t working_set = MIB;
static bool with_crc;
static _Alignas(128) _Atomic uint64_t produced;
static _Alignas(128) _Atomic uint64_t consumed;
static _Alignas(128) atomic_bool stop;

static uint8_t *slot(uint64_t i)
{
    return ring + i % SLOTS * SLOT;
}

static uint8_t *piece(const struct side *s, uint64_t i)
{
    return s->memory + i * PAYLOAD % working_set;
}

static void *sender(void *arg)
{
    struct side *s = arg;
    uint64_t i = 0;
    pin(s->cpu);
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        if (SLOTS - (i - atomic_load_explicit(&consumed, memory_order_acquire)) < BURST)
            continue;
        for (unsigned k = 0; k < BURST; k++, i++) {
            if (with_crc)
                s->crc ^= crc_copy(crc_update(0, slot(i), HEADER), slot(i) + HEADER, piece(s, i),
                                   PAYLOAD);
            else
                memcpy(slot(i) + HEADER, piece(s, i), PAYLOAD);
        }
        atomic_store_explicit(&produced, i, memory_order_release);
    }
    return NULL;
}

static void *receiver(void *arg)
{
    struct side *s = arg;
    uint64_t i = 0;
    pin(s->cpu);
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        uint64_t until = atomic_load_explicit(&produced, memory_order_acquire);
        if (until - i > BURST)
            until = i + BURST;
        for (; i < until; i++) {
            if (with_crc)
                s->crc ^= crc_update(0, slot(i), HEADER + PAYLOAD);
            memcpy(piece(s, i), slot(i) + HEADER, PAYLOAD);
        }
        atomic_store_explicit(&consumed, i, memory_order_release);
    }
    return NULL;
}

/* Median of the samples, bit/s. */
static double measure(struct side side[2], bool crc)
{
    double sample[SAMPLES];
    with_crc = crc;
    atomic_store(&stop, false);
    atomic_store(&produced, 0);
    atomic_store(&consumed, 0);
    if (pthread_create(&side[0].thread, NULL, sender, &side[0]) ||
        pthread_create(&side[1].thread, NULL, receiver, &side[1])) {
        perror("ring_floor: pthread_create");
        exit(1);
    }
    for (unsigned i = 0; i < SAMPLES; i++) {
        const struct timespec ts = {.tv_nsec = SAMPLE_NS};
        uint64_t t = clock_ns(), n = atomic_load(&consumed);
        nanosleep(&ts, NULL);
        sample[i] =
            (double)(atomic_load(&consumed) - n) * PAYLOAD * 8 * 1e9 / (double)(clock_ns() - t);
    }
    atomic_store(&stop, true);
    for (unsigned i = 0; i < 2; i++)
        pthread_join(side[i].thread, NULL);
    qsort(sample, SAMPLES, sizeof(sample[0]), by_size);
    return sample[SAMPLES / 2];
}

/* In huge pages, if the kernel gives any: neither do daemons look up an address for each packet. */
static uint8_t *filled(size_t len)
{
    uint8_t *p = aligned_alloc(2 * MIB, (len + 2 * MIB - 1) / (2 * MIB) * (2 * MIB));
    if (!p) {
        perror("ring_floor: aligned_alloc");
        exit(1);
    }
    (void)madvise(p, len, MADV_HUGEPAGE);
    memset(p, 0x5A, len);
    return p;
}

int main(int argc, char **argv)
{
    struct side side[2] = {{.cpu = argc > 2 ? atoi(argv[1]) : 0},
                           {.cpu = argc > 2 ? atoi(argv[2]) : 1}};
    int mib = argc > 3 ? atoi(argv[3]) : 1;
    if (mib < 1 || mib > MIB_MAX) {
        fprintf(stderr, "ring_floor: MIB %s: 1 to %d\n", argv[3], MIB_MAX);
        return 2;
    }
    working_set = (size_t)mib * MIB;

    ring = filled(SLOTS * SLOT);
    for (unsigned i = 0; i < 2; i++)
        side[i].memory = filled(working_set);
    double crc = measure(side, true);
    double copy = measure(side, false);
    printf("{\"name\":\"ring_copy_crc\",\"value\":%.0f,\"unit\":\"b/s\"}\n", crc);
    printf("{\"name\":\"ring_copy\",\"value\":%.0f,\"unit\":\"b/s\"}\n", copy);
    for (unsigned i = 0; i < 2; i++)
        free(side[i].memory);
    free(ring);
    return 0;
}
