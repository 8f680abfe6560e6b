/* SPDX-License-Identifier: BSD-3-Clause
 *
 * SHM-06 litmus tests: two threads use each wake-up at full speed. If one is lost, a side waits for
 * ever: here, for seconds in which the other side ran and found nothing to do. On a busy machine,
 * where threads seldom run, there are fewer rounds.
 */
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "ipc_ring.h"
#include "unit.h"

#define ENTRIES    64u
#define LOST_MS    3000
#define LOST_TURNS 100u
#define LONG_MS    15000 /* then a hundredth of the rounds is enough */
#ifdef __SANITIZE_THREAD__
#define SPIN_ROUNDS 60000u
#define WAKE_ROUNDS 30000u
#else
#define SPIN_ROUNDS 400000u
#define WAKE_ROUNDS 300000u
#endif

struct queue {
    struct ipc_queue head;
    _Alignas(64) uint8_t data[ENTRIES * IPC_UNIT];
};

struct cq {
    struct ipc_cq_ring ring;
    struct ipc_cqe e[ENTRIES];
};

static struct lab {
    struct queue q;
    _Alignas(64) uint8_t bell[128]; /* a doorbell ring of four */
    struct cq cq;
    struct ipc_worker worker;
    struct ipc_ring client, daemon;
    struct ipc_cq_view cq_client, cq_daemon;
    uint32_t head;          /* the worker's index of the doorbell ring */
    _Atomic uint32_t kicks; /* stands for the descriptor on which a side blocks */
    _Atomic bool stop;
    _Atomic bool lost;
    _Atomic uint32_t turns[2]; /* empty rounds of the test, and of the others */
} lab;
static _Thread_local unsigned me; /* 0 the test, 1 another thread */

static struct ipc_doorbell *bell(void)
{
    return (struct ipc_doorbell *)(void *)lab.bell;
}

/* The default is short for a busy machine. */
__attribute__((constructor)) static void longer(void)
{
    setenv("CK_DEFAULT_TIMEOUT", "60", 0);
}

static void lab_init(void)
{
    memset((void *)&lab, 0, sizeof(lab));
    ipc_ring_init(&lab.client, &lab.q, ENTRIES, IPC_UNIT, false);
    lab.daemon = lab.client;
    ipc_cq_view_init(&lab.cq_client, &lab.cq, ENTRIES);
    lab.cq_daemon = lab.cq_client;
}

/* A delay that differs from round to round, so that the threads meet in every order. */
static void jitter(uint32_t round)
{
    uint32_t n = (round * 2654435761u) >> 25;
    for (volatile uint32_t i = 0; i < n; i++)
        ;
}

static uint64_t now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* The time since which a thread waits. */
struct waiting {
    uint64_t since; /* ms, 0 = it is beginning */
    uint32_t turns; /* turns of the other side at that time */
};

/* Leave the processor to others, having found nothing to do. */
static void turn(void)
{
    atomic_fetch_add(&lab.turns[me], 1);
    sched_yield();
}

/* The same; true: the awaited value never comes unless it is there now. It may have come while this
 * thread was off the processor, for seconds: check once more. */
static bool overdue(struct waiting *w)
{
    turn();
    if (w->since == 0) {
        *w = (struct waiting){now_ms(), atomic_load(&lab.turns[!me])};
        return false;
    }
    return atomic_load(&lab.lost) ||
           (now_ms() - w->since > LOST_MS && atomic_load(&lab.turns[!me]) - w->turns > LOST_TURNS);
}

static bool give_up(void)
{
    atomic_store(&lab.lost, true);
    return false;
}

/* Have there been enough rounds? To be asked again and again. */
static bool enough(uint32_t round, uint32_t rounds, uint64_t *began)
{
    static uint32_t asked;
    if (asked++ % 256 == 0) {
        uint64_t now = now_ms();
        if (*began == 0)
            *began = now;
        if (now - *began > LONG_MS && round >= rounds / 100)
            return true;
    }
    return round >= rounds;
}

/* Spin until the other side has come this far, or the test ends; false if a wake-up was lost. */
static bool wait_for(_Atomic uint32_t *index, uint32_t value)
{
    struct waiting w = {0};
    bool last = false;
    for (uint32_t i = 1;; i++) {
        if (atomic_load_explicit(index, memory_order_acquire) == value ||
            atomic_load_explicit(&lab.stop, memory_order_relaxed))
            return true;
        if (last)
            return give_up();
        last = i % 1024 == 0 && overdue(&w);
    }
}

/* Block until a kick later than `seen`, which was sampled before raising the flag: an older kick
 * must not cover up for a lost one. A real descriptor would be so slow that the threads hardly ever
 * met. */
static bool block(uint32_t seen)
{
    struct waiting w = {0};
    bool last = false;
    for (uint32_t i = 1;; i++) {
        if (atomic_load_explicit(&lab.kicks, memory_order_acquire) != seen)
            return true;
        if (last)
            return give_up();
        last = i % 1024 == 0 && overdue(&w);
    }
}

static void post_one(void)
{
    struct ipc_sqe e = {.opcode = WR_SEND, .units = 1};
    memcpy(lab.client.base + (lab.client.index & (ENTRIES - 1)) * IPC_UNIT, &e, sizeof(e));
    lab.client.index++;
    if (ipc_ring_publish(&lab.client) && ipc_doorbell_push(bell(), 4, 0, &lab.worker))
        atomic_fetch_add_explicit(&lab.kicks, 1, memory_order_release);
}

/* Serve every doorbell once; false when there was none. */
static bool serve(void)
{
    struct ipc_send s;
    int64_t n = ipc_doorbell_pop(bell(), 4, &lab.head);
    if (n < 0)
        return false;
    ipc_ring_attend(&lab.daemon);
    while (ipc_sq_fetch(&lab.daemon, &s) == 1)
        ipc_ring_release(&lab.daemon);
    return true;
}

/* ---- pending: the worker polls and never sleeps ---- */

static void *polling_worker(void *arg)
{
    uint32_t idle = 0;
    me = 1;
    while (!atomic_load_explicit(&lab.stop, memory_order_relaxed))
        if (!serve() && ++idle % 4096 == 0)
            turn();
    return arg;
}

START_TEST(shm_06_pending_is_never_lost)
{
    /* SHM-06 */
    pthread_t t;
    lab_init();
    pthread_create(&t, NULL, polling_worker, NULL);
    uint64_t began = 0;
    for (uint32_t round = 0; !enough(round, SPIN_ROUNDS, &began); round++) {
        post_one();
        jitter(round);
        if (round % 3 == 0 || round - atomic_load(&lab.q.head.cons) >= ENTRIES - 2)
            if (!wait_for(&lab.q.head.cons, lab.client.index))
                break;
    }
    atomic_store(&lab.stop, true);
    pthread_join(t, NULL);
    ck_assert(!atomic_load(&lab.lost));
}
END_TEST

/* ---- sleeping: the worker blocks as soon as it finds nothing ---- */

static void *sleeping_worker(void *arg)
{
    uint32_t seen = 0;
    me = 1;
    while (!atomic_load_explicit(&lab.stop, memory_order_relaxed)) {
        while (serve())
            ;
        seen = atomic_load(&lab.kicks);
        jitter(lab.daemon.index * 7);
        ipc_worker_sleeping(&lab.worker, true);
        if (serve()) {
            ipc_worker_sleeping(&lab.worker, false);
            continue;
        }
        if (!block(seen))
            break;
        ipc_worker_sleeping(&lab.worker, false);
    }
    return arg;
}

START_TEST(shm_06_sleeping_is_never_lost)
{
    /* SHM-06 */
    pthread_t t;
    lab_init();
    pthread_create(&t, NULL, sleeping_worker, NULL);
    uint64_t began = 0;
    for (uint32_t round = 0; !enough(round, WAKE_ROUNDS, &began); round++) {
        post_one();
        if (!wait_for(&lab.q.head.cons, lab.client.index))
            break;
        jitter(round);
    }
    atomic_store(&lab.stop, true);
    atomic_fetch_add(&lab.kicks, 1);
    pthread_join(t, NULL);
    ck_assert(!atomic_load(&lab.lost));
}
END_TEST

/* ---- arm: the application blocks as soon as it finds nothing ---- */

static void *completing_worker(void *arg)
{
    me = 1;
    for (uint32_t round = 0; !atomic_load_explicit(&lab.stop, memory_order_relaxed); round++) {
        ipc_cq_push(&lab.cq_daemon, &(struct ipc_cqe){.cookie = round});
        if (ipc_cq_notify(&lab.cq_daemon, false))
            atomic_fetch_add_explicit(&lab.kicks, 1, memory_order_release);
        if (!wait_for(&lab.cq.ring.cons, round + 1))
            break;
        jitter(round);
    }
    return arg;
}

START_TEST(shm_06_arming_is_never_lost)
{
    /* SHM-06, CQ-06: poll, arm, poll again, block */
    pthread_t t;
    uint32_t seen = 0;
    lab_init();
    pthread_create(&t, NULL, completing_worker, NULL);
    uint32_t got = 0;
    uint64_t began = 0;
    bool armed = false;
    while (!enough(got, WAKE_ROUNDS, &began)) {
        if (ipc_cq_peek(&lab.cq_client) != NULL) {
            got++;
            lab.cq_client.index++;
            ipc_cq_consume(&lab.cq_client);
            armed = false;
            continue;
        }
        if (!armed) {
            seen = atomic_load(&lab.kicks);
            jitter(got * 7);
            ipc_cq_arm(&lab.cq_client, IPC_ARM_NEXT);
            armed = true;
            continue;
        }
        if (!block(seen))
            break;
        armed = false;
    }
    atomic_store(&lab.stop, true);
    pthread_join(t, NULL);
    ck_assert(!atomic_load(&lab.lost));
}
END_TEST

/* ---- several threads of one application ring at once ---- */

#define RINGERS 3

static struct ringer {
    struct queue q;
    struct ipc_ring ring;
    uint32_t posted;
} ringers[RINGERS];

static void *ringing_thread(void *arg)
{
    struct ringer *r = arg;
    struct ipc_sqe e = {.opcode = WR_SEND, .units = 1};
    me = 1;
    for (uint32_t i = 0; i < SPIN_ROUNDS / 8; i++) {
        while (ipc_ring_room(&r->ring) == 0 &&
               !atomic_load_explicit(&lab.stop, memory_order_relaxed))
            turn();
        if (atomic_load_explicit(&lab.stop, memory_order_relaxed))
            break;
        memcpy(r->ring.base + (r->ring.index & (ENTRIES - 1)) * IPC_UNIT, &e, sizeof(e));
        r->ring.index++;
        r->posted++;
        if (ipc_ring_publish(&r->ring))
            ipc_doorbell_push(bell(), 4, (uint32_t)(r - ringers), &lab.worker);
        jitter(i);
    }
    return arg;
}

/* Answer one doorbell; returns its number of entries. */
static uint32_t take(struct ipc_ring view[RINGERS])
{
    struct ipc_send s;
    uint32_t taken = 0;
    int64_t n = ipc_doorbell_pop(bell(), 4, &lab.head);
    if (n < 0)
        return 0;
    ck_assert_int_lt(n, RINGERS);
    ipc_ring_attend(&view[n]);
    while (ipc_sq_fetch(&view[n], &s) == 1)
        taken++;
    ipc_ring_release(&view[n]);
    return taken;
}

START_TEST(shm_06_ring_of_doorbells_has_room_for_all)
{
    /* SHM-06: a doorbell ring with as many slots as queues never overflows */
    pthread_t t[RINGERS];
    struct ipc_ring view[RINGERS];
    uint32_t taken = 0;
    uint64_t began = 0;
    struct waiting quiet = {0};
    lab_init();
    memset((void *)ringers, 0, sizeof(ringers));
    for (int i = 0; i < RINGERS; i++) {
        ipc_ring_init(&ringers[i].ring, &ringers[i].q, ENTRIES, IPC_UNIT, false);
        view[i] = ringers[i].ring;
        pthread_create(&t[i], NULL, ringing_thread, &ringers[i]);
    }
    bool last = false;
    while (!enough(taken, RINGERS * (SPIN_ROUNDS / 8), &began)) {
        uint32_t n = take(view);
        taken += n;
        if (n)
            quiet.since = 0;
        else
            ck_assert_msg(!last, "lost after %u", taken);
        last = n == 0 && overdue(&quiet);
    }
    atomic_store(&lab.stop, true);
    for (int i = 0; i < RINGERS; i++)
        pthread_join(t[i], NULL);
    for (int i = 0; i < RINGERS; i++) /* a doorbell is there for all that is left */
        taken += take(view);
    ck_assert_uint_eq(taken, ringers[0].posted + ringers[1].posted + ringers[2].posted);
}
END_TEST

UNIT_MAIN("ipc litmus", shm_06_pending_is_never_lost, shm_06_sleeping_is_never_lost,
          shm_06_arming_is_never_lost, shm_06_ring_of_doorbells_has_room_for_all)
