/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connecting and accepting in one blocking call each: the event-based calls in their usual order,
 * under one deadline. Each connection has a channel of its own, so connections don't wait for each
 * other.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "client_cm.h"

#define DEFAULT_TIMEOUT_MS 10000

struct urnic_listener {
    struct urnic_context *ctx;
    struct urnic_cm_channel *channel;
    struct urnic_cm_id *id;
    uint16_t port;
};

static int64_t now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static int64_t deadline_of(int timeout_ms)
{
    if (timeout_ms < 0)
        return -1;
    return now_ms() + (timeout_ms != 0 ? timeout_ms : DEFAULT_TIMEOUT_MS);
}

static int remaining(int64_t deadline)
{
    if (deadline < 0)
        return -1;
    int64_t left = deadline - now_ms();
    return left > 0 ? (int)left : 0;
}

static int wait_event(struct urnic_cm_channel *ch, int64_t deadline, struct urnic_cm_event *ev)
{
    for (;;) {
        int err = client_cm_next(ch, ev, false);
        if (err != -EAGAIN)
            return err;
        int n = client_await(ch->base.ctx, ch->base.in.fd, remaining(deadline));
        if (n <= 0 && !(n < 0 && errno == EINTR))
            return n < 0 ? -errno : -ETIMEDOUT;
    }
}

static int event_error(const struct urnic_cm_event *ev)
{
    if (ev->event == URNIC_CM_REJECTED)
        return -ECONNREFUSED;
    if (ev->status < 0)
        return ev->status;
    return ev->event == URNIC_CM_CONNECT_ERROR || ev->event == URNIC_CM_DISCONNECTED
               ? -ECONNABORTED
               : -EHOSTUNREACH;
}

/* Wait for one kind of event; any other event ends the attempt. */
static int expect(struct urnic_cm_channel *ch, int64_t deadline, enum urnic_cm_event_type want,
                  struct urnic_cm_event *ev)
{
    int err = wait_event(ch, deadline, ev);
    if (err < 0)
        return err;
    return ev->event == want ? 0 : event_error(ev);
}

static int parse_ip(const char *ip, uint16_t port, struct sockaddr_storage *out)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    memset(out, 0, sizeof(*out));
    if (ip == NULL || inet_pton(AF_INET6, ip, &in6.sin6_addr) == 1)
        memcpy(out, &in6, sizeof(in6));
    else if (inet_pton(AF_INET, ip, &in.sin_addr) == 1)
        memcpy(out, &in, sizeof(in));
    else
        return -EINVAL;
    return 0;
}

int urnic_close_conn(struct urnic_conn *conn)
{
    int err = 0;
    if (conn->id != NULL)
        err = urnic_destroy_ep(conn->id); /* which disconnects */
    if (conn->channel != NULL && err == 0)
        err = urnic_destroy_cm_channel(conn->channel);
    if (err == 0)
        free(conn);
    return err;
}

/* The queue pair of a connection whose id exists: created, in INIT, prepared. */
static int make_qp(struct urnic_conn *conn, const struct urnic_conn_attr *attr,
                   int (*prepare)(void *arg, struct urnic_qp *qp), void *arg)
{
    struct urnic_qp_init_attr init = attr->qp;
    int err = urnic_create_id_qp(conn->id, attr->pd, &init, &conn->qp);
    if (err == 0 && prepare != NULL)
        err = prepare(arg, conn->qp);
    return err > 0 ? -err : err; /* libibverbs' functions return errno values */
}

static void keep_private_data(struct urnic_conn *conn, const struct urnic_cm_event *ev)
{
    conn->private_data_len = ev->private_data_len;
    memcpy(conn->private_data, ev->private_data, sizeof(conn->private_data));
}

static int connect_steps(struct urnic_conn *conn, const struct sockaddr *dst,
                         const struct urnic_conn_attr *attr,
                         int (*prepare)(void *arg, struct urnic_qp *qp), void *arg)
{
    struct urnic_cm_event ev;
    int64_t deadline = deadline_of(attr->timeout_ms);
    int step_ms = deadline < 0 ? DEFAULT_TIMEOUT_MS : remaining(deadline);
    int err = urnic_resolve(conn->id, NULL, dst, step_ms);
    if (err == 0)
        err = expect(conn->channel, deadline, URNIC_CM_ROUTE_RESOLVED, &ev);
    if (err == 0)
        err = make_qp(conn, attr, prepare, arg);
    if (err == 0)
        err = urnic_connect(conn->id, &attr->param);
    if (err == 0)
        err = expect(conn->channel, deadline, URNIC_CM_ESTABLISHED, &ev);
    if (err == 0)
        keep_private_data(conn, &ev);
    return err;
}

int urnic_connect_addr(struct urnic_context *ctx, const char *ip, uint16_t port,
                       struct urnic_conn_attr *attr, int (*prepare)(void *arg, struct urnic_qp *qp),
                       void *arg, struct urnic_conn **out)
{
    struct sockaddr_storage dst;
    if (attr->qp.qp_type == URNIC_QPT_UD)
        return -EPROTOTYPE; /* the answer's address would be lost: urnic_conn has no place for it */
    int err = ip != NULL ? parse_ip(ip, port, &dst) : -EINVAL;
    if (err < 0)
        return err;
    struct urnic_conn *conn = calloc(1, sizeof(*conn));
    if (conn == NULL)
        return -ENOMEM;
    err = urnic_create_cm_channel(ctx, &conn->channel);
    if (err == 0)
        err = urnic_create_id(conn->channel, URNIC_PS_TCP, NULL, &conn->id);
    if (err == 0)
        err = connect_steps(conn, (const struct sockaddr *)&dst, attr, prepare, arg);
    if (err < 0) {
        urnic_close_conn(conn);
        return err;
    }
    *out = conn;
    return 0;
}

/* ---- the other side ---- */

/* Refuse unread requests, by reading them without a listener. */
static void drain(struct urnic_cm_channel *ch)
{
    struct urnic_cm_event ev;
    while (wait_event(ch, 0, &ev) == 0)
        ;
}

int urnic_close_listener(struct urnic_listener *l)
{
    int err = 0;
    if (l->id != NULL)
        err = urnic_destroy_id(l->id);
    if (l->channel != NULL && err == 0)
        drain(l->channel);
    if (l->channel != NULL && err == 0)
        err = urnic_destroy_cm_channel(l->channel);
    if (err == 0)
        free(l);
    return err;
}

int urnic_listen_addr(struct urnic_context *ctx, const char *ip, uint16_t port, int backlog,
                      struct urnic_listener **out)
{
    struct sockaddr_storage src;
    int err = parse_ip(ip, port, &src);
    if (err < 0)
        return err;
    struct urnic_listener *l = calloc(1, sizeof(*l));
    if (l == NULL)
        return -ENOMEM;
    l->ctx = ctx;
    err = urnic_create_cm_channel(ctx, &l->channel);
    if (err == 0)
        err = urnic_create_id(l->channel, URNIC_PS_TCP, NULL, &l->id);
    if (err == 0)
        err = urnic_bind_addr(l->id, (const struct sockaddr *)&src);
    if (err == 0)
        err = urnic_listen(l->id, backlog);
    if (err < 0) {
        urnic_close_listener(l);
        return err;
    }
    l->port = l->id->src.port;
    *out = l;
    return 0;
}

uint16_t urnic_listener_port(const struct urnic_listener *l)
{
    return l->port;
}

int urnic_listener_fd(const struct urnic_listener *l)
{
    return l->channel->base.in.fd;
}

/* A request that arrived in time is completed. Otherwise a caller that polls for peers again and
 * again, with short waits, would hang up on each of them. */
static int64_t handshake_deadline(int64_t deadline)
{
    int64_t least = deadline_of(0);
    return deadline < 0 || deadline > least ? deadline : least;
}

/* 1: the peer has given up, or requests another type of queue pair. */
static int accept_steps(struct urnic_conn *conn, int64_t deadline,
                        const struct urnic_conn_attr *attr,
                        int (*prepare)(void *arg, struct urnic_qp *qp), void *arg)
{
    struct urnic_cm_event ev;
    int err = make_qp(conn, attr, prepare, arg);
    if (err < 0) {
        urnic_reject(conn->id, NULL, 0);
        return err;
    }
    err = urnic_accept(conn->id, &attr->param);
    if (err == -ECONNABORTED || err == -EPROTOTYPE)
        return 1;
    if (err == 0)
        err = wait_event(conn->channel, handshake_deadline(deadline), &ev);
    return err == 0 && ev.event != URNIC_CM_ESTABLISHED ? 1 : err;
}

/* The connection of one request; 1 as above. */
static int accept_request(struct urnic_context *ctx, const struct urnic_cm_event *request,
                          int64_t deadline, const struct urnic_conn_attr *attr,
                          int (*prepare)(void *arg, struct urnic_qp *qp), void *arg,
                          struct urnic_conn **out)
{
    struct urnic_conn *conn = calloc(1, sizeof(*conn));
    if (conn == NULL) {
        urnic_destroy_id(request->id);
        return -ENOMEM;
    }
    conn->id = request->id;
    keep_private_data(conn, request);
    int err = urnic_create_cm_channel(ctx, &conn->channel);
    if (err == 0) {
        client_cm_move(conn->id, conn->channel);
        err = accept_steps(conn, deadline, attr, prepare, arg);
    }
    if (err != 0) {
        urnic_close_conn(conn);
        client_cm_drop_stale(request->listen->channel); /* its events may wait there */
        return err;
    }
    *out = conn;
    return 0;
}

int urnic_accept_conn(struct urnic_listener *l, struct urnic_conn_attr *attr,
                      int (*prepare)(void *arg, struct urnic_qp *qp), void *arg,
                      struct urnic_conn **out)
{
    struct urnic_cm_event ev;
    int64_t deadline = deadline_of(attr->timeout_ms);
    if (attr->qp.qp_type == URNIC_QPT_UD)
        return -EPROTOTYPE;
    for (;;) {
        int err = wait_event(l->channel, deadline, &ev);
        if (err == 0 && ev.event != URNIC_CM_CONNECT_REQUEST)
            continue;
        if (err == 0)
            err = accept_request(l->ctx, &ev, deadline, attr, prepare, arg, out);
        if (err <= 0)
            return err;
    }
}
