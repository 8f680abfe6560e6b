/* SPDX-License-Identifier: BSD-3-Clause
 *
 * inline_reuse: IBV_SEND_INLINE data may be changed or unmapped as soon as ibv_post_send returns,
 * needs no region (L_Key ignored), counts over several SGEs; caps give back at least what was
 * asked; too much is refused, not cut. */
#include "vt.h"
int main(int argc, char **argv)
{
    vt_start(argc, argv, "inline_reuse");
    struct vt_end a, b;
    struct vt_cfg c = VT_RC;
    struct ibv_send_wr *bad;
    c.inl = 64;
    c.ssge = 3;
    c.swr = 40;
    c.rwr = 64;
    vt_pair(&a, &b, &c);
    WANT(a.cap.max_inline_data >= 64, "max_inline_data given back %u, expected >= 64",
         a.cap.max_inline_data);
    struct ibv_qp_attr q;
    struct ibv_qp_init_attr qi;
    OK0(ibv_query_qp(a.qp, &q, IBV_QP_CAP, &qi));
    WANT(qi.cap.max_inline_data >= 64, "ibv_query_qp max_inline_data %u, expected >= 64",
         qi.cap.max_inline_data);
    for (int i = 0; i < 40; i++)
        OK0(vt_recv(&b, i, b.buf + 64 * i, 64));
    char stack[64];
    for (int i = 0; i < 32; i++) { /* one buffer for all, overwritten after each post */
        vt_fill(stack, 64, i);
        struct ibv_sge s = {(uintptr_t)stack, 64, 0xdeadbeef};
        struct ibv_send_wr w = {.wr_id = i,
                                .sg_list = &s,
                                .num_sge = 1,
                                .opcode = IBV_WR_SEND,
                                .send_flags = IBV_SEND_INLINE | (i == 31 ? IBV_SEND_SIGNALED : 0)};
        OK0(ibv_post_send(a.qp, &w, &bad));
        memset(stack, 0xff, 64);
        memset(&s, 0xff, sizeof(s));
        memset(&w, 0xff, sizeof(w));
    }
    vt_want(a.scq, "last inline send", 31, IBV_WC_SUCCESS, IBV_WC_SEND);
    for (int i = 0; i < 32; i++) {
        struct ibv_wc wc = vt_want(b.rcq, "inline data", i, IBV_WC_SUCCESS, IBV_WC_RECV);
        WANT(wc.byte_len == 64, "byte_len %u, expected 64", wc.byte_len);
        SAME(b.buf + 64 * i, 64, i, "inline data");
    }
    /* memory that is gone after the post; three pieces; a write */
    char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    vt_fill(page, 64, 99);
    struct ibv_sge t[3] = {
        {(uintptr_t)page, 1, 0}, {(uintptr_t)page + 1, 30, 1}, {(uintptr_t)page + 31, 33, 2}};
    struct ibv_send_wr w = {.wr_id = 50,
                            .sg_list = t,
                            .num_sge = 3,
                            .opcode = IBV_WR_RDMA_WRITE,
                            .send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED};
    w.wr.rdma.remote_addr = (uintptr_t)b.buf + 8192;
    w.wr.rdma.rkey = b.mr->rkey;
    OK0(ibv_post_send(a.qp, &w, &bad));
    munmap(page, 4096);
    vt_want(a.scq, "inline write from three pieces", 50, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE);
    SAME(b.buf + 8192, 64, 99, "inline write");
    /* limits */
    static char big[8192];
    unsigned over = a.cap.max_inline_data + 1;
    struct ibv_sge o = {(uintptr_t)big, over, 0};
    struct ibv_send_wr x = {.wr_id = 51,
                            .sg_list = &o,
                            .num_sge = 1,
                            .opcode = IBV_WR_SEND,
                            .send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED};
    bad = NULL;
    int r = ibv_post_send(a.qp, &x, &bad);
    WANT(r, "%u inline bytes accepted with max_inline_data %u, expected an error", over,
         a.cap.max_inline_data);
    WANT(bad == &x, "bad_wr %p, expected the refused request", (void *)bad);
    WANT(vt_state(a.qp) == IBV_QPS_RTS, "QP left RTS after a refused post");
    /* not inline afterwards on the same slots: data is read later again */
    vt_fill(a.buf, 64, 5);
    OK0(vt_post(&a, IBV_WR_SEND, 52, a.buf, 64, IBV_SEND_SIGNALED, 0, 0, 0));
    vt_want(a.scq, "plain send after inline ones", 52, IBV_WC_SUCCESS, IBV_WC_SEND);
    vt_want(b.rcq, "plain send", 32, IBV_WC_SUCCESS, IBV_WC_RECV);
    SAME(b.buf + 64 * 32, 64, 5, "plain send after inline ones");
    /* an absurd request fails cleanly or is granted in full */
    struct ibv_qp_init_attr ia = {
        .send_cq = a.scq, .recv_cq = a.rcq, .qp_type = IBV_QPT_RC, .cap = {4, 4, 1, 1, 1 << 20}};
    errno = 0;
    struct ibv_qp *qp = ibv_create_qp(a.pd, &ia);
    if (qp)
        WANT(ia.cap.max_inline_data >= 1 << 20,
             "1 MiB inline asked, QP made with %u, expected all or a failure",
             ia.cap.max_inline_data);
    else
        WANT(errno == EINVAL || errno == ENOMEM, "errno %d, expected EINVAL or ENOMEM", errno);
    vt_pass("max_inline_data %u for 64 asked", a.cap.max_inline_data);
}
