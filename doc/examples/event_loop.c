/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Example 5: one thread, one poll() for everything that can happen.
 *
 *     event_loop -d urn0                  on one machine: the server; ends after three connections
 *     event_loop -d urn1 10.0.0.1         on the other: three connections, 100 messages on each
 *
 * What it shows: events of connections, completion events and asynchronous events from three
 * descriptors of one loop; many connections on one channel; a shared receive queue. A handler may
 * destroy the object of another event that poll() has already announced: the call for that event
 * then returns -EAGAIN, and doesn't block.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <urnic/urnic.h>

#define CONNS    3
#define ROUNDS   100
#define MESSAGE  64
#define RECEIVES 16 /* buffers of all connections together */
#define PORT     7475

struct peer {
    struct urnic_cm_id *id; /* NULL: free place */
    struct urnic_qp *qp;
    int rounds;
};

struct app {
    struct urnic_context *ctx;
    struct urnic_pd *pd;
    struct urnic_channel *channel;
    struct urnic_cq *cq;
    struct urnic_srq *srq;
    struct urnic_cm_channel *cm;
    struct urnic_mr *mr;
    char *buf; /* RECEIVES to receive into, then one to send from for each connection */
    struct peer peer[CONNS];
    bool client;
    int ended, rounds; /* of all connections */
};

static void check(int err, const char *what)
{
    if (err < 0) {
        fprintf(stderr, "%s: %s\n", what, strerror(-err));
        exit(1);
    }
}

/* ---- messages ---- */

static void post_receive(struct app *a, uint64_t slot)
{
    struct urnic_sge sge = {
        .addr = (uintptr_t)a->buf + slot * MESSAGE, .length = MESSAGE, .lkey = a->mr->lkey};
    struct urnic_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1};
    check(urnic_post_srq_recv(a->srq, &wr, NULL), "post receive");
}

static void post_send(struct app *a, struct peer *p, const char *text)
{
    char *message = a->buf + (RECEIVES + (p - a->peer)) * MESSAGE;
    struct urnic_sge sge = {.addr = (uintptr_t)message, .length = MESSAGE, .lkey = a->mr->lkey};
    struct urnic_send_wr wr = {
        .sg_list = &sge, .num_sge = 1, .opcode = URNIC_WR_SEND, .send_flags = URNIC_SEND_SIGNALED};
    snprintf(message, MESSAGE, "%s", text);
    check(urnic_post_send(p->qp, &wr, NULL), "post send");
}

static struct peer *by_number(struct app *a, uint32_t qp_num)
{
    for (int i = 0; i < CONNS; i++)
        if (a->peer[i].qp && urnic_qp_num(a->peer[i].qp) == qp_num)
            return &a->peer[i];
    return NULL;
}

/* A message has arrived: the server answers; the client sends the next one, or hangs up. */
static void received(struct app *a, struct peer *p, uint64_t slot)
{
    char text[MESSAGE];
    memcpy(text, a->buf + slot * MESSAGE, MESSAGE);
    post_receive(a, slot);
    a->rounds++;
    if (a->client && ++p->rounds == ROUNDS)
        check(urnic_disconnect(p->id), "disconnect");
    else
        post_send(a, p, text);
}

static void on_completion_event(struct app *a)
{
    struct urnic_cq *cq;
    struct urnic_wc wc;
    int n = urnic_get_cq_event(a->channel, &cq, NULL);
    if (n == -EAGAIN)
        return;
    check(n, "completion event");
    urnic_ack_cq_events(cq, 1);
    check(urnic_req_notify_cq(cq, false), "arm"); /* first: the poll follows */
    while ((n = urnic_poll_cq(cq, 1, &wc)) > 0) {
        struct peer *p = by_number(a, wc.qp_num);
        if (p && wc.status == URNIC_WC_SUCCESS && wc.opcode == URNIC_WC_RECV)
            received(a, p, wc.wr_id);
    }
    check(n, "poll");
}

/* ---- connections ---- */

static void make_qp(struct app *a, struct peer *p, struct urnic_cm_id *id)
{
    struct urnic_qp_init_attr init = {.send_cq = a->cq,
                                      .recv_cq = a->cq,
                                      .srq = a->srq,
                                      .qp_type = URNIC_QPT_RC,
                                      .cap = {.max_send_wr = 4, .max_send_sge = 1}};
    p->id = id;
    p->rounds = 0;
    urnic_id_set_context(id, p);
    check(urnic_create_id_qp(id, a->pd, &init, &p->qp), "queue pair");
}

static struct peer *free_place(struct app *a)
{
    for (int i = 0; i < CONNS; i++)
        if (!a->peer[i].id)
            return &a->peer[i];
    return NULL;
}

/* The end of a connection. Its queue pair may have an unread asynchronous event. */
static void ended(struct app *a, struct urnic_cm_id *id)
{
    struct peer *p = urnic_id_context(id);
    check(urnic_destroy_ep(id), "destroy");
    *p = (struct peer){0};
    a->ended++;
}

static void on_connection_event(struct app *a)
{
    const struct urnic_conn_param param = {0};
    struct urnic_cm_event ev;
    struct peer *p;
    int err = urnic_get_cm_event(a->cm, &ev);
    if (err == -EAGAIN)
        return;
    check(err, "connection event");
    switch (ev.event) {
    case URNIC_CM_CONNECT_REQUEST:
        p = free_place(a);
        if (!p) {
            check(urnic_destroy_id(ev.id), "refuse");
            break;
        }
        make_qp(a, p, ev.id);
        check(urnic_accept(ev.id, &param), "accept");
        break;
    case URNIC_CM_ROUTE_RESOLVED:
        make_qp(a, urnic_id_context(ev.id), ev.id);
        check(urnic_connect(ev.id, &param), "connect");
        break;
    case URNIC_CM_ESTABLISHED:
        if (a->client)
            post_send(a, urnic_id_context(ev.id), "message");
        break;
    case URNIC_CM_DISCONNECTED:
        ended(a, ev.id);
        break;
    case URNIC_CM_TIMEWAIT_EXIT:
        break;
    default:
        fprintf(stderr, "%s\n", urnic_cm_event_str(ev.event));
        exit(1);
    }
}

/* ---- the rest ---- */

static void on_async_event(struct app *a)
{
    struct urnic_async_event ev;
    int err = urnic_get_async_event(a->ctx, &ev);
    if (err == -EAGAIN)
        return;
    check(err, "asynchronous event");
    if (ev.type == URNIC_EVENT_DEVICE_FATAL) {
        fprintf(stderr, "the daemon has gone\n");
        exit(1);
    }
    urnic_ack_async_event(&ev);
}

static void loop(struct app *a)
{
    struct pollfd fds[] = {
        {.fd = urnic_cm_channel_fd(a->cm), .events = POLLIN},
        {.fd = urnic_channel_fd(a->channel), .events = POLLIN},
        {.fd = urnic_async_fd(a->ctx), .events = POLLIN},
    };
    while (a->ended < CONNS) {
        if (poll(fds, 3, -1) < 0) {
            if (errno != EINTR)
                check(-errno, "poll");
            continue;
        }
        if (fds[0].revents)
            on_connection_event(a);
        if (fds[1].revents)
            on_completion_event(a);
        if (fds[2].revents)
            on_async_event(a);
    }
}

static void setup(struct app *a, const char *device)
{
    size_t size = (size_t)(RECEIVES + CONNS) * MESSAGE;
    struct urnic_srq_attr srq = {.max_wr = RECEIVES, .max_sge = 1};
    void *buf;
    check(urnic_open(device, &a->ctx), "open device");
    check(urnic_alloc_pd(a->ctx, &a->pd), "protection domain");
    check(urnic_create_channel(a->ctx, &a->channel), "channel");
    check(urnic_create_cq(a->ctx, 64, NULL, a->channel, &a->cq), "completion queue");
    check(urnic_req_notify_cq(a->cq, false), "arm");
    check(urnic_create_srq(a->pd, &srq, NULL, &a->srq), "shared receive queue");
    check(urnic_create_cm_channel(a->ctx, &a->cm), "connection channel");
    check(urnic_alloc(a->ctx, size, &buf), "memory");
    check(urnic_reg_mr(a->pd, buf, size, URNIC_ACCESS_LOCAL_WRITE, &a->mr), "register");
    a->buf = buf;
    for (uint64_t slot = 0; slot < RECEIVES; slot++)
        post_receive(a, slot);
}

static void teardown(struct app *a)
{
    urnic_destroy_cm_channel(a->cm);
    urnic_dereg_mr(a->mr);
    urnic_free(a->ctx, a->buf);
    urnic_destroy_srq(a->srq);
    urnic_destroy_cq(a->cq);
    urnic_destroy_channel(a->channel);
    urnic_dealloc_pd(a->pd);
    urnic_close(a->ctx);
}

int main(int argc, char **argv)
{
    struct app a = {0};
    struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    struct urnic_cm_id *id, *listener = NULL;
    const char *device = NULL;
    for (int opt; (opt = getopt(argc, argv, "d:")) != -1;) {
        if (opt != 'd')
            return 2;
        device = optarg;
    }
    if (optind < argc && inet_pton(AF_INET, argv[optind], &sin.sin_addr) != 1)
        return 2;
    setup(&a, device);
    a.client = optind < argc;
    if (a.client) {
        for (int i = 0; i < CONNS; i++) {
            check(urnic_create_id(a.cm, URNIC_PS_TCP, &a.peer[i], &id), "id");
            check(urnic_resolve(id, NULL, (const struct sockaddr *)&sin, 0), "resolve");
        }
    } else {
        check(urnic_create_id(a.cm, URNIC_PS_TCP, NULL, &listener), "id");
        check(urnic_bind_addr(listener, (const struct sockaddr *)&sin), "bind");
        check(urnic_listen(listener, CONNS), "listen");
        printf("listening\n");
        fflush(stdout);
    }
    loop(&a);
    printf("%d connections, %d messages %s\n", a.ended, a.rounds,
           a.client ? "answered" : "received");
    if (listener)
        urnic_destroy_id(listener);
    teardown(&a);
    return 0;
}
