/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdbool.h>

#include "blocks.h"
#include "unit.h"

#define S 1000000000ull

static struct blocks b;
static int owner[3];

START_TEST(sec_08_every_block_is_drawn_once)
{
    bool seen[QPN_BLOCKS] = {false};
    uint32_t random = 12345;
    for (unsigned i = 0; i < QPN_BLOCKS; i++) {
        random = random * 1664525u + 1013904223u;
        int block = blocks_draw(&b, &owner[i % 3], S, random);
        ck_assert_int_ge(block, 0);
        ck_assert(!seen[block]);
        seen[block] = true;
    }
    ck_assert_int_eq(blocks_draw(&b, &owner[0], S, random), -EAGAIN);
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
        b = (struct blocks){0};
        ck_assert_int_eq(blocks_draw(&b, &owner[0], S, rows[i].random), rows[i].block);
    }
    /* Those that are taken are left out. */
    b = (struct blocks){0};
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(blocks_draw(&b, &owner[0], S, 0), i);
    ck_assert_int_eq(blocks_draw(&b, &owner[0], S, UINT32_MAX), 1023);
    ck_assert_int_eq(blocks_draw(&b, &owner[0], S, UINT32_MAX), 1022);
}
END_TEST

START_TEST(sec_08_the_owner_of_a_number)
{
    b = (struct blocks){0};
    ck_assert_int_eq(blocks_draw(&b, &owner[0], S, 0), 0);
    ck_assert_int_eq(blocks_draw(&b, &owner[1], S, 0), 1);
    ck_assert_int_eq(blocks_draw(&b, &owner[1], S, UINT32_MAX), 1023);
    ck_assert_ptr_eq(blocks_owner(&b, 0x800000), &owner[0]);
    ck_assert_ptr_eq(blocks_owner(&b, 0x801FFF), &owner[0]);
    ck_assert_ptr_eq(blocks_owner(&b, 0x802000), &owner[1]);
    ck_assert_ptr_null(blocks_owner(&b, 0x804000));
    ck_assert_ptr_eq(blocks_owner(&b, 0xFFFFFE), &owner[1]);
    ck_assert_ptr_null(blocks_owner(&b, 0xFFFFFF)); /* of groups */
    ck_assert_ptr_null(blocks_owner(&b, 0));        /* of the daemon */
    ck_assert_ptr_null(blocks_owner(&b, 1));
    ck_assert_ptr_null(blocks_owner(&b, 0x000005));
    ck_assert_ptr_null(blocks_owner(&b, 0x7FFFFF));
}
END_TEST

START_TEST(sec_08_a_block_rests)
{
    b = (struct blocks){0};
    for (unsigned i = 0; i < QPN_BLOCKS; i++)
        ck_assert_int_ge(blocks_draw(&b, &owner[i == 77], S, 0), 0);
    blocks_give(&b, 77, 5 * S);
    ck_assert_ptr_null(blocks_owner(&b, 0x800000 | 77 << 13));
    ck_assert_int_eq(blocks_draw(&b, &owner[2], 5 * S, 0), -EAGAIN);
    ck_assert_int_eq(blocks_draw(&b, &owner[2], 65 * S - 1, 0), -EAGAIN);
    ck_assert_int_eq(blocks_draw(&b, &owner[2], 65 * S, 0), 77);
    ck_assert_ptr_eq(blocks_owner(&b, 0x800000 | 77 << 13), &owner[2]);
    /* A program that dies gives all of its own. */
    blocks_give_all(&b, &owner[0], 100 * S);
    ck_assert_ptr_eq(blocks_owner(&b, 0x800000 | 77 << 13), &owner[2]);
    ck_assert_int_eq(blocks_draw(&b, &owner[1], 159 * S, 0), -EAGAIN);
    ck_assert_int_eq(blocks_draw(&b, &owner[1], 160 * S, UINT32_MAX), 1023);
}
END_TEST

UNIT_MAIN("blocks", sec_08_every_block_is_drawn_once, sec_08_any_block_can_be_drawn,
          sec_08_the_owner_of_a_number, sec_08_a_block_rests)
