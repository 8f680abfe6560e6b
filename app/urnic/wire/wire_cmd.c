/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `urnic wire`: passes frames between two ports, and applies fault rules to them.
 */
#include "wire_cmd.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "cli.h"
#include "rulefile.h"

static const char help[] = {
#include "help_wire.inc"
};

/* ---- rules ---- */

/* 0, or -1 with a message. */
static int add_rule(struct wire_job *j, const char *text)
{
    char *more;
    if (asprintf(&more, "%s%s\n", j->rules ? j->rules : "", text) < 0) {
        cli_error("--rule: %s", strerror(ENOMEM));
        return -1;
    }
    free(j->rules);
    j->rules = more;
    return 0;
}

/* CLI_*. */
static int parse_rules(struct wire_job *j)
{
    struct fault_error err = {0};
    if (j->rules_file && j->rules) {
        cli_error("--rules and --rule: one or the other");
        return CLI_USAGE;
    }
    if (!j->rules_file && !j->rules)
        return CLI_OK;
    j->fault = j->rules_file ? rulefile_read(j->rules_file, FAULT_TEXT_MAX, j->seed, NULL)
                             : fault_parse(j->rules, strlen(j->rules), j->seed, &err);
    if (j->fault)
        return CLI_OK;
    if (j->rules)
        cli_error("--rule %u, column %u: %s", err.line, err.column, err.text);
    return CLI_USAGE;
}

static unsigned obey(void *arg, enum fault_dir dir, uint8_t *frame, uint32_t len, uint64_t now,
                     struct fault_out *out)
{
    return fault_apply(arg, dir, frame, len, now, out);
}

static unsigned watch(void *arg, enum fault_dir dir, uint8_t *frame, uint32_t len, uint64_t now,
                      struct fault_out *out)
{
    struct wire_job *j = arg;
    unsigned bits = 0;
    out->len = len;
    out->flow = 0;
    wire_capture_before(&j->capture, frame, len);
    if (j->fault)
        bits = fault_apply(j->fault, dir, frame, len, now, out);
    wire_capture_after(&j->capture, dir, len, now, bits);
    return bits;
}

/* ---- running ---- */

static void forward(struct wire_job *j)
{
    struct wire_ticker t = {.on = !j->quiet && isatty(STDERR_FILENO), .at = j->start};
    uint64_t end = j->ns ? j->start + j->ns : UINT64_MAX;
    uint64_t now = j->start;
    while (!cli_stop && now < end) {
        if (bump_round(&j->bump, now) == 0) {
            uint64_t until = t.on && t.at + 1000000000u < end ? t.at + 1000000000u : end;
            bump_wait(&j->bump, now, until);
        }
        now = cli_now();
        wire_tick(&t, j, now);
    }
    if (t.drawn)
        fputs("\r\033[K", stderr);
}

static void forward_by_rules(struct wire_job *j)
{
    j->bump.pace.never = j->poll;
    j->bump.judge = j->capture.w ? watch : j->fault ? obey : NULL;
    j->bump.arg = j->capture.w ? (void *)j : (void *)j->fault;
    j->start = cli_now();
    if (!j->quiet)
        fprintf(stderr, "forwarding %s <-> %s\n", j->port[0], j->port[1]);
    forward(j);
    double seconds = (double)(cli_now() - j->start) / 1e9;
    if (!j->quiet)
        wire_summary(j, seconds);
    if (j->json)
        wire_json(j, seconds);
}

static int test(struct wire_job *j)
{
    j->test.quiet = j->quiet;
    j->test.seed = j->seed;
    return suite_run(&j->bump, &j->test, j->capture.w ? &j->capture : NULL, j->json);
}

static int wire(struct wire_job *j)
{
    char err[512] = "";
    for (unsigned i = 0; i < BUMP_DIRS; i++) {
        if (io_check(j->port[i], err, sizeof(err)) < 0) {
            cli_error("%s", err);
            return CLI_USAGE;
        }
    }
    int rc = bump_open(&j->bump, j->port[0], j->port[1], (uint32_t)j->mtu, (uint32_t)j->queue, err,
                       sizeof(err));

    if (rc) {
        cli_error("%s", *err ? err : strerror(-rc));
        return rc == -EINVAL || rc == -EMSGSIZE ? CLI_USAGE : CLI_FAIL;
    }
    int status = CLI_OK;
    if (j->capture_file && (rc = wire_capture_open(&j->capture, j->capture_file, &j->bump)) != 0) {
        cli_error("%s: %s", j->capture_file, strerror(-rc));
        status = CLI_FAIL;
    }
    if (status == CLI_OK) {
        prctl(PR_SET_TIMERSLACK, 1ul); /* otherwise delayed frames leave 50 us late */
        cli_catch_signals();
        if (j->suite)
            status = test(j);
        else
            forward_by_rules(j);
    }
    if ((rc = wire_capture_close(&j->capture)) != 0) {
        cli_error("%s: %s", j->capture_file, strerror(-rc));
        status = CLI_FAIL;
    }
    bump_close(&j->bump);
    return status;
}

static int check(const struct wire_job *j)
{
    for (unsigned i = 0; j->fault && i < fault_rules(j->fault); i++)
        printf("%s\n", fault_describe(j->fault, i));
    return CLI_OK;
}

/* ---- the command line ---- */

/* Take one of our own options and its value. 0; -1 with a message; 1 = another option. */
static int take(void *arg, int c, char *value)
{
    struct wire_job *j = arg;
    switch (c) {
    case 'r':
        j->rules_file = value;
        return 0;
    case 'R':
        return add_rule(j, value);
    case 's':
        return cli_number("--seed", value, 0, UINT64_MAX, &j->seed);
    case 'C':
        j->check = true;
        return 0;
    case 'm':
        return cli_number("--mtu", value, 576, IO_FRAME_MAX - 18, &j->mtu);
    case 'Q':
        return cli_number("--queue", value, 1, 1u << 20, &j->queue);
    case 'P':
        j->poll = true;
        return 0;
    case 'f':
        return cli_seconds("--for", value, &j->ns);
    case 'c':
        j->capture_file = value;
        return 0;
    case 'j':
        j->json = true;
        return 0;
    case 'q':
        j->quiet = true;
        return 0;
    case 'T':
        j->suite = true;
        return 0;
    default:
        if (c != SUITE_VERBOSE && c < SUITE_OPTION_FIRST)
            return 1;
        return suite_option(c, value, &j->test) == CLI_OK ? 0 : -1;
    }
}

/* Check the options together, and the ports. CLI_*. */
static int complete(struct wire_job *j, int argc, char **argv)
{
    if (j->test.list)
        return CLI_OK;
    if (argc - optind != 2 && !j->check) {
        cli_error("two ports are needed: urnic wire PORT_A PORT_B");
        return CLI_USAGE;
    }
    for (int i = 0; i < 2 && optind + i < argc; i++)
        j->port[i] = argv[optind + i];
    if (j->suite && (j->rules_file || j->rules || j->ns)) {
        cli_error("--suite has rules and an end of its own: without --rules, --rule and --for");
        return CLI_USAGE;
    }
    return j->suite ? suite_options_done(&j->test) : parse_rules(j);
}

/* CLI_*; -1 = the manual was printed. */
static int options(struct wire_job *j, int argc, char **argv)
{
    static const struct option list[] = {{"rules", required_argument, NULL, 'r'},
                                         {"rule", required_argument, NULL, 'R'},
                                         {"seed", required_argument, NULL, 's'},
                                         {"check", no_argument, NULL, 'C'},
                                         {"mtu", required_argument, NULL, 'm'},
                                         {"queue", required_argument, NULL, 'Q'},
                                         {"poll", no_argument, NULL, 'P'},
                                         {"for", required_argument, NULL, 'f'},
                                         {"capture", required_argument, NULL, 'c'},
                                         {"json", no_argument, NULL, 'j'},
                                         {"quiet", no_argument, NULL, 'q'},
                                         {"suite", no_argument, NULL, 'T'},
                                         SUITE_OPTIONS,
                                         CLI_HELP,
                                         {0}};
    int status = cli_options(argc, argv, &cmd_wire, "r:R:c:qvh", list, take, j);
    if (status != CLI_GO_ON)
        return status == CLI_OK ? -1 : status;
    return complete(j, argc, argv);
}

/* List the cases of the suite. */
static void list_cases(bool json)
{
    for (unsigned i = 0; i < suite_ncases; i++) {
        const struct suite_case *c = &suite_cases[i];

        if (json)
            cli_json(json_pack("{ss ss ss}", "case", c->name, "rule", c->rule, "what", c->what));
        else
            printf("%-14s %-8s %s\n", c->name, c->rule, c->what);
    }
}

static int run(int argc, char **argv)
{
    struct wire_job j = {.queue = BUMP_QUEUE_DEFAULT, .seed = 1};
    suite_options_init(&j.test);
    int status = options(&j, argc, argv);
    if (status == CLI_OK && j.test.list)
        list_cases(j.json);
    else if (status == CLI_OK)
        status = j.check ? check(&j) : wire(&j);
    suite_options_free(&j.test);
    fault_free(j.fault);
    free(j.rules);
    return status < 0 ? CLI_OK : status;
}

const struct cli_command cmd_wire = {"wire", "a bump in the wire between two ports, with faults",
                                     help, run};
