/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A port's device in DPDK. One thread at a time, of all ports, may plug in or out, in the network
 * namespace of the port: the caller ensures both.
 */
#ifndef URNIC_DPDK_DEVICE_H
#define URNIC_DPDK_DEVICE_H

#include "dpdk_port.h"

/* Probe the device of port->spec and start it, for frames of up to `frame_max` octets if it can:
 * fills in the port's device and `next`. 0, or -errno with a sentence in err and no device. */
int dpdk_device_add(struct dpdk_port *port, uint32_t frame_max, char *err, size_t size);
/* Stop the device and remove it from DPDK. Harmless without one. The buffer pool stays. */
void dpdk_device_remove(struct dpdk_port *port);

/* The largest frame that a port over this kind of kernel interface can have. */
uint32_t dpdk_iface_frame_limit(const struct dpdk_port *port);
/* Set the kernel interface's frame size. Returns the size that it really takes, octets. */
uint32_t dpdk_iface_frame_max(struct dpdk_port *port, uint32_t wanted);

/* A sentence into err; returns `code`. */
int dpdk_fail(char *err, size_t size, int code, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

#endif
