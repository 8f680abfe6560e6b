/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `urnic wire`: a bump in the wire between two ports.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "bump.h"
#include "cli.h"

static const char help[] =
    "usage: urnic wire [OPTION ...] PORT_A PORT_B\n\n"
    "A bump in the wire: what comes in at one port goes out at the other, both ways, unchanged "
    "and\n"
    "in order. Neither end can tell that it is there: it has no address, answers nothing and "
    "keeps\n"
    "all MAC addresses; ports that filter by address are made promiscuous.\n\n"
    "A port is written as for urnicd: dpdk:0000:01:00.0, dpdk:net_af_packet0,iface=eth1,\n"
    "memif:/run/a.sock,role=server. doc/wire.md shows how to put it between two machines.\n\n"
    "      --mtu N            octets of IP that must get through (default: what the ports choose;\n"
    "                         4200 lets path MTU 4096 through and keeps buffers in the cache)\n"
    "      --queue N          frames kept back at most, in each direction (default 4096)\n"
    "      --for SECONDS      end after this time (default: at Ctrl-C)\n"
    "      --poll             never sleep: a core for the least delay (default: sleep when idle)\n"
    "      --json             one JSON object at the end, on stdout: ports, directions\n"
    "  -q, --quiet            no line each second, no summary\n"
    "  -h, --help             this text\n\n"
    "While it runs, a terminal shows rates. Ctrl-C ends it and prints what went through. A frame "
    "is\n"
    "lost here only where the summary says so: for a link that is down, for a port that sends no\n"
    "frames that long.\n\n"
    "Exit status: 0 it ran to its end, 1 a port failed, 2 the command line is wrong.\n\n"
    "Examples:\n"
    "  urnic wire dpdk:0000:01:00.0 dpdk:0000:01:00.1\n"
    "  urnic wire --for 10 --json memif:/tmp/a.sock,role=client memif:/tmp/b.sock,role=client\n";

struct job {
    const char *port[BUMP_DIRS];
    uint64_t mtu, queue, ns;
    bool poll, json, quiet;
    struct bump bump;
    uint64_t begun;
};

static const char *const dir_names[BUMP_DIRS] = {"A>B", "B>A"};

/* ---- what is shown --------------------------------------------------------------------------- */

struct ticker {
    uint64_t at; /* of the last line; ns */
    uint64_t frames[BUMP_DIRS], octets[BUMP_DIRS];
    bool on, drawn;
};

/* Once a second, on a terminal: rates of that second. */
static void tick(struct ticker *t, const struct job *j, uint64_t now)
{
    if (!t->on || now - t->at < 1000000000u)
        return;
    double s = (double)(now - t->at) / 1e9;
    fprintf(stderr, "\r%5.0f s", (double)(now - j->begun) / 1e9);
    for (unsigned d = 0; d < BUMP_DIRS; d++) {
        const struct bump_counters *c = &j->bump.half[d].count;
        char rate[32];
        cli_fmt_rate((double)(c->out_octets - t->octets[d]) * 8 / s, rate, sizeof rate);
        fprintf(stderr, "  %s %.2f M/s %s", dir_names[d],
                (double)(c->forwarded - t->frames[d]) / s / 1e6, rate);
        t->frames[d] = c->forwarded;
        t->octets[d] = c->out_octets;
    }
    fprintf(stderr, "  kept %u%s\033[K", bump_kept_now(&j->bump),
            bump_up(&j->bump) ? "" : "  LINK DOWN");
    fflush(stderr);
    t->at = now;
    t->drawn = true;
}

static void summary(const struct job *j, double seconds)
{
    fprintf(stderr, "%.1f s\n", seconds);
    for (unsigned d = 0; d < BUMP_DIRS; d++) {
        const struct bump_half *h = &j->bump.half[d];
        const struct bump_counters *c = &h->count;
        const struct {
            const char *what;
            uint64_t n;
        } row[] = {
            {"dropped", c->dropped},     {"copied", c->copied},
            {"injected", c->injected},   {"delayed", c->delayed},
            {"reordered", c->reordered}, {"kept still", bump_queue_len(&h->queue)},
            {"no link", c->no_link},     {"too long", c->oversize},
            {"queue full", c->no_room},
        };
        char octets[32];
        fprintf(stderr, "  %s  %llu frames in, %llu out (%s)", dir_names[d],
                (unsigned long long)c->received, (unsigned long long)c->forwarded,
                cli_fmt_octets(c->out_octets, octets, sizeof octets));
        for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++)
            if (row[i].n)
                fprintf(stderr, ", %s %llu", row[i].what, (unsigned long long)row[i].n);
        fputc('\n', stderr);
    }
}

static json_t *port_json(struct io_port *port)
{
    struct io_stats s;
    struct io_link link;

    port->ops->stats(port, &s);
    port->ops->link(port, &link);
    return json_pack("{ss sb si sI sI sI sI sI sI sI sI}", "port", port->spec, "up", link.up,
                     "frame_max", (int)port->caps.frame_max, "rx_frames", (json_int_t)s.rx_frames,
                     "rx_bytes", (json_int_t)s.rx_bytes, "tx_frames", (json_int_t)s.tx_frames,
                     "tx_bytes", (json_int_t)s.tx_bytes, "rx_drop", (json_int_t)s.rx_drop,
                     "rx_oversize", (json_int_t)s.rx_oversize, "tx_drop", (json_int_t)s.tx_drop,
                     "link_changes", (json_int_t)link.changes);
}

static json_t *dir_json(const struct bump_half *h, const char *name)
{
    const struct bump_counters *c = &h->count;

    return json_pack("{ss sI sI sI sI sI sI sI sI sI sI sI sI sI}", "direction", name, "received",
                     (json_int_t)c->received, "received_bytes", (json_int_t)c->octets, "forwarded",
                     (json_int_t)c->forwarded, "forwarded_bytes", (json_int_t)c->out_octets,
                     "dropped", (json_int_t)c->dropped, "copied", (json_int_t)c->copied, "injected",
                     (json_int_t)c->injected, "delayed", (json_int_t)c->delayed, "reordered",
                     (json_int_t)c->reordered, "kept", (json_int_t)bump_queue_len(&h->queue),
                     "no_link", (json_int_t)c->no_link, "oversize", (json_int_t)c->oversize,
                     "no_room", (json_int_t)c->no_room);
}

static int print_json(const struct job *j, double seconds)
{
    json_t *o = json_pack("{ss sf s[oo] s[oo]}", "type", "wire", "seconds", seconds, "ports",
                          port_json(j->bump.port[0]), port_json(j->bump.port[1]), "directions",
                          dir_json(&j->bump.half[BUMP_AB], dir_names[BUMP_AB]),
                          dir_json(&j->bump.half[BUMP_BA], dir_names[BUMP_BA]));
    int rc = o ? json_dumpf(o, stdout, JSON_COMPACT) : -1;

    json_decref(o);
    putchar('\n');
    return rc || fflush(stdout) ? CLI_FAIL : CLI_OK;
}

/* ---- running --------------------------------------------------------------------------------- */

static void forward(struct job *j)
{
    struct ticker t = {.on = !j->quiet && isatty(STDERR_FILENO), .at = j->begun};
    uint64_t end = j->ns ? j->begun + j->ns : UINT64_MAX;
    uint64_t now = j->begun;

    while (!cli_stop && now < end) {
        if (bump_round(&j->bump, now) == 0) {
            uint64_t until = t.on && t.at + 1000000000u < end ? t.at + 1000000000u : end;
            bump_wait(&j->bump, now, until);
        }
        now = cli_now();
        tick(&t, j, now);
    }
    if (t.drawn)
        fputs("\r\033[K", stderr);
}

static int wire(struct job *j)
{
    char err[512] = "";
    int rc = bump_open(&j->bump, j->port[0], j->port[1], (uint32_t)j->mtu, (uint32_t)j->queue, err,
                       sizeof err);

    if (rc) {
        cli_error("%s", *err ? err : strerror(-rc));
        return rc == -EINVAL || rc == -EMSGSIZE ? CLI_USAGE : CLI_FAIL;
    }
    j->bump.poll = j->poll;
    prctl(PR_SET_TIMERSLACK, 1ul); /* or what is delayed goes 50 us late */
    cli_catch_signals();
    j->begun = cli_now();
    if (!j->quiet)
        fprintf(stderr, "forwarding %s <-> %s\n", j->port[0], j->port[1]);
    forward(j);
    double seconds = (double)(cli_now() - j->begun) / 1e9;
    if (!j->quiet)
        summary(j, seconds);
    int status = j->json ? print_json(j, seconds) : CLI_OK;
    bump_close(&j->bump);
    return status;
}

/* ---- the command line ------------------------------------------------------------------------ */

static int run(int argc, char **argv)
{
    static const struct option options[] = {{"mtu", required_argument, NULL, 'm'},
                                            {"queue", required_argument, NULL, 'Q'},
                                            {"for", required_argument, NULL, 'f'},
                                            {"poll", no_argument, NULL, 'P'},
                                            {"json", no_argument, NULL, 'j'},
                                            {"quiet", no_argument, NULL, 'q'},
                                            CLI_OPTIONS,
                                            {0}};
    struct job j = {.queue = BUMP_QUEUE_DEFAULT};
    int c, bad = 0, status;

    while (!bad && (c = getopt_long(argc, argv, "qh", options, NULL)) != -1) {
        switch (c) {
        case 'm':
            bad = cli_number("--mtu", optarg, 576, IO_FRAME_MAX - 18, &j.mtu);
            break;
        case 'Q':
            bad = cli_number("--queue", optarg, 1, 1u << 20, &j.queue);
            break;
        case 'f':
            bad = cli_seconds("--for", optarg, &j.ns);
            break;
        case 'P':
            j.poll = true;
            break;
        case 'j':
            j.json = true;
            break;
        case 'q':
            j.quiet = true;
            break;
        default:
            if (cli_option(c, &cmd_wire, &status))
                return status;
        }
    }
    if (bad)
        return CLI_USAGE;
    if (argc - optind != 2) {
        cli_error("two ports are needed: urnic wire PORT_A PORT_B");
        return CLI_USAGE;
    }
    j.port[0] = argv[optind];
    j.port[1] = argv[optind + 1];
    return wire(&j);
}

const struct cli_command cmd_wire = {"wire", "a bump in the wire between two ports", help, run};
