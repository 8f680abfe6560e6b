/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Runs the cases: rules into the bump, a server and a client outside, the packets into a trace, the
 * checks over it.
 */
#include "suite.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"
#include "suite_child.h"

#define MS       1000000ull
#define LOOK_NS  (200000ull)  /* longest sleep, and so the precision of a packet's time */
#define LINK_NS  (10000 * MS) /* longest wait for both links to come up */
#define GRACE_NS (50 * MS)    /* time for packets in flight after the client has ended */
#define END_NS   (3000 * MS)  /* time for a command to end after a signal */
#define FLOWS    64u

/* The highest PSN that the requester has sent to a queue pair. */
struct sent {
    uint32_t dqpn, highest;
};

struct runner {
    struct bump *bump;
    const struct suite_options *opt;
    const struct suite_case *c;
    struct wire_capture *capture;
    struct suite_trace trace;
    struct suite_card card;
    struct fault *fault;
    struct suite_child server, client;
    struct sent sent[FLOWS];
    unsigned nsent;
    bool rules_off;
    bool client_ok, timed_out;
    uint64_t packets, bad_icrc; /* the device's, in all cases */
};

/* ---- watching ---- */

static bool resent(struct runner *s, const struct suite_pkt *p)
{
    if (p->dir != s->c->dir || !(suite_flags(p) & WIRE_F_REQUEST) ||
        wire_opcodes[p->opcode].service != WIRE_RC)
        return false;
    for (unsigned i = 0; i < s->nsent; i++) {
        struct sent *x = &s->sent[i];
        if (x->dqpn != p->dqpn)
            continue;
        if ((int32_t)((p->psn - x->highest) << 8) <= 0)
            return true;
        x->highest = p->psn;
        return false;
    }
    if (s->nsent < FLOWS)
        s->sent[s->nsent++] = (struct sent){p->dqpn, p->psn};
    return false;
}

static unsigned judge(void *arg, enum fault_dir dir, uint8_t *frame, uint32_t len, uint64_t now,
                      struct fault_out *out)
{
    struct runner *s = arg;
    struct wire_pkt p;
    /* `now` was read before the port: after a preemption in between, the packet would seem
     * early. */
    uint64_t at = cli_now(), waited = at - s->bump->half[dir].since;
    bool bad, roce = suite_trace_read(frame, len, &p, &bad);
    unsigned bits = 0;

    out->len = len;
    out->flow = 0;
    if (s->capture)
        wire_capture_before(s->capture, frame, len);
    if (s->fault && !s->rules_off)
        bits = fault_apply(s->fault, dir, frame, len, now, out);
    if (s->capture)
        wire_capture_after(s->capture, dir, len, at, bits);
    if (!roce)
        return bits;
    const struct suite_pkt head = {.at = at,
                                   .waited = waited < UINT32_MAX ? (uint32_t)waited : UINT32_MAX,
                                   .dir = dir,
                                   .fate = (uint8_t)bits};
    const struct suite_pkt *k = suite_trace_add(&s->trace, &head, frame, &p);
    s->packets += dir == FAULT_BA;
    s->bad_icrc += dir == FAULT_BA && bad;
    if (k && s->c->until_resent && resent(s, k))
        s->rules_off = true;
    return bits;
}

/* ---- moving frames while waiting ---- */

enum goal { NOTHING, LINKS, SERVER_SPEAKS, CLIENT_ENDS, ALL_END };

static bool reached(const struct runner *s, enum goal goal)
{
    switch (goal) {
    case LINKS:
        return bump_up(s->bump);
    case SERVER_SPEAKS:
        return s->server.n || s->server.ended;
    case CLIENT_ENDS:
        return s->client.ended;
    case ALL_END:
        return (!s->server.pid || s->server.ended) && (!s->client.pid || s->client.ended);
    default:
        return false;
    }
}

/* Move frames until the goal is reached (true), or for `ns`, or until a signal (false). */
static bool pump(struct runner *s, enum goal goal, uint64_t ns)
{
    uint64_t now = cli_now(), end = now + ns, look = 0;
    while (now < end && !cli_stop) {
        if (bump_round(s->bump, now) == 0)
            bump_wait(s->bump, now, now + LOOK_NS);
        now = cli_now();
        if (now < look)
            continue;
        look = now + MS;
        suite_child_poll(&s->server);
        suite_child_poll(&s->client);
        if (reached(s, goal))
            return true;
    }
    return false;
}

static void end_commands(struct runner *s)
{
    for (unsigned force = 0; force < 2 && !reached(s, ALL_END); force++) {
        suite_child_kill(&s->client, force);
        suite_child_kill(&s->server, force);
        int stop = cli_stop; /* the commands must end, also after Ctrl-C */
        cli_stop = 0;
        pump(s, ALL_END, END_NS);
        cli_stop |= stop;
    }
    /* Kill the processes that they have left. */
    suite_child_kill(&s->client, true);
    suite_child_kill(&s->server, true);
    suite_child_close(&s->client);
    suite_child_close(&s->server);
}

/* ---- a case ---- */

static void untested(struct runner *s, const char *why, const struct suite_child *child)
{
    char line[80] = "";
    if (child && child->n) { /* last line of its output */
        const char *end = child->said + child->n;
        while (end > child->said && end[-1] == '\n')
            end--;
        const char *begin = end;
        while (begin > child->said && begin[-1] != '\n')
            begin--;
        snprintf(line, sizeof(line), ": %.*s", (int)(end - begin), begin);
    }
    suite_say(&s->card, s->c->rule, SUITE_UNTESTED, "%s%s", why, line);
}

static int start(struct runner *s, struct suite_child *c, const char *command)
{
    char op[32], size[32], count[32], qps[32];
    char *environment[] = {op, size, count, qps, NULL};
    snprintf(op, sizeof(op), "OP=%s", s->c->op);
    snprintf(size, sizeof(size), "SIZE=%u", s->c->size);
    snprintf(count, sizeof(count), "COUNT=%u", s->c->messages);
    snprintf(qps, sizeof(qps), "QPS=%u", s->c->qps);
    int rc = suite_child_start(c, command, environment);
    if (rc)
        cli_error("'%s': %s", command, strerror(-rc));
    return rc;
}

/* Make the traffic of a case. Returns false if there is none to judge. */
static bool traffic(struct runner *s)
{
    const struct suite_options *o = s->opt;
    /* A client on the other side is an alternative: the case depends on the sender only. */
    int from = o->client[s->c->from] ? s->c->from : !s->c->from;

    if (o->server[!from]) {
        if (start(s, &s->server, o->server[!from]))
            return false;
        pump(s, SERVER_SPEAKS, o->settle);
        if (s->server.ended) {
            untested(s, "the server has ended", &s->server);
            return false;
        }
    }
    fault_start(s->fault, cli_now());
    if (start(s, &s->client, o->client[from]))
        return false;
    s->timed_out = !pump(s, CLIENT_ENDS, o->limit);
    s->client_ok = s->client.ended && WIFEXITED(s->client.status) && !WEXITSTATUS(s->client.status);
    pump(s, NOTHING, GRACE_NS);
    return true;
}

static void look(struct runner *s)
{
    struct suite_run r = {.opt = s->opt,
                          .trace = &s->trace,
                          .card = &s->card,
                          .client_ok = s->client_ok,
                          .timed_out = s->timed_out};
    if (s->trace.missed)
        untested(s, "more packets than the suite keeps", NULL);
    else if (!suite_flow_find(&s->trace, s->c->dir, s->c->kinds, &r.flow))
        untested(s,
                 s->c->dir == FAULT_AB ? "no such request came from side A"
                                       : "no such request came from side B",
                 s->client_ok ? NULL : &s->client);
    else
        s->c->check(&r);
}

static int one(struct runner *s)
{
    struct fault_error err;
    suite_trace_clear(&s->trace);
    s->card.test = s->c->name;
    s->nsent = 0;
    s->rules_off = false;
    s->fault = fault_parse(s->c->rules, strlen(s->c->rules), s->opt->seed, &err);
    if (!s->fault) {
        cli_error("%s: column %u: %s", s->c->rules, err.column, err.text);
        return CLI_FAIL;
    }
    if (traffic(s))
        look(s);
    if (s->opt->verbose && s->client.n)
        fprintf(stderr, "--- the client said:\n%s", s->client.said);
    if (s->opt->verbose && s->server.n)
        fprintf(stderr, "--- the server said:\n%s", s->server.said);
    s->rules_off = true; /* commands that end disconnect: move those packets */
    end_commands(s);
    fault_free(s->fault);
    s->fault = NULL;
    return CLI_OK;
}

static int all(struct runner *s)
{
    unsigned ran = 0;
    if (!pump(s, LINKS, LINK_NS)) {
        cli_error("the links did not come up: %s is %s, %s is %s", s->bump->port[0]->spec,
                  s->bump->half[1].out_up ? "up" : "down", s->bump->port[1]->spec,
                  s->bump->half[0].out_up ? "up" : "down");
        return CLI_FAIL;
    }
    for (unsigned i = 0; i < suite_ncases && !cli_stop; i++) {
        s->c = &suite_cases[i];
        if (s->opt->only && !strstr(s->c->name, s->opt->only))
            continue;
        if (!s->opt->quiet)
            fprintf(stderr, "%s%2u/%u %-14s%s", isatty(STDERR_FILENO) ? "\r\033[K" : "", i + 1,
                    suite_ncases, s->c->name, isatty(STDERR_FILENO) ? "" : "\n");
        ran++;
        if (one(s))
            return CLI_FAIL;
    }
    if (!s->opt->quiet && isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
    if (!ran) {
        cli_error("--only: no case has '%s' in its name; --list names them", s->opt->only);
        return CLI_USAGE;
    }
    s->card.test = "always";
    suite_say(&s->card, "ICRC-01",
              !s->packets   ? SUITE_UNTESTED
              : s->bad_icrc ? SUITE_FAIL
                            : SUITE_PASS,
              "%llu packets of the device, %llu with a wrong iCRC", (unsigned long long)s->packets,
              (unsigned long long)s->bad_icrc);
    return CLI_OK;
}

int suite_run(struct bump *b, const struct suite_options *opt, struct wire_capture *capture,
              bool json)
{
    struct runner *s = calloc(1, sizeof(*s));
    if (!s || suite_trace_init(&s->trace)) {
        free(s);
        cli_error("out of memory");
        return CLI_FAIL;
    }
    s->bump = b;
    s->opt = opt;
    s->capture = capture;
    s->c = &suite_cases[0];
    b->judge = judge;
    b->arg = s;
    int status = all(s);
    if (status == CLI_OK) {
        if (json)
            cli_json(suite_report_json(&s->card, b));
        else
            suite_report(&s->card);
        if (s->card.count[SUITE_FAIL] || !s->card.count[SUITE_PASS] || cli_stop)
            status = CLI_FAIL;
    }
    b->judge = NULL;
    suite_trace_free(&s->trace);
    free(s);
    return status;
}
