/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Devices, memory, events; daemons that differ, daemons that die; forks.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "client.h"
#include "client_setup.h"
#include "unit.h"

static bool readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

START_TEST(shm_07_no_daemon)
{
    /* SHM-07 no daemon: an empty list, never a block */
    struct urnic_device *list;
    struct urnic_context *ctx;
    int n = 5;
    setenv("URNIC_SOCKET", "/nonexistent/socket", 1);
    OK(urnic_get_device_list(&list, &n));
    ck_assert_int_eq(n, 0);
    ck_assert_int_eq(urnic_open(NULL, &ctx), -ENODEV);
}
END_TEST

static suseconds_t patience_us; /* 0 = the library's own */

/* Replaces libc's: the library's minute would make a long test. */
int setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
    const struct timeval soon = {.tv_usec = patience_us}, *asked = value;
    if (patience_us && level == SOL_SOCKET && (name == SO_RCVTIMEO || name == SO_SNDTIMEO) &&
        asked->tv_sec > 0)
        value = &soon;
    return (int)syscall(SYS_setsockopt, fd, level, name, value, len);
}

static void on_alarm(int sig)
{
    (void)sig;
}

/* Start signals, more frequent than the library's time limit; or stop them. */
static void signals(bool on)
{
    const struct sigaction act = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    struct itimerval often = {0};
    if (on)
        often.it_value.tv_usec = often.it_interval.tv_usec = 30000;
    sigaction(SIGALRM, &act, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
}

/* The results of calls that open a connection, in a process that gets signals. */
static void nobody_serves(void)
{
    struct urnic_context *ctx;
    struct urnic_device *list;
    int n = 5;
    signals(true);
    ck_assert_int_eq(urnic_open(NULL, &ctx), -ENODEV);
    OK(urnic_get_device_list(&list, &n));
    signals(false);
    OK(n);
    ck_assert_ptr_null(list);
}

START_TEST(shm_07_silent_from_the_beginning)
{
    /* SHM-07 a daemon that doesn't answer counts as gone, whether it accepts another connection or
     * not */
    char path[] = "/tmp/test_client_life.XXXXXX";
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    ck_assert_ptr_nonnull(mkdtemp(path));
    snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/socket", path);
    OK(bind(sock, (struct sockaddr *)&sa, sizeof(sa)));
    setenv(IPC_SOCKET_ENV, sa.sun_path, 1);
    patience_us = 100000;
    OK(listen(sock, 8));
    nobody_serves();
    OK(listen(sock, 0)); /* more connections wait already */
    nobody_serves();
    patience_us = 0;
    close(sock);
    unlink(sa.sun_path);
    rmdir(path);
}
END_TEST

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

START_TEST(shm_07_signals_give_no_time)
{
    /* SHM-07 a caller that is interrupted near the end of its wait waits for the rest */
    const struct itimerval late = {.it_value.tv_usec = 700000};
    char path[] = "/tmp/test_client_life.XXXXXX";
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    struct urnic_context *ctx;
    int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    int first = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    ck_assert_ptr_nonnull(mkdtemp(path));
    snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/socket", path);
    OK(bind(sock, (struct sockaddr *)&sa, sizeof(sa)));
    OK(listen(sock, 0));
    OK(connect(first, (struct sockaddr *)&sa, sizeof(sa)));
    setenv(IPC_SOCKET_ENV, sa.sun_path, 1);
    patience_us = 900000;
    signals(false);
    int64_t begin = now_ms();
    setitimer(ITIMER_REAL, &late, NULL);
    ck_assert_int_eq(urnic_open(NULL, &ctx), -ENODEV);
    int64_t took = now_ms() - begin;
    ck_assert_int_ge(took, 850);
    ck_assert_int_lt(took, 1500);
    patience_us = 0;
    close(first);
    close(sock);
    unlink(sa.sun_path);
    rmdir(path);
}
END_TEST

START_TEST(shm_09_devices_and_memory)
{
    struct fake *fake = fake_start();
    struct urnic_device *list;
    struct urnic_context *ctx;
    struct urnic_pd *pd;
    struct urnic_mr *mr;
    struct urnic_device_attr attr;
    struct urnic_port_attr port;
    struct urnic_gid gid;
    void *mem;
    int n, heap;
    OK(urnic_get_device_list(&list, &n));
    ck_assert_int_eq(n, 1);
    ck_assert_str_eq(list[0].name, "urn0");
    OK(urnic_open(list[0].name, &ctx));
    urnic_free_device_list(list);
    OK(urnic_query_device(ctx, &attr));
    ck_assert_uint_eq(attr.max_cqe, 1 << 18);
    OK(urnic_query_port(ctx, &port));
    ck_assert_int_eq(port.active_mtu, URNIC_MTU_4096);
    ck_assert_uint_eq(port.bad_pkey_cntr, 7);
    ck_assert_uint_eq(port.qkey_viol_cntr, 0xFFFF);
    ck_assert_uint_eq(port.dscp, 26);
    OK(urnic_query_gid(ctx, 3, &gid));
    ck_assert_uint_eq(gid.raw[0], 0xfd);
    ck_assert_int_eq(urnic_query_gid(ctx, 2, &gid), -ENOENT);

    OK(urnic_alloc_pd(ctx, &pd));
    ck_assert_int_eq(urnic_close(ctx), -EBUSY);
    OK(urnic_alloc(ctx, 5000, &mem));
    /* MR-12 existing memory can be registered if the daemon can map it */
    ck_assert_int_eq(urnic_reg_mr(pd, &heap, sizeof(heap), 0, &mr), -EOPNOTSUPP);
    ck_assert_int_eq(urnic_reg_mr(pd, NULL, 9000, 0, &mr), -EFAULT);
    ck_assert_int_eq(urnic_free(ctx, (char *)mem + 8), -EINVAL);
    ck_assert_int_eq(urnic_alloc_mr(pd, mem, 4096, 1, &mr), -EOPNOTSUPP); /* this daemon can't */
    OK(urnic_reg_mr(pd, (char *)mem + 100, 4000, URNIC_ACCESS_LOCAL_WRITE, &mr));
    ck_assert_ptr_eq(mr->addr, (char *)mem + 100);
    ck_assert_uint_eq(mr->iova, (uintptr_t)mem + 100);
    OK(urnic_dereg_mr(mr));
    OK(urnic_free(ctx, mem));
    int fd = memfd_create("mine", MFD_CLOEXEC);
    OK(urnic_reg_mr_fd(pd, fd, 0, 4096, 0x1000, URNIC_ACCESS_REMOTE_READ, &mr));
    close(fd);
    OK(urnic_dereg_mr(mr));
    ck_assert_int_eq(urnic_reg_mr_fd(pd, -1, 0, 4096, 0, 0, &mr), -EBADF);
    OK(urnic_dealloc_pd(pd));
    OK(urnic_close(ctx));
    fake_stop(fake);
}
END_TEST

START_TEST(shm_01_newer_daemon)
{
    /* SHM-01 replies that a newer daemon has made longer are understood */
    struct fake *fake = fake_start();
    atomic_store(&fake_knobs(fake)->newer, 24);
    struct urnic_context *ctx;
    struct urnic_pd *pd;
    OK(urnic_open("urn0", &ctx));
    OK(urnic_alloc_pd(ctx, &pd));
    OK(urnic_dealloc_pd(pd));
    OK(urnic_close(ctx));
    fake_stop(fake);
}
END_TEST

START_TEST(cq_06_events)
{
    /* CQ-06 arm, event, acknowledge; solicited only; non-blocking */
    struct setup s = setup_start(8);
    struct urnic_cq *cq = NULL;
    struct urnic_wc wc[2];
    void *user;
    struct urnic_recv_wr recv = {0};
    struct urnic_send_wr send = {.opcode = URNIC_WR_SEND};
    fcntl(urnic_channel_fd(s.channel), F_SETFL, O_NONBLOCK);
    ck_assert_int_eq(urnic_get_cq_event(s.channel, &cq, &user), -EAGAIN);
    fcntl(urnic_channel_fd(s.channel), F_SETFL, 0);
    OK(urnic_req_notify_cq(s.cq, true));
    for (int i = 0; i < 2; i++)
        OK(urnic_post_recv(s.qp, &recv, NULL));
    OK(urnic_post_send(s.qp, &send, NULL));
    poll_n(s.cq, wc, 1);
    ck_assert(!readable(urnic_channel_fd(s.channel)));
    send.send_flags = URNIC_SEND_SOLICITED;
    OK(urnic_post_send(s.qp, &send, NULL));
    OK(urnic_get_cq_event(s.channel, &cq, &user));
    ck_assert_ptr_eq(cq, s.cq);
    ck_assert_ptr_eq(user, urnic_cq_context(cq));
    poll_n(s.cq, wc, 1);
    urnic_ack_cq_events(cq, 1);
    setup_end(&s);
}
END_TEST

START_TEST(shm_01_daemon_lies)
{
    /* SHM-01 a queue at an impossible place in the daemon's answer is refused, and nothing remains
     * of it */
    struct setup s = setup_start(8);
    struct urnic_cq *cq;
    for (unsigned lie = FAKE_TRUE + 1; lie < FAKE_LIES; lie++) {
        atomic_store(&fake_knobs(s.fake)->lie, lie);
        ck_assert_msg(urnic_create_cq(s.ctx, 4, NULL, NULL, &cq) == -ENOMEM, "lie %u", lie);
    }
    ck_assert_uint_eq(s.ctx->refs.used, 3); /* of a CQ, a QP, and all of these by turns */
    OK(urnic_create_cq(s.ctx, 4, NULL, NULL, &cq));
    OK(urnic_destroy_cq(cq));
    setup_end(&s);
}
END_TEST

START_TEST(shm_01_older_daemon)
{
    /* SHM-01 a request that an older daemon doesn't know is refused, and not sent */
    struct setup s = setup_start(8);
    struct urnic_cm_channel *ch;
    struct urnic_cm_id *id;
    struct urnic_mr *mr;
    OK(urnic_create_cm_channel(s.ctx, &ch));
    OK(urnic_create_id(ch, URNIC_PS_TCP, NULL, &id));
    s.ctx->conn.features = 0;
    ck_assert_int_eq(urnic_connect(id, &(struct urnic_conn_param){.tclass = 1}), -EOPNOTSUPP);
    ck_assert_int_eq(urnic_connect(id, &(struct urnic_conn_param){.sl = 1}), -EOPNOTSUPP);
    ck_assert_int_eq(urnic_alloc_mr(s.pd, s.mem, 4096, 1, &mr), -EOPNOTSUPP);
    OK(urnic_destroy_id(id));
    OK(urnic_destroy_cm_channel(ch));
    ck_assert_int_eq(urnic_create_cm_channel(s.ctx, &ch), -ENOTSUP);
    setup_end(&s);
}
END_TEST

/* Acknowledges events after a while. */
struct later {
    struct urnic_async_event ev;
    struct urnic_cq *cq; /* the event to acknowledge, if not NULL */
    _Atomic bool done;
};

static void *ack_later(void *arg)
{
    struct later *l = arg;
    usleep(100000);
    atomic_store(&l->done, true);
    if (l->cq != NULL)
        urnic_ack_cq_events(l->cq, 1);
    else
        urnic_ack_async_event(&l->ev);
    return NULL;
}

START_TEST(evt_03_destroy_waits_for_acknowledgement)
{
    /* EVT-03, EVT-02 */
    struct setup s = setup_start(8);
    struct later l = {0};
    struct urnic_qp *qp = setup_qp(&s, NULL, 8, 64);
    pthread_t t;
    atomic_store(&fake_knobs(s.fake)->async, 1 + URNIC_EVENT_QP_ACCESS_ERR);
    OK(urnic_get_async_event(s.ctx, &l.ev));
    ck_assert_int_eq(l.ev.type, URNIC_EVENT_QP_ACCESS_ERR);
    ck_assert_ptr_eq(l.ev.qp, qp);
    pthread_create(&t, NULL, ack_later, &l);
    OK(urnic_destroy_qp(qp));
    ck_assert(atomic_load(&l.done));
    pthread_join(t, NULL);
    setup_end(&s);
}
END_TEST

/* An event of the newest queue pair is in the socket when this returns. */
static void send_event(const struct setup *s, unsigned event)
{
    atomic_store(&fake_knobs(s->fake)->async, 1 + event);
    while (atomic_load(&fake_knobs(s->fake)->async) != 0)
        usleep(1000);
}

START_TEST(evt_03_unread_events_go_with_their_object)
{
    /* EVT-03 destroying an object takes its events away, so its descriptor is not readable for
     * them: else the reader would wait for the next event */
    struct setup s = setup_start(8);
    struct urnic_async_event ev;
    struct urnic_qp *first = setup_qp(&s, NULL, 8, 64);
    int fd = urnic_async_fd(s.ctx);
    atomic_store(&fake_knobs(s.fake)->async, 1 + URNIC_EVENT_QP_ACCESS_ERR);
    while (!readable(fd))
        usleep(1000);
    struct urnic_qp *second = setup_qp(&s, NULL, 8, 64);
    send_event(&s, URNIC_EVENT_COMM_EST);
    OK(urnic_destroy_qp(second)); /* its event is after the other one's */
    OK(urnic_get_async_event(s.ctx, &ev));
    ck_assert_ptr_eq(ev.qp, first);
    urnic_ack_async_event(&ev);
    ck_assert(!readable(fd));
    OK(urnic_destroy_qp(first));
    first = setup_qp(&s, NULL, 8, 64);
    atomic_store(&fake_knobs(s.fake)->async, 1 + URNIC_EVENT_QP_FATAL);
    while (!readable(fd))
        usleep(1000);
    OK(urnic_destroy_qp(first));
    ck_assert(!readable(fd));
    setup_end(&s);
}
END_TEST

START_TEST(evt_03_so_does_that_of_a_completion_queue)
{
    /* EVT-03 */
    struct setup s = setup_start(8);
    struct later l = {0};
    struct urnic_wc wc;
    pthread_t t;
    void *user;
    struct urnic_send_wr write = {.opcode = URNIC_WR_RDMA_WRITE, .send_flags = URNIC_SEND_SIGNALED};
    OK(urnic_req_notify_cq(s.cq, false));
    OK(urnic_post_send(s.qp, &write, NULL));
    OK(urnic_get_cq_event(s.channel, &l.cq, &user));
    poll_n(s.cq, &wc, 1);
    OK(urnic_destroy_qp(s.qp));
    pthread_create(&t, NULL, ack_later, &l);
    OK(urnic_destroy_cq(s.cq));
    ck_assert(atomic_load(&l.done));
    pthread_join(t, NULL);
    OK(urnic_create_cq(s.ctx, 1024, &s, s.channel, &s.cq));
    s.qp = setup_qp(&s, NULL, 8, 64);
    setup_end(&s);
}
END_TEST

START_TEST(evt_04_events_were_lost)
{
    /* EVT-04 the application learns that the list has a gap */
    struct setup s = setup_start(8);
    struct urnic_async_event ev;
    for (unsigned lost = 0; lost < 2; lost++) {
        atomic_store(&fake_knobs(s.fake)->lost, lost);
        send_event(&s, URNIC_EVENT_COMM_EST);
        OK(urnic_get_async_event(s.ctx, &ev));
        ck_assert_uint_eq(ev.lost, lost);
        urnic_ack_async_event(&ev);
    }
    setup_end(&s);
}
END_TEST

START_TEST(cq_06_unread_events_go_with_their_queue)
{
    /* CQ-06 the same for a completion queue */
    struct setup s = setup_start(8), other = s;
    struct urnic_cq *cq;
    OK(urnic_create_cq(s.ctx, 16, NULL, s.channel, &cq));
    other.cq = cq;
    struct urnic_qp *qp = setup_qp(&other, NULL, 8, 64);
    struct urnic_send_wr wr = {.opcode = URNIC_WR_SEND, .send_flags = URNIC_SEND_SIGNALED};
    struct urnic_recv_wr recv = {0};
    OK(urnic_req_notify_cq(cq, false));
    OK(urnic_post_recv(qp, &recv, NULL));
    OK(urnic_post_send(qp, &wr, NULL));
    while (!readable(urnic_channel_fd(s.channel)))
        usleep(1000);
    OK(urnic_destroy_qp(qp));
    OK(urnic_destroy_cq(cq));
    ck_assert(!readable(urnic_channel_fd(s.channel)));
    setup_end(&s);
}
END_TEST

/* A call that doesn't wait: if it does, the alarm ends the test. */
#define AT_ONCE(call, want)                                                                        \
    do {                                                                                           \
        alarm(5);                                                                                  \
        ck_assert_int_eq((call), (want));                                                          \
        alarm(0);                                                                                  \
    } while (0)

static void until_readable(int fd)
{
    while (!readable(fd))
        usleep(1000);
}

START_TEST(evt_03_readable_never_blocks)
{
    /* EVT-03 poll() has called the descriptor readable, and the event's object is destroyed before
     * the event is read: the call still returns, though the descriptor blocks */
    struct setup s = setup_start(8);
    struct urnic_async_event ev;
    int fd = urnic_async_fd(s.ctx);
    struct urnic_qp *qp = setup_qp(&s, NULL, 8, 64);
    atomic_store(&fake_knobs(s.fake)->async, 1 + URNIC_EVENT_QP_LAST_WQE_REACHED);
    until_readable(fd);
    OK(urnic_destroy_qp(qp));
    AT_ONCE(urnic_get_async_event(s.ctx, &ev), -EAGAIN);

    /* An event that comes after the object has gone. */
    atomic_store(&fake_knobs(s.fake)->stale_async, 1 + URNIC_EVENT_QP_LAST_WQE_REACHED);
    until_readable(fd);
    AT_ONCE(urnic_get_async_event(s.ctx, &ev), -EAGAIN);

    /* The event of a live object after it is delivered. */
    qp = setup_qp(&s, NULL, 8, 64);
    atomic_store(&fake_knobs(s.fake)->stale_async, 1 + URNIC_EVENT_COMM_EST);
    until_readable(fd);
    send_event(&s, URNIC_EVENT_COMM_EST);
    AT_ONCE(urnic_get_async_event(s.ctx, &ev), 0);
    ck_assert_ptr_eq(ev.qp, qp);
    urnic_ack_async_event(&ev);
    OK(urnic_destroy_qp(qp));
    setup_end(&s);
}
END_TEST

static _Atomic int watched = -1; /* a socket */
static _Atomic bool waits;       /* a thread has called recv() on it, without MSG_DONTWAIT */

/* This recv() takes the place of libc's. It sets `waits` before the call of the kernel. */
ssize_t recv(int fd, void *buf, size_t size, int flags)
{
    if (flags == 0 && fd == atomic_load(&watched))
        atomic_store(&waits, true);
    return syscall(SYS_recvfrom, fd, buf, size, flags, NULL, NULL);
}

/* Waits for one event. */
static void *wait_async(void *arg)
{
    struct setup *s = arg;
    struct urnic_async_event ev;
    OK(urnic_get_async_event(s->ctx, &ev));
    ck_assert_int_eq(ev.type, URNIC_EVENT_COMM_EST);
    urnic_ack_async_event(&ev);
    return NULL;
}

START_TEST(evt_03_a_wait_goes_on)
{
    /* EVT-03 a waiting thread has not seen the descriptor readable: an event of a destroyed object
     * doesn't end its wait, whether the descriptor was polled or not. If the event came before the
     * wait, the descriptor could have been seen readable. */
    for (unsigned polled = 0; polled < 2; polled++) {
        struct setup s = setup_start(8);
        pthread_t t;
        int fd = polled ? urnic_async_fd(s.ctx) : s.ctx->async.fd;
        struct urnic_qp *qp = setup_qp(&s, NULL, 8, 64);
        atomic_store(&waits, false);
        atomic_store(&watched, s.ctx->async.fd);
        pthread_create(&t, NULL, wait_async, &s);
        while (!atomic_load(&waits))
            usleep(1000);
        atomic_store(&fake_knobs(s.fake)->stale_async, 1 + URNIC_EVENT_COMM_EST);
        while (atomic_load(&fake_knobs(s.fake)->stale_async) != 0 || readable(fd))
            usleep(1000);
        atomic_store(&fake_knobs(s.fake)->async, 1 + URNIC_EVENT_COMM_EST);
        pthread_join(t, NULL);
        OK(urnic_destroy_qp(qp));
        setup_end(&s);
    }
}
END_TEST

START_TEST(cq_06_readable_never_blocks)
{
    /* CQ-06 the same for a channel of completion queues */
    struct setup s = setup_start(8), other = s;
    struct urnic_cq *cq, *told;
    struct urnic_recv_wr recv = {0};
    struct urnic_send_wr wr = {.opcode = URNIC_WR_SEND, .send_flags = URNIC_SEND_SIGNALED};
    OK(urnic_create_cq(s.ctx, 16, NULL, s.channel, &cq));
    other.cq = cq;
    struct urnic_qp *qp = setup_qp(&other, NULL, 8, 64);
    OK(urnic_req_notify_cq(cq, false));
    OK(urnic_post_recv(qp, &recv, NULL));
    OK(urnic_post_send(qp, &wr, NULL));
    until_readable(urnic_channel_fd(s.channel));
    OK(urnic_destroy_qp(qp));
    OK(urnic_destroy_cq(cq));
    AT_ONCE(urnic_get_cq_event(s.channel, &told, NULL), -EAGAIN);
    setup_end(&s);
}
END_TEST

START_TEST(qp_14_a_number_is_not_given_twice)
{
    /* QP-14 a late completion of a destroyed queue pair must not be taken for its successor's */
    struct setup s = setup_start(8);
    uint32_t before = 0;
    for (unsigned i = 0; i < 100; i++) {
        struct urnic_qp *qp = setup_qp(&s, NULL, 1, 0);
        ck_assert_uint_ne(qp->obj.ref, before);
        ck_assert_ptr_eq(client_ref_get(&s.ctx->refs, qp->obj.ref), &qp->obj);
        if (i > 0)
            ck_assert_ptr_null(client_ref_get(&s.ctx->refs, before));
        before = qp->obj.ref;
        OK(urnic_destroy_qp(qp));
        ck_assert_ptr_null(client_ref_get(&s.ctx->refs, before));
    }
    setup_end(&s);
}
END_TEST

START_TEST(evt_01_daemon_dies)
{
    /* EVT-01, SHM-07: one DEVICE_FATAL, then errors; nothing hangs; everything can be freed */
    struct setup s = setup_start(8);
    struct urnic_async_event ev;
    struct urnic_wc wc;
    struct urnic_cq *cq;
    struct urnic_pd *pd;
    void *user;
    struct urnic_send_wr wr = {.opcode = URNIC_WR_SEND};
    struct urnic_cm_channel *ch;
    struct urnic_cm_id *id;
    OK(urnic_create_cm_channel(s.ctx, &ch));
    OK(urnic_req_notify_cq(s.cq, false));
    atomic_store(&fake_knobs(s.fake)->kill, true);
    OK(urnic_get_async_event(s.ctx, &ev));
    ck_assert_int_eq(ev.type, URNIC_EVENT_DEVICE_FATAL);
    ck_assert_int_eq(urnic_post_send(s.qp, &wr, NULL), -ENODEV);
    ck_assert_int_eq(urnic_create_id(ch, URNIC_PS_TCP, NULL, &id), -ENODEV);
    urnic_ack_async_event(&ev);
    ck_assert_int_eq(urnic_get_async_event(s.ctx, &ev), -ENODEV);
    ck_assert_int_eq(urnic_get_cq_event(s.channel, &cq, &user), -ENODEV);
    ck_assert_int_eq(urnic_alloc_pd(s.ctx, &pd), -ENODEV);
    ck_assert_int_eq(urnic_req_notify_cq(s.cq, false), -ENODEV);
    int ret = 0;
    for (int i = 0; i < 100000 && ret == 0; i++)
        ret = urnic_poll_cq(s.cq, 1, &wc);
    ck_assert_int_eq(ret, -ENODEV);
    OK(urnic_destroy_cm_channel(ch));
    setup_end(&s);
}
END_TEST

START_TEST(evt_01_polling_alone_notices_death)
{
    /* SHM-07 an application that only polls also learns of the daemon's death */
    struct setup s = setup_start(8);
    struct urnic_wc wc;
    int ret;
    atomic_store(&fake_knobs(s.fake)->kill, true);
    while ((ret = urnic_poll_cq(s.cq, 1, &wc)) == 0)
        ;
    ck_assert_int_eq(ret, -ENODEV);
    setup_end(&s);
}
END_TEST

START_TEST(shm_07_silent_daemon)
{
    /* SHM-07 a request without an answer may be done yet, or not: the daemon counts as gone, for
     * polling too, so that nothing of the context is left that can't be freed. It takes no longer
     * where signals come. */
    struct setup s = setup_start(8);
    const struct timeval patience = {.tv_usec = 100000};
    struct urnic_pd *pd;
    struct urnic_wc wc;
    OK(setsockopt(s.ctx->conn.sock, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)));
    atomic_store(&fake_knobs(s.fake)->late, IPC_PD_ALLOC);
    signals(true);
    ck_assert_int_eq(urnic_alloc_pd(s.ctx, &pd), -ENODEV);
    signals(false);
    const struct ipc_life alive = {.holder = 1}, *was = s.ctx->life;
    s.ctx->life = &alive; /* the daemon has not ended */
    ck_assert_int_eq(urnic_poll_cq(s.cq, 1, &wc), -ENODEV);
    s.ctx->life = was;
    setup_end(&s);
}
END_TEST

static bool is_mapped(void *at)
{
    void *page = (void *)((uintptr_t)at & ~(uintptr_t)4095);
    return msync(page, 4096, MS_ASYNC) == 0;
}

START_TEST(shm_07_fork)
{
    /* SHM-07 a child's control calls are refused, and it has the parent's data, but neither its
     * queues nor its events; the parent continues */
    struct setup s = setup_start(8);
    struct urnic_async_event event;
    struct urnic_context *bare;
    struct urnic_cq *cq;
    struct urnic_pd *pd;
    OK(urnic_open(NULL, &bare));
    fcntl(urnic_async_fd(s.ctx), F_SETFL, O_NONBLOCK);
    fcntl(urnic_channel_fd(s.channel), F_SETFL, O_NONBLOCK);
    pid_t child = fork();
    if (child == 0) {
        bool refused = urnic_alloc_pd(s.ctx, &pd) == -EPERM &&
                       urnic_get_async_event(s.ctx, &event) == -EPERM &&
                       urnic_get_cq_event(s.channel, &cq, NULL) == -EPERM &&
                       urnic_close(s.ctx) == -EPERM && urnic_close(bare) == -EPERM;
        bool apart = !is_mapped(s.qp->sq.q) && !is_mapped(s.ctx->db);
        _exit(refused && apart && is_mapped(s.mem) ? 0 : 1);
    }
    ck_assert(is_mapped(s.qp->sq.q));
    await_child(child);
    ck_assert_int_eq(urnic_get_async_event(s.ctx, &event), -EAGAIN);
    OK(urnic_alloc_pd(s.ctx, &pd));
    OK(urnic_dealloc_pd(pd));
    OK(urnic_close(bare));
    setup_end(&s);
}
END_TEST

/* A child that creates objects, and destroys its parent's objects, by all such calls. */
static bool child_is_refused(struct setup *s, struct urnic_srq *srq, struct urnic_ah *ah)
{
    struct urnic_srq_attr srq_attr = {.max_wr = 1, .max_sge = 1};
    struct urnic_qp_attr attr = {.qp_state = URNIC_QPS_ERR};
    struct urnic_qp_init_attr init = {.send_cq = s->cq, .recv_cq = s->cq, .qp_type = URNIC_QPT_RC};
    struct urnic_ah_attr ah_attr = {.dgid = {0xfd}};
    struct urnic_device_attr device;
    struct urnic_channel *channel;
    struct urnic_gid gid;
    struct urnic_srq *new_srq;
    struct urnic_mw *new_mw;
    struct urnic_ah *new_ah;
    struct urnic_mr *mr;
    struct urnic_cq *cq;
    struct urnic_qp *qp;
    struct urnic_pd *pd;
    void *mem;
    const int said[] = {
        urnic_query_device(s->ctx, &device),
        urnic_query_gid(s->ctx, 0, &gid),
        urnic_alloc_pd(s->ctx, &pd),
        urnic_alloc(s->ctx, 4096, &mem),
        urnic_reg_mr(s->pd, s->mem, 4096, 0, &mr),
        urnic_alloc_mw(s->pd, 1, &new_mw),
        urnic_create_channel(s->ctx, &channel),
        urnic_create_cq(s->ctx, 1, NULL, NULL, &cq),
        urnic_modify_cq(s->cq, 1, 1),
        urnic_create_srq(s->pd, &srq_attr, NULL, &new_srq),
        urnic_create_qp(s->pd, &init, &qp),
        urnic_modify_qp(s->qp, &attr, URNIC_QP_STATE),
        urnic_query_qp(s->qp, &attr),
        urnic_create_ah(s->pd, &ah_attr, &new_ah),
        urnic_destroy_ah(ah),
        urnic_destroy_qp(s->qp),
        urnic_destroy_srq(srq),
        urnic_destroy_cq(s->cq),
        urnic_destroy_channel(s->channel),
        urnic_dereg_mr(s->mr),
        urnic_free(s->ctx, s->mem),
        urnic_dealloc_pd(s->pd),
        urnic_close(s->ctx),
    };
    for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++)
        if (said[i] != -EPERM)
            return false;
    return true;
}

static void let_child_be_refused(struct setup *s, struct urnic_srq *srq, struct urnic_ah *ah)
{
    pid_t child = fork();
    if (child == 0)
        _exit(child_is_refused(s, srq, ah) ? 0 : 1);
    await_child(child);
}

START_TEST(shm_07_fork_from_a_daemon_that_died)
{
    /* SHM-07 with the daemon gone, destroying needs no answer. A child is still refused: it may
     * have other memory at the addresses of the queues */
    struct setup s = setup_start(8);
    struct urnic_srq_attr srq_attr = {.max_wr = 1, .max_sge = 1};
    struct urnic_ah_attr ah_attr = {.dgid = {0xfd}};
    struct urnic_async_event event;
    struct urnic_srq *srq;
    struct urnic_ah *ah;
    OK(urnic_create_srq(s.pd, &srq_attr, NULL, &srq));
    OK(urnic_create_ah(s.pd, &ah_attr, &ah));
    let_child_be_refused(&s, srq, ah);
    atomic_store(&fake_knobs(s.fake)->kill, true);
    OK(urnic_get_async_event(s.ctx, &event));
    ck_assert_int_eq(event.type, URNIC_EVENT_DEVICE_FATAL);
    let_child_be_refused(&s, srq, ah);
    OK(urnic_destroy_ah(ah));
    OK(urnic_destroy_srq(srq));
    setup_end(&s);
}
END_TEST

START_TEST(evt_03_a_child_leaves_events_to_its_parent)
{
    /* EVT-03 an event about a later object of the parent is not stale, though the child that fails
     * to make one doesn't know the object */
    struct setup s = setup_start(8);
    struct urnic_async_event event;
    struct urnic_cq *cq;
    struct urnic_qp *qp;
    int go[2];
    char octet = 0;
    fcntl(urnic_async_fd(s.ctx), F_SETFL, O_NONBLOCK);
    OK(pipe(go));
    pid_t child = fork();
    if (child == 0) {
        bool told = read(go[0], &octet, 1) == 1;
        _exit(told && urnic_create_cq(s.ctx, 1, NULL, NULL, &cq) == -EPERM ? 0 : 1);
    }
    qp = setup_qp(&s, NULL, 8, 0);
    atomic_store(&fake_knobs(s.fake)->async, 1 + URNIC_EVENT_COMM_EST);
    while (!readable(urnic_async_fd(s.ctx)))
        ;
    ck_assert_int_eq(write(go[1], &octet, 1), 1);
    await_child(child);
    OK(urnic_get_async_event(s.ctx, &event));
    ck_assert_ptr_eq(event.qp, qp);
    urnic_ack_async_event(&event);
    close(go[0]);
    close(go[1]);
    OK(urnic_destroy_qp(qp));
    setup_end(&s);
}
END_TEST

/* The functions return the context pointer that the application gave for an object, and the granted
 * size. */
START_TEST(objects_and_their_contexts)
{
    struct setup s = setup_start(8);
    int for_cq, for_qp, for_srq;
    struct urnic_cq *cq;
    struct urnic_qp *qp;
    struct urnic_srq *srq;
    struct urnic_srq_attr srq_attr = {.max_wr = 16, .max_sge = 1};
    OK(urnic_create_cq(s.ctx, 100, &for_cq, NULL, &cq));
    ck_assert_ptr_eq(urnic_cq_context(cq), &for_cq);
    ck_assert_int_ge(urnic_cq_size(cq), 100);
    OK(urnic_create_srq(s.pd, &srq_attr, &for_srq, &srq));
    ck_assert_ptr_eq(urnic_srq_context(srq), &for_srq);
    struct urnic_qp_init_attr init = {
        .qp_context = &for_qp,
        .send_cq = cq,
        .recv_cq = cq,
        .srq = srq,
        .qp_type = URNIC_QPT_RC,
        .cap = {.max_send_wr = 1, .max_send_sge = 1},
    };
    OK(urnic_create_qp(s.pd, &init, &qp));
    ck_assert_ptr_eq(urnic_qp_context(qp), &for_qp);
    OK(urnic_destroy_qp(qp));
    OK(urnic_destroy_srq(srq));
    OK(urnic_destroy_cq(cq));
    setup_end(&s);
}
END_TEST

START_TEST(ud_05_address_handles)
{
    /* UD-05 the way back to a datagram's sender comes from the 40 octets before the data, except
     * the ECN bits (WIRE-14): an answer to a marked datagram is not marked */
    struct setup s = setup_start(8);
    struct urnic_ah *ah;
    uint8_t grh[40] = {0};
    struct urnic_wc wc = {.wc_flags = URNIC_WC_GRH};
    struct urnic_ah_attr attr = {.dgid = {0xfd}};
    OK(urnic_create_ah(s.pd, &attr, &ah));
    OK(urnic_destroy_ah(ah));
    static const uint8_t v4[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 7};
    grh[20] = 0x45;
    grh[21] = 0x6B;
    memcpy(grh + 32, v4 + 12, 4);
    wc.sl = 3;
    OK(urnic_create_ah_from_wc(s.pd, &wc, grh, 5, &ah));
    ck_assert_mem_eq(ah->av.dgid, v4, 16);
    ck_assert_uint_eq(ah->av.tclass, 0x68);
    ck_assert_uint_eq(ah->av.sl, 3);
    ck_assert_uint_eq(ah->av.sgid_index, 5);
    OK(urnic_destroy_ah(ah));
    static const uint8_t v6[16] = {0xfd, [15] = 9};
    grh[0] = 0x61;
    grh[1] = 0x30;
    memcpy(grh + 8, v6, 16);
    OK(urnic_create_ah_from_wc(s.pd, &wc, grh, 0, &ah));
    ck_assert_mem_eq(ah->av.dgid, v6, 16);
    ck_assert_uint_eq(ah->av.tclass, 0x10);
    OK(urnic_destroy_ah(ah));
    wc.wc_flags = 0;
    ck_assert_int_eq(urnic_create_ah_from_wc(s.pd, &wc, grh, 0, &ah), -EINVAL);
    setup_end(&s);
}
END_TEST

/* UD-02: a datagram that no packet holds is refused when it is posted, not lost in the daemon. */
START_TEST(ud_02_datagram_too_long)
{
    struct setup s = setup_start(8);
    struct urnic_ah_attr attr = {.dgid = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 2}};
    struct urnic_qp_init_attr init = {
        .send_cq = s.cq,
        .recv_cq = s.cq,
        .qp_type = URNIC_QPT_UD,
        .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 2, .max_recv_sge = 1},
    };
    struct urnic_qp *qp;
    struct urnic_ah *ah;
    OK(urnic_create_ah(s.pd, &attr, &ah));
    OK(urnic_create_qp(s.pd, &init, &qp));
    to_state(qp, URNIC_QPS_INIT);
    to_state(qp, URNIC_QPS_RTR);
    to_state(qp, URNIC_QPS_RTS);
    static const struct {
        uint32_t first, second;
        int rc;
    } cases[] = {
        {4096, 0, 0}, {4000, 96, 0}, {4097, 0, -EINVAL}, {4000, 97, -EINVAL}, {1, ~0u, -EINVAL}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t at = (uintptr_t)s.mem;
        struct urnic_sge sge[2] = {{.addr = at, .length = cases[i].first, .lkey = s.mr->lkey},
                                   {.addr = at, .length = cases[i].second, .lkey = s.mr->lkey}};
        struct urnic_send_wr wr = {
            .opcode = URNIC_WR_SEND, .sg_list = sge, .num_sge = 2, .ud = {.ah = ah}};
        ck_assert_int_eq(urnic_post_send(qp, &wr, NULL), cases[i].rc);
    }
    OK(urnic_destroy_qp(qp));
    OK(urnic_destroy_ah(ah));
    setup_end(&s);
}
END_TEST

START_TEST(cq_02_names)
{
    /* CQ-02 */
    ck_assert_str_eq(urnic_wc_status_str(URNIC_WC_RETRY_EXC_ERR), "transport retries exceeded");
    ck_assert_int_eq(URNIC_WC_RETRY_EXC_ERR, 12);
    ck_assert_int_eq(URNIC_WC_GENERAL_ERR, 21);
    ck_assert_str_eq(urnic_wc_status_str(99), "unknown");
    /* CQ-01 vendor_err: area and number of a rule; these numbers are in applications */
    ck_assert_str_eq(urnic_rule_area(0), "");
    ck_assert_str_eq(urnic_rule_area(14u << 16 | 12), "RSP");
    ck_assert_uint_eq(URNIC_RULE_NUMBER(14u << 16 | 12), 12);
    ck_assert_str_eq(urnic_rule_area(1u << 16 | 1), "WIRE");
    ck_assert_str_eq(urnic_rule_area(33u << 16 | 1), "DEV");
    ck_assert_str_eq(urnic_rule_area(34u << 16 | 1), "");
    ck_assert_str_eq(urnic_rule_area(UINT32_MAX), "");
    ck_assert_str_eq(urnic_event_type_str(URNIC_EVENT_GID_CHANGE), "GID table change");
    ck_assert_str_eq(urnic_qp_state_str(URNIC_QPS_SQD), "SQD");
}
END_TEST

START_TEST(shm_01_frozen_structs)
{
    /* SHM-01 applications have these sizes compiled in: when one changes, so must the soname */
    ck_assert_uint_eq(sizeof(struct urnic_device), 48);
    ck_assert_uint_eq(sizeof(struct urnic_mr), 56);
    ck_assert_uint_eq(sizeof(struct urnic_sge), 16);
    ck_assert_uint_eq(sizeof(struct urnic_send_wr), 72);
    ck_assert_uint_eq(sizeof(struct urnic_recv_wr), 32);
    ck_assert_uint_eq(sizeof(struct urnic_wc), 56);
    ck_assert_uint_eq(sizeof(struct urnic_qp_attr), 100);
    ck_assert_uint_eq(sizeof(struct urnic_qp_init_attr), 72);
    ck_assert_uint_eq(sizeof(struct urnic_async_event), 24);
    ck_assert_uint_eq(sizeof(struct urnic_cm_event), 328);
    ck_assert_uint_eq(sizeof(struct urnic_conn_attr), 112);
}
END_TEST

/* SEC-35: a daemon that doesn't know of peers gets no engine in the program as its client. */
START_TEST(sec_35_an_older_daemon)
{
    struct fake *fake = fake_start();
    struct urnic_context *ctx;
    atomic_store(&fake_knobs(fake)->minor, IPC_ENGINE_MINOR - 1);
    setenv("URNIC_ENGINE", "application", 1);
    ck_assert_int_eq(urnic_open("urn0", &ctx), -ENOTSUP);
    setenv("URNIC_ENGINE", "daemon", 1);
    ck_assert_int_eq(urnic_open_application("urn0", &ctx), -ENOTSUP);
    unsetenv("URNIC_ENGINE");
    ck_assert_int_eq(urnic_open_application("urn0", &ctx), -ENOTSUP);
    ck_assert_int_eq(urnic_open("urn0", &ctx), 0);
    ck_assert_int_eq(urnic_close(ctx), 0);
    fake_stop(fake);
}
END_TEST

UNIT_MAIN("client life", shm_07_no_daemon, shm_07_silent_from_the_beginning,
          shm_07_signals_give_no_time, shm_09_devices_and_memory, shm_01_newer_daemon,
          shm_01_daemon_lies, shm_01_older_daemon, cq_06_events,
          evt_03_destroy_waits_for_acknowledgement, evt_03_so_does_that_of_a_completion_queue,
          evt_03_unread_events_go_with_their_object, cq_06_unread_events_go_with_their_queue,
          evt_03_readable_never_blocks, evt_03_a_wait_goes_on, cq_06_readable_never_blocks,
          evt_04_events_were_lost, qp_14_a_number_is_not_given_twice, evt_01_daemon_dies,
          evt_01_polling_alone_notices_death, shm_07_silent_daemon, shm_07_fork,
          shm_07_fork_from_a_daemon_that_died, evt_03_a_child_leaves_events_to_its_parent,
          objects_and_their_contexts, ud_05_address_handles, ud_02_datagram_too_long, cq_02_names,
          shm_01_frozen_structs, sec_35_an_older_daemon)
