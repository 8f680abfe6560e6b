/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The port of a device, and its interface, as they are now (WIRE-36). On the device's worker.
 */
#ifndef NIC_DEVICE_PORT_H
#define NIC_DEVICE_PORT_H

#include <stdbool.h>
#include <stdint.h>

struct device;
struct io_port;
struct mem_link;

/* Octets of IP that a frame of the port has room for, whatever MTU was asked for. */
uint32_t device_room(const struct device *d);
/* The emulated link below a device, for the caller to mem_link_put; NULL: its port isn't on one. */
struct mem_link *device_link(const struct device *d);
/* The device's port, or the one inside it (kernel=). */
struct io_port *device_lowest(const struct device *d);
/* Have what the port receives wake its worker. */
void device_watch(struct device *d);
/* Every few ms, before the link is looked at: the port's MTU, MAC address, number and descriptor as
 * they are now (WIRE-36). */
void device_follow(struct device *d, uint64_t now);
/* Queue pairs follow the port's MAC, its MTU and the device's congestion control in passes, a
 * bounded part in one round (SHM-12). Is there one under way; its next part. On the worker. */
bool device_qps_follow(const struct device *d);
void device_qps_run(struct device *d, uint64_t now);

#endif
