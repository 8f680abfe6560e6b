/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The worker's half of a context (one open of a device): its queues in shared memory, its
 * doorbells, its completion queues and where their events go. The control thread reaches it by
 * worker_call only.
 */
#ifndef NIC_CONTEXT_H
#define NIC_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "claim.h"
#include "engine.h"
#include "ipc.h"
#include "memory.h"
#include "neigh.h"

struct device;
struct context;

/* ---- objects of a context ---- */

/* A place for a queue in one of the context's queue slabs. */
struct slab_place {
    struct queue_slab *slab;
    uint64_t off, size;
};

enum queue_kind { QUEUE_SEND, QUEUE_RECV, QUEUE_SHARED };

/* A send, receive or shared receive queue that the client fills and the worker empties. */
struct queue {
    struct ipc_ring ring;
    enum queue_kind kind;
    bool active;      /* in the context's list: may have entries */
    bool starved;     /* entries wait for room in the engine */
    bool dead;        /* the client lied about an index (SHM-02) */
    bool waits;       /* for a datagram's neighbour */
    bool unreachable; /* that neighbour didn't answer: drop the datagram */
    uint32_t number;
    TAILQ_ENTRY(queue) next; /* in the list of active queues */
    struct context *ctx;
    struct client_qp *qp;   /* QUEUE_SEND, QUEUE_RECV */
    struct client_srq *srq; /* QUEUE_SHARED */
    struct slab_place place;
    struct neigh_waiter waiter;
};

/* A completion channel: a socket on which the client gets one ipc_comp_event per event. */
struct channel {
    int fd; /* the daemon's end, never blocking */
    uint32_t users;
};

struct client_cq {
    struct ipc_cq_view view;
    struct cq *cq;
    struct context *ctx;
    struct channel *channel; /* NULL = polled only */
    uint32_t ref;
    bool dirty;     /* stored into since the last look at `arm` */
    bool solicited; /* one of those was solicited or in error */
    uint32_t shown; /* last index shown, in a context that shows completions late */
    bool owed;      /* an event is due: the channel's socket had no room */
    /* moderation (CQ-10): an event waits for a number of completions, or for the first one's age */
    uint32_t mod_count;
    uint64_t mod_period; /* ns, 0 = no moderation */
    uint32_t told;       /* view.index at the last event */
    uint64_t due;        /* time of the waiting event, 0 = none waits */
    LIST_ENTRY(client_cq) next_dirty;
    TAILQ_ENTRY(client_cq) next_owed;
    struct slab_place place;
    struct ipc_cq_view next; /* a longer ring that it will move to; 0 entries = none */
    struct slab_place next_place;
};

struct client_srq {
    struct srq *srq;
    struct queue rq;
    uint32_t ref, pd;
    uint32_t max_sge, users;
    struct slab_place other; /* the ring to resize to, later the ring before */
    uint32_t other_size;     /* requested receives in it; 0 = no resize */
};

struct client_qp {
    struct qp *qp;
    struct context *ctx;
    struct queue sq, rq; /* rq.ring.entries 0 with an SRQ */
    struct client_cq *send_cq, *recv_cq;
    struct client_srq *srq;
    struct cm_id *cm_id; /* the connection that this queue pair belongs to, NULL = none */
    void (*cm_gone)(
        struct client_qp *qp); /* with cm_id: report the queue pair's end to the connection */
    enum qp_type type;
    uint32_t qpn, ref, pd;
    uint32_t rate_limit; /* kbit/s, 0 = none */
    struct cc_conf *cc;  /* the application's choice, NULL = the device's */
    bool sq_sig_all;
    bool going;                   /* it is being destroyed: no completion is delivered any more */
    struct claim claim;           /* of its peer's queue pair */
    struct neigh_watcher watcher; /* of its next hop */
};

/* ---- the context ---- */

/* The number of a freed queue. The doorbell ring may still contain it, before this place. */
struct freed_number {
    uint32_t number, place;
};

struct context {
    struct context *next;        /* of the worker's */
    struct context *next_served; /* of those that its rounds look at */
    struct device *device;
    struct client *client;
    struct worker *worker;

    struct ipc_doorbell *doorbell;
    uint32_t doorbell_head;
    struct memory *doorbell_mem;
    struct queue **queue;       /* by doorbell number; NULL = free */
    uint32_t nqueue;            /* numbers ever used */
    struct freed_number *freed; /* a ring of QUOTA_QUEUES, oldest first */
    uint32_t first_freed, nfreed;
    uint32_t looked; /* next index of context_check */

    bool news;     /* new completions since the worker asked last */
    bool served;   /* in the worker's list of those: it has had a queue, or kept an event */
    bool late;     /* its client, this process, sees completions when they are acknowledged */
    bool detached; /* no worker looks here any more: the client is being torn down */

    TAILQ_HEAD(, queue) active;
    LIST_HEAD(, client_cq) dirty;
    TAILQ_HEAD(, client_cq) owed;

    int kick_fd;            /* our end; the worker's epoll watches it */
    int async_fd;           /* our end */
    bool async_lost;        /* events were lost since the last one sent (EVT-04) */
    struct ipc_async *kept; /* asynchronous events that the socket had no room for; NULL = none */
    uint32_t nkept;
};

/* For the first open of a client: its doorbells and sockets; the worker doesn't serve it yet. 0 or
 * -errno. On the control thread, as is its end. */
int context_init(struct context *c, struct device *d, struct client *client);
/* Free everything but the device's objects, which must be freed already. */
void context_fini(struct context *c);

/* Give a queue a doorbell number. -EDQUOT: there are no more. */
int context_queue_add(struct context *c, struct queue *q);
/* Take it back. It is not given out again while it may be in the doorbell ring. */
void context_queue_del(struct context *c, struct queue *q);

/* On the worker: from now on its rounds look at this context. A program with an engine of its own
 * never needs that, and there may be a thousand such programs. */
void context_serve(struct context *c);
/* The worker's rounds look at this context no more. */
void context_unserve(struct context *c);

/* On the worker: one round. Returns how much there was to do. */
unsigned context_round(struct context *c, uint64_t now);
/* Is there a doorbell? For the look before sleeping. */
bool context_ready(const struct context *c);

/* Put a queue (back) on the list of those with entries. */
void context_activate(struct context *c, struct queue *q);
#endif
