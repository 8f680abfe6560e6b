/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A responder with all behaviour that the rules allow and ours never shows: it acknowledges at
 * random, also in the middle of messages, answers partial READs in either form, answers duplicates
 * with the PSN of an ATOMIC, sends random RNR NAKs and a sequence NAK after them; and the path
 * loses, repeats and reorders. All work completes, in order, with the right data.
 */
#include <stdlib.h>
#include <string.h>

#include "core_rig.h"

#define SEEDS   120u
#define WORK    40u
#define SLOT    8192u /* octets of the memory of one work request, at both ends */
#define ANSWERS 8192u
#define PATIENT 10000u /* rounds until it counts as hung */

/* The responder's record of a READ or ATOMIC. */
struct asked {
    uint32_t psn, n, len, opcode;
    uint64_t va, orig;
};

struct answer {
    struct wire_pkt pkt;
    uint64_t va; /* READ responses: of their octets */
};

struct stranger {
    struct rig *r;
    uint32_t rnd, loss;        /* loss: percent, either way */
    uint32_t epsn, msn, acked; /* acked: of the last SEND, WRITE (or ATOMIC) executed */
    uint32_t at;               /* octets of the message under way */
    uint64_t va;
    bool naked, rnr;  /* it has sent a sequence NAK; an RNR NAK */
    bool continued;   /* answers parts of READs in the continued form (REQ-30) */
    bool atomic_acks; /* acknowledges duplicates with an ATOMIC's PSN (REQ-27) */
    bool owes;
    struct asked asked[WORK];
    unsigned nasked;
    uint8_t mem[2 * WORK * SLOT]; /* WRITEs go to the first half, SENDs to the other, in order */
    uint64_t counter;
    unsigned received, sends;
    struct answer out[ANSWERS];
    unsigned head, tail;
};

static uint32_t below(struct stranger *s, uint32_t n)
{
    s->rnd = s->rnd * 1103515245u + 12345u;
    return (s->rnd >> 16) % n;
}

/* The responder's memory for READs. */
static uint8_t octet(uint64_t va)
{
    return (uint8_t)((va * 2654435761u) >> 13);
}

static struct answer *answer(struct stranger *s, unsigned op, uint32_t psn, unsigned syndrome)
{
    ck_assert_uint_lt(s->tail - s->head, ANSWERS);
    struct answer *a = &s->out[s->tail++ % ANSWERS];
    a->pkt = rig_pkt(s->r, op, psn);
    a->pkt.syndrome = (uint8_t)syndrome;
    a->pkt.msn = below(s, 20) ? s->msn : below(s, 1000); /* REQ-34 */
    return a;
}

static void ack(struct stranger *s)
{
    s->owes = false;
    answer(s, WIRE_ACKNOWLEDGE, s->acked, WIRE_SYN_ACK);
}

/* A READ from packet k on. */
static void read_reply(struct stranger *s, const struct asked *a, uint32_t k)
{
    s->owes = false;
    for (uint32_t i = k; i < a->n; i++) {
        bool first = i == (s->continued ? 0 : k), last = i + 1 == a->n;
        unsigned op = first && last ? WIRE_READ_RESP_ONLY
                      : first       ? WIRE_READ_RESP_FIRST
                      : last        ? WIRE_READ_RESP_LAST
                                    : WIRE_READ_RESP_MIDDLE;
        struct answer *x = answer(s, op, rig_psn(a->psn, i), WIRE_SYN_ACK);
        x->va = a->va + i * RIG_MTU;
        x->pkt.payload_len = a->len - i * RIG_MTU < RIG_MTU ? a->len - i * RIG_MTU : RIG_MTU;
    }
}

static void duplicate(struct stranger *s, const struct wire_pkt *p, unsigned flags)
{
    if (!(flags & (WIRE_F_READ | WIRE_F_ATOMIC))) {
        if (p->ackreq || below(s, 2))
            ack(s);
        return;
    }
    for (unsigned i = 0; i < s->nasked; i++) {
        const struct asked *a = &s->asked[i];
        uint32_t k = rig_psn(p->psn, 0x1000000 - a->psn);
        if (k >= a->n)
            continue;
        ck_assert_uint_eq(a->opcode, p->opcode);
        if (flags & WIRE_F_ATOMIC) {
            answer(s, WIRE_ATOMIC_ACK, p->psn, WIRE_SYN_ACK)->pkt.orig = a->orig;
        } else {
            ck_assert_uint_eq(p->va, a->va + k * RIG_MTU);
            ck_assert_uint_eq(p->dma_len, a->len - k * RIG_MTU);
            read_reply(s, a, k);
        }
        return;
    }
    ck_abort_msg("PSN %06x was never a READ or ATOMIC", p->psn);
}

static void execute(struct stranger *s, const struct wire_pkt *p, const uint8_t *data,
                    unsigned flags)
{
    if (flags & (WIRE_F_READ | WIRE_F_ATOMIC)) {
        struct asked *a = &s->asked[s->nasked++];
        *a = (struct asked){.psn = p->psn, .n = 1, .len = p->dma_len, .opcode = p->opcode};
        a->va = p->va;
        s->msn++;
        if (flags & WIRE_F_ATOMIC) {
            a->orig = s->counter++;
            answer(s, WIRE_ATOMIC_ACK, p->psn, WIRE_SYN_ACK)->pkt.orig = a->orig;
            if (s->atomic_acks)
                s->acked = p->psn;
            s->owes = false;
        } else {
            a->n = a->len ? (a->len + RIG_MTU - 1) / RIG_MTU : 1;
            read_reply(s, a, 0);
        }
        s->epsn = rig_psn(s->epsn, a->n);
        return;
    }
    if (flags & WIRE_F_START) {
        s->at = 0;
        s->va = flags & WIRE_F_SEND ? (WORK + s->sends) * SLOT : p->va;
    }
    ck_assert_uint_le(s->va + s->at + p->payload_len, sizeof(s->mem));
    memcpy(s->mem + s->va + s->at, data, p->payload_len);
    s->at += p->payload_len;
    s->acked = p->psn;
    s->epsn = rig_psn(s->epsn, 1);
    if (flags & WIRE_F_END) {
        s->msn++;
        s->sends += flags & WIRE_F_SEND ? 1 : 0;
        s->received += flags & (WIRE_F_SEND | WIRE_F_IMM) ? 1 : 0;
    }
    s->owes |= p->ackreq;
    if (s->owes ? below(s, 3) > 0 : below(s, 8) == 0)
        ack(s);
}

/* A request arrives. */
static void request(struct stranger *s, const struct wire_pkt *p, const uint8_t *data)
{
    unsigned flags = wire_opcodes[p->opcode].flags;
    int32_t d = (int32_t)((p->psn - s->epsn) << 8) >> 8;
    if (d < 0) {
        duplicate(s, p, flags);
    } else if (d > 0) {
        if (s->naked || (s->rnr && below(s, 2)))
            return;
        s->naked = true;
        answer(s, WIRE_ACKNOWLEDGE, s->epsn, WIRE_SYN_NAK_SEQ);
        s->owes = false;
    } else if (!(flags & WIRE_F_WRITE && !(flags & WIRE_F_IMM)) && below(s, 8) == 0) {
        s->rnr = true;
        s->naked = false;
        answer(s, WIRE_ACKNOWLEDGE, s->epsn, WIRE_SYN_RNR | 1);
        s->owes = false;
    } else {
        s->rnr = s->naked = false;
        execute(s, p, data, flags);
    }
}

/* One answer goes over the path. */
static void deliver(struct stranger *s)
{
    uint8_t data[RIG_MTU];
    struct answer *a = &s->out[s->head % ANSWERS];
    if (s->tail - s->head > 1 && below(s, 40) == 0) { /* overtaken by the next */
        struct answer *b = &s->out[(s->head + 1) % ANSWERS], t = *a;
        *a = *b;
        *b = t;
    }
    for (uint32_t i = 0; i < a->pkt.payload_len; i++)
        data[i] = octet(a->va + i);
    if (below(s, 100) >= s->loss) {
        struct wire_pkt again = a->pkt;
        rig_rx(s->r, &a->pkt, data);
        if (below(s, 40) == 0)
            rig_rx(s->r, &again, data);
    }
    s->head++;
}

struct work {
    unsigned op;
    uint32_t len;
};

static void post(struct stranger *s, struct work *w, unsigned i)
{
    static const unsigned ops[] = {WR_RDMA_WRITE, WR_RDMA_WRITE,          WR_RDMA_WRITE_WITH_IMM,
                                   WR_SEND,       WR_SEND_WITH_IMM,       WR_RDMA_READ,
                                   WR_RDMA_READ,  WR_ATOMIC_FETCH_AND_ADD};
    w->op = ops[below(s, sizeof(ops) / sizeof(ops[0]))];
    w->len = below(s, 4) == 0 ? below(s, 10) : below(s, SLOT + 1);
    if (w->op == WR_ATOMIC_FETCH_AND_ADD)
        w->len = 8;
    struct engine_send_wr wr = rig_wr(s->r, w->op, i, i * SLOT, w->len);
    wr.remote_va = (uint64_t)i * SLOT;
    wr.compare_add = 1;
    wr.flags = below(s, 3) ? WR_F_SIGNALED : 0;
    if (i == WORK - 1)
        wr.flags = WR_F_SIGNALED;
    if (below(s, 8) == 0)
        wr.flags |= WR_F_FENCE;
    ck_assert_int_eq(engine_post_send(s->r->e, s->r->qp, &wr, s->r->now), 0);
}

static void check(struct stranger *s, const struct work *work, unsigned seed)
{
    struct rig *r = s->r;
    uint64_t atomics = 0;
    unsigned received = 0, sends = 0;
    for (unsigned i = 0; i + 1 < r->nwc; i++)
        ck_assert_uint_lt(r->wc[i].wr_id, r->wc[i + 1].wr_id);
    for (unsigned i = 0; i < WORK; i++) {
        const uint8_t *ours = r->mem + i * SLOT;
        const struct work *w = &work[i];
        uint64_t orig;
        if (w->op == WR_RDMA_WRITE || w->op == WR_RDMA_WRITE_WITH_IMM) {
            ck_assert_msg(!memcmp(s->mem + i * SLOT, ours, w->len), "seed %u: %u", seed, i);
            received += w->op == WR_RDMA_WRITE_WITH_IMM;
        } else if (w->op == WR_RDMA_READ) {
            for (uint32_t k = 0; k < w->len; k++)
                ck_assert_msg(ours[k] == octet((uint64_t)i * SLOT + k), "seed %u: %u", seed, i);
        } else if (w->op == WR_ATOMIC_FETCH_AND_ADD) {
            memcpy(&orig, ours, 8);
            ck_assert_uint_eq(orig, atomics);
            atomics++;
        } else {
            ck_assert_msg(!memcmp(s->mem + (WORK + sends++) * SLOT, ours, w->len), "seed %u: %u",
                          seed, i);
            received++;
        }
    }
    ck_assert_uint_eq(s->received, received);
    ck_assert_uint_eq(s->counter, atomics);
}

/* The sent requests; completed ones are still needed. */
static unsigned forget(struct rig *r)
{
    for (unsigned i = 0; i < r->nsent; i++)
        free(r->payload[i]);
    r->nsent = 0;
    return 0;
}

/* REQ-18 REQ-22 REQ-23 REQ-24 REQ-27 REQ-30 REQ-34 RD-12 RNR-02 TMR-07. */
START_TEST(req_22_a_stranger)
{
    static struct stranger s;
    static struct work work[WORK];
    for (unsigned seed = 0; seed < SEEDS; seed++) {
        const struct rig_opts o = {.retry_cnt = 7,
                                   .rnr_retry = 7,
                                   .max_send_wr = 64,
                                   .max_rd_atomic = 1 + (int)(seed % 5),
                                   .window = seed % 3 ? 0 : 16};
        memset(&s, 0, sizeof(s));
        s.r = rig_new(&o);
        s.rnd = seed * 2654435761u;
        s.epsn = RIG_PSN;
        s.acked = rig_psn(RIG_PSN, 0xFFFFFF);
        s.loss = seed % 12;
        s.continued = seed & 1;
        s.atomic_acks = seed & 2;
        for (uint32_t i = 0; i < WORK * SLOT; i++)
            s.r->mem[i] = (uint8_t)(i * 31 + i / 8192);
        for (unsigned i = 0; i < WORK; i++)
            post(&s, &work[i], i);
        unsigned round = 0, seen = 0;
        while (s.r->nwc == 0 || s.r->wc[s.r->nwc - 1].wr_id != WORK - 1) {
            ck_assert_msg(round++ < PATIENT, "seed %u hangs", seed);
            rig_tx(s.r, 1 + below(&s, 20));
            for (; seen < s.r->nsent; seen++)
                if (below(&s, 100) >= s.loss)
                    request(&s, &s.r->sent[seen], s.r->payload[seen]);
            if (seen > RIG_LOG / 2)
                seen = forget(s.r);
            if (s.owes && below(&s, 2))
                ack(&s);
            for (unsigned n = below(&s, 12); n > 0 && s.head != s.tail; n--)
                deliver(&s);
            rig_pass(s.r, below(&s, 20000));
        }
        ck_assert_msg(rig_state(s.r) == QPS_RTS, "seed %u ends in an error", seed);
        check(&s, work, seed);
        rig_free(s.r);
    }
}
END_TEST

UNIT_MAIN("core stranger", req_22_a_stranger)
