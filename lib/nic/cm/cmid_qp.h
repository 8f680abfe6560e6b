/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Queue pairs of connections. On the device's worker (cmid.h says what functions return).
 */
#ifndef NIC_CMID_QP_H
#define NIC_CMID_QP_H

#include <stdbool.h>
#include <stdint.h>

#include "cmid.h"

/* What a client's own queue pair has to be set to for a state of the connection. */
int cmgr_qp_attr(struct cm_id *id, uint32_t state, struct ipc_qp_modify *out);
/* Can it have a queue pair: it doesn't listen, and has none. */
bool cmgr_takes_qp(const struct cm_id *id);
/* The queue pair (in RESET) goes to INIT (a datagram one to RTS), and from now on with its
 * connection. */
int cmgr_take_qp(struct cm_id *id, struct client_qp *qp, uint64_t now);

/* ---- within lib/nic/cm ---- */

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
