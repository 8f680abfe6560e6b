/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Congestion control and loss recovery end to end: two engines on a link that marks, drops and
 * loses, in virtual time.
 */
#include <string.h>

#include "cc_of.h"
#include "vnet.h"

#define US      1000ull
#define MS      1000000ull
#define MESSAGE 65536u
#define FLOWS   4u

static struct vnet *net;
static struct vnet_host *a, *b;
static uint8_t src[FLOWS * MESSAGE], dst[FLOWS * MESSAGE];
static uint32_t src_lkey, src_rkey, dst_lkey, dst_rkey;

struct flow {
    struct qp *qa, *qb;
    uint64_t tx_bytes; /* at the last look */
};
static struct flow flow[FLOWS];

static void start(const char *link, const char *spec, unsigned flows)
{
    const struct cc_conf conf = cc_of(spec);
    net = vnet_new(2, link, 7);
    ck_assert_ptr_nonnull(net);
    a = net->hosts[0];
    b = net->hosts[1];
    for (size_t i = 0; i < sizeof(src); i++)
        src[i] = (uint8_t)(i * 31 + (i >> 8));
    memset(dst, 0, sizeof(dst));
    unsigned rights = MEM_LOCAL_WRITE | MEM_REMOTE_ANY;
    ck_assert_int_eq(vnet_reg(a, src, sizeof(src), rights, &src_lkey, &src_rkey), 0);
    ck_assert_int_eq(vnet_reg(b, dst, sizeof(dst), rights, &dst_lkey, &dst_rkey), 0);
    ck_assert_int_eq(engine_set_cc(a->engine, &conf, net->now), 0);
    ck_assert_int_eq(engine_set_cc(b->engine, &conf, net->now), 0);
    for (unsigned i = 0; i < flows; i++) {
        struct vnet_qp_params p = {.timeout = 8};
        flow[i].tx_bytes = 0;
        ck_assert_int_eq(vnet_connect(a, b, &p, &flow[i].qa, &flow[i].qb), 0);
    }
}

static uint64_t count_of(const struct vnet_host *h, enum engine_counter c)
{
    return engine_counters(h->engine)[c];
}

/* Keep the flow busy with WRITEs of A, or READs of B from A. */
static void feed(unsigned i, bool read)
{
    struct vnet_host *h = read ? b : a;
    struct qp *qp = read ? flow[i].qb : flow[i].qa;
    uint8_t *local = (read ? dst : src) + i * MESSAGE, *remote = (read ? src : dst) + i * MESSAGE;
    struct engine_sge sge = {(uint64_t)(uintptr_t)local, MESSAGE, read ? dst_lkey : src_lkey};
    struct engine_send_wr wr = {.opcode = read ? WR_RDMA_READ : WR_RDMA_WRITE,
                                .nsge = 1,
                                .sge = &sge,
                                .rkey = read ? src_rkey : dst_rkey,
                                .remote_va = (uint64_t)(uintptr_t)remote};
    while (engine_sq_room(qp) > 240)
        ck_assert_int_eq(engine_post_send(h->engine, qp, &wr, net->now), 0);
}

static void run_for(unsigned flows, bool read, uint64_t ns)
{
    for (uint64_t end = net->now + ns; net->now < end;) {
        for (unsigned i = 0; i < flows; i++)
            feed(i, read);
        ck_assert_int_eq(vnet_run_for(net, 20 * US), 0);
    }
}

/* bit/s of the flow's data (frames) from A since the last call, over ns. */
static double rate_of(unsigned i, uint64_t ns)
{
    struct engine_qp_info info;
    engine_qp_info(a->engine, flow[i].qa, &info);
    double rate = (double)(info.tx_bytes - flow[i].tx_bytes) * 8e9 / (double)ns;
    flow[i].tx_bytes = info.tx_bytes;
    return rate;
}

static void stop(unsigned flows)
{
    ck_assert(!memcmp(src, dst, (size_t)flows * MESSAGE));
    vnet_free(net);
}

#define MARKING ",rate=10G,delay=2us,queue=4M,ecn_kmin=20K,ecn_kmax=80K,ecn_pmax=0.1"

/* CC-03, CC-08, CTR-04: two flows over a link that marks share it, nothing is dropped, each mark
 * is seen, and each CNP sent is handled. */
START_TEST(ctr_04_two_flows)
{
    static const char *const specs[] = {"dcqcn", "dcqcn:paper", "dcqcn-mlx:hpcc"};
    for (unsigned k = 0; k < sizeof(specs) / sizeof(specs[0]); k++) {
        start(MARKING, specs[k], 2);
        run_for(2, false, 400 * MS); /* both begin at line rate: deep cuts, and a slow way back */
        rate_of(0, 1), rate_of(1, 1);
        run_for(2, false, 30 * MS);
        double x = rate_of(0, 30 * MS), y = rate_of(1, 30 * MS);
        double fair = (x + y) * (x + y) / (2 * (x * x + y * y));
        ck_assert_msg(x + y > 7.5e9, "%s: %.3g + %.3g", specs[k], x, y);
        ck_assert_msg(fair > 0.9, "%s: %.3g and %.3g", specs[k], x, y);
        struct mem_link_stats st;
        mem_link_stats(net->link, MEM_LINK_ALL, net->now, &st);
        ck_assert_uint_eq(st.lost[MEM_LINK_R_QUEUE], 0);
        ck_assert_uint_gt(st.marked, 0);
        ck_assert_int_eq(vnet_run_for(net, 200 * MS), 0); /* all is answered */
        ck_assert_uint_gt(count_of(b, ENGINE_C_np_cnp_sent), 10);
        ck_assert_uint_eq(count_of(b, ENGINE_C_np_cnp_sent), count_of(a, ENGINE_C_rp_cnp_handled));
        ck_assert_uint_eq(count_of(a, ENGINE_C_rp_cnp_unearned), 0); /* SEC-17 */
        ck_assert_uint_eq(count_of(a, ENGINE_C_tx_retransmit), 0);
        ck_assert_uint_eq(count_of(a, ENGINE_C_local_ack_timeout_err), 0);
        stop(2);
    }
}
END_TEST

/* The same two flows without control: the queue fills up to the windows' limit. This shows that the
 * marks do not depend on DCQCN. */
START_TEST(cc_02_marks_without_control)
{
    start(MARKING, "none", 2);
    run_for(2, false, 10 * MS);
    struct mem_link_stats st;
    mem_link_stats(net->link, MEM_LINK_ALL, net->now, &st);
    ck_assert_uint_gt(st.marked, st.frames / 4); /* ECT comes from the traffic class here */
    ck_assert_uint_gt(count_of(b, ENGINE_C_np_cnp_sent), 100);
    ck_assert_uint_eq(count_of(a, ENGINE_C_rp_cnp_handled), 0);
    ck_assert_uint_gt(count_of(a, ENGINE_C_rp_cnp_ignored), 100);
    stop(2);
}
END_TEST

/* CC-21: the responder's limiter applies to its READ responses. */
START_TEST(cc_21_reads)
{
    start(MARKING, "dcqcn:paper", 2);
    run_for(2, true, 100 * MS);
    rate_of(0, 1), rate_of(1, 1);
    run_for(2, true, 20 * MS);
    double x = rate_of(0, 20 * MS), y = rate_of(1, 20 * MS);
    ck_assert_msg(x + y > 7.5e9 && x + y < 10.1e9, "%.3g + %.3g", x, y);
    ck_assert_uint_gt(count_of(a, ENGINE_C_rp_cnp_handled), 10);
    ck_assert_uint_eq(count_of(b, ENGINE_C_rp_cnp_handled), 0);
    struct mem_link_stats st;
    mem_link_stats(net->link, MEM_LINK_ALL, net->now, &st);
    ck_assert_uint_eq(st.lost[MEM_LINK_R_QUEUE], 0);
    stop(2);
}
END_TEST

/* CC-24: algorithms that use the round trip keep the link busy and the queue short; without control
 * the queue grows until it drops. */
START_TEST(cc_24_round_trip)
{
    static const struct {
        const char *spec;
        bool drops;
    } cases[] = {
        {"none", true},
        {"timely,t_low=20us,t_high=60us,min_rtt=10us,start=2G", false},
        {"swift,target=30us,fs_range=10us,max_cwnd=64", false},
    };
    for (unsigned k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        start(",rate=10G,delay=2us,queue=300K", cases[k].spec, 4);
        run_for(4, false, 20 * MS);
        for (unsigned i = 0; i < 4; i++)
            rate_of(i, 1);
        struct mem_link_stats before, st;
        mem_link_stats(net->link, MEM_LINK_ALL, net->now, &before);
        run_for(4, false, 20 * MS);
        mem_link_stats(net->link, MEM_LINK_ALL, net->now, &st);
        double sum = 0;
        for (unsigned i = 0; i < 4; i++)
            sum += rate_of(i, 20 * MS);
        uint64_t lost = st.lost[MEM_LINK_R_QUEUE] - before.lost[MEM_LINK_R_QUEUE];
        ck_assert_msg(cases[k].drops == (lost > 0), "%s: %d dropped", cases[k].spec, (int)lost);
        ck_assert_msg(sum > 8e9, "%s: %.3g", cases[k].spec, sum);
        stop(4);
    }
}
END_TEST

/* LR-14: goodput over a lossy link, and the number of retransmissions for each lost packet. */
START_TEST(lr_14_gbn_against_sr)
{
    double goodput[2], again[2];
    for (unsigned k = 0; k < 2; k++) {
        start(",rate=10G,delay=5us,loss=0.01", k ? "none,recovery=sr" : "none,recovery=gbn", 1);
        run_for(1, false, MS);
        uint64_t una = 0, sent = count_of(a, ENGINE_C_tx_retransmit);
        struct engine_qp_info info;
        struct mem_link_stats before, st;
        engine_qp_info(a->engine, flow[0].qa, &info);
        una = info.una_psn;
        mem_link_stats(net->link, MEM_LINK_ALL, net->now, &before);
        run_for(1, false, 20 * MS);
        engine_qp_info(a->engine, flow[0].qa, &info);
        mem_link_stats(net->link, MEM_LINK_ALL, net->now, &st);
        goodput[k] = (double)((info.una_psn - una) & 0xFFFFFF) * 1024 * 8e9 / (20.0 * MS);
        again[k] = (double)(count_of(a, ENGINE_C_tx_retransmit) - sent) /
                   (double)(st.lost[MEM_LINK_R_LOSS] - before.lost[MEM_LINK_R_LOSS]);
        ck_assert_uint_eq(info.recovery_agreed, k);
        stop(1);
    }
    ck_assert_msg(goodput[1] > 8e9, "sr: %.3g", goodput[1]);
    ck_assert_msg(goodput[1] > 1.3 * goodput[0], "sr %.3g gbn %.3g", goodput[1], goodput[0]);
    ck_assert_msg(again[1] < 2 && again[0] > 5, "sent again per loss: sr %.3g gbn %.3g", again[1],
                  again[0]);
}
END_TEST

struct drop_rule {
    uint32_t psn;
    unsigned seen;         /* transmissions of that PSN */
    uint64_t sent, nak_at; /* times: of the packet after it, of the first NAK */
};

static void watch_first(void *ctx, const uint8_t *frame, uint32_t len, unsigned dir, uint64_t now,
                        struct mem_link_verdict *v)
{
    struct drop_rule *rule = ctx;
    struct wire_pkt p;
    (void)v;
    if (wire_parse(frame, len, WIRE_P_SELECTIVE | WIRE_P_NO_ICRC, &p) != WIRE_OK)
        return;
    bool ack = p.opcode == WIRE_ACKNOWLEDGE;
    rule->seen += dir == 0 && !ack && p.psn == rule->psn;
    if (dir == 0 && !ack && p.psn == rule->psn + 1 && !rule->sent)
        rule->sent = now;
    if (dir == 1 && ack && p.syndrome == WIRE_SYN_NAK_SEQ && !rule->nak_at)
        rule->nak_at = now;
}

/* LR-13, LR-14: lose only the first transmission of PSN +4: the number of additional packets, and
 * the time to the NAK. */
START_TEST(lr_13_one_packet)
{
    static const struct {
        const char *spec;
        uint64_t least, most; /* sent again */
    } cases[] = {{"none,recovery=gbn", 20, 200}, {"none,recovery=sr", 1, 1}};
    for (unsigned k = 0; k < 2; k++) {
        struct drop_rule rule = {.psn = 4 + 64}; /* the second message: they have agreed by then */
        start(",rate=10G,delay=2us", cases[k].spec, 1);
        static const char faults[] = "drop a->b psn +68 first-tx";
        struct fault_error err;
        struct fault_rule_stats done;
        ck_assert_int_eq(mem_link_rules_set(net->link, faults, sizeof(faults) - 1, &err), 0);
        mem_link_rule_set(net->link, watch_first, &rule);
        feed(0, false);
        ck_assert_int_eq(vnet_run_for(net, 5 * MS), 0);
        ck_assert_uint_eq(rule.seen, 2);
        ck_assert(mem_link_rules_get(net->link, 0, &done, NULL, 0) && done.done == 1);
        uint64_t again = count_of(a, ENGINE_C_tx_retransmit);
        ck_assert_msg(again >= cases[k].least && again <= cases[k].most, "%s: %d", cases[k].spec,
                      (int)again);
        ck_assert_uint_le(rule.nak_at - rule.sent, 80 * US); /* 64 packets stand before it */
        ck_assert_uint_eq(count_of(a, ENGINE_C_local_ack_timeout_err), 0);
        stop(1);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("congestion");
    TCase *tcase = tcase_create("congestion");
    tcase_set_timeout(tcase, 100); /* sanitizers take their time */
    tcase_add_test(tcase, ctr_04_two_flows);
    tcase_add_test(tcase, cc_02_marks_without_control);
    tcase_add_test(tcase, cc_21_reads);
    tcase_add_test(tcase, cc_24_round_trip);
    tcase_add_test(tcase, lr_14_gbn_against_sr);
    tcase_add_test(tcase, lr_13_one_packet);
    suite_add_tcase(suite, tcase);
    return unit_run(suite);
}
