/* SPDX-License-Identifier: BSD-3-Clause
 *
 * libc functions that this library defines, too, so that programs find devices which the kernel
 * doesn't have. They are exported without a version. A call that does not concern our files takes
 * no lock, allocates nothing and leaves errno to the next function.
 */
#ifndef URNIC_VERBS_INTERPOSE_H
#define URNIC_VERBS_INTERPOSE_H

#include "next.h"

#define INTERPOSED __attribute__((visibility("default")))

/* Declared with their parameters unchecked for NULL, which programs may pass. */
#define WITH_MODE(flags) (((flags)&O_CREAT) != 0 || ((flags)&O_TMPFILE) == O_TMPFILE)

#endif
