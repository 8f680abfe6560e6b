/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The engine's internals, shared by its parts.
 */
#ifndef URNIC_ENGINE_PRIV_H
#define URNIC_ENGINE_PRIV_H

#include "engine.h"
#include "invariant.h"
#include "mem.h"
#include "qp.h"
#include "qpn.h"
#include "record.h"
#include "timer.h"
#include "wire.h"

#define ENGINE_ADDRS    64u
#define ENGINE_QUANTUM  16u   /* packets that one queue pair sends before the next one's turn */
#define ENGINE_RECORDS  4096u /* default number of packets with copies pending */
#define ENGINE_RD_MAX   128u  /* max_rd_atomic, max_dest_rd_atomic (QP-03) */
#define ENGINE_TIME_MAX (1ull << 63)

struct ud_group; /* mcast.c */

/* Queue pairs that follow a change of their device (follow.c). */
struct engine_follow {
    bool on;
    uint32_t at;         /* where the pass is */
    unsigned larger;     /* queue pairs with a larger path MTU, in this pass so far */
    unsigned larger_all; /* the same, in the last pass that has ended */
    uint64_t looks;      /* slots that all passes have looked at */
    uint8_t old_mac[6];
};

struct engine {
    /* Read for every packet: two cache lines, and the first ones of wheel, counters and p. A
     * simulation has a thousand engines, and each packet finds its own out of cache. */
    uint64_t now;        /* of the call under way */
    struct qp **table;   /* by slot */
    uint32_t table_size; /* entries that may be used so far */
    uint32_t naddrs;
    struct qpn_map qpns;
    uint32_t nsr;            /* queue pairs that may do selective repeat */
    struct wire_addr recent; /* one of addr[], if there are any: the last one received for */

    struct mem *mem;
    struct record_pool records;
    struct qp *active, **active_tail;
    struct cnp_state *cnp;
    uint32_t cnps;         /* that wait in it */
    uint32_t quantum_left; /* of the queue pair at the head of `active` */

    struct timer_wheel wheel;
    uint64_t counters[ENGINE_COUNTER_MAX];
    struct qp *tx_qp[ENGINE_BURST]; /* of the slots between engine_tx and engine_sent */
    struct engine_params p __attribute__((aligned(64)));

    uint32_t nqps, nlinger;
    struct qpn_map block[ENGINE_BLOCKS]; /* of a program: a slot for each number of each block */
    uint32_t nblocks;                    /* 0 = numbers by qpns */
    uint64_t *freed_at;  /* with blocks: the time when each slot was last given back */
    bool wants_block;    /* the next number would have rested too short a time */
    uint32_t *life;      /* of each slot */
    uint32_t fresh;      /* slots from here on were never used */
    uint32_t *free_fifo; /* free ones before them, reused oldest first: a ring of all slots */
    uint32_t free_head;  /* the oldest */
    uint32_t nfree;
    struct qp *linger; /* destroyed, records pending */
    struct qp *gsi;    /* queue pair 1, if created */
    struct wire_addr addr[ENGINE_ADDRS];
    struct cq *cqs;
    struct srq *srqs;
    struct guess *guess;
    struct limiter_confs *cc_confs; /* all in use */
    struct limiter_conf *cc_conf;   /* the device's */
    struct engine_follow follow;
    uint64_t qp_looks; /* slots that engine_qp_walk has looked at */
    uint32_t ncqs, nsrqs;
    struct srq **xrc_srqs; /* XRC-02: by number; xrc_size places, a power of two or 0 */
    uint32_t xrc_size, nxrc_srqs;
    uint32_t xrc_last; /* the number that was given last */
    struct ud_group *groups;
    uint32_t gsi_psn;
    struct invariants *invariants; /* invariant.c; NULL: this build doesn't check them */
} __attribute__((aligned(64)));
_Static_assert(offsetof(struct engine, wheel) == 128, "what every packet reads");

/* Time as a phase begins. Deadlines are sums of it and of spans far below 2^63: they never wrap. */
static inline uint64_t engine_clock(struct engine *e, uint64_t now)
{
    e->now = now < ENGINE_TIME_MAX ? now : ENGINE_TIME_MAX;
    return e->now;
}

static inline void engine_count(struct engine *e, enum engine_counter c)
{
    e->counters[c]++;
}

static inline void engine_event(struct engine *e, enum ib_event ev, void *obj)
{
    if (e->p.hooks.event)
        e->p.hooks.event(e->p.hook_arg, ev, obj);
}

/* Release a hold on a region. Reports the region as free after the last one. */
static inline void engine_mem_drop(struct engine *e, const struct mem_ref *ref)
{
    void *owner = mem_drop(e->mem, ref);
    if (owner && e->p.hooks.mr_freed)
        e->p.hooks.mr_freed(e->p.hook_arg, owner);
}

/* The P_Key of a table index; 0 = empty. */
static inline uint16_t engine_pkey(const struct engine *e, unsigned index)
{
    return index < ENGINE_PKEYS ? e->p.pkeys[index] : 0;
}

#endif
