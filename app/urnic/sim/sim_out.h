/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The output of a simulation: JSON lines, an SVG page, a summary for people.
 */
#ifndef URNIC_SIM_OUT_H
#define URNIC_SIM_OUT_H

#include <stdio.h>

#include "sim.h"
#include "sim_points.h"

/* The whole run as JSON lines: "run", "sample"s, "flow"s, "size" bins, "summary", "expect"s, "end".
 * `cut`: it was interrupted, as "end" tells. `figure`: names of metrics for lines of their own.
 * Nothing in it depends on the machine or the hour. */
void sim_out_json(FILE *f, struct sim *sim, const char *scenario, uint32_t point, bool cut,
                  const char *const *figure, unsigned nfigures);
/* Describe a run that is not made: a line with its number and variables. */
void sim_out_point(FILE *f, const struct sim_scenario *s, uint32_t point);
/* Panels: rate per flow, queue depth, fairness index, retransmissions and PFC pauses, completion
 * times and slowdown by size; those that the run has. Rates in `points` (NULL = none) are drawn as
 * dots over those of the same flow. `cut`: the run was ended early, and the page says so. 0 or
 * -errno; -ENODATA: the run has none of the panels. */
int sim_out_plot(const char *path, struct sim *sim, const struct sim_points *points, bool cut);
/* The number of flows in `points` with rates that sim_out_plot draws: those that have a curve to
 * lie over. */
unsigned sim_out_points_drawn(const struct sim *sim, const struct sim_points *points);
/* Print a few lines: the figures that matter, and which expectations hold. */
void sim_out_summary(FILE *f, struct sim *sim);
/* The number of expectations that don't hold. */
unsigned sim_out_failures(struct sim *sim);

#endif
