/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Captures of one connection for `urnic replay`, step by step: their contents, and the number of
 * differences. A sends requests, from PSN 10 on, and B answers.
 */
#ifndef URNIC_TEST_REPLAY_RIG_H
#define URNIC_TEST_REPLAY_RIG_H

#include <stddef.h>
#include <stdint.h>

#include "replay.h"

#define US    1000ull
#define MTU   256
#define STEPS 80

/* The IP identifications of the packets: counting, all 0, all equal, or none. */
enum ids { IDS_COUNT, IDS_ZERO, IDS_SAME, IPV6, KINDS };

/* One packet. */
struct step {
    uint8_t opcode, syndrome;
    uint32_t psn, us; /* us: since the packet before; 0 = 1 */
    uint32_t msn;     /* 0: follows from the PSN */
    uint32_t dma_len; /* 0: 8 */
    uint32_t off;     /* added to the address */
    uint8_t fill;     /* added to the payload's octets */
    uint8_t copy;     /* the network's copy of the packet this many before */
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

/* A capture, and the expected findings. */
struct row {
    const char *name; /* begins with the rule that is called broken, if one is */
    struct step step[STEPS];
    unsigned n; /* differences, all of that rule; 0 = one or more, that rule first */
};

/* The findings. */
struct tally {
    const char *rule; /* text that begins with it */
    unsigned n, others;
    struct replay_difference first;
};

/* Counts in its `ctx`, a struct tally. */
void on_difference(void *ctx, const struct replay_difference *d);

bool is_answer(const struct step *s);

/* The frame of a step, the packet number `n`: its length, and the octets in `frame`. `all`: the
 * steps that message numbers are taken from, ending with END; NULL = each packet is a message. */
size_t make(const struct step *all, const struct step *s, enum ids kind, unsigned n, uint8_t *frame,
            size_t size);

/* Adds the packet to the capture, `ns` after its start; *number counts the packets. */
void add_step(struct replay *r, struct step s, uint64_t *number, uint64_t ns);

/* Replays the added packets, and frees them: there must be `n` differences, all of this rule.
 * Returns the number of compared packets. */
uint64_t expect_differences(struct replay *r, enum replay_role role, const char *rule, unsigned n);

/* Replays a row with our engine as responder, and fails on a difference that the row doesn't
 * expect. `twice`: captured on one machine with both ends, which shows each packet as sent and as
 * received. `at_responder`: captured on this many ports of the responder's machine, which shows the
 * received packets and their times. */
void check_row(const struct row *row, enum ids kind, bool twice, unsigned at_responder);

#endif
