/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Traffic patterns.
 */
#include "sim_traffic.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

struct maker {
    struct sim_flows *f;
    const struct sim_load *l;
    struct sim_rng *rng;
    uint32_t hosts;
    uint64_t rate, duration;
    unsigned index; /* of the line */
};

static int add(struct maker *m, uint32_t src, uint32_t dst, uint64_t octets, uint64_t begin)
{
    if (m->l->jitter)
        begin += (uint64_t)(sim_rand_unit(m->rng) * (double)m->l->jitter);
    int id = sim_flow_add(m->f, src, dst, octets, begin, m->l->stop, m->l->message, m->index);
    return id < 0 ? id : 0;
}

static int make_flow(struct maker *m)
{
    uint32_t n = m->l->count ? m->l->count : 1;
    int err = 0;
    for (uint32_t i = 0; i < n && !err; i++)
        err = add(m, m->l->from, m->l->to, m->l->size ? m->l->size : SIM_FOREVER, m->l->start);
    return err;
}

static int make_burst(struct maker *m)
{
    uint32_t n = m->l->count ? m->l->count : m->hosts - 1;
    int err = 0;
    for (uint32_t k = 0; k < m->l->times; k++) {
        for (uint32_t i = 0, src = 0; i < n && !err; src++) {
            if (src == m->l->to)
                continue;
            err = add(m, src, m->l->to, m->l->size, m->l->start + k * m->l->every);
            i++;
        }
    }
    return err;
}

/* Every host sends to one host and receives from one, never itself: a cycle through all in random
 * order. */
static int make_permutation(struct maker *m)
{
    uint32_t *order = malloc(m->hosts * sizeof(*order));
    if (!order)
        return -ENOMEM;
    for (uint32_t i = 0; i < m->hosts; i++) {
        uint32_t j = sim_rand_below(m->rng, i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    int err = 0;
    for (uint32_t i = 0; i < m->hosts && !err; i++)
        err = add(m, order[i], order[(i + 1) % m->hosts], m->l->size, m->l->start);
    free(order);
    return err;
}

static int make_all_to_all(struct maker *m)
{
    int err = 0;
    for (uint32_t step = 1; step < m->hosts; step++)
        for (uint32_t src = 0; src < m->hosts && !err; src++)
            err = add(m, src, (src + step) % m->hosts, m->l->size, m->l->start);
    return err;
}

static int make_all_reduce(struct maker *m)
{
    const struct sim_load *l = m->l;
    uint32_t n = l->hosts ? l->hosts : m->hosts;
    return sim_ring_add(m->f, l->from, n, l->size, l->times, l->start, m->index);
}

/* Poisson arrivals between random pairs, which load the hosts' links to the given part. */
static int make_arrivals(struct maker *m)
{
    const struct sim_load *l = m->l;
    double per_ns = l->load * (double)m->rate * m->hosts / (8e9 * sim_dist_mean(l->dist));
    double t = (double)l->start;
    uint64_t stop = l->stop < m->duration ? l->stop : m->duration;
    int err = 0;
    while (!err) {
        t += -log(1 - sim_rand_unit(m->rng)) / per_ns;
        if (t >= (double)stop)
            break;
        uint32_t src = sim_rand_below(m->rng, m->hosts);
        uint32_t dst = sim_rand_below(m->rng, m->hosts - 1);
        dst += dst >= src;
        err = add(m, src, dst, sim_dist_at(l->dist, sim_rand_unit(m->rng)), (uint64_t)t);
    }
    return err;
}

static int (*const makers[])(struct maker *m) = {
    [SIM_FLOW] = make_flow,
    [SIM_BURST] = make_burst,
    [SIM_PERMUTATION] = make_permutation,
    [SIM_ALL_TO_ALL] = make_all_to_all,
    [SIM_ALL_REDUCE] = make_all_reduce,
    [SIM_ARRIVALS] = make_arrivals,
};

int sim_traffic_add(struct sim_flows *f, const struct sim_scenario *s, struct sim_rng *rng,
                    unsigned *line)
{
    for (unsigned i = 0; i < s->nloads; i++) {
        struct maker m = {
            .f = f,
            .l = &s->load[i],
            .rng = rng,
            .hosts = sim_topo_hosts(&s->topo),
            .rate = s->topo.rate,
            .duration = s->duration,
            .index = i,
        };
        uint32_t first = f->n;
        int err = makers[s->load[i].kind](&m);
        for (uint32_t k = first; m.l->cc.type && k < f->n; k++)
            f->flow[k].cc = &m.l->cc;
        if (err) {
            *line = s->load[i].line;
            return err;
        }
    }
    return 0;
}

uint32_t sim_traffic_max_qp(const struct sim_flows *f, uint32_t nhosts)
{
    uint32_t *count = calloc(nhosts, sizeof(*count)), most = 1;
    if (!count)
        return 0;
    for (uint32_t i = 0; i < f->n; i++) {
        uint32_t a = ++count[f->flow[i].src], b = ++count[f->flow[i].dst];
        most = a > most ? a : most;
        most = b > most ? b : most;
    }
    free(count);
    return most;
}
