/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions on descriptors. Those of /dev/infiniband/rdma_cm are followed as they are copied and
 * closed, and a write to one is a command.
 */
#undef _FILE_OFFSET_BITS /* each function by its own name */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <unistd.h>

#include "interpose.h"
#include "tree_fd.h"
#include "ucma.h"

/* The kernel's flag, where headers lack it. */
#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1U << 2)
#endif

/* `to` is a copy of `from` now. */
static void copied(int from, int to)
{
    struct ucma_file *f = ucma_fd(from);
    tree_fd_copy(from, to);
    if (f == NULL)
        return;
    ucma_lock();
    ucma_fd_add(to, f);
    ucma_unlock();
}

/* A descriptor of ours has been closed. Keeps errno. */
static void dropped(int fd, struct ucma_file *f)
{
    int saved = errno;
    ucma_lock();
    ucma_fd_drop(fd, f);
    if (f->numbers == 0)
        ucma_file_close(f);
    ucma_unlock();
    errno = saved;
}

INTERPOSED int close(int fd)
{
    struct ucma_file *f = ucma_fd(fd);
    tree_fd_drop(fd);
    int rc = NEXT(close)(fd);

    if (f != NULL)
        dropped(fd, f);
    return rc;
}

/* Before the descriptors of a range are closed: drop ours one by one. */
static void drop_range(unsigned first, unsigned last)
{
    int fd;
    while ((fd = ucma_fd_next(first, last)) >= 0) {
        struct ucma_file *f = ucma_fd(fd);
        if (f != NULL) {
            NEXT(close)(fd);
            dropped(fd, f);
        }
    }
}

INTERPOSED void closefrom(int first)
{
    drop_range(first < 0 ? 0 : (unsigned)first, ~0u);
    NEXT(closefrom)(first);
}

INTERPOSED int close_range(unsigned first, unsigned last, int flags)
{
    if (!((unsigned)flags & CLOSE_RANGE_CLOEXEC) && first <= last)
        drop_range(first, last);
    return NEXT(close_range)(first, last, flags);
}

INTERPOSED int dup(int fd)
{
    int copy = NEXT(dup)(fd);
    if (copy >= 0)
        copied(fd, copy);
    return copy;
}

/* `from` was duplicated to `to`: forget the old file of `to` (`before`); if `from` is ours, so is
 * `to` now. */
static void replaced(int from, int to, struct ucma_file *before)
{
    if (from == to)
        return;
    tree_fd_drop(to);
    if (before != NULL)
        dropped(to, before);
    copied(from, to);
}

INTERPOSED int dup2(int from, int to)
{
    struct ucma_file *before = ucma_fd(to);
    int rc = NEXT(dup2)(from, to);
    if (rc >= 0)
        replaced(from, to, before);
    return rc;
}

INTERPOSED int dup3(int from, int to, int flags)
{
    struct ucma_file *before = ucma_fd(to);
    int rc = NEXT(dup3)(from, to, flags);
    if (rc >= 0)
        replaced(from, to, before);
    return rc;
}

static void after_fcntl(int fd, int command, int result)
{
    if (result >= 0 && (command == F_DUPFD || command == F_DUPFD_CLOEXEC))
        copied(fd, result);
}

/* Whatever the third argument is, it is as wide as a pointer at most. */
INTERPOSED int fcntl(int fd, int command, ...)
{
    va_list args;
    va_start(args, command);
    void *arg = va_arg(args, void *);
    va_end(args);
    int rc = NEXT(fcntl)(fd, command, arg);
    after_fcntl(fd, command, rc);
    return rc;
}

INTERPOSED int fcntl64(int fd, int command, ...)
{
    va_list args;
    va_start(args, command);
    void *arg = va_arg(args, void *);
    va_end(args);
    int rc = NEXT(fcntl64)(fd, command, arg);
    after_fcntl(fd, command, rc);
    return rc;
}

INTERPOSED ssize_t write(int fd, const void *buf, size_t len)
{
    struct ucma_file *f = ucma_fd(fd);
    return f != NULL ? ucma_write(f, fd, buf, len) : NEXT(write)(fd, buf, len);
}
