/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Flow sizes of two published traces, in the form in which later work on RoCE networks uses them.
 */
#include "sim_dist.h"

#include <stddef.h>
#include <string.h>

static const struct sim_dist_point web_search[] = {
    {0, 0},        {10000, .15},   {20000, .20},   {30000, .30},   {50000, .40},    {80000, .53},
    {200000, .60}, {1000000, .70}, {2000000, .80}, {5000000, .90}, {10000000, .97}, {30000000, 1},
};

static const struct sim_dist_point hadoop[] = {
    {0, 0},        {100, .01},    {200, .02},      {300, .05},     {350, .15},
    {400, .20},    {500, .30},    {600, .40},      {700, .50},     {1000, .60},
    {2000, .67},   {7000, .70},   {30000, .72},    {50000, .82},   {80000, .87},
    {120000, .90}, {300000, .95}, {1000000, .975}, {2000000, .99}, {10000000, 1},
};

#define POINTS(p) p, sizeof(p) / sizeof((p)[0])

const struct sim_dist sim_dists[] = {
    {"websearch", "web search: Alizadeh et al., DCTCP, SIGCOMM 2010", POINTS(web_search)},
    {"hadoop", "Hadoop: Roy et al., Inside the social network's network, SIGCOMM 2015",
     POINTS(hadoop)},
    {NULL, NULL, NULL, 0},
};

const struct sim_dist *sim_dist_find(const char *name)
{
    for (const struct sim_dist *d = sim_dists; d->name; d++)
        if (!strcmp(d->name, name))
            return d;
    return NULL;
}

double sim_dist_mean(const struct sim_dist *d)
{
    double mean = 0;
    for (unsigned i = 1; i < d->n; i++)
        mean += (d->point[i].below - d->point[i - 1].below) *
                ((double)d->point[i].octets + d->point[i - 1].octets) / 2;
    return mean;
}

uint64_t sim_dist_at(const struct sim_dist *d, double u)
{
    unsigned i = 1;
    while (i + 1 < d->n && d->point[i].below < u)
        i++;
    const struct sim_dist_point *a = &d->point[i - 1], *b = &d->point[i];
    double part = (u - a->below) / (b->below - a->below);
    double v = a->octets + part * ((double)b->octets - a->octets);
    return v < 1 ? 1 : (uint64_t)v;
}
