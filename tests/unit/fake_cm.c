/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The fake daemon's connection manager: everything within this process.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "fake_priv.h"

static void cm_send(struct obj *id, struct ipc_cm_event *ev, enum ipc_cm_event_type type)
{
    ev->event = type;
    ev->ref = id->ref;
    if (ev->id == 0)
        ev->id = (uint32_t)(id - id->conn->obj);
    send(id->channel->fd, ev, sizeof(*ev), MSG_NOSIGNAL);
}

static void cm_tell(struct obj *id, enum ipc_cm_event_type type, int status)
{
    struct ipc_cm_event ev = {.status = status};
    if (id != NULL && id->kind == CM_ID)
        cm_send(id, &ev, type);
}

/* Move the id's queue pair, if it has one. */
static void cm_move(struct obj *id, uint32_t state)
{
    struct ipc_qp_modify m = {.qp = id->qp_handle, .mask = 1, .attr.state = state};
    if (id->qp_handle == 0)
        return;
    if (state == 3) {
        m.mask |= 1u << 20;
        m.attr.dest_qpn = id->dest;
    }
    qp_modify(id->conn, &m);
}

int cm_take(struct conn *c, uint32_t handle, uint32_t qp)
{
    struct obj *id = obj_get(c, handle, CM_ID), *o = obj_get(c, qp, QP);
    if (id == NULL || o == NULL)
        return -EINVAL;
    id->qp_handle = qp;
    cm_move(id, o->type == 4 ? 3 : 1);
    return 0;
}

static void cm_hang_up(struct obj *id)
{
    if (id->peer == NULL)
        return;
    cm_move(id->peer, 6);
    cm_tell(id->peer, IPC_CM_DISCONNECTED, 0);
    id->peer->peer = NULL;
    id->peer = NULL;
}

void cm_destroy(struct conn *c, uint32_t handle)
{
    struct obj *id = obj_get(c, handle, CM_ID);
    if (id == NULL)
        return;
    cm_hang_up(id);
    id->kind = NONE;
}

static struct obj *cm_new(struct conn *c, uint32_t channel, uint64_t ref, uint32_t *handle)
{
    struct obj *ch = obj_get(c, channel, CM_CHANNEL);
    struct obj *id = ch != NULL ? obj_new(c, CM_ID, handle) : NULL;
    if (id != NULL) {
        id->ref = (uint32_t)ref;
        id->channel = ch;
    }
    return id;
}

static int cm_migrate(struct conn *c, struct obj *id, uint32_t channel, uint64_t ref)
{
    id->channel = obj_get(c, channel, CM_CHANNEL);
    id->ref = (uint32_t)ref;
    return id->channel != NULL ? 0 : -EINVAL;
}

static int cm_accept(struct conn *c, struct obj *id, const struct ipc_cm_conn *r)
{
    struct ipc_cm_event ev = {.param = r->param};
    int status = r->channel != 0 ? cm_migrate(c, id, r->channel, r->ref) : 0;
    if (status < 0 || id->peer == NULL)
        return status < 0 ? status : -ENOTCONN;
    memcpy(ev.private_data, r->private_data, sizeof(ev.private_data));
    cm_move(id, 3);
    id->peer->dest = r->param.qpn;
    cm_move(id->peer, 3);
    cm_send(id->peer, &ev, id->peer->qp_handle != 0 ? IPC_CM_ESTABLISHED : IPC_CM_CONNECT_RESPONSE);
    if (id->peer->qp_handle != 0)
        cm_tell(id, IPC_CM_ESTABLISHED, 0);
    return 0;
}

static int cm_connect(struct fake *f, struct obj *id, const struct ipc_cm_conn *r)
{
    struct ipc_cm_event ev = {.param = r->param};
    memcpy(ev.private_data, r->private_data, sizeof(ev.private_data));
    for (int i = 0; i < CONNS; i++) {
        for (int j = 1; j < OBJS; j++) {
            struct obj *l = &f->conn[i].obj[j];
            if (l->kind != CM_ID || l->state != 1 || l->port != id->port)
                continue;
            struct obj *child = obj_new(l->conn, CM_ID, &ev.id);
            child->channel = l->channel;
            child->ref = l->ref;
            child->peer = id;
            child->dest = r->param.qpn;
            id->peer = child;
            cm_send(l, &ev, IPC_CM_CONNECT_REQUEST);
            return 0;
        }
    }
    cm_tell(id, IPC_CM_REJECTED, 8);
    return 0;
}

int cm_request(struct fake *f, struct conn *c, const union msg *r, struct answer *a)
{
    uint32_t handle = r->handle.handle; /* every struct has it there */
    struct obj *id = obj_get(c, handle, CM_ID);
    if (r->hdr.type == IPC_CM_ID_CREATE) {
        a->len = sizeof(a->m.handle);
        id = cm_new(c, r->cm_id_create.channel, r->cm_id_create.ref, &a->m.handle.handle);
        return id != NULL ? 0 : -EINVAL;
    }
    if (r->hdr.type == IPC_CM_RESOLVE_ADDR && handle == 0)
        id = cm_new(c, r->cm_addr.channel, r->cm_addr.ref, &handle);
    if (id == NULL)
        return -EINVAL;
    switch (r->hdr.type) {
    case IPC_CM_ID_DESTROY:
        cm_destroy(c, handle);
        a->len = sizeof(a->m.cm_destroyed);
        return 0;
    case IPC_CM_BIND:
        id->port = r->cm_addr.src.port != 0 ? r->cm_addr.src.port : 4242;
        a->m.cm_addr.src = r->cm_addr.src;
        a->m.cm_addr.src.port = id->port;
        a->len = sizeof(a->m.cm_addr);
        return 0;
    case IPC_CM_LISTEN:
        id->state = 1;
        return 0;
    case IPC_CM_RESOLVE_ADDR:
        id->port = r->cm_addr.dst.port;
        cm_tell(id, r->cm_addr.flags ? IPC_CM_ROUTE_RESOLVED : IPC_CM_ADDR_RESOLVED, 0);
        a->m.cm_addr.id = handle;
        a->len = sizeof(a->m.cm_addr);
        return 0;
    case IPC_CM_RESOLVE_ROUTE:
        cm_tell(id, IPC_CM_ROUTE_RESOLVED, 0);
        return 0;
    case IPC_CM_CONNECT:
        return cm_connect(f, id, &r->cm_conn);
    case IPC_CM_ACCEPT:
        return cm_accept(c, id, &r->cm_conn);
    case IPC_CM_REJECT:
        cm_tell(id->peer, IPC_CM_REJECTED, 28);
        return 0;
    case IPC_CM_ESTABLISH:
        cm_tell(id->peer, IPC_CM_ESTABLISHED, 0);
        return 0;
    case IPC_CM_DISCONNECT:
        if (id->peer == NULL)
            return -ENOTCONN;
        cm_move(id, 6);
        cm_tell(id, IPC_CM_DISCONNECTED, 0);
        cm_hang_up(id);
        return 0;
    case IPC_CM_QP_ATTR:
        a->m.qp_modify.mask = 1u | 1u << 20;
        a->m.qp_modify.attr.state = r->cm_qp_attr.state;
        a->m.qp_modify.attr.dest_qpn = id->dest;
        a->len = sizeof(a->m.qp_modify);
        return 0;
    case IPC_CM_QUERY:
        a->m.cm_route.dst.port = id->port;
        a->len = sizeof(a->m.cm_route);
        return 0;
    case IPC_CM_MIGRATE:
        a->len = sizeof(a->m.cm_destroyed);
        return cm_migrate(c, id, r->cm_migrate.channel, r->cm_migrate.ref);
    case IPC_CM_QP:
        return cm_take(c, handle, r->cm_qp.qp);
    default:
        return -ENOTSUP;
    }
}
