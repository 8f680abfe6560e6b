/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Fault rules on the wires.
 */
#include "sim_fault.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fault_hold.h"
#include "wire_bytes.h"

#define HELD_MOST 65536u /* frames held at a place */

struct place { /* of rules */
    struct sim_fault *sf;
    const struct sim_rule *at; /* any of its rules: all have the same place */
    struct fault *f;
    struct fault_hold *hold;
    struct sim_event due;
};

struct sim_fault {
    struct sim_world *w;
    struct sim_port *port; /* all, by id */
    uint32_t nhosts, nports;
    uint32_t *places; /* by port: a bit per place with rules on its wire */
    uint32_t *from_b; /* by port: a bit per place at which its frames go b->a */
    struct place place[SIM_RULES];
    unsigned nplaces;
    uint8_t place_of[SIM_RULES], rule_of[SIM_RULES]; /* by rule of the scenario */
};
_Static_assert(SIM_RULES <= 32, "a bit per place");

/* ---- one frame ---- */

/* Is it still a frame that the network can carry to a host? */
static bool addressed(const struct sim_fault *sf, struct sim_pkt *p)
{
    return p->len >= SIM_FRAME_HEAD && sim_pkt_classify(p) && p->dst < sf->nhosts;
}

static void inject(struct sim_fault *sf, struct sim_port *at, const struct fault_inject *in,
                   uint64_t now)
{
    /* A packet injected into IPv4 is never longer than this. */
    struct sim_pkt *p = in->len <= SIM_DATA_MIN ? sim_pkt_new(&sf->w->pool) : NULL;
    if (!p) {
        sf->w->failed = true;
        return;
    }
    memcpy(p->data, in->data, in->len);
    p->len = p->hdr = (uint8_t)in->len;
    p->flags = SIM_PKT_FAULTED;
    if (wire_get16(p->data + 12) == WIRE_ETHERTYPE_PAUSE) {
        p->flags |= SIM_PKT_PAUSE;
        p->prio = SIM_PRIOS - 1;
        p->tag = 0;
    } else if (!addressed(sf, p)) {
        sim_pkt_free(&sf->w->pool, p);
        return;
    }
    sim_port_arrive(at, p, now);
}

static void wake(struct place *pl)
{
    uint64_t at = fault_hold_deadline(pl->hold);
    if (at != UINT64_MAX && (!sim_event_pending(&pl->due) || at < pl->due.at))
        sim_call(pl->sf->w, &pl->due, at);
}

static bool hold(struct place *pl, struct sim_port *to, struct sim_pkt *p, enum fault_dir dir,
                 const struct fault_out *out, uint64_t now)
{
    if (!fault_hold_add(pl->hold, p, dir, out, now))
        return false;
    p->in = to->id; /* remembers the port until the frame arrives */
    wake(pl);
    return true;
}

/* Send duplicates with the frame, or at once if the frame is held to be overtaken. */
static void copies(struct place *pl, struct sim_port *to, const struct sim_pkt *p,
                   enum fault_dir dir, const struct fault_out *out, uint64_t now)
{
    struct sim_world *w = pl->sf->w;
    uint32_t octets = w->skip_payload ? p->hdr : p->len;
    struct fault_out plain = {.delay = out->delay};
    for (uint32_t i = 0; i < out->copies; i++) {
        struct sim_pkt *q = sim_pkt_new(&w->pool);
        if (!q) {
            w->failed = true;
            return;
        }
        memcpy(q, p, sizeof(*p) + octets);
        q->flags |= SIM_PKT_FAULTED;
        if (!plain.delay || !hold(pl, to, q, dir, &plain, now))
            sim_port_arrive(to, q, now);
    }
}

/* The octets changed: update the fields that the network reads. False: no longer a frame. */
static bool changed(struct sim_fault *sf, struct sim_pkt *p, unsigned bits, uint32_t len)
{
    p->len = len;
    if (p->hdr > len)
        p->hdr = (uint8_t)len;
    if (bits & FAULT_DAMAGED && sf->w->skip_payload)
        p->flags |= SIM_PKT_CORRUPT;
    return addressed(sf, p);
}

static enum sim_fate meet(struct place *pl, struct sim_port *to, struct sim_pkt *p, uint64_t now)
{
    struct sim_fault *sf = pl->sf;
    struct fault_out out;
    bool b_a = pl->at->at == SIM_AT_HOSTS ? to->peer->node->id > p->dst
                                          : sf->from_b[to->id] >> (unsigned)(pl - sf->place) & 1;
    enum fault_dir dir = b_a ? FAULT_BA : FAULT_AB;
    uint32_t have = sf->w->skip_payload ? p->hdr : p->len;
    unsigned bits = fault_apply_cut(pl->f, dir, p->data, have, p->len, now, &out);
    if (bits & FAULT_INJECT)
        for (unsigned i = 0; i < out.ninject; i++)
            inject(sf, out.inject[i].dir == dir ? to : to->peer, &out.inject[i], now);
    if (bits & FAULT_DROP || (bits & FAULT_CHANGED && !changed(sf, p, bits, out.len)))
        return SIM_DROP;
    if (bits & FAULT_COPY)
        copies(pl, to, p, dir, &out, now);
    if (bits & FAULT_HOLD && hold(pl, to, p, dir, &out, now))
        return SIM_HELD;
    fault_hold_passed(pl->hold, dir, out.flow, now);
    wake(pl); /* the frame that waited for this last one comes after it */
    return SIM_PASS;
}

/* The places from number `first` on. */
static enum sim_fate judge(struct sim_fault *sf, struct sim_port *to, struct sim_pkt *p,
                           uint64_t now, unsigned first)
{
    enum sim_fate fate = SIM_PASS;
    uint32_t places = first < 32 ? sf->places[to->id] >> first << first : 0;
    for (; places && fate == SIM_PASS; places &= places - 1)
        fate = meet(&sf->place[__builtin_ctz(places)], to, p, now);
    return fate;
}

enum sim_fate sim_fault_judge(struct sim_fault *sf, struct sim_port *to, struct sim_pkt *p,
                              uint64_t now)
{
    return judge(sf, to, p, now, 0);
}

static void due_fire(struct sim_event *ev, uint64_t now)
{
    struct place *pl = SIM_CONTAINER(ev, struct place, due);
    struct sim_fault *sf = pl->sf;
    struct sim_pkt *p;
    while ((p = fault_hold_take(pl->hold, now, NULL))) {
        struct sim_port *to = &sf->port[p->in];
        enum sim_fate fate = judge(sf, to, p, now, (unsigned)(pl - sf->place) + 1);
        if (fate == SIM_PASS)
            sim_port_arrive(to, p, now);
        else if (fate == SIM_DROP)
            sim_port_lose(to, p, now);
    }
    wake(pl);
}

/* ---- places ---- */

static int fail(struct sim_error *err, int rc, unsigned line, const char *reason)
{
    err->line = line;
    snprintf(err->field, sizeof(err->field), "fault");
    snprintf(err->reason, sizeof(err->reason), "%.180s", reason);
    return rc;
}

/* Is the wire to this port one of the place's? */
static bool belongs(const struct sim_rule *r, const struct sim_port *to, bool *from_b)
{
    uint32_t here = to->node->id, there = to->peer->node->id;
    switch (r->at) {
    case SIM_AT_HOSTS:
        return to->peer->node->is_host;
    case SIM_AT_NODE:
        *from_b = here == r->a;
        return here == r->a || there == r->a;
    default:
        *from_b = there == r->b;
        return (there == r->a && here == r->b) || (there == r->b && here == r->a);
    }
}

static int add_place(struct sim_fault *sf, const struct sim_rule *r, struct sim_error *err)
{
    unsigned k = sf->nplaces++;
    struct place *pl = &sf->place[k];
    pl->sf = sf;
    pl->at = r;
    pl->due.fire = due_fire;
    pl->due.key = sim_key(SIM_K_LATE, k);
    pl->hold = fault_hold_new(HELD_MOST);
    if (!pl->hold)
        return fail(err, -ENOMEM, r->line, "out of memory");
    for (uint32_t i = 0; i < sf->nports; i++) {
        bool from_b = false;
        if (!belongs(r, &sf->port[i], &from_b))
            continue;
        sf->places[i] |= 1u << k;
        sf->from_b[i] |= (uint32_t)from_b << k;
    }
    return 0;
}

static bool same_place(const struct sim_rule *a, const struct sim_rule *b)
{
    return a->at == b->at && a->a == b->a && a->b == b->b;
}

/* The place of a rule, made with the first one there. */
static int find_place(struct sim_fault *sf, const struct sim_rule *r, unsigned *out,
                      struct sim_error *err)
{
    unsigned k = 0;
    while (k < sf->nplaces && !same_place(sf->place[k].at, r))
        k++;
    *out = k;
    return k < sf->nplaces ? 0 : add_place(sf, r, err);
}

/* All rules of a place as one text, in their order. */
static int read_rules(struct sim_fault *sf, const struct sim_scenario *s, unsigned k,
                      struct sim_error *err)
{
    static const size_t most = (size_t)SIM_RULES * (SIM_TEXT + 1);
    struct fault_error why;
    struct place *pl = &sf->place[k];
    char *text = malloc(most);
    size_t len = 0;
    uint8_t n = 0;
    if (!text)
        return fail(err, -ENOMEM, pl->at->line, "out of memory");
    for (unsigned i = 0; i < s->nrules; i++) {
        if (sf->place_of[i] != k)
            continue;
        len += (size_t)snprintf(text + len, most - len, "%s\n", s->rule[i].text);
        sf->rule_of[i] = n++;
    }
    pl->f = fault_parse(text, len, s->seed + k, &why);
    free(text);
    if (!pl->f)
        return fail(err, why.line ? -EINVAL : -ENOMEM, pl->at->line, why.text);
    fault_start(pl->f, 0);
    return 0;
}

static int make(struct sim_fault *sf, const struct sim_scenario *s, struct sim_error *err)
{
    sf->places = calloc(sf->nports, sizeof(*sf->places));
    sf->from_b = calloc(sf->nports, sizeof(*sf->from_b));
    if (!sf->places || !sf->from_b)
        return fail(err, -ENOMEM, 0, "out of memory");
    for (unsigned i = 0; i < s->nrules; i++) {
        unsigned k;
        int rc = find_place(sf, &s->rule[i], &k, err);
        if (rc)
            return rc;
        sf->place_of[i] = (uint8_t)k;
    }
    for (unsigned k = 0; k < sf->nplaces; k++) {
        int rc = read_rules(sf, s, k, err);
        if (rc)
            return rc;
    }
    return 0;
}

int sim_fault_new(struct sim_fault **out, struct sim_world *w, const struct sim_scenario *s,
                  const struct sim_net *net, struct sim_error *err)
{
    *out = NULL;
    if (!s->nrules)
        return 0;
    struct sim_fault *sf = calloc(1, sizeof(*sf));
    if (!sf)
        return fail(err, -ENOMEM, 0, "out of memory");
    sf->w = w;
    sf->port = net->port;
    sf->nports = net->nports;
    sf->nhosts = net->nhosts;
    int rc = make(sf, s, err);
    if (rc) {
        sim_fault_free(sf);
        return rc;
    }
    *out = sf;
    return 0;
}

void sim_fault_free(struct sim_fault *sf)
{
    if (!sf)
        return;
    for (unsigned k = 0; k < sf->nplaces; k++) {
        fault_hold_free(sf->place[k].hold);
        fault_free(sf->place[k].f);
    }
    free(sf->places);
    free(sf->from_b);
    free(sf);
}

void sim_fault_stats(const struct sim_fault *sf, unsigned rule, struct fault_rule_stats *out)
{
    *out = (struct fault_rule_stats){0};
    if (sf)
        fault_rule_stats(sf->place[sf->place_of[rule]].f, sf->rule_of[rule], out);
}
