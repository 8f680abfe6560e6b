/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `urnic wire`: a bump in the wire between two ports, with faults by rules.
 */
#include "wire_cmd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "cli.h"

static const char help[] =
    "usage: urnic wire [OPTION ...] PORT_A PORT_B\n"
    "       urnic wire --suite [OPTION ...] PORT_A PORT_B\n\n"
    "A bump in the wire: what comes in at one port goes out at the other, both ways, unchanged "
    "and\n"
    "in order, but for what fault rules do to it. Neither end can tell that it is there: it has "
    "no\n"
    "address, answers nothing and keeps all MAC addresses; ports that filter by address are made\n"
    "promiscuous. With two ordinary NICs it impairs hardware RoCE, which the hosts can't.\n\n"
    "A port is written as for urnicd: dpdk:0000:01:00.0, dpdk:net_af_packet0,iface=eth1,\n"
    "memif:/run/a.sock,role=server. doc/wire.md shows how to put it between two machines.\n\n"
    "Faults:\n"
    "  -r, --rules FILE       fault rules, one a line (doc/faults.md has the language)\n"
    "  -R, --rule TEXT        one rule; may be there several times, instead of --rules\n"
    "      --seed N           of the rules' dice (default 1): same seed, same frames, same faults\n"
    "      --check            read the rules, say what they are, and end; no ports needed\n"
    "Forwarding:\n"
    "      --mtu N            octets of IP that must get through (default: what the ports choose;\n"
    "                         4200 lets path MTU 4096 through and keeps buffers in the cache)\n"
    "      --queue N          frames kept back at most, in each direction (default 4096)\n"
    "      --poll             never sleep: a core for the least delay (default: sleep when idle)\n"
    "      --for SECONDS      end after this time (default: at Ctrl-C)\n"
    "Output:\n"
    "  -c, --capture FILE     pcapng of all frames as they came in; a comment says what was done\n"
    "      --json             one JSON object at the end, on stdout: ports, directions, rules\n"
    "  -q, --quiet            no line each second, no summary\n"
    "  -h, --help             this text\n\n"
    "The test suite: puts the device behind PORT_B to the test with a tester behind PORT_A. Case "
    "by\n"
    "case it loads rules, has commands make traffic, watches the packets, and prints a report "
    "card:\n"
    "rule of doc/conformance.md, PASS, FAIL or UNTESTED, and what was measured.\n"
    "      --suite            do that\n"
    "      --end-a SOCKET,IP  the tester is an urnicd with this control socket and address\n"
    "      --end-b SOCKET,IP  so is the device: then `urnic perf` makes the traffic\n"
    "      --server-b CMD     else: run by `sh -c` before a client at side A, ended after it; may\n"
    "                         use ssh; without it the server is taken to run already\n"
    "      --client-a CMD     makes the traffic. Its environment asks for OP (write, read), SIZE,\n"
    "                         COUNT and QPS; what it does not heed leaves rules untested\n"
    "      --server-a CMD, --client-b CMD   the same the other way round: for the device's "
    "requests\n"
    "      --only TEXT        cases with this in their name; --list says which there are\n"
    "      --timeout T        the device's ACK timeout, 4.096 us * 2^T, where no CM message says "
    "it\n"
    "      --retry N          its retry count, likewise\n"
    "      --cnp-interval US  its least time between CNPs, microseconds (default 50; 0 unknown)\n"
    "      --settle SECONDS   for a server that says nothing (default 1)\n"
    "      --limit SECONDS    for each case (default 10)\n"
    "  -v, --verbose          show what the commands said\n\n"
    "In rules, a->b is what comes in at PORT_A. While it runs, a terminal shows rates; Ctrl-C "
    "ends\n"
    "it and prints what went through and what each rule matched and did. Besides by rules a frame\n"
    "is lost only where the summary says so: no link, too long for the other port.\n\n"
    "Exit status: 0 it ran to its end, with --suite: no rule was broken; 1 a port or a file "
    "failed,\n"
    "a rule of the report card is FAIL; 2 the command line or a fault rule is wrong.\n\n"
    "Examples:\n"
    "  urnic wire dpdk:0000:01:00.0 dpdk:0000:01:00.1 --rule 'drop conn 2 psn +4 first-tx'\n"
    "  urnic wire --rules lossy.rules --for 10 --json --capture seen.pcapng \\\n"
    "      memif:/tmp/a.sock,role=client memif:/tmp/b.sock,role=client\n"
    "  urnic wire --suite dpdk:0000:01:00.0 dpdk:0000:01:00.1 --client-a 'urnic rping -s 60000\\\n"
    "      -C 2 10.0.0.2' --server-b 'ssh dut rping -s' --cnp-interval 4\n";

/* ---- rules ---- */

static int read_rules(struct wire_job *j)
{
    FILE *f = fopen(j->rules_file, "r");

    if (!f) {
        cli_error("%s: %s", j->rules_file, strerror(errno));
        return CLI_USAGE;
    }
    j->rules = malloc(FAULT_TEXT_MAX + 1);
    j->rules_len = j->rules ? fread(j->rules, 1, FAULT_TEXT_MAX + 1, f) : 0;
    bool bad = !j->rules || ferror(f) || j->rules_len > FAULT_TEXT_MAX;
    fclose(f);
    if (bad)
        cli_error("%s: it can't be read, or is larger than %u octets", j->rules_file,
                  FAULT_TEXT_MAX);
    return bad ? CLI_USAGE : CLI_OK;
}

static int add_rule(struct wire_job *j, const char *text)
{
    size_t len = strlen(text);
    char *more = realloc(j->rules, j->rules_len + len + 1);

    if (!more)
        return CLI_FAIL;
    memcpy(more + j->rules_len, text, len);
    more[j->rules_len + len] = '\n';
    j->rules = more;
    j->rules_len += len + 1;
    return CLI_OK;
}

static int parse_rules(struct wire_job *j)
{
    struct fault_error err;

    if (j->rules_file && j->rules) {
        cli_error("--rules and --rule: one or the other");
        return CLI_USAGE;
    }
    if (j->rules_file && read_rules(j))
        return CLI_USAGE;
    if (!j->rules)
        return CLI_OK;
    j->fault = fault_parse(j->rules, j->rules_len, j->seed, &err);
    if (j->fault)
        return CLI_OK;
    if (j->rules_file)
        fprintf(stderr, "%s:%u:%u: %s\n", j->rules_file, err.line, err.column, err.text);
    else
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
    struct wire_ticker t = {.on = !j->quiet && isatty(STDERR_FILENO), .at = j->begun};
    uint64_t end = j->ns ? j->begun + j->ns : UINT64_MAX;
    uint64_t now = j->begun;

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

static int wire(struct wire_job *j)
{
    char err[512] = "";
    int rc = bump_open(&j->bump, j->port[0], j->port[1], (uint32_t)j->mtu, (uint32_t)j->queue, err,
                       sizeof err);

    if (rc) {
        cli_error("%s", *err ? err : strerror(-rc));
        return rc == -EINVAL || rc == -EMSGSIZE || rc == -ENODEV ? CLI_USAGE : CLI_FAIL;
    }
    int status = CLI_OK;
    if (j->capture_file && (rc = wire_capture_open(&j->capture, j->capture_file, &j->bump)) != 0) {
        cli_error("%s: %s", j->capture_file, strerror(-rc));
        status = CLI_FAIL;
    }
    if (status == CLI_OK && j->suite) {
        prctl(PR_SET_TIMERSLACK, 1ul);
        cli_catch_signals();
        j->test.quiet = j->quiet;
        j->test.seed = j->seed;
        status = suite_run(&j->bump, &j->test, j->capture.w ? &j->capture : NULL, j->json);
    } else if (status == CLI_OK) {
        j->bump.poll = j->poll;
        j->bump.judge = j->capture.w ? watch : j->fault ? obey : NULL;
        j->bump.arg = j->capture.w ? (void *)j : (void *)j->fault;
        prctl(PR_SET_TIMERSLACK, 1ul); /* or what is delayed goes 50 us late */
        cli_catch_signals();
        j->begun = cli_now();
        if (!j->quiet)
            fprintf(stderr, "forwarding %s <-> %s\n", j->port[0], j->port[1]);
        forward(j);
        double seconds = (double)(cli_now() - j->begun) / 1e9;
        if (!j->quiet)
            wire_summary(j, seconds);
        if (j->json)
            wire_json(j, seconds);
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
                                         CLI_OPTIONS,
                                         {0}};
    int c, bad = 0, status;

    while (!bad && (c = getopt_long(argc, argv, "r:R:c:qvh", list, NULL)) != -1) {
        switch (c) {
        case 'r':
            j->rules_file = optarg;
            break;
        case 'R':
            bad = add_rule(j, optarg);
            break;
        case 's':
            bad = cli_number("--seed", optarg, 0, UINT64_MAX, &j->seed);
            break;
        case 'C':
            j->check = true;
            break;
        case 'm':
            bad = cli_number("--mtu", optarg, 576, IO_FRAME_MAX - 18, &j->mtu);
            break;
        case 'Q':
            bad = cli_number("--queue", optarg, 1, 1u << 20, &j->queue);
            break;
        case 'P':
            j->poll = true;
            break;
        case 'f':
            bad = cli_seconds("--for", optarg, &j->ns);
            break;
        case 'c':
            j->capture_file = optarg;
            break;
        case 'j':
            j->json = true;
            break;
        case 'q':
            j->quiet = true;
            break;
        case 'T':
            j->suite = true;
            break;
        default:
            if (c == 'v' || c >= SUITE_OPTION_FIRST)
                bad = suite_option(c, optarg, &j->test);
            else if (cli_option(c, &cmd_wire, &status))
                return status == CLI_OK ? -1 : status;
        }
    }
    if (bad)
        return CLI_USAGE;
    if (j->test.list)
        return CLI_OK;
    if (argc - optind != 2 && !j->check) {
        cli_error("two ports are needed: urnic wire PORT_A PORT_B");
        return CLI_USAGE;
    }
    for (int i = 0; i < 2 && optind + i < argc; i++)
        j->port[i] = argv[optind + i];
    if (j->suite && (j->rules_file || j->rules || j->ns)) {
        cli_error("--suite has rules and an end of its own; --rules and --for don't go with it");
        return CLI_USAGE;
    }
    return j->suite ? suite_options_done(&j->test) : parse_rules(j);
}

static int run(int argc, char **argv)
{
    struct wire_job j = {.queue = BUMP_QUEUE_DEFAULT, .seed = 1};
    suite_options_init(&j.test);
    int status = options(&j, argc, argv);
    if (status == CLI_OK && j.test.list)
        suite_list();
    else if (status == CLI_OK)
        status = j.check ? check(&j) : wire(&j);
    suite_options_free(&j.test);
    fault_free(j.fault);
    free(j.rules);
    return status < 0 ? CLI_OK : status;
}

const struct cli_command cmd_wire = {"wire", "a bump in the wire between two ports, with faults",
                                     help, run};
