/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Requests that show and change congestion control and loss recovery while the daemon runs.
 */
#ifndef URNICD_CCCTL_H
#define URNICD_CCCTL_H

#include <jansson.h>

#include "request.h"

/* {"cmd": "cc"[, "device": D][, "set": SPEC[, "qpn": N]][, "qps": true[, "first": F]]}: one JSON
 * object a line and device, with the parameters in force. "qps" adds the queue pairs: parameters,
 * rates, loss recovery. "set" changes the device's parameters, which all queue pairs without their
 * own follow, or those of one queue pair. "first", which needs a device, gives some queue pairs
 * from the F-th on, counted from 0, and "next" unless these were the last; without it all queue
 * pairs are given.
 *
 * As linkctl_admin. Further errors: -ENOENT: no such queue pair. -EPERM. -EINVAL: the text is
 * wrong, or N is no queue pair's number, or F is no count. -EMSGSIZE: more queue pairs than an
 * answer holds. On the control thread. */
int ccctl_admin(struct request *r, const json_t *in, char *out, size_t size);

#endif
