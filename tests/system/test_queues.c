/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Completion queues that grow, lists that are posted whole, waits that a signal ends, and contexts
 * that end before their objects.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "daemon_rig.h"
#include "unit.h"

#define SIZE (1u << 16)

static struct rig rig;
static struct end a, b;

static void up(void)
{
    rig_open_pair(&rig, "", &a, &b, SIZE);
}

static void down(void)
{
    rig_close_pair(&rig, &a, &b);
}

/* a and b, connected; b completes in this queue. */
static void pair_with(struct urnic_cq *cq)
{
    struct urnic_qp_init_attr init = {.cap = {.max_recv_wr = 64, .max_recv_sge = 1},
                                      .qp_type = URNIC_QPT_RC,
                                      .send_cq = cq,
                                      .recv_cq = cq};
    end_qp(&a, URNIC_QPT_RC);
    ck_assert_int_eq(urnic_create_qp(b.pd, &init, &b.qp), 0);
    end_connect(&a, &b);
}

static void unpair(struct urnic_cq *cq)
{
    ck_assert_int_eq(urnic_destroy_qp(b.qp), 0);
    b.qp = NULL;
    ck_assert_int_eq(urnic_destroy_cq(cq), 0);
}

/* n messages arrive, whose receives have the numbers from `first` on. */
static void arrive(unsigned first, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        ck_assert_int_eq(end_post_recv(&b, 0, 8, first + i), 0);
        ck_assert_int_eq(end_post(&a, URNIC_WR_SEND, 0, 8, 0, 0, i), 0);
        end_expect(&a, URNIC_WC_SUCCESS, i);
    }
}

static void take(struct urnic_cq *cq, unsigned first, unsigned n)
{
    struct urnic_wc wc;
    for (unsigned i = 0; i < n; i++) {
        ck_assert_int_eq(urnic_poll_cq(cq, 1, &wc), 1);
        ck_assert_int_eq(wc.status, URNIC_WC_SUCCESS);
        ck_assert_uint_eq(wc.wr_id, first + i);
    }
}

/* CQ-04: when a queue grows, its waiting entries are kept in order, wherever in the ring they were.
 * Later entries follow them, also around the end. */
START_TEST(grows)
{
    struct urnic_wc wc;
    for (unsigned before = 0; before < 9; before++) {
        struct urnic_cq *cq;
        up();
        ck_assert_int_eq(urnic_create_cq(b.ctx, 4, NULL, b.channel, &cq), 0);
        pair_with(cq);
        for (unsigned i = 0; i < before; i++) {
            arrive(i, 1);
            take(cq, i, 1);
        }
        arrive(100, 3);
        ck_assert_int_eq(urnic_resize_cq(cq, 2), -EINVAL); /* more wait than that */
        ck_assert_int_eq(urnic_resize_cq(cq, 3), 0);
        ck_assert_int_eq(urnic_cq_size(cq), 4);
        ck_assert_int_eq(urnic_resize_cq(cq, 5), 0);
        ck_assert_int_eq(urnic_cq_size(cq), 8);
        take(cq, 100, 1);
        arrive(103, 6);
        take(cq, 101, 8);
        ck_assert_int_eq(urnic_poll_cq(cq, 1, &wc), 0);
        arrive(200, 8);
        ck_assert_int_eq(urnic_resize_cq(cq, 300), 0);
        arrive(208, 40);
        take(cq, 200, 48);
        ck_assert_int_eq(urnic_poll_cq(cq, 1, &wc), 0);
        unpair(cq);
        down();
    }
}
END_TEST

/* A queue that was armed before it grew still raises its event. */
START_TEST(grows_armed)
{
    struct urnic_cq *cq, *got;
    up();
    ck_assert_int_eq(urnic_create_cq(b.ctx, 4, NULL, b.channel, &cq), 0);
    pair_with(cq);
    ck_assert_int_eq(urnic_req_notify_cq(cq, false), 0);
    ck_assert_int_eq(urnic_resize_cq(cq, 64), 0);
    arrive(0, 1);
    struct pollfd p = {.fd = urnic_channel_fd(b.channel), .events = POLLIN};
    ck_assert_int_eq(poll(&p, 1, 5000), 1);
    ck_assert_int_eq(urnic_get_cq_event(b.channel, &got, NULL), 0);
    ck_assert_ptr_eq(got, cq);
    urnic_ack_cq_events(cq, 1);
    take(cq, 0, 1);
    ck_assert_int_eq(urnic_resize_cq(cq, 0), -EINVAL);
    ck_assert_int_eq(urnic_resize_cq(cq, 1 << 30), -EINVAL);
    unpair(cq);
    down();
}
END_TEST

static _Atomic bool stop;

static void *poller(void *arg)
{
    unsigned *taken = arg;
    while (!atomic_load(&stop) || *taken < 400) {
        struct urnic_wc wc[4];
        int n = urnic_poll_cq(b.cq, 4, wc);
        ck_assert_int_ge(n, 0);
        for (int i = 0; i < n; i++)
            ck_assert_uint_eq(wc[i].wr_id, (*taken)++);
        if (n == 0)
            usleep(50);
    }
    return NULL;
}

/* Another thread polls while it grows, and misses nothing. */
START_TEST(grows_under_a_poller)
{
    pthread_t thread;
    unsigned taken = 0;
    up();
    end_qp(&b, URNIC_QPT_RC);
    end_qp(&a, URNIC_QPT_RC);
    end_connect(&a, &b);
    ck_assert_int_eq(pthread_create(&thread, NULL, poller, &taken), 0);
    for (unsigned i = 0; i < 400; i += 4) {
        arrive(i, 4);
        if (i % 40 == 0)
            ck_assert_int_eq(urnic_resize_cq(b.cq, 8 << (i / 40)), 0);
    }
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    ck_assert_uint_eq(taken, 400);
    down();
}
END_TEST

/* A list with a fault in it is refused as a whole: nothing of it completes, and its places are
 * free.
 */
START_TEST(posts_all_or_none)
{
    struct urnic_sge sge = {.length = 8};
    struct urnic_send_wr wr[4];
    struct urnic_wc wc;
    up();
    end_qp(&a, URNIC_QPT_RC);
    end_qp(&b, URNIC_QPT_RC);
    end_connect(&a, &b);
    sge.addr = (uintptr_t)a.mem;
    sge.lkey = a.mr->lkey;
    for (unsigned i = 0; i < 4; i++)
        wr[i] =
            (struct urnic_send_wr){.wr_id = i,
                                   .next = i < 3 ? &wr[i + 1] : NULL,
                                   .sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = URNIC_WR_RDMA_WRITE,
                                   .send_flags = URNIC_SEND_SIGNALED,
                                   .rdma = {.remote_addr = (uintptr_t)b.mem, .rkey = b.mr->rkey}};
    for (unsigned turn = 0; turn < 1000; turn++) {
        wr[3].num_sge = 100;
        ck_assert_int_eq(urnic_post_send_all(a.qp, wr), -EINVAL);
        wr[3].num_sge = 1;
        if (turn % 100 != 0)
            continue;
        ck_assert_int_eq(urnic_post_send_all(a.qp, wr), 0);
        for (unsigned i = 0; i < 4; i++)
            end_expect(&a, URNIC_WC_SUCCESS, i);
    }
    usleep(20000);
    ck_assert_int_eq(urnic_poll_cq(a.cq, 1, &wc), 0);
    down();
}
END_TEST

static void on_alarm(int sig)
{
    (void)sig;
}

/* A signal ends the waits that document it, unless its handler has SA_RESTART. */
START_TEST(signals_end_waits)
{
    struct urnic_async_event event;
    struct urnic_cq *cq;
    struct sigaction sa = {.sa_handler = on_alarm};
    up();
    sigaction(SIGALRM, &sa, NULL);
    ualarm(50000, 50000);
    ck_assert_int_eq(urnic_get_cq_event_intr(a.channel, &cq, NULL), -EINTR);
    ck_assert_int_eq(urnic_get_async_event_intr(a.ctx, &event), -EINTR);
    sa.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &sa, NULL);
    end_qp(&a, URNIC_QPT_RC);
    end_qp(&b, URNIC_QPT_RC);
    end_connect(&a, &b);
    ck_assert_int_eq(urnic_req_notify_cq(a.cq, false), 0);
    ck_assert_int_eq(end_post_recv(&b, 0, 8, 1), 0);
    ck_assert_int_eq(end_post(&a, URNIC_WR_SEND, 0, 8, 0, 0, 1), 0);
    ck_assert_int_eq(urnic_get_cq_event_intr(a.channel, &cq, NULL), 0);
    ualarm(0, 0);
    urnic_ack_cq_events(cq, 1);
    end_expect(&a, URNIC_WC_SUCCESS, 1);
    down();
}
END_TEST

/* A context that hangs up is gone for its peers at once; its objects can still be destroyed. */
START_TEST(hangs_up)
{
    struct urnic_wc wc;
    up();
    end_qp(&a, URNIC_QPT_RC);
    end_qp(&b, URNIC_QPT_RC);
    end_connect(&a, &b);
    urnic_hang_up(b.ctx);
    ck_assert_int_eq(end_post(&b, URNIC_WR_SEND, 0, 8, 0, 0, 1), -ENODEV);
    usleep(100000);
    ck_assert_int_eq(end_post(&a, URNIC_WR_SEND, 0, 8, 0, 0, 1), 0);
    end_wait(&a, &wc, 10000);
    ck_assert_int_eq(wc.status, URNIC_WC_RETRY_EXC_ERR);
    down();
}
END_TEST

UNIT_MAIN("queues", grows, grows_armed, grows_under_a_poller, posts_all_or_none, signals_end_waits,
          hangs_up)
