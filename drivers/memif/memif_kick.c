/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A write to a full eventfd blocks unless O_NONBLOCK is set. A process that shares the eventfd can
 * fill it and clear that flag at any time, also between our check and our write. Eventfds do not
 * support pwritev2 with RWF_NOWAIT. But the kernel itself signals an eventfd when an asynchronous
 * request is done, and that never waits. So a kick is an asynchronous read of no octets.
 */
#include "memif_kick.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EVENTS 32

/* Take the results, which the kernel keeps until then. */
static void kick_reap(const struct memif_kick *k)
{
    struct io_event events[EVENTS];
    struct timespec now = {0};
    (void)syscall(SYS_io_getevents, k->aio, 0L, (long)EVENTS, events, &now);
}

static bool kick_open(struct memif_kick *k)
{
    if (k->aio)
        return true;
    k->null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (k->null < 0 || syscall(SYS_io_setup, EVENTS, &k->aio) < 0) {
        memif_kick_close(k);
        k->plain = true;
        return false;
    }
    return true;
}

static long kick_submit(const struct memif_kick *k, int event)
{
    char octet;
    struct iocb cb = {
        .aio_lio_opcode = IOCB_CMD_PREAD,
        .aio_fildes = (uint32_t)k->null,
        .aio_buf = (uintptr_t)&octet,
        .aio_nbytes = sizeof(octet),
        .aio_flags = IOCB_FLAG_RESFD,
        .aio_resfd = (uint32_t)event,
    };
    struct iocb *list[1] = {&cb};
    return syscall(SYS_io_submit, k->aio, 1L, list) < 0 ? -errno : 0;
}

/* The kick without AIO (turned off, its quota used up, a fork). A full eventfd is readable already.
 */
static bool kick_plain(int event)
{
    const uint64_t one = 1;
    struct pollfd pfd = {.fd = event, .events = POLLOUT};
    return poll(&pfd, 1, 0) == 1 && (pfd.revents & POLLOUT) &&
           write(event, &one, sizeof(one)) == sizeof(one);
}

bool memif_kick(struct memif_kick *k, int event)
{
    if (k->plain || !kick_open(k))
        return kick_plain(event);
    long error = kick_submit(k, event);
    if (error == -EAGAIN) {
        kick_reap(k);
        error = kick_submit(k, event);
    }
    /* EINVAL, EBADF: the number is no eventfd's any more; the process may have closed it. */
    return error == 0 || (error != -EINVAL && error != -EBADF && kick_plain(event));
}

void memif_kick_close(struct memif_kick *k)
{
    if (k->aio)
        (void)syscall(SYS_io_destroy, k->aio);
    if (k->null >= 0)
        close(k->null);
    *k = MEMIF_KICK_INIT;
}
