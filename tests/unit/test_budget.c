/* SPDX-License-Identifier: BSD-3-Clause
 *
 * SHM-12: for any request or packet a worker looks at a bounded number of queue pairs at a time,
 * with 200 of them as with 30,000. A device without a thread, and its counters.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "config.h"
#include "context.h"
#include "contexts.h"
#include "datapath.h"
#include "device.h"
#include "device_addr.h"
#include "device_port.h"
#include "memory.h"
#include "neigh.h"
#include "quota.h"
#include "round.h"
#include "unit.h"
#include "worker.h"

#define FEW    200u
#define MANY   30000u
#define ROUNDS 1000u /* most rounds that the rest of a job takes */

static struct worker worker;
static struct config_device conf;
static struct device *dev;
static struct client_qp qps[MANY];
static struct engine_qp_params params;
static unsigned nqps;
static uint64_t now;

static struct wire_addr ip(const char *s)
{
    struct wire_addr a;
    ck_assert_int_eq(wire_addr_parse(s, &a), 0);
    return a;
}

/* A connected queue pair that sends from `from`. */
static void connect_qp(struct client_qp *qp, const char *from)
{
    struct engine_qp_attr a = {
        .state = QPS_INIT,
        .port = 1,
        .path_mtu = 5,
        .dest_qpn = 77,
        .timeout = 14,
        .retry_cnt = 7,
        .rnr_retry = 7,
        .av = {.sgid = ip(from), .dgid = ip("10.0.0.50"), .hop_limit = 64},
    };
    ck_assert_int_eq(engine_qp_modify(dev->engine, qp->qp, &a,
                                      QPA_STATE | QPA_PKEY_INDEX | QPA_PORT | QPA_ACCESS_FLAGS,
                                      now),
                     0);
    a.state = QPS_RTR;
    ck_assert_int_eq(engine_qp_modify(dev->engine, qp->qp, &a,
                                      QPA_STATE | QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN |
                                          QPA_RQ_PSN | QPA_MAX_DEST_RD_ATOMIC | QPA_MIN_RNR_TIMER,
                                      now),
                     0);
}

static void open_device(unsigned n)
{
    char err[CONFIG_ERR];
    struct cq *cq;
    now = clock_now();
    nqps = n;
    ck_assert_int_eq(memory_init(), 0);
    ck_assert_int_eq(worker_init(&worker, 0, -1, IDLE_AUTO, &context_ops), 0);
    config_device_init(&conf);
    ck_assert_int_eq(config_device_parse(
                         &conf, "name=urn0,port=mem:budget,addr=10.0.0.1/24,addr=10.0.0.2/24", err),
                     0);
    ck_assert_int_eq(device_open(&dev, &conf, 0, &worker, 1, err), 0);
    ck_assert_int_eq(engine_cq_create(dev->engine, NULL, &cq), 0);
    params = (struct engine_qp_params){.type = QP_RC,
                                       .max_send_wr = 1,
                                       .max_recv_wr = 1,
                                       .max_send_sge = 1,
                                       .max_recv_sge = 1,
                                       .send_cq = cq,
                                       .recv_cq = cq};
    ck_assert_int_eq(mem_pd_alloc(engine_mem(dev->engine), &params.pd), 0);
    for (unsigned i = 0; i < nqps; i++) {
        ck_assert_int_eq(engine_qp_create(dev->engine, &params, &qps[i].qp), 0);
        connect_qp(&qps[i], i % 2 ? "10.0.0.1" : "10.0.0.2");
    }
}

static void close_device(void)
{
    for (unsigned i = 0; i < nqps; i++) {
        neigh_unwatch(dev->neigh, NULL, &qps[i].watcher);
        engine_qp_destroy(dev->engine, qps[i].qp);
    }
    device_close(dev);
    worker_fini(&worker);
}

static void setup_few(void)
{
    open_device(FEW);
}

static void setup_many(void)
{
    open_device(MANY);
}

/* The number of queue pairs that the worker has looked at, for any job. */
static uint64_t looks(void)
{
    return engine_qp_looks(dev->engine) + dev->stats.job[BUDGET_neigh].visits +
           dev->stats.job[BUDGET_waiter].visits;
}

/* Check the cost of the request or packet itself since `before`, then of each round until the job
 * is done. Returns the number of rounds. */
static unsigned bounded(uint64_t before)
{
    unsigned rounds = 0;
    ck_assert_uint_le(looks() - before, budget_of[BUDGET_list]);
    do {
        before = looks();
        device_timers(dev, now);
        ck_assert_uint_le(looks() - before, 3 * 256);
        rounds++;
    } while (device_deadline(dev, now) <= now && rounds < ROUNDS);
    ck_assert_uint_lt(rounds, ROUNDS);
    return rounds;
}

static unsigned in_state(enum qp_state state, bool mute)
{
    unsigned n = 0;
    for (unsigned i = 0; i < nqps; i++) {
        struct engine_qp_attr a;
        engine_qp_query(qps[i].qp, &a, NULL);
        n += a.state == state && engine_qp_is_mute(qps[i].qp) == mute;
    }
    return n;
}

/* GID-04 over all of them: silent, back, gone for good. */
START_TEST(addresses)
{
    const struct config_addr second = {.ip = ip("10.0.0.2"), .prefix = 24};
    uint64_t before = looks();
    unsigned all = nqps / 2;
    ck_assert_int_eq(device_addr_del(dev, &second.ip, now), 0);
    bounded(before);
    ck_assert_uint_eq(in_state(QPS_RTR, true), all);
    before = looks();
    ck_assert_int_eq(device_addr_add(dev, &second), 0);
    bounded(before);
    ck_assert_uint_eq(in_state(QPS_RTR, true), 0);

    /* Removed, back and removed during the first pass: only the current state counts. */
    ck_assert_int_eq(device_addr_del(dev, &second.ip, now), 0);
    device_timers(dev, now);
    ck_assert_int_eq(device_addr_add(dev, &second), 0);
    device_timers(dev, now);
    ck_assert_int_eq(device_addr_del(dev, &second.ip, now), 0);
    bounded(looks());
    ck_assert_uint_eq(in_state(QPS_RTR, true), all);
    now += dev->conf->addr_hold + 1;
    before = looks();
    device_addr_service(dev, now);
    bounded(before);
    ck_assert_uint_eq(in_state(QPS_RTR, false), nqps - all);
    ck_assert_uint_eq(in_state(QPS_ERR, true) + in_state(QPS_ERR, false), all);
    ck_assert_int_eq(dev->stats.job[BUDGET_addr].over > 0, nqps == MANY);
}
END_TEST

START_TEST(port_and_congestion_control)
{
    static const uint8_t mac[6] = {2, 9, 9, 9, 9, 9};
    uint64_t before = looks();
    struct cc_conf cc;
    engine_set_mac(dev->engine, mac);
    bounded(before);
    before = looks();
    engine_set_mtu(dev->engine, 3);
    bounded(before);
    ck_assert_uint_eq(engine_larger_mtu(dev->engine), nqps);
    ck_assert_int_eq(cc_conf_parse(&cc, "dcqcn", NULL, 0), 0);
    before = looks();
    ck_assert_int_eq(engine_set_cc(dev->engine, &cc, now), 0);
    bounded(before);
    for (unsigned i = 0; i < nqps; i++) {
        struct engine_qp_info info;
        engine_qp_info(dev->engine, qps[i].qp, &info);
        ck_assert_ptr_eq(info.cc, engine_cc(dev->engine));
    }
    ck_assert_int_eq(dev->stats.job[BUDGET_follow].over > 0, nqps == MANY);
}
END_TEST

static bool count_one(void *arg, struct qp *qp)
{
    (void)qp;
    ++*(unsigned *)arg;
    return true;
}

/* A listing, with a filter that matches nothing as with one that matches all: each part is bounded,
 * and all are met once, also while others come and go. */
START_TEST(listings)
{
    unsigned seen = 0, parts = 0;
    uint32_t at = 0;
    do {
        uint64_t before = looks();
        at = device_list(dev, at, count_one, &seen);
        ck_assert_uint_le(looks() - before, budget_of[BUDGET_list]);
        struct qp *qp;
        ck_assert_int_eq(engine_qp_create(dev->engine, &params, &qp), 0);
        engine_qp_destroy(dev->engine, qp);
    } while (at && ++parts < ROUNDS);
    ck_assert_uint_eq(at, 0);
    ck_assert_uint_eq(seen, nqps);
    ck_assert_int_eq(dev->stats.job[BUDGET_list].over > 0, nqps == MANY);
}
END_TEST

START_TEST(create_and_destroy)
{
    uint64_t before = looks();
    struct qp *qp;
    for (unsigned i = 0; i < 1000; i++) {
        ck_assert_int_eq(engine_qp_create(dev->engine, &params, &qp), 0);
        engine_qp_destroy(dev->engine, qp);
    }
    ck_assert_uint_eq(looks(), before);
}
END_TEST

/* Ids that wait for one neighbour that never answers: each announcement of another host is news. */
static unsigned given_up;

static void gives_up(struct neigh_waiter *w, int status, const uint8_t mac[6], uint64_t at)
{
    (void)w;
    (void)mac;
    (void)at;
    given_up += status == -ETIMEDOUT || status == -EHOSTUNREACH;
}

START_TEST(waiters)
{
    static struct neigh_waiter w[MANY];
    given_up = 0;
    for (unsigned i = 0; i < nqps; i++) {
        w[i] = (struct neigh_waiter){.dst = ip("10.0.0.99"), .done = gives_up};
        ck_assert_int_eq(neigh_wait(dev->neigh, &w[i], CLOCK_SEC + i, now), 0);
    }
    neigh_cancel(dev->neigh, &w[7]);
    neigh_cancel(dev->neigh, &w[7]);
    neigh_link_up(dev->neigh, now); /* news */
    uint64_t before = looks();
    neigh_run(dev->neigh, now);
    ck_assert_uint_le(looks() - before, budget_of[BUDGET_waiter]);
    ck_assert_uint_gt(looks() - before, 0);
    ck_assert_int_eq(dev->stats.job[BUDGET_waiter].over > 0, nqps > budget_of[BUDGET_waiter]);
    now += 20 * CLOCK_SEC;
    for (unsigned i = 0; given_up < nqps - 1 && i < ROUNDS; i++) {
        before = looks();
        neigh_run(dev->neigh, now);
        ck_assert_uint_le(looks() - before, budget_of[BUDGET_waiter]);
    }
    ck_assert_uint_eq(given_up, nqps - 1); /* each in time, and only once */
    neigh_run(dev->neigh, now);
    ck_assert_uint_eq(given_up, nqps - 1);
}
END_TEST

/* A round looks at a context that has a queue. It touches none of the thousand that have none:
 * their doorbells are NULL. */
START_TEST(idle_contexts)
{
    static struct context c[1000];
    const size_t size = sizeof(struct ipc_doorbell) + QUOTA_QUEUES * sizeof(uint32_t);
    struct ipc_doorbell *bell = aligned_alloc(IPC_LINE, size);
    void *ring = aligned_alloc(IPC_LINE, ipc_queue_size(4, IPC_UNIT));
    struct queue q = {0};
    ck_assert(bell && ring);
    memset(bell, 0, size);
    for (unsigned i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
        ck_assert_int_eq(context_init(&c[i], dev, NULL), 0);
        c[i].worker = &worker;
        c[i].next = worker.contexts;
        worker.contexts = &c[i];
    }
    ck_assert_uint_eq(context_ops.count(dev), sizeof(c) / sizeof(c[0]));
    (void)worker_round(&worker, now);
    ck_assert(!worker_anything(&worker, now));

    c[7].doorbell = bell;
    ipc_ring_init(&q.ring, ring, 4, IPC_UNIT, false);
    ck_assert_int_eq(context_queue_add(&c[7], &q), 0);
    (void)ipc_doorbell_push(bell, QUOTA_QUEUES, 9, worker.shared); /* no queue has this number */
    ck_assert(worker_anything(&worker, now));
    (void)worker_round(&worker, now);
    ck_assert_uint_eq(dev->stats.client_bad_doorbell, 1);

    context_unserve(&c[7]);
    c[7].doorbell = NULL;
    (void)worker_round(&worker, now);
    worker.contexts = NULL;
    for (unsigned i = 0; i < sizeof(c) / sizeof(c[0]); i++)
        context_fini(&c[i]);
    free(ring);
    free(bell);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_set_timeout(t, 60);
    tcase_add_test(t, addresses);
    tcase_add_test(t, port_and_congestion_control);
    tcase_add_test(t, listings);
    tcase_add_test(t, create_and_destroy);
    tcase_add_test(t, waiters);
    tcase_add_test(t, idle_contexts);
}

int main(void)
{
    Suite *s = suite_create("budget");
    TCase *few = tcase_create("200 queue pairs"), *many = tcase_create("30,000 queue pairs");

    tcase_add_checked_fixture(few, setup_few, close_device);
    tcase_add_checked_fixture(many, setup_many, close_device);
    add_tests(few);
    add_tests(many);
    suite_add_tcase(s, few);
    suite_add_tcase(s, many);
    return unit_run(s);
}
