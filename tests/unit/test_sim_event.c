/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "sim_event.h"
#include "unit.h"

struct item {
    struct sim_event ev;
    uint64_t due;
    unsigned order; /* of scheduling */
};

static bool first_of(const struct item *a, const struct item *b, bool keys)
{
    if (a->due != b->due)
        return a->due < b->due;
    return keys ? a->ev.key < b->ev.key : a->order < b->order;
}

/* Compare both queues of events with a plain list. Every event comes out at its time, the earliest
 * first. Events of the same time leave the heap in the order of their keys, and the wheel in the
 * order in which they were scheduled. */
START_TEST(sim_events_agree_with_a_list)
{
    enum { N = 200 };
    static struct sim_wheel w;
    static struct item it[N];
    struct sim_heap h = {0};
    bool heap = _i;
    unsigned order = 0, fired = 0;
    uint64_t now = 0;
    srand(3);
    sim_wheel_init(&w);
    for (unsigned i = 0; i < N; i++)
        it[i] = (struct item){.ev.key = i * 77 % N};
    for (unsigned step = 0; step < 40000; step++) {
        struct item *i = &it[(unsigned)rand() % N];
        unsigned what = (unsigned)rand() % 8;
        if (what < 5) { /* few distinct times: many are equal */
            i->due = now + ((uint64_t)(rand() % 16) << (rand() % 36));
            i->order = order++;
            if (heap)
                ck_assert(sim_heap_add(&h, &i->ev, i->due));
            else
                sim_wheel_add(&w, &i->ev, i->due);
        } else if (what == 5) {
            if (heap)
                sim_heap_del(&h, &i->ev);
            else
                sim_wheel_del(&w, &i->ev);
            ck_assert(!sim_event_pending(&i->ev));
        } else {
            uint64_t limit = now + ((uint64_t)rand() % 1000 << (rand() % 30));
            const struct item *first = NULL;
            for (unsigned k = 0; k < N; k++)
                if (sim_event_pending(&it[k].ev) && it[k].due <= limit &&
                    (!first || first_of(&it[k], first, heap)))
                    first = &it[k];
            if (heap && first)
                ck_assert_uint_eq(sim_heap_first(&h), first->due);
            struct sim_event *ev = heap ? sim_heap_pop(&h, limit) : sim_wheel_pop(&w, limit);
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
    sim_heap_free(&h);
}
END_TEST

/* A time that has passed means now; one outside of the wheel is kept. */
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
    TCase *c = tcase_create("orders");
    tcase_add_loop_test(c, sim_events_agree_with_a_list, 0, 2);
    tcase_add_test(c, sim_events_at_the_edges);
    suite_add_tcase(s, c);
    return unit_run(s);
}
