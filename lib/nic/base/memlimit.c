/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See memlimit.h. Memory that clients share with the daemon is charged to the process that touches
 * a page first, often a worker: so the kernel may kill the daemon for it.
 */
#include "memlimit.h"

#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>

/* The number in a file; UINT64_MAX = no file, or no number in it, as in "max". */
static uint64_t number_in(const char *path)
{
    uint64_t n = UINT64_MAX;
    FILE *f = fopen(path, "re");
    if (!f)
        return n;
    if (fscanf(f, "%" SCNu64, &n) != 1)
        n = UINT64_MAX;
    fclose(f);
    return n;
}

/* The smallest limit of a group and those that it is in. */
static uint64_t least_above(const char *root, const char *sub, const char *group, const char *file)
{
    char path[PATH_MAX], name[PATH_MAX];
    uint64_t least = UINT64_MAX;
    snprintf(name, sizeof(name), "%s", group);
    for (;;) {
        int n = snprintf(path, sizeof(path), "%s%s%s/%s", root, sub, name, file);
        uint64_t one = n > 0 && (size_t)n < sizeof(path) ? number_in(path) : UINT64_MAX;
        if (one < least)
            least = one;
        char *slash = strrchr(name, '/');
        if (!slash)
            return least;
        *slash = '\0';
    }
}

/* Is `memory` in this list of words with commas? */
static bool has_memory(const char *list)
{
    const char *at = strstr(list, "memory");
    return at && (at == list || at[-1] == ',') && (at[6] == '\0' || at[6] == ',');
}

uint64_t memlimit_of(const char *proc, const char *root)
{
    char line[PATH_MAX];
    uint64_t least = UINT64_MAX, one;
    FILE *f = fopen(proc, "re");
    if (!f)
        return least;
    while (fgets(line, sizeof(line), f)) {
        char *list = strchr(line, ':'), *group = list ? strchr(list + 1, ':') : NULL;
        if (!group)
            continue;
        line[strcspn(line, "\n")] = '\0';
        *group++ = '\0';
        list++;
        if (*list == '\0')
            one = least_above(root, "", group, "memory.max");
        else if (has_memory(list))
            one = least_above(root, "/memory", group, "memory.limit_in_bytes");
        else
            continue;
        least = one < least ? one : least;
    }
    fclose(f);
    return least;
}

uint64_t memlimit(void)
{
    struct sysinfo mem;
    uint64_t all = UINT64_MAX, group = memlimit_of("/proc/self/cgroup", "/sys/fs/cgroup");
    if (sysinfo(&mem) == 0)
        all = ((uint64_t)mem.totalram + mem.totalswap) * mem.mem_unit;
    return group < all ? group : all;
}
