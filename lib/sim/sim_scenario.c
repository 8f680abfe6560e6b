/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reading scenario files: their statements, each a keyword and fields, described by tables
 * (sim_field.h); then checks across lines. Words, variables and sweeps: sim_reader.h. Files of
 * other simulators: sim_foreign.h.
 */
#include "sim_scenario.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fault.h"
#include "sim_foreign.h"
#include "sim_metric.h"
#include "sim_reader.h"

/* ---- statements ---- */

/* The list with room for one more than its n entries; it grows at powers of two. */
static int room(const struct sim_reader *r, void *list, unsigned n, size_t size)
{
    void *old, *more;
    if (n && (n < 8 || n & (n - 1)))
        return 0;
    memcpy(&old, list, sizeof(old));
    more = realloc(old, (n ? 2ul * n : 8) * size);
    if (!more) {
        sim_fail(r, r->line, r->word[0], "out of memory");
        return -ENOMEM;
    }
    memcpy(list, &more, sizeof(more));
    return 0;
}

bool sim_scenario_rule(struct sim_scenario *s, const char *text, unsigned line)
{
    if (s->nrules == SIM_RULES || strlen(text) >= SIM_TEXT)
        return false;
    struct sim_rule *rule = &s->rule[s->nrules++];
    *rule = (struct sim_rule){.line = line};
    memcpy(rule->text, text, strlen(text) + 1);
    return true;
}

static int line_topology(struct sim_reader *r)
{
    struct sim_topo *t = &r->s->topo;
    unsigned i;
    if (r->nwords < 2)
        return sim_fail(r, r->line, "topology", "its kind is missing");
    for (i = 0; sim_topologies[i].word && strcmp(sim_topologies[i].word, r->word[1]); i++)
        ;
    if (!sim_topologies[i].word)
        return sim_fail(r, r->line, "topology",
                        "'%.40s' is not dumbbell, parking-lot, incast, leaf-spine or fat-tree",
                        r->word[1]);
    if (r->have_topology)
        return sim_fail(r, r->line, "topology", "there is one already");
    r->have_topology = true;
    r->s->topology_line = r->line;
    *t = (struct sim_topo){.kind = (enum sim_topo_kind)i, .delay = 1000};
    int err = sim_read_fields(r, 2, sim_topologies[i].fields, t);
    if (!err && t->kind == SIM_FAT_TREE && t->k % 2)
        err = sim_fail(r, r->line, "k", "%u is odd", t->k);
    if (!err && (sim_topo_hosts(t) < 2 || sim_topo_hosts(t) > SIM_HOST_MAX))
        err = sim_fail(r, r->line, "hosts", "between 2 and %u hosts are possible", SIM_HOST_MAX);
    return err;
}

static int line_host(struct sim_reader *r)
{
    struct sim_host_params *p = &r->s->net.host;
    int err = sim_read_fields(r, 1, sim_host_fields, p);
    if (!err && !wire_mtu_enum(p->mtu))
        err = sim_fail(r, r->line, "mtu", "%u is not 256, 512, 1024, 2048 or 4096", p->mtu);
    return err;
}

static int line_switch(struct sim_reader *r)
{
    struct sim_switch_params *p = &r->s->net.sw;
    r->s->switch_line = r->line;
    int err = sim_read_fields(r, 1, sim_switch_fields, p);
    if (!err && p->kmax && p->kmin > p->kmax)
        err = sim_fail(r, r->line, "kmin", "it is larger than kmax");
    for (unsigned i = 1; i < r->nwords; i++) {
        if (!strcmp(r->word[i], "kmin") || !strcmp(r->word[i], "pmax"))
            r->marking = r->line;
        r->have_kmax |= !strcmp(r->word[i], "kmax");
        r->have_pmax |= !strcmp(r->word[i], "pmax");
        if (!strcmp(r->word[i], "kmin"))
            r->kmin = r->line;
    }
    return err;
}

static int line_noise(struct sim_reader *r)
{
    struct sim_noise_params *p = &r->s->noise;
    int err = sim_read_fields(r, 1, sim_noise_fields, p);
    if (!err && p->reorder > 0 && !p->late)
        err = sim_fail(r, r->line, "late", "it is missing: the extra delay of a reordered frame");
    return err;
}

static int line_cc(struct sim_reader *r)
{
    char why[SIM_REASON];
    if (r->nwords != 2)
        return sim_fail(r, r->line, "cc", "it is written ALGORITHM[:PRESET][,NAME=VALUE...]");
    if (sim_read_cc(&r->s->net.host.cc, r->word[1], why, sizeof(why)))
        return sim_fail(r, r->line, "cc", "%s", why);
    return 0;
}

static int line_load(struct sim_reader *r, enum sim_load_kind kind)
{
    int err = room(r, &r->s->load, r->s->nloads, sizeof(*r->s->load));
    if (err)
        return err;
    struct sim_load *l = &r->s->load[r->s->nloads++];
    *l = (struct sim_load){
        .kind = kind, .line = r->line, .times = 1, .message = 256 * 1024, .stop = SIM_NEVER};
    return sim_read_fields(r, 1, sim_loads[kind].fields, l);
}

static int line_payload(struct sim_reader *r)
{
    bool skip = r->nwords == 2 && !strcmp(r->word[1], "skip");
    if (!skip && (r->nwords != 2 || strcmp(r->word[1], "carry")))
        return sim_fail(r, r->line, "payload", "'%.40s' is neither 'carry' nor 'skip'",
                        sim_reader_rest(r));
    r->s->skip_payload = skip;
    return 0;
}

static const char *metric_name(const void *arg, unsigned i)
{
    (void)arg;
    return sim_metrics[i].name;
}

/* expect METRIC OP VALUE [within RATIO] */
static int line_expect(struct sim_reader *r)
{
    static const char *const ops[] = {[SIM_LE] = "<=", [SIM_GE] = ">=", [SIM_EQ] = "="};
    struct sim_scenario *s = r->s;
    int err = room(r, &s->expect, s->nexpects, sizeof(*s->expect));
    if (err)
        return err;
    struct sim_expect *x = &s->expect[s->nexpects];
    *x = (struct sim_expect){.line = r->line};
    unsigned op = 0;
    while (op < 3 && (r->nwords < 4 || strcmp(ops[op], r->word[2])))
        op++;
    bool within = r->nwords == 6 && !strcmp(r->word[4], "within");
    if (op == 3 || !(r->nwords == 4 || within) || within != (op == SIM_EQ))
        return sim_fail(r, r->line, "expect",
                        "it is written 'METRIC <= N', 'METRIC >= N' or 'METRIC = N within RATIO'");
    if (strlen(r->word[1]) >= sizeof(x->metric))
        return sim_fail(r, r->line, "expect", "no metric has such a long name");
    if (!sim_metric_known(r->word[1]))
        return sim_fail_listing(r, r->line, "expect", metric_name, NULL, "there is no metric '%s'",
                                r->word[1]);
    memcpy(x->metric, r->word[1], strlen(r->word[1]));
    x->op = (enum sim_op)op;
    if (!sim_value(SIM_COUNT, r->word[3], &x->value))
        return sim_fail(r, r->line, "expect", "'%.40s' is not a number", r->word[3]);
    if (within && !sim_value(SIM_RATIO, r->word[5], &x->within))
        return sim_fail(r, r->line, "expect", "'%.40s' is not %s", r->word[5],
                        sim_value_like(SIM_RATIO));
    s->nexpects++;
    return 0;
}

/* "host3", "switch0" as a node's number; the topology must be known. */
static int node(const struct sim_reader *r, const char *text, uint32_t *out)
{
    unsigned n;
    char tail;
    uint32_t hosts = sim_topo_hosts(&r->s->topo);
    if (sscanf(text, "host%u%c", &n, &tail) == 1 && n < hosts)
        *out = n;
    else if (sscanf(text, "switch%u%c", &n, &tail) == 1 && n < SIM_NODES_MAX)
        *out = hosts + n;
    else
        return sim_fail(r, r->line, r->word[0], "'%.40s' is not a node of the topology", text);
    return 0;
}

static int line_watch(struct sim_reader *r)
{
    struct sim_scenario *s = r->s;
    if (!r->have_topology)
        return sim_fail(r, r->line, "watch", "it must follow the topology");
    if (r->nwords != 3)
        return sim_fail(r, r->line, "watch", "it is written 'watch NODE NODE'");
    int err = room(r, &s->watch, s->nwatches, sizeof(*s->watch));
    if (err)
        return err;
    struct sim_watch_port *w = &s->watch[s->nwatches++];
    *w = (struct sim_watch_port){.line = r->line};
    err = node(r, r->word[1], &w->from);
    return err ? err : node(r, r->word[2], &w->to);
}

/* NODE or NODE-NODE */
static int rule_place(struct sim_reader *r, char *text, struct sim_rule *rule)
{
    if (!r->have_topology)
        return sim_fail(r, r->line, "fault", "with 'at' it must follow the topology");
    char *second = strchr(text, '-');
    rule->at = second ? SIM_AT_CABLE : SIM_AT_NODE;
    if (second)
        *second++ = 0;
    int err = node(r, text, &rule->a);
    return err || !second ? err : node(r, second, &rule->b);
}

static int line_fault(struct sim_reader *r)
{
    struct sim_scenario *s = r->s;
    struct fault_error why;
    const char *text = sim_reader_rest(r);
    if (!*text || !sim_scenario_rule(s, text, r->line))
        return sim_fail(r, r->line, "fault", "one rule of at most %u characters, at most %u times",
                        SIM_TEXT - 1, SIM_RULES);
    struct sim_rule *rule = &s->rule[s->nrules - 1];
    if (r->nwords > 2 && !strcmp(r->word[1], "at")) {
        int err = rule_place(r, r->word[2], rule);
        if (err)
            return err;
        text = sim_word_rest(sim_word_rest(text));
        memcpy(rule->text, text, strlen(text) + 1);
    }
    struct fault *f = fault_parse(text, strlen(text), 0, &why);
    bool one = f && fault_rules(f) == 1;
    fault_free(f);
    if (!f)
        return sim_fail(r, r->line, "fault", "'%.60s', column %u: %s", text, why.column, why.text);
    return one ? 0 : sim_fail(r, r->line, "fault", "a rule is missing");
}

static int line_title(struct sim_reader *r)
{
    struct sim_scenario *s = r->s;
    snprintf(s->title, sizeof(s->title), "%.*s", (int)sizeof(s->title) - 1, sim_reader_rest(r));
    return 0;
}

/* Statements that are one number. */
#define NUMBER(word, unit, member, min, max)                                                       \
    {                                                                                              \
        word, SIM_F_U64, unit, offsetof(struct sim_scenario, member), min, max, NULL, false        \
    }
static const struct sim_field numbers[] = {
    NUMBER("seed", SIM_COUNT, seed, 0, 0x1p53),
    NUMBER("duration", SIM_TIME, duration, 1, SIM_TIME_MAX),
    NUMBER("sample", SIM_TIME, sample, 0, SIM_TIME_MAX),
    NUMBER("measure", SIM_TIME, measure, 0, SIM_TIME_MAX),
};

static int line_number(struct sim_reader *r, const struct sim_field *f)
{
    if (r->nwords != 2)
        return sim_fail(r, r->line, r->word[0], "one value is expected");
    if (!strcmp(f->name, "sample"))
        r->sample = r->line;
    if (!strcmp(f->name, "measure"))
        r->measure = r->line;
    return sim_read_value(r, f, r->word[1], r->s);
}

static const struct {
    const char *word;
    int (*read)(struct sim_reader *r);
    bool once;
} statements[] = {
    {"cc", line_cc, true},
    {"expect", line_expect, false},
    {"fault", line_fault, false},
    {"host", line_host, false},
    {"noise", line_noise, false},
    {"payload", line_payload, true},
    {"set", sim_read_set, false},
    {"sweep", sim_read_sweep, false},
    {"switch", line_switch, false},
    {"title", line_title, true},
    {"topology", line_topology, false},
    {"watch", line_watch, false},
};

/* A single value may be set once; a line with a condition may set another. */
static int once(struct sim_reader *r, unsigned bit)
{
    if (r->when)
        return 0;
    if (r->said >> bit & 1)
        return sim_fail(r, r->line, r->word[0], "'%.40s': there is one already",
                        sim_reader_rest(r));
    r->said |= 1u << bit;
    return 0;
}

/* The words that a line may begin with, one after the other; NULL = no more. */
static const char *keyword(const void *arg, unsigned i)
{
    const unsigned nnumbers = sizeof(numbers) / sizeof(numbers[0]);
    const unsigned nstatements = sizeof(statements) / sizeof(statements[0]);
    (void)arg;
    if (i < nstatements)
        return statements[i].word;
    i -= nstatements;
    if (i < nnumbers)
        return numbers[i].name;
    i -= nnumbers;
    return i == 0 ? "when" : sim_loads[i - 1].word;
}

static int line(struct sim_reader *r)
{
    const unsigned nnumbers = sizeof(numbers) / sizeof(numbers[0]);
    const char *w = r->word[0];
    for (unsigned i = 0; sim_loads[i].word; i++)
        if (!strcmp(w, sim_loads[i].word))
            return line_load(r, (enum sim_load_kind)i);
    for (unsigned i = 0; i < nnumbers; i++)
        if (!strcmp(w, numbers[i].name))
            return once(r, i) ? -EINVAL : line_number(r, &numbers[i]);
    for (unsigned i = 0; i < sizeof(statements) / sizeof(statements[0]); i++)
        if (!strcmp(w, statements[i].word))
            return statements[i].once && once(r, nnumbers + i) ? -EINVAL : statements[i].read(r);
    const char *what = sim_foreign(r->word, r->nwords);
    if (what && !r->any)
        return sim_fail(r, r->line, w, "%s", what);
    return sim_fail_listing(r, r->line, w, keyword, NULL, "it is not a keyword");
}

/* ---- checks across lines ---- */

static int check_load(const struct sim_reader *r, const struct sim_load *l, uint32_t hosts)
{
    const struct sim_scenario *s = r->s;
    if (l->from >= hosts)
        return sim_fail(r, l->line, l->kind == SIM_ALL_REDUCE ? "first" : "from",
                        "there is no host %u: the topology has hosts 0 to %u", l->from, hosts - 1);
    if (l->to >= hosts)
        return sim_fail(r, l->line, "to", "there is no host %u: the topology has hosts 0 to %u",
                        l->to, hosts - 1);
    if (l->kind == SIM_FLOW && l->size && l->stop != SIM_NEVER)
        return sim_fail(r, l->line, "stop", "only a flow with size=forever has one");
    if (l->jitter && l->start + l->jitter >= s->duration)
        return sim_fail(r, l->line, "jitter",
                        "a flow could begin at %" PRIu64 "ns, not before the end, %" PRIu64 "ns",
                        l->start + l->jitter, s->duration);
    if (l->start >= s->duration)
        return sim_fail(r, l->line, "start", "%" PRIu64 "ns is not before the end, %" PRIu64 "ns",
                        l->start, s->duration);
    if (l->kind == SIM_BURST && (l->times - 1) * l->every >= s->duration - l->start - l->jitter)
        return sim_fail(r, l->line, "times",
                        "the last of %u bursts would begin at %" PRIu64
                        "ns, not before the end, %" PRIu64 "ns",
                        l->times, l->start + (l->times - 1) * l->every, s->duration);
    if (l->stop <= l->start + l->jitter)
        return sim_fail(r, l->line, "stop", "%" PRIu64 "ns is not after start, %" PRIu64 "ns%s",
                        l->stop, l->start + l->jitter, l->jitter ? " with its jitter" : "");
    if (l->kind == SIM_FLOW && l->from == l->to)
        return sim_fail(r, l->line, "to", "it is the host that the flow comes from");
    if (l->kind == SIM_BURST && l->count >= hosts)
        return sim_fail(r, l->line, "senders", "there are %u other hosts", hosts - 1);
    if (l->kind == SIM_BURST && l->times > 1 && !l->every)
        return sim_fail(r, l->line, "every", "several bursts need an interval");
    uint32_t ring = l->hosts ? l->hosts : hosts;
    if (l->kind == SIM_ALL_REDUCE && l->from + (uint64_t)ring > hosts)
        return sim_fail(r, l->line, "hosts", "%u from host %u on, but the topology has %u hosts",
                        ring, l->from, hosts);
    if (l->kind == SIM_ALL_REDUCE && l->size / ring > 1u << 30)
        return sim_fail(r, l->line, "size", "more than 1 GiB a step");
    return 0;
}

static int check(struct sim_reader *r)
{
    const struct sim_scenario *s = r->s;
    if (!r->have_topology)
        return sim_fail(r, 0, "topology", "it is missing");
    if (!s->nloads)
        return sim_fail(r, 0, "flow", "there is no traffic");
    if (!s->duration)
        return sim_fail(r, 0, "duration", "it is missing");
    if (s->sample && s->duration / s->sample > 1000000)
        return sim_fail(r, r->sample, "sample", "more than a million samples");
    if (s->sample > s->duration)
        return sim_fail(r, r->sample, "sample",
                        "%" PRIu64 "ns is longer than the duration, %" PRIu64 "ns", s->sample,
                        s->duration);
    if (r->marking && !r->have_kmax)
        return sim_fail(r, r->marking, "kmax", "it is missing: nothing is marked without it");
    if (r->kmin && !r->have_pmax && s->net.sw.kmin < s->net.sw.kmax)
        return sim_fail(r, r->kmin, "pmax",
                        "it is missing: nothing is marked between kmin and kmax without it");
    if (s->measure >= s->duration)
        return sim_fail(r, r->measure, "measure",
                        "%" PRIu64 "ns is not before the end, %" PRIu64 "ns", s->measure,
                        s->duration);
    for (unsigned i = 0; i < s->nloads; i++) {
        int err = check_load(r, &s->load[i], sim_topo_hosts(&s->topo));
        if (err)
            return err;
        if (s->load[i].cc.type)
            cc_conf_fit(&r->s->load[i].cc, s->topo.rate);
    }
    /* As the engine does. It is done here, too, so that the summary shows the values in force. */
    cc_conf_fit(&r->s->net.host.cc, s->topo.rate);
    return 0;
}

void sim_scenario_free(struct sim_scenario *s)
{
    free(s->load);
    free(s->watch);
    free(s->expect);
    s->load = NULL;
    s->watch = NULL;
    s->expect = NULL;
    s->nloads = s->nwatches = s->nexpects = 0;
}

void sim_scenario_init(struct sim_scenario *s)
{
    *s = (struct sim_scenario){
        .seed = 1,
        .skip_payload = true,
        .net.host = {.mtu = 1024, .window = 256, .timeout = 10, .retries = 7, .dscp = 26},
        .net.sw = {.buffer = 16 << 20, .alpha = 1, .xon_gap = 4096, .lossless = 1u << 3},
        .points = 1,
    };
    cc_conf_init(&s->net.host.cc, cc_type_find("none"));
    s->net.host.cc.v[CC_P_shrink] = 0; /* LR-16 */
}

int sim_scenario_parse(struct sim_scenario *s, const char *text, size_t len, uint32_t point,
                       struct sim_error *err)
{
    struct sim_reader r = {.s = s, .err = err, .point = point};
    *err = (struct sim_error){0};
    if (len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) { /* the mark that some editors begin with */
        text += 3;
        len -= 3;
    }
    for (size_t at = 0; at < len;) {
        const char *end = memchr(text + at, '\n', len - at);
        size_t n = end ? (size_t)(end - text) - at : len - at;
        r.line++;
        int rc = sim_read_words(&r, text + at, n);
        if (!rc && r.nwords && sim_read_when(&r, &rc))
            rc = line(&r);
        if (rc)
            return rc;
        r.any |= r.nwords > 0;
        at += n + 1;
    }
    s->net.sw.lossless = (uint8_t)(1u << (s->net.host.dscp >> 3));
    return check(&r);
}
