/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `urnic replay` as responder, with captures that show more than the order of their packets: they
 * were made on the responder's machine, or the requester numbers its packets.
 */
#include "replay_rig.h"
#include "unit.h"

static const struct row arrivals[] = {
    {"what was missing came just before the NAK was made, which names what is missing now",
     {WRITE(10), ACK(10), WRITE(12), WRITE(11), NAK(12), WRITE(12), ACK(12), END}},
    {"overtaken after the capture (ingress redirection), and the one that came first discarded",
     {WRITE(10), ACK(10), WRITE(11), WRITE(12), NAK(11), ACK(11), WRITE(11), WRITE(12), ACK(11),
      ACK(12), END}},
    {"a NAK that is recorded before the packet that shows the gap",
     {WRITE(10), ACK(10), NAK(11), WRITE(12), AFTER(30, WRITE, 11), WRITE(12), ACK(12), END}},
    {"lost after the capture",
     {WRITE(10), ACK(10), WRITE(11), WRITE(12), NAK(11), WRITE(11), WRITE(12), ACK(12), END}},
    {"ACK-07 a NAK of what nothing has overtaken",
     {WRITE(10), ACK(10), WRITE(11), NAK(11), WRITE(12), ACK(12), END}},
    {"RNR-02 in a burst: what came early was refused since",
     {SEND(10), SEND(11), SEND(12), SEND(13), ACK(10), RNR(11), NAK(11), AGAIN(11), SEND(12),
      SEND(13), RNR(11), NAK(11), AGAIN(11), SEND(12), SEND(13), ACK(13), END},
     .n = 2},
    {"RNR-02 again and again is likelier than that and RNR-01, too",
     {SEND(10),
      AFTER(2, WRITE, 11),
      NAK(10),
      AFTER(2, SEND, 10),
      WRITE(11),
      RNR(10),
      NAK(10),
      AFTER(2, SEND, 12),
      SEND(13),
      AFTER(2568, SEND, 14),
      RNR(13),
      NAK(13),
      AFTER(1285, SEND, 15),
      RNR(14),
      NAK(14),
      AFTER(2, SEND, 16),
      SEND(17),
      AFTER(24383, NAK, 17),
      AFTER(1281, SEND, 17),
      RNR(17),
      AFTER(2, SEND, 18),
      NAK(17),
      AFTER(1281, SEND, 17),
      AFTER(1283, RNR, 17),
      AFTER(2, NAK, 17),
      AFTER(1281, SEND, 17),
      RNR(17),
      AFTER(2, SEND, 18),
      NAK(17),
      AFTER(2, SEND, 19),
      SEND(17),
      SEND(18),
      RNR(18),
      AFTER(2, SEND, 21),
      NAK(18),
      AFTER(1281, SEND, 18),
      ACK(18),
      AFTER(2, SEND, 19),
      RNR(19),
      NAK(19),
      AFTER(1285, SEND, 20),
      SEND(21),
      RNR(21),
      AFTER(2, SEND, 23),
      NAK(21),
      AFTER(1281, SEND, 21),
      AFTER(2, NAK, 21),
      AFTER(1281, SEND, 21),
      RNR(21),
      AFTER(2, NAK, 21),
      AFTER(1281, SEND, 21),
      RNR(21),
      AFTER(2, NAK, 21),
      AFTER(1281, SEND, 21),
      RNR(21),
      AFTER(2, SEND, 22),
      NAK(21),
      AFTER(1283, SEND, 22),
      AFTER(1283, RNR, 22),
      NAK(22),
      AFTER(1283, SEND, 22),
      RNR(22),
      AFTER(2, NAK, 22),
      AFTER(1281, SEND, 22),
      RNR(22),
      AFTER(1283, SEND, 22),
      AFTER(11078, NAK, 22),
      AFTER(1283, SEND, 23),
      RNR(23),
      AFTER(2, SEND, 26),
      AFTER(1283, SEND, 24),
      NAK(23),
      AFTER(1281, SEND, 23),
      ACK(23),
      AFTER(2, SEND, 24),
      RNR(24),
      NAK(24),
      END},
     .n = 19},
    {"ACK-07 a NAK of what hasn't been sent",
     {WRITE(10), ACK(10), NAK(11), WRITE(11), ACK(11), END}},
};

START_TEST(at_the_responder)
{
    for (enum ids kind = 0; kind < KINDS; kind++)
        for (unsigned ports = 1; ports <= 2; ports++)
            check_row(&arrivals[_i], kind, false, ports);
}
END_TEST

/* ACK-07: the NAK of the last packet seen, which is sent again with others after it. If the
 * requester numbers its packets, the numbers show whether one is missing between. */
START_TEST(numbers_tell_what_is_missing)
{
    for (int guilty = 0; guilty < 2; guilty++) {
        struct replay *r = replay_new(0);
        struct step again = SEND(11), later = SEND(12);
        uint64_t n = 0, ns = 0;
        again.copy = later.copy = (uint8_t)guilty;
        add_step(r, (struct step)SEND(10), &n, ns += US);
        add_step(r, (struct step)ACK(10), &n, ns += US);
        add_step(r, (struct step)SEND(11), &n, ns += US);
        add_step(r, (struct step)NAK(11), &n, ns += 2 * US);
        add_step(r, again, &n, ns += US);
        add_step(r, later, &n, ns += US);
        add_step(r, (struct step)ACK(12), &n, ns + 2 * US);
        expect_differences(r, REPLAY_RESPONDER, "ACK-07", (unsigned)guilty);
    }
}
END_TEST

/* A step whose packet has this number. */
struct numbered {
    struct step step;
    uint16_t ip_id; /* 0: of an answer, which has any */
};

/* ACK-07: likewise, but the packet that the NAK asks for comes late, after the capture point, and
 * is answered. Only missing numbers can then excuse the NAK; `guilty` has them all. */
START_TEST(numbers_tell_that_it_was_late)
{
    static const struct {
        struct numbered innocent[8], guilty[8];
    } late[] = {
        {{{SEND(15), 105}, {NAK(15)}, {ACK(15)}, {SEND(15), 107}, {SEND(16), 108}, {ACK(16)}},
         {{SEND(15), 105}, {NAK(15)}, {ACK(15)}, {SEND(15), 106}, {SEND(16), 107}, {ACK(16)}}},
        {{{SEND(15), 105}, {NAK(15)}, {ACK(15)}, {SEND(16), 108}, {ACK(16)}},
         {{SEND(15), 105}, {NAK(15)}, {ACK(15)}, {SEND(16), 106}, {ACK(16)}}},
    };
    for (unsigned k = 0; k < sizeof(late) / sizeof(*late); k++)
        for (unsigned guilty = 0; guilty < 2; guilty++) {
            const struct numbered *row = guilty ? late[k].guilty : late[k].innocent;
            struct replay *r = replay_new(0);
            uint64_t n = 0, ns = 0;
            for (uint32_t i = 0; i < 5; i++) {
                struct step before = SEND(10 + i);
                before.copy = (uint8_t)i;
                add_step(r, before, &n, ns += US);
                add_step(r, (struct step)ACK(10 + i), &n, ns += US);
            }
            for (unsigned i = 0; i < 8 && row[i].step.psn; i++) {
                struct step s = row[i].step;
                s.copy = row[i].ip_id ? (uint8_t)(100 + n - row[i].ip_id) : 0;
                add_step(r, s, &n, ns += US);
            }
            expect_differences(r, REPLAY_RESPONDER, "ACK-07", guilty);
        }
}
END_TEST

/* ACK-07: at the responder's port the packet that shows the gap is recorded after the NAK. Its time
 * says whether it came before. */
START_TEST(times_tell_what_came_first)
{
    for (int guilty = 0; guilty < 2; guilty++) {
        const struct {
            struct step step;
            uint64_t us;
        } seen[] = {{SEND(10), 1},  {ACK(10), 2},   {SEND(11), 10}, {NAK(11), 15},
                    {SEND(12), 12}, {SEND(11), 30}, {SEND(12), 31}, {ACK(12), 33}};
        struct replay *r = replay_new(0);
        for (unsigned i = 0; i < sizeof(seen) / sizeof(*seen); i++) {
            uint8_t frame[2 * MTU];
            uint32_t len = (uint32_t)make(NULL, &seen[i].step, IDS_COUNT, i, frame, sizeof(frame));
            struct lint_frame f = {.number = i + 1,
                                   .ns = seen[i].us * US,
                                   .data = frame,
                                   .len = len,
                                   .wire_len = len,
                                   .sent = is_answer(&seen[i].step)};
            f.ns += guilty && i == 4 ? 4 * US : 0;
            ck_assert_int_eq(replay_add(r, &f), 0);
        }
        expect_differences(r, REPLAY_RESPONDER, "ACK-07", (unsigned)guilty);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("replay arrivals");
    TCase *c = tcase_create("replay arrivals");
    tcase_add_loop_test(c, at_the_responder, 0, sizeof(arrivals) / sizeof(*arrivals));
    tcase_add_test(c, numbers_tell_what_is_missing);
    tcase_add_test(c, numbers_tell_that_it_was_late);
    tcase_add_test(c, times_tell_what_came_first);
    suite_add_tcase(s, c);
    return unit_run(s);
}
