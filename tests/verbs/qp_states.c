/* SPDX-License-Identifier: BSD-3-Clause
 *
 * qp_states: allowed and refused transitions, ibv_query_qp gives back what was set, qp->state
 * follows, RESET to RESET is fine, a QP goes ERR -> RESET -> RTS again and carries data. */
#include "vt.h"
int main(int argc, char **argv)
{
    vt_start(argc, argv, "qp_states");
    struct vt_end a, b;
    struct ibv_qp_attr q;
    struct ibv_qp_init_attr qi;
    vt_end(&a, 0, &VT_RC);
    vt_end(&b, 1, &VT_RC);
    WANT(vt_state(a.qp) == IBV_QPS_RESET && a.qp->state == IBV_QPS_RESET,
         "new QP: state %d / %d, expected RESET (0)", vt_state(a.qp), a.qp->state);
    WANT(a.qp->qp_num > 1 && a.qp->qp_num < 1u << 24 && a.qp->qp_num != b.qp->qp_num,
         "qp_num %x and %x, expected two 24-bit numbers above 1", a.qp->qp_num, b.qp->qp_num);
    OK0(vt_modify(a.qp, IBV_QPS_RESET));
    int r = vt_try_rts(&a);
    WANT(r, "RESET to RTS accepted, expected EINVAL");
    WANT(r == EINVAL, "RESET to RTS gave %d, expected EINVAL (22)", r);
    struct ibv_qp_attr m = {.qp_state = IBV_QPS_INIT, .port_num = vt.port};
    r = ibv_modify_qp(a.qp, &m, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX);
    WANT(r == EINVAL, "RESET to INIT without ACCESS_FLAGS gave %d, expected EINVAL", r);
    m.port_num = 99;
    r = ibv_modify_qp(a.qp, &m,
                      IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS);
    WANT(r == EINVAL, "INIT with port 99 gave %d, expected EINVAL", r);
    OK0(vt_try_init(&a));
    WANT(a.qp->state == IBV_QPS_INIT, "qp->state %d after INIT, expected 1", a.qp->state);
    OK0(vt_try_init(&a));           /* INIT to INIT */
    OK0(vt_recv(&a, 5, a.buf, 64)); /* receives may be posted from INIT on */
    r = vt_try_rts(&a);
    WANT(r == EINVAL, "INIT to RTS gave %d, expected EINVAL", r);
    OK0(vt_try_rtr(&a, b.qp->qp_num, &vt.gid[1]));
    r = vt_try_init(&a);
    WANT(r == EINVAL, "RTR to INIT gave %d, expected EINVAL", r);
    OK0(vt_try_rts(&a));
    memset(&q, 0xee, sizeof(q));
    memset(&qi, 0xee, sizeof(qi));
    OK0(ibv_query_qp(a.qp, &q,
                     IBV_QP_STATE | IBV_QP_AV | IBV_QP_CAP | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                         IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                         IBV_QP_MIN_RNR_TIMER | IBV_QP_MAX_QP_RD_ATOMIC |
                         IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_ACCESS_FLAGS | IBV_QP_PORT |
                         IBV_QP_RQ_PSN | IBV_QP_SQ_PSN,
                     &qi));
    WANT(q.qp_state == IBV_QPS_RTS && q.path_mtu == vt.mtu && q.dest_qp_num == b.qp->qp_num &&
             q.port_num == vt.port,
         "query: state %d mtu %d dest %x port %d, expected 3 %d %x %d", q.qp_state, q.path_mtu,
         q.dest_qp_num, q.port_num, vt.mtu, b.qp->qp_num, vt.port);
    WANT(q.timeout == 14 && q.retry_cnt == 7 && q.rnr_retry == 7 && q.min_rnr_timer == 12,
         "query: timeout %d retry_cnt %d rnr_retry %d min_rnr_timer %d, expected 14 7 7 12",
         q.timeout, q.retry_cnt, q.rnr_retry, q.min_rnr_timer);
    WANT(q.max_rd_atomic == 4 && q.max_dest_rd_atomic == 4,
         "query: max_rd_atomic %d max_dest_rd_atomic %d, expected 4 4", q.max_rd_atomic,
         q.max_dest_rd_atomic);
    WANT(q.ah_attr.is_global == 1 && q.ah_attr.grh.sgid_index == vt.gidx[0] &&
             !memcmp(&q.ah_attr.grh.dgid, &vt.gid[1], 16),
         "query: ah_attr is_global %d sgid_index %d, expected 1 %d and the peer's GID",
         q.ah_attr.is_global, q.ah_attr.grh.sgid_index, vt.gidx[0]);
    WANT((q.qp_access_flags &
          (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)) == 14,
         "query: qp_access_flags %x, expected the remote bits (e)", q.qp_access_flags);
    WANT(qi.qp_type == IBV_QPT_RC && qi.send_cq == a.scq && qi.recv_cq == a.rcq &&
             qi.qp_context == &a && qi.srq == NULL,
         "query: init attributes (type %d) differ from those given", qi.qp_type);
    WANT(qi.cap.max_send_wr >= 64 && qi.cap.max_recv_wr >= 64 && qi.cap.max_send_sge >= 2,
         "query: caps %u %u %u, expected >= 64 64 2", qi.cap.max_send_wr, qi.cap.max_recv_wr,
         qi.cap.max_send_sge);
    vt_up(&b, a.qp->qp_num, &vt.gid[0]);
    OK0(vt_post(&b, IBV_WR_SEND, 9, b.buf, 8, IBV_SEND_SIGNALED, 0, 0, 0));
    vt_want(a.rcq, "receive posted in INIT", 5, IBV_WC_SUCCESS, IBV_WC_RECV);
    vt_want(b.scq, "send", 9, IBV_WC_SUCCESS, IBV_WC_SEND);
    for (int round = 0; round < 3; round++) { /* reuse */
        OK0(vt_recv(&a, 6, a.buf, 64));
        OK0(vt_modify(a.qp, IBV_QPS_ERR));
        OK0(vt_modify(a.qp, IBV_QPS_ERR));
        vt_want(a.rcq, "flushed", 6, IBV_WC_WR_FLUSH_ERR, -1);
        OK0(vt_modify(b.qp, round & 1 ? IBV_QPS_ERR : IBV_QPS_RESET));
        OK0(vt_modify(a.qp, IBV_QPS_RESET));
        OK0(vt_modify(b.qp, IBV_QPS_RESET));
        WANT(vt_state(a.qp) == IBV_QPS_RESET, "state %d after ERR to RESET, expected 0",
             vt_state(a.qp));
        vt_join(&a, &b);
        OK0(vt_recv(&b, 60, b.buf, 64));
        OK0(vt_post(&a, IBV_WR_SEND, 61, a.buf, 8, IBV_SEND_SIGNALED, 0, 0, 0));
        vt_want(a.scq, "send of the reused QP", 61, IBV_WC_SUCCESS, IBV_WC_SEND);
        vt_want(b.rcq, "receive of the reused QP", 60, IBV_WC_SUCCESS, IBV_WC_RECV);
    }
    /* receives posted and then RESET: gone without a trace */
    OK0(vt_recv(&a, 70, a.buf, 64));
    OK0(vt_modify(a.qp, IBV_QPS_RESET));
    vt_none(a.rcq, "receive of a QP put into RESET", 100);
    vt_pass(NULL);
}
