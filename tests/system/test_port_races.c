/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Who makes progress on a port of a program's own: threads that poll, the library's thread when
 * none does, and all of them at once.
 */
#include "port_rig.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define SIZE ((size_t)64 << 10)

/* Each test runs with this. */
static const char *const progress[] = {"auto", "thread", "poll"};

static void pair(struct port_end *a, struct port_end *b, const char *link, const char *how)
{
    char spec[128];
    snprintf(spec, sizeof(spec), "mem:%s,addr=10.0.0.1/24,progress=%s", link, how);
    port_open(a, spec, SIZE);
    snprintf(spec, sizeof(spec), "mem:%s,addr=10.0.0.2/24,progress=%s", link, how);
    port_open(b, spec, SIZE);
}

static void *accept_thread(void *e)
{
    port_accept(e);
    return NULL;
}

static void join(struct port_end *a, struct port_end *b)
{
    pthread_t thread;
    port_listen(a);
    OK(pthread_create(&thread, NULL, accept_thread, a));
    port_connect(b, "10.0.0.1");
    OK(pthread_join(thread, NULL));
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
    join(&a, &b);
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

/* ---- nobody polls ---- */

/* Who has polled all the time stops with requests under way, answers owed and timers running: the
 * library's thread goes on. A link that loses frames has all of these. */
START_TEST(test_stops)
{
    struct port_end a, b;
    struct urnic_wc wc;
    char spec[128];
    snprintf(spec, sizeof(spec), "mem:stops,loss=0.05,addr=10.0.0.1/24,progress=%s", progress[_i]);
    port_open(&a, spec, SIZE);
    snprintf(spec, sizeof(spec), "mem:stops,addr=10.0.0.2/24,progress=%s", progress[_i]);
    port_open(&b, spec, SIZE);
    join(&a, &b);
    for (uint8_t round = 1; round <= 10; round++) {
        uint64_t until = port_now() + 3000000;
        b.mem[0] = round;
        while (port_now() < until) { /* both threads get used to our polling */
            ck_assert_int_eq(urnic_poll_cq(b.cq, 1, &wc), 0);
            ck_assert_int_eq(urnic_poll_cq(a.cq, 1, &wc), 0);
        }
        for (unsigned i = 0; i < 8; i++)
            OK(port_post(&b, URNIC_WR_RDMA_WRITE, 0, 8 * i, 4096));
        until = port_now() + 20000000000u;
        while (__atomic_load_n(&a.mem[56], __ATOMIC_ACQUIRE) != round && port_now() < until)
            port_nap(1);
        ck_assert_uint_eq(a.mem[56], round);
        for (unsigned i = 0; i < 8; i++)
            ck_assert_uint_eq(port_await(&b).status, URNIC_WC_SUCCESS);
    }
    port_close(&b);
    port_close(&a);
}
END_TEST

/* ---- signals, cancellation, priorities ---- */

static struct port_end *polled;
static volatile sig_atomic_t in_handler;

static void on_signal(int sig)
{
    struct urnic_wc wc;
    (void)sig;
    in_handler++;
    int n = urnic_poll_cq(polled->cq, 1, &wc);
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
    join(&a, &b);
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
    join(&a, &b);
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
    join(&a, &b);
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

/* What UCX does: functions of the program's own in the place of libc's, which take a lock. */
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
    join(&a, &b);
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
    join(&a, &b);
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

static void add(Suite *s, const char *name, const TTest *test, int n)
{
    TCase *tc = tcase_create(name);
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, test, 0, n);
    suite_add_tcase(s, tc);
}

int main(void)
{
    Suite *s = suite_create("port races");
    add(s, "hundred", test_hundred, 3);
    add(s, "stops", test_stops, 2); /* with progress=poll nothing goes on then */
    add(s, "handler", test_handler, 3);
    add(s, "cancel", test_cancel, 3);
    add(s, "fifo", test_fifo, 3);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    add(s, "hooks", test_hooks, 1);
#endif
    add(s, "all", test_all, 3);
    return unit_run(s);
}
