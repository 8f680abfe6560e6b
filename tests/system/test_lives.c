/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Queue pairs with several lives: the effects of an earlier life after RESET or destroying.
 */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "daemon_rig.h"
#include "unit.h"

#define SIZE (256u << 10)

static struct rig rig;
static struct end a, b;

static void down(void)
{
    rig_close_pair(&rig, &a, &b);
}

static void meet(void)
{
    end_qp(&a, URNIC_QPT_RC);
    end_qp(&b, URNIC_QPT_RC);
    end_connect(&a, &b);
}

/* QP-04: RESET ends a life in the middle of it, and nothing of it shows in the next one, which
 * begins with the same PSNs. */
START_TEST(lives_again)
{
    const struct urnic_qp_attr reset = {.qp_state = URNIC_QPS_RESET};
    struct urnic_wc wc;
    rig_open_pair(&rig, ",loss=0.02", &a, &b, SIZE);
    end_qp(&a, URNIC_QPT_RC);
    end_qp(&b, URNIC_QPT_RC);
    for (uint64_t life = 0; life < 100; life++) {
        end_connect(&a, &b);
        memcpy(a.mem, &life, sizeof(life));
        for (unsigned i = 0; i < 8; i++)
            ck_assert_int_eq(end_post_recv(&b, 4096ull * i, 4096, life << 8 | i), 0);
        for (unsigned i = 0; i < 8; i++)
            ck_assert_int_eq(end_post(&a, URNIC_WR_SEND, 0, 4096, 0, 0, life << 8 | i), 0);
        end_expect(&b, URNIC_WC_SUCCESS, life << 8);
        ck_assert_mem_eq(b.mem, &life, sizeof(life));
        ck_assert_int_eq(urnic_modify_qp(life % 2 ? a.qp : b.qp, &reset, URNIC_QP_STATE), 0);
        ck_assert_int_eq(urnic_modify_qp(life % 2 ? b.qp : a.qp, &reset, URNIC_QP_STATE), 0);
        ck_assert_int_eq(urnic_poll_cq(a.cq, 1, &wc), 0);
        ck_assert_int_eq(urnic_poll_cq(b.cq, 1, &wc), 0);
    }
    down();
}
END_TEST

/* QP-04 SRQ-06: a queue pair that is reset in the middle of a message keeps no place of the shared
 * receive queue that it took for it. */
START_TEST(resets_beside_a_shared_queue)
{
    const struct urnic_qp_attr reset = {.qp_state = URNIC_QPS_RESET};
    struct urnic_srq_attr size = {.max_wr = 1, .max_sge = 1};
    struct urnic_qp_init_attr init = {.cap = {.max_send_wr = 4}, .qp_type = URNIC_QPT_RC};
    rig_open_pair(&rig, ",rate=200M", &a, &b, SIZE);
    ck_assert_int_eq(urnic_create_srq(b.pd, &size, NULL, &init.srq), 0);
    init.send_cq = init.recv_cq = b.cq;
    ck_assert_int_eq(urnic_create_qp(b.pd, &init, &b.qp), 0);
    end_qp(&a, URNIC_QPT_RC);
    const struct urnic_sge sge = {.addr = b.mr->iova, .length = SIZE, .lkey = b.mr->lkey};
    const struct urnic_recv_wr wr = {.sg_list = &sge, .num_sge = 1};
    for (unsigned life = 1; life < 2 * size.max_wr + 2; life++) {
        end_connect(&a, &b);
        urnic_post_srq_recv(init.srq, &wr, NULL);
        a.mem[0] = life;
        ck_assert_int_eq(end_post(&a, URNIC_WR_SEND, 0, SIZE, 0, 0, life), 0);
        for (uint64_t began = rig_now_ms(); *(volatile uint8_t *)b.mem != life; sched_yield())
            ck_assert_msg(rig_now_ms() - began < 5000, "message %u finds no receive", life);
        ck_assert_int_eq(urnic_modify_qp(b.qp, &reset, URNIC_QP_STATE), 0);
        ck_assert_int_eq(urnic_modify_qp(a.qp, &reset, URNIC_QP_STATE), 0);
    }
    ck_assert_int_eq(urnic_destroy_qp(b.qp), 0);
    b.qp = NULL;
    ck_assert_int_eq(urnic_destroy_srq(init.srq), 0);
    down();
}
END_TEST

/* Receives of an unconnected queue pair, which has gone to ERR, or not. */
static void fill_in_vain(struct urnic_qp *qp, bool fail)
{
    const struct urnic_qp_attr init = {.qp_state = URNIC_QPS_INIT, .port_num = 1},
                               error = {.qp_state = URNIC_QPS_ERR};
    const struct urnic_recv_wr wr = {.wr_id = 1};
    ck_assert_int_eq(urnic_modify_qp(qp, &init,
                                     URNIC_QP_STATE | URNIC_QP_PORT | URNIC_QP_PKEY_INDEX |
                                         URNIC_QP_ACCESS_FLAGS),
                     0);
    for (unsigned i = 0; i < 64; i++)
        ck_assert_int_eq(urnic_post_recv(qp, &wr, NULL), 0);
    if (fail)
        ck_assert_int_eq(urnic_modify_qp(qp, &error, URNIC_QP_STATE), 0);
}

/* QP-04 CQ-05: entries that RESET and destroying drop take no room in the completion queue, even if
 * it is never polled; and destroying brings nothing: no events, and no entries after others. */
START_TEST(leaves_no_completions)
{
    const struct urnic_qp_attr reset = {.qp_state = URNIC_QPS_RESET};
    struct pollfd events = {.events = POLLIN};
    struct urnic_qp *connected;
    struct urnic_wc wc;
    struct urnic_cq *cq;
    rig_open_pair(&rig, "", &a, &b, SIZE);
    meet();
    connected = a.qp;
    for (unsigned i = 0; i < 40; i++) { /* the queue has 256 entries */
        if (i == 20) {
            ck_assert_int_eq(urnic_poll_cq(a.cq, 1, &wc), 0);
            ck_assert_int_eq(urnic_req_notify_cq(a.cq, false), 0);
            a.qp = connected;
            ck_assert_int_eq(end_post(&a, URNIC_WR_RDMA_WRITE, 0, 64, b.mr->iova, b.mr->rkey, 1),
                             0);
            ck_assert_int_eq(urnic_get_cq_event(a.channel, &cq, NULL), 0);
            urnic_ack_cq_events(cq, 1);
            ck_assert_int_eq(urnic_req_notify_cq(a.cq, false), 0);
        }
        end_qp(&a, URNIC_QPT_RC);
        fill_in_vain(a.qp, i < 20 && i % 2 == 0);
        if (i < 20)
            ck_assert_int_eq(urnic_modify_qp(a.qp, &reset, URNIC_QP_STATE), 0);
        ck_assert_int_eq(urnic_destroy_qp(a.qp), 0);
    }
    events.fd = urnic_channel_fd(a.channel);
    ck_assert_int_eq(poll(&events, 1, 0), 0);
    a.qp = connected;
    end_expect(&a, URNIC_WC_SUCCESS, 1);
    ck_assert_int_eq(end_post(&a, URNIC_WR_RDMA_WRITE, 0, 64, b.mr->iova, b.mr->rkey, 2), 0);
    end_expect(&a, URNIC_WC_SUCCESS, 2);
    down();
}
END_TEST

/* QP-04 CQ-05: nor do they after another queue pair's completion, which stays, and comes first. */
START_TEST(leaves_others_completions)
{
    const struct urnic_qp_attr reset = {.qp_state = URNIC_QPS_RESET};
    struct urnic_qp *connected, *other;
    rig_open_pair(&rig, "", &a, &b, SIZE);
    meet();
    connected = a.qp;
    end_qp(&a, URNIC_QPT_RC);
    other = a.qp;
    for (unsigned i = 0; i < 40; i++) {
        a.qp = connected;
        if (i % 4 == 0)
            ck_assert_int_eq(end_post(&a, URNIC_WR_RDMA_WRITE, 0, 64, b.mr->iova, b.mr->rkey, i),
                             0);
        fill_in_vain(other, true);
        ck_assert_int_eq(urnic_modify_qp(other, &reset, URNIC_QP_STATE), 0);
    }
    for (unsigned i = 0; i < 40; i += 4)
        end_expect(&a, URNIC_WC_SUCCESS, i);
    ck_assert_int_eq(urnic_destroy_qp(other), 0);
    down();
}
END_TEST

static _Atomic bool finished;

static void *resets_for_ever(void *arg)
{
    const struct urnic_qp_attr reset = {.qp_state = URNIC_QPS_RESET};
    struct urnic_qp *qp = arg;
    while (!atomic_load(&finished)) {
        fill_in_vain(qp, true);
        ck_assert_int_eq(urnic_modify_qp(qp, &reset, URNIC_QP_STATE), 0);
    }
    return NULL;
}

/* QP-04 CQ-08: another thread's resets leave the completions of a queue pair that is at work alone:
 * none gets lost, and they stay in order. */
START_TEST(resets_beside_traffic)
{
    enum { DEEP = 8, WRITES = 4000 };
    struct urnic_qp *connected;
    struct urnic_wc wc[4];
    unsigned posted = 0, done = 0;
    pthread_t t;
    rig_open_pair(&rig, "", &a, &b, SIZE);
    meet();
    connected = a.qp;
    end_qp(&a, URNIC_QPT_RC);
    struct urnic_qp *other = a.qp;
    a.qp = connected;
    atomic_store(&finished, false);
    ck_assert_int_eq(pthread_create(&t, NULL, resets_for_ever, other), 0);
    while (done < WRITES) {
        for (; posted < WRITES && posted < done + DEEP; posted++)
            ck_assert_int_eq(
                end_post(&a, URNIC_WR_RDMA_WRITE, 0, 64, b.mr->iova, b.mr->rkey, 100 + posted), 0);
        int n = urnic_poll_cq(a.cq, 4, wc);
        ck_assert_int_ge(n, 0);
        for (int i = 0; i < n; i++) {
            if (wc[i].qp_num == urnic_qp_num(connected)) {
                ck_assert_int_eq(wc[i].status, URNIC_WC_SUCCESS);
                ck_assert_uint_eq(wc[i].wr_id, 100 + done++);
            } else {
                ck_assert_int_eq(wc[i].status, URNIC_WC_WR_FLUSH_ERR);
            }
        }
    }
    atomic_store(&finished, true);
    pthread_join(t, NULL);
    ck_assert_int_eq(urnic_poll_cq(a.cq, 4, wc), 0);
    ck_assert_int_eq(urnic_destroy_qp(other), 0);
    down();
}
END_TEST

UNIT_MAIN("lives", lives_again, resets_beside_a_shared_queue, leaves_no_completions,
          leaves_others_completions, resets_beside_traffic)
