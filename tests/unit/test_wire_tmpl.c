/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A template must emit the same frame as wire_build for the same fields.
 */
#include "frames.h"
#include "unit.h"

static struct wire_var var_of(const struct wire_pkt *p)
{
    return (struct wire_var){
        .opcode = p->opcode,
        .se = p->se,
        .ackreq = p->ackreq,
        .tclass = p->tclass,
        .syndrome = p->syndrome,
        .ip_id = p->ip_id,
        .psn = p->psn,
        .msn = p->msn,
        .va = p->va,
        .rkey = p->rkey,
        .dma_len = p->dma_len,
        .imm = p->imm,
        .swap_add = p->swap_add,
        .compare = p->compare,
        .orig = p->orig,
        .qkey = p->qkey,
        .sqpn = p->sqpn,
        .xrc_srqn = p->xrc_srqn,
        .feth = p->feth,
        .payload_len = p->payload_len,
    };
}

/* HDR-01 HDR-08 ICRC-07 WIRE-12 WIRE-13 every opcode, kind and pad: the same octets as wire_build.
 */
START_TEST(hdr_01_emit_equals_build)
{
    static uint8_t f[512];
    static uint8_t g[512];
    for (unsigned op = 0; op < 256; op++) {
        if (!wire_opcodes[op].name || op == WIRE_OPCODE_CNP)
            continue;
        for (unsigned n = 0; n < 4 * 5 * 4; n++) {
            bool payload = wire_opcodes[op].flags & WIRE_F_PAYLOAD;
            struct wire_pkt p = frame_pkt(n & 3, (uint8_t)op, payload ? n >> 2 : 0);
            p.se = n & 4;
            p.ackreq = n & 8;
            p.migreq = !(n & 16);
            p.tclass = (uint8_t)(n * 37);
            p.ip_id = (uint16_t)(n * 12345);
            p.psn = 0xFFFFF0 + n;
            struct wire_tmpl t;
            struct wire_var v = var_of(&p);
            wire_tmpl_init(&t, &p);
            memset(f, 0xEE, sizeof(f));
            memset(g, 0x11, sizeof(g));
            size_t len = frame_make(f, sizeof(f), &p);
            uint32_t got = 0;
            size_t at = wire_tmpl_emit(g, &t, &v, &got);
            ck_assert_uint_eq(at, p.payload_off);
            ck_assert_uint_eq(got, len);
            ck_assert_uint_eq(t.ip_off, p.ip_off);
            ck_assert_uint_eq(t.bth_off, p.bth_off);
            memcpy(g + at, f + at, p.payload_len);
            wire_icrc_seal(g, got, t.ip_off, t.bth_off);
            ck_assert_msg(memcmp(f, g, len) == 0, "HDR-01 %s, case %u", wire_opcodes[op].name, n);
        }
    }
}
END_TEST

/* WIRE-10 WIRE-15 WIRE-18 WIRE-24 fields that a template fixes by itself. */
START_TEST(wire_15_template_defaults)
{
    struct wire_pkt p = frame_pkt(FRAME_V4, WIRE_OPCODE(WIRE_RC, WIRE_SEND_ONLY), 0);
    struct wire_pkt q;
    struct wire_tmpl t, plain;
    uint8_t f[256];
    uint32_t len;
    p.ttl = 0;
    wire_tmpl_init(&plain, &p);
    p.ip_flags = 0;
    p.udp_csum = 0x1234;
    p.dport = 53;
    p.fecn = p.becn = p.se = p.ackreq = true;
    p.tver = 3;
    p.psn = 77;
    p.ip_id = 88;
    p.tclass = 99;
    p.payload_len = 4096;
    p.opcode = WIRE_OPCODE(WIRE_RC, WIRE_WRITE_ONLY);
    wire_tmpl_init(&t, &p);
    ck_assert_mem_eq(&t, &plain, sizeof(t)); /* nothing of a single packet is in it */
    p.opcode = WIRE_OPCODE(WIRE_RC, WIRE_SEND_ONLY);
    struct wire_var v = {.opcode = p.opcode, .psn = 5};
    wire_tmpl_emit(f, &t, &v, &len);
    wire_icrc_seal(f, len, t.ip_off, t.bth_off);
    ck_assert_int_eq(wire_parse(f, len, 0, &q), WIRE_OK);
    ck_assert_uint_eq(q.ttl, 64);
    ck_assert_uint_eq(q.ip_flags, 2);
    ck_assert_uint_eq(q.udp_csum, 0);
    ck_assert_uint_eq(q.dport, WIRE_UDP_PORT);
    ck_assert_uint_eq(q.tclass, 0);
    ck_assert(!q.fecn && !q.becn && !q.se && !q.ackreq);
    ck_assert_uint_eq(q.psn, 5);
    p.ttl = 7;
    wire_tmpl_init(&t, &p);
    wire_tmpl_emit(f, &t, &v, &len);
    ck_assert_uint_eq(f[t.ip_off + 8], 7);
}
END_TEST

/* LR-02 LR-06 the packets of selective repeat: the same octets as wire_build, which parse to their
 * original values, cut to the width of their fields. */
START_TEST(lr_02_selective)
{
    for (unsigned op = 0; op < 32; op++) {
        const struct wire_opcode_info *info = &wire_selective[op];
        if (!info->name)
            continue;
        bool payload = info->flags & WIRE_F_PAYLOAD;
        struct wire_pkt p = frame_pkt(op & 1, (uint8_t)op, payload ? 5 : 0);
        struct wire_pkt q;
        struct wire_tmpl t;
        uint8_t f[256] = {0};
        uint8_t g[256] = {0};
        uint32_t len;
        p.selective = true;
        p.sel_recv = 0xAB123456;
        p.sel_index = 0x89ABCDEF;
        p.sel_psn = 0xCD654321;
        struct wire_var v = var_of(&p);
        v.selective = true;
        v.sel_recv = p.sel_recv;
        v.sel_index = p.sel_index;
        v.sel_psn = p.sel_psn;
        wire_tmpl_init(&t, &p);
        size_t made = frame_make(f, sizeof(f), &p);
        size_t at = wire_tmpl_emit(g, &t, &v, &len);
        ck_assert_uint_eq(len, made);
        memcpy(g + at, f + at, p.payload_len);
        wire_icrc_seal(g, len, t.ip_off, t.bth_off);
        ck_assert_msg(memcmp(f, g, len) == 0, "%s", info->name);
        ck_assert_uint_eq(f[p.bth_off], WIRE_SELECTIVE | op);
        ck_assert_int_ne(wire_parse(f, len, 0, &q), WIRE_OK);
        ck_assert_int_eq(wire_parse(f, len, WIRE_P_SELECTIVE, &q), WIRE_OK);
        ck_assert(q.selective);
        ck_assert_uint_eq(q.opcode, op);
        bool send = info->flags & WIRE_F_SEND, ack = info->flags & WIRE_F_ACK;
        ck_assert_uint_eq(q.sel_recv, send ? 0x123456 : 0);
        ck_assert_uint_eq(q.sel_index, send ? 0x89ABCDEF : 0);
        ck_assert_uint_eq(q.sel_psn, ack ? 0x654321 : 0);
        if (send) /* SEC-11 */
            ck_assert_uint_eq(f[q.payload_off - 8], 0);
        if (ack)
            ck_assert_uint_eq(f[q.payload_off - 4], 0);
    }
}
END_TEST

/* WIRE-07 a new destination MAC changes nothing else. */
START_TEST(wire_07_new_mac)
{
    static const uint8_t mac[6] = {0x0A, 1, 2, 3, 4, 5};
    struct wire_pkt p = frame_pkt(FRAME_V4, WIRE_OPCODE(WIRE_RC, WIRE_SEND_ONLY), 0);
    struct wire_var v = var_of(&p);
    struct wire_tmpl t;
    uint8_t f[256];
    uint8_t g[256];
    uint32_t len;
    wire_tmpl_init(&t, &p);
    wire_tmpl_emit(f, &t, &v, &len);
    wire_icrc_seal(f, len, t.ip_off, t.bth_off);
    wire_tmpl_set_dmac(&t, mac);
    wire_tmpl_emit(g, &t, &v, &len);
    wire_icrc_seal(g, len, t.ip_off, t.bth_off);
    ck_assert_mem_eq(g, mac, 6);
    ck_assert_mem_eq(g + 6, f + 6, len - 6);
}
END_TEST

/* WIRE-12 SEC-04 emit writes no octet outside its WIRE_HDR_MAX of room. */
START_TEST(sec_04_emit_stays_inside)
{
    for (unsigned op = 0; op < 256; op++) {
        if (!wire_opcodes[op].name || op == WIRE_OPCODE_CNP)
            continue;
        struct wire_pkt p = frame_pkt(FRAME_V6 | FRAME_TAGGED, (uint8_t)op, 0);
        struct wire_var v = var_of(&p);
        struct wire_tmpl t;
        uint8_t f[WIRE_HDR_MAX + 64];
        uint32_t len;
        memset(f, 0xEE, sizeof(f));
        wire_tmpl_init(&t, &p);
        ck_assert_uint_le(wire_tmpl_emit(f, &t, &v, &len), WIRE_HDR_MAX);
        for (size_t i = WIRE_HDR_MAX; i < sizeof(f); i++)
            ck_assert_uint_eq(f[i], 0xEE);
    }
}
END_TEST

/* HDR-01 WIRE-11 the packets of a run are the same octets as if each had been emitted by itself. */
START_TEST(hdr_01_a_run)
{
    static const uint8_t opcodes[] = {WIRE_OPCODE(WIRE_RC, WIRE_WRITE_MIDDLE),
                                      WIRE_OPCODE(WIRE_RC, WIRE_READ_RESP_MIDDLE)};
    for (unsigned n = 0; n < 4 * 2 * 4; n++) {
        struct wire_pkt p = frame_pkt(n & 3, opcodes[n >> 2 & 1], 256 << (n >> 3));
        struct wire_tmpl t;
        struct wire_tmpl run;
        struct wire_var v = var_of(&p);
        v.tclass = (uint8_t)(n * 37);
        uint32_t len;
        wire_tmpl_init(&t, &p);
        wire_tmpl_run(&run, &t, &v, &len);
        for (unsigned i = 0; i < 70000; i += 1 + i / 3) { /* IP ids to the end, and around */
            uint8_t f[WIRE_HDR_MAX];
            uint8_t g[WIRE_HDR_MAX];
            uint32_t one;
            v.psn = 0xFFFFF0 + i;
            v.ackreq = i & 1;
            v.ip_id = (uint16_t)i;
            ck_assert_uint_eq(wire_tmpl_emit(f, &t, &v, &one), run.len);
            ck_assert_uint_eq(one, len);
            wire_tmpl_next(g, &run, v.psn, v.ackreq, v.ip_id);
            ck_assert_mem_eq(f, g, run.len);
        }
    }
}
END_TEST

UNIT_MAIN("wire tmpl", hdr_01_a_run, hdr_01_emit_equals_build, wire_15_template_defaults,
          lr_02_selective, wire_07_new_mac, sec_04_emit_stays_inside)
