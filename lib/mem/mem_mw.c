/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory windows, type 1 and type 2B. Rules: MW-01..MW-07.
 */
#include <errno.h>

#include "mem_priv.h"

int mem_mw_alloc(struct mem *m, uint32_t pd, unsigned type, uint32_t *rkey)
{
    if (!mem_pd_live(m, pd) || (type != 1 && type != 2))
        return -EINVAL;
    if (m->usage.mws >= m->params.max_mw)
        return -ENOSPC;
    struct mem_slot *s = mem_slot_new(m, type == 1 ? MEM_K_MW1 : MEM_K_MW2, pd);
    if (!s)
        return -ENOMEM;
    m->usage.mws++;
    *rkey = s->key;
    return 0;
}

/* May this window be bound so? MW-03, MW-04. */
static bool bind_allowed(const struct mem_slot *s, const struct mem_slot *mr, uint32_t mr_lkey,
                         uint32_t pd, uint64_t va, uint64_t len, unsigned access)
{
    if (!mr || mr->key != mr_lkey || !mr->valid || mr->pd != pd || !(mr->access & MEM_MW_BIND))
        return false;
    if (access & ~(MEM_BY_PEER | MEM_ZERO_BASED))
        return false;
    if (access & MEM_FLUSH_ANY & ~(unsigned)mr->access)
        return false; /* ATM-13: how long its octets last is the region's to say */
    if ((access & MEM_ZERO_BASED) && s->kind == MEM_K_MW1)
        return false;
    if ((access & (MEM_REMOTE_WRITE | MEM_REMOTE_ATOMIC)) && !(mr->access & MEM_LOCAL_WRITE))
        return false;
    return va >= mr->base && len <= mr->len && va - mr->base <= mr->len - len;
}

int mem_mw_bind(struct mem *m, uint32_t pd, uint32_t qpn, uint32_t mw_rkey, uint32_t new_rkey,
                uint32_t mr_lkey, uint64_t va, uint64_t len, unsigned access, uint32_t *rkey)
{
    struct mem_slot *s = mem_slot_find_kind(m, mw_rkey, MEM_K_MW1, MEM_K_MW2);
    bool chosen = s && (s->kind == MEM_K_MW2 || new_rkey != 0); /* the consumer chose the variant */
    if (!s || s->pd != pd)
        return -EINVAL;
    if (chosen && (new_rkey >> 8 != s->key >> 8 || new_rkey == s->key))
        return -EINVAL;
    if (s->kind == MEM_K_MW2 && (s->valid || len == 0))
        return -EINVAL;
    if (len > 0) {
        const struct mem_slot *mr = mem_slot_find_kind(m, mr_lkey, MEM_K_MR, MEM_K_FR);

        if (!bind_allowed(s, mr, mr_lkey, pd, va, len, access))
            return -EINVAL;
        mem_slot_unbind(m, s);
        s->base = access & MEM_ZERO_BASED ? 0 : va;
        s->len = len;
        s->access = (uint16_t)access;
        s->obj = mr->obj;
        s->off = mr->off + (va - mr->base);
        s->nsegs = mr->nsegs;
        s->mr = mem_slot_index(m, mr);
        s->qpn = qpn;
        s->valid = 1;
        m->cold[s->mr].windows++;
    } else {
        mem_slot_unbind(m, s);
    }
    if (chosen) {
        s->key = new_rkey;
        s->gen++;
    } else {
        mem_slot_rekey(m, s);
    }
    *rkey = s->key;
    return 0;
}

int mem_mw_dealloc(struct mem *m, uint32_t rkey)
{
    struct mem_slot *s = mem_slot_find_kind(m, rkey, MEM_K_MW1, MEM_K_MW2);
    if (!s)
        return -EINVAL;
    mem_slot_unbind(m, s);
    mem_slot_free(m, s);
    m->usage.mws--;
    return 0;
}
