/* SPDX-License-Identifier: BSD-3-Clause
 *
 * When a queue pair gets a turn: the list of those that have something to send, and the timer. And
 * the end of a destroyed one that waited for its records.
 */
#ifndef URNIC_SCHEDULE_H
#define URNIC_SCHEDULE_H

struct engine;
struct qp;

/* Put the queue pair on the list that engine_tx serves. */
void qp_activate(struct engine *e, struct qp *qp);
/* Take the queue pair off that list. */
void engine_deactivate(struct engine *e, struct qp *qp);
/* Recompute the timer after a deadline has moved. */
void qp_rearm(struct engine *e, struct qp *qp);
/* Free a destroyed queue pair whose last record is gone. */
void qp_reap(struct engine *e, struct qp *qp);

#endif
