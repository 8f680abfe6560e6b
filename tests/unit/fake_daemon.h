/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A daemon in the test's own process: one thread serves the control protocol and the queues by the
 * contract in lib/ipc, and moves data by plain copies, since addresses are valid here. Every
 * request succeeds, at once by default; nothing is sent anywhere.
 */
#ifndef URNIC_FAKE_DAEMON_H
#define URNIC_FAKE_DAEMON_H

#include <stdatomic.h>
#include <stdbool.h>

struct fake;

/* A daemon's answer about the place of a completion queue. */
enum fake_lie {
    FAKE_TRUE,
    FAKE_NO_ENTRIES,
    FAKE_3_ENTRIES,
    FAKE_TOO_LONG,
    FAKE_OUTSIDE,
    FAKE_UNALIGNED,
    FAKE_NOWHERE,
    FAKE_LIES
};

/* Settings that a test may change while it runs. */
struct fake_knobs {
    _Atomic bool hold;       /* leave doorbells and queues alone */
    _Atomic bool kill;       /* close every descriptor without a message, as in a crash */
    _Atomic unsigned status; /* status of the next completions */
    _Atomic unsigned kicks;  /* counted: wakes of the worker by clients */
    _Atomic unsigned async; /* 1 + event number to send about the newest queue pair; then cleared */
    _Atomic unsigned stale_async; /* the same, about a queue pair that never existed */
    _Atomic bool lost;            /* with the event: others were lost before it */
    _Atomic unsigned newer; /* octets of zeros and ones that a newer daemon appends to replies */
    _Atomic unsigned late;  /* message type with answers held back; 0 = send them, last first */
    _Atomic unsigned kept;  /* counted: answers held back */
    _Atomic unsigned minor; /* of its version of the protocol; 0 = ours */
    _Atomic unsigned lie;   /* enum fake_lie: about the next completion queue; cleared */
};

/* Starts the daemon on a socket of its own and points $URNIC_SOCKET to it. */
struct fake *fake_start(void);
struct fake_knobs *fake_knobs(struct fake *f);
void fake_stop(struct fake *f);

#endif
