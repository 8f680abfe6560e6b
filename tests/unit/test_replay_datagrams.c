/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `urnic replay` of datagrams from one host to another, in either role.
 */
#include <string.h>

#include "replay.h"
#include "unit.h"

#define US  1000ull
#define MAD 256u

struct tally {
    unsigned n;
    struct replay_difference first;
};

static void on_difference(void *ctx, const struct replay_difference *d)
{
    struct tally *t = ctx;
    if (!t->n++)
        t->first = *d;
}

static void add(struct replay *r, uint64_t number, uint32_t qpn, uint16_t pkey, uint32_t qkey)
{
    uint8_t frame[512];
    struct wire_pkt p = {
        .dmac = {2, 0, 0, 0, 0, 2},
        .smac = {2, 0, 0, 0, 0, 1},
        .ip_version = 4,
        .ttl = 64,
        .ip_id = (uint16_t)number,
        .ip_flags = 2,
        .sip = wire_addr_v4(0x0A000001),
        .dip = wire_addr_v4(0x0A000002),
        .sport = 0xC123,
        .opcode = WIRE_OPCODE(WIRE_UD, WIRE_SEND_ONLY),
        .pkey = pkey,
        .dqpn = qpn,
        .sqpn = qpn,
        .qkey = qkey,
        .psn = (uint32_t)number,
        .payload_len = MAD,
    };
    size_t at = wire_build(frame, sizeof(frame), &p), len = wire_frame_len(&p);
    ck_assert_uint_gt(at, 0);
    memset(frame + at, (int)number, MAD);
    wire_icrc_seal(frame, len, p.ip_off, p.bth_off);
    struct lint_frame f = {.number = number,
                           .ns = number * US,
                           .data = frame,
                           .len = (uint32_t)len,
                           .wire_len = (uint32_t)len};
    ck_assert_int_eq(replay_add(r, &f), 0);
}

/* KEY-04: hosts that share several partitions use several P_Keys on queue pair 1; any other queue
 * pair has one. */
START_TEST(several_partitions)
{
    static const uint16_t pkeys[] = {0xFFFF, 0x8012, 0x8013, 0xFFFF, 0x8012, 0x8014};
    for (int gsi = 0; gsi < 2; gsi++) {
        struct replay *r = replay_new(0);
        struct replay_totals totals;
        struct tally t = {0};
        for (unsigned i = 0; i < sizeof(pkeys) / sizeof(*pkeys); i++)
            add(r, i + 1, gsi ? WIRE_QPN_GSI : 0x22, pkeys[i], gsi ? WIRE_QKEY_GSI : 0x1234);
        ck_assert_int_eq(replay_run(r, REPLAY_BOTH, on_difference, NULL, &t), 0);
        replay_totals(r, &totals);
        replay_free(r);
        ck_assert_uint_eq(totals.compared, 12);
        ck_assert_msg(gsi ? !t.n : t.n == 8, "%u found: %s at packet %llu", t.n, t.first.rule,
                      (unsigned long long)t.first.number);
    }
}
END_TEST

/* KEY-03: a limited member of the partition talks to a full one. */
START_TEST(limited_member)
{
    for (int gsi = 0; gsi < 2; gsi++) {
        struct replay *r = replay_new(0);
        struct replay_totals totals;
        struct tally t = {0};
        for (unsigned i = 0; i < 3; i++)
            add(r, i + 1, gsi ? WIRE_QPN_GSI : 0x22, 0x7FFF, gsi ? WIRE_QKEY_GSI : 0x1234);
        ck_assert_int_eq(replay_run(r, REPLAY_BOTH, on_difference, NULL, &t), 0);
        replay_totals(r, &totals);
        replay_free(r);
        ck_assert_uint_eq(totals.compared, 6);
        ck_assert_msg(!t.n, "%u found: %s at packet %llu", t.n, t.first.rule,
                      (unsigned long long)t.first.number);
    }
}
END_TEST

/* KEY-08: a sender has one Q_Key of its own, which replaces any controlled one; the others are
 * receivers'. */
START_TEST(controlled_qkeys)
{
    static const struct {
        uint32_t qkey[4];
        unsigned differ; /* packet; 0 = none */
    } rows[] = {
        {{0x1234, 0x1234, 0x80005678, 0x1234}, 0},
        {{0x80005678, 0x1234, 0x4321, 0x80005678}, 0},
        {{0x80005678, 0x80005678, 0x80005679, 0x1234}, 3},
    };
    for (unsigned k = 0; k < sizeof(rows) / sizeof(*rows); k++) {
        struct replay *r = replay_new(0);
        struct replay_totals totals;
        struct tally t = {0};
        for (unsigned i = 0; i < 4; i++)
            add(r, i + 1, 0x22, 0xFFFF, rows[k].qkey[i]);
        ck_assert_int_eq(replay_run(r, REPLAY_BOTH, on_difference, NULL, &t), 0);
        replay_totals(r, &totals);
        replay_free(r);
        ck_assert_uint_eq(totals.compared, 8);
        ck_assert_uint_eq(t.n, rows[k].differ != 0);
        if (t.n) {
            ck_assert_uint_eq(t.first.number, rows[k].differ);
            ck_assert_str_eq(t.first.rule, "KEY-08");
        }
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("replay datagrams");
    TCase *c = tcase_create("replay datagrams");
    tcase_add_test(c, several_partitions);
    tcase_add_test(c, limited_member);
    tcase_add_test(c, controlled_qkeys);
    suite_add_tcase(s, c);
    return unit_run(s);
}
