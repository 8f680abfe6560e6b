/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lib/mem/mem_key.c and the keys that mem.c gives out.
 */
#include <string.h>

#include "mem_priv.h"
#include "test_mem_util.h"

/* SEC-12: the index hides the slot by a permutation: every index once, and it can be undone. */
START_TEST(sec_12_index_is_a_permutation_of_slots)
{
    static const uint64_t seed[2] = {7, 9};
    static uint8_t seen[1u << 21];
    struct mem_keys k;
    mem_keys_init(&k, seed);
    memset(seen, 0, sizeof(seen));
    for (uint32_t slot = 0; slot < 1u << 24; slot++) {
        uint32_t index = mem_key_hide(&k, slot);

        if (index >= 1u << 24 || (seen[index >> 3] & 1u << (index & 7)) ||
            mem_key_show(&k, index) != slot) {
            ck_abort_msg("SEC-12 slot %u", slot);
        }
        seen[index >> 3] |= (uint8_t)(1u << (index & 7));
    }
}
END_TEST

/* SEC-12: other seeds, in either half, give unrelated keys; neighbours in the table aren't
 * neighbours in the keys.
 */
START_TEST(sec_12_keys_depend_on_the_secret)
{
    static const uint64_t other[][2] = {{0, 1}, {1, 1}, {0, 0}};
    struct mem_keys a, b;
    unsigned steps = 0;
    mem_keys_init(&a, (const uint64_t[2]){1, 0});
    for (unsigned i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
        unsigned same = 0;
        mem_keys_init(&b, other[i]);
        for (uint32_t slot = 0; slot < 1000; slot++)
            same += mem_key_hide(&a, slot) == mem_key_hide(&b, slot);
        ck_assert_msg(same < 3, "SEC-12 %u equal keys of 1000 under two secrets", same);
        ck_assert_uint_ne(mem_keys_random(&a), mem_keys_random(&b));
    }
    for (uint32_t slot = 0; slot < 1000; slot++)
        steps += mem_key_hide(&a, slot) + 1 == mem_key_hide(&a, slot + 1);
    ck_assert_msg(steps < 3, "SEC-12 %u sequential keys of 1000", steps);
}
END_TEST

/* SEC-12: so are the keys of a table's regions, which are the same again with the same secret. */
START_TEST(sec_12_regions_have_keys_of_the_secret)
{
    static const uint64_t secret[][2] = {{1, 0}, {1, 0}, {0, 1}};
    uint32_t key[3][32];
    unsigned same = 0;
    for (unsigned i = 0; i < 3; i++) {
        const struct mem_params p = {
            .max_pd = 1, .max_mr = 32, .key = {secret[i][0], secret[i][1]}};
        struct mem *m = mem_create(&p);
        uint32_t pd = mem_make_pd(m);
        for (unsigned k = 0; k < 32; k++)
            key[i][k] = mem_make_mr(m, pd, 0, 64, MEM_REMOTE_READ);
        mem_destroy(m);
    }
    ck_assert_mem_eq(key[0], key[1], sizeof(key[0]));
    for (unsigned k = 0; k < 32; k++)
        same += key[0][k] >> 8 == key[2][k] >> 8;
    ck_assert_msg(same < 2, "SEC-12 %u equal indices of 32 under two secrets", same);
}
END_TEST

/* The hash is SipHash-2-4: its published vector for the 8 octets 00..07 under the key 00..0f. */
START_TEST(sec_12_hash_is_siphash)
{
    static const uint64_t seed[2] = {0x0706050403020100, 0x0F0E0D0C0B0A0908};
    ck_assert_uint_eq(mem_key_hash(seed, 0x0706050403020100), 0x93F5F5799A932462);
}
END_TEST

/* SEC-12, MR-07: the same slot registered over and over: no key comes back soon, and the variant
 * octet is no counter. */
START_TEST(mr_07_keys_dont_repeat)
{
    enum { N = 2048 };
    static uint32_t keys[N];
    struct mem *m = mem_make(64);
    uint32_t pd = mem_make_pd(m);
    unsigned steps = 0;
    for (unsigned i = 0; i < N; i++) {
        keys[i] = mem_make_mr(m, pd, 0, 16, 0);
        ck_assert_msg(keys[i] >> 8 != 0, "MR-01 index 0 is never valid");
        ck_assert_int_eq(mem_mr_dereg(m, keys[i]), 0);
        for (unsigned j = i > 500 ? i - 500 : 0; j < i; j++) {
            ck_assert_msg(keys[i] != keys[j], "MR-07 key %u repeats after %u", i, i - j);
        }
        steps += i > 0 && (keys[i] & 0xFF) == ((keys[i - 1] + 1) & 0xFF);
    }
    ck_assert_msg(steps < N / 100, "SEC-12 variant octet counts: %u of %u", steps, N);
    mem_destroy(m);
}
END_TEST

/* MR-01: no key ever has index 0: the slot whose next epoch would give it skips that epoch. */
START_TEST(mr_01_index_0_never_given_out)
{
    struct mem *m = mem_make(64);
    uint32_t pd = mem_make_pd(m), hidden = mem_key_show(&m->keys, 0);
    uint32_t victim = hidden & ((1u << m->slot_bits) - 1), last = 0;
    ck_assert_int_eq(mem_mr_dereg(m, mem_make_mr(m, pd, 0, 16, 0)), 0);
    m->params.max_mr = m->slot_bits < 20 ? 1u << m->slot_bits : 0;
    for (uint32_t i = 0; i <= victim; i++) {
        if (victim < m->cap) { /* as soon as the table has grown to it */
            m->cold[victim].epoch = (hidden >> m->slot_bits) - 1;
        }
        last = mem_make_mr(m, pd, 0, 16, 0);
        ck_assert_msg(last >> 8 != 0, "MR-01 index 0");
    }
    for (uint32_t i = 0; i < m->cap && m->slots[victim].kind == 0; i++) {
        m->cold[victim].epoch = (hidden >> m->slot_bits) - 1;
        last = mem_make_mr(m, pd, 0, 16, 0);
        ck_assert_msg(last >> 8 != 0, "MR-01 index 0");
    }
    ck_assert_msg(m->slots[victim].kind != 0, "the slot was used");
    mem_destroy(m);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("mem_key");
    TCase *t = tcase_create("keys");

    tcase_set_timeout(t, 60);
    tcase_add_test(t, sec_12_index_is_a_permutation_of_slots);
    tcase_add_test(t, sec_12_keys_depend_on_the_secret);
    tcase_add_test(t, sec_12_regions_have_keys_of_the_secret);
    tcase_add_test(t, sec_12_hash_is_siphash);
    tcase_add_test(t, mr_07_keys_dont_repeat);
    tcase_add_test(t, mr_01_index_0_never_given_out);
    suite_add_tcase(s, t);
    return unit_run(s);
}
