/* SPDX-License-Identifier: BSD-3-Clause
 *
 * From the traffic lines of a scenario to flows.
 */
#ifndef URNIC_SIM_TRAFFIC_H
#define URNIC_SIM_TRAFFIC_H

#include "sim_flow.h"
#include "sim_scenario.h"

/* Add the flows of all lines. 0, -ENOMEM, -ENOSPC (too many flows): *line = its line. */
int sim_traffic_add(struct sim_flows *f, const struct sim_scenario *s, struct sim_rng *rng,
                    unsigned *line);
/* Queue pairs that a host needs at most if all flows ran at once. */
uint32_t sim_traffic_max_qp(const struct sim_flows *f, uint32_t nhosts);

#endif
