/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Fault rules (lib/fault) in the simulated network. Rules of one place, a wire, a node's wires or
 * the wires out of all hosts, share a table of connections. A frame meets the rules at the end of
 * the wire, places in the order of the scenario.
 */
#ifndef URNIC_SIM_FAULT_H
#define URNIC_SIM_FAULT_H

#include "fault.h"
#include "sim_net.h"
#include "sim_scenario.h"

struct sim_fault;

/* The rules of a checked scenario; *out is NULL if it has none. 0, -ENOMEM, or
 * -EINVAL and *err. */
int sim_fault_new(struct sim_fault **out, struct sim_world *w, const struct sim_scenario *s,
                  const struct sim_net *net, struct sim_error *err);
void sim_fault_free(struct sim_fault *sf);

/* The fate of a frame at the end of the wire. SIM_HELD: it comes later. */
enum sim_fate sim_fault_judge(struct sim_fault *sf, struct sim_port *to, struct sim_pkt *p,
                              uint64_t now);

/* The counts of the scenario's rule number `rule` so far; zeros without rules. */
void sim_fault_stats(const struct sim_fault *sf, unsigned rule, struct fault_rule_stats *out);

#endif
