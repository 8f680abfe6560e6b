/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Users' shares of limited resources: a user that takes all that it can get leaves some for others
 * (SEC-22). Seven eighths of each resource go to any user that asks first. The last eighth is for
 * users with little: it is open to a user up to an eighth of the amount that the others leave. So a
 * single user gets seven eighths, and after that each of dozens of others still gets some.
 *
 * Threads: any. A device may have several workers, and a connection may begin and end on each of
 * them at any time. `limit` is set before they run.
 */
#ifndef NIC_SHARE_H
#define NIC_SHARE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum share_kind {
    /* of a device */
    SHARE_PD,
    SHARE_MR,
    SHARE_MW,
    SHARE_CQ,
    SHARE_SRQ,
    SHARE_QP,
    SHARE_CM_ID,    /* ids of connections and listeners */
    SHARE_LISTENER, /* listeners */
    SHARE_GROUP,    /* multicast groups */
    SHARE_CONN,     /* entries in the connection manager's table; they outlive a connection */
    SHARE_NEIGH,    /* neighbours that queue pairs send to, or that are being resolved */
    SHARE_BLOCK,    /* blocks of queue pair numbers: one for each channel, and those that rest */
    SHARE_EVENT,    /* connection events that wait until the application reads them */
    /* of the daemon */
    SHARE_FDS,      /* descriptors that it holds for clients */
    SHARE_UNREAD,   /* descriptors sent to clients and not received yet (unread.h) */
    SHARE_MAPPINGS, /* of clients' memory in its address space */
    SHARE_OCTETS,   /* octets of memory that it makes: slabs, queues */
    SHARE_LINES,    /* lines of the log: counts those that share_may_log refused */
    SHARE_KINDS
};

/* All zero, but for limits, is an empty pool. */
struct share_pool {
    uint64_t limit[SHARE_KINDS]; /* how much there is; 0 = unlimited */
    uint64_t used[SHARE_KINDS];
    uint64_t refused[SHARE_KINDS]; /* refused requests */
    struct share *first;
    pthread_mutex_t lock; /* guards all members after `limit`, and all shares but for `spilled` */
};

/* Its name: "queue pairs" ... */
extern const char *const share_names[SHARE_KINDS];
/* The counter of its refusals: "refused_queue_pairs" ... */
extern const char *const share_counters[SHARE_KINDS];
#define SHARE_FIRST_OF_DAEMON SHARE_FDS

/* One user's part of a pool. */
struct share {
    struct share *next;
    struct share_pool *pool;
    uid_t uid;
    bool all; /* no bounds: administrators */
    uint32_t members;
    enum share_kind lacked; /* the kind of the last refusal; SHARE_KINDS = none since it was set */
    uint32_t lines;         /* lines of the log that count against its share */
    uint64_t lines_at;      /* ns: when the next of them expires */
    uint64_t cnps_until;    /* ns: the CNPs that have left use up the rate until then */
    uint64_t asks_until;    /* ns: the same for neighbours that frames resolve */
    _Atomic uint32_t spilled; /* frames that wait for its programs' rings */
    uint64_t used[SHARE_KINDS];
};

/* Get the user's share, with one more member. An administrator's subordinate users, which are no
 * administrators, have another share. NULL = out of memory. */
struct share *share_join(struct share_pool *pool, uid_t uid, bool all);
/* Add a member that may outlive the one that the share was made for. Returns the share. NULL is
 * fine. */
struct share *share_hold(struct share *s);
/* Remove a member, which has returned everything. NULL is fine. */
void share_leave(struct share *s);
/* Free the pool, with all that members have not returned. */
void share_fini(struct share_pool *pool);
/* Would share_take succeed? */
bool share_has_room(const struct share *s, enum share_kind kind, uint64_t n);
/* Count a refusal: the caller looked with share_has_room. Returns -EDQUOT. */
int share_refuse(struct share *s, enum share_kind kind);
/* Take: 0, or -EDQUOT. A share that is NULL has no bounds, here as elsewhere. */
int share_take(struct share *s, enum share_kind kind, uint64_t n);
/* The kind of the last refusal, reported once. False: there was none since. */
struct share_lack {
    enum share_kind kind;
    uint64_t own, used, limit; /* the user's part, all users' parts, the total */
};
bool share_lacked(struct share *s, struct share_lack *out);
/* The number of refusals of this kind. */
uint64_t share_refusals(struct share_pool *pool, enum share_kind kind);
/* May the log get a line about this user's action? Not if it has got many lately, so that the user
 * neither fills a disk nor hides others' lines: SHARE_LOG_BURST, and one each SHARE_LOG_NS. */
bool share_may_log(struct share *s, uint64_t now);
#define SHARE_LOG_BURST 20u
#define SHARE_LOG_NS    10000000000ull
/* May this user's programs send a CNP to a queue pair that is none of their peers (SEC-35)? They
 * may send SHARE_CNPS a second, SHARE_CNP_BURST of them at once. */
bool share_may_notify(struct share *s, uint64_t now);
/* May a frame of this user's programs start the resolution of a new neighbour (SEC-22)? They may
 * start SHARE_ASKS a second, SHARE_ASK_BURST of them at once. */
bool share_may_ask(struct share *s, uint64_t now);
#define SHARE_ASKS      100u
#define SHARE_ASK_BURST 32u
#define SHARE_CNPS      10000u
#define SHARE_CNP_BURST 100u
/* Return a taken amount. */
void share_give(struct share *s, enum share_kind kind, uint64_t n);

/* An amount of a kind. */
struct share_part {
    enum share_kind kind;
    uint64_t n;
};

/* Take several kinds, all or nothing; return them. */
int share_take_all(struct share *s, const struct share_part *part, unsigned count);
void share_give_all(struct share *s, const struct share_part *part, unsigned count);

#endif
