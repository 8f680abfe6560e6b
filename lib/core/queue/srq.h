/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Receive work requests: private copies in a pool, posted in a FIFO, taken by the message that
 * needs one, given back when it completes. The same for a queue pair's own queue and for a shared
 * one. Rules: SRQ, RSP-09, RNR-01, QP-12.
 */
#ifndef URNIC_SRQ_H
#define URNIC_SRQ_H

#include "engine.h"

struct rwqe {
    struct rwqe *next; /* posted, taken or free list */
    uint64_t wr_id;
    uint64_t room;   /* octets of all SGEs */
    struct srq *srq; /* XRC, taken: its queue */
    uint8_t nsge;
    bool malformed; /* more SGEs than allowed: completes with LOC_QP_OP_ERR when used (RSP-13) */
    struct engine_sge sge[];
};

struct rq_chunk; /* memory of some work requests */

struct rq {
    struct rwqe *head, **tail; /* posted, not taken */
    struct rwqe *free;
    struct rq_chunk *chunks;
    uint32_t depth;  /* granted */
    uint32_t nfree;  /* work requests that may be posted now */
    uint32_t posted; /* work requests that may be taken now */
    uint8_t max_sge;
};

/* An empty queue for `depth` work requests of at most max_sge SGEs. 0, -ENOMEM. */
int rq_init(struct rq *q, uint32_t depth, uint32_t max_sge);
/* Frees the work requests too, wherever they are. */
void rq_destroy(struct rq *q);
/* The oldest posted one: the caller's until rq_give. NULL = none posted. */
struct rwqe *rq_take(struct rq *q);
void rq_give(struct rq *q, struct rwqe *w);

struct srq {
    struct rq rq;
    void *arg;
    uint32_t pd;
    uint32_t limit;            /* 0 = not armed (SRQ-03) */
    uint32_t users;            /* queue pairs */
    bool error;                /* SRQ-07: no more work is taken from it */
    uint32_t number;           /* XRC-02; 0 = none */
    uint32_t xrcd;             /* XRC domain */
    struct cq *cq;             /* XRC: CQ of its receives; NULL = the queue pair's */
    struct srq *next, **pprev; /* all of the engine */
};

struct qp;
struct record;

/* The next receive work request for a message on qp, at the end of resp.taken; NULL = none. */
struct rwqe *resp_take(struct engine *e, struct qp *qp);
/* XRC-02: the shared receive queue that a packet for qp names, NULL = there is none in the domain
 * of the queue pair. */
struct srq *srq_named(struct engine *e, const struct qp *qp, uint32_t number);
/* The oldest taken one is done: completes with *wc (wr_id is filled in). False: no room, see
 * cq_push. */
bool resp_complete(struct engine *e, struct qp *qp, struct engine_wc *wc);
/* The receives in qp's own receive queue that the MSN doesn't count yet: those that are posted, and
 * those that a message under way has taken (ACK-12). */
uint32_t resp_receives(const struct qp *qp);
/* The protection domain of receive buffers (SRQ-02). */
uint32_t resp_recv_pd(const struct qp *qp);
/* The protection domain of R_Keys: the queue pair's; of XRC that of the queue that the packet names
 * (XRC-02). */
uint32_t resp_pd(const struct qp *qp);
/* Give all taken receives back, without completions. */
void resp_drop_taken(struct qp *qp);
/* See engine_post_recv. */
int resp_post(struct engine *e, struct qp *qp, const struct engine_recv_wr *wr);
/* Flush the receive queue in order (QP-12); with an SRQ raise LAST_WQE_REACHED (SRQ-06). */
void resp_flush(struct engine *e, struct qp *qp);
/* Receives taken from an SRQ complete with flush, because the owner counts free places. */
void resp_return(struct engine *e, struct qp *qp);

#endif
