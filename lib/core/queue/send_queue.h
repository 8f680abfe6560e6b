/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The send queue: work requests are taken and started here, requester.c cuts them into packets.
 */
#ifndef URNIC_SEND_QUEUE_H
#define URNIC_SEND_QUEUE_H

#include "qp.h"

enum swqe_flag {
    SWQE_CHECKED = 1, /* PSNs assigned, SGEs are mem_refs now */
};

union swqe_sge {
    struct engine_sge sge; /* until the work request starts */
    struct mem_ref ref;    /* from then on */
    struct mem_seg seg;    /* of REG_MR */
};

struct swqe_dest { /* UD: where to */
    struct engine_av av;
    uint32_t rqpn, rqkey;
    uint16_t pkey_index;
} __attribute__((aligned(8))); /* SGEs follow */

struct swqe_xrc { /* XRC: the queue that the peer takes receives from */
    uint32_t srqn, zero;
};

struct swqe_bind {
    uint64_t va, len;
    uint32_t rkey, new_rkey, lkey, access;
};

/* A work request, the engine's private copy, kept until it has completed. After it, in the same
 * ring slot: swqe_dest for datagram queue pairs, swqe_xrc for those of XRC; then SGEs, or inline
 * data, or swqe_bind, or REG_MR's segments. For REG_MR, rkey is the key, va the address, swap the
 * length and imm the rights. */
struct swqe {
    uint64_t wr_id;
    uint64_t va;
    uint64_t compare_add, swap;
    uint32_t len; /* octets of the message */
    uint32_t rkey, imm;
    psn_t first;
    uint32_t npsn; /* 0 = local operation */
    uint32_t ssn;
    uint16_t inline_len;
    uint8_t opcode, wr_flags, nsge, flags;
    uint8_t error; /* enum wc_status that it will complete with; 0 = none */
};
_Static_assert(sizeof(struct swqe) == 64, "one cache line");
_Static_assert(sizeof(union swqe_sge) == sizeof(struct mem_ref), "a segment takes no more room");

/* Does the peer answer it with the old value? */
static inline bool swqe_is_atomic(const struct swqe *w)
{
    return w->opcode == WR_ATOMIC_CMP_AND_SWP || w->opcode == WR_ATOMIC_FETCH_AND_ADD;
}

/* Does the peer send an answer for it alone: READ, ATOMIC, FLUSH, ATOMIC WRITE? They count as
 * READs. */
static inline bool swqe_is_rd(const struct swqe *w)
{
    return w->opcode == WR_RDMA_READ || swqe_is_atomic(w) || w->opcode == WR_FLUSH ||
           w->opcode == WR_ATOMIC_WRITE;
}

/* Octets of the READ response that answers it. */
static inline uint32_t swqe_answer_len(const struct swqe *w)
{
    return w->opcode == WR_RDMA_READ ? w->len : 0;
}

/* WR_PLACEMENT: FLUSH and ATOMIC WRITE, which an empty READ response answers. */
enum wr_kind { WR_BAD, WR_MESSAGE, WR_READ, WR_ATOMIC, WR_PLACEMENT, WR_LOCAL };

/* The meaning of a work request. */
struct wr_info {
    uint8_t kind;
    bool rc, uc, ud;                   /* queue pair types that can do it */
    bool takes_recv;                   /* uses up a receive work request of the peer (ACK-15) */
    bool se;                           /* may ask for a solicited event (HDR-03) */
    uint8_t first, middle, last, only; /* enum wire_op */
};
/* By enum wr_opcode. */
extern const struct wr_info wr_infos[WR_OPCODE_MAX];

/* Octets between a work request and its body. */
static inline size_t swqe_head(const struct qp *qp)
{
    if (qp_connected(qp))
        return qp->xrc ? sizeof(struct swqe_xrc) : 0;
    return sizeof(struct swqe_dest);
}

/* The body of a work request, after it in its slot of the ring. */
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

/* A work request of the send queue. */
static inline struct swqe *req_wqe(const struct qp *qp, uint32_t index)
{
    return (struct swqe *)(void *)(qp->req.ring + (size_t)(index & qp->req.mask) * qp->req.stride);
}
/* Is the next entry to be sent a WRITE without immediate, which the peer's program gets no event
 * for? */
static inline bool req_next_is_write(const struct qp *qp)
{
    return qp->req.cur != qp->req.tail && req_wqe(qp, qp->req.cur)->opcode == WR_RDMA_WRITE;
}

/* Make the ring of a new queue pair; *p becomes the granted limits. 0, -ENOMEM. */
int req_init(struct engine *e, struct qp *qp, struct engine_qp_params *p);
void req_free(struct qp *qp);
/* To RESET: forget everything. */
void req_reset(struct engine *e, struct qp *qp);
/* To RTS. */
void req_start(struct qp *qp, psn_t sq_psn);
/* See engine_post_send. */
int req_post(struct engine *e, struct qp *qp, const struct engine_send_wr *wr);
/* The SGE list of a work request. SWQE_CHECKED says what its entries hold. */
union swqe_sge *req_sges(const struct qp *qp, struct swqe *w);
/* Have all started work requests completed? */
bool req_drained(const struct qp *qp);
/* In SQD: tell the owner, once, if it wants to know (QP-07). */
void req_check_drained(struct engine *e, struct qp *qp);

/* Tell the poster that found the send queue full that there is room again. */
void req_tell_room(struct engine *e, struct qp *qp);
/* Flush the send queue in order (QP-12). */
void req_flush(struct engine *e, struct qp *qp);
/* The enum wc_opcode of its completion. */
unsigned swqe_wc_opcode(const struct swqe *w);

enum sq_begin { SQ_OK, SQ_WAIT, SQ_FAILED };

/* Start the work request at `started` if the rules allow it now. */
enum sq_begin sq_begin(struct engine *e, struct qp *qp);

#endif
