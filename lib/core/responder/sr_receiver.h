/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Selective repeat (sr.h): the receiver of requests.
 */
#ifndef URNIC_SR_RECEIVER_H
#define URNIC_SR_RECEIVER_H

#include "sr.h"

struct engine_slot;

/* A request after the expected one. True: handled; no ordinary NAK. */
bool sr_rx_early(struct rx *rx, struct qp *qp);
/* The expected packet has been placed. Octets of early packets stay in memory, and the early
 * packets up to the next gap are counted in. */
void sr_placed(struct rx *rx, struct qp *qp);
/* Count in the early packets that are next. If too few records are left, the rest waits for the
 * next packet, or until the queue pair has no copy under way. */
void sr_drain(struct engine *e, struct qp *qp, uint64_t now);
/* LR-15: hold_at is due. */
void sr_expire(struct engine *e, struct qp *qp);
/* A copy of an early packet has failed. */
void sr_copy_failed(struct qp *qp, psn_t p);
/* The receive work request of the next message: one taken early, or as resp_take. */
struct rwqe *sr_take(struct engine *e, struct qp *qp);
/* One selective NAK, or a hello. */
void sr_emit(struct engine *e, struct qp *qp, struct engine_slot *slot);

#endif
