/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The connection manager of a device: wraps lib/cm (sans-IO) and joins its connections to clients'
 * ids, queue pairs and event channels. On the device's worker.
 */
#ifndef URNICD_CMGR_H
#define URNICD_CMGR_H

#include <stdbool.h>
#include <stdint.h>

#include "client.h"
#include "cm.h"
#include "context.h"
#include "engine.h"
#include "ipc.h"
#include "neigh.h"
#include "wire.h"

struct cmgr;
struct device;

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

enum cm_id_state { CM_ID_IDLE, CM_ID_BOUND, CM_ID_RESOLVED, CM_ID_LISTEN, CM_ID_CONN };

/* A client's id: a listener or one end of a connection. */
struct cm_id {
    struct client_object object; /* first; set by cmgr_id_init */
    struct client *client;
    struct device *device;
    struct cm_channel *channel;
    uint32_t handle;
    uint32_t ps;
    uint64_t ref;
    uint32_t events; /* sent about it, ever */
    enum cm_id_state state;
    bool passive;
    bool driven; /* its queue pair goes with the connection */
    struct ipc_sockaddr src, dst;
    bool src_chosen; /* by us, for dst */
    uint8_t dmac[6];
    bool resolving, with_route;
    struct neigh_waiter waiter; /* while resolving */
    struct cm_conn *conn;
    struct cm_listener *listener;
    uint32_t qpn;             /* of our queue pair, once the client has named it */
    uint32_t psn;             /* ours */
    uint8_t tclass, sl;       /* that the client wants, of the path */
    struct claim claim;       /* of the peer's queue pair, once it is negotiated */
    struct wire_addr *groups; /* that the id has joined; they end with it */
    unsigned ngroups;
};

/* The connection manager of an opened device, whose QP1 it serves from then on (device.gsi); it
 * ends with the device, when no id of it is left. NULL = out of memory or of random numbers. */
struct cmgr *cmgr_create(struct device *d);
/* That of a device which has one. */
struct cmgr *cmgr_of(const struct device *d);
/* The counters of lib/cm (cm_counter_names), cumulative; and how many connections there are. */
const uint64_t *cmgr_counters(const struct cmgr *m);
uint32_t cmgr_live(const struct cmgr *m);

/* ---- on behalf of a client ---- */

/* These return 0 or the -errno that the client's call returns: -EINVAL when the id is in no state
 * for it, and what is said at each. Their outcome comes as an event on the id's channel. */

/* A new id, all zero but for what it is about: before it has a handle. */
void cmgr_id_init(struct cm_id *id);
/* -EADDRNOTAVAIL: not an address of the device. */
int cmgr_bind(struct cm_id *id, const struct ipc_sockaddr *src);
/* Find out who the destination is: event ADDR_RESOLVED (with IPC_CM_F_ROUTE: ROUTE_RESOLVED) or
 * ADDR_ERROR. -ENETUNREACH no address to reach it from, -EADDRNOTAVAIL as above. */
int cmgr_resolve(struct cm_id *id, const struct ipc_cm_addr *req, uint64_t now);
/* Event ROUTE_RESOLVED, at once: who answers at the address is the route. */
int cmgr_route(struct cm_id *id);
/* `backlog` requests may wait at most. -EADDRINUSE, -ENOMEM. */
/* family: of an id that is bound to any address: 4, 6 or 0 (both). */
int cmgr_listen(struct cm_id *id, uint32_t backlog, uint32_t family);
/* The active side. Event ESTABLISHED or CONNECT_RESPONSE; REJECTED, UNREACHABLE. Errors of
 * cm_connect; -EPROTOTYPE a datagram queue pair. */
int cmgr_connect(struct cm_id *id, const struct ipc_cm_conn *req, uint64_t now);
/* The passive side. The peer's MAC is in the id when its queue pair goes with the connection.
 * Errors of cm_accept; -EPROTOTYPE a queue pair of another type than the peer asks for. */
int cmgr_accept(struct cm_id *id, const struct ipc_cm_conn *req, uint64_t now);
/* Refuse a request, or as the active side the peer's answer. Errors of cm_reject; of cm_sidr_reply
 * for a datagram service. */
int cmgr_reject(struct cm_id *id, const struct ipc_cm_conn *req, uint64_t now);
/* The active side's last word (RTU), when the client drives the queue pair by itself. */
int cmgr_establish(struct cm_id *id, uint64_t now);
/* The queue pair that goes with it to ERR, and DREQ if there is anybody to hang up on. -EINVAL: it
 * has never asked or been asked. */
int cmgr_disconnect(struct cm_id *id, uint64_t now);
/* The id's queue pair joins a group; event MULTICAST_JOIN says how to send to it. -EADDRINUSE it is
 * a member, -EADDRNOTAVAIL, -ENOSPC, -ENOMEM, -EDQUOT. */
int cmgr_join(struct cm_id *id, const struct ipc_sockaddr *group, uint64_t now);
int cmgr_leave(struct cm_id *id, const struct ipc_sockaddr *group, uint64_t now);
/* In how many groups it is. */
unsigned cmgr_groups(const struct cm_id *id);
/* What a client's own queue pair has to be set to for a state of the connection. */
int cmgr_qp_attr(struct cm_id *id, uint32_t state, struct ipc_qp_modify *out);
/* Can it have a queue pair: it doesn't listen, and has none. */
bool cmgr_takes_qp(const struct cm_id *id);
/* The queue pair (in RESET) goes to INIT (a datagram one to RTS), and from now on with its
 * connection. */
int cmgr_take_qp(struct cm_id *id, struct client_qp *qp, uint64_t now);
/* The id is gone: its connection ends, nothing is sent about it any more. Its handle is the
 * caller's to delete. */
void cmgr_id_free(struct cm_id *id, uint64_t now);
/* A channel for ids of this device; the caller made its socket. Free closes it, after its ids. */
void cmgr_channel_add(struct cmgr *m, struct cm_channel *ch);
void cmgr_channel_free(struct cm_channel *ch);

#endif
