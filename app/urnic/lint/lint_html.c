/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `urnic lint --html`: lint_page.html with the results in it as JSON. The page has everything in
 * one file and asks no network for anything.
 */
#include "lint_html.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

#define PACKETS_MAX 200000u /* packets drawn: more would overload a browser */
#define DUMPS_MAX   20000u  /* most packets with their dump line */
#define MARK        "@DATA@"

static const char page[] = {
#include "lint_page.inc"
};

struct shown {
    uint64_t number, ns;
    uint32_t flow, flags, psn, psns, octets;
    enum lint_kind kind;
    char *dump; /* NULL = none kept */
};

struct html {
    struct lint_writer writer;
    FILE *to;
    struct shown *shown;
    size_t n, room;
    uint64_t left_out;
};

static void html_packet(struct lint_writer *w, const struct lint_frame *f,
                        const struct lint_view *v)
{
    struct html *h = (struct html *)w;
    char dump[LINT_DUMP_MAX];
    if (v->kind == LINT_OTHER || v->flags & LINT_V_AGAIN)
        return;
    if (h->n == h->room && h->room < PACKETS_MAX) {
        size_t room = h->room ? 2 * h->room : 1024;
        void *more = realloc(h->shown, room * sizeof(*h->shown));
        if (more) {
            h->shown = more;
            h->room = room;
        }
    }
    if (h->n == h->room || h->n >= PACKETS_MAX) {
        h->left_out++;
        return;
    }
    struct shown *s = &h->shown[h->n++];
    *s = (struct shown){f->number, f->ns,     v->flow, v->flags, v->psn,
                        v->psns,   v->octets, v->kind, NULL};
    if (h->n <= DUMPS_MAX) {
        wire_dump_cut(dump, sizeof(dump), f->data, f->len, f->wire_len, 0);
        s->dump = strdup(dump);
    }
}

/* ---- data for the page's script ---- */

static json_t *end_point(const struct wire_addr *a, uint32_t qpn)
{
    char addr[48];
    return json_sprintf(qpn ? "%s qp 0x%" PRIx32 : "%s qp ?", wire_addr_str(a, addr, sizeof(addr)),
                        qpn);
}

static json_t *json_u(uint64_t v)
{
    return json_integer((json_int_t)v);
}

static json_t *side(const struct lint_flow_info *i, const struct lint_flow_info *other)
{
    bool known = i->packets != 0;
    const struct {
        const char *name;
        uint64_t value;
    } stats[] = {
        {"packets", i->packets},
        {"octets", i->octets},
        {"SEND", i->sends},
        {"WRITE", i->writes},
        {"READ", i->reads},
        {"ATOMIC", i->atomics},
        {"datagram", i->datagrams},
        {"retransmitted", i->retransmits},
        {"duplicate", i->duplicates},
        {"reordered", i->reordered},
        {"gap", i->gaps},
        {"time-out", i->timeouts},
        {"ACK", i->acks},
        {"NAK", i->naks_seq + i->naks_fatal},
        {"RNR", i->rnrs},
        {"CNP", i->cnps},
        {"CE", i->ecn_ce},
        {"damaged", i->corrupt},
    };
    json_t *s = json_object(), *list = json_object();
    json_object_set_new(s, "known", json_boolean(known));
    json_object_set_new(s, "from",
                        known ? end_point(&i->src, i->sqpn) : end_point(&other->dst, other->dqpn));
    json_object_set_new(s, "to",
                        known ? end_point(&i->dst, i->dqpn) : end_point(&other->src, other->sqpn));
    for (size_t k = 0; k < sizeof(stats) / sizeof(stats[0]); k++)
        json_object_set_new(list, stats[k].name, json_u(stats[k].value));
    /* Figures for people: Mb/s, us, packets, with two decimals. */
    const struct {
        const char *name;
        double value;
    } figures[] = {
        {"goodput, Mb/s", lint_goodput(i, i->goodput + i->read_octets) / 1e6},
        {"RTT, us", i->rtt_samples ? (double)i->rtt_sum / (double)i->rtt_samples / 1e3 : 0},
        {"packets per ACK", i->acks_placed ? (double)i->acked_psns / (double)i->acks_placed : 0},
    };
    for (size_t k = 0; k < sizeof(figures) / sizeof(figures[0]); k++)
        json_object_set_new(list, figures[k].name, json_real(round(figures[k].value * 100) / 100));
    json_object_set_new(s, "stats", list);
    return s;
}

static json_t *connections(const struct lint_result *r)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < r->connections; i++) {
        const struct lint_connection *c = &r->connection[i];
        json_array_append_new(list, json_pack("{s:o, s:[o, o]}", "number", json_u(c->number),
                                              "side", side(&c->info[0], &c->info[1]),
                                              side(&c->info[1], &c->info[0])));
    }
    return list;
}

static json_t *findings(const struct lint_result *r)
{
    json_t *list = json_array();
    for (size_t i = 0; i < r->findings; i++) {
        const struct lint_finding *f = &r->finding[i];
        json_array_append_new(
            list,
            json_pack("{s:o, s:o, s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "number", json_u(f->number),
                      "connection", json_u(lint_connection_of(r, f->flow)), "rule", f->rule->id,
                      "sentence", f->rule->sentence, "verdict", lint_verdict_name(f->verdict),
                      "expected", f->expected, "seen", f->seen, "why", f->why, "dump", f->dump));
    }
    return list;
}

/* The direction of a flow in its connection. */
static int direction(const struct lint_result *r, uint32_t connection, uint32_t flow)
{
    return connection && r->connection[connection - r->connection->number].flow[1] == flow;
}

static json_t *packets(const struct html *h, const struct lint_result *r)
{
    json_t *list = json_array();
    uint64_t begin = h->n ? h->shown[0].ns : 0;
    uint32_t flow = LINT_NO_FLOW, number = 0;
    int side = 0;
    for (size_t i = 0; i < h->n; i++) {
        const struct shown *s = &h->shown[i];
        if (s->flow != flow) { /* neighbours are mostly packets of one flow */
            flow = s->flow;
            number = lint_connection_of(r, flow);
            side = direction(r, number, flow);
        }
        if (r->only && !number)
            continue;
        json_t *p =
            json_pack("[o, f, i, i, i, i, i, i, i]", json_u(s->number),
                      (double)(int64_t)(s->ns - begin) / 1e3, (int)number, side, (int)s->kind,
                      (int)s->flags, (int)s->psn, (int)s->psns, (int)s->octets);
        if (s->dump)
            json_array_append_new(p, json_string(s->dump));
        json_array_append_new(list, p);
    }
    return list;
}

static json_t *everything(const struct html *h, const struct lint_result *r)
{
    json_t *kinds = json_array(), *d = json_object();
    const struct {
        const char *name;
        uint64_t value;
    } totals[] = {{"frames", r->totals.frames},
                  {"roce", r->totals.roce},
                  {"cm", r->totals.cm},
                  {"corrupt", r->totals.corrupt},
                  {"cut", r->totals.cut},
                  {"violations", r->shown[LINT_VIOLATION]},
                  {"undecidable", r->shown[LINT_UNDECIDABLE]},
                  {"artefacts", r->shown[LINT_ARTEFACT]}};
    json_t *t = json_object();
    for (size_t i = 0; i < sizeof(totals) / sizeof(totals[0]); i++)
        json_object_set_new(t, totals[i].name, json_u(totals[i].value));
    for (unsigned k = 0; k < LINT_KINDS; k++)
        json_array_append_new(kinds, json_string(lint_kind_name((enum lint_kind)k)));
    json_object_set_new(d, "file", cli_json_text(r->path));
    json_object_set_new(d, "totals", t);
    json_object_set_new(d, "left_out", json_u(h->left_out));
    json_object_set_new(d, "kinds", kinds);
    json_object_set_new(d, "connections", connections(r));
    json_object_set_new(d, "findings", findings(r));
    json_object_set_new(d, "packets", packets(h, r));
    return d;
}

/* '<' would let a file's name or a dump line end the script element. */
static int put_json(const char *text, size_t len, void *to)
{
    for (size_t i = 0; i < len; i++)
        if ((text[i] == '<' ? fputs("\\u003c", to) : fputc(text[i], to)) == EOF)
            return -1;
    return 0;
}

static int html_end(struct lint_writer *w, const struct lint_result *r)
{
    struct html *h = (struct html *)w;
    const char *mark = strstr(page, MARK);
    json_t *d = everything(h, r);
    int rc = 0;
    errno = 0;
    if (fwrite(page, 1, (size_t)(mark - page), h->to) != (size_t)(mark - page) ||
        json_dump_callback(d, put_json, h->to, JSON_COMPACT | JSON_REAL_PRECISION(12)) < 0 ||
        fputs(mark + strlen(MARK), h->to) == EOF)
        rc = errno ? -errno : -EIO;
    if (fclose(h->to) == EOF && rc == 0)
        rc = errno ? -errno : -EIO;
    h->to = NULL;
    json_decref(d);
    return rc;
}

struct lint_writer *lint_html_new(const char *path)
{
    struct html *h = calloc(1, sizeof(*h));
    if (!h)
        return NULL;
    h->to = fopen(path, "we");
    if (!h->to) {
        free(h);
        return NULL;
    }
    h->writer = (struct lint_writer){.packet = html_packet, .end = html_end};
    return &h->writer;
}

void lint_html_free(struct lint_writer *w)
{
    struct html *h = (struct html *)w;
    if (!h)
        return;
    if (h->to)
        fclose(h->to);
    for (size_t i = 0; i < h->n; i++)
        free(h->shown[i].dump);
    free(h->shown);
    free(h);
}
