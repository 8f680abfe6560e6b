/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Inside of liburnic: connections.
 */
#ifndef URNIC_CLIENT_CM_H
#define URNIC_CLIENT_CM_H

#include "client.h"

struct urnic_cm_channel {
    struct client_channel base;
};

struct urnic_cm_id {
    struct client_obj obj;
    struct urnic_context *ctx;
    struct urnic_cm_channel *channel;
    uint32_t handle; /* 0 = the daemon doesn't know of it yet */
    uint32_t ps;
    bool fresh; /* from CONNECT_REQUEST: the daemon names it by its listener's reference */
    struct urnic_cm_id *next_fresh; /* of the context's; ctx->lock */
    struct urnic_qp *qp;            /* whom the library moves, or NULL */
    struct ipc_sockaddr src;
    void *user;
};

/* urnic_get_cm_event with flags for recv. */
int client_cm_next(struct urnic_cm_channel *channel, struct urnic_cm_event *event, int flags);

/* Events of this id arrive on another channel once it is accepted. */
void client_cm_move(struct urnic_cm_id *id, struct urnic_cm_channel *channel);

#endif
