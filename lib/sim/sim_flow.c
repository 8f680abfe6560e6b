/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Flows and rings: the traffic of simulated hosts.
 */
#include "sim_flow.h"

#include <errno.h>
#include <stdlib.h>

#define DEPTH      4u           /* WRITEs of a flow outstanding */
#define RING_DEPTH 16u          /* of a rank of a ring, and receives posted */
#define WRAP       (1ull << 30) /* octets after which a flow's addresses repeat */

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

static struct sim_node *src_node(const struct sim_flow *f)
{
    return &src_host(f)->node;
}

static struct sim_node *dst_node(const struct sim_flow *f)
{
    return &dst_host(f)->node;
}

static uint64_t lookahead(const struct sim_flow *f)
{
    return f->all->net->w->lookahead;
}

static void over_fire(struct sim_event *ev, uint64_t now)
{
    struct sim_flow *f = SIM_CONTAINER(ev, struct sim_flow, over);
    (void)now;
    if (f->qb)
        sim_host_close(dst_host(f), f->qb);
    f->qb = NULL;
}

/* At the source. */
static void finish(struct sim_flow *f, enum sim_flow_state state, uint64_t now)
{
    struct sim_flows *all = f->all;
    sim_flow_refresh(f);
    f->state = (uint8_t)state;
    f->end = now;
    if (state == SIM_DONE)
        all->done++;
    else
        all->failed++;
    if (now > all->last)
        all->last = now;
    if (f->qa)
        sim_host_close(src_host(f), f->qa);
    f->qa = NULL;
    if (lookahead(f))
        sim_at(dst_node(f), &f->over, now + lookahead(f));
    else
        over_fire(&f->over, now);
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
        .rkey = f->rkey,
        .remote_va = va,
    };
    int err = engine_post_send(src_host(f)->e, f->qa, &wr, now);
    if (!err) {
        f->posted += len;
        f->out++;
    }
    return err;
}

/* ---- flows outside of rings ---- */

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
    if (got % r->steps == 0) {
        uint32_t i = got / r->steps - 1;
        r->at_end[i]++;
        if (now > r->ended[i])
            r->ended[i] = now;
    }
    ring_step(r, &all->flow[r->flow + rank], now);
}

/* ---- completions ---- */

static void src_hears(struct sim_event *ev, uint64_t now)
{
    struct sim_flow *f = SIM_CONTAINER(ev, struct sim_flow, src_next);
    if (f->state == SIM_RUNS)
        finish(f, SIM_FAILED, now);
}

static void dst_completed(struct sim_flow *f, const struct engine_wc *wc, uint64_t now)
{
    if (wc->status == WC_SUCCESS) {
        post_recv(f);
        ring_received(f->all, f->ring, (f->rank + 1) % f->ring->n, now);
    } else if (!f->dst_failed) {
        f->dst_failed = true;
        f->src_next.fire = src_hears;
        sim_at(src_node(f), &f->src_next, now + lookahead(f));
    }
}

static void app_completed(struct sim_host *h, const struct engine_wc *wc, uint64_t now)
{
    struct sim_flow *f = (struct sim_flow *)(uintptr_t)wc->qp_arg;
    if (h == dst_host(f)) {
        dst_completed(f, wc, now);
        return;
    }
    if (f->state != SIM_RUNS)
        return;
    if (wc->status != WC_SUCCESS) {
        finish(f, SIM_FAILED, now);
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

/* ---- how they begin and end ---- */

static uint32_t first_psn(const struct sim_flow *f, unsigned end)
{
    return sim_mix(f->all->salt + 2ull * f->id + end) & WIRE_PSN_MASK;
}

static void src_begins(struct sim_event *ev, uint64_t now)
{
    struct sim_flow *f = SIM_CONTAINER(ev, struct sim_flow, src_next);
    struct sim_host *h = src_host(f);
    f->state = SIM_RUNS;
    if (!f->qa || !f->qpn_b ||
        sim_host_join(h, f->qa, dst_host(f), f->qpn_b, first_psn(f, 0), first_psn(f, 1), now)) {
        finish(f, SIM_FAILED, now);
        return;
    }
    if (f->ring)
        ring_step(f->ring, f, now);
    else
        flow_step(f, now);
    sim_host_kick(h, now);
}

static void dst_begins(struct sim_event *ev, uint64_t now)
{
    struct sim_flow *f = SIM_CONTAINER(ev, struct sim_flow, dst_next);
    if (!f->qb || !f->qpn_a ||
        sim_host_join(dst_host(f), f->qb, src_host(f), f->qpn_a, first_psn(f, 1), first_psn(f, 0),
                      now))
        return; /* the source gives up by itself */
    for (unsigned i = 0; f->ring && i < RING_DEPTH; i++)
        post_recv(f);
}

static void src_opens(struct sim_event *ev, uint64_t now)
{
    struct sim_flow *f = SIM_CONTAINER(ev, struct sim_flow, src_next);
    f->qa = sim_host_open(src_host(f), f, f->cc, f->ring ? RING_DEPTH : DEPTH, 0, now);
    f->qpn_a = f->qa ? engine_qp_num(f->qa) : 0;
    f->src_next.fire = src_begins;
    if (lookahead(f))
        sim_at(src_node(f), &f->src_next, f->begin);
}

static void dst_opens(struct sim_event *ev, uint64_t now)
{
    struct sim_flow *f = SIM_CONTAINER(ev, struct sim_flow, dst_next);
    f->qb = sim_host_open(dst_host(f), f, f->cc, 1, f->ring ? RING_DEPTH : 0, now);
    f->qpn_b = f->qb ? engine_qp_num(f->qb) : 0;
    f->dst_next.fire = dst_begins;
    if (lookahead(f))
        sim_at(dst_node(f), &f->dst_next, f->begin);
}

/* Move a flow's event from the wheel, where any number of flows may wait, to the events of its
 * nodes. */
static void hand_out(struct sim_event *ev, uint64_t now)
{
    struct sim_flow *f = SIM_CONTAINER(ev, struct sim_flow, src_next);
    f->src_next.fire = src_opens;
    f->dst_next.fire = dst_opens;
    sim_at(src_node(f), &f->src_next, now);
    sim_at(dst_node(f), &f->dst_next, now);
}

/* Start both ends at once, in a world where nodes may affect each other at once. */
static void start_fire(struct sim_event *ev, uint64_t now)
{
    struct sim_flow *f = SIM_CONTAINER(ev, struct sim_flow, src_next);
    src_opens(&f->src_next, now);
    dst_opens(&f->dst_next, now);
    dst_begins(&f->dst_next, now);
    src_begins(&f->src_next, now);
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
    uint64_t ahead = net->w->lookahead;
    f->net = net;
    f->salt = sim_rand(&net->w->rng);
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
        flow->rkey = net->host[flow->dst].rkey;
        flow->src_next = (struct sim_event){.key = sim_key(SIM_K_FLOW, 4 * i),
                                            .fire = ahead ? hand_out : start_fire};
        flow->dst_next = (struct sim_event){.key = sim_key(SIM_K_FLOW, 4 * i + 1)};
        flow->over = (struct sim_event){.key = sim_key(SIM_K_FLOW, 4 * i + 2), .fire = over_fire};
        if (flow->begin >= ahead) {
            sim_wheel_add(&net->w->wheel, &flow->src_next, flow->begin - ahead);
        } else {
            src_opens(&flow->src_next, 0);
            dst_opens(&flow->dst_next, 0);
        }
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
