/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Addresses of the next functions after ours. Threads that resolve one at the same time find the
 * same address.
 */
#include "next.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

static long no_such_function(void)
{
    errno = ENOSYS;
    return -1;
}

any_function next_function(enum next_function which)
{
    static const char *const names[NEXT_COUNT] = {
#define NEXT_NAME(name) #name,
        NEXT_FUNCTIONS(NEXT_NAME)
#undef NEXT_NAME
    };
    static _Atomic(any_function) found[NEXT_COUNT];
    any_function f = atomic_load_explicit(&found[which], memory_order_relaxed);

    if (f == NULL) {
        int saved = errno;
        void *address = dlsym(RTLD_NEXT, names[which]);
        if (address != NULL)
            memcpy(&f, &address, sizeof(f));
        else
            f = (any_function)no_such_function;
        atomic_store_explicit(&found[which], f, memory_order_relaxed);
        errno = saved;
    }
    return f;
}
