/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Each rule that lint knows of responses: READ responses, ATOMIC acknowledges, ACKs and NAKs,
 * broken once: see lint_rows.h.
 */
#include <string.h>

#include "lint_rows.h"
#include "unit.h"
#include "wire_bytes.h"

static const struct step send3[] = {{.opcode = RC(SEND_FIRST), .psn = 100, .len = 1024},
                                    {.opcode = RC(SEND_MIDDLE), .psn = 101, .len = 1024},
                                    {.opcode = RC(SEND_LAST), .psn = 102, .len = 5, .ackreq = true},
                                    ACK(102, 1),
                                    END};

/* READs of several packets, one after the other. */
#define READ3(psn_, msn_)                                                                          \
    {.opcode = RC(READ_REQUEST), .psn = psn_, .dma_len = 3072, .va = 0x1000},                      \
        RESP(READ_RESP_FIRST, psn_, 1024, msn_), RESP(READ_RESP_MIDDLE, psn_ + 1, 1024, msn_),     \
        RESP(READ_RESP_LAST, psn_ + 2, 1024, msn_)
static const struct step steps_reads[] = {READ3(100, 1), READ3(103, 2), READ3(106, 3),
                                          SEND(109, 8),  ACK(109, 4),   END};

static const struct step rnr_loss[] = {
    SEND(100, 64),
    ACK(100, 1),
    {.opcode = RC(SEND_ONLY), .psn = 101, .len = 64, .gone = true},
    SEND(102, 64),
    NAK(101, 0x60, 1),
    /* 5 */ SEND(101, 64),
    SEND(102, 64),
    ACK(102, 3),
    SEND(103, 64),
    NAK(103, 0x20 | 14, 3),
    /* 10 */ {.opcode = RC(SEND_ONLY), .psn = 103, .len = 64, .ackreq = true, .after = 500},
    ACK(103, 4),
    END};

/* One RNR NAK is obeyed and one isn't: perhaps that one never arrived, and this is a time-out. */
#define REFUSED(psn_, msn_, wait_)                                                                 \
    SEND(psn_, 64), NAK(psn_, 0x20 | 14, msn_),                                                    \
        {.opcode = RC(SEND_ONLY), .psn = psn_, .len = 64, .ackreq = true, .after = wait_},         \
        ACK(psn_, (msn_) + 1)
static const struct step rnr_obeyed[] = {
    SEND(98, 64),          ACK(98, 1),           SEND(99, 64), ACK(99, 2),
    REFUSED(100, 2, 1400), REFUSED(101, 3, 500), END};
static const struct step rnr_disobeyed[] = {
    SEND(98, 64),          ACK(98, 1),           SEND(99, 64),         ACK(99, 2),
    REFUSED(100, 2, 1400), REFUSED(101, 3, 500), REFUSED(102, 4, 600), END};

static const struct step refused[] = {
    SEND(100, 64),
    ACK(100, 1),
    {.opcode = RC(WRITE_ONLY), .psn = 101, .len = 64, .dma_len = 64, .ackreq = true},
    NAK(101, 0x62, 1),
    END};

/* Messages that are under way at once, and READs and ATOMICs among them. */
static const struct step pipelined[] = {SEND(100, 64),
                                        ACK(100, 1),
                                        {.opcode = RC(FETCH_ADD), .psn = 101},
                                        RESP(ATOMIC_ACK, 101, 0, 2),
                                        SEND(102, 64),
                                        /* 5 */ SEND(103, 64),
                                        SEND(104, 64),
                                        ACK(102, 3),
                                        ACK(103, 4),
                                        ACK(104, 5),
                                        /* 10 */ {.opcode = RC(FETCH_ADD), .psn = 105},
                                        RESP(ATOMIC_ACK, 105, 0, 6),
                                        SEND(106, 64),
                                        SEND(107, 64),
                                        ACK(106, 7),
                                        /* 15 */ ACK(107, 8),
                                        {.opcode = RC(READ_REQUEST), .psn = 108, .dma_len = 8},
                                        RESP(READ_RESP_ONLY, 108, 8, 9),
                                        SEND(109, 64),
                                        ACK(109, 10),
                                        END};

/* READs, each followed by another request under way. */
static const struct step reads_and_sends[] = {
    {.opcode = RC(READ_REQUEST), .psn = 100, .dma_len = 8},
    SEND(101, 64),
    SEND(102, 64),
    RESP(READ_RESP_ONLY, 100, 8, 1),
    ACK(101, 2),
    /* 5 */ {.opcode = RC(READ_REQUEST), .psn = 103, .dma_len = 8},
    SEND(104, 64),
    RESP(READ_RESP_ONLY, 103, 8, 4),
    ACK(104, 5),
    SEND(105, 64),
    /* 10 */ ACK(105, 6),
    {.opcode = RC(FETCH_ADD), .psn = 106},
    RESP(ATOMIC_ACK, 106, 0, 7),
    END};

/* 150 was never sent. */
static const struct step never_read[] = {
    SEND(100, 64),         ACK(100, 1), SEND(101, 64), ACK(101, 2), RESP(READ_RESP_ONLY, 150, 8, 3),
    /* 5 */ SEND(102, 64), ACK(102, 3), SEND(103, 64), ACK(103, 4), END};

/* A READ of several packets, and a SEND that was under way when it was answered. */
static const struct step read_and_send[] = {
    {.opcode = RC(SEND_FIRST), .psn = 99, .len = 1024},
    {.opcode = RC(SEND_LAST), .psn = 100, .len = 5, .ackreq = true},
    ACK(100, 1),
    SEND(101, 64),
    ACK(101, 2),
    /* 5 */ {.opcode = RC(READ_REQUEST), .psn = 102, .dma_len = 3072, .va = 0x1000},
    SEND(105, 64),
    RESP(READ_RESP_FIRST, 102, 1024, 3),
    RESP(READ_RESP_MIDDLE, 103, 1024, 3),
    RESP(READ_RESP_LAST, 104, 1024, 3),
    ACK(105, 4),
    END};

/* From 102 on messages are counted as they are, or one too many, or one too few. */
#define FROM_102(msn_)                                                                             \
    SEND(100, 64), ACK(100, 1), SEND(101, 64), ACK(101, 2), SEND(102, 64), ACK(102, msn_),         \
        SEND(103, 64), ACK(103, (msn_) + 1), SEND(104, 64), ACK(104, (msn_) + 2), SEND(105, 64),   \
        ACK(105, (msn_) + 3), SEND(106, 64), SEND(107, 64), ACK(106, (msn_) + 4),                  \
        ACK(107, (msn_) + 5), END
static const struct step acks[] = {FROM_102(3)}, one_too_many[] = {FROM_102(4)},
                         one_too_few[] = {FROM_102(2)};

/* The answer to the READ counts the SEND after it, which was sent before and not captured. */
static const struct step counted_early[] = {SEND(100, 64),
                                            ACK(100, 1),
                                            SEND(101, 64),
                                            ACK(101, 2),
                                            {.opcode = RC(READ_REQUEST), .psn = 102, .dma_len = 8},
                                            /* 5 */ RESP(READ_RESP_ONLY, 102, 8, 4),
                                            {.opcode = RC(READ_REQUEST), .psn = 102, .dma_len = 8},
                                            RESP(READ_RESP_ONLY, 102, 8, 4),
                                            SEND(103, 64),
                                            ACK(103, 4),
                                            SEND(104, 64),
                                            ACK(104, 5),
                                            END};

/* Perhaps the first ACK was lost after the capture point. */
static const struct step answered_again[] = {
    {.cm = CM_REQ},
    {.cm = CM_REP, .from_b = true},
    {.cm = CM_RTU},
    SEND(100, 64),
    ACK(100, 1),
    /* 5 */ SEND(101, 64),
    {.opcode = RC(SEND_ONLY), .psn = 101, .len = 64, .ackreq = true, .after = 5000},
    ACK(100, 1),
    {.opcode = RC(SEND_ONLY), .psn = 101, .len = 64, .ackreq = true, .after = 5000},
    {.opcode = RC(SEND_ONLY), .psn = 101, .len = 64, .ackreq = true, .after = 5000},
    END};

/* PSNs from before a connection's first one. */
static const struct step ack_first[] = {{.cm = CM_REQ},
                                        {.cm = CM_REP, .from_b = true},
                                        {.cm = CM_RTU},
                                        ACK(50, 0),
                                        SEND(100, 64),
                                        ACK(100, 1),
                                        END};
static const struct step second_life[] = {
    SEND(50, 64),          ACK(50, 7),  {.cm = CM_REQ}, {.cm = CM_REP, .from_b = true},
    {.cm = CM_RTU},
    /* 5 */ SEND(100, 64), ACK(100, 1), ACK(50, 7),     END};

/* A repeated SEND is acknowledged with its own PSN, though a later one has been executed; with the
 * count as it was, or as it is now. */
#define REPEATED(msn_)                                                                             \
    {                                                                                              \
        SEND(100, 64), ACK(100, 1), SEND(101, 64), SEND(102, 64), ACK(101, 2), ACK(102, 3),        \
            SEND(101, 64), SEND(102, 64), ACK(101, msn_), ACK(102, 3), SEND(103, 64), ACK(103, 4), \
            END                                                                                    \
    }
static const struct step repeated_then[] = REPEATED(2), repeated_now[] = REPEATED(3);

/* 102 is lost before the capture; a NAK for it, or an ACK of the PSN before it, counts. */
#define AMID(...)                                                                                  \
    SEND(100, 64), ACK(100, 1), SEND(101, 64), ACK(101, 2), SEND(103, 64), __VA_ARGS__,            \
        SEND(102, 64), SEND(103, 64), ACK(103, 4), SEND(104, 64), ACK(104, 5), END
static const struct step nak_counts[] = {AMID(NAK(102, 0x60, 3))};
/* The ACK after a wrong one counts the following ATOMIC: that doesn't prove both right. */
static const struct step counts_after[] = {{.opcode = RC(FETCH_ADD), .psn = 100},
                                           RESP(ATOMIC_ACK, 100, 0, 1),
                                           SEND(101, 64),
                                           ACK(101, 2),
                                           SEND(102, 64),
                                           /* 5 */ ACK(102, 3),
                                           SEND(103, 64),
                                           ACK(103, 5),
                                           SEND(104, 64),
                                           {.opcode = RC(FETCH_ADD), .psn = 105},
                                           /* 10 */ SEND(106, 64),
                                           ACK(104, 6),
                                           RESP(ATOMIC_ACK, 105, 0, 6),
                                           ACK(106, 7),
                                           END};
/* A sequence NAK names a received packet, and so counts too little: the counts of READ responses
 * show it. */
#define READ_8(psn_)                                                                               \
    {                                                                                              \
        .opcode = RC(READ_REQUEST), .psn = psn_, .dma_len = 8                                      \
    }
static const struct step nak_alone[] = {
    SEND(100, 64),
    ACK(100, 1),
    SEND(101, 64),
    ACK(101, 2),
    READ_8(102),
    RESP(READ_RESP_ONLY, 102, 8, 3),
    READ_8(104),
    READ_8(105),
    NAK(104, 0x60, 3),
    READ_8(103),
    READ_8(104),
    READ_8(105),
    RESP(READ_RESP_ONLY, 103, 8, 4),
    RESP(READ_RESP_ONLY, 104, 8, 5),
    RESP(READ_RESP_ONLY, 105, 8, 6),
    READ_8(106),
    RESP(READ_RESP_ONLY, 106, 8, 7),
    {.opcode = RC(READ_REQUEST), .psn = 107, .dma_len = 8, .after = 100},
    RESP(READ_RESP_ONLY, 107, 8, 8),
    SEND(108, 64),
    ACK(108, 9),
    END};
static const struct step same_ack[] = {SEND(100, 64), ACK(100, 1),   SEND(101, 64),
                                       ACK(101, 2),   SEND(102, 64), ACK(101, 3),
                                       SEND(103, 64), ACK(103, 4),   END};

/* After a fatal NAK a responder continues as if the refused packet had not been sent. */
static const struct step goes_on[] = {
    SEND(100, 64),
    ACK(100, 1),
    SEND(101, 64),
    ACK(101, 2),
    SEND(102, 64),
    ACK(102, 3),
    {.opcode = RC(WRITE_ONLY), .psn = 103, .len = 64, .dma_len = 64, .ackreq = true},
    NAK(103, 0x62, 3),
    SEND(104, 64),
    ACK(104, 4),
    END};

static void len_4(struct step *s)
{
    s->len = 4;
}
static void len_8(struct step *s)
{
    s->len = 8;
}

static void dma_3000(struct step *s)
{
    s->dma_len = 3000;
}
static void dma_huge(struct step *s)
{
    s->dma_len = 0x80000001;
}

static void syndrome_7f(struct step *s)
{
    s->syndrome = 0x7F;
}
static void syndrome_rd(struct step *s)
{
    s->syndrome = 0x64;
    s->msn--;
}
static void syndrome_access(struct step *s)
{
    s->syndrome = 0x62;
    s->msn--;
}
static void syndrome_op(struct step *s)
{
    s->syndrome = 0x63;
    s->msn--;
}
static void syndrome_rnr(struct step *s)
{
    s->syndrome = 0x20;
    s->msn = 1;
}
static void ack_of_read(struct step *s)
{
    s->psn = 106;
    s->msn = 5;
}
static void ack_of_atomic(struct step *s)
{
    s->psn = 107;
    s->msn = 5;
}
static void plain_ack(struct step *s)
{
    s->opcode = RC(ACKNOWLEDGE);
}
static void ack_ahead(struct step *s)
{
    s->psn = 111;
}
static void answer_before(struct step *s)
{
    s->psn -= 5000;
    s->msn = 0;
}
static void nak_before(struct step *s)
{
    s->psn = 99;
    s->syndrome = 0x60;
    s->msn = 0;
}
static void nak_ahead(struct step *s)
{
    s->psn = 111;
    s->syndrome = 0x60;
}
static void msn_high(struct step *s)
{
    s->msn++;
}
static void msn_far(struct step *s)
{
    s->msn += 1000;
}
static void msn_less(struct step *s)
{
    s->msn = (s->msn - 1) & WIRE_PSN_MASK;
}
static void msn_low(struct step *s)
{
    s->msn = 4;
}
static void early(struct step *s)
{
    s->after = 500;
}

static void va_off(struct step *s)
{
    s->va += 4;
}
static const struct step placements[] = {
    SEND(100, 64),
    {.opcode = RC(FLUSH), .psn = 101, .dma_len = 64},
    {.from_b = true, .opcode = RC(READ_RESP_ONLY), .psn = 101, .syndrome = 0x1F, .msn = 2},
    {.opcode = RC(ATOMIC_WRITE), .psn = 102, .len = 8, .dma_len = 8},
    {.from_b = true, .opcode = RC(READ_RESP_ONLY), .psn = 102, .syndrome = 0x1F, .msn = 3},
    END};

static void askew(struct step *s)
{
    s->va += 4;
}
static void four(struct step *s)
{
    s->len = s->dma_len = 4;
}
static void eleven(struct step *s)
{
    s->dma_len = 11;
}
static void nowhere(struct wire_pkt *p)
{
    p->feth = 0;
}
static void elsewhere(struct wire_pkt *p)
{
    p->feth = WIRE_FETH_GLOBAL | 4;
}
static void of_what(struct wire_pkt *p)
{
    p->feth = WIRE_FETH_GLOBAL | 0x20;
}
static void unaligned(struct step *s)
{
    s->va += s->opcode == RC(FETCH_ADD) ? 4 : 0;
}
static void middle(struct step *s)
{
    s->opcode = RC(WRITE_MIDDLE);
    s->len = 1024;
}

static void len_4300(struct step *s)
{
    s->len = 4300;
}
static void len_512(struct step *s)
{
    s->len = 512;
}

static void orig(struct wire_pkt *p)
{
    p->orig++;
}

static void continued(struct step *s)
{
    if (s->opcode == RC(READ_RESP_FIRST) && (s->psn == 101 || s->psn == 104))
        s->opcode = RC(READ_RESP_MIDDLE);
}

static const struct step send_101 = SEND(101, 64);
static const struct step nak_101 = NAK(101, 0x60, 1);
static const struct step nak_again = NAK(101, 0x62, 1);
static const struct step ack_101 = ACK(101, 2);

/* 102, after the refused 101, is answered by a NAK, which arrives when 101 has just been sent
 * again. */
#define CROSSED(psn_, msn_)                                                                        \
    SEND(psn_, 64), SEND(psn_ + 1, 64), NAK(psn_, 0x21, msn_),                                     \
        {.opcode = RC(SEND_ONLY), .psn = psn_, .len = 64, .ackreq = true, .after = 30},            \
    {                                                                                              \
        .from_b = true, .opcode = RC(ACKNOWLEDGE), .psn = psn_, .syndrome = 0x60, .msn = msn_,     \
        .after = 1                                                                                 \
    }
static const struct step rnr_crossed[] = {
    SEND(100, 64), ACK(100, 1), CROSSED(101, 1), ACK(101, 2), SEND(102, 64), ACK(102, 3), END};
static const struct step rnr_crossed_again[] = {
    SEND(100, 64),
    ACK(100, 1),
    SEND(101, 64),
    SEND(102, 64),
    NAK(101, 0x21, 1),
    NAK(101, 0x60, 1),
    {.opcode = RC(SEND_ONLY), .psn = 101, .len = 64, .ackreq = true, .after = 30},
    ACK(101, 2),
    SEND(102, 64),
    ACK(102, 3),
    CROSSED(103, 3),
    ACK(103, 4),
    SEND(104, 64),
    ACK(104, 5),
    END};

/* Each new SEND is answered with the same MSN. */
#define SAME_2(psn_, msn_)                                                                         \
    SEND(psn_, 64), ACK(psn_, msn_), SEND((psn_) + 1, 64), ACK((psn_) + 1, msn_)
#define SAME_6(psn_, msn_) SAME_2(psn_, msn_), SAME_2((psn_) + 2, msn_), SAME_2((psn_) + 4, msn_)
static const struct step stands_low[] = {SAME_6(100, 1), END};
static const struct step stands_high[] = {SAME_6(100, 99), SAME_6(106, 99), SAME_6(112, 99), END};

#define OPEN_READS 180u

/* A packet is lost after 110, and from there on fewer messages are counted: in a connection whose
 * start was captured, none later. */
static const struct step after_a_pause[] = {
    {.cm = CM_REQ},
    {.cm = CM_REP, .from_b = true},
    {.cm = CM_RTU},
    SEND(100, 64),
    SEND(101, 64),
    SEND(102, 64),
    SEND(103, 64),
    SEND(104, 64),
    SEND(105, 64),
    SEND(106, 64),
    SEND(107, 64),
    SEND(108, 64),
    SEND(109, 64),
    ACK(109, 10),
    SEND(110, 64),
    ACK(110, 11),
    {.opcode = RC(SEND_ONLY), .psn = 111, .gone = true},
    {.opcode = RC(SEND_ONLY), .psn = 112, .len = 64, .ackreq = true, .after = 2000},
    NAK(111, 0x60, 4),
    SEND(111, 64),
    SEND(112, 64),
    ACK(112, 6),
    SEND(113, 64),
    ACK(113, 7),
    SEND(114, 64),
    ACK(114, 8),
    SEND(115, 64),
    ACK(115, 9),
    END};

/* Each ACK has the next PSN: or the ACKs are recorded early. */
static const struct step ahead_by_one[] = {{.cm = CM_REQ}, {.cm = CM_REP, .from_b = true},
                                           {.cm = CM_RTU}, SEND(100, 64),
                                           ACK(101, 1),    SEND(101, 64),
                                           ACK(102, 2),    SEND(102, 64),
                                           ACK(103, 3),    SEND(103, 64),
                                           ACK(104, 4),    SEND(104, 64),
                                           ACK(105, 5),    END};

/* The last ACK counts too much; so does the second ACK of all, after which there is no READ. */
#define ENDS_WITH(msn_)                                                                            \
    {                                                                                              \
        SEND(100, 64), ACK(100, 1), SEND(101, 64), ACK(101, 2), SEND(102, 64), ACK(102, msn_), END \
    }
static const struct step last_high[] = ENDS_WITH(4), last_far[] = ENDS_WITH(1003);
#define SECOND_HIGH(...)                                                                           \
    {                                                                                              \
        SEND(100, 64), SEND(101, 64), ACK(100, 51), ACK(101, 53), SEND(102, 64), SEND(103, 64),    \
            __VA_ARGS__, SEND(104, 64), ACK(104, 55), END                                          \
    }
static const struct step second_high[] = SECOND_HIGH(ACK(102, 53), ACK(103, 54)),
                         second_high_fewer[] = SECOND_HIGH(ACK(103, 54));

/* From the connection's start: 101 is counted twice, and perhaps a READ after it. */
#define TWICE_101(...)                                                                             \
    {                                                                                              \
        SEND(100, 64), ACK(100, 1), SEND(101, 64), ACK(101, 3), __VA_ARGS__,                       \
            {.opcode = RC(SEND_ONLY), .psn = 104, .len = 64, .ackreq = true, .after = 100},        \
            ACK(104, 6), SEND(105, 64), ACK(105, 7), END                                           \
    }
static const struct step twice[] =
    TWICE_101(SEND(102, 64), ACK(102, 4), SEND(103, 64), ACK(103, 5)),
                         twice_reads[] = TWICE_101(READ_8(102), RESP(READ_RESP_ONLY, 102, 8, 4),
                                                   READ_8(103), RESP(READ_RESP_ONLY, 103, 8, 5));

static const struct row rows[] = {
    {"ACK-02 reserved NAK code", steps_rc, 13, .step = syndrome_7f},
    {"ACK-05 PSN one too high each time, as where answers are recorded early", ahead_by_one, LATER,
     .verdict = LINT_UNDECIDABLE},
    {"ACK-05 ACK with the PSN of a READ", steps_rc, 13, .step = ack_of_read},
    {"ACK-05 ACK with the PSN of an ATOMIC", steps_rc, 13, .step = ack_of_atomic},
    {"ACK-05 ACK in the place of an ATOMIC acknowledge", steps_rc, 11, .step = plain_ack},
    {"ACK-05 ACK of what wasn't sent", steps_rc, 13, .step = ack_ahead},
    {"ACK-05 a READ response to what was never sent", never_read, LATER, 4},
    {"ACK-06 RD code on RC", steps_loss, 9, .step = syndrome_rd},
    {"ACK-06 access error for a SEND", steps_loss, 9, .step = syndrome_access},
    {"ACK-05 ACK with the PSN of what is repeated", repeated_then, LATER, 8, .v4 = true},
    {"ACK-05 the same, with a later MSN", repeated_now, LATER, 8, .v4 = true},
    {"ACK-05 ACK with the PSN before, and the MSN of its request", same_ack, LATER, 5},
    {"ACK-05 ACK of a PSN before the connection's first", steps_cm, 4, .step = answer_before},
    {"ACK-05 READ response with such a PSN", steps_cm, 9, .step = answer_before},
    {"ACK-05 ACK with such a PSN before a request", ack_first, 3},
    {"ACK-05 ACK from the life before, perhaps", second_life, 7, .verdict = LINT_UNDECIDABLE},
    {"ACK-07 NAK of a PSN before the connection's first", steps_cm, 4, .step = nak_before},
    {"ACK-07 NAK of what wasn't sent", steps_rc, 13, .step = nak_ahead},
    {"ACK-08 NAK twice", steps_loss, 4, .extra = &nak_101, .copy = true},
    {"ACK-11 a sequence NAK that counts too much", nak_counts, LATER, 5},
    {"ACK-11 MSN too low", steps_rc, 17, .step = msn_low},
    {"ACK-11 MSN of the first ACK too low", acks, 1, .step = msn_less},
    {"ACK-11 MSN stands still", stands_low, LATER},
    {"ACK-11 MSN stands still, high", stands_high, LATER, .verdict = LINT_UNDECIDABLE},
    {"ACK-11 MSN too low, after a READ", steps_rc, 13, .step = msn_low},
    {"ACK-11 MSN too high, others are under way", pipelined, 8, .step = msn_high},
    {"ACK-11 MSN of a READ's first response too high", read_and_send, 7, .step = msn_high,
     .copy = true},
    {"ACK-11 MSN far too high", pipelined, 8, .step = msn_far},
    {"ACK-11 MSN far too high, nothing else is under way", steps_rc, 17, .step = msn_far},
    {"ACK-11 MSN too high, where it isn't known where the count began", reads_and_sends, 8,
     .step = msn_high},
    {"ACK-11 MSN too high, unless what it counts is repeated", counted_early, LATER,
     .verdict = LINT_UNDECIDABLE},
    {"ACK-11 MSN of an ATOMIC too high", pipelined, 11, .step = msn_high},
    {"ACK-11 MSN of a READ too high", pipelined, 17, .step = msn_high},
    {"ACK-11 a message counted twice, from the beginning", twice, LATER, 3},
    {"ACK-11 a message counted twice, from the beginning, and READs", twice_reads, LATER, 5},
    {"ACK-11 MSN of the last ACK too high", last_high, LATER, 5, .verdict = LINT_UNDECIDABLE},
    {"ACK-11 MSN of the last ACK far too high", last_far, LATER, 5},
    {"ACK-11 MSN of the second ACK too high", second_high, LATER, 3},
    {"ACK-11 MSN of the second ACK too high, and fewer ACKs", second_high_fewer, LATER, 3},
    {"ACK-11 fewer messages after a pause and a gap", after_a_pause, LATER, .copy = true},
    {"RNR-01 RNR NAK for a WRITE", steps_rc, 5, .step = syndrome_rnr},
    {"RNR-02 sequence NAK after RNR NAK", steps_rnr, 3, .extra = &nak_101},
    {"RNR-02 sequence NAK after RNR NAK, crossing with the repetition", rnr_crossed, LATER,
     .verdict = LINT_UNDECIDABLE},
    {"RNR-02 the same after one that crossed with nothing", rnr_crossed_again, LATER},
    {"RNR-05 repeated too early", steps_rnr, 4, .step = early},
    {"RNR-05 or the RNR NAK was lost", rnr_loss, LATER, .verdict = LINT_UNDECIDABLE},
    {"RNR-05 or it was lost: another one was obeyed", rnr_obeyed, LATER,
     .verdict = LINT_UNDECIDABLE},
    {"RNR-05 twice, and obeyed once", rnr_disobeyed, LATER},
    {"TMR-05 one transmission too many", steps_dead, 7, .extra = &send_101},
    {"TMR-05 or what has been answered again was new", answered_again, LATER,
     .verdict = LINT_UNDECIDABLE},
    {"RSP-06 MIDDLE after LAST", steps_rc, 16, .step = middle},
    {"RSP-06 WRITE in the middle of a SEND", send3, 1, .step = middle},
    {"RSP-10 an ONLY longer than any MTU", steps_rc, 12, .step = len_4300},
    {"RSP-10 short MIDDLE", steps_rc, 3, .step = len_512},
    {"RSP-10 short FIRST, with which the MTU is first seen", steps_rc, 2, .step = len_512},
    {"RSP-10 short FIRST of the first message", send3, 0, .step = len_512},
    {"RSP-12 operational error for a SEND", steps_loss, 9, .step = syndrome_op,
     .verdict = LINT_UNDECIDABLE},
    {"RSP-15 too long", steps_rc, 20, .step = dma_huge},
    {"RSP-15 a READ that is too long", steps_rc, 6, .step = dma_huge},
    {"RSP-16 WRITE shorter than its RETH", steps_rc, 2, .step = dma_3000, .found = 4},
    {"RSP-22 an answer, which doesn't count what was refused", goes_on, LATER, 9},
    {"RSP-22 an answer after the fatal NAK", steps_fatal, 2, .extra = &ack_101},
    {"RSP-22 the NAK again", refused, 3, .extra = &nak_again, .copy = true},
    {"RD-05 short READ response", steps_rc, 9, .step = len_8},
    {"RD-05 short READ response, of a size that is no MTU", steps_reread, 1, .step = len_8},
    {"RD-05 short READ response, where nothing shows the MTU", reads_and_sends, 3, .step = len_4},
    {"RD-05 short FIRST, with which the MTU is first seen", steps_reads, 1, .step = len_512},
    {"RD-10 re-reads go on in the middle", steps_reread, ALL, .step = continued},
    {"RD-12 re-read from another address", steps_reread, 4, .step = va_off},
    {"ATM-03 unaligned", steps_rc, ALL, .step = unaligned},
    {"ATM-08 another value the second time", steps_rc, 19, .pkt = orig},
    {"ATM-12 ATOMIC WRITE to an unaligned address", placements, 3, .step = askew},
    {"ATM-12 ATOMIC WRITE of 4 octets", placements, 3, .step = four},
    {"ATM-12 ATOMIC WRITE with another length in its RETH", placements, 3, .step = eleven},
    {"ATM-13 FLUSH to nowhere", placements, 1, .pkt = nowhere},
    {"ATM-13 FLUSH to where there is nothing", placements, 1, .pkt = elsewhere},
    {"ATM-13 FLUSH of what there is not", placements, 1, .pkt = of_what},
};

/* "ACK-11 a message is counted twice, or isn't": reported once, although later answers count on
 * from there; or one answer alone is wrong. */
START_TEST(ack_11_goes_on)
{
    static const unsigned number[] = {6, 6, 8, 9};
    static const struct step *const steps[] = {one_too_many, one_too_few, counts_after, nak_alone};
    static struct run run;
    static struct found found;
    struct lint_totals t;
    for (enum net net = NET_COUNT; net < NETS; net++) {
        build(&run, &(struct row){.steps = steps[_i], .at = LATER}, net);
        judge(&run, &found, &t);
        ck_assert_msg(found.n == 1, "%s: %u findings", nets[net], found.n);
        ck_assert_str_eq(found.f[0].rule->id, "ACK-11");
        ck_assert_int_eq(found.f[0].verdict, LINT_VIOLATION);
        ck_assert_uint_eq(found.f[0].number, number[_i]);
    }
}
END_TEST

/* "ACK-11 the count goes back": answers recorded before the requests that they count don't explain
 * a count that goes back, but one that does not rise. */
#define LATE(psn_)                                                                                 \
    {                                                                                              \
        .opcode = RC(SEND_ONLY), .psn = psn_, .len = 64, .ackreq = true, .after = 2000             \
    }
#define EARLY_TWICE(msn_)                                                                          \
    {                                                                                              \
        {.cm = CM_REQ}, {.cm = CM_REP, .from_b = true}, {.cm = CM_RTU}, SEND(100, 64),             \
            ACK(100, 1), ACK(101, 2), SEND(101, 64), ACK(102, 3), SEND(102, 64), LATE(103),        \
            ACK(103, 4), LATE(104), ACK(104, 5), LATE(105), ACK(105, msn_), LATE(106),             \
            ACK(106, 7), LATE(107), ACK(107, 8), END                                               \
    }
START_TEST(ack_11_skewed)
{
    static const struct step back[] = EARLY_TWICE(3), stands[] = EARLY_TWICE(5);
    static struct run run;
    static struct found found;
    struct lint_totals t;
    for (enum net net = NET_COUNT; net < NETS; net++) {
        unsigned n = 0;
        build(&run, &(struct row){.steps = _i ? stands : back, .at = LATER}, net);
        judge(&run, &found, &t);
        for (unsigned i = 0; i < found.n; i++) {
            if (strcmp(found.f[i].rule->id, "ACK-11") != 0)
                continue;
            n++;
            ck_assert_uint_eq(found.f[i].number, 15);
            ck_assert_msg(found.f[i].verdict == (_i ? LINT_UNDECIDABLE : LINT_VIOLATION),
                          "%d%s: %s", _i, nets[net], found.f[i].why);
        }
        ck_assert_msg(n == 1, "%d%s: %u", _i, nets[net], n);
    }
}
END_TEST

/* "ATM-08 another value the second time": not if the first was cut off before it */
START_TEST(atm_08_cut)
{
    static const struct step steps[] = {SEND(100, 64),
                                        ACK(100, 1),
                                        {.opcode = RC(FETCH_ADD), .psn = 101},
                                        RESP(ATOMIC_ACK, 101, 0, 2),
                                        RESP(ATOMIC_ACK, 101, 0, 2),
                                        END};
    static struct run run;
    static struct found found;
    build(&run, &(struct row){.steps = steps, .at = LATER}, NET_COUNT);
    found.n = 0;
    struct lint *l = lint_new(keep_finding, &found, 0);
    for (int i = 0; i < run.n; i++) {
        struct lint_frame f = {.number = (uint64_t)i + 1,
                               .ns = run.packet[i].ns,
                               .data = run.packet[i].f,
                               .len = (uint32_t)run.packet[i].len - (i == 3 ? 12 : 0),
                               .wire_len = (uint32_t)run.packet[i].len};
        lint_packet(l, &f, NULL);
    }
    lint_end(l);
    lint_free(l);
    ck_assert_msg(found.n == 0, "%s: %s", found.f[0].rule->id, found.f[0].seen);
}
END_TEST

/* "RD-05 short READ response", the first of more than a hundred that are under way */
START_TEST(rd_05_many_open)
{
    static struct step steps[2 * OPEN_READS + 3] = {
        {.opcode = RC(WRITE_FIRST), .psn = 98, .len = 1024, .dma_len = 1032},
        {.opcode = RC(WRITE_LAST), .psn = 99, .len = 8},
    };
    for (uint32_t i = 0; i < OPEN_READS; i++) {
        steps[2 + i] = (struct step){.opcode = RC(READ_REQUEST), .psn = 100 + i, .dma_len = 8};
        steps[2 + OPEN_READS + i] = (struct step)RESP(READ_RESP_ONLY, 100 + i, i ? 8 : 4, 2 + i);
    }
    steps[2 * OPEN_READS + 2] = (struct step)END;
    lint_check_row(&(struct row){"RD-05 many open", steps, LATER}, NET_COUNT);
}
END_TEST

/* "ACK-10 an answer to another queue pair" with the same PSNs: the source port shows it, once it is
 * clear that the queue pair hasn't changed its own. And if both have one port, answers to ATOMICs
 * contradict each other: the request of each is unknown. */
#define BOTH_SEND(psn_, msn_) SEND(psn_, 64), SEND(psn_, 64), ACK(psn_, msn_), ACK(psn_, msn_)
#define ADD(psn_)                                                                                  \
    {                                                                                              \
        .opcode = RC(FETCH_ADD), .psn = psn_                                                       \
    }
START_TEST(ack_10_stray)
{
    static const struct step steps[] = {
        SEND(99, 64), ACK(99, 0), BOTH_SEND(100, 1), BOTH_SEND(101, 2), BOTH_SEND(102, 3),
        /* 14: after the first two, each second one is of the second connection */
        ADD(103), ADD(103), RESP(ATOMIC_ACK, 103, 0, 4), RESP(ATOMIC_ACK, 103, 0, 4), SEND(104, 64),
        SEND(104, 64), ACK(104, 5), ACK(104, 5), END};
    const char *const what[] = {"returns", "goes on", "ends", "same port"};
    static struct run run;
    static struct found found;
    struct lint_totals t;
    build(&run, &(struct row){.steps = steps, .at = LATER}, NET_COUNT);
    for (int i = 0; i < run.n; i++) {
        struct packet *k = &run.packet[i];
        bool second = i > 1 && i & 1, stray = i == 16;
        if (stray)
            k->f[k->p.payload_off - 1]++; /* another value */
        if (second || stray)
            k->f[k->p.bth_off + 7] ^= 0x40;
        bool moved = _i == 1 && i >= 17 && k->p.sip.b[15] == 2; /* to the first one's port */
        wire_put16(k->f + k->p.udp_off, second && !moved && _i != 3 ? 0xC456 : 0xC123);
        wire_put32le(k->f + k->len - 4, wire_icrc(k->f, k->len, k->p.ip_off, k->p.bth_off));
    }
    run.n = _i == 2 ? 17 : run.n;
    judge(&run, &found, &t);
    if (_i == 1) {
        ck_assert_uint_eq(found.n, 0);
        return;
    }
    ck_assert_msg(found.n == 1, "%s: %u findings", what[_i], found.n);
    ck_assert_str_eq(found.f[0].rule->id, _i == 3 ? "ATM-08" : "ACK-10");
    ck_assert_uint_eq(found.f[0].number, _i == 3 ? 18 : 17);
    ck_assert_int_eq(found.f[0].verdict, _i == 0 ? LINT_VIOLATION : LINT_UNDECIDABLE);
}
END_TEST

/* "ACK-10 an answer to a queue pair that doesn't exist". The finding is sure where the right queue
 * pair's number gives the source port (WIRE-20). It is undecidable where no other queue pair has
 * that port. Otherwise there is none. */
START_TEST(ack_10_to_nobody)
{
    static const struct step steps[] = {
        SEND(99, 64),  ACK(99, 1),    SEND(100, 64), ACK(100, 2),   SEND(101, 64),
        ACK(101, 3),   SEND(102, 64), ACK(102, 4),   SEND(103, 64), ACK(103, 5),
        SEND(104, 64), ACK(104, 6),   SEND(999, 64), ACK(999, 500), END};
    static struct run run;
    static struct found found;
    struct lint_totals t;
    build(&run, &(struct row){.steps = steps, .at = LATER}, NET_COUNT);
    run.n = _i == 2 ? 14 : 12;
    struct packet other[2] = {run.packet[12], run.packet[13]};
    for (int i = run.n - 1; _i == 2 && i >= 2; i--) /* another connection has started before */
        run.packet[i] = run.packet[i - 2];
    for (int i = 0; _i == 2 && i < 2; i++) {
        run.packet[i] = other[i];
        run.packet[i].f[other[i].p.bth_off + 7] ^= 0x40;
    }
    run.packet[run.n - 3].f[run.packet[run.n - 3].p.bth_off + 5] ^= 0x90; /* to no queue pair */
    for (int i = 0; i < run.n; i++) {
        struct packet *k = &run.packet[i];
        wire_put16(k->f + k->p.udp_off, _i ? 0xC123 : wire_udp_sport(0, A_QPN, B_QPN));
        wire_put32le(k->f + k->len - 4, wire_icrc(k->f, k->len, k->p.ip_off, k->p.bth_off));
    }
    judge(&run, &found, &t);
    ck_assert_msg(found.n == (_i < 2), "%d: %u findings", _i, found.n);
    if (_i == 2)
        return;
    ck_assert_str_eq(found.f[0].rule->id, "ACK-10");
    ck_assert_uint_eq(found.f[0].number, 10);
    ck_assert_int_eq(found.f[0].verdict, _i ? LINT_UNDECIDABLE : LINT_VIOLATION);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("lint, response");
    TCase *t = lint_rows_case("lint, response", rows, sizeof(rows) / sizeof(*rows),
                              "test_lint_response.c");
    tcase_add_loop_test(t, ack_11_goes_on, 0, 4);
    tcase_add_loop_test(t, ack_11_skewed, 0, 2);
    tcase_add_test(t, atm_08_cut);
    tcase_add_test(t, rd_05_many_open);
    tcase_add_loop_test(t, ack_10_stray, 0, 4);
    tcase_add_loop_test(t, ack_10_to_nobody, 0, 3);
    suite_add_tcase(s, t);
    return unit_run(s);
}
