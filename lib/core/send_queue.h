/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The send queue from inside: what send_queue.c, which takes and starts work requests, shares with
 * requester.c, which cuts them into packets.
 */
#ifndef URNIC_SEND_QUEUE_H
#define URNIC_SEND_QUEUE_H

#include "qp.h"

enum wr_kind { WR_BAD, WR_MESSAGE, WR_READ, WR_ATOMIC, WR_LOCAL };

/* What a work request means. */
struct wr_info {
    uint8_t kind;
    bool rc, uc, ud;                   /* queue pair types that can do it */
    bool takes_recv;                   /* uses up a receive work request of the peer (ACK-15) */
    bool se;                           /* may ask for a solicited event (HDR-03) */
    uint8_t first, middle, last, only; /* enum wire_op */
};
/* By enum engine_wr_opcode. */
extern const struct wr_info wr_infos[WR_OPCODE_MAX];

/* Octets between a work request and its body. */
static inline size_t swqe_head(const struct qp *qp)
{
    if (qp_connected(qp))
        return qp->xrc ? sizeof(struct swqe_xrc) : 0;
    return sizeof(struct swqe_dest);
}

/* What is behind a work request in its slot of the ring. */
static inline uint8_t *swqe_body(const struct qp *qp, struct swqe *w)
{
    return (uint8_t *)(w + 1) + swqe_head(qp);
}

static inline struct swqe_dest *swqe_dest(struct swqe *w)
{
    return (struct swqe_dest *)(void *)(w + 1);
}

static inline struct swqe_xrc *swqe_xrc(struct swqe *w)
{
    return (struct swqe_xrc *)(void *)(w + 1);
}

enum sq_begin { SQ_OK, SQ_WAIT, SQ_FAILED };

/* Start the work request at `started` if the rules allow it now. */
enum sq_begin sq_begin(struct engine *e, struct qp *qp);

#endif
