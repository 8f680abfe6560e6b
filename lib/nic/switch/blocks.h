/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Who has which block of queue pair numbers (qpn.h has their layout). A block that is given back
 * rests: peers may still send to its numbers, and must not reach another program (SEC-08).
 */
#ifndef NIC_BLOCKS_H
#define NIC_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

#include "qpn.h"

#define BLOCKS_REST_NS 60000000000ull /* the longest TIMEWAIT */

/* All zero at first. */
struct blocks {
    struct {
        void *owner;   /* NULL = nobody */
        uint64_t from; /* ns: it may be drawn again */
    } block[QPN_BLOCKS];
};

/* Draw a block that nobody has and that doesn't rest, each with the same probability.
 *
 * owner   gets it, not NULL
 * now     ns
 * random  a random number, which decides
 *
 * Returns the block, or -EAGAIN: there is none at present. */
int blocks_draw(struct blocks *b, void *owner, uint64_t now, uint32_t random);
/* Give a block back: it rests. */
void blocks_give(struct blocks *b, unsigned block, uint64_t now);
/* Give back all that the owner has. */
void blocks_give_all(struct blocks *b, const void *owner, uint64_t now);

/* The owner of a number; NULL: nobody, or one of the daemon's engines. */
static inline void *blocks_owner(const struct blocks *b, uint32_t qpn)
{
    unsigned block = qpn_block(qpn);
    return block < QPN_BLOCKS ? b->block[block].owner : NULL;
}

#endif
