/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Queue pairs: create, modify, query, destroy.
 */
#include <stdio.h>
#include <stdlib.h>

#include "ah.h"
#include "ib.h"
#include "qp_ex.h"
#include "verbs_priv.h"
#include "xrc.h"

#define PSN_MASK    0xFFFFFFu
#define SHORT_QUEUE 64u

#define X(name, verbs, bit) _Static_assert((int)URNIC_QP_##bit == (int)IBV_QP_##bit, #bit);
QP_ATTRS(X)
#undef X
_Static_assert((int)URNIC_QP_STATE == (int)IBV_QP_STATE &&
                   (int)URNIC_QP_CUR_STATE == (int)IBV_QP_CUR_STATE &&
                   (int)URNIC_QP_AV == (int)IBV_QP_AV &&
                   (int)URNIC_QP_RATE_LIMIT == (int)IBV_QP_RATE_LIMIT &&
                   (int)URNIC_QPS_ERR == (int)IBV_QPS_ERR && (int)URNIC_QPT_UD == (int)IBV_QPT_UD &&
                   (int)URNIC_QPT_XRC_RECV == (int)IBV_QPT_XRC_RECV &&
                   (int)URNIC_MTU_4096 == (int)IBV_MTU_4096,
               "masks and numbers are passed on as they are");

static struct urnic_qp_cap cap_to(const struct ibv_qp_cap *c)
{
    return (struct urnic_qp_cap){.max_send_wr = c->max_send_wr,
                                 .max_recv_wr = c->max_recv_wr,
                                 .max_send_sge = c->max_send_sge,
                                 .max_recv_sge = c->max_recv_sge,
                                 .max_inline_data = c->max_inline_data};
}

static struct ibv_qp_cap cap_from(const struct urnic_qp_cap *c)
{
    return (struct ibv_qp_cap){.max_send_wr = c->max_send_wr,
                               .max_recv_wr = c->max_recv_wr,
                               .max_send_sge = c->max_send_sge,
                               .max_recv_sge = c->max_recv_sge,
                               .max_inline_data = c->max_inline_data};
}

/* 0, or the error for this type of queue pair. */
static int check_type(enum ibv_qp_type type)
{
    switch (type) {
    case IBV_QPT_RC:
    case IBV_QPT_UC:
    case IBV_QPT_UD:
    case IBV_QPT_XRC_SEND:
    case IBV_QPT_XRC_RECV:
        return 0;
    case IBV_QPT_RAW_PACKET:
    case IBV_QPT_DRIVER:
        return -EOPNOTSUPP;
    default:
        return -EINVAL;
    }
}

/* Devices grant short queues a power of two less one, and some programs need that: they leave
 * unsignaled requests in a queue of the length that they asked for. Long queues cost cache. */
static uint32_t send_depth(struct ibv_context *context, uint32_t asked)
{
    uint32_t n = 1;
    if (asked >= SHORT_QUEUE)
        return asked;
    while (n <= asked)
        n *= 2;
    uint32_t max = uv_ctx(context)->attr.max_qp_wr;
    return n - 1 < max ? n - 1 : max;
}

/* Fill the public members of a queue pair. */
static void show(struct uv_qp *qp, struct ibv_context *context,
                 const struct ibv_qp_init_attr_ex *attr)
{
    qp->qp.context = context;
    qp->qp.qp_context = attr->qp_context;
    /* A receiving XRC queue pair has no domain, but librdmacm finds its id's domain here. */
    qp->qp.pd = attr->comp_mask & IBV_QP_INIT_ATTR_PD ? attr->pd : NULL;
    qp->qp.send_cq = attr->send_cq;
    qp->qp.recv_cq = attr->recv_cq;
    qp->qp.srq = attr->srq;
    qp->qp.qp_num = qp->qp.handle = urnic_qp_num(qp->urnic);
    qp->qp.state = IBV_QPS_RESET;
    qp->qp.qp_type = attr->qp_type;
    pthread_mutex_init(&qp->qp.mutex, NULL);
    pthread_cond_init(&qp->qp.cond, NULL);
}

/* Has the program given the objects that this type of queue pair needs? Others are ignored. */
static bool has_objects(const struct ibv_qp_init_attr_ex *attr)
{
    if (attr->qp_type == IBV_QPT_XRC_RECV)
        return (attr->comp_mask & IBV_QP_INIT_ATTR_XRCD) && attr->xrcd != NULL;
    return (attr->comp_mask & IBV_QP_INIT_ATTR_PD) && attr->pd != NULL && attr->send_cq != NULL &&
           (attr->qp_type == IBV_QPT_XRC_SEND || attr->recv_cq != NULL);
}

static struct urnic_pd *domain_of(const struct ibv_qp_init_attr_ex *attr)
{
    return attr->qp_type == IBV_QPT_XRC_RECV ? ((struct uv_xrcd *)attr->xrcd)->urnic
                                             : uv_pd(attr->pd)->urnic;
}

static struct urnic_qp_init_attr init_attr(struct uv_qp *qp, struct ibv_qp_init_attr_ex *attr)
{
    struct urnic_qp_init_attr u = {
        .qp_context = qp,
        .cap = cap_to(&attr->cap),
        .qp_type = (enum urnic_qp_type)attr->qp_type,
        .sq_sig_all = attr->sq_sig_all,
    };
    if (attr->qp_type == IBV_QPT_XRC_RECV) { /* members of other types are ignored */
        attr->send_cq = attr->recv_cq = NULL;
        attr->srq = NULL;
        u.cap = (struct urnic_qp_cap){0};
    } else if (attr->qp_type == IBV_QPT_XRC_SEND) {
        attr->recv_cq = NULL;
        attr->srq = NULL;
        u.cap.max_recv_wr = u.cap.max_recv_sge = 0;
    }
    u.send_cq = attr->send_cq != NULL ? uv_cq(attr->send_cq)->urnic : NULL;
    u.recv_cq = attr->recv_cq != NULL ? uv_cq(attr->recv_cq)->urnic : NULL;
    u.srq = attr->srq != NULL ? uv_srq(attr->srq)->urnic : NULL;
    return u;
}

/* Many programs report such an error without its reason. */
static void say_full(struct ibv_context *context)
{
    static _Atomic bool said;
    if (!atomic_exchange_explicit(&said, true, memory_order_relaxed))
        fprintf(stderr,
                "urnic: %s: a context can have %u queue pairs, and this one has them; another "
                "context can have as many\n",
                context->device->name, uv_ctx(context)->attr.max_qp);
}

struct ibv_qp *uv_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
    const uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS |
                           IBV_QP_INIT_ATTR_SEND_OPS_FLAGS | IBV_QP_INIT_ATTR_XRCD;
    bool with_ops = attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    int err = check_type(attr->qp_type);
    if (err == 0 && (attr->comp_mask & ~known) != 0)
        err = -EOPNOTSUPP;
    if (err == 0 && (attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) && attr->create_flags != 0)
        err = -EOPNOTSUPP;
    if (err == 0 && !has_objects(attr))
        err = -EINVAL;
    if (err == 0 && with_ops)
        err = uv_ops_check(attr->qp_type, attr->send_ops_flags);
    struct uv_qp *qp = err == 0 ? calloc(1, sizeof(*qp)) : NULL;
    if (err == 0 && qp == NULL)
        err = -ENOMEM;
    if (err < 0)
        return uv_null(err);
    struct urnic_qp_init_attr u = init_attr(qp, attr);
    u.cap.max_send_wr = send_depth(context, u.cap.max_send_wr);
    err = urnic_create_qp(domain_of(attr), &u, &qp->urnic);
    if (err == -ENOSPC)
        say_full(context);
    if (err < 0) {
        free(qp);
        return uv_null(err);
    }
    qp->cap = u.cap;
    qp->sig_all = attr->sq_sig_all != 0;
    show(qp, context, attr);
    if (attr->qp_type == IBV_QPT_XRC_RECV)
        uv_target_add(qp, attr->xrcd);
    if (with_ops && (err = uv_ops_fill(qp)) < 0) {
        ibv_destroy_qp(&qp->qp);
        return uv_null(err);
    }
    attr->cap = cap_from(&u.cap);
    return &qp->qp;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    struct ibv_qp_init_attr_ex ex = {
        .qp_context = attr->qp_context,
        .send_cq = attr->send_cq,
        .recv_cq = attr->recv_cq,
        .srq = attr->srq,
        .cap = attr->cap,
        .qp_type = attr->qp_type,
        .sq_sig_all = attr->sq_sig_all,
        .comp_mask = IBV_QP_INIT_ATTR_PD,
        .pd = pd,
    };
    struct ibv_qp *qp = uv_create_qp_ex(pd->context, &ex);
    if (qp != NULL)
        attr->cap = ex.cap;
    return qp;
}

struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
    return uv_qp(qp)->batch != NULL ? &uv_qp(qp)->ex : NULL;
}

int ibv_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *a, int mask)
{
    struct uv_qp *qp = uv_qp(ibqp);
    struct urnic_qp_attr u = {.qp_state = (enum urnic_qp_state)a->qp_state,
                              .cur_qp_state = (enum urnic_qp_state)a->cur_qp_state,
#define X(name, verbs, bit) .verbs = (unsigned)a->verbs, /* enums of different names */
                              QP_ATTRS(X)
#undef X
    };
    u.rq_psn &= PSN_MASK;
    u.sq_psn &= PSN_MASK;
    u.qp_access_flags &= ~(unsigned)IBV_ACCESS_OPTIONAL_RANGE;
    if (mask & IBV_QP_RATE_LIMIT) /* a later member, which the oldest headers lack */
        u.rate_limit = a->rate_limit;
    int err = mask & IBV_QP_AV ? uv_ah_attr(&u.ah_attr, &a->ah_attr) : 0;
    if (err == 0)
        err = urnic_modify_qp(qp->urnic, &u, (unsigned)mask);
    if (err < 0)
        return uv_status(err);
    if (mask & IBV_QP_STATE)
        ibqp->state = a->qp_state;
    return 0;
}

int ibv_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask,
                 struct ibv_qp_init_attr *init)
{
    struct uv_qp *qp = uv_qp(ibqp);
    struct urnic_qp_attr u;
    (void)mask; /* a hint: all attributes are returned anyway */
    int err = urnic_query_qp(qp->urnic, &u);
    if (err < 0)
        return uv_status(err);
    *attr = (struct ibv_qp_attr){
        .qp_state = (enum ibv_qp_state)u.qp_state,
        .cur_qp_state = (enum ibv_qp_state)u.cur_qp_state,
        .path_mig_state = IBV_MIG_MIGRATED,
        .cap = cap_from(&qp->cap),
        .sq_draining = u.sq_draining,
#define X(name, verbs, bit) .verbs = (unsigned)u.verbs,
        QP_ATTRS(X)
#undef X
            .rate_limit = u.rate_limit,
    };
    uv_ah_attr_back(&attr->ah_attr, &u.ah_attr);
    ibqp->state = attr->qp_state;
    *init = (struct ibv_qp_init_attr){
        .qp_context = ibqp->qp_context,
        .send_cq = ibqp->send_cq,
        .recv_cq = ibqp->recv_cq,
        .srq = ibqp->srq,
        .cap = attr->cap,
        .qp_type = ibqp->qp_type,
        .sq_sig_all = qp->sig_all,
    };
    return 0;
}

int ibv_destroy_qp(struct ibv_qp *ibqp)
{
    struct uv_qp *qp = uv_qp(ibqp);
    if (qp->real != NULL)
        return uv_status(uv_target_drop(qp));
    int err = urnic_destroy_qp(qp->urnic);
    if (err < 0)
        return uv_status(err);
    pthread_mutex_destroy(&qp->qp.mutex);
    pthread_cond_destroy(&qp->qp.cond);
    uv_ops_free(qp);
    free(qp);
    return 0;
}

int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
    (void)qp;
    (void)op;
    (void)flags;
    return 0; /* retransmissions arrive after later packets */
}
