/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Looking at congestion control and loss recovery, and changing them while the daemon runs.
 */
#ifndef URNICD_CCCTL_H
#define URNICD_CCCTL_H

#include <jansson.h>

#include "request.h"

/* {"cmd": "cc"[, "device": D][, "set": SPEC[, "qpn": N]][, "qps": true[, "first": F]]}: one JSON
 * object a line and device: the parameters in force, with qps those of its queue pairs, their rates
 * and how they recover from losses. `set` changes the device's, which all queue pairs without their
 * own follow, or that of one queue pair. With `first`, which needs a device, some queue pairs from
 * the F-th on, counted from 0, and "next" unless these were the last; without it all of them.
 * As linkctl_admin; errors beside its: -ENOENT no such queue pair, -EPERM, -EINVAL the text is
 * wrong, N no number of a queue pair or F none; -EMSGSIZE more queue pairs than an answer holds.
 * On the control thread. */
int ccctl_admin(struct request *r, const json_t *in, char *out, size_t size);

#endif
