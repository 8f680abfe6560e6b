/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The UC responder. Rules: UC-03..UC-08.
 */
#ifndef URNIC_RESP_UC_H
#define URNIC_RESP_UC_H

#include <stdbool.h>
#include <stdint.h>

#include "refusal.h"

struct qp;
struct rx;

/* A request for a UC queue pair; enough records are free. */
void uc_rx(struct rx *rx, struct qp *qp);
/* The consumer's own memory failed: the work request in use completes with an error, the queue pair
 * goes to ERR. */
void uc_failed(struct engine *e, struct qp *qp, enum refusal why, bool wqe);

#endif
