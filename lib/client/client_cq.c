/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Completion queues: polling, arming, and the channels on which their events arrive (CQ-01 ..
 * CQ-09).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"

/* Empty polls between two checks that the daemon lives: some 50 us of spinning. */
#define QUIET_POLLS 16384u

int urnic_create_channel(struct urnic_context *ctx, struct urnic_channel **out)
{
    struct client_channel *ch;
    int err = client_channel_create(ctx, IPC_CHANNEL_CREATE, &ch);
    if (err == 0)
        *out = (struct urnic_channel *)ch;
    return err;
}

/* The object of an event; NULL = gone. With ctx->lock held. */
static struct client_obj *event_obj(struct urnic_context *ctx, const struct ipc_comp_event *ev)
{
    struct client_obj *obj = client_ref_get(&ctx->refs, ev->ref);
    return obj != NULL && obj->kind == CLIENT_CQ ? obj : NULL;
}

static bool stale(struct urnic_context *ctx, const void *msg)
{
    return event_obj(ctx, msg) == NULL;
}

static void drop_stale(struct urnic_channel *ch)
{
    struct ipc_comp_event ev;
    while (client_inbox_drop(ch->base.ctx, &ch->base.in, &ev, sizeof(ev), stale))
        ;
}

int urnic_destroy_channel(struct urnic_channel *ch)
{
    return client_channel_destroy(&ch->base, IPC_CHANNEL_DESTROY);
}

int urnic_channel_fd(const struct urnic_channel *ch)
{
    return client_inbox_fd(&ch->base.in);
}

int urnic_create_cq(struct urnic_context *ctx, int cqe, void *cq_context,
                    struct urnic_channel *channel, struct urnic_cq **out)
{
    struct ipc_cq reply;
    int fds[1];
    unsigned nfds = 1, used = 0;
    if (cqe <= 0 || (channel != NULL && channel->base.ctx != ctx))
        return -EINVAL;
    struct urnic_cq *cq = calloc(1, sizeof(*cq));
    if (cq == NULL)
        return -ENOMEM;
    cq->ctx = ctx;
    cq->user = cq_context;
    cq->channel = channel;
    cq->quiet = QUIET_POLLS;
    pthread_mutex_lock(&ctx->lock);
    int err = client_ref_add(&ctx->refs, &cq->obj, CLIENT_CQ);
    pthread_mutex_unlock(&ctx->lock);
    if (err < 0) {
        free(cq);
        return err;
    }

    struct ipc_cq_create req = {
        .hdr.type = IPC_CQ_CREATE,
        .cqe = (uint32_t)cqe,
        .channel = channel != NULL ? channel->base.handle : 0,
        .ref = cq->obj.ref,
    };
    void *at = NULL;
    pthread_mutex_lock(&ctx->making);
    err = client_make(ctx, &req, sizeof(req), IPC_CQ_DESTROY, &reply, sizeof(reply), fds, &nfds);
    if (err == 0) {
        size_t need = sizeof(struct ipc_cq_ring) + (size_t)reply.ring.entries * IPC_UNIT;
        at = client_where(ctx, &reply.ring, need, fds, nfds, &used);
        err = at == NULL ? -ENOMEM : 0;
        client_close_fds(fds, used, nfds);
        if (err < 0)
            client_unmake(ctx, IPC_CQ_DESTROY, reply.cq);
    }
    pthread_mutex_unlock(&ctx->making);
    if (err < 0) {
        client_obj_retire(ctx, &cq->obj);
        free(cq);
        return err;
    }
    ipc_cq_view_init(&cq->view, at, reply.ring.entries);
    cq->handle = reply.cq;
    client_count(ctx, 1);
    *out = cq;
    return 0;
}

int urnic_destroy_cq(struct urnic_cq *cq)
{
    int err = client_destroy(cq->ctx, IPC_CQ_DESTROY, cq->handle);
    if (err < 0)
        return err;
    client_obj_retire(cq->ctx, &cq->obj);
    if (cq->channel != NULL &&
        !client_dead(cq->ctx)) /* the completion queue keeps the channel until then */
        drop_stale(cq->channel);
    client_count(cq->ctx, -1);
    client_unmap(cq->ctx, cq->view.ring);
    while (cq->nold > 0)
        client_unmap(cq->ctx, cq->old[--cq->nold]);
    free(cq);
    return 0;
}

/* Other threads look at the queue without the lock: a thread that sees the new number of entries
 * must see the new ring, too. */
static void set_ring(struct urnic_cq *cq, void *at, uint32_t entries)
{
    struct ipc_cq_view v;
    ipc_cq_view_init(&v, at, entries);
    __atomic_store_n(&cq->view.ring, v.ring, __ATOMIC_RELAXED);
    __atomic_store_n(&cq->view.base, v.base, __ATOMIC_RELAXED);
    __atomic_store_n(&cq->view.entries, v.entries, __ATOMIC_RELEASE);
}

/* The second step, while no thread polls. */
static int move_ring(struct urnic_cq *cq, struct ipc_cq_resize *req, void *at, uint32_t entries)
{
    struct ipc_cq reply;
    req->move = 1;
    client_lock(&cq->lock);
    int err = client_call(cq->ctx, req, sizeof(*req), &reply, sizeof(reply));
    cq->old[cq->nold++] = err == 0 ? cq->view.ring : at;
    if (err == 0)
        set_ring(cq, at, entries);
    client_unlock(&cq->lock);
    return err;
}

int urnic_resize_cq(struct urnic_cq *cq, int cqe)
{
    struct urnic_context *ctx = cq->ctx;
    struct ipc_cq_resize req = {.hdr.type = IPC_CQ_RESIZE, .cq = cq->handle, .cqe = (uint32_t)cqe};
    struct ipc_cq reply;
    int fds[1];
    unsigned nfds = 1, used = 0;
    if (cqe <= 0)
        return -EINVAL;
    pthread_mutex_lock(&ctx->making);
    int err = cq->nold == CLIENT_CQ_OLD ? -ENOMEM : 0;
    if (err == 0)
        err = client_conn_call(&ctx->conn, &req, sizeof(req), &reply, sizeof(reply), fds, &nfds);
    if (err == 0 && reply.ring.entries > cq->view.entries) {
        size_t need = sizeof(struct ipc_cq_ring) + (size_t)reply.ring.entries * IPC_UNIT;
        void *at = client_where(ctx, &reply.ring, need, fds, nfds, &used);
        client_close_fds(fds, used, nfds);
        err = at == NULL ? -ENOMEM : move_ring(cq, &req, at, reply.ring.entries);
    }
    if (err == -EMFILE || err == -ENOMEM) /* the ring's slab may not have arrived */
        client_unmake(ctx, IPC_CQ_RESIZE, 0);
    pthread_mutex_unlock(&ctx->making);
    return err;
}

int urnic_cq_size(const struct urnic_cq *cq)
{
    return (int)__atomic_load_n(&cq->view.entries, __ATOMIC_RELAXED);
}

void *urnic_cq_context(const struct urnic_cq *cq)
{
    return cq->user;
}

/* The shared queue of an XRC receive; NULL = it is gone, or the receive is not of XRC. */
static struct urnic_srq *srq_of(struct urnic_cq *cq, const struct ipc_cqe *e)
{
    if (__builtin_expect(e->srq_ref == 0, 1) || e->kind != IPC_CQE_RECV)
        return NULL;
    struct client_obj *obj = client_ref_get(&cq->ctx->refs, e->srq_ref);
    return obj != NULL && obj->kind == CLIENT_SRQ ? (struct urnic_srq *)obj : NULL;
}

/* The entries that a completion frees: its own, and all earlier ones that asked for no
 * completion. */
static void retire_entry(struct urnic_qp *qp, const struct ipc_cqe *e)
{
    if (e->kind == IPC_CQE_SEND)
        atomic_store_explicit(&qp->sq_retired, (uint32_t)e->cookie + 1, memory_order_release);
    else
        atomic_fetch_add_explicit(qp->srq != NULL ? &qp->srq->rq.retired : &qp->rq.retired, 1,
                                  memory_order_release);
}

#define X(name) _Static_assert((int)URNIC_WC_##name == (int)WC_##name, #name);
WC_STATUSES(X)
#undef X
#define X(name, number) _Static_assert((int)URNIC_WC_##name == (number), #name);
WC_OPCODES(X)
#undef X
_Static_assert(URNIC_WC_GRH == WC_F_GRH && URNIC_WC_WITH_IMM == WC_F_IMM &&
                   URNIC_WC_WITH_INV == WC_F_INV && URNIC_WC_IPV4 == WC_F_IPV4,
               "flags are passed on as they are");

static void fill_wc(struct urnic_wc *wc, const struct urnic_qp *qp, const struct ipc_cqe *e)
{
    wc->wr_id = e->cookie;
    if (e->kind == IPC_CQE_SEND)
        wc->wr_id =
            __atomic_load_n(&qp->wr_id[(uint32_t)e->cookie & qp->sq_mask], __ATOMIC_RELAXED);
    wc->status = e->status;
    wc->opcode = e->opcode;
    wc->vendor_err = e->vendor_err;
    wc->byte_len = e->byte_len;
    wc->imm_data = e->imm;
    wc->qp_num = e->qpn;
    wc->src_qp = e->src_qpn;
    wc->wc_flags = e->wc_flags;
    wc->pkey_index = e->pkey_index;
    wc->sl = e->sl;
    wc->timestamp = e->timestamp;
}

static int poll_locked(struct urnic_cq *cq, int n, struct urnic_wc *wc)
{
    int got = 0;
    uint32_t first = cq->view.index;
    while (got < n) {
        const struct ipc_cqe *e = ipc_cq_peek(&cq->view);
        if (e == NULL)
            break;
        struct urnic_srq *srq = srq_of(cq, e);
        if (__builtin_expect(srq != NULL, 0)) { /* its queue pair may be gone */
            fill_wc(&wc[got++], NULL, e);
            atomic_fetch_add_explicit(&srq->rq.retired, 1, memory_order_release);
            __atomic_store_n(&cq->view.index, cq->view.index + 1, __ATOMIC_RELAXED);
            continue;
        }
        struct client_obj *obj = client_ref_get(&cq->ctx->refs, e->qp_ref);
        if (obj != NULL && obj->kind == CLIENT_QP && e->srq_ref == 0) {
            struct urnic_qp *qp = (struct urnic_qp *)obj;
            fill_wc(&wc[got++], qp, e);
            retire_entry(qp, e);
        }
        __atomic_store_n(&cq->view.index, cq->view.index + 1, __ATOMIC_RELAXED);
    }
    if (cq->view.index != first)
        ipc_cq_consume(&cq->view);
    return got;
}

/* An older daemon is asked at intervals. */
static bool older_gone(struct urnic_cq *cq)
{
    uint32_t left = __atomic_load_n(&cq->quiet, __ATOMIC_RELAXED) - 1;
    if (__builtin_expect(left != 0, 1)) {
        __atomic_store_n(&cq->quiet, left, __ATOMIC_RELAXED);
        return false;
    }
    __atomic_store_n(&cq->quiet, QUIET_POLLS, __ATOMIC_RELAXED);
    return client_gone(cq->ctx);
}

/* The queue is empty: can a completion still come? */
static bool poll_gone(struct urnic_cq *cq)
{
    if (cq->ctx->conn.engine != NULL)
        return client_dead(cq->ctx) ||
               (atomic_load_explicit(&cq->ctx->worker->gone, memory_order_relaxed) &&
                client_gone(cq->ctx));
    uint32_t holder = atomic_load_explicit(&cq->ctx->life->holder, memory_order_acquire);
    if (__builtin_expect(holder == 0, 0))
        return older_gone(cq);
    return __builtin_expect((holder & IPC_LIFE_OVER) != 0, 0) ? client_gone(cq->ctx)
                                                              : client_dead(cq->ctx);
}

/* Without the lock, so a guess. */
static bool is_empty(const struct urnic_cq *cq)
{
    uint32_t index = __atomic_load_n(&cq->view.index, __ATOMIC_RELAXED);
    uint32_t entries = __atomic_load_n(&cq->view.entries, __ATOMIC_ACQUIRE); /* set_ring */
    const struct ipc_cqe *base = __atomic_load_n(&cq->view.base, __ATOMIC_RELAXED);
    const struct ipc_cq_view v = {.entries = entries};
    return atomic_load_explicit(&base[index & (entries - 1)].phase, memory_order_relaxed) !=
           ipc_cq_phase(&v, index);
}

/* Did a completion find no room? All earlier ones are visible then. */
static bool has_overrun(const struct urnic_cq *cq)
{
    const struct ipc_cq_ring *ring = __atomic_load_n(&cq->view.ring, __ATOMIC_RELAXED);
    return __builtin_expect(atomic_load_explicit(&ring->error, memory_order_acquire) != 0, 0);
}

static int poll_cq(struct urnic_cq *cq, int n, struct urnic_wc *wc)
{
    if (is_empty(cq)) {
        bool gone = poll_gone(cq);
        if (__builtin_expect(!gone, 1) && !has_overrun(cq))
            return 0;
        if (is_empty(cq)) /* after its last completions, too */
            return gone ? -ENODEV : -EOVERFLOW;
    }
    client_lock(&cq->lock);
    int got = poll_locked(cq, n, wc);
    client_unlock(&cq->lock);
    return got;
}

/* On a port of the program's own, a poll that finds nothing does a round. In a signal handler that
 * interrupts its thread in such a call, nothing can be done. */
static int poll_port(struct urnic_cq *cq, int n, struct urnic_wc *wc)
{
    if (client_forked(cq->ctx))
        return -ENODEV;
    if (!client_port_enter())
        return 0;
    if (is_empty(cq)) {
        int saved = errno; /* this may be a signal handler */
        cq->ctx->conn.engine->poll(cq->ctx->conn.program);
        errno = saved;
    }
    int got = poll_cq(cq, n, wc);
    client_port_leave();
    return got;
}

int urnic_poll_cq(struct urnic_cq *cq, int n, struct urnic_wc *wc)
{
    return __builtin_expect(cq->ctx->conn.engine == NULL, 1) ? poll_cq(cq, n, wc)
                                                             : poll_port(cq, n, wc);
}

/* Move the entry at an index, except its phase, to a later index. */
static void move_entry(const struct ipc_cq_view *v, uint32_t to, uint32_t from)
{
    memcpy((void *)&v->base[to & (v->entries - 1)], (const void *)&v->base[from & (v->entries - 1)],
           offsetof(struct ipc_cqe, phase));
}

/* Other queue pairs' entries move up to the youngest, so that dropped ones take no room. */
void client_cq_purge(struct urnic_cq *cq, const struct urnic_qp *qp)
{
    client_lock(&cq->lock);
    const uint32_t first = cq->view.index;
    struct ipc_cq_view look = cq->view;
    while (ipc_cq_peek(&look) != NULL)
        look.index++;
    uint32_t to = look.index;
    for (uint32_t from = to; from != first;) {
        const struct ipc_cqe *e = &look.base[--from & (look.entries - 1)];
        if (e->qp_ref != qp->obj.ref || srq_of(cq, e) != NULL) {
            if (--to != from)
                move_entry(&look, to, from);
        } else if (e->kind == IPC_CQE_RECV && qp->srq != NULL) {
            atomic_fetch_add_explicit(&qp->srq->rq.retired, 1, memory_order_release);
        }
    }
    __atomic_store_n(&cq->view.index, to, __ATOMIC_RELAXED);
    if (to != first)
        ipc_cq_consume(&cq->view);
    client_unlock(&cq->lock);
}

/* ---- events ---- */

int urnic_modify_cq(struct urnic_cq *cq, uint16_t count, uint16_t period_us)
{
    struct ipc_cq_modify req = {
        .hdr.type = IPC_CQ_MODIFY, .cq = cq->handle, .count = count, .period_us = period_us};
    return client_tell(cq->ctx, &req, sizeof(req));
}

int urnic_req_notify_cq(struct urnic_cq *cq, bool solicited_only)
{
    if (cq->channel == NULL)
        return -EINVAL;
    if (client_orphan(cq->ctx))
        return -ENODEV;
    client_lock(&cq->lock); /* the ring may be about to move */
    ipc_cq_arm(&cq->view, solicited_only ? IPC_ARM_SOLICITED : IPC_ARM_NEXT);
    client_unlock(&cq->lock);
    if (client_dead(cq->ctx))
        return -ENODEV;
    if (cq->ctx->conn.engine != NULL && client_port_enter()) {
        cq->ctx->conn.engine->waits(cq->ctx->conn.program);
        client_port_leave();
    }
    return has_overrun(cq) ? -EOVERFLOW : 0;
}

static int next_event(struct urnic_channel *ch, struct client_look *look, struct urnic_cq **cq,
                      void **cq_context, bool intr)
{
    struct ipc_comp_event ev;
    struct urnic_context *ctx = ch->base.ctx;
    for (;;) {
        int err = client_channel_next(&ch->base, look, &ev, sizeof(ev), intr);
        if (err < 0)
            return err;
        pthread_mutex_lock(&ctx->lock);
        struct client_obj *obj = event_obj(ctx, &ev);
        if (obj != NULL) {
            obj->events++;
            *cq = (struct urnic_cq *)obj;
            if (cq_context != NULL)
                *cq_context = (*cq)->user;
        }
        pthread_mutex_unlock(&ctx->lock);
        if (obj != NULL)
            return 0;
        client_inbox_skip(look); /* its CQ was destroyed meanwhile */
    }
}

static int get_event(struct urnic_channel *ch, struct urnic_cq **cq, void **cq_context, bool intr)
{
    if (client_forked(ch->base.ctx))
        return client_conn_fork_error(&ch->base.ctx->conn);
    struct client_look look = client_inbox_enter(ch->base.ctx, &ch->base.in);
    int err = next_event(ch, &look, cq, cq_context, intr);
    if (client_inbox_leave(ch->base.ctx, &ch->base.in))
        drop_stale(ch);
    return err;
}

int urnic_get_cq_event(struct urnic_channel *ch, struct urnic_cq **cq, void **cq_context)
{
    return get_event(ch, cq, cq_context, false);
}

int urnic_get_cq_event_intr(struct urnic_channel *ch, struct urnic_cq **cq, void **cq_context)
{
    return get_event(ch, cq, cq_context, true);
}

void urnic_ack_cq_events(struct urnic_cq *cq, unsigned n)
{
    pthread_mutex_lock(&cq->ctx->lock);
    cq->obj.acked += n;
    pthread_cond_broadcast(&cq->ctx->acked);
    pthread_mutex_unlock(&cq->ctx->lock);
}
