/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The opcode table against a second, hand-written copy of the catalogue's table.
 */
#include <stdio.h>
#include <string.h>

#include "unit.h"
#include "wire.h"

/* Services that have the opcode, and the letters of its headers in order:
 * X XRCETH, D DETH, F FETH, R RETH, A AETH, T AtomicETH, K AtomicAckETH, M ImmDt, I IETH. */
#define RC  1u
#define UC  2u
#define UD  4u
#define XRC 8u

static const struct row {
    uint8_t op;
    unsigned services;
    const char *headers;
    bool response; /* responses carry no XRCETH */
    unsigned flags;
} rows[] = {
    {0x00, RC | UC | XRC, "", false, WIRE_F_SEND | WIRE_F_FIRST | WIRE_F_PAYLOAD | WIRE_F_RECV_WQE},
    {0x01, RC | UC | XRC, "", false, WIRE_F_SEND | WIRE_F_MIDDLE | WIRE_F_PAYLOAD},
    {0x02, RC | UC | XRC, "", false, WIRE_F_SEND | WIRE_F_LAST | WIRE_F_PAYLOAD},
    {0x03, RC | UC | XRC, "M", false, WIRE_F_SEND | WIRE_F_LAST | WIRE_F_PAYLOAD | WIRE_F_IMM},
    {0x04, RC | UC | UD | XRC, "", false,
     WIRE_F_SEND | WIRE_F_ONLY | WIRE_F_PAYLOAD | WIRE_F_RECV_WQE},
    {0x05, RC | UC | UD | XRC, "M", false,
     WIRE_F_SEND | WIRE_F_ONLY | WIRE_F_PAYLOAD | WIRE_F_RECV_WQE | WIRE_F_IMM},
    {0x06, RC | UC | XRC, "R", false, WIRE_F_WRITE | WIRE_F_FIRST | WIRE_F_PAYLOAD},
    {0x07, RC | UC | XRC, "", false, WIRE_F_WRITE | WIRE_F_MIDDLE | WIRE_F_PAYLOAD},
    {0x08, RC | UC | XRC, "", false, WIRE_F_WRITE | WIRE_F_LAST | WIRE_F_PAYLOAD},
    {0x09, RC | UC | XRC, "M", false,
     WIRE_F_WRITE | WIRE_F_LAST | WIRE_F_PAYLOAD | WIRE_F_IMM | WIRE_F_RECV_WQE},
    {0x0A, RC | UC | XRC, "R", false, WIRE_F_WRITE | WIRE_F_ONLY | WIRE_F_PAYLOAD},
    {0x0B, RC | UC | XRC, "RM", false,
     WIRE_F_WRITE | WIRE_F_ONLY | WIRE_F_PAYLOAD | WIRE_F_IMM | WIRE_F_RECV_WQE},
    {0x0C, RC | XRC, "R", false, WIRE_F_READ | WIRE_F_ONLY},
    {0x0D, RC | XRC, "A", true, WIRE_F_READ | WIRE_F_FIRST | WIRE_F_PAYLOAD},
    {0x0E, RC | XRC, "", true, WIRE_F_READ | WIRE_F_MIDDLE | WIRE_F_PAYLOAD},
    {0x0F, RC | XRC, "A", true, WIRE_F_READ | WIRE_F_LAST | WIRE_F_PAYLOAD},
    {0x10, RC | XRC, "A", true, WIRE_F_READ | WIRE_F_ONLY | WIRE_F_PAYLOAD},
    {0x11, RC | XRC, "A", true, WIRE_F_ACK | WIRE_F_ONLY},
    {0x12, RC | XRC, "AK", true, WIRE_F_ATOMIC | WIRE_F_ONLY},
    {0x13, RC | XRC, "T", false, WIRE_F_ATOMIC | WIRE_F_ONLY},
    {0x14, RC | XRC, "T", false, WIRE_F_ATOMIC | WIRE_F_ONLY},
    {0x16, RC | XRC, "I", false, WIRE_F_SEND | WIRE_F_LAST | WIRE_F_PAYLOAD | WIRE_F_INV},
    {0x17, RC | XRC, "I", false,
     WIRE_F_SEND | WIRE_F_ONLY | WIRE_F_PAYLOAD | WIRE_F_INV | WIRE_F_RECV_WQE},
    {0x1C, RC | XRC, "FR", false, WIRE_F_ONLY},
    {0x1D, RC | XRC, "R", false, WIRE_F_ONLY | WIRE_F_PAYLOAD},
};

static const struct {
    char letter;
    unsigned bit;
    unsigned len;
    size_t offset_field;
} headers[] = {
    {'X', WIRE_H_XRCETH, 4, offsetof(struct wire_opcode_info, xrceth)},
    {'D', WIRE_H_DETH, 8, offsetof(struct wire_opcode_info, deth)},
    {'F', WIRE_H_FETH, 4, offsetof(struct wire_opcode_info, feth)},
    {'R', WIRE_H_RETH, 16, offsetof(struct wire_opcode_info, reth)},
    {'A', WIRE_H_AETH, 4, offsetof(struct wire_opcode_info, aeth)},
    {'T', WIRE_H_ATOMICETH, 28, offsetof(struct wire_opcode_info, atomiceth)},
    {'K', WIRE_H_ATOMICACK, 8, offsetof(struct wire_opcode_info, atomicack)},
    {'M', WIRE_H_IMMDT, 4, offsetof(struct wire_opcode_info, immdt)},
    {'I', WIRE_H_IETH, 4, offsetof(struct wire_opcode_info, ieth)},
};

static const struct row *find(unsigned opcode, unsigned *service)
{
    static const unsigned service_of[8] = {RC, UC, 0, UD, 0, XRC, 0, 0};
    *service = service_of[opcode >> 5];
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].op == (opcode & 31u) && (rows[i].services & *service))
            return &rows[i];
    return NULL;
}

/* OPC-01 exactly the opcodes of the table have a name. */
START_TEST(opc_01_reserved_opcodes)
{
    for (unsigned opcode = 0; opcode < 256; opcode++) {
        unsigned service;
        bool known = find(opcode, &service) || opcode == WIRE_OPCODE_CNP;
        ck_assert_msg((wire_opcodes[opcode].name != NULL) == known, "OPC-01 opcode 0x%02x", opcode);
    }
}
END_TEST

/* OPC-02 OPC-04 service group and flags of every opcode. */
START_TEST(opc_02_flags)
{
    for (unsigned opcode = 0; opcode < 256; opcode++) {
        unsigned service;
        const struct row *r = find(opcode, &service);
        if (!r)
            continue;
        const struct wire_opcode_info *info = &wire_opcodes[opcode];
        unsigned kind = r->response ? WIRE_F_RESPONSE : WIRE_F_REQUEST;
        ck_assert_msg(info->flags == (r->flags | kind), "OPC-04 %s: 0x%x", info->name, info->flags);
        ck_assert_msg(info->service == opcode >> 5, "OPC-02 %s", info->name);
    }
}
END_TEST

/* HDR-08 OPC-03 extension headers follow in the table's order, without gaps. */
START_TEST(hdr_08_header_offsets)
{
    for (unsigned opcode = 0; opcode < 256; opcode++) {
        unsigned service;
        const struct row *r = find(opcode, &service);
        if (!r)
            continue;
        const struct wire_opcode_info *info = &wire_opcodes[opcode];
        char want[8];
        snprintf(want, sizeof(want), "%s%s%s", service == XRC && !r->response ? "X" : "",
                 service == UD ? "D" : "", r->headers);
        unsigned at = WIRE_BTH_LEN;
        unsigned bits = 0;
        for (const char *c = want; *c; c++)
            for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
                if (headers[i].letter == *c) {
                    uint8_t off = ((const uint8_t *)info)[headers[i].offset_field];
                    ck_assert_msg(off == at, "HDR-08 %s header %c at %u", info->name, *c, off);
                    at += headers[i].len;
                    bits |= headers[i].bit;
                }
        ck_assert_msg(info->headers == bits, "HDR-08 %s headers 0x%x", info->name, info->headers);
        ck_assert_msg(info->ext_len == at - WIRE_BTH_LEN, "OPC-03 %s ext_len", info->name);
        for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
            if (!(bits & headers[i].bit))
                ck_assert_msg(((const uint8_t *)info)[headers[i].offset_field] == 0,
                              "HDR-08 %s has no header %c", info->name, headers[i].letter);
    }
}
END_TEST

/* OPC-05 a CNP is a BTH and 16 reserved octets. */
START_TEST(opc_05_cnp)
{
    const struct wire_opcode_info *info = &wire_opcodes[WIRE_OPCODE_CNP];
    ck_assert_str_eq(info->name, "CNP");
    ck_assert_uint_eq(info->service, WIRE_CNP_GROUP);
    ck_assert_uint_eq(info->ext_len, 16);
    ck_assert_uint_eq(info->headers, 0);
    ck_assert_uint_eq(info->flags, WIRE_F_CNP | WIRE_F_ONLY);
}
END_TEST

/* OPC-01 names say service and operation. */
START_TEST(opc_01_names)
{
    ck_assert_str_eq(wire_opcodes[0x06].name, "RC_WRITE_FIRST");
    ck_assert_str_eq(wire_opcodes[0x24].name, "UC_SEND_ONLY");
    ck_assert_str_eq(wire_opcodes[0x65].name, "UD_SEND_ONLY_IMM");
    ck_assert_str_eq(wire_opcodes[0xAC].name, "XRC_READ_REQUEST");
    for (unsigned a = 0; a < 256; a++)
        for (unsigned b = 0; b < a; b++)
            if (wire_opcodes[a].name && wire_opcodes[b].name)
                ck_assert_str_ne(wire_opcodes[a].name, wire_opcodes[b].name);
}
END_TEST

UNIT_MAIN("wire opcode", opc_01_reserved_opcodes, opc_02_flags, hdr_08_header_offsets, opc_05_cnp,
          opc_01_names)
