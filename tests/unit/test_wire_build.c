/* SPDX-License-Identifier: BSD-3-Clause */
#include "frames.h"
#include "unit.h"

#define WRITE_ONLY WIRE_OPCODE(WIRE_RC, WIRE_WRITE_ONLY)
#define SEND_ONLY  WIRE_OPCODE(WIRE_RC, WIRE_SEND_ONLY)

/* WIRE-01 HDR-01 HDR-08 a whole frame, octet for octet as the catalogue prints it (vector V07). */
START_TEST(wire_01_layout)
{
    static const uint8_t want[] = {
        0x02, 0x00, 0x5e, 0x00, 0x53, 0x02, 0x02, 0x00, 0x5e, 0x00, 0x53, 0x01, 0x08, 0x00, 0x45,
        0x02, 0x00, 0x4c, 0x12, 0x34, 0x40, 0x00, 0x40, 0x11, 0xa4, 0x67, 0xc0, 0x00, 0x02, 0x01,
        0xc0, 0x00, 0x02, 0x02, 0xc1, 0x23, 0x12, 0xb7, 0x00, 0x38, 0x00, 0x00, 0x0a, 0x70, 0xff,
        0xff, 0x00, 0x00, 0x0a, 0xbc, 0x80, 0xff, 0xff, 0xfe, 0x00, 0x00, 0x7f, 0x11, 0x22, 0x33,
        0x44, 0x55, 0x00, 0x01, 0xa2, 0xb3, 0x00, 0x00, 0x00, 0x0d, 0x41, 0x42, 0x43, 0x44, 0x45,
        0x46, 0x47, 0x48, 0x49, 0x4a, 0x4b, 0x4c, 0x4d, 0x00, 0x00, 0x00, 0x72, 0x49, 0x99, 0x4f,
    };
    struct wire_pkt p = frame_pkt(FRAME_V4, WRITE_ONLY, 13);
    uint8_t f[sizeof(want)];
    p.tclass = 2;
    p.ackreq = true;
    ck_assert_uint_eq(wire_frame_len(&p), sizeof(want));
    ck_assert_uint_eq(wire_build(f, sizeof(f), &p), 70);
    memcpy(f + 70, "ABCDEFGHIJKLM", 13);
    wire_icrc_seal(f, sizeof(f), p.ip_off, p.bth_off);
    ck_assert_mem_eq(f, want, sizeof(want));
    ck_assert_uint_eq(p.pad, 3);
    ck_assert_uint_eq(p.ip_off, 14);
    ck_assert_uint_eq(p.udp_off, 34);
    ck_assert_uint_eq(p.bth_off, 42);
    ck_assert_uint_eq(p.payload_off, 70);
    ck_assert_uint_eq(p.icrc_off, 86);
}
END_TEST

/* WIRE-03 WIRE-16 a tagged IPv6 header, octet for octet. */
START_TEST(wire_16_ipv6_layout)
{
    static const uint8_t want[] = {
        0x81, 0x00, 0x60, 0x64, 0x86, 0xDD, 0x66, 0xA5, 0x43, 0x21, 0x00, 0x18, 0x11, 0x40,
        0x20, 0x01, 0x0D, 0xB8, 0,    0,    0,    0,    0,    0,    0,    0,    0,    0,
        0,    1,    0x20, 0x01, 0x0D, 0xB8, 0,    0,    0,    0,    0,    0,    0,    0,
        0,    0,    0,    2,    0xC1, 0x23, 0x12, 0xB7, 0x00, 0x18, 0x00, 0x00, 0x04, 0x40,
    };
    struct wire_pkt p = frame_pkt(FRAME_V6 | FRAME_TAGGED, SEND_ONLY, 0);
    uint8_t f[128];
    size_t len = frame_make(f, sizeof(f), &p);
    ck_assert_uint_eq(len, 14 + 4 + 40 + 8 + 12 + 4);
    ck_assert_mem_eq(f + 12, want, sizeof(want));
}
END_TEST

/* HDR-05 WIRE-09 WIRE-17 WIRE-23 ICRC-07 pad and lengths for every payload length mod 4. */
START_TEST(hdr_05_pad_and_lengths)
{
    static const struct {
        uint32_t len, pad;
    } rows[] = {{0, 0}, {1, 3}, {2, 2}, {3, 1}, {4, 0}, {13, 3}, {4096, 0}};
    static uint8_t f[5000];
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (unsigned kind = 0; kind < 2; kind++) {
            struct wire_pkt p = frame_pkt(kind, WRITE_ONLY, rows[i].len);
            size_t len = frame_make(f, sizeof(f), &p);
            size_t udp = 8 + 12 + 16 + rows[i].len + rows[i].pad + 4;
            ck_assert_uint_eq(len, 14 + (kind ? 40 : 20) + udp);
            ck_assert_uint_eq(p.pad, rows[i].pad);
            ck_assert_uint_eq(f[p.bth_off + 1] >> 4 & 3, rows[i].pad);
            ck_assert_uint_eq(wire_get16(f + p.udp_off + 4), udp);
            ck_assert_uint_eq(wire_get16(f + p.ip_off + (kind ? 4 : 2)), kind ? udp : udp + 20);
        }
}
END_TEST

/* HDR-01 SEC-04 values wider than their field don't spill over, reserved bits are 0. */
START_TEST(hdr_01_wide_values)
{
    struct wire_pkt p = frame_pkt(FRAME_V6, WIRE_OPCODE(WIRE_XRC, WIRE_SEND_ONLY), 0);
    struct wire_pkt q;
    uint8_t f[256];
    p.dqpn = 0xFF000ABC;
    p.psn = 0xFF123456;
    p.flow_label = 0xFFF54321;
    p.tclass = 0;
    p.xrc_srqn = 0xFF0000A1;
    size_t len = frame_make(f, sizeof(f), &p);
    ck_assert_int_eq(wire_parse(f, len, 0, &q), WIRE_OK);
    ck_assert_uint_eq(q.dqpn, 0xABC);
    ck_assert_uint_eq(q.psn, 0x123456);
    ck_assert_uint_eq(q.flow_label, 0x54321);
    ck_assert_uint_eq(q.tclass, 0);
    ck_assert_uint_eq(q.xrc_srqn, 0xA1);
    ck_assert_uint_eq(f[q.bth_off + 4], 0);
    ck_assert_uint_eq(f[q.bth_off + 8], 0);
    ck_assert_uint_eq(f[q.bth_off + 12], 0);

    p = frame_pkt(FRAME_V4, WIRE_OPCODE(WIRE_UD, WIRE_SEND_ONLY), 0);
    p.sqpn = 0xFF000123;
    len = frame_make(f, sizeof(f), &p);
    ck_assert_int_eq(wire_parse(f, len, 0, &q), WIRE_OK);
    ck_assert_uint_eq(q.sqpn, 0x123);
    ck_assert_uint_eq(f[q.bth_off + 16], 0);

    p = frame_pkt(FRAME_V4, WIRE_OPCODE(WIRE_RC, WIRE_ACKNOWLEDGE), 0);
    p.msn = 0xFF000007;
    len = frame_make(f, sizeof(f), &p);
    ck_assert_int_eq(wire_parse(f, len, 0, &q), WIRE_OK);
    ck_assert_uint_eq(q.syndrome, WIRE_SYN_ACK);
    ck_assert_uint_eq(q.msn, 7);
}
END_TEST

/* HDR-02 WIRE-10 fields that no good frame has can be built, too: a fragment, another transport
 * version. */
START_TEST(hdr_02_bad_frames)
{
    struct wire_pkt p = frame_pkt(FRAME_V4, SEND_ONLY, 0);
    struct wire_pkt q;
    uint8_t f[128];
    p.ip_flags = WIRE_IP_MF | WIRE_IP_DF;
    size_t len = frame_make(f, sizeof(f), &p);
    ck_assert_uint_eq(f[p.ip_off + 6], 0x60);
    ck_assert_int_eq(wire_parse(f, len, 0, &q), WIRE_IP_FRAGMENT);
    p.ip_flags = WIRE_IP_DF;
    p.tver = 5;
    len = frame_make(f, sizeof(f), &p);
    ck_assert_uint_eq(f[p.bth_off + 1] & 15, 5);
    ck_assert_int_eq(wire_parse(f, len, 0, &q), WIRE_BAD_TVER);
}
END_TEST

/* OPC-05 SEC-11 the 16 reserved octets of a CNP are 0 with any old contents of the buffer. */
START_TEST(opc_05_cnp)
{
    struct wire_pkt p = frame_pkt(FRAME_V4, WIRE_OPCODE_CNP, 0);
    uint8_t f[128];
    memset(f, 0xEE, sizeof(f));
    p.migreq = false;
    p.becn = true;
    p.psn = 0;
    size_t len = frame_make(f, sizeof(f), &p);
    ck_assert_uint_eq(len, 74);
    ck_assert_uint_eq(wire_get16(f + p.ip_off + 2), 60);
    ck_assert_uint_eq(f[p.bth_off + 1], 0);
    ck_assert_uint_eq(f[p.bth_off + 4], 0x40);
    for (size_t i = p.bth_off + 12u; i < len - 4; i++)
        ck_assert_uint_eq(f[i], 0);
}
END_TEST

/* OPC-01 WIRE-09 frames that can't be built: reserved opcodes, too little room, too long for IP. */
START_TEST(opc_01_refusals)
{
    static uint8_t f[70000];
    for (unsigned op = 0; op < 256; op++) {
        struct wire_pkt p = frame_pkt(FRAME_V4, (uint8_t)op, 0);
        size_t len = wire_frame_len(&p);
        ck_assert_uint_eq(wire_build(f, len - 1, &p), 0);
        ck_assert_msg((wire_build(f, len, &p) != 0) == (wire_opcodes[op].name != NULL),
                      "OPC-01 opcode 0x%02x", op);
    }
    struct wire_pkt p = frame_pkt(FRAME_V4, SEND_ONLY, 65535 - 20 - 8 - 12 - 4 - 3);
    ck_assert_uint_ne(wire_build(f, sizeof(f), &p), 0);
    p.payload_len += 4;
    ck_assert_uint_eq(wire_build(f, sizeof(f), &p), 0);
}
END_TEST

/* WIRE-12 the checksum of the IPv4 header for many headers: it must sum to all ones. */
START_TEST(wire_12_checksum)
{
    uint8_t f[256];
    for (unsigned i = 0; i < 2 * 65536; i += i < 65536 ? 7 : 1) {
        struct wire_pkt p = frame_pkt(FRAME_V4, SEND_ONLY, i & 63);
        struct wire_pkt q;
        p.ip_id = (uint16_t)i;
        p.tclass = (uint8_t)(i >> 3);
        p.sip = wire_addr_v4(0x0A000000u + i * 0x01010101u % 0x00FFFFFFu);
        p.dip = wire_addr_v4(0xFFFFFFFFu - i);
        p.dqpn = 2;
        size_t len = frame_make(f, sizeof(f), &p);
        ck_assert_int_eq(wire_parse(f, len, 0, &q), WIRE_OK);
        uint32_t sum = 0;
        for (size_t k = 0; k < 20; k += 2)
            sum += wire_get16(f + p.ip_off + k);
        sum = (sum & 0xFFFF) + (sum >> 16);
        ck_assert_uint_eq((sum & 0xFFFF) + (sum >> 16), 0xFFFF);
    }
}
END_TEST

UNIT_MAIN("wire build", wire_01_layout, wire_16_ipv6_layout, hdr_05_pad_and_lengths,
          hdr_01_wide_values, hdr_02_bad_frames, opc_05_cnp, opc_01_refusals, wire_12_checksum)
