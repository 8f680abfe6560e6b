/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A device (urn0, urn1 ...): a port, its addresses, the engine that speaks RoCE on it, the small
 * network stack that resolves its neighbours, and the service of its QP1. All of it belongs to one
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

struct uplink;
struct capture_tap;
struct datapath;
struct facts;
struct loop;
struct neigh;
struct nic_switch;
struct team;
struct worker;

/* Counters of frames, in addition to the engine's own. */
struct device_stats {
    uint64_t slow_path;  /* frames given to ARP, ND, ICMP */
    uint64_t own_echo;   /* our own frames that the port gave back */
    uint64_t copy_fault; /* copies that failed: a client took its memory away (MR-12) */
    uint64_t port_full;  /* rounds in which frames had to wait for room */
    uint64_t no_link;    /* frames of queue pairs, lost because the link was down (EVT-05) */
    uint64_t link_changes;
    /* faults and excesses of clients (SHM-02, SHM-08, CQ-06) */
    uint64_t client_bad_index;    /* queues given up because of a wrong index or length */
    uint64_t client_bad_doorbell; /* doorbells of queues that don't exist */
    uint64_t client_unsealed;     /* memory refused: its owner could make a worker wait (SHM-10) */
    uint64_t client_over_quota;   /* requests refused with -EDQUOT: quota or user's share used up
                                     (SEC-22) */
    uint64_t client_event_owed;   /* events that waited because their channel was full */
    uint64_t async_lost;          /* asynchronous events that no program read in time (EVT-04) */
    uint64_t cm_lost;             /* the same for events of connections; a request is refused */
    /* team members: frames that the right member received, that were passed to the right member,
     * and that were lost because its ring was full */
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
    unsigned icmp_seen;     /* ICMP errors of the team already seen (team_icmp_next) */
    struct io_icmp icmp;    /* ICMP error for the flight recorders, from queue pair icmp_at on */
    uint32_t icmp_at;       /* 0 = none */
    unsigned tx_want;       /* slots to ask for: adapts to the load */
    bool gsi_came;          /* datagrams for QP1 have come since device_take began */
    bool tx_blocked;        /* frames wait, and the port has no room */
    uint64_t catch_up_from; /* earliest time of the next device_is_late */

    struct team *team; /* never NULL */
    unsigned member;   /* index in the team */
    bool shared;       /* the team has others */
    unsigned steered;  /* members that were given frames and not woken yet, a bit each */
    unsigned lent;     /* members whose frames are lent, a bit each */
    unsigned turn;     /* member whose frames come first */
    struct io_port *io;
    struct uplink *uplink; /* the daemon's description; NULL = by settings */
    struct worker *worker;
    struct engine *engine;
    struct neigh *neigh;
    struct gsi *gsi;       /* service of QP1 */
    struct datapath *path; /* scratch memory of the data path */
    struct loop *loop;     /* frames to the device itself; NULL = not needed yet */
    struct nic_switch *sw; /* switch to engines of programs; NULL = no program has needed it yet */
    struct facts *facts;   /* page of facts for those engines; NULL = none yet */
    bool sw_last;          /* programs' frames came after the engine's in the last burst */
    struct capture_tap *captures; /* taps of running captures, linked */
    struct gid_table gids;
    struct device_gone gone[GID_PAIRS];
    unsigned ngone;
    uint32_t addr_at; /* position of the pass of queue pairs over addresses; 0 = none under way */
    struct io_link link; /* link state, without `why` */
    char no_link[96];    /* last logged reason for no link; "" = link is up, or no reason logged */
    struct device_stats stats;
    uint32_t ifindex;    /* kernel interface that the port is on; 0 = none */
    unsigned mtu_before; /* path MTU to log when its pass has ended; 0 = none */
    int rx_fd;           /* the port's descriptor that the worker watches; -1 = none */
    bool rx_deaf;        /* rx_fd is no longer watched, because it stays readable without frames */
};

/* Octets of a frame besides IP, with room for a VLAN tag. */
#define DEVICE_HDR (WIRE_ETH_LEN + WIRE_VLAN_LEN)

/* Open the port and set everything up, before the worker runs. `conf` has to live as long; `seed`
 * is for drivers that draw random numbers. 0 and *out, or -errno and a sentence with a remedy in
 * err (CONFIG_ERR octets). */
int device_open(struct device **out, const struct config_device *conf, unsigned index,
                struct worker *worker, uint64_t seed, char *err);
/* The same for a program's device on a daemon's, after uplink_begin. The device owns b->io from
 * then on, also if this fails; *b has to live as long. */
int device_open_uplink(struct device **out, const struct config_device *conf, struct worker *worker,
                       struct uplink *b, char *err);
/* Open the next member of its team, on another worker. Called until the team has conf->workers
 * members. The rest as above. */
int device_open_member(struct device *first, struct worker *worker, char *err);
/* Close all members of the team, and the services of their QP1. The workers must have ended, with
 * no context open on them. */
void device_close(struct device *d);

/* The traffic class for a queue pair that asks for this one; 0 gives the device's (WIRE-13). */
uint8_t device_tclass(const struct device *d, uint8_t wanted);

/* The channel that is its port has grown to this many slots each way: larger windows. */
void device_share_window(struct device *d, uint32_t slots);

/* Every few ms: link state, the port's own upkeep, neighbours. */
void device_service(struct device *d, uint64_t now);

/* List some of the device's queue pairs, with engine_qp_walk. The number of looks is limited by the
 * budget of the job `list` (SHM-12). On the worker. */
uint32_t device_list(struct device *d, uint32_t at, bool (*fn)(void *arg, struct qp *qp),
                     void *arg);

#endif
