/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Queries of `ls -l` and `cp -a` for each file besides its status: extended attributes, of which
 * our tree has none, and its file system.
 */
#undef _FILE_OFFSET_BITS /* each function by its own name */
#include <errno.h>
#include <linux/magic.h>
#include <stddef.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>

#include "interpose.h"
#include "sysfs_load.h"
#include "tree_fd.h"

#define PAGE     4096
#define NAME_LEN 255

_Static_assert(sizeof(struct statfs) == sizeof(struct statfs64) &&
                   sizeof(struct statvfs) == sizeof(struct statvfs64),
               "64-bit systems have one of each");

static bool ours(const char *path)
{
    struct sysfs_node node;
    return sysfs_at(path, &node, NULL, 0);
}

static ssize_t no_attribute(void)
{
    errno = EOPNOTSUPP;
    return -1;
}

INTERPOSED ssize_t getxattr(const char *path, const char *name, void *value, size_t size)
{
    return ours(path) ? no_attribute() : NEXT(getxattr)(path, name, value, size);
}

INTERPOSED ssize_t lgetxattr(const char *path, const char *name, void *value, size_t size)
{
    return ours(path) ? no_attribute() : NEXT(lgetxattr)(path, name, value, size);
}

INTERPOSED ssize_t fgetxattr(int fd, const char *name, void *value, size_t size)
{
    return tree_fd_path(fd) != NULL ? no_attribute() : NEXT(fgetxattr)(fd, name, value, size);
}

INTERPOSED ssize_t listxattr(const char *path, char *list, size_t size)
{
    return ours(path) ? 0 : NEXT(listxattr)(path, list, size);
}

INTERPOSED ssize_t llistxattr(const char *path, char *list, size_t size)
{
    return ours(path) ? 0 : NEXT(llistxattr)(path, list, size);
}

INTERPOSED ssize_t flistxattr(int fd, char *list, size_t size)
{
    return tree_fd_path(fd) != NULL ? 0 : NEXT(flistxattr)(fd, list, size);
}

/* ---- the file system ---- */

static int fill_statfs(void *to)
{
    const struct statfs st = {
        .f_type = SYSFS_MAGIC, .f_bsize = PAGE, .f_frsize = PAGE, .f_namelen = NAME_LEN};
    memcpy(to, &st, sizeof(st));
    return 0;
}

static int fill_statvfs(void *to)
{
    const struct statvfs st = {.f_bsize = PAGE, .f_frsize = PAGE, .f_namemax = NAME_LEN};
    memcpy(to, &st, sizeof(st));
    return 0;
}

INTERPOSED int statfs(const char *path, struct statfs *st)
{
    return ours(path) ? fill_statfs(st) : NEXT(statfs)(path, st);
}

INTERPOSED int statfs64(const char *path, struct statfs64 *st)
{
    return ours(path) ? fill_statfs(st) : NEXT(statfs64)(path, st);
}

INTERPOSED int fstatfs(int fd, struct statfs *st)
{
    return tree_fd_path(fd) != NULL ? fill_statfs(st) : NEXT(fstatfs)(fd, st);
}

INTERPOSED int fstatfs64(int fd, struct statfs64 *st)
{
    return tree_fd_path(fd) != NULL ? fill_statfs(st) : NEXT(fstatfs64)(fd, st);
}

INTERPOSED int statvfs(const char *path, struct statvfs *st)
{
    return ours(path) ? fill_statvfs(st) : NEXT(statvfs)(path, st);
}

INTERPOSED int statvfs64(const char *path, struct statvfs64 *st)
{
    return ours(path) ? fill_statvfs(st) : NEXT(statvfs64)(path, st);
}
