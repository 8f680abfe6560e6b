/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory for rings and buffers. A received descriptor is safe to map for these reasons: only memfds
 * carry seals, a shrink seal can't be taken back, and pages of ordinary shared memory that were
 * punched out come back as zeroes (hugetlbfs may have none left and raise SIGBUS instead).
 */
#include "memif_region.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

int memif_region_create(struct memif_region *r, uint64_t size)
{
    struct rlimit limit; /* in a program, the kernel would kill it */
    *r = (struct memif_region){.fd = -1};
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && size > limit.rlim_cur)
        return -EFBIG;
    int fd = memfd_create("memif", MFD_ALLOW_SEALING | MFD_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (ftruncate(fd, (off_t)size) < 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0) {
        int error = -errno;
        close(fd);
        return error;
    }
    /* Not MAP_POPULATE: the peer may never use all of it, and zeroing it would stall the worker. */
    void *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED) {
        int error = -errno;
        close(fd);
        return error;
    }
    *r = (struct memif_region){.base = base, .size = size, .fd = fd};
    return 0;
}

static enum memif_reason region_check(int fd, uint64_t size, bool trust)
{
    struct stat st;
    struct statfs fs;
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 && !trust) /* no further system call on a file of FUSE: see memory_foreign */
        return MEMIF_UNSEALED;
    if (size == 0 || size > MEMIF_REGION_MAX || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
        (uint64_t)st.st_size < size)
        return MEMIF_REGION;
    if (trust)
        return MEMIF_OK;
    if (!(seals & F_SEAL_SHRINK) || fstatfs(fd, &fs) < 0 || fs.f_type == HUGETLBFS_MAGIC)
        return MEMIF_UNSEALED;
    return MEMIF_OK;
}

enum memif_reason memif_region_map(struct memif_region *r, int fd, uint64_t size, bool trust)
{
    enum memif_reason reason = region_check(fd, size, trust);
    void *base = MAP_FAILED;
    *r = (struct memif_region){.fd = -1};
    if (reason == MEMIF_OK) {
        base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (base == MAP_FAILED)
            reason = errno == ENOMEM ? MEMIF_SYSTEM : MEMIF_REGION;
    }
    if (reason == MEMIF_OK)
        *r = (struct memif_region){.base = base, .size = size, .fd = -1};
    return reason;
}

int memif_region_again(const struct memif_region *from, struct memif_region *r)
{
    /* An old size of 0 makes a second mapping of the same shared memory. */
    void *base = mremap(from->base, 0, from->size, MREMAP_MAYMOVE);
    *r = (struct memif_region){.fd = -1};
    if (base == MAP_FAILED)
        return -ENOMEM;
    *r = (struct memif_region){.base = base, .size = from->size, .fd = -1};
    return 0;
}

void memif_region_free(struct memif_region *r)
{
    if (r->base)
        munmap(r->base, r->size);
    if (r->fd >= 0)
        close(r->fd);
    *r = (struct memif_region){.fd = -1};
}
