/* SPDX-License-Identifier: BSD-3-Clause
 *
 * SHM-06 on channels: no end sleeps while frames wait for it. A wake-up that is lost shows as a
 * sleep of its full length.
 */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/stat.h>
#include <time.h>

#include "channel_rig.h"

#ifdef __SANITIZE_THREAD__
#define ROUNDS 5000u
#else
#define ROUNDS 30000u
#endif
#define SLEEP_MS 3000u
#define LONG_NS  10000000000ull /* on a busy machine fewer rounds do */

static struct channel_rig rig;

static uint64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* A delay that differs from round to round, so that the threads meet in every order. */
static void jitter(uint32_t round)
{
    uint32_t n = (round * 2654435761u) >> 23;
    for (volatile uint32_t i = 0; i < n; i++)
        ;
}

/* Sleep as this end does; false: for all of SLEEP_MS. */
static bool sleep_on(struct io_port *io)
{
    uint64_t before = now_ns();
    if (io->caps.rx_fd >= 0) {
        struct pollfd p = {.fd = io->caps.rx_fd, .events = POLLIN};
        return poll(&p, 1, (int)SLEEP_MS) == 1;
    }
    channel_wait(io, SLEEP_MS * 1000000ull);
    return now_ns() - before < SLEEP_MS * 1000000ull;
}

/* Wait for a frame as a worker does: look, arm, look again, sleep. UINT32_MAX: a frame came without
 * its wake-up, or never. */
static uint32_t wait_frame(struct io_port *io)
{
    for (unsigned naps = 0; naps < 1000;) {
        uint32_t got = rig_take(io);
        if (got != UINT32_MAX)
            return got;
        io->ops->rx_arm(io, true);
        got = rig_take(io);
        if (got == UINT32_MAX && !sleep_on(io))
            return UINT32_MAX;
        io->ops->rx_arm(io, false);
        if (got != UINT32_MAX)
            return got;
        naps++;
    }
    return UINT32_MAX;
}

static _Atomic uint32_t rounds_max;

static void *echo(void *arg)
{
    for (uint32_t i = 0; i < atomic_load(&rounds_max); i++) {
        jitter(i * 7 + 3);
        if (wait_frame(rig.end[CHANNEL_PROGRAM]) != i)
            return arg;
        jitter(i * 5 + 1);
        while (!rig_send(rig.end[CHANNEL_PROGRAM], i, 80))
            sched_yield();
    }
    return NULL;
}

START_TEST(shm_06_no_wake_up_of_a_channel_is_lost)
{
    pthread_t thread;
    void *failed;
    rig_open(&rig, CHANNEL_SLOTS_MIN);
    atomic_store(&rounds_max, ROUNDS);
    uint64_t end = now_ns() + LONG_NS;
    pthread_create(&thread, NULL, echo, &rig);
    for (uint32_t i = 0; i < atomic_load(&rounds_max); i++) {
        if (now_ns() > end && i + 1 < ROUNDS)
            atomic_store(&rounds_max, i + 1);
        jitter(i);
        ck_assert(rig_send(rig.end[CHANNEL_SWITCH], i, 80));
        jitter(i * 3 + 2);
        ck_assert_msg(wait_frame(rig.end[CHANNEL_SWITCH]) == i, "wake-up %u was lost", i);
    }
    pthread_join(thread, &failed);
    ck_assert_ptr_null(failed);
    struct channel_counters c;
    for (unsigned side = 0; side < 2; side++) {
        channel_counters(rig.end[side], &c);
        ck_assert_uint_gt(c.wakes, 0);
        ck_assert_uint_eq(c.wakes_lost, 0);
    }
    rig_close(&rig);
}
END_TEST

/* The litmus test: a sleeper that only spins, as one that blocks is so slow that the two hardly
 * ever meet. A lost wake-up leaves the word at 1 with a frame in the ring, while the sender has had
 * its turns and nothing to do. */
static struct litmus {
    enum channel_side to;
    _Atomic uint32_t taken; /* frames */
    _Atomic bool lost, stop;
    _Atomic uint32_t turns; /* turns of the sender, in which it waited */
} litmus;

static void *litmus_sleeper(void *arg)
{
    struct io_port *io = rig.end[litmus.to];
    _Atomic uint32_t *sleeping = &rig.head->to[litmus.to].sleeping;
    for (uint32_t i = 0; !atomic_load(&litmus.stop);) {
        io->ops->rx_arm(io, true);
        uint32_t got = rig_take(io);
        if (got == UINT32_MAX) {
            uint32_t since = 0;
            for (uint32_t k = 1; atomic_load_explicit(sleeping, memory_order_relaxed); k++) {
                if (atomic_load(&litmus.stop))
                    return arg;
                if (k % 4096)
                    continue;
                sched_yield();
                uint32_t turns = atomic_load(&litmus.turns);
                since = since ? since : turns + 1;
                if (turns - since > 100 && turns - since < UINT32_MAX / 2 &&
                    channel_tx_waiting(rig.end[!litmus.to]) > 0 &&
                    atomic_load_explicit(sleeping, memory_order_relaxed)) {
                    atomic_store(&litmus.lost, true);
                    return arg;
                }
            }
            continue;
        }
        atomic_store(&litmus.taken, ++i);
        jitter(i * 3);
    }
    return arg;
}

static void litmus_run(enum channel_side to)
{
    pthread_t thread;
    litmus = (struct litmus){.to = to};
    rig_open(&rig, CHANNEL_SLOTS_MIN);
    pthread_create(&thread, NULL, litmus_sleeper, NULL);
    uint64_t end = now_ns() + LONG_NS / 4;
    for (uint32_t i = 1; i < 20 * ROUNDS && !atomic_load(&litmus.lost); i++) {
        if (i % 256 == 0 && now_ns() > end)
            break;
        jitter(i);
        ck_assert(rig_send(rig.end[!litmus.to], i, 80));
        for (uint32_t k = 1; atomic_load(&litmus.taken) != i && !atomic_load(&litmus.lost); k++) {
            if (k % 4096 == 0) {
                atomic_fetch_add(&litmus.turns, 1);
                sched_yield();
            }
        }
    }
    atomic_store(&litmus.stop, true);
    pthread_join(thread, NULL);
    ck_assert_msg(!atomic_load(&litmus.lost), "a wake-up was lost at frame %u",
                  atomic_load(&litmus.taken) + 1);
    rig_close(&rig);
}

START_TEST(shm_06_litmus_towards_the_switch)
{
    litmus_run(CHANNEL_SWITCH);
}
END_TEST

START_TEST(shm_06_litmus_towards_a_program)
{
    litmus_run(CHANNEL_PROGRAM);
}
END_TEST

/* Streams both ways while the channel grows, each end asleep whenever there is nothing. */
#define STREAM 20000u

static struct channel_memory more[2][2]; /* first and second growth; daemon's, program's */

static void *stream(void *arg)
{
    struct io_port *io = arg;
    uint32_t sent = 0, got = 0;
    uint64_t idle_end = now_ns() + LONG_NS;
    while ((sent < STREAM || got < STREAM) && now_ns() < idle_end) {
        unsigned n = 0;
        while (n < 32 && sent < STREAM && rig_send(io, sent, 100))
            sent++, n++;
        uint32_t number;
        while (n < 64 && (number = rig_take(io)) != UINT32_MAX) {
            if (number != got)
                return NULL;
            got++, n++;
        }
        if (n > 0) {
            idle_end = now_ns() + LONG_NS;
        } else if (sent == STREAM) { /* room isn't woken for */
            io->ops->rx_arm(io, true);
            uint32_t again = rig_take(io);
            if (again == got)
                got++;
            else if (again == UINT32_MAX && got < STREAM && !sleep_on(io))
                return NULL;
            io->ops->rx_arm(io, false);
        } else {
            sched_yield();
        }
        (void)channel_grown(io);
        for (unsigned i = 0; i < 2; i++) {
            struct channel_memory *m = &more[i][io == rig.end[1]];
            if (sent >= (i + 1) * STREAM / 4 && m->base)
                (void)channel_grow(io, m); /* -EBUSY: again later */
        }
    }
    return sent == STREAM && got == STREAM ? io : NULL;
}

START_TEST(shm_06_growing_loses_no_wake_up)
{
    pthread_t thread;
    void *done;
    rig_open(&rig, CHANNEL_SLOTS_MIN);
    close(rig_memory(&more[0][0], &more[0][1], 128));
    close(rig_memory(&more[1][0], &more[1][1], 256));
    pthread_create(&thread, NULL, stream, rig.end[1]);
    void *mine = stream(rig.end[0]);
    pthread_join(thread, &done);
    ck_assert_ptr_eq(mine, rig.end[0]);
    ck_assert_ptr_eq(done, rig.end[1]);
    rig_close(&rig);
    for (unsigned i = 0; i < 4; i++)
        channel_memory_free(&more[i / 2][i % 2]);
}
END_TEST

/* Both ends get memory with this many slots, and move to it. */
static void grow_now(uint32_t slots)
{
    struct channel_memory m[2];
    close(rig_memory(&m[CHANNEL_SWITCH], &m[CHANNEL_PROGRAM], slots));
    for (unsigned side = 0; side < 2; side++)
        ck_assert_int_eq(channel_grow(rig.end[side], &m[side]), 0);
    for (unsigned side = 0; side < 2; side++)
        ck_assert_uint_eq(rig_take(rig.end[side]), UINT32_MAX);
    ck_assert(channel_grown(rig.end[0]) && channel_grown(rig.end[1]));
}

/* An end looks at its ring once more after it was armed. If it moves then, the producer finds it
 * armed in the new ring, too. */
static void move_armed(enum channel_side side_of)
{
    struct channel_memory m[2];
    struct channel_counters c;
    struct io_port *io, *other;
    rig_open(&rig, CHANNEL_SLOTS_MIN);
    io = rig.end[side_of];
    other = rig.end[!side_of];
    close(rig_memory(&m[CHANNEL_SWITCH], &m[CHANNEL_PROGRAM], 128));
    for (unsigned side = 0; side < 2; side++)
        ck_assert_int_eq(channel_grow(rig.end[side], &m[side]), 0);
    io->ops->rx_arm(io, true);
    ck_assert_uint_eq(rig_take(io), UINT32_MAX);
    channel_counters(io, &c);
    ck_assert_uint_eq(c.moved_rx, 1);
    ck_assert_uint_eq(rig_take(other), UINT32_MAX);
    channel_counters(other, &c);
    ck_assert_uint_eq(c.wakes, 0);
    ck_assert(rig_send(other, 1, 80));
    channel_counters(other, &c);
    ck_assert_uint_eq(c.wakes, 1);
    io->ops->rx_arm(io, false); /* and not for ever */
    ck_assert_uint_eq(rig_take(io), 1);
    grow_now(256);
    ck_assert(rig_send(other, 2, 80));
    channel_counters(other, &c);
    ck_assert_uint_eq(c.wakes, 1);
    rig_close(&rig);
}

START_TEST(shm_06_an_armed_end_stays_armed_when_it_moves)
{
    move_armed(CHANNEL_SWITCH);
    move_armed(CHANNEL_PROGRAM);
}
END_TEST

/* The switch may hold a wake-up back. */
START_TEST(shm_06_a_wake_up_that_was_held_comes_later)
{
    struct channel_counters c;
    struct io_port *sw, *io;
    rig_open(&rig, CHANNEL_SLOTS_MIN);
    sw = rig.end[CHANNEL_SWITCH];
    io = rig.end[CHANNEL_PROGRAM];
    io->ops->rx_arm(io, true);
    channel_hold_wake(sw, true);
    channel_hold_wake(sw, false);
    channel_counters(sw, &c);
    ck_assert_uint_eq(c.wakes, 0); /* no frame */
    channel_hold_wake(sw, true);
    ck_assert(rig_send(sw, 1, 80));
    ck_assert(rig_send(sw, 2, 80));
    channel_hold_wake(sw, true);
    channel_counters(sw, &c);
    ck_assert_uint_eq(c.wakes, 0);
    channel_hold_wake(sw, false);
    channel_counters(sw, &c);
    ck_assert_uint_eq(c.wakes, 1);
    ck_assert_uint_eq(rig_take(io), 1);
    ck_assert_uint_eq(rig_take(io), 2);
    io->ops->rx_arm(io, true);
    ck_assert(rig_send(sw, 3, 80)); /* no longer held */
    channel_counters(sw, &c);
    ck_assert_uint_eq(c.wakes, 2);
    rig_close(&rig);
}
END_TEST

/* A program that sleeps in the old memory is woken for the move, held or not. */
START_TEST(shm_06_no_move_is_held)
{
    struct channel_memory m[2];
    struct channel_counters c;
    rig_open(&rig, CHANNEL_SLOTS_MIN);
    struct io_port *sw = rig.end[CHANNEL_SWITCH], *io = rig.end[CHANNEL_PROGRAM];
    close(rig_memory(&m[CHANNEL_SWITCH], &m[CHANNEL_PROGRAM], 128));
    io->ops->rx_arm(io, true);
    channel_hold_wake(sw, true);
    for (unsigned side = 0; side < 2; side++)
        ck_assert_int_eq(channel_grow(rig.end[side], &m[side]), 0);
    ck_assert(rig_send(sw, 1, 80));
    channel_counters(sw, &c);
    ck_assert_uint_eq(c.moved_tx, 1);
    ck_assert_uint_eq(c.wakes, 1);
    ck_assert_uint_eq(rig_take(io), 1);
    channel_hold_wake(sw, false);
    rig_close(&rig);
}
END_TEST

static _Atomic bool nudged;

static void *nudge(void *arg)
{
    for (uint32_t i = 0; i < ROUNDS / 10; i++) {
        while (atomic_load(&nudged))
            sched_yield();
        jitter(i);
        atomic_store(&nudged, true);
        channel_nudge(rig.end[CHANNEL_PROGRAM]);
    }
    return arg;
}

START_TEST(shm_06_no_nudge_is_lost)
{
    pthread_t thread;
    struct io_port *io;
    uint32_t slots = CHANNEL_SLOTS_MIN;
    rig_open(&rig, slots);
    io = rig.end[CHANNEL_PROGRAM];
    pthread_create(&thread, NULL, nudge, NULL);
    for (uint32_t i = 0; i < ROUNDS / 10; i++) {
        for (bool slept = true; !atomic_load(&nudged);) {
            ck_assert_msg(slept, "nudge %u was lost", i);
            io->ops->rx_arm(io, true);
            if (!atomic_load(&nudged))
                slept = sleep_on(io);
            io->ops->rx_arm(io, false);
        }
        jitter(i * 3);
        atomic_store(&nudged, false);
        if (i % 64 == 63 &&
            slots < CHANNEL_SLOTS_MAX) /* the other thread may still be in the old one */
            grow_now(slots *= 2);
    }
    pthread_join(thread, NULL);
    ck_assert_uint_eq(channel_slots(io), CHANNEL_SLOTS_MAX);
    rig_close(&rig);
}
END_TEST

/* ---- the eventfd, which both hold ---- */

/* The program can take away O_NONBLOCK, fill it or empty it. */
START_TEST(an_eventfd_of_a_hostile_program_holds_up_nobody)
{
    const uint64_t most = UINT64_MAX - 1;
    rig_open(&rig, CHANNEL_SLOTS_MIN);
    struct io_port *sw = rig.end[CHANNEL_SWITCH];
    ck_assert_int_eq(fcntl(rig.event, F_SETFL, 0), 0);
    sw->ops->rx_arm(sw, true); /* empty: a plain read would wait */
    ck_assert_int_eq(write(rig.event, &most, sizeof(most)), sizeof(most));
    sw->ops->rx_arm(sw, true);
    ck_assert(rig_send(rig.end[CHANNEL_PROGRAM], 1, 80));
    struct pollfd p = {.fd = sw->caps.rx_fd, .events = POLLIN};
    ck_assert_int_eq(poll(&p, 1, 0), 1);
    ck_assert_uint_eq(rig_take(sw), 1);
    rig_close(&rig);
}
END_TEST

/* After closefrom() a file of the program may get the eventfd's number. The channel must not write
 * to that file. */
START_TEST(a_stranger_in_the_place_of_the_eventfd_is_left_alone)
{
    char name[] = "/tmp/urnic-channel-XXXXXX";
    struct channel_memory daemon, program;
    struct channel_counters c;
    struct io_port *end[2];
    struct stat st;
    close(rig_memory(&daemon, &program, CHANNEL_SLOTS_MIN));
    int event = eventfd(0, EFD_NONBLOCK);
    int theirs = fcntl(event, F_DUPFD, 0);
    ck_assert_int_eq(channel_open(CHANNEL_SWITCH, &daemon, event, 0, &end[0]), 0);
    ck_assert_int_eq(channel_open(CHANNEL_PROGRAM, &program, theirs, 0, &end[1]), 0);
    int file = mkstemp(name);
    ck_assert_int_eq(dup2(file, theirs), theirs);
    end[0]->ops->rx_arm(end[0], true);
    ck_assert(rig_send(end[1], 1, 80));
    channel_counters(end[1], &c);
    ck_assert_uint_eq(c.wakes, 0);
    ck_assert_uint_eq(c.wakes_lost, 1);
    ck_assert_int_eq(fstat(file, &st), 0);
    ck_assert_int_eq(st.st_size, 0);
    end[0]->ops->close(end[0]);
    end[1]->ops->close(end[1]);
    ck_assert_int_eq(fstat(theirs, &st), 0); /* nor closed */
    unlink(name);
}
END_TEST

UNIT_MAIN("channel wake-ups", shm_06_litmus_towards_the_switch, shm_06_litmus_towards_a_program,
          shm_06_no_wake_up_of_a_channel_is_lost, shm_06_growing_loses_no_wake_up,
          shm_06_an_armed_end_stays_armed_when_it_moves, shm_06_no_nudge_is_lost,
          shm_06_a_wake_up_that_was_held_comes_later, shm_06_no_move_is_held,
          an_eventfd_of_a_hostile_program_holds_up_nobody,
          a_stranger_in_the_place_of_the_eventfd_is_left_alone)
