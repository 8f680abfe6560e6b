/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Changes of a queue pair's state from within, and what every change does.
 */
#ifndef URNIC_QP_STATE_H
#define URNIC_QP_STATE_H

#include "qp.h"

/* To ERR (QP-10): timers stop, records are discarded, both queues flush in order. `by_consumer`
 * keeps owed ACKs (QP-11) and raises no event; `ev` < 0 = no event. */
void qp_to_error(struct engine *e, struct qp *qp, bool by_consumer, int ev);
/* To SQE after a send error on UC or UD (QP-09). */
void qp_to_sqe(struct engine *e, struct qp *qp);
/* To another state, and nothing else. */
void qp_enter(struct engine *e, struct qp *qp, enum qp_state state);
/* No deadline is left. */
void qp_stop_timers(struct engine *e, struct qp *qp);

#endif
