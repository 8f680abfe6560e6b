/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Charts across runs.
 */
#include "sim_chart.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plot.h"
#include "sim_metric.h"
#include "sim_value.h"

#define LINES      32u
#define CATEGORIES 64u
#define STEPS      1000u /* most steps of a distribution */
#define DODGE      .6    /* part of a category's width that its dots take */

struct line {
    char name[SIM_TEXT + 96];
    double *x, *y;
    size_t n, cap;
};

struct sim_chart {
    char metric[48], x[24], series[24], title[SIM_TEXT];
    const char *file;
    struct line line[LINES];
    unsigned nlines;
    bool xtime;                 /* x is a time in us */
    char *category[CATEGORIES]; /* values of X in order; a point's x is an index of it */
    size_t ncategories;
};

/* Copy the word before any of `ends`, and step over it. False: empty or too long. */
static bool word(const char **p, const char *ends, char *out, size_t size)
{
    size_t n = strcspn(*p, ends);
    if (!n || n >= size)
        return false;
    memcpy(out, *p, n);
    out[n] = 0;
    *p += n;
    return true;
}

/* The metrics drawn over time. */
static bool is_curve(const char *metric)
{
    return !strcmp(metric, "queue") || !strcmp(metric, "rate");
}

/* The metric of a cumulative distribution over the flows; NULL = not one. */
static double (*cdf_of(const char *metric))(const struct sim *sim, const struct sim_flow *f)
{
    return !strcmp(metric, "fct")        ? sim_fct_us
           : !strcmp(metric, "slowdown") ? sim_slowdown
           : !strcmp(metric, "goodput")  ? sim_flow_goodput
                                         : NULL;
}

static bool over_time(const struct sim_chart *c)
{
    return !strcmp(c->x, "time");
}

static bool is_cdf(const struct sim_chart *c)
{
    return !strcmp(c->x, "cdf");
}

struct sim_chart *sim_chart_new(const char *text)
{
    struct sim_chart *c = calloc(1, sizeof(*c));
    if (!c)
        return NULL;
    bool good = word(&text, "/=", c->metric, sizeof(c->metric)) && *text++ == '/' &&
                word(&text, "/=", c->x, sizeof(c->x));
    if (good && *text == '/') {
        text++;
        good = word(&text, "=", c->series, sizeof(c->series));
    }
    if (good)
        good = over_time(c) ? is_curve(c->metric)
               : is_cdf(c)  ? cdf_of(c->metric) != NULL
                            : sim_metric_known(c->metric);
    if (!good || *text != '=' || !text[1]) {
        free(c);
        return NULL;
    }
    c->file = text + 1;
    return c;
}

static const char *value(const struct sim_scenario *s, const char *name)
{
    for (unsigned i = 0; i < s->nvars; i++)
        if (!strcmp(s->var[i].name, name))
            return s->var[i].value;
    return NULL;
}

static struct line *line_of(struct sim_chart *c, const char *name)
{
    for (unsigned i = 0; i < c->nlines; i++)
        if (!strcmp(c->line[i].name, name))
            return &c->line[i];
    if (c->nlines == LINES)
        return NULL;
    struct line *l = &c->line[c->nlines++];
    snprintf(l->name, sizeof(l->name), "%s", name);
    return l;
}

static int append(struct line *l, double x, double y)
{
    if (l->n == l->cap) {
        size_t cap = l->cap ? l->cap * 2 : 64;
        double *xs = realloc(l->x, cap * sizeof(*xs));
        l->x = xs ? xs : l->x;
        double *ys = realloc(l->y, cap * sizeof(*ys));
        l->y = ys ? ys : l->y;
        if (!xs || !ys)
            return -ENOMEM;
        l->cap = cap;
    }
    l->x[l->n] = x;
    l->y[l->n++] = y;
    return 0;
}

/* A number with a unit, as its value on an axis; times are microseconds there. */
static bool number(const char *text, double *out, bool *time)
{
    static const enum sim_unit units[] = {SIM_COUNT, SIM_RATIO, SIM_SIZE, SIM_RATE};
    *time = false;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (sim_value(units[i], text, out))
            return true;
    *time = sim_value(SIM_TIME, text, out);
    *out /= 1e3;
    return *time;
}

static int add_series(struct line *l, const struct sim_series *s, double scale)
{
    int rc = 0;
    for (uint32_t i = 0; i < s->n && !rc; i++)
        rc = append(l, (double)s->point[i].t / 1e6, s->point[i].v * scale);
    return rc;
}

/* Set the reason why a point, or a line, isn't in the chart. */
static int left_out(char *why, size_t size, const char *format, const char *a, const char *b)
{
    snprintf(why, size, format, a, b);
    return -EINVAL;
}

static int no_room(char *why, size_t size)
{
    snprintf(why, size, "a chart has %u lines at most, and this run's are more", LINES);
    return -EINVAL;
}

static int add_curves(struct sim_chart *c, struct sim *sim, const char *name, char *why,
                      size_t size)
{
    bool queue = !strcmp(c->metric, "queue");
    char full[SIM_TEXT + 96];
    if (!sim->total.n || (queue && !sim->nqueues))
        return left_out(why, size, "it has no curves: no '%s' was %s", "sample", "taken");
    const struct sim_series *s = queue ? sim->queue : sim->rate;
    uint32_t n = queue ? sim->nqueues : sim->nrates;
    for (uint32_t i = 0; i < n; i++) {
        const char *own = queue && n == 1 ? "" : s[i].name; /* a lone queue needs no name */
        snprintf(full, sizeof(full), "%s%s%s", own, *own && *name ? " " : "", name);
        struct line *l = line_of(c, full);
        int rc = l ? add_series(l, &s[i], queue ? 1e-3 : 1) : no_room(why, size);
        if (rc)
            return rc;
    }
    return 0;
}

/* Does a flow count in the distribution, even if it has not ended? */
static bool counts(const struct sim_chart *c, const struct sim_flow *f)
{
    return f->octets != SIM_FOREVER && (f->ideal || strcmp(c->metric, "slowdown") != 0);
}

/* The cumulative distribution of a run: the values of its flows in order, and the part of all flows
 * up to each. Flows that haven't ended count as larger than any; without them the tail would look
 * short. */
static int add_cdf(struct sim_chart *c, struct sim *sim, const char *name, char *why, size_t size)
{
    double (*of)(const struct sim *sim, const struct sim_flow *f) = cdf_of(c->metric);
    double *v = malloc((sim->flows.n + 1) * sizeof(*v));
    struct line *l = line_of(c, name);
    uint32_t n = 0, all = 0;
    int rc = v ? 0 : -ENOMEM;
    for (uint32_t i = 0; v && i < sim->flows.n; i++) {
        bool has = !isnan(v[n] = of(sim, &sim->flows.flow[i]));
        n += has;
        all += has || (of != sim_flow_goodput && counts(c, &sim->flows.flow[i]));
    }
    if (!rc && !l)
        rc = no_room(why, size);
    if (!rc && !n)
        rc = left_out(why, size, "no flow has a %s%s", c->metric, "");
    if (!rc)
        sim_sort(v, n);
    uint32_t steps = n < STEPS ? n : STEPS, before = 0;
    for (uint32_t i = 1; i <= steps && !rc; i++) {
        uint32_t upto = (uint32_t)((uint64_t)n * i / steps);
        rc = append(l, v[upto - 1], (double)before / all);
        if (!rc)
            rc = append(l, v[upto - 1], (double)upto / all);
        before = upto;
    }
    free(v);
    return rc;
}

/* Add a value for a legend; numbers, "on" and "off" with the variable's name. */
static void add_name(char *name, size_t size, const struct sim_var *v)
{
    size_t n = strlen(name);
    double number_of;
    bool time, bare = !number(v->value, &number_of, &time) && strcmp(v->value, "on") != 0 &&
                      strcmp(v->value, "off") != 0;
    snprintf(name + n, size - n, "%s%s%s%s", n ? " " : "", bare ? "" : v->name, bare ? "" : "=",
             v->value);
}

/* The line that a run belongs to: by its value of SERIES and of all other swept variables, since
 * runs that differ must not be joined. */
static void name_of(const struct sim_chart *c, const struct sim *sim, char *name, size_t size)
{
    *name = 0;
    for (unsigned i = 0; i < sim->s->nvars; i++)
        if (!strcmp(sim->s->var[i].name, c->series))
            add_name(name, size, &sim->s->var[i]);
    for (unsigned i = 0; i < sim->s->nvars; i++) {
        const struct sim_var *v = &sim->s->var[i];
        if (v->swept && !v->given && strcmp(v->name, c->series) != 0 && strcmp(v->name, c->x) != 0)
            add_name(name, size, v);
    }
}

const char *sim_chart_lacks(const struct sim_chart *c, const struct sim_scenario *s)
{
    const char *const need[] = {over_time(c) || is_cdf(c) ? "" : c->x, c->series};
    for (unsigned k = 0; k < 2; k++) {
        bool found = !*need[k];
        for (unsigned i = 0; i < s->nvars && !found; i++)
            found = !strcmp(s->var[i].name, need[k]);
        if (!found)
            return need[k];
    }
    return NULL;
}

bool sim_chart_possible(const struct sim_chart *c, const struct sim_scenario *s,
                        const struct sim_metric_size *has, char *why, size_t size)
{
    (void)s;
    if (is_cdf(c))
        return true;
    if (!over_time(c))
        return sim_metric_possible(c->metric, has, why, size);
    if (!has->sampled)
        snprintf(why, size, "no 'sample' is taken");
    return has->sampled;
}

/* The index of a value of X among the values so far. Negative: too many. */
static int category_of(struct sim_chart *c, const char *text)
{
    for (size_t i = 0; i < c->ncategories; i++)
        if (!strcmp(c->category[i], text))
            return (int)i;
    if (c->ncategories == CATEGORIES)
        return -ENOSPC;
    c->category[c->ncategories] = strdup(text);
    return c->category[c->ncategories] ? (int)c->ncategories++ : -ENOMEM;
}

static int add(struct sim_chart *c, struct sim *sim, bool cut, char *why, size_t size)
{
    char name[SIM_TEXT + 64];
    double y;
    name_of(c, sim, name, sizeof(name));
    if (!*c->title)
        snprintf(c->title, sizeof(c->title), "%s", sim->s->title);
    if (over_time(c))
        return add_curves(c, sim, name, why, size);
    if (cut)
        return left_out(why, size, "%s%s", "it was interrupted", "");
    if (is_cdf(c))
        return add_cdf(c, sim, name, why, size);
    if (!sim_metric(sim, c->metric, &y))
        return left_out(why, size, "it has no %s%s", c->metric, "");
    int x = category_of(c, value(sim->s, c->x));
    if (x == -ENOSPC) {
        snprintf(why, size, "a chart has %u values of %s at most", CATEGORIES, c->x);
        return -EINVAL;
    }
    struct line *l = line_of(c, name);
    if (!l)
        return no_room(why, size);
    return x < 0 ? x : append(l, x, y);
}

int sim_chart_add(struct sim_chart *c, struct sim *sim, bool cut, char *why, size_t size)
{
    int rc = add(c, sim, cut, why, size);
    if (rc == -ENOMEM)
        snprintf(why, size, "%s", strerror(ENOMEM));
    return rc;
}

static const char *unit_of(const char *metric)
{
    size_t n = strcspn(metric, ".");
    for (const struct sim_metric_info *m = sim_metrics; m->name; m++)
        if (strlen(m->name) == n && !memcmp(m->name, metric, n))
            return m->unit;
    return "";
}

/* Are all values of X numbers? Then points are placed at them. */
static bool make_numbers(struct sim_chart *c)
{
    double at[CATEGORIES];
    bool time;
    for (size_t i = 0; i < c->ncategories; i++)
        if (!number(c->category[i], &at[i], &time))
            return false;
        else
            c->xtime |= time;
    for (unsigned i = 0; i < c->nlines; i++)
        for (size_t k = 0; k < c->line[i].n; k++)
            c->line[i].x[k] = at[(size_t)c->line[i].x[k]];
    return true;
}

/* Dots of several lines in a category stand side by side. */
static void spread(struct sim_chart *c)
{
    for (unsigned i = 0; i < c->nlines; i++)
        for (size_t k = 0; k < c->line[i].n; k++)
            c->line[i].x[k] += (i + .5 - c->nlines / 2.) * DODGE / c->nlines;
}

/* A wide span of x gets a logarithmic axis; 0 has a place beside it. */
static bool wide(const struct sim_chart *c)
{
    double lo = INFINITY, hi = 0;
    for (unsigned i = 0; i < c->nlines; i++) {
        for (size_t k = 0; k < c->line[i].n; k++) {
            if (c->line[i].x[k] != 0)
                lo = fmin(lo, c->line[i].x[k]);
            hi = fmax(hi, c->line[i].x[k]);
        }
    }
    return lo > 0 && hi / lo >= 49.9; /* 0.1 % to 5 % */
}

/* A figure is drawn over x, in any order of the sweep. */
static void sort(struct line *l)
{
    for (size_t i = 1; i < l->n; i++) {
        double x = l->x[i], y = l->y[i];
        size_t k = i;
        for (; k > 0 && l->x[k - 1] > x; k--) {
            l->x[k] = l->x[k - 1];
            l->y[k] = l->y[k - 1];
        }
        l->x[k] = x;
        l->y[k] = y;
    }
}

const char *sim_chart_file(const struct sim_chart *c)
{
    return c->file;
}

int sim_chart_finish(struct sim_chart *c, bool cut)
{
    static const char note[] = "(interrupted: runs are missing or not whole)";
    char title[sizeof(c->title) + sizeof(note)];
    snprintf(title, sizeof(title), "%s%s%s", c->title, *c->title && cut ? " " : "",
             cut ? note : "");
    struct plot_line line[LINES];
    char ylabel[96];
    bool time = over_time(c), cdf = is_cdf(c), queue = !strcmp(c->metric, "queue");
    const char *unit = time                       ? queue ? "kB" : "Gb/s"
                       : strcmp(c->metric, "fct") ? unit_of(c->metric)
                                                  : "us";
    bool numbers = time || cdf || make_numbers(c);
    if (!numbers)
        spread(c);
    snprintf(ylabel, sizeof(ylabel), "%s%s%s", c->metric, *unit ? ", " : "", unit);
    for (unsigned i = 0; i < c->nlines && !time && !cdf; i++)
        sort(&c->line[i]);
    for (unsigned i = 0; i < c->nlines; i++)
        line[i] = (struct plot_line){.name = *c->line[i].name ? c->line[i].name : NULL,
                                     .x = c->line[i].x,
                                     .y = c->line[i].y,
                                     .n = c->line[i].n,
                                     .marks = !time && !cdf && numbers,
                                     .exact = cdf,
                                     .loose = !numbers};
    char xlabel[sizeof(c->x) + 4];
    snprintf(xlabel, sizeof(xlabel), "%s%s", c->x,
             time                  ? ", ms"
             : numbers && c->xtime ? ", us"
                                   : "");
    const struct plot_panel panel = {.title = title,
                                     .xlabel = cdf ? ylabel : xlabel,
                                     .ylabel = cdf ? "part of the flows" : ylabel,
                                     .logx = !time && numbers && wide(c),
                                     .ymin = cdf ? 0 : NAN,
                                     .ymax = cdf ? 1 : NAN,
                                     .category = numbers ? NULL : (const char *const *)c->category,
                                     .ncategories = numbers ? 0 : c->ncategories,
                                     .line = line,
                                     .nlines = c->nlines};
    FILE *f = fopen(c->file, "w");
    int rc = f ? plot_svg(f, &panel, 1) : -errno;
    if (f && fclose(f) && !rc)
        rc = -errno;
    for (unsigned i = 0; i < c->nlines; i++) {
        free(c->line[i].x);
        free(c->line[i].y);
    }
    for (size_t i = 0; i < c->ncategories; i++)
        free(c->category[i]);
    free(c);
    return rc;
}
