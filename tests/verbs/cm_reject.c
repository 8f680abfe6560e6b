/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cm_reject: no listener on the port: REJECTED with status 8 (invalid service id); rdma_reject:
 * status 28 (consumer) with its private data; neither leaves the client's id unusable for destroy;
 * a listener that goes away rejects; then a good connect works. */
#include "vt_cm.h"
static void rejected(struct cm *c, const char *what, int status)
{
    struct rdma_cm_event *e = cm_want(c->ch, RDMA_CM_EVENT_REJECTED, what);
    WANT(e->status == status, "%s: REJECTED with status %d, expected %d", what, e->status, status);
    if (status == 28) {
        WANT(e->param.conn.private_data_len >= 30, "%s: private_data_len %u, expected at least 30",
             what, e->param.conn.private_data_len);
        SAME(e->param.conn.private_data, 30, 6, "private data of the rejection");
    }
    OK0(rdma_ack_cm_event(e));
    cm_free(c, true);
}
int main(int argc, char **argv)
{
    vt_start(argc, argv, "cm_reject");
    struct cm l, s, c;
    struct rdma_conn_param p = cm_param("x", 1);
    int port = cm_listen(&l, vt.ip[0], RDMA_PS_TCP);
    cm_resolve(&c, vt.ip[0], port == 65535 ? 1024 : port + 1, RDMA_PS_TCP);
    cm_qp(&c, IBV_QPT_RC);
    OK0(rdma_connect(c.id, &p));
    rejected(&c, "no listener", 8);
    cm_resolve(&c, vt.ip[0], port, RDMA_PS_TCP);
    cm_qp(&c, IBV_QPT_RC);
    OK0(rdma_connect(c.id, &p));
    struct rdma_cm_event *e = cm_want(l.ch, RDMA_CM_EVENT_CONNECT_REQUEST, "server");
    struct rdma_cm_id *id = e->id;
    OK0(rdma_ack_cm_event(e));
    char data[30];
    vt_fill(data, 30, 6);
    OK0(rdma_reject(id, data, 30));
    OK0(rdma_destroy_id(id));
    rejected(&c, "rdma_reject", 28);
    /* the request's id destroyed without an answer: the peer gets a REJ */
    cm_resolve(&c, vt.ip[0], port, RDMA_PS_TCP);
    cm_qp(&c, IBV_QPT_RC);
    OK0(rdma_connect(c.id, &p));
    e = cm_want(l.ch, RDMA_CM_EVENT_CONNECT_REQUEST, "server");
    id = e->id;
    OK0(rdma_ack_cm_event(e));
    OK0(rdma_destroy_id(id));
    e = cm_want(c.ch, RDMA_CM_EVENT_REJECTED, "request destroyed unanswered");
    OK0(rdma_ack_cm_event(e));
    cm_free(&c, true);
    cm_connect(&l, &s, &c, vt.ip[0], port);
    cm_talk(&s, &c);
    /* the listener goes, the connection stays */
    OK0(rdma_destroy_id(l.id));
    OK0(cm_recv(&s, 1, s.buf, 64));
    OK0(cm_recv(&c, 1, c.buf, 64));
    cm_talk(&s, &c);
    struct cm d;
    cm_resolve(&d, vt.ip[0], port, RDMA_PS_TCP);
    cm_qp(&d, IBV_QPT_RC);
    OK0(rdma_connect(d.id, &p));
    rejected(&d, "listener gone", 8);
    vt_pass(NULL);
}
