/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A switch with a shared buffer: forwards by destination host, marks CE by the length of the queue
 * that a frame joins (CC-02), pauses the ports that fill its buffer (PFC), drops frames that do not
 * fit.
 *
 * Buffer: octets are accounted to the port and priority by which they came in. A lossless priority
 * that holds more than its threshold pauses the sender there; frames already on their way go into
 * the head-room of that port and priority. Departing frames free head-room first, whichever frames
 * took it; when none is in use the threshold counts again. Without PFC a frame is dropped when its
 * output queue is longer than the threshold, or the buffer is full.
 */
#ifndef URNIC_SIM_SWITCH_H
#define URNIC_SIM_SWITCH_H

#include "sim_port.h"

enum sim_balance { SIM_ECMP, SIM_SPRAY };

struct sim_switch_params {
    uint64_t buffer;      /* octets */
    uint64_t headroom;    /* per port and lossless priority; 0 = from rate and delay */
    uint64_t xoff;        /* octets of a port and priority; 0 = alpha * free octets */
    uint64_t xon_gap;     /* octets below the threshold at which to resume */
    uint64_t queue_limit; /* lossy: longest output queue; 0 = alpha * free octets */
    double alpha;
    uint64_t kmin, kmax; /* octets; kmax 0 = no marking */
    double pmax;
    bool pfc;
    uint8_t lossless; /* bit per priority */
    enum sim_balance balance;
};

/* The route to a host's switch: a set of output ports with paths of equal length. */
struct sim_route {
    uint16_t first, n; /* in `ports` of the table */
};

/* The switch and the switch port of each host. All switches share these tables, so that they stay
 * in the near caches however many hosts there are. */
struct sim_homes {
    uint16_t *leaf, *port; /* by host */
    uint32_t nhosts;
};

struct sim_routes {
    const struct sim_homes *homes;
    struct sim_route *set; /* by switch */
    struct sim_port **ports;
    uint32_t nports;
    uint16_t self; /* the switch with these routes */
};

struct sim_account { /* octets of a port and priority, as input */
    uint64_t shared, room;
};

struct sim_switch {
    struct sim_node node; /* first */
    struct sim_switch_params p;
    struct sim_routes routes;
    struct sim_rng rng;
    uint64_t capacity;                 /* shared octets */
    uint64_t used;                     /* used octets */
    struct sim_account *in[SIM_PRIOS]; /* by port */
    uint8_t *xoff;                     /* per port: priorities that we have paused */
    uint64_t *headroom;
    struct sim_event refresh; /* repeats pauses in time, because they expire */
    uint64_t used_max, lost_headroom;
};

/* The port towards a host. Of several shortest ways it takes the one that `flow` hashes to, or with
 * `rng` a random one. NULL = no way. */
struct sim_port *sim_switch_route(const struct sim_switch *s, uint32_t host, uint32_t flow,
                                  struct sim_rng *rng);
/* Octets that a switch keeps, for all lossless priorities, for frames that arrive on a port of that
 * rate (bit/s) and delay (ns) until a pause takes effect. */
uint64_t sim_switch_headroom(const struct sim_switch_params *p, uint64_t rate, uint64_t delay);
/* After its ports are connected and its routes filled in. Returns 0 or -ENOMEM, -EINVAL (the
 * head-room alone is larger than the buffer). */
int sim_switch_init(struct sim_switch *s, struct sim_world *w, const struct sim_switch_params *p);
void sim_switch_free(struct sim_switch *s);
extern const struct sim_node_ops sim_switch_ops;

#endif
