/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Records: accepted packets with copies still to be done.
 *
 * Validation runs ahead of memory: a packet is judged against a speculative frontier (the
 * responder's epsn, the requester's una), and its effect becomes a record at the tail of the FIFO
 * of its side of the queue pair. The head commits when its copies are done, so completions,
 * acknowledgements and answers keep the order of the packets however late a copy is. A failed copy
 * is always fatal for a reliable connection, so speculation is never undone: all later records are
 * discarded.
 *
 * One record holds one memory range; a packet that spans k ranges takes k records, of which only
 * the last has an action. Packets of one SEND or WRITE that come in one engine_rx and go to one
 * range share one, and so do answers to one READ. They commit together; a copy's token has its
 * packet's PSN, so if a copy fails, the packets before that one still commit (ACK-07). The pool
 * belongs to the engine and is bounded: with too few records left the packet is dropped before any
 * state changes (rx_copy_pending).
 */
#ifndef URNIC_RECORD_H
#define URNIC_RECORD_H

#include "engine.h"
#include "psn.h"

struct rx;

enum record_side { REC_RESP, REC_COMP };

struct record {
    struct record *next; /* FIFO, or free list */
    struct qp *qp;
    struct mem_ref hold; /* held while `held` */
    uint64_t orig;       /* atomics: value before, from engine_result; or the 8 octets to store */
    uint64_t token;      /* of its copies, without the PSN */
    int32_t status;      /* -errno of the copy that failed; of several, the one at `at` */
    uint16_t pending;    /* copies not reported yet */
    uint8_t side;
    uint8_t action; /* the side's own enum; 0 = none */
    bool stale;     /* made before a RESET or an error: commits nothing */
    bool held;
    bool se;
    psn_t psn; /* PSN of the packet, or of the last of several; requester: its commit answers the
                  requests up to here */
    psn_t at;  /* PSN of the packet, of the first of several, or of the failed one */
    uint32_t imm;
    uint32_t msn;
    uint32_t len;  /* message length, for the completion */
    uint64_t va;   /* message: place of the range in it; datagram: flags */
    uint32_t rkey; /* to invalidate */
    uint32_t arg;  /* free for the side; requester: place of the range in a READ */
} __attribute__((aligned(64)));

struct record_fifo {
    struct record *head, *tail;
};

#define RECORDS_MAX UINT16_MAX /* of all queue pairs: qp.nrecords counts them */

/* A token: the life of the pool entry, which one it is, the packet's PSN. Tokens of an earlier life
 * don't match. */
#define RECORD_INDEX_BITS 20
#define RECORD_PSN_SHIFT  RECORD_INDEX_BITS
#define RECORD_LIFE_SHIFT (RECORD_PSN_SHIFT + 24)

struct record_pool {
    struct record *all;
    struct record *free; /* used before and free now */
    uint32_t fresh;      /* all[fresh] and those after it have never been touched */
    uint32_t nfree;      /* all free records */
};

/* The next result of record_new. */
static inline const struct record *record_next(const struct record_pool *p)
{
    return p->free ? p->free : &p->all[p->fresh];
}

/* The record that a token names; NULL = none. */
static inline struct record *record_of(const struct record_pool *p, uint64_t token)
{
    uint32_t i = (uint32_t)token & ((1u << RECORD_INDEX_BITS) - 1);
    return i < p->fresh ? &p->all[i] : NULL;
}

/* Begin with `size` free records. 0, -EINVAL: too many, -ENOMEM. */
int record_pool_init(struct record_pool *p, uint32_t size);
/* None of them is in use any more. */
void record_pool_free(struct record_pool *p);

/* May qp take n more records for answers to its READs and ATOMICs, as their requester? It may not
 * hold more than it leaves to all others. Requests of the peer may take all records: for them the
 * caller checks nfree. */
bool record_room(const struct engine *e, const struct qp *qp, unsigned n);
/* Append a record to the FIFO of qp's side. The caller knows that one is free. */
struct record *record_new(struct engine *e, struct qp *qp, enum record_side side);
/* Hold the range of `ref` until the record commits. */
void record_hold(struct engine *e, struct record *r, const struct mem_ref *ref);
/* Add a copy to the record; room in the caller's array is certain while one frame makes at most
 * ENGINE_FRAME_COPIES. Returns it, so that atomics can fill in their operands. */
struct engine_copy *record_copy(struct rx *rx, struct record *r, enum engine_copy_kind kind,
                                const uint8_t *src, const struct mem_piece *dst);
/* All records that qp has now are stale: none of them commits. */
void record_discard(struct qp *qp);
/* One result: the record of its token, if it is done now and at the head: its side runs its records
 * (comp_run, resp_run). NULL: there is nothing to run; the token may be stale. */
struct record *record_result(struct engine *e, const struct engine_result *res);

/* ---- for a side that runs its records ---- */

/* Take the record at the head off the FIFO if its copies are done; NULL = none. */
static inline struct record *record_done(struct record_fifo *f)
{
    struct record *r = f->head;
    if (!r || r->pending)
        return NULL;
    f->head = r->next;
    return r;
}
/* Does this record, which is done, commit? */
bool record_live(struct engine *e, struct record *r);
/* Back to the pool. */
void record_release(struct engine *e, struct record *r);
/* Has a queue pair that lives no record left on this side? Frees a destroyed one after the last. */
bool record_idle(struct engine *e, struct qp *qp, enum record_side side);

#endif
