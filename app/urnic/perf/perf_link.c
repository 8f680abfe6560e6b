/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connections and queue pairs of `urnic perf`, and posting.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <string.h>

#include "perf.h"

#define SERVER_NS  5000000000ull /* longest wait for a server that does not listen yet */
#define AGAIN_MS   100
#define NO_SERVICE 8 /* the reason of a rejection: no listener on the port */

int perf_end_init(struct perf_end *e, const char *device, uint64_t size, int cqe,
                  enum perf_wait wait)
{
    struct urnic_device_attr attr = {0};
    struct urnic_context *ctx = NULL;
    *e = (struct perf_end){.wait = wait, .size = size};
    int rc = urnic_open(device, &ctx);
    if (rc == 0)
        rc = urnic_query_device(ctx, &attr);
    if (rc == 0)
        rc = resources_open(&e->res, ctx, cqe, wait == PERF_EVENT, size,
                            URNIC_ACCESS_REMOTE_WRITE | URNIC_ACCESS_REMOTE_READ |
                                URNIC_ACCESS_REMOTE_ATOMIC);
    e->res.ctx = ctx; /* closed by perf_end_free, also after a failure here */
    if (rc == 0)
        rc = urnic_create_cm_channel(ctx, &e->cm);
    if (rc == 0)
        rc = resources_nonblocking(urnic_cm_channel_fd(e->cm));
    if (rc < 0) {
        cli_errno(rc, "setting up %s", device ? device : "the first device");
        perf_end_free(e);
        return rc;
    }
    e->max_inline = attr.max_inline;
    return 0;
}

void perf_end_free(struct perf_end *e)
{
    struct urnic_context *ctx = e->res.ctx;
    if (e->cm)
        urnic_destroy_cm_channel(e->cm);
    resources_close(&e->res);
    if (ctx)
        urnic_close(ctx);
    *e = (struct perf_end){0};
}

int perf_qp_create(struct perf_end *e, struct perf_qp *q, bool client)
{
    const struct perf_ask *ask = &q->ask;
    bool sends = client || ask->both || ask->latency;
    struct urnic_qp_init_attr attr = {
        .qp_context = q,
        .send_cq = e->res.cq,
        .recv_cq = e->res.cq,
        .qp_type = URNIC_QPT_RC,
        .cap =
            {
                .max_send_wr = sends && !ask->idle ? ask->depth : 1,
                .max_recv_wr = ask->op == PERF_SEND && !ask->idle ? 2 * ask->depth : 1,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = ask->size <= 64 && !ask->idle ? (uint32_t)ask->size : 0,
            },
    };
    return urnic_create_id_qp(q->id, e->res.pd, &attr, &q->qp);
}

void perf_qp_destroy(struct perf_qp *q)
{
    if (q->id)
        urnic_destroy_ep(q->id);
    q->id = NULL;
    q->qp = NULL;
}

/* All receives of a queue pair share its part of the buffer, because received data are not read. */
int perf_post_recvs(struct perf_end *e, struct perf_qp *q, unsigned n)
{
    uint64_t at = (uintptr_t)e->res.mem + perf_part(&q->ask, e->size);
    struct urnic_sge sge = {at, (uint32_t)q->ask.size, e->res.mr->lkey};
    struct urnic_recv_wr wr = {
        .wr_id = PERF_RECV_ID | (uintptr_t)q, .sg_list = &sge, .num_sge = q->ask.size ? 1 : 0};
    const struct urnic_recv_wr *bad;
    int rc = 0;
    while (n-- && rc == 0)
        rc = urnic_post_recv(q->qp, &wr, &bad);
    return rc;
}

int perf_cm_event(struct perf_end *e, struct urnic_cm_event *ev, int timeout_ms)
{
    for (;;) {
        int rc = urnic_get_cm_event(e->cm, ev);
        if (rc != -EAGAIN)
            return rc;
        if (timeout_ms == 0 || cli_stop)
            return -ETIMEDOUT;
        struct pollfd fd = {.fd = urnic_cm_channel_fd(e->cm), .events = POLLIN};
        rc = poll(&fd, 1, timeout_ms);
        if (rc == 0)
            return -ETIMEDOUT;
        if (rc < 0 && errno != EINTR)
            return -errno;
    }
}

static int to_sockaddr(const char *host, uint16_t port, struct sockaddr_storage *ss)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)ss;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ss;
    memset(ss, 0, sizeof(*ss));
    if (inet_pton(AF_INET, host, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
    } else if (inet_pton(AF_INET6, host, &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons(port);
    } else {
        return -EINVAL;
    }
    return 0;
}

static int start(struct perf_end *e, struct perf_qp *q, const struct sockaddr_storage *to)
{
    int rc = urnic_create_id(e->cm, URNIC_PS_TCP, q, &q->id);
    if (rc == 0)
        rc = urnic_resolve(q->id, NULL, (const struct sockaddr *)to, PERF_CONNECT_MS);
    return rc;
}

/* The server's reason for the refusal. */
static int rejected(struct perf_qp *q, const struct urnic_cm_event *ev)
{
    if (ev->status == NO_SERVICE)
        return -ECONNREFUSED;
    if (ev->private_data_len >= sizeof(q->offer))
        memcpy(&q->offer, ev->private_data, sizeof(q->offer));
    return q->offer.magic == PERF_MAGIC && q->offer.size < q->ask.span ? -EMSGSIZE : -EPROTO;
}

/* The next step of a connection in the making; 1 = it is done. */
static int step(struct perf_end *e, struct perf_qp *q, const struct urnic_cm_event *ev)
{
    struct urnic_conn_param param = {
        .private_data = &q->ask,
        .private_data_len = sizeof(q->ask),
        .retry_count = 7,
        .rnr_retry_count = 7,
        .retry_counts_set = true,
    };
    int rc;
    switch (ev->event) {
    case URNIC_CM_ROUTE_RESOLVED:
        rc = perf_qp_create(e, q, true);
        if (rc == 0 && q->ask.op == PERF_SEND && q->ask.latency)
            rc = perf_post_recvs(e, q, 2);
        return rc < 0 ? rc : urnic_connect(q->id, &param);
    case URNIC_CM_ESTABLISHED:
        if (ev->private_data_len >= sizeof(q->offer))
            memcpy(&q->offer, ev->private_data, sizeof(q->offer));
        q->established = true;
        return perf_offer_ok(&q->offer, &q->ask) ? 1 : -EPROTO;
    case URNIC_CM_REJECTED:
        return rejected(q, ev);
    case URNIC_CM_UNREACHABLE:
        return -ETIMEDOUT;
    case URNIC_CM_ADDR_ERROR:
    case URNIC_CM_ROUTE_ERROR:
    case URNIC_CM_CONNECT_ERROR:
        return ev->status < 0 ? ev->status : -EHOSTUNREACH;
    default:
        return 0;
    }
}

/* Try once more? When both ends start together, the server may listen later. */
static bool await_server(struct perf_qp *q, const struct perf_options *o, uint64_t since)
{
    uint64_t waited = cli_now() - since;
    if (waited >= SERVER_NS || cli_stop)
        return false;
    if (q->refused++ == 0)
        fprintf(stderr, "no server listens at %s port %u yet\n", o->host, o->port);
    perf_qp_destroy(q);
    poll(NULL, 0, AGAIN_MS);
    return true;
}

static void explain(int rc, const struct perf_qp *q, const struct perf_options *o)
{
    switch (rc) {
    case -ECONNREFUSED:
        cli_error("%s port %u: %s (is 'urnic perf --server' running there?)", o->host, o->port,
                  strerror(-rc));
        break;
    case -EMSGSIZE:
        cli_error("%s port %u: the server offers %llu octets, the working set has %llu: use "
                  "--buffer there",
                  o->host, o->port, (unsigned long long)q->offer.size,
                  (unsigned long long)q->ask.span);
        break;
    case -EPROTO:
        cli_error("%s port %u: what listens there is no 'urnic perf --server' of this version",
                  o->host, o->port);
        break;
    default:
        cli_error("%s port %u: %s", o->host, o->port, strerror(-rc));
    }
}

int perf_connect_all(struct perf_end *e, struct perf_qp *q, unsigned n,
                     const struct perf_options *o)
{
    struct sockaddr_storage to;
    struct perf_qp *at = q;
    unsigned started = 0, done = 0;
    uint64_t now = cli_now();
    int rc = to_sockaddr(o->host, o->port, &to);
    if (rc < 0) {
        cli_error("'%s' is not an IP address", o->host);
        return rc;
    }
    while (rc == 0 && done < n) {
        /* Connect one alone, until a server has answered. */
        while (started < n && started - done < (e->met ? PERF_CONNECT_WIDE : 1) && rc == 0)
            rc = start(e, &q[started++], &to);
        struct urnic_cm_event ev = {0};
        if (rc == 0)
            rc = perf_cm_event(e, &ev, PERF_CONNECT_MS);
        if (rc < 0 || !ev.id)
            continue;
        at = urnic_id_context(ev.id);
        rc = step(e, at, &ev);
        if (rc > 0) {
            e->met = true;
            done++;
            rc = 0;
        } else if (rc == -ECONNREFUSED && !e->met && await_server(q, o, now)) {
            started = 0;
            rc = 0;
        }
    }
    if (rc < 0 && !cli_stop)
        explain(rc, at, o);
    return rc;
}

void perf_idle(struct perf_end *e)
{
    if (e->wait == PERF_SPIN)
        return;
    if (e->wait == PERF_YIELD) {
        sched_yield();
        return;
    }
    struct pollfd fds[2] = {
        {.fd = urnic_channel_fd(e->res.channel), .events = POLLIN},
        {.fd = urnic_cm_channel_fd(e->cm), .events = POLLIN},
    };
    struct urnic_cq *cq;
    void *context;
    if (!e->armed) { /* the first time no event can come yet */
        e->armed = true;
        urnic_req_notify_cq(e->res.cq, false);
        return;
    }
    if (poll(fds, 2, 100) > 0 && fds[0].revents &&
        urnic_get_cq_event(e->res.channel, &cq, &context) == 0)
        urnic_ack_cq_events(cq, 1);
    urnic_req_notify_cq(e->res.cq, false); /* the caller polls once more */
}

int perf_post(struct perf_end *e, struct perf_qp *q, const struct perf_options *o, uint64_t size,
              unsigned n, bool last)
{
    static const enum urnic_wr_opcode opcode[] = {
        [PERF_WRITE] = URNIC_WR_RDMA_WRITE,
        [PERF_READ] = URNIC_WR_RDMA_READ,
        [PERF_SEND] = URNIC_WR_SEND,
        [PERF_ATOMIC] = URNIC_WR_ATOMIC_FETCH_AND_ADD,
    };
    struct urnic_send_wr wr[PERF_BATCH_MAX];
    struct urnic_sge sge[PERF_BATCH_MAX];
    const struct urnic_send_wr *bad;
    uint64_t span = o->working_set > size ? o->working_set - size : 0;
    uint64_t local = (uintptr_t)e->res.mem + perf_part(&q->ask, e->size);
    uint64_t remote = q->offer.addr + perf_part(&q->ask, q->offer.size);
    for (unsigned i = 0; i < n; i++) {
        bool signal = (last && i == n - 1) || (q->posted + i + 1) % o->signal_every == 0;
        sge[i] = (struct urnic_sge){local + q->at, (uint32_t)size, e->res.mr->lkey};
        wr[i] = (struct urnic_send_wr){
            .wr_id = (uintptr_t)q,
            .next = i + 1 < n ? &wr[i + 1] : NULL,
            .sg_list = &sge[i],
            .num_sge = size ? 1 : 0,
            .opcode = opcode[o->op],
            .send_flags =
                (signal ? URNIC_SEND_SIGNALED : 0) |
                (o->inline_data && o->op != PERF_READ && o->op != PERF_ATOMIC ? URNIC_SEND_INLINE
                                                                              : 0),
        };
        if (o->op == PERF_ATOMIC) {
            wr[i].atomic.remote_addr = remote + q->at;
            wr[i].atomic.rkey = q->offer.rkey;
            wr[i].atomic.compare_add = 1;
        } else {
            wr[i].rdma.remote_addr = remote + q->at;
            wr[i].rdma.rkey = q->offer.rkey;
        }
        uint64_t step = (size + 63) & ~63ull;
        q->at += step ? step : 64;
        if (q->at > span)
            q->at = 0;
    }
    int rc = urnic_post_send(q->qp, wr, &bad);
    if (rc == 0)
        q->posted += n;
    return rc;
}
