/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A host: one port and one engine of lib/core, the object code that the daemon runs. Memory is a
 * function of its address, the same on every host, so that the octets of a WRITE can be checked
 * without storing them.
 */
#ifndef URNIC_SIM_HOST_H
#define URNIC_SIM_HOST_H

#include "engine.h"
#include "sim_port.h"

struct sim_host;

/* The host's traffic; called outside of the engine, so that it may post. */
struct sim_app_ops {
    void (*completed)(struct sim_host *h, const struct engine_wc *wc, uint64_t now);
    /* Octets were placed at an address: goodput. Called inside the engine's step: only counts. */
    void (*placed)(struct sim_host *h, uint64_t va, uint32_t len, uint64_t now);
};

/* The agreement of two ends on selective repeat: by hellos within the connection, or before it. */
enum sim_sr { SIM_SR_HELLO, SIM_SR_AGREED };

struct sim_host_params {
    unsigned mtu;    /* octets */
    uint32_t window; /* packets in flight per queue pair */
    uint8_t timeout; /* of queue pairs: 4.096 us * 2^t */
    uint8_t retries; /* 0..7 */
    uint8_t dscp;
    enum sim_sr sr;
    struct cc_conf cc;
};

struct sim_host {
    struct sim_node node; /* first */
    struct engine *e;
    struct sim_port *port;
    const struct qp *last[2]; /* connected last */
    struct sim_event timer;
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
    uint64_t bad_octets; /* placed octets that differ from those sent */
    uint64_t bad_icrc;   /* frames dropped that a fault had damaged, with payload skipped */
    struct sim_host_params p;
} __attribute__((aligned(64)));

/* After its port is connected. 0, -ENOMEM, or the engine's error. */
int sim_host_init(struct sim_host *h, struct sim_world *w, uint32_t number, uint32_t max_qp,
                  const struct sim_host_params *p);
void sim_host_free(struct sim_host *h);

/* Make a queue pair for these numbers of work requests at a time; `arg` comes back as wc.qp_arg.
 * cc: its congestion control, NULL = the host's. Returns NULL: no room. */
struct qp *sim_host_open(struct sim_host *h, void *arg, const struct cc_conf *cc,
                         uint32_t send_depth, uint32_t recv_depth, uint64_t now);
/* Connect it to queue pair `number` of another host. 0, or the engine's error. */
int sim_host_join(struct sim_host *h, struct qp *qp, const struct sim_host *peer, uint32_t number,
                  uint32_t sq_psn, uint32_t rq_psn, uint64_t now);
void sim_host_close(struct sim_host *h, struct qp *qp);
/* After posting, or destroying: send pending frames, arm the timer. */
void sim_host_kick(struct sim_host *h, uint64_t now);

extern const struct sim_node_ops sim_host_ops;

#endif
