/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Selective repeat (sr.h): the sender of requests.
 */
#ifndef URNIC_SR_SENDER_H
#define URNIC_SR_SENDER_H

#include "sr.h"

/* A selective NAK. */
void sr_sack(struct rx *rx, struct qp *qp);
/* p has been sent. After a retransmission, move on to the next packet to retransmit. */
void sr_sent(struct qp *qp, psn_t p, bool again, uint64_t now);
/* Add the fields that RC packets otherwise lack. */
void sr_describe(const struct qp *qp, struct wire_var *v, uint32_t rseq, uint32_t index);
/* A NAK names p as expected. p is una, or later while answers to a READ at una are due. */
void sr_lost(struct engine *e, struct qp *qp, psn_t p);
/* Mark all packets since una that have not arrived for retransmission. */
void sr_round(struct qp *qp);
/* Skip packets that have arrived, during retransmission. */
void sr_skip(struct qp *qp);
/* una has moved by n PSNs. */
void sr_progress(struct qp *qp, uint32_t n, uint64_t now);
/* The ACK timer has fired. */
void sr_timed_out(struct qp *qp);
/* ns until the ACK timer fires, from now (LR-04). */
uint64_t sr_timeout(const struct qp *qp);
/* The ACK timer has fired, or answers to a READ or ATOMIC are lost: does it cost a retry? At most
 * once within T of TMR-01 (LR-04). */
bool sr_charge(struct qp *qp, uint64_t now);

#endif
