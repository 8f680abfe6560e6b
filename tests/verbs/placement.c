/* SPDX-License-Identifier: BSD-3-Clause
 *
 * placement: ATOMIC WRITE and FLUSH, by ibv_wr_* and by ibv_post_send. The header of rdma-core 44
 * has no FLUSH: programs of later releases find its function after the last one that it names. */
#include "vt.h"
#define ACCESS_FLUSH_GLOBAL     0x100
#define ACCESS_FLUSH_PERSISTENT 0x200
#define WITH_FLUSH              (1 << 11)
#define WC_FLUSH                8
#define DEVICE_FLUSH_GLOBAL     (1ull << 38)
#define DEVICE_FLUSH_PERSISTENT (1ull << 39)
#define DEVICE_ATOMIC_WRITE     (1ull << 40)
enum { GLOBAL = 1, PERSISTENT = 2, RANGE = 0, WHOLE = 1 };

typedef void flush_fn(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, size_t len,
                      uint8_t type, uint8_t level);

static flush_fn *flush_of(struct ibv_qp_ex *x)
{
    flush_fn *f;
    memcpy(&f, (char *)x + offsetof(struct ibv_qp_ex, wr_atomic_write) + sizeof(f), sizeof(f));
    return f;
}

/* A queue pair with both operations, in place of e->qp, which was not made. */
static struct ibv_qp_ex *with_ops(struct vt_end *e)
{
    struct ibv_qp_init_attr_ex ix = {
        .send_cq = e->scq,
        .recv_cq = e->rcq,
        .qp_type = IBV_QPT_RC,
        .cap = {16, 16, 1, 1, 0},
        .pd = e->pd,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_ATOMIC_WRITE | WITH_FLUSH};
    e->qp = ibv_create_qp_ex(e->ctx, &ix);
    WANT(e->qp, "ibv_create_qp_ex with ATOMIC WRITE and FLUSH: errno %d (%s)", errno,
         strerror(errno));
    return ibv_qp_to_qp_ex(e->qp);
}

static void do_flush(struct ibv_qp_ex *x, uint64_t id, uint32_t rkey, uint64_t at, size_t len,
                     int type, int level)
{
    ibv_wr_start(x);
    x->wr_id = id;
    x->wr_flags = IBV_SEND_SIGNALED;
    flush_of(x)(x, rkey, at, len, (uint8_t)type, (uint8_t)level);
    OK0(ibv_wr_complete(x));
}

/* A fresh pair whose FLUSH or ATOMIC WRITE is refused: status and event at the two ends. */
static void refused(const char *what, int access, int mr_access, int type, int status, int event)
{
    struct vt_end a, b;
    struct vt_cfg c = VT_RC;
    struct ibv_async_event ev;
    c.noqp = 1;
    vt_end(&a, 0, &c);
    c.noqp = 0;
    c.qpaccess = access & ~ACCESS_FLUSH_PERSISTENT; /* its region's, too */
    vt_end(&b, 1, &c);
    struct ibv_qp_ex *x = with_ops(&a);
    vt_join(&a, &b);
    struct ibv_qp_attr qa = {.qp_access_flags = (unsigned)access};
    OK0(ibv_modify_qp(b.qp, &qa, IBV_QP_ACCESS_FLAGS));
    struct ibv_mr *mr = ibv_reg_mr(b.pd, b.buf, 4096, mr_access);
    WANT(mr, "%s: ibv_reg_mr with 0x%x: errno %d", what, mr_access, errno);
    if (type) {
        do_flush(x, 1, mr->rkey, (uintptr_t)b.buf, 64, type, RANGE);
    } else {
        uint64_t one = 1;
        ibv_wr_start(x);
        x->wr_id = 1;
        x->wr_flags = IBV_SEND_SIGNALED;
        ibv_wr_atomic_write(x, mr->rkey, (uintptr_t)b.buf, &one);
        OK0(ibv_wr_complete(x));
    }
    vt_want(a.scq, what, 1, status, -1);
    while (vt_readable(b.ctx->async_fd, 2000)) {
        OK0(ibv_get_async_event(b.ctx, &ev));
        bool its = (int)ev.event_type == event && ev.element.qp == b.qp;
        ibv_ack_async_event(&ev);
        if (its)
            return;
    }
    WANT(false, "%s: no event %d at the peer", what, event);
}

int main(int argc, char **argv)
{
    vt_start(argc, argv, "placement");
    struct ibv_device_attr_ex attr;
    OK0(ibv_query_device_ex(vt.ctx[1], NULL, &attr));
    uint64_t caps = attr.device_cap_flags_ex;
    if (!(caps & DEVICE_ATOMIC_WRITE) || !(caps & DEVICE_FLUSH_GLOBAL))
        vt_pass("not offered");
    struct vt_end a, b;
    struct vt_cfg c = VT_RC;
    c.noqp = 1;
    vt_end(&a, 0, &c);
    c.noqp = 0;
    c.qpaccess = VT_ACCESS | ACCESS_FLUSH_GLOBAL;
    vt_end(&b, 1, &c);
    struct ibv_qp_ex *x = with_ops(&a);
    vt_join(&a, &b);
    uint32_t rk = b.mr->rkey;
    uint64_t at = (uintptr_t)b.buf, value = 0x0102030405060708ull;

    /* ATOMIC WRITE copies its value when posted, also on a queue pair without inline data */
    ibv_wr_start(x);
    x->wr_id = 1;
    x->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_atomic_write(x, rk, at + 64, &value);
    value = 0; /* the program's again at once */
    OK0(ibv_wr_complete(x));
    struct ibv_wc wc = vt_want(a.scq, "ATOMIC WRITE", 1, IBV_WC_SUCCESS, IBV_WC_ATOMIC_WRITE);
    WANT(wc.byte_len == 8, "byte_len %u, expected 8", wc.byte_len);
    WANT(*(uint64_t *)(b.buf + 64) == 0x0102030405060708ull, "ATOMIC WRITE left %llx",
         (unsigned long long)*(uint64_t *)(b.buf + 64));
    /* by ibv_post_send, from memory */
    *(uint64_t *)a.buf = 77;
    OK0(vt_post(&a, IBV_WR_ATOMIC_WRITE, 2, a.buf, 8, IBV_SEND_SIGNALED, at + 72, rk, 0));
    vt_want(a.scq, "ATOMIC WRITE from memory", 2, IBV_WC_SUCCESS, IBV_WC_ATOMIC_WRITE);
    WANT(*(uint64_t *)(b.buf + 72) == 77, "from memory: %llu",
         (unsigned long long)*(uint64_t *)(b.buf + 72));

    /* a WRITE, a FLUSH of it, and a flag, in one batch: when the FLUSH is done the WRITE is there
     */
    vt_fill(a.buf, 60000, 5);
    uint64_t flag = 1;
    ibv_wr_start(x);
    x->wr_id = 3;
    x->wr_flags = 0;
    ibv_wr_rdma_write(x, rk, at + 4096);
    ibv_wr_set_sge(x, a.mr->lkey, (uintptr_t)a.buf, 60000);
    x->wr_id = 4;
    x->wr_flags = IBV_SEND_SIGNALED;
    flush_of(x)(x, rk, at + 4096, 60000, GLOBAL, RANGE);
    x->wr_id = 5;
    ibv_wr_atomic_write(x, rk, at, &flag);
    OK0(ibv_wr_complete(x));
    for (int i = 0; i < 20000 && !__atomic_load_n((uint64_t *)b.buf, __ATOMIC_ACQUIRE); i++)
        usleep(100);
    WANT(*(uint64_t *)b.buf == 1, "the flag after the FLUSH does not come");
    SAME(b.buf + 4096, 60000, 5, "after the flag");
    vt_want(a.scq, "FLUSH", 4, IBV_WC_SUCCESS, WC_FLUSH);
    vt_want(a.scq, "flag", 5, IBV_WC_SUCCESS, IBV_WC_ATOMIC_WRITE);
    do_flush(x, 6, rk, at, 0, GLOBAL, RANGE);
    vt_want(a.scq, "FLUSH of nothing", 6, IBV_WC_SUCCESS, WC_FLUSH);
    do_flush(x, 7, rk, 0, 0, GLOBAL, WHOLE);
    vt_want(a.scq, "FLUSH of the region", 7, IBV_WC_SUCCESS, WC_FLUSH);
    /* no memory can be flushed to persistence here: no program may register it for that */
    if (!(caps & DEVICE_FLUSH_PERSISTENT)) {
        struct ibv_mr *mr = ibv_reg_mr(b.pd, b.buf, 4096, VT_ACCESS | ACCESS_FLUSH_PERSISTENT);
        WANT(!mr && errno == EOPNOTSUPP, "FLUSH_PERSISTENT: %p, errno %d, expected EOPNOTSUPP",
             (void *)mr, errno);
    }
    /* values that no FLUSH has */
    ibv_wr_start(x);
    x->wr_id = 8;
    flush_of(x)(x, rk, at, 8, 4, RANGE);
    int err = ibv_wr_complete(x);
    WANT(err == EINVAL, "FLUSH of type 4: %d, expected EINVAL", err);
    vt_none(a.scq, "a FLUSH that was refused", 50);

    refused("FLUSH that the QP does not allow", VT_ACCESS, VT_ACCESS | ACCESS_FLUSH_GLOBAL, GLOBAL,
            IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
    refused("FLUSH that the region does not allow", VT_ACCESS | ACCESS_FLUSH_GLOBAL, VT_ACCESS,
            GLOBAL, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
    refused("FLUSH to persistence", VT_ACCESS | ACCESS_FLUSH_GLOBAL | ACCESS_FLUSH_PERSISTENT,
            VT_ACCESS | ACCESS_FLUSH_GLOBAL, PERSISTENT, IBV_WC_REM_ACCESS_ERR,
            IBV_EVENT_QP_ACCESS_ERR);
    refused("ATOMIC WRITE that the QP does not allow", IBV_ACCESS_REMOTE_READ, VT_ACCESS, 0,
            IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
    refused("ATOMIC WRITE that the region does not allow", VT_ACCESS, IBV_ACCESS_REMOTE_READ, 0,
            IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
    vt_pass(NULL);
}
