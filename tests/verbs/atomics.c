/* SPDX-License-Identifier: BSD-3-Clause
 *
 * atomics: fetch-and-add and compare-and-swap on 64 bits in host order: the old value lands in the
 * local buffer, CAS that fails leaves the target, add wraps, many in flight with max_rd_atomic 1,
 * two QPs adding to one counter lose nothing; misaligned fails. */
#include "vt.h"
int main(int argc, char **argv)
{
    vt_start(argc, argv, "atomics");
    if (vt.attr.atomic_cap == IBV_ATOMIC_NONE)
        vt_pass("not offered");
    struct vt_end a, b, c, d;
    struct vt_cfg g = VT_RC;
    g.rd = 1;
    g.swr = 128;
    vt_pair(&a, &b, &g);
    uint64_t *t = (uint64_t *)(b.buf + 64), *o = (uint64_t *)a.buf, ra = (uintptr_t)t;
    uint32_t rk = b.mr->rkey;
    *t = 0x0102030405060708ull;
    o[0] = o[1] = ~0ull;
    OK0(vt_atomic(&a, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, &o[0], ra, rk, 0x10, 0));
    struct ibv_wc wc = vt_want(a.scq, "FETCH_AND_ADD", 1, IBV_WC_SUCCESS, IBV_WC_FETCH_ADD);
    WANT(o[0] == 0x0102030405060708ull && *t == 0x0102030405060718ull && o[1] == ~0ull,
         "old %llx target %llx, expected 102030405060708 102030405060718", (unsigned long long)o[0],
         (unsigned long long)*t);
    WANT(wc.byte_len == 8, "byte_len %u, expected 8", wc.byte_len);
    OK0(vt_atomic(&a, IBV_WR_ATOMIC_CMP_AND_SWP, 2, &o[0], ra, rk, 5, 99));
    vt_want(a.scq, "failing CMP_AND_SWP", 2, IBV_WC_SUCCESS, IBV_WC_COMP_SWAP);
    WANT(o[0] == 0x0102030405060718ull && *t == 0x0102030405060718ull,
         "failed CAS: old %llx target %llx, expected both 102030405060718",
         (unsigned long long)o[0], (unsigned long long)*t);
    OK0(vt_atomic(&a, IBV_WR_ATOMIC_CMP_AND_SWP, 3, &o[0], ra, rk, 0x0102030405060718ull, 99));
    vt_want(a.scq, "CMP_AND_SWP", 3, IBV_WC_SUCCESS, IBV_WC_COMP_SWAP);
    WANT(*t == 99 && o[0] == 0x0102030405060718ull, "CAS: target %llu, expected 99",
         (unsigned long long)*t);
    *t = 3;
    OK0(vt_atomic(&a, IBV_WR_ATOMIC_FETCH_AND_ADD, 4, &o[0], ra, rk, (uint64_t)-5, 0));
    vt_want(a.scq, "add of -5", 4, IBV_WC_SUCCESS, -1);
    WANT((int64_t)*t == -2, "3 + -5 gave %lld", (long long)*t);
    /* depth: 100 in flight with max_rd_atomic 1, each must see the one before */
    *t = 0;
    for (int i = 0; i < 100; i++)
        OK0(vt_atomic(&a, IBV_WR_ATOMIC_FETCH_AND_ADD, 100 + i, &o[i], ra, rk, 1, 0));
    for (int i = 0; i < 100; i++) {
        vt_want(a.scq, "100 in flight", 100 + i, IBV_WC_SUCCESS, -1);
        WANT(o[i] == (uint64_t)i, "atomic %d saw %llu, expected %d", i, (unsigned long long)o[i],
             i);
    }
    /* two QPs, one counter */
    g.pd = b.pd;
    vt_end(&d, 1, &g);
    g.pd = NULL;
    vt_end(&c, 0, &g);
    vt_join(&c, &d);
    uint64_t *oc = (uint64_t *)c.buf;
    *t = 0;
    static char seen[200];
    for (int i = 0; i < 100; i++) {
        OK0(vt_atomic(&a, IBV_WR_ATOMIC_FETCH_AND_ADD, i, &o[i], ra, rk, 1, 0));
        OK0(vt_atomic(&c, IBV_WR_ATOMIC_FETCH_AND_ADD, i, &oc[i], ra, rk, 1, 0));
    }
    for (int i = 0; i < 100; i++) {
        vt_want(a.scq, "first QP", i, IBV_WC_SUCCESS, -1);
        vt_want(c.scq, "second QP", i, IBV_WC_SUCCESS, -1);
    }
    for (int i = 0; i < 100; i++) {
        WANT(o[i] < 200 && !seen[o[i]]++, "value %llu seen twice or too large",
             (unsigned long long)o[i]);
        WANT(oc[i] < 200 && !seen[oc[i]]++, "value %llu seen twice", (unsigned long long)oc[i]);
    }
    WANT(*t == 200, "counter %llu after 200 additions of two QPs", (unsigned long long)*t);
    /* without the right: refused */
    struct ibv_mr *m =
        ibv_reg_mr(b.pd, b.buf, 4096,
                   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
    WANT(m, "ibv_reg_mr failed");
    OK0(vt_atomic(&c, IBV_WR_ATOMIC_FETCH_AND_ADD, 7, oc, ra, m->rkey, 1, 0));
    vt_want(c.scq, "atomic on a region without REMOTE_ATOMIC", 7, IBV_WC_REM_ACCESS_ERR, -1);
    int r = vt_atomic(&a, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, o, ra + 4, rk, 1, 0);
    if (!r) {
        WANT(vt_poll(a.scq, &wc, 1, 5000) == 1 && wc.status != IBV_WC_SUCCESS,
             "misaligned atomic succeeded, expected an error");
    }
    WANT(*t == 200, "refused atomics changed the target to %llu", (unsigned long long)*t);
    vt_pass(r ? "misaligned refused by ibv_post_send" : "misaligned completes with status %d",
            wc.status);
}
