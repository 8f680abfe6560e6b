/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cq_ex: ibv_create_cq_ex, either absent with EOPNOTSUPP (programs then fall back), or complete:
 * start_poll ENOENT when empty, next_poll and end_poll (see cq_ex_drain for the end of a queue),
 * read_* fields, ibv_cq_ex_to_cq with ibv_poll_cq and events; unknown wc_flags refused. */
#include "vt.h"
int main(int argc, char **argv)
{
    vt_start(argc, argv, "cq_ex");
    struct ibv_comp_channel *ch = ibv_create_comp_channel(vt.ctx[1]);
    int cookie;
    struct ibv_cq_init_attr_ex ca = {.cqe = 64,
                                     .cq_context = &cookie,
                                     .channel = ch,
                                     .wc_flags = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM |
                                                 IBV_WC_EX_WITH_QP_NUM | IBV_WC_EX_WITH_SRC_QP};
    errno = 0;
    struct ibv_cq_ex *x = ibv_create_cq_ex(vt.ctx[1], &ca);
    if (!x) {
        WANT(errno == EOPNOTSUPP || errno == ENOSYS,
             "ibv_create_cq_ex failed with errno %d (%s), expected a CQ or EOPNOTSUPP", errno,
             strerror(errno));
        vt_pass("not offered: errno %d", errno);
    }
    struct ibv_cq *cq = ibv_cq_ex_to_cq(x);
    struct vt_end a, b;
    struct vt_cfg c = VT_RC;
    WANT(cq && cq->cqe >= 64 && cq->cq_context == &cookie && cq->channel == ch,
         "ibv_cq_ex_to_cq: cqe %d or context or channel wrong", cq ? cq->cqe : -1);
    vt_end(&a, 0, &c);
    c.rcq = cq;
    vt_end(&b, 1, &c);
    vt_join(&a, &b);
    struct ibv_poll_cq_attr pa = {0};
    int r = ibv_start_poll(x, &pa);
    WANT(r == ENOENT, "ibv_start_poll on an empty CQ gave %d, expected ENOENT (2)", r);
    for (int i = 0; i < 8; i++)
        OK0(vt_recv(&b, 70 + i, b.buf + 64 * i, 64));
    OK0(ibv_req_notify_cq(cq, 0));
    OK0(vt_post(&a, IBV_WR_SEND, 1, a.buf, 5, 0, 0, 0, 0));
    OK0(vt_post(&a, IBV_WR_SEND_WITH_IMM, 2, a.buf, 6, 0, 0, 0, htonl(9)));
    OK0(vt_post(&a, IBV_WR_RDMA_WRITE_WITH_IMM, 3, a.buf, 7, IBV_SEND_SIGNALED, (uintptr_t)b.buf,
                b.mr->rkey, htonl(10)));
    vt_want(a.scq, "requests", 3, IBV_WC_SUCCESS, -1);
    struct ibv_cq *ec;
    void *ctx;
    WANT(vt_readable(ch->fd, 2000) && !ibv_get_cq_event(ch, &ec, &ctx) && ec == cq &&
             ctx == &cookie,
         "no event of the extended CQ, expected one");
    ibv_ack_cq_events(ec, 1);
    vt_sleep(100);
    OK0(ibv_start_poll(x, &pa));
    static const int op[] = {IBV_WC_RECV, IBV_WC_RECV, IBV_WC_RECV_RDMA_WITH_IMM};
    for (int i = 0; i < 3; i++) {
        if (i) {
            r = ibv_next_poll(x);
            WANT(!r, "ibv_next_poll %d gave %d, expected 0", i, r);
        }
        WANT(x->status == IBV_WC_SUCCESS && x->wr_id == 70u + i,
             "entry %d: wr_id %llu status %d, expected %d success", i, (unsigned long long)x->wr_id,
             x->status, 70 + i);
        WANT((int)ibv_wc_read_opcode(x) == op[i] && ibv_wc_read_byte_len(x) == 5u + i &&
                 ibv_wc_read_qp_num(x) == b.qp->qp_num,
             "entry %d: opcode %d byte_len %u qp %x, expected %d %d %x", i, ibv_wc_read_opcode(x),
             ibv_wc_read_byte_len(x), ibv_wc_read_qp_num(x), op[i], 5 + i, b.qp->qp_num);
        if (i)
            WANT((ibv_wc_read_wc_flags(x) & IBV_WC_WITH_IMM) &&
                     ibv_wc_read_imm_data(x) == htonl(8 + i),
                 "entry %d: imm %x, expected %x", i, ntohl(ibv_wc_read_imm_data(x)), 8 + i);
    }
    ibv_end_poll(x);
    OK0(vt_post(&a, IBV_WR_SEND, 4, a.buf, 5, IBV_SEND_SIGNALED, 0, 0, 0));
    vt_want(a.scq, "send", 4, IBV_WC_SUCCESS, -1);
    vt_want(cq, "ibv_poll_cq on an extended CQ", 73, IBV_WC_SUCCESS, IBV_WC_RECV);
    OK0(vt_modify(b.qp, IBV_QPS_ERR));
    vt_sleep(100);
    OK0(ibv_start_poll(x, &pa));
    WANT(x->wr_id == 74 && x->status == IBV_WC_WR_FLUSH_ERR, "flushed entry: wr_id %llu status %d",
         (unsigned long long)x->wr_id, x->status);
    (void)ibv_wc_read_vendor_err(x);
    ibv_end_poll(x);
    OK0(ibv_destroy_qp(b.qp));
    OK0(ibv_destroy_cq(cq));
    ca.wc_flags |= 1ull << 40;
    WANT(!ibv_create_cq_ex(vt.ctx[1], &ca),
         "unknown wc_flags accepted, expected EOPNOTSUPP or EINVAL");
    vt_pass("offered");
}
