/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Each rule that lint knows of the requests of connected queue pairs,
 * broken once: see lint_rows.h.
 */
#include "lint_rows.h"
#include "unit.h"

/* A network that loses packets, perhaps the RNR NAK too. */
static const struct step read_late[] = {
    SEND(100, 64),
    {.from_b = true,
     .opcode = RC(ACKNOWLEDGE),
     .psn = 100,
     .syndrome = 0x1F,
     .msn = 1,
     .after = 50},
    SEND(104, 64),
    {.from_b = true,
     .opcode = RC(ACKNOWLEDGE),
     .psn = 101,
     .syndrome = 0x60,
     .msn = 1,
     .after = 50},
    {.opcode = RC(READ_REQUEST), .psn = 101, .dma_len = 3072, .va = 0x1000},
    /* 5 */
    {.from_b = true,
     .opcode = RC(READ_RESP_FIRST),
     .psn = 101,
     .len = 1024,
     .syndrome = 0x1F,
     .msn = 2,
     .after = 50},
    RESP(READ_RESP_MIDDLE, 102, 1024, 2),
    RESP(READ_RESP_LAST, 103, 1024, 2),
    SEND(104, 64),
    ACK(104, 3),
    END};

/* Answers that aren't to the request with their PSN: it comes later, or is a READ. */
static const struct step read_response_early[] = {
    SEND(100, 64),
    ACK(100, 1),
    {.opcode = RC(READ_REQUEST), .psn = 101, .dma_len = 64},
    RESP(READ_RESP_ONLY, 102, 64, 2),
    SEND(102, 64),
    ACK(102, 3),
    END};
static const struct step atomic_ack_early[] = {SEND(100, 64),
                                               ACK(100, 1),
                                               {.opcode = RC(FETCH_ADD), .psn = 101},
                                               RESP(ATOMIC_ACK, 102, 0, 2),
                                               SEND(102, 64),
                                               ACK(102, 3),
                                               END};
static const struct step atomic_ack_in_read[] = {
    {.opcode = RC(SEND_FIRST), .psn = 99, .len = 1024},
    {.opcode = RC(SEND_LAST), .psn = 100, .len = 5, .ackreq = true},
    ACK(100, 1),
    {.opcode = RC(READ_REQUEST), .psn = 101, .dma_len = 3072},
    RESP(READ_RESP_FIRST, 101, 1024, 2),
    RESP(READ_RESP_MIDDLE, 102, 1024, 2),
    RESP(READ_RESP_LAST, 103, 1024, 2),
    {.opcode = RC(FETCH_ADD), .psn = 104},
    RESP(ATOMIC_ACK, 103, 0, 3),
    SEND(105, 64),
    ACK(105, 4),
    END};

/* The lost packets are sent again. */
static const struct step atomics_again[] = {SEND(100, 64),
                                            ACK(100, 1),
                                            {.opcode = RC(FETCH_ADD), .psn = 101},
                                            {.opcode = RC(FETCH_ADD), .psn = 101, .after = 90000},
                                            RESP(ATOMIC_ACK, 101, 0, 2),
                                            END};
/* After a READ other requests come at once. */
static const struct step read_and_more[] = {
    {.opcode = RC(SEND_FIRST), .psn = 100, .len = 1024},
    {.opcode = RC(SEND_LAST), .psn = 101, .len = 5},
    ACK(101, 1),
    {.opcode = RC(READ_REQUEST), .psn = 102, .dma_len = 1000},
    SEND(103, 8),
    /* 5 */ SEND(104, 8),
    RESP(READ_RESP_ONLY, 102, 1000, 2),
    ACK(103, 3),
    ACK(104, 4),
    {.opcode = RC(FETCH_ADD), .psn = 105},
    /* 10 */ RESP(ATOMIC_ACK, 105, 0, 5),
    {.opcode = RC(READ_REQUEST), .psn = 106, .dma_len = 2048},
    RESP(READ_RESP_FIRST, 106, 1024, 6),
    RESP(READ_RESP_LAST, 107, 1024, 6),
    SEND(108, 8),
    /* 15 */ ACK(108, 7),
    END};

/* The same, and the capture has seen two of them in the other order. */
static const struct step read_and_late[] = {
    {.opcode = RC(SEND_FIRST), .psn = 100, .len = 1024},
    {.opcode = RC(SEND_LAST), .psn = 101, .len = 5},
    ACK(101, 1),
    {.opcode = RC(READ_REQUEST), .psn = 102, .dma_len = 1000},
    SEND(104, 8),
    /* 5 */ SEND(103, 8),
    RESP(READ_RESP_ONLY, 102, 1000, 2),
    ACK(103, 3),
    ACK(104, 4),
    {.opcode = RC(FETCH_ADD), .psn = 105},
    /* 10 */ RESP(ATOMIC_ACK, 105, 0, 5),
    END};

static const struct step imm_again[] = {
    SEND(100, 64),
    ACK(100, 1),
    {.opcode = RC(SEND_ONLY_IMM), .psn = 101, .len = 8},
    {.opcode = RC(SEND_ONLY_IMM), .psn = 101, .len = 8, .ackreq = true, .after = 90000},
    ACK(101, 2),
    END};
static const struct step flush[] = {
    SEND(100, 64),
    ACK(100, 1),
    {.opcode = RC(FLUSH), .psn = 101, .dma_len = 64},
    RESP(READ_RESP_ONLY, 101, 0, 2),
    {.opcode = RC(ATOMIC_WRITE), .psn = 102, .len = 8, .dma_len = 8},
    RESP(READ_RESP_ONLY, 102, 0, 3),
    SEND(103, 64),
    ACK(103, 4),
    END};

static void dma_more(struct step *s)
{
    s->dma_len += 4096;
}
static void dma_less(struct step *s)
{
    s->dma_len -= 1024;
}

static void psn_99(struct step *s)
{
    s->psn = 99;
}
static void psn_105(struct step *s)
{
    s->psn = 105;
}
static void empty(struct step *s)
{
    s->len = 0;
}
static void dma_1000(struct step *s)
{
    s->dma_len = 1000;
}

static void read_for_send(struct step *s)
{
    s->opcode = RC(READ_RESP_ONLY);
}
static void atomic_for_flush(struct step *s)
{
    s->opcode = RC(ATOMIC_ACK);
}
static void only(struct step *s)
{
    s->opcode = RC(READ_RESP_ONLY);
}
static void first(struct step *s)
{
    s->opcode = RC(READ_RESP_FIRST);
}
static void syndrome_nak(struct step *s)
{
    s->syndrome = 0x60;
}

static void longer(struct step *s)
{
    s->len += 4;
}

static void operand(struct wire_pkt *p)
{
    p->swap_add++;
}
static void immediate(struct wire_pkt *p)
{
    p->imm++;
}

static void uc_last(struct step *s)
{
    s->opcode = UC(SEND_LAST);
}

static const struct step read_again = {
    .opcode = RC(READ_REQUEST), .psn = 104, .dma_len = 8, .va = 0};

static const struct step steps_just_before[] = {
    {.cm = CM_REQ},
    {.cm = CM_REP, .from_b = true},
    SEND(100, 64),
    ACK(100, 1),
    {.opcode = RC(READ_REQUEST), .psn = 101, .dma_len = 8},
    /* 5 */ {.opcode = RC(READ_REQUEST), .psn = 102, .dma_len = 8, .after = 9},
    {.from_b = true,
     .opcode = RC(READ_RESP_ONLY),
     .psn = 101,
     .len = 8,
     .syndrome = 0x1F,
     .msn = 2,
     .after = 4},
    RESP(READ_RESP_ONLY, 102, 8, 3),
    END};
static void psn_70000(struct step *s)
{
    s->psn += 70000;
}
static const struct step steps_start_later[] = {
    {.cm = CM_REQ}, {.cm = CM_REP, .from_b = true}, SEND(101, 64), ACK(101, 1), END};

static const struct row rows[] = {
    {"PSN-01 before the announced PSN", steps_cm, 3, .step = psn_99},
    {"PSN-01 after the announced PSN", steps_start_later, 2},
    {"PSN-01 long after the announced PSN", steps_start_later, ALL, 2, .step = psn_70000},
    {"REQ-02 empty LAST", steps_rc, 4, .step = empty},
    {"REQ-02 FIRST although one packet suffices", steps_rc, 2, .step = dma_1000},
    {"REQ-06 a READ takes more PSNs than the requester goes by", read_and_more, 3, 4,
     .step = dma_more},
    {"REQ-06 ... and its requests are seen in another order", read_and_late, 3, 4,
     .step = dma_more},
    {"REQ-30 a READ is answered with less than it asks for", read_and_more, 11, 12,
     .step = dma_less},
    {"REQ-06 a PSN of a READ's responses", steps_rc, 12, .step = psn_105},
    {"REQ-10 AckReq on an ACK", steps_rc, 13, .step = ackreq},
    {"REQ-12 one READ too many", steps_cm, 8, .extra = &read_again},
    {"REQ-12 one just before the response that made room", steps_just_before, 5,
     .verdict = LINT_UNDECIDABLE},
    {"REQ-28 READ response before a SEND with its PSN", read_response_early, LATER, 3},
    {"REQ-28 ATOMIC acknowledge before a SEND with its PSN", atomic_ack_early, LATER, 3},
    {"REQ-28 ATOMIC acknowledge with a PSN within a READ", atomic_ack_in_read, LATER, 8},
    {"REQ-28 READ response for a SEND", steps_rc, 13, .step = read_for_send},
    {"REQ-28 ATOMIC acknowledge for a FLUSH", flush, 3, .step = atomic_for_flush},
    {"REQ-30 ONLY where FIRST must be", steps_rc, 7, .step = only},
    {"REQ-30 FIRST at the end", steps_reread, 6, .step = first},
    {"REQ-30 FIRST twice, of a READ that was lost at first", read_late, 6, .step = first},
    {"REQ-31 READ response with a NAK", steps_rc, 9, .step = syndrome_nak},
    {"RTX-05 longer the second time", steps_loss, 6, .step = longer},
    {"RTX-05 an ATOMIC that adds another number the second time", atomics_again, 3, .pkt = operand},
    {"RTX-05 another immediate the second time", imm_again, 3, .pkt = immediate},
    {"UC-02 AckReq", steps_uc, 4, .step = ackreq},
    {"UC-07 LAST without FIRST", steps_uc, 4, .step = uc_last},
};

int main(void)
{
    Suite *s = suite_create("lint, request");
    TCase *t =
        lint_rows_case("lint, request", rows, sizeof(rows) / sizeof(*rows), "test_lint_request.c");
    suite_add_tcase(s, t);
    return unit_run(s);
}
