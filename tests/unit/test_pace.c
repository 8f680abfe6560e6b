/* SPDX-License-Identifier: BSD-3-Clause
 *
 * When a worker's loop polls, yields and sleeps (pace.h), on virtual time.
 */
#include "pace.h"

#include "unit.h"

#define US 1000ull
#define MS 1000000ull

static struct pace p;
static uint64_t now;

static const struct pace_seen nothing = {.due = UINT64_MAX}, work = {.work = true};

static void setup(void)
{
    now = 1000 * MS;
    pace_init(&p, 0, PACE_LOOK_NS);
    ck_assert_int_eq(pace_next(&p, &work, now).how, PACE_LOOK);
}

/* The loop's actions without work. */
static enum pace_how idle(void)
{
    return pace_next(&p, &nothing, now).how;
}

/* A yield that takes this long. */
static void yields(uint64_t ns)
{
    pace_yielded(&p, now, now + ns);
    now += ns;
}

/* It looks on for 60 us after the last work, then it blocks until something is due. */
START_TEST(lingers_then_blocks)
{
    ck_assert_int_eq(idle(), PACE_YIELD);
    now += 60 * US - 1;
    ck_assert(pace_lingers(&p, now));
    ck_assert_int_eq(idle(), PACE_YIELD);
    now += 1;
    ck_assert(!pace_lingers(&p, now));
    struct pace_step s = pace_next(&p, &nothing, now);
    ck_assert_int_eq(s.how, PACE_BLOCK);
    ck_assert_uint_eq(s.until, UINT64_MAX);
    s = pace_next(&p, &(struct pace_seen){.due = now + 3 * MS}, now);
    ck_assert_int_eq(s.how, PACE_BLOCK);
    ck_assert_uint_eq(s.until, now + 3 * MS);
    pace_next(&p, &work, now);
    ck_assert_int_eq(idle(), PACE_YIELD);
}
END_TEST

/* Work due within 5 us isn't worth a system call. */
START_TEST(due_soon_is_looked_for)
{
    for (unsigned i = 0; i < 2; i++) {
        const struct pace_seen soon = {.due = now + 5 * US}, later = {.due = now + 5 * US + 1};
        ck_assert_int_eq(pace_next(&p, &soon, now).how, PACE_LOOK);
        ck_assert_int_eq(pace_next(&p, &later, now).how, i == 0 ? PACE_YIELD : PACE_BLOCK);
        now += MS;
    }
}
END_TEST

/* After another program has had a turn the loop polls for 8 us before the next yield; after a yield
 * that no program used it yields at once. */
START_TEST(looks_after_a_turn)
{
    yields(US - 1);
    ck_assert_int_eq(idle(), PACE_YIELD);
    yields(US);
    ck_assert_int_eq(idle(), PACE_LOOK);
    now += 8 * US - 1;
    ck_assert_int_eq(idle(), PACE_LOOK);
    now += 1;
    ck_assert_int_eq(idle(), PACE_YIELD);
    yields(US);
    pace_heard(&p, false); /* the receiver gets a turn */
    ck_assert_int_eq(idle(), PACE_YIELD);
}
END_TEST

/* After a post it looks for the answer first; an acknowledgement isn't it, and more posts don't
 * make the wait longer. */
START_TEST(looks_for_an_answer)
{
    pace_posted(&p, now);
    ck_assert_int_eq(idle(), PACE_LOOK);
    pace_heard(&p, true);
    ck_assert_int_eq(idle(), PACE_LOOK);
    now += 4 * US;
    pace_posted(&p, now);
    now += 4 * US - 1;
    ck_assert_int_eq(idle(), PACE_LOOK);
    now += 1;
    ck_assert_int_eq(idle(), PACE_YIELD);
    yields(0);
    pace_posted(&p, now);
    now += 8 * US - 1;
    ck_assert_int_eq(idle(), PACE_LOOK);
    pace_heard(&p, false);
    ck_assert_int_eq(idle(), PACE_YIELD);
    pace_heard(&p, true); /* without a post it counts like any */
    ck_assert_int_eq(idle(), PACE_YIELD);
}
END_TEST

/* A yield of more than a millisecond: another program spins here. Then it blocks for 8 ms, 16, 32
 * ... 250, until a yield lets another program run for less. A yield that returns at once says
 * nothing: the one that spins may have had more than its share. */
START_TEST(crowded)
{
    const uint64_t waits[] = {8, 16, 32, 64, 128, 250, 250};
    for (unsigned i = 0; i < 7; i++) {
        yields(MS + 1);
        pace_next(&p, &work, now);
        ck_assert(!pace_may_yield(&p, now));
        ck_assert_int_eq(idle(), PACE_BLOCK);
        now += waits[i] * MS - 1;
        pace_next(&p, &work, now);
        ck_assert_int_eq(idle(), PACE_BLOCK);
        now += 1;
        pace_next(&p, &work, now);
        ck_assert(pace_may_yield(&p, now));
        ck_assert_int_eq(idle(), PACE_YIELD);
        yields(US - 1);
    }
    yields(MS);
    ck_assert(pace_may_yield(&p, now));
    yields(MS + 1);
    now += 8 * MS;
    ck_assert(pace_may_yield(&p, now));
}
END_TEST

/* Where a port can't wake the loop it naps 50 us, or until something is due. */
START_TEST(naps_where_it_is_deaf)
{
    now += MS;
    struct pace_step s = pace_next(&p, &(struct pace_seen){.deaf = true, .due = UINT64_MAX}, now);
    ck_assert_int_eq(s.how, PACE_BLOCK);
    ck_assert_uint_eq(s.until, now + 50 * US);
    s = pace_next(&p, &(struct pace_seen){.deaf = true, .due = now + 20 * US}, now);
    ck_assert_uint_eq(s.until, now + 20 * US);
}
END_TEST

/* Work that waits for room keeps it polling, with any time since the last work; on a crowded core
 * it naps. */
START_TEST(goes_on_for_what_waits)
{
    const struct pace_seen pending = {.pending = true, .due = UINT64_MAX};
    now += 1000 * MS;
    ck_assert_int_eq(pace_next(&p, &pending, now).how, PACE_YIELD);
    yields(2 * MS);
    struct pace_step s = pace_next(&p, &pending, now);
    ck_assert_int_eq(s.how, PACE_BLOCK);
    ck_assert_uint_eq(s.until, now + 50 * US);
}
END_TEST

/* `poll`: always look. */
START_TEST(never)
{
    p.never = true;
    now += 1000 * MS;
    ck_assert_int_eq(idle(), PACE_LOOK);
    ck_assert(pace_lingers(&p, now));
    ck_assert(!pace_may_yield(&p, now));
    ck_assert_int_eq(pace_next(&p, &(struct pace_seen){.pending = true, .due = now + MS}, now).how,
                     PACE_LOOK);
}
END_TEST

/* A thread that stands in for another may yield to no program. */
START_TEST(keeps)
{
    ck_assert(pace_may_yield(&p, now));
    p.keeps = true;
    ck_assert(!pace_may_yield(&p, now));
}
END_TEST

/* Work more than 1.5 us after the last comes after a pause. */
START_TEST(after_a_pause)
{
    ck_assert_uint_eq(p.pause_over, now + 3 * US / 2);
}
END_TEST

/* Where system calls are slow all times are longer, but not for a debugger. */
START_TEST(slow_kernel)
{
    const struct {
        uint64_t call, times;
    } rows[] = {{0, 1}, {300, 1}, {900, 3}, {3000, 10}, {1000000, 10}};
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        pace_init(&p, rows[i].call, PACE_LOOK_NS);
        ck_assert_uint_eq(p.linger_ns, 60 * US * rows[i].times);
        ck_assert_uint_eq(p.turn_ns, US * rows[i].times);
        ck_assert_uint_eq(p.after_post_ns, 8 * US * rows[i].times);
        ck_assert_uint_eq(p.after_turn_ns, 8 * US);
    }
}
END_TEST

/* A loop whose looks are system calls yields at each. */
START_TEST(yields_each_time)
{
    pace_init(&p, 0, 0);
    pace_next(&p, &work, now);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_int_eq(idle(), PACE_YIELD);
        yields(2 * US);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("pace");
    TCase *t = tcase_create("pace");

    tcase_add_checked_fixture(t, setup, NULL);
    const TTest *const tests[] = {
        lingers_then_blocks,
        due_soon_is_looked_for,
        looks_after_a_turn,
        looks_for_an_answer,
        crowded,
        naps_where_it_is_deaf,
        goes_on_for_what_waits,
        never,
        keeps,
        after_a_pause,
        slow_kernel,
        yields_each_time,
    };
    for (unsigned i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
        tcase_add_test(t, tests[i]);
    suite_add_tcase(s, t);
    return unit_run(s);
}
