/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Inside lib/mem: one table of slots for regions and windows. A check reads one cache line; the
 * rest of an object lives in a second table with the same index.
 */
#ifndef URNIC_MEM_PRIV_H
#define URNIC_MEM_PRIV_H

#include <assert.h>
#include <stddef.h>

#include "mem.h"
#include "mem_key.h"

/* Rights that a peer can use. A region without any of them has no R_Key. */
#define MEM_BY_PEER (MEM_REMOTE_ANY | MEM_FLUSH_ANY)

enum mem_kind {
    MEM_K_NONE,
    MEM_K_MR,  /* registered once, by mem_mr_reg */
    MEM_K_FR,  /* fast-register region */
    MEM_K_MW1, /* window, type 1 */
    MEM_K_MW2, /* window, type 2B */
};

/* The hot half: all that mem_check and, for a range in one segment, mem_pieces need. */
struct mem_slot {
    uint32_t key; /* L_Key, R_Key; 0 in a slot without object */
    uint32_t gen; /* changes whenever an earlier check may not hold any more */
    uint32_t pd;
    uint16_t access; /* MEM_*; without hints */
    uint8_t kind;    /* enum mem_kind */
    bool valid : 1;  /* checks may succeed: registered, or bound */
    bool dead : 1;   /* deregistered; the last drop frees it */
    uint64_t base;   /* address of the first octet */
    uint64_t len;
    void *obj;      /* one segment: its object and offset */
    uint64_t off;   /* several: where the object begins within the region's octets */
    uint32_t nsegs; /* of the region (a window: of the region beneath) */
    uint32_t mr;    /* slot of the region: itself, or the one beneath a window */
    uint32_t qpn;   /* type 2 window: its queue pair */
    uint32_t holds; /* region: copies under way */
};
_Static_assert(sizeof(struct mem_slot) == 64, "one cache line");

struct mem_cold {
    void *owner;
    struct mem_seg *segs;  /* regions of several segments */
    uint64_t *starts;      /* segs[i] begins at octet starts[i] of the region */
    struct mem_seg within; /* fast-register regions by mem_fr_alloc_in; otherwise len 0 */
    uint32_t max_segs;     /* fast-register regions */
    uint32_t windows;      /* bound to this region */
    uint32_t epoch;        /* changes the index part of the key at each reuse of the slot */
    uint32_t next;         /* free list */
};

struct mem_pd {
    uint32_t users; /* regions, windows and holds */
    uint32_t next;  /* free list */
    bool live;
};

struct mem {
    struct mem_slot *slots;
    struct mem_keys keys;
    uint32_t cap;       /* slots there are */
    unsigned slot_bits; /* low bits of a hidden number that are the slot; the rest is the epoch */
    struct mem_cold *cold;
    uint32_t free_head, free_tail; /* slots, first in first out: reuse takes as long as possible */
    struct mem_pd *pds;
    uint32_t pd_cap, pd_free;
    struct mem_params params;
    struct mem_usage usage;
};

#define MEM_NIL UINT32_MAX

/* The slot that a key's index part names, whatever is in it; NULL = none. O(1). */
static inline struct mem_slot *mem_slot_find(const struct mem *m, uint32_t key)
{
    uint32_t slot = mem_key_show(&m->keys, key >> 8) & ((1u << m->slot_bits) - 1);
    return slot < m->cap ? &m->slots[slot] : NULL;
}

/* An object's slot by the index part of its key. For local calls: the owner's variant octet may be
 * older or newer than ours. NULL = not an object of kind a or b. */
static inline struct mem_slot *mem_slot_find_kind(const struct mem *m, uint32_t key,
                                                  enum mem_kind a, enum mem_kind b)
{
    struct mem_slot *s = key >> 8 ? mem_slot_find(m, key) : NULL;
    return s && s->key >> 8 == key >> 8 && (s->kind == a || s->kind == b) ? s : NULL;
}

static inline uint32_t mem_slot_index(const struct mem *m, const struct mem_slot *s)
{
    return (uint32_t)(s - m->slots);
}

static inline struct mem_cold *mem_slot_cold(const struct mem *m, const struct mem_slot *s)
{
    return &m->cold[mem_slot_index(m, s)];
}

static inline bool mem_pd_live(const struct mem *m, uint32_t pd)
{
    return pd > 0 && pd < m->pd_cap && m->pds[pd].live;
}

/* A slot with a new key, kind and domain (held), nothing valid in it. NULL = out of memory. May
 * move the tables. */
struct mem_slot *mem_slot_new(struct mem *m, enum mem_kind kind, uint32_t pd);
/* Give the object in the slot another key: new index, new variant. */
void mem_slot_rekey(struct mem *m, struct mem_slot *s);
/* Unbind a window, bound or not: earlier checks through it no longer hold. */
void mem_slot_unbind(struct mem *m, struct mem_slot *s);
/* Empty the slot; lets go of the domain. */
void mem_slot_free(struct mem *m, struct mem_slot *s);

#endif
