/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Charts across the runs of a sweep: a figure over a variable, a line per value of another one; or
 * a queue's or the flows' curve over time, a line per run.
 */
#ifndef URNIC_SIM_CHART_H
#define URNIC_SIM_CHART_H

#include "sim.h"

struct sim_chart;

/* "METRIC/X[/SERIES]=FILE.svg": X and SERIES are variables of the scenario; with "time" as X METRIC
 * is "queue" or "rate". NULL: not of this form, no such metric, or no memory. */
struct sim_chart *sim_chart_new(const char *text);
/* Take what it needs from a run that has ended. 0 or -ENOMEM; -EINVAL: the scenario has no such
 * variable, or the run no such figure (the point is left out). */
int sim_chart_add(struct sim_chart *c, struct sim *sim);
/* Where it goes: in the text that it was made of. */
const char *sim_chart_file(const struct sim_chart *c);
/* Draw, free. 0 or -errno. */
int sim_chart_finish(struct sim_chart *c);

#endif
