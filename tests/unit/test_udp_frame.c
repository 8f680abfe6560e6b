/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames of a udp port: headers added and removed, and iCRCs that fit the kernel's header fields
 * (WIRE-11, ICRC-08).
 */
#include "udp_frame.h"

#include <string.h>

#include "udp_habit.h"
#include "udp_icrc.h"
#include "unit.h"
#include "wire.h"
#include "wire_bytes.h"

static struct wire_addr a4, b4, a6, b6;

static void start(void)
{
    udp_icrc_init();
    wire_addr_parse("10.0.0.1", &a4);
    wire_addr_parse("10.0.0.2", &b4);
    wire_addr_parse("fd00::1", &a6);
    wire_addr_parse("fd00::2", &b6);
}

/* A whole packet with payload of this length. Returns its length. */
static uint32_t make(uint8_t *f, bool v4, uint32_t payload, uint16_t id, bool df, uint16_t sport)
{
    struct wire_pkt p = {.ip_version = v4 ? 4 : 6,
                         .tclass = 0x6A,
                         .ttl = 9,
                         .ip_id = id,
                         .ip_flags = df ? WIRE_IP_DF : 0,
                         .sip = v4 ? a4 : a6,
                         .dip = v4 ? b4 : b6,
                         .sport = sport,
                         .opcode = WIRE_OPCODE(WIRE_RC, WIRE_SEND_ONLY),
                         .pkey = 0xFFFF,
                         .dqpn = 0x123456,
                         .psn = 77,
                         .payload_len = payload};
    size_t off = wire_build(f, IO_FRAME_MAX, &p);
    ck_assert_uint_gt(off, 0);
    for (uint32_t i = 0; i < payload; i++)
        f[off + i] = (uint8_t)(i * 7 + id);
    uint32_t len = (uint32_t)wire_frame_len(&p);
    wire_icrc_seal(f, len, p.ip_off, p.bth_off);
    return len;
}

static struct io_addr io_addr(const struct wire_addr *a)
{
    struct io_addr out;
    memcpy(out.b, a->b, sizeof(out.b));
    return out;
}

static const uint32_t lengths[] = {0, 1, 4, 100, 256, 1024, 4095, 4096};
#define NLENGTHS (sizeof(lengths) / sizeof(lengths[0]))

START_TEST(a_change_of_two_octets_is_known_without_the_rest)
{
    start();
    uint8_t f[IO_FRAME_MAX];

    for (size_t l = 0; l < NLENGTHS; l++) {
        for (uint32_t id = 1; id < 65536; id += 3001) {
            uint32_t len = make(f, true, lengths[l], 0, true, 4791);
            uint32_t before = wire_icrc(f, len, 14, 42), rest = len - 42 - 4 + 22;
            wire_put16(f + 18, (uint16_t)id);
            uint32_t diff = before ^ wire_icrc(f, len, 14, 42);
            uint8_t d0, d1;
            ck_assert_uint_eq(diff, udp_icrc_delta((uint8_t)(id >> 8), (uint8_t)id, rest));
            ck_assert(udp_icrc_solve(diff, rest, &d0, &d1));
            ck_assert_uint_eq((unsigned)d0 << 8 | d1, id);
        }
    }
}
END_TEST

START_TEST(icrc_08_damage_passes_for_an_identification_once_in_65536)
{
    start();
    unsigned fits = 0;
    uint8_t d0, d1;
    uint64_t x = 88172645463325252ull;

    for (unsigned i = 0; i < 1u << 20; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        fits += udp_icrc_solve((uint32_t)x, 4000, &d0, &d1);
    }
    ck_assert_uint_ge(fits, 4); /* 16 are expected */
    ck_assert_uint_le(fits, 40);
}
END_TEST

/* The socket delivers the payload: the frame made from it must be the one sent. */
static void receive(bool v4, uint32_t payload, uint16_t id, bool df, uint16_t guess)
{
    uint8_t sent[IO_FRAME_MAX], room[IO_FRAME_MAX + UDP_HDR_MAX];
    uint32_t len = make(sent, v4, payload, id, df, 50000), hdr = v4 ? UDP_HDR_V4 : UDP_HDR_V6;
    const uint8_t mac[6] = {2, 0, 0, 0, 0, 9};
    struct io_addr from = io_addr(v4 ? &a4 : &a6), to = io_addr(v4 ? &b4 : &b6);
    struct udp_head h;
    struct wire_pkt p;
    memcpy(room + UDP_HDR_MAX, sent + hdr, len - hdr);
    udp_head_init(&h, mac, &from, &to, 50000);
    uint8_t *f = udp_frame_put(room + UDP_HDR_MAX, len - hdr, &h, 0x6A, 9);
    struct udp_verdict v = udp_frame_check(f, len, guess);
    ck_assert(v.good);
    ck_assert_uint_eq(v.id, v4 ? id : guess);
    ck_assert_msg(memcmp(f + 14, sent + 14, len - 14) == 0, "another frame, payload %u id %u",
                  payload, id);
    ck_assert_int_eq(wire_parse(f, len, 0, &p), WIRE_OK);
    ck_assert_mem_eq(f, mac, 6);
    f[len - 9 < hdr ? hdr : len - 9] ^= 0x10; /* one octet of it is damaged */
    ck_assert(!udp_frame_check(f, len, guess).good);
}

START_TEST(icrc_08_any_identification_is_found)
{
    start();
    static const uint16_t ids[] = {0, 1, 2, 14, 255, 256, 0x1234, 0x8000, 0xFFFF};

    for (size_t l = 0; l < NLENGTHS; l++) {
        for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
            receive(true, lengths[l], ids[i], true, 0);
            receive(true, lengths[l], ids[i], false, 0);
            receive(true, lengths[l], ids[i], true, 14);
            receive(true, lengths[l], ids[i], true, ids[i]);
        }
        receive(false, lengths[l], 0, true, 0);
    }
}
END_TEST

START_TEST(wire_11_sent_packets_fit_what_the_kernel_makes_of_them)
{
    start();
    uint8_t f[IO_FRAME_MAX], want[IO_FRAME_MAX];
    struct udp_out o;

    for (size_t l = 0; l < NLENGTHS; l++) {
        for (unsigned place = 0; place < 64; place += 7) {
            uint32_t len = make(f, true, lengths[l], 0x4321, true, 0xC123);
            ck_assert(udp_frame_parse(f, len, &o));
            ck_assert_uint_eq(o.len, len - UDP_HDR_V4);
            ck_assert_uint_eq(o.tclass, 0x6A);
            ck_assert_uint_eq(o.ttl, 9);
            ck_assert_mem_eq(o.to.b, b4.b, 16);
            udp_frame_reseal(f + o.off, &o, (uint16_t)place);
            make(want, true, lengths[l], 0x4321, true, 0xC123);
            wire_put16(want + 18, (uint16_t)place);
            wire_put16(want + 34, WIRE_UDP_PORT);
            wire_icrc_seal(want, len, 14, 42);
            ck_assert_mem_eq(f + o.off, want + o.off, o.len);
        }
        uint32_t len = make(f, false, lengths[l], 0, true, 0xC123);
        ck_assert(udp_frame_parse(f, len, &o));
        ck_assert_uint_eq(o.tclass, 0x6A);
        udp_frame_reseal(f + o.off, &o, 5);
        make(want, false, lengths[l], 0, true, WIRE_UDP_PORT);
        ck_assert_mem_eq(f + o.off, want + o.off, o.len);
    }
}
END_TEST

START_TEST(what_is_no_roce_packet_is_not_sent)
{
    start();
    uint8_t f[IO_FRAME_MAX];
    struct udp_out o;
    uint32_t len = make(f, true, 100, 0, true, 4791);

    for (uint32_t cut = 0; cut < len; cut++)
        ck_assert(!udp_frame_parse(f, cut, &o));
    static const struct {
        uint32_t at;
        uint8_t to;
    } wrong[] = {{12, 9}, {13, 6}, {14, 0x46}, {20, 0x20}, {21, 1}, {23, 6}, {37, 0}, {39, 9}};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        make(f, true, 100, 0, true, 4791);
        f[wrong[i].at] = wrong[i].to;
        ck_assert_msg(!udp_frame_parse(f, len, &o), "octet %u", wrong[i].at);
    }
    len = make(f, false, 100, 0, true, 4791);
    for (uint32_t cut = 0; cut < len; cut++)
        ck_assert(!udp_frame_parse(f, cut, &o));
}
END_TEST

START_TEST(icrc_08_a_habit_of_1000_packets_decides)
{
    struct udp_habit h = {0};
    for (unsigned i = 0; i < UDP_HABIT_PACKETS; i++)
        ck_assert(udp_habit_take(&h, (uint16_t)(i % 15), true)); /* trains of 15 */
    ck_assert_uint_eq(udp_habit_guess(&h, 7), 7);
    ck_assert(!udp_habit_take(&h, 0x4321, true));
    ck_assert(!udp_habit_take(&h, 3, false));
    ck_assert(udp_habit_take(&h, 0, true));
    /* another host has the address now: a few packets are lost */
    for (unsigned i = 0; i < UDP_HABIT_BROKEN; i++)
        ck_assert_int_eq(udp_habit_take(&h, (uint16_t)(5000 + i), false),
                         i == UDP_HABIT_BROKEN - 1);
    for (unsigned i = 0; i < 2 * UDP_HABIT_PACKETS; i++) /* above 65535, too */
        ck_assert(udp_habit_take(&h, (uint16_t)(64000 + 3 * i), false));
    ck_assert(!udp_habit_take(&h, (uint16_t)(h.last - 1), false));
    ck_assert(!udp_habit_take(&h, (uint16_t)(h.last + 1), true));
    ck_assert(udp_habit_take(&h, (uint16_t)(h.last + UDP_HABIT_STEP), false));
}
END_TEST

START_TEST(icrc_09_nat_shows)
{
    uint8_t f[IO_FRAME_MAX];
    struct io_addr source;
    start();
    for (size_t l = 0; l < NLENGTHS; l++) {
        uint32_t len = make(f, true, lengths[l], 0, true, 4791);
        f[26] ^= 0x55; /* 10.0.0.1 became another */
        f[29] = 77;
        ck_assert(udp_frame_other_source(f, len, &source));
        ck_assert_mem_eq(source.b, a4.b, 16);
    }
}
END_TEST

UNIT_MAIN("udp_frame", icrc_08_a_habit_of_1000_packets_decides, icrc_09_nat_shows,
          a_change_of_two_octets_is_known_without_the_rest,
          icrc_08_damage_passes_for_an_identification_once_in_65536,
          icrc_08_any_identification_is_found,
          wire_11_sent_packets_fit_what_the_kernel_makes_of_them,
          what_is_no_roce_packet_is_not_sent)
