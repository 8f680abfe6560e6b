/* SPDX-License-Identifier: BSD-3-Clause */
#include <check.h>
#include <stdlib.h>

#include "sim_event.h"

struct item {
    struct sim_event ev;
    uint64_t due;
    unsigned order;  /* of scheduling */
    unsigned warmed; /* steps, since it was scheduled */
};

/* Looking ahead: each step once, in their order, for what is still to come. */
static void on_warm(struct sim_event *ev, unsigned step)
{
    struct item *i = (struct item *)(void *)ev;
    if (!step)
        i->warmed = 0;
    ck_assert_uint_eq(step, i->warmed);
    i->warmed++;
}

/* Events that come and go meanwhile miss steps. */
static void on_any(struct sim_event *ev, unsigned step)
{
    ck_assert_ptr_nonnull(ev);
    ck_assert_uint_lt(step, SIM_WARM_STEPS);
}

/* An event of many is warmed by all steps before its turn. */
START_TEST(sim_events_are_warmed_ahead)
{
    enum { N = 1000 };
    static struct sim_wheel w;
    static struct item it[N];
    struct sim_event *ev;
    unsigned full = 0;
    sim_wheel_init(&w);
    w.warm = on_warm;
    for (unsigned i = 0; i < N; i++)
        sim_wheel_add(&w, &it[i].ev, 100000 + i / 7);
    while ((ev = sim_wheel_pop(&w, SIM_NEVER)))
        full += ((struct item *)(void *)ev)->warmed == SIM_WARM_STEPS;
    ck_assert_uint_gt(full, N - 4 * SIM_AHEAD);
}
END_TEST

/* Every event comes out at its time, earliest first, and equal times in the order of scheduling;
 * against a plain list, without and with looking ahead. */
START_TEST(sim_events_agree_with_a_list)
{
    enum { N = 200 };
    static struct sim_wheel w;
    static struct item it[N];
    unsigned order = 0, fired = 0;
    uint64_t now = 0;
    srand(3);
    sim_wheel_init(&w);
    w.warm = _i ? on_any : NULL;
    for (unsigned step = 0; step < 40000; step++) {
        struct item *i = &it[(unsigned)rand() % N];
        unsigned what = (unsigned)rand() % 8;
        if (what < 5) { /* few distinct times: many are equal */
            i->due = now + ((uint64_t)(rand() % 16) << (rand() % 36));
            i->order = order++;
            sim_wheel_add(&w, &i->ev, i->due);
        } else if (what == 5) {
            sim_wheel_del(&w, &i->ev);
        } else {
            uint64_t limit = now + ((uint64_t)rand() % 1000 << (rand() % 30));
            const struct item *first = NULL;
            for (unsigned k = 0; k < N; k++)
                if (sim_event_pending(&it[k].ev) && it[k].due <= limit &&
                    (!first || it[k].due < first->due ||
                     (it[k].due == first->due && it[k].order < first->order)))
                    first = &it[k];
            struct sim_event *ev = sim_wheel_pop(&w, limit);
            ck_assert_ptr_eq(ev, first ? &first->ev : NULL);
            if (ev) {
                ck_assert(!sim_event_pending(ev));
                ck_assert_uint_eq(ev->at, first->due);
                fired++;
            }
            now = ev ? ev->at : limit;
        }
    }
    ck_assert_uint_gt(fired, 1000);
}
END_TEST

/* A time that has passed means now; one beyond the wheel is kept. */
START_TEST(sim_events_at_the_edges)
{
    static struct sim_wheel w;
    struct sim_event a = {0}, b = {0};
    sim_wheel_init(&w);
    sim_wheel_add(&w, &a, 1000);
    ck_assert_ptr_eq(sim_wheel_pop(&w, 999), NULL);
    ck_assert_ptr_eq(sim_wheel_pop(&w, 1000), &a);
    sim_wheel_add(&w, &a, 10);
    ck_assert_ptr_eq(sim_wheel_pop(&w, 1000), &a);
    ck_assert_uint_eq(a.at, 1000);
    sim_wheel_add(&w, &b, SIM_NEVER);
    ck_assert_ptr_eq(sim_wheel_pop(&w, 1ull << 47), NULL);
    ck_assert_ptr_eq(sim_wheel_pop(&w, SIM_NEVER), &b);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("sim_event");
    TCase *c = tcase_create("wheel");
    tcase_add_loop_test(c, sim_events_agree_with_a_list, 0, 2);
    tcase_add_test(c, sim_events_are_warmed_ahead);
    tcase_add_test(c, sim_events_at_the_edges);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
