/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Files in memory count for the limit on the size of files (ulimit -f), and the kernel kills a
 * program whose file would go beyond it.
 */
#ifndef URNIC_VERBS_FILE_LIMIT_H
#define URNIC_VERBS_FILE_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>

/* May a file of this process have `len` octets? Any thread. */
static inline bool uv_file_fits(size_t len)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) < 0 || len <= limit.rlim_cur;
}

#endif
