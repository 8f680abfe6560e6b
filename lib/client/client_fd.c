/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The numbers of the library's own descriptors.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "client.h"

static _Atomic int first;

void urnic_set_first_fd(int fd)
{
    atomic_store_explicit(&first, fd, memory_order_relaxed);
}

int client_fd(int fd)
{
    int from = atomic_load_explicit(&first, memory_order_relaxed);
    int moved = fd >= 0 && fd < from ? fcntl(fd, F_DUPFD_CLOEXEC, from) : -1;
    if (moved < 0)
        return fd;
    close(fd);
    return moved;
}

struct client_mark client_mark(int fd)
{
    struct stat st = {0};
    int saved = errno;
    if (fd < 0 || syscall(SYS_fstat, fd, &st) < 0) /* by number: lib/verbs redefines the function */
        st = (struct stat){0};
    errno = saved;
    return (struct client_mark){st.st_dev, st.st_ino};
}

bool client_is(int fd, const struct client_mark *mark)
{
    const struct client_mark now = client_mark(fd);
    return now.dev == mark->dev && now.ino == mark->ino;
}

void client_close_own(int fd, const struct client_mark *mark)
{
    if (fd >= 0 && client_is(fd, mark))
        close(fd);
}
