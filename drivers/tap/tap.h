/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A port that shares its wire with the kernel: frames that are not RoCE to the device go to a tap
 * interface with the port's MAC address, and frames that the kernel sends there leave by the port.
 */
#ifndef URNIC_TAP_H
#define URNIC_TAP_H

#include "io.h"

/* Put the interface `name` beside the port `below`, which belongs to *out from now on. `params` are
 * those that it was opened with. 0 and *out; or -errno with a sentence in err, and `below` is still
 * the caller's. */
int tap_open(const char *name, struct io_port *below, const struct io_open_params *params,
             struct io_port **out, char *err, size_t err_size);

#endif
