/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A worker: one thread that serves devices and their contexts. Everything on the data path belongs
 * to exactly one worker, so there is no lock on it; other threads get in by worker_call only.
 *
 * Idle policy `auto`: a round without work is followed by a yield, some microseconds of looking, a
 * yield and so on (after a post that an answer is awaited to, by looking first); then by blocking
 * until a kick, a frame or a deadline. Before blocking the
 * worker says in its page (which clients map read-only) that it sleeps, and looks at every doorbell
 * and port once more: store, seq_cst fence, re-check on both sides (SHM-06).
 */
#ifndef URNICD_WORKER_H
#define URNICD_WORKER_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "ipc.h"
#include "life.h"
#include "settings.h"
#include "watch.h"

struct device;
struct context;
struct context_ops;

#define WORKER_DEVICES   CONFIG_DEVICES
#define WORKER_PAGE_SIZE 4096u /* octets of `shared`, as clients map them */

/* Numbers for `urnic stat`; written by the worker, read by anyone. */
struct worker_stats {
    _Atomic uint64_t rounds, busy_rounds, yields, sleeps, kicks;
};

struct worker {
    unsigned index;
    int cpu; /* -1 = any */
    enum config_idle idle;
    pthread_t thread;
    bool started;
    _Atomic bool stop;

    /* Who may touch what the worker owns: true = taken. The worker gives it up only while it
     * blocks; the control thread then does its job right there instead of waking the worker up for
     * it. */
    _Atomic bool taken;
    uint64_t sleep_until; /* under `taken`: when the blocked worker wakes by itself */

    /* worker_call's slot: one caller at a time, the control thread */
    _Atomic(struct worker_job *) job;

    struct watch watch;        /* what wakes it up */
    int eventfd;               /* ... of these the daemon's own */
    int page_fd;               /* of the page: sealed against writing by anyone else */
    struct ipc_worker *shared; /* and an ipc_life behind it */
    struct life life;

    struct device *device[WORKER_DEVICES];
    unsigned ndevice;
    const struct context_ops *context_ops;
    struct context *contexts; /* every open context, linked; of context_ops */
    bool news;                /* frames have brought what an application may wait for */
    uint64_t now;             /* of the round, for completions' time */
    uint64_t pause_over;      /* what comes from then on has come after a pause */
    uint64_t turn_ns;         /* a yield this long on this machine: somebody has had a turn */
    uint64_t look_ns;         /* look for so long for an answer */
    uint64_t linger_ns;       /* and for so long before blocking */
    bool awaits;              /* look_until is for the answer to what was posted */
    uint64_t look_until;      /* after a yield, or a post: no other one before, unless news comes */
    uint64_t crowded_until;   /* block rather than yield: others spin on this core */
    uint64_t crowd_ns;
    uint64_t let_in_from; /* worker_let_in: not before then */
    uint64_t service_at;  /* next slow round */

    struct worker_stats stats;
};

/* What runs on the worker for somebody else. */
struct worker_job {
    void (*fn)(void *arg, uint64_t now);
    void *arg;
    sem_t done;
};

/* Can a thread of this process run on that core (-1: any)? 0 or -errno. Moves the calling thread
 * there and back. */
int worker_cpu_check(int cpu);
/* Prepare a worker: no thread yet, so that devices can be added from the caller's thread. What
 * serves its contexts is `context_ops`. 0 or -errno, then there is nothing to free. */
int worker_init(struct worker *w, unsigned index, int cpu, enum config_idle idle,
                const struct context_ops *context_ops);
/* Start its thread, on its core if it has one. 0 or -errno. */
int worker_start(struct worker *w);
/* Ask the thread to end and wait for it. Jobs and devices are the caller's again. */
void worker_stop(struct worker *w);
/* Free what worker_init made; the thread has ended, or never begun. */
void worker_fini(struct worker *w);

/* Run fn(arg, now) between two rounds of the worker and wait for its end: on the worker, or, while
 * that is blocked or not running, right here in its place. From the control thread only. */
void worker_call(struct worker *w, void (*fn)(void *arg, uint64_t now), void *arg);

/* On the worker, in the middle of a round: an application on its core has fallen behind with what
 * others wait for. Let it run, until helped(arg) or three turns have passed. False: it hasn't
 * helped, or wasn't let in, because that can cost a time slice, this worker yields to nobody, or it
 * was in vain less than a millisecond ago. */
bool worker_let_in(struct worker *w, bool (*helped)(void *arg), void *arg);

#endif
