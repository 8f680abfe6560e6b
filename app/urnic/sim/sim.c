/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `urnic sim`: scenario files through the simulator.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "rulefile.h"
#include "sim.h"
#include "sim_capture.h"
#include "sim_chart.h"
#include "sim_check.h"
#include "sim_csv.h"
#include "sim_metric.h"
#include "sim_out.h"

static const char help[] = {
#include "help_sim.inc"
};

#define CHARTS  8u
#define FIGURES 16u
#define SLICES  2000u /* slices of the simulated time, with a look at the real clock after each */

struct job {
    const char *rules_file;
    struct fault *rules; /* rules of that file */
    const char *file, *output, *plot, *points_file, *csv_file;
    struct sim_csv *csv;
    struct sim_points points;
    char *text;
    size_t len;
    struct sim_captures captures;
    struct sim_chart *chart[CHARTS];
    unsigned ncharts;
    const char *figure[FIGURES];
    unsigned nfigures;
    struct sim_var set[SIM_VARS];
    unsigned nset;
    uint32_t shard, shards;
    bool list, check, quiet;
    bool cut;      /* Ctrl-C has ended the latest run early */
    uint32_t left; /* runs not started because of it */
};

/* ---- the scenario ---- */

/* Read a file that may be a pipe. NULL, or the error. */
static const char *read_all(struct job *j, FILE *f)
{
    size_t cap = 0, n;
    do {
        if (j->len == cap) {
            char *more = realloc(j->text, cap = cap ? 2 * cap : 65536);
            if (!more)
                return "out of memory";
            j->text = more;
        }
        n = fread(j->text + j->len, 1, cap - j->len, f);
        j->len += n;
    } while (n);
    return ferror(f) ? "it can't be read" : NULL;
}

static int load(struct job *j)
{
    FILE *f = fopen(j->file, "r");
    struct stat st;
    if (!f || fstat(fileno(f), &st) || S_ISDIR(st.st_mode)) {
        cli_error("%s: %s", j->file, f ? "not a file" : strerror(errno));
        if (f)
            fclose(f);
        return CLI_USAGE;
    }
    const char *why = read_all(j, f);
    fclose(f);
    if (why)
        cli_error("%s: %s", j->file, why);
    return why ? CLI_USAGE : CLI_OK;
}

static int load_points(struct job *j)
{
    char err[512];
    if (!j->points_file)
        return CLI_OK;
    if (!j->plot) {
        cli_error("--points %s: they are drawn with --plot FILE.svg", j->points_file);
        return CLI_USAGE;
    }
    if (!sim_points_read(&j->points, j->points_file, err, sizeof(err)))
        return CLI_OK;
    cli_error("--points: %s", err);
    return CLI_USAGE;
}

static int complain(const struct job *j, const struct sim_error *e)
{
    fprintf(stderr, "%s:", j->file);
    if (e->line)
        fprintf(stderr, "%u:", e->line);
    if (*e->field)
        fprintf(stderr, " %s:", e->field);
    fprintf(stderr, " %s\n", e->reason);
    return CLI_USAGE;
}

/* Say which variables the scenario has instead. */
static int no_variable(const struct job *j, const struct sim_scenario *s, const char *name)
{
    char known[256] = "it has none";
    size_t at = 0;
    for (unsigned i = 0; i < s->nvars && at < sizeof(known); i++) {
        if (s->var[i].known)
            at += (size_t)snprintf(known + at, sizeof(known) - at, "%s%s", at ? ", " : "it has ",
                                   s->var[i].name);
    }
    cli_error("--set: %s has no variable '%s'; %s", j->file, name, known);
    return CLI_USAGE;
}

/* The run of a certain number. */
static int parse(const struct job *j, uint32_t point, struct sim_scenario *s)
{
    struct sim_error err;
    sim_scenario_free(s);
    sim_scenario_init(s);
    for (unsigned i = 0; i < j->nset; i++)
        sim_scenario_set(s, j->set[i].name, j->set[i].value);
    if (sim_scenario_parse(s, j->text, j->len, point, &err))
        return complain(j, &err);
    for (unsigned i = 0; j->rules && i < fault_rules(j->rules); i++) {
        struct fault_rule_stats r;
        fault_rule_stats(j->rules, i, &r);
        if (!sim_scenario_rule(s, fault_describe(j->rules, i), r.line)) {
            cli_error("--rules: with the scenario's they are more than %u, or one is longer than "
                      "%u characters",
                      SIM_RULES, SIM_TEXT - 1);
            return CLI_USAGE;
        }
    }
    for (unsigned i = 0; i < s->nvars; i++) {
        if (!s->var[i].known)
            return no_variable(j, s, s->var[i].name);
    }
    return CLI_OK;
}

/* ---- running ---- */

struct bar {
    uint64_t start, drawn;
    bool tty, quiet, shown;
};

static void draw(struct bar *b, const struct sim *sim, bool last, bool cut)
{
    uint64_t now = cli_now();
    double wall = (double)(now - b->start) / 1e9;
    if (b->quiet || (!last && now - b->drawn < (b->tty ? 100000000u : 5000000000u)) ||
        (last && !b->shown))
        return;
    b->drawn = now;
    b->shown = true;
    double part = last && !cut ? 1 : (double)sim->w.now / (double)sim_end(sim);
    char at[32], filled[31];
    cli_fmt_time((double)sim->w.now, at, sizeof(at));
    for (unsigned i = 0; i < 30; i++)
        filled[i] = i < part * 30 ? '#' : '.';
    filled[30] = 0;
    char rest[48];
    if (!last)
        snprintf(rest, sizeof(rest), "%.0f s left at most", part > 0 ? wall / part - wall : 0);
    else
        snprintf(rest, sizeof(rest), "%s after %.0f s", cut ? "interrupted" : "done", wall);
    fprintf(stderr, "%ssim [%s] %3.0f%%  %s simulated  %.2f M hops/s  %u of %u flows  %s%s",
            b->tty ? "\r" : "", filled, part * 100, at, (double)sim->w.hops / wall / 1e6,
            sim->flows.done, sim->flows.n, rest, b->tty ? last ? "\033[K\n" : "\033[K" : "\n");
    fflush(stderr);
}

/* Run to the end, or to Ctrl-C. */
static void run(struct job *j, struct sim *sim, double *wall)
{
    struct bar b = {.start = cli_now(), .tty = isatty(STDERR_FILENO), .quiet = j->quiet};
    uint64_t step = sim_end(sim) / SLICES + 1, until = 0;
    b.drawn = b.start;
    bool goes_on;
    do {
        until += step;
        draw(&b, sim, false, false);
        goes_on = sim_run(sim, until);
    } while (goes_on && !cli_stop);
    j->cut = goes_on;
    *wall = (double)(cli_now() - b.start) / 1e9;
    draw(&b, sim, true, goes_on);
}

static const char *no_curve(const struct sim *sim, unsigned drawn)
{
    if (!sim->s->sample)
        return "there are curves only with `sample`";
    if (sim->total.n == 0)
        return "the run ended before its first sample";
    return drawn == 0 ? "more than 16 simulated flows have no curves of their own"
                      : "no more are simulated";
}

/* Say which measured rates have no simulated curve, since the picture doesn't show them. */
static int missed_points(const struct job *j, const struct sim *sim)
{
    unsigned drawn = sim_out_points_drawn(sim, &j->points);
    if (drawn == j->points.flows)
        return CLI_OK;
    cli_error("--points %s: the rates of %u of its %u flows are drawn: %s", j->points_file, drawn,
              j->points.flows, no_curve(sim, drawn));
    return CLI_FAIL;
}

static int plot(const struct job *j, struct sim *sim, uint32_t point)
{
    char name[4096];
    if (!j->plot)
        return CLI_OK;
    sim_file_name(name, sizeof(name), j->plot, point, sim->s->points);
    int rc = sim_out_plot(name, sim, j->points.n ? &j->points : NULL, j->cut);
    if (rc == -ENODATA)
        cli_error("%s: nothing to draw: there are curves only with `sample`, and flow sizes only "
                  "when two flows have ended",
                  name);
    else if (rc)
        cli_error("%s: %s", name, strerror(-rc));
    return rc ? CLI_FAIL : missed_points(j, sim);
}

static int one(struct job *j, const struct sim_scenario *s, uint32_t point, FILE *out)
{
    struct sim_error err;
    struct sim *sim;
    char why[SIM_REASON];
    const struct sim_hooks hooks = {.arg = &j->captures, .frame = sim_capture_frame};
    double wall = 0;
    if (sim_create(s, &hooks, &sim, &err))
        return complain(j, &err);
    int status = sim_capture_open(&j->captures, sim, point);
    if (status == CLI_OK) {
        run(j, sim, &wall);
        if (sim->w.failed) {
            cli_error("out of memory");
            status = CLI_FAIL;
        }
        if (out)
            sim_out_json(out, sim, j->file, point, j->cut, j->figure, j->nfigures);
        if (j->csv)
            sim_csv_add(j->csv, sim, point);
        if (plot(j, sim, point))
            status = CLI_FAIL;
        for (unsigned i = 0; i < j->ncharts; i++)
            if (sim_chart_add(j->chart[i], sim, j->cut, why, sizeof(why))) {
                cli_error("--chart %s: run %u isn't in it, or not all of it: %s",
                          sim_chart_file(j->chart[i]), point, why);
                status = CLI_FAIL;
            }
        if (sim_out_failures(sim))
            status = CLI_FAIL;
        if (!j->quiet && out != stdout && !sim_csv_is_stdout(j->csv)) {
            sim_out_summary(stdout, sim);
            printf("  %.2f s, %.2f M packet-hops/s, payload %s%s\n", wall,
                   (double)sim->w.hops / wall / 1e6, s->skip_payload ? "skipped" : "carried",
                   j->cut ? ", interrupted" : "");
            fflush(stdout); /* between two runs' progress */
        }
    }
    int rc = sim_capture_close(&j->captures);
    sim_destroy(sim);
    return status ? status : rc;
}

/* Print the variables of a run: for people, or to `out` in the form of --output. */
static void list_run(const struct sim_scenario *s, uint32_t point, FILE *out)
{
    if (out) {
        sim_out_point(out, s, point);
        return;
    }
    printf("%u", point);
    for (unsigned i = 0; i < s->nvars; i++)
        if (s->var[i].swept || s->var[i].given)
            printf(" %s=%s", s->var[i].name, s->var[i].value);
    putchar('\n');
}

/* The file of --output; *out is NULL when there is none. */
static int open_output(const struct job *j, FILE **out)
{
    *out = NULL;
    if (!j->output)
        return CLI_OK;
    *out = strcmp(j->output, "-") ? fopen(j->output, "w") : stdout;
    if (!*out)
        cli_error("%s: %s", j->output, strerror(errno));
    return *out ? CLI_OK : CLI_FAIL;
}

static int close_output(const struct job *j, FILE *out)
{
    if (!out)
        return CLI_OK;
    bool failed = ferror(out); /* failed before the flush: the reason is lost */
    int rc = fflush(out) ? errno : 0;
    if (out != stdout && fclose(out) && !rc)
        rc = errno;
    if (rc || failed)
        cli_error("%s: %s", j->output, rc ? strerror(rc) : "not all of it could be written");
    return rc || failed ? CLI_FAIL : CLI_OK;
}

/* Checked before any run: afterwards it could be hours later. */
static int check_charts(const struct job *j, const struct sim_scenario *s)
{
    for (unsigned i = 0; i < j->ncharts; i++) {
        const char *name = sim_chart_lacks(j->chart[i], s);
        if (name) {
            cli_error("--chart %s: %s has no variable '%s'", sim_chart_file(j->chart[i]), j->file,
                      name);
            return CLI_USAGE;
        }
    }
    return CLI_OK;
}

static int finish_charts(struct job *j)
{
    int status = CLI_OK;
    for (unsigned i = 0; i < j->ncharts; i++) {
        const char *file = sim_chart_file(j->chart[i]);
        int rc = sim_chart_finish(j->chart[i], j->cut || j->left);
        if (rc) {
            cli_error("%s: %s", file, strerror(-rc));
            status = CLI_FAIL;
        }
    }
    return status;
}

/* The output is incomplete: tell scripts and people so. */
static int interrupted(const struct job *j)
{
    if (!j->cut && !j->left)
        return CLI_OK;
    cli_error("interrupted: %s, %u not started",
              j->cut ? "the last run isn't whole" : "all started runs are whole", j->left);
    return CLI_FAIL;
}

/* Does any run have the requested figure or chart? */
struct wish {
    bool granted;
    char why[SIM_REASON]; /* the latest run lacks it */
};

static void look_for(const struct job *j, const struct sim_scenario *s,
                     const struct sim_metric_size *has, struct wish *figure, struct wish *chart)
{
    for (unsigned i = 0; i < j->nfigures; i++)
        if (!figure[i].granted)
            figure[i].granted =
                sim_metric_possible(j->figure[i], has, figure[i].why, sizeof(figure[i].why));
    for (unsigned i = 0; i < j->ncharts; i++)
        if (!chart[i].granted)
            chart[i].granted =
                sim_chart_possible(j->chart[i], s, has, chart[i].why, sizeof(chart[i].why));
}

static int not_found(const char *option, const char *what, const struct wish *w)
{
    if (w->granted)
        return CLI_OK;
    cli_error("%s %s: no run can have it: %s", option, what, w->why);
    return CLI_USAGE;
}

static int out_of_memory(void)
{
    cli_error("%s", strerror(ENOMEM));
    return CLI_FAIL;
}

/* Read all runs of this shard first, so that an error in the last one, or a requested figure that
 * none has, is found before the first run and not hours later. */
static int check_runs(struct job *j, struct sim_scenario *s)
{
    static struct wish figure[FIGURES], chart[CHARTS];
    struct sim_metric_size has;
    struct sim_error err;
    int status = parse(j, 0, s);
    uint32_t points = s->points;
    if (!status)
        status = check_charts(j, s);
    for (uint32_t p = j->shard - 1; p < points && !status && !cli_stop; p += j->shards) {
        status = parse(j, p, s);
        if (!status && j->csv_file && sim_csv_variables(&j->csv, j->csv_file, s))
            status = out_of_memory();
        if (status || j->list)
            continue; /* a list of the runs needs no flows */
        if (sim_check(s, &has, &err))
            status = complain(j, &err);
        else
            look_for(j, s, &has, figure, chart);
    }
    if (j->list || j->shards > 1 || cli_stop) /* runs not read may have it */
        return status;
    for (unsigned i = 0; i < j->nfigures && !status; i++)
        status = not_found("--figure", j->figure[i], &figure[i]);
    for (unsigned i = 0; i < j->ncharts && !status; i++)
        status = not_found("--chart", sim_chart_file(j->chart[i]), &chart[i]);
    return status;
}

/* Make the runs of this shard. Returns the worst status of any. */
static int all(struct job *j, struct sim_scenario *s)
{
    FILE *out;
    int status = check_runs(j, s);
    uint32_t points = s->points;
    if (!status && cli_stop) { /* an earlier output shall not be lost for nothing */
        cli_error("interrupted: no run was started");
        status = CLI_FAIL;
    }
    if (status || j->check)
        return status;
    status = open_output(j, &out);
    if (status)
        return status;
    if (j->csv && !j->list && sim_csv_open(j->csv)) {
        cli_error("%s: %s", j->csv_file, strerror(errno));
        close_output(j, out);
        return CLI_FAIL;
    }
    for (uint32_t p = j->shard - 1; p < points; p += j->shards) {
        if (cli_stop) {
            j->left++;
            continue;
        }
        int rc = parse(j, p, s);
        if (!rc && j->list)
            list_run(s, p, out);
        else if (!rc)
            rc = one(j, s, p, out);
        status = rc > status ? rc : status;
        if (rc == CLI_USAGE)
            break;
    }
    if (out && j->left)
        fprintf(out, "{\"type\":\"interrupted\",\"left\":%u}\n", j->left);
    if (!j->list && finish_charts(j))
        status = CLI_FAIL;
    if (close_output(j, out))
        status = CLI_FAIL;
    int csv = sim_csv_close(j->csv);
    j->csv = NULL;
    if (csv) {
        cli_error("%s: %s", j->csv_file, strerror(-csv));
        status = CLI_FAIL;
    }
    int rc = interrupted(j);
    return status ? status : rc;
}

/* ---- the command line ---- */

static int too_often(const char *option, unsigned most)
{
    cli_error("%s: at most %u times", option, most);
    return CLI_USAGE;
}

static int add_set(struct job *j, const char *text)
{
    const char *eq = strchr(text, '=');
    if (j->nset == SIM_VARS)
        return too_often("--set", SIM_VARS);
    struct sim_var *v = &j->set[j->nset];
    if (!eq || eq == text || (size_t)(eq - text) >= sizeof(v->name) ||
        strlen(eq + 1) >= sizeof(v->value)) {
        cli_error("--set: '%s' is not NAME=VALUE, or too long", text);
        return CLI_USAGE;
    }
    memcpy(v->name, text, (size_t)(eq - text));
    memcpy(v->value, eq + 1, strlen(eq + 1) + 1);
    j->nset++;
    return CLI_OK;
}

static int add_chart(struct job *j, const char *text)
{
    if (j->ncharts == CHARTS)
        return too_often("--chart", CHARTS);
    struct sim_chart *c = sim_chart_new(text);
    if (!c) {
        cli_error("--chart: '%s' is not METRIC/X[/SERIES]=FILE with a metric that there is, "
                  "queue/time or rate/time, or fct/cdf, slowdown/cdf or goodput/cdf",
                  text);
        return CLI_USAGE;
    }
    j->chart[j->ncharts++] = c;
    return CLI_OK;
}

static int set_shard(struct job *j, const char *text)
{
    unsigned i, n;
    char tail;
    if (sscanf(text, "%u/%u%c", &i, &n, &tail) != 2 || !i || i > n || n > SIM_POINTS) {
        cli_error("--shard: '%s' is not I/N with 1 <= I <= N", text);
        return CLI_USAGE;
    }
    j->shard = i;
    j->shards = n;
    return CLI_OK;
}

static int add_figure(struct job *j, const char *text)
{
    if (j->nfigures == FIGURES)
        return too_often("--figure", FIGURES);
    if (!sim_metric_known(text)) {
        cli_error("--figure: there is no metric '%s'", text);
        return CLI_USAGE;
    }
    j->figure[j->nfigures++] = text;
    return CLI_OK;
}

enum {
    OPT_CHART = 256,
    OPT_FIGURE,
    OPT_CSV,
    OPT_POINTS,
    OPT_RULES,
    OPT_SHARD,
    OPT_JSON,
    OPT_LIST,
    OPT_CHECK
};

/* Take one of our own options and its value. CLI_*; -1 = another option. */
static int take(struct job *j, int c, const char *value)
{
    switch (c) {
    case 'o':
        j->output = value;
        return CLI_OK;
    case 'p':
        j->plot = value;
        return CLI_OK;
    case OPT_CSV:
        j->csv_file = value;
        return CLI_OK;
    case OPT_POINTS:
        j->points_file = value;
        return CLI_OK;
    case 'c':
        return sim_capture_add(&j->captures, value);
    case OPT_FIGURE:
        return add_figure(j, value);
    case OPT_CHART:
        return add_chart(j, value);
    case 's':
        return add_set(j, value);
    case OPT_RULES:
        j->rules_file = value;
        return CLI_OK;
    case OPT_SHARD:
        return set_shard(j, value);
    case OPT_JSON:
        j->output = "-";
        return CLI_OK;
    case OPT_LIST:
        j->list = true;
        return CLI_OK;
    case OPT_CHECK:
        j->check = true;
        return CLI_OK;
    case 'q':
        j->quiet = true;
        return CLI_OK;
    default:
        return -1;
    }
}

static int simulate(struct job *j)
{
    static struct sim_scenario s;
    cli_catch_signals();
    int status = load(j);
    if (!status)
        status = load_points(j);
    if (!status && j->rules_file) {
        j->rules = rulefile_read(j->rules_file, (size_t)SIM_RULES * SIM_TEXT, 1, NULL);
        status = j->rules ? CLI_OK : CLI_USAGE;
    }
    if (!status)
        status = all(j, &s);
    sim_scenario_free(&s);
    sim_csv_close(j->csv); /* after a failure */
    sim_points_free(&j->points);
    fault_free(j->rules);
    free(j->text);
    return status;
}

static int sim_cmd(int argc, char **argv)
{
    static const struct option options[] = {{"output", required_argument, NULL, 'o'},
                                            {"plot", required_argument, NULL, 'p'},
                                            {"csv", required_argument, NULL, OPT_CSV},
                                            {"points", required_argument, NULL, OPT_POINTS},
                                            {"figure", required_argument, NULL, OPT_FIGURE},
                                            {"chart", required_argument, NULL, OPT_CHART},
                                            {"capture", required_argument, NULL, 'c'},
                                            {"set", required_argument, NULL, 's'},
                                            {"rules", required_argument, NULL, OPT_RULES},
                                            {"shard", required_argument, NULL, OPT_SHARD},
                                            {"json", no_argument, NULL, OPT_JSON},
                                            {"list", no_argument, NULL, OPT_LIST},
                                            {"check", no_argument, NULL, OPT_CHECK},
                                            {"quiet", no_argument, NULL, 'q'},
                                            CLI_HELP,
                                            {NULL, 0, NULL, 0}};
    static struct job j = {.shard = 1, .shards = 1};
    int c, status;
    while ((c = getopt_long(argc, argv, "o:p:c:s:qh", options, NULL)) != -1) {
        int rc = take(&j, c, optarg);
        if (rc > 0)
            return rc;
        if (rc < 0 && cli_option(c, &cmd_sim, &status))
            return status;
    }
    status = cli_operands(argc, argv, 1, 1, "a scenario");
    if (status)
        return status;
    j.file = argv[optind];
    return simulate(&j);
}

const struct cli_command cmd_sim = {
    .name = "sim",
    .summary = "simulate a network of hosts that run this engine",
    .help = help,
    .run = sim_cmd,
};
