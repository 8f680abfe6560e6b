/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames kept back come out whole, in the order of their times, and no more of them than there is
 * room for. (The time of release is decided in test_fault_hold.)
 */
#include <string.h>

#include "bump_queue.h"
#include "unit.h"

#define NOBODY 0xFF

static struct bump_queue q;

static bool put(uint8_t name, uint32_t len, uint64_t due)
{
    const struct fault_out out = {.delay = due};
    uint8_t frame[128];
    memset(frame, name, sizeof(frame));
    return bump_queue_put(&q, FAULT_AB, frame, len, &out, 0);
}

/* The name of the next frame that is due. */
static uint8_t take(uint64_t now)
{
    struct bump_kept *k = bump_queue_take(&q, now);
    if (!k)
        return NOBODY;
    uint8_t name = k->data[0];
    for (uint32_t i = 0; i < k->len; i++)
        ck_assert_uint_eq(k->data[i], name);
    bump_queue_give(&q, k);
    return name;
}

START_TEST(the_earliest_goes_first_and_of_equals_the_first_in)
{
    static const struct {
        uint8_t name;
        uint64_t due;
    } in[] = {{1, 300}, {2, 100}, {3, 200}, {4, 100}, {5, 300}, {6, 50}, {7, 200}, {8, 300}};
    static const uint8_t out[] = {6, 2, 4, 3, 7, 1, 5, 8};
    ck_assert_int_eq(bump_queue_init(&q, 16, 64), 0);
    for (unsigned i = 0; i < sizeof(in) / sizeof(in[0]); i++)
        ck_assert(put(in[i].name, 64, in[i].due));
    ck_assert_uint_eq(take(49), NOBODY);
    for (unsigned i = 0; i < sizeof(out); i++)
        ck_assert_uint_eq(take(300), out[i]);
    ck_assert_uint_eq(take(UINT64_MAX), NOBODY);
    bump_queue_free(&q);
}
END_TEST

START_TEST(what_does_not_fit_is_refused)
{
    ck_assert_int_eq(bump_queue_init(&q, 2, 64), 0);
    ck_assert(!put(1, 65, 1));
    ck_assert(put(1, 64, 1));
    ck_assert(put(2, 1, 1));
    ck_assert(!put(3, 64, 1));
    ck_assert_uint_eq(bump_queue_len(&q), 2);
    ck_assert_uint_eq(take(1), 1);
    ck_assert(put(3, 64, 1));
    ck_assert(!put(4, 64, 1));
    ck_assert_uint_eq(take(1), 2);
    ck_assert_uint_eq(take(1), 3);
    bump_queue_free(&q);
}
END_TEST

/* Buffers are reused: octets of one frame are not in the next. */
START_TEST(buffers_go_round)
{
    ck_assert_int_eq(bump_queue_init(&q, 3, 128), 0);
    for (unsigned i = 0; i < 1000; i++) {
        ck_assert(put((uint8_t)(i % 200), 1 + i % 128, i));
        ck_assert(put((uint8_t)(i % 200 + 1), 128 - i % 128, i));
        ck_assert_uint_eq(take(i), i % 200);
        ck_assert_uint_eq(take(i), i % 200 + 1);
    }
    bump_queue_free(&q);
    ck_assert_int_eq(bump_queue_init(&q, 3, 128), 0);
    ck_assert(put(1, 128, 9));
    bump_queue_free(&q); /* with one inside */
}
END_TEST

UNIT_MAIN("bump queue", the_earliest_goes_first_and_of_equals_the_first_in,
          what_does_not_fit_is_refused, buffers_go_round)
