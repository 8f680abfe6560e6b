/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Requests of every kind over a connection, and whether their octets arrived.
 */
#include <string.h>

#include "record.h"

/* Octet i of the message in slot m, as in the captures of rxe. */
static uint8_t octet(unsigned m, uint32_t i)
{
    return (uint8_t)(m * 16 + i + i / 256);
}

struct work {
    struct record *r;
    unsigned requests, receives; /* to come, of one side */
    unsigned posted_recv[2];
};

static bool takes_recv(uint8_t wr)
{
    return wr == WR_SEND || wr == WR_SEND_WITH_IMM || wr == WR_RDMA_WRITE_WITH_IMM;
}

static bool is_atomic(uint8_t wr)
{
    return wr == WR_ATOMIC_CMP_AND_SWP || wr == WR_ATOMIC_FETCH_AND_ADD;
}

static int post_all(struct work *w, unsigned side)
{
    struct record *r = w->r;
    unsigned slot = 0;
    for (const struct record_step *s = r->s->steps; s->count; s++)
        for (unsigned i = 0; i < s->count; i++, slot++) {
            struct engine_sge sge;
            uint32_t len = is_atomic(s->wr) ? 8 : s->len;
            uint8_t *from = record_at(r, s->wr == WR_RDMA_READ ? !side : side, slot);
            struct engine_send_wr wr = record_wr(r, side, s->wr, slot, len, &sge);
            for (uint32_t k = 0; k < len; k++)
                from[k] = octet(slot, k);
            wr.flags |= s->flags;
            wr.imm = 0xABCD0000u + slot;
            if (is_atomic(s->wr)) {
                wr.remote_va = record_va(!side, RECORD_SLOTS - 1);
                wr.compare_add = i;
                wr.swap = i + 1;
            }
            if (record_post(r, side, &wr))
                return -1;
        }
    return 0;
}

static int post_recvs(struct work *w, unsigned side)
{
    for (unsigned i = 0; i < w->receives; i++)
        if (record_post_recv(w->r, side, w->posted_recv[side]++, RECORD_SLOT))
            return -1;
    return 0;
}

static bool done(void *ctx)
{
    struct work *w = ctx;
    struct record *r = w->r;
    bool lossy = r->s->qp.type == QP_UC && (r->s->loss[0] > 0 || r->s->link);
    if (r->s->late_recv) {
        uint64_t naks = engine_counters(r->host[1]->engine)[ENGINE_C_tx_rnr_nak];
        while (w->posted_recv[1] < w->receives && w->posted_recv[1] < naks)
            record_post_recv(r, 1, w->posted_recv[1]++, RECORD_SLOT);
    }
    for (unsigned side = 0; side < 2; side++) {
        bool asks = side == 0 || r->s->both, answers = side == 1 || r->s->both;
        struct engine_qp_info info;
        engine_qp_info(r->host[side]->engine, r->qp[side], &info);
        if (info.state == QPS_ERR && side == 0)
            return r->host[0]->wcs_n >= w->requests;
        size_t want = (asks ? w->requests : 0) + (answers && !lossy ? w->receives : 0);
        if (r->host[side]->wcs_n < want)
            return false;
    }
    return true;
}

/* Check the octets of WRITEs and READs. Receives are counted; the capture shows their octets. */
static int check(struct record *r)
{
    unsigned slot = 0;
    for (const struct record_step *s = r->s->steps; s->count; s++)
        for (unsigned i = 0; i < s->count; i++, slot++) {
            bool read = s->wr == WR_RDMA_READ;
            bool moves = read || s->wr == WR_RDMA_WRITE || s->wr == WR_RDMA_WRITE_WITH_IMM;
            const uint8_t *to = record_at(r, read ? 0 : 1, slot);
            for (uint32_t k = 0; moves && k < s->len; k++)
                if (to[k] != octet(slot, k))
                    return record_fail(r, "slot %u: octet %u is wrong", slot, k);
        }
    return 0;
}

int record_steps(struct record *r)
{
    struct work w = {.r = r};
    for (const struct record_step *s = r->s->steps; s->count; s++) {
        w.requests += s->count;
        w.receives += takes_recv(s->wr) ? s->count : 0;
    }
    if (record_connect(r))
        return -1;
    for (unsigned side = 0; side < 2; side++) {
        bool asks = side == 0 || r->s->both, answers = side == 1 || r->s->both;
        if ((answers && !r->s->late_recv && post_recvs(&w, side)) || (asks && post_all(&w, side)))
            return -1;
    }
    int rc = vnet_run(r->net, done, &w, RECORD_LIMIT);
    if (rc)
        return record_fail(r, "%s", r->net->why);
    vnet_run_for(r->net, 100000); /* packets still in flight */
    return r->s->qp.type == QP_UC || r->s->status ? 0 : check(r);
}
