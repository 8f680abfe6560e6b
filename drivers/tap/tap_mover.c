/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Both sides sleep on an eventfd. Each side sets a flag before its last look at its queue. The
 * other side puts a frame in before it looks at the flag. So one of them sees the other's change.
 */
#include "tap_mover.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "io.h"

#define TURN      64u  /* frames one way before the other way gets its turn */
#define RETURN_MS 1000 /* time between attempts to make a lost interface again */
#define FRAME_MIN 14u

static void signal_fd(int fd)
{
    const uint64_t one = 1;
    (void)!write(fd, &one, sizeof(one));
}

static void drain_fd(int fd)
{
    uint64_t count;
    (void)!read(fd, &count, sizeof(count));
}

static void tell(struct tap_mover *m, enum tap_news what)
{
    atomic_fetch_or_explicit(&m->news, 1u << what, memory_order_relaxed);
}

static void count(_Atomic uint64_t *c)
{
    atomic_fetch_add_explicit(c, 1, memory_order_relaxed);
}

/* ---- the thread ---- */

/* Handle the removal of the interface. */
static void lose(struct tap_mover *m)
{
    tap_dev_close(&m->dev);
    atomic_store_explicit(&m->ifindex, 0, memory_order_relaxed);
    tell(m, TAP_GONE);
}

static bool is_gone(int error)
{
    return error == EBADFD || error == ENODEV;
}

static unsigned give_kernel(struct tap_mover *m)
{
    uint32_t len;
    unsigned n = 0;
    for (; n < TURN; n++) {
        const uint8_t *frame = tap_ring_look(m->to_kernel, 0, &len);
        if (!frame)
            break;
        bool taken = m->dev.fd >= 0 && write(m->dev.fd, frame, len) == (ssize_t)len;
        if (!taken && m->dev.fd >= 0 && is_gone(errno))
            lose(m);
        count(taken ? &m->kernel_rx : &m->kernel_down);
        tap_ring_take(m->to_kernel, 1);
    }
    return n;
}

static unsigned take_from_kernel(struct tap_mover *m)
{
    unsigned n = 0;
    while (n < TURN && m->dev.fd >= 0) {
        uint8_t *room = tap_ring_room(m->to_wire);
        ssize_t got = room ? read(m->dev.fd, room, IO_FRAME_MAX) : -1;
        if (!room)
            break;
        if (got < 0 && is_gone(errno))
            lose(m);
        if (got < 0)
            break;
        if (got < (ssize_t)FRAME_MIN)
            continue;
        tap_ring_put(m->to_wire, (uint32_t)got);
        n++;
    }
    if (n == 0)
        return 0;
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&m->armed, memory_order_relaxed) &&
        !atomic_exchange_explicit(&m->signalled, true, memory_order_relaxed))
        signal_fd(m->wake);
    return n;
}

/* Set the interface up as the port wants it. */
static void follow(struct tap_mover *m, bool all)
{
    if (!atomic_exchange_explicit(&m->changed, false, memory_order_relaxed) && !all)
        return;
    pthread_mutex_lock(&m->lock);
    struct tap_want want = m->want;
    pthread_mutex_unlock(&m->lock);
    if (m->dev.fd < 0)
        return;
    if (want.serves)
        (void)tap_dev_keep(&m->dev);
    if (tap_dev_set_mac(&m->dev, want.mac) < 0)
        tell(m, TAP_NO_MAC);
    if (tap_dev_set_mtu(&m->dev, want.mtu) < 0)
        tell(m, TAP_NO_MTU);
    (void)tap_dev_set_carrier(&m->dev, want.up);
}

static uint64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void have_again(struct tap_mover *m)
{
    char name[IF_NAMESIZE];
    if (now_ms() < m->retry_ms)
        return;
    m->retry_ms = now_ms() + RETURN_MS;
    memcpy(name, m->dev.name, sizeof(name));
    if (tap_dev_open(&m->dev, name, NULL, 0) < 0)
        return;
    atomic_store_explicit(&m->ifindex, m->dev.ifindex, memory_order_relaxed);
    follow(m, true);
    tell(m, TAP_BACK);
}

static void sleep_until_work(struct tap_mover *m)
{
    bool room = tap_ring_room(m->to_wire) != NULL;
    uint32_t len;
    atomic_store_explicit(&m->starved, !room, memory_order_relaxed);
    atomic_store_explicit(&m->sleeping, true, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
    bool work = tap_ring_look(m->to_kernel, 0, &len) || (!room && tap_ring_room(m->to_wire)) ||
                atomic_load_explicit(&m->changed, memory_order_relaxed) ||
                atomic_load_explicit(&m->stop, memory_order_relaxed);
    if (!work) {
        struct pollfd p[2] = {{.fd = m->kick, .events = POLLIN},
                              {.fd = room ? m->dev.fd : -1, .events = POLLIN}};
        (void)poll(p, 2, m->dev.fd < 0 ? RETURN_MS : -1);
    }
    atomic_store_explicit(&m->sleeping, false, memory_order_relaxed);
    atomic_store_explicit(&m->starved, false, memory_order_relaxed);
    drain_fd(m->kick);
}

static void *move(void *arg)
{
    struct tap_mover *m = arg;
    follow(m, true);
    while (!atomic_load_explicit(&m->stop, memory_order_relaxed)) {
        follow(m, false);
        unsigned n = give_kernel(m);
        n += take_from_kernel(m);
        if (n > 0)
            continue;
        sleep_until_work(m);
        if (m->dev.fd < 0)
            have_again(m);
    }
    return NULL;
}

/* ---- the worker, and the opener ---- */

static void kick(struct tap_mover *m)
{
    signal_fd(m->kick);
}

void tap_mover_put(struct tap_mover *m)
{
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&m->sleeping, memory_order_relaxed) &&
        atomic_exchange_explicit(&m->sleeping, false, memory_order_relaxed))
        kick(m);
}

void tap_mover_took(struct tap_mover *m)
{
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&m->starved, memory_order_relaxed) &&
        atomic_exchange_explicit(&m->starved, false, memory_order_relaxed))
        kick(m);
}

void tap_mover_arm(struct tap_mover *m, bool on)
{
    if (on) {
        atomic_store_explicit(&m->armed, true, memory_order_relaxed);
        atomic_thread_fence(memory_order_seq_cst);
        return;
    }
    atomic_store_explicit(&m->armed, false, memory_order_relaxed);
    if (atomic_exchange_explicit(&m->signalled, false, memory_order_relaxed))
        drain_fd(m->wake);
}

void tap_mover_want(struct tap_mover *m, const struct tap_want *want)
{
    const struct tap_want *old = &m->want; /* only the worker writes it */
    if (old->serves == want->serves && old->up == want->up && old->mtu == want->mtu &&
        memcmp(old->mac, want->mac, sizeof(want->mac)) == 0)
        return;
    pthread_mutex_lock(&m->lock);
    m->want = *want;
    pthread_mutex_unlock(&m->lock);
    atomic_store_explicit(&m->changed, true, memory_order_relaxed);
    kick(m);
}

int tap_mover_start(struct tap_mover *m, const struct tap_dev *dev, const struct tap_want *want)
{
    sigset_t all, before;
    *m = (struct tap_mover){.dev = *dev, .want = *want, .lock = PTHREAD_MUTEX_INITIALIZER};
    atomic_init(&m->ifindex, dev->ifindex);
    m->kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    m->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (m->kick < 0 || m->wake < 0)
        return -errno;
    m->to_kernel = tap_ring_new();
    m->to_wire = tap_ring_new();
    if (!m->to_kernel || !m->to_wire)
        return -ENOMEM;
    sigfillset(&all); /* signals are for the daemon's other threads */
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int rc = pthread_create(&m->thread, NULL, move, m);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    m->started = rc == 0;
    if (m->started)
        pthread_setname_np(m->thread, "kernel-tap");
    return -rc;
}

void tap_mover_stop(struct tap_mover *m)
{
    atomic_store_explicit(&m->stop, true, memory_order_relaxed);
    if (m->started) {
        kick(m);
        pthread_join(m->thread, NULL);
    }
    tap_dev_close(&m->dev);
    if (m->kick >= 0)
        close(m->kick);
    if (m->wake >= 0)
        close(m->wake);
    tap_ring_free(m->to_kernel);
    tap_ring_free(m->to_wire);
}
