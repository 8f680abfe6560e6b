/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Topologies.
 */
#include "sim_topo.h"

#include "sim_field.h"

static uint64_t core_rate(const struct sim_topo *t)
{
    return t->core ? t->core : t->rate;
}

static void watch(struct sim_plan *plan, uint32_t from, uint32_t to)
{
    plan->watch_from = from;
    plan->watch_to = to;
}

static void dumbbell(const struct sim_topo *t, struct sim_plan *plan)
{
    uint32_t n = t->hosts, left = 2 * n, right = left + 1;
    for (uint32_t i = 0; i < n; i++)
        sim_plan_cable(plan, i, left, t->rate, t->delay);
    for (uint32_t i = n; i < 2 * n; i++)
        sim_plan_cable(plan, i, right, t->rate, t->delay);
    sim_plan_cable(plan, left, right, core_rate(t), t->delay);
    watch(plan, left, right);
}

static void parking(const struct sim_topo *t, struct sim_plan *plan)
{
    uint32_t hosts = 2 + 2 * t->hops, sw = hosts;
    sim_plan_cable(plan, 0, sw, t->rate, t->delay);
    sim_plan_cable(plan, 1, sw + t->hops, t->rate, t->delay);
    for (uint32_t i = 0; i < t->hops; i++) {
        sim_plan_cable(plan, 2 + 2 * i, sw + i, t->rate, t->delay);
        sim_plan_cable(plan, 3 + 2 * i, sw + i + 1, t->rate, t->delay);
        sim_plan_cable(plan, sw + i, sw + i + 1, core_rate(t), t->delay);
    }
    watch(plan, sw, sw + 1);
}

static void incast(const struct sim_topo *t, struct sim_plan *plan)
{
    uint32_t sw = t->hosts + 1;
    for (uint32_t i = 0; i <= t->hosts; i++)
        sim_plan_cable(plan, i, sw, t->rate, t->delay);
    watch(plan, sw, t->hosts);
}

static void leaf_spine(const struct sim_topo *t, struct sim_plan *plan)
{
    uint32_t hosts = t->hosts * t->leaves, leaf = hosts, spine = leaf + t->leaves;
    for (uint32_t i = 0; i < hosts; i++)
        sim_plan_cable(plan, i, leaf + i / t->hosts, t->rate, t->delay);
    for (uint32_t i = 0; i < t->leaves; i++)
        for (uint32_t j = 0; j < t->spines; j++)
            sim_plan_cable(plan, leaf + i, spine + j, core_rate(t), t->delay);
    watch(plan, leaf, spine);
}

static void fat_tree(const struct sim_topo *t, struct sim_plan *plan)
{
    uint32_t half = t->k / 2, hosts = t->k * half * half;
    uint32_t edge = hosts, aggr = edge + t->k * half, core = aggr + t->k * half;
    for (uint32_t i = 0; i < hosts; i++)
        sim_plan_cable(plan, i, edge + i / half, t->rate, t->delay);
    for (uint32_t pod = 0; pod < t->k; pod++) {
        for (uint32_t i = 0; i < half; i++) {
            for (uint32_t j = 0; j < half; j++) {
                uint32_t a = aggr + pod * half + j;
                sim_plan_cable(plan, edge + pod * half + i, a, core_rate(t), t->delay);
                sim_plan_cable(plan, aggr + pod * half + i, core + i * half + j, core_rate(t),
                               t->delay);
            }
        }
    }
    watch(plan, edge, aggr);
}

static void (*const fill[])(const struct sim_topo *t, struct sim_plan *plan) = {
    [SIM_DUMBBELL] = dumbbell,     [SIM_PARKING] = parking,   [SIM_INCAST] = incast,
    [SIM_LEAF_SPINE] = leaf_spine, [SIM_FAT_TREE] = fat_tree,
};

/* Hosts and switches. */

static uint64_t count(const struct sim_topo *t, uint64_t *switches)
{
    uint64_t half = t->k / 2;
    switch (t->kind) {
    case SIM_DUMBBELL:
        *switches = 2;
        return 2ull * t->hosts;
    case SIM_PARKING:
        *switches = t->hops + 1ull;
        return 2 + 2ull * t->hops;
    case SIM_INCAST:
        *switches = 1;
        return t->hosts + 1ull;
    case SIM_LEAF_SPINE:
        *switches = (uint64_t)t->leaves + t->spines;
        return (uint64_t)t->hosts * t->leaves;
    case SIM_FAT_TREE:
        *switches = 2ull * t->k * half + half * half;
        return t->k * half * half;
    }
    return 0;
}

const char *sim_topo_plan(const struct sim_topo *t, struct sim_plan *plan)
{
    uint64_t switches = 0, hosts = count(t, &switches);
    *plan = (struct sim_plan){0};
    if (t->kind == SIM_FAT_TREE && t->k % 2)
        return "k must be even";
    if (hosts < 2 || !switches)
        return "at least two hosts are needed";
    if (hosts + switches > SIM_NODES_MAX)
        return "too many nodes: at most 16384";
    if (hosts > SIM_HOST_MAX)
        return "too many hosts";
    if (t->kind == SIM_LEAF_SPINE && t->leaves > 1 && !t->spines)
        return "spines are missing";
    if (!t->rate)
        return "the rate is missing";
    plan->nhosts = (uint32_t)hosts;
    plan->nswitches = (uint32_t)switches;
    fill[t->kind](t, plan);
    return NULL;
}

uint32_t sim_topo_hosts(const struct sim_topo *t)
{
    uint64_t switches;
    uint64_t hosts = count(t, &switches);
    return hosts > SIM_NODES_MAX ? 0 : (uint32_t)hosts;
}
