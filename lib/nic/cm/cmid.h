/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A client's id: a listener or one end of a connection. On the device's worker.
 *
 * Functions that act for a client return 0 or the -errno that its call returns: -EINVAL when the id
 * is in no state for it, and the errors named at each function. Their outcome comes as an event on
 * the id's channel.
 */
#ifndef NIC_CMID_H
#define NIC_CMID_H

#include <stdbool.h>
#include <stdint.h>

#include "client.h"
#include "cm.h"
#include "ipc.h"
#include "neigh.h"

struct cm_channel;

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
    bool driven;  /* its queue pair goes with the connection */
    bool follows; /* a queue pair of a program's engine goes to ERR with it */
    struct ipc_sockaddr src, dst;
    bool src_chosen; /* chosen by us, for dst */
    uint8_t dmac[6];
    bool resolving, with_route;
    struct neigh_waiter waiter; /* while resolving */
    struct cm_conn *conn;
    struct cm_listener *listener;
    uint32_t qpn;             /* our queue pair, once the client has named it */
    uint32_t psn;             /* ours */
    uint8_t tclass, sl;       /* of the path, requested by the client */
    struct claim claim;       /* of the peer's queue pair, once it is negotiated */
    struct wire_addr *groups; /* that the id has joined; they end with it */
    unsigned ngroups;
    bool displaces; /* queue pairs of others that name its peer must still be ended */
    LIST_ENTRY(cm_id) displacing;
    bool awaits; /* RTU, or the first request of the peer (cmid_await) */
    LIST_ENTRY(cm_id) awaiting;
};

/* Prepare a new id that has no handle yet; its members are zero but those of its purpose. */
void cmgr_id_init(struct cm_id *id);
/* The active side. Event ESTABLISHED or CONNECT_RESPONSE; REJECTED, UNREACHABLE. Errors of
 * cm_connect; -EPROTOTYPE: a datagram queue pair. */
int cmgr_connect(struct cm_id *id, const struct ipc_cm_conn *req, uint64_t now);
/* The passive side. If the daemon moves the id's queue pair, the peer's MAC is in the id. Errors of
 * cm_accept; -EPROTOTYPE: a queue pair of another type than the peer requests. */
int cmgr_accept(struct cm_id *id, const struct ipc_cm_conn *req, uint64_t now);
/* Refuse a request, or as the active side the peer's answer. Errors of cm_reject; of cm_sidr_reply
 * for a datagram service. */
int cmgr_reject(struct cm_id *id, const struct ipc_cm_conn *req, uint64_t now);
/* Send the active side's last message (RTU), when the client moves the queue pair by itself. */
int cmgr_establish(struct cm_id *id, uint64_t now);
/* Disconnect: move its queue pair to ERR, and send DREQ if there is a peer. -EINVAL: it has neither
 * sent nor received a request. */
int cmgr_disconnect(struct cm_id *id, uint64_t now);
/* End the id and its connection; no further message is sent about it. The caller deletes its
 * handle. */
void cmgr_id_free(struct cm_id *id, uint64_t now);

/* ---- within lib/nic/cm ---- */

/* Charge the id's connection to its user (SHARE_CONN). A connection outlives its id, so it holds
 * the share. */
void cmid_charge(struct cm_id *id);

#endif
