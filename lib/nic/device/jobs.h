/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Jobs that other threads leave for a worker, and wait for. Any thread may add; the worker runs
 * them, between two rounds.
 */
#ifndef NIC_JOBS_H
#define NIC_JOBS_H

#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct job {
    struct job *next;
    void (*fn)(void *arg, uint64_t now);
    void *arg;
    sem_t done;
};

/* All zero at first. */
struct jobs {
    _Atomic(struct job *) last;
};

/* Add a job, which has fn and arg; *job is the worker's until job_wait returns. */
void jobs_add(struct jobs *l, struct job *job);
/* Wait until the job has run. Most jobs are done before a thread could be woken, so poll for a
 * while first. */
void job_wait(struct job *job);

/* On the worker: is there a job? */
static inline bool jobs_any(const struct jobs *l)
{
    return atomic_load_explicit(&l->last, memory_order_relaxed) != NULL;
}

/* On the worker: run all jobs, in order. Returns the number run. */
unsigned jobs_run(struct jobs *l, uint64_t now);

#endif
