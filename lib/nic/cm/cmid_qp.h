/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Queue pairs of connections. On the device's worker (cmid.h tells the return values).
 */
#ifndef NIC_CMID_QP_H
#define NIC_CMID_QP_H

#include <stdbool.h>
#include <stdint.h>

#include "cmid.h"

struct cmgr;

/* The attributes that a client's own queue pair needs for a state of the connection. */
int cmgr_qp_attr(struct cm_id *id, uint32_t state, struct ipc_qp_modify *out);
/* Can the id have a queue pair? Not if it listens or has one. */
bool cmgr_takes_qp(const struct cm_id *id);
/* Move the queue pair from RESET to INIT (a datagram one to RTS); from now on it follows the
 * connection. */
int cmgr_take_qp(struct cm_id *id, struct client_qp *qp, uint64_t now);

/* ---- within lib/nic/cm ---- */

/* Our initial PSN: the requested one, or a random one for 0. */
uint32_t cmid_psn(uint32_t wanted);
/* Set the connection's queue pair, if it is one of this client's; clear it. */
void cmid_attach(struct cm_id *id, uint32_t qpn);
void cmid_detach(struct cm_id *id);
/* The queue pair of this id if the daemon moves it; NULL = none. */
struct client_qp *cmid_driven(const struct cm_id *id);
/* The id's queue pair, NULL = none. */
struct client_qp *cmid_qp(const struct cm_id *id);
/* The id has accepted, with a queue pair of a program's own engine. The program reports the peer's
 * first request to the queue pair, which then counts as the RTU (CM-23). */
void cmid_await(struct cm_id *id);
/* The connection is established, or over; no effect in another state. */
void cmid_await_end(struct cm_id *id);
/* The id that waits for this event of the queue pair; NULL = none. */
struct cm_id *cmid_awaiting(const struct cmgr *m, uint32_t qpn);
/* Move it from INIT to RTS with the peer's values; the neighbour's MAC is in the id. */
int cmid_qp_connected(struct cm_id *id, struct client_qp *qp, uint64_t now);

#endif
