/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cq_event_once: ibv_req_notify_cq is one shot: several completions after one arming make one
 * event, none without arming; a non-blocking channel says EAGAIN; the event carries CQ and
 * cq_context; completions before the arming are found by polling again (poll, arm, poll). */
#include "vt.h"
static int events(struct vt_end *e, int ms, struct ibv_cq **cq)
{
    int n = 0;
    void *ctx;
    while (vt_readable(e->ch->fd, ms)) {
        WANT(!ibv_get_cq_event(e->ch, cq, &ctx),
             "channel readable, ibv_get_cq_event failed, errno %d", errno);
        WANT(ctx == e, "cq_context %p, expected the one given to ibv_create_cq", ctx);
        n++;
        ibv_ack_cq_events(*cq, 1);
    }
    return n;
}
int main(int argc, char **argv)
{
    vt_start(argc, argv, "cq_event_once");
    struct vt_end a, b;
    struct ibv_cq *cq = NULL;
    void *ctx;
    struct ibv_wc wc[8];
    vt_pair(&a, &b, &VT_RC);
    fcntl(b.ch->fd, F_SETFL, fcntl(b.ch->fd, F_GETFL) | O_NONBLOCK);
    errno = 0;
    WANT(ibv_get_cq_event(b.ch, &cq, &ctx) == -1 && errno == EAGAIN,
         "empty non-blocking channel: errno %d, expected -1 with EAGAIN", errno);
    for (int i = 0; i < 16; i++)
        OK0(vt_recv(&b, i, b.buf + 64 * i, 64));
    /* not armed: no event */
    OK0(vt_post(&a, IBV_WR_SEND, 1, a.buf, 8, IBV_SEND_SIGNALED, 0, 0, 0));
    vt_want(a.scq, "send", 1, IBV_WC_SUCCESS, IBV_WC_SEND);
    WANT(!vt_readable(b.ch->fd, 150), "event without ibv_req_notify_cq, expected none");
    vt_want(b.rcq, "receive", 0, IBV_WC_SUCCESS, IBV_WC_RECV);
    /* armed once, three completions: one event */
    OK0(ibv_req_notify_cq(b.rcq, 0));
    for (int i = 0; i < 3; i++)
        OK0(vt_post(&a, IBV_WR_SEND, 10 + i, a.buf, 8, IBV_SEND_SIGNALED, 0, 0, 0));
    for (int i = 0; i < 3; i++)
        vt_want(a.scq, "send", 10 + i, IBV_WC_SUCCESS, IBV_WC_SEND);
    int n = events(&b, 300, &cq);
    WANT(n == 1, "%d events after one arming and three completions, expected 1", n);
    WANT(cq == b.rcq, "event of another CQ, expected the receive CQ");
    WANT(vt_poll(b.rcq, wc, 3, 1000) == 3, "fewer than 3 receive completions");
    /* arming twice is arming once */
    OK0(ibv_req_notify_cq(b.rcq, 0));
    OK0(ibv_req_notify_cq(b.rcq, 0));
    OK0(vt_post(&a, IBV_WR_SEND, 20, a.buf, 8, IBV_SEND_SIGNALED, 0, 0, 0));
    vt_want(a.scq, "send", 20, IBV_WC_SUCCESS, IBV_WC_SEND);
    n = events(&b, 300, &cq);
    WANT(n == 1, "%d events after arming twice and one completion, expected 1", n);
    vt_want(b.rcq, "receive", 4, IBV_WC_SUCCESS, IBV_WC_RECV);
    /* completion first, arming second: an event is optional (0 or 1), the poll after arming finds
     * it */
    OK0(vt_post(&a, IBV_WR_SEND, 30, a.buf, 8, IBV_SEND_SIGNALED, 0, 0, 0));
    vt_want(a.scq, "send", 30, IBV_WC_SUCCESS, IBV_WC_SEND);
    vt_sleep(50);
    OK0(ibv_req_notify_cq(b.rcq, 0));
    WANT(vt_poll(b.rcq, wc, 1, 0) == 1,
         "the completion that came before the arming is not found by the poll after it");
    int old = events(&b, 100, &cq);
    WANT(old <= 1, "%d events for one old completion, expected 0 or 1", old);
    if (old)
        OK0(ibv_req_notify_cq(b.rcq, 0));
    OK0(vt_post(&a, IBV_WR_SEND, 31, a.buf, 8, IBV_SEND_SIGNALED, 0, 0, 0));
    vt_want(a.scq, "send", 31, IBV_WC_SUCCESS, IBV_WC_SEND);
    n = events(&b, 300, &cq);
    WANT(n == 1, "%d events for the next completion, expected 1", n);
    vt_want(b.rcq, "receive", 6, IBV_WC_SUCCESS, IBV_WC_RECV);
    /* two CQs on one channel, both armed: an event for each */
    OK0(ibv_req_notify_cq(b.rcq, 0));
    OK0(ibv_req_notify_cq(b.scq, 0));
    OK0(vt_recv(&a, 100, a.buf + 4096, 64));
    OK0(vt_post(&b, IBV_WR_SEND, 40, b.buf + 4096, 8, IBV_SEND_SIGNALED, 0, 0, 0));
    OK0(vt_post(&a, IBV_WR_SEND, 41, a.buf, 8, IBV_SEND_SIGNALED, 0, 0, 0));
    vt_want(a.scq, "send", 41, IBV_WC_SUCCESS, IBV_WC_SEND);
    n = events(&b, 400, &cq);
    WANT(n == 2, "%d events on a channel with two armed CQs, expected 2", n);
    vt_pass(old ? "arming with a waiting CQE gave an event"
                : "arming with a waiting CQE gave no event");
}
