/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Whose is a peer's queue pair (SEC-33). A user claims (local address, peer's address, peer's QPN)
 * by a queue pair that names it, or by a connection that the connection manager has negotiated. The
 * latter makes it his: queue pairs of other users can't name it any more. Without the connection
 * manager nobody knows whose it is: several users may claim it, which is counted and shown.
 *
 * Claims count per user, not per context: an application may use several. A user may claim the same
 * thousands of times; to look for a claim of others costs the same (SHM-12). Of one device, on its
 * worker.
 */
#ifndef NIC_CLAIM_H
#define NIC_CLAIM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "wire.h"

#define CLAIM_BUCKETS 4096u

struct client_qp;

struct claim_key {
    struct wire_addr local, peer;
    uint32_t qpn; /* the peer's */
};

/* Embedded in what claims: a queue pair (`qp`) or a connection (`doubt`); the other is NULL. */
struct claim {
    struct claims *in;      /* NULL = it claims nothing */
    LIST_ENTRY(claim) next; /* in its bucket, if it is the first of its user's for this key */
    struct claim *to, *fro; /* the user's others of the same key and kind: a ring */
    bool first;
    struct claim_key key;
    uid_t uid;
    struct client_qp *qp;
    /* Another user names the peer's queue pair that this connection has: is it this one's still
     * (CM-21)? */
    void (*doubt)(struct claim *c, uint64_t now);
};

struct claims {
    uint64_t seed;
    LIST_HEAD(, claim) bucket[CLAIM_BUCKETS];
    /* counters */
    uint64_t refused;   /* another user's connection has it */
    uint64_t displaced; /* queue pairs that ended because a connection of another user got it */
    uint64_t shared;    /* claims beside one of another user, without the connection manager */
};

/* An empty table; `seed`: random, so that nobody can aim at a bucket. */
void claims_init(struct claims *t, uint64_t seed);
/* The connection of another user that has it; NULL = none. */
struct claim *claim_owner(const struct claims *t, const struct claim_key *key, uid_t uid);
/* Claim it in place of what `c` claimed before; c->uid, and qp or doubt, are set. */
void claim_set(struct claims *t, struct claim *c, const struct claim_key *key);
/* Claim nothing any more; harmless when it doesn't. */
void claim_drop(struct claim *c);
/* Does another user claim the same? */
bool claim_is_shared(const struct claim *c);
/* A queue pair of another user that claims the same as `c`; NULL = none. */
struct client_qp *claim_rival(const struct claim *c);

#endif
