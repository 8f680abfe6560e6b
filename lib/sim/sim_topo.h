/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Topologies: each fills in a plan.
 */
#ifndef URNIC_SIM_TOPO_H
#define URNIC_SIM_TOPO_H

#include "sim_net.h"

enum sim_topo_kind { SIM_DUMBBELL, SIM_PARKING, SIM_INCAST, SIM_LEAF_SPINE, SIM_FAT_TREE };

struct sim_topo {
    enum sim_topo_kind kind;
    uint32_t hosts; /* dumbbell: per side; incast: senders; leaf-spine: per leaf */
    uint32_t leaves, spines;
    uint32_t k;     /* fat tree: ports of a switch, even; k^3/4 hosts */
    uint32_t hops;  /* parking lot: switches in a row less one */
    uint64_t rate;  /* of hosts, bit/s */
    uint64_t core;  /* between switches; 0 = rate */
    uint64_t delay; /* ns, each cable */
};

/* Reasons of a refusal are sentences without a full stop; NULL = done.
 *
 *   dumbbell     hosts 0..n-1 on the left switch, n..2n-1 on the right one
 *   parking lot  switch i and i+1 in a row; host 0 at the first and host 1 at the last, then for
 *                each hop i a host 2+2i before it and a host 3+2i after it
 *   incast       hosts 0..n-1 send to host n, one switch
 *   leaf-spine   host h at leaf h / hosts; every leaf to every spine
 *   fat tree     k pods of k/2 edge and k/2 aggregation switches, (k/2)^2 cores
 */
const char *sim_topo_plan(const struct sim_topo *t, struct sim_plan *plan);
/* The number of its hosts; 0 when it is refused. */
uint32_t sim_topo_hosts(const struct sim_topo *t);

#endif
