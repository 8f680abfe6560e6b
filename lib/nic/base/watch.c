/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Waking a worker, by epoll.
 */
#include "watch.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "clock.h"

#define GROW 64u /* descriptors */

/* The data that epoll returns: descriptor, whether to drain it, and the number of its watch. */
static uint64_t event_data(int fd, bool drain, uint32_t number)
{
    return (uint64_t)number << 32 | (uint64_t)drain << 31 | (uint32_t)fd;
}

/* 32-bit numbers repeat after 4 billion clients: the same descriptor must then be in a fetched
 * event, which lives microseconds. */
static bool is_current(const struct watch *w, uint64_t data)
{
    uint32_t fd = (uint32_t)data & 0x7FFFFFFF;
    return fd < w->room && w->number[fd] == (uint32_t)(data >> 32) && w->number[fd] != 0;
}

struct watch_mark watch_mark(int fd)
{
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return (struct watch_mark){0};
    return (struct watch_mark){st.st_dev, st.st_ino};
}

int watch_init(struct watch *w)
{
    *w = (struct watch){.epfd = epoll_create1(EPOLL_CLOEXEC)};
    w->own = watch_mark(w->epfd);
    return w->epfd < 0 ? -errno : 0;
}

void watch_fini(struct watch *w)
{
    if (w->epfd >= 0)
        close(w->epfd);
    free(w->number);
    free(w->mark);
    *w = (struct watch){.epfd = -1};
}

int watch_add(struct watch *w, int fd, bool drain)
{
    uint32_t number = w->last + 1 ? w->last + 1 : 1;
    struct epoll_event ev = {.events = EPOLLIN, .data.u64 = event_data(fd, drain, number)};
    if ((uint32_t)fd >= w->room) {
        uint32_t n = (uint32_t)fd + GROW;
        uint32_t *grown = realloc(w->number, n * sizeof(*grown));
        if (!grown)
            return -ENOMEM;
        memset(grown + w->room, 0, (n - w->room) * sizeof(*grown));
        w->number = grown;
        struct watch_mark *marks = realloc(w->mark, n * sizeof(*marks));
        if (!marks)
            return -ENOMEM;
        w->mark = marks;
        w->room = n;
    }
    if (epoll_ctl(w->epfd, EPOLL_CTL_ADD, fd, &ev) < 0)
        return -errno; /* -EEXIST: the existing watch stays */
    w->last = number;
    w->number[fd] = number;
    w->mark[fd] = watch_mark(fd);
    return 0;
}

bool watch_intact(const struct watch *w)
{
    bool all = true;
    for (uint32_t fd = 0; all && fd < w->room; fd++)
        all = w->number[fd] == 0 || watch_is((int)fd, &w->mark[fd]);
    return all;
}

void watch_del(struct watch *w, int fd)
{
    epoll_ctl(w->epfd, EPOLL_CTL_DEL, fd, NULL);
    if ((uint32_t)fd < w->room)
        w->number[fd] = 0;
}

int watch_sleep(const struct watch *w, struct epoll_event *ev, uint64_t ns)
{
    struct timespec ts = {.tv_sec = (time_t)(ns / CLOCK_SEC), .tv_nsec = (long)(ns % CLOCK_SEC)};
    return epoll_pwait2(w->epfd, ev, WATCH_EVENTS, &ts, NULL);
}

/* Read and drop pending octets. Descriptors among them (foreign.h) stay where they are: closing
 * them may take for ever. False: stop watching, after end of file, an error, or descriptors. */
static bool hear(int fd)
{
    uint8_t sink[256];
    struct iovec iov = {.iov_base = sink, .iov_len = sizeof(sink)};
    struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};
    ssize_t n = recvmsg(fd, &mh, MSG_PEEK | MSG_DONTWAIT);
    if (n > 0 && (mh.msg_flags & MSG_CTRUNC))
        return false;
    if (n > 0 || (n < 0 && errno == ENOTSOCK))
        n = read(fd, sink, n > 0 ? (size_t)n : sizeof(sink));
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

unsigned watch_heard(struct watch *w, const struct epoll_event *ev, int n)
{
    unsigned drained = 0;
    w->nwoke = 0;
    for (int i = 0; i < n; i++) {
        int fd = (int)(ev[i].data.u64 & 0x7FFFFFFF);
        if (!is_current(w, ev[i].data.u64))
            continue; /* the control thread has removed it meanwhile */
        if ((ev[i].data.u64 >> 31 & 1) == 0) {
            if (ev[i].events & (EPOLLHUP | EPOLLERR))
                watch_del(w, fd); /* or it would wake us for ever; `service` sees the link state */
            else
                w->woke[w->nwoke++] = fd;
            continue;
        }
        drained++;
        /* Our own end: a client can't make it block. At its end of file there are no more kicks. */
        if (!hear(fd))
            watch_del(w, fd);
    }
    return drained;
}

static bool is_readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

int watch_judge(struct watch *w, bool work, uint64_t now)
{
    bool again = false;
    for (unsigned i = 0; i < w->nwoke; i++)
        again |= w->woke[i] == w->vain_fd;
    if (work || w->nwoke == 0) {
        w->vain = 0;
    } else if (again && w->vain > 0 && now - w->vain_since < WATCH_VAIN_NS) {
        w->vain++;
    } else {
        w->vain_fd = w->woke[0];
        w->vain = 1;
        w->vain_since = now;
    }
    w->nwoke = 0;
    if (w->vain < WATCH_VAIN)
        return -1;
    w->vain = 0;
    if (!is_readable(w->vain_fd))
        return -1; /* no longer readable */
    watch_del(w, w->vain_fd);
    return w->vain_fd;
}
