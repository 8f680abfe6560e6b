/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The word kernel=INTERFACE in a port specification, which any port of frames may have. Pure
 * functions.
 */
#ifndef URNIC_TAP_SPEC_H
#define URNIC_TAP_SPEC_H

#include <net/if.h>
#include <stddef.h>

#include "io.h"

/* Remove the key from a specification: `rest` is the remainder, `name` the interface, "" if there
 * is none. Keys within brackets belong to a driver. Returns 0, or -EINVAL with a sentence in err
 * (may be NULL): no name of an interface, given twice, or a port that doesn't take it. */
int tap_spec_split(const char *spec, char rest[IO_SPEC_MAX], char name[IF_NAMESIZE], char *err,
                   size_t err_size);

#endif
