/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "timer.h"
#include "unit.h"

/* TMR-08 never early, and at most one tick late: one timer at every distance that a level covers.
 */
START_TEST(tmr_08_fires_within_a_tick)
{
    static const uint64_t delays[] = {0,          1,           1023,           1024,
                                      1025,       10000,       65535,          65536,
                                      70000,      1000000,     4194304,        67108864,
                                      1073741824, 68719476736, 4398046511104u, 17592186044416u};
    static const uint64_t starts[] = {0,
                                      1,
                                      1023,
                                      123456789,
                                      1ull << 40,
                                      (1ull << 46) - 1000,
                                      (1ull << 58) - 1000,
                                      1ull << 58,
                                      1767225600000000000u, /* ns since 1970, of these days */
                                      UINT64_MAX - (1ull << 45)};
    for (unsigned s = 0; s < sizeof(starts) / sizeof(starts[0]); s++) {
        for (unsigned i = 0; i < sizeof(delays) / sizeof(delays[0]); i++) {
            struct timer_wheel w;
            struct timer t = {0};
            uint64_t now = starts[s], due = now + delays[i];
            timer_wheel_init(&w, now);
            timer_arm(&w, &t, due);
            unsigned steps = 0;
            struct timer *got;
            while (!(got = timer_pop(&w, now))) {
                uint64_t next = timer_next(&w);
                ck_assert(next != TIMER_NEVER && next > now);
                now = next;
                ck_assert_uint_lt(++steps, 20);
            }
            ck_assert_ptr_eq(got, &t);
            ck_assert(!timer_armed(&t));
            ck_assert_uint_ge(now, due);
            ck_assert_uint_le(now, due + 1024);
        }
    }
}
END_TEST

/* TMR-03 against a plain list, thousands of random arm, cancel and time steps. */
START_TEST(tmr_03_agrees_with_a_list)
{
    enum { N = 64 };
    struct timer_wheel w;
    struct timer t[N] = {0};
    uint64_t due[N] = {0}, now = 12345;
    srand(7);
    timer_wheel_init(&w, now);
    for (int step = 0; step < 20000; step++) {
        unsigned i = (unsigned)rand() % N;
        switch (rand() % 4) {
        case 0:
            timer_cancel(&w, &t[i]);
            break;
        case 1:
        case 2:
            due[i] = now + ((uint64_t)rand() >> (rand() % 31));
            timer_arm(&w, &t[i], due[i]);
            break;
        default:
            now += (uint64_t)rand() >> (rand() % 31);
            for (struct timer *f; (f = timer_pop(&w, now));)
                ck_assert_uint_le(due[f - t], now); /* never early */
            for (unsigned k = 0; k < N; k++)
                if (timer_armed(&t[k]))
                    ck_assert_uint_gt(due[k] + 1024, now); /* none forgotten */
        }
        uint64_t earliest = TIMER_NEVER;
        for (unsigned k = 0; k < N; k++)
            if (timer_armed(&t[k]) && due[k] < earliest)
                earliest = due[k];
        if (earliest == TIMER_NEVER)
            ck_assert(timer_next(&w) == TIMER_NEVER);
        else
            ck_assert_uint_le(timer_next(&w), earliest + 1024);
    }
}
END_TEST

/* TMR-03 a wheel accepts any clock and any deadline: the last possible tick, one after it, and a
 * clock that is already there. */
START_TEST(tmr_03_the_end_of_time)
{
    static const uint64_t starts[] = {0, (1ull << 58) - 1, 1ull << 58, UINT64_MAX - 1024,
                                      UINT64_MAX};
    static const uint64_t dues[] = {0, (1ull << 58) + 1, UINT64_MAX - 1024, UINT64_MAX - 1,
                                    UINT64_MAX};
    for (unsigned s = 0; s < sizeof(starts) / sizeof(starts[0]); s++) {
        for (unsigned i = 0; i < sizeof(dues) / sizeof(dues[0]); i++) {
            struct guarded {
                uint64_t before[64];
                struct timer_wheel w;
                uint64_t guard[64];
            } g = {0};
            static const uint64_t zero[64];
            struct timer t = {0};
            timer_wheel_init(&g.w, starts[s]);
            timer_arm(&g.w, &t, dues[i]);
            ck_assert(timer_armed(&t));
            ck_assert(timer_next(&g.w) != TIMER_NEVER);
            ck_assert_ptr_eq(timer_pop(&g.w, UINT64_MAX), &t);
            ck_assert(timer_next(&g.w) == TIMER_NEVER);
            timer_arm(&g.w, &t, dues[i]);
            timer_cancel(&g.w, &t);
            ck_assert(timer_next(&g.w) == TIMER_NEVER);
            ck_assert_ptr_null(timer_pop(&g.w, UINT64_MAX));
            ck_assert_mem_eq(g.before, zero, sizeof(zero));
            ck_assert_mem_eq(g.guard, zero, sizeof(zero));
        }
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("timer");
    TCase *c = tcase_create("wheel");
    tcase_add_test(c, tmr_08_fires_within_a_tick);
    tcase_add_test(c, tmr_03_agrees_with_a_list);
    tcase_add_test(c, tmr_03_the_end_of_time);
    suite_add_tcase(s, c);
    return unit_run(s);
}
