/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Example 1: connect by IP address, send messages back and forth, measure the time.
 *
 *     pingpong -d urn0                    on one machine: the server
 *     pingpong -d urn1 10.0.0.1           on the other: 1000 rounds
 *
 * What it shows: opening a device, memory that the device can reach, one completion queue,
 * connecting in one blocking call, posting, polling.
 */
#include <getopt.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <urnic/urnic.h>

#define MESSAGE 64
#define PORT    7471

struct app {
    struct urnic_context *ctx;
    struct urnic_pd *pd;
    struct urnic_cq *cq;
    struct urnic_mr *mr;
    char *buf;           /* the first half to send from, the second half to receive into */
    int sends, receives; /* completed operations that no wait has consumed yet */
};

static void check(int err, const char *what)
{
    if (err < 0) {
        fprintf(stderr, "%s: %s\n", what, strerror(-err));
        exit(1);
    }
}

static int post_receive(void *arg, struct urnic_qp *qp)
{
    struct app *a = arg;
    struct urnic_sge sge = {
        .addr = (uintptr_t)a->buf + MESSAGE, .length = MESSAGE, .lkey = a->mr->lkey};
    struct urnic_recv_wr wr = {.sg_list = &sge, .num_sge = 1};
    return urnic_post_recv(qp, &wr, NULL);
}

static void post_send(struct app *a, struct urnic_qp *qp)
{
    struct urnic_sge sge = {.addr = (uintptr_t)a->buf, .length = MESSAGE, .lkey = a->mr->lkey};
    struct urnic_send_wr wr = {
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = URNIC_WR_SEND,
        .send_flags = URNIC_SEND_SIGNALED,
    };
    check(urnic_post_send(qp, &wr, NULL), "post send");
}

/* Has the peer said goodbye? Getting that event moves the queue pair to its error state, and
 * requests still posted then complete as flushed. */
static void look_for_goodbye(struct urnic_conn *conn)
{
    struct pollfd p = {.fd = urnic_cm_channel_fd(conn->channel), .events = POLLIN};
    struct urnic_cm_event ev;
    if (poll(&p, 1, 0) == 1)
        check(urnic_get_cm_event(conn->channel, &ev), "event");
}

/* Poll until this many of each kind are complete. They may come in any order: the peer's next
 * message can arrive before the acknowledgement of our last one. False: the peer has gone. */
static bool wait_for(struct app *a, struct urnic_conn *conn, int sends, int receives)
{
    struct urnic_wc wc;
    unsigned idle = 0;
    while (a->sends < sends || a->receives < receives) {
        int n = urnic_poll_cq(a->cq, 1, &wc);
        check(n, "poll");
        if (n == 0) {
            if (++idle % 64 == 0)
                sched_yield(); /* on a small machine the daemon needs this core, too */
            if (idle % 4096 == 0)
                look_for_goodbye(conn);
            continue;
        }
        if (wc.status == URNIC_WC_WR_FLUSH_ERR)
            return false;
        if (wc.status != URNIC_WC_SUCCESS) {
            fprintf(stderr, "completion: %s\n", urnic_wc_status_str(wc.status));
            exit(1);
        }
        if (wc.opcode == URNIC_WC_RECV)
            a->receives++;
        else
            a->sends++;
    }
    a->sends -= sends;
    a->receives -= receives;
    return true;
}

static void setup(struct app *a, const char *device)
{
    void *buf;
    check(urnic_open(device, &a->ctx), "open device");
    check(urnic_alloc_pd(a->ctx, &a->pd), "protection domain");
    check(urnic_create_cq(a->ctx, 16, NULL, NULL, &a->cq), "completion queue");
    check(urnic_alloc(a->ctx, 2ul * MESSAGE, &buf), "memory");
    check(urnic_reg_mr(a->pd, buf, 2ul * MESSAGE, URNIC_ACCESS_LOCAL_WRITE, &a->mr), "register");
    a->buf = buf;
}

static void serve(struct app *a, struct urnic_conn_attr *attr)
{
    struct urnic_listener *listener;
    struct urnic_conn *conn;
    check(urnic_listen_addr(a->ctx, NULL, PORT, 1, &listener), "listen");
    printf("listening\n");
    fflush(stdout);
    attr->timeout_ms = -1;
    check(urnic_accept_conn(listener, attr, post_receive, a, &conn), "accept");
    int rounds = 0;
    while (wait_for(a, conn, 0, 1)) {
        post_receive(a, conn->qp); /* first, so that the next message finds it */
        memcpy(a->buf, a->buf + MESSAGE, MESSAGE);
        post_send(a, conn->qp);
        if (!wait_for(a, conn, 1, 0))
            break;
        rounds++;
    }
    printf("answered %d messages\n", rounds);
    urnic_close_conn(conn);
    urnic_close_listener(listener);
}

static void ping(struct app *a, struct urnic_conn_attr *attr, const char *server, int rounds)
{
    struct urnic_conn *conn;
    struct timespec begin, end;
    check(urnic_connect_addr(a->ctx, server, PORT, attr, post_receive, a, &conn), "connect");
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int i = 0; i < rounds; i++) {
        snprintf(a->buf, MESSAGE, "message %d", i);
        post_send(a, conn->qp);
        bool answered = wait_for(a, conn, 1, 1);
        if (!answered || memcmp(a->buf, a->buf + MESSAGE, MESSAGE) != 0) {
            fprintf(stderr, "round %d: %s\n", i,
                    answered ? "the answer is not what was sent" : "the server has gone");
            exit(1);
        }
        post_receive(a, conn->qp);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    double us =
        (double)(end.tv_sec - begin.tv_sec) * 1e6 + (double)(end.tv_nsec - begin.tv_nsec) / 1e3;
    printf("%d rounds, half of a round trip took %.1f us\n", rounds, us / rounds / 2);
    urnic_close_conn(conn);
}

int main(int argc, char **argv)
{
    struct app a = {0};
    const char *device = NULL;
    int rounds = 1000;
    for (int opt; (opt = getopt(argc, argv, "d:n:")) != -1;) {
        if (opt == 'd')
            device = optarg;
        else if (opt == 'n')
            rounds = atoi(optarg);
        else
            return 2;
    }
    setup(&a, device);
    struct urnic_conn_attr attr = {
        .pd = a.pd,
        .qp = {.send_cq = a.cq,
               .recv_cq = a.cq,
               .qp_type = URNIC_QPT_RC,
               .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}},
    };
    if (optind < argc)
        ping(&a, &attr, argv[optind], rounds);
    else
        serve(&a, &attr);
    urnic_dereg_mr(a.mr);
    urnic_free(a.ctx, a.buf);
    urnic_destroy_cq(a.cq);
    urnic_dealloc_pd(a.pd);
    urnic_close(a.ctx);
    return 0;
}
