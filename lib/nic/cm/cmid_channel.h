/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Channels, on which clients hear of their ids. On the device's worker.
 */
#ifndef NIC_CMID_CHANNEL_H
#define NIC_CMID_CHANNEL_H

#include <stdbool.h>
#include <stdint.h>

#include "client.h"
#include "gsi.h"
#include "ipc.h"

struct cmgr;
struct cm_id;

/* Where a client's connection events arrive. */
struct cm_channel {
    struct client_object object; /* first; set by cmgr_channel_add */
    struct cm_channel *next;     /* of the device's */
    struct cmgr *owner;
    int fd; /* the daemon's end, never blocking */
    uint32_t users;
    struct cm_owed *first, **last; /* events that the socket had no room for */
    uint32_t owed;
};

/* A channel for ids of this device; the caller made its socket. Free closes it, after its ids. */
void cmgr_channel_add(struct cmgr *m, struct cm_channel *ch);
void cmgr_channel_free(struct cm_channel *ch);

/* ---- within lib/nic/cm ---- */

/* gsi_ops: send the events that full channels had no room for; are there any? */
void cmgr_service(struct gsi *g);
bool cmgr_owes(const struct gsi *g);
/* Has the channel of this id room for another event? If not, one is lost that it is asked for. */
bool cmid_hears(const struct cm_id *id);
/* An event for the client of this id. False: it is lost, and counted as such. */
bool cmid_event(struct cm_id *id, const struct ipc_cm_event *ev);

#endif
