/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions that return the status of a path or a descriptor.
 */
#undef _FILE_OFFSET_BITS /* each function by its own name */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "interpose.h"
#include "sysfs_load.h"
#include "tree_fd.h"
#include "ucma.h"

#define TREE_MINOR 117 /* of the "file system" that our tree is on */

_Static_assert(sizeof(struct stat) == sizeof(struct stat64), "64-bit systems have one of them");

static void fill(void *to, const struct sysfs_node *node, const char *path)
{
    struct stat st = {
        .st_dev = makedev(0, TREE_MINOR),
        .st_ino = sysfs_inode(path),
        .st_nlink = node->kind == SYSFS_DIR ? 2 : 1,
        .st_blksize = 4096,
        .st_mode = node->kind == SYSFS_DIR    ? S_IFDIR | 0555
                   : node->kind == SYSFS_FILE ? S_IFREG | 0444
                                              : S_IFCHR | 0666,
        .st_size = node->kind == SYSFS_FILE ? SYSFS_TEXT : 0,
        .st_rdev = node->kind == SYSFS_CDEV ? makedev(node->major, node->minor) : 0,
    };
    memcpy(to, &st, sizeof(st));
}

static bool stat_at(int dir, const char *path, void *st)
{
    struct sysfs_node node;
    char at[PATH_MAX], clean[PATH_MAX];
    if (!sysfs_at(tree_at(dir, path, at), &node, clean, sizeof(clean)))
        return false;
    fill(st, &node, clean);
    return true;
}

static bool stat_ours(const char *path, void *st)
{
    return stat_at(AT_FDCWD, path, st);
}

/* To programs a descriptor of rdma_cm is a character device; a descriptor of our tree is the file
 * of its path, even if that is gone. */
static bool fstat_ours(int fd, void *st)
{
    struct sysfs_node node = {.kind = SYSFS_CDEV, .major = 10, .minor = 60};
    const char *path = tree_fd_path(fd);
    if (path != NULL) {
        if (!stat_ours(path, st)) {
            node.kind = SYSFS_FILE;
            fill(st, &node, path);
        }
        return true;
    }
    if (ucma_fd(fd) == NULL)
        return false;
    fill(st, &node, "/dev/infiniband/rdma_cm");
    return true;
}

static bool fstatat_ours(int dir, const char *path, void *st, int flags)
{
    if ((flags & AT_EMPTY_PATH) && (path == NULL || path[0] == '\0'))
        return fstat_ours(dir, st);
    return stat_at(dir, path, st);
}

INTERPOSED int stat(const char *path, struct stat *st)
{
    return stat_ours(path, st) ? 0 : NEXT(stat)(path, st);
}

INTERPOSED int stat64(const char *path, struct stat64 *st)
{
    return stat_ours(path, st) ? 0 : NEXT(stat64)(path, st);
}

INTERPOSED int lstat(const char *path, struct stat *st)
{
    return stat_ours(path, st) ? 0 : NEXT(lstat)(path, st);
}

INTERPOSED int lstat64(const char *path, struct stat64 *st)
{
    return stat_ours(path, st) ? 0 : NEXT(lstat64)(path, st);
}

INTERPOSED int fstat(int fd, struct stat *st)
{
    return fstat_ours(fd, st) ? 0 : NEXT(fstat)(fd, st);
}

INTERPOSED int fstat64(int fd, struct stat64 *st)
{
    return fstat_ours(fd, st) ? 0 : NEXT(fstat64)(fd, st);
}

INTERPOSED int fstatat(int dir, const char *path, struct stat *st, int flags)
{
    return fstatat_ours(dir, path, st, flags) ? 0 : NEXT(fstatat)(dir, path, st, flags);
}

INTERPOSED int fstatat64(int dir, const char *path, struct stat64 *st, int flags)
{
    return fstatat_ours(dir, path, st, flags) ? 0 : NEXT(fstatat64)(dir, path, st, flags);
}

/* Programs that were built with a glibc before 2.33. */
INTERPOSED int __xstat(int version, const char *path, struct stat *st);
INTERPOSED int __xstat64(int version, const char *path, struct stat64 *st);
INTERPOSED int __lxstat(int version, const char *path, struct stat *st);
INTERPOSED int __lxstat64(int version, const char *path, struct stat64 *st);
INTERPOSED int __fxstat(int version, int fd, struct stat *st);
INTERPOSED int __fxstat64(int version, int fd, struct stat64 *st);
INTERPOSED int __fxstatat(int version, int dir, const char *path, struct stat *st, int flags);
INTERPOSED int __fxstatat64(int version, int dir, const char *path, struct stat64 *st, int flags);

int __xstat(int version, const char *path, struct stat *st)
{
    return stat_ours(path, st) ? 0 : NEXT(__xstat)(version, path, st);
}

int __xstat64(int version, const char *path, struct stat64 *st)
{
    return stat_ours(path, st) ? 0 : NEXT(__xstat64)(version, path, st);
}

int __lxstat(int version, const char *path, struct stat *st)
{
    return stat_ours(path, st) ? 0 : NEXT(__lxstat)(version, path, st);
}

int __lxstat64(int version, const char *path, struct stat64 *st)
{
    return stat_ours(path, st) ? 0 : NEXT(__lxstat64)(version, path, st);
}

int __fxstatat(int version, int dir, const char *path, struct stat *st, int flags)
{
    return fstatat_ours(dir, path, st, flags) ? 0 : NEXT(__fxstatat)(version, dir, path, st, flags);
}

int __fxstatat64(int version, int dir, const char *path, struct stat64 *st, int flags)
{
    return fstatat_ours(dir, path, st, flags) ? 0
                                              : NEXT(__fxstatat64)(version, dir, path, st, flags);
}

int __fxstat(int version, int fd, struct stat *st)
{
    return fstat_ours(fd, st) ? 0 : NEXT(__fxstat)(version, fd, st);
}

int __fxstat64(int version, int fd, struct stat64 *st)
{
    return fstat_ours(fd, st) ? 0 : NEXT(__fxstat64)(version, fd, st);
}

INTERPOSED int statx(int dir, const char *path, int flags, unsigned mask, struct statx *to)
{
    struct stat st;
    if (!fstatat_ours(dir, path, &st, flags))
        return NEXT(statx)(dir, path, flags, mask, to);
    *to = (struct statx){
        .stx_mask = STATX_BASIC_STATS,
        .stx_blksize = (uint32_t)st.st_blksize,
        .stx_nlink = (uint32_t)st.st_nlink,
        .stx_mode = (uint16_t)st.st_mode,
        .stx_ino = st.st_ino,
        .stx_size = (uint64_t)st.st_size,
        .stx_rdev_major = major(st.st_rdev),
        .stx_rdev_minor = minor(st.st_rdev),
        .stx_dev_major = major(st.st_dev),
        .stx_dev_minor = minor(st.st_dev),
    };
    return 0;
}

/* ---- access ---- */

static bool access_ours(int dir, const char *path, int how, int *rc)
{
    struct sysfs_node node;
    char at[PATH_MAX];
    if (!sysfs_at(tree_at(dir, path, at), &node, NULL, 0))
        return false;
    bool write = node.kind == SYSFS_CDEV, run = node.kind == SYSFS_DIR;
    *rc = ((how & W_OK) && !write) || ((how & X_OK) && !run) ? -1 : 0;
    if (*rc < 0)
        errno = EACCES;
    return true;
}

INTERPOSED int access(const char *path, int how)
{
    int rc;
    return access_ours(AT_FDCWD, path, how, &rc) ? rc : NEXT(access)(path, how);
}

INTERPOSED int faccessat(int dir, const char *path, int how, int flags)
{
    int rc;
    return access_ours(dir, path, how, &rc) ? rc : NEXT(faccessat)(dir, path, how, flags);
}

INTERPOSED int euidaccess(const char *path, int how)
{
    int rc;
    return access_ours(AT_FDCWD, path, how, &rc) ? rc : NEXT(euidaccess)(path, how);
}

INTERPOSED int eaccess(const char *path, int how)
{
    int rc;
    return access_ours(AT_FDCWD, path, how, &rc) ? rc : NEXT(eaccess)(path, how);
}

/* ---- names: there are no links in our tree ---- */

static bool realpath_ours(const char *path, char *to, char **result)
{
    struct sysfs_node node;
    char clean[PATH_MAX];
    if (!sysfs_at(path, &node, clean, sizeof(clean)))
        return false;
    *result = to == NULL ? strdup(clean) : strcpy(to, clean); // NOLINT: PATH_MAX by contract
    return true;
}

INTERPOSED char *realpath(const char *path, char *to)
{
    char *result;
    return realpath_ours(path, to, &result) ? result : NEXT(realpath)(path, to);
}

INTERPOSED char *__realpath_chk(const char *path, char *to, size_t size);

char *__realpath_chk(const char *path, char *to, size_t size)
{
    char *result;
    return realpath_ours(path, to, &result) ? result : NEXT(__realpath_chk)(path, to, size);
}

INTERPOSED char *canonicalize_file_name(const char *path)
{
    char *result;
    return realpath_ours(path, NULL, &result) ? result : NEXT(canonicalize_file_name)(path);
}

static bool readlink_ours(int dir, const char *path)
{
    struct sysfs_node node;
    char at[PATH_MAX];
    if (!sysfs_at(tree_at(dir, path, at), &node, NULL, 0))
        return false;
    errno = EINVAL;
    return true;
}

INTERPOSED ssize_t readlink(const char *path, char *to, size_t size)
{
    return readlink_ours(AT_FDCWD, path) ? -1 : NEXT(readlink)(path, to, size);
}

INTERPOSED ssize_t readlinkat(int dir, const char *path, char *to, size_t size)
{
    return readlink_ours(dir, path) ? -1 : NEXT(readlinkat)(dir, path, to, size);
}

INTERPOSED ssize_t __readlink_chk(const char *path, char *to, size_t size, size_t room);
INTERPOSED ssize_t __readlinkat_chk(int dir, const char *path, char *to, size_t size, size_t room);

ssize_t __readlink_chk(const char *path, char *to, size_t size, size_t room)
{
    return readlink_ours(AT_FDCWD, path) ? -1 : NEXT(__readlink_chk)(path, to, size, room);
}

ssize_t __readlinkat_chk(int dir, const char *path, char *to, size_t size, size_t room)
{
    return readlink_ours(dir, path) ? -1 : NEXT(__readlinkat_chk)(dir, path, to, size, room);
}
