/* SPDX-License-Identifier: BSD-3-Clause
 *
 * READs, as in test_core_burst.c: responses received in one burst have the same effects as one by
 * one, and responses sent into many slots at once are the same as a slot at a time.
 *
 * Two engines do the same. On the requester's side the test plays a responder on a path that loses,
 * repeats and spoils packets, and memory that can't always be reached; on the responder's side a
 * requester that asks again, for all or for parts, and memory that goes away.
 */
#include <errno.h>
#include <string.h>

#include "sr_rig.h"

#define SEEDS  250u
#define ROUNDS 12u
#define BURST  24u
#define DUE    1024u /* answers that the peer hasn't sent yet */

/* A region of many segments, whose length is no multiple of the MTU: packets lie across two. */
#define SEGS    16u
#define SEG_LEN (MEM_SEG_MIN + 640u)
#define SEGS_VA 0x40000000ull

static const char *const cc[] = {"fixed,rate=10G", "fixed,rate=100M", "dcqcn,line=10G",
                                 "timely,line=10G"};

/* An answer that the peer owes. */
struct answer {
    uint8_t opcode;
    uint32_t psn, len, msn;
};

/* One engine's results of a burst. */
struct taken {
    struct engine_frame frames[BURST];
    struct engine_copy copies[512 + DUE];
    unsigned ncopies; /* whose results are due */
};

struct world {
    struct rig *one, *all;
    struct taken by_one, by_all;
    struct answer due[DUE];
    unsigned ndue;
    uint32_t msn;
    bool sr; /* both ends do selective repeat */
    uint8_t frame[BURST][WIRE_FRAME_MAX];
    uint32_t len[BURST];
    uint32_t lkey, rkey; /* of the region of many segments */
    uint32_t rnd;
};

static uint32_t below(struct world *w, uint32_t n)
{
    w->rnd = w->rnd * 1103515245u + 12345u;
    return (w->rnd >> 16) % n;
}

static int32_t psn_after(uint32_t a, uint32_t b)
{
    return (int32_t)((a - b) << 8) >> 8;
}

static void scattered(struct world *w, struct rig *r)
{
    struct mem_seg seg[SEGS];
    for (unsigned k = 0; k < SEGS; k++)
        seg[k] = (struct mem_seg){r->mem, (SEGS - k) * 8192u, SEG_LEN};
    ck_assert_int_eq(mem_mr_reg(engine_mem(r->e), r->pd, SEGS_VA, SEGS * SEG_LEN,
                                MEM_REMOTE_READ | MEM_LOCAL_WRITE, seg, SEGS, w, &w->lkey,
                                &w->rkey),
                     0);
}

static void begin(struct world *w, unsigned seed, const struct rig_opts *o)
{
    memset(w, 0, sizeof(*w));
    w->rnd = seed * 2654435761u;
    w->sr = seed % 6 == 5;
    w->one = w->sr ? agreed(o) : rig_new(o);
    w->all = w->sr ? agreed(o) : rig_new(o);
    scattered(w, w->one);
    scattered(w, w->all);
    if (seed % 3 != 1)
        return;
    const struct cc_conf conf = cc_of(cc[seed / 3 % 4]);
    ck_assert_int_eq(engine_qp_set_cc(w->one->e, w->one->qp, &conf, w->one->now), 0);
    ck_assert_int_eq(engine_qp_set_cc(w->all->e, w->all->qp, &conf, w->all->now), 0);
}

static void end(struct world *w)
{
    rig_free(w->one);
    rig_free(w->all);
}

/* All effects that are visible from outside. */
static void compare_state(const struct rig *a, const struct rig *b)
{
    struct engine_qp_info x, y;
    for (unsigned c = 0; c < ENGINE_COUNTER_MAX; c++)
        ck_assert_msg(engine_counters(a->e)[c] == engine_counters(b->e)[c], "%s",
                      engine_counter_names[c]);
    ck_assert_uint_eq(a->nwc, b->nwc);
    for (unsigned i = 0; i < a->nwc; i++) {
        ck_assert_uint_eq(a->wc[i].wr_id, b->wc[i].wr_id);
        ck_assert_int_eq(a->wc[i].status, b->wc[i].status);
        ck_assert_uint_eq(a->wc[i].byte_len, b->wc[i].byte_len);
    }
    ck_assert_uint_eq(a->nev, b->nev);
    ck_assert_uint_eq(engine_deadline(a->e), engine_deadline(b->e));
    engine_qp_info(a->e, a->qp, &x);
    engine_qp_info(b->e, b->qp, &y);
    ck_assert_uint_eq(x.state, y.state);
    ck_assert_uint_eq(x.una_psn, y.una_psn);
    ck_assert_uint_eq(x.sq_psn, y.sq_psn);
    ck_assert_uint_eq(x.sq_used, y.sq_used);
    ck_assert_uint_eq(x.rd_atomic_out, y.rd_atomic_out);
    ck_assert_uint_eq(x.epsn, y.epsn);
    ck_assert_uint_eq(x.msn, y.msn);
    ck_assert_uint_eq(x.rx_packets, y.rx_packets);
    ck_assert_uint_eq(x.rx_bytes, y.rx_bytes);
    ck_assert_uint_eq(x.retransmits, y.retransmits);
    ck_assert_uint_eq(x.cc_rate, y.cc_rate);
    ck_assert_str_eq(x.error, y.error);
}

/* ---- responses come ---- */

/* A work request of a random kind and length, of one range or several. */
static void post(struct world *w, uint64_t wr_id)
{
    static const enum wr_opcode ops[] = {WR_RDMA_READ, WR_RDMA_READ, WR_RDMA_READ, WR_RDMA_WRITE,
                                         WR_ATOMIC_FETCH_AND_ADD};
    enum wr_opcode op = ops[below(w, 5)];
    uint32_t len = below(w, 4) == 0 ? below(w, 100) : below(w, 30 * RIG_MTU);
    if (below(w, 3) == 0)
        len -= len % RIG_MTU;
    uint32_t cut[2] = {len, len}, off = below(w, 1000);
    if (op == WR_ATOMIC_FETCH_AND_ADD)
        len = cut[0] = cut[1] = 8;
    else if (below(w, 3) == 0)
        cut[0] = below(w, len + 1);
    if (cut[0] < len && below(w, 2))
        cut[1] = cut[0] + below(w, len - cut[0] + 1);
    unsigned flags = below(w, 2) ? WR_F_SIGNALED : 0;
    bool many = below(w, 3) == 0;
    struct rig *const r[2] = {w->one, w->all};
    for (unsigned i = 0; i < 2; i++) {
        struct engine_send_wr wr = rig_wr(r[i], op, wr_id, 0, len);
        struct engine_sge sge[3] = {
            {(many ? SEGS_VA : RIG_VA) + off, cut[0], many ? w->lkey : r[i]->lkey},
            {RIG_VA + 200000, cut[1] - cut[0], r[i]->lkey},
            {RIG_VA + 400000 + off, len - cut[1], r[i]->lkey}};
        wr.flags = (uint8_t)flags;
        wr.sge = sge;
        wr.nsge = cut[1] < len ? 3 : cut[0] < len ? 2 : 1;
        ck_assert_int_eq(engine_post_send(r[i]->e, r[i]->qp, &wr, r[i]->now), 0);
    }
}

static void owe(struct world *w, unsigned op, uint32_t psn, uint32_t len)
{
    if (w->ndue < DUE)
        w->due[w->ndue++] = (struct answer){WIRE_OPCODE(WIRE_RC, op), psn, len, w->msn};
}

/* The peer receives the packets that were just sent, and notes the answers that it owes. For a
 * request that comes again, it answers from that PSN on anew; with selective repeat it answers only
 * that request again. */
static void ask_peer(struct world *w)
{
    for (unsigned i = 0; i < w->one->nsent; i++) {
        const struct wire_pkt *p = &w->one->sent[i];
        bool read = p->opcode == WIRE_OPCODE(WIRE_RC, WIRE_READ_REQUEST);
        uint32_t n = read && p->dma_len ? (p->dma_len + RIG_MTU - 1) / RIG_MTU : 1;
        while (!w->sr && w->ndue && psn_after(w->due[w->ndue - 1].psn, p->psn) >= 0)
            w->ndue--;
        if (!read && p->opcode != WIRE_OPCODE(WIRE_RC, WIRE_FETCH_ADD)) {
            if (p->ackreq)
                owe(w, WIRE_ACKNOWLEDGE, p->psn, 0);
            continue;
        }
        w->msn++;
        if (!read)
            owe(w, WIRE_ATOMIC_ACK, p->psn, 0);
        for (uint32_t k = 0; read && k < n; k++)
            owe(w,
                n == 1       ? WIRE_READ_RESP_ONLY
                : k == 0     ? WIRE_READ_RESP_FIRST
                : k == n - 1 ? WIRE_READ_RESP_LAST
                             : WIRE_READ_RESP_MIDDLE,
                rig_psn(p->psn, k), k == n - 1 ? p->dma_len - k * RIG_MTU : RIG_MTU);
    }
}

/* Damage a packet now and then. True: its iCRC is wrong. */
static bool spoil(struct world *w, struct wire_pkt *p)
{
    static const uint8_t syndromes[] = {WIRE_SYN_NAK_SEQ, WIRE_SYN_NAK_SEQ, WIRE_SYN_RNR | 1,
                                        WIRE_SYN_ACK, WIRE_SYN_NAK_ACCESS};
    switch (below(w, 9)) {
    case 0:
        p->psn = rig_psn(p->psn, 1);
        break;
    case 1:
        p->psn = rig_psn(p->psn, 0xFFFFFF - below(w, 3));
        break;
    case 2:
        p->payload_len = below(w, RIG_MTU);
        break;
    case 3:
        p->opcode = (uint8_t)(WIRE_READ_RESP_FIRST + below(w, 6));
        break;
    case 4: /* an answer to a later request, or a present one */
        p->opcode = WIRE_OPCODE(WIRE_RC, WIRE_ACKNOWLEDGE);
        p->psn = rig_psn(p->psn, below(w, 3));
        p->syndrome = syndromes[below(w, sizeof(syndromes))];
        p->payload_len = 0;
        break;
    case 5:
        p->tclass = 3;
        break;
    case 6: /* a request */
        p->opcode = WIRE_OPCODE(WIRE_RC, WIRE_WRITE_ONLY);
        p->va = RIG_VA;
        p->rkey = w->one->rkey;
        p->psn = RIG_RQPSN;
        p->dma_len = p->payload_len;
        break;
    case 7:
        p->sip.b[15] ^= 1;
        break;
    default:
        return true;
    }
    return false;
}

/* Up to n of the due frames, without the lost ones. Returns their number. */
static unsigned make_burst(struct world *w, unsigned n, unsigned loss)
{
    unsigned m = 0, used = 0;
    while (m < n && used < w->ndue) {
        const struct answer *a = &w->due[used++];
        if (loss && below(w, loss) == 0) {
            if (below(w, 2)) /* ... or comes again */
                used--;
            continue;
        }
        struct wire_pkt p = rig_pkt(w->one, 0, a->psn);
        p.opcode = a->opcode;
        p.payload_len = a->len;
        p.msn = a->msn;
        p.orig = a->psn;
        bool bad_icrc = loss && below(w, loss) == 0 && spoil(w, &p);
        uint8_t *f = w->frame[m];
        ck_assert_uint_gt(wire_build(f, WIRE_FRAME_MAX, &p), 0);
        memset(f + p.payload_off, (int)a->psn, p.payload_len);
        w->len[m] = (uint32_t)wire_frame_len(&p);
        wire_icrc_seal(f, w->len[m], p.ip_off, p.bth_off);
        f[w->len[m++] - 1] ^= bad_icrc;
    }
    w->ndue -= used;
    memmove(w->due, w->due + used, w->ndue * sizeof(w->due[0]));
    return m;
}

static void feed(struct world *w, struct rig *r, struct taken *t, unsigned n, unsigned step)
{
    for (unsigned i = 0; i < n; i++)
        t->frames[i] = (struct engine_frame){.data = w->frame[i], .len = w->len[i]};
    for (unsigned i = 0; i < n; i += step) {
        struct engine_copy *c = t->copies + t->ncopies;
        unsigned nc = 0;
        ck_assert_uint_lt(t->ncopies, DUE);
        ck_assert_uint_eq(engine_rx(r->e, t->frames + i, step, r->now, c, 512, &nc), step);
        for (unsigned k = 0; k < nc; k++)
            c[k].frame += i;
        t->ncopies += nc;
    }
}

static void compare_taken(const struct taken *a, const struct taken *b, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        ck_assert_uint_eq(a->frames[i].verdict, b->frames[i].verdict);
        ck_assert_uint_eq(a->frames[i].drop, b->frames[i].drop);
    }
    ck_assert_uint_eq(a->ncopies, b->ncopies);
    for (unsigned i = 0; i < a->ncopies; i++) {
        const struct engine_copy *x = &a->copies[i], *y = &b->copies[i];
        ck_assert_uint_eq(x->frame, y->frame);
        ck_assert_uint_eq(x->dst.off, y->dst.off);
        ck_assert_uint_eq(x->len, y->len);
        ck_assert_uint_eq(x->kind, y->kind);
        if (x->len > 8) /* an atomic's result isn't in the frame */
            ck_assert_ptr_eq(x->src, y->src);
    }
}

/* The results of the first n copies that wait; the one at `bad` fails. */
static void results(struct rig *r, struct taken *t, unsigned n, unsigned bad)
{
    for (unsigned i = 0; i < n; i++) {
        struct engine_result res = {t->copies[i].token, 0, i == bad ? -EFAULT : 0};
        engine_copied(r->e, &res, 1, r->now);
    }
    t->ncopies -= n;
    memmove(t->copies, t->copies + n, t->ncopies * sizeof(t->copies[0]));
}

/* Copies of this round and of earlier ones: all of them are done, or some. Or all are, and one has
 * failed: that is reported when the last copy of its record is done. */
static bool copy(struct world *w, unsigned fail)
{
    unsigned n = w->by_one.ncopies, bad = ~0u;
    if (fail && n && below(w, fail) == 0)
        bad = below(w, n);
    else if (below(w, 4) == 0)
        n = below(w, n + 1);
    results(w->one, &w->by_one, n, bad);
    results(w->all, &w->by_all, n, bad);
    return bad != ~0u;
}

/* RD-14 RD-15 REQ-24 REQ-29 REQ-33. */
START_TEST(rd_14_as_one_by_one)
{
    static struct world w;
    unsigned taken = 0, dropped = 0, completed = 0, failed = 0, again = 0;
    for (unsigned seed = 0; seed < SEEDS; seed++) {
        const struct rig_opts o = {.window = seed % 2 ? 0 : 16 + seed % 50,
                                   .credits = seed % 5 == 0,
                                   .strict_resp = seed % 7 == 0,
                                   .nak_confirm = seed % 8 == 0,
                                   .ipv6 = seed % 4 == 3,
                                   .retry_cnt = 7,
                                   .rnr_retry = 7,
                                   .max_send_wr = 128};
        begin(&w, seed, &o);
        unsigned loss = seed % 4 == 2 ? 0 : 10 + seed % 40, fail = seed % 3 ? 0 : 10;
        for (unsigned round = 0; round < ROUNDS; round++) {
            rig_clear(w.one);
            rig_clear(w.all);
            for (unsigned n = below(&w, 4); n > 0 && rig_state(w.one) == QPS_RTS; n--)
                post(&w, round * 4 + n);
            rig_tx(w.one, 0);
            rig_tx(w.all, 0);
            rig_same_sent(w.one, w.all);
            ask_peer(&w);
            uint64_t pause = below(&w, 8) == 0 ? 2 * RIG_T : below(&w, 30000);
            rig_pass(w.one, pause);
            rig_pass(w.all, pause);
            unsigned n = make_burst(&w, 1 + below(&w, BURST), loss);
            if (n) {
                feed(&w, w.one, &w.by_one, n, 1);
                feed(&w, w.all, &w.by_all, n, n);
            }
            compare_taken(&w.by_one, &w.by_all, n);
            failed += copy(&w, fail);
            compare_state(w.one, w.all);
            for (unsigned i = 0; i < n; i++)
                *(w.by_all.frames[i].drop ? &dropped : &taken) += 1;
            completed += w.all->nwc;
        }
        again += rig_count(w.all, ENGINE_C_implied_nak_seq_err) > 0;
        end(&w);
    }
    ck_assert_uint_gt(taken, SEEDS * ROUNDS * 4); /* the test tests something */
    ck_assert_uint_gt(dropped, SEEDS);
    ck_assert_uint_gt(completed, SEEDS * 2);
    ck_assert_uint_gt(failed, SEEDS / 10);
    ck_assert_uint_gt(again, SEEDS / 5);
}
END_TEST

/* REQ-29 REQ-30: with any frames before it in the burst, the last answer says that it is the last,
 * and one in the middle has as many octets as fit. */
START_TEST(req_30_each_in_its_place)
{
    static const struct answer burst[] = {
        {WIRE_READ_RESP_FIRST, RIG_PSN, RIG_MTU, 1},
        {WIRE_READ_RESP_MIDDLE, RIG_PSN + 1, RIG_MTU, 1},
        {WIRE_READ_RESP_MIDDLE, RIG_PSN + 2, RIG_MTU - 4, 1},
        {WIRE_READ_RESP_MIDDLE, RIG_PSN + 2, RIG_MTU, 1},
        {WIRE_READ_RESP_MIDDLE, RIG_PSN + 3, RIG_MTU, 1},
        {WIRE_READ_RESP_LAST, RIG_PSN + 3, RIG_MTU, 1},
    };
    static const bool good[] = {true, true, false, true, false, true};
    static struct world w;
    const struct rig_opts o = {0};
    begin(&w, 0, &o);
    rig_post(w.all, WR_RDMA_READ, 7, 4 * RIG_MTU, WR_F_SIGNALED);
    rig_tx(w.all, 0);
    w.ndue = 6;
    memcpy(w.due, burst, sizeof(burst));
    ck_assert_uint_eq(make_burst(&w, 6, 0), 6);
    feed(&w, w.all, &w.by_all, 6, 6);
    for (unsigned i = 0; i < 6; i++)
        ck_assert_uint_eq(w.by_all.frames[i].drop, good[i] ? 0 : ENGINE_C_rx_resp_unexpected);
    ck_assert_uint_eq(w.by_all.ncopies, 4);
    results(w.all, &w.by_all, 3, ~0u);
    ck_assert_uint_eq(w.all->nwc, 0);
    results(w.all, &w.by_all, 1, ~0u);
    ck_assert_uint_eq(w.all->nwc, 1);
    ck_assert_int_eq(w.all->wc[0].status, WC_SUCCESS);
    end(&w);
}
END_TEST

/* ---- responses go ---- */

/* READs that the peer may ask for again. */
struct asked {
    uint32_t psn, len, rkey;
    uint64_t va;
};

struct asker {
    struct asked last[4];
    unsigned n; /* ever */
    uint32_t psn;
};

static void both_rx(struct world *w, struct wire_pkt *p)
{
    struct wire_pkt q = *p;
    rig_rx(w->one, p, NULL);
    rig_rx(w->all, &q, NULL);
}

/* A READ that hasn't been asked for before. */
static void ask(struct world *w, struct asker *q)
{
    struct asked *a = &q->last[q->n++ % 4];
    bool many = below(w, 3) == 0;
    *a = (struct asked){.psn = q->psn,
                        .len = below(w, 8) ? below(w, 30 * RIG_MTU) : below(w, 3) * RIG_MTU,
                        .rkey = many ? w->rkey : w->one->rkey,
                        .va = (many ? SEGS_VA : RIG_VA) + below(w, 5000)};
    struct wire_pkt p = rig_pkt(w->one, WIRE_READ_REQUEST, a->psn);
    p.va = a->va;
    p.rkey = a->rkey;
    p.dma_len = a->len;
    both_rx(w, &p);
    q->psn = rig_psn(q->psn, a->len ? (a->len + RIG_MTU - 1) / RIG_MTU : 1);
}

/* One of the last READs once more, from some packet on, to its end or not. */
static void ask_again(struct world *w, const struct asker *q)
{
    if (!q->n)
        return;
    const struct asked *a = &q->last[below(w, q->n < 4 ? q->n : 4)];
    uint32_t k = a->len ? below(w, (a->len + RIG_MTU - 1) / RIG_MTU) : 0,
             rest = a->len - k * RIG_MTU;
    struct wire_pkt p = rig_pkt(w->one, WIRE_READ_REQUEST, rig_psn(a->psn, k));
    p.va = a->va + k * RIG_MTU;
    p.rkey = a->rkey;
    p.dma_len = below(w, 2) && rest > RIG_MTU ? RIG_MTU * (1 + below(w, rest / RIG_MTU)) : rest;
    both_rx(w, &p);
}

/* Requests that must be acknowledged, before or after a READ. */
static void write_to(struct world *w, struct asker *q)
{
    struct wire_pkt p = rig_pkt(w->one, WIRE_WRITE_ONLY, q->psn);
    p.va = RIG_VA + 900000;
    p.rkey = w->one->rkey;
    p.payload_len = p.dma_len = 100;
    p.ackreq = true;
    both_rx(w, &p);
    q->psn = rig_psn(q->psn, 1);
}

static void ask_something(struct world *w, struct asker *q)
{
    switch (below(w, 8)) {
    case 0:
    case 1:
        ask_again(w, q);
        break;
    case 2:
    case 3:
        write_to(w, q);
        break;
    default:
        ask(w, q);
    }
}

/* Memory that is being read goes away. */
static void deregister(struct world *w)
{
    struct rig *const r[2] = {w->one, w->all};
    bool many = below(w, 2);
    for (unsigned i = 0; i < 2; i++)
        mem_mr_dereg(engine_mem(r[i]->e), many ? w->lkey : r[i]->lkey);
}

/* RD-04 RD-05 RD-06 RD-07 RD-10 RD-11 ACK-05 CC-21. */
START_TEST(rd_05_slot_by_slot)
{
    static struct world w;
    unsigned packets = 0, replays = 0, gone = 0, acks = 0;
    for (unsigned seed = 0; seed < SEEDS; seed++) {
        const struct rig_opts o = {.max_rd_atomic = 16};
        struct asker q = {.psn = RIG_RQPSN};
        begin(&w, seed, &o);
        for (uint32_t k = 0; k < RIG_MEM; k++)
            w.one->mem[k] = w.all->mem[k] = (uint8_t)(k * 31 + (k >> 8));
        for (unsigned round = 0; round < ROUNDS && rig_state(w.one) == QPS_RTS; round++) {
            rig_clear(w.one);
            rig_clear(w.all);
            for (unsigned n = 1 + below(&w, 4); n > 0; n--)
                ask_something(&w, &q);
            if (below(&w, 60) == 0)
                deregister(&w);
            if (below(&w, 60) == 0)
                w.one->fail_gather = w.all->fail_gather = 1 + below(&w, 40);
            bool bad = w.one->fail_gather;
            unsigned slots = below(&w, 3) ? 0 : 1 + below(&w, ENGINE_BURST);
            while (rig_tx(w.one, 1) > 0)
                ;
            while (rig_tx(w.all, slots) > 0)
                ;
            rig_same_sent(w.one, w.all);
            gone += w.one->nsent && w.one->sent[w.one->nsent - 1].syndrome == WIRE_SYN_NAK_ACCESS;
            packets += w.all->nsent;
            if (bad && !w.one->fail_gather)
                break; /* packets after it in the same burst are counted, and then void */
            compare_state(w.one, w.all);
            uint64_t pause = below(&w, 2) ? below(&w, 300000) : 4000000;
            rig_pass(w.one, pause);
            rig_pass(w.all, pause);
        }
        replays += rig_count(w.all, ENGINE_C_duplicate_request) > 0;
        acks += rig_count(w.all, ENGINE_C_tx_ack) > 0;
        end(&w);
    }
    ck_assert_uint_gt(packets, SEEDS * ROUNDS * 10); /* the test tests something */
    ck_assert_uint_gt(replays, SEEDS / 2);
    ck_assert_uint_gt(acks, SEEDS / 2);
    ck_assert_uint_gt(gone, SEEDS / 20);
}
END_TEST

UNIT_MAIN("core burst READ", rd_14_as_one_by_one, req_30_each_in_its_place, rd_05_slot_by_slot)
