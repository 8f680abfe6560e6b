/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The thread: rounds, and between two of them what the idle policy says (pace.h).
 */
#include "worker.h"

#include <errno.h>
#include <fcntl.h>
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
#include "log.h"
#include "readonly.h"
#include "round.h"

#define WORKER_CALLS    32u /* to know how long one takes */
#define WORKER_STAND_IN 8u  /* rounds of the control thread in the place of a blocked worker */

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

/* Only the kernel knows which cores there are, and which of them a cpuset keeps from us. */
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

/* How long a system call takes on this machine, ns. */
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
    int rc = watch_init(&w->watch);
    w->eventfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (rc == 0)
        rc = w->eventfd < 0 ? -errno : worker_page(w);
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
    if (w->page_fd >= 0)
        close(w->page_fd);
    if (w->eventfd >= 0)
        close(w->eventfd);
    watch_fini(&w->watch);
    w->shared = NULL;
    w->page_fd = w->eventfd = -1;
}

void worker_kick(struct worker *w)
{
    const uint64_t one = 1;
    ipc_fence();
    if (atomic_load_explicit(&w->shared->sleeping, memory_order_relaxed) != 0)
        (void)!write(w->eventfd, &one, sizeof(one));
}

static void worker_arm(struct worker *w, bool on)
{
    for (unsigned i = 0; i < w->ndevice; i++) {
        struct io_port *io = w->device[i]->io;
        if (io->ops->rx_arm && io->caps.rx_fd >= 0)
            io->ops->rx_arm(io, on);
    }
}

/* ---- from the control thread ---- */

/* The worker is blocked: do the job in its place, and what follows from it. */
static void worker_stand_in(struct worker *w, void (*fn)(void *arg, uint64_t now), void *arg)
{
    uint64_t now = clock_now();
    worker_arm(w, false); /* empty looks at armed ports cost system calls */
    w->pace.keeps = true; /* this thread yields to nobody */
    w->now = now;
    fn(arg, now);
    for (unsigned i = 0; i < WORKER_STAND_IN && worker_round(w, now) > 0; i++)
        now = clock_now();
    worker_arm(w, true);
    w->pace.keeps = false;
    bool sooner = worker_deadline(w, now) < w->sleep_until || worker_anything(w, now);
    atomic_store_explicit(&w->taken, false, memory_order_release);
    if (sooner)
        worker_kick(w);
}

void worker_call(struct worker *w, void (*fn)(void *arg, uint64_t now), void *arg)
{
    bool free_now = false;
    if (!w->started) {
        fn(arg, clock_now());
        return;
    }
    if (atomic_compare_exchange_strong_explicit(&w->taken, &free_now, true, memory_order_acquire,
                                                memory_order_relaxed)) {
        worker_stand_in(w, fn, arg);
        return;
    }
    struct job job = {.fn = fn, .arg = arg};
    jobs_add(&w->jobs, &job);
    worker_kick(w);
    job_wait(&job);
}

static void worker_wait(struct worker *w, uint64_t ns)
{
    struct epoll_event ev[WATCH_EVENTS];
    atomic_store_explicit(&w->taken, false, memory_order_release);
    int n = watch_sleep(&w->watch, ev, ns);
    while (atomic_exchange_explicit(&w->taken, true, memory_order_acquire))
        sched_yield(); /* the control thread stands in; not for long */
    worker_stat_add(&w->stats.kicks, watch_heard(&w->watch, ev, n));
}

/* A port's descriptor that stays readable has been taken out: the port is looked at by time now. */
static void worker_deaf_to(struct worker *w, int fd)
{
    for (unsigned i = 0; i < w->ndevice; i++) {
        struct device *d = w->device[i];
        if (d->rx_fd != fd)
            continue;
        d->rx_deaf = true;
        log_warn(
            "port",
            "%s: its descriptor %d says again and again that frames have come, and none have: it "
            "no longer wakes worker %u, which looks at short intervals instead",
            d->name, fd, w->index);
    }
}

/* Can every port wake us, by its descriptor or by its deadline? */
static bool worker_can_block(const struct worker *w)
{
    for (unsigned i = 0; i < w->ndevice; i++) {
        const struct io_port *io = w->device[i]->io;
        if ((io->caps.rx_fd < 0 && !io->ops->deadline) || w->device[i]->rx_deaf)
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

static void worker_nap(uint64_t now, uint64_t until)
{
    struct timespec nap = {.tv_nsec = (long)(until - now)}; /* far less than a second */
    nanosleep(&nap, NULL);
}

/* After a round without work, which began at `now`. */
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
        worker_yield(w);
    else if (step.how == PACE_BLOCK && seen.deaf)
        worker_nap(now, step.until);
    else if (step.how == PACE_BLOCK)
        worker_block(w, step.until);
}

static void *worker_main(void *arg)
{
    struct worker *w = arg;
    /* The kernel may otherwise wake us 50 us late, which a paced queue pair can't make up for. */
    prctl(PR_SET_TIMERSLACK, 1ul);
    life_begin(&w->life, (struct ipc_life *)(void *)(w->shared + 1));
    while (atomic_exchange_explicit(&w->taken, true, memory_order_acquire))
        sched_yield();

    while (!atomic_load_explicit(&w->stop, memory_order_relaxed)) {
        uint64_t now = clock_now();
        unsigned work = worker_round(w, now);
        worker_stat_add(&w->stats.rounds, 1);
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
    }
    atomic_store_explicit(&w->taken, false, memory_order_release);
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
