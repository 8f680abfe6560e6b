/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Checks of a scenario against its network.
 */
#include "sim_check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim_metric.h"
#include "sim_traffic.h"

__attribute__((format(printf, 5, 6))) static int fail(struct sim_error *err, int rc, unsigned line,
                                                      const char *field, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    err->line = line;
    snprintf(err->field, sizeof(err->field), "%s", field);
    vsnprintf(err->reason, sizeof(err->reason), format, ap);
    va_end(ap);
    return rc;
}

/* ---- nodes and cables ---- */

/* A cable between a and b; SIM_NODES_MAX instead of b: any of a's. */
static bool cable(const struct sim_plan *plan, uint32_t a, uint32_t b)
{
    for (uint32_t i = 0; i < plan->ncables; i++) {
        uint32_t x = plan->cable[i].a, y = plan->cable[i].b;
        if ((x == a && (y == b || b == SIM_NODES_MAX)) ||
            (y == a && (x == b || b == SIM_NODES_MAX)))
            return true;
    }
    return false;
}

static const char *node_name(const struct sim_plan *plan, uint32_t n, char *buf, size_t size)
{
    bool host = n < plan->nhosts;
    snprintf(buf, size, host ? "host%u" : "switch%u", host ? n : n - plan->nhosts);
    return buf;
}

/* Report that there is no cable between a and b; SIM_NODES_MAX instead of b: that a has no cable.
 */
static int no_cable(const struct sim_plan *plan, uint32_t a, uint32_t b, unsigned line,
                    const char *field, struct sim_error *err)
{
    char from[24], to[24];
    node_name(plan, a, from, sizeof(from));
    if (b == SIM_NODES_MAX)
        return fail(err, -EINVAL, line, field, "there is no cable at %s", from);
    return fail(err, -EINVAL, line, field, "there is no cable between %s and %s", from,
                node_name(plan, b, to, sizeof(to)));
}

/* Each switch keeps head-room for each of its ports. */
static int check_buffers(const struct sim_scenario *s, const struct sim_plan *plan,
                         struct sim_error *err)
{
    const struct sim_switch_params *p = &s->net.sw;
    uint64_t *reserved = calloc(plan->nswitches, sizeof(*reserved)), most = 0;
    if (!reserved)
        return fail(err, -ENOMEM, 0, "", "out of memory");
    for (uint32_t i = 0; i < plan->ncables; i++) {
        const struct sim_cable *c = &plan->cable[i];
        uint64_t octets = sim_switch_headroom(p, c->rate, c->delay);
        if (c->a >= plan->nhosts)
            reserved[c->a - plan->nhosts] += octets;
        if (c->b >= plan->nhosts)
            reserved[c->b - plan->nhosts] += octets;
    }
    for (uint32_t i = 0; i < plan->nswitches; i++)
        most = reserved[i] > most ? reserved[i] : most;
    free(reserved);
    if (most >= p->buffer)
        return fail(err, -EINVAL, s->switch_line, "buffer",
                    "the head-room of all ports does not fit a switch's buffer: %" PRIu64
                    " octets of %" PRIu64,
                    most, p->buffer);
    return 0;
}

int sim_check_plan(const struct sim_scenario *s, struct sim_plan *plan, struct sim_error *err)
{
    const char *why = sim_topo_plan(&s->topo, plan);
    if (why)
        return fail(err, -EINVAL, s->topology_line, "topology", "%s", why);
    if (plan->failed)
        return fail(err, -ENOMEM, 0, "", "out of memory");
    if (plan->ncables > SIM_CABLES_MAX)
        return fail(err, -EINVAL, s->topology_line, "topology", "too many cables: %u, at most %u",
                    plan->ncables, SIM_CABLES_MAX);
    for (unsigned i = 0; i < s->nwatches; i++)
        if (!cable(plan, s->watch[i].from, s->watch[i].to))
            return no_cable(plan, s->watch[i].from, s->watch[i].to, s->watch[i].line, "watch", err);
    for (unsigned i = 0; i < s->nrules; i++) {
        const struct sim_rule *r = &s->rule[i];
        uint32_t b = r->at == SIM_AT_NODE ? SIM_NODES_MAX : r->b;
        if (r->at != SIM_AT_HOSTS && !cable(plan, r->a, b))
            return no_cable(plan, r->a, b, r->line, "fault", err);
    }
    return check_buffers(s, plan, err);
}

/* ---- figures ---- */

static int check_expect(const struct sim_expect *x, const struct sim_metric_size *size,
                        struct sim_error *err)
{
    char why[96];
    if (sim_metric_possible(x->metric, size, why, sizeof(why)))
        return 0;
    return fail(err, -EINVAL, x->line, "expect", "%s: %s", x->metric, why);
}

int sim_check_flows(const struct sim_scenario *s, const struct sim_plan *plan,
                    struct sim_flows *flows, struct sim_rng *rng, struct sim_metric_size *has,
                    struct sim_error *err)
{
    unsigned line = 0;
    int rc = sim_traffic_add(flows, s, rng, &line);
    if (rc)
        return fail(err, rc, line, "traffic", "%s",
                    rc == -ENOSPC ? "more than 2^20 flows" : "out of memory");
    *has = (struct sim_metric_size){
        .flows = flows->n,
        .rings = flows->nrings,
        .rules = s->nrules,
        .hosts = plan->nhosts,
        .switches = plan->nswitches,
        .sampled = s->sample != 0,
    };
    for (unsigned i = 0; i < s->nexpects && !rc; i++)
        rc = check_expect(&s->expect[i], has, err);
    return rc;
}

int sim_check(const struct sim_scenario *s, struct sim_metric_size *has, struct sim_error *err)
{
    struct sim_plan plan = {0};
    struct sim_flows flows = {0};
    struct sim_rng rng = {.s = sim_mix(s->seed)};
    *err = (struct sim_error){0};
    int rc = sim_check_plan(s, &plan, err);
    if (!rc)
        rc = sim_check_flows(s, &plan, &flows, &rng, has, err);
    sim_flows_free(&flows);
    sim_plan_free(&plan);
    return rc;
}
