/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The connection manager of a device: wraps lib/cm (sans-IO) and joins its connections to clients'
 * ids, queue pairs and event channels. On the device's worker.
 */
#ifndef NIC_CMGR_H
#define NIC_CMGR_H

#include <stdint.h>

struct cmgr;
struct device;

/* Make the connection manager of an open device; it serves the device's QP1 (device.gsi) and ends
 * with the device, when no id of it is left. NULL = out of memory or of random numbers. */
struct cmgr *cmgr_create(struct device *d);
/* The connection manager of a device. */
struct cmgr *cmgr_of(const struct device *d);
/* The number of connections. */
uint32_t cmgr_live(const struct cmgr *m);

#endif
