/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames kept back: by time, by others that pass, within bounds.
 */
#include <string.h>

#include "bump_queue.h"
#include "unit.h"

#define NOBODY 0xFF

static struct bump_queue q;

static void put(uint8_t name, uint32_t hold, uint64_t due)
{
    uint8_t frame[64];
    memset(frame, name, sizeof frame);
    ck_assert(bump_queue_put(&q, frame, sizeof frame, hold, due));
}

/* The name of the next frame that is due. */
static uint8_t take(uint64_t now)
{
    const struct bump_kept *k = bump_queue_due(&q, now);
    if (!k)
        return NOBODY;
    uint8_t name = k->data[0];
    for (uint32_t i = 0; i < k->len; i++)
        ck_assert_uint_eq(k->data[i], name);
    bump_queue_pop(&q);
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
    for (unsigned i = 0; i < sizeof in / sizeof in[0]; i++)
        put(in[i].name, 0, in[i].due);
    ck_assert_uint_eq(bump_queue_deadline(&q), 50);
    ck_assert_uint_eq(take(49), NOBODY);
    for (unsigned i = 0; i < sizeof out; i++)
        ck_assert_uint_eq(take(300), out[i]);
    ck_assert_uint_eq(take(UINT64_MAX), NOBODY);
    ck_assert_uint_eq(bump_queue_deadline(&q), UINT64_MAX);
    bump_queue_free(&q);
}
END_TEST

START_TEST(a_held_frame_waits_for_others_but_not_for_ever)
{
    ck_assert_int_eq(bump_queue_init(&q, 16, 64), 0);
    put(1, 2, 1000);
    put(2, 3, 500);
    ck_assert_uint_eq(take(10), NOBODY);
    bump_queue_passed(&q, 11);
    ck_assert_uint_eq(take(11), NOBODY);
    bump_queue_passed(&q, 12);
    ck_assert_uint_eq(take(12), 1);
    ck_assert_uint_eq(take(499), NOBODY);
    ck_assert_uint_eq(bump_queue_deadline(&q), 500);
    ck_assert_uint_eq(take(500), 2);
    ck_assert_uint_eq(bump_queue_len(&q), 0);
    bump_queue_free(&q);
}
END_TEST

START_TEST(what_does_not_fit_is_refused)
{
    uint8_t frame[128] = {0};
    ck_assert_int_eq(bump_queue_init(&q, 2, 64), 0);
    ck_assert(!bump_queue_put(&q, frame, 65, 0, 1));
    put(1, 0, 1);
    put(2, 1, 1);
    ck_assert(!bump_queue_put(&q, frame, 64, 0, 1));
    ck_assert_uint_ne(take(1), NOBODY);
    put(3, 0, 1);
    ck_assert(!bump_queue_put(&q, frame, 64, 0, 1));
    bump_queue_free(&q);
}
END_TEST

/* Against the plainest possible queue, with a fixed stream of pseudo-random steps. */
START_TEST(many_frames_come_out_in_the_order_of_their_times)
{
    uint64_t due[256], x = 88172645463325252u;
    bool in[256] = {false};
    ck_assert_int_eq(bump_queue_init(&q, 255, 64), 0);
    for (uint64_t now = 0; now < 20000; now++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        uint8_t name = (uint8_t)(x % 255);
        if (!in[name]) {
            in[name] = true;
            due[name] = now + (x >> 8) % 300;
            put(name, 0, due[name]);
        }
        uint8_t got;
        while ((got = take(now)) != NOBODY) {
            ck_assert(in[got] && due[got] <= now);
            for (unsigned i = 0; i < 255; i++)
                ck_assert(!in[i] || due[i] >= due[got]);
            in[got] = false;
        }
    }
    bump_queue_free(&q);
}
END_TEST

UNIT_MAIN("bump queue", the_earliest_goes_first_and_of_equals_the_first_in,
          a_held_frame_waits_for_others_but_not_for_ever, what_does_not_fit_is_refused,
          many_frames_come_out_in_the_order_of_their_times)
