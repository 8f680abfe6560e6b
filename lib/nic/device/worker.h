/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A worker: one thread that serves devices and their contexts. Everything on the data path belongs
 * to exactly one worker, so it has no lock. Other threads get access by worker_call, and in a
 * program with a port of its own by worker_poll and worker_posted. The thread with access holds the
 * token (token.h).
 *
 * round.h has its round, jobs.h the jobs that other threads leave for it, pace.h the policy between
 * two rounds. Before it blocks, the worker marks itself as asleep in its page (which clients map
 * read-only), and checks every doorbell and port once more: store, seq_cst fence, re-check on both
 * sides (SHM-06).
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
#define WORKER_PAGE_SIZE 4096u /* octets of the page `shared`, which clients map */

#define WORKER_ASKED 16u /* threads of the program whose blocked signals are remembered */

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
    /* Guards copies in memory of this process, which the program may unmap (guard.h). NULL: no
     * regions lie there. */
    struct guard_frame *frame;
    _Atomic bool stop;
    /* The program has closed descriptors that the worker needs: no more rounds, and no more use of
     * any descriptor, which may be one of the program's now. */
    _Atomic bool lost;

    /* The right to touch the worker's data. The thread gives it up while it blocks, while other
     * threads poll, and in a program while it yields: the other threads then do rounds, or their
     * job, themselves instead of waking the thread. */
    struct token token;
    uint64_t sleep_until; /* under the token: when the blocked thread wakes by itself */
    bool armed;           /* under the token: the ports wake the blocked thread */
    uint64_t full_since;  /* under the token: time since which a port is full (worker_is_settled) */
    bool settled;         /* under the token: the frames owed to peers are in the ports */
    _Atomic uint64_t round_at; /* when the last round began */
    _Atomic uint32_t inlined;  /* rounds of worker_poll; under the token, read by the thread */
    /* Until then the thread does all rounds. It is set when the program waits for an event, and
     * when it polls only now and then, and work between its polls had to wait for the thread. */
    _Atomic uint64_t stays_until;
    uint64_t worked_at;      /* the last round of a polling thread with work; under the token */
    uint64_t posted_at;      /* the last post; under the token, as the next four */
    uint32_t polls_at_post;  /* `inlined` then */
    bool deferred;           /* it waits for the next poll */
    uint64_t round_over;     /* end of the last round of a post */
    uint32_t stream;         /* posts in a row, each with a round, and with little time between */
    uint32_t spins;          /* rounds without work since then, or since the last nap */
    uint64_t stay_ns;        /* the thread's: time to stay when it next takes over */
    _Atomic uint32_t knocks; /* polls that found the token taken */
    /* Polls while the thread stays, since it has taken over or the program armed a completion queue
     * (worker_waits). */
    _Atomic uint32_t stay_polls;
    _Atomic uint32_t patience; /* so many of them end the stay */
    uint64_t took_over_at;     /* the thread's: when it last took over */
    _Atomic uint32_t looking;  /* a futex. 1: the thread waits for other threads' polls to end */
    _Atomic bool waits;        /* worker_waits was called, and the thread hasn't taken over since */

    bool borrowed; /* under the token: this round runs on a thread of the program */
    bool opened;   /* under the token: the signals that a copy may cause are unblocked */
    unsigned were; /* which of these signals were blocked */
    struct worker_asked {
        pthread_t thread;
        uint64_t until; /* no need to ask this thread again before this time */
    } asked[WORKER_ASKED];
    uint64_t guard_at; /* under the token: next time to put the handler in front */
    uint64_t check_at; /* under the token: earliest next look at its descriptors */

    struct jobs jobs; /* jobs of other threads */
    struct pace pace; /* its idle policy */

    struct watch watch; /* descriptors that wake it */
    int eventfd;        /* the worker's own among these descriptors */
    struct watch_mark event_mark;
    int page_fd;               /* of the page; sealed: only the worker can write it */
    struct ipc_worker *shared; /* the page: this and an ipc_life after it */
    struct life life;

    struct device *device[WORKER_DEVICES];
    unsigned ndevice;
    const struct context_ops *context_ops;
    struct context *contexts; /* all open contexts, linked by context_ops */
    struct context *served;   /* those that a round looks at */
    bool news;                /* frames have brought data that an application may wait for */
    uint64_t now;             /* time of the round, for completions */
    uint64_t let_in_from;     /* earliest time of the next worker_let_in */
    uint64_t service_at;      /* next slow round */

    struct worker_stats stats;
};

/* Can a thread of this process run on that core (-1: any)? 0 or -errno. Moves the calling thread
 * there and back. */
int worker_cpu_check(int cpu);
/* Prepare a worker, without a thread, so that devices can be added from the caller's thread.
 * `context_ops` serves its contexts. 0 or -errno; after an error there is nothing to free. */
int worker_init(struct worker *w, unsigned index, int cpu, enum config_idle idle,
                const struct context_ops *context_ops);
/* Start its thread, on its core if it has one. 0 or -errno. */
int worker_start(struct worker *w);
/* Ask the thread to end and wait for it. The caller owns jobs and devices again. */
void worker_stop(struct worker *w);
/* Undo worker_init; the thread has ended, or was never started. */
void worker_fini(struct worker *w);

/* Run fn(arg, now) between two rounds of the worker, and wait for its end. It runs on the worker,
 * or on this thread while the worker is blocked or not running. One thread at a time. */
void worker_call(struct worker *w, void (*fn)(void *arg, uint64_t now), void *arg);

/* A thread polls: do one round on it, if no other thread is in the middle of one. While threads
 * poll, the worker's own thread only looks, after 250 us and later every millisecond, whether they
 * still do rounds, and takes over if not. Never waits, but for another thread's turn on this core.
 * Any thread; not from within a round. Returns whether there was a round. */
bool worker_poll(struct worker *w);
/* After a post: do a round on this thread, or have the thread that is in a round do one more. If
 * the program polls and posts in turn, and often, or only posts, one after the other, the post may
 * be left to the next poll or post. Without these the worker's thread sends it at one of its next
 * two looks. */
void worker_posted(struct worker *w);
/* The program, whose threads have polled, is about to wait for an event: the worker's thread takes
 * over now rather than at its next look. Never waits. Any thread. */
void worker_waits(struct worker *w);

/* On a thread of the program, which may block the signals that a copy may cause: unblock them until
 * the round ends. A thread that had them unblocked a millisecond ago isn't asked again, because a
 * system call may take as long as the rest of a round. */
void worker_open_signals(struct worker *w);
/* Has it lost descriptors? Any thread. A worker in a program looks at them every 5 ms, and at
 * least every 50 ms where system calls are slow. */
static inline bool worker_lost(const struct worker *w)
{
    return __builtin_expect(atomic_load_explicit(&w->lost, memory_order_relaxed), 0);
}
/* In a program: look at the worker's own two, or at all. Returns whether they are there. Any
 * thread; under the token. */
bool worker_check(struct worker *w);
bool worker_check_all(struct worker *w);
/* Once it has lost some: wait until the current round has ended. From then on it uses none. */
void worker_await_end(struct worker *w);
/* Call it before copies or atomics in a round. */
static inline void worker_touches(struct worker *w)
{
    if (w->borrowed && !w->opened)
        worker_open_signals(w);
}

/* Wake the worker if it sleeps. Any thread, after it has left the work. */
void worker_kick(struct worker *w);

/* Count, on the worker: one writer, so no locked instruction is needed. */
static inline void worker_stat_add(_Atomic uint64_t *c, uint64_t n)
{
    atomic_store_explicit(c, atomic_load_explicit(c, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

#endif
