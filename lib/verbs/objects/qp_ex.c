/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ibv_wr_*: between wr_start and wr_complete requests are kept in a batch; wr_complete posts all of
 * them, or none if any is wrong. From start to complete or abort the queue is the caller's.
 */
#include "qp_ex.h"
#include "trace.h"

#include <stdlib.h>
#include <string.h>

#include "post.h"

/* One request with its segments, or with its data after one segment. */
struct entry {
    struct urnic_send_wr wr;
    struct urnic_sge sge[];
};

#define ATOMIC_OCTETS 8u /* of an ATOMIC WRITE */

/* From rdma-core 45 on. */
#define UV_QP_EX_WITH_FLUSH (1u << 11)

struct uv_batch {
    struct uv_lock lock;
    uint32_t n, max; /* requests so far; size of the queue */
    int err;         /* -errno of the first failed call */
    size_t stride;   /* octets of an entry */
    uint32_t max_sge, max_inline;
    struct entry *last; /* the request for set_* calls */
    uint8_t *entries;   /* one more than the queue has: scratch space once a call has failed */
};

static struct uv_qp *of(struct ibv_qp_ex *ex)
{
    return (struct uv_qp *)ex;
}

static void wr_start(struct ibv_qp_ex *ex)
{
    struct uv_batch *b = of(ex)->batch;
    uv_lock(&b->lock);
    b->n = 0;
    b->err = 0;
    b->last = (struct entry *)(void *)(b->entries + (size_t)b->max * b->stride);
}

static void fail(struct uv_batch *b, int err)
{
    if (b->err == 0)
        b->err = err;
}

/* The next request. */
static struct urnic_send_wr *add(struct ibv_qp_ex *ex, enum urnic_wr_opcode opcode)
{
    struct uv_batch *b = of(ex)->batch;
    if (b->n == b->max)
        fail(b, -ENOMEM);
    uint32_t place = b->err == 0 ? b->n++ : b->max;
    struct entry *e = (struct entry *)(void *)(b->entries + (size_t)place * b->stride);
    if (place > 0)
        b->last->wr.next = &e->wr;
    b->last = e;
    e->wr.wr_id = ex->wr_id;
    e->wr.next = NULL;
    e->wr.sg_list = e->sge;
    e->wr.num_sge = 0;
    e->wr.xrc.srqn = 0;
    e->wr.opcode = opcode;
    e->wr.send_flags = ex->wr_flags & ~(unsigned)IBV_SEND_INLINE;
    return &e->wr;
}

static void add_rdma(struct ibv_qp_ex *ex, enum urnic_wr_opcode opcode, uint32_t rkey,
                     uint64_t addr)
{
    struct urnic_send_wr *wr = add(ex, opcode);
    wr->rdma.remote_addr = addr;
    wr->rdma.rkey = rkey;
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
    add_rdma(ex, URNIC_WR_RDMA_READ, rkey, addr);
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
    add_rdma(ex, URNIC_WR_RDMA_WRITE, rkey, addr);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, __be32 imm)
{
    add_rdma(ex, URNIC_WR_RDMA_WRITE_WITH_IMM, rkey, addr);
    of(ex)->batch->last->wr.imm_data = imm;
}

static void wr_send(struct ibv_qp_ex *ex)
{
    add(ex, URNIC_WR_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm)
{
    add(ex, URNIC_WR_SEND_WITH_IMM)->imm_data = imm;
}

static void wr_send_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
    add(ex, URNIC_WR_SEND_WITH_INV)->imm_data = rkey;
}

static void wr_local_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
    add(ex, URNIC_WR_LOCAL_INV)->imm_data = rkey;
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, uint64_t compare,
                              uint64_t swap)
{
    add(ex, URNIC_WR_ATOMIC_CMP_AND_SWP)->atomic = (struct urnic_wr_atomic){
        .remote_addr = addr, .compare_add = compare, .swap = swap, .rkey = rkey};
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, uint64_t value)
{
    add(ex, URNIC_WR_ATOMIC_FETCH_AND_ADD)->atomic =
        (struct urnic_wr_atomic){.remote_addr = addr, .compare_add = value, .rkey = rkey};
}

/* The 8 octets go inline, whatever the queue pair's max_inline_data: it always has room for so few.
 */
static void wr_atomic_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, const void *value)
{
    add_rdma(ex, URNIC_WR_ATOMIC_WRITE, rkey, addr);
    struct entry *e = of(ex)->batch->last;
    memcpy(&e->sge[1], value, ATOMIC_OCTETS);
    e->sge[0] = (struct urnic_sge){.addr = (uintptr_t)&e->sge[1], .length = ATOMIC_OCTETS};
    e->wr.num_sge = 1;
    e->wr.send_flags |= URNIC_SEND_INLINE;
}

static void wr_flush(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, size_t length,
                     uint8_t type, uint8_t level)
{
    add(ex, URNIC_WR_FLUSH)->flush = (struct urnic_wr_flush){
        .remote_addr = addr, .length = length, .rkey = rkey, .type = type, .level = level};
}

static void wr_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey,
                       const struct ibv_mw_bind_info *info)
{
    int err = uv_bind_from(add(ex, URNIC_WR_BIND_MW), mw, rkey, info);
    if (err < 0)
        fail(of(ex)->batch, err);
}

static void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
    of(ex)->batch->last->wr.ud =
        (struct urnic_wr_ud){.ah = ah != NULL ? ((struct uv_ah *)ah)->urnic : NULL,
                             .remote_qpn = qpn,
                             .remote_qkey = qkey};
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *ex, uint32_t remote_srqn)
{
    of(ex)->batch->last->wr.xrc.srqn = remote_srqn;
}

/* ---- data ---- */

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t n, const struct ibv_sge *list)
{
    struct uv_batch *b = of(ex)->batch;
    if (n > b->max_sge)
        fail(b, -EINVAL);
    if (b->err != 0)
        return;
    memcpy(b->last->sge, list, n * sizeof(*list));
    b->last->wr.num_sge = (int)n;
}

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
    struct uv_batch *b = of(ex)->batch;
    if (b->err != 0)
        return;
    b->last->sge[0] = (struct urnic_sge){.addr = addr, .length = length, .lkey = lkey};
    b->last->wr.num_sge = 1;
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t n, const struct ibv_data_buf *list)
{
    struct uv_batch *b = of(ex)->batch;
    size_t total = 0;
    for (size_t i = 0; i < n; i++) {
        if (list[i].length > b->max_inline - total) {
            fail(b, -EINVAL);
            break;
        }
        total += list[i].length;
    }
    if (b->err != 0)
        return;
    struct entry *e = b->last;
    uint8_t *data = (uint8_t *)&e->sge[1];
    e->sge[0] = (struct urnic_sge){.addr = (uintptr_t)data, .length = (uint32_t)total};
    e->wr.num_sge = 1;
    e->wr.send_flags |= URNIC_SEND_INLINE;
    for (size_t i = 0; i < n; i++) {
        memcpy(data, list[i].addr, list[i].length);
        data += list[i].length;
    }
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
    struct ibv_data_buf one = {.addr = addr, .length = length};
    wr_set_inline_data_list(ex, 1, &one);
}

/* ---- the end of a batch ---- */

static int wr_complete(struct ibv_qp_ex *ex)
{
    struct uv_batch *b = of(ex)->batch;
    int err = b->err;
    if (err == 0 && b->n > 0)
        err = urnic_post_send_all(of(ex)->urnic, &((struct entry *)(void *)b->entries)->wr);
    if (uv_tracing())
        uv_trace("ibv_wr_complete", UV_STATUS, uv_errno(err), "qp 0x%x, %u requests",
                 ex->qp_base.qp_num, b->n);
    uv_unlock(&b->lock);
    return uv_status(err);
}

static void wr_abort(struct ibv_qp_ex *ex)
{
    uv_unlock(&of(ex)->batch->lock);
}

/* ---- which operations there are ---- */

#define OPS_UD (IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM)
#define OPS_UC                                                                                     \
    (OPS_UD | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |                     \
     IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW)
#define OPS_RC                                                                                     \
    (OPS_UC | IBV_QP_EX_WITH_ATOMIC_WRITE | UV_QP_EX_WITH_FLUSH | IBV_QP_EX_WITH_RDMA_READ |       \
     IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |                     \
     IBV_QP_EX_WITH_SEND_WITH_INV)

int uv_ops_check(enum ibv_qp_type type, uint64_t ops)
{
    bool rc = type == IBV_QPT_RC || type == IBV_QPT_XRC_SEND;
    uint64_t known = rc                         ? OPS_RC
                     : type == IBV_QPT_UC       ? OPS_UC
                     : type == IBV_QPT_XRC_RECV ? 0
                                                : OPS_UD;
    return (ops & ~known) != 0 ? -EOPNOTSUPP : 0;
}

int uv_ops_fill(struct uv_qp *qp)
{
    struct uv_batch *b = calloc(1, sizeof(*b));
    uint32_t sges = qp->cap.max_send_sge > 0 ? qp->cap.max_send_sge : 1;
    size_t most = qp->cap.max_inline_data < ATOMIC_OCTETS ? ATOMIC_OCTETS : qp->cap.max_inline_data;
    size_t data = sizeof(struct urnic_sge) + most;
    size_t list = sges * sizeof(struct urnic_sge);
    if (b == NULL)
        return -ENOMEM;
    b->max = qp->cap.max_send_wr;
    b->max_sge = sges;
    b->max_inline = qp->cap.max_inline_data;
    b->stride = (sizeof(struct entry) + (data > list ? data : list) + 15) & ~(size_t)15;
    b->entries = malloc(((size_t)b->max + 1) * b->stride); /* used from its beginning, mostly */
    if (b->entries == NULL) {
        free(b);
        return -ENOMEM;
    }
    qp->batch = b;
    struct ibv_qp_ex *ex = &qp->ex;
    ex->wr_start = wr_start;
    ex->wr_complete = wr_complete;
    ex->wr_abort = wr_abort;
    ex->wr_send = wr_send;
    ex->wr_send_imm = wr_send_imm;
    ex->wr_send_inv = wr_send_inv;
    ex->wr_rdma_read = wr_rdma_read;
    ex->wr_rdma_write = wr_rdma_write;
    ex->wr_rdma_write_imm = wr_rdma_write_imm;
    ex->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
    ex->wr_atomic_fetch_add = wr_atomic_fetch_add;
    ex->wr_local_inv = wr_local_inv;
    ex->wr_bind_mw = wr_bind_mw;
    ex->wr_atomic_write = wr_atomic_write;
    qp->later.wr_flush = wr_flush;
    ex->wr_set_ud_addr = wr_set_ud_addr;
    ex->wr_set_xrc_srqn = wr_set_xrc_srqn;
    ex->wr_set_sge = wr_set_sge;
    ex->wr_set_sge_list = wr_set_sge_list;
    ex->wr_set_inline_data = wr_set_inline_data;
    ex->wr_set_inline_data_list = wr_set_inline_data_list;
    return 0;
}

void uv_ops_free(struct uv_qp *qp)
{
    if (qp->batch == NULL)
        return;
    free(qp->batch->entries);
    free(qp->batch);
    qp->batch = NULL;
}
