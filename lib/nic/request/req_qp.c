/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Requests about queue pairs.
 */
#include "req_qp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cc.h"
#include "cclog.h"
#include "client_qp.h"
#include "cmgr.h"
#include "cmid.h"
#include "cmid_group.h"
#include "cmid_qp.h"
#include "log.h"
#include "quota.h"
#include "req_queue.h"
#include "seal.h"

static const uint8_t mac_none[6];

/* ---- create ---- */

static int qp_objects(struct request *r, const struct ipc_qp_create *in, struct client_qp *qp)
{
    const struct handle_table *t = &r->client->handles;
    qp->pd = (uint32_t)(uintptr_t)handle_get(t, HANDLE_PD, in->pd);
    qp->send_cq = handle_get(t, HANDLE_CQ, in->send_cq);
    qp->recv_cq = handle_get(t, HANDLE_CQ, in->recv_cq);
    qp->srq = handle_get(t, HANDLE_SRQ, in->srq);
    /* A handle of 0 names no object. The engine checks which objects a queue pair of this type
     * needs. */
    if (!qp->pd || (in->send_cq != 0 && !qp->send_cq) || (in->recv_cq != 0 && !qp->recv_cq) ||
        (in->srq != 0 && !qp->srq))
        return -EINVAL;
    int rc = qp->send_cq ? seal_mapped_place(r, &qp->send_cq->place) : 0;
    if (rc == 0 && qp->recv_cq)
        rc = seal_mapped_place(r, &qp->recv_cq->place);
    if (rc == 0 && qp->srq)
        rc = seal_mapped_place(r, &qp->srq->rq.place);
    return rc;
}

static bool qp_is_xrc(uint32_t type)
{
    return type == QP_XRC_INI || type == QP_XRC_TGT;
}

static int qp_limits(const struct ipc_qp_create *in)
{
    if (in->type != QP_RC && in->type != QP_UC && in->type != QP_UD && !qp_is_xrc(in->type))
        return -EINVAL;
    if (in->max_send_wr > LIMIT_QP_WR || in->max_recv_wr > LIMIT_QP_WR ||
        in->max_send_sge > LIMIT_SGE || in->max_recv_sge > LIMIT_SGE ||
        in->max_inline > LIMIT_INLINE)
        return -EINVAL;
    return 0;
}

static int qp_engine(struct request *r, const struct ipc_qp_create *in, struct client_qp *qp,
                     struct engine_qp_params *p)
{
    struct cc_conf own;
    char spec[sizeof(in->cc) + sizeof(in->cc_spec) + 1] = "", err[CONFIG_ERR];

    /* cc_spec is for text that doesn't fit into cc. */
    memcpy(spec, in->cc, sizeof(in->cc));
    if (!spec[0])
        memcpy(spec, in->cc_spec, sizeof(in->cc_spec));
    if (spec[0] && cc_conf_parse(&own, spec, err, sizeof(err)) < 0) {
        if (share_may_log(r->client->of_device, r->now))
            log_warn("cc", "pid %d: %s", (int)r->client->pid, err);
        return -EINVAL;
    }
    *p = (struct engine_qp_params){
        .arg = qp,
        .type = qp->type,
        .pd = qp->pd,
        .send_cq = qp->send_cq ? qp->send_cq->cq : NULL,
        .recv_cq = qp->recv_cq ? qp->recv_cq->cq : NULL,
        .srq = qp->srq ? qp->srq->srq : NULL,
        .max_send_wr = in->max_send_wr ? in->max_send_wr : 1,
        .max_recv_wr = qp->srq           ? 0
                       : in->max_recv_wr ? in->max_recv_wr
                                         : 1,
        .max_send_sge = in->max_send_sge ? in->max_send_sge : 1,
        .max_recv_sge = in->max_recv_sge ? in->max_recv_sge : 1,
        .max_inline = in->max_inline,
        .sq_sig_all = in->sq_sig_all != 0,
    };
    int rc = engine_qp_create(r->device->engine, p, &qp->qp);
    if (rc < 0)
        return rc;
    qp->qpn = engine_qp_num(qp->qp);
    if (!spec[0])
        return 0;
    qp->cc = malloc(sizeof(own));
    if (!qp->cc)
        return -ENOMEM;
    *qp->cc = own;
    rc = engine_qp_set_cc(r->device->engine, qp->qp, &own, r->now);
    if (rc == 0 && share_may_log(r->client->of_device, r->now))
        cclog_qp(r->device, qp->qpn, &own);
    return rc;
}

static int qp_queues(struct request *r, struct client_qp *qp, const struct engine_qp_params *p,
                     struct ipc_qp *out)
{
    const bool xrc = qp_is_xrc(qp->type);
    const uint32_t units =
        ipc_sqe_units_max(p->max_send_sge, p->max_inline, qp->type == QP_UD || xrc);
    qp->sq.qp = qp->rq.qp = qp;
    int rc = queue_create(r, &qp->sq, QUEUE_SEND, p->max_send_wr * units, IPC_UNIT,
                          qp->type == QP_UD, &out->sq);
    qp->sq.ring.xrc = qp->type == QP_XRC_INI;
    if (rc == 0 && !qp->srq && !xrc)
        rc = queue_create(r, &qp->rq, QUEUE_RECV, p->max_recv_wr, ipc_rq_stride(p->max_recv_sge),
                          false, &out->rq);
    return rc;
}

static void qp_undo(struct request *r, struct client_qp *qp)
{
    struct context *ctx = &r->client->ctx;
    if (qp->sq.ring.entries > 0)
        context_queue_del(ctx, &qp->sq);
    if (qp->rq.ring.entries > 0)
        context_queue_del(ctx, &qp->rq);
    if (qp->qp)
        engine_qp_destroy(r->device->engine, qp->qp);
    qslab_free(&qp->sq.place);
    qslab_free(&qp->rq.place);
    free(qp->cc);
    free(qp);
}

int req_qp_create(struct request *r)
{
    const struct ipc_qp_create *in = request_in(r, struct ipc_qp_create);
    struct ipc_qp *out = request_out(r, struct ipc_qp);
    struct cm_id *id = handle_get(&r->client->handles, HANDLE_CM_ID, in->cm_id);
    struct engine_qp_params p;
    int rc = qp_limits(in);
    if (rc == 0 && in->cm_id != 0 && (!id || !cmgr_takes_qp(id)))
        rc = -EINVAL;
    if (rc == 0 && handle_full(&r->client->handles, HANDLE_QP))
        rc = -EDQUOT;
    if (rc < 0)
        return rc;
    struct client_qp *qp = calloc(1, sizeof(*qp));
    if (!qp)
        return -ENOMEM;
    qp->ctx = &r->client->ctx;
    qp->type = (enum qp_type)in->type;
    qp->ref = in->ref;
    qp->sq_sig_all = in->sq_sig_all != 0;
    rc = qp_objects(r, in, qp);
    if (rc == 0)
        rc = qp_engine(r, in, qp, &p);
    if (rc == 0)
        rc = qp_queues(r, qp, &p, out);
    if (rc == 0)
        rc = handle_add(&r->client->handles, HANDLE_QP, qp, &out->qp);
    if (rc != 0) {
        qp_undo(r, qp);
        return rc;
    }
    if (qp->srq)
        qp->srq->users++;
    out->qpn = qp->qpn;
    out->max_send_wr = p.max_send_wr;
    out->max_recv_wr = p.max_recv_wr;
    out->max_send_sge = p.max_send_sge;
    out->max_recv_sge = p.max_recv_sge;
    out->max_inline = p.max_inline;
    return id ? cmgr_take_qp(id, qp, r->now) : 0;
}

/* ---- modify, query, destroy ---- */

static int qp_modify_resolved(struct deferred *d, const uint8_t mac[6], size_t *len, uint64_t now)
{
    struct ipc_qp_modify m;
    struct engine_av av;
    (void)len; /* a bare header */
    memcpy(&m, d->msg, sizeof(m));
    struct client_qp *qp = handle_get(&d->client->handles, HANDLE_QP, m.qp);
    if (!qp)
        return -EINVAL; /* destroyed meanwhile */
    int rc = av_from_ipc(d->client->ctx.device, &m.attr.av, &av);
    if (rc < 0)
        return rc;
    memcpy(av.dmac, mac, 6);
    return client_qp_modify(d->client, qp, &m, &av, now);
}

int req_qp_modify(struct request *r)
{
    const struct ipc_qp_modify *in = request_in(r, struct ipc_qp_modify);
    struct client_qp *qp = handle_get(&r->client->handles, HANDLE_QP, in->qp);
    struct engine_av av;
    if (!qp || ((in->mask & QPA_STATE) && in->attr.state > QPS_ERR))
        return -EINVAL;
    int rc = seal_mapped_qp(r, qp);
    if (rc < 0)
        return rc;
    if (in->mask & QPA_AV) {
        rc = av_wanted(r->device, &in->attr.av, &av);
        if (rc < 0)
            return rc;
        if (memcmp(av.dmac, mac_none, 6) == 0)
            return request_defer(r, sizeof(*in), &av.dgid, qp_modify_resolved);
    }
    return client_qp_modify(r->client, qp, in, &av, r->now);
}

int req_qp_query(struct request *r)
{
    uint32_t h = request_in(r, struct ipc_handle)->handle;
    const struct client_qp *qp = handle_get(&r->client->handles, HANDLE_QP, h);
    struct ipc_qp_queried *out = request_out(r, struct ipc_qp_queried);
    struct engine_qp_attr a;
    struct engine_qp_params p;
    int rc = qp ? engine_qp_query(qp->qp, &a, &p) : -EINVAL;
    if (rc < 0)
        return rc;
    out->attr = (struct ipc_qp_attr){
        .state = a.state,
        .cur_state = a.state,
#define X(name, verbs, bit) .name = a.name,
        QP_ATTRS(X)
#undef X
            .sq_draining = a.sq_draining,
        .e2e_credits = a.e2e_credits,
        .rate_limit = qp->rate_limit,
    };
    out->attr.port = 1; /* also before the queue pair has the attribute */
    av_to_ipc(r->device, &a.av, &out->attr.av);
    out->max_send_wr = p.max_send_wr;
    out->max_recv_wr = p.max_recv_wr;
    out->max_send_sge = p.max_send_sge;
    out->max_recv_sge = p.max_recv_sge;
    out->max_inline = p.max_inline;
    out->sq_sig_all = qp->sq_sig_all;
    return 0;
}

int req_qp_destroy(struct request *r)
{
    const struct ipc_qp_destroy *in = request_in(r, struct ipc_qp_destroy);
    struct handle_table *t = &r->client->handles;
    struct client_qp *qp = handle_get(t, HANDLE_QP, in->qp);
    struct cm_id *id = handle_get(t, HANDLE_CM_ID, in->cm_id);
    if (!qp || (in->cm_id != 0 && !id))
        return -EINVAL;
    /* Groups that an id has joined are left with the id. */
    if (engine_mcast_count(r->device->engine, qp->qp) > (id ? cmgr_groups(id) : 0))
        return -EBUSY;
    client_qp_destroy(r->client, qp, r->now);
    handle_del(t, in->qp);
    if (id) {
        cmgr_id_free(id, r->now);
        handle_del(t, in->cm_id);
    }
    return 0;
}

/* ---- addresses and groups ---- */

static int av_resolved(struct deferred *d, const uint8_t mac[6], size_t *len, uint64_t now)
{
    struct ipc_av_resolve m;
    (void)now;
    memcpy(&m, d->msg, sizeof(m));
    memcpy(m.av.dmac, mac, 6);
    memcpy(d->msg, &m, sizeof(m));
    *len = sizeof(m);
    return 0;
}

int req_av_resolve(struct request *r)
{
    const struct ipc_av_resolve *in = request_in(r, struct ipc_av_resolve);
    struct engine_av av;
    int rc = av_wanted(r->device, &in->av, &av);
    if (rc < 0)
        return rc;
    if (memcmp(av.dmac, mac_none, 6) == 0)
        return request_defer(r, sizeof(*in), &av.dgid, av_resolved);
    request_out(r, struct ipc_av_resolve)->av = in->av;
    return 0;
}

int req_mcast_attach(struct request *r)
{
    const struct ipc_mcast *in = request_in(r, struct ipc_mcast);
    struct client_qp *qp = handle_get(&r->client->handles, HANDLE_QP, in->qp);
    struct wire_addr group;
    memcpy(group.b, in->gid, 16);
    return qp ? client_qp_attach(r->client, qp, &group, r->now) : -EINVAL;
}

int req_mcast_detach(struct request *r)
{
    const struct ipc_mcast *in = request_in(r, struct ipc_mcast);
    struct client_qp *qp = handle_get(&r->client->handles, HANDLE_QP, in->qp);
    struct wire_addr group;
    memcpy(group.b, in->gid, 16);
    return qp ? client_qp_detach(r->client, qp, &group, r->now) : -EINVAL;
}
