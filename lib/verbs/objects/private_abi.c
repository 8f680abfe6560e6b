/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions of libibverbs for drivers of vendors. A driver is loaded with programs that are linked
 * with it, and registers itself at that time: registering does nothing, so the driver finds no
 * device. No other code of it runs, so all other functions are refused.
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
