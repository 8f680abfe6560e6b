/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Receiving datagrams: UD queue pairs and the general services queue pair. Rules: UD, GSI.
 */
#ifndef URNIC_UD_H
#define URNIC_UD_H

#include "engine.h"
#include "record.h"

/* A datagram for a UD or GSI queue pair; P_Key and Q_Key have been checked. */
void ud_rx(struct rx *rx, struct qp *qp);
/* A record made by ud_rx is done (called by resp_commit when the queue pair isn't connected). */
void ud_commit(struct engine *e, struct qp *qp, struct record *r);

#endif
