/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A worker's thread beside a thread of the program that polls (worker_poll). All rounds are empty:
 * but for one test there is no device.
 */
#include "worker.h"

#include <sched.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <time.h>

#include "clock.h"
#include "contexts.h"
#include "device.h"
#include "engine_priv.h"
#include "memory.h"
#include "unit.h"

#define LONG   (20 * CLOCK_SEC)
#define TRIES  200u
#define FEW    20u
#define PROMPT (100 * CLOCK_US) /* the thread's own look comes after 250 us */
#define SPINS  32u              /* worker.c */
#define STREAM 32u              /* likewise */

static struct worker w;

static void setup(void)
{
    ck_assert_int_eq(memory_init(), 0);
    ck_assert_int_eq(worker_init(&w, 0, -1, IDLE_AUTO, &context_ops), 0);
}

static void teardown(void)
{
    worker_stop(&w);
    worker_fini(&w);
}

/* A thread that stays since polls are rare leaves the rounds to a program that spins, but not to
 * one that polls a little before each wait for an event. */
START_TEST(spinning_ends_a_stay)
{
    atomic_store(&w.stays_until, clock_now() + LONG);
    for (unsigned i = 0; i < SPINS - 1; i++)
        ck_assert(!worker_poll(&w));
    worker_waits(&w);
    for (unsigned i = 0; i < SPINS - 1; i++)
        ck_assert(!worker_poll(&w));
    ck_assert_uint_ne(atomic_load(&w.stays_until), 0);
    ck_assert(worker_poll(&w));
    ck_assert_uint_eq(atomic_load(&w.stays_until), 0);
    ck_assert(worker_poll(&w));
}
END_TEST

/* How often this thread has slept. */
static long sleeps(void)
{
    struct rusage u;
    ck_assert_int_eq(getrusage(RUSAGE_THREAD, &u), 0);
    return u.ru_nvcsw;
}

/* Another thread has the token and may have lost this core to us: a poll yields. If that thread has
 * had it for more than a millisecond, a yield has not helped, as beside a poller of a real-time
 * priority, and the poll sleeps. */
START_TEST(a_poll_gives_way_to_the_holder)
{
    ck_assert(token_try(&w.token));
    atomic_store(&w.round_at, clock_now() + LONG);
    long before = sleeps();
    for (unsigned i = 0; i < FEW; i++)
        ck_assert(!worker_poll(&w));
    ck_assert_int_eq(sleeps() - before, 0);
    atomic_store(&w.round_at, clock_now() - 2 * CLOCK_MS);
    before = sleeps();
    for (unsigned i = 0; i < FEW; i++)
        ck_assert(!worker_poll(&w));
    ck_assert_int_eq(sleeps() - before, FEW);
    ck_assert(token_release(&w.token));
}
END_TEST

/* The thread waits for the token, whose holder has lost this core to it. The kernel may return each
 * yield at once, and slowly, as on an emulated processor. The thread sleeps all the same. */
START_TEST(the_thread_gives_way_to_the_holder)
{
    const struct timespec pause = {.tv_nsec = 50000000};
    clockid_t clock;
    struct timespec used;
    w.pace.turn_ns = 0; /* each yield seems to be another program's turn */
    ck_assert(token_try(&w.token));
    ck_assert_int_eq(worker_start(&w), 0);
    ck_assert_int_eq(pthread_getcpuclockid(w.thread, &clock), 0);
    ck_assert_int_eq(nanosleep(&pause, NULL), 0);
    ck_assert_int_eq(clock_gettime(clock, &used), 0);
    ck_assert_int_eq(used.tv_sec, 0);
    ck_assert_int_lt(used.tv_nsec, pause.tv_nsec / 4);
    ck_assert(token_release(&w.token));
}
END_TEST

/* Poll until the thread only looks whether polls go on. */
static void poll_until_it_looks(void)
{
    uint64_t end = clock_now() + LONG;
    while (!atomic_load(&w.looking)) {
        (void)worker_poll(&w);
        ck_assert_uint_lt(clock_now(), end);
    }
    (void)worker_poll(&w);
}

/* The program is about to wait: the thread takes over at once, and not at a later look. */
START_TEST(the_thread_takes_over_before_a_wait)
{
    uint64_t least = UINT64_MAX;
    ck_assert_int_eq(worker_start(&w), 0);
    for (unsigned i = 0; i < TRIES && least > PROMPT; i++) {
        poll_until_it_looks();
        uint64_t at = clock_now(), end = at + LONG;
        worker_waits(&w);
        while (atomic_load(&w.waits))
            ck_assert_uint_lt(clock_now(), end);
        at = clock_now() - at;
        least = at < least ? at : least;
    }
    ck_assert_uint_le(least, PROMPT);
}
END_TEST

static void thread_takes_over(void)
{
    uint64_t end = clock_now() + LONG;
    poll_until_it_looks();
    worker_waits(&w);
    while (atomic_load(&w.waits))
        ck_assert_uint_lt(clock_now(), end);
}

/* The program polls once more between arming its completion queue and waiting: this poll leaves the
 * rounds to the thread, which otherwise would look for more polls first. */
START_TEST(a_poll_before_a_wait_takes_nothing_back)
{
    unsigned left = 0;
    ck_assert_int_eq(worker_start(&w), 0);
    for (unsigned i = 0; i < TRIES && left == 0; i++) { /* in time: the thread stays for 1 ms */
        thread_takes_over();
        uint32_t inlined = atomic_load(&w.inlined);
        (void)worker_poll(&w);
        left += atomic_load(&w.stays_until) > clock_now() && atomic_load(&w.inlined) == inlined;
    }
    ck_assert_uint_eq(left, 1);
}
END_TEST

static void nothing(void *arg, uint64_t now)
{
    (void)arg;
    (void)now;
}

/* A program that spins on its completion queue and on its memory in turn, as ib_write_lat does: the
 * thread has to take over again and again. More polls are then needed to end its stay. */
START_TEST(turns_of_spinning_end_no_stay)
{
    const uint64_t end = clock_now() + LONG;
    ck_assert_int_eq(worker_start(&w), 0);
    while (atomic_load(&w.patience) <= SPINS) {
        struct job job = {.fn = nothing};
        ck_assert_uint_lt(clock_now(), end);
        poll_until_it_looks();
        jobs_add(&w.jobs, &job);
        job_wait(&job); /* the thread takes over, and finds it */
        for (unsigned i = 0; i < SPINS && !worker_poll(&w); i++)
            ;
    }
    worker_stop(&w);
    const uint32_t patience = atomic_load(&w.patience);
    atomic_store(&w.stays_until, clock_now() + LONG);
    atomic_store(&w.stay_polls, 0);
    for (uint32_t i = 0; i < patience - 1; i++)
        ck_assert(!worker_poll(&w));
    ck_assert(worker_poll(&w));
}
END_TEST

static void let_pass(uint64_t ns)
{
    uint64_t end = clock_now() + ns;
    while (clock_now() < end)
        sched_yield();
}

/* A post while the thread stays and is blocked: the poster does the rounds, and the thread sleeps
 * on. */
START_TEST(a_post_does_not_wake_the_thread)
{
    unsigned slept = 0;
    ck_assert_int_eq(worker_start(&w), 0);
    for (unsigned i = 0; i < FEW; i++) {
        thread_takes_over();
        atomic_store(&w.stays_until, clock_now() + LONG);
        while (atomic_load(&w.shared->sleeping) == 0)
            sched_yield();
        let_pass(1 * CLOCK_MS); /* now it blocks */
        uint64_t rounds = atomic_load(&w.stats.rounds);
        worker_posted(&w);
        let_pass(5 * CLOCK_MS);
        slept += atomic_load(&w.stats.rounds) == rounds; /* of the thread */
        atomic_store(&w.stays_until, 0);
    }
    ck_assert_uint_ge(slept, FEW / 4); /* a busy machine may wake it, too */
}
END_TEST

/* The core is busy for longer than the thread's period, and the program polls when it has the core
 * again: the thread lets it, and runs no round itself. */
START_TEST(the_thread_lets_a_late_program_poll)
{
    cpu_set_t before, one;
    unsigned let = 0;
    ck_assert_int_eq(sched_getaffinity(0, sizeof(before), &before), 0);
    CPU_ZERO(&one);
    CPU_SET((unsigned)sched_getcpu(), &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof(one), &one), 0); /* the thread inherits it */
    ck_assert_int_eq(worker_start(&w), 0);
    for (unsigned i = 0; i < TRIES; i++) {
        poll_until_it_looks();
        uint64_t rounds = atomic_load(&w.stats.rounds), end = clock_now() + 2 * CLOCK_MS;
        while (clock_now() < end)
            ;
        sched_yield();
        (void)worker_poll(&w);
        let += atomic_load(&w.stats.rounds) - rounds <= 1; /* the one of this poll */
    }
    ck_assert_int_eq(sched_setaffinity(0, sizeof(before), &before), 0);
    ck_assert_uint_ge(let, TRIES / 2);
}
END_TEST

static struct device *open_device(void)
{
    static struct config_device conf;
    struct device *d;
    char err[CONFIG_ERR];
    conf = (struct config_device){.name = "urn0", .port = "mem:worker", .naddr = 1};
    conf.addr[0] = (struct config_addr){.ip = wire_addr_v4(0x0A000001), .prefix = 24};
    cc_conf_init(&conf.cc, &cc_none);
    int rc = device_open(&d, &conf, 0, &w, 0, err);
    ck_assert_msg(rc == 0, "%s", err);
    return d;
}

static bool a_post_runs_a_round(void)
{
    const uint64_t before = atomic_load(&w.round_at);
    worker_posted(&w);
    return atomic_load(&w.round_at) != before;
}

/* Poll and post until a post waits. This thread may lose the core between the two. */
static bool a_post_waits(void)
{
    for (unsigned i = 0; i < TRIES; i++) {
        ck_assert(worker_poll(&w));
        w.posted_at = clock_now();
        if (!a_post_runs_a_round())
            return true;
    }
    return false;
}

/* A program that posts and polls in turn, and often: a post waits for the next poll if packets may
 * be on their way and the thread is awake, so that it sends what no poll does. */
START_TEST(a_post_may_wait_for_the_next_poll)
{
    struct device *d = open_device();
    struct timer owed = {0}; /* of a queue pair that awaits an acknowledgement */
    w.started = true;
    ck_assert(worker_poll(&w));
    ck_assert(a_post_runs_a_round()); /* nothing is on its way */
    timer_arm(&d->engine->wheel, &owed, clock_now() + LONG);
    ck_assert(worker_poll(&w));
    w.posted_at = 0; /* the first post after a pause */
    ck_assert(a_post_runs_a_round());
    ck_assert(a_post_waits());
    ck_assert(a_post_runs_a_round()); /* no poll has come since the last post */
    ck_assert(worker_poll(&w));
    ipc_worker_sleeping(w.shared, true);
    ck_assert(a_post_runs_a_round());
    ck_assert(worker_poll(&w));
    w.started = false; /* only polls and posts make progress */
    ck_assert(a_post_runs_a_round());
    timer_cancel(&d->engine->wheel, &owed);
    device_close(d);
}
END_TEST

/* The next post comes soon after a long round of the last one. */
static void seem_to_stream(void)
{
    w.round_over = w.posted_at = clock_now();
    atomic_store(&w.round_at, w.round_over - LONG);
}

/* A program that only posts, one post after the other: after some of them a post waits, and with it
 * those that follow, until the program polls. A program that does more than a quarter of a round's
 * time between two posts, perhaps since it waits for its peer, has each post sent at once. */
START_TEST(a_post_of_a_stream_may_wait)
{
    struct device *d = open_device();
    struct timer owed = {0};
    unsigned sent = 0;
    w.started = true;
    timer_arm(&d->engine->wheel, &owed, clock_now() + LONG);
    ck_assert(worker_poll(&w));
    (void)a_post_runs_a_round(); /* it may wait for a poll */
    for (; sent < TRIES; sent++) {
        seem_to_stream();
        if (!a_post_runs_a_round())
            break;
    }
    ck_assert_uint_ge(sent, STREAM - 1);
    ck_assert_uint_lt(sent, TRIES); /* this thread may lose the core before a post */
    w.posted_at = w.round_over = clock_now() - CLOCK_US;
    atomic_store(&w.round_at, w.round_over - 3 * CLOCK_US);
    ck_assert(a_post_runs_a_round()); /* a pause */
    seem_to_stream();
    ck_assert(a_post_runs_a_round()); /* it must stream again first */
    timer_cancel(&d->engine->wheel, &owed);
    device_close(d);
}
END_TEST

static void note_round(void *arg, uint64_t now)
{
    (void)now;
    *(uint64_t *)arg = atomic_load(&w.round_at);
}

/* The request may end the queue pair of that post. */
START_TEST(a_request_lets_a_waiting_post_out_first)
{
    struct device *d = open_device();
    struct timer owed = {0};
    uint64_t before, seen;
    w.started = true;
    timer_arm(&d->engine->wheel, &owed, clock_now() + LONG);
    ck_assert(a_post_waits());
    before = atomic_load(&w.round_at);
    worker_call(&w, note_round, &seen);
    ck_assert_uint_ne(seen, before);
    before = atomic_load(&w.round_at);
    worker_call(&w, note_round, &seen);
    ck_assert_uint_eq(seen, before);
    w.started = false;
    timer_cancel(&d->engine->wheel, &owed);
    device_close(d);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("worker");
    TCase *t = tcase_create("worker");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, spinning_ends_a_stay);
    tcase_add_test(t, the_thread_gives_way_to_the_holder);
    tcase_add_test(t, a_poll_gives_way_to_the_holder);
    tcase_add_test(t, turns_of_spinning_end_no_stay);
    tcase_add_test(t, the_thread_takes_over_before_a_wait);
    tcase_add_test(t, a_poll_before_a_wait_takes_nothing_back);
    tcase_add_test(t, a_post_does_not_wake_the_thread);
    tcase_add_test(t, a_post_may_wait_for_the_next_poll);
    tcase_add_test(t, a_post_of_a_stream_may_wait);
    tcase_add_test(t, a_request_lets_a_waiting_post_out_first);
    tcase_add_test(t, the_thread_lets_a_late_program_poll);
    suite_add_tcase(s, t);
    return unit_run(s);
}
