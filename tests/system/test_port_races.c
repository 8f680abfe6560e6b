/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Progress on a port of a program's own: by threads that poll, by the library's thread when none
 * does, and by all of them at once.
 */
#include "port_rig.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define SIZE ((size_t)256 << 10)

/* Each test runs with this. */
static const char *const progress[] = {"auto", "thread", "poll"};

static void pair(struct port_end *a, struct port_end *b, const char *link, const char *how)
{
    char more[64];
    snprintf(more, sizeof(more), ",progress=%s", how);
    port_pair(a, b, link, more, SIZE);
    port_join(a, b);
}

/* ---- many pollers ---- */

static struct {
    struct port_end *e;
    _Atomic bool stop;
    _Atomic uint32_t done, bad;
} work;

static void *poller(void *arg)
{
    struct urnic_wc wc[4];
    (void)arg;
    while (!atomic_load(&work.stop)) {
        int n = urnic_poll_cq(work.e->cq, 4, wc);
        for (int i = 0; i < n; i++) {
            atomic_fetch_add(&work.bad, wc[i].status != URNIC_WC_SUCCESS);
            atomic_fetch_add(&work.done, 1);
        }
        atomic_fetch_add(&work.bad, n < 0);
    }
    return NULL;
}

static void await_done(uint32_t n)
{
    uint64_t until = port_now() + 60000000000u;
    while (atomic_load(&work.done) < n && port_now() < until)
        port_nap(1);
    ck_assert_uint_eq(atomic_load(&work.done), n);
    ck_assert_uint_eq(atomic_load(&work.bad), 0);
}

static void work_on(struct port_end *e)
{
    work.e = e;
    atomic_store(&work.stop, false);
    atomic_store(&work.done, 0);
    atomic_store(&work.bad, 0);
}

/* A hundred threads poll on a machine of two cores, while others post: each completion comes to one
 * of them. The peer's program polls only where nothing else makes its progress. */
START_TEST(test_hundred)
{
    enum { N = 100, WRITES = 400 };
    struct port_end a, b;
    pthread_t thread[N];
    pair(&a, &b, "hundred", progress[_i]);
    work_on(&b);
    for (unsigned i = 0; i < N; i++)
        OK(pthread_create(&thread[i], NULL, poller, NULL));
    for (unsigned i = 0; i < WRITES; i++) {
        int err;
        while ((err = port_post(&b, URNIC_WR_RDMA_WRITE, 0, 0, 64)) == -ENOMEM) {
            struct urnic_wc wc;
            if (_i == 2)
                (void)urnic_poll_cq(a.cq, 1, &wc);
            sched_yield();
        }
        OK(err);
    }
    for (uint64_t until = port_now() + 60000000000u; _i == 2 && port_now() < until;) {
        struct urnic_wc wc;
        if (atomic_load(&work.done) == WRITES)
            break;
        ck_assert_int_eq(urnic_poll_cq(a.cq, 1, &wc), 0);
    }
    await_done(WRITES);
    atomic_store(&work.stop, true);
    for (unsigned i = 0; i < N; i++)
        OK(pthread_join(thread[i], NULL));
    port_close(&b);
    port_close(&a);
}
END_TEST

/* ---- no thread polls ---- */

static void set_rate(struct port_end *e, uint32_t kbit)
{
    struct urnic_qp_attr attr = {.rate_limit = kbit};
    OK(urnic_modify_qp(e->conn->qp, &attr, URNIC_QP_RATE_LIMIT));
}

/* The event of the next completion, within 20 s, without a call that makes progress. */
static void await_event(struct port_end *e)
{
    struct pollfd p = {.fd = urnic_channel_fd(e->channel), .events = POLLIN};
    struct urnic_cq *cq;
    void *user;
    ck_assert_int_eq(poll(&p, 1, 20000), 1);
    OK(urnic_get_cq_event(e->channel, &cq, &user));
    urnic_ack_cq_events(cq, 1);
}

/* The work that the polling end leaves undone. */
static const struct {
    const char *name, *link, *rule;
    uint32_t kbit;     /* its rate limit */
    unsigned least_ms; /* that the rest takes */
} stops[] = {
    {"losses, with all that follows", ",loss=0.05", NULL, 0, 0},
    {"a paced send", "", NULL, 64000, 15},
    {"an ACK timer", "", "drop write first-tx pos last", 0, 1},
    {"a lost ACK, and the timer", "", "drop ack every 2", 0, 0},
};

/* The link of a row, with its rules in a file that the caller removes. */
static void stop_link(char *link, size_t size, char *rules, unsigned row)
{
    int n = snprintf(link, size, "stops%s", stops[row].link);
    if (!stops[row].rule)
        return;
    int fd = mkstemp(rules);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(dprintf(fd, "%s\n", stops[row].rule), (int)strlen(stops[row].rule) + 1);
    close(fd);
    snprintf(link + n, size - (size_t)n, ",rules=%s", rules);
}

/* Both ends poll for a while, so that the threads of the library get used to that. */
static void poll_both(struct port_end *a, struct port_end *b)
{
    struct urnic_wc wc;
    for (uint64_t until = port_now() + 3000000; port_now() < until;) {
        ck_assert_int_eq(urnic_poll_cq(b->cq, 1, &wc), 0);
        ck_assert_int_eq(urnic_poll_cq(a->cq, 1, &wc), 0);
    }
}

/* A thread that has polled all the time polls no more, although a request is under way, answers are
 * owed or timers run. At both ends the library's own thread goes on, until the completion event
 * tells that the request is done. */
START_TEST(test_stops)
{
    enum { ROWS = sizeof(stops) / sizeof(stops[0]), LEN = SIZE };
    struct port_end a, b;
    char link[128], rules[] = "/tmp/test_port_races.XXXXXX";
    unsigned row = (unsigned)_i % ROWS;
    stop_link(link, sizeof(link), rules, row);
    pair(&a, &b, link, progress[(unsigned)_i / ROWS]);
    set_rate(&b, stops[row].kbit);
    for (uint8_t round = 1; round <= 10; round++) {
        b.mem[LEN - 1] = round;
        poll_both(&a, &b);
        OK(urnic_req_notify_cq(b.cq, false));
        uint64_t start = port_now();
        OK(port_post(&b, URNIC_WR_RDMA_WRITE, 0, 0, LEN));
        await_event(&b);
        ck_assert_msg(port_now() - start >= stops[row].least_ms * (uint64_t)1000000, "%s: %llu ns",
                      stops[row].name, (unsigned long long)(port_now() - start));
        ck_assert_uint_eq(a.mem[LEN - 1], round);
        ck_assert_uint_eq(port_await(&b).status, URNIC_WC_SUCCESS);
    }
    port_close(&b);
    port_close(&a);
    unlink(rules);
}
END_TEST

/* ---- signals, cancellation, priorities ---- */

static struct port_end *polled;
static volatile sig_atomic_t in_handler;

static void on_signal(int sig)
{
    struct urnic_wc wc;
    int saved = errno;
    (void)sig;
    in_handler++;
    errno = EDOM;
    int n = urnic_poll_cq(polled->cq, 1, &wc);
    if (errno != EDOM)
        atomic_fetch_add(&work.bad, 1);
    errno = saved;
    if (n == 1 && wc.status == URNIC_WC_SUCCESS)
        atomic_fetch_add(&work.done, 1);
    else if (n != 0)
        atomic_fetch_add(&work.bad, 1);
}

static void *shoot(void *arg)
{
    pthread_t *at = arg;
    while (!atomic_load(&work.stop)) {
        pthread_kill(*at, SIGUSR1);
        port_nap(1);
    }
    return NULL;
}

/* A signal handler polls, whatever its thread is doing: polls, posts, makes objects. */
START_TEST(test_handler)
{
    enum { WRITES = 300 };
    struct port_end a, b;
    struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    pthread_t self = pthread_self(), shooter;
    struct urnic_wc wc;
    pair(&a, &b, "handler", progress[_i]);
    work_on(&b);
    polled = &b;
    OK(sigaction(SIGUSR1, &sa, NULL));
    OK(pthread_create(&shooter, NULL, shoot, &self));
    uint64_t until = port_now() + 60000000000u;
    unsigned i = 0;
    for (; i < WRITES || (in_handler < 100 && port_now() < until); i++) {
        struct urnic_mr *mr;
        OK(urnic_reg_mr(b.pd, b.mem, 64, 0, &mr));
        OK(port_post(&b, URNIC_WR_RDMA_WRITE, 0, 0, 64));
        OK(urnic_dereg_mr(mr));
        while (atomic_load(&work.done) < i + 1 && port_now() < until) {
            int n = urnic_poll_cq(b.cq, 1, &wc);
            if (n == 1)
                atomic_fetch_add(&work.done, 1);
            ck_assert_int_ge(n, 0);
            if (_i == 2)
                ck_assert_int_eq(urnic_poll_cq(a.cq, 1, &wc), 0);
        }
    }
    atomic_store(&work.stop, true);
    OK(pthread_join(shooter, NULL));
    ck_assert_uint_eq(atomic_load(&work.done), i);
    ck_assert_uint_eq(atomic_load(&work.bad), 0);
    ck_assert_int_ge(in_handler, 100);
    signal(SIGUSR1, SIG_IGN);
    port_close(&b);
    port_close(&a);
}
END_TEST

/* Polls and posts until it is cancelled, at any moment where that is possible. */
static void *victim(void *arg)
{
    struct port_end *e = arg;
    struct urnic_wc wc;
    for (;;) {
        struct urnic_mr *mr;
        (void)port_post(e, URNIC_WR_RDMA_WRITE, 0, 0, 64);
        if (urnic_poll_cq(e->cq, 1, &wc) == 1)
            atomic_fetch_add(&work.done, 1);
        if (urnic_reg_mr(e->pd, e->mem, 64, 0, &mr) == 0)
            urnic_dereg_mr(mr);
        pthread_testcancel();
    }
    return NULL;
}

START_TEST(test_cancel)
{
    struct port_end a, b;
    pair(&a, &b, "cancel", progress[_i]);
    work_on(&b);
    for (unsigned i = 0; i < 30; i++) {
        pthread_t thread;
        OK(pthread_create(&thread, NULL, victim, &b));
        port_nap(i % 4);
        OK(pthread_cancel(thread));
        OK(pthread_join(thread, NULL));
    }
    /* Nothing is locked. */
    struct urnic_cq *cq;
    struct urnic_wc wc;
    for (uint64_t until = port_now() + 300000000u; port_now() < until;) {
        ck_assert_int_ge(urnic_poll_cq(b.cq, 1, &wc), 0);
        ck_assert_int_ge(urnic_poll_cq(a.cq, 1, &wc), 0);
    }
    OK(urnic_create_cq(b.ctx, 4, NULL, NULL, &cq));
    OK(urnic_destroy_cq(cq));
    OK(port_post(&b, URNIC_WR_RDMA_WRITE, 0, 0, 64));
    atomic_store(&work.stop, true);
    urnic_close_conn(b.conn);
    b.conn = NULL;
    port_close(&b);
    port_close(&a);
}
END_TEST

static void on_core(unsigned core, bool only)
{
    cpu_set_t set;
    long n = sysconf(_SC_NPROCESSORS_CONF);
    CPU_ZERO(&set);
    for (unsigned i = 0; i < (unsigned)n; i++) {
        if ((i == core) == only || n == 1)
            CPU_SET(i, &set);
    }
    OK(sched_setaffinity(0, sizeof(set), &set));
}

static void *normal_poller(void *arg)
{
    on_core(0, true);
    return poller(arg);
}

static void *high_poller(void *arg)
{
    const struct sched_param high = {.sched_priority = 10};
    on_core(0, true);
    if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &high) != 0)
        fprintf(stderr, "SCHED_FIFO is not permitted here: the poller is a normal thread\n");
    return poller(arg);
}

/* A thread of the highest priority polls beside a normal one on the same core, which may be in the
 * middle of a round: it lets it finish. */
START_TEST(test_fifo)
{
    struct port_end a, b;
    pthread_t normal, high;
    on_core(0, false);
    pair(&a, &b, "fifo", progress[_i]);
    work_on(&b);
    OK(pthread_create(&normal, NULL, normal_poller, NULL));
    port_nap(5);
    OK(pthread_create(&high, NULL, high_poller, NULL));
    for (unsigned i = 0; i < 50; i++) {
        OK(port_post(&b, URNIC_WR_RDMA_WRITE, 0, 0, 4096));
        uint64_t until = port_now() + 20000000000u;
        while (atomic_load(&work.done) < i + 1 && port_now() < until) {
            struct urnic_wc wc;
            if (_i == 2)
                (void)urnic_poll_cq(a.cq, 1, &wc);
            else
                port_nap(0);
        }
        ck_assert_uint_eq(atomic_load(&work.bad), 0);
        ck_assert_uint_eq(atomic_load(&work.done), i + 1);
    }
    atomic_store(&work.stop, true);
    OK(pthread_join(high, NULL));
    OK(pthread_join(normal, NULL));
    port_close(&b);
    port_close(&a);
}
END_TEST

/* ---- hooks ---- */

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

/* As UCX does: the program replaces functions of libc by its own, which take a lock. */
static pthread_mutex_t hook_lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local bool hooked __attribute__((tls_model("initial-exec")));
static _Atomic uint32_t hooks;

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void __libc_free(void *p);

static void hook(void)
{
    if (!hooked)
        return;
    atomic_fetch_add(&hooks, 1);
    pthread_mutex_lock(&hook_lock);
    pthread_mutex_unlock(&hook_lock);
}

void *malloc(size_t size)
{
    hook();
    return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    hook();
    return __libc_calloc(n, size);
}

void free(void *p)
{
    hook();
    __libc_free(p);
}

void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
    hook();
    return (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, off);
}

int munmap(void *addr, size_t len)
{
    hook();
    return (int)syscall(SYS_munmap, addr, len);
}

/* A signal comes when the engine reads the clock, in the middle of a poll of this thread. */
enum moment { NEVER, NEXT_READING, IN_HANDLER };
static _Thread_local volatile enum moment moment __attribute__((tls_model("initial-exec")));
static _Atomic uint32_t readings; /* by the handler's poll */
static int (*real_clock)(clockid_t id, struct timespec *ts);

__attribute__((constructor)) static void find_clock(void)
{
    *(void **)&real_clock = dlsym(RTLD_NEXT, "clock_gettime");
}

int clock_gettime(clockid_t id, struct timespec *ts)
{
    if (moment == IN_HANDLER)
        atomic_fetch_add(&readings, 1);
    if (moment == NEXT_READING) {
        moment = IN_HANDLER;
        raise(SIGUSR1);
        moment = NEVER;
    }
    return real_clock ? real_clock(id, ts) : (int)syscall(SYS_clock_gettime, id, ts);
}

/* A signal handler that has interrupted a poll of its thread polls: that returns 0, and does not
 * enter the engine. */
START_TEST(test_handler_inside)
{
    enum { TIMES = 50 };
    struct port_end a, b;
    struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    struct urnic_wc wc;
    pair(&a, &b, "inside", progress[_i * 2]);
    work_on(&b);
    polled = &b;
    OK(sigaction(SIGUSR1, &sa, NULL));
    for (int i = 1; i <= TIMES; i++) {
        moment = NEXT_READING;
        ck_assert_int_eq(urnic_poll_cq(b.cq, 1, &wc), 0);
        ck_assert_int_eq(moment, NEVER);
        ck_assert_int_eq(in_handler, i);
    }
    ck_assert_uint_eq(atomic_load(&readings), 0);
    ck_assert_uint_eq(atomic_load(&work.bad), 0);
    ck_assert_uint_eq(atomic_load(&work.done), 0);
    port_close(&b);
    port_close(&a);
}
END_TEST

/* A thread that writes to standard error is stuck until this is cleared, 10 s at most. */
static _Atomic bool stuck, inside;

ssize_t write(int fd, const void *octets, size_t n)
{
    if (fd == STDERR_FILENO && atomic_load(&stuck)) {
        atomic_store(&inside, true);
        for (uint64_t until = port_now() + 10000000000u; atomic_load(&stuck);) {
            if (port_now() > until)
                return -1;
            port_nap(1);
        }
    }
    return syscall(SYS_write, fd, octets, n);
}

static void *make_bad(void *arg)
{
    struct port_end *e = arg;
    struct urnic_qp *qp;
    struct urnic_qp_init_attr attr = {.send_cq = e->cq,
                                      .recv_cq = e->cq,
                                      .qp_type = URNIC_QPT_RC,
                                      .cap = {.max_send_wr = 1, .max_recv_wr = 1},
                                      .cc = "nonsense"};
    ck_assert_int_eq(urnic_create_qp(e->pd, &attr, &qp), -EINVAL);
    return NULL;
}

/* A request writes a line to the log, and that takes for ever: others make progress meanwhile. */
START_TEST(test_stuck_log)
{
    struct port_end a, b;
    struct urnic_wc wc;
    pthread_t thread;
    pair(&a, &b, "stuck", _i == 0 ? "poll,log-level=warn" : "auto,log-level=warn");
    atomic_store(&stuck, true);
    OK(pthread_create(&thread, NULL, make_bad, &b));
    for (uint64_t until = port_now() + 10000000000u; !atomic_load(&inside);) {
        ck_assert_uint_lt(port_now(), until);
        port_nap(1);
    }
    OK(port_post(&b, URNIC_WR_RDMA_WRITE, 0, 0, 4096));
    uint64_t until = port_now() + 5000000000u;
    int n;
    while ((n = urnic_poll_cq(b.cq, 1, &wc)) == 0 && port_now() < until)
        ck_assert_int_eq(urnic_poll_cq(a.cq, 1, &wc), 0);
    atomic_store(&stuck, false);
    ck_assert_int_eq(n, 1);
    OK(pthread_join(thread, NULL));
    port_close(&b);
    port_close(&a);
}
END_TEST

static void *hooked_poller(void *arg)
{
    hooked = true;
    void *end = poller(arg);
    hooked = false;
    return end;
}

/* A thread registers memory while it has the lock of its hooks, and another one polls: its rounds,
 * in which queue pairs and regions come and go by jobs, call none of the hooked functions. */
START_TEST(test_hooks)
{
    struct port_end a, b;
    pthread_t thread;
    pair(&a, &b, "hooks", "poll");
    work_on(&b);
    OK(pthread_create(&thread, NULL, hooked_poller, NULL));
    for (unsigned i = 0; i < 200; i++) {
        struct urnic_mr *mr;
        struct urnic_cq *cq;
        struct urnic_wc wc;
        OK(port_post(&b, URNIC_WR_RDMA_WRITE, 0, 0, 4096));
        pthread_mutex_lock(&hook_lock);
        OK(urnic_reg_mr(b.pd, b.mem, 4096, PORT_ALL, &mr));
        OK(urnic_create_cq(b.ctx, 1000, NULL, NULL, &cq));
        OK(urnic_destroy_cq(cq));
        OK(urnic_dereg_mr(mr));
        pthread_mutex_unlock(&hook_lock);
        while (atomic_load(&work.done) < i + 1)
            ck_assert_int_eq(urnic_poll_cq(a.cq, 1, &wc), 0);
    }
    atomic_store(&work.stop, true);
    OK(pthread_join(thread, NULL));
    ck_assert_uint_eq(atomic_load(&work.bad), 0);
    ck_assert_uint_eq(atomic_load(&hooks), 0);
    port_close(&b);
    port_close(&a);
}
END_TEST

#endif

/* ---- all at once ---- */

struct poster {
    struct port_end *e;
    unsigned posted;
};

static void *post(void *arg)
{
    struct poster *p = arg;
    while (p->posted < 200) {
        int err = port_post(p->e, URNIC_WR_RDMA_WRITE, 0, 0, 256);
        if (err == 0)
            p->posted++;
        else
            sched_yield();
    }
    return NULL;
}

static void *make(void *arg)
{
    struct port_end *e = arg;
    while (!atomic_load(&work.stop)) {
        struct urnic_cq *cq;
        struct urnic_channel *channel;
        OK(urnic_create_channel(e->ctx, &channel));
        OK(urnic_create_cq(e->ctx, 16, NULL, channel, &cq));
        OK(urnic_req_notify_cq(cq, false));
        OK(urnic_destroy_cq(cq));
        OK(urnic_destroy_channel(channel));
    }
    return NULL;
}

/* Threads post, poll and make objects at the same time, on both ends. */
START_TEST(test_all)
{
    struct port_end a, b;
    struct poster p[3];
    pthread_t posters[3], pollers[3], maker[2];
    pair(&a, &b, "all", progress[_i]);
    work_on(&b);
    for (unsigned i = 0; i < 3; i++) {
        p[i] = (struct poster){.e = &b};
        OK(pthread_create(&pollers[i], NULL, poller, NULL));
        OK(pthread_create(&posters[i], NULL, post, &p[i]));
    }
    OK(pthread_create(&maker[0], NULL, make, &a));
    OK(pthread_create(&maker[1], NULL, make, &b));
    for (uint64_t until = port_now() + 60000000000u;
         atomic_load(&work.done) < 600 && port_now() < until;) {
        struct urnic_wc wc;
        ck_assert_int_eq(urnic_poll_cq(a.cq, 1, &wc), 0);
        sched_yield();
    }
    await_done(600);
    for (unsigned i = 0; i < 3; i++)
        OK(pthread_join(posters[i], NULL));
    atomic_store(&work.stop, true);
    for (unsigned i = 0; i < 3; i++)
        OK(pthread_join(pollers[i], NULL));
    for (unsigned i = 0; i < 2; i++)
        OK(pthread_join(maker[i], NULL));
    port_close(&b);
    port_close(&a);
}
END_TEST

/* ---- slow system calls ---- */

static _Atomic unsigned stats, stat_us;

/* In the place of libc's, by which the library looks whether the program has closed its
 * descriptors. */
int fstat(int fd, struct stat *st)
{
    const unsigned us = atomic_load(&stat_us);
    const uint64_t until = port_now() + us * 1000u;
    atomic_fetch_add(&stats, 1);
    while (us && port_now() < until)
        ;
    return (int)syscall(SYS_fstat, fd, st);
}

/* SHM-16: looks at the descriptors, every 5 ms, come less often where they would take more than a
 * hundredth of the time: every 50 ms here. One look is 5 to 7 calls; every 5 ms they would be 800
 * in a second. */
START_TEST(test_slow_looks)
{
    struct port_end a, b;
    struct urnic_wc wc;
    pair(&a, &b, "slow", progress[_i * 2]); /* not "thread", whose thread sleeps */
    atomic_store(&stat_us, 200);
    atomic_store(&stats, 0);
    for (uint64_t until = port_now() + 1000000000u; port_now() < until;)
        ck_assert_int_eq(urnic_poll_cq(b.cq, 1, &wc), 0);
    const unsigned n = atomic_load(&stats);
    atomic_store(&stat_us, 0);
    ck_assert_msg(n > 0 && n <= 250, "%u calls of fstat", n);
    port_close(&b);
    port_close(&a);
}
END_TEST

int main(void)
{
    const struct port_test tests[] = {
        {"hundred", test_hundred, 3},
        /* With progress=poll there is no progress then. */
        {"stops", test_stops, (int)(sizeof(stops) / sizeof(stops[0])) * 2},
        {"handler", test_handler, 3},
        {"cancel", test_cancel, 3},
        {"fifo", test_fifo, 3},
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
        {"hooks", test_hooks, 1},
        {"handler_inside", test_handler_inside, 2},
        {"stuck_log", test_stuck_log, 2},
        {"slow_looks", test_slow_looks, 2},
#endif
        {"all", test_all, 3},
    };
    return port_run("port races", tests, sizeof(tests) / sizeof(tests[0]));
}
