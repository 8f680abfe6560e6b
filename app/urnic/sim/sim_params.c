/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Parameters of a simulation, from the tables of the scenario reader.
 */
#include "sim_params.h"

#include <inttypes.h>
#include <math.h>

#include "sim_field.h"
#include "urnic/urnic.h"

/* Parameters that a scenario may leave to the topology. */
static struct sim_topo topology(const struct sim *sim)
{
    struct sim_topo t = sim->s->topo;
    t.core = t.core ? t.core : t.rate;
    return t;
}

static struct sim_load load(const struct sim *sim, unsigned i)
{
    struct sim_load l = sim->s->load[i];
    if (l.kind == SIM_FLOW && !l.count)
        l.count = 1;
    if (l.kind == SIM_BURST && !l.count)
        l.count = sim->net.nhosts - 1;
    if (l.kind == SIM_ALL_REDUCE && !l.hosts)
        l.hosts = sim->net.nhosts;
    return l;
}

/* The head-room of all ports with PFC, which follows from their rates and delays unless given. */
static bool headroom(const struct sim *sim, uint64_t *least, uint64_t *most)
{
    *least = UINT64_MAX, *most = 0;
    for (uint32_t i = 0; i < sim->net.nswitches; i++) {
        const struct sim_switch *sw = &sim->net.sw[i];
        for (unsigned k = 0; sw->p.pfc && k < sw->node.nports; k++) {
            *least = sw->headroom[k] < *least ? sw->headroom[k] : *least;
            *most = sw->headroom[k] > *most ? sw->headroom[k] : *most;
        }
    }
    return *most > 0;
}

/* "host3" or "switch0" */
static const char *node_name(const struct sim *sim, uint32_t node)
{
    return sim_net_node(&sim->net, node)->name;
}

static void rule_place(const struct sim *sim, const struct sim_rule *r, char *text, size_t size)
{
    if (r->at == SIM_AT_HOSTS)
        *text = 0;
    else if (r->at == SIM_AT_NODE)
        snprintf(text, size, "%s", node_name(sim, r->a));
    else
        snprintf(text, size, "%s-%s", node_name(sim, r->a), node_name(sim, r->b));
}

/* ---- text ---- */

static void statement(FILE *f, const char *word, const struct sim_field *table, const void *base)
{
    char text[CC_TEXT];
    fputs(word, f);
    for (; table->name; table++)
        if (sim_field_value(table, base, NULL, text, sizeof(text)))
            fprintf(f, " %s=%s", table->name, text);
}

static void time_of(FILE *f, const char *word, uint64_t ns)
{
    char text[64];
    sim_value_format(SIM_TIME, (double)ns, text, sizeof(text));
    fprintf(f, "%s %s, ", word, text);
}

void sim_params_text(FILE *f, const struct sim *sim)
{
    const struct sim_scenario *s = sim->s;
    const struct sim_topo topo = topology(sim);
    uint64_t least, most;
    char text[CC_TEXT];
    fprintf(f, "  seed %" PRIu64 ", ", s->seed);
    time_of(f, "duration", s->duration);
    time_of(f, "sample", s->sample);
    time_of(f, "measure", s->measure);
    fprintf(f, "payload %s, urnic %s\n", s->skip_payload ? "skip" : "carry", urnic_version());
    snprintf(text, sizeof(text), "  topology %s", sim_topologies[topo.kind].word);
    statement(f, text, sim_topologies[topo.kind].fields, &topo);
    statement(f, "\n  host", sim_host_fields, &s->net.host);
    statement(f, "\n  switch", sim_switch_fields, &s->net.sw);
    if (headroom(sim, &least, &most))
        fprintf(f, " # head-room %" PRIu64 " to %" PRIu64, least, most);
    statement(f, "\n  noise", sim_noise_fields, &s->noise);
    cc_conf_format(&s->net.host.cc, text, sizeof(text));
    fprintf(f, "\n  cc %s\n", text);
    if (!cc_conf_fits(&s->net.host.cc, topo.rate, text, sizeof(text)))
        fprintf(f, "  # cc: %s\n", text);
    for (unsigned i = 0; i < s->nloads; i++) {
        const struct sim_load l = load(sim, i);
        fputs("  ", f);
        statement(f, sim_loads[l.kind].word, sim_loads[l.kind].fields, &l);
        fputc('\n', f);
        if (l.cc.type && !cc_conf_fits(&l.cc, topo.rate, text, sizeof(text)))
            fprintf(f, "  # cc: %s\n", text);
    }
    for (uint32_t i = 0; i < sim->nqueues; i++)
        fprintf(f, "  watch %s %s\n", sim->watched[i]->node->name,
                sim->watched[i]->peer->node->name);
    for (unsigned i = 0; i < s->nrules; i++) {
        rule_place(sim, &s->rule[i], text, sizeof(text));
        fprintf(f, "  fault %s%s%s%s\n", *text ? "at " : "", text, *text ? " " : "",
                s->rule[i].text);
    }
}

/* ---- JSON ---- */

/* Whole numbers are written as such. */
static json_t *number(double v)
{
    return v == floor(v) && v < 0x1p53 ? json_integer((json_int_t)v) : json_real(v);
}

static json_t *cc_object(const struct cc_conf *c)
{
    json_t *o = json_pack("{s:s,s:s}", "algorithm", c->type->name, "preset", c->preset);
    for (unsigned i = 0; i < CC_PARAM_MAX; i++) {
        const struct cc_param_info *p = &cc_params[i];
        char text[32];
        if (!(c->type->uses & 1ull << i))
            continue;
        cc_value_format(p->unit, c->v[i], text, sizeof(text));
        json_object_set_new(o, p->name,
                            p->unit == CC_SCOPE || p->unit == CC_RECOVERY ? json_string(text)
                            : p->unit == CC_FLAG  ? json_boolean(c->v[i] != 0)
                            : p->unit == CC_RATIO ? number((double)c->v[i] / CC_ONE)
                                                  : json_integer((json_int_t)c->v[i]));
    }
    return o;
}

static const struct cc_conf *cc_field(const struct sim_field *f, const void *base)
{
    return (const struct cc_conf *)(const void *)((const char *)base + f->off);
}

static json_t *object(const struct sim_field *table, const void *base)
{
    json_t *o = json_object();
    for (; table->name; table++) {
        char text[CC_TEXT];
        double v;
        if (!sim_field_value(table, base, &v, text, sizeof(text)))
            continue;
        bool word = table->kind == SIM_F_CHOICE || table->kind == SIM_F_DIST ||
                    (table->kind == SIM_F_UNTIL && v == 0);
        json_object_set_new(o, table->name,
                            table->kind == SIM_F_CC     ? cc_object(cc_field(table, base))
                            : word                      ? json_string(text)
                            : table->kind == SIM_F_FLAG ? json_boolean(v != 0)
                                                        : number(v));
    }
    return o;
}

/* The same for a statement, with its kind before the fields. */
static json_t *kind(const struct sim_statement *st, const void *base)
{
    json_t *o = json_pack("{s:s}", "kind", st->word), *fields = object(st->fields, base);
    json_object_update(o, fields);
    json_decref(fields);
    return o;
}

json_t *sim_params_json(const struct sim *sim)
{
    const struct sim_scenario *s = sim->s;
    const struct sim_topo topo = topology(sim);
    uint64_t least, most;
    char place[40];
    json_t *traffic = json_array(), *watch = json_array(), *faults = json_array();
    json_t *sw = object(sim_switch_fields, &s->net.sw);
    if (headroom(sim, &least, &most))
        json_object_set_new(sw, "headroom_in_force",
                            json_pack("[I,I]", (json_int_t)least, (json_int_t)most));
    for (unsigned i = 0; i < s->nloads; i++) {
        const struct sim_load l = load(sim, i);
        json_array_append_new(traffic, kind(&sim_loads[l.kind], &l));
    }
    for (uint32_t i = 0; i < sim->nqueues; i++)
        json_array_append_new(watch, json_pack("[s,s]", sim->watched[i]->node->name,
                                               sim->watched[i]->peer->node->name));
    for (unsigned i = 0; i < s->nrules; i++) {
        rule_place(sim, &s->rule[i], place, sizeof(place));
        json_array_append_new(faults, json_pack("{s:s,s:s}", "at", *place ? place : "hosts", "rule",
                                                s->rule[i].text));
    }
    return json_pack(
        "{s:I,s:I,s:I,s:I,s:s,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "seed", (json_int_t)s->seed,
        "duration", (json_int_t)s->duration, "sample", (json_int_t)s->sample, "measure",
        (json_int_t)s->measure, "payload", s->skip_payload ? "skip" : "carry", "topology",
        kind(&sim_topologies[topo.kind], &topo), "host", object(sim_host_fields, &s->net.host),
        "switch", sw, "noise", object(sim_noise_fields, &s->noise), "cc",
        cc_object(&s->net.host.cc), "traffic", traffic, "watch", watch, "faults", faults);
}
