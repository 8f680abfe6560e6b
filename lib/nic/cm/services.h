/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which worker of a device serves which service: where its listener is. A request to connect names
 * the service alone, and comes to the worker that has the port.
 *
 * Any thread.
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
    bool any;        /* at any address ... */
    unsigned family; /* ... of this family: 4, 6 or 0 (both) */
    unsigned member; /* the worker */
};

/* NULL = out of memory. free takes NULL. */
struct services *services_new(void);
void services_free(struct services *s);

/* `owner` serves this one. 0, -ENOMEM, or -EADDRINUSE: another worker has a listener there, as for
 * cm_listen and cm_listen_family. */
int services_add(struct services *s, const struct service *one, const void *owner);
/* ... no longer. Repetitions of requests that it has seen still go to its worker, until somebody
 * else serves the service. Harmless when it serves none. */
void services_del(struct services *s, const void *owner);
/* The worker that serves this service at this address; -1 = none. */
int services_find(struct services *s, uint64_t id, const struct wire_addr *addr);
/* Does anybody serve it, at any address? */
bool services_has(struct services *s, uint64_t id);

#endif
