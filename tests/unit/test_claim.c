/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Whose a peer's queue pair is (SEC-33): the table alone.
 */
#include <stdlib.h>

#include "claim.h"

#include <check.h>

#include "unit.h"

static struct claims t;
static const struct claim_key key = {.local = {{1}}, .peer = {{2}}, .qpn = 3};

static struct claim by_qp(unsigned uid, uintptr_t qp)
{
    return (struct claim){.uid = uid, .qp = (struct client_qp *)qp};
}

static void ask(struct claim *c, uint64_t at)
{
    (void)c;
    (void)at;
}

static struct claim by_id(unsigned uid)
{
    return (struct claim){.uid = uid, .doubt = ask};
}

/* SEC-33: keys that differ in one part are not the same, whatever bucket they are in. */
START_TEST(sec_33_every_part_counts)
{
    claims_init(&t, 7);
    struct claim mine = by_id(1);
    claim_set(&t, &mine, &key);
    ck_assert_ptr_eq(claim_owner(&t, &key, 2), &mine);
    ck_assert_ptr_null(claim_owner(&t, &key, 1));
    for (unsigned i = 0; i < 3; i++) {
        struct claim_key other = key;
        other.local.b[15] ^= i == 0;
        other.peer.b[15] ^= i == 1;
        other.qpn ^= i == 2;
        ck_assert_ptr_null(claim_owner(&t, &other, 2));
    }
    for (uint64_t seed = 0; seed < 64; seed++) { /* all in few buckets */
        claims_init(&t, seed);
        struct claim c[64];
        for (unsigned i = 0; i < 64; i++) {
            struct claim_key k = key;
            k.qpn = i;
            c[i] = by_id(1);
            claim_set(&t, &c[i], &k);
        }
        for (unsigned i = 0; i < 64; i += 2)
            claim_drop(&c[i]);
        for (unsigned i = 0; i < 64; i++) {
            struct claim_key k = key;
            k.qpn = i;
            ck_assert_ptr_eq(claim_owner(&t, &k, 2), i % 2 ? &c[i] : NULL);
        }
    }
}
END_TEST

/* SHM-12: a user who claims the same again and again costs others nothing, in whatever order the
 * claims go. */
START_TEST(the_same_often)
{
    static struct claim c[10000];
    struct claims *all = calloc(1, sizeof(*all));
    const unsigned n = sizeof(c) / sizeof(c[0]);
    struct claim other = by_id(2);
    ck_assert_ptr_nonnull(all);
    claims_init(all, 1);
    for (unsigned i = 0; i < n; i++) {
        c[i] = by_id(1);
        claim_set(all, &c[i], &key);
        ck_assert_ptr_nonnull(claim_owner(all, &key, 2));
    }
    claim_set(all, &other, &key);
    for (unsigned i = 0; i < n; i++) {
        struct claim *goes = &c[i % 2 ? n - i : i];
        claim_drop(goes);
        claim_drop(goes);
        ck_assert_int_eq(claim_owner(all, &key, 2) != NULL, i + 1 < n);
        ck_assert_ptr_eq(claim_owner(all, &key, 1), &other);
    }
    claim_drop(&other);
    ck_assert_ptr_null(claim_owner(all, &key, 3));
    free(all);
}
END_TEST

/* SEC-33: queue pairs alone own nothing; what is shared is counted once for each that comes later.
 */
START_TEST(sec_33_queue_pairs_share)
{
    claims_init(&t, 7);
    struct claim a = by_qp(1, 16), b = by_qp(2, 32), c = by_qp(2, 48);
    claim_set(&t, &a, &key);
    ck_assert(!claim_is_shared(&a));
    claim_set(&t, &b, &key);
    claim_set(&t, &b, &key); /* again: nothing new */
    ck_assert_uint_eq(t.shared, 1);
    ck_assert(claim_is_shared(&a) && claim_is_shared(&b));
    ck_assert_ptr_null(claim_owner(&t, &key, 3));
    claim_set(&t, &c, &key);
    claim_drop(&a);
    claim_drop(&a);
    ck_assert(!claim_is_shared(&a));
    ck_assert(!claim_is_shared(&b)); /* c is the same user's */
}
END_TEST

/* SEC-33: a connection finds the queue pairs of others that it displaces, and not its own user's.
 */
START_TEST(sec_33_rivals)
{
    claims_init(&t, 7);
    struct claim own = by_qp(1, 16), other = by_qp(2, 32), conn = by_id(1);
    claim_set(&t, &own, &key);
    claim_set(&t, &other, &key);
    claim_set(&t, &conn, &key);
    ck_assert_ptr_eq(claim_rival(&conn), other.qp);
    claim_drop(&other);
    ck_assert_ptr_null(claim_rival(&conn));
    struct claim_key elsewhere = key;
    elsewhere.qpn = 4;
    claim_set(&t, &conn, &elsewhere); /* in place of the first */
    ck_assert_ptr_null(claim_owner(&t, &key, 2));
    ck_assert_ptr_eq(claim_owner(&t, &elsewhere, 2), &conn);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("claim");
    TCase *c = tcase_create("claim");

    tcase_add_test(c, sec_33_every_part_counts);
    tcase_add_test(c, the_same_often);
    tcase_add_test(c, sec_33_queue_pairs_share);
    tcase_add_test(c, sec_33_rivals);
    suite_add_tcase(s, c);
    return unit_run(s);
}
