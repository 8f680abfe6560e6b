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

/* Take it out of a specification: `rest` is what remains, `name` the interface, "" when there is
 * none. Within brackets, which are a driver's, it isn't looked for. Returns 0, or -EINVAL with a
 * sentence in err (may be NULL): no name of an interface, there twice, or a port that has no place
 * for it. */
int tap_spec_split(const char *spec, char rest[IO_SPEC_MAX], char name[IF_NAMESIZE], char *err,
                   size_t err_size);

#endif
