/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Requests of a connected queue pair. resp.h describes the receiving half.
 */
#ifndef URNIC_RESPONDER_H
#define URNIC_RESPONDER_H

#include "qp.h"
#include "record.h"
#include "refusal.h"

struct rx;

/* A request of a connected queue pair (RC, UC) that passed VAL-01 steps 1..8. */
void resp_rx(struct rx *rx, struct qp *qp);
/* A packet is missing: send a NAK (ACK-08). */
void resp_nak_gap(struct engine *e, struct qp *qp);
/* A request with the expected PSN (RSP-01). */
void resp_expected(struct rx *rx, struct qp *qp);

/* ---- shared with UC ---- */

/* The receive work request that this packet of a SEND or WRITE needs, if it needs one,
 * is in resp.wqe (RSP-09). False: there is none. */
bool resp_have_wqe(struct rx *rx, struct qp *qp);
/* Payload length and pad of a SEND or WRITE packet (RSP-10, RSP-11). */
enum refusal resp_check_length(const struct rx *rx, const struct qp *qp);
/* Place a SEND packet in resp.wqe, a WRITE packet in its range; *last as place_recv. */
enum refusal resp_send(struct rx *rx, struct qp *qp, struct record **last);
enum refusal resp_write(struct rx *rx, struct qp *qp, struct record **last);
/* A packet was accepted: write its effects into `rec`, its record; NULL = make a record. The caller
 * runs the record afterwards. */
void resp_packet_done(struct rx *rx, struct qp *qp, struct record *rec);
/* RSP-26. */
void resp_comm_est(struct rx *rx, struct qp *qp);
/* A fatal local error, through the FIFO of records. */
void resp_refuse(struct rx *rx, struct qp *qp, enum refusal why);

#endif
