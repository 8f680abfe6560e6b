/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `urnic replay` of big captures: the memory for each packet, the limit, the progress reports. And
 * a kept frame is returned unchanged.
 */
#include <errno.h>
#include <malloc.h>
#include <string.h>
#include <time.h>

#include "keep.h"
#include "replay.h"
#include "unit.h"
#include "wire_bytes.h"

#define PACKETS     40000u
#define ACK_EVERY   16u  /* WRITEs, unless a test wants it otherwise */
#define PACKET_COST 170u /* octets that a small packet may take, all in all */
#define FRAME_MAX   512u

static unsigned ack_every = ACK_EVERY;
static bool reads; /* in place of the WRITEs: each has an answer */

/* Packet i of a connection: WRITEs of 8 octets, every 16th acknowledged. */
static size_t make(unsigned i, bool v6, uint8_t *frame)
{
    static const uint8_t a[16] = {0xFD, [15] = 1}, b[16] = {0xFD, [15] = 2};
    bool ack = i % (ack_every + 1) == ack_every;
    uint32_t writes = i / (ack_every + 1) * ack_every + i % (ack_every + 1);
    struct wire_pkt p = {.ttl = 64,
                         .tclass = i % 7 ? 0x6A : 0x6B,
                         .ip_id = (uint16_t)(i * 3),
                         .sport = 0xC001,
                         .opcode = ack ? WIRE_ACKNOWLEDGE : WIRE_WRITE_ONLY,
                         .pkey = WIRE_PKEY_DEFAULT,
                         .migreq = true,
                         .dqpn = ack ? 0x11 : 0x22,
                         .psn = (100 + writes - ack) & WIRE_PSN_MASK,
                         .ackreq = !ack && i % (ack_every + 1) == ack_every - 1,
                         .va = 0x10000 + i % 64 * 8,
                         .rkey = 7,
                         .dma_len = 8,
                         .syndrome = WIRE_SYN_ACK,
                         .msn = writes & 0xFFFFFF,
                         .payload_len = ack ? 0 : 8,
                         .ip_version = v6 ? 6 : 4,
                         .sip = wire_addr_v4(ack ? 0x0A000002 : 0x0A000001),
                         .dip = wire_addr_v4(ack ? 0x0A000001 : 0x0A000002)};
    if (v6) {
        memcpy(p.sip.b, ack ? b : a, 16);
        memcpy(p.dip.b, ack ? a : b, 16);
    }
    if (reads) {
        p.opcode = ack ? WIRE_READ_RESP_ONLY : WIRE_READ_REQUEST;
        p.payload_len = ack ? 8 : 0;
        p.ackreq = false;
    }
    size_t off = wire_build(frame, FRAME_MAX, &p), len = wire_frame_len(&p);
    ck_assert_uint_gt(off, 0);
    memset(frame + off, (int)i, len - off);
    wire_icrc_seal(frame, len, p.ip_off, p.bth_off);
    return len;
}

/* Adds them, until it is refused. */
static int add_all(struct replay *r, unsigned n)
{
    int rc = 0;
    for (unsigned i = 0; i < n && !rc; i++) {
        uint8_t frame[FRAME_MAX];
        uint32_t len = (uint32_t)make(i, false, frame);
        struct lint_frame f = {
            .number = i + 1, .ns = 1000ull * i, .data = frame, .len = len, .wire_len = len};
        rc = replay_add(r, &f);
    }
    return rc;
}

static void on_difference(void *ctx, const struct replay_difference *d)
{
    (void)d;
    ++*(unsigned *)ctx;
}

/* One connection, both roles: frames, packets and the memory of either role. */
START_TEST(small_packets_take_little)
{
    struct replay *r = replay_new(PACKETS * PACKET_COST);
    struct replay_totals t;
    unsigned differences = 0;
    ck_assert_int_eq(add_all(r, PACKETS), 0);
    ck_assert_int_eq(replay_run(r, REPLAY_BOTH, on_difference, NULL, &differences), 0);
    replay_totals(r, &t);
    ck_assert_uint_eq(t.compared, PACKETS);
    ck_assert_uint_eq(differences, 0);
    replay_free(r);
}
END_TEST

/* Refused as they come, or before the first of them is compared. */
START_TEST(more_than_the_limit_is_refused)
{
    static const unsigned cost[] = {20, 60, 120};
    unsigned compared = 0;
    for (unsigned i = 0; i < sizeof(cost) / sizeof(*cost); i++) {
        struct replay *r = replay_new((uint64_t)PACKETS * cost[i]);
        struct replay_totals t;
        int rc = add_all(r, PACKETS);
        ck_assert_int_eq(rc, cost[i] < 100 ? -EFBIG : 0);
        ck_assert_int_eq(replay_run(r, REPLAY_BOTH, on_difference, NULL, &compared), -EFBIG);
        replay_totals(r, &t);
        ck_assert_uint_eq(t.compared, 0);
        replay_free(r);
    }
}
END_TEST

/* At any allocation without room: the error names the limit, not the machine. */
START_TEST(the_limit_is_the_reason)
{
    const unsigned n = 6000;
    unsigned refused = 0, done = 0;
    ack_every = 1; /* our engine's answers have to be remembered, too */
    for (unsigned cost = 120; cost < 200; cost += 2) {
        struct replay *r = replay_new((uint64_t)n * cost);
        unsigned differences = 0;
        int rc = add_all(r, n);
        if (!rc)
            rc = replay_run(r, REPLAY_BOTH, on_difference, NULL, &differences);
        ck_assert_msg(rc == 0 || rc == -EFBIG, "%u octets a packet: %s", cost, strerror(-rc));
        refused += rc != 0;
        done += rc == 0;
        replay_free(r);
    }
    ack_every = ACK_EVERY;
    ck_assert_uint_gt(refused, 0);
    ck_assert_uint_gt(done, 0);
}
END_TEST

enum answers { IN_TURN, ONE, ALL_LAST };

/* Which packet is the i-th? */
static unsigned packet_at(unsigned i, unsigned n, enum answers how)
{
    return how == IN_TURN ? i : how == ALL_LAST ? (i < n ? 2 * i : 2 * (i - n) + 1) : i - (i > 1);
}

/* CPU seconds to replay `n` requests, whose answers come in turn, or all after the last of them; or
 * only the first has one. */
static double cpu_of(unsigned n, enum answers how)
{
    struct timespec a, b;
    unsigned differences = 0;
    struct replay *r = replay_new(0);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
    for (unsigned i = 0; i < (how == ONE ? n + 1 : 2 * n); i++) {
        uint8_t frame[FRAME_MAX];
        ack_every = how != ONE || i == 1 ? 1 : 2 * n;
        uint32_t len = (uint32_t)make(packet_at(i, n, how), false, frame);
        struct lint_frame f = {
            .number = i + 1, .ns = 1000ull * i, .data = frame, .len = len, .wire_len = len};
        ck_assert_int_eq(replay_add(r, &f), 0);
    }
    ck_assert_int_eq(replay_run(r, REPLAY_BOTH, on_difference, NULL, &differences), 0);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
    replay_free(r);
    ack_every = ACK_EVERY;
    ck_assert_uint_eq(differences, 0);
    return (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9;
}

/* Other work on the machine makes a run longer, never shorter: the shortest of some counts. */
static void costs_no_more(unsigned n, enum answers how)
{
    double near = 1e9, far = 1e9;
    for (unsigned tries = 0; tries < 5; tries++) {
        double a = cpu_of(n, IN_TURN), b = cpu_of(n, how);
        near = a < near ? a : near;
        far = b < far ? b : far;
        if (far < 3 * near)
            return;
    }
    ck_abort_msg("%.2f s with answers in turn, %.2f s without, or with all of them at the end",
                 near, far);
}

/* Each request searches for its answer. After a responder fell silent there is none up to the end;
 * if a capture has one direction after the other, the answer is far away. */
START_TEST(answers_that_are_far_cost_no_more)
{
    costs_no_more(30000, ONE);
    costs_no_more(30000, ALL_LAST);
}
END_TEST

/* Memory has the contents of the answers. */
START_TEST(responses_that_are_far_cost_no_more)
{
    reads = true;
    costs_no_more(60000, ALL_LAST);
    reads = false;
}
END_TEST

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#ifndef __SANITIZE_ADDRESS__ /* it has a malloc of its own, which doesn't tell */
/* The process's memory from malloc. */
static size_t heap(void)
{
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

/* The limit counts the memory actually held. */
START_TEST(the_limit_counts_what_is_held)
{
    const size_t limit = 2u << 20;
    struct replay *r = replay_new(limit);
    ck_assert_int_eq(add_all(r, 2 * ACK_EVERY), 0); /* the flows of lint, too, are there now */
    size_t before = heap();
    struct replay *s = replay_new(limit);
    ck_assert_int_eq(add_all(s, 2 * ACK_EVERY), 0);
    size_t empty = heap() - before;
    ck_assert_int_eq(add_all(s, PACKETS), -EFBIG);
    size_t held = heap() - before - empty;
    ck_assert_uint_le(held, limit);
    ck_assert_uint_gt(held, limit - (600u << 10)); /* a piece was there already, one isn't full */
    replay_free(s);
    replay_free(r);
}
END_TEST
#endif

/* ---- progress ---- */

struct progress {
    uint64_t done, total;
    unsigned calls, stop_at;
};

static bool on_progress(void *ctx, uint64_t done, uint64_t total)
{
    struct progress *p = ctx;
    ck_assert_uint_ge(done, p->done);
    ck_assert_uint_le(done, total);
    p->done = done;
    p->total = total;
    return ++p->calls != p->stop_at;
}

START_TEST(it_says_how_far_it_is)
{
    struct replay *r = replay_new(0);
    struct progress p = {0};
    unsigned differences = 0;
    ck_assert_int_eq(add_all(r, PACKETS), 0);
    replay_watch(r, on_progress, &p);
    ck_assert_int_eq(replay_run(r, REPLAY_BOTH, on_difference, NULL, &differences), 0);
    replay_free(r);
    ck_assert_uint_gt(p.calls, 50);
    ck_assert_uint_eq(p.done, p.total);
    ck_assert_uint_ge(p.total, 4 * PACKETS); /* either direction, in both roles */
}
END_TEST

START_TEST(it_can_be_stopped)
{
    struct replay *r = replay_new(0);
    struct progress p = {.stop_at = 2};
    unsigned differences = 0;
    ck_assert_int_eq(add_all(r, PACKETS), 0);
    replay_watch(r, on_progress, &p);
    ck_assert_int_eq(replay_run(r, REPLAY_BOTH, on_difference, NULL, &differences), -EINTR);
    ck_assert_uint_eq(p.calls, 2);
    replay_free(r);
}
END_TEST

/* ---- frames ---- */

START_TEST(a_frame_comes_out_as_it_went_in)
{
    struct held held = {.max = 1 << 24};
    struct keep k = {.held = &held};
    uint8_t in[2 * ACK_EVERY][FRAME_MAX], out[KEPT_FRAME_MAX];
    uint32_t len[2 * ACK_EVERY];
    for (unsigned i = 0; i < 2 * ACK_EVERY; i++) {
        struct kept like = {.number = i + 1, .good = true};
        struct wire_pkt p;
        len[i] = (uint32_t)make(i, _i, in[i]);
        ck_assert_int_eq(wire_parse(in[i], len[i], 0, &p), WIRE_OK);
        /* Every third is cut, every fifth has octets of a short frame after it. */
        struct lint_frame f = {.data = in[i], .len = len[i], .wire_len = len[i]};
        f.len -= i % 3 ? 0 : 6;
        f.len += i % 5 ? 0 : 10;
        f.wire_len = f.len > f.wire_len ? f.len : f.wire_len;
        ck_assert_int_eq(keep_add(&k, 3, &like, &f, &p), 0);
        len[i] = f.len < len[i] ? f.len : len[i];
    }
    unsigned i = 0;
    ck_assert_ptr_null(keep_flow(&k, 2));
    for (const struct kept *at = keep_flow(&k, 3)->first; at; at = at->next, i++) {
        struct wire_pkt p, q;
        ck_assert_uint_eq(kept_frame(at, UINT32_MAX, out), len[i]);
        ck_assert_mem_eq(out, in[i], len[i]);
        wire_parse_cut(in[i], len[i], FRAME_MAX, WIRE_P_NO_ICRC, &p);
        kept_parse(at, &q);
        ck_assert_uint_eq(q.psn, p.psn);
        ck_assert_uint_eq(q.tclass, p.tclass);
        ck_assert_uint_eq(q.va, p.va);
        ck_assert_uint_eq(q.msn, p.msn);
    }
    ck_assert_uint_eq(i, 2 * ACK_EVERY);
    keep_free(&k);
    ck_assert_uint_eq(held.octets, 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("replay memory");
    TCase *c = tcase_create("replay memory");
    tcase_set_timeout(c, 60);
    tcase_add_test(c, small_packets_take_little);
    tcase_add_test(c, more_than_the_limit_is_refused);
    tcase_add_test(c, the_limit_is_the_reason);
    tcase_add_test(c, answers_that_are_far_cost_no_more);
    tcase_add_test(c, responses_that_are_far_cost_no_more);
#ifndef __SANITIZE_ADDRESS__
    tcase_add_test(c, the_limit_counts_what_is_held);
#endif
    tcase_add_test(c, it_says_how_far_it_is);
    tcase_add_test(c, it_can_be_stopped);
    tcase_add_loop_test(c, a_frame_comes_out_as_it_went_in, 0, 2);
    suite_add_tcase(s, c);
    return unit_run(s);
}
