/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A port of a node: queues per priority, a transmitter with a rate, and the wire with its delay to
 * the peer port. Strict priority, 7 first; pause frames before all. Paused priorities wait (IEEE
 * 802.1Qbb).
 */
#ifndef URNIC_SIM_PORT_H
#define URNIC_SIM_PORT_H

#include "sim_world.h"

#define SIM_PRIOS     8u
#define SIM_PRIO_PFC  8u /* the queue of pause frames */
#define SIM_PAUSE_MAX 0xFFFFu
#define SIM_PAUSE_LEN 60u

struct sim_port_stats {
    uint64_t drops;   /* frames dropped for want of buffer, counted at their port of departure */
    uint64_t faults;  /* lost on the wire to this port, by a rule */
    uint64_t marks;   /* CE set */
    uint64_t pauses;  /* XOFF frames sent out of this port */
    uint64_t held_ns; /* time for which a peer paused some priority of this port */
};

struct sim_queue {
    struct sim_fifo fifo;
    uint64_t bytes;
};

/* Laid out by cache lines, which are the cost of a hop in a network of many ports. An arrival reads
 * the first line of the sender's port and the second of the receiver's. A frame that finds the
 * transmitter free reads these two lines of its port of departure. Any other frame reads the line
 * of the queue and the third line as well. */
struct sim_port {
    _Alignas(64) struct sim_event rx; /* arrival of the first frame on the wire, the hint */
    struct sim_pkt *wire_tail;        /* the last frame sent */
    struct sim_port *peer;

    struct sim_node *node;
    uint64_t octet_ps;  /* time of an octet; 0 = not a whole number: from `rate` then */
    uint64_t delay;     /* ns */
    uint64_t queued;    /* octets in all queues */
    uint64_t queue_max; /* the largest `queued` */
    uint64_t tx_packets;
    uint64_t busy_ps; /* time at which the transmitter is free */
    uint16_t backlog; /* bit per queue that isn't empty */
    uint8_t paused;   /* bit per priority */
    bool tx_set;      /* `tx` is scheduled */
    uint16_t index;   /* in its node */
    uint16_t id;      /* in the world */

    struct sim_event tx; /* the transmitter is free */
    uint64_t rate;       /* bit/s */

    _Alignas(64) struct sim_queue q[SIM_PRIOS + 1];
    struct sim_port_stats stats;
    struct sim_event resume;
    uint64_t paused_until[SIM_PRIOS], paused_at;
};
_Static_assert(offsetof(struct sim_port, node) == 64 && offsetof(struct sim_port, tx) == 128 &&
                   offsetof(struct sim_port, q) == 192,
               "cache lines");

struct sim_node_ops {
    /* A frame has arrived; the node owns it now. */
    void (*rx)(struct sim_node *n, struct sim_port *in, struct sim_pkt *p, uint64_t now);
    /* It has left a queue of the node and goes onto the wire. May be NULL. */
    void (*sent)(struct sim_node *n, struct sim_port *out, struct sim_pkt *p, uint64_t now);
    /* The transmitter is free: send more, if there is more. May be NULL. */
    void (*idle)(struct sim_node *n, struct sim_port *out, uint64_t now);
    /* Its turn will come soon: prefetch the data that the turn reads besides its events, in steps.
     * Step 0 is the node itself, step SIM_NEAR_STEPS - 1 runs during the previous turn. Changes
     * nothing. */
    void (*near)(const struct sim_node *n, unsigned step);
};

struct sim_node {
    const struct sim_node_ops *ops;
    struct sim_world *w;
    struct sim_port **port;
    const char *name; /* "host3", "switch0" */
    uint16_t id, nports;
    bool watched, is_host;
    struct sim_agenda agenda;
};

/* Connect two ports by a cable; their nodes are set, with their ops. rate in bit/s, delay in ns. */
void sim_port_connect(struct sim_port *a, struct sim_port *b, uint64_t rate, uint64_t delay);
/* The least time in ns until an action of the port's node can reach its peer; at least 1. */
uint64_t sim_port_lookahead(const struct sim_port *port);
/* Queue a frame; its prio and len are set. */
void sim_port_send(struct sim_port *port, struct sim_pkt *p, uint64_t now);
/* A frame that a fault held back is at the end of the wire now. */
void sim_port_arrive(struct sim_port *to, struct sim_pkt *p, uint64_t now);
/* A frame is lost on the wire to this port. */
void sim_port_lose(struct sim_port *to, struct sim_pkt *p, uint64_t now);
/* Ask for ops->idle when the transmitter is free. */
void sim_port_want(struct sim_port *port, uint64_t now);
/* Send a pause frame for the priorities in `mask`: `quanta` of 512 bit times, 0 = go on. */
void sim_port_pause(struct sim_port *port, unsigned mask, unsigned quanta, uint64_t now);
/* ns that a pause of the longest time lasts at this port's rate. */
uint64_t sim_port_pause_ns(const struct sim_port *port, unsigned quanta);
/* Drop a frame for want of buffer at `port`. */
void sim_port_drop(struct sim_port *port, struct sim_pkt *p, const char *why, uint64_t now);

#endif
