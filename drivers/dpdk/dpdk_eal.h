/* SPDX-License-Identifier: BSD-3-Clause
 *
 * DPDK's environment layer, started once per process when the first port is opened and never
 * stopped: it can't be started twice.
 */
#ifndef URNIC_DPDK_EAL_H
#define URNIC_DPDK_EAL_H

#include "dpdk_hint.h"

#include <stdbool.h>
#include <stddef.h>

/* Start EAL unless it runs. `spec` is that of the first port: it decides about hugepages and
 * memory. The calling thread keeps its CPU affinity and its signal mask. One caller at a time.
 * Returns 0, or -errno with a sentence in `err`. */
int dpdk_eal_start(const struct dpdk_spec *spec, const struct dpdk_machine *m, char *err,
                   size_t err_size);
bool dpdk_eal_runs(void);

/* Does the process run on hugepages? (After dpdk_eal_start.) */
bool dpdk_eal_has_hugepages(void);

/* Octets of free hugepages on this machine, all sizes. */
unsigned long long dpdk_eal_free_hugepages(void);

/* Make the calling thread known to DPDK, so that its buffer pools use a cache of its own. Undone
 * when the thread ends. Does nothing for a thread that is known. */
void dpdk_eal_register_thread(void);

#endif
