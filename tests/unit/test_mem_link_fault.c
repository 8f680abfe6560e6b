/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <string.h>

#include "fault_dice.h"
#include "mem_fault.h"
#include "unit.h"

/* CC-02 marking curve, the values of the catalogue's table. */
START_TEST(cc_02_marking_curve)
{
    static const struct {
        const char *name;
        uint64_t q, kmin, kmax;
        double pmax, p;
    } rows[] = {
        {"CC-02 q = Kmin isn't marked", 5000, 5000, 200000, 0.01, 0},
        {"CC-02 half way is Pmax / 2", 102500, 5000, 200000, 0.01, 0.005},
        {"CC-02 q = Kmax is Pmax", 200000, 5000, 200000, 0.01, 0.01},
        {"CC-02 above Kmax is 1", 201000, 5000, 200000, 0.01, 1},
        {"CC-02 empty queue", 0, 5000, 200000, 0.01, 0},
        {"CC-02 step, at it", 5000, 5000, 5000, 0.01, 0},
        {"CC-02 step, above", 5001, 5000, 5000, 0.01, 1},
        {"CC-02 off", 1u << 30, 0, 0, 0.01, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        ck_assert_msg(
            fabs(mem_ecn_probability(rows[i].q, rows[i].kmin, rows[i].kmax, rows[i].pmax) -
                 rows[i].p) < 1e-12,
            "%s", rows[i].name);
}
END_TEST

static unsigned ipv4_sum(const uint8_t *ip)
{
    uint32_t sum = 0;
    for (int i = 0; i < 20; i += 2)
        sum += (uint32_t)(ip[i] << 8 | ip[i + 1]);
    while (sum >> 16)
        sum = (sum & 0xFFFF) + (sum >> 16);
    return sum; /* 0xFFFF = right */
}

static void ipv4_header(uint8_t *ip, uint8_t tos, uint32_t salt)
{
    memset(ip, 0, 20);
    ip[0] = 0x45;
    ip[1] = tos;
    ip[3] = 60;
    ip[8] = 64;
    ip[9] = 17;
    memcpy(ip + 12, &salt, 4);
    uint16_t sum = (uint16_t)~ipv4_sum(ip);
    ip[10] = (uint8_t)(sum >> 8);
    ip[11] = (uint8_t)sum;
}

/* CC-01 only ECN-capable packets may be marked; the header checksum stays right. */
START_TEST(cc_01_marking_ipv4)
{
    uint8_t f[80] = {0};
    f[12] = 0x08;
    for (uint32_t salt = 0; salt < 200000; salt += 7) {
        for (uint8_t ecn = 0; ecn < 4; ecn++) {
            ipv4_header(f + 14, (uint8_t)(0x68 | ecn), salt);
            ck_assert_uint_eq(ipv4_sum(f + 14), 0xFFFF);
            ck_assert_int_eq(mem_frame_mark_ce(f, sizeof(f)), ecn != 0);
            ck_assert_uint_eq(f[15], ecn ? 0x6B : 0x68);
            ck_assert_uint_eq(ipv4_sum(f + 14), 0xFFFF);
        }
    }
    ipv4_header(f + 14, 1, 5);
    f[25] ^= 1; /* a wrong checksum isn't mended */
    ck_assert(mem_frame_mark_ce(f, sizeof(f)));
    ck_assert_uint_ne(ipv4_sum(f + 14), 0xFFFF);
}
END_TEST

START_TEST(cc_01_marking_ipv6_and_vlan)
{
    uint8_t f[80] = {0};
    f[12] = 0x86;
    f[13] = 0xDD;
    f[14] = 0x66;
    f[15] = 0xA5; /* class 0x6A = ECT(0), flow label 5.... */
    ck_assert(mem_frame_mark_ce(f, sizeof(f)));
    ck_assert_uint_eq(f[14], 0x66);
    ck_assert_uint_eq(f[15], 0xB5);
    f[15] = 0x85;
    ck_assert(!mem_frame_mark_ce(f, sizeof(f)));
    ck_assert_uint_eq(f[15], 0x85);

    memset(f, 0, sizeof(f));
    f[12] = 0x81;
    f[16] = 0x08;
    ipv4_header(f + 18, 2, 99);
    ck_assert(mem_frame_mark_ce(f, sizeof(f)));
    ck_assert_uint_eq(f[19], 3);
    ck_assert_uint_eq(ipv4_sum(f + 18), 0xFFFF);
}
END_TEST

START_TEST(marking_leaves_other_frames_alone)
{
    uint8_t f[64], before[64];
    memset(f, 0xFF, sizeof(f));
    f[12] = 0x08;
    f[13] = 0x06; /* ARP */
    memcpy(before, f, sizeof(f));
    ck_assert(!mem_frame_mark_ce(f, sizeof(f)));
    f[13] = 0x00; /* IPv4, too short for its header */
    for (uint32_t len = 0; len < 34; len++)
        ck_assert(!mem_frame_mark_ce(f, len));
    f[13] = 0x06;
    ck_assert_mem_eq(f, before, sizeof(f));
}
END_TEST

START_TEST(flips_are_everywhere_and_distinct)
{
    uint64_t rng = 1;
    unsigned hits[32] = {0};
    for (unsigned i = 0; i < 20000; i++) {
        uint8_t f[32] = {0};
        unsigned want = 1 + i % 3, got = 0;
        mem_frame_flip(f, sizeof(f), want, &rng);
        for (unsigned k = 0; k < sizeof(f); k++) {
            got += (unsigned)__builtin_popcount(f[k]);
            hits[k] += f[k] != 0;
        }
        ck_assert_uint_eq(got, want);
    }
    for (unsigned k = 0; k < 32; k++) /* 40,000 flips over 32 octets */
        ck_assert_msg(hits[k] > 1000 && hits[k] < 1500, "octet %u: %u", k, hits[k]);
}
END_TEST

START_TEST(dice_are_fair_and_repeatable)
{
    uint64_t a = 42, b = 42;
    unsigned hits = 0;
    for (unsigned i = 0; i < 100000; i++) {
        bool hit = fault_draw_hit(&a, 0.05);
        ck_assert_int_eq(hit, fault_draw_hit(&b, 0.05));
        hits += hit;
    }
    ck_assert_uint_gt(hits, 4700);
    ck_assert_uint_lt(hits, 5300);
    /* A fault that is off, or certain, costs no draw. */
    ck_assert(!fault_draw_hit(&a, 0));
    ck_assert(fault_draw_hit(&a, 1));
    ck_assert_uint_eq(fault_draw(&a), fault_draw(&b));
}
END_TEST

UNIT_MAIN("mem_fault", cc_02_marking_curve, cc_01_marking_ipv4, cc_01_marking_ipv6_and_vlan,
          marking_leaves_other_frames_alone, flips_are_everywhere_and_distinct,
          dice_are_fair_and_repeatable)
