/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Flows: octets sent from one host to another over a queue pair of their own, as WRITEs; and the
 * ring all-reduce, with steps that wait for each other.
 */
#ifndef URNIC_SIM_FLOW_H
#define URNIC_SIM_FLOW_H

#include "sim_net.h"

#define SIM_FLOWS_MAX (1u << 20)
#define SIM_FOREVER   UINT64_MAX

enum sim_flow_state { SIM_WAITS, SIM_RUNS, SIM_DONE, SIM_FAILED };
extern const char *const sim_flow_states[];

/* Its two ends live at two nodes, and see each other's state only as it was one look-ahead before.
 * Both open their queue pairs one look-ahead before it begins. They learn one look-ahead late that
 * it has ended, or that the other end has failed. */
struct sim_flow {
    struct sim_event src_next, dst_next; /* next event of each end */
    struct sim_event over;               /* the destination learns that the flow has ended */
    struct sim_flows *all;
    struct sim_ring *ring; /* NULL: a flow outside of rings */
    uint32_t id, rank;
    uint16_t src, dst;
    uint32_t load;               /* its line of the scenario */
    uint8_t state;               /* enum sim_flow_state */
    uint64_t octets;             /* SIM_FOREVER: until `stop` */
    uint64_t begin, stop, end;   /* ns */
    uint64_t posted, answered;   /* octets */
    uint64_t ideal;              /* ns that the flow would take alone */
    uint32_t message, out;       /* octets of a WRITE; WRITEs outstanding */
    const struct cc_conf *cc;    /* NULL: the hosts' */
    struct qp *qa, *qb;          /* of source, destination */
    uint32_t qpn_a, qpn_b, rkey; /* their numbers, 0 = none; the destination's R_Key */
    bool dst_failed;
    uint64_t sent, again, timeouts; /* packets; of which retransmitted; ACK timers */
    uint64_t sampled;               /* `placed` at the last sample */
};

/* Ring all-reduce of `octets` over the hosts first .. first+n-1: 2 (n - 1) steps, each host sending
 * octets / n to the next one, once it has received the octets of the step before. */
struct sim_ring {
    uint32_t n, steps, iterations;
    uint64_t chunk;   /* octets */
    uint32_t flow;    /* of rank 0 */
    uint32_t *posted; /* steps, per rank, all iterations */
    uint32_t *received;
    uint64_t *ended;  /* ns at which the last rank, as yet, finished an iteration */
    uint32_t *at_end; /* ranks that have finished it */
    uint64_t begin;
};

struct sim_flows {
    struct sim_net *net;
    struct sim_flow *flow;
    uint64_t *placed; /* octets, by flow: the counts of each packet lie close together */
    uint32_t n, cap;
    uint32_t done, failed;
    uint64_t last;   /* ns: end of the last one of these */
    uint64_t salt;   /* of their PSNs */
    uint32_t finite; /* flows that have an end */
    struct sim_ring **ring;
    uint32_t nrings;
};

/* Add a flow before the run. Its index, or -ENOMEM, -ENOSPC. stop: for SIM_FOREVER. */
int sim_flow_add(struct sim_flows *f, uint32_t src, uint32_t dst, uint64_t octets, uint64_t begin,
                 uint64_t stop, uint32_t message, unsigned load);
/* Add a ring: n flows. 0 or -ENOMEM, -ENOSPC. */
int sim_ring_add(struct sim_flows *f, uint32_t first, uint32_t n, uint64_t octets,
                 uint32_t iterations, uint64_t begin, unsigned load);
/* After the last one was added: they now start at their times. 0 or -ENOMEM. */
int sim_flows_begin(struct sim_flows *f, struct sim_net *net);
void sim_flows_free(struct sim_flows *f);
/* Have all flows that end ended? */
static inline bool sim_flows_over(const struct sim_flows *f)
{
    return f->done + f->failed == f->n;
}
/* Take a running flow's counters from its queue pair. */
void sim_flow_refresh(struct sim_flow *flow);

#endif
