/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests the promises of drivers/io.h on a pair of joined ports A and B of one driver:
 *
 *     conform DRIVER
 *
 * Every frame carries a number and octets that follow from it, so that loss, duplication,
 * reordering and damage are all seen by the receiver.
 */
#include "conform.h"
#include "conform_frames.h"
#include "fork_apart.h"

#include <check.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE   (5 * 1000000000ull)
#define KILLS      50u
#define MAX_QUEUES 7u

static const struct conf_setup *setup;
static char dir[64];
static struct io_port *port[2];                  /* A, B */
static struct io_port *queue[2][MAX_QUEUES + 1]; /* of each, from 1 on */

/* ---- opening and closing ---- */

static int try_open(unsigned side, uint32_t frame_max, char *err, size_t err_size)
{
    struct io_open_params params = {.frame_max = frame_max};
    char spec[IO_SPEC_MAX];
    size_t n = 0;
    if (setup->open)
        return setup->open(side, frame_max, &port[side]);
    for (const char *s = setup->spec[side], *mark; s; s = mark ? mark + 2 : NULL) {
        mark = strstr(s, "%s");
        n += (size_t)snprintf(spec + n, sizeof(spec) - n, "%.*s%s",
                              mark ? (int)(mark - s) : (int)strlen(s), s, mark ? dir : "");
        ck_assert_uint_lt(n, sizeof(spec));
    }
    int rc = io_open(spec, &params, &port[side], err, err_size);
    for (unsigned k = 1; rc == 0 && k <= setup->queues; k++)
        rc = port[side]->ops->queue(port[side], k, setup->queues + 1, &queue[side][k]);
    return rc;
}

static void open_side(unsigned side)
{
    char err[512] = "";
    int rc = try_open(side, setup->frame_max, err, sizeof(err));
    ck_assert_msg(rc == 0, "opening %s: %s", setup->spec[side], err);
}

static void close_side(unsigned side)
{
    for (unsigned k = MAX_QUEUES; k > 0; k--) {
        if (queue[side][k])
            queue[side][k]->ops->close(queue[side][k]);
        queue[side][k] = NULL;
    }
    if (port[side])
        port[side]->ops->close(port[side]);
    port[side] = NULL;
}

static void service(unsigned side)
{
    if (port[side] && port[side]->ops->service)
        port[side]->ops->service(port[side], now_ns());
    for (unsigned k = 1; k <= setup->queues; k++) {
        if (queue[side][k])
            queue[side][k]->ops->service(queue[side][k], now_ns());
    }
}

static bool wait_link(unsigned side, bool up)
{
    struct io_link link;
    uint64_t end = now_ns() + PATIENCE;
    do {
        service(0);
        service(1);
        port[side]->ops->link(port[side], &link);
        if (link.up == up)
            return true;
        usleep(200);
    } while (now_ns() < end);
    return false;
}

static void open_both(void)
{
    open_side(0);
    if (setup->flags & CONF_FILE)
        return;
    open_side(1);
    ck_assert(wait_link(0, true));
    ck_assert(wait_link(1, true));
}

/* With files, the sender's work must end before the receiver's begins. */
static void turn_over(void)
{
    if (setup->flags & CONF_FILE) {
        close_side(0);
        open_side(1);
    }
}

static void start(void)
{
    if (setup->setup)
        ck_assert_int_eq(setup->setup(dir), 0);
    open_both();
}

static void stop(void)
{
    close_side(0);
    close_side(1);
    if (setup->teardown)
        setup->teardown(dir);
}

/* ---- streams of numbered frames ---- */

static uint32_t frame_max(void)
{
    uint32_t a = port[0] ? port[0]->caps.frame_max : IO_FRAME_MAX;
    uint32_t b = port[1] ? port[1]->caps.frame_max : IO_FRAME_MAX;
    return a < b ? a : b;
}

static uint32_t max_for_lengths; /* set once, so that sender and checker agree */

static uint32_t len_min(uint32_t number)
{
    (void)number;
    return FRAME_MIN;
}

static uint32_t len_max(uint32_t number)
{
    (void)number;
    return max_for_lengths;
}

static uint32_t len_each(uint32_t number)
{
    return FRAME_MIN + number % (max_for_lengths - FRAME_MIN + 1);
}

static uint32_t len_mixed(uint32_t number)
{
    uint32_t h = number * 2654435761u;
    return FRAME_MIN + (h >> 8) % (max_for_lengths - FRAME_MIN + 1);
}

/* All frames across, from `from` to the other side. */
static void transfer(unsigned from, uint32_t first, uint32_t count, length_fn len)
{
    uint32_t sent = 0, got = 0;
    uint64_t end = now_ns() + 4 * PATIENCE;
    if (setup->flags & CONF_FILE) {
        while (sent < count)
            sent += send_some(port[0], first + sent, count - sent, len);
        turn_over();
        from = 0;
    }
    while (got < count) {
        if (sent < count && sent - got < 512)
            sent += send_some(port[from], first + sent, count - sent, len);
        got += receive_some(port[!from], first + got, len);
        ck_assert_msg(now_ns() < end, "%u frames sent, %u received, then nothing", sent, got);
    }
    /* Nothing may follow. */
    for (int i = 0; i < 3; i++)
        ck_assert_uint_eq(receive_some(port[!from], first + got, len), 0);
}

/* ---- the promises ---- */

START_TEST(io_caps_are_sane)
{
    for (unsigned s = 0; s < 2; s++) {
        if (!port[s])
            continue;
        ck_assert_uint_ge(port[s]->caps.frame_max, 1500);
        ck_assert_uint_le(port[s]->caps.frame_max, IO_FRAME_MAX);
        ck_assert_ptr_nonnull(port[s]->ops->name);
        ck_assert(strncmp(port[s]->spec, port[s]->ops->name, strlen(port[s]->ops->name)) == 0);
        if (port[s]->caps.rx_fd >= 0)
            ck_assert(port[s]->ops->rx_arm != NULL);
    }
}
END_TEST

START_TEST(io_bursts_of_smallest_frames)
{
    transfer(0, 0, 5000, len_min);
    if (!(setup->flags & CONF_FILE))
        transfer(1, 0, 5000, len_min);
}
END_TEST

START_TEST(io_bursts_of_largest_frames)
{
    max_for_lengths = frame_max();
    transfer(0, 0, 2000, len_max);
    if (!(setup->flags & CONF_FILE))
        transfer(1, 0, 2000, len_max);
}
END_TEST

START_TEST(io_every_length)
{
    max_for_lengths = frame_max();
    transfer(0, 0, max_for_lengths - FRAME_MIN + 1, len_each);
}
END_TEST

START_TEST(io_mixed_lengths_both_ways)
{
    max_for_lengths = frame_max();
    transfer(0, 7, 3000, len_mixed);
    if (!(setup->flags & CONF_FILE))
        transfer(1, 9, 3000, len_mixed);
}
END_TEST

START_TEST(io_oversize_is_refused_and_counted)
{
    struct io_slot slots[3];
    struct io_stats before, after;
    struct io_port *a = port[0];
    a->ops->stats(a, &before);
    ck_assert_uint_eq(a->ops->tx_reserve(a, slots, 3, now_ns()), 3);
    for (unsigned i = 0; i < 3; i++) {
        frame_fill(slots[i].data, 100, i / 2);
        slots[i].len = 100;
    }
    slots[1].len = a->caps.frame_max + 1;
    a->ops->tx_commit(a, slots, 3, now_ns());
    a->ops->stats(a, &after);
    ck_assert_uint_eq(after.tx_drop, before.tx_drop + 1);
    ck_assert_uint_eq(after.tx_frames, before.tx_frames + 2);

    turn_over();
    uint64_t end = now_ns() + PATIENCE;
    unsigned got = 0;
    struct io_frame f;
    while (got < 2 && now_ns() < end) {
        if (port[1]->ops->rx_peek(port[1], &f, 1, now_ns()) == 0)
            continue;
        if (frame_ours(&f))
            frame_check(&f, got++, 100);
        port[1]->ops->rx_release(port[1], 1);
    }
    ck_assert_uint_eq(got, 2);
}
END_TEST

static uint32_t len_2000_then_100(uint32_t number)
{
    return number == 0 ? 2000 : 100;
}

START_TEST(io_receiver_has_its_own_limit)
{
    struct io_stats st;
    char err[256];
    if (!(setup->flags & CONF_RX_LIMIT))
        return;
    if (!(setup->flags & CONF_FILE)) {
        close_side(1);
        ck_assert_int_eq(try_open(1, 1518, err, sizeof(err)), 0);
        ck_assert(wait_link(0, true));
    }
    ck_assert_uint_eq(send_some(port[0], 0, 2, len_2000_then_100), 2);
    if (setup->flags & CONF_FILE) {
        close_side(0);
        ck_assert_int_eq(try_open(1, 1518, err, sizeof(err)), 0);
    }
    ck_assert_uint_eq(receive_some(port[1], 1, len_2000_then_100), 1);
    port[1]->ops->stats(port[1], &st);
    ck_assert_uint_eq(st.rx_oversize, 1);
}
END_TEST

START_TEST(io_full_then_drained)
{
    struct io_stats st;
    if (setup->flags & (CONF_FILE | CONF_NEVER_FULL | CONF_LOSSY_FULL))
        return;
    for (unsigned round = 0; round < 3; round++) {
        uint32_t sent = 0, got = 0;
        for (unsigned empty = 0; empty < 100 && sent < 1000000;) {
            unsigned n = send_some(port[0], sent, IO_BURST_MAX, len_min);
            sent += n;
            empty = n ? 0 : empty + 1;
        }
        ck_assert_uint_lt(sent, 1000000);
        ck_assert_uint_ge(sent, IO_BURST_MAX);
        port[0]->ops->stats(port[0], &st);
        ck_assert_uint_gt(st.tx_full, 0);
        uint64_t end = now_ns() + PATIENCE;
        while (got < sent && now_ns() < end)
            got += receive_some(port[1], got, len_min);
        ck_assert_uint_eq(got, sent);
    }
    transfer(0, 0, 500, len_min);
}
END_TEST

START_TEST(io_reserved_but_not_committed)
{
    struct io_slot slots[IO_BURST_MAX];
    struct io_port *a = port[0];

    /* Many more than a port has: none may be lost to it. */
    for (unsigned i = 0; i < 5000; i++)
        ck_assert_uint_ge(a->ops->tx_reserve(a, slots, IO_BURST_MAX, now_ns()), 1);
    for (unsigned i = 0; i < 5000; i++) {
        unsigned n = a->ops->tx_reserve(a, slots, 32, now_ns());
        ck_assert_uint_ge(n, 1);
        a->ops->tx_commit(a, slots, n, now_ns());
    }
    transfer(0, 0, 1000, len_min);
}
END_TEST

START_TEST(io_slots_of_length_zero)
{
    struct io_slot slots[IO_BURST_MAX];
    struct io_port *a = port[0];
    uint32_t sent = 0, got = 0;
    uint64_t end = now_ns() + PATIENCE;
    for (unsigned round = 0; round < 20; round++) {
        unsigned n = a->ops->tx_reserve(a, slots, 16, now_ns());
        for (unsigned i = 0; i < n; i++) {
            if ((i + round) % 3 == 0)
                continue;
            frame_fill(slots[i].data, FRAME_MIN, sent++);
            slots[i].len = FRAME_MIN;
        }
        a->ops->tx_commit(a, slots, n, now_ns());
        if (!(setup->flags & CONF_FILE))
            got += receive_some(port[1], got, len_min);
    }
    ck_assert_uint_gt(sent, 100);
    turn_over();
    while (got < sent && now_ns() < end)
        got += receive_some(port[1], got, len_min);
    ck_assert_uint_eq(got, sent);
}
END_TEST

/* Peek frames of ours only, until `want` are lent; the rest is not used by this test. */
static void peek_exactly(struct io_frame *frames, unsigned want)
{
    uint64_t end = now_ns() + PATIENCE;
    unsigned n = 0;
    while (n < want && now_ns() < end)
        n += port[1]->ops->rx_peek(port[1], frames + n, want - n, now_ns());
    ck_assert_uint_eq(n, want);
}

START_TEST(io_lent_frames_stay_until_released)
{
    struct io_frame frames[32];
    uint32_t sent = 0;
    if (setup->setup)
        return; /* foreign frames would disturb the count */
    while (sent < 40)
        sent += send_some(port[0], sent, 40 - sent, len_min);
    turn_over();
    peek_exactly(frames, 10);
    peek_exactly(frames + 10, 10); /* the following ones */
    for (unsigned i = 0; i < 20; i++)
        frame_check(&frames[i], i, FRAME_MIN);
    port[1]->ops->rx_release(port[1], 5);
    /* The sender may use only the slots that were given back. */
    if (!(setup->flags & CONF_FILE))
        while (sent < 60)
            sent += send_some(port[0], sent, 60 - sent, len_min);
    peek_exactly(frames + 20, 10);
    for (unsigned i = 5; i < 30; i++)
        frame_check(&frames[i], i, FRAME_MIN);
    port[1]->ops->rx_release(port[1], 25);
    for (uint32_t got = 30; got < sent;)
        got += receive_some(port[1], got, len_min);
}
END_TEST

START_TEST(io_statistics_agree)
{
    struct io_stats a, b;
    uint64_t bytes = 0;
    max_for_lengths = frame_max();
    if (setup->flags & CONF_FILE) {
        for (uint32_t sent = 0; sent < 1000;)
            sent += send_some(port[0], sent, 1000 - sent, len_mixed);
        port[0]->ops->stats(port[0], &a);
        turn_over();
        for (uint32_t got = 0; got < 1000;)
            got += receive_some(port[1], got, len_mixed);
    } else {
        transfer(0, 0, 1000, len_mixed);
        port[0]->ops->stats(port[0], &a);
    }
    port[1]->ops->stats(port[1], &b);
    for (uint32_t i = 0; i < 1000; i++)
        bytes += len_mixed(i);
    ck_assert_uint_eq(a.tx_frames, 1000);
    ck_assert_uint_eq(a.tx_bytes, bytes);
    ck_assert_uint_eq(a.tx_drop, 0);
    ck_assert_uint_ge(b.rx_frames, 1000);
    ck_assert_uint_ge(b.rx_bytes, bytes);
    ck_assert_uint_eq(b.rx_drop + b.rx_oversize, 0);
}
END_TEST

START_TEST(io_link_follows_the_peer)
{
    struct io_link before, after;
    struct io_slot slot;
    if (!(setup->flags & CONF_PEER_LINK))
        return;
    port[0]->ops->link(port[0], &before);
    ck_assert(before.up);
    close_side(1);
    ck_assert(wait_link(0, false));
    ck_assert_uint_eq(port[0]->ops->tx_reserve(port[0], &slot, 1, now_ns()), 0);
    open_side(1);
    ck_assert(wait_link(0, true));
    ck_assert(wait_link(1, true));
    port[0]->ops->link(port[0], &after);
    ck_assert_uint_ge(after.changes, before.changes + 2);
    transfer(0, 0, 100, len_min);
}
END_TEST

START_TEST(io_peer_closed_and_back_50_times)
{
    struct io_slot slots[IO_BURST_MAX];
    struct io_frame frames[IO_BURST_MAX];
    if (setup->flags & CONF_FILE)
        return;
    for (unsigned i = 0; i < KILLS; i++) {
        transfer(0, i * 100, 32, len_min);
        transfer(1, i * 100, 32, len_min);
        if (i % 2) { /* in the middle of something */
            send_some(port[0], 0, 16, len_min);
            port[1]->ops->rx_peek(port[1], frames, 8, now_ns());
            port[1]->ops->tx_reserve(port[1], slots, 8, now_ns());
        }
        unsigned side = setup->flags & CONF_PEER_LINK && i % 4 == 3 ? 0 : 1;
        close_side(side);
        if (setup->flags & CONF_PEER_LINK)
            ck_assert(wait_link(!side, false));
        open_side(side);
        ck_assert(wait_link(0, true));
        ck_assert(wait_link(1, true));
        /* Frames under way may still come in; then none. */
        for (unsigned s = 0; s < 2; s++) {
            unsigned n;
            while ((n = port[s]->ops->rx_peek(port[s], frames, IO_BURST_MAX, now_ns())) > 0)
                port[s]->ops->rx_release(port[s], n);
        }
    }
}
END_TEST

/* A peer in another process sends for ever, until it is killed. */
static void child_sender(void)
{
    char err[256];
    if (try_open(1, setup->frame_max, err, sizeof(err)))
        _exit(2);
    for (uint32_t n = 0;;) {
        service(1);
        n += send_some(port[1], n, 32, len_min);
        unsigned got;
        struct io_frame f[IO_BURST_MAX];
        while ((got = port[1]->ops->rx_peek(port[1], f, IO_BURST_MAX, now_ns())) > 0)
            port[1]->ops->rx_release(port[1], got);
    }
}

START_TEST(io_peer_killed_and_back_50_times)
{
    if (!(setup->flags & CONF_PROCESS))
        return;
    close_side(1);
    for (unsigned i = 0; i < KILLS; i++) {
        pid_t pid = fork_apart();
        ck_assert_int_ge(pid, 0);
        if (pid == 0)
            child_sender();
        ck_assert(wait_link(0, true));
        uint64_t end = now_ns() + PATIENCE;
        unsigned got = 0, sent = 0;
        while (got < 200 + i * 7 && now_ns() < end) {
            got += receive_some(port[0], got, len_min);
            sent += send_some(port[0], sent, 8, len_min);
        }
        ck_assert_uint_ge(got, 200 + i * 7);
        kill(pid, SIGKILL);
        ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
        ck_assert(wait_link(0, false));
        struct io_frame f[IO_BURST_MAX];
        unsigned n;
        while ((n = port[0]->ops->rx_peek(port[0], f, IO_BURST_MAX, now_ns())) > 0)
            port[0]->ops->rx_release(port[0], n);
    }
}
END_TEST

static int fd_readable(int fd, int timeout_ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, timeout_ms);
}

START_TEST(io_arm_makes_the_descriptor_readable)
{
    if (!port[1] || port[1]->caps.rx_fd < 0)
        return;
    struct io_port *b = port[1];
    for (uint32_t i = 0; i < 50; i++) {
        b->ops->rx_arm(b, true);
        ck_assert_uint_eq(receive_some(b, i, len_min), 0);
        ck_assert_uint_eq(send_some(port[0], i, 1, len_min), 1);
        ck_assert_msg(fd_readable(b->caps.rx_fd, 2000) == 1, "no wake-up at frame %u", i);
        uint64_t end = now_ns() + PATIENCE;
        unsigned got = 0;
        while (!got && now_ns() < end)
            got = receive_some(b, i, len_min);
        ck_assert_uint_eq(got, 1);
    }
    b->ops->rx_arm(b, false);
}
END_TEST

/* ---- two threads ---- */

#define PINGS 3000u

/* Wait for one frame the way a worker does: look, arm, look again, block. */
static bool wait_frame(struct io_port *io, uint32_t number)
{
    uint64_t end = now_ns() + PATIENCE;
    while (now_ns() < end) {
        io->ops->rx_arm(io, false);
        if (receive_some(io, number, len_min))
            return true;
        io->ops->rx_arm(io, true);
        if (receive_some(io, number, len_min))
            return true;
        if (fd_readable(io->caps.rx_fd, 1000) == 0)
            return false; /* a lost wake-up */
    }
    return false;
}

static void *pong(void *arg)
{
    struct io_port *io = arg;
    for (uint32_t i = 0; i < PINGS; i++) {
        if (!wait_frame(io, i))
            return arg;
        while (send_some(io, i, 1, len_min) == 0)
            sched_yield();
    }
    return NULL;
}

START_TEST(io_no_wake_up_is_lost)
{
    pthread_t thread;
    void *failed;
    if (!port[1] || port[1]->caps.rx_fd < 0 || port[0]->caps.rx_fd < 0)
        return;
    pthread_create(&thread, NULL, pong, port[1]);
    for (uint32_t i = 0; i < PINGS; i++) {
        while (send_some(port[0], i, 1, len_min) == 0)
            sched_yield();
        ck_assert_msg(wait_frame(port[0], i), "wake-up %u was lost", i);
    }
    pthread_join(thread, &failed);
    ck_assert_ptr_null(failed);
}
END_TEST

struct stream {
    unsigned side;
    uint32_t count, sent, got;
};

/* Send a stream to the other side and take its stream, on one thread for each side. It takes as
 * long as it takes, but not long without a frame. */
static void *run_stream(void *arg)
{
    struct stream *s = arg;
    uint64_t end = now_ns() + 4 * PATIENCE, now;
    while ((s->sent < s->count || s->got < s->count) && (now = now_ns()) < end) {
        unsigned n = 0;
        /* Bounded by the frames that the other side has echoed in its own stream: nothing may
         * overflow. */
        if (s->sent < s->count && s->sent < s->got + 256) {
            uint32_t left = s->count - s->sent, burst = 1 + s->sent % 32;
            n = send_some(port[s->side], s->sent, burst < left ? burst : left, len_mixed);
        }
        s->sent += n;
        unsigned got = receive_some(port[s->side], s->got, len_mixed);
        s->got += got;
        if (n || got)
            end = now + 4 * PATIENCE;
        else
            sched_yield();
    }
    return NULL;
}

START_TEST(io_two_threads_stream_to_each_other)
{
    pthread_t thread;
    if (setup->flags & CONF_FILE)
        return;
    max_for_lengths = frame_max();
    struct stream a = {.side = 0, .count = 20000}, b = {.side = 1, .count = 20000};
    pthread_create(&thread, NULL, run_stream, &b);
    run_stream(&a);
    pthread_join(thread, NULL);
    ck_assert_uint_eq(a.got, a.count);
    ck_assert_uint_eq(b.got, b.count);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create(setup->name);
    TCase *t = tcase_create("io.h");

    max_for_lengths = 1514;
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, start, stop);
    tcase_add_test(t, io_caps_are_sane);
    tcase_add_test(t, io_bursts_of_smallest_frames);
    tcase_add_test(t, io_bursts_of_largest_frames);
    tcase_add_test(t, io_every_length);
    tcase_add_test(t, io_mixed_lengths_both_ways);
    tcase_add_test(t, io_oversize_is_refused_and_counted);
    tcase_add_test(t, io_receiver_has_its_own_limit);
    tcase_add_test(t, io_full_then_drained);
    tcase_add_test(t, io_reserved_but_not_committed);
    tcase_add_test(t, io_slots_of_length_zero);
    tcase_add_test(t, io_lent_frames_stay_until_released);
    tcase_add_test(t, io_statistics_agree);
    tcase_add_test(t, io_link_follows_the_peer);
    tcase_add_test(t, io_peer_closed_and_back_50_times);
    tcase_add_test(t, io_peer_killed_and_back_50_times);
    tcase_add_test(t, io_arm_makes_the_descriptor_readable);
    tcase_add_test(t, io_no_wake_up_is_lost);
    tcase_add_test(t, io_two_threads_stream_to_each_other);
    suite_add_tcase(s, t);
    return s;
}

int main(int argc, char **argv)
{
    for (size_t i = 0; argc == 2 && i < conf_setups_n; i++)
        if (strcmp(argv[1], conf_setups[i].name) == 0)
            setup = &conf_setups[i];
    if (!setup) {
        fprintf(stderr, "usage: %s DRIVER, one of:", argv[0]);
        for (size_t i = 0; i < conf_setups_n; i++)
            fprintf(stderr, " %s", conf_setups[i].name);
        fprintf(stderr, "\n");
        return 2;
    }
    strcpy(dir, "/tmp/urnic-conform-XXXXXX");
    if (!mkdtemp(dir))
        return 2;
    int failed = 0;
    if (setup->setup) { /* once to see whether it can run here at all */
        int rc = setup->setup(dir);
        if (setup->teardown)
            setup->teardown(dir);
        failed = rc;
    }
    if (!failed) {
        SRunner *r = srunner_create(suite());
        srunner_run_all(r, CK_NORMAL);
        failed = srunner_ntests_failed(r) != 0;
        srunner_free(r);
    }
    char cmd[128];
    snprintf(cmd, sizeof(cmd), "rm -rf '%s'", dir);
    return system(cmd) ? 2 : failed;
}
