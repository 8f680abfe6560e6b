/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A device (urn0, urn1 ...): a port, its addresses, the engine that speaks RoCE on it, the little
 * network stack that resolves its neighbours, and what serves its QP1. All of it belongs to one
 * worker once that runs. A device of several workers has all this for each of them: a struct device
 * is then one member of a team (team.h).
 */
#ifndef NIC_DEVICE_H
#define NIC_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "budget.h"
#include "engine.h"
#include "gid.h"
#include "gsi.h"
#include "io.h"
#include "settings.h"

struct behind;
struct capture_tap;
struct datapath;
struct facts;
struct loop;
struct neigh;
struct nic_switch;
struct team;
struct worker;

/* What happened to frames beside the engine's own counters. */
struct device_stats {
    uint64_t slow_path;  /* frames given to ARP, ND, ICMP */
    uint64_t own_echo;   /* our own frames that the port gave back */
    uint64_t copy_fault; /* copies that failed: a client took its memory away (MR-12) */
    uint64_t port_full;  /* rounds in which frames had to wait for room */
    uint64_t no_link;    /* frames of queue pairs that were lost: the link was down (EVT-05) */
    uint64_t link_changes;
    /* what clients have done that they should not (SHM-02, SHM-08, CQ-06) */
    uint64_t client_bad_index;    /* queues that were given up: an index or a length was a lie */
    uint64_t client_bad_doorbell; /* doorbells of queues that don't exist */
    uint64_t client_unsealed;     /* memory refused, as its owner could make us wait (SHM-10) */
    uint64_t client_over_quota;   /* requests refused by -EDQUOT: quotas, a user's share (SEC-22) */
    uint64_t client_event_owed;   /* events that had to wait: their channel was full */
    uint64_t async_lost;          /* asynchronous events that nobody took (EVT-04) */
    uint64_t cm_lost;             /* those of connections likewise; a request is refused */
    /* between the members of a team: frames that came to the right one, were given to another, or
     * were lost because the ring to it was full */
    uint64_t steer_right, steer_moved, steer_lost;
    struct budget_stats job[BUDGETS];
};

/* An address that was taken away; queue pairs that send from it wait for it (GID-04). */
struct device_gone {
    struct wire_addr ip;
    uint64_t until;
};

struct device {
    const struct config_device *conf;
    unsigned index;
    char name[16];
    uint8_t mac[6];
    uint64_t guid; /* EUI-64 of the MAC, octets in network order */
    uint32_t frame_max;
    uint32_t ip_mtu;
    unsigned path_mtu;      /* enum 1..5 */
    unsigned icmp_seen;     /* of the team's (team_icmp_next) */
    struct io_icmp icmp;    /* which flight recorders are told of, from queue pair icmp_at on */
    uint32_t icmp_at;       /* 0 = none */
    unsigned tx_want;       /* slots to ask for: adapts to the load */
    bool gsi_came;          /* datagrams for QP1, since device_take began */
    bool tx_blocked;        /* frames wait, and the port has no room */
    uint64_t catch_up_from; /* device_is_late: not before then */

    struct team *team; /* never NULL */
    unsigned member;   /* which of it this is */
    bool shared;       /* the team has others */
    unsigned steered;  /* members that were given frames and not woken yet, a bit each */
    unsigned lent;     /* members whose frames are lent, likewise */
    unsigned turn;     /* whose frames come first */
    struct io_port *io;
    struct behind *behind; /* what it is is said by a daemon (behind.h); NULL = by its settings */
    struct worker *worker;
    struct engine *engine;
    struct neigh *neigh;
    struct gsi *gsi;              /* what serves QP1 */
    struct datapath *path;        /* its scratch */
    struct loop *loop;            /* frames to ourselves; NULL = none were ever needed */
    struct nic_switch *sw;        /* to engines of programs; NULL = there were none yet */
    struct facts *facts;          /* the page that tells those of the device; NULL = none yet */
    bool sw_last;                 /* frames of programs have gone behind the engine's */
    struct capture_tap *captures; /* of running captures, linked */
    struct gid_table gids;
    struct device_gone gone[GID_PAIRS];
    unsigned ngone;
    uint32_t addr_at;    /* where the queue pairs' pass over addresses is; 0 = none is under way */
    struct io_link link; /* but for `why` */
    char no_link[96]; /* what was said last of why there is none; "" = it is up, or nothing was */
    struct device_stats stats;
    uint32_t remotes;    /* regions in memory of processes (remote.h) */
    uint32_t ifindex;    /* of the kernel's interface that the port is on; 0 = none */
    unsigned mtu_before; /* path MTU to tell of when its pass has ended; 0 = nothing */
    int rx_fd;           /* of the port, as the worker watches it; -1 = none */
    bool rx_deaf;        /* ... but not any more: it stays readable without frames */
};

/* What a frame has beside IP: room is kept for a VLAN tag. */
#define DEVICE_HDR (WIRE_ETH_LEN + WIRE_VLAN_LEN)

/* Open the port and set everything up; the worker isn't running yet. `conf` has to live as long;
 * `seed` is for drivers that draw random numbers. 0 and *out, or -errno and a sentence in err
 * (CONFIG_ERR octets) that says what to do. */
int device_open(struct device **out, const struct config_device *conf, unsigned index,
                struct worker *worker, uint64_t seed, char *err);
/* The same for a program's device behind a daemon's: behind_begin has been called. b->io is the
 * device's from then on, also if this fails; *b has to live as long. */
int device_open_behind(struct device **out, const struct config_device *conf, struct worker *worker,
                       struct behind *b, char *err);
/* Open the next member of its team, on another worker, until it has conf->workers of them. The
 * rest as above. */
int device_open_member(struct device *first, struct worker *worker, char *err);
/* The workers don't run any more, and no context is open on them. Ends all members of its team, and
 * what serves their QP1, too. */
void device_close(struct device *d);

/* The traffic class of who wants this one: with 0 the device's (WIRE-13). */
uint8_t device_tclass(const struct device *d, uint8_t wanted);

/* Every few ms: link state, the port's own upkeep, neighbours. */
void device_service(struct device *d, uint64_t now);

/* A part of a listing of its queue pairs, as engine_qp_walk within the budget of that job. On the
 * worker. */
uint32_t device_list(struct device *d, uint32_t at, bool (*fn)(void *arg, struct qp *qp),
                     void *arg);

#endif
