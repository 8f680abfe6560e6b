/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Where the engine is in this program, the daemon has the connections and this library moves their
 * queue pairs, as the daemon does for its own engine's.
 */
#ifndef URNIC_CLIENT_CM_MOVE_H
#define URNIC_CLIENT_CM_MOVE_H

#include "client_cm.h"
#include "client_engine.h"

static inline bool client_cm_moves(const struct urnic_context *ctx)
{
    return client_has_channel(&ctx->conn);
}

/* Begin to follow an id: move it to INIT, a datagram one to RTS. 0 or -errno. */
int client_cm_begin(struct urnic_qp *qp);
/* Move the id's queue pair to RTR and RTS, with the connection's attributes; asked: the limits of
 * the program's accept, or NULL. 0 or -errno. */
int client_cm_connected(struct urnic_cm_id *id, const struct ipc_cm_param *asked);
/* The id's queue pair joins a multicast group, or leaves it. -EINVAL: the id has no queue pair, is
 * not for datagrams, or is not in the group that it is to leave. -EADDRINUSE: it is already a
 * member. -ENOSPC: it is in too many groups. -ENOMEM. Also errors that the daemon returns. */
int client_cm_join(struct urnic_cm_id *id, const struct ipc_sockaddr *group);
int client_cm_leave(struct urnic_cm_id *id, const struct ipc_sockaddr *group);
/* Leave all groups, because the id or its queue pair is destroyed. NULL is fine. */
void client_cm_leave_all(struct urnic_cm_id *id);
/* Move it to ERR, unless it is in RESET. */
void client_cm_fail(struct urnic_qp *qp);
/* Handle an event of an id with a queue pair: move the queue pair, and turn CONNECT_RESPONSE into
 * the event for the program. */
void client_cm_follow(struct urnic_cm_event *ev);

#endif
