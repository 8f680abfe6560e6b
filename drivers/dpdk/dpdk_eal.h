/* SPDX-License-Identifier: BSD-3-Clause
 *
 * DPDK's environment layer, started once per process when the first port is opened and never
 * stopped: it can't be started twice.
 */
#ifndef URNIC_DPDK_EAL_H
#define URNIC_DPDK_EAL_H

#include "dpdk_spec.h"

#include <stdbool.h>
#include <stddef.h>

#define DPDK_EAL_ARGS 16

struct dpdk_eal_args {
    int argc;
    char *argv[DPDK_EAL_ARGS + 1];
    char text[DPDK_EAL_ARGS][1400]; /* what argv points to; the CPU list may be long */
};

/* Compose EAL's command line. `huge` = use hugepages; `physical` = the device has no IOMMU in front
 * of it; `cpus` = list of CPUs the main thread may run on, such as "0,1,4". Pure. */
void dpdk_eal_compose(struct dpdk_eal_args *out, const struct dpdk_spec *spec, bool huge,
                      bool physical, const char *cpus, int pid);

/* Start EAL unless it runs. `spec` is that of the first port: it decides about hugepages and
 * memory. The calling thread keeps its CPU affinity and its signal mask. One caller at a time.
 * Returns 0, or -errno with a sentence in `err`. */
int dpdk_eal_start(const struct dpdk_spec *spec, char *err, size_t err_size);

/* Does the process run on hugepages? (After dpdk_eal_start.) */
bool dpdk_eal_has_hugepages(void);

/* Octets of free hugepages on this machine, all sizes. */
unsigned long long dpdk_eal_free_hugepages(void);

/* Make the calling thread known to DPDK, so that its buffer pools use a cache of its own. Undone
 * when the thread ends. Does nothing for a thread that is known. */
void dpdk_eal_register_thread(void);

/* Write "level dpdk: text" to stderr. */
__attribute__((format(printf, 2, 3))) void dpdk_log(const char *level, const char *fmt, ...);

#endif
