/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cm_ud: RDMA_PS_UDP (SIDR). The client's request has private data, and its ESTABLISHED has
 * ah_attr, qp_num and qkey. The server gets no ESTABLISHED. It answers a datagram by the handle
 * that it makes from the receive. */
#include "vt_cm.h"
int main(int argc, char **argv)
{
    vt_start(argc, argv, "cm_ud");
    struct cm l, s, c;
    struct rdma_cm_event *e;
    struct ibv_send_wr *bad;
    int port = cm_listen(&l, vt.ip[0], RDMA_PS_UDP);
    cm_resolve(&c, vt.ip[0], port, RDMA_PS_UDP);
    cm_qp(&c, IBV_QPT_UD);
    WANT(vt_state(c.id->qp) == IBV_QPS_RTS, "UD QP of rdma_create_qp in state %d, expected RTS",
         vt_state(c.id->qp));
    char data[40];
    vt_fill(data, 40, 2);
    struct rdma_conn_param p = {.private_data = data, .private_data_len = 40};
    OK0(rdma_connect(c.id, &p));
    e = cm_want(l.ch, RDMA_CM_EVENT_CONNECT_REQUEST, "server");
    WANT(e->param.ud.private_data_len >= 40, "private_data_len %u, expected >= 40",
         e->param.ud.private_data_len);
    SAME(e->param.ud.private_data, 40, 2, "private data");
    memset(&s, 0, sizeof(s));
    s.ch = l.ch;
    s.id = e->id;
    OK0(rdma_ack_cm_event(e));
    cm_qp(&s, IBV_QPT_UD);
    OK0(cm_recv(&s, 1, s.buf, 200));
    OK0(cm_recv(&c, 1, c.buf, 200));
    vt_fill(data, 30, 5);
    p = (struct rdma_conn_param){
        .private_data = data, .private_data_len = 30, .qp_num = s.id->qp->qp_num};
    OK0(rdma_accept(s.id, &p));
    e = cm_want(c.ch, RDMA_CM_EVENT_ESTABLISHED, "client");
    WANT(!e->status && e->param.ud.qp_num == s.id->qp->qp_num,
         "ESTABLISHED: status %d qp_num %x, expected 0 %x", e->status, e->param.ud.qp_num,
         s.id->qp->qp_num);
    WANT(e->param.ud.private_data_len >= 30, "private_data_len %u, expected >= 30",
         e->param.ud.private_data_len);
    SAME(e->param.ud.private_data, 30, 5, "private data of the reply");
    WANT(e->param.ud.qkey, "qkey 0, expected the port space's (%x)", RDMA_UDP_QKEY);
    struct ibv_ah *ah = ibv_create_ah(c.pd, &e->param.ud.ah_attr);
    WANT(ah, "ibv_create_ah of the event's ah_attr failed, errno %d", errno);
    struct ibv_sge g = {(uintptr_t)c.buf + 1024, 50, c.mr->lkey};
    struct ibv_send_wr w = {.wr_id = 3,
                            .sg_list = &g,
                            .num_sge = 1,
                            .opcode = IBV_WR_SEND,
                            .send_flags = IBV_SEND_SIGNALED};
    w.wr.ud.ah = ah;
    w.wr.ud.remote_qpn = e->param.ud.qp_num;
    w.wr.ud.remote_qkey = e->param.ud.qkey;
    uint32_t qkey = e->param.ud.qkey;
    OK0(rdma_ack_cm_event(e));
    vt_fill(c.buf + 1024, 50, 7);
    OK0(ibv_post_send(c.id->qp, &w, &bad));
    vt_want(c.scq, "datagram", 3, IBV_WC_SUCCESS, IBV_WC_SEND);
    struct ibv_wc wc = vt_want(s.rcq, "datagram", 1, IBV_WC_SUCCESS, IBV_WC_RECV);
    WANT(wc.byte_len == 90, "byte_len %u, expected 90", wc.byte_len);
    SAME(s.buf + 40, 50, 7, "datagram");
    struct ibv_ah *back = ibv_create_ah_from_wc(s.pd, &wc, (struct ibv_grh *)s.buf, s.id->port_num);
    WANT(back, "ibv_create_ah_from_wc failed, errno %d", errno);
    g = (struct ibv_sge){(uintptr_t)s.buf + 40, 50, s.mr->lkey};
    w.wr.ud.ah = back;
    w.wr.ud.remote_qpn = wc.src_qp;
    w.wr.ud.remote_qkey = qkey;
    OK0(ibv_post_send(s.id->qp, &w, &bad));
    vt_want(s.scq, "answer", 3, IBV_WC_SUCCESS, IBV_WC_SEND);
    vt_want(c.rcq, "answer", 1, IBV_WC_SUCCESS, IBV_WC_RECV);
    SAME(c.buf + 40, 50, 7, "answer");
    WANT(!vt_readable(l.ch->fd, 150),
         "an event at the server after rdma_accept of a UD id, expected none");
    OK0(ibv_destroy_ah(ah));
    OK0(ibv_destroy_ah(back));
    cm_free(&s, false);
    cm_free(&c, true);
    /* no listener: UNREACHABLE or REJECTED with a status */
    cm_resolve(&c, vt.ip[0], port + 1 > 65535 ? 2000 : port + 1, RDMA_PS_UDP);
    cm_qp(&c, IBV_QPT_UD);
    p.private_data_len = 0;
    OK0(rdma_connect(c.id, &p));
    WANT(vt_readable(c.ch->fd, 9000) && !rdma_get_cm_event(c.ch, &e),
         "no event without a listener");
    int ev = e->event, st = e->status;
    OK0(rdma_ack_cm_event(e));
    WANT((ev == RDMA_CM_EVENT_UNREACHABLE || ev == RDMA_CM_EVENT_REJECTED) && st,
         "without a listener: %s status %d, expected UNREACHABLE with a status", rdma_event_str(ev),
         st);
    vt_pass("no listener: %s %d", rdma_event_str(ev), st);
}
