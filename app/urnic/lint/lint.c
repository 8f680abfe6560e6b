/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `urnic lint`: which rules does a capture's traffic break, and which end broke them?
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli.h"
#include "lint_html.h"
#include "lint_read.h"
#include "lint_writer.h"

#define KEEP_MAX     20000u        /* findings kept in memory */
#define PROGRESS_MIN (64ull << 20) /* smaller files are read at once */

static const char help[] = {
#include "help_lint.inc"
};

struct options {
    const char *path, *rules, *html;
    uint64_t max, connection;
    bool json, violations, strict, list;
};

struct run {
    const struct options *opt;
    struct lint *lint;
    struct lint_writer *const *writer;
    size_t writers;
    struct lint_finding *finding;
    size_t findings, room, lost;
    uint64_t lost_by[LINT_VERDICTS];
};

/* Is `id` in a list like "ACK-05,RNR-02"? Without a list every id is. */
static bool listed(const char *list, const char *id)
{
    if (!list)
        return true;
    size_t n = strlen(id);
    for (const char *s = list; *s; s += strcspn(s, ",")) {
        s += *s == ',';
        if (strcspn(s, ",") == n && !strncasecmp(s, id, n))
            return true;
    }
    return false;
}

static bool known_rules(const char *list)
{
    size_t n;
    const struct lint_rule *rules = lint_rules(&n);
    const char *s = list;
    do {
        s += *s == ',';
        size_t len = strcspn(s, ","), i = 0;
        while (i < n && (strlen(rules[i].id) != len || strncasecmp(s, rules[i].id, len)))
            i++;
        if (i == n) {
            cli_error("--rule: '%.*s' is none of the rules of 'urnic lint --rules'", (int)len, s);
            return false;
        }
        s += len;
    } while (*s);
    return true;
}

static void on_finding(void *ctx, const struct lint_finding *f)
{
    struct run *run = ctx;
    for (size_t i = 0; i < run->writers; i++)
        if (run->writer[i]->finding)
            run->writer[i]->finding(run->writer[i], f);
    if (!listed(run->opt->rules, f->rule->id))
        return;
    if (run->findings == run->room && run->room < KEEP_MAX) {
        size_t room = run->room ? 2 * run->room : 32;
        void *more = realloc(run->finding, room * sizeof(*run->finding));
        if (more) {
            run->finding = more;
            run->room = room;
        }
    }
    if (run->findings < run->room) {
        run->finding[run->findings++] = *f;
    } else {
        run->lost++;
        run->lost_by[f->verdict]++;
    }
}

static int by_number(const void *a, const void *b)
{
    const struct lint_finding *x = a, *y = b;
    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    return x->rule < y->rule ? -1 : x->rule > y->rule;
}

/* Pairs of flows, numbered by their first packet. */
static struct lint_connection *connections(const struct lint *l, uint32_t flows, uint32_t *count)
{
    struct lint_connection *list = calloc(flows ? flows : 1, sizeof(*list));
    *count = 0;
    for (uint32_t i = 0; list && i < flows; i++) {
        struct lint_flow_info info, other = {0};
        if (!lint_flow_info(l, i, &info) || (info.peer != LINT_NO_FLOW && info.peer < i))
            continue;
        if (info.peer != LINT_NO_FLOW)
            lint_flow_info(l, info.peer, &other);
        if (info.packets + other.packets == 0 && !info.by_cm)
            continue;
        struct lint_connection *c = &list[(*count)++];
        *c = (struct lint_connection){
            .number = *count, .flow = {i, info.peer}, .info = {info, other}};
    }
    return list;
}

uint32_t lint_connection_of(const struct lint_result *r, uint32_t flow)
{
    uint32_t n = flow < r->flows ? r->number[flow] : 0;
    return n && r->connections && n - r->connection->number < r->connections ? n : 0;
}

/* Which connection is a flow of? NULL: there are none, or no memory. */
static uint32_t *numbers(const struct lint_result *r, uint32_t flows)
{
    uint32_t *number = r->connections ? calloc(flows, sizeof(*number)) : NULL;
    for (uint32_t i = 0; number && i < r->connections; i++)
        for (unsigned k = 0; k < 2; k++)
            if (r->connection[i].flow[k] < flows)
                number[r->connection[i].flow[k]] = r->connection[i].number;
    return number;
}

/* Sort, drop findings of other connections or kinds than wanted, and cut at --max. */
static void select_findings(struct run *run, struct lint_result *r)
{
    const struct options *o = run->opt;
    size_t n = 0;
    if (run->findings)
        qsort(run->finding, run->findings, sizeof(*run->finding), by_number);
    for (size_t i = 0; i < run->findings; i++) {
        const struct lint_finding *f = &run->finding[i];
        if (o->connection && lint_connection_of(r, f->flow) != o->connection)
            continue;
        r->shown[f->verdict]++;
        if (o->violations && f->verdict != LINT_VIOLATION)
            continue;
        if (o->max && n >= o->max)
            r->hidden++;
        else
            run->finding[n++] = *f;
    }
    if (!o->connection)
        r->hidden += o->violations ? run->lost_by[LINT_VIOLATION] : run->lost;
    for (int v = 0; v < LINT_VERDICTS && !o->connection; v++)
        r->shown[v] += run->lost_by[v];
    r->finding = run->finding;
    r->findings = n;
}

/* With --connection the report is only about that connection. False, with a message: there is no
 * such connection. */
static bool select_connection(const struct options *o, struct lint_result *r)
{
    r->only = o->connection != 0;
    if (!r->only)
        return true;
    if (o->connection > r->connections) {
        cli_error("--connection: %" PRIu64 ": %s has %" PRIu32 " connection%s", o->connection,
                  o->path, r->connections, r->connections == 1 ? "" : "s");
        return false;
    }
    r->connection += o->connection - 1;
    r->connections = 1;
    return true;
}

static int status_of(const struct lint_result *r, bool strict)
{
    if (r->shown[LINT_VIOLATION])
        return CLI_FAIL;
    if (!r->totals.roce || (strict && r->shown[LINT_UNDECIDABLE]))
        return CLI_USAGE;
    return CLI_OK;
}

static void take(const struct run *run, const struct lint_frame *f)
{
    struct lint_view view;
    struct lint_merge m = {0};
    uint8_t buf[LINT_PART_MAX];
    lint_packet(run->lint, f, &view);
    if (view.flags & LINT_V_MERGED && lint_merged(f, &m))
        for (uint32_t i = 0; i < m.n; i++) {
            struct lint_frame part;
            lint_part(f, &m, i, buf, &part);
            take(run, &part);
        }
    for (size_t i = 0; i < run->writers && !m.n; i++)
        if (run->writer[i]->packet)
            run->writer[i]->packet(run->writer[i], f, &view);
}

/* For lint_read. */
static int take_frame(void *arg, const struct lint_frame *f)
{
    take(arg, f);
    return 0;
}

/* If a signal ends the reading, the part that was read is judged. */
static int read_all(struct run *run, struct capread *cap)
{
    int rc = lint_read(cap, lint_read_shows(cap, PROGRESS_MIN), take_frame, run);
    lint_end(run->lint);
    return rc == -EINTR ? 0 : rc;
}

static int judge(struct run *run, struct capread *cap)
{
    const struct options *o = run->opt;
    struct lint *l = lint_new(on_finding, run, 0);
    if (!l) {
        cli_error("%s", strerror(ENOMEM));
        return CLI_USAGE;
    }
    run->lint = l;
    int rc = read_all(run, cap), status;
    struct lint_result r = {.path = o->path};
    capread_info(cap, &r.capture);
    lint_totals(l, &r.totals);
    struct lint_connection *list = connections(l, r.totals.flows, &r.connections);
    r.connection = list;
    uint32_t *number = numbers(&r, r.totals.flows);
    r.number = number;
    r.flows = number ? r.totals.flows : 0;
    select_findings(run, &r);
    if (rc < 0) {
        cli_errno(rc, "%s", o->path);
        status = CLI_USAGE;
    } else if (!select_connection(o, &r)) {
        status = CLI_USAGE;
    } else {
        (o->json ? lint_write_json : lint_write_text)(&r);
        status = status_of(&r, o->strict);
        for (size_t i = 0; i < run->writers; i++) {
            rc = run->writer[i]->end ? run->writer[i]->end(run->writer[i], &r) : 0;
            if (rc < 0) {
                cli_errno(rc, "--html %s", o->html);
                status = CLI_USAGE;
            }
        }
    }
    free(number);
    free(list);
    free(run->finding);
    lint_free(l);
    return status;
}

/* The page is opened after the capture, so that a wrong name of a capture doesn't destroy an older
 * page. */
static int report(const struct options *o)
{
    struct capread *cap;
    char why[128];
    if (o->html && cli_same_file(o->path, o->html)) {
        cli_error("--html %s: that is the capture itself", o->html);
        return CLI_USAGE;
    }
    if (lint_read_open(o->path, &cap, why, sizeof(why)) < 0) {
        cli_error("%s: %s", o->path, why);
        return CLI_USAGE;
    }
    struct lint_writer *html = o->html ? lint_html_new(o->html) : NULL;
    int status = CLI_USAGE;
    if (o->html && !html)
        cli_errno(-errno, "--html %s", o->html);
    else
        status = judge(&(struct run){.opt = o, .writer = &html, .writers = html ? 1 : 0}, cap);
    lint_html_free(html);
    capread_close(cap);
    return status;
}

/* Take one of our own options and its value. 0; -1 with a message; 1 = another option. */
static int take_option(void *arg, int c, char *value)
{
    struct options *o = arg;
    switch (c) {
    case 'c':
        return cli_number("--connection", value, 1, UINT32_MAX, &o->connection);
    case 'r':
        o->rules = value;
        return known_rules(value) ? 0 : -1;
    case 'm':
        return cli_number("--max", value, 0, UINT64_MAX >> 1, &o->max);
    case 'v':
        o->violations = true;
        return 0;
    case 's':
        o->strict = true;
        return 0;
    case 'j':
        o->json = true;
        return 0;
    case 'H':
        o->html = value;
        return 0;
    case 'R':
        o->list = true;
        return 0;
    default:
        return 1;
    }
}

static int run(int argc, char **argv)
{
    static const struct option options[] = {CLI_HELP,
                                            {"connection", required_argument, NULL, 'c'},
                                            {"rule", required_argument, NULL, 'r'},
                                            {"max", required_argument, NULL, 'm'},
                                            {"violations", no_argument, NULL, 'v'},
                                            {"strict", no_argument, NULL, 's'},
                                            {"json", no_argument, NULL, 'j'},
                                            {"html", required_argument, NULL, 'H'},
                                            {"rules", no_argument, NULL, 'R'},
                                            {0}};
    struct options o = {.max = 100};
    int status = cli_options(argc, argv, &cmd_lint, "hc:r:m:v", options, take_option, &o);
    if (status != CLI_GO_ON)
        return status;
    if (o.list) {
        lint_write_rules(o.json);
        return CLI_OK;
    }
    if (cli_operands(argc, argv, 1, 1, "a capture") != CLI_OK)
        return CLI_USAGE;
    o.path = argv[optind];
    cli_catch_signals();
    return report(&o);
}

const struct cli_command cmd_lint = {"lint", "judge a capture: which rules are broken, where", help,
                                     run};
