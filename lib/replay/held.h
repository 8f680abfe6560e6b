/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Counts memory that grows with the capture, against one limit; freeing the memory returns it.
 * Memory of fixed size, such as an engine, isn't counted.
 */
#ifndef URNIC_REPLAY_HELD_H
#define URNIC_REPLAY_HELD_H

#include <stdbool.h>
#include <stdint.h>

struct held {
    uint64_t octets, max;
    bool over; /* a request has exceeded the limit */
};

/* Call this before allocating this many octets. False: the limit would be exceeded. */
static inline bool held_take(struct held *h, uint64_t octets)
{
    if (octets > h->max || h->octets > h->max - octets) {
        h->over = true;
        return false;
    }
    h->octets += octets;
    return true;
}

static inline void held_give(struct held *h, uint64_t octets)
{
    h->octets -= octets;
}

#endif
