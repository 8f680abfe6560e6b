/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The figures of one queue pair.
 */
#include <stdio.h>

#include "engine_priv.h"
#include "limiter.h"
#include "recovery.h"
#include "srq.h"

void engine_qp_info(const struct engine *e, const struct qp *qp, struct engine_qp_info *out)
{
    const struct req *rq = &qp->req;
    *out = (struct engine_qp_info){
        .qpn = qp->qpn,
        .dest_qpn = qp->dest_qpn,
        .type = qp_type_of(qp),
        .state = qp->state,
        .epsn = qp->resp.epsn.v,
        .msn = qp->resp.done_msn,
        .sq_psn = rq->nxt.v,
        .una_psn = rq->una.v,
        .sq_used = rq->tail - rq->head,
        .rq_used = qp->srq || qp->xrc ? 0 : resp_receives(qp),
        .inflight_packets = psn_ahead(rq->max, rq->una),
        .rd_atomic_out = rq->rd_out,
        .tx_packets = qp->stats.tx_packets,
        .rx_packets = qp->stats.rx_packets,
        .tx_bytes = qp->stats.tx_bytes,
        .rx_bytes = qp->stats.rx_bytes,
        .retransmits = qp->stats.retransmits,
        .timeouts = qp->stats.timeouts,
        .naks = qp->stats.naks,
        .rnr_naks = qp->stats.rnr_naks,
        .recovery = recovery_mode(qp),
        .recovery_agreed = recovery_agreed(qp),
        .cc = &qp->cc_conf->conf,
        .cc_rate = CC_UNLIMITED,
        .cc_target = CC_UNLIMITED,
    };
    if (qp->lim) { /* as of now, though nothing has been sent lately */
        struct cc cc = qp->lim->cc;
        cc_run(&cc, e->now);
        out->cc_rate = cc.rate;
        out->cc_target = cc_target(&cc);
        out->cc_alpha = cc_alpha(&cc);
    }
    if (qp->error)
        snprintf(out->error, sizeof(out->error), "%s", qp->error);
}

size_t engine_qp_state_size(void)
{
    return sizeof(struct qp);
}
