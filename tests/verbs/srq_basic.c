/* SPDX-License-Identifier: BSD-3-Clause
 *
 * srq_basic: one SRQ, three QPs: receives go to whichever QP gets a message, in SRQ order,
 * wc.qp_num tells the QP; max_recv_wr of ibv_create_qp is ignored; query and limit;
 * IBV_EVENT_SRQ_LIMIT_REACHED once, then disarmed; destroy waits for its ack. */
#include "vt.h"
static struct ibv_srq *srq;
static volatile int done;
static void *destroy(void *x)
{
    int r = ibv_destroy_srq(srq);
    done = r ? -1 : 1;
    return x;
}
static bool limit_event(int ms, bool ack, struct ibv_async_event *ev)
{
    while (vt_readable(vt.ctx[1]->async_fd, ms)) {
        WANT(!ibv_get_async_event(vt.ctx[1], ev), "ibv_get_async_event failed, errno %d", errno);
        if (ev->event_type == IBV_EVENT_SRQ_LIMIT_REACHED) {
            WANT(ev->element.srq == srq, "limit event of another SRQ");
            if (ack)
                ibv_ack_async_event(ev);
            return true;
        }
        ibv_ack_async_event(ev); /* COMM_EST and the like */
    }
    return false;
}
int main(int argc, char **argv)
{
    vt_start(argc, argv, "srq_basic");
    struct vt_end a[3], b[3];
    struct vt_cfg c = VT_RC;
    struct ibv_srq_attr q;
    struct ibv_async_event ev;
    struct ibv_pd *pd = ibv_alloc_pd(vt.ctx[1]);
    struct ibv_srq_init_attr si = {.srq_context = &c,
                                   .attr = {.max_wr = 32, .max_sge = 2, .srq_limit = 0}};
    srq = ibv_create_srq(pd, &si);
    WANT(srq, "ibv_create_srq(32, 2) failed, errno %d (%s)", errno, strerror(errno));
    WANT(si.attr.max_wr >= 32 && si.attr.max_sge >= 2 && srq->srq_context == &c,
         "SRQ caps %u %u, expected >= 32 2", si.attr.max_wr, si.attr.max_sge);
    char *buf = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct ibv_mr *mr = ibv_reg_mr(pd, buf, 65536, IBV_ACCESS_LOCAL_WRITE);
    struct ibv_cq *rcq = ibv_create_cq(vt.ctx[1], 128, NULL, NULL, 0);
    WANT(mr && rcq, "set-up failed");
    for (int i = 0; i < 3; i++) {
        c = VT_RC;
        vt_end(&a[i], 0, &c);
        c.pd = pd;
        c.srq = srq;
        c.rcq = rcq;
        c.noqp = 1;
        vt_end(&b[i], 1, &c);
        struct ibv_qp_init_attr ia = {.send_cq = b[i].scq,
                                      .recv_cq = rcq,
                                      .srq = srq,
                                      .qp_type = IBV_QPT_RC,
                                      .cap = {16, vt.attr.max_qp_wr + 100, 1, 77, 0}};
        b[i].qp = ibv_create_qp(pd, &ia);
        WANT(b[i].qp,
             "ibv_create_qp with an SRQ and max_recv_wr over the limit failed, errno %d, expected "
             "max_recv_wr to be ignored",
             errno);
        vt_join(&a[i], &b[i]);
    }
    for (int i = 0; i < 24; i++) {
        struct ibv_sge s = {(uintptr_t)buf + 1024 * i, 1024, mr->lkey};
        struct ibv_recv_wr w = {.wr_id = i, .sg_list = &s, .num_sge = 1}, *bad;
        OK0(ibv_post_srq_recv(srq, &w, &bad));
    }
    memset(&q, 0xee, sizeof(q));
    OK0(ibv_query_srq(srq, &q));
    WANT(q.max_wr >= 32 && q.max_sge >= 2 && q.srq_limit == 0,
         "ibv_query_srq: %u %u limit %u, expected >= 32, >= 2, 0", q.max_wr, q.max_sge,
         q.srq_limit);
    q.srq_limit = 16;
    OK0(ibv_modify_srq(srq, &q, IBV_SRQ_LIMIT));
    OK0(ibv_query_srq(srq, &q));
    WANT(q.srq_limit == 16, "srq_limit %u after setting 16", q.srq_limit);
    static const int order[12] = {0, 1, 2, 2, 1, 0, 0, 0, 1, 2, 1, 2};
    for (int i = 0; i < 12; i++) {
        struct vt_end *e = &a[order[i]];
        vt_fill(e->buf, 500, i);
        OK0(vt_post(e, IBV_WR_SEND, i, e->buf, 100 + i, IBV_SEND_SIGNALED, 0, 0, 0));
        vt_want(e->scq, "send", i, IBV_WC_SUCCESS, IBV_WC_SEND);
        struct ibv_wc wc = vt_want(rcq, "receive from the SRQ", i, IBV_WC_SUCCESS, IBV_WC_RECV);
        WANT(wc.qp_num == b[order[i]].qp->qp_num && wc.byte_len == 100u + i,
             "message %d: qp_num %x byte_len %u, expected %x %d", i, wc.qp_num, wc.byte_len,
             b[order[i]].qp->qp_num, 100 + i);
        SAME(buf + 1024 * i, 100 + i, i, "SRQ data");
        if (i == 6)
            WANT(!limit_event(100, true, &ev),
                 "limit event with 17 left and limit 16, expected none");
        if (i == 9)
            WANT(limit_event(2000, true, &ev),
                 "no IBV_EVENT_SRQ_LIMIT_REACHED with 14 left and limit 16, expected one");
    }
    WANT(!limit_event(200, true, &ev), "a second limit event without arming again, expected none");
    OK0(ibv_query_srq(srq, &q));
    WANT(q.srq_limit == 0, "srq_limit %u after the event, expected 0 (disarmed)", q.srq_limit);
    /* arming above the number left fires at once; destroying waits for the acknowledgement */
    q.srq_limit = 20;
    OK0(ibv_modify_srq(srq, &q, IBV_SRQ_LIMIT));
    OK0(vt_post(&a[0], IBV_WR_SEND, 50, a[0].buf, 8, IBV_SEND_SIGNALED, 0, 0, 0));
    vt_want(a[0].scq, "send", 50, IBV_WC_SUCCESS, -1);
    WANT(limit_event(2000, false, &ev), "no limit event for limit 20 with 11 left, expected one");
    for (int i = 0; i < 3; i++)
        OK0(ibv_destroy_qp(b[i].qp));
    pthread_t t;
    pthread_create(&t, NULL, destroy, NULL);
    vt_sleep(250);
    WANT(!done, "ibv_destroy_srq returned %d with its event unacknowledged, expected it to wait",
         done);
    ibv_ack_async_event(&ev);
    for (int i = 0; i < 300 && !done; i++)
        vt_sleep(10);
    WANT(done == 1, "ibv_destroy_srq after the acknowledgement: %d, expected 0 within 3 s", done);
    vt_pass(NULL);
}
