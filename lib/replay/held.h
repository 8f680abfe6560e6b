/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory that grows with the capture is counted, against one limit: what is taken is given back
 * when it is freed. What doesn't grow with it, as an engine, isn't.
 */
#ifndef URNIC_REPLAY_HELD_H
#define URNIC_REPLAY_HELD_H

#include <stdbool.h>
#include <stdint.h>

struct held {
    uint64_t octets, max;
    bool over; /* more was wanted than there is */
};

/* Before so many octets are allocated. False: that would be more than the limit. */
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
