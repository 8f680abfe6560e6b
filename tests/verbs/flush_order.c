/* SPDX-License-Identifier: BSD-3-Clause
 *
 * flush_order: a QP put into ERR flushes every outstanding receive and send, each once, in posting
 * order, unsignaled sends too, with wr_id and qp_num kept; a send posted in ERR is accepted and
 * flushed after them (drain "beacon"). */
#include "vt.h"
#define N 12
int main(int argc, char **argv)
{
    vt_start(argc, argv, "flush_order");
    struct vt_end a, b;
    struct ibv_wc wc[64];
    struct vt_cfg c = VT_RC;
    c.rnr_timer = 0; /* 655 ms: the first send stays unanswered (b has no receive) */
    vt_pair(&a, &b, &c);
    for (int i = 0; i < N; i++)
        OK0(vt_recv(&a, 500 + i, a.buf + 64 * i, 64));
    for (int i = 0; i < N; i++)
        OK0(vt_post(&a, i % 3 == 2 ? IBV_WR_RDMA_READ : IBV_WR_SEND, 100 + i, a.buf + 8192, 32,
                    i % 2 ? IBV_SEND_SIGNALED : 0, (uintptr_t)b.buf, b.mr->rkey, 0));
    vt_sleep(100);
    vt_none(a.scq, "sends to a peer without a receive", 50);
    OK0(vt_modify(a.qp, IBV_QPS_ERR));
    WANT(vt_state(a.qp) == IBV_QPS_ERR, "state %d after ibv_modify_qp to ERR, expected 6",
         vt_state(a.qp));
    OK0(vt_post(&a, IBV_WR_SEND, 199, a.buf, 8, IBV_SEND_SIGNALED, 0, 0, 0));
    int n = vt_poll(a.scq, wc, N + 1, 5000);
    WANT(n == N + 1,
         "%d send completions after ERR, expected %d (all sends, unsignaled too, and the one "
         "posted in ERR)",
         n, N + 1);
    for (int i = 0; i < n; i++) {
        unsigned want = i < N ? 100 + i : 199;
        WANT(wc[i].status == IBV_WC_WR_FLUSH_ERR, "send %d: status %s, expected flushed", i,
             ibv_wc_status_str(wc[i].status));
        WANT(wc[i].wr_id == want, "send completion %d has wr_id %llu, expected %u (posting order)",
             i, (unsigned long long)wc[i].wr_id, want);
        WANT(wc[i].qp_num == a.qp->qp_num, "send completion %d: qp_num %x, expected %x", i,
             wc[i].qp_num, a.qp->qp_num);
    }
    n = vt_poll(a.rcq, wc, N, 5000);
    WANT(n == N, "%d receive completions after ERR, expected %d", n, N);
    for (int i = 0; i < n; i++) {
        unsigned want = 500 + i;
        WANT(wc[i].status == IBV_WC_WR_FLUSH_ERR && wc[i].wr_id == want &&
                 wc[i].qp_num == a.qp->qp_num,
             "receive completion %d: wr_id %llu %s qp %x, expected wr_id %u flushed qp %x", i,
             (unsigned long long)wc[i].wr_id, ibv_wc_status_str(wc[i].status), wc[i].qp_num, want,
             a.qp->qp_num);
    }
    vt_none(a.scq, "after the flush", 100);
    vt_none(a.rcq, "after the flush", 50);
    /* and again: the QP stays usable for drains until it is destroyed */
    OK0(vt_post(&a, IBV_WR_SEND, 777, a.buf, 8, 0, 0, 0, 0));
    vt_want(a.scq, "second beacon, unsignaled", 777, IBV_WC_WR_FLUSH_ERR, -1);
    /* peer untouched: still RTS, nothing completed there */
    WANT(vt_state(b.qp) == IBV_QPS_RTS, "peer's state %d, expected RTS (3)", vt_state(b.qp));
    vt_none(b.rcq, "peer", 20);
    OK0(ibv_destroy_qp(a.qp));
    OK0(ibv_destroy_qp(b.qp));
    vt_pass(NULL);
}
