/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Work requests of the send queue come to their end: they complete in order, or fail.
 */
#ifndef URNIC_COMP_RETIRE_H
#define URNIC_COMP_RETIRE_H

#include "record.h"

struct qp;

/* Commit the records at the head that are done. Called by engine_copied, and after a record without
 * copies was appended. */
void comp_run(struct engine *e, struct qp *qp);
/* Complete work requests in order, as far as `done` and local errors allow. */
void comp_retire(struct engine *e, struct qp *qp);
/* The oldest work request fails with `status`, the queue pair goes to ERR (REQ-36); waits for
 * pending copies. */
void comp_fail(struct engine *e, struct qp *qp, enum wc_status status, const char *why);

#endif
