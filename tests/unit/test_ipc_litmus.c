/* SPDX-License-Identifier: BSD-3-Clause
 *
 * SHM-06 litmus tests: two threads hammer each wake-up. A lost one shows as a side that waits for
 * ever, which here is a time-out.
 */
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "ipc_ring.h"
#include "unit.h"

#define ENTRIES 64u
#define LOST_MS 3000
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
    uint32_t head;          /* of the doorbell ring, the worker's */
    _Atomic uint32_t kicks; /* stands for the descriptor on which a side blocks */
    _Atomic bool stop;
    _Atomic bool lost;
} lab;

static struct ipc_doorbell *bell(void)
{
    return (struct ipc_doorbell *)(void *)lab.bell;
}

/* The default of four seconds is short for a busy machine. */
__attribute__((constructor)) static void patience(void)
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

/* Spin until the other side has come this far; false after LOST_MS. */
static bool wait_for(_Atomic uint32_t *index, uint32_t value)
{
    uint64_t start = 0;
    for (uint32_t i = 1;; i++) {
        if (atomic_load_explicit(index, memory_order_acquire) == value)
            return true;
        if (i % 1024 == 0) {
            sched_yield();
            if (start == 0)
                start = now_ms();
            else if (now_ms() - start > LOST_MS)
                return false;
        }
    }
}

/* Block until a kick later than `seen`, which was sampled before raising the flag: an older kick
 * must not cover up for a lost one. A real descriptor would be so slow that the threads hardly ever
 * met. */
static bool block(uint32_t seen)
{
    uint64_t start = 0;
    for (uint32_t i = 1;; i++) {
        if (atomic_load_explicit(&lab.kicks, memory_order_acquire) != seen)
            return true;
        if (i % 1024 == 0) {
            sched_yield();
            if (start == 0)
                start = now_ms();
            else if (now_ms() - start > LOST_MS)
                return false;
        }
    }
}

static void post_one(void)
{
    struct ipc_sqe e = {.opcode = IPC_WR_SEND, .units = 1};
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
    while (!atomic_load_explicit(&lab.stop, memory_order_relaxed))
        if (!serve() && ++idle % 4096 == 0)
            sched_yield();
    return arg;
}

START_TEST(shm_06_pending_is_never_lost)
{
    /* SHM-06 */
    pthread_t t;
    lab_init();
    pthread_create(&t, NULL, polling_worker, NULL);
    uint32_t round;
    for (round = 0; round < SPIN_ROUNDS; round++) {
        post_one();
        jitter(round);
        if (round % 3 == 0 || round - atomic_load(&lab.q.head.cons) >= ENTRIES - 2)
            if (!wait_for(&lab.q.head.cons, lab.client.index))
                break;
    }
    atomic_store(&lab.stop, true);
    pthread_join(t, NULL);
    ck_assert_uint_eq(round, SPIN_ROUNDS);
}
END_TEST

/* ---- sleeping: the worker blocks as soon as it finds nothing ---- */

static void *sleeping_worker(void *arg)
{
    uint32_t seen = 0;
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
        if (!block(seen)) {
            atomic_store(&lab.lost, true);
            break;
        }
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
    uint32_t round;
    for (round = 0; round < WAKE_ROUNDS; round++) {
        post_one();
        if (!wait_for(&lab.q.head.cons, lab.client.index))
            break;
        jitter(round);
    }
    atomic_store(&lab.stop, true);
    atomic_fetch_add(&lab.kicks, 1);
    pthread_join(t, NULL);
    ck_assert(!atomic_load(&lab.lost));
    ck_assert_uint_eq(round, WAKE_ROUNDS);
}
END_TEST

/* ---- arm: the application blocks as soon as it finds nothing ---- */

static void *completing_worker(void *arg)
{
    for (uint32_t round = 0; round < WAKE_ROUNDS; round++) {
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
    bool armed = false;
    while (got < WAKE_ROUNDS) {
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
    pthread_join(t, NULL);
    ck_assert_uint_eq(got, WAKE_ROUNDS);
}
END_TEST

/* ---- several threads of one application ring at once ---- */

#define RINGERS 3

static struct ringer {
    struct queue q;
    struct ipc_ring ring;
} ringers[RINGERS];

static void *ringing_thread(void *arg)
{
    struct ringer *r = arg;
    struct ipc_sqe e = {.opcode = IPC_WR_SEND, .units = 1};
    for (uint32_t i = 0; i < SPIN_ROUNDS / 8; i++) {
        while (ipc_ring_room(&r->ring) == 0)
            sched_yield();
        memcpy(r->ring.base + (r->ring.index & (ENTRIES - 1)) * IPC_UNIT, &e, sizeof(e));
        r->ring.index++;
        if (ipc_ring_publish(&r->ring))
            ipc_doorbell_push(bell(), 4, (uint32_t)(r - ringers), &lab.worker);
        jitter(i);
    }
    return arg;
}

START_TEST(shm_06_ring_of_doorbells_has_room_for_all)
{
    /* SHM-06: a doorbell ring with as many slots as queues never overflows */
    pthread_t t[RINGERS];
    struct ipc_ring view[RINGERS];
    struct ipc_send s;
    uint32_t head = 0, taken = 0;
    lab_init();
    memset((void *)ringers, 0, sizeof(ringers));
    for (int i = 0; i < RINGERS; i++) {
        ipc_ring_init(&ringers[i].ring, &ringers[i].q, ENTRIES, IPC_UNIT, false);
        view[i] = ringers[i].ring;
        pthread_create(&t[i], NULL, ringing_thread, &ringers[i]);
    }
    uint64_t quiet_since = now_ms();
    while (taken < RINGERS * (SPIN_ROUNDS / 8)) {
        int64_t n = ipc_doorbell_pop(bell(), 4, &head);
        if (n < 0) {
            sched_yield();
            ck_assert_msg(now_ms() - quiet_since < LOST_MS, "lost after %u", taken);
            continue;
        }
        ck_assert_int_lt(n, RINGERS);
        ipc_ring_attend(&view[n]);
        while (ipc_sq_fetch(&view[n], &s) == 1)
            taken++;
        ipc_ring_release(&view[n]);
        quiet_since = now_ms();
    }
    for (int i = 0; i < RINGERS; i++)
        pthread_join(t[i], NULL);
}
END_TEST

UNIT_MAIN("ipc litmus", shm_06_pending_is_never_lost, shm_06_sleeping_is_never_lost,
          shm_06_arming_is_never_lost, shm_06_ring_of_doorbells_has_room_for_all)
