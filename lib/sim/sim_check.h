/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a scenario says that its network, its cables, nodes and flows, cannot keep. It is found out
 * from the plan and the list of flows alone: nothing is built, so that all runs of a sweep can be
 * looked at before the first of them.
 */
#ifndef URNIC_SIM_CHECK_H
#define URNIC_SIM_CHECK_H

#include "sim_flow.h"
#include "sim_scenario.h"

struct sim_metric_size;

/* A scenario that was read, and has got all its rules. 0 and in *has what sim_metric_possible asks
 * for; or -EINVAL, -ENOSPC (too many flows), -ENOMEM and *err. */
int sim_check(const struct sim_scenario *s, struct sim_metric_size *has, struct sim_error *err);

/* The plan of its topology, and whether what it watches, where its faults act and what its switches
 * buffer fits that. The caller frees the plan, also after an error. */
int sim_check_plan(const struct sim_scenario *s, struct sim_plan *plan, struct sim_error *err);
/* Adds its flows, says in *has what there is, and sees whether each figure that it expects can be
 * one of theirs. */
int sim_check_flows(const struct sim_scenario *s, const struct sim_plan *plan,
                    struct sim_flows *flows, struct sim_rng *rng, struct sim_metric_size *has,
                    struct sim_error *err);

#endif
