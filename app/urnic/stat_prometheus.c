/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Prometheus' text format: all samples of a metric stand together, under a line with its type, so
 * metrics are the outer loop and devices the inner one.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "stat.h"

/* What goes down again; everything else only counts up. */
static const char *const gauges[] = {
    "qps", "cqs", "srqs", "pds", "mrs", "mws", "mr_octets", "cm_live", "port_up", "contexts",
};

static bool is_gauge(const char *name)
{
    for (size_t i = 0; i < sizeof gauges / sizeof gauges[0]; i++)
        if (strcmp(gauges[i], name) == 0)
            return true;
    return false;
}

/* What a metric is called: counters end in _total, as scrapers and their checkers expect it. */
static void print_type(const char *name, bool gauge)
{
    printf("# TYPE urnic_%s%s\n", name, gauge ? " gauge" : "_total counter");
}

static void print_name(const char *name, bool gauge)
{
    printf("urnic_%s%s", name, gauge ? "" : "_total");
}

static const struct ipc_counter *find(const struct stat_device *d, const char *name)
{
    for (unsigned i = 0; i < d->counters.count; i++)
        if (strcmp(d->counters.counter[i].name, name) == 0)
            return &d->counters.counter[i];
    return NULL;
}

/* A counter that devices before `first` don't have: of all that have it. */
static void print_counter(const struct stat_device *dev, unsigned n, unsigned first,
                          const char *name)
{
    bool gauge = is_gauge(name);

    print_type(name, gauge);
    for (unsigned i = first; i < n; i++) {
        const struct ipc_counter *c = find(&dev[i], name);
        if (!c)
            continue;
        print_name(name, gauge);
        printf("{device=\"%s\"} %llu\n", dev[i].name, (unsigned long long)c->value);
    }
}

static uint64_t qp_retransmits(const struct ipc_qp_info *q)
{
    return q->retransmits;
}

static uint64_t qp_cc_rate(const struct ipc_qp_info *q)
{
    return q->cc_rate;
}

static void print_qps(const struct stat_device *dev, unsigned n, const char *name, bool gauge,
                      uint64_t (*value)(const struct ipc_qp_info *))
{
    bool begun = false;

    for (unsigned i = 0; i < n; i++) {
        for (unsigned k = 0; k < dev[i].qps.count; k++) {
            uint64_t v = value(&dev[i].qps.qp[k]);
            if (v == UINT64_MAX) /* no limit: no sample */
                continue;
            if (!begun)
                print_type(name, gauge);
            begun = true;
            print_name(name, gauge);
            printf("{device=\"%s\",qpn=\"%u\"} %llu\n", dev[i].name, dev[i].qps.qp[k].qpn,
                   (unsigned long long)v);
        }
    }
}

void stat_prometheus(const struct stat_device *dev, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        for (unsigned k = 0; k < dev[i].counters.count; k++) {
            const char *name = dev[i].counters.counter[k].name;
            bool seen = false;
            for (unsigned j = 0; j < i; j++)
                seen |= find(&dev[j], name) != NULL;
            if (!seen)
                print_counter(dev, n, i, name);
        }
    }
    print_qps(dev, n, "qp_retransmits", false, qp_retransmits);
    print_qps(dev, n, "qp_cc_rate", true, qp_cc_rate);
}
