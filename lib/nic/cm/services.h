/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which worker of a device has the listener of a service. A request to connect names only the
 * service, and arrives at the worker with the port. Any thread.
 */
#ifndef NIC_SERVICES_H
#define NIC_SERVICES_H

#include <stdbool.h>
#include <stdint.h>

#include "wire.h"

struct services;

struct service {
    uint64_t id; /* cm_service_id */
    struct wire_addr addr;
    bool any;        /* at any address of the family */
    unsigned family; /* of `any`: 4, 6 or 0 (both) */
    unsigned member; /* the worker */
};

/* NULL = out of memory. free takes NULL. */
struct services *services_new(void);
void services_free(struct services *s);

/* Worker `owner` serves this service. 0, -ENOMEM, or -EADDRINUSE: another worker has a listener for
 * it, as for cm_listen and cm_listen_family. */
int services_add(struct services *s, const struct service *one, const void *owner);
/* Worker `owner` stops serving the service. Retransmissions of requests that it has seen still go
 * to it, until another worker serves the service. No effect if it serves none. */
void services_del(struct services *s, const void *owner);
/* The worker that serves this service at this address; -1 = none. */
int services_find(struct services *s, uint64_t id, const struct wire_addr *addr);
/* Does any worker serve it, at any address? */
bool services_has(struct services *s, uint64_t id);

#endif
