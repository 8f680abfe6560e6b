/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Multicast groups that ids have joined. On the device's worker (cmid.h tells the return values).
 */
#ifndef NIC_CMID_GROUP_H
#define NIC_CMID_GROUP_H

#include <stdint.h>

#include "cmid.h"

/* The id's queue pair joins a group; one of a program's own engine is in it already and is named by
 * its number, else `qpn` is 0. Event MULTICAST_JOIN tells how to send to it. -EADDRINUSE: it is a
 * member already; -EADDRNOTAVAIL, -ENOSPC, -ENOMEM, -EDQUOT. */
int cmgr_join(struct cm_id *id, const struct ipc_sockaddr *group, uint32_t qpn, uint64_t now);
int cmgr_leave(struct cm_id *id, const struct ipc_sockaddr *group, uint64_t now);
/* The number of its groups. */
unsigned cmgr_groups(const struct cm_id *id);

/* ---- within lib/nic/cm ---- */

/* Leave all groups, when the id is destroyed. */
void cmid_leave_all(struct cm_id *id, uint64_t now);

#endif
