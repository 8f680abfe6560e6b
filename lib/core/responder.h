/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The receiving half of a connected queue pair: requests in, effects, acknowledgements and READ
 * responses out (responder.c), receive work requests and shared receive queues (srq.c).
 * Rules: RSP, RD, ATM, ACK-03..11, RNR-01..03, UC-03..08.
 */
#ifndef URNIC_RESPONDER_H
#define URNIC_RESPONDER_H

#include "engine.h"
#include "psn.h"
#include "record.h"

struct rd_res; /* an entry of the READ/ATOMIC resource ring (RD-03): responder.c's */

struct resp {
    /* speculative: what validation has accepted */
    psn_t epsn;
    uint32_t msn;
    uint8_t in_msg;      /* 0, or WIRE_F_SEND / WIRE_F_WRITE of the message under way, shifted */
    uint8_t nak_sent;    /* ACK-08: a sequence NAK (or RNR NAK) for epsn has been sent */
    uint8_t fatal;       /* RSP-05: a fatal NAK is decided; nothing else is accepted */
    uint8_t drop_msg;    /* UC-04 */
    uint32_t msg_off;    /* octets of the message so far */
    uint32_t msg_len;    /* WRITE: RETH length; SEND: room in the receive work request */
    struct mem_ref wref; /* WRITE: the checked range */

    /* committed: what has been executed */
    psn_t done_epsn; /* epsn of what has committed */
    psn_t ack_psn;   /* ACK-05: last SEND/WRITE executed */
    uint32_t done_msn;
    uint8_t ack_owed; /* an ACK is to be sent by the next resp_tx */
    uint8_t nak_owed; /* a syndrome to be sent, 0 = none */
    uint8_t comm_est; /* RSP-26 raised already */
    uint8_t spare;
    psn_t nak_psn;

    struct record_fifo recs;

    /* receive queue: own ring, or NULL with an SRQ */
    uint8_t *rq;
    uint32_t rq_mask, rq_depth, rq_head, rq_tail;
    uint16_t rq_stride;
    uint8_t rq_max_sge;
    uint8_t wqe_held; /* a receive work request is in use by the message under way */

    /* READ and ATOMIC resources */
    struct rd_res *rd; /* ring of 2 * max_dest_rd_atomic */
    uint16_t rd_size, rd_head, rd_tail, rd_tx;
};

/* responder.c */
int resp_init(struct engine *e, struct qp *qp, struct engine_qp_params *p); /* allocates queues */
void resp_free(struct engine *e, struct qp *qp);
void resp_reset(struct engine *e, struct qp *qp); /* to RESET: forget everything */
int resp_start(struct engine *e, struct qp *qp,
               psn_t rq_psn); /* to RTR; may allocate. 0, -ENOMEM */
/* A request of a connected queue pair (RC, UC) that passed VAL-01 steps 1..8. */
void resp_rx(struct rx *rx, struct qp *qp);
/* A record of side REC_RESP is done (r->status says how). Never called for stale records. */
void resp_commit(struct engine *e, struct qp *qp, struct record *r, uint64_t now);
/* Is there an answer to send: ACK or NAK owed, READ responses, atomic results? */
bool resp_tx_ready(const struct qp *qp);
/* Fill up to n slots; slot->kind = SLOT_RESP. In ERR only what was owed at the transition (QP-11).
 */
unsigned resp_tx(struct engine *e, struct qp *qp, struct engine_slot *slots, unsigned n,
                 uint64_t now);
/* After the gather of one slot of this side; slot->status < 0: NAK 0x62 (RD-07). False: void the
 * rest of this queue pair's slots. */
bool resp_sent(struct engine *e, struct qp *qp, const struct engine_slot *slot, uint64_t now);
int resp_post(struct engine *e, struct qp *qp, const struct engine_recv_wr *wr);
/* Entering ERR: keep an owed ACK when the consumer did it (QP-11), drop READ responses. */
void resp_error(struct engine *e, struct qp *qp, bool by_consumer);
/* Flush the receive queue in order (QP-12); with an SRQ raise LAST_WQE_REACHED (SRQ section). */
void resp_flush(struct engine *e, struct qp *qp);
bool resp_owes(const struct qp *qp);

#endif
