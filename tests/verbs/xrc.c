/* SPDX-License-Identifier: BSD-3-Clause
 *
 * xrc: two shared receive queues of one XRC queue pair: the sender chooses by number, receives
 * complete where their queue says; WRITE, READ and atomics; a domain by file is found again;
 * ibv_open_qp; EBUSY; wr_set_xrc_srqn; an unused number ends in REM_INV_REQ_ERR. */
#include "vt.h"
static struct ibv_xrcd *domain(int fd, int oflags)
{
    struct ibv_xrcd_init_attr a = {
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = fd, .oflags = oflags};
    return ibv_open_xrcd(vt.ctx[1], &a);
}
static struct ibv_qp *make(int side, struct ibv_qp_init_attr_ex *ia)
{
    struct ibv_qp *qp = ibv_create_qp_ex(vt.ctx[side], ia);
    WANT(qp, "ibv_create_qp_ex type %d failed, errno %d", ia->qp_type, errno);
    struct ibv_qp_attr a = {
        .qp_state = IBV_QPS_INIT, .port_num = vt.port, .qp_access_flags = VT_ACCESS};
    OK0(ibv_modify_qp(qp, &a,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
    return qp;
}
static void up(struct ibv_qp *qp, int side, uint32_t peer, bool sends)
{
    struct ibv_qp_attr a = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = peer,
        .max_dest_rd_atomic = 4,
        .min_rnr_timer = 1,
        .ah_attr = {.is_global = 1,
                    .port_num = vt.port,
                    .grh = {.dgid = vt.gid[!side], .sgid_index = vt.gidx[side], .hop_limit = 64}}};
    int m = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    OK0(ibv_modify_qp(qp, &a, sends ? m : m | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
    a.qp_state = IBV_QPS_RTS;
    a.timeout = 14;
    a.retry_cnt = a.rnr_retry = 7;
    a.max_rd_atomic = 4;
    m = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_SQ_PSN;
    OK0(ibv_modify_qp(
        qp, &a, !sends ? m : m | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC));
}
int main(int argc, char **argv)
{
    vt_start(argc, argv, "xrc");
    enum { LEN = 65536 };
    struct ibv_pd *pd[2];
    struct ibv_mr *mr[2];
    char *buf[2];
    struct ibv_cq *scq, *cq[2];
    struct ibv_srq *srq[2];
    uint32_t num[2], none;
    FILE *f = tmpfile();
    WANT(f, "tmpfile");
    WANT(!domain(fileno(f), 0) && errno == EOPNOTSUPP,
         "a file's domain that this process doesn't have: errno %d, expected EOPNOTSUPP", errno);
    struct ibv_xrcd *xrcd = domain(fileno(f), O_CREAT), *again = domain(fileno(f), 0);
    WANT(xrcd && again == xrcd, "a file's domain: %p, then %p, expected the same", (void *)xrcd,
         (void *)again);
    WANT(!domain(fileno(f), O_CREAT | O_EXCL) && errno == EEXIST,
         "O_EXCL: errno %d, expected EEXIST", errno);
    OK0(ibv_close_xrcd(again));
    WANT(!domain(-1, 0) && errno == EINVAL, "no file and no O_CREAT: errno %d", errno);
    for (int i = 0; i < 2; i++) {
        pd[i] = ibv_alloc_pd(vt.ctx[i]);
        buf[i] = calloc(1, LEN);
        mr[i] = ibv_reg_mr(pd[i], buf[i], LEN, VT_ACCESS);
        cq[i] = ibv_create_cq(vt.ctx[1], 64, NULL, NULL, 0);
        WANT(pd[i] && mr[i] && cq[i], "set-up failed");
    }
    scq = ibv_create_cq(vt.ctx[0], 64, NULL, NULL, 0);
    for (int i = 0; i < 2; i++) {
        struct ibv_srq_init_attr_ex sa = {.attr = {.max_wr = 16, .max_sge = 1},
                                          .comp_mask = IBV_SRQ_INIT_ATTR_TYPE |
                                                       IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ |
                                                       IBV_SRQ_INIT_ATTR_XRCD,
                                          .srq_type = IBV_SRQT_XRC,
                                          .pd = pd[1],
                                          .xrcd = xrcd,
                                          .cq = cq[i]};
        srq[i] = ibv_create_srq_ex(vt.ctx[1], &sa);
        WANT(srq[i], "ibv_create_srq_ex failed, errno %d", errno);
        OK0(ibv_get_srq_num(srq[i], &num[i]));
    }
    WANT(num[0] != num[1], "both queues have the number %u", num[0]);
    struct ibv_srq_init_attr plain = {.attr = {.max_wr = 1, .max_sge = 1}};
    struct ibv_srq *basic = ibv_create_srq(pd[1], &plain);
    WANT(basic && ibv_get_srq_num(basic, &none) == EINVAL, "a queue without domain has a number");
    OK0(ibv_destroy_srq(basic));
    struct ibv_qp_init_attr_ex ra = {
        .qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = xrcd};
    struct ibv_qp_init_attr_ex sa = {.qp_type = IBV_QPT_XRC_SEND,
                                     .comp_mask =
                                         IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                     .send_ops_flags = IBV_QP_EX_WITH_SEND_WITH_IMM,
                                     .pd = pd[0],
                                     .send_cq = scq,
                                     .cap = {.max_send_wr = 16, .max_send_sge = 1}};
    struct ibv_qp *rq = make(1, &ra), *sq = make(0, &sa);
    up(rq, 1, sq->qp_num, false);
    up(sq, 0, rq->qp_num, true);
    struct ibv_qp_open_attr oa = {.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
                                               IBV_QP_OPEN_ATTR_TYPE,
                                  .qp_num = rq->qp_num,
                                  .xrcd = xrcd,
                                  .qp_type = IBV_QPT_XRC_RECV};
    struct ibv_qp *other = ibv_open_qp(vt.ctx[1], &oa);
    WANT(other && other->qp_num == rq->qp_num && vt_state(other) == IBV_QPS_RTS, "ibv_open_qp");
    OK0(ibv_destroy_qp(rq)); /* the other handle keeps it */
    struct ibv_recv_wr w = {0}, *badr;
    WANT(ibv_post_recv(other, &w, &badr) == EINVAL, "a receive for the queue pair is taken");
    /* SENDs go where the sender says, one after the other */
    for (int i = 0; i < 8; i++) {
        int to = (i >> 1 ^ i) & 1;
        unsigned len = 900 * i + 1;
        struct ibv_sge rs = {(uintptr_t)buf[1] + 8192 * i, 8192, mr[1]->lkey};
        struct ibv_recv_wr r = {.wr_id = 100 + i, .sg_list = &rs, .num_sge = 1};
        OK0(ibv_post_srq_recv(srq[to], &r, &badr));
        vt_fill(buf[0], len, i);
        if (i < 6) {
            struct ibv_sge s = {(uintptr_t)buf[0], len, mr[0]->lkey};
            struct ibv_send_wr sw = {.wr_id = i,
                                     .sg_list = &s,
                                     .num_sge = 1,
                                     .opcode = IBV_WR_SEND,
                                     .send_flags = IBV_SEND_SIGNALED,
                                     .qp_type.xrc.remote_srqn = num[to]},
                               *bad;
            OK0(ibv_post_send(sq, &sw, &bad));
        } else {
            struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(sq);
            ibv_wr_start(ex);
            ex->wr_id = i;
            ex->wr_flags = IBV_SEND_SIGNALED;
            ibv_wr_send_imm(ex, htonl(i));
            ibv_wr_set_xrc_srqn(ex, num[to]);
            ibv_wr_set_sge(ex, mr[0]->lkey, (uintptr_t)buf[0], len);
            OK0(ibv_wr_complete(ex));
        }
        vt_want(scq, "send", i, IBV_WC_SUCCESS, IBV_WC_SEND);
        struct ibv_wc wc = vt_want(cq[to], "receive", 100 + i, IBV_WC_SUCCESS, IBV_WC_RECV);
        WANT(wc.byte_len == len && wc.qp_num == other->qp_num, "byte_len %u qp_num %x", wc.byte_len,
             wc.qp_num);
        vt_none(cq[!to], "the other queue's completions", 1);
        SAME(buf[1] + 8192 * i, len, i, "XRC SEND");
    }
    /* memory, with the rights of the queue's domain */
    static const int ops[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD};
    memset(buf[1] + 32768, 0, 8);
    for (int i = 0; i < 3; i++) {
        struct ibv_sge s = {(uintptr_t)buf[0] + 32768 * (i == 1), i == 2 ? 8 : 5000, mr[0]->lkey};
        struct ibv_send_wr sw = {.wr_id = 50 + i,
                                 .sg_list = &s,
                                 .num_sge = 1,
                                 .opcode = ops[i],
                                 .send_flags = IBV_SEND_SIGNALED},
                           *bad;
        sw.qp_type.xrc.remote_srqn = num[i & 1];
        if (i == 2) {
            sw.wr.atomic.remote_addr = (uintptr_t)buf[1] + 32768;
            sw.wr.atomic.rkey = mr[1]->rkey;
            sw.wr.atomic.compare_add = 41;
        } else {
            sw.wr.rdma.remote_addr = (uintptr_t)buf[1];
            sw.wr.rdma.rkey = mr[1]->rkey;
        }
        vt_fill(buf[0], 5000, 77);
        OK0(ibv_post_send(sq, &sw, &bad));
        vt_want(scq, "memory", 50 + i, IBV_WC_SUCCESS, -1);
    }
    SAME(buf[1], 5000, 77, "XRC WRITE");
    SAME(buf[0] + 32768, 5000, 77, "XRC READ");
    WANT(*(uint64_t *)(void *)(buf[1] + 32768) == 41, "XRC FETCH_ADD");
    WANT(ibv_close_xrcd(xrcd) == EBUSY, "a domain in use is closed");
    WANT(ibv_destroy_cq(cq[0]) == EBUSY, "the CQ of a shared queue is destroyed");
    /* an unused number */
    struct ibv_sge s = {(uintptr_t)buf[0], 8, mr[0]->lkey};
    struct ibv_send_wr sw = {.wr_id = 99, .sg_list = &s, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;
    sw.qp_type.xrc.remote_srqn = 0x7ABCDE;
    OK0(ibv_post_send(sq, &sw, &bad));
    vt_want(scq, "SEND to a queue that isn't there", 99, IBV_WC_REM_INV_REQ_ERR, -1);
    OK0(ibv_destroy_qp(other));
    OK0(ibv_destroy_qp(sq));
    for (int i = 0; i < 2; i++)
        OK0(ibv_destroy_srq(srq[i]));
    OK0(ibv_close_xrcd(xrcd));
    vt_pass(NULL);
}
