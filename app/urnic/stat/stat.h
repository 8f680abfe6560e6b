/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Statistics of a running daemon, fetched whole: for `urnic stat` and `urnic top`.
 */
#ifndef URNIC_STAT_H
#define URNIC_STAT_H

#include "admin.h"

struct stat_counters {
    unsigned count;
    struct ipc_counter *counter;
};

struct stat_qps {
    unsigned count;
    struct ipc_qp_info *qp;
};

struct stat_device {
    char name[IPC_NAME_MAX];
    struct stat_counters counters;
    struct stat_qps qps;
};

/* All counters of a device. 0 or -errno; free with stat_free_counters. */
int stat_counters(struct admin *a, const char *device, struct stat_counters *out);
void stat_free_counters(struct stat_counters *c);
/* The counter's value; 0 if none has this name. */
uint64_t stat_value(const struct stat_counters *c, const char *name);
/* The sum of the counters of dropped RoCE frames. */
uint64_t stat_drops(const struct stat_counters *c);

/* All queue pairs of a device, or the one of number `qpn` (0 = all), which need not exist. 0 or
 * -errno; free with stat_free_qps. */
int stat_qps(struct admin *a, const char *device, uint32_t qpn, struct stat_qps *out);
void stat_free_qps(struct stat_qps *q);

/* Print each program's objects on all devices, or on this one: as text, or a JSON object for each
 * device. 0 or -errno. -ENODEV: no such device; -ENOTSUP: an older daemon. */
int stat_processes(struct admin *a, const char *device, bool as_json);

/* The meaning of a counter, in one line: a constant, or written into buf. A counter without a text
 * of its own gets the name of its rule. */
const char *stat_help(const char *name, char *buf, size_t size);

/* Print these devices in Prometheus' text format. Names are safe in it: the daemon and its
 * configuration see to that. */
void stat_prometheus(const struct stat_device *dev, unsigned n);

/* Names of the protocol's numbers: "RC", "RTS", "gbn". */
const char *stat_qp_type(unsigned type);
const char *stat_qp_state(unsigned state);
const char *stat_recovery(unsigned mode);
/* A rate limit as text: "-" for none. Returns buf. */
const char *stat_rate(uint64_t rate, char *buf, size_t size);
/* Alpha of congestion control, 0 .. 1. */
double stat_alpha(const struct ipc_qp_info *qp);

#endif
