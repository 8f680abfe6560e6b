/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Exchanges that break no rule: complete, also over RoCE v1 and IPv6, and with a packet that the
 * capture has missed.
 */
#include <stdlib.h>
#include <string.h>

#include "lint_rig.h"
#include "unit.h"
#include "wire_bytes.h"
#include "wire_csum.h"

/* Twice a READ is repeated from two places, and the second repetition's first response is lost. */
#define REREAD_TWICE(psn_, msn_)                                                                   \
    {.opcode = RC(READ_REQUEST), .psn = psn_, .dma_len = 4096, .va = 0x1000},                      \
        RESP(READ_RESP_FIRST, psn_, 1024, msn_), RESP(READ_RESP_MIDDLE, psn_ + 2, 1024, 0),        \
        {.opcode = RC(READ_REQUEST), .psn = psn_ + 1, .dma_len = 3072, .va = 0x1400},              \
        {.opcode = RC(READ_REQUEST), .psn = psn_ + 2, .dma_len = 2048, .va = 0x1800},              \
        RESP(READ_RESP_FIRST, psn_ + 1, 1024, msn_), RESP(READ_RESP_MIDDLE, psn_ + 2, 1024, 0),    \
        RESP(READ_RESP_LAST, psn_ + 3, 1024, msn_), RESP(READ_RESP_LAST, psn_ + 3, 1024, msn_)
static const struct step reread_twice[] = {REREAD_TWICE(100, 1), REREAD_TWICE(104, 2),
                                           REREAD_TWICE(108, 3), END};

/* Responses are late, the READs are repeated from there, and the late ones come before the answers.
 */
static const struct step reread_late[] = {
    {.opcode = RC(READ_REQUEST), .psn = 100, .dma_len = 3072, .va = 0x1000},
    RESP(READ_RESP_FIRST, 100, 1024, 1),
    RESP(READ_RESP_LAST, 102, 1024, 1),
    {.opcode = RC(READ_REQUEST), .psn = 103, .dma_len = 3072, .va = 0x1000},
    RESP(READ_RESP_FIRST, 103, 1024, 2),
    RESP(READ_RESP_LAST, 105, 1024, 2),
    {.opcode = RC(READ_REQUEST), .psn = 101, .dma_len = 2048, .va = 0x1400},
    RESP(READ_RESP_MIDDLE, 101, 1024, 0),
    {.opcode = RC(READ_REQUEST), .psn = 102, .dma_len = 1024, .va = 0x1800},
    {.opcode = RC(READ_REQUEST), .psn = 104, .dma_len = 2048, .va = 0x1400},
    RESP(READ_RESP_MIDDLE, 104, 1024, 0),
    {.opcode = RC(READ_REQUEST), .psn = 105, .dma_len = 1024, .va = 0x1800},
    RESP(READ_RESP_FIRST, 101, 1024, 2),
    RESP(READ_RESP_LAST, 102, 1024, 2),
    RESP(READ_RESP_ONLY, 102, 1024, 2),
    RESP(READ_RESP_FIRST, 104, 1024, 2),
    RESP(READ_RESP_LAST, 105, 1024, 2),
    RESP(READ_RESP_ONLY, 105, 1024, 2),
    END};

/* REQ-12: the response that made room for the next READ is recorded after it, but has an earlier
 * time. */
static const struct step response_late[] = {
    {.cm = CM_REQ},
    {.cm = CM_REP, .from_b = true},
    {.opcode = RC(READ_REQUEST), .psn = 100, .dma_len = 8},
    {.opcode = RC(READ_REQUEST), .psn = 101, .dma_len = 8, .after = 20},
    {.from_b = true,
     .opcode = RC(READ_RESP_ONLY),
     .psn = 100,
     .len = 8,
     .syndrome = 0x1F,
     .msn = 1,
     .after = (uint64_t)-5},
    RESP(READ_RESP_ONLY, 101, 8, 2),
    END};
/* REQ-12: two READs and ATOMICs may be outstanding, and the answer to the first isn't captured,
 * which has been asked for twice. */
static const struct step response_missed[] = {
    {.cm = CM_REQ},
    {.cm = CM_REP, .from_b = true},
    {.opcode = RC(READ_REQUEST), .psn = 100, .dma_len = 8},
    {.opcode = RC(READ_REQUEST), .psn = 100, .dma_len = 8, .after = 5000},
    {.from_b = true, .opcode = RC(READ_RESP_ONLY), .psn = 100, .len = 8, .gone = true},
    /* 5 */ {.opcode = RC(FETCH_ADD), .psn = 101},
    {.opcode = RC(FETCH_ADD), .psn = 102},
    RESP(ATOMIC_ACK, 101, 0, 2),
    RESP(ATOMIC_ACK, 102, 0, 3),
    END};
static void two_at_once(struct cm_msg *m)
{
    m->resp_res = 2;
}
#define ANNOUNCED_100                                                                              \
    {.cm = CM_REQ},                                                                                \
    {                                                                                              \
        .cm = CM_REP, .from_b = true                                                               \
    }
/* The second request arrives first, twice. */
static const struct step nothing_executed[] = {{.cm = CM_REQ},
                                               {.cm = CM_REP, .from_b = true},
                                               {.cm = CM_RTU},
                                               SEND(100, 64),
                                               SEND(101, 64),
                                               /* 5 */ NAK(100, 0x60, 0),
                                               ACK(99, 0),
                                               SEND(100, 64),
                                               SEND(101, 64),
                                               ACK(101, 2),
                                               END};

/* PSN-01: the capture has missed the packets from the announced PSN on: whole messages; the start
 * of one; a READ that is requested again. Or it has another order. */
static const struct step start_missed[] = {ANNOUNCED_100, SEND(101, 64), ACK(101, 2), END};
static const struct step start_within[] = {
    ANNOUNCED_100, {.opcode = RC(SEND_LAST), .psn = 101, .len = 64, .ackreq = true},
    ACK(101, 1),   SEND(102, 64),
    ACK(102, 2),   END};
static const struct step start_reread[] = {
    ANNOUNCED_100,
    {.opcode = RC(READ_REQUEST), .psn = 101, .dma_len = 1024, .va = 0x1400},
    RESP(READ_RESP_ONLY, 101, 1024, 1),
    END};
static const struct step start_reordered[] = {ANNOUNCED_100, SEND(101, 64), SEND(100, 64),
                                              ACK(101, 2), END};

/* The capture begins while answers to earlier requests are under way, and earlier packets are sent
 * again. */
static const struct step start_amid[] = {
    {.opcode = RC(FETCH_ADD), .psn = 104, .ackreq = true},
    {.from_b = true, .opcode = RC(ATOMIC_ACK), .psn = 104, .syndrome = 0x1F, .msn = 9},
    {.opcode = RC(FETCH_ADD), .psn = 105, .ackreq = true},
    NAK(109, 0x60, 12),
    {.opcode = RC(FETCH_ADD), .psn = 105, .ackreq = true},
    SEND(106, 64),
    SEND(107, 64),
    SEND(108, 64),
    ACK(107, 12),
    ACK(108, 12),
    SEND(109, 64),
    ACK(109, 13),
    END};

/* The network doubles a request after the capture point: the copy is answered by the state at its
 * arrival. */
static const struct step copied[] = {SEND(100, 64),
                                     ACK(100, 1),
                                     {.opcode = RC(FETCH_ADD), .psn = 101},
                                     SEND(102, 64),
                                     RESP(ATOMIC_ACK, 101, 0, 2),
                                     ACK(102, 3),
                                     RESP(ATOMIC_ACK, 101, 0, 3),
                                     ACK(102, 3),
                                     SEND(103, 64),
                                     ACK(103, 4),
                                     END};

/* A queue pair's number and its PSNs are used again after an orderly end. */
#define LATER_SEND(psn_, len_)                                                                     \
    {                                                                                              \
        .opcode = RC(SEND_ONLY), .psn = psn_, .len = len_, .ackreq = true, .after = 50000          \
    }
static const struct step lives[] = {
    SEND(100, 64),
    ACK(100, 1),
    SEND(101, 64),
    ACK(101, 2),
    /* ... from where it began */
    LATER_SEND(100, 8),
    ACK(100, 1),
    SEND(101, 8),
    ACK(101, 2),
    SEND(102, 8),
    ACK(102, 3),
    /* ... from a PSN in the middle, as a READ */
    {.opcode = RC(READ_REQUEST), .psn = 101, .dma_len = 1500, .va = 0x2000, .after = 50000},
    RESP(READ_RESP_FIRST, 101, 1024, 1),
    RESP(READ_RESP_LAST, 102, 476, 1),
    /* ... from there again */
    {.opcode = RC(READ_REQUEST), .psn = 101, .dma_len = 100, .va = 0x2800, .after = 50000},
    RESP(READ_RESP_ONLY, 101, 100, 1),
    SEND(102, 8),
    ACK(102, 2),
    END};

/* They are used again from a PSN that may come after a gap. */
static const struct step lives_ahead[] = {SEND(100, 64),
                                          ACK(100, 1),
                                          SEND(101, 64),
                                          ACK(101, 2),
                                          SEND(102, 64),
                                          ACK(102, 3),
                                          SEND(103, 64),
                                          ACK(103, 4),
                                          SEND(104, 64),
                                          ACK(104, 5),
                                          LATER_SEND(900, 64),
                                          ACK(900, 1),
                                          SEND(901, 64),
                                          ACK(901, 2),
                                          SEND(902, 64),
                                          ACK(902, 3),
                                          END};

/* They are used again, and a packet is lost before an ACK shows the new count. */
static const struct step lives_gap[] = {
    SEND(100, 64),
    ACK(100, 1),
    SEND(101, 64),
    ACK(101, 2),
    SEND(102, 64),
    SEND(103, 64),
    SEND(104, 64),
    SEND(105, 64),
    SEND(106, 64),
    SEND(107, 64),
    ACK(107, 8),
    {.opcode = RC(READ_REQUEST), .psn = 170, .dma_len = 8, .va = 0x2000, .after = 6000},
    RESP(READ_RESP_ONLY, 170, 8, 1),
    {.opcode = RC(SEND_ONLY), .psn = 171, .gone = true},
    SEND(172, 64),
    NAK(171, 0x60, 1),
    SEND(171, 64),
    SEND(172, 64),
    ACK(172, 3),
    SEND(173, 64),
    ACK(173, 4),
    SEND(174, 64),
    ACK(174, 5),
    SEND(175, 64),
    ACK(175, 6),
    END};

/* They are used again while many packets were on their way. */
static const struct step lives_killed[] = {
    SEND(100, 64),
    SEND(101, 64),
    {.opcode = RC(FETCH_ADD), .psn = 102, .va = 0x3000},
    SEND(103, 8),
    {.opcode = RC(WRITE_ONLY),
     .psn = 100,
     .len = 13,
     .dma_len = 13,
     .ackreq = true,
     .va = 0x1000,
     .after = 50000},
    ACK(100, 1),
    {.opcode = RC(READ_REQUEST), .psn = 101, .dma_len = 8, .va = 0x2000},
    RESP(READ_RESP_ONLY, 101, 8, 2),
    SEND(102, 5),
    ACK(102, 3),
    END};

/* They are used again after a fatal NAK. */
static const struct step lives_refused[] = {
    {.opcode = RC(WRITE_ONLY), .psn = 100, .len = 64, .dma_len = 64, .ackreq = true},
    NAK(100, 0x62, 0),
    {.opcode = RC(WRITE_ONLY),
     .psn = 100,
     .len = 64,
     .dma_len = 64,
     .ackreq = true,
     .after = 50000},
    ACK(100, 1),
    SEND(101, 64),
    ACK(101, 2),
    END};

/* Numbers that only seem to be reused: a READ is repeated while some of its responses are missing,
 * also for READs overtaken by others. */
static const struct step repeated[] = {
    {.opcode = RC(READ_REQUEST), .psn = 100, .dma_len = 3072, .va = 0x1000},
    RESP(READ_RESP_MIDDLE, 101, 1024, 0),
    RESP(READ_RESP_FIRST, 100, 1024, 1),
    {.opcode = RC(READ_REQUEST), .psn = 100, .dma_len = 3072, .va = 0x1000, .after = 5000},
    RESP(READ_RESP_FIRST, 100, 1024, 1),
    RESP(READ_RESP_MIDDLE, 101, 1024, 0),
    RESP(READ_RESP_LAST, 102, 1024, 1),
    END};
static const struct step overtaken[] = {
    SEND(100, 64),
    ACK(100, 1),
    SEND(104, 64),
    {.opcode = RC(READ_REQUEST), .psn = 101, .dma_len = 3072, .va = 0x1000},
    RESP(READ_RESP_FIRST, 101, 1024, 2),
    RESP(READ_RESP_LAST, 103, 1024, 2),
    ACK(104, 3),
    {.opcode = RC(READ_REQUEST), .psn = 102, .dma_len = 2048, .va = 0x1400, .after = 5000},
    RESP(READ_RESP_FIRST, 102, 1024, 3),
    RESP(READ_RESP_LAST, 103, 1024, 3),
    SEND(104, 64),
    ACK(104, 3),
    SEND(105, 64),
    ACK(105, 4),
    END};

/* Not used again: a WRITE is repeated as a whole because its last packet found no receive. */
static const struct step from_start[] = {
    {.opcode = RC(WRITE_FIRST), .psn = 100, .len = 1024, .dma_len = 2048, .va = 0x1000},
    {.opcode = RC(WRITE_LAST_IMM), .psn = 101, .len = 1024, .ackreq = true},
    NAK(101, 0x21, 0),
    {.opcode = RC(WRITE_FIRST),
     .psn = 100,
     .len = 1024,
     .dma_len = 2048,
     .va = 0x1000,
     .after = 5000},
    ACK(100, 0),
    {.opcode = RC(WRITE_LAST_IMM), .psn = 101, .len = 1024, .ackreq = true},
    ACK(101, 1),
    END};

/* Not used again: the very first packet may come after the second. */
static const struct step late_start[] = {
    {.opcode = RC(SEND_LAST), .psn = 101, .len = 64, .ackreq = true},
    {.opcode = RC(SEND_FIRST), .psn = 100, .len = 1024, .after = 2000},
    NAK(100, 0x60, 0),
    {.opcode = RC(SEND_FIRST), .psn = 100, .len = 1024},
    {.opcode = RC(SEND_LAST), .psn = 101, .len = 64, .ackreq = true},
    ACK(100, 0),
    ACK(101, 1),
    END};

/* Used again after packets were lost: */
static const struct step lives_lost[] = {
    SEND(100, 64), {.opcode = RC(SEND_ONLY), .psn = 101, .gone = true},
    SEND(102, 64), NAK(101, 0x60, 1),
    SEND(101, 64), SEND(102, 64),
    ACK(102, 3),   LATER_SEND(100, 64),
    ACK(100, 1),   SEND(101, 64),
    ACK(101, 2),   END};

START_TEST(two_connections)
{
    static struct run run;
    static struct found found;
    struct lint_totals t;
    const struct row row = {.steps = lives_lost, .at = LATER};
    for (enum net net = NET_COUNT; net < NETS; net++) {
        build(&run, &row, net);
        judge(&run, &found, &t);
        ck_assert_msg(t.flows == 4, "%s: %u flows", nets[net], t.flows);
        ck_assert_uint_eq(found.n, 0);
    }
}
END_TEST

/* Two connections with the same PSNs of requests; only the PSNs can assign answers to requests. The
 * capture begins with the request of one and the answer of the other. */
static const struct step sends[] = {
    SEND(100, 64), ACK(100, 1), SEND(101, 64), ACK(101, 2), SEND(102, 64), ACK(102, 3), END};
#define READ8(psn_, msn_)                                                                          \
    {.opcode = RC(READ_REQUEST), .psn = psn_, .dma_len = 8, .va = 0x1000},                         \
        RESP(READ_RESP_ONLY, psn_, 8, msn_)
static const struct step reads[] = {READ8(100, 7), READ8(101, 8), READ8(102, 9), END};

static void other_queue_pair(struct wire_pkt *p)
{
    p->dqpn += 0x100;
}

static void append(struct run *to, const struct packet *k)
{
    to->packet[to->n] = *k;
    to->packet[to->n].ns = 1000000 + (uint64_t)to->n * 10 * US;
    to->n++;
}

START_TEST(whose_answers)
{
    static struct run a, b, both;
    static struct found found;
    struct lint_totals t;
    for (enum net net = NET_COUNT; net < NETS; net++) {
        build(&a, &(struct row){.steps = sends, .at = LATER}, net);
        build(&b, &(struct row){.steps = reads, .at = ALL, .pkt = other_queue_pair}, net);
        both.n = 0;
        for (int i = 0; i < a.n; i++) {
            append(&both, &a.packet[i]);
            if (i + 1 < b.n)
                append(&both, &b.packet[i + 1]);
        }
        judge(&both, &found, &t);
        for (unsigned i = 0; i < found.n; i++)
            ck_assert_msg(found.f[i].verdict != LINT_VIOLATION, "%s: %s: %s, seen %s", nets[net],
                          found.f[i].rule->id, found.f[i].dump, found.f[i].seen);
    }
}
END_TEST

/* Connections between two hosts, with a source port for each queue pair. If their PSNs are far
 * apart, lint can tell which answers belong to which requests, and judges rules about both
 * directions. If their PSNs are near each other it can't, and does not. */
static uint32_t nth, apart;

static void nth_connection(struct wire_pkt *p)
{
    p->dqpn += nth * 0x100;
    p->sport = (uint16_t)(0xC000 + p->dqpn);
    p->psn = (p->psn + nth * apart) & WIRE_PSN_MASK;
}

START_TEST(a_port_for_each_queue_pair)
{
    static const struct step steps[] = {
        SEND(100, 64), ACK(100, 1),   SEND(101, 64), ACK(101, 2),   SEND(102, 64),
        ACK(102, 3),   SEND(103, 64), ACK(103, 4),   SEND(104, 64), ACK(104, 5),
        SEND(105, 64), ACK(105, 6),   SEND(106, 64), ACK(106, 7),   SEND(107, 64),
        ACK(107, 3),   SEND(108, 64), ACK(108, 9),   SEND(109, 64), ACK(109, 10),
        SEND(110, 64), ACK(110, 11),  SEND(111, 64), ACK(111, 12),  END};
    static struct run one[4], all;
    static struct found found;
    struct lint_totals t;
    apart = _i ? 400000 : 5;
    for (enum net net = NET_COUNT; net < NETS; net++) {
        all.n = 0;
        for (nth = 0; nth < 4; nth++)
            build(&one[nth], &(struct row){.steps = steps, .at = ALL, .pkt = nth_connection}, net);
        for (int i = 0; i < one[0].n; i++)
            for (unsigned k = 0; k < 4; k++)
                append(&all, &one[k].packet[i]);
        judge(&all, &found, &t);
        ck_assert_msg(found.n == (_i ? 4 : 0), "%s: %u found", nets[net], found.n);
        for (unsigned i = 0; i < found.n; i++)
            ck_assert_str_eq(found.f[i].rule->id, "ACK-11");
    }
}
END_TEST

/* ACK-08: a mirror shows all packets twice, and the responder repeats its NAK after a while. */
#define TWICE(...)                                                                                 \
    {__VA_ARGS__},                                                                                 \
    {                                                                                              \
        __VA_ARGS__, .after = 1                                                                    \
    }
#define MISSES .from_b = true, .opcode = RC(ACKNOWLEDGE), .psn = 101, .syndrome = 0x60, .msn = 1
static const struct step said_again[] = {SEND(100, 64),
                                         ACK(100, 1),
                                         SEND(102, 64),
                                         TWICE(MISSES),
                                         {MISSES, .after = 100},
                                         {MISSES, .after = 1},
                                         {MISSES, .after = 100},
                                         {MISSES, .after = 1},
                                         SEND(101, 64),
                                         SEND(102, 64),
                                         ACK(102, 3),
                                         END};

START_TEST(ack_08_mirrored)
{
    static struct run run;
    static struct found found;
    struct lint_totals t;
    for (enum net net = NET_SAME; net < NETS; net++) {
        build(&run, &(struct row){.steps = said_again, .at = LATER}, net);
        judge(&run, &found, &t);
        for (unsigned i = 0; i < found.n; i++)
            ck_assert_msg(found.f[i].verdict != LINT_VIOLATION, "%s: %s at packet %llu", nets[net],
                          found.f[i].rule->id, (unsigned long long)found.f[i].number);
    }
}
END_TEST

/* 101 is answered with too few messages: the answer to a repetition, which nothing shows. */
static const struct step wrong_again[] = {
    SEND(101, 64),
    SEND(102, 64),
    {.opcode = RC(SEND_ONLY), .psn = 101, .len = 64, .ackreq = true, .after = 5000},
    SEND(102, 64),
    ACK(101, 6),
    /* 5 */ ACK(102, 9),
    SEND(103, 64),
    SEND(104, 64),
    ACK(103, 10),
    ACK(104, 11),
    END};

/* "ACK-11 the answers after a wrong one are right" */
START_TEST(ack_11_after_a_wrong_one)
{
    static struct run run;
    static struct found found;
    struct lint_totals t;
    for (enum net net = NET_COUNT; net < NETS; net++) {
        build(&run, &(struct row){.steps = wrong_again, .at = LATER}, net);
        judge(&run, &found, &t);
        for (unsigned i = 0; i < found.n; i++)
            ck_assert_msg(found.f[i].number == 5, "%s: %s", nets[net], found.f[i].dump);
    }
}
END_TEST

/* ACK-11: the first READ of all isn't captured, and counted by the ACK before it. */
static const struct step read_missed[] = {
    {.opcode = RC(SEND_LAST), .psn = 100, .len = 64, .ackreq = true},
    ACK(100, 51),
    SEND(101, 64),
    ACK(101, 52),
    SEND(102, 64),
    /* 5 */ {.opcode = RC(READ_REQUEST), .psn = 103, .dma_len = 8, .gone = true},
    ACK(102, 54),
    RESP(READ_RESP_ONLY, 103, 8, 54),
    {.opcode = RC(READ_REQUEST), .psn = 104, .dma_len = 8},
    RESP(READ_RESP_ONLY, 104, 8, 55),
    /* 10 */ SEND(105, 64),
    ACK(105, 56),
    END};

/* CM-21 CM-24: a challenge names no queue pair; a peer that has the connection doesn't answer. */
static const struct step challenged[] = {{.cm = CM_REQ},
                                         {.cm = CM_REP, .from_b = true},
                                         {.cm = CM_RTU},
                                         {.cm = CM_DREQ, .from_b = true},
                                         SEND(100, 64),
                                         ACK(100, 1),
                                         {.cm = CM_DREQ},
                                         {.cm = CM_DREP, .from_b = true},
                                         END};
static void of_no_queue_pair(struct cm_msg *m)
{
    m->remote_qpn = CM_CHALLENGE_QPN;
}

/* The exchanges themselves. */
static const struct row good[] = {
    {"CM-24 a challenge", challenged, 3, .cm = of_no_queue_pair},
    {"PSN-01 a message missed", start_missed, LATER},
    {"PSN-01 a packet missed", start_within, LATER},
    {"PSN-01 a READ missed", start_reread, LATER},
    {"PSN-01 reordered", start_reordered, LATER},
    {"REQ-12 written down too late", response_late, LATER},
    {"REQ-12 an answer isn't captured", response_missed, 1, .cm = two_at_once},
    {"rc", steps_rc, LATER},
    {"loss", steps_loss, LATER},
    {"rnr", steps_rnr, LATER},
    {"reread", steps_reread, LATER},
    {"reread twice", reread_twice, LATER},
    {"reread, the first answers late (RD-10)", reread_late, LATER},
    {"copied", copied, LATER},
    {"lives", lives, LATER},
    {"lives, ahead (ACK-11)", lives_ahead, LATER},
    {"lives, ahead, and a gap (ACK-11)", lives_gap, LATER},
    {"lives, killed", lives_killed, LATER},
    {"lives, refused", lives_refused, LATER},
    {"dead", steps_dead, LATER},
    {"fatal", steps_fatal, LATER},
    {"uc", steps_uc, LATER},
    {"ud", steps_ud, LATER},
    {"cm", steps_cm, LATER},
    {"cm, nothing executed yet (ACK-05)", nothing_executed, LATER},
};

static void none(const struct row *row, struct run *run, const char *how)
{
    static struct found found;
    struct lint_totals t;
    judge(run, &found, &t);
    for (unsigned i = 0; i < found.n; i++)
        ck_abort_msg("%s%s: %s at packet %llu: %s, expected %s, seen %s (%s)", row->name, how,
                     found.f[i].rule->id, (unsigned long long)found.f[i].number, found.f[i].dump,
                     found.f[i].expected, found.f[i].seen, found.f[i].why);
    ck_assert_uint_eq(t.roce, (unsigned)run->n);
}

/* "RD-10, RSP-06: the repetition of a READ belongs to the connection on which it was sent" */
START_TEST(one_connection)
{
    static const struct row whole[] = {{"repeated", repeated, LATER},
                                       {"overtaken", overtaken, LATER},
                                       {"from the start", from_start, LATER},
                                       {"late start", late_start, LATER}};
    static struct run run;
    static struct found found;
    struct lint_totals t;
    for (enum net net = NET_COUNT; net < NETS; net++) {
        build(&run, &whole[_i], net);
        judge(&run, &found, &t);
        ck_assert_msg(t.flows == 2, "%s%s: %u flows", whole[_i].name, nets[net], t.flows);
        none(&whole[_i], &run, nets[net]);
    }
}
END_TEST

/* A RoCE v1 frame of a RoCEv2 one: a GRH instead of IP and UDP. */
static void to_v1(struct packet *k)
{
    uint8_t f[sizeof(k->f)];
    size_t rest = k->len - k->p.bth_off;
    memcpy(f, k->f, 12);
    wire_put16(f + 12, WIRE_ETHERTYPE_V1);
    memset(f + 14, 0, 8);
    f[14] = 0x60;
    wire_put16(f + 18, (uint16_t)rest);
    f[20] = 0x1B;
    f[21] = 64;
    memcpy(f + 22, k->p.sip.b, 16);
    memcpy(f + 38, k->p.dip.b, 16);
    memcpy(f + 54, k->f + k->p.bth_off, rest);
    k->len = 54 + rest;
    wire_put32le(f + k->len - 4, wire_icrc(f, k->len, 14, 54));
    memcpy(k->f, f, k->len);
}

START_TEST(no_rule_broken)
{
    static struct run run;
    const struct row *row = &good[_i];
    build(&run, row, NET_COUNT);
    none(row, &run, "");
    for (enum net net = NET_SAME; net < NETS; net++) {
        build(&run, row, net);
        none(row, &run, nets[net]);
    }
    for (int i = 0; i < run.n; i++)
        to_v1(&run.packet[i]);
    none(row, &run, " over RoCE v1");
}
END_TEST

/* No packet that the capture missed is a broken rule. */
START_TEST(the_capture_misses_one)
{
    static struct run run, less;
    static struct found found;
    struct lint_totals t;
    build(&run, &good[_i], NET_COUNT);
    for (int gone = 0; gone < run.n; gone++) {
        less.n = 0;
        for (int i = 0; i < run.n; i++)
            if (i != gone)
                less.packet[less.n++] = run.packet[i];
        judge(&less, &found, &t);
        for (unsigned i = 0; i < found.n; i++)
            ck_assert_msg(found.f[i].verdict != LINT_VIOLATION, "%s without %d: %s, %s",
                          good[_i].name, gone + 1, found.f[i].rule->id, found.f[i].dump);
    }
}
END_TEST

/* Requests of a stretch that the capture has lost: the ACK in it is reported as an artefact. */
START_TEST(ack_05_not_captured)
{
    static const struct step steps[] = {SEND(100, 64),
                                        ACK(100, 1),
                                        {.opcode = RC(SEND_ONLY), .psn = 101, .gone = true},
                                        ACK(101, 2),
                                        SEND(102, 64),
                                        ACK(102, 3),
                                        END};
    static struct run run;
    static struct found found;
    struct lint_totals t;
    build(&run, &(struct row){"ACK-05", steps, LATER}, NET_COUNT);
    judge(&run, &found, &t);
    ck_assert_uint_eq(found.n, 1);
    ck_assert_int_eq(found.f[0].verdict, LINT_ARTEFACT);
    ck_assert_str_eq(found.f[0].rule->id, "ACK-05");
    ck_assert_uint_eq(found.f[0].number, 3);
}
END_TEST

/* "ACK-05: where packets change places an ACK may be seen before its request, and be no lie; it is
 * one where they don't" */
START_TEST(ack_05_before_its_request)
{
    static const struct step steps[] = {
        SEND(100, 64), ACK(100, 1),   SEND(102, 64), SEND(101, 64), ACK(101, 2),
        ACK(102, 3),   SEND(103, 64), ACK(105, 6),   SEND(105, 64), SEND(104, 64),
        ACK(104, 5),   ACK(103, 4),   SEND(106, 64), ACK(106, 7),   END};
    static const struct step ordered[] = {SEND(100, 64),
                                          ACK(100, 1),
                                          SEND(101, 64),
                                          ACK(101, 2),
                                          SEND(102, 64),
                                          ACK(104, 5),
                                          SEND(103, 64),
                                          SEND(104, 64),
                                          ACK(103, 4),
                                          ACK(104, 5),
                                          END};
    static struct run run;
    static struct found found;
    struct lint_totals t;
    for (enum net net = NET_SAME; net < NETS; net++) {
        build(&run, &(struct row){"ACK-05", steps, LATER}, net);
        judge(&run, &found, &t);
        for (unsigned i = 0; i < found.n; i++)
            ck_assert_msg(found.f[i].verdict != LINT_VIOLATION, "%s: %s: %s", nets[net],
                          found.f[i].rule->id, found.f[i].dump);
        build(&run, &(struct row){"ACK-05", ordered, LATER}, net);
        judge(&run, &found, &t);
        ck_assert_msg(t.findings[LINT_VIOLATION], "%s", nets[net]);
    }
}
END_TEST

/* "ACK-08: where a mirror shows every packet two, three or four times, and no IP identification
 * tells, a sequence NAK has been sent once all the same" */
START_TEST(ack_08_all_several_times)
{
    static struct run run, all;
    static struct found found;
    struct lint_totals t;
    for (enum net net = 0; net < NETS; net++) {
        all = (struct run){0};
        build(&run, &(struct row){.steps = steps_loss, .at = LATER}, net);
        for (int i = 0; i < run.n; i++)
            for (int k = 0; k < _i; k++) {
                append(&all, &run.packet[i]);
                all.packet[all.n - 1].ns = run.packet[i].ns + (uint64_t)k * 700;
            }
        judge(&all, &found, &t);
        ck_assert_msg(!found.n, "%d times%s: %s", _i, nets[net], found.f[0].dump);
    }
}
END_TEST

/* "ACK-05: the ACK of a SEND before a READ that wasn't captured doesn't show that the READ's answer
 * was made up: no ACK has the PSN of a READ" */
START_TEST(ack_05_a_read_not_captured)
{
    static const struct step steps[] = {
        SEND(100, 64), ACK(100, 1), RESP(READ_RESP_MIDDLE, 103, 1024, 0),
        SEND(101, 64), ACK(101, 3), END};
    static struct run run;
    static struct found found;
    struct lint_totals t;
    build(&run, &(struct row){"ACK-05", steps, LATER}, NET_COUNT);
    judge(&run, &found, &t);
    ck_assert_uint_eq(found.n, 1);
    ck_assert_str_eq(found.f[0].rule->id, "ACK-05");
    ck_assert_int_eq(found.f[0].verdict, LINT_UNDECIDABLE);
}
END_TEST

/* "ACK-08: a packet refused by an RNR NAK has arrived, so the sequence NAK after it is the first
 * one for its gap; whether it may be sent is another rule's matter (RNR-02)" */
START_TEST(ack_08_came_in_between)
{
    static const struct step steps[] = {SEND(100, 64),
                                        ACK(100, 1),
                                        SEND(101, 64),
                                        NAK(101, 0x21, 1),
                                        SEND(101, 64),
                                        SEND(102, 64),
                                        SEND(101, 64),
                                        SEND(102, 64),
                                        NAK(101, 0x21, 1),
                                        NAK(101, 0x60, 1),
                                        NAK(101, 0x21, 1),
                                        NAK(101, 0x60, 1),
                                        END};
    static struct run run;
    static struct found found;
    struct lint_totals t;
    unsigned rnr_02 = 0;
    build(&run, &(struct row){"ACK-08", steps, LATER}, NET_COUNT);
    judge(&run, &found, &t);
    for (unsigned i = 0; i < found.n; i++) {
        ck_assert_str_ne(found.f[i].rule->id, "ACK-08");
        rnr_02 += !strcmp(found.f[i].rule->id, "RNR-02");
    }
    ck_assert_uint_eq(rnr_02, 2);
}
END_TEST

/* "ACK-11: an answer that counts a message of which the request comes next is captured before it
 * where packets change places, and is wrong where they don't" */
START_TEST(ack_11_counted_before_it_came)
{
#define COUNTED_BEFORE(one, other)                                                                 \
    SEND(100, 64), ACK(100, 1), SEND(one, 64), SEND(other, 64), ACK(102, 3),                       \
        {.opcode = RC(READ_REQUEST), .psn = 103, .dma_len = 2048},                                 \
        RESP(READ_RESP_FIRST, 103, 1024, 4), RESP(READ_RESP_LAST, 104, 1024, 5), SEND(105, 64),    \
        ACK(105, 5), END
    static const struct step ordered[] = {COUNTED_BEFORE(101, 102)};
    static const struct step disorder[] = {COUNTED_BEFORE(102, 101)};
    static struct run run;
    static struct found found;
    struct lint_totals t;
    for (enum net net = 0; net < NETS; net++) {
        build(&run, &(struct row){"ACK-11", _i ? disorder : ordered, LATER}, net);
        judge(&run, &found, &t);
        ck_assert_msg(found.n == 1, "%s: %u found", nets[net], found.n);
        ck_assert_str_eq(found.f[0].rule->id, "ACK-11");
        ck_assert_int_eq(found.f[0].verdict, _i ? LINT_UNDECIDABLE : LINT_VIOLATION);
    }
}
END_TEST

/* "REQ-28: where the answers of one connection are captured before all it has asked, and another
 * one has asked otherwise with the same PSNs, they aren't taken for the other one's" */
#define FEW_READS 24
static struct step few_sends[FEW_READS + 1], few_reads[FEW_READS + 1], few_answers[FEW_READS + 1];

START_TEST(req_28_answers_first)
{
    static struct run part, all;
    static struct found found;
    struct lint_totals t;
    for (uint32_t i = 0; i < FEW_READS; i++) {
        few_sends[i] = (struct step)SEND(100 + i, 64);
        few_reads[i] = (struct step){.opcode = RC(READ_REQUEST), .psn = 100 + i, .dma_len = 8};
        few_answers[i] = (struct step)RESP(READ_RESP_ONLY, 100 + i, 8, i + 1);
    }
    if (_i) { /* its first answer fits both */
        few_reads[0] = (struct step)SEND(100, 64);
        few_answers[0] = (struct step)ACK(100, 1);
    }
    few_sends[FEW_READS] = few_reads[FEW_READS] = few_answers[FEW_READS] = (struct step)END;
    struct {
        const struct step *steps;
        change_pkt *pkt;
    } parts[] = {{few_sends, NULL}, {few_answers, other_queue_pair}, {few_reads, other_queue_pair}};
    for (enum net net = 0; net < NETS; net++) {
        all.n = 0;
        for (size_t k = 0; k < 3; k++) {
            build(&part, &(struct row){.steps = parts[k].steps, .at = ALL, .pkt = parts[k].pkt},
                  net);
            for (int i = 0; i < part.n; i++)
                append(&all, &part.packet[i]);
        }
        judge(&all, &found, &t);
        for (unsigned i = 0; i < found.n; i++)
            ck_assert_msg(found.f[i].verdict != LINT_VIOLATION, "%s: %s: %s", nets[net],
                          found.f[i].rule->id, found.f[i].dump);
    }
}
END_TEST

/* "ACK-05: an ACK isn't taken for one of a READ of another connection, where the capture has only
 * that"
 */
START_TEST(ack_05_whose_response)
{
    static const struct step reads_alone[] = {
        {.opcode = RC(READ_REQUEST), .psn = 100, .dma_len = 8},
        {.opcode = RC(READ_REQUEST), .psn = 101, .dma_len = 8},
        {.opcode = RC(FETCH_ADD), .psn = 102},
        END};
    static const struct step acks_alone[] = {ACK(100, 1), ACK(101, 2), ACK(102, 3), END};
    static struct run part, all;
    static struct found found;
    struct lint_totals t;
    for (enum net net = 0; net < NETS; net++) {
        all.n = 0;
        build(&part, &(struct row){.steps = reads_alone, .at = LATER}, net);
        for (int i = 0; i < part.n; i++)
            append(&all, &part.packet[i]);
        build(&part, &(struct row){.steps = acks_alone, .at = ALL, .pkt = other_queue_pair}, net);
        for (int i = 0; i < part.n; i++)
            append(&all, &part.packet[i]);
        judge(&all, &found, &t);
        ck_assert_msg(!found.n, "%s: %s: %s", nets[net], found.f[0].rule->id, found.f[0].dump);
    }
}
END_TEST

/* With any number of other hosts' flows since, two directions find each other. */
static void judge_packet(struct lint *l, const struct packet *p, uint64_t number)
{
    struct lint_frame f = {.number = number,
                           .ns = number * US,
                           .data = p->f,
                           .len = (uint32_t)p->len,
                           .wire_len = (uint32_t)p->len};
    lint_packet(l, &f, NULL);
}

START_TEST(joined_among_many_hosts)
{
    static const struct step steps[] = {SEND(100, 64), ACK(100, 1), END};
    static struct run run;
    struct lint *l = lint_new(NULL, NULL, 0);
    build(&run, &(struct row){.steps = steps, .at = LATER}, NET_COUNT);
    struct packet other = run.packet[0];
    judge_packet(l, &run.packet[0], 1);
    for (uint64_t i = 0; i < 1500; i++) {
        wire_put16(other.f + other.p.ip_off + 14, (uint16_t)(i + 16));
        wire_put16(other.f + other.p.ip_off + 10, 0);
        wire_icrc_seal(other.f, other.len, other.p.ip_off, other.p.bth_off);
        judge_packet(l, &other, i + 2);
    }
    judge_packet(l, &run.packet[1], 1502);
    lint_end(l);
    struct lint_flow_info info;
    ck_assert(lint_flow_info(l, 0, &info));
    ck_assert_uint_eq(info.peer, 1501);
    lint_free(l);
}
END_TEST

/* "ICRC-08: on a link that damages most packets, many in a row are no sender's habit; but they are
 * one if all were right before" */
START_TEST(icrc_08_damaged_in_a_row)
{
    static struct step steps[41];
    static struct run run;
    static struct found found;
    struct lint_totals t;
    for (uint32_t i = 0; i < 40; i++)
        steps[i] = (struct step){.opcode = RC(SEND_ONLY), .psn = 100 + i, .len = 64};
    steps[40] = (struct step)END;
    for (enum net net = 0; net < NETS; net++) {
        build(&run, &(struct row){.steps = steps, .at = LATER}, net);
        for (int i = 0; i < run.n; i++) {
            struct packet *k = &run.packet[i];
            if (i >= 20 || (_i && i % 4))
                k->f[k->len - 9 - (size_t)(i % 7)] ^= (uint8_t)(1 + i);
        }
        judge(&run, &found, &t);
        ck_assert_msg(t.findings[LINT_VIOLATION] == !_i && found.n <= 4, "%s: %llu of %u",
                      nets[net], (unsigned long long)t.findings[LINT_VIOLATION], found.n);
    }
}
END_TEST

/* "ICRC-08: if addresses were changed after the iCRC was made, as by tools for anonymizing, packets
 * of different lengths show it, and later packets are judged" */
static void hidden(struct packet *k)
{
    uint8_t *ip = k->f + k->p.ip_off;
    bool v4 = k->p.ip_version == 4;
    ip[v4 ? 12 : 8] ^= 0x42;
    ip[v4 ? 16 : 24] ^= 0x42;
    if (!v4)
        return;
    wire_put16(ip + 10, 0);
    wire_csum_put(ip + 10, wire_csum_add(0, ip, WIRE_IPV4_LEN));
}

START_TEST(icrc_08_addresses_changed)
{
    static struct step sends_of_64[25]; /* one length in each direction */
    for (uint32_t i = 0; i < 12; i++) {
        sends_of_64[2 * i] = (struct step)SEND(100 + i, 64);
        sends_of_64[2 * i + 1] = (struct step)ACK(100 + i, i + 1);
    }
    sends_of_64[24] = (struct step)END;
    static struct run run;
    static struct found found;
    struct lint_totals t;
    for (enum net net = 0; net < NETS; net++) {
        struct row row = {
            .steps = _i ? sends_of_64 : steps_rc, .at = ALL, .octets = hidden, .keep_icrc = true};
        build(&run, &row, net);
        judge(&run, &found, &t);
        unsigned artefacts = 0;
        for (unsigned i = 0; i < found.n; i++)
            artefacts +=
                found.f[i].verdict == LINT_ARTEFACT && !strcmp(found.f[i].rule->id, "ICRC-08");
        ck_assert_msg(artefacts == 2 && found.n == 2, "%s: %u of %u", nets[net], artefacts,
                      found.n);
        ck_assert_uint_eq(t.findings[LINT_VIOLATION], 0);
        ck_assert_msg(t.corrupt < (_i ? 12 : 8), "%s: %llu", nets[net],
                      (unsigned long long)t.corrupt);
    }
}
END_TEST

/* "ICRC-08: where one direction has no iCRCs, and the other end, which has, acts upon its packets,
 * they were captured before the NIC had made them; not where a single one has none" */
START_TEST(icrc_08_before_the_nic)
{
    static struct step steps[41];
    static struct run run;
    static struct found found;
    struct lint_totals t;
    enum lint_verdict verdict = _i == 0   ? LINT_ARTEFACT
                                : _i == 1 ? LINT_UNDECIDABLE
                                          : LINT_VIOLATION;
    for (uint32_t i = 0; i < 20; i++) {
        steps[2 * i] = (struct step)SEND(100 + i, 64);
        steps[2 * i + 1] = (struct step)ACK(100 + i, i + 1);
    }
    steps[40] = (struct step)END;
    for (enum net net = 0; net < NETS; net++) {
        build(&run, &(struct row){.steps = steps, .at = LATER}, net);
        for (int i = 0; i < run.n; i++) {
            struct packet *k = &run.packet[i];
            if (_i == 2 ? i == 10 : _i == 3 || i % 2 == _i)
                memset(k->f + k->len - 4, 0, 4);
        }
        judge(&run, &found, &t);
        ck_assert_uint_eq(found.n, _i == 3 ? 2 : 1);
        ck_assert_str_eq(found.f[0].rule->id, "ICRC-08");
        ck_assert_msg(found.f[0].verdict == verdict, "%d: %s%s", _i,
                      lint_verdict_name(found.f[0].verdict), nets[net]);
    }
}
END_TEST

/* "ICRC-08: facts about a host from one flow count for its other flows". The facts come from the
 * CM's datagrams, or from an answered queue pair for one without answers. NAKs alone are not
 * enough. */
START_TEST(icrc_08_before_the_nic_of_a_host)
{
    static const struct step refused[] = {SEND(100, 64), NAK(100, 0x61, 0), END};
    static const struct step two[] = {
        SEND(100, 64),  ACK(100, 1), SEND(101, 64), ACK(101, 2), SEND(5000, 64),
        SEND(5001, 64), END};
    static const struct step *const steps[] = {steps_cm, two, refused};
    static struct run run;
    static struct found found;
    struct lint_totals t;
    for (enum net net = 0; net < NETS; net++) {
        build(&run, &(struct row){.steps = steps[_i], .at = LATER}, net);
        for (int i = 0; i < run.n; i++) {
            struct packet *k = &run.packet[i];
            if (k->p.psn >= 5000 && k->p.dqpn != 1)
                k->f[k->p.bth_off + 7] ^= 0x40; /* to another queue pair */
            if (k->p.dmac[5] == 2)
                memset(k->f + k->len - 4, 0, 4);
        }
        judge(&run, &found, &t);
        ck_assert_msg(found.n == (_i < 2 ? 2 : 1), "%d: %u findings", _i, found.n);
        for (unsigned i = 0; i < found.n; i++) {
            ck_assert_str_eq(found.f[i].rule->id, "ICRC-08");
            ck_assert_msg(found.f[i].verdict == (_i < 2 ? LINT_ARTEFACT : LINT_VIOLATION),
                          "%d: %s%s", _i, lint_verdict_name(found.f[i].verdict), nets[net]);
        }
    }
}
END_TEST

/* RD-12, RTX-05: pieces of a READ that are asked for one by one break them, or show a capture of
 * selective repeat that begins in the middle: then opcodes of the ends' own come sooner or later.
 */
START_TEST(start_amid_another_protocol)
{
    static const struct step pieces[] = {
        {.opcode = RC(READ_REQUEST), .psn = 100, .dma_len = 4096, .va = 0x1000},
        RESP(READ_RESP_FIRST, 100, 1024, 1),
        RESP(READ_RESP_LAST, 103, 1024, 1),
        {.opcode = RC(READ_REQUEST), .psn = 101, .dma_len = 1024, .va = 0x1400},
        RESP(READ_RESP_ONLY, 101, 1024, 1),
        SEND(104, 64),
        ACK(104, 2),
        SEND(105, 64),
        ACK(105, 3),
        END};
    static struct run run;
    for (enum net net = 0; net < NETS; net++)
        for (int own = 0; own < 3; own++) { /* none, the responder's, the requester's */
            struct found found = {0};
            struct lint_totals t;
            build(&run, &(struct row){.name = "", .steps = pieces}, net);
            struct packet *p = &run.packet[own == 1 ? run.at[6] : run.at[5]];
            if (own) {
                p->f[p->p.bth_off] = 0xD1;
                wire_icrc_seal(p->f, p->len, p->p.ip_off, p->p.bth_off);
            }
            judge(&run, &found, &t);
            unsigned violations = 0, doubts = 0;
            for (unsigned i = 0; i < found.n; i++) {
                violations += found.f[i].verdict == LINT_VIOLATION;
                doubts += found.f[i].verdict == LINT_UNDECIDABLE &&
                          !strcmp(found.f[i].rule->id, "RD-12") && found.f[i].why[0];
            }
            ck_assert_msg(own ? !violations && doubts : violations && !doubts,
                          "own %d%s: %u violations, %u doubts about RD-12", own, nets[net],
                          violations, doubts);
            ck_assert_uint_eq(t.findings[LINT_VIOLATION], violations);
        }
}
END_TEST

static unsigned violations_of(const struct step *steps, enum net net, struct found *found)
{
    static struct run run;
    struct lint_totals t;
    build(&run, &(struct row){.name = "", .steps = steps}, net);
    judge(&run, found, &t);
    return (unsigned)t.findings[LINT_VIOLATION];
}

/* ACK-05, ACK-07: a PSN that is answered, but later than all captured requests, was sent before the
 * capture. */
START_TEST(start_amid_answers)
{
    static struct found found;
    for (enum net net = 0; net < NETS; net++)
        ck_assert_msg(!violations_of(start_amid, net, &found), "%s at packet %llu%s",
                      found.f[0].rule->id, (unsigned long long)found.f[0].number, nets[net]);
}
END_TEST

/* ACK-11: if each direction is captured in a different place, and answers are recorded before their
 * requests, they may count requests that are recorded later. Once is no sign of that. */
#define ADD(psn_)                                                                                  \
    {                                                                                              \
        .opcode = RC(FETCH_ADD), .psn = psn_                                                       \
    }
#define COUNTS_AHEAD(...)                                                                          \
    SEND(100, 64), ACK(100, 1), SEND(101, 64), ACK(101, 2), SEND(102, 64), ACK(102, 4),            \
        SEND(103, 64), ACK(103, 4), RESP(ATOMIC_ACK, 104, 0, 5), ADD(104), __VA_ARGS__,            \
        SEND(106, 64), ACK(106, 7), END
START_TEST(ack_11_two_places)
{
    static const struct step once[] = {COUNTS_AHEAD(ADD(105), RESP(ATOMIC_ACK, 105, 0, 6))};
    static const struct step twice[] = {COUNTS_AHEAD(RESP(ATOMIC_ACK, 105, 0, 6), ADD(105))};
    static struct found found;
    for (enum net net = 0; net < NETS; net++)
        for (unsigned b = 0; b < 2; b++) {
            unsigned violations = violations_of(b ? twice : once, net, &found), doubts = 0;
            for (unsigned i = 0; i < found.n; i++)
                doubts += !strcmp(found.f[i].rule->id, "ACK-11") && found.f[i].why[0];
            ck_assert_msg(violations == !b && doubts == b, "%d: %u and %u%s", b, violations, doubts,
                          nets[net]);
        }
}
END_TEST

/* ... or each comes after its own request, but counts the next one. */
#define READ_COUNTS_NEXT(psn_, msn_)                                                               \
    {.opcode = RC(READ_REQUEST), .psn = psn_, .dma_len = 8}, RESP(READ_RESP_ONLY, psn_, 8, msn_)
START_TEST(ack_11_two_places_after)
{
    static const struct step late[] = {SEND(100, 64),
                                       ACK(100, 51),
                                       READ_COUNTS_NEXT(101, 53),
                                       READ_COUNTS_NEXT(102, 54),
                                       READ_COUNTS_NEXT(103, 55),
                                       READ_COUNTS_NEXT(104, 56),
                                       READ_COUNTS_NEXT(105, 57),
                                       READ_COUNTS_NEXT(106, 57),
                                       SEND(107, 64),
                                       ACK(107, 58),
                                       END};
    static struct found found;
    for (enum net net = 0; net < NETS; net++)
        ck_assert_msg(!violations_of(late, net, &found), "%s: %s%s", found.f[0].rule->id,
                      found.f[0].dump, nets[net]);
}
END_TEST

/* ACK-11: an ACK that counts a READ of which the capture shows the answer only. */
START_TEST(ack_11_a_read_not_captured)
{
    static struct found found;
    for (enum net net = 0; net < NETS; net++)
        ck_assert_msg(!violations_of(read_missed, net, &found), "%s: %s%s", found.f[0].rule->id,
                      found.f[0].dump, nets[net]);
}
END_TEST

/* RNR-02: the sequence NAK may have been sent first, if packets are reordered and no counter shows
 * the order of the responder's answers. */
START_TEST(rnr_02_overtaken)
{
    static const struct step steps[] = {
        SEND(100, 64), ACK(100, 1),       SEND(101, 64),     SEND(103, 64),
        SEND(102, 64), NAK(101, 0x21, 1), NAK(101, 0x60, 1), END};
    /* After the capture point: then the answers show it. */
    static const struct step after[] = {
        SEND(100, 64),     ACK(100, 1),   SEND(101, 64),     SEND(102, 64),     SEND(103, 64),
        NAK(103, 0x60, 3), ACK(102, 3),   NAK(101, 0x60, 1), SEND(103, 64),     ACK(103, 4),
        SEND(104, 64),     SEND(105, 64), NAK(104, 0x21, 4), NAK(104, 0x60, 4), END};
    static struct found found;
    for (enum net net = 0; net < NETS; net++)
        for (int b = 0; b < 2; b++) {
            bool violation = violations_of(b ? after : steps, net, &found) != 0;
            const struct lint_finding *f = &found.f[found.n - 1];
            ck_assert_str_eq(f->rule->id, "RNR-02");
            ck_assert_msg(violation == (net == NET_COUNT), "%s: %s%s", f->rule->id,
                          lint_verdict_name(f->verdict), nets[net]);
        }
}
END_TEST

/* RNR-02: of a SEND repeated, each transmission has had its RNR NAK, so none was lost. */
START_TEST(rnr_02_each_answered)
{
    static const struct step steps[] = {
        SEND(100, 64),
        ACK(100, 1),
        SEND(101, 64),
        NAK(101, 0x21, 1),
        {.opcode = RC(SEND_ONLY), .psn = 101, .len = 64, .ackreq = true, .after = 900},
        SEND(102, 64),
        NAK(101, 0x21, 1),
        NAK(101, 0x60, 1),
        END};
    static struct found found;
    for (enum net net = 0; net < NETS; net++) {
        ck_assert_uint_eq(violations_of(steps, net, &found), 1);
        ck_assert_str_eq(found.f[0].rule->id, "RNR-02");
    }
}
END_TEST

static void on_finding(void *ctx, const struct lint_finding *f)
{
    struct found *found = ctx;
    if (found->n < 32)
        found->f[found->n++] = *f;
}

static uint32_t tagged(uint8_t *out, const struct packet *k, uint16_t vid)
{
    memcpy(out, k->f, 12);
    wire_put16(out + 12, 0x8100);
    wire_put16(out + 14, vid);
    memcpy(out + 16, k->f + 12, k->len - 12);
    return (uint32_t)k->len + 4;
}

static void routed(uint8_t *out, const struct packet *k)
{
    uint8_t *ip = out + k->p.ip_off;
    memcpy(out, k->f, k->len);
    out[11]++; /* the router's address */
    if (k->p.ip_version == 6) {
        ip[7]--;
        return;
    }
    ip[8]--;
    ip[10] = ip[11] = 0;
    wire_csum_put(ip + 10, wire_csum_add(0, ip, 20));
}

enum twice { TAG_AND_NONE, TWO_TAGS, TWO_HOPS, TWICE };

/* A switch that mirrors incoming and outgoing packets shows each packet twice: in two VLANs, with
 * and without a tag, or before and after a hop if it routes. */
START_TEST(mirrored_twice)
{
    static struct run run;
    for (enum net net = 0; net < NETS; net++)
        for (enum twice other = 0; other < TWICE; other++) {
            struct found found = {0};
            struct lint *l = lint_new(on_finding, &found, 0);
            struct lint_flow_info info;
            uint64_t again = 0;
            build(&run, &(struct row){.name = "", .steps = steps_rc}, net);
            for (int i = 0; i < run.n; i++) {
                uint8_t one[4500], two[4500];
                const struct packet *k = &run.packet[i];
                struct lint_frame f = {.number = 2 * (uint64_t)i + 1, .ns = k->ns, .data = one};
                f.len = f.wire_len = tagged(one, k, 10);
                if (other == TWO_HOPS) {
                    f.data = k->f;
                    f.len = f.wire_len = (uint32_t)k->len;
                }
                lint_packet(l, &f, NULL);
                f = (struct lint_frame){.number = f.number + 1, .ns = f.ns + 300, .data = two};
                f.len = f.wire_len = other == TWO_TAGS ? tagged(two, k, 20) : (uint32_t)k->len;
                if (other == TAG_AND_NONE)
                    f.data = k->f;
                if (other == TWO_HOPS)
                    routed(two, k);
                lint_packet(l, &f, NULL);
            }
            lint_end(l);
            ck_assert_msg(!found.n, "%s%s", found.f[0].rule->id, nets[net]);
            for (uint32_t id = 0; lint_flow_info(l, id, &info); id++) {
                ck_assert_uint_eq(info.duplicates, 0);
                again += info.again;
            }
            ck_assert_int_eq((int)again, run.n);
            lint_free(l);
        }
}
END_TEST

/* WIRE-10: only the first fragment of a datagram has its port: the others may have any port. */
START_TEST(fragments_of_others)
{
    static struct run run;
    for (int options = 0; options < 2; options++) {
        struct found found = {0};
        struct lint_totals t;
        build(&run, &(struct row){.name = "", .steps = steps_ud}, NET_COUNT);
        struct packet *k = &run.packet[0];
        uint8_t *ip = k->f + k->p.ip_off;
        wire_put16(ip + 6, 0x2000 | 185);
        ip[0] = (uint8_t)(0x45 + options);
        ip[10] = ip[11] = 0;
        wire_csum_put(ip + 10, wire_csum_add(0, ip, (size_t)(ip[0] & 15) * 4));
        judge(&run, &found, &t);
        ck_assert_msg(!found.n, "options %d: %s", options, found.f[0].rule->id);
        ck_assert_uint_eq(t.other, 1);
        ck_assert_uint_eq(t.roce, 1);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("lint good");
    TCase *t = tcase_create("lint good");
    tcase_add_loop_test(t, no_rule_broken, 0, sizeof(good) / sizeof(*good));
    tcase_add_test(t, two_connections);
    tcase_add_test(t, whose_answers);
    tcase_add_loop_test(t, a_port_for_each_queue_pair, 0, 2);
    tcase_add_test(t, ack_08_mirrored);
    tcase_add_test(t, ack_11_after_a_wrong_one);
    tcase_add_loop_test(t, one_connection, 0, 4);
    tcase_add_loop_test(t, the_capture_misses_one, 0, sizeof(good) / sizeof(*good));
    tcase_add_test(t, ack_05_not_captured);
    tcase_add_test(t, ack_05_before_its_request);
    tcase_add_test(t, ack_05_a_read_not_captured);
    tcase_add_test(t, ack_08_came_in_between);
    tcase_add_loop_test(t, ack_08_all_several_times, 2, 5);
    tcase_add_loop_test(t, req_28_answers_first, 0, 2);
    tcase_add_test(t, ack_05_whose_response);
    tcase_add_test(t, joined_among_many_hosts);
    tcase_add_loop_test(t, icrc_08_damaged_in_a_row, 0, 2);
    tcase_add_loop_test(t, icrc_08_before_the_nic, 0, 4);
    tcase_add_loop_test(t, icrc_08_before_the_nic_of_a_host, 0, 3);
    tcase_add_loop_test(t, icrc_08_addresses_changed, 0, 2);
    tcase_add_loop_test(t, ack_11_counted_before_it_came, 0, 2);
    tcase_add_test(t, start_amid_another_protocol);
    tcase_add_test(t, start_amid_answers);
    tcase_add_test(t, ack_11_two_places);
    tcase_add_test(t, ack_11_two_places_after);
    tcase_add_test(t, ack_11_a_read_not_captured);
    tcase_add_test(t, rnr_02_overtaken);
    tcase_add_test(t, rnr_02_each_answered);
    tcase_add_test(t, fragments_of_others);
    tcase_add_test(t, mirrored_twice);
    suite_add_tcase(s, t);
    return unit_run(s);
}
