/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See nic.h.
 */
#include "nic.h"

#include <string.h>

#include "clock.h"
#include "memlimit.h"

#define NIC_OWN_PART  8u               /* part of the memory for the NIC itself */
#define NIC_MEMORY_NS (100 * CLOCK_MS) /* most age of the known memory limit */

struct device *nic_device(const struct nic *n, const char *name)
{
    for (unsigned i = 0; i < n->ndevice; i++) {
        if (strcmp(n->device[i]->name, name) == 0)
            return n->device[i];
    }
    return NULL;
}

void nic_memory(struct nic *n)
{
    uint64_t now = clock_now(), all;
    if (n->memory_at != 0 && now - n->memory_at < NIC_MEMORY_NS)
        return;
    n->memory_at = now;
    all = memlimit();
    if (all != UINT64_MAX)
        n->clients.share.limit[SHARE_OCTETS] = all - all / NIC_OWN_PART;
}
