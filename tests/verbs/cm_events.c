/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cm_events: the whole life of a connection with its events on both sides: private data (at least
 * what was sent, in front), conn_param, listen_id, addresses and ports of both ids, QP in RTS,
 * data, disconnect, DISCONNECTED on both, free, again. */
#include "vt_cm.h"
int main(int argc, char **argv)
{
    vt_start(argc, argv, "cm_events");
    struct cm l, s, c;
    int port = cm_listen(&l, vt.ip[0], RDMA_PS_TCP);
    for (int round = 0; round < 3; round++) {
        cm_resolve(&c, vt.ip[0], port, RDMA_PS_TCP);
        cm_qp(&c, IBV_QPT_RC);
        char data[56];
        vt_fill(data, sizeof(data), 3);
        struct rdma_conn_param p = cm_param(data, round == 0 ? 56 : round == 1 ? 1 : 0);
        OK0(rdma_connect(c.id, &p));
        memset(data, 0, sizeof(data));
        struct rdma_cm_event *e = cm_want(l.ch, RDMA_CM_EVENT_CONNECT_REQUEST, "server");
        WANT(e->listen_id == l.id && e->id && e->id != l.id,
             "CONNECT_REQUEST: listen_id %p id %p, expected listen_id %p and a new id",
             (void *)e->listen_id, (void *)e->id, (void *)l.id);
        WANT(e->id->context == &l, "new id's context %p, expected the listener's", e->id->context);
        WANT(e->param.conn.private_data_len >= p.private_data_len,
             "private_data_len %u, expected at least %u", e->param.conn.private_data_len,
             p.private_data_len);
        if (p.private_data_len)
            SAME(e->param.conn.private_data, p.private_data_len, 3, "private data of the request");
        WANT(e->param.conn.responder_resources == 4 && e->param.conn.initiator_depth == 4,
             "request: responder_resources %u initiator_depth %u, expected 4 4",
             e->param.conn.responder_resources, e->param.conn.initiator_depth);
        WANT(e->param.conn.retry_count == 7 && e->param.conn.rnr_retry_count == 7,
             "request: retry_count %u rnr_retry_count %u, expected 7 7", e->param.conn.retry_count,
             e->param.conn.rnr_retry_count);
        WANT(e->param.conn.qp_num == c.id->qp->qp_num,
             "request: qp_num %x, expected the client's %x", e->param.conn.qp_num,
             c.id->qp->qp_num);
        memset(&s, 0, sizeof(s));
        s.ch = l.ch;
        s.id = e->id;
        s.id->context = &s;
        OK0(rdma_ack_cm_event(e));
        struct sockaddr_in *sl = (void *)rdma_get_local_addr(s.id),
                           *sp = (void *)rdma_get_peer_addr(s.id),
                           *cl = (void *)rdma_get_local_addr(c.id),
                           *cp = (void *)rdma_get_peer_addr(c.id);
        WANT(ntohs(rdma_get_src_port(s.id)) == port && ntohs(rdma_get_dst_port(c.id)) == port,
             "ports: server's own %u, client's peer %u, expected %d",
             ntohs(rdma_get_src_port(s.id)), ntohs(rdma_get_dst_port(c.id)), port);
        WANT(rdma_get_dst_port(s.id) == rdma_get_src_port(c.id) && rdma_get_src_port(c.id),
             "client's port %u, server sees %u", ntohs(rdma_get_src_port(c.id)),
             ntohs(rdma_get_dst_port(s.id)));
        WANT(sl->sin_addr.s_addr == cp->sin_addr.s_addr &&
                 sp->sin_addr.s_addr == cl->sin_addr.s_addr,
             "addresses of the two ids do not mirror each other");
        WANT(s.id->verbs && s.id->port_num, "new id without device");
        cm_qp(&s, IBV_QPT_RC);
        OK0(cm_recv(&s, 1, s.buf, 64));
        OK0(cm_recv(&c, 1, c.buf, 64));
        vt_fill(data, sizeof(data), 4);
        p = cm_param(data, round == 2 ? 0 : 40);
        OK0(rdma_accept(s.id, &p));
        e = cm_want(c.ch, RDMA_CM_EVENT_ESTABLISHED, "client");
        WANT(!e->status && e->id == c.id && e->param.conn.private_data_len >= p.private_data_len,
             "ESTABLISHED: status %d private_data_len %u, expected 0 and at least %u", e->status,
             e->param.conn.private_data_len, p.private_data_len);
        if (p.private_data_len)
            SAME(e->param.conn.private_data, p.private_data_len, 4, "private data of the reply");
        OK0(rdma_ack_cm_event(e));
        WANT(cm_ack(l.ch, RDMA_CM_EVENT_ESTABLISHED, "server") == s.id,
             "server's ESTABLISHED of another id");
        WANT(vt_state(c.id->qp) == IBV_QPS_RTS && vt_state(s.id->qp) == IBV_QPS_RTS,
             "QP states %d %d, expected RTS", vt_state(c.id->qp), vt_state(s.id->qp));
        cm_talk(&s, &c);
        struct cm *first = round & 1 ? &s : &c, *other = round & 1 ? &c : &s;
        OK0(cm_recv(&s, 5, s.buf, 64));
        OK0(cm_recv(&c, 5, c.buf, 64));
        OK0(rdma_disconnect(first->id));
        vt_want(first->rcq, "receive of the side that disconnects", 5, IBV_WC_WR_FLUSH_ERR, -1);
        WANT(cm_ack(other->ch, RDMA_CM_EVENT_DISCONNECTED, "other side") == other->id,
             "DISCONNECTED of another id");
        OK0(rdma_disconnect(other->id));
        vt_want(other->rcq, "receive of the other side", 5, IBV_WC_WR_FLUSH_ERR, -1);
        WANT(cm_ack(first->ch, RDMA_CM_EVENT_DISCONNECTED, "first side") == first->id,
             "DISCONNECTED of another id");
        WANT(vt_wait_state(first->id->qp, IBV_QPS_ERR, 500) == IBV_QPS_ERR,
             "QP state %d after disconnect, expected ERR", vt_state(first->id->qp));
        cm_free(&s, false);
        cm_free(&c, true);
    }
    OK0(rdma_destroy_id(l.id));
    rdma_destroy_event_channel(l.ch);
    vt_pass(NULL);
}
