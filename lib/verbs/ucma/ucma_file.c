/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Open files: a descriptor, and its queue of events. The descriptor is a datagram socket that is
 * its own peer: no other socket may send to it, a blocking wait restarts after signals as the
 * kernel's does, and O_NONBLOCK is the program's to set. One octet is in the socket while the queue
 * holds events, or after a nudge. Raw system calls, as other preloaded libraries replace libc's
 * functions for sockets.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "own_fd.h"
#include "trace.h"
#include "ucma.h"

/* Descriptors that the program gets have high numbers, too. librspreload's select() finds a socket
 * by the number of its channel, and mistakes a descriptor of the program's for it if the channel
 * has the lower number. */
#define CHANNEL_FROM 512

static LIST_HEAD(, ucma_file) files = LIST_HEAD_INITIALIZER(files);

struct ucma_file *ucma_files(void)
{
    return LIST_FIRST(&files);
}

/* A socket connected to itself; -errno. */
static int self_socket(int flags)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    socklen_t len = sizeof(sa.sun_family);
    int type = SOCK_DGRAM | ((flags & O_CLOEXEC) ? SOCK_CLOEXEC : 0) |
               ((flags & O_NONBLOCK) ? SOCK_NONBLOCK : 0);
    int fd = (int)syscall(SYS_socket, AF_UNIX, type, 0);
    if (fd < 0)
        return -errno;
    int err = syscall(SYS_bind, fd, &sa, len) < 0 ? -errno : 0; /* the kernel chooses a name */
    len = sizeof(sa);
    if (err == 0 &&
        (syscall(SYS_getsockname, fd, &sa, &len) < 0 || syscall(SYS_connect, fd, &sa, len) < 0))
        err = -errno;
    if (err < 0)
        syscall(SYS_close, fd);
    return err < 0 ? err : fd;
}

/* The same socket at a high number, if there is one left. */
static int move_up(int fd, int flags)
{
    int high = fcntl(fd, flags & O_CLOEXEC ? F_DUPFD_CLOEXEC : F_DUPFD, CHANNEL_FROM);
    if (high < 0)
        return fd;
    syscall(SYS_close, fd);
    return high;
}

/* A closed file to reuse, or a new one; NULL: no memory. */
static struct ucma_file *file_new(void)
{
    struct ucma_file *f;
    LIST_FOREACH(f, &files, next)
    if (atomic_load(&f->ino) == 0 && f->numbers == 0)
        return f;
    f = calloc(1, sizeof(*f));
    if (f != NULL)
        LIST_INSERT_HEAD(&files, f, next);
    return f;
}

static int file_of(int fd)
{
    struct stat st;
    struct ucma_file *f = file_new();
    if (f == NULL || syscall(SYS_fstat, fd, &st) < 0)
        return -ENOMEM;
    TAILQ_INIT(&f->events);
    LIST_INIT(&f->ids);
    f->numbers = 0;
    f->nudged = false;
    f->own = fcntl(fd, F_DUPFD_CLOEXEC, UV_OWN_FROM);
    if (f->own < 0)
        f->own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    atomic_store(&f->dev, st.st_dev);
    atomic_store(&f->ino, st.st_ino);
    ucma_fd_add(fd, f);
    return ucma_fd(fd) == f ? fd : -EMFILE;
}

int ucma_file_open(int flags)
{
    struct ucma_dev *devs[UCMA_DEVICES];
    uv_trace_begin();
    ucma_lock();
    int n = ucma_dev_scan(devs);
    int fd = n < 0 ? n : n == 0 ? -ENOENT : self_socket(flags);
    if (fd >= 0) {
        fd = move_up(fd, flags);
        int err = file_of(fd);
        if (err < 0) {
            syscall(SYS_close, fd);
            fd = err;
        }
    }
    ucma_unlock();
    return fd;
}

/* Is this descriptor the file's? */
static bool is_of(int fd, const struct ucma_file *f)
{
    struct stat st;
    return fd >= 0 && syscall(SYS_fstat, fd, &st) == 0 && st.st_ino == atomic_load(&f->ino) &&
           st.st_dev == atomic_load(&f->dev);
}

void ucma_file_forget(struct ucma_file *f)
{
    if (atomic_load(&f->ino) == 0)
        return;
    TAILQ_INIT(&f->events);
    LIST_INIT(&f->ids);
}

void ucma_file_close(struct ucma_file *f)
{
    struct ucma_id *id;
    while ((id = LIST_FIRST(&f->ids)) != NULL)
        ucma_id_free(id);
    if (is_of(f->own, f))
        syscall(SYS_close, f->own);
    f->own = -1;
    atomic_store(&f->ino, 0);
    atomic_store(&f->dev, 0);
}

/* ---- events ---- */

/* A descriptor of the file: our own, unless the program has closed it among others. */
static int any_number(struct ucma_file *f)
{
    if (is_of(f->own, f))
        return f->own;
    return is_of(f->last, f) ? f->last : -1;
}

static void show(struct ucma_file *f)
{
    int saved = errno, fd = any_number(f);
    if (fd >= 0)
        syscall(SYS_sendto, fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL, NULL, 0);
    errno = saved;
}

static void hide(struct ucma_file *f, int fd)
{
    char octet;
    int saved = errno;
    if (fd < 0)
        fd = any_number(f);
    if (fd >= 0)
        syscall(SYS_recvfrom, fd, &octet, 1, MSG_DONTWAIT, NULL, NULL);
    f->nudged = false;
    errno = saved;
}

void ucma_file_nudge(struct ucma_file *f)
{
    int fd = any_number(f);
    if (fd < 0 || f->nudged || !TAILQ_EMPTY(&f->events))
        return;
    int flags = (int)syscall(SYS_fcntl, fd, F_GETFL);
    if (flags < 0 || (flags & O_NONBLOCK) == 0)
        return;
    show(f);
    f->nudged = true;
}

void ucma_file_put(struct ucma_file *f, struct ucma_event *ev)
{
    bool first = TAILQ_EMPTY(&f->events);
    TAILQ_INSERT_TAIL(&f->events, ev, next);
    if (first && !f->nudged)
        show(f);
}

struct ucma_event *ucma_file_take(struct ucma_file *f, int fd)
{
    struct ucma_event *ev = TAILQ_FIRST(&f->events);
    if (ev != NULL)
        TAILQ_REMOVE(&f->events, ev, next);
    if (TAILQ_EMPTY(&f->events)) /* also if a parent process left the descriptor readable */
        hide(f, fd);
    return ev;
}

int ucma_file_wait(int fd)
{
    char octet;
    return syscall(SYS_recvfrom, fd, &octet, 1, MSG_PEEK, NULL, NULL) < 0 ? -errno : 0;
}

void ucma_file_drop(struct ucma_file *f, const struct ucma_id *id, const struct ucma_mc *mc)
{
    struct ucma_event *ev, *next;
    bool some = !TAILQ_EMPTY(&f->events);
    for (ev = TAILQ_FIRST(&f->events); ev != NULL; ev = next) {
        next = TAILQ_NEXT(ev, next);
        bool about = mc != NULL ? ev->mc == mc : ev->id == id || ev->request == id;
        if (!about)
            continue;
        TAILQ_REMOVE(&f->events, ev, next);
        struct ucma_id *request = ev->id == id ? ev->request : NULL;
        free(ev);
        if (request != NULL) {
            ucma_id_free(request);
            next = TAILQ_FIRST(&f->events); /* the request's own events are gone, too */
        }
    }
    if (some && TAILQ_EMPTY(&f->events))
        hide(f, -1);
}

void ucma_file_move(struct ucma_file *from, struct ucma_file *to, struct ucma_id *id)
{
    struct ucma_event *ev, *next;
    bool some = !TAILQ_EMPTY(&from->events);
    for (ev = TAILQ_FIRST(&from->events); ev != NULL; ev = next) {
        next = TAILQ_NEXT(ev, next);
        if (ev->id != id)
            continue;
        TAILQ_REMOVE(&from->events, ev, next);
        if (ev->request != NULL) {
            LIST_REMOVE(ev->request, next);
            LIST_INSERT_HEAD(&to->ids, ev->request, next);
            ev->request->file = to;
        }
        ucma_file_put(to, ev);
    }
    if (some && TAILQ_EMPTY(&from->events))
        hide(from, -1);
}
