/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See jobs.h. The jobs are a stack, which the worker takes as a whole.
 */
#include "jobs.h"

#include <errno.h>
#include <sched.h>
#include <stddef.h>

#include "clock.h"
#include "pace.h"

void jobs_add(struct jobs *l, struct job *job)
{
    sem_init(&job->done, 0, 0);
    job->next = atomic_load_explicit(&l->last, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&l->last, &job->next, job, memory_order_release,
                                                  memory_order_relaxed))
        ;
}

void job_wait(struct job *job)
{
    struct pace pace;
    uint64_t now = clock_now();
    pace_init(&pace, PACE_CALL_NS, 0);
    pace.worked_at = now;
    while (pace_next(&pace, &(struct pace_seen){.due = UINT64_MAX}, now).how != PACE_BLOCK) {
        if (sem_trywait(&job->done) == 0)
            goto done;
        uint64_t before = clock_now();
        sched_yield();
        now = clock_now();
        pace_yielded(&pace, before, now);
    }
    while (sem_wait(&job->done) < 0 && errno == EINTR)
        ;
done:
    sem_destroy(&job->done);
}

unsigned jobs_run(struct jobs *l, uint64_t now)
{
    struct job *job = NULL, *next;
    unsigned n = 0;
    if (!jobs_any(l))
        return 0;
    /* Reverse the stack: the first job in is the first one out. */
    for (struct job *j = atomic_exchange_explicit(&l->last, NULL, memory_order_acquire); j;
         j = next) {
        next = j->next;
        j->next = job;
        job = j;
    }
    for (; job; job = next, n++) {
        next = job->next; /* a job may be freed once it is done */
        job->fn(job->arg, now);
        sem_post(&job->done);
    }
    return n;
}
