/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The owners of blocks of queue pair numbers (qpn.h has their layout). A returned block rests:
 * peers may still send to its numbers, and must not reach another program (SEC-08). Until then it
 * counts for the user that had it (SEC-22).
 */
#ifndef NIC_BLOCKS_H
#define NIC_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

#include "qpn.h"

struct share;

#define BLOCKS_REST_NS 60000000000ull /* the longest TIMEWAIT */

/* All zero at first. */
struct blocks {
    struct {
        void *owner;         /* NULL = free */
        uint64_t from;       /* ns: earliest time for the next draw */
        struct share *share; /* the share that it counts for, also while it rests; NULL = none */
    } block[QPN_BLOCKS];
};

/* Draw a free block that doesn't rest, each with the same probability.
 *
 * `owner`, not NULL, gets it. `share` is that of its user, NULL = of none. `now` is in ns. `random`
 * is a random number, which decides.
 *
 * Returns the block; -EDQUOT: the user has its share; or -EAGAIN: none is free at present. */
int blocks_draw(struct blocks *b, void *owner, struct share *share, uint64_t now, uint32_t random);
/* Return a block: it rests. */
void blocks_give(struct blocks *b, unsigned block, uint64_t now);
/* Take all blocks out of the users' shares, at the end. */
void blocks_free(struct blocks *b);
/* Return all blocks of an owner. */
void blocks_give_all(struct blocks *b, const void *owner, uint64_t now);

/* The owner of a number; NULL: it is free, or one of the daemon's engines. */
static inline void *blocks_owner(const struct blocks *b, uint32_t qpn)
{
    unsigned block = qpn_block(qpn);
    return block < QPN_BLOCKS ? b->block[block].owner : NULL;
}

#endif
