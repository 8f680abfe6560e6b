/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Start and end of the receiving half of a queue pair: its receive queue, its ring of READs, and
 * the answers that it still owes after an error. Rules: QP-11, ACK-05.
 */
#include "resp_life.h"

#include <errno.h>
#include <stdlib.h>

#include "engine_priv.h"
#include "rd_ring.h"
#include "recovery.h"
#include "srq.h"

int resp_init(struct qp *qp, struct engine_qp_params *p)
{
    struct resp *r = &qp->resp;
    r->taken_tail = &r->taken;
    if (p->max_recv_sge > ENGINE_SGE_MAX)
        return -EINVAL;
    if (p->srq) {
        p->srq->users++;
        return 0;
    }
    if (p->max_recv_sge == 0)
        p->max_recv_sge = 1;
    r->rq = malloc(sizeof(*r->rq));
    if (!r->rq)
        return -ENOMEM;
    if (rq_init(r->rq, p->max_recv_wr, p->max_recv_sge)) {
        free(r->rq);
        r->rq = NULL;
        return -ENOMEM;
    }
    return 0;
}

/* Back to the pool, without completions. */
static void drop_work(struct qp *qp)
{
    struct resp *r = &qp->resp;
    resp_drop_taken(qp);
    for (struct rwqe *w; !qp->srq && (w = rq_take(r->rq));)
        rq_give(r->rq, w);
}

void resp_free(struct qp *qp)
{
    struct resp *r = &qp->resp;
    if (qp->srq || r->rq)
        drop_work(qp);
    rd_free(qp);
    if (qp->srq) {
        qp->srq->users--;
    } else if (r->rq) {
        rq_destroy(r->rq);
        free(r->rq);
        r->rq = NULL;
    }
}

void resp_reset(struct qp *qp)
{
    struct resp *r = &qp->resp;
    drop_work(qp);
    rd_free(qp);
    *r = (struct resp){.rq = r->rq, .recs = r->recs};
    r->taken_tail = &r->taken;
}

void resp_start(struct qp *qp, psn_t rq_psn)
{
    struct resp *r = &qp->resp;
    r->epsn = r->done_epsn = rq_psn;
    r->ack_psn = psn_prev(rq_psn);
    r->done_msn = 0;
    r->credits = 0;
}

void resp_error(struct qp *qp, bool by_consumer)
{
    struct resp *r = &qp->resp;
    bool reads_first = rd_blocks(qp, r->ack_psn); /* an ACK may not overtake READs (ACK-05) */
    if (!by_consumer || reads_first || r->fatal >= FATAL_OWED)
        r->ack_owed = 0;
    r->nak_owed = 0;
    r->in_msg = MSG_NONE;
    r->wqe = NULL;
    recovery_stop(qp);
    if (r->rd)
        rd_abandon(qp);
}
