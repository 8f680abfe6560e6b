/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Descriptor numbers and their paths. There are few paths, and each is kept for ever, so readers
 * need no lock.
 */
#include "tree_fd.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NUMBERS 65536u
#define BUCKETS 64u

struct name {
    struct name *next;
    char path[];
};

static _Atomic(struct name *) names[BUCKETS];
static struct {
    _Atomic(const char *) path;
    _Atomic uint64_t ino;
} numbers[NUMBERS];

/* The one copy of a path; NULL: no memory. Two threads may keep it twice, which costs only memory.
 */
static const char *kept(const char *path)
{
    uint32_t h = 5381;
    for (const char *c = path; *c != '\0'; c++)
        h = h * 33 + (uint8_t)*c;
    _Atomic(struct name *) *bucket = &names[h % BUCKETS];
    struct name *n;

    for (n = atomic_load(bucket); n != NULL; n = n->next)
        if (strcmp(n->path, path) == 0)
            return n->path;
    size_t len = strlen(path) + 1;
    n = malloc(sizeof(*n) + len);
    if (n == NULL)
        return NULL;
    memcpy(n->path, path, len);
    n->next = atomic_load(bucket);
    while (!atomic_compare_exchange_weak(bucket, &n->next, n))
        ;
    return n->path;
}

static bool inode(int fd, uint64_t *ino)
{
    struct stat st;
    int saved = errno;
    bool open = syscall(SYS_fstat, fd, &st) == 0;
    *ino = open ? st.st_ino : 0;
    errno = saved;
    return open;
}

static void set(int fd, const char *path)
{
    uint64_t ino;
    if ((unsigned)fd >= NUMBERS || path == NULL || !inode(fd, &ino))
        return;
    atomic_store(&numbers[fd].path, NULL);
    atomic_store(&numbers[fd].ino, ino);
    atomic_store(&numbers[fd].path, path);
}

void tree_fd_add(int fd, const char *path)
{
    int saved = errno;
    set(fd, kept(path));
    errno = saved;
}

void tree_fd_copy(int from, int to)
{
    set(to, tree_fd_path(from));
}

void tree_fd_drop(int fd)
{
    if ((unsigned)fd < NUMBERS && atomic_load_explicit(&numbers[fd].path, memory_order_relaxed))
        atomic_store(&numbers[fd].path, NULL);
}

const char *tree_fd_path(int fd)
{
    uint64_t ino;
    if ((unsigned)fd >= NUMBERS)
        return NULL;
    const char *path = atomic_load_explicit(&numbers[fd].path, memory_order_acquire);
    return path != NULL && inode(fd, &ino) && ino == atomic_load(&numbers[fd].ino) ? path : NULL;
}

const char *tree_at(int dir, const char *path, char *buf)
{
    const char *base = path == NULL || path[0] == '/' ? NULL : tree_fd_path(dir);
    if (base == NULL)
        return path;
    size_t n = strlen(base), m = strlen(path);
    if (n + m + 2 > PATH_MAX)
        return "";
    // NOLINTNEXTLINE(bugprone-not-null-terminated-result): the path that follows brings its NUL
    memcpy(buf, base, n);
    buf[n] = '/';
    memcpy(buf + n + 1, path, m + 1);
    return buf;
}
