/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connections with events. The daemon speaks the CM protocol and moves the queue pair as the
 * connection comes and goes; a request does as much as it can on one way to the daemon.
 */
#include "client_cm.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

_Static_assert((int)URNIC_CM_TIMEWAIT_EXIT == (int)IPC_CM_TIMEWAIT_EXIT, "the same numbers");

#define RD_DEFAULT 16 /* READs and atomics at a time, each way */
#define RETRY_MAX  7  /* also the default; of RNR retries it means for ever */

static int call(struct urnic_context *ctx, void *req, size_t len)
{
    struct ipc_hdr reply;
    return client_call(ctx, req, len, &reply, sizeof(reply));
}

/* ---- channels ---- */

int urnic_create_cm_channel(struct urnic_context *ctx, struct urnic_cm_channel **out)
{
    struct client_channel *ch;
    if (!(ctx->conn.features & IPC_FEAT_DRIVE))
        return -ENOTSUP; /* a daemon older than this library */
    int err = client_channel_create(ctx, IPC_CM_CHANNEL_CREATE, &ch);
    if (err == 0)
        *out = (struct urnic_cm_channel *)ch;
    return err;
}

int urnic_destroy_cm_channel(struct urnic_cm_channel *ch)
{
    pthread_mutex_lock(&ch->base.ctx->lock);
    bool used = ch->base.ids != 0;
    pthread_mutex_unlock(&ch->base.ctx->lock);
    return used ? -EBUSY : client_channel_destroy(&ch->base, IPC_CM_CHANNEL_DESTROY);
}

int urnic_cm_channel_fd(const struct urnic_cm_channel *ch)
{
    return ch->base.in.fd;
}

/* ---- ids ---- */

/* An id's object without the daemon's half. */
static struct urnic_cm_id *id_new(struct urnic_cm_channel *ch, uint32_t ps, void *user)
{
    struct urnic_context *ctx = ch->base.ctx;
    struct urnic_cm_id *id = calloc(1, sizeof(*id));
    if (id == NULL)
        return NULL;
    id->ctx = ctx;
    id->channel = ch;
    id->ps = ps;
    id->user = user;
    pthread_mutex_lock(&ctx->lock);
    int err = client_ref_add(&ctx->refs, &id->obj, CLIENT_ID);
    if (err == 0) {
        ctx->objects++;
        ch->base.ids++;
    }
    pthread_mutex_unlock(&ctx->lock);
    if (err < 0) {
        free(id);
        return NULL;
    }
    return id;
}

static void fresh_add(struct urnic_cm_id *id)
{
    pthread_mutex_lock(&id->ctx->lock);
    id->fresh = true;
    id->next_fresh = id->ctx->fresh;
    id->ctx->fresh = id;
    pthread_mutex_unlock(&id->ctx->lock);
}

static void fresh_del(struct urnic_cm_id *id)
{
    pthread_mutex_lock(&id->ctx->lock);
    for (struct urnic_cm_id **p = &id->ctx->fresh; id->fresh && *p != NULL; p = &(*p)->next_fresh) {
        if (*p == id) {
            *p = id->next_fresh;
            id->fresh = false;
            break;
        }
    }
    pthread_mutex_unlock(&id->ctx->lock);
}

/* Whom an event is about, or the listener that it came to; NULL = gone. With ctx->lock held. */
static struct urnic_cm_id *event_id(struct urnic_context *ctx, const struct ipc_cm_event *m)
{
    struct urnic_cm_id *id = NULL;
    struct client_obj *obj = client_ref_get(&ctx->refs, (uint32_t)m->ref);
    if (obj != NULL && obj->kind == CLIENT_ID)
        id = (struct urnic_cm_id *)obj;
    if (m->event != IPC_CM_CONNECT_REQUEST && id != NULL) {
        if (id->handle == 0) /* the event has overtaken the reply that tells it */
            __atomic_store_n(&id->handle, m->id, __ATOMIC_RELAXED);
        if (id->handle != m->id)
            id = NULL;
    }
    for (struct urnic_cm_id *f = ctx->fresh; f != NULL && id == NULL; f = f->next_fresh) {
        if (f->handle == m->id)
            id = f;
    }
    return id;
}

static bool stale(struct urnic_context *ctx, const void *msg)
{
    return event_id(ctx, msg) == NULL;
}

/* A request that nobody will hear of. */
static void turn_down(struct urnic_context *ctx, const struct ipc_cm_event *m)
{
    if (m->event == IPC_CM_CONNECT_REQUEST)
        client_conn_handle(&ctx->conn, IPC_CM_ID_DESTROY, m->id);
}

static void drop_stale(struct urnic_cm_channel *ch)
{
    struct ipc_cm_event m;
    while (client_inbox_drop(ch->base.ctx, &ch->base.in, &m, sizeof(m), stale))
        turn_down(ch->base.ctx, &m);
}

void client_cm_part(struct urnic_qp *qp)
{
    pthread_mutex_lock(&qp->ctx->lock);
    if (qp->id != NULL)
        qp->id->qp = NULL;
    qp->id = NULL;
    pthread_mutex_unlock(&qp->ctx->lock);
}

static void id_free(struct urnic_cm_id *id)
{
    if (id->qp != NULL)
        client_cm_part(id->qp);
    fresh_del(id);
    client_obj_retire(id->ctx, &id->obj);
    drop_stale(id->channel);
    pthread_mutex_lock(&id->ctx->lock);
    id->channel->base.ids--;
    pthread_mutex_unlock(&id->ctx->lock);
    client_count(id->ctx, -1);
    free(id);
}

/* Local only: the daemon makes its half with the first request about it. */
int urnic_create_id(struct urnic_cm_channel *ch, enum urnic_port_space ps, void *id_context,
                    struct urnic_cm_id **out)
{
    if (ps != URNIC_PS_TCP && ps != URNIC_PS_UDP)
        return -EINVAL;
    if (client_forked(ch->base.ctx))
        return -EPERM;
    if (client_dead(ch->base.ctx))
        return -ENODEV;
    struct urnic_cm_id *id = id_new(ch, ps, id_context);
    if (id == NULL)
        return -ENOMEM;
    *out = id;
    return 0;
}

static void id_named(struct urnic_cm_id *id, uint32_t handle)
{
    pthread_mutex_lock(&id->ctx->lock);
    id->handle = handle;
    pthread_mutex_unlock(&id->ctx->lock);
}

/* For requests that can't make it on the way. */
static int id_ensure(struct urnic_cm_id *id)
{
    struct ipc_cm_id_create req = {.hdr.type = IPC_CM_ID_CREATE,
                                   .channel = id->channel->base.handle,
                                   .ps = id->ps,
                                   .ref = id->obj.ref};
    struct ipc_handle reply;
    if (id->handle != 0)
        return 0;
    int err = client_call(id->ctx, &req, sizeof(req), &reply, sizeof(reply));
    if (err == 0)
        id_named(id, reply.handle);
    return err;
}

int urnic_destroy_id(struct urnic_cm_id *id)
{
    int err = id->handle != 0 ? client_destroy(id->ctx, IPC_CM_ID_DESTROY, id->handle) : 0;
    if (err < 0)
        return err;
    id_free(id);
    return 0;
}

int urnic_destroy_ep(struct urnic_cm_id *id)
{
    if (id->qp == NULL)
        return urnic_destroy_id(id);
    int err = client_qp_destroy(id->qp, id->handle);
    if (err < 0)
        return err;
    id_free(id);
    return 0;
}

void *urnic_id_context(const struct urnic_cm_id *id)
{
    return __atomic_load_n(&id->user, __ATOMIC_ACQUIRE);
}

void urnic_id_set_context(struct urnic_cm_id *id, void *id_context)
{
    __atomic_store_n(&id->user, id_context, __ATOMIC_RELEASE);
}

struct urnic_qp *urnic_id_qp(const struct urnic_cm_id *id)
{
    return id->qp;
}

static void qp_state(struct urnic_qp *qp, enum urnic_qp_state state)
{
    atomic_store_explicit(&qp->state, state, memory_order_relaxed);
}

/* The state in which the daemon leaves a queue pair that it was given. */
static void id_adopt(struct urnic_cm_id *id, struct urnic_qp *qp)
{
    pthread_mutex_lock(&id->ctx->lock);
    if (qp->id != NULL) /* it went with another one before */
        qp->id->qp = NULL;
    id->qp = qp;
    qp->id = id;
    pthread_mutex_unlock(&id->ctx->lock);
    qp->by_cm = true;
    qp_state(qp, qp->type == URNIC_QPT_UD ? URNIC_QPS_RTS : URNIC_QPS_INIT);
}

int urnic_id_set_qp(struct urnic_cm_id *id, struct urnic_qp *qp)
{
    int err = qp->ctx == id->ctx ? id_ensure(id) : -EINVAL;
    if (err < 0)
        return err;
    struct ipc_cm_qp req = {.hdr.type = IPC_CM_QP, .id = id->handle, .qp = qp->handle};
    err = call(id->ctx, &req, sizeof(req));
    if (err == 0)
        id_adopt(id, qp);
    return err;
}

int urnic_create_id_qp(struct urnic_cm_id *id, struct urnic_pd *pd, struct urnic_qp_init_attr *attr,
                       struct urnic_qp **out)
{
    int err = pd != NULL && pd->ctx == id->ctx ? id_ensure(id) : -EINVAL;
    if (err == 0)
        err = client_qp_create(pd, attr, id->handle, out);
    if (err == 0)
        id_adopt(id, *out);
    return err;
}

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
        err = id_ensure(id);
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
    struct ipc_cm_listen req = {.hdr.type = IPC_CM_LISTEN,
                                .backlog = backlog > 0 ? (uint32_t)backlog : 0};
    int err = id_ensure(id);
    req.id = id->handle;
    return err < 0 ? err : call(id->ctx, &req, sizeof(req));
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
        id_named(id, reply.id);
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
        err = id_ensure(id);
    req.id = id->handle;
    return err < 0 ? err : call(id->ctx, &req, sizeof(req));
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
    return call(id->ctx, &req, sizeof(req));
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
        .srq = id->qp != NULL && id->qp->srq != NULL,
        .private_len = p->private_data_len,
    };
    if (req->param.retry_count > RETRY_MAX || req->param.rnr_retry_count > RETRY_MAX ||
        (p->private_data_len != 0 && p->private_data == NULL))
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
    if (err < 0)
        return err;
    req.hdr.type = IPC_CM_ACCEPT;
    if (id->fresh) {
        req.channel = id->channel->base.handle;
        req.ref = id->obj.ref;
    }
    err = call(id->ctx, &req, sizeof(req));
    if (err < 0)
        return err;
    fresh_del(id);
    if (id->qp != NULL)
        qp_state(id->qp, URNIC_QPS_RTS);
    return 0;
}

int urnic_reject(struct urnic_cm_id *id, const void *private_data, uint8_t len)
{
    struct ipc_cm_conn req = {
        .hdr.type = IPC_CM_REJECT, .id = id->handle, .param.private_len = len};
    if (len != 0 && private_data == NULL)
        return -EINVAL;
    if (len != 0)
        memcpy(req.private_data, private_data, len);
    return call(id->ctx, &req, sizeof(req));
}

int urnic_disconnect(struct urnic_cm_id *id)
{
    int err = client_conn_handle(&id->ctx->conn, IPC_CM_DISCONNECT, id->handle);
    if (err == 0 && id->qp != NULL)
        qp_state(id->qp, URNIC_QPS_ERR);
    return err;
}

void client_cm_move(struct urnic_cm_id *id, struct urnic_cm_channel *ch)
{
    pthread_mutex_lock(&id->ctx->lock);
    id->channel->base.ids--;
    id->channel = ch;
    ch->base.ids++;
    pthread_mutex_unlock(&id->ctx->lock);
}

/* ---- events ---- */

/* The daemon has moved the queue pair before it told. */
static void follow(struct urnic_qp *qp, enum urnic_cm_event_type event)
{
    uint32_t init = URNIC_QPS_INIT;
    if (event == URNIC_CM_ESTABLISHED) /* unless it was disconnected meanwhile */
        atomic_compare_exchange_strong_explicit(&qp->state, &init, URNIC_QPS_RTS,
                                                memory_order_relaxed, memory_order_relaxed);
    else if (event == URNIC_CM_DISCONNECTED || event == URNIC_CM_CONNECT_ERROR ||
             event == URNIC_CM_REJECTED || event == URNIC_CM_UNREACHABLE)
        qp_state(qp, URNIC_QPS_ERR);
}

/* Whose event it is, and what the application knows of him; its queue pair follows. 0, -ENOENT
 * gone. When the lock is let go another thread may destroy him. */
static int translate_id(struct urnic_context *ctx, const struct ipc_cm_event *m,
                        struct urnic_cm_event *ev, uint32_t *ps, void **user)
{
    pthread_mutex_lock(&ctx->lock);
    struct urnic_cm_id *id = event_id(ctx, m);
    if (id != NULL) {
        ev->id = id;
        *ps = id->ps;
        *user = urnic_id_context(id);
        if (id->qp != NULL && m->event != IPC_CM_CONNECT_REQUEST)
            follow(id->qp, (enum urnic_cm_event_type)m->event);
    }
    pthread_mutex_unlock(&ctx->lock);
    return id != NULL ? 0 : -ENOENT;
}

/* The id of a request. 0, -ENOMEM. */
static int translate_request(struct urnic_cm_channel *ch, const struct ipc_cm_event *m,
                             struct urnic_cm_event *ev, uint32_t ps, void *user)
{
    ev->listen = ev->id;
    ev->id = id_new(ch, ps, user);
    if (ev->id == NULL) {
        client_conn_handle(&ch->base.ctx->conn, IPC_CM_ID_DESTROY, m->id);
        return -ENOMEM;
    }
    ev->id->handle = m->id;
    fresh_add(ev->id);
    return 0;
}

/* Fill in the event; 0, -ENOENT its id is gone, -ENOMEM. */
static int translate(struct urnic_cm_channel *ch, const struct ipc_cm_event *m,
                     struct urnic_cm_event *ev)
{
    uint32_t ps;
    void *user;
    *ev = (struct urnic_cm_event){
        .event = m->event,
        .status = m->status,
        .responder_resources = m->param.responder_resources,
        .initiator_depth = m->param.initiator_depth,
        .qp_num = m->param.qpn,
        .qkey = m->param.qkey,
        .private_data_len = m->param.private_len,
    };
    memcpy(ev->private_data, m->private_data, sizeof(ev->private_data));
    client_ah_attr(&ev->ah, &m->av);
    int err = translate_id(ch->base.ctx, m, ev, &ps, &user);
    if (err < 0)
        turn_down(ch->base.ctx, m); /* nobody listens any more */
    else if (m->event == IPC_CM_CONNECT_REQUEST)
        err = translate_request(ch, m, ev, ps, user);
    return err;
}

int client_cm_next(struct urnic_cm_channel *ch, struct urnic_cm_event *ev, int flags)
{
    struct ipc_cm_event m;
    int err;
    if (client_forked(ch->base.ctx))
        return -EPERM;
    client_inbox_enter(ch->base.ctx, &ch->base.in);
    do {
        err = client_channel_next(&ch->base, &m, sizeof(m), flags);
        if (err == 0)
            err = translate(ch, &m, ev);
    } while (err == -ENOENT);
    if (client_inbox_leave(ch->base.ctx, &ch->base.in))
        drop_stale(ch);
    return err;
}

int urnic_get_cm_event(struct urnic_cm_channel *ch, struct urnic_cm_event *ev)
{
    return client_cm_next(ch, ev, 0);
}
