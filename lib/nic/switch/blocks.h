/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The blocks of queue pair numbers of a device (qpn.h has their layout), and the worker that each
 * belongs to. A returned block rests: peers may still send to its numbers, and must not reach
 * another program (SEC-08). Until then it counts for the user that had it (SEC-22).
 *
 * Threads: all workers of a device share one table.
 */
#ifndef NIC_BLOCKS_H
#define NIC_BLOCKS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "qpn.h"

struct share;

#define BLOCKS_REST_NS 60000000000ull /* the longest TIMEWAIT */

struct blocks {
    struct {
        _Atomic uint8_t worker; /* 1 + the device's worker whose program has it; 0 = free */
        /* with the lock */
        uint64_t from;       /* ns: earliest time for the next draw */
        struct share *share; /* the share that it counts for, also while it rests; NULL = none */
    } block[QPN_BLOCKS];
    pthread_mutex_t lock;
};

/* All blocks are free. */
void blocks_init(struct blocks *b);
/* Draw a free block that doesn't rest, each with the same probability.
 *
 * A program of `worker`, an index in the device, gets it. `share` is that of its user, NULL = of
 * none. `now` is in ns. `random` is a random number, which decides.
 *
 * Returns the block; -EDQUOT: the user has its share; or -EAGAIN: none is free at present. */
int blocks_draw(struct blocks *b, unsigned worker, struct share *share, uint64_t now,
                uint32_t random);
/* Return a block: it rests. */
void blocks_give(struct blocks *b, unsigned block, uint64_t now);
/* Take all blocks out of the users' shares, at the end. */
void blocks_free(struct blocks *b);

/* The worker that a number belongs to; -1: the number is free, or one of the daemon's engines. */
static inline int blocks_worker(const struct blocks *b, uint32_t qpn)
{
    unsigned block = qpn_block(qpn);
    if (block >= QPN_BLOCKS)
        return -1;
    return atomic_load_explicit(&b->block[block].worker, memory_order_relaxed) - 1;
}
/* The first block of a worker; -1 = it has none. */
int blocks_first(const struct blocks *b, unsigned worker);

#endif
