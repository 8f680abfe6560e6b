/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The numbers of the library's own descriptors.
 */
#include <fcntl.h>
#include <stdatomic.h>
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
