/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connecting through liburnic, with events and with blocking calls.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include "client_cm.h"
#include "client_setup.h"
#include "unit.h"

static struct urnic_conn_attr conn_attr(struct setup *s, const char *hello)
{
    return (struct urnic_conn_attr){
        .pd = s->pd,
        .qp = {.send_cq = s->cq,
               .recv_cq = s->cq,
               .qp_type = URNIC_QPT_RC,
               .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}},
        .param = {.private_data = hello, .private_data_len = (uint8_t)strlen(hello)},
        .timeout_ms = 3000,
    };
}

static int post_one_receive(void *arg, struct urnic_qp *qp)
{
    struct urnic_recv_wr recv = {.wr_id = 77};
    ++*(int *)arg;
    return urnic_post_recv(qp, &recv, NULL);
}

static void *server(void *arg)
{
    _Atomic bool *listening = arg;
    struct setup s = {0}; /* a context of its own, as another process would have */
    struct urnic_listener *l;
    struct urnic_conn *conn;
    struct urnic_wc wc;
    int prepared = 0;
    OK(urnic_open(NULL, &s.ctx));
    OK(urnic_alloc_pd(s.ctx, &s.pd));
    OK(urnic_create_cq(s.ctx, 16, NULL, NULL, &s.cq));
    OK(urnic_listen_addr(s.ctx, "127.0.0.1", 7000, 4, &l));
    ck_assert_uint_eq(urnic_listener_port(l), 7000);
    atomic_store(listening, true);
    struct urnic_conn_attr attr = conn_attr(&s, "from server");
    OK(urnic_accept_conn(l, &attr, post_one_receive, &prepared, &conn));
    ck_assert_int_eq(prepared, 1);
    ck_assert_uint_eq(conn->private_data_len, 11);
    ck_assert_int_eq(memcmp(conn->private_data, "from client", 11), 0);
    poll_n(s.cq, &wc, 1);
    ck_assert_uint_eq(wc.wr_id, 77);
    struct urnic_cm_event ev;
    OK(urnic_get_cm_event(conn->channel, &ev));
    ck_assert_int_eq(ev.event, URNIC_CM_DISCONNECTED);
    OK(urnic_close_conn(conn));
    OK(urnic_close_listener(l));
    OK(urnic_destroy_cq(s.cq));
    OK(urnic_dealloc_pd(s.pd));
    OK(urnic_close(s.ctx));
    return NULL;
}

START_TEST(cm_35_blocking_calls)
{
    /* CM-35 listen, connect, exchange private data, send, disconnect */
    struct setup s = setup_start(8);
    _Atomic bool listening = false;
    struct urnic_conn *conn;
    pthread_t t;
    pthread_create(&t, NULL, server, &listening);
    while (!atomic_load(&listening))
        sched_yield();
    struct urnic_conn_attr attr = conn_attr(&s, "from client");
    OK(urnic_connect_addr(s.ctx, "127.0.0.1", 7000, &attr, NULL, NULL, &conn));
    ck_assert_int_eq(memcmp(conn->private_data, "from server", 11), 0);
    struct urnic_send_wr wr = {.opcode = URNIC_WR_SEND};
    OK(urnic_post_send(conn->qp, &wr, NULL));
    usleep(20000);
    OK(urnic_close_conn(conn));
    pthread_join(t, NULL);
    setup_end(&s);
}
END_TEST

START_TEST(cm_35_nobody_listens)
{
    /* CM-35 a rejection is -ECONNREFUSED, and frees everything */
    struct setup s = setup_start(8);
    struct urnic_conn *conn;
    struct urnic_conn_attr attr = conn_attr(&s, "");
    ck_assert_int_eq(urnic_connect_addr(s.ctx, "127.0.0.1", 1, &attr, NULL, NULL, &conn),
                     -ECONNREFUSED);
    ck_assert_int_eq(urnic_connect_addr(s.ctx, "not an address", 1, &attr, NULL, NULL, &conn),
                     -EINVAL);
    setup_end(&s);
}
END_TEST

START_TEST(cm_35_no_answer_in_time)
{
    struct setup s = setup_start(8);
    struct urnic_listener *l;
    struct urnic_conn *conn;
    struct urnic_conn_attr attr = conn_attr(&s, "");
    attr.timeout_ms = 100;
    OK(urnic_listen_addr(s.ctx, NULL, 7001, 4, &l));
    ck_assert_int_eq(urnic_accept_conn(l, &attr, NULL, NULL, &conn), -ETIMEDOUT);
    /* CM-35 and a connection that no listener accepts */
    ck_assert_int_eq(urnic_connect_addr(s.ctx, "::1", 7001, &attr, NULL, NULL, &conn), -ETIMEDOUT);
    OK(urnic_close_listener(l));
    setup_end(&s);
}
END_TEST

START_TEST(no_datagrams)
{
    /* Datagrams have no connection: no call waits or asks for its end */
    struct setup s = setup_start(8);
    struct urnic_listener *l;
    struct urnic_conn *conn;
    struct urnic_conn_attr attr = conn_attr(&s, "");
    attr.qp.qp_type = URNIC_QPT_UD;
    attr.timeout_ms = 1000;
    OK(urnic_listen_addr(s.ctx, NULL, 7003, 4, &l));
    ck_assert_int_eq(urnic_accept_conn(l, &attr, NULL, NULL, &conn), -EPROTOTYPE);
    ck_assert_int_eq(urnic_connect_addr(s.ctx, "127.0.0.1", 7003, &attr, NULL, NULL, &conn),
                     -EPROTOTYPE);
    OK(urnic_close_listener(l));
    setup_end(&s);
}
END_TEST

START_TEST(private_data_that_is_none)
{
    /* A length without data is refused, and nothing is sent */
    struct setup s = setup_start(8);
    struct urnic_conn *conn;
    struct urnic_conn_attr attr = conn_attr(&s, "");
    attr.param.private_data = NULL;
    attr.param.private_data_len = 1;
    ck_assert_int_eq(urnic_connect_addr(s.ctx, "127.0.0.1", 1, &attr, NULL, NULL, &conn), -EINVAL);
    setup_end(&s);
}
END_TEST

START_TEST(shm_07_fork)
{
    /* SHM-07 a child takes none of its parent's connections, makes no ids, and knows at once */
    struct setup s = setup_start(8);
    struct urnic_cm_channel *ch;
    struct urnic_cm_id *id, *unused;
    struct urnic_listener *l;
    struct urnic_conn *conn;
    struct urnic_conn_attr attr = conn_attr(&s, "");
    attr.timeout_ms = 1000;
    OK(urnic_create_cm_channel(s.ctx, &ch));
    OK(urnic_create_id(ch, URNIC_PS_TCP, NULL, &unused));
    OK(urnic_listen_addr(s.ctx, NULL, 7002, 4, &l));
    pid_t child = fork();
    if (child == 0) {
        bool refused = urnic_accept_conn(l, &attr, NULL, NULL, &conn) == -EPERM &&
                       urnic_create_id(ch, URNIC_PS_TCP, NULL, &id) == -EPERM &&
                       urnic_destroy_id(unused) == -EPERM;
        _exit(refused ? 0 : 1);
    }
    await_child(child);
    OK(urnic_close_listener(l));
    OK(urnic_destroy_id(unused));
    OK(urnic_destroy_cm_channel(ch));
    setup_end(&s);
}
END_TEST

START_TEST(cm_35_events_and_rejection)
{
    /* CM-35 the event interface: a listener that refuses, with private data */
    struct setup s = setup_start(8);
    struct urnic_cm_channel *ch;
    struct urnic_cm_id *listen, *id;
    struct urnic_cm_event ev;
    struct sockaddr_in sin = {
        .sin_family = AF_INET, .sin_port = htons(7002), .sin_addr.s_addr = htonl(0x7F000001)};
    OK(urnic_create_cm_channel(s.ctx, &ch));
    ck_assert_int_eq(urnic_create_id(ch, (enum urnic_port_space)0x0002, NULL, &id), -EINVAL);
    OK(urnic_create_id(ch, URNIC_PS_TCP, &listen, &listen));
    OK(urnic_bind_addr(listen, (struct sockaddr *)&sin));
    OK(urnic_listen(listen, 1));
    OK(urnic_create_id(ch, URNIC_PS_TCP, &id, &id));
    OK(urnic_resolve_addr(id, NULL, (struct sockaddr *)&sin, 1000));
    OK(urnic_get_cm_event(ch, &ev));
    ck_assert_int_eq(ev.event, URNIC_CM_ADDR_RESOLVED);
    ck_assert_ptr_eq(ev.id, id);
    OK(urnic_resolve_route(id, 1000));
    OK(urnic_get_cm_event(ch, &ev));
    OK(urnic_connect(id, &(struct urnic_conn_param){.qp_num = 0x55}));
    OK(urnic_get_cm_event(ch, &ev));
    ck_assert_int_eq(ev.event, URNIC_CM_CONNECT_REQUEST);
    ck_assert_ptr_eq(ev.listen, listen);
    ck_assert_ptr_ne(ev.id, listen);
    ck_assert_uint_eq(ev.qp_num, 0x55);
    ck_assert_ptr_eq(urnic_id_context(ev.id), &listen);
    struct urnic_cm_id *child = ev.id;
    OK(urnic_reject(child, "no", 2));
    OK(urnic_get_cm_event(ch, &ev));
    ck_assert_int_eq(ev.event, URNIC_CM_REJECTED);
    ck_assert_int_eq(ev.status, 28);
    ck_assert_str_eq(urnic_cm_event_str(ev.event), "rejected");
    ck_assert_int_eq(urnic_destroy_cm_channel(ch), -EBUSY);
    OK(urnic_destroy_id(child));
    OK(urnic_destroy_id(id));
    OK(urnic_destroy_id(listen));
    OK(urnic_destroy_cm_channel(ch));
    setup_end(&s);
}
END_TEST

static bool readable(struct urnic_cm_channel *ch)
{
    struct pollfd p = {.fd = urnic_cm_channel_fd(ch), .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

START_TEST(cm_35_unread_events_go_with_their_id)
{
    /* CM-35 a channel that is readable has an event, not one of a destroyed id */
    struct setup s = setup_start(8);
    struct urnic_cm_channel *ch, *far;
    struct urnic_cm_id *listen, *id[2], *caller;
    struct urnic_cm_event ev;
    struct sockaddr_in sin = {
        .sin_family = AF_INET, .sin_port = htons(7003), .sin_addr.s_addr = htonl(0x7F000001)};
    OK(urnic_create_cm_channel(s.ctx, &ch));
    OK(urnic_create_cm_channel(s.ctx, &far));
    for (int i = 0; i < 2; i++) {
        OK(urnic_create_id(ch, URNIC_PS_TCP, NULL, &id[i]));
        OK(urnic_resolve_addr(id[i], NULL, (struct sockaddr *)&sin, 1000));
    }
    while (!readable(ch))
        usleep(1000);
    usleep(10000);
    OK(urnic_destroy_id(id[1])); /* its event comes after the other one's */
    OK(urnic_get_cm_event(ch, &ev));
    ck_assert_ptr_eq(ev.id, id[0]);
    ck_assert(!readable(ch));
    OK(urnic_destroy_id(id[0]));

    /* and a request is rejected when its listener is destroyed before the program takes it */
    OK(urnic_create_id(ch, URNIC_PS_TCP, NULL, &listen));
    OK(urnic_bind_addr(listen, (struct sockaddr *)&sin));
    OK(urnic_listen(listen, 1));
    OK(urnic_create_id(far, URNIC_PS_TCP, NULL, &caller));
    OK(urnic_resolve_addr(caller, NULL, (struct sockaddr *)&sin, 1000));
    OK(urnic_get_cm_event(far, &ev));
    OK(urnic_resolve_route(caller, 1000));
    OK(urnic_get_cm_event(far, &ev));
    OK(urnic_connect(caller, &(struct urnic_conn_param){.qp_num = 0x55}));
    while (!readable(ch))
        usleep(1000);
    OK(urnic_destroy_id(listen));
    ck_assert(!readable(ch));
    /* CM-35 a program that has seen the channel readable doesn't wait for an event */
    alarm(5);
    ck_assert_int_eq(urnic_get_cm_event(ch, &ev), -EAGAIN);
    alarm(0);
    OK(urnic_destroy_id(caller));
    OK(urnic_destroy_cm_channel(far));
    OK(urnic_destroy_cm_channel(ch));
    setup_end(&s);
}
END_TEST

START_TEST(cm_35_ids)
{
    /* CM-35 the contents of an id, its own refusals, an event that comes before the reply of its
     * request, and a queue pair that outlives it */
    struct setup s = setup_start(8);
    const struct sockaddr nowhere = {.sa_family = AF_UNIX};
    const struct sockaddr_in sin = {
        .sin_family = AF_INET, .sin_port = htons(7004), .sin_addr.s_addr = htonl(0x7F000001)};
    const struct urnic_send_wr send = {.opcode = URNIC_WR_SEND};
    struct urnic_conn_attr attr = conn_attr(&s, "");
    struct urnic_cm_channel *ch;
    struct urnic_cm_id *id;
    struct urnic_cm_event ev;
    struct urnic_qp *qp;
    OK(urnic_create_cm_channel(s.ctx, &ch));
    OK(urnic_create_id(ch, URNIC_PS_TCP, &s, &id));
    ck_assert_ptr_eq(urnic_id_context(id), &s);
    urnic_id_set_context(id, &ev);
    ck_assert_ptr_eq(urnic_id_context(id), &ev);
    ck_assert_int_eq(urnic_bind_addr(id, &nowhere), -EAFNOSUPPORT);
    ck_assert_int_eq(urnic_resolve(id, NULL, &nowhere, 0), -EAFNOSUPPORT);
    ck_assert_int_eq(urnic_reject(id, NULL, 1), -EINVAL);
    OK(urnic_resolve(id, NULL, (const struct sockaddr *)&sin, 1000));
    const uint32_t handle = id->handle;
    id->handle = 0; /* as if the reply had not been read */
    OK(urnic_get_cm_event(ch, &ev));
    ck_assert_ptr_eq(ev.id, id);
    ck_assert_uint_eq(id->handle, handle);
    OK(urnic_create_id_qp(id, s.pd, &attr.qp, &qp));
    ck_assert_int_eq(urnic_post_send(qp, &send, NULL), -EINVAL);
    OK(urnic_destroy_id(id));
    ck_assert_ptr_null(qp->id);
    OK(urnic_destroy_qp(qp));
    OK(urnic_destroy_cm_channel(ch));
    setup_end(&s);
}
END_TEST

UNIT_MAIN("client cm", cm_35_blocking_calls, cm_35_nobody_listens, cm_35_no_answer_in_time,
          no_datagrams, private_data_that_is_none, shm_07_fork, cm_35_events_and_rejection,
          cm_35_unread_events_go_with_their_id, cm_35_ids)
