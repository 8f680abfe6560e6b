/* SPDX-License-Identifier: BSD-3-Clause
 *
 * async_events: ibv_get_async_event reports each event of queue pairs, completion queues and shared
 * receive queues once, for the right object, and no other event: COMM_EST, QP_REQ_ERR,
 * QP_ACCESS_ERR, QP_FATAL, CQ_ERR, SQ_DRAINED, SRQ_LIMIT_REACHED, QP_LAST_WQE_REACHED. */
#include "vt.h"
#include <sched.h>

/* The next event of this side, within `ms`; acknowledged. False: none came. */
static bool next(int side, struct ibv_async_event *ev, int ms)
{
    if (!vt_readable(vt.ctx[side]->async_fd, ms))
        return false;
    OK0(ibv_get_async_event(vt.ctx[side], ev));
    ibv_ack_async_event(ev);
    return true;
}

static void want(int side, const char *what, enum ibv_event_type type, const void *object)
{
    struct ibv_async_event ev;
    WANT(next(side, &ev, 3000), "%s: no event, expected %s", what, ibv_event_type_str(type));
    WANT(ev.event_type == type && (void *)ev.element.qp == object,
         "%s: event '%s' of %p, expected '%s' of %p", what, ibv_event_type_str(ev.event_type),
         (void *)ev.element.qp, ibv_event_type_str(type), object);
}

static void none(const char *what)
{
    struct ibv_async_event ev;
    for (int side = 0; side < (vt.same ? 1 : 2); side++)
        WANT(!next(side, &ev, 100), "%s: another event, '%s'", what,
             ibv_event_type_str(ev.event_type));
}

/* A request that the peer refuses: the peer gets an event, the requester only its completion. */
static void refused(const char *what, int access, uint32_t key_off, int status,
                    enum ibv_event_type type)
{
    struct vt_end a, b;
    struct vt_cfg c = VT_RC;
    vt_end(&a, 0, &c);
    c.qpaccess = access;
    vt_end(&b, 1, &c);
    vt_join(&a, &b);
    OK0(vt_post(&a, IBV_WR_RDMA_WRITE, 1, a.buf, 8, IBV_SEND_SIGNALED, (uintptr_t)b.buf,
                b.mr->rkey + key_off, 0));
    vt_want(a.scq, what, 1, status, -1);
    want(1, what, type, b.qp);
    none(what);
    OK0(ibv_destroy_qp(a.qp));
    OK0(ibv_destroy_qp(b.qp));
}

/* Messages before the program has moved its queue pair to RTS: one event for any number of them. */
static void comm_est(void)
{
    struct vt_end a, b;
    vt_end(&a, 0, NULL);
    vt_end(&b, 1, NULL);
    OK0(vt_try_init(&b));
    OK0(vt_recv(&b, 1, b.buf, 64));
    OK0(vt_recv(&b, 2, b.buf, 64));
    OK0(vt_try_rtr(&b, a.qp->qp_num, &vt.gid[0]));
    vt_up(&a, b.qp->qp_num, &vt.gid[1]);
    for (int i = 1; i <= 2; i++) {
        OK0(vt_post(&a, IBV_WR_SEND, i, a.buf, 8, IBV_SEND_SIGNALED, 0, 0, 0));
        vt_want(a.scq, "SEND to a queue pair in RTR", i, IBV_WC_SUCCESS, -1);
    }
    want(1, "COMM_EST", IBV_EVENT_COMM_EST, b.qp);
    none("COMM_EST");
    OK0(vt_try_rts(&b));
    none("to RTS after COMM_EST");
}

static void sq_drained(void)
{
    struct vt_end a, b;
    vt_pair(&a, &b, NULL);
    a.buf[0] = 1;
    OK0(vt_post(&a, IBV_WR_RDMA_WRITE, 1, a.buf, 60000, IBV_SEND_SIGNALED, (uintptr_t)b.buf,
                b.mr->rkey, 0));
    /* The request has started, so SQD waits for its end. A request that has not started would wait
     * for RTS. */
    while (!*(volatile char *)b.buf)
        sched_yield();
    struct ibv_qp_attr q = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};
    OK0(ibv_modify_qp(a.qp, &q, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
    want(0, "SQ_DRAINED", IBV_EVENT_SQ_DRAINED, a.qp);
    vt_want(a.scq, "what was under way", 1, IBV_WC_SUCCESS, -1);
    none("SQ_DRAINED");
    /* no event without a request for it */
    OK0(vt_modify(a.qp, IBV_QPS_RTS));
    OK0(vt_modify(a.qp, IBV_QPS_SQD));
    none("SQD without notification");
}

static void overflow(void)
{
    struct vt_end a, b;
    struct vt_cfg c = VT_RC;
    c.cqe = 1;
    c.swr = 64;
    vt_pair(&a, &b, &c);
    int n = a.scq->cqe + 1;
    WANT(n <= 64, "a completion queue of 1 entry has %d", a.scq->cqe);
    for (int i = 0; i < n; i++)
        OK0(vt_post(&a, IBV_WR_RDMA_WRITE, i, a.buf, 8, IBV_SEND_SIGNALED, (uintptr_t)b.buf,
                    b.mr->rkey, 0));
    want(0, "CQ_ERR", IBV_EVENT_CQ_ERR, a.scq);
    want(0, "QP_FATAL", IBV_EVENT_QP_FATAL, a.qp);
    none("overflow");
    WANT(vt_state(a.qp) == IBV_QPS_ERR, "the queue pair is in state %d, expected ERR",
         vt_state(a.qp));
}

static void shared(void)
{
    struct vt_end a, b;
    struct vt_cfg c = VT_RC;
    vt_end(&a, 0, &c);
    c.pd = ibv_alloc_pd(vt.ctx[1]);
    struct ibv_srq_init_attr ia = {.attr = {.max_wr = 16, .max_sge = 1}};
    struct ibv_srq *srq = c.srq = ibv_create_srq(c.pd, &ia);
    WANT(srq, "ibv_create_srq: errno %d", errno);
    vt_end(&b, 1, &c);
    vt_join(&a, &b);
    for (int i = 0; i < 8; i++) {
        struct ibv_sge sge = {(uintptr_t)b.buf, 64, b.mr->lkey};
        struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;
        OK0(ibv_post_srq_recv(srq, &wr, &bad));
    }
    struct ibv_srq_attr limit = {.srq_limit = 8};
    OK0(ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT));
    OK0(vt_post(&a, IBV_WR_SEND, 1, a.buf, 8, IBV_SEND_SIGNALED, 0, 0, 0));
    want(1, "SRQ_LIMIT_REACHED", IBV_EVENT_SRQ_LIMIT_REACHED, srq);
    none("SRQ_LIMIT_REACHED");
    OK0(vt_modify(b.qp, IBV_QPS_ERR));
    want(1, "LAST_WQE_REACHED", IBV_EVENT_QP_LAST_WQE_REACHED, b.qp);
    none("LAST_WQE_REACHED");
}

static void *wait_for_one(void *ev)
{
    return ibv_get_async_event(vt.ctx[1], ev) == 0 ? ev : NULL;
}

/* A thread that sleeps in ibv_get_async_event wakes; destroying waits for the acknowledgement. */
static void blocked(void)
{
    struct vt_end a, b;
    struct ibv_async_event ev;
    pthread_t t;
    void *got;
    vt_pair(&a, &b, NULL);
    OK0(pthread_create(&t, NULL, wait_for_one, &ev));
    vt_sleep(100);
    OK0(vt_post(&a, IBV_WR_RDMA_READ, 1, a.buf, 8, IBV_SEND_SIGNALED, (uintptr_t)b.buf,
                b.mr->rkey + 0x100, 0));
    pthread_join(t, &got);
    WANT(got && ev.event_type == IBV_EVENT_QP_ACCESS_ERR && ev.element.qp == b.qp,
         "the thread that waits: %s", got ? ibv_event_type_str(ev.event_type) : "failed");
    ibv_ack_async_event(&ev);
    OK0(ibv_destroy_qp(b.qp));
}

int main(int argc, char **argv)
{
    vt_start(argc, argv, "async_events");
    comm_est();
    refused("QP_REQ_ERR", IBV_ACCESS_REMOTE_READ, 0, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
    refused("QP_ACCESS_ERR", VT_ACCESS, 0x100, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
    sq_drained();
    overflow();
    shared();
    blocked();
    vt_pass(NULL);
}
