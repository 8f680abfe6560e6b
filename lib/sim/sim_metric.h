/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Figures of a run, by name, for summaries and for `expect` in scenarios.
 */
#ifndef URNIC_SIM_METRIC_H
#define URNIC_SIM_METRIC_H

#include "sim.h"

struct sim_metric_info {
    const char *name, *unit, *text;
};
extern const struct sim_metric_info sim_metrics[]; /* ends with name = NULL */

/* Of all flows, or with ".N" of flow N; with ".NODE" of a node (pauses.switch1). False: there is no
 * such figure in this run. */
bool sim_metric(struct sim *sim, const char *name, double *out);
/* Can there be such a figure? "goodput.3" yes, whether or not the run has a flow 3; "jain.3" no. */
bool sim_metric_known(const char *name);
/* The sizes of a run; flows, rules and nodes are numbered. */
struct sim_metric_size {
    uint32_t flows, rings, rules, hosts, switches;
    bool sampled;
};
/* Can a run of that size have this figure? If not, `why` names the missing part. */
bool sim_metric_possible(const char *name, const struct sim_metric_size *has, char *why,
                         size_t size);
/* The port of queue_max: with `watch` lines one of those, else any switch's. NULL = none. */
const struct sim_port *sim_longest_queue(const struct sim *sim);
/* Does the run meet the expectation? *value = the figure. False also when there is no such figure.
 */
bool sim_expect_holds(struct sim *sim, const struct sim_expect *x, double *value);

/* Sort in ascending order. */
void sim_sort(double *v, uint32_t n);
/* Value below which a part `p` of v[0..n) lies; sorts v. NAN when n is 0. */
double sim_percentile(double *v, uint32_t n, double p);
/* Jain's fairness index, 1 = all equal; NAN when n is 0 or all are 0. */
double sim_jain(const double *v, uint32_t n);

/* The completion time in us of a flow that has ended, and its ratio to the least possible one; else
 * NAN. */
double sim_fct_us(const struct sim *sim, const struct sim_flow *f);
double sim_slowdown(const struct sim *sim, const struct sim_flow *f);
/* Gb/s since it began, or since measuring began. NAN = it was over by then. */
double sim_flow_goodput(const struct sim *sim, const struct sim_flow *f);

/* Flows of finite size grouped by it: percentiles of the completion time, and of the slowdown,
 * which is its ratio to the least possible one. */
struct sim_size_bin {
    uint64_t octets; /* the largest of the bin */
    uint32_t flows;
    double p50, p95, p99;
    double fct50, fct95, fct99; /* us */
};
#define SIM_BINS 10u
/* Bins with about as many flows each; flows of one size are in one bin. Returns how many were
 * filled in; 0 when none has ended. */
unsigned sim_size_bins(const struct sim *sim, struct sim_size_bin *bins);

#endif
