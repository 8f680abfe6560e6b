/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Events for clients about their connections. On the device's worker.
 */
#ifndef NIC_CMID_NEWS_H
#define NIC_CMID_NEWS_H

#include <stdbool.h>
#include <stdint.h>

#include "cm.h"

struct cm_id;
struct cmgr;

/* Something happened to a connection: tell its client. */
void cmgr_on_event(struct cmgr *m, const struct cm_event *ev, uint64_t now);
/* End queue pairs of other users that name the peer of this id's connection (SEC-33), as many as
 * the budget allows; cmgr_run continues with the rest. Returns whether there are more. */
bool cmid_displace(struct cm_id *id, uint64_t now);

/* Handle news from other workers about claims of this worker: queue pairs that lost their claim
 * end, connections in doubt ask their peer. */
void cmid_hear_claims(struct cmgr *m, uint64_t now);

#endif
