/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See talk.h. Waiting polls, yields after each empty look, and watches the connections' channels
 * now and then: the event DISCONNECTED moves a queue pair to ERR and flushes its receives.
 */
#include "talk.h"

#include "each_device.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WATCH_EVERY 1024 /* empty polls between two looks at the channels */

int talk_option(struct talk_options *o, int c, const char *value)
{
    switch (c) {
    case 'p':
        return cli_port(value, &o->port);
    case 'd':
        o->device = value;
        return 0;
    case 'j':
        o->json = true;
        return 0;
    default:
        return 1;
    }
}

int talk_operands(struct talk_options *o, int argc, char *const *argv)
{
    if (cli_operands(argc, argv, 0, 1, "") != CLI_OK)
        return CLI_USAGE;
    o->where = argv[optind];
    return o->where && cli_host(o->where, o->host, sizeof(o->host), &o->port) < 0 ? CLI_USAGE
                                                                                  : CLI_OK;
}

static int set_up(struct talk *t, const char *device, size_t size, unsigned conns, unsigned depth)
{
    struct urnic_context *ctx = NULL;
    *t = (struct talk){.max_conns = conns, .depth = depth, .shortest = UINT32_MAX};
    int rc = urnic_open(device, &ctx);
    if (!rc)
        rc = resources_open(&t->res, ctx, (int)(2 * conns * depth), false, size,
                            URNIC_ACCESS_REMOTE_READ | URNIC_ACCESS_REMOTE_WRITE);
    t->res.ctx = ctx; /* closed by talk_close, also after a failure here */
    t->conns = calloc(conns, sizeof(*t->conns));
    t->gone = calloc(conns, sizeof(*t->gone));
    if (!rc && (!t->conns || !t->gone))
        rc = -ENOMEM;
    return rc;
}

int talk_open(struct talk *t, const struct talk_options *o, size_t size, unsigned conns,
              unsigned depth)
{
    int rc = set_up(t, o->device, size, conns, depth);
    if (rc)
        cli_errno(rc, "setting up %s", o->device ? o->device : "the first device");
    return rc;
}

void talk_close(struct talk *t)
{
    for (unsigned i = 0; i < t->nconns; i++)
        urnic_close_conn(t->conns[i]);
    free(t->conns);
    free(t->gone);
    struct urnic_context *ctx = t->res.ctx;
    resources_close(&t->res);
    if (ctx)
        urnic_close(ctx);
}

static struct urnic_conn_attr attr_of(const struct talk *t, int timeout_ms)
{
    return (struct urnic_conn_attr){
        .pd = t->res.pd,
        .qp = {.send_cq = t->res.cq,
               .recv_cq = t->res.cq,
               .qp_type = URNIC_QPT_RC,
               .cap = {.max_send_wr = t->depth,
                       .max_recv_wr = t->depth,
                       .max_send_sge = 1,
                       .max_recv_sge = 1}},
        .timeout_ms = timeout_ms,
    };
}

int talk_connect(struct talk *t, const char *host, uint16_t port, talk_prepare prepare, void *arg)
{
    struct urnic_conn_attr attr = attr_of(t, 0);
    int rc = urnic_connect_addr(t->res.ctx, host, port, &attr, prepare, arg, &t->conns[t->nconns]);
    t->nconns += !rc;
    return rc;
}

int talk_listen(struct talk *t, const struct talk_options *o, unsigned backlog,
                struct urnic_listener **out)
{
    int rc = urnic_listen_addr(t->res.ctx, NULL, o->port, (int)backlog, out);
    if (rc) {
        cli_errno(rc, "listen on port %u", o->port);
        return rc;
    }
    each_device_listens();
    return 0;
}

int talk_accept(struct talk *t, struct urnic_listener *listener, talk_prepare prepare, void *arg)
{
    struct pollfd p = {.fd = urnic_listener_fd(listener), .events = POLLIN};
    struct urnic_conn_attr attr = attr_of(t, 0);
    while (poll(&p, 1, 200) != 1)
        if (cli_stop)
            return -EINTR;
    int rc = urnic_accept_conn(listener, &attr, prepare, arg, &t->conns[t->nconns]);
    t->nconns += !rc;
    if (!rc)
        each_device_taken();
    return rc;
}

/* The server of talk_serve on one device. */
struct talk_server {
    const struct talk_options *options;
    int (*serve)(void *arg, const struct talk_options *o);
    void *arg;
};

static int serve_device(void *arg, const char *device)
{
    const struct talk_server *s = arg;
    struct talk_options o = *s->options;
    o.device = device;
    return s->serve(s->arg, &o);
}

int talk_serve(const struct talk_options *o, int (*serve)(void *arg, const struct talk_options *o),
               void *arg)
{
    struct talk_server s = {o, serve, arg};
    const struct each_device what = {
        .serve = serve_device, .arg = &s, .to = o->json ? stderr : stdout, .says = "listening\n"};
    return each_device(o->device, &what);
}

int talk_receive(struct talk *t, struct urnic_qp *qp, size_t offset, uint32_t size)
{
    struct urnic_sge sge = {
        .addr = (uintptr_t)t->res.mem + offset, .length = size, .lkey = t->res.mr->lkey};
    struct urnic_recv_wr wr = {.sg_list = &sge, .num_sge = 1};
    return urnic_post_recv(qp, &wr, NULL);
}

int talk_rdma(struct talk *t, struct urnic_qp *qp, enum urnic_wr_opcode opcode, size_t offset,
              uint32_t size, uint64_t remote_addr, uint32_t rkey)
{
    struct urnic_sge sge = {
        .addr = (uintptr_t)t->res.mem + offset, .length = size, .lkey = t->res.mr->lkey};
    struct urnic_send_wr wr = {.sg_list = &sge,
                               .num_sge = 1,
                               .opcode = opcode,
                               .send_flags = URNIC_SEND_SIGNALED,
                               .rdma = {.remote_addr = remote_addr, .rkey = rkey}};
    return urnic_post_send(qp, &wr, NULL);
}

int talk_send(struct talk *t, struct urnic_qp *qp, size_t offset, uint32_t size)
{
    return talk_rdma(t, qp, URNIC_WR_SEND, offset, size, 0, 0);
}

/* Process the events of all connections. */
static int watch(struct talk *t)
{
    for (unsigned i = 0; i < t->nconns; i++) {
        struct pollfd p = {.fd = urnic_cm_channel_fd(t->conns[i]->channel), .events = POLLIN};
        struct urnic_cm_event ev;
        if (poll(&p, 1, 0) != 1)
            continue;
        int rc = urnic_get_cm_event(t->conns[i]->channel, &ev);
        if (rc == -EAGAIN)
            continue;
        if (rc)
            return rc;
        if (ev.event == URNIC_CM_DISCONNECTED)
            t->gone[i] = true;
    }
    return cli_stop ? -EINTR : 0;
}

static int take(struct talk *t, const struct urnic_wc *wc)
{
    if (wc->status == URNIC_WC_WR_FLUSH_ERR) {
        t->broken = true;
        return 0;
    }
    if (wc->status != URNIC_WC_SUCCESS) {
        resources_wc_failed(wc);
        return -EIO;
    }
    if (wc->opcode == URNIC_WC_RECV) {
        t->received++;
        if (wc->byte_len < t->shortest)
            t->shortest = wc->byte_len;
    } else {
        t->sent++;
    }
    return 0;
}

int talk_wait(struct talk *t, unsigned sends, unsigned receives)
{
    struct urnic_wc wc[16];
    unsigned idle = 0;
    while (t->sent < sends || t->received < receives) {
        int n = urnic_poll_cq(t->res.cq, 16, wc);
        if (n < 0)
            return n;
        for (int i = 0; i < n; i++) {
            int rc = take(t, &wc[i]);
            if (rc)
                return rc;
        }
        if (n)
            continue;
        if (t->broken)
            return -ECONNRESET;
        if (++idle % WATCH_EVERY == 0) {
            int rc = watch(t);
            if (rc)
                return rc;
        }
        usleep(idle > 64 ? 20 : 0);
    }
    t->sent -= sends;
    t->received -= receives;
    return 0;
}

int talk_wait_goodbye(struct talk *t)
{
    unsigned left = t->nconns;
    while (left) {
        int rc = watch(t);
        if (rc)
            return rc;
        left = 0;
        for (unsigned i = 0; i < t->nconns; i++)
            left += !t->gone[i];
        if (left)
            usleep(1000);
    }
    return 0;
}
