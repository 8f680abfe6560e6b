/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Waking the other end. A program sleeps on a word of the channel, which the daemon wakes without
 * any descriptor of the program's. The daemon sleeps on many descriptors, so a program writes to an
 * eventfd.
 */
#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "channel_port.h"

#define NS 1000000000ull

/* System calls by number: they are no cancellation points, and leave errno as it was. */
static long futex(_Atomic uint32_t *word, int op, uint32_t value, const struct timespec *timeout)
{
    int saved = errno;
    long rc = syscall(SYS_futex, word, op, value, timeout, NULL, 0);
    errno = saved;
    return rc;
}

static bool wake_event(const struct channel_port *p)
{
    const uint64_t one = 1;
    struct stat st;
    int saved = errno;
    bool woken = fstat(p->event, &st) == 0 && st.st_dev == p->event_dev &&
                 st.st_ino == p->event_ino &&
                 (syscall(SYS_write, p->event, &one, sizeof(one)) == sizeof(one) ||
                  errno == EAGAIN); /* full: it is readable */
    errno = saved;
    return woken;
}

void channel_hold_wake(struct io_port *io, bool on)
{
    struct channel_port *p = (struct channel_port *)io;
    const bool wake_owed = p->wake_owed;
    p->holds = on;
    p->wake_owed = on && wake_owed;
    if (wake_owed && !on)
        channel_wake(p);
}

void channel_wake(struct channel_port *p)
{
    if (p->holds) {
        p->wake_owed = true;
        return;
    }
    struct channel_index *at = channel_index(&p->tx);
    channel_fence();
    if (!atomic_load_explicit(&at->sleeping, memory_order_relaxed))
        return;
    atomic_store_explicit(&at->sleeping, 0, memory_order_relaxed);
    bool woken = true;
    if (p->side == CHANNEL_SWITCH) {
        futex(&at->sleeping, FUTEX_WAKE, 1, NULL);
        if (p->bell >= 0) /* full: it is readable */
            (void)!send(p->bell, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    } else
        woken = wake_event(p);
    p->counters.wakes += woken;
    p->counters.wakes_lost += !woken;
}

/* Both ends hold the eventfd, and the program could make a plain read of it block. */
static void drain(const struct channel_port *p)
{
    uint64_t count;
    struct iovec iov = {&count, sizeof(count)};
    (void)!preadv2(p->event, &iov, 1, -1, RWF_NOWAIT);
}

void channel_rx_arm(struct io_port *io, bool on)
{
    struct channel_port *p = (struct channel_port *)io;
    if (on && p->side == CHANNEL_SWITCH)
        drain(p);
    p->armed = on;
    atomic_store_explicit(&channel_index(&p->rx)->sleeping, on, memory_order_relaxed);
    if (on)
        channel_fence();
}

void channel_wait(struct io_port *io, uint64_t ns)
{
    struct channel_port *p = (struct channel_port *)io;
    struct channel_index *at = channel_index(&p->rx);
    const struct timespec timeout = {.tv_sec = (time_t)(ns / NS), .tv_nsec = (long)(ns % NS)};
    futex(&at->sleeping, FUTEX_WAIT, 1, &timeout);
}

void channel_wake_all(struct channel_index *at)
{
    atomic_store_explicit(&at->sleeping, 0, memory_order_relaxed);
    futex(&at->sleeping, FUTEX_WAKE, 1, NULL);
}

void channel_nudge(struct io_port *io)
{
    struct channel_port *p = (struct channel_port *)io;
    channel_fence();
    channel_wake_all(atomic_load_explicit(&p->rx.at, memory_order_acquire));
}
