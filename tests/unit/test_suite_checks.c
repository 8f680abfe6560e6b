/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The checks of `urnic wire --suite` on traces made by hand: a device that keeps a rule passes, one
 * that breaks it in one respect fails just there.
 */
#include <string.h>

#include "suite_check.h"
#include "unit.h"

#define ROWS   24u
#define WANTED 6u
#define T14    67.108864 /* ms: the timeout of the connection */

#define MIDDLE WIRE_OPCODE(WIRE_RC, WIRE_WRITE_MIDDLE)
#define ACK    WIRE_OPCODE(WIRE_RC, WIRE_ACKNOWLEDGE)
#define READ   WIRE_OPCODE(WIRE_RC, WIRE_READ_REQUEST)
#define DATA   WIRE_OPCODE(WIRE_RC, WIRE_READ_RESP_MIDDLE)
#define DATA1  WIRE_OPCODE(WIRE_RC, WIRE_READ_RESP_FIRST)

/* A packet of the flow: a request, or a response if its opcode is one. */
struct row {
    double ms;
    uint8_t opcode; /* 0 = the end */
    int32_t rel;
    unsigned fate;
    uint8_t syndrome;
    uint32_t hash;   /* 0 = that of its PSN */
    uint32_t octets; /* READ: number of octets, and the address */
    uint64_t va;
    bool quiet; /* AckReq 0 */
};

/* In a row of the trace: W(when, PSN), lost W, W without AckReq, ACK, NAK ... */
#define W(ms, rel)                                                                                 \
    {                                                                                              \
        ms, MIDDLE, rel, 0, 0, 0, 0, 0                                                             \
    }
#define WX(ms, rel, f)                                                                             \
    {                                                                                              \
        ms, MIDDLE, rel, f, 0, 0, 0, 0                                                             \
    }
#define WQ(ms, rel)                                                                                \
    {                                                                                              \
        ms, MIDDLE, rel, 0, 0, 0, 0, 0, true                                                       \
    }
#define A(ms, rel)                                                                                 \
    {                                                                                              \
        ms, ACK, rel, 0, 0x1F, 0, 0, 0                                                             \
    }
#define AX(ms, rel)                                                                                \
    {                                                                                              \
        ms, ACK, rel, FAULT_DROP, 0x1F, 0, 0, 0                                                    \
    }
#define N(ms, rel)                                                                                 \
    {                                                                                              \
        ms, ACK, rel, 0, WIRE_SYN_NAK_SEQ, 0, 0, 0                                                 \
    }
#define R(ms, rel, n, v)                                                                           \
    {                                                                                              \
        ms, READ, rel, 0, 0, 0, n, v                                                               \
    }
#define D(ms, rel)                                                                                 \
    {                                                                                              \
        ms, DATA, rel, 0, 0x1F, 0, 0, 0                                                            \
    }
#define DX(ms, rel, f)                                                                             \
    {                                                                                              \
        ms, DATA, rel, f, 0x1F, 0, 0, 0                                                            \
    }

struct wanted {
    const char *rule;
    enum suite_verdict verdict;
};

struct scenario {
    const char *what;
    void (*check)(struct suite_run *r);
    enum fault_dir dir;
    unsigned kinds;
    bool client_failed;
    struct row row[ROWS];
    struct wanted wanted[WANTED]; /* among the results; no other one is FAIL */
};

static struct suite_trace trace;
static struct suite_card card;

static void add(const struct suite_conn *c, enum fault_dir dir, const struct row *w)
{
    bool response = wire_opcodes[w->opcode].flags & WIRE_F_RESPONSE;
    enum fault_dir own = response ? !dir : dir;
    trace.pkt[trace.n++] = (struct suite_pkt){
        .at = 1000000000 + (uint64_t)(w->ms * 1e6),
        .waited = 2000,
        .dir = (uint8_t)own,
        .fate = (uint8_t)w->fate,
        .opcode = w->opcode,
        .syndrome = w->syndrome,
        .ackreq = !w->quiet,
        .psn = (c->psn[dir] + (uint32_t)w->rel) & WIRE_PSN_MASK,
        .dqpn = c->qpn[!own],
        .len = 1024,
        .hash = w->hash ? w->hash : 77 + (uint32_t)w->rel,
        .dma_len = w->octets,
        .va = w->va,
        .rkey = 9,
    };
}

static void judge(const struct scenario *s)
{
    static const struct suite_options opt = {.timeout = -1, .retry = -1, .cnp_interval = 50000};
    /* PSNs wrap in the middle of most of the traces. */
    static const struct suite_conn conn = {
        .qpn = {0x11, 0x22}, .psn = {0xFFFFFE, 0xFFFFFC}, .timeout = 14, .retry = 2, .done = true};
    ck_assert_int_eq(suite_trace_init(&trace), 0);
    trace.conn[trace.nconn++] = conn;
    for (unsigned i = 0; i < ROWS && s->row[i].opcode; i++)
        add(&conn, s->dir, &s->row[i]);
    memset(&card, 0, sizeof(card));
    card.test = s->what;
    struct suite_run r = {
        .opt = &opt, .trace = &trace, .card = &card, .client_ok = !s->client_failed};
    ck_assert(suite_flow_find(&trace, s->dir, s->kinds, &r.flow));
    s->check(&r);
    suite_trace_free(&trace);
}

static bool is_wanted(const struct scenario *s, const struct suite_result *r)
{
    for (unsigned k = 0; k < WANTED && s->wanted[k].rule; k++)
        if (!strcmp(s->wanted[k].rule, r->rule) && s->wanted[k].verdict == r->verdict)
            return true;
    return false;
}

static void expect(const struct scenario *s)
{
    for (unsigned k = 0; k < WANTED && s->wanted[k].rule; k++) {
        bool found = false;
        for (unsigned i = 0; i < card.n; i++)
            found |= !strcmp(card.result[i].rule, s->wanted[k].rule) &&
                     card.result[i].verdict == s->wanted[k].verdict;
        ck_assert_msg(found, "%s: %s is not %d", s->what, s->wanted[k].rule, s->wanted[k].verdict);
    }
    for (unsigned i = 0; i < card.n; i++)
        ck_assert_msg(card.result[i].verdict != SUITE_FAIL || is_wanted(s, &card.result[i]),
                      "%s: %s fails: %s", s->what, card.result[i].rule, card.result[i].text);
}

static void run(const struct scenario *s, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        judge(&s[i]);
        expect(&s[i]);
    }
}
#define RUN(table) run(table, sizeof(table) / sizeof(table[0]))

#define AB FAULT_AB, WIRE_F_WRITE, false
#define BA FAULT_BA, WIRE_F_WRITE, false

START_TEST(the_device_answers)
{
    static const struct scenario table[] = {
        {"RSP-02 ACK-07 ACK-08 a NAK for the missing packet, then everything again",
         suite_check_lost,
         AB,
         {W(0, 0), WX(.1, 1, FAULT_DROP), W(.2, 2), N(.3, 1), W(.3, 3), W(.4, 1), W(.5, 2),
          W(.6, 3), A(.7, 3)},
         {{"RSP-02", SUITE_PASS},
          {"ACK-07", SUITE_PASS},
          {"ACK-08", SUITE_PASS},
          {"ACK-05", SUITE_PASS},
          {"ACK-03", SUITE_PASS},
          {"LR-14", SUITE_PASS}}},
        {"ACK-08 a NAK for each packet after the gap",
         suite_check_lost,
         AB,
         {W(0, 0), WX(.1, 1, FAULT_DROP), W(.2, 2), N(.3, 1), W(.3, 3), N(.4, 1), W(.5, 1),
          W(.6, 2), W(.7, 3), A(.8, 3)},
         {{"ACK-08", SUITE_FAIL}}},
        {"ACK-07 the NAK names the packet that came, not the one that is missing",
         suite_check_lost,
         AB,
         {W(0, 0), WX(.1, 1, FAULT_DROP), W(.2, 2), N(.3, 2), W(.5, 1), W(.6, 2), A(.8, 2)},
         {{"ACK-07", SUITE_FAIL}}},
        {"ACK-05 an acknowledgement of what it can't have",
         suite_check_lost,
         AB,
         {W(0, 0), WX(.1, 1, FAULT_DROP), W(.2, 2), N(.3, 1), A(.4, 2), W(.5, 1), W(.6, 2),
          A(.8, 2)},
         {{"ACK-05", SUITE_FAIL}}},
        {"RSP-02 no NAK at all",
         suite_check_lost,
         AB,
         {W(0, 0), WX(.1, 1, FAULT_DROP), W(.2, 2), W(80, 1), W(80, 2), A(81, 2)},
         {{"RSP-02", SUITE_FAIL}}},
        {"RSP-02 a NAK before there was a gap to see",
         suite_check_lost,
         AB,
         {W(0, 0), WX(.1, 1, FAULT_DROP), N(.2, 1), W(.3, 2), W(.4, 1), W(.5, 2), A(.6, 2)},
         {{"RSP-02", SUITE_FAIL}}},
        {"ACK-03 the end is never acknowledged",
         suite_check_lost,
         AB,
         {W(0, 0), WX(.1, 1, FAULT_DROP), W(.2, 2), N(.3, 1), W(.4, 1), W(.5, 2), A(.6, 1)},
         {{"ACK-03", SUITE_FAIL}}},
        {"LR-14 a NAK after the requester's timeout",
         suite_check_lost,
         AB,
         {W(0, 0), WX(.1, 1, FAULT_DROP), W(.2, 2), N(T14 + 1, 1), W(T14 + 2, 1), W(T14 + 2, 2),
          A(T14 + 3, 2)},
         {{"LR-14", SUITE_FAIL}}},
        {"ACK-08 nothing was lost",
         suite_check_lost,
         AB,
         {W(0, 0), W(.1, 1), A(.2, 1)},
         {{"RSP-02", SUITE_UNTESTED}}},
        {"ACK-08 silence when it is lost again",
         suite_check_lost_twice,
         AB,
         {W(0, 0), WX(.1, 1, FAULT_DROP), W(.2, 2), N(.3, 1), WX(.4, 1, FAULT_DROP), W(.5, 2),
          W(80, 1), W(80, 2), A(81, 2)},
         {{"ACK-08", SUITE_PASS}}},
        {"ACK-08 a second NAK when it is lost again",
         suite_check_lost_twice,
         AB,
         {W(0, 0), WX(.1, 1, FAULT_DROP), W(.2, 2), N(.3, 1), WX(.4, 1, FAULT_DROP), W(.5, 2),
          N(.6, 1), W(.7, 1), W(.7, 2), A(.8, 2)},
         {{"ACK-08", SUITE_FAIL}}},
        {"ACK-08 one NAK for the late packet and one for its successor",
         suite_check_reordered,
         AB,
         {WX(0, 0, FAULT_HOLD), W(.1, 1), N(.2, 0), W(.3, 2), N(.4, 1), W(.5, 0), W(.5, 1),
          W(.6, 2), A(.8, 2)},
         {{"ACK-08", SUITE_PASS}, {"ACK-07", SUITE_PASS}}},
        {"ACK-08 two NAKs for the late packet",
         suite_check_reordered,
         AB,
         {WX(0, 0, FAULT_HOLD), W(.1, 1), N(.2, 0), W(.3, 2), N(.4, 0), W(.5, 0), W(.5, 1),
          W(.6, 2), A(.8, 2)},
         {{"ACK-08", SUITE_FAIL}}},
        {"RSP-20 a duplicate is taken calmly",
         suite_check_duplicated,
         AB,
         {W(0, 0), WX(.1, 1, FAULT_COPY), W(.2, 2), A(.3, 2)},
         {{"RSP-20", SUITE_PASS}}},
        {"RSP-20 a duplicate is NAKed",
         suite_check_duplicated,
         AB,
         {W(0, 0), WX(.1, 1, FAULT_COPY), N(.15, 2), W(.2, 2), A(.3, 2)},
         {{"RSP-20", SUITE_FAIL}}},
        {"RSP-20 ACK-05 duplicates are acknowledged by what has been executed",
         suite_check_answers_lost,
         AB,
         {W(0, 0), W(.1, 1), W(.2, 2), AX(.3, 2), W(T14, 0), W(T14, 1), A(68, 2), W(68, 2)},
         {{"RSP-20", SUITE_PASS}, {"ACK-05", SUITE_PASS}, {"ACK-03", SUITE_PASS}}},
        {"ACK-05 duplicates are acknowledged one by one",
         suite_check_answers_lost,
         AB,
         {W(0, 0), W(.1, 1), W(.2, 2), AX(.3, 2), W(T14, 0), A(68, 0), W(T14, 1), A(68, 1),
          W(68, 2), A(69, 2)},
         {{"ACK-05", SUITE_FAIL}}},
        {"RSP-20 duplicates are NAKed",
         suite_check_answers_lost,
         AB,
         {W(0, 0), W(.1, 1), W(.2, 2), AX(.3, 2), W(T14, 0), N(68, 3), W(T14, 1)},
         {{"RSP-20", SUITE_FAIL}}},
        {"RSP-20 duplicates are not answered",
         suite_check_answers_lost,
         AB,
         {W(0, 0), W(.1, 1), W(.2, 2), AX(.3, 2), W(T14, 0), W(T14, 1), W(68, 2)},
         {{"RSP-20", SUITE_FAIL}}},
        {"RSP-20 nothing is sent again",
         suite_check_answers_lost,
         AB,
         {W(0, 0), W(.1, 1), A(.3, 1)},
         {{"RSP-20", SUITE_UNTESTED}}},
        {"ICRC-08 as if it had not come",
         suite_check_bad_icrc,
         AB,
         {W(0, 0), WX(.1, 1, FAULT_CHANGED | FAULT_DAMAGED), W(.2, 2), N(.3, 1), W(.4, 1), W(.5, 2),
          A(.6, 2)},
         {{"ICRC-08", SUITE_PASS}, {"ACK-08", SUITE_PASS}}},
        {"ICRC-08 a damaged packet is acknowledged",
         suite_check_bad_icrc,
         AB,
         {W(0, 0), WX(.1, 1, FAULT_CHANGED | FAULT_DAMAGED), A(.15, 1), W(.2, 2), A(.6, 2)},
         {{"ICRC-08", SUITE_FAIL}, {"RSP-02", SUITE_FAIL}}},
        {"ICRC-08 a damaged packet is NAKed at once",
         suite_check_bad_icrc,
         AB,
         {W(0, 0), WX(.1, 1, FAULT_CHANGED | FAULT_DAMAGED), N(.15, 1), W(.2, 2), W(.4, 1),
          W(.5, 2), A(.6, 2)},
         {{"ICRC-08", SUITE_FAIL}, {"RSP-02", SUITE_FAIL}}},
    };
    RUN(table);
}
END_TEST

START_TEST(the_device_sends_again)
{
    static const struct scenario table[] = {
        {"RTX-01 ACK-06 back to the PSN of the NAK, then on in order",
         suite_check_go_back,
         BA,
         {W(0, 0), WX(.1, 1, FAULT_DROP), W(.2, 2), N(.3, 1), W(.3, 3), W(.4, 1), W(.5, 2),
          W(.6, 3), W(.7, 4), A(.8, 4)},
         {{"RTX-01", SUITE_PASS},
          {"ACK-06", SUITE_PASS},
          {"RTX-05", SUITE_PASS},
          {"REQ-35", SUITE_PASS}}},
        {"RTX-01 back too far",
         suite_check_go_back,
         BA,
         {W(0, 0), WX(.1, 1, FAULT_DROP), W(.2, 2), N(.3, 1), W(.4, 0), W(.4, 1), W(.5, 2),
          A(.8, 2)},
         {{"RTX-01", SUITE_FAIL}}},
        {"RTX-01 a hole in what is sent again",
         suite_check_go_back,
         BA,
         {W(0, 0), WX(.1, 1, FAULT_DROP), W(.2, 2), W(.25, 3), N(.3, 1), W(.4, 1), W(.5, 3),
          A(.8, 3)},
         {{"RTX-01", SUITE_FAIL}}},
        {"RTX-01 another round for another gap is right",
         suite_check_go_back,
         BA,
         {W(0, 0), WX(.1, 1, FAULT_DROP), W(.2, 2), W(.25, 3), N(.3, 1), W(.4, 1),
          WX(.5, 2, FAULT_DROP), W(.6, 3), N(.7, 2), W(.8, 2), W(.9, 3), A(1, 3)},
         {{"RTX-01", SUITE_PASS}}},
        {"RTX-05 other octets than the first time",
         suite_check_go_back,
         BA,
         {W(0, 0),
          WX(.1, 1, FAULT_DROP),
          W(.2, 2),
          N(.3, 1),
          {.4, MIDDLE, 1, 0, 0, 4711, 0, 0},
          W(.5, 2),
          A(.8, 2)},
         {{"RTX-05", SUITE_FAIL}}},
        {"ACK-06 not before the timeout",
         suite_check_go_back,
         BA,
         {W(0, 0), WX(.1, 1, FAULT_DROP), W(.2, 2), N(.3, 1), W(T14 + 1, 1), W(T14 + 1, 2),
          A(T14 + 2, 2)},
         {{"ACK-06", SUITE_FAIL}}},
        {"ACK-06 never",
         suite_check_go_back,
         BA,
         {W(0, 0), WX(.1, 1, FAULT_DROP), W(.2, 2), N(.3, 1)},
         {{"ACK-06", SUITE_FAIL}}},
        {"REQ-35 sent again, and yet failed",
         suite_check_go_back,
         FAULT_BA,
         WIRE_F_WRITE,
         true,
         {W(0, 0), WX(.1, 1, FAULT_DROP), W(.2, 2), N(.3, 1), W(.4, 1), W(.5, 2), A(.8, 2)},
         {{"REQ-35", SUITE_FAIL}}},
    };
    RUN(table);
}
END_TEST

/* Lost, NAKed, lost again: `ms` after the NAK it goes back once more, to `again`. */
#define THRICE(ms, again)                                                                          \
    {                                                                                              \
        W(0, 0), WX(.1, 1, FAULT_DROP), W(.2, 2), N(.3, 1), WX(.4, 1, FAULT_DROP), W(.5, 2),       \
            W(.3 + (ms), again), W(.4 + (ms), (again) + 1), W(.4 + (ms), (again) + 2),             \
            A(.5 + (ms), 2)                                                                        \
    }

START_TEST(the_device_times_out)
{
    static const struct scenario table[] = {
        {"TMR-03 TMR-04 after T, from the oldest",
         suite_check_go_back_twice,
         BA,
         THRICE(T14 + .01, 1),
         {{"TMR-03", SUITE_PASS}, {"TMR-04", SUITE_PASS}, {"RTX-01", SUITE_PASS}}},
        {"TMR-03 a tenth too early",
         suite_check_go_back_twice,
         BA,
         THRICE(T14 * .9, 1),
         {{"TMR-03", SUITE_FAIL}}},
        {"TMR-03 later than 4 T",
         suite_check_go_back_twice,
         BA,
         THRICE(T14 * 4.1, 1),
         {{"TMR-03", SUITE_FAIL}}},
        {"TMR-04 from what the NAK has acknowledged",
         suite_check_go_back_twice,
         BA,
         THRICE(T14 + .01, 0),
         {{"TMR-04", SUITE_FAIL}}},
        {"TMR-04 from the oldest that is not acknowledged",
         suite_check_acks_lost,
         BA,
         {W(0, 0), W(.1, 1), A(.2, 0), W(.3, 2), W(.2 + T14, 1), W(.2 + T14, 2), A(70, 2)},
         {{"TMR-03", SUITE_PASS}, {"TMR-04", SUITE_PASS}, {"RTX-05", SUITE_PASS}}},
        {"TMR-03 REQ-10 the timer runs from the first packet or from the one that asks",
         suite_check_acks_lost,
         BA,
         {WQ(0, 0), W(30, 1), W(T14 + .1, 0), W(T14 + .1, 1), A(70, 1)},
         {{"TMR-03", SUITE_PASS}}},
        {"TMR-03 late from the one that asks",
         suite_check_acks_lost,
         BA,
         {WQ(0, 0), W(30, 1), W(30 + 4.1 * T14, 0), A(400, 1)},
         {{"TMR-03", SUITE_FAIL}}},
        {"REQ-10 nothing asks for an answer",
         suite_check_acks_lost,
         BA,
         {WQ(0, 0), WQ(1, 1), W(T14 + .1, 0), A(70, 1)},
         {{"REQ-10", SUITE_FAIL}}},
        {"TMR-04 from what has been acknowledged",
         suite_check_acks_lost,
         BA,
         {W(0, 0), W(.1, 1), A(.2, 0), W(.3, 2), W(.2 + T14, 0), W(.2 + T14, 1), W(.2 + T14, 2),
          A(70, 2)},
         {{"TMR-04", SUITE_FAIL}}},
        {"TMR-03 the timer was not restarted by progress",
         suite_check_acks_lost,
         BA,
         {W(0, 0), W(.1, 1), A(20, 0), W(20, 2), W(T14, 1), W(T14, 2), A(70, 2)},
         {{"TMR-03", SUITE_FAIL}}},
        {"TMR-05 retry count 2: three times",
         suite_check_exhausted,
         FAULT_BA,
         WIRE_F_WRITE,
         true,
         {WX(0, 0, FAULT_DROP), WX(.1, 1, FAULT_DROP), WX(T14, 0, FAULT_DROP),
          WX(2 * T14, 0, FAULT_DROP)},
         {{"TMR-05", SUITE_PASS}, {"TMR-03", SUITE_PASS}, {"REQ-36", SUITE_PASS}}},
        {"TMR-05 once too often",
         suite_check_exhausted,
         FAULT_BA,
         WIRE_F_WRITE,
         true,
         {WX(0, 0, FAULT_DROP), WX(T14, 0, FAULT_DROP), WX(2 * T14, 0, FAULT_DROP),
          WX(3 * T14, 0, FAULT_DROP)},
         {{"TMR-05", SUITE_FAIL}}},
        {"TMR-03 intervals that grow past 4 T",
         suite_check_exhausted,
         FAULT_BA,
         WIRE_F_WRITE,
         true,
         {WX(0, 0, FAULT_DROP), WX(2 * T14, 0, FAULT_DROP), WX(7 * T14, 0, FAULT_DROP)},
         {{"TMR-05", SUITE_PASS}, {"TMR-03", SUITE_FAIL}}},
        {"REQ-36 success is reported though nothing arrived",
         suite_check_exhausted,
         BA,
         {WX(0, 0, FAULT_DROP), WX(T14, 0, FAULT_DROP), WX(2 * T14, 0, FAULT_DROP)},
         {{"REQ-36", SUITE_FAIL}}},
        {"RNR-05 waits as it is told (5.12 ms)",
         suite_check_rnr,
         BA,
         {W(0, 0), WX(.1, 1, FAULT_DROP | FAULT_INJECT), W(.2, 2), N(.3, 1), W(5.3, 1), W(5.3, 2),
          A(6, 2)},
         {{"RNR-05", SUITE_PASS}, {"RNR-02", SUITE_PASS}}},
        {"RNR-05 RNR-02 the sequence NAK makes it forget to wait",
         suite_check_rnr,
         BA,
         {W(0, 0), WX(.1, 1, FAULT_DROP | FAULT_INJECT), W(.2, 2), N(.3, 1), W(.4, 1), W(.5, 2),
          A(6, 2)},
         {{"RNR-05", SUITE_FAIL}}},
    };
    RUN(table);
}
END_TEST

START_TEST(the_device_reads_and_is_read)
{
    static const struct scenario table[] = {
        {"RD-14 RD-12 asked again at once, from the gap on",
         suite_check_read_again,
         FAULT_BA,
         WIRE_F_READ,
         false,
         {R(0, 0, 4096, 0x1000), D(.1, 0), DX(.2, 1, FAULT_DROP), D(.3, 2), R(.4, 1, 3072, 0x1400),
          D(.5, 1), D(.5, 2), D(.6, 3)},
         {{"RD-14", SUITE_PASS}, {"RD-12", SUITE_PASS}}},
        {"RD-12 the whole READ again is right, too",
         suite_check_read_again,
         FAULT_BA,
         WIRE_F_READ,
         false,
         {R(0, 0, 4096, 0x1000), D(.1, 0), DX(.2, 1, FAULT_DROP), D(.3, 2), R(.4, 0, 4096, 0x1000),
          D(.5, 1)},
         {{"RD-14", SUITE_PASS}, {"RD-12", SUITE_PASS}}},
        {"RD-12 from the gap on, but the whole length",
         suite_check_read_again,
         FAULT_BA,
         WIRE_F_READ,
         false,
         {R(0, 0, 4096, 0x1000), D(.1, 0), DX(.2, 1, FAULT_DROP), D(.3, 2), R(.4, 1, 4096, 0x1400),
          D(.5, 1)},
         {{"RD-12", SUITE_FAIL}}},
        {"RD-14 by timeout only",
         suite_check_read_again,
         FAULT_BA,
         WIRE_F_READ,
         false,
         {R(0, 0, 4096, 0x1000), D(.1, 0), DX(.2, 1, FAULT_DROP), D(.3, 2),
          R(.4 + T14, 1, 3072, 0x1400), D(70, 1)},
         {{"RD-14", SUITE_FAIL}}},
        {"RD-12 of a READ that wasn't seen",
         suite_check_read_again,
         FAULT_BA,
         WIRE_F_READ,
         false,
         {DX(.2, 1, FAULT_DROP), D(.3, 2), R(.4, 1, 3072, 0x1400), D(.5, 1)},
         {{"RD-14", SUITE_PASS}, {"RD-12", SUITE_UNTESTED}}},
        {"RD-10 RD-02 RD-09 answered from where it was asked",
         suite_check_read_answer,
         FAULT_AB,
         WIRE_F_READ,
         false,
         {R(0, 0, 4096, 0),
          D(.1, 0),
          DX(.2, 1, FAULT_DROP),
          D(.3, 2),
          R(.4, 1, 3072, 1024),
          {.5, DATA1, 1, 0, 0x1F, 0, 0, 0},
          D(.5, 2),
          D(.5, 3)},
         {{"RD-09", SUITE_PASS},
          {"RD-10", SUITE_PASS},
          {"RD-01", SUITE_PASS},
          {"RD-02", SUITE_PASS}}},
        {"RD-10 answered with a MIDDLE",
         suite_check_read_answer,
         FAULT_AB,
         WIRE_F_READ,
         false,
         {R(0, 0, 4096, 0), D(.1, 0), DX(.2, 1, FAULT_DROP), D(.3, 2), R(.4, 1, 3072, 1024),
          D(.5, 1), D(.5, 2), D(.5, 3)},
         {{"RD-10", SUITE_FAIL}}},
        {"RD-02 answered with other octets",
         suite_check_read_answer,
         FAULT_AB,
         WIRE_F_READ,
         false,
         {R(0, 0, 4096, 0),
          D(.1, 0),
          DX(.2, 1, FAULT_DROP),
          D(.3, 2),
          R(.4, 1, 3072, 1024),
          {.5, DATA1, 1, 0, 0x1F, 4711, 0, 0},
          D(.5, 2),
          D(.5, 3)},
         {{"RD-02", SUITE_FAIL}}},
        {"RD-09 not answered",
         suite_check_read_answer,
         FAULT_AB,
         WIRE_F_READ,
         false,
         {R(0, 0, 4096, 0), D(.1, 0), DX(.2, 1, FAULT_DROP), D(.3, 2), R(.4, 1, 3072, 1024)},
         {{"RD-09", SUITE_FAIL}}},
    };
    RUN(table);
}
END_TEST

/* ---- CNPs ---- */

struct mark {
    double us;
    char what;   /* 'm' a marked WRITE, 'c' a CNP, 'o' a CNP with wrong fields */
    unsigned qp; /* 0 or 1 */
};

static void watch_marks(const struct mark *m, unsigned n, uint64_t interval)
{
    const struct suite_options opt = {.timeout = -1, .retry = -1, .cnp_interval = interval};
    ck_assert_int_eq(suite_trace_init(&trace), 0);
    for (uint32_t q = 0; q < 2; q++)
        trace.conn[trace.nconn++] = (struct suite_conn){.qpn = {0x11 + q, 0x21 + q}, .done = true};
    for (unsigned i = 0; i < n; i++) {
        bool cnp = m[i].what != 'm';
        trace.pkt[trace.n++] = (struct suite_pkt){
            .at = 1000000 + (uint64_t)(m[i].us * 1000),
            .waited = 500,
            .dir = cnp ? FAULT_BA : FAULT_AB,
            .opcode = cnp ? WIRE_OPCODE_CNP : MIDDLE,
            .tclass = cnp ? 48 << 2 : 3,
            .becn = cnp,
            .plain = m[i].what == 'c',
            .dqpn = (cnp ? 0x11 : 0x21) + m[i].qp,
        };
    }
    memset(&card, 0, sizeof(card));
    struct suite_run r = {.opt = &opt, .trace = &trace, .card = &card, .client_ok = true};
    ck_assert(suite_flow_find(&trace, FAULT_AB, WIRE_F_WRITE, &r.flow));
    suite_check_marked(&r);
    suite_trace_free(&trace);
}

static enum suite_verdict worst(const char *rule)
{
    static const int weight[] = {[SUITE_PASS] = 0, [SUITE_UNTESTED] = 1, [SUITE_FAIL] = 2};
    enum suite_verdict v = SUITE_PASS;
    bool found = false;
    for (unsigned i = 0; i < card.n; i++) {
        if (strcmp(card.result[i].rule, rule))
            continue;
        found = true;
        v = weight[card.result[i].verdict] > weight[v] ? card.result[i].verdict : v;
    }
    ck_assert_msg(found, "%s has no result", rule);
    return v;
}

START_TEST(the_device_sends_cnps)
{
    static const struct mark good[] = {{0, 'm', 0},  {1, 'c', 0},  {20, 'm', 1},
                                       {21, 'c', 1}, {60, 'm', 0}, {61, 'c', 0}},
                             fast[] = {{0, 'm', 0}, {1, 'c', 0}, {20, 'm', 0}, {30, 'c', 0}},
                             none[] = {{0, 'm', 0}, {20, 'm', 0}},
                             more[] = {{0, 'm', 0}, {1, 'c', 0}, {60, 'c', 0}},
                             wrong[] = {{0, 'm', 0}, {1, 'o', 0}},
                             astray[] = {{0, 'm', 0}, {1, 'c', 1}};
    watch_marks(good, 6, 50000);
    ck_assert_int_eq(worst("CC-03"), SUITE_PASS);
    ck_assert_int_eq(worst("CC-04"), SUITE_PASS);
    ck_assert_int_eq(worst("CC-06"), SUITE_PASS);
    ck_assert_int_eq(worst("OPC-05"), SUITE_PASS);
    watch_marks(fast, 4, 50000); /* 29 us + 0.5 us unseen */
    ck_assert_int_eq(worst("CC-04"), SUITE_FAIL);
    watch_marks(fast, 4, 32000);
    ck_assert_int_eq(worst("CC-04"), SUITE_PASS);
    watch_marks(none, 2, 50000);
    ck_assert_int_eq(worst("CC-03"), SUITE_FAIL);
    watch_marks(more, 3, 50000);
    ck_assert_int_eq(worst("CC-03"), SUITE_FAIL);
    watch_marks(wrong, 2, 50000);
    ck_assert_int_eq(worst("OPC-05"), SUITE_FAIL);
    watch_marks(astray, 2, 50000);
    ck_assert_int_eq(worst("CC-06"), SUITE_FAIL);
}
END_TEST

/* CC-05: with two queue pairs, CNPs to both within one interval mean that each has its own. */
START_TEST(the_scope_of_the_cnp_interval_is_told)
{
    struct mark m[80];
    unsigned n = 0;
    for (unsigned i = 0; i < 40; i++)
        m[n++] = (struct mark){i, 'm', i % 2};
    m[n++] = (struct mark){41, 'c', 0};
    m[n++] = (struct mark){48, 'c', 1};
    watch_marks(m, n, 50000);
    ck_assert_ptr_nonnull(strstr(card.result[card.n - 1].text, "an interval for each"));
    m[n - 1].us = 92;
    watch_marks(m, n, 50000);
    ck_assert_ptr_nonnull(strstr(card.result[card.n - 1].text, "as if they shared"));
}
END_TEST

UNIT_MAIN("suite checks", the_device_answers, the_device_sends_again, the_device_times_out,
          the_device_reads_and_is_read, the_device_sends_cnps,
          the_scope_of_the_cnp_interval_is_told)
