/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `urnic replay` as requester, or in both places: two captures, one of either end, in one file;
 * large windows; features that our engine lacks.
 */
#include <stdlib.h>

#include "replay_rig.h"
#include "unit.h"

#define SIGHTS_MAX 512
#define TRIP       (10 * US)

struct sight {
    uint64_t ns;
    struct step step;
    unsigned id;
    uint32_t interface; /* 0 at A, 1 at B */
};

struct sights {
    struct sight at[SIGHTS_MAX];
    unsigned n, made;
};

/* A packet leaves at `ns`, and comes in at the other end unless it is lost between. */
static void seen(struct sights *s, uint64_t ns, struct step step, bool lost)
{
    bool answer = is_answer(&step);
    ck_assert_uint_le(s->n + 2, SIGHTS_MAX);
    s->at[s->n++] = (struct sight){ns, step, s->made, answer};
    if (!lost)
        s->at[s->n++] = (struct sight){ns + TRIP, step, s->made, !answer};
    s->made++;
}

/* A SEND that finds no receive at first, and seven WRITEs: the second is lost, NAKed and sent again
 * with the later ones. `again`: it is NAKed a second time, which is wrong (ACK-08), and that NAK is
 * lost. */
static void burst(struct sights *s, uint64_t ns, uint32_t psn, bool again)
{
    seen(s, ns, (struct step)SEND(psn), false);
    seen(s, ns + 11 * US, (struct step)RNR(psn), psn % 16 < 8);
    seen(s, ns + 60 * US, (struct step)SEND(psn), false);
    seen(s, ns + 71 * US, (struct step)ACK(psn), false);
    ns += 100 * US;
    for (uint32_t i = 1; i < 8; i++)
        seen(s, ns + i * US, (struct step)WRITE(psn + i), i == 2);
    seen(s, ns + 12 * US, (struct step)ACK(psn + 1), false);
    seen(s, ns + 14 * US, (struct step)NAK(psn + 2), false);
    if (again)
        seen(s, ns + 15 * US, (struct step)NAK(psn + 2), true);
    for (uint32_t i = 2; i < 8; i++)
        seen(s, ns + (22 + i) * US, (struct step)WRITE(psn + i), false);
    seen(s, ns + 40 * US, (struct step)ACK(psn + 7), false);
}

static int by_time(const void *a, const void *b)
{
    const struct sight *x = a, *y = b;
    if (x->ns != y->ns)
        return x->ns < y->ns ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* The file's information about a packet's place: none, the interface, or, for A's packets, also the
 * direction there. */
enum sight_of { SIGHT_FLAT, SIGHT_PLACE, SIGHT_WAY };

static void check_merged(enum ids kind, int32_t offset_us, bool guilty, enum sight_of what)
{
    static struct sights s;
    struct replay *r = replay_new(0);
    struct tally t = {.rule = "ACK-08"};
    struct replay_totals totals;
    uint8_t frame[2 * MTU];
    s.n = s.made = 0;
    for (unsigned i = 0; i < 6; i++)
        burst(&s, 10000 * US + i * 160 * US, 8 + 8 * i, guilty && i == 3);
    for (unsigned i = 0; i < s.n; i++)
        if (s.at[i].interface)
            s.at[i].ns += (uint64_t)(offset_us * (int64_t)US);
    qsort(s.at, s.n, sizeof(*s.at), by_time);
    for (unsigned i = 0; i < s.n; i++) {
        size_t len = make(NULL, &s.at[i].step, kind, s.at[i].id, frame, sizeof(frame));
        struct lint_frame f = {.number = i + 1,
                               .ns = s.at[i].ns,
                               .data = frame,
                               .len = (uint32_t)len,
                               .wire_len = (uint32_t)len,
                               .interface = what == SIGHT_FLAT ? 0 : s.at[i].interface,
                               .sent = what == SIGHT_WAY && !s.at[i].interface &&
                                       !is_answer(&s.at[i].step)};
        ck_assert_int_eq(replay_add(r, &f), 0);
    }
    ck_assert_int_eq(replay_run(r, REPLAY_BOTH, on_difference, NULL, &t), 0);
    replay_totals(r, &totals);
    replay_free(r);
    ck_assert_uint_gt(totals.compared, 0);
    ck_assert_msg(guilty ? t.n == 1 && !t.others : !t.n,
                  "kind %d, clocks %d us apart: %u found; %s at packet %llu", kind, offset_us, t.n,
                  t.n ? t.first.rule : "", (unsigned long long)t.first.number);
}

/* ACK-07, ACK-08, RD-10: losses between the ends, and different clocks, blame no device; and the
 * responder's fault is found though only its own end shows it. */
START_TEST(at_both_ends)
{
    static const int32_t offsets[] = {0, 3, 7, 12, 30, 100, 1000};
    for (enum ids kind = 0; kind < KINDS; kind++)
        for (unsigned i = 0; i < sizeof(offsets) / sizeof(*offsets); i++)
            for (int guilty = 0; guilty <= (kind == IDS_COUNT); guilty++) { /* else: a copy */
                for (enum sight_of what = SIGHT_PLACE; what <= SIGHT_WAY; what++) {
                    check_merged(kind, offsets[i], guilty, what);
                    check_merged(kind, -offsets[i], guilty, what);
                }
            }
}
END_TEST

START_TEST(at_both_ends_in_one)
{
    static const int32_t offsets[] = {0, 3, 7, 12};
    for (enum ids kind = 0; kind < KINDS; kind++)
        for (unsigned i = 0; i < sizeof(offsets) / sizeof(*offsets); i++) {
            check_merged(kind, offsets[i], false, SIGHT_FLAT);
            check_merged(kind, -offsets[i], false, SIGHT_FLAT);
        }
}
END_TEST

/* ---- one capture ---- */

#define UNDER_WAY 1024u

/* ACK-06: a packet that was sent before a NAK arrived, and recorded after it, is no refusal to
 * retransmit. A requester that never retransmits is still found. */
START_TEST(a_large_window)
{
    for (int guilty = 0; guilty < 2; guilty++) {
        struct replay *r = replay_new(0);
        uint64_t n = 0, ns = 0;
        uint32_t on_its_way = guilty ? 5 * UNDER_WAY : UNDER_WAY;
        add_step(r, (struct step)WRITE(10), &n, ns += US);
        add_step(r, (struct step)ACK(10), &n, ns += US);
        add_step(r, (struct step)WRITE(12), &n, ns += US);
        add_step(r, (struct step)NAK(11), &n, ns += US);
        for (uint32_t i = 0; i < on_its_way; i++)
            add_step(r, (struct step)WRITE(13 + i), &n, ns += US);
        for (uint32_t i = 0; i < on_its_way + 2 && !guilty; i++)
            add_step(r, (struct step)WRITE(11 + i), &n, ns += US);
        expect_differences(r, REPLAY_REQUESTER, "ACK-06", (unsigned)guilty);
    }
}
END_TEST

/* OPC-07: FLUSH and ATOMIC WRITE are optional, and right if the responder has them. Faults before
 * them are found nevertheless, at both ends. */
START_TEST(options_are_passed_over)
{
    static const struct step good[] = {SEND(10),
                                       ACK(10),
                                       {.opcode = WIRE_ATOMIC_WRITE, .psn = 11},
                                       READS(ONLY, 11),
                                       WRITE(12),
                                       {.opcode = WIRE_FLUSH, .psn = 13},
                                       ACK(12),
                                       READS(ONLY, 13),
                                       SEND(14),
                                       ACK(14),
                                       END};
    static const struct step guilty[] = {
        SEND(10),        ACK(10), ADD(11), ACK(11), SEND(12), {.opcode = WIRE_FLUSH, .psn = 13},
        READS(ONLY, 13), END};
    const struct step *const all[] = {good, guilty};
    for (unsigned i = 0; i < 2; i++) {
        struct replay *r = replay_new(0);
        uint64_t n = 0, ns = 0;
        for (const struct step *s = all[i]; s->opcode != 0xFF; s++)
            add_step(r, *s, &n, ns += US);
        ck_assert_uint_gt(expect_differences(r, REPLAY_BOTH, "ACK-05", i), 2);
    }
}
END_TEST

/* RD-12: if the capture has requests only, and these are READs, a repetition shows the MTU. */
START_TEST(reads_without_responses)
{
    for (int guilty = 0; guilty < 2; guilty++) {
        struct replay *r = replay_new(0);
        struct step wrong = READ(12, MTU);
        uint64_t n = 0, ns = 0;
        wrong.off = guilty ? 8 : 0;
        add_step(r, (struct step)READ(10, 3 * MTU), &n, ns += US);
        add_step(r, (struct step)READ(13, 8), &n, ns += US);
        add_step(r, (struct step)READ(11, 2 * MTU), &n, ns += 500 * US);
        add_step(r, (struct step)READ(13, 8), &n, ns += US);
        add_step(r, wrong, &n, ns + 500 * US);
        ck_assert_uint_gt(expect_differences(r, REPLAY_BOTH, "RD-12", (unsigned)guilty), 2);
    }
}
END_TEST

/* RD-12: two READs of the same memory: the rest of the second one is requested again. */
START_TEST(reads_of_one_place)
{
    struct replay *r = replay_new(0);
    struct step first = READ(10, 9000), second = READ(13, 9000), rest = READ(14, 9000 - 4096);
    uint64_t n = 0, ns = 0;
    first.off = 4 * MTU; /* addresses go by the PSN */
    second.off = MTU;
    rest.off = 4096;
    add_step(r, first, &n, ns += US);
    add_step(r, second, &n, ns += US);
    add_step(r, rest, &n, ns += 500 * US);
    add_step(r, (struct step)READ(16, 8), &n, ns + US);
    ck_assert_uint_gt(expect_differences(r, REPLAY_BOTH, "RD-12", 0), 2);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("replay both");
    TCase *c = tcase_create("replay both");
    tcase_add_test(c, at_both_ends);
    tcase_add_test(c, at_both_ends_in_one);
    tcase_add_test(c, a_large_window);
    tcase_add_test(c, options_are_passed_over);
    tcase_add_test(c, reads_without_responses);
    tcase_add_test(c, reads_of_one_place);
    suite_add_tcase(s, c);
    return unit_run(s);
}
