/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Building, running and sampling a simulation.
 */
#include "sim.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim_check.h"
#include "sim_metric.h"
#include "sim_traffic.h"

#define WINDOW_HOSTS 128u /* smaller networks fit into the near caches, in any order */

/* ---- samples ---- */

static void append(struct sim *sim, struct sim_series *s, uint64_t t, double v)
{
    if (s->n == s->cap) {
        uint32_t cap = s->cap ? s->cap * 2 : 256;
        struct sim_point *more = realloc(s->point, cap * sizeof(*more));
        if (!more) {
            sim->w.failed = true;
            return;
        }
        s->point = more;
        s->cap = cap;
    }
    s->point[s->n++] = (struct sim_point){t, v};
}

/* The current values of congestion control of a flow's queue pair. */
static void sample_cc(struct sim *sim, uint32_t i, uint64_t now)
{
    const struct sim_flow *f = &sim->flows.flow[i];
    double limit = NAN, alpha = NAN;
    if (f->state == SIM_RUNS) {
        struct engine_qp_info info;
        uint64_t line = sim->net.host[f->src].port->rate;
        engine_qp_info(sim->net.host[f->src].e, f->qa, &info);
        limit = (double)(info.cc_rate < line ? info.cc_rate : line) / 1e9;
        alpha = (double)info.cc_alpha / CC_ONE;
    }
    append(sim, &sim->limit[i], now, limit);
    append(sim, &sim->alpha[i], now, alpha);
}

static void measure_fire(struct sim_event *ev, uint64_t now)
{
    struct sim *sim = SIM_CONTAINER(ev, struct sim, measure);
    sim->measured_from = now;
    for (uint32_t i = 0; i < sim->flows.n; i++)
        sim->before[i] = sim->flows.placed[i];
}

/* The arrivals have ended: note the time, and the octets placed so far. */
static void drain_fire(struct sim_event *ev, uint64_t now)
{
    struct sim *sim = SIM_CONTAINER(ev, struct sim, drain);
    sim->drain_from = now;
    for (uint32_t i = 0; i < sim->flows.n; i++)
        sim->drain_placed += sim->flows.placed[i];
}

/* When the last line of arrivals stops, if there is no other traffic; else SIM_NEVER. */
static uint64_t arrivals_stop(const struct sim_scenario *s)
{
    uint64_t last = 0;
    for (unsigned i = 0; i < s->nloads; i++) {
        if (s->load[i].kind != SIM_ARRIVALS || s->load[i].stop >= s->duration)
            return SIM_NEVER;
        last = s->load[i].stop > last ? s->load[i].stop : last;
    }
    return last > s->measure ? last : SIM_NEVER;
}

static void sample_totals(struct sim *sim, uint64_t now)
{
    uint64_t again = 0, pauses = 0;
    for (uint32_t i = 0; i < sim->net.nhosts; i++)
        again += engine_counters(sim->net.host[i].e)[ENGINE_C_tx_retransmit];
    for (uint32_t i = 0; i < sim->net.nports; i++)
        pauses += sim->net.port[i].stats.pauses;
    append(sim, &sim->again, now, (double)again);
    append(sim, &sim->pauses, now, (double)pauses);
}

static void sample_fire(struct sim_event *ev, uint64_t now)
{
    struct sim *sim = SIM_CONTAINER(ev, struct sim, sample);
    uint64_t every = sim->s->sample, sum = 0;
    uint32_t active = 0;
    double squares = 0;
    for (uint32_t i = 0; i < sim->flows.n; i++) {
        struct sim_flow *f = &sim->flows.flow[i];
        uint64_t d = sim->flows.placed[i] - f->sampled;
        f->sampled = sim->flows.placed[i];
        sum += d;
        squares += (double)d * (double)d;
        active += d || f->state == SIM_RUNS;
        if (i >= sim->nrates)
            continue;
        append(sim, &sim->rate[i], now, (double)d * 8 / (double)every);
        sample_cc(sim, i, now);
    }
    append(sim, &sim->total, now, (double)sum * 8 / (double)every);
    append(sim, &sim->fair, now, sum ? (double)sum * (double)sum / (active * squares) : NAN);
    sample_totals(sim, now);
    for (uint32_t i = 0; i < sim->nqueues; i++)
        append(sim, &sim->queue[i], now, (double)sim->watched[i]->queued);
    sim_call(&sim->w, &sim->sample, now + every);
}

/* ---- building ---- */

static int fail(struct sim_error *err, int rc, unsigned line, const char *field, const char *reason)
{
    err->line = line;
    snprintf(err->field, sizeof(err->field), "%s", field);
    snprintf(err->reason, sizeof(err->reason), "%s", reason);
    return rc;
}

static void watch(struct sim *sim, uint32_t from, uint32_t to)
{
    uint32_t nodes = sim->net.nhosts + sim->net.nswitches;
    struct sim_port *port = from < nodes && to < nodes ? sim_net_port(&sim->net, from, to) : NULL;
    if (!port)
        return;
    sim->watched[sim->nqueues] = port;
    snprintf(sim->queue[sim->nqueues].name, sizeof(sim->queue[0].name), "%s>%s", port->node->name,
             port->peer->node->name);
    sim->nqueues++;
}

static int prepare_samples(struct sim *sim, const struct sim_plan *plan, struct sim_error *err)
{
    const struct sim_scenario *s = sim->s;
    uint32_t n = sim->flows.n;
    sim->nrates = n < SIM_SERIES_FLOWS ? n : SIM_SERIES_FLOWS;
    sim->rate = calloc(sim->nrates + 1, sizeof(*sim->rate));
    sim->limit = calloc(sim->nrates + 1, sizeof(*sim->limit));
    sim->alpha = calloc(sim->nrates + 1, sizeof(*sim->alpha));
    sim->before = calloc(n + 1, sizeof(*sim->before));
    sim->queue = calloc(s->nwatches + 1, sizeof(*sim->queue));
    sim->watched = calloc(s->nwatches + 1, sizeof(struct sim_port *));
    if (!sim->rate || !sim->limit || !sim->alpha || !sim->before || !sim->queue || !sim->watched)
        return fail(err, -ENOMEM, 0, "", "out of memory");
    for (uint32_t i = 0; i < sim->nrates; i++) {
        snprintf(sim->rate[i].name, sizeof(sim->rate[i].name), "flow %u", i);
    }
    snprintf(sim->total.name, sizeof(sim->total.name), "all flows");
    snprintf(sim->fair.name, sizeof(sim->fair.name), "fairness index");
    snprintf(sim->again.name, sizeof(sim->again.name), "packets sent again");
    snprintf(sim->pauses.name, sizeof(sim->pauses.name), "pause frames");
    for (unsigned i = 0; i < s->nwatches; i++)
        watch(sim, s->watch[i].from, s->watch[i].to);
    if (!s->nwatches)
        watch(sim, plan->watch_from, plan->watch_to);
    sim->measure.fire = measure_fire;
    sim->measure.key = 1;
    sim->sample.fire = sample_fire;
    sim->sample.key = 2;
    sim->drain.fire = drain_fire;
    sim->drain.key = 3;
    if (arrivals_stop(s) != SIM_NEVER)
        sim_call(&sim->w, &sim->drain, arrivals_stop(s));
    if (s->measure)
        sim_call(&sim->w, &sim->measure, s->measure);
    if (s->sample)
        sim_call(&sim->w, &sim->sample, s->sample);
    return 0;
}

static int build(struct sim *sim, struct sim_plan *plan, struct sim_error *err)
{
    const struct sim_scenario *s = sim->s;
    struct sim_metric_size has;
    int rc = sim_check_plan(s, plan, err);
    if (!rc)
        rc = sim_check_flows(s, plan, &sim->flows, &sim->w.rng, &has, err);
    if (rc)
        return rc;
    struct sim_net_params p = s->net;
    p.max_qp = sim_traffic_max_qp(&sim->flows, plan->nhosts);
    p.windows = plan->nhosts >= WINDOW_HOSTS && !s->nrules && !sim->w.hooks.fault &&
                !(s->noise.loss > 0 || s->noise.reorder > 0); /* these take frames in order */
    rc = sim_net_build(&sim->net, &sim->w, plan, &p);
    if (rc)
        return fail(err, rc, 0, "", "the network could not be built");
    if (s->noise.loss > 0 || s->noise.reorder > 0) {
        sim_noise_init(&sim->noise, &sim->w, sim->net.port, &s->noise);
        sim->w.noise = &sim->noise;
    }
    rc = sim_fault_new(&sim->w.fault, &sim->w, s, &sim->net, err);
    if (rc)
        return rc;
    rc = prepare_samples(sim, plan, err);
    if (rc)
        return rc;
    if (sim_flows_begin(&sim->flows, &sim->net))
        return fail(err, -ENOMEM, 0, "", "out of memory");
    return 0;
}

int sim_create(const struct sim_scenario *s, const struct sim_hooks *hooks, struct sim **out,
               struct sim_error *err)
{
    struct sim_plan plan = {0};
    struct sim *sim = calloc(1, sizeof(*sim));
    if (!sim)
        return fail(err, -ENOMEM, 0, "", "out of memory");
    *err = (struct sim_error){0};
    sim->s = s;
    sim->measured_from = s->measure ? SIM_NEVER : 0;
    sim->drain_from = SIM_NEVER;
    sim_wheel_init(&sim->w.wheel);
    sim->w.rng.s = sim_mix(s->seed);
    sim->w.skip_payload = s->skip_payload;
    if (hooks)
        sim->w.hooks = *hooks;
    sim_pool_init(&sim->w.pool, s->skip_payload ? SIM_DATA_MIN : WIRE_FRAME_MAX);
    int rc = build(sim, &plan, err);
    sim_plan_free(&plan);
    if (rc) {
        sim_destroy(sim);
        return rc;
    }
    *out = sim;
    return 0;
}

void sim_destroy(struct sim *sim)
{
    if (!sim)
        return;
    for (uint32_t i = 0; i < sim->nrates; i++) {
        if (sim->rate)
            free(sim->rate[i].point);
        if (sim->limit)
            free(sim->limit[i].point);
        if (sim->alpha)
            free(sim->alpha[i].point);
    }
    for (uint32_t i = 0; i < sim->nqueues; i++)
        free(sim->queue[i].point);
    free(sim->queue);
    free(sim->watched);
    free(sim->total.point);
    free(sim->fair.point);
    free(sim->again.point);
    free(sim->pauses.point);
    free(sim->rate);
    free(sim->limit);
    free(sim->alpha);
    free(sim->before);
    sim_flows_free(&sim->flows);
    sim_fault_free(sim->w.fault);
    sim_heap_free(&sim->w.calls);
    sim_net_free(&sim->net);
    sim_pool_free(&sim->w.pool);
    free(sim);
}

/* ---- running ---- */

static bool over(const struct sim *sim)
{
    return sim->w.failed || sim_flows_over(&sim->flows);
}

/* The window in which the last flow ends continues for other nodes. The length of the run must not
 * depend on windows: it is the time of that end. */
static void settle(struct sim *sim)
{
    uint64_t end = sim->flows.last + sim->w.lookahead;
    if (end > sim->s->duration)
        end = sim->s->duration;
    sim_call_off(&sim->w, &sim->sample);
    sim_call_off(&sim->w, &sim->measure);
    sim_call_off(&sim->w, &sim->drain);
    while (sim->w.lookahead && sim_window_run(&sim->w, end - 1))
        ;
    sim->w.now = sim->flows.last;
}

bool sim_step(struct sim *sim)
{
    if (!over(sim) && sim_window_run(&sim->w, sim->s->duration))
        return true;
    if (over(sim))
        settle(sim);
    return false;
}

bool sim_run(struct sim *sim, uint64_t until)
{
    if (until > sim->s->duration)
        until = sim->s->duration;
    while (!over(sim) && sim_window_run(&sim->w, until))
        ;
    if (over(sim)) {
        settle(sim);
        return false;
    }
    sim->w.now = until;
    return until < sim->s->duration;
}
