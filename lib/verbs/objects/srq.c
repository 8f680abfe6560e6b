/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shared receive queues.
 */
#include <stdlib.h>

#include "verbs_priv.h"
#include "xrc.h"

/* xrcd and cq: for XRC, or NULL. */
static struct ibv_srq *create(struct ibv_pd *pd, struct ibv_xrcd *xrcd, struct ibv_cq *cq,
                              void *srq_context, struct ibv_srq_attr *attr)
{
    static _Atomic uint32_t handles;
    struct urnic_srq_attr want = {.max_wr = attr->max_wr, .max_sge = attr->max_sge};
    struct uv_srq *srq = calloc(1, sizeof(*srq));
    int err = -ENOMEM;
    if (srq != NULL && xrcd != NULL)
        err = urnic_create_xrc_srq(uv_pd(pd)->urnic, ((struct uv_xrcd *)xrcd)->urnic,
                                   uv_cq(cq)->urnic, &want, srq, &srq->urnic);
    else if (srq != NULL)
        err = urnic_create_srq(uv_pd(pd)->urnic, &want, srq, &srq->urnic);
    if (err < 0) {
        free(srq);
        return uv_null(err);
    }
    srq->srq.context = pd->context;
    srq->srq.srq_context = srq_context;
    srq->srq.pd = pd;
    srq->srq.handle = atomic_fetch_add(&handles, 1);
    pthread_mutex_init(&srq->srq.mutex, NULL);
    pthread_cond_init(&srq->srq.cond, NULL);
    attr->max_wr = want.max_wr;
    attr->max_sge = want.max_sge;
    return &srq->srq;
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
    return create(pd, NULL, NULL, attr->srq_context, &attr->attr);
}

struct ibv_srq *uv_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr)
{
    const uint32_t of_xrc = IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
    const uint32_t known = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | of_xrc;
    enum ibv_srq_type type =
        attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE ? attr->srq_type : IBV_SRQT_BASIC;
    (void)context;
    if (type != IBV_SRQT_BASIC && type != IBV_SRQT_XRC)
        return uv_null(type <= IBV_SRQT_TM ? -EOPNOTSUPP : -EINVAL);
    if ((attr->comp_mask & ~known) != 0)
        return uv_null(-EOPNOTSUPP);
    if (type == IBV_SRQT_XRC &&
        ((attr->comp_mask & of_xrc) != of_xrc || attr->xrcd == NULL || attr->cq == NULL))
        return uv_null(-EINVAL);
    if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || attr->pd == NULL)
        return uv_null(-EINVAL);
    bool xrc = type == IBV_SRQT_XRC;
    return create(attr->pd, xrc ? attr->xrcd : NULL, xrc ? attr->cq : NULL, attr->srq_context,
                  &attr->attr);
}

int ibv_modify_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr, int mask)
{
    if ((mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT)) != 0)
        return uv_status(-EINVAL);
    struct urnic_srq *srq = uv_srq(ibsrq)->urnic;
    int err = mask & IBV_SRQ_MAX_WR ? urnic_resize_srq(srq, attr->max_wr) : 0;
    if (err == 0 && (mask & IBV_SRQ_LIMIT))
        err = urnic_modify_srq_limit(srq, attr->srq_limit);
    return err < 0 ? uv_status(err) : 0;
}

int ibv_query_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr)
{
    struct urnic_srq_attr u;
    int err = urnic_query_srq(uv_srq(ibsrq)->urnic, &u);
    if (err < 0)
        return uv_status(err);
    *attr =
        (struct ibv_srq_attr){.max_wr = u.max_wr, .max_sge = u.max_sge, .srq_limit = u.srq_limit};
    return 0;
}

int ibv_destroy_srq(struct ibv_srq *ibsrq)
{
    struct uv_srq *srq = uv_srq(ibsrq);
    int err = urnic_destroy_srq(srq->urnic);
    if (err < 0)
        return uv_status(err);
    pthread_mutex_destroy(&srq->srq.mutex);
    pthread_cond_destroy(&srq->srq.cond);
    free(srq);
    return 0;
}
