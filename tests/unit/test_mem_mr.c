/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lib/mem: domains, regions, fast-register regions (mem.c, mem_mr.c).
 */
#include "test_mem_util.h"

static const struct reg_case {
    const char *name;
    uint64_t iova, len;
    unsigned access;
    unsigned nsegs;
    struct mem_seg segs[3];
    int want;
} reg_cases[] = {
    {"MR-02 local read only", 0x1000, 64, 0, 1, {{mem_obj, 0, 64}}, 0},
    {"MR-02 remote write without local write",
     0,
     64,
     MEM_REMOTE_WRITE,
     1,
     {{mem_obj, 0, 64}},
     -EINVAL},
    {"MR-02 remote atomic without local write",
     0,
     64,
     MEM_REMOTE_ATOMIC,
     1,
     {{mem_obj, 0, 64}},
     -EINVAL},
    {"MR-02 remote read needs no local write", 0, 64, MEM_REMOTE_READ, 1, {{mem_obj, 0, 64}}, 0},
    {"MR-13 relaxed ordering is a hint", 0, 64, 1u << 20, 1, {{mem_obj, 0, 64}}, 0},
    {"MR-13 on-demand paging isn't silently ignored",
     0,
     64,
     1u << 6,
     1,
     {{mem_obj, 0, 64}},
     -EOPNOTSUPP},
    {"MR-04 the range may not wrap", UINT64_MAX - 62, 64, 0, 1, {{mem_obj, 0, 64}}, -EINVAL},
    {"MR-04 the range may end at the top", UINT64_MAX - 64, 64, 0, 1, {{mem_obj, 0, 64}}, 0},
    {"MR-02 zero length", 0x1000, 0, 0, 0, {{0}}, 0},
    {"MR-02 segments shorter than the region", 0, 64, 0, 1, {{mem_obj, 0, 63}}, -EINVAL},
    {"MR-02 segments longer than the region", 0, 64, 0, 1, {{mem_obj, 0, 65}}, -EINVAL},
    {"MR-02 no segment", 0, 64, 0, 0, {{0}}, -EINVAL},
    {"MR-02 an empty segment", 0, 64, 0, 2, {{mem_obj, 0, 64}, {mem_obj, 0, 0}}, -EINVAL},
    {"MR-04 segment wraps in its object", 0, 64, 0, 1, {{mem_obj, UINT64_MAX - 8, 64}}, -EINVAL},
    {"MR-04 sum of segments wraps",
     0,
     64,
     0,
     3,
     {{mem_obj, 0, 64}, {mem_obj, 0, UINT64_MAX - 63}, {mem_obj, 0, 64}},
     -EINVAL},
    {"MR-02 inner segment of a page",
     0,
     4098,
     0,
     3,
     {{mem_obj, 0, 1}, {mem_obj, 0, 4096}, {mem_obj, 0, 1}},
     0},
    {"MR-02 inner segment shorter than a page",
     0,
     4097,
     0,
     3,
     {{mem_obj, 0, 1}, {mem_obj, 0, 4095}, {mem_obj, 0, 1}},
     -EINVAL},
};

/* MR-07: in place, other rights and another domain; the keys stay, and earlier checks are no longer
 * valid. */
START_TEST(mr_07_rereg_in_place)
{
    struct mem *m = mem_make(64);
    uint32_t pd = mem_make_pd(m), other = mem_make_pd(m), lkey, rkey, again = 1, window;
    const struct mem_seg seg = {mem_obj, 0, 4096};
    struct mem_ref ref, old;
    struct mem_piece piece;
    ck_assert_int_eq(mem_mr_reg(m, pd, 0x1000, 4096, MEM_LOCAL_WRITE, &seg, 1, NULL, &lkey, &rkey),
                     0);
    ck_assert_uint_eq(rkey, 0);
    ck_assert_int_eq(mem_check(m, pd, 1, lkey, 0x1000, 64, MEM_REMOTE_WRITE, false, &ref), -EACCES);
    ck_assert_int_eq(mem_check(m, pd, 1, lkey, 0x1000, 64, MEM_LOCAL_WRITE, true, &old), 0);
    ck_assert_int_eq(mem_mr_rereg(m, lkey, pd, MEM_LOCAL_WRITE | MEM_REMOTE_WRITE, &rkey), 0);
    ck_assert_uint_eq(rkey, lkey);
    ck_assert_int_eq(mem_check(m, pd, 1, rkey, 0x1000, 64, MEM_REMOTE_WRITE, false, &ref), 0);
    ck_assert_int_eq(mem_pieces(m, &old, 0, 64, &piece, 1), -EACCES);

    /* wrong: nothing changes */
    ck_assert_int_eq(mem_mr_rereg(m, lkey, pd, MEM_REMOTE_WRITE, &again), -EINVAL);
    ck_assert_int_eq(mem_mr_rereg(m, lkey, 99, MEM_LOCAL_WRITE, &again), -EINVAL);
    ck_assert_int_eq(mem_mr_rereg(m, lkey ^ 1, pd, MEM_LOCAL_WRITE, &again), -EINVAL);
    ck_assert_int_eq(mem_mr_rereg(m, lkey, pd, 1u << 6, &again), -EOPNOTSUPP);
    ck_assert_int_eq(mem_mr_rereg(m, lkey, pd, MEM_ZERO_BASED, &again), -EINVAL);
    ck_assert_int_eq(mem_check(m, pd, 1, rkey, 0x1000, 64, MEM_REMOTE_WRITE, false, &ref), 0);

    ck_assert_int_eq(mem_mr_rereg(m, lkey, other, MEM_LOCAL_WRITE | MEM_MW_BIND, &rkey), 0);
    ck_assert_uint_eq(rkey, 0);
    ck_assert_int_eq(mem_check(m, other, 1, lkey, 0x1000, 64, MEM_LOCAL_WRITE, true, &ref), 0);
    ck_assert_int_eq(mem_check(m, pd, 1, lkey, 0x1000, 64, MEM_LOCAL_WRITE, true, &ref), -EACCES);
    ck_assert_int_eq(mem_pd_free(m, pd), 0); /* the region is the other domain's */
    ck_assert_int_eq(mem_pd_free(m, other), -EBUSY);

    ck_assert_int_eq(mem_mw_alloc(m, other, 1, &window), 0);
    ck_assert_int_eq(mem_mw_bind(m, other, 1, window, 0, lkey, 0x1000, 64, MEM_REMOTE_READ, &again),
                     0);
    ck_assert_int_eq(mem_mr_rereg(m, lkey, other, MEM_LOCAL_WRITE, &rkey), -EBUSY);
    ck_assert_int_eq(mem_mw_dealloc(m, again), 0);
    ck_assert_int_eq(mem_mr_rereg(m, lkey, other, 0, &rkey), 0);
    ck_assert_int_eq(mem_mr_dereg(m, lkey), 0);
    ck_assert_int_eq(mem_mr_rereg(m, lkey, other, 0, &rkey), -EINVAL);
    ck_assert_int_eq(mem_pd_free(m, other), 0);
    mem_destroy(m);
}
END_TEST

START_TEST(mr_02_registration_rules)
{
    const struct reg_case *c = &reg_cases[_i];
    struct mem *m = mem_make(64);
    uint32_t pd = mem_make_pd(m), lkey = 0, rkey = 0;
    struct mem_usage u;
    int err = mem_mr_reg(m, pd, c->iova, c->len, c->access, c->segs, c->nsegs, NULL, &lkey, &rkey);
    ck_assert_msg(err == c->want, "%s: %d", c->name, err);
    mem_usage(m, &u);
    ck_assert_msg(u.mrs == (err == 0) && u.octets == (err ? 0 : c->len), "%s: usage", c->name);
    if (err == 0)
        ck_assert_int_eq(mem_mr_dereg(m, lkey), 0);
    mem_usage(m, &u);
    ck_assert_msg(u.mrs == 0 && u.octets == 0, "%s: usage afterwards", c->name);
    mem_destroy(m);
}
END_TEST

/* MR-03: an R_Key only when a remote right was asked for; local rights never work remotely. */
START_TEST(mr_03_no_remote_right_no_rkey)
{
    struct mem *m = mem_make(64);
    uint32_t pd = mem_make_pd(m), lkey, rkey = 1;
    const struct mem_seg seg = {mem_obj, 0, 64};
    ck_assert_int_eq(mem_mr_reg(m, pd, 0, 64, MEM_LOCAL_WRITE, &seg, 1, NULL, &lkey, &rkey), 0);
    ck_assert_msg(rkey == 0, "MR-03 R_Key 0 without remote rights");
    ck_assert_msg(mem_remote(m, pd, 0, lkey, 0, 1, 0) == -EACCES,
                  "MR-03 the L_Key is no R_Key, even for no right at all");
    ck_assert_int_eq(mem_mr_reg(m, pd, 0, 64, MEM_REMOTE_READ, &seg, 1, NULL, &lkey, &rkey), 0);
    ck_assert_uint_ne(rkey, 0);
    mem_destroy(m);
}
END_TEST

/* MR-06: nothing works after dereg; a second dereg fails. */
START_TEST(mr_06_dereg_ends_access)
{
    struct mem *m = mem_make(64);
    uint32_t pd = mem_make_pd(m), key = mem_make_mr(m, pd, 0x1000, 64, RIGHTS_ALL);
    struct mem_ref ref;
    struct mem_piece piece;
    ck_assert_int_eq(mem_check(m, pd, 0, key, 0x1000, 64, 0, true, &ref), 0);
    ck_assert_int_eq(mem_mr_dereg(m, key), 0);
    ck_assert_msg(mem_check(m, pd, 0, key, 0x1000, 64, 0, true, &ref) == -EACCES, "MR-06 check");
    ck_assert_msg(mem_pieces(m, &ref, 0, 64, &piece, 1) == -EACCES, "MR-06 pieces");
    ck_assert_int_eq(mem_mr_dereg(m, key), -EINVAL);
    mem_destroy(m);
}
END_TEST

/* MR-06: a region that copies hold is out of reach at once, freed by the last drop, and its slot
 * (so its domain) stays busy until then. */
START_TEST(mr_06_held_region_is_freed_by_the_last_drop)
{
    struct mem *m = mem_make(64);
    uint32_t pd = mem_make_pd(m), key = mem_make_mr(m, pd, 0, 64, RIGHTS_ALL);
    struct mem_usage u;
    struct mem_ref ref;
    struct mem_piece piece;
    ck_assert_int_eq(mem_check(m, pd, 0, key, 0, 64, 0, true, &ref), 0);
    mem_hold(m, &ref);
    mem_hold(m, &ref);
    ck_assert_int_eq(mem_mr_dereg(m, key), -EINPROGRESS);
    ck_assert_msg(mem_remote(m, pd, 0, key, 0, 1, MEM_REMOTE_READ) == -EACCES, "MR-06 while held");
    ck_assert_int_eq(mem_mr_dereg(m, key), -EINVAL);
    for (unsigned i = 0; i < 200; i++) { /* MR-06 other registrations don't get the held slot */
        uint32_t other = mem_make_mr(m, pd, 0, 64, 0);

        ck_assert_int_eq(mem_pieces(m, &ref, 0, 1, &piece, 1), -EACCES);
        ck_assert_int_eq(mem_mr_dereg(m, other), 0);
    }
    ck_assert_int_eq(mem_pd_free(m, pd), -EBUSY);
    ck_assert_ptr_null(mem_drop(m, &ref));
    ck_assert_msg(mem_drop(m, &ref) == mem_obj + 7, "MR-06 the last drop names the owner");
    mem_usage(m, &u);
    ck_assert_uint_eq(u.mrs, 0);
    ck_assert_int_eq(mem_pd_free(m, pd), 0);
    mem_destroy(m);
}
END_TEST

/* MR-06: holds that end before dereg have no effect. */
START_TEST(mr_06_drop_before_dereg)
{
    struct mem *m = mem_make(64);
    uint32_t pd = mem_make_pd(m), key = mem_make_mr(m, pd, 0, 64, RIGHTS_ALL);
    struct mem_ref ref;
    struct mem_piece piece;
    ck_assert_int_eq(mem_check(m, pd, 0, key, 0, 64, 0, true, &ref), 0);
    mem_hold(m, &ref);
    ck_assert_ptr_null(mem_drop(m, &ref));
    ck_assert_int_eq(mem_pieces(m, &ref, 0, 1, &piece, 1), 1);
    ck_assert_int_eq(mem_mr_dereg(m, key), 0);
    mem_destroy(m);
}
END_TEST

/* MR-15: limits, exactly; and the tables serve them all. */
START_TEST(mr_15_limits)
{
    struct mem *m = mem_make(1000);
    uint32_t pd = mem_make_pd(m), keys[1000], lkey, rkey;
    for (unsigned i = 0; i < 1000; i++) {
        keys[i] = mem_make_mr(m, pd, i, 1, MEM_REMOTE_READ);
    }
    ck_assert_msg(mem_mr_reg(m, pd, 0, 0, 0, NULL, 0, NULL, &lkey, &rkey) == -ENOSPC,
                  "MR-15 max_mr");
    ck_assert_int_eq(mem_fr_alloc(m, pd, 1, &lkey, &rkey), -ENOSPC);
    for (unsigned i = 0; i < 1000; i++) {
        ck_assert_msg(mem_remote(m, pd, 0, keys[i], i, 1, MEM_REMOTE_READ) == 0, "MR-15 key %u", i);
    }
    for (unsigned i = 0; i < 64; i++) {
        ck_assert_int_eq(mem_mw_alloc(m, pd, 1, &rkey), 0);
    }
    ck_assert_msg(mem_mw_alloc(m, pd, 1, &rkey) == -ENOSPC, "MR-15 max_mw");
    for (unsigned i = 1; i < 8; i++) {
        mem_make_pd(m);
    }
    ck_assert_msg(mem_pd_alloc(m, &lkey) == -ENOSPC, "MR-15 max_pd");
    ck_assert_int_eq(mem_pd_free(m, pd + 1), 0);
    ck_assert_msg(mem_pd_alloc(m, &lkey) == 0, "MR-15 room for another domain");
    ck_assert_int_eq(mem_pd_alloc(m, &lkey), -ENOSPC);
    mem_destroy(m);
}
END_TEST

/* MR-05: a domain stays as long as something is in it; dead and unknown domains serve nothing. */
START_TEST(mr_05_domains)
{
    struct mem *m = mem_make(64);
    uint32_t pd = mem_make_pd(m), key, lkey, rkey;
    ck_assert_int_eq(mem_pd_free(m, 0), -EINVAL);
    ck_assert_int_eq(mem_pd_free(m, pd + 1), -EINVAL);
    ck_assert_int_eq(mem_pd_free(m, UINT32_MAX), -EINVAL);
    ck_assert_int_eq(mem_pd_hold(m, pd), 0);
    ck_assert_int_eq(mem_pd_free(m, pd), -EBUSY);
    mem_pd_drop(m, pd);
    key = mem_make_mr(m, pd, 0, 64, 0);
    ck_assert_int_eq(mem_pd_free(m, pd), -EBUSY);
    ck_assert_int_eq(mem_mr_dereg(m, key), 0);
    ck_assert_int_eq(mem_mw_alloc(m, pd, 2, &rkey), 0);
    ck_assert_int_eq(mem_pd_free(m, pd), -EBUSY);
    ck_assert_int_eq(mem_mw_dealloc(m, rkey), 0);
    ck_assert_int_eq(mem_pd_free(m, pd), 0);
    ck_assert_int_eq(mem_pd_free(m, pd), -EINVAL);
    ck_assert_int_eq(mem_pd_hold(m, pd), -EINVAL);
    ck_assert_int_eq(mem_mr_reg(m, pd, 0, 0, 0, NULL, 0, NULL, &lkey, &rkey), -EINVAL);
    ck_assert_int_eq(mem_fr_alloc(m, pd, 1, &lkey, &rkey), -EINVAL);
    ck_assert_int_eq(mem_mw_alloc(m, pd, 1, &rkey), -EINVAL);
    mem_destroy(m);
}
END_TEST

/* MR-08, MR-10: a fast-register region goes Free -> Valid -> Free, and only so. */
START_TEST(mr_08_fast_register)
{
    struct mem *m = mem_make(64);
    uint32_t pd = mem_make_pd(m), pd2 = mem_make_pd(m), lkey, rkey;
    const struct mem_seg segs[3] = {{mem_obj, 0, 4096}, {mem_obj + 1, 0, 4096}, {mem_obj, 0, 1}};
    const unsigned access = MEM_LOCAL_WRITE | MEM_REMOTE_WRITE;
    struct mem_ref ref;
    struct mem_piece piece[2];
    ck_assert_int_eq(mem_fr_alloc(m, pd, 2, &lkey, &rkey), 0);
    ck_assert_uint_eq(lkey, rkey);
    uint32_t key = (lkey & ~0xFFu) | ((lkey + 1) & 0xFF);
    ck_assert_msg(mem_remote(m, pd, 0, lkey, 0, 1, MEM_REMOTE_WRITE) == -EACCES, "MR-10 Free");
    ck_assert_msg(mem_invalidate(m, pd, 0, lkey, false) == -EINVAL, "MR-08 LOCAL_INV on Free");
    ck_assert_msg(mem_fr_reg(m, pd2, key, 0, 8192, access, segs, 2) == -EINVAL, "MR-09 other PD");
    ck_assert_msg(mem_fr_reg(m, pd, key, 0, 8193, access, segs, 3) == -EINVAL, "MR-08 max_segs");
    ck_assert_msg(mem_fr_reg(m, pd, key, 0, 8193, access, segs, 2) == -EINVAL, "MR-08 length");
    ck_assert_int_eq(mem_fr_reg(m, pd, key, 0x1000, 8192, access, segs, 2), 0);
    ck_assert_msg(mem_remote(m, pd, 0, lkey, 0x1000, 1, MEM_REMOTE_WRITE) == -EACCES,
                  "MR-08 the old variant is dead");
    ck_assert_int_eq(mem_remote(m, pd, 0, key, 0x1000, 8192, MEM_REMOTE_WRITE), 0);
    ck_assert_msg(mem_check(m, pd, 0, key, 0x1000, 8192, MEM_LOCAL_WRITE, true, &ref) == 0,
                  "MR-08 the key is an L_Key, too");
    ck_assert_msg(mem_fr_reg(m, pd, key, 0x1000, 8192, access, segs, 2) == -EINVAL,
                  "MR-08 REG_MR on Valid");
    ck_assert_msg(mem_invalidate(m, pd2, 0, key, true) == -EINVAL, "MR-09 invalidate, other PD");
    ck_assert_msg(mem_invalidate(m, pd, 0, lkey, true) == -EINVAL, "RSP-19 stale variant");
    ck_assert_int_eq(mem_invalidate(m, pd, 0, key, true), 0);
    ck_assert_msg(mem_remote(m, pd, 0, key, 0x1000, 1, MEM_REMOTE_WRITE) == -EACCES, "MR-10");
    ck_assert_msg(mem_pieces(m, &ref, 0, 1, piece, 2) == -EACCES, "RSP-17 invalidated");
    ck_assert_int_eq(mem_fr_reg(m, pd, key, 0x1000, 8192, access, segs, 2), 0);
    ck_assert_msg(mem_pieces(m, &ref, 0, 1, piece, 2) == -EACCES,
                  "RSP-17 what was checked before doesn't hold again, though all is as before");
    ck_assert_int_eq(mem_invalidate(m, pd, 0, key, true), 0);
    ck_assert_int_eq(mem_fr_reg(m, pd, lkey, 0, 4096, 0, segs, 1), 0);
    ck_assert_msg(mem_invalidate(m, pd, 0, lkey, true) == -EINVAL,
                  "RSP-19 the peer can't invalidate what it has no key of");
    ck_assert_int_eq(mem_invalidate(m, pd, 0, lkey, false), 0);
    ck_assert_int_eq(mem_mr_dereg(m, key), 0);
    mem_destroy(m);
}
END_TEST

/* MR-08: segments of a region that was made for one object lie in it, with any offsets. */
START_TEST(mr_08_within_one_object)
{
    struct mem *m = mem_make(64);
    uint32_t pd = mem_make_pd(m), key, rkey;
    const struct mem_seg within = {mem_obj, 0x10000, 0x3000};
    static const struct {
        const char *what;
        uint64_t off, len;
        int err;
    } cases[] = {
        {"MR-08 all of it", 0, 0x3000, 0},
        {"MR-08 its last octet", 0x2FFF, 1, 0},
        {"MR-08 one too many", 0, 0x3001, -EINVAL},
        {"MR-08 one after it", 0x3000, 1, -EINVAL},
        {"MR-08 far after it", 0x10000, 1, -EINVAL},
        {"MR-08 in front of it", UINT64_MAX, 2, -EINVAL},
        {"MR-08 longer than anything", 1, UINT64_MAX, -EINVAL},
    };
    struct mem_ref ref;
    struct mem_piece p[2];
    ck_assert_int_eq(mem_fr_alloc_in(m, pd, MEM_WITHIN_SEGS + 1, &within, &key, &rkey), -EINVAL);
    ck_assert_int_eq(mem_fr_alloc_in(m, pd, MEM_WITHIN_SEGS, &within, &key, &rkey), 0);
    ck_assert_int_eq(mem_mr_dereg(m, key), 0);
    ck_assert_int_eq(
        mem_fr_alloc_in(m, pd, 1, &(const struct mem_seg){.obj = mem_obj}, &key, &rkey), -EINVAL);
    ck_assert_int_eq(mem_fr_alloc_in(m, pd, 2, &within, &key, &rkey), 0);
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct mem_seg seg = {mem_obj + 1, cases[i].off, cases[i].len};
        ck_assert_msg(mem_fr_reg(m, pd, key, 0, cases[i].len, MEM_REMOTE_READ, &seg, 1) ==
                          cases[i].err,
                      "%s", cases[i].what);
        if (cases[i].err)
            continue;
        ck_assert_int_eq(mem_check(m, pd, 0, key, 0, cases[i].len, MEM_REMOTE_READ, false, &ref),
                         0);
        ck_assert_int_eq(mem_pieces(m, &ref, 0, 1, p, 2), 1);
        ck_assert_ptr_eq(p[0].obj, mem_obj);
        ck_assert_uint_eq(p[0].off, 0x10000 + cases[i].off);
        ck_assert_int_eq(mem_invalidate(m, pd, 0, key, false), 0);
    }
    const struct mem_seg two[] = {{NULL, 0x2000, 0x1000}, {NULL, 0, 8}};
    ck_assert_int_eq(mem_fr_reg(m, pd, key, 0, 0x1008, MEM_REMOTE_READ, two, 2), 0);
    ck_assert_int_eq(mem_check(m, pd, 0, key, 0, 0x1008, MEM_REMOTE_READ, false, &ref), 0);
    ck_assert_int_eq(mem_pieces(m, &ref, 0xFFF, 2, p, 2), 2);
    ck_assert(p[0].off == 0x12FFF && p[1].off == 0x10000 && p[1].obj == mem_obj);
    ck_assert_int_eq(mem_mr_dereg(m, key), 0);
    /* The next object in this slot knows nothing of it. */
    ck_assert_int_eq(mem_fr_alloc(m, pd, 1, &key, &rkey), 0);
    const struct mem_seg own = {mem_obj + 1, 0x5000, 8};
    ck_assert_int_eq(mem_fr_reg(m, pd, key, 0, 8, MEM_REMOTE_READ, &own, 1), 0);
    ck_assert_int_eq(mem_mr_dereg(m, key), 0);
    mem_destroy(m);
}
END_TEST

/* MR-09: an ordinary region can be neither fast-registered nor invalidated. */
START_TEST(mr_09_only_fast_register_regions)
{
    struct mem *m = mem_make(64);
    uint32_t pd = mem_make_pd(m), key = mem_make_mr(m, pd, 0, 64, RIGHTS_ALL);
    const struct mem_seg seg = {mem_obj, 0, 64};
    ck_assert_msg(mem_fr_reg(m, pd, key, 0, 64, 0, &seg, 1) == -EINVAL, "MR-09 REG_MR");
    ck_assert_msg(mem_invalidate(m, pd, 0, key, false) == -EINVAL, "MR-09 LOCAL_INV");
    ck_assert_msg(mem_invalidate(m, pd, 0, key, true) == -EINVAL, "RSP-19 ordinary region");
    ck_assert_int_eq(mem_remote(m, pd, 0, key, 0, 64, MEM_REMOTE_READ), 0);
    mem_destroy(m);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("mem_mr");
    TCase *t = tcase_create("regions");

    tcase_add_loop_test(t, mr_02_registration_rules, 0, sizeof(reg_cases) / sizeof(*reg_cases));
    tcase_add_test(t, mr_03_no_remote_right_no_rkey);
    tcase_add_test(t, mr_06_dereg_ends_access);
    tcase_add_test(t, mr_06_held_region_is_freed_by_the_last_drop);
    tcase_add_test(t, mr_06_drop_before_dereg);
    tcase_add_test(t, mr_07_rereg_in_place);
    tcase_add_test(t, mr_15_limits);
    tcase_add_test(t, mr_05_domains);
    tcase_add_test(t, mr_08_fast_register);
    tcase_add_test(t, mr_08_within_one_object);
    tcase_add_test(t, mr_09_only_fast_register_regions);
    suite_add_tcase(s, t);
    return unit_run(s);
}
