/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A worker's round, run by the thread that has the worker (worker.taken): the worker's own thread,
 * or one that stands in for it.
 */
#ifndef NIC_ROUND_H
#define NIC_ROUND_H

#include <stdbool.h>
#include <stdint.h>

struct worker;

/* One round: jobs, received frames, posted work, due timers, frames to send, and the events that
 * follow. Returns the amount of work done (0 = none). */
unsigned worker_round(struct worker *w, uint64_t now);
/* For a device on a daemon's switch. A request of the program may be the answer to an event from
 * the daemon, such as the end of a connection. Frames that reached the device before the event are
 * received first: a message whose ACK is here has succeeded (QP-11). Returns the number of frames.
 */
unsigned worker_before_job(struct worker *w, uint64_t now);
/* The time at which the next round has work, ns, if nothing arrives before; at most some 100 ms
 * ahead. */
uint64_t worker_deadline(struct worker *w, uint64_t now);
/* The last check before blocking, when applications can see that the worker sleeps: is there any
 * work? */
bool worker_anything(struct worker *w, uint64_t now);

/* Yield, and record the time that it took. Returns that time. */
uint64_t worker_yield(struct worker *w);
/* In the middle of a round: an application on the worker's core is late, and others wait for it.
 * Let it run until helped(arg) is true, or for three turns. False: it did not help, or did not get
 * the core. It doesn't get the core when that can cost a time slice, when this worker never yields,
 * or when yielding was in vain less than a millisecond ago. */
bool worker_let_in(struct worker *w, bool (*helped)(void *arg), void *arg);

#endif
