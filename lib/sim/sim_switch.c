/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The shared-buffer switch. Rules: CC-01, CC-02.
 */
#include "sim_switch.h"

#include <errno.h>
#include <stdlib.h>

#define FRAME_MARGIN 4096u /* a frame just started */
#define REACT_MARGIN 1024u /* sent until the sender has read the pause */

static struct sim_switch *switch_of(struct sim_node *n)
{
    return (struct sim_switch *)(void *)n;
}

/* ---- routes ---- */

struct sim_port *sim_switch_route(const struct sim_switch *s, uint32_t host, uint32_t flow,
                                  struct sim_rng *rng)
{
    const struct sim_routes *r = &s->routes;
    const struct sim_homes *h = r->homes;
    if (host >= h->nhosts)
        return NULL;
    if (h->leaf[host] == r->self)
        return s->node.port[h->port[host]];
    const struct sim_route *set = &r->set[h->leaf[host]];
    if (!set->n)
        return NULL;
    uint32_t pick = 0;
    if (set->n > 1 && rng)
        pick = sim_rand_below(rng, set->n);
    else if (set->n > 1)
        pick = (uint32_t)((sim_mix(flow ^ (uint64_t)s->node.id << 32) >> 32) * set->n >> 32);
    return r->ports[set->first + pick];
}

/* ---- CE ---- */

/* CC-02. */
static bool red(struct sim_switch *s, uint64_t q)
{
    const struct sim_switch_params *p = &s->p;
    if (!p->kmax || q <= p->kmin)
        return false;
    if (q > p->kmax)
        return true;
    double prob = p->pmax * (double)(q - p->kmin) / (double)(p->kmax - p->kmin);
    return sim_rand_unit(&s->rng) < prob;
}

/* ---- pause ---- */

static uint64_t dynamic(const struct sim_switch *s)
{
    return (uint64_t)(s->p.alpha * (double)(s->capacity - s->used));
}

static uint64_t threshold(const struct sim_switch *s)
{
    return s->p.xoff ? s->p.xoff : dynamic(s);
}

static void arm_refresh(struct sim_switch *s, const struct sim_port *port, uint64_t now)
{
    uint64_t at = now + sim_port_pause_ns(port, SIM_PAUSE_MAX) / 2;
    if (!sim_event_pending(&s->refresh) || at < s->refresh.at)
        sim_at(&s->node, &s->refresh, at);
}

static void xoff(struct sim_switch *s, struct sim_port *in, unsigned prio, uint64_t now)
{
    s->xoff[in->index] |= (uint8_t)(1u << prio);
    sim_port_pause(in, 1u << prio, SIM_PAUSE_MAX, now);
    arm_refresh(s, in, now);
}

static void refresh_fire(struct sim_event *ev, uint64_t now)
{
    struct sim_switch *s = SIM_CONTAINER(ev, struct sim_switch, refresh);
    for (unsigned i = 0; i < s->node.nports; i++) {
        if (!s->xoff[i])
            continue;
        sim_port_pause(s->node.port[i], s->xoff[i], SIM_PAUSE_MAX, now);
        arm_refresh(s, s->node.port[i], now);
    }
}

/* ---- buffer ---- */

/* Room for the frame, or a reason why not. */
static const char *admit(struct sim_switch *s, struct sim_port *in, const struct sim_port *out,
                         struct sim_pkt *p, uint64_t now)
{
    unsigned prio = p->prio;
    struct sim_account *a = &s->in[prio][in->index];
    bool fits = s->used + p->len <= s->capacity;
    if (!s->p.pfc || !(s->p.lossless >> prio & 1)) {
        uint64_t limit = s->p.queue_limit ? s->p.queue_limit : dynamic(s);
        if (!fits || out->q[prio].bytes + p->len > limit)
            return "no buffer";
    } else if (!fits || a->shared + p->len > threshold(s)) {
        if (a->room + p->len > s->headroom[in->index]) {
            s->lost_headroom++;
            return "no head-room";
        }
        a->room += p->len;
        if (!(s->xoff[in->index] >> prio & 1))
            xoff(s, in, prio, now);
        return NULL;
    }
    a->shared += p->len;
    s->used += p->len;
    if (s->used > s->used_max)
        s->used_max = s->used;
    return NULL;
}

static void release(struct sim_switch *s, const struct sim_pkt *p, uint64_t now)
{
    unsigned prio = p->prio;
    struct sim_account *a = &s->in[prio][p->in];
    uint64_t room = p->len < a->room ? p->len : a->room; /* other frames may have taken it */
    a->room -= room;
    a->shared -= p->len - room;
    s->used -= p->len - room;
    if (!(s->xoff[p->in] >> prio & 1) || a->room)
        return;
    uint64_t t = threshold(s), gap = s->p.xon_gap;
    if (a->shared && a->shared + gap > t)
        return;
    s->xoff[p->in] &= (uint8_t) ~(1u << prio);
    sim_port_pause(s->node.port[p->in], 1u << prio, 0, now);
}

/* ---- the node ---- */

static void switch_rx(struct sim_node *n, struct sim_port *in, struct sim_pkt *p, uint64_t now)
{
    struct sim_switch *s = switch_of(n);
    struct sim_rng *rng = s->p.balance == SIM_SPRAY ? &s->rng : NULL;
    struct sim_port *out = sim_switch_route(s, p->dst, p->flow, rng);
    if (!out) {
        sim_port_drop(in, p, "no route", now);
        return;
    }
    p->in = in->index;
    const char *why = admit(s, in, out, p, now);
    if (why) {
        sim_port_drop(out, p, why, now);
        return;
    }
    if (s->p.kmax && red(s, out->q[p->prio].bytes) && sim_pkt_ecn(p)) { /* CC-01: ECT only */
        sim_pkt_mark(p);
        out->stats.marks++;
    }
    sim_port_send(out, p, now);
}

static void switch_sent(struct sim_node *n, struct sim_port *out, struct sim_pkt *p, uint64_t now)
{
    (void)out;
    if (!(p->flags & SIM_PKT_PAUSE))
        release(switch_of(n), p, now);
}

static void switch_near(const struct sim_node *n, unsigned step)
{
    sim_keep();
    for (unsigned i = 0; step == 1 && i < n->nports; i++) {
        __builtin_prefetch(&n->port[i]->node);
        __builtin_prefetch(&n->port[i]->tx);
        __builtin_prefetch(&n->port[i]->rx);
        __builtin_prefetch(n->port[i]->q);
    }
}

const struct sim_node_ops sim_switch_ops = {
    .rx = switch_rx, .sent = switch_sent, .near = switch_near};

/* Octets that can arrive between our pause and its effect: the cable's length twice, plus a started
 * frame on either side, ahead of the pause and ahead of its effect. */
static uint64_t auto_headroom(uint64_t rate, uint64_t delay)
{
    return 2 * delay * (rate / 1000) / 8000000 + 4ull * FRAME_MARGIN + REACT_MARGIN;
}

/* Of one priority. */
static uint64_t headroom(const struct sim_switch_params *p, uint64_t rate, uint64_t delay)
{
    return p->headroom ? p->headroom : auto_headroom(rate, delay);
}

uint64_t sim_switch_headroom(const struct sim_switch_params *p, uint64_t rate, uint64_t delay)
{
    return p->pfc ? headroom(p, rate, delay) * (unsigned)__builtin_popcount(p->lossless) : 0;
}

int sim_switch_init(struct sim_switch *s, struct sim_world *w, const struct sim_switch_params *p)
{
    unsigned n = s->node.nports;
    s->node.ops = &sim_switch_ops;
    s->node.w = w;
    s->p = *p;
    s->rng.s = sim_mix(w->rng.s ^ s->node.id);
    s->refresh.fire = refresh_fire;
    s->refresh.key = sim_key(SIM_K_TIMER, 0);
    s->in[0] = calloc((size_t)n * SIM_PRIOS, sizeof(*s->in[0]));
    s->xoff = calloc(n, 1);
    s->headroom = calloc(n, sizeof(*s->headroom));
    if (!s->in[0] || !s->xoff || !s->headroom)
        return -ENOMEM;
    for (unsigned i = 1; i < SIM_PRIOS; i++)
        s->in[i] = s->in[i - 1] + n;
    uint64_t reserved = 0;
    for (unsigned i = 0; p->pfc && i < n; i++) {
        const struct sim_port *port = s->node.port[i];
        s->headroom[i] = headroom(p, port->rate, port->delay);
        reserved += sim_switch_headroom(p, port->rate, port->delay);
    }
    if (reserved >= p->buffer)
        return -EINVAL;
    s->capacity = p->buffer - reserved;
    return 0;
}

void sim_switch_free(struct sim_switch *s)
{
    free(s->in[0]);
    free(s->xoff);
    free(s->headroom);
    free(s->routes.set);
    free(s->routes.ports);
}
