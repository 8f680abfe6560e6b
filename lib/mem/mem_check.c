/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The question that every packet asks: may this queue pair touch these octets, and where are they?
 * Rules: MR-03, MR-04, MR-05, MR-10, MW-05, RSP-14, RSP-17, SEC-13.
 */
#include <errno.h>

#include "mem_priv.h"

/* The object that a key names, at any address; NULL = none. */
static const struct mem_slot *find(const struct mem *m, uint32_t pd, uint32_t qpn, uint32_t key,
                                   unsigned need, bool local)
{
    const struct mem_slot *s = mem_slot_find(m, key);
    /* All 32 bits at once; a slot without object has key 0, which isn't `valid` either. */
    if (!s || s->key != key || !s->valid || s->pd != pd || (s->access & need) != need)
        return NULL;
    if (local ? s->kind > MEM_K_FR : !(s->access & MEM_BY_PEER))
        return NULL;
    if (s->kind == MEM_K_MW2 && s->qpn != qpn)
        return NULL;
    return s;
}

int mem_check(const struct mem *m, uint32_t pd, uint32_t qpn, uint32_t key, uint64_t va,
              uint64_t len, unsigned need, bool local, struct mem_ref *out)
{
    const struct mem_slot *s = find(m, pd, qpn, key, need, local);
    if (!s)
        return -EACCES;
    if (va < s->base || len > s->len || va - s->base > s->len - len)
        return -EACCES;
    *out = (struct mem_ref){
        .slot = mem_slot_index(m, s), .gen = s->gen, .mr = s->mr, .va = va, .len = len};
    return 0;
}

int mem_check_key(const struct mem *m, uint32_t pd, uint32_t qpn, uint32_t key, unsigned need)
{
    return find(m, pd, qpn, key, need, false) ? 0 : -EACCES;
}

void mem_prefetch(const struct mem *m, uint32_t slot)
{
    if (slot < m->cap)
        __builtin_prefetch(&m->slots[slot]);
}

/* The segment that holds octet `at` of a region: the last one that begins at or before it. */
static uint32_t seg_find(const struct mem_cold *cold, uint32_t nsegs, uint64_t at)
{
    uint32_t lo = 0, hi = nsegs;
    while (hi - lo > 1) {
        uint32_t mid = lo + (hi - lo) / 2;

        if (cold->starts[mid] <= at)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

static int pieces_of_segs(const struct mem_cold *cold, uint32_t nsegs, uint64_t at, uint32_t len,
                          struct mem_piece *out, unsigned max)
{
    uint32_t i = seg_find(cold, nsegs, at);
    unsigned n = 0;
    for (; len > 0; i++) {
        uint64_t skip = at - cold->starts[i];
        uint64_t left = cold->segs[i].len - skip;
        uint32_t take = len < left ? len : (uint32_t)left;

        if (n == max)
            return -E2BIG;
        out[n++] = (struct mem_piece){cold->segs[i].obj, cold->segs[i].off + skip, take};
        at += take;
        len -= take;
    }
    return (int)n;
}

int mem_pieces(const struct mem *m, const struct mem_ref *ref, uint64_t off, uint32_t len,
               struct mem_piece *out, unsigned max)
{
    const struct mem_slot *s = &m->slots[ref->slot];
    if (s->gen != ref->gen || len > ref->len || off > ref->len - len)
        return -EACCES;
    if (len == 0)
        return 0;
    uint64_t at = s->off + (ref->va - s->base) + off;
    if (s->nsegs > 1)
        return pieces_of_segs(&m->cold[s->mr], s->nsegs, at, len, out, max);
    if (max == 0)
        return -E2BIG;
    out[0] = (struct mem_piece){s->obj, at, len};
    return 1;
}
