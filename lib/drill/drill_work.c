/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Statements that post work and check memory.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "drill_priv.h"

#define SGES 64u

/* `from M+0,100 and M+1000,20` as scatter/gather entries. */
static bool sges(struct drill_run *run, const struct drill_stmt *st, struct engine_sge *out,
                 uint8_t *n)
{
    const struct drill_arg *a = drill_arg(st, WR_FROM);
    *n = 0;
    for (unsigned i = 0; a && i < a->v.nranges; i++) {
        uint64_t off = 0, len = 0, lkey;
        const struct drill_object *mr = drill_range(run, st, &a->v.ranges[i], &off, &len);
        if (!mr || !drill_number(run, st, WR_LKEY, mr->lkey, &lkey))
            return false;
        if (len > UINT32_MAX)
            return drill_end(run, DRILL_WRONG, st,
                             "a piece of memory has at most 32 bits of length");
        out[(*n)++] = (struct engine_sge){mr->va + off, (uint32_t)len, (uint32_t)lkey};
    }
    return true;
}

/* `to R+0x100`: the address, and the key of the object. */
static bool remote(struct drill_run *run, const struct drill_stmt *st, struct engine_send_wr *wr)
{
    const struct drill_arg *to = drill_arg(st, WR_TO);
    const struct drill_object *o =
        to && to->v.lo.t[0].name ? drill_find(run, to->v.lo.t[0].name) : NULL;
    uint64_t rkey;
    if (!drill_number(run, st, WR_TO, 0, &wr->remote_va) ||
        !drill_number(run, st, WR_RKEY, o && o->kind != KIND_VAR ? o->rkey : 0, &rkey))
        return false;
    wr->rkey = (uint32_t)rkey;
    return true;
}

static bool bind_window(struct drill_run *run, const struct drill_stmt *st,
                        struct engine_send_wr *wr, struct drill_object **mw)
{
    const struct drill_arg *w = drill_arg(st, WR_MW), *m = drill_arg(st, WR_MR);
    uint64_t new_rkey, access;
    if (!w || !m)
        return drill_end(run, DRILL_WRONG, st, "bind_mw needs mw NAME and mr NAME");
    *mw = drill_need(run, st, w->v.name, KIND_MW);
    struct drill_object *mr = drill_find(run, m->v.name);
    if (!*mw || !mr || mr->kind != KIND_MR)
        return *mw ? drill_end(run, DRILL_WRONG, st, "'%s' is no memory region", m->v.name) : false;
    if (!drill_number(run, st, WR_NEW_RKEY, ((*mw)->rkey & ~0xFFull) | (((*mw)->rkey + 1) & 0xFF),
                      &new_rkey) ||
        !drill_number(run, st, WR_ACCESS, MEM_REMOTE_ANY, &access) ||
        !drill_number(run, st, WR_VA, mr->va, &wr->mw_va) ||
        !drill_number(run, st, WR_LEN, mr->len, &wr->mw_len))
        return false;
    wr->mw_rkey = (*mw)->rkey;
    wr->mw_new_rkey = (uint32_t)new_rkey;
    wr->mw_lkey = mr->lkey;
    wr->mw_access = (uint32_t)access;
    return true;
}

/* Register a whole fast-register region, at an address and with rights. */
static bool fast_register(struct drill_run *run, const struct drill_stmt *st,
                          struct engine_send_wr *wr, struct drill_object **fr)
{
    const struct drill_arg *m = drill_arg(st, WR_MR);
    uint64_t key, access;
    if (!m || !(*fr = drill_need(run, st, m->v.name, KIND_MR)))
        return drill_end(run, DRILL_WRONG, st, "reg_mr needs mr NAME");
    if (!drill_number(run, st, WR_NEW_RKEY, ((*fr)->rkey & ~0xFFull) | (((*fr)->rkey + 1) & 0xFF),
                      &key) ||
        !drill_number(run, st, WR_ACCESS, DRILL_ACCESS, &access) ||
        !drill_number(run, st, WR_VA, (*fr)->va, &wr->mw_va))
        return false;
    wr->mw_new_rkey = (uint32_t)key;
    wr->mw_len = (*fr)->len;
    wr->mw_access = (uint32_t)access;
    wr->segs = &(*fr)->seg;
    wr->nsegs = 1;
    return true;
}

static bool datagram(struct drill_run *run, const struct drill_stmt *st,
                     const struct drill_object *qp, struct engine_send_wr *wr)
{
    const struct drill_arg *dip = drill_arg(st, WR_DIP);
    uint64_t rqpn, rqkey, pkey;
    wr->av = drill_av(qp);
    if (dip) {
        wr->av.dgid = dip->v.addr;
        if (wire_addr_is_multicast(&dip->v.addr))
            wire_mcast_mac(&dip->v.addr, wr->av.dmac);
    }
    if (!drill_number(run, st, WR_RQPN, qp->peer_qpn, &rqpn) ||
        !drill_number(run, st, WR_QKEY, qp->qkey, &rqkey) ||
        !drill_number(run, st, WR_PKEY_INDEX, 0, &pkey))
        return false;
    wr->rqpn = (uint32_t)rqpn;
    wr->rqkey = (uint32_t)rqkey;
    wr->pkey_index = (uint16_t)pkey;
    return true;
}

/* The arguments of a FLUSH: its octets, and the FETH. */
static bool flush(struct drill_run *run, const struct drill_stmt *st, struct engine_send_wr *wr)
{
    uint64_t feth;
    if (!drill_number(run, st, WR_LEN, 0, &wr->compare_add) ||
        !drill_number(run, st, WR_FETH, WIRE_FETH_GLOBAL, &feth))
        return false;
    wr->imm = (uint32_t)feth;
    return true;
}

static bool operands(struct drill_run *run, const struct drill_stmt *st, struct engine_send_wr *wr)
{
    uint64_t v, add, imm;
    bool cas = wr->opcode == WR_ATOMIC_CMP_AND_SWP;
    if (!drill_number(run, st, WR_IMM, 0, &imm) || !drill_number(run, st, WR_INV, 0, &v))
        return false;
    wr->imm = drill_arg(st, WR_INV) ? (uint32_t)v : drill_imm((uint32_t)imm);
    if (!drill_number(run, st, WR_ADD, 0, &add) ||
        !drill_number(run, st, WR_COMPARE, 0, &wr->compare_add) ||
        !drill_number(run, st, WR_SWAP, 0, &wr->swap))
        return false;
    if (!cas)
        wr->compare_add = add;
    return true;
}

static uint8_t flags_of(const struct drill_stmt *st)
{
    return (uint8_t)((drill_flag(st, WR_UNSIGNALED) ? 0 : WR_F_SIGNALED) |
                     (drill_flag(st, WR_FENCE) ? WR_F_FENCE : 0) |
                     (drill_flag(st, WR_SOLICITED) ? WR_F_SOLICITED : 0) |
                     (drill_arg(st, WR_INLINE) ? WR_F_INLINE : 0));
}

static bool inline_data(struct drill_run *run, const struct drill_stmt *st,
                        struct engine_send_wr *wr, uint8_t *buf, uint32_t size)
{
    const struct drill_arg *a = drill_arg(st, WR_INLINE);
    uint64_t len;
    if (!a)
        return true;
    uint32_t own;
    if (!drill_octets_len(&a->v.data, &own) && !drill_arg(st, WR_LEN))
        return drill_end(run, DRILL_WRONG, st, "inline: how many octets? 'len' is missing");
    if (!drill_number(run, st, WR_LEN, own, &len) || !drill_octets_fit(run, st, &a->v.data, len))
        return false;
    if (len > size)
        return drill_end(run, DRILL_WRONG, st, "inline: at most %u octets", size);
    wr->inline_len = (uint16_t)len;
    wr->inline_data = buf;
    return drill_octets(run, st, &a->v.data, 0, buf, (uint32_t)len);
}

static bool post_send(struct drill_run *run, const struct drill_stmt *st)
{
    struct drill_object *qp = drill_need(run, st, st->name, KIND_QP), *mw = NULL, *fr = NULL;
    struct engine_sge sge[SGES];
    uint8_t octets[1024];
    bool go;
    static const int datagrams[] = {WR_RQPN, WR_QKEY, WR_PKEY_INDEX, WR_DIP};
    struct engine_send_wr wr = {.opcode = (uint8_t)st->word, .flags = flags_of(st), .sge = sge};
    if (!qp || !drill_number(run, st, WR_ID, 0, &wr.wr_id) || !sges(run, st, sge, &wr.nsge) ||
        !remote(run, st, &wr) || !operands(run, st, &wr) ||
        !inline_data(run, st, &wr, octets, sizeof(octets)))
        return false;
    for (size_t i = 0; i < sizeof(datagrams) / sizeof(datagrams[0]); i++)
        if (qp->type != QP_UD && drill_arg(st, datagrams[i]))
            return drill_end(run, DRILL_WRONG, st, "'%s' is for datagrams, '%s' sends none",
                             drill_arg(st, datagrams[i])->field->name, qp->name);
    if (drill_arg(st, WR_LEN) && wr.opcode != WR_BIND_MW && wr.opcode != WR_FLUSH &&
        !drill_arg(st, WR_INLINE))
        return drill_end(run, DRILL_WRONG, st, "'len' is of 'inline': memory has its own");
    uint64_t srqn;
    if (!drill_number(run, st, WR_SRQN, 0, &srqn))
        return false;
    if (qp->type != QP_XRC_INI && drill_arg(st, WR_SRQN))
        return drill_end(run, DRILL_WRONG, st, "'srqn' is for XRC, '%s' is none", qp->name);
    wr.xrc_srqn = (uint32_t)srqn;
    if (qp->type == QP_UD && !datagram(run, st, qp, &wr))
        return false;
    if (wr.opcode == WR_BIND_MW && !bind_window(run, st, &wr, &mw))
        return false;
    if (wr.opcode == WR_FLUSH && !flush(run, st, &wr))
        return false;
    if (wr.opcode == WR_REG_MR && !fast_register(run, st, &wr, &fr))
        return false;
    int rc = engine_post_send(run->e, qp->qp, &wr, run->now);
    if (!rc && fr) {
        fr->lkey = fr->rkey = wr.mw_new_rkey;
        fr->va = wr.mw_va;
    }
    if (!rc && mw)
        mw->rkey = wr.mw_new_rkey;
    if (!rc && mw) {
        mw->va = wr.mw_va;
        mw->len = wr.mw_len;
    }
    run->last = run->now;
    if (!drill_returned(run, st, rc, &go))
        return false;
    drill_bench_flush(run);
    return !run->over;
}

static bool post_recv(struct drill_run *run, const struct drill_stmt *st)
{
    struct drill_object *o = drill_find(run, st->name), *own;
    struct engine_sge sge[SGES];
    struct engine_recv_wr wr = {.sge = sge};
    bool go;
    if (!o || o->dead || (o->kind != KIND_QP && o->kind != KIND_SRQ))
        return drill_end(run, DRILL_WRONG, st, "'%s' takes no receives", st->name);
    if (run->wire) {
        const struct drill_arg *a = drill_arg(st, WR_FROM);
        if (a || run->recvs_used == run->device.recvs)
            return drill_end(run, DRILL_SKIP, st, "the device's receives are %u of %u octets",
                             run->device.recvs, run->device.recv_len);
        run->recvs_used++;
        return true;
    }
    if (!drill_number(run, st, WR_ID, run->recv_ids++, &wr.wr_id) || !sges(run, st, sge, &wr.nsge))
        return false;
    if (!drill_arg(st, WR_FROM)) { /* a buffer that no script checks, as on the wire */
        if (!(own = drill_recv_buffer(run, st, o->pd)))
            return false;
        sge[0] = (struct engine_sge){own->va, (uint32_t)own->len, own->lkey};
        wr.nsge = 1;
    }
    int rc = o->kind == KIND_QP ? engine_post_recv(run->e, o->qp, &wr)
                                : engine_post_srq_recv(run->e, o->srq, &wr);
    return drill_returned(run, st, rc, &go);
}

/* ---- memory ---- */

/* The region that holds all octets of a statement; NULL = the run is over. */
static struct drill_object *octets_of(struct drill_run *run, const struct drill_stmt *st,
                                      uint64_t *off, uint64_t *len)
{
    uint32_t n;
    struct drill_object *mr = drill_range(run, st, &st->range, off, len);
    if (!mr)
        return NULL;
    if (!st->range.len.n && drill_octets_len(&st->data, &n))
        *len = n;
    if (!drill_octets_fit(run, st, &st->data, *len))
        return NULL;
    if (!mr->octets || *off > mr->len || *len > mr->len - *off) {
        drill_end(run, DRILL_WRONG, st, "'%s' has only %" PRIu64 " octets", mr->name, mr->len);
        return NULL;
    }
    return mr;
}

static bool fill(struct drill_run *run, const struct drill_stmt *st)
{
    uint64_t off = 0, len = 0;
    struct drill_object *mr = octets_of(run, st, &off, &len);
    if (!mr || !drill_octets(run, st, &st->data, 0, mr->octets + off, (uint32_t)len))
        return false;
    memcpy(mr->same + off, mr->octets + off, len);
    return true;
}

static bool mem(struct drill_run *run, const struct drill_stmt *st)
{
    uint64_t off = 0, len = 0;
    uint8_t want[4096];
    const struct drill_object *mr = octets_of(run, st, &off, &len);
    if (!mr)
        return false;
    for (uint64_t at = 0; at < len; at += sizeof(want)) {
        uint32_t n = len - at < sizeof(want) ? (uint32_t)(len - at) : (uint32_t)sizeof(want);
        if (st->data.kind == DATA_SAME)
            memcpy(want, mr->same + off + at, n);
        else if (!drill_octets(run, st, &st->data, at, want, n))
            return false;
        for (uint32_t i = 0; i < n; i++) {
            uint8_t got = mr->octets[off + at + i];
            if (got == want[i])
                continue;
            snprintf(run->r->fields, sizeof(run->r->fields),
                     "%s+%" PRIu64 ": expected 0x%02x, got 0x%02x", mr->name, off + at + i, want[i],
                     got);
            return drill_end(run, DRILL_FAIL, st, "other octets are there");
        }
    }
    run->r->checks++;
    return true;
}

bool drill_do_work(struct drill_run *run, const struct drill_stmt *st)
{
    bool counted = st->verb->kind == DO_COPIES ? st->word == COPIES_GO || st->word == COPIES_FAIL
                                               : st->verb->kind == DO_GATHER && st->word;
    uint64_t n;
    if (!drill_eval(run, st, &st->expr, ROLE_VALUE, &n))
        return false;
    if ((st->expr.n && !counted) || n > UINT32_MAX)
        return drill_end(run, DRILL_WRONG, st, "no such number here: %" PRIu64, n);
    switch (st->verb->kind) {
    case DO_POST:
        return post_send(run, st);
    case DO_RECV:
        return post_recv(run, st);
    case DO_FILL:
        return fill(run, st);
    case DO_MEM:
        return mem(run, st);
    case DO_COPIES:
        run->hold = st->word != COPIES_FREE;
        if (st->word != COPIES_HOLD)
            drill_bench_copies(run, st->expr.n ? (unsigned)n : DRILL_COPIES,
                               st->word == COPIES_FAIL ? -EFAULT : 0);
        return !run->over;
    case DO_GATHER: /* fail N: the next but N */
        run->gather_fail = (uint32_t)st->word;
        run->gather_skip = (uint32_t)n;
        return true;
    case DO_PORT:
        run->port_full = st->word;
        drill_bench_flush(run);
        return !run->over;
    default:
        return drill_end(run, DRILL_WRONG, st, "not known here");
    }
}
