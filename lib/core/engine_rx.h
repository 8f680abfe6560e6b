/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A received packet on its way through the engine.
 */
#ifndef URNIC_ENGINE_RX_H
#define URNIC_ENGINE_RX_H

#include "engine_priv.h"

/* One received packet on its way through the engine. */
struct rx {
    struct engine *e;
    struct engine_frame *f;
    struct wire_pkt pkt;
    const struct wire_opcode_info *op;
    const uint8_t *payload; /* in the frame, pkt.payload_len octets */
    struct wire_flow *flow; /* of the frames of a burst */
    unsigned flags;         /* of wire_parse, for each frame */
    bool for_us;            /* so is what `flow` remembers */
    bool early;             /* replayed by sr.c: its payload is in memory already */
    uint32_t frame;         /* index in this engine_rx call */
    uint64_t now;
    struct engine_copy *copies; /* the caller's array */
    unsigned ncopies, cap;
    uint32_t qpn, slot; /* of the frame before, which most often came for the same queue pair */
    unsigned worker;
    struct qp *last; /* took the previous frame; NULL: none did */
    unsigned states; /* a bit for each in which it takes one like that (VAL-04) */
    /* of a message that isn't over, on each side; see rx_shared */
    struct record *share[2];
};

/* The record of a SEND or WRITE to qp, or of answers to its READ, that began in this call, while
 * nothing has come behind it on that side; else NULL. */
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
/* engine_rx.c: drop what the parser refused for a field that is judged only behind queue pair, path
 * and keys (VAL-01). */
bool rx_late_drop(struct rx *rx);

#endif
