/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Queue pairs by their next hop: a neighbour's new MAC costs as much as has queue pairs to it, and
 * no round more than its budget. A device without a thread.
 */
#include <string.h>

#include "clock.h"
#include "config.h"
#include "context.h"
#include "contexts.h"
#include "device.h"
#include "memory.h"
#include "neigh.h"
#include "unit.h"
#include "worker.h"

#define ALL 30000u /* queue pairs of the device */
#define FEW 1000u  /* ... that send to one neighbour */

static struct worker worker;
static struct config_device conf;
static struct device *dev;
static struct client_qp qps[ALL];
static uint64_t now;

static struct wire_addr ip(const char *s)
{
    struct wire_addr a;

    ck_assert_int_eq(wire_addr_parse(s, &a), 0);
    return a;
}

static void setup(void)
{
    char err[CONFIG_ERR];
    struct engine_qp_params p = {.type = QP_RC, .max_send_wr = 1, .max_recv_wr = 1};
    struct cq *cq;

    now = clock_now();
    ck_assert_int_eq(memory_init(), 0);
    ck_assert_int_eq(worker_init(&worker, 0, -1, IDLE_AUTO, &context_ops), 0);
    config_device_init(&conf);
    ck_assert_int_eq(
        config_device_parse(&conf, "name=urn0,port=mem:neigh_hops,addr=10.0.0.1/24", err), 0);
    ck_assert_int_eq(device_open(&dev, &conf, 0, &worker, 1, err), 0);
    ck_assert_int_eq(engine_cq_create(dev->engine, NULL, &cq), 0);
    ck_assert_int_eq(mem_pd_alloc(engine_mem(dev->engine), &p.pd), 0);
    p.send_cq = p.recv_cq = cq;
    p.max_send_sge = p.max_recv_sge = 1;
    for (unsigned i = 0; i < ALL; i++) {
        p.arg = &qps[i];
        ck_assert_int_eq(engine_qp_create(dev->engine, &p, &qps[i].qp), 0);
    }
}

static void teardown(void)
{
    for (unsigned i = 0; i < ALL; i++) {
        neigh_unwatch(dev->neigh, &qps[i].watcher);
        engine_qp_destroy(dev->engine, qps[i].qp);
    }
    device_close(dev);
    worker_fini(&worker);
}

/* The host 10.0.0.`host` says that it has this MAC, as an answer to us. */
static void answers(uint8_t host, uint8_t mac)
{
    uint8_t f[42] = {[12] = 0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 2};
    const uint8_t theirs[6] = {2, 0, 0, 0, 0, mac}, from[4] = {10, 0, 0, host},
                  to[4] = {10, 0, 0, 1};

    memcpy(f, dev->mac, 6);
    memcpy(f + 6, theirs, 6);
    memcpy(f + 22, theirs, 6);
    memcpy(f + 28, from, 4);
    memcpy(f + 32, dev->mac, 6);
    memcpy(f + 38, to, 4);
    neigh_rx(dev->neigh, f, sizeof(f), now);
}

static unsigned told(uint8_t mac)
{
    unsigned n = 0;

    for (unsigned i = 0; i < ALL; i++) {
        struct engine_qp_attr a;
        engine_qp_query(qps[i].qp, &a, NULL);
        n += a.av.dmac[0] == 2 && a.av.dmac[5] == mac;
    }
    return n;
}

START_TEST(new_mac_costs_its_own)
{
    const struct wire_addr few = ip("10.0.0.50"), one = ip("10.0.0.51");

    for (unsigned i = 0; i < FEW; i++)
        neigh_watch(dev->neigh, &qps[i * 7].watcher, qps[i * 7].qp, &few, now);
    neigh_watch(dev->neigh, &qps[1].watcher, qps[1].qp, &one, now);
    neigh_run(dev->neigh, now);
    answers(51, 9);
    neigh_run(dev->neigh, now);
    ck_assert_uint_eq(told(9), 1);
    ck_assert_uint_eq(dev->stats.neigh_qp_visits, 1); /* SHM-12: of 30,000 */
    ck_assert_uint_eq(dev->stats.neigh_over_budget, 0);
    answers(52, 8); /* of no queue pair's */
    neigh_run(dev->neigh, now);
    ck_assert_uint_eq(dev->stats.neigh_qp_visits, 1);

    answers(50, 7);
    neigh_run(dev->neigh, now);
    unsigned first = told(7), rounds = 1;
    ck_assert_uint_gt(first, 0);
    ck_assert_uint_lt(first, FEW);
    ck_assert_uint_eq(neigh_deadline(dev->neigh), 0); /* the rest is due at once */
    neigh_unwatch(dev->neigh, &qps[0].watcher);       /* some go meanwhile, others come */
    neigh_unwatch(dev->neigh, &qps[(FEW - 1) * 7].watcher);
    neigh_watch(dev->neigh, &qps[2].watcher, qps[2].qp, &few, now);
    for (; neigh_deadline(dev->neigh) == 0 && rounds < 100; rounds++)
        neigh_run(dev->neigh, now);
    ck_assert_uint_gt(rounds, 2);
    ck_assert_uint_eq(told(7), FEW - 1); /* but for the last one, which doesn't send there now */
    ck_assert_uint_eq(dev->stats.neigh_qp_visits, FEW);
    ck_assert_uint_eq(dev->stats.neigh_over_budget, rounds - 1);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("neigh_hops");
    TCase *t = tcase_create("neigh_hops");

    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, new_mac_costs_its_own);
    suite_add_tcase(s, t);
    return unit_run(s);
}
