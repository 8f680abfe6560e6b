/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Extended reliable connections. Their packets are read, shown and judged like any others; only
 * queue pairs of XRC take one, and only shared receive queues of a domain can be reached by a
 * number in a packet. The behaviour of XRC's queue pairs is in the scripts of tests/drill/xrc.
 */
#include <errno.h>
#include <string.h>

#include "core_rig.h"
#include "lint.h"
#include "replay.h"

#define SRQN   0xA1B2C3u
#define ROUNDS 6u

static bool is_xrc(unsigned opcode)
{
    return wire_opcodes[opcode].name && wire_opcodes[opcode].service == WIRE_XRC;
}

/* XRC-01, OPC-02: dropped silently by queue pairs of other types, which continue as before. */
START_TEST(xrc_01_other_queue_pairs_drop_it)
{
    static const enum qp_type types[] = {QP_RC, QP_UC, QP_UD};
    struct rig *r = rig_new(&(struct rig_opts){.type = types[_i]});
    unsigned kinds = 0;
    ck_assert_int_eq(rig_post_recv(r, 7, 0, 2048), 0);
    for (unsigned opcode = 0xA0; opcode <= 0xBF; opcode++) {
        if (!is_xrc(opcode))
            continue;
        struct wire_pkt p = rig_pkt(r, opcode, RIG_RQPSN);
        p.xrc_srqn = SRQN;
        p.payload_len = wire_opcodes[opcode].flags & WIRE_F_PAYLOAD ? RIG_MTU : 0;
        p.dma_len = p.payload_len;
        p.ackreq = true;
        p.syndrome = WIRE_SYN_ACK;
        rig_rx(r, &p, NULL);
        ck_assert_msg(r->last.verdict == WIRE_OK, "XRC-01 opcode 0x%x is well-formed", opcode);
        ck_assert_msg(r->last.drop == ENGINE_C_rx_qp_type_mismatch, "OPC-02 opcode 0x%x", opcode);
        kinds++;
    }
    ck_assert_uint_ge(kinds, 22);
    ck_assert_uint_eq(rig_count(r, ENGINE_C_rx_qp_type_mismatch), kinds);
    ck_assert_msg(rig_tx(r, 0) == 0, "XRC-01 something was answered");
    ck_assert_uint_eq(r->nwc, 0);
    ck_assert_uint_eq(r->nev, 0);
    ck_assert_int_eq(rig_state(r), QPS_RTS);
    if (types[_i] == QP_RC) { /* its PSN has not moved */
        struct wire_pkt p = rig_pkt(r, WIRE_SEND_ONLY, RIG_RQPSN);
        p.payload_len = 100;
        rig_rx(r, &p, NULL);
        ck_assert_uint_eq(r->nwc, 1);
        ck_assert_uint_eq(r->wc[0].wr_id, 7);
    }
    rig_free(r);
}
END_TEST

/* XRC-02: the number in an XRCETH leads no queue pair of another type to a shared receive queue. */
START_TEST(xrc_02_reaches_no_srq)
{
    struct rig *r = rig_new(NULL);
    struct engine_srq_params sp = {.pd = r->pd, .max_wr = 8, .max_sge = 1};
    struct srq *srq;
    ck_assert_int_eq(engine_srq_create(r->e, &sp, &srq), 0);
    const struct engine_sge sge = {RIG_VA, 2048, r->lkey};
    const struct engine_recv_wr wr = {.wr_id = 1, .nsge = 1, .sge = &sge};
    ck_assert_int_eq(engine_post_srq_recv(r->e, srq, &wr), 0);
    uint32_t room = engine_srq_room(srq);
    for (uint32_t n = 0; n < 64; n++) {
        struct wire_pkt p =
            rig_pkt(r, WIRE_OPCODE(WIRE_XRC, WIRE_SEND_ONLY), rig_psn(RIG_RQPSN, n));
        p.xrc_srqn = n;
        p.payload_len = 64;
        rig_rx(r, &p, NULL);
    }
    ck_assert_uint_eq(engine_srq_room(srq), room);
    ck_assert_uint_eq(r->nwc, 0);
    rig_free(r);
}
END_TEST

/* XRC-02: shared receive queues of domains have different numbers, which are reused late; other
 * queues have none. Their resources are released with them. */
START_TEST(xrc_02_numbers)
{
    enum { N = 100 };
    struct rig *r = rig_new(NULL);
    struct engine_srq_params sp = {.pd = r->pd, .max_wr = 1, .max_sge = 1};
    struct srq *srq[N], *plain;
    uint32_t before = 0;
    ck_assert_int_eq(engine_srq_create(r->e, &sp, &plain), 0);
    ck_assert_uint_eq(engine_srq_num(plain), 0);
    ck_assert_int_eq(engine_cq_create(r->e, NULL, &sp.cq), 0);
    sp.xrcd = 0x7777;
    ck_assert_int_eq(engine_srq_create(r->e, &sp, &srq[0]), -EINVAL);
    ck_assert_int_eq(mem_pd_alloc(engine_mem(r->e), &sp.xrcd), 0);
    for (unsigned i = 0; i < N; i++) {
        ck_assert_int_eq(engine_srq_create(r->e, &sp, &srq[i]), 0);
        ck_assert_uint_gt(engine_srq_num(srq[i]), before);
        before = engine_srq_num(srq[i]);
    }
    ck_assert_int_eq(engine_cq_destroy(r->e, sp.cq), -EBUSY);
    ck_assert_int_eq(mem_pd_free(engine_mem(r->e), sp.xrcd), -EBUSY);
    for (unsigned i = 0; i < N; i++)
        ck_assert_int_eq(engine_srq_destroy(r->e, srq[i]), 0);
    ck_assert_int_eq(engine_srq_create(r->e, &sp, &srq[0]), 0);
    ck_assert_uint_gt(engine_srq_num(srq[0]), before);
    ck_assert_int_eq(engine_srq_destroy(r->e, srq[0]), 0);
    ck_assert_int_eq(engine_cq_destroy(r->e, sp.cq), 0);
    ck_assert_int_eq(mem_pd_free(engine_mem(r->e), sp.xrcd), 0);
    rig_free(r);
}
END_TEST

/* ---- captures ---- */

static size_t frame(uint8_t *buf, unsigned op, uint32_t psn, bool answer)
{
    struct wire_pkt p = {
        .dmac = {2, 0, 0, 0, 0, answer ? 1 : 2},
        .smac = {2, 0, 0, 0, 0, answer ? 2 : 1},
        .ip_version = 4,
        .ttl = 64,
        .ip_flags = 2,
        .sip = wire_addr_v4(0x0A000001u + answer),
        .dip = wire_addr_v4(0x0A000002u - answer),
        .sport = 0xC123,
        .dport = WIRE_UDP_PORT,
        .migreq = true,
        .opcode = WIRE_OPCODE(WIRE_XRC, op),
        .pkey = WIRE_PKEY_DEFAULT,
        .dqpn = answer ? 0x101 : 0x202,
        .psn = psn,
        .ackreq = !answer,
        .xrc_srqn = SRQN,
        .syndrome = WIRE_SYN_ACK,
        .msn = psn + 1,
        .payload_len = answer ? 0 : 64,
    };
    size_t off = wire_build(buf, WIRE_FRAME_MAX, &p), len = wire_frame_len(&p);
    ck_assert_uint_gt(off, 0);
    memset(buf + off, 0x5A, p.payload_len);
    wire_icrc_seal(buf, len, p.ip_off, p.bth_off);
    return len;
}

/* XRC-01: the XRCETH, with the number of the SRQ, is the first extension header of every request;
 * answers have none. */
START_TEST(xrc_01_header_and_dump)
{
    uint8_t buf[WIRE_FRAME_MAX];
    char line[256];
    struct wire_pkt p;
    for (unsigned op = 0; op < 32; op++) {
        const struct wire_opcode_info *info = &wire_opcodes[WIRE_OPCODE(WIRE_XRC, op)];
        if (!info->name)
            continue;
        bool answer = info->flags & WIRE_F_RESPONSE;
        ck_assert_msg(info->xrceth == (answer ? 0 : WIRE_BTH_LEN), "XRC-01 %s", info->name);
    }
    size_t len = frame(buf, WIRE_SEND_ONLY, 5, false);
    ck_assert_int_eq(wire_parse(buf, len, 0, &p), WIRE_OK);
    ck_assert_uint_eq(p.xrc_srqn, SRQN);
    wire_dump(line, sizeof(line), buf, len, 0);
    ck_assert_msg(strstr(line, "XRC_SEND_ONLY") && strstr(line, "srq 0xa1b2c3"), "%s", line);
    len = frame(buf, WIRE_ACKNOWLEDGE, 5, true);
    wire_dump(line, sizeof(line), buf, len, 0);
    ck_assert_msg(strstr(line, "XRC_ACKNOWLEDGE") && !strstr(line, "srq"), "%s", line);
}
END_TEST

static void on_finding(void *ctx, const struct lint_finding *f)
{
    unsigned *n = ctx;
    ++*n;
    ck_assert_msg(f->verdict != LINT_VIOLATION, "%s: %s; %s", f->rule->id, f->dump, f->seen);
}

static void on_difference(void *ctx, const struct replay_difference *d)
{
    (void)ctx;
    ck_abort_msg("%s: %s", d->rule, d->capture);
}

/* XRC-01: lint follows a capture of XRC between other devices; replay, whose engine has no XRC,
 * does not judge it, and reports that. */
START_TEST(xrc_01_captures)
{
    uint8_t buf[WIRE_FRAME_MAX];
    unsigned findings = 0;
    struct lint *l = lint_new(on_finding, &findings, 0);
    struct replay *r = replay_new(0);
    struct lint_totals t;
    struct lint_flow_info info;
    struct replay_totals rt;
    for (unsigned i = 0; i < 2 * ROUNDS; i++) {
        size_t len = i % 2 ? frame(buf, WIRE_ACKNOWLEDGE, i / 2, true)
                           : frame(buf, WIRE_SEND_ONLY, i / 2, false);
        struct lint_frame f = {.number = i + 1, .ns = i * 10000, .data = buf, .len = (uint32_t)len};
        f.wire_len = f.len;
        lint_packet(l, &f, NULL);
        ck_assert_int_eq(replay_add(r, &f), 0);
    }
    lint_end(l);
    lint_totals(l, &t);
    ck_assert_uint_eq(t.roce, 2 * ROUNDS);
    ck_assert_uint_eq(t.flows, 2);
    ck_assert(lint_flow_info(l, 0, &info) && info.service == WIRE_XRC);
    ck_assert_uint_eq(info.sends, ROUNDS);
    ck_assert_uint_eq(info.peer, 1);
    ck_assert_int_eq(replay_run(r, REPLAY_BOTH, on_difference, NULL, NULL), 0);
    replay_totals(r, &rt);
    ck_assert_uint_eq(rt.roce, 2 * ROUNDS);
    ck_assert_uint_eq(rt.compared, 0);
    lint_free(l);
    replay_free(r);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("xrc");
    TCase *c = tcase_create("xrc");
    tcase_add_loop_test(c, xrc_01_other_queue_pairs_drop_it, 0, 3);
    tcase_add_test(c, xrc_02_numbers);
    tcase_add_test(c, xrc_02_reaches_no_srq);
    tcase_add_test(c, xrc_01_header_and_dump);
    tcase_add_test(c, xrc_01_captures);
    suite_add_tcase(s, c);
    return unit_run(s);
}
