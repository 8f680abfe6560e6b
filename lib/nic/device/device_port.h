/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The port of a device and its interface: their current state (WIRE-36). On the device's worker.
 */
#ifndef NIC_DEVICE_PORT_H
#define NIC_DEVICE_PORT_H

#include <stdbool.h>
#include <stdint.h>

struct device;
struct io_port;
struct mem_link;

/* Octets of IP that fit in a frame of the port, independent of the configured MTU. */
uint32_t device_room(const struct device *d);
/* The emulated link below a device; the caller ends with mem_link_put. NULL: no emulated link. */
struct mem_link *device_link(const struct device *d);
/* The device's port, or the one inside it (kernel=). */
struct io_port *device_lowest(const struct device *d);
/* Make received frames wake the port's worker. */
void device_watch(struct device *d);
/* Every few ms, before the check of the link: follow changes of the port's MTU, MAC address, number
 * and descriptor (WIRE-36). */
void device_follow(struct device *d, uint64_t now);
/* Queue pairs follow the port's MAC, its MTU and the device's congestion control in passes, a
 * bounded part in one round (SHM-12). Is a pass under way; do its next part. On the worker. */
bool device_qps_follow(const struct device *d);
void device_qps_run(struct device *d, uint64_t now);

#endif
