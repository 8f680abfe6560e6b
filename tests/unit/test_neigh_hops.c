/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Queue pairs by their next hop: the cost of a neighbour's new MAC grows with the queue pairs that
 * send to it, within a budget for each round; and each user has its share of neighbours. A device
 * without a thread.
 */
#include <errno.h>
#include <string.h>

#include "clock.h"
#include "config.h"
#include "context.h"
#include "contexts.h"
#include "device.h"
#include "memory.h"
#include "neigh.h"
#include "quota.h"
#include "share.h"
#include "team.h"
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
        neigh_unwatch(dev->neigh, NULL, &qps[i].watcher);
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

static void watch(struct client_qp *qp, const struct wire_addr *dst)
{
    struct neigh_hop *hop;
    ck_assert_int_eq(neigh_hold(dev->neigh, NULL, dst, &hop), 0);
    neigh_watch(dev->neigh, NULL, &qp->watcher, qp->qp, hop, now);
}

static uint64_t visits(void)
{
    return dev->stats.job[BUDGET_neigh].visits;
}

START_TEST(new_mac_costs_its_own)
{
    const struct wire_addr few = ip("10.0.0.50"), one = ip("10.0.0.51");
    for (unsigned i = 0; i < FEW; i++)
        watch(&qps[i * 7], &few);
    watch(&qps[1], &one);
    neigh_run(dev->neigh, now);
    answers(51, 9);
    neigh_run(dev->neigh, now);
    ck_assert_uint_eq(told(9), 1);
    ck_assert_uint_eq(visits(), 1); /* SHM-12: of 30,000 */
    ck_assert_uint_eq(dev->stats.job[BUDGET_neigh].over, 0);
    answers(52, 8); /* neighbour of no queue pair */
    neigh_run(dev->neigh, now);
    ck_assert_uint_eq(visits(), 1);

    answers(50, 7);
    neigh_run(dev->neigh, now);
    unsigned first = told(7), rounds = 1;
    ck_assert_uint_gt(first, 0);
    ck_assert_uint_lt(first, FEW);
    ck_assert_uint_eq(neigh_deadline(dev->neigh), 0); /* the rest is due at once */
    neigh_unwatch(dev->neigh, NULL, &qps[0].watcher); /* some go meanwhile, others come */
    neigh_unwatch(dev->neigh, NULL, &qps[(FEW - 1) * 7].watcher);
    watch(&qps[2], &few);
    for (; neigh_deadline(dev->neigh) == 0 && rounds < 100; rounds++)
        neigh_run(dev->neigh, now);
    ck_assert_uint_gt(rounds, 2);
    ck_assert_uint_eq(told(7), FEW - 1); /* except the last one, which doesn't send there now */
    ck_assert_uint_eq(visits(), FEW);
    ck_assert_uint_eq(dev->stats.job[BUDGET_neigh].over, rounds - 1);
}
END_TEST

static void not_called(struct neigh_waiter *w, int status, const uint8_t mac[6], uint64_t at)
{
    (void)w;
    (void)status;
    (void)mac;
    (void)at;
    ck_abort_msg("the waiter of a user above its share was called");
}

/* The i-th of a user's made-up neighbours. */
static struct wire_addr made_up(unsigned user, unsigned i)
{
    return (struct wire_addr){
        .b = {0xfe, 0x80, [8] = 0, (uint8_t)user, [14] = (uint8_t)(i >> 8), (uint8_t)i}};
}

/* SEC-22: a user that sends to as many neighbours as it can, or waits for them, leaves some to
 * others and more to administrators; more queue pairs to one of its neighbours cost nothing. */
START_TEST(neighbours_are_shared)
{
    struct share *hog = share_join(&dev->team->share, 1000, false),
                 *other = share_join(&dev->team->share, 1001, false),
                 *root = share_join(&dev->team->share, 0, true);
    const unsigned most = LIMIT_NEIGH - LIMIT_NEIGH / 8;
    static struct neigh_hop *hop[LIMIT_NEIGH + LIMIT_NEIGH_RESERVE], *more;
    struct wire_addr a;
    uint8_t mac[6];
    unsigned n = 0;
    for (; n < sizeof(hop) / sizeof(hop[0]); n++) {
        a = made_up(0, n);
        if (neigh_hold(dev->neigh, hog, &a, &hop[n]) < 0)
            break;
        neigh_watch(dev->neigh, hog, &qps[n].watcher, qps[n].qp, hop[n], now);
    }
    ck_assert_uint_eq(n, most);
    ck_assert_uint_eq(dev->team->share.refused[SHARE_NEIGH], 1);
    ck_assert_int_eq(hog->lacked, SHARE_NEIGH);

    /* Neither does it get one by waiting or by datagrams, but it may still use its own. */
    struct neigh_waiter w = {.dst = a, .share = hog, .done = not_called};
    ck_assert_int_eq(neigh_wait(dev->neigh, &w, CLOCK_SEC, now), -EDQUOT);
    ck_assert_int_eq(neigh_lookup(dev->neigh, hog, &a, mac, now), -EDQUOT);
    a = made_up(0, 7);
    ck_assert_int_eq(neigh_hold(dev->neigh, hog, &a, &more), 0);
    ck_assert_ptr_eq(more, hop[7]);
    neigh_let_go(dev->neigh, hog, more);
    ck_assert_int_eq(neigh_lookup(dev->neigh, hog, &a, mac, now), -EAGAIN);

    /* Others still get some, and root gets the rest; all of them are in the table. */
    for (unsigned i = 0; i < LIMIT_NEIGH / 64; i++) {
        a = made_up(1, i);
        ck_assert_int_eq(neigh_hold(dev->neigh, other, &a, &more), 0);
        neigh_watch(dev->neigh, other, &qps[most + i].watcher, qps[most + i].qp, more, now);
        ck_assert_ptr_nonnull(qps[most + i].watcher.hop);
    }
    for (unsigned i = 0; i < LIMIT_NEIGH_RESERVE; i++) {
        a = made_up(2, i);
        ck_assert_int_eq(neigh_hold(dev->neigh, root, &a, &more), 0);
        neigh_watch(dev->neigh, root, &qps[2 * most + i].watcher, qps[2 * most + i].qp, more, now);
        ck_assert_ptr_nonnull(qps[2 * most + i].watcher.hop);
    }

    /* All is given back, once. */
    for (unsigned i = 0; i < most; i++)
        neigh_unwatch(dev->neigh, hog, &qps[i].watcher);
    ck_assert_uint_eq(hog->used[SHARE_NEIGH], 0);
    a = made_up(0, most);
    ck_assert_int_eq(neigh_hold(dev->neigh, hog, &a, &more), 0);
    neigh_let_go(dev->neigh, hog, more);
    for (unsigned i = 0; i < ALL; i++)
        neigh_unwatch(dev->neigh, i < 2 * most ? other : root, &qps[i].watcher);
    ck_assert_uint_eq(dev->team->share.used[SHARE_NEIGH], 0);
    share_leave(hog);
    share_leave(other);
    share_leave(root);
}
END_TEST

/* A user may be gone before its awaited answer: nothing of it stays. */
START_TEST(waiters_give_back)
{
    struct share *s = share_join(&dev->team->share, 1000, false);
    struct wire_addr a = made_up(0, 1);
    struct neigh_waiter w = {.dst = a, .share = s, .done = not_called};
    ck_assert_int_eq(neigh_wait(dev->neigh, &w, CLOCK_SEC, now), 0);
    ck_assert_uint_eq(s->used[SHARE_NEIGH], 1);
    neigh_cancel(dev->neigh, &w);
    ck_assert_uint_eq(s->used[SHARE_NEIGH], 0);
    ck_assert_uint_eq(s->members, 1);
    share_leave(s);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("neigh_hops");
    TCase *t = tcase_create("neigh_hops");

    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, new_mac_costs_its_own);
    tcase_add_test(t, neighbours_are_shared);
    tcase_add_test(t, waiters_give_back);
    suite_add_tcase(s, t);
    return unit_run(s);
}
