/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"
#include "wire.h"

START_TEST(ack_01_syndrome_classes)
{
    static const struct {
        const char *name;
        uint8_t first, last;
        enum wire_aeth_kind kind;
    } rows[] = {
        {"ACK-01 0x00..0x1f is an ACK", 0x00, 0x1F, WIRE_AETH_ACK},
        {"ACK-01 0x20..0x3f is an RNR NAK", 0x20, 0x3F, WIRE_AETH_RNR},
        {"ACK-02 type 10 is reserved", 0x40, 0x5F, WIRE_AETH_INVALID},
        {"ACK-06 0x60..0x64 is a NAK", 0x60, 0x64, WIRE_AETH_NAK},
        {"ACK-02 NAK codes 5..31 are reserved", 0x65, 0x7F, WIRE_AETH_INVALID},
        {"ACK-02 bit 7 must be 0", 0x80, 0xFF, WIRE_AETH_INVALID},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (unsigned s = rows[i].first; s <= rows[i].last; s++)
            ck_assert_msg(wire_aeth_kind((uint8_t)s) == rows[i].kind, "%s: 0x%02x", rows[i].name,
                          s);
}
END_TEST

/* RNR-04 every timer code, in microseconds. */
START_TEST(rnr_04_timer_codes)
{
    static const uint32_t us[32] = {
        655360, 10,    20,    30,    40,    60,     80,     120,    160,    240,    320,
        480,    640,   960,   1280,  1920,  2560,   3840,   5120,   7680,   10240,  15360,
        20480,  30720, 40960, 61440, 81920, 122880, 163840, 245760, 327680, 491520,
    };
    for (unsigned code = 0; code < 32; code++)
        ck_assert_uint_eq(wire_rnr_ns(code), us[code] * UINT64_C(1000));
    ck_assert_uint_eq(wire_rnr_ns(WIRE_SYN_RNR | 12u), 640000u); /* the type bits don't matter */
}
END_TEST

/* ACK-12 the credit table both ways. */
START_TEST(ack_12_credit_codes)
{
    static const uint32_t credits[31] = {
        0,    1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
        48,   64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
        2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768,
    };
    for (unsigned code = 0; code < 31; code++) {
        ck_assert_uint_eq(wire_credits(code), credits[code]);
        ck_assert_uint_eq(wire_credit_code(credits[code]), code);
        if (code > 0)
            ck_assert_uint_eq(wire_credit_code(credits[code] - 1), code - 1);
    }
    ck_assert_uint_eq(wire_credits(31), UINT32_MAX);
    ck_assert_uint_eq(wire_credits(0x20 | 5), 6); /* of a whole octet, too */
    static const struct {
        uint32_t posted;
        unsigned code;
    } rounding[] = {{5, 4}, {7, 5}, {23, 8}, {100, 13}, {40000, 30}, {UINT32_MAX, 30}};
    for (size_t i = 0; i < sizeof(rounding) / sizeof(rounding[0]); i++)
        ck_assert_uint_eq(wire_credit_code(rounding[i].posted), rounding[i].code);
}
END_TEST

UNIT_MAIN("wire aeth", ack_01_syndrome_classes, rnr_04_timer_codes, ack_12_credit_codes)
