/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The daemon's devices as /sys shows them, and the entries at their paths.
 */
#ifndef URNIC_VERBS_SYSFS_LOAD_H
#define URNIC_VERBS_SYSFS_LOAD_H

#include "sysfs.h"

/* All devices; the caller frees *devs. Returns their number; 0 = no daemon, no devices or no
 * memory. */
int sysfs_load(struct sysfs_device **devs);
/* Is this one of our paths? Then *node is its entry, and `clean` (`size` octets; may be NULL) the
 * clean path. Keeps errno. */
bool sysfs_at(const char *path, struct sysfs_node *node, char *clean, size_t size);

#endif
