/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Flows and rings: what the simulated hosts run.
 */
#include "sim_flow.h"

#include <errno.h>
#include <stdlib.h>

#define DEPTH      4u           /* WRITEs of a flow outstanding */
#define RING_DEPTH 16u          /* of a rank of a ring, and receives posted */
#define WRAP       (1ull << 30) /* addresses of a flow repeat after so many octets */

const char *const sim_flow_states[] = {"waits", "runs", "done", "failed"};

static struct sim_host *src_host(const struct sim_flow *f)
{
    return &f->all->net->host[f->src];
}

static struct sim_host *dst_host(const struct sim_flow *f)
{
    return &f->all->net->host[f->dst];
}

void sim_flow_refresh(struct sim_flow *f)
{
    struct engine_qp_info info;
    if (f->state != SIM_RUNS || !f->qa)
        return;
    engine_qp_info(src_host(f)->e, f->qa, &info);
    f->sent = info.tx_packets;
    f->again = info.retransmits;
    f->timeouts = info.timeouts;
}

static void finish(struct sim_flow *f, enum sim_flow_state state, uint64_t now)
{
    sim_flow_refresh(f);
    f->state = (uint8_t)state;
    f->end = now;
    f->all->running--;
    if (state == SIM_DONE)
        f->all->done++;
    else
        f->all->failed++;
    if (f->qa) {
        sim_host_disconnect(src_host(f), f->qa);
        sim_host_disconnect(dst_host(f), f->qb);
    }
    f->qa = f->qb = NULL;
}

static int post(struct sim_flow *f, uint64_t offset, uint32_t len, bool imm, uint64_t now)
{
    uint64_t va = (uint64_t)f->id << 32 | offset % WRAP;
    struct engine_sge sge = {.va = va, .len = len, .lkey = src_host(f)->lkey};
    struct engine_send_wr wr = {
        .wr_id = len,
        .opcode = imm ? WR_RDMA_WRITE_WITH_IMM : WR_RDMA_WRITE,
        .nsge = 1,
        .sge = &sge,
        .rkey = dst_host(f)->rkey,
        .remote_va = va,
    };
    int err = engine_post_send(src_host(f)->e, f->qa, &wr, now);
    if (!err) {
        f->posted += len;
        f->out++;
    }
    return err;
}

/* ---- a flow of its own ---- */

static void flow_step(struct sim_flow *f, uint64_t now)
{
    while (f->out < DEPTH && f->posted < f->octets && now < f->stop) {
        uint64_t left = f->octets - f->posted;
        if (post(f, f->posted, left < f->message ? (uint32_t)left : f->message, false, now))
            break;
    }
    if (!f->out && (f->posted == f->octets || now >= f->stop))
        finish(f, SIM_DONE, now);
}

/* ---- rings ---- */

static void post_recv(struct sim_flow *f)
{
    struct engine_recv_wr wr = {0};
    engine_post_recv(dst_host(f)->e, f->qb, &wr);
}

static void ring_step(struct sim_ring *r, struct sim_flow *f, uint64_t now)
{
    uint32_t total = r->steps * r->iterations;
    uint32_t *posted = &r->posted[f->rank];
    while (f->state == SIM_RUNS && *posted < total && *posted <= r->received[f->rank] &&
           f->out < RING_DEPTH) {
        if (post(f, *posted * r->chunk, (uint32_t)r->chunk, true, now))
            break;
        ++*posted;
    }
}

/* Rank has received another step. */
static void ring_received(struct sim_flows *all, struct sim_ring *r, uint32_t rank, uint64_t now)
{
    uint32_t got = ++r->received[rank];
    if (got % r->steps == 0 && ++r->at_end[got / r->steps - 1] == r->n)
        r->ended[got / r->steps - 1] = now;
    ring_step(r, &all->flow[r->flow + rank], now);
}

/* ---- events ---- */

static void app_completed(struct sim_host *h, const struct engine_wc *wc, uint64_t now)
{
    struct sim_flow *f = (struct sim_flow *)(uintptr_t)wc->qp_arg;
    (void)h;
    if (f->state != SIM_RUNS)
        return;
    if (wc->status != WC_SUCCESS) {
        finish(f, SIM_FAILED, now);
        return;
    }
    if (wc->opcode == WC_RECV_RDMA_WITH_IMM) {
        post_recv(f);
        ring_received(f->all, f->ring, (f->rank + 1) % f->ring->n, now);
        return;
    }
    f->out--;
    f->answered += wc->wr_id;
    if (!f->ring) {
        flow_step(f, now);
        return;
    }
    ring_step(f->ring, f, now);
    if (!f->out && f->posted == f->octets)
        finish(f, SIM_DONE, now);
}

static void app_placed(struct sim_host *h, uint64_t va, uint32_t len, uint64_t now)
{
    struct sim_flows *all = h->app_arg;
    (void)now;
    if (va >> 32 < all->n)
        all->placed[va >> 32] += len;
}

static const struct sim_app_ops app = {.completed = app_completed, .placed = app_placed};

static void start_fire(struct sim_event *ev, uint64_t now)
{
    struct sim_flow *f = SIM_CONTAINER(ev, struct sim_flow, start);
    struct sim_host *a = src_host(f), *b = dst_host(f);
    struct sim_connect c = {
        .a_arg = f,
        .b_arg = f,
        .send_depth = f->ring ? RING_DEPTH : DEPTH,
        .recv_depth = f->ring ? RING_DEPTH : 0,
    };
    f->state = SIM_RUNS;
    f->begin = now;
    f->all->running++;
    if (sim_host_connect(a, b, &c, &f->qa, &f->qb, now)) {
        f->qa = NULL;
        finish(f, SIM_FAILED, now);
        return;
    }
    if (f->ring) {
        for (unsigned i = 0; i < RING_DEPTH; i++)
            post_recv(f);
        ring_step(f->ring, f, now);
    } else {
        flow_step(f, now);
    }
    sim_host_kick(a, now);
}

/* ---- before the run ---- */

int sim_flow_add(struct sim_flows *f, uint32_t src, uint32_t dst, uint64_t octets, uint64_t begin,
                 uint64_t stop, uint32_t message, unsigned load)
{
    if (f->n == SIM_FLOWS_MAX)
        return -ENOSPC;
    if (f->n == f->cap) {
        uint32_t cap = f->cap ? f->cap * 2 : 64;
        struct sim_flow *more = realloc(f->flow, cap * sizeof(*more));
        if (!more)
            return -ENOMEM;
        f->flow = more;
        f->cap = cap;
    }
    f->flow[f->n] = (struct sim_flow){
        .start = {.fire = start_fire},
        .id = f->n,
        .src = (uint16_t)src,
        .dst = (uint16_t)dst,
        .octets = octets,
        .begin = begin,
        .stop = octets == SIM_FOREVER ? stop : SIM_NEVER,
        .message = message,
        .load = (uint16_t)load,
    };
    f->finite += octets != SIM_FOREVER;
    return (int)f->n++;
}

static void ring_free(struct sim_ring *r)
{
    if (!r)
        return;
    free(r->posted);
    free(r->received);
    free(r->ended);
    free(r->at_end);
    free(r);
}

static struct sim_ring *ring_new(uint32_t n, uint64_t octets, uint32_t iterations, uint64_t begin)
{
    struct sim_ring *r = calloc(1, sizeof(*r));
    if (!r)
        return NULL;
    *r = (struct sim_ring){
        .n = n,
        .steps = 2 * (n - 1),
        .iterations = iterations,
        .chunk = (octets + n - 1) / n,
        .posted = calloc(n, sizeof(*r->posted)),
        .received = calloc(n, sizeof(*r->received)),
        .ended = calloc(iterations, sizeof(*r->ended)),
        .at_end = calloc(iterations, sizeof(*r->at_end)),
        .begin = begin,
    };
    if (r->posted && r->received && r->ended && r->at_end)
        return r;
    ring_free(r);
    return NULL;
}

int sim_ring_add(struct sim_flows *f, uint32_t first, uint32_t n, uint64_t octets,
                 uint32_t iterations, uint64_t begin, unsigned load)
{
    struct sim_ring *r = ring_new(n, octets, iterations, begin);
    struct sim_ring **more = realloc(f->ring, (f->nrings + 1) * sizeof(struct sim_ring *));
    if (more)
        f->ring = more;
    if (!r || !more) {
        ring_free(r);
        return -ENOMEM;
    }
    f->ring[f->nrings++] = r;
    r->flow = f->n;
    for (uint32_t i = 0; i < n; i++) {
        int id = sim_flow_add(f, first + i, first + (i + 1) % n, r->chunk * r->steps * iterations,
                              begin, SIM_NEVER, (uint32_t)r->chunk, load);
        if (id < 0)
            return id;
        f->flow[id].ring = r;
        f->flow[id].rank = i;
    }
    return 0;
}

int sim_flows_begin(struct sim_flows *f, struct sim_net *net)
{
    f->net = net;
    f->placed = calloc(f->n + 1, sizeof(*f->placed));
    if (!f->placed)
        return -ENOMEM;
    for (uint32_t i = 0; i < net->nhosts; i++) {
        net->host[i].app = &app;
        net->host[i].app_arg = f;
    }
    for (uint32_t i = 0; i < f->n; i++) {
        struct sim_flow *flow = &f->flow[i];
        flow->all = f;
        if (flow->octets != SIM_FOREVER && !flow->ring)
            flow->ideal = sim_net_ideal(net, flow->src, flow->dst, flow->octets);
        sim_at(net->w, &flow->start, flow->begin);
    }
    return 0;
}

void sim_flows_free(struct sim_flows *f)
{
    for (uint32_t i = 0; i < f->nrings; i++)
        ring_free(f->ring[i]);
    free(f->ring);
    free(f->flow);
    free(f->placed);
    *f = (struct sim_flows){0};
}
