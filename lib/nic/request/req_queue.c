/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Requests about completion channels, completion queues and shared receive queues.
 */
#include "req_queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cqring.h"
#include "queue.h"
#include "quota.h"
#include "req_qp.h"
#include "req_resize.h"
#include "seal.h"

uint32_t pow2_at_least(uint32_t n)
{
    uint32_t p = 1;
    while (p < n)
        p *= 2;
    return p;
}

/* Describe a queue; adds the slab's descriptor to the answer if the client doesn't have it yet. */
static void queue_where(struct request *r, const struct queue *q, struct ipc_where *where)
{
    int fd = qslab_where(&r->client->qslabs, &q->place, where);
    where->entries = q->ring.entries;
    where->stride = q->ring.stride;
    where->doorbell = q->number;
    if (fd != -1)
        request_reply_fd(r, fd, false);
}

/* Make the memory of a send, receive or shared receive queue, and give it its number. */
int queue_create(struct request *r, struct queue *q, enum queue_kind kind, uint32_t entries,
                 uint32_t stride, bool ud, struct ipc_where *where)
{
    struct client *c = r->client;
    entries = pow2_at_least(entries);
    int rc = qslab_alloc(&c->qslabs, ipc_queue_size(entries, stride), &q->place);
    if (rc < 0)
        return rc;
    q->kind = kind;
    ipc_ring_init(&q->ring, qslab_at(&q->place), entries, stride, ud);
    rc = context_queue_add(&c->ctx, q);
    if (rc < 0) {
        qslab_free(&q->place);
        q->ring.entries = 0;
        return rc;
    }
    queue_where(r, q, where);
    return 0;
}

static int req_slabs_again(struct request *r)
{
    qslab_again(&r->client->qslabs);
    return 0;
}

/* ---- channels ---- */

static int req_channel_create(struct request *r)
{
    struct ipc_handle *out = request_out(r, struct ipc_handle);
    struct channel *ch = calloc(1, sizeof(*ch));
    int rc = ch ? request_channel(r, HANDLE_CHANNEL, &ch->fd) : -ENOMEM;
    if (rc < 0) {
        free(ch);
        return rc;
    }
    rc = handle_add(&r->client->handles, HANDLE_CHANNEL, ch, &out->handle);
    if (rc < 0)
        client_channel_destroy(ch);
    return rc;
}

static int req_channel_destroy(struct request *r)
{
    uint32_t h = request_in(r, struct ipc_handle)->handle;
    struct channel *ch = handle_get(&r->client->handles, HANDLE_CHANNEL, h);
    int rc = ch ? client_channel_destroy(ch) : -EINVAL;
    if (rc == 0)
        handle_del(&r->client->handles, h);
    return rc;
}

/* ---- completion queues ---- */

static int cq_ring(struct request *r, struct client_cq *cq, uint32_t entries,
                   struct ipc_where *where)
{
    uint64_t size = sizeof(struct ipc_cq_ring) + (uint64_t)entries * sizeof(struct ipc_cqe);
    int rc = qslab_alloc(&r->client->qslabs, size, &cq->place);
    if (rc < 0)
        return rc;
    ipc_cq_view_init(&cq->view, qslab_at(&cq->place), entries);
    int fd = qslab_where(&r->client->qslabs, &cq->place, where);
    where->entries = entries;
    where->stride = sizeof(struct ipc_cqe);
    if (fd != -1)
        request_reply_fd(r, fd, false);
    return 0;
}

static int req_cq_create(struct request *r)
{
    const struct ipc_cq_create *in = request_in(r, struct ipc_cq_create);
    struct ipc_cq *out = request_out(r, struct ipc_cq);
    struct client *c = r->client;
    struct channel *ch = handle_get(&c->handles, HANDLE_CHANNEL, in->channel);
    struct client_cq *cq;
    if (in->cqe == 0 || in->cqe > LIMIT_CQE || (in->channel != 0 && !ch) || in->vector != 0)
        return -EINVAL;
    cq = calloc(1, sizeof(*cq));
    if (!cq)
        return -ENOMEM;
    cq->ctx = &c->ctx;
    cq->channel = ch;
    cq->ref = in->ref;
    out->cqe = pow2_at_least(in->cqe);
    int rc = cq_ring(r, cq, out->cqe, &out->ring);
    if (rc == 0)
        rc = engine_cq_create(r->device->engine, cq, &cq->cq);
    if (rc == 0) {
        rc = handle_add(&c->handles, HANDLE_CQ, cq, &out->cq);
        if (rc < 0)
            engine_cq_destroy(r->device->engine, cq->cq);
    }
    if (rc < 0) {
        qslab_free(&cq->place);
        free(cq);
        return rc;
    }
    if (ch)
        ch->users++;
    return 0;
}

/* Waiting completions keep their indices, and get the phases of those in the new ring. */
static void cq_move(const struct ipc_cq_view *from, struct ipc_cq_view *to, uint32_t cons)
{
    to->index = from->index;
    for (uint32_t i = cons; i != from->index; i++) {
        struct ipc_cqe *at = &to->base[i & (to->entries - 1)];
        memcpy((void *)at, (const void *)&from->base[i & (from->entries - 1)],
               offsetof(struct ipc_cqe, phase));
        atomic_store_explicit(&at->phase, ipc_cq_phase(to, i), memory_order_relaxed);
    }
    atomic_store_explicit(&to->ring->cons, cons, memory_order_relaxed);
    atomic_store_explicit(&to->ring->prod, to->index, memory_order_relaxed);
    atomic_store_explicit(&to->ring->error,
                          atomic_load_explicit(&from->ring->error, memory_order_relaxed),
                          memory_order_relaxed);
    atomic_store_explicit(&to->ring->arm,
                          atomic_load_explicit(&from->ring->arm, memory_order_relaxed),
                          memory_order_release);
}

/* Make the ring to move to. A ring never shrinks: the client reads it without a lock, and could
 * read past its end. */
static int cq_make_next(struct request *r, struct client_cq *cq, uint32_t entries,
                        struct ipc_where *where)
{
    const struct ipc_cq_view view = cq->view;
    const struct slab_place place = cq->place;
    qslab_free(&cq->next_place); /* the ring of an abandoned move */
    cq->next.entries = 0;
    if (entries <= view.entries)
        return 0;
    int rc = cq_ring(r, cq, entries, where);
    if (rc == 0) {
        cq->next = cq->view;
        cq->next_place = cq->place;
    }
    cq->view = view;
    cq->place = place;
    return rc;
}

static int req_cq_resize(struct request *r)
{
    const struct ipc_cq_resize *in = request_in(r, struct ipc_cq_resize);
    struct ipc_cq *out = request_out(r, struct ipc_cq);
    struct client_cq *cq = handle_get(&r->client->handles, HANDLE_CQ, in->cq);
    if (!cq || in->cqe == 0 || in->cqe > LIMIT_CQE || in->move > 1)
        return -EINVAL;
    uint32_t cons = atomic_load_explicit(&cq->view.ring->cons, memory_order_acquire);
    uint32_t waiting = cq->view.index - cons;
    if (waiting > cq->view.entries || waiting > in->cqe) /* the client's index may be a lie */
        return -EINVAL;
    out->cq = in->cq;
    if (!in->move) {
        int rc = seal_mapped_place(r, &cq->place);
        return rc < 0 ? rc : cq_make_next(r, cq, pow2_at_least(in->cqe), &out->ring);
    }
    if (cq->next.entries == 0)
        return -EINVAL;
    int rc = seal_mapped_place(r, &cq->next_place);
    if (rc < 0)
        return rc;
    cq_move(&cq->view, &cq->next, cons);
    qslab_free(&cq->place);
    cq->view = cq->next;
    cq->place = cq->next_place;
    cq->next_place = (struct slab_place){0};
    cq->next.entries = 0;
    cq->shown = cq->view.index;
    out->cqe = cq->view.entries;
    return 0;
}

static int req_cq_destroy(struct request *r)
{
    uint32_t h = request_in(r, struct ipc_handle)->handle;
    struct client_cq *cq = handle_get(&r->client->handles, HANDLE_CQ, h);
    int rc = cq ? client_cq_destroy(r->client, cq) : -EINVAL;
    if (rc == 0)
        handle_del(&r->client->handles, h);
    return rc;
}

static int req_cq_modify(struct request *r)
{
    const struct ipc_cq_modify *in = request_in(r, struct ipc_cq_modify);
    struct client_cq *cq = handle_get(&r->client->handles, HANDLE_CQ, in->cq);
    if (!cq)
        return -EINVAL;
    int rc = seal_mapped_place(r, &cq->place);
    if (rc < 0)
        return rc;
    cqring_moderate(cq, in->count, in->period_us);
    return 0;
}

/* ---- shared receive queues ---- */

/* XRC: set its domain, and the completion queue of its receives. */
static int srq_domain(struct request *r, const struct ipc_srq_create *in,
                      struct engine_srq_params *p)
{
    const struct handle_table *t = &r->client->handles;
    const struct client_cq *cq = handle_get(t, HANDLE_CQ, in->cq);
    if (in->xrcd == 0 && in->cq == 0)
        return 0;
    p->xrcd = (uint32_t)(uintptr_t)handle_get(t, HANDLE_PD, in->xrcd);
    if (!p->xrcd || !cq)
        return -EINVAL;
    p->cq = cq->cq;
    return seal_mapped_place(r, &cq->place);
}

static int req_srq_create(struct request *r)
{
    const struct ipc_srq_create *in = request_in(r, struct ipc_srq_create);
    struct ipc_srq *out = request_out(r, struct ipc_srq);
    struct client *c = r->client;
    uintptr_t pd = (uintptr_t)handle_get(&c->handles, HANDLE_PD, in->pd);
    struct client_srq *srq;
    if (!pd || in->max_wr == 0 || in->max_wr > LIMIT_SRQ_WR || in->max_sge > LIMIT_SGE)
        return -EINVAL;
    srq = calloc(1, sizeof(*srq));
    if (!srq)
        return -ENOMEM;
    srq->ref = in->ref;
    srq->pd = (uint32_t)pd;
    srq->max_sge = in->max_sge ? in->max_sge : 1;
    srq->rq.srq = srq;
    struct engine_srq_params p = {.arg = srq,
                                  .pd = srq->pd,
                                  .max_wr = in->max_wr,
                                  .max_sge = srq->max_sge,
                                  .limit = in->limit};
    int rc = srq_domain(r, in, &p);
    if (rc == 0)
        rc = queue_create(r, &srq->rq, QUEUE_SHARED, in->max_wr, ipc_rq_stride(srq->max_sge), false,
                          &out->ring);
    if (rc == 0) {
        rc = engine_srq_create(r->device->engine, &p, &srq->srq);
        if (rc == 0) {
            rc = handle_add(&c->handles, HANDLE_SRQ, srq, &out->srq);
            if (rc < 0)
                engine_srq_destroy(r->device->engine, srq->srq);
        }
        if (rc < 0) {
            context_queue_del(&c->ctx, &srq->rq);
            qslab_free(&srq->rq.place);
        }
    }
    if (rc < 0) {
        free(srq);
        return rc;
    }
    out->srqn = p.cq ? engine_srq_num(srq->srq) : out->srq;
    out->max_wr = in->max_wr;
    out->max_sge = srq->max_sge;
    return 0;
}

/* Receives posted before the request count for the limit, even if their doorbell was not read yet.
 * At most one ring full is taken, because a client could go on posting for ever (SHM-08). */
static void srq_take_posted(struct client_srq *srq, uint64_t now)
{
    uint32_t taken = 0;
    bool more = true;
    while (more && taken < srq->rq.ring.entries)
        taken += queue_pull(&srq->rq, now, &more);
}

_Static_assert(IPC_SRQ_LIMIT == SRQA_LIMIT, "the mask is passed on as it is");

static int req_srq_modify(struct request *r)
{
    const struct ipc_srq_modify *in = request_in(r, struct ipc_srq_modify);
    struct client_srq *srq = handle_get(&r->client->handles, HANDLE_SRQ, in->srq);
    if (!srq || (in->mask & ~(IPC_SRQ_MAX_WR | IPC_SRQ_LIMIT)) != 0)
        return -EINVAL;
    if (in->mask & IPC_SRQ_MAX_WR)
        return -ENOTSUP; /* rings don't grow */
    int rc = seal_mapped_place(r, &srq->rq.place);
    if (rc < 0)
        return rc;
    srq_take_posted(srq, r->now);
    return engine_srq_modify(r->device->engine, srq->srq, 0, in->limit, in->mask);
}

static int req_srq_query(struct request *r)
{
    uint32_t h = request_in(r, struct ipc_handle)->handle;
    const struct client_srq *srq = handle_get(&r->client->handles, HANDLE_SRQ, h);
    struct ipc_srq_attr *out = request_out(r, struct ipc_srq_attr);
    struct engine_srq_params p;
    int rc = srq ? engine_srq_query(srq->srq, &p) : -EINVAL;
    if (rc < 0)
        return rc;
    out->max_wr = p.max_wr;
    out->max_sge = p.max_sge;
    out->limit = p.limit;
    return 0;
}

static int req_srq_destroy(struct request *r)
{
    uint32_t h = request_in(r, struct ipc_handle)->handle;
    struct client_srq *srq = handle_get(&r->client->handles, HANDLE_SRQ, h);
    int rc = srq ? client_srq_destroy(r->client, srq) : -EINVAL;
    if (rc == 0)
        handle_del(&r->client->handles, h);
    return rc;
}

const struct request_type request_queue[IPC_TYPE_MAX] = {
    [IPC_CHANNEL_CREATE] = {REQ_CONTEXT, false, PLAIN, .run = req_channel_create, .fds = true},
    [IPC_CHANNEL_DESTROY] = {REQ_CONTEXT, false, BY_HANDLE, .run = req_channel_destroy},
    [IPC_CQ_CREATE] = {REQ_CONTEXT, false, WHOLE(ipc_cq_create), .run = req_cq_create, .fds = true},
    [IPC_CQ_RESIZE] = {REQ_CONTEXT, false, WHOLE(ipc_cq_resize), .run = req_cq_resize, .fds = true},
    [IPC_CQ_MODIFY] = {REQ_CONTEXT, false, WHOLE(ipc_cq_modify), .run = req_cq_modify},
    [IPC_CQ_DESTROY] = {REQ_CONTEXT, false, BY_HANDLE, .run = req_cq_destroy},
    [IPC_SRQ_CREATE] = {REQ_CONTEXT, false, SINCE(ipc_srq_create, xrcd), .run = req_srq_create,
                        .fds = true},
    [IPC_SRQ_MODIFY] = {REQ_CONTEXT, false, WHOLE(ipc_srq_modify), .run = req_srq_modify},
    [IPC_SRQ_QUERY] = {REQ_CONTEXT, false, BY_HANDLE, .run = req_srq_query},
    [IPC_SRQ_RESIZE] = {REQ_CONTEXT, false, SINCE(ipc_srq_resize, step), .run = req_srq_resize,
                        .fds = true},
    [IPC_SRQ_DESTROY] = {REQ_CONTEXT, false, BY_HANDLE, .run = req_srq_destroy},
    [IPC_QP_CREATE] = {REQ_CONTEXT, false, SINCE(ipc_qp_create, cm_id), .run = req_qp_create,
                       .fds = true},
    [IPC_QP_MODIFY] = {REQ_CONTEXT, false, WHOLE(ipc_qp_modify), .run = req_qp_modify},
    [IPC_QP_QUERY] = {REQ_CONTEXT, false, BY_HANDLE, .run = req_qp_query},
    [IPC_QP_DESTROY] = {REQ_CONTEXT, false, SINCE(ipc_qp_destroy, cm_id), .run = req_qp_destroy},
    [IPC_AV_RESOLVE] = {REQ_CONTEXT, false, WHOLE(ipc_av_resolve), .run = req_av_resolve},
    [IPC_MCAST_ATTACH] = {REQ_CONTEXT, false, WHOLE(ipc_mcast), .run = req_mcast_attach},
    [IPC_MCAST_DETACH] = {REQ_CONTEXT, false, WHOLE(ipc_mcast), .run = req_mcast_detach},
    [IPC_SLABS_AGAIN] = {REQ_CONTEXT, false, PLAIN, .run = req_slabs_again},
};
