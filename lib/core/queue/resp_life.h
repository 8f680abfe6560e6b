/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Start and end of a responder.
 */
#ifndef URNIC_RESP_LIFE_H
#define URNIC_RESP_LIFE_H

#include "qp.h"

/* Make the receive queue of a new queue pair, or take a share of its SRQ. *p becomes the granted
 * limits. 0, -EINVAL, -ENOMEM. */
int resp_init(struct qp *qp, struct engine_qp_params *p);
void resp_free(struct qp *qp);
/* To RESET: forget everything. */
void resp_reset(struct qp *qp);
/* To RTR. */
void resp_start(struct qp *qp, psn_t rq_psn);
/* Entering ERR: keep an owed ACK if the consumer moved it there (QP-11), drop READ responses. */
void resp_error(struct qp *qp, bool by_consumer);

#endif
