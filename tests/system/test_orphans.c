/* SPDX-License-Identifier: BSD-3-Clause
 *
 * EVT-01, SHM-07: a daemon that was killed during any activity of its clients. Every wait of an
 * application ends within a second with an error, and all its objects can be destroyed.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "hostile_rig.h"
#include "unit.h"

#define NOTICED_MS 1000

static void orphan(void)
{
    end_close(&a);
    end_close(&b);
}

/* ---- polling ---- */

/* A rare poller learns the reason at its first poll without completions. */
START_TEST(polls_now_and_then)
{
    struct urnic_wc wc;
    transfer(10);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_int_eq(urnic_poll_cq(a.cq, 1, &wc), 0);
        usleep(1000);
    }
    rig_kill(&rig);
    ck_assert_int_eq(urnic_poll_cq(a.cq, 1, &wc), -ENODEV);
    ck_assert_int_eq(urnic_poll_cq(b.cq, 1, &wc), -ENODEV);
    ck_assert_int_eq(end_post(&a, URNIC_WR_RDMA_WRITE, 0, 8, b.mr->iova, b.mr->rkey, 1), -ENODEV);
    orphan();
}
END_TEST

/* Completions from before the daemon's end come first. */
START_TEST(polls_what_was_done)
{
    struct urnic_wc wc;
    for (unsigned i = 0; i < 8; i++) {
        ck_assert_int_eq(end_post(&a, URNIC_WR_RDMA_WRITE, 0, 8, b.mr->iova, b.mr->rkey, i), 0);
        while (ipc_cq_peek(&(struct ipc_cq_view){.base = a.cq->view.base,
                                                 .entries = a.cq->view.entries,
                                                 .index = a.cq->view.index + i}) == NULL)
            usleep(100);
    }
    rig_kill(&rig);
    for (unsigned i = 0; i < 8; i++) {
        ck_assert_int_eq(urnic_poll_cq(a.cq, 1, &wc), 1);
        ck_assert_uint_eq(wc.wr_id, i);
    }
    ck_assert_int_eq(urnic_poll_cq(a.cq, 1, &wc), -ENODEV);
    orphan();
}
END_TEST

/* A daemon that is stopped, not killed, also tells a client that only polls. */
START_TEST(polls_after_the_end)
{
    struct urnic_wc wc;
    int rc;
    transfer(10);
    rig_stop(&rig);
    while ((rc = urnic_poll_cq(a.cq, 1, &wc)) > 0)
        ; /* posted requests were flushed */
    ck_assert_int_eq(rc, -ENODEV);
    orphan();
}
END_TEST

/* ---- waiting ---- */

struct waiter {
    const char *what;
    void *(*fn)(void *arg);
    pthread_t thread;
    _Atomic bool started, ended;
    int rc;
};

static struct urnic_cm_channel *cm_channel;
static struct urnic_listener *listener;

static int begin(struct waiter *w)
{
    atomic_store(&w->started, true);
    return 0;
}

static void *end(struct waiter *w, int rc)
{
    w->rc = rc;
    atomic_store(&w->ended, true);
    return NULL;
}

static void *waits_for_completion_events(void *w)
{
    struct urnic_cq *cq;
    begin(w);
    return end(w, urnic_get_cq_event(a.channel, &cq, NULL));
}

static void *waits_for_events(void *w)
{
    struct urnic_async_event ev;
    int rc;
    begin(w);
    do {
        rc = urnic_get_async_event(a.ctx, &ev);
        if (rc == 0)
            urnic_ack_async_event(&ev);
    } while (rc == 0 && ev.type != URNIC_EVENT_DEVICE_FATAL);
    return end(w, rc == 0 ? urnic_get_async_event(a.ctx, &ev) : 0);
}

static void *waits_for_connection_events(void *w)
{
    struct urnic_cm_event ev;
    begin(w);
    return end(w, urnic_get_cm_event(cm_channel, &ev));
}

/* No host has 10.0.0.99: resolving it takes seconds. */
static void *connects(void *w)
{
    struct urnic_conn_attr attr = end_conn_attr(&a, -1);
    struct urnic_conn *conn;
    begin(w);
    return end(w, urnic_connect_addr(a.ctx, "10.0.0.99", 7, &attr, NULL, NULL, &conn));
}

static void *accepts(void *w)
{
    struct urnic_conn_attr attr = end_conn_attr(&a, -1);
    struct urnic_conn *conn;
    begin(w);
    return end(w, urnic_accept_conn(listener, &attr, NULL, NULL, &conn));
}

static void *makes_an_address_handle(void *w)
{
    struct urnic_ah_attr attr = {.dgid = {[10] = 0xFF, 0xFF, 10, 0, 0, 99}, .sgid_index = 3};
    struct urnic_ah *ah;
    begin(w);
    return end(w, urnic_create_ah(a.pd, &attr, &ah));
}

static void *spins(void *w)
{
    struct urnic_wc wc;
    int rc;
    begin(w);
    while ((rc = urnic_poll_cq(b.cq, 1, &wc)) == 0)
        ;
    return end(w, rc);
}

static void *asks_again_and_again(void *w)
{
    struct urnic_port_attr port;
    int rc;
    begin(w);
    while ((rc = urnic_query_port(a.ctx, &port)) == 0)
        ;
    return end(w, rc);
}

/* All at the same time, so that each must wake only its own waiters. */
START_TEST(waits)
{
    static struct waiter all[] = {
        {.what = "get_cq_event", .fn = waits_for_completion_events},
        {.what = "get_async_event", .fn = waits_for_events},
        {.what = "get_cm_event", .fn = waits_for_connection_events},
        {.what = "connect_addr", .fn = connects},
        {.what = "accept_conn", .fn = accepts},
        {.what = "create_ah", .fn = makes_an_address_handle},
        {.what = "poll_cq", .fn = spins},
        {.what = "query_port", .fn = asks_again_and_again},
    };
    const unsigned n = sizeof(all) / sizeof(all[0]);
    ck_assert_int_eq(urnic_create_cm_channel(a.ctx, &cm_channel), 0);
    ck_assert_int_eq(urnic_listen_addr(a.ctx, NULL, 0, 0, &listener), 0);
    for (unsigned i = 0; i < n; i++) {
        ck_assert_int_eq(pthread_create(&all[i].thread, NULL, all[i].fn, &all[i]), 0);
        while (!atomic_load(&all[i].started))
            usleep(100);
    }
    usleep(50000); /* they have gone to sleep */
    for (unsigned i = 0; i < n; i++)
        ck_assert_msg(!atomic_load(&all[i].ended), "%s: %d", all[i].what, all[i].rc);
    rig_kill(&rig);
    uint64_t until = rig_now_ms() + NOTICED_MS;
    for (unsigned i = 0; i < n; i++) {
        while (!atomic_load(&all[i].ended)) {
            ck_assert_msg(rig_now_ms() < until, "%s still waits", all[i].what);
            usleep(100);
        }
        ck_assert_msg(all[i].rc == -ENODEV, "%s: %d", all[i].what, all[i].rc);
        pthread_join(all[i].thread, NULL);
    }
    ck_assert_int_eq(urnic_close_listener(listener), 0);
    ck_assert_int_eq(urnic_destroy_cm_channel(cm_channel), 0);
    orphan();
}
END_TEST

/* Every descriptor that an application polls shows it, also one that doesn't block. */
START_TEST(polls_descriptors)
{
    struct urnic_async_event ev;
    struct urnic_cm_event cm;
    struct urnic_cq *cq;
    ck_assert_int_eq(urnic_create_cm_channel(a.ctx, &cm_channel), 0);
    ck_assert_int_eq(urnic_listen_addr(a.ctx, NULL, 0, 0, &listener), 0);
    struct pollfd p[] = {
        {.fd = urnic_async_fd(a.ctx), .events = POLLIN},
        {.fd = urnic_channel_fd(a.channel), .events = POLLIN},
        {.fd = urnic_cm_channel_fd(cm_channel), .events = POLLIN},
        {.fd = urnic_listener_fd(listener), .events = POLLIN},
    };
    for (unsigned i = 0; i < 4; i++)
        fcntl(p[i].fd, F_SETFL, O_NONBLOCK);
    while (urnic_get_async_event(a.ctx, &ev) == 0)
        urnic_ack_async_event(&ev);
    ck_assert_int_eq(poll(p, 4, 0), 0);
    rig_kill(&rig);
    ck_assert_int_eq(poll(p, 4, NOTICED_MS), 4);
    ck_assert_int_eq(urnic_get_async_event(a.ctx, &ev), 0);
    ck_assert_int_eq(ev.type, URNIC_EVENT_DEVICE_FATAL);
    ck_assert_int_eq(urnic_get_async_event(a.ctx, &ev), -ENODEV);
    ck_assert_int_eq(urnic_get_cq_event(a.channel, &cq, NULL), -ENODEV);
    ck_assert_int_eq(urnic_get_cm_event(cm_channel, &cm), -ENODEV);
    ck_assert_int_eq(urnic_req_notify_cq(a.cq, false), -ENODEV);
    ck_assert_int_eq(urnic_close_listener(listener), 0);
    ck_assert_int_eq(urnic_destroy_cm_channel(cm_channel), 0);
    orphan();
}
END_TEST

/* ---- afterwards ---- */

/* The library learns of it only by destroying. */
START_TEST(destroys)
{
    struct urnic_cm_id *id;
    struct urnic_mw *mw;
    struct urnic_srq *srq;
    struct urnic_srq_attr attr = {.max_wr = 4, .max_sge = 1};
    struct sockaddr_in any = {.sin_family = AF_INET};
    ck_assert_int_eq(urnic_create_cm_channel(a.ctx, &cm_channel), 0);
    ck_assert_int_eq(urnic_create_id(cm_channel, URNIC_PS_TCP, NULL, &id), 0);
    ck_assert_int_eq(urnic_bind_addr(id, (const struct sockaddr *)&any), 0);
    ck_assert_int_eq(urnic_alloc_mw(a.pd, 1, &mw), 0);
    ck_assert_int_eq(urnic_create_srq(a.pd, &attr, NULL, &srq), 0);
    rig_kill(&rig);
    ck_assert_int_eq(urnic_destroy_id(id), 0);
    ck_assert_int_eq(urnic_destroy_cm_channel(cm_channel), 0);
    ck_assert_int_eq(urnic_dealloc_mw(mw), 0);
    ck_assert_int_eq(urnic_destroy_srq(srq), 0);
    orphan();
}
END_TEST

/* A new daemon at the same socket is another one: objects of the first one stay dead, and can be
 * destroyed beside objects of the second. */
START_TEST(outlived_by_a_new_one)
{
    struct urnic_wc wc;
    struct end old[2];
    transfer(10);
    rig_kill(&rig);
    old[0] = a;
    old[1] = b;
    setup();
    transfer(10);
    ck_assert_int_eq(urnic_poll_cq(old[0].cq, 1, &wc), -ENODEV);
    ck_assert_int_eq(end_post(&old[0], URNIC_WR_SEND, 0, 8, 0, 0, 1), -ENODEV);
    end_close(&old[0]);
    end_close(&old[1]);
    transfer(10);
    teardown();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("orphans");
    TCase *t = tcase_create("killed");

    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, setup, NULL);
    tcase_add_test(t, polls_now_and_then);
    tcase_add_test(t, polls_what_was_done);
    tcase_add_test(t, polls_after_the_end);
    tcase_add_test(t, waits);
    tcase_add_test(t, polls_descriptors);
    tcase_add_test(t, destroys);
    tcase_add_test(t, outlived_by_a_new_one);
    suite_add_tcase(s, t);
    return unit_run(s);
}
