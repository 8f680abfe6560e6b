/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Channels: how clients get the events of their connection ids. On the device's worker.
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

/* A channel for a client's connection events. */
struct cm_channel {
    struct client_object object; /* first; set by cmgr_channel_add */
    struct cm_channel *next;     /* in the device's list */
    struct cmgr *owner;
    int fd; /* the daemon's end, never blocking */
    uint32_t users;
    struct cm_owed *first, **last; /* events that the socket had no room for */
    uint32_t owed;
};

/* Make a channel for ids of this device; the caller made its socket. Free closes it, after its
 * ids. */
void cmgr_channel_add(struct cmgr *m, struct cm_channel *ch);
void cmgr_channel_free(struct cm_channel *ch);

/* ---- within lib/nic/cm ---- */

/* gsi_ops: send the events that full channels had no room for. Are any left? */
void cmgr_service(struct gsi *g);
bool cmgr_owes(const struct gsi *g);
/* Has the channel of this id room for another event? If not, a lost event is counted. */
bool cmid_hears(const struct cm_id *id);
/* Send an event to the client of this id. False: it was lost, and counted. */
bool cmid_event(struct cm_id *id, const struct ipc_cm_event *ev);

#endif
