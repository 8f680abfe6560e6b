/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lib/mem/mem_check.c: checks, pieces, and a random comparison with a model that remembers every
 * octet.
 */
#include <string.h>

#include "test_mem_util.h"

enum { BASE = 0x10000, LEN = 4096 };

static const struct check_case {
    const char *name;
    uint32_t key_xor, pd_add;
    uint64_t va, len;
    unsigned access, need;
    bool local;
    int want;
} check_cases[] = {
    {"RSP-14 whole region", 0, 0, BASE, LEN, RIGHTS_ALL, MEM_REMOTE_WRITE, false, 0},
    {"RSP-14 last octet", 0, 0, BASE + LEN - 1, 1, RIGHTS_ALL, MEM_REMOTE_WRITE, false, 0},
    {"MR-04 one octet before", 0, 0, BASE - 1, 1, RIGHTS_ALL, MEM_REMOTE_WRITE, false, -EACCES},
    {"MR-04 one octet past", 0, 0, BASE, LEN + 1, RIGHTS_ALL, MEM_REMOTE_WRITE, false, -EACCES},
    {"MR-04 starts at the end", 0, 0, BASE + LEN, 1, RIGHTS_ALL, MEM_REMOTE_WRITE, false, -EACCES},
    {"MR-04 straddles the end", 0, 0, BASE + LEN - 1, 2, RIGHTS_ALL, MEM_REMOTE_WRITE, false,
     -EACCES},
    {"MR-04 va + len wraps to inside", 0, 0, BASE + 8, UINT64_MAX - 3, RIGHTS_ALL, MEM_REMOTE_WRITE,
     false, -EACCES},
    {"MR-04 va far below wraps", 0, 0, UINT64_MAX, 2, RIGHTS_ALL, MEM_REMOTE_WRITE, false, -EACCES},
    {"SEC-13 wrong variant octet", 1, 0, BASE, 1, RIGHTS_ALL, MEM_REMOTE_WRITE, false, -EACCES},
    {"SEC-13 wrong index", 0x100, 0, BASE, 1, RIGHTS_ALL, MEM_REMOTE_WRITE, false, -EACCES},
    {"MR-05 other domain", 0, 1, BASE, 1, RIGHTS_ALL, MEM_REMOTE_WRITE, false, -EACCES},
    {"RSP-14 no right to write", 0, 0, BASE, 1, MEM_LOCAL_WRITE | MEM_REMOTE_READ, MEM_REMOTE_WRITE,
     false, -EACCES},
    {"RSP-14 no right to read", 0, 0, BASE, 1, MEM_LOCAL_WRITE | MEM_REMOTE_WRITE, MEM_REMOTE_READ,
     false, -EACCES},
    {"ATM-04 no right to atomics", 0, 0, BASE, 8, MEM_LOCAL_WRITE | MEM_REMOTE_WRITE,
     MEM_REMOTE_ATOMIC, false, -EACCES},
    {"MR-02 local read is always allowed", 0, 0, BASE, LEN, 0, 0, true, 0},
    {"MR-02 local write isn't", 0, 0, BASE, LEN, 0, MEM_LOCAL_WRITE, true, -EACCES},
    {"MR-02 local write with the right", 0, 0, BASE, LEN, MEM_LOCAL_WRITE, MEM_LOCAL_WRITE, true,
     0},
    {"MR-05 local, other domain", 0, 1, BASE, 1, RIGHTS_ALL, 0, true, -EACCES},
    {"MR-04 local, one octet past", 0, 0, BASE, LEN + 1, RIGHTS_ALL, 0, true, -EACCES},
    {"MR-14 zero-based: offset 0 is the first octet", 0, 0, 0, LEN, RIGHTS_ALL | MEM_ZERO_BASED,
     MEM_REMOTE_WRITE, false, 0},
    {"MR-14 zero-based: the address isn't", 0, 0, BASE, 1, RIGHTS_ALL | MEM_ZERO_BASED,
     MEM_REMOTE_WRITE, false, -EACCES},
};

START_TEST(rsp_14_who_may_touch_what)
{
    const struct check_case *c = &check_cases[_i];
    struct mem *m = mem_make(64);
    uint32_t pd = mem_make_pd(m), key = mem_make_mr(m, pd, BASE, LEN, c->access);
    struct mem_ref ref;
    int err =
        mem_check(m, pd + c->pd_add, 0, key ^ c->key_xor, c->va, c->len, c->need, c->local, &ref);
    ck_assert_msg(err == c->want, "%s: %d", c->name, err);
    mem_destroy(m);
}
END_TEST

/* SEC-13: every 32-bit value but the key itself fails, all 256 variants included. */
START_TEST(sec_13_full_key_compare)
{
    struct mem *m = mem_make(64);
    uint32_t pd = mem_make_pd(m), key = mem_make_mr(m, pd, 0, LEN, RIGHTS_ALL), hits = 0;
    for (uint32_t v = 0; v < 256; v++) {
        hits += mem_remote(m, pd, 0, (key & ~0xFFu) | v, 0, 1, MEM_REMOTE_READ) == 0;
    }
    ck_assert_msg(hits == 1, "SEC-13 %u variants of 256 work", hits);
    for (uint32_t i = 0; i < 1u << 20; i++) {
        if (i * 4096 + 17 != key && mem_remote(m, pd, 0, i * 4096 + 17, 0, 0, 0) == 0) {
            ck_abort_msg("SEC-13 0x%08x works", i * 4096 + 17);
        }
    }
    ck_assert_msg(mem_remote(m, pd, 0, 0, 0, 0, 0) == -EACCES, "MR-01 key 0");
    mem_destroy(m);
}
END_TEST

/* Which octet of which object is each octet of a region of three segments? */
START_TEST(mr_04_pieces_over_segments)
{
    const struct mem_seg segs[3] = {
        {mem_obj, 1000, 100}, {mem_obj + 1, 0, 4096}, {mem_obj + 2, 50, 7}};
    struct mem *m = mem_make(64);
    uint32_t pd = mem_make_pd(m), lkey, rkey;
    struct mem_piece p[3];
    struct mem_ref ref;
    ck_assert_int_eq(mem_mr_reg(m, pd, 0x5000, 4203, 0, segs, 3, NULL, &lkey, &rkey), 0);
    ck_assert_int_eq(mem_check(m, pd, 0, lkey, 0x5000, 4203, 0, true, &ref), 0);
    ck_assert_int_eq(mem_pieces(m, &ref, 0, 4203, p, 3), 3);
    ck_assert(p[0].obj == mem_obj && p[0].off == 1000 && p[0].len == 100);
    ck_assert(p[1].obj == mem_obj + 1 && p[1].off == 0 && p[1].len == 4096);
    ck_assert(p[2].obj == mem_obj + 2 && p[2].off == 50 && p[2].len == 7);
    ck_assert_msg(mem_pieces(m, &ref, 0, 4203, p, 2) == -E2BIG, "MR-04 more pieces than room");
    ck_assert_int_eq(mem_pieces(m, &ref, 99, 4096, p, 2), 2);
    ck_assert(p[0].off == 1099 && p[0].len == 1 && p[1].off == 0 && p[1].len == 4095);
    ck_assert_int_eq(mem_pieces(m, &ref, 100, 4096, p, 1), 1);
    ck_assert_int_eq(mem_pieces(m, &ref, 4203, 0, p, 0), 0);
    ck_assert_msg(mem_pieces(m, &ref, 4203, 1, p, 3) == -EACCES, "MR-04 past the checked range");
    ck_assert_msg(mem_pieces(m, &ref, UINT64_MAX, 2, p, 3) == -EACCES, "MR-04 offset wraps");
    ck_assert_int_eq(mem_check(m, pd, 0, lkey, 0x5000 + 200, 10, 0, true, &ref), 0);
    ck_assert_int_eq(mem_pieces(m, &ref, 1, 9, p, 1), 1);
    ck_assert(p[0].obj == mem_obj + 1 && p[0].off == 101 && p[0].len == 9);
    ck_assert_msg(mem_pieces(m, &ref, 1, 10, p, 1) == -EACCES, "MR-04 past a part");
    ck_assert_msg(mem_pieces(m, &ref, 0, 11, p, 3) == -EACCES, "MR-04 more than was checked");
    mem_destroy(m);
}
END_TEST

/* ---- the model: for each live region, where every octet lives ---- */

enum { MODEL_REGIONS = 24, MODEL_SPACE = 3 * 8192 };

struct model {
    bool live;
    uint32_t key, pd;
    uint64_t base, len;
    unsigned access, nsegs;
    struct mem_seg segs[3];
};

static uint32_t rnd_state = 12345;

static uint32_t rnd(uint32_t n)
{
    rnd_state ^= rnd_state << 13;
    rnd_state ^= rnd_state >> 17;
    rnd_state ^= rnd_state << 5;
    return rnd_state % n;
}

static void model_where(const struct model *r, uint64_t at, void **obj, uint64_t *off)
{
    unsigned i = 0;
    while (at >= r->segs[i].len) {
        at -= r->segs[i++].len;
    }
    *obj = r->segs[i].obj;
    *off = r->segs[i].off + at;
}

static void model_reg(struct mem *m, struct model *r, const uint32_t pds[2])
{
    static const unsigned rights[] = {0, MEM_LOCAL_WRITE, MEM_REMOTE_READ, RIGHTS_ALL,
                                      RIGHTS_ALL | MEM_ZERO_BASED};
    uint32_t rkey;
    *r = (struct model){
        .live = true, .pd = pds[rnd(2)], .access = rights[rnd(5)], .nsegs = 1 + rnd(3)};
    for (unsigned i = 0; i < r->nsegs; i++) {
        r->segs[i] = (struct mem_seg){mem_obj + rnd(8), rnd(100), 4096 + rnd(4097)};
        r->len += r->segs[i].len;
    }
    uint64_t iova = rnd(2) ? UINT64_MAX - MODEL_SPACE - rnd(10) : rnd(1000);
    ck_assert_int_eq(
        mem_mr_reg(m, r->pd, iova, r->len, r->access, r->segs, r->nsegs, NULL, &r->key, &rkey), 0);
    r->base = r->access & MEM_ZERO_BASED ? 0 : iova;
}

static void model_compare(struct mem *m, const struct model *regions, const uint32_t pds[2])
{
    const struct model *r = &regions[rnd(MODEL_REGIONS)];
    static const unsigned needs[] = {0, MEM_LOCAL_WRITE, MEM_REMOTE_READ, MEM_REMOTE_WRITE};
    unsigned need = needs[rnd(4)];
    bool local = rnd(2);
    uint32_t pd = pds[rnd(2)], key = r->key ^ (rnd(8) ? 0 : 1u << rnd(32));
    uint64_t at = rnd(MODEL_SPACE + 2) - 1ull, len = rnd(20) ? rnd(9000) : UINT64_MAX - rnd(9000);
    struct mem_ref ref;
    struct mem_piece p[4];
    bool want = r->live && key == r->key && pd == r->pd && (r->access & need) == need &&
                (local || (r->access & MEM_REMOTE_ANY)) && at <= r->len && len <= r->len - at;
    /* A flipped bit may hit another region's key by chance; then any answer of the model is wrong.
     */
    if (key != r->key) {
        for (unsigned i = 0; i < MODEL_REGIONS; i++) {
            if (regions[i].live && regions[i].key == key) {
                return;
            }
        }
    }
    int err = mem_check(m, pd, 0, key, r->base + at, len, need, local, &ref);
    ck_assert_msg(err == (want ? 0 : -EACCES), "SEC-13 model says %d, check %d", want, err);
    if (err) {
        return;
    }
    uint32_t off = len ? rnd((uint32_t)len) : 0, n = (uint32_t)len - off;
    if (n > 4096) {
        n = 4096;
    }
    int pieces = mem_pieces(m, &ref, off, n, p, 2);
    ck_assert_msg(pieces >= 0, "MR-04 4096 octets need at most two pieces");
    uint64_t done = 0;
    for (int i = 0; i < pieces; i++) {
        for (uint32_t j = 0; j < p[i].len; j++, done++) {
            void *obj;
            uint64_t where;

            model_where(r, at + off + done, &obj, &where);
            if (p[i].obj != obj || p[i].off + j != where) {
                ck_abort_msg("MR-04 octet %llu", (unsigned long long)done);
            }
        }
    }
    ck_assert_uint_eq(done, n);
}

/* MR-04, SEC-25: sums that could wrap included. */
START_TEST(mr_04_random_against_a_model)
{
    static struct model regions[MODEL_REGIONS];
    struct mem *m = mem_make(MODEL_REGIONS);
    const uint32_t pds[2] = {mem_make_pd(m), mem_make_pd(m)};
    for (unsigned i = 0; i < 60000; i++) {
        if (rnd(8) == 0) {
            struct model *r = &regions[rnd(MODEL_REGIONS)];

            if (r->live) {
                ck_assert_int_eq(mem_mr_dereg(m, r->key), 0);
                r->live = false;
            } else {
                model_reg(m, r, pds);
            }
        }
        model_compare(m, regions, pds);
    }
    mem_destroy(m);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("mem_check");
    TCase *t = tcase_create("checks");

    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, rsp_14_who_may_touch_what, 0,
                        sizeof(check_cases) / sizeof(*check_cases));
    tcase_add_test(t, sec_13_full_key_compare);
    tcase_add_test(t, mr_04_pieces_over_segments);
    tcase_add_test(t, mr_04_random_against_a_model);
    suite_add_tcase(s, t);
    return unit_run(s);
}
