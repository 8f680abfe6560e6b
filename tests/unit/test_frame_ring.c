/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The ring of frames between two workers, used by one thread, and by two at full speed. No frame is
 * lost, doubled, out of order or mixed with another, and a reader that sleeps is woken.
 */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>

#include "frame_ring.h"
#include "unit.h"

#define SMALL 8u /* frames in a ring, so that it is always full */

static void put(struct frame_ring *r, uint8_t octet, uint32_t len, bool fits)
{
    uint8_t frame[256];
    memset(frame, octet, sizeof(frame));
    ck_assert_int_eq(frame_ring_put(r, frame, len, octet), fits);
}

START_TEST(in_order_and_bounded)
{
    struct frame_ring *r = frame_ring_new(4, 100);
    struct io_frame f[8];
    ck_assert(!frame_ring_waits(r));
    put(r, 0, 101, false); /* too long */
    for (uint8_t i = 0; i < 4; i++)
        put(r, i, 60u + i, true);
    put(r, 9, 60, false); /* full */
    ck_assert(frame_ring_waits(r));
    ck_assert_uint_eq(frame_ring_peek(r, f, 3), 3);
    put(r, 9, 60, false); /* lent frames keep their places */
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_uint_eq(f[i].len, 60 + i);
        ck_assert_uint_eq(f[i].flags, i);
        ck_assert_uint_eq(f[i].data[59], i);
    }
    frame_ring_release(r);
    put(r, 4, 100, true);
    ck_assert_uint_eq(frame_ring_peek(r, f, 8), 1); /* as far as the reader had looked */
    ck_assert_uint_eq(f[0].flags, 3);
    frame_ring_release(r);
    ck_assert_uint_eq(frame_ring_peek(r, f, 8), 1);
    ck_assert_uint_eq(f[0].len, 100);
    frame_ring_release(r);
    ck_assert(!frame_ring_waits(r));
    frame_ring_free(r);
}
END_TEST

START_TEST(slots_that_nobody_fills)
{
    struct frame_ring *r = frame_ring_new(8, 100);
    struct io_slot s[16];
    struct io_frame f[8];
    ck_assert_uint_eq(frame_ring_reserve(r, s, 16), 8);
    ck_assert_uint_eq(frame_ring_commit(r, s, 8, 0), 0); /* all come back */
    ck_assert_uint_eq(frame_ring_reserve(r, s, 5), 5);
    s[1].len = 10;
    s[3].len = 20;
    s[4].len = 101; /* does not fit: left out */
    ck_assert_uint_eq(frame_ring_commit(r, s, 5, 7), 2);
    ck_assert_uint_eq(frame_ring_peek(r, f, 8), 2);
    ck_assert_uint_eq(f[0].len, 10);
    ck_assert_uint_eq(f[1].len, 20);
    frame_ring_release(r);
    ck_assert_uint_eq(frame_ring_reserve(r, s, 16), 8);
    frame_ring_free(r);
}
END_TEST

/* ---- litmus ---- */

static struct frame_ring *shared;
static _Atomic int sleeping;
static sem_t bell;
static uint32_t total;

static uint32_t length_of(uint32_t i)
{
    return 8 + i * 2654435761u % 120;
}

static void fill(uint8_t *at, uint32_t i)
{
    memcpy(at, &i, sizeof(i));
    memset(at + 4, (int)(i & 0xFF), length_of(i) - 4);
}

/* Single frames, and bursts with gaps. After each the worker's dance: is the reader asleep? */
static void *writer(void *arg)
{
    (void)arg;
    for (uint32_t i = 0; i < total;) {
        struct io_slot s[4];
        unsigned n = frame_ring_reserve(shared, s, 1 + i % 4), used = 0;
        for (unsigned k = 0; k < n && i < total; k++, used++) {
            if (n == 4 && k == 1)
                continue; /* a slot that stays empty */
            fill(s[k].data, i);
            s[k].len = length_of(i++);
        }
        frame_ring_commit(shared, s, used, 0);
        if (used == 0)
            sched_yield();
        atomic_thread_fence(memory_order_seq_cst);
        if (atomic_load_explicit(&sleeping, memory_order_relaxed) && atomic_exchange(&sleeping, 0))
            sem_post(&bell);
    }
    return NULL;
}

/* Returns the number of wrong frames. A lost wake-up hangs it, and the test times out. */
static unsigned reader(void)
{
    unsigned wrong = 0;
    for (uint32_t i = 0; i < total;) {
        struct io_frame f[3];
        unsigned n = frame_ring_peek(shared, f, 3);
        for (unsigned k = 0; k < n; k++, i++) {
            uint8_t want[128];
            fill(want, i);
            wrong += f[k].len != length_of(i) || memcmp(f[k].data, want, f[k].len) != 0;
        }
        if (n > 0) {
            frame_ring_release(shared);
            continue;
        }
        atomic_store_explicit(&sleeping, 1, memory_order_relaxed);
        atomic_thread_fence(memory_order_seq_cst);
        /* With a frame there, a bell is still to come if the writer has seen us asleep. */
        if (!frame_ring_waits(shared) || !atomic_exchange(&sleeping, 0))
            sem_wait(&bell);
    }
    return wrong;
}

START_TEST(two_threads)
{
    pthread_t t;
    total = RING_LITMUS;
    shared = frame_ring_new(SMALL, 128);
    sem_init(&bell, 0, 0);
    pthread_create(&t, NULL, writer, NULL);
    unsigned wrong = reader();
    pthread_join(t, NULL);
    ck_assert_uint_eq(wrong, 0);
    ck_assert(!frame_ring_waits(shared));
    frame_ring_free(shared);
    sem_destroy(&bell);
}
END_TEST

UNIT_MAIN("frame ring", in_order_and_bounded, slots_that_nobody_fills, two_threads)
