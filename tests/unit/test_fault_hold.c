/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The waiting room: by time, by frames that have passed, and in order.
 */
#include <string.h>

#include "fault_hold.h"
#include "unit.h"

static char frames[8];

static struct fault_out delayed(uint64_t delay)
{
    return (struct fault_out){.delay = delay};
}

static struct fault_out held_until(uint32_t gap, uint64_t within, uint64_t flow)
{
    return (struct fault_out){.gap = gap, .within = within, .flow = flow};
}

START_TEST(frames_come_out_when_their_time_has_come)
{
    struct fault_hold *h = fault_hold_new(8);
    static const uint64_t delays[] = {30, 10, 20, 10, 40, 10, 20, 5};
    static const int order[] = {7, 1, 3, 5, 2, 6, 0, 4};
    struct fault_out out;
    enum fault_dir dir;
    ck_assert_uint_eq(fault_hold_deadline(h), UINT64_MAX);
    for (unsigned i = 0; i < 8; i++) {
        out = delayed(delays[i]);
        ck_assert(fault_hold_add(h, &frames[i], i % 2 ? FAULT_BA : FAULT_AB, &out, 100));
    }
    ck_assert(!fault_hold_add(h, &frames[0], FAULT_AB, &out, 100)); /* full */
    ck_assert_uint_eq(fault_hold_count(h), 8);
    for (unsigned i = 0; i < 8; i++) {
        uint64_t at = 100 + delays[order[i]];
        ck_assert_uint_eq(fault_hold_deadline(h), at);
        ck_assert_ptr_null(fault_hold_take(h, at - 1, &dir));
        ck_assert_ptr_eq(fault_hold_take(h, at, &dir), &frames[order[i]]);
        ck_assert_int_eq(dir, order[i] % 2 ? FAULT_BA : FAULT_AB);
    }
    ck_assert_ptr_null(fault_hold_take(h, UINT64_MAX, NULL));
    fault_hold_free(h);
}
END_TEST

START_TEST(a_frame_waits_for_so_many_others_of_its_flow)
{
    struct fault_hold *h = fault_hold_new(8);
    struct fault_out out = held_until(2, 1000, 7);
    ck_assert(fault_hold_add(h, &frames[0], FAULT_AB, &out, 100));
    fault_hold_passed(h, FAULT_AB, 7, 110);
    fault_hold_passed(h, FAULT_BA, 7, 110); /* the other way */
    fault_hold_passed(h, FAULT_AB, 8, 110); /* another flow */
    ck_assert_ptr_null(fault_hold_take(h, 120, NULL));
    fault_hold_passed(h, FAULT_AB, 7, 130);
    ck_assert_uint_eq(fault_hold_deadline(h), 130);
    ck_assert_ptr_eq(fault_hold_take(h, 130, NULL), &frames[0]);

    /* No frame passes: its time does. */
    ck_assert(fault_hold_add(h, &frames[1], FAULT_AB, &out, 200));
    ck_assert_uint_eq(fault_hold_deadline(h), 1200);
    ck_assert_ptr_null(fault_hold_take(h, 1199, NULL));
    ck_assert_ptr_eq(fault_hold_take(h, 1200, NULL), &frames[1]);
    fault_hold_passed(h, FAULT_AB, 7, 1300);
    fault_hold_passed(h, FAULT_AB, 7, 1300);
    ck_assert_uint_eq(fault_hold_count(h), 0);

    /* Overtaken, and then the delay that the rule also wanted. */
    out = held_until(1, 1000, 7);
    out.delay = 50;
    ck_assert(fault_hold_add(h, &frames[2], FAULT_AB, &out, 2000));
    fault_hold_passed(h, FAULT_AB, 7, 2010);
    ck_assert_uint_eq(fault_hold_deadline(h), 2060);
    ck_assert_ptr_eq(fault_hold_take(h, 2060, NULL), &frames[2]);
    /* Overtaken so late that its time would have come before. */
    out = held_until(1, 20, 7);
    out.delay = 50;
    ck_assert(fault_hold_add(h, &frames[3], FAULT_AB, &out, 3000));
    fault_hold_passed(h, FAULT_AB, 7, 3060);
    ck_assert_uint_eq(fault_hold_deadline(h), 3070);
    ck_assert_ptr_eq(fault_hold_take(h, 3070, NULL), &frames[3]);
    fault_hold_free(h);
}
END_TEST

START_TEST(the_list_of_those_that_wait_to_be_overtaken_is_bounded)
{
    struct fault_hold *h = fault_hold_new(2 * FAULT_GAPS);
    struct fault_out out = held_until(1, 1000, 7);
    for (unsigned i = 0; i < FAULT_GAPS; i++)
        ck_assert(fault_hold_add(h, &frames[i % 8], FAULT_AB, &out, i));
    ck_assert(!fault_hold_add(h, &frames[0], FAULT_AB, &out, 100));
    fault_hold_passed(h, FAULT_AB, 7, 200); /* lets all of them go, in their order */
    for (unsigned i = 0; i < FAULT_GAPS; i++)
        ck_assert_ptr_eq(fault_hold_take(h, 200, NULL), &frames[i % 8]);
    ck_assert_uint_eq(fault_hold_count(h), 0);
    fault_hold_free(h);
}
END_TEST

UNIT_MAIN("fault hold", frames_come_out_when_their_time_has_come,
          a_frame_waits_for_so_many_others_of_its_flow,
          the_list_of_those_that_wait_to_be_overtaken_is_bounded)
