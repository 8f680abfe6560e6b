/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The time that a test waits on a busy machine.
 */
#ifndef URNIC_TESTS_PATIENCE_H
#define URNIC_TESTS_PATIENCE_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The factor for time-outs on the machine's current load, by the runnable threads for each core; 1
 * to 20. */
static inline unsigned patience_factor(void)
{
    double load, cores = (double)sysconf(_SC_NPROCESSORS_ONLN);
    if (getloadavg(&load, 1) != 1 || cores < 1 || load < cores)
        return 1;
    return load > 19 * cores ? 20 : 1 + (unsigned)(load / cores);
}

/* Scale Check's limits, which end a hanging test, by it. Before the first test case is made. */
__attribute__((constructor)) static void patience_of_check(void)
{
    char times[16];
    snprintf(times, sizeof(times), "%u", patience_factor());
    setenv("CK_TIMEOUT_MULTIPLIER", times, 0);
}

#endif
