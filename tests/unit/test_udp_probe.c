/* SPDX-License-Identifier: BSD-3-Clause
 *
 * WIRE-11: the identifications that the kernel gives to the datagrams of a udp port
 * (udp_probe.h).
 */
#include "udp_probe.h"

#include "unit.h"

START_TEST(wire_11_what_is_seen_is_foreseen)
{
    static const struct {
        struct udp_seen seen;
        struct udp_ids want;
    } rows[] = {
        {{{0, 0}, {{0, 1, 2, 3}, {0, 1, 2, 3}}}, {0, 0, 1, true, true}},
        {{{7, 7}, {{7, 7, 7, 7}, {7, 7, 7, 7}}}, {7, 7, 0, true, true}},
        {{{0, 0}, {{0xFFFF, 0, 1, 2}, {0xFFFF, 0, 1, 2}}}, {0, 0xFFFF, 1, true, true}},
        {{{0, 0}, {{9, 10, 11, 12}, {13, 14, 15, 16}}}, {0, 9, 1, true, false}},
        {{{0, 0}, {{0, 1, 2, 4}, {0, 1, 2, 4}}}, {0, 0, 1, true, false}},
        /* unseen, as on a busy machine, is no mismatch */
        {{{0, 0}, {{0, 1, -1, -1}, {0, 1, -1, -1}}}, {0, 0, 1, true, true}},
        {{{0, 0}, {{-1, -1, -1, -1}, {7, 7, 7, 7}}}, {0, 7, 0, true, true}},
        {{{0, 0}, {{7, -1, 7, 7}, {7, 7, 7, 7}}}, {0, 7, 0, true, true}},
        {{{0, 0}, {{-1, -1, -1, -1}, {-1, -1, -1, -1}}}, {0, 0, 1, true, true}},
        {{{0, 0}, {{0, 1, -1, 4}, {0, 1, -1, -1}}}, {0, 0, 1, true, false}},
        {{{0, -1}, {{0, 1, 2, 3}, {0, 1, 2, 3}}}, {0, 0, 1, true, true}},
        /* one large datagram in place of a train */
        {{{0, 0}, {{0, -1, -1, -1}, {0, -1, -1, -1}}}, {0, 0, 1, true, false}},
        {{{5, 6}, {{0, 1, 2, 3}, {0, 1, 2, 3}}}, {5, 0, 1, false, true}},
        {{{-1, -1}, {{-1, -1, -1, -1}, {-1, -1, -1, -1}}}, {0, 0, 1, true, true}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct udp_ids got = udp_ids_judge(&rows[i].seen);
        ck_assert_msg(got.single == rows[i].want.single && got.first == rows[i].want.first &&
                          got.step == rows[i].want.step &&
                          got.single_ok == rows[i].want.single_ok &&
                          got.train_ok == rows[i].want.train_ok,
                      "row %zu: %u %u %u %d %d", i, got.single, got.first, got.step, got.single_ok,
                      got.train_ok);
    }
    struct udp_ids ids = udp_ids_judge(&rows[2].seen);
    ck_assert_uint_eq(udp_ids_at(&ids, 0, 1), 0);
    ck_assert_uint_eq(udp_ids_at(&ids, 0, 4), 0xFFFF);
    ck_assert_uint_eq(udp_ids_at(&ids, 2, 4), 1);
}
END_TEST

/* The iCRCs that the kernel's own packets get in all other tests rest on this. */
START_TEST(wire_11_this_kernel_is_as_usual)
{
    struct udp_seen seen;
    udp_probe(&seen);
    ck_assert_int_eq(seen.single[0], 0);
    ck_assert_int_eq(seen.single[1], 0);
    for (int i = 0; i < (int)UDP_PROBE_TRAIN; i++) {
        ck_assert_int_eq(seen.train[0][i], i);
        ck_assert_int_eq(seen.train[1][i], i);
    }
}
END_TEST

UNIT_MAIN("udp_probe", wire_11_what_is_seen_is_foreseen, wire_11_this_kernel_is_as_usual)
