/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions that open files: those of our tree are copies in memory, and /dev/infiniband/rdma_cm is
 * a file of the emulated connection manager.
 */
#undef _FILE_OFFSET_BITS /* each function by its own name */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "file_limit.h"
#include "interpose.h"
#include "sysfs_load.h"
#include "tree_fd.h"
#include "ucma.h"

/* A file in memory with these contents, positioned at its start; for a directory an empty file.
 * -errno. */
static int open_text(const struct sysfs_node *node, int flags)
{
    size_t len = node->kind == SYSFS_FILE ? node->len : 0;
    if ((flags & O_ACCMODE) != O_RDONLY)
        return node->kind == SYSFS_DIR ? -EISDIR : -EACCES;
    if (!uv_file_fits(len))
        return -EFBIG;
    int fd = memfd_create("sysfs", (flags & O_CLOEXEC) ? MFD_CLOEXEC : 0);
    if (fd < 0)
        return -errno;
    if (syscall(SYS_write, fd, node->text, len) != (long)len) {
        syscall(SYS_close, fd);
        return -EIO;
    }
    lseek(fd, 0, SEEK_SET);
    return fd;
}

static int open_node(const struct sysfs_node *node, const char *path, int flags)
{
    if ((flags & O_CREAT) && (flags & O_EXCL))
        return -EEXIST;
    if ((flags & O_DIRECTORY) && node->kind != SYSFS_DIR)
        return -ENOTDIR;
    if (node->kind == SYSFS_CDEV)
        return node->rdma_cm ? ucma_file_open(flags) : -ENXIO;
    int fd = open_text(node, flags);
    if (fd >= 0)
        tree_fd_add(fd, path);
    return fd;
}

/* Is the path one of ours? Then *fd is the result for open(), and errno is set. */
static bool open_ours(int dir, const char *path, int flags, int *fd)
{
    struct sysfs_node node;
    char at[PATH_MAX], clean[PATH_MAX];
    if (!sysfs_at(tree_at(dir, path, at), &node, clean, sizeof(clean)))
        return false;
    *fd = open_node(&node, clean, flags);
    if (*fd < 0) {
        errno = -*fd;
        *fd = -1;
    }
    return true;
}

/* The variable arguments are there only for flags that need a mode. */
#define MODE_OF(mode, flags)                                                                       \
    mode_t mode = 0;                                                                               \
    if (WITH_MODE(flags)) {                                                                        \
        va_list args;                                                                              \
        va_start(args, flags);                                                                     \
        mode = va_arg(args, mode_t); /* NOLINT(bugprone-macro-parentheses): a name, to be set */   \
        va_end(args);                                                                              \
    }

INTERPOSED int open(const char *path, int flags, ...)
{
    int fd;
    MODE_OF(mode, flags)
    return open_ours(AT_FDCWD, path, flags, &fd) ? fd : NEXT(open)(path, flags, mode);
}

INTERPOSED int open64(const char *path, int flags, ...)
{
    int fd;
    MODE_OF(mode, flags)
    return open_ours(AT_FDCWD, path, flags, &fd) ? fd : NEXT(open64)(path, flags, mode);
}

INTERPOSED int openat(int dir, const char *path, int flags, ...)
{
    int fd;
    MODE_OF(mode, flags)
    return open_ours(dir, path, flags, &fd) ? fd : NEXT(openat)(dir, path, flags, mode);
}

INTERPOSED int openat64(int dir, const char *path, int flags, ...)
{
    int fd;
    MODE_OF(mode, flags)
    return open_ours(dir, path, flags, &fd) ? fd : NEXT(openat64)(dir, path, flags, mode);
}

/* Functions for programs that were built with _FORTIFY_SOURCE. */
INTERPOSED int __open_2(const char *path, int flags);
INTERPOSED int __open64_2(const char *path, int flags);
INTERPOSED int __openat_2(int dir, const char *path, int flags);
INTERPOSED int __openat64_2(int dir, const char *path, int flags);

int __open_2(const char *path, int flags)
{
    int fd;
    return open_ours(AT_FDCWD, path, flags, &fd) ? fd : NEXT(__open_2)(path, flags);
}

int __open64_2(const char *path, int flags)
{
    int fd;
    return open_ours(AT_FDCWD, path, flags, &fd) ? fd : NEXT(__open64_2)(path, flags);
}

int __openat_2(int dir, const char *path, int flags)
{
    int fd;
    return open_ours(dir, path, flags, &fd) ? fd : NEXT(__openat_2)(dir, path, flags);
}

int __openat64_2(int dir, const char *path, int flags)
{
    int fd;
    return open_ours(dir, path, flags, &fd) ? fd : NEXT(__openat64_2)(dir, path, flags);
}

static bool fopen_ours(const char *path, const char *mode, FILE **file)
{
    int fd, flags = mode[0] == 'r' && strchr(mode, '+') == NULL ? O_RDONLY : O_RDWR;
    if (strchr(mode, 'e') != NULL)
        flags |= O_CLOEXEC;
    if (!open_ours(AT_FDCWD, path, flags, &fd))
        return false;
    *file = fd < 0 ? NULL : fdopen(fd, mode);
    return true;
}

INTERPOSED FILE *fopen(const char *path, const char *mode)
{
    FILE *file;
    return fopen_ours(path, mode, &file) ? file : NEXT(fopen)(path, mode);
}

INTERPOSED FILE *fopen64(const char *path, const char *mode)
{
    FILE *file;
    return fopen_ours(path, mode, &file) ? file : NEXT(fopen64)(path, mode);
}
