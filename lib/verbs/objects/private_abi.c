/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What drivers of vendors call in libibverbs. They are loaded with programs that know them, and
 * register themselves when they are: then they hear nothing, and find no device. Nothing else of
 * them runs, so the rest is refused.
 */
#include <stddef.h>

#include "private_names.h"
#include "verbs_priv.h"

#define SILENT(name)                                                                               \
    UV_EXPORT void name(void);                                                                     \
    void name(void)                                                                                \
    {                                                                                              \
    }
#define NOTHING(name)                                                                              \
    UV_EXPORT void *name(void);                                                                    \
    void *name(void)                                                                               \
    {                                                                                              \
        return uv_null(-ENOSYS);                                                                   \
    }
#define REFUSED(name)                                                                              \
    UV_EXPORT int name(void);                                                                      \
    int name(void)                                                                                 \
    {                                                                                              \
        return ENOSYS;                                                                             \
    }

SILENT(verbs_register_driver_34)
PRIVATE_34(SILENT, NOTHING, REFUSED)
