/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Charts across the runs of a sweep: a figure over a variable, a line per value of another one and
 * of all other swept variables; a queue's or the flows' curve over time; or the distribution of a
 * figure of the flows, a line per run.
 */
#ifndef URNIC_SIM_CHART_H
#define URNIC_SIM_CHART_H

#include "sim.h"

struct sim_chart;

/* "METRIC/X[/SERIES]=FILE.svg": X and SERIES are variables of the scenario; with "time" as X METRIC
 * is "queue" or "rate", with "cdf" "fct", "slowdown" or "goodput". Where a value of X is no number,
 * the values are categories. NULL: not of this form, no such metric, or no memory. */
struct sim_chart *sim_chart_new(const char *text);
/* The variable that the chart needs and the scenario lacks; NULL: none. */
const char *sim_chart_lacks(const struct sim_chart *c, const struct sim_scenario *s);
/* Can the chart show a run of such a scenario and size (sim_check)? If not, why[0..size) says what
 * the run lacks. */
struct sim_metric_size;
bool sim_chart_possible(const struct sim_chart *c, const struct sim_scenario *s,
                        const struct sim_metric_size *has, char *why, size_t size);
/* Take the chart's data from a run that has ended, of a scenario that lacks nothing. `cut`: the run
 * was ended early, so it has curves and no figures. 0; else -ENOMEM or -EINVAL, and why[0..size)
 * says what is left out. */
int sim_chart_add(struct sim_chart *c, struct sim *sim, bool cut, char *why, size_t size);
/* The chart's file name, within the text that it was made of. */
const char *sim_chart_file(const struct sim_chart *c);
/* Draw and free. `cut`: some runs are missing or incomplete, and the chart says so. 0 or -errno. */
int sim_chart_finish(struct sim_chart *c, bool cut);

#endif
