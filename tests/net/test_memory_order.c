/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The contents of memory when packets are lost, late and doubled: WRITEs of any length to the same
 * few octets, with WRITEs with immediate, SENDs, READs and ATOMICs between them, all in flight
 * together. With any kind of loss recovery, memory ends as if the messages had arrived one after
 * the other, and the table of REQ-17 holds on the way.
 */
#include <string.h>

#include "fault_dice.h"
#include "unit.h"
#include "vnet.h"

#define MS       1000000ull
#define MESSAGES 100u
#define MTU      256u
#define LEN_MAX  1400u
#define ARENA    2048u /* written to */
#define CELLS    64u   /* after it; for ATOMICs */
#define SEEDS    60u
#define FAULTS   ",rate=10G,delay=2us,loss=0.03,dup=0.02,reorder=0.05,corrupt=0.01"

enum op { WRITE, WRITE_IMM, SEND, READ, FADD, OPS };

static const struct op_info {
    uint8_t wr;
    bool recv, writes;
} ops[OPS] = {
    [WRITE] = {WR_RDMA_WRITE, false, true},    [WRITE_IMM] = {WR_RDMA_WRITE_WITH_IMM, true, true},
    [SEND] = {WR_SEND, true, false},           [READ] = {WR_RDMA_READ, false, false},
    [FADD] = {WR_ATOMIC_FETCH_AND_ADD, false},
};

static struct message {
    enum op op;
    uint32_t off, len; /* in B's memory */
} message[MESSAGES];

/* All octets that message m writes or sends are m + 1. */
static uint8_t source[MESSAGES][LEN_MAX], sink[MESSAGES][LEN_MAX], received[MESSAGES][LEN_MAX];
static _Alignas(8) uint8_t memory[ARENA + CELLS];
static uint8_t model[MESSAGES + 1][ARENA + CELLS]; /* [m]: before message m */
static uint32_t source_key, sink_key, received_key, lkey, rkey;

static struct vnet *net;
static struct vnet_host *a, *b;
static struct qp *qa, *qb;
static uint64_t dice, seed;
static bool fenced;      /* every WRITE has a fence */
static unsigned noticed; /* receives checked */
static unsigned teller;  /* the message of the next receive */

/* ---- the plan ---- */

static enum op draw_op(void)
{
    static const enum op many[] = {WRITE, WRITE, WRITE, WRITE, WRITE_IMM, SEND, READ, FADD};
    return many[fault_draw_below(&dice, sizeof(many) / sizeof(many[0]))];
}

static void draw(struct message *m)
{
    bool small = fault_draw_hit(&dice, 0.5);
    m->op = draw_op();
    m->len = 1 + (uint32_t)fault_draw_below(&dice, small ? MTU : LEN_MAX);
    m->off = (uint32_t)fault_draw_below(&dice, ARENA - m->len);
    if (m->op != FADD)
        return;
    m->len = 8; /* an ATOMIC's result shows the order, so only with fences ... */
    m->off = fenced ? m->off & ~7u : ARENA + 8 * (uint32_t)fault_draw_below(&dice, CELLS / 8);
}

static uint64_t addend(unsigned m)
{
    return (m + 1) * 0x0001000100010001u;
}

static void plan(void)
{
    memset(model[0], 0, sizeof(model[0]));
    for (unsigned i = 0; i < MESSAGES; i++) {
        struct message *m = &message[i];
        draw(m);
        memcpy(model[i + 1], model[i], sizeof(model[i]));
        if (ops[m->op].writes)
            memset(model[i + 1] + m->off, (int)i + 1, m->len);
        if (m->op == FADD) {
            uint64_t value;
            memcpy(&value, model[i] + m->off, 8);
            value += addend(i);
            memcpy(model[i + 1] + m->off, &value, 8);
        }
    }
}

/* ---- doing it ---- */

/* Some copies take a while. */
static int64_t slow(void *ctx, const struct engine_copy *copy, uint64_t now)
{
    (void)ctx, (void)copy, (void)now;
    return fault_draw_hit(&dice, 0.2) ? (int64_t)fault_draw_below(&dice, 5000) : 0;
}

static void start(const uint8_t recovery[2], uint64_t with_seed)
{
    unsigned rights = MEM_LOCAL_WRITE | MEM_REMOTE_ANY;
    seed = dice = with_seed;
    fenced = seed % 2;
    noticed = teller = 0;
    net = vnet_new(2, FAULTS, seed);
    ck_assert_ptr_nonnull(net);
    a = net->hosts[0];
    b = net->hosts[1];
    memset(memory, 0, sizeof(memory));
    for (unsigned i = 0; i < MESSAGES; i++)
        memset(source[i], (int)i + 1, LEN_MAX);
    ck_assert_int_eq(vnet_reg(a, source, sizeof(source), rights, &source_key, &rkey), 0);
    ck_assert_int_eq(vnet_reg(a, sink, sizeof(sink), rights, &sink_key, &rkey), 0);
    ck_assert_int_eq(vnet_reg(b, received, sizeof(received), rights, &received_key, &rkey), 0);
    ck_assert_int_eq(vnet_reg(b, memory, sizeof(memory), rights, &lkey, &rkey), 0);
    struct vnet_qp_params p = {
        .mtu = MTU, .timeout = 14, .recovery = {recovery[0], recovery[1]}, .sq_psn = {0xFFFFC0, 7}};
    ck_assert_int_eq(vnet_connect(a, b, &p, &qa, &qb), 0);
    if (seed % 3 == 0)
        b->copier = (struct vnet_copier){.place = slow};
}

static void post(unsigned i)
{
    const struct message *m = &message[i];
    bool in = m->op == READ || m->op == FADD;
    struct engine_sge sge = {(uint64_t)(uintptr_t)(in ? sink[i] : source[i]), m->len,
                             in ? sink_key : source_key};
    struct engine_sge to = {(uint64_t)(uintptr_t)received[i], LEN_MAX, received_key};
    struct engine_recv_wr recv = {.wr_id = i, .nsge = 1, .sge = &to};
    struct engine_send_wr wr = {.wr_id = i,
                                .opcode = ops[m->op].wr,
                                .flags = WR_F_SIGNALED | (fenced ? WR_F_FENCE : 0),
                                .nsge = 1,
                                .sge = &sge,
                                .rkey = rkey,
                                .remote_va = (uint64_t)(uintptr_t)memory + m->off,
                                .compare_add = addend(i)};
    if (ops[m->op].recv)
        ck_assert_int_eq(engine_post_recv(b->engine, qb, &recv), 0);
    ck_assert_int_eq(engine_post_send(a->engine, qa, &wr, net->now), 0);
}

/* ---- judging ---- */

/* REQ-19: at its completion all that was written before is there, or something later. */
static void look(void)
{
    for (; noticed < b->wcs_n; noticed++, teller++) {
        const struct engine_wc *wc = &b->wcs[noticed].wc;
        while (!ops[message[teller].op].recv)
            teller++;
        ck_assert_uint_eq(wc->status, WC_SUCCESS);
        ck_assert_uint_eq(wc->wr_id, teller);
        for (uint32_t i = 0; i < message[teller].len && message[teller].op == SEND; i++)
            ck_assert_uint_eq(received[teller][i], teller + 1);
        for (uint32_t i = 0; i < ARENA && !fenced; i++)
            ck_assert_msg(memory[i] >= model[teller + 1][i],
                          "seed %d: octet %u is of %u, not %u, at receive %u", (int)seed, i,
                          memory[i], model[teller + 1][i], teller);
    }
}

static bool done(void *ctx)
{
    (void)ctx;
    look();
    return a->wcs_n == MESSAGES;
}

/* REQ-17: a READ or ATOMIC has found the last WRITE before it, or, without a fence, a later one. */
static void judge_reader(unsigned i)
{
    const struct message *m = &message[i];
    bool exact = fenced || m->op == FADD;
    for (uint32_t k = 0; k < m->len; k++) {
        uint8_t is = sink[i][k], before = model[i][m->off + k];
        ck_assert_msg(exact ? is == before : is >= before,
                      "seed %d: request %u found %u in octet %u, not %u", (int)seed, i, is,
                      m->off + k, before);
    }
}

static void judge(void)
{
    for (unsigned i = 0; i < MESSAGES; i++) {
        ck_assert_msg(a->wcs[i].wc.status == WC_SUCCESS, "seed %d: request %u: %s", (int)seed, i,
                      engine_status_name(a->wcs[i].wc.status));
        if (message[i].op == READ || message[i].op == FADD)
            judge_reader(i);
    }
    for (uint32_t i = 0; i < ARENA + CELLS; i++)
        ck_assert_msg(memory[i] == model[MESSAGES][i], "seed %d: octet %u is %u, not %u", (int)seed,
                      i, memory[i], model[MESSAGES][i]);
}

static void all_seeds(uint8_t at_a, uint8_t at_b)
{
    uint64_t early = 0;
    for (uint64_t s = 1; s <= SEEDS; s++) {
        start((const uint8_t[]){at_a, at_b}, s);
        plan();
        for (unsigned i = 0; i < MESSAGES; i++)
            post(i);
        int rc = vnet_run(net, done, NULL, 10000 * MS);
        ck_assert_msg(rc == 0, "seed %d: %s", (int)s, net->why);
        ck_assert_int_eq(vnet_run_for(net, MS), 0); /* packets in flight do no harm */
        look();
        judge();
        early += engine_counters(b->engine)[ENGINE_C_rx_placed_early];
        vnet_free(net);
    }
    if (at_b != RECOVER_GBN) /* else it has shown nothing */
        ck_assert_uint_gt(early, SEEDS);
}

/* RSP-30 */
START_TEST(go_back_n)
{
    all_seeds(RECOVER_GBN, RECOVER_GBN);
}
END_TEST

/* LR-09 */
START_TEST(lr_09_early_packets)
{
    all_seeds(RECOVER_GBN, RECOVER_GBN_OOO);
}
END_TEST

/* LR-02, LR-06: octets of later messages, in memory already, are not overwritten. */
START_TEST(lr_06_selective_repeat)
{
    all_seeds(RECOVER_SR, RECOVER_SR);
}
END_TEST

int main(void)
{
    setenv("CK_DEFAULT_TIMEOUT", "100", 0); /* sanitizers take their time */
    const TTest *const tests[] = {go_back_n, lr_09_early_packets, lr_06_selective_repeat};
    return unit_main("memory order", tests, sizeof(tests) / sizeof(tests[0]));
}
