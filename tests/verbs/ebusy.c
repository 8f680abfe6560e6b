/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ebusy: objects in use are not destroyed: PD with QP, MR or SRQ; CQ with QP; SRQ with QP; channel
 * with CQ: EBUSY, in errno, too, and everything still works; then all go in the right order. */
#include "vt.h"
#define BUSY(call)                                                                                 \
    do {                                                                                           \
        errno = ENOENT;                                                                            \
        int r_ = (call), e_ = errno;                                                               \
        WANT(r_ == EBUSY, "%s gave %d, expected EBUSY (16)", #call, r_);                           \
        WANT(e_ == EBUSY, "%s left errno %d, expected EBUSY (16)", #call, e_);                     \
    } while (0)
int main(int argc, char **argv)
{
    vt_start(argc, argv, "ebusy");
    struct vt_end a, b;
    struct vt_cfg c = VT_RC;
    struct ibv_pd *pd = ibv_alloc_pd(vt.ctx[1]);
    struct ibv_srq_init_attr si = {.attr = {16, 2, 0}};
    struct ibv_srq *srq = ibv_create_srq(pd, &si);
    WANT(srq, "ibv_create_srq failed, errno %d", errno);
    vt_end(&a, 0, &c);
    c.pd = pd;
    c.srq = srq;
    vt_end(&b, 1, &c);
    vt_join(&a, &b);
    BUSY(ibv_dealloc_pd(pd));
    BUSY(ibv_destroy_cq(b.rcq));
    BUSY(ibv_destroy_cq(b.scq));
    BUSY(ibv_destroy_srq(srq));
    BUSY(ibv_destroy_comp_channel(b.ch));
    struct ibv_sge s = {(uintptr_t)b.buf, 64, b.mr->lkey};
    struct ibv_recv_wr w = {.wr_id = 5, .sg_list = &s, .num_sge = 1}, *bad;
    OK0(ibv_post_srq_recv(srq, &w, &bad));
    OK0(vt_post(&a, IBV_WR_SEND, 1, a.buf, 8, IBV_SEND_SIGNALED, 0, 0, 0));
    vt_want(a.scq, "send after the refusals", 1, IBV_WC_SUCCESS, IBV_WC_SEND);
    vt_want(b.rcq, "receive after the refusals", 5, IBV_WC_SUCCESS, IBV_WC_RECV);
    OK0(ibv_destroy_qp(b.qp));
    BUSY(ibv_dealloc_pd(pd));
    OK0(ibv_destroy_srq(srq));
    BUSY(ibv_dealloc_pd(pd));
    OK0(ibv_dereg_mr(b.mr));
    OK0(ibv_dealloc_pd(pd));
    OK0(ibv_destroy_cq(b.rcq));
    OK0(ibv_destroy_cq(b.scq));
    OK0(ibv_destroy_comp_channel(b.ch));
    vt_pass(NULL);
}
