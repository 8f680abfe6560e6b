/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The loop. A round: jobs, frames in, doorbells, timers, frames out, notifications. What to do
 * after a round without work is the idle policy's matter.
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
#include "context_ops.h"
#include "datapath.h"
#include "device.h"

#define WORKER_SERVICE_NS (5 * CLOCK_MS)   /* how often slow things are looked after, when awake */
#define WORKER_NAP_MAX_NS (100 * CLOCK_MS) /* ... and asleep, if no event is owed */
#define WORKER_BLIND_NS   (50 * CLOCK_US)  /* ... where a port has no way to wake us */
#define WORKER_LINGER_NS  (60 * CLOCK_US)  /* poll on for so long after the last work, then block */
#define WORKER_CROWD_MIN  (8 * CLOCK_MS)   /* then block instead of yielding, for a while ... */
#define WORKER_CROWD_MAX  (250 * CLOCK_MS) /* ... that doubles as long as it happens again */
#define WORKER_TURN_NS    (1 * CLOCK_US)   /* a yield this long: somebody has had a turn */
#define WORKER_LOOK_NS    (8 * CLOCK_US)   /* look for so long between two yields */
#define WORKER_FAR        2u               /* times as long with memory of processes */
#define WORKER_CALL_NS    300u             /* ... where a system call takes no longer than this */
#define WORKER_CALL_MAX   (10 * WORKER_CALL_NS) /* of a slow kernel, not of a debugger */
#define WORKER_CALLS      32u                   /* to know how long one takes */
#define WORKER_SPIN_NS    (5 * CLOCK_US) /* a deadline nearer than this isn't worth blocking for */
#define WORKER_FEW        4u /* frames: more of them are a stream, which wants throughput */
#define WORKER_PAUSE_NS   (3 * CLOCK_US / 2) /* nothing for so long: what comes is no stream */
#define WORKER_LET_IN     3u                 /* turns: others may be on our core as well */
#define WORKER_LET_IN_GAP (1 * CLOCK_MS)     /* after turns that have brought nothing */
#define WORKER_STAND_IN   8u /* rounds of the control thread in the place of a blocked worker */
#define WORKER_JOB_NS     (60 * CLOCK_US) /* most jobs are done before: being woken up costs more */

/* F_SEAL_FUTURE_WRITE keeps our own mapping writable and forbids every later one. */
static int worker_page(struct worker *w)
{
    const size_t size = WORKER_PAGE_SIZE;
    int fd = memfd_create("urnic-worker", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0)
        return -errno;
    if (ftruncate(fd, (off_t)size) < 0)
        goto fail;
    w->shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (w->shared == MAP_FAILED)
        goto fail;
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) <
        0) {
        munmap(w->shared, size);
        goto fail;
    }
    w->shared->number = w->index;
    w->page_fd = fd;
    return 0;
fail:;
    int rc = -errno;
    w->shared = NULL;
    close(fd);
    return rc;
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

/* A turn of somebody else is two switches, each of them as long as four or five system calls; and
 * these take a tenth of a microsecond on one machine, more than a whole one on a virtual one of
 * another kind. */
static void worker_pace(struct worker *w)
{
    uint64_t least = UINT64_MAX;

    for (unsigned i = 0; i < WORKER_CALLS; i++) {
        uint64_t before = clock_now();
        syscall(SYS_gettid);
        uint64_t took = clock_now() - before;
        least = took < least ? took : least;
    }
    if (least < WORKER_CALL_NS)
        least = WORKER_CALL_NS;
    if (least > WORKER_CALL_MAX)
        least = WORKER_CALL_MAX;
    w->turn_ns = WORKER_TURN_NS * least / WORKER_CALL_NS;
    w->look_ns = WORKER_LOOK_NS * least / WORKER_CALL_NS;
    w->linger_ns = WORKER_LINGER_NS * least / WORKER_CALL_NS;
}

int worker_init(struct worker *w, unsigned index, int cpu, enum config_idle idle,
                const struct context_ops *context_ops)
{
    memset(w, 0, sizeof(*w));
    w->index = index;
    w->cpu = cpu;
    w->idle = idle;
    w->context_ops = context_ops;
    w->crowd_ns = WORKER_CROWD_MIN;
    w->pause_over = idle == IDLE_POLL ? UINT64_MAX : 0;
    w->page_fd = -1;
    worker_pace(w);
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

/* One writer: no locked instruction needed. */
static void stat_add(_Atomic uint64_t *c, uint64_t n)
{
    atomic_store_explicit(c, atomic_load_explicit(c, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

/* ---- jobs ---- */

static bool worker_job(struct worker *w, uint64_t now)
{
    if (!atomic_load_explicit(&w->job, memory_order_relaxed))
        return false;
    struct worker_job *job = atomic_exchange_explicit(&w->job, NULL, memory_order_acquire);
    job->fn(job->arg, now);
    sem_post(&job->done);
    return true;
}

static void worker_kick(struct worker *w)
{
    const uint64_t one = 1;

    ipc_fence();
    if (atomic_load_explicit(&w->shared->sleeping, memory_order_relaxed) != 0)
        (void)!write(w->eventfd, &one, sizeof(one));
}

/* ---- rounds ---- */

static void worker_service(struct worker *w, uint64_t now)
{
    for (unsigned i = 0; i < w->ndevice; i++)
        device_service(w->device[i], now);
    w->context_ops->service(w);
    w->service_at = now + WORKER_SERVICE_NS;
}

/* Take what has come to a device. Returns how many frames. */
static unsigned worker_rx(struct worker *w, struct device *d, uint64_t now)
{
    unsigned n = device_peek(d, now);

    if (n == 0)
        return 0;
    /* A receive that was posted before one of these was sent has to be there for it (UC-05, UD-06).
     */
    w->context_ops->doorbells(w, now);
    w->news |= device_take(d, now);
    return n;
}

/* Take all that has come to it, within reason: an answer may stand behind many other frames. */
static unsigned worker_rx_all(struct worker *w, struct device *d, uint64_t now)
{
    unsigned n = 0, got = DATAPATH_RX_BURST;
    bool late = device_is_late(d, now);

    for (unsigned i = 0; i < DATAPATH_CATCH_UP && got >= DATAPATH_RX_BURST; i++) {
        got = worker_rx(w, d, now);
        n += got;
    }
    if (late)
        device_caught_up(d);
    return n;
}

/* Give others the core for a moment, and notice how long they keep it. Where an application spins
 * on our core a yield costs a whole time slice, while one who blocks is let in again at once.
 *
 * Who had a turn and brought nothing waits, like us, for what comes from outside. We see that as
 * soon as it comes, unless we have just yielded again, which takes longer than all our work on a
 * small message: so we look for a while before they get another turn. Returns the time. */
static uint64_t worker_yield(struct worker *w)
{
    uint64_t before = clock_now(), after;

    w->awaits = false;
    sched_yield();
    after = clock_now();
    if (after - before >= w->turn_ns)
        w->look_until = after + WORKER_LOOK_NS;
    stat_add(&w->stats.yields, 1);
    if (after - before <= CLOCK_CROWDED) {
        w->crowd_ns = WORKER_CROWD_MIN;
        return after;
    }
    w->crowded_until = after + w->crowd_ns;
    w->crowd_ns = w->crowd_ns < WORKER_CROWD_MAX ? 2 * w->crowd_ns : WORKER_CROWD_MAX;
    return after;
}

bool worker_let_in(struct worker *w, bool (*helped)(void *arg), void *arg)
{
    uint64_t now = clock_now(), before;

    if (w->pause_over == UINT64_MAX || now < w->let_in_from)
        return false;
    for (unsigned i = 0; i < WORKER_LET_IN && now >= w->crowded_until; i++) {
        before = now;
        w->context_ops->notify(w, now);
        now = worker_yield(w);
        if (helped(arg))
            return true;
        if (now - before < w->turn_ns)
            break; /* nobody else wants this core */
    }
    w->let_in_from = now + WORKER_LET_IN_GAP;
    return false;
}

/* A few frames have come after a pause: whom they are for sees them before we spend time on
 * acknowledging them, and its own answer, if a WRITE, leaves before that. Returns whether it has
 * been let in; *now goes on then. */
static bool worker_pass_on(struct worker *w, unsigned frames, uint64_t *now)
{
    if (frames == 0 || frames > WORKER_FEW || *now < w->pause_over || *now < w->crowded_until)
        return false;
    for (unsigned i = 0; i < w->ndevice; i++) {
        if (!device_can_wait(w->device[i]))
            return false;
    }
    w->context_ops->notify(w, *now);
    *now = worker_yield(w);
    return true;
}

/* This worker was off the processor for longer than an answer takes, perhaps. What has come to its
 * ports meanwhile is looked at before anything counts as unanswered (TMR-02); and answered, as who
 * was asked may be a device of this worker, too. */
static unsigned worker_catch_up(struct worker *w, uint64_t now)
{
    unsigned n = 0;
    bool late = false;

    for (unsigned i = 0; i < w->ndevice; i++)
        late |= device_is_late(w->device[i], now);
    if (!late)
        return 0;
    for (unsigned i = 0; i < w->ndevice; i++)
        n += worker_rx_all(w, w->device[i], now);
    for (unsigned i = 0; i < w->ndevice; i++)
        n += device_tx(w->device[i], now);
    for (unsigned i = 0; i < w->ndevice; i++)
        n += worker_rx_all(w, w->device[i], now);
    return n;
}

/* Do copies take system calls, ours and, likely, the peer's? */
static bool worker_is_far(const struct worker *w)
{
    for (unsigned i = 0; i < w->ndevice; i++) {
        if (w->device[i]->remotes > 0)
            return true;
    }
    return false;
}

/* Returns how much there was to do. */
static unsigned worker_round(struct worker *w, uint64_t now)
{
    w->now = now;
    unsigned work = worker_job(w, now) ? 1 : 0, frames = 0;

    for (unsigned i = 0; i < w->ndevice; i++)
        frames += worker_rx(w, w->device[i], now);
    work += frames;
    bool news = w->context_ops->news(w) || w->news; /* also of the end of the last round */
    w->news = false;
    if (news || (frames > 0 && !w->awaits)) { /* whom they are for gets a turn */
        w->look_until = 0;
        w->awaits = false;
    }
    bool passed_on = news && worker_pass_on(w, frames, &now);
    unsigned posted = w->context_ops->round(w, now);
    /* A mere acknowledgement is not the answer; and who posts on and on keeps nobody out. */
    if (posted > 0 && !w->awaits) {
        w->look_until = now + (worker_is_far(w) ? WORKER_FAR : 1) * w->look_ns;
        w->awaits = true;
    }
    work += posted + worker_catch_up(w, now);
    for (unsigned i = 0; i < w->ndevice; i++) {
        if (passed_on)
            work += device_tx_first(w->device[i], now);
        work += device_timers(w->device[i], now);
        work += device_tx(w->device[i], now);
    }
    w->context_ops->notify(w, now);
    if (now >= w->service_at)
        worker_service(w, now);
    return work;
}

/* ---- idle ---- */

static uint64_t worker_deadline(struct worker *w, uint64_t now)
{
    uint64_t at = now + WORKER_NAP_MAX_NS;

    for (unsigned i = 0; i < w->ndevice; i++) {
        uint64_t d = device_deadline(w->device[i], now);
        if (d < at)
            at = d;
        if (w->device[i]->gsi->ops->owes(w->device[i]->gsi) && w->service_at < at)
            at = w->service_at;
    }
    if (w->context_ops->owes(w) && w->service_at < at)
        at = w->service_at;
    uint64_t event = w->context_ops->deadline(w);
    return event < at ? event : at;
}

/* The last look before blocking: anything at all? The caller has said that it sleeps. */
static bool worker_anything(struct worker *w, uint64_t now)
{
    if (atomic_load_explicit(&w->job, memory_order_relaxed) ||
        atomic_load_explicit(&w->stop, memory_order_relaxed))
        return true;
    if (w->context_ops->ready(w))
        return true;
    unsigned n = 0;
    w->now = now;
    for (unsigned i = 0; i < w->ndevice; i++)
        n += worker_rx(w, w->device[i], now);
    return n > 0;
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

    worker_arm(w, false);       /* empty looks at armed ports cost system calls */
    w->pause_over = UINT64_MAX; /* this thread yields to nobody */
    w->now = now;
    fn(arg, now);
    for (unsigned i = 0; i < WORKER_STAND_IN && worker_round(w, now) > 0; i++)
        now = clock_now();
    worker_arm(w, true);
    w->pause_over = now + WORKER_PAUSE_NS;
    bool sooner = worker_deadline(w, now) < w->sleep_until || worker_anything(w, now);
    atomic_store_explicit(&w->taken, false, memory_order_release);
    if (sooner)
        worker_kick(w);
}

static void worker_job_wait(struct worker_job *job)
{
    uint64_t since = clock_now();

    while (clock_now() - since < WORKER_JOB_NS) {
        if (sem_trywait(&job->done) == 0)
            return;
        if (clock_yield() > CLOCK_CROWDED)
            break;
    }
    while (sem_wait(&job->done) < 0 && errno == EINTR)
        ;
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
    struct worker_job job = {.fn = fn, .arg = arg};
    sem_init(&job.done, 0, 0);
    atomic_store_explicit(&w->job, &job, memory_order_release);
    worker_kick(w);
    worker_job_wait(&job);
    sem_destroy(&job.done);
}

static void worker_wait(struct worker *w, uint64_t ns)
{
    struct epoll_event ev[WATCH_EVENTS];

    atomic_store_explicit(&w->taken, false, memory_order_release);
    int n = watch_sleep(&w->watch, ev, ns);
    while (atomic_exchange_explicit(&w->taken, true, memory_order_acquire))
        sched_yield(); /* the control thread stands in; not for long */
    stat_add(&w->stats.kicks, watch_heard(&w->watch, ev, n));
}

/* Can every port wake us, by its descriptor or by its deadline? */
static bool worker_can_block(const struct worker *w)
{
    for (unsigned i = 0; i < w->ndevice; i++) {
        const struct io_port *io = w->device[i]->io;
        if (io->caps.rx_fd < 0 && !io->ops->deadline)
            return false;
    }
    return true;
}

static void worker_block(struct worker *w)
{
    uint64_t now = clock_now(), at = worker_deadline(w, now);

    if (at <= now + WORKER_SPIN_NS)
        return;
    ipc_worker_sleeping(w->shared, true);
    worker_arm(w, true);
    if (!worker_anything(w, now)) {
        stat_add(&w->stats.sleeps, 1);
        w->sleep_until = at;
        worker_wait(w, at - now);
    }
    ipc_worker_sleeping(w->shared, false);
    worker_arm(w, false);
}

/* After a round without work; `since` = when there was some last. Waking up costs both sides
 * microseconds, so a worker lingers: an answer is often on its way. */
static void worker_idle(struct worker *w, uint64_t since, uint64_t now)
{
    if (w->idle == IDLE_POLL)
        return;
    if (now - since < w->linger_ns && now >= w->crowded_until) {
        if (now >= w->look_until)
            worker_yield(w);
    } else if (worker_can_block(w)) {
        worker_block(w);
    } else {
        struct timespec nap = {.tv_nsec = (long)WORKER_BLIND_NS};
        nanosleep(&nap, NULL);
    }
}

static void *worker_main(void *arg)
{
    struct worker *w = arg;
    uint64_t since = 0;

    /* The kernel may otherwise wake us 50 us late, which a paced queue pair can't make up for. */
    prctl(PR_SET_TIMERSLACK, 1ul);
    life_begin(&w->life, (struct ipc_life *)(void *)(w->shared + 1));
    while (atomic_exchange_explicit(&w->taken, true, memory_order_acquire))
        sched_yield();

    while (!atomic_load_explicit(&w->stop, memory_order_relaxed)) {
        uint64_t now = clock_now();
        unsigned work = worker_round(w, now);
        stat_add(&w->stats.rounds, 1);
        if (work > 0) {
            stat_add(&w->stats.busy_rounds, 1);
            since = now;
            w->pause_over = w->idle == IDLE_AUTO ? clock_now() + WORKER_PAUSE_NS : UINT64_MAX;
        } else {
            worker_idle(w, since, now);
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
