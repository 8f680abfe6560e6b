/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A queue pair in error: all that is queued completes with flush. Rules: QP-09..QP-12.
 */
#include "qp_state.h"

#include "engine_priv.h"
#include "recorder.h"
#include "resp_life.h"
#include "send_queue.h"
#include "srq.h"

void qp_enter(struct engine *e, struct qp *qp, enum qp_state state)
{
    recorder_note(e, qp, NOTE_STATE, psn(0), state);
    qp->state = (uint8_t)state;
}

void qp_stop_timers(struct engine *e, struct qp *qp)
{
    qp->req.ack_at = qp->req.rnr_at = qp->req.probe_at = TIMER_NEVER;
    timer_cancel(&e->wheel, &qp->timer);
}

void qp_to_error(struct engine *e, struct qp *qp, bool by_consumer, int ev)
{
    if (qp->state == QPS_ERR)
        return;
    qp_enter(e, qp, QPS_ERR);
    qp_stop_timers(e, qp);
    record_discard(qp);
    resp_error(qp, by_consumer);
    if (ev >= 0)
        engine_event(e, (enum ib_event)ev, qp->arg);
    /* A work request with a copy under way is flushed only after that copy: the program may use the
     * memory again as soon as it sees the completion. */
    if (!qp->req.recs.head)
        req_flush(e, qp);
    if (!qp->resp.recs.head)
        resp_flush(e, qp);
}

void qp_to_sqe(struct engine *e, struct qp *qp)
{
    qp_enter(e, qp, QPS_SQE);
    req_flush(e, qp);
}
