/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connections with events. The daemon speaks the CM protocol; this file moves the queue pair, with
 * the attributes that the daemon's CM tells.
 */
#include "client_cm.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

_Static_assert((int)URNIC_CM_TIMEWAIT_EXIT == (int)IPC_CM_TIMEWAIT_EXIT, "the same numbers");

static int call(struct urnic_context *ctx, void *req, size_t len)
{
    struct ipc_hdr reply;
    return client_call(ctx, req, len, &reply, sizeof(reply));
}

static int call_handle(struct urnic_cm_id *id, enum ipc_type type)
{
    return client_conn_handle(&id->ctx->conn, type, id->handle);
}

/* ---- channels -----------------------------------------------------------------------------------
 */

int urnic_create_cm_channel(struct urnic_context *ctx, struct urnic_cm_channel **out)
{
    struct ipc_hdr req = {.type = IPC_CM_CHANNEL_CREATE};
    struct ipc_handle reply;
    int fd;
    unsigned nfds = 1;
    struct urnic_cm_channel *ch = malloc(sizeof(*ch));
    if (ch == NULL)
        return -ENOMEM;
    int err = client_conn_call(&ctx->conn, &req, sizeof(req), &reply, sizeof(reply), &fd, &nfds);
    if (err < 0 || nfds != 1) {
        free(ch);
        return err < 0 ? err : -EPROTO;
    }
    *ch = (struct urnic_cm_channel){.ctx = ctx, .handle = reply.handle, .fd = fd};
    client_count(ctx, 1);
    *out = ch;
    return 0;
}

int urnic_destroy_cm_channel(struct urnic_cm_channel *ch)
{
    int err = client_destroy(ch->ctx, IPC_CM_CHANNEL_DESTROY, ch->handle);
    if (err < 0)
        return err;
    client_count(ch->ctx, -1);
    close(ch->fd);
    free(ch);
    return 0;
}

int urnic_cm_channel_fd(const struct urnic_cm_channel *ch)
{
    return ch->fd;
}

/* ---- ids
 * ------------------------------------------------------------------------------------------ */

/* An id's object without the daemon's half. */
static struct urnic_cm_id *id_new(struct urnic_context *ctx, struct urnic_cm_channel *ch)
{
    struct urnic_cm_id *id = calloc(1, sizeof(*id));
    if (id == NULL)
        return NULL;
    id->ctx = ctx;
    id->channel = ch;
    pthread_mutex_lock(&ctx->lock);
    int err = client_ref_add(&ctx->refs, &id->obj, CLIENT_ID);
    if (err == 0)
        ctx->objects++;
    pthread_mutex_unlock(&ctx->lock);
    if (err < 0) {
        free(id);
        return NULL;
    }
    return id;
}

static void id_free(struct urnic_cm_id *id)
{
    client_obj_retire(id->ctx, &id->obj);
    client_count(id->ctx, -1);
    free(id);
}

int urnic_create_id(struct urnic_cm_channel *ch, enum urnic_port_space ps, void *id_context,
                    struct urnic_cm_id **out)
{
    struct urnic_cm_id *id = id_new(ch->ctx, ch);
    if (id == NULL)
        return -ENOMEM;
    struct ipc_cm_id_create req = {
        .hdr.type = IPC_CM_ID_CREATE, .channel = ch->handle, .ps = ps, .ref = id->obj.ref};
    struct ipc_handle reply;
    int err = client_call(ch->ctx, &req, sizeof(req), &reply, sizeof(reply));
    if (err < 0) {
        id_free(id);
        return err;
    }
    id->handle = reply.handle;
    id->ps = ps;
    id->user = id_context;
    *out = id;
    return 0;
}

int urnic_destroy_id(struct urnic_cm_id *id)
{
    struct ipc_handle req = {.hdr.type = IPC_CM_ID_DESTROY, .handle = id->handle};
    struct ipc_cm_destroyed reply;
    int err = client_call(id->ctx, &req, sizeof(req), &reply, sizeof(reply));
    if (err < 0 && !client_dead(id->ctx))
        return err;
    id_free(id);
    return 0;
}

void *urnic_id_context(const struct urnic_cm_id *id)
{
    return id->user;
}

void urnic_id_set_context(struct urnic_cm_id *id, void *id_context)
{
    id->user = id_context;
}

struct urnic_qp *urnic_id_qp(const struct urnic_cm_id *id)
{
    return id->qp;
}

/* Move the id's queue pair with the attributes that the CM has for this state. */
static int move_qp(struct urnic_cm_id *id, enum urnic_qp_state state)
{
    struct ipc_cm_qp_attr req = {
        .hdr.type = IPC_CM_QP_ATTR, .id = id->handle, .state = (uint32_t)state};
    struct ipc_qp_modify told;
    int err = client_call(id->ctx, &req, sizeof(req), &told, sizeof(told));
    if (err < 0)
        return err;
    return client_qp_modify(id->qp, &told.attr, told.mask);
}

static int move_qp_to_rts(struct urnic_cm_id *id)
{
    int err = move_qp(id, URNIC_QPS_RTR);
    return err < 0 ? err : move_qp(id, URNIC_QPS_RTS);
}

static void move_qp_to_err(struct urnic_cm_id *id)
{
    struct ipc_qp_attr attr = {.state = URNIC_QPS_ERR};
    if (id->qp != NULL)
        client_qp_modify(id->qp, &attr, URNIC_QP_STATE);
}

/* The daemon may not know the id's device before it is bound, but the context names it: what INIT
 * needs is the same for every connection. */
int urnic_id_set_qp(struct urnic_cm_id *id, struct urnic_qp *qp)
{
    struct ipc_qp_attr attr = {
        .state = URNIC_QPS_INIT,
        .port = 1,
        .access_flags = URNIC_ACCESS_LOCAL_WRITE | URNIC_ACCESS_REMOTE_WRITE |
                        URNIC_ACCESS_REMOTE_READ | URNIC_ACCESS_REMOTE_ATOMIC,
        .qkey = 0x01234567, /* RDMA CM's own for its port space (librdmacm's RDMA_UDP_QKEY) */
    };
    unsigned mask = URNIC_QP_STATE | URNIC_QP_PKEY_INDEX | URNIC_QP_PORT;
    if (qp->type == URNIC_QPT_UD)
        mask |= URNIC_QP_QKEY;
    else
        mask |= URNIC_QP_ACCESS_FLAGS;
    if (qp->type == URNIC_QPT_UC)
        attr.access_flags = URNIC_ACCESS_LOCAL_WRITE | URNIC_ACCESS_REMOTE_WRITE;
    int err = client_qp_modify(qp, &attr, mask);
    if (err < 0)
        return err;
    id->qp = qp;
    if (qp->type != URNIC_QPT_UD)
        return 0;
    /* Datagrams need no peer: ready at once. */
    attr = (struct ipc_qp_attr){.state = URNIC_QPS_RTR};
    err = client_qp_modify(qp, &attr, URNIC_QP_STATE);
    if (err < 0)
        return err;
    attr.state = URNIC_QPS_RTS;
    return client_qp_modify(qp, &attr, URNIC_QP_STATE | URNIC_QP_SQ_PSN);
}

/* ---- addresses
 * -------------------------------------------------------------------------------------- */

static int sockaddr_to_ipc(struct ipc_sockaddr *to, const struct sockaddr *from)
{
    *to = (struct ipc_sockaddr){0};
    if (from == NULL)
        return 0;
    if (from->sa_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, from, sizeof(in));
        if (in.sin_addr.s_addr != 0) {
            to->ip[10] = to->ip[11] = 0xFF;
            memcpy(to->ip + 12, &in.sin_addr, 4);
        }
        to->port = ntohs(in.sin_port);
        return 0;
    }
    if (from->sa_family == AF_INET6) {
        struct sockaddr_in6 in6;
        memcpy(&in6, from, sizeof(in6));
        memcpy(to->ip, &in6.sin6_addr, 16);
        to->port = ntohs(in6.sin6_port);
        to->scope = in6.sin6_scope_id;
        return 0;
    }
    return -EAFNOSUPPORT;
}

int urnic_bind_addr(struct urnic_cm_id *id, const struct sockaddr *addr)
{
    struct ipc_cm_addr req = {.hdr.type = IPC_CM_BIND, .id = id->handle}, reply;
    int err = sockaddr_to_ipc(&req.src, addr);
    if (err < 0)
        return err;
    err = client_call(id->ctx, &req, sizeof(req), &reply, sizeof(reply));
    if (err == 0)
        id->src = reply.src;
    return err;
}

int urnic_id_addr(struct urnic_cm_id *id, uint8_t local[16], uint16_t *local_port,
                  uint8_t remote[16], uint16_t *remote_port)
{
    struct ipc_handle req = {.hdr.type = IPC_CM_QUERY, .handle = id->handle};
    struct ipc_cm_route r;
    int err = client_call(id->ctx, &req, sizeof(req), &r, sizeof(r));
    if (err < 0)
        return err;
    if (local != NULL)
        memcpy(local, r.src.ip, 16);
    if (local_port != NULL)
        *local_port = r.src.port;
    if (remote != NULL)
        memcpy(remote, r.dst.ip, 16);
    if (remote_port != NULL)
        *remote_port = r.dst.port;
    return 0;
}

int urnic_listen(struct urnic_cm_id *id, int backlog)
{
    struct ipc_cm_listen req = {.hdr.type = IPC_CM_LISTEN,
                                .id = id->handle,
                                .backlog = backlog > 0 ? (uint32_t)backlog : 0};
    return call(id->ctx, &req, sizeof(req));
}

int urnic_resolve_addr(struct urnic_cm_id *id, const struct sockaddr *src,
                       const struct sockaddr *dst, int timeout_ms)
{
    struct ipc_cm_addr req = {
        .hdr.type = IPC_CM_RESOLVE_ADDR, .id = id->handle, .timeout_ms = (uint32_t)timeout_ms};
    int err = sockaddr_to_ipc(&req.src, src);
    if (err == 0)
        err = sockaddr_to_ipc(&req.dst, dst);
    return err < 0 ? err : call(id->ctx, &req, sizeof(req));
}

int urnic_resolve_route(struct urnic_cm_id *id, int timeout_ms)
{
    struct ipc_cm_timeout req = {
        .hdr.type = IPC_CM_RESOLVE_ROUTE, .id = id->handle, .timeout_ms = (uint32_t)timeout_ms};
    return call(id->ctx, &req, sizeof(req));
}

/* ---- connections
 * ------------------------------------------------------------------------------------ */

static int fill_conn(struct ipc_cm_conn *req, const struct urnic_cm_id *id,
                     const struct urnic_conn_param *p)
{
    static const struct urnic_conn_param defaults;
    if (p == NULL)
        p = &defaults;
    *req = (struct ipc_cm_conn){.id = id->handle};
    req->param = (struct ipc_cm_param){
        .qpn = id->qp != NULL ? id->qp->qpn : p->qp_num,
        .qkey = p->qkey,
        .responder_resources = p->responder_resources != 0 ? p->responder_resources : 16,
        .initiator_depth = p->initiator_depth != 0 ? p->initiator_depth : 16,
        .retry_count = p->retry_counts_set ? p->retry_count : 7,
        .rnr_retry_count = p->retry_counts_set ? p->rnr_retry_count : 7,
        .srq = id->qp != NULL && id->qp->srq != NULL,
        .private_len = p->private_data_len,
    };
    if (req->param.retry_count > 7 || req->param.rnr_retry_count > 7)
        return -EINVAL;
    if (p->private_data_len != 0)
        memcpy(req->private_data, p->private_data, p->private_data_len);
    return 0;
}

int urnic_connect(struct urnic_cm_id *id, const struct urnic_conn_param *param)
{
    struct ipc_cm_conn req;
    int err = fill_conn(&req, id, param);
    req.hdr.type = IPC_CM_CONNECT;
    return err < 0 ? err : call(id->ctx, &req, sizeof(req));
}

int urnic_accept(struct urnic_cm_id *id, const struct urnic_conn_param *param)
{
    struct ipc_cm_conn req;
    int err = fill_conn(&req, id, param);
    if (err == 0 && id->qp != NULL && id->qp->type != URNIC_QPT_UD)
        err = move_qp_to_rts(id);
    req.hdr.type = IPC_CM_ACCEPT;
    return err < 0 ? err : call(id->ctx, &req, sizeof(req));
}

int urnic_reject(struct urnic_cm_id *id, const void *private_data, uint8_t len)
{
    struct ipc_cm_conn req = {
        .hdr.type = IPC_CM_REJECT, .id = id->handle, .param.private_len = len};
    if (len != 0)
        memcpy(req.private_data, private_data, len);
    return call(id->ctx, &req, sizeof(req));
}

int urnic_disconnect(struct urnic_cm_id *id)
{
    move_qp_to_err(id);
    return call_handle(id, IPC_CM_DISCONNECT);
}

int client_cm_migrate(struct urnic_cm_id *id, struct urnic_cm_channel *ch)
{
    struct ipc_cm_migrate req = {
        .hdr.type = IPC_CM_MIGRATE, .id = id->handle, .channel = ch->handle, .ref = id->obj.ref};
    struct ipc_cm_destroyed reply;
    int err = client_call(id->ctx, &req, sizeof(req), &reply, sizeof(reply));
    if (err == 0)
        id->channel = ch;
    return err;
}

/* ---- events
 * ------------------------------------------------------------------------------------------ */

/* What the library does for an id with a queue pair before the application sees the event. */
static void attend(struct urnic_cm_event *ev)
{
    struct urnic_cm_id *id = ev->id;
    if (id->qp == NULL)
        return;
    if (ev->event == URNIC_CM_CONNECT_RESPONSE) {
        int err = move_qp_to_rts(id);
        if (err == 0)
            err = call_handle(id, IPC_CM_ESTABLISH);
        if (err == 0) {
            ev->event = URNIC_CM_ESTABLISHED;
        } else {
            move_qp_to_err(id);
            ev->event = URNIC_CM_CONNECT_ERROR;
            ev->status = err;
        }
    } else if (ev->event == URNIC_CM_DISCONNECTED) {
        move_qp_to_err(id);
    }
}

/* Fill in the event; 0, -ENOENT its id is gone, -ENOMEM. */
static int translate(struct urnic_cm_channel *ch, const struct ipc_cm_event *m,
                     struct urnic_cm_event *ev)
{
    struct urnic_context *ctx = ch->ctx;
    pthread_mutex_lock(&ctx->lock);
    struct client_obj *obj = client_ref_get(&ctx->refs, (uint32_t)m->ref);
    pthread_mutex_unlock(&ctx->lock);
    bool request = m->event == IPC_CM_CONNECT_REQUEST;
    if (obj == NULL || obj->kind != CLIENT_ID ||
        (!request && ((struct urnic_cm_id *)obj)->handle != m->id)) {
        if (request) /* nobody listens any more */
            client_conn_handle(&ctx->conn, IPC_CM_ID_DESTROY, m->id);
        return -ENOENT;
    }
    *ev = (struct urnic_cm_event){
        .event = m->event,
        .status = m->status,
        .id = (struct urnic_cm_id *)obj,
        .responder_resources = m->param.responder_resources,
        .initiator_depth = m->param.initiator_depth,
        .qp_num = m->param.qpn,
        .qkey = m->param.qkey,
        .private_data_len = m->param.private_len,
    };
    memcpy(ev->private_data, m->private_data, sizeof(ev->private_data));
    client_ah_attr(&ev->ah, &m->av);
    if (!request)
        return 0;
    ev->listen = ev->id;
    ev->id = id_new(ctx, ch);
    if (ev->id == NULL) {
        client_conn_handle(&ctx->conn, IPC_CM_ID_DESTROY, m->id);
        return -ENOMEM;
    }
    ev->id->handle = m->id;
    ev->id->ps = ev->listen->ps;
    ev->id->user = ev->listen->user;
    /* From now on the daemon names the new id by its own reference. */
    struct ipc_cm_migrate req = {
        .hdr.type = IPC_CM_MIGRATE, .id = m->id, .channel = ch->handle, .ref = ev->id->obj.ref};
    return call(ctx, &req, sizeof(req));
}

int client_cm_next(struct urnic_cm_channel *ch, struct urnic_cm_event *ev, int flags)
{
    struct ipc_cm_event m;
    for (;;) {
        ssize_t n = recv(ch->fd, &m, sizeof(m), flags);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return -EAGAIN;
        if (n <= 0) {
            client_gone(ch->ctx);
            return -ENODEV;
        }
        if (n != (ssize_t)sizeof(m))
            continue;
        int err = translate(ch, &m, ev);
        if (err == -ENOENT)
            continue;
        if (err == 0)
            attend(ev);
        return err;
    }
}

int urnic_get_cm_event(struct urnic_cm_channel *ch, struct urnic_cm_event *ev)
{
    return client_cm_next(ch, ev, 0);
}
