/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Any text as a scenario. It is refused with a reason, or describes a network. A small network is
 * built or refused, and runs for a bounded number of windows or hops; its counts and metrics are
 * then plausible.
 */
#include <math.h>

#include "fuzz.h"
#include "sim.h"
#include "sim_metric.h"

#define WINDOWS   10000u
#define HOPS      10000u
#define HOSTS     64u
#define FLOWS_MAX 500.0

/* The approximate number of flows of a line of traffic. */
static double flows_of(const struct sim_scenario *s, const struct sim_load *l)
{
    double hosts = sim_topo_hosts(&s->topo), count = l->count ? l->count : 1;
    switch (l->kind) {
    case SIM_BURST:
        return (l->count ? l->count : hosts) * l->times;
    case SIM_ALL_TO_ALL:
        return hosts * hosts;
    case SIM_ALL_REDUCE:
        return hosts * l->times;
    case SIM_ARRIVALS:
        return l->load * (double)s->topo.rate * hosts * (double)s->duration /
               (8e9 * sim_dist_mean(l->dist));
    case SIM_FLOW:
    case SIM_PERMUTATION:
        break;
    }
    return hosts * count;
}

static void check_network(struct sim *sim)
{
    const struct sim_scenario *s = sim->s;
    for (uint32_t i = 0; i < sim->net.nswitches; i++) {
        const struct sim_switch *sw = &sim->net.sw[i];
        FUZZ_CHECK(sw->used <= sw->capacity && sw->used_max <= sw->capacity);
        for (unsigned k = 0; k < sw->node.nports; k++)
            for (unsigned prio = 0; sw->p.pfc && prio < SIM_PRIOS; prio++)
                FUZZ_CHECK(!sw->in[prio] || sw->in[prio][k].room <= sw->headroom[k]);
    }
    for (uint32_t i = 0; i < sim->flows.n; i++) {
        const struct sim_flow *f = &sim->flows.flow[i];
        FUZZ_CHECK(s->nrules || f->octets == SIM_FOREVER || sim->flows.placed[i] <= f->octets);
        FUZZ_CHECK(f->state != SIM_DONE || f->end >= f->begin);
    }
}

static void check_figures(struct sim *sim)
{
    struct sim_size_bin bin[SIM_BINS];
    double v;
    for (const struct sim_metric_info *m = sim_metrics; m->name; m++)
        FUZZ_CHECK(!sim_metric(sim, m->name, &v) || isnan(v) || v >= 0);
    FUZZ_CHECK(!sim_metric(sim, "jain", &v) || isnan(v) || v <= 1 + 1e-9);
    FUZZ_CHECK(!sim_metric(sim, "bad_octets", &v) || v == 0 || sim->s->nrules);
    for (unsigned i = 0; i < sim->s->nexpects; i++)
        sim_expect_holds(sim, &sim->s->expect[i], &v);
    for (unsigned i = 0, n = sim_size_bins(sim, bin); i < n; i++)
        FUZZ_CHECK(bin[i].p50 <= bin[i].p95 && bin[i].p95 <= bin[i].p99);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct sim_scenario s;
    struct sim_error err;
    struct sim *sim;
    double flows = 0;
    sim_scenario_free(&s);
    sim_scenario_init(&s);
    if (sim_scenario_parse(&s, (const char *)data, size, 0, &err)) {
        FUZZ_CHECK(err.reason[0]);
        return 0;
    }
    uint32_t hosts = sim_topo_hosts(&s.topo);
    FUZZ_CHECK(hosts >= 2 && s.points >= 1 && s.points <= SIM_POINTS);
    for (unsigned i = 0; i < s.nloads; i++)
        flows += flows_of(&s, &s.load[i]);
    if (hosts > HOSTS || flows > FLOWS_MAX) /* it would be right, and take long */
        return 0;
    if (sim_create(&s, NULL, &sim, &err)) {
        FUZZ_CHECK(err.reason[0]);
        return 0;
    }
    for (unsigned n = 0; n < WINDOWS && sim->w.hops < HOPS && sim_step(sim); n++)
        ;
    check_network(sim);
    check_figures(sim);
    sim_destroy(sim);
    return 0;
}
