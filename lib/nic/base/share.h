/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What users have of things of which there is only so much: one who takes all that he can get
 * leaves some for others (SEC-22). Of each thing seven eighths go to whoever comes first. The last
 * eighth is for those who have little: it is open to a user up to an eighth of what the others
 * leave. So one alone gets seven eighths, and after that each of the next dozens still gets some.
 *
 * Threads: any. A device may have several workers, on each of which a connection may come, and be
 * over, at any time. `limit` is set before they run.
 */
#ifndef NIC_SHARE_H
#define NIC_SHARE_H

#include <pthread.h>
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
    SHARE_CM_ID,    /* of the connection manager: ids of connections and listeners */
    SHARE_LISTENER, /* ... the latter */
    SHARE_GROUP,    /* multicast groups */
    SHARE_CONN,     /* places in its table, which connections have for a while after their end */
    SHARE_NEIGH,    /* neighbours that queue pairs send to, or that are being asked for */
    SHARE_EVENT,    /* connection events that wait until the application reads them */
    /* of the daemon */
    SHARE_FDS,      /* descriptors that it holds for clients */
    SHARE_UNREAD,   /* ... that are under way to them (unread.h) */
    SHARE_MAPPINGS, /* of clients' memory in its address space */
    SHARE_OCTETS,   /* of memory that it makes: slabs, queues */
    SHARE_LINES,    /* of the log: counts those of share_may_log that were not written */
    SHARE_KINDS
};

/* All zero, but for limits, is an empty pool. */
struct share_pool {
    uint64_t limit[SHARE_KINDS]; /* how much there is; 0 = no matter how much */
    uint64_t used[SHARE_KINDS];
    uint64_t refused[SHARE_KINDS]; /* how often somebody got none */
    struct share *first;
    pthread_mutex_t lock; /* of all that follows `limit`, and of all shares */
};

/* What it is: "queue pairs" ... */
extern const char *const share_names[SHARE_KINDS];
/* The counter of its refusals: "refused_queue_pairs" ... */
extern const char *const share_counters[SHARE_KINDS];
#define SHARE_FIRST_OF_DAEMON SHARE_FDS

/* One user's part of a pool. */
struct share {
    struct share *next;
    struct share_pool *pool;
    uid_t uid;
    bool all; /* takes what it likes: administrators */
    uint32_t members;
    enum share_kind lacked; /* the kind of the last refusal; SHARE_KINDS = none since it was set */
    uint32_t lines;         /* of the log, that it has written of its share */
    uint64_t lines_at;      /* ns: when the next of them will be forgotten */
    uint64_t used[SHARE_KINDS];
};

/* The user's share, one more member of it; subordinates of an administrator, who are none, share
 * another one. NULL = out of memory. */
struct share *share_join(struct share_pool *pool, uid_t uid, bool all);
/* One more member: what outlives the one that it was made for. Returns the share. NULL is fine. */
struct share *share_hold(struct share *s);
/* A member goes, and has given everything back. NULL is fine. */
void share_leave(struct share *s);
/* The pool goes, and with it what members have left behind. */
void share_fini(struct share_pool *pool);
/* Would share_take give so much? */
bool share_has_room(const struct share *s, enum share_kind kind, uint64_t n);
/* Count a refusal: the caller looked with share_has_room. Returns -EDQUOT. */
int share_refuse(struct share *s, enum share_kind kind);
/* Take: 0, or -EDQUOT. A share that is NULL has no bounds, here as elsewhere. */
int share_take(struct share *s, enum share_kind kind, uint64_t n);
/* What the last refusal was about, told once. False: there was none since. */
struct share_lack {
    enum share_kind kind;
    uint64_t own, used, limit; /* the user's, all users', what there is */
};
bool share_lacked(struct share *s, struct share_lack *out);
/* How often somebody got none of this kind. */
uint64_t share_refusals(struct share_pool *pool, enum share_kind kind);
/* May the log have a line of what this user does? Not if it has written many lately, so that it
 * neither fills a disk nor hides others' lines: SHARE_LOG_BURST, and one each SHARE_LOG_NS. */
bool share_may_log(struct share *s, uint64_t now);
#define SHARE_LOG_BURST 20u
#define SHARE_LOG_NS    10000000000ull
/* Give back what was taken. */
void share_give(struct share *s, enum share_kind kind, uint64_t n);

/* So much of a kind. */
struct share_part {
    enum share_kind kind;
    uint64_t n;
};

/* Take of several kinds, all or nothing; give them back. */
int share_take_all(struct share *s, const struct share_part *part, unsigned count);
void share_give_all(struct share *s, const struct share_part *part, unsigned count);

#endif
