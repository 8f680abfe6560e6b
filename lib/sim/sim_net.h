/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The network: hosts 0..nhosts-1, then switches; cables between them; shortest paths. A plan of
 * cables becomes nodes, ports and routes.
 */
#ifndef URNIC_SIM_NET_H
#define URNIC_SIM_NET_H

#include "sim_host.h"
#include "sim_switch.h"

#define SIM_NODES_MAX  16384u
#define SIM_CABLES_MAX (UINT16_MAX / 2u) /* ports have numbers of 16 bits */

struct sim_cable {
    uint32_t a, b; /* node numbers: hosts first, then switches */
    uint64_t rate, delay;
};

struct sim_plan {
    uint32_t nhosts, nswitches;
    struct sim_cable *cable;
    uint32_t ncables, cap;
    /* The default port to watch: the bottleneck, from switch to switch or to host. */
    uint32_t watch_from, watch_to;
    bool failed; /* out of memory */
};

/* Add a cable; an error is in plan->failed. */
void sim_plan_cable(struct sim_plan *plan, uint32_t a, uint32_t b, uint64_t rate, uint64_t delay);
void sim_plan_free(struct sim_plan *plan);

struct sim_net {
    struct sim_world *w;
    struct sim_host *host;
    struct sim_switch *sw;
    struct sim_port *port;
    struct sim_port **by_node; /* the nodes' lists */
    char (*names)[16];
    struct sim_homes homes;
    uint32_t nhosts, nswitches, nports;
};

struct sim_net_params {
    struct sim_host_params host;
    struct sim_switch_params sw;
    uint32_t max_qp; /* per host */
    bool windows;    /* sim_window.h; otherwise all events run in one order */
};

/* 0, -ENOMEM, -EINVAL (a host without exactly one cable, a switch whose head-room is larger than
 * its buffer, too many nodes or cables). `net` can be freed after an error. */
int sim_net_build(struct sim_net *net, struct sim_world *w, const struct sim_plan *plan,
                  const struct sim_net_params *p);
void sim_net_free(struct sim_net *net);

static inline struct sim_node *sim_net_node(const struct sim_net *net, uint32_t i)
{
    return i < net->nhosts ? &net->host[i].node : &net->sw[i - net->nhosts].node;
}
/* The node of a name ("host3", "switch0"); NULL = none. */
struct sim_node *sim_net_find(const struct sim_net *net, const char *name);
/* The port of node a that leads to node b; NULL = none. */
struct sim_port *sim_net_port(const struct sim_net *net, uint32_t a, uint32_t b);
/* ns until a flow of `octets`, alone in the network, is answered: the least that is possible. */
uint64_t sim_net_ideal(const struct sim_net *net, uint32_t src, uint32_t dst, uint64_t octets);

#endif
