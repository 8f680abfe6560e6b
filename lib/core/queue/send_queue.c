/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The send queue: takes work requests, and starts them in order.
 * Rules: REQ-01..09, REQ-12..15, HDR-03, ACK-15, UD-02, MR-08, GID-02.
 */
#include "send_queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cq.h"
#include "engine_priv.h"
#include "recovery.h"
#include "schedule.h"

/* ---- meaning of work requests ---- */

const struct wr_info wr_infos[WR_OPCODE_MAX] = {
    [WR_RDMA_WRITE] = {WR_MESSAGE, true, true, false, false, false, WIRE_WRITE_FIRST,
                       WIRE_WRITE_MIDDLE, WIRE_WRITE_LAST, WIRE_WRITE_ONLY},
    [WR_RDMA_WRITE_WITH_IMM] = {WR_MESSAGE, true, true, false, true, true, WIRE_WRITE_FIRST,
                                WIRE_WRITE_MIDDLE, WIRE_WRITE_LAST_IMM, WIRE_WRITE_ONLY_IMM},
    [WR_SEND] = {WR_MESSAGE, true, true, true, true, true, WIRE_SEND_FIRST, WIRE_SEND_MIDDLE,
                 WIRE_SEND_LAST, WIRE_SEND_ONLY},
    [WR_SEND_WITH_IMM] = {WR_MESSAGE, true, true, true, true, true, WIRE_SEND_FIRST,
                          WIRE_SEND_MIDDLE, WIRE_SEND_LAST_IMM, WIRE_SEND_ONLY_IMM},
    [WR_RDMA_READ] = {WR_READ, .rc = true, .only = WIRE_READ_REQUEST},
    [WR_ATOMIC_CMP_AND_SWP] = {WR_ATOMIC, .rc = true, .only = WIRE_CMP_SWAP},
    [WR_ATOMIC_FETCH_AND_ADD] = {WR_ATOMIC, .rc = true, .only = WIRE_FETCH_ADD},
    [WR_LOCAL_INV] = {WR_LOCAL, .rc = true, .uc = true},
    [WR_BIND_MW] = {WR_LOCAL, .rc = true, .uc = true},
    [WR_REG_MR] = {WR_LOCAL, .rc = true, .uc = true},
    [WR_SEND_WITH_INV] = {WR_MESSAGE, true, false, false, true, true, WIRE_SEND_FIRST,
                          WIRE_SEND_MIDDLE, WIRE_SEND_LAST_INV, WIRE_SEND_ONLY_INV},
    [WR_FLUSH] = {WR_PLACEMENT, .rc = true, .only = WIRE_FLUSH},
    [WR_ATOMIC_WRITE] = {WR_PLACEMENT, .rc = true, .only = WIRE_ATOMIC_WRITE},
};

static bool type_can(const struct qp *qp, const struct wr_info *info)
{
    return qp->type == QP_RC ? info->rc : qp->type == QP_UC ? info->uc : info->ud;
}

static const uint8_t wc_opcode[WR_OPCODE_MAX] = {
    [WR_RDMA_WRITE] = WC_RDMA_WRITE,
    [WR_RDMA_WRITE_WITH_IMM] = WC_RDMA_WRITE,
    [WR_SEND] = WC_SEND,
    [WR_SEND_WITH_IMM] = WC_SEND,
    [WR_RDMA_READ] = WC_RDMA_READ,
    [WR_ATOMIC_CMP_AND_SWP] = WC_COMP_SWAP,
    [WR_ATOMIC_FETCH_AND_ADD] = WC_FETCH_ADD,
    [WR_LOCAL_INV] = WC_LOCAL_INV,
    [WR_BIND_MW] = WC_BIND_MW,
    [WR_SEND_WITH_INV] = WC_SEND,
    [WR_REG_MR] = WC_REG_MR,
    [WR_FLUSH] = WC_FLUSH,
    [WR_ATOMIC_WRITE] = WC_ATOMIC_WRITE,
};

unsigned swqe_wc_opcode(const struct swqe *w)
{
    return w->opcode < WR_OPCODE_MAX ? wc_opcode[w->opcode] : 0;
}

/* ---- the ring ---- */

union swqe_sge *req_sges(const struct qp *qp, struct swqe *w)
{
    return (union swqe_sge *)(void *)swqe_body(qp, w);
}

int req_init(struct engine *e, struct qp *qp, struct engine_qp_params *p)
{
    struct req *r = &qp->req;
    if (!p->max_send_wr)
        p->max_send_wr = 1;
    if (!p->max_send_sge)
        p->max_send_sge = 1;
    size_t room = p->max_send_sge * sizeof(union swqe_sge);
    if (room < p->max_inline)
        room = p->max_inline;
    if (qp_connected(qp) && room < sizeof(struct swqe_bind))
        room = sizeof(struct swqe_bind);
    size_t stride = sizeof(struct swqe) + swqe_head(qp) + room;
    stride = (stride + 63) & ~(size_t)63;
    uint32_t n = 1;
    while (n < p->max_send_wr)
        n *= 2;
    r->ring = aligned_alloc(64, n * stride);
    if (!r->ring)
        return -ENOMEM;
    r->mask = n - 1;
    r->depth = p->max_send_wr = n;
    r->stride = (uint16_t)stride;
    /* Grant also what fits in the remaining space (QP-16). */
    if (p->max_inline < room)
        p->max_inline = room < ENGINE_INLINE_MAX ? (uint32_t)room : ENGINE_INLINE_MAX;
    req_reset(e, qp);
    return 0;
}

void req_free(struct qp *qp)
{
    free(qp->req.ring);
    qp->req.ring = NULL;
}

void req_reset(struct engine *e, struct qp *qp)
{
    struct req *r = &qp->req;
    *r = (struct req){
        .ring = r->ring,
        .mask = r->mask,
        .depth = r->depth,
        .stride = r->stride,
        .window = e->p.window,
        .recs = r->recs,
        .ack_at = TIMER_NEVER,
        .rnr_at = TIMER_NEVER,
        .probe_at = TIMER_NEVER,
    };
}

void req_start(struct qp *qp, psn_t sq_psn)
{
    struct req *r = &qp->req;
    r->nxt = r->max = r->una = r->done = r->seen = r->again = sq_psn;
    recovery_begin(qp, sq_psn);
    r->ssn = r->lsn = 0;
}

bool req_drained(const struct qp *qp)
{
    return qp->req.head == qp->req.started;
}

void req_check_drained(struct engine *e, struct qp *qp)
{
    if (qp->state != QPS_SQD || qp->drained || !req_drained(qp))
        return;
    qp->drained = 1;
    if (qp->drain_wanted)
        engine_event(e, EVT_SQ_DRAINED, qp->arg);
}

void req_tell_room(struct engine *e, struct qp *qp)
{
    if (qp->req.full) {
        qp->req.full = 0;
        if (e->p.hooks.sq_room)
            e->p.hooks.sq_room(e->p.hook_arg, qp->arg);
    }
}

void req_flush(struct engine *e, struct qp *qp)
{
    struct req *r = &qp->req;
    while (r->head != r->tail) {
        const struct swqe *w = req_wqe(qp, r->head++);
        cq_flush(e, qp, qp->send_cq, w->wr_id, swqe_wc_opcode(w));
    }
    r->cur = r->started = r->rd_first = r->head;
    r->pkt = 0;
    r->rd_out = 0;
    r->rd_psns = 0;
    r->una = r->done = r->nxt = r->max;
    req_tell_room(e, qp);
}

/* ---- posting ---- */

static bool takes_inline(const struct engine_send_wr *wr)
{
    return wr_infos[wr->opcode].kind == WR_MESSAGE || wr->opcode == WR_ATOMIC_WRITE;
}

/* ATM-12, ATM-13. */
static enum wc_status judge_placement(const struct engine_send_wr *wr, uint64_t len)
{
    if (wr->opcode == WR_ATOMIC_WRITE)
        return len == 8 ? WC_SUCCESS : WC_LOC_LEN_ERR;
    if (wr->nsge > 0 || !(wr->imm & WIRE_FETH_PLACEMENT) ||
        wr->imm & ~(WIRE_FETH_GLOBAL | WIRE_FETH_PERSISTENT | WIRE_FETH_REGION))
        return WC_LOC_QP_OP_ERR;
    return wr->compare_add > WIRE_MSG_MAX ? WC_LOC_LEN_ERR : WC_SUCCESS;
}

/* The status for a fault of the work request itself, WC_SUCCESS = none. A faulty request completes
 * with this status in its turn (REQ-08). */
static enum wc_status judge(const struct qp *qp, const struct engine_send_wr *wr, uint64_t len)
{
    if (wr->opcode >= WR_OPCODE_MAX || !type_can(qp, &wr_infos[wr->opcode]))
        return WC_LOC_QP_OP_ERR;
    const struct wr_info *info = &wr_infos[wr->opcode];
    if (wr->flags & WR_F_INLINE) {
        if (!takes_inline(wr) || wr->inline_len > qp->max_inline)
            return WC_LOC_QP_OP_ERR;
    } else if (wr->nsge > qp->max_send_sge) {
        return WC_LOC_QP_OP_ERR;
    }
    if (!qp_connected(qp) && wire_addr_is_v4(&wr->av.sgid) != wire_addr_is_v4(&wr->av.dgid))
        return WC_LOC_QP_OP_ERR; /* GID-02 */
    if (wr->opcode == WR_REG_MR && wr->nsegs > qp->max_send_sge)
        return WC_LOC_QP_OP_ERR;
    if (len > WIRE_MSG_MAX)
        return WC_LOC_LEN_ERR;
    if (info->kind == WR_ATOMIC) {
        if (wr->nsge != 1)
            return WC_LOC_QP_OP_ERR;
        if (len < 8)
            return WC_LOC_LEN_ERR;
    }
    return info->kind == WR_PLACEMENT ? judge_placement(wr, len) : WC_SUCCESS;
}

static uint64_t wr_len(const struct engine_send_wr *wr)
{
    if (wr->flags & WR_F_INLINE)
        return wr->inline_len;
    uint64_t len = 0;
    for (unsigned i = 0; i < wr->nsge; i++)
        len += wr->sge[i].len;
    return len;
}

static void fill_reg(struct qp *qp, struct swqe *w, const struct engine_send_wr *wr)
{
    union swqe_sge *s = req_sges(qp, w);
    w->rkey = wr->mw_new_rkey;
    w->va = wr->mw_va;
    w->swap = wr->mw_len;
    w->imm = wr->mw_access;
    w->nsge = (uint8_t)wr->nsegs;
    for (unsigned i = 0; i < wr->nsegs; i++)
        s[i].seg = wr->segs[i];
}

static void fill(struct qp *qp, struct swqe *w, const struct engine_send_wr *wr, uint64_t len)
{
    *w = (struct swqe){
        .wr_id = wr->wr_id,
        .va = wr->remote_va,
        .compare_add = wr->compare_add,
        .swap = wr->swap,
        .len = (uint32_t)len,
        .rkey = wr->rkey,
        .imm = wr->imm,
        .opcode = wr->opcode,
        .wr_flags = wr->flags,
        .nsge = wr->nsge,
        .error = (uint8_t)judge(qp, wr, len),
    };
    if (w->error) {
        w->nsge = 0;
        return;
    }
    if (!qp_connected(qp))
        *swqe_dest(w) = (struct swqe_dest){wr->av, wr->rqpn, wr->rqkey, wr->pkey_index};
    else if (qp->xrc)
        *swqe_xrc(w) = (struct swqe_xrc){.srqn = wr->xrc_srqn & WIRE_QPN_MASK};
    switch (wr_infos[wr->opcode].kind) {
    case WR_LOCAL:
        w->len = 0;
        w->nsge = 0;
        if (wr->opcode == WR_REG_MR) {
            fill_reg(qp, w, wr);
            return;
        }
        *(struct swqe_bind *)(void *)swqe_body(qp, w) = (struct swqe_bind){
            wr->mw_va, wr->mw_len, wr->mw_rkey, wr->mw_new_rkey, wr->mw_lkey, wr->mw_access};
        return;
    case WR_ATOMIC:
        w->len = 8;
        break;
    default:
        break;
    }
    if (wr->flags & WR_F_INLINE) {
        w->inline_len = wr->inline_len;
        w->nsge = 0;
        memcpy(swqe_body(qp, w), wr->inline_data, wr->inline_len);
        return;
    }
    union swqe_sge *s = req_sges(qp, w);
    for (unsigned i = 0; i < wr->nsge; i++)
        s[i].sge = wr->sge[i];
}

int req_post(struct engine *e, struct qp *qp, const struct engine_send_wr *wr)
{
    struct req *r = &qp->req;
    if (qp->state < QPS_RTS || qp->xrc == XRC_TGT)
        return -EINVAL;
    if (r->tail - r->head >= r->depth) {
        r->full = 1;
        return -EAGAIN;
    }
    uint64_t len = wr_len(wr);
    if (!qp_connected(qp) && len > qp_mtu(qp)) /* UD-02 */
        return -EINVAL;
    fill(qp, req_wqe(qp, r->tail), wr, len);
    r->tail++;
    if (qp->state == QPS_ERR || qp->state == QPS_SQE) {
        if (!r->recs.head)
            req_flush(e, qp);
    } else if (qp->state == QPS_RTS) {
        qp_activate(e, qp);
    }
    return 0;
}

/* ---- starting a work request ---- */

static int run_reg(struct engine *e, struct qp *qp, struct swqe *w)
{
    struct mem_seg segs[ENGINE_SGE_MAX];
    const union swqe_sge *s = req_sges(qp, w);
    for (unsigned i = 0; i < w->nsge; i++)
        segs[i] = s[i].seg;
    return mem_fr_reg(e->mem, qp->pd, w->rkey, w->va, w->swap, w->imm, segs, w->nsge);
}

static void run_local(struct engine *e, struct qp *qp, struct swqe *w)
{
    if (w->opcode == WR_LOCAL_INV) {
        if (mem_invalidate(e->mem, qp->pd, qp->qpn, w->imm, false))
            w->error = WC_LOC_QP_OP_ERR;
        return;
    }
    if (w->opcode == WR_REG_MR) {
        if (run_reg(e, qp, w))
            w->error = WC_LOC_QP_OP_ERR; /* MR-08 */
        return;
    }
    const struct swqe_bind *b = (const struct swqe_bind *)(const void *)swqe_body(qp, w);
    uint32_t rkey;
    /* The program must choose the key: there is no way to report one that we chose. */
    if (!b->new_rkey || mem_mw_bind(e->mem, qp->pd, qp->qpn, b->rkey, b->new_rkey, b->lkey, b->va,
                                    b->len, b->access, &rkey))
        w->error = WC_MW_BIND_ERR;
}

/* The keys of the list become references: every packet later checks only their generation. */
static bool check_sges(struct engine *e, struct qp *qp, struct swqe *w, unsigned need)
{
    union swqe_sge *s = req_sges(qp, w);
    for (unsigned i = 0; i < w->nsge; i++) {
        struct engine_sge g = s[i].sge;
        struct mem_ref ref = {.va = g.va};
        if (g.len && mem_check(e->mem, qp->pd, qp->qpn, g.lkey, g.va, g.len, need, true, &ref))
            return false;
        s[i].ref = ref;
    }
    return true;
}

enum sq_begin sq_begin(struct engine *e, struct qp *qp)
{
    struct req *r = &qp->req;
    struct swqe *w = req_wqe(qp, r->started);
    if (qp->state != QPS_RTS) /* QP-07 */
        return SQ_WAIT;
    if (w->error)
        return SQ_FAILED;
    const struct wr_info *info = &wr_infos[w->opcode];
    bool rd = swqe_is_rd(w);
    uint32_t npsn = info->kind == WR_LOCAL    ? 0
                    : info->kind == WR_ATOMIC ? 1
                                              : psn_count(w->len, qp->mtu_shift);
    if (info->kind == WR_LOCAL && r->head != r->started) /* REQ-15 */
        return SQ_WAIT;
    if (w->wr_flags & WR_F_FENCE && r->rd_out) /* REQ-14 */
        return SQ_WAIT;
    if (rd) {
        if (!qp->attr.max_rd_atomic) { /* REQ-12 */
            w->error = WC_LOC_QP_OP_ERR;
            return SQ_FAILED;
        }
        if (r->rd_out >= qp->attr.max_rd_atomic)
            return SQ_WAIT;
        if (e->p.read_window && r->rd_out && r->rd_psns + npsn > e->p.read_window)
            return SQ_WAIT; /* the answers would overrun our port (REQ-13) */
    }
    if (info->kind == WR_LOCAL) {
        run_local(e, qp, w);
        if (w->error)
            return SQ_FAILED;
    } else if (!check_sges(e, qp, w, rd && info->kind != WR_PLACEMENT ? MEM_LOCAL_WRITE : 0)) {
        w->error = WC_LOC_PROT_ERR;
        return SQ_FAILED;
    }
    w->flags |= SWQE_CHECKED;
    w->first = r->nxt;
    w->npsn = npsn;
    if (npsn) {
        r->ssn = psn(r->ssn + 1).v;
        w->ssn = r->ssn;
        if (!info->takes_recv)
            r->lsn = psn(r->lsn + 1).v; /* ACK-15: advances the MSN without a receive */
        else
            recovery_number(qp, &w->compare_add);
    }
    if (rd) {
        if (r->rd_first == r->started)
            r->restart_set = 0;
        r->rd_out++;
    } else if (r->rd_first == r->started) {
        r->rd_first++; /* still none */
    }
    r->started++;
    return SQ_OK;
}
