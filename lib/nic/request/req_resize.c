/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Requests that make a shared receive queue longer. The worker only changes to another ring; the
 * client moves the entries left in the first one, in its own time (SHM-08).
 */
#include <errno.h>

#include "quota.h"
#include "req_queue.h"
#include "req_resize.h"
#include "request.h"
#include "seal.h"

/* Make a second ring; an earlier second ring is dropped. */
static int srq_prepare(struct request *r, struct client_srq *srq, const struct ipc_srq_resize *in)
{
    struct ipc_srq *out = request_out(r, struct ipc_srq);
    uint32_t entries = pow2_at_least(in->max_wr), stride = srq->rq.ring.stride;
    qslab_free(&srq->other);
    srq->other_size = 0;
    int rc = qslab_alloc(&r->client->qslabs, ipc_queue_size(entries, stride), &srq->other);
    if (rc < 0)
        return rc;
    srq->other_size = in->max_wr;
    int fd = qslab_where(&r->client->qslabs, &srq->other, &out->ring);
    out->ring.entries = entries;
    out->ring.stride = stride;
    out->ring.doorbell = srq->rq.number;
    out->srq = out->srqn = in->srq;
    out->max_wr = in->max_wr;
    out->max_sge = srq->max_sge;
    if (fd != -1)
        request_reply_fd(r, fd, false);
    return 0;
}

/* Change to the new ring. The client posts entries that were not taken yet again, in that ring. */
static int srq_commit(struct request *r, struct client_srq *srq)
{
    int rc = seal_mapped_place(r, &srq->other);
    if (rc < 0)
        return rc;
    struct ipc_ring old = srq->rq.ring;
    uint32_t entries = pow2_at_least(srq->other_size);
    uint32_t left = atomic_load_explicit(&old.q->prod, memory_order_acquire) - old.index;

    if (srq->other_size == 0 || srq->rq.dead || left > entries)
        return -EINVAL;
    rc = engine_srq_modify(r->device->engine, srq->srq, srq->other_size, 0, SRQA_MAX_WR);
    if (rc < 0)
        return rc;
    ipc_ring_init(&srq->rq.ring, qslab_at(&srq->other), entries, old.stride, false);
    srq->rq.ring.index = old.index;
    atomic_store_explicit(&srq->rq.ring.q->prod, old.index, memory_order_relaxed);
    atomic_store_explicit(&srq->rq.ring.q->cons, old.index, memory_order_relaxed);
    atomic_store_explicit(&srq->rq.ring.q->pending,
                          atomic_load_explicit(&old.q->pending, memory_order_acquire),
                          memory_order_relaxed);
    struct slab_place was = srq->rq.place;
    srq->rq.place = srq->other;
    srq->other = was;
    srq->other_size = 0;
    return 0;
}

int req_srq_resize(struct request *r)
{
    const struct ipc_srq_resize *in = request_in(r, struct ipc_srq_resize);
    struct client_srq *srq = handle_get(&r->client->handles, HANDLE_SRQ, in->srq);
    int rc = 0;
    if (!srq || in->step > IPC_RESIZE_COMMIT)
        return -EINVAL;
    if (in->step == IPC_RESIZE_PREPARE) {
        rc = in->max_wr == 0 || in->max_wr > LIMIT_SRQ_WR ? -EINVAL : srq_prepare(r, srq, in);
    } else if (in->step == IPC_RESIZE_COMMIT) {
        rc = srq_commit(r, srq);
    } else {
        qslab_free(&srq->other);
        srq->other_size = 0;
    }
    return rc;
}
