/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rnr: rnr_retry 7 waits for ever (a receive posted after 1.5 s is found), rnr_retry 0 and 2 end in
 * RNR_RETRY_EXC_ERR (13) in due time, with order kept for what follows; WRITE without immediate
 * needs no receive. */
#include "vt.h"
int main(int argc, char **argv)
{
    vt_start(argc, argv, "rnr");
    struct vt_end a, b;
    struct vt_cfg c = VT_RC;
    uint64_t t;
    c.rnr_timer = 14; /* 1.28 ms */
    vt_pair(&a, &b, &c);
    OK0(vt_post(&a, IBV_WR_RDMA_WRITE, 1, a.buf, 8, IBV_SEND_SIGNALED, (uintptr_t)b.buf, b.mr->rkey,
                0));
    vt_want(a.scq, "WRITE without a receive at the peer", 1, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE);
    vt_fill(a.buf, 9000, 3);
    OK0(vt_post(&a, IBV_WR_SEND, 2, a.buf, 9000, IBV_SEND_SIGNALED, 0, 0, 0));
    OK0(vt_post(&a, IBV_WR_RDMA_WRITE, 3, a.buf, 8, IBV_SEND_SIGNALED, (uintptr_t)b.buf + 16384,
                b.mr->rkey, 0));
    vt_none(a.scq, "rnr_retry 7 without a receive", 1500);
    WANT(vt_state(a.qp) == IBV_QPS_RTS, "state %d while waiting with rnr_retry 7, expected RTS",
         vt_state(a.qp));
    OK0(vt_recv(&b, 4, b.buf + 32768, 9000));
    vt_want(a.scq, "send after the receive was posted", 2, IBV_WC_SUCCESS, IBV_WC_SEND);
    vt_want(a.scq, "WRITE after it", 3, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE);
    vt_want(b.rcq, "late receive", 4, IBV_WC_SUCCESS, IBV_WC_RECV);
    SAME(b.buf + 32768, 9000, 3, "data");
    OK0(ibv_destroy_qp(a.qp));
    OK0(ibv_destroy_qp(b.qp));
    for (int k = 0; k < 2; k++) {
        c.rnr = k ? 2 : 0;
        c.rnr_timer = 20; /* 10 ms */
        vt_pair(&a, &b, &c);
        t = vt_ms();
        OK0(vt_post(&a, IBV_WR_SEND, 5, a.buf, 8, 0, 0, 0, 0));
        OK0(vt_post(&a, IBV_WR_SEND, 6, a.buf, 8, 0, 0, 0, 0));
        vt_want(a.scq, k ? "rnr_retry 2" : "rnr_retry 0", 5, IBV_WC_RNR_RETRY_EXC_ERR, -1);
        t = vt_ms() - t;
        vt_want(a.scq, "later request", 6, IBV_WC_WR_FLUSH_ERR, -1);
        WANT(t < 1000 && (!k || t >= 15),
             "rnr_retry %d with 10 ms: error after %llu ms, expected %d to 1000", k ? 2 : 0,
             (unsigned long long)t, k ? 15 : 0);
        WANT(vt_wait_state(a.qp, IBV_QPS_ERR, 500) == IBV_QPS_ERR && vt_state(b.qp) == IBV_QPS_RTS,
             "states %d %d, expected ERR and RTS", vt_state(a.qp), vt_state(b.qp));
        OK0(ibv_destroy_qp(a.qp));
        OK0(ibv_destroy_qp(b.qp));
    }
    vt_pass(NULL);
}
