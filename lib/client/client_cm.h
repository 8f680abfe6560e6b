/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Inside of liburnic: connections.
 */
#ifndef URNIC_CLIENT_CM_H
#define URNIC_CLIENT_CM_H

#include "client.h"

struct urnic_cm_channel {
    struct urnic_context *ctx;
    uint32_t handle;
    int fd;
};

struct urnic_cm_id {
    struct client_obj obj;
    struct urnic_context *ctx;
    struct urnic_cm_channel *channel;
    uint32_t handle;
    uint32_t ps;
    struct urnic_qp *qp; /* whom the library moves, or NULL */
    struct ipc_sockaddr src;
    void *user;
};

/* urnic_get_cm_event with flags for recv. */
int client_cm_next(struct urnic_cm_channel *channel, struct urnic_cm_event *event, int flags);

/* Later events of this id arrive on another channel. */
int client_cm_migrate(struct urnic_cm_id *id, struct urnic_cm_channel *channel);

#endif
