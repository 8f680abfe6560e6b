/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A host: one port and one engine of lib/core, the object code that the daemon runs. Memory is a
 * function of its address, the same on every host, so that what a WRITE places can be checked
 * without storing it.
 */
#ifndef URNIC_SIM_HOST_H
#define URNIC_SIM_HOST_H

#include "engine.h"
#include "sim_port.h"

struct sim_host;

/* What runs on the host; called outside of the engine, so that it may post. */
struct sim_app_ops {
    void (*completed)(struct sim_host *h, const struct engine_wc *wc, uint64_t now);
    /* Octets were placed at an address: goodput. Called inside the engine's step: only counts. */
    void (*placed)(struct sim_host *h, uint64_t va, uint32_t len, uint64_t now);
};

struct sim_host_params {
    unsigned mtu;    /* octets */
    uint32_t window; /* packets in flight per queue pair */
    uint8_t timeout; /* of queue pairs: 4.096 us * 2^t */
    uint8_t retries; /* 0..7 */
    uint8_t dscp;
    struct cc_conf cc;
};

/* Laid out by cache lines: the first is what an event finds fetched. */
struct sim_host {
    struct sim_node node; /* first */
    struct engine *e;
    const struct qp *last[2]; /* connected last: as the receiver, as the sender */

    struct sim_event timer;
    struct sim_port *port;
    uint32_t ndone; /* completions to be handed out */
    bool stepping;

    struct engine_wc *done;
    uint32_t done_cap;
    const struct sim_app_ops *app;
    void *app_arg;
    struct cq *cq;
    uint32_t pd, lkey, rkey;
    struct wire_addr addr;
    uint8_t mac[6];
    uint64_t bad_octets; /* placed, and not what was sent */
    uint64_t bad_icrc;   /* frames dropped that a fault had damaged, with payload skipped */
    struct sim_host_params p;
} __attribute__((aligned(64)));
_Static_assert(offsetof(struct sim_host, timer) == 64 && offsetof(struct sim_host, done) == 128,
               "cache lines");

/* After its port is connected. 0, -ENOMEM, or what the engine said. */
int sim_host_init(struct sim_host *h, struct sim_world *w, uint32_t number, uint32_t max_qp,
                  const struct sim_host_params *p);
void sim_host_free(struct sim_host *h);

struct sim_connect {
    void *a_arg, *b_arg; /* come back as wc.qp_arg */
    uint32_t send_depth; /* work requests of a */
    uint32_t recv_depth; /* of b */
    uint32_t max_rd;     /* READs outstanding, 0 = none */
};
/* Connect a to b by a pair of RC queue pairs. */
int sim_host_connect(struct sim_host *a, struct sim_host *b, const struct sim_connect *c,
                     struct qp **qa, struct qp **qb, uint64_t now);
/* Destroy one of them. */
void sim_host_disconnect(struct sim_host *h, struct qp *qp);
/* After posting, or destroying: send what there is, arm the timer. */
void sim_host_kick(struct sim_host *h, uint64_t now);

extern const struct sim_node_ops sim_host_ops;

#endif
