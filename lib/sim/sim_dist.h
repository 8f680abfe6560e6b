/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Distributions of flow sizes: points of a cumulative distribution, linear in between.
 */
#ifndef URNIC_SIM_DIST_H
#define URNIC_SIM_DIST_H

#include "sim_rng.h"

struct sim_dist_point {
    uint32_t octets;
    double below; /* part of the flows that are not larger */
};

struct sim_dist {
    const char *name;
    const char *text; /* its source */
    const struct sim_dist_point *point;
    unsigned n;
};

extern const struct sim_dist sim_dists[]; /* ends with name = NULL */
/* The distribution of this name; NULL = unknown. */
const struct sim_dist *sim_dist_find(const char *name);
/* Its mean, octets. */
double sim_dist_mean(const struct sim_dist *d);
/* The size below which a part `u` of the flows lies, at least 1. */
uint64_t sim_dist_at(const struct sim_dist *d, double u);

#endif
