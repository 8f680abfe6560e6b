/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The ids of connections, and their event channels: the library's state of each, and its link to
 * the daemon's half.
 */
#include <errno.h>
#include <stdlib.h>

#include "client_cm.h"
#include "client_cm_move.h"

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
    return client_inbox_fd(&ch->base.in);
}

/* ---- ids ---- */

struct urnic_cm_id *client_id_new(struct urnic_cm_channel *ch, uint32_t ps, void *user)
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

void client_id_fresh(struct urnic_cm_id *id)
{
    pthread_mutex_lock(&id->ctx->lock);
    id->fresh = true;
    id->next_fresh = id->ctx->fresh;
    id->ctx->fresh = id;
    pthread_mutex_unlock(&id->ctx->lock);
}

void client_id_known(struct urnic_cm_id *id)
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

void client_cm_part(struct urnic_qp *qp)
{
    pthread_mutex_lock(&qp->ctx->lock);
    if (qp->id != NULL) {
        client_cm_settle(qp->id);
        qp->id->qp = NULL;
    }
    qp->id = NULL;
    pthread_mutex_unlock(&qp->ctx->lock);
}

static void id_free(struct urnic_cm_id *id)
{
    if (id->qp != NULL)
        client_cm_part(id->qp);
    client_id_known(id);
    client_obj_retire(id->ctx, &id->obj);
    client_cm_drop_stale(id->channel);
    pthread_mutex_lock(&id->ctx->lock);
    id->channel->base.ids--;
    pthread_mutex_unlock(&id->ctx->lock);
    client_count(id->ctx, -1);
    free(id->groups);
    free(id);
}

/* Local only: the daemon makes its half with the first request about it. */
int urnic_create_id(struct urnic_cm_channel *ch, enum urnic_port_space ps, void *id_context,
                    struct urnic_cm_id **out)
{
    if (ps != URNIC_PS_TCP && ps != URNIC_PS_UDP && ps != URNIC_PS_IB)
        return -EINVAL;
    if (client_forked(ch->base.ctx))
        return client_conn_fork_error(&ch->base.ctx->conn);
    if (client_dead(ch->base.ctx))
        return -ENODEV;
    struct urnic_cm_id *id = client_id_new(ch, ps, id_context);
    if (id == NULL)
        return -ENOMEM;
    *out = id;
    return 0;
}

void client_id_named(struct urnic_cm_id *id, uint32_t handle)
{
    pthread_mutex_lock(&id->ctx->lock);
    id->handle = handle;
    pthread_mutex_unlock(&id->ctx->lock);
}

int client_id_ensure(struct urnic_cm_id *id)
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
        client_id_named(id, reply.handle);
    return err;
}

int urnic_destroy_id(struct urnic_cm_id *id)
{
    if (client_forked(id->ctx)) /* even if the daemon doesn't know the id */
        return client_conn_fork_error(&id->ctx->conn);
    client_cm_leave_all(id);
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

void urnic_id_set_srq(struct urnic_cm_id *id, bool srq)
{
    id->srq = srq;
}

bool urnic_id_peer_srq(const struct urnic_cm_id *id)
{
    pthread_mutex_lock(&id->ctx->lock);
    bool srq = id->peer_srq;
    pthread_mutex_unlock(&id->ctx->lock);
    return srq;
}

struct urnic_qp *urnic_id_qp(const struct urnic_cm_id *id)
{
    return id->qp;
}

/* The state in which the daemon leaves a queue pair when it takes it over. */
static void id_adopt(struct urnic_cm_id *id, struct urnic_qp *qp)
{
    pthread_mutex_lock(&id->ctx->lock);
    if (qp->id != NULL) { /* it belonged to another id before */
        client_cm_settle(qp->id);
        qp->id->qp = NULL;
    }
    client_cm_settle(id);
    id->qp = qp;
    qp->id = id;
    pthread_mutex_unlock(&id->ctx->lock);
    qp->by_cm = true;
    client_qp_assume(qp, qp->type == URNIC_QPT_UD ? URNIC_QPS_RTS : URNIC_QPS_INIT);
}

int urnic_id_set_qp(struct urnic_cm_id *id, struct urnic_qp *qp)
{
    int err = qp->ctx == id->ctx ? client_id_ensure(id) : -EINVAL;
    if (err < 0)
        return err;
    struct ipc_cm_qp req = {.hdr.type = IPC_CM_QP, .id = id->handle, .qp = qp->handle};
    err = client_cm_moves(id->ctx) ? client_cm_begin(qp) : client_tell(id->ctx, &req, sizeof(req));
    if (err == 0)
        id_adopt(id, qp);
    return err;
}

int urnic_create_id_qp(struct urnic_cm_id *id, struct urnic_pd *pd, struct urnic_qp_init_attr *attr,
                       struct urnic_qp **out)
{
    int err = pd != NULL && pd->ctx == id->ctx ? client_id_ensure(id) : -EINVAL;
    if (err == 0)
        err = client_qp_create(pd, attr, id->handle, out);
    if (err == 0 && client_cm_moves(id->ctx)) {
        err = client_cm_begin(*out);
        if (err < 0)
            (void)client_qp_destroy(*out, 0);
    }
    if (err == 0)
        id_adopt(id, *out);
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
