/* SPDX-License-Identifier: BSD-3-Clause
 *
 * All congestion control algorithms. A new one is one file, and one line here.
 */
#include <string.h>

#include "cc.h"

const struct cc_type *const cc_types[] = {
    &cc_none,
    NULL,
};

const struct cc_type *cc_type_find(const char *name)
{
    for (const struct cc_type *const *t = cc_types; *t; t++)
        if (!strcmp((*t)->name, name))
            return *t;
    return NULL;
}
