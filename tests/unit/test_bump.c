/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The bump in the wire between two emulated links, on virtual time: the frames at the far end,
 * their order, and the counters.
 */
#include <stdio.h>
#include <string.h>

#include "bump.h"
#include "mem_link.h"
#include "unit.h"

#define MOST 1024u

static struct bump b;
static struct io_port *end[BUMP_DIRS]; /* the machines at its two sides */
static uint32_t got[MOST];
static uint64_t now;

static void set_up(const char *keys_b, uint32_t queue)
{
    char right[128], err[256] = "";
    snprintf(right, sizeof(right), "mem:right%s", keys_b);
    now = 1000;
    ck_assert_int_eq(io_open("mem:left", NULL, &end[FAULT_AB], err, sizeof(err)), 0);
    ck_assert_int_eq(io_open(right, NULL, &end[FAULT_BA], err, sizeof(err)), 0);
    ck_assert_msg(!bump_open(&b, "mem:left", right, 0, queue, err, sizeof(err)), "%s", err);
}

static void tear_down(void)
{
    bump_close(&b);
    end[0]->ops->close(end[0]);
    end[1]->ops->close(end[1]);
}

/* A frame with a number and a pattern that depends on it, to an arbitrary MAC address. */
static void fill(uint8_t *f, uint32_t len, uint32_t number)
{
    for (uint32_t i = 0; i < len; i++)
        f[i] = (uint8_t)(number * 7 + i);
    memcpy(f + 14, &number, sizeof(number));
}

static void send_frames(enum fault_dir from, uint32_t first, uint32_t n, uint32_t len)
{
    struct io_slot slot;
    for (uint32_t i = 0; i < n; i++) {
        ck_assert_uint_eq(end[from]->ops->tx_reserve(end[from], &slot, 1, now), 1);
        fill(slot.data, len, first + i);
        slot.len = len;
        end[from]->ops->tx_commit(end[from], &slot, 1, now);
    }
}

/* The numbers of the frames that have arrived in direction `dir`; each must be unchanged. */
static unsigned arrived(enum fault_dir dir, uint32_t len)
{
    struct io_port *io = end[!dir];
    struct io_frame frame[IO_BURST_MAX];
    uint8_t want[IO_FRAME_MAX];
    unsigned n = 0, k;
    while ((k = io->ops->rx_peek(io, frame, IO_BURST_MAX, now)) != 0) {
        for (unsigned i = 0; i < k; i++) {
            memcpy(&got[n], frame[i].data + 14, sizeof(got[n]));
            fill(want, len, got[n]);
            ck_assert_uint_eq(frame[i].len, len);
            ck_assert_mem_eq(frame[i].data, want, len);
            n++;
        }
        io->ops->rx_release(io, k);
    }
    return n;
}

static void rounds(void)
{
    while (bump_round(&b, now))
        ;
}

static void expect(enum fault_dir dir, uint32_t len, const uint32_t *want, unsigned n)
{
    ck_assert_uint_eq(arrived(dir, len), n);
    for (unsigned i = 0; i < n; i++)
        ck_assert_uint_eq(got[i], want[i]);
}

START_TEST(all_frames_pass_both_ways_in_order_and_unchanged)
{
    static const uint32_t lens[] = {18, 60, 1514, 9000};
    set_up("", 64);
    for (unsigned l = 0; l < 4; l++) {
        for (unsigned d = 0; d < BUMP_DIRS; d++)
            send_frames(d, 1000 * d, 200, lens[l]);
        rounds();
        for (unsigned d = 0; d < BUMP_DIRS; d++) {
            ck_assert_uint_eq(arrived(d, lens[l]), 200);
            for (unsigned i = 0; i < 200; i++)
                ck_assert_uint_eq(got[i], 1000 * d + i);
        }
    }
    for (unsigned d = 0; d < BUMP_DIRS; d++) {
        ck_assert_uint_eq(b.half[d].count.received, 800);
        ck_assert_uint_eq(b.half[d].count.forwarded, 800);
        ck_assert_uint_eq(b.half[d].count.out_octets, 200 * (18 + 60 + 1514 + 9000));
    }
    tear_down();
}
END_TEST

/* Nothing is lost for want of room: the frames wait where they came in. */
START_TEST(a_slow_port_holds_the_fast_one_back)
{
    set_up(",rate=10M", 64);
    send_frames(FAULT_AB, 0, 300, 1000);
    unsigned n = 0;
    for (unsigned i = 0; n < 300; i++) {
        ck_assert_uint_lt(i, 10000);
        rounds();
        unsigned k = arrived(FAULT_AB, 1000);
        for (unsigned m = 0; m < k; m++)
            ck_assert_uint_eq(got[m], n + m);
        n += k;
        now += 100000;
    }
    ck_assert_uint_eq(b.half[FAULT_AB].count.forwarded, 300);
    tear_down();
}
END_TEST

START_TEST(without_a_link_frames_are_counted_not_kept)
{
    set_up("", 64);
    rounds();
    struct mem_link *right = mem_link_get("right");
    mem_link_up(right, MEM_LINK_ALL, false, now);
    now += 2000000;
    send_frames(FAULT_AB, 0, 100, 60);
    rounds();
    ck_assert_uint_eq(b.half[FAULT_AB].count.no_link, 100);
    mem_link_up(right, MEM_LINK_ALL, true, now);
    mem_link_put(right);
    now += 2000000;
    send_frames(FAULT_AB, 7, 1, 60);
    rounds();
    expect(FAULT_AB, 60, (uint32_t[]){7}, 1);
    tear_down();
}
END_TEST

START_TEST(a_frame_the_other_port_cannot_send_is_counted)
{
    set_up(",frame=1514", 64);
    send_frames(FAULT_AB, 0, 1, 1515);
    send_frames(FAULT_AB, 1, 1, 1514);
    rounds();
    expect(FAULT_AB, 1514, (uint32_t[]){1}, 1);
    ck_assert_uint_eq(b.half[FAULT_AB].count.oversize, 1);
    tear_down();
}
END_TEST

/* ---- with a judge ---- */

/* Actions for frames by number; all other frames pass. */
struct sentence {
    uint32_t number;
    unsigned bits;
    uint32_t copies, gap;
    uint64_t delay, within;
    enum fault_dir inject;
};

#define HELD(gap_)    .bits = FAULT_HOLD, .gap = (gap_), .within = 900000
#define DELAYED(ns)   .bits = FAULT_HOLD, .delay = (ns)
#define COPIES(n)     .bits = FAULT_COPY, .copies = (n)
#define INJECTED(dir) .bits = FAULT_INJECT, .inject = (dir)
#define NINE          9u /* the frame that is injected */

static const struct sentence *sentences;

static unsigned judge(void *arg, enum fault_dir dir, uint8_t *frame, uint32_t len, uint64_t at,
                      struct fault_out *out)
{
    uint32_t number;
    ck_assert_ptr_eq(arg, &sentences);
    ck_assert_uint_eq(at, now);
    memcpy(&number, frame + 14, sizeof(number));
    out->len = len;
    out->flow = 0;
    for (const struct sentence *s = sentences; dir == FAULT_AB && s->number; s++) {
        if (s->number != number)
            continue;
        out->copies = s->copies;
        out->gap = s->gap;
        out->delay = s->delay;
        out->within = s->within;
        out->ninject = 1;
        out->inject[0].dir = s->inject;
        out->inject[0].len = 60;
        fill(out->inject[0].data, 60, NINE);
        return s->bits;
    }
    return 0;
}

START_TEST(verdicts_are_executed_in_order)
{
    static const struct {
        const char *what;
        struct sentence s[3];
        uint32_t want[12];
        unsigned n;
        uint32_t later[4]; /* a millisecond afterwards */
        unsigned nlater;
    } cases[] = {
        {"pass", {{0}}, {1, 2, 3, 4, 5, 6}, 6, {0}, 0},
        {"drop", {{2, FAULT_DROP}}, {1, 3, 4, 5, 6}, 5, {0}, 0},
        {"a copy follows at once", {{3, COPIES(2)}}, {1, 2, 3, 3, 3, 4, 5, 6}, 8, {0}, 0},
        {"after the next", {{2, HELD(1)}}, {1, 3, 2, 4, 5, 6}, 6, {0}, 0},
        {"after three", {{2, HELD(3)}}, {1, 3, 4, 5, 2, 6}, 6, {0}, 0},
        {"two held", {{1, HELD(2)}, {2, HELD(1)}}, {3, 2, 4, 1, 5, 6}, 6, {0}, 0},
        {"held, and nobody comes", {{6, HELD(1)}}, {1, 2, 3, 4, 5}, 5, {6}, 1},
        {"later", {{2, DELAYED(900000)}, {3, DELAYED(800000)}}, {1, 4, 5, 6}, 4, {3, 2}, 2},
        {"one stands before", {{3, INJECTED(FAULT_AB)}}, {1, 2, NINE, 3, 4, 5, 6}, 7, {0}, 0},
        {"one goes back", {{3, INJECTED(FAULT_BA)}}, {1, 2, 3, 4, 5, 6}, 6, {0}, 0},
    };
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        set_up("", 64);
        sentences = cases[i].s;
        b.judge = judge;
        b.arg = &sentences;
        send_frames(FAULT_AB, 1, 6, 60);
        rounds();
        ck_assert_msg(bump_kept_now(&b) == cases[i].nlater, "%s", cases[i].what);
        expect(FAULT_AB, 60, cases[i].want, cases[i].n);
        now += 1000000;
        rounds();
        expect(FAULT_AB, 60, cases[i].later, cases[i].nlater);
        const struct bump_counters *c = &b.half[FAULT_AB].count;
        ck_assert_uint_eq(c->received + c->copied + c->injected - c->dropped, c->forwarded);
        bool back = cases[i].s[0].bits == FAULT_INJECT && cases[i].s[0].inject == FAULT_BA;
        expect(FAULT_BA, 60, (uint32_t[]){NINE}, back);
        tear_down();
    }
}
END_TEST

/* A frame without room in the queue is sent: early is better than lost. */
START_TEST(a_full_queue_lets_frames_pass_and_says_so)
{
    static const struct sentence late[] = {
        {1, DELAYED(1000)}, {2, DELAYED(1000)}, {3, DELAYED(1000)}, {0}};
    set_up("", 2);
    sentences = late;
    b.judge = judge;
    b.arg = &sentences;
    send_frames(FAULT_AB, 1, 4, 60);
    rounds();
    expect(FAULT_AB, 60, (uint32_t[]){3, 4}, 2);
    ck_assert_uint_eq(b.half[FAULT_AB].count.no_room, 1);
    ck_assert_uint_eq(b.half[FAULT_AB].count.held, 2);
    now += 1000;
    rounds();
    expect(FAULT_AB, 60, (uint32_t[]){1, 2}, 2);
    tear_down();
}
END_TEST

START_TEST(injected_frames_go_where_they_are_meant_to)
{
    uint8_t frame[60];
    set_up("", 4);
    rounds();
    fill(frame, sizeof(frame), 9);
    ck_assert(bump_inject(&b, FAULT_BA, frame, sizeof(frame), now));
    ck_assert(bump_inject(&b, FAULT_AB, frame, sizeof(frame), now + 500));
    rounds();
    expect(FAULT_BA, 60, (uint32_t[]){9}, 1);
    expect(FAULT_AB, 60, NULL, 0);
    now += 500;
    rounds();
    expect(FAULT_AB, 60, (uint32_t[]){9}, 1);
    ck_assert_uint_eq(b.half[FAULT_AB].count.injected, 1);
    tear_down();
}
END_TEST

START_TEST(a_port_that_cannot_be_opened_leaves_nothing_open)
{
    char err[256] = "";
    ck_assert_int_lt(bump_open(&b, "mem:left", "nonsense:x", 0, 4, err, sizeof(err)), 0);
    ck_assert_ptr_nonnull(strstr(err, "nonsense"));
    ck_assert_ptr_null(mem_link_get("left"));
    ck_assert_int_lt(bump_open(&b, "mem:left,frame=1514", "mem:right", 4200, 4, err, sizeof(err)),
                     0);
    ck_assert_ptr_nonnull(strstr(err, "4200"));
    ck_assert_ptr_null(mem_link_get("right"));
}
END_TEST

UNIT_MAIN("bump", all_frames_pass_both_ways_in_order_and_unchanged,
          a_slow_port_holds_the_fast_one_back, without_a_link_frames_are_counted_not_kept,
          a_frame_the_other_port_cannot_send_is_counted, verdicts_are_executed_in_order,
          a_full_queue_lets_frames_pass_and_says_so, injected_frames_go_where_they_are_meant_to,
          a_port_that_cannot_be_opened_leaves_nothing_open)
