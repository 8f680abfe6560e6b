/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The workers of one device. Each has a struct device of its own, a member of the team, with an
 * engine, neighbours and a connection manager. For the network and for applications all of them are
 * one device, with one MAC address and one set of addresses. Member 0 has the port. Another member
 * has a queue of the port, where the driver can (io_ops.queue), or else a lane (lane.h).
 *
 * A context belongs to one member, with all that it opens. Frames for the queue pair of another
 * member go over a ring (steer.h).
 */
#ifndef NIC_TEAM_H
#define NIC_TEAM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "blocks.h"
#include "claim.h"
#include "frame_ring.h"
#include "gid.h"
#include "group.h"
#include "io.h"
#include "net.h"
#include "share.h"

#define TEAM_ICMP 16u
#define TEAM_MAX  8u /* members: a power of two */
_Static_assert(TEAM_MAX <= CLAIM_MEMBERS, "claims know all members");

struct device;

/* Facts about the port for members without it. Member 0 updates them every few ms. */
struct team_port {
    struct io_caps caps;
    struct io_link link;
    char why[96]; /* reason of the link state */
    struct gid_table gids;
};

struct team {
    unsigned n;    /* members: 1, 2, 4 or 8 */
    unsigned bits; /* bits of a queue pair's number that name the member: log2 of n */
    struct device *member[TEAM_MAX];
    unsigned contexts[TEAM_MAX]; /* contexts of each member; the control thread's */

    struct share_pool share;  /* users, and their shares of the engines' objects */
    struct claims claims;     /* owners of the peers' queue pairs */
    struct blocks blocks;     /* of queue pair numbers of programs */
    struct group_user *users; /* users in groups */

    struct frame_ring *ring[TEAM_MAX][TEAM_MAX]; /* indices: from, to; NULL to itself */
    struct frame_ring *out[TEAM_MAX];            /* frames of a lane to member 0; NULL = no lane */
    _Atomic unsigned in_groups; /* members with queue pairs in groups, a bit each */

    pthread_mutex_t lock; /* guards the members below */
    struct team_port port;
    struct io_addr groups[TEAM_MAX][NET_GROUPS_MAX]; /* groups of each member's queue pairs */
    unsigned ngroups[TEAM_MAX];
    struct io_icmp icmp[TEAM_ICMP]; /* last ICMP errors from the port: a ring */
    unsigned nicmp;                 /* number of ICMP errors since the start */
    _Atomic bool regroup;           /* member 0 has to tell the port about changed groups */
};

/* Make the team of a device of n workers. NULL = out of memory. */
struct team *team_new(unsigned n);
/* Free it; all members are closed. */
void team_free(struct team *t);

/* The member for the next context: the one with the fewest. On the control thread, which counts
 * contexts in `contexts`. */
struct device *team_choose(const struct team *t);
/* The member that runs on this worker; NULL = none. */
struct device *team_on_worker(const struct team *t, unsigned worker);

/* Wake member k, which may have work, if it sleeps. Any thread. */
void team_wake(struct team *t, unsigned k);

/* Member 0 publishes the current facts about its port and addresses. */
void team_publish(struct device *d);
/* The facts published last. */
void team_port(struct team *t, struct team_port *out);
/* Record an ICMP error that a member's port has received. */
void team_icmp_heard(struct team *t, const struct io_icmp *icmp);
/* The next ICMP error after number `*seen`; false = none. */
bool team_icmp_next(struct team *t, unsigned *seen, struct io_icmp *out);
/* Set the groups of a member's queue pairs. On a port of the kernel's, member 0 joins new groups
 * before this returns, so it may take a round of its worker. 0, or -errno of a group that could not
 * be joined. */
int team_set_groups(struct device *d, const struct io_addr *groups, unsigned n);
/* The members with queue pairs in this group: a bit each. */
unsigned team_in_group(struct team *t, const struct wire_addr *group);
/* On member 0: tell a port of the kernel's about the groups of all members, if they have changed.
 * 0, or -errno of a group that could not be joined. */
int team_regroup(struct device *d);

#endif
