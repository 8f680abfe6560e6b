/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames that come in one burst have the effects that they have one by one. Alone, a frame goes the
 * whole way through parser and checks; behind another one of its flow or message, shorter ways.
 *
 * Two engines get the same frames, one of them a burst at a time: verdicts, drops, copies, counters
 * and answers must be the same. And two get the same work requests and acknowledgements, of which
 * one has a slot at a time to send into: packets must be the same.
 */
#include <errno.h>
#include <string.h>

#include "cc_of.h"
#include "core_rig.h"

#define BURST  12u
#define BURSTS 8u
#define SEEDS  250u
#define QPS    2u

/* One end: an engine, its queue pairs, and what a burst led to. */
struct end {
    struct rig *r;
    struct qp *qp[QPS];
    struct engine_frame frames[BURST];
    struct engine_copy copies[BURST * 4];
    unsigned ncopies;
};

/* What the peer is about to send on one queue pair. */
struct peer {
    uint32_t psn;
    uint32_t left; /* packets of the message under way */
    bool send;
};

struct world {
    bool ipv6, uc;       /* uc: the second queue pair is one */
    struct end one, all; /* frame by frame; all at once */
    struct peer peer[QPS];
    uint8_t frame[BURST][WIRE_FRAME_MAX];
    uint32_t len[BURST];
    uint32_t rnd;
};

static uint32_t below(struct world *w, uint32_t n)
{
    w->rnd = w->rnd * 1103515245u + 12345u;
    return (w->rnd >> 16) % n;
}

static void end_init(const struct world *w, struct end *x)
{
    const struct rig_opts o = {.ipv6 = w->ipv6};
    x->r = rig_new(&o);
    x->qp[0] = x->r->qp;
    for (unsigned i = 1; i < QPS; i++) {
        struct engine_qp_params params = {.arg = x->r,
                                          .type = w->uc ? QP_UC : QP_RC,
                                          .pd = x->r->pd,
                                          .max_recv_wr = 64,
                                          .send_cq = x->r->cq,
                                          .recv_cq = x->r->cq};
        ck_assert_int_eq(engine_qp_create(x->r->e, &params, &x->qp[i]), 0);
        rig_connect(x->r, x->qp[i], &(struct rig_opts){.type = params.type}, QPS_RTS);
    }
    for (unsigned i = 0; i < QPS * 16; i++) {
        struct engine_sge sge = {RIG_VA + i * 8192, 8192, x->r->lkey};
        struct engine_recv_wr wr = {.wr_id = i, .sge = &sge, .nsge = 1};
        engine_post_recv(x->r->e, x->qp[i % QPS], &wr); /* some of them lack room for it */
    }
}

/* The next packet of a healthy peer. */
static struct wire_pkt healthy(struct world *w, unsigned q)
{
    struct peer *p = &w->peer[q];
    struct rig *r = w->one.r;
    bool first = p->left == 0;
    uint32_t n = first ? 1 + below(w, 9) : p->left;
    if (first)
        p->send = below(w, 4) == 0;
    unsigned op = p->send ? (first ? (n == 1 ? WIRE_SEND_ONLY : WIRE_SEND_FIRST)
                                   : (n == 1 ? WIRE_SEND_LAST : WIRE_SEND_MIDDLE))
                          : (first ? (n == 1 ? WIRE_WRITE_ONLY : WIRE_WRITE_FIRST)
                                   : (n == 1 ? WIRE_WRITE_LAST : WIRE_WRITE_MIDDLE));
    struct wire_pkt pkt = rig_pkt(r, op, p->psn);
    pkt.dqpn = engine_qp_num(w->one.qp[q]);
    if (q > 0 && w->uc)
        pkt.opcode |= WIRE_OPCODE(WIRE_UC, 0);
    pkt.payload_len = RIG_MTU;
    pkt.dma_len = n * RIG_MTU;
    pkt.va = RIG_VA + 65536 * q + below(w, 1000);
    pkt.rkey = r->rkey;
    pkt.ackreq = below(w, 3) == 0;
    pkt.sport = (uint16_t)(0xC000 + below(w, 2));
    pkt.ip_id = (uint16_t)below(w, 65536);
    p->left = n - 1;
    p->psn = rig_psn(p->psn, 1);
    return pkt;
}

/* Something that a healthy peer doesn't do, or not now. True: the iCRC is to be wrong. */
static bool spoil(struct world *w, struct wire_pkt *p)
{
    switch (below(w, 14)) {
    case 0:
        p->psn = rig_psn(p->psn, 1); /* a gap */
        break;
    case 1:
        p->psn = rig_psn(p->psn, 0xFFFFFF); /* again */
        break;
    case 2:
        p->payload_len = below(w, RIG_MTU);
        break;
    case 3:
        p->opcode = (uint8_t)below(w, WIRE_READ_REQUEST);
        break;
    case 4:
        p->rkey ^= 1;
        break;
    case 5:
        p->dma_len -= p->dma_len > RIG_MTU ? RIG_MTU * below(w, 3) : 1;
        break;
    case 6:
        p->tclass = (uint8_t)below(w, 4);
        break;
    case 7:
        p->ttl = 63;
        break;
    case 8:
        p->opcode = WIRE_READ_REQUEST;
        p->payload_len = 0;
        p->dma_len = 100;
        break;
    case 9:
        p->opcode = WIRE_FETCH_ADD;
        p->payload_len = 0;
        p->va &= ~7ull;
        break;
    case 10:
        p->sip.b[15] ^= 1;
        break;
    case 11:
        p->dqpn ^= 0x10;
        break;
    case 12:
        p->pkey = 0x1234;
        break;
    default:
        return true;
    }
    return false;
}

static void make_burst(struct world *w, unsigned n)
{
    unsigned q = 0;
    for (unsigned i = 0; i < n; i++) {
        if (below(w, 6) == 0)
            q = below(w, QPS);
        struct wire_pkt p = healthy(w, q);
        bool bad_icrc = below(w, 40) == 0 && spoil(w, &p);
        uint8_t *f = w->frame[i];
        size_t off = wire_build(f, WIRE_FRAME_MAX, &p);
        ck_assert_uint_gt(off, 0);
        for (uint32_t k = 0; k < p.payload_len; k++)
            f[off + k] = (uint8_t)(w->rnd + k);
        w->len[i] = (uint32_t)wire_frame_len(&p);
        wire_icrc_seal(f, w->len[i], p.ip_off, p.bth_off);
        f[w->len[i] - 1] ^= bad_icrc;
    }
}

/* `step` frames at a time. */
static void feed(struct world *w, struct end *x, unsigned n, unsigned step)
{
    x->ncopies = 0;
    for (unsigned i = 0; i < n; i++)
        x->frames[i] = (struct engine_frame){.data = w->frame[i], .len = w->len[i]};
    for (unsigned i = 0; i < n; i += step) {
        struct engine_copy *c = x->copies + x->ncopies;
        unsigned nc = 0;
        ck_assert_uint_eq(engine_rx(x->r->e, x->frames + i, step, x->r->now, c, 512, &nc), step);
        for (unsigned k = 0; k < nc; k++)
            c[k].frame += i;
        x->ncopies += nc;
    }
}

static void finish(struct end *x)
{
    for (unsigned i = 0; i < x->ncopies; i++) {
        struct engine_result res = {x->copies[i].token, 0, 0};
        engine_copied(x->r->e, &res, 1, x->r->now);
    }
    rig_tx(x->r, 0);
}

static void compare_copies(const struct end *a, const struct end *b)
{
    ck_assert_uint_eq(a->ncopies, b->ncopies);
    for (unsigned i = 0; i < a->ncopies; i++) {
        const struct engine_copy *x = &a->copies[i], *y = &b->copies[i];
        ck_assert_uint_eq(x->frame, y->frame);
        ck_assert_ptr_eq(x->src, y->src);
        ck_assert_uint_eq(x->dst.off, y->dst.off);
        ck_assert_uint_eq(x->len, y->len);
        ck_assert_uint_eq(x->qpn, y->qpn);
        ck_assert_uint_eq(x->kind, y->kind);
        ck_assert_uint_eq(x->a, y->a);
    }
}

static void compare(const struct world *w, unsigned n)
{
    const struct end *a = &w->one, *b = &w->all;
    for (unsigned i = 0; i < n; i++) {
        ck_assert_uint_eq(a->frames[i].verdict, b->frames[i].verdict);
        ck_assert_uint_eq(a->frames[i].disposition, b->frames[i].disposition);
        ck_assert_uint_eq(a->frames[i].drop, b->frames[i].drop);
    }
    for (unsigned c = 0; c < ENGINE_COUNTER_MAX; c++)
        ck_assert_msg(engine_counters(a->r->e)[c] == engine_counters(b->r->e)[c], "%s",
                      engine_counter_names[c]);
    ck_assert_uint_eq(a->r->nsent, b->r->nsent);
    for (unsigned i = 0; i < a->r->nsent; i++) {
        const struct wire_pkt *x = &a->r->sent[i], *y = &b->r->sent[i];
        ck_assert_uint_eq(x->opcode, y->opcode);
        ck_assert_uint_eq(x->dqpn, y->dqpn);
        ck_assert_uint_eq(x->psn, y->psn);
        ck_assert_uint_eq(x->syndrome, y->syndrome);
        ck_assert_uint_eq(x->msn, y->msn);
    }
    ck_assert_uint_eq(a->r->nwc, b->r->nwc);
    for (unsigned i = 0; i < a->r->nwc; i++) {
        ck_assert_uint_eq(a->r->wc[i].wr_id, b->r->wc[i].wr_id);
        ck_assert_int_eq(a->r->wc[i].status, b->r->wc[i].status);
        ck_assert_uint_eq(a->r->wc[i].byte_len, b->r->wc[i].byte_len);
    }
    ck_assert_uint_eq(a->r->nev, b->r->nev);
}

/* VAL-01 RSP-01 RSP-24. */
START_TEST(val_01_as_one_by_one)
{
    static struct world w;
    unsigned taken = 0, dropped = 0;
    for (unsigned seed = 0; seed < SEEDS; seed++) {
        w.rnd = seed * 2654435761u;
        w.ipv6 = seed & 1;
        w.uc = seed & 2;
        end_init(&w, &w.one);
        end_init(&w, &w.all);
        for (unsigned q = 0; q < QPS; q++)
            w.peer[q] = (struct peer){.psn = RIG_RQPSN};
        for (unsigned b = 0; b < BURSTS; b++) {
            unsigned n = 2 + below(&w, BURST - 1);
            make_burst(&w, n);
            feed(&w, &w.one, n, 1);
            feed(&w, &w.all, n, n);
            compare_copies(&w.one, &w.all);
            finish(&w.one);
            finish(&w.all);
            compare(&w, n);
            for (unsigned i = 0; i < n; i++)
                *(w.all.frames[i].drop ? &dropped : &taken) += 1;
        }
        rig_free(w.one.r);
        rig_free(w.all.r);
    }
    ck_assert_uint_gt(taken, SEEDS * BURSTS * 2); /* the test tests something */
    ck_assert_uint_gt(dropped, SEEDS);
}
END_TEST

/* A WRITE of `n` packets at offset `off` of the region into w->frame[at..). */
static void make_write(struct world *w, unsigned at, uint32_t psn, unsigned n)
{
    w->peer[0] = (struct peer){.psn = psn};
    for (unsigned i = 0; i < n; i++) {
        struct wire_pkt p = rig_pkt(w->all.r,
                                    n == 1       ? WIRE_WRITE_ONLY
                                    : i == 0     ? WIRE_WRITE_FIRST
                                    : i == n - 1 ? WIRE_WRITE_LAST
                                                 : WIRE_WRITE_MIDDLE,
                                    rig_psn(psn, i));
        p.va = RIG_VA;
        p.rkey = w->all.r->rkey;
        p.payload_len = RIG_MTU;
        p.dma_len = n * RIG_MTU;
        p.ackreq = i == n - 1;
        uint8_t *f = w->frame[at + i];
        ck_assert_uint_gt(wire_build(f, WIRE_FRAME_MAX, &p), 0);
        memset(f + p.payload_off, (int)i, RIG_MTU);
        w->len[at + i] = (uint32_t)wire_frame_len(&p);
        wire_icrc_seal(f, w->len[at + i], p.ip_off, p.bth_off);
    }
}

/* RSP-24 RSP-25: a WRITE is acknowledged when the last of its packets is in memory, in whatever
 * order they get there. */
START_TEST(rsp_24_all_of_them)
{
    static struct world w;
    static const unsigned order[][5] = {{0, 1, 2, 3, 4}, {4, 3, 2, 1, 0}, {2, 0, 4, 1, 3}};
    for (unsigned o = 0; o < 3; o++) {
        end_init(&w, &w.all);
        make_write(&w, 0, RIG_RQPSN, 5);
        feed(&w, &w.all, 5, 5);
        ck_assert_uint_eq(w.all.ncopies, 5);
        for (unsigned i = 0; i < 5; i++) {
            ck_assert_uint_eq(rig_tx(w.all.r, 0), 0);
            struct engine_result res = {w.all.copies[order[o][i]].token, 0, 0};
            engine_copied(w.all.r->e, &res, 1, w.all.r->now);
        }
        ck_assert_uint_eq(rig_tx(w.all.r, 0), 1);
        ck_assert_uint_eq(w.all.r->sent[0].psn, rig_psn(RIG_RQPSN, 4));
        ck_assert_uint_eq(w.all.r->sent[0].msn, 1);
        rig_free(w.all.r);
    }
}
END_TEST

/* RSP-25 MR-12 ACK-07: when the memory of packets is gone the message fails; what came before the
 * first of them has been executed, and what came behind it hasn't, in whatever order they are
 * reported. */
START_TEST(rsp_25_one_of_them_fails)
{
    static struct world w;
    static const unsigned order[][9] = {{0, 1, 2, 3, 4, 5, 6, 7, 8}, {8, 7, 6, 5, 4, 3, 2, 1, 0}};
    for (unsigned bad = 0; bad < 9; bad++) {
        for (unsigned more = 0; more < 4; more++) { /* & 2: those behind it fail, too */
            end_init(&w, &w.all);
            make_write(&w, 0, RIG_RQPSN, 2);
            make_write(&w, 2, rig_psn(RIG_RQPSN, 2), 4);
            make_write(&w, 6, rig_psn(RIG_RQPSN, 6), 3);
            feed(&w, &w.all, 9, 9);
            ck_assert_uint_eq(w.all.ncopies, 9);
            for (unsigned i = 0; i < 9; i++) {
                unsigned k = order[more & 1][i];
                bool fails = k == bad || (more & 2 && k > bad);
                struct engine_result res = {w.all.copies[k].token, 0, fails ? -EFAULT : 0};
                engine_copied(w.all.r->e, &res, 1, w.all.r->now);
            }
            ck_assert_uint_eq(rig_tx(w.all.r, 0), 1);
            const struct wire_pkt *nak = &w.all.r->sent[0];
            ck_assert_uint_eq(nak->syndrome, WIRE_SYN_NAK_ACCESS);
            ck_assert_uint_eq(nak->msn, (bad >= 2) + (bad >= 6));
            ck_assert_uint_eq(nak->psn, rig_psn(RIG_RQPSN, bad));
            rig_free(w.all.r);
        }
    }
}
END_TEST

/* ---- sending ---- */

/* A work request of a kind and length that the seed says, out of one or two ranges. */
static void post(struct world *w, uint64_t wr_id)
{
    static const enum engine_wr_opcode ops[] = {WR_RDMA_WRITE, WR_RDMA_WRITE,
                                                WR_SEND,       WR_SEND_WITH_IMM,
                                                WR_RDMA_READ,  WR_RDMA_WRITE_WITH_IMM};
    enum engine_wr_opcode op = ops[below(w, 6)];
    uint32_t len = below(w, 3) == 0 ? below(w, 100) : below(w, 40 * RIG_MTU);
    uint32_t cut = below(w, 5) == 0 ? below(w, len + 1) : len, off = below(w, 1000);
    unsigned flags = below(w, 4) == 0 ? WR_F_SIGNALED : 0;
    struct rig *const r[2] = {w->one.r, w->all.r};
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
    ck_assert_uint_eq(a->nsent, b->nsent);
    for (unsigned i = 0; i < a->nsent; i++) {
        const struct wire_pkt *x = &a->sent[i], *y = &b->sent[i];
        ck_assert_uint_eq(x->opcode, y->opcode);
        ck_assert_uint_eq(x->psn, y->psn);
        ck_assert_uint_eq(x->ackreq, y->ackreq);
        ck_assert_uint_eq(x->ip_id, y->ip_id);
        ck_assert_uint_eq(x->va, y->va);
        ck_assert_uint_eq(x->dma_len, y->dma_len);
        ck_assert_uint_eq(x->payload_len, y->payload_len);
        ck_assert_mem_eq(a->payload[i], b->payload[i], x->payload_len);
    }
    ck_assert_uint_eq(a->nwc, b->nwc);
    for (unsigned i = 0; i < a->nwc; i++) {
        ck_assert_uint_eq(a->wc[i].wr_id, b->wc[i].wr_id);
        ck_assert_int_eq(a->wc[i].status, b->wc[i].status);
    }
}

/* What the peer says to what has been sent: progress, a gap, not ready, or nothing until the timer
 * runs out. */
static void answer(struct world *w, uint32_t *acked)
{
    uint32_t out = w->one.r->nsent ? w->one.r->sent[w->one.r->nsent - 1].psn - *acked : 0;
    uint32_t n = (out & 0xFFFFFF) < 1000 ? below(w, (out & 0xFFFFFF) + 1) : 0;
    uint32_t psn = rig_psn(*acked, n);
    unsigned what = below(w, 12), syndrome = below(w, 2) ? WIRE_SYN_ACK : below(w, 4);
    uint32_t msn = below(w, 20);
    if (what == 0)
        syndrome = WIRE_SYN_NAK_SEQ;
    else if (what == 1)
        syndrome = WIRE_SYN_RNR | 1;
    struct rig *const r[2] = {w->one.r, w->all.r};
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
        w.one.r = rig_new(&o);
        w.all.r = rig_new(&o);
        if (seed % 4 == 1) { /* something limits it */
            static const char *const cc[] = {"fixed,rate=10G", "fixed,rate=20M", "dcqcn,line=10G"};
            const struct cc_conf conf = cc_of(cc[seed / 4 % 3]);
            ck_assert_int_eq(engine_qp_set_cc(w.one.r->e, w.one.r->qp, &conf, w.one.r->now), 0);
            ck_assert_int_eq(engine_qp_set_cc(w.all.r->e, w.all.r->qp, &conf, w.all.r->now), 0);
        }
        for (uint32_t i = 0; i < RIG_MEM; i += 997)
            w.one.r->mem[i] = w.all.r->mem[i] = (uint8_t)(i * 31);
        for (unsigned round = 0; round < BURSTS; round++) {
            if (rig_state(w.one.r) != QPS_RTS)
                break;
            for (unsigned n = below(&w, 4); n > 0; n--)
                post(&w, round);
            while (rig_tx(w.one.r, 1) > 0)
                ;
            rig_tx(w.all.r, 0);
            compare_sent(w.one.r, w.all.r);
            answer(&w, &acked);
        }
        packets += w.all.r->nsent;
        retries += rig_count(w.all.r, ENGINE_C_tx_retransmit) > 0;
        rig_free(w.one.r);
        rig_free(w.all.r);
    }
    ck_assert_uint_gt(packets, 50 * SEEDS); /* the test tests something */
    ck_assert_uint_gt(retries, SEEDS / 5);
}
END_TEST

/* UC-04 MR-06: of two WRITEs in one burst, of which the first never ends, each holds its own
 * region until it is in memory. */
START_TEST(uc_04_each_holds_its_region)
{
    static struct world w;
    const struct rig_opts o = {.type = QP_UC};
    struct rig *r = rig_new(&o);
    struct mem *m = engine_mem(r->e);
    struct mem_seg seg = {r->mem, 0, RIG_MTU};
    uint32_t lkey = 0, rkey = 0;
    unsigned n = 0;
    w.all.r = r;
    ck_assert_int_eq(mem_mr_reg(m, r->pd, RIG_VA, RIG_MTU, MEM_REMOTE_WRITE | MEM_LOCAL_WRITE, &seg,
                                1, &w, &lkey, &rkey),
                     0);
    for (unsigned i = 0; i < 2; i++) {
        struct wire_pkt p =
            rig_pkt(r, WIRE_OPCODE(WIRE_UC, i == 0 ? WIRE_WRITE_FIRST : WIRE_WRITE_ONLY),
                    rig_psn(RIG_RQPSN, i));
        p.va = RIG_VA;
        p.rkey = i == 0 ? r->rkey : rkey;
        p.payload_len = RIG_MTU;
        p.dma_len = i == 0 ? 2 * RIG_MTU : RIG_MTU;
        ck_assert_uint_gt(wire_build(w.frame[i], WIRE_FRAME_MAX, &p), 0);
        memset(w.frame[i] + p.payload_off, 0, RIG_MTU);
        w.len[i] = (uint32_t)wire_frame_len(&p);
        wire_icrc_seal(w.frame[i], w.len[i], p.ip_off, p.bth_off);
        w.all.frames[i] = (struct engine_frame){.data = w.frame[i], .len = w.len[i]};
    }
    ck_assert_uint_eq(engine_rx(r->e, w.all.frames, 2, r->now, w.all.copies, 512, &n), 2);
    ck_assert_uint_eq(n, 2);
    ck_assert_int_eq(mem_mr_dereg(m, lkey), -EINPROGRESS);
    struct engine_result first = {w.all.copies[0].token, 0, 0};
    struct engine_result second = {w.all.copies[1].token, 0, 0};
    engine_copied(r->e, &first, 1, r->now);
    ck_assert_int_eq(mem_mr_dereg(m, r->lkey), 0); /* nobody uses that one */
    engine_copied(r->e, &second, 1, r->now);
    rig_free(r);
}
END_TEST

UNIT_MAIN("core burst", req_02_slot_by_slot, val_01_as_one_by_one, rsp_24_all_of_them,
          rsp_25_one_of_them_fails, uc_04_each_holds_its_region)
