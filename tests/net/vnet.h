/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A small world on virtual time: hosts, each one engine on one port, joined by an emulated link.
 *
 * vnet_run does the work of the daemon's worker for one host after the other: it receives, copies,
 * reports the copies to the engine, and sends. When no host has work, it moves the clock to the
 * next deadline. The same calls with the same seeds have exactly the same effects.
 *
 * Memory belongs to the test: vnet_reg registers a buffer under its real address. A test's
 * callbacks (struct vnet_copier) can delay copies or make them fail, as another thread or a dying
 * client does.
 */
#ifndef URNIC_TESTS_VNET_H
#define URNIC_TESTS_VNET_H

#include "engine.h"
#include "io.h"
#include "mem_link.h"

#define VNET_HOSTS 8u

struct vnet;
struct vnet_host;

/* Callbacks that decide about copies. Any function may be NULL: done at once. */
struct vnet_copier {
    void *ctx;
    /* When is this copy done? 0 = now, > 0 = ns later (later copies of its queue pair wait for it),
     * < 0 = it fails with that -errno. */
    int64_t (*place)(void *ctx, const struct engine_copy *copy, uint64_t now);
    /* May this slot's payload be gathered? 0 or -errno. */
    int (*gather)(void *ctx, const struct engine_slot *slot, uint64_t now);
};

/* Called for each frame that a host hands to its port, or takes from it, in this order. NULL:
 * none. */
struct vnet_tap {
    void *ctx;
    void (*frame)(void *ctx, bool sent, const uint8_t *frame, uint32_t len, uint64_t now);
};

/* A host's service besides its engine: its connection manager. `run` NULL = none. */
struct vnet_service {
    void *ctx;
    /* A datagram for QP1, from inside of engine_rx. */
    void (*gsi_rx)(void *ctx, const struct wire_pkt *pkt, const uint8_t *mad, uint32_t len);
    /* Called once in each turn of the host: do the due work. True if there was any. */
    bool (*run)(void *ctx, uint64_t now);
    /* Fill a slot with a datagram (engine_gsi_emit); false: no datagram is waiting. */
    bool (*tx)(void *ctx, struct engine_slot *slot);
    uint64_t (*deadline)(void *ctx);
};

struct vnet_wc { /* a completion and when it came */
    struct engine_wc wc;
    void *cq_arg;
    uint64_t time;
};

struct vnet_event {
    enum ib_event event;
    void *obj_arg;
    uint64_t time;
};

struct vnet_host {
    struct vnet *net;
    unsigned index;
    struct io_port *port;
    struct engine *engine;
    struct mem *mem; /* the engine's */
    struct wire_addr addr4, addr6;
    uint32_t pd;
    struct cq *cq; /* one for everything, unless the test makes more */
    struct vnet_copier copier;
    struct vnet_tap tap;
    struct vnet_service service;
    /* logs; the test may look at any time, and take entries away by resetting the count */
    struct vnet_wc *wcs;
    size_t wcs_n, wcs_cap;
    struct vnet_event events[256];
    size_t events_n;
    size_t cq_room; /* completions that may still be pushed; SIZE_MAX = no limit */
};

struct vnet {
    uint64_t now;
    unsigned hosts_n;
    struct vnet_host *hosts[VNET_HOSTS];
    struct mem_link *link;
    uint64_t steps; /* times that a host had something to do */
    char why[256];  /* the reason for a failure of vnet_run */
};

/* `keys`: keys of a mem: specification, starting with a comma, or "". seed: for the engines' keys
 * and the link's dice. Returns NULL after printing the reason. */
struct vnet *vnet_new(unsigned hosts, const char *keys, uint64_t seed);
void vnet_free(struct vnet *net);

/* Run until done(ctx) is true. Returns 0; -ETIMEDOUT when the clock would pass `until`; -EDEADLK
 * when no further event is possible; -ELOOP when a deadline is not in the future and has no effect.
 * done == NULL: run until all work is done (0) or `until` (-ETIMEDOUT). */
int vnet_run(struct vnet *net, bool (*done)(void *ctx), void *ctx, uint64_t until);
/* Run for `ns`. Returns 0 or -ELOOP. */
int vnet_run_for(struct vnet *net, uint64_t ns);

/* Register [base, base + len) of the test's memory. Returns 0 or -errno. */
int vnet_reg(struct vnet_host *host, void *base, uint64_t len, unsigned access, uint32_t *lkey,
             uint32_t *rkey);
/* The segment that describes [base, base + len): for mem_mr_reg and mem_fr_reg. */
struct mem_seg vnet_seg(const void *base, uint64_t len);

/* How vnet_connect makes queue pairs; zero = the value in parentheses. */
struct vnet_qp_params {
    unsigned mtu; /* octets (1024) */
    bool ipv6;
    uint8_t timeout;       /* code (10: 4.2 ms) */
    uint8_t retry_cnt;     /* (7) */
    uint8_t rnr_retry;     /* (7: for ever) */
    uint8_t min_rnr_timer; /* code (1: 10 us) */
    uint8_t rd_atomic;     /* outstanding READs and atomics (16) */
    uint32_t sq_psn[2];    /* initial PSN of either side */
    uint32_t wrs;          /* of each queue (256) */
    bool credits;          /* end-to-end credits (none) */
    enum qp_type type;     /* (QP_RC) */
    uint8_t recovery[2];   /* enum engine_recovery of either side (go-back-N) */
};
/* A connected pair of queue pairs between hosts a and b, in RTS, all remote rights on. */
int vnet_connect(struct vnet_host *a, struct vnet_host *b, const struct vnet_qp_params *p,
                 struct qp **qa, struct qp **qb);

#endif
