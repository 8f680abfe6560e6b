/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Whose is a peer's queue pair (SEC-33). A user claims (local address, peer's address, peer's QPN)
 * by a queue pair that names it, or by a connection that the connection manager has negotiated. The
 * latter makes it his: queue pairs of other users can't name it any more. Without the connection
 * manager nobody knows whose it is: several users may claim it, which is counted and shown.
 *
 * Claims count per user, not per context: an application may use several. A user may claim the same
 * thousands of times; to look for a claim of others costs the same (SHM-12).
 *
 * Threads: the table is of a device, and any of its workers may look into it; a claim is of one of
 * them (`member`), which alone sets and drops it. What a claim on another worker has to do is told
 * to that worker (claim_news).
 */
#ifndef NIC_CLAIM_H
#define NIC_CLAIM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "wire.h"

#define CLAIM_BUCKETS 4096u
#define CLAIM_MEMBERS 8u /* workers of a device */

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
    unsigned member; /* the device's worker whose claim it is; set before claim_set */
    bool has_news;   /* it is in its worker's list of news */
    LIST_ENTRY(claim) next_news;
    struct client_qp *qp;
    /* Another user names the peer's queue pair that this connection has: is it this one's still
     * (CM-21)? */
    void (*doubt)(struct claim *c, uint64_t now);
};

struct claim_counters {
    uint64_t refused;   /* another user's connection has it */
    uint64_t displaced; /* queue pairs that ended because a connection of another user got it */
    uint64_t shared;    /* claims beside one of another user, without the connection manager */
};

enum claim_result {
    CLAIM_SET,
    CLAIM_SHARED, /* set: a queue pair's, beside one of another user */
    CLAIM_OWNED,  /* not set: a connection of another user has it */
};

struct claims {
    uint64_t seed;
    pthread_mutex_t lock; /* of all that follows */
    LIST_HEAD(claim_bucket, claim) bucket[CLAIM_BUCKETS];
    LIST_HEAD(claim_list, claim) news[CLAIM_MEMBERS];
    _Atomic bool waits[CLAIM_MEMBERS];        /* there are some */
    void (*wake)(void *arg, unsigned member); /* that worker has news; NULL = there is one worker */
    void *wake_arg;
    struct claim_counters count;
};

/* An empty table; `seed`: random, so that nobody can aim at a bucket. */
void claims_init(struct claims *t, uint64_t seed);
/* Does a connection of another user have it? Then a queue pair of worker `member` is refused: that
 * is counted, *owner is the other user, and its connection is asked whether it is alive (`doubt`).
 */
bool claim_refuses(struct claims *t, const struct claim_key *key, uid_t uid, unsigned member,
                   uid_t *owner, uint64_t now);
/* Claim it in place of what `c` claimed before; c->uid, c->member, and qp or doubt, are set. With
 * CLAIM_OWNED `c` claims nothing: another worker may have set a connection's claim since the caller
 * asked claim_refuses. */
enum claim_result claim_set(struct claims *t, struct claim *c, const struct claim_key *key);
/* Claim nothing any more; harmless when it doesn't. */
void claim_drop(struct claim *c);
/* Does another user claim the same? */
bool claim_is_shared(const struct claim *c);
/* Take its claim from a queue pair of another user that claims the same as `c`, and count it. NULL
 * = there is none on this worker any more: those on others have it as news; or *left, from which
 * each that loses its claim takes one, is 0. */
struct client_qp *claim_displace(const struct claim *c, unsigned *left);

/* Does this worker have news of its claims? Any thread. */
static inline bool claim_has_news(const struct claims *t, unsigned member)
{
    return atomic_load_explicit(&t->waits[member], memory_order_relaxed);
}
/* The next claim of this worker of which there is news; NULL = none. One of a queue pair (`qp`) was
 * taken from it: it is to end. One of a connection is in doubt: call `doubt`. */
struct claim *claim_news(struct claims *t, unsigned member);
void claim_counts(struct claims *t, struct claim_counters *out);

#endif
