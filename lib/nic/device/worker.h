/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A worker: one thread that serves devices and their contexts. Everything on the data path belongs
 * to exactly one worker, so there is no lock on it; other threads get in by worker_call, and in a
 * program with a port of its own by worker_poll and worker_posted. Who is in has the token
 * (token.h).
 *
 * A round is in round.h; what other threads leave for it in jobs.h; what it does between two rounds
 * the idle policy says (pace.h). Before blocking the worker says in its page (which clients map
 * read-only) that it sleeps, and looks at every doorbell and port once more: store, seq_cst fence,
 * re-check on both sides (SHM-06).
 */
#ifndef NIC_WORKER_H
#define NIC_WORKER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "guard_signal.h"
#include "ipc.h"
#include "jobs.h"
#include "life.h"
#include "pace.h"
#include "settings.h"
#include "token.h"
#include "watch.h"

struct device;
struct context;
struct context_ops;

#define WORKER_DEVICES   CONFIG_DEVICES
#define WORKER_PAGE_SIZE 4096u /* octets of `shared`, as clients map them */

#define WORKER_ASKED 16u /* threads of the program of which it is known what they block */

/* Numbers for `urnic stat`; written by the worker, read by anyone. */
struct worker_stats {
    _Atomic uint64_t rounds, busy_rounds, yields, sleeps, kicks;
};

struct worker {
    unsigned index;
    int cpu; /* -1 = any */
    pthread_t thread;
    bool started;
    bool inline_only; /* no thread of its own: worker_poll makes all progress */
    /* Regions lie in memory of this process, which may be gone (guard.h). NULL: they don't. */
    struct guard_frame *frame;
    _Atomic bool stop;

    /* Who may touch what the worker owns. The thread gives it up while it blocks, and while other
     * threads poll: those do rounds, or their job, right there instead of waking it up for that. */
    struct token token;
    uint64_t sleep_until;      /* under the token: when the blocked thread wakes by itself */
    bool armed;                /* likewise: the ports wake it */
    uint64_t full_since;       /* likewise: of round.c's worker_is_settled */
    bool settled;              /* likewise: what the round owes the peers is in the ports */
    _Atomic uint64_t round_at; /* when the last round began */
    _Atomic uint32_t inlined;  /* rounds of worker_poll; under the token, read by the thread */
    /* Until then the thread does all rounds: the program polls now and then only, and what came
     * between its polls had to wait until the thread took over. */
    _Atomic uint64_t stays_until;
    uint64_t stay_ns;        /* the thread's: for so long the next time */
    _Atomic uint32_t knocks; /* polls that found the token taken */

    bool borrowed; /* under the token: this round runs on a thread of the program */
    bool opened;   /* likewise: the signals that a copy may cause are unblocked for it */
    unsigned were; /* ... and which of them were blocked */
    struct worker_asked {
        pthread_t thread;
        uint64_t until; /* no need to ask this thread again */
    } asked[WORKER_ASKED];
    uint64_t guard_at; /* likewise: when to have the handler in front again */

    struct jobs jobs; /* of other threads */
    struct pace pace; /* its idle policy */

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
    uint64_t let_in_from;     /* worker_let_in: not before then */
    uint64_t service_at;      /* next slow round */

    struct worker_stats stats;
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
 * that is blocked or not running, right here in its place. One thread at a time. */
void worker_call(struct worker *w, void (*fn)(void *arg, uint64_t now), void *arg);

/* A thread polls: one round on it, if no other thread is in the middle of one. While threads poll,
 * the worker's own thread only looks every 250 us whether rounds go on, and takes over when none
 * came. Never waits, but for another thread's turn on this core. Any thread; not from within a
 * round. Returns whether there was a round. */
bool worker_poll(struct worker *w);
/* Something was posted: a round on this thread, or one more of the thread that is in one. */
void worker_posted(struct worker *w);

/* On a thread of the program, which may block the signals that a copy may cause: unblock them,
 * until the round ends. A thread that didn't a millisecond ago isn't asked again: a system call may
 * take as long as all the rest of a round. */
void worker_open_signals(struct worker *w);
/* Copies or atomics follow, in this round. */
static inline void worker_touches(struct worker *w)
{
    if (w->borrowed && !w->opened)
        worker_open_signals(w);
}

/* It may have something to do: wake it if it sleeps. Any thread; what it has to do is there. */
void worker_kick(struct worker *w);

/* Count, on the worker: one writer, so no locked instruction is needed. */
static inline void worker_stat_add(_Atomic uint64_t *c, uint64_t n)
{
    atomic_store_explicit(c, atomic_load_explicit(c, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

#endif
