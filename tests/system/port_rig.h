/* SPDX-License-Identifier: BSD-3-Clause
 *
 * For tests of ports that a program opens for itself: an end of a connection, with memory of the
 * program's own, and the operations of the two ends.
 */
#ifndef URNIC_PORT_RIG_H
#define URNIC_PORT_RIG_H

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "unit.h"
#include "urnic/urnic.h"

#define PORT_SERVICE 7473
#define PORT_ALL                                                                                   \
    (URNIC_ACCESS_LOCAL_WRITE | URNIC_ACCESS_REMOTE_WRITE | URNIC_ACCESS_REMOTE_READ |             \
     URNIC_ACCESS_REMOTE_ATOMIC)
#define OK(call) ck_assert_int_eq((call), 0)

/* Where an end's memory is, as it tells the other when they connect. */
struct port_where {
    uint64_t addr;
    uint32_t rkey;
};

struct port_end {
    struct urnic_context *ctx;
    struct urnic_pd *pd;
    struct urnic_channel *channel; /* of cq */
    struct urnic_cq *cq;
    struct urnic_mr *mr;
    struct urnic_listener *listener;
    struct urnic_conn *conn;
    struct port_where there;
    uint8_t *mem; /* of malloc */
    bool shared;  /* `mem` is of urnic_alloc */
    size_t size;
};

static inline uint64_t port_now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline void port_nap(unsigned ms)
{
    const struct timespec ts = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    nanosleep(&ts, NULL);
}

/* A port of this program's, with `size` octets of malloc's registered for everything. */
static inline void port_open(struct port_end *e, const char *spec, size_t size)
{
    char why[512];
    *e = (struct port_end){.size = size};
    int err = urnic_open_port(spec, &e->ctx, why, sizeof(why));
    ck_assert_msg(err == 0, "%s: %d, %s", spec, err, why);
    OK(urnic_alloc_pd(e->ctx, &e->pd));
    OK(urnic_create_channel(e->ctx, &e->channel));
    OK(urnic_create_cq(e->ctx, 64, NULL, e->channel, &e->cq));
    e->mem = calloc(1, size);
    OK(urnic_reg_mr(e->pd, e->mem, size, PORT_ALL, &e->mr));
}

static inline int port_post_recv(void *arg, struct urnic_qp *qp)
{
    struct port_end *e = arg;
    struct urnic_sge sge = {
        .addr = (uintptr_t)e->mem, .length = (uint32_t)e->size, .lkey = e->mr->lkey};
    struct urnic_recv_wr wr = {.wr_id = 7, .sg_list = &sge, .num_sge = 1};
    return urnic_post_recv(qp, &wr, NULL);
}

static inline struct urnic_conn_attr port_attr(struct port_end *e, struct port_where *here)
{
    *here = (struct port_where){.addr = (uintptr_t)e->mem, .rkey = e->mr->rkey};
    return (struct urnic_conn_attr){
        .pd = e->pd,
        .qp = {.send_cq = e->cq,
               .recv_cq = e->cq,
               .qp_type = URNIC_QPT_RC,
               .cap = {.max_send_wr = 32, .max_recv_wr = 32, .max_send_sge = 1, .max_recv_sge = 1}},
        .param = {.private_data = here, .private_data_len = sizeof(*here)},
        .timeout_ms = 20000,
    };
}

static inline void port_listen(struct port_end *e)
{
    OK(urnic_listen_addr(e->ctx, NULL, PORT_SERVICE, 4, &e->listener));
}

static inline void port_accept(struct port_end *e)
{
    struct port_where here;
    struct urnic_conn_attr attr = port_attr(e, &here);
    OK(urnic_accept_conn(e->listener, &attr, port_post_recv, e, &e->conn));
    memcpy(&e->there, e->conn->private_data, sizeof(e->there));
}

/* Connect. Retries for 10 s while no server listens or answers there. */
static inline void port_connect(struct port_end *e, const char *to)
{
    struct port_where here;
    struct urnic_conn_attr attr = port_attr(e, &here);
    uint64_t until = port_now() + 10000000000u;
    int err;
    while ((err = urnic_connect_addr(e->ctx, to, PORT_SERVICE, &attr, port_post_recv, e,
                                     &e->conn)) < 0 &&
           port_now() < until)
        port_nap(20);
    OK(err);
    memcpy(&e->there, e->conn->private_data, sizeof(e->there));
}

static inline void port_close(struct port_end *e)
{
    if (e->conn)
        OK(urnic_close_conn(e->conn));
    if (e->listener)
        OK(urnic_close_listener(e->listener));
    OK(urnic_dereg_mr(e->mr));
    if (e->shared)
        OK(urnic_free(e->ctx, e->mem));
    else
        free(e->mem);
    OK(urnic_destroy_cq(e->cq));
    if (e->channel)
        OK(urnic_destroy_channel(e->channel));
    OK(urnic_dealloc_pd(e->pd));
    OK(urnic_close(e->ctx));
}

/* Two ports of this process, joined by an emulated link with these keys; more: keys of both
 * devices. */
static inline void port_pair(struct port_end *a, struct port_end *b, const char *link,
                             const char *more, size_t size)
{
    char spec[256];
    snprintf(spec, sizeof(spec), "mem:%s,addr=10.0.0.1/24%s", link, more);
    port_open(a, spec, size);
    snprintf(spec, sizeof(spec), "mem:%.*s,addr=10.0.0.2/24%s", (int)strcspn(link, ","), link,
             more);
    port_open(b, spec, size);
}

static inline void *port_accept_thread(void *e)
{
    port_accept(e);
    return NULL;
}

/* Connect the two. */
static inline void port_join(struct port_end *a, struct port_end *b)
{
    pthread_t thread;
    port_listen(a);
    OK(pthread_create(&thread, NULL, port_accept_thread, a));
    port_connect(b, "10.0.0.1");
    OK(pthread_join(thread, NULL));
}

/* The next completion, within 20 s. */
static inline struct urnic_wc port_await(struct port_end *e)
{
    struct urnic_wc wc = {.status = URNIC_WC_GENERAL_ERR};
    uint64_t until = port_now() + 20000000000u;
    int n;
    while ((n = urnic_poll_cq(e->cq, 1, &wc)) == 0 && port_now() < until)
        sched_yield();
    ck_assert_int_eq(n, 1);
    return wc;
}

/* Post one request between here and there, at these offsets. */
static inline int port_post(struct port_end *e, enum urnic_wr_opcode opcode, size_t here,
                            size_t there, uint32_t len)
{
    struct urnic_sge sge = {.addr = (uintptr_t)e->mem + here, .length = len, .lkey = e->mr->lkey};
    struct urnic_send_wr wr = {
        .wr_id = 1,
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = opcode,
        .send_flags = URNIC_SEND_SIGNALED,
    };
    if (opcode == URNIC_WR_ATOMIC_FETCH_AND_ADD)
        wr.atomic = (struct urnic_wr_atomic){
            .remote_addr = e->there.addr + there, .compare_add = 1, .rkey = e->there.rkey};
    else
        wr.rdma =
            (struct urnic_wr_rdma){.remote_addr = e->there.addr + there, .rkey = e->there.rkey};
    return urnic_post_send(e->conn->qp, &wr, NULL);
}

/* ... and wait for its completion, which is a good one. */
static inline void port_do(struct port_end *e, enum urnic_wr_opcode opcode, size_t here,
                           size_t there, uint32_t len)
{
    OK(port_post(e, opcode, here, there, len));
    struct urnic_wc wc = port_await(e);
    ck_assert_msg(wc.status == URNIC_WC_SUCCESS, "%s", urnic_wc_status_str(wc.status));
}

/* Fork; the child runs fn and exits, with 0 unless a check fails. */
static inline pid_t port_child(void (*fn)(void *arg), void *arg)
{
    fflush(NULL);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        fn(arg);
        _exit(0);
    }
    return pid;
}

static inline void port_await_child(pid_t pid)
{
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", (unsigned)status);
}

struct port_test {
    const char *name;
    const TTest *test;
    int n; /* times: _i counts them */
};

/* Run the tests; the result is main()'s. */
static inline int port_run(const char *name, const struct port_test *tests, size_t n)
{
    Suite *suite = suite_create(name);
    for (size_t i = 0; i < n; i++) {
        TCase *tc = tcase_create(tests[i].name);
        tcase_set_timeout(tc, 120);
        tcase_add_loop_test(tc, tests[i].test, 0, tests[i].n);
        suite_add_tcase(suite, tc);
    }
    return unit_run(suite);
}

#endif
