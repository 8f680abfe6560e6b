/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Jobs for a worker: each runs once, in the order of its thread, and the waiting thread continues
 * after that.
 */
#include "jobs.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "unit.h"

#define THREADS 4u
#define EACH    2000u

static struct jobs jobs;
static unsigned order[8], nran;
static _Atomic unsigned left; /* threads that still submit jobs */

static void note(void *arg, uint64_t now)
{
    ck_assert_uint_eq(now, 7);
    order[nran++] = *(unsigned *)arg;
}

/* Run the waiting jobs, the oldest first. */
START_TEST(runs_in_order)
{
    unsigned number[3] = {0, 1, 2};
    struct job job[3];
    ck_assert(!jobs_any(&jobs));
    ck_assert_uint_eq(jobs_run(&jobs, 7), 0);
    for (unsigned i = 0; i < 3; i++) {
        job[i] = (struct job){.fn = note, .arg = &number[i]};
        jobs_add(&jobs, &job[i]);
    }
    ck_assert(jobs_any(&jobs));
    ck_assert_uint_eq(jobs_run(&jobs, 7), 3);
    ck_assert(!jobs_any(&jobs));
    ck_assert_uint_eq(nran, 3);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_uint_eq(order[i], i);
        job_wait(&job[i]); /* done: returns at once */
    }
}
END_TEST

static void count(void *arg, uint64_t now)
{
    (void)now;
    (*(unsigned *)arg)++; /* no lock: the worker alone runs jobs, and a thread waits for its own */
}

static void *leave(void *arg)
{
    unsigned *mine = arg;
    for (unsigned i = 0; i < EACH; i++) {
        struct job job = {.fn = count, .arg = mine};
        jobs_add(&jobs, &job);
        job_wait(&job);
        if (*mine != i + 1)
            break;
    }
    left--;
    return NULL;
}

/* Several threads: no job is lost, none runs twice, and each has run when job_wait returns. */
START_TEST(from_several_threads)
{
    pthread_t thread[THREADS];
    unsigned counts[THREADS] = {0}, ran = 0;
    left = THREADS;
    for (unsigned i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, leave, &counts[i]), 0);
    while (left > 0) {
        ran += jobs_run(&jobs, 7);
        sched_yield();
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        ck_assert_uint_eq(counts[i], EACH);
    }
    ck_assert_uint_eq(ran, THREADS * EACH);
}
END_TEST

UNIT_MAIN("jobs", runs_in_order, from_several_threads)
