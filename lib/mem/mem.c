/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The tables: slots of regions and windows, keys for them, protection domains.
 * Rules: MR-01, MR-07, MR-15, SEC-12, SEC-22.
 *
 * A key's index part is a permutation of (epoch, slot). A slot's epoch moves on at each reuse, so a
 * reused slot has an unrelated index, and an old key comes back only when a slot has been through
 * all its epochs and draws the same variant octet.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mem_priv.h"

#define KEY_BITS      24u
#define SLOT_BITS_MAX 20u /* leaves at least 16 epochs: a million objects */
#define CAP_MIN       64u

static unsigned bits_for(uint64_t n)
{
    unsigned bits = 1;
    while (bits < SLOT_BITS_MAX && n > 1ull << bits)
        bits++;
    return bits;
}

struct mem *mem_create(const struct mem_params *params)
{
    struct mem *m = calloc(1, sizeof(*m));
    if (!m)
        return NULL;
    m->params = *params;
    m->slot_bits = bits_for((uint64_t)params->max_mr + params->max_mw);
    m->free_head = m->free_tail = MEM_NIL;
    m->pd_free = MEM_NIL;
    mem_keys_init(&m->keys, params->key);
    return m;
}

void mem_destroy(struct mem *m)
{
    if (!m)
        return;
    for (uint32_t i = 0; i < m->cap; i++) {
        free(m->cold[i].segs);
        free(m->cold[i].starts);
    }
    free(m->slots);
    free(m->cold);
    free(m->pds);
    free(m);
}

static void free_list_add(struct mem *m, uint32_t slot)
{
    m->cold[slot].next = MEM_NIL;
    if (m->free_tail == MEM_NIL)
        m->free_head = slot;
    else
        m->cold[m->free_tail].next = slot;
    m->free_tail = slot;
}

static bool grow(struct mem *m)
{
    uint32_t limit = 1u << m->slot_bits;
    uint32_t cap = m->cap ? m->cap * 2 : CAP_MIN;
    if (cap > limit)
        cap = limit;
    if (cap <= m->cap)
        return false;
    struct mem_slot *slots = aligned_alloc(64, cap * sizeof(*slots));
    struct mem_cold *cold = realloc(m->cold, cap * sizeof(*cold));
    if (cold)
        m->cold = cold;
    if (!slots || !cold) {
        free(slots);
        return false;
    }
    if (m->cap)
        memcpy(slots, m->slots, m->cap * sizeof(*slots));
    memset(slots + m->cap, 0, (cap - m->cap) * sizeof(*slots));
    memset(cold + m->cap, 0, (cap - m->cap) * sizeof(*cold));
    free(m->slots);
    m->slots = slots;
    for (uint32_t i = m->cap; i < cap; i++) {
        cold[i].epoch = (uint32_t)mem_keys_random(&m->keys);
        free_list_add(m, i);
    }
    m->cap = cap;
    return true;
}

void mem_slot_rekey(struct mem *m, struct mem_slot *s)
{
    struct mem_cold *cold = mem_slot_cold(m, s);
    uint32_t index;
    do { /* index 0 is never valid (MR-01): skip the epoch that gives it */
        cold->epoch++;
        index = mem_key_hide(&m->keys, (cold->epoch << m->slot_bits | mem_slot_index(m, s)) &
                                           ((1u << KEY_BITS) - 1));
    } while (index == 0);

    /* Another epoch, another index: it differs from the key before (MR-07). */
    s->key = index << 8 | (mem_keys_random(&m->keys) & 0xFF);
    s->gen++;
}

struct mem_slot *mem_slot_new(struct mem *m, enum mem_kind kind, uint32_t pd)
{
    if (m->free_head == MEM_NIL && !grow(m))
        return NULL;
    uint32_t slot = m->free_head;
    struct mem_slot *s = &m->slots[slot];

    m->free_head = m->cold[slot].next;
    if (m->free_head == MEM_NIL)
        m->free_tail = MEM_NIL;
    mem_slot_rekey(m, s);
    s->kind = (uint8_t)kind;
    s->pd = pd;
    s->mr = slot;
    m->pds[pd].users++;
    return s;
}

void mem_slot_unbind(struct mem *m, struct mem_slot *s)
{
    if (s->valid)
        m->cold[s->mr].windows--;
    s->valid = 0;
    s->mr = mem_slot_index(m, s);
    s->gen++;
}

void mem_slot_free(struct mem *m, struct mem_slot *s)
{
    struct mem_cold *cold = mem_slot_cold(m, s);
    free(cold->segs);
    free(cold->starts);
    *cold = (struct mem_cold){.epoch = cold->epoch};
    m->pds[s->pd].users--;
    *s = (struct mem_slot){.gen = s->gen + 1};
    free_list_add(m, mem_slot_index(m, s));
}

/* ---- protection domains ---- */

static bool grow_pds(struct mem *m)
{
    uint64_t limit = (uint64_t)m->params.max_pd + 1;
    uint64_t cap = m->pd_cap ? m->pd_cap * 2ull : 16;
    if (cap > limit)
        cap = limit;
    if (cap <= m->pd_cap)
        return false;
    struct mem_pd *pds = realloc(m->pds, cap * sizeof(*pds));
    if (!pds)
        return false;
    m->pds = pds;
    for (uint32_t i = (uint32_t)cap; i-- > m->pd_cap;) {
        pds[i] = (struct mem_pd){.next = m->pd_free};
        if (i != 0) /* id 0 = none */
            m->pd_free = i;
    }
    m->pd_cap = (uint32_t)cap;
    return true;
}

int mem_pd_alloc(struct mem *m, uint32_t *pd)
{
    if (m->usage.pds >= m->params.max_pd)
        return -ENOSPC;
    if (m->pd_free == MEM_NIL && !grow_pds(m))
        return -ENOMEM;
    *pd = m->pd_free;
    m->pd_free = m->pds[*pd].next;
    m->pds[*pd].live = true;
    m->usage.pds++;
    return 0;
}

int mem_pd_free(struct mem *m, uint32_t pd)
{
    if (!mem_pd_live(m, pd))
        return -EINVAL;
    if (m->pds[pd].users)
        return -EBUSY;
    m->pds[pd].live = false;
    m->pds[pd].next = m->pd_free;
    m->pd_free = pd;
    m->usage.pds--;
    return 0;
}

int mem_pd_hold(struct mem *m, uint32_t pd)
{
    if (!mem_pd_live(m, pd))
        return -EINVAL;
    m->pds[pd].users++;
    return 0;
}

void mem_pd_drop(struct mem *m, uint32_t pd)
{
    assert(mem_pd_live(m, pd) && m->pds[pd].users > 0);
    m->pds[pd].users--;
}

void mem_usage(const struct mem *m, struct mem_usage *out)
{
    *out = m->usage;
}
