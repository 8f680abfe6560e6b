/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The UC responder, and what it shares with RC. Rules: UC-03..UC-08.
 */
#ifndef URNIC_RESP_UC_H
#define URNIC_RESP_UC_H

#include "record.h"
#include "refusal.h"

/* A request for a UC queue pair; enough records are free. */
void uc_rx(struct rx *rx, struct qp *qp);
/* The consumer's own memory failed: the work request in use tells, the queue pair goes to ERR. */
void uc_failed(struct engine *e, struct qp *qp, enum refusal why, bool wqe, uint64_t now);

/* responder.c: the receive work request that this packet of a SEND or WRITE needs, if it needs one,
 * is in resp.wqe (RSP-09). False: there is none. */
bool resp_have_wqe(struct rx *rx, struct qp *qp);
/* Payload length and pad of a SEND or WRITE packet (RSP-10, RSP-11). */
enum refusal resp_check_length(const struct rx *rx, const struct qp *qp);
/* Place a SEND packet in resp.wqe, a WRITE packet in its range; *last as place_recv. */
enum refusal resp_send(struct rx *rx, struct qp *qp, struct record **last);
enum refusal resp_write(struct rx *rx, struct qp *qp, struct record **last);
/* The packet is accepted: give its record (NULL: a new one) what it does. The caller runs it. */
void resp_packet_done(struct rx *rx, struct qp *qp, struct record *rec);
/* RSP-26. */
void resp_comm_est(struct rx *rx, struct qp *qp);
/* A fatal local error, through the FIFO of records. */
void resp_refuse(struct rx *rx, struct qp *qp, enum refusal why);

#endif
