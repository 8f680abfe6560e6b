/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Flows that have ended, by size.
 */
#include <math.h>
#include <stdlib.h>

#include "sim_metric.h"

static int by_size(const void *a, const void *b)
{
    const struct sim_flow *x = *(const struct sim_flow *const *)a;
    const struct sim_flow *y = *(const struct sim_flow *const *)b;
    return (x->octets > y->octets) - (x->octets < y->octets);
}

static struct sim_size_bin bin_of(const struct sim *sim, const struct sim_flow *const *list,
                                  uint32_t n, double *v)
{
    struct sim_size_bin b = {.octets = list[n - 1]->octets, .flows = n};
    for (uint32_t i = 0; i < n; i++)
        v[i] = sim_slowdown(sim, list[i]);
    b.p50 = sim_percentile(v, n, .5);
    b.p95 = sim_percentile(v, n, .95);
    b.p99 = sim_percentile(v, n, .99);
    for (uint32_t i = 0; i < n; i++)
        v[i] = sim_fct_us(sim, list[i]);
    b.fct50 = sim_percentile(v, n, .5);
    b.fct95 = sim_percentile(v, n, .95);
    b.fct99 = sim_percentile(v, n, .99);
    return b;
}

unsigned sim_size_bins(const struct sim *sim, struct sim_size_bin *bins)
{
    uint32_t n = 0, from = 0;
    unsigned nbins = 0;
    const struct sim_flow **list = malloc((sim->flows.n + 1) * sizeof(const struct sim_flow *));
    double *v = malloc((sim->flows.n + 1) * sizeof(*v));
    for (uint32_t i = 0; list && v && i < sim->flows.n; i++)
        if (!isnan(sim_slowdown(sim, &sim->flows.flow[i])))
            list[n++] = &sim->flows.flow[i];
    if (n)
        qsort(list, n, sizeof(const struct sim_flow *), by_size);
    for (unsigned b = 1; b <= SIM_BINS; b++) {
        uint32_t to = (uint32_t)((uint64_t)n * b / SIM_BINS);
        while (to > from && to < n && list[to]->octets == list[to - 1]->octets)
            to++; /* one size, one bin */
        if (to <= from)
            continue;
        bins[nbins++] = bin_of(sim, list + from, to - from, v);
        from = to;
    }
    free(list);
    free(v);
    return nbins;
}
