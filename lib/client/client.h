/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Inside of liburnic: the objects. These locks guard data that an application's threads share:
 *
 *     conn.lock     the control requests without a reply yet, and the receiving thread; no thread
 *                   holds it while it waits
 *     ctx->making   making queues, from the request until they are mapped: a slab comes with the
 *                   first reply that names it
 *     ctx->lock     object table, slabs, event counts; ctx->acked: events have been acknowledged
 *     cq->lock      the consumer's side of a CQ
 *     ring locks    the producer's side of a queue (post)
 *
 * Order: ctx->making, ctx->lock, cq->lock; conn.lock and ring locks are innermost. A queue's
 * `retired` count goes from the poller to the poster without a lock.
 */
#ifndef URNIC_CLIENT_H
#define URNIC_CLIENT_H

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "client_conn.h"
#include "ipc_map.h"
#include "urnic/urnic.h"

/* ---- a lock for a few instructions ---- */

struct client_lock {
    _Atomic uint32_t taken;
};

static inline void client_lock(struct client_lock *l)
{
    for (unsigned spins = 0;; spins++) {
        if (!atomic_exchange_explicit(&l->taken, 1, memory_order_acquire))
            return;
        while (atomic_load_explicit(&l->taken, memory_order_relaxed)) {
            if (++spins > 64)
                sched_yield(); /* the holder may have been preempted */
#if defined(__x86_64__)
            else
                __builtin_ia32_pause();
#endif
        }
    }
}

static inline void client_unlock(struct client_lock *l)
{
    atomic_store_explicit(&l->taken, 0, memory_order_release);
}

/* ---- objects that messages and completions name by number ---- */

enum client_kind { CLIENT_CQ = 1, CLIENT_QP, CLIENT_SRQ, CLIENT_ID };

struct client_obj {
    uint32_t ref;
    enum client_kind kind;
    uint32_t events, acked; /* handed to the application, acknowledged by it; ctx->lock */
};

#define CLIENT_REF_SLOTS 1024u /* of a page */
#define CLIENT_REF_PAGES 1024u

/* A reference is a slot number with a generation above it, so that a late event about a dead object
 * never reaches its successor. Pages never move: lookups need no lock. */
struct client_ref_page {
    _Atomic(struct client_obj *) obj[CLIENT_REF_SLOTS];
    uint16_t gen[CLIENT_REF_SLOTS];
    uint32_t next_free[CLIENT_REF_SLOTS];
};

struct client_refs {
    _Atomic(struct client_ref_page *) page[CLIENT_REF_PAGES];
    uint32_t used;  /* slots ever used */
    uint32_t freed; /* slot + 1 of the first free one, 0 = none */
};

/* Give the object a reference (obj->ref); under ctx->lock. -ENOSPC, -ENOMEM. */
int client_ref_add(struct client_refs *t, struct client_obj *obj, enum client_kind kind);
/* Remove the object's reference; under ctx->lock. */
void client_ref_del(struct client_refs *t, struct client_obj *obj);
struct client_obj *client_ref_get(struct client_refs *t, uint32_t ref); /* NULL = gone */
void client_refs_free(struct client_refs *t);

/* ---- messages ---- */

/* A socket for the daemon's messages about objects. An object may be destroyed before its message
 * is read: that message is dropped. But an application that polls the socket may have seen the
 * message, so its next request for an event does not wait for another one. */
struct client_inbox {
    int fd;
    struct client_mark mark; /* of fd */
    _Atomic bool polled;     /* the application has the descriptor */
    bool dropped;     /* messages were dropped since the last request for an event; ctx->lock */
    unsigned readers; /* threads that request an event: they skip such messages; ctx->lock */
    bool suspect;     /* such messages may follow the first one; ctx->lock */
};

/* Has this message's object been destroyed? Called with ctx->lock held. */
typedef bool (*client_stale)(struct urnic_context *ctx, const void *msg);

/* A request for an event. */
struct client_look {
    int flags; /* of recv: MSG_DONTWAIT until the socket was found empty */
    bool gone; /* the socket was readable because of a destroyed object: don't wait */
};

/* The descriptor, for the application to poll. */
int client_inbox_fd(const struct client_inbox *in);
/* Around each request for an event. */
struct client_look client_inbox_enter(struct urnic_context *ctx, struct client_inbox *in);
/* The next message, as recv; EAGAIN also on a blocking descriptor, if the application may have seen
 * it readable for a dropped message. */
ssize_t client_inbox_recv(struct urnic_context *ctx, const struct client_inbox *in,
                          struct client_look *look, void *msg, size_t size);
/* The last message is about a destroyed object. */
static inline void client_inbox_skip(struct client_look *look)
{
    look->gone = look->gone || look->flags != 0;
}
/* True: call client_inbox_drop until it returns false. */
bool client_inbox_leave(struct urnic_context *ctx, struct client_inbox *in);
/* After an object was destroyed, too: drop the first message if it is stale; `msg` is room for it.
 */
bool client_inbox_drop(struct urnic_context *ctx, struct client_inbox *in, void *msg, size_t size,
                       client_stale stale);

/* ---- memory ---- */

struct client_slab { /* a mapping of the daemon's memory */
    struct client_slab *next;
    uint32_t number; /* queue slabs: their number; data: the handle */
    uint8_t *addr;
    size_t size;
    bool data; /* from urnic_alloc */
};

/* The place of a context's engine. */
enum client_place {
    CLIENT_PLACE_BY_USER, /* where URNIC_ENGINE says */
    CLIENT_PLACE_DAEMON,
    CLIENT_PLACE_PROGRAM,
};

struct urnic_context {
    struct client_conn conn;
    pthread_mutex_t making;
    pthread_mutex_t lock;
    pthread_cond_t acked;
    struct client_refs refs;
    struct client_slab *slabs;
    struct ipc_doorbell *db;
    uint32_t db_slots;
    const struct ipc_worker *worker;
    const struct ipc_life *life;     /* holder 0 for ever: an older daemon */
    const struct ipc_worker *daemon; /* of a daemon, where the engine runs here */
    size_t db_size, worker_size, daemon_size;
    int kick_fd;
    int daemon_kick; /* kick_fd of a daemon that notices its close; -1 = none */
    struct client_mark kick_mark, daemon_mark;
    struct client_inbox async;
    _Atomic uint32_t ready;            /* queue pairs that left INIT and are in use */
    _Atomic uint32_t slots;            /* of the channel, as last asked for; 0 = not yet */
    bool fatal_told;                   /* DEVICE_FATAL was reported */
    struct urnic_cm_id *fresh;         /* requests that are not accepted yet */
    struct urnic_context *next_engine; /* client_engine_join */
    enum client_place place;           /* as the caller asked for it */
    uint32_t objects; /* PDs, channels ...: objects for which urnic_close returns -EBUSY */
};

struct urnic_pd {
    struct urnic_context *ctx;
    uint32_t handle;
};

struct urnic_ah {
    struct urnic_context *ctx;
    struct ipc_av av;
};

/* As poll() of one descriptor for reading. Makes progress meanwhile if no other thread does. */
int client_await(struct urnic_context *ctx, int fd, int timeout_ms);

/* The common part of completion channels and connection channels. */
struct client_channel {
    struct urnic_context *ctx;
    uint32_t handle;
    struct client_inbox in;
    uint32_t ids; /* connection ids that use it; ctx->lock */
};

struct urnic_channel {
    struct client_channel base;
};

#define CLIENT_CQ_OLD 32u /* each ring is twice as long as the one before, at least */

struct urnic_cq {
    struct client_obj obj;
    struct urnic_context *ctx;
    struct client_lock lock;
    struct ipc_cq_view view; /* view.index: written under the lock, read without by empty polls */
    uint32_t quiet;          /* older daemon: empty polls until the next check that it lives */
    uint32_t handle;
    void *user;
    struct urnic_channel *channel;
    /* Outgrown rings: a thread without the lock may still read them. */
    void *old[CLIENT_CQ_OLD];
    unsigned nold;
};

/* The producer's half of a receive queue, own or shared. */
struct client_rq {
    struct client_lock lock;
    struct ipc_ring ring;
    uint32_t doorbell;
    uint32_t max_wr, max_sge;
    uint32_t posted;          /* under the lock */
    _Atomic uint32_t retired; /* completions polled */
};

struct urnic_srq {
    struct client_obj obj;
    struct urnic_context *ctx;
    struct client_rq rq;
    uint32_t handle;
    uint32_t number; /* XRC: number by which peers name it; 0 = none */
    void *user;
};

struct urnic_qp {
    struct client_obj obj;
    struct urnic_context *ctx;
    /* sending */
    struct client_lock sq_lock;
    struct ipc_ring sq;
    uint32_t sq_cons; /* the daemon's index as last seen */
    uint32_t sq_doorbell;
    uint32_t sq_posted;          /* requests ever posted */
    _Atomic uint32_t sq_retired; /* posted requests known to be complete */
    uint32_t sq_mask;            /* of wr_id */
    uint64_t *wr_id;             /* by request number */
    uint32_t max_send_wr, max_send_sge, max_inline;
    _Atomic uint32_t state; /* as the application set it */
    uint32_t type;
    uint32_t max_datagram; /* UD: octets that fit a packet */
    bool is_ready;         /* it is among ctx->ready */
    bool has_peer;         /* the daemon was told its peer (IPC_ENGINE_PEER) */
    bool by_cm;            /* follows a connection: the daemon moves it, too */
    /* receiving */
    struct client_rq rq;
    struct urnic_srq *srq;
    /* identity */
    uint32_t qpn, handle;
    struct urnic_cq *send_cq, *recv_cq;
    void *user;
    struct urnic_cm_id *id; /* its id, NULL = none; guarded by the context's lock */
};

/* Open a device (NULL = the first one) on ctx->conn, which is open. `worker`: below 0 = any. 0, or
 * -errno: then the context has been freed. */
int client_context_open(struct urnic_context *ctx, const char *device, int worker);

/* Separate the queue pair from its id, if it has one. */
void client_cm_part(struct urnic_qp *qp);

/* A request whose reply begins with a handle and comes with descriptors. -EMFILE: no room for
 * these; then the new object is destroyed. */
int client_make(struct urnic_context *ctx, void *req, size_t len, enum ipc_type undo, void *reply,
                size_t size, int *fds, unsigned *nfds);
/* Give an unusable answer back, and have the daemon send lost slabs again. */
void client_unmake(struct urnic_context *ctx, enum ipc_type undo, uint32_t handle);

/* A queue is destroyed: unmap its slab if that has ended with it. `at` is from client_where. */
void client_unmap(struct urnic_context *ctx, const void *at);

/* The address of a queue. Maps its slab if that is new: *fds is then its descriptor, which is
 * closed. NULL with errno: ENOMEM, or EPROTO, an invalid answer. */
void *client_where(struct urnic_context *ctx, const struct ipc_where *w, size_t need, int *fds,
                   unsigned nfds, unsigned *used);

/* Ring a queue's doorbell, waking the worker if it sleeps. */
void client_ring(struct urnic_context *ctx, uint32_t doorbell);

/* Has the daemon ended? Costs a system call if it hasn't. */
bool client_gone(struct urnic_context *ctx);

/* Are we a child of the process that opened it? Its events are not ours. */
static inline bool client_forked(const struct urnic_context *ctx)
{
    return client_conn_forked(&ctx->conn);
}

/* type: the daemon's request to make or destroy it. 0 or -errno. */
int client_channel_create(struct urnic_context *ctx, enum ipc_type type,
                          struct client_channel **channel);
int client_channel_destroy(struct client_channel *channel, enum ipc_type type);
/* The next message, of exactly `size` octets. -EAGAIN as client_inbox_recv, -ENODEV; -EINTR if a
 * signal shall end the wait. */
int client_channel_next(const struct client_channel *channel, struct client_look *look, void *msg,
                        size_t size, bool intr);

/* Drop a queue pair's completions that wait in a CQ. */
void client_cq_purge(struct urnic_cq *cq, const struct urnic_qp *qp);

/* Take an object out of the table once all its events have been acknowledged. */
void client_obj_retire(struct urnic_context *ctx, struct client_obj *obj);

/* An address vector in the application's terms. */
void client_ah_attr(struct urnic_ah_attr *attr, const struct ipc_av *av);
/* Attributes of a queue pair, but for its sizes, in the application's terms. */
void client_qp_attr(struct urnic_qp_attr *a, const struct ipc_qp_attr *attr);
/* urnic_modify_qp with the attributes of a request. */
int client_qp_modify(struct urnic_qp *qp, const struct ipc_qp_attr *attr, unsigned mask);
/* Create it for a connection's id, or destroy it with the id, 0 = none. */
int client_qp_create(struct urnic_pd *pd, struct urnic_qp_init_attr *attr, uint32_t cm_id,
                     struct urnic_qp **qp);
int client_qp_destroy(struct urnic_qp *qp, uint32_t cm_id);

/* Count an object for which urnic_close returns -EBUSY: `by` is 1 or -1. */
static inline void client_count(struct urnic_context *ctx, int by)
{
    pthread_mutex_lock(&ctx->lock);
    ctx->objects += (uint32_t)by;
    pthread_mutex_unlock(&ctx->lock);
}

/* A request and its reply, of fixed structs without descriptors. 0 or -errno. */
static inline int client_call(struct urnic_context *ctx, void *req, size_t req_len, void *reply,
                              size_t size)
{
    return client_conn_call(&ctx->conn, req, req_len, reply, size, NULL, NULL);
}

/* A request whose reply is only a status. 0 or -errno. */
static inline int client_tell(struct urnic_context *ctx, void *req, size_t len)
{
    struct ipc_hdr reply;
    return client_call(ctx, req, len, &reply, sizeof(reply));
}

/* Are we a child of the process that opened it as a port of its own? Then it is dead here, and its
 * locks may be held for ever. */
static inline bool client_orphan(const struct urnic_context *ctx)
{
    return __builtin_expect(ctx->conn.engine != NULL, 0) && client_forked(ctx);
}

/* Is the daemon known to have ended? */
static inline bool client_dead(struct urnic_context *ctx)
{
    return atomic_load_explicit(&ctx->conn.dead, memory_order_relaxed);
}

/* The result of a request to destroy an object. If the daemon is dead, the object is destroyed
 * already. But a child destroys none of its parent's objects: their queues aren't mapped in it. */
static inline int client_destroyed(struct urnic_context *ctx, int err)
{
    return err < 0 && err != -EPERM && client_dead(ctx) ? 0 : err;
}

/* Destroy an object of the daemon. */
static inline int client_destroy(struct urnic_context *ctx, enum ipc_type type, uint32_t handle)
{
    return client_destroyed(ctx, client_conn_handle(&ctx->conn, type, handle));
}

/* Map an object that came with an answer of the daemon, or of the engine in this process.
 * MAP_FAILED and errno. Any thread. */
static inline void *client_map(const struct urnic_context *ctx, int object, size_t size, int prot)
{
    return ipc_object_is_stand_in(object) ? ctx->conn.engine->map(object, size, prot)
                                          : ipc_map(object, 0, size, prot);
}

/* Close fds[from..n). */
static inline void client_close_fds(const int *fds, unsigned from, unsigned n)
{
    for (; from < n; from++)
        if (!ipc_object_is_stand_in(fds[from]))
            close(fds[from]);
}

#endif
