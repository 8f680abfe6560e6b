/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The daemon's only clock: nanoseconds, monotonic. The protocol folders of lib/ get it as an
 * argument.
 */
#ifndef NIC_CLOCK_H
#define NIC_CLOCK_H

#include <stdint.h>
#include <time.h>

#define CLOCK_US  1000ull
#define CLOCK_MS  1000000ull
#define CLOCK_SEC 1000000000ull

static inline uint64_t clock_now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * CLOCK_SEC + (uint64_t)ts.tv_nsec;
}

#endif
