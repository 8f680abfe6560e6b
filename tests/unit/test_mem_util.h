/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shared by the tests of lib/mem: a struct mem with small limits, and objects to name.
 */
#ifndef TEST_MEM_UTIL_H
#define TEST_MEM_UTIL_H

#include <errno.h>
#include <stdlib.h>

#include "mem.h"
#include "unit.h"

#define RIGHTS_ALL (MEM_LOCAL_WRITE | MEM_REMOTE_ANY | MEM_MW_BIND)

static char mem_obj[8]; /* addresses to tell backing objects apart */

static inline struct mem *mem_make(uint32_t max_mr)
{
    const struct mem_params p = {
        .max_pd = 8, .max_mr = max_mr, .max_mw = 64, .key = {0x0123456789ABCDEF, 42}};
    struct mem *m = mem_create(&p);
    ck_assert_ptr_nonnull(m);
    return m;
}

static inline uint32_t mem_make_pd(struct mem *m)
{
    uint32_t pd = 0;
    ck_assert_int_eq(mem_pd_alloc(m, &pd), 0);
    ck_assert_uint_ne(pd, 0);
    return pd;
}

/* A region of one segment; returns its L_Key. */
static inline uint32_t mem_make_mr(struct mem *m, uint32_t pd, uint64_t iova, uint64_t len,
                                   unsigned access)
{
    const struct mem_seg seg = {mem_obj, 0x100000, len};
    uint32_t lkey = 0, rkey = 0;
    ck_assert_int_eq(
        mem_mr_reg(m, pd, iova, len, access, &seg, len != 0, mem_obj + 7, &lkey, &rkey), 0);
    return lkey;
}

/* May a peer on queue pair qpn do `need` there? */
static inline int mem_remote(struct mem *m, uint32_t pd, uint32_t qpn, uint32_t key, uint64_t va,
                             uint64_t len, unsigned need)
{
    struct mem_ref ref;
    return mem_check(m, pd, qpn, key, va, len, need, false, &ref);
}

#endif
