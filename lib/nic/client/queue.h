/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Turning entries of a client's queue into work requests. On the worker.
 */
#ifndef NIC_QUEUE_H
#define NIC_QUEUE_H

#include "context.h"

/* Take up to ROUND_ENTRIES entries. Returns the number taken; *more = there are (or may be)
 * others. */
unsigned queue_pull(struct queue *q, uint64_t now, bool *more);
/* The engine needs receives of this queue before the queue's turn: take some. False: there were
 * none. */
bool queue_recv_wanted(struct queue *q);
/* Stop waiting for a neighbour, before the queue is destroyed. */
void queue_unwait(struct queue *q);
/* Empty a queue: RESET. A doorbell that was rung for it is still taken. */
void queue_reset(struct queue *q);

#endif
