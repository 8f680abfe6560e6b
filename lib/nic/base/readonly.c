/* SPDX-License-Identifier: BSD-3-Clause
 *
 * F_SEAL_FUTURE_WRITE keeps our own mapping writable and forbids every later one.
 */
#include "readonly.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "ipc_map.h"

int readonly_new(const char *name, size_t size, void **at, int *fd)
{
    const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;
    void *base;
    int object = ipc_object_new(name, size);
    if (object < 0 && !ipc_object_is_stand_in(object))
        return object;
    base = ipc_map(object, 0, size, PROT_READ | PROT_WRITE);
    if (base == MAP_FAILED || (object >= 0 && fcntl(object, F_ADD_SEALS, seals) < 0)) {
        int rc = -errno;
        if (base != MAP_FAILED)
            munmap(base, size);
        ipc_object_close(object);
        return rc;
    }
    *at = base;
    *fd = object;
    return 0;
}
