/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "frames.h"
#include "unit.h"

#define OP(svc, op) WIRE_OPCODE(WIRE_##svc, WIRE_##op)

/* SEC-30 one line per frame: keys only on demand, payload never. */
START_TEST(sec_30_lines)
{
    static const struct {
        unsigned kind;
        uint8_t opcode;
        uint32_t payload;
        unsigned flags;
        const char *line;
    } rows[] = {
        {FRAME_V4, OP(RC, WRITE_ONLY), 13, 0,
         "192.0.2.1 > 192.0.2.2 RC_WRITE_ONLY qp 0xabc psn 0xfffffe va 0x7f1122334455 dma 13 "
         "len 13"},
        {FRAME_V4, OP(RC, WRITE_ONLY), 13, WIRE_D_KEYS,
         "192.0.2.1 > 192.0.2.2 RC_WRITE_ONLY qp 0xabc psn 0xfffffe va 0x7f1122334455 rkey 0x1a2b3 "
         "dma 13 len 13"},
        {FRAME_V6 | FRAME_TAGGED, OP(RC, SEND_ONLY_IMM), 4, WIRE_D_ETHER,
         "02:00:5e:00:53:01 > 02:00:5e:00:53:02 vlan 100 pcp 3 2001:db8::1 > 2001:db8::2 "
         "RC_SEND_ONLY_IMM qp 0xabc psn 0xfffffe imm 0xdeadbeef len 4"},
        {FRAME_V4, OP(RC, ACKNOWLEDGE), 0, 0,
         "192.0.2.1 > 192.0.2.2 RC_ACKNOWLEDGE qp 0xabc psn 0xfffffe ack msn 8873283"},
        {FRAME_V4, OP(RC, FETCH_ADD), 0, 0,
         "192.0.2.1 > 192.0.2.2 RC_FETCH_ADD qp 0xabc psn 0xfffffe va 0x7f1122334455"},
        {FRAME_V4, OP(UD, SEND_ONLY), 4, WIRE_D_KEYS,
         "192.0.2.1 > 192.0.2.2 UD_SEND_ONLY qp 0xabc psn 0xfffffe from-qp 0x123 qkey 0x11223344 "
         "len 4"},
        {FRAME_V4, OP(UD, SEND_ONLY), 4, 0,
         "192.0.2.1 > 192.0.2.2 UD_SEND_ONLY qp 0xabc psn 0xfffffe from-qp 0x123 len 4"},
        {FRAME_V4, OP(RC, SEND_ONLY_INV), 4, 0,
         "192.0.2.1 > 192.0.2.2 RC_SEND_ONLY_INV qp 0xabc psn 0xfffffe inv len 4"},
        {FRAME_V4, OP(RC, SEND_ONLY_INV), 4, WIRE_D_KEYS,
         "192.0.2.1 > 192.0.2.2 RC_SEND_ONLY_INV qp 0xabc psn 0xfffffe inv rkey 0x1a2b3 len 4"},
        {FRAME_V4, OP(RC, SEND_ONLY), 0, WIRE_D_ETHER,
         "02:00:5e:00:53:01 > 02:00:5e:00:53:02 192.0.2.1 > 192.0.2.2 RC_SEND_ONLY qp 0xabc psn "
         "0xfffffe len 0"},
        {FRAME_V4, OP(XRC, SEND_ONLY), 4, 0,
         "192.0.2.1 > 192.0.2.2 XRC_SEND_ONLY qp 0xabc psn 0xfffffe srq 0xa1b2c3 len 4"},
        {FRAME_V4, OP(RC, FLUSH), 0, 0,
         "192.0.2.1 > 192.0.2.2 RC_FLUSH qp 0xabc psn 0xfffffe feth 0x12 va 0x7f1122334455 dma 0"},
        {FRAME_V4, OP(RC, ATOMIC_ACK), 0, WIRE_D_KEYS,
         "192.0.2.1 > 192.0.2.2 RC_ATOMIC_ACK qp 0xabc psn 0xfffffe ack msn 8873283"},
        {FRAME_V4, WIRE_OPCODE_CNP, 0, 0, "192.0.2.1 > 192.0.2.2 CNP qp 0xabc psn 0xfffffe"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint8_t f[256];
        char line[256];
        struct wire_pkt p = frame_pkt(rows[i].kind, rows[i].opcode, rows[i].payload);
        size_t len = frame_make(f, sizeof(f), &p);
        int n = wire_dump(line, sizeof(line), f, len, rows[i].flags);
        ck_assert_str_eq(line, rows[i].line);
        ck_assert_int_eq(n, (int)strlen(line));
    }
}
END_TEST

/* ACK-01 RNR-04 ACK-12 the syndrome in words. */
START_TEST(ack_01_syndromes)
{
    static const struct {
        uint8_t syndrome;
        const char *words;
    } rows[] = {
        {0x1F, " ack msn"},           {0x05, " ack credits 6 msn"}, {0x2C, " rnr-nak 0.64 ms msn"},
        {0x20, " rnr-nak 655.36 ms"}, {0x60, " nak sequence msn"},  {0x61, " nak invalid-request"},
        {0x62, " nak access msn"},    {0x63, " nak operation msn"}, {0x40, " syndrome 0x40"},
        {0x3F, " rnr-nak 491.52 ms"}, {0x64, " nak rd msn"},        {0x65, " syndrome 0x65"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint8_t f[256];
        char line[256];
        struct wire_pkt p = frame_pkt(FRAME_V4, OP(RC, ACKNOWLEDGE), 0);
        p.syndrome = rows[i].syndrome;
        size_t len = frame_make(f, sizeof(f), &p);
        wire_dump(line, sizeof(line), f, len, 0);
        ck_assert_msg(strstr(line, rows[i].words) != NULL, "ACK-01 %s", line);
    }
}
END_TEST

/* HDR-01 HDR-03 KEY-01 CC-01 rare fields are shown for packets that have them, and for no other. */
START_TEST(hdr_01_what_stands_out)
{
    static const struct {
        bool se, ackreq, fecn, becn;
        uint16_t pkey;
        uint8_t tclass;
        const char *line;
    } rows[] = {
        {.pkey = 0xFFFF, .tclass = 0, .line = " RC_SEND_ONLY qp 0xabc psn 0xfffffe len 0"},
        {.pkey = 0xFFFF, .tclass = 1, .line = " RC_SEND_ONLY qp 0xabc psn 0xfffffe len 0"},
        {.pkey = 0xFFFF, .tclass = 2, .line = " RC_SEND_ONLY qp 0xabc psn 0xfffffe len 0"},
        {.pkey = 0xFFFF, .tclass = 3, .line = " ce RC_SEND_ONLY qp 0xabc psn 0xfffffe len 0"},
        {.pkey = 0x7FFF, .line = " RC_SEND_ONLY qp 0xabc psn 0xfffffe pkey 0x7fff len 0"},
        {.pkey = 0xFFFF, .se = true, .line = " RC_SEND_ONLY qp 0xabc psn 0xfffffe se len 0"},
        {.pkey = 0xFFFF, .fecn = true, .line = " RC_SEND_ONLY qp 0xabc psn 0xfffffe fecn len 0"},
        {.pkey = 0xFFFF, .becn = true, .line = " RC_SEND_ONLY qp 0xabc psn 0xfffffe becn len 0"},
        {.pkey = 0xFFFF,
         .ackreq = true,
         .line = " RC_SEND_ONLY qp 0xabc psn 0xfffffe ackreq len 0"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint8_t f[256];
        char line[256];
        struct wire_pkt p = frame_pkt(FRAME_V4, OP(RC, SEND_ONLY), 0);
        p.se = rows[i].se;
        p.ackreq = rows[i].ackreq;
        p.fecn = rows[i].fecn;
        p.becn = rows[i].becn;
        p.pkey = rows[i].pkey;
        p.tclass = rows[i].tclass;
        size_t len = frame_make(f, sizeof(f), &p);
        wire_dump(line, sizeof(line), f, len, 0);
        ck_assert_str_eq(line + strlen("192.0.2.1 > 192.0.2.2"), rows[i].line);
    }
}
END_TEST

/* LR-02 LR-06 OPC-06 packets of selective repeat: bad opcodes unless the caller asks for them. */
START_TEST(lr_02_selective)
{
    static const struct {
        uint8_t opcode;
        uint32_t payload;
        const char *line;
    } rows[] = {
        {WIRE_ACKNOWLEDGE, 0,
         "192.0.2.1 > 192.0.2.2 SR_ACKNOWLEDGE qp 0xabc psn 0xfffffe ack msn 8873283 for-psn 0x64"},
        {WIRE_SEND_LAST_IMM, 4,
         "192.0.2.1 > 192.0.2.2 SR_SEND_LAST_IMM qp 0xabc psn 0xfffffe imm 0xdeadbeef recv 7 index "
         "3 len 4"},
        {WIRE_WRITE_MIDDLE, 4,
         "192.0.2.1 > 192.0.2.2 SR_WRITE_MIDDLE qp 0xabc psn 0xfffffe va 0x7f1122334455 dma 4 len "
         "4"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint8_t f[256];
        char line[256], bad[256];
        struct wire_pkt p = frame_pkt(FRAME_V4, rows[i].opcode, rows[i].payload);
        p.selective = true;
        p.sel_psn = 100;
        p.sel_recv = 7;
        p.sel_index = 3;
        size_t len = frame_make(f, sizeof(f), &p);
        wire_dump(line, sizeof(line), f, len, WIRE_D_SELECTIVE);
        ck_assert_str_eq(line, rows[i].line);
        snprintf(bad, sizeof(bad),
                 "rx_bad_opcode: 192.0.2.1 > 192.0.2.2 opcode 0x%02x qp 0xabc psn 0xfffffe",
                 WIRE_SELECTIVE | rows[i].opcode);
        wire_dump(line, sizeof(line), f, len, 0);
        ck_assert_str_eq(line, bad);
    }
}
END_TEST

/* WIRE-02 WIRE-05 WIRE-29 packets that a port doesn't take are shown, too: loopback addresses, two
 * tags, RoCE v1. */
START_TEST(wire_02_of_any_port)
{
    uint8_t f[256], g[256];
    char line[256];
    struct wire_pkt p = frame_pkt(FRAME_V4 | FRAME_TAGGED, OP(RC, SEND_ONLY), 0);
    p.tci = 0xEFFF;
    p.sip = wire_addr_v4(0x7F000001u);
    size_t len = frame_make(f, sizeof(f), &p);
    memcpy(g, f, 12);
    memcpy(g + 12, (const uint8_t[]){0x88, 0xA8, 0x00, 0x07}, 4);
    memcpy(g + 16, f + 12, len - 12);
    wire_dump(line, sizeof(line), g, len + 4, WIRE_D_ETHER);
    ck_assert_str_eq(line, "02:00:5e:00:53:01 > 02:00:5e:00:53:02 vlan 4095 pcp 7 127.0.0.1 > "
                           "192.0.2.2 RC_SEND_ONLY qp 0xabc psn 0xfffffe len 0");

    p = frame_pkt(FRAME_V6, OP(RC, SEND_ONLY), 0);
    len = frame_make(f, sizeof(f), &p) - WIRE_UDP_LEN;
    wire_put16(f + 12, WIRE_ETHERTYPE_V1);
    wire_put16(f + p.ip_off + 4, WIRE_BTH_LEN + WIRE_ICRC_LEN);
    f[p.ip_off + 6] = 0x1B;
    p.bth_off = p.udp_off;
    memmove(f + p.bth_off, f + p.bth_off + WIRE_UDP_LEN, WIRE_BTH_LEN);
    frame_fix_icrc(f, len, &p);
    wire_dump(line, sizeof(line), f, len, 0);
    ck_assert_str_eq(line, "2001:db8::1 > 2001:db8::2 v1 RC_SEND_ONLY qp 0xabc psn 0xfffffe len 0");
}
END_TEST

/* VAL-07 of a frame that a capture cut there is as much as is known; that isn't the frame's fault.
 */
START_TEST(val_07_captured_in_part)
{
    uint8_t f[256];
    char line[256], whole[256];
    struct wire_pkt p = frame_pkt(FRAME_V4, OP(RC, WRITE_ONLY), 100);
    size_t len = frame_make(f, sizeof(f), &p);
    wire_dump(whole, sizeof(whole), f, len, 0);
    for (size_t have = 0; have <= len; have++) {
        wire_dump_cut(line, sizeof(line), f, have, len, 0);
        if (have >= p.payload_off)
            ck_assert_str_eq(line, whole);
        else if (have >= p.bth_off + WIRE_BTH_LEN)
            ck_assert_str_eq(line,
                             "192.0.2.1 > 192.0.2.2 RC_WRITE_ONLY qp 0xabc psn 0xfffffe (cut)");
        else if (have >= p.udp_off)
            ck_assert_str_eq(line, "rx_truncated: 192.0.2.1 > 192.0.2.2 174 octets");
        else
            ck_assert_str_eq(line, "rx_truncated: 174 octets");
    }
}
END_TEST

/* VAL-06 a refused frame's line begins with the counter's name. */
START_TEST(val_06_refused)
{
    uint8_t f[256];
    char line[256];
    struct wire_pkt p = frame_pkt(FRAME_V4, OP(RC, SEND_ONLY), 4);
    size_t len = frame_make(f, sizeof(f), &p);
    f[len - 1] ^= 1;
    wire_dump(line, sizeof(line), f, len, 0);
    ck_assert_str_eq(line, "rx_icrc_err: 192.0.2.1 > 192.0.2.2 RC_SEND_ONLY qp 0xabc psn 0xfffffe "
                           "len 4");
    wire_dump(line, sizeof(line), f, len - 1, 0);
    ck_assert_str_eq(line, "rx_truncated: 192.0.2.1 > 192.0.2.2 61 octets");
    wire_dump(line, sizeof(line), f, 5, WIRE_D_ETHER);
    ck_assert_str_eq(line, "rx_truncated: 5 octets");
    wire_dump(line, sizeof(line), f, 13, WIRE_D_ETHER);
    ck_assert_str_eq(line, "rx_truncated: 13 octets");
    wire_dump(line, sizeof(line), f, 14, WIRE_D_ETHER);
    ck_assert_str_eq(line, "rx_truncated: 02:00:5e:00:53:01 > 02:00:5e:00:53:02 14 octets");
    f[p.bth_off] = 0x15;
    wire_dump(line, sizeof(line), f, len, 0);
    ck_assert_str_eq(line,
                     "rx_bad_opcode: 192.0.2.1 > 192.0.2.2 opcode 0x15 qp 0xabc psn 0xfffffe");
}
END_TEST

/* SEC-03 as snprintf: never outside the buffer, always terminated, the whole length returned. */
START_TEST(sec_03_small_buffers)
{
    uint8_t f[256];
    char whole[256];
    struct wire_pkt p = frame_pkt(FRAME_V6, OP(RC, WRITE_ONLY_IMM), 4);
    size_t len = frame_make(f, sizeof(f), &p);
    int n = wire_dump(whole, sizeof(whole), f, len, WIRE_D_ETHER | WIRE_D_KEYS);
    for (size_t size = 1; size < sizeof(whole); size++) {
        char *line = malloc(size);
        memset(line, 'x', size);
        ck_assert_int_eq(wire_dump(line, size, f, len, WIRE_D_ETHER | WIRE_D_KEYS), n);
        size_t fits = size - 1 < (size_t)n ? size - 1 : (size_t)n;
        ck_assert_uint_eq(strnlen(line, size), fits);
        ck_assert_mem_eq(line, whole, fits);
        free(line);
    }
    ck_assert_int_eq(wire_dump(NULL, 0, f, len, WIRE_D_ETHER | WIRE_D_KEYS), n);
}
END_TEST

UNIT_MAIN("wire dump", sec_30_lines, ack_01_syndromes, hdr_01_what_stands_out, lr_02_selective,
          wire_02_of_any_port, val_07_captured_in_part, val_06_refused, sec_03_small_buffers)
