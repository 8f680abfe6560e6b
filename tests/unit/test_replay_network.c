/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `urnic replay` as responder, where the network doubles, overtakes or loses packets behind the
 * capture: an answer that some history explains is no difference, over IPv4, over IPv6, and where
 * the IP identification tells nothing. One that none explains is still found.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replay.h"
#include "unit.h"
#include "wire_bytes.h"

#define STEPS 80
#define US    1000ull
#define MTU   256

#define IPV4_CSUM (WIRE_ETH_LEN + 10u)

enum ids { IDS_COUNT, IDS_ZERO, IDS_SAME, IPV6, KINDS };

struct step {
    uint8_t opcode, syndrome;
    uint32_t psn, us; /* us: since the packet before; 0 = 1 */
    uint32_t msn;     /* 0: follows from the PSN */
    uint32_t dma_len; /* 0: 8 */
    uint32_t off;     /* added to the address */
    uint8_t fill;     /* added to the payload's octets */
    uint8_t copy;     /* the network's, of the packet so many before */
};

#define SEND(psn_)                                                                                 \
    {                                                                                              \
        .opcode = WIRE_SEND_ONLY, .psn = psn_                                                      \
    }
#define WRITE(psn_)                                                                                \
    {                                                                                              \
        .opcode = WIRE_WRITE_ONLY, .psn = psn_                                                     \
    }
#define AGAIN(psn_)                                                                                \
    {                                                                                              \
        .opcode = WIRE_SEND_ONLY, .psn = psn_, .us = 30                                            \
    }
#define ACK(psn_)                                                                                  \
    {                                                                                              \
        .opcode = WIRE_ACKNOWLEDGE, .psn = psn_, .syndrome = WIRE_SYN_ACK                          \
    }
#define NAK(psn_)                                                                                  \
    {                                                                                              \
        .opcode = WIRE_ACKNOWLEDGE, .psn = psn_, .syndrome = WIRE_SYN_NAK_SEQ                      \
    }
#define RNR(psn_)                                                                                  \
    {                                                                                              \
        .opcode = WIRE_ACKNOWLEDGE, .psn = psn_, .syndrome = WIRE_SYN_RNR | 1                      \
    }
#define ACCESS(psn_)                                                                               \
    {                                                                                              \
        .opcode = WIRE_ACKNOWLEDGE, .psn = psn_, .syndrome = WIRE_SYN_NAK_ACCESS                   \
    }
#define ADD(psn_)                                                                                  \
    {                                                                                              \
        .opcode = WIRE_FETCH_ADD, .psn = psn_                                                      \
    }
#define ADDED(psn_)                                                                                \
    {                                                                                              \
        .opcode = WIRE_ATOMIC_ACK, .psn = psn_, .syndrome = WIRE_SYN_ACK                           \
    }
#define READ(psn_, len_)                                                                           \
    {                                                                                              \
        .opcode = WIRE_READ_REQUEST, .psn = psn_, .dma_len = len_                                  \
    }
#define READS(part_, psn_)                                                                         \
    {                                                                                              \
        .opcode = WIRE_READ_RESP_##part_, .psn = psn_, .syndrome = WIRE_SYN_ACK                    \
    }
#define SECOND_READ(part_, psn_)                                                                   \
    {                                                                                              \
        .opcode = WIRE_READ_RESP_##part_, .psn = psn_, .msn = 2, .syndrome = WIRE_SYN_ACK          \
    }
#define ACK_14                                                                                     \
    {                                                                                              \
        .opcode = WIRE_ACKNOWLEDGE, .psn = 14, .msn = 3, .syndrome = WIRE_SYN_ACK                  \
    }
#define UC(part_, psn_)                                                                            \
    {                                                                                              \
        .opcode = WIRE_OPCODE(WIRE_UC, WIRE_SEND_##part_), .psn = psn_                             \
    }
#define OP_SEND  WIRE_SEND_ONLY, 0
#define OP_WRITE WIRE_WRITE_ONLY, 0
#define OP_ACK   WIRE_ACKNOWLEDGE, WIRE_SYN_ACK
#define OP_NAK   WIRE_ACKNOWLEDGE, WIRE_SYN_NAK_SEQ
#define OP_RNR   WIRE_ACKNOWLEDGE, WIRE_SYN_RNR | 1
#define AFTER(us_, what_, psn_)                                                                    \
    {                                                                                              \
        OP_##what_, psn_, us_                                                                      \
    }
#define AFTER_READS(us_, part_, psn_)                                                              \
    {                                                                                              \
        .opcode = WIRE_READ_RESP_##part_, .psn = psn_, .us = us_, .syndrome = WIRE_SYN_ACK         \
    }
#define ANSWERED(psn_) SEND(psn_), AFTER(2, ACK, psn_)
#define ANSWERED_4(psn_)                                                                           \
    ANSWERED(psn_), ANSWERED((psn_) + 1), ANSWERED((psn_) + 2), ANSWERED((psn_) + 3)
#define ANSWERED_8(psn_) ANSWERED_4(psn_), ANSWERED_4((psn_) + 4)
#define END                                                                                        \
    {                                                                                              \
        .opcode = 0xFF                                                                             \
    }

static const struct row {
    const char *name; /* begins with the rule that is called broken, if one is */
    struct step step[STEPS];
    unsigned n; /* so many differences, all of that rule; 0: at least one, the first of it */
} rows[] = {
    {"ACK-05 of what is never sent; long after it a packet is lost behind the capture",
     {SEND(10), ACK(10), ACK(900), ANSWERED_8(11), ANSWERED_8(19), ANSWERED_8(27), ANSWERED_8(35),
      SEND(43), SEND(44), AFTER(2, NAK, 43), SEND(43), SEND(44), AFTER(2, ACK, 44), END},
     1},
    {"acknowledged, missed, and sent again behind a READ whose answers were overtaken",
     {SEND(10),
      ACK(10),
      READ(11, 3 * MTU),
      SECOND_READ(FIRST, 11),
      ACK_14,
      SECOND_READ(MIDDLE, 12),
      SECOND_READ(LAST, 13),
      {.opcode = WIRE_READ_REQUEST, .psn = 12, .dma_len = 2 * MTU, .us = 30},
      SEND(14),
      SECOND_READ(FIRST, 12),
      SECOND_READ(LAST, 13),
      ACK_14,
      END}},
    {"ACK-05 of what is sent next",
     {SEND(10), ACK(10), READ(11, 3 * MTU), SECOND_READ(FIRST, 11), SECOND_READ(MIDDLE, 12),
      SECOND_READ(LAST, 13), ACK_14, AGAIN(14), ACK_14, END},
     1},
    {"a mirror shows the fatal NAK twice",
     {SEND(10),
      ACK(10),
      WRITE(11),
      ACCESS(11),
      {.opcode = WIRE_ACKNOWLEDGE, .psn = 11, .syndrome = WIRE_SYN_NAK_ACCESS, .copy = 1},
      END}},
    {"repeated after an RNR NAK, at once",
     {SEND(10), RNR(10), AGAIN(10), RNR(10), AGAIN(10), ACK(10), SEND(11), ACK(11), END}},
    {"a READ and an ATOMIC are refused for want of room",
     {SEND(10), ACK(10), READ(11, 8), RNR(11), READ(11, 8), READS(ONLY, 11), ADD(12), RNR(12),
      ADD(12), ADDED(12), SEND(13), ACK(13), END}},
    {"RNR-01 a WRITE takes no receive", {SEND(10), ACK(10), WRITE(11), RNR(11), ACK(11), END}},
    {"the RNR NAK was for a packet that the network doubles: the copy is taken",
     {SEND(10), RNR(10), ACK(10), SEND(11), ACK(11), END}},
    {"what follows shows that the copy was taken, before it is sent again",
     {SEND(10), SEND(10), RNR(10), WRITE(11), AGAIN(10), ACK(11), WRITE(11), ACK(11), END}},
    {"overtaken, missed, then refused for want of a receive, and the repetition taken",
     {SEND(10), ACK(10), SEND(11), WRITE(12), WRITE(13), NAK(11), AGAIN(11), WRITE(12), WRITE(13),
      RNR(11), ACK(13), END}},
    {"two refused: the network's copy found no receive, either",
     {SEND(10), SEND(10), RNR(10), RNR(10), AGAIN(10), ACK(10), END}},
    {"what was sent before the responder asked for less is not what it refuses",
     {SEND(10), SEND(11), RNR(10), AGAIN(10), SEND(11), RNR(11), ACK(11), END}},
    {"put in order behind the capture", {WRITE(10), ACK(10), WRITE(12), WRITE(11), ACK(12), END}},
    {"put in order behind the capture, an ATOMIC among them",
     {WRITE(10), ACK(10), ADD(12), WRITE(11), ADDED(12), WRITE(13), ACK(13), END}},
    {"overtaken behind the capture, then taken: no second NAK is due",
     {WRITE(10), ACK(10), WRITE(11), WRITE(12), NAK(11), AGAIN(11), AGAIN(12), ACK(12), END}},
    {"what was behind the last packet wasn't captured: the requester goes back to that, and on",
     {SEND(10), ACK(10), SEND(11), NAK(11), SEND(11), SEND(12), ACK(12), END}},
    {"... there is more of it, sent before the NAK came",
     {SEND(10), ACK(10), SEND(11), NAK(11), SEND(13), SEND(11), AFTER(2, ACK, 11), SEND(12),
      SEND(13), ACK(13), END}},
    {"... it was a READ, which is never captured, but answered",
     {SEND(10), ACK(10), SEND(11), NAK(11), SEND(11), AFTER(2, ACK, 11), READS(ONLY, 12), END}},
    {"ACK-07 a NAK of the last packet; what comes next is new",
     {SEND(10), ACK(10), SEND(11), NAK(11), SEND(11), AFTER(2, ACK, 11), SEND(12),
      AFTER(2, ACK, 12), END},
     1},
#define TIMED                                                                                      \
    SEND(10), ACK(10), READ(11, 8), AFTER_READS(2, ONLY, 11), READ(12, 8), AFTER_READS(2, ONLY, 12)
    {"a NAK said again two round trips later, when the repetition was lost as well",
     {TIMED, WRITE(13), WRITE(14), AFTER(2, NAK, 13), WRITE(13), AFTER(40, WRITE, 14),
      AFTER(2, NAK, 13), WRITE(13), WRITE(14), AFTER(2, ACK, 14), END}},
    {"ACK-08 a NAK said again sooner",
     {TIMED, WRITE(13), WRITE(14), AFTER(2, NAK, 13), WRITE(13), WRITE(14), AFTER(1, NAK, 13),
      WRITE(13), WRITE(14), AFTER(2, ACK, 14), END},
     1},
    {"sent, as what follows shows, but not captured before it was sent again",
     {SEND(10), ACK(10), SEND(12), ACK(12), SEND(11), SEND(12), ACK(12), END}},
    {"what the NAK asks for, and what was behind it, was not captured",
     {SEND(10), ACK(10), NAK(11), SEND(11), SEND(12), ACK(12), END}},
    {"not captured: that what an RNR NAK refused was sent again",
     {SEND(10), SEND(11), RNR(10), SEND(12), AGAIN(10), SEND(11), RNR(11), AGAIN(12), ACK(12),
      END}},
    {"the capture begins in a repetition of what was executed before",
     {ADD(10),
      {.opcode = WIRE_ATOMIC_ACK, .psn = 10, .syndrome = WIRE_SYN_ACK, .msn = 7},
      SEND(11),
      {.opcode = WIRE_ACKNOWLEDGE, .psn = 12, .syndrome = WIRE_SYN_ACK, .msn = 7},
      SEND(12),
      {.opcode = WIRE_ACKNOWLEDGE, .psn = 12, .syndrome = WIRE_SYN_ACK, .msn = 7},
      END}},
    {"an ATOMIC behind a WRITE to an odd address: each in its place in memory (ATM-03)",
     {{.opcode = WIRE_WRITE_ONLY, .psn = 10, .off = 3},
      ACK(10),
      {.opcode = WIRE_FETCH_ADD, .psn = 11, .off = 8},
      ADDED(11),
      END}},
    {"doubled, for example by a mirror port, and refused for good",
     {SEND(10), ACK(10), WRITE(11), WRITE(11), ACCESS(11), END}},
    {"refused for want of a receive, and not captured",
     {SEND(10), ACK(10), SEND(12), RNR(11), AFTER(30, SEND, 11), SEND(12), ACK(12), SEND(13),
      ACK(13), END}},
    {"refused for good, and not captured", {SEND(10), ACK(10), ACCESS(11), END}},
    {"doubled packets end a message of an unreliable connection (UC-03)",
     {UC(FIRST, 10), UC(MIDDLE, 11), UC(MIDDLE, 11), UC(MIDDLE, 12), UC(LAST, 13), UC(FIRST, 14),
      UC(LAST, 15), END}},
    {"RNR-01 a WRITE takes no receive",
     {WRITE(10), RNR(10), {.opcode = WIRE_WRITE_ONLY, .psn = 10, .us = 30}, ACK(10), END}},
    {"an ACK that is recorded before what it acknowledges, by some microseconds",
     {SEND(10), ACK(10), WRITE(11), ACK(12), WRITE(12), WRITE(13), WRITE(14), ACK(14), END}},
    {"likewise a refusal",
     {SEND(10), ACK(10), WRITE(11), ACK(11), WRITE(12), ACK(12), ACCESS(13), WRITE(13), END}},
    {"likewise a refusal for want of a receive",
     {SEND(10), ACK(10), SEND(11), ACK(11), RNR(12), SEND(12), AFTER(30, SEND, 12), ACK(12), END}},
    {"likewise an ATOMIC's answer",
     {WRITE(10), ACK(10), WRITE(11), ACK(11), ADDED(12), ADD(12), END}},
    {"likewise a READ's",
     {WRITE(10), ACK(10), WRITE(11), ACK(11), READS(FIRST, 12), READ(12, 768), READS(MIDDLE, 13),
      READS(LAST, 14), END}},
    {"likewise all responses of a READ that is repeated from the middle",
     {WRITE(10), ACK(10), READ(11, 1024), READS(FIRST, 11), AFTER(40, WRITE, 15), READS(FIRST, 12),
      READS(MIDDLE, 13), READ(12, 768), READS(LAST, 14), WRITE(15), ACK(15), END}},
    {"likewise of what was lost before and is sent again",
     {WRITE(10), ACK(10), WRITE(11), WRITE(12), NAK(11), ACK(11), AFTER(5, WRITE, 11), ACK(12),
      WRITE(12), END}},
    {"READs repeated from the middle while the first answers were late (RD-10)",
     {WRITE(10), AFTER(20, ACK, 10), READ(11, 768), AFTER_READS(20, FIRST, 11), READS(LAST, 13),
      READ(14, 768), AFTER_READS(20, FIRST, 14), READS(LAST, 16), READ(12, 512), READ(15, 512),
      AFTER_READS(8, MIDDLE, 12), READS(MIDDLE, 15), AFTER_READS(20, FIRST, 12), READS(LAST, 13),
      READS(FIRST, 15), READS(LAST, 16), WRITE(17), AFTER(20, ACK, 17), END}},
    {"a READ repeated from the middle, and not captured (RD-10, REQ-30)",
     {WRITE(10), AFTER(20, ACK, 10), READ(11, 768), AFTER_READS(20, FIRST, 11), READS(MIDDLE, 12),
      READS(LAST, 13), AFTER_READS(60, FIRST, 12), READS(LAST, 13), READ(14, 768),
      AFTER_READS(20, FIRST, 14), AFTER_READS(60, FIRST, 15), READS(LAST, 16), WRITE(17),
      AFTER(20, ACK, 17), END}},
    {"a READ repeated from the middle that asks for too much: an ACK of what is behind it (ACK-05)",
     {WRITE(10), AFTER(20, ACK, 10), READ(11, 512), WRITE(13), AFTER_READS(20, FIRST, 11),
      READS(LAST, 12), ACK(13), READ(12, 260), WRITE(13), AFTER_READS(20, ONLY, 12), ACK(13), END}},
    {"REQ-30 READ responses that begin again, without a pause",
     {WRITE(10), AFTER(20, ACK, 10), READ(11, 768), AFTER_READS(20, FIRST, 11), READS(FIRST, 12),
      READS(LAST, 13), WRITE(14), AFTER(20, ACK, 14), END},
     .n = 1},
    {"a READ executed three times, and its memory changed (RD-10)",
     {WRITE(10),
      ACK(10),
      READ(11, 768),
      READS(FIRST, 11),
      READS(MIDDLE, 12),
      READS(LAST, 13),
      READ(11, 768),
      {.opcode = WIRE_READ_RESP_FIRST, .psn = 11, .syndrome = WIRE_SYN_ACK, .fill = 1},
      {.opcode = WIRE_READ_RESP_MIDDLE, .psn = 12, .fill = 1},
      {.opcode = WIRE_READ_RESP_LAST, .psn = 13, .syndrome = WIRE_SYN_ACK, .fill = 1},
      {.opcode = WIRE_READ_RESP_MIDDLE, .psn = 12, .fill = 2},
      WRITE(14),
      ACK(14),
      END}},
    {"a NAK that the network has doubled, while it was answered",
     {WRITE(10),
      AFTER(20, ACK, 10),
      WRITE(11),
      AFTER(20, ACK, 11),
      WRITE(12),
      AFTER(20, ACK, 12),
      WRITE(13),
      AFTER(20, ACK, 13),
      WRITE(14),
      WRITE(15),
      WRITE(16),
      AFTER(20, NAK, 15),
      WRITE(15),
      {OP_NAK, 15, .copy = 2},
      WRITE(15),
      WRITE(16),
      AFTER(20, ACK, 16),
      END}},
    {"an RNR NAK of a SEND, whichever transmission it was that found no receive",
     {SEND(10), ACK(10), SEND(11), ACK(11), SEND(12), AFTER(30, SEND, 12), ACK(12), RNR(12),
      SEND(13), ACK(13), END}},
    {"NAKs that answers have overtaken, where nothing tells which (ACK-08)",
     {WRITE(10), ACK(10), WRITE(11), WRITE(12), WRITE(13), NAK(12), NAK(11), WRITE(11), WRITE(12),
      WRITE(13), NAK(13), NAK(12), WRITE(12), WRITE(13), NAK(12), ACK(13), END}},
    {"what an ACK is for was not captured before it was sent again, behind what came next",
     {SEND(10), ACK(10), SEND(11), ACK(12), SEND(13), AFTER(50, SEND, 12), SEND(13), ACK(13), END}},
    {"the first answer is to what was sent before the capture, behind what is sent again",
     {{.opcode = WIRE_SEND_FIRST, .psn = 10},
      {.opcode = WIRE_ACKNOWLEDGE, .psn = 13, .syndrome = WIRE_SYN_ACK, .msn = WIRE_PSN_MASK + 1},
      {.opcode = WIRE_SEND_MIDDLE, .psn = 11, .us = 30},
      {.opcode = WIRE_SEND_MIDDLE, .psn = 12},
      {.opcode = WIRE_SEND_LAST, .psn = 13},
      {.opcode = WIRE_ACKNOWLEDGE, .psn = 13, .syndrome = WIRE_SYN_ACK, .msn = 1},
      {.opcode = WIRE_SEND_ONLY, .psn = 14, .us = 30},
      {.opcode = WIRE_ACKNOWLEDGE, .psn = 14, .syndrome = WIRE_SYN_ACK, .msn = 2},
      END}},
    {"REQ-31 a READ response whose AETH is a NAK's",
     {WRITE(10),
      ACK(10),
      READ(11, 8),
      {.opcode = WIRE_READ_RESP_ONLY, .psn = 11, .syndrome = WIRE_SYN_NAK_SEQ},
      WRITE(12),
      ACK(12),
      END},
     .n = 1},
    {"ACK-05 an ACK of what wasn't sent",
     {SEND(10), ACK(10), SEND(11), ACK(12), AFTER(50, SEND, 12), END}},
    {"ACK-05 an ACK in the place of an ATOMIC acknowledge",
     {WRITE(10), ACK(10), ADD(11), ACK(11), WRITE(12), ACK(12), END},
     .n = 1},
    {"ACK-05 a repeated WRITE is acknowledged with the PSN of a later ATOMIC",
     {WRITE(10), ADD(11), ACK(10), ADDED(11), AFTER(30, WRITE, 10), ACK(11), WRITE(12), ACK(12),
      END},
     .n = 1},
    {"ACK-05 an ACK with a PSN of a READ's responses",
     {READ(10, 768), READS(FIRST, 10), READS(MIDDLE, 11), READS(LAST, 12), WRITE(13), ACK(13),
      READ(14, 768), READS(FIRST, 14), ACK(15), READS(MIDDLE, 15), READS(LAST, 16), END},
     .n = 1},
    {"ATM-03 an invalid request is executed: said once, however it goes on",
     {WRITE(10),
      ACK(10),
      {.opcode = WIRE_FETCH_ADD, .psn = 11, .off = 4},
      ADDED(11),
      WRITE(12),
      ACK(12),
      ADD(13),
      ADDED(13),
      READ(14, 768),
      READS(FIRST, 14),
      END},
     .n = 1},
    {"ACK-07 a NAK of what nothing has overtaken",
     {WRITE(10), ACK(10), WRITE(11), NAK(11), WRITE(12), ACK(12), END}},
    {"RNR-02 a NAK behind an RNR NAK; one slow answer doesn't make a quick one an answer to before",
     {SEND(10),
      WRITE(11),
      {.opcode = WIRE_ACKNOWLEDGE, .psn = 10, .syndrome = WIRE_SYN_RNR | 1, .us = 600},
      NAK(10),
      {.opcode = WIRE_SEND_ONLY, .psn = 10, .us = 1000},
      WRITE(11),
      {.opcode = WIRE_ACKNOWLEDGE, .psn = 11, .syndrome = WIRE_SYN_ACK, .us = 300},
      END}},
    {"RNR-02 in two bursts, in the same words",
     {SEND(10), SEND(11), SEND(12), RNR(10), NAK(10), AGAIN(10), SEND(11), SEND(12), RNR(10),
      NAK(10), AGAIN(10), SEND(11), SEND(12), ACK(12), END},
     .n = 2},
    {"RNR-02 in bursts; the very first packet is no measure of how long a trip takes",
     {SEND(10),
      SEND(11),
      SEND(12),
      SEND(13),
      AFTER(40, RNR, 10),
      NAK(10),
      AFTER(640, SEND, 10),
      SEND(11),
      SEND(12),
      SEND(13),
      AFTER(40, ACK, 10),
      RNR(11),
      NAK(11),
      AFTER(640, SEND, 11),
      SEND(12),
      SEND(13),
      AFTER(40, ACK, 11),
      RNR(12),
      NAK(12),
      AFTER(640, SEND, 12),
      SEND(13),
      AFTER(40, ACK, 12),
      ACK(13),
      END},
     .n = 3},
    {"RNR-02 where all that was sent first was lost, so that no answer shows how long a trip takes",
     {WRITE(10),
      SEND(11),
      SEND(12),
      SEND(13),
      SEND(14),
      AFTER(400, WRITE, 10),
      ACK(10),
      SEND(11),
      RNR(11),
      AGAIN(11),
      RNR(11),
      AFTER(30, SEND, 11),
      ACK(11),
      SEND(12),
      RNR(12),
      AGAIN(12),
      AFTER(8, SEND, 13),
      RNR(12),
      NAK(12),
      AGAIN(12),
      ACK(12),
      SEND(13),
      ACK(13),
      SEND(14),
      ACK(14),
      END},
     .n = 1},
    {"RNR-01 in the same words, each time that the WRITE comes",
     {SEND(10), ACK(10), WRITE(11), RNR(11), AFTER(30, WRITE, 11), RNR(11), AFTER(30, WRITE, 11),
      ACK(11), END},
     .n = 2},
    {"RD-10 twice from the middle, the first time after a NAK of the READ",
     {WRITE(10), ACK(10), WRITE(14), NAK(11), READ(11, 768), READS(FIRST, 11), READS(LAST, 13),
      READ(12, 512), READS(MIDDLE, 12), READS(LAST, 13), WRITE(14), ACK(14), READ(15, 768),
      READS(FIRST, 15), READS(LAST, 17), READ(16, 512), READS(MIDDLE, 16), READS(LAST, 17), END}},
};

static uint32_t payload_of(uint8_t opcode)
{
    unsigned f = wire_opcodes[opcode].flags;
    if (!(f & WIRE_F_PAYLOAD))
        return 0;
    return f & (WIRE_F_FIRST | WIRE_F_MIDDLE) || (f & WIRE_F_READ && !(f & WIRE_F_ONLY)) ? MTU : 8;
}

static uint32_t psns_of(const struct step *s)
{
    return s->dma_len > MTU ? (s->dma_len - 1) / MTU + 1 : 1;
}

/* Is it a READ of others than earlier READs have asked for? */
static bool new_read(const struct step *all, const struct step *s)
{
    for (const struct step *e = all; e < s; e++)
        if (e->opcode == WIRE_READ_REQUEST && s->psn - e->psn < psns_of(e))
            return false;
    return s->opcode == WIRE_READ_REQUEST;
}

/* Messages up to this PSN: the first has 10, and a READ may have more than one. */
static uint32_t msn_of(const struct step *all, uint32_t psn)
{
    uint32_t msn = psn - 9;
    for (const struct step *s = all; s && s->opcode != 0xFF; s++)
        if (new_read(all, s) && psn > s->psn)
            msn -= psn - s->psn < psns_of(s) ? psn - s->psn : psns_of(s) - 1;
    return msn;
}

/* The frame of a step: requests go from A to B. */
static size_t make(const struct step *all, const struct step *s, enum ids kind, unsigned n,
                   uint8_t *frame, size_t size)
{
    bool answer = wire_opcodes[s->opcode].flags & WIRE_F_RESPONSE;
    struct wire_pkt p = {
        .dmac = {2, 0, 0, 0, 0, answer ? 1 : 2},
        .smac = {2, 0, 0, 0, 0, answer ? 2 : 1},
        .ip_version = kind == IPV6 ? 6 : 4,
        .ttl = 64,
        .ip_id = (uint16_t)(kind == IDS_COUNT  ? 100 + n - s->copy
                            : kind == IDS_SAME ? 1
                                               : 0),
        .ip_flags = 2,
        .sip = wire_addr_v4(answer ? 0x0A000002 : 0x0A000001),
        .dip = wire_addr_v4(answer ? 0x0A000001 : 0x0A000002),
        .sport = 0xC123,
        .opcode = s->opcode,
        .migreq = true,
        .pkey = WIRE_PKEY_DEFAULT,
        .dqpn = answer ? 0x11 : 0x22,
        .psn = s->psn,
        .syndrome = s->syndrome,
        .msn =
            s->msn ? s->msn : msn_of(all, s->psn) - (s->syndrome >= WIRE_SYN_RNR), /* not counted */
        .va = 0x1000 + s->off + (s->opcode == WIRE_READ_REQUEST ? s->psn * MTU : 0),
        .rkey = 5,
        .dma_len = s->dma_len ? s->dma_len : 8,
        .swap_add = 1,
        .payload_len = payload_of(s->opcode),
    };
    if (kind == IPV6) {
        wire_addr_parse(answer ? "fd00::2" : "fd00::1", &p.sip);
        wire_addr_parse(answer ? "fd00::1" : "fd00::2", &p.dip);
    }
    size_t at = wire_build(frame, size, &p), len = wire_frame_len(&p);
    ck_assert_uint_gt(at, 0);
    memset(frame + at, (int)(s->psn + s->fill), p.payload_len);
    wire_icrc_seal(frame, len, p.ip_off, p.bth_off);
    return len;
}

static bool is_answer(const struct step *s)
{
    return wire_opcodes[s->opcode].flags & WIRE_F_RESPONSE;
}

struct tally {
    const char *rule; /* text that begins with it */
    unsigned n, others;
    struct replay_difference first;
};

static void on_difference(void *ctx, const struct replay_difference *d)
{
    struct tally *t = ctx;
    if (!t->n++)
        t->first = *d;
    t->others += strncmp(t->rule, d->rule, strlen(d->rule)) != 0;
}

/* `twice`: captured on the machine of both ends, each packet going out and coming in.
 * `at_responder`: on the responder's, so that it shows what came in and when; on so many ports. */
static void check(const struct row *row, enum ids kind, bool twice, unsigned at_responder)
{
    static const char *const kinds[KINDS] = {"", ", ids 0", ", ids 1", ", IPv6"};
    struct replay *r = replay_new(0);
    struct tally t = {.rule = row->name};
    struct replay_totals totals;
    uint8_t frame[2 * MTU];
    uint64_t ns = 0; /* of the first packet: some programs write times since then */
    size_t id = strcspn(row->name, " ");
    bool guilty = strchr("0123456789", row->name[id - 1]) != NULL;
    for (unsigned i = 0; row->step[i].opcode != 0xFF; i++) {
        ns += i ? (row->step[i].us ? row->step[i].us : 1) * US : 0;
        size_t len = make(row->step, &row->step[i], kind, i, frame, sizeof frame);
        uint16_t csum = wire_get16(frame + IPV4_CSUM);
        uint32_t icrc = wire_get32le(frame + len - WIRE_ICRC_LEN);
        if (twice) /* the NIC fills it in later */
            wire_put32le(frame + len - WIRE_ICRC_LEN, 0);
        if (twice && kind != IPV6)
            wire_put16(frame + IPV4_CSUM, 0);
        struct lint_frame f = {.number = i + 1,
                               .ns = ns,
                               .data = frame,
                               .len = (uint32_t)len,
                               .wire_len = (uint32_t)len,
                               .interface = at_responder > 1 ? i / 2 % at_responder : 0,
                               .sent = twice || (at_responder && is_answer(&row->step[i]))};
        ck_assert_int_eq(replay_add(r, &f), 0);
        f.sent = false;
        wire_put32le(frame + len - WIRE_ICRC_LEN, icrc);
        if (kind != IPV6)
            wire_put16(frame + IPV4_CSUM, csum);
        if (twice)
            ck_assert_int_eq(replay_add(r, &f), 0);
    }
    ck_assert_int_eq(replay_run(r, REPLAY_RESPONDER, on_difference, NULL, &t), 0);
    replay_totals(r, &totals);
    replay_free(r);
    ck_assert_msg(totals.compared > 0, "%s%s: nothing compared", row->name, kinds[kind]);
    if (guilty)
        ck_assert_msg(t.n && strlen(t.first.rule) == id && !strncmp(t.first.rule, row->name, id),
                      "%s%s: %s", row->name, kinds[kind], t.n ? t.first.rule : "nothing found");
    if (guilty && row->n)
        ck_assert_msg(t.n == row->n && !t.others, "%s%s: %u found, %u of other rules", row->name,
                      kinds[kind], t.n, t.others);
    if (!guilty)
        ck_assert_msg(!t.n, "%s%s: %s at packet %llu: %s / %s", row->name, kinds[kind],
                      t.first.rule, (unsigned long long)t.first.number, t.first.ours,
                      t.first.capture);
}

START_TEST(behind_the_capture)
{
    for (enum ids kind = 0; kind < KINDS; kind++)
        for (int twice = 0; twice < 2; twice++)
            check(&rows[_i], kind, twice, 0);
}
END_TEST

static const struct row arrivals[] = {
    {"what was missing came just before the NAK was made, which names what is missing now",
     {WRITE(10), ACK(10), WRITE(12), WRITE(11), NAK(12), WRITE(12), ACK(12), END}},
    {"overtaken behind the capture (ingress redirection), and the one that came first discarded",
     {WRITE(10), ACK(10), WRITE(11), WRITE(12), NAK(11), ACK(11), WRITE(11), WRITE(12), ACK(11),
      ACK(12), END}},
    {"a NAK that is recorded before the packet that shows the gap",
     {WRITE(10), ACK(10), NAK(11), WRITE(12), AFTER(30, WRITE, 11), WRITE(12), ACK(12), END}},
    {"lost behind the capture",
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
            check(&arrivals[_i], kind, false, ports);
}
END_TEST

/* ---- two captures, one of either end, in one file ---- */

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

/* A SEND that finds no receive at first, and seven WRITEs: the second is lost, asked for and sent
 * again with what was behind it. `again`: asked for a second time, which is wrong (ACK-08), and
 * that gets lost. */
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

/* What the file says of where a packet was seen: nothing, the interface, or, of A's, also whether
 * the packet went out there. */
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
    qsort(s.at, s.n, sizeof *s.at, by_time);
    for (unsigned i = 0; i < s.n; i++) {
        size_t len = make(NULL, &s.at[i].step, kind, s.at[i].id, frame, sizeof frame);
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

/* ACK-07, ACK-08, RD-10: what was lost between the ends, and clocks that differ, accuse nobody; and
 * what the responder did is found though only its own end shows it. */
START_TEST(at_both_ends)
{
    static const int32_t offsets[] = {0, 3, 7, 12, 30, 100, 1000};
    for (enum ids kind = 0; kind < KINDS; kind++)
        for (unsigned i = 0; i < sizeof offsets / sizeof *offsets; i++)
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
        for (unsigned i = 0; i < sizeof offsets / sizeof *offsets; i++) {
            check_merged(kind, offsets[i], false, SIGHT_FLAT);
            check_merged(kind, -offsets[i], false, SIGHT_FLAT);
        }
}
END_TEST

/* ---- more under way than fits the rows above ---- */

#define UNDER_WAY 1024u

static void add_step(struct replay *r, struct step s, uint64_t *number, uint64_t ns)
{
    uint8_t frame[2 * MTU];
    size_t len = make(NULL, &s, IDS_COUNT, (unsigned)*number, frame, sizeof frame);
    struct lint_frame f = {.number = ++*number,
                           .ns = ns,
                           .data = frame,
                           .len = (uint32_t)len,
                           .wire_len = (uint32_t)len};
    ck_assert_int_eq(replay_add(r, &f), 0);
}

/* ACK-07: the NAK of the last packet that was seen, which is sent again with more behind it. If the
 * requester numbers its packets, that tells whether one is missing between. */
START_TEST(numbers_tell_what_is_missing)
{
    for (int guilty = 0; guilty < 2; guilty++) {
        struct replay *r = replay_new(0);
        struct tally t = {.rule = "ACK-07"};
        struct step again = SEND(11), behind = SEND(12);
        uint64_t n = 0, ns = 0;
        again.copy = behind.copy = (uint8_t)guilty;
        add_step(r, (struct step)SEND(10), &n, ns += US);
        add_step(r, (struct step)ACK(10), &n, ns += US);
        add_step(r, (struct step)SEND(11), &n, ns += US);
        add_step(r, (struct step)NAK(11), &n, ns += 2 * US);
        add_step(r, again, &n, ns += US);
        add_step(r, behind, &n, ns += US);
        add_step(r, (struct step)ACK(12), &n, ns += 2 * US);
        ck_assert_int_eq(replay_run(r, REPLAY_RESPONDER, on_difference, NULL, &t), 0);
        replay_free(r);
        ck_assert_msg(t.n == (unsigned)guilty && !t.others, "%u found, %u of other rules", t.n,
                      t.others);
    }
}
END_TEST

/* A step whose packet has this number. */
struct numbered {
    struct step step;
    uint16_t ip_id; /* 0: of an answer, which has any */
};

/* ACK-07: likewise, but what the NAK asks for comes late, behind the capture, and is answered. Then
 * numbers that are missing are the only excuse: `guilty` has them all. */
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
    for (unsigned k = 0; k < sizeof late / sizeof *late; k++)
        for (unsigned guilty = 0; guilty < 2; guilty++) {
            const struct numbered *row = guilty ? late[k].guilty : late[k].innocent;
            struct replay *r = replay_new(0);
            struct tally t = {.rule = "ACK-07"};
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
            ck_assert_int_eq(replay_run(r, REPLAY_RESPONDER, on_difference, NULL, &t), 0);
            replay_free(r);
            ck_assert_msg(t.n == guilty && !t.others, "row %u: %u found, %u of other rules", k, t.n,
                          t.others);
        }
}
END_TEST

/* ACK-07: at the responder's port, what shows the gap is recorded behind the NAK; its time says
 * that it came before, or that it didn't. */
START_TEST(times_tell_what_came_first)
{
    for (int guilty = 0; guilty < 2; guilty++) {
        const struct {
            struct step step;
            uint64_t us;
        } seen[] = {{SEND(10), 1},  {ACK(10), 2},   {SEND(11), 10}, {NAK(11), 15},
                    {SEND(12), 12}, {SEND(11), 30}, {SEND(12), 31}, {ACK(12), 33}};
        struct replay *r = replay_new(0);
        struct tally t = {.rule = "ACK-07"};
        for (unsigned i = 0; i < sizeof seen / sizeof *seen; i++) {
            uint8_t frame[2 * MTU];
            uint32_t len = (uint32_t)make(NULL, &seen[i].step, IDS_COUNT, i, frame, sizeof frame);
            struct lint_frame f = {.number = i + 1,
                                   .ns = seen[i].us * US,
                                   .data = frame,
                                   .len = len,
                                   .wire_len = len,
                                   .sent = is_answer(&seen[i].step)};
            f.ns += guilty && i == 4 ? 4 * US : 0;
            ck_assert_int_eq(replay_add(r, &f), 0);
        }
        ck_assert_int_eq(replay_run(r, REPLAY_RESPONDER, on_difference, NULL, &t), 0);
        replay_free(r);
        ck_assert_msg(t.n == (unsigned)guilty && !t.others, "%u found, %u of other rules", t.n,
                      t.others);
    }
}
END_TEST

/* ACK-06: what has been sent before a NAK comes, and is seen behind it, is no refusal to send again
 * what is missing. Who never does is found all the same. */
START_TEST(a_large_window)
{
    for (int guilty = 0; guilty < 2; guilty++) {
        struct replay *r = replay_new(0);
        struct tally t = {.rule = "ACK-06"};
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
        ck_assert_int_eq(replay_run(r, REPLAY_REQUESTER, on_difference, NULL, &t), 0);
        replay_free(r);
        ck_assert_msg(t.n == (unsigned)guilty && !t.others, "%u found, %u of other rules", t.n,
                      t.others);
    }
}
END_TEST

/* OPC-07: FLUSH and ATOMIC WRITE are options, right where a responder has them; what is wrong in
 * front of them is found all the same, of both ends. */
START_TEST(options_that_our_engine_has_not)
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
        struct replay_totals totals;
        struct tally t = {.rule = "ACK-05"};
        uint64_t n = 0, ns = 0;
        for (const struct step *s = all[i]; s->opcode != 0xFF; s++)
            add_step(r, *s, &n, ns += US);
        ck_assert_int_eq(replay_run(r, REPLAY_BOTH, on_difference, NULL, &t), 0);
        replay_totals(r, &totals);
        replay_free(r);
        ck_assert_uint_gt(totals.compared, 2);
        ck_assert_msg(t.n == i && !t.others, "%u: %u found, %s at packet %llu", i, t.n,
                      t.n ? t.first.rule : "", (unsigned long long)t.first.number);
    }
}
END_TEST

/* RD-12: where the capture has requests only, and these are READs, what is asked for again shows
 * the MTU. */
START_TEST(reads_without_responses)
{
    for (int guilty = 0; guilty < 2; guilty++) {
        struct replay *r = replay_new(0);
        struct replay_totals totals;
        struct tally t = {.rule = "RD-12"};
        struct step wrong = READ(12, MTU);
        uint64_t n = 0, ns = 0;
        wrong.off = guilty ? 8 : 0;
        add_step(r, (struct step)READ(10, 3 * MTU), &n, ns += US);
        add_step(r, (struct step)READ(13, 8), &n, ns += US);
        add_step(r, (struct step)READ(11, 2 * MTU), &n, ns += 500 * US);
        add_step(r, (struct step)READ(13, 8), &n, ns += US);
        add_step(r, wrong, &n, ns += 500 * US);
        ck_assert_int_eq(replay_run(r, REPLAY_BOTH, on_difference, NULL, &t), 0);
        replay_totals(r, &totals);
        replay_free(r);
        ck_assert_uint_gt(totals.compared, 2);
        ck_assert_msg(t.n == (unsigned)guilty && !t.others, "%u found: %s at packet %llu", t.n,
                      t.n ? t.first.rule : "", (unsigned long long)t.first.number);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("replay network");
    TCase *c = tcase_create("replay network");
    tcase_add_loop_test(c, behind_the_capture, 0, sizeof rows / sizeof *rows);
    tcase_add_loop_test(c, at_the_responder, 0, sizeof arrivals / sizeof *arrivals);
    tcase_add_test(c, at_both_ends);
    tcase_add_test(c, at_both_ends_in_one);
    tcase_add_test(c, numbers_tell_what_is_missing);
    tcase_add_test(c, numbers_tell_that_it_was_late);
    tcase_add_test(c, times_tell_what_came_first);
    tcase_add_test(c, a_large_window);
    tcase_add_test(c, options_that_our_engine_has_not);
    tcase_add_test(c, reads_without_responses);
    suite_add_tcase(s, c);
    return unit_run(s);
}
