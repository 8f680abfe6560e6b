/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shared by the benches: the clock, a core for each thread, the order of samples.
 */
#ifndef URNIC_TESTS_BENCH_H
#define URNIC_TESTS_BENCH_H

#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

/* ns, monotonic. */
static inline uint64_t clock_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Bind the calling thread to this CPU. If that is impossible, print so and continue. */
static inline void pin(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    if (sched_setaffinity(0, sizeof(set), &set) < 0)
        perror("sched_setaffinity");
}

/* For qsort of uint32_t, and of double. */
static inline int by_value(const void *x, const void *y)
{
    uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
    return a < b ? -1 : a > b;
}

static inline int by_size(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

#endif
