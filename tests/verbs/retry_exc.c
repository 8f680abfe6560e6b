/* SPDX-License-Identifier: BSD-3-Clause
 *
 * retry_exc: a peer that is gone: RETRY_EXC_ERR (12) within the time that timeout and retry_cnt
 * allow (not at once for ever, not minutes), first request only, later ones flushed; timeout 0
 * waits for ever; other QPs are not disturbed. */
#include "vt.h"
int main(int argc, char **argv)
{
    vt_start(argc, argv, "retry_exc");
    struct vt_end a, b, c, d;
    struct vt_cfg g = VT_RC;
    uint64_t t;
    vt_pair(&c, &d, &VT_RC);
    g.timeout = 14;
    g.retry = 2;
    vt_pair(&a, &b, &g); /* 67 ms x 3 */
    OK0(ibv_destroy_qp(b.qp));
    t = vt_ms();
    OK0(vt_post(&a, IBV_WR_RDMA_READ, 1, a.buf, 64, 0, (uintptr_t)b.buf, b.mr->rkey, 0));
    OK0(vt_post(&a, IBV_WR_SEND, 2, a.buf, 64, 0, 0, 0, 0));
    for (int i = 0; i < 20; i++) {
        OK0(vt_recv(&d, i, d.buf, 64));
        OK0(vt_post(&c, IBV_WR_SEND, i, c.buf, 8, IBV_SEND_SIGNALED, 0, 0, 0));
        vt_want(c.scq, "other QP meanwhile", i, IBV_WC_SUCCESS, IBV_WC_SEND);
        vt_want(d.rcq, "other QP meanwhile", i, IBV_WC_SUCCESS, IBV_WC_RECV);
    }
    vt_want(a.scq, "READ from a destroyed QP", 1, IBV_WC_RETRY_EXC_ERR, -1);
    t = vt_ms() - t;
    vt_want(a.scq, "later SEND", 2, IBV_WC_WR_FLUSH_ERR, -1);
    WANT(t >= 60 && t < 6000,
         "RETRY_EXC_ERR after %llu ms with timeout 67 ms and retry_cnt 2, expected 60 to 6000",
         (unsigned long long)t);
    WANT(vt_wait_state(a.qp, IBV_QPS_ERR, 500) == IBV_QPS_ERR, "state %d, expected ERR",
         vt_state(a.qp));
    /* timeout 0: no timer at all */
    g.timeout = 0;
    g.retry = 1;
    vt_pair(&a, &b, &g);
    OK0(ibv_destroy_qp(b.qp));
    OK0(vt_post(&a, IBV_WR_SEND, 3, a.buf, 64, IBV_SEND_SIGNALED, 0, 0, 0));
    vt_none(a.scq, "timeout 0 (infinite), peer gone", 2500);
    OK0(vt_modify(a.qp, IBV_QPS_ERR));
    vt_want(a.scq, "after ERR", 3, IBV_WC_WR_FLUSH_ERR, -1);
    vt_pass("error after %llu ms", (unsigned long long)t);
}
