/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shared by cmgr.c (datagrams) and cmid.c (clients' ids); nobody else includes this.
 */
#ifndef URNICD_CMGR_PRIV_H
#define URNICD_CMGR_PRIV_H

#include "cmgr.h"

#define CMGR_READY   256u
#define CMGR_WAITING 64u

struct mad_out {
    struct cm_out out;
    uint8_t mac[6];
    uint64_t give_up;
};

struct cmgr {
    struct device *device;
    struct cm *cm;
    struct cm_channel *channels;
    uint64_t now; /* of the round: callbacks of the engine have no clock */
    bool dirty;   /* something was put in: events and datagrams may have come out */
    unsigned first_ready, nready, nwaiting;
    uint64_t retry_at;
    struct mad_out ready[CMGR_READY], waiting[CMGR_WAITING];
};

/* Something happened to a connection: tell its client (cmid.c). */
void cmgr_on_event(struct cmgr *m, const struct cm_event *ev, uint64_t now);

#endif
