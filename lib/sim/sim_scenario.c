/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reading scenario files: lines of a keyword and fields, described by tables (sim_field.h); then
 * checks across lines. Nothing is allocated.
 */
#include "sim_scenario.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "fault.h"
#include "sim_field.h"
#include "sim_metric.h"

#define LINE_MAX_LEN 1024u
#define WORDS        72u

struct reader {
    struct sim_scenario *s;
    struct sim_error *err;
    unsigned line;
    uint32_t point; /* what is left of it for the sweeps to come */
    bool have_topology;
    char *word[WORDS];
    unsigned nwords;
    char text[LINE_MAX_LEN];     /* of the line, variables replaced; cut into words */
    char original[LINE_MAX_LEN]; /* ... and whole */
};

static int fail(const struct reader *r, unsigned line, const char *field, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static int fail(const struct reader *r, unsigned line, const char *field, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    r->err->line = line;
    snprintf(r->err->field, sizeof(r->err->field), "%s", field);
    vsnprintf(r->err->reason, sizeof(r->err->reason), format, ap);
    va_end(ap);
    return -EINVAL;
}

/* ---- fields ---- */

static int put(const struct reader *r, const struct sim_field *f, const char *text, void *base)
{
    void *at = (char *)base + f->off;
    double v = 0;
    unsigned i;
    switch (f->kind) {
    case SIM_F_FLAG:
        if (strcmp(text, "on") && strcmp(text, "off"))
            return fail(r, r->line, f->name, "'%.40s' is neither 'on' nor 'off'", text);
        *(bool *)at = !strcmp(text, "on");
        return 0;
    case SIM_F_CHOICE:
        for (i = 0; f->choices[i] && strcmp(f->choices[i], text); i++)
            ;
        if (!f->choices[i])
            return fail(r, r->line, f->name, "'%.40s' is unknown; one of them is '%s'", text,
                        f->choices[0]);
        *(unsigned *)at = i;
        return 0;
    case SIM_F_DIST:
        if (!(*(const struct sim_dist **)at = sim_dist_find(text)))
            return fail(r, r->line, f->name, "'%.40s' is not 'websearch' or 'hadoop'", text);
        return 0;
    case SIM_F_UNTIL:
        if (!strcmp(text, "forever")) {
            *(uint64_t *)at = 0;
            return 0;
        }
        break;
    default:
        break;
    }
    if (!sim_value(f->unit, text, &v))
        return fail(r, r->line, f->name, "'%.40s' is not %s", text, sim_value_like(f->unit));
    if (v < f->min || v > f->max)
        return fail(r, r->line, f->name, "%.40s is outside %.15g..%.15g", text, f->min, f->max);
    if (f->kind == SIM_F_DOUBLE)
        *(double *)at = v;
    else if (f->kind == SIM_F_U8)
        *(uint8_t *)at = (uint8_t)v;
    else if (f->kind == SIM_F_U32)
        *(uint32_t *)at = (uint32_t)v;
    else
        *(uint64_t *)at = (uint64_t)v;
    return 0;
}

/* The words from `first` on are NAME=VALUE of this table. */
static int fields(struct reader *r, unsigned first, const struct sim_field *table, void *base)
{
    uint64_t seen = 0;
    for (unsigned i = first; i < r->nwords; i++) {
        char *eq = strchr(r->word[i], '=');
        if (!eq)
            return fail(r, r->line, r->word[i], "a field is written NAME=VALUE");
        *eq = 0;
        unsigned k;
        for (k = 0; table[k].name && strcmp(table[k].name, r->word[i]); k++)
            ;
        if (!table[k].name)
            return fail(r, r->line, r->word[i], "'%s' has no such field", r->word[0]);
        if (seen >> k & 1)
            return fail(r, r->line, r->word[i], "it is there twice");
        seen |= 1ull << k;
        int err = put(r, &table[k], eq + 1, base);
        if (err)
            return err;
    }
    for (unsigned k = 0; table[k].name; k++)
        if (table[k].required && !(seen >> k & 1))
            return fail(r, r->line, table[k].name, "it is missing");
    return 0;
}

/* ---- variables ---- */

static struct sim_var *find_var(struct sim_scenario *s, const char *name, size_t len)
{
    for (unsigned i = 0; i < s->nvars; i++)
        if (strlen(s->var[i].name) == len && !memcmp(s->var[i].name, name, len))
            return &s->var[i];
    return NULL;
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

bool sim_scenario_set(struct sim_scenario *s, const char *name, const char *value)
{
    struct sim_var *v = find_var(s, name, strlen(name));
    if (!v) {
        if (s->nvars == SIM_VARS || !*name || strlen(name) >= sizeof(v->name))
            return false;
        v = &s->var[s->nvars++];
        *v = (struct sim_var){0};
        memcpy(v->name, name, strlen(name));
    }
    if (strlen(value) >= sizeof(v->value))
        return false;
    memcpy(v->value, value, strlen(value) + 1);
    v->given = true;
    return true;
}

static bool name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Replace $NAME by its value, cut off the comment, split into words. */
static int split(struct reader *r, const char *line, size_t len)
{
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        char one[2] = {line[i], 0};
        const char *add = one;
        if (line[i] == '#' && (i == 0 || line[i - 1] == ' ' || line[i - 1] == '\t'))
            break;
        if (!line[i])
            return fail(r, r->line, "", "a zero octet is no text");
        if (line[i] == '$') {
            size_t k = i + 1;
            while (k < len && name_char(line[k]))
                k++;
            const struct sim_var *v = find_var(r->s, line + i + 1, k - i - 1);
            if (!v)
                return fail(r, r->line, "$", "no variable '%.*s' has been set",
                            (int)(k - i - 1 < 40 ? k - i - 1 : 40), line + i + 1);
            add = v->value;
            i = k - 1;
        }
        size_t m = strlen(add);
        if (n + m >= LINE_MAX_LEN)
            return fail(r, r->line, "", "the line is longer than %u", LINE_MAX_LEN - 1);
        memcpy(r->text + n, add, m);
        n += m;
    }
    r->text[n] = 0;
    memcpy(r->original, r->text, n + 1);
    r->nwords = 0;
    for (char *p = r->text; *(p += strspn(p, " \t\r"));) {
        if (r->nwords == WORDS)
            return fail(r, r->line, "", "more than %u words", WORDS);
        r->word[r->nwords++] = p;
        p += strcspn(p, " \t\r");
        if (*p)
            *p++ = 0;
    }
    return 0;
}

/* What follows the first word. */
static const char *rest_of(const char *p)
{
    p += strspn(p, " \t\r");
    p += strcspn(p, " \t\r");
    return p + strspn(p, " \t\r");
}

/* What follows the keyword, as it was written. */
static const char *rest(const struct reader *r)
{
    return rest_of(r->original);
}

static int define(struct reader *r, const char *value, bool swept)
{
    const char *name = r->word[1];
    struct sim_var *v = find_var(r->s, name, strlen(name));
    if (v && v->given) { /* the caller's value wins */
        v->known = true;
        return 0;
    }
    for (const char *c = name; *c; c++)
        if (!name_char(*c))
            return fail(r, r->line, name, "a name has letters, digits and '_'");
    if (!sim_scenario_set(r->s, name, value))
        return fail(r, r->line, name, "too many variables, or too long");
    v = find_var(r->s, name, strlen(name));
    v->given = false;
    v->known = true;
    v->swept = swept;
    return 0;
}

static int line_set(struct reader *r)
{
    if (r->nwords != 3)
        return fail(r, r->line, "set", "it is written 'set NAME VALUE'");
    return define(r, r->word[2], false);
}

/* sweep NAME V V V, or sweep NAME A..B */
static int line_sweep(struct reader *r)
{
    unsigned a, b;
    char tail;
    if (r->nwords < 3)
        return fail(r, r->line, "sweep", "it is written 'sweep NAME VALUE VALUE ...' or 'A..B'");
    struct sim_var *v = find_var(r->s, r->word[1], strlen(r->word[1]));
    if (v && v->given) {
        v->known = true;
        return 0;
    }
    bool range = r->nwords == 3 && sscanf(r->word[2], "%u..%u%c", &a, &b, &tail) == 2;
    if (range && (b < a || b - a >= SIM_POINTS))
        return fail(r, r->line, r->word[1], "the range is empty or too long");
    uint32_t n = range ? b - a + 1 : r->nwords - 2;
    if ((uint64_t)r->s->points * n > SIM_POINTS)
        return fail(r, r->line, r->word[1], "more than %u combinations", SIM_POINTS);
    uint32_t pick = r->point % n;
    r->point /= n;
    r->s->points *= n;
    char number[16];
    snprintf(number, sizeof(number), "%u", range ? a + pick : 0);
    return define(r, range ? number : r->word[2 + pick], true);
}

/* ---- lines ---- */

static int line_topology(struct reader *r)
{
    struct sim_topo *t = &r->s->topo;
    unsigned i;
    if (r->nwords < 2)
        return fail(r, r->line, "topology", "its kind is missing");
    for (i = 0; sim_topologies[i].word && strcmp(sim_topologies[i].word, r->word[1]); i++)
        ;
    if (!sim_topologies[i].word)
        return fail(r, r->line, "topology",
                    "'%.40s' is not dumbbell, parking-lot, incast, leaf-spine or fat-tree",
                    r->word[1]);
    if (r->have_topology)
        return fail(r, r->line, "topology", "there is one already");
    r->have_topology = true;
    r->s->topology_line = r->line;
    *t = (struct sim_topo){.kind = (enum sim_topo_kind)i, .delay = 1000};
    int err = fields(r, 2, sim_topologies[i].fields, t);
    if (!err && t->kind == SIM_FAT_TREE && t->k % 2)
        err = fail(r, r->line, "k", "%u is odd", t->k);
    if (!err && (sim_topo_hosts(t) < 2 || sim_topo_hosts(t) > SIM_HOST_MAX))
        err = fail(r, r->line, "hosts", "between 2 and %u hosts are possible", SIM_HOST_MAX);
    return err;
}

static int line_host(struct reader *r)
{
    struct sim_host_params *p = &r->s->net.host;
    int err = fields(r, 1, sim_host_fields, p);
    if (!err && !wire_mtu_enum(p->mtu))
        err = fail(r, r->line, "mtu", "%u is not 256, 512, 1024, 2048 or 4096", p->mtu);
    return err;
}

static int line_switch(struct reader *r)
{
    struct sim_switch_params *p = &r->s->net.sw;
    r->s->switch_line = r->line;
    int err = fields(r, 1, sim_switch_fields, p);
    if (!err && p->kmax && p->kmin > p->kmax)
        err = fail(r, r->line, "kmin", "it is larger than kmax");
    return err;
}

static int line_noise(struct reader *r)
{
    struct sim_noise_params *p = &r->s->noise;
    int err = fields(r, 1, sim_noise_fields, p);
    if (!err && p->reorder > 0 && !p->late)
        err = fail(r, r->line, "late", "it is missing: how much later does a frame come?");
    return err;
}

static int line_cc(struct reader *r)
{
    char why[SIM_REASON];
    if (r->nwords != 2)
        return fail(r, r->line, "cc", "it is written ALGORITHM[:PRESET][,NAME=VALUE...]");
    if (cc_conf_parse(&r->s->net.host.cc, r->word[1], why, sizeof(why)))
        return fail(r, r->line, "cc", "%s", why);
    return 0;
}

static int line_load(struct reader *r, enum sim_load_kind kind)
{
    if (r->s->nloads == SIM_LOADS)
        return fail(r, r->line, r->word[0], "more than %u lines of traffic", SIM_LOADS);
    struct sim_load *l = &r->s->load[r->s->nloads++];
    *l = (struct sim_load){
        .kind = kind, .line = r->line, .times = 1, .message = 256 * 1024, .stop = SIM_NEVER};
    return fields(r, 1, sim_loads[kind].fields, l);
}

static int line_number(struct reader *r, enum sim_unit unit, uint64_t *out, double max)
{
    const struct sim_field f = {r->word[0], SIM_F_U64, unit, 0, 0, max, NULL, false};
    if (r->nwords != 2)
        return fail(r, r->line, r->word[0], "one value is expected");
    return put(r, &f, r->word[1], out);
}

static int line_payload(struct reader *r)
{
    bool skip = r->nwords == 2 && !strcmp(r->word[1], "skip");
    if (!skip && (r->nwords != 2 || strcmp(r->word[1], "carry")))
        return fail(r, r->line, "payload", "it is 'carry' or 'skip'");
    r->s->skip_payload = skip;
    return 0;
}

/* expect METRIC OP VALUE [within RATIO] */
static int line_expect(struct reader *r)
{
    static const char *const ops[] = {[SIM_LE] = "<=", [SIM_GE] = ">=", [SIM_EQ] = "="};
    struct sim_scenario *s = r->s;
    if (s->nexpects == SIM_EXPECTS)
        return fail(r, r->line, "expect", "more than %u of them", SIM_EXPECTS);
    struct sim_expect *x = &s->expect[s->nexpects];
    *x = (struct sim_expect){.line = r->line};
    unsigned op = 0;
    while (op < 3 && (r->nwords < 4 || strcmp(ops[op], r->word[2])))
        op++;
    bool within = r->nwords == 6 && !strcmp(r->word[4], "within");
    if (op == 3 || !(r->nwords == 4 || within) || within != (op == SIM_EQ))
        return fail(r, r->line, "expect",
                    "it is written 'METRIC <= N', 'METRIC >= N' or 'METRIC = N within RATIO'");
    if (strlen(r->word[1]) >= sizeof(x->metric))
        return fail(r, r->line, "expect", "no metric has such a long name");
    if (!sim_metric_known(r->word[1]))
        return fail(r, r->line, "expect", "there is no metric '%s'", r->word[1]);
    memcpy(x->metric, r->word[1], strlen(r->word[1]));
    x->op = (enum sim_op)op;
    if (!sim_value(SIM_COUNT, r->word[3], &x->value) ||
        (within && !sim_value(SIM_RATIO, r->word[5], &x->within)))
        return fail(r, r->line, "expect", "its value is not a number");
    s->nexpects++;
    return 0;
}

/* "host3", "switch0" as a node's number; the topology must be known. */
static int node(const struct reader *r, const char *text, uint32_t *out)
{
    unsigned n;
    char tail;
    uint32_t hosts = sim_topo_hosts(&r->s->topo);
    if (sscanf(text, "host%u%c", &n, &tail) == 1 && n < hosts)
        *out = n;
    else if (sscanf(text, "switch%u%c", &n, &tail) == 1 && n < SIM_NODES_MAX)
        *out = hosts + n;
    else
        return fail(r, r->line, r->word[0], "'%.40s' is not a node of the topology", text);
    return 0;
}

static int line_watch(struct reader *r)
{
    struct sim_scenario *s = r->s;
    if (!r->have_topology)
        return fail(r, r->line, "watch", "it must come behind the topology");
    if (s->nwatches == SIM_WATCHES || r->nwords != 3)
        return fail(r, r->line, "watch", "it is written 'watch NODE NODE', at most %u times",
                    SIM_WATCHES);
    struct sim_watch_port *w = &s->watch[s->nwatches++];
    w->line = r->line;
    int err = node(r, r->word[1], &w->from);
    return err ? err : node(r, r->word[2], &w->to);
}

/* NODE or NODE-NODE */
static int rule_place(struct reader *r, char *text, struct sim_rule *rule)
{
    if (!r->have_topology)
        return fail(r, r->line, "fault", "with 'at' it must come behind the topology");
    char *second = strchr(text, '-');
    rule->at = second ? SIM_AT_CABLE : SIM_AT_NODE;
    if (second)
        *second++ = 0;
    int err = node(r, text, &rule->a);
    return err || !second ? err : node(r, second, &rule->b);
}

static int line_fault(struct reader *r)
{
    struct sim_scenario *s = r->s;
    struct fault_error why;
    const char *text = rest(r);
    if (!*text || !sim_scenario_rule(s, text, r->line))
        return fail(r, r->line, "fault", "one rule of at most %u characters, at most %u times",
                    SIM_TEXT - 1, SIM_RULES);
    struct sim_rule *rule = &s->rule[s->nrules - 1];
    if (r->nwords > 2 && !strcmp(r->word[1], "at")) {
        int err = rule_place(r, r->word[2], rule);
        if (err)
            return err;
        text = rest_of(rest_of(text));
        memcpy(rule->text, text, strlen(text) + 1);
    }
    struct fault *f = fault_parse(text, strlen(text), 0, &why);
    bool one = f && fault_rules(f) == 1;
    fault_free(f);
    if (!f)
        return fail(r, r->line, "fault", "'%.60s', column %u: %s", text, why.column, why.text);
    return one ? 0 : fail(r, r->line, "fault", "a rule is missing");
}

/* when NAME=VALUE STATEMENT: leaves the statement. False: it does not apply. */
static bool applies(struct reader *r, int *err)
{
    *err = 0;
    while (r->nwords && !strcmp(r->word[0], "when")) {
        char *eq = r->nwords > 2 ? strchr(r->word[1], '=') : NULL;
        const struct sim_var *v = eq ? find_var(r->s, r->word[1], (size_t)(eq - r->word[1])) : NULL;
        if (!v) {
            *err = fail(r, r->line, "when",
                        "it is written 'when NAME=VALUE STATEMENT', NAME a variable set before");
            return false;
        }
        if (strcmp(v->value, eq + 1))
            return false;
        memmove(r->original, rest_of(rest(r)), strlen(rest_of(rest(r))) + 1);
        r->nwords -= 2;
        memmove(r->word, r->word + 2, r->nwords * sizeof(char *));
    }
    return true;
}

static int line(struct reader *r)
{
    struct sim_scenario *s = r->s;
    const char *w = r->word[0];
    for (unsigned i = 0; sim_loads[i].word; i++)
        if (!strcmp(w, sim_loads[i].word))
            return line_load(r, (enum sim_load_kind)i);
    if (!strcmp(w, "set"))
        return line_set(r);
    if (!strcmp(w, "sweep"))
        return line_sweep(r);
    if (!strcmp(w, "title")) {
        snprintf(s->title, sizeof(s->title), "%.*s", (int)sizeof(s->title) - 1, rest(r));
        return 0;
    }
    if (!strcmp(w, "seed"))
        return line_number(r, SIM_COUNT, &s->seed, 0x1p53);
    if (!strcmp(w, "duration"))
        return line_number(r, SIM_TIME, &s->duration, SIM_TIME_MAX);
    if (!strcmp(w, "sample"))
        return line_number(r, SIM_TIME, &s->sample, SIM_TIME_MAX);
    if (!strcmp(w, "measure"))
        return line_number(r, SIM_TIME, &s->measure, SIM_TIME_MAX);
    if (!strcmp(w, "payload"))
        return line_payload(r);
    if (!strcmp(w, "topology"))
        return line_topology(r);
    if (!strcmp(w, "host"))
        return line_host(r);
    if (!strcmp(w, "switch"))
        return line_switch(r);
    if (!strcmp(w, "noise"))
        return line_noise(r);
    if (!strcmp(w, "cc"))
        return line_cc(r);
    if (!strcmp(w, "expect"))
        return line_expect(r);
    if (!strcmp(w, "watch"))
        return line_watch(r);
    if (!strcmp(w, "fault"))
        return line_fault(r);
    return fail(r, r->line, w, "it is not a keyword");
}

/* ---- checks across lines ---- */

static int check_load(const struct reader *r, const struct sim_load *l, uint32_t hosts)
{
    if (l->from >= hosts)
        return fail(r, l->line, l->kind == SIM_ALL_REDUCE ? "first" : "from",
                    "there is no host %u: the topology has %u", l->from, hosts);
    if (l->to >= hosts)
        return fail(r, l->line, "to", "there is no host %u: the topology has %u", l->to, hosts);
    if (l->kind == SIM_FLOW && l->from == l->to)
        return fail(r, l->line, "to", "it is the host that the flow comes from");
    if (l->kind == SIM_BURST && l->count >= hosts)
        return fail(r, l->line, "senders", "there are %u other hosts", hosts - 1);
    if (l->kind == SIM_BURST && l->times > 1 && !l->every)
        return fail(r, l->line, "every", "several bursts need an interval");
    if (l->kind == SIM_ALL_REDUCE && l->from + (uint64_t)l->hosts > hosts)
        return fail(r, l->line, "hosts", "the topology has %u hosts", hosts);
    if (l->kind == SIM_ALL_REDUCE && l->size / (l->hosts ? l->hosts : hosts) > 1u << 30)
        return fail(r, l->line, "size", "more than 1 GiB a step");
    return 0;
}

static int check(struct reader *r)
{
    const struct sim_scenario *s = r->s;
    if (!r->have_topology)
        return fail(r, 0, "topology", "it is missing");
    if (!s->nloads)
        return fail(r, 0, "flow", "there is no traffic");
    if (!s->duration)
        return fail(r, 0, "duration", "it is missing");
    if (s->sample && s->duration / s->sample > 1000000)
        return fail(r, 0, "sample", "more than a million samples");
    if (s->measure >= s->duration)
        return fail(r, 0, "measure", "it is not before the end");
    for (unsigned i = 0; i < s->nloads; i++) {
        int err = check_load(r, &s->load[i], sim_topo_hosts(&s->topo));
        if (err)
            return err;
    }
    return 0;
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
}

int sim_scenario_parse(struct sim_scenario *s, const char *text, size_t len, uint32_t point,
                       struct sim_error *err)
{
    struct reader r = {.s = s, .err = err, .point = point};
    *err = (struct sim_error){0};
    for (size_t at = 0; at < len;) {
        const char *end = memchr(text + at, '\n', len - at);
        size_t n = end ? (size_t)(end - text) - at : len - at;
        r.line++;
        int rc = split(&r, text + at, n);
        if (!rc && r.nwords && applies(&r, &rc))
            rc = line(&r);
        if (rc)
            return rc;
        at += n + 1;
    }
    s->net.sw.lossless = (uint8_t)(1u << (s->net.host.dscp >> 3));
    return check(&r);
}
