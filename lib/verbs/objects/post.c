/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Posting: lists of work requests, a few at a time through the stack. Receives have the same layout
 * on both sides.
 */
#include "post.h"
#include "ib.h"

#define CHUNK 8

#define SAME(field) (offsetof(struct urnic_recv_wr, field) == offsetof(struct ibv_recv_wr, field))
_Static_assert(sizeof(struct urnic_recv_wr) == sizeof(struct ibv_recv_wr) && SAME(wr_id) &&
                   SAME(next) && SAME(sg_list) && SAME(num_sge),
               "receives are posted as they are");
_Static_assert(sizeof(struct urnic_sge) == sizeof(struct ibv_sge) &&
                   offsetof(struct urnic_sge, length) == offsetof(struct ibv_sge, length) &&
                   offsetof(struct urnic_sge, lkey) == offsetof(struct ibv_sge, lkey),
               "so are the segments of all requests");
#define X(name, number) _Static_assert((int)IBV_WR_##name == (number), #name);
WR_OPCODES_VERBS(X)
#undef X
_Static_assert(URNIC_SEND_FENCE == IBV_SEND_FENCE && URNIC_SEND_SIGNALED == IBV_SEND_SIGNALED &&
                   URNIC_SEND_SOLICITED == IBV_SEND_SOLICITED &&
                   URNIC_SEND_INLINE == IBV_SEND_INLINE,
               "so are flags");

int uv_send_from(struct urnic_send_wr *to, const struct ibv_send_wr *wr, enum ibv_qp_type type)
{
    to->wr_id = wr->wr_id;
    to->next = NULL;
    to->sg_list = (const struct urnic_sge *)(const void *)wr->sg_list;
    to->num_sge = wr->num_sge;
    to->opcode = (enum urnic_wr_opcode)wr->opcode;
    to->send_flags = wr->send_flags;
    to->imm_data = wr->imm_data;
    if (type == IBV_QPT_XRC_SEND) /* after the members that programs fill in for other types */
        to->xrc.srqn = wr->qp_type.xrc.remote_srqn;
    if (type == IBV_QPT_UD) {
        to->ud.ah = wr->wr.ud.ah != NULL ? ((struct uv_ah *)wr->wr.ud.ah)->urnic : NULL;
        to->ud.remote_qpn = wr->wr.ud.remote_qpn;
        to->ud.remote_qkey = wr->wr.ud.remote_qkey;
        return wr->opcode > IBV_WR_SEND_WITH_INV ? -EINVAL : 0;
    }
    switch (wr->opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
    case IBV_WR_RDMA_READ:
    case IBV_WR_ATOMIC_WRITE:
        to->rdma.remote_addr = wr->wr.rdma.remote_addr;
        to->rdma.rkey = wr->wr.rdma.rkey;
        return 0;
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM:
    case IBV_WR_SEND_WITH_INV:
        return 0;
    case IBV_WR_LOCAL_INV:
        to->num_sge = 0;
        return 0;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        to->atomic.remote_addr = wr->wr.atomic.remote_addr;
        to->atomic.compare_add = wr->wr.atomic.compare_add;
        to->atomic.swap = wr->wr.atomic.swap;
        to->atomic.rkey = wr->wr.atomic.rkey;
        return 0;
    case IBV_WR_BIND_MW:
        return uv_bind_from(to, wr->bind_mw.mw, wr->bind_mw.rkey, &wr->bind_mw.bind_info);
    default:
        return -EINVAL; /* liburnic has another request of this number */
    }
}

int uv_bind_from(struct urnic_send_wr *to, const struct ibv_mw *mw, uint32_t rkey,
                 const struct ibv_mw_bind_info *info)
{
    if (mw == NULL || (info->mr == NULL && info->length != 0))
        return -EINVAL;
    to->num_sge = 0;
    /* Only the variant of the new key is the program's to choose. Devices ignore the other bits. */
    if (mw->type == IBV_MW_TYPE_2)
        rkey = (mw->rkey & ~0xFFu) | (rkey & 0xFFu);
    to->bind_mw = (struct urnic_wr_bind_mw){
        .mw_rkey = mw->rkey,
        .new_rkey = rkey,
        .mr_lkey = info->mr != NULL ? info->mr->lkey : 0,
        .access = info->mw_access_flags & ~(unsigned)IBV_ACCESS_LOCAL_WRITE, /* means nothing */
        .addr = info->addr,
        .length = info->length,
    };
    return 0;
}

int uv_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
    struct uv_qp *qp = uv_qp(ibqp);
    int err = 0;
    while (wr != NULL && err == 0) {
        struct urnic_send_wr out[CHUNK];
        const struct urnic_send_wr *bad = NULL;
        struct ibv_send_wr *at = wr;
        int n = 0;
        for (; at != NULL && n < CHUNK; at = at->next) {
            err = uv_send_from(&out[n], at, ibqp->qp_type);
            if (err < 0)
                break;
            if (n > 0)
                out[n - 1].next = &out[n];
            n++;
        }
        int posted = n > 0 ? urnic_post_send(qp->urnic, out, &bad) : 0;
        if (posted < 0) {
            err = posted;
            for (at = wr; at != NULL && bad != out; bad--)
                at = at->next;
        }
        wr = at;
    }
    if (err == 0)
        return 0;
    *bad_wr = wr;
    return uv_status(err);
}

int uv_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
    int err = urnic_post_recv(uv_qp(ibqp)->urnic, (const struct urnic_recv_wr *)(const void *)wr,
                              (const struct urnic_recv_wr **)(void *)bad_wr);
    return uv_status(err);
}

int uv_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
    int err =
        urnic_post_srq_recv(uv_srq(srq)->urnic, (const struct urnic_recv_wr *)(const void *)wr,
                            (const struct urnic_recv_wr **)(void *)bad_wr);
    return uv_status(err);
}
