/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "core_rig.h"

/* The packets of a message of each length: REQ-02, REQ-03, REQ-04, PSN-06, HDR-09. */
static const struct cut {
    const char *rule;
    enum wr_opcode op;
    uint32_t len;
    unsigned npkt;
    uint8_t opcodes[4];
    uint32_t lens[4];
} cuts[] = {
    {"REQ-03 zero length WRITE is ONLY without payload",
     WR_RDMA_WRITE,
     0,
     1,
     {WIRE_WRITE_ONLY},
     {0}},
    {"REQ-03 zero length SEND", WR_SEND, 0, 1, {WIRE_SEND_ONLY}, {0}},
    {"REQ-02 one octet", WR_RDMA_WRITE, 1, 1, {WIRE_WRITE_ONLY}, {1}},
    {"REQ-02 MTU - 1", WR_SEND, 1023, 1, {WIRE_SEND_ONLY}, {1023}},
    {"REQ-02 exactly MTU is ONLY", WR_SEND, 1024, 1, {WIRE_SEND_ONLY}, {1024}},
    {"REQ-02 MTU + 1", WR_SEND, 1025, 2, {WIRE_SEND_FIRST, WIRE_SEND_LAST}, {1024, 1}},
    {"REQ-02 never an empty LAST",
     WR_RDMA_WRITE,
     2048,
     2,
     {WIRE_WRITE_FIRST, WIRE_WRITE_LAST},
     {1024, 1024}},
    {"REQ-02 four packets",
     WR_RDMA_WRITE,
     3073,
     4,
     {WIRE_WRITE_FIRST, WIRE_WRITE_MIDDLE, WIRE_WRITE_MIDDLE, WIRE_WRITE_LAST},
     {1024, 1024, 1024, 1}},
    {"REQ-04 immediate in LAST only",
     WR_RDMA_WRITE_WITH_IMM,
     2000,
     2,
     {WIRE_WRITE_FIRST, WIRE_WRITE_LAST_IMM},
     {1024, 976}},
    {"REQ-04 SEND immediate, ONLY", WR_SEND_WITH_IMM, 5, 1, {WIRE_SEND_ONLY_IMM}, {5}},
    {"REQ-04 invalidate in LAST only",
     WR_SEND_WITH_INV,
     3000,
     3,
     {WIRE_SEND_FIRST, WIRE_SEND_MIDDLE, WIRE_SEND_LAST_INV},
     {1024, 1024, 952}},
    {"PSN-06 READ is one packet", WR_RDMA_READ, 5000, 1, {WIRE_READ_REQUEST}, {0}},
    {"PSN-06 atomic", WR_ATOMIC_FETCH_AND_ADD, 8, 1, {WIRE_FETCH_ADD}, {0}},
    {"PSN-06 atomic", WR_ATOMIC_CMP_AND_SWP, 8, 1, {WIRE_CMP_SWAP}, {0}},
};

START_TEST(req_02_segmentation)
{
    for (unsigned i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
        const struct cut *c = &cuts[i];
        struct rig *r = rig_new(NULL);
        for (unsigned k = 0; k < 5000; k++)
            r->mem[k] = (uint8_t)(k * 31 + k / 256);
        struct engine_send_wr wr = rig_wr(r, c->op, 1, 0, c->len);
        ck_assert_int_eq(engine_post_send(r->e, r->qp, &wr, r->now), 0);
        ck_assert_msg(rig_tx(r, 0) == c->npkt, "%s: %u packets", c->rule, r->nsent);
        uint32_t off = 0;
        for (unsigned k = 0; k < c->npkt; k++) {
            const struct wire_pkt *p = &r->sent[k];
            ck_assert_msg(p->opcode == c->opcodes[k], "%s: opcode %u", c->rule, p->opcode);
            ck_assert_msg(p->psn == rig_psn(RIG_PSN, k), "%s: psn", c->rule); /* PSN-01 */
            ck_assert_msg(p->payload_len == c->lens[k], "%s: length", c->rule);
            ck_assert_msg(!memcmp(r->payload[k], r->mem + off, c->lens[k]), "%s: data", c->rule);
            ck_assert_msg(!p->pad || k == c->npkt - 1, "HDR-06 %s: pad", c->rule);
            ck_assert_msg(p->migreq && !p->fecn && !p->becn, "HDR-04 %s", c->rule);
            ck_assert_uint_eq(p->dqpn, RIG_PEER);
            off += c->lens[k];
            const struct wire_opcode_info *o = &wire_opcodes[p->opcode];
            if (o->headers & WIRE_H_RETH) { /* HDR-09: the whole message */
                ck_assert_uint_eq(p->dma_len, c->len);
                ck_assert_uint_eq(p->va, 0x7000000);
                ck_assert_uint_eq(p->rkey, 0x5555);
            }
            if (o->headers & WIRE_H_IMMDT)
                ck_assert_uint_eq(p->imm, 0xABCD1234);
            if (o->headers & WIRE_H_IETH)
                ck_assert_uint_eq(p->rkey, 0xABCD1234);
        }
        if (c->op == WR_ATOMIC_FETCH_AND_ADD) /* ATM-01: the addend goes first */
            ck_assert_uint_eq(r->sent[0].swap_add, 7);
        if (c->op == WR_ATOMIC_CMP_AND_SWP) {
            ck_assert_uint_eq(r->sent[0].swap_add, 9);
            ck_assert_uint_eq(r->sent[0].compare, 7);
        }
        rig_free(r);
    }
}
END_TEST

/* REQ-01, REQ-06, PSN-05: messages in posting order, contiguous PSNs, a READ reserves its
 * responses. */
START_TEST(req_06_psn_across_messages)
{
    struct rig *r = rig_new(NULL);
    rig_post(r, WR_SEND, 1, 2500, 0);      /* 3 PSNs */
    rig_post(r, WR_RDMA_READ, 2, 4096, 0); /* 1 packet, 4 PSNs */
    rig_post(r, WR_RDMA_WRITE, 3, 1, 0);
    rig_post(r, WR_ATOMIC_FETCH_AND_ADD, 4, 8, 0);
    rig_post(r, WR_SEND, 5, 0, 0);
    static const struct {
        uint8_t op;
        uint32_t at;
    } want[] = {{WIRE_SEND_FIRST, 0},   {WIRE_SEND_MIDDLE, 1}, {WIRE_SEND_LAST, 2},
                {WIRE_READ_REQUEST, 3}, {WIRE_WRITE_ONLY, 7},  {WIRE_FETCH_ADD, 8},
                {WIRE_SEND_ONLY, 9}};
    ck_assert_uint_eq(rig_tx(r, 0), 7);
    for (unsigned i = 0; i < 7; i++) {
        ck_assert_uint_eq(r->sent[i].opcode, want[i].op);
        ck_assert_uint_eq(r->sent[i].psn, rig_psn(RIG_PSN, want[i].at));
    }
    rig_free(r);
}
END_TEST

/* HDR-03: SE only on the last packet of a SEND or WRITE with immediate that asks for it. */
START_TEST(hdr_03_solicited)
{
    static const struct {
        enum wr_opcode op;
        bool se;
    } t[] = {{WR_SEND, true},        {WR_SEND_WITH_IMM, true}, {WR_RDMA_WRITE_WITH_IMM, true},
             {WR_RDMA_WRITE, false}, {WR_RDMA_READ, false},    {WR_ATOMIC_FETCH_AND_ADD, false}};
    for (unsigned i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        struct rig *r = rig_new(NULL);
        rig_post(r, t[i].op, 1, t[i].op == WR_ATOMIC_FETCH_AND_ADD ? 8 : 2000,
                 WR_F_SIGNALED | WR_F_SOLICITED);
        unsigned n = rig_tx(r, 0);
        for (unsigned k = 0; k < n; k++)
            ck_assert_int_eq(r->sent[k].se, t[i].se && k == n - 1);
        rig_free(r);
    }
}
END_TEST

/* REQ-10: the last packet of a burst asks; unsignalled ones in the middle don't; one in K does. */
START_TEST(req_10_ackreq)
{
    struct rig *r = rig_new(NULL);
    for (unsigned i = 0; i < 100; i++)
        rig_post(r, WR_RDMA_WRITE, i, 8, 0);
    ck_assert_uint_eq(rig_tx(r, 0), 100);
    unsigned asked = 0;
    for (unsigned i = 0; i < 100; i++)
        asked += r->sent[i].ackreq;
    ck_assert(r->sent[99].ackreq);
    ck_assert(r->sent[63].ackreq); /* K = 64 */
    ck_assert_uint_eq(asked, 2);
    rig_clear(r);
    rig_post(r, WR_RDMA_WRITE, 1, 8, WR_F_SIGNALED);
    rig_post(r, WR_RDMA_WRITE, 2, 2048, 0);
    rig_tx(r, 0);
    ck_assert(r->sent[0].ackreq);  /* signalled */
    ck_assert(!r->sent[1].ackreq); /* FIRST */
    ck_assert(r->sent[2].ackreq);  /* last of the burst */
    rig_free(r);
}
END_TEST

/* REQ-10 every stop asks: window full, fence, READ limit. */
START_TEST(req_10_asks_where_it_stops)
{
    struct rig *r = rig_new(&(struct rig_opts){.window = 16});
    rig_post(r, WR_RDMA_WRITE, 1, 100 * 1024, 0);
    ck_assert_uint_eq(rig_tx(r, 0), 16); /* REQ-13 */
    ck_assert(r->sent[15].ackreq);
    ck_assert(r->sent[3].ackreq); /* K = window / 4 */
    ck_assert(!r->sent[2].ackreq);
    rig_ack(r, rig_psn(RIG_PSN, 7));
    ck_assert_uint_eq(rig_tx(r, 0), 8);
    rig_free(r);

    r = rig_new(&(struct rig_opts){.max_rd_atomic = 1});
    rig_post(r, WR_RDMA_READ, 1, 8, 0);
    rig_post(r, WR_RDMA_WRITE, 2, 8, 0);
    rig_post(r, WR_RDMA_READ, 3, 8, 0); /* REQ-12: waits, with all requests after it */
    rig_post(r, WR_SEND, 4, 8, 0);
    ck_assert_uint_eq(rig_tx(r, 0), 2);
    ck_assert(r->sent[1].ackreq);
    rig_read_resp(r, WIRE_READ_RESP_ONLY, RIG_PSN, 8, 1);
    rig_clear(r);
    ck_assert_uint_eq(rig_tx(r, 0), 2);
    ck_assert_uint_eq(r->sent[0].opcode, WIRE_READ_REQUEST);
    rig_free(r);
}
END_TEST

/* REQ-14: a fenced request waits for READ data to be in memory, not for SENDs. */
START_TEST(req_14_fence)
{
    struct rig *r = rig_new(NULL);
    rig_post(r, WR_SEND, 1, 8, 0);
    rig_post(r, WR_SEND, 2, 8, WR_F_FENCE);
    ck_assert_uint_eq(rig_tx(r, 0), 2);
    rig_post(r, WR_RDMA_READ, 3, 8, 0);
    rig_post(r, WR_SEND, 4, 8, WR_F_FENCE);
    ck_assert_uint_eq(rig_tx(r, 0), 1);
    r->late = true;
    rig_read_resp(r, WIRE_READ_RESP_ONLY, rig_psn(RIG_PSN, 2), 8, 1);
    ck_assert_uint_eq(rig_tx(r, 0), 0); /* the copy is still under way */
    rig_copy(r, 1, 0);
    ck_assert_uint_eq(rig_tx(r, 0), 1);
    rig_free(r);
}
END_TEST

/* REQ-16: inline data is taken when posted. Several SGEs make one payload. */
START_TEST(req_16_inline_and_sges)
{
    struct rig *r = rig_new(NULL);
    uint8_t data[40];
    memset(data, 0x5A, sizeof(data));
    struct engine_send_wr wr = rig_wr(r, WR_RDMA_WRITE, 1, 0, 0);
    wr.flags |= WR_F_INLINE;
    wr.inline_data = data;
    wr.inline_len = sizeof(data);
    ck_assert_int_eq(engine_post_send(r->e, r->qp, &wr, r->now), 0);
    memset(data, 0, sizeof(data));
    struct engine_sge s[3] = {
        {RIG_VA + 100, 1000, r->lkey}, {RIG_VA + 5000, 0, 0xDEAD}, {RIG_VA + 9000, 700, r->lkey}};
    memset(r->mem + 100, 1, 1000);
    memset(r->mem + 9000, 2, 700);
    wr = rig_wr(r, WR_SEND, 2, 0, 0);
    wr.sge = s;
    wr.nsge = 3;
    ck_assert_int_eq(engine_post_send(r->e, r->qp, &wr, r->now), 0);
    ck_assert_uint_eq(rig_tx(r, 0), 3);
    ck_assert_uint_eq(r->sent[0].payload_len, 40);
    ck_assert_uint_eq(r->payload[0][0], 0x5A);
    ck_assert_uint_eq(r->payload[0][39], 0x5A);
    ck_assert_uint_eq(r->sent[1].payload_len, 1024);
    ck_assert_uint_eq(r->sent[2].payload_len, 676);
    ck_assert_uint_eq(r->payload[1][999], 1);
    ck_assert_uint_eq(r->payload[1][1000], 2);
    ck_assert_uint_eq(r->payload[2][675], 2);
    rig_free(r);
}
END_TEST

/* REQ-38, REQ-08, REQ-09, REQ-12, RD-15, ATM-10, UC-01, appendix B: errors of a request itself. */
static const struct local_error {
    const char *rule;
    enum qp_type type;
    int max_rd;
    enum wr_opcode op;
    uint32_t len;
    unsigned nsge, inline_len, bad_key;
    enum wc_status status;
} local_errors[] = {
    {"REQ-08 bad L_Key", QP_RC, 0, WR_SEND, 10, 1, 0, 1, WC_LOC_PROT_ERR},
    {"REQ-08 range past the region", QP_RC, 0, WR_RDMA_WRITE, RIG_MEM + 1, 1, 0, 0,
     WC_LOC_PROT_ERR},
    {"REQ-09 bad L_Key of a READ", QP_RC, 0, WR_RDMA_READ, 10, 1, 0, 1, WC_LOC_PROT_ERR},
    {"REQ-08 unknown opcode", QP_RC, 0, (enum wr_opcode)77, 10, 1, 0, 0, WC_LOC_QP_OP_ERR},
    {"REQ-08 too many SGEs", QP_RC, 0, WR_SEND, 1, 5, 0, 0, WC_LOC_QP_OP_ERR},
    {"REQ-08 inline too long", QP_RC, 0, WR_SEND, 0, 0, 200, 0, WC_LOC_QP_OP_ERR},
    {"REQ-07 longer than 2^31", QP_RC, 0, WR_SEND, 0xFFFFFFFF, 1, 0, 0, WC_LOC_LEN_ERR},
    {"REQ-12 READ with max_rd_atomic 0", QP_RC, -1, WR_RDMA_READ, 8, 1, 0, 0, WC_LOC_QP_OP_ERR},
    {"ATM-10 atomic into less than 8 octets", QP_RC, 0, WR_ATOMIC_FETCH_AND_ADD, 7, 1, 0, 0,
     WC_LOC_LEN_ERR},
    {"ATM-10 atomic with two SGEs", QP_RC, 0, WR_ATOMIC_FETCH_AND_ADD, 8, 2, 0, 0,
     WC_LOC_QP_OP_ERR},
    {"UC-01 READ on UC", QP_UC, 0, WR_RDMA_READ, 8, 1, 0, 0, WC_LOC_QP_OP_ERR},
    {"UC-01 SEND with invalidate on UC", QP_UC, 0, WR_SEND_WITH_INV, 8, 1, 0, 0, WC_LOC_QP_OP_ERR},
    {"UD-01 WRITE on UD", QP_UD, 0, WR_RDMA_WRITE, 8, 1, 0, 0, WC_LOC_QP_OP_ERR},
};

START_TEST(req_08_local_errors)
{
    for (unsigned i = 0; i < sizeof(local_errors) / sizeof(local_errors[0]); i++) {
        const struct local_error *t = &local_errors[i];
        struct rig *r = rig_new(&(struct rig_opts){.type = t->type, .max_rd_atomic = t->max_rd});
        struct engine_sge s[8];
        for (unsigned k = 0; k < 8; k++)
            s[k] = (struct engine_sge){RIG_VA, t->len, r->lkey ^ t->bad_key};
        uint8_t data[256] = {0};
        struct engine_send_wr wr = rig_wr(r, t->op, 2, 0, 0);
        wr.sge = s;
        wr.nsge = (uint8_t)t->nsge;
        wr.flags = t->inline_len ? WR_F_INLINE : 0; /* REQ-36: an error shows though unsignalled */
        wr.inline_len = (uint16_t)t->inline_len;
        wr.inline_data = data;
        rig_post(r, WR_SEND, 1, 8, 0);
        ck_assert_msg(engine_post_send(r->e, r->qp, &wr, r->now) == 0, "%s", t->rule);
        rig_post(r, WR_SEND, 3, 8, 0);
        ck_assert_msg(rig_tx(r, 0) == 1, "%s: sent %u", t->rule, r->nsent);
        if (t->type == QP_RC) {
            ck_assert_msg(r->sent[0].ackreq, "%s: must ask, REQ-10", t->rule);
            ck_assert_msg(r->nwc == 0, "%s: before its turn", t->rule); /* REQ-18 */
            rig_ack(r, RIG_PSN);
            rig_tx(r, 0);
        }
        ck_assert_msg(r->nwc == 2, "%s: %u completions", t->rule, r->nwc);
        ck_assert_uint_eq(r->wc[0].wr_id, 2);
        ck_assert_msg(r->wc[0].status == t->status, "%s: %s", t->rule,
                      engine_status_name(r->wc[0].status));
        ck_assert_uint_eq(r->wc[0].vendor_err, RULE(REQ, 8)); /* CQ-01 */
        ck_assert_uint_eq(r->wc[1].wr_id, 3);
        ck_assert_uint_eq(r->wc[1].status, WC_WR_FLUSH_ERR); /* REQ-36 */
        ck_assert_uint_eq(r->wc[1].vendor_err, 0);
        /* QP-09, UC-09, UD-13 */
        ck_assert_msg(rig_state(r) == (t->type == QP_RC ? QPS_ERR : QPS_SQE), "%s", t->rule);
        ck_assert_uint_eq(r->nsent, 1);
        rig_free(r);
    }
}
END_TEST

/* REQ-08: if gathering a packet in the middle of a message fails, its slot and later ones are void.
 * The messages before it complete, though no packet had asked for an ACK. */
START_TEST(req_08_gather_fails)
{
    struct rig *r = rig_new(NULL);
    rig_post(r, WR_SEND, 1, 8, 0);
    rig_post(r, WR_SEND, 2, 10 * 1024, WR_F_SIGNALED);
    r->fail_gather = 5;
    rig_tx(r, 0);
    ck_assert_uint_eq(r->nsent, 5); /* 1 + 3 and the first again */
    ck_assert_uint_eq(r->sent[4].psn, RIG_PSN);
    ck_assert(r->sent[4].ackreq);
    ck_assert_uint_eq(r->nwc, 0);
    rig_ack(r, RIG_PSN);
    rig_tx(r, 0);
    ck_assert_uint_eq(r->nwc, 1);
    ck_assert_uint_eq(r->wc[0].wr_id, 2);
    ck_assert_uint_eq(r->wc[0].status, WC_LOC_PROT_ERR);
    ck_assert_uint_eq(rig_state(r), QPS_ERR);
    ck_assert_uint_eq(r->nsent, 5);
    rig_free(r);
}
END_TEST

/* RTX-06: a region deregistered before a retransmission is never sent again. */
START_TEST(rtx_06_deregistered)
{
    struct rig *r = rig_new(NULL);
    rig_post(r, WR_SEND, 1, 3000, 0);
    ck_assert_uint_eq(rig_tx(r, 0), 3);
    rig_clear(r);
    ck_assert_int_eq(mem_mr_dereg(engine_mem(r->e), r->lkey), 0);
    rig_aeth(r, RIG_PSN, WIRE_SYN_NAK_SEQ, 0);
    ck_assert_uint_eq(rig_tx(r, 0), 0);
    ck_assert_uint_eq(r->nwc, 1);
    ck_assert_uint_eq(r->wc[0].status, WC_LOC_PROT_ERR);
    ck_assert_uint_eq(rig_state(r), QPS_ERR);
    rig_free(r);
}
END_TEST

/* A port without room: nothing is lost, nothing is sent twice. */
START_TEST(req_01_full_port)
{
    struct rig *r = rig_new(NULL);
    rig_post(r, WR_RDMA_WRITE, 1, 50 * 1024, 0);
    for (unsigned i = 0; i < 50; i++) {
        ck_assert_uint_eq(engine_tx(r->e, NULL, 0, r->now), 0);
        ck_assert(engine_tx_ready(r->e));
        ck_assert_uint_eq(rig_tx(r, 1), 1);
        ck_assert_uint_eq(r->sent[i].psn, rig_psn(RIG_PSN, i));
        ck_assert(r->sent[i].ackreq == (i == 49)); /* a full port isn't the end of a burst */
    }
    ck_assert_uint_eq(rig_tx(r, 0), 0);
    ck_assert(!engine_tx_ready(r->e));
    rig_free(r);
}
END_TEST

/* ACK-13, ACK-15, ACK-16, ACK-17: end-to-end credits when both sides want them, ignored otherwise.
 */
START_TEST(ack_15_credits)
{
    struct rig *r = rig_new(&(struct rig_opts){.credits = true});
    for (unsigned i = 1; i <= 4; i++)
        rig_post(r, WR_SEND, i, 2000, 0);
    ck_assert_uint_eq(rig_tx(r, 0), 1); /* SSN 1 = LSN + 1: the first packet, asking */
    ck_assert_uint_eq(r->sent[0].opcode, WIRE_SEND_FIRST);
    ck_assert(r->sent[0].ackreq);
    rig_aeth(r, RIG_PSN, 1, 0); /* one receive: MSN 0 + 1 */
    ck_assert_uint_eq(rig_tx(r, 0), 2);
    ck_assert_uint_eq(r->sent[1].opcode, WIRE_SEND_LAST);
    ck_assert_uint_eq(r->sent[2].opcode, WIRE_SEND_FIRST);
    rig_aeth(r, rig_psn(RIG_PSN, 1), 0, 1);
    ck_assert_uint_eq(rig_tx(r, 0), 0);
    rig_aeth(r, rig_psn(RIG_PSN, 1), 3, 1); /* ACK-16: the same PSN again, with credits */
    ck_assert_uint_eq(rig_tx(r, 0), 5);
    rig_aeth(r, rig_psn(RIG_PSN, 7), 0, 2); /* ACK-17: LSN doesn't move back */
    rig_post(r, WR_SEND, 5, 2000, 0);
    ck_assert_uint_eq(rig_tx(r, 0), 1); /* SSN 5 = LSN + 1 still */
    ck_assert_uint_eq(rig_state(r), QPS_RTS);
    rig_free(r);

    r = rig_new(NULL); /* ACK-13: code 0 stalls no sender */
    rig_post(r, WR_SEND, 1, 8, 0);
    rig_tx(r, 0);
    rig_aeth(r, RIG_PSN, 0, 1);
    rig_post(r, WR_SEND, 2, 8000, 0);
    ck_assert_uint_eq(rig_tx(r, 0), 8);
    rig_free(r);
}
END_TEST

/* ACK-15: WRITE and READ need no credit. REQ-05: they still have send sequence numbers, or the
 * whole SEND would go. */
START_TEST(ack_15_write_needs_none)
{
    struct rig *r = rig_new(&(struct rig_opts){.credits = true});
    rig_post(r, WR_RDMA_WRITE, 1, 2000, 0);
    rig_post(r, WR_RDMA_READ, 2, 8, 0);
    rig_post(r, WR_SEND, 3, 2000, 0);
    ck_assert_uint_eq(rig_tx(r, 0), 4);
    ck_assert_uint_eq(r->sent[3].opcode, WIRE_SEND_FIRST);
    rig_free(r);
}
END_TEST

/* MW-01: a bind that would have the engine choose the window's new key is refused: the program
 * could neither learn the key, nor release the window by its old one. */
START_TEST(mw_01_who_chooses_the_key)
{
    for (unsigned type = 1; type <= 2; type++) {
        struct rig *r = rig_new(NULL);
        struct mem *m = engine_mem(r->e);
        uint32_t mw;
        ck_assert_int_eq(mem_mw_alloc(m, r->pd, type, &mw), 0);
        struct engine_send_wr wr = rig_wr(r, WR_BIND_MW, 1, 0, 0);
        wr.mw_rkey = mw;
        wr.mw_lkey = r->lkey;
        wr.mw_va = RIG_VA;
        wr.mw_len = 4096;
        wr.mw_access = MEM_REMOTE_WRITE;
        ck_assert_int_eq(engine_post_send(r->e, r->qp, &wr, r->now), 0);
        ck_assert_uint_eq(rig_tx(r, 0), 0);
        ck_assert_uint_eq(r->nwc, 1);
        ck_assert_uint_eq(r->wc[0].status, WC_MW_BIND_ERR);
        ck_assert_int_eq(mem_mw_dealloc(m, mw), 0);
        ck_assert_int_eq(mem_mr_dereg(m, r->lkey), 0); /* nothing is bound to it */
        rig_free(r);
    }
}
END_TEST

/* GID-02: a datagram's source and destination are of one family. */
START_TEST(gid_02_one_family)
{
    struct rig *r = rig_new(&(struct rig_opts){.type = QP_UD});
    static const char *const to[] = {"fd00::2", "10.0.0.2"};
    for (unsigned i = 0; i < 2; i++) {
        struct engine_send_wr wr = rig_wr(r, WR_SEND, i, 0, 8);
        wr.av = (struct engine_av){.sgid = r->lip, .hop_limit = 64};
        wire_addr_parse(to[i], &wr.av.dgid);
        wr.rqpn = RIG_PEER;
        struct engine_qp_attr again = {.state = QPS_RTS};
        if (rig_state(r) == QPS_SQE)
            ck_assert_int_eq(engine_qp_modify(r->e, r->qp, &again, QPA_STATE, r->now), 0);
        ck_assert_int_eq(engine_post_send(r->e, r->qp, &wr, r->now), 0);
        ck_assert_uint_eq(rig_tx(r, 0), i);
        ck_assert_uint_eq(r->wc[0].status, i == 0 ? WC_LOC_QP_OP_ERR : WC_SUCCESS);
        rig_clear(r);
    }
    rig_free(r);
}
END_TEST

/* REQ-15, MW-06: a local invalidate waits for all requests before it, and holds back those after
 * it. */
START_TEST(req_15_local_operations)
{
    struct rig *r = rig_new(NULL);
    struct mem *m = engine_mem(r->e);
    uint32_t mw, bound;
    ck_assert_int_eq(mem_mw_alloc(m, r->pd, 2, &mw), 0);
    rig_post(r, WR_SEND, 1, 8, 0);
    struct engine_send_wr wr = rig_wr(r, WR_BIND_MW, 2, 0, 0);
    wr.mw_rkey = mw;
    wr.mw_new_rkey = bound = (mw & ~0xFFu) | ((mw + 1) & 0xFF);
    wr.mw_lkey = r->lkey;
    wr.mw_va = RIG_VA;
    wr.mw_len = 4096;
    wr.mw_access = MEM_REMOTE_WRITE;
    ck_assert_int_eq(engine_post_send(r->e, r->qp, &wr, r->now), 0);
    wr = rig_wr(r, WR_LOCAL_INV, 3, 0, 0);
    wr.imm = bound;
    ck_assert_int_eq(engine_post_send(r->e, r->qp, &wr, r->now), 0);
    rig_post(r, WR_SEND, 4, 8, WR_F_SIGNALED);
    ck_assert_uint_eq(rig_tx(r, 0), 1);
    ck_assert(r->sent[0].ackreq);
    rig_ack(r, RIG_PSN);
    ck_assert_uint_eq(rig_tx(r, 0), 1);
    ck_assert_uint_eq(r->nwc, 2);
    ck_assert_uint_eq(r->wc[0].opcode, WC_BIND_MW);
    ck_assert_uint_eq(r->wc[1].opcode, WC_LOCAL_INV);
    ck_assert_uint_eq(r->wc[1].status, WC_SUCCESS);
    rig_ack(r, rig_psn(RIG_PSN, 1));
    ck_assert_uint_eq(r->nwc, 3);
    wr.wr_id = 5; /* again: no longer valid */
    ck_assert_int_eq(engine_post_send(r->e, r->qp, &wr, r->now), 0);
    rig_tx(r, 0);
    ck_assert_uint_eq(r->nwc, 4);
    ck_assert_uint_ne(r->wc[3].status, WC_SUCCESS);
    rig_free(r);
}
END_TEST

/* MR-08: a work request makes a Free region Valid, at the address and with the key that it says; in
 * vain when it is Valid already. */
START_TEST(mr_08_fast_register)
{
    struct rig *r = rig_new(NULL);
    struct mem *m = engine_mem(r->e);
    const struct mem_seg good[] = {{r, 0, 4096}, {r, 8192, 4096}};
    struct mem_seg segs[ENGINE_SGE_MAX + 1] = {{0}};
    uint32_t lkey, rkey;
    struct mem_ref ref;
    ck_assert_int_eq(mem_fr_alloc(m, r->pd, 2, &lkey, &rkey), 0);
    struct engine_send_wr wr = rig_wr(r, WR_REG_MR, 1, 0, 0);
    wr.mw_new_rkey = rkey ^ 0x55;
    wr.mw_va = 0x10000;
    wr.mw_len = 8192;
    wr.mw_access = MEM_REMOTE_READ;
    wr.segs = segs;
    wr.nsegs = 2;
    for (unsigned i = 0; i < 2; i++) {
        memcpy(segs, good, sizeof(good));
        ck_assert_int_eq(engine_post_send(r->e, r->qp, &wr, r->now), 0);
        memset(segs, 0xFF, sizeof(segs)); /* posting has copied them */
        ck_assert_uint_eq(rig_tx(r, 0), 0);
        ck_assert_uint_eq(r->nwc, i + 1);
        ck_assert_uint_eq(r->wc[i].status, i ? WC_LOC_QP_OP_ERR : WC_SUCCESS);
        ck_assert_int_eq(
            mem_check(m, r->pd, 0, wr.mw_new_rkey, 0x10000, 8192, MEM_REMOTE_READ, false, &ref), 0);
    }
    ck_assert_uint_eq(r->wc[0].opcode, WC_REG_MR);
    ck_assert_int_eq(mem_check(m, r->pd, 0, rkey, 0x10000, 8, MEM_REMOTE_READ, false, &ref),
                     -EACCES);
    rig_free(r);

    for (unsigned i = 0; i < 2; i++) { /* REQ-08: the rig's queue pairs have 4 in a request */
        r = rig_new(NULL);
        ck_assert_int_eq(mem_fr_alloc(engine_mem(r->e), r->pd, ENGINE_SGE_MAX, &lkey, &rkey), 0);
        wr.mw_new_rkey = rkey ^ 0x55;
        wr.nsegs = 4 + i;
        wr.mw_len = wr.nsegs * 4096ull;
        for (unsigned k = 0; k < wr.nsegs; k++)
            segs[k] = (struct mem_seg){r, k * 4096ull, 4096};
        ck_assert_int_eq(engine_post_send(r->e, r->qp, &wr, r->now), 0);
        ck_assert_uint_eq(rig_tx(r, 0), 0);
        ck_assert_uint_eq(r->wc[0].status, i ? WC_LOC_QP_OP_ERR : WC_SUCCESS);
        rig_free(r);
    }
}
END_TEST

/* UC-02: no AckReq, complete when handed to the wire, in order, each once. */
START_TEST(uc_02_completes_when_sent)
{
    struct rig *r = rig_new(&(struct rig_opts){.type = QP_UC});
    rig_post(r, WR_SEND, 1, 3000, WR_F_SIGNALED);
    rig_post(r, WR_RDMA_WRITE_WITH_IMM, 2, 8, WR_F_SIGNALED);
    rig_tx(r, 2);
    ck_assert_uint_eq(r->nwc, 0);
    rig_tx(r, 0);
    ck_assert_uint_eq(r->nsent, 4);
    ck_assert_uint_eq(r->nwc, 2);
    ck_assert_uint_eq(r->sent[0].opcode, WIRE_OPCODE(WIRE_UC, WIRE_SEND_FIRST));
    for (unsigned i = 0; i < 4; i++)
        ck_assert(!r->sent[i].ackreq);
    rig_free(r);
}
END_TEST

/* UD-03, KEY-08, UD-02: datagrams. */
START_TEST(ud_03_datagrams)
{
    struct rig *r = rig_new(&(struct rig_opts){.type = QP_UD});
    rig_post(r, WR_SEND, 1, 100, WR_F_SIGNALED);
    struct engine_send_wr wr = rig_wr(r, WR_SEND_WITH_IMM, 2, 0, 100);
    wr.rqkey = 0x80000001;
    wr.rqpn = 0x777;
    ck_assert_int_eq(engine_post_send(r->e, r->qp, &wr, r->now), 0);
    ck_assert_int_eq(rig_post(r, WR_SEND, 3, 4097, 0), -22); /* UD-02 */
    ck_assert_uint_eq(rig_tx(r, 0), 2);
    ck_assert_uint_eq(r->nwc, 2);
    ck_assert_uint_eq(r->sent[0].opcode, WIRE_OPCODE(WIRE_UD, WIRE_SEND_ONLY));
    ck_assert_uint_eq(r->sent[0].qkey, 0x22222222);
    ck_assert_uint_eq(r->sent[0].sqpn, engine_qp_num(r->qp));
    ck_assert_uint_eq(r->sent[0].dqpn, RIG_PEER);
    ck_assert_uint_eq(r->sent[1].opcode, WIRE_OPCODE(WIRE_UD, WIRE_SEND_ONLY_IMM));
    ck_assert_uint_eq(r->sent[1].qkey, 0x11111111);
    ck_assert_uint_eq(r->sent[1].dqpn, 0x777);
    ck_assert_uint_eq(r->sent[1].psn, rig_psn(RIG_PSN, 1));
    rig_free(r);
}
END_TEST

/* PSN-03: outstanding PSNs, answers to READs included, never exceed 2^23. Further requests wait
 * until there is room. */
START_TEST(psn_03_at_most_half)
{
    struct rig *r = rig_new(&(struct rig_opts){.mtu = 1, .max_rd_atomic = 16});
    struct mem_seg seg = {r->mem, 0, 1 << 30}; /* never touched */
    struct engine_send_wr wr = rig_wr(r, WR_RDMA_READ, 1, 0, 0);
    struct engine_sge s = {1ull << 32, 1 << 30, 0};
    uint32_t rkey;
    ck_assert_int_eq(mem_mr_reg(engine_mem(r->e), r->pd, s.va, s.len, MEM_LOCAL_WRITE, &seg, 1,
                                NULL, &s.lkey, &rkey),
                     0);
    wr.sge = &s;
    ck_assert_int_eq(engine_post_send(r->e, r->qp, &wr, r->now), 0);
    s.len -= 256;
    ck_assert_int_eq(engine_post_send(r->e, r->qp, &wr, r->now), 0);
    rig_post(r, WR_RDMA_READ, 2, 8, 0); /* the last PSN of 2^23 */
    rig_post(r, WR_RDMA_READ, 3, 8, 0);
    ck_assert_uint_eq(rig_tx(r, 0), 3);
    ck_assert_uint_eq(r->sent[2].psn, rig_psn(RIG_PSN, (1 << 23) - 1));
    rig_read_resp(r, WIRE_READ_RESP_FIRST, RIG_PSN, 256, 1);
    ck_assert_uint_eq(rig_tx(r, 0), 1);
    rig_free(r);
}
END_TEST

/* PSN-03, REQ-07: one READ of 2^31 octets takes all 2^23 PSNs at once, and isn't done before its
 * data. */
START_TEST(psn_03_longest_read)
{
    struct rig *r = rig_new(&(struct rig_opts){.mtu = 1});
    struct mem_seg seg = {r->mem, 0, 1ull << 31};
    struct engine_send_wr wr = rig_wr(r, WR_RDMA_READ, 1, 0, 0);
    struct engine_sge s = {1ull << 32, 1u << 31, 0};
    uint32_t rkey;
    ck_assert_int_eq(mem_mr_reg(engine_mem(r->e), r->pd, s.va, s.len, MEM_LOCAL_WRITE, &seg, 1,
                                NULL, &s.lkey, &rkey),
                     0);
    wr.sge = &s;
    ck_assert_int_eq(engine_post_send(r->e, r->qp, &wr, r->now), 0);
    rig_post(r, WR_SEND, 2, 8, WR_F_SIGNALED);
    ck_assert_uint_eq(rig_tx(r, 0), 1); /* the SEND would be PSN 2^23 + 1 */
    ck_assert_uint_eq(r->sent[0].dma_len, 1u << 31);
    for (unsigned i = 0; i < 5; i++) {
        rig_read_resp(r, i ? WIRE_READ_RESP_MIDDLE : WIRE_READ_RESP_FIRST, rig_psn(RIG_PSN, i), 256,
                      1);
        ck_assert_uint_eq(r->last.drop, ENGINE_C_none);
    }
    ck_assert_uint_eq(r->nwc, 0);
    rig_pass(r, RIG_T + RIG_T / 8);
    rig_clear(r);
    rig_tx(r, 1);
    ck_assert_uint_eq(r->sent[0].psn, rig_psn(RIG_PSN, 5)); /* RD-12 */
    rig_free(r);
}
END_TEST

/* REQ-12: with as many READs as the peer allows, the next one waits. */
START_TEST(req_12_limit)
{
    struct rig *r = rig_new(&(struct rig_opts){.max_rd_atomic = 3});
    for (unsigned i = 0; i < 5; i++)
        rig_post(r, i % 2 ? WR_ATOMIC_FETCH_AND_ADD : WR_RDMA_READ, i, 8, 0);
    ck_assert_uint_eq(rig_tx(r, 0), 3);
    rig_read_resp(r, WIRE_READ_RESP_ONLY, RIG_PSN, 8, 1);
    ck_assert_uint_eq(rig_tx(r, 0), 1);
    rig_free(r);
}
END_TEST

/* QP-05, REQ-35: the queue's bounds. */
START_TEST(qp_05_room)
{
    struct rig *r = rig_new(&(struct rig_opts){.max_send_wr = 4});
    for (unsigned i = 0; i < 4; i++)
        ck_assert_int_eq(rig_post(r, WR_SEND, i, 8, i == 3 ? WR_F_SIGNALED : 0), 0);
    ck_assert_uint_eq(engine_sq_room(r->qp), 0);
    ck_assert_int_eq(rig_post(r, WR_SEND, 9, 8, 0), -11);
    rig_tx(r, 0);
    rig_ack(r, rig_psn(RIG_PSN, 3));
    ck_assert_uint_eq(r->sq_room, 1);
    ck_assert_uint_eq(engine_sq_room(r->qp), 4);
    ck_assert_uint_eq(r->nwc, 1); /* REQ-35: unsignalled ones make none */
    ck_assert_uint_eq(r->wc[0].wr_id, 3);
    rig_free(r);
}
END_TEST

/* REQ-13: the engine's window becomes larger; queue pairs under way follow, one window after the
 * other. */
START_TEST(req_13_window_of_a_larger_ring)
{
    struct rig *r = rig_new(&(struct rig_opts){.window = 16, .max_send_wr = 512});
    uint32_t sent = 0, n = 0;
    for (unsigned i = 0; i < 400; i++)
        ck_assert_int_eq(rig_post(r, WR_SEND, i, 8, 0), 0);
    sent += rig_tx(r, 0);
    ck_assert_uint_eq(sent, 16);
    engine_set_window(r->e, 8); /* never less */
    engine_set_window(r->e, 32);
    while (sent < 350) {
        rig_ack(r, rig_psn(RIG_PSN, sent - 1));
        n = rig_tx(r, 0);
        ck_assert_uint_ge(n, 16);
        ck_assert_uint_le(n, 32);
        sent += n;
    }
    ck_assert_uint_eq(n, 32);
    rig_free(r);
}
END_TEST

UNIT_MAIN("requester", mw_01_who_chooses_the_key, gid_02_one_family, req_02_segmentation,
          req_06_psn_across_messages, hdr_03_solicited, req_10_ackreq, req_10_asks_where_it_stops,
          req_14_fence, req_16_inline_and_sges, req_08_local_errors, req_08_gather_fails,
          rtx_06_deregistered, req_01_full_port, ack_15_credits, ack_15_write_needs_none,
          req_15_local_operations, mr_08_fast_register, uc_02_completes_when_sent, ud_03_datagrams,
          psn_03_at_most_half, psn_03_longest_read, req_12_limit, qp_05_room,
          req_13_window_of_a_larger_ring)
