/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Control requests of several threads, some of which are answered late.
 */
#include "client_conn.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fake_daemon.h"
#include "unit.h"

#define OK(call) ck_assert_int_eq((call), 0)
#define THREADS  6u
#define ROUNDS   500u

static struct fake *fake;
static struct client_conn conn;

static void up(void)
{
    struct ipc_ctx_open req = {.hdr.type = IPC_CTX_OPEN, .worker = -1, .device = "urn0"};
    struct ipc_ctx_opened reply;
    int fds[IPC_FD_MAX];
    unsigned nfds = IPC_FD_MAX;
    fake = fake_start();
    OK(client_conn_open(&conn, NULL));
    OK(client_conn_call(&conn, &req, sizeof(req), &reply, sizeof(reply), fds, &nfds));
    while (nfds > 0)
        close(fds[--nfds]);
}

static void down(void)
{
    client_conn_close(&conn);
    fake_stop(fake);
}

/* A request that the fake daemon answers late on demand; the answer repeats its contents. */
struct asker {
    pthread_t thread;
    uint8_t about;
    int result;
    uint8_t got;
    _Atomic bool done;
};

static void *ask(void *arg)
{
    struct asker *a = arg;
    struct ipc_av_resolve req = {.hdr.type = IPC_AV_RESOLVE, .av.dgid = {0xfd, a->about}};
    struct ipc_av_resolve reply = {0};
    a->result = client_conn_call(&conn, &req, sizeof(req), &reply, sizeof(reply), NULL, NULL);
    a->got = reply.av.dgid[1];
    atomic_store(&a->done, true);
    return NULL;
}

static void start_asking(struct asker *a, unsigned n)
{
    atomic_store(&fake_knobs(fake)->late, IPC_AV_RESOLVE);
    for (unsigned i = 0; i < n; i++) {
        a[i] = (struct asker){.about = (uint8_t)(i + 1)};
        ck_assert_int_eq(pthread_create(&a[i].thread, NULL, ask, &a[i]), 0);
    }
    while (atomic_load(&fake_knobs(fake)->kept) < n)
        sched_yield();
}

static int make_domain(void)
{
    struct ipc_hdr req = {.type = IPC_PD_ALLOC};
    struct ipc_handle reply;
    int rc = client_conn_call(&conn, &req, sizeof(req), &reply, sizeof(reply), NULL, NULL);
    return rc < 0 ? rc : client_conn_handle(&conn, IPC_PD_FREE, reply.handle);
}

START_TEST(shm_08_a_late_answer_holds_up_nobody)
{
    /* SHM-08 a call that waits for a neighbour doesn't delay another thread's call */
    struct asker a;

    up();
    start_asking(&a, 1);
    for (unsigned i = 0; i < ROUNDS; i++)
        OK(make_domain());
    ck_assert(!atomic_load(&a.done));
    atomic_store(&fake_knobs(fake)->late, 0);
    pthread_join(a.thread, NULL);
    OK(a.result);
    ck_assert_uint_eq(a.got, a.about);
    down();
}
END_TEST

START_TEST(shm_08_answers_in_any_order)
{
    /* SHM-08 the last call is answered first; each call gets its own answer */
    struct asker a[THREADS];

    up();
    start_asking(a, THREADS);
    atomic_store(&fake_knobs(fake)->late, 0);
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(a[i].thread, NULL);
        OK(a[i].result);
        ck_assert_uint_eq(a[i].got, a[i].about);
    }
    OK(make_domain());
    down();
}
END_TEST

START_TEST(evt_01_all_who_wait_hear_of_the_end)
{
    /* EVT-01 a dead daemon answers no call any more */
    struct asker a[THREADS];

    up();
    start_asking(a, THREADS);
    atomic_store(&fake_knobs(fake)->kill, true);
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(a[i].thread, NULL);
        ck_assert_int_eq(a[i].result, -ENODEV);
    }
    ck_assert_int_eq(make_domain(), -ENODEV);
    down();
}
END_TEST

struct maker {
    pthread_t thread;
    const char *failure; /* NULL = none */
};

/* Channels come with descriptors, each for its own receiver. */
static const char *make_channel(void)
{
    struct ipc_hdr req = {.type = IPC_CHANNEL_CREATE};
    struct ipc_handle reply;
    struct stat st;
    int fd = -1;
    unsigned nfds = 1;
    if (client_conn_call(&conn, &req, sizeof(req), &reply, sizeof(reply), &fd, &nfds) < 0)
        return "no channel";
    if (nfds != 1 || fstat(fd, &st) < 0 || !S_ISSOCK(st.st_mode))
        return "no descriptor";
    close(fd);
    if (client_conn_handle(&conn, IPC_CHANNEL_DESTROY, reply.handle) < 0)
        return "not destroyed";
    if (client_conn_handle(&conn, IPC_PD_FREE, 63) != -EINVAL)
        return "a wrong handle is taken";
    return make_domain() < 0 ? "no domain" : NULL;
}

static void *make_channels(void *arg)
{
    struct maker *m = arg;
    for (unsigned i = 0; i < ROUNDS && m->failure == NULL; i++)
        m->failure = make_channel();
    return NULL;
}

START_TEST(shm_08_many_threads)
{
    /* SHM-08 one thread waits for a late answer all the time; the others hand receiving on to each
     * other */
    struct asker a;
    struct maker maker[THREADS] = {0};

    up();
    start_asking(&a, 1);
    for (unsigned i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&maker[i].thread, NULL, make_channels, &maker[i]), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(maker[i].thread, NULL);
        ck_assert_msg(maker[i].failure == NULL, "%s", maker[i].failure);
    }
    atomic_store(&fake_knobs(fake)->late, 0);
    pthread_join(a.thread, NULL);
    OK(a.result);
    down();
}
END_TEST

UNIT_MAIN("client conn", shm_08_a_late_answer_holds_up_nobody, shm_08_answers_in_any_order,
          evt_01_all_who_wait_hear_of_the_end, shm_08_many_threads)
