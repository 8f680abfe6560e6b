/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Habits of Linux's rxe that can't be provoked in the interoperation tests, played on virtual time
 * (doc/conformance.md, appendix A): our side handles or prevents them.
 */
#include <stdio.h>
#include <string.h>

#include "unit.h"
#include "vnet.h"

#define MS   1000000ull
#define PSNS 4096u
#define OPS  60u
#define SLOT 4096u

static struct vnet *net;
static struct vnet_host *a, *b;
static uint8_t ours[OPS * SLOT], theirs[OPS * SLOT];
static uint64_t word;
static uint32_t ours_lkey, theirs_rkey, theirs_lkey, word_rkey, unused;

static void start(const char *keys, uint64_t seed)
{
    unsigned rights = MEM_LOCAL_WRITE | MEM_REMOTE_ANY;
    net = vnet_new(2, keys, seed);
    ck_assert_ptr_nonnull(net);
    a = net->hosts[0];
    b = net->hosts[1];
    word = 0;
    for (size_t i = 0; i < sizeof(ours); i++) {
        ours[i] = (uint8_t)(i * 31 + (i >> 8));
        theirs[i] = 0;
    }
    ck_assert_int_eq(vnet_reg(a, ours, sizeof(ours), rights, &ours_lkey, &unused), 0);
    ck_assert_int_eq(vnet_reg(b, theirs, sizeof(theirs), rights, &theirs_lkey, &theirs_rkey), 0);
    ck_assert_int_eq(vnet_reg(b, &word, sizeof(word), rights, &unused, &word_rkey), 0);
}

static void post(struct qp *qp, uint8_t opcode, unsigned i, uint32_t len)
{
    bool atomic = opcode == WR_ATOMIC_FETCH_AND_ADD;
    struct engine_sge sge = {(uint64_t)(uintptr_t)(ours + i * SLOT), len, ours_lkey};
    struct engine_send_wr wr = {.wr_id = i,
                                .opcode = opcode,
                                .flags = WR_F_SIGNALED,
                                .nsge = 1,
                                .sge = &sge,
                                .rkey = atomic ? word_rkey : theirs_rkey,
                                .remote_va = atomic ? (uint64_t)(uintptr_t)&word
                                                    : (uint64_t)(uintptr_t)(theirs + i * SLOT),
                                .compare_add = 1};
    ck_assert_int_eq(engine_post_send(a->engine, qp, &wr, net->now), 0);
}

static bool all_done(void *ctx)
{
    return a->wcs_n >= *(size_t *)ctx;
}

static void finish(size_t n)
{
    int rc = vnet_run(net, all_done, &n, 600000 * MS);
    ck_assert_msg(rc == 0, "%s", net->why);
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(a->wcs[i].wc.status == WC_SUCCESS, "request %zu: %s", i,
                      engine_status_name(a->wcs[i].wc.status));
}

/* ---- A8b ---- */

static bool answered_by_data[PSNS]; /* a READ's or an ATOMIC's, by PSN */
static unsigned acks;

static void watch(void *ctx, bool sent, const uint8_t *frame, uint32_t len, uint64_t now)
{
    struct wire_pkt p;
    (void)ctx, (void)now;
    if (wire_parse(frame, len, WIRE_P_LOOPBACK, &p) != WIRE_OK || p.psn >= PSNS)
        return;
    unsigned f = wire_opcodes[p.opcode].flags;
    if (!sent && f & WIRE_F_REQUEST && f & (WIRE_F_READ | WIRE_F_ATOMIC)) {
        uint32_t n = f & WIRE_F_ATOMIC ? 1 : (p.dma_len + 255) / 256;
        for (uint32_t i = 0; i < (n ? n : 1); i++)
            answered_by_data[p.psn + i] = true;
    } else if (sent && f & WIRE_F_ACK && wire_aeth_kind(p.syndrome) == WIRE_AETH_ACK) {
        acks++;
        ck_assert_msg(!answered_by_data[p.psn],
                      "ACK-05 A8b: a plain ACK with PSN 0x%x, of a READ or ATOMIC", p.psn);
    }
}

/* A8b, ACK-05: rxe's requester takes a plain ACK with the PSN of a READ or an ATOMIC for its
 * answer, without data. Ours never sends one, whatever is lost, doubled or late. */
START_TEST(a8b_no_ack_in_the_place_of_data)
{
    static const char *const faults[] = {"", ",loss=0.1", ",dup=0.2", ",reorder=0.1",
                                         ",loss=0.05,dup=0.05,reorder=0.05"};
    static const uint8_t kinds[] = {WR_RDMA_WRITE, WR_RDMA_READ, WR_ATOMIC_FETCH_AND_ADD,
                                    WR_RDMA_READ, WR_RDMA_WRITE};
    char keys[128];
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct qp *qa, *qb;
        snprintf(keys, sizeof(keys), ",rate=10G,delay=2us%s", faults[_i]);
        start(keys, seed);
        memset(answered_by_data, 0, sizeof(answered_by_data));
        acks = 0;
        b->tap = (struct vnet_tap){.frame = watch};
        struct vnet_qp_params p = {.mtu = 256, .timeout = 6, .sq_psn = {16, 16}};
        ck_assert_int_eq(vnet_connect(a, b, &p, &qa, &qb), 0);
        for (unsigned i = 0; i < OPS; i++) {
            uint8_t kind = kinds[(i * 7 + seed) % sizeof(kinds)];
            post(qa, kind, i, kind == WR_ATOMIC_FETCH_AND_ADD ? 8 : 1 + i * 37 % 1500);
        }
        finish(OPS);
        ck_assert_uint_gt(acks, 0);
        vnet_free(net);
    }
}
END_TEST

/* ---- A13 ---- */

static int64_t slowly(void *ctx, const struct engine_copy *copy, uint64_t now)
{
    (void)ctx, (void)copy, (void)now;
    return 50 * (int64_t)MS;
}

/* A13: rxe's retransmission timer may fire though nothing was lost. Its repeated requests, while
 * ours is slow, are absorbed: counted, executed once, the data right. */
START_TEST(a13_spurious_repetitions)
{
    struct qp *qa, *qb;
    struct vnet_qp_params p = {.timeout = 12,
                               .retry_cnt = 7}; /* 16.8 ms: a third of the time needed */
    start(",rate=10G,delay=2us", 7);
    ck_assert_int_eq(vnet_connect(a, b, &p, &qa, &qb), 0);
    b->copier.place = slowly;
    unsigned n = 6;
    for (unsigned i = 0; i < n; i++)
        post(qa, i % 2 ? WR_ATOMIC_FETCH_AND_ADD : WR_RDMA_WRITE, i, i % 2 ? 8 : 3000);
    finish(n);
    ck_assert_uint_gt(engine_counters(a->engine)[ENGINE_C_local_ack_timeout_err], 0);
    ck_assert_msg(engine_counters(b->engine)[ENGINE_C_duplicate_request] > 0, "A13 RSP-20");
    ck_assert_msg(word == n / 2, "A13 ATM-08: %llu additions", (unsigned long long)word);
    for (unsigned i = 0; i < n; i++) {
        if (i % 2)
            ck_assert_uint_eq(*(uint64_t *)(void *)(ours + i * SLOT), i / 2);
        else
            ck_assert_msg(!memcmp(theirs + i * SLOT, ours + i * SLOT, 3000), "A13 message %u", i);
    }
    struct engine_qp_info info;
    engine_qp_info(b->engine, qb, &info);
    ck_assert_int_eq(info.state, QPS_RTS);
    vnet_free(net);
}
END_TEST

/* ---- A30 ---- */

/* A30, REQ-07: the requester honours max_msg_sz (ours is 2^31): a longer message completes with an
 * error and no packet goes out; the longest one is sent. */
START_TEST(a30_no_message_beyond_the_limit)
{
    static const uint32_t more[] = {0, 1};
    struct vnet_qp_params p = {.timeout = 12};
    struct qp *qa, *qb;
    uint32_t lkey;
    uint64_t len = (1ull << 31) + more[_i], va = 1ull << 32;
    struct mem_seg seg = {ours, 0, len}; /* data are placed only in the first octets */
    start(",rate=10G,delay=2us,loss=1", 7);
    ck_assert_int_eq(vnet_connect(a, b, &p, &qa, &qb), 0);
    ck_assert_int_eq(
        mem_mr_reg(a->mem, a->pd, va, len, MEM_LOCAL_WRITE, &seg, 1, a, &lkey, &unused), 0);
    struct engine_sge sge[2] = {{va, 1u << 31, lkey}, {va + (1ull << 31), more[_i], lkey}};
    struct engine_send_wr wr = {.opcode = WR_RDMA_READ,
                                .flags = WR_F_SIGNALED,
                                .nsge = (uint8_t)(1 + more[_i]),
                                .sge = sge,
                                .rkey = theirs_rkey,
                                .remote_va = (uint64_t)(uintptr_t)theirs};
    ck_assert_int_eq(engine_post_send(a->engine, qa, &wr, net->now), 0);
    vnet_run_for(net, MS);
    uint64_t sent = engine_counters(a->engine)[ENGINE_C_tx_packets];
    ck_assert_msg((sent == 0) == (more[_i] > 0), "A30 %llu packets", (unsigned long long)sent);
    ck_assert_uint_eq(a->wcs_n, more[_i]);
    if (more[_i])
        ck_assert_uint_eq(a->wcs[0].wc.status, WC_LOC_LEN_ERR);
    vnet_free(net);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("rxe habits");
    TCase *c = tcase_create("rxe habits");
    tcase_set_timeout(c, 60);
    tcase_add_loop_test(c, a8b_no_ack_in_the_place_of_data, 0, 5);
    tcase_add_test(c, a13_spurious_repetitions);
    tcase_add_loop_test(c, a30_no_message_beyond_the_limit, 0, 2);
    suite_add_tcase(s, c);
    return unit_run(s);
}
