/* SPDX-License-Identifier: BSD-3-Clause
 *
 * F_SEAL_FUTURE_WRITE keeps our own mapping writable and forbids every later one.
 */
#include "readonly.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

int readonly_new(const char *name, size_t size, void **at, int *fd)
{
    const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;
    void *base = MAP_FAILED;
    int memfd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (memfd < 0)
        return -errno;
    if (ftruncate(memfd, (off_t)size) == 0)
        base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
    if (base == MAP_FAILED || fcntl(memfd, F_ADD_SEALS, seals) < 0) {
        int rc = -errno;
        if (base != MAP_FAILED)
            munmap(base, size);
        close(memfd);
        return rc;
    }
    *at = base;
    *fd = memfd;
    return 0;
}
