/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A sink needs only the descriptor, which is its argument.
 */
#include "pcapng_file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int fd_of(void *arg)
{
    return (int)(intptr_t)arg;
}

static ssize_t write_now(void *arg, const void *data, size_t len)
{
    ssize_t n;
    do
        n = write(fd_of(arg), data, len);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

/* Another process may have made the pipe non-blocking. */
static ssize_t write_waiting(void *arg, const void *data, size_t len)
{
    for (;;) {
        ssize_t n = write(fd_of(arg), data, len);
        if (n >= 0)
            return n;
        if (errno != EAGAIN || poll(&(struct pollfd){fd_of(arg), POLLOUT, 0}, 1, -1) < 0)
            return -errno;
    }
}

static int close_fd(void *arg)
{
    return close(fd_of(arg)) ? -errno : 0;
}

int pcapng_from_fd(int fd, enum pcapng_patience patience, const struct pcapng_options *opt,
                   struct pcapng **out)
{
    const struct pcapng_sink sink = {.write = patience == PCAPNG_WAITS ? write_waiting : write_now,
                                     .close = close_fd,
                                     .arg = (void *)(intptr_t)fd};
    struct stat st;
    int rc = pcapng_open(&sink, opt, out);
    if (rc == 0 && patience == PCAPNG_DROPS && fstat(fd, &st) == 0 && !S_ISREG(st.st_mode))
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    return rc;
}

int pcapng_create(const char *path, enum pcapng_patience patience, const struct pcapng_options *opt,
                  struct pcapng **out)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    return pcapng_from_fd(fd, patience, opt, out);
}

uint64_t pcapng_epoch(uint64_t now)
{
    struct timespec wall;
    clock_gettime(CLOCK_REALTIME, &wall);
    return (uint64_t)wall.tv_sec * 1000000000u + (uint64_t)wall.tv_nsec - now;
}
