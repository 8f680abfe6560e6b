/* SPDX-License-Identifier: BSD-3-Clause
 *
 * An application's requests about a connection. The daemon speaks the CM protocol and moves the
 * queue pair as the connection comes and goes. One message to the daemon does as much as possible.
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "client_cm.h"
#include "client_cm_move.h"
#include "client_engine.h"

#define RD_DEFAULT 32 /* READs and atomics at a time, each way */
#define RETRY_MAX  7  /* also the default; of RNR retries it means for ever */

/* ---- addresses ---- */

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
    struct ipc_cm_addr req = {.hdr.type = IPC_CM_BIND}, reply;
    int err = sockaddr_to_ipc(&req.src, addr);
    if (err == 0)
        err = client_id_ensure(id);
    if (err < 0)
        return err;
    req.id = id->handle;
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
    return urnic_listen_family(id, backlog, AF_UNSPEC);
}

int urnic_listen_family(struct urnic_cm_id *id, int backlog, int family)
{
    struct ipc_cm_listen req = {.hdr.type = IPC_CM_LISTEN,
                                .backlog = backlog > 0 ? (uint32_t)backlog : 0,
                                .family = family == AF_INET    ? 4
                                          : family == AF_INET6 ? 6
                                                               : 0};
    if (req.family == 0 && family != AF_UNSPEC)
        return -EAFNOSUPPORT;
    int err = client_id_ensure(id);
    req.id = id->handle;
    return err < 0 ? err : client_tell(id->ctx, &req, sizeof(req));
}

static int resolve(struct urnic_cm_id *id, const struct sockaddr *src, const struct sockaddr *dst,
                   int timeout_ms, uint32_t flags)
{
    struct ipc_cm_addr reply, req = {.hdr.type = IPC_CM_RESOLVE_ADDR,
                                     .id = __atomic_load_n(&id->handle, __ATOMIC_RELAXED),
                                     .timeout_ms = (uint32_t)timeout_ms,
                                     .channel = id->channel->base.handle,
                                     .ps = id->ps,
                                     .ref = id->obj.ref,
                                     .flags = flags};
    int err = sockaddr_to_ipc(&req.src, src);
    if (err == 0)
        err = sockaddr_to_ipc(&req.dst, dst);
    if (err == 0)
        err = client_call(id->ctx, &req, sizeof(req), &reply, sizeof(reply));
    if (err == 0)
        client_id_named(id, reply.id);
    return err;
}

int urnic_resolve_addr(struct urnic_cm_id *id, const struct sockaddr *src,
                       const struct sockaddr *dst, int timeout_ms)
{
    return resolve(id, src, dst, timeout_ms, 0);
}

int urnic_resolve(struct urnic_cm_id *id, const struct sockaddr *src, const struct sockaddr *dst,
                  int timeout_ms)
{
    return resolve(id, src, dst, timeout_ms, IPC_CM_F_ROUTE);
}

static int group(struct urnic_cm_id *id, enum ipc_type type, const struct sockaddr *addr)
{
    struct ipc_cm_addr req = {.hdr.type = (uint16_t)type};
    int err = sockaddr_to_ipc(&req.dst, addr);
    if (err == 0)
        err = client_id_ensure(id);
    req.id = id->handle;
    if (err == 0 && client_cm_moves(id->ctx))
        return type == IPC_CM_JOIN ? client_cm_join(id, &req.dst) : client_cm_leave(id, &req.dst);
    return err < 0 ? err : client_tell(id->ctx, &req, sizeof(req));
}

int urnic_join_multicast(struct urnic_cm_id *id, const struct sockaddr *addr)
{
    return group(id, IPC_CM_JOIN, addr);
}

int urnic_leave_multicast(struct urnic_cm_id *id, const struct sockaddr *addr)
{
    return group(id, IPC_CM_LEAVE, addr);
}

int urnic_resolve_route(struct urnic_cm_id *id, int timeout_ms)
{
    struct ipc_cm_timeout req = {
        .hdr.type = IPC_CM_RESOLVE_ROUTE, .id = id->handle, .timeout_ms = (uint32_t)timeout_ms};
    return client_tell(id->ctx, &req, sizeof(req));
}

/* ---- connections ---- */

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
        .responder_resources = p->responder_resources != 0 ? p->responder_resources : RD_DEFAULT,
        .initiator_depth = p->initiator_depth != 0 ? p->initiator_depth : RD_DEFAULT,
        .retry_count = p->retry_counts_set ? p->retry_count : RETRY_MAX,
        .rnr_retry_count = p->retry_counts_set ? p->rnr_retry_count : RETRY_MAX,
        .srq = id->qp != NULL ? id->qp->srq != NULL : id->srq,
        .private_len = p->private_data_len,
    };
    if (req->param.retry_count > RETRY_MAX || req->param.rnr_retry_count > RETRY_MAX ||
        (p->private_data_len != 0 && p->private_data == NULL))
        return -EINVAL;
    if ((p->tclass != 0 || p->sl != 0) && !(id->ctx->conn.features & IPC_FEAT_CLASS))
        return -EOPNOTSUPP;
    if (id->qp == NULL)
        req->qp_type = (uint8_t)client_engine_qp_type(p->qp_num);
    else if (client_has_channel(&id->ctx->conn))
        req->qp_type = (uint8_t)id->qp->type;
    req->follows = client_cm_moves(id->ctx) && id->qp != NULL;
    req->tclass = p->tclass;
    req->sl = p->sl;
    if (p->private_data_len != 0)
        memcpy(req->private_data, p->private_data, p->private_data_len);
    return 0;
}

int urnic_connect(struct urnic_cm_id *id, const struct urnic_conn_param *param)
{
    struct ipc_cm_conn req;
    int err = fill_conn(&req, id, param);
    req.hdr.type = IPC_CM_CONNECT;
    return err < 0 ? err : client_tell(id->ctx, &req, sizeof(req));
}

int urnic_accept(struct urnic_cm_id *id, const struct urnic_conn_param *param)
{
    struct ipc_cm_conn req;
    int err = fill_conn(&req, id, param);
    if (err < 0)
        return err;
    req.hdr.type = IPC_CM_ACCEPT;
    if (id->fresh) {
        req.channel = id->channel->base.handle;
        req.ref = id->obj.ref;
    }
    const bool moves = client_cm_moves(id->ctx) && id->qp != NULL && id->ps != URNIC_PS_UDP;
    err = moves ? client_cm_connected(id, &req.param) : 0;
    if (err == 0)
        err = client_tell(id->ctx, &req, sizeof(req));
    if (err < 0) {
        if (moves)
            client_cm_fail(id->qp);
        return err;
    }
    client_id_known(id);
    if (id->qp != NULL && !moves)
        client_qp_assume(id->qp, URNIC_QPS_RTS);
    return 0;
}

int urnic_init_qp_attr(struct urnic_cm_id *id, struct urnic_qp_attr *attr, unsigned *mask)
{
    struct ipc_cm_qp_attr req = {.hdr.type = IPC_CM_QP_ATTR, .state = attr->qp_state};
    struct ipc_qp_modify reply;
    int err = client_id_ensure(id);
    req.id = id->handle;
    if (err == 0)
        err = client_call(id->ctx, &req, sizeof(req), &reply, sizeof(reply));
    if (err != 0)
        return err;
    client_qp_attr(attr, &reply.attr);
    *mask = reply.mask;
    return 0;
}

int urnic_establish(struct urnic_cm_id *id)
{
    return client_conn_handle(&id->ctx->conn, IPC_CM_ESTABLISH, id->handle);
}

int urnic_reject(struct urnic_cm_id *id, const void *private_data, uint8_t len)
{
    struct ipc_cm_conn req = {
        .hdr.type = IPC_CM_REJECT, .id = id->handle, .param.private_len = len};
    if (len != 0 && private_data == NULL)
        return -EINVAL;
    if (len != 0)
        memcpy(req.private_data, private_data, len);
    return client_tell(id->ctx, &req, sizeof(req));
}

int urnic_disconnect(struct urnic_cm_id *id)
{
    int err = client_conn_handle(&id->ctx->conn, IPC_CM_DISCONNECT, id->handle);
    if (err == 0 && id->qp != NULL && client_cm_moves(id->ctx))
        client_cm_fail(id->qp);
    else if (err == 0 && id->qp != NULL)
        client_qp_failed(id->qp);
    return err;
}
