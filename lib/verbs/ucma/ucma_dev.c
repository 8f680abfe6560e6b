/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The daemon's devices as this process' connection manager sees them, and the thread that waits for
 * their events. Each device has a context and a channel of its own, which are opened when they are
 * first needed and stay open.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "own_fd.h"
#include "ucma.h"

#define STACK_SIZE ((size_t)256 * 1024)
/* The interval at which the thread checks whether the program closed our descriptors. */
#define LOOK_ANEW_S 2

static struct ucma_dev *known[UCMA_DEVICES];
static unsigned nknown;
static bool thread_runs;
static int wake_fd = -1;

/* ---- the list of devices ---- */

static struct ucma_inode inode_of(int fd)
{
    struct stat st = {0};
    int saved = errno;
    syscall(SYS_fstat, fd, &st);
    errno = saved;
    return (struct ucma_inode){st.st_dev, st.st_ino};
}

static bool is_still(int fd, struct ucma_inode was)
{
    struct ucma_inode is = inode_of(fd);
    return is.dev == was.dev && is.ino == was.ino;
}

bool ucma_dev_lost(struct ucma_dev *d)
{
    bool lost =
        (d->ctx != NULL && !is_still(urnic_async_fd(d->ctx), d->ctx_inode)) ||
        (d->channel != NULL && !is_still(urnic_cm_channel_fd(d->channel), d->channel_inode));
    if (lost)
        d->gone = true;
    return lost;
}

static bool same(struct ucma_dev *d, const struct urnic_device *u)
{
    return !d->gone && !ucma_dev_lost(d) && strcmp(d->dev.name, u->name) == 0 &&
           d->dev.guid == u->guid && d->dev.index == u->index;
}

/* Our entry for a device of the daemon; NULL: no memory, or too many devices. */
static struct ucma_dev *dev_of(const struct urnic_device *u)
{
    unsigned free_at = nknown;
    for (unsigned i = 0; i < nknown; i++) {
        if (known[i] != NULL && same(known[i], u))
            return known[i];
        if (known[i] == NULL || (known[i]->gone && known[i]->users == 0))
            free_at = i;
    }
    if (free_at == UCMA_DEVICES)
        return NULL;
    struct ucma_dev *d = calloc(1, sizeof(*d));
    if (d == NULL)
        return NULL;
    d->dev = *u;
    /* The old context is not closed: its descriptors may be the program's by now. */
    known[free_at] = d;
    if (free_at == nknown)
        nknown++;
    return d;
}

int ucma_dev_scan(struct ucma_dev *devs[UCMA_DEVICES])
{
    struct urnic_device *list = NULL;
    int n = 0, kept = 0;
    int err = urnic_get_device_list(&list, &n);
    for (int i = 0; err == 0 && i < n && kept < (int)UCMA_DEVICES; i++) {
        struct ucma_dev *d = dev_of(&list[i]);
        if (d != NULL)
            devs[kept++] = d;
    }
    urnic_free_device_list(list);
    return err < 0 ? err : kept;
}

void ucma_dev_forget(void)
{
    memset(known, 0, sizeof(known));
    nknown = 0;
    thread_runs = false;
    wake_fd = -1;
}

/* ---- the thread ---- */

static void wake(void)
{
    const uint64_t one = 1;
    if (wake_fd >= 0)
        (void)!syscall(SYS_write, wake_fd, &one, sizeof(one));
}

static nfds_t watched(struct pollfd *fds, struct ucma_dev **devs)
{
    nfds_t n = 0;
    for (unsigned i = 0; i < nknown; i++) {
        struct ucma_dev *d = known[i];
        if (d == NULL || d->channel == NULL || d->gone || ucma_dev_lost(d))
            continue;
        fds[n] = (struct pollfd){.fd = urnic_cm_channel_fd(d->channel), .events = POLLIN};
        devs[n++] = d;
    }
    return n;
}

static void *serve(void *arg)
{
    struct pollfd fds[UCMA_DEVICES + 1];
    struct ucma_dev *devs[UCMA_DEVICES];
    const struct timespec often = {.tv_sec = LOOK_ANEW_S};
    uint64_t count;
    (void)arg;

    for (;;) {
        ucma_lock();
        nfds_t n = watched(fds, devs);
        fds[n] = (struct pollfd){.fd = wake_fd, .events = POLLIN};
        ucma_unlock();
        struct timespec ts = often;
        if (syscall(SYS_ppoll, fds, n + 1, &ts, NULL, 0) <= 0)
            continue;
        ucma_lock();
        for (nfds_t i = 0; i < n; i++)
            if (fds[i].revents != 0 && !ucma_dev_lost(devs[i]))
                ucma_event_pump(devs[i]);
        if (fds[n].revents & POLLIN)
            (void)!syscall(SYS_read, fds[n].fd, &count, sizeof(count));
        ucma_unlock();
    }
    return NULL;
}

/* Made and closed by raw system calls: ThreadSanitizer would keep a descriptor whose closing it has
 * not seen. */
static int own_eventfd(void)
{
    int fd = (int)syscall(SYS_eventfd2, 0, EFD_CLOEXEC | EFD_NONBLOCK);
    int high = fd < 0 ? -1 : (int)syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, UV_OWN_FROM);
    if (high < 0)
        return fd;
    syscall(SYS_close, fd);
    return high;
}

/* With all signals blocked: they are for the program's threads. */
static int start_thread(void)
{
    pthread_t thread;
    pthread_attr_t attr;
    sigset_t all, before;
    if (thread_runs)
        return 0;
    if (wake_fd < 0)
        wake_fd = own_eventfd();
    if (wake_fd < 0)
        return -errno;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_SIZE);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int err = pthread_create(&thread, &attr, serve, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    thread_runs = err == 0;
    return -err;
}

/* ---- opening ---- */

static int open_channel(struct ucma_dev *d)
{
    int err = start_thread();
    if (err == 0)
        err = urnic_create_cm_channel(d->ctx, &d->channel);
    if (err < 0)
        return err;
    int fd = urnic_cm_channel_fd(d->channel);
    syscall(SYS_fcntl, fd, F_SETFL, O_NONBLOCK);
    d->channel_inode = inode_of(fd);
    wake();
    return 0;
}

int ucma_dev_open(struct ucma_dev *d, bool cm)
{
    int err = 0;
    if (d->gone)
        return -ENODEV;
    if (d->ctx == NULL) {
        urnic_set_first_fd(UV_OWN_FROM);
        err = urnic_open_daemon(d->dev.name, &d->ctx);
        if (err == 0 && (err = urnic_query_port(d->ctx, &d->port)) < 0) {
            urnic_close(d->ctx);
            d->ctx = NULL;
        }
        if (err == 0)
            d->ctx_inode = inode_of(urnic_async_fd(d->ctx));
    }
    if (err == 0 && cm && d->channel == NULL)
        err = open_channel(d);
    return err;
}

/* ---- addresses ---- */

int ucma_dev_gids(struct ucma_dev *d, struct urnic_gid gids[UCMA_GIDS])
{
    int err = ucma_dev_open(d, false);
    int n = err < 0 ? err : urnic_query_gid_table(d->ctx, gids, UCMA_GIDS);
    if (n == -ENODEV)
        d->gone = true;
    return n < UCMA_GIDS ? n : UCMA_GIDS;
}

int ucma_dev_address(struct ucma_dev *d, int family, uint8_t gid[16])
{
    struct urnic_gid gids[UCMA_GIDS];
    int n = ucma_dev_gids(d, gids), found = -1;
    for (int i = 0; i < n; i++) {
        union ucma_addr a;
        ucma_addr_from_gid(&a, gids[i].raw, 0);
        if (a.sa.sa_family != family)
            continue;
        bool local = family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&a.in6.sin6_addr);
        if (found < 0 || !local)
            found = i;
        if (!local)
            break;
    }
    if (found < 0)
        return n < 0 ? n : -ENOENT;
    memcpy(gid, gids[found].raw, 16);
    return 0;
}

/* The address's index in the table, as RoCE v2; -1 = not there. */
static int find(struct ucma_dev *d, const uint8_t gid[16])
{
    struct urnic_gid gids[UCMA_GIDS];
    int n = ucma_dev_gids(d, gids), found = -1;
    for (int i = 0; i < n; i++)
        if (memcmp(gids[i].raw, gid, 16) == 0 && (found < 0 || gids[i].type == URNIC_GID_ROCE_V2))
            found = (int)gids[i].index;
    return found;
}

struct ucma_dev *ucma_dev_by_address(struct ucma_dev *const devs[], int n, const uint8_t gid[16])
{
    for (int i = 0; i < n; i++)
        if (find(devs[i], gid) >= 0)
            return devs[i];
    return NULL;
}

uint16_t ucma_dev_sgid_index(struct ucma_dev *d, const uint8_t gid[16])
{
    int at = find(d, gid);
    return at < 0 ? 0 : (uint16_t)at;
}
