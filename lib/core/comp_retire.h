/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Work requests of the send queue come to their end: they complete in order, or fail.
 */
#ifndef URNIC_COMP_RETIRE_H
#define URNIC_COMP_RETIRE_H

#include "record.h"

struct qp;

/* A record of side REC_COMP is done (r->status says how). Never called for stale records. */
void comp_commit(struct engine *e, struct qp *qp, struct record *r, uint64_t now);
/* Do the work that waited for the end of all records of this side. */
void comp_idle(struct engine *e, struct qp *qp, uint64_t now);
/* Complete work requests in order, as far as `done` and local errors allow. */
void comp_retire(struct engine *e, struct qp *qp, uint64_t now);
/* The oldest work request fails with `status`, the queue pair goes to ERR (REQ-36); waits for
 * pending copies. */
void comp_fail(struct engine *e, struct qp *qp, enum wc_status status, const char *why,
               uint64_t now);
/* Flush the send queue in order (QP-12). */
void comp_flush(struct engine *e, struct qp *qp);

#endif
