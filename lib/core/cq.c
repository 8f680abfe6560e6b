/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Completion queues: the caller stores the entries, the engine decides what is in them and what
 * happens when one doesn't fit. Rules: CQ, QP-12.
 */
#include "cq.h"

#include <errno.h>
#include <stdlib.h>

#include "engine_priv.h"
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

bool cq_push(struct engine *e, struct qp *qp, struct cq *cq, struct engine_wc *wc, uint64_t now)
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
        qp_to_error(e, qp, false, EVT_QP_FATAL, now);
    }
    return false;
}

void cq_flush(struct engine *e, struct qp *qp, struct cq *cq, uint64_t wr_id, unsigned opcode)
{
    struct engine_wc wc = {.wr_id = wr_id, .status = WC_WR_FLUSH_ERR, .opcode = opcode};
    engine_count(e,
                 opcode >= WC_RECV ? ENGINE_C_resp_cqe_flush_error : ENGINE_C_req_cqe_flush_error);
    cq_push(e, qp, cq, &wc, e->now);
}

const char *engine_status_name(unsigned status)
{
    static const char *const names[WC_STATUS_MAX] = {
        [WC_SUCCESS] = "SUCCESS",
        [WC_LOC_LEN_ERR] = "LOC_LEN_ERR",
        [WC_LOC_QP_OP_ERR] = "LOC_QP_OP_ERR",
        [WC_LOC_EEC_OP_ERR] = "LOC_EEC_OP_ERR",
        [WC_LOC_PROT_ERR] = "LOC_PROT_ERR",
        [WC_WR_FLUSH_ERR] = "WR_FLUSH_ERR",
        [WC_MW_BIND_ERR] = "MW_BIND_ERR",
        [WC_BAD_RESP_ERR] = "BAD_RESP_ERR",
        [WC_LOC_ACCESS_ERR] = "LOC_ACCESS_ERR",
        [WC_REM_INV_REQ_ERR] = "REM_INV_REQ_ERR",
        [WC_REM_ACCESS_ERR] = "REM_ACCESS_ERR",
        [WC_REM_OP_ERR] = "REM_OP_ERR",
        [WC_RETRY_EXC_ERR] = "RETRY_EXC_ERR",
        [WC_RNR_RETRY_EXC_ERR] = "RNR_RETRY_EXC_ERR",
        [WC_LOC_RDD_VIOL_ERR] = "LOC_RDD_VIOL_ERR",
        [WC_REM_INV_RD_REQ_ERR] = "REM_INV_RD_REQ_ERR",
        [WC_REM_ABORT_ERR] = "REM_ABORT_ERR",
        [WC_INV_EECN_ERR] = "INV_EECN_ERR",
        [WC_INV_EEC_STATE_ERR] = "INV_EEC_STATE_ERR",
        [WC_FATAL_ERR] = "FATAL_ERR",
        [WC_RESP_TIMEOUT_ERR] = "RESP_TIMEOUT_ERR",
        [WC_GENERAL_ERR] = "GENERAL_ERR",
    };
    return status < WC_STATUS_MAX ? names[status] : "?";
}
