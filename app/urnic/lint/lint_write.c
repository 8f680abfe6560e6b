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

/* bit/s of payload, without retransmissions, over the time between the flow's first and last
 * packet. */
double lint_goodput(const struct lint_flow_info *i, uint64_t octets)
{
    double s = (double)(i->last_ns - i->first_ns) / 1e9;
    return s > 0 ? (double)octets * 8 / s : 0;
}

/* ---- text ---- */

static void end_point(const struct wire_addr *a, uint32_t qpn)
{
    char text[48];
    printf("%s qp ", wire_addr_str(a, text, sizeof(text)));
    if (qpn)
        printf("0x%x", qpn);
    else
        fputs("?", stdout);
}

/* "12 SENDs, 1 READ, 3 damaged", without zeros; a '+' ends a noun that has a plural. */
static void counted(bool *any, uint64_t n, const char *what)
{
    int len = (int)strcspn(what, "+");
    if (!n)
        return;
    printf("%s%" PRIu64 " %.*s%s%s", *any ? ", " : "", n, len, what, what[len] && n != 1 ? "s" : "",
           what[len] ? what + len + 1 : "");
    *any = true;
}

static void what_it_carries(const struct lint_flow_info *i)
{
    bool any = false;
    counted(&any, i->sends, "SEND+");
    counted(&any, i->writes, "WRITE+");
    counted(&any, i->reads, "READ+");
    counted(&any, i->atomics, "ATOMIC+");
    counted(&any, i->atomic_writes, "ATOMIC WRITE+");
    counted(&any, i->flushes, "FLUSH request+");
    counted(&any, i->datagrams, "datagram+");
    counted(&any, i->acks, "ACK+");
    counted(&any, i->read_packets, "READ response+");
    counted(&any, i->atomic_acks, "ATOMIC acknowledge+");
    counted(&any, i->naks_seq, "sequence NAK+");
    counted(&any, i->naks_fatal, "fatal NAK+");
    counted(&any, i->rnrs, "RNR NAK+");
    counted(&any, i->cnps, "CNP+");
    fputs(any ? "\n" : "nothing\n", stdout);
}

static void how_fast(const struct lint_flow_info *i)
{
    char a[32], b[32];
    uint64_t octets = i->goodput + i->read_octets;
    if (octets) {
        printf("     payload %s", cli_fmt_octets(octets, a, sizeof(a)));
        if (i->last_ns > i->first_ns)
            printf(", %s", cli_fmt_rate(lint_goodput(i, octets), b, sizeof(b)));
        putchar('\n');
    }
    if (i->rtt_samples)
        printf("     answers after %s on average, at least %s\n",
               cli_fmt_time((double)i->rtt_sum / (double)i->rtt_samples, a, sizeof(a)),
               cli_fmt_time((double)i->rtt_min, b, sizeof(b)));
    if (i->acks_placed)
        printf("     an ACK for %.1f request packets on average, at most %u\n",
               (double)i->acked_psns / (double)i->acks_placed, i->ack_max);
}

/* The packets lost, overtaken, doubled, damaged or marked; no line if there are none. */
static void what_befell_it(const struct lint_flow_info *i)
{
    bool any = false;
    if (!(i->retransmits || i->duplicates || i->reordered || i->gaps || i->timeouts ||
          i->read_again || i->corrupt || i->cut || i->again || i->ecn_ce))
        return;
    fputs("     ", stdout);
    counted(&any, i->retransmits, "retransmission+");
    counted(&any, i->timeouts, "time-out+");
    counted(&any, i->read_again, "READ response+ again");
    counted(&any, i->duplicates, "duplicate+");
    counted(&any, i->reordered, "reordered");
    if (i->gaps)
        printf("%s%" PRIu64 " gap%s of %" PRIu64 " PSN%s", any ? ", " : "", i->gaps,
               i->gaps == 1 ? "" : "s", i->gap_psns, i->gap_psns == 1 ? "" : "s");
    any |= i->gaps;
    counted(&any, i->corrupt, "damaged");
    counted(&any, i->ecn_ce, "marked CE");
    counted(&any, i->cut, "cut by the capture");
    counted(&any, i->again, "seen on another interface, VLAN or hop too");
    putchar('\n');
}

static void direction(const struct lint_flow_info *i, const char *arrow)
{
    char octets[32];
    printf("  %s %" PRIu64 " packet%s, %s: ", arrow, i->packets, i->packets == 1 ? "" : "s",
           cli_fmt_octets(i->octets, octets, sizeof(octets)));
    what_it_carries(i);
    how_fast(i);
    what_befell_it(i);
}

static void connection(const struct lint_connection *c)
{
    const struct lint_flow_info *a = &c->info[0];
    printf("\nconnection %u: %s%s ", c->number, service_name(a), a->v1 ? " (v1)" : "");
    end_point(&a->src, a->sqpn);
    fputs(c->flow[1] == LINT_NO_FLOW ? " -> " : " <-> ", stdout);
    end_point(&a->dst, a->dqpn);
    if (a->mtu)
        printf(", MTU %u", a->mtu);
    fputs(a->by_cm ? ", by CM\n" : "\n", stdout);
    direction(a, "->");
    if (c->flow[1] != LINT_NO_FLOW)
        direction(&c->info[1], "<-");
    else if (a->service != WIRE_UD)
        fputs("  <- not in the capture\n", stdout);
}

static void finding(const struct lint_result *r, const struct lint_finding *f)
{
    uint32_t n = lint_connection_of(r, f->flow);
    double at = ((double)f->ns - (double)r->totals.first_ns) / 1e9;
    printf("\n%s %s: packet %" PRIu64 " at %.6f s", lint_verdict_name(f->verdict), f->rule->id,
           f->number, at);
    if (n)
        printf(", connection %u", n);
    printf("\n  %s\n  rule      %s\n  expected  %s\n  seen      %s\n", f->dump, f->rule->sentence,
           f->expected, f->seen);
    if (f->why[0])
        printf("  but       %s\n", f->why);
}

void lint_write_text(const struct lint_result *r)
{
    const struct lint_totals *t = &r->totals;
    printf("%s: %s, %" PRIu64 " packet%s, %" PRIu64 " of them RoCE", r->path, r->capture.format,
           r->capture.packets, r->capture.packets == 1 ? "" : "s", t->roce);
    bool any = true;
    counted(&any, t->corrupt, "damaged");
    counted(&any, t->cut, "kept in part");
    counted(&any, r->capture.drops, "dropped by the capture");
    counted(&any, t->forgotten, "of more queue pairs than fit");
    putchar('\n');
    if (r->capture.skipped)
        printf("%" PRIu64 " packet%s of link types without Ethernet or IP%s: not judged\n",
               r->capture.skipped, r->capture.skipped == 1 ? "" : "s",
               r->capture.infiniband ? " (InfiniBand itself)" : "");
    for (int i = 0; i < CAPREAD_CARRIERS; i++)
        if (r->capture.wrapped[i])
            printf("%" PRIu64 " packet%s inside %s: the inner packets are judged\n",
                   r->capture.wrapped[i], r->capture.wrapped[i] == 1 ? "" : "s",
                   capread_carrier_name(i));
    if (t->merged)
        printf("%" PRIu64
               " frame%s of several packets, merged by the host that captured (GRO, LRO or "
               "GSO): %s\n",
               t->merged, t->merged == 1 ? "" : "s",
               t->unsplit == t->merged ? "not judged"
               : t->unsplit            ? "taken apart as far as the capture kept them"
                                       : "taken apart");
    if (r->capture.damage)
        printf("the file is %s; the packets read before are judged\n", r->capture.damage);
    for (uint32_t i = 0; i < r->connections; i++)
        connection(&r->connection[i]);
    for (size_t i = 0; i < r->findings; i++)
        finding(r, &r->finding[i]);
    if (r->hidden)
        printf("\n%" PRIu64 " more finding%s not shown (--max)\n", r->hidden,
               r->hidden == 1 ? " is" : "s are");
    if (!t->roce)
        printf("\nnothing to judge: %s\n",
               t->corrupt ? "each RoCE packet is damaged" : "no RoCE packet");
    else
        printf("\n%" PRIu64 " violation%s, %" PRIu64 " undecidable, %" PRIu64 " artefact%s\n",
               r->shown[LINT_VIOLATION], r->shown[LINT_VIOLATION] == 1 ? "" : "s",
               r->shown[LINT_UNDECIDABLE], r->shown[LINT_ARTEFACT],
               r->shown[LINT_ARTEFACT] == 1 ? "" : "s");
}

/* ---- JSON ---- */

static void number(json_t *o, const char *key, uint64_t v)
{
    json_object_set_new(o, key, json_integer((json_int_t)v));
}

static void text(json_t *o, const char *key, const char *s)
{
    json_object_set_new(o, key, cli_json_text(s));
}

static void json_counts(json_t *o, const struct lint_flow_info *i)
{
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
        {"atomic_writes", i->atomic_writes},
        {"flushes", i->flushes},
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
    for (size_t k = 0; k < sizeof(counts) / sizeof(*counts); k++)
        number(o, counts[k].key, counts[k].v);
}

static json_t *json_flow(const struct lint_flow_info *i)
{
    char a[48];
    json_t *o = json_object();
    number(o, "flow", i->id);
    text(o, "src", wire_addr_str(&i->src, a, sizeof(a)));
    text(o, "dst", wire_addr_str(&i->dst, a, sizeof(a)));
    number(o, "sqpn", i->sqpn);
    number(o, "dqpn", i->dqpn);
    json_counts(o, i);
    if (i->rtt_samples) {
        number(o, "rtt_ns", i->rtt_sum / i->rtt_samples);
        number(o, "rtt_min_ns", i->rtt_min);
        number(o, "rtt_max_ns", i->rtt_max);
    }
    return o;
}

static void json_capture(const struct lint_result *r)
{
    const struct lint_totals *t = &r->totals;
    json_t *o = json_object();
    text(o, "type", "capture");
    text(o, "file", r->path);
    text(o, "format", r->capture.format);
    number(o, "packets", r->capture.packets);
    number(o, "roce", t->roce);
    number(o, "other_link", r->capture.skipped);
    number(o, "damaged", t->corrupt);
    number(o, "cut", t->cut);
    number(o, "merged", t->merged);
    number(o, "merged_unread", t->unsplit);
    json_t *wrapped = json_object();
    for (int i = 0; i < CAPREAD_CARRIERS; i++)
        if (r->capture.wrapped[i])
            number(wrapped, capread_carrier_name(i), r->capture.wrapped[i]);
    json_object_set_new(o, "inside", wrapped);
    number(o, "dropped", r->capture.drops);
    number(o, "forgotten", t->forgotten);
    if (r->capture.damage)
        text(o, "short", r->capture.damage);
    cli_json(o);
}

static void json_connection(const struct lint_connection *c)
{
    json_t *o = json_object();
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
    cli_json(o);
}

static void json_finding(const struct lint_result *r, const struct lint_finding *f)
{
    json_t *o = json_object();
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
    cli_json(o);
}

void lint_write_json(const struct lint_result *r)
{
    json_capture(r);
    for (uint32_t i = 0; i < r->connections; i++)
        json_connection(&r->connection[i]);
    for (size_t i = 0; i < r->findings; i++)
        json_finding(r, &r->finding[i]);
    json_t *o = json_object();
    text(o, "type", "summary");
    number(o, "violations", r->shown[LINT_VIOLATION]);
    number(o, "undecidable", r->shown[LINT_UNDECIDABLE]);
    number(o, "artefacts", r->shown[LINT_ARTEFACT]);
    cli_json(o);
}

void lint_write_rules(bool json)
{
    size_t n;
    const struct lint_rule *rules = lint_rules(&n);
    for (size_t i = 0; i < n; i++) {
        if (json) {
            json_t *o = json_object();
            text(o, "rule", rules[i].id);
            text(o, "sentence", rules[i].sentence);
            cli_json(o);
        } else {
            printf("%-8s %s\n", rules[i].id, rules[i].sentence);
        }
    }
}
