/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `urnic replay`: the packets that our engine would have sent in the place of one end of a
 * capture.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "cli.h"
#include "lint_read.h"
#include "replay.h"

#define PROGRESS_MIN (16ull << 20) /* smaller files are read at once */

static const char help[] = {
#include "help_replay.inc"
};

struct options {
    const char *path;
    unsigned roles;
    uint64_t max, memory;
    bool json, verbose;
};

struct run {
    const struct options *opt;
    struct replay *replay;
    uint64_t shown, hidden;
    uint64_t first_ns;
    bool show;     /* the progress */
    uint64_t done; /* packets compared */
    struct cli_progress bar;
};

/* Clear the progress bar before lines are printed. */
static void make_room(const struct run *run)
{
    if (run->show)
        fputs("\r\033[K", stderr);
}

static void on_difference(void *ctx, const struct replay_difference *d)
{
    struct run *run = ctx;
    double at = (double)(int64_t)(d->ns - run->first_ns) / 1e9;
    if (run->opt->max && run->shown >= run->opt->max) {
        run->hidden++;
        return;
    }
    run->shown++;
    make_room(run);
    if (run->opt->json) {
        cli_json(json_pack("{s:s, s:i, s:s, s:I, s:f, s:s, s:s, s:s, s:s, s:s}", "type",
                           "difference", "connection", (int)d->connection, "as",
                           replay_role_name(d->role), "packet", (json_int_t)d->number, "time", at,
                           "rule", d->rule, "field", d->field, "why", d->why, "ours", d->ours,
                           "capture", d->capture));
        return;
    }
    printf("difference %s: packet %" PRIu64 " at %.6f s, connection %u as %s: %s\n", d->rule,
           d->number, at, d->connection, replay_role_name(d->role), d->field);
    printf("  ours     %s\n  capture  %s\n  (%s)\n\n", d->ours, d->capture, d->why);
}

static void on_result(void *ctx, const struct replay_outcome *o)
{
    struct run *run = ctx;
    char src[64], dst[64];
    wire_addr_str(&o->flow.src, src, sizeof(src));
    wire_addr_str(&o->flow.dst, dst, sizeof(dst));
    make_room(run);
    if (run->opt->json) {
        cli_json(json_pack("{s:s, s:i, s:b, s:b, s:s, s:s, s:s, s:i, s:I, s:I, s:I, s:I, s:I, s:I}",
                           "type", "connection", "connection", (int)o->connection, "cm", (int)o->cm,
                           "unanswered", (int)o->unanswered, "as", replay_role_name(o->role),
                           "requester", src, "responder", dst, "qpn", (int)o->flow.dqpn, "fed",
                           (json_int_t)o->fed, "compared", (json_int_t)o->compared, "same",
                           (json_int_t)o->same, "differ", (json_int_t)o->differ, "lost",
                           (json_int_t)o->lost, "passed", (json_int_t)o->passed));
        return;
    }
    if (o->unanswered)
        printf("connection %u as responder: %s -> %s qp 0x%x: no answers until the requester "
               "gives up; perhaps there is no such queue pair\n",
               o->connection, src, dst, o->flow.dqpn);
    else if (run->opt->verbose || o->differ)
        printf("connection %u as %s%s: %s -> %s qp 0x%x: %" PRIu64 " given, %" PRIu64
               " compared, %" PRIu64 " differ, %" PRIu64 " lost, %" PRIu64 " passed over\n",
               o->connection, replay_role_name(o->role), o->cm ? ", CM" : "", src, dst,
               o->flow.dqpn, o->fed, o->compared, o->differ, o->lost, o->passed);
}

static void print_freedoms(bool json)
{
    size_t n;
    const struct replay_freedom *f = replay_freedoms(&n);
    for (size_t i = 0; i < n; i++)
        if (json)
            cli_json(json_pack("{s:s, s:s}", "name", f[i].name, "sentence", f[i].sentence));
        else
            printf("%-16s %s\n", f[i].name, f[i].sentence);
}

static int take_frame(void *arg, const struct lint_frame *f)
{
    struct run *run = arg;
    if (!run->first_ns)
        run->first_ns = f->ns;
    return replay_add(run->replay, f);
}

static bool on_progress(void *ctx, uint64_t done, uint64_t total)
{
    struct run *run = ctx;
    run->bar.total = total;
    run->done = done;
    cli_progress(&run->bar, done, NULL);
    return !cli_stop;
}

static int compare_all(struct run *run)
{
    struct replay *r = run->replay;
    cli_progress_begin(&run->bar, "comparing", 0, !run->show);
    run->bar.unit = "packets";
    replay_watch(r, on_progress, run);
    int rc = replay_run(r, run->opt->roles, on_difference, on_result, run);
    cli_progress_end(&run->bar, rc < 0 ? run->done : run->bar.total, NULL);
    return rc;
}

/* Print the reason for a missing result. */
static void print_failure(const struct options *o, int rc)
{
    char limit[32];
    if (rc == -EFBIG)
        cli_error("%s: replaying it takes more than %s of memory: allow more with --memory, or cut "
                  "it into pieces (editcap -c 1000000)",
                  o->path, cli_fmt_octets(o->memory, limit, sizeof(limit)));
    else if (rc == -EINTR)
        cli_error("%s: stopped before its end: there is no summary", o->path);
    else
        cli_errno(rc, "%s", o->path);
}

static void print_totals(const struct run *run, const struct replay_totals *t,
                         const struct capread_info *info)
{
    const char *damage = info->damage;
    if (run->opt->json) {
        json_t *o = json_pack(
            "{s:s, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:i, s:i, s:i, s:I, s:I}", "type",
            "summary", "capture", cli_json_text(run->opt->path), "frames", (json_int_t)t->frames,
            "other_link", (json_int_t)info->skipped, "roce", (json_int_t)t->roce, "cm",
            (json_int_t)t->cm, "datagrams", (json_int_t)t->datagrams, "damaged",
            (json_int_t)t->damaged, "xrc", (json_int_t)t->xrc, "merged", (json_int_t)t->merged,
            "connections", (int)t->connections, "replayed", (int)t->replayed, "unanswered",
            (int)t->unanswered, "compared", (json_int_t)t->compared, "differ",
            (json_int_t)t->differ);
        if (damage)
            json_object_set_new(o, "damage", json_string(damage));
        cli_json(o);
        return;
    }
    if (run->hidden)
        printf("%" PRIu64 " more differences are not shown (--max)\n", run->hidden);
    if (damage)
        printf("%s: %s\n", run->opt->path, damage);
    printf("%s: %" PRIu64 " packet%s, %u connection%s; %" PRIu64 " compared, %" PRIu64 " differ",
           run->opt->path, t->roce, t->roce == 1 ? "" : "s", t->connections,
           t->connections == 1 ? "" : "s", t->compared, t->differ);
    if (t->damaged)
        printf("; passed over: %" PRIu64 " damaged", t->damaged);
    if (t->xrc)
        printf("; %" PRIu64 " of XRC, which isn't replayed", t->xrc);
    if (t->merged)
        printf("; %" PRIu64 " frame%s merged by the host that captured (GRO, LRO or GSO)",
               t->merged, t->merged == 1 ? "" : "s");
    if (info->skipped)
        printf("; %" PRIu64 " packet%s of link types without Ethernet or IP%s", info->skipped,
               info->skipped == 1 ? "" : "s", info->infiniband ? " (InfiniBand itself)" : "");
    putchar('\n');
    if (!t->compared && !t->unanswered)
        printf("nothing to compare: %s\n",
               t->damaged && t->damaged == t->roce ? "each RoCE packet is damaged or malformed"
               : t->xrc && t->xrc == t->roce       ? "each RoCE packet is of XRC"
               : t->roce
                   ? "no connection has both its requests and their answers, with whole headers"
                   : "no RoCE packet");
}

static int replay(struct run *run)
{
    struct capread *cap;
    struct capread_info info;
    struct replay_totals t = {0};
    char why[128];
    if (lint_read_open(run->opt->path, &cap, why, sizeof(why)) < 0) {
        cli_error("%s: %s", run->opt->path, why);
        return CLI_USAGE;
    }
    struct replay *r = replay_new(run->opt->memory);
    int rc = -ENOMEM;
    if (r) {
        run->replay = r;
        run->show = lint_read_shows(cap, PROGRESS_MIN);
        rc = lint_read(cap, run->show, take_frame, run);
    }
    if (rc >= 0)
        rc = compare_all(run);
    if (rc >= 0) {
        capread_info(cap, &info);
        replay_totals(r, &t);
        print_totals(run, &t, &info);
    } else {
        print_failure(run->opt, rc);
    }
    replay_free(r);
    capread_close(cap);
    if (rc < 0 || (!t.compared && !t.unanswered))
        return CLI_USAGE;
    return t.differ ? CLI_FAIL : CLI_OK;
}

static bool take_role(const char *text, unsigned *roles)
{
    if (!strcmp(text, "responder"))
        *roles = REPLAY_RESPONDER;
    else if (!strcmp(text, "requester"))
        *roles = REPLAY_REQUESTER;
    else if (!strcmp(text, "both"))
        *roles = REPLAY_BOTH;
    else
        return false;
    return true;
}

static int run(int argc, char **argv)
{
    static const struct option options[] = {CLI_HELP,
                                            {"as", required_argument, NULL, 'a'},
                                            {"max", required_argument, NULL, 'm'},
                                            {"memory", required_argument, NULL, 'M'},
                                            {"verbose", no_argument, NULL, 'v'},
                                            {"json", no_argument, NULL, 'j'},
                                            {"freedoms", no_argument, NULL, 'f'},
                                            {0}};
    struct options o = {.max = 20, .memory = REPLAY_HELD_MAX, .roles = REPLAY_BOTH};
    bool freedoms = false;
    int c, status;
    while ((c = getopt_long(argc, argv, "ha:m:v", options, NULL)) != -1) {
        switch (c) {
        case 'a':
            if (!take_role(optarg, &o.roles)) {
                cli_error("--as: '%s' is none of responder, requester, both", optarg);
                return CLI_USAGE;
            }
            break;
        case 'm':
            if (cli_number("--max", optarg, 0, UINT64_MAX >> 1, &o.max) < 0)
                return CLI_USAGE;
            break;
        case 'M':
            if (cli_size("--memory", optarg, 1 << 20, UINT64_MAX >> 1, &o.memory) < 0)
                return CLI_USAGE;
            break;
        case 'v':
            o.verbose = true;
            break;
        case 'j':
            o.json = true;
            break;
        case 'f':
            freedoms = true;
            break;
        default:
            if (cli_option(c, &cmd_replay, &status))
                return status;
        }
    }
    if (freedoms) {
        print_freedoms(o.json);
        return CLI_OK;
    }
    if (cli_operands(argc, argv, 1, 1, "a capture") != CLI_OK)
        return CLI_USAGE;
    o.path = argv[optind];
    cli_catch_signals();
    return replay(&(struct run){.opt = &o});
}

const struct cli_command cmd_replay = {
    "replay", "replace one end of a capture by our engine, and compare", help, run};
