/* SPDX-License-Identifier: BSD-3-Clause
 *
 * When a port can't be opened: what is the matter, and what to do about it. Looks at the machine
 * (capabilities, sysfs), not at DPDK.
 */
#ifndef URNIC_DPDK_HINT_H
#define URNIC_DPDK_HINT_H

#include "dpdk_spec.h"

#include <stdbool.h>
#include <stddef.h>

/* The capabilities that opening a port of a kind takes. */
struct dpdk_need {
    uint64_t caps;     /* bit n = capability n of linux/capability.h; 0 = none */
    const char *names; /* for people: "CAP_NET_RAW and CAP_NET_ADMIN"; "" = none */
    const char *args;  /* for setcap: "cap_net_raw,cap_net_admin" */
};
const struct dpdk_need *dpdk_hint_need(enum dpdk_kind kind);

/* What can be known to be wrong before DPDK is asked. `sysfs` is "/sys" (a test gives another
 * tree); `effective` is the process's effective capability set. Returns 0, or -errno with a
 * sentence in `err`: -EPERM capabilities, -ENODEV no such device, -EBUSY a kernel driver owns the
 * NIC, -ENOMEM no hugepages for a PCI device. */
int dpdk_hint_check(const struct dpdk_spec *spec, const char *sysfs, uint64_t effective,
                    unsigned long long free_hugepages, char *err, size_t err_size);

/* Does this PCI device use physical addresses: bound to a uio driver, or to vfio-pci without an
 * IOMMU? */
bool dpdk_hint_physical(const struct dpdk_spec *spec, const char *sysfs);

/* DPDK's af_packet joins a fanout group of the kernel that it numbers by process and interface.
 * Does a process `pid` that opens a port on interface `ifindex` find its number taken, in this
 * network namespace, by a group on another interface? Opens two sockets for a moment; false when it
 * can't (privileges, interface down). */
bool dpdk_hint_fanout_taken(int ifindex, int pid);

/* The effective capability set of the calling thread. */
uint64_t dpdk_hint_effective(void);

/* Octets this process may lock in memory; raises its own limit as far as it may. UINT64_MAX = as
 * many as there are. */
uint64_t dpdk_hint_lockable(uint64_t effective);

#endif
