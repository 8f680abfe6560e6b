/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Inside of liburnic: connections. client_cm_id.c: ids and channels; client_cm_event.c: events;
 * client_cm.c: an application's requests; client_connect.c: connecting in one call.
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
    uint32_t handle; /* 0 = the daemon has no half of it yet */
    uint32_t ps;
    bool fresh; /* from CONNECT_REQUEST: the daemon names it by its listener's reference */
    struct urnic_cm_id *next_fresh; /* of the context's; ctx->lock */
    struct urnic_qp *qp;            /* the queue pair that the library moves, or NULL */
    bool following;                 /* a thread moves qp for an event; ctx->lock */
    bool srq;                       /* of a queue pair that the application moves */
    bool peer_srq;                  /* ctx->lock */
    struct client_groups *groups;   /* those it has joined (client_cm_move.c); NULL = none ever */
    struct ipc_sockaddr src;
    void *user;
};

/* client_cm_id.c */
/* An id without a half in the daemon. NULL: no memory. */
struct urnic_cm_id *client_id_new(struct urnic_cm_channel *channel, uint32_t ps, void *user);
/* Its handle in the daemon. */
void client_id_named(struct urnic_cm_id *id, uint32_t handle);
/* Let the daemon make its half, for requests that don't do that themselves. 0 or -errno. */
int client_id_ensure(struct urnic_cm_id *id);
/* The id came with a request for a connection: the daemon names it by its listener's reference
 * until it has its own. */
void client_id_fresh(struct urnic_cm_id *id);
void client_id_known(struct urnic_cm_id *id);

/* Events of this id arrive on another channel once it is accepted. */
void client_cm_move(struct urnic_cm_id *id, struct urnic_cm_channel *channel);

/* client_cm_event.c */
/* Wait, with ctx->lock held, until no event changes the state of the id's queue pair. Then the
 * caller may separate the queue pair from the id. */
void client_cm_settle(struct urnic_cm_id *id);
/* Drop waiting events of destroyed ids. */
void client_cm_drop_stale(struct urnic_cm_channel *channel);
/* urnic_get_cm_event; without `wait`, -EAGAIN when there is none. */
int client_cm_next(struct urnic_cm_channel *channel, struct urnic_cm_event *event, bool wait);

/* Set the state in which the daemon has left a queue pair that it moves. */
static inline void client_qp_assume(struct urnic_qp *qp, enum urnic_qp_state state)
{
    atomic_store_explicit(&qp->state, state, memory_order_relaxed);
}

/* The daemon has moved it to ERR, unless it is in RESET (the application may have moved it before
 * the event). */
static inline void client_qp_failed(struct urnic_qp *qp)
{
    uint32_t state = atomic_load_explicit(&qp->state, memory_order_relaxed);
    while (state != URNIC_QPS_RESET &&
           !atomic_compare_exchange_weak_explicit(&qp->state, &state, URNIC_QPS_ERR,
                                                  memory_order_relaxed, memory_order_relaxed))
        ;
}

#endif
