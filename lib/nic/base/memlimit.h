/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NIC_MEMLIMIT_H
#define NIC_MEMLIMIT_H

#include <stdint.h>

/* The memory that this process may be charged for: RAM and swap, within the limits of its control
 * group and those above it (cgroup v2 and v1).
 *
 * Octets; UINT64_MAX = unknown. Reads files of the kernel. Any thread. */
uint64_t memlimit(void);

/* The same from other files, for tests: `proc` replaces /proc/self/cgroup, `root` /sys/fs/cgroup.
 * UINT64_MAX = no control group limits it. */
uint64_t memlimit_of(const char *proc, const char *root);

#endif
