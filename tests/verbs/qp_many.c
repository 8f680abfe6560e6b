/* SPDX-License-Identifier: BSD-3-Clause
 *
 * qp_many: 1,000 RC QPs (500 pairs) on two CQs in one process: numbers unique, each pair carries a
 * message both ways and a READ, in the end all are destroyed; then 300 more pairs are made and
 * destroyed one after the other (nothing leaks). */
#include "vt.h"
#define N 500
int main(int argc, char **argv)
{
    vt_start(argc, argv, "qp_many");
    static struct vt_end a[N], b[N];
    struct vt_end A, B;
    struct vt_cfg c = VT_RC;
    static struct ibv_wc wc[64];
    uint64_t t0 = vt_ms();
    c.noqp = 1;
    c.onecq = 1;
    c.cqe = 4096;
    c.len = 1 << 20;
    vt_end(&A, 0, &c);
    vt_end(&B, 1, &c);
    c = VT_RC;
    c.swr = c.rwr = 4;
    c.ssge = c.rsge = 1;
    c.len = 0;
    c.rd = 1;
    for (int i = 0; i < N; i++) {
        c.pd = A.pd;
        c.scq = c.rcq = A.scq;
        vt_end(&a[i], 0, &c);
        a[i].mr = A.mr;
        c.pd = B.pd;
        c.scq = c.rcq = B.scq;
        vt_end(&b[i], 1, &c);
        b[i].mr = B.mr;
        vt_join(&a[i], &b[i]);
    }
    for (int i = 0; i < N; i++)
        for (int j = 0; j < i; j += 7)
            WANT(a[i].qp->qp_num != a[j].qp->qp_num &&
                     (!vt.same || a[i].qp->qp_num != b[j].qp->qp_num),
                 "qp_num %x given twice", a[i].qp->qp_num);
    uint64_t t1 = vt_ms();
    for (int i = 0; i < N; i++) {
        *(int *)(A.buf + 64 * i) = i;
        *(int *)(B.buf + 64 * i) = -i;
        OK0(vt_recv(&a[i], i, A.buf + 65536 + 64 * i, 64));
        OK0(vt_recv(&b[i], i, B.buf + 65536 + 64 * i, 64));
    }
    for (int i = 0; i < N; i++) {
        OK0(vt_post(&a[i], IBV_WR_SEND, 10000 + i, A.buf + 64 * i, 8, IBV_SEND_SIGNALED, 0, 0, 0));
        OK0(vt_post(&b[i], IBV_WR_SEND, 10000 + i, B.buf + 64 * i, 8, IBV_SEND_SIGNALED, 0, 0, 0));
        OK0(vt_post(&a[i], IBV_WR_RDMA_READ, 20000 + i, A.buf + 524288 + 64 * i, 8,
                    IBV_SEND_SIGNALED, (uintptr_t)B.buf + 64 * i, B.mr->rkey, 0));
    }
    for (int side = 0; side < 2; side++) {
        int want = side ? 2 * N : 3 * N, got = 0;
        uint64_t end = vt_ms() + 10000;
        while (got < want && vt_ms() < end) {
            int n = ibv_poll_cq(side ? B.scq : A.scq, 64, wc);
            for (int i = 0; i < n; i++)
                WANT(!wc[i].status &&
                         wc[i].qp_num == (side ? b : a)[wc[i].wr_id % 10000].qp->qp_num,
                     "wr_id %llu: %s on QP %x", (unsigned long long)wc[i].wr_id,
                     ibv_wc_status_str(wc[i].status), wc[i].qp_num);
            got += n;
        }
        WANT(got == want, "%d completions, expected %d", got, want);
    }
    for (int i = 0; i < N; i++)
        WANT(*(int *)(B.buf + 65536 + 64 * i) == i && *(int *)(A.buf + 65536 + 64 * i) == -i &&
                 *(int *)(A.buf + 524288 + 64 * i) == -i,
             "pair %d: wrong data", i);
    uint64_t t2 = vt_ms();
    for (int i = 0; i < N; i++) {
        OK0(ibv_destroy_qp(a[i].qp));
        OK0(ibv_destroy_qp(b[i].qp));
    }
    for (int i = 0; i < 300; i++) {
        struct vt_end x, y;
        c.pd = A.pd;
        c.scq = c.rcq = A.scq;
        vt_end(&x, 0, &c);
        c.pd = B.pd;
        c.scq = c.rcq = B.scq;
        vt_end(&y, 1, &c);
        x.mr = A.mr;
        vt_join(&x, &y);
        if (i % 50 == 0) {
            OK0(vt_post(&x, IBV_WR_RDMA_WRITE, 7, A.buf, 8, IBV_SEND_SIGNALED, (uintptr_t)B.buf,
                        B.mr->rkey, 0));
            vt_want(A.scq, "one of 300 short-lived pairs", 7, IBV_WC_SUCCESS, -1);
        }
        OK0(ibv_destroy_qp(y.qp));
        OK0(ibv_destroy_qp(x.qp));
    }
    vt_pass("set-up %llu ms, traffic %llu ms, rest %llu ms", (unsigned long long)(t1 - t0),
            (unsigned long long)(t2 - t1), (unsigned long long)(vt_ms() - t2));
}
