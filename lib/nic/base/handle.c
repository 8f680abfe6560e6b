/* SPDX-License-Identifier: BSD-3-Clause
 *
 * An array with a first-in first-out list of free entries.
 */
#include "handle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "quota.h"

void handle_init(struct handle_table *t)
{
    memset(t, 0, sizeof(*t));
    t->used = 1; /* 0 is no handle */
}

void handle_fini(struct handle_table *t)
{
    free(t->entry);
    memset(t, 0, sizeof(*t));
}

/* Fewer than the device's limit, so that one client leaves some for the others. */
static const uint32_t handle_quota[HANDLE_KINDS] = {
    [HANDLE_PD] = QUOTA_PD,
    [HANDLE_SLAB] = QUOTA_MAPPINGS,
    [HANDLE_MR] = QUOTA_MR,
    [HANDLE_MW] = QUOTA_MW,
    [HANDLE_CHANNEL] = QUOTA_CHANNELS,
    [HANDLE_CQ] = QUOTA_CQ,
    [HANDLE_SRQ] = QUOTA_SRQ,
    [HANDLE_QP] = QUOTA_QP,
    [HANDLE_CM_CHANNEL] = QUOTA_CHANNELS,
    [HANDLE_CM_ID] = QUOTA_CM_ID,
};

/* The user's share that objects of this kind are part of; NULL = of none. */
static struct share *handle_share(const struct handle_table *t, enum handle_kind handle,
                                  enum share_kind *kind)
{
    static const enum share_kind of_device[HANDLE_KINDS] = {
        [HANDLE_PD] = SHARE_PD,       [HANDLE_MR] = SHARE_MR,   [HANDLE_MW] = SHARE_MW,
        [HANDLE_CQ] = SHARE_CQ,       [HANDLE_SRQ] = SHARE_SRQ, [HANDLE_QP] = SHARE_QP,
        [HANDLE_CM_ID] = SHARE_CM_ID,
    };
    switch (handle) {
    case HANDLE_PD:
    case HANDLE_MR:
    case HANDLE_MW:
    case HANDLE_CQ:
    case HANDLE_SRQ:
    case HANDLE_QP:
    case HANDLE_CM_ID:
        *kind = of_device[handle];
        return t->of_device;
    case HANDLE_CHANNEL:
    case HANDLE_CM_CHANNEL:
        *kind = SHARE_FDS;
        return t->of_daemon;
    default: /* slabs: by their octets */
        *kind = SHARE_KINDS;
        return NULL;
    }
}

static int handle_grow(struct handle_table *t)
{
    uint32_t size = t->size ? 2 * t->size : 64;
    struct handle_entry *bigger;
    if (t->size >= QUOTA_HANDLES)
        return -EDQUOT;
    bigger = realloc(t->entry, size * sizeof(*bigger));
    if (!bigger)
        return -ENOMEM;
    memset(bigger + t->size, 0, (size - t->size) * sizeof(*bigger));
    t->entry = bigger;
    t->size = size;
    return 0;
}

bool handle_full(const struct handle_table *t, enum handle_kind kind)
{
    return t->count[kind] >= handle_quota[kind];
}

int handle_add(struct handle_table *t, enum handle_kind kind, void *object, uint32_t *out)
{
    enum share_kind part;
    struct share *s = handle_share(t, kind, &part);
    uint32_t h;
    if (handle_full(t, kind) || !share_has_room(s, part, 1))
        return -EDQUOT;
    if (t->used >= t->size && !t->first_free) {
        int rc = handle_grow(t);
        if (rc < 0)
            return rc;
    }
    (void)share_take(s, part, 1);
    if (t->used < t->size) {
        h = t->used++;
    } else {
        h = t->first_free;
        t->first_free = t->entry[h].next;
        if (!t->first_free)
            t->last_free = 0;
    }
    t->entry[h] = (struct handle_entry){.object = object, .kind = kind};
    t->count[kind]++;
    *out = h;
    return 0;
}

void *handle_get(const struct handle_table *t, enum handle_kind kind, uint32_t handle)
{
    if (handle == 0 || handle >= t->used || t->entry[handle].kind != kind)
        return NULL;
    return t->entry[handle].object;
}

void handle_del(struct handle_table *t, uint32_t handle)
{
    struct handle_entry *e = &t->entry[handle];
    enum share_kind part;
    struct share *s = handle_share(t, (enum handle_kind)e->kind, &part);
    share_give(s, part, 1);
    t->count[e->kind]--;
    *e = (struct handle_entry){0};
    if (t->last_free)
        t->entry[t->last_free].next = handle;
    else
        t->first_free = handle;
    t->last_free = handle;
}

void *handle_each(const struct handle_table *t, enum handle_kind kind, uint32_t *handle,
                  unsigned *budget)
{
    if (t->count[kind] == 0)
        return NULL;
    while (*handle + 1 < t->used && *budget > 0) {
        --*budget;
        if (t->entry[++*handle].kind == kind)
            return t->entry[*handle].object;
    }
    return NULL;
}
