/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions that open files: those of our tree are copies in memory, and /dev/infiniband/rdma_cm is
 * a file of the emulated connection manager.
 */
#undef _FILE_OFFSET_BITS /* each function by its own name */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "interpose.h"
#include "sysfs_load.h"
#include "ucma.h"

/* A file in memory with these contents, to be read from its beginning. -errno. */
static int open_text(const struct sysfs_node *node, int flags)
{
    if ((flags & O_ACCMODE) != O_RDONLY)
        return -EACCES;
    int fd = memfd_create("sysfs", (flags & O_CLOEXEC) ? MFD_CLOEXEC : 0);
    if (fd < 0)
        return -errno;
    if (syscall(SYS_write, fd, node->text, node->len) != (long)node->len) {
        syscall(SYS_close, fd);
        return -EIO;
    }
    lseek(fd, 0, SEEK_SET);
    return fd;
}

static int open_node(const struct sysfs_node *node, int flags)
{
    if ((flags & O_CREAT) && (flags & O_EXCL))
        return -EEXIST;
    if (node->kind == SYSFS_CDEV)
        return node->rdma_cm ? ucma_file_open(flags) : -ENXIO;
    if (node->kind == SYSFS_FILE)
        return (flags & O_DIRECTORY) ? -ENOTDIR : open_text(node, flags);
    return (flags & O_ACCMODE) != O_RDONLY ? -EISDIR : -EACCES; /* opendir reads directories */
}

/* Is it one of ours? Then *fd is what open() returns, and errno is set. */
static bool open_ours(const char *path, int flags, int *fd)
{
    struct sysfs_node node;

    if (!sysfs_at(path, &node, NULL, 0))
        return false;
    *fd = open_node(&node, flags);
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
        mode = va_arg(args, mode_t);                                                               \
        va_end(args);                                                                              \
    }

INTERPOSED int open(const char *path, int flags, ...)
{
    int fd;
    MODE_OF(mode, flags)
    return open_ours(path, flags, &fd) ? fd : NEXT(open)(path, flags, mode);
}

INTERPOSED int open64(const char *path, int flags, ...)
{
    int fd;
    MODE_OF(mode, flags)
    return open_ours(path, flags, &fd) ? fd : NEXT(open64)(path, flags, mode);
}

INTERPOSED int openat(int dir, const char *path, int flags, ...)
{
    int fd;
    MODE_OF(mode, flags)
    return open_ours(path, flags, &fd) ? fd : NEXT(openat)(dir, path, flags, mode);
}

INTERPOSED int openat64(int dir, const char *path, int flags, ...)
{
    int fd;
    MODE_OF(mode, flags)
    return open_ours(path, flags, &fd) ? fd : NEXT(openat64)(dir, path, flags, mode);
}

/* What programs call that were built with _FORTIFY_SOURCE. */
INTERPOSED int __open_2(const char *path, int flags);
INTERPOSED int __open64_2(const char *path, int flags);
INTERPOSED int __openat_2(int dir, const char *path, int flags);
INTERPOSED int __openat64_2(int dir, const char *path, int flags);

int __open_2(const char *path, int flags)
{
    int fd;
    return open_ours(path, flags, &fd) ? fd : NEXT(__open_2)(path, flags);
}

int __open64_2(const char *path, int flags)
{
    int fd;
    return open_ours(path, flags, &fd) ? fd : NEXT(__open64_2)(path, flags);
}

int __openat_2(int dir, const char *path, int flags)
{
    int fd;
    return open_ours(path, flags, &fd) ? fd : NEXT(__openat_2)(dir, path, flags);
}

int __openat64_2(int dir, const char *path, int flags)
{
    int fd;
    return open_ours(path, flags, &fd) ? fd : NEXT(__openat64_2)(dir, path, flags);
}

static bool fopen_ours(const char *path, const char *mode, FILE **file)
{
    int fd, flags = mode[0] == 'r' && strchr(mode, '+') == NULL ? O_RDONLY : O_RDWR;

    if (strchr(mode, 'e') != NULL)
        flags |= O_CLOEXEC;
    if (!open_ours(path, flags, &fd))
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
