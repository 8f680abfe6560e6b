/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The measurements of `urnic perf`: bandwidth and message rate with a full pipeline, latency with
 * one message at a time, and connections made and ended per second.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "perf.h"

#define SAMPLES_MAX 2000000u
#define STALL_NS    20000000000ull /* time without a completion after which to give up */

static int failed(const struct urnic_wc *wc)
{
    resources_wc_failed(wc);
    return -EIO;
}

/* ---- bandwidth ---- */

struct pipeline {
    struct perf_end *e;
    const struct perf_options *o;
    uint64_t size;
    uint64_t quota; /* messages to post on each queue pair */
    bool stop;
};

/* Completions come at multiples of signal_every, so that each stands for that many messages. */
static int refill(struct pipeline *p, struct perf_qp *q)
{
    const struct perf_options *o = p->o;
    while (!p->stop && q->posted < p->quota && q->posted - q->completed + o->batch <= o->depth) {
        uint64_t left = p->quota - q->posted;
        int rc = perf_post(p->e, q, o, p->size, left < o->batch ? (unsigned)left : o->batch, false);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int drain_some(struct pipeline *p, uint64_t *messages)
{
    struct urnic_wc wc[64];
    int n = urnic_poll_cq(p->e->res.cq, 64, wc);
    for (int i = 0; i < n; i++) {
        struct perf_qp *q = (struct perf_qp *)(uintptr_t)wc[i].wr_id;
        if (wc[i].status != URNIC_WC_SUCCESS)
            return failed(&wc[i]);
        q->completed += p->o->signal_every;
        *messages += p->o->signal_every;
        int rc = refill(p, q);
        if (rc < 0)
            return rc;
    }
    return n;
}

/* Complete all requests in flight: the next size begins with empty queues. */
static int drain_all(struct pipeline *p, struct perf_qp *q)
{
    const uint64_t unit = p->o->signal_every, since = cli_now();
    uint64_t outstanding = 1, messages = 0;
    p->stop = true;
    while (outstanding && cli_now() - since < STALL_NS) {
        int n = drain_some(p, &messages);
        if (n < 0)
            return n;
        if (n == 0)
            perf_idle(p->e);
        outstanding = 0;
        for (unsigned i = 0; i < p->o->qps; i++)
            outstanding += q[i].posted / unit * unit - q[i].completed;
    }
    return 0;
}

int perf_bandwidth(struct perf_end *e, struct perf_qp *q, const struct perf_options *o,
                   uint64_t size, struct perf_result *r)
{
    const uint64_t unit = o->signal_every;
    struct pipeline p = {.e = e, .o = o, .size = size, .quota = UINT64_MAX};
    uint64_t target = 0, messages = 0, last_progress, warm_up = o->warm_up_ns;
    int rc = 0;
    if (o->count) {
        uint64_t each = o->count / o->qps + (o->count % o->qps > 0);
        p.quota = (each + unit - 1) / unit * unit;
        target = p.quota * o->qps;
    }
    for (unsigned i = 0; i < o->qps; i++)
        q[i].posted = q[i].completed = q[i].at = 0;
    r->size = size;

    uint64_t started = last_progress = cli_now(), now = started;
    for (unsigned i = 0; i < o->qps && rc == 0; i++)
        rc = refill(&p, &q[i]);
    for (unsigned spins = 0; rc == 0; spins++) {
        int n = drain_some(&p, &messages);
        if (n < 0)
            return n;
        if (n == 0)
            perf_idle(e);
        if (n == 0 || spins % 16 == 0)
            now = cli_now();
        if (n > 0)
            last_progress = now;
        else if (now - last_progress > STALL_NS) {
            cli_error("nothing has completed for %u s", (unsigned)(STALL_NS / 1000000000u));
            return -ETIMEDOUT;
        }
        if (warm_up && now - started >= warm_up) {
            warm_up = messages = 0;
            started = now;
        }
        if (!warm_up && (target ? messages >= target : now - started >= o->ns))
            break;
        if (cli_stop)
            break;
    }
    if (rc < 0)
        return rc;
    r->ns = cli_now() - started;
    r->messages = messages;

    return drain_all(&p, q);
}

/* ---- latency ---- */

static int by_value(const void *x, const void *y)
{
    uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
    return a < b ? -1 : a > b;
}

static void summarise(uint32_t *sample, unsigned n, struct perf_result *r)
{
    double sum = 0;
    if (!n)
        return;
    qsort(sample, n, sizeof(*sample), by_value);
    for (unsigned i = 0; i < n; i++)
        sum += sample[i];
    r->min = sample[0];
    r->p50 = sample[n / 2];
    r->p90 = sample[(uint64_t)n * 90 / 100];
    r->p99 = sample[(uint64_t)n * 99 / 100];
    r->p999 = sample[(uint64_t)n * 999 / 1000];
    r->max = sample[n - 1];
    r->mean = sum / n;
}

/* Wait for a completion of this kind: our own operation's, or a received SEND. Others are taken,
 * too. */
static int wait_completion(struct perf_end *e, struct perf_qp *q, bool recv)
{
    uint64_t since = 0;
    for (unsigned spins = 0;; spins++) {
        struct urnic_wc wc[16];
        bool seen = false;
        int n = urnic_poll_cq(e->res.cq, 16, wc);
        for (int i = 0; i < n; i++) {
            if (wc[i].status != URNIC_WC_SUCCESS)
                return failed(&wc[i]);
            bool is_recv = wc[i].wr_id & PERF_RECV_ID;
            seen |= is_recv == recv;
            if (is_recv)
                perf_post_recvs(e, q, 1);
        }
        if (n < 0)
            return n;
        if (seen)
            return 0;
        perf_idle(e);
        if (spins % 1024 == 1023) {
            uint64_t now = cli_now();
            since = since ? since : now;
            if (now - since > STALL_NS)
                return -ETIMEDOUT;
        }
    }
}

static int wait_octet(struct perf_end *e, const volatile uint8_t *at, uint8_t value)
{
    uint64_t since = 0;
    for (unsigned spins = 0; *at != value; spins++) {
        if (e->wait != PERF_SPIN)
            perf_idle(e);
        if (spins % 4096 == 4095) {
            uint64_t now = cli_now();
            since = since ? since : now;
            if (now - since > STALL_NS)
                return -ETIMEDOUT;
        }
    }
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return 0;
}

/* One round trip. The pong of a WRITE lands after our own part of the buffer. */
static int round_trip(struct perf_end *e, struct perf_qp *q, const struct perf_options *o,
                      uint64_t size, uint8_t value)
{
    struct perf_options one = *o;
    volatile uint8_t *pong = e->res.mem + q->ask.span + q->ask.size - 1;
    bool half = o->op == PERF_WRITE || o->op == PERF_SEND;
    one.signal_every = half ? o->depth / 2 : 1;
    one.working_set = 0;
    if (o->op == PERF_WRITE) {
        e->res.mem[size - 1] = value;
        struct urnic_wc wc[16];
        int n = urnic_poll_cq(e->res.cq, 16, wc);
        for (int i = 0; i < n; i++)
            if (wc[i].status != URNIC_WC_SUCCESS)
                return failed(&wc[i]);
        if (n < 0)
            return n;
    }
    int rc = perf_post(e, q, &one, size, 1, false);
    if (rc < 0)
        return rc;
    if (o->op == PERF_WRITE)
        return wait_octet(e, pong, value);
    return wait_completion(e, q, o->op == PERF_SEND);
}

int perf_latency(struct perf_end *e, struct perf_qp *q, const struct perf_options *o, uint64_t size,
                 struct perf_result *r)
{
    uint32_t *sample = malloc(SAMPLES_MAX * sizeof(*sample));
    unsigned n = 0, warm = 200;
    uint8_t value = 0;
    int rc = sample ? 0 : -ENOMEM;
    bool half = o->op == PERF_WRITE || o->op == PERF_SEND;
    uint64_t started = cli_now(), now = started;
    for (uint64_t i = 0; rc == 0 && !cli_stop && n < SAMPLES_MAX; i++) {
        if (i == warm)
            started = now;
        if (o->count ? n >= o->count : i >= warm && now - started >= o->ns)
            break;
        value = (uint8_t)(value % 255 + 1);
        uint64_t before = now;
        rc = round_trip(e, q, o, size, value);
        now = cli_now();
        if (rc == 0 && i >= warm) {
            uint64_t t = (now - before) / (half ? 2 : 1);
            sample[n++] = t > UINT32_MAX ? UINT32_MAX : (uint32_t)t;
        }
    }
    r->size = size;
    r->messages = n;
    r->ns = now - started;
    if (rc == 0)
        summarise(sample, n, r);
    free(sample);
    return rc;
}

/* ---- connections ---- */

/* Connect this many queue pairs, hang up, and wait for the disconnect of all; *made grows by the
 * number connected. 0, or -errno with a message printed; without one after a signal. */
static int connect_once(struct perf_end *e, struct perf_qp *q, unsigned wide,
                        const struct perf_options *o, uint64_t *made)
{
    for (unsigned i = 0; i < wide; i++)
        q[i] = (struct perf_qp){.ask = {.magic = PERF_MAGIC,
                                        .op = PERF_CONNECT,
                                        .idle = 1,
                                        .depth = 1,
                                        .batch = 1,
                                        .span = 64}};
    int rc = perf_connect_all(e, q, wide, o);
    unsigned open = 0;
    for (unsigned i = 0; i < wide; i++)
        if (q[i].established && urnic_disconnect(q[i].id) == 0)
            open++;
    while (rc == 0 && open) {
        struct urnic_cm_event ev;
        rc = perf_cm_event(e, &ev, PERF_CONNECT_MS);
        if (rc < 0 && !cli_stop)
            cli_error("hanging up: %s", strerror(-rc));
        if (rc == 0 && ev.event == URNIC_CM_DISCONNECTED) {
            open--;
            ++*made;
        }
    }
    for (unsigned i = 0; i < wide; i++)
        perf_qp_destroy(&q[i]);
    return rc;
}

/* Repeat with PERF_CONNECT_WIDE at a time. A disconnected queue pair is destroyed, and the next
 * connection takes its place. */
int perf_connections(struct perf_end *e, const struct perf_options *o, struct perf_result *r)
{
    unsigned wide = o->qps > 1 ? o->qps : PERF_CONNECT_WIDE;
    struct perf_qp *q = calloc(wide, sizeof(*q));
    uint64_t started = cli_now(), made = 0;
    int rc = 0;
    if (!q) {
        cli_error("%u queue pairs: %s", wide, strerror(ENOMEM));
        return -ENOMEM;
    }
    while (rc == 0 && !cli_stop && (o->count ? made < o->count : cli_now() - started < o->ns))
        rc = connect_once(e, q, wide, o, &made);
    r->messages = made;
    r->ns = cli_now() - started;
    free(q);
    return cli_stop ? 0 : rc;
}
