/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Figures of a run.
 */
#include "sim_metric.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- arithmetic ---- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void sim_sort(double *v, uint32_t n)
{
    qsort(v, n, sizeof(*v), by_value);
}

double sim_percentile(double *v, uint32_t n, double p)
{
    if (!n)
        return NAN;
    sim_sort(v, n);
    uint32_t i = (uint32_t)ceil(p * n);
    return v[i ? i - 1 : 0];
}

double sim_jain(const double *v, uint32_t n)
{
    double sum = 0, squares = 0;
    for (uint32_t i = 0; i < n; i++) {
        sum += v[i];
        squares += v[i] * v[i];
    }
    return squares > 0 ? sum * sum / (n * squares) : NAN;
}

/* ---- of one flow ---- */

double sim_flow_goodput(const struct sim *sim, const struct sim_flow *f)
{
    uint64_t from = f->begin, before = 0, to = f->end ? f->end : sim->w.now;
    if (sim->measured_from != SIM_NEVER && sim->measured_from > from) {
        from = sim->measured_from;
        before = sim->before[f->id];
    }
    if (to <= from)
        return f->end ? NAN : 0;
    return (double)(sim->flows.placed[f->id] - before) * 8 / (double)(to - from);
}

double sim_fct_us(const struct sim *sim, const struct sim_flow *f)
{
    (void)sim;
    return f->state == SIM_DONE ? (double)(f->end - f->begin) / 1e3 : NAN;
}

double sim_slowdown(const struct sim *sim, const struct sim_flow *f)
{
    (void)sim;
    return f->state == SIM_DONE && f->ideal ? (double)(f->end - f->begin) / (double)f->ideal : NAN;
}

static double again(const struct sim *sim, const struct sim_flow *f)
{
    (void)sim;
    return (double)f->again;
}

static double timeouts(const struct sim *sim, const struct sim_flow *f)
{
    (void)sim;
    return (double)f->timeouts;
}

/* ---- of the run ---- */

typedef double (*flow_fn)(const struct sim *sim, const struct sim_flow *f);

/* The values of all flows that have one; *n of them. The caller frees. */
static double *collect(const struct sim *sim, flow_fn fn, uint32_t *n)
{
    double *v = malloc((sim->flows.n + 1) * sizeof(*v));
    *n = 0;
    for (uint32_t i = 0; v && i < sim->flows.n; i++) {
        double x = sim->flows.flow[i].state == SIM_WAITS ? NAN : fn(sim, &sim->flows.flow[i]);
        if (!isnan(x))
            v[(*n)++] = x;
    }
    return v;
}

static double percentile_of(const struct sim *sim, flow_fn fn, double p)
{
    uint32_t n;
    double *v = collect(sim, fn, &n);
    double x = v ? sim_percentile(v, n, p) : NAN;
    free(v);
    return x;
}

static double sum_of(const struct sim *sim, flow_fn fn)
{
    uint32_t n;
    double *v = collect(sim, fn, &n), sum = 0;
    for (uint32_t i = 0; v && i < n; i++)
        sum += v[i];
    free(v);
    return sum;
}

static double m_goodput(const struct sim *sim)
{
    uint64_t octets = 0, from = sim->measured_from == SIM_NEVER ? 0 : sim->measured_from;
    bool drained = sim->drain_from != SIM_NEVER;
    uint64_t to = drained ? sim->drain_from : sim->w.now;
    for (uint32_t i = 0; i < sim->flows.n; i++)
        octets += (drained ? 0 : sim->flows.placed[i]) - (from ? sim->before[i] : 0);
    octets += drained ? sim->drain_placed : 0;
    return to > from ? (double)octets * 8 / (double)(to - from) : NAN;
}

static double m_jain(const struct sim *sim)
{
    uint32_t n;
    double *v = collect(sim, sim_flow_goodput, &n);
    double x = v ? sim_jain(v, n) : NAN;
    free(v);
    return x;
}

/* Samples of the watched queues since measuring began, of each time the longest; kB. */
static double *queue_samples(const struct sim *sim, uint32_t *n)
{
    const struct sim_series *s = sim->queue;
    uint32_t most = sim->nqueues ? s->n : 0;
    double *v = malloc((most + 1) * sizeof(*v));
    *n = 0;
    for (uint32_t i = 0; v && i < most; i++) {
        if (sim->measured_from == SIM_NEVER || s->point[i].t < sim->measured_from)
            continue;
        double longest = 0;
        for (uint32_t k = 0; k < sim->nqueues; k++)
            longest = fmax(longest, i < s[k].n ? s[k].point[i].v : 0);
        v[(*n)++] = longest / 1e3;
    }
    return v;
}

static double m_queue_p(const struct sim *sim, double p)
{
    uint32_t n;
    double *v = queue_samples(sim, &n);
    double x = v ? sim_percentile(v, n, p) : NAN;
    free(v);
    return x;
}

static double m_queue_p50(const struct sim *sim)
{
    return m_queue_p(sim, .5);
}

static double m_queue_p90(const struct sim *sim)
{
    return m_queue_p(sim, .9);
}

static double m_queue_p99(const struct sim *sim)
{
    return m_queue_p(sim, .99);
}

static double m_queue_mean(const struct sim *sim)
{
    uint32_t n;
    double *v = queue_samples(sim, &n), sum = 0;
    for (uint32_t i = 0; v && i < n; i++)
        sum += v[i];
    free(v);
    return n ? sum / n : NAN;
}

const struct sim_port *sim_longest_queue(const struct sim *sim)
{
    const struct sim_port *best = sim->nqueues ? sim->watched[0] : NULL;
    if (sim->s->nwatches) {
        for (uint32_t i = 1; i < sim->nqueues; i++)
            if (sim->watched[i]->queue_max > best->queue_max)
                best = sim->watched[i];
        return best;
    }
    for (uint32_t i = 0; i < sim->net.nswitches; i++) {
        const struct sim_node *n = &sim->net.sw[i].node;
        for (unsigned k = 0; k < n->nports; k++)
            if (!best || n->port[k]->queue_max > best->queue_max)
                best = n->port[k];
    }
    return best;
}

static double m_queue_max(const struct sim *sim)
{
    const struct sim_port *port = sim_longest_queue(sim);
    return port ? (double)port->queue_max / 1e3 : NAN;
}

#define SUM_OF_PORTS(name, field)                                                                  \
    static double name(const struct sim *sim)                                                      \
    {                                                                                              \
        uint64_t sum = 0;                                                                          \
        for (uint32_t i = 0; i < sim->net.nports; i++)                                             \
            sum += sim->net.port[i].stats.field;                                                   \
        return (double)sum;                                                                        \
    }
SUM_OF_PORTS(m_drops, drops)
SUM_OF_PORTS(m_faults, faults)
SUM_OF_PORTS(m_marks, marks)
SUM_OF_PORTS(m_pauses, pauses)
SUM_OF_PORTS(m_held, held_ns)

/* Frames that rule number `rule` of the scenario has acted on. */
static double rule_done(const struct sim *sim, unsigned rule)
{
    struct fault_rule_stats r;
    sim_fault_stats(sim->w.fault, rule, &r);
    return (double)r.done;
}

static double m_faulted(const struct sim *sim)
{
    double sum = 0;
    for (unsigned i = 0; i < sim->s->nrules; i++)
        sum += rule_done(sim, i);
    return sum;
}

static double m_held_ms(const struct sim *sim)
{
    double ns = m_held(sim);
    for (uint32_t i = 0; i < sim->net.nports; i++) /* add the ports that are paused now */
        if (sim->net.port[i].paused && sim->net.port[i].paused_at < sim->w.now)
            ns += (double)(sim->w.now - sim->net.port[i].paused_at);
    return ns / 1e6;
}

static double m_pausing(const struct sim *sim)
{
    unsigned n = 0;
    for (uint32_t i = 0; i < sim->net.nswitches; i++) {
        const struct sim_node *node = &sim->net.sw[i].node;
        bool any = false;
        for (unsigned k = 0; k < node->nports; k++)
            any |= node->port[k]->stats.pauses > 0;
        n += any;
    }
    return n;
}

static double sum_counter(const struct sim *sim, enum engine_counter c)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < sim->net.nhosts; i++)
        sum += engine_counters(sim->net.host[i].e)[c];
    return (double)sum;
}

static double m_cnps(const struct sim *sim)
{
    return sum_counter(sim, ENGINE_C_np_cnp_sent);
}

static double m_naks(const struct sim *sim)
{
    return sum_counter(sim, ENGINE_C_tx_nak_seq);
}

static double m_again(const struct sim *sim)
{
    return sum_of(sim, again);
}

static double m_timeouts(const struct sim *sim)
{
    return sum_of(sim, timeouts);
}

static double m_again_part(const struct sim *sim)
{
    uint64_t sent = 0, rtx = 0;
    for (uint32_t i = 0; i < sim->flows.n; i++) {
        sent += sim->flows.flow[i].sent;
        rtx += sim->flows.flow[i].again;
    }
    return sent ? (double)rtx / (double)sent : 0;
}

static double m_bad(const struct sim *sim)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < sim->net.nhosts; i++)
        sum += sim->net.host[i].bad_octets;
    return (double)sum;
}

static double m_done(const struct sim *sim)
{
    return sim->flows.done;
}

static double m_failed(const struct sim *sim)
{
    return sim->flows.failed;
}

/* Flows without a completion time, as they have not ended. */
static double m_open(const struct sim *sim)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < sim->flows.n; i++)
        n += sim->flows.flow[i].state == SIM_RUNS && sim->flows.flow[i].octets != SIM_FOREVER;
    return n;
}

static double m_hops(const struct sim *sim)
{
    return (double)sim->w.hops;
}

static double m_time(const struct sim *sim)
{
    return (double)sim->w.now / 1e6;
}

static double m_fct50(const struct sim *sim)
{
    return percentile_of(sim, sim_fct_us, .5);
}

static double m_fct99(const struct sim *sim)
{
    return percentile_of(sim, sim_fct_us, .99);
}

static double m_slow50(const struct sim *sim)
{
    return percentile_of(sim, sim_slowdown, .5);
}

static double m_slow99(const struct sim *sim)
{
    return percentile_of(sim, sim_slowdown, .99);
}

/* Of the first ring: time of the iterations that are over. */
static double m_reduce_us(const struct sim *sim)
{
    const struct sim_ring *r = sim->flows.nrings ? sim->flows.ring[0] : NULL;
    uint32_t n = 0;
    while (r && n < r->iterations && r->at_end[n] == r->n)
        n++;
    return n ? (double)(r->ended[n - 1] - r->begin) / 1e3 / n : NAN;
}

static double m_step_us(const struct sim *sim)
{
    return sim->flows.nrings ? m_reduce_us(sim) / sim->flows.ring[0]->steps : NAN;
}

/* ---- by name ---- */

#define METRICS(X)                                                                                 \
    X("goodput", "Gb/s", "payload placed, since measuring began", m_goodput, sim_flow_goodput)     \
    X("jain", "", "fairness index of the flows' goodput", m_jain, NULL)                            \
    X("fct_p50", "us", "flow completion time, median", m_fct50, sim_fct_us)                        \
    X("fct_p99", "us", "... 99th percentile", m_fct99, NULL)                                       \
    X("slowdown_p50", "", "completion time over the least possible", m_slow50, sim_slowdown)       \
    X("slowdown_p99", "", "... 99th percentile", m_slow99, NULL)                                   \
    X("retransmits", "", "packets sent again", m_again, again)                                     \
    X("retransmit_part", "", "... of all packets sent", m_again_part, NULL)                        \
    X("timeouts", "", "ACK timers that fired", m_timeouts, timeouts)                               \
    X("naks", "", "sequence NAKs sent", m_naks, NULL)                                              \
    X("queue_p50", "kB", "longest of the watched queues, median", m_queue_p50, NULL)               \
    X("queue_mean", "kB", "... mean", m_queue_mean, NULL)                                          \
    X("queue_p90", "kB", "... 90th percentile", m_queue_p90, NULL)                                 \
    X("queue_p99", "kB", "... 99th percentile", m_queue_p99, NULL)                                 \
    X("queue_max", "kB", "longest queue of the watched ports, else of all switches", m_queue_max,  \
      NULL)                                                                                        \
    X("marks", "", "packets marked CE", m_marks, NULL)                                             \
    X("cnps", "", "CNPs sent", m_cnps, NULL)                                                       \
    X("pauses", "", "XOFF frames sent", m_pauses, NULL)                                            \
    X("pausing_switches", "", "switches that sent some", m_pausing, NULL)                          \
    X("paused", "ms", "time that ports stood paused, summed", m_held_ms, NULL)                     \
    X("drops", "", "frames dropped by switches", m_drops, NULL)                                    \
    X("faults", "", "frames lost on wires", m_faults, NULL)                                        \
    X("faulted", "", "frames that fault rules acted on", m_faulted, NULL)                          \
    X("all_reduce", "us", "time of an all-reduce", m_reduce_us, NULL)                              \
    X("step", "us", "... of one of its steps", m_step_us, NULL)                                    \
    X("flows_done", "", "flows that have ended", m_done, NULL)                                     \
    X("flows_failed", "", "flows whose queue pair failed", m_failed, NULL)                         \
    X("flows_open", "", "flows of a finite size that were under way at the end", m_open, NULL)     \
    X("bad_octets", "", "octets placed that differ from the sent ones", m_bad, NULL)               \
    X("hops", "", "frames times wires", m_hops, NULL)                                              \
    X("time", "ms", "simulated", m_time, NULL)

const struct sim_metric_info sim_metrics[] = {
#define X(name, unit, text, fn, flow) {name, unit, text},
    METRICS(X)
#undef X
        {NULL, NULL, NULL},
};

static double (*const run_fns[])(const struct sim *sim) = {
#define X(name, unit, text, fn, flow) fn,
    METRICS(X)
#undef X
};

static const flow_fn flow_fns[] = {
#define X(name, unit, text, fn, flow) flow,
    METRICS(X)
#undef X
};

static double node_pauses(const struct sim *sim, const char *name)
{
    const struct sim_node *n = sim_net_find(&sim->net, name);
    double sum = 0;
    if (!n)
        return NAN;
    for (unsigned i = 0; i < n->nports; i++)
        sum += (double)n->port[i]->stats.pauses;
    return sum;
}

/* "12" and nothing else */
static bool number(const char *text, unsigned *out)
{
    char tail;
    return *text >= '0' && *text <= '9' && strlen(text) < 10 &&
           sscanf(text, "%u%c", out, &tail) == 1;
}

/* The metric before the dot, or -1. */
static int metric_of(const char *name)
{
    size_t len = strcspn(name, ".");
    for (int i = 0; sim_metrics[i].name; i++)
        if (strlen(sim_metrics[i].name) == len && !memcmp(sim_metrics[i].name, name, len))
            return i;
    return -1;
}

bool sim_metric_known(const char *name)
{
    int i = metric_of(name);
    const char *dot = strchr(name, '.');
    unsigned n;
    if (i < 0 || !dot)
        return i >= 0;
    if (run_fns[i] == m_pauses)
        return (!strncmp(dot, ".host", 5) && number(dot + 5, &n)) ||
               (!strncmp(dot, ".switch", 7) && number(dot + 7, &n));
    return (flow_fns[i] || run_fns[i] == m_faulted) && number(dot + 1, &n);
}

/* Is n below count? */
static bool one_of(unsigned n, uint32_t count, const char *what, char *why, size_t size)
{
    if (n < count)
        return true;
    snprintf(why, size, "there is no %s %u: the run has %u", what, n, count);
    return false;
}

/* Figures after a dot: of a node, of a fault rule, of a flow. */
static bool part_possible(const char *name, const struct sim_metric_size *has, char *why,
                          size_t size)
{
    int i = metric_of(name);
    const char *dot = strchr(name, '.');
    bool host = !strncmp(dot, ".host", 5);
    unsigned n = 0;
    number(dot + strcspn(dot, "0123456789"), &n);
    if (run_fns[i] == m_pauses)
        return one_of(n, host ? has->hosts : has->switches, host ? "host" : "switch", why, size);
    if (run_fns[i] != m_faulted)
        return one_of(n, has->flows, "flow", why, size);
    if (n && n <= has->rules)
        return true;
    snprintf(why, size, "there is no fault rule %u: the run has %u, the first is 1", n, has->rules);
    return false;
}

/* Does the figure need samples of the queue? The maximum doesn't. */
static bool of_samples(int i)
{
    return run_fns[i] == m_queue_p50 || run_fns[i] == m_queue_p90 || run_fns[i] == m_queue_p99 ||
           run_fns[i] == m_queue_mean;
}

bool sim_metric_possible(const char *name, const struct sim_metric_size *has, char *why,
                         size_t size)
{
    int i = metric_of(name);
    const char *lacks = NULL;
    if (!sim_metric_known(name))
        lacks = "there is no such metric";
    else if (strchr(name, '.'))
        return part_possible(name, has, why, size);
    else if (of_samples(i) && !has->sampled)
        lacks = "no 'sample' is taken";
    else if ((run_fns[i] == m_reduce_us || run_fns[i] == m_step_us) && !has->rings)
        lacks = "there is no all-reduce";
    if (lacks)
        snprintf(why, size, "%s", lacks);
    return !lacks;
}

bool sim_metric(struct sim *sim, const char *name, double *out)
{
    const char *dot = strchr(name, '.');
    int i = metric_of(name);
    unsigned n = 0;
    *out = NAN;
    if (i < 0 || !sim_metric_known(name))
        return false;
    for (uint32_t k = 0; k < sim->flows.n; k++)
        sim_flow_refresh(&sim->flows.flow[k]);
    if (!dot)
        *out = run_fns[i](sim);
    else if (run_fns[i] == m_pauses)
        *out = node_pauses(sim, dot + 1);
    else if (!number(dot + 1, &n))
        return false;
    else if (run_fns[i] == m_faulted && n && n <= sim->s->nrules)
        *out = rule_done(sim, n - 1);
    else if (flow_fns[i] && n < sim->flows.n)
        *out = flow_fns[i](sim, &sim->flows.flow[n]);
    return !isnan(*out);
}

bool sim_expect_holds(struct sim *sim, const struct sim_expect *x, double *value)
{
    if (!sim_metric(sim, x->metric, value))
        return false;
    switch (x->op) {
    case SIM_LE:
        return *value <= x->value;
    case SIM_GE:
        return *value >= x->value;
    default:
        return fabs(*value - x->value) <= x->within * x->value;
    }
}
