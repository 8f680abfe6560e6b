/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Regions: register, deregister, fast register, invalidate, hold.
 * Rules: MR-02..MR-10, MR-13, MR-14, MR-15, RSP-19.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mem_priv.h"

#define ACCESS_KNOWN                                                                               \
    (MEM_LOCAL_WRITE | MEM_REMOTE_ANY | MEM_MW_BIND | MEM_ZERO_BASED | MEM_FLUSH_ANY)
/* Verbs' optional range: relaxed ordering and whatever follows. */
#define ACCESS_HINTS 0x3FF00000u

/* MR-02, MR-13, ATM-13. */
static int check_access(const struct mem *m, unsigned access)
{
    if (access & ~(ACCESS_KNOWN | ACCESS_HINTS))
        return -EOPNOTSUPP;
    if (access & MEM_FLUSH_PERSISTENT && !m->params.persistent)
        return -EOPNOTSUPP;
    if ((access & (MEM_REMOTE_WRITE | MEM_REMOTE_ATOMIC)) && !(access & MEM_LOCAL_WRITE))
        return -EINVAL;
    return 0;
}

/* MR-04. */
static int check_range(const struct mem *m, uint64_t iova, uint64_t len, unsigned access,
                       const struct mem_seg *segs, unsigned nsegs)
{
    uint64_t sum = 0;
    int err = check_access(m, access);
    if (err)
        return err;
    if (!(access & MEM_ZERO_BASED) && iova > UINT64_MAX - len)
        return -EINVAL;
    for (unsigned i = 0; i < nsegs; i++) {
        bool inner = i > 0 && i + 1 < nsegs;

        if (segs[i].len == 0 || (inner && segs[i].len < MEM_SEG_MIN) ||
            segs[i].off > UINT64_MAX - segs[i].len || segs[i].len > len - sum)
            return -EINVAL;
        sum += segs[i].len;
    }
    return sum == len ? 0 : -EINVAL;
}

/* Put the segments where a check finds them. The single segment of most regions goes into the hot
 * slot itself. */
static int set_segs(struct mem_slot *s, struct mem_cold *cold, const struct mem_seg *segs,
                    unsigned nsegs)
{
    s->nsegs = nsegs;
    s->obj = nsegs == 1 ? segs[0].obj : NULL;
    s->off = nsegs == 1 ? segs[0].off : 0;
    if (nsegs <= 1)
        return 0;
    cold->segs = malloc(nsegs * sizeof(*cold->segs));
    cold->starts = malloc(nsegs * sizeof(*cold->starts));
    if (!cold->segs || !cold->starts) {
        free(cold->segs);
        free(cold->starts);
        cold->segs = NULL;
        cold->starts = NULL;
        return -ENOMEM;
    }
    memcpy(cold->segs, segs, nsegs * sizeof(*segs));
    for (uint64_t i = 0, at = 0; i < nsegs; at += segs[i].len, i++)
        cold->starts[i] = at;
    return 0;
}

static void set_valid(struct mem *m, struct mem_slot *s, uint64_t iova, uint64_t len,
                      unsigned access)
{
    s->base = access & MEM_ZERO_BASED ? 0 : iova;
    s->len = len;
    s->access = (uint16_t)(access & ACCESS_KNOWN);
    s->valid = 1;
    s->gen++;
    m->usage.octets += len;
}

static void set_invalid(struct mem *m, struct mem_slot *s)
{
    if (s->valid)
        m->usage.octets -= s->len;
    s->valid = 0;
    s->gen++;
}

int mem_mr_reg(struct mem *m, uint32_t pd, uint64_t iova, uint64_t len, unsigned access,
               const struct mem_seg *segs, unsigned nsegs, void *owner, uint32_t *lkey,
               uint32_t *rkey)
{
    if (!mem_pd_live(m, pd))
        return -EINVAL;
    int err = check_range(m, iova, len, access, segs, nsegs);
    if (err)
        return err;
    if (m->usage.mrs >= m->params.max_mr)
        return -ENOSPC;
    struct mem_slot *s = mem_slot_new(m, MEM_K_MR, pd);
    if (!s)
        return -ENOMEM;
    err = set_segs(s, mem_slot_cold(m, s), segs, nsegs);
    if (err) {
        mem_slot_free(m, s);
        return err;
    }
    mem_slot_cold(m, s)->owner = owner;
    set_valid(m, s, iova, len, access);
    m->usage.mrs++;
    *lkey = s->key;
    *rkey = access & MEM_BY_PEER ? s->key : 0;
    return 0;
}

int mem_mr_rereg(struct mem *m, uint32_t lkey, uint32_t pd, unsigned access, uint32_t *rkey)
{
    struct mem_slot *s = mem_slot_find_kind(m, lkey, MEM_K_MR, MEM_K_MR);
    if (!s || s->key != lkey || !mem_pd_live(m, pd))
        return -EINVAL;
    int err = check_access(m, access);
    if (err)
        return err;
    if ((access ^ s->access) & MEM_ZERO_BASED)
        return -EINVAL;
    if (mem_slot_cold(m, s)->windows > 0)
        return -EBUSY;
    m->pds[s->pd].users--;
    m->pds[pd].users++;
    s->pd = pd;
    s->access = (uint16_t)(access & ACCESS_KNOWN);
    s->gen++;
    *rkey = access & MEM_BY_PEER ? s->key : 0;
    return 0;
}

static void *mr_free(struct mem *m, struct mem_slot *s)
{
    void *owner = mem_slot_cold(m, s)->owner;
    mem_slot_free(m, s);
    m->usage.mrs--;
    return owner;
}

int mem_mr_dereg(struct mem *m, uint32_t lkey)
{
    struct mem_slot *s = mem_slot_find_kind(m, lkey, MEM_K_MR, MEM_K_FR);
    if (!s || (s->kind == MEM_K_MR && s->key != lkey))
        return -EINVAL;
    if (mem_slot_cold(m, s)->windows)
        return -EBUSY;
    set_invalid(m, s);
    if (s->holds) {
        s->key = 0; /* not found any more */
        s->dead = true;
        return -EINPROGRESS;
    }
    mr_free(m, s);
    return 0;
}

int mem_fr_alloc(struct mem *m, uint32_t pd, uint32_t max_segs, uint32_t *lkey, uint32_t *rkey)
{
    if (!mem_pd_live(m, pd) || max_segs == 0)
        return -EINVAL;
    if (m->usage.mrs >= m->params.max_mr)
        return -ENOSPC;
    struct mem_slot *s = mem_slot_new(m, MEM_K_FR, pd);
    if (!s)
        return -ENOMEM;
    mem_slot_cold(m, s)->max_segs = max_segs;
    m->usage.mrs++;
    *lkey = *rkey = s->key;
    return 0;
}

int mem_fr_alloc_in(struct mem *m, uint32_t pd, uint32_t max_segs, const struct mem_seg *within,
                    uint32_t *lkey, uint32_t *rkey)
{
    if (max_segs > MEM_WITHIN_SEGS || within->len == 0 || within->off > UINT64_MAX - within->len)
        return -EINVAL;
    int err = mem_fr_alloc(m, pd, max_segs, lkey, rkey);
    if (!err)
        mem_slot_cold(m, mem_slot_find(m, *lkey))->within = *within;
    return err;
}

/* The segments' places in the object that the region is made for. MR-08 */
static int place_segs(const struct mem_seg *within, const struct mem_seg *segs, unsigned nsegs,
                      struct mem_seg placed[MEM_WITHIN_SEGS])
{
    for (unsigned i = 0; i < nsegs; i++) {
        if (segs[i].off > within->len || segs[i].len > within->len - segs[i].off)
            return -EINVAL;
        placed[i] = (struct mem_seg){within->obj, within->off + segs[i].off, segs[i].len};
    }
    return 0;
}

int mem_fr_reg(struct mem *m, uint32_t pd, uint32_t key, uint64_t iova, uint64_t len,
               unsigned access, const struct mem_seg *segs, unsigned nsegs)
{
    struct mem_slot *s = mem_slot_find_kind(m, key, MEM_K_FR, MEM_K_FR);
    if (!s || s->pd != pd || s->valid || nsegs > mem_slot_cold(m, s)->max_segs)
        return -EINVAL;
    struct mem_cold *cold = mem_slot_cold(m, s);
    struct mem_seg placed[MEM_WITHIN_SEGS];
    if (cold->within.len) {
        if (place_segs(&cold->within, segs, nsegs, placed))
            return -EINVAL;
        segs = placed;
    }
    int err = check_range(m, iova, len, access, segs, nsegs);
    if (err)
        return err;
    free(cold->segs);
    free(cold->starts);
    cold->segs = NULL;
    cold->starts = NULL;
    err = set_segs(s, cold, segs, nsegs);
    if (err)
        return err;
    s->key = key;
    set_valid(m, s, iova, len, access);
    return 0;
}

int mem_invalidate(struct mem *m, uint32_t pd, uint32_t qpn, uint32_t key, bool remote)
{
    struct mem_slot *s = mem_slot_find_kind(m, key, MEM_K_FR, MEM_K_MW2);
    if (!s || s->key != key || s->pd != pd || !s->valid)
        return -EINVAL;
    if (s->kind == MEM_K_MW2) {
        if (s->qpn != qpn)
            return -EINVAL;
        mem_slot_unbind(m, s);
        return 0;
    }
    if (mem_slot_cold(m, s)->windows || (remote && !(s->access & MEM_BY_PEER)))
        return -EINVAL;
    set_invalid(m, s);
    return 0;
}

void mem_hold(struct mem *m, const struct mem_ref *ref)
{
    m->slots[ref->mr].holds++;
}

void *mem_drop(struct mem *m, const struct mem_ref *ref)
{
    struct mem_slot *s = &m->slots[ref->mr];
    assert(s->holds > 0);
    s->holds--;
    return s->holds == 0 && s->dead ? mr_free(m, s) : NULL;
}
