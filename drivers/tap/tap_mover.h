/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The thread that moves frames between a tap interface and two bounded queues, and looks after the
 * interface. So the port's worker makes no system call for the kernel's frames, and never waits for
 * the kernel: the work that a write to a tap causes there (TCP, a firewall) takes this thread's
 * time.
 */
#ifndef URNIC_TAP_MOVER_H
#define URNIC_TAP_MOVER_H

#include <pthread.h>
#include <stdatomic.h>

#include "tap_dev.h"
#include "tap_ring.h"

/* The wanted state of the interface. */
struct tap_want {
    bool serves; /* a worker has the port: the interface stays when the process ends */
    bool up;     /* carrier */
    uint32_t mtu;
    uint8_t mac[6];
};

enum tap_news { TAP_QUIET, TAP_GONE, TAP_BACK, TAP_NO_MTU, TAP_NO_MAC, TAP_NEWS };

struct tap_mover {
    struct tap_dev dev; /* the thread's, once it runs */
    struct tap_ring *to_kernel, *to_wire;
    uint64_t retry_ms; /* the thread's: next try to open the interface again */
    int kick;          /* eventfd: wakes the thread */
    int wake;          /* eventfd: wakes the worker */
    pthread_t thread;
    bool started;
    _Atomic bool stop;
    _Atomic bool sleeping;        /* the thread; a frame for the kernel has to wake it */
    _Atomic bool starved;         /* the thread waits for room in to_wire */
    _Atomic bool armed;           /* the worker sleeps, or is about to: wake it */
    _Atomic bool signalled;       /* `wake` is readable */
    _Atomic uint32_t ifindex;     /* index of the interface; 0 = it is gone */
    _Atomic uint32_t news;        /* a bit for each enum tap_news */
    _Atomic uint64_t kernel_rx;   /* frames that the kernel took */
    _Atomic uint64_t kernel_down; /* frames that the kernel refused: interface down or gone */
    pthread_mutex_t lock;         /* `want` */
    struct tap_want want;
    _Atomic bool changed; /* `want` has changed since the thread looked */
};

/* Start, with an open interface, which is the mover's then. 0 or -errno; tap_mover_stop in either
 * case. */
int tap_mover_start(struct tap_mover *m, const struct tap_dev *dev, const struct tap_want *want);
void tap_mover_stop(struct tap_mover *m);

/* The worker: set the wanted state. Cheap without a change. */
void tap_mover_want(struct tap_mover *m, const struct tap_want *want);
/* The worker has put frames into to_kernel, or taken some from to_wire. */
void tap_mover_put(struct tap_mover *m);
void tap_mover_took(struct tap_mover *m);
/* The worker is about to sleep (true), and then looks at to_wire once more; or it is awake
 * (false). */
void tap_mover_arm(struct tap_mover *m, bool on);

#endif
