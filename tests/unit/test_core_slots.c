/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The sent packets do not depend on the number of slots. Two engines get the same work requests and
 * acknowledgements; one of them gets single slots to send, the other a burst.
 */
#include "cc_of.h"
#include "core_rig.h"

#define ROUNDS 8u
#define SEEDS  250u

struct world {
    struct rig *one, *all; /* slot by slot; all at once */
    uint32_t rnd;
};

static uint32_t below(struct world *w, uint32_t n)
{
    w->rnd = w->rnd * 1103515245u + 12345u;
    return (w->rnd >> 16) % n;
}

/* A work request of a kind and length that the seed says, out of one or two ranges. */
static void post(struct world *w, uint64_t wr_id)
{
    static const enum wr_opcode ops[] = {WR_RDMA_WRITE,    WR_RDMA_WRITE, WR_SEND,
                                         WR_SEND_WITH_IMM, WR_RDMA_READ,  WR_RDMA_WRITE_WITH_IMM};
    enum wr_opcode op = ops[below(w, 6)];
    uint32_t len = below(w, 3) == 0 ? below(w, 100) : below(w, 40 * RIG_MTU);
    uint32_t cut = below(w, 5) == 0 ? below(w, len + 1) : len, off = below(w, 1000);
    unsigned flags = below(w, 4) == 0 ? WR_F_SIGNALED : 0;
    struct rig *const r[2] = {w->one, w->all};
    for (unsigned i = 0; i < 2; i++) {
        struct engine_send_wr wr = rig_wr(r[i], op, wr_id, 0, len);
        struct engine_sge sge[2] = {{RIG_VA + off, cut, r[i]->lkey},
                                    {RIG_VA + 200000, len - cut, r[i]->lkey}};
        wr.flags = (uint8_t)flags;
        wr.sge = sge;
        wr.nsge = cut < len ? 2 : 1;
        ck_assert_int_eq(engine_post_send(r[i]->e, r[i]->qp, &wr, r[i]->now), 0);
    }
}

static void compare_sent(const struct rig *a, const struct rig *b)
{
    rig_same_sent(a, b);
    for (unsigned i = 0; i < a->nsent; i++)
        ck_assert_uint_eq(a->sent[i].ip_id, b->sent[i].ip_id);
    ck_assert_uint_eq(a->nwc, b->nwc);
    for (unsigned i = 0; i < a->nwc; i++) {
        ck_assert_uint_eq(a->wc[i].wr_id, b->wc[i].wr_id);
        ck_assert_int_eq(a->wc[i].status, b->wc[i].status);
    }
}

/* The peer's answer to the sent packets: progress, a gap, not ready, or nothing until the timer
 * runs out. */
static void answer(struct world *w, uint32_t *acked)
{
    uint32_t out = w->one->nsent ? w->one->sent[w->one->nsent - 1].psn - *acked : 0;
    uint32_t n = (out & 0xFFFFFF) < 1000 ? below(w, (out & 0xFFFFFF) + 1) : 0;
    uint32_t psn = rig_psn(*acked, n);
    unsigned what = below(w, 12), syndrome = below(w, 2) ? WIRE_SYN_ACK : below(w, 4);
    uint32_t msn = below(w, 20);
    if (what == 0)
        syndrome = WIRE_SYN_NAK_SEQ;
    else if (what == 1)
        syndrome = WIRE_SYN_RNR | 1;
    struct rig *const r[2] = {w->one, w->all};
    uint64_t pause = below(w, 30000);
    for (unsigned i = 0; i < 2; i++) {
        rig_pass(r[i], pause);
        if (what == 2)
            rig_pass(r[i], 2 * RIG_T);
        else
            rig_aeth(r[i], psn, syndrome, msn);
        if (what == 1)
            rig_pass(r[i], 1000000);
    }
    if (what > 2)
        *acked = psn;
}

/* REQ-02 REQ-10 REQ-13 ACK-15. */
START_TEST(req_02_slot_by_slot)
{
    static struct world w;
    unsigned packets = 0, retries = 0;
    for (unsigned seed = 0; seed < SEEDS; seed++) {
        const struct rig_opts o = {.window = seed % 3 ? 0 : 16 + seed % 50,
                                   .credits = seed % 5 == 0,
                                   .retry_cnt = 7,
                                   .rnr_retry = 7,
                                   .max_send_wr = 64};
        uint32_t acked = RIG_PSN;
        w.rnd = seed * 2654435761u;
        w.one = rig_new(&o);
        w.all = rig_new(&o);
        if (seed % 4 == 1) { /* something limits it */
            static const char *const cc[] = {"fixed,rate=10G", "fixed,rate=20M", "dcqcn,line=10G"};
            const struct cc_conf conf = cc_of(cc[seed / 4 % 3]);
            ck_assert_int_eq(engine_qp_set_cc(w.one->e, w.one->qp, &conf, w.one->now), 0);
            ck_assert_int_eq(engine_qp_set_cc(w.all->e, w.all->qp, &conf, w.all->now), 0);
        }
        for (uint32_t i = 0; i < RIG_MEM; i += 997)
            w.one->mem[i] = w.all->mem[i] = (uint8_t)(i * 31);
        for (unsigned round = 0; round < ROUNDS; round++) {
            if (rig_state(w.one) != QPS_RTS)
                break;
            for (unsigned n = below(&w, 4); n > 0; n--)
                post(&w, round);
            while (rig_tx(w.one, 1) > 0)
                ;
            rig_tx(w.all, 0);
            compare_sent(w.one, w.all);
            answer(&w, &acked);
        }
        packets += w.all->nsent;
        retries += rig_count(w.all, ENGINE_C_tx_retransmit) > 0;
        rig_free(w.one);
        rig_free(w.all);
    }
    ck_assert_uint_gt(packets, 50 * SEEDS); /* the test tests something */
    ck_assert_uint_gt(retries, SEEDS / 5);
}
END_TEST

UNIT_MAIN("core slots", req_02_slot_by_slot)
