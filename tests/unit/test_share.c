/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Users' shares of limited resources (SEC-22).
 */
#include <errno.h>

#include "group.h"
#include "handle.h"
#include "memory.h"
#include "qslab.h"
#include "quota.h"
#include "share.h"
#include "unit.h"

/* Take as much as this user gets, one by one. */
static uint64_t fill(struct share *s, enum share_kind kind)
{
    uint64_t n = 0;
    while (share_take(s, kind, 1) == 0)
        n++;
    return n;
}

static void leave_all(struct share_pool *pool)
{
    while (pool->first)
        share_leave(pool->first);
}

/* SEC-22: a single user gets seven eighths; each later user gets some, too, and the first one no
 * more. */
START_TEST(share_leaves_some)
{
    struct share_pool pool = {.limit = {[SHARE_QP] = LIMIT_QP}};
    struct share *first = share_join(&pool, 1000, false);
    uint64_t left = LIMIT_QP / 8, n;
    ck_assert_uint_eq(fill(first, SHARE_QP), LIMIT_QP / 8 * 7);
    for (uid_t uid = 1001; uid < 1030; uid++) {
        struct share *s = share_join(&pool, uid, false);
        n = fill(s, SHARE_QP);
        ck_assert_uint_eq(n, left / 8);
        ck_assert_uint_gt(n, 16);
        ck_assert_uint_eq(fill(first, SHARE_QP), 0);
        left -= n;
    }
    ck_assert_uint_eq(pool.used[SHARE_QP], LIMIT_QP - left);
    leave_all(&pool);
}
END_TEST

/* The README's ten thousand idle queue pairs, and a thousand busy ones of the next user. */
START_TEST(share_keeps_promises)
{
    struct share_pool pool = {.limit = {[SHARE_QP] = LIMIT_QP}};
    ck_assert_int_eq(share_take(share_join(&pool, 1000, false), SHARE_QP, 10000), 0);
    ck_assert_int_eq(share_take(share_join(&pool, 1001, false), SHARE_QP, 10000), 0);
    fill(share_join(&pool, 1002, false), SHARE_QP);
    ck_assert_int_eq(share_take(share_join(&pool, 1003, false), SHARE_QP, 1024), 0);
    leave_all(&pool);
}
END_TEST

/* SEC-22: all connections of a user count together, and returned objects are available to all; the
 * last connection removes the share. */
START_TEST(share_of_all_members)
{
    struct share_pool pool = {.limit = {[SHARE_FDS] = 800, [SHARE_MR] = 80}};
    struct share *s = share_join(&pool, 7, false);
    ck_assert_ptr_eq(share_join(&pool, 7, false), s);
    ck_assert_ptr_ne(share_join(&pool, 8, false), s);
    ck_assert_uint_eq(fill(s, SHARE_FDS), 700);
    ck_assert_uint_eq(fill(s, SHARE_MR), 70); /* kinds don't know each other */
    share_give(s, SHARE_FDS, 300);
    ck_assert_int_eq(share_take(s, SHARE_FDS, 301), -EDQUOT);
    ck_assert_int_eq(share_take(s, SHARE_FDS, 300), 0);
    share_give(s, SHARE_FDS, 700);
    share_give(s, SHARE_MR, 70);
    ck_assert_ptr_eq(share_hold(s), s);
    for (unsigned i = 0; i < 2; i++) {
        share_leave(s);
        ck_assert_ptr_eq(pool.first->next, s);
    }
    share_leave(s);
    ck_assert_ptr_null(pool.first->next);
    share_leave(pool.first);
    ck_assert_ptr_null(pool.first);
    ck_assert_uint_eq(pool.used[SHARE_FDS] + pool.used[SHARE_MR], 0);
}
END_TEST

/* SEC-22: an administrator's subordinates count as that user, but are no administrators; a refusal
 * is counted, and its kind remembered. */
START_TEST(share_of_subordinates)
{
    struct share_pool pool = {.limit = {[SHARE_QP] = 80}};
    struct share *admin = share_join(&pool, 0, true), *sub = share_join(&pool, 0, false);
    ck_assert_ptr_ne(admin, sub);
    ck_assert_ptr_eq(share_join(&pool, 0, false), sub);
    ck_assert_int_eq(sub->lacked, SHARE_KINDS);
    ck_assert_uint_eq(fill(sub, SHARE_QP), 70);
    ck_assert_int_eq(sub->lacked, SHARE_QP);
    ck_assert_uint_eq(pool.refused[SHARE_QP], 1);
    ck_assert_int_eq(share_take(admin, SHARE_QP, 100), 0);
    share_fini(&pool);
}
END_TEST

/* Sizes that would wrap are too many, not few. */
START_TEST(share_of_too_much)
{
    struct share_pool pool = {.limit = {[SHARE_OCTETS] = 1000}};
    struct share *s = share_join(&pool, 7, false);
    ck_assert_int_eq(share_take(s, SHARE_OCTETS, 10), 0);
    ck_assert_int_eq(share_take(s, SHARE_OCTETS, UINT64_MAX), -EDQUOT);
    ck_assert_int_eq(share_take(s, SHARE_OCTETS, UINT64_MAX - 9), -EDQUOT);
    ck_assert_int_eq(share_take(s, SHARE_OCTETS, 866), -EDQUOT);
    ck_assert_int_eq(share_take(s, SHARE_OCTETS, 865), 0);
    ck_assert_int_eq(share_take(s, SHARE_QP, UINT64_MAX), 0); /* without a limit */
    leave_all(&pool);
}
END_TEST

/* Administrators have no share, but their objects reduce the rest for others. */
START_TEST(share_of_administrators)
{
    struct share_pool pool = {.limit = {[SHARE_QP] = 80}};
    struct share *root = share_join(&pool, 0, true), *s = share_join(&pool, 7, false);
    ck_assert_int_eq(share_take(root, SHARE_QP, 79), 0);
    ck_assert_int_eq(share_take(s, SHARE_QP, 1), -EDQUOT);
    ck_assert_int_eq(share_take(root, SHARE_QP, 20), 0);
    ck_assert_int_eq(share_take(s, SHARE_QP, 1), -EDQUOT);
    share_give(root, SHARE_QP, 50);
    ck_assert_uint_eq(fill(s, SHARE_QP), 21);
    ck_assert_int_eq(share_take(NULL, SHARE_QP, 1000), 0);
    share_give(NULL, SHARE_QP, 1000);
    ck_assert_ptr_null(share_hold(NULL));
    share_leave(NULL);
    leave_all(&pool);
}
END_TEST

/* SEC-22: objects and channels count by their handles; a refusal costs nothing. */
START_TEST(share_by_handles)
{
    static const struct {
        enum handle_kind kind;
        enum share_kind share;
        bool of_daemon;
    } kinds[] = {
        {HANDLE_PD, SHARE_PD, false},         {HANDLE_MR, SHARE_MR, false},
        {HANDLE_MW, SHARE_MW, false},         {HANDLE_CQ, SHARE_CQ, false},
        {HANDLE_SRQ, SHARE_SRQ, false},       {HANDLE_QP, SHARE_QP, false},
        {HANDLE_CM_ID, SHARE_CM_ID, false},   {HANDLE_CHANNEL, SHARE_FDS, true},
        {HANDLE_CM_CHANNEL, SHARE_FDS, true},
    };
    struct handle_table t;
    uint32_t h[15];
    int x;
    for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct share_pool pool[2] = {0};
        pool[kinds[i].of_daemon].limit[kinds[i].share] = 16;
        handle_init(&t);
        t.of_device = share_join(&pool[0], 7, false);
        t.of_daemon = share_join(&pool[1], 7, false);
        for (unsigned n = 0; n < 14; n++)
            ck_assert_int_eq(handle_add(&t, kinds[i].kind, &x, &h[n]), 0);
        ck_assert_int_eq(handle_add(&t, kinds[i].kind, &x, &h[14]), -EDQUOT);
        ck_assert_uint_eq(t.count[kinds[i].kind], 14);
        ck_assert_int_eq(handle_add(&t, HANDLE_SLAB, &x, &h[14]), 0); /* counts for no user */
        for (unsigned n = 0; n < 14; n++)
            handle_del(&t, h[n]);
        ck_assert_uint_eq(pool[kinds[i].of_daemon].used[kinds[i].share], 0);
        share_leave(t.of_device);
        share_leave(t.of_daemon);
        handle_fini(&t);
    }
}
END_TEST

/* SEC-22: queues take memory, mappings and descriptors by the slab, and give them back. */
START_TEST(share_by_queues)
{
    static const struct {
        enum share_kind kind;
        uint64_t one; /* slab's */
    } kinds[] = {{SHARE_OCTETS, 2u << 20}, {SHARE_FDS, 1}, {SHARE_MAPPINGS, 1}};
    for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct share_pool pool = {0};
        struct slab_place p;
        pool.limit[kinds[i].kind] = 4 * kinds[i].one;
        struct qslab_list l = {.share = share_join(&pool, 7, false)};
        for (unsigned n = 0; n < 3; n++)
            ck_assert_int_eq(qslab_alloc(&l, 1u << 20, &p), 0);
        ck_assert_int_eq(qslab_alloc(&l, 1u << 20, &p), kinds[i].one > 1 ? -EDQUOT : 0);
        ck_assert_int_eq(qslab_alloc(&l, 1u << 20, &p), -EDQUOT);
        for (unsigned k = 0; k < SHARE_KINDS; k++)
            ck_assert(k == SHARE_OCTETS || k == SHARE_FDS || k == SHARE_MAPPINGS ||
                      pool.used[k] == 0);
        qslab_fini(&l);
        for (unsigned k = 0; k < SHARE_KINDS; k++)
            ck_assert_uint_eq(pool.used[k], 0);
        share_leave(l.share);
    }
    ck_assert_uint_eq(memory_count(), 0);
}
END_TEST

/* Of several kinds, all or nothing. */
START_TEST(share_of_several_kinds)
{
    struct share_pool pool = {.limit = {[SHARE_FDS] = 16, [SHARE_OCTETS] = 160}};
    const struct share_part part[] = {{SHARE_FDS, 1}, {SHARE_OCTETS, 20}, {SHARE_MAPPINGS, 5}};
    struct share *s = share_join(&pool, 7, false);
    for (unsigned i = 0; i < 7; i++)
        ck_assert_int_eq(share_take_all(s, part, 3), 0);
    for (unsigned i = 0; i < 2; i++)
        ck_assert_int_eq(share_take_all(s, part, 3), -EDQUOT);
    ck_assert_uint_eq(s->used[SHARE_FDS], 7);
    ck_assert_uint_eq(s->used[SHARE_OCTETS], 140);
    ck_assert_uint_eq(s->used[SHARE_MAPPINGS], 35);
    for (unsigned i = 0; i < 7; i++)
        share_give_all(s, part, 3);
    for (unsigned i = 0; i < SHARE_KINDS; i++)
        ck_assert_uint_eq(pool.used[i], 0);
    leave_all(&pool);
}
END_TEST

/* SEC-22: a group counts once for a user, until the last of his queue pairs has left it. */
START_TEST(share_by_groups)
{
    struct share_pool pool = {.limit = {[SHARE_GROUP] = 16}};
    struct share *s = share_join(&pool, 7, false), *other = share_join(&pool, 8, false);
    const struct wire_addr g[2] = {wire_addr_v4(0xE0000001), wire_addr_v4(0xE0000002)};
    struct group_user *list = NULL;
    for (unsigned i = 0; i < 100; i++)
        ck_assert_int_eq(group_join(&list, s, &g[i % 2]), 0);
    ck_assert_int_eq(group_join(&list, other, &g[0]), 0);
    ck_assert_uint_eq(s->used[SHARE_GROUP], 2);
    ck_assert_uint_eq(other->used[SHARE_GROUP], 1);
    group_leave(&list, other, &g[1]); /* the queue pair isn't in that group */
    ck_assert_uint_eq(pool.used[SHARE_GROUP], 3);
    for (unsigned i = 0; i < 99; i++)
        group_leave(&list, s, &g[i % 2]);
    ck_assert_uint_eq(s->used[SHARE_GROUP], 1);
    for (uint32_t i = 0; i < 13; i++) {
        const struct wire_addr more = wire_addr_v4(0xE0000100 + i);
        ck_assert_int_eq(group_join(&list, s, &more), i < 12 ? 0 : -EDQUOT);
    }
    while (list) {
        const struct wire_addr last = list->group;
        group_leave(&list, list->share, &last);
    }
    ck_assert_uint_eq(pool.used[SHARE_GROUP], 0);
    leave_all(&pool);
}
END_TEST

/* SEC-02: a user has a burst of log lines, and then one from time to time; others have theirs. */
START_TEST(share_of_the_log)
{
    struct share_pool pool = {{0}};
    struct share *s = share_join(&pool, 7, false), *other = share_join(&pool, 8, false),
                 *root = share_join(&pool, 0, true);
    uint64_t now = 5000000000;
    unsigned n = 0;
    while (n < 1000 && share_may_log(s, now))
        n++;
    ck_assert_uint_eq(n, SHARE_LOG_BURST);
    ck_assert(share_may_log(other, now));
    for (unsigned i = 0; i < 1000; i++)
        ck_assert(share_may_log(root, now));
    for (unsigned i = 0; i < 8640; i++) { /* a day of trying each tenth of that time */
        now += SHARE_LOG_NS / 10;
        n += share_may_log(s, now);
    }
    ck_assert_uint_eq(n, SHARE_LOG_BURST + 864);
    ck_assert_uint_eq(pool.refused[SHARE_LINES], 1 + 8640 - 864);
    now += 1000 * SHARE_LOG_NS; /* after silence: a burst again, no more */
    for (n = 0; n < 1000 && share_may_log(s, now);)
        n++;
    ck_assert_uint_eq(n, SHARE_LOG_BURST);
    ck_assert(share_may_log(NULL, now));
    ck_assert_int_eq(s->lacked, SHARE_KINDS);
    leave_all(&pool);
}
END_TEST

UNIT_MAIN("shares", share_leaves_some, share_keeps_promises, share_of_all_members,
          share_of_subordinates, share_of_too_much, share_of_administrators, share_by_handles,
          share_by_queues, share_by_groups, share_of_several_kinds, share_of_the_log)
