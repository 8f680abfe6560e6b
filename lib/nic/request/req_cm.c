/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Requests about connections: the handles of channels and ids. cmid.c carries them out.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client_qp.h"
#include "cmgr.h"
#include "cmid.h"
#include "cmid_addr.h"
#include "cmid_channel.h"
#include "cmid_group.h"
#include "cmid_qp.h"
#include "request.h"
#include "seal.h"

static struct cm_id *cm_get(struct request *r, uint32_t handle)
{
    return handle_get(&r->client->handles, HANDLE_CM_ID, handle);
}

static struct cm_channel *cm_channel_get(struct client *c, uint32_t handle)
{
    return handle_get(&c->handles, HANDLE_CM_CHANNEL, handle);
}

static int req_cm_channel_create(struct request *r)
{
    struct ipc_handle *out = request_out(r, struct ipc_handle);
    struct cm_channel *ch = calloc(1, sizeof(*ch));
    int rc = ch ? request_channel(r, HANDLE_CM_CHANNEL, &ch->fd) : -ENOMEM;
    if (rc < 0) {
        free(ch);
        return rc;
    }
    ch->last = &ch->first;
    cmgr_channel_add(cmgr_of(r->device), ch);
    rc = handle_add(&r->client->handles, HANDLE_CM_CHANNEL, ch, &out->handle);
    if (rc < 0)
        cmgr_channel_free(ch);
    return rc;
}

static int req_cm_channel_destroy(struct request *r)
{
    uint32_t h = request_in(r, struct ipc_handle)->handle;
    struct cm_channel *ch = cm_channel_get(r->client, h);
    if (!ch)
        return -EINVAL;
    if (ch->users > 0)
        return -EBUSY;
    handle_del(&r->client->handles, h);
    cmgr_channel_free(ch);
    return 0;
}

static int cm_id_new(struct request *r, uint32_t channel, uint32_t ps, uint64_t ref,
                     struct cm_id **out)
{
    struct client *c = r->client;
    struct cm_channel *ch = cm_channel_get(c, channel);
    struct cm_id *id;
    if (!ch || (ps != IPC_PS_TCP && ps != IPC_PS_UDP && ps != IPC_PS_IB))
        return -EINVAL;
    id = calloc(1, sizeof(*id));
    if (!id)
        return -ENOMEM;
    cmgr_id_init(id);
    id->client = c;
    id->device = r->device;
    id->channel = ch;
    id->ps = ps;
    id->ref = ref;
    int rc = handle_add(&c->handles, HANDLE_CM_ID, id, &id->handle);
    if (rc < 0) {
        free(id);
        return rc;
    }
    ch->users++;
    *out = id;
    return 0;
}

static int req_cm_id_create(struct request *r)
{
    const struct ipc_cm_id_create *in = request_in(r, struct ipc_cm_id_create);
    struct ipc_handle *out = request_out(r, struct ipc_handle);
    struct cm_id *id;
    int rc = cm_id_new(r, in->channel, in->ps, in->ref, &id);
    if (rc == 0)
        out->handle = id->handle;
    return rc;
}

static void cm_id_destroy(struct request *r, struct cm_id *id)
{
    uint32_t handle = id->handle;
    cmgr_id_free(id, r->now);
    handle_del(&r->client->handles, handle);
}

/* Later events of the id arrive elsewhere, under another reference. */
static void cm_id_move(struct cm_id *id, struct cm_channel *ch, uint64_t ref)
{
    id->channel->users--;
    id->channel = ch;
    id->ref = ref;
    ch->users++;
}

static int req_cm_id_destroy(struct request *r)
{
    struct cm_id *id = cm_get(r, request_in(r, struct ipc_handle)->handle);
    struct ipc_cm_destroyed *out = request_out(r, struct ipc_cm_destroyed);
    if (!id)
        return -EINVAL;
    out->events = id->events;
    cm_id_destroy(r, id);
    return 0;
}

static int req_cm_bind(struct request *r)
{
    const struct ipc_cm_addr *in = request_in(r, struct ipc_cm_addr);
    struct ipc_cm_addr *out = request_out(r, struct ipc_cm_addr);
    struct cm_id *id = cm_get(r, in->id);
    int rc = id ? cmgr_bind(id, &in->src) : -EINVAL;
    if (rc == 0) {
        out->id = in->id;
        out->src = id->src;
    }
    return rc;
}

static int req_cm_resolve_addr(struct request *r)
{
    const struct ipc_cm_addr *in = request_in(r, struct ipc_cm_addr);
    struct ipc_cm_addr *out = request_out(r, struct ipc_cm_addr);
    struct cm_id *id = cm_get(r, in->id);
    int rc = id ? 0 : -EINVAL;
    if (in->id == 0)
        rc = cm_id_new(r, in->channel, in->ps, in->ref, &id);
    if (rc == 0)
        rc = cmgr_resolve(id, in, r->now);
    if (rc < 0 && id && in->id == 0)
        cm_id_destroy(r, id);
    if (rc == 0)
        out->id = id->handle;
    return rc;
}

static int req_cm_resolve_route(struct request *r)
{
    struct cm_id *id = cm_get(r, request_in(r, struct ipc_cm_timeout)->id);
    return id ? cmgr_route(id) : -EINVAL;
}

static int req_cm_listen(struct request *r)
{
    const struct ipc_cm_listen *in = request_in(r, struct ipc_cm_listen);
    struct cm_id *id = cm_get(r, in->id);
    return id ? cmgr_listen(id, in->backlog, in->family) : -EINVAL;
}

/* Seal the memory of the queue pair that the daemon made for the id. No request has named that
 * queue pair yet, so its memory is not sealed yet. */
static int cm_mapped(struct request *r, const struct cm_id *id)
{
    struct qp *qp = id->driven ? engine_qp_find(r->device->engine, id->qpn) : NULL;
    struct engine_qp_params caps;
    struct engine_qp_attr attr;
    if (!qp || engine_qp_query(qp, &attr, &caps) < 0 || !caps.arg)
        return 0;
    return seal_mapped_qp(r, caps.arg);
}

static int req_cm_connect(struct request *r)
{
    const struct ipc_cm_conn *in = request_in(r, struct ipc_cm_conn);
    struct cm_id *id = cm_get(r, in->id);
    int rc = id ? cm_mapped(r, id) : -EINVAL;

    return rc == 0 ? cmgr_connect(id, in, r->now) : rc;
}

/* A refused id keeps its channel and its events. */
static int cm_id_accept(struct client *c, const struct ipc_cm_conn *in, uint64_t now)
{
    struct cm_id *id = handle_get(&c->handles, HANDLE_CM_ID, in->id);
    struct cm_channel *ch = cm_channel_get(c, in->channel);
    if (!id || (in->channel != 0 && !ch))
        return -EINVAL;
    int rc = cmgr_accept(id, in, now);
    if (rc == 0 && ch)
        cm_id_move(id, ch, in->ref);
    return rc;
}

static int cm_accept_resolved(struct deferred *d, const uint8_t mac[6], size_t *len, uint64_t now)
{
    struct ipc_cm_conn m;
    (void)len; /* a bare header */
    memcpy(&m, d->msg, sizeof(m));
    struct cm_id *id = handle_get(&d->client->handles, HANDLE_CM_ID, m.id);
    if (id) /* not destroyed meanwhile */
        memcpy(id->dmac, mac, 6);
    return cm_id_accept(d->client, &m, now);
}

static int req_cm_accept(struct request *r)
{
    const struct ipc_cm_conn *in = request_in(r, struct ipc_cm_conn);
    struct cm_id *id = cm_get(r, in->id);
    struct wire_addr remote;
    if (!id || !id->driven)
        return cm_id_accept(r->client, in, r->now);
    int rc = cm_mapped(r, id);
    if (rc < 0)
        return rc;
    memcpy(remote.b, id->dst.ip, 16);
    return request_defer(r, sizeof(*in), &remote, cm_accept_resolved);
}

static int req_cm_reject(struct request *r)
{
    const struct ipc_cm_conn *in = request_in(r, struct ipc_cm_conn);
    struct cm_id *id = cm_get(r, in->id);
    return id ? cmgr_reject(id, in, r->now) : -EINVAL;
}

static int req_cm_establish(struct request *r)
{
    struct cm_id *id = cm_get(r, request_in(r, struct ipc_handle)->handle);
    return id ? cmgr_establish(id, r->now) : -EINVAL;
}

static int req_cm_disconnect(struct request *r)
{
    struct cm_id *id = cm_get(r, request_in(r, struct ipc_handle)->handle);
    return id ? cmgr_disconnect(id, r->now) : -EINVAL;
}

static int req_cm_join(struct request *r)
{
    const struct ipc_cm_addr *in = request_in(r, struct ipc_cm_addr);
    struct cm_id *id = cm_get(r, in->id);
    return id ? cmgr_join(id, &in->dst, in->qpn, r->now) : -EINVAL;
}

static int req_cm_leave(struct request *r)
{
    const struct ipc_cm_addr *in = request_in(r, struct ipc_cm_addr);
    struct cm_id *id = cm_get(r, in->id);
    return id ? cmgr_leave(id, &in->dst, r->now) : -EINVAL;
}

static int req_cm_qp_attr(struct request *r)
{
    const struct ipc_cm_qp_attr *in = request_in(r, struct ipc_cm_qp_attr);
    struct ipc_qp_modify *out = request_out(r, struct ipc_qp_modify);
    struct cm_id *id = cm_get(r, in->id);
    return id ? cmgr_qp_attr(id, in->state, out) : -EINVAL;
}

static int req_cm_query(struct request *r)
{
    const struct cm_id *id = cm_get(r, request_in(r, struct ipc_handle)->handle);
    struct ipc_cm_route *out = request_out(r, struct ipc_cm_route);
    const struct device *d = r->device;
    struct wire_addr local;
    if (!id || id->src.port == 0) /* as long as it has no address it has no port */
        return -EINVAL;
    out->src = id->src;
    out->dst = id->dst;
    memcpy(local.b, id->src.ip, 16);
    int index = gid_find(&d->gids, &local);
    memcpy(out->av.dgid, id->dst.ip, 16);
    memcpy(out->av.dmac, id->dmac, 6);
    out->av.hop_limit = WIRE_TTL_DEFAULT;
    out->av.sgid_index = index < 0 ? 0 : (uint16_t)index;
    memcpy(out->sgid, id->src.ip, 16);
    memcpy(out->device, d->name, sizeof(d->name));
    memcpy(out->smac, d->mac, 6);
    out->pkey = WIRE_PKEY_DEFAULT;
    out->path_mtu = d->path_mtu;
    return 0;
}

static int req_cm_migrate(struct request *r)
{
    const struct ipc_cm_migrate *in = request_in(r, struct ipc_cm_migrate);
    struct ipc_cm_destroyed *out = request_out(r, struct ipc_cm_destroyed);
    struct cm_channel *ch = cm_channel_get(r->client, in->channel);
    struct cm_id *id = cm_get(r, in->id);
    if (!id || !ch)
        return -EINVAL;
    cm_id_move(id, ch, in->ref);
    out->events = id->events;
    return 0;
}

static int req_cm_qp(struct request *r)
{
    const struct ipc_cm_qp *in = request_in(r, struct ipc_cm_qp);
    struct client_qp *qp = handle_get(&r->client->handles, HANDLE_QP, in->qp);
    struct cm_id *id = cm_get(r, in->id);
    int rc = id && qp ? seal_mapped_qp(r, qp) : -EINVAL;

    return rc == 0 ? cmgr_take_qp(id, qp, r->now) : rc;
}

const struct request_type request_cm[IPC_TYPE_MAX] = {
    [IPC_CM_CHANNEL_CREATE] = {REQ_CONTEXT, false, PLAIN, .run = req_cm_channel_create,
                               .fds = true},
    [IPC_CM_CHANNEL_DESTROY] = {REQ_CONTEXT, false, BY_HANDLE, .run = req_cm_channel_destroy},
    [IPC_CM_ID_CREATE] = {REQ_CONTEXT, false, WHOLE(ipc_cm_id_create), .run = req_cm_id_create},
    [IPC_CM_ID_DESTROY] = {REQ_CONTEXT, false, BY_HANDLE, .run = req_cm_id_destroy},
    [IPC_CM_BIND] = {REQ_CONTEXT, false, SINCE(ipc_cm_addr, channel), .run = req_cm_bind},
    [IPC_CM_RESOLVE_ADDR] = {REQ_CONTEXT, false, SINCE(ipc_cm_addr, channel),
                             .run = req_cm_resolve_addr},
    [IPC_CM_RESOLVE_ROUTE] = {REQ_CONTEXT, false, WHOLE(ipc_cm_timeout),
                              .run = req_cm_resolve_route},
    [IPC_CM_LISTEN] = {REQ_CONTEXT, false, SINCE(ipc_cm_listen, family), .run = req_cm_listen},
    [IPC_CM_CONNECT] = {REQ_CONTEXT, false, SINCE(ipc_cm_conn, channel), .run = req_cm_connect},
    [IPC_CM_ACCEPT] = {REQ_CONTEXT, false, SINCE(ipc_cm_conn, channel), .run = req_cm_accept},
    [IPC_CM_REJECT] = {REQ_CONTEXT, false, SINCE(ipc_cm_conn, channel), .run = req_cm_reject},
    [IPC_CM_ESTABLISH] = {REQ_CONTEXT, false, BY_HANDLE, .run = req_cm_establish},
    [IPC_CM_DISCONNECT] = {REQ_CONTEXT, false, BY_HANDLE, .run = req_cm_disconnect},
    [IPC_CM_QP_ATTR] = {REQ_CONTEXT, false, WHOLE(ipc_cm_qp_attr), .run = req_cm_qp_attr},
    [IPC_CM_QUERY] = {REQ_CONTEXT, false, BY_HANDLE, .run = req_cm_query},
    [IPC_CM_JOIN] = {REQ_CONTEXT, false, SINCE(ipc_cm_addr, channel), .run = req_cm_join},
    [IPC_CM_LEAVE] = {REQ_CONTEXT, false, SINCE(ipc_cm_addr, channel), .run = req_cm_leave},
    [IPC_CM_QP] = {REQ_CONTEXT, false, WHOLE(ipc_cm_qp), .run = req_cm_qp},
    [IPC_CM_MIGRATE] = {REQ_CONTEXT, false, WHOLE(ipc_cm_migrate), .run = req_cm_migrate},
};
