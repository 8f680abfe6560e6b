/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames that come in one burst have the effects that they have one by one. Alone, a frame goes
 * through the whole parser and all checks; after another one of its flow or message it takes
 * shorter paths.
 *
 * Two engines get the same frames, one of them a burst at a time: verdicts, drops, copies, counters
 * and answers must be the same, also when copies fail. When copies are late, all that the rules
 * determine must be the same.
 */
#include <errno.h>
#include <string.h>

#include "core_rig.h"

#define BURST  12u
#define BURSTS 8u
#define SEEDS  250u
#define QPS    2u
#define LATE   (BURST * BURSTS * 2)

/* One end: an engine, its queue pairs, and the effects of a burst. */
struct end {
    struct rig *r;
    struct qp *qp[QPS];
    struct engine_frame frames[BURST];
    struct engine_copy copies[BURST * 4];
    unsigned ncopies;
    struct engine_result late[LATE]; /* copies not reported yet */
    unsigned late_of[LATE];          /* ... of which frame of all bursts */
    unsigned nlate;
};

/* The peer's next packets on one queue pair. */
struct peer {
    uint32_t psn;
    uint32_t left; /* packets of the message under way */
    bool send;
};

struct world {
    bool ipv6, uc;       /* uc: the second queue pair is UC */
    struct end one, all; /* frame by frame; all at once */
    struct peer peer[QPS];
    uint8_t frame[BURST][WIRE_FRAME_MAX];
    uint32_t len[BURST];
    uint32_t rnd;
    unsigned failing; /* one copy in this many fails; 0 = none */
    bool late;        /* copies may wait */
};

static uint32_t below(struct world *w, uint32_t n)
{
    w->rnd = w->rnd * 1103515245u + 12345u;
    return (w->rnd >> 16) % n;
}

static void end_init(const struct world *w, struct end *x)
{
    const struct rig_opts o = {.ipv6 = w->ipv6, .max_rd_atomic = w->late ? 64 : 0};
    x->r = rig_new(&o);
    x->nlate = 0;
    x->qp[0] = x->r->qp;
    for (unsigned i = 1; i < QPS; i++) {
        struct engine_qp_params params = {.arg = x->r,
                                          .type = w->uc ? QP_UC : QP_RC,
                                          .pd = x->r->pd,
                                          .max_recv_wr = 64,
                                          .max_recv_sge = 4,
                                          .send_cq = x->r->cq,
                                          .recv_cq = x->r->cq};
        ck_assert_int_eq(engine_qp_create(x->r->e, &params, &x->qp[i]), 0);
        const struct rig_opts qo = {
            .type = params.type, .max_rd_atomic = o.max_rd_atomic, .dest_qpn = RIG_PEER + i};
        rig_connect(x->r, x->qp[i], &qo, QPS_RTS);
    }
    for (unsigned i = 0; i < QPS * 16; i++) {
        /* Of one range; of four that end anywhere; of two, the second one partly not ours. */
        uint64_t va = RIG_VA + i * 8192;
        struct engine_sge one[] = {{va, 8192, x->r->lkey}};
        struct engine_sge four[] = {{va, RIG_MTU, x->r->lkey},
                                    {va + RIG_MTU, 1, x->r->lkey},
                                    {va + RIG_MTU + 1, 3000, x->r->lkey},
                                    {va + RIG_MTU + 3001, 4167, x->r->lkey}};
        struct engine_sge far[] = {{va, 2500, x->r->lkey},
                                   {RIG_VA + RIG_MEM - 4000, 5692, x->r->lkey}};
        struct engine_recv_wr wr = {.wr_id = i, .sge = one, .nsge = 1};
        if (i / QPS % 3 == 1)
            wr.sge = four, wr.nsge = 4;
        if (i / QPS % 3 == 2)
            wr.sge = far, wr.nsge = 2;
        engine_post_recv(x->r->e, x->qp[i % QPS], &wr); /* some of them lack room for it */
    }
}

/* The opcode of a packet that is the first of its message, or not, with `n` of it left. */
static unsigned opcode(bool send, bool first, uint32_t n, bool imm)
{
    if (n > 1)
        return send ? (first ? WIRE_SEND_FIRST : WIRE_SEND_MIDDLE)
                    : (first ? WIRE_WRITE_FIRST : WIRE_WRITE_MIDDLE);
    if (send)
        return first ? (imm ? WIRE_SEND_ONLY_IMM : WIRE_SEND_ONLY)
                     : (imm ? WIRE_SEND_LAST_IMM : WIRE_SEND_LAST);
    return first ? (imm ? WIRE_WRITE_ONLY_IMM : WIRE_WRITE_ONLY)
                 : (imm ? WIRE_WRITE_LAST_IMM : WIRE_WRITE_LAST);
}

/* Sometimes, between messages, a READ of some packets or an ATOMIC instead of `p`. */
static void ask(struct world *w, struct peer *peer, struct wire_pkt *p)
{
    unsigned what = below(w, 10);
    if (what > 2)
        return;
    p->payload_len = 0;
    if (what == 0) {
        uint32_t n = 1 + below(w, 3);
        p->opcode = WIRE_READ_REQUEST;
        p->dma_len = n * RIG_MTU;
        peer->psn = rig_psn(peer->psn, n - 1);
    } else {
        p->opcode = what == 1 ? WIRE_FETCH_ADD : WIRE_CMP_SWAP;
        p->va &= ~7ull;
    }
    peer->left = 0;
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
    unsigned op = opcode(p->send, first, n, below(w, 4) == 0);
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
    if (first && !(q > 0 && w->uc))
        ask(w, p, &pkt);
    p->psn = rig_psn(p->psn, 1);
    return pkt;
}

/* Make a packet that a healthy peer doesn't send, or not now. True: make its iCRC wrong. */
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

/* The result of a copy of this burst, the same for both. */
static struct engine_result outcome(const struct world *w, const struct engine_copy *c)
{
    uint32_t h = (w->rnd + c->frame) * 2654435761u + (uint32_t)c->dst.off;
    h = (h ^ h >> 15) * 2246822519u;
    bool fails = w->failing && (h >> 8) % w->failing == 0;
    return (struct engine_result){c->token, h, fails ? -EFAULT : 0};
}

static void finish(const struct world *w, struct end *x)
{
    for (unsigned i = 0; i < x->ncopies; i++) {
        struct engine_result res = outcome(w, &x->copies[i]);
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

/* The next packet of r from number *i on to `dqpn`; NULL: none. */
static const struct wire_pkt *sent_to(const struct rig *r, uint32_t dqpn, unsigned *i)
{
    while (*i < r->nsent) {
        const struct wire_pkt *p = &r->sent[(*i)++];
        if (p->dqpn == dqpn)
            return p;
    }
    return NULL;
}

/* Which queue pair answers first is left open. */
static void compare_answers(const struct rig *a, const struct rig *b, uint32_t dqpn)
{
    const struct wire_pkt *x, *y;
    unsigned i = 0, j = 0;
    do {
        x = sent_to(a, dqpn, &i);
        y = sent_to(b, dqpn, &j);
        ck_assert_int_eq(!x, !y);
        if (!x)
            return;
        ck_assert_uint_eq(x->opcode, y->opcode);
        ck_assert_uint_eq(x->psn, y->psn);
        ck_assert_uint_eq(x->syndrome, y->syndrome);
        ck_assert_uint_eq(x->msn, y->msn);
        ck_assert_uint_eq(x->orig, y->orig);
    } while (x);
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
    for (unsigned q = 0; q < QPS; q++)
        compare_answers(a->r, b->r, RIG_PEER + q);
    ck_assert_uint_eq(a->r->nwc, b->r->nwc);
    for (unsigned i = 0; i < a->r->nwc; i++) {
        ck_assert_uint_eq(a->r->wc[i].wr_id, b->r->wc[i].wr_id);
        ck_assert_int_eq(a->r->wc[i].status, b->r->wc[i].status);
        ck_assert_uint_eq(a->r->wc[i].byte_len, b->r->wc[i].byte_len);
    }
    ck_assert_uint_eq(a->r->nev, b->r->nev);
}

static void world_init(struct world *w, unsigned seed)
{
    w->rnd = seed * 2654435761u;
    w->ipv6 = seed & 1;
    w->uc = seed & 2;
    end_init(w, &w->one);
    end_init(w, &w->all);
    for (unsigned q = 0; q < QPS; q++)
        w->peer[q] = (struct peer){.psn = RIG_RQPSN};
}

/* VAL-01 RSP-01 RSP-24 RSP-25 ACK-07. */
START_TEST(val_01_as_one_by_one)
{
    static struct world w;
    unsigned taken = 0, dropped = 0, failed = 0;
    for (unsigned seed = 0; seed < SEEDS; seed++) {
        w.failing = seed % 3 == 0 ? 50 : 0;
        world_init(&w, seed);
        for (unsigned b = 0; b < BURSTS; b++) {
            unsigned n = 2 + below(&w, BURST - 1);
            make_burst(&w, n);
            feed(&w, &w.one, n, 1);
            feed(&w, &w.all, n, n);
            compare_copies(&w.one, &w.all);
            finish(&w, &w.one);
            finish(&w, &w.all);
            compare(&w, n);
            for (unsigned i = 0; i < n; i++)
                *(w.all.frames[i].drop ? &dropped : &taken) += 1;
        }
        failed += rig_count(w.all.r, ENGINE_C_resp_remote_access_errors) > 0;
        rig_free(w.one.r);
        rig_free(w.all.r);
    }
    ck_assert_uint_gt(taken, SEEDS * BURSTS * 2); /* the test tests something */
    ck_assert_uint_gt(dropped, SEEDS);
    ck_assert_uint_gt(failed, SEEDS / 10);
}
END_TEST

/* The copies of burst `b` are late, too; report the copies of frames before `until` now. */
static void report(const struct world *w, struct end *x, unsigned b, unsigned until)
{
    unsigned n = 0;
    for (unsigned i = 0; i < x->ncopies; i++) {
        ck_assert_uint_lt(x->nlate, LATE);
        x->late[x->nlate] = outcome(w, &x->copies[i]);
        x->late_of[x->nlate++] = b * BURST + x->copies[i].frame;
    }
    while (n < x->nlate && x->late_of[n] < until)
        n++;
    engine_copied(x->r->e, x->late, n, x->r->now);
    x->nlate -= n;
    memmove(x->late, x->late + n, x->nlate * sizeof(x->late[0]));
    memmove(x->late_of, x->late_of + n, x->nlate * sizeof(x->late_of[0]));
    rig_tx(x->r, 0);
}

/* The application's completions of queue pair q, and the fatal NAK to its peer. */
struct said {
    uint64_t wc[RIG_LOG][3];
    unsigned nwc;
    uint32_t state, msn, naks, nak[3];
    char error[sizeof(((struct engine_qp_info *)0)->error)];
};

static void listen(const struct end *x, unsigned q, struct said *s)
{
    struct engine_qp_info info;
    const struct rig *r = x->r;
    engine_qp_info(r->e, x->qp[q], &info);
    memset(s, 0, sizeof(*s));
    s->state = info.state;
    s->msn = info.msn;
    strcpy(s->error, info.error);
    for (unsigned i = 0; i < r->nwc; i++) {
        if (r->wc[i].qpn != info.qpn)
            continue;
        uint64_t *wc = s->wc[s->nwc++];
        wc[0] = r->wc[i].wr_id;
        wc[1] = r->wc[i].status;
        wc[2] = r->wc[i].byte_len;
    }
    const struct wire_pkt *p;
    for (unsigned i = 0; (p = sent_to(r, RIG_PEER + q, &i));) {
        if (p->opcode != WIRE_ACKNOWLEDGE || wire_aeth_kind(p->syndrome) != WIRE_AETH_NAK ||
            p->syndrome == WIRE_SYN_NAK_SEQ)
            continue;
        s->naks++;
        s->nak[0] = p->psn;
        s->nak[1] = p->syndrome;
        s->nak[2] = p->msn;
    }
}

/* RSP-24 RSP-25 ACK-07: while copies are late each engine may acknowledge any executed part, NAK a
 * gap at any time, and answer duplicates or not. Applications and peers get the same results in the
 * end. */
START_TEST(rsp_25_late)
{
    static struct world w;
    static struct said one, all;
    unsigned failed = 0;
    w.late = true;
    for (unsigned seed = 0; seed < SEEDS; seed++) {
        w.failing = 20 + seed % 7 * 20;
        world_init(&w, seed);
        for (unsigned b = 0; b < BURSTS; b++) {
            unsigned n = 2 + below(&w, BURST - 1);
            make_burst(&w, n);
            feed(&w, &w.one, n, 1);
            feed(&w, &w.all, n, n);
            unsigned end = (b + 1) * BURST, back = below(&w, 2 * BURST);
            unsigned until = b + 1 == BURSTS ? end : end > back ? end - back : 0;
            report(&w, &w.one, b, until);
            report(&w, &w.all, b, until);
        }
        for (unsigned q = 0; q < QPS; q++) {
            listen(&w.one, q, &one);
            listen(&w.all, q, &all);
            ck_assert_mem_eq(&one, &all, sizeof(one));
        }
        failed += rig_count(w.all.r, ENGINE_C_resp_remote_access_errors) > 0;
        rig_free(w.one.r);
        rig_free(w.all.r);
    }
    ck_assert_uint_gt(failed, SEEDS / 4);
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

/* RSP-24 RSP-25: a WRITE is acknowledged when the last of its packets is in memory, in any order of
 * their copies. */
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

/* RSP-25 MR-12 ACK-07: when the memory of packets is gone the message fails. Requests before the
 * first of them are executed, later ones are not, in any order of the reports. */
START_TEST(rsp_25_one_of_them_fails)
{
    static struct world w;
    static const unsigned order[][9] = {{0, 1, 2, 3, 4, 5, 6, 7, 8}, {8, 7, 6, 5, 4, 3, 2, 1, 0}};
    for (unsigned bad = 0; bad < 9; bad++) {
        for (unsigned more = 0; more < 4; more++) { /* & 2: the ones after it fail, too */
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
    ck_assert_int_eq(mem_mr_dereg(m, r->lkey), 0); /* unused */
    engine_copied(r->e, &second, 1, r->now);
    rig_free(r);
}
END_TEST

UNIT_MAIN("core burst", val_01_as_one_by_one, rsp_24_all_of_them, rsp_25_one_of_them_fails,
          rsp_25_late, uc_04_each_holds_its_region)
