/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NIC_MEMLIMIT_H
#define NIC_MEMLIMIT_H

#include <stdint.h>

/* How much memory this process may be charged for: RAM and swap, and no more than the limits of its
 * control group and those above it (cgroup v2 and v1) leave.
 *
 * Octets; UINT64_MAX = unknown. Reads files of the kernel. Any thread. */
uint64_t memlimit(void);

/* The same of files elsewhere, for tests: `proc` is read for /proc/self/cgroup, `root` for
 * /sys/fs/cgroup. UINT64_MAX = no control group limits it. */
uint64_t memlimit_of(const char *proc, const char *root);

#endif
