/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The owner of a peer's queue pair (SEC-33): the table alone.
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

static bool has_owner(struct claims *in, const struct claim_key *k, uid_t uid)
{
    uid_t owner;
    return claim_refuses(in, k, uid, 0, &owner, 0);
}

/* SEC-33: keys that differ in one part are different keys, in any bucket. */
START_TEST(sec_33_every_part_counts)
{
    claims_init(&t, 7);
    struct claim mine = by_id(1);
    claim_set(&t, &mine, &key);
    ck_assert(has_owner(&t, &key, 2));
    ck_assert(!has_owner(&t, &key, 1));
    for (unsigned i = 0; i < 3; i++) {
        struct claim_key other = key;
        other.local.b[15] ^= i == 0;
        other.peer.b[15] ^= i == 1;
        other.qpn ^= i == 2;
        ck_assert(!has_owner(&t, &other, 2));
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
            ck_assert_int_eq(has_owner(&t, &k, 2), i % 2);
        }
    }
}
END_TEST

/* SHM-12: a user that repeats a claim many times costs others nothing, in any order of dropping the
 * claims. */
START_TEST(the_same_often)
{
    static struct claim c[10000];
    struct claims *all = calloc(1, sizeof(*all));
    const unsigned n = sizeof(c) / sizeof(c[0]);
    struct claim other = by_qp(2, 16);
    ck_assert_ptr_nonnull(all);
    claims_init(all, 1);
    claim_set(all, &other, &key);
    for (unsigned i = 0; i < n; i++) {
        c[i] = by_id(1);
        claim_set(all, &c[i], &key);
        ck_assert(has_owner(all, &key, 2));
    }
    for (unsigned i = 0; i < n; i++) {
        struct claim *goes = &c[i % 2 ? n - i : i];
        claim_drop(goes);
        claim_drop(goes);
        ck_assert_int_eq(has_owner(all, &key, 2), i + 1 < n);
        ck_assert_int_eq(claim_is_shared(&other), i + 1 < n);
    }
    claim_drop(&other);
    ck_assert(!has_owner(all, &key, 3));
    free(all);
}
END_TEST

/* SEC-33: queue pairs alone own nothing; sharing is counted once for each later one. */
START_TEST(sec_33_queue_pairs_share)
{
    claims_init(&t, 7);
    struct claim a = by_qp(1, 16), b = by_qp(2, 32), c = by_qp(2, 48);
    claim_set(&t, &a, &key);
    ck_assert(!claim_is_shared(&a));
    claim_set(&t, &b, &key);
    claim_set(&t, &b, &key); /* again: nothing new */
    ck_assert_uint_eq(t.count.shared, 1);
    ck_assert(claim_is_shared(&a) && claim_is_shared(&b));
    ck_assert(!has_owner(&t, &key, 3));
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
    unsigned left = 2;
    ck_assert_ptr_eq(claim_displace(&conn, &left), &other);
    ck_assert_ptr_null(claim_displace(&conn, &left));
    ck_assert_uint_eq(left, 1);
    ck_assert_ptr_null(other.in);
    claim_drop(&other);
    struct claim_key elsewhere = key;
    elsewhere.qpn = 4;
    claim_set(&t, &conn, &elsewhere); /* in place of the first */
    ck_assert(!has_owner(&t, &key, 2));
    ck_assert(has_owner(&t, &elsewhere, 2));
}
END_TEST

/* SEC-33: a peer of another user's connection can't be claimed, also by a caller that asked before
 * the connection had it; the caller's earlier claim is gone, too. */
START_TEST(sec_33_first_connection_has_it)
{
    claims_init(&t, 7);
    struct claim conn = by_id(1), late = by_id(2), qp = by_qp(2, 16), own = by_qp(1, 32);
    struct claim_key elsewhere = key;
    uid_t owner;
    elsewhere.qpn = 4;
    ck_assert_int_eq(claim_set(&t, &qp, &elsewhere), CLAIM_SET);
    ck_assert(!claim_refuses(&t, &key, 2, 0, &owner, 1));
    ck_assert_int_eq(claim_set(&t, &conn, &key), CLAIM_SET);
    ck_assert_int_eq(claim_set(&t, &qp, &key), CLAIM_OWNED);
    ck_assert_int_eq(claim_set(&t, &late, &key), CLAIM_OWNED);
    ck_assert_ptr_null(qp.in);
    ck_assert_ptr_null(late.in);
    ck_assert(!has_owner(&t, &key, 1));
    ck_assert_int_eq(claim_set(&t, &own, &key), CLAIM_SET);
    ck_assert_int_eq(claim_set(&t, &conn, &key), CLAIM_SET); /* again */
    claim_drop(&conn);
    ck_assert_int_eq(claim_set(&t, &qp, &key), CLAIM_SHARED);
    ck_assert_uint_eq(t.count.shared, 1);
}
END_TEST

/* SEC-33: a queue pair that a connection on another worker has displaced doesn't get it back before
 * its worker hears. */
START_TEST(sec_33_displaced_stays_so)
{
    claims_init(&t, 7);
    struct claim conn = by_id(1), qp = by_qp(2, 16);
    unsigned left = 2;
    qp.member = 1;
    claim_set(&t, &qp, &key);
    claim_set(&t, &conn, &key);
    ck_assert_ptr_null(claim_displace(&conn, &left));
    ck_assert_int_eq(claim_set(&t, &qp, &key), CLAIM_OWNED);
    ck_assert_ptr_null(qp.in);
    ck_assert_ptr_null(claim_news(&t, 1));
}
END_TEST

static unsigned woken;
static uint64_t asked_at;

static void wake(void *arg, unsigned member)
{
    *(unsigned *)arg |= 1u << member;
}

static void ask_now(struct claim *c, uint64_t at)
{
    ck_assert_uint_eq(c->uid, 1);
    asked_at = at;
}

/* SEC-33: the actions for a claim on another worker of the device are left to that worker. */
START_TEST(sec_33_on_other_workers)
{
    claims_init(&t, 7);
    t.wake = wake;
    t.wake_arg = &woken;
    struct claim conn = by_id(1), qp[3];
    unsigned left = 64;
    uid_t owner;
    for (unsigned i = 0; i < 3; i++) {
        qp[i] = by_qp(2 + i, 16 + i);
        qp[i].member = i;
        claim_set(&t, &qp[i], &key);
    }
    conn.doubt = ask_now;
    claim_set(&t, &conn, &key);
    ck_assert_ptr_eq(claim_displace(&conn, &left), &qp[0]); /* on this worker */
    ck_assert_ptr_null(claim_displace(&conn, &left));
    ck_assert_uint_eq(woken, 6);
    ck_assert_uint_eq(left, 61);
    ck_assert(!claim_has_news(&t, 0) && claim_has_news(&t, 1) && claim_has_news(&t, 2));
    ck_assert(!has_owner(&t, &key, 1)); /* no other user claims it now */
    claim_drop(&qp[2]);                 /* the queue pair is gone before its worker hears */
    ck_assert_ptr_null(claim_news(&t, 2));
    ck_assert(!claim_has_news(&t, 2));
    ck_assert_ptr_eq(claim_news(&t, 1), &qp[1]);
    ck_assert_ptr_null(qp[1].in);
    ck_assert_ptr_null(claim_news(&t, 1));

    /* A refusal asks the owner, by its own worker; on this one at once. */
    ck_assert(claim_refuses(&t, &key, 5, 0, &owner, 77));
    ck_assert_uint_eq(owner, 1);
    ck_assert_uint_eq(asked_at, 77);
    ck_assert(claim_refuses(&t, &key, 5, 3, &owner, 88));
    ck_assert(claim_refuses(&t, &key, 5, 3, &owner, 99)); /* reported once */
    ck_assert_uint_eq(asked_at, 77);
    ck_assert_ptr_eq(claim_news(&t, 0), &conn);
    ck_assert_ptr_eq(conn.in, &t); /* the connection keeps its claim */
    ck_assert_ptr_null(claim_news(&t, 0));
    struct claim_counters n;
    claim_counts(&t, &n);
    ck_assert_uint_eq(n.refused, 3);
    ck_assert_uint_eq(n.displaced, 3);
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
    tcase_add_test(c, sec_33_first_connection_has_it);
    tcase_add_test(c, sec_33_displaced_stays_so);
    tcase_add_test(c, sec_33_on_other_workers);
    suite_add_tcase(s, c);
    return unit_run(s);
}
