/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How the parts of a queue pair fill slots.
 */
#ifndef URNIC_SLOT_H
#define URNIC_SLOT_H

#include "engine_priv.h"

/* engine_slot.kind */
enum slot_kind {
    SLOT_REQ,              /* a request; requester.c */
    SLOT_REQ_OBLIGE,       /* a request that the peer must answer: starts the ACK timer */
    SLOT_REQ_OBLIGE_AGAIN, /* the same, sent before: no sample of the round trip */
    SLOT_REQ_END,          /* the last packet of a UC or UD message: completes when sent */
    SLOT_RESP,             /* resp_tx.c: no payload from memory, or an ACK */
    SLOT_READ,             /* resp_tx.c: a READ response */
    SLOT_GSI,
    SLOT_CNP, /* cnp.c: belongs to no queue pair any more */
};

/* Fill a slot from the queue pair's template and `v`: headers, qpn, psn, offsets and lengths;
 * npieces = 0. The queue pair's traffic class is put into `v`. */
void engine_slot_emit(struct qp *qp, struct engine_slot *slot, struct wire_var *v,
                      enum slot_kind kind);

/* The common part of packets of one queue pair that differ in PSN, acknowledge request and place.
 */
struct slot_run {
    struct wire_tmpl tmpl;
    uint32_t len; /* of the frame */
    uint32_t payload_len;
    uint32_t qpn;
};

/* Begin a run of packets that are like `v`. Its opcode has no extension headers. */
void engine_run_begin(const struct qp *qp, struct slot_run *run, struct wire_var *v);
/* Fill a slot with the next packet: the fields of engine_slot_emit, and the piece of its payload.
 */
void engine_run_next(struct qp *qp, const struct slot_run *run, struct engine_slot *slot, psn_t psn,
                     bool ackreq, enum slot_kind kind, struct mem_piece piece);

/* A packet of this path from queue pair `qpn` to the peer's `dqpn`: the fields of the headers below
 * the BTH, addresses and numbers. */
struct wire_pkt engine_path(const struct engine *e, const struct engine_av *av, uint32_t qpn,
                            uint32_t dqpn);

#endif
