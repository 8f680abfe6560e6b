/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Queue pairs, shared receive queues, address handles: making, moving, asking, destroying.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client_cm_move.h"
#include "client_engine.h"

static int rq_init(struct client_rq *rq, void *at, const struct ipc_where *w, uint32_t max_wr,
                   uint32_t max_sge)
{
    if (at == NULL)
        return -errno;
    if (w->stride < ipc_rq_stride(max_sge))
        return -EPROTO;
    ipc_ring_init(&rq->ring, at, w->entries, w->stride, false);
    rq->doorbell = w->doorbell;
    rq->max_wr = max_wr;
    rq->max_sge = max_sge;
    return 0;
}

/* ---- queue pairs ---- */

/* Has it a receive queue of its own? */
static bool has_rq(const struct urnic_qp *qp)
{
    return qp->srq == NULL && qp->type != URNIC_QPT_XRC_SEND && qp->type != URNIC_QPT_XRC_RECV;
}

/* Lay the private views over the queues that the daemon has made. */
static int qp_map(struct urnic_qp *qp, const struct ipc_qp *r, int *fds, unsigned nfds,
                  unsigned *used)
{
    void *sq =
        client_where(qp->ctx, &r->sq, ipc_queue_size(r->sq.entries, IPC_UNIT), fds, nfds, used);
    if (sq == NULL)
        return -errno;
    ipc_ring_init(&qp->sq, sq, r->sq.entries, IPC_UNIT, qp->type == URNIC_QPT_UD);
    qp->sq.xrc = qp->type == URNIC_QPT_XRC_SEND;
    qp->sq_doorbell = r->sq.doorbell;
    if (has_rq(qp)) {
        void *rq = client_where(qp->ctx, &r->rq, ipc_queue_size(r->rq.entries, r->rq.stride), fds,
                                nfds, used);
        int err = rq_init(&qp->rq, rq, &r->rq, r->max_recv_wr, r->max_recv_sge);
        if (err < 0)
            return err;
    }
    uint32_t n = 1;
    while (n < r->max_send_wr)
        n *= 2;
    qp->wr_id = malloc(n * sizeof(*qp->wr_id));
    qp->sq_mask = n - 1;
    qp->max_send_wr = r->max_send_wr;
    qp->max_send_sge = r->max_send_sge;
    qp->max_inline = r->max_inline < IPC_INLINE_MAX ? r->max_inline : IPC_INLINE_MAX;
    qp->qpn = r->qpn;
    qp->handle = r->qp;
    return qp->wr_id != NULL ? 0 : -ENOMEM;
}

/* Make the application's object, with the number by which events and completions name it. */
static int qp_new(struct urnic_context *ctx, const struct urnic_qp_init_attr *attr,
                  struct urnic_qp **out)
{
    struct urnic_qp *qp = calloc(1, sizeof(*qp));
    if (qp == NULL)
        return -ENOMEM;
    qp->ctx = ctx;
    qp->user = attr->qp_context;
    qp->type = attr->qp_type;
    qp->srq = attr->srq;
    qp->send_cq = attr->send_cq;
    qp->recv_cq = attr->recv_cq;
    int err = 0;
    if (qp->type == URNIC_QPT_UD) {
        struct urnic_port_attr port;
        err = urnic_query_port(ctx, &port);
        qp->max_datagram = err < 0 ? 0 : 128u << port.active_mtu;
    }
    if (err == 0) {
        pthread_mutex_lock(&ctx->lock);
        err = client_ref_add(&ctx->refs, &qp->obj, CLIENT_QP);
        pthread_mutex_unlock(&ctx->lock);
    }
    if (err < 0) {
        free(qp);
        return err;
    }
    *out = qp;
    return 0;
}

/* Have the daemon make it, and map its queues. */
static int qp_make(struct urnic_qp *qp, struct ipc_qp_create *req, struct ipc_qp *reply)
{
    struct urnic_context *ctx = qp->ctx;
    int fds[2];
    unsigned nfds = 2, used = 0;
    pthread_mutex_lock(&ctx->making);
    int err =
        client_make(ctx, req, sizeof(*req), IPC_QP_DESTROY, reply, sizeof(*reply), fds, &nfds);
    if (err == 0) {
        err = qp_map(qp, reply, fds, nfds, &used);
        client_close_fds(fds, used, nfds);
        if (err < 0)
            client_unmake(ctx, IPC_QP_DESTROY, reply->qp);
    }
    pthread_mutex_unlock(&ctx->making);
    return err;
}

/* Are they all objects of this context, and does the congestion control's text fit a request? */
static bool attr_fits(const struct urnic_context *ctx, const struct urnic_qp_init_attr *attr)
{
    const bool sends = attr->qp_type != URNIC_QPT_XRC_RECV;
    const bool receives = sends && attr->qp_type != URNIC_QPT_XRC_SEND;
    return (attr->send_cq != NULL) == sends && (attr->recv_cq != NULL) == receives &&
           (!sends || attr->send_cq->ctx == ctx) && (!receives || attr->recv_cq->ctx == ctx) &&
           (attr->srq == NULL || (receives && attr->srq->ctx == ctx)) &&
           (attr->cc == NULL || strlen(attr->cc) < sizeof((struct ipc_qp_create){0}.cc_spec));
}

/* The request with which the daemon makes it. The part of a congestion control's text that an older
 * daemon understands goes into the field that it reads. */
static struct ipc_qp_create create_request(const struct urnic_pd *pd,
                                           const struct urnic_qp_init_attr *attr,
                                           const struct urnic_qp *qp, uint32_t cm_id)
{
    struct ipc_qp_create req = {
        .hdr.type = IPC_QP_CREATE,
        .pd = pd->handle,
        .type = attr->qp_type,
        .send_cq = attr->send_cq != NULL ? attr->send_cq->handle : 0,
        .recv_cq = attr->recv_cq != NULL ? attr->recv_cq->handle : 0,
        .srq = attr->srq != NULL ? attr->srq->handle : 0,
        .max_send_wr = attr->cap.max_send_wr,
        .max_recv_wr = attr->srq != NULL ? 0 : attr->cap.max_recv_wr,
        .max_send_sge = attr->cap.max_send_sge,
        .max_recv_sge = attr->srq != NULL ? 0 : attr->cap.max_recv_sge,
        .max_inline = attr->cap.max_inline_data,
        .sq_sig_all = attr->sq_sig_all != 0,
        .ref = qp->obj.ref,
        .cm_id = cm_id,
    };
    size_t cc_len = attr->cc != NULL ? strlen(attr->cc) : 0;
    if (cc_len > 0)
        memcpy(cc_len < sizeof(req.cc) ? req.cc : req.cc_spec, attr->cc, cc_len);
    return req;
}

int client_qp_create(struct urnic_pd *pd, struct urnic_qp_init_attr *attr, uint32_t cm_id,
                     struct urnic_qp **out)
{
    if (pd == NULL)
        return -EINVAL;
    struct urnic_context *ctx = pd->ctx;
    struct ipc_qp reply;
    struct urnic_qp *qp;
    if (!attr_fits(ctx, attr))
        return -EINVAL;
    int err = qp_new(ctx, attr, &qp);
    if (err < 0)
        return err;
    struct ipc_qp_create req = create_request(pd, attr, qp, cm_id);
    if (client_has_channel(&ctx->conn))
        req.cm_id = 0; /* the id is the daemon's, which doesn't know the queue pair */
    err = qp_make(qp, &req, &reply);
    if (err < 0) {
        client_obj_retire(ctx, &qp->obj);
        free(qp->wr_id);
        free(qp);
        return err;
    }
    attr->cap = (struct urnic_qp_cap){
        .max_send_wr = reply.max_send_wr,
        .max_recv_wr = reply.max_recv_wr,
        .max_send_sge = reply.max_send_sge,
        .max_recv_sge = reply.max_recv_sge,
        .max_inline_data = qp->max_inline,
    };
    client_count(ctx, 1);
    if (client_has_channel(&ctx->conn) && client_port_enter()) {
        ctx->conn.engine->numbers(ctx->conn.program);
        client_port_leave();
    }
    *out = qp;
    return 0;
}

int urnic_create_qp(struct urnic_pd *pd, struct urnic_qp_init_attr *attr, struct urnic_qp **out)
{
    return client_qp_create(pd, attr, 0, out);
}

/* Its unpolled completions are dropped. */
static void purge(struct urnic_qp *qp)
{
    if (qp->send_cq != NULL)
        client_cq_purge(qp->send_cq, qp);
    if (qp->recv_cq != NULL && qp->recv_cq != qp->send_cq)
        client_cq_purge(qp->recv_cq, qp);
}

/* Both rings and all counts back to the beginning, as the daemon has done on its side. */
static void qp_reset(struct urnic_qp *qp)
{
    purge(qp);
    client_lock(&qp->sq_lock);
    qp->sq.index = qp->sq_cons = qp->sq_posted = 0;
    atomic_store_explicit(&qp->sq_retired, 0, memory_order_relaxed);
    client_unlock(&qp->sq_lock);
    if (has_rq(qp)) {
        client_lock(&qp->rq.lock);
        qp->rq.ring.index = qp->rq.posted = 0;
        atomic_store_explicit(&qp->rq.retired, 0, memory_order_relaxed);
        client_unlock(&qp->rq.lock);
    }
}

/* The daemon has the neighbours: pass its answer, the MAC, to an engine in this program. The daemon
 * passes on packets of a connection only to its peer, so it must know the peer. */
static int modify_peer(struct urnic_qp *qp, struct ipc_av *av, uint32_t peer)
{
    struct ipc_engine_peer req = {
        .hdr.type = IPC_ENGINE_PEER, .qpn = qp->qpn, .peer = peer, .av = *av};
    struct ipc_engine_peer reply;
    if (!client_has_channel(&qp->ctx->conn))
        return 0;
    if (qp->type == URNIC_QPT_UD)
        return -EINVAL;
    int err = client_call(qp->ctx, &req, sizeof(req), &reply, sizeof(reply));
    if (err == 0)
        *av = reply.av;
    qp->has_peer |= err == 0;
    return err;
}

/* Remove its peer, after its last packet to the peer. */
static void part(struct urnic_qp *qp)
{
    struct ipc_engine_peer req = {.hdr.type = IPC_ENGINE_PART, .qpn = qp->qpn};
    if (qp->has_peer) /* only the daemon's end can prevent this */
        (void)client_tell(qp->ctx, &req, sizeof(req));
    qp->has_peer = false;
}

/* The engine has refused the attributes of a new peer, which the daemon knows already: the queue
 * pair keeps the peer that it had, or none. */
static void keep_peer(struct urnic_qp *qp, bool had)
{
    struct ipc_handle query = {.hdr.type = IPC_QP_QUERY, .handle = qp->handle};
    struct ipc_qp_queried now;
    if (!had)
        part(qp);
    else if (client_call(qp->ctx, &query, sizeof(query), &now, sizeof(now)) == 0)
        (void)modify_peer(qp, &now.attr.av, now.attr.dest_qpn);
}

/* It is, or is not any longer, among the queue pairs that packets come to. */
static void set_ready(struct urnic_qp *qp, bool ready)
{
    if (qp->is_ready == ready)
        return;
    qp->is_ready = ready;
    if (ready)
        client_engine_grow(qp->ctx, 1 + atomic_fetch_add(&qp->ctx->ready, 1));
    else
        atomic_fetch_sub(&qp->ctx->ready, 1);
}

int client_qp_modify(struct urnic_qp *qp, const struct ipc_qp_attr *attr, unsigned mask)
{
    struct ipc_qp_modify req = {
        .hdr.type = IPC_QP_MODIFY, .qp = qp->handle, .mask = mask, .attr = *attr};
    const uint32_t peer = mask & URNIC_QP_DEST_QPN ? attr->dest_qpn : 0;
    const bool had_peer = qp->has_peer;
    int err = mask & URNIC_QP_AV ? modify_peer(qp, &req.attr.av, peer) : 0;
    if (err < 0)
        return err;
    if (mask & URNIC_QP_STATE && attr->state == URNIC_QPS_RTR)
        set_ready(qp, true);
    err = client_tell(qp->ctx, &req, sizeof(req));
    if (err < 0 && (mask & URNIC_QP_AV))
        keep_peer(qp, had_peer);
    if (err < 0)
        return err;
    if (mask & URNIC_QP_STATE) {
        if (attr->state == URNIC_QPS_RESET) {
            part(qp);
            set_ready(qp, false);
            qp_reset(qp);
        }
        atomic_store_explicit(&qp->state, attr->state, memory_order_relaxed);
    }
    return 0;
}

static void av_from(struct ipc_av *av, const struct urnic_ah_attr *attr)
{
    *av = (struct ipc_av){
        .tclass = attr->tclass,
        .hop_limit = attr->hop_limit,
        .sl = attr->sl,
        .sgid_index = attr->sgid_index,
        .flow_label = attr->flow_label,
    };
    memcpy(av->dgid, attr->dgid, sizeof(av->dgid));
    memcpy(av->dmac, attr->dmac, sizeof(av->dmac));
}

void client_ah_attr(struct urnic_ah_attr *attr, const struct ipc_av *av)
{
    *attr = (struct urnic_ah_attr){
        .tclass = av->tclass,
        .hop_limit = av->hop_limit,
        .sl = av->sl,
        .sgid_index = av->sgid_index,
        .flow_label = av->flow_label,
    };
    memcpy(attr->dgid, av->dgid, sizeof(attr->dgid));
    memcpy(attr->dmac, av->dmac, sizeof(attr->dmac));
}

#define X(name, verbs, bit) _Static_assert((unsigned)URNIC_QP_##bit == QPA_##bit, #bit);
QP_ATTRS(X)
X(, , STATE)
X(, , CUR_STATE)
X(, , AV)
X(, , RATE_LIMIT)
#undef X

int urnic_modify_qp(struct urnic_qp *qp, const struct urnic_qp_attr *a, unsigned mask)
{
    if ((mask & URNIC_QP_PATH_MTU) && (unsigned)a->path_mtu > UINT8_MAX)
        return -EINVAL; /* the daemon, which checks it, gets an octet */
    struct ipc_qp_attr attr = {.state = a->qp_state,
                               .cur_state = a->cur_qp_state,
                               .rate_limit = a->rate_limit,
#define X(name, verbs, bit) .name = a->verbs,
                               QP_ATTRS(X)
#undef X
    };
    av_from(&attr.av, &a->ah_attr);
    return client_qp_modify(qp, &attr, mask);
}

void client_qp_attr(struct urnic_qp_attr *a, const struct ipc_qp_attr *attr)
{
    *a = (struct urnic_qp_attr){
        .qp_state = attr->state,
        .cur_qp_state = attr->state,
        .rate_limit = attr->rate_limit,
#define X(name, verbs, bit) .verbs = attr->name,
        QP_ATTRS(X)
#undef X
            .sq_draining = attr->sq_draining,
    };
    client_ah_attr(&a->ah_attr, &attr->av);
}

int urnic_query_qp(struct urnic_qp *qp, struct urnic_qp_attr *a)
{
    struct ipc_handle req = {.hdr.type = IPC_QP_QUERY, .handle = qp->handle};
    struct ipc_qp_queried r;
    int err = client_call(qp->ctx, &req, sizeof(req), &r, sizeof(r));
    if (err < 0)
        return err;
    client_qp_attr(a, &r.attr);
    a->cap = (struct urnic_qp_cap){.max_send_wr = r.max_send_wr,
                                   .max_recv_wr = r.max_recv_wr,
                                   .max_send_sge = r.max_send_sge,
                                   .max_recv_sge = r.max_recv_sge,
                                   .max_inline_data = qp->max_inline};
    return 0;
}

int client_qp_destroy(struct urnic_qp *qp, uint32_t cm_id)
{
    const bool apart = client_has_channel(&qp->ctx->conn);
    if (apart && cm_id != 0)
        client_cm_leave_all(qp->id);
    struct ipc_qp_destroy req = {
        .hdr.type = IPC_QP_DESTROY, .qp = qp->handle, .cm_id = apart ? 0 : cm_id};
    int err = client_destroyed(qp->ctx, client_tell(qp->ctx, &req, sizeof(req)));
    if (err < 0)
        return err;
    part(qp);
    set_ready(qp, false);
    if (apart && cm_id != 0) /* it is there: only the daemon's end can prevent this */
        (void)client_destroy(qp->ctx, IPC_CM_ID_DESTROY, cm_id);
    purge(qp);
    client_cm_part(qp);
    client_obj_retire(qp->ctx, &qp->obj);
    client_count(qp->ctx, -1);
    client_unmap(qp->ctx, qp->sq.q);
    if (has_rq(qp))
        client_unmap(qp->ctx, qp->rq.ring.q);
    free(qp->wr_id);
    free(qp);
    return 0;
}

int urnic_destroy_qp(struct urnic_qp *qp)
{
    return client_qp_destroy(qp, 0);
}

uint32_t urnic_qp_num(const struct urnic_qp *qp)
{
    return qp->qpn;
}

void *urnic_qp_context(const struct urnic_qp *qp)
{
    return qp->user;
}

static int mcast(struct urnic_qp *qp, enum ipc_type type, const uint8_t gid[16])
{
    struct ipc_mcast req = {.hdr.type = (uint16_t)type, .qp = qp->handle};
    memcpy(req.gid, gid, sizeof(req.gid));
    return client_tell(qp->ctx, &req, sizeof(req));
}

/* An engine in this program has its queue pairs, and the daemon is the member of groups. */
static int mcast_apart(struct urnic_qp *qp, enum ipc_type type, const uint8_t gid[16])
{
    struct ipc_engine_group req = {.hdr.type = (uint16_t)type, .qpn = qp->qpn};
    memcpy(req.gid, gid, sizeof(req.gid));
    return client_has_channel(&qp->ctx->conn) ? client_tell(qp->ctx, &req, sizeof(req)) : 0;
}

int urnic_attach_mcast(struct urnic_qp *qp, const uint8_t gid[16])
{
    int err = mcast_apart(qp, IPC_ENGINE_JOIN, gid);
    if (err < 0)
        return err;
    err = mcast(qp, IPC_MCAST_ATTACH, gid);
    if (err < 0)
        (void)mcast_apart(qp, IPC_ENGINE_LEAVE, gid);
    return err;
}

int urnic_detach_mcast(struct urnic_qp *qp, const uint8_t gid[16])
{
    int err = mcast(qp, IPC_MCAST_DETACH, gid);
    return err < 0 ? err : mcast_apart(qp, IPC_ENGINE_LEAVE, gid);
}

/* ---- shared receive queues ---- */

/* xrcd and cq: of XRC, or NULL. */
static int srq_create(struct urnic_pd *pd, struct urnic_pd *xrcd, struct urnic_cq *cq,
                      struct urnic_srq_attr *attr, void *srq_context, struct urnic_srq **out)
{
    struct urnic_context *ctx = pd->ctx;
    struct ipc_srq reply;
    int fds[1];
    unsigned nfds = 1, used = 0;
    struct urnic_srq *srq = calloc(1, sizeof(*srq));
    if (srq == NULL)
        return -ENOMEM;
    srq->ctx = ctx;
    srq->user = srq_context;
    pthread_mutex_lock(&ctx->lock);
    int err = client_ref_add(&ctx->refs, &srq->obj, CLIENT_SRQ);
    pthread_mutex_unlock(&ctx->lock);
    if (err < 0) {
        free(srq);
        return err;
    }
    struct ipc_srq_create req = {
        .hdr.type = IPC_SRQ_CREATE,
        .pd = pd->handle,
        .max_wr = attr->max_wr,
        .max_sge = attr->max_sge,
        .limit = attr->srq_limit,
        .ref = srq->obj.ref,
        .xrcd = xrcd != NULL ? xrcd->handle : 0,
        .cq = cq != NULL ? cq->handle : 0,
    };
    pthread_mutex_lock(&ctx->making);
    err = client_make(ctx, &req, sizeof(req), IPC_SRQ_DESTROY, &reply, sizeof(reply), fds, &nfds);
    if (err == 0) {
        void *at =
            client_where(ctx, &reply.ring, ipc_queue_size(reply.ring.entries, reply.ring.stride),
                         fds, nfds, &used);
        err = rq_init(&srq->rq, at, &reply.ring, reply.max_wr, reply.max_sge);
        client_close_fds(fds, used, nfds);
        if (err < 0)
            client_unmake(ctx, IPC_SRQ_DESTROY, reply.srq);
    }
    pthread_mutex_unlock(&ctx->making);
    if (err < 0) {
        client_obj_retire(ctx, &srq->obj);
        free(srq);
        return err == -E2BIG ? -ENOTSUP : err; /* a daemon without XRC */
    }
    srq->handle = reply.srq;
    srq->number = cq != NULL ? reply.srqn : 0;
    attr->max_wr = reply.max_wr;
    attr->max_sge = reply.max_sge;
    client_count(ctx, 1);
    *out = srq;
    return 0;
}

int urnic_create_xrc_srq(struct urnic_pd *pd, struct urnic_pd *xrcd, struct urnic_cq *cq,
                         struct urnic_srq_attr *attr, void *srq_context, struct urnic_srq **out)
{
    if (xrcd->ctx != pd->ctx || cq->ctx != pd->ctx)
        return -EINVAL;
    return srq_create(pd, xrcd, cq, attr, srq_context, out);
}

int urnic_create_srq(struct urnic_pd *pd, struct urnic_srq_attr *attr, void *srq_context,
                     struct urnic_srq **out)
{
    return srq_create(pd, NULL, NULL, attr, srq_context, out);
}

uint32_t urnic_srq_num(const struct urnic_srq *srq)
{
    return srq->number;
}

int urnic_modify_srq_limit(struct urnic_srq *srq, uint32_t limit)
{
    struct ipc_srq_modify req = {
        .hdr.type = IPC_SRQ_MODIFY, .srq = srq->handle, .mask = IPC_SRQ_LIMIT, .limit = limit};
    return client_tell(srq->ctx, &req, sizeof(req));
}

int urnic_query_srq(struct urnic_srq *srq, struct urnic_srq_attr *attr)
{
    struct ipc_handle req = {.hdr.type = IPC_SRQ_QUERY, .handle = srq->handle};
    struct ipc_srq_attr r;
    int err = client_call(srq->ctx, &req, sizeof(req), &r, sizeof(r));
    if (err < 0)
        return err;
    *attr = (struct urnic_srq_attr){.max_wr = r.max_wr, .max_sge = r.max_sge, .srq_limit = r.limit};
    return 0;
}

int urnic_destroy_srq(struct urnic_srq *srq)
{
    int err = client_destroy(srq->ctx, IPC_SRQ_DESTROY, srq->handle);
    if (err < 0)
        return err;
    client_obj_retire(srq->ctx, &srq->obj);
    client_count(srq->ctx, -1);
    client_unmap(srq->ctx, srq->rq.ring.q);
    free(srq);
    return 0;
}

void *urnic_srq_context(const struct urnic_srq *srq)
{
    return srq->user;
}

/* ---- address handles ---- */

static int resolve(struct urnic_context *ctx, const struct urnic_ah_attr *attr,
                   struct ipc_av_resolve *reply)
{
    struct ipc_av_resolve req = {.hdr.type = IPC_AV_RESOLVE};
    av_from(&req.av, attr);
    return client_call(ctx, &req, sizeof(req), reply, sizeof(*reply));
}

int urnic_resolve_mac(struct urnic_context *ctx, const struct urnic_ah_attr *attr, uint8_t mac[6])
{
    struct ipc_av_resolve reply;
    int err = resolve(ctx, attr, &reply);
    if (err == 0)
        memcpy(mac, reply.av.dmac, 6);
    return err;
}

int urnic_create_ah(struct urnic_pd *pd, const struct urnic_ah_attr *attr, struct urnic_ah **out)
{
    struct ipc_av_resolve reply;
    int err = resolve(pd->ctx, attr, &reply);
    if (err < 0)
        return err;
    struct urnic_ah *ah = malloc(sizeof(*ah));
    if (ah == NULL)
        return -ENOMEM;
    *ah = (struct urnic_ah){.ctx = pd->ctx, .av = reply.av};
    client_count(pd->ctx, 1);
    *out = ah;
    return 0;
}

int urnic_create_ah_from_wc(struct urnic_pd *pd, const struct urnic_wc *wc, const void *grh,
                            uint16_t sgid_index, struct urnic_ah **ah)
{
    const uint8_t *h = grh;
    struct urnic_ah_attr attr = {.sgid_index = sgid_index, .sl = wc->sl, .hop_limit = 64};
    if (!(wc->wc_flags & URNIC_WC_GRH))
        return -EINVAL;
    if (h[0] >> 4 != 6) { /* IPv4: 20 octets unused, then its header */
        attr.dgid[10] = attr.dgid[11] = 0xFF;
        memcpy(attr.dgid + 12, h + 32, 4);
        attr.tclass = h[21];
    } else {
        memcpy(attr.dgid, h + 8, 16);
        attr.tclass = (uint8_t)(h[0] << 4 | h[1] >> 4);
    }
    attr.tclass &= (uint8_t)~3u; /* the network set the ECN bits on the way here */
    return urnic_create_ah(pd, &attr, ah);
}

int urnic_destroy_ah(struct urnic_ah *ah)
{
    if (client_forked(ah->ctx)) /* the daemon has no such object to ask about */
        return client_conn_fork_error(&ah->ctx->conn);
    client_count(ah->ctx, -1);
    free(ah);
    return 0;
}
