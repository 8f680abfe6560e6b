/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The common part of completion channels and connection channels: a handle at the daemon, and a
 * socket on which messages of a fixed size arrive. Also the handling of messages about destroyed
 * objects.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "client.h"

int client_channel_create(struct urnic_context *ctx, enum ipc_type type,
                          struct client_channel **out)
{
    enum ipc_type undo = type == IPC_CHANNEL_CREATE ? IPC_CHANNEL_DESTROY : IPC_CM_CHANNEL_DESTROY;
    struct ipc_hdr req = {.type = (uint16_t)type};
    struct ipc_handle reply;
    unsigned nfds = 1;
    struct client_channel *ch = calloc(1, sizeof(*ch));
    if (ch == NULL)
        return -ENOMEM;
    int err = client_make(ctx, &req, sizeof(req), undo, &reply, sizeof(reply), &ch->in.fd, &nfds);
    if (err < 0 || nfds != 1) {
        free(ch);
        return err < 0 ? err : -EPROTO;
    }
    if (type == IPC_CM_CHANNEL_CREATE)
        ch->in.fd = client_fd(ch->in.fd);
    ch->in.mark = client_mark(ch->in.fd);
    ch->ctx = ctx;
    ch->handle = reply.handle;
    client_count(ctx, 1);
    *out = ch;
    return 0;
}

int client_channel_destroy(struct client_channel *ch, enum ipc_type type)
{
    int err = client_destroy(ch->ctx, type, ch->handle);
    if (err < 0)
        return err;
    client_count(ch->ctx, -1);
    client_close_own(ch->in.fd, &ch->in.mark);
    free(ch);
    return 0;
}

int client_channel_next(const struct client_channel *ch, struct client_look *look, void *msg,
                        size_t size, bool intr)
{
    for (;;) {
        ssize_t n = client_inbox_recv(ch->ctx, &ch->in, look, msg, size);
        if (n == (ssize_t)size)
            return 0;
        if (n < 0 && errno == EAGAIN)
            return -EAGAIN;
        if (n < 0 && errno == EINTR && intr)
            return -EINTR;
        if (n > 0)
            client_inbox_skip(look);
        if (n > 0 || (n < 0 && errno == EINTR))
            continue;
        client_gone(ch->ctx);
        return -ENODEV;
    }
}

int client_inbox_fd(const struct client_inbox *in)
{
    /* The application's object isn't const; only its view here is. */
    struct client_inbox *own = (struct client_inbox *)(uintptr_t)in;
    atomic_store_explicit(&own->polled, true, memory_order_relaxed);
    return in->fd;
}

struct client_look client_inbox_enter(struct urnic_context *ctx, struct client_inbox *in)
{
    struct client_look look = {0};
    if (atomic_load_explicit(&in->polled, memory_order_relaxed))
        look.flags = MSG_DONTWAIT;
    pthread_mutex_lock(&ctx->lock);
    in->readers++;
    look.gone = in->dropped && look.flags != 0;
    in->dropped = false;
    pthread_mutex_unlock(&ctx->lock);
    return look;
}

/* Does a port of the program's own make progress only if we poll? */
static bool needs_polls(const struct urnic_context *ctx)
{
    return ctx->conn.engine != NULL && ctx->conn.engine->needs_polls(ctx->conn.program);
}

int client_await(struct urnic_context *ctx, int fd, int timeout_ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    if (!needs_polls(ctx))
        return poll(&p, 1, timeout_ms);
    for (int n;; timeout_ms -= timeout_ms > 0) {
        if (client_port_enter()) {
            ctx->conn.engine->poll(ctx->conn.program);
            client_port_leave();
        }
        n = poll(&p, 1, timeout_ms == 0 ? 0 : 1);
        if (n != 0 || timeout_ms == 0)
            return n;
    }
}

/* recv that waits, unless the application has set the descriptor non-blocking. */
static ssize_t recv_waiting(struct urnic_context *ctx, const struct client_inbox *in, void *msg,
                            size_t size)
{
    if (!needs_polls(ctx))
        return recv(in->fd, msg, size, 0);
    bool waits = (fcntl(in->fd, F_GETFL) & O_NONBLOCK) == 0;
    for (;;) {
        int n = client_await(ctx, in->fd, waits ? -1 : 0);
        ssize_t got = n < 0 ? n : recv(in->fd, msg, size, MSG_DONTWAIT);
        if (got >= 0 || errno != EAGAIN || !waits) /* another thread may have taken it */
            return got;
    }
}

ssize_t client_inbox_recv(struct urnic_context *ctx, const struct client_inbox *in,
                          struct client_look *look, void *msg, size_t size)
{
    if (!client_is(in->fd, &in->mark))
        return 0; /* as if the other end had gone */
    if (look->flags == 0)
        return recv_waiting(ctx, in, msg, size);
    ssize_t n = recv(in->fd, msg, size, look->flags);
    if (n >= 0 || errno != EAGAIN || look->gone)
        return n;
    look->flags = 0; /* there was no message that this caller could have seen */
    return recv_waiting(ctx, in, msg, size);
}

bool client_inbox_leave(struct urnic_context *ctx, struct client_inbox *in)
{
    pthread_mutex_lock(&ctx->lock);
    in->readers--;
    bool look = in->suspect && in->readers == 0;
    pthread_mutex_unlock(&ctx->lock);
    return look;
}

bool client_inbox_drop(struct urnic_context *ctx, struct client_inbox *in, void *msg, size_t size,
                       client_stale stale)
{
    bool dropped = false;
    if (client_forked(ctx)) /* the parent may have made it after the fork */
        return false;
    pthread_mutex_lock(&ctx->lock);
    in->suspect = true;
    if (in->readers == 0 &&
        client_is(in->fd,
                  &in->mark)) { /* so no reader takes another message between the two calls */
        ssize_t n = recv(in->fd, msg, size, MSG_PEEK | MSG_DONTWAIT);
        in->suspect = n > 0;
        dropped = n == (ssize_t)size && stale(ctx, msg) &&
                  recv(in->fd, msg, size, MSG_DONTWAIT) == (ssize_t)size;
        in->dropped |= dropped;
    }
    pthread_mutex_unlock(&ctx->lock);
    return dropped;
}
