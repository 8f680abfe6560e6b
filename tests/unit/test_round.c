/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Rounds of a worker without a thread: the caller of worker_round is the worker. Two devices on one
 * emulated link, without a part that serves QP1.
 */
#include "round.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "contexts.h"
#include "datapath.h"
#include "device.h"
#include "memory.h"
#include "neigh.h"
#include "stats.h"
#include "unit.h"
#include "worker.h"

#define ROUNDS 100000u

static struct worker w;
static struct config_device conf[2];
static struct device *dev[2];
static struct wire_addr ip[2];

static void setup(void)
{
    char err[CONFIG_ERR];
    ck_assert_int_eq(memory_init(), 0);
    ck_assert_int_eq(worker_init(&w, 0, -1, IDLE_AUTO, &context_ops), 0);
    for (unsigned i = 0; i < 2; i++) {
        ip[i] = wire_addr_v4(0x0A000001 + i);
        conf[i] = (struct config_device){
            .name = {'u', 'r', 'n', (char)('0' + i)}, .port = "mem:rounds", .naddr = 1};
        conf[i].addr[0] = (struct config_addr){.ip = ip[i], .prefix = 24};
        cc_conf_init(&conf[i].cc, &cc_none);
        int rc = device_open(&dev[i], &conf[i], i, &w, i, err);
        ck_assert_msg(rc == 0, "%s", err);
    }
}

static void teardown(void)
{
    device_close(dev[0]);
    device_close(dev[1]);
    worker_fini(&w);
}

/* One device finds the other's MAC: frames go in and out, and time passes. */
START_TEST(any_caller_runs_rounds)
{
    uint8_t mac[6];
    int rc = neigh_lookup(dev[0]->neigh, NULL, &ip[1], mac, clock_now());
    ck_assert_int_eq(rc, -EAGAIN);
    for (unsigned i = 0; i < ROUNDS && rc == -EAGAIN; i++) {
        worker_round(&w, clock_now());
        rc = neigh_lookup(dev[0]->neigh, NULL, &ip[1], mac, clock_now());
    }
    ck_assert_int_eq(rc, 0);
    ck_assert_int_eq(memcmp(mac, dev[1]->mac, 6), 0);
    ck_assert_uint_gt(dev[1]->stats.slow_path, 0);
}
END_TEST

static const struct io_ops *real_ops;

static unsigned grant_one(struct io_port *io, struct io_slot *slots, unsigned max, uint64_t now)
{
    return real_ops->tx_reserve(io, slots, max < 1 ? max : 1, now);
}

/* A port that grants less than asked for is slow, or nearly full. The round then receives before it
 * sends more. */
START_TEST(a_slow_port_ends_the_sending_of_a_round)
{
    struct io_port *io = dev[0]->io;
    struct io_ops slow = *io->ops;
    struct io_stats stats = {0};
    uint8_t mac[6];
    uint64_t end = clock_now() + 10 * CLOCK_SEC;
    while (worker_round(&w, clock_now()) > 0) /* the devices' first frames */
        ck_assert_uint_lt(clock_now(), end);
    for (unsigned i = 0; i < 3; i++) {
        struct wire_addr a = wire_addr_v4(0x0A000010 + i);
        ck_assert_int_eq(neigh_lookup(dev[0]->neigh, NULL, &a, mac, clock_now()), -EAGAIN);
    }
    io->ops->stats(io, &stats);
    uint64_t before = stats.tx_frames;
    real_ops = io->ops;
    slow.tx_reserve = grant_one;
    io->ops = &slow;
    for (unsigned i = 1; i <= 3; i++) {
        ck_assert_uint_eq(device_tx(dev[0], clock_now()), 1);
        io->ops->stats(io, &stats);
        ck_assert_uint_eq(stats.tx_frames - before, i);
    }
    io->ops = real_ops;
}
END_TEST

/* What a round has done, in order: 'f' = frames to a port, 'c' = completions become visible. */
static char did[16];

static void note(char what)
{
    const size_t n = strlen(did);
    if (n + 1 < sizeof(did))
        did[n] = what;
}

static void note_frames(struct io_port *io, const struct io_slot *slots, unsigned n, uint64_t now)
{
    for (unsigned i = 0; i < n; i++) {
        if (slots[i].len > 0) {
            note('f');
            break;
        }
    }
    real_ops->tx_commit(io, slots, n, now);
}

static unsigned grant_none(struct io_port *io, struct io_slot *slots, unsigned max, uint64_t now)
{
    (void)io;
    (void)slots;
    (void)max;
    (void)now;
    return 0;
}

static void note_completions(struct worker *worker, uint64_t now)
{
    if (worker->settled)
        note('c');
    context_ops.notify(worker, now);
}

/* QP-11: a program that sees a completion may exit at once, so the frames that a round owes to
 * peers go to the port first. If the port takes none for a millisecond, completions wait no longer.
 */
START_TEST(qp_11_frames_leave_before_completions_are_seen)
{
    struct io_port *io = dev[0]->io;
    struct io_ops ops = *io->ops;
    struct context_ops noted = context_ops;
    struct wire_addr a = wire_addr_v4(0x0A000010);
    uint8_t mac[6];
    uint64_t now, end = clock_now() + 10 * CLOCK_SEC;
    while (worker_round(&w, clock_now()) > 0)
        ck_assert_uint_lt(clock_now(), end);
    noted.notify = note_completions;
    w.context_ops = &noted;
    real_ops = io->ops;
    ops.tx_commit = note_frames;
    io->ops = &ops;
    ck_assert_int_eq(neigh_lookup(dev[0]->neigh, NULL, &a, mac, clock_now()), -EAGAIN);
    worker_round(&w, clock_now());
    ck_assert_str_eq(did, "fc");

    memset(did, 0, sizeof(did));
    ops.tx_reserve = grant_none;
    a = wire_addr_v4(0x0A000011);
    now = clock_now();
    ck_assert_int_eq(neigh_lookup(dev[0]->neigh, NULL, &a, mac, now), -EAGAIN);
    worker_round(&w, now);
    worker_round(&w, now + CLOCK_MS / 2);
    ck_assert_str_eq(did, "");
    worker_round(&w, now + 2 * CLOCK_MS);
    ck_assert_str_eq(did, "c");
    io->ops = real_ops;
    w.context_ops = &context_ops;
}
END_TEST

static void set(void *arg, uint64_t now)
{
    (void)now;
    *(bool *)arg = true;
}

/* A waiting job counts as work, and the round runs it. */
START_TEST(a_round_does_jobs)
{
    bool done = false;
    struct job job = {.fn = set, .arg = &done};
    uint64_t now = clock_now();
    jobs_add(&w.jobs, &job);
    ck_assert(worker_anything(&w, now));
    ck_assert_uint_gt(worker_round(&w, now), 0);
    ck_assert(done);
    job_wait(&job);
    ck_assert(!jobs_any(&w.jobs));
}
END_TEST

/* A worker that has nothing to do blocks for a while, not for ever: it looks after its ports. */
START_TEST(deadline_is_soon)
{
    uint64_t now = clock_now();
    ck_assert_uint_le(worker_deadline(&w, now), now + CLOCK_SEC);
}
END_TEST

static bool kicked(void)
{
    uint64_t count;
    struct pollfd pfd = {.fd = w.eventfd, .events = POLLIN};
    return poll(&pfd, 1, 0) == 1 && read(w.eventfd, &count, sizeof(count)) == sizeof(count);
}

/* While a thread stands in for the worker, another one leaves a job. */
static void leaves_something(void *arg, uint64_t now)
{
    (void)arg;
    (void)now;
    ck_assert(!token_want(&w.token));
}

/* A thread has done a job in the place of a blocked worker, and gives the worker's token back
 * (token.h). If another thread has left work meanwhile, the first thread does a round for that. It
 * then wakes the worker, which alone can handle the round's remaining frames and timers in time. */
START_TEST(what_a_round_in_its_place_leaves)
{
    bool done = false;
    uint64_t end = clock_now() + 10 * CLOCK_SEC;
    while (worker_round(&w, clock_now()) > 0) /* the devices' first frames */
        ck_assert_uint_lt(clock_now(), end);
    w.inline_only = true; /* as blocked, though it has no thread */
    atomic_store(&w.shared->sleeping, 1);
    w.sleep_until = 0; /* nothing is due sooner */
    worker_call(&w, set, &done);
    ck_assert(done);
    ck_assert(!kicked());
    worker_call(&w, leaves_something, NULL);
    ck_assert(kicked());
    ck_assert(token_try(&w.token));
    ck_assert(token_release(&w.token));
    atomic_store(&w.shared->sleeping, 0);
}
END_TEST

/* Without the connection manager's table there are no counters of it, and nothing to do for it. */
START_TEST(nothing_serves_qp1)
{
    static struct stats_entry e[STATS_MAX];
    unsigned n = stats_collect(dev[0], e);
    ck_assert_uint_gt(n, 50);
    for (unsigned i = 0; i < n; i++)
        ck_assert_msg(strncmp(e[i].name, "cm_live", 7) != 0, "%s", e[i].name);
    ck_assert_ptr_eq(dev[0]->gsi, &gsi_none);
    ck_assert(!gsi_none.ops->busy(&gsi_none) && !gsi_none.ops->tx_ready(&gsi_none));
    ck_assert_uint_eq(gsi_none.ops->deadline(&gsi_none), UINT64_MAX);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("round");
    TCase *t = tcase_create("round");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, any_caller_runs_rounds);
    tcase_add_test(t, a_slow_port_ends_the_sending_of_a_round);
    tcase_add_test(t, qp_11_frames_leave_before_completions_are_seen);
    tcase_add_test(t, a_round_does_jobs);
    tcase_add_test(t, deadline_is_soon);
    tcase_add_test(t, what_a_round_in_its_place_leaves);
    tcase_add_test(t, nothing_serves_qp1);
    suite_add_tcase(s, t);
    return unit_run(s);
}
