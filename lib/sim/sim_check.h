/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Contradictions between a scenario's statements and its network, with its cables, nodes and flows.
 * The checks need only the plan and the list of flows. Nothing is built, so all runs of a sweep can
 * be checked before the first one.
 */
#ifndef URNIC_SIM_CHECK_H
#define URNIC_SIM_CHECK_H

#include "sim_flow.h"
#include "sim_scenario.h"

struct sim_metric_size;

/* Check a scenario that was read and has all its rules. 0 and in *has the sizes for
 * sim_metric_possible; or -EINVAL, -ENOSPC (too many flows), -ENOMEM and *err. */
int sim_check(const struct sim_scenario *s, struct sim_metric_size *has, struct sim_error *err);

/* Make the plan of its topology, and check its watches, the places of its faults and the buffers of
 * its switches against it. The caller frees the plan, also after an error. */
int sim_check_plan(const struct sim_scenario *s, struct sim_plan *plan, struct sim_error *err);
/* Add its flows, put their sizes into *has, and check that each figure that it expects is possible.
 */
int sim_check_flows(const struct sim_scenario *s, const struct sim_plan *plan,
                    struct sim_flows *flows, struct sim_rng *rng, struct sim_metric_size *has,
                    struct sim_error *err);

#endif
