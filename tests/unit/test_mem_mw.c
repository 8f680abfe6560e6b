/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lib/mem/mem_mw.c: windows.
 */
#include "test_mem_util.h"

enum { BASE = 0x10000, LEN = 8192, QPN = 77 };

struct fix {
    struct mem *m;
    uint32_t pd, pd2, mr, mw1, mw2;
};

static void setup(struct fix *f)
{
    f->m = mem_make(64);
    f->pd = mem_make_pd(f->m);
    f->pd2 = mem_make_pd(f->m);
    f->mr = mem_make_mr(f->m, f->pd, BASE, LEN, RIGHTS_ALL);
    ck_assert_int_eq(mem_mw_alloc(f->m, f->pd, 1, &f->mw1), 0);
    ck_assert_int_eq(mem_mw_alloc(f->m, f->pd, 2, &f->mw2), 0);
}

static uint32_t next_variant(uint32_t key)
{
    return (key & ~0xFFu) | ((key + 1) & 0xFF);
}

static int read_at(struct fix *f, uint32_t pd, uint32_t qpn, uint32_t key, uint64_t va,
                   uint64_t len)
{
    return mem_remote(f->m, pd, qpn, key, va, len, MEM_REMOTE_READ);
}

/* MW-01, MW-05: a type 1 window: new key at each bind, any queue pair of the domain, its own range
 * and rights. */
START_TEST(mw_01_type_1)
{
    struct fix f;
    uint32_t a, b;
    setup(&f);
    ck_assert_msg(read_at(&f, f.pd, 1, f.mw1, BASE, 1) == -EACCES, "MW-05 not bound");
    ck_assert_int_eq(mem_mw_bind(f.m, f.pd, 1, f.mw1, 0, f.mr, BASE + 100, 50, MEM_REMOTE_READ, &a),
                     0);
    ck_assert_msg(a != f.mw1 && a >> 8 != 0, "MW-01 a bind gives a new key");
    ck_assert_msg(read_at(&f, f.pd, 1, f.mw1, BASE + 100, 1) == -EACCES, "MW-01 old key is dead");
    ck_assert_msg(read_at(&f, f.pd, 1, a, BASE + 100, 50) == 0, "MW-01 new key works");
    ck_assert_msg(read_at(&f, f.pd, 2, a, BASE + 100, 50) == 0, "MW-01 on any queue pair");
    ck_assert_msg(read_at(&f, f.pd2, 1, a, BASE + 100, 50) == -EACCES, "MW-05 other domain");
    ck_assert_msg(read_at(&f, f.pd, 1, a, BASE + 99, 2) == -EACCES, "MW-05 before the window");
    ck_assert_msg(read_at(&f, f.pd, 1, a, BASE + 100, 51) == -EACCES, "MW-05 past the window");
    ck_assert_msg(mem_remote(f.m, f.pd, 1, a, BASE + 100, 1, MEM_REMOTE_WRITE) == -EACCES,
                  "MW-05 the region's rights aren't the window's");
    struct mem_ref ref;
    ck_assert_msg(mem_check(f.m, f.pd, 1, a, BASE + 100, 1, 0, true, &ref) == -EACCES,
                  "MW-01 a window's key is no L_Key");
    ck_assert_int_eq(mem_mw_bind(f.m, f.pd, 1, a, 0, f.mr, BASE, 10, MEM_REMOTE_READ, &b), 0);
    ck_assert_msg(read_at(&f, f.pd, 1, a, BASE + 100, 1) == -EACCES, "MW-01 bound anew");
    ck_assert_int_eq(read_at(&f, f.pd, 1, b, BASE, 10), 0);
    ck_assert_msg(mem_invalidate(f.m, f.pd, 1, b, true) == -EINVAL, "RSP-19 type 1 window");
    ck_assert_int_eq(mem_mw_bind(f.m, f.pd, 1, b, 0, 0, 0, 0, 0, &a), 0);
    ck_assert_msg(read_at(&f, f.pd, 1, b, BASE, 1) == -EACCES && a != b, "MW-04 length 0 unbinds");
    ck_assert_int_eq(mem_mr_dereg(f.m, f.mr), 0);
    mem_destroy(f.m);
}
END_TEST

/* MW-02, MW-04, MW-05: a type 2B window: the consumer's variant, tied to a queue pair. */
START_TEST(mw_02_type_2)
{
    struct fix f;
    uint32_t key, got;
    setup(&f);
    key = next_variant(f.mw2);
    ck_assert_msg(mem_mw_bind(f.m, f.pd, QPN, f.mr, key, f.mr, BASE, 10, MEM_REMOTE_READ, &got) ==
                      -EINVAL,
                  "MW-01 a region is no window");
    ck_assert_msg(mem_mw_bind(f.m, f.pd, QPN, f.mw2, 0, f.mr, BASE, 10, MEM_REMOTE_READ, &got) ==
                      -EINVAL,
                  "MW-04 nobody else chooses the variant");
    ck_assert_msg(
        mem_mw_bind(f.m, f.pd, QPN, f.mw2, f.mw2, f.mr, BASE, 10, MEM_REMOTE_READ, &got) == -EINVAL,
        "MW-04 the variant must differ");
    ck_assert_msg(mem_mw_bind(f.m, f.pd, QPN, f.mw2, key ^ 0x100, f.mr, BASE, 10, MEM_REMOTE_READ,
                              &got) == -EINVAL,
                  "MW-02 only the variant is the consumer's");
    ck_assert_msg(mem_mw_bind(f.m, f.pd, QPN, f.mw2, key, f.mr, BASE, 0, MEM_REMOTE_READ, &got) ==
                      -EINVAL,
                  "MW-04 length 0 isn't allowed for type 2");
    ck_assert_int_eq(mem_mw_bind(f.m, f.pd, QPN, f.mw2, key, f.mr, BASE, 10, MEM_REMOTE_READ, &got),
                     0);
    ck_assert_uint_eq(got, key);
    ck_assert_msg(read_at(&f, f.pd, QPN, key, BASE, 10) == 0, "MW-02 on its queue pair");
    ck_assert_msg(read_at(&f, f.pd, QPN + 1, key, BASE, 10) == -EACCES, "MW-05 on another");
    ck_assert_msg(read_at(&f, f.pd2, QPN, key, BASE, 10) == -EACCES, "MW-05 2B: domain too");
    ck_assert_msg(mem_mw_bind(f.m, f.pd, QPN, key, next_variant(key), f.mr, BASE, 10,
                              MEM_REMOTE_READ, &got) == -EINVAL,
                  "MW-04 must be Free to be bound");
    ck_assert_msg(mem_invalidate(f.m, f.pd, QPN + 1, key, true) == -EINVAL, "RSP-19 other QP");
    ck_assert_msg(mem_invalidate(f.m, f.pd, QPN, f.mw2, true) == -EINVAL, "RSP-19 old variant");
    ck_assert_int_eq(mem_invalidate(f.m, f.pd, QPN, key, true), 0);
    ck_assert_msg(read_at(&f, f.pd, QPN, key, BASE, 1) == -EACCES, "MW-02 invalidate unbinds");
    ck_assert_msg(mem_invalidate(f.m, f.pd, QPN, key, false) == -EINVAL, "MW-02 Free already");
    ck_assert_int_eq(
        mem_mw_bind(f.m, f.pd, QPN, key, next_variant(key), f.mr, BASE, 10, MEM_REMOTE_READ, &got),
        0);
    mem_destroy(f.m);
}
END_TEST

static const struct bind_case {
    const char *name;
    unsigned mr_access, access;
    uint64_t va, len;
    uint32_t key_xor, other_pd;
    int want;
} bind_cases[] = {
    {"MW-03 inside", RIGHTS_ALL, MEM_REMOTE_WRITE, BASE, LEN, 0, 0, 0},
    {"MW-03 one octet past", RIGHTS_ALL, MEM_REMOTE_READ, BASE, LEN + 1, 0, 0, -EINVAL},
    {"MW-03 the last octet outside", RIGHTS_ALL, MEM_REMOTE_READ, BASE + 1, LEN, 0, 0, -EINVAL},
    {"MW-03 before", RIGHTS_ALL, MEM_REMOTE_READ, BASE - 1, 2, 0, 0, -EINVAL},
    {"MW-03 wraps", RIGHTS_ALL, MEM_REMOTE_READ, BASE + 1, UINT64_MAX, 0, 0, -EINVAL},
    {"MW-03 region without MW_BIND", MEM_LOCAL_WRITE | MEM_REMOTE_ANY, MEM_REMOTE_READ, BASE, 1, 0,
     0, -EINVAL},
    {"MW-03 write needs LOCAL_WRITE below", MEM_MW_BIND, MEM_REMOTE_WRITE, BASE, 1, 0, 0, -EINVAL},
    {"MW-03 atomic needs LOCAL_WRITE below", MEM_MW_BIND, MEM_REMOTE_ATOMIC, BASE, 8, 0, 0,
     -EINVAL},
    {"MW-03 read doesn't", MEM_MW_BIND, MEM_REMOTE_READ, BASE, 1, 0, 0, 0},
    {"MW-03 wrong region key", RIGHTS_ALL, MEM_REMOTE_READ, BASE, 1, 1, 0, -EINVAL},
    {"MW-03 region of another domain", RIGHTS_ALL, MEM_REMOTE_READ, BASE, 1, 0, 1, -EINVAL},
    {"MW-03 local rights are none of a window's", RIGHTS_ALL, MEM_LOCAL_WRITE, BASE, 1, 0, 0,
     -EINVAL},
};

START_TEST(mw_03_bind_rules)
{
    const struct bind_case *c = &bind_cases[_i];
    struct fix f;
    uint32_t got;
    for (unsigned type = 1; type <= 2; type++) {
        setup(&f);
        uint32_t mr = mem_make_mr(f.m, c->other_pd ? f.pd2 : f.pd, BASE, LEN, c->mr_access);
        uint32_t mw = type == 1 ? f.mw1 : f.mw2;
        int err = mem_mw_bind(f.m, f.pd, QPN, mw, type == 1 ? 0 : next_variant(mw), mr ^ c->key_xor,
                              c->va, c->len, c->access, &got);

        ck_assert_msg(err == c->want, "%s (type %u): %d", c->name, type, err);
        mem_destroy(f.m);
    }
}
END_TEST

/* MR-06, MW-07: a region with bound windows can't go; a bound window can. */
START_TEST(mw_07_region_with_windows_stays)
{
    struct fix f;
    uint32_t key, fr, rkey;
    const struct mem_seg seg = {mem_obj, 0, LEN};
    setup(&f);
    ck_assert_int_eq(mem_mw_bind(f.m, f.pd, QPN, f.mw1, 0, f.mr, BASE, LEN, MEM_REMOTE_READ, &key),
                     0);
    ck_assert_msg(mem_mr_dereg(f.m, f.mr) == -EBUSY, "MR-06 bound window");
    ck_assert_msg(mem_mw_dealloc(f.m, key) == 0, "MW-07 dealloc a bound window");
    ck_assert_int_eq(mem_mr_dereg(f.m, f.mr), 0);
    ck_assert_int_eq(mem_mw_dealloc(f.m, key), -EINVAL);

    ck_assert_int_eq(mem_fr_alloc(f.m, f.pd, 1, &fr, &rkey), 0);
    ck_assert_int_eq(mem_fr_reg(f.m, f.pd, fr, BASE, LEN, RIGHTS_ALL, &seg, 1), 0);
    ck_assert_int_eq(mem_mw_bind(f.m, f.pd, QPN, f.mw2, next_variant(f.mw2), fr, BASE, LEN,
                                 MEM_REMOTE_READ, &key),
                     0);
    ck_assert_msg(mem_invalidate(f.m, f.pd, QPN, fr, false) == -EINVAL,
                  "MW-05 a region under a window isn't invalidated");
    ck_assert_int_eq(mem_invalidate(f.m, f.pd, QPN, key, false), 0);
    ck_assert_int_eq(mem_invalidate(f.m, f.pd, QPN, fr, false), 0);
    mem_destroy(f.m);
}
END_TEST

/* MW-05: pieces through a window are the region's octets, over several segments and zero-based too.
 */
START_TEST(mw_05_pieces_through_a_window)
{
    const struct mem_seg segs[2] = {{mem_obj, 1000, 4096}, {mem_obj + 1, 0, 4096}};
    struct fix f;
    uint32_t lkey, rkey, key;
    struct mem_ref ref;
    struct mem_piece p[2];
    setup(&f);
    ck_assert_int_eq(mem_mr_reg(f.m, f.pd, BASE, LEN, RIGHTS_ALL, segs, 2, NULL, &lkey, &rkey), 0);
    ck_assert_int_eq(mem_mw_bind(f.m, f.pd, QPN, f.mw2, next_variant(f.mw2), lkey, BASE + 4000, 200,
                                 MEM_REMOTE_READ | MEM_ZERO_BASED, &key),
                     0);
    ck_assert_int_eq(mem_check(f.m, f.pd, QPN, key, 50, 150, MEM_REMOTE_READ, false, &ref), 0);
    ck_assert_int_eq(mem_pieces(f.m, &ref, 10, 140, p, 2), 2);
    ck_assert(p[0].obj == mem_obj && p[0].off == 5060 && p[0].len == 36);
    ck_assert(p[1].obj == mem_obj + 1 && p[1].off == 0 && p[1].len == 104);

    uint32_t one;
    ck_assert_int_eq(
        mem_mw_bind(f.m, f.pd, QPN, f.mw1, 0, f.mr, BASE + 10, 5, MEM_REMOTE_READ, &one), 0);
    ck_assert_int_eq(mem_check(f.m, f.pd, QPN, one, BASE + 12, 3, MEM_REMOTE_READ, false, &ref), 0);
    ck_assert_int_eq(mem_pieces(f.m, &ref, 1, 2, p, 2), 1);
    ck_assert(p[0].obj == mem_obj && p[0].off == 0x100000 + 13 && p[0].len == 2);
    mem_destroy(f.m);
}
END_TEST

/* MR-06: a hold through a window is on the region, and outlives the window. */
START_TEST(mr_06_hold_through_a_window)
{
    struct fix f;
    uint32_t key;
    struct mem_ref ref;
    struct mem_piece piece;
    setup(&f);
    ck_assert_int_eq(mem_mw_bind(f.m, f.pd, QPN, f.mw1, 0, f.mr, BASE, LEN, MEM_REMOTE_READ, &key),
                     0);
    ck_assert_int_eq(mem_check(f.m, f.pd, QPN, key, BASE, 1, MEM_REMOTE_READ, false, &ref), 0);
    mem_hold(f.m, &ref);
    ck_assert_int_eq(mem_mw_dealloc(f.m, key), 0);
    ck_assert_int_eq(mem_pieces(f.m, &ref, 0, 1, &piece, 1), -EACCES);
    ck_assert_int_eq(mem_mr_dereg(f.m, f.mr), -EINPROGRESS);
    ck_assert_ptr_eq(mem_drop(f.m, &ref), mem_obj + 7);
    mem_destroy(f.m);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("mem_mw");
    TCase *t = tcase_create("windows");

    tcase_add_test(t, mw_01_type_1);
    tcase_add_test(t, mw_02_type_2);
    tcase_add_loop_test(t, mw_03_bind_rules, 0, sizeof(bind_cases) / sizeof(*bind_cases));
    tcase_add_test(t, mw_07_region_with_windows_stays);
    tcase_add_test(t, mw_05_pieces_through_a_window);
    tcase_add_test(t, mr_06_hold_through_a_window);
    suite_add_tcase(s, t);
    return unit_run(s);
}
