/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which user a peer's queue pair belongs to (SEC-33). A user claims (local address, peer's address,
 * peer's QPN) by a queue pair that names it, or by a connection that the connection manager has
 * negotiated. A connection makes the user its owner: queue pairs of other users can't name it any
 * more. Without the connection manager the owner is unknown: several users may claim it, which is
 * counted and shown.
 *
 * Claims count per user, not per context: an application may use several. A user may claim the same
 * thousands of times; finding a claim of another user costs the same (SHM-12).
 *
 * Threads: a device has one table, and any of its workers may look into it. A claim belongs to one
 * worker (`member`), which alone sets and drops it. A change that concerns a claim of another
 * worker is passed to that worker (claim_news).
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
    uint32_t qpn; /* QPN of the peer */
};

/* A claim, embedded in the queue pair (`qp`), the peer of a program's queue pair (`displaced`) or
 * the connection (`doubt`) that makes it; the other pointers are NULL. */
struct claim {
    struct claims *in;      /* NULL = it claims nothing */
    LIST_ENTRY(claim) next; /* in its bucket: only the first claim of a user for a key */
    struct claim *to, *fro; /* a ring of the user's claims of the same key and kind */
    bool first;
    struct claim_key key;
    uid_t uid;
    unsigned member; /* the worker that it belongs to; set before claim_set */
    bool has_news;   /* in its worker's list of news */
    LIST_ENTRY(claim) next_news;
    struct client_qp *qp;
    /* Another user's connection now owns the peer: the claim is lost, and may be freed here. */
    void (*displaced)(struct claim *c, uint64_t now);
    /* Another user names this connection's peer: check whether the connection still exists (CM-21).
     */
    void (*doubt)(struct claim *c, uint64_t now);
};

struct claim_counters {
    uint64_t refused;   /* refused: another user's connection owns the peer */
    uint64_t displaced; /* queue pairs that ended: another user's connection owns their peer */
    uint64_t shared;    /* claims shared with another user, without the connection manager */
};

enum claim_result {
    CLAIM_SET,
    CLAIM_SHARED, /* set by a queue pair; another user has claimed the same */
    CLAIM_OWNED,  /* not set: another user's connection owns the peer */
};

struct claims {
    uint64_t seed;
    pthread_mutex_t lock; /* guards all members below */
    LIST_HEAD(claim_bucket, claim) bucket[CLAIM_BUCKETS];
    LIST_HEAD(claim_list, claim) news[CLAIM_MEMBERS];
    _Atomic bool waits[CLAIM_MEMBERS]; /* the worker has news */
    void (*wake)(void *arg,
                 unsigned member); /* tells a worker that it has news; NULL = there is one worker */
    void *wake_arg;
    struct claim_counters count;
};

/* An empty table. `seed` is random, so that attackers can't choose a bucket. */
void claims_init(struct claims *t, uint64_t seed);
/* Does a connection of another user have the peer? Then the claim by a queue pair of worker
 * `member` is refused and counted, *owner is the other user, and its connection is checked
 * (`doubt`). */
bool claim_refuses(struct claims *t, const struct claim_key *key, uid_t uid, unsigned member,
                   uid_t *owner, uint64_t now);
/* Set the claim of `c`, in place of its earlier one. The caller has set c->uid, c->member, and qp,
 * displaced or doubt. With CLAIM_OWNED `c` claims nothing: another worker has set a connection's
 * claim after claim_refuses. */
enum claim_result claim_set(struct claims *t, struct claim *c, const struct claim_key *key);
/* Drop the claim; harmless without one. */
void claim_drop(struct claim *c);
/* Does another user claim the same peer? */
bool claim_is_shared(const struct claim *c);
/* Take the claim away from a queue pair of another user that claims the same as `c`, and count it.
 * NULL: no such queue pair is left on this worker (other workers get news), or *left is 0. Each
 * queue pair that loses its claim takes one from *left. */
struct claim *claim_displace(const struct claim *c, unsigned *left);

/* Does this worker have news of its claims? Any thread. */
static inline bool claim_has_news(const struct claims *t, unsigned member)
{
    return atomic_load_explicit(&t->waits[member], memory_order_relaxed);
}
/* The next claim of this worker with news; NULL = none. A queue pair (`qp`, `displaced`) has lost
 * its claim and must end. A connection is in doubt: call `doubt`. */
struct claim *claim_news(struct claims *t, unsigned member);
void claim_counts(struct claims *t, struct claim_counters *out);

#endif
