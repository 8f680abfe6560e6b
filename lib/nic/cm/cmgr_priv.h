/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shared by cmgr.c (datagrams), cmid.c (connections of clients' ids), cmid_addr.c (where they are
 * and where they go), cmid_news.c and cmid_channel.c (what their clients hear), cmid_group.c (their
 * multicast groups) and cmid_qp.c (their queue pairs); nobody else includes this. On the device's
 * worker.
 */
#ifndef URNICD_CMGR_PRIV_H
#define URNICD_CMGR_PRIV_H

#include "cmgr.h"
#include "gsi.h"

#define CMGR_READY   256u
#define CMGR_WAITING 64u
#define CMID_UD_QKEY 0x01234567u /* RDMA CM's own for its port space: RDMA_UDP_QKEY (CM-31) */

struct mad_out {
    struct cm_out out;
    uint8_t mac[6];
    uint64_t give_up;
};

struct cmgr {
    struct gsi gsi; /* first */
    struct device *device;
    struct cm *cm;
    struct cm_channel *channels;
    unsigned nfull; /* channels with events that their sockets have refused */
    uint64_t now;   /* of the round: callbacks of the engine have no clock */
    bool dirty;     /* something was put in: events and datagrams may have come out */
    unsigned first_ready, nready, nwaiting;
    uint64_t retry_at;
    struct mad_out ready[CMGR_READY], waiting[CMGR_WAITING];
};

/* gsi_ops (cmid_channel.c): send the events that full channels had no room for; are there any? */
void cmgr_service(struct gsi *g);
bool cmgr_owes(const struct gsi *g);

/* Has the channel of this id room for another event? If not, one is lost that it is asked for. */
bool cmid_hears(const struct cm_id *id);
/* An event for the client of this id (cmid_channel.c). False: it is lost, and counted as such. */
bool cmid_event(struct cm_id *id, const struct ipc_cm_event *ev);
/* Something happened to a connection: tell its client (cmid_news.c). */
void cmgr_on_event(struct cmgr *m, const struct cm_event *ev, uint64_t now);
/* A connection that the id's user has taken a place for (SHARE_CONN). It outlives ids: so does the
 * share (cmid.c). */
void cmid_charge(struct cm_id *id);
/* Leave all groups: the id goes (cmid_group.c). */
void cmid_leave_all(struct cm_id *id, uint64_t now);

/* ---- cmid_qp.c ---- */

/* The PSN that our side starts with: as wanted, or a random one for 0. */
uint32_t cmid_psn(uint32_t wanted);
/* The queue pair that a connection is about, if it is one of this client's; and no more. */
void cmid_attach(struct cm_id *id, uint32_t qpn);
void cmid_detach(struct cm_id *id);
/* The queue pair of this id that we are to move, NULL = none. */
struct client_qp *cmid_driven(const struct cm_id *id);
/* The id's queue pair, NULL = none. */
struct client_qp *cmid_qp(const struct cm_id *id);
/* From INIT to RTS with what the peer has told; the neighbour's MAC is in the id. */
int cmid_qp_connected(struct cm_id *id, struct client_qp *qp, uint64_t now);

#endif
