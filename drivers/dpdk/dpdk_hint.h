/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The reason why a port can't be opened, and the remedy. Looks at the machine (capabilities,
 * sysfs), not at DPDK.
 */
#ifndef URNIC_DPDK_HINT_H
#define URNIC_DPDK_HINT_H

#include "dpdk_spec.h"

#include <stdbool.h>
#include <stddef.h>

/* The capabilities needed to open a port of a kind. */
struct dpdk_need {
    uint64_t caps;     /* bit n = capability n of linux/capability.h; 0 = none */
    const char *names; /* text for people: "CAP_NET_RAW and CAP_NET_ADMIN"; "" = none */
    const char *args;  /* argument of setcap: "cap_net_raw,cap_net_admin" */
};
const struct dpdk_need *dpdk_hint_need(enum dpdk_kind kind);

/* The machine, and this process's rights on it. */
struct dpdk_machine {
    const char *root;   /* prefix of /sys, /proc, /dev and /lib: "", or a test's tree */
    uint64_t effective; /* capabilities, as above */
    uint64_t lockable;  /* octets of memory; UINT64_MAX = as many as there are */
    unsigned uid;       /* effective user */
    bool running;       /* DPDK runs already, and has memory */
};
/* Describe this machine. Raises the process's limit of locked memory as far as it may. */
void dpdk_hint_machine(struct dpdk_machine *m);

/* Find obstacles before DPDK is asked, for frames of `frame_max` octets. Returns 0, or -errno with
 * a sentence in `err` that ends with the remedy. -EPERM: capabilities are missing. -ENODEV: no such
 * device. Else the results of dpdk_pci_check. */
int dpdk_hint_check(const struct dpdk_spec *spec, const struct dpdk_machine *m, uint32_t frame_max,
                    char *err, size_t err_size);

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
