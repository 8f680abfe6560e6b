/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Fault rules of emulated links, by request.
 */
#ifndef URNICD_FAULTCTL_H
#define URNICD_FAULTCTL_H

#include <jansson.h>

#include "request.h"

/* {"cmd": "faults", "device": "urn0"}: the counts of the fault rules of the device's emulated link.
 * "rules" (a text in the language of lib/fault, "" = none) replaces the rules first. Out:
 * {"device", "rules": [{"line", "rule", "matched", "done", "failed"}]}. Returns the octets written,
 * or -errno. -ENODEV: no such device or not on an emulated link; -EPERM, -EINVAL: the text is
 * wrong; -EMSGSIZE. On the control thread. */
int faultctl_admin(struct request *r, const json_t *in, char *out, size_t size);

#endif
