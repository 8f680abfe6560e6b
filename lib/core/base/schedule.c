/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Lists and timers of queue pairs.
 */
#include "schedule.h"

#include <stdlib.h>

#include "engine_priv.h"
#include "limiter.h"
#include "recovery.h"

void qp_activate(struct engine *e, struct qp *qp)
{
    if (qp->is_active || qp->mute)
        return;
    qp->is_active = 1;
    qp->active_next = NULL;
    qp->active_at = e->active_tail;
    *e->active_tail = qp;
    e->active_tail = &qp->active_next;
}

void engine_deactivate(struct engine *e, struct qp *qp)
{
    if (!qp->is_active)
        return;
    if (e->active == qp)
        e->quantum_left = 0;
    *qp->active_at = qp->active_next;
    if (qp->active_next)
        qp->active_next->active_at = qp->active_at;
    else
        e->active_tail = qp->active_at;
    qp->active_next = NULL;
    qp->is_active = 0;
}

void qp_rearm(struct engine *e, struct qp *qp)
{
    uint64_t due = qp->req.ack_at < qp->req.rnr_at ? qp->req.ack_at : qp->req.rnr_at;
    if (qp->req.probe_at < due)
        due = qp->req.probe_at;
    if (qp->lim && qp->lim->waiting && qp->lim->next < due)
        due = qp->lim->next;
    if (recovery_hold_at(qp) < due)
        due = recovery_hold_at(qp);
    /* A timer that is armed for an earlier time stays: moving it with each acknowledgement would
     * cost more than one look when it fires. */
    if (due == TIMER_NEVER ||
        (timer_armed(&qp->timer) && qp->timer.tick << TIMER_TICK_SHIFT <= due))
        return;
    timer_arm(&e->wheel, &qp->timer, due);
}

void qp_reap(struct engine *e, struct qp *qp)
{
    *qp->active_at = qp->active_next;
    if (qp->active_next)
        qp->active_next->active_at = qp->active_at;
    e->nlinger--;
    free(qp);
}
