/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Addresses of a device that come and go while it runs (GID-04). On its worker.
 */
#ifndef NIC_DEVICE_ADDR_H
#define NIC_DEVICE_ADDR_H

#include <stdbool.h>
#include <stdint.h>

#include "settings.h"

struct device;

/* Add an address; remove one. On the worker. 0. Add: -EEXIST, -ENOSPC. Remove: -ENOENT; -EPERM: it
 * is the link-local address of the MAC. */
int device_addr_add(struct device *d, const struct config_addr *a);
int device_addr_del(struct device *d, const struct wire_addr *ip, uint64_t now);
/* Take over the kernel's current addresses, on a port that has the kernel's. */
void device_addr_follow(struct device *d);
/* Tell the port the device's addresses; the two functions above do that. */
void device_claim(struct device *d);
/* Queue pairs follow their addresses in passes, a bounded part in one round (SHM-12). Each change
 * starts a pass anew. Is a pass under way; do its next part. */
bool device_addr_follows(const struct device *d);
void device_addr_run(struct device *d, uint64_t now);
/* Every few ms: move queue pairs to ERR whose address stays away. */
void device_addr_service(struct device *d, uint64_t now);

#endif
