/* SPDX-License-Identifier: BSD-3-Clause */
#include "ipc_map.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1 */
#endif

#define STAND_INS 1024

/* The memory of stand-ins. Slots without a lock, which a child of a fork could find locked. */
static struct stand_in {
    _Atomic(void *) at; /* NULL = free */
    size_t len;
} stand_in[STAND_INS];
static _Atomic bool stand_ins;

void ipc_object_stand_ins(void)
{
    atomic_store_explicit(&stand_ins, true, memory_order_relaxed);
}

static struct stand_in *stand_in_of(int object)
{
    return &stand_in[-4096 - object];
}

static int stand_in_new(size_t len)
{
    if (!atomic_load_explicit(&stand_ins, memory_order_relaxed))
        return -EFBIG;
    void *at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return -errno;
    madvise(at, len, MADV_DONTFORK);
    for (int i = 0; i < STAND_INS; i++) {
        void *none = NULL;
        if (!atomic_compare_exchange_strong(&stand_in[i].at, &none, at))
            continue;
        stand_in[i].len = len;
        return -4096 - i;
    }
    munmap(at, len);
    return -EFBIG;
}

/* A second mapping of the same memory. */
static void *stand_in_map(int object, size_t len, int prot)
{
    void *at = atomic_load(&stand_in_of(object)->at);
    void *more = (void *)syscall(SYS_mremap, at, 0, len, MREMAP_MAYMOVE, NULL);
    if (more == MAP_FAILED || mprotect(more, len, prot) == 0)
        return more;
    munmap(more, len);
    return MAP_FAILED;
}

int ipc_object_new(const char *name, size_t len)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && len > limit.rlim_cur)
        return stand_in_new(len);
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -errno;
    if (ftruncate(fd, (off_t)len) < 0) {
        int rc = -errno;
        close(fd);
        return rc;
    }
    return fd;
}

void ipc_object_close(int object)
{
    if (!ipc_object_is_stand_in(object)) {
        close(object);
        return;
    }
    struct stand_in *s = stand_in_of(object);
    munmap(atomic_load(&s->at), s->len);
    atomic_store(&s->at, NULL);
}

void *ipc_map(int fd, off_t off, size_t len, int prot)
{
    if (ipc_object_is_stand_in(fd))
        return stand_in_map(fd, len, prot);
    if (len < IPC_HUGE || len > SIZE_MAX - IPC_HUGE)
        return mmap(NULL, len, prot, MAP_SHARED, fd, off);
    /* A suitable address equals the offset modulo IPC_HUGE. Mapping more than needed finds room for
     * one. If another thread takes that room in between, any address will do. */
    uint8_t *room =
        mmap(NULL, len + IPC_HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    uint8_t *at = NULL;
    if (room != MAP_FAILED) {
        at = room + (((uintptr_t)off - (uintptr_t)room) & (IPC_HUGE - 1));
        munmap(room, len + IPC_HUGE);
    }
    return mmap(at, len, prot, MAP_SHARED, fd, off);
}

size_t ipc_map_huge(void *at, size_t len)
{
    size_t got = 0;
    uint8_t *p = (uint8_t *)at + (-(uintptr_t)at & (IPC_HUGE - 1));
    uint8_t *end = (uint8_t *)at + len;
    madvise(at, len, MADV_HUGEPAGE); /* for missing pages, if the kernel permits it */
    for (; p < end && (size_t)(end - p) >= IPC_HUGE; p += IPC_HUGE) {
        (void)*(volatile const uint8_t *)p; /* only existing pages are collapsed */
        if (madvise(p, IPC_HUGE, MADV_COLLAPSE) < 0)
            break;
        got += IPC_HUGE;
    }
    return got;
}
