/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Administrators' requests without a struct of their own: emulated links, and requests in JSON.
 */
#ifndef URNICD_LINKCTL_H
#define URNICD_LINKCTL_H

#include "request.h"

/* Change the faults of the emulated link below a device. -ENODEV: its port isn't on one; -EINVAL: a
 * share of more than a million parts per million. */
int linkctl_set(struct device *d, const struct ipc_link_admin *in, uint64_t now);

/* One JSON object in, one out: {"cmd": "config"}, {"cmd": "log-level", "level": "debug"}, {"cmd":
 * "cc"} (ccctl.h), {"cmd": "faults"} (faultctl.h). Returns the octets written to out, or -errno.
 * -EBADMSG: not JSON; -ENOTSUP: unknown cmd; -EMSGSIZE. On the control thread. */
int linkctl_admin(struct request *r, const char *text, size_t len, char *out, size_t size);

#endif
