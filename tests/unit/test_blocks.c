/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdbool.h>

#include "blocks.h"
#include "pair.h"
#include "share.h"
#include "unit.h"

#define S 1000000000ull

static struct blocks b;

START_TEST(sec_08_every_block_is_drawn_once)
{
    bool seen[QPN_BLOCKS] = {false};
    uint32_t random = 12345;
    blocks_init(&b);
    for (unsigned i = 0; i < QPN_BLOCKS; i++) {
        random = random * 1664525u + 1013904223u;
        int block = blocks_draw(&b, i % 3, NULL, S, random);
        ck_assert_int_ge(block, 0);
        ck_assert(!seen[block]);
        seen[block] = true;
    }
    ck_assert_int_eq(blocks_draw(&b, 0, NULL, S, random), -EAGAIN);
}
END_TEST

/* The random number decides, over all of the range. */
START_TEST(sec_08_any_block_can_be_drawn)
{
    static const struct {
        uint32_t random;
        int block;
    } rows[] = {{0, 0}, {UINT32_MAX, 1023}, {0x80000000u, 512}, {0x3FFFFF, 0}, {0x400000, 1}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        blocks_init(&b);
        ck_assert_int_eq(blocks_draw(&b, 0, NULL, S, rows[i].random), rows[i].block);
    }
    /* Used blocks are left out. */
    blocks_init(&b);
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(blocks_draw(&b, 0, NULL, S, 0), i);
    ck_assert_int_eq(blocks_draw(&b, 0, NULL, S, UINT32_MAX), 1023);
    ck_assert_int_eq(blocks_draw(&b, 0, NULL, S, UINT32_MAX), 1022);
}
END_TEST

START_TEST(sec_08_the_worker_of_a_number)
{
    blocks_init(&b);
    ck_assert_int_eq(blocks_draw(&b, 0, NULL, S, 0), 0);
    ck_assert_int_eq(blocks_draw(&b, 1, NULL, S, 0), 1);
    ck_assert_int_eq(blocks_draw(&b, 1, NULL, S, UINT32_MAX), 1023);
    ck_assert_int_eq(blocks_worker(&b, 0x800000), 0);
    ck_assert_int_eq(blocks_worker(&b, 0x801FFF), 0);
    ck_assert_int_eq(blocks_worker(&b, 0x802000), 1);
    ck_assert_int_eq(blocks_worker(&b, 0x804000), -1);
    ck_assert_int_eq(blocks_worker(&b, 0xFFFFFE), 1);
    ck_assert_int_eq(blocks_worker(&b, 0xFFFFFF), -1); /* of groups */
    ck_assert_int_eq(blocks_worker(&b, 0), -1);        /* of the daemon */
    ck_assert_int_eq(blocks_worker(&b, 1), -1);
    ck_assert_int_eq(blocks_worker(&b, 0x000005), -1);
    ck_assert_int_eq(blocks_worker(&b, 0x7FFFFF), -1);
    ck_assert_int_eq(blocks_first(&b, 0), 0);
    ck_assert_int_eq(blocks_first(&b, 1), 1);
    ck_assert_int_eq(blocks_first(&b, 2), -1);
    blocks_give(&b, 1, S);
    ck_assert_int_eq(blocks_first(&b, 1), 1023);
}
END_TEST

START_TEST(sec_08_a_block_rests)
{
    blocks_init(&b);
    for (unsigned i = 0; i < QPN_BLOCKS; i++)
        ck_assert_int_ge(blocks_draw(&b, i == 77, NULL, S, 0), 0);
    blocks_give(&b, 77, 5 * S);
    ck_assert_int_eq(blocks_worker(&b, 0x800000 | 77 << 13), -1);
    ck_assert_int_eq(blocks_draw(&b, 2, NULL, 5 * S, 0), -EAGAIN);
    ck_assert_int_eq(blocks_draw(&b, 2, NULL, 65 * S - 1, 0), -EAGAIN);
    ck_assert_int_eq(blocks_draw(&b, 2, NULL, 65 * S, 0), 77);
    ck_assert_int_eq(blocks_worker(&b, 0x800000 | 77 << 13), 2);
    /* It rests for all workers. */
    blocks_give(&b, 1023, 100 * S);
    ck_assert_int_eq(blocks_worker(&b, 0x800000 | 77 << 13), 2);
    ck_assert_int_eq(blocks_draw(&b, 1, NULL, 160 * S - 1, 0), -EAGAIN);
    ck_assert_int_eq(blocks_draw(&b, 1, NULL, 160 * S, UINT32_MAX), 1023);
}
END_TEST

/* SEC-22: a user has at most seven eighths of the blocks, returned ones that still rest included.
 * Another user still gets some. */
START_TEST(sec_22_a_user_has_its_share)
{
    struct share_pool pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .limit[SHARE_BLOCK] = QPN_BLOCKS};
    struct share *user = share_join(&pool, 1000, false), *other = share_join(&pool, 1001, false);
    struct share *admin = share_join(&pool, 0, true);
    const unsigned most = QPN_BLOCKS - QPN_BLOCKS / 8;
    blocks_init(&b);
    for (unsigned i = 0; i < most; i++)
        ck_assert_int_ge(blocks_draw(&b, 0, user, S, 0), 0);
    ck_assert_int_eq(blocks_draw(&b, 0, user, S, 0), -EDQUOT);
    for (unsigned i = 0; i < most; i++)
        blocks_give(&b, i, 2 * S);
    ck_assert_int_eq(blocks_draw(&b, 0, user, 2 * S, 0), -EDQUOT);
    ck_assert_int_ge(blocks_draw(&b, 1, other, 2 * S, 0), 0);
    ck_assert_int_ge(blocks_draw(&b, 2, admin, 2 * S, 0), 0);
    share_leave(user); /* the user goes; resting blocks still count */
    user = share_join(&pool, 1000, false);
    ck_assert_int_eq(blocks_draw(&b, 0, user, 61 * S, 0), -EDQUOT);
    ck_assert_int_ge(blocks_draw(&b, 0, user, 62 * S, 0), 0);
    ck_assert_uint_eq(user->used[SHARE_BLOCK], 1);
    ck_assert_uint_eq(pool.refused[SHARE_BLOCK], 3);
    blocks_free(&b);
    ck_assert_uint_eq(pool.used[SHARE_BLOCK], 0);
    share_leave(user);
    share_leave(other);
    share_leave(admin);
    ck_assert_ptr_null(pool.first);
}
END_TEST

/* SEC-35: the same places of two blocks have different pairs. */
START_TEST(sec_35_pairs_of_two_blocks)
{
    struct switch_channel c = {0};
    struct switch_pair one = {.qpn = 0x800000 | 5 << 13 | 7}, two = {.qpn = 0x800000 | 6 << 13 | 7};
    ck_assert_ptr_null(switch_pair_of(&c, one.qpn));
    ck_assert_int_eq(switch_pair_add(&c, &one), 0);
    ck_assert_ptr_null(switch_pair_of(&c, two.qpn));
    ck_assert_int_eq(switch_pair_add(&c, &two), 0);
    ck_assert_ptr_eq(switch_pair_of(&c, one.qpn), &one);
    ck_assert_ptr_eq(switch_pair_of(&c, two.qpn), &two);
    switch_pair_remove(&c, &two);
    switch_pair_remove(&c, &two);
    ck_assert_ptr_eq(switch_pair_of(&c, one.qpn), &one);
    ck_assert_ptr_null(switch_pair_of(&c, two.qpn));
    ck_assert_ptr_null(switch_pair_of(&c, 0x000123)); /* of the daemon's */
    ck_assert_uint_eq(c.npairs, 1);
    switch_pairs_free(&c);
    ck_assert_ptr_null(c.pairs);
}
END_TEST

UNIT_MAIN("blocks", sec_08_every_block_is_drawn_once, sec_08_any_block_can_be_drawn,
          sec_08_the_worker_of_a_number, sec_08_a_block_rests, sec_22_a_user_has_its_share,
          sec_35_pairs_of_two_blocks)
