/* SPDX-License-Identifier: BSD-3-Clause
 *
 * READ responses with selective repeat (LR-08): the requester requests only the missing ones, and
 * the responder sends them in between.
 */
#include <errno.h>

#include "sr_rig.h"

#define N 8u /* packets of the READ */

/* A requester that has sent a READ of N packets to offset 0. */
static struct rig *reading(bool both)
{
    struct rig *r = both ? agreed(NULL) : rig_with("none,recovery=sr", NULL);
    rig_post(r, WR_RDMA_READ, 1, N * RIG_MTU, WR_F_SIGNALED);
    rig_tx(r, 0);
    rig_clear(r);
    return r;
}

static void response(struct rig *r, unsigned op, uint32_t k)
{
    rig_read_resp(r, op, tx_psn(k), RIG_MTU, (int)k + 1);
}

static bool placed(const struct rig *r, uint32_t k)
{
    for (uint32_t i = 0; i < RIG_MTU; i++)
        if (r->mem[k * RIG_MTU + i] != (uint8_t)(k + 1))
            return false;
    return true;
}

static void asks_for(struct rig *r, uint32_t k, uint32_t packets)
{
    ck_assert_uint_eq(rig_tx(r, 0), 1);
    ck_assert_uint_eq(r->sent[0].opcode, WIRE_READ_REQUEST);
    ck_assert_uint_eq(r->sent[0].psn, tx_psn(k));
    ck_assert_uint_eq(r->sent[0].va, 0x7000000 + k * RIG_MTU);
    ck_assert_uint_eq(r->sent[0].dma_len, packets * RIG_MTU);
    rig_clear(r);
}

static void completes(struct rig *r)
{
    ck_assert_uint_eq(r->nwc, 1);
    ck_assert_int_eq(r->wc[0].status, WC_SUCCESS);
    for (uint32_t k = 0; k < N; k++)
        ck_assert(placed(r, k));
    ck_assert_uint_eq(rig_tx(r, 0), 0);
}

/* LR-08: responses after a gap are placed at once. Only the gap is requested, once. The READ
 * completes when the gap is closed; no part is requested twice. */
START_TEST(lr_08_gap)
{
    struct rig *r = reading(true);
    response(r, WIRE_READ_RESP_FIRST, 0);
    response(r, WIRE_READ_RESP_MIDDLE, 1);
    response(r, WIRE_READ_RESP_MIDDLE, 4);
    ck_assert(placed(r, 4));
    asks_for(r, 2, 2);
    response(r, WIRE_READ_RESP_MIDDLE, 5);
    response(r, WIRE_READ_RESP_MIDDLE, 6);
    response(r, WIRE_READ_RESP_LAST, 7);
    response(r, WIRE_READ_RESP_MIDDLE, 6); /* twice */
    ck_assert_uint_eq(rig_count(r, ENGINE_C_rx_placed_early), 4);
    ck_assert_uint_eq(rig_tx(r, 0), 0);
    response(r, WIRE_READ_RESP_FIRST, 2);
    ck_assert_uint_eq(r->nwc, 0);
    response(r, WIRE_READ_RESP_LAST, 3); /* of the part */
    completes(r);
    ck_assert_uint_eq(rig_count(r, ENGINE_C_tx_retransmit), 1);
    rig_free(r);
}
END_TEST

/* LR-08: two gaps: the second is asked for when the first is closed; at most two parts a round
 * trip. */
START_TEST(lr_08_gaps)
{
    struct rig *r = reading(true);
    for (uint32_t k = 1; k < N; k += 2)
        response(r, k == N - 1 ? WIRE_READ_RESP_LAST : WIRE_READ_RESP_MIDDLE, k);
    asks_for(r, 0, 1);
    response(r, WIRE_READ_RESP_ONLY, 0);
    asks_for(r, 2, 1);
    response(r, WIRE_READ_RESP_ONLY, 2);
    ck_assert_uint_eq(rig_tx(r, 0), 0); /* two have been asked for */
    r->now += 2 * RIG_T / 8;            /* nothing was measured yet: a part of the time-out */
    response(r, WIRE_READ_RESP_ONLY, 4);
    asks_for(r, 6, 1);
    response(r, WIRE_READ_RESP_ONLY, 6);
    completes(r);
    rig_free(r);
}
END_TEST

/* LR-08: after a time-out all that may be missing is asked for, to the end. */
START_TEST(lr_08_timeout)
{
    struct rig *r = reading(true);
    response(r, WIRE_READ_RESP_FIRST, 0);
    response(r, WIRE_READ_RESP_MIDDLE, 3);
    asks_for(r, 1, 2);
    rig_pass(r, 2 * RIG_T);
    asks_for(r, 1, N - 1);
    response(r, WIRE_READ_RESP_FIRST, 1);
    response(r, WIRE_READ_RESP_MIDDLE, 2);
    for (uint32_t k = 4; k < N; k++)
        response(r, k == N - 1 ? WIRE_READ_RESP_LAST : WIRE_READ_RESP_MIDDLE, k);
    completes(r);
    rig_free(r);
}
END_TEST

/* LR-08, RD-14: without agreement a response after a gap is dropped, and all from the gap on are
 * requested. */
START_TEST(lr_08_plain_peer)
{
    struct rig *r = reading(false);
    response(r, WIRE_READ_RESP_FIRST, 0);
    response(r, WIRE_READ_RESP_MIDDLE, 3);
    ck_assert(!placed(r, 3));
    rig_tx(r, 0);
    const struct wire_pkt *p = &r->sent[r->nsent - 1];
    ck_assert_uint_eq(p->opcode, WIRE_READ_REQUEST);
    ck_assert_uint_eq(p->psn, tx_psn(1));
    ck_assert_uint_eq(p->dma_len, (N - 1) * RIG_MTU);
    rig_free(r);
}
END_TEST

/* LR-08: a response of a wrong length is not placed, nor one after the READ's end. */
START_TEST(lr_08_misfits)
{
    struct rig *r = reading(true);
    rig_read_resp(r, WIRE_READ_RESP_MIDDLE, tx_psn(3), RIG_MTU - 4, 9);
    rig_read_resp(r, WIRE_READ_RESP_LAST, tx_psn(N), RIG_MTU, 9);
    for (uint32_t i = 0; i < N * RIG_MTU; i++)
        ck_assert_uint_ne(r->mem[i], 9);
    ck_assert_uint_eq(rig_count(r, ENGINE_C_rx_placed_early), 0);
    ck_assert_int_eq(rig_state(r), QPS_RTS);
    rig_free(r);
}
END_TEST

/* LR-08, REQ-09: the copy of an early response fails: so does the READ, but not the requests before
 * it. */
START_TEST(lr_08_copy_fails)
{
    struct rig *r = agreed(NULL);
    rig_post(r, WR_RDMA_WRITE, 1, RIG_MTU, WR_F_SIGNALED);
    rig_post(r, WR_RDMA_READ, 2, N * RIG_MTU, WR_F_SIGNALED);
    rig_tx(r, 0);
    r->late = true;
    rig_read_resp(r, WIRE_READ_RESP_MIDDLE, tx_psn(3), RIG_MTU, 3);
    rig_copy(r, 1, -EFAULT);
    ck_assert_uint_eq(r->nwc, 2);
    ck_assert_int_eq(r->wc[0].status, WC_SUCCESS);
    ck_assert_int_eq(r->wc[1].status, WC_LOC_PROT_ERR);
    ck_assert_int_eq(rig_state(r), QPS_ERR);
    rig_free(r);
}
END_TEST

/* ---- responder ---- */

static void request(struct rig *r, uint32_t k, uint32_t packets)
{
    struct wire_pkt p = rig_pkt(r, WIRE_READ_REQUEST, rig_psn(RIG_RQPSN, k));
    p.va = RIG_VA + k * RIG_MTU;
    p.rkey = r->rkey;
    p.dma_len = packets * RIG_MTU;
    rig_rx(r, &p, NULL);
}

/* Opcode letter and packet number of each response since rig_clear. */
static const char *answers(const struct rig *r)
{
    static char text[256];
    size_t n = 0;
    text[0] = 0;
    for (unsigned i = 0; i < r->nsent; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%c%u", i ? " " : "",
                              "FMLO"[r->sent[i].opcode - WIRE_READ_RESP_FIRST],
                              rig_psn(r->sent[i].psn, 0x1000000 - RIG_RQPSN));
    return text;
}

/* LR-08, RD-10, RD-11: parts requested during the answer go first, the latest request before the
 * earlier one; then the answer continues where it was. */
START_TEST(lr_08_answers_a_part_in_between)
{
    struct rig *r = agreed(NULL);
    request(r, 0, N);
    rig_tx(r, 5);
    ck_assert_str_eq(answers(r), "F0 M1 M2 M3 M4");
    rig_clear(r);
    request(r, 1, 1);
    rig_tx(r, 2);
    ck_assert_str_eq(answers(r), "O1 M5");
    request(r, 2, 2);
    rig_tx(r, 1);
    request(r, 4, 1);
    rig_clear(r);
    rig_tx(r, 0);
    ck_assert_str_eq(answers(r), "O4 L3 M6 L7");
    rig_clear(r);
    request(r, 6, 1); /* all is sent: a part again */
    request(r, 3, 2);
    rig_tx(r, 0);
    ck_assert_str_eq(answers(r), "F3 L4 O6");
    rig_free(r);
}
END_TEST

/* LR-08, RD-11: responses in flight are not sent twice; a request to the READ's end replaces the
 * rest. */
START_TEST(lr_08_part_and_whole)
{
    struct rig *r = agreed(NULL);
    request(r, 0, N);
    rig_tx(r, 4);
    rig_clear(r);
    request(r, 5, 1);
    request(r, 1, 2);
    request(r, 2, 1); /* within that */
    rig_tx(r, 1);
    ck_assert_str_eq(answers(r), "F1");
    request(r, 2, N - 2);
    rig_clear(r);
    rig_tx(r, 0);
    ck_assert_str_eq(answers(r), "F2 M3 M4 M5 M6 L7");
    rig_free(r);
}
END_TEST

UNIT_MAIN("core sr read", lr_08_gap, lr_08_gaps, lr_08_timeout, lr_08_plain_peer, lr_08_misfits,
          lr_08_copy_fails, lr_08_answers_a_part_in_between, lr_08_part_and_whole)
