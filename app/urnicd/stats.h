/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Counters of a device, from all its parts, as one list; and in three forms: text, JSON,
 * Prometheus.
 */
#ifndef URNICD_STATS_H
#define URNICD_STATS_H

#include <stddef.h>
#include <stdint.h>

#define STATS_MAX 256u

struct device;

struct stats_entry {
    const char *name;
    uint64_t value;
};

enum stats_format { STATS_TEXT, STATS_JSON, STATS_PROMETHEUS };

/* All counters; on the device's worker. Returns the number (at most STATS_MAX). */
unsigned stats_collect(struct device *d, struct stats_entry out[STATS_MAX]);

/* Write the counters of one device in a form; returns the length that it has (as snprintf). JSON:
 * one object. Prometheus: urnic_NAME{device="urn0"} VALUE, one a line. */
size_t stats_format(const char *device, const struct stats_entry *e, unsigned n,
                    enum stats_format form, char *buf, size_t size);

#endif
