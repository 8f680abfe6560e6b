/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Requester: takes work requests, starts them in order, cuts them into packets. A packet is a pure
 * function of (work request, packet number), so sending again after a go-back takes the same path.
 * Rules: REQ-01..16, HDR-03, HDR-09, PSN-03, PSN-06, ACK-15, UC-02, UD-03, KEY-08.
 */
#include "requester.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine_priv.h"

#define ACKREQ_EVERY 64u /* REQ-10: K = min(64, window / 4) */

/* ---- what a work request means ---- */

enum wr_kind { WR_BAD, WR_MESSAGE, WR_READ, WR_ATOMIC, WR_LOCAL };

static const struct wr_info {
    uint8_t kind;
    bool rc, uc, ud;                   /* queue pair types that can do it */
    bool takes_recv;                   /* uses up a receive work request of the peer (ACK-15) */
    bool se;                           /* may ask for a solicited event (HDR-03) */
    uint8_t first, middle, last, only; /* enum wire_op */
} wr_infos[WR_OPCODE_MAX] = {
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
};

static bool type_can(const struct qp *qp, const struct wr_info *info)
{
    return qp->type == QP_RC ? info->rc : qp->type == QP_UC ? info->uc : info->ud;
}

/* ---- the ring ---- */

static uint8_t *body(const struct qp *qp, struct swqe *w)
{
    return (uint8_t *)(w + 1) + (qp_connected(qp) ? 0 : sizeof(struct swqe_dest));
}

static struct swqe_dest *dest(struct swqe *w)
{
    return (struct swqe_dest *)(void *)(w + 1);
}

union swqe_sge *req_sges(const struct qp *qp, struct swqe *w)
{
    return (union swqe_sge *)(void *)body(qp, w);
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
    size_t stride = sizeof(struct swqe) + room;
    if (!qp_connected(qp))
        stride += sizeof(struct swqe_dest);
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
    /* What the space left over can hold is granted too (QP-16). */
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
    if (qp->sr)
        sr_begin(qp, sq_psn);
    r->retry_left = qp->attr.retry_cnt;
    r->rnr_left = qp->attr.rnr_retry;
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

/* ---- posting ---- */

/* What is wrong with the request itself; it completes with that in its turn (REQ-08). */
static enum engine_status judge(const struct qp *qp, const struct engine_send_wr *wr, uint64_t len)
{
    if (wr->opcode >= WR_OPCODE_MAX || !type_can(qp, &wr_infos[wr->opcode]))
        return WC_LOC_QP_OP_ERR;
    const struct wr_info *info = &wr_infos[wr->opcode];
    if (wr->flags & WR_F_INLINE) {
        if (info->kind != WR_MESSAGE || wr->inline_len > qp->max_inline)
            return WC_LOC_QP_OP_ERR;
    } else if (wr->nsge > qp->max_send_sge) {
        return WC_LOC_QP_OP_ERR;
    }
    if (!qp_connected(qp) && wire_addr_is_v4(&wr->av.sgid) != wire_addr_is_v4(&wr->av.dgid))
        return WC_LOC_QP_OP_ERR; /* GID-02 */
    if (wr->opcode == WR_REG_MR && (wr->nsegs > qp->max_send_sge || wr->nsegs > ENGINE_SGE_MAX))
        return WC_LOC_QP_OP_ERR;
    if (len > WIRE_MSG_MAX)
        return WC_LOC_LEN_ERR;
    if (info->kind == WR_ATOMIC) {
        if (wr->nsge != 1)
            return WC_LOC_QP_OP_ERR;
        if (len < 8)
            return WC_LOC_LEN_ERR;
    }
    return WC_SUCCESS;
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
        *dest(w) = (struct swqe_dest){wr->av, wr->rqpn, wr->rqkey, wr->pkey_index};
    switch (wr_infos[wr->opcode].kind) {
    case WR_LOCAL:
        w->len = 0;
        w->nsge = 0;
        if (wr->opcode == WR_REG_MR) {
            fill_reg(qp, w, wr);
            return;
        }
        *(struct swqe_bind *)(void *)body(qp, w) = (struct swqe_bind){
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
        memcpy(body(qp, w), wr->inline_data, wr->inline_len);
        return;
    }
    union swqe_sge *s = req_sges(qp, w);
    for (unsigned i = 0; i < wr->nsge; i++)
        s[i].sge = wr->sge[i];
}

int req_post(struct engine *e, struct qp *qp, const struct engine_send_wr *wr)
{
    struct req *r = &qp->req;
    if (qp->state < QPS_RTS)
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
            comp_flush(e, qp);
    } else if (qp->state == QPS_RTS) {
        qp_activate(e, qp);
    }
    return 0;
}

/* ---- starting a work request ---- */

enum begin { BEGIN_OK, BEGIN_WAIT, BEGIN_FAILED };

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
    const struct swqe_bind *b = (const struct swqe_bind *)(const void *)body(qp, w);
    uint32_t rkey;
    /* A key that we chose ourselves nobody could be told. */
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

/* Start the work request at `started` if the rules allow it now. */
static enum begin begin(struct engine *e, struct qp *qp)
{
    struct req *r = &qp->req;
    struct swqe *w = req_wqe(qp, r->started);
    if (qp->state != QPS_RTS) /* QP-07 */
        return BEGIN_WAIT;
    if (w->error)
        return BEGIN_FAILED;
    const struct wr_info *info = &wr_infos[w->opcode];
    bool rd = info->kind == WR_READ || info->kind == WR_ATOMIC;
    uint32_t npsn = info->kind == WR_LOCAL    ? 0
                    : info->kind == WR_ATOMIC ? 1
                                              : psn_count(w->len, qp->mtu_shift);
    if (info->kind == WR_LOCAL && r->head != r->started) /* REQ-15 */
        return BEGIN_WAIT;
    if (w->wr_flags & WR_F_FENCE && r->rd_out) /* REQ-14 */
        return BEGIN_WAIT;
    if (rd) {
        if (!qp->attr.max_rd_atomic) { /* REQ-12 */
            w->error = WC_LOC_QP_OP_ERR;
            return BEGIN_FAILED;
        }
        if (r->rd_out >= qp->attr.max_rd_atomic)
            return BEGIN_WAIT;
    }
    if (info->kind == WR_LOCAL) {
        run_local(e, qp, w);
        if (w->error)
            return BEGIN_FAILED;
    } else if (!check_sges(e, qp, w, rd ? MEM_LOCAL_WRITE : 0)) {
        w->error = WC_LOC_PROT_ERR;
        return BEGIN_FAILED;
    }
    w->flags |= SWQE_CHECKED;
    w->first = r->nxt;
    w->npsn = npsn;
    if (npsn) {
        r->ssn = psn(r->ssn + 1).v;
        w->ssn = r->ssn;
        if (!info->takes_recv)
            r->lsn = psn(r->lsn + 1).v; /* ACK-15: advances the MSN without a receive */
        else if (qp->sr)
            w->compare_add = qp->sr->sends++; /* LR-06 */
    }
    if (rd) {
        if (r->rd_first == r->started)
            r->restart_set = 0;
        r->rd_out++;
    } else if (r->rd_first == r->started) {
        r->rd_first++; /* still none */
    }
    r->started++;
    return BEGIN_OK;
}

/* ACK-15: may packet `pkt` of this message go with the credits at hand? */
static bool credit(const struct qp *qp, const struct swqe *w, uint32_t pkt)
{
    if (!qp->credits || !wr_infos[w->opcode].takes_recv)
        return true;
    int32_t ahead = psn_diff(psn(w->ssn), psn(qp->req.lsn));
    return ahead <= 0 || (ahead == 1 && pkt == 0);
}

/* Is there a packet that may be sent now? Starts the next work request if it is its turn, so that
 * whoever sends the packet before knows whether it must ask for an answer (REQ-10). */
static bool more(struct engine *e, struct qp *qp)
{
    struct req *r = &qp->req;
    if (r->rnr_wait || r->fail || (qp->state != QPS_RTS && qp->state != QPS_SQD))
        return false;
    struct swqe *w;
    for (;;) {
        if (r->cur == r->started) {
            if (r->cur == r->tail || begin(e, qp) != BEGIN_OK)
                return false;
        }
        w = req_wqe(qp, r->cur);
        if (w->npsn)
            break;
        r->cur++; /* a local operation: done */
        r->pkt = 0;
    }
    if (w->error)
        return false;
    if (!psn_eq(r->nxt, r->max))
        return psn(r->nxt.v - r->una.v).v < r->window; /* sent before */
    uint32_t out = psn(r->max.v - r->una.v).v;
    uint32_t takes = wr_infos[w->opcode].kind == WR_MESSAGE ? 1 : w->npsn;
    return out - r->rd_psns < r->window && out + takes <= PSN_HALF && /* PSN-03 */
           credit(qp, w, r->pkt);
}

/* ---- packets ---- */

/* The pieces of octets [off, off + len) of the message. False: a region has gone. */
static bool gather(struct engine *e, struct qp *qp, struct swqe *w, uint32_t off, uint32_t len,
                   struct engine_slot *slot)
{
    union swqe_sge *s = req_sges(qp, w);
    unsigned n = 0;
    for (unsigned i = 0; len && i < w->nsge; i++) {
        uint64_t have = s[i].ref.len;
        if (off >= have) {
            off -= (uint32_t)have;
            continue;
        }
        uint32_t take = have - off < len ? (uint32_t)(have - off) : len;
        int k = mem_pieces(e->mem, &s[i].ref, off, take, slot->pieces + n, ENGINE_TX_PIECES - n);
        if (k < 0)
            return false;
        n += (unsigned)k;
        len -= take;
        off = 0;
    }
    slot->npieces = (uint16_t)n;
    return len == 0;
}

static uint8_t message_op(const struct wr_info *info, uint32_t pkt, uint32_t npsn)
{
    if (npsn == 1)
        return info->only;
    return pkt == 0 ? info->first : pkt == npsn - 1 ? info->last : info->middle;
}

static bool same_path(const struct engine_av *a, const struct engine_av *b)
{
    return !memcmp(&a->dgid, &b->dgid, sizeof(a->dgid)) &&
           !memcmp(&a->sgid, &b->sgid, sizeof(a->sgid)) && !memcmp(a->dmac, b->dmac, 6) &&
           a->tclass == b->tclass && a->hop_limit == b->hop_limit && a->sl == b->sl &&
           a->flow_label == b->flow_label;
}

/* The template holds the last datagram's path; most go to the same peer as the one before. */
static void datagram_template(struct engine *e, struct qp *qp, const struct swqe_dest *d)
{
    const struct engine_av *av = &d->av;
    /* Queue pair 1 names its P_Key in each (KEY-04). */
    if (qp->tmpl.len && qp->type != QP_GSI && qp->dest_qpn == d->rqpn &&
        same_path(&qp->attr.av, av))
        return;
    struct wire_pkt p = engine_path(e, av, qp->qpn, d->rqpn);
    p.opcode = WIRE_OPCODE(WIRE_UD, WIRE_SEND_ONLY);
    p.pkey = qp->type == QP_GSI ? engine_pkey(e, d->pkey_index) : qp->pkey;
    p.migreq = qp->type != QP_GSI; /* HDR-04 */
    wire_tmpl_init(&qp->tmpl, &p);
    qp->tclass = av->tclass;
    qp->attr.av = *av;
    qp->dest_qpn = d->rqpn;
}

/* What goes into packet r->pkt of w, apart from AckReq. */
static bool describe(struct engine *e, struct qp *qp, struct swqe *w, struct wire_var *v,
                     struct engine_slot *slot)
{
    struct req *r = &qp->req;
    const struct wr_info *info = &wr_infos[w->opcode];
    uint32_t off = r->pkt << qp->mtu_shift;
    uint8_t op = info->only;
    *v = (struct wire_var){.psn = r->nxt.v, .va = w->va, .rkey = w->rkey, .imm = w->imm};
    slot->npieces = 0;
    switch (info->kind) {
    case WR_READ: /* RD-12: from the first missing octet */
        v->va += off;
        v->dma_len = w->len - off;
        if (qp->sr && sr_read_part(qp))
            v->dma_len = sr_read_part(qp) << qp->mtu_shift;
        break;
    case WR_ATOMIC:
        v->swap_add = w->opcode == WR_ATOMIC_CMP_AND_SWP ? w->swap : w->compare_add;
        v->compare = w->opcode == WR_ATOMIC_CMP_AND_SWP ? w->compare_add : 0;
        break;
    default:
        op = message_op(info, r->pkt, w->npsn);
        v->dma_len = w->len;
        v->payload_len = w->len - off < qp_mtu(qp) ? w->len - off : qp_mtu(qp);
        if (wire_opcodes[op].headers & WIRE_H_IETH)
            v->rkey = w->imm; /* the key to invalidate */
        v->se = info->se && w->wr_flags & WR_F_SOLICITED && r->pkt == w->npsn - 1;
        if (w->nsge && !gather(e, qp, w, off, v->payload_len, slot))
            return false;
    }
    v->opcode = WIRE_OPCODE(qp->type == QP_RC   ? WIRE_RC
                            : qp->type == QP_UC ? WIRE_UC
                                                : WIRE_UD,
                            op);
    if (qp->sr && qp->sr->agreed)
        sr_describe(qp, v, (uint32_t)w->compare_add, r->pkt);
    return true;
}

/* Step over the packet just described. */
static void advance(struct qp *qp, const struct swqe *w, uint64_t now)
{
    struct req *r = &qp->req;
    bool read = wr_infos[w->opcode].kind == WR_READ;
    bool again = !psn_eq(r->nxt, r->max);
    uint32_t n = read ? w->npsn - r->pkt : 1;
    psn_t p = r->nxt;
    if (read && qp->sr && sr_read_part(qp))
        n = sr_read_part(qp);
    if (read && r->pkt) {
        r->restart_pkt = r->pkt;
        r->restart_set = 1;
    }
    if (again)
        qp->stats.retransmits++;
    r->nxt = psn_add(r->nxt, n);
    r->pkt += n;
    if (r->pkt == w->npsn) {
        r->cur++;
        r->pkt = 0;
    }
    if (again && psn_diff(r->nxt, r->again) > 0)
        r->again = r->nxt;
    if (qp->sr)
        sr_sent(qp, p, again, now);
    if (psn(r->nxt.v - r->una.v).v > psn(r->max.v - r->una.v).v) {
        if (wr_infos[w->opcode].kind != WR_MESSAGE)
            r->rd_psns += n;
        r->max = r->nxt;
    }
}

/* REQ-10, REQ-11: does this packet ask for an acknowledgement? */
static bool wants_ack(const struct qp *qp, const struct swqe *w, bool last, bool goes_on,
                      bool round_end)
{
    const struct req *r = &qp->req;
    uint32_t every = r->window / 4 < ACKREQ_EVERY ? r->window / 4 : ACKREQ_EVERY;
    return !goes_on || round_end || r->since_ackreq + 1 >= every ||
           (last && (qp->sq_sig_all || w->wr_flags & WR_F_SIGNALED)) ||
           (qp->lim && limiter_pauses(qp));
}

/* One packet into the slot; *goes_on = another may follow. False: its memory has gone. */
static bool emit(struct engine *e, struct qp *qp, struct engine_slot *slot, bool *goes_on)
{
    struct req *r = &qp->req;
    struct swqe *w = req_wqe(qp, r->cur);
    struct wire_var v;
    if (!qp_connected(qp)) {
        const struct swqe_dest *d = dest(w);
        datagram_template(e, qp, d);
    }
    uint32_t off = r->pkt << qp->mtu_shift;
    if (!describe(e, qp, w, &v, slot)) {
        w->error = WC_LOC_PROT_ERR; /* RTX-06 */
        *goes_on = false;
        return false;
    }
    unsigned npieces = slot->npieces;
    bool again = !psn_eq(r->nxt, r->max);
    bool last = r->pkt == w->npsn - 1;
    enum slot_kind kind = SLOT_REQ;
    advance(qp, w, e->now);
    if (again)
        engine_count(e, ENGINE_C_tx_retransmit);
    *goes_on = more(e, qp);
    if (qp->type == QP_RC) {
        bool message = wr_infos[w->opcode].kind == WR_MESSAGE;
        v.ackreq = message && wants_ack(qp, w, last, *goes_on, again && psn_eq(r->nxt, r->max));
        r->since_ackreq = v.ackreq ? 0 : r->since_ackreq + 1;
        if (v.ackreq || !message) {
            kind = again ? SLOT_REQ_OBLIGE_AGAIN : SLOT_REQ_OBLIGE;
            if (!r->obliged || psn_diff(r->nxt, r->ob_end) > 0)
                r->ob_end = r->nxt;
            r->obliged = 1;
        }
    } else {
        if (last)
            kind = SLOT_REQ_END;
        if (qp->type != QP_UC) {
            const struct swqe_dest *d = dest(w);
            v.qkey = d->rqkey & 0x80000000u ? qp->qkey : d->rqkey; /* KEY-08 */
            v.sqpn = qp->qpn;
        }
    }
    engine_slot_emit(qp, slot, &v, kind);
    slot->npieces = (uint16_t)npieces;
    if (w->inline_len)
        memcpy(slot->buf + slot->payload_off, body(qp, w) + off, v.payload_len);
    recorder_note(e, qp, NOTE_TX, psn(v.psn), v.opcode);
    return true;
}

/* Sending has stopped. If what is outstanding doesn't oblige the peer to answer, and nothing that
 * will be sent can, ask now: otherwise nobody would ever hear of it. */
static void settle(struct engine *e, struct qp *qp)
{
    struct req *r = &qp->req;
    psn_t limit = r->nxt;
    if (r->rnr_wait || r->fail || qp->type != QP_RC)
        return;
    if (r->cur != r->started && req_wqe(qp, r->cur)->error)
        limit = req_wqe(qp, r->cur)->first;
    if (psn_diff(limit, r->una) > 0 && !(r->obliged && psn_diff(r->ob_end, limit) >= 0))
        rtx_go_back(e, qp, psn_add(limit, PSN_MASK)); /* limit - 1 */
}

unsigned req_tx(struct engine *e, struct qp *qp, struct engine_slot *slots, unsigned n,
                uint64_t now)
{
    struct req *r = &qp->req;
    unsigned k = 0;
    if (qp->state != QPS_RTS && qp->state != QPS_SQD)
        return 0;
    bool goes_on = n && more(e, qp);
    if (goes_on && qp->sr)
        sr_hello(e, qp, now);
    while (k < n) {
        if (goes_on) {
            if (qp->lim && !limiter_check(e, qp, now))
                break;
            if (emit(e, qp, &slots[k], &goes_on)) {
                if (qp->lim)
                    limiter_charge(qp, slots[k].len, now);
                k++;
            }
            continue;
        }
        uint32_t head = r->head;
        comp_retire(e, qp, now); /* local operations, and local errors whose turn has come */
        if (qp->state != QPS_RTS && qp->state != QPS_SQD)
            break;
        psn_t nxt = r->nxt;
        settle(e, qp);
        if (head == r->head && psn_eq(nxt, r->nxt))
            break;
        goes_on = more(e, qp);
    }
    return k;
}

bool req_sent(struct engine *e, struct qp *qp, const struct engine_slot *slot, uint64_t now)
{
    struct req *r = &qp->req;
    if (qp->state != QPS_RTS && qp->state != QPS_SQD)
        return false;
    if (slot->status < 0) { /* REQ-08 */
        rtx_go_back(e, qp, psn(slot->psn));
        if (r->cur != r->started) {
            req_wqe(qp, r->cur)->error = WC_LOC_PROT_ERR;
            recorder_error(e, qp, "REQ-08 memory to send from can't be read, psn 0x%06x",
                           slot->psn);
        }
        return false;
    }
    if (qp->type != QP_RC) { /* UC-02, UD-13: the wire has it */
        r->una = r->done = psn_add(psn(slot->psn), 1);
        if (slot->kind == SLOT_REQ_END)
            comp_retire(e, qp, now);
        return true;
    }
    if (slot->kind != SLOT_REQ) {
        if (qp->t_ack && r->ack_at == TIMER_NEVER) { /* TMR-02, TMR-09 */
            r->ack_at = now + engine_ack_timeout(qp);
            qp_rearm(e, qp);
        }
        if (r->probe)
            rtx_probe_arm(e, qp, false, now);
        if (!r->rtt_at && slot->kind == SLOT_REQ_OBLIGE) {
            r->rtt_psn = psn(slot->psn);
            r->rtt_at = now;
        }
    }
    return true;
}
