/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The table from reference numbers to objects. Adding and deleting happen under ctx->lock; looking
 * up needs no lock, because pages stay where they are until the context is closed.
 */
#include <errno.h>
#include <stdlib.h>

#include "client.h"

#define SLOT_BITS 20u
#define SLOT_MASK ((1u << SLOT_BITS) - 1)
#define GEN_MASK  (UINT32_MAX >> SLOT_BITS)
_Static_assert(CLIENT_REF_SLOTS *CLIENT_REF_PAGES == 1u << SLOT_BITS, "every slot has its page");

static struct client_ref_page *page_of(struct client_refs *t, uint32_t slot)
{
    return atomic_load_explicit(&t->page[slot / CLIENT_REF_SLOTS], memory_order_acquire);
}

int client_ref_add(struct client_refs *t, struct client_obj *obj, enum client_kind kind)
{
    uint32_t slot;
    struct client_ref_page *p;
    if (t->freed != 0) {
        slot = t->freed - 1;
        p = page_of(t, slot);
        t->freed = p->next_free[slot % CLIENT_REF_SLOTS];
    } else {
        slot = t->used;
        if (slot >= CLIENT_REF_SLOTS * CLIENT_REF_PAGES)
            return -ENOSPC;
        p = page_of(t, slot);
        if (p == NULL) {
            p = calloc(1, sizeof(*p));
            if (p == NULL)
                return -ENOMEM;
            atomic_store_explicit(&t->page[slot / CLIENT_REF_SLOTS], p, memory_order_release);
        }
        t->used++;
    }
    obj->ref = (uint32_t)p->gen[slot % CLIENT_REF_SLOTS] << SLOT_BITS | slot;
    obj->kind = kind;
    atomic_store_explicit(&p->obj[slot % CLIENT_REF_SLOTS], obj, memory_order_release);
    return 0;
}

void client_ref_del(struct client_refs *t, struct client_obj *obj)
{
    uint32_t slot = obj->ref & SLOT_MASK, i = slot % CLIENT_REF_SLOTS;
    struct client_ref_page *p = page_of(t, slot);
    atomic_store_explicit(&p->obj[i], NULL, memory_order_relaxed);
    p->gen[i] = (p->gen[i] + 1) & GEN_MASK;
    p->next_free[i] = t->freed;
    t->freed = slot + 1;
}

struct client_obj *client_ref_get(struct client_refs *t, uint32_t ref)
{
    uint32_t slot = ref & SLOT_MASK;
    struct client_ref_page *p = page_of(t, slot);
    if (p == NULL)
        return NULL;
    struct client_obj *obj =
        atomic_load_explicit(&p->obj[slot % CLIENT_REF_SLOTS], memory_order_acquire);
    return obj != NULL && obj->ref == ref ? obj : NULL;
}

void client_refs_free(struct client_refs *t)
{
    for (unsigned i = 0; i < CLIENT_REF_PAGES; i++)
        free(atomic_load_explicit(&t->page[i], memory_order_relaxed));
}
