/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Trains of datagrams that a capture shows as one packet (UDP_SEGMENT, UDP_GRO).
 */
#include "capread.h"

#include <string.h>

#include "unit.h"
#include "wire.h"
#include "wire_bytes.h"
#include "wire_csum.h"

#define HDR_V4 42u

static uint8_t file[1 << 17];
static size_t file_len;
static uint8_t packet[64][WIRE_FRAME_MAX]; /* the packets as they are on the wire */
static uint32_t packet_len[64];

static void put(const void *p, size_t n)
{
    memcpy(file + file_len, p, n);
    file_len += n;
}

static void put32(uint32_t v)
{
    uint8_t b[4];

    wire_put32le(b, v);
    put(b, 4);
}

static void begin(void)
{
    static const uint8_t head[24] = {0xD4, 0xC3, 0xB2, 0xA1, 2, 0, 4, [18] = 4, [20] = 1};

    file_len = 0;
    put(head, sizeof(head));
}

static void make(unsigned i, bool v4, uint32_t payload, uint16_t id)
{
    struct wire_pkt p = {.ip_version = v4 ? 4 : 6,
                         .ttl = 64,
                         .ip_id = id,
                         .ip_flags = WIRE_IP_DF,
                         .sport = WIRE_UDP_PORT,
                         .opcode = WIRE_OPCODE(WIRE_RC, WIRE_SEND_MIDDLE),
                         .pkey = 0xFFFF,
                         .dqpn = 0x4711,
                         .psn = 100 + i,
                         .payload_len = payload};
    wire_addr_parse(v4 ? "10.0.0.1" : "fd00::1", &p.sip);
    wire_addr_parse(v4 ? "10.0.0.2" : "fd00::2", &p.dip);
    size_t off = wire_build(packet[i], sizeof(packet[i]), &p);
    memset(packet[i] + off, (int)i, payload);
    packet_len[i] = (uint32_t)wire_frame_len(&p);
    wire_icrc_seal(packet[i], packet_len[i], p.ip_off, p.bth_off);
}

/* Packets 0 to n - 1 as one, in the file. */
static void put_train(unsigned n, bool v4)
{
    static uint8_t f[1 << 17];
    uint32_t hdr = v4 ? HDR_V4 : 62, len = hdr;

    memcpy(f, packet[0], hdr);
    for (unsigned i = 0; i < n; i++) {
        memcpy(f + len, packet[i] + hdr, packet_len[i] - hdr);
        len += packet_len[i] - hdr;
    }
    wire_put16(f + hdr - 4, (uint16_t)(len - hdr + 8));
    wire_put16(f + hdr - 2, 0x1234); /* a checksum */
    wire_put16(f + (v4 ? 16 : 18), (uint16_t)(v4 ? len - 14 : len - hdr + 8));
    put32(1);
    put32(0);
    put32(len);
    put32(len);
    put(f, len);
}

static void expect(unsigned n)
{
    struct capread *c;
    struct capread_packet p;
    char why[128];

    ck_assert_int_eq(capread_open_mem(file, file_len, &c, why, sizeof(why)), 0);
    for (unsigned i = 0; i < n; i++) {
        struct wire_pkt w;
        ck_assert_int_eq(capread_next(c, &p), 1);
        ck_assert_uint_eq(p.number, 1);
        ck_assert_uint_eq(p.len, packet_len[i]);
        ck_assert_uint_eq(p.wire_len, packet_len[i]);
        ck_assert_int_eq(wire_parse(p.frame, p.len, 0, &w), WIRE_OK);
        ck_assert_msg(memcmp(p.frame, packet[i], p.len) == 0, "packet %u is another one", i);
    }
    ck_assert_int_eq(capread_next(c, &p), 0);
    capread_close(c);
}

START_TEST(a_train_is_taken_apart)
{
    for (unsigned v4 = 0; v4 < 2; v4++) {
        for (uint32_t payload = 0; payload <= 4096; payload = payload * 4 + 64) {
            for (unsigned n = 2; n <= 15; n++) {
                begin();
                for (unsigned i = 0; i < n; i++)
                    make(i, v4, i + 1 == n ? payload / 2 : payload, (uint16_t)i);
                put_train(n, v4);
                expect(n);
            }
        }
    }
}
END_TEST

START_TEST(one_packet_stays_one)
{
    begin();
    make(0, true, 1024, 0);
    put_train(1, true);
    wire_put16(packet[0] + HDR_V4 - 2, 0x1234);
    expect(1);
}
END_TEST

/* What can't be told apart is handed out as it is. */
START_TEST(a_damaged_train_stays_whole)
{
    struct capread *c;
    struct capread_packet p;
    char why[128];

    begin();
    for (unsigned i = 0; i < 3; i++)
        make(i, true, 256, (uint16_t)i);
    packet[0][60] ^= 1;
    put_train(3, true);
    ck_assert_int_eq(capread_open_mem(file, file_len, &c, why, sizeof(why)), 0);
    ck_assert_int_eq(capread_next(c, &p), 1);
    ck_assert_uint_eq(p.len, HDR_V4 + 3 * (packet_len[0] - HDR_V4));
    ck_assert_int_eq(capread_next(c, &p), 0);
    capread_close(c);
}
END_TEST

UNIT_MAIN("capread_train", a_train_is_taken_apart, one_packet_stays_one,
          a_damaged_train_stays_whole)
