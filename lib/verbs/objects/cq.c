/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Completion channels and queues.
 */
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "cq.h"
#include "ib.h"
#include "verbs_priv.h"

/* ---- channels ---- */

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
    struct uv_channel *ch = calloc(1, sizeof(*ch));
    int err = ch == NULL ? -ENOMEM : urnic_create_channel(uv_ctx(context)->urnic, &ch->urnic);
    if (err < 0) {
        free(ch);
        return uv_null(err);
    }
    ch->channel.context = context;
    ch->channel.fd = urnic_channel_fd(ch->urnic);
    return &ch->channel;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
    struct uv_channel *ch = (struct uv_channel *)channel;
    pthread_mutex_lock(&channel->context->mutex);
    bool busy = channel->refcnt != 0;
    pthread_mutex_unlock(&channel->context->mutex);
    if (busy)
        return uv_status(-EBUSY);
    int err = urnic_destroy_channel(ch->urnic);
    if (err < 0)
        return uv_status(err);
    free(ch);
    return 0;
}

static void count_queue(struct ibv_comp_channel *channel, int by)
{
    if (channel == NULL)
        return;
    pthread_mutex_lock(&channel->context->mutex);
    channel->refcnt += by;
    pthread_mutex_unlock(&channel->context->mutex);
}

/* ---- yielding the core ---- */

#define CALLS       32u  /* system calls for one measurement */
#define CALL_MAX_NS 3000 /* bound: a slow kernel, not a debugger */
/* A yield to another thread is two switches, which take longer than this many system calls. */
#define TURN_CALLS 4

static _Atomic int64_t turn_ns; /* 0: not measured */

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000 + t.tv_nsec;
}

/* The cost of a system call; it is ten times as high in virtual machines. */
static void measure_call(void)
{
    int64_t least = CALL_MAX_NS;
    if (atomic_load_explicit(&turn_ns, memory_order_relaxed) != 0)
        return;
    for (unsigned i = 0; i < CALLS; i++) {
        int64_t before = now_ns();
        syscall(SYS_gettid);
        int64_t took = now_ns() - before;
        least = took < least ? took : least;
    }
    atomic_store_explicit(&turn_ns, TURN_CALLS * least, memory_order_relaxed);
}

/* Threads that spin on empty queues may outnumber the cores, and delay the daemon for which they
 * wait. So empty polls yield the core: every few polls while other threads have work for it (a
 * yield then takes long), and rarely otherwise. */
void uv_cq_idle(struct uv_cq *cq)
{
    uint32_t n = atomic_load_explicit(&cq->idle, memory_order_relaxed) + 1;
    uint32_t patience = atomic_load_explicit(&cq->patience, memory_order_relaxed);
    if (__builtin_expect(n < patience, 1)) {
        atomic_store_explicit(&cq->idle, n, memory_order_relaxed);
        return;
    }
    int64_t before = now_ns();
    sched_yield();
    if (now_ns() - before > atomic_load_explicit(&turn_ns, memory_order_relaxed))
        patience = UV_PATIENCE_MIN;
    else if (patience < UV_PATIENCE_MAX)
        patience *= 2;
    atomic_store_explicit(&cq->patience, patience, memory_order_relaxed);
    atomic_store_explicit(&cq->idle, 0, memory_order_relaxed);
}

/* ---- queues ---- */

struct uv_cq *uv_cq_new(struct ibv_context *context, int cqe, void *cq_context,
                        struct ibv_comp_channel *channel, int vector)
{
    static _Atomic uint32_t handles;
    struct uv_channel *ch = (struct uv_channel *)channel;
    if (vector < 0 || vector >= context->num_comp_vectors)
        return uv_null(-EINVAL);
    struct uv_cq *cq = calloc(1, sizeof(*cq));
    int err = cq == NULL ? -ENOMEM
                         : urnic_create_cq(uv_ctx(context)->urnic, cqe, cq,
                                           ch != NULL ? ch->urnic : NULL, &cq->urnic);
    if (err < 0) {
        free(cq);
        return uv_null(err);
    }
    cq->cq.context = context;
    cq->cq.channel = channel;
    cq->cq.cq_context = cq_context;
    cq->cq.handle = atomic_fetch_add(&handles, 1);
    cq->cq.cqe = urnic_cq_size(cq->urnic);
    pthread_mutex_init(&cq->cq.mutex, NULL);
    pthread_cond_init(&cq->cq.cond, NULL);
    cq->patience = UV_PATIENCE_MIN;
    measure_call();
    count_queue(channel, 1);
    return cq;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
                             struct ibv_comp_channel *channel, int vector)
{
    struct uv_cq *cq = uv_cq_new(context, cqe, cq_context, channel, vector);
    return cq != NULL ? &cq->cq : NULL;
}

int ibv_destroy_cq(struct ibv_cq *ibcq)
{
    struct uv_cq *cq = uv_cq(ibcq);
    struct ibv_comp_channel *channel = ibcq->channel;
    int err = urnic_destroy_cq(cq->urnic);
    if (err < 0)
        return uv_status(err);
    count_queue(channel, -1);
    pthread_mutex_destroy(&cq->cq.mutex);
    pthread_cond_destroy(&cq->cq.cond);
    free(cq);
    return 0;
}

int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
    int err = urnic_resize_cq(uv_cq(cq)->urnic, cqe);
    if (err == 0)
        cq->cqe = urnic_cq_size(uv_cq(cq)->urnic);
    return uv_status(err);
}

int uv_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr)
{
    if ((attr->attr_mask & ~(uint32_t)IBV_CQ_ATTR_MODERATE) != 0)
        return uv_status(-EINVAL);
    if (attr->attr_mask == 0)
        return 0;
    return uv_status(
        urnic_modify_cq(uv_cq(cq)->urnic, attr->moderate.cq_count, attr->moderate.cq_period));
}

/* ---- polling ---- */

#define X(name) _Static_assert((int)URNIC_WC_##name == (int)IBV_WC_##name, #name);
WC_STATUSES(X)
#undef X
_Static_assert((int)URNIC_WC_RECV_RDMA_WITH_IMM == (int)IBV_WC_RECV_RDMA_WITH_IMM &&
                   (int)URNIC_WC_LOCAL_INV == (int)IBV_WC_LOCAL_INV &&
                   (int)URNIC_WC_ATOMIC_WRITE == (int)IBV_WC_ATOMIC_WRITE &&
                   URNIC_WC_GRH == IBV_WC_GRH && URNIC_WC_WITH_IMM == IBV_WC_WITH_IMM &&
                   URNIC_WC_WITH_INV == IBV_WC_WITH_INV,
               "completions are passed on as they are");

/* The service level of a datagram over RoCE names its header, as on hardware devices; UCX reads it.
 * 8: with UDP; 1: IPv6; 2: IPv4. */
uint8_t uv_wc_sl(const struct urnic_wc *u)
{
    if (!(u->wc_flags & URNIC_WC_GRH))
        return u->sl;
    return u->wc_flags & URNIC_WC_IPV4 ? 8 | 2 : 8 | 1;
}

static void wc_from(struct ibv_wc *to, const struct urnic_wc *u)
{
    to->wr_id = u->wr_id;
    to->status = (enum ibv_wc_status)u->status;
    to->opcode = (enum ibv_wc_opcode)u->opcode;
    to->vendor_err = u->vendor_err;
    to->byte_len = u->byte_len;
    to->imm_data = u->imm_data;
    to->qp_num = u->qp_num;
    to->src_qp = u->src_qp;
    to->wc_flags = u->wc_flags & ~URNIC_WC_IPV4;
    to->pkey_index = u->pkey_index;
    to->slid = 0;
    to->sl = uv_wc_sl(u);
    to->dlid_path_bits = 0;
}

int uv_poll_cq(struct ibv_cq *ibcq, int n, struct ibv_wc *wc)
{
    struct uv_cq *cq = uv_cq(ibcq);
    struct urnic_wc got[UV_POLL_MAX];
    int done = 0;
    while (done < n) {
        int want = n - done < UV_POLL_MAX ? n - done : UV_POLL_MAX;
        int k = urnic_poll_cq(cq->urnic, want, got);
        if (k < 0 && done == 0)
            return uv_fail(k);
        for (int i = 0; i < k; i++)
            wc_from(&wc[done + i], &got[i]);
        if (k > 0)
            done += k;
        if (k < want)
            break;
    }
    if (done == 0)
        uv_cq_idle(cq);
    else if (atomic_load_explicit(&cq->idle, memory_order_relaxed) != 0)
        atomic_store_explicit(&cq->idle, 0, memory_order_relaxed);
    return done;
}

int uv_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
    if (cq->channel == NULL)
        return 0;
    return uv_status(urnic_req_notify_cq(uv_cq(cq)->urnic, solicited_only != 0));
}
