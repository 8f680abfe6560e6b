/* SPDX-License-Identifier: BSD-3-Clause */
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
}
END_TEST

/* SEC-03 as snprintf: never beyond the buffer, always terminated, the whole length returned. */
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

UNIT_MAIN("wire dump", sec_30_lines, ack_01_syndromes, val_06_refused, sec_03_small_buffers)
