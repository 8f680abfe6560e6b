/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Records of the responder: their contents once a request is judged, and their effects on commit.
 */
#ifndef URNIC_RESP_COMMIT_H
#define URNIC_RESP_COMMIT_H

#include "record.h"
#include "refusal.h"

struct qp;

/* record.action */
enum resp_action {
    ACT_NONE,   /* not the last of a packet's memory ranges */
    ACT_PACKET, /* SEND or WRITE packet in the middle of its message */
    ACT_END,    /* SEND or WRITE packet that ends its message */
    ACT_READ,
    ACT_ATOMIC,
    ACT_REFUSE, /* arg: enum refusal */
    ACT_NAK,    /* sequence NAK */
    ACT_RNR,
    ACT_REACK, /* duplicate of a packet that has not committed */
};

/* record.arg of ACT_PACKET and ACT_END */
#define ACT_F_ACKREQ  0x01u
#define ACT_F_WQE     0x02u /* belongs to a message with a receive work request */
#define ACT_F_WRITE   0x04u
#define ACT_F_IMM     0x08u
#define ACT_F_INV     0x10u
#define ACT_F_INV_BAD 0x20u /* RSP-19 */

/* record.arg of ACT_REFUSE: enum refusal, and this if the message has a receive work request */
#define ACT_F_REFUSE_WQE 0x100u

/* Commit the records at the head that are done. Called by engine_copied, and after a record without
 * copies was appended. */
void resp_run(struct engine *e, struct qp *qp, uint64_t now);
/* Owe a fatal NAK. `wqe`: the failed message has a receive work request, which completes. */
void resp_fail(struct engine *e, struct qp *qp, enum refusal why, psn_t p, bool wqe);
/* Owe an ACK; owe a NAK of p. */
void resp_owe_ack(struct engine *e, struct qp *qp);
void resp_owe_nak(struct engine *e, struct qp *qp, uint8_t syndrome, psn_t p);

#endif
