/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Loss: go-back-N, the retry counters, waiting after RNR NAK, the ACK timer. retransmit.c begins
 * with a list of all timers of a sender.
 */
#ifndef URNIC_RETRANSMIT_H
#define URNIC_RETRANSMIT_H

#include "engine.h"
#include "psn.h"

struct qp;

/* The next packet sent is that of PSN p, which lies in [una, max]. */
void rtx_place(struct qp *qp, psn_t p);
/* Send again from PSN p, which lies in [una, max]. */
void rtx_go_back(struct engine *e, struct qp *qp, psn_t p);
/* A sequence NAK for p: a retry, but not while the retransmission from p is under way. */
void rtx_nak(struct engine *e, struct qp *qp, psn_t p, uint64_t now);
/* Kinds of answers for rtx_implied: an answer to p arrives while the one for una is missing. */
enum rtx_answer {
    RTX_ACK,        /* an acknowledgement, a NAK, or an ATOMIC's answer */
    RTX_READ_START, /* a READ response with which an answer begins */
    RTX_READ_ON,    /* a READ response that continues or ends an answer */
};
void rtx_implied(struct engine *e, struct qp *qp, psn_t p, enum rtx_answer kind, uint64_t now);
/* Responses to an old READ request arrive after the request was repeated. The peer finishes them
 * before it answers the repeated request, so the ACK timer starts again, within bounds (TMR-02). */
void rtx_old_answer(struct qp *qp, uint64_t now);
/* An RNR NAK for p: nothing is sent for the time of `code` (RNR-05). */
void rtx_rnr(struct engine *e, struct qp *qp, psn_t p, unsigned code, uint64_t now);
/* Send again from una, free of charge: a fatal NAK for it counts when it comes again (SEC-06). */
void rtx_confirm(struct engine *e, struct qp *qp, uint8_t syndrome, uint64_t now);
/* The peer is alive: the fatal NAK waiting for confirmation wasn't its own. */
void rtx_refute(struct engine *e, struct qp *qp);
/* ns for which answers to the first transmission may still come in. */
uint64_t rtx_round_trip(const struct qp *qp);
/* una has moved by n PSNs (REQ-33). */
void rtx_progress(struct engine *e, struct qp *qp, uint32_t n, uint64_t now);
/* The queue pair's timer has fired: ack_at, rnr_at or probe_at may be due. */
void rtx_expire(struct engine *e, struct qp *qp, uint64_t now);
/* LR-12: restart the probe timer after a packet was sent or answered. */
void rtx_probe_arm(struct engine *e, struct qp *qp, bool progress, uint64_t now);
/* The ACK timer's time after a time-out, from the measured round trip (LR-10). */
uint64_t rtx_adaptive(const struct qp *qp);

#endif
