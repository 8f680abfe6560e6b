/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cm_timeout: RDMA_OPTION_ID_ACK_TIMEOUT (CM-09): the queue pairs of an id that has it get this
 * timeout, at either end. Without it they get the connection manager's. An id for datagrams has
 * none. */
#include "vt_cm.h"
static int timeout_of(struct ibv_qp *qp)
{
    struct ibv_qp_attr a;
    struct ibv_qp_init_attr i;
    OK0(ibv_query_qp(qp, &a, IBV_QP_TIMEOUT, &i));
    return a.timeout;
}
/* The timeouts of both ends, client and server, after a connection with this option. */
static void connected(struct cm *l, int port, uint8_t timeout, int got[2])
{
    struct cm s, c;
    cm_timeout = timeout;
    cm_connect(l, &s, &c, vt.ip[0], port);
    got[0] = timeout_of(c.id->qp);
    got[1] = timeout_of(s.id->qp);
    cm_talk(&s, &c);
    OK0(rdma_disconnect(c.id));
    cm_ack(c.ch, RDMA_CM_EVENT_DISCONNECTED, "client");
    cm_ack(l->ch, RDMA_CM_EVENT_DISCONNECTED, "server");
    cm_free(&c, true);
    cm_free(&s, false);
}
int main(int argc, char **argv)
{
    vt_start(argc, argv, "cm_timeout");
    struct cm l;
    int got[2], port = cm_listen(&l, vt.ip[0], RDMA_PS_TCP);
    struct rdma_cm_id *ud;
    for (int t = 19; t <= 22; t += 3) {
        connected(&l, port, (uint8_t)t, got);
        WANT(got[0] == t && got[1] == t, "option %d: timeouts %d and %d", t, got[0], got[1]);
    }
    connected(&l, port, 0, got);
    WANT(got[0] > 0 && got[0] < 22 && got[1] > 0 && got[1] < 22,
         "no option: timeouts %d and %d, expected the connection manager's", got[0], got[1]);
    OK0(rdma_create_id(l.ch, &ud, NULL, RDMA_PS_UDP));
    WANT(cm_set_timeout(ud, 14) && errno == EINVAL,
         "an id for datagrams: errno %d, expected EINVAL", errno);
    OK0(rdma_destroy_id(ud));
    OK0(rdma_destroy_id(l.id));
    rdma_destroy_event_channel(l.ch);
    vt_pass(NULL);
}
