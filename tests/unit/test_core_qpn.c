/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "qpn.h"
#include "unit.h"

static const uint64_t key[2] = {0x0123456789ABCDEF, 0xFEDCBA9876543210};

/* SEC-08, QP-14: over all lives of all slots of all workers every number occurs once, is never 0, 1
 * or 0xFFFFFF (HDR-07), and leads back to its slot and worker without any search (SEC-19). */
START_TEST(sec_08_a_permutation)
{
    uint8_t *seen = calloc(1, 1 << 24);
    unsigned wrong = 0;
    for (unsigned worker = 0; worker < 4; worker++) {
        struct qpn_map m;
        qpn_map_init(&m, key, worker, 2, false, 1000);
        ck_assert_uint_eq(qpn_lives(&m), 1u << 11);
        for (uint32_t life = 0; life < qpn_lives(&m); life += 5) {
            for (uint32_t slot = 0; slot < 1024; slot++) {
                uint32_t q = qpn_make(&m, slot, life);
                if (!q)
                    continue;
                unsigned w, back = qpn_slot(&m, q, &w);
                wrong += q <= 1 || q >= 0xFFFFFF || seen[q] || back != slot || w != worker ||
                         q >> 21 != worker || qpn_worker(q, 2) != worker;
                seen[q] = 1;
            }
        }
    }
    ck_assert_uint_eq(wrong, 0);
    free(seen);
}
END_TEST

/* Every number leads back to its slot, with each number of worker bits, and an even or odd number
 * of remaining bits. */
START_TEST(sec_08_widths)
{
    for (unsigned bits = 0; bits <= 4; bits++) {
        const unsigned last = (1u << bits) - 1;
        struct qpn_map m;
        unsigned wrong = 0, w;
        qpn_map_init(&m, key, last, bits, false, 65536);
        for (uint32_t slot = 0; slot < 65536; slot++) {
            uint32_t q = qpn_make(&m, slot, slot % qpn_lives(&m));
            wrong += q && (qpn_slot(&m, q, &w) != slot || w != last || (bits && q >> 23));
        }
        ck_assert_uint_eq(wrong, 0);
        /* A number with the first bit belongs to no engine of the daemon. */
        if (bits)
            ck_assert_uint_gt(qpn_worker(0x800001u, bits), last);
    }
}
END_TEST

/* A worker that is alone, with programs beside it, makes all numbers without bit 23; one with that
 * bit is another's. */
START_TEST(sec_08_beside_programs)
{
    struct qpn_map m;
    unsigned wrong = 0, w;
    qpn_map_init(&m, key, 0, 0, true, 4096);
    ck_assert_uint_eq(qpn_lives(&m), 1u << 11);
    for (uint32_t life = 0; life < 64; life++) {
        for (uint32_t slot = 0; slot < 4096; slot++) {
            uint32_t q = qpn_make(&m, slot, life);
            wrong += q && (q >> 23 || qpn_slot(&m, q, &w) != slot || w != 0);
        }
    }
    ck_assert_uint_eq(wrong, 0);
    (void)qpn_slot(&m, 0x800123, &w);
    ck_assert_uint_eq(w, 1);
}
END_TEST

/* SEC-08: not sequential, and another key gives other numbers. */
START_TEST(sec_08_keyed)
{
    static const uint64_t other[2] = {1, 2};
    struct qpn_map a, b;
    qpn_map_init(&a, key, 0, 0, false, 64);
    qpn_map_init(&b, other, 0, 0, false, 64);
    unsigned same = 0, near = 0;
    for (uint32_t s = 0; s + 1 < 64; s++) {
        same += qpn_make(&a, s, 0) == qpn_make(&b, s, 0);
        near += abs((int)qpn_make(&a, s, 0) - (int)qpn_make(&a, s + 1, 0)) < 256;
    }
    ck_assert_uint_lt(same, 3);
    ck_assert_uint_lt(near, 3);
}
END_TEST

/* Each number of a block occurs once, names the block in clear, and leads back; two keys or blocks
 * permute otherwise. */
START_TEST(sec_08_blocks_of_programs)
{
    static const unsigned blocks[] = {0, 1, 511, 1022, 1023};
    static const uint64_t other[2] = {5, 6};
    uint8_t *seen = calloc(1, 1 << 24);
    for (unsigned i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++) {
        struct qpn_map m, o;
        unsigned wrong = 0, none = 0, same = 0, w;
        qpn_map_init_block(&m, key, blocks[i], 1024);
        qpn_map_init_block(&o, other, blocks[i], 1024);
        ck_assert_uint_eq(qpn_lives(&m), 8);
        for (uint32_t life = 0; life < 8; life++) {
            for (uint32_t slot = 0; slot < 1024; slot++) {
                uint32_t q = qpn_make(&m, slot, life);
                none += q == 0;
                if (q == 0)
                    continue;
                wrong += seen[q] || q >> 13 != (1024 | blocks[i]) || qpn_block(q) != blocks[i] ||
                         qpn_slot(&m, q, &w) != slot || w != 0;
                same += q == qpn_make(&o, slot, life);
                seen[q] = 1;
            }
        }
        ck_assert_uint_eq(wrong, 0);
        ck_assert_uint_eq(none, blocks[i] == 1023); /* 0xFFFFFF: HDR-07 */
        ck_assert_uint_lt(same, 20);
        (void)qpn_slot(&m, 0x801000 ^ (blocks[i] ^ 2) << 13, &w);
        ck_assert_uint_eq(w, 1); /* another block's */
        /* As many slots as there are numbers: one life each. */
        qpn_map_init_block(&m, key, blocks[i], 100000);
        ck_assert_uint_eq(qpn_lives(&m), 1);
    }
    free(seen);
    ck_assert_uint_eq(qpn_block(0), QPN_BLOCKS);
    ck_assert_uint_eq(qpn_block(0x7FFFFF), QPN_BLOCKS);
    ck_assert_uint_eq(qpn_block(0x800000), 0);
    ck_assert_uint_eq(qpn_block(0xFFFFFE), 1023);
    ck_assert_uint_eq(qpn_block(0xFFFFFF), QPN_BLOCKS);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("qpn");
    TCase *c = tcase_create("qpn");
    tcase_set_timeout(c, 20);
    tcase_add_test(c, sec_08_a_permutation);
    tcase_add_test(c, sec_08_widths);
    tcase_add_test(c, sec_08_blocks_of_programs);
    tcase_add_test(c, sec_08_beside_programs);
    tcase_add_test(c, sec_08_keyed);
    suite_add_tcase(s, c);
    return unit_run(s);
}
