/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Flows as rows of a table (RFC 4180).
 */
#include "sim_csv.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim_metric.h"

struct sim_csv {
    const char *file;
    FILE *f;
    char name[SIM_VARS][sizeof(((struct sim_var *)0)->name)];
    unsigned nnames;
};

static bool has_column(const struct sim_csv *c, const char *name)
{
    for (unsigned i = 0; i < c->nnames; i++)
        if (!strcmp(c->name[i], name))
            return true;
    return false;
}

int sim_csv_variables(struct sim_csv **csv, const char *file, const struct sim_scenario *s)
{
    struct sim_csv *c = *csv;
    if (!c) {
        c = *csv = calloc(1, sizeof(*c));
        if (!c)
            return -ENOMEM;
        c->file = file;
    }
    for (unsigned i = 0; i < s->nvars && c->nnames < SIM_VARS; i++)
        if (!has_column(c, s->var[i].name))
            memcpy(c->name[c->nnames++], s->var[i].name, sizeof(c->name[0]));
    return 0;
}

/* A field, quoted where it must be. */
static void field(FILE *f, const char *text)
{
    if (!text[strcspn(text, ",\"\r\n")]) {
        fputs(text, f);
        return;
    }
    fputc('"', f);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', f);
        fputc(*text, f);
    }
    fputc('"', f);
}

int sim_csv_open(struct sim_csv *c)
{
    c->f = strcmp(c->file, "-") ? fopen(c->file, "w") : stdout;
    if (!c->f)
        return -1;
    fputs("run", c->f);
    for (unsigned i = 0; i < c->nnames; i++) {
        fputc(',', c->f);
        field(c->f, c->name[i]);
    }
    fputs(",flow,src,dst,line,octets,start_us,state,open,fct_us,ideal_us,slowdown,goodput_gbps,"
          "placed,sent,retransmits,timeouts\n",
          c->f);
    return 0;
}

static const char *value(const struct sim_scenario *s, const char *name)
{
    for (unsigned i = 0; i < s->nvars; i++)
        if (!strcmp(s->var[i].name, name))
            return s->var[i].value;
    return ""; /* a run without this variable */
}

/* A number, or nothing where there is none. */
static void number(FILE *f, const char *format, double v)
{
    fputc(',', f);
    if (!isnan(v))
        fprintf(f, format, v);
}

static void row(FILE *f, const struct sim *sim, const struct sim_flow *w)
{
    bool forever = w->octets == SIM_FOREVER, open = w->state == SIM_WAITS || w->state == SIM_RUNS;
    fprintf(f, ",%u,%u,%u,%u,", w->id, w->src, w->dst, sim->s->load[w->load].line);
    if (forever)
        fputs("forever", f);
    else
        fprintf(f, "%" PRIu64, w->octets);
    fprintf(f, ",%.3f,%s,%u", (double)w->begin / 1e3, sim_flow_states[w->state], open);
    number(f, "%.3f", sim_fct_us(sim, w));
    number(f, "%.3f", w->ideal ? (double)w->ideal / 1e3 : NAN);
    number(f, "%.6g", sim_slowdown(sim, w));
    number(f, "%.6g", w->state == SIM_WAITS ? NAN : sim_flow_goodput(sim, w));
    fprintf(f, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", sim->flows.placed[w->id],
            w->sent, w->again, w->timeouts);
}

void sim_csv_add(struct sim_csv *c, struct sim *sim, uint32_t point)
{
    for (uint32_t i = 0; i < sim->flows.n; i++) {
        sim_flow_refresh(&sim->flows.flow[i]);
        fprintf(c->f, "%u", point);
        for (unsigned k = 0; k < c->nnames; k++) {
            fputc(',', c->f);
            field(c->f, value(sim->s, c->name[k]));
        }
        row(c->f, sim, &sim->flows.flow[i]);
    }
}

bool sim_csv_is_stdout(const struct sim_csv *c)
{
    return c && c->f == stdout;
}

int sim_csv_close(struct sim_csv *c)
{
    int rc = 0;
    if (c && c->f) {
        bool failed = ferror(c->f);
        rc = fflush(c->f) ? -errno : failed ? -EIO : 0;
        if (c->f != stdout && fclose(c->f) && !rc)
            rc = -errno;
    }
    free(c);
    return rc;
}
