/* SPDX-License-Identifier: BSD-3-Clause
 *
 * core_lat: the time of a cache line from one core to another. On a virtual machine with cores that
 * its host moves this changes by a factor of four within seconds, and so do all measurements that
 * involve two cores.
 *
 * usage: core_lat [CPU-A CPU-B]
 *
 * Prints one JSON object: the best of some short rounds, ns one way.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"

#define ROUNDS 40u
#define TURNS  100u

static _Alignas(128) _Atomic uint32_t ball; /* even: A has it; else B */
static int cpu[2] = {0, 1};

/* Wait for the ball's number `from`, pass it on. Yields when it takes long: both may be on one
 * core. */
static void pass(uint32_t from)
{
    for (unsigned looks = 1; atomic_load_explicit(&ball, memory_order_acquire) != from; looks++) {
        if (looks % 10000 == 0)
            sched_yield();
    }
    atomic_store_explicit(&ball, from + 1, memory_order_release);
}

static void *other(void *arg)
{
    (void)arg;
    pin(cpu[1]);
    for (uint32_t i = 0; i < ROUNDS * TURNS; i++)
        pass(2 * i + 1);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < 2 && argc > 2; i++)
        cpu[i] = atoi(argv[1 + i]);
    pin(cpu[0]);
    errno = pthread_create(&thread, NULL, other, NULL);
    if (errno) {
        perror("core_lat: pthread_create");
        return 1;
    }
    for (uint32_t i = 0; i < ROUNDS; i++) {
        uint64_t began = clock_ns();
        for (uint32_t k = 0; k < TURNS; k++)
            pass(2 * (i * TURNS + k));
        uint64_t took = clock_ns() - began;
        if (i > 0 && took < best)
            best = took;
    }
    pthread_join(thread, NULL);
    printf("{\"name\":\"core_lat\",\"value\":%.1f,\"unit\":\"ns\"}\n",
           (double)best / (2.0 * TURNS));
    return 0;
}
