/* SPDX-License-Identifier: BSD-3-Clause
 *
 * flush_late_recv: receives (and sends) posted when the QP is already in ERR are accepted and
 * complete as flushed, so that a "last receive" can serve as drain marker (kernel ib_drain_rq,
 * libfabric, SPDK); list posts keep their order. */
#include "vt.h"
int main(int argc, char **argv)
{
    vt_start(argc, argv, "flush_late_recv");
    struct vt_end a, b;
    struct ibv_wc wc[16];
    vt_pair(&a, &b, &VT_RC);
    for (int i = 0; i < 4; i++)
        OK0(vt_recv(&a, i, a.buf, 64));
    OK0(vt_modify(a.qp, IBV_QPS_ERR));
    WANT(vt_poll(a.rcq, wc, 4, 3000) == 4, "fewer than 4 flushed receives");
    struct ibv_sge s = {(uintptr_t)a.buf, 64, a.mr->lkey};
    struct ibv_recv_wr w[3], *bad;
    for (int i = 0; i < 3; i++)
        w[i] = (struct ibv_recv_wr){
            .wr_id = 100 + i, .sg_list = &s, .num_sge = 1, .next = i < 2 ? &w[i + 1] : NULL};
    OK0(ibv_post_recv(a.qp, w, &bad));
    int n = vt_poll(a.rcq, wc, 3, 3000);
    WANT(n == 3, "%d completions for 3 receives posted in ERR, expected 3 flushed", n);
    for (int i = 0; i < 3; i++)
        WANT(wc[i].wr_id == 100u + i && wc[i].status == IBV_WC_WR_FLUSH_ERR &&
                 wc[i].qp_num == a.qp->qp_num,
             "completion %d: wr_id %llu %s, expected %d flushed", i,
             (unsigned long long)wc[i].wr_id, ibv_wc_status_str(wc[i].status), 100 + i);
    for (int i = 0; i < 3; i++)
        OK0(vt_post(&a, IBV_WR_SEND, 200 + i, a.buf, 8, 0, 0, 0, 0));
    n = vt_poll(a.scq, wc, 3, 3000);
    WANT(n == 3 && wc[2].wr_id == 202 && wc[2].status == IBV_WC_WR_FLUSH_ERR,
         "%d completions for 3 sends posted in ERR, expected 3 flushed", n);
    vt_pass(NULL);
}
