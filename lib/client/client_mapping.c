/* SPDX-License-Identifier: BSD-3-Clause
 *
 * /proc/self/maps, asked for one address (PROCMAP_QUERY, Linux 6.11) or read through.
 *
 * madvise by its number: programs and their libraries (UCX) replace libc's functions by their own,
 * and take calls of those for changes of the program's memory.
 */
#include "client_mapping.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22 /* Linux 5.14 */
#define MADV_POPULATE_WRITE 23
#endif

#define PAGE      ((uintptr_t)4096)
#define NAME_SIZE 4096u
#define FEW_PAGES ((size_t)1 << 20) /* octets */

/* The kernel's numbers, which headers older than Linux 6.11 lack. */
struct map_query {
    uint64_t size, flags, addr;
    uint64_t vma_start, vma_end, vma_flags, vma_page_size, vma_offset;
    uint64_t inode;
    uint32_t dev_major, dev_minor;
    uint32_t name_size, build_id_size;
    uint64_t name_addr, build_id_addr;
};
#define MAP_QUERY     _IOWR('f', 17, struct map_query)
#define MAP_READABLE  1u
#define MAP_WRITABLE  2u
#define MAP_IS_SHARED 8u

struct mapping {
    uintptr_t begin, end;
    uint64_t off;
    dev_t dev;
    ino_t ino;
    bool readable, writable, shared;
    char name[NAME_SIZE]; /* "" = none */
};

/* /proc/self/maps, and the part read so far. */
struct map_reader {
    int fd;
    bool lines; /* no queries here: it is read */
    size_t at, have;
    char buf[8192];
};

static bool map_query(const struct map_reader *r, uintptr_t addr, struct mapping *m)
{
    struct map_query q = {
        .size = sizeof(q),
        .addr = addr,
        .name_size = sizeof(m->name),
        .name_addr = (uintptr_t)m->name,
    };
    m->name[0] = '\0';
    if (ioctl(r->fd, MAP_QUERY, &q) < 0)
        return false;
    m->begin = (uintptr_t)q.vma_start;
    m->end = (uintptr_t)q.vma_end;
    m->off = q.vma_offset;
    m->dev = makedev(q.dev_major, q.dev_minor);
    m->ino = (ino_t)q.inode;
    m->readable = q.vma_flags & MAP_READABLE;
    m->writable = q.vma_flags & MAP_WRITABLE;
    m->shared = q.vma_flags & MAP_IS_SHARED;
    return true;
}

/* The next line, without its end; NULL = there is none. */
static char *map_line(struct map_reader *r)
{
    for (;;) {
        char *end = memchr(r->buf + r->at, '\n', r->have - r->at);
        if (end) {
            char *line = r->buf + r->at;
            *end = '\0';
            r->at = (size_t)(end - r->buf) + 1;
            return line;
        }
        memmove(r->buf, r->buf + r->at, r->have - r->at);
        r->have -= r->at;
        r->at = 0;
        ssize_t n = read(r->fd, r->buf + r->have, sizeof(r->buf) - r->have);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return NULL;
        r->have += (size_t)n;
    }
}

static bool map_parse(const char *line, struct mapping *m)
{
    unsigned long begin, end;
    unsigned major, minor;
    uint64_t off, ino;
    char rights[5];
    int name = 0;
    if (sscanf(line, "%lx-%lx %4s %" SCNx64 " %x:%x %" SCNu64 " %n", &begin, &end, rights, &off,
               &major, &minor, &ino, &name) < 7)
        return false;
    *m = (struct mapping){
        .begin = begin,
        .end = end,
        .off = off,
        .dev = makedev(major, minor),
        .ino = (ino_t)ino,
        .readable = rights[0] == 'r',
        .writable = rights[1] == 'w',
        .shared = rights[3] == 's',
    };
    snprintf(m->name, sizeof(m->name), "%s", line + name);
    return true;
}

/* The mapping that holds addr. Addresses must grow from call to call. */
static bool map_find(struct map_reader *r, uintptr_t addr, struct mapping *m)
{
    char *line;
    if (!r->lines && map_query(r, addr, m))
        return true;
    if (!r->lines && errno == ENOENT)
        return false;
    r->lines = true;
    while ((line = map_line(r)) != NULL) {
        if (map_parse(line, m) && addr < m->end)
            return addr >= m->begin;
    }
    return false;
}

static bool map_open(struct map_reader *r)
{
    r->lines = false;
    r->at = r->have = 0;
    r->fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    return r->fd >= 0;
}

/* Does every page have a mapping with these rights? */
static bool rights_hold(struct map_reader *r, uintptr_t begin, uintptr_t end, bool write)
{
    struct mapping m;
    bool holds = true;
    while (holds && begin < end) {
        holds = map_find(r, begin, &m) && m.readable && (m.writable || !write);
        begin = m.end;
    }
    return holds;
}

static bool rights_are_told(uintptr_t begin, uintptr_t end, bool write)
{
    struct map_reader r;
    if (!map_open(&r))
        return false;
    bool holds = rights_hold(&r, begin, end, write);
    close(r.fd);
    return holds;
}

/* Whole pages. False: the range wraps. */
static bool pages_of(const void *addr, size_t len, uintptr_t *begin, uintptr_t *end)
{
    uintptr_t at = (uintptr_t)addr;
    if (len > UINTPTR_MAX - PAGE - at)
        return false;
    *begin = at & ~(PAGE - 1);
    *end = (at + len + PAGE - 1) & ~(PAGE - 1);
    return true;
}

int client_mapping_check(const void *addr, size_t len, bool write)
{
    uintptr_t begin, end;
    long rc;
    if (len == 0)
        return 0;
    if (!pages_of(addr, len, &begin, &end))
        return -EINVAL;
    do {
        rc = syscall(SYS_madvise, begin, end - begin,
                     write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
    } while (rc < 0 && errno == EINTR);
    if (rc == 0)
        return 0;
    /* EINVAL: pages without these rights, or of a device, or a kernel that can't. ENOMEM: a hole,
     * or no memory. */
    int err = errno;
    if ((err != EINVAL && err != ENOMEM) || !rights_are_told(begin, end, write))
        return -EFAULT;
    return err == ENOMEM ? -ENOMEM : 0;
}

/* A kernel without queries is asked for the pages themselves, if they are few: its list may have
 * thousands of lines before the needed one. */
int client_mapping_rights(const void *addr, size_t len, bool write)
{
    uintptr_t begin, end;
    struct map_reader r;
    struct mapping m;
    if (len == 0)
        return 0;
    if (!pages_of(addr, len, &begin, &end))
        return -EINVAL;
    if (!map_open(&r))
        return client_mapping_check(addr, len, write);
    r.lines = !map_query(&r, begin, &m) && errno != ENOENT;
    int rc = r.lines && len <= FEW_PAGES          ? client_mapping_check(addr, len, write)
             : rights_hold(&r, begin, end, write) ? 0
                                                  : -EFAULT;
    close(r.fd);
    return rc;
}

/* Is it the object of the mapping, and one that the daemon maps? */
static bool is_object(int fd, const struct mapping *m)
{
    struct statfs fs;
    struct stat st;
    if (fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0)
        return false;
    return st.st_dev == m->dev && st.st_ino == m->ino && S_ISREG(st.st_mode) &&
           (fs.f_type == TMPFS_MAGIC || fs.f_type == HUGETLBFS_MAGIC);
}

/* A path that is not a regular file's may be anything by now: opening it must neither wait nor have
 * an effect. */
static int object_open(const char *path, const struct mapping *m, bool write)
{
    int fd = open(path, (write ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd >= 0 && !is_object(fd, m)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

int client_mapping_open(const void *addr, size_t len, bool write, uint64_t *off)
{
    struct map_reader r;
    struct mapping m;
    uintptr_t at = (uintptr_t)addr;
    char path[64];
    if (!map_open(&r))
        return -1;
    bool found = map_find(&r, at, &m);
    close(r.fd);
    if (!found || !m.shared || len > m.end - at || (write && !m.writable))
        return -1;
    /* The mapping's own link, for privileged programs; else the file of its name. */
    snprintf(path, sizeof(path), "/proc/self/map_files/%lx-%lx", (unsigned long)m.begin,
             (unsigned long)m.end);
    int fd = object_open(path, &m, write);
    if (fd < 0 && m.name[0] == '/')
        fd = object_open(m.name, &m, write);
    *off = m.off + (at - m.begin);
    return fd;
}
