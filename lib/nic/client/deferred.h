/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A request that must wait for a neighbour's MAC. It is kept aside, the client's other requests go
 * on, and it is answered once the MAC is known. On the context's worker.
 */
#ifndef NIC_DEFERRED_H
#define NIC_DEFERRED_H

#include <stddef.h>
#include <stdint.h>

#include "neigh.h"

struct client;

struct deferred {
    struct deferred *next; /* in the client's list */
    struct client *client;
    struct neigh_waiter waiter;
    /* Act on msg with the MAC, in place; the answer is its first *len octets. */
    int (*act)(struct deferred *d, const uint8_t mac[6], size_t *len, uint64_t now);
    _Alignas(16) uint8_t msg[320];
};

/* Keep a client's request aside, the message `msg` of `len` octets, until the MAC for dst is known
 * (perhaps at once); then it is answered (clients.answer). The message is copied. 0, -ENOMEM,
 * -EDQUOT (QUOTA_DEFERRED, or the user's share of neighbours). */
int deferred_start(struct client *c, const void *msg, size_t len, const struct wire_addr *dst,
                   int (*act)(struct deferred *d, const uint8_t mac[6], size_t *len, uint64_t now),
                   uint64_t now);
/* Drop the waiting requests of a client that disconnects. */
void deferred_forget(struct client *c);

#endif
