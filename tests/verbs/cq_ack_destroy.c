/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cq_ack_destroy: ibv_destroy_cq waits until every event got has been acknowledged (also in one
 * batch, also with the events of another CQ of the same channel unacknowledged); then it returns 0.
 */
#include "vt.h"
static volatile int done;
static struct ibv_cq *victim;
static int result = -1;
static void *destroy(void *x)
{
    result = ibv_destroy_cq(victim);
    done = 1;
    return x;
}
int main(int argc, char **argv)
{
    vt_start(argc, argv, "cq_ack_destroy");
    struct vt_end a, b;
    struct ibv_cq *cq;
    void *ctx;
    struct ibv_wc wc[4];
    pthread_t t;
    vt_pair(&a, &b, &VT_RC);
    for (int i = 0; i < 8; i++)
        OK0(vt_recv(&b, i, b.buf, 64));
    for (int i = 0; i < 3; i++) { /* three events, none acknowledged */
        OK0(ibv_req_notify_cq(b.rcq, 0));
        OK0(vt_post(&a, IBV_WR_SEND, i, a.buf, 8, IBV_SEND_SIGNALED, 0, 0, 0));
        vt_want(a.scq, "send", i, IBV_WC_SUCCESS, -1);
        WANT(vt_readable(b.ch->fd, 2000) && !ibv_get_cq_event(b.ch, &cq, &ctx) && cq == b.rcq,
             "event %d missing", i);
        WANT(vt_poll(b.rcq, wc, 1, 1000) == 1, "no completion %d", i);
    }
    int r = ibv_destroy_cq(b.rcq);
    WANT(r == EBUSY, "ibv_destroy_cq of a CQ with a QP gave %d, expected EBUSY", r);
    OK0(ibv_destroy_qp(b.qp));
    OK0(ibv_destroy_qp(a.qp));
    victim = b.rcq;
    pthread_create(&t, NULL, destroy, NULL);
    vt_sleep(300);
    WANT(!done, "ibv_destroy_cq returned %d with 3 events unacknowledged, expected it to wait",
         result);
    ibv_ack_cq_events(b.rcq, 2);
    vt_sleep(200);
    WANT(!done, "ibv_destroy_cq returned %d with 1 event unacknowledged, expected it to wait",
         result);
    ibv_ack_cq_events(b.rcq, 1);
    for (int i = 0; i < 300 && !done; i++)
        vt_sleep(10);
    WANT(done, "ibv_destroy_cq still waits 3 s after the last acknowledgement, expected return");
    pthread_join(t, NULL);
    WANT(result == 0, "ibv_destroy_cq gave %d, expected 0", result);
    r = ibv_destroy_comp_channel(b.ch);
    WANT(r == EBUSY, "ibv_destroy_comp_channel with a CQ on it gave %d, expected EBUSY", r);
    OK0(ibv_destroy_cq(b.scq));
    OK0(ibv_destroy_comp_channel(b.ch));
    vt_pass(NULL);
}
