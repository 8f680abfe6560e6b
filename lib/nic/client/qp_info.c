/* SPDX-License-Identifier: BSD-3-Clause */
#include "qp_info.h"

#include <string.h>

#include "cc.h"
#include "client.h"
#include "client_qp.h"
#include "context.h"
#include "device.h"
#include "device_addr.h"
#include "worker.h"

void qp_info(const struct device *d, const struct client_qp *cqp, struct ipc_asked_qp *asked)
{
    const struct client *c = cqp->ctx->client;
    struct ipc_qp_info *out = &asked->info;
    struct engine_qp_params caps;
    struct engine_qp_attr attr;
    struct engine_qp_info its, *info = &its;
    engine_qp_info(d->engine, cqp->qp, info);
    asked->cc_target = info->cc_target;
    *out = (struct ipc_qp_info){
        .qpn = info->qpn,
        .dest_qpn = info->dest_qpn,
        .type = info->type,
        .state = info->state,
        .epsn = info->epsn,
        .msn = info->msn,
        .sq_psn = info->sq_psn,
        .una_psn = info->una_psn,
        .sq_used = info->sq_used,
        .rq_used = info->rq_used,
        .inflight_packets = info->inflight_packets,
        .rd_atomic_out = info->rd_atomic_out,
        .tx_packets = info->tx_packets,
        .rx_packets = info->rx_packets,
        .tx_bytes = info->tx_bytes,
        .rx_bytes = info->rx_bytes,
        .retransmits = info->retransmits,
        .timeouts = info->timeouts,
        .naks = info->naks,
        .rnr_naks = info->rnr_naks,
        .cc_rate = info->cc_rate,
        .pid = (uint32_t)c->pid,
        .uid = c->uid,
        .worker = (uint16_t)d->worker->index,
        .flags = claim_is_shared(&cqp->claim) ? IPC_QP_F_SHARED : 0,
        .cc_alpha = (uint16_t)(info->cc_alpha >> (CC_RATIO_BITS - IPC_ALPHA_BITS)),
        .recovery = info->recovery,
        .recovery_agreed = info->recovery_agreed,
    };
    if (engine_qp_query(cqp->qp, &attr, &caps) == 0)
        av_to_ipc(d, &attr.av, &out->av);
    memcpy(out->comm, c->comm, sizeof(out->comm));
    strncpy(out->cc, info->cc->type->name, sizeof(out->cc) - 1);
    _Static_assert(sizeof(out->error) == sizeof(info->error), "same text");
    memcpy(out->error, info->error, sizeof(out->error));
}

bool qp_info_is_for(const struct client *c, const struct client *owner)
{
    return client_is_admin(c) || c->uid == owner->uid;
}

void qp_info_hide(struct ipc_qp_info *q)
{
    q->flags |= IPC_QP_F_HIDDEN;
    q->dest_qpn = q->epsn = q->msn = q->sq_psn = q->una_psn = 0;
    memset(&q->av, 0, sizeof(q->av));
    memset(q->error, 0, sizeof(q->error));
}
