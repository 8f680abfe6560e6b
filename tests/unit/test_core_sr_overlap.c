/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Selective repeat: WRITEs that share octets, and come in another order than they were sent. The
 * test plays the peer. On a whole network: tests/net/test_memory_order.c.
 */
#include <string.h>

#include "sr_rig.h"

/* A WRITE of one packet, PSN number `at`: octets of value at + 1. */
static void rx_octets(struct rig *r, uint32_t at, uint32_t off, uint32_t len)
{
    uint8_t data[RIG_MTU];
    struct wire_pkt p = rig_pkt(r, WIRE_WRITE_ONLY, rig_psn(RIG_RQPSN, at));
    p.va = RIG_VA + off;
    p.rkey = r->rkey;
    p.dma_len = p.payload_len = len;
    p.ackreq = true;
    memset(data, (int)at + 1, sizeof(data));
    rig_rx(r, &p, data);
}

/* The contents of [off, off + len), octet by octet. */
static bool octets(const struct rig *r, uint32_t off, uint32_t len, int value)
{
    for (uint32_t i = off; i < off + len; i++)
        if (r->mem[i] != (uint8_t)value)
            return false;
    return true;
}

/* LR-06: octets of a late packet that later messages have already placed are not placed: at its
 * end, at its beginning, in its middle, or all of them. The same holds for a packet that is itself
 * ahead of a gap. Other octets aren't touched. */
START_TEST(lr_06_overlaps)
{
    struct rig *r = agreed(NULL);
    rx_octets(r, 4, 100, 100);
    rx_octets(r, 5, 300, 10);
    rx_octets(r, 3, 50, 100); /* its end is 4's */
    ck_assert(octets(r, 50, 50, 4) && octets(r, 100, 100, 5));
    rx_octets(r, 1, 190, 200); /* its begin is 4's, 5 lies in it */
    ck_assert(octets(r, 100, 100, 5) && octets(r, 200, 100, 2) && octets(r, 300, 10, 6) &&
              octets(r, 310, 80, 2));
    rx_octets(r, 0, 0, 1000);
    ck_assert(octets(r, 0, 50, 1) && octets(r, 50, 50, 4) && octets(r, 100, 100, 5) &&
              octets(r, 200, 100, 2) && octets(r, 300, 10, 6) && octets(r, 310, 80, 2) &&
              octets(r, 390, 610, 1) && octets(r, 1000, 100, 0));
    r->late = true;
    rx_octets(r, 2, 110, 50); /* 4 has all of it: nothing is left to wait for */
    ck_assert_uint_eq(r->ncopies, 0);
    rig_clear(r);
    rig_tx(r, 0);
    ck_assert(!r->sent[r->nsent - 1].selective);
    ck_assert_uint_eq(r->sent[r->nsent - 1].psn, rig_psn(RIG_RQPSN, 5));
    ck_assert_uint_eq(r->sent[r->nsent - 1].msn, 6);
    ck_assert(octets(r, 100, 100, 5));
    rig_free(r);
}
END_TEST

/* LR-06: more gaps than a frame may have copies: the parts without room have to be sent again. */
START_TEST(lr_06_many_overlaps)
{
    enum { N = 60 };
    struct rig *r = agreed(NULL);
    for (uint32_t i = 1; i <= N; i++)
        rx_octets(r, i, 10 * i, 5);
    r->late = true;
    rx_octets(r, 0, 0, RIG_MTU);
    ck_assert_uint_gt(r->ncopies, 1);
    ck_assert_uint_le(r->ncopies, ENGINE_FRAME_COPIES);
    r->late = false;
    rig_copy(r, r->ncopies, 0);
    for (uint32_t i = 1; i <= N; i++)
        rx_octets(r, i, 10 * i, 5);
    rig_clear(r);
    rx_octets(r, N + 1, 2000, 1);
    rig_tx(r, 0);
    ck_assert_uint_eq(r->sent[r->nsent - 1].psn, rig_psn(RIG_RQPSN, N + 1));
    ck_assert_uint_eq(r->sent[r->nsent - 1].msn, N + 2);
    for (uint32_t i = 1; i <= N; i++)
        ck_assert(octets(r, 10 * i, 5, (int)i + 1) && octets(r, 10 * i + 5, 5, 1));
    rig_free(r);
}
END_TEST

/* LR-07, REQ-17: an ATOMIC has no early effect, and its whole effect in its turn: it finds the
 * memory of that time, perhaps with a later WRITE's octets. */
START_TEST(lr_07_atomic_among_early_writes)
{
    struct rig *r = agreed(NULL);
    struct wire_pkt add = rig_pkt(r, WIRE_FETCH_ADD, rig_psn(RIG_RQPSN, 0));
    add.va = RIG_VA;
    add.rkey = r->rkey;
    add.swap_add = 1;
    rx_octets(r, 1, 0, 8);
    rig_rx(r, &add, NULL);
    ck_assert(octets(r, 1, 7, 2));
    ck_assert_uint_eq(r->mem[0], 3);
    rig_free(r);
}
END_TEST

UNIT_MAIN("core sr overlap", lr_06_overlaps, lr_06_many_overlaps, lr_07_atomic_among_early_writes)
