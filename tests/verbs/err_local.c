/* SPDX-License-Identifier: BSD-3-Clause
 *
 * err_local: a wrong L_Key, a local buffer outside its region, a receive that may not be written,
 * an SGE of another PD: local protection error (IBTA 9.9.2) with wr_id and qp_num, later requests
 * flushed, nothing reaches the peer. */
#include "vt.h"
static void run(const char *what, int kind)
{
    struct vt_end a, b;
    struct vt_cfg c = VT_RC;
    struct ibv_wc wc[8];
    int want = IBV_WC_LOC_PROT_ERR, op = IBV_WR_RDMA_WRITE;
    c.len = 8192;
    vt_pair(&a, &b, &c);
    uint64_t raddr = (uintptr_t)b.buf;
    uint32_t rkey = b.mr->rkey, lkey = a.mr->lkey;
    struct ibv_mr *ro = NULL;
    void *laddr = a.buf;
    unsigned len = 64;
    switch (kind) {
    case 0:
        lkey ^= 0x5a5a00;
        break; /* unknown L_Key */
    case 1:
        ro = ibv_reg_mr(a.pd, a.buf, 4096, IBV_ACCESS_LOCAL_WRITE); /* region too short */
        WANT(ro, "ibv_reg_mr failed");
        lkey = ro->lkey;
        len = 4097;
        break;
    case 2: {
        struct ibv_pd *other = ibv_alloc_pd(a.ctx); /* L_Key of another PD */
        ro = ibv_reg_mr(other, a.buf, 4096, VT_ACCESS);
        WANT(ro, "ibv_reg_mr failed");
        lkey = ro->lkey;
        break;
    }
    case 3:
        ro = ibv_reg_mr(a.pd, a.buf, 4096,
                        IBV_ACCESS_REMOTE_READ); /* READ into memory without local write */
        WANT(ro, "ibv_reg_mr failed");
        lkey = ro->lkey;
        op = IBV_WR_RDMA_READ;
        break;
    }
    struct ibv_sge s = {(uintptr_t)laddr, len, lkey}, good = {(uintptr_t)a.buf, 8, a.mr->lkey};
    struct ibv_send_wr w[4] =
        {{.wr_id = 0xA100000000000001,
          .sg_list = &good,
          .num_sge = 1,
          .opcode = IBV_WR_RDMA_WRITE,
          .send_flags = IBV_SEND_SIGNALED,
          .next = &w[1]},
         {.wr_id = 0xA100000000000002, .sg_list = &s, .num_sge = 1, .opcode = op, .next = &w[2]},
         {.wr_id = 0xA100000000000003,
          .sg_list = &good,
          .num_sge = 1,
          .opcode = IBV_WR_RDMA_WRITE,
          .next = &w[3]},
         {.wr_id = 0xA100000000000004,
          .sg_list = &good,
          .num_sge = 1,
          .opcode = IBV_WR_RDMA_WRITE,
          .send_flags = IBV_SEND_SIGNALED}},
                       *bad;
    w[0].wr.rdma.remote_addr = w[2].wr.rdma.remote_addr = w[3].wr.rdma.remote_addr =
        (uintptr_t)b.buf + 4096;
    w[0].wr.rdma.rkey = w[2].wr.rdma.rkey = w[3].wr.rdma.rkey = b.mr->rkey;
    w[1].wr.rdma.remote_addr = raddr;
    w[1].wr.rdma.rkey = rkey;
    OK0(vt_recv(&b, 7, b.buf, 8));
    OK0(ibv_post_send(a.qp, w, &bad));
    int n = vt_poll(a.scq, wc, 4, 8000);
    WANT(n == 4, "%s: %d completions, expected 4 (success, error, two flushed)", what, n);
    for (int i = 0; i < 4; i++) {
        WANT(wc[i].wr_id == w[i].wr_id, "%s: completion %d has wr_id %llx, expected %llx", what, i,
             (unsigned long long)wc[i].wr_id, (unsigned long long)w[i].wr_id);
        WANT(wc[i].qp_num == a.qp->qp_num, "%s: completion %d has qp_num %x, expected %x", what, i,
             wc[i].qp_num, a.qp->qp_num);
    }
    WANT(wc[0].status == IBV_WC_SUCCESS, "%s: request before the bad one: %s, expected success",
         what, ibv_wc_status_str(wc[0].status));
    if (want == -2)
        WANT(wc[1].status == IBV_WC_REM_ACCESS_ERR || wc[1].status == IBV_WC_REM_INV_REQ_ERR,
             "%s: %s, expected remote access or remote invalid request error", what,
             ibv_wc_status_str(wc[1].status));
    else
        WANT((int)wc[1].status == want, "%s: %d (%s), expected %d (%s)", what, wc[1].status,
             ibv_wc_status_str(wc[1].status), want, ibv_wc_status_str(want));
    for (int i = 2; i < 4; i++)
        WANT(wc[i].status == IBV_WC_WR_FLUSH_ERR, "%s: later request %d: %s, expected flushed",
             what, i, ibv_wc_status_str(wc[i].status));
    int st = vt_wait_state(a.qp, IBV_QPS_ERR, 1000);
    WANT(st == IBV_QPS_ERR, "%s: requester's state %d, expected ERR (6)", what, st);
    bool remote = want != IBV_WC_LOC_PROT_ERR;
    st = vt_wait_state(b.qp, IBV_QPS_ERR, remote ? 1000 : 100);
    WANT(st == (remote ? IBV_QPS_ERR : IBV_QPS_RTS), "%s: responder's state %d, expected %d", what,
         st, remote ? IBV_QPS_ERR : IBV_QPS_RTS);
    if (remote)
        vt_want(b.rcq, what, 7, IBV_WC_WR_FLUSH_ERR, -1);
    OK0(ibv_destroy_qp(a.qp));
    OK0(ibv_destroy_qp(b.qp));
}
int main(int argc, char **argv)
{
    vt_start(argc, argv, "err_local");
    static const char *t[] = {"local buffer past its region",
                              "READ into a region without local write", "L_Key of another PD",
                              "unknown L_Key"};
    static const int k[] = {1, 3, 2, 0};
    for (int i = 0; i < 4; i++)
        run(t[i], k[i]);
    vt_pass(NULL);
}
