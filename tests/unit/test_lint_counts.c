/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Lint's counts of each direction, also if the capture has no other one.
 */
#include <malloc.h>
#include <string.h>

#include "lint_rig.h"
#include "unit.h"

#define FATAL_NAK 0x62
#define RNR_NAK   (0x20 | 1)

/* One of each answer, and ACKs. */
static const struct step all_answers[] = {
    SEND(100, 64),
    ACK(100, 1),
    {.opcode = RC(READ_REQUEST), .psn = 101, .dma_len = 2500, .va = 0x2000},
    RESP(READ_RESP_FIRST, 101, 1024, 2),
    RESP(READ_RESP_MIDDLE, 102, 1024, 0),
    RESP(READ_RESP_LAST, 103, 452, 2),
    {.opcode = RC(FETCH_ADD), .psn = 104, .va = 0x3000},
    RESP(ATOMIC_ACK, 104, 0, 3),
    SEND(105, 64),
    NAK(105, RNR_NAK, 3),
    {.opcode = RC(SEND_ONLY), .psn = 105, .len = 64, .ackreq = true, .after = 1000},
    ACK(105, 4),
    {.opcode = RC(SEND_ONLY), .psn = 106, .len = 64, .ackreq = true, .gone = true},
    SEND(107, 64),
    NAK(106, 0x60, 4),
    SEND(106, 64),
    SEND(107, 64),
    ACK(107, 6),
    {.opcode = RC(WRITE_ONLY), .psn = 108, .len = 13, .dma_len = 13, .ackreq = true, .va = 0x9000},
    NAK(108, FATAL_NAK, 6),
    END};

/* Track A's packets, B's packets, or both; info[0] = A's direction. */
static void track(const struct step *steps, bool a, bool b, struct lint_flow_info info[2])
{
    static struct run run;
    struct lint *l = lint_new(NULL, NULL, 0);
    struct lint_flow_info i;
    memset(info, 0, 2 * sizeof(*info));
    build(&run, &(struct row){.name = "", .steps = steps}, NET_COUNT);
    for (int k = 0; k < run.n; k++) {
        bool from_b = run.packet[k].p.dqpn == A_QPN;
        struct lint_frame f = {.number = (uint64_t)k + 1,
                               .ns = run.packet[k].ns,
                               .data = run.packet[k].f,
                               .len = (uint32_t)run.packet[k].len,
                               .wire_len = (uint32_t)run.packet[k].len};
        if (from_b ? b : a)
            lint_packet(l, &f, NULL);
    }
    lint_end(l);
    for (uint32_t id = 0; lint_flow_info(l, id, &i); id++)
        info[i.dqpn == A_QPN] = i;
    lint_free(l);
}

START_TEST(answers)
{
    struct lint_flow_info info[2];
    bool with_requests = _i;
    track(all_answers, with_requests, true, info);
    const struct lint_flow_info *b = &info[1];
    ck_assert_uint_eq(b->acks, 3);
    ck_assert_uint_eq(b->read_packets, 3);
    ck_assert_uint_eq(b->atomic_acks, 1);
    ck_assert_uint_eq(b->rnrs, 1);
    ck_assert_uint_eq(b->naks_seq, 1);
    ck_assert_uint_eq(b->naks_fatal, 1);
    /* The acknowledged requests are known only in the other direction. */
    ck_assert_uint_eq(b->acks_placed, with_requests ? 3 : 0);
    ck_assert_uint_eq(b->acked_psns != 0, with_requests);
}
END_TEST

/* FLUSH and ATOMIC WRITE are operations, too (IBTA 1.5). */
START_TEST(operations)
{
    static const struct step steps[] = {
        {.opcode = RC(FLUSH), .psn = 100, .dma_len = 64},
        RESP(READ_RESP_ONLY, 100, 0, 1),
        {.opcode = RC(FLUSH), .psn = 101, .dma_len = 64},
        RESP(READ_RESP_ONLY, 101, 0, 2),
        {.opcode = RC(ATOMIC_WRITE), .psn = 102, .len = 8, .dma_len = 8},
        RESP(READ_RESP_ONLY, 102, 0, 3),
        END};
    struct lint_flow_info info[2];
    track(steps, true, true, info);
    ck_assert_uint_eq(info[0].flushes, 2);
    ck_assert_uint_eq(info[0].atomic_writes, 1);
    ck_assert_uint_eq(info[0].writes + info[0].reads + info[0].atomics, 0);
}
END_TEST

#if defined(__has_feature)
#if __has_feature(address_sanitizer) && !defined(__SANITIZE_ADDRESS__)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#ifndef __SANITIZE_ADDRESS__ /* it has a malloc of its own, which doesn't tell */
#define MANY_FLOWS 3000u

/* lint's memory of requests has a limit, however many queue pairs have sent far apart PSNs without
 * an ACK. Reserved memory counts here, not only touched memory. */
START_TEST(memory_of_many)
{
    uint8_t frame[128];
    uint64_t number = 0, most = 0;
    struct lint *l = lint_new(NULL, NULL, 0);
    size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
    for (unsigned k = 0; k < 2 * MANY_FLOWS; k++) {
        struct wire_pkt p = {.ttl = 64,
                             .ip_version = 4,
                             .sip = wire_addr_v4(0x0A000001),
                             .dip = wire_addr_v4(0x0A000002),
                             .sport = 0xC123,
                             .opcode = RC(SEND_ONLY),
                             .pkey = WIRE_PKEY_DEFAULT,
                             .dqpn = 0x100 + k / 2,
                             .psn = k % 2 * 8000};
        ck_assert_uint_gt(wire_build(frame, sizeof(frame), &p), 0);
        uint32_t len = (uint32_t)wire_frame_len(&p);
        wire_icrc_seal(frame, len, p.ip_off, p.bth_off);
        number++;
        struct lint_frame f = {
            .number = number, .ns = number, .data = frame, .len = len, .wire_len = len};
        lint_packet(l, &f, NULL);
        size_t now = mallinfo2().uordblks + mallinfo2().hblkhd;
        most = now - before > most ? now - before : most;
    }
    lint_end(l);
    lint_free(l);
    ck_assert_msg(most < 1200ull << 20, "%llu octets", (unsigned long long)most);
}
END_TEST
#endif

int main(void)
{
    Suite *s = suite_create("lint counts");
    TCase *t = tcase_create("lint counts");
    tcase_add_loop_test(t, answers, 0, 2);
    tcase_add_test(t, operations);
#ifndef __SANITIZE_ADDRESS__
    tcase_add_test(t, memory_of_many);
#endif
    suite_add_tcase(s, t);
    return unit_run(s);
}
