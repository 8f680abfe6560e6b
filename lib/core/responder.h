/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The receiving half of a connected queue pair: requests in, effects, acknowledgements and READ
 * responses out.
 *
 *     responder.c    RC: the order of checks (RSP-01), what each request will do
 *     resp_commit.c  what it does, when its turn has come
 *     refusal.c      why a request is refused, and what that costs (appendix B)
 *     resp_uc.c      UC (UC-03..UC-08)
 *     place.c        payload to receive buffers and to WRITE targets
 *     rd_ring.c      the READ/ATOMIC resource ring, and duplicates (RD, ATM)
 *     resp_tx.c      all that is sent, in its order (RD, ACK)
 *     resp_life.c    begin and end
 *     srq.c          receive work requests, own and shared
 *
 * Validation runs ahead (epsn, msn, in_msg); what has been executed follows (done_epsn, done_msn,
 * ack_psn) as records commit. Only what has been executed is ever acknowledged.
 */
#ifndef URNIC_RESPONDER_H
#define URNIC_RESPONDER_H

#include "engine.h"
#include "psn.h"
#include "record.h"
#include "refusal.h"
#include "srq.h"

struct rd_ring; /* rd_ring.h */

enum resp_msg { MSG_NONE, MSG_SEND, MSG_WRITE };

/* How far a fatal NAK is (RSP-22). Nothing is accepted from DECIDED on (RSP-05). */
enum resp_fatal { FATAL_NOT, FATAL_DECIDED, FATAL_OWED, FATAL_SENT };

struct resp {
    /* speculative: what validation has accepted */
    psn_t epsn;
    uint32_t msg_off;    /* octets of the message under way so far */
    uint32_t msg_len;    /* WRITE: RETH length */
    uint8_t in_msg;      /* enum resp_msg: of the message under way */
    uint8_t quiet;       /* ACK-08, RNR-02: NAKed; silent until epsn arrives */
    uint8_t fatal;       /* enum resp_fatal */
    struct rwqe *wqe;    /* receive work request of the message under way, last of `taken` */
    struct mem_ref wref; /* WRITE: the checked range */

    /* committed: what has been executed */
    psn_t done_epsn; /* epsn of what has committed */
    psn_t ack_psn;   /* ACK-05: last SEND or WRITE packet executed */
    uint32_t done_msn;
    psn_t nak_psn;
    uint8_t ack_owed; /* an ACK is to be sent by the next resp_tx */
    uint8_t nak_owed; /* a syndrome to be sent, 0 = none */
    uint8_t comm_est; /* RSP-26 raised already */
    uint8_t flushed;  /* in ERR: the receive queue has been flushed; later posts flush at once */
    int8_t fatal_ev;  /* event that the fatal NAK ends in, < 0 = none */
    uint8_t credits;  /* credit code of the last ACK (ACK-16) */
    uint8_t reads;    /* `rd` may have something to answer: otherwise sending leaves it alone */

    struct record_fifo recs;

    /* receive work requests: own queue (NULL with an SRQ), and those of messages that have not
     * completed yet, in the order of the messages */
    struct rq *rq;
    struct rwqe *taken, **taken_tail;
    uint32_t rq_head, rq_tail; /* completed, posted: free running */

    struct rd_ring *rd; /* READ and ATOMIC resources (RD-03): RC from RTR on */
};

/* resp_life.c */
/* The receive queue of a new queue pair, or a share of its SRQ; what is granted is put into *p.
 * 0, -EINVAL, -ENOMEM. */
int resp_init(struct qp *qp, struct engine_qp_params *p);
void resp_free(struct qp *qp);
/* To RESET: forget everything. */
void resp_reset(struct qp *qp);
/* To RTR. */
void resp_start(struct qp *qp, psn_t rq_psn);
/* Entering ERR: keep an owed ACK when the consumer did it (QP-11), drop READ responses. */
void resp_error(struct qp *qp, bool by_consumer);

/* responder.c */
/* A request of a connected queue pair (RC, UC) that passed VAL-01 steps 1..8. */
void resp_rx(struct rx *rx, struct qp *qp);
/* A packet is missing: say so (ACK-08). */
void resp_nak_gap(struct engine *e, struct qp *qp);
/* ... that is the expected one (RSP-01). */
void resp_expected(struct rx *rx, struct qp *qp);

/* resp_commit.c */
/* A record of side REC_RESP is done (r->status says how). Never called for stale records. */
void resp_commit(struct engine *e, struct qp *qp, struct record *r, uint64_t now);
/* A fatal NAK is owed from now on; completes the receive work request in use when `wqe` says that
 * the failed message has one. */
void resp_fail(struct engine *e, struct qp *qp, enum refusal why, psn_t p, bool wqe, uint64_t now);
/* An ACK is owed from now on; a NAK of p is. */
void resp_owe_ack(struct engine *e, struct qp *qp);
void resp_owe_nak(struct engine *e, struct qp *qp, uint8_t syndrome, psn_t p);

/* resp_tx.c */
/* Is there an answer to send: ACK or NAK owed, READ responses, atomic results? */
bool resp_tx_ready(const struct qp *qp);
/* ... and is it an ACK and no more? */
bool resp_tx_only_ack(const struct qp *qp);
/* Fill up to n slots; slot->kind = SLOT_RESP or SLOT_READ. In ERR only what was owed at the
 * transition (QP-11). */
unsigned resp_tx(struct engine *e, struct qp *qp, struct engine_slot *slots, unsigned n,
                 uint64_t now);
/* After the gather of one slot of this side; slot->status < 0: NAK 0x62 (RD-07). False: void the
 * rest of this queue pair's slots. A fatal NAK moves the queue pair to ERR here. */
bool resp_sent(struct engine *e, struct qp *qp, const struct engine_slot *slot, uint64_t now);
/* Is an ACK owed? */
bool resp_owes(const struct qp *qp);

/* srq.c; engine_rq_room, engine_srq_*, engine_post_srq_recv are there too */
/* See engine_post_recv. */
int resp_post(struct engine *e, struct qp *qp, const struct engine_recv_wr *wr);
/* Flush the receive queue in order (QP-12); with an SRQ raise LAST_WQE_REACHED (SRQ-06). */
void resp_flush(struct engine *e, struct qp *qp);
/* What it has taken of an SRQ completes with flush, as its owner counts the places that are free.
 */
void resp_return(struct engine *e, struct qp *qp);

#endif
