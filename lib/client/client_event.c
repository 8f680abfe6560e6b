/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Asynchronous events (EVT-01 .. EVT-04), and retiring objects that events may still name.
 */
#include <errno.h>
#include <sys/socket.h>

#include "client.h"

static enum client_kind kind_of(unsigned event)
{
    switch (event) {
    case URNIC_EVENT_CQ_ERR:
        return CLIENT_CQ;
    case URNIC_EVENT_QP_FATAL:
    case URNIC_EVENT_QP_REQ_ERR:
    case URNIC_EVENT_QP_ACCESS_ERR:
    case URNIC_EVENT_COMM_EST:
    case URNIC_EVENT_SQ_DRAINED:
    case URNIC_EVENT_PATH_MIG:
    case URNIC_EVENT_PATH_MIG_ERR:
    case URNIC_EVENT_QP_LAST_WQE_REACHED:
        return CLIENT_QP;
    case URNIC_EVENT_SRQ_ERR:
    case URNIC_EVENT_SRQ_LIMIT_REACHED:
        return CLIENT_SRQ;
    default:
        return 0; /* of the port or device */
    }
}

/* The object of an event; NULL = gone, or none. With ctx->lock held. */
static struct client_obj *event_obj(struct urnic_context *ctx, const struct ipc_async *a)
{
    enum client_kind kind = kind_of(a->event);
    struct client_obj *obj = kind != 0 ? client_ref_get(&ctx->refs, a->ref) : NULL;
    return obj != NULL && obj->kind == kind ? obj : NULL;
}

static bool stale(struct urnic_context *ctx, const void *msg)
{
    const struct ipc_async *a = msg;
    return kind_of(a->event) != 0 && event_obj(ctx, a) == NULL;
}

static void drop_stale(struct urnic_context *ctx)
{
    struct ipc_async a;
    while (client_inbox_drop(ctx, &ctx->async, &a, sizeof(a), stale))
        ;
}

void client_obj_retire(struct urnic_context *ctx, struct client_obj *obj)
{
    pthread_mutex_lock(&ctx->lock);
    while (obj->acked != obj->events)
        pthread_cond_wait(&ctx->acked, &ctx->lock);
    client_ref_del(&ctx->refs, obj);
    pthread_mutex_unlock(&ctx->lock);
    if (obj->kind != CLIENT_ID)
        drop_stale(ctx);
}

int urnic_async_fd(const struct urnic_context *ctx)
{
    return client_inbox_fd(&ctx->async);
}

/* Turn a message into an event. False: its object is gone. */
static bool translate(struct urnic_context *ctx, const struct ipc_async *a,
                      struct urnic_async_event *event)
{
    enum client_kind kind = kind_of(a->event);
    *event = (struct urnic_async_event){.type = a->event, .lost = a->flags & 1};
    if (kind == 0) {
        event->port = a->ref;
        return true;
    }
    pthread_mutex_lock(&ctx->lock);
    struct client_obj *obj = event_obj(ctx, a);
    if (obj != NULL) {
        obj->events++;
        if (kind == CLIENT_CQ)
            event->cq = (struct urnic_cq *)obj;
        else if (kind == CLIENT_QP)
            event->qp = (struct urnic_qp *)obj;
        else
            event->srq = (struct urnic_srq *)obj;
    }
    pthread_mutex_unlock(&ctx->lock);
    return obj != NULL;
}

static int next_event(struct urnic_context *ctx, struct client_look *look,
                      struct urnic_async_event *event, bool intr)
{
    struct ipc_async a;
    for (;;) {
        ssize_t n = client_inbox_recv(ctx, &ctx->async, look, &a, sizeof(a));
        if (n < 0 && errno == EINTR && intr)
            return -EINTR;
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return -EAGAIN;
        if (n <= 0) {
            atomic_store_explicit(&ctx->conn.dead, true, memory_order_relaxed);
            pthread_mutex_lock(&ctx->lock);
            bool told = ctx->fatal_told;
            ctx->fatal_told = true;
            pthread_mutex_unlock(&ctx->lock);
            *event = (struct urnic_async_event){.type = URNIC_EVENT_DEVICE_FATAL, .port = 1};
            return told ? -ENODEV : 0;
        }
        if (n == (ssize_t)sizeof(a) && translate(ctx, &a, event))
            return 0;
        client_inbox_skip(look);
    }
}

static int get_event(struct urnic_context *ctx, struct urnic_async_event *event, bool intr)
{
    if (client_forked(ctx))
        return client_conn_fork_error(&ctx->conn);
    struct client_look look = client_inbox_enter(ctx, &ctx->async);
    int err = next_event(ctx, &look, event, intr);
    if (client_inbox_leave(ctx, &ctx->async))
        drop_stale(ctx);
    return err;
}

int urnic_get_async_event(struct urnic_context *ctx, struct urnic_async_event *event)
{
    return get_event(ctx, event, false);
}

int urnic_get_async_event_intr(struct urnic_context *ctx, struct urnic_async_event *event)
{
    return get_event(ctx, event, true);
}

void urnic_ack_async_event(struct urnic_async_event *event)
{
    struct urnic_context *ctx = NULL;
    struct client_obj *obj = NULL;
    switch (kind_of(event->type)) {
    case CLIENT_CQ:
        ctx = event->cq->ctx;
        obj = &event->cq->obj;
        break;
    case CLIENT_QP:
        ctx = event->qp->ctx;
        obj = &event->qp->obj;
        break;
    case CLIENT_SRQ:
        ctx = event->srq->ctx;
        obj = &event->srq->obj;
        break;
    default:
        return;
    }
    pthread_mutex_lock(&ctx->lock);
    obj->acked++;
    pthread_cond_broadcast(&ctx->acked);
    pthread_mutex_unlock(&ctx->lock);
}
