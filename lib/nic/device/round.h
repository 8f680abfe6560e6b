/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a worker does again and again, for the thread that has it (worker.taken): its own, or one
 * that stands in for it.
 */
#ifndef NIC_ROUND_H
#define NIC_ROUND_H

#include <stdbool.h>
#include <stdint.h>

struct worker;

/* One round: jobs, what has come, what applications have posted, what is due, what there is to
 * send, and the events that follow. Returns how much there was to do (0 = nothing). */
unsigned worker_round(struct worker *w, uint64_t now);
/* When the next round has something to do, ns, if nothing comes before; some 100 ms at most. */
uint64_t worker_deadline(struct worker *w, uint64_t now);
/* The last look before blocking, when applications can see that the worker sleeps: is there
 * anything at all? */
bool worker_anything(struct worker *w, uint64_t now);

/* Yield, and note how long that took. Returns the time. */
uint64_t worker_yield(struct worker *w);
/* In the middle of a round: an application on its core has fallen behind with what others wait for.
 * Let it run, until helped(arg) or three turns have passed. False: it hasn't helped, or wasn't let
 * in, because that can cost a time slice, this worker yields to nobody, or it was in vain less than
 * a millisecond ago. */
bool worker_let_in(struct worker *w, bool (*helped)(void *arg), void *arg);

#endif
