/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cq_deep: queue pairs whose two completion queues and shared receive queue are all long (262,144
 * entries, and as many receives as the device has): made at the first try, and messages go through.
 */
#include "vt.h"
static struct ibv_cq *deep(int side)
{
    struct ibv_cq *cq = ibv_create_cq(vt.ctx[side], 262144, NULL, NULL, 0);
    WANT(cq, "ibv_create_cq(262144) failed, errno %d (%s)", errno, strerror(errno));
    WANT(cq->cqe >= 262144, "a queue of %d entries, expected 262144", cq->cqe);
    return cq;
}
static struct vt_cfg config(int side)
{
    struct vt_cfg c = VT_RC;
    struct ibv_device_attr attr;
    OK0(ibv_query_device(vt.ctx[side], &attr));
    c.pd = ibv_alloc_pd(vt.ctx[side]);
    WANT(c.pd, "ibv_alloc_pd failed, errno %d", errno);
    struct ibv_srq_init_attr ia = {.attr = {.max_wr = attr.max_srq_wr, .max_sge = 4}};
    c.srq = ibv_create_srq(c.pd, &ia);
    WANT(c.srq, "ibv_create_srq(%d) failed, errno %d (%s)", attr.max_srq_wr, errno,
         strerror(errno));
    c.scq = deep(side);
    c.rcq = deep(side);
    return c;
}
int main(int argc, char **argv)
{
    vt_start(argc, argv, "cq_deep");
    struct vt_cfg ca = config(0), cb = config(1);
    struct vt_end a, b;
    vt_end(&a, 0, &ca);
    vt_end(&b, 1, &cb);
    vt_join(&a, &b);
    struct ibv_sge sge = {(uintptr_t)b.buf, 1024, b.mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = 7, .sg_list = &sge, .num_sge = 1}, *bad;
    OK0(ibv_post_srq_recv(cb.srq, &wr, &bad));
    vt_fill(a.buf, 1000, 3);
    OK0(vt_post(&a, IBV_WR_SEND, 1, a.buf, 1000, IBV_SEND_SIGNALED, 0, 0, 0));
    vt_want(a.scq, "send", 1, IBV_WC_SUCCESS, IBV_WC_SEND);
    vt_want(b.rcq, "receive", 7, IBV_WC_SUCCESS, IBV_WC_RECV);
    SAME(b.buf, 1000, 3, "the message");
    vt_pass(NULL);
}
