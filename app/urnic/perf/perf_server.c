/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The passive end of `urnic perf`: accepts all kinds of requests, and takes an active part where
 * both ends send (pongs of latency tests, the other direction of --both).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "each_device.h"
#include "perf.h"

#define CQE 16384
/* Rounds between two looks for connections' events while pings are answered: the system call takes
 * longer than the answer. */
#define PONG_ROUNDS 16

struct server {
    struct perf_end end;
    struct perf_options opt;
    struct perf_qp *qps;    /* all */
    struct perf_qp *acting; /* those that need work without a completion */
    unsigned live;
    unsigned pongs; /* number of live ones that measure latency */
};

static bool answers(const struct perf_qp *q)
{
    return q->ask.latency && !q->ask.idle;
}

/* Refuse the request; the answer carries the offer. */
static void refuse(struct urnic_cm_event *ev, const struct perf_offer *offer)
{
    urnic_reject(ev->id, offer, sizeof(*offer));
    urnic_destroy_ep(ev->id);
}

static bool pinged(const struct server *s, uint64_t at, uint64_t span)
{
    for (const struct perf_qp *q = s->acting; q; q = q->next_acting) {
        uint64_t other = perf_part(&q->ask, s->end.size);
        if (q->pong && at < other + q->ask.span && other < at + span)
            return true;
    }
    return false;
}

/* Give pings by WRITE a part of the buffer that no other client uses, while there is one. If
 * another client's ping overwrote a ping, that ping would never be answered. */
static void own_part(const struct server *s, struct perf_ask *ask, struct perf_offer *offer)
{
    uint64_t at = 0;
    uint32_t index = 0;
    for (; pinged(s, at, ask->span); at += ask->span, index++) {
        if (s->end.size - at < 2 * ask->span)
            return;
    }
    ask->index = index;
    offer->addr += at;
    offer->size = ask->span;
}

static void accept_one(struct server *s, struct urnic_cm_event *ev)
{
    struct perf_qp *q = calloc(1, sizeof(*q));
    struct perf_offer offer = {PERF_MAGIC, s->end.res.mr->rkey, (uintptr_t)s->end.res.mem,
                               s->end.size};
    struct urnic_conn_param param = {
        .private_data = &offer,
        .private_data_len = sizeof(offer),
        .rnr_retry_count = 7,
        .retry_count = 7,
        .retry_counts_set = true,
    };
    if (q && ev->private_data_len >= sizeof(q->ask))
        memcpy(&q->ask, ev->private_data, sizeof(q->ask));
    if (!q || !perf_ask_ok(&q->ask, s->end.size)) {
        free(q);
        refuse(ev, &offer);
        return;
    }
    bool ping = q->ask.op == PERF_WRITE && answers(q);
    if (ping)
        own_part(s, &q->ask, &offer);
    q->id = ev->id;
    urnic_id_set_context(q->id, q);
    int rc = perf_qp_create(&s->end, q, false);
    if (rc == 0 && q->ask.op == PERF_SEND && !q->ask.idle)
        rc = perf_post_recvs(&s->end, q, 2 * q->ask.depth);
    if (rc == 0 && ping) {
        q->pong = s->end.res.mem + perf_part(&q->ask, s->end.size) + q->ask.size - 1;
        *q->pong = 0;
        q->expect = 1;
    }
    if (rc == 0)
        rc = urnic_accept(q->id, &param);
    if (rc < 0) {
        cli_error("a connection: %s", strerror(-rc));
        refuse(ev, &offer);
        free(q);
        return;
    }
    q->offer = (struct perf_offer){
        .addr = q->ask.addr, .size = q->ask.span, .rkey = q->ask.rkey, .magic = PERF_MAGIC};
    q->next = s->qps;
    s->qps = q;
    if (q->pong || (q->ask.both && !q->ask.latency && !q->ask.idle)) {
        q->next_acting = s->acting;
        s->acting = q;
    }
    s->live++;
    s->pongs += answers(q);
}

static void forget(struct server *s, struct perf_qp *q)
{
    struct perf_qp **at = &s->qps;
    while (*at && *at != q)
        at = &(*at)->next;
    if (*at) {
        *at = q->next;
        s->live--;
        s->pongs -= answers(q);
    }
    for (at = &s->acting; *at && *at != q;)
        at = &(*at)->next_acting;
    if (*at)
        *at = q->next_acting;
    perf_qp_destroy(q);
    free(q);
}

static int on_event(struct server *s, struct urnic_cm_event *ev)
{
    struct perf_qp *q = ev->id ? urnic_id_context(ev->id) : NULL;
    switch (ev->event) {
    case URNIC_CM_CONNECT_REQUEST:
        accept_one(s, ev);
        return 0;
    case URNIC_CM_ESTABLISHED:
        if (q)
            q->established = true;
        return 0;
    case URNIC_CM_DISCONNECTED:
    case URNIC_CM_REJECTED:
    case URNIC_CM_UNREACHABLE:
    case URNIC_CM_CONNECT_ERROR:
        if (q)
            forget(s, q);
        return 0;
    default:
        return 0;
    }
}

/* Post one WRITE or SEND to the client. */
static int pong(struct server *s, struct perf_qp *q)
{
    struct perf_options o = s->opt;
    uint64_t off = perf_part(&q->ask, s->end.size);
    o.op = q->ask.op;
    o.working_set = 0; /* every pong goes to the same place */
    o.signal_every = q->ask.depth / 2 ? q->ask.depth / 2 : 1;
    o.inline_data = q->ask.size <= 64 && q->ask.size <= s->end.max_inline;
    if (q->ask.op == PERF_WRITE) {
        s->end.res.mem[off + q->ask.size - 1] = q->expect;
        q->offer.addr = q->ask.addr - off; /* perf_post adds this queue pair's part */
        q->offer.size = s->end.size;
        q->expect = (uint8_t)(q->expect % 255 + 1);
    }
    return perf_post(&s->end, q, &o, q->ask.size, 1, false);
}

static int on_completion(struct server *s, const struct urnic_wc *wc)
{
    struct perf_qp *q = (struct perf_qp *)(uintptr_t)(wc->wr_id & ~PERF_RECV_ID);
    if (wc->status != URNIC_WC_SUCCESS)
        return 0; /* an error: the connection's DISCONNECTED event ends the queue pair */
    if (wc->wr_id & PERF_RECV_ID) {
        int rc = perf_post_recvs(&s->end, q, 1);
        return rc == 0 && q->ask.latency ? pong(s, q) : rc;
    }
    q->completed += q->ask.batch;
    return 0;
}

/* Work without a completion: answer WRITE pings, keep --both's other direction going. */
static bool act(struct server *s)
{
    bool busy = false;
    for (struct perf_qp *q = s->acting; q; q = q->next_acting) {
        if (q->pong && *q->pong == q->expect) {
            __atomic_thread_fence(__ATOMIC_ACQUIRE);
            busy = true;
            pong(s, q);
        } else if (!q->pong && q->established &&
                   q->posted - q->completed + q->ask.batch <= q->ask.depth) {
            struct perf_options o = s->opt;
            o.op = q->ask.op;
            o.working_set = q->ask.span;
            o.signal_every = q->ask.batch;
            q->offer.addr = q->ask.addr - perf_part(&q->ask, s->end.size);
            q->offer.size = s->end.size;
            busy |= perf_post(&s->end, q, &o, q->ask.size, q->ask.batch, true) == 0;
        }
    }
    return busy;
}

static int serve(struct server *s)
{
    struct urnic_wc wc[64];
    struct urnic_cm_event ev;
    for (unsigned round = 0; !cli_stop; round++) {
        int n = urnic_poll_cq(s->end.res.cq, 64, wc);
        if (n < 0)
            return n;
        for (int i = 0; i < n; i++) {
            int rc = on_completion(s, &wc[i]);
            if (rc < 0 && rc != -ENOMEM && rc != -EINVAL)
                return rc;
        }
        bool busy = act(s) || n > 0;
        bool hurry = s->pongs > 0 && s->end.wait != PERF_EVENT;
        int rc = -ETIMEDOUT;
        if (!hurry || round % PONG_ROUNDS == 0)
            rc = perf_cm_event(&s->end, &ev, s->live ? 0 : 200);
        if (rc == 0)
            rc = on_event(s, &ev);
        else if (s->live && (!busy || hurry))
            perf_idle(&s->end); /* a pong is on its way once the daemon has the core */
        if (rc < 0 && rc != -ETIMEDOUT)
            return rc;
    }
    return 0;
}

static int serve_device(void *arg, const char *device)
{
    const struct perf_options *o = arg;
    struct server s = {.opt = *o};
    struct urnic_cm_id *listener;
    int rc = perf_end_init(&s.end, device, o->buffer, CQE, o->wait);
    if (rc < 0)
        return CLI_FAIL;
    struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons(o->port)};
    rc = urnic_create_id(s.end.cm, URNIC_PS_TCP, NULL, &listener);
    if (rc == 0) {
        rc = urnic_bind_addr(listener, (const struct sockaddr *)&any);
        if (rc == 0)
            rc = urnic_listen(listener, 0);
        if (rc == 0) {
            each_device_listens();
            rc = serve(&s);
        }
        while (s.qps)
            forget(&s, s.qps);
        urnic_destroy_id(listener);
    }
    if (rc < 0)
        cli_errno(rc, "serving port %u", o->port);
    perf_end_free(&s.end);
    return rc < 0 ? CLI_FAIL : CLI_OK;
}

int perf_server(struct perf_options *o)
{
    char says[40];
    const struct each_device what = {.serve = serve_device, .arg = o, .to = stderr, .says = says};
    snprintf(says, sizeof(says), "waiting on port %u\n", o->port);
    return each_device(o->device, &what);
}
