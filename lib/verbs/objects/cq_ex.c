/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Extended completion queues: completions one at a time, read field by field. From start_poll to
 * end_poll the queue is the caller's, unless start_poll found nothing.
 */
#include <time.h>

#include "cq.h"
#include "trace.h"

#define FLAGS_KNOWN                                                                                \
    ((uint64_t)IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |                       \
     IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
#define WALLCLOCK_ERROR_NS 1000000u /* a larger step back is one of the machine's time of day */

static struct uv_cq *of(struct ibv_cq_ex *ex)
{
    return (struct uv_cq *)ex;
}

/* The next completion into cq->wc. 0; ENOENT: there is none. */
static int take(struct uv_cq *cq)
{
    int n = urnic_poll_cq(cq->urnic, 1, &cq->wc);
    if (n == 0)
        return ENOENT;
    if (n < 0)
        return uv_status(n);
    cq->ex.status = (enum ibv_wc_status)cq->wc.status;
    cq->ex.wr_id = cq->wc.wr_id;
    if (uv_tracing())
        uv_trace("ibv_next_poll", UV_STATUS, 0, "cq %p, wr_id 0x%llx %s", (const void *)cq,
                 (unsigned long long)cq->wc.wr_id, ibv_wc_status_str(cq->ex.status));
    return 0;
}

static int start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
    struct uv_cq *cq = of(ex);
    if (attr->comp_mask != 0)
        return EINVAL;
    uv_lock(&cq->lock);
    int err = take(cq);
    if (err != 0)
        uv_unlock(&cq->lock);
    if (err == ENOENT)
        uv_cq_idle(cq);
    return err;
}

static int next_poll(struct ibv_cq_ex *ex)
{
    return take(of(ex));
}

static void end_poll(struct ibv_cq_ex *ex)
{
    uv_unlock(&of(ex)->lock);
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *ex)
{
    return (enum ibv_wc_opcode)of(ex)->wc.opcode;
}

static uint32_t read_vendor_err(struct ibv_cq_ex *ex)
{
    return of(ex)->wc.vendor_err;
}

static uint32_t read_byte_len(struct ibv_cq_ex *ex)
{
    return of(ex)->wc.byte_len;
}

static __be32 read_imm_data(struct ibv_cq_ex *ex)
{
    return of(ex)->wc.imm_data;
}

static uint32_t read_qp_num(struct ibv_cq_ex *ex)
{
    return of(ex)->wc.qp_num;
}

static uint32_t read_src_qp(struct ibv_cq_ex *ex)
{
    return of(ex)->wc.src_qp;
}

static unsigned int read_wc_flags(struct ibv_cq_ex *ex)
{
    return of(ex)->wc.wc_flags & ~URNIC_WC_IPV4;
}

static uint32_t read_slid(struct ibv_cq_ex *ex)
{
    (void)ex;
    return 0;
}

static uint8_t read_sl(struct ibv_cq_ex *ex)
{
    return uv_wc_sl(&of(ex)->wc);
}

static uint8_t read_dlid_path_bits(struct ibv_cq_ex *ex)
{
    (void)ex;
    return 0;
}

static uint64_t read_completion_ts(struct ibv_cq_ex *ex)
{
    return of(ex)->wc.timestamp;
}

static uint64_t now_ns(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* The two clocks can't be read at one instant. The small error must not put a completion before the
 * one that preceded it. */
static uint64_t read_wallclock(struct ibv_cq_ex *ex)
{
    struct uv_cq *cq = of(ex);
    uint64_t ago = now_ns(CLOCK_MONOTONIC) - cq->wc.timestamp;
    uint64_t at = now_ns(CLOCK_REALTIME) - ago;
    if (at < cq->wallclock && cq->wallclock - at < WALLCLOCK_ERROR_NS)
        at = cq->wallclock;
    cq->wallclock = at;
    return at;
}

static void fill(struct ibv_cq_ex *ex)
{
    ex->start_poll = start_poll;
    ex->next_poll = next_poll;
    ex->end_poll = end_poll;
    ex->read_opcode = read_opcode;
    ex->read_vendor_err = read_vendor_err;
    ex->read_byte_len = read_byte_len;
    ex->read_imm_data = read_imm_data;
    ex->read_qp_num = read_qp_num;
    ex->read_src_qp = read_src_qp;
    ex->read_wc_flags = read_wc_flags;
    ex->read_slid = read_slid;
    ex->read_sl = read_sl;
    ex->read_dlid_path_bits = read_dlid_path_bits;
    ex->read_completion_ts = read_completion_ts;
    ex->read_completion_wallclock_ns = read_wallclock;
}

struct ibv_cq_ex *uv_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
    const uint32_t mask = IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD;
    if ((attr->wc_flags & ~FLAGS_KNOWN) != 0 || (attr->comp_mask & ~mask) != 0)
        return uv_null(-EOPNOTSUPP);
    if ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) &&
        (attr->flags & ~(uint32_t)IBV_CREATE_CQ_ATTR_SINGLE_THREADED) != 0)
        return uv_null(-EOPNOTSUPP);
    if ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) &&
        (attr->parent_domain == NULL || uv_pd(attr->parent_domain)->parent == NULL))
        return uv_null(-EINVAL);
    if (attr->cqe > INT32_MAX || attr->comp_vector > INT32_MAX)
        return uv_null(-EINVAL);
    struct uv_cq *cq =
        uv_cq_new(context, (int)attr->cqe, attr->cq_context, attr->channel, (int)attr->comp_vector);
    if (cq == NULL)
        return NULL;
    fill(&cq->ex);
    return &cq->ex;
}
