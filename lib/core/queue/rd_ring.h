/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The READ/ATOMIC resource ring (RD-03): every operation that the peer may still ask for again.
 *
 *            tail - live              tx                 ready               tail
 *     ...    | answered: may be       | being answered   | accepted, but     |
 *            | asked for again        |                  | copies pending    |
 */
#ifndef URNIC_RD_RING_H
#define URNIC_RD_RING_H

#include "qp.h"
#include "refusal.h"

#define RD_MORE 2u /* parts asked for again while another one is sent (LR-08) */

/* A part of a READ that is being sent, in packets of the READ. */
struct rd_part {
    uint32_t first; /* where this (re)execution began */
    uint32_t next;
    uint32_t end;
    uint32_t octets; /* where it ends, in octets of the READ */
};

struct rd_res {
    uint64_t va;
    uint32_t len; /* octets */
    uint32_t rkey;
    psn_t psn;
    uint32_t npsn;
    uint64_t orig;                /* ATOMIC: the value before */
    struct mem_ref ref;           /* READ: the checked range */
    uint64_t ref_off;             /* where that range begins within the READ */
    struct rd_part tx;            /* the part being sent */
    struct rd_part more[RD_MORE]; /* parts to send after `tx`, the last one first */
    uint32_t nmore;
    uint64_t window_at; /* SEC-16 */
    uint32_t window_epoch;
    uint32_t asked; /* latest first packet of a replay */
    uint8_t window_replays;
    uint8_t opcode; /* of the request */
    bool replay;    /* answered before, and being answered again */
};

struct rd_ring {
    uint32_t mask;       /* entries - 1 */
    uint32_t tx;         /* next to be answered; indices are free running */
    uint32_t ready;      /* executed up to here */
    uint32_t tail;       /* accepted up to here */
    uint32_t live;       /* valid entries before tail */
    uint32_t replays;    /* entries with `replay` */
    psn_t dropped;       /* latest packet dropped because one before it is missing */
    uint64_t dropped_at; /* rx_packets at that drop, less the PSNs of READs since */
    uint32_t dup_tokens; /* SEC-15: remaining answers to duplicates */
    uint64_t dup_at;     /* time of the last refill of dup_tokens */
    uint32_t dup_epoch;  /* SEC-16: number of times that the peer's retries made progress */
    uint64_t dup_last;   /* place of the last duplicate: index << 32 | packet */
    uint64_t dup_first;  /* latest place at which a round of retries began */
    struct rd_res res[];
};

/* Make the ring for an RC queue pair that enters RTR. 0, -ENOMEM. */
int rd_start(struct qp *qp, uint64_t now);
/* Grow the ring for this limit, keeping its entries (QP-01: SQD -> SQD). 0, -ENOMEM. */
int rd_grow(struct qp *qp, uint32_t max_dest_rd_atomic);
void rd_free(struct qp *qp);
/* Is there room for one more operation, when `times` max_dest_rd_atomic may wait (RD-03)? */
bool rd_room(const struct qp *qp, unsigned times);
/* Accept the READ or ATOMIC in rx; the caller has checked room. */
void rd_accept(struct rx *rx, struct qp *qp, const struct mem_ref *ref, uint32_t npsn);
/* The oldest accepted entry has been executed: it may be answered. */
void rd_execute(struct qp *qp, uint64_t orig);
/* A READ or ATOMIC before epsn (RD-09, RD-11, ATM-08). Not REFUSE_NONE: refuse it. */
enum refusal rd_duplicate(struct rx *rx, struct qp *qp);
/* The peer has invalidated a key, so it has the data of its READs with that key. Duplicates of
 * these READs that are still on their way get no answer, and don't end the queue pair (RD-09). */
void rd_invalidated(struct qp *qp, uint32_t rkey);
/* Forget the operations that have not been answered. */
void rd_abandon(struct qp *qp);
/* Would an answer for PSN p overtake one of the ring (ACK-05)? */
bool rd_blocks(const struct qp *qp, psn_t p);
/* May one more duplicate be answered (SEC-15)? */
bool rd_dup_token(struct qp *qp, uint64_t now);

/* Record the drop of a packet after the expected one. */
void rd_dropped(struct qp *qp, psn_t p);
/* Is a dropped packet still missing? */
bool rd_misses_dropped(const struct qp *qp);

static inline struct rd_res *rd_entry(struct rd_ring *ring, uint32_t index)
{
    return &ring->res[index & ring->mask];
}

/* End the replay of this answer. */
static inline void rd_stop_replay(struct rd_ring *ring, struct rd_res *res)
{
    ring->replays -= res->replay;
    res->replay = false;
    res->nmore = 0;
}

#endif
