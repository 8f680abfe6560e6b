/* SPDX-License-Identifier: BSD-3-Clause
 *
 * relay_lat: the latency of application - daemon - daemon - application without a NIC: four
 * processes that only pass a number on through shared memory, each polling and yielding after every
 * empty poll. A daemon that polls longer before it yields can be faster.
 *
 * usage: relay_lat [CPU-A CPU-B]   applications and daemons of side A and side B are pinned there
 *
 * Prints one JSON object: median half round trip in ns.
 */
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define ROUNDS 100000u
#define WARM   5000u

struct hop {
    _Alignas(64) _Atomic uint64_t forward;
    _Alignas(64) _Atomic uint64_t back;
};

struct shared {
    struct hop hop[3]; /* A's application - A's daemon - B's daemon - B's application */
};

static void relay(struct hop *left, struct hop *right)
{
    uint64_t forward = 0, back = 0;
    while (back < ROUNDS + WARM) {
        uint64_t f = atomic_load_explicit(&left->forward, memory_order_acquire);
        uint64_t b = atomic_load_explicit(&right->back, memory_order_acquire);
        if (f == forward && b == back) {
            sched_yield();
            continue;
        }
        if (f != forward)
            atomic_store_explicit(&right->forward, forward = f, memory_order_release);
        if (b != back)
            atomic_store_explicit(&left->back, back = b, memory_order_release);
    }
}

static void echo(struct hop *left)
{
    for (uint64_t seen = 0; seen < ROUNDS + WARM;) {
        uint64_t f = atomic_load_explicit(&left->forward, memory_order_acquire);
        if (f == seen)
            sched_yield();
        else
            atomic_store_explicit(&left->back, seen = f, memory_order_release);
    }
}

static void application(struct hop *right)
{
    static uint32_t sample[ROUNDS];
    for (unsigned r = 1; r <= ROUNDS + WARM; r++) {
        uint64_t start = clock_ns();
        atomic_store_explicit(&right->forward, r, memory_order_release);
        while (atomic_load_explicit(&right->back, memory_order_acquire) != r)
            sched_yield();
        if (r > WARM)
            sample[r - WARM - 1] = (uint32_t)((clock_ns() - start) / 2);
    }
    qsort(sample, ROUNDS, sizeof(sample[0]), by_value);
    printf("{\"name\":\"floor_lat\",\"value\":%u,\"unit\":\"ns\",\"min\":%u,\"p99\":%u}\n",
           sample[ROUNDS / 2], sample[0], sample[ROUNDS * 99ull / 100]);
}

int main(int argc, char **argv)
{
    int cpu[2] = {0, 1};
    if (argc == 3) {
        cpu[0] = atoi(argv[1]);
        cpu[1] = atoi(argv[2]);
    } else if (argc != 1) {
        fprintf(stderr, "usage: relay_lat [CPU-A CPU-B]\n");
        return 2;
    }
    struct shared *s =
        mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (s == MAP_FAILED) {
        perror("relay_lat: mmap");
        return 1;
    }
    for (unsigned i = 0; i < 3; i++) {
        pid_t pid = fork();
        if (pid < 0) {
            perror("relay_lat: fork");
            return 1;
        }
        if (pid > 0)
            continue;
        alarm(60); /* a limit for the spinning processes */
        pin(cpu[i > 0]);
        if (i < 2)
            relay(&s->hop[i], &s->hop[i + 1]);
        else
            echo(&s->hop[2]);
        _exit(0);
    }
    alarm(60);
    pin(cpu[0]);
    application(&s->hop[0]);
    fflush(stdout);
    while (wait(NULL) > 0)
        ;
    return 0;
}
