/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The emulated link on virtual time: arriving frames, their times and order, and the log.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "mem_link.h"
#include "unit.h"

#define LEN  976u /* 1000 octets on the wire */
#define MOST 4096u

static struct io_port *port[4];
static struct mem_link *the_link;
static uint32_t got[MOST]; /* numbers of the frames received, in order */

static void link_open(unsigned ports, const char *keys)
{
    char spec[200];
    for (unsigned i = 0; i < ports; i++) {
        snprintf(spec, sizeof(spec), "mem:test%s", i == 0 ? keys : "");
        ck_assert_int_eq(io_open(spec, NULL, &port[i], NULL, 0), 0);
        ck_assert_uint_eq(mem_link_index(port[i]), i);
    }
    the_link = mem_link_get("test");
    ck_assert_ptr_nonnull(the_link);
}

static void link_close(unsigned ports)
{
    for (unsigned i = 0; i < ports; i++)
        port[i]->ops->close(port[i]);
    mem_link_put(the_link);
    ck_assert_ptr_null(mem_link_get("test"));
}

/* An ECN-capable IPv4 frame with a number in it, from port `from` to port `to` (or broadcast). */
static void fill(uint8_t *f, uint32_t len, unsigned from, unsigned to, uint32_t number)
{
    memset(f, 0, len);
    if (to < 4)
        memcpy(f, port[to]->caps.mac, 6);
    else
        memset(f, 0xFF, 6);
    memcpy(f + 6, port[from]->caps.mac, 6);
    f[12] = 0x08;
    f[14] = 0x45;
    f[15] = 0x02;
    f[24] = 0xBA; /* 0x4502 + 0xBAFD = 0xFFFF */
    f[25] = 0xFD;
    memcpy(f + 40, &number, sizeof(number));
}

static unsigned send_to(unsigned from, unsigned to, uint32_t number, unsigned n, uint32_t len,
                        uint64_t now)
{
    struct io_slot slots[IO_BURST_MAX];
    unsigned sent = 0;
    while (sent < n) {
        unsigned want = n - sent < IO_BURST_MAX ? n - sent : IO_BURST_MAX;
        unsigned k = port[from]->ops->tx_reserve(port[from], slots, want, now);
        for (unsigned i = 0; i < k; i++) {
            fill(slots[i].data, len, from, to, number + sent + i);
            slots[i].len = len;
        }
        port[from]->ops->tx_commit(port[from], slots, k, now);
        sent += k;
        if (k < want)
            break;
    }
    return sent;
}

static unsigned send_n(uint32_t number, unsigned n, uint64_t now)
{
    return send_to(0, 1, number, n, LEN, now);
}

/* Everything that port `at` can take at `now`; their numbers are in got[]. */
static unsigned receive(unsigned at, uint64_t now)
{
    struct io_frame frames[IO_BURST_MAX];
    unsigned total = 0, n;
    while ((n = port[at]->ops->rx_peek(port[at], frames, IO_BURST_MAX, now)) > 0) {
        for (unsigned i = 0; i < n && total < MOST; i++)
            memcpy(&got[total++], frames[i].data + 40, 4);
        port[at]->ops->rx_release(port[at], n);
    }
    return total;
}

static uint64_t deadline(unsigned at)
{
    return port[at]->ops->deadline(port[at]);
}

static struct mem_link_stats stats(unsigned dir)
{
    struct mem_link_stats s;
    mem_link_stats(the_link, dir, 0, &s);
    return s;
}

START_TEST(delay_is_exact)
{
    link_open(2, ",delay=5us");
    ck_assert_uint_eq(deadline(1), UINT64_MAX);
    ck_assert_uint_eq(send_n(0, 2, 1000), 2);
    ck_assert_uint_eq(deadline(1), 6000);
    ck_assert_uint_eq(deadline(0), UINT64_MAX);
    ck_assert_uint_eq(receive(1, 5999), 0);
    ck_assert_uint_eq(receive(1, 6000), 2);
    ck_assert_uint_eq(deadline(1), UINT64_MAX);
    link_close(2);
}
END_TEST

START_TEST(rate_serializes)
{
    /* 1000 octets at 8 Gbit/s take 1000 ns. */
    link_open(2, ",rate=8G,delay=100");
    ck_assert_uint_eq(port[0]->caps.rate_bps, 8000000000u);
    send_n(0, 3, 0);
    ck_assert_uint_eq(receive(1, 1099), 0);
    for (uint64_t i = 0; i < 3; i++) {
        ck_assert_uint_eq(deadline(1), 1100 + i * 1000);
        ck_assert_uint_eq(receive(1, 1100 + i * 1000), 1);
    }
    send_n(3, 1, 10000); /* an idle line starts at once */
    ck_assert_uint_eq(deadline(1), 11100);
    link_close(2);
}
END_TEST

START_TEST(rate_loses_no_fraction)
{
    /* 84 octets at 3 Gbit/s are 224 ns; at 100G a frame of 60 takes 6.72 ns: 1000 of them 6720. */
    link_open(2, ",rate=100G");
    unsigned n = 0;
    while (n < 500)
        n += send_to(0, 1, n, 500 - n, 60, 0);
    receive(1, 3359);
    ck_assert_uint_eq(deadline(1), 3360);
    link_close(2);
}
END_TEST

START_TEST(port_is_full_without_a_queue)
{
    link_open(2, ",rate=8G");
    unsigned n = send_n(0, 1000, 0);
    ck_assert_uint_ge(n, 65); /* 64 KiB wait, then the burst is over */
    ck_assert_uint_le(n, 130);
    uint64_t room = deadline(0);
    ck_assert_uint_gt(room, 0);
    ck_assert_uint_le(room, n * 1000 - 65000);
    ck_assert_uint_eq(send_n(n, 1, room - 1000), 0);
    ck_assert_uint_ge(send_n(n, 1, room), 1);
    ck_assert_uint_eq(stats(0).lost[MEM_LINK_R_QUEUE], 0);
    link_close(2);
}
END_TEST

START_TEST(queue_drops_its_tail)
{
    struct mem_link_drop drop[16];
    uint64_t next = 0, missed;
    link_open(2, ",rate=8G,queue=10000,log=16");
    ck_assert_uint_eq(send_n(0, 15, 0), 15);
    ck_assert_uint_eq(send_n(15, 1, 1000), 1); /* one has left */
    ck_assert_uint_eq(receive(1, 100000), 11);
    ck_assert_uint_eq(got[9], 9);
    ck_assert_uint_eq(got[10], 15);
    ck_assert_uint_eq(stats(0).lost[MEM_LINK_R_QUEUE], 5);
    ck_assert_uint_eq(stats(0).queue_max, 10000);
    ck_assert_uint_eq(mem_link_drops(the_link, &next, drop, 16, &missed), 5);
    ck_assert_uint_eq(missed, 0);
    for (uint32_t i = 0; i < 5; i++) {
        uint32_t number;
        memcpy(&number, drop[i].head + 40, 4);
        ck_assert_uint_eq(number, 10 + i);
        ck_assert_uint_eq(drop[i].len, LEN);
        ck_assert_uint_eq(drop[i].dir, 0);
        ck_assert_uint_eq(drop[i].time, 0);
        ck_assert_str_eq(mem_link_reason_name(drop[i].reason), "queue");
    }
    ck_assert_uint_eq(mem_link_drops(the_link, &next, drop, 16, &missed), 0);
    link_close(2);
}
END_TEST

static unsigned count_ce(unsigned at, uint64_t now)
{
    struct io_frame f;
    unsigned n = 0;
    while (port[at]->ops->rx_peek(port[at], &f, 1, now)) {
        uint32_t sum = 0;
        for (int i = 14; i < 34; i += 2)
            sum += (uint32_t)(f.data[i] << 8 | f.data[i + 1]);
        while (sum >> 16)
            sum = (sum & 0xFFFF) + (sum >> 16);
        ck_assert_uint_eq(sum, 0xFFFF); /* IPv4's checksum is right, marked or not */
        n += (f.data[15] & 3) == 3;
        port[at]->ops->rx_release(port[at], 1);
    }
    return n;
}

/* CC-02 on a live queue: a step marks exactly the frames that find more than Kmin waiting. */
START_TEST(cc_02_step_marks_the_queue)
{
    link_open(2, ",rate=8G,queue=1M,ecn_kmin=5000,ecn_kmax=5000,ecn_pmax=0");
    send_n(0, 20, 0); /* the 7th finds 6000 octets */
    ck_assert_uint_eq(stats(0).marked, 14);
    ck_assert_uint_eq(count_ce(1, 1000000), 14);
    link_close(2);
}
END_TEST

/* CC-02 between Kmin and Kmax: about the expected share. */
START_TEST(cc_02_red_marks_a_share)
{
    link_open(2, ",rate=8G,queue=10M,slots=4096,ecn_kmin=0,ecn_kmax=1000000,ecn_pmax=0.5");
    ck_assert_uint_eq(send_n(0, 1000, 0), 1000); /* queue 0 .. 999,000: 25 % on average */
    uint64_t marked = stats(0).marked;
    ck_assert_uint_gt(marked, 200);
    ck_assert_uint_lt(marked, 300);
    ck_assert_uint_eq(count_ce(1, 10000000), marked);
    link_close(2);
}
END_TEST

START_TEST(loss_is_logged_and_repeatable)
{
    static struct mem_link_drop drop[MOST];
    uint32_t first[MOST];
    unsigned n_first = 0;
    for (int round = 0; round < 2; round++) {
        uint64_t next = 0;
        link_open(2, ",loss=5%,seed=77,slots=4096,log=2000");
        ck_assert_uint_eq(send_n(0, 2000, 0), 2000);
        unsigned n = receive(1, 0);
        size_t lost = mem_link_drops(the_link, &next, drop, MOST, NULL);
        ck_assert_uint_eq(n + lost, 2000);
        ck_assert_uint_gt(lost, 60);
        ck_assert_uint_lt(lost, 140);
        /* The missing frames are the ones in the log. */
        unsigned at = 0;
        for (uint32_t i = 0, k = 0; i < 2000; i++) {
            uint32_t number = UINT32_MAX;
            if (k < lost)
                memcpy(&number, drop[k].head + 40, 4);
            if (number == i)
                k++;
            else
                ck_assert_uint_eq(got[at++], i);
        }
        if (round == 0) {
            memcpy(first, got, sizeof(got));
            n_first = n;
        } else {
            ck_assert_uint_eq(n, n_first);
            ck_assert_mem_eq(first, got, n * sizeof(got[0]));
        }
        link_close(2);
    }
}
END_TEST

START_TEST(log_is_bounded)
{
    struct mem_link_drop drop[32];
    uint64_t next = 0, missed;
    link_open(2, ",loss=1,log=16");
    send_n(0, 40, 0);
    ck_assert_uint_eq(mem_link_drops(the_link, &next, drop, 32, &missed), 16);
    ck_assert_uint_eq(missed, 24);
    ck_assert_uint_eq(next, 40);
    ck_assert_uint_eq(stats(MEM_LINK_ALL).lost[MEM_LINK_R_LOSS], 40);
    link_close(2);

    next = 0;
    link_open(2, ",loss=1"); /* no log was asked for */
    send_n(0, 40, 0);
    ck_assert_uint_eq(mem_link_drops(the_link, &next, drop, 32, &missed), 0);
    ck_assert_uint_eq(missed, 0);
    ck_assert_uint_eq(stats(MEM_LINK_ALL).lost[MEM_LINK_R_LOSS], 40);
    link_close(2);
}
END_TEST

START_TEST(duplicates_follow_the_original)
{
    link_open(2, ",dup=1");
    send_n(0, 3, 0);
    ck_assert_uint_eq(receive(1, 0), 6);
    for (uint32_t i = 0; i < 6; i++)
        ck_assert_uint_eq(got[i], i / 2);
    ck_assert_uint_eq(stats(0).duplicated, 3);
    link_close(2);
}
END_TEST

static void hold_number_2(void *ctx, const uint8_t *frame, uint32_t len, unsigned dir, uint64_t now,
                          struct mem_link_verdict *v)
{
    uint32_t number;
    (void)ctx, (void)len, (void)dir, (void)now;
    memcpy(&number, frame + 40, 4);
    if (number == 2) {
        v->flags = MEM_LINK_REORDER;
        v->reorder_gap = 3;
    }
}

START_TEST(reordered_frame_is_overtaken_by_gap_frames)
{
    static const uint32_t order[] = {0, 1, 3, 4, 5, 2, 6, 7};
    link_open(2, ",reorder_hold=50us");
    mem_link_rule_set(the_link, hold_number_2, NULL);
    send_n(0, 8, 0);
    ck_assert_uint_eq(receive(1, 0), 8);
    ck_assert_mem_eq(got, order, sizeof(order));
    link_close(2);

    /* With a delay, too. */
    link_open(2, ",reorder_hold=50us,delay=1us");
    mem_link_rule_set(the_link, hold_number_2, NULL);
    send_n(0, 8, 0);
    ck_assert_uint_eq(receive(1, 1000), 8);
    ck_assert_mem_eq(got, order, sizeof(order));
    link_close(2);
}
END_TEST

START_TEST(reordered_frame_comes_when_nothing_follows)
{
    link_open(2, ",reorder_hold=50us");
    mem_link_rule_set(the_link, hold_number_2, NULL);
    send_n(0, 4, 0);
    ck_assert_uint_eq(receive(1, 0), 3);
    ck_assert_uint_eq(deadline(1), 50000);
    ck_assert_uint_eq(receive(1, 50000), 1);
    ck_assert_uint_eq(got[0], 2);
    send_n(5, 5, 60000); /* and is forgotten */
    ck_assert_uint_eq(receive(1, 60000), 5);
    ck_assert_uint_eq(got[0], 5);
    link_close(2);
}
END_TEST

START_TEST(reordering_dice_lose_nothing)
{
    static bool seen[2000];
    unsigned late = 0, n = 0;
    link_open(2, ",reorder=10%,reorder_gap=5,rate=8G,queue=10M,slots=4096,delay=3us");
    send_n(0, 2000, 0);
    for (uint64_t t = 0; t < 3000000; t += 777) {
        unsigned k = receive(1, t);
        for (unsigned i = 0; i < k; i++) {
            ck_assert_uint_lt(got[i], 2000);
            ck_assert(!seen[got[i]]);
            seen[got[i]] = true;
            late += got[i] < n;
            n++;
        }
    }
    ck_assert_uint_eq(n, 2000);
    ck_assert_uint_gt(late, 100);
    ck_assert_uint_gt(stats(0).reordered, 150);
    link_close(2);
}
END_TEST

static void any_verdict(void *ctx, const uint8_t *frame, uint32_t len, unsigned dir, uint64_t now,
                        struct mem_link_verdict *v)
{
    (void)frame, (void)len, (void)dir, (void)now;
    *v = *(struct mem_link_verdict *)ctx;
}

START_TEST(rules_decide_frame_by_frame)
{
    struct mem_link_verdict v = {.flags = MEM_LINK_DROP};
    struct io_frame f;
    link_open(2, "");
    mem_link_rule_set(the_link, any_verdict, &v);
    send_n(0, 1, 0);
    ck_assert_uint_eq(receive(1, 0), 0);
    ck_assert_uint_eq(stats(0).lost[MEM_LINK_R_RULE], 1);

    v = (struct mem_link_verdict){.flags = MEM_LINK_DUP};
    send_n(0, 1, 0);
    ck_assert_uint_eq(receive(1, 0), 2);

    v = (struct mem_link_verdict){.delay = 1000};
    send_n(0, 1, 10);
    v = (struct mem_link_verdict){0};
    send_n(1, 1, 10); /* is not delayed by the one before it */
    ck_assert_uint_eq(receive(1, 10), 1);
    ck_assert_uint_eq(got[0], 1);
    ck_assert_uint_eq(receive(1, 1009), 0);
    ck_assert_uint_eq(receive(1, 1010), 1);

    v = (struct mem_link_verdict){
        .flags = MEM_LINK_CORRUPT, .corrupt_off = 700, .corrupt_xor = 0x81};
    send_n(0, 1, 2000);
    ck_assert_uint_eq(port[1]->ops->rx_peek(port[1], &f, 1, 2000), 1);
    ck_assert_uint_eq(f.data[700], 0x81);
    port[1]->ops->rx_release(port[1], 1);
    ck_assert_uint_eq(stats(0).lost[MEM_LINK_R_CORRUPT], 1);

    v = (struct mem_link_verdict){.flags = MEM_LINK_MARK_CE};
    send_n(0, 1, 2000);
    ck_assert_uint_eq(count_ce(1, 2000), 1);
    mem_link_rule_set(the_link, NULL, NULL);
    send_n(0, 1, 2000);
    ck_assert_uint_eq(count_ce(1, 2000), 0);
    link_close(2);
}
END_TEST

START_TEST(directions_may_differ)
{
    struct mem_link_faults f;
    link_open(2, "");
    mem_link_faults_get(the_link, 1, &f);
    f.loss = 1;
    mem_link_faults_set(the_link, 1, &f);
    send_to(0, 1, 0, 10, LEN, 0);
    send_to(1, 0, 0, 10, LEN, 0);
    ck_assert_uint_eq(receive(1, 0), 10);
    ck_assert_uint_eq(receive(0, 0), 0);
    link_close(2);
}
END_TEST

START_TEST(unplugging_loses_what_is_under_way)
{
    struct io_link st;
    link_open(2, ",delay=1us");
    send_n(0, 1, 0);
    send_n(1, 1, 900);
    mem_link_up(the_link, 1, false, 1500);
    port[0]->ops->link(port[0], &st);
    ck_assert(!st.up);
    ck_assert_uint_eq(st.changes, 2);
    ck_assert_uint_eq(send_n(2, 1, 1500), 0); /* no slots */
    mem_link_up(the_link, MEM_LINK_ALL, true, 1600);
    port[0]->ops->link(port[0], &st);
    ck_assert(st.up);
    ck_assert_uint_eq(st.changes, 3);
    send_n(3, 1, 1600);
    ck_assert_uint_eq(receive(1, 5000), 2);
    ck_assert_uint_eq(got[0], 0);
    ck_assert_uint_eq(got[1], 3);
    ck_assert_uint_eq(stats(0).lost[MEM_LINK_R_DOWN], 1);
    link_close(2);
}
END_TEST

/* A port that is alone on its link from the start has a link, and its frames to others are lost; a
 * port that has lost the other end of a wire has no link, as on any port. */
START_TEST(a_lone_port_is_up)
{
    struct io_link st;
    link_open(1, "");
    port[0]->ops->link(port[0], &st);
    ck_assert(st.up);
    ck_assert_uint_eq(send_to(0, 4, 0, 1, LEN, 0), 1);
    ck_assert_uint_eq(stats(0).lost[MEM_LINK_R_DOWN], 1);
    ck_assert_uint_eq(receive(0, 0), 0);
    mem_link_up(the_link, 0, false, 0);
    port[0]->ops->link(port[0], &st);
    ck_assert(!st.up); /* unplugged */
    mem_link_up(the_link, 0, true, 0);

    ck_assert_int_eq(io_open("mem:test", NULL, &port[1], NULL, 0), 0);
    port[0]->ops->link(port[0], &st);
    ck_assert(st.up);
    ck_assert_uint_eq(send_n(1, 1, 0), 1);
    ck_assert_uint_eq(receive(1, 0), 1);
    port[1]->ops->close(port[1]);
    port[0]->ops->link(port[0], &st);
    ck_assert(!st.up);
    port[0]->ops->close(port[0]);

    /* All have left: the next port starts fresh. */
    ck_assert_int_eq(io_open("mem:test", NULL, &port[0], NULL, 0), 0);
    port[0]->ops->link(port[0], &st);
    ck_assert(st.up);
    link_close(1);
}
END_TEST

START_TEST(committed_while_down_is_counted)
{
    struct io_slot slot;
    struct io_stats st;
    link_open(2, "");
    ck_assert_uint_eq(port[0]->ops->tx_reserve(port[0], &slot, 1, 0), 1);
    fill(slot.data, LEN, 0, 1, 0);
    slot.len = LEN;
    mem_link_up(the_link, 0, false, 0);
    port[0]->ops->tx_commit(port[0], &slot, 1, 0);
    port[0]->ops->stats(port[0], &st);
    ck_assert_uint_eq(st.tx_drop, 1);
    ck_assert_uint_eq(st.tx_frames, 0);
    ck_assert_uint_eq(stats(0).lost[MEM_LINK_R_DOWN], 1);
    link_close(2);
}
END_TEST

START_TEST(pfc_pauses_and_resumes)
{
    link_open(2, ",rate=8G,queue=1M,pfc=on,xoff=20000,xon=10000");
    unsigned n = send_n(0, 1000, 0);
    ck_assert_uint_ge(n, 21);
    ck_assert_uint_le(n, 128); /* pauses between bursts */
    ck_assert_uint_eq(stats(0).pauses, 1);
    ck_assert_uint_eq(stats(0).lost[MEM_LINK_R_QUEUE], 0);
    uint64_t resume = deadline(0);
    ck_assert_uint_eq(resume, (n - 10) * 1000 + 1);
    /* The receiver takes every frame at once, so only the queue decides about pauses. */
    receive(1, resume);
    ck_assert_uint_eq(send_n(0, 1, resume - 1001), 0);
    ck_assert_uint_eq(send_n(0, 1, resume), 1);
    ck_assert_uint_eq(stats(0).pauses, 1);
    link_close(2);
}
END_TEST

START_TEST(pfc_counts_frames_that_wait_at_the_receiver)
{
    struct io_frame frames[IO_BURST_MAX];
    link_open(2, ",pfc=on,xoff=20000,xon=10000");
    unsigned n = 0, k;
    while ((k = send_n(n, 4, 0)) > 0)
        n += k;
    ck_assert_uint_eq(n, 24); /* 21 * 976 > 20000, in fours */
    ck_assert_uint_eq(port[1]->ops->rx_peek(port[1], frames, 13, 0), 13);
    ck_assert_uint_eq(send_n(n, 1, 0), 0); /* lent isn't released */
    port[1]->ops->rx_release(port[1], 13);
    ck_assert_uint_eq(send_n(n, 1, 0), 0); /* 11 * 976 > xon */
    ck_assert_uint_eq(port[1]->ops->rx_peek(port[1], frames, 1, 0), 1);
    port[1]->ops->rx_release(port[1], 1);
    ck_assert_uint_eq(send_n(n, 1, 0), 1);
    link_close(2);
}
END_TEST

static bool readable(unsigned at)
{
    struct pollfd p = {.fd = port[at]->caps.rx_fd, .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

START_TEST(sender_is_woken_when_there_is_room)
{
    link_open(2, ",slots=64");
    ck_assert_uint_eq(send_n(0, 100, 0), 64);
    port[0]->ops->rx_arm(port[0], true);
    ck_assert(!readable(0));
    ck_assert_uint_eq(receive(1, 0), 64);
    ck_assert(readable(0));
    ck_assert_uint_eq(send_n(64, 36, 0), 36);
    link_close(2);
}
END_TEST

START_TEST(descriptor_is_quiet_unless_armed)
{
    link_open(2, "");
    send_n(0, 1, 0);
    ck_assert(!readable(1));
    receive(1, 0);
    port[1]->ops->rx_arm(port[1], true);
    send_n(1, 1, 0);
    ck_assert(readable(1));
    port[1]->ops->rx_arm(port[1], false);
    ck_assert(!readable(1));
    link_close(2);
}
END_TEST

START_TEST(switch_learns)
{
    link_open(4, "");
    send_to(0, 1, 100, 1, LEN, 0); /* unknown: to all others */
    for (unsigned i = 1; i < 4; i++)
        ck_assert_uint_eq(receive(i, 0), 1);
    ck_assert_uint_eq(receive(0, 0), 0);
    send_to(1, 0, 200, 5, LEN, 0); /* 0 is known */
    ck_assert_uint_eq(receive(0, 0), 5);
    ck_assert_uint_eq(receive(2, 0) + receive(3, 0), 0);
    send_to(2, 1, 300, 5, LEN, 0); /* and 1 now, too */
    ck_assert_uint_eq(receive(1, 0), 5);
    ck_assert_uint_eq(receive(0, 0) + receive(3, 0), 0);
    send_to(3, 4, 400, 1, LEN, 0); /* broadcast */
    for (unsigned i = 0; i < 3; i++)
        ck_assert_uint_eq(receive(i, 0), 1);
    ck_assert_uint_eq(stats(0).flooded, 1);
    ck_assert_uint_eq(stats(3).flooded, 1);
    send_to(3, 3, 500, 1, LEN, 0); /* the receiver is on the sender's own side */
    for (unsigned i = 0; i < 4; i++)
        ck_assert_uint_eq(receive(i, 0), 0);
    link_close(4);
}
END_TEST

/* A frame for a port that has closed goes to all others, as to an unknown address. */
START_TEST(switch_forgets_who_is_gone)
{
    struct io_port gone;
    link_open(4, "");
    send_to(3, 4, 100, 1, LEN, 0);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_uint_eq(receive(i, 0), 1);
    gone = *port[3];
    port[3]->ops->close(port[3]);
    port[3] = &gone; /* its MAC is all that is used */
    send_to(0, 3, 200, 1, LEN, 0);
    ck_assert_uint_eq(receive(1, 0), 1);
    ck_assert_uint_eq(receive(2, 0), 1);
    link_close(3);
}
END_TEST

/* A port that is closed keeps no buffer, neither of frames that it was lent nor of its own. */
START_TEST(closing_gives_buffers_back)
{
    struct io_slot slots[16];
    struct io_frame frames[16];
    link_open(2, ",slots=64");
    for (unsigned lap = 0; lap < 20; lap++) {
        ck_assert_uint_eq(send_n(0, 16, 0), 16);
        ck_assert_uint_eq(port[1]->ops->rx_peek(port[1], frames, 16, 0), 16);
        ck_assert_uint_eq(port[0]->ops->tx_reserve(port[0], slots, 16, 0), 16);
        for (unsigned i = 0; i < 2; i++) {
            port[i]->ops->close(port[i]);
            ck_assert_int_eq(io_open("mem:test", NULL, &port[i], NULL, 0), 0);
            ck_assert_uint_eq(mem_link_index(port[i]), i);
        }
    }
    ck_assert_uint_eq(send_n(0, 100, 0), 64);
    link_close(2);
}
END_TEST

/* Two senders into one receiver share its rate and its queue. */
START_TEST(switch_queue_is_the_receivers)
{
    link_open(3, ",rate=8G,queue=20000");
    send_to(2, 4, 0, 1, LEN, 0);
    receive(0, 100000);
    receive(1, 100000);
    send_to(0, 2, 0, 15, LEN, 100000);
    send_to(1, 2, 100, 15, LEN, 100000);
    ck_assert_uint_eq(receive(2, 109999), 9);
    ck_assert_uint_eq(receive(2, 200000), 11);
    ck_assert_uint_eq(stats(1).lost[MEM_LINK_R_QUEUE], 10);
    ck_assert_uint_eq(stats(0).lost[MEM_LINK_R_QUEUE], 0);
    link_close(3);
}
END_TEST

START_TEST(buffers_all_come_back)
{
    link_open(2, ",slots=64,loss=0.3,dup=0.3,corrupt=0.3,reorder=0.3,delay=1us");
    for (uint64_t t = 0; t < 3000; t++) {
        send_n((uint32_t)t, 3, t * 500);
        receive(1, t * 500);
    }
    receive(1, UINT64_MAX / 2);
    struct mem_link_faults none = {0};
    mem_link_faults_set(the_link, MEM_LINK_ALL, &none);
    ck_assert_uint_eq(send_n(0, 100, UINT64_MAX / 2), 64);
    struct mem_link_stats s = stats(0);
    ck_assert_uint_eq(s.delivered, s.frames + s.duplicated - s.lost[MEM_LINK_R_LOSS]);
    link_close(2);
}
END_TEST

UNIT_MAIN("mem_link", delay_is_exact, rate_serializes, rate_loses_no_fraction,
          port_is_full_without_a_queue, queue_drops_its_tail, cc_02_step_marks_the_queue,
          cc_02_red_marks_a_share, loss_is_logged_and_repeatable, log_is_bounded,
          duplicates_follow_the_original, reordered_frame_is_overtaken_by_gap_frames,
          reordered_frame_comes_when_nothing_follows, reordering_dice_lose_nothing,
          rules_decide_frame_by_frame, directions_may_differ, unplugging_loses_what_is_under_way,
          a_lone_port_is_up, committed_while_down_is_counted, pfc_pauses_and_resumes,
          pfc_counts_frames_that_wait_at_the_receiver, sender_is_woken_when_there_is_room,
          descriptor_is_quiet_unless_armed, switch_learns, switch_forgets_who_is_gone,
          switch_queue_is_the_receivers, closing_gives_buffers_back, buffers_all_come_back)
