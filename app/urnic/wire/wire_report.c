/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The output of `urnic wire`: rates while it runs, counts at the end.
 */
#include <jansson.h>

#include "cli.h"
#include "wire_cmd.h"

static const char *const dir_names[BUMP_DIRS] = {"A>B", "B>A"};

void wire_tick(struct wire_ticker *t, const struct wire_job *j, uint64_t now)
{
    if (!t->on || now - t->at < 1000000000u)
        return;
    double s = (double)(now - t->at) / 1e9;
    uint64_t faults = 0;
    fprintf(stderr, "\r%5.0f s", (double)(now - j->start) / 1e9);
    for (unsigned d = 0; d < BUMP_DIRS; d++) {
        const struct bump_counters *c = &j->bump.half[d].count;
        char rate[32];
        cli_fmt_rate((double)(c->out_octets - t->octets[d]) * 8 / s, rate, sizeof(rate));
        fprintf(stderr, "  %s %.2f M/s %s", dir_names[d],
                (double)(c->forwarded - t->frames[d]) / s / 1e6, rate);
        t->frames[d] = c->forwarded;
        t->octets[d] = c->out_octets;
        faults += c->dropped + c->changed + c->held + c->copied + c->injected;
    }
    if (j->fault)
        fprintf(stderr, "  faults %llu, kept %u", (unsigned long long)faults,
                bump_kept_now(&j->bump));
    fprintf(stderr, "%s\033[K", bump_up(&j->bump) ? "" : "  LINK DOWN");
    fflush(stderr);
    t->at = now;
    t->drawn = true;
}

/* ---- text ---- */

static void direction_summary(const struct bump_half *h, const char *name)
{
    const struct bump_counters *c = &h->count;
    const struct {
        const char *what;
        uint64_t n;
    } row[] = {{"dropped", c->dropped},   {"changed", c->changed},
               {"held", c->held},         {"still held", bump_queue_len(&h->queue)},
               {"copied", c->copied},     {"injected", c->injected},
               {"no link", c->no_link},   {"too long", c->oversize},
               {"queue full", c->no_room}};
    char octets[32];
    fprintf(stderr, "  %s  %llu frames in, %llu out (%s)", name, (unsigned long long)c->received,
            (unsigned long long)c->forwarded,
            cli_fmt_octets(c->out_octets, octets, sizeof(octets)));
    for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++)
        if (row[i].n)
            fprintf(stderr, ", %s %llu", row[i].what, (unsigned long long)row[i].n);
    fputc('\n', stderr);
}

void wire_summary(const struct wire_job *j, double seconds)
{
    fprintf(stderr, "%.1f s\n", seconds);
    for (unsigned d = 0; d < BUMP_DIRS; d++)
        direction_summary(&j->bump.half[d], dir_names[d]);
    for (unsigned i = 0; i < BUMP_DIRS; i++) {
        struct io_link link;
        j->bump.port[i]->ops->link(j->bump.port[i], &link);
        if (!link.up || link.changes > 1)
            fprintf(stderr, "  port %c: the link is %s, %llu changes\n", 'A' + (int)i,
                    link.up ? "up" : "down", (unsigned long long)link.changes);
    }
    if (!j->fault || !fault_rules(j->fault)) /* no rule looked at packets */
        return;
    struct fault_stats s;
    fault_stats(j->fault, &s);
    fprintf(stderr, "  %llu RoCE packets", (unsigned long long)s.roce);
    if (s.knows)
        fprintf(stderr, " of %llu connection%s", (unsigned long long)s.conns,
                s.conns == 1 ? "" : "s");
    if (s.evicted)
        fprintf(stderr, ", %llu of them forgotten", (unsigned long long)s.evicted);
    fputs("\n      matched        done\n", stderr);
    for (unsigned i = 0; i < fault_rules(j->fault); i++) {
        struct fault_rule_stats r;
        fault_rule_stats(j->fault, i, &r);
        fprintf(stderr, "  %11llu %11llu  %s", (unsigned long long)r.matched,
                (unsigned long long)r.done, fault_describe(j->fault, i));
        if (r.failed)
            fprintf(stderr, "  (%llu could not be done)", (unsigned long long)r.failed);
        fputc('\n', stderr);
    }
}

/* ---- JSON ---- */

static json_t *port_json(struct io_port *port)
{
    struct io_stats s;
    struct io_link link;
    port->ops->stats(port, &s);
    port->ops->link(port, &link);
    return json_pack("{so sb si sI sI sI sI sI sI sI sI}", "port", cli_json_text(port->spec), "up",
                     link.up, "frame_max", (int)port->caps.frame_max, "rx_frames",
                     (json_int_t)s.rx_frames, "rx_bytes", (json_int_t)s.rx_bytes, "tx_frames",
                     (json_int_t)s.tx_frames, "tx_bytes", (json_int_t)s.tx_bytes, "rx_drop",
                     (json_int_t)s.rx_drop, "rx_oversize", (json_int_t)s.rx_oversize, "tx_drop",
                     (json_int_t)s.tx_drop, "link_changes", (json_int_t)link.changes);
}

static json_t *direction_json(const struct bump_half *h, const char *name)
{
    const struct bump_counters *c = &h->count;
    return json_pack("{ss sI sI sI sI sI sI sI sI sI sI sI sI sI}", "direction", name, "received",
                     (json_int_t)c->received, "received_bytes", (json_int_t)c->octets, "forwarded",
                     (json_int_t)c->forwarded, "forwarded_bytes", (json_int_t)c->out_octets,
                     "dropped", (json_int_t)c->dropped, "changed", (json_int_t)c->changed, "held",
                     (json_int_t)c->held, "kept", (json_int_t)bump_queue_len(&h->queue), "copied",
                     (json_int_t)c->copied, "injected", (json_int_t)c->injected, "no_link",
                     (json_int_t)c->no_link, "oversize", (json_int_t)c->oversize, "no_room",
                     (json_int_t)c->no_room);
}

static json_t *rules_json(const struct fault *f)
{
    json_t *list = json_array();
    for (unsigned i = 0; f && i < fault_rules(f); i++) {
        struct fault_rule_stats r;
        fault_rule_stats(f, i, &r);
        json_array_append_new(list, json_pack("{si so sI sI sI}", "line", (int)r.line, "rule",
                                              cli_json_text(fault_describe(f, i)), "matched",
                                              (json_int_t)r.matched, "done", (json_int_t)r.done,
                                              "failed", (json_int_t)r.failed));
    }
    return list;
}

/* null: not counted. */
static json_t *count_json(bool counted, uint64_t n)
{
    return counted ? json_integer((json_int_t)n) : json_null();
}

void wire_json(const struct wire_job *j, double seconds)
{
    struct fault_stats s = {0};
    bool rules = j->fault && fault_rules(j->fault);
    if (rules)
        fault_stats(j->fault, &s);
    cli_json(json_pack("{ss sf s[oo] s[oo] so so so so}", "type", "wire", "seconds", seconds,
                       "ports", port_json(j->bump.port[0]), port_json(j->bump.port[1]),
                       "directions", direction_json(&j->bump.half[FAULT_AB], dir_names[FAULT_AB]),
                       direction_json(&j->bump.half[FAULT_BA], dir_names[FAULT_BA]), "roce",
                       count_json(rules, s.roce), "connections", count_json(s.knows, s.conns),
                       "forgotten", count_json(s.knows, s.evicted), "rules", rules_json(j->fault)));
}
