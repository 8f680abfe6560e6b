/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The worker's thread: it does rounds, and follows the idle policy between them (pace.h).
 */
#include "worker.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"
#include "device.h"
#include "ipc_map.h"
#include "log.h"
#include "readonly.h"
#include "round.h"

#define WORKER_CALLS    32u /* calls timed, to know how long a system call takes */
#define WORKER_STAND_IN 8u  /* most rounds of the control thread for a blocked worker */
#define WORKER_LOOK_NS  (250 * CLOCK_US) /* first period of looks at polling threads; it doubles */
#define WORKER_LOOK_MAX (1 * CLOCK_MS)
#define WORKER_YIELDS   16u            /* in a wait for the token, before naps */
#define WORKER_LET_POLL 4u             /* yields to a polling thread that may wait for this core */
#define WORKER_LONG_NS  (1 * CLOCK_MS) /* one holder for this long may need this core */
#define WORKER_ASK_NS   (1 * CLOCK_MS)
#define WORKER_OFTEN_NS (1 * CLOCK_MS) /* between posts of which one may wait for a poll */
#define WORKER_STREAM   32u            /* posts in a row, of which one may wait as well */
#define WORKER_STAY_MIN (1 * CLOCK_MS)
#define WORKER_STAY_MAX (1 * CLOCK_SEC)
#define WORKER_NAP_NS   (50 * CLOCK_US)
#define WORKER_NAP_MAX  (1 * CLOCK_MS)
#define WORKER_REST_NS  (10 * CLOCK_MS)
#define WORKER_SPIN_NS  (1 * CLOCK_MS) /* on a channel: time without work before a nap */
#define WORKER_SPINS    32u            /* polls without work before a nap */
#define WORKER_PATIENCE 16384u         /* most polls that don't end the thread's stay */
#define WORKER_SOON_NS  (100 * CLOCK_MS)

static int worker_page(struct worker *w)
{
    void *at;
    int rc = readonly_new("urnic-worker", WORKER_PAGE_SIZE, &at, &w->page_fd);
    if (rc < 0)
        return rc;
    w->shared = at;
    w->shared->number = w->index;
    return 0;
}

/* Ask the kernel: only it knows the cores, and the ones that a cpuset excludes. */
int worker_cpu_check(int cpu)
{
    cpu_set_t before, wanted;
    if (cpu < 0 || sched_getaffinity(0, sizeof(before), &before) < 0)
        return 0;
    CPU_ZERO(&wanted);
    CPU_SET((unsigned)cpu, &wanted);
    if (sched_setaffinity(0, sizeof(wanted), &wanted) < 0)
        return -errno;
    return sched_setaffinity(0, sizeof(before), &before) < 0 ? -errno : 0;
}

/* The time of a system call on this machine, ns. */
static uint64_t worker_call_ns(void)
{
    uint64_t least = UINT64_MAX;
    for (unsigned i = 0; i < WORKER_CALLS; i++) {
        uint64_t before = clock_now();
        syscall(SYS_gettid);
        uint64_t took = clock_now() - before;
        least = took < least ? took : least;
    }
    return least;
}

int worker_init(struct worker *w, unsigned index, int cpu, enum config_idle idle,
                const struct context_ops *context_ops)
{
    memset(w, 0, sizeof(*w));
    w->index = index;
    w->cpu = cpu;
    w->context_ops = context_ops;
    w->page_fd = -1;
    pace_init(&w->pace, worker_call_ns(), PACE_LOOK_NS);
    w->pace.never = idle == IDLE_POLL;
    atomic_init(&w->patience, WORKER_SPINS);
    int rc = watch_init(&w->watch);
    w->eventfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (rc == 0)
        rc = w->eventfd < 0 ? -errno : worker_page(w);
    w->event_mark = watch_mark(w->eventfd);
    if (rc == 0)
        rc = watch_add(&w->watch, w->eventfd, true);
    if (rc < 0)
        worker_fini(w);
    return rc;
}

void worker_fini(struct worker *w)
{
    if (w->shared)
        munmap(w->shared, WORKER_PAGE_SIZE);
    if (w->page_fd != -1)
        ipc_object_close(w->page_fd);
    if (w->eventfd >= 0)
        close(w->eventfd);
    watch_fini(&w->watch);
    w->shared = NULL;
    w->page_fd = w->eventfd = -1;
}

/* The port on which the thread sleeps, because no descriptor can wake it; NULL = it sleeps on
 * descriptors. */
static struct io_port *worker_bed(const struct worker *w)
{
    struct io_port *io = w->ndevice == 1 ? w->device[0]->io : NULL;
    return io && io->ops->wait ? io : NULL;
}

static void worker_lose(struct worker *w)
{
    atomic_store_explicit(&w->lost, true, memory_order_relaxed);
    atomic_store_explicit(&w->shared->gone, 1, memory_order_relaxed);
}

bool worker_check(struct worker *w)
{
    if (!worker_lost(w) &&
        !(watch_is(w->eventfd, &w->event_mark) && watch_is(w->watch.epfd, &w->watch.own)))
        worker_lose(w);
    return !worker_lost(w);
}

bool worker_check_all(struct worker *w)
{
    if (worker_check(w) && !watch_intact(&w->watch))
        worker_lose(w);
    return !worker_lost(w);
}

static void worker_wake(struct worker *w)
{
    const uint64_t one = 1;
    struct io_port *bed = worker_bed(w);
    if (bed)
        bed->ops->nudge(bed);
    else if (w->frame && !watch_is(w->eventfd, &w->event_mark))
        worker_lose(w);
    else
        (void)!write(w->eventfd, &one, sizeof(one));
}

void worker_kick(struct worker *w)
{
    ipc_fence();
    if (atomic_load_explicit(&w->shared->sleeping, memory_order_relaxed) != 0)
        worker_wake(w);
}

static void worker_arm(struct worker *w, bool on)
{
    if (w->armed == on)
        return;
    w->armed = on;
    for (unsigned i = 0; i < w->ndevice; i++) {
        struct io_port *io = w->device[i]->io;
        if (io->ops->rx_arm && (io->caps.rx_fd >= 0 || io->ops->wait))
            io->ops->rx_arm(io, on);
    }
}

/* By number: it is no cancellation point. */
static void worker_futex(_Atomic uint32_t *word, int op, uint32_t value, const struct timespec *ns)
{
    int saved = errno;
    syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, ns, NULL, 0);
    errno = saved;
}

static void worker_nap(uint64_t ns)
{
    const struct timespec nap = {.tv_nsec = (long)ns}; /* far less than a second */
    int saved = errno;
    nanosleep(&nap, NULL);
    errno = saved; /* a signal handler may poll */
}

/* Wait for the token. Its holder is in a round, or does a few. It may also have lost this core to
 * us: the kernel may then keep the core from it until we sleep, whatever the time of our yields. A
 * program's thread that holds the token for long does our rounds, so longer and longer naps do. */
static void worker_take(struct worker *w)
{
    uint64_t nap = WORKER_NAP_NS;
    for (unsigned yields = 0; !token_try(&w->token);) {
        if (yields++ < WORKER_YIELDS) {
            sched_yield();
            continue;
        }
        worker_nap(nap);
        nap = 2 * nap < WORKER_NAP_MAX ? 2 * nap : WORKER_NAP_MAX;
    }
}

/* ---- from other threads ---- */

/* The next rounds run on this thread, a thread of the program. */
static void worker_borrow(struct worker *w)
{
    w->borrowed = w->frame != NULL;
}

void worker_open_signals(struct worker *w)
{
    pthread_t self = pthread_self();
    struct worker_asked *a = &w->asked[((uintptr_t)self >> 12) % WORKER_ASKED];
    w->opened = true;
    w->were = 0;
    if (a->thread == self && w->now < a->until)
        return;
    w->were = guard_signal_open();
    *a = (struct worker_asked){.thread = self, .until = w->were ? 0 : w->now + WORKER_ASK_NS};
}

/* Undo worker_borrow, before the token is released. */
static void worker_return(struct worker *w)
{
    if (w->opened)
        guard_signal_close(w->were);
    w->borrowed = w->opened = false;
}

/* The worker is blocked: run the job in its place, NULL = none, and the rounds that follow from it.
 */
static void worker_stand_in(struct worker *w, void (*fn)(void *arg, uint64_t now), void *arg)
{
    uint64_t now = clock_now();
    worker_arm(w, false); /* polling an armed port in vain costs a system call */
    worker_borrow(w);
    w->pace.keeps = true; /* this thread never yields */
    w->now = now;
    if (w->deferred && fn)
        (void)worker_round(w, now); /* the job may end the queue pair of that post */
    w->deferred = false;
    (void)worker_before_job(w, now);
    if (fn)
        fn(arg, now);
    for (unsigned i = 0; i < WORKER_STAND_IN && worker_round(w, now) > 0; i++)
        now = clock_now();
    w->pace.keeps = false;
    bool blocked = atomic_load_explicit(&w->shared->sleeping, memory_order_relaxed) != 0;
    worker_arm(w, blocked);
    bool sooner = blocked && (worker_deadline(w, now) < w->sleep_until || worker_anything(w, now));
    worker_return(w);
    while (!token_release(&w->token)) {
        worker_borrow(w);
        (void)worker_round(w, clock_now());
        worker_return(w);
        sooner = blocked; /* this round may have left frames or timers for the worker */
    }
    if (sooner)
        worker_kick(w);
}

/* A thread that polls has done a round, and holds the token. Should it nap? Programs' threads may
 * spin on all cores, and the daemon waits for one of them. A yield would not help the daemon: it
 * helps only threads of the same control group or session. */
static bool worker_spins(struct worker *w, bool work)
{
    if (work) {
        w->worked_at = w->now;
        w->spins = 0;
        return false;
    }
    if (++w->spins < WORKER_SPINS || !worker_bed(w) || w->now - w->worked_at < WORKER_SPIN_NS)
        return false;
    w->spins = 0;
    return true;
}

/* This thread polls or has `posted`, and holds the token. Returns whether it should nap. */
static bool worker_inline(struct worker *w, bool posted)
{
    bool wakes = atomic_load_explicit(&w->shared->sleeping, memory_order_relaxed) != 0;
    if (wakes)
        ipc_worker_sleeping(w->shared, false); /* it need not be woken up for this any more */
    worker_arm(w, false);
    w->pace.keeps = true;
    w->deferred = false;
    bool naps;
    do {
        worker_borrow(w);
        naps = worker_spins(w, worker_round(w, clock_now()) > 0);
        worker_return(w);
        worker_stat_add(&w->stats.rounds, 1);
        w->pace.keeps = false; /* for the worker's thread, if it is next */
        if (posted)
            w->round_over = clock_now();
    } while (!token_release(&w->token));
    if (wakes) /* once: from now on it looks by itself */
        worker_wake(w);
    return naps;
}

void worker_call(struct worker *w, void (*fn)(void *arg, uint64_t now), void *arg)
{
    if (!w->started && !w->inline_only) {
        fn(arg, clock_now());
        return;
    }
    if (token_try(&w->token)) {
        worker_stand_in(w, fn, arg);
        return;
    }
    struct job job = {.fn = fn, .arg = arg};
    jobs_add(&w->jobs, &job);
    if (token_want(&w->token))
        (void)worker_inline(w, false);
    worker_kick(w);
    job_wait(&job);
}

/* A poll has found the token taken. Its holder may be preempted and need this core. */
static void worker_give_way(const struct worker *w)
{
    uint64_t start = atomic_load_explicit(&w->round_at, memory_order_relaxed), now = clock_now();
    if (now > start && now - start > WORKER_LONG_NS)
        worker_nap(WORKER_NAP_NS);
    else
        sched_yield();
}

static bool worker_stays(const struct worker *w)
{
    uint64_t until = atomic_load_explicit(&w->stays_until, memory_order_relaxed);
    return __builtin_expect(until != 0, 0) && clock_now() < until;
}

/* The thread stays because polls were rare. May this one run a round all the same? After some polls
 * the program spins: it was kept from polling, perhaps by others on its core. */
static bool worker_ends_stay(struct worker *w)
{
    if (atomic_fetch_add_explicit(&w->stay_polls, 1, memory_order_relaxed) + 1 <
        atomic_load_explicit(&w->patience, memory_order_relaxed))
        return false;
    atomic_store_explicit(&w->stays_until, 0, memory_order_relaxed);
    return true;
}

bool worker_poll(struct worker *w)
{
    if (worker_lost(w))
        return false;
    if (worker_stays(w) && !worker_ends_stay(w)) {
        sched_yield();
        return false;
    }
    if (!token_try(&w->token)) {
        atomic_fetch_add_explicit(&w->knocks, 1, memory_order_relaxed);
        worker_give_way(w);
        return false;
    }
    atomic_store_explicit(&w->inlined, atomic_load_explicit(&w->inlined, memory_order_relaxed) + 1,
                          memory_order_relaxed); /* under the token */
    if (worker_inline(w, false))
        worker_nap(WORKER_NAP_NS);
    return true;
}

/* Does the program spend its time in posts, each with a round of its own? Between two of them it
 * does little: one that waits for its peer, or computes, takes longer than a quarter of a round. */
static bool worker_streams(struct worker *w, uint64_t now)
{
    const uint64_t began = atomic_load_explicit(&w->round_at, memory_order_relaxed);
    const bool last = began < w->round_over; /* no poll's round, nor the thread's, has come since */
    const bool next = last && 4 * (now - w->round_over) < w->round_over - began;
    w->stream = next ? w->stream + 1 : 0;
    return w->stream >= WORKER_STREAM;
}

/* The program posts often, polls between its posts, and may have packets on their way. Then this
 * post can wait for the next poll: one round, and one call of the kernel, instead of two. So can a
 * post of a stream: it lets all those after it wait, too, until the program looks for completions.
 * The worker's thread must be awake, since it sends what neither a poll nor another post does. */
static bool worker_defers(struct worker *w)
{
    const uint32_t polls = atomic_load_explicit(&w->inlined, memory_order_relaxed);
    const uint64_t now = clock_now();
    const bool polled = polls != w->polls_at_post, often = now - w->posted_at < WORKER_OFTEN_NS;
    const bool streams = worker_streams(w, now);
    w->polls_at_post = polls;
    w->posted_at = now;
    if (!w->started || !(polled || streams) || !often ||
        atomic_load_explicit(&w->shared->sleeping, memory_order_relaxed) != 0)
        return false;
    for (unsigned i = 0; i < w->ndevice; i++) {
        if (engine_deadline(w->device[i]->engine) != UINT64_MAX)
            return true;
    }
    return false;
}

void worker_posted(struct worker *w)
{
    if (worker_lost(w))
        return;
    if (!token_try(&w->token) && !token_want(&w->token))
        return;
    if (worker_stays(w)) {
        worker_stand_in(w, NULL, NULL);
        return;
    }
    w->deferred = worker_defers(w);
    if (w->deferred && token_release(&w->token))
        return;
    (void)worker_inline(w, true);
}

void worker_waits(struct worker *w)
{
    uint32_t looking = 1;
    atomic_store_explicit(&w->stay_polls, 0, memory_order_relaxed);
    atomic_store_explicit(&w->waits, true, memory_order_seq_cst);
    if (atomic_compare_exchange_strong_explicit(&w->looking, &looking, 0, memory_order_seq_cst,
                                                memory_order_relaxed))
        worker_futex(&w->looking, FUTEX_WAKE, 1, NULL);
}

/* ---- the thread ---- */

/* Write the lines that were logged under the token, without the token. */
static void worker_log(struct worker *w)
{
    if (__builtin_expect(!log_kept(), 1) || !token_release(&w->token))
        return;
    log_flush();
    worker_take(w);
}

/* Has no thread polled since then, is none in a round now, and is none about to wait? */
static bool worker_unpolled(const struct worker *w, uint32_t seen)
{
    return atomic_load_explicit(&w->inlined, memory_order_relaxed) == seen &&
           atomic_load_explicit(&w->token.word, memory_order_relaxed) == TOKEN_FREE &&
           !atomic_load_explicit(&w->waits, memory_order_relaxed);
}

/* Other threads poll: look from time to time, until they stop or are about to wait. A look costs
 * two context switches and a timer, a twentieth of the core if each period were the first. */
static void worker_look(struct worker *w)
{
    struct timespec period = {.tv_nsec = (long)WORKER_LOOK_NS / 2};
    uint32_t seen;
    do {
        if (period.tv_nsec < (long)WORKER_LOOK_MAX)
            period.tv_nsec *= 2;
        seen = atomic_load_explicit(&w->inlined, memory_order_relaxed);
        log_flush();
        atomic_store_explicit(&w->looking, 1, memory_order_seq_cst);
        if (!atomic_load_explicit(&w->waits, memory_order_seq_cst))
            worker_futex(&w->looking, FUTEX_WAIT, 1, &period);
        atomic_store_explicit(&w->looking, 0, memory_order_relaxed);
        for (unsigned i = 0; i < WORKER_LET_POLL && worker_unpolled(w, seen); i++)
            sched_yield();
    } while (!worker_unpolled(w, seen) && !atomic_load_explicit(&w->waits, memory_order_relaxed) &&
             !atomic_load_explicit(&w->stop, memory_order_relaxed));
}

/* So many polls have come while the thread stayed. If they have ended its stay, the program spins.
 * But a program that soon leaves work to the thread again spins on its completion queue and on its
 * memory in turn, as ib_write_lat does. The thread then stays for longer, against more polls: for
 * each turn that it misses it may wait for the end of the program's time slice. */
static void worker_judge_polls(struct worker *w, uint32_t polls, uint64_t now)
{
    const bool soon = now - w->took_over_at < WORKER_SOON_NS;
    uint32_t patience = atomic_load_explicit(&w->patience, memory_order_relaxed);
    const bool ended = polls >= patience;
    w->took_over_at = now;
    if (!soon)
        patience = WORKER_SPINS;
    if (ended && soon && worker_anything(w, now)) {
        patience = patience < WORKER_PATIENCE ? 8 * patience : patience;
        w->stay_ns *= 4;
    } else if (ended) {
        w->stay_ns = 0;
    }
    atomic_store_explicit(&w->patience, patience, memory_order_relaxed);
}

/* The worker's thread takes over from the program's polls. If it finds work that no poll has done,
 * it keeps the worker for a while, twice as long each time; if not, the next time is half as long.
 * It also stays if the program waits now: the program may poll once more before. */
static void worker_take_over(struct worker *w)
{
    worker_take(w);
    uint64_t now = clock_now(), until = 0;
    bool waits = atomic_exchange_explicit(&w->waits, false, memory_order_relaxed);
    worker_judge_polls(w, atomic_exchange_explicit(&w->stay_polls, 0, memory_order_relaxed), now);
    if (worker_anything(w, now)) {
        w->stay_ns = w->stay_ns == 0 ? WORKER_STAY_MIN : 2 * w->stay_ns;
        if (w->stay_ns > WORKER_STAY_MAX)
            w->stay_ns = WORKER_STAY_MAX;
        until = now + w->stay_ns;
    } else {
        w->stay_ns /= 2;
        until = waits ? now + WORKER_STAY_MIN : 0;
    }
    atomic_store_explicit(&w->stays_until, until, memory_order_relaxed);
}

/* Has a thread polled in vain since the last call? It then gets the token. */
static void worker_let_poll(struct worker *w, uint32_t *knocks)
{
    uint32_t n = atomic_load_explicit(&w->knocks, memory_order_relaxed);
    if (__builtin_expect(n == *knocks, 1))
        return;
    *knocks = n;
    if (!token_release(&w->token))
        return;
    worker_look(w);
    worker_take_over(w);
}

/* The thread has released the token at that count of polls, and takes it again. */
static void worker_retake(struct worker *w, uint32_t inlined)
{
    if (atomic_load_explicit(&w->inlined, memory_order_relaxed) == inlined) {
        worker_take(w);
    } else {
        worker_look(w);
        worker_take_over(w);
    }
}

static void worker_wait(struct worker *w, uint64_t ns)
{
    struct epoll_event ev[WATCH_EVENTS];
    uint32_t inlined = atomic_load_explicit(&w->inlined, memory_order_relaxed);
    if (!token_release(&w->token))
        return;
    struct io_port *bed = worker_bed(w);
    int n = 0;
    if (bed)
        bed->ops->wait(bed, ns);
    else
        n = watch_sleep(&w->watch, ev, ns);
    worker_retake(w, inlined);
    if (!worker_lost(w))
        worker_stat_add(&w->stats.kicks, watch_heard(&w->watch, ev, n));
}

/* A port whose descriptor stays readable is no longer watched: it is polled by time. */
static void worker_deaf_to(struct worker *w, int fd)
{
    for (unsigned i = 0; i < w->ndevice; i++) {
        struct device *d = w->device[i];
        if (d->rx_fd != fd)
            continue;
        d->rx_deaf = true;
        log_warn("port",
                 "%s: its descriptor %d reports frames again and again, and there are none: worker "
                 "%u no longer waits for it and polls at short intervals",
                 d->name, fd, w->index);
    }
}

/* Can every port wake us, by its descriptor or by its deadline? */
static bool worker_can_block(const struct worker *w)
{
    for (unsigned i = 0; i < w->ndevice; i++) {
        const struct io_port *io = w->device[i]->io;
        if ((io->caps.rx_fd < 0 && !io->ops->deadline && !io->ops->wait) || w->device[i]->rx_deaf)
            return false;
    }
    return true;
}

static void worker_block(struct worker *w, uint64_t until)
{
    ipc_worker_sleeping(w->shared, true);
    worker_arm(w, true);
    uint64_t now = clock_now();
    if (!worker_anything(w, now) && now < until) {
        worker_stat_add(&w->stats.sleeps, 1);
        w->sleep_until = until;
        worker_wait(w, until - now);
    }
    ipc_worker_sleeping(w->shared, false);
    worker_arm(w, false);
}

/* Yield, and leave the token free meanwhile (token.h). A program that gets the core and posts then
 * finds the token free: its request leaves at once rather than in this thread's next turn. */
static void worker_idle_yield(struct worker *w)
{
    if (!w->frame) {
        worker_yield(w);
        return;
    }
    uint32_t inlined = atomic_load_explicit(&w->inlined, memory_order_relaxed);
    uint64_t before = clock_now();
    w->pace.awaits = false;
    if (!token_release(&w->token))
        return;
    sched_yield();
    uint64_t after = clock_now();
    worker_retake(w, inlined);
    if (w->pace.awaits) /* a request has left meanwhile: poll for its answer */
        (void)pace_next(&w->pace, &(struct pace_seen){.work = true}, after);
    else
        pace_yielded(&w->pace, before, after);
    worker_stat_add(&w->stats.yields, 1);
}

/* Idle after a round without work that began at `now`. */
static void worker_idle(struct worker *w, uint64_t now)
{
    struct pace_seen seen = {.due = UINT64_MAX};
    if (!pace_lingers(&w->pace, now)) {
        now = clock_now();
        seen.due = worker_deadline(w, now);
        seen.deaf = !worker_can_block(w);
    }
    struct pace_step step = pace_next(&w->pace, &seen, now);
    if (step.how == PACE_YIELD)
        worker_idle_yield(w);
    else if (step.how == PACE_BLOCK && seen.deaf)
        worker_nap(step.until - now);
    else if (step.how == PACE_BLOCK)
        worker_block(w, step.until);
}

void worker_await_end(struct worker *w)
{
    worker_take(w);
    while (!token_release(&w->token))
        (void)worker_round(w, clock_now());
}

/* Without its descriptors the thread has nothing to do but to end. */
static void worker_rest(struct worker *w)
{
    if (!token_release(&w->token))
        return;
    log_flush();
    worker_nap(WORKER_REST_NS);
    worker_take(w);
}

static void *worker_main(void *arg)
{
    struct worker *w = arg;
    /* Otherwise the kernel may wake the thread 50 us late, which a paced queue pair can't make up
     * for. */
    prctl(PR_SET_TIMERSLACK, 1ul);
    life_begin(&w->life, (struct ipc_life *)(void *)(w->shared + 1));
    uint32_t knocks = 0;
    worker_take(w);

    while (!atomic_load_explicit(&w->stop, memory_order_relaxed)) {
        uint64_t now = clock_now();
        unsigned work = worker_round(w, now);
        worker_stat_add(&w->stats.rounds, 1);
        if (worker_lost(w)) {
            worker_rest(w);
            continue;
        }
        if (w->watch.nwoke > 0) {
            int stubborn = watch_judge(&w->watch, work > 0, now);
            if (stubborn >= 0)
                worker_deaf_to(w, stubborn);
        }
        if (work > 0) {
            worker_stat_add(&w->stats.busy_rounds, 1);
            (void)pace_next(&w->pace, &(struct pace_seen){.work = true}, clock_now());
        } else {
            worker_idle(w, now);
        }
        worker_let_poll(w, &knocks);
        worker_log(w);
    }
    while (!token_release(&w->token))
        ; /* the waiting thread finds its work when the worker has ended */
    return NULL;
}

int worker_start(struct worker *w)
{
    pthread_attr_t attr;
    cpu_set_t cpus;
    char name[16];
    pthread_attr_init(&attr);
    if (w->cpu >= 0) {
        CPU_ZERO(&cpus);
        CPU_SET((unsigned)w->cpu, &cpus);
        pthread_attr_setaffinity_np(&attr, sizeof(cpus), &cpus);
    }
    int rc = pthread_create(&w->thread, &attr, worker_main, w);
    pthread_attr_destroy(&attr);
    if (rc != 0)
        return -rc;
    w->started = true;
    snprintf(name, sizeof(name), "worker-%u", w->index);
    pthread_setname_np(w->thread, name);
    return 0;
}

void worker_stop(struct worker *w)
{
    if (!w->started)
        return;
    atomic_store_explicit(&w->stop, true, memory_order_relaxed);
    worker_kick(w);
    pthread_join(w->thread, NULL);
    w->started = false;
}
