/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The daemon's side of `urnic stat --processes`: a list of processes with their objects on devices.
 */
#ifndef URNICD_PROCCTL_H
#define URNICD_PROCCTL_H

#include <jansson.h>
#include <stddef.h>

#include "request.h"

/* {"cmd": "processes", "first": N} -> {"contexts": [{...}], "next": N}: one object for each open
 * context, from the Nth on, and "next" if more follow. Returns the length of the text or -errno:
 * -EINVAL: a wrong "first"; -EMSGSIZE. On the control thread. */
int procctl_admin(struct request *r, const json_t *in, char *out, size_t size);

#endif
