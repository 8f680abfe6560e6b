/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Output of simulations.
 */
#include "sim_out.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "plot.h"
#include "sim_metric.h"
#include "sim_params.h"
#include "urnic/urnic.h"

/* ---- JSON ---- */

static void string(FILE *f, const char *s)
{
    json_t *text = cli_json_text(s);
    json_dumpf(text, f, JSON_ENCODE_ANY);
    json_decref(text);
}

static void variables(FILE *f, const struct sim_scenario *s)
{
    for (unsigned i = 0; i < s->nvars; i++) {
        fputc(i ? ',' : '{', f);
        string(f, s->var[i].name);
        fputc(':', f);
        string(f, s->var[i].value);
    }
    fputs(s->nvars ? "}" : "{}", f);
}

void sim_out_point(FILE *f, const struct sim_scenario *s, uint32_t point)
{
    fprintf(f, "{\"point\":%u,\"points\":%u,\"set\":", point, s->points);
    variables(f, s);
    fputs("}\n", f);
}

static void head(FILE *f, const struct sim *sim, const char *scenario, uint32_t point)
{
    const struct sim_scenario *s = sim->s;
    char cc[CC_TEXT];
    cc_conf_format(&s->net.host.cc, cc, sizeof(cc));
    fprintf(f, "{\"type\":\"run\",\"urnic\":\"%s\",\"scenario\":", urnic_version());
    string(f, scenario);
    fputs(",\"title\":", f);
    string(f, s->title);
    fprintf(f, ",\"point\":%u,\"points\":%u,\"seed\":%" PRIu64 ",\"payload\":\"%s\",\"cc\":", point,
            s->points, s->seed, s->skip_payload ? "skipped" : "carried");
    string(f, cc);
    fprintf(f, ",\"hosts\":%u,\"switches\":%u,\"flows\":%u,\"set\":", sim->net.nhosts,
            sim->net.nswitches, sim->flows.n);
    variables(f, s);
    json_t *params = sim_params_json(sim);
    fputs(",\"parameters\":", f);
    json_dumpf(params, f, JSON_COMPACT | JSON_REAL_PRECISION(15));
    json_decref(params);
    fputs("}\n", f);
}

static void array(FILE *f, const char *name, const struct sim_series *s, uint32_t n, uint32_t k)
{
    fprintf(f, "\"%s\":[", name);
    for (uint32_t i = 0; i < n; i++)
        if (isnan(s[i].point[k].v))
            fputs(i ? ",null" : "null", f);
        else
            fprintf(f, "%s%.6g", i ? "," : "", s[i].point[k].v);
    fputs("],", f);
}

static void samples(FILE *f, const struct sim *sim)
{
    for (uint32_t k = 0; k < sim->total.n; k++) {
        fprintf(f, "{\"type\":\"sample\",\"t_us\":%.3f,\"total_gbps\":%.6g,",
                (double)sim->total.point[k].t / 1e3, sim->total.point[k].v);
        array(f, "gbps", sim->rate, sim->nrates, k);
        array(f, "limit_gbps", sim->limit, sim->nrates, k);
        array(f, "alpha", sim->alpha, sim->nrates, k);
        fputs("\"queue_kb\":{", f);
        for (uint32_t i = 0; i < sim->nqueues; i++)
            fprintf(f, "%s\"%s\":%.6g", i ? "," : "", sim->queue[i].name,
                    sim->queue[i].point[k].v / 1e3);
        fputs("},\"jain\":", f);
        if (isnan(sim->fair.point[k].v))
            fputs("null", f);
        else
            fprintf(f, "%.6g", sim->fair.point[k].v);
        fprintf(f, ",\"retransmits\":%.0f,\"pauses\":%.0f}\n", sim->again.point[k].v,
                sim->pauses.point[k].v);
    }
}

static void flows(FILE *f, const struct sim *sim)
{
    for (uint32_t i = 0; i < sim->flows.n; i++) {
        const struct sim_flow *w = &sim->flows.flow[i];
        fprintf(f,
                "{\"type\":\"flow\",\"flow\":%u,\"src\":%u,\"dst\":%u,\"line\":%u,\"state\":\"%s\","
                "\"start_us\":%.3f,\"placed\":%" PRIu64 ",\"sent\":%" PRIu64
                ",\"retransmits\":%" PRIu64 ",\"timeouts\":%" PRIu64,
                i, w->src, w->dst, sim->s->load[w->load].line, sim_flow_states[w->state],
                (double)w->begin / 1e3, sim->flows.placed[i], w->sent, w->again, w->timeouts);
        if (w->octets != SIM_FOREVER)
            fprintf(f, ",\"octets\":%" PRIu64, w->octets);
        if (w->state == SIM_DONE)
            fprintf(f, ",\"fct_us\":%.3f", (double)(w->end - w->begin) / 1e3);
        if (w->state == SIM_DONE && w->ideal)
            fprintf(f, ",\"ideal_us\":%.3f", (double)w->ideal / 1e3);
        fputs("}\n", f);
    }
}

static void sizes(FILE *f, const struct sim *sim)
{
    struct sim_size_bin bin[SIM_BINS];
    unsigned n = sim_size_bins(sim, bin);
    for (unsigned i = 0; i < n; i++)
        fprintf(f,
                "{\"type\":\"size\",\"octets\":%" PRIu64
                ",\"flows\":%u,\"slowdown_p50\":%.6g,\"slowdown_p95\":%.6g,\"slowdown_p99\":%.6g,"
                "\"fct_p50\":%.6g,\"fct_p95\":%.6g,\"fct_p99\":%.6g}\n",
                bin[i].octets, bin[i].flows, bin[i].p50, bin[i].p95, bin[i].p99, bin[i].fct50,
                bin[i].fct95, bin[i].fct99);
}

static void rules(FILE *f, const struct sim *sim)
{
    struct fault_rule_stats r;
    for (unsigned i = 0; i < sim->s->nrules; i++) {
        sim_fault_stats(sim->w.fault, i, &r);
        fprintf(f, "{\"type\":\"fault\",\"line\":%u,\"rule\":", sim->s->rule[i].line);
        string(f, sim->s->rule[i].text);
        fprintf(f, ",\"matched\":%" PRIu64 ",\"done\":%" PRIu64 ",\"failed\":%" PRIu64 "}\n",
                r.matched, r.done, r.failed);
    }
}

static const char *const ops[] = {[SIM_LE] = "<=", [SIM_GE] = ">=", [SIM_EQ] = "="};

static void expects(FILE *f, struct sim *sim)
{
    for (unsigned i = 0; i < sim->s->nexpects; i++) {
        const struct sim_expect *x = &sim->s->expect[i];
        double v;
        bool ok = sim_expect_holds(sim, x, &v);
        fprintf(f,
                "{\"type\":\"expect\",\"line\":%u,\"metric\":\"%s\",\"op\":\"%s\",\"want\":%.9g,",
                x->line, x->metric, ops[x->op], x->value);
        if (isnan(v))
            fputs("\"got\":null,", f);
        else
            fprintf(f, "\"got\":%.9g,", v);
        fprintf(f, "\"ok\":%s}\n", ok ? "true" : "false");
    }
}

/* The ports that the figures of queues are about. */
static void queue_ports(FILE *f, const struct sim *sim)
{
    const struct sim_port *most = sim_longest_queue(sim);
    for (uint32_t i = 0; i < sim->nqueues; i++)
        fprintf(f, "%s\"%s\"", i ? "," : ",\"queue_ports\":[", sim->queue[i].name);
    fputs(sim->nqueues ? "]" : "", f);
    if (most)
        fprintf(f, ",\"queue_max_port\":\"%s>%s\"", most->node->name, most->peer->node->name);
}

void sim_out_json(FILE *f, struct sim *sim, const char *scenario, uint32_t point, bool cut,
                  const char *const *figure, unsigned nfigures)
{
    double v;
    head(f, sim, scenario, point);
    samples(f, sim);
    sim_metric(sim, "time", &v); /* updates the flows' counters */
    flows(f, sim);
    sizes(f, sim);
    rules(f, sim);
    fputs("{\"type\":\"summary\"", f);
    for (const struct sim_metric_info *m = sim_metrics; m->name; m++)
        if (sim_metric(sim, m->name, &v))
            fprintf(f, ",\"%s\":%.9g", m->name, v);
    queue_ports(f, sim);
    fputs("}\n", f);
    for (unsigned i = 0; i < nfigures; i++) {
        fputs("{\"type\":\"figure\",\"name\":", f);
        string(f, figure[i]);
        if (sim_metric(sim, figure[i], &v))
            fprintf(f, ",\"value\":%.9g}\n", v);
        else
            fputs(",\"value\":null}\n", f);
    }
    expects(f, sim);
    fprintf(
        f, "{\"type\":\"end\",\"t_us\":%.3f,\"hops\":%" PRIu64 ",\"trace\":\"%016" PRIx64 "\"%s}\n",
        (double)sim->w.now / 1e3, sim->w.hops, sim->w.trace, cut ? ",\"interrupted\":true" : "");
}

/* ---- plots ---- */

#define PANELS 7u
/* With more flows than this the panel of rates has their sum alone. */
#define CURVES SIM_POINT_FLOWS

struct page {
    struct plot_panel panel[PANELS];
    struct plot_line *line[PANELS]; /* each with room for the longest of them */
    unsigned n;
    double *numbers; /* all series, one after the other */
    size_t used;
    char title[SIM_TEXT + 64];
};

static struct plot_line line_of(struct page *p, const struct sim_series *s, double scale)
{
    double *x = p->numbers + p->used, *y = x + s->n;
    for (uint32_t i = 0; i < s->n; i++) {
        x[i] = (double)s->point[i].t / 1e6;
        y[i] = s->point[i].v * scale;
    }
    p->used += 2ul * s->n;
    return (struct plot_line){.name = s->name, .x = x, .y = y, .n = s->n};
}

static struct plot_panel *add_panel(struct page *p, const char *title, const char *x, const char *y)
{
    struct plot_panel *q = &p->panel[p->n];
    *q = (struct plot_panel){
        .title = title, .xlabel = x, .ylabel = y, .ymin = NAN, .ymax = NAN, .line = p->line[p->n]};
    p->n++;
    return q;
}

static uint32_t curves(const struct sim *sim)
{
    return sim->total.n && sim->flows.n <= CURVES ? sim->nrates : 0;
}

unsigned sim_out_points_drawn(const struct sim *sim, const struct sim_points *points)
{
    uint32_t n = curves(sim);
    return points->flows < n ? points->flows : n;
}

/* The first lines of the panel are the simulated flows. */
static void add_points(struct plot_panel *q, struct plot_line *l, const struct sim_points *points,
                       unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        l[q->nlines++] = (struct plot_line){.name = i ? NULL : "measured",
                                            .like = &l[i],
                                            .x = points->t_ms,
                                            .y = points->gbps[i],
                                            .n = points->n,
                                            .loose = true};
}

/* The other panels over time: queues, fairness, and retransmissions and pauses if there are any. */
static void add_curves(struct page *p, const struct sim *sim)
{
    struct plot_panel *q = add_panel(p, "Queues", "time, ms", "queue, kB");
    struct plot_line *l = p->line[p->n - 1];
    for (uint32_t i = 0; i < sim->nqueues; i++)
        l[q->nlines++] = line_of(p, &sim->queue[i], 1e-3);
    if (sim->flows.n > 1) {
        q = add_panel(p, "Fairness", "time, ms", "Jain's index");
        q->ymin = 0, q->ymax = 1;
        p->line[p->n - 1][q->nlines++] = line_of(p, &sim->fair, 1);
    }
    const struct sim_series *const count[] = {&sim->again, &sim->pauses};
    static const char *const title[] = {"Retransmissions, counted up", "PFC pauses, counted up"};
    for (unsigned i = 0; i < 2; i++)
        if (count[i]->point[count[i]->n - 1].v > 0) {
            q = add_panel(p, title[i], "time, ms", i ? "frames" : "packets");
            p->line[p->n - 1][q->nlines++] = line_of(p, count[i], 1);
        }
}

/* Three percentiles over the flows' size; v: of one bin. */
static void add_sizes(struct page *p, const char *title, const char *label, unsigned n,
                      const double bin_x[], double v[][SIM_BINS])
{
    static const char *const names[] = {"median", "95 %", "99 %"};
    struct plot_panel *q = add_panel(p, title, "size, octets", label);
    q->logx = q->logy = true;
    for (unsigned k = 0; k < 3; k++) {
        double *x = p->numbers + p->used, *y = x + n;
        memcpy(x, bin_x, n * sizeof(*x));
        memcpy(y, v[k], n * sizeof(*y));
        p->used += 2ul * n;
        p->line[p->n - 1][q->nlines++] =
            (struct plot_line){.name = names[k], .x = x, .y = y, .n = n, .marks = true};
    }
}

static void fill(struct page *p, const struct sim *sim, const struct sim_points *points,
                 const char *title)
{
    if (sim->total.n) {
        struct plot_panel *q = add_panel(p, title, "time, ms", "goodput, Gb/s");
        struct plot_line *l = p->line[p->n - 1];
        for (uint32_t i = 0; i < curves(sim); i++)
            l[q->nlines++] = line_of(p, &sim->rate[i], 1);
        if (points)
            add_points(q, l, points, sim_out_points_drawn(sim, points));
        if (!q->nlines)
            l[q->nlines++] = line_of(p, &sim->total, 1);
        add_curves(p, sim);
    }
    struct sim_size_bin bin[SIM_BINS];
    unsigned n = sim_size_bins(sim, bin);
    if (!n || (n == 1 && bin[0].flows < 2))
        return;
    double x[SIM_BINS], fct[3][SIM_BINS], slow[3][SIM_BINS];
    for (unsigned i = 0; i < n; i++) {
        x[i] = (double)bin[i].octets;
        fct[0][i] = bin[i].fct50, fct[1][i] = bin[i].fct95, fct[2][i] = bin[i].fct99;
        slow[0][i] = bin[i].p50, slow[1][i] = bin[i].p95, slow[2][i] = bin[i].p99;
    }
    add_sizes(p, "Completion time by flow size", "time, us", n, x, fct);
    add_sizes(p, "Slowdown by flow size", "slowdown", n, x, slow);
}

/* Warn that the results are not those of the whole run. */
static void say_cut(struct page *p, const struct sim *sim)
{
    char at[32];
    cli_fmt_time((double)sim->w.now, at, sizeof(at));
    snprintf(p->title, sizeof(p->title), "%s (interrupted at %s of simulated time)",
             p->panel[0].title, at);
    p->panel[0].title = p->title;
}

int sim_out_plot(const char *path, struct sim *sim, const struct sim_points *points, bool cut)
{
    size_t series = sim->nrates + sim->nqueues + 4; /* total, fair, again, pauses */
    size_t numbers = 2 * (series * (sim->total.n + 1) + 6ul * SIM_BINS);
    size_t most = SIM_SERIES_FLOWS + sim->nqueues + SIM_POINT_FLOWS;
    struct page *p = calloc(1, sizeof(*p));
    double *v = malloc(numbers * sizeof(*v));
    struct plot_line *lines = calloc(PANELS * most, sizeof(*lines));
    int rc = p && v && lines ? 0 : -ENOMEM;
    FILE *f = NULL;
    if (!rc) {
        p->numbers = v;
        for (unsigned i = 0; i < PANELS; i++)
            p->line[i] = lines + i * most;
        fill(p, sim, points, *sim->s->title ? sim->s->title : "Rates");
        rc = p->n ? 0 : -ENODATA;
    }
    if (!rc && cut)
        say_cut(p, sim);
    if (!rc && !(f = fopen(path, "w")))
        rc = -errno;
    if (!rc)
        rc = plot_svg(f, p->panel, p->n);
    if (f && fclose(f) && !rc)
        rc = -errno;
    free(v);
    free(lines);
    free(p);
    return rc;
}

/* ---- for people ---- */

/* Figures of queues mean little without their ports. */
static void say_queues(FILE *f, const struct sim *sim)
{
    const struct sim_port *most = sim_longest_queue(sim);
    if (!most)
        return;
    if (sim->s->sample && sim->nqueues == 1 && most == sim->watched[0]) {
        fprintf(f, "  figures of queues are of %s > %s\n", most->node->name,
                most->peer->node->name);
        return;
    }
    fprintf(f, "  queue_max is of %s > %s", most->node->name, most->peer->node->name);
    if (sim->s->sample && sim->nqueues == 1)
        fprintf(f, ", the other figures of queues of %s > %s", sim->watched[0]->node->name,
                sim->watched[0]->peer->node->name);
    else if (sim->s->sample)
        fprintf(f, ", the others of the longest of %u watched ones", sim->nqueues);
    fputc('\n', f);
}

void sim_out_summary(FILE *f, struct sim *sim)
{
    unsigned column = 0;
    double v;
    if (*sim->s->title)
        fprintf(f, "%s\n", sim->s->title);
    for (unsigned i = 0; i < sim->s->nvars; i++)
        fprintf(f, "%s%s=%s", i ? " " : "  ", sim->s->var[i].name, sim->s->var[i].value);
    fputs(sim->s->nvars ? "\n" : "", f);
    sim_params_text(f, sim);
    for (const struct sim_metric_info *m = sim_metrics; m->name; m++) {
        if (!sim_metric(sim, m->name, &v) || v == 0)
            continue;
        bool large = v >= 99999.5; /* counts above all: not 1.3e+05 */
        int n = fprintf(f, "  %s %.*g%s%s", m->name, large ? 15 : 5, large ? round(v) : v,
                        *m->unit ? " " : "", m->unit);
        if (++column % 3 == 0)
            fputc('\n', f);
        else
            fprintf(f, "%*s", n < 30 ? 30 - n : 1, "");
    }
    fputs(column % 3 ? "\n" : "", f);
    say_queues(f, sim);
    for (unsigned i = 0; i < sim->s->nrules; i++) {
        struct fault_rule_stats r;
        sim_fault_stats(sim->w.fault, i, &r);
        fprintf(f, "  %" PRIu64 " of %" PRIu64 " frames", r.done, r.matched);
        if (r.failed)
            fprintf(f, ", %" PRIu64 " times in vain", r.failed);
        fprintf(f, ": %s\n", sim->s->rule[i].text);
    }
    for (unsigned i = 0; i < sim->s->nexpects; i++) {
        const struct sim_expect *x = &sim->s->expect[i];
        bool ok = sim_expect_holds(sim, x, &v);
        fprintf(f, "  %s  %s %s %.6g", ok ? "holds" : "FAILS", x->metric, ops[x->op], x->value);
        if (x->op == SIM_EQ)
            fprintf(f, " within %.3g %%", x->within * 100);
        if (isnan(v))
            fputs(": no such figure\n", f);
        else
            fprintf(f, ": %.6g\n", v);
    }
}

unsigned sim_out_failures(struct sim *sim)
{
    unsigned n = 0;
    double v;
    for (unsigned i = 0; i < sim->s->nexpects; i++)
        n += !sim_expect_holds(sim, &sim->s->expect[i], &v);
    return n;
}
