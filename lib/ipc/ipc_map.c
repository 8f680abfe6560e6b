/* SPDX-License-Identifier: BSD-3-Clause */
#include "ipc_map.h"

#include <stdint.h>
#include <sys/mman.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1 */
#endif

void *ipc_map(int fd, off_t off, size_t len, int prot)
{
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
