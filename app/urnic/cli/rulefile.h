/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Files of fault rules (doc/faults.md).
 */
#ifndef URNIC_RULEFILE_H
#define URNIC_RULEFILE_H

#include <stddef.h>

#include "fault.h"

/* Read a file of at most `most` octets and its rules; `seed` starts their dice. Returns the rules,
 * and in *text (if not NULL) the text, ended by a NUL, for the caller to free; or NULL after a
 * message. */
struct fault *rulefile_read(const char *file, size_t most, uint64_t seed, char **text);

#endif
