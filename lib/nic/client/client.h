/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One connection: its user, its contexts, its objects. The control thread owns the socket; once a
 * context is open, everything below "objects" belongs to the context's worker.
 */
#ifndef NIC_CLIENT_H
#define NIC_CLIENT_H

#include <stdbool.h>
#include <sys/types.h>

#include "context.h"
#include "handle.h"
#include "qslab.h"
#include "unread.h"

struct engine_channel;
struct engine_group;
struct engine_peer;
struct clients;

struct client {
    struct client *next;
    struct clients *all;
    int fd;
    int pidfd; /* -1 = none: only the socket tells */
    pid_t pid;
    uid_t uid;
    uid_t account; /* user of its shares: uid, or the owner of a subordinate user (subuid.h) */
    char comm[16];
    bool own;       /* this process itself: no socket, and its memory is ours */
    bool greeted;   /* hello exchanged */
    uint16_t minor; /* the client's minor version of the protocol */
    bool gone;      /* to be torn down by the control loop */
    bool ends;      /* torn down after its frames have left (settle.h) */
    bool open;      /* a context is open */
    bool attached;  /* its worker serves the context */
    /* shares of its user; for the control thread or its jobs */
    struct share *share;     /* of the daemon's */
    struct share *of_device; /* of the open device's */

    /* objects */
    struct context ctx;
    struct handle_table handles;
    struct qslab_list qslabs;
    uint64_t slab_octets;    /* of application slabs */
    uint64_t foreign_octets; /* of objects of its own that regions are in */
    uint32_t mappings;       /* of both */
    uint32_t ndeferred;      /* requests that wait for something */
    uint32_t nsettling;      /* requests that wait for frames before them; the control thread's */
    uint32_t nsealing;       /* requests that wait for a slab's seals; the control thread's */
    uint32_t nasking;        /* requests that wait for engines in programs; the control thread's */
    struct unread unread;    /* descriptors under way to it; the control thread's */
    struct client_capture *capture; /* the control thread's; at most one runs */
    struct engine_channel *engine;  /* of its own engine (engine_channel.h); NULL = none */
    struct engine_group *groups; /* that engine's multicast groups (engine_group.h); the worker's */
    struct engine_peer *peers;   /* its queue pairs' peers (engine_peer.h); the worker's */
    struct deferred *deferred;   /* requests that wait for something; the worker's */
};

/* The first member of an object of a client's that another room makes (HANDLE_CM_CHANNEL,
 * HANDLE_CM_ID): how it ends with the client, on the worker. The caller deletes its handle. */
struct client_object {
    void (*free)(struct client_object *o, uint64_t now);
};

/* A region of a client, to which its keys refer. */
struct region {
    uint32_t lkey;
    struct memory *own;    /* foreign: this region's mapping */
    struct app_slab *slab; /* slab: shared with other regions */
};

/* A slab for application data. */
struct app_slab {
    struct memory *mem;
    uint32_t users; /* regions in it */
};

/* A connection has come in: read its credentials. It isn't one of all->first yet. NULL = out of
 * memory or gone already. */
struct client *client_new(struct clients *all, int fd);
/* The process itself as a client, without a socket: requests are calls (request_act). NULL = out of
 * memory. */
struct client *client_new_own(struct clients *all);
/* May it change objects of others, too: root and the daemon's own user. */
bool client_is_admin(const struct client *c);
/* The worker of a device for a context of this client that asks for none. That is the worker of
 * another context of its process, because ids in one context may have queue pairs in the other;
 * else the one with the fewest contexts. On the control thread. */
struct device *client_place(const struct client *c, const struct device *dev);
/* Open its context on a device: doorbells and sockets. 0 or -errno. On the control thread, as are
 * the functions below. */
int client_open(struct client *c, struct device *dev);
/* Undo client_open, of a context without objects. */
void client_unopen(struct client *c);
/* Have the worker serve the context, when the client has been answered. */
void client_start(struct client *c);
/* Flush its queue pairs, disconnect from peers, free everything (SHM-07), close its socket. From
 * the control thread. */
void client_free(struct client *c);
/* One that has asked for nothing yet; its socket stays open. */
void client_forget(struct client *c);

/* ---- destroying single objects (queue pairs: client_qp.h); on the worker ---- */

/* -EBUSY: a queue pair uses it. */
int client_cq_destroy(struct client *c, struct client_cq *cq);
int client_srq_destroy(struct client *c, struct client_srq *srq);
/* Gives the memory that the control thread has to unmap afterwards in *unmap; NULL = none. Errors
 * are those of mem_mr_dereg. */
int client_mr_dereg(struct client *c, struct region *mr, struct memory **unmap);
/* -EBUSY: a CQ uses it. */
int client_channel_destroy(struct channel *ch);

#endif
