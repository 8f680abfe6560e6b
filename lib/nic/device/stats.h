/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Counters of a device, from all its parts, as one list.
 */
#ifndef NIC_STATS_H
#define NIC_STATS_H

#include <stdint.h>

#define STATS_MAX 384u

struct device;

struct stats_entry {
    const char *name;
    uint64_t value;
};

/* Counters that are being collected; at most STATS_MAX. */
struct stats_list {
    struct stats_entry *e;
    unsigned n;
};

/* One more counter; `name` is kept. */
void stats_add(struct stats_list *list, const char *name, uint64_t value);

/* Add the counters of another worker of the same device, `from`, to those of its first, as one
 * device's. */
void stats_merge(struct stats_entry *to, unsigned n, const struct stats_entry *from,
                 unsigned nfrom);

/* All counters of this worker; on the device's worker. Returns the number (at most STATS_MAX). */
unsigned stats_collect(struct device *d, struct stats_entry out[STATS_MAX]);

#endif
