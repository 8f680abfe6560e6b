/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Posting work requests: build the entry in shared memory, show it, ring once per list. No system
 * call unless the worker sleeps, or the queue pair seems not to be connected yet. Checks here are
 * for the caller's benefit; the daemon makes its own.
 */
#include <errno.h>
#include <string.h>

#include "client.h"

#define QPN_MAX 0xFFFFFFu /* 24 bits */

static const uint8_t opcode_types[] = {
/* bit per queue pair type that may use it */
#define RC (1u << URNIC_QPT_RC)
#define UC (1u << URNIC_QPT_UC)
#define UD (1u << URNIC_QPT_UD)
    [URNIC_WR_RDMA_WRITE] = RC | UC,
    [URNIC_WR_RDMA_WRITE_WITH_IMM] = RC | UC,
    [URNIC_WR_SEND] = RC | UC | UD,
    [URNIC_WR_SEND_WITH_IMM] = RC | UC | UD,
    [URNIC_WR_RDMA_READ] = RC,
    [URNIC_WR_ATOMIC_CMP_AND_SWP] = RC,
    [URNIC_WR_ATOMIC_FETCH_AND_ADD] = RC,
    [URNIC_WR_LOCAL_INV] = RC | UC,
    [URNIC_WR_BIND_MW] = RC | UC,
    [URNIC_WR_SEND_WITH_INV] = RC,
    [URNIC_WR_REG_MR] = RC | UC,
    [URNIC_WR_FLUSH] = RC,
    [URNIC_WR_ATOMIC_WRITE] = RC,
};

static unsigned type_bit(const struct urnic_qp *qp)
{
    return qp->type == URNIC_QPT_XRC_SEND   ? RC
           : qp->type == URNIC_QPT_XRC_RECV ? 0
                                            : 1u << qp->type;
}

/* Octets of the data of an inline request, or -EINVAL. */
static int64_t inline_length(const struct urnic_qp *qp, const struct urnic_send_wr *wr)
{
    uint64_t total = 0;
    for (int i = 0; i < wr->num_sge; i++)
        total += wr->sg_list[i].length;
    if (total > qp->max_inline || wr->opcode == URNIC_WR_RDMA_READ ||
        wr->opcode == URNIC_WR_ATOMIC_CMP_AND_SWP || wr->opcode == URNIC_WR_ATOMIC_FETCH_AND_ADD ||
        wr->opcode == URNIC_WR_REG_MR || wr->opcode == URNIC_WR_FLUSH)
        return -EINVAL;
    return (int64_t)total;
}

static void put_inline(uint8_t *at, const struct urnic_send_wr *wr)
{
    for (int i = 0; i < wr->num_sge; i++) {
        const struct urnic_sge *s = &wr->sg_list[i];
        const void *src = (const void *)(uintptr_t)s->addr;
        if (s->length == 8) /* the usual case, without a call */
            memcpy(at, src, 8);
        else if (s->length != 0)
            memcpy(at, src, s->length);
        at += s->length;
    }
}

/* Does the request's data fit one packet (UD-02)? */
static bool fits_datagram(const struct urnic_qp *qp, const struct urnic_send_wr *wr)
{
    uint64_t total = 0;
    for (int i = 0; i < wr->num_sge; i++)
        total += wr->sg_list[i].length;
    return total <= qp->max_datagram;
}

/* The extension after the entry's head, by opcode and type. */
static int put_ext(uint8_t *at, const struct urnic_qp *qp, const struct urnic_send_wr *wr)
{
    if (qp->type == URNIC_QPT_UD) {
        if (wr->ud.ah == NULL || wr->ud.ah->ctx != qp->ctx || wr->ud.remote_qpn > QPN_MAX ||
            !fits_datagram(qp, wr))
            return -EINVAL;
        struct ipc_sqe_ud ud = {
            .av = wr->ud.ah->av, .qpn = wr->ud.remote_qpn, .qkey = wr->ud.remote_qkey};
        memcpy(at, &ud, sizeof(ud));
    } else if (wr->opcode == URNIC_WR_BIND_MW) {
        struct ipc_sqe_bind bind = {
            .mw_rkey = wr->bind_mw.mw_rkey,
            .new_rkey = wr->bind_mw.new_rkey,
            .mr_lkey = wr->bind_mw.mr_lkey,
            .access = wr->bind_mw.access,
            .va = wr->bind_mw.addr,
            .len = wr->bind_mw.length,
        };
        memcpy(at, &bind, sizeof(bind));
    } else if (wr->opcode == URNIC_WR_REG_MR) {
        if (wr->reg_mr.mr == NULL || wr->reg_mr.mr->context != qp->ctx)
            return -EINVAL;
        struct ipc_sqe_reg reg = {
            .key = wr->reg_mr.key, .access = wr->reg_mr.access, .va = wr->reg_mr.iova};
        for (int i = 0; i < wr->num_sge; i++)
            reg.len += wr->sg_list[i].length;
        memcpy(at, &reg, sizeof(reg));
    } else if (wr->opcode == URNIC_WR_FLUSH) {
        struct ipc_sqe_atomic flush = {.compare_add = wr->flush.length};
        memcpy(at, &flush, sizeof(flush));
    } else {
        struct ipc_sqe_atomic atomic = {.compare_add = wr->atomic.compare_add,
                                        .swap = wr->atomic.swap};
        memcpy(at, &atomic, sizeof(atomic));
    }
    return 0;
}

/* The segments of REG_MR, counted from the beginning of the region's memory. */
static void put_segments(uint8_t *at, const struct urnic_send_wr *wr)
{
    uint64_t base = (uint64_t)(uintptr_t)wr->reg_mr.mr->addr;
    for (int i = 0; i < wr->num_sge; i++) {
        struct ipc_sge s = {.va = wr->sg_list[i].addr - base, .len = wr->sg_list[i].length};
        memcpy(at + (size_t)i * sizeof(s), &s, sizeof(s));
    }
}

_Static_assert(offsetof(struct urnic_wr_xrc, srqn) >=
                       offsetof(struct urnic_wr_atomic, rkey) + sizeof(uint32_t) &&
                   offsetof(struct urnic_wr_xrc, srqn) >=
                       offsetof(struct urnic_wr_flush, level) + sizeof(uint8_t),
               "it is said beside the others");

/* Is it a local operation? */
static bool is_local(enum urnic_wr_opcode op)
{
    return op == URNIC_WR_LOCAL_INV || op == URNIC_WR_BIND_MW || op == URNIC_WR_REG_MR;
}

static bool has_remote(enum urnic_wr_opcode op)
{
    return op == URNIC_WR_RDMA_WRITE || op == URNIC_WR_RDMA_WRITE_WITH_IMM ||
           op == URNIC_WR_RDMA_READ || op == URNIC_WR_ATOMIC_WRITE;
}

/* The FETH of a FLUSH, 0 if its arguments are invalid. */
static uint32_t flush_feth(const struct urnic_send_wr *wr)
{
    if (wr->flush.type == 0 || wr->flush.type > (URNIC_FLUSH_GLOBAL | URNIC_FLUSH_PERSISTENT) ||
        wr->flush.level > URNIC_FLUSH_MR)
        return 0;
    return wr->flush.type | (uint32_t)wr->flush.level << 4;
}

/* Build the entry at `at`, which is aligned as an entry is and has room for its units. Its fields
 * are written where they stay: a copy made from single fields waits until they are in the cache. */
static int build_send(uint8_t *at, const struct urnic_qp *qp, const struct urnic_send_wr *wr,
                      uint32_t units, uint32_t ext, uint32_t inline_len)
{
    bool atomic =
        wr->opcode == URNIC_WR_ATOMIC_CMP_AND_SWP || wr->opcode == URNIC_WR_ATOMIC_FETCH_AND_ADD;
    bool inl = wr->send_flags & URNIC_SEND_INLINE;
    struct ipc_sqe *e = (struct ipc_sqe *)(void *)at;
    *e = (struct ipc_sqe){
        .opcode = (uint8_t)wr->opcode,
        .flags = (uint8_t)wr->send_flags,
        .units = (uint8_t)units,
        .nsge = inl ? 0 : (uint8_t)wr->num_sge,
        .inline_len = (uint16_t)inline_len,
        .imm = wr->imm_data,
        .cookie = qp->sq_posted,
    };
    if (atomic) {
        e->remote_va = wr->atomic.remote_addr;
        e->rkey = wr->atomic.rkey;
    } else if (wr->opcode == URNIC_WR_FLUSH) {
        e->remote_va = wr->flush.remote_addr;
        e->rkey = wr->flush.rkey;
        e->imm = flush_feth(wr);
    } else if (has_remote(wr->opcode)) {
        e->remote_va = wr->rdma.remote_addr;
        e->rkey = wr->rdma.rkey;
    }
    at += sizeof(*e);
    if (ext > (qp->sq.xrc ? sizeof(struct ipc_sqe_xrc) : 0)) {
        int err = put_ext(at, qp, wr);
        if (err < 0)
            return err;
    }
    if (qp->sq.xrc) {
        struct ipc_sqe_xrc xrc = {.srqn = is_local(wr->opcode) ? 0 : wr->xrc.srqn};
        if (xrc.srqn > QPN_MAX)
            return -EINVAL;
        memcpy(at + ext - sizeof(xrc), &xrc, sizeof(xrc));
    }
    if (inl)
        put_inline(at + ext, wr);
    else if (wr->opcode == URNIC_WR_REG_MR)
        put_segments(at + ext, wr);
    else if (wr->num_sge > 0)
        memcpy(at + ext, wr->sg_list, (size_t)wr->num_sge * sizeof(struct ipc_sge));
    return 0;
}

_Static_assert(sizeof(struct urnic_sge) == sizeof(struct ipc_sge), "copied as they are");
#define X(name, number) _Static_assert((int)URNIC_WR_##name == (number), #name);
WR_OPCODES(X)
#undef X
#define X(name) _Static_assert(URNIC_SEND_##name == WR_F_##name, #name);
X(FENCE)
X(SIGNALED)
X(SOLICITED)
X(INLINE)
#undef X

/* Append one request; the caller publishes. */
static int append_send(struct urnic_qp *qp, const struct urnic_send_wr *wr)
{
    if ((unsigned)wr->opcode > URNIC_WR_ATOMIC_WRITE ||
        !(opcode_types[wr->opcode] & type_bit(qp)) || (wr->send_flags & ~WR_F_ALL) != 0 ||
        (unsigned)wr->num_sge > qp->max_send_sge ||
        (wr->opcode == URNIC_WR_FLUSH && (wr->num_sge > 0 || !flush_feth(wr))))
        return -EINVAL;
    uint32_t ext = ipc_ring_ext(&qp->sq, wr->opcode);
    int64_t data = (int64_t)wr->num_sge * (int64_t)sizeof(struct ipc_sge);
    uint32_t inline_len = 0;
    if (wr->send_flags & URNIC_SEND_INLINE) {
        data = inline_length(qp, wr);
        if (data < 0)
            return -EINVAL;
        inline_len = (uint32_t)data;
    }
    uint32_t units =
        ((uint32_t)sizeof(struct ipc_sqe) + ext + (uint32_t)data + IPC_UNIT - 1) / IPC_UNIT;

    uint32_t retired = atomic_load_explicit(&qp->sq_retired, memory_order_acquire);
    if (qp->sq_posted - retired >= qp->max_send_wr)
        return -ENOMEM;
    if (qp->sq.entries - (qp->sq.index - qp->sq_cons) < units) {
        qp->sq_cons = atomic_load_explicit(&qp->sq.q->cons, memory_order_acquire);
        if (qp->sq.entries - (qp->sq.index - qp->sq_cons) < units)
            return -ENOMEM;
    }

    uint32_t place = qp->sq.index & (qp->sq.entries - 1);
    uint32_t before_wrap = qp->sq.entries - place;
    uint8_t *at = qp->sq.base + (size_t)place * IPC_UNIT;
    int err;
    if (units <= before_wrap) {
        err = build_send(at, qp, wr, units, ext, inline_len);
    } else {
        _Alignas(IPC_LINE) uint8_t whole[IPC_UNIT * IPC_UNITS_MAX];
        err = build_send(whole, qp, wr, units, ext, inline_len);
        memcpy(at, whole, (size_t)before_wrap * IPC_UNIT);
        memcpy(qp->sq.base, whole + (size_t)before_wrap * IPC_UNIT,
               (size_t)(units - before_wrap) * IPC_UNIT);
    }
    if (err < 0)
        return err;
    /* The poller reads it once the daemon has answered: an order that no tool can see. */
    __atomic_store_n(&qp->wr_id[qp->sq_posted & qp->sq_mask], wr->wr_id, __ATOMIC_RELAXED);
    qp->sq_posted++;
    qp->sq.index += units;
    return 0;
}

/* Is the queue pair in a state for posting (QP-05)? The daemon moves a queue pair that follows a
 * connection, and the peer's first message may arrive before the thread that waits for the event,
 * or for urnic_accept, has been told: then the daemon is asked. */
static bool may_send(struct urnic_qp *qp)
{
    struct urnic_qp_attr attr;
    uint32_t state = atomic_load_explicit(&qp->state, memory_order_relaxed);
    if (__builtin_expect(state >= URNIC_QPS_RTS, 1))
        return true;
    if (!qp->by_cm || urnic_query_qp(qp, &attr) < 0 || attr.qp_state < URNIC_QPS_RTS)
        return false;
    atomic_compare_exchange_strong_explicit(&qp->state, &state, attr.qp_state, memory_order_relaxed,
                                            memory_order_relaxed);
    return true;
}

int urnic_post_send(struct urnic_qp *qp, const struct urnic_send_wr *wr,
                    const struct urnic_send_wr **bad_wr)
{
    if (client_orphan(qp->ctx))
        return -ENODEV;
    int err = may_send(qp) ? 0 : -EINVAL;
    client_lock(&qp->sq_lock);
    uint32_t first = qp->sq.index;
    if (err == 0 && client_dead(qp->ctx))
        err = -ENODEV;
    while (wr != NULL && err == 0) {
        err = append_send(qp, wr);
        if (err == 0)
            wr = wr->next;
    }
    if (qp->sq.index != first && ipc_ring_publish(&qp->sq))
        client_ring(qp->ctx, qp->sq_doorbell);
    client_unlock(&qp->sq_lock);
    if (err < 0 && bad_wr != NULL)
        *bad_wr = wr;
    return err;
}

int urnic_post_send_all(struct urnic_qp *qp, const struct urnic_send_wr *wr)
{
    if (client_orphan(qp->ctx))
        return -ENODEV;
    int err = may_send(qp) ? 0 : -EINVAL;
    client_lock(&qp->sq_lock);
    uint32_t first = qp->sq.index, posted = qp->sq_posted;
    if (err == 0 && client_dead(qp->ctx))
        err = -ENODEV;
    for (; wr != NULL && err == 0; wr = wr->next)
        err = append_send(qp, wr);
    if (err < 0) { /* the written entries were never published */
        qp->sq.index = first;
        qp->sq_posted = posted;
    } else if (qp->sq.index != first && ipc_ring_publish(&qp->sq)) {
        client_ring(qp->ctx, qp->sq_doorbell);
    }
    client_unlock(&qp->sq_lock);
    return err;
}

static int append_recv(struct client_rq *rq, const struct urnic_recv_wr *wr)
{
    if ((unsigned)wr->num_sge > rq->max_sge)
        return -EINVAL;
    uint32_t retired = atomic_load_explicit(&rq->retired, memory_order_acquire);
    if (rq->posted - retired >= rq->max_wr || ipc_ring_room(&rq->ring) == 0)
        return -ENOMEM;
    uint8_t *at =
        rq->ring.base + (size_t)(rq->ring.index & (rq->ring.entries - 1)) * rq->ring.stride;
    struct ipc_rqe e = {.cookie = wr->wr_id, .nsge = (uint32_t)wr->num_sge};
    memcpy(at, &e, sizeof(e));
    if (wr->num_sge > 0)
        memcpy(at + sizeof(e), wr->sg_list, (size_t)wr->num_sge * sizeof(struct ipc_sge));
    rq->ring.index++;
    rq->posted++;
    return 0;
}

static int post_recv(struct urnic_context *ctx, struct client_rq *rq, bool state_ok,
                     const struct urnic_recv_wr *wr, const struct urnic_recv_wr **bad_wr)
{
    int err = 0;
    if (client_orphan(ctx))
        return -ENODEV;
    client_lock(&rq->lock);
    uint32_t first = rq->ring.index;
    if (!state_ok)
        err = -EINVAL;
    else if (client_dead(ctx))
        err = -ENODEV;
    while (wr != NULL && err == 0) {
        err = append_recv(rq, wr);
        if (err == 0)
            wr = wr->next;
    }
    if (rq->ring.index != first && ipc_ring_publish(&rq->ring))
        client_ring(ctx, rq->doorbell);
    client_unlock(&rq->lock);
    if (err < 0 && bad_wr != NULL)
        *bad_wr = wr;
    return err;
}

int urnic_post_recv(struct urnic_qp *qp, const struct urnic_recv_wr *wr,
                    const struct urnic_recv_wr **bad_wr)
{
    bool ok = qp->srq == NULL && qp->rq.ring.q != NULL &&
              atomic_load_explicit(&qp->state, memory_order_relaxed) != URNIC_QPS_RESET;
    return post_recv(qp->ctx, &qp->rq, ok, wr, bad_wr);
}

int urnic_post_srq_recv(struct urnic_srq *srq, const struct urnic_recv_wr *wr,
                        const struct urnic_recv_wr **bad_wr)
{
    return post_recv(srq->ctx, &srq->rq, true, wr, bad_wr);
}
