/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Events of connections: finding their ids, telling the application, and moving the queue pair. An
 * id may be destroyed, in another thread, while its events are on their way.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "client_cm.h"
#include "client_cm_move.h"

_Static_assert((int)URNIC_CM_TIMEWAIT_EXIT == (int)IPC_CM_TIMEWAIT_EXIT, "the same numbers");

/* The id of an event, or the listener that it came to; NULL = gone. With ctx->lock held. */
static struct urnic_cm_id *event_id(struct urnic_context *ctx, const struct ipc_cm_event *m)
{
    struct urnic_cm_id *id = NULL;
    struct client_obj *obj = client_ref_get(&ctx->refs, (uint32_t)m->ref);
    if (obj != NULL && obj->kind == CLIENT_ID)
        id = (struct urnic_cm_id *)obj;
    if (m->event != IPC_CM_CONNECT_REQUEST && id != NULL) {
        if (id->handle == 0) /* the event has overtaken the reply with the handle */
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

/* Refuse a request that no event will report. */
static void turn_down(struct urnic_context *ctx, const struct ipc_cm_event *m)
{
    if (m->event == IPC_CM_CONNECT_REQUEST)
        client_conn_handle(&ctx->conn, IPC_CM_ID_DESTROY, m->id);
}

void client_cm_drop_stale(struct urnic_cm_channel *ch)
{
    struct ipc_cm_event m;
    while (client_inbox_drop(ch->base.ctx, &ch->base.in, &m, sizeof(m), stale))
        turn_down(ch->base.ctx, &m);
}

/* The daemon moved the queue pair before it sent the event. */
static void follow(struct urnic_qp *qp, enum urnic_cm_event_type event)
{
    uint32_t init = URNIC_QPS_INIT;
    if (event == URNIC_CM_ESTABLISHED) /* unless it was disconnected meanwhile */
        atomic_compare_exchange_strong_explicit(&qp->state, &init, URNIC_QPS_RTS,
                                                memory_order_relaxed, memory_order_relaxed);
    else if (event == URNIC_CM_DISCONNECTED || event == URNIC_CM_CONNECT_ERROR ||
             event == URNIC_CM_REJECTED || event == URNIC_CM_UNREACHABLE)
        client_qp_failed(qp);
}

/* If this library moves the queue pair, that takes many steps, without the lock. */
static void follow_in_steps(struct urnic_context *ctx, struct urnic_cm_event *ev)
{
    client_cm_follow(ev);
    pthread_mutex_lock(&ctx->lock);
    ev->id->following = false;
    pthread_cond_broadcast(&ctx->acked);
    pthread_mutex_unlock(&ctx->lock);
}

void client_cm_settle(struct urnic_cm_id *id)
{
    while (id->following)
        pthread_cond_wait(&id->ctx->acked, &id->ctx->lock);
}

/* Find the event's id and its state for the application; its queue pair follows. 0; 1: the queue
 * pair is still to follow, and until then no other thread frees it or the id; -ENOENT: the id is
 * gone. Except with 1 another thread may destroy the id once the lock is released. */
static int translate_id(struct urnic_context *ctx, const struct ipc_cm_event *m,
                        struct urnic_cm_event *ev, uint32_t *ps, void **user)
{
    bool later = false;
    pthread_mutex_lock(&ctx->lock);
    struct urnic_cm_id *id;
    while ((id = event_id(ctx, m)) != NULL && id->following)
        pthread_cond_wait(&ctx->acked, &ctx->lock); /* an earlier event of the id comes first */
    if (id != NULL) {
        ev->id = id;
        *ps = id->ps;
        *user = urnic_id_context(id);
        const bool moved = id->qp != NULL && m->event != IPC_CM_CONNECT_REQUEST;
        later = moved && client_cm_moves(ctx);
        id->following = later;
        if (moved && !later)
            follow(id->qp, (enum urnic_cm_event_type)m->event);
        if (m->event == IPC_CM_CONNECT_RESPONSE || m->event == IPC_CM_ESTABLISHED)
            id->peer_srq = m->param.srq != 0;
    }
    pthread_mutex_unlock(&ctx->lock);
    return id == NULL ? -ENOENT : later ? 1 : 0;
}

/* The id of a request. 0, -ENOMEM. */
static int translate_request(struct urnic_cm_channel *ch, const struct ipc_cm_event *m,
                             struct urnic_cm_event *ev, uint32_t ps, void *user)
{
    ev->listen = ev->id;
    ev->id = client_id_new(ch, ps, user);
    if (ev->id == NULL) {
        client_conn_handle(&ch->base.ctx->conn, IPC_CM_ID_DESTROY, m->id);
        return -ENOMEM;
    }
    ev->id->handle = m->id;
    ev->id->peer_srq = m->param.srq != 0;
    client_id_fresh(ev->id);
    return 0;
}

/* Fill in the event. 0; -ENOENT: its id is gone; -ENOMEM. */
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
        .retry_count = m->param.retry_count,
        .rnr_retry_count = m->param.rnr_retry_count,
        .qp_num = m->param.qpn,
        .qkey = m->param.qkey,
        .private_data_len = m->param.private_len,
    };
    memcpy(ev->private_data, m->private_data, sizeof(ev->private_data));
    client_ah_attr(&ev->ah, &m->av);
    int err = translate_id(ch->base.ctx, m, ev, &ps, &user);
    if (err < 0)
        turn_down(ch->base.ctx, m); /* the listener is gone */
    else if (m->event == IPC_CM_CONNECT_REQUEST)
        err = translate_request(ch, m, ev, ps, user);
    else if (err > 0)
        follow_in_steps(ch->base.ctx, ev);
    return err < 0 ? err : 0;
}

int client_cm_next(struct urnic_cm_channel *ch, struct urnic_cm_event *ev, bool wait)
{
    struct ipc_cm_event m;
    int err;
    if (client_forked(ch->base.ctx))
        return client_conn_fork_error(&ch->base.ctx->conn);
    struct client_look look = client_inbox_enter(ch->base.ctx, &ch->base.in);
    if (!wait)
        look = (struct client_look){.flags = MSG_DONTWAIT, .gone = true};
    do {
        err = client_channel_next(&ch->base, &look, &m, sizeof(m), false);
        if (err == 0)
            err = translate(ch, &m, ev);
        if (err == -ENOENT)
            client_inbox_skip(&look);
    } while (err == -ENOENT);
    if (client_inbox_leave(ch->base.ctx, &ch->base.in))
        client_cm_drop_stale(ch);
    return err;
}

int urnic_get_cm_event(struct urnic_cm_channel *ch, struct urnic_cm_event *ev)
{
    return client_cm_next(ch, ev, true);
}
