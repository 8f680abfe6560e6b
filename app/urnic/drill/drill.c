/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `urnic drill`: packet scripts against our engine, or against a device on the wire.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli.h"
#include "drill.h"
#include "drill_record.h"
#include "drill_wire.h"
#include "io.h"

static const char help[] = {
#include "help_drill.inc"
};

#define DEPTH_MAX 16u   /* most nested directories */
#define SERVICE   7174u /* the peer's port, unless --peer names one */

struct options {
    const char *record;
    int64_t psn; /* first PSN; -1: the usual ones */
    bool ipv6, check, verbose, json;
    struct drill_host_params host;
    const char *addr, *peer;
};

struct session {
    const struct options *opt;
    struct drill_host *host;
    struct drill_wire wire; /* valid with a host */
    struct drill_record record;
    bool unwritable; /* the file of --record can't be written: no script runs */
    unsigned pass, fail, wrong, skip;
    uint64_t packets, checks;
};

/* ---- reporting ---- */

static void count(struct session *s, const struct drill_report *r)
{
    unsigned *const counts[] = {&s->pass, &s->fail, &s->wrong, &s->skip};
    ++*counts[r->verdict];
    s->packets += r->packets;
    s->checks += r->checks;
}

static void report_json(const char *path, const struct drill_script *script, uint32_t psn,
                        const struct drill_report *r)
{
    json_t *o =
        json_pack("{s:s, s:o, s:o, s:o, s:s, s:i, s:I, s:i, s:i, s:i}", "type", "script", "script",
                  cli_json_text(path), "rules", cli_json_text(drill_rules(script)), "purpose",
                  cli_json_text(drill_purpose(script)), "verdict", drill_verdict_names[r->verdict],
                  "psn", (int)psn, "ns", (json_int_t)r->ns, "packets", (int)r->packets, "checks",
                  (int)r->checks, "unseen", (int)r->unseen);
    if (r->verdict != DRILL_PASS) {
        json_object_set_new(o, "line", json_integer(r->line));
        json_object_set_new(o, "what", cli_json_text(r->what));
        json_object_set_new(o, "expected", cli_json_text(r->expected));
        json_object_set_new(o, "got", cli_json_text(r->got));
        json_object_set_new(o, "fields", cli_json_text(r->fields));
    }
    cli_json(o);
}

static void report(struct session *s, const char *path, const struct drill_script *script,
                   uint32_t psn, const struct drill_report *r)
{
    count(s, r);
    if (s->opt->json) {
        report_json(path, script, psn, r);
        return;
    }
    if (r->verdict == DRILL_SKIP && !s->opt->verbose)
        return;
    if (r->verdict == DRILL_PASS) {
        if (s->opt->verbose)
            printf("pass   %s  %s: %s\n", path, drill_rules(script), drill_purpose(script));
        return;
    }
    char line[16] = ", at its end"; /* a result of the whole script: no statement is at fault */
    if (r->line)
        snprintf(line, sizeof(line), ":%u", r->line);
    printf("%-6s %s%s: %s (first PSN 0x%06x, %.3f ms)\n", drill_verdict_names[r->verdict], path,
           line, r->what, psn, (double)r->ns / 1e6);
    if (*r->expected)
        printf("  expected  %s\n", r->expected);
    if (*r->got)
        printf("  got       %s\n", r->got);
    if (*r->fields)
        printf("  fields    %s\n", r->fields);
}

/* ---- running ---- */

static char *read_script(const char *path, size_t *len)
{
    char *text = cli_text(strcmp(path, "-") ? fopen(path, "r") : stdin, DRILL_TEXT_MAX, len);
    if (!text)
        cli_errno(-errno, "%s", path);
    return text;
}

static void not_a_script(struct session *s, const char *path, const struct drill_error *err)
{
    s->wrong++;
    if (s->opt->json) {
        cli_json(json_pack("{s:s, s:o, s:s, s:i, s:i, s:o}", "type", "script", "script",
                           cli_json_text(path), "verdict", "wrong", "line", (int)err->line,
                           "column", (int)err->column, "what", cli_json_text(err->text)));
        return;
    }
    if (err->line)
        printf("wrong  %s:%u:%u: %s\n", path, err->line, err->column, err->text);
}

/* Run the script with each first PSN until a run fails. */
static void run_psns(struct session *s, const char *path, const struct drill_script *script)
{
    static const uint32_t usual[] = {0x000ABC, 0xFFFFFE, 0x7FFFFE};
    struct drill_report r;
    unsigned n = s->opt->psn < 0 && !s->host ? 3 : 1;
    for (unsigned i = 0; i < n; i++) {
        struct drill_options o = {.psn = s->opt->psn < 0 ? usual[i] : (uint32_t)s->opt->psn,
                                  .ipv6 = s->opt->ipv6,
                                  .arg = &s->record,
                                  .frame = drill_record_frame};
        if (s->host)
            drill_run_on(script, &o, &s->wire, &r);
        else
            drill_run(script, &o, &r);
        drill_record_run_over(&s->record, r.ns);
        if (r.verdict != DRILL_PASS || i == n - 1) {
            report(s, path, script, o.psn, &r);
            return;
        }
    }
}

static void well_formed(struct session *s, const char *path, const struct drill_script *script)
{
    s->pass++;
    if (s->opt->json)
        cli_json(json_pack("{s:s, s:o, s:o, s:o, s:s}", "type", "script", "script",
                           cli_json_text(path), "rules", cli_json_text(drill_rules(script)),
                           "purpose", cli_json_text(drill_purpose(script)), "verdict", "pass"));
}

static void run_file(struct session *s, const char *path)
{
    struct drill_error err;
    size_t len = 0;
    char *text = read_script(path, &len);
    if (!text) { /* read_script() has printed the reason */
        not_a_script(s, path, &(struct drill_error){.text = "it can't be read"});
        return;
    }
    struct drill_script *script = drill_parse(text, len, &err);
    free(text);
    if (!script) {
        not_a_script(s, path, &err);
        return;
    }
    if (s->opt->check)
        well_formed(s, path, script);
    else if (drill_record_open(&s->record))
        run_psns(s, path, script);
    else
        s->unwritable = true;
    drill_free(script);
}

static bool go_on(const struct session *s)
{
    return !cli_stop && !s->unwritable;
}

static int not_hidden(const struct dirent *d)
{
    return d->d_name[0] != '.';
}

static bool is_script_name(const char *path)
{
    size_t n = strlen(path);
    return n > 6 && !strcmp(path + n - 6, ".drill");
}

static void run_path(struct session *s, const char *path, unsigned depth)
{
    struct dirent **list;
    struct stat st;
    if (strcmp(path, "-") == 0 || stat(path, &st) < 0 || !S_ISDIR(st.st_mode)) {
        if (!depth || is_script_name(path)) /* only some files of a directory */
            run_file(s, path);
        return;
    }
    int n = depth < DEPTH_MAX ? scandir(path, &list, not_hidden, alphasort) : -1;
    if (n < 0) {
        cli_errno(depth < DEPTH_MAX ? -errno : -ELOOP, "%s", path);
        s->wrong++;
        return;
    }
    unsigned before = s->pass + s->fail + s->wrong + s->skip;
    for (int i = 0; i < n; i++) {
        char *inner = NULL;
        if (go_on(s) && asprintf(&inner, "%s/%s", path, list[i]->d_name) > 0)
            run_path(s, inner, depth + 1);
        free(inner);
        free(list[i]);
    }
    free(list);
    if (!depth && before == s->pass + s->fail + s->wrong + s->skip && go_on(s)) {
        cli_error("%s: no script *.drill there", path);
        s->wrong++;
    }
}

static int summary(const struct session *s)
{
    if (s->opt->json) {
        cli_json(json_pack("{s:s, s:i, s:i, s:i, s:i, s:I, s:I}", "type", "summary", "pass",
                           (int)s->pass, "fail", (int)s->fail, "wrong", (int)s->wrong, "skip",
                           (int)s->skip, "packets", (json_int_t)s->packets, "checks",
                           (json_int_t)s->checks));
    } else if (s->opt->check) {
        printf("%u well formed, %u not\n", s->pass, s->wrong);
    } else {
        printf("%u passed, %u failed", s->pass, s->fail);
        if (s->wrong)
            printf(", %u could not be run", s->wrong);
        if (s->skip)
            printf(", %u skipped", s->skip);
        printf(" (%" PRIu64 " packet%s, %" PRIu64 " check%s)\n", s->packets,
               s->packets == 1 ? "" : "s", s->checks, s->checks == 1 ? "" : "s");
    }
    return s->wrong || cli_stop ? CLI_USAGE : s->fail ? CLI_FAIL : CLI_OK;
}

/* ---- the wire ---- */

static int take_addr(const char *option, const char *text, struct wire_addr *out)
{
    if (wire_addr_parse(text, out) == 0)
        return 0;
    cli_error("%s: '%s' is not an IP address", option, text);
    return -EINVAL;
}

static bool known_server(const char *name)
{
    static const char *const names[] = {DRILL_TARGET, "rping", "ucmatose"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (!strcmp(name, names[i]))
            return true;
    cli_error("--server: '%s' is none of %s, %s, %s", name, names[0], names[1], names[2]);
    return false;
}

/* Open the wire if the options name one. CLI_*, with a message. */
static int open_wire(struct session *s)
{
    struct drill_host_params p = s->opt->host;
    char text[64], err[512];
    uint64_t prefix;
    if (!p.port && !s->opt->addr && !s->opt->peer)
        return CLI_OK;
    if (!p.port || !s->opt->addr || !s->opt->peer) {
        cli_error("--port, --addr and --peer belong together");
        return CLI_USAGE;
    }
    const char *slash = strchr(s->opt->addr, '/');
    snprintf(text, sizeof(text), "%.*s", (int)(slash ? slash - s->opt->addr : 63), s->opt->addr);
    if (take_addr("--addr", text, &p.addr) < 0)
        return CLI_USAGE;
    bool v4 = wire_addr_is_v4(&p.addr);
    prefix = v4 ? 24 : 64;
    if (slash && cli_number("--addr", slash + 1, 0, v4 ? 32 : 128, &prefix) < 0)
        return CLI_USAGE;
    p.prefix = (unsigned)prefix;
    p.service = SERVICE;
    if (cli_host(s->opt->peer, text, sizeof(text), &p.service) < 0 ||
        take_addr("--peer", text, &p.peer) < 0)
        return CLI_USAGE;
    if (wire_addr_is_v4(&p.peer) != v4) {
        cli_error("--addr and --peer are of different IP versions");
        return CLI_USAGE;
    }
    if (io_check(p.port, err, sizeof(err)) < 0) {
        cli_error("--port %s: %s", p.port, err);
        return CLI_USAGE;
    }
    int rc = drill_host_open(&p, &s->host, &s->wire, err, sizeof(err));
    if (rc < 0)
        cli_error("--port %s: %s", p.port, *err ? err : strerror(-rc));
    return rc == 0 ? CLI_OK : rc == -EINVAL ? CLI_USAGE : CLI_FAIL;
}

/* Take one of our own options and its value. 0; -1 with a message; 1 = another option. */
static int take(void *arg, int c, char *value)
{
    struct options *o = arg;
    uint64_t v;
    switch (c) {
    case 'p':
        if (cli_number("--psn", value, 0, 0xFFFFFF, &v) < 0)
            return -1;
        o->psn = (int64_t)v;
        return 0;
    case '6':
        o->ipv6 = true;
        return 0;
    case 'k':
        o->check = true;
        return 0;
    case 'r':
        o->record = value;
        return 0;
    case 'v':
        o->verbose = true;
        return 0;
    case 'j':
        o->json = true;
        return 0;
    case 'P':
        o->host.port = value;
        return 0;
    case 'A':
        o->addr = value;
        return 0;
    case 'R':
        o->peer = value;
        return 0;
    case 'E':
        o->host.server = value;
        return known_server(value) ? 0 : -1;
    default:
        return 1;
    }
}

static int run(int argc, char **argv)
{
    static const struct option options[] = {CLI_HELP,
                                            {"psn", required_argument, NULL, 'p'},
                                            {"ipv6", no_argument, NULL, '6'},
                                            {"check", no_argument, NULL, 'k'},
                                            {"record", required_argument, NULL, 'r'},
                                            {"verbose", no_argument, NULL, 'v'},
                                            {"json", no_argument, NULL, 'j'},
                                            {"port", required_argument, NULL, 'P'},
                                            {"addr", required_argument, NULL, 'A'},
                                            {"peer", required_argument, NULL, 'R'},
                                            {"server", required_argument, NULL, 'E'},
                                            {0}};
    struct options o = {.psn = -1, .host.server = DRILL_TARGET};
    struct session s = {.opt = &o};
    int status = cli_options(argc, argv, &cmd_drill, "hp:6kr:v", options, take, &o);
    if (status != CLI_GO_ON)
        return status;
    if (cli_operands(argc, argv, 1, INT_MAX, "a script") != CLI_OK)
        return CLI_USAGE;
    for (int i = optind; o.record && i < argc; i++)
        if (cli_same_file(argv[i], o.record)) {
            cli_error("--record %s: that is a script", o.record);
            return CLI_USAGE;
        }
    s.record.path = o.record;
    cli_catch_signals();
    status = open_wire(&s);
    if (status != CLI_OK)
        return status;
    for (int i = optind; i < argc && go_on(&s); i++)
        run_path(&s, argv[i], 0);
    int rc = drill_record_close(&s.record);
    drill_host_close(s.host);
    if (s.unwritable)
        return CLI_USAGE;
    status = summary(&s);
    return rc < 0 && status == CLI_OK ? CLI_FAIL : status;
}

const struct cli_command cmd_drill = {
    "drill", "run packet scripts: packets in, packets expected out", help, run};
