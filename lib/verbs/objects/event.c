/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Completion events of a channel, and asynchronous events of a device. A signal ends a wait for
 * them, as it ends a read from the kernel's device.
 */
#include "verbs_priv.h"

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
    struct urnic_cq *urnic;
    void *ours;
    int err = urnic_get_cq_event_intr(((struct uv_channel *)channel)->urnic, &urnic, &ours);
    if (err < 0)
        return uv_fail(err);
    *cq = &((struct uv_cq *)ours)->cq;
    *cq_context = (*cq)->cq_context;
    return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned n)
{
    if (n == 0)
        return;
    pthread_mutex_lock(&cq->mutex);
    cq->comp_events_completed += n;
    pthread_mutex_unlock(&cq->mutex);
    urnic_ack_cq_events(uv_cq(cq)->urnic, n);
}

/* ---- asynchronous ---- */

enum element { OF_PORT, OF_CQ, OF_QP, OF_SRQ };

static enum element element_of(enum ibv_event_type type)
{
    switch (type) {
    case IBV_EVENT_CQ_ERR:
        return OF_CQ;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        return OF_QP;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
        return OF_SRQ;
    default:
        return OF_PORT;
    }
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
    struct urnic_async_event u;
    int err = urnic_get_async_event_intr(uv_ctx(context)->urnic, &u);
    if (err < 0)
        return uv_fail(err);
    event->event_type = (enum ibv_event_type)u.type;
    switch (element_of(event->event_type)) {
    case OF_CQ:
        event->element.cq = &((struct uv_cq *)urnic_cq_context(u.cq))->cq;
        break;
    case OF_QP:
        event->element.qp = &((struct uv_qp *)urnic_qp_context(u.qp))->qp;
        break;
    case OF_SRQ:
        event->element.srq = &((struct uv_srq *)urnic_srq_context(u.srq))->srq;
        break;
    default:
        event->element.port_num = (int)u.port;
        break;
    }
    return 0;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
    struct urnic_async_event u = {.type = (enum urnic_event_type)event->event_type};
    switch (element_of(event->event_type)) {
    case OF_CQ:
        u.cq = uv_cq(event->element.cq)->urnic;
        break;
    case OF_QP:
        u.qp = uv_qp(event->element.qp)->urnic;
        break;
    case OF_SRQ:
        u.srq = uv_srq(event->element.srq)->urnic;
        break;
    default:
        return;
    }
    urnic_ack_async_event(&u);
}
