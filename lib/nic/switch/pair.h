/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The peers that queue pairs of programs may send to (SEC-35). A packet of a connection names no
 * sender: the peer takes it for one of its own peer's, whichever user has sent it. So the daemon
 * keeps a pair for each connected queue pair of a program, and the switch passes on only frames
 * that are for the peer of the queue pair that the slot names. The pair has the next hop, too: one
 * look-up is both.
 *
 * On the device's worker.
 */
#ifndef NIC_PAIR_H
#define NIC_PAIR_H

#include "qpn.h"
#include "switch_channel.h"

/* A queue pair of a program and its peer. The caller keeps the memory while the channel has it. */
struct switch_pair {
    struct wire_addr local, peer;
    uint32_t qpn, peer_qpn;
    uint8_t mac[6]; /* of the next hop, when the pair was made */
};

/* Pairs by the numbers of a block. */
struct switch_pairs {
    unsigned block;
    struct switch_pairs *next; /* another block of the channel's */
    struct switch_pair *at[1u << QPN_BLOCK_BITS];
};

/* Add a pair to the channel. Its queue pair has a number of the channel, and has no pair yet. 0;
 * -EDQUOT: it has SWITCH_PAIRS; -ENOMEM. */
#define SWITCH_PAIRS 1024u
int switch_pair_add(struct switch_channel *c, struct switch_pair *p);
/* Remove a pair; harmless if the channel doesn't have it. */
void switch_pair_remove(struct switch_channel *c, const struct switch_pair *p);

/* The channel ends: free its tables. */
void switch_pairs_free(struct switch_channel *c);

/* The pair of this queue pair; NULL = none. */
static inline struct switch_pair *switch_pair_of(const struct switch_channel *c, uint32_t qpn)
{
    const struct switch_pairs *t = c->pairs;
    while (t && t->block != qpn_block(qpn))
        t = t->next;
    if (!t)
        return NULL;
    struct switch_pair *p = t->at[qpn & ((1u << QPN_BLOCK_BITS) - 1)];
    return p && p->qpn == qpn ? p : NULL;
}

#endif
