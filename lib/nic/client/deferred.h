/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A request that must wait for a neighbour's MAC before it can be acted on: it is kept aside, the
 * client's other requests go on, and the answer comes when the MAC does. On the context's worker.
 */
#ifndef NIC_DEFERRED_H
#define NIC_DEFERRED_H

#include <stddef.h>
#include <stdint.h>

#include "neigh.h"

struct client;

struct deferred {
    struct deferred *next; /* of the client's */
    struct client *client;
    struct neigh_waiter waiter;
    /* What to do with the MAC: act on msg, in place, and answer with its first *len octets. */
    int (*act)(struct deferred *d, const uint8_t mac[6], size_t *len, uint64_t now);
    _Alignas(16) uint8_t msg[320];
};

/* Keep a client's request, the message `msg` of `len` octets, aside until the MAC for dst is known
 * (perhaps it is already); it is answered then (clients.answer). The message is copied. 0, -ENOMEM,
 * -EDQUOT (QUOTA_DEFERRED, or its user's share of neighbours). */
int deferred_start(struct client *c, const void *msg, size_t len, const struct wire_addr *dst,
                   int (*act)(struct deferred *d, const uint8_t mac[6], size_t *len, uint64_t now),
                   uint64_t now);
/* The client goes: its waiting requests are dropped. */
void deferred_forget(struct client *c);

#endif
