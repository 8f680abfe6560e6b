/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The results of `urnic lint` as text and as JSON.
 */
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "cli.h"
#include "lint_writer.h"

static const char *service_name(const struct lint_flow_info *i)
{
    static const char *const names[8] = {"RC", "UC", "RD", "UD", "CNP", "XRC", "?", "?"};
    return names[i->service & 7];
}

/* bit/s of payload that was delivered once, over the time that the flow was seen. */
double lint_goodput(const struct lint_flow_info *i, uint64_t octets)
{
    double s = (double)(i->last_ns - i->first_ns) / 1e9;
    return s > 0 ? (double)octets * 8 / s : 0;
}

/* ---- text ---- */

static void end_point(FILE *to, const struct wire_addr *a, uint32_t qpn)
{
    char text[48];
    fprintf(to, "%s qp ", wire_addr_str(a, text, sizeof text));
    if (qpn)
        fprintf(to, "0x%x", qpn);
    else
        fputs("?", to);
}

/* "12 SENDs, 1 READ, 3 damaged": only what there is; a '+' ends a noun that has a plural. */
static void counted(FILE *to, bool *any, uint64_t n, const char *what)
{
    int len = (int)strcspn(what, "+");
    if (!n)
        return;
    fprintf(to, "%s%" PRIu64 " %.*s%s%s", *any ? ", " : "", n, len, what,
            what[len] && n != 1 ? "s" : "", what[len] ? what + len + 1 : "");
    *any = true;
}

static void direction(FILE *to, const struct lint_flow_info *i, const char *arrow)
{
    char a[32], b[32];
    bool any = false;
    fprintf(to, "  %s %" PRIu64 " packets, %s: ", arrow, i->packets,
            cli_fmt_octets(i->octets, a, sizeof a));
    counted(to, &any, i->sends, "SEND+");
    counted(to, &any, i->writes, "WRITE+");
    counted(to, &any, i->reads, "READ+");
    counted(to, &any, i->atomics, "ATOMIC+");
    counted(to, &any, i->datagrams, "datagram+");
    counted(to, &any, i->acks, "ACK+");
    counted(to, &any, i->read_packets, "READ response+");
    counted(to, &any, i->atomic_acks, "ATOMIC acknowledge+");
    counted(to, &any, i->naks_seq, "sequence NAK+");
    counted(to, &any, i->naks_fatal, "fatal NAK+");
    counted(to, &any, i->rnrs, "RNR NAK+");
    counted(to, &any, i->cnps, "CNP+");
    fputs(any ? "\n" : "nothing\n", to);

    uint64_t octets = i->goodput + i->read_octets;
    if (octets) {
        fprintf(to, "     payload %s", cli_fmt_octets(octets, a, sizeof a));
        if (i->last_ns > i->first_ns)
            fprintf(to, ", %s", cli_fmt_rate(lint_goodput(i, octets), b, sizeof b));
        fputc('\n', to);
    }
    if (i->rtt_samples)
        fprintf(to, "     answers after %s on average, at least %s\n",
                cli_fmt_time((double)i->rtt_sum / (double)i->rtt_samples, a, sizeof a),
                cli_fmt_time((double)i->rtt_min, b, sizeof b));
    if (i->acks)
        fprintf(to, "     an ACK for %.1f request packets on average, at most %u\n",
                (double)i->acked_psns / (double)i->acks, i->ack_max);
    any = false;
    if (i->retransmits || i->duplicates || i->reordered || i->gaps || i->timeouts ||
        i->read_again || i->corrupt || i->cut || i->again || i->ecn_ce) {
        fputs("     ", to);
        counted(to, &any, i->retransmits, "retransmission+");
        counted(to, &any, i->timeouts, "time-out+");
        counted(to, &any, i->read_again, "READ response+ again");
        counted(to, &any, i->duplicates, "duplicate+");
        counted(to, &any, i->reordered, "reordered");
        if (i->gaps)
            fprintf(to, "%s%" PRIu64 " gaps of %" PRIu64 " PSNs", any ? ", " : "", i->gaps,
                    i->gap_psns);
        any |= i->gaps;
        counted(to, &any, i->corrupt, "damaged");
        counted(to, &any, i->ecn_ce, "marked CE");
        counted(to, &any, i->cut, "cut by the capture");
        counted(to, &any, i->again, "seen on another interface too");
        fputc('\n', to);
    }
}

static void connection(FILE *to, const struct lint_connection *c)
{
    const struct lint_flow_info *a = &c->info[0];
    fprintf(to, "\nconnection %u: %s%s ", c->number, service_name(a), a->v1 ? " (v1)" : "");
    end_point(to, &a->src, a->sqpn);
    fputs(c->flow[1] == LINT_NO_FLOW ? " -> " : " <-> ", to);
    end_point(to, &a->dst, a->dqpn);
    if (a->mtu)
        fprintf(to, ", MTU %u", a->mtu);
    fputs(a->by_cm ? ", by CM\n" : "\n", to);
    direction(to, a, "->");
    if (c->flow[1] != LINT_NO_FLOW)
        direction(to, &c->info[1], "<-");
    else if (a->service != WIRE_UD)
        fputs("  <- not in the capture\n", to);
}

static void finding(FILE *to, const struct lint_result *r, const struct lint_finding *f)
{
    uint32_t n = lint_connection_of(r, f->flow);
    double at = ((double)f->ns - (double)r->totals.first_ns) / 1e9;
    fprintf(to, "\n%s %s: packet %" PRIu64 " at %.6f s", lint_verdict_name(f->verdict), f->rule->id,
            f->number, at);
    if (n)
        fprintf(to, ", connection %u", n);
    fprintf(to, "\n  %s\n  rule      %s\n  expected  %s\n  seen      %s\n", f->dump,
            f->rule->sentence, f->expected, f->seen);
    if (f->why[0])
        fprintf(to, "  but       %s\n", f->why);
}

void lint_write_text(FILE *to, const struct lint_result *r)
{
    const struct lint_totals *t = &r->totals;
    fprintf(to, "%s: %s, %" PRIu64 " packets, %" PRIu64 " of them RoCE", r->path, r->capture.format,
            r->capture.packets, t->roce);
    bool any = true;
    counted(to, &any, t->corrupt, "damaged");
    counted(to, &any, t->cut, "kept in part");
    counted(to, &any, r->capture.drops, "dropped by the capture");
    counted(to, &any, t->forgotten, "of more queue pairs than fit");
    fputc('\n', to);
    if (r->capture.damage)
        fprintf(to, "the file is %s; what was read counts\n", r->capture.damage);
    for (uint32_t i = 0; i < r->connections; i++)
        connection(to, &r->connection[i]);
    for (size_t i = 0; i < r->findings; i++)
        finding(to, r, &r->finding[i]);
    if (r->hidden)
        fprintf(to, "\n%" PRIu64 " more findings are not shown (--max)\n", r->hidden);
    if (!t->roce)
        fprintf(to, "\nnothing to judge: no RoCE packet\n");
    else
        fprintf(to, "\n%" PRIu64 " violation%s, %" PRIu64 " undecidable, %" PRIu64 " artefact%s\n",
                r->shown[LINT_VIOLATION], r->shown[LINT_VIOLATION] == 1 ? "" : "s",
                r->shown[LINT_UNDECIDABLE], r->shown[LINT_ARTEFACT],
                r->shown[LINT_ARTEFACT] == 1 ? "" : "s");
}

/* ---- JSON ---- */

static void line(FILE *to, json_t *o)
{
    json_dumpf(o, to, JSON_COMPACT | JSON_PRESERVE_ORDER);
    fputc('\n', to);
    json_decref(o);
}

static void number(json_t *o, const char *key, uint64_t v)
{
    json_object_set_new(o, key, json_integer((json_int_t)v));
}

/* Text that may come from a packet: never lose the line because of it. */
static void text(json_t *o, const char *key, const char *s)
{
    json_t *v = json_string(s);
    json_object_set_new(o, key, v ? v : json_string("?"));
}

static json_t *json_flow(const struct lint_flow_info *i)
{
    char a[48];
    json_t *o = json_object();
    number(o, "flow", i->id);
    text(o, "src", wire_addr_str(&i->src, a, sizeof a));
    text(o, "dst", wire_addr_str(&i->dst, a, sizeof a));
    number(o, "sqpn", i->sqpn);
    number(o, "dqpn", i->dqpn);
    const struct {
        const char *key;
        uint64_t v;
    } counts[] = {
        {"packets", i->packets},
        {"octets", i->octets},
        {"first_packet", i->first_number},
        {"last_packet", i->last_number},
        {"requests", i->requests},
        {"sends", i->sends},
        {"writes", i->writes},
        {"reads", i->reads},
        {"atomics", i->atomics},
        {"datagrams", i->datagrams},
        {"payload_octets", i->goodput + i->read_octets},
        {"goodput_bps", (uint64_t)lint_goodput(i, i->goodput + i->read_octets)},
        {"retransmissions", i->retransmits},
        {"timeouts", i->timeouts},
        {"duplicates", i->duplicates},
        {"reordered", i->reordered},
        {"gaps", i->gaps},
        {"gap_psns", i->gap_psns},
        {"acks", i->acks},
        {"acked_packets", i->acked_psns},
        {"acked_packets_max", i->ack_max},
        {"read_responses", i->read_packets},
        {"read_responses_again", i->read_again},
        {"atomic_acks", i->atomic_acks},
        {"sequence_naks", i->naks_seq},
        {"fatal_naks", i->naks_fatal},
        {"rnr_naks", i->rnrs},
        {"cnps", i->cnps},
        {"ecn_capable", i->ecn_capable},
        {"ecn_ce", i->ecn_ce},
        {"damaged", i->corrupt},
        {"cut", i->cut},
        {"other_interface", i->again},
    };
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++)
        number(o, counts[k].key, counts[k].v);
    if (i->rtt_samples) {
        number(o, "rtt_ns", i->rtt_sum / i->rtt_samples);
        number(o, "rtt_min_ns", i->rtt_min);
        number(o, "rtt_max_ns", i->rtt_max);
    }
    return o;
}

void lint_write_json(FILE *to, const struct lint_result *r)
{
    const struct lint_totals *t = &r->totals;
    json_t *o = json_object();
    text(o, "type", "capture");
    text(o, "file", r->path);
    text(o, "format", r->capture.format);
    number(o, "packets", r->capture.packets);
    number(o, "roce", t->roce);
    number(o, "damaged", t->corrupt);
    number(o, "cut", t->cut);
    number(o, "dropped", r->capture.drops);
    number(o, "forgotten", t->forgotten);
    if (r->capture.damage)
        text(o, "short", r->capture.damage);
    line(to, o);
    for (uint32_t i = 0; i < r->connections; i++) {
        const struct lint_connection *c = &r->connection[i];
        o = json_object();
        text(o, "type", "connection");
        number(o, "connection", c->number);
        text(o, "service", service_name(&c->info[0]));
        number(o, "mtu", c->info[0].mtu);
        json_object_set_new(o, "by_cm", json_boolean(c->info[0].by_cm));
        json_object_set_new(o, "v1", json_boolean(c->info[0].v1));
        json_t *flows = json_array();
        for (int k = 0; k < 2; k++)
            if (c->flow[k] != LINT_NO_FLOW)
                json_array_append_new(flows, json_flow(&c->info[k]));
        json_object_set_new(o, "flows", flows);
        line(to, o);
    }
    for (size_t i = 0; i < r->findings; i++) {
        const struct lint_finding *f = &r->finding[i];
        o = json_object();
        text(o, "type", "finding");
        text(o, "verdict", lint_verdict_name(f->verdict));
        text(o, "rule", f->rule->id);
        number(o, "packet", f->number);
        number(o, "time_ns", f->ns);
        number(o, "connection", lint_connection_of(r, f->flow));
        text(o, "dump", f->dump);
        text(o, "expected", f->expected);
        text(o, "seen", f->seen);
        if (f->why[0])
            text(o, "but", f->why);
        line(to, o);
    }
    o = json_object();
    text(o, "type", "summary");
    number(o, "violations", r->shown[LINT_VIOLATION]);
    number(o, "undecidable", r->shown[LINT_UNDECIDABLE]);
    number(o, "artefacts", r->shown[LINT_ARTEFACT]);
    line(to, o);
}

void lint_write_rules(FILE *to, bool json)
{
    size_t n;
    const struct lint_rule *rules = lint_rules(&n);
    for (size_t i = 0; i < n; i++) {
        if (json) {
            json_t *o = json_object();
            text(o, "rule", rules[i].id);
            text(o, "sentence", rules[i].sentence);
            line(to, o);
        } else {
            fprintf(to, "%-8s %s\n", rules[i].id, rules[i].sentence);
        }
    }
}
