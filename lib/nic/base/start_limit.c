/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The thread that watches a start. It writes to the log, which any thread may do.
 */
#include "start_limit.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "clock.h"
#include "log.h"

/* A driver that works comes back soon, and the daemon then ends as it should. */
#define GRACE_NS (2 * CLOCK_SEC)

static struct {
    pthread_t thread;
    pthread_mutex_t lock; /* guards the members below */
    const char *device, *port;
    uint64_t until; /* of this device */
    int signals, news;
    bool over;
    unsigned seconds;
    void (*leave)(void *arg);
    void *arg;
    int came; /* a signal; 0 = none */
} p = {.lock = PTHREAD_MUTEX_INITIALIZER, .signals = -1, .news = -1};

/* Ends the process unless there is time left. Under the lock. */
static uint64_t time_left(uint64_t now)
{
    if (now < p.until)
        return p.until - now;
    if (p.came)
        log_error("daemon", "%s while port %s of %s was being opened: ended", strsignal(p.came),
                  p.port, p.device);
    else
        log_error("daemon",
                  "device %s: port=%s: its driver has not come back within %u s: the NIC's DMA may "
                  "not work (behind an IOMMU a virtio NIC needs iommu_platform=on)",
                  p.device, p.port, p.seconds);
    if (p.leave)
        p.leave(p.arg);
    _exit(EXIT_FAILURE);
}

static void take_signal(void)
{
    struct signalfd_siginfo si;
    if (read(p.signals, &si, sizeof(si)) != (ssize_t)sizeof(si))
        return;
    uint64_t soon = clock_now() + GRACE_NS;
    p.came = (int)si.ssi_signo;
    p.until = soon < p.until ? soon : p.until;
}

static void *watch(void *arg)
{
    struct pollfd fds[] = {{.fd = p.news, .events = POLLIN}, {.fd = p.signals, .events = POLLIN}};
    (void)arg;
    for (;;) {
        pthread_mutex_lock(&p.lock);
        bool over = p.over;
        uint64_t left = over ? 0 : time_left(clock_now());
        pthread_mutex_unlock(&p.lock);
        if (over)
            return NULL;
        int n = poll(fds, 2, (int)(left / CLOCK_MS) + 1);
        if (n <= 0)
            continue;
        uint64_t count;
        if (fds[0].revents)
            (void)!read(p.news, &count, sizeof(count));
        pthread_mutex_lock(&p.lock);
        if (fds[1].revents && !p.over)
            take_signal();
        pthread_mutex_unlock(&p.lock);
    }
}

static void tell(void)
{
    const uint64_t one = 1;
    (void)!write(p.news, &one, sizeof(one));
}

static void close_all(void)
{
    if (p.signals >= 0)
        close(p.signals);
    if (p.news >= 0)
        close(p.news);
    p.signals = p.news = -1;
}

int start_limit_begin(unsigned seconds, void (*leave)(void *arg), void *arg)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    p.seconds = seconds;
    p.leave = leave;
    p.arg = arg;
    p.over = false;
    p.came = 0;
    p.device = p.port = "";
    p.until = UINT64_MAX;
    p.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    p.news = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int rc = p.signals < 0 || p.news < 0 ? -errno : 0;
    if (rc == 0)
        rc = -pthread_create(&p.thread, NULL, watch, NULL);
    if (rc < 0)
        close_all();
    return rc;
}

void start_limit_with(const char *device, const char *port)
{
    pthread_mutex_lock(&p.lock);
    p.device = device;
    p.port = port;
    if (!p.came)
        p.until = clock_now() + p.seconds * CLOCK_SEC;
    pthread_mutex_unlock(&p.lock);
    tell();
}

void start_limit_end(void)
{
    if (p.news < 0)
        return;
    pthread_mutex_lock(&p.lock);
    p.over = true;
    pthread_mutex_unlock(&p.lock);
    tell();
    pthread_join(p.thread, NULL);
    close_all();
    if (p.came)
        kill(getpid(), p.came);
}
