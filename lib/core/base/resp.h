/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The receiving half of a connected queue pair: requests in, effects, acknowledgements and READ
 * responses out.
 *
 *     responder.c    RC: the order of checks (RSP-01), effects of each request
 *     resp_commit.c  the effects of requests, in their turn
 *     refusal.c      reasons to refuse a request, and their consequences (appendix B)
 *     resp_uc.c      UC (UC-03..UC-08)
 *     place.c        payload to receive buffers and to WRITE targets
 *     rd_ring.c      the READ/ATOMIC resource ring, and duplicates (RD, ATM)
 *     resp_tx.c      all packets sent, in their order (RD, ACK)
 *     resp_life.c    start and end
 *     srq.c          receive work requests, own and shared
 *
 * Validation runs ahead (epsn, msn, in_msg); execution follows (done_epsn, done_msn, ack_psn) as
 * records commit. Only executed requests are acknowledged.
 */
#ifndef URNIC_RESP_H
#define URNIC_RESP_H

#include "engine.h"
#include "psn.h"
#include "record.h"

struct rd_ring; /* rd_ring.h */
struct rq;      /* srq.h */
struct rwqe;

enum resp_msg { MSG_NONE, MSG_SEND, MSG_WRITE };

/* The progress of a fatal NAK (RSP-22). Nothing is accepted from DECIDED on (RSP-05). */
enum resp_fatal { FATAL_NOT, FATAL_DECIDED, FATAL_OWED, FATAL_SENT };

struct resp {
    /* speculative: accepted by validation */
    psn_t epsn;
    uint32_t msg_off;    /* octets of the message under way so far */
    uint32_t msg_len;    /* WRITE: RETH length */
    uint8_t in_msg;      /* enum resp_msg: of the message under way */
    uint8_t quiet;       /* ACK-08, RNR-02: NAKed; silent until epsn arrives */
    uint8_t fatal;       /* enum resp_fatal */
    struct rwqe *wqe;    /* receive work request of the message under way, last of `taken` */
    struct mem_ref wref; /* WRITE: the checked range */

    /* committed: executed */
    psn_t done_epsn; /* epsn of committed records */
    psn_t ack_psn;   /* ACK-05: last SEND or WRITE packet executed */
    uint32_t done_msn;
    psn_t nak_psn;
    uint8_t ack_owed; /* an ACK is to be sent by the next resp_tx */
    uint8_t nak_owed; /* a syndrome to be sent, 0 = none */
    uint8_t comm_est; /* RSP-26 raised already */
    uint8_t flushed;  /* in ERR: the receive queue has been flushed; later posts flush at once */
    int8_t fatal_ev;  /* event of the fatal NAK, < 0 = none */
    uint8_t credits;  /* credit code of the last ACK (ACK-16) */
    uint8_t reads;    /* `rd` may have entries to answer; otherwise sending skips it */

    struct record_fifo recs;

    /* receive work requests: own queue (NULL with an SRQ), and those of messages that have not
     * completed yet, in the order of the messages */
    struct rq *rq;
    struct rwqe *taken, **taken_tail;
    uint32_t rq_head, rq_tail; /* completed, posted: free running */

    struct rd_ring *rd; /* READ and ATOMIC resources (RD-03): RC from RTR on */
};

#endif
