/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Helpers of requests about queues. On the context's worker.
 */
#ifndef NIC_REQ_QUEUE_H
#define NIC_REQ_QUEUE_H

#include "request.h"

/* The power of two that holds n entries. */
uint32_t pow2_at_least(uint32_t n);
/* Allocate the memory and the number of a queue of at least `entries` entries; describe it in
 * *where, and add the slab's descriptor to the answer if the client doesn't have it yet. -ENOMEM,
 * -EDQUOT. */
int queue_create(struct request *r, struct queue *q, enum queue_kind kind, uint32_t entries,
                 uint32_t stride, bool ud, struct ipc_where *where);

#endif
