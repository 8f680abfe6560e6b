/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Growing shared receive queues: the daemon makes a second ring, switches to it at a moment when
 * this side doesn't post, and drops the first one when its entries have been moved
 * (ipc_srq_resize).
 */
#include <errno.h>
#include <string.h>

#include "client.h"

static int srq_step(struct urnic_srq *srq, enum ipc_resize_step step)
{
    struct ipc_srq_resize req = {.hdr.type = IPC_SRQ_RESIZE, .srq = srq->handle, .step = step};
    return client_tell(srq->ctx, &req, sizeof(req));
}

/* Ask for a second ring, and map it at *at. */
static int srq_prepare(struct urnic_srq *srq, uint32_t max_wr, struct ipc_srq *reply, void **at)
{
    struct urnic_context *ctx = srq->ctx;
    struct ipc_srq_resize req = {.hdr.type = IPC_SRQ_RESIZE,
                                 .srq = srq->handle,
                                 .step = IPC_RESIZE_PREPARE,
                                 .max_wr = max_wr};
    const struct ipc_where *w = &reply->ring;
    int fds[1];
    unsigned nfds = 1, used = 0;
    pthread_mutex_lock(&ctx->making);
    int err =
        client_make(ctx, &req, sizeof(req), IPC_SRQ_RESIZE, reply, sizeof(*reply), fds, &nfds);
    if (err == 0) {
        *at = client_where(ctx, w, ipc_queue_size(w->entries, w->stride), fds, nfds, &used);
        err = *at == NULL ? -errno : w->stride != srq->rq.ring.stride ? -EPROTO : 0;
        client_close_fds(fds, used, nfds);
        if (err < 0)
            client_unmake(ctx, IPC_SRQ_RESIZE, srq->handle);
    }
    pthread_mutex_unlock(&ctx->making);
    return err;
}

/* The entries that the daemon has not taken yet. */
static void move_receives(const struct ipc_ring *from, const struct ipc_ring *to)
{
    uint32_t i = atomic_load_explicit(&to->q->cons, memory_order_acquire);
    for (uint32_t n = 0; i != to->index && n < from->entries; i++, n++)
        memcpy(to->base + (size_t)(i & (to->entries - 1)) * to->stride,
               from->base + (size_t)(i & (from->entries - 1)) * from->stride, to->stride);
}

/* With the queue's lock held. *unused: the ring that isn't used any more. */
static int srq_commit(struct urnic_srq *srq, const struct ipc_where *w, void *at, void **unused)
{
    struct client_rq *rq = &srq->rq;
    struct ipc_ring ring;
    int err = srq_step(srq, IPC_RESIZE_COMMIT);
    *unused = err < 0 ? at : rq->ring.q;
    if (err < 0)
        return err;
    ipc_ring_init(&ring, at, w->entries, w->stride, false);
    ring.index = rq->ring.index;
    move_receives(&rq->ring, &ring);
    rq->ring = ring;
    if (ipc_ring_publish(&rq->ring))
        client_ring(srq->ctx, rq->doorbell);
    return 0;
}

/* Is there room for max_wr already? 1: yes; 0: no; -EINVAL: more are posted. */
static int srq_fits(struct client_rq *rq, uint32_t max_wr)
{
    client_lock(&rq->lock);
    uint32_t posted = rq->posted - atomic_load_explicit(&rq->retired, memory_order_acquire);
    int fits = max_wr == 0 || max_wr < posted ? -EINVAL : max_wr <= rq->max_wr;
    client_unlock(&rq->lock);
    return fits;
}

int urnic_resize_srq(struct urnic_srq *srq, uint32_t max_wr)
{
    struct client_rq *rq = &srq->rq;
    struct ipc_srq reply = {0};
    void *at = NULL, *unused;
    int err = srq_fits(rq, max_wr);
    if (err != 0)
        return err < 0 ? err : 0;
    err = srq_prepare(srq, max_wr, &reply, &at);
    if (err < 0 || !at)
        return err;
    client_lock(&rq->lock);
    err = srq_commit(srq, &reply.ring, at, &unused);
    if (err == 0)
        rq->max_wr = max_wr;
    client_unlock(&rq->lock);
    srq_step(srq, IPC_RESIZE_END);
    client_unmap(srq->ctx, unused);
    return err;
}
