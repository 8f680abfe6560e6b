/* SPDX-License-Identifier: BSD-3-Clause
 *
 * QP-11 SHM-13: the order of a process's frames and requests, with many channels.
 */
#include "settle.h"

#include <fcntl.h>
#include <unistd.h>

#include "program_rig.h"
#include "request.h"
#include "round.h"

#define MANY 150u

static struct rig_program prog[MANY];
static struct request r;

static void setup(void)
{
    rig_setup();
    for (unsigned i = 0; i < MANY; i++)
        rig_come(&prog[i]);
    r.client = &prog[0].c;
}

static void teardown(void)
{
    for (unsigned i = 0; i < MANY; i++)
        rig_go(&prog[i]);
    rig_teardown();
}

/* A frame that the switch will drop, later. */
static void send(struct rig_program *p)
{
    static const uint8_t frame[64] = {0};
    ck_assert(channel_put(p->io, frame, sizeof(frame)));
}

/* SHM-12: the number of visits to the worker does not grow with the channels: each one may wait
 * for a long round, and the control thread waits with it. */
START_TEST(shm_12_settling_visits_a_worker_seldom)
{
    rig_visits = 0;
    ck_assert(settle_now(&r));
    ck_assert_uint_le(rig_visits, MANY / 64 + 1);
    for (unsigned i = 0; i < MANY; i++)
        send(&prog[i]);
    rig_visits = 0;
    ck_assert(!settle_now(&r));
    ck_assert_uint_le(rig_visits, 1);
    rig_visits = 0;
    ck_assert(!settle_ended(&prog[0].c));
    ck_assert_uint_le(rig_visits, 4); /* its end, two looks, and the places of all */
    for (unsigned i = 0; i < 10; i++) {
        rig_visits = 0;
        ck_assert(!settle_ended(&prog[0].c));
        ck_assert_uint_le(rig_visits, 1);
    }
    for (unsigned i = 0; i < 3 * MANY; i++)
        worker_round(&rig_worker, clock_now());
    ck_assert(settle_ended(&prog[0].c));
}
END_TEST

/* A frame of another connection of the same process counts, one of another process does not. */
START_TEST(qp_11_frames_of_the_whole_process)
{
    send(&prog[MANY - 1]);
    ck_assert(!settle_now(&r));
    prog[MANY - 1].c.pid = 1;
    ck_assert(settle_now(&r));
    prog[MANY - 1].c.pid = getpid();
    for (unsigned i = 0; i < 10; i++)
        worker_round(&rig_worker, clock_now());
    ck_assert(settle_now(&r));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("settle");
    TCase *t = tcase_create("settle");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, shm_12_settling_visits_a_worker_seldom);
    tcase_add_test(t, qp_11_frames_of_the_whole_process);
    suite_add_tcase(s, t);
    return unit_run(s);
}
