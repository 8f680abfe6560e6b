/* SPDX-License-Identifier: BSD-3-Clause
 *
 * For tests of huge pages: does this kernel have them for shared memory, and which memory got them?
 */
#ifndef URNIC_TEST_HUGE_H
#define URNIC_TEST_HUGE_H

#include <check.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ipc_map.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

/* Octets of the mapping that begins at `at` that lie in huge pages, as the kernel counts them. */
static inline size_t huge_octets(const void *at)
{
    FILE *f = fopen("/proc/self/smaps", "re");
    char line[256];
    bool here = false;
    unsigned long begin, end, kib = 0;
    ck_assert_ptr_nonnull(f);
    while (fgets(line, sizeof(line), f)) {
        if (sscanf(line, "%lx-%lx ", &begin, &end) == 2)
            here = begin == (uintptr_t)at;
        else if (here && sscanf(line, "ShmemPmdMapped: %lu kB", &kib) == 1)
            break;
    }
    fclose(f);
    return kib * 1024;
}

/* Does the kernel give a memfd a huge page (Linux 6.1, memory in one piece), without our code? */
static inline bool huge_possible(void)
{
    int fd = memfd_create("probe", MFD_CLOEXEC);
    uint8_t *p = MAP_FAILED;
    bool ok = false;
    if (fd >= 0 && ftruncate(fd, 2 * (off_t)IPC_HUGE) == 0)
        p = mmap(NULL, 2 * IPC_HUGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p != MAP_FAILED) {
        /* Only a mapping at a multiple can have one: map it there. */
        uint8_t *at = p + (-(uintptr_t)p & (IPC_HUGE - 1));
        at = mmap(at, IPC_HUGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
        ok = at != MAP_FAILED && (*at = 1) && madvise(at, IPC_HUGE, MADV_COLLAPSE) == 0;
        munmap(p, 2 * IPC_HUGE);
    }
    close(fd);
    if (!ok)
        printf("no huge pages for shared memory here\n");
    return ok;
}

#endif
