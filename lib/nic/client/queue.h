/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Entries of a client's queue become work requests. On the worker.
 */
#ifndef NIC_QUEUE_H
#define NIC_QUEUE_H

#include "context.h"

/* Take up to ROUND_ENTRIES. Returns how many; *more = there are (or may be) others. */
unsigned queue_pull(struct queue *q, uint64_t now, bool *more);
/* Receives of this queue are wanted before its turn: take some. False: there was none. */
bool queue_recv_wanted(struct queue *q);
/* It waits for no neighbour any more: before it goes. */
void queue_unwait(struct queue *q);
/* Set a queue to empty: RESET. A doorbell that has been rung for it is taken all the same. */
void queue_reset(struct queue *q);

#endif
