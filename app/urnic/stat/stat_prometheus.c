/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Prometheus' text format: all samples of a metric stand together, under lines with its meaning and
 * type, so metrics are the outer loop and devices the inner one.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "stat.h"

/* Values that can go down; all others only count up. */
static const char *const gauges[] = {
    "qps",       "cqs",     "srqs",    "pds",      "mrs",      "mws",
    "mr_octets", "cm_live", "port_up", "contexts", "programs", "programs_silent",
};

static bool is_gauge(const char *name)
{
    for (size_t i = 0; i < sizeof(gauges) / sizeof(gauges[0]); i++)
        if (strcmp(gauges[i], name) == 0)
            return true;
    return false;
}

/* Rename a counter with "us" in its name, which scrapers' checkers take for the unit. */
static const char *metric_of(const char *name)
{
    return strcmp(name, "rx_not_for_us") == 0 ? "rx_not_for_device" : name;
}

/* The name of a metric: counters end in _total, as scrapers and their checkers expect. */
static void print_head(const char *name, bool gauge, const char *text)
{
    const char *end = gauge ? "" : "_total";
    printf("# HELP urnic_%s%s %s\n", name, end, text);
    printf("# TYPE urnic_%s%s %s\n", name, end, gauge ? "gauge" : "counter");
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

/* Print a counter that devices before `first` lack, for all devices that have it. */
static void print_counter(const struct stat_device *dev, unsigned n, unsigned first,
                          const char *name)
{
    bool gauge = is_gauge(name);
    char text[128];
    print_head(metric_of(name), gauge, stat_help(name, text, sizeof(text)));
    for (unsigned i = first; i < n; i++) {
        const struct ipc_counter *c = find(&dev[i], name);
        if (!c)
            continue;
        print_name(metric_of(name), gauge);
        printf("{device=\"%s\"} %llu\n", dev[i].name, (unsigned long long)c->value);
    }
}

/* ---- queue pairs ---- */

#define QP_VALUES(X)                                                                               \
    X(tx_packets, false, "Packets that the queue pair sent.")                                      \
    X(tx_bytes, false, "Octets that the queue pair sent.")                                         \
    X(rx_packets, false, "Packets that the queue pair received.")                                  \
    X(rx_bytes, false, "Octets that the queue pair received.")                                     \
    X(retransmits, false, "Packets that the queue pair sent again.")                               \
    X(timeouts, false, "Time-outs of the queue pair.")                                             \
    X(naks, false, "NAKs that the queue pair received.")                                           \
    X(rnr_naks, false, "RNR NAKs that the queue pair received.")                                   \
    X(sq_used, true, "Requests in the send queue.")                                                \
    X(rq_used, true, "Requests in the receive queue.")                                             \
    X(inflight_packets, true, "Packets in flight.")                                                \
    X(rd_atomic_out, true, "READs and atomics that wait for the answer.")

#define X(name, gauge, text)                                                                       \
    static double qp_##name(const struct ipc_qp_info *q)                                           \
    {                                                                                              \
        return (double)q->name;                                                                    \
    }
QP_VALUES(X)
#undef X

/* Negative: no limit, so no sample. */
static double qp_cc_rate(const struct ipc_qp_info *q)
{
    return q->cc_rate == UINT64_MAX ? -1 : (double)q->cc_rate;
}

static const struct {
    const char *name;
    bool gauge;
    const char *text;
    double (*value)(const struct ipc_qp_info *q);
} qp_values[] = {
#define X(name, gauge, text) {"qp_" #name, gauge, text, qp_##name},
    QP_VALUES(X)
#undef X
        {"qp_cc_rate", true, "Rate limit of congestion control, bit/s; no sample: no limit.",
         qp_cc_rate},
    {"qp_cc_alpha", true, "Alpha of congestion control, 0 to 1.", stat_alpha},
};

/* A process may have any name: escape it. */
static void print_quoted(const char *text)
{
    for (; *text; text++) {
        if (*text == '\n')
            fputs("\\n", stdout);
        else if (*text == '"' || *text == '\\')
            printf("\\%c", *text);
        else
            putchar(*text);
    }
}

static void print_info(const struct stat_device *d, const struct ipc_qp_info *q)
{
    printf("urnic_qp_info{device=\"%s\",qpn=\"%u\",type=\"%s\",state=\"%s\",cc=\"%s\",pid=\"%u\","
           "comm=\"",
           d->name, q->qpn, stat_qp_type(q->type), stat_qp_state(q->state), q->cc, q->pid);
    print_quoted(q->comm);
    printf("\"} 1\n");
}

static void print_qps(const struct stat_device *dev, unsigned n)
{
    unsigned found = 0;
    for (unsigned i = 0; i < n; i++)
        for (unsigned k = 0; k < dev[i].qps.count; k++) {
            if (found++ == 0)
                print_head("qp_info", true,
                           "1 for each queue pair; the labels name its kind and its owner.");
            print_info(&dev[i], &dev[i].qps.qp[k]);
        }
    for (size_t v = 0; found > 0 && v < sizeof(qp_values) / sizeof(qp_values[0]); v++) {
        const char *name = qp_values[v].name;
        print_head(name, qp_values[v].gauge, qp_values[v].text);
        for (unsigned i = 0; i < n; i++)
            for (unsigned k = 0; k < dev[i].qps.count; k++) {
                double value = qp_values[v].value(&dev[i].qps.qp[k]);
                if (value < 0)
                    continue;
                print_name(name, qp_values[v].gauge);
                printf("{device=\"%s\",qpn=\"%u\"} %.17g\n", dev[i].name, dev[i].qps.qp[k].qpn,
                       value);
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
    print_qps(dev, n);
}
