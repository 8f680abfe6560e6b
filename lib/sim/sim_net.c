/* SPDX-License-Identifier: BSD-3-Clause
 *
 * From a plan to a network.
 */
#include "sim_net.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAR UINT16_MAX

/* Octets of every packet of a message: Ethernet, IPv4, UDP, BTH, iCRC. */
#define PACKET_EXTRA (WIRE_ETH_LEN + WIRE_IPV4_LEN + WIRE_UDP_LEN + WIRE_BTH_LEN + WIRE_ICRC_LEN)
#define ACK_LEN      (PACKET_EXTRA + 4u)

void sim_plan_cable(struct sim_plan *plan, uint32_t a, uint32_t b, uint64_t rate, uint64_t delay)
{
    if (plan->ncables == plan->cap) {
        uint32_t cap = plan->cap ? plan->cap * 2 : 64;
        struct sim_cable *more = realloc(plan->cable, cap * sizeof(*more));
        if (!more) {
            plan->failed = true;
            return;
        }
        plan->cable = more;
        plan->cap = cap;
    }
    plan->cable[plan->ncables++] = (struct sim_cable){a, b, rate, delay};
}

void sim_plan_free(struct sim_plan *plan)
{
    free(plan->cable);
    plan->cable = NULL;
}

/* ---- nodes and ports ---- */

static void name_node(struct sim_net *net, uint32_t i)
{
    struct sim_node *n = sim_net_node(net, i);
    bool host = i < net->nhosts;
    n->id = (uint16_t)i;
    n->w = net->w;
    n->is_host = host;
    n->ops = host ? &sim_host_ops : &sim_switch_ops;
    n->name = net->names[i];
    snprintf(net->names[i], sizeof(net->names[i]), host ? "host%u" : "switch%u",
             host ? i : (unsigned)(i - net->nhosts));
}

static void add_port(struct sim_net *net, uint32_t node, struct sim_port *port)
{
    struct sim_node *n = sim_net_node(net, node);
    port->node = n;
    port->index = n->nports;
    port->id = (uint16_t)(port - net->port);
    n->port[n->nports++] = port; // NOLINT(clang-analyzer-*): make_ports has made room
}

static int make_ports(struct sim_net *net, const struct sim_plan *plan)
{
    uint32_t nodes = net->nhosts + net->nswitches, at = 0;
    uint32_t *count = calloc(nodes + 1, sizeof(*count));
    if (!count)
        return -ENOMEM;
    for (uint32_t i = 0; i < plan->ncables; i++) {
        count[plan->cable[i].a]++;
        count[plan->cable[i].b]++;
    }
    bool good = true;
    for (uint32_t i = 0; i < nodes; i++) {
        good &= i < net->nhosts ? count[i] == 1 : count[i] > 0;
        sim_net_node(net, i)->port = net->by_node + at;
        at += count[i];
    }
    free(count);
    if (!good)
        return -EINVAL;
    for (uint32_t i = 0; i < plan->ncables; i++) {
        const struct sim_cable *c = &plan->cable[i];
        struct sim_port *end = &net->port[(size_t)2 * i];
        add_port(net, c->a, &end[0]);
        add_port(net, c->b, &end[1]);
        sim_port_connect(&end[0], &end[1], c->rate, c->delay);
    }
    for (uint32_t i = 0; i < net->nhosts; i++)
        net->host[i].port = net->host[i].node.port[0];
    return 0;
}

/* ---- routes ---- */

static uint32_t switch_index(const struct sim_net *net, const struct sim_node *n)
{
    return n->id - net->nhosts;
}

/* Hops from every switch to switch `to`. */
static void distances(const struct sim_net *net, uint32_t to, uint16_t *dist, uint32_t *queue)
{
    uint32_t head = 0, tail = 0;
    for (uint32_t i = 0; i < net->nswitches; i++)
        dist[i] = FAR;
    dist[to] = 0;
    queue[tail++] = to;
    while (head < tail) {
        const struct sim_node *n = &net->sw[queue[head++]].node;
        uint16_t d = dist[switch_index(net, n)];
        for (unsigned i = 0; i < n->nports; i++) {
            const struct sim_node *m = n->port[i]->peer->node;
            if (m->id < net->nhosts || dist[switch_index(net, m)] != FAR)
                continue;
            dist[switch_index(net, m)] = (uint16_t)(d + 1);
            queue[tail++] = switch_index(net, m);
        }
    }
}

static int find_homes(struct sim_net *net)
{
    struct sim_homes *h = &net->homes;
    h->leaf = calloc(net->nhosts, sizeof(*h->leaf));
    h->port = calloc(net->nhosts, sizeof(*h->port));
    h->nhosts = net->nhosts;
    if (!h->leaf || !h->port)
        return -ENOMEM;
    for (uint32_t i = 0; i < net->nhosts; i++) {
        const struct sim_port *at = net->host[i].port->peer;
        if (at->node->is_host)
            return -EINVAL;
        h->leaf[i] = (uint16_t)switch_index(net, at->node);
        h->port[i] = at->index;
    }
    return 0;
}

/* A set per switch. */
static int alloc_routes(struct sim_net *net, struct sim_switch *s)
{
    struct sim_routes *r = &s->routes;
    r->homes = &net->homes;
    r->self = (uint16_t)switch_index(net, &s->node);
    r->set = calloc(net->nswitches, sizeof(*r->set));
    r->ports = calloc((size_t)net->nswitches * s->node.nports + 1, sizeof(struct sim_port *));
    return r->set && r->ports ? 0 : -ENOMEM;
}

/* Most sets of a switch are equal. Equal sets in a row share one place, so that the table stays
 * small. */
static void share_ports(struct sim_routes *r, struct sim_route *set, const struct sim_route *before)
{
    if (!before || before->n != set->n ||
        memcmp(&r->ports[before->first], &r->ports[set->first], set->n * sizeof(r->ports[0])))
        return;
    r->nports -= set->n;
    set->first = before->first;
}

static void route_to(struct sim_net *net, struct sim_switch *s, uint32_t to, const uint16_t *dist)
{
    struct sim_routes *r = &s->routes;
    struct sim_route *set = &r->set[to];
    set->first = (uint16_t)r->nports;
    if (r->self == to || dist[r->self] == FAR)
        return;
    for (unsigned i = 0; i < s->node.nports; i++) {
        const struct sim_node *m = s->node.port[i]->peer->node;
        if (m->id >= net->nhosts && dist[switch_index(net, m)] + 1 == dist[r->self]) {
            r->ports[r->nports++] = s->node.port[i];
            set->n++;
        }
    }
    share_ports(r, set, to ? &r->set[to - 1] : NULL);
}

static int make_routes(struct sim_net *net)
{
    int err = find_homes(net);
    if (!net->nswitches)
        return err;
    for (uint32_t i = 0; i < net->nswitches && !err; i++)
        err = alloc_routes(net, &net->sw[i]);
    uint16_t *dist = calloc(net->nswitches, sizeof(*dist));
    uint32_t *queue = calloc(net->nswitches, sizeof(*queue));
    if (!dist || !queue)
        err = -ENOMEM;
    for (uint32_t to = 0; to < net->nswitches && !err; to++) {
        distances(net, to, dist, queue);
        for (uint32_t i = 0; i < net->nswitches; i++)
            route_to(net, &net->sw[i], to, dist);
    }
    free(dist);
    free(queue);
    return err;
}

/* ---- all of it ---- */

static uint64_t least_lookahead(const struct sim_net *net)
{
    uint64_t least = SIM_WINDOW_MAX;
    for (uint32_t i = 0; i < net->nports; i++) {
        uint64_t ns = sim_port_lookahead(&net->port[i]);
        least = ns < least ? ns : least;
    }
    return least;
}

int sim_net_build(struct sim_net *net, struct sim_world *w, const struct sim_plan *plan,
                  const struct sim_net_params *p)
{
    *net = (struct sim_net){.w = w, .nports = 2 * plan->ncables};
    if (plan->failed)
        return -ENOMEM;
    if (plan->nhosts < 2 || plan->nhosts + plan->nswitches > SIM_NODES_MAX ||
        plan->ncables > SIM_CABLES_MAX)
        return -EINVAL;
    net->host = aligned_alloc(64, plan->nhosts * sizeof(*net->host));
    net->sw = calloc(plan->nswitches, sizeof(*net->sw));
    net->port = aligned_alloc(64, net->nports * sizeof(*net->port));
    net->by_node = calloc(net->nports, sizeof(struct sim_port *));
    net->names = calloc(plan->nhosts + plan->nswitches, sizeof(*net->names));
    if (!net->host || !net->sw || !net->port || !net->by_node || !net->names)
        return -ENOMEM;
    memset(net->host, 0, plan->nhosts * sizeof(*net->host));
    memset(net->port, 0, net->nports * sizeof(*net->port));
    net->nhosts = plan->nhosts;
    net->nswitches = plan->nswitches;
    for (uint32_t i = 0; i < net->nhosts + net->nswitches; i++)
        name_node(net, i);
    int err = make_ports(net, plan);
    w->lookahead = w->window = !err && p->windows ? least_lookahead(net) : 0;
    if (!err)
        err = make_routes(net);
    for (uint32_t i = 0; i < net->nswitches && !err; i++)
        err = sim_switch_init(&net->sw[i], w, &p->sw);
    for (uint32_t i = 0; i < net->nhosts && !err; i++)
        err = sim_host_init(&net->host[i], w, i, p->max_qp, &p->host);
    return err;
}

void sim_net_free(struct sim_net *net)
{
    for (uint32_t i = 0; i < net->nhosts + net->nswitches; i++)
        sim_heap_free(&sim_net_node(net, i)->agenda.later);
    for (uint32_t i = 0; i < net->nhosts; i++)
        sim_host_free(&net->host[i]);
    for (uint32_t i = 0; i < net->nswitches; i++)
        sim_switch_free(&net->sw[i]);
    free(net->host);
    free(net->sw);
    free(net->port);
    free(net->by_node);
    free(net->names);
    free(net->homes.leaf);
    free(net->homes.port);
    *net = (struct sim_net){0};
}

struct sim_node *sim_net_find(const struct sim_net *net, const char *name)
{
    for (uint32_t i = 0; i < net->nhosts + net->nswitches; i++)
        if (!strcmp(sim_net_node(net, i)->name, name))
            return sim_net_node(net, i);
    return NULL;
}

struct sim_port *sim_net_port(const struct sim_net *net, uint32_t a, uint32_t b)
{
    const struct sim_node *n = sim_net_node(net, a);
    for (unsigned i = 0; i < n->nports; i++)
        if (n->port[i]->peer->node->id == b)
            return n->port[i];
    return NULL;
}

static uint64_t wire_ns(const struct sim_port *port, uint64_t octets)
{
    return octets * 8 * 1000000000ull / port->rate;
}

uint64_t sim_net_ideal(const struct sim_net *net, uint32_t src, uint32_t dst, uint64_t octets)
{
    uint64_t mtu = net->host[src].p.mtu;
    uint64_t packets = octets ? (octets + mtu - 1) / mtu : 1;
    uint64_t first = octets < mtu ? octets : mtu, extra = PACKET_EXTRA + SIM_WIRE_EXTRA;
    uint64_t slowest = 0, total = 0;
    const struct sim_port *port = net->host[src].port;
    for (;;) { /* any of the shortest paths: they are equal */
        const struct sim_node *n = port->peer->node;
        uint64_t all = wire_ns(port, octets + packets * extra);
        slowest = all > slowest ? all : slowest;
        total += 2 * port->delay + wire_ns(port, first + extra) +
                 wire_ns(port, ACK_LEN + SIM_WIRE_EXTRA);
        if (n->id < net->nhosts)
            break;
        port = sim_switch_route(&net->sw[switch_index(net, n)], dst, 0, NULL);
        if (!port)
            return SIM_NEVER;
    }
    return total + slowest - wire_ns(net->host[src].port, first + extra);
}
