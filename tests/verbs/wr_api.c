/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wr_api: ibv_wr_* of an ibv_qp_ex: start, several requests with their own wr_id and wr_flags,
 * complete; abort leaves nothing; inline data, inline list, SGE list, imm, read, atomics, and
 * ibv_post_send on the same QP in between. */
#include "vt.h"
int main(int argc, char **argv)
{
    vt_start(argc, argv, "wr_api");
    struct vt_end a, b;
    struct vt_cfg c = VT_RC;
    c.noqp = 1;
    c.inl = 64;
    vt_end(&a, 0, &c);
    c.noqp = 0;
    vt_end(&b, 1, &c);
    struct ibv_qp_init_attr_ex ix = {
        .qp_context = &a,
        .send_cq = a.scq,
        .recv_cq = a.rcq,
        .qp_type = IBV_QPT_RC,
        .cap = {64, 64, 3, 2, 64},
        .pd = a.pd,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
                          IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
                          IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
                          IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP};
    a.qp = ibv_create_qp_ex(a.ctx, &ix);
    WANT(a.qp, "ibv_create_qp_ex with send_ops_flags failed, errno %d (%s)", errno,
         strerror(errno));
    struct ibv_qp_ex *x = ibv_qp_to_qp_ex(a.qp);
    WANT(x, "ibv_qp_to_qp_ex gave NULL");
    WANT(!ibv_qp_to_qp_ex(b.qp), "ibv_qp_to_qp_ex of a plain QP not NULL");
    vt_join(&a, &b);
    for (int i = 0; i < 20; i++)
        OK0(vt_recv(&b, i, b.buf + 64 * i, 64));
    uint64_t ra = (uintptr_t)b.buf + 16384;
    uint32_t rk = b.mr->rkey, lk = a.mr->lkey;
    char st[64];
    vt_fill(st, 64, 3);
    vt_fill(a.buf, 4096, 4);
    *(uint64_t *)(b.buf + 32768) = 41;
    /* abort: nothing happens */
    ibv_wr_start(x);
    x->wr_id = 1;
    x->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_send(x);
    ibv_wr_set_sge(x, lk, (uintptr_t)a.buf, 8);
    ibv_wr_abort(x);
    vt_none(a.scq, "aborted request", 150);
    vt_none(b.rcq, "aborted request", 20);
    ibv_wr_start(x);
    x->wr_id = 10;
    x->wr_flags = IBV_SEND_INLINE;
    ibv_wr_send(x);
    ibv_wr_set_inline_data(x, st, 64);
    memset(st, 0, 64);
    x->wr_id = 11;
    x->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_send_imm(x, htonl(0xabcd));
    ibv_wr_set_sge(x, lk, (uintptr_t)a.buf, 60);
    x->wr_id = 12;
    x->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_rdma_write(x, rk, ra);
    ibv_wr_set_sge(x, lk, (uintptr_t)a.buf, 4096);
    x->wr_id = 13;
    x->wr_flags = 0;
    ibv_wr_rdma_write_imm(x, rk, ra + 4096, htonl(5));
    ibv_wr_set_sge(x, lk, (uintptr_t)a.buf, 100);
    x->wr_id = 14;
    x->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_rdma_read(x, rk, ra);
    ibv_wr_set_sge(x, lk, (uintptr_t)a.buf + 8192, 4096);
    x->wr_id = 15;
    x->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_atomic_fetch_add(x, rk, ra + 16384, 1);
    ibv_wr_set_sge(x, lk, (uintptr_t)a.buf + 16384, 8);
    x->wr_id = 16;
    x->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE;
    ibv_wr_atomic_cmp_swp(x, rk, ra + 16384, 42, 77);
    ibv_wr_set_sge(x, lk, (uintptr_t)a.buf + 16392, 8);
    OK0(ibv_wr_complete(x));
    static const struct {
        int id, op;
    } e[] = {{11, IBV_WC_SEND},
             {12, IBV_WC_RDMA_WRITE},
             {14, IBV_WC_RDMA_READ},
             {15, IBV_WC_FETCH_ADD},
             {16, IBV_WC_COMP_SWAP}};
    for (int i = 0; i < 5; i++)
        vt_want(a.scq, "ibv_wr_ batch", e[i].id, IBV_WC_SUCCESS, e[i].op);
    vt_want(b.rcq, "inline send", 0, IBV_WC_SUCCESS, IBV_WC_RECV);
    SAME(b.buf, 64, 3, "inline data");
    struct ibv_wc wc = vt_want(b.rcq, "send_imm", 1, IBV_WC_SUCCESS, IBV_WC_RECV);
    WANT(wc.byte_len == 60 && wc.imm_data == htonl(0xabcd), "byte_len %u imm %x, expected 60 abcd",
         wc.byte_len, ntohl(wc.imm_data));
    wc = vt_want(b.rcq, "write_imm", 2, IBV_WC_SUCCESS, IBV_WC_RECV_RDMA_WITH_IMM);
    WANT(wc.byte_len == 100, "byte_len %u, expected 100", wc.byte_len);
    SAME(b.buf + 16384, 4096, 4, "write");
    SAME(a.buf + 8192, 4096, 4, "read");
    WANT(*(uint64_t *)(a.buf + 16384) == 41 && *(uint64_t *)(a.buf + 16392) == 42 &&
             *(uint64_t *)(b.buf + 32768) == 77,
         "atomics: %llu %llu target %llu, expected 41 42 77",
         (unsigned long long)*(uint64_t *)(a.buf + 16384),
         (unsigned long long)*(uint64_t *)(a.buf + 16392),
         (unsigned long long)*(uint64_t *)(b.buf + 32768));
    /* the old call on the same QP */
    OK0(vt_post(&a, IBV_WR_SEND, 20, a.buf, 8, IBV_SEND_SIGNALED, 0, 0, 0));
    vt_want(a.scq, "ibv_post_send between", 20, IBV_WC_SUCCESS, IBV_WC_SEND);
    vt_want(b.rcq, "ibv_post_send between", 3, IBV_WC_SUCCESS, IBV_WC_RECV);
    /* an error of one request is reported by ibv_wr_complete and cancels the batch */
    static char big[4096];
    ibv_wr_start(x);
    x->wr_id = 30;
    x->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
    ibv_wr_send(x);
    ibv_wr_set_inline_data(x, big, sizeof(big));
    int r = ibv_wr_complete(x);
    WANT(r,
         "4096 inline bytes accepted with max_inline_data %u, expected an error of ibv_wr_complete",
         ix.cap.max_inline_data);
    vt_none(a.scq, "failed batch", 100);
    vt_none(b.rcq, "failed batch", 20);
    vt_pass(NULL);
}
