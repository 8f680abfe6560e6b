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

/* Add an address; take one away. On the worker. 0; -EEXIST it is one of ours, -ENOSPC; -ENOENT it
 * isn't, -EPERM it can't go: it is the link-local one of the MAC. */
int device_addr_add(struct device *d, const struct config_addr *a);
int device_addr_del(struct device *d, const struct wire_addr *ip, uint64_t now);
/* Of a port whose addresses are the kernel's: take those that it has now. */
void device_addr_follow(struct device *d);
/* Tell the port which addresses are ours; the two above do that. */
void device_claim(struct device *d);
/* Queue pairs follow their addresses in passes, a bounded part in one round (SHM-12): each of the
 * above begins one anew. Is there one under way; its next part. */
bool device_addr_follows(const struct device *d);
void device_addr_run(struct device *d, uint64_t now);
/* Every few ms: queue pairs whose address stays away go to ERR. */
void device_addr_service(struct device *d, uint64_t now);

#endif
