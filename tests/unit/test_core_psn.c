/* SPDX-License-Identifier: BSD-3-Clause */
#include "psn.h"
#include "unit.h"

/* PSN-02, PSN-04: the later PSN, and the distance. */
static const struct {
    uint32_t a, b;
    int32_t diff;
} pairs[] = {
    {0, 0, 0},
    {1, 0, 1},
    {0, 1, -1},
    {0, 0xFFFFFF, 1}, /* across the wrap */
    {0xFFFFFF, 0, -1},
    {5, 0xFFFFF0, 21},
    {0x7FFFFF, 0, 0x7FFFFF},  /* the latest that counts as later */
    {0x800000, 0, -0x800000}, /* the earliest that counts as earlier */
    {0x800001, 0, -0x7FFFFF},
    {0, 0x800000, -0x800000},
    {0x7FFFF8, 0x800008, -16},
};

START_TEST(psn_02_circular_comparison)
{
    for (unsigned i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
        ck_assert_msg(psn_diff(psn(pairs[i].a), psn(pairs[i].b)) == pairs[i].diff,
                      "PSN-02 0x%06x - 0x%06x", pairs[i].a, pairs[i].b);
    ck_assert_uint_eq(psn_ahead(psn(2), psn(0xFFFFFF)), 3);
    ck_assert_uint_eq(psn_ahead(psn(0xFFFFFF), psn(2)), 0xFFFFFD);
    ck_assert_uint_eq(psn_prev(psn(0)).v, 0xFFFFFF);
    uint32_t x = 1;
    for (unsigned i = 0; i < 100000; i++) {
        x = x * 1664525 + 1013904223;
        psn_t a = psn(x >> 8);
        int32_t n = (int32_t)(x & 0x7FFFFF);
        if (psn_diff(psn_add(a, (uint32_t)n), a) != n || !psn_in(a, a, 1) || psn_in(a, a, 0) ||
            (n && psn_in(psn_add(a, (uint32_t)n), a, (uint32_t)n)) ||
            !psn_in(psn_add(a, (uint32_t)n), a, (uint32_t)n + 1))
            ck_abort_msg("PSN-02 0x%06x + %d", a.v, n);
    }
}
END_TEST

/* PSN-06: PSNs of a message, at each MTU's edge. */
START_TEST(psn_06_count)
{
    for (unsigned shift = 8; shift <= 12; shift++) {
        uint64_t mtu = 1ull << shift;
        ck_assert_uint_eq(psn_count(0, shift), 1);
        ck_assert_uint_eq(psn_count(1, shift), 1);
        ck_assert_uint_eq(psn_count(mtu, shift), 1);
        ck_assert_uint_eq(psn_count(mtu + 1, shift), 2);
        ck_assert_uint_eq(psn_count(3 * mtu, shift), 3);
        ck_assert_uint_eq(psn_count(1ull << 31, shift), (1ull << 31) / mtu);
    }
}
END_TEST

UNIT_MAIN("psn", psn_02_circular_comparison, psn_06_count)
