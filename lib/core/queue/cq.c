/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Completion queues: the caller stores the entries. The engine fills them in and handles overflow.
 * Rules: CQ, QP-12.
 */
#include "cq.h"

#include <errno.h>
#include <stdlib.h>

#include "engine_priv.h"
#include "qp_state.h"
#include "recorder.h"

int engine_cq_create(struct engine *e, void *arg, struct cq **out)
{
    if (e->p.max_cq && e->ncqs >= e->p.max_cq)
        return -ENOSPC;
    struct cq *cq = calloc(1, sizeof(*cq));
    if (!cq)
        return -ENOMEM;
    cq->arg = arg;
    cq->next = e->cqs;
    cq->pprev = &e->cqs;
    if (cq->next)
        cq->next->pprev = &cq->next;
    e->cqs = cq;
    e->ncqs++;
    *out = cq;
    return 0;
}

int engine_cq_destroy(struct engine *e, struct cq *cq)
{
    if (cq->users)
        return -EBUSY;
    *cq->pprev = cq->next;
    if (cq->next)
        cq->next->pprev = cq->pprev;
    e->ncqs--;
    free(cq);
    return 0;
}

bool cq_push(struct engine *e, struct qp *qp, struct cq *cq, struct engine_wc *wc)
{
    wc->qpn = qp->qpn;
    wc->qp_arg = (uint64_t)(uintptr_t)qp->arg;
    if (wc->status != WC_SUCCESS)
        wc->solicited = 1; /* CQ-07 */
    if (!cq->error && e->p.hooks.cq_push(e->p.hook_arg, cq->arg, wc))
        return true;
    if (!cq->error) {
        cq->error = true;
        engine_count(e, ENGINE_C_cq_overflow);
        engine_event(e, EVT_CQ_ERR, cq->arg);
    }
    if (qp->state != QPS_ERR) {
        recorder_error(e, qp, "CQ-05 no room for a completion");
        qp_to_error(e, qp, false, EVT_QP_FATAL);
    }
    return false;
}

void cq_flush(struct engine *e, struct qp *qp, struct cq *cq, uint64_t wr_id, unsigned opcode)
{
    struct engine_wc wc = {.wr_id = wr_id, .status = WC_WR_FLUSH_ERR, .opcode = opcode};
    engine_count(e,
                 opcode >= WC_RECV ? ENGINE_C_resp_cqe_flush_error : ENGINE_C_req_cqe_flush_error);
    cq_push(e, qp, cq, &wc);
}

const char *engine_status_name(unsigned status)
{
    static const char *const names[WC_STATUS_MAX] = {
#define X(name) #name,
        WC_STATUSES(X)
#undef X
    };
    return status < WC_STATUS_MAX ? names[status] : "?";
}
