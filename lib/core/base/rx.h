/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A received packet on its way through the engine.
 */
#ifndef URNIC_RX_H
#define URNIC_RX_H

#include "engine_priv.h"

/* One received packet on its way through the engine. */
struct rx {
    struct engine *e;
    struct engine_frame *f;
    struct wire_pkt pkt;
    const struct wire_opcode_info *op;
    const uint8_t *payload; /* in the frame, pkt.payload_len octets */
    struct wire_flow *flow; /* parser's memory of the burst's frames */
    unsigned flags;         /* flags for wire_parse */
    bool for_us;            /* the address that `flow` remembers is ours */
    bool early;             /* replayed by sr_receiver.c: its payload is already in memory */
    uint32_t frame;         /* index in this engine_rx call */
    uint64_t now;
    struct engine_copy *copies; /* the caller's array */
    unsigned ncopies, cap;
    uint32_t qpn, slot; /* of the previous frame, most often for the same queue pair */
    unsigned worker;
    struct qp *last; /* queue pair of the previous frame; NULL: none */
    unsigned states; /* its states that allow such a packet, a bit each (VAL-04) */
    /* records of unfinished messages, one for each side; see rx_shared */
    struct record *share[2];
};

/* The record of a SEND or WRITE to qp, or of answers to its READ, that was made in this call and is
 * still the last one on that side; else NULL. */
static inline struct record *rx_shared(const struct rx *rx, const struct qp *qp,
                                       enum record_side side)
{
    struct record *rec = rx->share[side];
    return rec && rec->qp == qp && !rec->next ? rec : NULL;
}

/* Drop the packet: exactly one counter (VAL-06). */
static inline void rx_drop(struct rx *rx, enum engine_counter c)
{
    rx->e->counters[c]++;
    rx->f->drop = (uint16_t)c;
}

#endif
