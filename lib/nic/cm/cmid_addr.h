/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The addresses of ids: local ones, routes, listening. On the device's worker (cmid.h tells the
 * return values).
 */
#ifndef NIC_CMID_ADDR_H
#define NIC_CMID_ADDR_H

#include <stdint.h>

#include "cmid.h"

/* -EADDRNOTAVAIL: not an address of the device. */
int cmgr_bind(struct cm_id *id, const struct ipc_sockaddr *src);
/* Resolve the destination: event ADDR_RESOLVED (with IPC_CM_F_ROUTE: ROUTE_RESOLVED) or ADDR_ERROR.
 * -ENETUNREACH: no address to reach it from; -EADDRNOTAVAIL as above. */
int cmgr_resolve(struct cm_id *id, const struct ipc_cm_addr *req, uint64_t now);
/* Event ROUTE_RESOLVED, at once: the resolved address is the route. */
int cmgr_route(struct cm_id *id);
/* Listen. At most `backlog` requests wait. `family` of an id bound to any address: 4, 6 or 0
 * (both). -EADDRINUSE, -ENOMEM. */
int cmgr_listen(struct cm_id *id, uint32_t backlog, uint32_t family);

#endif
